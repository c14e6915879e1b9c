"""Continuous distributions on half-lines: exponential, gamma and what is made of them, and Pareto's."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...core.types import Shape
from ...scipy.special import (
    betainc,
    betainccinv,
    betaincinv,
    betaln,
    exprel,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    psi,
    xlogy,
)
from ..random import exponential
from .constraints import Constraint, Interval, greater_than_eq, nonnegative, positive, real
from .distribution import Distribution
from .numbers import log1p_ratio, logs_of_gammas, tiny

__all__ = [
    "Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto", "InverseGamma", "Pareto", "Weibull",
]  # fmt: skip


class Exponential(Distribution):
    """The exponential distribution, with mean `1 / rate`."""

    arg_constraints: ClassVar = {"rate": positive}
    has_rsample = True
    _support = nonnegative

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    def _log_prob(self, x: Any, rate: Any) -> Any:
        return np.log(rate) - rate * x

    def _cdf(self, x: Any, rate: Any) -> Any:
        return -np.expm1(-rate * x)

    def _icdf(self, q: Any, rate: Any) -> Any:
        return -np.log1p(-q) / rate

    def _mean(self, rate: Any) -> Any:
        return 1 / rate

    def _mode(self, rate: Any) -> Any:
        return np.zeros_like(rate)

    def _variance(self, rate: Any) -> Any:
        return rate**-2.0

    def _entropy(self, rate: Any) -> Any:
        return 1 - np.log(rate)

    def _draw(self, key: Any, shape: Shape, rate: Any) -> Any:
        return exponential(key, shape, rate.dtype) / rate


class _ShapeAndRate(Distribution):
    arg_constraints: ClassVar = {"concentration": positive, "rate": positive}
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)


class Gamma(_ShapeAndRate):
    """The gamma distribution with mean `concentration / rate`.

    Example:
        >>> from ftrans.nn import distributions
        >>> d = distributions.Gamma(3.0, 2.0)
        >>> float(d.mean), float(d.mode), float(d.log_prob(1.0).round(4))
        (1.5, 1.0, -0.6137)
    """

    _support = nonnegative

    def _log_prob(self, x: Any, a: Any, rate: Any) -> Any:
        return a * np.log(rate) + xlogy(a - 1, x) - rate * x - gammaln(a)

    def _cdf(self, x: Any, a: Any, rate: Any) -> Any:
        return gammainc(a, rate * x)

    def _icdf(self, q: Any, a: Any, rate: Any) -> Any:
        return gammaincinv(a, q) / rate

    def _mean(self, a: Any, rate: Any) -> Any:
        return a / rate

    def _mode(self, a: Any, rate: Any) -> Any:
        return np.maximum(a - 1, 0.0) / rate

    def _variance(self, a: Any, rate: Any) -> Any:
        return a / rate**2

    def _entropy(self, a: Any, rate: Any) -> Any:
        return a - np.log(rate) + gammaln(a) + (1 - a) * psi(a)

    def _draw(self, key: Any, shape: Shape, a: Any, rate: Any) -> Any:
        # With a small concentration, quantiles are below the smallest numbers; the density is not defined at 0.
        return np.maximum(super()._draw(key, shape, a, rate), tiny(a))


class Chi2(Gamma):
    """The chi-squared distribution with `df` degrees of freedom: of the sum of squares of so many normal numbers."""

    arg_constraints: ClassVar = {"df": positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df)

    @property
    def concentration(self) -> Any:
        """That of the gamma distribution that it is: half of `df`."""
        return self.df * 0.5

    @property
    def rate(self) -> Any:
        """That of the gamma distribution that it is: 1/2."""
        return 0.5

    def _parameters(self, what: str = "") -> list[Any]:
        return [self.concentration, self.rate]


class InverseGamma(_ShapeAndRate):
    """The distribution of the reciprocal of a number with a gamma distribution."""

    _support = positive

    def _log_prob(self, x: Any, a: Any, rate: Any) -> Any:
        return a * np.log(rate) - (a + 1) * np.log(x) - rate / x - gammaln(a)

    def _cdf(self, x: Any, a: Any, rate: Any) -> Any:
        return gammaincc(a, rate / x)

    def _icdf(self, q: Any, a: Any, rate: Any) -> Any:
        return rate / gammainccinv(a, q)

    def _mean(self, a: Any, rate: Any) -> Any:
        return np.where(a > 1, rate / np.where(a > 1, a - 1, 1.0), math.inf)

    def _mode(self, a: Any, rate: Any) -> Any:
        return rate / (a + 1)

    def _variance(self, a: Any, rate: Any) -> Any:
        safe = np.where(a > 2, a, 3.0)
        return np.where(a > 2, rate**2 / ((safe - 1) ** 2 * (safe - 2)), math.inf)

    def _entropy(self, a: Any, rate: Any) -> Any:
        return a + np.log(rate) + gammaln(a) - (1 + a) * psi(a)

    def _draw(self, key: Any, shape: Shape, a: Any, rate: Any) -> Any:
        largest = float(np.log(np.finfo(a.dtype).max)) - 1
        return rate * np.exp(np.minimum(-logs_of_gammas(key, shape, a), largest))


class FisherSnedecor(Distribution):
    """The F distribution: of the quotient of two mean squares, with `df1` and `df2` degrees of freedom."""

    arg_constraints: ClassVar = {"df1": positive, "df2": positive}
    has_rsample = True
    _support = nonnegative

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, df1=df1, df2=df2)

    def _log_prob(self, x: Any, m: Any, n: Any) -> Any:
        ratio = m / n
        rest = 0.5 * m * np.log(ratio) - betaln(0.5 * m, 0.5 * n)
        return xlogy(0.5 * m - 1, x) + rest - 0.5 * (m + n) * np.log1p(ratio * x)

    def _cdf(self, x: Any, m: Any, n: Any) -> Any:
        return betainc(0.5 * m, 0.5 * n, m * x / (n + m * x))

    def _icdf(self, q: Any, m: Any, n: Any) -> Any:
        return n * betaincinv(0.5 * m, 0.5 * n, q) / (m * betainccinv(0.5 * n, 0.5 * m, q))

    def _mean(self, m: Any, n: Any) -> Any:
        return np.where(n > 2, n / np.where(n > 2, n - 2, 1.0), math.nan)

    def _mode(self, m: Any, n: Any) -> Any:
        return np.maximum(m - 2, 0.0) / m * n / (n + 2)

    def _variance(self, m: Any, n: Any) -> Any:
        safe = np.where(n > 4, n, 5.0)
        found = 2 * safe**2 * (m + safe - 2) / (m * (safe - 2) ** 2 * (safe - 4))
        return np.where(n > 4, found, math.nan)

    def _entropy(self, m: Any, n: Any) -> Any:
        # https://en.wikipedia.org/wiki/F-distribution, "Properties".
        a, b = 0.5 * m, 0.5 * n
        return np.log(n / m) + betaln(a, b) + (1 - a) * psi(a) - (1 + b) * psi(b) + (a + b) * psi(a + b)

    def _draw(self, key: Any, shape: Shape, m: Any, n: Any) -> Any:
        return np.maximum(super()._draw(key, shape, m, n), tiny(m))


class Pareto(Distribution):
    """Pareto's distribution of what is at least `scale`, whose tail falls with the power `alpha`."""

    arg_constraints: ClassVar = {"scale": positive, "alpha": positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale, alpha=alpha)

    @property
    def support(self) -> Constraint:
        return greater_than_eq(self.scale)

    def _log_prob(self, x: Any, scale: Any, alpha: Any) -> Any:
        return np.log(alpha) + alpha * np.log(scale) - (alpha + 1) * np.log(x)

    def _cdf(self, x: Any, scale: Any, alpha: Any) -> Any:
        return -np.expm1(alpha * np.log(scale / x))

    def _icdf(self, q: Any, scale: Any, alpha: Any) -> Any:
        return scale * np.exp(-np.log1p(-q) / alpha)

    def _mean(self, scale: Any, alpha: Any) -> Any:
        return np.where(alpha > 1, alpha * scale / np.where(alpha > 1, alpha - 1, 1.0), math.inf)

    def _mode(self, scale: Any, alpha: Any) -> Any:
        return scale

    def _variance(self, scale: Any, alpha: Any) -> Any:
        safe = np.where(alpha > 2, alpha, 3.0)
        return np.where(alpha > 2, scale**2 * safe / ((safe - 1) ** 2 * (safe - 2)), math.inf)

    def _entropy(self, scale: Any, alpha: Any) -> Any:
        return np.log(scale / alpha) + 1 + 1 / alpha


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, of what exceeds a high threshold `loc`.

    A `concentration` of 0 makes it exponential; a negative one ends the support at `loc - scale / concentration`.
    """

    arg_constraints: ClassVar = {"loc": real, "scale": positive, "concentration": real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @property
    def support(self) -> Constraint:
        loc, scale, k = self._operands()
        is_negative = k < 0
        return Interval(loc, np.where(is_negative, loc - scale / np.where(is_negative, k, -1.0), math.inf))

    def _log_prob(self, x: Any, loc: Any, scale: Any, k: Any) -> Any:
        z = (x - loc) / scale
        return -np.log(scale) - np.log1p(k * z) - z * log1p_ratio(k * z)

    def _cdf(self, x: Any, loc: Any, scale: Any, k: Any) -> Any:
        z = (x - loc) / scale
        is_outside = (z < 0) | (k * z <= -1)
        safe = np.where(is_outside, 0.0, z)
        return np.where(is_outside, np.where(z < 0, 0.0, 1.0), -np.expm1(-safe * log1p_ratio(k * safe)))

    def _icdf(self, q: Any, loc: Any, scale: Any, k: Any) -> Any:
        t = -np.log1p(-q)
        return loc + scale * t * exprel(k * t)

    def _mean(self, loc: Any, scale: Any, k: Any) -> Any:
        return np.where(k < 1, loc + scale / np.where(k < 1, 1 - k, 1.0), math.inf)

    def _mode(self, loc: Any, scale: Any, k: Any) -> Any:
        return loc

    def _variance(self, loc: Any, scale: Any, k: Any) -> Any:
        safe = np.where(k < 0.5, k, 0.0)
        return np.where(k < 0.5, scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), math.inf)

    def _entropy(self, loc: Any, scale: Any, k: Any) -> Any:
        return np.log(scale) + k + 1


class Weibull(Distribution):
    """The Weibull distribution: `scale` times a power, `1 / concentration`, of an exponential number."""

    arg_constraints: ClassVar = {"scale": positive, "concentration": positive}
    has_rsample = True
    _support = positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale, concentration=concentration)

    def _log_prob(self, x: Any, scale: Any, k: Any) -> Any:
        log_z = np.log(x / scale)
        return np.log(k / scale) + (k - 1) * log_z - np.exp(k * log_z)

    def _cdf(self, x: Any, scale: Any, k: Any) -> Any:
        return -np.expm1(-((x / scale) ** k))

    def _icdf(self, q: Any, scale: Any, k: Any) -> Any:
        return scale * (-np.log1p(-q)) ** (1 / k)

    def _mean(self, scale: Any, k: Any) -> Any:
        return scale * np.exp(gammaln(1 + 1 / k))

    def _mode(self, scale: Any, k: Any) -> Any:
        return np.where(k > 1, scale * (np.where(k > 1, k - 1, 1.0) / k) ** (1 / k), 0.0)

    def _variance(self, scale: Any, k: Any) -> Any:
        return scale**2 * (np.exp(gammaln(1 + 2 / k)) - np.exp(2 * gammaln(1 + 1 / k)))

    def _entropy(self, scale: Any, k: Any) -> Any:
        return np.euler_gamma * (1 - 1 / k) + np.log(scale / k) + 1
