"""`scipy.spatial.distance` on arrays and traced values.

    >>> import numpy as np, ftrans as ft
    >>> from ftrans.scipy.spatial import distance
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> ft.grad(lambda x: np.sum(distance.pdist(x)))(points)
    array([[-0.6, -0.8],
           [ 0.6,  0.8]])

Where a distance is 0 its derivative is 0, so that those of a point to itself do no harm.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.spatial.distance
from scipy.spatial.distance import is_valid_dm as is_valid_dm
from scipy.spatial.distance import is_valid_y as is_valid_y
from scipy.spatial.distance import num_obs_dm as num_obs_dm
from scipy.spatial.distance import num_obs_y as num_obs_y

from ...base.source import at_line, user_line
from ...numpy.delivery import deliver
from ...numpy.dispatch import implements, refused
from ...numpy.promotion import asarray, cast
from . import metrics

__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "dice", "directed_hausdorff",
    "euclidean", "hamming", "is_valid_dm", "is_valid_y", "jaccard", "jensenshannon", "mahalanobis", "minkowski",
    "num_obs_dm", "num_obs_y", "pdist", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean",
    "squareform", "yule",
]  # fmt: skip

_OF_BOOLEANS = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
_COUNTS = "it counts booleans, so it has no derivative; apply it outside the traced function, or write the sums"


def _vector(name: str, x: Any) -> Any:
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"{name}: input vector should be 1-D, not {x.type}{at_line(user_line())}")
    return cast(x, np.dtype(np.float64)) if x.dtype.kind in "biu" else x


def _of_vectors(metric: metrics.Metric, constant: bool = False) -> Callable[..., Any]:
    name = metric.__name__

    def of_two(u: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        return metric(_vector(name, u), _vector(name, v), *args, **kwargs)

    of_two.__name__ = name
    vars(of_two)["__signature__"] = inspect.signature(metric)
    of_two.__doc__ = f"{metric.__doc__}  `scipy.spatial.distance.{name}`, for two vectors."
    public: Callable[..., Any] = implements(getattr(scipy.spatial.distance, name), constant=constant)(of_two)
    return public


braycurtis = _of_vectors(metrics.braycurtis)
canberra = _of_vectors(metrics.canberra)
chebyshev = _of_vectors(metrics.chebyshev)
cityblock = _of_vectors(metrics.cityblock)
correlation = _of_vectors(metrics.correlation)
cosine = _of_vectors(metrics.cosine)
euclidean = _of_vectors(metrics.euclidean)
hamming = _of_vectors(metrics.hamming, constant=True)
mahalanobis = _of_vectors(metrics.mahalanobis)
minkowski = _of_vectors(metrics.minkowski)
seuclidean = _of_vectors(metrics.seuclidean)
sqeuclidean = _of_vectors(metrics.sqeuclidean)
dice, jaccard, rogerstanimoto, russellrao, sokalsneath, yule = (
    refused(getattr(scipy.spatial.distance, name), f"scipy.spatial.distance.{name}", _COUNTS) for name in _OF_BOOLEANS
)


@implements(scipy.spatial.distance.jensenshannon)
def jensenshannon(p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """The root of the Jensen-Shannon divergence of distributions along an axis."""
    return metrics.jensenshannon(asarray(p), asarray(q), base, axis, keepdims)


def _points(name: str, x: Any) -> Any:
    x = asarray(x)
    if x.ndim != 2:
        raise ValueError(f"{name} takes points (count, dimension), not {x.type}{at_line(user_line())}")
    return cast(x, np.dtype(np.float64))


def _metric_of(name: str, metric: Any, points: list[Any], options: dict[str, Any]) -> metrics.Metric:
    """The metric of a name, with the options that SciPy computes from all points by default.

    Raises:
        ValueError: there is no metric of that name, or it is one of booleans.
    """
    known = metrics.BY_NAME.get(str(metric).lower().removeprefix("test_"))
    if known is None:
        raise ValueError(
            f"{name}: unknown distance metric {metric!r} for traced values; there are "
            f"{', '.join(sorted({m.__name__ for m in metrics.BY_NAME.values()}))}{at_line(user_line())}"
        )
    if known is metrics.seuclidean and options.get("V") is None:
        options["V"] = np.var(np.concatenate(points), axis=0, ddof=1)
    if known is metrics.mahalanobis and options.get("VI") is None:
        every = np.concatenate(points)
        if every.shape[0] <= every.shape[1]:
            raise ValueError(
                f"{name}: the number of points ({every.shape[0]}) is too small for a covariance matrix of "
                f"{every.shape[1]} dimensions; give VI={at_line(user_line())}"
            )
        options["VI"] = np.linalg.inv(np.atleast_2d(np.cov(every.T)))
    if options.get("w", 0) is None:
        del options["w"]
    return known


@implements(scipy.spatial.distance.cdist)
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances (m, n) of points (m, dimension) to points (n, dimension).

    Arguments are SciPy's, `out` aside; the metric may be a function of two points.  Where two are equal, the
    derivative of their distance is 0.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy.spatial.distance import cdist
        >>> points = np.array([[3.0, 4.0], [0.0, 2.0]])
        >>> print(ft.grad(lambda p: np.sum(cdist(p, np.zeros((1, 2)))))(points))
        [[0.6 0.8]
         [0.  1. ]]
    """
    a, b = _points("cdist", XA), _points("cdist", XB)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"cdist: points {a.type} and {b.type} differ in dimension{at_line(user_line())}")
    if callable(metric):
        rows = [np.stack([metric(u, v, **kwargs) for v in b]) for u in a]
        return deliver(np.stack(rows), out, "cdist")
    known = _metric_of("cdist", metric, [a, b], kwargs)
    return deliver(known(a[:, None], b[None], **kwargs), out, "cdist")


