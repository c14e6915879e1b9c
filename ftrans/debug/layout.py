"""Layered layout: where the boxes of a graph stand, and how the lines between them run.

The steps are those of Sugiyama, Tagawa and Toda (Methods for visual understanding of hierarchical system structures,
1981), with ranks and coordinates as Gansner, Koutsofios, North and Vo define them (A technique for drawing directed
graphs, 1993): as solutions of linear programs, which SciPy solves.

    1. Ranks: every line leads to a lower row, and the lines are as short as possible.
    2. A line that passes a row gets a place there.  Lines of one value share their way up to where they part.
    3. Order within each row: by the mean position of the neighbours, sweep after sweep, keeping the best.
    4. Coordinates: lines are as straight as the sizes of the boxes allow.

There are up to two columns.  What stands in the left one flows down, what stands in the right one flows up, and lines
from left to right run in a gutter between them: this is how a program and its reverse lie beside each other.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Point = tuple[float, float]

LEFT, GUTTER, RIGHT = 0, 1, 2

_SIDE_GAP = 18.0
_LINE_WIDTH = 8.0
_ROW_GAP = 26.0
_MOST_ROW_GAP = 80.0
_GUTTER_GAP = 14.0
_PORT_STEP = 16.0
_SWEEPS = 16
# Swapping neighbours pays off in drawings that a person can take in, and is slow in larger ones.
_MOST_SWAPPED = 600
# What a line costs beyond the part that it shares, for each row.
_BRANCH_COST = 0.1
# Long lines are to be straight before short ones.
_STRAIGHT = (1.0, 2.0, 8.0)


class Link(NamedTuple):
    """A line from box `source` to box `target`; the lines of one `net` leave the source as one."""

    source: int
    target: int
    net: Hashable


class Port(NamedTuple):
    """Where a line meets a box: at its upper or lower side, leaving it or coming from another box."""

    box: int
    at_bottom: bool
    net: Hashable
    source: int | None


class Segment(NamedTuple):
    """A piece of a line between two neighbouring rows, and where it meets boxes."""

    upper: int
    lower: int
    upper_port: Port | None
    lower_port: Port | None


class Rect(NamedTuple):
    """A rectangle by its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """Where everything is.

    Attributes:
        boxes: one rectangle per box.
        routes: per link, the points of a path of cubic Bezier curves: a start, then three points for each curve.  It
            begins at the source, or where it parts from another line of its net.
        columns: the extent of each column that is there, as (left, right).
        width: width of the whole.
        height: height of the whole.
    """

    boxes: list[Rect]
    routes: list[list[Point]]
    columns: dict[int, tuple[float, float]]
    width: float
    height: float


def layout(sizes: Sequence[tuple[float, float]], links: Sequence[Link], columns: Sequence[int]) -> Layout:
    """Lay out a graph without cycles.

    Args:
        sizes: width and height of each box.
        links: the lines; none leads from right to left.
        columns: LEFT or RIGHT for each box.

    Returns:
        The layout, with its upper left corner at (0, 0).  Time grows about linearly with the lines and the rows that
        they cross: about a second for a thousand equations.
    """
    if not sizes:
        return Layout([], [], {}, 0.0, 0.0)
    rows = _Rows(sizes, links, columns)
    order = _ordered(rows)
    ports = _ports(rows, order)
    x = _coordinates(rows, order, ports)
    return _routed(rows, order, x, ports)


