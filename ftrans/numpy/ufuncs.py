"""NumPy's ufuncs on tracers: dtypes as NumPy resolves them, then one primitive, or a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.primitive import Primitive
from ..core.program import Const, literal
from ..core.trace import Builder, Tracer, current_builder
from ..core.types import ArrayType, is_complex, is_inexact
from ..ops import elementwise as e
from ..ops.elementwise import representation
from ..ops.literals import full_like
from .dispatch import CONSTANT, TABLE, implements, public
from .layouts import own
from .promotion import (
    asarray,
    broadcast_shapes,
    broadcast_to,
    builder,
    cast,
    combined_dtype,
    is_bfloat16,
    is_number,
    is_operand,
    is_weak,
    kind_of,
    operand,
    promote,
    result_dtype,
    same_value,
)

Rule = Callable[..., Tracer]

_PREDICATES = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isfinite, np.isnan}


@cache
def _resolved(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """Dtypes of operands and result, as NumPy resolves them; Python types stand for weak operands."""
    if any(map(is_bfloat16, kinds)):
        dtype = combined_dtype(*kinds)
        return (dtype,) * len(kinds) + (np.dtype(bool) if ufunc in _PREDICATES else dtype,)
    return ufunc.resolve_dtypes((*dtypes_or_types(kinds), *(None,) * ufunc.nout))


def dtypes_or_types(kinds: Sequence[Any]) -> list[Any]:
    """What `ufunc.resolve_dtypes` takes: Python's bool is not weak, nor is any number among its like."""
    if not any(isinstance(k, np.dtype) for k in kinds):
        return [np.dtype(k) for k in kinds]
    return [np.dtype(bool) if k is bool else k for k in kinds]


def resolved_dtypes(ufunc: np.ufunc, xs: Sequence[Any]) -> tuple[np.dtype[Any], ...]:
    """Dtypes that NumPy gives to the operands and the result of a ufunc."""
    try:
        return _resolved(ufunc, tuple([kind_of(x) for x in xs]))
    except TypeError:
        given = ", ".join(str(getattr(kind_of(x), "name", None) or kind_of(x).__name__) for x in xs)
        raise TypeError(
            f"{ufunc.__name__} is not defined for operands of dtype {given}{at_line(user_line())}"
        ) from None


def filled(here: Builder, value: float, type: ArrayType) -> Any:
    """The operand for a number of Python that meets an array of `type`."""
    try:
        atom = here.scalar(value, type.dtype)
    except OverflowError as error:
        raise OverflowError(f"{error}{at_line(user_line())}") from None
    if atom.__class__ is Const:
        return literal(value, type) if type.shape else atom
    return broadcast_to(Tracer(here, atom), type.shape)


def _general(ufunc: np.ufunc, rule: Rule, kinds: str = "", otherwise: Rule | None = None) -> Callable[..., Tracer]:
    """The traced form of a ufunc for operands of any kind.

    Args:
        ufunc: the ufunc.
        rule: a primitive, or a function of tracers of one shape.
        kinds: kinds of dtypes that the rule is not for.
        otherwise: the rule for these.
    """
    is_primitive = isinstance(rule, Primitive)
    is_composed = ufunc.nin > 1 and not all(isinstance(r, Primitive) for r in (rule, otherwise) if r is not None)

    def call(*xs: Any) -> Tracer:
        if len(xs) != ufunc.nin:
            raise TypeError(f"{ufunc.__name__} takes {ufunc.nin} operands, {len(xs)} were given{at_line(user_line())}")
        if not all(map(is_operand, xs)):
            return NotImplemented
        operands = [x if is_number(x) else asarray(x) for x in xs]
        *in_dtypes, out_dtype = resolved_dtypes(ufunc, operands)
        shape = operands[0].shape if len(xs) == 1 else broadcast_shapes(ufunc.__name__, *operands)
        inputs = [operand(x, d, shape) for x, d in zip(operands, in_dtypes, strict=True)]
        if otherwise is not None and in_dtypes[0].kind in kinds:
            y = otherwise(*inputs)
        elif is_primitive:
            y = (current_builder() or builder()).record(rule, inputs, {})[0]
        else:
            y = rule(*inputs)
        if y.atom.type.dtype != out_dtype:
            y = cast(y, out_dtype)
        if all(map(is_weak, operands)) and out_dtype.kind != "b":
            y.weak = True
        # The parts of the rule have each kept the order of what they read, NumPy that of all operands together.
        return own(y, None, "?") if is_composed and len(shape) > 1 else y

    call.__name__ = ufunc.__name__
    call.__doc__ = f"`numpy.{ufunc.__name__}` on arrays and on traced values."
    return call


