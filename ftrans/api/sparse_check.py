"""Checks of the entries of a sparse matrix against products with random vectors, which need no pattern."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .products import Products


class Wrong(NamedTuple):
    """An entry that is not what it should be.

    Attributes:
        row: its row.
        col: its column.
        given: what the sparse matrix holds.
        exact: what it is.
        is_missing: whether the pattern has no entry there.
    """

    row: int
    col: int
    given: Any
    exact: Any
    is_missing: bool


def find_wrong(products: Products, matrix: Any, seed: int = 0, probes: int = 2) -> Wrong | None:
    """An entry of a sparse matrix that products with random vectors show to be wrong; None if they show none.

    Args:
        products: products with the true matrix.
        matrix: a SciPy array in the format CSR.
        seed: seed of the random vectors.
        probes: how many vectors.
    """
    random = np.random.default_rng(seed)
    for _ in range(probes):
        v = random.normal(size=matrix.shape[1])
        row = _differing_row(products.forward(v), matrix @ v, abs(matrix) @ np.abs(v))
        if row is not None:
            return _in_row(products, matrix, row)
    return None


def _differing_row(exact: Any, given: Any, scale: Any) -> int | None:
    """The row in which two products differ most, if by more than rounding."""
    # What is infinite or NaN in both is the same; products of it with zeros are not.
    is_finite = np.isfinite(exact) & np.isfinite(given)
    with np.errstate(invalid="ignore"):
        difference = np.where(is_finite, np.abs(exact - given), 0)
        most = np.max(np.where(is_finite, np.abs(exact), 0), initial=0)
    # Rounding grows with the values in between, which are not known; a wrong entry is wrong by about its size.
    bound = np.sqrt(np.finfo(given.dtype).eps) * (np.where(is_finite, scale, 0) + np.abs(exact) + 1e-3 * most)
    excess = np.where(is_finite, difference - bound, -1)
    row = int(np.argmax(excess)) if excess.size else 0
    return row if excess.size and excess[row] > 0 else None


def _in_row(products: Products, matrix: Any, row: int) -> Wrong:
    """The wrong entry that explains a wrong row: one that the pattern lacks, if there is one."""
    exact = products.backward(_unit(matrix.shape[0], row)).conj()
    given = matrix[[row], :].toarray()[0]
    has_entry = np.zeros(matrix.shape[1], bool)
    has_entry[matrix[[row], :].indices] = True
    col = _largest(exact, has_entry, given)
    if not has_entry[col]:
        return Wrong(row, col, given[col], exact[col], True)
    # An entry that is missing in another row of this column may have been added to this one.
    of_column = products.forward(_unit(matrix.shape[1], col))
    whole = matrix[:, [col]].toarray()[:, 0]
    has_entry = np.zeros(matrix.shape[0], bool)
    has_entry[matrix[:, [col]].tocsc().indices] = True
    other = _largest(of_column, has_entry, whole)
    if not has_entry[other]:
        return Wrong(other, col, whole[other], of_column[other], True)
    return Wrong(row, col, given[col], exact[col], False)


def _largest(exact: Any, has_entry: Any, given: Any) -> int:
    """The place of the largest value without an entry; if there is none, that of the largest difference."""
    missing = np.where(has_entry, 0, np.abs(exact))
    place = int(np.argmax(missing))
    return place if missing[place] > 0 else int(np.argmax(np.abs(exact - given)))


def _unit(size: int, place: int) -> Any:
    vector = np.zeros(size)
    vector[place] = 1
    return vector
