"""Functions of each element for statistics, information theory, powers and angles in degrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..elementwise import (
    abs_,
    add,
    bitwise_and,
    bitwise_or,
    cosine,
    div,
    eq,
    exp,
    gt,
    hypot,
    le,
    log,
    lt,
    mul,
    neg,
    power,
    sech_square,
    select,
    sign,
    square,
    sub,
)
from ..elementwise import log1p as real_log1p
from ..literals import full_like
from .arithmetic import minus, plus, times
from .exponential import exprel_slope, logarithm_quotient_slope, near_and_far
from .family import Special


def _zero(x: Tracer) -> Tracer:
    return full_like(x, 0)


# The logistic function.  The derivative of `elementwise.logistic`, y (1 - y), is made for training: it rounds to 0 for
# large x, where this one is still exp(-x).


def _logistic_xla(x: Any) -> Any:
    from jax import lax

    return lax.logistic(x)


def _log_expit_xla(x: Any) -> Any:
    from jax import numpy

    return numpy.minimum(x, 0) - numpy.log1p(numpy.exp(-numpy.abs(x)))


def _logit_xla(x: Any) -> Any:
    from jax import numpy

    # Near 1/2 by its distance, where the logarithm of the quotient would lose digits.
    distance = numpy.where(numpy.abs(x - 0.5) < 0.2, 2 * (x - 0.5), 0)
    middle = numpy.log1p(distance) - numpy.log1p(-distance)
    return numpy.where(numpy.abs(x - 0.5) < 0.2, middle, numpy.log(x / (1 - x)))


expit = Special("expit", lambda y, x: [lambda t: mul(t, times(0.25, sech_square(times(0.5, x))))], xla=_logistic_xla)
log_expit = Special("log_expit", lambda y, x: [lambda t: mul(t, expit(neg(x)))], xla=_log_expit_xla)
# Divided twice: where the second derivative overflows, that of the product would be a difference of infinite numbers.
logit = Special("logit", lambda y, x: [lambda t: div(div(t, x), minus(1, x))], xla=_logit_xla)


# Entropy.  Derivatives are 0 where the value is infinite by convention.


def _inside(is_outside: Tracer, slopes: Sequence[Tracer]) -> list[Any]:
    """Partial derivatives that are 0 where the value is infinite by convention."""

    def along(slope: Tracer) -> Any:
        return lambda t: mul(t, select(is_outside, _zero(slope), slope))

    return [along(slope) for slope in slopes]


def _is_zero_by_zero(x: Tracer, y: Tracer) -> Tracer:
    return bitwise_and(eq(x, _zero(x)), eq(y, _zero(y)))


def _entr_partials(y: Tracer, x: Tracer) -> list[Any]:
    is_outside = lt(x, _zero(x))
    return _inside(is_outside, [minus(-1, log(select(is_outside, full_like(x, 1), x)))])


entr = Special("entr", _entr_partials, xla="entr")


def _xlogy_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Any]:
    divisor = select(_is_zero_by_zero(x, y), full_like(y, 1), y)
    return [lambda t: mul(t, log(y)), lambda t: mul(t, div(x, divisor))]


def _xlog1py_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Any]:
    whole = plus(1, y)
    divisor = select(_is_zero_by_zero(x, whole), full_like(y, 1), whole)
    return [lambda t: mul(t, real_log1p(y)), lambda t: mul(t, div(x, divisor))]


xlogy = Special("xlogy", _xlogy_partials, xla="xlogy")
xlog1py = Special("xlog1py", _xlog1py_partials, xla="xlog1py")


def _log_ratio(x: Any, y: Any) -> Any:
    """`log(x / y)`, to rounding where they are nearly equal, and without overflow where they are far apart."""
    with np.errstate(all="ignore"):
        ratio = x / y
        is_near = (ratio > 0.5) & (ratio < 2)
        return np.where(is_near, np.log1p(np.where(is_near, x - y, 0) / y), np.log(x) - np.log(y))[()]


def _log_ratio_xla(x: Any, y: Any) -> Any:
    from jax import numpy

    ratio = x / y
    is_near = (ratio > 0.5) & (ratio < 2)
    return numpy.where(is_near, numpy.log1p(numpy.where(is_near, x - y, 0) / y), numpy.log(x) - numpy.log(y))


log_ratio = Special(
    "log_ratio",
    lambda z, x, y: [lambda t: div(t, x), lambda t: neg(div(t, y))],
    numpy=_log_ratio,
    xla=_log_ratio_xla,
)


def _relative_entropy(name: str, linear: float) -> Special:
    """`x log(x / y)`, less `linear * (x - y)`."""

    def partials(z: Tracer, x: Tracer, y: Tracer) -> list[Any]:
        zero, one = _zero(x), full_like(x, 1)
        is_outside = bitwise_or(bitwise_or(lt(x, zero), lt(y, zero)), bitwise_and(gt(x, zero), eq(y, zero)))
        is_empty = _is_zero_by_zero(x, y)
        x, y = (select(is_outside, one, v) for v in (x, y))
        divisor = select(is_empty, one, y)
        along_x = plus(log_ratio(select(is_empty, one, x), divisor), 1 - linear)
        along_y = select(is_empty, full_like(y, linear), div(sub(times(linear, y), x), divisor))

        return _inside(is_outside, [select(is_empty, zero, along_x), along_y])

    def xla(x: Any, y: Any) -> Any:
        from jax import numpy

        dtype, x, y = x.dtype, x.astype(np.float64), y.astype(np.float64)
        is_inside, is_empty = (x > 0) & (y > 0), (x == 0) & (y >= 0)
        ratio = _log_ratio_xla(numpy.where(is_inside, x, 1), numpy.where(is_inside, y, 1))
        inside = x * ratio - linear * (x - y) if linear else x * ratio
        found = numpy.where(is_inside, inside, numpy.where(is_empty, linear * y if linear else 0.0, numpy.inf))
        return numpy.where(numpy.isnan(x) | numpy.isnan(y), numpy.nan, found).astype(dtype)

    return Special(name, partials, xla=xla)


rel_entr = _relative_entropy("rel_entr", 0.0)
kl_div = _relative_entropy("kl_div", 1.0)


# Losses


def _huber_partials(y: Tracer, delta: Tracer, r: Tracer) -> list[Any]:
    size = abs_(r)
    is_near = le(size, delta)
    along_delta = select(is_near, _zero(r), sub(size, delta))
    return _inside(lt(delta, _zero(r)), [along_delta, select(is_near, r, mul(delta, sign(r)))])


def _huber_xla(delta: Any, r: Any) -> Any:
    from jax import numpy

    size = numpy.abs(r)
    finite = numpy.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return numpy.where(delta < 0, numpy.inf, finite)


def _pseudo_huber_partials(y: Tracer, delta: Tracer, r: Tracer) -> list[Any]:
    # In terms of the radius: y = delta * (radius - delta), and radius - delta = r**2 / (radius + delta).
    length = hypot(delta, r)
    radius = select(eq(length, _zero(r)), full_like(r, 1), length)
    share = div(r, select(lt(delta, _zero(r)), radius, add(radius, delta)))
    sine = cosine(r, delta)
    along_delta = mul(mul(share, share), mul(r, sine))
    return _inside(lt(delta, _zero(r)), [along_delta, mul(delta, sine)])


def _pseudo_huber_xla(delta: Any, r: Any) -> Any:
    from jax import numpy

    radius = numpy.hypot(delta, r) + delta
    finite = delta * r * (r / numpy.where(radius == 0, 1, radius))
    return numpy.where(delta < 0, numpy.inf, finite)


huber = Special("huber", _huber_partials, xla=_huber_xla)
pseudo_huber = Special("pseudo_huber", _pseudo_huber_partials, xla=_pseudo_huber_xla)


# Transformations of Box and Cox


def _power_quotient_slope(root: Tracer, exponent: Tracer, y: Tracer, raised: Tracer) -> Tracer:
    """The derivative of `y = (raised - 1) / exponent` in the exponent, where `raised` is `exp(exponent * root)`."""
    is_near, product, _ = near_and_far(mul(exponent, root), 1.0)
    near = select(is_near, root, _zero(root))
    series = mul(square(near), exprel_slope(product))
    divisor = select(is_near, full_like(y, 1), exponent)
    # The logarithm of 0 times a power of 0 is 0.
    growth = mul(raised, select(eq(raised, _zero(raised)), _zero(root), root))
    return select(is_near, series, div(sub(growth, y), divisor))


def _boxcox_partials(y: Tracer, x: Tracer, exponent: Tracer) -> list[Any]:
    is_zero = eq(x, _zero(x))
    # Of 0, any number that is negative and large does, since it is multiplied by a power of 0.
    root = select(is_zero, full_like(x, -1e10), log(select(is_zero, full_like(x, 1), x)))
    return [
        lambda t: mul(t, power(x, minus(exponent, 1))),
        lambda t: mul(t, _power_quotient_slope(root, exponent, y, power(x, exponent))),
    ]


def _boxcox1p_partials(y: Tracer, x: Tracer, exponent: Tracer) -> list[Any]:
    root = real_log1p(x)
    return [
        lambda t: mul(t, exp(mul(minus(exponent, 1), root))),
        lambda t: mul(t, _power_quotient_slope(root, exponent, y, exp(mul(exponent, root)))),
    ]


def _inverse_partials(x: Tracer, y: Tracer, exponent: Tracer) -> list[Any]:
    """The partial derivatives of `x = (1 + exponent * y) ** (1 / exponent)`."""
    product = mul(exponent, y)
    return [
        lambda t: mul(t, div(x, plus(1, product))),
        lambda t: mul(t, mul(mul(x, square(y)), logarithm_quotient_slope(product))),
    ]


boxcox = Special("boxcox", _boxcox_partials)
boxcox1p = Special("boxcox1p", _boxcox1p_partials)
inv_boxcox = Special("inv_boxcox", _inverse_partials)
inv_boxcox1p = Special("inv_boxcox1p", lambda x, y, exponent: _inverse_partials(plus(1, x), y, exponent))


# Powers and angles


def _powm1_xla(x: Any, y: Any) -> Any:
    from jax import numpy

    product = numpy.where(x > 0, y * numpy.log(numpy.where(x > 0, x, 1)), 1)
    return numpy.where(numpy.abs(product) < 0.5, numpy.expm1(product), numpy.power(x, y) - 1)


def _exp10_xla(x: Any) -> Any:
    from jax import numpy

    return numpy.power(numpy.asarray(10, x.dtype), x)


def _powm1_partials(z: Tracer, x: Tracer, y: Tracer) -> list[Any]:
    # At the corners as for powers: 0 along x where both are 0, and 0 along y where x is 0.
    zero, one = _zero(x), full_like(x, 1)
    exponent = select(_is_zero_by_zero(x, y), one, minus(y, 1))
    root = log(select(eq(x, zero), one, x))
    return [lambda t: mul(t, mul(y, power(x, exponent))), lambda t: mul(t, mul(root, power(x, y)))]


powm1 = Special("powm1", _powm1_partials, xla=_powm1_xla)
# For complex numbers, of which NumPy's loses digits near 0.
log1p = Special("log1p", lambda y, x: [lambda t: div(t, plus(1, x))])
exp10 = Special("exp10", lambda y, x: [lambda t: mul(t, times(math.log(10), y))], xla=_exp10_xla)

_DEGREE = math.pi / 180


def _of_degrees(name: str) -> Callable[..., Any]:
    """A function of `jax.numpy` of an angle in degrees, exact at multiples of the right angle."""

    def call(x: Any) -> Any:
        from jax import numpy

        turns = numpy.round(x / 90)
        angle = (x - 90 * turns) * _DEGREE
        sine, cosine = numpy.sin(angle), numpy.cos(angle)
        turns = numpy.mod(turns, 4)
        is_odd = (turns == 1) | (turns == 3)
        sine, cosine = numpy.where(is_odd, cosine, sine), numpy.where(is_odd, -sine, cosine)
        sign = numpy.where(turns >= 2, -1, 1)
        parts = {"sindg": sign * sine, "cosdg": sign * cosine, "tandg": sine / cosine, "cotdg": cosine / sine}
        return parts[name].astype(x.dtype)

    return call


sindg = Special("sindg", lambda y, x: [lambda t: mul(t, times(_DEGREE, cosdg(x)))], xla=_of_degrees("sindg"))
cosdg = Special("cosdg", lambda y, x: [lambda t: mul(t, times(-_DEGREE, sindg(x)))], xla=_of_degrees("cosdg"))
tandg = Special("tandg", lambda y, x: [lambda t: mul(t, times(_DEGREE, plus(1, square(y))))], xla=_of_degrees("tandg"))
cotdg = Special("cotdg", lambda y, x: [lambda t: mul(t, times(-_DEGREE, plus(1, square(y))))], xla=_of_degrees("cotdg"))
