"""Functions that order elements, search among them, or count them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex
from ..ops import sorting as s
from ..ops.shapes import full
from .dispatch import implements
from .manipulation import normal_axis
from .promotion import asarray, cast, has_tracer, reshaped, strong_dtype
from .reductions import truth
from .selection import known_mask


def _sortable(a: Any, axis: Any) -> tuple[Tracer, int]:
    x = asarray(a)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    if is_complex(x.dtype):
        raise TypeError(f"complex values ({x.type}) have no order here; sort their real part{at_line(user_line())}")
    return x, normal_axis(axis, x.ndim)


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The elements in increasing order along an axis."""
    x, axis = _sortable(a, axis)
    return s.sort(x, axis=axis)


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The indices that put the elements into increasing order along an axis."""
    x, axis = _sortable(a, axis)
    return s.argsort(x, axis=axis, stable=bool(stable) or kind in ("stable", "mergesort"))


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """The elements with the `kth` in its sorted place; here all of them are."""
    return sort(a, axis)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """The indices that put the `kth` element in its sorted place; here all of them are."""
    return argsort(a, axis)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where to insert `v` so that `a` stays sorted."""
    table, values = asarray(a), asarray(v)
    if sorter is not None:
        table = np.take(table, sorter)
    dtype = strong_dtype(table, values)
    return s.searchsorted(cast(table, dtype), cast(values, dtype), side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of the bin that each element falls into, of bins with increasing edges."""
    if not has_tracer(bins) and np.ndim(bins) == 1 and len(bins) > 1 and bins[0] > bins[-1]:
        return len(bins) - np.searchsorted(np.asarray(bins)[::-1], x, "right" if right else "left")
    return np.searchsorted(bins, x, "left" if right else "right")


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    """Whether each element is among others."""
    found = np.any(np.equal(asarray(element)[..., None], np.ravel(asarray(test_elements))), -1)
    return ~found if invert else found


# What depends on values


@implements(np.nonzero)
def nonzero(a: Any) -> Any:
    """The indices of the elements that are not zero, which asks for their values."""
    return np.nonzero(known_mask(truth(a)))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    """The indices into `a.ravel()` of the elements that are not zero, which asks for their values."""
    return np.flatnonzero(known_mask(truth(a)))


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    """The indices of the elements that are not zero, as rows, which asks for their values."""
    return np.argwhere(known_mask(truth(a)))


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    **options: Any,
) -> Any:
    """The different elements in increasing order, which asks for their values."""
    x = asarray(ar)
    known = x.builder.concretize(x, "the distinct elements of")
    _, places, *rest = np.unique(known, True, return_inverse, return_counts, axis, **options)
    results = [np.take(np.ravel(x), places) if axis is None else np.take(x, places, axis)]
    results += [places] if return_index else []
    results += rest
    return tuple(results) if len(results) > 1 else results[0]


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each number occurs, or the sums of its weights; how many numbers there are asks for their values."""
    indices = asarray(x)
    if indices.dtype.kind not in "iu" or indices.ndim != 1:
        raise TypeError(f"bincount takes integers along one axis, not {indices.type}{at_line(user_line())}")
    known = indices.builder.concretize(indices, "the number of bins of") if x.__class__ is Tracer else np.asarray(x)
    size = max(operator.index(minlength), int(known.max()) + 1 if known.size else 0)
    w = full(indices.shape, 1, np.intp) if weights is None else cast(asarray(weights), np.dtype(np.float64))
    counts = full((size,), 0, w.dtype)
    np.add.at(counts, np.asarray(known), w)
    return counts


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Counts, or sums of weights, per bin of known edges; a count is constant but where an element meets an edge."""
    if has_tracer(bins) or (np.ndim(bins) == 0 and range is None and has_tracer(a)):
        raise TypeError(
            f"np.histogram of traced values needs known edges: give bins= as an array, or range={at_line(user_line())}"
        )
    edges = np.histogram_bin_edges(np.asarray([]) if has_tracer(a) else a, bins, range)
    x = np.ravel(asarray(a))
    place = np.searchsorted(edges, x, "right") - 1
    place = np.where(x == edges[-1], len(edges) - 2, place)
    inside = (x >= edges[0]) & (x <= edges[-1])
    w = np.ones(x.shape, np.intp) if weights is None else np.ravel(asarray(weights))
    dtype = asarray(w).dtype
    counts = full((len(edges) - 1,), 0, dtype)
    np.add.at(counts, np.where(inside, place, 0), np.where(inside, w, np.zeros((), dtype)))
    if density:
        widths = np.diff(edges)
        return counts / widths / np.sum(counts), edges
    return counts, edges
