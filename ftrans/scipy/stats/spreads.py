"""Functions of samples: scores, spreads, entropies, angles, and distances between samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...numpy.promotion import asarray
from ..special import boxcox as transformed
from ..special import entr, rel_entr
from .summaries import count, implemented, sample

__all__ = [
    "boxcox_llf", "circmean", "circstd", "circvar", "energy_distance", "entropy", "gzscore", "iqr",
    "median_abs_deviation", "wasserstein_distance", "zmap", "zscore",
]  # fmt: skip


# Scores


@implemented
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Scores less the mean of a sample, over its standard deviation; NaN where the sample is constant."""
    compare, along = sample(compare, axis, nan_policy)
    scores, _ = sample(scores, 0)
    mean, deviation = (f(compare, axis=along, keepdims=True) for f in (np.mean, np.std))
    if ddof:
        deviation = np.std(compare, axis=along, ddof=ddof, keepdims=True)
    is_constant = deviation <= np.finfo(compare.dtype).eps * np.abs(mean)
    return np.where(is_constant, math.nan, (scores - mean) / np.where(is_constant, 1.0, deviation))


@implemented
def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Numbers less their mean, over their standard deviation."""
    return zmap(a, a, axis, ddof, nan_policy)


@implemented
def gzscore(a: Any, *, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """The scores of the logarithms."""
    return zscore(np.log(asarray(a)), axis, ddof, nan_policy)


# Spreads


@implemented
def iqr(
    x: Any,
    axis: Any = None,
    rng: tuple[float, float] = (25, 75),
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """The range between two percentiles of a sample."""
    x, axis = sample(x, axis, nan_policy)
    low, high = np.percentile(x, sorted(rng), axis=axis, method=interpolation, keepdims=keepdims)
    # Between the quartiles of a normal distribution are 1.349 standard deviations.
    return (high - low) / (1.3489795003921634 if scale == "normal" else scale)


@implemented
def median_abs_deviation(
    x: Any,
    axis: Any = 0,
    center: Any = None,
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The median of the distances from the median."""
    x, axis = sample(x, axis, nan_policy)
    middle = np.median(x, axis=axis, keepdims=True) if center is None else np.expand_dims(center(x, axis=axis), axis)
    found = np.median(np.abs(x - middle), axis=axis, keepdims=keepdims)
    return found / (0.6744897501960817 if scale == "normal" else scale)


@implemented
def entropy(
    pk: Any,
    qk: Any = None,
    base: Any = None,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """The entropy of probabilities, which are divided by their sum; with `qk` that relative to other ones."""
    pk, along = sample(pk, axis, nan_policy)
    pk = pk / np.sum(pk, axis=along, keepdims=True)
    if qk is None:
        terms = entr(pk)
    else:
        qk, _ = sample(qk, axis)
        terms = rel_entr(pk, qk / np.sum(qk, axis=along, keepdims=True))
    found = np.sum(terms, axis=along, keepdims=keepdims)
    return found if base is None else found / np.log(base)


@implemented
def boxcox_llf(lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The logarithmic likelihood of the parameter of a Box-Cox transformation."""
    data, axis = sample(data, axis, nan_policy)
    logarithms = np.sum(np.log(data), axis=axis, keepdims=keepdims)
    variance = np.var(transformed(data, lmb), axis=axis, keepdims=keepdims)
    return (lmb - 1) * logarithms - 0.5 * count(data, axis) * np.log(variance)


# Angles


def _mean_vector(samples: Any, axis: Any, period: Any, keepdims: bool) -> tuple[Any, Any]:
    angles = samples * (2 * math.pi / period)
    return tuple(np.mean(f(angles), axis=axis, keepdims=keepdims) for f in (np.sin, np.cos))


@implemented
def circmean(
    samples: Any,
    high: Any = 2 * math.pi,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The mean of angles, or of other numbers between `low` and `high`, where `high` is `low` again."""
    samples, axis = sample(samples, axis, nan_policy)
    sine, cosine = _mean_vector(samples, axis, high - low, keepdims)
    return np.mod(np.arctan2(sine, cosine) * ((high - low) / (2 * math.pi)) - low, high - low) + low


@implemented
def circvar(
    samples: Any,
    high: Any = 2 * math.pi,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Any:
    """The variance of angles: 1 less the length of the mean of their unit vectors."""
    samples, axis = sample(samples, axis, nan_policy)
    return 1 - np.minimum(np.hypot(*_mean_vector(samples, axis, high - low, keepdims)), 1.0)


@implemented
def circstd(
    samples: Any,
    high: Any = 2 * math.pi,
    low: Any = 0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    normalize: bool = False,
    keepdims: bool = False,
) -> Any:
    """The standard deviation of angles."""
    samples, axis = sample(samples, axis, nan_policy)
    length = np.minimum(np.hypot(*_mean_vector(samples, axis, high - low, keepdims)), 1.0)
    found = np.sqrt(-2 * np.log(length))
    return found if normalize else found * ((high - low) / (2 * math.pi))


# Distances between samples


def _shares(u_values: Any, v_values: Any, u_weights: Any, v_weights: Any) -> tuple[Any, Any]:
    """The distance between the distribution functions of two samples in each interval, and the lengths of these."""
    u, v = sample(u_values, 0)[0], sample(v_values, 0)[0]
    ends = np.sort(np.concatenate([u, v]))
    shares = [_share_below(x, weights, ends[:-1]) for x, weights in ((u, u_weights), (v, v_weights))]
    return np.abs(shares[0] - shares[1]), np.diff(ends)


def _share_below(x: Any, weights: Any, ends: Any) -> Any:
    order = np.argsort(x)
    places = np.searchsorted(x[order], ends, "right")
    if weights is None:
        return places / x.size
    sums = np.concatenate([[0.0], np.cumsum(asarray(weights)[order])])
    return sums[places] / sums[-1]


@implemented
def wasserstein_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """The earth mover's distance between two samples of numbers."""
    difference, lengths = _shares(u_values, v_values, u_weights, v_weights)
    return np.sum(difference * lengths)


@implemented
def energy_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """The energy distance between two samples of numbers."""
    difference, lengths = _shares(u_values, v_values, u_weights, v_weights)
    return math.sqrt(2) * np.sqrt(np.sum(difference**2 * lengths))
