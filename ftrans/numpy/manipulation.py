"""Functions that change the shape of an array or the order of its axes and elements.

What is a view in NumPy is one here: an assignment to it changes the array that it was made of.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import Shape, is_complex
from ..ops.literals import full
from ..ops.parts import concatenate as join
from . import promotion
from .array_api import check_device
from .dispatch import implements
from .indexing import getitem
from .layouts import own
from .promotion import asarray, broadcast_shapes, reshaped, same_value
from .views import Part, Permuted, ReadOnly, Reshaped, is_scalar, owner, view_of

__all__ = [
    "angle", "astype", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "can_cast",
    "common_type", "diag", "diagflat", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "imag",
    "iscomplexobj", "isrealobj", "matrix_transpose", "may_share_memory", "moveaxis", "ndim", "permute_dims",
    "ravel", "real", "real_if_close", "reshape", "result_type", "roll", "rollaxis", "rot90", "shape",
    "shares_memory", "size", "squeeze", "swapaxes", "transpose", "tril", "triu",
]  # fmt: skip


def axis_error(axis: int, ndim: int) -> Exception:
    """NumPy's error for an axis that is not there."""
    error = np.exceptions.AxisError(axis, ndim)
    error.add_note(at_line(user_line()).strip("\n"))
    return error


def normal_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front."""
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"an axis is an integer, not {axis!r}{at_line(user_line())}") from None
    if not -ndim <= axis < ndim:
        raise axis_error(axis, ndim)
    return axis % ndim


def along_axis(x: Tracer, axis: Any) -> tuple[Any, int]:
    """An array and an axis of it: all elements in one line if no axis is given; a number is a line of one element."""
    if axis is None or not x.ndim:
        x, axis = reshaped(x, (x.size,)), 0 if axis is None else axis
    return x, normal_axis(axis, x.ndim)


def reduced_axes(axis: Any, ndim: int) -> Shape:
    """Axes to reduce, in increasing order; the only axis of a number is none."""
    if not ndim and axis is not None and not isinstance(axis, tuple | list):
        normal_axis(axis, 1)
        return ()
    return tuple(sorted(normal_axes(axis, ndim)))


def normal_axes(axis: Any, ndim: int) -> Shape:
    """Axes counted from the front, in the order given; all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    if np.ndim(axis) == 0:
        return (normal_axis(axis, ndim),)
    axes = tuple(normal_axis(a, ndim) for a in axis)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}{at_line(user_line())}")
    return axes


def _static_shape(shape: Any) -> Shape:
    return tuple(operator.index(n) for n in (shape if isinstance(shape, Sequence | np.ndarray) else (shape,)))


