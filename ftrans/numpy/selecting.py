"""Functions that read elements at indices or masks, and functions that assign to them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.cell import read
from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..ops.literals import iota
from .delivery import assign_cast, deliver, not_assignable
from .dispatch import implements
from .indexing import getitem, setitem
from .manipulation import along_axis, normal_axis
from .promotion import asarray, broadcast_to, cast, has_tracer, reshaped, result_dtype
from .views import Flat, ReadOnly, assignable, view_of

__all__ = [
    "choose", "compress", "copyto", "diag_indices_from", "extract", "fill_diagonal", "place", "put",
    "put_along_axis", "putmask", "ravel_multi_index", "take", "take_along_axis", "tril_indices_from",
    "triu_indices_from", "unravel_index",
]  # fmt: skip


def _in_range(indices: Any, size: int, mode: str) -> Any:
    """Indices brought into range as `mode` says; "raise" leaves the check to indexing."""
    if mode == "raise":
        return indices
    if mode not in ("wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r}){at_line(user_line())}")
    return np.mod(indices, size) if mode == "wrap" else np.clip(indices, 0, size - 1)


def _indices(x: Any) -> Any:
    """Indices as an array, traced if they are; plain sequences are no nested index."""
    return x if type(x) is Tracer else np.asarray(x) if np.asarray(x).dtype != object else asarray(x)


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements at the given indices along an axis, or of the flattened array."""
    (x, axis), indices = along_axis(asarray(a), axis), _indices(indices)
    if indices.size == 0:
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"np.take takes integer indices, not {indices.dtype}{at_line(user_line())}")
    chosen = getitem(x, (*(slice(None),) * axis, _in_range(indices, x.shape[axis], mode)))
    return deliver(chosen, out, "take")


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Slices along an axis where a condition is true."""
    x, axis = along_axis(asarray(a), axis)
    return np.take(x, np.flatnonzero(condition), axis, out)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where a condition is true."""
    return np.take(np.ravel(arr), np.flatnonzero(condition))


def _along(x: Tracer, indices: Any, axis: int) -> tuple[Any, ...]:
    """The index of the elements at `indices` along one axis and in their own place along the others."""
    if indices.ndim != x.ndim:
        raise ValueError(
            f"`indices` and `arr` must have the same number of dimensions, not {indices.ndim} and {x.ndim}"
            + at_line(user_line())
        )
    shape = tuple(m if i == axis or m != 1 else n for i, (m, n) in enumerate(zip(indices.shape, x.shape, strict=True)))
    own = [n == 1 for n in x.shape]
    places = [
        np.zeros((), np.int64) if own[i] else iota(shape=shape, axis=i, dtype=np.dtype(np.int64)) for i in range(x.ndim)
    ]
    return (*places[:axis], indices, *places[axis + 1 :])


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Elements at indices along an axis, with indices of their own for each one-dimensional slice."""
    x, indices = asarray(arr), _indices(indices)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    return getitem(x, _along(x, indices, axis))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Assign to elements at indices along an axis, with indices of their own for each one-dimensional slice."""
    x, indices = _target(arr, "put_along_axis"), _indices(indices)
    if axis is None:
        x, axis = view_of(x, Flat()), 0
    axis = normal_axis(axis, x.ndim)
    setitem(x, _along(x, indices, axis), values)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """A read-only view of all sliding windows of an array."""
    if writeable:
        raise ValueError(
            "sliding_window_view of a traced value is for reading only: its elements stand in several windows; assign "
            "to the array itself" + at_line(user_line())
        )
    x = asarray(x)
    sizes = [operator.index(n) for n in (window_shape if isinstance(window_shape, tuple | list) else [window_shape])]
    given = range(x.ndim) if axis is None else axis if isinstance(axis, tuple | list) else [axis]
    axes = [normal_axis(a, x.ndim) for a in given]
    if len(sizes) != len(axes):
        raise ValueError(
            f"Since axis is {axis}, must provide window_shape for all {len(axes)} axes; got {window_shape}"
            + at_line(user_line())
        )

    def read(base: Any) -> Any:
        y = base
        for size, a in zip(sizes, axes, strict=True):
            count = y.shape[a] - size + 1
            if size < 0 or count < 1:
                raise ValueError(f"window shape cannot be larger than input array shape{at_line(user_line())}")
            places = np.arange(count)[:, None] + np.arange(size)
            y = asarray(np.moveaxis(np.take(y, places, a), a + 1, -1))
        return y

    return view_of(x, ReadOnly(read, lambda base: np.lib.stride_tricks.sliding_window_view(base, sizes, axes)))


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Elements of several choices, by an array of the indices of choices."""
    numbers = asarray(a)
    options = [asarray(c) for c in choices]
    if mode == "raise" and not has_tracer(a) and not np.all((np.asarray(a) >= 0) & (np.asarray(a) < len(options))):
        raise ValueError(f"invalid entry in choice array{at_line(user_line())}")
    dtype = result_dtype(*options)
    shape = np.broadcast_shapes(numbers.shape, *(c.shape for c in options))
    stacked: Any = np.stack([broadcast_to(cast(c, dtype), shape) for c in options])
    numbers = broadcast_to(asarray(_in_range(numbers, len(options), mode)), shape)
    return deliver(np.take_along_axis(stacked, numbers[None], 0)[0], out, "choose")


# Assignment


def _target(x: Any, name: str) -> Tracer:
    x = read(x)
    if type(x) is not Tracer:
        raise not_assignable(x, name)
    return assignable(x)


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Copy the elements of one array to another, where a mask is true."""
    target = _target(dst, "copyto")
    new = asarray(src)
    if where is not True:
        new = asarray(np.where(where, cast(new, target.dtype), target))
    assign_cast(target, new, "copyto", casting)


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Assign to elements at indices into the flattened array; values are repeated as needed."""
    flat = view_of(_target(a, "put"), Flat())
    indices = _indices(ind)
    indices = indices.reshape(-1)
    values = np.ravel(asarray(v))
    if values.size and indices.size:
        flat[_in_range(indices, flat.size, mode)] = np.resize(values, indices.shape)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Assign values in turn, repeated as needed, to the elements where a mask is true."""
    vals = asarray(vals)
    if vals.size == 1:
        np.copyto(arr, reshaped(vals, ()), casting="unsafe", where=np.reshape(mask, arr.shape) != 0)
        return
    places = np.flatnonzero(mask)
    if not vals.size and places.size:
        raise ValueError(f"np.place has no values to put into {places.size} places{at_line(user_line())}")
    np.put(arr, places, vals)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Assign to the elements where a mask is true the values at the same positions, repeated as needed."""
    target = _target(a, "putmask")
    new = np.resize(asarray(values), target.shape)
    assign_cast(target, asarray(np.where(mask, cast(asarray(new), target.dtype), target)), "putmask")


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Assign to the main diagonal."""
    target = _target(a, "fill_diagonal")
    if target.ndim < 2 or (target.ndim > 2 and len(set(target.shape)) > 1):
        raise ValueError(f"fill_diagonal takes a matrix or equal sizes, not {target.type}{at_line(user_line())}")
    step = 1 + int(np.cumprod(target.shape[:0:-1])[::1].sum()) if target.ndim > 2 else target.shape[1] + 1
    end = None if wrap or target.ndim > 2 else target.shape[1] * target.shape[1]
    flat = view_of(target, Flat())
    count = len(range(*slice(None, end, step).indices(flat.size)))
    flat[:end:step] = np.resize(asarray(val), (count,))


