"""Arrays with some of their elements changed: methods of torch's tensors as functions that return a new array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...numpy.manipulation import normal_axis
from ..default_dtype import by_default

_REDUCTIONS = {
    "sum": np.add, "add": np.add, "prod": np.multiply, "multiply": np.multiply, "amax": np.maximum, "amin": np.minimum,
}  # fmt: skip


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """With a number in the places for which a mask holds."""
    return np.where(mask, _as(x, value), x)


def _as(x: Any, value: Any) -> Any:
    """A number, in the dtype of an array."""
    return x.dtype.type(value) if isinstance(value, bool | int | float) else value.astype(x.dtype)


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """With the first elements of another array in the places for which a mask holds."""
    x, mask = np.broadcast_arrays(x, mask)
    mask = np.reshape(mask, -1)
    # The n-th place for which it holds gets the n-th element.
    place = np.minimum(np.maximum(np.cumsum(mask) - 1, 0), np.size(source) - 1)
    return np.reshape(np.where(mask, np.take(source, place), np.reshape(x, -1)), x.shape)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Elements of one of two arrays, as a condition says; with the condition alone, the indices where it holds."""
    return np.nonzero(condition) if input is None else by_default(np.where(condition, input, other), (input, other))


def _where(x: Any, condition: Any, other: Any) -> Any:
    return np.where(condition, x, other)


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    """Clipped to an interval."""
    if min is None and max is None:
        raise ValueError(f"clamp takes min, max or both{at_line(user_line())}")
    return np.clip(x, min, max)


def clamp_min(x: Any, min: Any) -> Any:
    """The larger one of each element and a bound."""
    return np.clip(x, min, None)


def clamp_max(x: Any, max: Any) -> Any:
    """The smaller one of each element and a bound."""
    return np.clip(x, None, max)


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """With numbers for NaN and for infinities, by default zero and the largest ones of the dtype."""
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


# By index


def _at(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """The places that `index` means along an axis, and that are its own along the others, as an index of an array."""
    axis = normal_axis(dim, x.ndim)
    if index.ndim != x.ndim:
        raise ValueError(
            f"indices of shape {tuple(index.shape)} have another number of axes than an array of shape "
            f"{tuple(x.shape)}{at_line(user_line())}"
        )
    own = np.ogrid[tuple([slice(n) for n in index.shape])]
    return tuple([index if i == axis else n for i, n in enumerate(own)])


def _values(src: Any, index: Any) -> Any:
    """The elements of `src` that indices of the same or of a smaller shape use; a number is for all of them."""
    return src[tuple([slice(n) for n in index.shape])] if np.ndim(src) else src


def scatter(x: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """With elements put to indices along an axis: `y[index[i, j], j] = src[i, j]` for the first of two.

    With `reduce`, "add" or "multiply", they are combined with what is there.
    """
    given = value if src is None else src
    if reduce is not None:
        full = np.full(index.shape, given, x.dtype) if np.ndim(given) == 0 else given
        return scatter_reduce(x, dim, index, full, reduce)
    y = np.copy(x)
    y[_at(x, dim, index)] = _values(given, index)
    return y


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """With elements added at indices along an axis: `y[index[i, j], j] += src[i, j]` for the first of two."""
    return scatter_reduce(x, dim, index, src, "sum")


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """With elements combined at indices along an axis, by "sum", "prod", "mean", "amax" or "amin".

    Without `include_self`, what is there counts only where nothing is put.
    """
    at, values = _at(x, dim, index), _values(src, index)
    y = np.copy(x)
    if not include_self:
        y[at] = _neutral(reduce, x.dtype)
    if reduce == "mean":
        np.add.at(y, at, values)
        count = np.full_like(x, int(include_self))
        np.add.at(count, at, 1)
        total = np.maximum(count, 1)
        return y / total if x.dtype.kind in "fc" else y // total
    if reduce not in _REDUCTIONS:
        raise ValueError(f"reduce is one of {', '.join([*_REDUCTIONS, 'mean'])}, not {reduce!r}{at_line(user_line())}")
    _REDUCTIONS[reduce].at(y, at, values)
    return y


def _neutral(reduce: str, dtype: Any) -> Any:
    """The number that changes nothing."""
    if reduce not in ("amax", "amin"):
        return int(reduce in ("prod", "multiply"))
    if dtype.kind in "fc":
        return -np.inf if reduce == "amax" else np.inf
    limits = np.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


def _along(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """The parts at the indices of a vector along an axis, as an index of an array."""
    return (*[slice(None)] * normal_axis(dim, x.ndim), index)


def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """With arrays added to the parts at indices along an axis, more than once where an index repeats."""
    y = np.copy(x)
    np.add.at(y, _along(x, dim, index), source if alpha == 1 else alpha * source)
    return y


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    """With other arrays for the parts at indices along an axis."""
    y = np.copy(x)
    y[_along(x, dim, index)] = source
    return y


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    """With a number in the parts at indices along an axis."""
    return index_copy(x, dim, index, value)


def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """With values at indices, one array for each axis; added to what is there if `accumulate`."""
    y = np.copy(x)
    if accumulate:
        np.add.at(y, tuple(indices), values)
    else:
        y[tuple(indices)] = values
    return y


def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """With values at indices into all elements; added to what is there if `accumulate`."""
    flat = index_put(np.reshape(x, -1), (np.reshape(index, -1),), np.reshape(source, -1), accumulate)
    return np.reshape(flat, x.shape)


def select_scatter(x: Any, src: Any, dim: int, index: int) -> Any:
    """With another array for the part at an index along an axis."""
    return index_copy(x, dim, index, src)


def slice_scatter(x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """With another array for a slice along an axis."""
    return index_copy(x, dim, slice(start, end, step), src)


def fill_diagonal(x: Any, fill_value: Any, wrap: bool = False) -> Any:
    """With a number on the diagonal."""
    y = np.copy(x)
    np.fill_diagonal(y, fill_value, wrap)
    return y


METHODS: dict[str, Callable[..., Any]] = {
    "masked_fill": masked_fill, "masked_scatter": masked_scatter, "where": _where, "clamp": clamp,
    "clamp_min": clamp_min, "clamp_max": clamp_max, "clip": clamp, "nan_to_num": nan_to_num, "scatter": scatter,
    "scatter_add": scatter_add, "scatter_reduce": scatter_reduce, "index_add": index_add, "index_copy": index_copy,
    "index_fill": index_fill, "index_put": index_put, "put": put, "select_scatter": select_scatter,
    "slice_scatter": slice_scatter,
}  # fmt: skip
# Those that also exist as changes in place, under their name with an underscore.
IN_PLACE: dict[str, Callable[..., Any]] = {
    "fill_diagonal": fill_diagonal,
    **{name: f for name, f in METHODS.items() if name not in ("where", "select_scatter", "slice_scatter")},
}
