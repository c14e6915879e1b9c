"""Functions that make arrays.

NumPy has no way to let a traced value be assigned into an array that it made itself.  So while a trace runs,
`zeros`, `ones`, `full`, `empty` and what is named `..._like` make traced arrays in `ftrans.numpy`.  So do the others
(`array`, `copy`, `eye`, `linspace`, `arange` ...) where the numbers are floating-point; integers, which are often
indices, stay in arrays of NumPy.  Outside of a trace all of them are NumPy's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..base.cell import read
from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType, Shape, type_of
from ..ops import literals
from ..run.places import JAX, TRACE, place_of_argument
from .array_api import check_device
from .dispatch import implements
from .layouts import own
from .promotion import asarray as as_tracer
from .promotion import (
    broadcast_to,
    cast,
    has_tracer,
    is_number_dtype,
    promote,
    result_dtype,
    same_value,
    strong_dtype,
    value_in_hand,
)
from .views import converted, is_scalar

__all__ = [
    "arange", "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "copy",
    "empty", "empty_like", "eye", "full", "full_like", "geomspace", "identity", "linspace", "logspace", "ones",
    "ones_like", "require", "tri", "zeros", "zeros_like",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])


def _shape(shape: Any) -> Shape:
    if type(shape) is int and shape >= 0:
        return (shape,)
    # What is a shape is for NumPy to say.  No memory is touched.
    return np.empty(shape, bool).shape


def _takes_traced(dtype: Any) -> bool:
    """Whether a new array of a dtype may become one of traced values: a trace runs, and the elements are numbers."""
    return current_builder() is not None and (dtype is None or is_number_dtype(np.dtype(dtype)))


def _float(dtype: Any) -> Any:
    return float if dtype is None else dtype


def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None) -> Any:
    """Zeros; while a trace runs, in an array that traced values can be assigned into."""
    check_device(device)
    return full(shape, 0, _float(dtype), order) if _takes_traced(dtype) else np.zeros(shape, _float(dtype), order)


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Any:
    """Ones; while a trace runs, in an array that traced values can be assigned into."""
    check_device(device)
    return full(shape, 1, _float(dtype), order) if _takes_traced(dtype) else np.ones(shape, _float(dtype), order)


def empty(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None) -> Any:
    """An array to be filled; while a trace runs, one of zeros that traced values can be assigned into."""
    check_device(device)
    return full(shape, 0, _float(dtype), order) if _takes_traced(dtype) else np.empty(shape, _float(dtype), order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Any:
    """An array filled with a value; while a trace runs, one that traced values can be assigned into."""
    check_device(device)
    if current_builder() is None and not place_of_argument(fill_value).holds_arrays:
        return array(np.broadcast_to(array(fill_value, dtype), _shape(shape)))
    if not _takes_traced(getattr(fill_value, "dtype", None) if dtype is None else dtype):
        return np.full(shape, fill_value, dtype, order)
    return _filled(_shape(shape), fill_value, dtype, None, order)


def _filled(shape: Shape, value: Any, dtype: Any, like: Tracer | None, order: str) -> Tracer:
    """A new array that lies in memory in an order, or as a copy of another one in that order."""
    if not place_of_argument(value).holds_arrays or np.ndim(value):
        x = as_tracer(value)
        found = same_value(broadcast_to(cast(x, x.dtype if dtype is None else np.dtype(dtype)), shape))
    else:
        found = literals.full(shape, value, np.asarray(value).dtype if dtype is None else dtype)
    return own(found, like, order)


def traced_in_trace(like: Function) -> Function:
    """A function in the table whose public form is the traced one whenever a trace runs."""

    @wraps(like)
    def make(*args: Any, **kwargs: Any) -> Any:
        return (like.__wrapped__ if current_builder() is not None else like)(*args, **kwargs)

    return make  # type: ignore[return-value]


def _is_of_another_class(a: Any) -> bool:
    """Whether `a` is an array of a subclass of NumPy's, which its copies are to have as well."""
    return isinstance(a, np.ndarray) and type(a) is not np.ndarray and not isinstance(a, Tracer)


def _type(a: Any) -> ArrayType:
    """Shape and dtype of what is given as an array."""
    plain = is_plain(a, np.ndarray) and a.dtype != object
    return type_of(a) if plain else as_tracer(a).type


@traced_in_trace
@implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """An array filled with a value, of the shape and dtype of `a`."""
    check_device(device)
    if (_is_of_another_class(a) and subok) or not _takes_traced(getattr(a, "dtype", None) if dtype is None else dtype):
        return np.full_like(a, fill_value, dtype, order, subok, shape)
    type = _type(a)
    if shape is not None and _shape(shape) != type.shape:
        # NumPy lays out another shape in the order of `a` as well, if it has as many axes.
        return _filled(_shape(shape), fill_value, dtype or type.dtype, None, "?" if order == "K" else order)
    return _filled(type.shape, fill_value, dtype or type.dtype, as_tracer(a), order)


