"""What an index selects: its basic part as a `Window`, and its advanced items, arrays of integers and masks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.cell import concrete, read
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import Shape
from ..core.witness import ConcretizationError, refuse
from .promotion import asarray
from .windows import Window, index_error, wrapped

_MOST_WINDOWS = 10_000
_windows: dict[Any, Window] = {}


def known_window(shape: Shape, index: Any) -> Window | None:
    """The window of a basic index of plain integers and slices, kept for the next time; None for any other index."""
    parts: list[Any] = [shape]
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if kind is slice:
            start, stop, step = item.start, item.stop, item.step
            if not (
                (start is None or type(start) is int)
                and (stop is None or type(stop) is int)
                and (step is None or type(step) is int)
            ):
                return None
            parts.append((start, stop, step))
        elif kind is int or item is None or item is Ellipsis:
            parts.append(item)
        else:
            return None
    key = tuple(parts)
    window = _windows.get(key)
    if window is None:
        if len(_windows) > _MOST_WINDOWS:
            _windows.clear()
        window = _windows[key] = parse(shape, entries_of(shape, index)).window
    return window


class Item(NamedTuple):
    """One advanced item of an index: an array of integers, or a mask, for `ndim` axes from `axis` on."""

    axis: int
    ndim: int
    array: Any
    is_mask: bool


class ParsedIndex(NamedTuple):
    """An index: the window of its basic part, its advanced items, and where their axes go in the result.

    Their place is behind `place` axes if all integers and advanced items are adjacent; else they come first.
    """

    window: Window
    items: list[Item]
    place: int
    is_adjacent: bool


def entries_of(shape: Shape, index: Any) -> list[Any]:
    """The items of an index, with slices for the axes that it leaves out."""
    entries = [_entry(item) for item in (index if isinstance(index, tuple) else (index,))]
    ellipses = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(ellipses) > 1:
        raise index_error("an index can only have a single ellipsis ('...')")
    missing = len(shape) - sum(_axes_taken(entry) for entry in entries)
    if missing < 0:
        raise index_error(
            f"too many indices for array: array is {len(shape)}-dimensional, but {len(shape) - missing} were indexed"
        )
    at = ellipses[0] if ellipses else len(entries)
    slices = [slice(None)] * missing
    separates = [Ellipsis] if ellipses and not missing else []
    return entries[:at] + slices + separates + entries[at + 1 :]


def parse(shape: Shape, entries: Sequence[Any]) -> ParsedIndex:
    """What the items of an index, as `entries_of` returns them, select of an array of this shape."""
    bounds: list[tuple[int, int, int]] = []
    inner: list[int] = []
    items: list[Item] = []
    positions: list[int] = []
    place = 0
    for position, entry in enumerate(entries):
        axis = len(bounds)
        if entry is None:
            inner.append(1)
        elif isinstance(entry, slice):
            bounds.append(_slice_bounds(entry, shape[axis]))
            inner.append(len(range(*bounds[-1])))
        elif entry is not Ellipsis:
            place = place if positions else len(inner)
            positions.append(position)
            if is_plain(entry, int):
                start = wrapped(entry, axis, shape[axis])
                bounds.append((start, start + 1, 1))
                continue
            ndim = _axes_taken(entry)
            is_mask = entry.dtype.kind == "b"
            if is_mask:
                check_mask(entry.shape, shape[axis:], axis)
            items.append(Item(len(inner), ndim, entry, is_mask))
            bounds += [(0, n, 1) for n in shape[axis : axis + ndim]]
            inner += shape[axis : axis + ndim] if ndim else [1]
    is_adjacent = not positions or positions[-1] - positions[0] == len(positions) - 1
    is_element = not inner and not any(entry is Ellipsis for entry in entries)
    return ParsedIndex(Window(shape, bounds, tuple(inner), is_element), items, place if is_adjacent else 0, is_adjacent)


def _axes_taken(entry: Any) -> int:
    """How many axes of the array an entry of an index is for."""
    if entry is None or entry is Ellipsis:
        return 0
    if is_plain(entry, slice | int):
        return 1
    return entry.ndim if entry.dtype.kind == "b" else 1


def _entry(item: Any) -> Any:
    """One item of an index as None, Ellipsis, a slice, an int, or an array (traced or not) of integers or booleans."""
    if item is None or item is Ellipsis or type(item) is int or isinstance(item, slice):
        return item
    item = concrete(read(item))
    if is_plain(item, bool | np.bool_):
        return np.asarray(item)
    if not is_plain(item, Tracer | np.ndarray | list | tuple | range) and hasattr(item, "__index__"):
        return operator.index(item)
    if type(item) is Tracer:
        item = asarray(item)
    else:
        array = np.asarray(item)
        if array.size == 0 and not is_plain(item, np.ndarray):
            array = array.astype(np.int64)
        item = asarray(item) if array.dtype == object else array
    if item.dtype.kind not in "biu":
        raise index_error(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            f"valid indices, not values of dtype {item.dtype}"
        )
    if is_plain(item, np.ndarray) and item.ndim == 0 and item.dtype.kind != "b":
        return int(item)
    return item


def _slice_bounds(item: slice, size: int) -> tuple[int, int, int]:
    try:
        return item.indices(size)
    except ConcretizationError as error:
        advice = (
            "\n  The bounds of a slice decide a shape; n elements from a traced start on are x[start + np.arange(n)]."
        )
        raise refuse(ConcretizationError(f"{error}{advice}")) from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}{at_line(user_line())}") from None


def check_mask(mask: Shape, shape: Shape, axis: int) -> None:
    """Raise an IndexError unless a mask fits the axes of an array from `axis` on."""
    for i, (m, n) in enumerate(zip(mask, shape, strict=False)):
        if m != n:
            raise index_error(
                f"boolean index did not match indexed array along axis {axis + i}; size of axis is {n} but size of "
                f"corresponding boolean axis is {m}"
            )


def is_traced_integer(entry: Any) -> bool:
    """Whether an item of an index is an integer that is traced."""
    return type(entry) is Tracer and not entry.shape and entry.dtype.kind != "b"


def has_traced_integers_only(entries: Sequence[Any]) -> bool:
    """Whether an index is basic but for integers that are traced."""
    return any(map(is_traced_integer, entries)) and all(
        e is None or e is Ellipsis or is_plain(e, slice | int) or is_traced_integer(e) for e in entries
    )
