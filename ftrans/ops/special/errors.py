"""The error function and its kin, the normal distribution, Fresnel integrals."""

from __future__ import annotations

import functools
import math
from typing import Any

from ...base.surroundings import is_divided
from ...core.trace import Tracer
from ...core.types import is_complex
from ..elementwise import abs_, cos, div, exp, gt, lt, mul, neg, select, sin, square
from ..literals import full_like
from .arithmetic import minus, over, times
from .faddeeva import erfcx
from .family import Special, Specials

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
# Where the Gaussian is 0 in every precision, with all of its derivatives.
_VANISHED = 40.0


def _bell(x: Tracer) -> Tracer:
    """`exp(-x**2)`; far away its square would be infinite, and second derivatives not a number."""
    if not is_complex(x.dtype):
        limit = full_like(x, _VANISHED)
        x = select(gt(abs_(x), limit), limit, x)
    return exp(neg(square(x)))


# The error function


def _erf_inv_xla(y: Any) -> Any:
    from jax import lax, numpy

    x = lax.erf_inv(y)
    if x.dtype != numpy.float64:
        return x
    # XLA's has 10 digits near the ends; one step of Newton's method gives the others.
    size = numpy.abs(y)
    excess = numpy.where(size < 0.5, lax.erf(x) - y, numpy.sign(y) * ((1 - size) - lax.erfc(numpy.abs(x))))
    return numpy.where(numpy.isfinite(x), x - excess * numpy.exp(x * x) / _TWO_BY_ROOT_PI, x)


# erf(x) / x, as a quotient of polynomials in x**2, for abs(x) <= 1 (Moshier, Methods and Programs for Mathematical
# Functions, 1989).
_NUMERATOR = (
    9.60497373987051638749,
    90.0260197203842689217,
    2232.00534594684319226,
    7003.32514112805075473,
    55592.3013010394962768,
)
_DENOMINATOR = (
    1.0,
    33.5617141647503099647,
    521.357949780152679795,
    4594.32382970980127987,
    22629.0000613890934246,
    49267.3942608635921086,
)


def _erf_xla(x: Any) -> Any:
    from jax import lax, numpy

    if not is_divided():
        return lax.erf(x)
    # XLA does not know how to divide its own over devices, and computes it whole on each; erfc it knows.
    wide = x.astype(numpy.float32) if x.dtype.itemsize < 4 else x
    size = numpy.minimum(numpy.abs(wide), 1)
    square = size * size
    top, bottom = (
        functools.reduce(lambda sum, c: sum * square + c, cs[1:], cs[0] * numpy.ones_like(square))
        for cs in (_NUMERATOR, _DENOMINATOR)
    )
    far = numpy.sign(wide) * (1 - lax.erfc(numpy.abs(wide)))
    return numpy.where(numpy.abs(wide) <= 1, wide * top / bottom, far).astype(x.dtype)


erf = Special("erf", lambda y, x: [lambda t: mul(t, times(_TWO_BY_ROOT_PI, _bell(x)))], xla=_erf_xla)
erfc = Special("erfc", lambda y, x: [lambda t: mul(t, times(-_TWO_BY_ROOT_PI, _bell(x)))], xla="erfc")
erfi = Special("erfi", lambda y, x: [lambda t: mul(t, times(_TWO_BY_ROOT_PI, exp(square(x))))])
# In terms of the results, which lose no digits near the ends.
erf_inv = Special(
    "erfinv", lambda y, x: [lambda t: mul(t, times(1 / _TWO_BY_ROOT_PI, exp(square(y))))], xla=_erf_inv_xla
)
erfc_inv = Special("erfcinv", lambda y, x: [lambda t: mul(t, times(-1 / _TWO_BY_ROOT_PI, exp(square(y))))])


# The normal distribution


def normal_density(x: Tracer) -> Tracer:
    """`exp(-x**2 / 2) / sqrt(2 pi)`."""
    return times(1 / _ROOT_TWO_PI, _bell(times(_ROOT_HALF, x)))


def _log_ndtr_slope(y: Tracer, x: Tracer) -> Tracer:
    """The derivative of log_ndtr, whose value is `y`: density by probability, without 0 / 0 in the tail."""
    if is_complex(x.dtype):
        return times(1 / _ROOT_TWO_PI, exp(minus(times(-0.5, square(x)), y)))
    edge = full_like(x, -1)
    is_tail = lt(x, edge)
    left, right = select(is_tail, x, edge), select(is_tail, edge, x)
    tail = over(2 / _ROOT_TWO_PI, erfcx(times(-_ROOT_HALF, left)))
    return select(is_tail, tail, div(normal_density(right), ndtr(right)))


def _log_ndtr_xla(x: Any) -> Any:
    from jax import numpy
    from jax.scipy import special

    start = -20.0 if x.dtype == numpy.float64 else -10.0
    left = numpy.minimum(x, start)
    inverse = 1 / (left * left)
    series: Any = 1.0
    for k in range(15, 0, -2):
        series = 1 - k * inverse * series
    tail = -0.5 * left * left - numpy.log(-left * _ROOT_TWO_PI) + numpy.log(series)
    middle = numpy.log(special.ndtr(numpy.clip(x, start, 0)))
    return numpy.where(x < start, tail, numpy.where(x < 0, middle, numpy.log1p(-special.ndtr(-x))))


def _ndtr_xla(x: Any) -> Any:
    from jax import lax

    # JAX's own computes erf and erfc everywhere, and then chooses; erfc alone is as accurate as SciPy.
    return 0.5 * lax.erfc(-_ROOT_HALF * x)


ndtr = Special("ndtr", lambda y, x: [lambda t: mul(t, normal_density(x))], xla=_ndtr_xla)
log_ndtr = Special("log_ndtr", lambda y, x: [lambda t: mul(t, _log_ndtr_slope(y, x))], xla=_log_ndtr_xla)
ndtri = Special("ndtri", lambda y, x: [lambda t: mul(t, times(_ROOT_TWO_PI, exp(times(0.5, square(y)))))], xla="ndtri")
# The inverse of log_ndtr.
ndtri_exp = Special("ndtri_exp", lambda y, x: [lambda t: div(t, _log_ndtr_slope(x, y))])


# Fresnel integrals


def _fresnel_partials(_: Any, x: Tracer) -> list[list[Any]]:
    phase = times(math.pi / 2, square(x))
    return [[lambda t: mul(t, sin(phase))], [lambda t: mul(t, cos(phase))]]


fresnel = Specials("fresnel", _fresnel_partials, results=2)
