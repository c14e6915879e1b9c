"""Discrete distributions, differentiated with respect to their parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...ops.elementwise import stop_gradient
from ..special import (
    betainc,
    betaincc,
    gammainc,
    gammaincc,
    gammaln,
    xlog1py,
    xlogy,
)
from .distribution import Distribution, log_of_share

__all__ = ["bernoulli", "binom", "geom", "nbinom", "poisson", "randint"]


class Discrete(Distribution):
    """A distribution on whole numbers, differentiated with respect to its parameters.

    Attributes:
        low, high: the ends of the support in standard form.

    Example:
        >>> import ftrans as ft
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.poisson.logpmf, argnums=1)(3, 2.0))
        0.5
    """

    methods: ClassVar[dict[str, str]] = {
        "pmf": "_log_mass",
        "logpmf": "_log_mass",
        "cdf": "_below",
        "logcdf": "_below",
        "sf": "_below",
        "logsf": "_below",
    }
    variable: ClassVar[str] = "k"
    placing: ClassVar[dict[str, float]] = {"loc": 0.0}
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = math.inf

    # Formulas that follow from others unless there are better ones

    def _support(self, *shapes: Any) -> tuple[Any, Any]:
        return self.low, self.high

    def _mass(self, k: Any, *shapes: Any) -> Any:
        return np.exp(self._log_mass(k, *shapes))

    def _above(self, k: Any, *shapes: Any) -> Any:
        return 1 - self._below(k, *shapes)

    # The methods

    def _logpmf(self, x: Any, *params: Any) -> Any:
        return self._of_mass(x, params, self._log_mass, -math.inf)

    def _pmf(self, x: Any, *params: Any) -> Any:
        return self._of_mass(x, params, self._mass, 0.0)

    def _of_mass(self, x: Any, params: Sequence[Any], formula: Callable[..., Any], outside: float) -> Any:
        *shapes, loc = params
        valid, shapes = self._checked(shapes)
        k = stop_gradient(x - loc)
        valid = valid & ~np.isnan(k)
        low, high = self._support(*shapes)
        is_outside = (k < low) | (k > high) | (k != np.floor(k))
        found = formula(np.where(is_outside, low, k), *shapes)
        return np.where(valid, np.where(is_outside, outside, found), math.nan)

    def _cdf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(x, params, self._below, 0.0, 1.0)

    def _sf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(x, params, self._above, 1.0, 0.0)

    def _logcdf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(
            x, params, lambda *xs: log_of_share(self._below(*xs), self._above(*xs)), -math.inf, 0.0
        )

    def _logsf(self, x: Any, *params: Any) -> Any:
        return self._of_probability(
            x, params, lambda *xs: log_of_share(self._above(*xs), self._below(*xs)), 0.0, -math.inf
        )

    def _of_probability(
        self, x: Any, params: Sequence[Any], formula: Callable[..., Any], first: float, last: float
    ) -> Any:
        *shapes, loc = params
        valid, shapes = self._checked(shapes)
        k = np.floor(stop_gradient(x - loc))
        valid = valid & ~np.isnan(k)
        low, high = self._support(*shapes)
        is_below, is_above = k < low, k >= high
        found = formula(np.where(is_below | is_above, low, k), *shapes)
        return np.where(valid, np.where(is_below, first, np.where(is_above, last, found)), math.nan)


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


class Bernoulli(Discrete):
    """The distribution of a success, 1, or a failure, 0."""

    shapes = ("p",)
    typical = (0.5,)
    high = 1.0

    def _valid(self, *shapes: Any) -> Any:
        return _is_probability(shapes[0])

    def _log_mass(self, k: Any, p: Any) -> Any:
        return xlogy(k, p) + xlog1py(1 - k, -p)

    def _mass(self, k: Any, p: Any) -> Any:
        return np.where(k == 1, p, 1 - p)

    def _below(self, k: Any, p: Any) -> Any:
        return 1 - p

    def _above(self, k: Any, p: Any) -> Any:
        return p


class Binom(Discrete):
    """The binomial distribution, of the number of successes among `n`."""

    shapes = ("n", "p")
    typical = (1.0, 0.5)

    def _valid(self, *shapes: Any) -> Any:
        return (shapes[0] >= 0) & _is_probability(shapes[1])

    def _support(self, *shapes: Any) -> tuple[Any, Any]:
        return 0.0, shapes[0]

    def _log_ways(self, k: Any, n: Any) -> Any:
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)

    def _log_mass(self, k: Any, n: Any, p: Any) -> Any:
        return self._log_ways(k, n) + xlogy(k, p) + xlog1py(n - k, -p)

    def _mass(self, k: Any, n: Any, p: Any) -> Any:
        # Logarithms have no derivative at the ends.
        is_end = (p == 0) | (p == 1)
        end, inner = np.where(is_end, p, 0.0), np.where(is_end, 0.5, p)
        powers = end**k * (1 - end) ** (n - k) * np.exp(np.where(is_end, self._log_ways(k, n), 0.0))
        return np.where(is_end, powers, np.exp(self._log_mass(k, n, inner)))

    def _below(self, k: Any, n: Any, p: Any) -> Any:
        return betaincc(k + 1, n - k, p)

    def _above(self, k: Any, n: Any, p: Any) -> Any:
        return betainc(k + 1, n - k, p)


class Poisson(Discrete):
    """The Poisson distribution."""

    shapes = ("mu",)
    typical = (1.0,)

    def _valid(self, *shapes: Any) -> Any:
        return shapes[0] >= 0

    def _log_mass(self, k: Any, mu: Any) -> Any:
        return xlogy(k, mu) - mu - gammaln(k + 1)

    def _mass(self, k: Any, mu: Any) -> Any:
        is_end = mu == 0
        end, inner = np.where(is_end, mu, 0.0), np.where(is_end, 1.0, mu)
        return np.where(is_end, end**k * np.exp(-end - gammaln(k + 1)), np.exp(self._log_mass(k, inner)))

    def _below(self, k: Any, mu: Any) -> Any:
        return gammaincc(k + 1, mu)

    def _above(self, k: Any, mu: Any) -> Any:
        return gammainc(k + 1, mu)


class Geom(Discrete):
    """The geometric distribution, of the number of trials up to the first success."""

    shapes = ("p",)
    typical = (0.5,)
    low = 1.0

    def _valid(self, *shapes: Any) -> Any:
        return (shapes[0] > 0) & (shapes[0] <= 1)

    def _log_mass(self, k: Any, p: Any) -> Any:
        return xlog1py(k - 1, -p) + np.log(p)

    def _mass(self, k: Any, p: Any) -> Any:
        return (1 - p) ** (k - 1) * p

    def _below(self, k: Any, p: Any) -> Any:
        is_end = p == 1
        inner = -np.expm1(k * np.log1p(-np.where(is_end, 0.5, p)))
        return np.where(is_end, 1 - (1 - p) ** k, inner)

    def _above(self, k: Any, p: Any) -> Any:
        return (1 - p) ** k


class NegativeBinom(Discrete):
    """The negative binomial distribution, of the number of failures before the `n`-th success."""

    shapes = ("n", "p")
    typical = (1.0, 0.5)

    def _valid(self, *shapes: Any) -> Any:
        return (shapes[0] > 0) & (shapes[1] > 0) & (shapes[1] <= 1)

    def _log_mass(self, k: Any, n: Any, p: Any) -> Any:
        return gammaln(n + k) - gammaln(k + 1) - gammaln(n) + n * np.log(p) + xlog1py(k, -p)

    def _mass(self, k: Any, n: Any, p: Any) -> Any:
        is_end = p == 1
        end, inner = np.where(is_end, p, 1.0), np.where(is_end, 0.5, p)
        ways = np.exp(np.where(is_end, gammaln(n + k) - gammaln(k + 1) - gammaln(n), 0.0))
        return np.where(is_end, ways * end**n * (1 - end) ** k, np.exp(self._log_mass(k, n, inner)))

    def _below(self, k: Any, n: Any, p: Any) -> Any:
        return betainc(n, k + 1, p)

    def _above(self, k: Any, n: Any, p: Any) -> Any:
        return betaincc(n, k + 1, p)


class RandInt(Discrete):
    """The uniform distribution on the integers from `low` up to and without `high`, which have no derivative."""

    shapes = ("low", "high")
    typical = (0.0, 1.0)

    def _valid(self, *shapes: Any) -> Any:
        low, high = shapes
        return (low < high) & (low == np.floor(low)) & (high == np.floor(high))

    def _support(self, *shapes: Any) -> tuple[Any, Any]:
        return shapes[0], shapes[1] - 1

    def _log_mass(self, k: Any, low: Any, high: Any) -> Any:
        return -np.log(stop_gradient(high - low))

    def _below(self, k: Any, low: Any, high: Any) -> Any:
        return (k - stop_gradient(low) + 1) / stop_gradient(high - low)


bernoulli = Bernoulli("bernoulli")
binom = Binom("binom")
geom = Geom("geom")
nbinom = NegativeBinom("nbinom")
poisson = Poisson("poisson")
randint = RandInt("randint")
