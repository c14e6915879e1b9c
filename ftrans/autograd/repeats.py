"""Ways back that repeat: backward passes through graphs whose equal has been seen before, without the bookkeeping.

Steps of a training loop record equal graphs: the same operations on the same types, at the same lines, linked in the
same way.  Which node comes next, where its cotangents go and which of them are added up follow from that, and are in
the tables of a `Way`.  The nodes do the same in the same order as in any backward pass, so results are the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from ..base.observe import current_observer
from ..base.source import Line, at_line, attribute
from .derivation import Pull
from .graph import Node
from .operation_node import OperationNode
from .tensor import Tensor

_MOST_ROOTS, _MOST_WAYS, _MOST_STOPS, _MOST_STOPS_IN_ALL = 256, 4, 20_000, 100_000

# What is done with a cotangent: it is the first one at its place, added to the array that is there, or added to it in
# a new array.
_FIRST, _INTO, _ANEW = range(3)


class _Sign(NamedTuple):
    """How a node is recognised.

    Attributes:
        derivative: the number of its derivative.
        line: the user's line of the operation.
        targets: for each edge the number of the node or leaf that it leads to, and which result of it.
    """

    derivative: int
    line: Line | None
    targets: tuple[tuple[int, int], ...]


class _Stop(NamedTuple):
    """What is done at a node.

    Attributes:
        line: the user's line of the operation.
        place: the place of the cotangent of its first result; those of the others follow.
        result_count: how many results it has.
        given: for each edge the place where its cotangent goes, and how.
    """

    line: Line | None
    place: int
    result_count: int
    given: tuple[tuple[int, int], ...]


class Way:
    """The way back through graphs that are equal to the one that it is made of.  It keeps nothing of that graph alive.

    Attributes:
        start: the place of the cotangent that is given.
        signs: how the nodes are recognised, the youngest first.
        stops: what is done at each.
        leaves: the place of the cotangent of each leaf in the order of arrival, and whether it is an array of its own.
        is_proven: whether a graph has been found to be equal.
    """

    def __init__(
        self, start: int, signs: Sequence[_Sign], stops: Sequence[_Stop], leaves: Sequence[tuple[int, bool]]
    ) -> None:
        self.start = start
        self.signs = signs
        self.stops = stops
        self.leaves = leaves
        self.is_proven = False
        self._place_count = sum([stop.result_count for stop in stops]) + len(leaves)

    def nodes_from(self, root: Node) -> list[Any] | None:
        """The nodes behind a root in the order of the stops, then the leaves; None if the graph is another one."""
        count = len(self.signs)
        found: list[Any] = [None] * (count + len(self.leaves))
        found[0] = root
        for node, (derivative, line, targets) in zip(found, self.signs, strict=False):
            # A leaf in its place is no node.
            if type(node) is not OperationNode or node.line is not line or node.hooks is not None:
                return None
            if node.derivative.number != derivative:
                return None
            for (target, output), (number, index) in zip(node.edges, targets):  # noqa: B905 - equal by derivative
                known = found[number]
                if known is None:
                    found[number] = target
                elif known is not target:
                    return None
                if output != index:
                    return None
        orders = [node.order for node in found[:count]]
        is_same = (
            orders == sorted(orders, reverse=True)
            and len(set(map(id, found))) == len(found)
            and all([type(x) is Tensor for x in found[count:]])
        )
        return found if is_same else None

    def go(self, found: Sequence[Any], cotangent: Any, releases: bool, outer: Line | None) -> dict[int, Any]:
        """Carry a cotangent back.

        Args:
            found: the nodes and leaves.
            cotangent: where to start with.
            releases: whether nodes release what they keep.
            outer: the line that the backward pass is attributed to.

        Returns:
            The leaves by `id`, each with the sum of its cotangents and whether that is an array of its own.
        """
        sums: list[Any] = [None] * self._place_count
        sums[self.start] = cotangent
        last = None
        node = root = found[0]
        try:
            for node, (line, place, result_count, given) in zip(found, self.stops, strict=False):
                if line is not last:
                    last = line
                    attribute(line or outer)
                if result_count == 1:
                    kept, derivative = node.kept, node.derivative
                    if kept is None or node.watched:
                        kept = node.checked(derivative.uses_arguments)
                    pull = derivative.only
                    if pull.takes_all:
                        outs = pull.function(*kept, sums[place])
                    else:
                        outs = pull.function(*[kept[i] for i in pull.takes], sums[place])
                    sums[place] = None
                else:
                    outs, _ = node.pull(sums[place : place + result_count], None)
                    sums[place : place + result_count] = [None] * result_count
                if releases and (node.kept or node is root):
                    node.kept, node.watched = None, ()
                for ct, (at, how) in zip(outs, given):  # noqa: B905 - a way has all of them
                    if how == _FIRST:
                        sums[at] = ct
                    elif how == _INTO and type(sums[at]) is np.ndarray:
                        sums[at] += ct
                    else:
                        sums[at] = sums[at] + ct
        except np.linalg.LinAlgError as error:
            error.add_note(f"  in the backward pass through {node!r}{at_line(last)}")
            raise
        attribute(outer)
        leaves = found[len(self.stops) :]
        return {id(x): (x, [sums[at], fresh]) for x, (at, fresh) in zip(leaves, self.leaves, strict=True)}


def way_from(root: Node, output: int) -> Way | None:
    """The way back through the graph behind a result of a node; None where nodes have to be asked each time."""
    visits = _visits(root, output)
    if visits is None:
        return None
    numbers: dict[int, int] = {}
    places: list[int] = []
    place = 0
    for node, _ in visits:
        numbers[id(node)] = len(places)
        places.append(place)
        place += node.result_count
    fresh: dict[int, bool] = {places[0] + output: False}
    signs: list[_Sign] = []
    stops: list[_Stop] = []
    leaves: list[int] = []
    for node, pull in visits:
        targets: list[tuple[int, int]] = []
        given: list[tuple[int, int]] = []
        for (target, index), is_fresh in zip(node.edges, pull.is_fresh, strict=True):
            if id(target) not in numbers:
                numbers[id(target)] = len(places)
                places.append(place)
                leaves.append(place)
                place += 1
            number = numbers[id(target)]
            at = places[number] + index
            if at not in fresh:
                how, fresh[at] = _FIRST, is_fresh
            else:
                how, fresh[at] = _INTO if fresh[at] and _has_axes(target, index) else _ANEW, True
            targets.append((number, index))
            given.append((at, how))
        signs.append(_Sign(node.derivative.number, node.line, tuple(targets)))
        stops.append(_Stop(node.line, places[numbers[id(node)]], node.result_count, tuple(given)))
    return Way(output, signs, stops, [(at, fresh[at]) for at in leaves])


def _visits(root: Node, output: int) -> list[tuple[OperationNode, Pull]] | None:
    """The nodes that a backward pass visits, each with how it goes back; None if that is not known beforehand."""
    waiting: dict[Node, list[bool]] = {root: [index == output for index in range(root.result_count)]}
    heap = [(-root.order, root)]
    found: list[tuple[OperationNode, Pull]] = []
    while heap:
        node = heappop(heap)[1]
        if type(node) is not OperationNode or len(found) == _MOST_STOPS:
            return None
        pull = node.derivative.pull_of(waiting.pop(node))
        if False in pull.in_active:
            return None
        if pull.function is None:
            pull.compiled()
        found.append((node, pull))
        for target, index in node.edges:
            if isinstance(target, Node):
                if target not in waiting:
                    waiting[target] = [False] * target.result_count
                    heappush(heap, (-target.order, target))
                waiting[target][index] = True
    return found


def _has_axes(target: Any, index: int) -> bool:
    type = target.derivative.out_types[index] if isinstance(target, OperationNode) else target.array_type
    return bool(type.ndim)


class _Root:
    """What is known of the backward passes from one operation at one line."""

    __slots__ = ("misses", "ways")

    def __init__(self) -> None:
        self.misses = 0
        self.ways: list[Way] = []


_roots: dict[tuple[int, Line | None, int], _Root] = {}


def repeated(root: Any, output: int) -> tuple[Way, list[Any]] | None:
    """The way back from a result of a node, with the nodes and leaves, if its graph is equal to one seen before.

    A way is made of the second graph that is not known, the fourth, the eighth and so on: graphs that are never the
    same cost little.
    """
    if type(root) is not OperationNode or current_observer() is not None:
        return None
    key = (root.derivative.number, root.line, output)
    known = _roots.get(key)
    if known is None:
        if len(_roots) >= _MOST_ROOTS:
            _roots.clear()
        _roots[key] = known = _Root()
    for way in known.ways:
        found = way.nodes_from(root)
        if found is not None:
            known.misses = 1
            way.is_proven = True
            return way, found
    known.misses += 1
    if known.misses & (known.misses - 1) == 0 and known.misses > 1:
        made = way_from(root, output)
        if made is not None:
            # Graphs that are never the same are compared with one only.
            known.ways = [made, *[way for way in known.ways if way.is_proven][: _MOST_WAYS - 1]]
            if sum([len(way.stops) for root in list(_roots.values()) for way in root.ways]) > _MOST_STOPS_IN_ALL:
                _roots.clear()
    return None
