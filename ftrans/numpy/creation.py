"""Functions that make arrays.

NumPy has no way to let a traced value be assigned into an array that it made itself.  So while a trace runs,
`zeros`, `ones`, `full` and `empty` of `ftrans.numpy` make traced arrays; outside of one they are NumPy's.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.eager import Eager
from ..core.source import at_line, user_line
from ..core.trace import Tracer, current_builder
from ..core.types import Shape
from ..ops import shapes
from .dispatch import implements
from .promotion import asarray as as_tracer
from .promotion import broadcast_to, cast, has_tracer, same_value


def _shape(shape: Any) -> Shape:
    try:
        return (operator.index(shape),)
    except TypeError:
        return tuple(operator.index(n) for n in shape)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """Zeros; while a trace runs, in an array that traced values can be assigned into."""
    return full(shape, 0, dtype or float) if current_builder() is not None else np.zeros(shape, dtype, order)


def ones(shape: Any, dtype: Any = None, order: str = "C") -> Any:
    """Ones; while a trace runs, in an array that traced values can be assigned into."""
    return full(shape, 1, dtype or float) if current_builder() is not None else np.ones(shape, dtype, order)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """An array to be filled; while a trace runs, one of zeros that traced values can be assigned into."""
    return full(shape, 0, dtype or float) if current_builder() is not None else np.empty(shape, dtype, order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Any:
    """An array filled with a value; while a trace runs, one that traced values can be assigned into."""
    if current_builder() is None:
        if _holds_eager(fill_value):
            return array(np.broadcast_to(array(fill_value, dtype), _shape(shape)))
        return np.full(shape, fill_value, dtype, order)
    return _filled(_shape(shape), fill_value, dtype)


def _filled(shape: Shape, value: Any, dtype: Any) -> Tracer:
    if has_tracer(value) or _holds_eager(value) or np.ndim(value):
        x = as_tracer(value)
        return same_value(broadcast_to(cast(x, x.dtype if dtype is None else np.dtype(dtype)), shape))
    return shapes.full(shape, value, np.asarray(value).dtype if dtype is None else dtype)


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    """An array filled with a value, of the shape and dtype of `a`."""
    a = as_tracer(a)
    return _filled(a.shape if shape is None else _shape(shape), fill_value, a.dtype if dtype is None else dtype)


@implements(np.zeros_like)
def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Any:
    """Zeros of the shape and dtype of `a`, in an array that traced values can be assigned into."""
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.ones_like)
def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Any:
    """Ones of the shape and dtype of `a`, in an array that traced values can be assigned into."""
    return full_like(a, 1, dtype, order, subok, shape)


@implements(np.empty_like)
def empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> Any:
    """An array to be filled, of the shape and dtype of `prototype`."""
    return full_like(prototype, 0, dtype, order, subok, shape)


def array(object: Any, dtype: Any = None, *, copy: bool = True, order: str = "K", ndmin: int = 0) -> Any:
    """An array of nested lists, which may hold traced values or tensors."""
    if not has_tracer(object):
        if _holds_eager(object):
            x = _joined(object)
            x = x.astype(dtype) if dtype is not None and x.dtype != dtype else np.copy(x) if copy else x
            return x[(None,) * (ndmin - x.ndim)] if ndmin > x.ndim else x
        return np.array(object, dtype, copy=copy, order=order, ndmin=ndmin)
    x = as_tracer(object)
    if dtype is not None and x.dtype != dtype:
        x = cast(x, np.dtype(dtype))
    elif copy:
        x = same_value(x)
    return x[(None,) * (ndmin - x.ndim)] if ndmin > x.ndim else x


def _holds_eager(x: Any) -> bool:
    return isinstance(x, Eager) or (isinstance(x, list | tuple) and any(map(_holds_eager, x)))


def _joined(x: Any) -> Any:
    """One array of nested lists with eager values in them."""
    return np.stack([_joined(y) for y in x]) if isinstance(x, list | tuple) else x


def asarray(a: Any, dtype: Any = None, order: str = "K") -> Any:
    """`a` as an array; a traced array, or lists that hold traced values, become a traced array."""
    return array(a, dtype, copy=False, order=order) if has_tracer(a) or _holds_eager(a) else np.asarray(a, dtype, order)


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A copy: what is assigned to one is not seen by the other."""
    return same_value(as_tracer(a))


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """`a` as an array of at least one axis."""
    is_plain = not has_tracer(a) and not _holds_eager(a)
    return np.ascontiguousarray(a, dtype) if is_plain else array(a, dtype, copy=False, ndmin=1)


def arange(*args: Any, dtype: Any = None) -> Any:
    """`numpy.arange`; the bounds decide a shape, so traced ones must be integers whose values are known."""
    return np.arange(*(operator.index(a) if a.__class__ is Tracer else a for a in args), dtype=dtype)


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.{at_line(user_line())}")
    intervals = num - 1 if endpoint else num
    start, stop = as_tracer(start) * 1.0, as_tracer(stop) * 1.0
    difference = same_value(stop - start)
    fractions = np.arange(num).reshape((-1,) + (1,) * difference.ndim) / max(intervals, 1)
    result = start + fractions.astype(difference.dtype) * difference
    if endpoint and num > 1:
        last = cast(broadcast_to(stop, difference.shape), result.dtype)
        result = np.concatenate([result[:-1], last[None]])
    step = difference / intervals if intervals > 0 else difference * np.nan
    result = np.moveaxis(result, 0, axis) if axis else result
    if dtype is not None:
        result = (np.floor(result) if np.dtype(dtype).kind in "iu" else result).astype(dtype)
    return (result, step) if retstep else result


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` numbers from `base**start` to `base**stop`, evenly spaced on a log scale."""
    result = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else result.astype(dtype)


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """`num` positive numbers from `start` to `stop`, evenly spaced on a log scale."""
    start, stop = (np.log(same_value(as_tracer(x)) * 1.0) for x in (start, stop))
    result = np.exp(np.linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else result.astype(dtype)
