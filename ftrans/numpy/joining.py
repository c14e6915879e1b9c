"""Functions that join, split and repeat arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex
from ..core.witness import concretize
from ..ops.broadcast import broadcast as repeat_along
from ..ops.literals import full
from ..ops.parts import concatenate as join
from ..ops.parts import slice_
from . import promotion
from .delivery import deliver
from .dispatch import implements
from .indexing import getitem
from .manipulation import along_axis, normal_axes, normal_axis
from .promotion import asarray, cast, has_tracer, reshaped, same_value, strong_dtype

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "delete", "dsplit", "dstack",
    "hsplit", "hstack", "insert", "meshgrid", "repeat", "resize", "split", "stack", "tile", "trim_zeros",
    "unstack", "vsplit", "vstack",
]  # fmt: skip

# What is left after deleting is joined of up to so many runs of entries; of more, it is read at indices.
_MOST_RUNS = 8


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """Join arrays along an existing axis; with `axis=None`, flattened arrays."""
    xs = [asarray(x) for x in arrays]
    if not xs:
        raise ValueError(f"need at least one array to concatenate{at_line(user_line())}")
    if axis is None:
        xs, axis = [reshaped(x, (x.size,)) for x in xs], 0
    if any(x.ndim == 0 for x in xs):
        raise ValueError(f"zero-dimensional arrays cannot be concatenated; use np.stack{at_line(user_line())}")
    axis = normal_axis(axis, xs[0].ndim)
    result_dtype = strong_dtype(*xs) if dtype is None else np.dtype(dtype)
    others = {x.shape[:axis] + x.shape[axis + 1 :] for x in xs}
    if len(others) > 1 or len({x.ndim for x in xs}) > 1:
        raise ValueError(
            f"arrays to concatenate along axis {axis} must agree in all other sizes: "
            f"{', '.join(str(x.type) for x in xs)}{at_line(user_line())}"
        )
    for x in xs:
        if not np.can_cast(x.dtype, result_dtype, casting):
            raise TypeError(f"Cannot cast array data from {x.dtype!r} to {result_dtype!r}{at_line(user_line())}")
    xs = [cast(x, result_dtype) for x in xs]
    return deliver(join(*xs, axis=axis) if len(xs) > 1 else same_value(xs[0]), out, "concatenate")


concat = concatenate


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Join arrays of one shape along a new axis."""
    xs = [asarray(x) for x in arrays]
    if not xs:
        raise ValueError(f"need at least one array to stack{at_line(user_line())}")
    result = promotion.stack(xs, normal_axis(axis, xs[0].ndim + 1))
    return deliver(result if dtype is None else result.astype(dtype, casting=casting), out, "stack")


