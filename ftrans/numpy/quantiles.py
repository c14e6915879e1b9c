"""Order statistics: medians, quantiles and percentiles, of all elements or of those that are not NaN.

Where the elements in question are known only by their order, as here, the derivative of the result is that of the
elements which have it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.foreign import NO_VALUE
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import Shape, is_complex, is_inexact
from ..ops.elementwise import lerp
from ..ops.literals import full
from .delivery import deliver
from .dispatch import implements
from .manipulation import normal_axes
from .promotion import asarray, broadcast_to, has_tracer, is_weak, operand, reshaped, value_in_hand
from .statistics import weights_over

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

# The methods of Hyndman and Fan ("Sample quantiles in statistical packages", 1996) that interpolate: the constants of
# the place n q + alpha + q (1 - alpha - beta) - 1, counted from 0.
_PLOTTING_CONSTANTS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_METHODS = (
    *_PLOTTING_CONSTANTS, "linear", "averaged_inverted_cdf", "midpoint", "inverted_cdf", "closest_observation", "lower",
    "higher", "nearest",
)  # fmt: skip


def _reduced_first(x: Tracer, axes: Shape) -> Tracer:
    """The array with its reduced axes as one, the first."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    moved = asarray(np.transpose(x, (*axes, *rest)))
    return reshaped(moved, (math.prod(x.shape[i] for i in axes), *(x.shape[i] for i in rest)))


def _elements(a: Any, axis: Any) -> tuple[Tracer, Shape, Tracer]:
    """The array, its reduced axes, and the array with these as one, the first."""
    x = asarray(a)
    axes = tuple(sorted(normal_axes(axis, x.ndim)))
    return x, axes, _reduced_first(x, axes)


def _axes_restored(result: Any, axes: Shape, ndim: int, keepdims: Any, lead: int = 0) -> Any:
    if keepdims is NO_VALUE or not keepdims:
        return result
    rest = iter(result.shape[lead:])
    return reshaped(result, (*result.shape[:lead], *(1 if i in axes else next(rest) for i in range(ndim))))


def _or_nan(result: Any, ordered: Tracer) -> Any:
    """The result, but NaN where an element is: NaN is sorted last."""
    if not is_inexact(ordered.dtype):
        return result
    return np.where(np.isnan(ordered[-1]), operand(math.nan, result.dtype, ()), result)


def _valid_count(x: Tracer) -> Any:
    """How many elements along the first axis are not NaN: a number where none can be."""
    return np.sum(~np.isnan(x), 0) if is_inexact(x.dtype) else x.shape[0]


def _per_line(ordered: Tracer, places: Any) -> Any:
    """The elements at places along the first axis, of which each line has its own: after its own axes."""
    lead = places.shape[: places.ndim - ordered.ndim + 1]
    flat = np.reshape(places, (math.prod(lead), *ordered.shape[1:]))
    return np.reshape(np.take_along_axis(ordered, flat, 0), (*lead, *ordered.shape[1:]))


