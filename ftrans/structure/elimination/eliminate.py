"""Jacobians by elimination: nodes of the graph are removed one by one, until edges lead from inputs to outputs.

Removing a node joins each edge to it with each edge from it.  The order decides how much is computed: from the inputs
it is forward mode, from the outputs reverse mode.  The greedy order takes the node whose products cost least (Markowitz
1957; Griewank and Reese 1991, "On the calculation of Jacobian matrices by the Markowitz rule").
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

from ...base.index_map import IndexMap, count_matches, matches
from ...base.source import attributed_to
from ...core.primitive import MissingRule
from ...core.program import Program
from ...core.trace import Builder, building
from ...run.costs import program_cost
from ...transforms.simplify import simplify
from ..entries import Entries, NotStructured
from ..graph.arithmetic import Masked, product, taken
from ..graph.graph import Edge, Graph, Node, lifted
from ..patterns.detect import local_pieces
from .assemble import assembled
from .contraction import contracted
from .holders import held_results

# How many edges elimination may make, lanes of them that are computed, and lanes whose elements are listed in tables:
# so many, and so many more for each edge or lane that it begins with.
_EDGES_AT_FIRST, _EDGES_FOR_EACH = 500, 8
_LANES_AT_FIRST, _LANES_FOR_EACH = 30_000_000, 100
_LISTED_AT_FIRST, _LISTED_FOR_EACH = 3_000_000, 20
# An order is given up that makes so many times the edges of another one.
_WORTH_TRYING = 1.5
ORDERS = ("greedy", "reverse", "forward")


def jacobian_entries(
    program: Program, active: Sequence[bool], wanted: int, known: Mapping[int, Any], order: str = "auto"
) -> Entries:
    """The entries of the Jacobian of the first `wanted` outputs with respect to the active inputs.

    Args:
        program: the program.
        active: for each input, whether to differentiate with respect to it.
        wanted: the number of outputs that are differentiated.
        known: arrays of other inputs, by position, where they are known.
        order: "greedy", "reverse" or "forward"; "auto" takes the cheapest program.

    Raises:
        NotStructured: a part of the program has no edges, or there are too many.
    """
    orders = ORDERS[:2] if order == "auto" else (order,)
    return cheapest_order(lambda name, most: _jacobian(program, active, wanted, known, name, most), orders)


def cheapest_order(eliminated: Callable[[str, float], tuple[Entries, int]], orders: Sequence[str]) -> Entries:
    """The cheapest of the programs that elimination in several orders makes.

    Args:
        eliminated: takes the order and the most edges that may be made; returns entries and how many were made.
        orders: the orders.  Those after the first are given up where they make many more edges.

    Raises:
        NotStructured: there is none in the first order.
    """
    try:
        best, edges = eliminated(orders[0], inf)
    except MissingRule as error:
        raise NotStructured(str(error)) from None
    for name in orders[1:]:
        try:
            other, _ = eliminated(name, _EDGES_AT_FIRST + _WORTH_TRYING * edges)
        except NotStructured:
            continue
        best = min(best, other, key=lambda entries: program_cost(entries.program).time)
    return best


def _jacobian(
    program: Program, active: Sequence[bool], wanted: int, known: Mapping[int, Any], order: str, most: float
) -> tuple[Entries, int]:
    builder = Builder(program.in_types)
    with building(builder):
        inputs = [known.get(i, x) for i, x in enumerate(builder.inputs())]
        graph = Graph(program, active, inputs, builder, held, local_pieces)
        outputs = graph.outputs[:wanted]
        elimination = Elimination(graph, outputs, most)
        elimination.run(order)
        rows, cols, vector = assembled(builder, graph, outputs)
        values = [lifted(builder, x) for x in graph.outputs]
        made = simplify(builder.finish([*values, vector], f"sparse_jacobian({program.name})"))
    shape = (sum(x.type.size for x in outputs), sum(x.type.size for x in graph.inputs))
    how = ("engine: elimination", f"order: {order}")
    return Entries(made, rows, cols, shape, how), elimination.budget.edges_made


# For equations that hold programs, whose Jacobians are found in the same way.
held = partial(held_results, jacobian_entries)


class Elimination:
    """The nodes and edges that are left.

    Args:
        graph: the graph, whose edges are changed.
        outputs: the nodes that are kept, besides the inputs.
        most: how many edges may be made at most.
    """

    def __init__(self, graph: Graph, outputs: Iterable[Node], most: float = inf) -> None:
        self.graph = graph
        self.ins = graph.ins
        self.kept = dict.fromkeys([*graph.inputs, *outputs])
        self._reachable(outputs)
        self.outs: dict[Node, dict[Node, None]] = {}
        for k, operands in self.ins.items():
            for j in operands:
                self.outs.setdefault(j, {})[k] = None
        edges = [edge for operands in self.ins.values() for edges in operands.values() for edge in edges]
        self.budget = Budget(len(edges), sum(edge.rows.size for edge in edges), most)

    def _reachable(self, outputs: Iterable[Node]) -> None:
        """Drop the edges of nodes that no output depends on."""
        found = dict.fromkeys(outputs)
        waiting = [*found]
        while waiting:
            for j in self.ins.get(waiting.pop(), ()):
                if j not in found:
                    found[j] = None
                    waiting.append(j)
        for k in [k for k in self.ins if k not in found]:
            del self.ins[k]

    def nodes(self) -> list[Node]:
        """The nodes to eliminate, in the order of the program."""
        return [k for k in self.ins if k not in self.kept]

    def run(self, order: str) -> None:
        """Eliminate all nodes between the inputs and the outputs."""
        # An output that another output depends on stays; a copy of it takes its part.
        for k in [k for k in self.kept if k in self.ins and self.outs.get(k)]:
            self._copy(k)
        nodes = self.nodes()
        if order != "greedy":
            for j in nodes if order == "forward" else reversed(nodes):
                with attributed_to(j.line):
                    self.remove(j)
            return
        self.greedily(nodes)

    def _copy(self, k: Node) -> None:
        inner = self.graph.node(k.type, None, True, k.line)
        lanes = IndexMap.identity(k.type.shape)
        for m in self.outs.pop(k):
            self.ins[m][inner] = self.ins[m].pop(k)
            self.outs.setdefault(inner, {})[m] = None
        self.ins[inner] = self.ins.pop(k)
        for j in self.ins[inner]:
            del self.outs[j][k]
            self.outs[j][inner] = None
        self.ins[k] = {inner: [Edge(lanes, lanes, Masked(1.0))]}
        self.outs[inner][k] = None

    def greedily(self, nodes: Sequence[Node]) -> None:
        """Eliminate the cheapest node, again and again."""
        cost = {j: self.cost(j) for j in nodes}
        heap = [(c, j.order, j) for j, c in cost.items()]
        heapq.heapify(heap)
        while cost:
            c, _, j = heapq.heappop(heap)
            if cost.get(j) != c:
                continue
            near = self.neighbours(j)
            with attributed_to(j.line):
                self.remove(j)
            del cost[j]
            for m in near:
                if m in cost:
                    cost[m] = self.cost(m)
                    heapq.heappush(heap, (cost[m], m.order, m))

    def neighbours(self, j: Node) -> list[Node]:
        """The nodes whose cost may change when a node is removed."""
        return [*self.ins[j], *self.outs.get(j, ())]

    def cost(self, j: Node) -> float:
        """What the products cost that removing a node makes."""
        found = 0.0
        for k in self.outs.get(j, ()):
            for outer in self.ins[k][j]:
                for i, edges in self.ins.get(j, {}).items():
                    is_there = i in self.ins[k]
                    for inner in edges:
                        size = product_size(outer, inner, j.type.size)
                        found += size * (price(outer.value, inner.value) + (0.4 if is_there else 0.0))
        return found

    def remove(self, j: Node) -> None:
        """Remove a node, and join the edges that lead to it and from it."""
        operands = self.ins.pop(j, {})
        for i in operands:
            del self.outs[i][j]
        for k in self.outs.pop(j, ()):
            for outer in self.ins[k].pop(j):
                for i, edges in operands.items():
                    for inner in edges:
                        self.join(k, j, i, outer, inner)

    def join(self, k: Node, j: Node, i: Node, outer: Edge, inner: Edge) -> None:
        """Add what an edge from `k` to `j` and one from `j` to `i` make together."""
        edge = joined(outer, inner, self.budget)
        if edge is not None:
            self.graph.edge(k, i, *edge)
        if self.ins.get(k, {}).get(i):
            self.outs.setdefault(i, {})[k] = None


def joined(outer: Edge, inner: Edge, budget: Budget) -> Edge | None:
    """The edge that two edges make together, which meet at the same node; None if they have no element in common."""
    if inner.rows.is_identity:
        lanes = outer.cols
        edge = Edge(outer.rows, inner.cols.after(lanes), product(outer.value, taken(inner.value, lanes)))
    elif outer.cols.is_identity:
        lanes = inner.rows
        edge = Edge(outer.rows.after(lanes), inner.cols, product(taken(outer.value, lanes), inner.value))
    else:
        contraction = contracted(outer, inner)
        if contraction is None:
            found = budget.matches(outer.cols, inner.rows)
            if found is None:
                return None
            a, b = found
            value = product(taken(outer.value, a), taken(inner.value, b))
            edge = Edge(outer.rows.after(a), inner.cols.after(b), value)
        else:
            edge = contraction
    budget.spend(edge)
    return edge


class Budget:
    """What an elimination may take before other engines are likely to be better.

    Args:
        edges: the number of edges that it begins with.
        lanes: the number of their lanes.
        most: how many edges may be made at most.

    Attributes:
        edges_made: how many have been made.
    """

    def __init__(self, edges: int, lanes: int, most: float) -> None:
        self.edges_made = 0
        self._edges = min(most, _EDGES_AT_FIRST + _EDGES_FOR_EACH * edges)
        self._lanes = _LANES_AT_FIRST + _LANES_FOR_EACH * lanes
        self._listed = _LISTED_AT_FIRST + _LISTED_FOR_EACH * lanes

    def spend(self, edge: Edge) -> None:
        """Count an edge that was made.

        Raises:
            NotStructured: there have been too many, or too many lanes.
        """
        self.edges_made += 1
        if not edge.value.is_number:
            self._lanes -= edge.rows.size
        if edge.rows.form is None or edge.cols.form is None:
            self._listed -= edge.rows.size
        if self.edges_made > self._edges or min(self._lanes, self._listed) < 0:
            raise NotStructured("elimination makes too many products")

    def matches(self, a: IndexMap, b: IndexMap) -> tuple[IndexMap, IndexMap] | None:
        """The lanes of two maps that meet at one element, as the function of that name finds them.

        Raises:
            NotStructured: there are too many.
        """
        if not (a.is_injective or b.is_injective) and count_matches(a, b) > self._lanes:
            raise NotStructured("elimination makes too many products")
        return matches(a, b)


def product_size(outer: Edge, inner: Edge, size: int) -> float:
    """About how many lanes the product of two edges has that meet at a node of `size` elements."""
    return outer.cols.size * inner.rows.size / size


def price(x: Masked, y: Masked) -> float:
    """What the product of two values costs for each lane, relative to a multiplication."""
    if x.is_number and y.is_number:
        return 0.02
    if x.is_number or y.is_number:
        number = x.value if x.is_number else y.value
        return 0.05 if number == 1 else 0.6
    return 1.0
