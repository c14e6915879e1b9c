"""Functions of samples in `ftrans.scipy.stats`: all axes and options as in SciPy, and mistakes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import ftrans as ft
from ftrans.scipy import stats

X = np.random.default_rng(0).uniform(0.5, 1.5, (6, 4))
Y = np.random.default_rng(1).uniform(0.7, 1.7, (6, 4))
REDUCTIONS = (
    "sem", "skew", "kurtosis", "variation", "gmean", "hmean", "gstd", "iqr", "tmean", "tvar", "tstd", "tsem", "entropy",
    "circmean", "circvar", "circstd", "median_abs_deviation", "jarque_bera", "ttest_ind", "ttest_rel", "f_oneway",
    "linregress", "chisquare",
)  # fmt: skip
OF_TWO = ("ttest_ind", "ttest_rel", "f_oneway", "linregress")
# Calls with options, `call(namespace, x)`.
OPTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "bias": lambda s, x: (s.skew(x, bias=False), s.kurtosis(x, 1, False, False), s.moment(x, [1, 2, 3])),
    "moments": lambda s, x: (s.moment(x, 1), s.moment(x, [2, 3], center=0.3), s.describe(x, 1, 0)),
    "means": lambda s, x: (s.pmean(x, 2.5), s.pmean(x, 0), s.gmean(x, weights=Y), s.hmean(x, axis=1, weights=Y)),
    "trimmed": lambda s, x: (s.trim_mean(x, 0.2), s.trim_mean(x, 0.2, None), s.trim_mean(x, 0.3, 1, keepdims=True)),
    "limits": lambda s, x: (s.tmean(x, (0.6, 1.4)), s.tvar(x, (None, 1.4), (True, False)), s.tsem(x, (0.6, 1.3))),
    "spreads": lambda s, x: (s.iqr(x, 0, (10, 60), "normal"), s.median_abs_deviation(x, None, scale="normal")),
    "centre": lambda s, x: s.median_abs_deviation(x, 1, np.mean),
    "scores": lambda s, x: (s.zscore(x, None, 1), s.zmap(x, Y, 1), s.gzscore(x, axis=1)),
    "angles": lambda s, x: (s.circmean(200 * x, 180, -180), s.circstd(20 * x, 180, -180, normalize=True)),
    "entropy": lambda s, x: (s.entropy(x, Y, 2), s.entropy(x, base=3, axis=1)),
    "likelihood": lambda s, x: (s.boxcox_llf(0.3, x), s.boxcox_llf(0.0, x, axis=1, keepdims=True)),
    "distances": lambda s, x: (
        s.wasserstein_distance(x[0], Y[:, 0], x[1], Y[:, 1]),
        s.energy_distance(x[0], Y[:, 0], None, Y[:, 1]),
    ),
    "sides": lambda s, x: (
        tuple(s.pearsonr(x, Y, alternative="less")),
        tuple(s.linregress(x[0], Y[0], "greater")),
        tuple(s.ttest_1samp(x, 0.9, None, alternative="greater")),
        tuple(s.ttest_ind(x, Y, equal_var=False, alternative="less")),
        tuple(s.ttest_ind_from_stats(x, 1.0, 5, 2.0, 1.5, 6)),
    ),
    "powers": lambda s, x: [
        tuple(s.power_divergence(x, x[::-1], 1, lambda_=power))
        for power in (None, "log-likelihood", "mod-log-likelihood", "cressie-read", -0.5)
    ],
    # What two points say of the errors of a line is 0 in SciPy 1.17, and NaN or infinity by rounding in 1.18.
    "two": lambda s, x: (tuple(s.pearsonr(x[0, :2], Y[0, :2])), tuple(s.linregress(x[0, :2], Y[0, :2]))[:3]),
    "constant": lambda s, x: (s.skew(0 * x), s.zscore(0 * x + 1)),
}

# Those for which SciPy 1.16 has no such option, or one that fails.
WITH_KEEPDIMS = ("trimmed", "likelihood")


def numbers(found: Any) -> list[Any]:
    """The arrays in nested results, those of SciPy or those of ours."""
    if isinstance(found, tuple | list) or hasattr(found, "_fields") or hasattr(found, "unpacked"):
        return [x for part in found for x in numbers(part)]
    return [found]


def compare(call: Callable[[Any, Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = numbers(call(scipy.stats, X))
    found, _ = ft.jvp(lambda x: [ft.numpy.asarray(y) for y in numbers(call(stats, x))], (X,), (X,))
    for actual, wanted in zip(found, expected, strict=True):
        assert np.shape(actual) == np.shape(wanted)
        np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-15)


def keeps_dims(name: str) -> bool:
    """Whether a function of this SciPy takes `keepdims`: some do from 1.17 on."""
    return "keepdims" in inspect.signature(getattr(scipy.stats, name)).parameters


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_reductions(axis: Any, keepdims: bool) -> None:
    for name in REDUCTIONS:
        more = (Y,) if name in OF_TWO else ()
        if keepdims and not keeps_dims(name):
            continue
        options = {"axis": axis} | ({"keepdims": True} if keepdims else {})
        compare(lambda s, x, n=name, more=more, options=options: getattr(s, n)(x, *more, **options))


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    if name in WITH_KEEPDIMS and not keeps_dims("trim_mean"):
        pytest.skip(f"SciPy {scipy.__version__} takes no keepdims here, or fails with it")
    compare(OPTIONS[name])


def test_results_have_names() -> None:
    def named(x: Any) -> list[Any]:
        line, test, described = stats.linregress(x, Y[0]), stats.ttest_1samp(x, 1.0), stats.describe(x)
        assert len(line) == 5
        assert len(test) == 2
        assert stats.pearsonr(x, Y[0]).correlation is not None
        return [line[0], line.intercept_stderr, test.statistic, test.df, described.skewness]

    x = X[0]
    expected = [
        scipy.stats.linregress(x, Y[0]).slope,
        scipy.stats.linregress(x, Y[0]).intercept_stderr,
        scipy.stats.ttest_1samp(x, 1.0).statistic,
        3,
        scipy.stats.describe(x).skewness,
    ]
    (*found,) = ft.trace(named)(x)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # A function may return them as they are.
    slope = ft.jacobian(lambda x: stats.ttest_1samp(x, 1.0))(x)
    assert slope.statistic.shape == (4,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: stats.skew(x, nan_policy="omit"), ValueError, "nan_policy='propagate' only, not 'omit'"),
        (lambda x: stats.pearsonr(x, x, method=scipy.stats.PermutationMethod())[0], ValueError, "method=None only"),
        (lambda x: stats.pearsonr(x, Y[0], alternative="more")[0], ValueError, "'less', 'greater' or 'two-sided'"),
        (lambda x: stats.ttest_1samp(x, 0.0, alternative="more")[0], ValueError, "'less', 'greater' or 'two-sided'"),
        (lambda x: stats.ttest_ind(x, x, trim=0.1)[0], ValueError, "trim=0 and method=None only"),
        (lambda x: stats.f_oneway(x, x, equal_var=False)[0], ValueError, "equal_var=True only"),
        (lambda x: stats.power_divergence(x, lambda_="best")[0], ValueError, "Valid: pearson"),
        (lambda x: stats.trim_mean(x, 0.5), ValueError, "Proportion too big"),
        (lambda x: stats.spearmanr(x, Y[0])[0], NotImplementedError, "only on the order of the numbers"),
        (lambda x: stats.boxcox(x)[0][0], NotImplementedError, r"ftrans\.argmin of its likelihood"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}.*test_stats_samples.py"):
        ft.grad(call)(X[0])