class _Rows:
    """The graph divided into rows: boxes, and places for the lines that pass a row.

    Attributes:
        rank: the row of each item; boxes come first, then places of lines.
        zone: LEFT, GUTTER or RIGHT for each item.
        width: width of each item.
        chains: per link, the items from its source to its target.
        ports: per link, where it meets its source and its target.
        segments: the pieces of all links, once each.
    """

    def __init__(self, sizes: Sequence[tuple[float, float]], links: Sequence[Link], columns: Sequence[int]) -> None:
        self.sizes = sizes
        self.links = links
        self.columns = columns
        self.count = len(sizes)
        self.rank = _ranks(links, columns)
        self.zone = list(columns)
        self.width = [w for w, _ in sizes]
        self.chains: list[list[int]] = []
        places: dict[tuple[Hashable, int, int], int] = {}
        self.ports: list[tuple[Port, Port]] = []
        segments: dict[Segment, None] = {}
        for link in links:
            first, last = self.rank[link.source], self.rank[link.target]
            step = 1 if last > first else -1
            zone = columns[link.source] if columns[link.source] == columns[link.target] else GUTTER
            chain = [link.source]
            for rank in range(first + step, last, step):
                key = (link.net, zone, rank)
                if key not in places:
                    places[key] = len(self.rank)
                    self.rank.append(rank)
                    self.zone.append(zone)
                    self.width.append(_LINE_WIDTH)
                chain.append(places[key])
            chain.append(link.target)
            self.chains.append(chain)
            out = Port(link.source, step > 0, link.net, None)
            into = Port(link.target, step < 0, link.net, link.source)
            self.ports.append((out, into))
            ports = [out, *[None] * (len(chain) - 2), into]
            for i in range(len(chain) - 1):
                # At a place that is no box there is no port.
                a, b = (chain[i], ports[i] if i == 0 else None), (chain[i + 1], ports[i + 1])
                (upper, upper_port), (lower, lower_port) = (a, b) if step > 0 else (b, a)
                segments[Segment(upper, lower, upper_port, lower_port)] = None
        self.segments = list(segments)


def _ranks(links: Sequence[Link], columns: Sequence[int]) -> list[int]:
    """Rows for the boxes, such that the lines are as short as possible; what the lines of one net share counts once."""
    count = len(columns)
    if not links:
        return [0] * count
    rises = np.asarray([columns[k.source] == RIGHT for k in links])
    source, target = np.asarray([(k.source, k.target) for k in links]).T
    upper, lower = np.where(rises, target, source), np.where(rises, source, target)
    # A variable for each net: the row of its furthest end.
    nets: dict[Hashable, int] = {}
    end = np.asarray([nets.setdefault((k.net, columns[k.target]), count + len(nets)) for k in links])
    variables = count + len(nets)
    _, first = np.unique(end, return_index=True)
    cost = _BRANCH_COST * (np.bincount(lower, minlength=variables) - np.bincount(upper, minlength=variables))
    sign = np.where(rises[first], -1.0, 1.0)
    np.add.at(cost, end[first], sign)
    np.subtract.at(cost, source[first], sign)
    # The matrix is totally unimodular, so that the optimum is a vector of integers.
    smaller = np.concatenate([upper, np.where(rises, end, target)])
    larger = np.concatenate([lower, np.where(rises, target, end)])
    matrix = _differences(smaller, larger, variables)
    bound = np.concatenate([-np.ones(len(links)), np.zeros(len(links))])
    ranks = np.rint(_solve(cost, matrix, bound)[:count]).astype(int)
    return [int(r) for r in ranks - ranks.min()]


def _differences(plus: Any, minus: Any, count: int) -> Any:
    """The sparse matrix whose rows are `x[plus] - x[minus]`."""
    from scipy.sparse import csr_array

    rows = np.arange(len(plus))
    values = np.repeat([1.0, -1.0], len(plus))
    index = (np.concatenate([rows, rows]), np.concatenate([plus, minus]))
    return csr_array((values, index), shape=(len(plus), count))


def _solve(cost: Any, matrix: Any, bound: Any) -> Any:
    """The minimum of `cost @ x` where `matrix @ x <= bound` and `x >= 0`."""
    from scipy.optimize import linprog

    result = linprog(cost, A_ub=matrix, b_ub=bound, method="highs")
    assert result.success, result.message
    return result.x


# Order within rows


def _ordered(rows: _Rows) -> list[list[int]]:
    """The items of each row from left to right, with few crossings."""
    above: list[list[int]] = [[] for _ in rows.rank]
    below: list[list[int]] = [[] for _ in rows.rank]
    for segment in rows.segments:
        below[segment.upper].append(segment.lower)
        above[segment.lower].append(segment.upper)
    order: list[list[int]] = [[] for _ in range(max(rows.rank) + 1)]
    for item, rank in enumerate(rows.rank):
        order[rank].append(item)
    for row in order:
        row.sort(key=lambda item: rows.zone[item])
    best, fewest = order, _crossings(order, below)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        order = [list(row) for row in order]
        downwards = sweep % 2 == 0
        position = {item: i for row in order for i, item in enumerate(row)}
        for row in order if downwards else reversed(order):
            _sort_row(row, rows.zone, above if downwards else below, position)
        if len(rows.rank) <= _MOST_SWAPPED:
            _swap_neighbours(order, rows.zone, above, below)
        crossings = _crossings(order, below)
        if crossings < fewest:
            best, fewest = order, crossings
    return best


