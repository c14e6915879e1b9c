"""The noncentral chi-square and F distributions, and their inverses in each argument.

Both are mixtures: with weights of the Poisson distribution of mean nc / 2, of the central distributions with two more
degrees of freedom each.  So every derivative is a mixture of derivatives of the central ones, and that in the mean is
the difference that one event more makes.  The sums run over all terms that matter and are computed on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..elementwise import bitwise_and, div, eq, isinf, mul, neg, select
from ..elementwise.family import Partial
from ..literals import full_like
from . import incomplete_numerics as numerics
from .arithmetic import minus, plus, times
from .family import Special, refused
from .statistics import Slope, distribution, inverse

# Means beyond this have too many terms.
_LARGEST_MEAN = 1e5


def _weights(mean: float, reach: float) -> Any:
    """The probabilities of 0, 1, 2, ... events of the Poisson distribution, as far as they matter.

    `reach` is another number of events about which the terms of the sum may be largest.
    """
    if mean == 0:
        return np.ones(1)
    top = max(mean, min(reach, 10 * mean + 1000))
    events = np.arange(math.ceil(top + 12 * math.sqrt(top) + 40), dtype=np.float64)
    return numerics.gamma_density(np, events + 1, np.full_like(events, mean))


def _mixed(count: int, term: Callable[..., Any], reach: Callable[..., float]) -> Callable[..., Any]:
    """A NumPy function of `count` arrays, the second of them means: the mixture of `term`, for each element.

    `term` takes the numbers of events and the other arguments.
    """

    def one(a: float, mean: float, *rest: float) -> float:
        if not (0 <= mean <= _LARGEST_MEAN and all(map(math.isfinite, (a, *rest)))):
            return math.nan
        weights = _weights(mean, reach(mean, *rest))
        return float(np.sum(weights * term(np.arange(len(weights), dtype=np.float64), a, *rest)))

    def compute(*xs: Any) -> Any:
        with np.errstate(all="ignore"):
            found = [one(*map(float, values)) for values in zip(*map(np.ravel, xs), strict=True)]
        return np.array(found).reshape(np.shape(xs[0])).astype(xs[0].dtype)[()]

    assert count > 1
    return compute


# Chi-square: operands are a = df / 2, the mean nc / 2 and x / 2


def _gamma_density_derivative(n: int, a: Any, x: Any) -> Any:
    """The `n`-th derivative in `a` of x**(a - 1) exp(-x) / gamma(a), which also for negative `a` is entire in it."""
    is_low = a <= 0
    if np.any(is_low):
        # That at a is a / x times that at a + 1.
        next_one = _gamma_density_derivative(n, a + 1, x) * a
        if n:
            next_one = next_one + n * _gamma_density_derivative(n - 1, a + 1, x)
        return np.where(is_low, next_one / x, _gamma_density_derivative(n, np.where(is_low, 1.0, a), x))
    psi = [numerics.polygamma(np, k, a) for k in range(n)]
    density = numerics.gamma_density(np, a, x)
    return density * numerics.bell(lambda i, j: np.log(x) - psi[0] if i == 1 else -psi[i - 1], n)


def _at_zero(order: int, a: Any, at_one: float) -> Any:
    """At 0, a density that goes like x**(a - 1), from its value where a is 1; or one of its derivatives."""
    return np.where(a > 1, 0.0, math.nan if order else np.where(a < 1, math.inf, at_one))


def _gamma_reach(mean: float, x: float) -> float:
    return math.sqrt(mean * max(x, 0.0))


@cache
def gamma_mixture_density(n: int) -> Special:
    """The `n`-th derivative in `a` of the mixture of densities of the gamma distribution of shapes a, a + 1, ..."""

    def term(events: Any, a: float, x: float) -> Any:
        if x > 0:
            return _gamma_density_derivative(n, a + events, np.full_like(events, x))
        return _at_zero(n, a + events, 1.0) if x == 0 else 0.0 * events

    def partials(y: Tracer, a: Tracer, mean: Tracer, x: Tracer) -> list[Partial]:
        density = gamma_mixture_density(n)
        return [
            lambda t: mul(t, gamma_mixture_density(n + 1)(a, mean, x)),
            lambda t: mul(t, minus(density(plus(a, 1.0), mean, x), y)),
            lambda t: mul(t, minus(density(minus(a, 1.0), mean, x), y)),
        ]

    return Special(f"gamma_mixture_density{n}", partials, numpy=_mixed(3, term, _gamma_reach))


@cache
def gamma_mixture(n: int) -> Special:
    """The `n`-th derivative in `a` of the mixture of distribution functions of these."""

    def term(events: Any, a: float, x: float) -> Any:
        if a <= 0 or x <= 0:
            return np.full_like(events, math.nan if a <= 0 else 0.0)
        return numerics.gammainc_derivative(np, n, a + events, np.full_like(events, x))

    def partials(y: Tracer, a: Tracer, mean: Tracer, x: Tracer) -> list[Partial]:
        density = gamma_mixture_density(n)
        return [
            lambda t: mul(t, gamma_mixture(n + 1)(a, mean, x)),
            lambda t: neg(mul(t, density(plus(a, 1.0), mean, x))),
            lambda t: mul(t, density(a, mean, x)),
        ]

    return Special(f"gamma_mixture{n}", partials, numpy=_mixed(3, term, _gamma_reach))


def _chi_square_slopes(x: Tracer, df: Tracer, nc: Tracer) -> list[Slope]:
    a, mean, half = times(df, 0.5), times(nc, 0.5), times(x, 0.5)
    density = gamma_mixture_density(0)
    return [
        lambda: times(density(a, mean, half), 0.5),
        lambda: times(gamma_mixture(1)(a, mean, half), 0.5),
        lambda: times(density(plus(a, 1.0), mean, half), -0.5),
    ]


chndtr = distribution("chndtr", _chi_square_slopes)
chndtrix = inverse("chndtrix", _chi_square_slopes, "xdn", "pdn", function=chndtr)
chndtridf = inverse("chndtridf", _chi_square_slopes, "xdn", "xpn", function=chndtr)
chndtrinc = inverse("chndtrinc", _chi_square_slopes, "xdn", "xdp", function=chndtr)


# F: operands are a = dfn / 2, the mean nc / 2, b = dfd / 2 and the odds dfn f / dfd


def _odds_density_derivative(m: int, n: int, a: Any, b: Any, odds: Any) -> Any:
    """The derivative, `m` times in `a` and `n` times in `b`, of odds**(a - 1) (1 + odds)**(-a - b) / beta(a, b)."""
    x, rest = odds / (1 + odds), 1 / (1 + odds)
    density = np.exp(numerics.log_beta_factor(np, a, b, x, rest) - np.log(odds))

    def kappa(i: int, j: int) -> Any:
        if i and j:
            return numerics.polygamma(np, i + j - 1, a + b)
        slope = numerics.polygamma_step(np, i + j - 1, *((a, b) if i else (b, a)))
        return slope if i + j > 1 else slope + (np.log(x) if i else -np.log1p(odds))

    return density * numerics.bell(kappa, m, n)


def _beta_reach(mean: float, b: float, odds: float) -> float:
    return math.sqrt(max(mean * (mean + b) * odds, 0.0))


def _beta_mixture(
    name: str,
    term: Callable[..., Any],
    partials: Callable[..., list[Partial]],
    at_zero: Callable[[Any, float], Any] = lambda a, b: 0.0 * a,
) -> Special:
    """A mixture over a, a + 1, ... of a function of positive (a, b, odds), and of (a, b) where the odds are 0."""

    def valid(events: Any, a: float, b: float, odds: float) -> Any:
        if a <= 0 or b <= 0 or odds < 0:
            return np.full_like(events, math.nan)
        if odds == 0:
            return at_zero(a + events, b)
        return term(a + events, np.full_like(events, b), np.full_like(events, odds))

    return Special(name, partials, numpy=_mixed(4, valid, _beta_reach))


@cache
def odds_mixture_density(m: int, n: int, k: int = 0) -> Special:
    """The mixture of densities of the odds, differentiated in `a`, in `b` and, up to once, in the odds."""

    def term(a: Any, b: Any, odds: Any) -> Any:
        density = _odds_density_derivative(m, n, a, b, odds)
        if k == 0:
            return density
        # The slope of the logarithm is linear in a and b.
        found = density * ((a - 1) / odds - (a + b) / (1 + odds))
        if m:
            found = found + m * _odds_density_derivative(m - 1, n, a, b, odds) * (1 / odds - 1 / (1 + odds))
        if n:
            found = found - n * _odds_density_derivative(m, n - 1, a, b, odds) / (1 + odds)
        return found

    def partials(y: Tracer, a: Tracer, mean: Tracer, b: Tracer, odds: Tracer) -> list[Partial]:
        in_odds: Partial = lambda t: mul(t, odds_mixture_density(m, n, 1)(a, mean, b, odds))  # noqa: E731
        return [
            lambda t: mul(t, odds_mixture_density(m + 1, n, k)(a, mean, b, odds)),
            lambda t: mul(t, minus(odds_mixture_density(m, n, k)(plus(a, 1.0), mean, b, odds), y)),
            lambda t: mul(t, odds_mixture_density(m, n + 1, k)(a, mean, b, odds)),
            in_odds if k == 0 else refused("ncfdtr", "f", "its third derivative is not known here"),
        ]

    def at_zero(a: Any, b: float) -> Any:
        return _at_zero(m + n + k, a, b)

    return _beta_mixture(f"odds_mixture_density{m}{n}{k}", term, partials, at_zero)


@cache
def odds_mixture_step(m: int, n: int) -> Special:
    """What one event more makes of the mixture of distribution functions, differentiated in `a` and `b`."""

    def term(a: Any, b: Any, odds: Any) -> Any:
        # I(a + 1, b) - I(a, b) is -odds density / a, DLMF 8.17.20.
        return -odds * sum(
            math.comb(m, i)
            * _odds_density_derivative(m - i, n, a, b, odds)
            * (-1) ** i
            * math.factorial(i)
            / a ** (i + 1)
            for i in range(m + 1)
        )

    def partials(y: Tracer, a: Tracer, mean: Tracer, b: Tracer, odds: Tracer) -> list[Partial]:
        density, higher = odds_mixture_density(m, n), plus(a, 1.0)
        return [
            lambda t: mul(t, odds_mixture_step(m + 1, n)(a, mean, b, odds)),
            lambda t: mul(t, minus(odds_mixture_step(m, n)(higher, mean, b, odds), y)),
            lambda t: mul(t, odds_mixture_step(m, n + 1)(a, mean, b, odds)),
            lambda t: mul(t, minus(density(higher, mean, b, odds), density(a, mean, b, odds))),
        ]

    return _beta_mixture(f"odds_mixture_step{m}{n}", term, partials)


@cache
def odds_mixture(m: int, n: int) -> Special:
    """The mixture of distribution functions of the odds, differentiated `m` times in `a` and `n` times in `b`."""

    def term(a: Any, b: Any, odds: Any) -> Any:
        if odds[0] > 1:
            return -numerics.betainc_derivative(np, n, m, b, a, 1 / (1 + odds))
        return numerics.betainc_derivative(np, m, n, a, b, odds / (1 + odds))

    def partials(y: Tracer, a: Tracer, mean: Tracer, b: Tracer, odds: Tracer) -> list[Partial]:
        return [
            lambda t: mul(t, odds_mixture(m + 1, n)(a, mean, b, odds)),
            lambda t: mul(t, odds_mixture_step(m, n)(a, mean, b, odds)),
            lambda t: mul(t, odds_mixture(m, n + 1)(a, mean, b, odds)),
            lambda t: mul(t, odds_mixture_density(m, n)(a, mean, b, odds)),
        ]

    return _beta_mixture(f"odds_mixture{m}{n}", term, partials)


def _f_slopes(dfn: Tracer, dfd: Tracer, nc: Tracer, f: Tracer) -> list[Slope]:
    scale = div(dfn, dfd)
    operands = times(dfn, 0.5), times(nc, 0.5), times(dfd, 0.5), mul(scale, f)

    def density() -> Tracer:
        return odds_mixture_density(0, 0)(*operands)

    def moved() -> Tracer:
        # At 0 the density may be infinite, but less so than 1 / f.
        found = density()
        is_edge = bitwise_and(eq(f, full_like(f, 0)), isinf(found))
        return select(is_edge, full_like(f, 0), mul(select(is_edge, full_like(f, 0), found), f))

    return [
        lambda: plus(times(odds_mixture(1, 0)(*operands), 0.5), div(moved(), dfd)),
        lambda: minus(times(odds_mixture(0, 1)(*operands), 0.5), div(mul(moved(), scale), dfd)),
        lambda: times(odds_mixture_step(0, 0)(*operands), 0.5),
        lambda: mul(density(), scale),
    ]


ncfdtr = distribution("ncfdtr", _f_slopes)
ncfdtri = inverse("ncfdtri", _f_slopes, "ndcf", "ndcp", function=ncfdtr)
ncfdtridfd = inverse("ncfdtridfd", _f_slopes, "ndcf", "npcf", function=ncfdtr)
ncfdtridfn = inverse("ncfdtridfn", _f_slopes, "ndcf", "pdcf", function=ncfdtr)
ncfdtrinc = inverse("ncfdtrinc", _f_slopes, "ndcf", "ndpf", function=ncfdtr)
