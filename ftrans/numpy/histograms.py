"""Functions that count, or add up weights, per bin.  Counts are constant; sums have derivatives in the weights."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..core.witness import concretize
from ..ops.literals import full
from .dispatch import implements
from .layouts import own
from .promotion import asarray, cast, has_tracer, result_dtype, value_in_hand

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """The number of occurrences of each integer, or the sum of its weights; the largest integer must be known."""
    indices = asarray(x)
    if indices.dtype.kind not in "biu" or indices.ndim != 1:
        raise TypeError(f"bincount takes integers along one axis, not {indices.type}{at_line(user_line())}")
    known = concretize(indices, "the number of bins of") if type(x) is Tracer else x
    known = np.asarray(known).astype(np.intp)
    if known.size and known.min() < 0:
        raise ValueError(f"bincount takes no negative elements, but one is {known.min()}{at_line(user_line())}")
    size = max(operator.index(minlength), int(known.max()) + 1 if known.size else 0)
    w = full(indices.shape, 1, np.intp) if weights is None else asarray(weights)
    if w.shape != indices.shape or is_complex(w.dtype):
        raise (TypeError if is_complex(w.dtype) else ValueError)(
            f"bincount takes a real weight for each of {indices.type}, not {w.type}{at_line(user_line())}"
        )
    w = w if weights is None else cast(w, np.dtype(np.float64))
    counts = full((size,), 0, w.dtype)
    np.add.at(counts, np.asarray(known), w)
    return counts


@implements(np.digitize, constant=True)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The index of the bin that each element belongs to; bin edges may increase or decrease."""
    edges = asarray(bins) if has_tracer(bins) else np.asarray(bins)
    if not has_tracer(bins) and edges.ndim == 1:
        steps = np.diff(edges)
        if np.any(steps < 0) and np.any(steps > 0):
            raise ValueError(f"bins must be monotonically increasing or decreasing{at_line(user_line())}")
    side = "left" if right else "right"
    up, down = np.searchsorted(edges, x, side), len(edges) - np.searchsorted(edges[::-1], x, side)
    is_down = edges[0] > edges[-1] if len(edges) else False
    return np.where(is_down, down, up) if type(is_down) is Tracer else down if is_down else up


def _edges(x: Tracer, bins: Any, range: Any, weights: Any = None, dtypes: tuple[Any, ...] = ()) -> Any:
    """The edges of bins: known ones, or evenly spaced from the smallest element of `x` to the largest.

    Args:
        x: the elements.
        bins: as the user has given it.
        range: as the user has given it.
        weights: those of the elements.
        dtypes: those that the dtype of edges follows, beside that of the first and the last.
    """
    if np.ndim(bins):
        return bins if has_tracer(bins) else np.histogram_bin_edges(np.zeros(0), bins)
    if isinstance(bins, str):
        if weights is not None:
            raise TypeError(f"bins={bins!r} does not go with weights: give a number of bins{at_line(user_line())}")
        known = [np.asarray(concretize(v, "the number of bins of")) for v in (x, *map(asarray, range or ()))]
        bins = len(np.histogram_bin_edges(known[0], bins, known[1:] or None)) - 1
    if not x.size and range is None:
        range = (0, 1)
    if range is not None and not has_tracer(range):
        return np.histogram_bin_edges(np.zeros(0, *dtypes), bins, range)
    count = operator.index(bins)
    if count < 1:
        raise ValueError(f"`bins` must be positive, when an integer{at_line(user_line())}")
    if range is not None:
        first, last = map(asarray, range)
    else:
        first, last = np.min(x), np.max(x)
        for end in map(value_in_hand, (first, last)):
            if end is not None and not np.isfinite(end):
                raise ValueError(f"autodetected range ends at {end}, which is not finite{at_line(user_line())}")
    dtype = np.result_type(result_dtype(first, last), *dtypes)
    is_point = first == last
    first, last = np.where(is_point, first - 0.5, first), np.where(is_point, last + 0.5, last)
    return np.linspace(first, last, count + 1).astype(dtype if is_inexact(dtype) else np.float64)


def _place(x: Tracer, edges: Any) -> tuple[Any, Any]:
    """The number of the bin of each element, and whether it is in one; the last bin has both of its edges."""
    count = len(edges) - 1
    place = np.searchsorted(edges, x, "right") - 1
    place = np.where(x == edges[-1], count - 1, place)
    inside = (x >= edges[0]) & (x <= edges[-1])
    return np.where(inside, place, 0), inside


def _counted(place: Any, inside: Any, weights: Any, count: int) -> Tracer:
    w = full(place.shape, 1, np.intp) if weights is None else asarray(weights)
    counts = full((count,), 0, w.dtype)
    np.add.at(counts, place, np.where(inside, w, np.zeros((), w.dtype)))
    return counts


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins of `histogram`."""
    x: Any = np.ravel(asarray(a))
    return _edges(x, bins, range, weights, (x.dtype,))


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The histogram: counts, or sums of weights, per bin; and the bin edges."""
    x: Any = np.ravel(asarray(a))
    if weights is not None:
        weights = asarray(weights)
        if weights.shape != asarray(a).shape:
            raise ValueError(f"weights should have the same shape as a.{at_line(user_line())}")
        weights = np.ravel(weights)
    edges = _edges(x, bins, range, weights, (x.dtype,))
    counts: Any = _counted(*_place(x, edges), weights, len(edges) - 1)
    if density:
        counts = counts / np.diff(edges).astype(np.float64) / np.sum(counts)
    return counts, edges


@implements(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The multidimensional histogram of points given as rows, and the bin edges along each axis."""
    points: Any = asarray(sample) if hasattr(sample, "shape") else np.transpose(np.atleast_2d(asarray(sample)))
    points = np.transpose(np.atleast_2d(points)) if points.ndim < 2 else points
    count, dims = points.shape
    bins = [*bins] if hasattr(bins, "__len__") else [bins] * dims
    if len(bins) != dims:
        raise ValueError(f"The dimension of bins must be equal to the dimension of the sample x.{at_line(user_line())}")
    ranges = [None] * dims if range is None else [*range]
    if len(ranges) != dims:
        raise ValueError(f"range argument must have one entry per dimension{at_line(user_line())}")
    columns = [points[:, i] for i in builtins.range(dims)]
    edges = [_edges(x, b, r) for x, b, r in zip(columns, bins, ranges, strict=True)]
    shape = tuple(len(e) - 1 for e in edges)
    place: Any = np.zeros(count, np.int64)
    inside: Any = np.ones(count, bool)
    for x, e, n in zip(columns, edges, shape, strict=True):
        along, is_in = _place(x, e)
        place, inside = place * n + along, inside & is_in
    counts: Any = _counted(place, inside, weights, int(np.prod(shape))).reshape(shape).astype(np.float64)
    if density:
        total = np.sum(counts)
        for axis, e in enumerate(edges):
            counts = counts / np.diff(e).reshape((-1,) + (1,) * (dims - axis - 1))
        counts = counts / total
    return own(counts, None, "?"), edges


@implements(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    """The two-dimensional histogram, and the bin edges along each axis."""
    if len(x) != len(y):
        raise ValueError(f"x and y must have the same length.{at_line(user_line())}")
    if hasattr(bins, "__len__") and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = np.histogramdd(np.stack([asarray(x), asarray(y)], -1), bins, range, density, weights)
    return counts, edges[0], edges[1]
