"""`scipy.linalg`: linear equations, inverses and determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...numpy.linalg.equations import cutoff_of, least_squares
from ...numpy.promotion import asarray
from ...ops import linalg as ops
from .operands import (
    as_columns,
    check_matrices,
    check_square,
    implemented,
    in_double_precision,
    matrices,
    transposed,
)
from .special_matrices import circulant, from_bands, from_lower_bands, toeplitz

__all__ = [
    "cho_solve", "det", "inv", "lstsq", "lu_solve", "matmul_toeplitz", "pinv", "pinvh", "solve", "solve_banded",
    "solve_circulant", "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester",
    "solve_toeplitz", "solve_triangular", "solveh_banded",
]  # fmt: skip

_STRUCTURES = {
    "general": "general", "gen": "general", "banded": "general",
    "symmetric": "symmetric", "sym": "symmetric",
    "hermitian": "hermitian", "her": "hermitian",
    "positive definite": "positive definite", "pos": "positive definite",
    "diagonal": "diagonal", "tridiagonal": "tridiagonal",
    "upper triangular": "upper triangular", "lower triangular": "lower triangular",
}  # fmt: skip


def structured(name: str, a: Any, assume_a: Any, lower: bool) -> tuple[Any, str]:
    """The matrices that SciPy reads from `a` under an assumption, and the full name of the assumption."""
    if assume_a is None:
        return a, "general"
    if assume_a not in _STRUCTURES:
        raise ValueError(f"{name}: {assume_a!r} is not a recognized matrix structure{at_line(user_line())}")
    structure = _STRUCTURES[assume_a]
    if structure in ("hermitian", "positive definite") or (structure == "symmetric" and a.dtype.kind != "c"):
        return ops.hermitian(a if lower else _adjoint(a)), structure
    if structure == "symmetric":
        low = np.tril(a, -1) if lower else np.swapaxes(np.triu(a, 1), -1, -2)
        return low + np.swapaxes(low, -1, -2) + a * np.eye(a.shape[-1], dtype=a.dtype), structure
    if structure == "tridiagonal":
        return np.triu(np.tril(a, 1), -1), structure
    return a, structure


def _adjoint(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _triangular(a: Any, b: Any, lower: bool, trans: Any, unit_diagonal: bool = False) -> Any:
    if trans in (2, "C"):
        a, trans = np.conj(a), 1
    return ops.triangular_solve(
        a, b, lower=bool(lower), transpose_a=trans in (1, "T"), unit_diagonal=bool(unit_diagonal)
    )


def by_cholesky(factors: Any, b: Any, lower: bool) -> Any:
    """Solve with `l @ l.H`, or with `u.H @ u`."""
    first = _triangular(factors, b, lower, 0 if lower else 2)
    return _triangular(factors, first, lower, 2 if lower else 0)


@implemented
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """Solve `a @ x = b`.

    Arguments are SciPy's: `a` has the shape (..., n, n) and `b` (n,) or (..., n, k); `assume_a` names a structure of
    `a`, such as "sym" or "pos", of which only one triangle is read.

    Returns:
        The solution x, of the shape (n,) or (..., n, k).

    Raises:
        LinAlgError: a matrix is not square, or it is singular and NumPy runs the program.
        ValueError: the right-hand sides do not fit the matrices, or `assume_a` names no structure.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> a = np.array([[4.0, 1.0], [1.0, 3.0]])
        >>> print(ft.grad(lambda b: linalg.solve(a, b)[0])(np.array([1.0, 2.0])).round(4))
        [ 0.2727 -0.0909]
    """
    a, b = matrices(a, b)
    check_square("solve", a)
    a, b, is_vector = as_columns("solve", a, b)
    a, structure = structured("solve", a, assume_a, lower)
    if structure == "positive definite":
        # The transpose of a Hermitian matrix is its conjugate.
        x = by_cholesky(ops.cholesky(np.conj(a) if transposed else a), b, lower=True)
    elif structure == "diagonal":
        x = b / np.diagonal(a, axis1=-2, axis2=-1)[..., None]
    elif structure.endswith("triangular"):
        x = _triangular(a, b, structure == "lower triangular", int(transposed))
    else:
        x = ops.solve(a, b, transpose_a=bool(transposed))
    return x[..., 0] if is_vector else x


@implemented
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve `a @ x = b` for triangular matrices; the other triangle is not read.

    Arguments are SciPy's: `a` has the shape (..., n, n) and `b` (n,) or (..., n, k); `trans` is 0 or "N", 1 or "T", 2
    or "C".

    Returns:
        The solution x, of the shape (n,) or (..., n, k).

    Raises:
        LinAlgError: a matrix is not square, or it is singular and NumPy runs the program.
        ValueError: the right-hand sides do not fit the matrices.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
        >>> print(ft.grad(lambda b: linalg.solve_triangular(a, b, lower=True)[1])(np.ones(2)))
        [-0.125  0.25 ]
    """
    a, b = matrices(a, b)
    check_square("solve_triangular", a)
    a, b, is_vector = as_columns("solve_triangular", a, b)
    transposed(a, trans)
    x = _triangular(a, b, lower, trans, unit_diagonal)
    return x[..., 0] if is_vector else x


