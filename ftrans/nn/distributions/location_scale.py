"""Continuous distributions that are moved by `loc` and stretched by `scale`, and those of their absolute values."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import Shape
from ...scipy.special import betaln, erf, erfinv, ndtr, ndtri, psi, stdtr, stdtrit
from ..random import normal
from .constraints import Constraint, interval, nonnegative, positive, real
from .distribution import Distribution
from .numbers import as_parameter, is_known

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "HalfNormal", "Laplace", "LogNormal", "Normal", "StudentT", "Uniform"]

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


class _LocationScale(Distribution):
    arg_constraints: ClassVar = {"loc": real, "scale": positive}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    def _mean(self, loc: Any, scale: Any) -> Any:
        return loc

    def _mode(self, loc: Any, scale: Any) -> Any:
        return loc


class Normal(_LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Example:
        >>> from ftrans.nn import distributions
        >>> d = distributions.Normal(0.0, 2.0)
        >>> float(d.log_prob(1.0).round(4)), float(d.cdf(0.0)), float(d.entropy().round(4))
        (-1.7371, 0.5, 2.1121)
    """

    def _log_prob(self, x: Any, loc: Any, scale: Any) -> Any:
        return -0.5 * ((x - loc) / scale) ** 2 - np.log(scale) - _LOG_ROOT_2PI

    def _cdf(self, x: Any, loc: Any, scale: Any) -> Any:
        return ndtr((x - loc) / scale)

    def _icdf(self, q: Any, loc: Any, scale: Any) -> Any:
        return loc + scale * ndtri(q)

    def _variance(self, loc: Any, scale: Any) -> Any:
        return scale**2

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return 0.5 + _LOG_ROOT_2PI + np.log(scale)

    def _draw(self, key: Any, shape: Shape, loc: Any, scale: Any) -> Any:
        return loc + scale * normal(key, shape, loc.dtype)


class LogNormal(_LocationScale):
    """The distribution of `exp(y)` where y is normal with mean `loc` and standard deviation `scale`."""

    _support = positive

    def _log_prob(self, x: Any, loc: Any, scale: Any) -> Any:
        log_x = np.log(x)
        return -0.5 * ((log_x - loc) / scale) ** 2 - np.log(scale) - _LOG_ROOT_2PI - log_x

    def _cdf(self, x: Any, loc: Any, scale: Any) -> Any:
        return ndtr((np.log(x) - loc) / scale)

    def _icdf(self, q: Any, loc: Any, scale: Any) -> Any:
        return np.exp(loc + scale * ndtri(q))

    def _mean(self, loc: Any, scale: Any) -> Any:
        return np.exp(loc + 0.5 * scale**2)

    def _mode(self, loc: Any, scale: Any) -> Any:
        return np.exp(loc - scale**2)

    def _variance(self, loc: Any, scale: Any) -> Any:
        return np.expm1(scale**2) * np.exp(2 * loc + scale**2)

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return loc + 0.5 + _LOG_ROOT_2PI + np.log(scale)

    def _draw(self, key: Any, shape: Shape, loc: Any, scale: Any) -> Any:
        return np.exp(loc + scale * normal(key, shape, loc.dtype))


class Laplace(_LocationScale):
    """The Laplace distribution: both tails are exponential, with mean distance `scale` from `loc`."""

    def _log_prob(self, x: Any, loc: Any, scale: Any) -> Any:
        return -abs(x - loc) / scale - np.log(2 * scale)

    def _cdf(self, x: Any, loc: Any, scale: Any) -> Any:
        z = (x - loc) / scale
        return 0.5 - 0.5 * np.sign(z) * np.expm1(-abs(z))

    def _icdf(self, q: Any, loc: Any, scale: Any) -> Any:
        return loc - scale * np.sign(q - 0.5) * np.log1p(-2 * abs(q - 0.5))

    def _variance(self, loc: Any, scale: Any) -> Any:
        return 2 * scale**2

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return 1 + np.log(2 * scale)


class Cauchy(_LocationScale):
    """The Cauchy distribution, whose median is `loc`; mean and variance do not exist."""

    def _log_prob(self, x: Any, loc: Any, scale: Any) -> Any:
        return -math.log(math.pi) - np.log(scale) - np.log1p(((x - loc) / scale) ** 2)

    def _cdf(self, x: Any, loc: Any, scale: Any) -> Any:
        return np.arctan((x - loc) / scale) / math.pi + 0.5

    def _icdf(self, q: Any, loc: Any, scale: Any) -> Any:
        return loc + scale * np.tan(math.pi * (q - 0.5))

    def _mean(self, loc: Any, scale: Any) -> Any:
        return np.full_like(loc, math.nan)

    def _variance(self, loc: Any, scale: Any) -> Any:
        return np.full_like(loc, math.inf)

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return math.log(4 * math.pi) + np.log(scale)


class Gumbel(_LocationScale):
    """The Gumbel distribution, of largest values."""

    def _log_prob(self, x: Any, loc: Any, scale: Any) -> Any:
        z = (x - loc) / scale
        return -(z + np.exp(-z)) - np.log(scale)

    def _cdf(self, x: Any, loc: Any, scale: Any) -> Any:
        return np.exp(-np.exp(-(x - loc) / scale))

    def _icdf(self, q: Any, loc: Any, scale: Any) -> Any:
        return loc - scale * np.log(-np.log(q))

    def _mean(self, loc: Any, scale: Any) -> Any:
        return loc + scale * np.euler_gamma

    def _variance(self, loc: Any, scale: Any) -> Any:
        return (math.pi * scale) ** 2 / 6

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return 1 + np.euler_gamma + np.log(scale)


