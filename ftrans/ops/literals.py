"""Arrays that a program states without an operand: one number repeated, and numbers counted up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import Moving
from ..core.program import Const, Params, literal
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType, Shape


def full(shape: Shape, value: Any, dtype: Any) -> Tracer:
    """A constant array filled with one number, as part of a program's structure."""
    builder = current_builder()
    assert builder is not None
    return Tracer(builder, literal(value, ArrayType(shape, dtype)))


def full_like(x: Tracer | ArrayType, value: Any) -> Tracer:
    """A constant array of the shape and dtype of `x`."""
    return full(x.shape, value, x.dtype)


def splat(x: Tracer) -> Any:
    """The number that a tracer is filled with, or None if it is not a constant of that kind."""
    atom = x.atom
    return atom.value if isinstance(atom, Const) and atom.is_splat else None


def same_number(x: Tracer, y: Tracer) -> bool:
    """Whether two tracers are filled with one number, bit by bit: 0.0 is not -0.0."""
    a, b = splat(x), splat(y)
    return a is not None and b is not None and a.tobytes() == b.tobytes()


def adds_nothing(y: Tracer, x: Tracer) -> bool:
    """Whether `x + y` is `x` for certain: adding 0.0 turns -0.0 into 0.0, adding -0.0 changes nothing."""
    number, start = splat(y), splat(x)
    if number is None or number != 0:
        return False
    if number.dtype.kind in "biu" or (number.dtype.kind == "f" and np.signbit(number)):
        return True
    return start is not None and (start + number).tobytes() == start.tobytes()


class Iota(Moving):
    """Numbers 0, 1, 2, ... along `axis` of an array of `shape`."""

    name = "iota"
    memory = Memory.NEW

    def type_rule(self, *, shape: Shape, axis: int, dtype: Any) -> ArrayType:
        return ArrayType(shape, dtype)

    def numpy(self, *, shape: Shape, axis: int, dtype: Any) -> Any:
        line = np.arange(shape[axis], dtype=dtype)
        aligned = line.reshape(tuple(n if i == axis else 1 for i, n in enumerate(shape)))
        return np.array(np.broadcast_to(aligned, shape))

    def xla(self, *, shape: Shape, axis: int, dtype: Any) -> Any:
        from jax import lax

        return lax.broadcasted_iota(dtype, shape, axis)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost()

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        return self(**params), False


iota = Iota()
