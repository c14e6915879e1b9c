"""Hessians by elimination in a quadratic form.

The second-order part of a scalar function is a quadratic form in the tangents of all nodes: each nonlinear equation
adds products of the tangents of its operands, with its second partial derivatives times the adjoint of its result.  A
node is removed by putting what its tangent is made of in its place, in the form and in the edges to other nodes.  What
is left is the form in the tangents of the inputs, which is the Hessian.  Its symmetry is never given up: each pair of
elements is kept once.

In reverse order this is edge pushing (Gower and Mello 2012, "A new framework for the computation of Hessians").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from ...base.index_map import IndexMap, places, where_equal, where_lower
from ...base.source import attributed_to
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops.elementwise import convert, ne
from ...ops.literals import full_like
from ...ops.shapes import reshape
from ...transforms.differentiate import with_pullback
from ...transforms.simplify import simplify
from ..entries import Entries
from ..graph.arithmetic import Masked, product, reshaped, taken, total, traced
from ..graph.emission import put
from ..graph.graph import Curved, Edge, Graph, Node, alone, lifted, product_lanes
from ..graph.partials import OnElements, second_partials
from ..patterns.detect import local_pieces
from .assemble import Block, are_apart, block_of, entries_of, united
from .eliminate import Elimination, cheapest_order, held, joined, price, product_size

ORDERS = ("greedy", "reverse")


def hessian_entries(
    program: Program, active: Sequence[bool], known: Mapping[int, Any], lower: bool = False, order: str = "auto"
) -> Entries:
    """The entries of the Hessian of the first output, a real scalar, with respect to the active inputs.

    Args:
        program: the program.
        active: for each input, whether to differentiate with respect to it.
        known: arrays of other inputs, by position, where they are known.
        lower: whether to leave out what is above the diagonal.
        order: "greedy" or "reverse"; "auto" takes the cheaper program.

    Raises:
        NotStructured: a part of the program has no edges or no second partial derivatives, or there are too many.
    """
    return cheapest_order(
        lambda name, most: _hessian(program, active, known, lower, name, most), ORDERS if order == "auto" else (order,)
    )


def _hessian(
    program: Program, active: Sequence[bool], known: Mapping[int, Any], lower: bool, order: str, most: float
) -> tuple[Entries, int]:
    builder = Builder(program.in_types)
    with building(builder):
        values = [known.get(i, x) for i, x in enumerate(builder.inputs())]
        graph = Graph(program, active, values, builder, held, local_pieces)
        form = Form(graph, most)
        form.run(order)
        rows, cols, vector = form.entries(lower)
        results = [lifted(builder, x) for x in graph.outputs]
        made = simplify(builder.finish([*results, vector], f"sparse_hessian({program.name})"))
    size = sum(x.type.size for x in graph.inputs)
    how = ("engine: elimination in a quadratic form", f"order: {order}")
    return Entries(made, rows, cols, (size, size), how), form.budget.edges_made


class Form(Elimination):
    """The quadratic form in the tangents of the nodes that are left.

    `parts[i][j]`, where `j` is not later than `i`, are products of tangents of elements of `i` (rows) and of `j`
    (cols).  An entry whose rows are its columns stands for halves of squares: its values are second derivatives.
    """

    def __init__(self, graph: Graph, most: float = inf) -> None:
        assert graph.builder is not None
        self.builder = graph.builder
        self.parts: dict[Node, dict[Node, list[Edge]]] = {}
        self.near: dict[Node, dict[Node, None]] = {}
        (output,) = graph.outputs[:1]
        super().__init__(graph, [output], most)
        self.kept = dict.fromkeys(graph.inputs)
        self._add_curvature(output)
        # The value itself is not needed any more.
        for j in self.ins.pop(output, {}):
            del self.outs[j][output]

    # The form in all tangents

    def _add_curvature(self, output: Node) -> None:
        curved = {k: c for c in self.graph.curved for k in c.results}
        adjoints: dict[Node, Masked] = {output: Masked(1.0)}
        support: dict[Node, Any] = {}
        for k in sorted([*self.ins], key=lambda node: -node.order):
            adjoint = adjoints.pop(k, None)
            if adjoint is None:
                continue
            if k in curved:
                with attributed_to(k.line):
                    self._curve(curved[k], k, adjoint, support.get(k))
            for j, edges in self.ins[k].items():
                if j not in self.kept:
                    for edge in edges:
                        self._pull(adjoints, support, k, j, adjoint, edge)

    def _pull(
        self, adjoints: dict[Node, Masked], support: dict[Node, Any], k: Node, j: Node, adjoint: Masked, edge: Edge
    ) -> None:
        """Add what `k` gives to the adjoint of `j` along an edge."""
        if k in support:
            kept = np.flatnonzero(support[k][edge.rows.table().reshape(-1)])
            lanes = IndexMap.of(kept, edge.rows.size)
            edge = Edge(edge.rows.after(lanes), edge.cols.after(lanes), taken(edge.value, lanes))
        value = product(taken(adjoint, edge.rows), edge.value)
        type = j.type
        is_whole = edge.cols.is_identity
        given = reshaped(value, type.shape) if is_whole else self._put(value, edge.cols, type)
        old = adjoints.get(j)
        adjoints[j] = given if old is None else total(old, given, type.shape, type.dtype)
        # Where an adjoint is zero for certain, a second derivative that is infinite must not meet it.
        covered = None
        if not is_whole:
            covered = np.zeros(type.size, bool)
            covered[edge.cols.table().reshape(-1)] = True
        if old is None:
            if covered is not None and not covered.all():
                support[j] = covered
        elif j in support:
            merged = None if covered is None else support[j] | covered
            if merged is None or merged.all():
                del support[j]
            else:
                support[j] = merged

    def _put(self, value: Masked, cols: IndexMap, type: ArrayType) -> Masked:
        if value.mask is None and not isinstance(value.value, Tracer):
            return Masked(put(type, value.value, cols))
        values = traced(self.builder, value, cols.shape, type.dtype)
        summed = Masked(reshape(put(type.size, values, cols), shape=type.shape))
        if value.mask is None:
            return summed
        chosen = put(type.size, convert(value.mask, dtype=np.dtype(np.int32)), cols)
        return summed._replace(mask=reshape(ne(chosen, full_like(chosen, 0)), shape=type.shape))

    def _curve(self, curved: Curved, k: Node, adjoint: Masked, support: Any) -> None:
        """Add the products of an equation: its second partial derivatives times the adjoint of its result."""
        eqn, operands, _ = curved
        if isinstance(eqn.primitive, OnElements):
            second = second_partials(eqn, [x.is_active for x in operands])
            lanes = IndexMap.identity(k.type.shape)
            if support is not None:
                lanes = IndexMap.of(np.flatnonzero(support), k.type.size)
            for (p, q), partial in zip(second.wrt, self.graph.partial_values(second.program, operands), strict=True):
                value = product(adjoint, partial)
                if support is not None:
                    value = taken(value, lanes)
                self.add(operands[p], operands[q], lanes, lanes, value, is_square=p == q)
        elif (lanes_of_product := product_lanes(curved)) is not None:
            left, right = lanes_of_product
            x, y, *_ = operands
            self.add(x, y, left.cols, right.cols, taken(adjoint, left.rows))
        else:
            self._curve_as_whole(curved, k, adjoint)

    def _curve_as_whole(self, curved: Curved, k: Node, adjoint: Masked) -> None:
        """Add the products of an equation by the Jacobian of its pullback, which is symmetric."""
        eqn, operands, results = curved
        active = tuple([x.is_active for x in operands])
        both = with_pullback(alone(eqn), active, f"pullback({eqn.primitive.name})")
        cotangents = [
            traced(self.builder, adjoint if x is k else Masked(0.0), x.type.shape, x.type.dtype)
            for x, is_active in zip(results, both.out_active, strict=True)
            if is_active
        ]
        graph = Graph(
            both.program,
            (*active, *(False for _ in cotangents)),
            [*(x.value for x in operands), *cotangents],
            self.builder,
            held,
            local_pieces,
        )
        outputs = graph.outputs[len(results) :]
        Elimination(graph, outputs).run("reverse")
        moved = [x for x in operands if x.is_active]
        with_cotangent = [x for x, has_one in zip(moved, both.in_active, strict=True) if has_one]
        for i, output in zip(with_cotangent, outputs, strict=True):
            for j, given in zip(moved, graph.inputs, strict=True):
                for edge in graph.ins.get(output, {}).get(given, ()):
                    if i is j:
                        self._add_symmetric(i, edge)
                    elif i.order > j.order:
                        self.add(i, j, *edge)

    def _add_symmetric(self, i: Node, edge: Edge) -> None:
        """Add half of the quadratic form of a symmetric matrix in the tangents of one node."""
        if edge.rows is edge.cols:
            self.add(i, i, *edge, is_square=True)
        else:
            self.add(i, i, edge.rows, edge.cols, product(Masked(0.5), edge.value))

    # The form itself

    def add(self, i: Node, j: Node, rows: IndexMap, cols: IndexMap, value: Masked, is_square: bool = False) -> None:
        """Add products of tangents, or halves of squares."""
        if value.is_number_equal_to(0.0) or not rows.size:
            return
        if i.order < j.order:
            i, j, rows, cols = j, i, cols, rows
        if i is j and rows is cols and not is_square:
            value = product(Masked(2.0), value)
        if i is j and where_lower(rows, cols) is False:
            rows, cols = cols, rows
        entries = self.parts.setdefault(i, {}).setdefault(j, [])
        self.near.setdefault(i, {})[j] = None
        self.near.setdefault(j, {})[i] = None
        for place, other in enumerate(entries):
            if other.rows is rows and other.cols is cols:
                value = total(other.value, value, rows.shape, i.type.dtype)
                entries[place] = Edge(rows, cols, value)
                return
        entries.append(Edge(rows, cols, value))

    def cost(self, j: Node) -> float:
        found = super().cost(j)
        edges = [edge for edges in self.ins[j].values() for edge in edges]
        for m in self.near.get(j, ()):
            for entry in self._entries(j, m):
                halves = [product_size(entry, edge, j.type.size) for edge in edges]
                found += sum(n * (price(entry.value, e.value) + 0.3) for n, e in zip(halves, edges, strict=True))
                if m is j:
                    is_square = entry.rows is entry.cols
                    found += sum(
                        n * other.rows.size / j.type.size * (price(entry.value, other.value) + 0.3)
                        for p, n in enumerate(halves)
                        for other in edges[p if is_square else 0 :]
                    )
        return found

    def neighbours(self, j: Node) -> list[Node]:
        return [*dict.fromkeys([*super().neighbours(j), *self.near.get(j, ())])]

    def _entries(self, k: Node, m: Node) -> list[Edge]:
        """The entries for two nodes, with elements of `m` as rows and elements of `k` as columns."""
        if m.order >= k.order:
            return self.parts.get(m, {}).get(k, [])
        return [Edge(e.cols, e.rows, e.value) for e in self.parts.get(k, {}).get(m, [])]

    def remove(self, j: Node) -> None:
        self._substitute(j)
        super().remove(j)

    def _substitute(self, k: Node) -> None:
        """Put what the tangent of a node is made of in its place."""
        found = {m: self._entries(k, m) for m in self.near.pop(k, ())}
        self.parts.pop(k, None)
        for m in found:
            if m is not k:
                del self.near[m][k]
                if k in self.parts.get(m, {}):
                    del self.parts[m][k]
        for m, entries in found.items():
            squares = [e for e in entries if m is k and e.rows is e.cols]
            products = self._merged([e for e in entries if m is not k or e.rows is not e.cols])
            for entry in [*self._merged(squares), *products]:
                if m is not k:
                    for j, edges in self.ins[k].items():
                        for edge in edges:
                            made = joined(entry, edge, self.budget)
                            if made is not None:
                                self.add(j, m, made.cols, made.rows, made.value)
                elif entry.rows is entry.cols:
                    self._substitute_square(k, entry)
                else:
                    self._substitute_product(k, entry)

    def _merged(self, entries: list[Edge]) -> list[Edge]:
        """The entries, those of the same elements added up."""
        if any(e.value.mask is not None for e in entries):
            return entries
        dtype = np.result_type(*(x.type.dtype for x in self.graph.inputs))
        if len(entries) == 1 and (entries[0].rows.is_injective or entries[0].cols.is_injective):
            return entries
        if are_apart([places(e.rows, e.cols) for e in entries]):
            return entries
        blocks = united([block_of(self.builder, e.rows, e.cols, e.value, dtype) for e in entries])
        if any(b.rows is b.cols for b in blocks) and not all(e.rows is e.cols for e in entries):
            # Products that are all squares would be taken for halves of squares.
            return entries
        return [Edge(b.rows, b.cols, Masked(b.value)) for b in blocks]

    def _substitute_square(self, k: Node, entry: Edge) -> None:
        """Put in what the tangents of elements are made of, of which the form has half of the squares."""
        edges = [(j, edge) for j, edges in self.ins[k].items() for edge in edges]
        for p, (i, edge) in enumerate(edges):
            half = self._half_of_square(i, entry, edge)
            if half is None:
                continue
            for j, other in edges[p + 1 :]:
                whole = joined(half, other, self.budget)
                if whole is not None:
                    self.add(i, j, *whole)

    def _half_of_square(self, i: Node, entry: Edge, edge: Edge) -> Edge | None:
        """Add the squares of what comes along an edge; return its products with the tangents that are replaced."""
        if edge.rows.is_injective:
            found = self.budget.matches(entry.rows, edge.rows)
            if found is None:
                return None
            of_entry, of_edge = found
            factor, elements = taken(edge.value, of_edge), edge.cols.after(of_edge)
            once = product(taken(entry.value, of_entry), factor)
            self.add(i, i, elements, elements, product(once, factor), is_square=True)
            return Edge(elements, entry.rows.after(of_entry), once)
        half = joined(entry, edge, self.budget)
        if half is None:
            return None
        whole = joined(_turned(half), edge, self.budget)
        if whole is not None:
            self._add_symmetric(i, whole)
        return _turned(half)

    def _substitute_product(self, k: Node, entry: Edge) -> None:
        """Put in what the tangents of two elements of one node are made of."""
        edges = [(j, edge) for j, edges in self.ins[k].items() for edge in edges]
        for i, edge in edges:
            half = joined(_turned(entry), edge, self.budget)
            if half is None:
                continue
            for j, other in edges:
                whole = joined(_turned(half), other, self.budget)
                if whole is not None:
                    self.add(i, j, *whole)

    # The result

    def entries(self, lower: bool) -> tuple[Any, Any, Tracer]:
        """The rows, columns and values of the Hessian."""
        inputs = self.graph.inputs
        size = sum(x.type.size for x in inputs)
        dtype = np.result_type(*(x.type.dtype for x in inputs))
        start = dict(zip(inputs, np.cumsum([0, *(x.type.size for x in inputs)])[:-1].tolist(), strict=True))
        below: list[Block] = []
        mixed: list[Block] = []
        for i in inputs:
            for j in inputs:
                for entry in self.parts.get(i, {}).get(j, ()):
                    rows, cols = entry.rows.shifted(start[i], size), entry.cols.shifted(start[j], size)
                    is_below = rows is cols or where_lower(cols, rows) is False
                    block = block_of(self.builder, rows, cols, entry.value, dtype)
                    (below if is_below else mixed).append(block)
        below = united(below)
        blocks = below if lower else [*below, *map(_turned_block, map(_off_diagonal, below))]
        if mixed:
            both = united([*mixed, *map(_turned_block, mixed)])
            blocks = united([*blocks, *(map(_lower, both) if lower else both)])
        return entries_of([b for b in blocks if b.rows.size], dtype)


def _off_diagonal(block: Block) -> Block:
    """The part of a block that is not on the diagonal, given one without a part above it."""
    on_diagonal = where_equal(block.rows, block.cols)
    return block if on_diagonal is False else _chosen(block, np.logical_not(on_diagonal))


def _lower(block: Block) -> Block:
    """The part of a block that is not above the diagonal."""
    is_lower = where_lower(block.rows, block.cols)
    return block if is_lower is True else _chosen(block, is_lower)


def _chosen(block: Block, lanes: Any) -> Block:
    return block.at(IndexMap.of(np.flatnonzero(np.broadcast_to(lanes, block.rows.shape)), block.rows.size))


def _turned_block(block: Block) -> Block:
    return block._replace(rows=block.cols, cols=block.rows)


def _turned(edge: Edge) -> Edge:
    return Edge(edge.cols, edge.rows, edge.value)