# Medians


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The median along axes: the middle element, or the mean of the two middle ones."""
    x, axes, flat = _elements(a, axis)
    ordered: Any = np.sort(flat, 0)
    middle = ordered.shape[0] // 2
    result = np.mean(ordered[max(middle - 1 + ordered.shape[0] % 2, 0) : middle + 1], 0)
    result = _or_nan(result, ordered) if ordered.shape[0] else result
    return deliver(_axes_restored(result, axes, x.ndim, keepdims), out, "median")


@implements(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = NO_VALUE
) -> Any:
    """The median of the elements that are not NaN."""
    x, axes, flat = _elements(a, axis)
    if not is_inexact(x.dtype) or not flat.shape[0]:
        return np.median(x, axis, out, overwrite_input, False if keepdims is NO_VALUE else keepdims)
    count = np.maximum(_valid_count(flat), 1)
    ordered: Any = np.sort(flat, 0)
    low, high = (_per_line(ordered, places[None])[0] for places in ((count - 1) // 2, count // 2))
    result = np.where(count % 2 == 1, low, (low + high) / 2)
    return deliver(_axes_restored(result, axes, x.ndim, keepdims), out, "nanmedian")


# Quantiles


def _places(method: str, n: Any, q: Any) -> tuple[Any, Any]:
    """Where quantiles are among `n` elements in order: places counted from 0, and how far on to the next, or None."""
    if method == "inverted_cdf":
        place = n * q - 1
        below = np.floor(place)
        return np.where(place == below, below, below + 1), None
    if method == "closest_observation":
        place = n * q - 1.5
        below = np.floor(place)
        return np.where((place == below) & (below % 2 == 1), below, below + 1), None
    if method in ("lower", "higher", "nearest"):
        rounded = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}[method]
        return rounded((n - 1) * q), None
    if method == "midpoint":
        place = (np.floor((n - 1) * q) + np.ceil((n - 1) * q)) * 0.5
        return place, np.where(place % 1 == 0, 0.0, 0.5)
    if method == "averaged_inverted_cdf":
        place = n * q - 1.0
        return place, np.where(place % 1 == 0, 0.5, 1.0)
    if method == "linear":
        place = (n - 1) * q
    else:
        alpha, beta = _PLOTTING_CONSTANTS[method]
        place = n * q + (alpha + q * (1 - alpha - beta)) - 1
    return place, place - np.floor(place)


def _interpolated(ordered: Tracer, q: Any, n: Any, method: str, is_weak_q: bool) -> Any:
    """Quantiles along the first axis, of the first `n` elements; axes of `q` come first."""
    q = np.reshape(q, np.shape(q) + (1,) * np.ndim(n))
    # Like a number of Python, a count leaves the precision to `q`.
    count = n.astype(q.dtype) if type(n) is Tracer and q.dtype.kind == "f" else n
    place, part = _places(method, count, q)
    part = part if place.dtype.kind == "f" else None
    last = np.maximum(n - 1, 0)
    below = np.clip(np.floor(place), 0, last).astype(np.int64)

    def at(places: Any) -> Any:
        return _per_line(ordered, places) if np.ndim(n) else np.take(ordered, places, 0)

    low = at(below)
    if part is None:
        return low
    above = np.where(place < 0, 0, np.minimum(below + 1, last))
    high = at(above)
    part = np.reshape(part, np.shape(part) + (1,) * (low.ndim - np.ndim(part))).astype(place.dtype)
    if is_weak_q and is_inexact(ordered.dtype):
        part = part.astype(ordered.dtype)
    if is_inexact(ordered.dtype) and ordered.dtype == part.dtype:
        return lerp(low, high, broadcast_to(asarray(part), low.shape))
    apart = high - low
    return np.where(part >= 0.5, high - apart * (1 - part), low + apart * part)


def _weighted(flat: Tracer, weights: Tracer, q: Any) -> Any:
    """Quantiles along the first axis where each element counts as often as its weight says."""
    order: Any = np.argsort(flat, 0, kind="stable")
    ordered: Any = np.take_along_axis(flat, order, 0)
    heights: Any = np.take_along_axis(weights, order, 0)
    cdf = np.cumsum(heights, 0, np.float64)
    cdf = cdf / cdf[-1]
    q = asarray(q)
    cdf = cdf.astype(q.dtype) if q.dtype.kind == "f" else cdf
    cdf = np.where(cdf == 0, -1.0, cdf)
    below = np.sum(cdf < np.reshape(q, (q.size, *(1,) * flat.ndim)), 1)
    found = _per_line(asarray(ordered), np.minimum(below, flat.shape[0] - 1))
    return np.reshape(found, (*q.shape, *flat.shape[1:]))


def _check_weights(weights: Any, shape: Shape, axes: Shape) -> None:
    """Raise what NumPy raises for weights of elements in `shape`, if they are known."""
    known = value_in_hand(weights)
    if known is None:
        return
    if np.any(known < 0):
        raise ValueError(f"Weights must be non-negative.{at_line(user_line())}")
    total = np.sum(np.broadcast_to(known, shape), axes)
    if not np.all(np.isfinite(total) & (total != 0)):
        raise ValueError(f"Weights included NaN, inf or were all zero.{at_line(user_line())}")


def _quantile(
    a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, is_weak_q: bool, skips_nan: bool
) -> Any:
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(_METHODS)}{at_line(user_line())}")
    x, axes, flat = _elements(a, axis)
    if is_complex(x.dtype):
        raise TypeError(f"a must be an array of real numbers, not {x.type}{at_line(user_line())}")
    if np.ndim(q) > 2:
        raise ValueError(f"q must be a scalar or 1d{at_line(user_line())}")
    if not flat.shape[0]:
        if not skips_nan:
            raise IndexError(f"quantiles of no elements, over axes {axes} of {x.type}{at_line(user_line())}")
        nothing = full((*np.shape(q), *flat.shape[1:]), math.nan, x.dtype if is_inexact(x.dtype) else np.float64)
        return deliver(_axes_restored(nothing, axes, x.ndim, keepdims, np.ndim(q)), out, "quantile")
    if weights is None:
        ordered = asarray(np.sort(flat, 0))
        n = _valid_count(flat) if skips_nan else flat.shape[0]
        result = _interpolated(ordered, q, n, method, is_weak_q)
    else:
        if method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.{at_line(user_line())}")
        weights = weights_over(x, weights, axis)
        _check_weights(weights, x.shape, axes)
        heights = _reduced_first(broadcast_to(asarray(weights), x.shape), axes)
        if skips_nan and is_inexact(x.dtype):
            heights = asarray(np.where(np.isnan(flat), 0, heights))
        ordered = asarray(np.sort(flat, 0))
        result = _weighted(flat, heights, q)
    result = result if skips_nan else _or_nan(result, ordered)
    return deliver(_axes_restored(result, axes, x.ndim, keepdims, np.ndim(q)), out, "quantile")


def _parts(q: Any, whole: float, name: str) -> tuple[Any, bool]:
    """Quantiles as parts of 1, and whether they leave the dtype of the result to the elements."""
    leaves_dtype = is_weak(q) and not is_plain(q, bool)
    q = asarray(q) if has_tracer(q) else np.asarray(q)
    parts = q if whole == 1 else np.true_divide(q, whole)
    known = value_in_hand(parts)
    if known is not None and known.dtype.kind != "c" and not np.all((known >= 0) & (known <= 1)):
        raise ValueError(f"{name} must be in the range [0, {whole:g}]{at_line(user_line())}")
    return parts, leaves_dtype


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The `q`-th quantile of the elements along axes.

    A `q` that is not between 0 and 1 is an error, except compiled or under `vmap`, where its values are not known.
    """
    parts, is_weak_q = _parts(q, 1, "Quantiles")
    return _quantile(a, parts, axis, out, method, keepdims, weights, is_weak_q, False)


@implements(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """The `q`-th percentile of the elements along axes."""
    parts, is_weak_q = _parts(q, 100, "Percentiles")
    return _quantile(a, parts, axis, out, method, keepdims, weights, is_weak_q, False)


@implements(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: Any = None,
) -> Any:
    """The quantile of the elements that are not NaN."""
    parts, is_weak_q = _parts(q, 1, "Quantiles")
    return _quantile(a, parts, axis, out, method, keepdims, weights, is_weak_q, True)


@implements(np.nanpercentile)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = NO_VALUE,
    *,
    weights: Any = None,
) -> Any:
    """The percentile of the elements that are not NaN."""
    parts, is_weak_q = _parts(q, 100, "Percentiles")
    return _quantile(a, parts, axis, out, method, keepdims, weights, is_weak_q, True)
