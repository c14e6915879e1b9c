"""Exponential and trigonometric integrals, the dilogarithm, and quotients such as `sin(x) / x` near 0.

A quotient with a removable singularity is its power series near it, and the quotient itself elsewhere, where nothing
cancels.  Both have all derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.trace import Tracer
from ..elementwise import abs_, cos, cosh, div, eq, exp, log, log1p, lt, maximum, mul, neg, select, sin, sinh
from ..literals import full_like
from .arithmetic import minus, over, plus, truncated
from .family import Special, Specials, refused


def polynomial(x: Tracer, coefficients: Sequence[float]) -> Tracer:
    """The polynomial with these coefficients, of which the constant one is first."""
    total = full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = plus(mul(total, x), c)
    return total


def near_and_far(x: Tracer, radius: float) -> tuple[Tracer, Tracer, Tracer]:
    """Whether `x` is nearer to 0 than `radius`; `x` where it is, else 0; `x` where it is not, else 1."""
    size = abs_(x)
    is_near = lt(size, full_like(size, radius))
    return is_near, select(is_near, x, full_like(x, 0)), select(is_near, full_like(x, 1), x)


def sine_quotient(x: Tracer) -> Tracer:
    """`sin(x) / x`."""
    is_near, near, far = near_and_far(x, 1.0)
    series = polynomial(mul(near, near), [(-1) ** k / math.factorial(2 * k + 1) for k in range(13)])
    return select(is_near, series, div(sin(far), far))


def hyperbolic_sine_quotient(x: Tracer) -> Tracer:
    """`sinh(x) / x`."""
    is_near, near, far = near_and_far(x, 1.0)
    series = polynomial(mul(near, near), [1 / math.factorial(2 * k + 1) for k in range(13)])
    return select(is_near, series, div(sinh(far), far))


def logarithm_quotient(x: Tracer) -> Tracer:
    """`log(1 + x) / x`."""
    is_near, near, far = near_and_far(x, 0.25)
    series = polynomial(near, [(-1) ** k / (k + 1) for k in range(36)])
    return select(is_near, series, div(log1p(far), far))


def logarithm_quotient_slope(x: Tracer) -> Tracer:
    """The derivative of `log(1 + x) / x`."""
    is_near, near, far = near_and_far(x, 0.25)
    series = polynomial(near, [(-1) ** (k + 1) * (k + 1) / (k + 2) for k in range(36)])
    whole = plus(1, far)
    quotient = div(minus(over(1, whole), div(log1p(far), far)), far)
    return select(is_near, series, quotient)


def exprel_slope(x: Tracer) -> Tracer:
    """The derivative of exprel, `(exp(x) * (x - 1) + 1) / x**2`."""
    is_near, near, far = near_and_far(x, 1.0)
    series = polynomial(near, [(k + 1) / math.factorial(k + 2) for k in range(24)])
    inverse = over(1, far)
    quotient = plus(mul(inverse, inverse), mul(exp(far), mul(inverse, minus(1, inverse))))
    return select(is_near, series, quotient)


def _exprel_xla(x: Any) -> Any:
    from jax import numpy

    return numpy.where(x == 0, 1, numpy.expm1(x) / numpy.where(x == 0, 1, x))


exprel = Special("exprel", lambda y, x: [lambda t: mul(t, exprel_slope(x))], xla=_exprel_xla)
exp1 = Special("exp1", lambda y, x: [lambda t: neg(mul(t, div(exp(neg(x)), x)))], xla="exp1")
expi = Special("expi", lambda y, x: [lambda t: mul(t, div(exp(x), x))], xla="expi")


def _expn_partials(y: Tracer, n: Tracer, x: Tracer) -> list[Any]:
    n, zero = truncated(n), full_like(n, 0)
    is_first = eq(n, zero)
    safe = select(is_first, x, full_like(x, 1))
    first = mul(div(exp(neg(safe)), safe), plus(1, over(1, safe)))
    slope = select(is_first, first, expn(maximum(minus(n, 1), zero), x))
    return [refused("expn", "n"), lambda t: neg(mul(t, slope))]


expn = Special("expn", _expn_partials, orders=1)


def _both(first: Any, second: Any) -> Any:
    """The partial derivatives of two integrals over the same argument."""
    return lambda ys, x: [[lambda t: mul(t, first(x))], [lambda t: mul(t, second(x))]]


shichi = Specials("shichi", _both(hyperbolic_sine_quotient, lambda x: div(cosh(x), x)), results=2)
sici = Specials("sici", _both(sine_quotient, lambda x: div(cos(x), x)), results=2)


def _dilogarithm_slope(z: Tracer) -> Tracer:
    """`log(z) / (1 - z)`, which is -1 at 1."""
    is_near, near, _ = near_and_far(minus(z, 1), 0.25)
    far = select(is_near, full_like(z, 2), z)
    series = polynomial(near, [(-1) ** (k + 1) / (k + 1) for k in range(36)])
    return select(is_near, series, div(log(far), minus(1, far)))


spence = Special("spence", lambda y, z: [lambda t: mul(t, _dilogarithm_slope(z))], xla="spence")
