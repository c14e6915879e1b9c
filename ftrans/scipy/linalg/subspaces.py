"""`scipy.linalg`: products with the orthonormal bases of column spaces, and angles between these spaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from .operands import adjoint, check_matrices, implemented, matrices, missing_option

__all__ = ["qr_multiply", "subspace_angles"]


@implemented
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, Any]:
    """The product of `c` with the factor q of the QR decomposition of `a`, on its left or right, and the factor r."""
    if pivoting:
        raise missing_option("qr_multiply", "pivoting=True", "take the columns in another order, a[:, order], before")
    if mode not in ("left", "right"):
        raise ValueError(f"Mode argument can only be 'left' or 'right' but not '{mode}'{at_line(user_line())}")
    a, c = matrices(np.atleast_2d(a), c)
    q, r = np.linalg.qr(a)
    q = np.conj(q) if conjugate else q
    # A vector is a column for q on its left, and a row for q on its right.
    return q @ c if mode == "left" else c @ q, r


@implemented
def subspace_angles(A: Any, B: Any) -> Any:
    """Angles between the column spaces of two matrices, decreasing; all columns of each must be independent.

    Small angles follow from their sines, others from their cosines (Knyazev and Argentati 2002).
    """
    a, b = matrices(A, B)
    for x in (a, b):
        check_matrices("subspace_angles", x)
    if a.shape[-2] != b.shape[-2]:
        raise ValueError(f"A and B must have the same number of rows, not {a.type} and {b.type}{at_line(user_line())}")
    a, b = (np.linalg.qr(x)[0] for x in (a, b))
    product = adjoint(a) @ b
    rest = b - a @ product if a.shape[-1] >= b.shape[-1] else a - b @ adjoint(product)
    cosines, sines = np.linalg.svdvals(product)[..., ::-1], np.linalg.svdvals(rest)
    is_small = cosines**2 >= 0.5
    return np.where(is_small, np.arcsin(np.where(is_small, sines, 0)), np.arccos(np.where(is_small, 0, cosines)))
