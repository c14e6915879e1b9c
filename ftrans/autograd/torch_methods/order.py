"""Order and extremes: methods of torch's tensors as functions of any value.

NaN is larger than all numbers where elements are sorted, and is what extremes and medians are if there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...numpy.manipulation import normal_axis
from .arguments import ValuesAndIndices, axes_of, in_dtype_of


def at_indices(x: Any, indices: Any, axis: int, keepdim: bool) -> ValuesAndIndices:
    """Elements of an array at one index along an axis, which is kept with size one, or not."""
    values = np.take_along_axis(x, indices, axis)
    if keepdim:
        return ValuesAndIndices(values, indices)
    return ValuesAndIndices(np.squeeze(values, axis), np.squeeze(indices, axis))


def _extreme(find: Any, of_all: Any, of_two: np.ufunc) -> Any:
    name = find.__name__[3:]

    def extreme(x: Any, *args: Any, **kwargs: Any) -> Any:
        first: Any = args[0] if args else kwargs.get("other")
        if hasattr(first, "dtype") and not is_plain(first, np.integer):
            return of_two(x, first)
        if "other" in kwargs:
            return of_two(x, kwargs["other"])
        if not args and not kwargs:
            return of_all(x)
        dim, keepdim = _dim_and_keepdim(*args, **kwargs)
        if dim is None or isinstance(dim, list | tuple):
            raise TypeError(
                f"{name} takes dim=, one axis, and keepdim=, and gives values and their indices, as in "
                f"torch; or axis= and keepdims= as in NumPy, which gives values{at_line(user_line())}"
            )
        axis = normal_axis(dim, max(x.ndim, 1))
        return at_indices(x, find(x, axis, keepdims=True), axis, keepdim) if x.ndim else _of_number(x)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"The {name}imum of all elements; along an axis with the indices; or of each two elements of two arrays."
    )
    return extreme


def _dim_and_keepdim(dim: Any = None, keepdim: bool = False, axis: Any = None) -> tuple[Any, bool]:
    return (axis if dim is None else dim), keepdim


def _of_number(x: Any) -> ValuesAndIndices:
    return ValuesAndIndices(x, np.zeros_like(x, np.int64))


maximum = _extreme(np.argmax, np.max, np.maximum)
minimum = _extreme(np.argmin, np.min, np.minimum)


def amax(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The maximum along axes; where several elements are equal, each has its part of the derivative."""
    return np.max(x, axes_of(dim), keepdims=keepdim)


def amin(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The minimum along axes; where several elements are equal, each has its part of the derivative."""
    return np.min(x, axes_of(dim), keepdims=keepdim)


def aminmax(x: Any, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    """The minimum and the maximum of all elements, or along an axis."""
    return np.min(x, dim, keepdims=keepdim), np.max(x, dim, keepdims=keepdim)


def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index of the maximum, among all elements or along an axis."""
    return np.argmax(x, dim, keepdims=keepdim)


def argmin(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The index of the minimum, among all elements or along an axis."""
    return np.argmin(x, dim, keepdims=keepdim)


def argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The indices that sort along an axis."""
    if not x.ndim:
        return _of_number(x).indices
    if not descending:
        return np.argsort(x, dim, stable=True)
    # Reversing twice keeps the order of equal elements.
    return x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), dim, stable=True), dim)


def sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesAndIndices:
    """The elements sorted along an axis, and the indices that sort them."""
    if not x.ndim:
        return _of_number(x)
    indices = argsort(x, dim, descending)
    return ValuesAndIndices(np.take_along_axis(x, indices, dim), indices)


def msort(x: Any) -> Any:
    """The elements sorted along the first axis."""
    return np.sort(x, axis=0)


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesAndIndices:
    """The `k` largest or smallest elements along an axis, in their order, and their indices."""
    axis = normal_axis(dim, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"topk takes {k} of {x.shape[axis]} elements along axis {dim}{at_line(user_line())}")
    indices = np.take(argsort(x, axis, largest), np.arange(k), axis)
    return ValuesAndIndices(np.take_along_axis(x, indices, axis), indices)


def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The `k`-th smallest element along an axis, counted from one, and its index."""
    axis = normal_axis(dim, x.ndim)
    if not 1 <= k <= x.shape[axis]:
        raise ValueError(
            f"kthvalue takes a number from 1 to {x.shape[axis]} for an axis of that size, not {k}{at_line(user_line())}"
        )
    return at_indices(x, np.take(argsort(x, axis), [k - 1], axis), axis, keepdim)


def _median(x: Any, dim: int | None, keepdim: bool, ignores_nan: bool) -> Any:
    if dim is None:
        return _median(np.reshape(x, -1), 0, False, ignores_nan).values
    axis = normal_axis(dim, x.ndim)
    missing = np.sum(np.isnan(x), axis, keepdims=True)
    count = x.shape[axis]
    lower = (count - missing - 1) // 2 if ignores_nan else np.where(missing > 0, count - 1, (count - 1) // 2)
    place = np.maximum(lower, 0)
    return at_indices(x, np.take_along_axis(argsort(x, axis), place, axis), axis, keepdim)


def median(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of all elements, or along an axis with its index: the lower one of the two in the middle."""
    return _median(x, dim, keepdim, False)