def _takes_floats(ufunc: np.ufunc) -> bool:
    return any(t.startswith("d" * ufunc.nin + "->") for t in ufunc.types)


def _entered(ufunc: np.ufunc, call: Callable[..., Any], primitive: Primitive) -> Callable[..., Any]:
    """Enter the traced form of a ufunc, which is a primitive, in the table; return the public function."""
    TABLE[ufunc] = call
    if isinstance(primitive, e.Elementwise) and primitive.is_constant:
        CONSTANT.add(ufunc)
    return public(ufunc, call)


def _unary(ufunc: np.ufunc, primitive: Primitive, kinds: str = "", otherwise: Rule | None = None) -> Callable[..., Any]:
    """Enter a ufunc of one operand in the table; `otherwise` replaces the primitive for some kinds of dtypes."""
    general = _general(ufunc, primitive, kinds, otherwise)
    is_direct = _takes_floats(ufunc)

    def call(*xs: Any) -> Tracer:
        if is_direct and len(xs) == 1:
            (x,) = xs
            if x.__class__ is Tracer and not x.weak and x.atom.type.dtype.kind == "f":
                return (current_builder() or builder(x)).record(primitive, xs, {})[0]
        return general(*xs)

    call.__name__, call.__doc__ = general.__name__, general.__doc__
    return _entered(ufunc, call, primitive)


def _binary(
    ufunc: np.ufunc, primitive: Primitive, kinds: str = "", otherwise: Rule | None = None
) -> Callable[..., Any]:
    """Enter a ufunc of two operands in the table; `otherwise` replaces the primitive for some kinds of dtypes."""
    general = _general(ufunc, primitive, kinds, otherwise)
    is_direct = _takes_floats(ufunc)

    def call(*xs: Any) -> Tracer:
        if is_direct and len(xs) == 2:
            x, y = xs
            if x.__class__ is Tracer and not x.weak:
                type = x.atom.type
                if type.dtype.kind == "f":
                    if y.__class__ is Tracer:
                        if y.atom.type is type and not y.weak:
                            return (current_builder() or builder(x)).record(primitive, xs, {})[0]
                    elif y.__class__ is float or y.__class__ is int:
                        here = current_builder() or builder(x)
                        return here.record(primitive, (x, filled(here, y, type)), {})[0]
            elif y.__class__ is Tracer and not y.weak and (x.__class__ is float or x.__class__ is int):
                type = y.atom.type
                if type.dtype.kind == "f":
                    here = current_builder() or builder(y)
                    return here.record(primitive, (filled(here, x, type), y), {})[0]
        return general(*xs)

    call.__name__, call.__doc__ = general.__name__, general.__doc__
    return _entered(ufunc, call, primitive)


def _integer_reciprocal(x: Tracer) -> Tracer:
    one, zero = full_like(x, 1), full_like(x, 0)
    is_kept = e.eq(x, one) if x.dtype.kind == "u" else e.eq(e.abs_(x), one)
    return e.select(is_kept, x, zero)


def _comparison(ufunc: np.ufunc, primitive: Primitive) -> Rule:
    """A rule for integers: the primitive, but int64 meets uint64 without a change of value."""

    def rule(x: Tracer, y: Tracer) -> Tracer:
        if x.dtype == y.dtype:
            return primitive(x, y)
        signed, below = (x, ufunc(0, 1)) if x.dtype.kind == "i" else (y, ufunc(1, 0))
        is_negative = e.lt(signed, full_like(signed, 0))
        common = primitive(cast(x, np.dtype(np.uint64)), cast(y, np.dtype(np.uint64)))
        return e.select(is_negative, full_like(common, below), common)

    return rule


