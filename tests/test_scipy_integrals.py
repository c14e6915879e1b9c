"""Integrals of `scipy.integrate` on traced values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import ftrans as ft
from ftrans.scipy import integrate


@pytest.mark.parametrize("name", ["cumulative_simpson", "cumulative_trapezoid", "fixed_quad", "romb", "simpson"])
def test_plain_calls_are_those_of_scipy(name: str) -> None:
    arguments: Any = (np.cos, 0.0, 1.0) if name == "fixed_quad" else (np.arange(5.0) ** 2,)
    np.testing.assert_equal(getattr(integrate, name)(*arguments), getattr(scipy.integrate, name)(*arguments))


@pytest.mark.parametrize(
    "call",
    [
        lambda y: integrate.cumulative_trapezoid(y, initial=1.0),
        lambda y: integrate.simpson(y, x=np.arange(4.0)),
        lambda y: integrate.simpson(y, x=np.ones((1, 1, 5))),
        lambda y: integrate.romb(y[:4]),
        lambda y: integrate.fixed_quad(lambda x: x * y[0], 0.0, np.inf),
    ],
)
def test_wrong_arguments(call: Any) -> None:
    with pytest.raises(ValueError, match=__file__):
        ft.grad(lambda y: np.sum(call(y)))(np.ones(5))
