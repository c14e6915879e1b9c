"""Orders in which a greedy colouring takes the vertices of a graph: the earlier ones have the free choice."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

Order = Literal["natural", "largest_first", "smallest_last", "incidence_degree", "dynamic_largest_first", "random"]
ORDERS: tuple[str, ...] = get_args(Order)

# With more pairs of entries in a row than this, the graph of the columns is not written out.
_MOST_PAIRS = 20_000_000


def order_of_columns(pattern: Any, order: Order, seed: int | None = None) -> list[int]:
    """The columns of a sparse pattern, ordered by the graph in which columns with an entry in one row are neighbours.

    Where a few full rows make nearly all columns neighbours, that graph is too large; then the column with the most
    neighbours comes first, each counted once for every row in common, whichever order by degrees is asked for.
    """
    if order in ("natural", "random"):
        return _without_degrees(pattern.shape[1], order, seed)
    in_row = np.diff(pattern.indptr).astype(np.int64)
    if int((in_row * in_row).sum()) > _MOST_PAIRS:
        degrees = np.bincount(pattern.indices, np.repeat(in_row, in_row), pattern.shape[1])
        return _list(np.argsort(-degrees, kind="stable"))
    ones = pattern.astype(np.int32)
    return order_of_vertices(without_diagonal(ones.T.tocsr() @ ones), order, seed)


def order_of_vertices(graph: Any, order: Order, seed: int | None = None) -> list[int]:
    """The vertices of a graph, given as a symmetric CSR array without a diagonal.

    Args:
        graph: the graph; only its pattern matters.
        order: "natural" is 0, 1, 2, ...; "largest_first" by falling degree; "smallest_last" leaves to the end, again
            and again, a vertex of smallest degree among those that remain; "dynamic_largest_first" takes one of largest
            degree among those that remain; "incidence_degree" one with most neighbours among those taken already;
            "random" is a permutation made from the seed.
        seed: an integer for "random".
    """
    count = graph.shape[0]
    if order in ("natural", "random"):
        return _without_degrees(count, order, seed)
    degrees = np.diff(graph.indptr)
    if order == "largest_first":
        return _list(np.argsort(-degrees, kind="stable"))
    most = int(degrees.max(initial=0))
    starts, neighbours = graph.indptr.tolist(), graph.indices.tolist()
    if order == "incidence_degree":
        return _by_changing_degree(starts, neighbours, [0] * count, most, change=1, takes_most=True)
    takes_most = order == "dynamic_largest_first"
    found = _by_changing_degree(starts, neighbours, degrees.tolist(), most, change=-1, takes_most=takes_most)
    return found if takes_most else found[::-1]


def without_diagonal(square: Any) -> Any:
    """The entries of a square sparse array that are not on its diagonal, as a CSR array."""
    entries = square.tocoo()
    rows, cols = entries.coords
    return _pattern(rows[rows != cols], cols[rows != cols], square.shape)


def _pattern(rows: Any, cols: Any, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(rows), np.bool_), (rows, cols)), shape)


def _without_degrees(count: int, order: Order, seed: int | None) -> list[int]:
    return _list(np.random.default_rng(seed or 0).permutation(count) if order == "random" else np.arange(count))


def _list(order: Any) -> list[int]:
    found: list[int] = order.tolist()
    return found


def _by_changing_degree(
    starts: list[int], neighbours: list[int], degrees: list[int], most: int, change: int, takes_most: bool
) -> list[int]:
    """Take vertices by their degrees, where each that is taken changes the degrees of its neighbours.

    Vertices wait in a list for each degree.  One whose degree changes is put into another list and left in the old one,
    too, where it is passed over.
    """
    waiting: list[list[int]] = [[] for _ in range(most + 1)]
    for v in reversed(range(len(degrees))):
        waiting[degrees[v]].append(v)
    step = -1 if takes_most else 1
    level = most if takes_most else 0
    taken: list[int] = []
    while len(taken) < len(degrees):
        if not waiting[level]:
            level += step
            continue
        v = waiting[level].pop()
        if degrees[v] != level:
            continue
        degrees[v] = -1
        taken.append(v)
        for w in neighbours[starts[v] : starts[v + 1]]:
            degree = degrees[w]
            if degree >= 0:
                degrees[w] = degree = degree + change
                waiting[degree].append(w)
        # The neighbours may have come to the next level on the side that has been passed.
        if change == -step and 0 <= level - step <= most:
            level -= step
    return taken
