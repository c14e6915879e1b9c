"""What operands become before a primitive sees them: tracers of one dtype and one shape, as NumPy promotes them.

Dtypes follow NEP 50: Python numbers, and tracers that stand for them, are *weak* and take the dtype of the array
they meet.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..base.cell import Cell, Holder
from ..base.holders import has_operators
from ..base.lookalikes import refuse_lookalike
from ..base.source import Line, at_line, user_line
from ..base.type_questions import is_plain
from ..core.program import Const, literal
from ..core.trace import Builder, Tracer, TracerLeak, current_builder, leak_error
from ..core.types import ArrayType, Shape, is_complex, type_of
from ..core.witness import ConcretizationError, concretize, constant_of
from ..ops.broadcast import broadcast
from ..ops.elementwise import convert
from ..ops.literals import full
from ..ops.parts import concatenate
from ..ops.shapes import reshape
from ..run.places import TRACE, place_of_argument
from ..xla import is_jax
from .layouts import own

_NUMBERS = (float, int, complex, np.number, np.bool_)
_WEAK_TYPES = {"f": float, "i": int, "b": bool, "c": complex}


def builder(x: Any = None) -> Builder:
    """The running trace's builder; where none runs, the error says where `x` was made."""
    found = current_builder()
    if found is None:
        if type(x) is Tracer:
            raise leak_error(x)
        raise TracerLeak(
            f"this needs a running trace: call it in a function that is being traced{at_line(user_line())}"
        )
    return found


def has_tracer(x: Any) -> bool:
    """Whether `x` is a tracer, or a list, tuple or object array that holds one."""
    return place_of_argument(x) is TRACE


def asarray(x: Any) -> Any:
    """`x` as a tracer: arrays and numbers are captured, lists and object arrays of tracers are stacked."""
    if type(x) is Tracer:
        if not x.builder.is_open:
            # What depends on no argument stays what it is when the trace has ended.
            known = constant_of(x)
            if known is None:
                raise leak_error(x)
            return asarray(known)
        if x.memory is not None:
            x.memory.refresh(x)
        return x
    if isinstance(x, Cell):
        return asarray(x.read())
    if isinstance(x, list | tuple | range) or (is_plain(x, np.ndarray) and x.dtype == object):
        if has_tracer(x):
            return _stack_nested(x)
        x = np.array(x.tolist() if is_plain(x, np.ndarray) else x)
    here = builder()
    if isinstance(x, _NUMBERS):
        return Tracer(here, here.scalar(x, type_of(x).dtype), weak=is_weak(x))
    if type(x) is not np.ndarray and not isinstance(x, np.ndarray | Holder | Const) and not is_jax(x):
        type_of(x)
        # An object of another library may hold a traced value, of which NumPy makes an array with one element.
        return asarray(np.asarray(x))
    return Tracer(here, here.atom(x))


def _stack_nested(x: Any) -> Any:
    """One array of a nested list or object array whose innermost items may be tracers."""
    if is_plain(x, np.ndarray):
        refuse_lookalike(x)
        first = x.flat[0]
        if type(first) is Tracer and first.memory is not None and first.memory.is_of_number:
            whole = first.memory.array_of(x)
            if whole is not None:
                return whole
        items = stack(list(x.reshape(-1)))
        return reshaped(items, (*x.shape, *items.shape[1:]))
    return stack(x)


def stack(xs: Sequence[Any], axis: int = 0) -> Tracer:
    """Arrays of one shape joined along a new axis."""
    tracers = [asarray(x) for x in xs]
    types = {x.atom.type for x in tracers}
    shape = tracers[0].shape
    if len(types) > 1:
        shapes = {t.shape for t in types}
        if len(shapes) > 1:
            raise ValueError(f"all input arrays must have the same shape; got {sorted(shapes)}{at_line(user_line())}")
        dtype = strong_dtype(*tracers)
        tracers = [cast(x, dtype) for x in tracers]
    expanded = (*shape[:axis], 1, *shape[axis:])
    # All of these equations come from one line, which is looked up once.
    line = user_line()
    parts = [reshaped(x, expanded, line) for x in tracers]
    return builder(parts[0]).record(concatenate, parts, {"axis": axis}, line)[0]


