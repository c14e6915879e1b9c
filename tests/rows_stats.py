"""Rows of the table of functions: distributions, each with some of its methods in one row.

The first derivatives of all of their methods are tested in tests/test_stats.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from function_rows import row
from sampling import given, positive_definite, uniform

MOST = ("logpdf", "cdf")
PLACE = (given(0.2), given(1.3))
INSIDE = uniform(0.3, 0.9, (2,))
POSITIVE = uniform(0.5, 2, (2,))
LINE = uniform(-1.5, 1.5, (2,))


def every(*methods: str) -> Callable[..., Any]:
    """A call of methods of a distribution."""

    def call(distribution: Any, x: Any, *params: Any) -> Any:
        return [getattr(distribution, method)(x, *params) for method in methods]

    return call


def rows(names: str, source: Any, *shapes: float, methods: tuple[str, ...] = MOST) -> None:
    """A row for each of some distributions."""
    for name in names.split():
        row(f"scipy.stats.{name}", source, *map(given, shapes), *PLACE, call=every(*methods), dtypes=())


rows("norm", LINE, methods=("pdf", "logpdf", "logcdf"))
rows("cauchy logistic gumbel_r gumbel_l", LINE)
rows("laplace expon rayleigh maxwell halfnorm", POSITIVE)
rows("t", LINE, 2.5, methods=("logpdf",))
rows("skewnorm", LINE, 1.3)
rows("vonmises", LINE, 1.7, methods=("pdf", "logpdf"))
rows("chi2 invgamma lognorm weibull_min", POSITIVE, 1.6)
rows("gamma", POSITIVE, 1.6, methods=("pdf", "logpdf", "cdf"))
rows("f", POSITIVE, 3.3, 4.2, methods=("logpdf",))
rows("beta", INSIDE, 1.7, 2.6, methods=("pdf", "logpdf"))
rows("uniform", INSIDE)
rows("triang", INSIDE, 0.1)
rows("genextreme", LINE, 0.2)
rows("truncnorm", INSIDE, -0.7, 1.8, methods=("logpdf",))
rows("pareto", uniform(2, 3, (2,)), 2.4)
rows("weibull_max", uniform(-2, -0.5, (2,)), 1.6)

for name, shapes, places in (
    ("bernoulli", (0.3,), (1,)),
    ("geom", (0.3,), (1,)),
    ("poisson", (2.2,), (1,)),
    ("binom", (5.0, 0.3), (2,)),
    ("nbinom", (3.0, 0.4), (2,)),
):
    numbers = given([0, 1] if name == "bernoulli" else [1, 3], int)
    row(
        f"scipy.stats.{name}",
        numbers,
        *map(given, shapes),
        call=every("logpmf", "cdf"),
        differentiated=places,
        dtypes=(),
    )

# Its bounds are whole numbers, so a factor is what there is to differentiate with respect to.
row("scipy.stats.randint", given([1, 7], int), given(0.7), call=lambda f, k, x: x * f.pmf(k, 0, 5), dtypes=())

for method in ("pdf", "logpdf"):
    row(
        f"scipy.stats.multivariate_normal.{method}",
        uniform(-1, 1, (2, 3)),
        uniform(-1, 1, (3,)),
        positive_definite(3, 3),
        hermitian=(2,),
        dtypes=(),
    )
row("scipy.stats.dirichlet.logpdf", given([0.2, 0.3]), given([1.2, 2.0, 0.7]), dtypes=())
row(
    "scipy.stats.multivariate_normal.logpdf",
    uniform(-1, 1, (2, 2)),
    uniform(-1, 1, (3, 2)),
    # Covariances of rank 2, and points in the space that they span.
    call=lambda f, z, a: f(z @ a.T, None, a @ a.T, allow_singular=True),
    note="singular",
    looseness=100,
    dtypes=(),
)
row("scipy.stats.multivariate_normal.entropy", given([0.0, 0.0]), positive_definite(2, 2), hermitian=(1,), dtypes=())
row(
    "scipy.stats.multivariate_t.logpdf",
    uniform(-1, 1, (2, 2)),
    uniform(-1, 1, (2,)),
    positive_definite(2, 2),
    given(2.7),
    hermitian=(2,),
    dtypes=(),
)
row(
    "scipy.stats.multinomial.logpmf",
    given([1, 2], int),
    given(3, int),
    given(0.4),
    call=lambda f, x, n, p: f(x, n, np.stack([p, 1 - p])),
    dtypes=(),
)
row(
    "scipy.stats.gaussian_kde",
    uniform(-1, 1, (2, 5)),
    given(0.4),
    uniform(0.5, 1.5, (5,)),
    uniform(-1, 1, (2, 2)),
    call=lambda f, data, width, weights, x: [f(data, width, weights)(x), f(data, weights=weights).logpdf(x)],
    looseness=10,
    dtypes=(),
)
row(
    "scipy.stats.gaussian_kde",
    uniform(-1, 1, (4,)),
    given(0.3),
    call=lambda f, data, x: [
        f(data, "silverman").integrate_box_1d(-0.4, x),
        f(data).integrate_gaussian(x, 0.7),
        f(data).integrate_kde(f(2 * data)),
    ],
    note="integrals",
    looseness=10,
    dtypes=(),
)

# Functions of samples

SAMPLE, OTHER = uniform(0.5, 2, (4,)), uniform(0.5, 2, (4,))
ONCE: dict[str, Any] = {"dtypes": (), "looseness": 10}
MOST_OF_SAMPLES = (
    "sem", "variation", "gmean", "hmean", "gstd", "iqr", "tstd", "tsem", "entropy", "circmean", "circvar", "circstd",
    "zscore", "gzscore",
)  # fmt: skip
for name in MOST_OF_SAMPLES:
    row(f"scipy.stats.{name}", SAMPLE, **ONCE)
row("scipy.stats.skew", uniform(0, 1, (4, 2)), axis=0, bias=False, keepdims=True, **ONCE)
row("scipy.stats.kurtosis", uniform(0, 1, (2, 5)), axis=1, bias=False, **ONCE)
row("scipy.stats.moment", SAMPLE, call=lambda f, x: f(x, [2, 3]), **ONCE)
row("scipy.stats.pmean", SAMPLE, p=2.5, weights=[1.0, 2.0, 0.5, 1.0], **ONCE)
row("scipy.stats.trim_mean", uniform(0, 1, (5, 2)), proportiontocut=0.2, axis=None, keepdims=True, **ONCE)
row("scipy.stats.tmean", given([0.1, 0.4, 0.9]), limits=(0.2, None), **ONCE)
row("scipy.stats.tvar", given([0.1, 0.4, 0.9, 1.2]), limits=(0.2, 1.0), **ONCE)
row("scipy.stats.median_abs_deviation", given([0.1, 0.4, 0.9, 1.6]), scale="normal", **ONCE)
row("scipy.stats.zmap", SAMPLE, OTHER, ddof=1, **ONCE)
row("scipy.stats.describe", SAMPLE, call=lambda f, x: list(f(x))[2:], **ONCE)
row("scipy.stats.entropy", SAMPLE, OTHER, base=2, note="relative", **ONCE)
row("scipy.stats.boxcox_llf", given(0.3), SAMPLE, **ONCE)
row("scipy.stats.wasserstein_distance", SAMPLE, uniform(1, 3, (3,)), **ONCE)
row(
    "scipy.stats.energy_distance",
    given([0.1, 0.5, 0.8]),
    given([0.3, 0.9]),
    uniform(0.5, 1, (3,)),
    call=lambda f, u, v, w: f(u, v, w),
    **ONCE,
)
TWO = {"call": lambda f, *samples: list(f(*samples)), "order": 1, **ONCE}
for name in ["pearsonr", "linregress", "ttest_rel", "ttest_ind", "f_oneway"]:
    row(f"scipy.stats.{name}", SAMPLE, OTHER, **TWO)
row("scipy.stats.ttest_1samp", SAMPLE, given(1.3), **TWO)
row("scipy.stats.jarque_bera", SAMPLE, **TWO)
row("scipy.stats.chisquare", SAMPLE, **TWO)
row("scipy.stats.power_divergence", SAMPLE, lambda_="neyman", **TWO)
row(
    "scipy.stats.ttest_ind_from_stats",
    *map(given, (1.2, 0.4, 1.9, 0.7)),
    call=lambda f, a, b, c, d: list(f(a, b, 5, c, d, 6, equal_var=False)),
    order=1,
    **ONCE,
)
