"""Continuous distributions on the whole line, in standard form: location 0, scale 1."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..special import (
    betaln,
    cosm1,
    expit,
    i0e,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    owens_t,
    stdtr,
    stdtrit,
)
from .distribution import Continuous

__all__ = ["cauchy", "gumbel_l", "gumbel_r", "laplace", "logistic", "norm", "skewnorm", "t", "vonmises"]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


class Norm(Continuous):
    """The normal distribution."""

    is_symmetric = True

    def _log_density(self, y: Any) -> Any:
        return -0.5 * y * y - _LOG_ROOT_TWO_PI

    def _below(self, y: Any) -> Any:
        return ndtr(y)

    def _above(self, y: Any) -> Any:
        return ndtr(-y)

    def _log_below(self, y: Any) -> Any:
        return log_ndtr(y)

    def _log_above(self, y: Any) -> Any:
        return log_ndtr(-y)

    def _quantile(self, q: Any) -> Any:
        return ndtri(q)


class Cauchy(Continuous):
    """The Cauchy distribution."""

    is_symmetric = True

    def _log_density(self, y: Any) -> Any:
        return -math.log(math.pi) - np.log1p(y * y)

    def _below(self, y: Any) -> Any:
        return np.arctan2(1.0, -y) / math.pi

    def _above(self, y: Any) -> Any:
        return np.arctan2(1.0, y) / math.pi

    def _quantile(self, q: Any) -> Any:
        # From the nearer end, so that small probabilities keep their digits.
        return np.where(q < 0.5, -1 / np.tan(math.pi * q), 1 / np.tan(math.pi * (1 - q)))


class Laplace(Continuous):
    """The Laplace distribution, whose logarithmic density has the derivative 0 at its kink."""

    is_symmetric = True

    def _log_density(self, y: Any) -> Any:
        return -np.abs(y) - math.log(2)

    def _below(self, y: Any) -> Any:
        is_left = y < 0
        left, right = np.where(is_left, y, 0.0), np.where(is_left, 0.0, y)
        return np.where(is_left, 0.5 * np.exp(left), 1 - 0.5 * np.exp(-right))

    def _above(self, y: Any) -> Any:
        return self._below(-y)

    def _log_below(self, y: Any) -> Any:
        is_left = y < 0
        left, right = np.where(is_left, y, 0.0), np.where(is_left, 0.0, y)
        return np.where(is_left, left - math.log(2), np.log1p(-0.5 * np.exp(-right)))

    def _log_above(self, y: Any) -> Any:
        return self._log_below(-y)

    def _quantile(self, q: Any) -> Any:
        is_left = q < 0.5
        left, right = np.where(is_left, q, 0.5), np.where(is_left, 0.5, 1 - q)
        return np.where(is_left, np.log(2 * left), -np.log(2 * right))


class Logistic(Continuous):
    """The logistic distribution."""

    is_symmetric = True

    def _log_density(self, y: Any) -> Any:
        return log_expit(y) + log_expit(-y)

    def _below(self, y: Any) -> Any:
        return expit(y)

    def _above(self, y: Any) -> Any:
        return expit(-y)

    def _log_below(self, y: Any) -> Any:
        return log_expit(y)

    def _log_above(self, y: Any) -> Any:
        return log_expit(-y)

    def _quantile(self, q: Any) -> Any:
        return logit(q)


class GumbelR(Continuous):
    """The right-skewed Gumbel distribution, of the largest of many."""

    def _log_density(self, y: Any) -> Any:
        return -y - np.exp(-y)

    def _cut(self, y: Any) -> Any:
        # Below, density and probability are 0 in every precision, with all of their derivatives.
        return np.where(y < -50, -50.0, y)

    def _density(self, y: Any) -> Any:
        return np.exp(self._log_density(self._cut(y)))

    def _below(self, y: Any) -> Any:
        return np.exp(-np.exp(-self._cut(y)))

    def _above(self, y: Any) -> Any:
        return -np.expm1(-np.exp(-self._cut(y)))

    def _log_below(self, y: Any) -> Any:
        return -np.exp(-y)

    def _quantile(self, q: Any) -> Any:
        return -np.log(-np.log(q))

    def _quantile_above(self, q: Any) -> Any:
        return -np.log(-np.log1p(-q))


class GumbelL(Continuous):
    """The left-skewed Gumbel distribution, of the smallest of many."""

    def _log_density(self, y: Any) -> Any:
        return y - np.exp(y)

    def _density(self, y: Any) -> Any:
        return gumbel_r._density(-y)

    def _below(self, y: Any) -> Any:
        return gumbel_r._above(-y)

    def _above(self, y: Any) -> Any:
        return gumbel_r._below(-y)

    def _log_above(self, y: Any) -> Any:
        return -np.exp(y)

    def _quantile(self, q: Any) -> Any:
        return np.log(-np.log1p(-q))

    def _quantile_above(self, q: Any) -> Any:
        return np.log(-np.log(q))


class StudentT(Continuous):
    """Student's t distribution."""

    shapes = ("df",)
    typical = (1.0,)
    is_symmetric = True

    def _log_density(self, y: Any, df: Any) -> Any:
        return -0.5 * np.log(df) - betaln(0.5, 0.5 * df) - 0.5 * (df + 1) * np.log1p(y * y / df)

    def _below(self, y: Any, df: Any) -> Any:
        return stdtr(df, y)

    def _above(self, y: Any, df: Any) -> Any:
        return stdtr(df, -y)

    def _quantile(self, q: Any, df: Any) -> Any:
        return stdtrit(df, q)


class SkewNorm(Continuous):
    """The skew-normal distribution."""

    # By Owen's T function probabilities are right to 16 decimals, of which their logarithms want more in the tails.
    methods: ClassVar[dict[str, str]] = {
        name: formula for name, formula in Continuous.methods.items() if not name.startswith(("logc", "logs"))
    }
    shapes = ("a",)
    typical = (0.0,)

    def _valid(self, *shapes: Any) -> Any:
        return np.isfinite(shapes[0])

    def _log_density(self, y: Any, a: Any) -> Any:
        return math.log(2) + norm._log_density(y) + log_ndtr(a * y)

    def _below(self, y: Any, a: Any) -> Any:
        return np.maximum(ndtr(y) - 2 * owens_t(y, a), 0.0)

    def _above(self, y: Any, a: Any) -> Any:
        return self._below(-y, -a)


class VonMises(Continuous):
    """The von Mises distribution of an angle."""

    shapes = ("kappa",)
    typical = (1.0,)

    def _log_density(self, y: Any, kappa: Any) -> Any:
        return kappa * cosm1(y) - math.log(2 * math.pi) - np.log(i0e(kappa))

    def _rvs(self, *args: Any, **kwargs: Any) -> Any:
        return np.mod(super()._rvs(*args, **kwargs) + math.pi, 2 * math.pi) - math.pi


cauchy = Cauchy("cauchy")
gumbel_l = GumbelL("gumbel_l")
gumbel_r = GumbelR("gumbel_r")
laplace = Laplace("laplace")
logistic = Logistic("logistic")
norm = Norm("norm")
skewnorm = SkewNorm("skewnorm")
t = StudentT("t")
vonmises = VonMises("vonmises")
