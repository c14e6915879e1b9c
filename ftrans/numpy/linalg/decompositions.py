"""`numpy.linalg`: factorisations, eigenvalues and singular values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import spectral
from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...ops import linalg as ops
from ..dispatch import implements
from .operands import adjoint, check_matrices, check_square, matrices

__all__ = ["cholesky", "cond", "eig", "eigh", "eigvals", "eigvalsh", "matrix_rank", "qr", "svd", "svdvals"]


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The Cholesky factors of positive definite matrices."""
    (a,) = matrices(a)
    check_square("cholesky", a)
    if upper:
        return adjoint(ops.cholesky(adjoint(a)))
    return ops.cholesky(a)


class EighResult(NamedTuple):
    """Eigenvalues, increasing, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices; only one triangle is read."""
    (a,) = matrices(a)
    check_square("eigh", a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"UPLO argument must be 'L' or 'U'{at_line(user_line())}")
    return EighResult(*spectral.eigh(a if UPLO.upper() == "L" else adjoint(a)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices; only one triangle is read."""
    return np.linalg.eigh(a, UPLO)[0]


class EigResult(NamedTuple):
    """Eigenvalues, in no order, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


@implements(np.linalg.eig)
def eig(a: Any) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices: complex, also where NumPy would give real ones.

    An eigenvector has the length 1, and its largest element is real.
    """
    (a,) = matrices(a)
    check_square("eig", a)
    return EigResult(*spectral.eig(a))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """Eigenvalues of square matrices: complex, also where NumPy would give real ones."""
    return np.linalg.eig(a)[0]


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, decreasing, and right singular vectors as conjugated rows."""

    U: Any
    S: Any
    Vh: Any


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition of matrices."""
    (a,) = matrices(a)
    check_matrices("svd", a)
    if hermitian:
        check_square("svd of Hermitian matrices", a)
        return _svd_of_hermitian(a, compute_uv)
    u, s, vh = spectral.svd(a, full=bool(full_matrices) and bool(compute_uv) and a.shape[-1] != a.shape[-2])
    return SVDResult(u, s, vh) if compute_uv else s


def _svd_of_hermitian(a: Any, compute_uv: bool) -> Any:
    values, vectors = spectral.eigh(a)
    sizes = np.abs(values)
    order = np.flip(np.argsort(sizes, -1), -1)
    s = np.take_along_axis(sizes, order, -1)
    if not compute_uv:
        return s
    u: Any = np.take_along_axis(vectors, order[..., None, :], -1)
    signs = np.take_along_axis(np.sign(values), order, -1)
    # A singular value of 0 keeps its right vector.
    signs = np.where(signs == 0, np.ones_like(signs), signs)
    return SVDResult(u, s, adjoint(u * signs[..., None, :]))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """The singular values of matrices, decreasing."""
    return np.linalg.svd(x, compute_uv=False)


class QRResult(NamedTuple):
    """Orthonormal columns and an upper triangular matrix."""

    Q: Any
    R: Any


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """The QR decomposition of matrices."""
    (a,) = matrices(a)
    check_matrices("qr", a)
    if mode == "raw":
        raise MissingRule(
            "numpy.linalg.qr with mode='raw' gives the reflections of LAPACK, which have no traced form; take"
            f" mode='reduced' or 'complete'{at_line(user_line())}"
        )
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'{at_line(user_line())}")
    m, n = a.shape[-2:]
    if m >= n:
        q, r = ops.qr(a, complete=mode == "complete" and m > n)
    else:
        # The first columns determine the basis, and the others their coefficients in it.
        q, first = ops.qr(a[..., :m])
        r = np.concatenate([first, adjoint(q) @ a[..., m:]], -1)
    return r if mode == "r" else QRResult(q, r)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The condition numbers of matrices."""
    (x,) = matrices(x)
    check_matrices("cond", x)
    if not all(x.shape[-2:]):
        raise np.linalg.LinAlgError(f"cond is not defined on empty matrices{at_line(user_line())}")
    if p in (None, 2, -2):
        s = np.linalg.svdvals(x)
        above, below = (s[..., -1], s[..., 0]) if p == -2 else (s[..., 0], s[..., -1])
        # As in NumPy, it is infinite for a matrix of zeros.
        return np.where(below == 0, np.ones_like(above), above) / below
    check_square("cond of an order other than 2", x)
    regular = ops.slogdet(x)[0] != 0
    inverse = ops.inv(np.where(regular[..., None, None], x, np.eye(x.shape[-1], dtype=x.dtype)))
    product = np.linalg.norm(x, p, (-2, -1)) * np.linalg.norm(inverse, p, (-2, -1))
    # NumPy's inverse raises for a singular matrix, of which the condition number is infinite.
    return np.where(regular, product, np.ones_like(product)) / regular.astype(product.dtype)


@implements(np.linalg.matrix_rank, constant=True)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The rank: the number of singular values above a tolerance; it has no derivative."""
    (a,) = matrices(A)
    if tol is not None and rtol is not None:
        raise ValueError(f"`tol` and `rtol` can't be both set.{at_line(user_line())}")
    if a.ndim < 2:
        return np.any(a != 0).astype(np.int_)
    s = np.linalg.svd(a, compute_uv=False, hermitian=hermitian)
    if tol is None:
        relative = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else np.asarray(rtol)[..., None]
        tol = s[..., :1] * relative
    else:
        tol = np.asarray(tol)[..., None]
    return np.sum(s > tol, -1)
