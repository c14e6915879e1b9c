"""The noncentral t distribution and its inverses.

With g the density of s, the root of a chi-square variable by its degrees of freedom df, the distribution function is
the integral of Phi(t s - nc) g(s) over positive s.  All of its derivatives have one form: the integral of

    s**k  times  the l-th derivative of the normal density, at t s - nc  times  the n-th derivative of g in df,

where l = -1 stands for the normal distribution function itself.  They are computed on the host.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from ...core.trace import Tracer
from ..elementwise import mul, neg
from ..elementwise.family import Partial
from . import incomplete_numerics as numerics
from .family import Special
from .statistics import Slope, distribution, inverse


def _log_density(df: float, log_s: Any) -> Any:
    """log g(s): that of the gamma distribution of shape df / 2, at df s**2 / 2."""
    # Below this, where s**2 would underflow, g is a power of s.
    near = np.maximum(log_s, -100.0)
    half = np.full_like(near, df / 2)
    return numerics.log_gamma_factor(np, half, half * np.exp(2 * near)) + math.log(2) - near + (df - 1) * (log_s - near)


def _density_ratio(n: int, df: float, log_s: Any) -> Any:
    """The `n`-th derivative of g in df, by g."""
    half = np.asarray(df / 2)

    def kappa(i: int, j: int) -> Any:
        # Of (df / 2) log(df / 2) - log gamma(df / 2) + (df - 1) log(s) - df s**2 / 2.
        slope = -numerics.polygamma(np, i - 1, half) / 2**i
        if i == 1:
            return slope + 0.5 * np.log(half) + 0.5 + log_s - 0.5 * np.exp(2 * log_s)
        return slope + 0.5 * (-1) ** i * math.factorial(i - 2) / df ** (i - 1)

    return numerics.bell(kappa, n)


def _integral(k: int, l: int, n: int, df: float, nc: float, t: float) -> float:  # noqa: E741
    from scipy.special import ndtr

    if not (df > 0 and math.isfinite(df) and math.isfinite(nc) and math.isfinite(t)):
        return math.nan
    upper = l == -1 and n > 0 and t > nc

    def integrand(log_s: Any) -> Any:
        """What is integrated over log(s)."""
        z = t * np.exp(log_s) - nc
        logs = _log_density(df, log_s) + (k + 1) * log_s
        if l >= 0:
            # The derivatives of the normal density are Hermite polynomials times itself.
            hermite = np.polynomial.HermiteE.basis(l)(z) * (-1) ** l
            factor = hermite * np.exp(logs - 0.5 * z * z) / math.sqrt(2 * math.pi)
        else:
            # The derivatives of g integrate to 0, so that Phi may stand for Phi - 1.
            factor = np.exp(logs) * (-ndtr(-z) if upper else ndtr(z))
        return factor * _density_ratio(n, df, log_s)

    # The largest value over log(s), where the normal density counts, or about where it does.
    falls = l >= 0 or t < nc or upper
    slope, curvature = (t * nc, df + t * t) if falls else (0.0, df)
    power = k + df
    mode = (slope + math.sqrt(slope * slope + 4 * curvature * power)) / (2 * curvature)
    width = 1 / math.sqrt(power + curvature * mode * mode)
    points, weights = numerics.exponential_rule()
    # Towards 0 it falls off like a power of s, for few degrees of freedom slowly.
    reach = max(width, 1 / power)
    left = np.sum(weights * integrand(math.log(mode) - reach * points))
    u = width * points
    right = np.sum(weights * integrand(math.log(mode) + np.log1p(u)) / (1 + u))
    return float(reach * left + width * right)


@cache
def t_integral(k: int, l: int, n: int) -> Special:  # noqa: E741
    """The integral that the module is about, as a function of df, nc and t."""

    def compute(df: Any, nc: Any, t: Any) -> Any:
        with np.errstate(all="ignore"):
            operands = zip(*(map(float, np.ravel(x)) for x in (df, nc, t)), strict=True)
            found = [_integral(k, l, n, *values) for values in operands]
        return np.array(found).reshape(np.shape(t)).astype(t.dtype)[()]

    return Special(f"t_integral_{k}_{l}_{n}", _partials(k, l, n), numpy=compute)


def _partials(k: int, l: int, n: int) -> Any:  # noqa: E741
    def partials(y: Tracer, df: Tracer, nc: Tracer, t: Tracer) -> list[Partial]:
        return [
            lambda dt: mul(dt, t_integral(k, l, n + 1)(df, nc, t)),
            lambda dt: neg(mul(dt, t_integral(k, l + 1, n)(df, nc, t))),
            lambda dt: mul(dt, t_integral(k + 1, l + 1, n)(df, nc, t)),
        ]

    return partials


def _slopes(df: Tracer, nc: Tracer, t: Tracer) -> list[Slope]:
    return [
        lambda: t_integral(0, -1, 1)(df, nc, t),
        lambda: neg(t_integral(0, 0, 0)(df, nc, t)),
        lambda: t_integral(1, 0, 0)(df, nc, t),
    ]


nctdtr = distribution("nctdtr", _slopes)
nctdtrit = inverse("nctdtrit", _slopes, "dnt", "dnp", function=nctdtr)
nctdtridf = inverse("nctdtridf", _slopes, "dnt", "pnt", function=nctdtr)
nctdtrinc = inverse("nctdtrinc", _slopes, "dnt", "dpt", function=nctdtr)