def _as_sequence(arrays: Any) -> Sequence[Any]:
    return arrays if isinstance(arrays, list | tuple) else list(arrays)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Stack arrays vertically: vectors as rows, other arrays along the first axis."""
    return np.concatenate([np.atleast_2d(asarray(x)) for x in _as_sequence(tup)], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Stack arrays horizontally: along the second axis, vectors along the first."""
    xs = [np.atleast_1d(asarray(x)) for x in _as_sequence(tup)]
    return np.concatenate(xs, 0 if xs and xs[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """Stack arrays along the third axis."""
    return np.concatenate([np.atleast_3d(asarray(x)) for x in _as_sequence(tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Stack vectors as the columns of a matrix."""
    xs = [asarray(x) for x in _as_sequence(tup)]
    return np.concatenate([x if x.ndim > 1 else reshaped(x, (x.size, 1)) for x in xs], 1)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """`values` behind `arr`."""
    return np.concatenate((asarray(arr), asarray(values)), axis)


# Up to this size, NumPy's `block` joins as `concatenate` does.
_MOST_COPIED = 2 * 512 * 512


@implements(np.block)
def block(arrays: Any) -> Any:
    """Assemble an array from nested lists of blocks: the innermost lists are joined along the last axis."""

    def depth(x: Any) -> int:
        return 1 + max(map(depth, x), default=0) if isinstance(x, list) else 0

    def joined(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            return x
        return np.concatenate([joined(y, level + 1) for y in x], level - levels)

    def leaves(x: Any) -> list[Any]:
        return [leaf for y in x for leaf in leaves(y)] if isinstance(x, list) else [asarray(x)]

    levels = depth(arrays)
    ndim = max(levels, *(x.ndim for x in leaves(arrays)))

    def widened(x: Any) -> Any:
        if isinstance(x, list):
            return [widened(y) for y in x]
        x = asarray(x)
        return reshaped(x, (1,) * (ndim - x.ndim) + x.shape)

    whole = joined(widened(arrays), 0)
    # A block alone is copied, in row-major order unless it is large.
    return whole if levels else same_value(whole, "C" if whole.size <= _MOST_COPIED else "?")


# Taking apart


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along an axis into views of nearly equal size, or at the given indices."""
    ary = asarray(ary)
    axis = normal_axis(axis, ary.ndim)
    size = ary.shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [operator.index(i) for i in indices_or_sections]
    else:
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError(f"number sections must be larger than 0.{at_line(user_line())}")
        each, more = divmod(size, count)
        cuts = [i * each + min(i, more) for i in range(1, count)]
    lead = (slice(None),) * axis
    bounds = zip([0, *cuts], [*cuts, size], strict=True)
    return [getitem(ary, (*lead, slice(start, stop))) for start, stop in bounds]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along an axis into views of equal size, or at the given indices."""
    ary = asarray(ary)
    size = ary.shape[normal_axis(axis, ary.ndim)]
    if not np.ndim(indices_or_sections) and size % operator.index(indices_or_sections):
        raise ValueError(
            f"array split does not result in an equal division: {size} elements in {indices_or_sections} parts"
            + at_line(user_line())
        )
    return np.array_split(ary, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split along the second axis, a vector along the first."""
    return np.split(ary, indices_or_sections, 1 if asarray(ary).ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split along the first axis."""
    if asarray(ary).ndim < 2:
        raise ValueError(f"vsplit only works on arrays of 2 or more dimensions{at_line(user_line())}")
    return np.split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split along the third axis."""
    if asarray(ary).ndim < 3:
        raise ValueError(f"dsplit only works on arrays of 3 or more dimensions{at_line(user_line())}")
    return np.split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Split along an axis into a tuple of arrays that lack this axis."""
    return tuple(np.moveaxis(x, axis, 0))


if hasattr(np, "unstack"):
    unstack = implements(np.unstack)(unstack)


# Repeating


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    """Repeat the whole array along each axis."""
    x = asarray(A)
    counts = tuple(operator.index(r) for r in (reps if np.ndim(reps) else (reps,)))
    counts = (1,) * (x.ndim - len(counts)) + counts
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    if not x.ndim:
        return same_value(promotion.broadcast_to(x, counts))
    spread = tuple(m for pair in zip(counts, shape, strict=True) for m in pair)
    offset = len(counts) - x.ndim
    wide = repeat_along(x, shape=spread, dims=tuple(2 * (i + offset) + 1 for i in range(x.ndim)))
    return reshaped(wide, tuple(c * n for c, n in zip(counts, shape, strict=True)))


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeat each element along an axis; the numbers of repeats must be known."""
    a, axis = along_axis(asarray(a), axis)
    if has_tracer(repeats):
        repeats = np.array([operator.index(r) for r in np.ravel(asarray(repeats))])
    counts = np.asarray(repeats)
    counts = counts if counts.size else counts.astype(np.intp)
    if counts.size == 1:
        count = operator.index(counts.item())
        shape = (*a.shape[: axis + 1], count, *a.shape[axis + 1 :])
        wide = repeat_along(a, shape=shape, dims=tuple(i if i <= axis else i + 1 for i in range(a.ndim)))
        return reshaped(wide, (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :]))
    if counts.shape != (a.shape[axis],):
        raise ValueError(
            f"repeats of shape {counts.shape} do not fit axis {axis} of {a.type}; give one count, or one for each of "
            f"its {a.shape[axis]} entries{at_line(user_line())}"
        )
    return np.take(a, np.repeat(np.arange(a.shape[axis]), counts), axis)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """The coordinate arrays of a grid, from coordinate vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij'.{at_line(user_line())}")
    xs = [asarray(x) for x in xi]
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    grids: Any = [np.reshape(x, [-1 if o == i else 1 for i in range(len(xs))]) for x, o in zip(xs, order, strict=True)]
    if not sparse:
        grids = np.broadcast_arrays(*grids)
    return tuple(same_value(x, "C") if copy else x for x in grids)


# Removing and putting in between


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """The array without the entries at the given indices along an axis; these must be known."""
    x = asarray(arr)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    kept = np.delete(np.arange(x.shape[axis]), _known(obj, "the entries deleted at"))
    runs = np.split(kept, 1 + np.flatnonzero(np.diff(kept) != 1))
    if len(runs) > _MOST_RUNS or not kept.size:
        return np.take(x, kept, axis)
    return join(*[_between(x, axis, int(run[0]), int(run[-1]) + 1) for run in runs], axis=axis)


def _between(x: Tracer, axis: int, start: int, limit: int) -> Tracer:
    """The entries of `x` along an axis from `start` up to `limit`."""
    return slice_(
        x,
        start=tuple(start if i == axis else 0 for i in range(x.ndim)),
        limit=tuple(limit if i == axis else n for i, n in enumerate(x.shape)),
        strides=(1,) * x.ndim,
    )


def _known(places: Any, what: str) -> Any:
    """Places along an axis, which decide the shape of the result."""
    if not has_tracer(places):
        return places
    places = asarray(places)
    return concretize(places, what)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """The array with `values` inserted before the given indices along an axis; these must be known."""
    x = asarray(arr)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    obj = _known(obj, "the places of what is inserted at")
    size = x.shape[axis]
    obj = np.arange(size)[obj] if isinstance(obj, slice) else np.asarray(obj)
    obj = np.flatnonzero(obj) if obj.dtype.kind == "b" and obj.ndim else obj.astype(np.intp) if not obj.size else obj
    new = asarray(values)
    if is_complex(new.dtype) and not is_complex(x.dtype):
        raise TypeError(f"np.insert cannot put {new.type} into {x.type}, which is real{at_line(user_line())}")
    new = cast(new, x.dtype)
    new = reshaped(new, (1,) * (x.ndim - new.ndim) + new.shape)
    if not obj.ndim:
        new = np.moveaxis(new, 0, axis)
    # At one place any number of entries is inserted, else one at each.
    count = new.shape[axis] if obj.size == 1 else obj.size
    # Where old and new entries come to stand is the same for every array, so NumPy says it.
    marks = -1 - np.arange(count)
    places = np.insert(np.arange(size), obj, marks)
    places = np.where(places < 0, size - 1 - places, places)
    shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
    both = join(x, promotion.broadcast_to(new, shape), axis=axis)
    return np.take(both, places, axis)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The array in another shape, its elements repeated as often as needed."""
    a = asarray(a)
    shape = tuple(operator.index(n) for n in (new_shape if np.ndim(new_shape) else (new_shape,)))
    count = math.prod(shape)
    if min(shape, default=0) < 0:
        raise ValueError(f"all elements of `new_shape` must be non-negative{at_line(user_line())}")
    if not a.size:
        return full(shape, 0, a.dtype)
    return np.reshape(np.take(np.ravel(a), np.arange(count) % a.size), shape)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The array without leading and trailing zeros; the values must be known."""
    filt = asarray(filt)
    if trim.lower() not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}{at_line(user_line())}")
    axes = normal_axes(axis, filt.ndim)
    places = np.argwhere(filt)
    index = [slice(None)] * filt.ndim
    for i in axes:
        first, last = (int(places[:, i].min()), int(places[:, i].max()) + 1) if len(places) else (0, 0)
        keeps_front, keeps_back = ("f" not in trim.lower(), "b" not in trim.lower()) if len(places) else (False, False)
        index[i] = slice(None if keeps_front else first, None if keeps_back else last)
    return getitem(filt, tuple(index))
