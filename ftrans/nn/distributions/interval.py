"""Continuous distributions on intervals: Beta, Kumaraswamy, ContinuousBernoulli; and VonMises, of angles."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...api.custom_rules import custom_jvp
from ...api.derivatives import stop_gradient
from ...core.types import Shape
from ...scipy.special import betainc, betaincinv, betaln, cosm1, exprel, i0e, i1e, psi, xlog1py, xlogy
from ..random import open_unit
from .constraints import positive, real, unit_interval
from .distribution import Distribution
from .numbers import eps, log1p_ratio, tiny
from .probs_or_logits import BinaryProbabilities

__all__ = ["Beta", "ContinuousBernoulli", "Kumaraswamy", "VonMises"]


class _TwoConcentrations(Distribution):
    arg_constraints: ClassVar = {"concentration1": positive, "concentration0": positive}
    has_rsample = True
    _support = unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _draw(self, key: Any, shape: Shape, a: Any, b: Any) -> Any:
        # The density may be infinite at 0 and at 1.
        return np.clip(super()._draw(key, shape, a, b), tiny(a), 1 - eps(a) / 2)


class Beta(_TwoConcentrations):
    """The beta distribution, with density proportional to `x**(concentration1 - 1) * (1 - x)**(concentration0 - 1)`.

    Example:
        >>> from ftrans.nn import distributions
        >>> d = distributions.Beta(2.0, 2.0)
        >>> float(d.mean), float(d.cdf(0.5)), float(d.log_prob(0.5).round(4))
        (0.5, 0.5, 0.4055)
    """

    def _log_prob(self, x: Any, a: Any, b: Any) -> Any:
        return xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b)

    def _cdf(self, x: Any, a: Any, b: Any) -> Any:
        return betainc(a, b, x)

    def _icdf(self, q: Any, a: Any, b: Any) -> Any:
        return betaincinv(a, b, q)

    def _mean(self, a: Any, b: Any) -> Any:
        return a / (a + b)

    def _mode(self, a: Any, b: Any) -> Any:
        more, less = np.maximum(a - 1, 0.0), np.maximum(b - 1, 0.0)
        has_one = more + less > 0
        inner = more / np.where(has_one, more + less, 1.0)
        # With two infinite ends, it is the end that the density nears faster; a flat density has no mode.
        at_ends = np.where((a < 1) & (b < 1), np.where(a <= b, 1.0, 0.0), math.nan)
        at_ends = np.where((a == 1) & (b < 1), 1.0, np.where((a < 1) & (b == 1), 0.0, at_ends))
        return np.where(has_one, inner, at_ends)

    def _variance(self, a: Any, b: Any) -> Any:
        return a * b / ((a + b) ** 2 * (a + b + 1))

    def _entropy(self, a: Any, b: Any) -> Any:
        return betaln(a, b) - (a - 1) * psi(a) - (b - 1) * psi(b) + (a + b - 2) * psi(a + b)


class Kumaraswamy(_TwoConcentrations):
    """Kumaraswamy's distribution, much like the beta distribution, with a distribution function in closed form."""

    def _log_prob(self, x: Any, a: Any, b: Any) -> Any:
        return np.log(a) + np.log(b) + (a - 1) * np.log(x) + (b - 1) * np.log1p(-(x**a))

    def _cdf(self, x: Any, a: Any, b: Any) -> Any:
        return -np.expm1(b * np.log1p(-(x**a)))

    def _icdf(self, q: Any, a: Any, b: Any) -> Any:
        return (-np.expm1(np.log1p(-q) / b)) ** (1 / a)

    def _moment(self, n: int, a: Any, b: Any) -> Any:
        return b * np.exp(betaln(1 + n / a, b))

    def _mean(self, a: Any, b: Any) -> Any:
        return self._moment(1, a, b)

    def _mode(self, a: Any, b: Any) -> Any:
        has_mode = (a >= 1) & (b >= 1) & ((a > 1) | (b > 1))
        a, b = np.where(has_mode, a, 2.0), np.where(has_mode, b, 2.0)
        return np.where(has_mode, ((a - 1) / (a * b - 1)) ** (1 / a), math.nan)

    def _variance(self, a: Any, b: Any) -> Any:
        return self._moment(2, a, b) - self._moment(1, a, b) ** 2

    def _entropy(self, a: Any, b: Any) -> Any:
        harmonic = psi(b + 1) + np.euler_gamma
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - np.log(a) - np.log(b)


def log_norm(logits: Any) -> Any:
    """The logarithm of sinh(h) / h, where h is half of the logits."""
    h = 0.5 * logits
    is_small = abs(h) < 0.02
    safe = np.where(is_small, 1.0, abs(h))
    return np.where(is_small, h * h / 6 - h**4 / 180, safe + np.log(-np.expm1(-2 * safe)) - np.log(2 * safe))


def mean_of(logits: Any) -> Any:
    """The mean of a continuous Bernoulli distribution."""
    h = 0.5 * logits
    is_small = abs(h) < 0.02
    safe = np.where(is_small, 1.0, h)
    return 0.5 + 0.5 * np.where(is_small, h / 3 - h**3 / 45, 1 / np.tanh(safe) - 1 / safe)


