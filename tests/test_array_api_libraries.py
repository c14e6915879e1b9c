"""Libraries that are written to the array API standard, on traced values: their derivatives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import array_api_compat
import array_api_extra
import numpy as np
import pytest
import scipy

import ftrans as ft
import ftrans.numpy as fnp


def log_sum_exp(x: Any) -> Any:
    """As a library would write it."""
    xp = array_api_compat.array_namespace(x)
    shift = xp.max(x)
    y = xp.empty_like(x)
    y[...] = xp.exp(x - shift)
    return xp.log(xp.sum(y)) + shift * xp.asarray(1, dtype=x.dtype, device=array_api_compat.device(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_function_of_a_library(dtype: str) -> None:
    x = np.array([0.5, -1.0, 2.0], dtype)
    first = np.exp(x) / np.sum(np.exp(x))
    second = np.diag(first) - np.outer(first, first)
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    for make in (lambda f: f, ft.jit):
        gradient, hessian = make(ft.grad(log_sum_exp))(x), make(ft.hessian(log_sum_exp))(x)
        assert gradient.dtype == hessian.dtype == dtype
        np.testing.assert_allclose(gradient, first, atol=tolerance)
        np.testing.assert_allclose(hessian, second, atol=tolerance)
    np.testing.assert_allclose(ft.jacobian(ft.grad(log_sum_exp))(x), second, atol=tolerance)
    np.testing.assert_allclose(ft.vmap(ft.grad(log_sum_exp))(np.stack([x, x])), [first, first], atol=tolerance)


def numerical_gradient(f: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(x.size)])


def weighed(y: Any) -> Any:
    """A number that depends on all elements of an array."""
    xp = y.__array_namespace__() if hasattr(y, "__array_namespace__") else np
    return xp.sum(y * np.cos(np.arange(y.size)).reshape(y.shape))


EXTRA: dict[str, Callable[[Any], Any]] = {
    "cov": lambda x: array_api_extra.cov(x.reshape(2, 3)),
    "create_diagonal": lambda x: array_api_extra.create_diagonal(x, offset=1),
    "kron": lambda x: array_api_extra.kron(x.reshape(2, 3), x.reshape(3, 2) ** 2),
    "sinc": lambda x: array_api_extra.sinc(x),
    "pad": lambda x: array_api_extra.pad(x**2, (1, 2), constant_values=3.0),
    "one_hot": lambda x: array_api_extra.one_hot(np.argsort(x), 6) * x,
    "atleast_nd": lambda x: array_api_extra.atleast_nd(x, ndim=3),
    "set": lambda x: array_api_extra.at(x)[1:3].set(x[0] ** 2),
    "set in zeros": lambda x: array_api_extra.at(fnp.zeros(6))[1:4].set(x[:3]),
    "add": lambda x: array_api_extra.at(x)[0].add(x[1] ** 2),
    "multiply": lambda x: array_api_extra.at(x)[x > 0].multiply(3.0),
    "max": lambda x: array_api_extra.at(x, 2).max(x[1]),
    "apply_where": lambda x: array_api_extra.apply_where(x > 0, x, lambda t: t**0.5, lambda t: t**2),
    "nunique": lambda x: array_api_extra.nunique(x) * x,
    "setdiff1d": lambda x: array_api_extra.setdiff1d(x, x[:2], assume_unique=True),
    "isclose": lambda x: array_api_extra.isclose(x, x) * x,
    "partition": lambda x: array_api_extra.partition(x, 1)[1] * x,
    "nan_to_num": lambda x: array_api_extra.nan_to_num(x * x),
}
# These need the values of their arguments.
DATA_DEPENDENT = {"apply_where", "nunique", "setdiff1d", "isclose"}


@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra(name: str) -> None:
    x = np.array([0.3, -0.7, 1.2, 0.9, -0.2, 0.5])

    def f(x: Any) -> Any:
        return weighed(EXTRA[name](x))

    expected = numerical_gradient(f, x)
    assert np.any(expected != 0)
    np.testing.assert_allclose(ft.grad(f)(x), expected, atol=1e-6)
    np.testing.assert_allclose(ft.jacobian(f)(x), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["kron", "set", "apply_where"])
def test_array_api_extra_compiled(name: str) -> None:
    x = np.array([0.3, -0.7, 1.2, 0.9, -0.2, 0.5])
    gradient = ft.grad(lambda x: weighed(EXTRA[name](x)))
    if name in DATA_DEPENDENT:
        with pytest.raises(TypeError, match="Keep the shape"):
            ft.jit(gradient)(x)
    else:
        np.testing.assert_allclose(ft.jit(gradient)(x), gradient(x))
        np.testing.assert_allclose(ft.vmap(gradient)(np.stack([x, 2 * x])), [gradient(x), gradient(2 * x)])


def test_array_api_compat() -> None:
    def f(x: Any) -> Any:
        assert array_api_compat.array_namespace(x, 2 * x, 1.0) is fnp
        assert array_api_compat.is_array_api_obj(x)
        assert array_api_compat.device(x) == "cpu"
        assert array_api_compat.size(x) == 2
        assert array_api_compat.to_device(x, "cpu") is x
        return np.sum(x)

    ft.grad(f)(np.ones(2))


SCIPY = """
import warnings
import numpy as np
import ftrans as ft
from scipy import cluster, fft, integrate, optimize, signal, special, stats

