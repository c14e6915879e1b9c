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

from ..base.index_map import IndexMap, places, where_lower
from ..base.source import attributed_to
from ..core.program import Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType
from ..ops.elementwise import convert, ne
from ..ops.literals import full_like
from ..ops.shapes import reshape
from ..transforms.differentiate import with_pullback
from ..transforms.simplify import simplify
from .arithmetic import Masked, product, reshaped, taken, total, traced
from .assemble import Block, are_apart, block_of, entries_of, united
from .detect import local_pieces
from .eliminate import Elimination, cheapest_order, held, joined, price
from .emission import put
from .entries import Entries
from .graph import Curved, Edge, Graph, Node, alone, lifted, product_lanes
from .partials import OnElements, second_partials

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
    (cols).  An entry for two elements stands for both of its places in the matrix; one for the square of an element
    stands for half of that square.
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
            found = np.zeros(type.size, type.dtype)
            np.add.at(
                found, cols.table().reshape(-1), np.reshape(value.value, -1) if np.ndim(value.value) else value.value
            )
            return Masked(found.reshape(type.shape))
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
            x, y = operands
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
        """Add entries of a symmetric matrix in the tangents of one node, of which those above the diagonal repeat."""
        rows, cols = edge.rows.table().reshape(-1), edge.cols.table().reshape(-1)
        for chosen, is_square in ((rows > cols, False), (rows == cols, True)):
            if chosen.any():
                lanes = IndexMap.of(np.flatnonzero(chosen), rows.size)
                value = taken(edge.value, lanes)
                self.add(i, i, edge.rows.after(lanes), edge.cols.after(lanes), value, is_square)

    # The form itself

    def add(self, i: Node, j: Node, rows: IndexMap, cols: IndexMap, value: Masked, is_square: bool = False) -> None:
        """Add products of tangents, or halves of squares."""
        if value.is_number_equal_to(0.0) or not rows.size:
            return
        if i.order < j.order:
            i, j, rows, cols = j, i, cols, rows
        if i is j and not is_square:
            same = rows.table() == cols.table()
            if same.all():
                value = product(Masked(2.0), value)
            elif same.any():
                for lanes, factor in ((same, 2.0), (~same, 1.0)):
                    chosen = IndexMap.of(np.flatnonzero(lanes), rows.size)
                    part = product(Masked(factor), taken(value, chosen))
                    self._store(i, j, rows.after(chosen), cols.after(chosen), part)
                return
        self._store(i, j, rows, cols, value)

    def _store(self, i: Node, j: Node, rows: IndexMap, cols: IndexMap, value: Masked) -> None:
        if i is j and rows is not cols:
            above = rows.table() < cols.table()
            if above.all():
                rows, cols = cols, rows
            elif above.any():
                r, c = rows.table(), cols.table()
                rows, cols = IndexMap.of(np.maximum(r, c), rows.space), IndexMap.of(np.minimum(r, c), cols.space)
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
                if m is not j:
                    found += sum(_smaller(entry, e) * (price(entry.value, e.value) + 0.3) for e in edges)
                elif entry.rows is entry.cols:
                    found += sum(_smaller(entry, e) * price(entry.value, e.value) for e in edges)
                    found += sum(
                        min(_smaller(entry, a), _smaller(entry, b)) * (price(entry.value, b.value) + 0.3)
                        for p, a in enumerate(edges)
                        for b in edges[p + 1 :]
                    )
                else:
                    found += sum(
                        min(_smaller(entry, a), _smaller(entry, b)) * (price(entry.value, b.value) + 0.3)
                        for a in edges
                        for b in edges
                    )
        return found

    def neighbours(self, j: Node) -> list[Node]:
        found = dict.fromkeys([*super().neighbours(j), *self.near.get(j, ())])
        for i in self.ins[j]:
            found.update(self.near.get(i, {}))
        return [*found]

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
            for entry in self._merged(entries):
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
        blocks = [block_of(self.builder, e.rows, e.cols, e.value, dtype) for e in entries]
        return [Edge(b.rows, b.cols, Masked(b.value)) for b in united(blocks)]

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
        blocks: list[Block] = []
        for i in inputs:
            for j in inputs:
                for entry in self.parts.get(i, {}).get(j, ()):
                    rows, cols = entry.rows.shifted(start[i], size), entry.cols.shifted(start[j], size)
                    blocks.append(block_of(self.builder, rows, cols, entry.value, dtype))
        blocks = united(blocks)
        if not lower:
            blocks = [*blocks, *(m for b in blocks if (m := _mirrored(b)) is not None)]
        return entries_of(blocks, dtype)


def _mirrored(block: Block) -> Block | None:
    """The part of a block below the diagonal, at its places above."""
    is_above = where_lower(block.cols, block.rows)
    if is_above is True:
        return None
    below = block if is_above is False else block.at(IndexMap.of(np.flatnonzero(~is_above), block.rows.size))
    return below._replace(rows=below.cols, cols=below.rows)


def _turned(edge: Edge) -> Edge:
    return Edge(edge.cols, edge.rows, edge.value)


def _smaller(entry: Edge, edge: Edge) -> int:
    return min(entry.rows.size, edge.rows.size)