@implements(scipy.spatial.distance.pdist)
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances (m * (m - 1) / 2,) of each pair of points (m, dimension), as `squareform` takes them."""
    x = _points("pdist", X)
    first, second = np.triu_indices(x.shape[0], 1)
    if callable(metric):
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        return deliver(np.stack([metric(x[i], x[j], **kwargs) for i, j in pairs]), out, "pdist")
    known = _metric_of("pdist", metric, [x], kwargs)
    return deliver(known(x[first], x[second], **kwargs), out, "pdist")


@implements(scipy.spatial.distance.squareform)
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The matrix (n, n) of a vector of distances, or the vector of a matrix, whose upper triangle is read."""
    x = asarray(X)
    wanted = {"tomatrix": 1, "tovector": 2}.get(force.lower(), x.ndim)
    if x.ndim not in (1, 2) or x.ndim != wanted or (x.ndim == 2 and x.shape[0] != x.shape[1]):
        raise ValueError(
            f"squareform takes a vector of distances or a square matrix, not {x.type} with force={force!r}"
            + at_line(user_line())
        )
    if x.ndim == 2:
        upper = np.triu_indices(x.shape[0], 1)
        return x[upper]
    size = x.shape[0]
    n = math.isqrt(2 * size) + 1 if size else 1
    if n * (n - 1) != 2 * size:
        raise ValueError(f"squareform: {size} is no number of pairs n * (n - 1) / 2 of n points{at_line(user_line())}")
    upper = np.triu_indices(n, 1)
    places = np.full((n, n), size)
    places[upper] = places.T[upper] = np.arange(size)
    return np.concatenate([x, np.zeros_like(x, shape=(1,))])[places]


@implements(scipy.spatial.distance.directed_hausdorff)
def directed_hausdorff(u: Any, v: Any, rng: Any = 0, seed: Any = None) -> Any:
    """The largest distance of a point of `u` to its nearest of `v`, and the indices of both."""
    distances = cdist(_points("directed_hausdorff", u), _points("directed_hausdorff", v))
    nearest = np.min(distances, axis=1)
    i = np.argmax(nearest)
    return nearest[i], i, np.argmin(distances, axis=1)[i]


def __dir__() -> list[str]:
    return __all__
