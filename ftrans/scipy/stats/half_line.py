"""Continuous distributions on half-lines, in standard form: location 0, scale 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..special import (
    betainc,
    betainccinv,
    betaincinv,
    betaln,
    erf,
    erfc,
    erfinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
    xlogy,
)
from .continuous import norm
from .distribution import Continuous

__all__ = [
    "chi2", "expon", "f", "gamma", "halfnorm", "invgamma", "lognorm", "maxwell", "pareto", "rayleigh",
    "weibull_max", "weibull_min",
]  # fmt: skip


def power_times(x: Any, exponent: Any, log_rest: Any) -> Any:
    """`x**exponent * exp(log_rest)`, with derivatives at 0, where the logarithm of `x` has none."""
    is_end = x == 0
    inner = np.exp(xlogy(exponent, np.where(is_end, 1.0, x)) + log_rest)
    return np.where(is_end, np.where(is_end, x, 1.0) ** exponent * np.exp(log_rest), inner)


# On the positive half-line


class Expon(Continuous):
    """The exponential distribution."""

    low = 0.0

    def _log_density(self, y: Any) -> Any:
        return -y

    def _below(self, y: Any) -> Any:
        return -np.expm1(-y)

    def _above(self, y: Any) -> Any:
        return np.exp(-y)

    def _log_above(self, y: Any) -> Any:
        return -y

    def _quantile(self, q: Any) -> Any:
        return -np.log1p(-q)

    def _quantile_above(self, q: Any) -> Any:
        return -np.log(q)


class Gamma(Continuous):
    """The gamma distribution."""

    shapes = ("a",)
    typical = (1.0,)
    low = 0.0

    def _log_density(self, y: Any, a: Any) -> Any:
        return xlogy(a - 1, y) - y - gammaln(a)

    def _density(self, y: Any, a: Any) -> Any:
        return power_times(y, a - 1, -y - gammaln(a))

    def _below(self, y: Any, a: Any) -> Any:
        return gammainc(a, y)

    def _above(self, y: Any, a: Any) -> Any:
        return gammaincc(a, y)

    def _quantile(self, q: Any, a: Any) -> Any:
        return gammaincinv(a, q)

    def _quantile_above(self, q: Any, a: Any) -> Any:
        return gammainccinv(a, q)


class ChiSquared(Continuous):
    """The chi-squared distribution."""

    shapes = ("df",)
    typical = (1.0,)
    low = 0.0

    def _log_density(self, y: Any, df: Any) -> Any:
        return xlogy(0.5 * df - 1, y) + self._log_rest(y, df)

    def _density(self, y: Any, df: Any) -> Any:
        return power_times(y, 0.5 * df - 1, self._log_rest(y, df))

    def _log_rest(self, y: Any, df: Any) -> Any:
        return -0.5 * y - gammaln(0.5 * df) - 0.5 * math.log(2) * df

    def _below(self, y: Any, df: Any) -> Any:
        return gammainc(0.5 * df, 0.5 * y)

    def _above(self, y: Any, df: Any) -> Any:
        return gammaincc(0.5 * df, 0.5 * y)

    def _quantile(self, q: Any, df: Any) -> Any:
        return 2 * gammaincinv(0.5 * df, q)

    def _quantile_above(self, q: Any, df: Any) -> Any:
        return 2 * gammainccinv(0.5 * df, q)


class InverseGamma(Continuous):
    """The distribution of the reciprocal of a number with a gamma distribution."""

    shapes = ("a",)
    typical = (1.0,)
    low = 0.0
    is_open = True
    is_steep = True

    def _log_density(self, y: Any, a: Any) -> Any:
        return -(a + 1) * np.log(y) - 1 / y - gammaln(a)

    def _below(self, y: Any, a: Any) -> Any:
        return gammaincc(a, 1 / y)

    def _above(self, y: Any, a: Any) -> Any:
        return gammainc(a, 1 / y)

    def _quantile(self, q: Any, a: Any) -> Any:
        return 1 / gammainccinv(a, q)

    def _quantile_above(self, q: Any, a: Any) -> Any:
        return 1 / gammaincinv(a, q)


class F(Continuous):
    """The F distribution, of the quotient of two mean squares."""

    shapes = ("dfn", "dfd")
    typical = (1.0, 1.0)
    low = 0.0

    def _log_density(self, y: Any, dfn: Any, dfd: Any) -> Any:
        return xlogy(0.5 * dfn - 1, y) + self._log_rest(y, dfn, dfd)

    def _density(self, y: Any, dfn: Any, dfd: Any) -> Any:
        return power_times(y, 0.5 * dfn - 1, self._log_rest(y, dfn, dfd))

    def _log_rest(self, y: Any, dfn: Any, dfd: Any) -> Any:
        ratio = dfn / dfd
        spread = 0.5 * (dfn + dfd) * np.log1p(ratio * y)
        return 0.5 * dfn * np.log(ratio) - spread - betaln(0.5 * dfn, 0.5 * dfd)

    def _below(self, y: Any, dfn: Any, dfd: Any) -> Any:
        return betainc(0.5 * dfn, 0.5 * dfd, dfn * y / (dfd + dfn * y))

    def _above(self, y: Any, dfn: Any, dfd: Any) -> Any:
        return betainc(0.5 * dfd, 0.5 * dfn, dfd / (dfd + dfn * y))

    def _quantile(self, q: Any, dfn: Any, dfd: Any) -> Any:
        share = betaincinv(0.5 * dfn, 0.5 * dfd, q)
        return dfd * share / (dfn * betainccinv(0.5 * dfd, 0.5 * dfn, q))


class LogNorm(Continuous):
    """The log-normal distribution."""

    shapes = ("s",)
    typical = (1.0,)
    low = 0.0
    is_open = True
    is_steep = True

    def _log_density(self, y: Any, s: Any) -> Any:
        return norm._log_density(np.log(y) / s) - np.log(s * y)

    def _below(self, y: Any, s: Any) -> Any:
        return ndtr(np.log(y) / s)

    def _above(self, y: Any, s: Any) -> Any:
        return ndtr(-np.log(y) / s)

    def _log_below(self, y: Any, s: Any) -> Any:
        return log_ndtr(np.log(y) / s)

    def _log_above(self, y: Any, s: Any) -> Any:
        return log_ndtr(-np.log(y) / s)

    def _quantile(self, q: Any, s: Any) -> Any:
        return np.exp(s * ndtri(q))

    def _quantile_above(self, q: Any, s: Any) -> Any:
        return np.exp(-s * ndtri(q))


class WeibullMin(Continuous):
    """The Weibull distribution, of the smallest of many."""

    shapes = ("c",)
    typical = (1.0,)
    low = 0.0
    is_steep = True

    def _log_density(self, y: Any, c: Any) -> Any:
        return np.log(c) + xlogy(c - 1, y) - y**c

    def _density(self, y: Any, c: Any) -> Any:
        is_end = y == 0
        end, inner = np.where(is_end, y, 1.0), np.where(is_end, 1.0, y)
        return np.where(is_end, c * end ** (c - 1) * np.exp(-(end**c)), super()._density(inner, c))

    def _below(self, y: Any, c: Any) -> Any:
        return -np.expm1(-(y**c))

    def _above(self, y: Any, c: Any) -> Any:
        return np.exp(-(y**c))

    def _log_above(self, y: Any, c: Any) -> Any:
        return -(y**c)

    def _quantile(self, q: Any, c: Any) -> Any:
        return (-np.log1p(-q)) ** (1 / c)

    def _quantile_above(self, q: Any, c: Any) -> Any:
        return (-np.log(q)) ** (1 / c)


class Rayleigh(Continuous):
    """The Rayleigh distribution, of the length of a vector of two normal numbers."""

    low = 0.0

    def _log_density(self, y: Any) -> Any:
        return np.log(y) - 0.5 * y * y

    def _density(self, y: Any) -> Any:
        return y * np.exp(-0.5 * y * y)

    def _below(self, y: Any) -> Any:
        return -np.expm1(-0.5 * y * y)

    def _above(self, y: Any) -> Any:
        return np.exp(-0.5 * y * y)

    def _log_above(self, y: Any) -> Any:
        return -0.5 * y * y

    def _quantile(self, q: Any) -> Any:
        return np.sqrt(-2 * np.log1p(-q))

    def _quantile_above(self, q: Any) -> Any:
        return np.sqrt(-2 * np.log(q))


class Maxwell(Continuous):
    """The Maxwell distribution, of the length of a vector of three normal numbers."""

    low = 0.0

    def _log_density(self, y: Any) -> Any:
        return 0.5 * math.log(2 / math.pi) + 2 * np.log(y) - 0.5 * y * y

    def _density(self, y: Any) -> Any:
        return math.sqrt(2 / math.pi) * y * y * np.exp(-0.5 * y * y)

    def _below(self, y: Any) -> Any:
        return gammainc(1.5, 0.5 * y * y)

    def _above(self, y: Any) -> Any:
        return gammaincc(1.5, 0.5 * y * y)

    def _quantile(self, q: Any) -> Any:
        return np.sqrt(2 * gammaincinv(1.5, q))

    def _quantile_above(self, q: Any) -> Any:
        return np.sqrt(2 * gammainccinv(1.5, q))


class HalfNorm(Continuous):
    """The distribution of the absolute value of a normal number."""

    low = 0.0

    def _log_density(self, y: Any) -> Any:
        return 0.5 * math.log(2 / math.pi) - 0.5 * y * y

    def _below(self, y: Any) -> Any:
        return erf(y * math.sqrt(0.5))

    def _above(self, y: Any) -> Any:
        return erfc(y * math.sqrt(0.5))

    def _log_above(self, y: Any) -> Any:
        return math.log(2) + log_ndtr(-y)

    def _quantile(self, q: Any) -> Any:
        return math.sqrt(2) * erfinv(q)

    def _quantile_above(self, q: Any) -> Any:
        return -ndtri(0.5 * q)


# On other half-lines


class Pareto(Continuous):
    """The Pareto distribution, on numbers of at least 1."""

    shapes = ("b",)
    typical = (1.0,)
    low = 1.0
    inner = 2.0

    def _log_density(self, y: Any, b: Any) -> Any:
        return np.log(b) - (b + 1) * np.log(y)

    def _below(self, y: Any, b: Any) -> Any:
        return -np.expm1(-b * np.log(y))

    def _above(self, y: Any, b: Any) -> Any:
        return y**-b

    def _log_above(self, y: Any, b: Any) -> Any:
        return -b * np.log(y)

    def _quantile(self, q: Any, b: Any) -> Any:
        return np.exp(-np.log1p(-q) / b)

    def _quantile_above(self, q: Any, b: Any) -> Any:
        return q ** (-1 / b)


class WeibullMax(Continuous):
    """The reversed Weibull distribution, on negative numbers."""

    shapes = ("c",)
    typical = (1.0,)
    high = 0.0
    inner = -1.0

    def _log_density(self, y: Any, c: Any) -> Any:
        return weibull_min._log_density(-y, c)

    def _density(self, y: Any, c: Any) -> Any:
        return weibull_min._density(-y, c)

    def _below(self, y: Any, c: Any) -> Any:
        return weibull_min._above(-y, c)

    def _above(self, y: Any, c: Any) -> Any:
        return weibull_min._below(-y, c)

    def _log_below(self, y: Any, c: Any) -> Any:
        return weibull_min._log_above(-y, c)

    def _quantile(self, q: Any, c: Any) -> Any:
        return -((-np.log(q)) ** (1 / c))


chi2 = ChiSquared("chi2")
expon = Expon("expon")
f = F("f")
gamma = Gamma("gamma")
halfnorm = HalfNorm("halfnorm")
invgamma = InverseGamma("invgamma")
lognorm = LogNorm("lognorm")
maxwell = Maxwell("maxwell")
pareto = Pareto("pareto")
rayleigh = Rayleigh("rayleigh")
weibull_max = WeibullMax("weibull_max")
weibull_min = WeibullMin("weibull_min")
