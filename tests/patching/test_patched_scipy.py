"""Functions of SciPy that patched code calls itself, as many users' code does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from checks import differences

import ftrans as ft


def test_code_that_calls_scipy_itself() -> None:
    frozen, estimate = scipy.stats.norm(0.0, 2.0), scipy.stats.gaussian_kde([0.0, 1.0, 3.0])

    def f(x: Any) -> Any:
        moved = scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]) * x)
        densities = frozen.logpdf(x) + scipy.stats.norm(x, 1.0).cdf(0.3) + estimate(x)[0] + moved.logpdf(1.0)[0]
        drawn = scipy.stats.norm.rvs(x, random_state=0) + scipy.stats.multivariate_normal([0.0, x]).logpdf([x, 1.0])
        return densities + drawn + scipy.stats.skew([x, 1.0, 3.0]) + scipy.stats.pearsonr([1.0, 2.0, x], [1, 3, 4])[1]

    (slope,) = differences(lambda x: [f(x)], [np.array(0.7)], [np.array(1.0)])
    with ft.patch(__name__):
        for transformed in (ft.grad(f), ft.jit(ft.grad(f))):
            assert transformed(0.7) == pytest.approx(slope, rel=1e-7)
