"""Cross entropies of two families: the mean of `-q.log_prob(x)` over values x of `p`.

Of the first distribution a few means are needed, whatever the second is: of x, of its square, of its logarithm, of that
of 1 - x, and of an exponential.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...scipy.special import betaln, gammaln, ndtr, psi, xlogy
from .constraints import Interval
from .discrete import Bernoulli, Poisson
from .distribution import Distribution
from .half_line import Exponential, Gamma, InverseGamma, Pareto, Weibull
from .interval import Beta, ContinuousBernoulli, Kumaraswamy, VonMises, log_norm
from .location_scale import Gumbel, HalfNormal, Laplace, LogNormal, Normal, Uniform
from .numbers import operands

__all__: list[str] = []


def _of_uniform_log(low: Any, high: Any) -> Any:
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


# The mean of log(x), by the family
_LOG: dict[type[Distribution], Callable[..., Any]] = {
    Gamma: lambda a, rate: psi(a) - np.log(rate),
    Exponential: lambda rate: -np.euler_gamma - np.log(rate),
    InverseGamma: lambda a, rate: np.log(rate) - psi(a),
    LogNormal: lambda loc, scale: loc,
    Weibull: lambda scale, k: np.log(scale) - np.euler_gamma / k,
    Pareto: lambda scale, alpha: np.log(scale) + 1 / alpha,
    HalfNormal: lambda scale: np.log(scale) - 0.5 * (np.euler_gamma + math.log(2)),
    Beta: lambda a, b: psi(a) - psi(a + b),
    Kumaraswamy: lambda a, b: -(psi(b + 1) + np.euler_gamma) / a,
    Uniform: _of_uniform_log,
    Bernoulli: lambda probs, logits: np.zeros_like(probs),
}
# The mean of log(1 - x)
_LOG_REST: dict[type[Distribution], Callable[..., Any]] = {
    Beta: lambda a, b: psi(b) - psi(a + b),
    Uniform: lambda low, high: _of_uniform_log(1 - high, 1 - low),
}


def _of_laplace_exponential(c: Any, loc: Any, scale: Any) -> Any:
    is_finite = c * scale < 1
    return np.where(is_finite, np.exp(-c * loc) / (1 - np.where(is_finite, c * scale, 0.0) ** 2), math.inf)


# The mean of exp(-c x)
_EXPONENTIAL: dict[type[Distribution], Callable[..., Any]] = {
    Normal: lambda c, loc, scale: np.exp(-c * loc + 0.5 * (c * scale) ** 2),
    Laplace: _of_laplace_exponential,
    Exponential: lambda c, rate: rate / (rate + c),
    Gamma: lambda c, a, rate: np.exp(-a * np.log1p(c / rate)),
    Uniform: lambda c, low, high: np.exp(-c * low) * -np.expm1(-c * (high - low)) / (c * (high - low)),
}


def _mean_of(table: dict[type[Distribution], Callable[..., Any]], p: Any, *more: Any) -> Any:
    """A mean by the family of a distribution, or None if it has no closed form."""
    for cls, formula in table.items():
        if isinstance(p, cls):
            return formula(*operands([*more, *p._parameters()]))
    return None


# Cross entropies, by the second family


def _to_normal(p: Any, q: Any) -> Any:
    mean, variance, loc, scale = operands([p.mean, p.variance, q.loc, q.scale])
    has_variance = np.isfinite(variance)
    square = np.where(has_variance, variance, 0.0) + (np.where(has_variance, mean, loc) - loc) ** 2
    found = 0.5 * square / scale**2 + np.log(scale) + 0.5 * math.log(2 * math.pi)
    return np.where(has_variance, found, math.inf)


def _to_half_normal(p: Any, q: Any) -> Any:
    return _to_normal(p, Normal(0.0, q.scale, validate_args=False)) - math.log(2)


def _to_exponential(p: Any, q: Any) -> Any:
    mean, rate = operands([p.mean, q.rate])
    return rate * mean - np.log(rate)


def _to_gamma(p: Any, q: Any) -> Any:
    log_x = _mean_of(_LOG, p)
    if log_x is None:
        return None
    log_x, mean, a, rate = operands([log_x, p.mean, *q._parameters()])
    return rate * mean - (a - 1) * log_x - a * np.log(rate) + gammaln(a)


def _to_pareto(p: Any, q: Any) -> Any:
    log_x = _mean_of(_LOG, p)
    if log_x is None:
        return None
    log_x, scale, alpha = operands([log_x, q.scale, q.alpha])
    return (alpha + 1) * log_x - np.log(alpha) - alpha * np.log(scale)


def _to_beta(p: Any, q: Any) -> Any:
    log_x, log_rest = _mean_of(_LOG, p), _mean_of(_LOG_REST, p)
    if log_x is None or log_rest is None:
        return None
    log_x, log_rest, a, b = operands([log_x, log_rest, q.concentration1, q.concentration0])
    return betaln(a, b) - (a - 1) * log_x - (b - 1) * log_rest


def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    mean, logits = operands([p.mean, q.logits])
    return log_norm(logits) - logits * (mean - 0.5)


def _to_uniform(p: Any, q: Any) -> Any:
    low, high = operands([q.low, q.high])
    return np.log(high - low)


def _to_gumbel(p: Any, q: Any) -> Any:
    loc, scale = operands([q.loc, q.scale])
    exponential = _mean_of(_EXPONENTIAL, p, 1 / scale)
    if exponential is None:
        return None
    mean, exponential, loc, scale = operands([p.mean, exponential, q.loc, q.scale])
    return (mean - loc) / scale + np.exp(loc / scale) * exponential + np.log(scale)


def _to_laplace(p: Any, q: Any) -> Any:
    if not isinstance(p, Normal):
        return None
    mean, deviation, loc, scale = operands([p.loc, p.scale, q.loc, q.scale])
    # The mean distance of a normal number from `loc` (the folded normal distribution).
    z = (mean - loc) / deviation
    distance = deviation * math.sqrt(2 / math.pi) * np.exp(-0.5 * z**2) + (mean - loc) * (2 * ndtr(z) - 1)
    return distance / scale + np.log(2 * scale)


def _to_poisson(p: Any, q: Any) -> Any:
    if not isinstance(p, Bernoulli):
        return None
    mean, rate = operands([p.probs, q.rate])
    return rate - xlogy(mean, rate)


_CROSS: dict[type[Distribution], Callable[[Any, Any], Any]] = {
    Normal: _to_normal,
    HalfNormal: _to_half_normal,
    Exponential: _to_exponential,
    Gamma: _to_gamma,
    Pareto: _to_pareto,
    Beta: _to_beta,
    ContinuousBernoulli: _to_continuous_bernoulli,
    Uniform: _to_uniform,
    Gumbel: _to_gumbel,
    Laplace: _to_laplace,
    Poisson: _to_poisson,
}


def cross_entropy(p: Distribution, q: Distribution) -> Any:
    """The mean of `-q.log_prob(x)` over values of `p`; None if it has no closed form.

    It is infinite where values of `p` lie outside of the support of `q`.
    """
    inner, outer = p.support, q.support
    formula = next((f for cls, f in _CROSS.items() if isinstance(q, cls)), None)
    if formula is None or not isinstance(inner, Interval) or not isinstance(outer, Interval):
        return None
    if inner.is_discrete is not outer.is_discrete or isinstance(p, VonMises):
        # Mean and variance of angles are those of directions.
        return None
    found = formula(p, q)
    if found is None:
        return None
    lower, upper, least, most = operands([inner.lower, inner.upper, outer.lower, outer.upper])
    return np.where((least <= lower) & (upper <= most), found, math.inf)