def _sort_row(row: list[int], zone: Sequence[int], neighbours: list[list[int]], position: dict[int, int]) -> None:
    """Sort a row by the mean position of its items' neighbours; an item without any stays about where it is."""
    mean = {}
    for item in row:
        near = neighbours[item]
        mean[item] = sum(position[n] for n in near) / len(near) if near else float(position[item])
    row.sort(key=lambda item: (zone[item], mean[item]))
    position.update((item, i) for i, item in enumerate(row))


def _swap_neighbours(
    order: list[list[int]], zone: Sequence[int], above: list[list[int]], below: list[list[int]]
) -> None:
    """Swap items that stand side by side wherever that removes crossings."""
    position = {item: i for row in order for i, item in enumerate(row)}

    def crossings(left: int, right: int) -> int:
        return sum(position[a] > position[b] for near in (above, below) for a in near[left] for b in near[right])

    for _ in range(4):
        improved = False
        for row in order:
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                if zone[a] == zone[b] and crossings(b, a) < crossings(a, b):
                    row[i], row[i + 1] = b, a
                    position[a], position[b] = i + 1, i
                    improved = True
        if not improved:
            return


def _crossings(order: list[list[int]], below: list[list[int]]) -> int:
    """How many pairs of segments cross."""
    total = 0
    for row, following in pairwise(order):
        position = {item: i for i, item in enumerate(following)}
        seen: list[int] = []
        for item in row:
            ends = sorted(position[n] for n in below[item])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _ports(rows: _Rows, order: list[list[int]]) -> dict[Port, float]:
    """Where each line meets its box, from the middle of the box; lines stand in the order in which they come."""
    position = {item: i / len(row) for row in order for i, item in enumerate(row)}
    sides: dict[tuple[int, bool], dict[Port, list[float]]] = {}
    for chain, (out, into) in zip(rows.chains, rows.ports, strict=True):
        for port, neighbour in ((out, chain[1]), (into, chain[-2])):
            side = sides.setdefault((port.box, port.at_bottom), {})
            side.setdefault(port, []).append(position[neighbour])
    ports = {}
    for (box, _), lines in sides.items():
        step = min(_PORT_STEP, 0.8 * rows.width[box] / len(lines))
        inorder = sorted(lines, key=lambda port: sum(lines[port]) / len(lines[port]))
        ports.update({port: (i - (len(lines) - 1) / 2) * step for i, port in enumerate(inorder)})
    return ports


# Coordinates


def _coordinates(rows: _Rows, order: list[list[int]], ports: dict[Port, float]) -> Any:
    """The middle of each item, such that nothing overlaps and lines are straight, long ones above all."""
    from scipy.sparse import block_array, csr_array, eye_array

    items = len(rows.rank)
    segments = np.asarray([(s.upper, s.lower) for s in rows.segments]).reshape(-1, 2)
    shift = np.asarray([_offset(ports, s.lower_port) - _offset(ports, s.upper_port) for s in rows.segments])
    # Two further variables: where the left column ends, and where the right one begins.
    end, begin = items, items + 1
    smaller: list[int] = []
    larger: list[int] = []
    distance: list[float] = []

    def apart(left: int, right: int, least: float) -> None:
        smaller.append(left)
        larger.append(right)
        distance.append(least)

    for row in order:
        for left, right in pairwise(row):
            is_line = (left >= rows.count) + (right >= rows.count)
            gap = _SIDE_GAP / (1 + is_line)
            apart(left, right, (rows.width[left] + rows.width[right]) / 2 + gap)
    for item, zone in enumerate(rows.zone):
        half = rows.width[item] / 2
        if zone == LEFT:
            apart(item, end, half)
        elif zone == RIGHT:
            apart(begin, item, half)
        else:
            apart(end, item, half + _GUTTER_GAP)
            apart(item, begin, half + _GUTTER_GAP)
    apart(end, begin, 3 * _GUTTER_GAP)
    separation = _differences(np.asarray(smaller), np.asarray(larger), items + 2)
    bend = _differences(segments[:, 0], segments[:, 1], items + 2)
    identity = eye_array(len(segments))
    matrix = block_array(
        [[separation, csr_array((len(distance), len(segments)))], [bend, -identity], [-bend, -identity]], format="csr"
    )
    bound = np.concatenate([-np.asarray(distance), shift, -shift])
    weight = np.asarray(_STRAIGHT)[(segments >= rows.count).sum(axis=1)]
    cost = np.zeros(items + 2 + len(segments))
    cost[items + 2 :] = weight
    # The gutter is no wider than it has to be, nor are rows that no line ties to the others.
    cost[begin], cost[end] = 1.0, -0.9
    cost[:items] += 1e-3
    x = _solve(cost, matrix, bound)[:items]
    return x - min(x[i] - rows.width[i] / 2 for i in range(items))


