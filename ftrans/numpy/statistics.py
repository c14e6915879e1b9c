"""Means, variances, order statistics, and the forms of reductions that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..ops import elementwise as e
from ..ops.shapes import full_like
from .dispatch import TABLE, implements
from .manipulation import normal_axes
from .promotion import asarray, broadcast_to, cast, operand, real_dtype, reshaped
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
        return x.size if axis is None else math.prod(x.shape[a] for a in normal_axes(axis, x.ndim))
    mask = (
        np.broadcast_to(where, x.shape)
        if isinstance(where, np.ndarray | bool)
        else broadcast_to(asarray(where), x.shape)
    )
    return np.sum(mask, axis, dtype, keepdims=False if keepdims is NO_VALUE else keepdims)


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
) -> Any:
    """The mean of elements along axes."""
    x = asarray(a)
    inner, outer = _mean_dtypes(x, dtype)
    total = TABLE[np.sum](cast(x, inner), axis, keepdims=keepdims, where=where)
    count = _count(x, axis, keepdims, where, inner)
    return deliver(cast(_ratio(total, count, inner), outer), out, "mean")


def _ratio(total: Any, count: Any, dtype: np.dtype[Any]) -> Tracer:
    """`total / count`; a count is part of the program's structure."""
    total = asarray(total)
    if not is_inexact(dtype):
        dtype = np.dtype(np.float64)
        total = cast(total, dtype)
    is_number = isinstance(count, int | float)
    return e.div(total, full_like(total, count) if is_number else operand(count, dtype, total.shape))


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
    count = max(count, 0) if isinstance(count, int | float) else np.maximum(count, 0)
    return deliver(cast(_ratio(total, count, total.dtype), real_dtype(outer)), out, "var")


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
    return e.select(is_zero, zero, e.sqrt(e.select(is_zero, full_like(x, 1), x)))


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NO_VALUE) -> Any:
    """The mean weighted by `weights`, and the sum of the weights if `returned`."""
    x = asarray(a)
    if weights is None:
        result = np.mean(x, axis, keepdims=keepdims)
        scale: Any = full_like(result, x.size / max(result.size, 1))
    else:
        w = asarray(weights)
        dtype = np.result_type(x.dtype, w.dtype, *(["f8"] if x.dtype.kind in "biu" else []))
        x = cast(x, dtype)
        if w.shape != x.shape:
            axes = normal_axes(axis, x.ndim)
            if axis is None or w.shape != tuple(x.shape[i] for i in axes):
                raise ValueError(
                    f"weights of shape {w.shape} fit neither {x.type} nor its axes {axis}{at_line(user_line())}"
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


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative sum, with NaN counted as 0."""
    return np.cumsum(_without_nan(a, 0)[0], axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative product, with NaN counted as 1."""
    return np.cumprod(_without_nan(a, 1)[0], axis, dtype, out)


# Order statistics


def _sorted_first(a: Any, axis: Any) -> tuple[Tracer, tuple[int, ...], int]:
    """The array sorted along its reduced axes, which become the first; these axes, and the number of all."""
    x = asarray(a)
    axes = tuple(sorted(normal_axes(axis, x.ndim)))
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    moved = np.transpose(x, (*axes, *rest))
    flat = reshaped(asarray(moved), (math.prod(x.shape[i] for i in axes), *(x.shape[i] for i in rest)))
    if not flat.shape[0]:
        raise ValueError(f"order statistics of no elements, over axes {axes} of {x.type}{at_line(user_line())}")
    return asarray(np.sort(flat, 0)), axes, x.ndim


def _or_nan(result: Any, ordered: Tracer) -> Any:
    """The result, but NaN where an element is: NaN is sorted last."""
    if not is_inexact(ordered.dtype):
        return result
    return np.where(np.isnan(ordered[-1]), operand(math.nan, result.dtype, ()), result)


def _axes_restored(result: Any, axes: tuple[int, ...], ndim: int, keepdims: Any, lead: int = 0) -> Any:
    if keepdims is NO_VALUE or not keepdims:
        return result
    rest = iter(result.shape[lead:])
    return reshaped(result, (*result.shape[:lead], *(1 if i in axes else next(rest) for i in range(ndim))))


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The middle element along axes, or the mean of the two in the middle."""
    ordered, axes, ndim = _sorted_first(a, axis)
    middle = ordered.shape[0] // 2
    result = np.mean(ordered[middle - 1 + ordered.shape[0] % 2 : middle + 1], 0)
    return deliver(_axes_restored(_or_nan(result, ordered), axes, ndim, keepdims), out, "median")


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    **options: Any,
) -> Any:
    """The value below which a part `q` of the elements along axes lies, by linear interpolation."""
    if method != "linear" or any(v is not None for v in options.values()):
        raise NotImplementedError(f"np.quantile of traced values takes method='linear' alone{at_line(user_line())}")
    ordered, axes, ndim = _sorted_first(a, axis)
    if not is_inexact(ordered.dtype):
        ordered = cast(ordered, np.dtype(np.float64))
    if isinstance(q, float | int) and not isinstance(q, np.generic):
        q = ordered.dtype.type(q)
    elif not isinstance(q, Tracer):
        q = np.asarray(q)
    last = ordered.shape[0] - 1
    position = q * last
    below = np.clip(np.floor(position), 0, last).astype(np.int64)
    above = np.minimum(below + 1, last)
    fraction = np.reshape(position - below, np.shape(q) + (1,) * (ordered.ndim - 1)).astype(position.dtype)
    low, high = ordered[below], ordered[above]
    result = _or_nan(low + (high - low) * fraction, ordered)
    return deliver(_axes_restored(result, axes, ndim, keepdims, np.ndim(q)), out, "quantile")


@implements(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
    """The value below which `q` percent of the elements along axes lie, by linear interpolation."""
    x = asarray(a)
    if isinstance(q, float | int) and is_inexact(x.dtype):
        q = x.dtype.type(q)
    part = np.true_divide(q, 100) if isinstance(q, Tracer | np.generic) else np.asarray(q) / 100
    return np.quantile(x, part, axis, *args, **options)


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """The covariances of variables, of which each row of `m` holds the observations."""
    x = asarray(m)
    x = cast(x, np.promote_types(x.dtype, np.float64) if dtype is None else np.dtype(dtype))
    rows = [np.atleast_2d(x) if rowvar or x.ndim == 1 else np.transpose(x)]
    if y is not None:
        y = cast(asarray(y), x.dtype)
        rows.append(np.atleast_2d(y) if rowvar or y.ndim == 1 else np.transpose(y))
    x = np.concatenate(rows, 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = [w for w in (fweights, aweights) if w is not None]
    if not weights:
        apart = x - np.mean(x, 1, keepdims=True)
        count = max(x.shape[1] - ddof, 0)
        return np.squeeze(apart @ np.conj(apart.T) / count)
    w = np.multiply(*weights) if len(weights) == 2 else weights[0]
    total = np.sum(w)
    apart = x - (np.sum(x * w, 1) / total)[:, None]
    less = ddof * np.sum(w * aweights) / total if aweights is not None else ddof
    return np.squeeze((apart * w) @ np.conj(apart.T) / (total - less))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The correlations of variables, of which each row of `x` holds the observations."""
    c = np.cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviations = np.sqrt(np.real(np.diagonal(c)))
    return c / deviations[:, None] / deviations
