"""Origins: which lines of the user's code the entries of a matrix of derivatives come from.

An entry of a Jacobian comes from the lines of all equations on the way from the argument to the result whose
derivative is not 1 or -1; one of a Hessian from those of the nonlinear equations whose second derivatives it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.source import Line
from ..core.program import Program
from .entries import Entries, NotStructured
from .graph.graph import Edge, Node
from .patterns.boolean import TooMany, through
from .patterns.detect import Patterns, pattern_graph, second_derivatives

# Patterns with more entries than this are not taken apart.
_MOST_ENTRIES = 20_000_000


def jacobian_origins(
    program: Program, active: Sequence[bool], wanted: int, known: Mapping[int, Any], entries: Entries
) -> dict[str, int]:
    """How many entries of a Jacobian come from each line; where all derivatives are 1 or -1, from those of the results.

    Args:
        program: the program.
        active: which inputs are differentiated.
        wanted: how many leading outputs are differentiated.
        known: arrays of other inputs, by position, where they are known.
        entries: the entries.

    Returns:
        The numbers by line, largest first; nothing where the patterns on the way are too large.
    """
    try:
        patterns = Patterns(pattern_graph(program, active, known), _MOST_ENTRIES)
        graph = patterns.graph
        outputs = graph.outputs[:wanted]
        reached = _reached(patterns, outputs)
        parts = []
        for k, operands in graph.ins.items():
            for j, edges in operands.items() if k in reached else ():
                scaling = [edge for edge in edges if not any(map(edge.value.is_number_equal_to, (1, -1)))]
                parts += [(k.line, _product(reached[k], _through(edge, patterns.of(j)))) for edge in scaling]
        if not parts:
            parts = [(k.line, reached[k] @ patterns.of(k)) for k in outputs]
        return _counts(parts, entries)
    except (NotStructured, TooMany):
        return {}


def hessian_origins(
    program: Program, active: Sequence[bool], known: Mapping[int, Any], entries: Entries
) -> dict[str, int]:
    """How many entries of a Hessian come from each line, as `jacobian_origins` says it."""
    try:
        patterns = Patterns(pattern_graph(program, active, known), _MOST_ENTRIES)
        parts = [(curved.eqn.line, part) for curved, part in second_derivatives(patterns, _MOST_ENTRIES)]
        return _counts([(line, part + part.T) for line, part in parts], entries)
    except (NotStructured, TooMany):
        return {}


def _counts(parts: Iterable[tuple[Line | None, Any]], entries: Entries) -> dict[str, int]:
    """The numbers of entries in the patterns of each line."""
    import scipy.sparse as sp

    ones = np.ones(entries.rows.size, np.bool_)
    whole = sp.csr_array((ones, (entries.rows, entries.cols)), shape=entries.shape)
    found: dict[str, Any] = {}
    for line, part in parts:
        if line is not None:
            name = str(line.written)
            found[name] = found[name] + part if name in found else part
    counts = {name: int(whole.multiply(part).nnz) for name, part in found.items()}
    return {name: counts[name] for name in sorted(counts, key=lambda name: -counts[name]) if counts[name]}


def _reached(patterns: Patterns, outputs: Sequence[Node]) -> dict[Node, Any]:
    """For the nodes that outputs depend on, which elements of all outputs depend on which of theirs."""
    import scipy.sparse as sp

    ins = patterns.graph.ins
    height = sum(k.type.size for k in outputs)
    found: dict[Node, Any] = {}
    start = 0
    for k in outputs:
        lanes = np.arange(k.type.size)
        units = sp.csr_array((np.ones(lanes.size, np.bool_), (lanes + start, lanes)), shape=(height, lanes.size))
        found[k] = found[k] + units if k in found else units
        start += lanes.size
    for k in sorted(ins, key=lambda node: -node.order):
        for j, edges in ins[k].items() if k in found else ():
            for edge in edges:
                part = _product(found[k], _matrix(edge))
                found[j] = found[j] + part if j in found else part
    return found


def _matrix(edge: Edge) -> Any:
    import scipy.sparse as sp

    if edge.rows.size > _MOST_ENTRIES:
        raise TooMany
    places = (edge.rows.table().reshape(-1), edge.cols.table().reshape(-1))
    return sp.csr_array((np.ones(edge.rows.size, np.bool_), places), shape=(edge.rows.space, edge.cols.space))


def _through(edge: Edge, pattern: Any) -> Any:
    return through(edge.rows, edge.cols, pattern, _MOST_ENTRIES)


def _product(a: Any, b: Any) -> Any:
    if np.diff(b.indptr)[a.indices].sum() > _MOST_ENTRIES:
        raise TooMany
    return a @ b