def _offset(ports: dict[Port, float], port: Port | None) -> float:
    return 0.0 if port is None else ports[port]


# Lines


def _routed(rows: _Rows, order: list[list[int]], x: Any, ports: dict[Port, float]) -> Layout:
    """Rows from top to bottom, far enough apart for their lines, and the paths of the lines."""
    heights = [max([rows.sizes[i][1] for i in row if i < rows.count], default=0.0) for row in order]
    reach = np.zeros(len(order))
    for upper, lower, *_ in rows.segments:
        reach[rows.rank[upper]] = max(reach[rows.rank[upper]], abs(x[upper] - x[lower]))
    tops: list[float] = []
    y = 0.0
    for height, span in zip(heights, reach, strict=True):
        tops.append(y)
        y += height + min(_MOST_ROW_GAP, _ROW_GAP + 0.06 * float(span))
    boxes = [
        Rect(x[i] - w / 2, tops[rows.rank[i]] + (heights[rows.rank[i]] - h) / 2, w, h)
        for i, (w, h) in enumerate(rows.sizes)
    ]
    routes = []
    drawn: set[int | Port] = set()
    for chain, (out, into) in zip(rows.chains, rows.ports, strict=True):
        down = out.at_bottom
        near = [tops[rows.rank[i]] + (0.0 if down else heights[rows.rank[i]]) for i in chain]
        far = [tops[rows.rank[i]] + (heights[rows.rank[i]] if down else 0.0) for i in chain]
        finish = boxes[into.box]
        at = [x[out.box] + ports[out], *(x[i] for i in chain[1:-1]), x[into.box] + ports[into]]
        # Where an earlier line of the net went too, this one begins where they part.
        begin = max((i for i, item in enumerate(chain[:-1]) if (item if i else out) in drawn), default=-1)
        drawn.update((out, *chain[1:-1]))
        if begin < 0:
            start = boxes[out.box]
            points: list[Point] = [(at[0], start.y + start.height if down else start.y)]
            _line_to(points, (at[0], far[0]))
        else:
            points = [(at[begin], far[begin])]
        for i in range(max(begin, 0) + 1, len(chain) - 1):
            _curve_to(points, (at[i], near[i]))
            _line_to(points, (at[i], far[i]))
        _curve_to(points, (at[-1], near[-1]))
        _line_to(points, (at[-1], finish.y if down else finish.y + finish.height))
        routes.append(points)
    columns = {
        column: (
            float(min(x[i] - rows.width[i] / 2 for i in members)),
            float(max(x[i] + rows.width[i] / 2 for i in members)),
        )
        for column in (LEFT, RIGHT)
        if (members := [i for i, zone in enumerate(rows.zone) if zone == column])
    }
    width = max(x[i] + rows.width[i] / 2 for i in range(len(x)))
    return Layout(boxes, routes, columns, float(width), tops[-1] + heights[-1])


def _line_to(points: list[Point], end: Point) -> None:
    if len(points) > 3 and points[-3] == points[-4] and points[-4][0] == end[0]:
        points[-2:] = [end, end]
    elif abs(points[-1][1] - end[1]) > 1e-9:
        points += [points[-1], end, end]


def _curve_to(points: list[Point], end: Point) -> None:
    """A curve that leaves and arrives upright, and so stays between two rows."""
    x, middle = points[-1][0], (points[-1][1] + end[1]) / 2
    if abs(x - end[0]) < 1e-6:
        _line_to(points, (x, end[1]))
    else:
        points += [(x, middle), (end[0], middle), end]
