"""What elimination computes with: numbers, which are never computed, known arrays, and traced arrays.

A value belongs to the lanes of an edge.  It may have a mask: where the mask is false, the value is zero, whatever it
would be otherwise.  Masks are applied last, so that an infinite slope on a branch that was not chosen has no influence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.index_map import IndexMap, Shape
from ...base.type_questions import is_plain
from ...core.program import Const, Eqn
from ...core.trace import Builder, Tracer, definition
from ...core.types import is_complex, is_inexact
from ...ops.elementwise import add, bitwise_and, bitwise_not, bitwise_or, convert, mul, neg, select
from ...ops.literals import full, full_like, splat
from ...ops.shapes import reshape
from .emission import constant, take

Number = float | complex
Value = Number | np.ndarray | Tracer


class Masked(NamedTuple):
    """A value for each lane; zero where the mask is false."""

    value: Value
    mask: Tracer | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is one number for all lanes."""
        return self.mask is None and is_plain(self.value, Number)

    def is_number_equal_to(self, number: float) -> bool:
        """Whether it is this number for all lanes."""
        return self.is_number and bool(self.value == number)


ONE = Masked(1.0)
# In patterns, a derivative that is not the same number everywhere: no sum or product with it is known to be zero.
SOME = Masked(float("nan"))


def lifted(builder: Builder, value: Value, shape: Shape, dtype: Any) -> Tracer:
    """A value as a traced array."""
    if isinstance(value, Tracer):
        return value if value.dtype == dtype else convert(value, dtype=dtype)
    if is_plain(value, Number):
        return full(shape, value, dtype)
    return constant(np.asarray(value, dtype))


def known_value(x: Any) -> Value:
    """A result as a value: a number where all elements are the same and known, an array where they are known."""
    if isinstance(x, Tracer):
        if not isinstance(x.atom, Const):
            return x
        x = x.atom.value
    array = np.asarray(x)
    if array.size and is_inexact(array.dtype) and bool((array == array.flat[0]).all()):
        number = array.reshape(-1)[0]
        return complex(number) if is_complex(array.dtype) else float(number)
    return array


def masked(x: Any) -> Masked:
    """A traced partial derivative as a value; a choice between it and zero as a mask."""
    if isinstance(x, Tracer):
        eqn = definition(x)
        if eqn is not None and eqn.primitive is select and eqn.operands[0].type.shape == x.shape:
            condition, chosen, other = (Tracer(x.builder, a) for a in eqn.operands)
            if _is_zero(chosen):
                condition, chosen, other = _negated(condition), other, chosen
            if _is_zero(other):
                inner = masked(chosen)
                return Masked(inner.value, _both(condition, inner.mask))
    return Masked(known_value(x))


def _negated(condition: Tracer) -> Tracer:
    if isinstance(condition.atom, Const):
        return constant(np.logical_not(condition.atom.array()))
    return bitwise_not(condition)


def _is_zero(x: Tracer) -> bool:
    value = splat(x)
    return value is not None and value == 0


def taken(x: Masked, lanes: IndexMap) -> Masked:
    """The value for other lanes, each of which points to one of its own."""
    value = x.value if is_plain(x.value, Number) else take(x.value, lanes)
    return Masked(value, None if x.mask is None else take(x.mask, lanes))


def reshaped(x: Masked, shape: Shape) -> Masked:
    """The value for the same lanes in another shape."""

    def turned(value: Any) -> Any:
        if is_plain(value, Number) or value is None or value.shape == shape:
            return value
        return reshape(value, shape=shape) if isinstance(value, Tracer) else value.reshape(shape)

    return Masked(turned(x.value), turned(x.mask))


def product(x: Masked, y: Masked) -> Masked:
    """The product, lane by lane."""
    return Masked(_product(x.value, y.value), _both(x.mask, y.mask))


def _both(a: Tracer | None, b: Tracer | None) -> Tracer | None:
    if a is None or b is None:
        return b if a is None else a
    return a if a.atom is b.atom else bitwise_and(a, b)


def _product(a: Value, b: Value) -> Value:
    if not isinstance(a, Tracer) and not isinstance(b, Tracer):
        with np.errstate(all="ignore"):
            return a * b
    if not isinstance(a, Tracer):
        a, b = b, a
    assert isinstance(a, Tracer)
    if is_plain(b, Number):
        return a if b == 1 else neg(a) if b == -1 else mul(a, full_like(a, b))
    return mul(*_alike(a, b))


def total(x: Masked, y: Masked, shape: Shape, dtype: Any) -> Masked:
    """The sum, lane by lane."""
    if x.mask is not None or y.mask is not None:
        if x.mask is not None and y.mask is not None and x.mask.atom is y.mask.atom:
            return Masked(_sum(x.value, y.value), x.mask)
        either = None if x.mask is None or y.mask is None else bitwise_or(x.mask, y.mask)
        return Masked(_sum(unmasked(x, shape, dtype), unmasked(y, shape, dtype)), either)
    return Masked(_sum(x.value, y.value))


def _sum(a: Value, b: Value) -> Value:
    if not isinstance(a, Tracer) and not isinstance(b, Tracer):
        return a + b
    if not isinstance(a, Tracer):
        a, b = b, a
    assert isinstance(a, Tracer)
    return add(a, full_like(a, b)) if is_plain(b, Number) else add(*_alike(a, b))


def _alike(a: Tracer, b: Any) -> tuple[Tracer, Tracer]:
    """Two operands of one dtype."""
    b = lifted(a.builder, b, a.shape, a.dtype) if not isinstance(b, Tracer) else b
    dtype = np.result_type(a.dtype, b.dtype)
    return lifted(a.builder, a, a.shape, dtype), lifted(a.builder, b, b.shape, dtype)


def unmasked(x: Masked, shape: Shape, dtype: Any) -> Value:
    """The value with its zeros."""
    if x.mask is None:
        return x.value
    value = lifted(x.mask.builder, x.value, shape, dtype)
    return select(x.mask, value, full_like(value, 0))


def traced(builder: Builder, x: Masked, shape: Shape, dtype: Any) -> Tracer:
    """The value with its zeros, as a traced array."""
    return lifted(builder, unmasked(x, shape, dtype), shape, dtype)


def computed(builder: Builder, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """The results of an equation: recorded if an operand is traced, otherwise computed."""
    if any(isinstance(x, Tracer) for x in operands):
        xs = [
            x if isinstance(x, Tracer) else constant(np.broadcast_to(x, a.type.shape) if a.type.shape else x)
            for x, a in zip(operands, eqn.operands, strict=True)
        ]
        return list(builder.repeat(eqn, xs))
    return evaluated(eqn, operands)


def evaluated(eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """The results of an equation on known arrays."""
    with np.errstate(all="ignore"):
        result = eqn.primitive.numpy(*operands, **eqn.params)
    results = result if eqn.primitive.multiple_results else [result]
    return [np.asarray(y).reshape(v.type.shape) for y, v in zip(results, eqn.outputs, strict=True)]
