"""Functions that join arrays, take them apart, repeat or pad them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import Shape
from ..ops.shapes import broadcast as repeat_along
from ..ops.shapes import concatenate as join
from ..ops.shapes import full
from ..ops.shapes import pad as pad_with_number
from . import promotion
from .dispatch import implements
from .indexing import getitem
from .manipulation import normal_axis
from .promotion import asarray, cast, has_tracer, reshaped, same_value, strong_dtype
from .ufuncs import deliver


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """Arrays joined along an axis, or all their elements if it is None."""
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


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays of one shape joined along a new axis."""
    xs = [asarray(x) for x in arrays]
    if not xs:
        raise ValueError(f"need at least one array to stack{at_line(user_line())}")
    result = promotion.stack(xs, normal_axis(axis, xs[0].ndim + 1))
    return deliver(result if dtype is None else result.astype(dtype, casting=casting), out, "stack")


def _as_sequence(arrays: Any) -> Sequence[Any]:
    return arrays if isinstance(arrays, list | tuple) else list(arrays)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Rows, or matrices, on top of each other."""
    return np.concatenate([np.atleast_2d(asarray(x)) for x in _as_sequence(tup)], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays side by side."""
    xs = [np.atleast_1d(asarray(x)) for x in _as_sequence(tup)]
    return np.concatenate(xs, 0 if xs and xs[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """Arrays behind each other, along the third axis."""
    return np.concatenate([np.atleast_3d(asarray(x)) for x in _as_sequence(tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Vectors as the columns of a matrix."""
    xs = [asarray(x) for x in _as_sequence(tup)]
    return np.concatenate([x if x.ndim > 1 else reshaped(x, (x.size, 1)) for x in xs], 1)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """`values` behind `arr`."""
    return np.concatenate((asarray(arr), asarray(values)), axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    """An array of nested lists of blocks: the innermost lists are joined along the last axis."""

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

    return joined(widened(arrays), 0)


# Taking apart


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Views of consecutive parts along an axis, of nearly equal size or cut at indices."""
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
    """Views of consecutive parts along an axis, of equal size or cut at indices."""
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
    """Parts side by side."""
    return np.split(ary, indices_or_sections, 1 if asarray(ary).ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts on top of each other."""
    return np.split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts behind each other."""
    return np.split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The entries along an axis."""
    return tuple(np.moveaxis(x, axis, 0))


if hasattr(np, "unstack"):
    unstack = implements(np.unstack)(unstack)


# Repeating


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    """The array repeated as a whole along its axes."""
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
    """Each element repeated along an axis, all alike or by counts that are known."""
    a = asarray(a)
    if axis is None:
        a, axis = reshaped(a, (a.size,)), 0
    axis = normal_axis(axis, a.ndim)
    if has_tracer(repeats):
        repeats = np.array([operator.index(r) for r in np.ravel(asarray(repeats))])
    counts = np.asarray(repeats)
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
    """The coordinates of a grid, from the coordinates along its axes."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij'.{at_line(user_line())}")
    xs = [asarray(x) for x in xi]
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    lines = [
        reshaped(x, tuple(x.size if o == i else 1 for i in range(len(xs)))) for x, o in zip(xs, order, strict=True)
    ]
    if sparse:
        return tuple(same_value(x) for x in lines)
    shape = np.broadcast_shapes(*(x.shape for x in lines))
    return tuple(same_value(promotion.broadcast_to(x, shape)) for x in lines)


# Padding and removing


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """Elements added at the ends of axes: a constant, or by mode "edge", "reflect", "symmetric", "wrap" or "empty"."""
    x = asarray(array)
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * x.ndim
        for axis, width in pad_width.items():
            widths[normal_axis(axis, x.ndim)] = tuple(np.broadcast_to(width, 2).tolist())
    else:
        widths = [tuple(w) for w in np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (x.ndim, 2)).tolist()]
    if any(n < 0 for width in widths for n in width):
        raise ValueError(f"index can't contain negative values{at_line(user_line())}")
    if mode == "empty":
        mode = "constant"
    if mode == "constant":
        return _pad_constant(x, widths, **options)
    if mode not in ("edge", "reflect", "symmetric", "wrap") or options.get("reflect_type", "even") != "even":
        raise ValueError(
            f"np.pad with mode={mode!r} {options or ''} is not supported for traced values; 'constant', 'edge', "
            f"'reflect', 'symmetric' and 'wrap' are{at_line(user_line())}"
        )
    for axis, (before, after) in enumerate(widths):
        if before or after:
            # Which element stands where is the same for every array, so NumPy says it.
            places = np.pad(np.arange(x.shape[axis]), (before, after), mode)
            x = np.take(x, places, axis)
    return same_value(x)


def _pad_constant(x: Tracer, widths: list[tuple[int, int]], constant_values: Any = 0) -> Tracer:
    none = (0,) * x.ndim
    values = (
        promotion.broadcast_to(asarray(constant_values), (x.ndim, 2)) if np.ndim(constant_values) else constant_values
    )

    def padded(y: Tracer, value: Any, before: Shape, after: Shape) -> Tracer:
        number = promotion.operand(value, y.dtype, ())
        return pad_with_number(y, number, before=before, after=after, interior=none)

    if not isinstance(values, Tracer):
        return padded(x, values, *zip(*widths, strict=True)) if x.ndim else same_value(x)
    for axis, ends in enumerate(widths):
        for side, width in enumerate(ends):
            here = tuple(width if i == axis else 0 for i in range(x.ndim))
            x = padded(x, getitem(values, (axis, side)), here if side == 0 else none, none if side == 0 else here)
    return x


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """Without the entries at known indices along an axis."""
    x = asarray(arr)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    return np.take(x, np.delete(np.arange(x.shape[axis]), _known(obj, "the entries deleted at")), axis)


def _known(places: Any, what: str) -> Any:
    """Places along an axis, which decide the shape of the result."""
    if not has_tracer(places):
        return places
    places = asarray(places)
    return places.builder.concretize(places, what)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """With `values` put before known indices along an axis."""
    x = asarray(arr)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normal_axis(axis, x.ndim)
    obj = _known(obj, "the places of what is inserted at")
    # Where old and new entries come to stand is the same for every array, so NumPy says it.
    size = x.shape[axis]
    single = np.ndim(obj) == 0 and not isinstance(obj, slice)
    new = cast(asarray(values), x.dtype)
    if single:
        new = np.moveaxis(reshaped(new, (1,) * (x.ndim - new.ndim) + new.shape), 0, axis)
        count = new.shape[axis]
    else:
        new = reshaped(new, (1,) * (x.ndim - new.ndim) + new.shape)
        count = len(np.arange(size + 1)[obj]) if isinstance(obj, slice) else len(np.atleast_1d(obj))
    marks = -1 - np.arange(count)
    places = np.insert(np.arange(size), obj, marks)
    places = np.where(places < 0, size - 1 - places, places)
    shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
    both = join(x, promotion.broadcast_to(new, shape), axis=axis)
    return np.take(both, places, axis)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The elements, over and over, in another shape."""
    a = asarray(a)
    shape = tuple(operator.index(n) for n in (new_shape if np.ndim(new_shape) else (new_shape,)))
    count = math.prod(shape)
    if not a.size:
        return full(shape, 0, a.dtype)
    return np.reshape(np.take(np.ravel(a), np.arange(count) % a.size), shape)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Without zeros at the ends, which asks for the values."""
    filt = asarray(filt)
    nonzero = np.flatnonzero(filt)
    if not len(nonzero):
        return filt[:0]
    start = nonzero[0] if "f" in trim.lower() else 0
    stop = nonzero[-1] + 1 if "b" in trim.lower() else None
    return getitem(filt, slice(int(start), None if stop is None else int(stop)))


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of vectors, applied to each along an axis; `ftrans.vmap` does it at once."""
    x = asarray(arr)
    axis = normal_axis(axis, x.ndim)
    lines = np.moveaxis(x, axis, -1)
    lead = lines.shape[:-1]
    results = [asarray(func1d(lines[place], *args, **kwargs)) for place in np.ndindex(lead)]
    stacked = promotion.stack(results)
    ndim = stacked.ndim - 1
    y = reshaped(stacked, (*lead, *stacked.shape[1:]))
    return np.moveaxis(y, tuple(range(len(lead), len(lead) + ndim)), tuple(range(axis, axis + ndim)))
