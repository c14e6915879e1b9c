"""Functions of Struve, and integrals of Bessel and Struve functions, in their argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..elementwise import abs_, bitwise_and, lt, mul, neg, select, square
from ..literals import full_like
from .arithmetic import minus, over, plus, times
from .bessel import i0, in_order, j0, k0, y0
from .family import Special, Specials

# Functions of Struve (DLMF 11.4.24 and 11.4.26)


def _leading(v: Any, k: Any, x: Any) -> Any:
    """The k-th derivative of `(x/2)**v / (sqrt(pi) gamma(v + 3/2))`."""
    import scipy.special

    factor = scipy.special.poch(v - k + 1, k) * scipy.special.rgamma(v + 1.5) / (2.0**k * math.sqrt(math.pi))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(factor == 0, 0.0, factor * (x / 2) ** (v - k))[()]


leading = Special(
    "struve_term",
    lambda y, v, k, x: [
        in_order("struve"),
        None,
        lambda t: mul(t, leading(v, plus(k, 1), x)),
    ],
    numpy=_leading,
    orders=2,
)


def _struve_partials(f: Any, v: Any, x: Any) -> list[Any]:
    sign = -1 if f is struve else 1

    def term(v: Any, x: Any) -> Any:
        return leading(v, full_like(v, 0), x)

    def near(v: Any, x: Any) -> Any:
        """By the power series (DLMF 11.2.1): the other form cancels at 0 where an order is below -1."""
        quarter, power, coefficient = times(0.25, square(x)), full_like(x, 1), full_like(x, 1)
        total = plus(v, 1)
        for k in range(14):
            coefficient = over(times(sign / (k + 1.5), coefficient), plus(v, k + 1.5))
            power = mul(power, quarter)
            total = plus(total, mul(mul(plus(v, 3 + 2 * k), coefficient), power))
        return mul(term(v, x), total)

    def further(v: Any, x: Any) -> Any:
        both = plus(f(plus(v, -1), x), times(sign, f(plus(v, 1), x)))
        return times(0.5, plus(both, term(v, x)))

    def along_x(t: Any) -> Any:
        is_near = bitwise_and(lt(abs_(x), full_like(x, 2)), lt(full_like(v, -1), v))
        zero, two = full_like(x, 0), full_like(x, 2)
        series = near(select(is_near, v, zero), select(is_near, x, zero))
        return mul(t, select(is_near, series, further(v, select(is_near, two, x))))

    return [in_order(f.name), along_x]


struve = Special("struve", lambda y, v, x: _struve_partials(struve, v, x), orders=1)
modstruve = Special("modstruve", lambda y, v, x: _struve_partials(modstruve, v, x), orders=1)


# Integrals


def _near_zero(x: Any, series: Sequence[float], further: Callable[[Any], Any]) -> Any:
    """A power series where `abs(x) < 2`, and `further(x)` elsewhere, so that `further` never meets 0."""
    is_near = lt(abs_(x), full_like(x, 2))
    near, far = select(is_near, x, full_like(x, 0)), select(is_near, full_like(x, 2), x)
    total = full_like(x, series[-1])
    for coefficient in reversed(series[:-1]):
        total = plus(mul(total, near), coefficient)
    return select(is_near, total, further(far))


def _odd(coefficients: Sequence[float]) -> list[float]:
    return [c for pair in ((0.0, c) for c in coefficients) for c in pair]


_SERIES = [1 / (4.0**k * math.factorial(k) ** 2) for k in range(1, 15)]
_J0_SERIES = _odd([c * (-1) ** k for k, c in enumerate(_SERIES)])
_I0_SERIES = _odd(_SERIES)
_STRUVE_SERIES = [c for k in range(15) for c in ((-1) ** k * 2 / math.pi / math.prod(range(1, 2 * k + 2, 2)) ** 2, 0.0)]


def _integral(name: str, derivative: Callable[[Any], Any]) -> Special:
    """An integral, whose derivative is a function of the argument."""
    return Special(name, lambda y, x: [lambda t: mul(t, derivative(x))])


def _integrals(name: str, *derivatives: Callable[[Any], Any]) -> Specials:
    """Several integrals of one argument."""
    return Specials(name, lambda ys, x: [[lambda t, d=d: mul(t, d(x))] for d in derivatives], results=len(derivatives))


def _struve0(x: Any) -> Any:
    return struve(full_like(x, 0), x)


itj0y0 = _integrals("itj0y0", j0, y0)
iti0k0 = _integrals("iti0k0", i0, k0)
it2j0y0 = _integrals(
    "it2j0y0",
    lambda x: _near_zero(x, _J0_SERIES, lambda x: over(minus(1, j0(x)), x)),
    lambda x: neg(over(y0(x), x)),
)
it2i0k0 = _integrals(
    "it2i0k0",
    lambda x: _near_zero(x, _I0_SERIES, lambda x: over(minus(i0(x), 1), x)),
    lambda x: neg(over(k0(x), x)),
)
itstruve0 = _integral("itstruve0", _struve0)
it2struve0 = _integral("it2struve0", lambda x: neg(_near_zero(x, _STRUVE_SERIES, lambda x: over(_struve0(x), x))))
itmodstruve0 = _integral("itmodstruve0", lambda x: modstruve(full_like(x, 0), x))
