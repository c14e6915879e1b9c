"""`scipy.linalg`: Cholesky factors of band matrices, given and returned by their diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops import linalg as ops
from .equations import by_cholesky
from .operands import adjoint, as_columns, implemented, matrices
from .special_matrices import from_bands, from_lower_bands

__all__ = ["cho_solve_banded", "cholesky_banded"]


@implemented
def cholesky_banded(ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Any:
    """Diagonals of the Cholesky factor of a positive definite band matrix; the dense matrix is built."""
    (ab,) = matrices(ab)
    factor = ops.cholesky(from_lower_bands(ab, lower))
    factor = factor if lower else adjoint(factor)
    diagonal, column = np.ogrid[: ab.shape[-2], : ab.shape[-1]]
    row = column + diagonal - (0 if lower else ab.shape[-2] - 1)
    inside = (row >= 0) & (row < ab.shape[-1])
    # SciPy leaves the elements beside the matrix as they were given.
    return np.where(inside, factor[..., np.clip(row, 0, ab.shape[-1] - 1), column], ab)


@implemented
def cho_solve_banded(cb_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Solve `a @ x = b`, given the result of `cholesky_banded(a)`; the dense factor is built."""
    cb, lower = cb_and_lower
    cb, b = matrices(cb, b)
    count = cb.shape[-2] - 1
    factors = from_bands(cb, count, 0) if lower else from_bands(cb, 0, count)
    factors, b, is_vector = as_columns("cho_solve_banded", factors, b)
    x = by_cholesky(factors, b, bool(lower))
    return x[..., 0] if is_vector else x