@implemented
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Solve `a @ x = b`, given the result of `cho_factor(a)`.

    Arguments are SciPy's: `b` has the shape (n,) or (n, k).

    Returns:
        The solution x, of the shape of `b`.

    Raises:
        ValueError: the right-hand sides do not fit the matrices.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda s: linalg.cho_solve(linalg.cho_factor(s * np.eye(2)), np.ones(2)).sum()
        >>> print(ft.grad(f)(2.0).round(12))
        -0.5
    """
    c, lower = c_and_lower
    c, b = matrices(c, b)
    check_square("cho_solve", c)
    c, b, is_vector = as_columns("cho_solve", c, b)
    x = by_cholesky(c, b, bool(np.all(lower)))
    return x[..., 0] if is_vector else x


@implemented
def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Solve `a @ x = b`, given the result of `lu_factor(a)`.

    Arguments are SciPy's: `b` has the shape (n,) or (n, k); `trans` is 1 for the transpose of `a`, 2 for its adjoint.

    Returns:
        The solution x, of the shape of `b`.

    Raises:
        ValueError: the right-hand sides do not fit the matrices.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda s: linalg.lu_solve(linalg.lu_factor(s * np.eye(2)), np.ones(2)).sum()
        >>> print(ft.grad(f)(2.0))
        -0.5
    """
    factors, pivots = lu_and_piv
    factors, b = matrices(factors, b)
    check_square("lu_solve", factors)
    factors, b, is_vector = as_columns("lu_solve", factors, b)
    transposed(factors, trans)
    order = ops.order_of_rows(asarray(pivots))
    order = np.broadcast_to(order, factors.shape[:-1])[..., None]
    if trans in (0, "N"):
        x = np.take_along_axis(b, order, -2)
        x = _triangular(factors, x, True, 0, unit_diagonal=True)
        x = _triangular(factors, x, False, 0)
    else:
        x = _triangular(factors, b, False, trans)
        x = _triangular(factors, x, True, trans, unit_diagonal=True)
        x = np.take_along_axis(x, np.argsort(order, -2), -2)
    return x[..., 0] if is_vector else x


@implemented
def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    """Inverses of matrices.

    Arguments are SciPy's: `a` has the shape (..., n, n).

    Returns:
        The inverses, of the shape (..., n, n).

    Raises:
        LinAlgError: a matrix is not square, or it is singular and NumPy runs the program.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda a: linalg.inv(a)[0, 0])(np.diag([2.0, 4.0])) + 0.0)
        [[-0.25  0.  ]
         [ 0.    0.  ]]
    """
    (a,) = matrices(a)
    check_square("inv", a)
    a, structure = structured("inv", a, assume_a, lower)
    if structure.endswith("triangular"):
        a = np.tril(a) if structure == "lower triangular" else np.triu(a)
    elif structure == "diagonal":
        a = a * np.eye(a.shape[-1], dtype=a.dtype)
    return ops.inv(a)


@implemented
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Determinants of matrices, in double precision.

    Arguments are SciPy's: `a` has the shape (..., n, n).

    Returns:
        The determinants, of the shape (...).

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(linalg.det)(np.array([[4.0, 1.0], [2.0, 3.0]])).round(12))
        [[ 3. -2.]
         [-1.  4.]]
    """
    (a,) = in_double_precision(a)
    return np.linalg.det(a)


# Pseudo-inverses and least squares


def _pinv(a: Any, atol: Any, rtol: Any, return_rank: bool, hermitian: bool) -> Any:
    atol = 0.0 if atol is None else atol
    rtol = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    cutoff, sizes = rtol, None
    if return_rank or not (is_plain(atol, int | float) and atol == 0):
        sizes = np.linalg.svd(a, compute_uv=False, hermitian=hermitian)
        cutoff = rtol + atol / sizes[..., 0]
    out = ops.pinv(a, cutoff_of(a, cutoff), symmetric=hermitian)
    if not return_rank:
        return out
    assert sizes is not None
    return out, np.sum(sizes > np.asarray(cutoff * sizes[..., 0])[..., None], -1)


@implemented
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """Pseudo-inverses of matrices; the derivative is the one at constant rank.

    Arguments are SciPy's: `a` has the shape (..., m, n).

    Returns:
        The pseudo-inverses, of the shape (..., n, m); with `return_rank` also the rank.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda a: linalg.pinv(a).sum())(np.array([[2.0], [0.0]])).round(12))
        [[-0.25]
         [ 0.25]]
    """
    (a,) = matrices(a)
    check_matrices("pinv", a)
    return _pinv(a, atol, rtol, return_rank, hermitian=False)


@implemented
def pinvh(
    a: Any,
    atol: Any = None,
    rtol: Any = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Pseudo-inverses of Hermitian matrices; only one triangle is read."""
    (a,) = matrices(a)
    check_square("pinvh", a)
    return _pinv(a if lower else _adjoint(a), atol, rtol, return_rank, hermitian=True)


