"""Functions of samples: correlation, lines through points, and tests whose probabilities have derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ..special import betainc, stdtr
from .half_line import chi2, f
from .results import LinregressResult, PearsonRResult, SignificanceResult, TtestResult
from .summaries import count, implemented, kurtosis, sample, skew

__all__ = [
    "chisquare", "f_oneway", "jarque_bera", "linregress", "pearsonr", "power_divergence", "ttest_1samp", "ttest_ind",
    "ttest_ind_from_stats", "ttest_rel",
]  # fmt: skip


def _probability(statistic: Any, df: Any, alternative: str) -> Any:
    """The probability of a t statistic, on one side or on both."""
    below = {"less": statistic, "greater": -statistic, "two-sided": -np.abs(statistic)}
    if alternative not in below:
        raise ValueError(
            f"alternative must be 'less', 'greater' or 'two-sided', not {alternative!r}{at_line(user_line())}"
        )
    return stdtr(df, below[alternative]) * (2 if alternative == "two-sided" else 1)


def _reduced(x: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """The mean and the variance of a sample, without bias."""
    return np.mean(x, axis=axis, keepdims=keepdims), np.var(x, axis=axis, ddof=1, keepdims=keepdims)


# Correlation and lines


@implemented
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0) -> PearsonRResult:
    """Pearson's coefficient of correlation, and the probability of a larger one by chance."""
    if method is not None:
        raise ValueError(f"pearsonr of traced samples takes method=None only, not {method!r}{at_line(user_line())}")
    x, along = sample(x, axis)
    y, _ = sample(y, axis)
    x, y = (z - np.mean(z, axis=along, keepdims=True) for z in (x, y))
    # Scaled before squares are taken, as in SciPy, so that they neither overflow nor vanish.
    x, y = (z / np.linalg.norm(z, axis=along, keepdims=True) for z in (x, y))
    r = np.clip(np.sum(x * y, axis=along), -1.0, 1.0)
    n = count(x, along)
    if n == 2:
        return PearsonRResult(np.round(r), np.where(np.isnan(r), r, 1.0))
    sides = {"less": r, "greater": -r, "two-sided": -np.abs(r)}
    if alternative not in sides:
        raise ValueError(f"`alternative` must be 'less', 'greater' or 'two-sided'{at_line(user_line())}")
    half = 0.5 * n - 1
    below = betainc(half, half, 0.5 * (1 + sides[alternative]))
    return PearsonRResult(r, below * (2 if alternative == "two-sided" else 1))


