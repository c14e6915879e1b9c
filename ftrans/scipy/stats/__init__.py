"""Distributions of `scipy.stats` under their names: densities and probabilities, on arrays and traced values.

    >>> import ftrans as ft
    >>> import numpy as np
    >>> from ftrans.scipy import stats
    >>> heights = np.array([1.62, 1.75, 1.81])
    >>> def log_likelihood(mean, deviation):
    ...     return np.sum(stats.norm.logpdf(heights, mean, deviation))
    >>> slopes = ft.grad(log_likelihood, argnums=(0, 1))(1.7, 0.1)
    >>> print(*np.round(slopes, 6))
    8.0 -9.0

Continuous ones have `pdf`, `logpdf`, `cdf`, `logcdf`, `sf`, `logsf` and `ppf`, discrete ones `pmf`, `logpmf`, `cdf`,
`logcdf`, `sf` and `logsf`, those of vectors `pdf` and `logpdf`.  All have derivatives with respect to the variable (if
it is continuous), the shape parameters, `loc` and `scale`.  Outside of the support densities are 0, and so are their
derivatives; where the parameters make no sense the result is NaN, as it is in SciPy.
"""

from __future__ import annotations

from typing import Any

from ...base.source import at_line, user_line
from .continuous import cauchy, gumbel_l, gumbel_r, laplace, logistic, norm, skewnorm, t, vonmises
from .discrete import bernoulli, binom, geom, nbinom, poisson, randint
from .half_line import (
    chi2,
    expon,
    f,
    gamma,
    halfnorm,
    invgamma,
    lognorm,
    maxwell,
    pareto,
    rayleigh,
    weibull_max,
    weibull_min,
)
from .interval import (
    beta,
    genextreme,
    triang,
    truncnorm,
    uniform,
)
from .multivariate import dirichlet, multivariate_normal

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "gamma",
    "genextreme",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "halfnorm",
    "invgamma",
    "laplace",
    "logistic",
    "lognorm",
    "maxwell",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "randint",
    "rayleigh",
    "skewnorm",
    "t",
    "triang",
    "truncnorm",
    "uniform",
    "vonmises",
    "weibull_max",
    "weibull_min",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"ftrans.scipy.stats has no {name!r}; it has the distributions {', '.join(__all__)}. For plain arrays there is"
        f" scipy.stats{at_line(user_line())}"
    )


def __dir__() -> list[str]:
    return sorted(__all__)