class StudentT(Distribution):
    """Student's t distribution with `df` degrees of freedom, moved and stretched."""

    arg_constraints: ClassVar = {"df": positive, "loc": real, "scale": positive}
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    def _log_prob(self, x: Any, df: Any, loc: Any, scale: Any) -> Any:
        z = (x - loc) / scale
        return -0.5 * (df + 1) * np.log1p(z * z / df) - np.log(scale) - 0.5 * np.log(df) - betaln(0.5 * df, 0.5)

    def _cdf(self, x: Any, df: Any, loc: Any, scale: Any) -> Any:
        return stdtr(df, (x - loc) / scale)

    def _icdf(self, q: Any, df: Any, loc: Any, scale: Any) -> Any:
        return loc + scale * stdtrit(df, q)

    def _mean(self, df: Any, loc: Any, scale: Any) -> Any:
        return np.where(df > 1, loc, math.nan)

    def _mode(self, df: Any, loc: Any, scale: Any) -> Any:
        return loc

    def _variance(self, df: Any, loc: Any, scale: Any) -> Any:
        is_finite = df > 2
        finite = scale**2 * df / np.where(is_finite, df - 2, 1.0)
        return np.where(is_finite, finite, np.where(df > 1, math.inf, math.nan))

    def _entropy(self, df: Any, loc: Any, scale: Any) -> Any:
        more = 0.5 * (df + 1) * (psi(0.5 * (df + 1)) - psi(0.5 * df))
        return np.log(scale) + more + 0.5 * np.log(df) + betaln(0.5 * df, 0.5)


class Uniform(Distribution):
    """The uniform distribution from `low` to `high`.

    Raises:
        ValueError: `low` is not less than `high`.

    Example:
        >>> from ftrans.nn import distributions, random
        >>> d = distributions.Uniform(-1.0, 1.0)
        >>> d.sample((2,), rng=random.key(0)).round(4)
        array([-0.1631,  0.201 ], dtype=float32)
    """

    arg_constraints: ClassVar = {"low": real, "high": real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)
        if self._validate_args and is_known(self.low) and is_known(self.high) and not np.all(self.low < self.high):
            raise ValueError(f"low of Uniform must be less than high: {self!r}{at_line(user_line())}")

    @property
    def support(self) -> Constraint:
        return interval(self.low, self.high)

    def _log_prob(self, x: Any, low: Any, high: Any) -> Any:
        return np.where((x >= low) & (x <= high), -np.log(high - low), -math.inf)

    def cdf(self, value: Any) -> Any:
        """The probability of what is at most `value`, which may be any number."""
        return self._of_value("cdf", as_parameter(value, "the value of Uniform.cdf"), False)

    def _cdf(self, x: Any, low: Any, high: Any) -> Any:
        return np.clip((x - low) / (high - low), 0.0, 1.0)

    def _icdf(self, q: Any, low: Any, high: Any) -> Any:
        return low + q * (high - low)

    def _mean(self, low: Any, high: Any) -> Any:
        return 0.5 * (low + high)

    def _mode(self, low: Any, high: Any) -> Any:
        return np.full_like(low, math.nan)

    def _variance(self, low: Any, high: Any) -> Any:
        return (high - low) ** 2 / 12

    def _entropy(self, low: Any, high: Any) -> Any:
        return np.log(high - low)


class _Half(Distribution):
    arg_constraints: ClassVar = {"scale": positive}
    has_rsample = True
    _support = nonnegative

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale)

    def _mode(self, scale: Any) -> Any:
        return np.zeros_like(scale)


class HalfNormal(_Half):
    """The distribution of the absolute value of a normal number with mean 0 and standard deviation `scale`."""

    def _log_prob(self, x: Any, scale: Any) -> Any:
        density = math.log(2) - _LOG_ROOT_2PI - np.log(scale) - 0.5 * (x / scale) ** 2
        return np.where(x >= 0, density, -math.inf)

    def _cdf(self, x: Any, scale: Any) -> Any:
        return erf(x / (scale * math.sqrt(2)))

    def _icdf(self, q: Any, scale: Any) -> Any:
        return scale * math.sqrt(2) * erfinv(q)

    def _mean(self, scale: Any) -> Any:
        return scale * math.sqrt(2 / math.pi)

    def _variance(self, scale: Any) -> Any:
        return scale**2 * (1 - 2 / math.pi)

    def _entropy(self, scale: Any) -> Any:
        return 0.5 * math.log(math.pi / 2) + 0.5 + np.log(scale)


class HalfCauchy(_Half):
    """The distribution of the absolute value of a Cauchy number with median 0 and `scale`."""

    def _log_prob(self, x: Any, scale: Any) -> Any:
        density = math.log(2 / math.pi) - np.log(scale) - np.log1p((x / scale) ** 2)
        return np.where(x >= 0, density, -math.inf)

    def _cdf(self, x: Any, scale: Any) -> Any:
        return np.arctan(x / scale) * (2 / math.pi)

    def _icdf(self, q: Any, scale: Any) -> Any:
        return scale * np.tan(0.5 * math.pi * q)

    def _mean(self, scale: Any) -> Any:
        return np.full_like(scale, math.inf)

    def _variance(self, scale: Any) -> Any:
        return np.full_like(scale, math.inf)

    def _entropy(self, scale: Any) -> Any:
        return math.log(2 * math.pi) + np.log(scale)
