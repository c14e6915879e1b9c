"""Means, variances, order statistics, and the forms of reductions that ignore NaN."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..ops import elementwise as e
from ..ops.shapes import full_like
from .dispatch import implements
from .manipulation import normal_axes
from .promotion import asarray, broadcast_to, cast, operand, reshaped
from .reductions import NO_VALUE
from .ufuncs import deliver


def _mean_dtypes(x: Tracer, dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Dtypes in which a mean is computed and given."""
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if not is_inexact(x.dtype):
        return np.dtype(np.float64), np.dtype(np.float64)
    # NumPy adds up half precision in single precision.
    return (np.dtype(np.float32) if x.dtype == np.float16 else x.dtype), x.dtype


def _count(x: Tracer, axis: Any, keepdims: Any, where: Any, dtype: np.dtype[Any]) -> Any:
    """How many elements a mean is over: a number, or an array where a mask decides."""
    if where is True or where is NO_VALUE:
        return math.prod(x.shape[a] for a in normal_axes(axis, x.ndim))
    mask = np.broadcast_to(where, x.shape) if isinstance(where, np.ndarray | bool) else broadcast_to(asarray(where), x.shape)
    return np.sum(mask, axis, dtype, keepdims=False if keepdims is NO_VALUE else keepdims)


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
) -> Any:
    """The mean of elements along axes."""
    x = asarray(a)
    inner, outer = _mean_dtypes(x, dtype)
    total = np.sum(cast(x, inner), axis, keepdims=keepdims, where=where)
    count = _count(x, axis, keepdims, where, inner)
    return deliver(cast(_ratio(total, count, inner), outer), out, "mean")


def _ratio(total: Any, count: Any, dtype: np.dtype[Any]) -> Tracer:
    """`total / count`; a count is part of the program's structure."""
    total = asarray(total)
    return e.div(total, full_like(total, count) if isinstance(count, int | float) else operand(count, dtype, total.shape))  # type: ignore[no-any-return]


@implements(np.var)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    """The variance of elements along axes: their mean squared distance from the mean."""
    x = asarray(a)
    inner, outer = _mean_dtypes(x, dtype)
    x = cast(x, inner)
    centre = np.mean(x, axis, keepdims=True, where=where) if mean is NO_VALUE else mean
    apart = x - centre
    squares = np.real(apart * np.conj(apart)) if is_complex(apart.dtype) else np.square(apart)
    total = np.sum(squares, axis, keepdims=keepdims, where=where)
    less = ddof if correction is NO_VALUE else correction
    count = _count(x, axis, keepdims, where, total.dtype) - less
    count = builtins.max(count, 0) if isinstance(count, int | float) else np.maximum(count, 0)
    return deliver(cast(_ratio(total, count, total.dtype), np.finfo(outer).dtype), out, "var")


@implements(np.std)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    """The standard deviation of elements along axes; where it is 0, so is its derivative."""
    more: dict[str, Any] = {"where": where, "mean": mean, "correction": correction}
    given = {k: v for k, v in more.items() if v is not NO_VALUE}
    return deliver(root(np.var(a, axis, dtype, None, ddof, keepdims, **given)), out, "std")


def root(x: Tracer) -> Tracer:
    """The square root with a derivative of 0 at 0, which is a subgradient of a norm."""
    zero = full_like(x, 0)
    is_zero = e.eq(x, zero)
    return e.select(is_zero, zero, e.sqrt(e.select(is_zero, full_like(x, 1), x)))  # type: ignore[no-any-return]


@implements(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NO_VALUE
) -> Any:
    """The mean weighted by `weights`, and the sum of the weights if `returned`."""
    x = asarray(a)
    if weights is None:
        result = np.mean(x, axis, keepdims=keepdims)
        scale: Any = full_like(result, x.size / builtins.max(result.size, 1))
    else:
        w = asarray(weights)
        dtype = np.result_type(x.dtype, w.dtype, *(["f8"] if x.dtype.kind in "biu" else []))
        x = cast(x, dtype)
        if w.shape != x.shape:
            axes = normal_axes(axis, x.ndim)
            if axis is None or w.shape != tuple(x.shape[i] for i in axes):
                raise ValueError(
                    f"weights of shape {w.shape} fit neither the array, {x.type}, nor its axes {axis}{at_line(user_line())}"
                )
            order = np.argsort(axes)
            w = np.transpose(w, order)
            w = reshaped(w, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
        scale = np.sum(broadcast_to(cast(w, dtype), x.shape), axis, keepdims=keepdims)
        result = np.sum(x * w, axis, dtype, keepdims=keepdims) / scale
    return (result, scale) if returned else result


# NaN ignored


def _without_nan(a: Any, value: Any) -> tuple[Tracer, Any]:
    """The array with its NaN replaced, and where it has none."""
    x = asarray(a)
    if not is_inexact(x.dtype):
        return x, True
    valid = np.logical_not(np.isnan(x))
    return asarray(np.where(valid, x, operand(value, x.dtype, ()))), valid


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    """The sum, with NaN counted as 0."""
    return np.sum(_without_nan(a, 0)[0], axis, dtype, out, keepdims)


@implements(np.nanprod)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    """The product, with NaN counted as 1."""
    return np.prod(_without_nan(a, 1)[0], axis, dtype, out, keepdims)


def _nan_extremum(reduction: Any, a: Any, axis: Any, out: Any, keepdims: Any, worst: float) -> Any:
    x, valid = _without_nan(a, worst)
    result = reduction(x, axis, keepdims=keepdims)
    if valid is not True:
        result = np.where(np.any(valid, axis, keepdims=keepdims), result, operand(math.nan, x.dtype, ()))
    return deliver(result, out, reduction.__name__)


@implements(np.nanmax)
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    """The largest element that is not NaN."""
    return _nan_extremum(np.max, a, axis, out, keepdims, -math.inf)


@implements(np.nanmin)
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    """The smallest element that is not NaN."""
    return _nan_extremum(np.min, a, axis, out, keepdims, math.inf)


def _over_valid(function: Callable[..., Any], a: Any, axis: Any, keepdims: Any, **options: Any) -> Any:
    x, valid = _without_nan(a, 0)
    return function(x, axis, keepdims=keepdims, **options, **({} if valid is True else {"where": valid}))


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    """The mean of the elements that are not NaN."""
    return deliver(_over_valid(np.mean, a, axis, keepdims, dtype=dtype), out, "nanmean")


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NO_VALUE
) -> Any:
    """The variance of the elements that are not NaN."""
    return deliver(_over_valid(np.var, a, axis, keepdims, dtype=dtype, ddof=ddof), out, "nanvar")


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NO_VALUE
) -> Any:
    """The standard deviation of the elements that are not NaN."""
    return deliver(_over_valid(np.std, a, axis, keepdims, dtype=dtype, ddof=ddof), out, "nanstd")
