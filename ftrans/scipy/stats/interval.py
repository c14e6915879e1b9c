"""Continuous distributions on intervals, of which some ends depend on the shape, in standard form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...numpy.promotion import asarray
from ...ops.special.exponential import logarithm_quotient
from ..special import (
    betainc,
    betaincc,
    betaincinv,
    betaln,
    exprel,
    log_ndtr,
    ndtr,
    xlog1py,
    xlogy,
)
from .continuous import gumbel_r, norm
from .distribution import Continuous
from .half_line import power_times

__all__ = ["beta", "genextreme", "triang", "truncnorm", "uniform"]


class Beta(Continuous):
    """The beta distribution."""

    shapes = ("a", "b")
    typical = (1.0, 1.0)
    low = 0.0
    high = 1.0

    def _log_density(self, y: Any, a: Any, b: Any) -> Any:
        return xlog1py(b - 1, -y) + xlogy(a - 1, y) - betaln(a, b)

    def _density(self, y: Any, a: Any, b: Any) -> Any:
        is_left = y < 0.5
        left, right = np.where(is_left, y, 0.5), np.where(is_left, 0.5, 1 - y)
        scale = betaln(a, b)
        from_left = power_times(left, a - 1, xlog1py(b - 1, -left) - scale)
        return np.where(is_left, from_left, power_times(right, b - 1, xlog1py(a - 1, -right) - scale))

    def _below(self, y: Any, a: Any, b: Any) -> Any:
        return betainc(a, b, y)

    def _above(self, y: Any, a: Any, b: Any) -> Any:
        return betaincc(a, b, y)

    def _quantile(self, q: Any, a: Any, b: Any) -> Any:
        return betaincinv(a, b, q)


class Uniform(Continuous):
    """The uniform distribution between `loc` and `loc + scale`."""

    low = 0.0
    high = 1.0

    def _log_density(self, y: Any) -> Any:
        return 0 * y

    def _below(self, y: Any) -> Any:
        return y

    def _quantile(self, q: Any) -> Any:
        return q


class Triang(Continuous):
    """The triangular distribution with its mode at `c`."""

    shapes = ("c",)
    typical = (0.5,)
    low = 0.0
    high = 1.0

    def _valid(self, *shapes: Any) -> Any:
        return (shapes[0] >= 0) & (shapes[0] <= 1)

    def _sides(self, y: Any, c: Any) -> tuple[Any, Any, Any]:
        """Whether `y` is left of the mode, and the width of either side, where it is on that."""
        is_left = y < c
        return is_left, np.where(is_left, c, 1.0), np.where(is_left | (c == 1), 1.0, 1 - c)

    def _log_density(self, y: Any, c: Any) -> Any:
        return np.log(self._density(y, c))

    def _density(self, y: Any, c: Any) -> Any:
        is_left, before, after = self._sides(y, c)
        return 2 * np.where(is_left, y / before, np.where(c == 1, y, (1 - y) / after))

    def _below(self, y: Any, c: Any) -> Any:
        is_left, before, after = self._sides(y, c)
        return np.where(is_left, y * y / before, 1 - (1 - y) ** 2 / after)

    def _quantile(self, q: Any, c: Any) -> Any:
        is_left = q < c
        before, after = np.where(is_left, c * q, 1.0), np.where(is_left, 1.0, (1 - c) * (1 - q))
        return np.where(is_left, np.sqrt(before), 1 - np.sqrt(after))


class GenExtreme(Continuous):
    """The generalized extreme value distribution, which is a Gumbel distribution for `c == 0`."""

    shapes = ("c",)
    typical = (0.0,)
    inner = 0.0
    is_steep = True

    def _valid(self, *shapes: Any) -> Any:
        return np.isfinite(shapes[0])

    def _support(self, *shapes: Any) -> tuple[Any, Any]:
        (c,) = shapes
        end = 1 / np.where(c == 0, 1.0, c)
        return np.where(c < 0, end, -math.inf), np.where(c > 0, end, math.inf)

    def _logarithm(self, y: Any, c: Any) -> Any:
        """`log(1 - c y) / c`."""
        return -y * logarithm_quotient(asarray(-c * y))

    def _log_density(self, y: Any, c: Any) -> Any:
        root = self._logarithm(y, c)
        return (1 - c) * root - np.exp(root)

    def _below(self, y: Any, c: Any) -> Any:
        return gumbel_r._below(-self._logarithm(y, c))

    def _above(self, y: Any, c: Any) -> Any:
        return gumbel_r._above(-self._logarithm(y, c))

    def _log_below(self, y: Any, c: Any) -> Any:
        return -np.exp(self._logarithm(y, c))

    def _quantile(self, q: Any, c: Any) -> Any:
        return self._of_gumbel(-np.log(-np.log(q)), c)

    def _quantile_above(self, q: Any, c: Any) -> Any:
        return self._of_gumbel(-np.log(-np.log1p(-q)), c)

    def _of_gumbel(self, y: Any, c: Any) -> Any:
        return y * exprel(-c * y)


class TruncNorm(Continuous):
    """The normal distribution between `a` and `b`, in standard deviations."""

    shapes = ("a", "b")
    typical = (-1.0, 1.0)

    def _valid(self, *shapes: Any) -> Any:
        return shapes[0] < shapes[1]

    def _support(self, *shapes: Any) -> tuple[Any, Any]:
        return shapes[0], shapes[1]

    def _inner(self, *shapes: Any) -> Any:
        return np.clip(0.0, shapes[0], shapes[1])

    def _log_mass(self, a: Any, b: Any) -> Any:
        """The logarithm of the normal probability between `a` and `b`, from the nearer tail."""
        # At this distance it is 0 as at infinity, and so are its derivatives.
        a, b = np.clip(a, -1e15, 1e15), np.clip(b, -1e15, 1e15)
        is_right = a > 0
        low, high = np.where(is_right, -b, a), np.where(is_right, -a, b)
        is_tail = high <= 0
        left, right = np.where(is_tail, -1.0, low), np.where(is_tail, 1.0, high)
        near, far = log_ndtr(np.where(is_tail, high, 0.0)), log_ndtr(np.where(is_tail, low, -1.0))
        tail = near + np.log1p(-np.exp(far - near))
        return np.where(is_tail, tail, np.log1p(-ndtr(left) - ndtr(-right)))

    def _log_density(self, y: Any, a: Any, b: Any) -> Any:
        return norm._log_density(y) - self._log_mass(a, b)

    def _below(self, y: Any, a: Any, b: Any) -> Any:
        return np.exp(self._log_below(y, a, b))

    def _above(self, y: Any, a: Any, b: Any) -> Any:
        return np.exp(self._log_above(y, a, b))

    def _log_below(self, y: Any, a: Any, b: Any) -> Any:
        return self._log_mass(a, y) - self._log_mass(a, b)

    def _log_above(self, y: Any, a: Any, b: Any) -> Any:
        return self._log_mass(y, b) - self._log_mass(a, b)


beta = Beta("beta")
genextreme = GenExtreme("genextreme")
triang = Triang("triang")
truncnorm = TruncNorm("truncnorm")
uniform = Uniform("uniform")
