"""Boolean sparse matrices, which say which elements depend on which: products, and what any number of steps reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.index_map import IndexMap, Piece, by_way

# A boolean matrix of SciPy: `scipy.sparse.csr_array`.
Pattern = Any


class TooMany(Exception):
    """There are more pairs of elements than shall be listed."""


def pieces_of(pattern: Pattern) -> list[Piece]:
    """A pattern as pieces."""
    found = pattern.tocoo()
    rows, cols = (IndexMap.of(x, n) for x, n in zip(found.coords, found.shape, strict=True))
    return [Piece(rows, cols)] if found.nnz else []


def closure(pattern: Pattern, at_most: float, steps: int | None = None) -> Pattern:
    """What depends on what after up to so many steps, or any number of them, of which each has this pattern.

    Raises:
        TooMany: there are more than `at_most` pairs.
    """
    import scipy.sparse as sp

    reached = sp.eye_array(pattern.shape[0], dtype=bool, format="csr")
    power = bounded(reached + pattern, at_most)
    while steps is None or steps:
        if steps is not None:
            reached = bounded(reached @ power, at_most) if steps % 2 else reached
            steps //= 2
        further = bounded(power @ power, at_most)
        if further.nnz == power.nnz:
            return power
        power = further
    return reached


def through(rows: IndexMap, cols: IndexMap, pattern: Pattern, most: float) -> Pattern:
    """What rows depend on that have lanes to rows `cols` of a pattern.

    Raises:
        TooMany: there may be more entries, or are more lanes, than `most`.
    """
    steps = by_way(rows, cols)
    if steps is None:
        return _united(rows, cols, pattern, most)
    to_middle, to_rows = steps
    return _united(*to_rows, _united(*to_middle, pattern, most), most)


def _united(rows: IndexMap, cols: IndexMap, pattern: Pattern, most: float) -> Pattern:
    import scipy.sparse as sp

    height, width = rows.space, pattern.shape[1]
    if rows.size > most:
        raise TooMany
    taken = cols.table().reshape(-1)
    if min(np.diff(pattern.indptr)[taken].sum(), height * width) > most:
        raise TooMany
    if rows.is_identity:
        return pattern if cols.is_identity else pattern[taken]
    places = (rows.table().reshape(-1), taken)
    lanes = sp.csr_array((np.ones(taken.size, np.bool_), places), shape=(height, pattern.shape[0]))
    return lanes @ pattern


def bounded(pattern: Pattern, at_most: float) -> Pattern:
    """A pattern, provided that it does not have too many entries."""
    if pattern.nnz > at_most:
        raise TooMany
    return pattern
