"""`scipy.linalg`: factorisations, eigenvalues and singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import spectral
from ...base.source import at_line, user_line
from ...numpy.promotion import real_dtype
from ...ops import linalg as ops
from .operands import adjoint, check_matrices, check_square, implemented, matrices, missing_option
from .special_matrices import from_lower_bands

__all__ = [
    "cho_factor", "cholesky", "eig", "eig_banded", "eigh", "eigh_tridiagonal", "eigvals", "eigvals_banded",
    "eigvalsh", "eigvalsh_tridiagonal", "lu", "lu_factor", "orthogonal_procrustes", "polar", "qr", "rq", "svd",
    "svdvals",
]  # fmt: skip


# Triangular factors


@implemented
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Triangular factors of positive definite matrices: upper ones, unless `lower`.

    Arguments are SciPy's: `a` has the shape (..., n, n), and only the triangle that `lower` says is read.

    Returns:
        The factors, of the shape (..., n, n), with zeros in the other triangle.

    Raises:
        LinAlgError: a matrix is not square, or it is not positive definite and NumPy runs the program.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda s: linalg.cholesky(s * np.eye(2)).sum())(4.0))
        0.5
    """
    (a,) = matrices(a)
    check_square("cholesky", a)
    return ops.cholesky(a) if lower else adjoint(ops.cholesky(adjoint(a)))


@implemented
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """Triangular factors for `cho_solve`; the other triangle keeps the elements of `a`.

    Arguments are SciPy's: `a` has the shape (n, n).

    Returns:
        The matrix, of the shape (n, n), and `lower`.

    Raises:
        LinAlgError: a matrix is not square, or it is not positive definite and NumPy runs the program.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda s: np.log(np.diagonal(linalg.cho_factor(s * np.eye(3))[0])).sum()
        >>> print(ft.grad(f)(2.0).round(12))
        0.75
    """
    (a,) = matrices(a)
    c = cholesky(a, lower)
    # For a stack, SciPy says which triangle it is once for each matrix.
    flag = np.full(a.shape[:-2], bool(lower)) if a.ndim > 2 else bool(lower)
    return c + (np.triu(a, 1) if lower else np.tril(a, -1)), flag


@implemented
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """LU factors for `lu_solve`: both in one matrix, and the pivot indices.

    Arguments are SciPy's: `a` has the shape (..., m, n).

    Returns:
        The factors, of the shape (..., m, n), and the pivot indices, of the shape (..., min(m, n)).

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda s: np.diagonal(linalg.lu_factor(s * np.eye(2))[0]).sum()
        >>> print(ft.grad(f)(3.0))
        2.0
    """
    (a,) = matrices(a)
    check_matrices("lu_factor", a)
    factors, pivots, _ = ops.lu(a)
    return factors, pivots


@implemented
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """The factors p, l and u with `p @ l @ u = a`; the derivative is the one at a fixed order of rows.

    Arguments are SciPy's: `a` has the shape (..., m, n).

    Returns:
        The factors p (..., m, m), l (..., m, k) and u (..., k, n) for k = min(m, n); or `p @ l` and u if `permute_l`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> a = np.array([[4.0, 2.0], [2.0, 3.0]])
        >>> print(ft.grad(lambda s: linalg.lu(s * a)[2][1, 1])(1.0))
        2.0
    """
    (a,) = matrices(a)
    check_matrices("lu", a)
    factors, _, order = ops.lu(a)
    m, k = a.shape[-2], min(a.shape[-2:])
    low = np.tril(factors[..., :k], -1) + np.eye(m, k, dtype=a.dtype)
    high = np.triu(factors[..., :k, :])
    places = np.argsort(order, -1).astype(np.int32)
    if permute_l:
        return np.take_along_axis(low, places[..., None], -2), high
    if p_indices:
        return places, low, high
    return (places[..., :, None] == np.arange(m)).astype(real_dtype(a.dtype)), low, high


