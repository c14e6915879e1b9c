"""The incomplete gamma and beta functions, their densities, their inverses, and their derivatives in every argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..elementwise import div, eq, gt, log, log1p, lt, mul, neg, select
from ..elementwise.family import Partial
from ..literals import full_like
from . import incomplete_numerics as numerics
from .arithmetic import minus, over, plus, times
from .family import Special
from .gamma import polygamma, psi, psi_step


def _on_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """The NumPy evaluator of a function of the module of array functions, numpy or jax.numpy, and arrays of float64."""

    def on_numpy(*xs: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(function(np, *(np.asarray(x, np.float64) for x in xs)))[()]

    return on_numpy


def _on_xla(function: Callable[..., Any]) -> Callable[..., Any]:
    """The XLA evaluator of such a function."""

    def on_xla(*xs: Any) -> Any:
        import jax.numpy as jnp

        return function(jnp, *(x.astype(np.float64) for x in xs)).astype(xs[-1].dtype)

    return on_xla


def _times_or_zero(density: Tracer, factor: Tracer) -> Tracer:
    """The product; 0 where the density is, because the factor, a polynomial of logarithms, may be infinite there."""
    is_zero = eq(density, full_like(density, 0))
    return select(is_zero, full_like(density, 0), mul(density, select(is_zero, full_like(factor, 0), factor)))


def _edge_slope(shape: Tracer, at_one: Tracer, at_two: Tracer) -> Tracer:
    """The derivative at 0 of c x**(shape - 1) (1 + s x + ...), from its value where the shape is 1 or 2."""
    one, two = full_like(shape, 1), full_like(shape, 2)
    infinite = select(lt(shape, one), full_like(shape, -math.inf), full_like(shape, math.inf))
    slope = select(gt(shape, two), full_like(shape, 0), select(eq(shape, two), at_two, infinite))
    return select(eq(shape, one), at_one, slope)


# Densities


def _is_moderate(xp: Any, a: Any, x: Any) -> Any:
    """Whether the gamma density may be other than 0, infinite or NaN: it is 0 far out."""
    return (a > 0) & (x > 0) & (x < 1e4 * (1 + a)) & xp.isfinite(a)


def _gamma_density(xp: Any, a: Any, x: Any) -> Any:
    is_inside = _is_moderate(xp, a, x)
    inside = numerics.gamma_density(xp, xp.where(is_inside, a, 1.0), xp.where(is_inside, x, 1.0))
    at_zero = xp.where(a == 1, 1.0, xp.where(a < 1, xp.inf, 0.0))
    outside = xp.where((a > 0) & (x >= 0), xp.where(x == 0, at_zero, 0.0), xp.nan)
    return xp.where(is_inside, inside, outside)


def _gamma_density_partials(p: Tracer, a: Tracer, x: Tracer) -> list[Partial]:
    def along_x(t: Tracer) -> Tracer:
        zero, one = full_like(x, 0), full_like(x, 1)
        is_edge = eq(x, zero)
        inner = _times_or_zero(p, minus(over(minus(a, 1.0), select(is_edge, one, x)), 1.0))
        return mul(t, select(is_edge, _edge_slope(a, neg(one), one), inner))

    return [lambda t: mul(t, _times_or_zero(p, minus(log(x), psi(a)))), along_x]


gamma_density = Special(
    "gamma_density", _gamma_density_partials, numpy=_on_numpy(_gamma_density), xla=_on_xla(_gamma_density)
)


def _beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    is_valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    is_inside = is_valid & (x > 0) & (x < 1) & xp.isfinite(a) & xp.isfinite(b)
    inside = numerics.beta_density(xp, *(xp.where(is_inside, v, 0.5) for v in (a, b, x)))
    shape, other = xp.where(x == 0, a, b), xp.where(x == 0, b, a)
    at_edge = xp.where(shape == 1, other, xp.where(shape < 1, xp.inf, 0.0))
    return xp.where(is_inside, inside, xp.where(is_valid, at_edge, xp.nan))


def _beta_density_partials(p: Tracer, a: Tracer, b: Tracer, x: Tracer) -> list[Partial]:
    def along_x(t: Tracer) -> Tracer:
        zero, half, one = full_like(x, 0), full_like(x, 0.5), full_like(x, 1)
        is_low, is_high = eq(x, zero), eq(x, one)
        inner = select(is_low, half, select(is_high, half, x))
        slope = _times_or_zero(p, minus(over(minus(a, 1.0), inner), over(minus(b, 1.0), minus(1.0, inner))))
        low = _edge_slope(a, neg(mul(b, minus(b, 1.0))), mul(b, plus(b, 1.0)))
        high = neg(_edge_slope(b, neg(mul(a, minus(a, 1.0))), mul(a, plus(a, 1.0))))
        return mul(t, select(is_low, low, select(is_high, high, slope)))

    return [
        lambda t: mul(t, _times_or_zero(p, plus(log(x), psi_step(0)(a, b)))),
        lambda t: mul(t, _times_or_zero(p, plus(log1p(neg(x)), psi_step(0)(b, a)))),
        along_x,
    ]


beta_density = Special(
    "beta_density", _beta_density_partials, numpy=_on_numpy(_beta_density), xla=_on_xla(_beta_density)
)


# Derivatives in the parameters, of any order: a primitive for each, which the host computes


@cache
def gammainc_in_a(n: int) -> Special:
    """The `n`-th derivative of gammainc(a, x) in `a`."""

    def compute(xp: Any, a: Any, x: Any) -> Any:
        is_inside = _is_moderate(xp, a, x)
        inside = numerics.gammainc_derivative(xp, n, *(xp.where(is_inside, v, 1.0) for v in (a, x)))
        return xp.where(is_inside, inside, xp.where((a > 0) & (x >= 0), 0.0, xp.nan))

    def along_x(t: Tracer, a: Tracer, x: Tracer) -> Tracer:
        def kappa(i: int, j: int) -> Tracer:
            return minus(log(x), psi(a)) if i == 1 else neg(polygamma(full_like(a, i - 1), a))

        return mul(t, _times_or_zero(gamma_density(a, x), _bell(kappa, n, 0)))

    return Special(
        f"gammainc_a{n}",
        lambda y, a, x: [lambda t: mul(t, gammainc_in_a(n + 1)(a, x)), lambda t: along_x(t, a, x)],
        numpy=_on_numpy(compute),
    )


@cache
def betainc_in_ab(m: int, n: int) -> Special:
    """The derivative of betainc(a, b, x), `m` times in `a` and `n` times in `b`."""

    def compute(xp: Any, a: Any, b: Any, x: Any) -> Any:
        is_valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
        is_inside = is_valid & (x > 0) & (x < 1) & xp.isfinite(a) & xp.isfinite(b)
        inside = numerics.betainc_derivative(xp, m, n, *(xp.where(is_inside, v, 0.5) for v in (a, b, x)))
        return xp.where(is_inside, inside, xp.where(is_valid, 0.0, xp.nan))

    def along_x(t: Tracer, a: Tracer, b: Tracer, x: Tracer) -> Tracer:
        def kappa(i: int, j: int) -> Tracer:
            if i and j:
                return polygamma(full_like(a, i + j - 1), plus(a, b))
            slope = psi_step(i - 1)(a, b) if i else psi_step(j - 1)(b, a)
            return slope if i + j > 1 else plus(log(x) if i else log1p(neg(x)), slope)

        return mul(t, _times_or_zero(beta_density(a, b, x), _bell(kappa, m, n)))

    return Special(
        f"betainc_a{m}b{n}",
        lambda y, a, b, x: [
            lambda t: mul(t, betainc_in_ab(m + 1, n)(a, b, x)),
            lambda t: mul(t, betainc_in_ab(m, n + 1)(a, b, x)),
            lambda t: along_x(t, a, b, x),
        ],
        numpy=_on_numpy(compute),
    )


def _bell(kappa: Callable[[int, int], Tracer], m: int, n: int) -> Tracer:
    return numerics.bell(kappa, m, n, plus, times)


# The functions

gammainc = Special(
    "gammainc",
    lambda y, a, x: [lambda t: mul(t, gammainc_in_a(1)(a, x)), lambda t: mul(t, gamma_density(a, x))],
)
gammaincc = Special(
    "gammaincc",
    lambda y, a, x: [lambda t: neg(mul(t, gammainc_in_a(1)(a, x))), lambda t: neg(mul(t, gamma_density(a, x)))],
)
betainc = Special(
    "betainc",
    lambda y, a, b, x: [
        lambda t: mul(t, betainc_in_ab(1, 0)(a, b, x)),
        lambda t: mul(t, betainc_in_ab(0, 1)(a, b, x)),
        lambda t: mul(t, beta_density(a, b, x)),
    ],
)
betaincc = Special(
    "betaincc",
    lambda y, a, b, x: [
        lambda t: neg(mul(t, betainc_in_ab(1, 0)(a, b, x))),
        lambda t: neg(mul(t, betainc_in_ab(0, 1)(a, b, x))),
        lambda t: neg(mul(t, beta_density(a, b, x))),
    ],
)


# Their inverses, by implicit differentiation of F(parameters, y) = p


def implicit(t: Tracer, slope: Tracer, density: Tracer) -> Tracer:
    """The tangent of y along a parameter: F stays p, so its slope in the parameter is made up for by y.

    Where the slope is 0, as at the ends of the range of y, the parameter does not move y.
    """
    zero = full_like(slope, 0)
    is_zero = eq(slope, zero)
    return mul(t, select(is_zero, zero, neg(div(slope, select(is_zero, full_like(density, 1), density)))))


def _gamma_inverse(sign: float) -> Callable[..., Sequence[Partial]]:
    def partials(y: Tracer, a: Tracer, p: Tracer) -> list[Partial]:
        density = gamma_density(a, y)
        return [lambda t: implicit(t, gammainc_in_a(1)(a, y), density), lambda t: over(times(t, sign), density)]

    return partials


gammaincinv = Special("gammaincinv", _gamma_inverse(1.0))
gammainccinv = Special("gammainccinv", _gamma_inverse(-1.0))


def _beta_inverse(sign: float) -> Callable[..., Sequence[Partial]]:
    def partials(y: Tracer, a: Tracer, b: Tracer, p: Tracer) -> list[Partial]:
        density = beta_density(a, b, y)
        return [
            lambda t: implicit(t, betainc_in_ab(1, 0)(a, b, y), density),
            lambda t: implicit(t, betainc_in_ab(0, 1)(a, b, y), density),
            lambda t: over(times(t, sign), density),
        ]

    return partials


betaincinv = Special("betaincinv", _beta_inverse(1.0))
betainccinv = Special("betainccinv", _beta_inverse(-1.0))
