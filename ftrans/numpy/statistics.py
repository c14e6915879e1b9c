"""Means, variances, order statistics, and the forms of reductions that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.foreign import NO_VALUE
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..ops import elementwise as e
from ..ops.literals import full_like
from .delivery import deliver
from .dispatch import TABLE, implements
from .manipulation import normal_axes
from .promotion import asarray, broadcast_to, cast, has_tracer, operand, real_dtype, value_in_hand

__all__ = [
    "average", "corrcoef", "cov", "mean", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar", "std", "var",
]  # fmt: skip


def _mean_dtypes(x: Tracer, dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Dtypes in which a mean is computed and given."""
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if not is_inexact(x.dtype):
        return np.dtype(np.float64), np.dtype(np.float64)
    # NumPy adds up half precision in single precision.
    return (np.dtype(np.float32) if x.dtype == np.float16 else x.dtype), x.dtype


def _count(x: Tracer, axis: Any, keepdims: Any, where: Any, dtype: np.dtype[Any]) -> Any:
    """The number of elements that a mean is over: an array where a mask decides."""
    if where is True or where is NO_VALUE:
        return x.size if axis is None else math.prod(x.shape[a] for a in normal_axes(axis, x.ndim))
    mask = (
        np.broadcast_to(where, x.shape) if is_plain(where, np.ndarray | bool) else broadcast_to(asarray(where), x.shape)
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
    is_number = is_plain(count, int | float)
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
    apart: Any = x - (np.mean(x, axis, inner, keepdims=True, where=where) if mean is NO_VALUE or mean is None else mean)
    if dtype is None:
        inner, outer = real_dtype(inner), real_dtype(outer)
    squares = np.real(apart * np.conj(apart)) if is_complex(apart.dtype) else np.square(apart)
    total = np.sum(squares, axis, inner, keepdims=keepdims, where=where)
    count = _count(x, axis, keepdims, where, real_dtype(inner)) - _degrees_taken(ddof, correction)
    count = max(count, 0) if is_plain(count, int | float) else np.maximum(count, 0)
    return deliver(cast(_ratio(total, count, inner), outer), out, "var")


def _degrees_taken(ddof: Any, correction: Any) -> Any:
    """The delta degrees of freedom, `ddof`, under one of its two names."""
    if correction is NO_VALUE:
        return ddof
    if ddof != 0:
        raise ValueError(f"ddof and correction can't be provided simultaneously.{at_line(user_line())}")
    return correction


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
    return deliver(_deviation(np.var(a, axis, dtype, None, ddof, keepdims, **_given(**more))), out, "std")


def _deviation(variance: Any) -> Any:
    """The root of a variance, in its dtype, which `dtype=` may have chosen to be any."""
    real = np.real(variance)
    return (e.root(real) if is_inexact(real.dtype) else np.sqrt(real)).astype(variance.dtype)


def weights_over(x: Tracer, weights: Any, axis: Any) -> Any:
    """Weights of the elements of `x`, or of those along `axis`, in a shape that is broadcast to that of `x`."""
    w = asarray(weights) if has_tracer(weights) else np.asarray(weights)
    if w.shape == x.shape:
        return w
    if axis is None:
        raise TypeError(f"Axis must be specified when shapes of a and weights differ.{at_line(user_line())}")
    axes = normal_axes(axis, x.ndim)
    if w.shape != tuple(x.shape[i] for i in axes):
        raise ValueError(f"weights of shape {w.shape} fit neither {x.type} nor its axes {axis}{at_line(user_line())}")
    w = np.transpose(w, np.argsort(axes))
    return np.reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


def _check_total(weights: Any, x: Tracer, axis: Any) -> None:
    """Raise if weights, of which the values are known, sum to 0 along axes of `x`."""
    known = value_in_hand(weights)
    if known is not None and np.any(np.sum(np.broadcast_to(known, x.shape), axis) == 0):
        raise ZeroDivisionError(f"Weights sum to zero, can't be normalized{at_line(user_line())}")


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NO_VALUE) -> Any:
    """The mean weighted by `weights`, and the sum of the weights if `returned`.

    Compiled, and under `vmap`, weights that sum to 0 are not seen, and the mean is not a number.
    """
    x = asarray(a)
    if weights is None:
        result = np.mean(x, axis, keepdims=keepdims)
        scale: Any = full_like(result, x.size / max(result.size, 1))
    else:
        w = weights_over(x, weights, axis)
        _check_total(w, x, axis)
        dtype = np.result_type(x.dtype, w.dtype, *(["f8"] if x.dtype.kind in "biu" else []))
        x, w = cast(x, dtype), asarray(w)
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
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The sum along axes, with NaN treated as 0."""
    return np.sum(_without_nan(a, 0)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The product along axes, with NaN treated as 1."""
    return np.prod(_without_nan(a, 1)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanmax)