@implemented
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """QR decomposition of matrices.

    Arguments are SciPy's: `a` has the shape (..., m, n), of full rank for its derivative.

    Returns:
        The factors q (..., m, m) and r (..., m, n), with k = min(m, n) columns and rows for mode
        "economic"; r alone for "r".

    Raises:
        ValueError: there is no such mode.
        MissingRule: columns are pivoted, or the mode is "raw".

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda a: linalg.qr(a, mode="economic")[1][0, 0]
        >>> print(abs(ft.grad(f)(np.array([[3.0, 0.0], [4.0, 1.0]]))).round(12))
        [[0.6 0. ]
         [0.8 0. ]]
    """
    if pivoting:
        raise missing_option("qr", "pivoting=True", "take the columns in another order, a[:, order], beforehand")
    if mode == "raw":
        raise missing_option("qr", "mode='raw'", "take mode='full' or 'economic'")
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"mode must be 'full', 'r' or 'economic', not {mode!r}{at_line(user_line())}")
    (a,) = matrices(a)
    q, r = np.linalg.qr(a, "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


@implemented
def rq(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", check_finite: bool = True) -> Any:
    """RQ decomposition of matrices."""
    (a,) = matrices(a)
    check_matrices("rq", a)
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"mode must be 'full', 'r' or 'economic', not {mode!r}{at_line(user_line())}")
    q, r = np.linalg.qr(adjoint(a[..., ::-1, ::-1]), "reduced" if mode == "economic" else "complete")
    r, q = adjoint(r)[..., ::-1, ::-1], adjoint(q)[..., ::-1, ::-1]
    return r if mode == "r" else (r, q)


# Eigenvalues and singular values


@implemented
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Singular value decomposition of matrices.

    Arguments are SciPy's: `a` has the shape (..., m, n).

    Returns:
        u (..., m, m), the singular values (..., k) and v^H (..., n, n) for k = min(m, n), with k columns and
        rows without `full_matrices`; the singular values alone without `compute_uv`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda a: linalg.svd(a, compute_uv=False)[0]
        >>> print(ft.grad(f)(np.diag([3.0, 2.0])).round(12) + 0.0)
        [[1. 0.]
         [0. 0.]]
    """
    (a,) = matrices(a)
    return tuple(np.linalg.svd(a, full_matrices)) if compute_uv else np.linalg.svdvals(a)


@implemented
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Singular values of matrices, in decreasing order.

    Arguments are SciPy's: `a` has the shape (..., m, n).

    Returns:
        The singular values, of the shape (..., min(m, n)).

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda s: linalg.svdvals(s * np.diag([3.0, 2.0])).sum())(1.0))
        5.0
    """
    (a,) = matrices(a)
    return np.linalg.svdvals(a)


@implemented
def polar(a: Any, side: str = "right") -> tuple[Any, Any]:
    """Polar decomposition `u @ p` (or `p @ u`) of matrices; `p` is positive semidefinite."""
    (a,) = matrices(a)
    check_matrices("polar", a)
    if side not in ("right", "left"):
        raise ValueError(f"`side` must be either 'right' or 'left', not {side!r}{at_line(user_line())}")
    u = ops.polar_factor(a)
    return u, adjoint(u) @ a if side == "right" else a @ adjoint(u)


@implemented
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The orthogonal matrix r that minimizes `norm(A @ r - B)`, and the sum of the singular values of `A.H @ B`."""
    a, b = matrices(A, B)
    check_matrices("orthogonal_procrustes", a)
    if a.shape[-2:] != b.shape[-2:]:
        raise ValueError(
            f"orthogonal_procrustes takes matrices of one shape, not {a.type} and {b.type}{at_line(user_line())}"
        )
    product = adjoint(a) @ b
    return ops.polar_factor(product), ops.nuclear_norm(product)


def _columns_of_length_one(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=-2, keepdims=True)


@implemented
def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues, and eigenvectors of norm 1 whose largest elements are real.

    With `b` the problem is a generalized one; `b` must not be singular.
    """
    if homogeneous_eigvals:
        raise missing_option("eig", "homogeneous_eigvals=True", "take the quotients that it gives otherwise")
    (a,) = matrices(a)
    check_square("eig", a)
    whole = a
    if b is not None:
        a, b = matrices(a, b)
        whole = np.linalg.solve(b, a)
    values, vectors = spectral.eig(whole)
    results = [values]
    if left:
        # Rows of the inverse are left eigenvectors; those of a generalised problem meet b first.
        rows = np.linalg.inv(vectors if b is None else b @ vectors)
        found = _columns_of_length_one(adjoint(rows))
        largest = np.take_along_axis(found, np.argmax(np.abs(found), -2)[..., None, :], -2)
        results.append(found * (np.conj(largest) / np.abs(largest)))
    if right:
        results.append(vectors)
    return tuple(results) if left or right else values


@implemented
def eigvals(
    a: Any,
    b: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of square matrices, as complex numbers."""
    return eig(a, b, right=False, homogeneous_eigvals=homogeneous_eigvals)


def _subset(function: str, n: int, by_index: Any, by_value: Any) -> slice:
    if by_value is not None:
        raise missing_option(
            function, "subset_by_value", "the number of results would depend on values; take subset_by_index"
        )
    if by_index is None:
        return slice(0, n)
    first, last = (int(i) for i in by_index)
    if not 0 <= first <= last < n:
        raise ValueError(
            f"{function}: requested eigenvalue indices are not valid: {first} to {last} of {n}{at_line(user_line())}"
        )
    return slice(first, last + 1)


@implemented
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices; with `b`, of the generalized problem.

    Arguments are SciPy's: `a` and `b` have the shape (n, n), and only the triangle that `lower` says is read.

    Returns:
        The eigenvalues (n,) in increasing order, and the eigenvectors (n, n) as columns; the former alone with
        `eigvals_only`.

    Raises:
        LinAlgError: a matrix is not square.
        ValueError: there is no problem of this `type`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda a: linalg.eigh(a)[0][1]
        >>> print(ft.grad(f)(np.array([[2.0, 0.0], [0.0, 5.0]])).round(12) + 0.0)
        [[0. 0.]
         [0. 1.]]
    """
    (a,) = matrices(a)
    check_square("eigh", a)
    kept = _subset("eigh", a.shape[-1], subset_by_index, subset_by_value)
    if type not in (1, 2, 3):
        raise ValueError(f'"type" keyword only accepts 1, 2, and 3, not {type!r}{at_line(user_line())}')
    a = a if lower else adjoint(a)
    if b is None:
        values, vectors = spectral.eigh(a)
    else:
        values, vectors = _generalised_eigh(a, b if lower else adjoint(b), type)
    values = values[..., kept]
    return values if eigvals_only else (values, vectors[..., kept])


def _generalised_eigh(a: Any, b: Any, type: int) -> tuple[Any, Any]:
    """By the Cholesky factor of `b`, which makes it a plain problem (Golub and Van Loan, section 8.7)."""
    a, b = matrices(a, b)
    check_square("eigh: b", b)
    a, factor = ops.hermitian(a), ops.cholesky(b)

    def substitute(x: Any, conjugated: bool = False) -> Any:
        matrix = np.conj(factor) if conjugated else factor
        return ops.triangular_solve(matrix, x, lower=True, transpose_a=conjugated, unit_diagonal=False)

    plain = substitute(adjoint(substitute(a))) if type == 1 else adjoint(factor) @ a @ factor
    values, vectors = spectral.eigh(plain)
    return values, factor @ vectors if type == 3 else substitute(vectors, conjugated=True)


@implemented
def eigvalsh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Eigenvalues of Hermitian matrices.

    Arguments are SciPy's: `a` and `b` have the shape (n, n), and only the triangle that `lower` says is read.

    Returns:
        The eigenvalues, of the shape (n,), in increasing order.

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda s: linalg.eigvalsh(s * np.diag([1.0, 3.0]))[1])(1.0))
        3.0
    """
    return eigh(
        a,
        b,
        lower=lower,
        eigvals_only=True,
        type=type,
        subset_by_index=subset_by_index,
        subset_by_value=subset_by_value,
    )


def _selected(select: Any, select_range: Any) -> dict[str, Any]:
    if select in ("a", "all", 0):
        return {}
    if select in ("i", "index", 2):
        return {"subset_by_index": select_range}
    return {"subset_by_value": select_range}


@implemented
def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian band matrix, given its diagonals; the dense matrix is built."""
    (bands,) = matrices(a_band)
    chosen = _selected(select, select_range)
    return eigh(from_lower_bands(bands, lower), eigvals_only=eigvals_only, **chosen)


@implemented
def eigvals_banded(
    a_band: Any,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues of a Hermitian band matrix, given its diagonals; the dense matrix is built."""
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


@implemented
def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix; the dense matrix is built."""
    d, e = matrices(d, e)
    below = np.concatenate([e, np.zeros_like(d[..., :1])], -1)
    return eig_banded(np.stack([d, below], -2), True, eigvals_only, select=select, select_range=select_range)


@implemented
def eigvalsh_tridiagonal(
    d: Any,
    e: Any,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues of a symmetric tridiagonal matrix; the dense matrix is built."""
    return eigh_tridiagonal(d, e, True, select, select_range)