exp = _unary(np.exp, e.exp)
exp2 = _unary(np.exp2, e.exp2)
expm1 = _unary(np.expm1, e.expm1)
log = _unary(np.log, e.log)
log2 = _unary(np.log2, e.log2)
log10 = _unary(np.log10, e.log10)
log1p = _unary(np.log1p, e.log1p)
sqrt = _unary(np.sqrt, e.sqrt)
cbrt = _unary(np.cbrt, e.cbrt)
square = _unary(np.square, e.square)
reciprocal = _unary(np.reciprocal, e.reciprocal, "iu", _integer_reciprocal)
negative = _unary(np.negative, e.neg)
sin = _unary(np.sin, e.sin)
cos = _unary(np.cos, e.cos)
tan = _unary(np.tan, e.tan)
arcsin = _unary(np.arcsin, e.arcsin)
arccos = _unary(np.arccos, e.arccos)
arctan = _unary(np.arctan, e.arctan)
sinh = _unary(np.sinh, e.sinh)
cosh = _unary(np.cosh, e.cosh)
tanh = _unary(np.tanh, e.tanh)
arcsinh = _unary(np.arcsinh, e.arcsinh)
arccosh = _unary(np.arccosh, e.arccosh)
arctanh = _unary(np.arctanh, e.arctanh)
sign = _unary(np.sign, e.sign)
isfinite = _unary(np.isfinite, e.isfinite)
isnan = _unary(np.isnan, e.isnan)
isinf = _unary(np.isinf, e.isinf)
signbit = _unary(np.signbit, e.signbit)
invert = _unary(np.invert, e.bitwise_not)
rint = _unary(np.rint, e.rint)
spacing = _unary(np.spacing, representation.spacing)
bitwise_count = _unary(np.bitwise_count, representation.bitwise_count)
absolute = _unary(np.absolute, e.abs_, "bu", same_value)
floor = _unary(np.floor, e.floor, "biu", same_value)
ceil = _unary(np.ceil, e.ceil, "biu", same_value)
trunc = _unary(np.trunc, e.trunc, "biu", same_value)

add = _binary(np.add, e.add, "b", e.bitwise_or)
subtract = _binary(np.subtract, e.sub)
multiply = _binary(np.multiply, e.mul, "b", e.bitwise_and)
divide = _binary(np.divide, e.div)
maximum = _binary(np.maximum, e.maximum)
minimum = _binary(np.minimum, e.minimum)
arctan2 = _binary(np.arctan2, e.arctan2)
hypot = _binary(np.hypot, e.hypot)
logaddexp = _binary(np.logaddexp, e.logaddexp)
logaddexp2 = _binary(np.logaddexp2, e.logaddexp2)
copysign = _binary(np.copysign, e.copysign)
nextafter = _binary(np.nextafter, e.nextafter)
floor_divide = _binary(np.floor_divide, e.floor_divide)
remainder = _binary(np.remainder, e.remainder)
fmod = _binary(np.fmod, e.fmod)
equal = _binary(np.equal, e.eq, "iu", _comparison(np.equal, e.eq))
not_equal = _binary(np.not_equal, e.ne, "iu", _comparison(np.not_equal, e.ne))
less = _binary(np.less, e.lt, "iu", _comparison(np.less, e.lt))
less_equal = _binary(np.less_equal, e.le, "iu", _comparison(np.less_equal, e.le))
greater = _binary(np.greater, e.gt, "iu", _comparison(np.greater, e.gt))
greater_equal = _binary(np.greater_equal, e.ge, "iu", _comparison(np.greater_equal, e.ge))
bitwise_and = _binary(np.bitwise_and, e.bitwise_and)
bitwise_or = _binary(np.bitwise_or, e.bitwise_or)
bitwise_xor = _binary(np.bitwise_xor, e.bitwise_xor)
left_shift = _binary(np.left_shift, e.left_shift)
right_shift = _binary(np.right_shift, e.right_shift)
gcd = _binary(np.gcd, representation.gcd)
lcm = _binary(np.lcm, representation.lcm)

_general_power = _general(np.power, e.power)
_MOST_FACTORS = 64


@implements(np.power, keeps_order=True)
def power(x: Any, y: Any) -> Any:
    """`x ** y`; a constant integer exponent multiplies instead of taking logarithms."""
    is_small = y.__class__ is int and -_MOST_FACTORS <= y <= _MOST_FACTORS
    if is_small and x.__class__ is Tracer and not x.weak and x.atom.type.dtype.kind == "f":
        return (current_builder() or builder(x)).record(e.integer_pow, (x,), {"exponent": y})[0]
    if isinstance(y, float | int) and not isinstance(y, bool) and x.__class__ is Tracer:
        exponent = int(y) if abs(y) <= _MOST_FACTORS else math.inf
        if (x.weak or is_weak(y) or result_dtype(x, y) == x.dtype) and (
            is_inexact(x.dtype) or (isinstance(y, int) and exponent >= 0 and x.dtype.kind in "iu")
        ):
            if exponent == y and exponent != math.inf:
                z = builder(x).record(e.integer_pow, (x,), {"exponent": exponent})[0]
                z.weak = x.weak and is_weak(y)
                return z
            if y == 0.5:
                return TABLE[np.sqrt](x)
        if isinstance(y, int) and y < 0 and x.dtype.kind in "iu":
            raise ValueError(
                f"Integers to negative integer powers are not allowed; write x ** {y}.0{at_line(user_line())}"
            )
    return _general_power(x, y)


