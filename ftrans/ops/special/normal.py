"""The normal distribution's parameters from its quantiles, Owen's T function, and Tukey's lambda distribution."""

from __future__ import annotations

import math

from ...core.trace import Tracer
from ..elementwise import abs_, div, exp, ge, log, mul, neg, select
from ..elementwise.family import Partial
from ..literals import full_like
from .arithmetic import minus, over, plus, times
from .errors import erf
from .exponential import exprel_slope
from .family import Special


def _by_density(z: Tracer) -> Tracer:
    """One by the normal density."""
    return times(exp(times(z, z, 0.5)), math.sqrt(2 * math.pi))


def _mean_partials(mean: Tracer, p: Tracer, std: Tracer, x: Tracer) -> list[Partial]:
    # The mean is x - std ndtri(p).
    z = div(minus(x, mean), std)
    return [lambda t: neg(times(t, std, _by_density(z))), lambda t: neg(mul(t, z)), lambda t: t]


def _deviation_partials(std: Tracer, mean: Tracer, p: Tracer, x: Tracer) -> list[Partial]:
    # The standard deviation is (x - mean) / ndtri(p).
    z = div(minus(x, mean), std)
    return [lambda t: neg(div(t, z)), lambda t: neg(times(t, div(std, z), _by_density(z))), lambda t: div(t, z)]


nrdtrimn = Special("nrdtrimn", _mean_partials)
nrdtrisd = Special("nrdtrisd", _deviation_partials)


def _owens_t_partials(y: Tracer, h: Tracer, a: Tracer) -> list[Partial]:
    def along_h(t: Tracer) -> Tracer:
        bell = times(exp(times(h, h, -0.5)), -0.5 / math.sqrt(2 * math.pi))
        return times(t, bell, erf(times(a, h, math.sqrt(0.5))))

    def along_a(t: Tracer) -> Tracer:
        square = plus(mul(a, a), 1.0)
        return div(times(t, exp(times(h, h, square, -0.5)), 0.5 / math.pi), square)

    return [along_h, along_a]


owens_t = Special("owens_t", _owens_t_partials)


def _tukey_partials(p: Tracer, x: Tracer, shape: Tracer) -> list[Partial]:
    # x is (p**shape - (1 - p)**shape) / shape, and 1 - p is the function at -x, which loses no digits.
    zero, one = full_like(x, 0), full_like(x, 1)
    is_outside = ge(mul(abs_(x), shape), one)
    inner, inner_shape = select(is_outside, zero, x), select(is_outside, one, shape)
    low, high = log(tklmbda(inner, inner_shape)), log(tklmbda(neg(inner), inner_shape))
    power = minus(inner_shape, 1.0)
    density = select(is_outside, zero, over(1.0, plus(exp(mul(power, low)), exp(mul(power, high)))))

    def along_shape(t: Tracer) -> Tracer:
        def part(u: Tracer) -> Tracer:
            # (exp(c u) - 1) / c is u exprel(c u).
            return times(u, u, exprel_slope(mul(inner_shape, u)))

        return times(t, density, minus(part(high), part(low)))

    return [lambda t: mul(t, density), along_shape]


tklmbda = Special("tklmbda", _tukey_partials)
