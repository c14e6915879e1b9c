"""Colourings of sparse patterns: which columns, or rows, one product with a sum of unit vectors can serve at once.

Colours are counted from 0; -1 is the colour of what needs no product.  All colourings are greedy: one column after
another takes the first colour that the definition leaves free.  The colours that are in use around a row or column are
the bits of a Python integer, so that a free one is found without looking at each of the neighbours.

Gebremedhin, Manne, Pothen, "What color is your Jacobian?", SIAM Review 47 (2005); Gebremedhin, Tarafdar, Manne, Pothen,
"New acyclic and star coloring algorithms with application to computing Hessians", SIAM J. Sci. Comput. 29 (2007).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .orders import Order, order_of_columns, order_of_vertices, without_diagonal

# How many numbers of full rows are considered, and how many of them tried: those that may save a quarter.
_MOST_SIZES = 64
_MOST_DIVISIONS = 3
_WORTH_TRYING = 0.75


def column_colours(pattern: Any, order: Order = "smallest_last", seed: int | None = None) -> Any:
    """A colour for each column, so that no row has entries in two columns of one colour: each is a product `J @ v`.

    Args:
        pattern: a CSR array; what is stored is an entry.
        order: the order of the columns, see `orders`.
        seed: an integer for the order "random".
    """
    by_column = pattern.T.tocsr()
    starts, rows_of = by_column.indptr.tolist(), by_column.indices.tolist()
    used = [0] * pattern.shape[0]
    colours = np.full(pattern.shape[1], -1, np.int64)
    for j in order_of_columns(pattern, order, seed):
        rows = rows_of[starts[j] : starts[j + 1]]
        if not rows:
            continue
        taken = 0
        for i in rows:
            taken |= used[i]
        free = ~taken & (taken + 1)
        colours[j] = free.bit_length() - 1
        for i in rows:
            used[i] |= free
    return colours


def star_colours(pattern: Any, order: Order = "smallest_last", seed: int | None = None) -> Any:
    """A colour for each column of a symmetric pattern, so that each entry can be read from the products `H @ v`.

    Neighbours have different colours, and no path of four vertices has two colours only.  So all vertices of two
    colours form stars: the entry of an edge is found in the row of the star's leaf.
    """
    graph = without_diagonal(pattern)
    return _for_entries(pattern, _star(graph, order_of_vertices(graph, order, seed)))


def acyclic_colours(pattern: Any, order: Order = "smallest_last", seed: int | None = None) -> Any:
    """A colour for each column of a symmetric pattern, so that products `H @ v` determine each entry by substitution.

    Neighbours have different colours, and no cycle has two colours only.  So all vertices of two colours form trees:
    the entry of an edge is found in the row of the end that is further from the root, less the entries below.
    """
    graph = without_diagonal(pattern)
    return _for_entries(pattern, _acyclic(graph, order_of_vertices(graph, order, seed)))


def _for_entries(pattern: Any, colours: list[int]) -> Any:
    """The colours of a symmetric pattern, -1 for columns without entries."""
    return np.where(np.diff(pattern.indptr) > 0, np.asarray(colours, np.int64), -1)


class Bicolouring(NamedTuple):
    """Colours of rows, whose products are `v @ J`, and of columns, whose products are `J @ v`."""

    rows: Any
    columns: Any

    @property
    def total(self) -> int:
        """How many products there are."""
        return int(self.rows.max(initial=-1)) + int(self.columns.max(initial=-1)) + 2


def bidirectional_colours(pattern: Any, order: Order = "smallest_last", seed: int | None = None) -> Bicolouring:
    """Colours for rows and columns, so that each entry can be read from the products with either.

    A row of colour -1 has entries in columns of different colours only, as has a column in rows, and no path of four
    coloured rows and columns has two colours only.  Divisions into coloured and other rows and columns are tried where
    they promise fewer products than the best so far: all columns; all rows; full rows and all columns that have other
    entries; full columns and all rows that have other entries.
    """
    turned = pattern.T.tocsr()
    rows, columns = (np.full(n, -1, np.int64) for n in pattern.shape)
    best = min(
        Bicolouring(rows, column_colours(pattern, order, seed)),
        Bicolouring(column_colours(turned, order, seed), columns),
        key=lambda found: found.total,
    )
    for here, there, is_turned in [(pattern, turned, False), (turned, pattern, True)]:
        for full, least in _full_rows(here, _WORTH_TRYING * best.total):
            if least <= _WORTH_TRYING * best.total:
                found = _bicoloured(here, there, full, order, seed)
                found = Bicolouring(found.columns, found.rows) if is_turned else found
                best = min(best, found, key=lambda found: found.total)
    return best


def fewest_colours(pattern: Any) -> tuple[int, int]:
    """How few products there can be: of columns, and of rows.

    No colouring of columns has fewer colours than the fullest row has entries, and the other way round.
    """
    rows, columns = np.diff(pattern.indptr), np.bincount(pattern.indices, minlength=pattern.shape[1])
    return int(rows.max(initial=0)), int(columns.max(initial=0))


def fewest_of_both(pattern: Any, at_most: float) -> int | None:
    """How few products a division into rows and columns promises; None if not `at_most` so many."""
    found = [least for here in (pattern, pattern.T.tocsr()) for _, least in _full_rows(here, at_most)]
    return min(found, default=None)


def _full_rows(pattern: Any, at_most: float) -> list[tuple[Any, int]]:
    """Sets of the rows with most entries that promise `at_most` so many colours, and how few there can be at best."""
    counts = np.diff(pattern.indptr)
    by_count = np.argsort(-counts, kind="stable")
    falling = counts[by_count]
    # Only between rows of different size, and never more full rows than there would be products without any.
    ends = np.flatnonzero(falling[1:] < falling[:-1]) + 1
    sizes = ends[(ends < falling[:1].sum()) & (falling[ends] < at_most)].tolist()[:_MOST_SIZES]
    rank = np.empty(len(counts), np.int64)
    rank[by_count] = np.arange(len(counts))
    of_entry = np.repeat(rank, counts) if sizes else rank
    found = []
    for size in sizes:
        in_column = np.bincount(pattern.indices[of_entry < size], minlength=pattern.shape[1])
        found.append((by_count[:size], int(in_column.max(initial=0)) + int(falling[size])))
    found = [pair for pair in found if pair[1] <= at_most]
    return sorted(found, key=lambda pair: pair[1])[:_MOST_DIVISIONS]


def _bicoloured(pattern: Any, turned: Any, full: Any, order: Order, seed: int | None) -> Bicolouring:
    """The colours where entries of the full rows may be read from rows, and all others are read from columns."""
    from scipy.sparse import block_array

    count, width = pattern.shape
    is_full = np.zeros(count, np.bool_)
    is_full[full] = True
    of_others = pattern[np.flatnonzero(~is_full)]
    is_needed = np.bincount(of_others.indices, minlength=width) > 0
    in_order = [count + j for j in order_of_columns(of_others, order, seed) if is_needed[j]]
    graph = block_array([[None, pattern], [turned, None]], format="csr")
    is_neutral = np.concatenate([~is_full, ~is_needed])
    colours = np.asarray(_star(graph, [*full.tolist(), *in_order], is_neutral.tolist()), np.int64)
    return Bicolouring(colours[:count], colours[count:])


def _star(graph: Any, order: Iterable[int], is_neutral: list[bool] | None = None) -> list[int]:
    """A star colouring of the vertices in `order`.

    With `is_neutral` it is one of a bipartite graph, whose sides count their colours apart: a neutral vertex has no
    colour, and its neighbours have different ones.

    For each vertex three sets of colours are kept up to date: `once`, those of its neighbours; `twice`, those of at
    least two neighbours; `centres`, those of neighbours `x` that have another neighbour of the vertex' own colour, so
    that it is a leaf of a star around `x`.
    """
    count = graph.shape[0]
    starts, ends = graph.indptr.tolist(), graph.indices.tolist()
    colours = [-1] * count
    once, twice, centres = [0] * count, [0] * count, [0] * count
    # The first neighbour with a colour, by vertex and colour.
    first: dict[int, int] = {}
    for v in order:
        neighbours = ends[starts[v] : starts[v + 1]]
        taken = 0
        for w in neighbours:
            if is_neutral is not None and is_neutral[w]:
                taken |= once[w]
            elif colours[w] >= 0:
                taken |= centres[w] if is_neutral is not None else centres[w] | 1 << colours[w]
                if twice[v] >> colours[w] & 1:
                    taken |= once[w]
        free = ~taken & (taken + 1)
        mine = colours[v] = free.bit_length() - 1
        for w in neighbours:
            if not once[w] & free:
                once[w] |= free
                first[w * count + mine] = v
                continue
            if not twice[w] & free:
                twice[w] |= free
                if colours[w] >= 0:
                    centres[first[w * count + mine]] |= 1 << colours[w]
            if colours[w] >= 0:
                centres[v] |= 1 << colours[w]
        if twice[v]:
            for w in neighbours:
                if colours[w] >= 0 and twice[v] >> colours[w] & 1:
                    centres[w] |= free
    return colours


def _acyclic(graph: Any, order: Iterable[int]) -> list[int]:
    """An acyclic colouring.

    A vertex is in one tree for each colour of its neighbours: `vertex * count + colour` is the name of its place in
    that tree.  Places in one tree are joined.
    """
    count = graph.shape[0]
    starts, ends = graph.indptr.tolist(), graph.indices.tolist()
    colours, once = [-1] * count, [0] * count
    parents: dict[int, int] = {}

    def root_of(place: int) -> int:
        while (parent := parents.setdefault(place, place)) != place:
            parents[place] = parents[parent]
            place = parent
        return place

    for v in order:
        neighbours = [w for w in ends[starts[v] : starts[v + 1]] if colours[w] >= 0]
        taken = 0
        for w in neighbours:
            taken |= 1 << colours[w]
        if len(neighbours) > taken.bit_count():
            # Two neighbours in one tree would be joined to a cycle.
            met: set[int] = set()
            known = taken
            for w in neighbours:
                for colour in _bits(once[w] & ~known):
                    root = root_of(w * count + colour)
                    taken |= (root in met) << colour
                    met.add(root)
        free = ~taken & (taken + 1)
        mine = colours[v] = free.bit_length() - 1
        for w in ends[starts[v] : starts[v + 1]]:
            once[w] |= free
        for w in neighbours:
            parents[root_of(v * count + colours[w])] = root_of(w * count + mine)
    return colours


def _bits(number: int) -> Iterable[int]:
    """The positions of the bits that are set."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
