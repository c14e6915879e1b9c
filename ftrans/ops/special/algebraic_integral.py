"""Integrals over t > 0 of products of powers of t + x, computed to rounding.

SciPy computes those that are Carlson's R_C, R_D, R_F and R_J.  Of the others, which are derivatives of these, the
substitution t = exp(s) makes integrands that are analytic in a strip around the real line and decay exponentially, for
which the trapezoidal rule converges exponentially (L. N. Trefethen and J. A. C. Weideman, "The exponentially convergent
trapezoidal rule", SIAM Review 56, 2014).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

# What is left out and the error of the rule are below exp(-_DIGITS) of the integral.
_DIGITS = 40.0
# Half the width of the strip is pi for positive points.  Where points on both sides make it narrower, it is given up.
_NARROWEST = 0.1


def algebraic_integral(points: Sequence[Any], power: int, exponents: Sequence[int]) -> Any:
    """The integral over t > 0 of `t**power * prod((t + x)**(-e / 2))`.

    Args:
        points: arrays x of one shape and dtype, real or complex.
        power: the power of t, at least 0.
        exponents: the exponents e, one for each point.

    Returns:
        The integral, inf where it diverges at 0, and NaN where a point is on the negative real axis.
    """
    used = sorted(((e, i) for i, e in enumerate(exponents) if e))
    points = [points[i] for _, i in used]
    exponents = [e for e, _ in used]
    known = _CARLSON.get(tuple(exponents)) if power == 0 else None
    if known is not None:
        import scipy.special

        name, factor = known
        return factor * getattr(scipy.special, name)(*points)
    dtype, shape = points[0].dtype, np.shape(points[0])
    wide = np.complex128 if dtype.kind == "c" else np.float64
    stacked = np.stack([np.ravel(x).astype(wide) for x in points])
    return _trapezoidal(stacked, power, np.array(exponents)).reshape(shape).astype(dtype)[()]


# By exponents in increasing order, the name in SciPy and the integral in terms of it.
_CARLSON = {(1, 2): ("elliprc", 2.0), (1, 1, 1): ("elliprf", 2.0), (1, 1, 3): ("elliprd", 2 / 3)}


def _trapezoidal(x: Any, power: int, exponents: Any) -> Any:
    """The integrals for points that are the rows of `x`."""
    # The integral is homogeneous, so it is computed for points of size at most 1.
    scale = np.max(np.abs(x), axis=0)
    x = x / np.where((scale > 0) & np.isfinite(scale), scale, 1)
    size = np.abs(x)
    is_zero = size == 0
    half = exponents[:, None] / 2
    rate_at_zero = power + 1 - np.sum(np.where(is_zero, half, 0), axis=0)
    rate_at_infinity = np.sum(half) - power - 1
    # The ray of integration is turned to the middle between the points.
    angle = np.angle(x)
    above, below = np.max(angle, axis=0, initial=0), np.min(angle, axis=0, initial=0)
    turn = (above + below) / 2
    width = math.pi - (above - below) / 2
    is_good = np.all(np.isfinite(x), axis=0) & (above < math.pi) & (width > _NARROWEST) & ~np.all(is_zero, axis=0)
    is_proper = is_good & (rate_at_zero > 0)
    if not np.any(is_proper):
        return np.where(is_good, np.inf, np.nan).astype(x.dtype)
    ray = np.exp(1j * turn) if x.dtype.kind == "c" else np.ones_like(turn)
    logs = np.log(np.where(is_zero | ~is_proper, 1, size))
    low = np.min(np.where(is_zero, np.inf, logs), axis=0) - _DIGITS / np.where(is_proper, rate_at_zero, 1)
    high = np.max(np.where(is_zero, -np.inf, logs), axis=0) + _DIGITS / rate_at_infinity
    low, high, width = (np.where(is_proper, v, w) for v, w in ((low, 0.0), (high, 1.0), (width, math.pi)))
    # The stronger the singularities at the edges of the strip, the further from them the error is estimated.
    fineness = _DIGITS + 2 * np.sum(half)
    count = math.ceil(np.max((high - low) * fineness / (2 * math.pi * width)))
    step = (high - low) / count
    total = np.zeros(x.shape[1:], x.dtype)
    for i in range(count + 1):
        t = np.exp(low + i * step) * ray
        # Powers of one number each, of the branch that is real on the ray.
        total += t ** (power + 1) * np.prod((t + np.where(is_proper, x, 1)) ** -half, axis=0)
    with np.errstate(over="ignore"):
        factor = np.where(is_proper, scale, 1.0) ** -rate_at_infinity
    return np.where(is_proper, total * (step * factor), np.where(is_good, np.inf, np.nan)).astype(x.dtype)