@traced_in_trace
@implements(np.zeros_like, constant=True)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Zeros of the shape and dtype of `a`, in an array that traced values can be assigned into."""
    return full_like(a, 0, dtype, order, subok, shape, device=device)


@traced_in_trace
@implements(np.ones_like, constant=True)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Ones of the shape and dtype of `a`, in an array that traced values can be assigned into."""
    return full_like(a, 1, dtype, order, subok, shape, device=device)


@traced_in_trace
@implements(np.empty_like, constant=True)
def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """An array to be filled, of the shape and dtype of `prototype`."""
    return full_like(prototype, 0, dtype, order, subok, shape, device=device)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """An array of nested lists, which may hold traced values or tensors.

    While a trace runs, a copy of floating-point numbers is one that traced values can be assigned into.
    """
    # NumPy has three names for "if needed", one of them an enumeration that is no bool.
    copy = {0: False, 1: True, 2: None}.get(getattr(copy, "value", copy), copy)
    place = place_of_argument(object)
    if place.holds_arrays:
        more = {"like": like} if place_of_argument(like).holds_arrays and like is not None else {}
        more |= {"ndmax": ndmax} if ndmax else {}
        made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **more)
        return assignable(made) if copy else made
    order = order or "K"
    if place is not TRACE:
        x = _joined(read(object))
        x = x.astype(dtype) if dtype is not None and x.dtype != dtype else np.copy(x) if copy else x
        return x[(None,) * (ndmin - x.ndim)] if ndmin > x.ndim else x
    if dtype is not None and np.dtype(dtype) == np.dtype("O"):
        # What is to be an array of Python objects holds the elements.
        return np.array(object, dtype, copy=copy, order=order, ndmin=ndmin)
    is_array = type(object) is Tracer and not is_scalar(object)
    if copy is False and not is_array:
        raise ValueError(f"Unable to avoid copy while creating an array as requested.{at_line(user_line())}")
    x = converted(as_tracer(object), dtype, copy if is_array else None, order)
    if not x.shape and is_scalar(x):
        # What NumPy makes of a number is an array, which can be assigned to.
        x = own(same_value(x), None)
    return x[(None,) * (ndmin - x.ndim)] if ndmin > x.ndim else x


def assignable(x: Any) -> Any:
    """A new array of floating-point numbers of NumPy as a traced one, while a trace runs."""
    if type(x) is not np.ndarray or x.dtype.char not in "efdFD" or current_builder() is None:
        return x
    # A single number is part of the program, not an input of it.
    if not x.ndim:
        return own(same_value(as_tracer(x[()])), None)
    return same_value(as_tracer(x))


def _assignable_in_trace(make: Function) -> Function:
    """A function that makes a new array of NumPy, as one that makes a traced array while a trace runs."""

    @wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        found = make(*args, **kwargs)
        if isinstance(found, tuple):
            return assignable(found[0]), *found[1:]
        return assignable(found)

    return made  # type: ignore[return-value]


def _joined(x: Any) -> Any:
    """One array of nested lists with eager values in them."""
    return np.stack([_joined(y) for y in x]) if isinstance(x, list | tuple) else x


def as_array(a: Any, dtype: Any = None, order: Any = "K", copy: bool | None = None, subok: bool = False) -> Any:
    """`a` as an array: a traced one, or a tensor, only if `a` is or holds one."""
    if place_of_argument(a).holds_arrays:
        return np.array(a, dtype, order=order, copy=copy, subok=subok)
    return array(a, dtype, copy=copy, order=order)


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """`a` as an array; a traced array, or lists that hold traced values, become a traced array.

    While a trace runs, floating-point numbers in lists, or in a copy, become one that traced values can be assigned
    into.
    """
    return _converted(a, dtype, order, device, copy, False)