def _is_by_columns(order: str, a: Tracer) -> bool:
    """Whether elements are read with the first axis changing fastest."""
    if order not in ("C", "F") and (a.ndim > 1 or order not in ("A", "K")):
        raise ValueError(
            f"order must be 'C' or 'F', not {order!r}: {a.type} is traced, and does not lie in memory in any order"
            + at_line(user_line())
        )
    return order == "F"


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: bool | None = None) -> Any:
    """The array in another shape; one size may be -1."""
    a = asarray(a)
    shape = _static_shape(shape)
    if shape.count(-1) > 1:
        raise ValueError(f"can only specify one unknown dimension, not {shape}{at_line(user_line())}")
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        shape = tuple((a.size // known if known else -1) if n == -1 else n for n in shape)
    if math.prod(shape) != a.size or min(shape, default=0) < 0:
        raise ValueError(f"cannot reshape array of shape {a.shape} into shape {shape}{at_line(user_line())}")
    if _is_by_columns(order, a):
        return np.transpose(reshape(np.transpose(a), shape[::-1]))
    return same_value(reshaped(a, shape)) if copy else view_of(a, Reshaped(shape))


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    """The array flattened to one axis."""
    a = asarray(a)
    if _is_by_columns(order, a):
        return ravel(np.transpose(a))
    return view_of(a, Reshaped((a.size,), np.ravel))


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Any:
    """The axes in another order, reversed by default."""
    a = asarray(a)
    order = tuple(range(a.ndim))[::-1] if axes is None else normal_axes(tuple(axes), a.ndim)
    if len(order) != a.ndim:
        raise ValueError(f"axes {axes} don't match array of shape {a.shape}{at_line(user_line())}")
    return view_of(a, Permuted(order))


permute_dims = transpose


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped."""
    x = asarray(x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose needs at least 2 axes, not {x.type}{at_line(user_line())}")
    return np.swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Interchange two axes."""
    a = asarray(a)
    order = list(range(a.ndim))
    i, j = normal_axis(axis1, a.ndim), normal_axis(axis2, a.ndim)
    order[i], order[j] = order[j], order[i]
    return view_of(a, Permuted(tuple(order)))


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move axes to new positions; the other axes keep their order."""
    a = asarray(a)
    source, destination = normal_axes(source, a.ndim), normal_axes(destination, a.ndim)
    if len(source) != len(destination):
        raise ValueError(f"`source` and `destination` must have the same number of elements{at_line(user_line())}")
    order = [i for i in range(a.ndim) if i not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        order.insert(to, axis)
    return view_of(a, Permuted(tuple(order)))


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Move an axis backwards until it lies before another."""
    a = asarray(a)
    axis = normal_axis(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return np.moveaxis(a, axis, start - 1 if axis < start else start)


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    """Remove axes of size 1."""
    a = asarray(a)
    if axis is None:
        axes: Shape = tuple(i for i, n in enumerate(a.shape) if n == 1)
    else:
        axes = reduced_axes(axis, a.ndim)
        if any(a.shape[i] != 1 for i in axes):
            raise ValueError(
                f"cannot select an axis to squeeze out which has size not equal to one: axis {axis} of {a.type}"
                + at_line(user_line())
            )
    return getitem(a, (*(0 if i in axes else slice(None) for i in range(a.ndim)), Ellipsis)) if a.ndim else a


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    """Insert new axes of size 1 at the given positions."""
    a = asarray(a)
    ndim = a.ndim + (len(axis) if isinstance(axis, tuple | list) else 1)
    axes = normal_axes(axis, ndim)
    return getitem(a, (*(None if i in axes else slice(None) for i in range(ndim)), Ellipsis))


def _atleast(ndim: int, x: Any) -> Any:
    x = asarray(x)
    missing = ndim - x.ndim
    if missing <= 0:
        return x
    # NumPy puts the axes of a matrix and of a vector first among three.
    trailing = ndim == 3 and x.ndim > 0
    return getitem(x, (*(None,) * (missing - trailing), Ellipsis, *(None,) * trailing))


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """The array with at least one axis."""
    return _atleast(1, arys[0]) if len(arys) == 1 else tuple(_atleast(1, x) for x in arys)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """The array with at least two axes."""
    return _atleast(2, arys[0]) if len(arys) == 1 else tuple(_atleast(2, x) for x in arys)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """The array with at least three axes."""
    return _atleast(3, arys[0]) if len(arys) == 1 else tuple(_atleast(3, x) for x in arys)


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Broadcast an array to a shape; the result is read-only, as in NumPy."""
    shape = _static_shape(shape)
    access = ReadOnly(lambda x: promotion.broadcast_to(x, shape), lambda x: np.broadcast_to(x, shape))
    return view_of(asarray(array), access)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Broadcast arrays against each other."""
    xs = [asarray(x) for x in args]
    shape = broadcast_shapes("broadcast_arrays", *xs)
    return tuple(getitem(x, Ellipsis) if x.shape == shape else broadcast_to(x, shape) for x in xs)


# Order of elements


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    """Reverse the order of elements along axes, all of them by default."""
    m = asarray(m)
    axes = normal_axes(axis, m.ndim)
    return getitem(m, tuple(slice(None, None, -1 if i in axes else None) for i in range(m.ndim)))


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    """Reverse the order of elements along the second axis."""
    return np.flip(m, 1)


@implements(np.flipud)
def flipud(m: Any) -> Any:
    """Reverse the order of elements along the first axis."""
    return np.flip(m, 0)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotate by 90 degrees, `k` times, in the plane of two axes."""
    m = asarray(m)
    if len(axes) != 2:
        raise ValueError(f"len(axes) must be 2.{at_line(user_line())}")
    first, second = normal_axes(tuple(axes), m.ndim)
    match k % 4:
        case 0:
            return getitem(m, Ellipsis)
        case 1:
            return np.swapaxes(np.flip(m, second), first, second)
        case 2:
            return np.flip(m, (first, second))
        case _:
            return np.flip(np.swapaxes(m, first, second), second)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Roll elements along axes; those that leave at the end enter at the start."""
    a = asarray(a)
    if axis is None:
        return np.reshape(np.roll(np.ravel(a), shift, 0), a.shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,)
    total: dict[int, int] = {}
    for by, i in np.broadcast(np.array([operator.index(s) for s in shifts]), np.array(axes)):
        place = normal_axis(i, a.ndim)
        total[place] = total.get(place, 0) + int(by)
    result = same_value(a)
    for i, by in total.items():
        cut = -by % a.shape[i] if a.shape[i] else 0
        if cut:
            lead = (slice(None),) * i
            result = join(getitem(result, (*lead, slice(cut, None))), getitem(result, (*lead, slice(cut))), axis=i)
    return result


# Diagonals and triangles


def _triangle(m: Any, k: int, keep_upper: bool) -> Any:
    m = asarray(m)
    if m.ndim == 1:
        m = promotion.broadcast_to(m, (m.shape[0], m.shape[0]))
    inside = np.tri(*m.shape[-2:], k=k - keep_upper, dtype=bool)
    return np.where(inside != keep_upper, m, np.zeros((), m.dtype))


@implements(np.tril, keeps_order=True)
def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle: zeros above the `k`-th diagonal."""
    return _triangle(m, k, False)


@implements(np.triu, keeps_order=True)
def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle: zeros below the `k`-th diagonal."""
    return _triangle(m, k, True)


def read_diagonal(a: Tracer, offset: int, axis1: int, axis2: int) -> Tracer:
    """The diagonal of two axes, as the last axis: every so many elements of the two axes in one."""
    rows, columns = a.shape[axis1], a.shape[axis2]
    order = (*(i for i in range(a.ndim) if i not in (axis1, axis2)), axis1, axis2)
    lead = tuple(a.shape[i] for i in order[:-2])
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    flat = reshaped(Permuted(order).read(a), (*lead, rows * columns))
    start = offset if offset >= 0 else -offset * columns
    end = start + (length - 1) * (columns + 1) + 1 if length else start
    return getitem(flat, (..., slice(start, end, columns + 1)))


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of two axes, as the last axis; read-only, as in NumPy."""
    a = asarray(a)
    i, j = normal_axis(axis1, a.ndim), normal_axis(axis2, a.ndim)
    if i == j:
        raise ValueError(f"axis1 and axis2 cannot be the same{at_line(user_line())}")
    offset = operator.index(offset)
    return view_of(a, ReadOnly(lambda x: read_diagonal(x, offset, i, j), lambda x: np.diagonal(x, offset, i, j)))


@implements(np.linalg.diagonal)
def matrix_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes."""
    return np.diagonal(x, offset, -2, -1)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """The diagonal of a matrix, or a matrix with a vector on its diagonal."""
    v = asarray(v)
    if v.ndim == 2:
        return np.diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"Input must be 1- or 2-d, not {v.type}{at_line(user_line())}")
    n = v.shape[0] + abs(k)
    start = k if k >= 0 else -k * n
    flat = full((n * n,), 0, v.dtype)
    flat[start : start + (v.shape[0] - 1) * (n + 1) + 1 : n + 1] = v
    return reshaped(flat, (n, n))


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with the flattened array on its diagonal."""
    return np.diag(np.ravel(v), k)


# Kinds of elements


@implements(np.real)
def real(val: Any) -> Any:
    """The real part."""
    val = asarray(val)
    return view_of(val, Part(True)) if is_complex(val.dtype) else val


@implements(np.imag)
def imag(val: Any) -> Any:
    """The imaginary part."""
    val = asarray(val)
    if is_complex(val.dtype):
        return view_of(val, Part(False))
    if is_scalar(val):
        return full((), 0, val.dtype)
    zeros = own(full(val.shape, 0, val.dtype), val, "A")
    return view_of(zeros, ReadOnly(lambda x: x, lambda base: base))


@implements(np.angle, keeps_order=True)
def angle(z: Any, deg: bool = False) -> Any:
    """The angle of complex numbers in the plane, in radians or degrees."""
    z = asarray(z)
    result = np.arctan2(z.imag, z.real) if is_complex(z.dtype) else np.arctan2(0, z)
    return result * (180 / math.pi) if deg else result


@implements(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The real part if all imaginary parts are close to zero, which needs their values; else the array itself."""
    a = asarray(a)
    if not is_complex(a.dtype):
        return a
    limit = tol * np.finfo(a.dtype).eps if tol > 1 else tol
    return a.real if np.all(np.absolute(a.imag) < limit) else a


# Questions about types, which have plain answers


@implements(np.shape, constant=True)
def shape(a: Any) -> Shape:
    """The shape."""
    return asarray(a).shape


@implements(np.ndim, constant=True)
def ndim(a: Any) -> int:
    """The number of axes."""
    return asarray(a).ndim


@implements(np.size, constant=True)
def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the size along axes."""
    a = asarray(a)
    return math.prod(a.shape[i] for i in normal_axes(axis, a.ndim))


@implements(np.iscomplexobj, constant=True)
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return is_complex(asarray(x).dtype)


@implements(np.isrealobj, constant=True)
def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not is_complex(asarray(x).dtype)


@implements(np.result_type, constant=True)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that results from NumPy's type promotion of the arguments."""
    return np.result_type(*(_as_type(x) for x in arrays_and_dtypes))


def _as_type(x: Any) -> Any:
    return x if type(x) is not Tracer else x.dtype.type(0).item() if x.weak else x.dtype


@implements(np.can_cast, constant=True)
def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a cast between dtypes is possible under a casting rule."""
    source, target = (x.dtype if type(x) is Tracer else x for x in (from_, to))
    return np.can_cast(source, target, casting)


@implements(np.common_type, constant=True)
def common_type(*arrays: Any) -> Any:
    """The floating-point scalar type that can hold all arrays."""
    return np.common_type(*(np.empty(0, asarray(x).dtype) for x in arrays))


@implements(np.shares_memory, np.may_share_memory, constant=True)
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays may share memory, so that an assignment to one changes the other."""

    return owner(a) is owner(b)


shares_memory = may_share_memory


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """`x` in another dtype."""
    check_device(device)
    return x.astype(dtype, copy=copy)


if hasattr(np, "astype"):
    astype = implements(np.astype)(astype)
