"""Mathematical functions: powers, exponentials, trigonometry, extrema, remainders, rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.primitive import Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex, is_inexact
from ..shapes import full_like
from .conversions import conj, convert, real, to_real
from .family import (
    Elementwise,
    Partial,
    add,
    div,
    is_integer,
    is_real,
    mul,
    neg,
    of_jnp,
    piecewise_constant,
    sub,
    unary,
)
from .logic import bitwise_and, eq, gt, isinf, select, signbit

# Powers


class IntegerPow(Elementwise):
    """`x ** exponent` for a constant integer exponent."""

    def __init__(self) -> None:
        super().__init__("integer_pow", np.power, "integer_pow")

    def type_rule(self, *types: ArrayType, exponent: int = 1) -> ArrayType:
        if exponent < 0 and not is_inexact(types[0].dtype):
            raise ValueError("integers to negative integer powers are not allowed")
        return types[0]

    def numpy(self, *arrays: Any, exponent: int = 1) -> Any:
        (x,) = arrays
        power = np.power(x, exponent)
        # NumPy takes powers of the small formats in a larger one.
        return power if power.dtype == x.dtype else power.astype(x.dtype)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        (x,) = operands
        n = params["exponent"]
        if 2 <= n <= 3:
            return " * ".join([x] * n)
        if n == 4:
            return f"np.square({x} * {x})"
        return {-1: f"np.reciprocal({x})", -2: f"np.reciprocal({x} * {x})"}.get(n)

    def xla(self, *arrays: Any, exponent: int = 1) -> Any:
        from jax import lax

        return lax.integer_pow(arrays[0], exponent)

    def flops(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> float:
        # By repeated squaring.
        n = abs(params["exponent"])
        products = max(n.bit_length() - 1, 0) + max(n.bit_count() - 1, 0) + (params["exponent"] < 0)
        return float(products * types[0].size)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x,), (t,), n = primals, tangents, params["exponent"]
        assert t is not None
        out = integer_pow(x, exponent=n)
        if n == 0:
            return out, None
        return out, mul(t, mul(full_like(x, n), x if n == 2 else integer_pow(x, exponent=n - 1)))

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        n = params["exponent"]
        return operands[0] if n == 1 else full_like(operands[0], 1) if n == 0 else None


integer_pow = IntegerPow()


def _power_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    one = full_like(x, 1)
    zero = full_like(x, 0)

    def along_x(t: Tracer) -> Tracer:
        # Where y is 0 the derivative is 0, also at x = 0, where x ** (y - 1) is infinite.
        exponent = select(eq(y, zero), one, sub(y, one))
        return mul(t, mul(y, power(x, exponent)))

    def along_y(t: Tracer) -> Tracer:
        # At x = 0 the limit of log(x) x**y is 0 for y > 0.
        return mul(t, mul(log(select(eq(x, zero), one, x)), z))

    return [along_x, along_y]


power = Elementwise("power", np.power, of_jnp("power"), _power_partials, python="{} ** {}")
square = Elementwise(
    "square",
    np.square,
    "square",
    lambda y, x: [lambda t: mul(t, mul(full_like(x, 2), x))],
    python="{0} * {0}",
)
reciprocal = unary(
    "reciprocal",
    np.reciprocal,
    "reciprocal",
    lambda y, x, t: neg(mul(t, mul(y, y))),
    python="np.reciprocal({})",
)

# Exponentials, logarithms, roots

exp = unary("exp", np.exp, "exp", lambda y, x, t: mul(t, y))
exp2 = unary("exp2", np.exp2, "exp2", lambda y, x, t: mul(t, mul(full_like(x, math.log(2)), y)))
expm1 = unary("expm1", np.expm1, "expm1", lambda y, x, t: mul(t, add(y, full_like(x, 1))))
log = unary("log", np.log, "log", lambda y, x, t: div(t, x))
log2 = unary("log2", np.log2, of_jnp("log2"), lambda y, x, t: div(t, mul(x, full_like(x, math.log(2)))))
log10 = unary("log10", np.log10, of_jnp("log10"), lambda y, x, t: div(t, mul(x, full_like(x, math.log(10)))))
log1p = unary("log1p", np.log1p, "log1p", lambda y, x, t: div(t, add(x, full_like(x, 1))))
sqrt = unary("sqrt", np.sqrt, "sqrt", lambda y, x, t: mul(t, div(full_like(x, 0.5), y)))
cbrt = unary("cbrt", np.cbrt, "cbrt", lambda y, x, t: div(t, mul(full_like(x, 3), mul(y, y))))

# Trigonometry

sin = unary("sin", np.sin, "sin", lambda y, x, t: mul(t, cos(x)))
cos = unary("cos", np.cos, "cos", lambda y, x, t: neg(mul(t, sin(x))))
tan = unary("tan", np.tan, "tan", lambda y, x, t: mul(t, add(full_like(x, 1), mul(y, y))))


def _one_minus_square(x: Tracer) -> Tracer:
    one = full_like(x, 1)
    return mul(sub(one, x), add(one, x))


arcsin = unary("arcsin", np.arcsin, "asin", lambda y, x, t: div(t, sqrt(_one_minus_square(x))))
arccos = unary("arccos", np.arccos, "acos", lambda y, x, t: neg(div(t, sqrt(_one_minus_square(x)))))
arctan = unary("arctan", np.arctan, "atan", lambda y, x, t: div(t, add(full_like(x, 1), mul(x, x))))
sinh = unary("sinh", np.sinh, "sinh", lambda y, x, t: mul(t, cosh(x)))
cosh = unary("cosh", np.cosh, "cosh", lambda y, x, t: mul(t, sinh(x)))
tanh = unary("tanh", np.tanh, "tanh", lambda y, x, t: mul(t, sub(full_like(y, 1), mul(y, y))))
arcsinh = unary("arcsinh", np.arcsinh, "asinh", lambda y, x, t: div(t, sqrt(add(mul(x, x), full_like(x, 1)))))
arccosh = unary(
    "arccosh",
    np.arccosh,
    "acosh",
    lambda y, x, t: div(t, mul(sqrt(sub(x, full_like(x, 1))), sqrt(add(x, full_like(x, 1))))),
)
arctanh = unary("arctanh", np.arctanh, "atanh", lambda y, x, t: div(t, _one_minus_square(x)))


def _safe_divisor(x: Tracer) -> Tracer:
    return select(eq(x, full_like(x, 0)), full_like(x, 1), x)


def _arctan2_partials(z: Tracer, y: Tracer, x: Tracer) -> list[Partial]:
    # Divided by the radius twice, so that neither tiny nor huge operands overflow; at the origin 0 is chosen.
    radius = _safe_divisor(hypot(x, y))
    return [
        lambda t: mul(t, div(div(x, radius), radius)),
        lambda t: neg(mul(t, div(div(y, radius), radius))),
    ]


arctan2 = Elementwise("arctan2", np.arctan2, "atan2", _arctan2_partials, accepts=is_real)
hypot = Elementwise(
    "hypot",
    np.hypot,
    of_jnp("hypot"),
    lambda z, x, y: [lambda t: mul(t, div(x, _safe_divisor(z))), lambda t: mul(t, div(y, _safe_divisor(z)))],
    accepts=is_real,
)


def _logaddexp_partials(z: Tracer, x: Tracer, y: Tracer, exponential: Elementwise) -> list[Partial]:
    zero = full_like(z, 0)

    def weight(operand: Tracer) -> Tracer:
        # An infinite result must not meet an equally infinite operand: inf - inf is not a number.
        limit = select(bitwise_and(eq(operand, z), gt(z, zero)), zero, full_like(z, -math.inf))
        return exponential(select(isinf(z), limit, sub(operand, select(isinf(z), zero, z))))

    return [lambda t: mul(t, weight(x)), lambda t: mul(t, weight(y))]


logaddexp = Elementwise(
    "logaddexp", np.logaddexp, of_jnp("logaddexp"), lambda z, x, y: _logaddexp_partials(z, x, y, exp), accepts=is_real
)
logaddexp2 = Elementwise(
    "logaddexp2",
    np.logaddexp2,
    of_jnp("logaddexp2"),
    lambda z, x, y: _logaddexp_partials(z, x, y, exp2),
    accepts=is_real,
)


# Choice: at ties both operands get half of the derivative.


def _winner_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    def share(mine: Tracer, other: Tracer) -> Tracer:
        half, one, zero = (full_like(x, v) for v in (0.5, 1, 0))
        return select(eq(mine, z), select(eq(other, z), half, one), zero)

    return [lambda t: mul(t, share(x, y)), lambda t: mul(t, share(y, x))]


maximum = Elementwise("maximum", np.maximum, "max", _winner_partials)
minimum = Elementwise("minimum", np.minimum, "min", _winner_partials)


def _copysign_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    return [lambda t: select(eq(signbit(x), signbit(y)), t, neg(t)), None]


copysign = Elementwise("copysign", np.copysign, of_jnp("copysign"), _copysign_partials, accepts=is_real)
nextafter = Elementwise("nextafter", np.nextafter, "nextafter", lambda z, x, y: [lambda t: t, None], accepts=is_real)
abs_ = Elementwise(
    "abs",
    np.abs,
    "abs",
    lambda y, x: [lambda t: real(mul(t, conj(sign(x)))) if is_complex(x.dtype) else mul(t, sign(x))],
    result=to_real,
)


# Division with remainder: the quotient is piecewise constant.


def _integer_division(name: str) -> Callable[..., Any]:
    """A division of `jax.numpy` whose result is 0 where an integer is divided by 0, as it is in NumPy."""

    def call(x: Any, y: Any) -> Any:
        import jax.numpy as jnp

        if not is_integer(x.dtype):
            quotient = getattr(jnp, name)(x, y)
            # Older versions of JAX give NaN for a floor division by zero, where NumPy gives infinity.
            return jnp.where(y == 0, x / y, quotient) if name == "floor_divide" else quotient
        is_zero = y == 0
        return jnp.where(is_zero, 0, getattr(jnp, name)(x, jnp.where(is_zero, 1, y))).astype(x.dtype)

    return call


floor_divide = piecewise_constant("floor_divide", np.floor_divide, _integer_division("floor_divide"), python="{} // {}")
remainder = Elementwise(
    "remainder",
    np.remainder,
    _integer_division("remainder"),
    lambda z, x, y: [lambda t: t, lambda t: neg(mul(t, floor_divide(x, y)))],
    python="{} % {}",
)
fmod = Elementwise(
    "fmod", np.fmod, _integer_division("fmod"), lambda z, x, y: [lambda t: t, lambda t: neg(mul(t, trunc(div(x, y))))]
)


# Piecewise constant functions


def _sign_partials(y: Tracer, x: Tracer) -> list[Partial]:
    if not is_complex(x.dtype):
        return [None]

    def along(t: Tracer) -> Tracer:
        # A complex sign is x / |x|: only the part of the tangent at right angles to x turns it.
        radial = convert(real(mul(conj(y), t)), dtype=x.dtype)
        return div(sub(t, mul(y, radial)), _safe_divisor(convert(abs_(x), dtype=x.dtype)))

    return [along]


sign = Elementwise("sign", np.sign, "sign", _sign_partials)
floor = piecewise_constant("floor", np.floor, "floor", accepts=is_real)
ceil = piecewise_constant("ceil", np.ceil, "ceil", accepts=is_real)
trunc = piecewise_constant("trunc", np.trunc, of_jnp("trunc"), accepts=is_real)
rint = piecewise_constant("rint", np.rint, of_jnp("rint"), accepts=is_inexact)