def asanyarray(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """`asarray`, but arrays of other classes stay what they are."""
    return _converted(a, dtype, order, device, copy, True)


def _converted(a: Any, dtype: Any, order: Any, device: Any, copy: bool | None, subok: bool) -> Any:
    check_device(device)
    if place_of_argument(a).is_jax:
        is_enough = not copy and (dtype is None or a.dtype == dtype)
        return a if is_enough else JAX.call(asarray, (a, dtype, order), {"copy": copy})
    given = getattr(a, "dtype", None)
    is_new = given is None or is_plain(a, np.generic) or (dtype is not None and given != dtype)
    if copy is False and is_new:
        raise ValueError(f"Unable to avoid copy while creating an array as requested.{at_line(user_line())}")
    made = array(a, dtype, order=order, subok=subok) if copy else as_array(a, dtype, order, copy, subok)
    return assignable(made) if is_new else made


@implements(np.copy)
def _copied(a: Any, order: str = "K", subok: bool = False) -> Any:
    return array(a, order=order)


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A copy: what is assigned to one is not seen by the other.

    While a trace runs, a copy of floating-point numbers is one that traced values can be assigned into.
    """
    made = _copied(a, order, subok)
    return assignable(made)


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """`a` as an array of at least one axis, in row-major order: itself if it lies so, else a copy."""
    is_plain = place_of_argument(a).holds_arrays
    return np.ascontiguousarray(a, dtype) if is_plain else array(a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """`a` as an array of at least one axis, in column-major order: itself if it lies so, else a copy."""
    is_plain = place_of_argument(a).holds_arrays
    return np.asfortranarray(a, dtype) if is_plain else array(a, dtype, copy=None, order="F", ndmin=1)


def asarray_chkfinite(a: Any, dtype: Any = None, order: str = "K") -> Any:
    """`asarray`, with an error if an element is not finite, where values are known."""
    if place_of_argument(a).holds_arrays:
        return np.asarray_chkfinite(a, dtype, order)
    x = as_array(a, dtype, order)
    value = value_in_hand(x) if has_tracer(x) else x.numpy()
    if value is not None and value.dtype.kind in "fc" and not np.isfinite(value).all():
        raise ValueError(f"array must not contain infs or NaNs{at_line(user_line())}")
    return x


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Any:
    """`a` as an array with properties of its memory, of which the order is one that traced values have."""
    if place_of_argument(a).holds_arrays:
        return np.require(a, dtype, requirements)
    wanted = {str(r).upper()[:1] for r in requirements or ()}
    if "O" in wanted:
        raise ValueError(
            "a traced value has no memory of its own, so that 'O' cannot be required of it; write a.copy()"
            + at_line(user_line())
        )
    return array(a, dtype, copy=None, order="C" if "C" in wanted else "F" if "F" in wanted else "K")


eye = _assignable_in_trace(np.eye)
identity = _assignable_in_trace(np.identity)
tri = _assignable_in_trace(np.tri)


@_assignable_in_trace
def arange(start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None) -> Any:
    """`numpy.arange`; traced bounds decide a shape, so the number of elements is that for their present values."""
    check_device(device)
    if start is None:
        start = 0
    if not any(map(has_tracer, (start, stop, step))):
        return np.arange(start, stop, step, dtype)
    if stop is None:
        start, stop = 0, start
    bounds = [as_tracer(b) for b in (start, stop, 1 if step is None else step)]
    if all(b.dtype.kind in "iu" for b in bounds):
        return np.arange(*map(operator.index, bounds), dtype=dtype)
    common = strong_dtype(*bounds)
    first, last, difference = (cast(b, common) for b in bounds)
    count = int(np.ceil((last - first) / difference))
    found = first + difference * np.arange(max(count, 0)).astype(common)
    return found if dtype is None else found.astype(dtype)


@_assignable_in_trace
@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`."""
    check_device(device)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.{at_line(user_line())}")
    intervals = num - 1 if endpoint else num
    start, stop = as_tracer(start), as_tracer(stop)
    common = result_dtype(start, stop, 1.0)
    start, stop = cast(start, common), cast(stop, common)
    difference = same_value(stop - start)
    fractions = np.arange(num).reshape((-1,) + (1,) * difference.ndim) / max(intervals, 1)
    result = start + fractions.astype(common) * difference
    if endpoint:
        result = _with_ends(result, None, stop)
    step = difference / intervals if intervals > 0 else math.nan
    result = np.moveaxis(result, 0, axis) if axis else result
    if dtype is not None:
        result = (np.floor(result) if np.dtype(dtype).kind in "iu" else result).astype(dtype)
    return (result, step) if retstep else result


def _with_ends(line: Any, first: Any, last: Any) -> Any:
    """Elements along the first axis, of which the first and the last are replaced by exact ones that are given."""
    n = len(line)
    if first is not None and n > 0:
        line = np.concatenate([broadcast_to(first, line.shape[1:])[None], line[1:]])
    if last is not None and n > 1:
        line = np.concatenate([line[:-1], broadcast_to(last, line.shape[1:])[None]])
    return line


@_assignable_in_trace
@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` numbers from `base**start` to `base**stop`, evenly spaced on a log scale."""
    if np.ndim(base):
        ndim = max(np.ndim(x) for x in (start, stop, base))
        start, stop, base = (np.reshape(x, (1,) * (ndim - np.ndim(x)) + np.shape(x)) for x in (start, stop, base))
        base = np.expand_dims(base, axis)
    result = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else result.astype(dtype)


@_assignable_in_trace
@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """`num` numbers of one sign, or complex ones, from `start` to `stop`, evenly spaced on a log scale.

    An end of 0 is an error, except compiled or under `vmap`, where its value is not known.
    """
    start, stop = promote("geomspace", start, stop, np.zeros((), dtype or np.float64), 1.0)[:2]
    for end in map(value_in_hand, (start, stop)):
        if end is not None and np.any(end == 0):
            raise ValueError(f"Geometric sequence cannot include zero{at_line(user_line())}")
    sign = np.sign(start)
    result = np.exp(np.linspace(np.log(start / sign), np.log(stop / sign), num, endpoint)) * sign
    result = _with_ends(result, start, stop if endpoint else None)
    result = np.moveaxis(result, 0, axis) if axis else result
    return result if dtype is None else result.astype(dtype)
