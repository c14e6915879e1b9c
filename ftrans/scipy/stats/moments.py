"""Means, variances and entropies of distributions in standard form, by name, as functions of their shape parameters.

Formulas are those of Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions" (1994) and "Univariate
Discrete Distributions" (2005).  Where a moment diverges it is infinite, as in SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..special import betaln, gamma, gammaln, psi

__all__ = ["ENTROPIES", "MEANS", "VARIANCES"]

Formula = Callable[..., Any]


def _where_finite(is_finite: Any, value: Formula, *shapes: Any) -> Any:
    """A moment where it is finite, and infinity elsewhere; formulas are computed with 5 there."""
    return np.where(is_finite, value(*(np.where(is_finite, s, 5.0) for s in shapes)), math.inf)


def _weibull_variance(c: Any) -> Any:
    return gamma(1 + 2 / c) - gamma(1 + 1 / c) ** 2


def _skew_mean(a: Any) -> Any:
    return math.sqrt(2 / math.pi) * a / np.sqrt(1 + a * a)


def _t_variance(df: Any) -> Any:
    return np.where(df > 1, _where_finite(df > 2, lambda df: df / (df - 2), df), math.nan)


MEANS: dict[str, Formula] = {
    **dict.fromkeys(("norm", "laplace", "logistic"), lambda: 0.0),
    "gumbel_r": lambda: np.euler_gamma,
    "gumbel_l": lambda: -np.euler_gamma,
    "t": lambda df: _where_finite(df > 1, lambda df: 0.0 * df, df),
    "skewnorm": _skew_mean,
    "expon": lambda: 1.0,
    "gamma": lambda a: a,
    "chi2": lambda df: df,
    "invgamma": lambda a: _where_finite(a > 1, lambda a: 1 / (a - 1), a),
    "f": lambda dfn, dfd: _where_finite(dfd > 2, lambda d: d / (d - 2), dfd),
    "lognorm": lambda s: np.exp(0.5 * s * s),
    "weibull_min": lambda c: gamma(1 + 1 / c),
    "weibull_max": lambda c: -gamma(1 + 1 / c),
    "rayleigh": lambda: math.sqrt(math.pi / 2),
    "maxwell": lambda: 2 * math.sqrt(2 / math.pi),
    "halfnorm": lambda: math.sqrt(2 / math.pi),
    "pareto": lambda b: _where_finite(b > 1, lambda b: b / (b - 1), b),
    "beta": lambda a, b: a / (a + b),
    "uniform": lambda: 0.5,
    "triang": lambda c: (1 + c) / 3,
    "bernoulli": lambda p: p,
    "binom": lambda n, p: n * p,
    "poisson": lambda mu: mu,
    "geom": lambda p: 1 / p,
    "nbinom": lambda n, p: n * (1 - p) / p,
    "randint": lambda low, high: (low + high - 1) / 2,
}
VARIANCES: dict[str, Formula] = {
    "norm": lambda: 1.0,
    "laplace": lambda: 2.0,
    "logistic": lambda: math.pi**2 / 3,
    **dict.fromkeys(("gumbel_r", "gumbel_l"), lambda: math.pi**2 / 6),
    "t": _t_variance,
    "skewnorm": lambda a: 1 - _skew_mean(a) ** 2,
    "expon": lambda: 1.0,
    "gamma": lambda a: a,
    "chi2": lambda df: 2 * df,
    "invgamma": lambda a: _where_finite(a > 2, lambda a: 1 / ((a - 1) ** 2 * (a - 2)), a),
    "f": lambda dfn, dfd: _where_finite(
        dfd > 4, lambda n, d: 2 * d * d * (n + d - 2) / (n * (d - 2) ** 2 * (d - 4)), dfn, dfd
    ),
    "lognorm": lambda s: np.expm1(s * s) * np.exp(s * s),
    **dict.fromkeys(("weibull_min", "weibull_max"), _weibull_variance),
    "rayleigh": lambda: 2 - math.pi / 2,
    "maxwell": lambda: 3 - 8 / math.pi,
    "halfnorm": lambda: 1 - 2 / math.pi,
    "pareto": lambda b: _where_finite(b > 2, lambda b: b / ((b - 1) ** 2 * (b - 2)), b),
    "beta": lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
    "uniform": lambda: 1 / 12,
    "triang": lambda c: (1 - c + c * c) / 18,
    "bernoulli": lambda p: p * (1 - p),
    "binom": lambda n, p: n * p * (1 - p),
    "poisson": lambda mu: mu,
    "geom": lambda p: (1 - p) / (p * p),
    "nbinom": lambda n, p: n * (1 - p) / (p * p),
    "randint": lambda low, high: ((high - low) ** 2 - 1) / 12,
}


def _gamma_entropy(a: Any) -> Any:
    return a + gammaln(a) + (1 - a) * psi(a)


def _t_entropy(df: Any) -> Any:
    half, above = 0.5 * df, 0.5 * (df + 1)
    return above * (psi(above) - psi(half)) + 0.5 * np.log(df) + betaln(half, 0.5)


def _beta_entropy(a: Any, b: Any) -> Any:
    return betaln(a, b) - (a - 1) * psi(a) - (b - 1) * psi(b) + (a + b - 2) * psi(a + b)


ENTROPIES: dict[str, Formula] = {
    "norm": lambda: 0.5 * math.log(2 * math.pi * math.e),
    "cauchy": lambda: math.log(4 * math.pi),
    "laplace": lambda: 1 + math.log(2),
    "logistic": lambda: 2.0,
    **dict.fromkeys(("gumbel_r", "gumbel_l"), lambda: np.euler_gamma + 1),
    "t": _t_entropy,
    "expon": lambda: 1.0,
    "gamma": _gamma_entropy,
    "chi2": lambda df: math.log(2) + _gamma_entropy(0.5 * df),
    "lognorm": lambda s: 0.5 * (1 + math.log(2 * math.pi)) + np.log(s),
    **dict.fromkeys(("weibull_min", "weibull_max"), lambda c: np.euler_gamma * (1 - 1 / c) - np.log(c) + 1),
    "rayleigh": lambda: 0.5 * np.euler_gamma + 1 - 0.5 * math.log(2),
    "maxwell": lambda: np.euler_gamma + 0.5 * math.log(2 * math.pi) - 0.5,
    "halfnorm": lambda: 0.5 * math.log(math.pi * math.e / 2),
    "pareto": lambda b: 1 + 1 / b - np.log(b),
    "beta": _beta_entropy,
    "uniform": lambda: 0.0,
    "triang": lambda c: 0.5 - math.log(2),
}
