"""Functions that take elements from indices, and those that put elements there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..ops.shapes import iota
from .dispatch import implements
from .indexing import getitem, setitem
from .manipulation import normal_axis
from .promotion import asarray, broadcast_to, cast, reshaped, result_dtype
from .ufuncs import assign_cast, deliver, not_assignable
from .views import Flat, view_of


def _in_range(indices: Any, size: int, mode: str) -> Any:
    """Indices brought into range as `mode` says; "raise" leaves that to indexing."""
    if mode == "raise":
        return indices
    if mode not in ("wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r}){at_line(user_line())}")
    return np.mod(indices, size) if mode == "wrap" else np.clip(indices, 0, size - 1)


def _indices(x: Any) -> Any:
    """Indices as an array, traced if they are; plain sequences are no nested index."""
    return x if x.__class__ is Tracer else np.asarray(x) if np.asarray(x).dtype != object else asarray(x)


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """The entries at indices along an axis, or of all elements."""
    x, indices = asarray(a), _indices(indices)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    if indices.size == 0:
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"np.take takes integer indices, not {indices.dtype}{at_line(user_line())}")
    chosen = getitem(x, (*(slice(None),) * axis, _in_range(indices, x.shape[axis], mode)))
    return deliver(chosen, out, "take")


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """The entries along an axis where a condition holds."""
    x = asarray(a)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    kept = np.flatnonzero(condition)
    return np.take(x, kept, axis, out)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where a condition holds."""
    return np.take(np.ravel(arr), np.flatnonzero(condition))


def _along(x: Tracer, indices: Any, axis: int) -> tuple[Any, ...]:
    """The index of the elements at `indices` along one axis and in their own place along the others."""
    if indices.ndim != x.ndim:
        raise ValueError(
            f"`indices` and `arr` must have the same number of dimensions, not {indices.ndim} and {x.ndim}"
            + at_line(user_line())
        )
    shape = tuple(
        m if i == axis else max(m, n) if m == 1 else m
        for i, (m, n) in enumerate(zip(indices.shape, x.shape, strict=True))
    )
    own = [n == 1 for n in x.shape]
    places = [
        np.zeros((), np.int64) if own[i] else iota(shape=shape, axis=i, dtype=np.dtype(np.int64)) for i in range(x.ndim)
    ]
    return (*places[:axis], indices, *places[axis + 1 :])


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """The elements at indices along an axis, each line with its own."""
    x, indices = asarray(arr), _indices(indices)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    return getitem(x, _along(x, indices, axis))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Assign to the elements at indices along an axis, each line with its own."""
    x, indices = _target(arr, "put_along_axis"), _indices(indices)
    if axis is None:
        x, axis = view_of(x, Flat()), 0
    axis = normal_axis(axis, x.ndim)
    setitem(x, _along(x, indices, axis), values)


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """For each element, the choice of which it is the number."""
    numbers = asarray(a)
    options = [asarray(c) for c in choices]
    dtype = result_dtype(*options)
    shape = np.broadcast_shapes(numbers.shape, *(c.shape for c in options))
    stacked: Any = np.stack([broadcast_to(cast(c, dtype), shape) for c in options])
    numbers = broadcast_to(asarray(_in_range(numbers, len(options), mode)), shape)
    return deliver(np.take_along_axis(stacked, numbers[None], 0)[0], out, "choose")


# Assignment


def _target(x: Any, name: str) -> Tracer:
    if x.__class__ is not Tracer:
        raise not_assignable(x, name)
    return x


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Assign the elements of one array to another, where a mask holds."""
    target = _target(dst, "copyto")
    new = asarray(src)
    if where is not True:
        new = asarray(np.where(where, cast(new, target.dtype), target))
    assign_cast(target, new, "copyto", casting)


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Assign to the elements at indices into the array as one line; values are used over and over."""
    flat = view_of(_target(a, "put"), Flat())
    indices = _indices(ind)
    indices = indices.reshape(-1)
    values = np.ravel(asarray(v))
    if values.size and indices.size:
        flat[_in_range(indices, flat.size, mode)] = np.resize(values, indices.shape)


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Assign values, over and over, to the elements where a mask holds."""
    np.put(arr, np.flatnonzero(mask), vals)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Assign to the elements where a mask holds the values at their own places, over and over."""
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