def value_in_hand(x: Any) -> Any:
    """The value of `x` as a NumPy array, to be checked; None where a program is compiled for any values, or batched."""
    if not has_tracer(x):
        return np.asarray(x)
    x = asarray(x)
    if x.builder.is_compiled():
        return None
    count = len(x.builder.refused)
    try:
        return np.asarray(concretize(x, "a check of"))
    except ConcretizationError:
        del x.builder.refused[count:]
        return None


def is_number(x: Any) -> bool:
    """Whether `x` is a number of Python or NumPy, and no array."""
    return is_plain(x, _NUMBERS)


def is_operand(x: Any) -> bool:
    """Whether arithmetic takes `x`, or says why not: other objects may know themselves what to do with a tracer."""
    if is_plain(x, (Tracer, np.ndarray, list, tuple, Cell, *_NUMBERS)):
        return True
    # NumPy's protocol: operators leave what has None here to the other operand.
    is_left = getattr(x, "__array_ufunc__", True) is None or has_operators(type(x))
    return not is_left and hasattr(x, "__array__")


def is_weak(x: Any) -> bool:
    """Whether an operand takes the dtype of what it meets."""
    if type(x) is Tracer:
        return x.weak
    return is_plain(x, float | int | complex) and not is_plain(x, np.generic)


def kind_of(x: Any) -> Any:
    """A dtype, or for a weak operand the Python type it acts as: what NumPy's promotion looks at."""
    if type(x) is Tracer:
        return _WEAK_TYPES[x.dtype.kind] if x.weak else x.atom.type.dtype
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return dtype
    return next(kind for kind in (bool, int, float, complex) if isinstance(x, kind))


@cache
def combined_dtype(*kinds: Any) -> np.dtype[Any]:
    """The dtype that NumPy gives to a combination of dtypes and, for weak operands, Python types."""
    if any(map(is_bfloat16, kinds)):
        # NumPy itself knows nothing of this dtype, and only its arithmetic does.
        parts = [np.zeros(1, k) if isinstance(k, np.dtype) else k(0) for k in kinds]
        return np.dtype(functools.reduce(operator.add, parts).dtype)
    return np.result_type(*(k if isinstance(k, np.dtype) else k(0) for k in kinds))


def is_bfloat16(kind: Any) -> bool:
    """Whether a dtype is bfloat16, which is none of NumPy's own."""
    return isinstance(kind, np.dtype) and kind.name == "bfloat16"


def is_number_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether elements of a dtype are numbers, which traced values can stand for."""
    return dtype.kind in "biufc" or is_bfloat16(dtype)


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part of numbers of an inexact dtype."""
    return np.finfo(dtype).dtype if is_complex(dtype) else dtype


def result_dtype(*xs: Any) -> np.dtype[Any]:
    """The dtype that NumPy gives to a combination of the operands."""
    return combined_dtype(*(kind_of(x) for x in xs))


def strong_dtype(*xs: Tracer) -> np.dtype[Any]:
    """The dtype that NumPy gives to an array which holds all of the operands, where Python numbers are not weak."""
    return combined_dtype(*(x.dtype for x in xs))


def operand(x: Any, dtype: np.dtype[Any], shape: Shape) -> Tracer:
    """`x` (a tracer, an array or a number) converted to `dtype` and broadcast to `shape`."""
    if type(x) is Tracer:
        tracer = x
    elif is_plain(x, _NUMBERS):
        here = builder()
        try:
            atom = here.scalar(x, dtype)
        except OverflowError as error:
            raise OverflowError(f"{error}{at_line(user_line())}") from None
        if isinstance(atom, Const):
            return Tracer(here, literal(x, ArrayType(shape, dtype)))
        tracer = Tracer(here, atom)
    else:
        tracer = asarray(x)
    given = tracer.atom.type
    if given.dtype != dtype:
        tracer = cast(tracer, dtype)
    return tracer if given.shape == shape else broadcast_to(tracer, shape)


