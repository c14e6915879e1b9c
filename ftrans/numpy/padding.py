"""`numpy.pad`: elements added at the ends of axes, one axis after the other, so that corners belong to the last."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..ops.parts import pad as pad_with_number
from .dispatch import implements
from .indexing import getitem
from .layouts import own
from .manipulation import normal_axis
from .promotion import asarray, broadcast_to, cast, has_tracer, operand, same_value

__all__ = ["pad"]

Width = tuple[int, int]

# What each mode may be told.
_OPTIONS = {
    "empty": (), "edge": (), "wrap": (), "constant": ("constant_values",), "linear_ramp": ("end_values",),
    "maximum": ("stat_length",), "mean": ("stat_length",), "median": ("stat_length",), "minimum": ("stat_length",),
    "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
}  # fmt: skip
_STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}


def _widths(pad_width: Any, ndim: int) -> list[Width]:
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[normal_axis(axis, ndim)] = tuple(np.broadcast_to(width, 2).tolist())
    else:
        array = np.asarray(pad_width)
        if array.dtype.kind not in "iu":
            raise TypeError(f"`pad_width` must be of integral type, not {array.dtype}{at_line(user_line())}")
        widths = [tuple(w) for w in np.broadcast_to(array, (ndim, 2)).tolist()]
    if any(n < 0 for width in widths for n in width):
        raise ValueError(f"index can't contain negative values{at_line(user_line())}")
    return widths


def _pairs(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """A value for each end of each axis, of one number, a pair, or a pair for each axis."""
    if has_tracer(values):
        array = broadcast_to(asarray(values), (ndim, 2))
        return [(getitem(array, (i, 0)), getitem(array, (i, 1))) for i in range(ndim)]
    return [tuple(pair) for pair in np.broadcast_to(np.asarray(values), (ndim, 2)).tolist()]


def _with_ends(x: Tracer, axis: int, before: Any, after: Any) -> Tracer:
    return asarray(np.concatenate([asarray(before), x, asarray(after)], axis))


def _part(x: Tracer, axis: int, part: Any) -> Any:
    return getitem(x, (*(slice(None),) * axis, part))


def _constant(x: Tracer, axis: int, width: Width, values: Any) -> Tracer:
    none = (0,) * x.ndim
    for side, (count, value) in enumerate(zip(width, values, strict=True)):
        ends = tuple(count if i == axis else 0 for i in range(x.ndim))
        before, after = (none, ends) if side else (ends, none)
        x = pad_with_number(x, operand(value, x.dtype, ()), before=before, after=after, interior=none)
    return x


def _ramped(x: Tracer, axis: int, width: Width, ends: Any) -> Tracer:
    before, after = (
        np.linspace(end, _part(x, axis, place), count, endpoint=False, dtype=x.dtype, axis=axis)
        for end, place, count in zip(ends, (0, -1), width, strict=True)
    )
    return _with_ends(x, axis, before, np.flip(after, axis))


def _with_statistics(x: Tracer, axis: int, width: Width, lengths: Any, statistic: Callable[..., Any]) -> Tracer:
    size = x.shape[axis]
    ends = []
    for side, (count, length) in enumerate(zip(width, lengths, strict=True)):
        length = size if length is None else min(operator.index(length), size)
        if not length and statistic in (np.max, np.min):
            raise ValueError(f"stat_length of 0 yields no value for padding{at_line(user_line())}")
        value = asarray(statistic(_part(x, axis, slice(size - length, None) if side else slice(length)), axis))
        value = cast(asarray(np.round(value)) if x.dtype.kind in "iu" else value, x.dtype)
        shape = tuple(count if i == axis else n for i, n in enumerate(x.shape))
        ends.append(broadcast_to(asarray(np.expand_dims(value, axis)), shape))
    return _with_ends(x, axis, *ends)


def _reflected_odd(x: Tracer, axis: int, width: Width, is_symmetric: bool) -> Tracer:
    """Reflected at the elements at the ends, as points are: again and again, until there are enough."""
    before, after = width
    size = x.shape[axis]
    offset = 1 if is_symmetric else 0
    while before or after:
        count = x.shape[axis]
        # A whole number of what there was at first is reflected at once.
        period = size - 1 + offset
        whole = (count - 1 + offset) // period * period
        left, right = min(whole, before), min(whole, after)
        at_left = _part(x, axis, np.arange(left - offset, -offset, -1))
        at_right = _part(x, axis, np.arange(count - 2 + offset, count - 2 + offset - right, -1))
        ends = [2 * _part(x, axis, slice(1)) - at_left, 2 * _part(x, axis, slice(-1, None)) - at_right]
        x = _with_ends(x, axis, *ends)
        before, after = before - left, after - right
    return x


def _moved(x: Tracer, axis: int, width: Width, mode: str) -> Tracer:
    # Which element stands where is the same for every array, so NumPy says it.
    places = np.pad(np.arange(x.shape[axis]), width, mode)
    return _part(x, axis, places)


def _by_function(x: Tracer, widths: list[Width], function: Callable[..., Any], options: dict[str, Any]) -> Tracer:
    """Padded with zeros, then handed to a function line by line, which changes them in place."""
    for axis, width in enumerate(widths):
        x = _constant(x, axis, width, (0, 0))
    padded = same_value(x)
    for axis, width in enumerate(widths):
        lines: Any = np.moveaxis(padded, axis, -1)
        for place in np.ndindex(lines.shape[:-1]):
            function(lines[(*place, Ellipsis)], width, axis, options)
    return asarray(padded)


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Pad an array at both ends of its axes, in the way that `mode` names."""
    x = asarray(array)
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise ValueError(f"mode '{mode}' is not supported{at_line(user_line())}")
    unknown = set(kwargs) - set(_OPTIONS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}{at_line(user_line())}")
    (option,) = _OPTIONS[mode] or ("",)
    default = {"stat_length": None, "reflect_type": "even"}.get(option, 0)
    given = kwargs.get(option, default)
    if mode in ("reflect", "symmetric") and given not in ("even", "odd"):
        raise ValueError(f"reflect_type must be 'even' or 'odd', not {given!r}{at_line(user_line())}")
    values = [given] * x.ndim if isinstance(given, str) else _pairs(given, x.ndim)
    for axis, (width, value) in enumerate(zip(widths, values, strict=True)):
        if not any(width):
            continue
        if mode in ("constant", "empty"):
            x = _constant(x, axis, width, value)
            continue
        if not x.shape[axis]:
            raise ValueError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'{at_line(user_line())}"
            )
        if mode == "linear_ramp":
            x = _ramped(x, axis, width, value)
        elif mode in _STATISTICS:
            x = _with_statistics(x, axis, width, value, _STATISTICS[mode])
        elif value == "odd" and x.shape[axis] > 1:
            x = _reflected_odd(x, axis, width, mode == "symmetric")
        else:
            x = _moved(x, axis, width, mode)
    padded = same_value(x, "A")
    return padded if x.ndim else own(padded, None)