def nanmedian(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """As `median`, of what is not NaN."""
    return _median(x, dim, keepdim, True)


def mode(x: Any, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The element that occurs most often along an axis, the smallest one of several, and an index of it."""
    axis = normal_axis(dim, x.ndim)
    rows = np.moveaxis(x, axis, -1)
    count = np.sum(np.expand_dims(rows, -1) == np.expand_dims(rows, -2), -1)
    often = count == np.max(count, -1, keepdims=True)
    order = argsort(rows, -1)
    # The first in order of size that occurs as often, and of these the last one, as in torch.
    first = np.take_along_axis(order, np.argmax(np.take_along_axis(often, order, -1), -1, keepdims=True), -1)
    equal = rows == np.take_along_axis(rows, first, -1)
    last = rows.shape[-1] - 1 - np.argmax(np.flip(equal, -1), -1, keepdims=True)
    return at_indices(x, np.moveaxis(last, -1, axis), axis, keepdim)


def quantile(x: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: Any = "linear") -> Any:
    """Quantiles of all elements, or along an axis."""
    return np.quantile(x, q, dim, keepdims=keepdim, method=interpolation)


def nanquantile(x: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: Any = "linear") -> Any:
    """Quantiles of what is not NaN."""
    return np.nanquantile(x, q, dim, keepdims=keepdim, method=interpolation)


def _running(of_two: np.ufunc, x: Any, dim: int) -> ValuesAndIndices:
    axis = normal_axis(dim, x.ndim)
    extremes = of_two.accumulate(x, axis)
    places = np.reshape(np.arange(x.shape[axis]), [-1 if i == axis else 1 for i in range(x.ndim)])
    is_new = (x == extremes) | np.isnan(x)
    indices = np.maximum.accumulate(np.where(is_new, places, 0), axis)
    return ValuesAndIndices(np.take_along_axis(x, indices, axis), indices)


def cummax(x: Any, dim: int) -> ValuesAndIndices:
    """The maximum so far along an axis, and its index, the last one of several."""
    return _running(np.maximum, x, dim)


def cummin(x: Any, dim: int) -> ValuesAndIndices:
    """The minimum so far along an axis, and its index, the last one of several."""
    return _running(np.minimum, x, dim)


def nonzero(x: Any, *, as_tuple: bool = False) -> Any:
    """The indices of nonzero elements, one in each row, or with `as_tuple` a vector for each axis."""
    return np.nonzero(x) if as_tuple else np.argwhere(x)


def unique(
    x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements that differ, sorted, or the parts that differ along an axis."""
    function: Any = np.unique
    found = function(x, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
    return tuple(found) if return_inverse or return_counts else found


def unique_consecutive(x: Any, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The elements without those that are equal to the one before, of all elements in a row."""
    row = np.reshape(x, -1)
    is_new = np.concatenate([np.ones(min(row.shape[0], 1), bool), row[1:] != row[:-1]])
    found = [row[is_new]]
    if return_inverse:
        found.append(np.reshape(np.cumsum(is_new) - 1, x.shape))
    if return_counts:
        (starts,) = np.nonzero(is_new)
        found.append(np.diff(np.concatenate([starts, np.asarray([row.shape[0]])])))
    return tuple(found) if len(found) > 1 else found[0]


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each natural number occurs, or the sums of their weights."""
    found = np.bincount(x, weights, minlength)
    return found if weights is None else in_dtype_of(weights, found)


def histc(x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """How many elements are in each of equal bins between two bounds, by default the extremes."""
    ends = (np.min(x), np.max(x)) if min == max == 0 else (min, max)
    return np.histogram(x, bins, ends)[0].astype(x.dtype)


def count_nonzero(x: Any, dim: Any = None) -> Any:
    """The number of nonzero elements, along axes or of all."""
    return np.count_nonzero(x, axes_of(dim))


def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: Any = None
) -> Any:
    """Where numbers belong in a sorted vector."""
    found = np.searchsorted(sorted_sequence, input, side or ("right" if right else "left"))
    return found.astype(np.int32) if out_int32 else found


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """The numbers of the intervals between boundaries that elements lie in."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


METHODS = {
    "max": maximum, "min": minimum, "amax": amax, "amin": amin, "aminmax": aminmax, "argmax": argmax, "argmin": argmin,
    "argsort": argsort, "sort": sort, "msort": msort, "topk": topk, "kthvalue": kthvalue, "median": median,
    "nanmedian": nanmedian, "mode": mode, "quantile": quantile, "nanquantile": nanquantile, "cummax": cummax,
    "cummin": cummin, "nonzero": nonzero, "argwhere": np.argwhere, "unique": unique,
    "unique_consecutive": unique_consecutive, "bincount": bincount, "histc": histc, "count_nonzero": count_nonzero,
}  # fmt: skip
FUNCTIONS = {"searchsorted": searchsorted, "bucketize": bucketize}
