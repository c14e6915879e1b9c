"""Functions of Legendre and spherical harmonics, in their argument."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..elementwise import abs_, eq, lt, maximum, mul, neg, power, select, sin, sqrt
from ..literals import full_like
from .arithmetic import minus, plus, times
from .bessel import in_order, like
from .family import Special

# P(m, v, x) = (1 - x**2)**(abs(m) / 2) times a factor without singularity at x = 1, whose derivatives are of its kind.


def _factor(m: Any, v: Any, x: Any, *, order: int) -> Any:
    from scipy.special import eval_gegenbauer, gamma, hyp2f1, poch

    degree, size = np.where(v < -0.5, -v - 1, v), np.abs(m)
    n = size + order
    is_whole = degree == np.rint(degree)
    # Each formula is computed for all orders and degrees, and meant for some.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        whole = gamma(n + 0.5) * 2**n / math.sqrt(math.pi) * eval_gegenbauer(np.maximum(degree - n, 0), n + 0.5, x)
        scale = poch(degree - n + 1, 2 * n) / (2**n * gamma(n + 1))
        other = scale * hyp2f1(n - degree, degree + n + 1, n + 1, (1 - x) / 2)
        front = np.where(m < 0, 1 / poch(degree - size + 1, 2 * size), 1 - 2 * (size % 2))
        return front * np.where(is_whole, np.where(degree >= n, whole, 0.0), other)


factor = Special(
    "legendre_factor",
    lambda y, m, v, x, *, order: [None, None, lambda t: mul(t, factor(m, v, x, order=order + 1))],
    numpy=_factor,
    orders=2,
)


def _lpmv_partials(y: Any, m: Any, v: Any, x: Any) -> list[Any]:
    def along_x(t: Any) -> Any:
        half, zero = times(0.5, abs_(like(m, x))), full_like(x, 0)
        inner = minus(1, mul(x, x))
        # Where m = 0 the power is 1, and has no part in the derivative, at the ends of the interval too.
        exponent = select(eq(half, zero), zero, plus(half, -1))
        outer = times(-2, mul(mul(half, x), mul(power(inner, exponent), factor(m, v, x, order=0))))
        return mul(t, plus(outer, mul(power(inner, half), factor(m, v, x, order=1))))

    return [in_order("lpmv", "m"), in_order("lpmv"), along_x]


lpmv = Special("lpmv", _lpmv_partials, orders=2)


# Spherical ones, whose argument is an angle


def _sph_legendre(n: Any, m: Any, theta: Any) -> Any:
    import scipy.special

    if hasattr(scipy.special, "sph_legendre_p"):
        # SciPy has a leading axis for derivatives.
        return np.reshape(scipy.special.sph_legendre_p(n, m, theta), np.shape(theta))[()]
    # For orders beyond the degree both the function and the product of factorials are 0.
    size = np.minimum(np.abs(m), n)
    norm = (2 * n + 1) / (4 * math.pi) / scipy.special.poch(n - size + 1, 2 * size)
    value = np.where(np.abs(m) > n, 0.0, np.sqrt(norm) * scipy.special.lpmv(size, n, np.cos(theta)))
    return np.where((m < 0) & (size % 2 == 1), -value, value)[()]


def _sph_legendre_partials(y: Any, n: Any, m: Any, theta: Any) -> list[Any]:
    """By the functions of orders m - 1 and m + 1, which is finite at the poles too."""

    def step(n: Any, m: Any) -> Any:
        product = mul(like(minus(n, m), theta), like(plus(plus(n, m), 1), theta))
        return sqrt(maximum(product, full_like(theta, 0)))

    def along_theta(t: Any) -> Any:
        above = mul(step(n, m), sph_legendre_p(n, plus(m, 1), theta))
        below = mul(step(n, neg(m)), sph_legendre_p(n, plus(m, -1), theta))
        # Beyond the poles the function goes on as a mirror image.
        half = full_like(theta, 0.5)
        side = select(lt(sin(theta), full_like(theta, 0)), neg(half), half)
        return mul(t, mul(side, minus(above, below)))

    return [in_order("sph_legendre_p", "n"), in_order("sph_legendre_p", "m"), along_theta]


sph_legendre_p = Special("sph_legendre_p", _sph_legendre_partials, numpy=_sph_legendre, orders=2)
