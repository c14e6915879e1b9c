"""The distributions of the statistics of Kolmogorov and Smirnov, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..elementwise import add, exp, ge, lt, mul, reciprocal, select
from ..elementwise.family import Partial
from ..literals import full_like
from .arithmetic import minus, over, times
from .family import Special

# From here on the alternating series of exp(-2 k**2 x**2) is used, and below it its Poisson transform.
_FAR = 0.9
# Below this, one less the function is smaller than the smallest number.
_NEAR = 0.04


def _kolmogorov_slope(x: Tracer) -> Tracer:
    """The derivative of kolmogorov(x), from six terms of one series or three of the other."""
    is_far = ge(x, full_like(x, _FAR))
    is_near = lt(x, full_like(x, _NEAR))
    far = select(is_far, x, full_like(x, 1))
    square = mul(far, far)
    terms = [times(exp(times(square, -2.0 * k * k)), (-1.0) ** k * k * k) for k in range(1, 7)]
    falling = times(far, _total(terms), 8.0)
    near = select(is_far, full_like(x, 1), select(is_near, full_like(x, 1), x))
    inverse = reciprocal(mul(near, near))
    terms = []
    for k in (1, 3, 5):
        share = minus(1.0, times(inverse, (k * math.pi) ** 2 / 4))
        terms.append(mul(share, exp(times(inverse, -((k * math.pi) ** 2) / 8))))
    rising = times(inverse, _total(terms), math.sqrt(2 * math.pi))
    return select(is_far, falling, select(is_near, full_like(x, 0), rising))


def _total(terms: list[Tracer]) -> Tracer:
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


kolmogorov = Special("kolmogorov", lambda y, x: [lambda t: mul(t, _kolmogorov_slope(x))])
kolmogi = Special("kolmogi", lambda y, p: [lambda t: over(t, _kolmogorov_slope(y))])


def _smirnov_derivative(order: int, n: int, d: float) -> float:
    """A derivative in `d` of the sum over j <= n (1 - d) of binom(n, j) d (d + j/n)**(j-1) (1 - d - j/n)**(n-j)."""
    from scipy.special import gammaln

    if not 0 <= d <= 1 or n < 1:
        return math.nan
    j = np.arange(1, math.floor(n * (1 - d)) + 1, dtype=np.float64)
    low, high = d + j / n, np.maximum(1 - d - j / n, 0.0)
    log_binomial = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)

    def product(k: int) -> Any:
        """The derivative of order `k` of the product of the two powers, by Leibniz' rule."""
        total = np.zeros_like(j)
        for i in range(k + 1):
            rises, falls = j - 1 - i, n - j - (k - i)
            factor = math.comb(k, i) * (-1.0) ** (k - i) * _falling(j - 1, i) * _falling(n - j, k - i)
            logs = log_binomial + rises * np.log(low) + np.where(falls == 0, 0.0, falls * np.log(high))
            total += np.where(factor == 0, 0.0, factor * np.exp(logs))
        return total

    terms = d * product(order) + (order * product(order - 1) if order else 0.0)
    first = (-1.0) ** order * float(_falling(np.float64(n), order)) * (1 - d) ** max(n - order, 0)
    return first + float(np.sum(terms))


def _falling(x: Any, k: int) -> Any:
    """x (x - 1) ... of `k` factors."""
    return math.prod((x - i for i in range(k)), start=np.ones_like(x))


@cache
def smirnov_in_d(order: int) -> Special:
    """The derivative of smirnov(n, d) of some order in `d`."""

    def compute(n: Any, d: Any) -> Any:
        with np.errstate(all="ignore"):
            pairs = zip(np.ravel(n), np.ravel(d), strict=True)
            found = [_smirnov_derivative(order, int(m), float(x)) for m, x in pairs]
        return np.array(found).reshape(np.shape(d)).astype(d.dtype)[()]

    return Special(f"smirnov_d{order}", _smirnov_partials(order), numpy=compute, orders=1)


def _smirnov_partials(order: int) -> Callable[..., list[Partial]]:
    return lambda y, n, d: [None, lambda t: mul(t, smirnov_in_d(order + 1)(n, d))]


smirnov = Special("smirnov", _smirnov_partials(0), orders=1)
smirnovi = Special("smirnovi", lambda y, n, p: [None, lambda t: over(t, smirnov_in_d(1)(n, y))], orders=1)
