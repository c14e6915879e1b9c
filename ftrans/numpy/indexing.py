"""`x[index]` and `x[index] = value`, with NumPy's rules for basic, advanced and mixed indices.

A basic index (integers, slices, None, Ellipsis) is a `Window`: one slice, then a reshape.  Its result is a view.
An advanced index is a window whose indexed axes are moved to the front, where elements are gathered or scattered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.forward_code import speaking
from ..base.source import at_line, user_line
from ..base.torch_indices import require_one_meaning
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import Shape, is_complex
from ..ops.elementwise import select
from ..ops.indexing import gather, scatter_add, scatter_set
from ..ops.shapes import transpose
from .index_items import (
    ParsedIndex,
    check_mask,
    entries_of,
    has_traced_integers_only,
    is_traced_integer,
    known_window,
    parse,
)
from .layouts import own
from .promotion import asarray, broadcast_to, cast, fits, is_number, operand, reshaped, same_value
from .selection import Selection, known_mask
from .views import Flat, View, as_array, assign, is_scalar, sharing, view_of
from .windows import At, Window, index_error, wrapped

# Of so many known indices it is found out whether they are distinct, which spares derivatives of writes much work.
_MOST_COMPARED = 256


def getitem(x: Tracer, index: Any) -> Any:
    """`x[index]`."""
    if x.memory is not None:
        x.memory.refresh(x)
    window = known_window(x.atom.type.shape, index)
    if window is None:
        if speaking.get():
            require_one_meaning(index)
        lone = index[0] if type(index) is tuple and len(index) == 1 else index
        if type(lone) is Tracer and lone.dtype.kind == "b" and lone.ndim:
            check_mask(lone.shape, x.shape, 0)
            return Selection(same_value(x), same_value(lone), getitem)
        entries = entries_of(x.shape, index)
        if has_traced_integers_only(entries):
            y, rest = _located(x, entries)
            y = getitem(y, rest) if rest else y
            return same_value(y, "?") if not rest or _has_array(index) else y
        parsed = parse(x.shape, entries)
        if parsed.items:
            return _advanced(parsed).read(x)
        window = parsed.window
        if _has_array(index):
            return same_value(window.read(x), "?")
    y = window.read(x)
    if window.is_element:
        return y if y is not x else same_value(x)
    if isinstance(x.memory, View) and isinstance(x.memory.access, Flat):
        # NumPy's iterator copies what it gives.
        return same_value(y)
    y = Tracer(y.builder, y.atom) if y is x else y
    # NumPy makes an array of a number that is indexed, and no view of it.
    return own(y, None) if is_scalar(x) else sharing(y, x, window)


def _has_array(index: Any) -> bool:
    """Whether an index has an array without axes, which is an integer for NumPy but selects a copy, as arrays do."""
    items = index if isinstance(index, tuple) else (index,)
    return any(is_plain(i, np.ndarray) or (type(i) is Tracer and not is_scalar(i)) for i in items)


def setitem(x: Tracer, index: Any, value: Any) -> None:
    """`x[index] = value`."""
    if value is None:
        # NumPy makes NaN of it, or says what it cannot make of it.
        value = np.array(None, x.dtype)
    if x.memory is not None:
        x.memory.refresh(x)
    window = known_window(x.atom.type.shape, index)
    if window is None:
        if speaking.get():
            require_one_meaning(index)
        entries = entries_of(x.shape, index)
        if has_traced_integers_only(entries):
            y, rest = _located(x, entries)
            setitem(y, rest or Ellipsis, value)
            return
        parsed = parse(x.shape, entries)
        if parsed.items:
            if is_scalar(x) and getattr(index, "dtype", None) == np.bool_:
                # By the array API standard x[mask] = value is for results of all functions, such as sums.
                as_array(x)
            _set_advanced(x, parsed, value)
            return
        window = parsed.window
    # `x[i] += v` has written through the view x[i] already, and then assigns the view to x[i].
    if type(value) is Tracer and value.memory is not None and _is_view_of(value, x, window):
        return
    assign(x, window.write(x, _converted(value, x.dtype, window.shape)))


def add_at(x: Tracer, index: Any, value: Any) -> None:
    """`np.add.at(x, index, value)`: add at indices, of which none is skipped where they repeat."""
    x = asarray(x)
    parsed = parse(x.shape, entries_of(x.shape, index))
    if parsed.items:
        assign(x, _advanced(parsed).added(x, value))
    else:
        setitem(x, index, getitem(x, index) + value)


def require_kept(value: Any, dtype: np.dtype[Any]) -> None:
    """Raise if what is assigned is complex, and the array is not.

    Raises:
        TypeError: it is.
    """
    if not is_complex(dtype) and (is_complex(value.dtype) if hasattr(value, "dtype") else is_plain(value, complex)):
        raise TypeError(
            f"assignment of complex values to an array of dtype {dtype} would drop their imaginary part; assign "
            f"value.real{at_line(user_line())}"
        )


def _converted(value: Any, dtype: np.dtype[Any], shape: Shape) -> Tracer:
    """What is assigned, in the dtype and the shape of the place that it is assigned to."""
    require_kept(value, dtype)
    if not is_number(value):
        value = asarray(value)
        while value.ndim > len(shape) and value.shape[0] == 1:
            value = reshaped(value, value.shape[1:])
        if value.shape != shape and not fits(value.shape, shape):
            raise ValueError(
                f"could not broadcast input array from shape {value.shape} into shape {shape}{at_line(user_line())}"
            )
    return operand(value, dtype, shape)


# Traced integers


def _located(x: Tracer, entries: Sequence[Any]) -> tuple[Tracer, tuple[Any, ...]]:
    """The view of `x` where its traced integers point, and the index of it that is left.

    Integers that are known go along with traced ones beside them, so that a write touches the fewest elements.
    """
    y = x
    rest: list[Any] = []
    run: list[Any] = []
    axis = x.ndim

    def finish() -> None:
        nonlocal y
        if any(map(is_traced_integer, run)):
            indices = [wrapped(e, axis + i, x.shape[axis + i]) if is_plain(e, int) else e for i, e in enumerate(run)]
            y = view_of(y, At(axis, [_scalar_index(i) for i in indices]))
        else:
            rest[:0] = run
        run.clear()

    for entry in reversed(entries):
        if isinstance(entry, slice) or entry is None or entry is Ellipsis:
            finish()
            rest.insert(0, entry)
            axis -= isinstance(entry, slice)
        else:
            run.insert(0, entry)
            axis -= 1
    finish()
    return y, tuple(rest)


def _scalar_index(index: Any) -> Any:
    """An index as it is now: a view stays where it is when the index changes."""
    return cast(same_value(index), np.dtype(np.int64)) if type(index) is Tracer else np.int64(index)


def _is_view_of(value: Tracer, x: Tracer, window: Window) -> bool:
    """Whether a value is the view of `x` that a window selects."""
    value.memory.refresh(value)
    if not isinstance(value.memory, View) or not window.same(value.memory.access):
        return False
    ours, theirs = x, value.memory.base
    while ours is not theirs:
        a, b = ours.memory, theirs.memory
        if not (isinstance(a, View) and isinstance(b, View) and isinstance(a.access, At) and a.access.same(b.access)):
            return False
        ours, theirs = a.base, b.base
    return True


# Advanced indices


class _Advanced(NamedTuple):
    """An advanced index: a window of which every mask's axes are merged and axes are put in `order`, then a gather.

    The index arrays, of `index_shape`, are for the axes from `axis` on.
    """

    window: Window
    merged: Shape
    order: Shape
    indices: list[Any]
    index_shape: Shape
    axis: int
    is_unique: bool

    def read(self, x: Tracer) -> Tracer:
        """The elements that are selected."""
        return gather(self._arranged(x), *self.indices, axis=self.axis)

    def write(self, x: Tracer, value: Any) -> Tracer:
        """The whole array, after an assignment to what is selected."""
        return self._scattered(x, value, scatter_set, {"unique": self.is_unique})

    def added(self, x: Tracer, value: Any) -> Tracer:
        """The whole array, after `value` was added to what is selected, as often as it is."""
        return self._scattered(x, value, scatter_add, {})

    def _scattered(self, x: Tracer, value: Any, scatter: Any, params: dict[str, Any]) -> Tracer:
        target = self._arranged(x)
        end = self.axis + len(self.indices)
        new = _converted(value, x.dtype, (*target.shape[: self.axis], *self.index_shape, *target.shape[end:]))
        y = scatter(target, new, *self.indices, axis=self.axis, **params)
        if self._moves():
            y = transpose(y, axes=tuple(self.order.index(i) for i in range(len(self.order))))
        return self.window.write(x, reshaped(y, self.window.shape))

    def _moves(self) -> bool:
        return self.order != tuple(range(len(self.order)))

    def _arranged(self, x: Tracer) -> Tracer:
        y = reshaped(self.window.read(x), self.merged)
        return transpose(y, axes=self.order) if self._moves() else y


def _advanced(parsed: ParsedIndex) -> _Advanced:
    shape = parsed.window.shape
    merged: list[int] = []
    axes: list[int] = []
    indices: list[Any] = []
    done = 0
    for item in parsed.items:
        end = item.axis + max(item.ndim, 1)
        merged += shape[done : item.axis]
        axes.append(len(merged))
        merged.append(math.prod(shape[item.axis : end]))
        done = end
        indices.append(np.flatnonzero(_known(item.array)) if item.is_mask else item.array)
    merged += shape[done:]
    others = [i for i in range(len(merged)) if i not in axes]
    order = tuple(range(len(merged))) if parsed.is_adjacent else (*axes, *others)
    try:
        index_shape = np.broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        shapes = " ".join(str(i.shape) for i in indices)
        raise index_error(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    prepared = [_prepared(i, n, merged[n], index_shape) for i, n in zip(indices, axes, strict=True)]
    is_unique = (len(parsed.items) == 1 and parsed.items[0].is_mask) or _are_distinct(prepared, index_shape)
    return _Advanced(parsed.window, tuple(merged), order, prepared, index_shape, parsed.place, is_unique)


def _are_distinct(indices: list[Any], shape: Shape) -> bool:
    """Whether few known indices select no element twice."""
    count = math.prod(shape)
    if count == 1:
        return True
    if count > _MOST_COMPARED or any(type(index) is Tracer for index in indices):
        return False
    return len(set(zip(*[index.reshape(-1).tolist() for index in indices], strict=True))) == count


def _known(mask: Any) -> Any:
    return known_mask(mask) if type(mask) is Tracer else mask


def _prepared(index: Any, axis: int, size: int, shape: Shape) -> Any:
    """An index array in int64 and of `shape`; a constant one is checked, and counts from the start."""
    if type(index) is Tracer:
        return broadcast_to(cast(index, np.dtype(np.int64)), shape)
    array = index.astype(np.int64, copy=False)
    if array.size:
        for extreme in (int(array.max()), int(array.min())):
            wrapped(extreme, axis, size)
        if extreme < 0:
            array = np.where(array < 0, array + size, array)
    return array if array.shape == shape else np.broadcast_to(array, shape).copy()


def _set_advanced(x: Tracer, parsed: ParsedIndex, value: Any) -> None:
    if len(parsed.items) == 1 and parsed.items[0].is_mask:
        new = _set_masked(x, parsed, value)
        if new is not None:
            assign(x, new)
            return
    if type(value) is Selection:
        value = value.read()
    assign(x, _advanced(parsed).write(x, value))


def _set_masked(x: Tracer, parsed: ParsedIndex, value: Any) -> Tracer | None:
    """`x` after an assignment under one mask, by choosing; None if the value has an element for each selected one."""
    window, ((axis, ndim, mask, _),) = parsed.window, parsed.items
    ndim = max(ndim, 1)
    if type(value) is Selection:
        spread = value.spread(mask)
        if axis or spread is None or spread.shape != window.shape:
            return None
        value = spread
    elif not is_number(value):
        value = asarray(value)
        if value.ndim:
            # The axes of the mask stand for one axis of the result; along it, the value must not vary.
            result_ndim = len(window.shape) - ndim + 1
            shape = (1,) * (result_ndim - value.ndim) + value.shape
            if len(shape) > result_ndim or parsed.place != axis or shape[axis] != 1:
                return None
            value = reshaped(value, shape[:axis] + (1,) * ndim + shape[axis + 1 :])
    region = window.read(x)
    mask = asarray(mask)
    mask = _spread(reshaped(mask, (1,) * axis + (mask.shape or (1,))), region.shape)
    return window.write(x, select(mask, _converted(value, x.dtype, region.shape), region))


def _spread(mask: Any, shape: Shape) -> Tracer:
    """A mask of leading axes, repeated over the other axes of `shape`."""
    mask = asarray(mask)
    return broadcast_to(reshaped(mask, mask.shape + (1,) * (len(shape) - mask.ndim)), shape)