FUNCTIONS = {
    "special.logsumexp": lambda x: special.logsumexp(x),
    "special.log_softmax": lambda x: special.log_softmax(x),
    "special.gammaln": lambda x: special.gammaln(x),
    "stats.skew": lambda x: stats.skew(x),
    "stats.kurtosis": lambda x: stats.kurtosis(x),
    "stats.moment": lambda x: stats.moment(x, 3),
    "stats.gmean": lambda x: stats.gmean(x),
    "stats.zscore": lambda x: stats.zscore(x),
    "stats.variation": lambda x: stats.variation(x),
    "stats.pearsonr": lambda x: stats.pearsonr(x[:3], x[3:]).statistic,
    "stats.ttest_1samp": lambda x: stats.ttest_1samp(x, 0.5).pvalue,
    "stats.entropy": lambda x: stats.entropy(x),
    "integrate.cumulative_trapezoid": lambda x: integrate.cumulative_trapezoid(x, dx=0.1),
    "integrate.simpson": lambda x: integrate.simpson(x, dx=0.1),
    "signal.fftconvolve": lambda x: signal.fftconvolve(x, x[:3]),
    "signal.hilbert": lambda x: signal.hilbert(x).imag,
    "fft.rfft": lambda x: fft.rfft(x).real,
    "cluster.vq.whiten": lambda x: cluster.vq.whiten(x.reshape(2, 3)),
    "optimize.rosen": lambda x: optimize.rosen(x),
}
x = np.array([0.3, 0.7, 0.25, 0.9, 0.4, 0.55])
step = 1e-6
for name, function in FUNCTIONS.items():
    def f(x):
        y = function(x)
        return np.sum(y * np.cos(np.arange(y.size)).reshape(y.shape))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(6)]
    try:
        np.testing.assert_allclose(ft.grad(f)(x), expected, rtol=1e-5, atol=1e-7)
        print("right", name)
    except Exception as error:
        print("WRONG", name, type(error).__name__, error)
"""


# Earlier versions ask fewer of these functions for the namespace.
@pytest.mark.skipif(tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17), reason="needs SciPy 1.17")
def test_scipy_with_its_array_api() -> None:
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    found = subprocess.run([sys.executable, "-c", SCIPY], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "WRONG" not in found.stdout, found.stdout
    assert found.stdout.count("right") == SCIPY.count(": lambda")