def cast(x: Tracer, dtype: np.dtype[Any]) -> Any:
    """`x` in another dtype; a constant is converted at once."""
    if x.dtype == dtype:
        return x
    if isinstance(x.atom, Const) and x.atom.is_splat:
        value = np.asarray(x.atom.value).astype(dtype)
        return Tracer(x.builder, literal(value[()], x.type.with_dtype(dtype)))
    return convert(x, dtype=np.dtype(dtype))


def fits(shape: Shape, target: Shape) -> bool:
    """Whether an array of one shape can be broadcast to another."""
    offset = len(target) - len(shape)
    return offset >= 0 and all(n in (1, target[i + offset]) for i, n in enumerate(shape))


@lru_cache(maxsize=10_000)
def _broadcasting(shape: Shape, target: Shape) -> tuple[Shape, dict[str, Shape]] | None:
    """What to reshape an array to before it is repeated, and the parameters of that; None if it does not fit."""
    if not fits(shape, target):
        return None
    offset = len(target) - len(shape)
    kept = [i for i, n in enumerate(shape) if n == target[i + offset]]
    return tuple(shape[i] for i in kept), {"shape": target, "dims": tuple(i + offset for i in kept)}


def broadcast_to(x: Tracer, shape: Shape) -> Any:
    """`x` repeated to `shape` by NumPy's rules."""
    given = x.atom.type
    if given.shape == shape:
        return x
    plan = _broadcasting(given.shape, shape)
    if plan is None:
        raise ValueError(f"cannot broadcast shape {x.shape} to shape {shape}{at_line(user_line())}")
    if type(x.atom) is Const and x.atom.is_splat:
        return full(shape, x.atom.value, given.dtype)
    return (current_builder() or builder(x)).record(broadcast, (reshaped(x, plan[0]),), plan[1])[0]


@lru_cache(maxsize=10_000)
def _common_shape(*shapes: Shape) -> Shape:
    return np.broadcast_shapes(*shapes)


def broadcast_shapes(name: str, *xs: Any) -> Shape:
    """The common shape of operands, with an error that shows their types."""
    shapes = [x.atom.type.shape if type(x) is Tracer else getattr(x, "shape", ()) for x in xs]
    try:
        return _common_shape(*shapes)
    except ValueError:
        given = " and ".join(str(type_of(x)) for x in xs)
        raise ValueError(f"operands of {name} could not be broadcast together: {given}{at_line(user_line())}") from None


def promote(name: str, *xs: Any) -> list[Tracer]:
    """Operands in their common dtype and shape."""
    operands = [x if is_number(x) else asarray(x) for x in xs]
    dtype = result_dtype(*operands)
    shape = broadcast_shapes(name, *operands)
    return [operand(x, dtype, shape) for x in operands]


@lru_cache(maxsize=10_000)
def _reshaping(shape: Shape) -> dict[str, Shape]:
    """The parameters of a reshape, which equal ones share."""
    return {"shape": shape}


def reshaped(x: Tracer, shape: Shape, line: Line | None = None) -> Any:
    """`x` in another shape, by an equation of the running line or a given one; a constant takes it at once."""
    given = x.atom.type
    if given.shape == shape:
        return x
    if type(x.atom) is Const and x.atom.is_splat and math.prod(shape) == given.size:
        return full(shape, x.atom.value, given.dtype)
    return (current_builder() or builder(x)).record(reshape, (x,), _reshaping(shape), line)[0]


def same_value(x: Tracer, order: str = "K") -> Any:
    """A new tracer for the value of `x`: what is assigned to one is not seen by the other.

    It belongs to the running trace, so that a copy of an enclosing function's value can be assigned to.  `order` says
    how NumPy's copy lies in memory; "=" is for the strides of `x` itself, "?" for a copy that may lie in any order.
    """
    x, here = asarray(x), current_builder() or x.builder
    found = Tracer(here, x.atom if x.builder is here else here.atom(x), x.weak and order == "=")
    return own(found, x, order) if x.atom.type.shape else found