@implemented
def lstsq(
    a: Any,
    b: Any,
    cond: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: Any = None,
) -> tuple[Any, Any, Any, Any]:
    """Minimum-norm least-squares solution, sums of squared residuals, rank, and singular values.

    Arguments are SciPy's: `a` has the shape (m, n) and `b` (m,) or (m, k).

    Returns:
        The solution, of the shape (n,) or (n, k); the sums of squared residuals; the rank; the singular values.

    Raises:
        ValueError: the right-hand sides do not fit the matrices.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> print(ft.grad(lambda b: linalg.lstsq(a, b)[0][1])(np.zeros(3)).round(12) + 0.0)
        [-0.5  0.   0.5]
    """
    a, b = matrices(a, b)
    check_matrices("lstsq", a)
    a, b, is_vector = as_columns("lstsq", a, b)
    x, residuals, rank, values = least_squares(a, b, np.finfo(a.dtype).eps if cond is None else cond)
    if is_vector:
        x, residuals = x[..., 0], residuals[..., 0] if residuals.size else residuals
    return x, residuals, rank, values


# Matrices that few numbers determine


def _toeplitz_of(c_or_cr: Any) -> Any:
    """The matrix with this first column, and this first row if there is one."""
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


@implemented
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """Solve a Toeplitz system; the dense matrix is built and solved."""
    a, b = in_double_precision(_toeplitz_of(c_or_cr), b)
    return solve(a, b)


@implemented
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    """Multiply a Toeplitz matrix, which is built in full, by others."""
    a, x = in_double_precision(_toeplitz_of(c_or_cr), x)
    return a @ x


@implemented
def solve_circulant(
    c: Any, b: Any, singular: str = "raise", tol: Any = None, caxis: int = -1, baxis: int = 0, outaxis: int = 0
) -> Any:
    """Solve `circulant(c) @ x = b`; the dense matrices are built and solved."""
    if singular != "raise":
        raise ValueError(f"solve_circulant of traced values takes singular='raise' only{at_line(user_line())}")
    c, b = matrices(c, b)
    c, b = np.moveaxis(c, caxis, -1), np.moveaxis(b, baxis, -1)
    return np.moveaxis(solve(circulant(c), b[..., None])[..., 0], -1, outaxis)


@implemented
def solve_banded(
    l_and_u: Any,
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve `a @ x = b`, given the diagonals of `a`; the dense matrix is built and solved."""
    ab, b = matrices(ab, b)
    return np.linalg.solve(from_bands(ab, *l_and_u), b)


@implemented
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solve `a @ x = b`, given diagonals of the positive definite `a`; the dense matrix is built and solved."""
    ab, b = matrices(ab, b)
    factors = ops.cholesky(from_lower_bands(ab, lower))
    factors, b, is_vector = as_columns("solveh_banded", factors, b)
    x = by_cholesky(factors, b, lower=True)
    return x[..., 0] if is_vector else x


# Matrix equations


@implemented
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve `a @ x + x @ b = q`."""
    a, b, q = matrices(a, b, q)
    for name, x in (("a", a), ("b", b)):
        check_square(f"solve_sylvester: {name}", x)
    return _sylvester(a, b, q)


def _sylvester(a: Any, b: Any, q: Any) -> Any:
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (a, b, q)))
    stacks = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b, q))
    return ops.sylvester(*stacks, symmetric=False)


def _lyapunov(a: Any, q: Any) -> Any:
    a, q = matrices(a, q)
    check_square("solve_continuous_lyapunov", a)
    return _sylvester(a, _adjoint(a), q)


@implemented
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """Solve `a @ x + x @ a.H = q`."""
    return _lyapunov(a, q)


solve_lyapunov = solve_continuous_lyapunov


@implemented
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """`x` in `a @ x @ a.H - x + q = 0`; made a continuous equation (`"bilinear"`), or solved as one of n² unknowns."""
    a, q = in_double_precision(a, q)
    check_square("solve_discrete_lyapunov", a)
    n = a.shape[-1]
    method = ("direct" if n < 10 else "bilinear") if method is None else method.lower()
    if method == "direct":
        product = a[..., :, None, :, None] * np.conj(a)[..., None, :, None, :]
        whole = np.eye(n * n, dtype=a.dtype) - np.reshape(product, (*a.shape[:-2], n * n, n * n))
        x = solve(whole, np.reshape(q, (*q.shape[:-2], n * n, 1)))
        return np.reshape(x, (*x.shape[:-2], n, n))
    if method != "bilinear":
        raise ValueError(f"Unknown solver {method!r}{at_line(user_line())}")
    eye = np.eye(n, dtype=a.dtype)
    inverse = np.linalg.inv(_adjoint(a) + eye)
    moved = (_adjoint(a) - eye) @ inverse
    right = 2 * np.linalg.inv(a + eye) @ q @ inverse
    return _lyapunov(_adjoint(moved), -right)
