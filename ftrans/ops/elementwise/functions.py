"""Mathematical functions: exponentials, roots, trigonometry, extrema, signs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.floating_point import end_sending, ignore_overflow
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ..literals import full_like
from .conversions import complex_, conj, convert, imag, real, to_real
from .family import (
    Elementwise,
    Partial,
    add,
    div,
    is_real,
    mul,
    neg,
    of_jnp,
    of_lax,
    sub,
    unary,
    without_negative_zeros,
)
from .logic import eq, gt, isinf, select, signbit
from .trigonometry import vectorized

# What XLA does with complex numbers where NumPy does something else


def _mirrored(function: Callable[..., Any], z: Any) -> Any:
    """A function with `f(conj(z)) = conj(f(z))`: on its branch cut the sign of the imaginary zero says which side."""
    import jax.numpy as jnp

    is_below = jnp.signbit(z.imag)
    upper = function(jnp.where(is_below, jnp.conj(z), z))
    return jnp.where(is_below, jnp.conj(upper), upper)


def _mirrored_in_real(function: Callable[..., Any], z: Any) -> Any:
    """The same with `f(-conj(z)) = -conj(f(z))` and the sign of the real part."""
    import jax.numpy as jnp

    is_left = jnp.signbit(z.real)
    right = function(jnp.where(is_left, -jnp.conj(z), z))
    return jnp.where(is_left, -jnp.conj(right), right)


def _complex_sinh(_: Callable[..., Any], z: Any) -> Any:
    """By parts, since XLA subtracts exponentials, which loses the digits of small numbers."""
    from jax import lax

    return lax.complex(lax.sinh(z.real) * lax.cos(z.imag), lax.cosh(z.real) * lax.sin(z.imag))


def _complex_extremum(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """The first operand that is not a number comes first."""
    import jax.numpy as jnp

    return jnp.where(jnp.isnan(x), x, jnp.where(jnp.isnan(y), y, function(x, y)))


# Exponentials, logarithms, roots

exp = unary("exp", np.exp, "exp", lambda y, x, t: mul(t, y))
exp2 = unary("exp2", np.exp2, "exp2", lambda y, x, t: mul(t, mul(full_like(x, math.log(2)), y)))
# Not in terms of the result: near -1 it has lost what the derivative is.
expm1 = unary("expm1", np.expm1, "expm1", lambda y, x, t: mul(t, exp(x)))
log = unary("log", np.log, "log", lambda y, x, t: div(t, x), singular=True)
log2 = unary("log2", np.log2, of_jnp("log2"), lambda y, x, t: div(t, mul(x, full_like(x, math.log(2)))), singular=True)
log10 = unary(
    "log10", np.log10, of_jnp("log10"), lambda y, x, t: div(t, mul(x, full_like(x, math.log(10)))), singular=True
)
log1p = unary("log1p", np.log1p, "log1p", lambda y, x, t: div(t, add(x, full_like(x, 1))), singular=True)
sqrt = unary(
    "sqrt",
    np.sqrt,
    of_lax("sqrt", _mirrored),
    lambda y, x, t: mul(t, div(full_like(x, 0.5), y)),
    singular=True,
    square=lambda x: [lambda t: t],
    arithmetic=True,
)
cbrt = unary("cbrt", np.cbrt, "cbrt", lambda y, x, t: div(t, mul(full_like(x, 3), mul(y, y))), singular=True)

# Trigonometry

sin = unary("sin", np.sin, vectorized("sin"), lambda y, x, t: mul(t, cos(x)))
cos = unary("cos", np.cos, vectorized("cos"), lambda y, x, t: neg(mul(t, sin(x))))
tan = unary("tan", np.tan, "tan", lambda y, x, t: mul(t, add(full_like(x, 1), mul(y, y))))


def _around(x: Tracer) -> tuple[Tracer, Tracer]:
    """`1 - x` and `1 + x`.  The zero in the imaginary part of a complex `x` keeps its sign, which says on which side
    of a branch cut it lies."""
    if is_complex(x.dtype):
        one = full_like(real(x), 1)
        return complex_(sub(one, real(x)), neg(imag(x))), complex_(add(one, real(x)), imag(x))
    one = full_like(x, 1)
    return sub(one, x), add(one, x)


def _product_around(x: Any) -> Any:
    return (1 - x) * (1 + x)


# `1 - x**2`: the product has all digits where x is close to 1, and this derivative where x is close to 0.
one_minus_square = Elementwise(
    "one_minus_square",
    _product_around,
    _product_around,
    lambda y, x: [lambda t: mul(t, mul(full_like(x, -2), x))],
    accepts=is_real,
    arithmetic=True,
)


def _cosine_of_arcsin(x: Tracer) -> Tracer:
    """`sqrt(1 - x**2)`; of complex numbers as two roots, none of which crosses its branch cut (Kahan, 1987)."""
    if not is_complex(x.dtype):
        return sqrt(one_minus_square(x))
    below, above = _around(x)
    return mul(sqrt(below), sqrt(above))


def _cosh_of_arcsinh(x: Tracer) -> Tracer:
    """`sqrt(1 + x**2)`, where the square may overflow."""
    return _cosine_of_arcsin(_turned(x)) if is_complex(x.dtype) else hypot(x, full_like(x, 1))


def _turned(x: Tracer) -> Tracer:
    """The complex number `i x`."""
    return complex_(neg(imag(x)), real(x))


def _cosh_of_arccosh(x: Tracer) -> Tracer:
    below, above = _around(x)
    less = neg(below) if is_complex(x.dtype) else sub(x, full_like(x, 1))
    return mul(sqrt(less), sqrt(above))


def _arctan_tangent(x: Tracer, t: Tracer) -> Tracer:
    if is_complex(x.dtype):
        # A square that overflows would not be a number.
        below, above = _around(_turned(x))
        return div(div(t, below), above)
    return div(t, add(full_like(x, 1), mul(x, x)))


def _arctanh_tangent(x: Tracer, t: Tracer) -> Tracer:
    if not is_complex(x.dtype):
        return div(t, one_minus_square(x))
    below, above = _around(x)
    return div(div(t, below), above)


arcsin = unary(
    "arcsin", np.arcsin, of_lax("asin", _mirrored), lambda y, x, t: div(t, _cosine_of_arcsin(x)), singular=True
)
arccos = unary(
    "arccos", np.arccos, of_lax("acos", _mirrored), lambda y, x, t: neg(div(t, _cosine_of_arcsin(x))), singular=True
)
arctan = unary("arctan", np.arctan, "atan", lambda y, x, t: _arctan_tangent(x, t))
sinh = unary("sinh", np.sinh, of_lax("sinh", _complex_sinh), lambda y, x, t: mul(t, cosh(x)))
cosh = unary("cosh", np.cosh, "cosh", lambda y, x, t: mul(t, sinh(x)))


def _sech_square(x: Any) -> Any:
    decayed = np.exp(-2 * np.abs(x))
    return 4 * (decayed / np.square(1 + decayed))


def _sech_square_xla(x: Any) -> Any:
    from jax import lax

    number = x.dtype.type
    decayed = lax.exp(lax.mul(number(-2), lax.abs(x)))
    return lax.mul(number(4), lax.div(decayed, lax.square(lax.add(number(1), decayed))))


# The derivative of tanh.  In terms of tanh, as `1 - tanh(x)**2`, it would lose its digits where that is close to 1.
sech_square = Elementwise(
    "sech_square",
    _sech_square,
    _sech_square_xla,
    lambda y, x: [lambda t: mul(t, mul(full_like(x, -2), mul(tanh(x), y)))],
    accepts=is_real,
)


def _tanh_tangent(y: Tracer, x: Tracer, t: Tracer) -> Tracer:
    return mul(t, sub(full_like(y, 1), mul(y, y)) if is_complex(x.dtype) else sech_square(x))


tanh = unary("tanh", np.tanh, "tanh", _tanh_tangent)


def _logistic_quotient(x: Any) -> Any:
    # The exponential of a large negative number is infinite, and the result 0, as it should be; but float16 has results
    # that are not 0 where its exponential is infinite.
    wide = x if x.dtype.itemsize > 2 else x.astype(np.float32)
    one = wide.dtype.type(1)
    return (one / (one + np.exp(-wide))).astype(x.dtype, copy=False)


def _logistic(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return _logistic_quotient(x)


class _Logistic(Elementwise):
    def numpy(self, x: Any) -> Any:
        token = ignore_overflow()
        try:
            return _logistic_quotient(x)
        finally:
            end_sending(token)

    def stand_alone(self, types: list[ArrayType], params: Params) -> tuple[Callable[..., Any], Params]:
        return _logistic, {}


logistic = _Logistic(
    "logistic",
    _logistic,
    "logistic",
    lambda y, x: [lambda t: mul(t, mul(full_like(x, 0.25), sech_square(mul(full_like(x, 0.5), x))))],
    accepts=is_real,
)
arcsinh = unary("arcsinh", np.arcsinh, of_lax("asinh", _mirrored_in_real), lambda y, x, t: div(t, _cosh_of_arcsinh(x)))
arccosh = unary(
    "arccosh", np.arccosh, of_lax("acosh", _mirrored), lambda y, x, t: div(t, _cosh_of_arccosh(x)), singular=True
)
arctanh = unary("arctanh", np.arctanh, "atanh", lambda y, x, t: _arctanh_tangent(x, t), singular=True)


def _by_radius(x: Tracer, radius: Tracer, times: int) -> Tracer:
    """`x / radius**times`, and 0 with all of its derivatives where the radius is 0."""
    zero = full_like(x, 0)
    at_origin = eq(radius, zero)
    # Divided several times, so that neither tiny nor huge operands overflow.
    divisor = select(at_origin, full_like(x, 1), radius)
    for _ in range(times):
        x = div(x, divisor)
    return select(at_origin, zero, x)


def _cosine(x: Any, y: Any) -> Any:
    radius = np.hypot(x, y)
    # At the origin 0 by 1.
    return x / (radius + (radius == 0))


def _cosine_xla(x: Any, y: Any) -> Any:
    import jax.numpy as jnp

    radius = jnp.hypot(x, y)
    return x / (radius + (radius == 0))


def _cosine_partials(c: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    sine = cosine(y, x)
    # In this order nothing overflows or vanishes that the product does not.
    turn = _by_radius(sine, hypot(x, y), 1)
    return [lambda t: mul(t, mul(sine, turn)), lambda t: neg(mul(t, mul(c, turn)))]


# The cosine of the angle of the point (x, y): x by its distance from the origin.  As a quotient, its derivatives would
# be differences of nearly equal numbers.
cosine = Elementwise("cosine", _cosine, _cosine_xla, _cosine_partials, accepts=is_real)

arctan2 = Elementwise(
    "arctan2",
    np.arctan2,
    "atan2",
    lambda z, y, x: [
        lambda t: mul(t, _by_radius(x, hypot(x, y), 2)),
        lambda t: neg(mul(t, _by_radius(y, hypot(x, y), 2))),
    ],
    accepts=is_real,
)
hypot = Elementwise(
    "hypot",
    np.hypot,
    of_jnp("hypot"),
    lambda z, x, y: [lambda t: mul(t, cosine(x, y)), lambda t: mul(t, cosine(y, x))],
    accepts=is_real,
    square=lambda x, y: [lambda t: mul(t, mul(full_like(x, 2), x)), lambda t: mul(t, mul(full_like(y, 2), y))],
)
# The length of a vector, given its square: a square root whose derivatives at 0 are 0, as befits a subgradient.
root = unary(
    "root",
    np.sqrt,
    "sqrt",
    lambda y, x, t: mul(t, _by_radius(full_like(y, 0.5), y, 1)),
    accepts=is_real,
    square=lambda x: [lambda t: t],
)


def _logaddexp_partials(x: Tracer, y: Tracer, scale: float) -> list[Partial]:
    # Where the result is infinite, the larger operand is; so the result itself need not be computed.
    z = maximum(x, y)
    zero, half = full_like(z, 0), full_like(z, 0.5)

    def weight(operand: Tracer, other: Tracer) -> Tracer:
        # An infinite operand must not meet an equally infinite other one: inf - inf is not a number.
        limit = select(eq(operand, z), select(eq(other, z), half, full_like(z, 1)), zero)
        limit = select(gt(z, zero), limit, zero)
        apart = sub(select(isinf(z), zero, operand), select(isinf(z), zero, other))
        return select(isinf(z), limit, logistic(apart if scale == 1 else mul(full_like(z, scale), apart)))

    return [lambda t: mul(t, weight(x, y)), lambda t: mul(t, weight(y, x))]


logaddexp = Elementwise(
    "logaddexp", np.logaddexp, of_jnp("logaddexp"), lambda z, x, y: _logaddexp_partials(x, y, 1.0), accepts=is_real
)
logaddexp2 = Elementwise(
    "logaddexp2",
    np.logaddexp2,
    of_jnp("logaddexp2"),
    lambda z, x, y: _logaddexp_partials(x, y, math.log(2)),
    accepts=is_real,
)


def _lerp(x: Any, y: Any, w: Any) -> Any:
    apart = y - x
    return np.where(w >= 0.5, y - apart * (1 - w), x + apart * w)[()]


def _lerp_xla(x: Any, y: Any, w: Any) -> Any:
    import jax.numpy as jnp

    apart = y - x
    return jnp.where(w >= 0.5, y - apart * (1 - w), x + apart * w)


# A part `w` of the way from `x` to `y`, as `numpy.quantile` rounds it.  Tangents are weighted, not taken from each
# other: the difference of an infinite one and a part of it would not be a number.
lerp = Elementwise(
    "lerp",
    _lerp,
    _lerp_xla,
    lambda z, x, y, w: [lambda t: mul(t, sub(full_like(w, 1), w)), lambda t: mul(t, w), lambda t: mul(t, sub(y, x))],
    accepts=is_real,
    arithmetic=True,
)


# Choice: at ties both operands get half of the derivative.


def _winner_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    def share(t: Tracer, mine: Tracer, other: Tracer) -> Tracer:
        half, one, zero = (full_like(x, v) for v in (0.5, 1, 0))
        return select(eq(mine, z), mul(t, select(eq(other, z), half, one)), zero)

    return [lambda t: share(t, x, y), lambda t: share(t, y, x)]


maximum = Elementwise("maximum", np.maximum, of_lax("max", _complex_extremum), _winner_partials, arithmetic=True)
minimum = Elementwise("minimum", np.minimum, of_lax("min", _complex_extremum), _winner_partials, arithmetic=True)


def _copysign_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Partial]:
    return [lambda t: select(eq(signbit(x), signbit(y)), t, neg(t)), None]


copysign = Elementwise(
    "copysign", np.copysign, of_jnp("copysign"), _copysign_partials, accepts=is_real, arithmetic=True
)
nextafter = Elementwise("nextafter", np.nextafter, "nextafter", lambda z, x, y: [lambda t: t, None], accepts=is_real)


def _along(t: Tracer, direction: Tracer) -> Tracer:
    """The real part of `t` times the conjugate of `direction`."""
    return real(mul(t, conj(direction))) if is_complex(t.dtype) else mul(t, direction)


abs_ = Elementwise(
    "abs",
    np.abs,
    "abs",
    lambda y, x: [lambda t: _along(t, sign(x))],
    result=to_real,
    square=lambda x: [lambda t: _along(t, mul(full_like(x, 2), x))],
    arithmetic=True,
)


def _sign_partials(y: Tracer, x: Tracer) -> list[Partial]:
    if not is_complex(x.dtype):
        return [None]

    def along(t: Tracer) -> Tracer:
        # A complex sign is x / |x|: only the part of the tangent at right angles to x turns it.
        across = imag(mul(conj(y), t))
        return mul(y, _by_radius(complex_(full_like(across, 0), across), convert(abs_(x), dtype=x.dtype), 1))

    return [along]


def _sign_on_xla(x: Any) -> Any:
    from jax import lax

    return without_negative_zeros(lax.sign(x)) if is_real(x.dtype) else lax.sign(x)


sign = Elementwise("sign", np.sign, _sign_on_xla, _sign_partials, arithmetic=True)
