"""`scipy.sparse.linalg`: solutions by factorisation, by right-hand sides and by entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg

from ....base.source import at_line, user_line
from ....core.primitive import MissingRule
from ....core.types import is_complex, is_inexact
from ....numpy.dispatch import implements
from ....numpy.promotion import asarray, cast, strong_dtype
from ....ops.sparse_solve import factored_solve, sparse_solve
from ..arithmetic import is_sparse
from ..entries import Entries, entries_of

__all__ = ["factorized", "splu", "spsolve", "spsolve_triangular"]


def _checked(name: str, A: Any, b: Any) -> tuple[Entries, Any]:
    """The entries of a square matrix, and a right-hand side that fits."""
    if is_sparse(b):
        raise MissingRule(f"{name} with traced values takes a dense right-hand side, b.toarray(){at_line(user_line())}")
    a, b = entries_of(A), asarray(b)
    if a.shape[0] != a.shape[1] or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(
            f"{name} takes a square matrix (n, n) and a right-hand side (n,) or (n, k), not {a.shape} and {b.shape}"
            + at_line(user_line())
        )
    return a, b


def solve_entries(a: Entries, b: Any, transposed: bool = False) -> Any:
    """The solution for a dense right-hand side (n,) or (n, k)."""
    data, b = asarray(a.data), asarray(b)
    dtype = strong_dtype(data, b)
    if not is_inexact(dtype) or dtype.itemsize < 4:
        dtype = np.dtype(np.float64)
    return sparse_solve(cast(data, dtype), cast(b, dtype), asarray(a.row), asarray(a.col), transposed=transposed)


@implements(scipy.sparse.linalg.spsolve)
def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """The solution (n,) or (n, k) of A x = b by LU factorisation; NaN with a warning if A is singular.

    Arguments are SciPy's; derivatives are by the entries of A and by `b`.

    Raises:
        ValueError: A is not square, or `b` does not fit to it.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy import sparse
        >>> from ftrans.scipy.sparse.linalg import spsolve
        >>> total = lambda d: np.sum(spsolve(sparse.diags_array([d], format="csc"), np.ones(2)))
        >>> print(ft.grad(total)(np.array([1.0, 2.0])))
        [-1.   -0.25]
    """
    a, b = _checked("spsolve", A, b)
    return solve_entries(a, b.reshape(-1) if b.ndim == 2 and b.shape[1] == 1 else b)


@implements(scipy.sparse.linalg.spsolve_triangular)
def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The solution (n,) or (n, k) of A x = b for a triangular matrix."""
    a, b = _checked("spsolve_triangular", A, b)
    outside = a.row < a.col if lower else a.row > a.col
    if np.any(outside):
        raise ValueError(f"A is not triangular: it has entries on both sides{at_line(user_line())}")
    if unit_diagonal:
        inside = a.taken(np.flatnonzero(a.row != a.col))
        n, ones = np.arange(a.shape[0]), np.ones(a.shape[0], a.dtype)
        data = np.concatenate([asarray(inside.data), ones])
        a = Entries(data, np.concatenate([inside.row, n]), np.concatenate([inside.col, n]), a.shape)
    return solve_entries(a, b)


class TracedLU:
    """The factorisation of a matrix with traced entries: `solve` is what it has of `scipy.sparse.linalg.SuperLU`.

    Attributes:
        shape: the shape of the matrix.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self.shape = entries.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """The solution for one right-hand side (n,), or several (n, k); `trans` is "N", "T" or "H"."""
        b = asarray(rhs)
        if b.ndim not in (1, 2) or b.shape[0] != self.shape[0]:
            raise ValueError(f"rhs is of incompatible size {b.shape} for {self.shape}{at_line(user_line())}")
        return _with(lambda b, t: solve_entries(self._entries, b, t), b, trans)

    def __getattr__(self, name: str) -> Any:
        if hasattr(scipy.sparse.linalg.SuperLU, name):
            raise MissingRule(
                f"SuperLU.{name} has no form for traced entries: only solve has derivatives{at_line(user_line())}"
            )
        raise AttributeError(name)


def _with(solve: Callable[[Any, bool], Any], b: Any, trans: str) -> Any:
    if trans not in ("N", "T", "H"):
        raise ValueError(f"trans must be N, T, or H, not {trans!r}{at_line(user_line())}")
    return np.conj(solve(np.conj(b), True)) if trans == "H" else solve(b, trans == "T")


@implements(scipy.sparse.linalg.splu)
def splu(A: Any, permc_spec: Any = None, diag_pivot_thresh: Any = None, *args: Any, **options: Any) -> Any:
    """The LU factorisation of a square matrix with traced entries, whose `solve` has derivatives."""
    a = entries_of(A)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"can only factor square matrices, not {a.shape}{at_line(user_line())}")
    return TracedLU(a)


@implements(scipy.sparse.linalg.factorized)
def factorized(A: Any) -> Callable[[Any], Any]:
    """A function that solves A x = b for one right-hand side."""
    return splu(A).solve


@implements(scipy.sparse.linalg.SuperLU.solve)
def solve_factored(factors: Any, rhs: Any, trans: str = "N") -> Any:
    """`SuperLU.solve` of a traced right-hand side."""
    b = asarray(rhs)
    dtype = factors.L.dtype

    def solve(b: Any, transposed: bool) -> Any:
        if is_complex(b.dtype) and not is_complex(dtype):
            return solve(b.real, transposed) + 1j * solve(b.imag, transposed)
        return factored_solve(cast(b, dtype), factors=factors, transposed=transposed)

    return _with(solve, b, trans)
