"""Sums, means, norms and softmax: methods of torch's tensors as functions of any value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ..tensor import Tensor
from .arguments import axes_of


def _wide(x: Any, dtype: Any) -> Any:
    """The dtype of sums: that of int64 for whole numbers and for truth values."""
    return np.int64 if dtype is None and x.dtype.kind in "bui" else dtype


def sum_(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements, or along axes."""
    return np.sum(x, axes_of(dim), _wide(x, dtype), keepdims=keepdim)


def prod(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all elements, or along an axis."""
    return np.prod(x, axes_of(dim), _wide(x, dtype), keepdims=keepdim)


def mean(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of all elements, or along axes."""
    return np.mean(x, axes_of(dim), dtype, keepdims=keepdim)


def any_(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any element is not zero, or any along axes."""
    return np.any(x, axes_of(dim), keepdims=keepdim)


def all_(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether no element is zero, or none along axes."""
    return np.all(x, axes_of(dim), keepdims=keepdim)


def _divisor(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """The axes, and what the divisor is less than n; the flag `unbiased` may come first."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    ddof = (1 if unbiased is None else int(unbiased)) if correction is None else correction
    return axes_of(dim), ddof


def std(x: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The standard deviation of all elements, or along axes; the divisor is n less `correction`, which is 1."""
    axes, ddof = _divisor(dim, unbiased, correction)
    return np.std(x, axes, ddof=ddof, keepdims=keepdim)


def var(x: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The variance of all elements, or along axes; the divisor is n less `correction`, which is 1."""
    axes, ddof = _divisor(dim, unbiased, correction)
    return np.var(x, axes, ddof=ddof, keepdims=keepdim)


def cumsum(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """The sums so far along an axis."""
    return np.cumsum(x, dim, _wide(x, dtype)) if x.ndim else np.sum(x, dtype=_wide(x, dtype))


def cumprod(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """The products so far along an axis."""
    return np.cumprod(x, dim, _wide(x, dtype)) if x.ndim else np.prod(x, dtype=_wide(x, dtype))


def nansum(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of what is not NaN, of all elements or along axes."""
    return np.nansum(x, axes_of(dim), dtype, keepdims=keepdim)


def nanmean(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of what is not NaN, of all elements or along axes."""
    return np.nanmean(x, axes_of(dim), dtype, keepdims=keepdim)


def diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis."""
    ends = {name: end for name, end in (("prepend", prepend), ("append", append)) if end is not None}
    return np.diff(x, n, dim, **ends)


# Norms


def norm(x: Any, p: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None, **kwargs: Any) -> Any:
    """The norm of all elements, or along axes: `numpy.linalg.vector_norm` of order `p`, which is 2 by default.

    With `ord=`, `axis=` or `keepdims=` it is `numpy.linalg.norm`.
    """
    if kwargs:
        return np.linalg.norm(x, **{"ord": p, "axis": dim, "keepdims": keepdim} | kwargs)
    x = x if dtype is None else x.astype(dtype)
    if p == "nuc":
        return np.linalg.norm(x, "nuc", dim, keepdim)
    return np.linalg.vector_norm(x, axis=axes_of(dim), keepdims=keepdim, ord=2 if p is None or p == "fro" else p)


def dist(x: Any, other: Any, p: Any = 2) -> Any:
    """The norm of the difference of two arrays."""
    return np.linalg.vector_norm(x - other, ord=p)


def renorm(x: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """The parts along an axis, made as short as `maxnorm` where they are longer."""
    axes = tuple(i for i in range(x.ndim) if i != dim % x.ndim)
    length = np.linalg.vector_norm(x, axis=axes, keepdims=True, ord=p)
    is_long = length > maxnorm
    return np.where(is_long, x * (maxnorm / np.where(is_long, length + 1e-7, 1)), x)


# Exponentials


def centred(x: Any, axis: Any) -> Any:
    """`x` minus its maximum, which changes neither its softmax nor the derivatives of that."""
    fixed = x.detach() if isinstance(x, Tensor) else stop_gradient(x)
    return x - np.max(fixed, axis=axis, keepdims=True)


def _has_no_choice(x: Any, axis: int) -> bool:
    """Whether `x` is a scalar, or empty along the axis."""
    return not x.shape or not x.shape[axis]


def softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along an axis."""
    x = x if dtype is None else x.astype(dtype)
    if _has_no_choice(x, dim):
        return np.exp(x - x)
    exponentials = np.exp(centred(x, dim))
    return exponentials / np.sum(exponentials, axis=dim, keepdims=True)


def log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, finite also where softmax itself underflows to 0."""
    x = x if dtype is None else x.astype(dtype)
    if _has_no_choice(x, dim):
        return x - x
    moved = centred(x, dim)
    return moved - np.log(np.sum(np.exp(moved), axis=dim, keepdims=True))


def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of the sum of the exponentials along axes."""
    axes = axes_of(dim)
    if not math.prod(x.shape):
        return np.sum(x, axes, keepdims=keepdim) - np.inf
    highest = np.max(stop_gradient(x), axis=axes, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0)
    found = np.log(np.sum(np.exp(x - highest), axis=axes, keepdims=True)) + highest
    return found if keepdim else np.squeeze(found, axes)


def logcumsumexp(x: Any, dim: int) -> Any:
    """The logarithm of the sums of the exponentials so far along an axis."""
    return np.logaddexp.accumulate(x, dim)


METHODS = {
    "sum": sum_, "prod": prod, "mean": mean, "any": any_, "all": all_, "std": std, "var": var, "cumsum": cumsum,
    "cumprod": cumprod, "nansum": nansum, "nanmean": nanmean, "diff": diff, "norm": norm, "dist": dist,
    "renorm": renorm, "softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp,
    "logcumsumexp": logcumsumexp,
}  # fmt: skip
