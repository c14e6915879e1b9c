"""Patterns: which elements of a Jacobian or Hessian may differ from zero, found without computing any.

The graph of the program says which elements of a result depend on which of an operand.  Sparse products of boolean
matrices along it give the dependence on the inputs.  A pattern holds for all values of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...base.index_map import IndexMap
from ...core.program import Eqn, Program
from ...core.types import is_inexact
from ..entries import NotStructured
from ..graph.arithmetic import SOME
from ..graph.graph import Curved, Edge, Graph, Node, has_complex, product_lanes
from ..graph.partials import OnElements, second_partials
from .boolean import TooMany, through
from .held_patterns import held_pieces

# A pattern with more entries than this is refused.
_MOST_ENTRIES = 100_000_000


def jacobian_pattern(
    program: Program,
    active: Sequence[bool],
    wanted: int,
    known: Mapping[int, Any],
    at_most: float = _MOST_ENTRIES,
) -> Any:
    """Which elements of the first `wanted` outputs may depend on which of the active inputs.

    Args:
        program: the program.
        active: for each input, whether to differentiate with respect to it.
        wanted: the number of outputs that are differentiated.
        known: arrays of other inputs, by position, where they are known.
        at_most: a pattern with more entries, of the outputs or on the way to them, is refused.

    Returns:
        A `scipy.sparse.csr_array` of booleans, of sorted columns without duplicates.

    Raises:
        NotStructured: the pattern is too large.
    """
    import scipy.sparse as sp

    patterns = Patterns(pattern_graph(program, active, known), at_most)
    rows = [patterns.of(k) for k in patterns.graph.outputs[:wanted]]
    return _canonical(sp.vstack(rows, format="csr") if rows else sp.csr_array((0, patterns.width), dtype=bool))


def hessian_pattern(
    program: Program, active: Sequence[bool], known: Mapping[int, Any], at_most: float = _MOST_ENTRIES
) -> Any:
    """Which second derivatives of the first output, a scalar, may differ from zero.

    Args and returns as `jacobian_pattern`; the matrix is symmetric.
    """
    import scipy.sparse as sp

    patterns = Patterns(pattern_graph(program, active, known), at_most)
    total = sp.csr_array((patterns.width, patterns.width), dtype=bool)
    for _, part in second_derivatives(patterns, at_most):
        total = total + part
    return _canonical(total + total.T)


def second_derivatives(patterns: Patterns, at_most: float) -> Iterator[tuple[Curved, Any]]:
    """For each nonlinear equation that the first output depends on, a pattern that covers its part of the Hessian.

    Each place of the Hessian is covered on one side of the diagonal at least.
    """
    graph = patterns.graph
    used = _used(graph, graph.outputs[:1])
    for curved in graph.curved:
        if any(k in used for k in curved.results):
            for left, right in patterns.pairs(curved):
                # Before the product is made, which may take more memory than there is.
                _check_size(int(np.diff(left.indptr).astype(float) @ np.diff(right.indptr)), at_most)
                yield curved, left.T @ right


def _used(graph: Graph, outputs: Sequence[Node]) -> dict[Node, None]:
    """The nodes that an output depends on."""
    found = dict.fromkeys(outputs)
    waiting = [*found]
    while waiting:
        for j in graph.ins.get(waiting.pop(), ()):
            if j not in found:
                found[j] = None
                waiting.append(j)
    return found


def pattern_graph(program: Program, active: Sequence[bool], known: Mapping[int, Any]) -> Graph:
    """The graph of a program without values of edges."""
    return Graph(program, active, [known.get(i) for i in range(len(active))], None, _held, local_pieces)


def local_pieces(eqn: Eqn, operands: Sequence[Node]) -> Any:
    """Pieces as by the rule `local`, of loops and branches, too."""
    known = [x.known for x in operands]
    found = held_pieces(jacobian_pattern, eqn, [x.is_active for x in operands], known)
    if found is not None:
        return found
    return eqn.primitive.local([x.type for x in operands], [v.type for v in eqn.outputs], known, eqn.params)


def _held(graph: Graph, eqn: Eqn, operands: list[Node], is_linear: bool) -> list[Node] | None:
    """The results of a branch or a loop, with its pattern; None for other equations."""
    pieces = held_pieces(jacobian_pattern, eqn, [x.is_active for x in operands], [x.known for x in operands])
    if pieces is None:
        return None
    results = [graph.node(v.type, None, True, eqn.line) for v in eqn.outputs]
    for k, of_result in zip(results, pieces, strict=True):
        for j, of_operand in zip(operands, of_result, strict=True):
            for piece in of_operand if is_inexact(k.type.dtype) else ():
                graph.edge(k, j, piece.rows, piece.cols, SOME)
    return results


class Patterns:
    """For the nodes of a graph, which elements depend on which elements of the inputs."""

    def __init__(self, graph: Graph, at_most: float = _MOST_ENTRIES) -> None:
        import scipy.sparse as sp

        self.graph = graph
        self._at_most = at_most
        self.width = sum(x.type.size for x in graph.inputs)
        self._found: dict[Node, Any] = {}
        start = 0
        for x in graph.inputs:
            size = x.type.size
            places = (np.arange(size), np.arange(start, start + size))
            self._found[x] = sp.csr_array((np.ones(size, bool), places), shape=(size, self.width))
            start += size
        for k in graph.ins:
            if k not in self._found:
                self._found[k] = self._from_operands(k)

    def of(self, k: Node) -> Any:
        """The pattern of a node; it is empty if the node depends on no input."""
        import scipy.sparse as sp

        found = self._found.get(k)
        return sp.csr_array((k.type.size, self.width), dtype=bool) if found is None else found

    def _from_operands(self, k: Node) -> Any:
        import scipy.sparse as sp

        total = sp.csr_array((k.type.size, self.width), dtype=bool)
        for j, edges in self.graph.ins[k].items():
            for edge in edges:
                part = self._through(edge, j)
                total = part if not total.nnz else total + part
        return total

    def _through(self, edge: Edge, j: Node) -> Any:
        """What the rows of an edge depend on by way of its columns."""
        try:
            return through(edge.rows, edge.cols, self.of(j), self._at_most)
        except TooMany:
            raise _too_large(self._at_most) from None

    def pairs(self, curved: Curved) -> list[tuple[Any, Any]]:
        """Pairs of patterns with one row for each product of two tangents in the second derivative of an equation."""
        eqn, operands, results = curved
        active = [x.is_active for x in operands]
        if isinstance(eqn.primitive, OnElements) and not has_complex(eqn):
            wrt = second_partials(eqn, active).wrt
            return [(self.of(operands[i]), self.of(operands[j])) for i, j in wrt]
        lanes = product_lanes(curved)
        if lanes is not None:
            left, right = lanes
            return [(_rows(self.of(operands[0]), left.cols), _rows(self.of(operands[1]), right.cols))]
        return [(self.of(k), self.of(k)) for k in results if is_inexact(k.type.dtype)]


def _rows(pattern: Any, lanes: IndexMap) -> Any:
    """The rows of a pattern that the lanes stand for."""
    return pattern if lanes.is_identity else pattern[lanes.table().reshape(-1)]


def _check_size(entries: int, at_most: float) -> None:
    if entries > at_most:
        raise _too_large(at_most)


def _too_large(at_most: float) -> NotStructured:
    return NotStructured(f"the pattern may have more than {at_most:,.0f} entries")


def _canonical(pattern: Any) -> Any:
    pattern = pattern.tocsr()
    pattern.sum_duplicates()
    pattern.sort_indices()
    return pattern
