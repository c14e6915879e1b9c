"""`scipy.linalg`: matrices made of the elements of vectors, of bands, and of other matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...core.source import at_line, user_line
from ...numpy.promotion import asarray, strong_dtype
from .operands import implemented


def _vector(name: str, x: Any) -> Any:
    x = np.atleast_1d(asarray(x))
    if x.ndim != 1:
        raise ValueError(f"{name} of traced values takes vectors, not {x.type}{at_line(user_line())}")
    return x


def _joined(*parts: Any) -> Any:
    dtype = strong_dtype(*parts)
    return np.concatenate([x.astype(dtype) for x in parts])


@implemented
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with the first column `c` and the first row `r`, and equal elements along each diagonal."""
    c = _vector("toeplitz", c)
    r = np.conj(c) if r is None else _vector("toeplitz", r)
    row, column = np.ogrid[: c.size, : r.size]
    return _joined(r[:0:-1], c)[row - column + r.size - 1]


@implemented
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with the first column `c` and the last row `r`, and equal elements along each other diagonal."""
    c = _vector("hankel", c)
    r = np.zeros_like(c) if r is None else _vector("hankel", r)
    row, column = np.ogrid[: c.size, : r.size]
    return _joined(c, r[1:])[row + column]


@implemented
def circulant(c: Any) -> Any:
    """The matrices whose columns are `c`, each one element further down."""
    c = asarray(c)
    row, column = np.ogrid[: c.shape[-1], : c.shape[-1]]
    return c[..., (row - column) % c.shape[-1]]


@implemented
def companion(a: Any) -> Any:
    """The matrix whose characteristic polynomial has the coefficients `a`."""
    a = _vector("companion", a)
    if a.size < 2:
        raise ValueError(f"companion takes two coefficients or more, not {a.type}{at_line(user_line())}")
    first = -a[1:] / (1.0 * a[0])
    return np.concatenate([first[None], np.eye(a.size - 2, a.size - 1, dtype=first.dtype)])


@implemented
def leslie(f: Any, s: Any) -> Any:
    """The matrix with `f` in its first row and `s` below the diagonal."""
    f, s = _vector("leslie", f), _vector("leslie", s)
    if f.size != s.size + 1:
        raise ValueError(f"leslie: {f.type} must have one element more than {s.type}{at_line(user_line())}")
    dtype = strong_dtype(f, s)
    below = np.concatenate([np.diag(s), np.zeros_like(s, shape=(s.size, 1))], 1)
    return np.concatenate([f[None].astype(dtype), below.astype(dtype)])


@implemented
def fiedler(a: Any) -> Any:
    """The absolute differences of the elements of `a`."""
    a = np.atleast_1d(asarray(a))
    return np.abs(a[..., :, None] - a[..., None, :])


@implemented
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix whose product with a vector of `n` elements is its convolution with `a`."""
    a = _vector("convolution_matrix", a)
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be 'full', 'valid' or 'same', not {mode!r}{at_line(user_line())}")
    n = operator.index(n)
    trim = 0 if mode == "full" else min(n, a.size) - 1
    start = trim // 2 if mode == "same" else trim
    stop = a.size + n - 1 - (trim - start if mode == "same" else trim)
    row, column = np.ogrid[start:stop, :n]
    padded = np.pad(a, (n - 1, n - 1))
    return padded[row - column + n - 1]


@implemented
def block_diag(*arrs: Any) -> Any:
    """Matrices along the diagonal of a larger one."""
    blocks: list[Any] = [np.atleast_2d(asarray(x)) for x in arrs]
    if any(b.ndim != 2 for b in blocks):
        raise ValueError(
            f"block_diag of traced values takes matrices, not {', '.join(str(b.type) for b in blocks)}"
            f"{at_line(user_line())}"
        )
    dtype = strong_dtype(*blocks)
    width, before, bands = sum(b.shape[1] for b in blocks), 0, []
    for block in blocks:
        after = width - before - block.shape[1]
        bands.append(np.pad(block.astype(dtype), ((0, 0), (before, after))))
        before += block.shape[1]
    return np.concatenate(bands)


@implemented
def khatri_rao(a: Any, b: Any) -> Any:
    """The Kronecker products of the columns of two matrices."""
    a, b = asarray(a), asarray(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(
            f"khatri_rao takes matrices of as many columns, not {a.type} and {b.type}{at_line(user_line())}"
        )
    return np.reshape(a[:, None] * b[None], (a.shape[0] * b.shape[0], a.shape[1]))


@implemented
def diagsvd(s: Any, M: int, N: int) -> Any:
    """The matrix of shape (M, N) with the singular values `s` on its diagonal."""
    s = _vector("diagsvd", s)
    if s.size not in (M, N):
        raise ValueError(f"Length of s must be M or N.{at_line(user_line())}")
    return np.pad(np.diag(s), ((0, M - s.size), (0, N - s.size)))


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
