"""`scipy.linalg`: matrices made of the elements of vectors, of bands, and of other matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...numpy.promotion import asarray, strong_dtype
from .operands import implemented

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "diagsvd", "fiedler", "fiedler_companion", "hankel",
    "khatri_rao", "leslie", "toeplitz",
]  # fmt: skip


def _vectors(x: Any) -> Any:
    return np.atleast_1d(asarray(x))


def _joined(*parts: Any, core: int = 1) -> Any:
    """Stacks of vectors joined along their axis, or with `core=2` of matrices above each other."""
    dtype = strong_dtype(*parts)
    lead = np.broadcast_shapes(*(x.shape[:-core] for x in parts))
    return np.concatenate([np.broadcast_to(x.astype(dtype), (*lead, *x.shape[-core:])) for x in parts], -core)


def _padded(x: Any, before: int, after: int) -> Any:
    """Zeros around along the last axis."""
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)])


@implemented
def toeplitz(c: Any, r: Any = None) -> Any:
    """Toeplitz matrices with the first column `c` and the first row `r`.

    Arguments are SciPy's: `c` has the shape (m,) and `r` (n,); it is the conjugate of `c` by default, and its first
    element is not used.

    Returns:
        The matrix, of the shape (m, n).

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> print(ft.grad(lambda c: linalg.toeplitz(c).sum())(np.ones(3)))
        [3. 4. 2.]
    """
    c = _vectors(c)
    r = np.conj(c) if r is None else _vectors(r)
    row, column = np.ogrid[: c.shape[-1], : r.shape[-1]]
    return _joined(r[..., :0:-1], c)[..., row - column + r.shape[-1] - 1]


@implemented
def hankel(c: Any, r: Any = None) -> Any:
    """Hankel matrix with the first column `c` and the last row `r`."""
    c = _vectors(c)
    r = np.zeros_like(c) if r is None else _vectors(r)
    if c.ndim != 1 or r.ndim != 1:
        raise ValueError(f"hankel of traced values takes vectors, not {c.type} and {r.type}{at_line(user_line())}")
    row, column = np.ogrid[: c.size, : r.size]
    return _joined(c, r[1:])[row + column]


@implemented
def circulant(c: Any) -> Any:
    """Circulant matrices with the first column `c`."""
    c = asarray(c)
    row, column = np.ogrid[: c.shape[-1], : c.shape[-1]]
    return c[..., (row - column) % c.shape[-1]]


@implemented
def companion(a: Any) -> Any:
    """Companion matrices of polynomials with the coefficients `a`."""
    a = _vectors(a)
    n = a.shape[-1]
    if n < 2:
        raise ValueError(f"companion takes two coefficients or more, not {a.type}{at_line(user_line())}")
    first = -a[..., 1:] / (1.0 * a[..., :1])
    return _joined(first[..., None, :], np.eye(n - 2, n - 1, dtype=first.dtype), core=2)


@implemented
def leslie(f: Any, s: Any) -> Any:
    """Leslie matrices with fecundities `f` in the first row and survival rates `s` below the diagonal."""
    f, s = _vectors(f), _vectors(s)
    n = f.shape[-1]
    if n != s.shape[-1] + 1:
        raise ValueError(f"leslie: {f.type} must have one element more than {s.type}{at_line(user_line())}")
    return _joined(f[..., None, :], _on_diagonal(s, n - 1, n), core=2)


def _on_diagonal(s: Any, rows: int, columns: int) -> Any:
    """Matrices of zeros but for `s` on the diagonal."""
    spread = s[..., :, None] if s.shape[-1] == rows else s[..., None, :]
    return np.where(np.eye(rows, columns, dtype=bool), spread, np.zeros_like(spread))


@implemented
def fiedler(a: Any) -> Any:
    """Fiedler matrices: absolute differences of the elements of `a`."""
    a = np.atleast_1d(asarray(a))
    return np.abs(a[..., :, None] - a[..., None, :])


@implemented
def fiedler_companion(a: Any) -> Any:
    """Pentadiagonal matrices whose eigenvalues are the roots of polynomials with the coefficients `a`."""
    a = _vectors(a)
    n = a.shape[-1] - 1
    if n < 2:
        raise ValueError(f"fiedler_companion takes three coefficients or more, not {a.type}{at_line(user_line())}")
    # Which coefficient each element is; behind them follow 0 and 1.
    place = np.full((n, n), n + 1)
    place[range(3, n, 2), range(1, n - 2, 2)] = n + 2
    place[range(2, n, 2), range(1, n - 1, 2)] = range(3, n + 1, 2)
    place[range(0, n - 2, 2), range(2, n, 2)] = n + 2
    place[range(0, n - 1, 2), range(1, n, 2)] = range(2, n + 1, 2)
    place[0, 0], place[1, 0] = 1, n + 2
    scaled = -a / (1.0 * a[..., :1])
    return _joined(scaled, np.array([0.0, 1.0], scaled.dtype))[..., place]


@implemented
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """Matrices whose product with a vector of `n` elements is its convolution with `a`."""
    a = _vectors(a)
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be 'full', 'valid' or 'same', not {mode!r}{at_line(user_line())}")
    n, size = operator.index(n), a.shape[-1]
    trim = 0 if mode == "full" else min(n, size) - 1
    start = trim // 2 if mode == "same" else trim
    stop = size + n - 1 - (trim - start if mode == "same" else trim)
    row, column = np.ogrid[start:stop, :n]
    return _padded(a, n - 1, n - 1)[..., row - column + n - 1]


@implemented
def block_diag(*arrs: Any) -> Any:
    """A block diagonal matrix of the given matrices.

    Arguments are SciPy's: matrices of the shapes (m, n); a vector is one row.

    Returns:
        The matrix, of the shape (sum of all m, sum of all n).

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import linalg
        >>> f = lambda s: linalg.block_diag(s * np.eye(2), np.ones((1, 2))).sum()
        >>> print(ft.grad(f)(1.0))
        2.0
    """
    blocks: list[Any] = [np.atleast_2d(asarray(x)) for x in arrs]
    width, before, bands = sum(b.shape[-1] for b in blocks), 0, []
    for block in blocks:
        after = width - before - block.shape[-1]
        bands.append(_padded(block, before, after))
        before += block.shape[-1]
    return _joined(*bands, core=2)


@implemented
def khatri_rao(a: Any, b: Any) -> Any:
    """Column-wise Kronecker product of two matrices."""
    a, b = asarray(a), asarray(b)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"khatri_rao takes matrices of as many columns, not {a.type} and {b.type}{at_line(user_line())}"
        )
    product = a[..., :, None, :] * b[..., None, :, :]
    return np.reshape(product, (*product.shape[:-3], a.shape[-2] * b.shape[-2], a.shape[-1]))


@implemented
def diagsvd(s: Any, M: int, N: int) -> Any:
    """The matrices of shape (M, N) with the singular values `s` on their diagonal."""
    s = _vectors(s)
    if s.shape[-1] != min(M, N):
        raise ValueError(
            f"diagsvd takes as many numbers as the less of {M} and {N}, not {s.type}{at_line(user_line())}"
        )
    return _on_diagonal(s, M, N)


# Matrices given by their diagonals


def from_bands(ab: Any, below: int, above: int) -> Any:
    """The square matrix with the diagonals `ab`, from the highest down; `ab[above + i - j, j]` is its element i, j."""
    n = ab.shape[-1]
    if ab.shape[-2] != below + above + 1:
        raise ValueError(
            f"{below} diagonals below and {above} above make {below + above + 1} rows, not {ab.type}"
            f"{at_line(user_line())}"
        )
    row, column = np.ogrid[:n, :n]
    place = above + row - column
    inside = (place >= 0) & (place < ab.shape[-2])
    found = ab[..., np.clip(place, 0, ab.shape[-2] - 1), column]
    return np.where(inside, found, np.zeros_like(found))


def from_lower_bands(ab: Any, lower: bool) -> Any:
    """The Hermitian matrix of which `ab` has the diagonals on one side."""
    count = ab.shape[-2] - 1
    half = from_bands(ab, count, 0) if lower else from_bands(ab, 0, count)
    other = np.tril(half, -1) if lower else np.triu(half, 1)
    return half + np.conj(np.swapaxes(other, -1, -2))