# Indices


@implements(np.ravel_multi_index, constant=True)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Indices into the flattened array, from indices along each axis; "raise" assumes that traced ones are valid."""
    sizes = [operator.index(n) for n in dims]
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    indices = [_in_range(asarray(i), n, m) for i, n, m in zip(multi_index, sizes, modes, strict=True)]
    if any(i.dtype.kind not in "iu" for i in indices):
        raise TypeError(f"only int indices permitted{at_line(user_line())}")
    pairs = list(zip(indices, sizes, strict=True))
    place: Any = 0
    for index, size in pairs if order == "C" else reversed(pairs):
        place = place * size + index
    return cast(asarray(place), np.dtype(np.intp))


@implements(np.unravel_index, constant=True)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Indices along each axis, from indices into the flattened array; traced ones are assumed to be valid."""
    place = asarray(indices)
    if place.dtype.kind not in "iu":
        raise TypeError(f"only int indices permitted{at_line(user_line())}")
    place = cast(place, np.dtype(np.intp))
    found = []
    sizes = [operator.index(n) for n in (shape if np.ndim(shape) else (shape,))]
    for size in reversed(sizes) if order == "C" else sizes:
        place, along = np.divmod(place, size)
        found.append(along)
    return tuple(reversed(found)) if order == "C" else tuple(found)


@implements(np.diag_indices_from, constant=True)
def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """The indices of the main diagonal."""
    x = asarray(arr)
    if x.ndim < 2:
        raise ValueError(f"input array must be at least 2-d{at_line(user_line())}")
    if len(set(x.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length{at_line(user_line())}")
    return np.diag_indices(x.shape[0], x.ndim)


def _triangle(function: Any, arr: Any, k: int) -> Any:
    x = asarray(arr)
    if x.ndim != 2:
        raise ValueError(f"input array must be 2-d{at_line(user_line())}")
    return function(x.shape[0], k, x.shape[1])


@implements(np.tril_indices_from, constant=True)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of the lower triangle."""
    return _triangle(np.tril_indices, arr, k)


@implements(np.triu_indices_from, constant=True)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of the upper triangle."""
    return _triangle(np.triu_indices, arr, k)
