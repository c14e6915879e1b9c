"""Distances along the last axis of arrays, which broadcast: what the functions of `scipy.spatial.distance` share.

At a kink the derivative is the library's: where a distance is 0, it is 0.  Formulas are those of SciPy's documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from ...base.source import at_line, user_line
from ...numpy.promotion import asarray, has_tracer
from ...ops.elementwise import stop_gradient

Metric = Callable[..., Any]


def root(x: Any) -> Any:
    """The square root, whose derivatives at 0 are 0."""
    is_zero = x == 0
    return np.where(is_zero, 0.0, np.sqrt(np.where(is_zero, 1.0, x)))


def weights_of(w: Any, name: str = "w") -> Any:
    """Weights as an array of floats.

    Raises:
        ValueError: one is negative.
    """
    if has_tracer(w):
        return asarray(w)
    w = np.asarray(w, np.float64)
    if np.any(w < 0):
        raise ValueError(f"weights should be all non-negative, but {name} = {w}{at_line(user_line())}")
    return w


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    """The norm of order `p` of the weighted difference."""
    if not has_tracer(p) and p <= 0:
        raise ValueError(f"p must be greater than 0, not {p}{at_line(user_line())}")
    difference = u - v
    if w is not None:
        w = weights_of(w)
        if has_tracer(p) or p not in (1, 2, np.inf):
            scale = np.power(w, 1 / p)
        else:
            scale = w if p == 1 else root(w) if p == 2 else (w != 0) * 1.0
        difference = scale * difference
    if not has_tracer(p):
        return np.linalg.norm(difference, p, -1)
    total = np.sum(np.abs(difference) ** p, -1)
    is_zero = total == 0
    return np.where(is_zero, 0.0, np.where(is_zero, 1.0, total) ** (1 / p))


def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The length of the difference."""
    return minkowski(u, v, 2, w)


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The squared length of the difference."""
    return _sum((u - v) ** 2, w)


def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of absolute differences."""
    return _sum(np.abs(u - v), w)


def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    """The largest absolute difference, of components whose weight is not 0."""
    difference = np.abs(u - v)
    return np.max(difference if w is None else (weights_of(w) > 0) * difference, -1)


def canberra(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of absolute differences over sums of absolute values; 0 / 0 counts as 0."""
    size = np.abs(u) + np.abs(v)
    is_zero = size == 0
    return _sum(np.where(is_zero, 0.0, np.abs(u - v) / np.where(is_zero, 1.0, size)), w)


def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of absolute differences over that of absolute sums."""
    return _sum(np.abs(u - v), w) / _sum(np.abs(u + v), w)


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """1 minus the correlation coefficient."""
    if w is None:
        w = 1.0 / u.shape[-1]
    else:
        w = weights_of(w)
        w = w / np.sum(w, -1, keepdims=True)
    if centered:
        u, v = (x - np.sum(w * x, -1, keepdims=True) for x in (u, v))
    product, of_u, of_v = (np.sum(w * x * y, -1) for x, y in ((u, v), (u, u), (v, v)))
    distance = asarray(1.0 - product / np.sqrt(of_u * of_v))
    # Clipping takes away rounding errors, and no derivatives.
    return distance + stop_gradient(asarray(np.clip(distance, 0.0, 2.0) - distance))


def cosine(u: Any, v: Any, w: Any = None) -> Any:
    """1 minus the cosine of the angle."""
    return correlation(u, v, w, centered=False)


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """The length of the difference with the inverse covariance `VI` as metric."""
    difference = u - v
    return root(np.sum(difference * (difference @ np.swapaxes(VI, -1, -2)), -1))


def seuclidean(u: Any, v: Any, V: Any) -> Any:
    """The length of the difference, each component divided by its standard deviation; `V` are variances."""
    return euclidean(u, v, 1 / asarray(V))


def jensenshannon(p: Any, q: Any, base: Any = None, axis: int = -1, keepdims: bool = False) -> Any:
    """The root of the Jensen-Shannon divergence of two distributions, which are normalized."""
    p, q = (x / np.sum(x, axis, keepdims=True) for x in (p, q))
    middle = (p + q) / 2.0
    terms = scipy.special.rel_entr(p, middle), scipy.special.rel_entr(q, middle)
    divergence = sum(np.sum(t, axis, keepdims=keepdims) for t in terms)
    if base is not None:
        divergence = divergence / np.log(base)
    return root(divergence / 2.0)


def hamming(u: Any, v: Any, w: Any = None) -> Any:
    """The share of components that differ."""
    if w is None:
        return np.mean(u != v, -1)
    w = weights_of(w)
    return np.sum((u != v) * (w / np.sum(w)), -1)


def _sum(x: Any, w: Any) -> Any:
    return np.sum(x if w is None else weights_of(w) * x, -1)


_NAMES: dict[Metric, str] = {
    braycurtis: "braycurtis",
    canberra: "canberra",
    chebyshev: "chebychev chebyshev cheby cheb ch",
    cityblock: "cityblock cblock cb c",
    correlation: "correlation co",
    cosine: "cosine cos",
    euclidean: "euclidean euclid eu e",
    hamming: "matching hamming hamm ha h",
    jensenshannon: "jensenshannon js",
    mahalanobis: "mahalanobis mahal mah",
    minkowski: "minkowski mi m pnorm",
    seuclidean: "seuclidean se s",
    sqeuclidean: "sqeuclidean sqe sqeuclid",
}
BY_NAME: dict[str, Metric] = {name: metric for metric, names in _NAMES.items() for name in names.split()}