class ContinuousBernoulli(BinaryProbabilities):
    """The continuous Bernoulli distribution: an exponential one, with rate `-logits`, cut off at 0 and 1.

    Loaiza-Ganem and Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders", 2019.
    Near `probs=0.5` its formulas are series, so there are no limits (`lims` of torch) to choose.
    """

    has_rsample = True
    _support = unit_interval

    def _log_prob(self, x: Any, logits: Any) -> Any:
        return logits * (x - 0.5) - log_norm(logits)

    def _cdf(self, x: Any, probs: Any, logits: Any) -> Any:
        x = np.clip(x, 0.0, 1.0)
        # Of the two that are mirrored, the one whose exponentials do not overflow.
        is_mirrored = logits > 0
        y, n = np.where(is_mirrored, 1 - x, x), np.where(is_mirrored, -logits, logits)
        share = y * exprel(n * y) / exprel(n)
        return np.where(is_mirrored, 1 - share, share)

    def _icdf(self, q: Any, probs: Any, logits: Any) -> Any:
        is_mirrored = logits > 0
        p, n = np.where(is_mirrored, 1 - q, q), np.where(is_mirrored, -logits, logits)
        y = p * exprel(n) * log1p_ratio(p * np.expm1(n))
        return np.where(is_mirrored, 1 - y, y)

    def _mean(self, probs: Any, logits: Any) -> Any:
        return mean_of(logits)

    def _variance(self, probs: Any, logits: Any) -> Any:
        h = 0.5 * logits
        is_small = abs(h) < 0.1
        safe = np.where(is_small, 1.0, abs(h))
        series = 1 / 12 - h**2 / 60 + h**4 / 378 - h**6 / 2700
        by_sinh = (np.exp(-safe) / (-0.5 * np.expm1(-2 * safe))) ** 2
        return np.where(is_small, series, 0.25 * (1 / safe**2 - by_sinh))

    def _entropy(self, probs: Any, logits: Any) -> Any:
        return log_norm(logits) - logits * (mean_of(logits) - 0.5)


# Of angles

# Each proposal is taken with a probability of 0.65 or more, so that all fail once in 10**11 samples.
_PROPOSALS = 24
_NODES, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(40))


def _integral(integrand: Any, x: Any) -> Any:
    """The integral from 0 to each x, by a rule of Gauss with 40 points."""
    return sum(w * integrand(x * (0.5 + node)) for node, w in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True)) * x


def _angle(x: Any, concentration: Any) -> Any:
    """An angle that was drawn, as a function of the concentration."""
    return x


def _slope(t: Any, x: Any, drawn: Any, concentration: Any) -> Any:
    """How the angle must turn for its distribution function to stay: by the derivative of that, over the density."""
    mean, top = i1e(concentration) / i0e(concentration), np.cos(x)
    change = _integral(lambda y: (np.cos(y) - mean) * np.exp(concentration * (np.cos(y) - top)), x)
    return -t * change


_follow = custom_jvp(_angle)
_follow.defjvps(None, _slope)


class VonMises(Distribution):
    """The von Mises distribution of angles in [-pi, pi), with mean direction `loc`.

    Samples are drawn by the method of Best and Fisher (1979); their derivatives are implicit.
    """

    arg_constraints: ClassVar = {"loc": real, "concentration": positive}
    has_rsample = True
    _support = real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    def _log_prob(self, x: Any, loc: Any, concentration: Any) -> Any:
        return concentration * cosm1(x - loc) - math.log(2 * math.pi) - np.log(i0e(concentration))

    def _cdf(self, x: Any, loc: Any, concentration: Any) -> Any:
        """The share of the angles from `loc - pi` to `x`, which lies in the turn around `loc`."""
        far = np.minimum(math.pi, 9 / np.sqrt(concentration))
        below = _integral(lambda y: np.exp(concentration * cosm1(y)), np.clip(x - loc, -far, far))
        return 0.5 + below / (2 * math.pi * i0e(concentration))

    def _mean(self, loc: Any, concentration: Any) -> Any:
        return loc

    def _mode(self, loc: Any, concentration: Any) -> Any:
        return loc

    def _variance(self, loc: Any, concentration: Any) -> Any:
        """The circular variance."""
        return 1 - i1e(concentration) / i0e(concentration)

    def _entropy(self, loc: Any, concentration: Any) -> Any:
        mean = i1e(concentration) / i0e(concentration)
        return math.log(2 * math.pi) + np.log(i0e(concentration)) + concentration * (1 - mean)

    def _draw(self, key: Any, shape: Shape, loc: Any, concentration: Any) -> Any:
        kappa = np.broadcast_to(concentration.astype(np.float64), shape)
        is_small = kappa < 1e-4
        safe = np.where(is_small, 1.0, kappa)
        tau = 1 + np.sqrt(1 + 4 * safe**2)
        rho = (tau - np.sqrt(2 * tau)) / (2 * safe)
        r = np.where(is_small, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
        u = open_unit(key, (3, _PROPOSALS, *shape), np.dtype(np.float64))
        z = np.cos(math.pi * u[0])
        f = (1 + r * z) / (r + z)
        c = kappa * (r - f)
        is_taken = (c * (2 - c) > u[1]) | (np.log(c / u[1]) + 1 - c >= 0)
        first = np.argmax(is_taken, axis=0)[None]
        angles = np.sign(u[2] - 0.5) * np.arccos(np.clip(f, -1.0, 1.0))
        drawn = np.take_along_axis(angles, first, 0)[0].astype(loc.dtype)
        turned = _follow(stop_gradient(drawn), np.broadcast_to(concentration, shape)) + loc
        return np.mod(turned + math.pi, 2 * math.pi) - math.pi