@implemented
def linregress(
    x: Any,
    y: Any,
    alternative: str = "two-sided",
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> LinregressResult:
    """The line through points with the least sum of squares, its correlation, probability and standard errors."""
    x, along = sample(x, axis, nan_policy)
    y, _ = sample(y, axis, nan_policy)
    n = count(x, along)
    middle, level = (np.mean(z, axis=along, keepdims=keepdims) for z in (x, y))
    dx, dy = (z - np.mean(z, axis=along, keepdims=True) for z in (x, y))
    sxx, sxy, syy = (np.mean(u * v, axis=along, keepdims=keepdims) for u, v in ((dx, dx), (dx, dy), (dy, dy)))
    slope = sxy / sxx
    r = np.clip(sxy / np.sqrt(sxx * syy), -1.0, 1.0)
    if n == 2:
        # A line through two points fits; by chance it would not, unless it is level.
        none = 0 * slope
        return LinregressResult(slope, level - slope * middle, r, np.where(syy == 0, 1.0, none), none, none)
    df = n - 2
    # As in SciPy, a perfect correlation has a large statistic instead of an infinite one.
    statistic = r * np.sqrt(df / ((1.0 - r + 1e-20) * (1.0 + r + 1e-20)))
    probability = _probability(statistic, df, alternative)
    error = np.sqrt((1 - r**2) * syy / sxx / df)
    return LinregressResult(slope, level - slope * middle, r, probability, error, error * np.sqrt(sxx + middle**2))


# Tests


@implemented
def ttest_1samp(
    a: Any,
    popmean: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> TtestResult:
    """Student's test of the mean of a sample."""
    a, axis = sample(a, axis, nan_policy)
    mean, variance = _reduced(a, axis, keepdims)
    n = count(a, axis)
    statistic = (mean - popmean) / np.sqrt(variance / n)
    return TtestResult(statistic, _probability(statistic, n - 1, alternative), n - 1)


@implemented
def ttest_rel(
    a: Any,
    b: Any,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> TtestResult:
    """Student's test of the mean difference of pairs."""
    a, along = sample(a, axis, nan_policy)
    b, _ = sample(b, axis, nan_policy)
    return ttest_1samp(a - b, 0.0, along, alternative=alternative, keepdims=keepdims)


@implemented
def ttest_ind_from_stats(
    mean1: Any,
    std1: Any,
    nobs1: Any,
    mean2: Any,
    std2: Any,
    nobs2: Any,
    equal_var: bool = True,
    alternative: str = "two-sided",
) -> SignificanceResult:
    """Student's test of the means of two samples, given what is known of them; Welch's unless `equal_var`."""
    (statistic, df) = _of_two(mean1, std1 * std1, nobs1, mean2, std2 * std2, nobs2, equal_var)
    return SignificanceResult(statistic, _probability(statistic, df, alternative))


def _of_two(mean1: Any, var1: Any, n1: Any, mean2: Any, var2: Any, n2: Any, equal_var: bool) -> tuple[Any, Any]:
    if equal_var:
        df = n1 + n2 - 2.0
        error = np.sqrt(((n1 - 1) * var1 + (n2 - 1) * var2) / df * (1.0 / n1 + 1.0 / n2))
    else:
        share1, share2 = var1 / n1, var2 / n2
        df = (share1 + share2) ** 2 / (share1**2 / (n1 - 1) + share2**2 / (n2 - 1))
        error = np.sqrt(share1 + share2)
    return (mean1 - mean2) / error, df


@implemented
def ttest_ind(
    a: Any,
    b: Any,
    *,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    trim: float = 0,
    method: Any = None,
    keepdims: bool = False,
) -> TtestResult:
    """Student's test of the means of two samples; Welch's unless `equal_var`."""
    if trim or method is not None:
        raise ValueError(f"ttest_ind of traced samples takes trim=0 and method=None only{at_line(user_line())}")
    a, along = sample(a, axis, nan_policy)
    b, _ = sample(b, axis, nan_policy)
    (mean1, var1), (mean2, var2) = (_reduced(x, along, keepdims) for x in (a, b))
    statistic, df = _of_two(mean1, var1, count(a, along), mean2, var2, count(b, along), equal_var)
    return TtestResult(statistic, _probability(statistic, df, alternative), df)


@implemented
def f_oneway(
    *samples: Any, axis: Any = 0, equal_var: bool = True, nan_policy: str = "propagate", keepdims: bool = False
) -> SignificanceResult:
    """The analysis of variance of several samples: whether their means are the same."""
    if not equal_var:
        raise ValueError(f"f_oneway of traced samples takes equal_var=True only{at_line(user_line())}")
    groups = [sample(x, axis, nan_policy) for x in samples]
    sizes = [count(x, along) for x, along in groups]
    means = [np.mean(x, axis=along, keepdims=True) for x, along in groups]
    middle = sum(n * mean for n, mean in zip(sizes, means, strict=True)) / sum(sizes)
    within = sum(
        np.sum((x - mean) ** 2, axis=along, keepdims=True) for (x, along), mean in zip(groups, means, strict=True)
    )
    between = sum(n * (mean - middle) ** 2 for n, mean in zip(sizes, means, strict=True))
    dfn, dfd = len(groups) - 1, sum(sizes) - len(groups)
    statistic = (between / dfn) / (within / dfd)
    if not keepdims:
        statistic = np.squeeze(statistic, axis=groups[0][1])
    return SignificanceResult(statistic, f.sf(statistic, dfn, dfd))


_POWERS = {
    "pearson": 1, "log-likelihood": 0, "freeman-tukey": -0.5, "mod-log-likelihood": -1, "neyman": -2,
    "cressie-read": 2 / 3,
}  # fmt: skip


@implemented
def power_divergence(
    f_obs: Any,
    f_exp: Any = None,
    ddof: Any = 0,
    axis: Any = 0,
    lambda_: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """How far numbers are from expected ones (Cressie and Read 1984), and the probability that they are farther."""
    observed, along = sample(f_obs, axis, nan_policy)
    expected = np.mean(observed, axis=along, keepdims=True) if f_exp is None else sample(f_exp, axis)[0]
    power = 1 if lambda_ is None else _POWERS.get(lambda_, lambda_)
    if isinstance(power, str):
        raise ValueError(f"invalid string for lambda_: {power!r}. Valid: {', '.join(_POWERS)}{at_line(user_line())}")
    if power == 1:
        terms = (observed - expected) ** 2 / expected
    elif power == 0:
        terms = 2.0 * observed * np.log(observed / expected)
    elif power == -1:
        terms = 2.0 * expected * np.log(expected / observed)
    else:
        terms = observed * ((observed / expected) ** power - 1) / (0.5 * power * (power + 1))
    statistic = np.sum(terms, axis=along, keepdims=keepdims)
    df = count(observed, along) - 1 - ddof
    return SignificanceResult(statistic, chi2.sf(statistic, df))


@implemented
def chisquare(
    f_obs: Any,
    f_exp: Any = None,
    ddof: Any = 0,
    axis: Any = 0,
    *,
    sum_check: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Pearson's test: how far numbers are from expected ones. Sums of traced numbers are not checked."""
    return power_divergence(f_obs, f_exp, ddof, axis, nan_policy=nan_policy, keepdims=keepdims)


@implemented
def jarque_bera(
    x: Any, *, axis: Any = None, nan_policy: str = "propagate", keepdims: bool = False
) -> SignificanceResult:
    """The test of a sample for skewness and kurtosis of a normal distribution."""
    x, axis = sample(x, axis, nan_policy)
    statistic = (
        count(x, axis) / 6 * (skew(x, axis, keepdims=keepdims) ** 2 + kurtosis(x, axis, keepdims=keepdims) ** 2 / 4)
    )
    return SignificanceResult(statistic, np.exp(-0.5 * statistic))
