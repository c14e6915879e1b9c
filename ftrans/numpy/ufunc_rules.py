"""Ufuncs that are not one primitive: functions of tracers, which `ufuncs` enters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..base.type_questions import is_plain
from ..core.primitive import Primitive
from ..core.trace import Tracer, current_builder
from ..core.types import is_complex, is_inexact
from ..ops import elementwise as e
from ..ops.elementwise import representation
from ..ops.literals import full_like
from .dispatch import TABLE
from .promotion import asarray, builder, cast, is_weak, promote, result_dtype, same_value
from .ufunc_entry import Rule, general, resolved_dtypes

_MOST_FACTORS = 64


def integer_reciprocal(x: Tracer) -> Tracer:
    """`1 // x` of integers, which is 0 but for 1 and -1."""
    one, zero = full_like(x, 1), full_like(x, 0)
    is_kept = e.eq(x, one) if x.dtype.kind == "u" else e.eq(e.abs_(x), one)
    return e.select(is_kept, x, zero)


def comparison(ufunc: np.ufunc, primitive: Primitive) -> Rule:
    """A rule for integers: the comparison, but int64 meets uint64 without a change of value."""

    def rule(x: Tracer, y: Tracer) -> Tracer:
        if x.dtype == y.dtype:
            return primitive(x, y)
        signed, below = (x, ufunc(0, 1)) if x.dtype.kind == "i" else (y, ufunc(1, 0))
        is_negative = e.lt(signed, full_like(signed, 0))
        common = primitive(cast(x, np.dtype(np.uint64)), cast(y, np.dtype(np.uint64)))
        return e.select(is_negative, full_like(common, below), common)

    return rule


_general_power = general(np.power, e.power)


def power(x: Any, y: Any) -> Any:
    """`x ** y`; a constant integer exponent multiplies instead of taking logarithms."""
    is_small = type(y) is int and -_MOST_FACTORS <= y <= _MOST_FACTORS
    if is_small and type(x) is Tracer and not x.weak and x.atom.type.dtype.kind == "f":
        return (current_builder() or builder(x)).record(e.integer_pow, (x,), {"exponent": y})[0]
    if is_plain(y, float | int) and not is_plain(y, bool) and type(x) is Tracer:
        exponent = int(y) if abs(y) <= _MOST_FACTORS else math.inf
        if (x.weak or is_weak(y) or result_dtype(x, y) == x.dtype) and (
            is_inexact(x.dtype) or (is_plain(y, int) and exponent >= 0 and x.dtype.kind in "iu")
        ):
            if exponent == y and exponent != math.inf:
                z = builder(x).record(e.integer_pow, (x,), {"exponent": exponent})[0]
                z.weak = x.weak and is_weak(y)
                return z
            if y == 0.5:
                return TABLE[np.sqrt](x)
        if is_plain(y, int) and y < 0 and x.dtype.kind in "iu":
            raise ValueError(
                f"Integers to negative integer powers are not allowed; write x ** {y}.0{at_line(user_line())}"
            )
    return _general_power(x, y)


def conjugate(x: Tracer) -> Tracer:
    """The complex conjugate of each element."""
    return e.conj(x) if is_complex(x.dtype) else same_value(x)


def scaled(factor: float) -> Rule:
    """A rule: multiplication by a constant."""
    return lambda x: e.mul(x, full_like(x, factor))


def ignoring_nan(primitive: Primitive) -> Rule:
    """A rule: the primitive, but of a NaN and a number the number."""

    def rule(x: Tracer, y: Tracer) -> Tracer:
        if not is_inexact(x.dtype):
            return primitive(x, y)
        return e.select(e.isnan(x), y, e.select(e.isnan(y), x, primitive(x, y)))

    return rule


def heaviside(x: Tracer, at_zero: Tracer) -> Tracer:
    """0 for negative `x`, 1 for positive, `at_zero` for 0."""
    zero = full_like(x, 0)
    step = e.select(e.lt(x, zero), zero, full_like(x, 1))
    return e.select(e.isnan(x), full_like(x, math.nan), e.select(e.eq(x, zero), at_zero, step))


def ldexp(x: Any, exponent: Any) -> Any:
    """`x * 2**exponent`."""
    x, exponent = asarray(x), asarray(exponent)
    if exponent.dtype.kind not in "biu":
        raise TypeError(f"ldexp takes integer exponents, not {exponent.type}{at_line(user_line())}")
    *_, dtype = resolved_dtypes(np.ldexp, (x, cast(exponent, np.dtype(np.int32))))
    # In two steps, so that a power of two that is itself out of range can lead to a number that is not.
    half = exponent >> 1
    x = cast(x, dtype)
    return x * cast(np.exp2(cast(half, dtype)), dtype) * cast(np.exp2(cast(exponent - half, dtype)), dtype)


def modf(x: Any) -> Any:
    """The fractional and the integral part of each element, both with its sign."""
    (x,) = promote("modf", x)
    x = cast(x, resolved_dtypes(np.modf, (x,))[0])
    whole = e.trunc(x)
    fraction = e.select(e.isinf(x), full_like(x, 0), e.sub(x, whole))
    return e.copysign(fraction, x), whole


def frexp(x: Any) -> Any:
    """A mantissa between 1/2 and 1 and an exponent of two, whose product each element is."""
    (x,) = promote("frexp", x)
    x = cast(x, resolved_dtypes(np.frexp, (x,))[0])
    exponent = representation.exponent(x)
    return np.ldexp(x, e.neg(exponent)), exponent


def divmod(x: Any, y: Any) -> Any:
    """`(x // y, x % y)`."""
    return np.floor_divide(x, y), np.remainder(x, y)