# Ufuncs that are a few primitives


def _composed(ufunc: np.ufunc) -> Callable[[Rule], Callable[..., Any]]:
    """Enter a ufunc whose rule is the decorated function of tracers."""

    def enter(rule: Rule) -> Callable[..., Any]:
        TABLE[ufunc] = call = _general(ufunc, rule)
        call.__doc__ = rule.__doc__
        return public(ufunc, call)

    return enter


def _truth(x: Tracer) -> Tracer:
    return x if x.dtype.kind == "b" else e.ne(x, full_like(x, 0))


def _logical(ufunc: np.ufunc, primitive: Primitive) -> Callable[..., Any]:
    @implements(ufunc, constant=True, keeps_order=True)
    def call(*xs: Any) -> Tracer:
        given = [asarray(x) for x in xs]
        operands = [_truth(x) for x in given]
        shape = broadcast_shapes(ufunc.__name__, *operands)
        y = primitive(*(broadcast_to(x, shape) for x in operands))
        is_composed = len(shape) > 1 and any(x.dtype.kind != "b" for x in given)
        return own(y, None, "?") if is_composed and len(xs) > 1 else y

    return call


logical_and = _logical(np.logical_and, e.bitwise_and)
logical_or = _logical(np.logical_or, e.bitwise_or)
logical_xor = _logical(np.logical_xor, e.bitwise_xor)
logical_not = _logical(np.logical_not, e.bitwise_not)


@_composed(np.positive)
def positive(x: Tracer) -> Tracer:
    """`+x`: a copy."""
    return same_value(x)


@_composed(np.conjugate)
def conjugate(x: Tracer) -> Tracer:
    """The complex conjugate of each element."""
    return e.conj(x) if is_complex(x.dtype) else same_value(x)


@_composed(np.fabs)
def fabs(x: Tracer) -> Tracer:
    """The absolute value, in floating point."""
    return e.abs_(x)


@_composed(np.float_power)
def float_power(x: Tracer, y: Tracer) -> Tracer:
    """`x ** y` in float64 or complex128."""
    return e.power(x, y)


def _scaled(factor: float) -> Rule:
    return lambda x: e.mul(x, full_like(x, factor))


deg2rad = _composed(np.deg2rad)(_scaled(math.pi / 180))
rad2deg = _composed(np.rad2deg)(_scaled(180 / math.pi))
radians = _composed(np.radians)(_scaled(math.pi / 180))
degrees = _composed(np.degrees)(_scaled(180 / math.pi))


def _ignoring_nan(primitive: Primitive) -> Rule:
    def rule(x: Tracer, y: Tracer) -> Tracer:
        if not is_inexact(x.dtype):
            return primitive(x, y)
        return e.select(e.isnan(x), y, e.select(e.isnan(y), x, primitive(x, y)))

    return rule


fmax = _composed(np.fmax)(_ignoring_nan(e.maximum))
fmin = _composed(np.fmin)(_ignoring_nan(e.minimum))


@_composed(np.heaviside)
def heaviside(x: Tracer, at_zero: Tracer) -> Tracer:
    """0 for negative `x`, 1 for positive, `at_zero` for 0."""
    zero = full_like(x, 0)
    step = e.select(e.lt(x, zero), zero, full_like(x, 1))
    return e.select(e.isnan(x), full_like(x, math.nan), e.select(e.eq(x, zero), at_zero, step))


@implements(np.ldexp)
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


@implements(np.modf, keeps_order=True)
def modf(x: Any) -> Any:
    """The fractional and the integral part of each element, both with its sign."""
    (x,) = promote("modf", x)
    x = cast(x, resolved_dtypes(np.modf, (x,))[0])
    whole = e.trunc(x)
    fraction = e.select(e.isinf(x), full_like(x, 0), e.sub(x, whole))
    return e.copysign(fraction, x), whole


@implements(np.frexp)
def frexp(x: Any) -> Any:
    """A mantissa between 1/2 and 1 and an exponent of two, whose product each element is."""
    (x,) = promote("frexp", x)
    x = cast(x, resolved_dtypes(np.frexp, (x,))[0])
    exponent = representation.exponent(x)
    return np.ldexp(x, e.neg(exponent)), exponent


@implements(np.divmod, keeps_order=True)
def divmod(x: Any, y: Any) -> Any:
    """`(x // y, x % y)`."""
    return np.floor_divide(x, y), np.remainder(x, y)