def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The maximum along axes, ignoring NaN."""
    return np.fmax.reduce(a, axis, None, out, **_given(keepdims=keepdims, initial=initial, where=where))


@implements(np.nanmin)
def nanmin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """The minimum along axes, ignoring NaN."""
    return np.fmin.reduce(a, axis, None, out, **_given(keepdims=keepdims, initial=initial, where=where))


def _given(**options: Any) -> dict[str, Any]:
    return {k: v for k, v in options.items() if v is not NO_VALUE}


def _over_valid(function: Callable[..., Any], a: Any, axis: Any, keepdims: Any, where: Any, **options: Any) -> Any:
    x, valid = _without_nan(a, 0)
    if valid is not True:
        if options.get("dtype") is not None and not is_inexact(np.dtype(options["dtype"])):
            raise TypeError(f"If a is inexact, then dtype must be inexact{at_line(user_line())}")
        where = valid if where is NO_VALUE else np.logical_and(valid, where)
    return function(x, axis, keepdims=keepdims, **_given(where=where, **options))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
) -> Any:
    """The mean along axes, ignoring NaN."""
    return deliver(_over_valid(np.mean, a, axis, keepdims, where, dtype=dtype), out, "nanmean")


@implements(np.nanvar)
def nanvar(
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
    """The variance along axes, ignoring NaN."""
    more = {"dtype": dtype, "ddof": ddof, "mean": mean, "correction": correction}
    x = asarray(a)
    result = _over_valid(np.var, x, axis, keepdims, where, **more)
    if is_inexact(x.dtype):
        # Unlike `var`, which divides by 0 then.
        count = np.sum(np.logical_not(np.isnan(x)), axis, keepdims=keepdims, **_given(where=where))
        result = np.where(count > _degrees_taken(ddof, correction), result, operand(math.nan, result.dtype, ()))
    return deliver(result, out, "nanvar")


@implements(np.nanstd)
def nanstd(
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
    """The standard deviation along axes, ignoring NaN."""
    more: dict[str, Any] = {"where": where, "mean": mean, "correction": correction}
    return deliver(_deviation(np.nanvar(a, axis, dtype, None, ddof, keepdims, **_given(**more))), out, "nanstd")


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative sum, with NaN treated as 0."""
    return np.cumsum(_without_nan(a, 0)[0], axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """The cumulative product, with NaN treated as 1."""
    return np.cumprod(_without_nan(a, 1)[0], axis, dtype, out)


# Of several variables


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
    """The covariance matrix of variables; each row of `m` holds the observations of one."""
    rows = [asarray(v) for v in (m, y) if v is not None]
    if any(x.ndim > 2 for x in rows):
        raise ValueError(
            f"m and y have at most 2 axes, not {', '.join(str(x.type) for x in rows)}{at_line(user_line())}"
        )
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"ddof must be integer{at_line(user_line())}")
    dtype = np.result_type(*(x.dtype for x in rows), np.float64) if dtype is None else np.dtype(dtype)
    is_line = [rows[0].ndim == 1, *(x.ndim < 2 or x.shape[0] == 1 for x in rows[1:])]
    tables = [np.atleast_2d(cast(x, dtype)) for x in rows]
    x: Any = np.concatenate([v if rowvar or line else v.T for v, line in zip(tables, is_line, strict=True)], 0)
    ddof = int(bias == 0) if ddof is None else ddof
    weights = [
        _observation_weights(w, x.shape[1], what) for w, what in ((fweights, "fweights"), (aweights, "aweights"))
    ]
    given: list[Any] = [w for w in weights if w is not None]
    if not given:
        apart = x - np.mean(x, 1, keepdims=True)
        count = max(x.shape[1] - ddof, 0)
        return np.squeeze(apart @ np.conj(apart.T) / count)
    w = given[0] * given[1] if len(given) == 2 else given[0]
    _check_total(w, x, 1)
    total = np.sum(w)
    apart = x - (np.sum(x * w, 1) / total)[:, None]
    less = ddof * np.sum(w * weights[1]) / total if weights[1] is not None else ddof
    return np.squeeze((apart * w) @ np.conj(apart.T) / np.maximum(total - less, 0))


def _observation_weights(weights: Any, count: int, name: str) -> Any:
    """Weights of observations in float64; known ones are checked as NumPy checks them."""
    if weights is None:
        return None
    w = cast(asarray(weights), np.dtype(np.float64))
    if w.shape != (count,):
        raise RuntimeError(f"incompatible numbers of samples and {name}: {count} and {w.type}{at_line(user_line())}")
    if not has_tracer(weights):
        known = np.asarray(weights, float)
        if name == "fweights" and not np.all(known == np.around(known)):
            raise TypeError(f"fweights must be integer{at_line(user_line())}")
        if np.any(known < 0):
            raise ValueError(f"{name} cannot be negative{at_line(user_line())}")
    return w


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The matrix of correlation coefficients of variables; each row of `x` holds the observations of one."""
    c: Any = np.cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviations = np.sqrt(np.real(np.diagonal(c)))
    found = c / deviations[:, None] / deviations
    # Rounding alone leads beyond 1, and has no derivative: what is cut off is a constant.
    beyond = found - _clipped(found)
    return found - e.stop_gradient(asarray(beyond))


def _clipped(x: Any) -> Any:
    if not is_complex(x.dtype):
        return np.clip(x, -1, 1)
    return e.complex_(asarray(np.clip(x.real, -1, 1)), asarray(np.clip(x.imag, -1, 1)))
