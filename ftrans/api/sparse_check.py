"""Checks of the entries of a sparse matrix against products with random vectors, which need no pattern."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .products import Products, rounding_unit

# A difference that is not rounding, relative to what is added up: this power of the rounding unit.
_POWER = 0.75
# How many rows that differ are looked at.
_MOST_ROWS = 16


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


def find_wrong(products: Products, matrix: Any, seed: int = 0) -> Wrong | None:
    """An entry of a sparse matrix that the product with a random vector shows to be wrong; None if it shows none.

    Args:
        products: products with the true matrix.
        matrix: a SciPy array in the format CSR.
        seed: seed of the random vector.
    """
    if 0 in matrix.shape:
        return None
    tolerance = rounding_unit(products.dtype) ** _POWER
    with np.errstate(all="ignore"):
        noise = products.noise()
        rows = [
            (i, _wide(products.backward(_unit(matrix.shape[0], i)).conj()))
            for i in _suspects(products, matrix, seed, tolerance, noise)
        ]
        # An entry that is missing may make others wrong, so that is looked for first.
        for i, exact in rows:
            size = _size(exact)
            most = size.max()
            size[_columns(matrix, i)] = 0
            j = int(np.argmax(size))
            if size[j] > max(tolerance * most, noise[i]):
                return Wrong(i, j, 0, exact[j], True)
        for i, exact in rows:
            cols = _columns(matrix, i)
            given = matrix.data[slice(*matrix.indptr[i : i + 2])]
            error = _size(exact[cols] - given)
            place = int(np.argmax(error)) if error.size else 0
            if error.size and error[place] > max(np.sqrt(tolerance) * _size(exact).max(), noise[i]):
                return Wrong(i, int(cols[place]), given[place], exact[cols[place]], False)
    return None


def _suspects(products: Products, matrix: Any, seed: int, tolerance: float, noise: Any) -> list[int]:
    """The rows in which the products with a random vector differ most, if by more than rounding."""
    random = np.random.default_rng(seed)
    v = random.uniform(0.5, 1.0, matrix.shape[1]) * random.choice([-1.0, 1.0], matrix.shape[1])
    v = v.astype(np.float32) if rounding_unit(products.dtype) > 1e-10 else v
    exact, given = _wide(products.forward(v)), matrix @ v
    difference = np.abs(exact - given)
    # Where neither is finite, there is nothing to compare.
    difference[~np.isfinite(exact) & ~np.isfinite(given)] = 0
    scale = abs(matrix) @ np.abs(v) + np.abs(exact)
    excess = np.where(np.isfinite(difference), difference / np.maximum(scale, np.finfo(scale.dtype).tiny), np.inf)
    found = np.flatnonzero((excess > tolerance) & ~(difference <= noise))
    most: list[int] = found[np.argsort(-excess[found], kind="stable")][:_MOST_ROWS].tolist()
    return most


def _columns(matrix: Any, i: int) -> Any:
    """The columns of the entries in a row of a CSR array."""
    return matrix.indices[slice(*matrix.indptr[i : i + 2])]


def _size(x: Any) -> Any:
    """Absolute values, 0 for what is not finite: a slope that is infinite makes NaN of zeros elsewhere in its row."""
    return np.where(np.isfinite(x), np.abs(x), 0)


def _wide(x: Any) -> Any:
    """An array of a dtype that SciPy's sparse arrays have, which numbers of 16 bits are not."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _unit(size: int, place: int) -> Any:
    vector = np.zeros(size)
    vector[place] = 1
    return vector
