"""Integrals of `scipy.integrate` on traced values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special

import ftrans as ft
from ftrans.core.primitive import MissingRule
from ftrans.scipy import integrate

TABLE = np.array([0.0, 0.5, 1.5, 3.0])


@pytest.mark.parametrize("name", ["cumulative_simpson", "cumulative_trapezoid", "fixed_quad", "romb", "simpson"])
def test_plain_calls_are_those_of_scipy(name: str) -> None:
    arguments: Any = (np.cos, 0.0, 1.0) if name == "fixed_quad" else (np.arange(5.0) ** 2,)
    np.testing.assert_equal(getattr(integrate, name)(*arguments), getattr(scipy.integrate, name)(*arguments))


def branching(x: Any, k: Any) -> Any:
    if x < k:
        return k * x
    if x < 1.5:
        return np.exp(-x)
    return k**2


# An integral as a function of a parameter, its value, and its first two derivatives in closed form.
CLOSED_FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[float], tuple[float, float, float]]]] = {
    "infinite limit": (
        lambda k: integrate.quad(lambda x: np.exp(-k * x), 0, np.inf)[0],
        lambda k: (1 / k, -1 / k**2, 2 / k**3),
    ),
    "two constants at a moving limit": (
        lambda k: integrate.quad(lambda x, c: c * np.exp(k * x), 0, k, args=(k,))[0],
        lambda k: (np.exp(k * k) - 1, 2 * k * np.exp(k * k), (2 + 4 * k * k) * np.exp(k * k)),
    ),
    "weight": (
        lambda k: integrate.quad(lambda x: k * x, 0, k, weight="cos", wvar=1.0)[0],
        lambda k: (
            k * (np.cos(k) + k * np.sin(k) - 1),
            np.cos(k) + k * np.sin(k) - 1 + k * k * np.cos(k),
            3 * k * np.cos(k) - k * k * np.sin(k),
        ),
    ),
    "singular weight": (
        lambda k: integrate.quad(lambda x: k**3, 0, 1, weight="alg", wvar=(-0.5, -0.5))[0],
        lambda k: (np.pi * k**3, 3 * np.pi * k**2, 6 * np.pi * k),
    ),
    "complex": (
        lambda k: integrate.quad(lambda x: np.exp(1j * k * x), 0, np.pi, complex_func=True)[0].imag,
        lambda k: (
            (1 - np.cos(np.pi * k)) / k,
            np.pi * np.sin(np.pi * k) / k - (1 - np.cos(np.pi * k)) / k**2,
            np.pi**2 * np.cos(np.pi * k) / k
            - 2 * np.pi * np.sin(np.pi * k) / k**2
            + 2 * (1 - np.cos(np.pi * k)) / k**3,
        ),
    ),
    "breakpoint": (
        lambda k: integrate.quad(lambda x: k**2 * np.where(x < 0.5, x, 1.0), 0, 1, points=[0.5])[0],
        lambda k: (0.625 * k**2, 1.25 * k, 1.25),
    ),
    "jump that moves": (
        lambda k: integrate.quad(lambda x: np.where(x**2 < k, k * x, 1.0 + x), 2, 0)[0],
        lambda k: (
            np.sqrt(k) + k / 2 - k**2 / 2 - 4,
            0.5 / np.sqrt(k) + 0.5 - k,
            -0.25 * k**-1.5 - 1,
        ),
    ),
    "kink that moves": (
        lambda k: integrate.quad(lambda x: np.minimum(x, k) + abs(x - k), 0, 2)[0],
        lambda k: (k**2 / 2 + 2, k, 1.0),
    ),
    "jump in an infinite interval": (
        lambda k: integrate.quad_vec(lambda x: np.where(x < k, k, np.exp(k - x)) * np.ones(1), 0, np.inf)[0][0],
        lambda k: (k**2 + 1, 2 * k, 2.0),
    ),
    "branches": (
        lambda k: integrate.quad(branching, 0, 2, args=(k,), points=[0.8, 1.5])[0],
        lambda k: (
            k**3 / 2 + np.exp(-k) - np.exp(-1.5) + 0.5 * k**2,
            1.5 * k**2 - np.exp(-k) + k,
            3 * k + np.exp(-k) + 1,
        ),
    ),
    "branch at one point": (
        lambda k: integrate.quad(lambda x: k if x == 0 else np.sin(k * x) / x, -2, 2)[0],
        lambda k: (
            2 * scipy.special.sici(2 * k)[0],
            2 * np.sin(2 * k) / k,
            4 * np.cos(2 * k) / k - 2 * np.sin(2 * k) / k**2,
        ),
    ),
    "large parameter": (
        lambda k: integrate.quad(lambda x: (1e9 * k) ** 2 * x * 2e-18, 0, 1)[0],
        lambda k: (k**2, 2 * k, 2.0),
    ),
    "small parameter in large units": (
        lambda k: integrate.quad(lambda x, c: np.exp(-x * c / 1e12), 0, np.inf, args=1e12 * k)[0],
        lambda k: (1 / k, -1 / k**2, 2 / k**3),
    ),
    "array at infinity": (
        lambda k: integrate.quad_vec(lambda x: np.array([k, 1.0]) * np.exp(-k * x), -k, np.inf)[0] @ [1.0, k],
        lambda k: (2 * np.exp(k * k), 4 * k * np.exp(k * k), (4 + 8 * k * k) * np.exp(k * k)),
    ),
    "triangle": (
        lambda k: integrate.dblquad(lambda y, x: k * x, 0, k, 0, lambda x: k - x)[0],
        lambda k: (k**4 / 6, 2 * k**3 / 3, 2 * k**2),
    ),
}


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_derivatives_in_closed_form(name: str) -> None:
    f, expected = CLOSED_FORMS[name]
    value, first, second = expected(0.8)
    near = {"rtol": 1e-7, "atol": 1e-9}
    np.testing.assert_allclose(f(0.8), value, **near)
    np.testing.assert_allclose(ft.value_and_grad(f)(0.8), (value, first), **near)
    np.testing.assert_allclose(ft.grad(ft.grad(f))(0.8), second, **near)
    np.testing.assert_allclose(ft.jacfwd(ft.jacfwd(f))(0.8), second, **near)


def test_compiled_and_mapped() -> None:
    f, expected = CLOSED_FORMS["two constants at a moving limit"]
    ks = np.array([0.5, 0.8])
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.hessian(f)))(ks), [expected(k)[2] for k in ks], rtol=1e-7)


def test_branches_compiled() -> None:
    f, expected = CLOSED_FORMS["branches"]
    derivative = ft.jit(ft.grad(f))
    for k in (0.8, 0.9):
        np.testing.assert_allclose(derivative(k), expected(k)[1], rtol=1e-7)


def test_more_outputs() -> None:
    def f(k: Any) -> Any:
        value, error, info = integrate.quad(lambda x: k * x, 0.0, 2.0, full_output=1)
        return value, (error, info["neval"], info["last"])

    value, (error, evaluations, intervals) = ft.jit(ft.grad(f, has_aux=True))(3.0)
    expected = scipy.integrate.quad(lambda x: 3.0 * x, 0.0, 2.0, full_output=1)
    assert (error, evaluations, intervals) == (expected[1], expected[2]["neval"], expected[2]["last"])
    assert value == 2.0


def test_calls_that_depend_on_nothing_traced_are_those_of_scipy() -> None:
    def f(k: Any) -> Any:
        assert integrate.quad(math.sin, 0.0, 1.0) == scipy.integrate.quad(math.sin, 0.0, 1.0)
        np.testing.assert_equal(integrate.dblquad(lambda y, x: x if y < x else y, 0, 1, 0, 1)[0] > 0.6, True)
        return k

    assert ft.grad(f)(1.0) == 1.0


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (TypeError, lambda k: integrate.quad(lambda x: np.array([k, x]), 0.0, 1.0)[0]),
        (TypeError, lambda k: integrate.quad(lambda x: k * 1j, 0.0, 1.0)[0]),
        (TypeError, lambda k: integrate.quad(lambda x: x, 0.0, np.array([k, 1.0]))[0]),
        (ValueError, lambda k: integrate.quad(lambda x: x, 0.0, 1.0, weight="cos", wvar=k)[0]),
        (ValueError, lambda k: integrate.quad(lambda x: x, 0.0, k, weight="alg", wvar=(1.0, 1.0))[0]),
        (MissingRule, lambda k: integrate.quad(lambda x: 1.0 * np.argmin(np.abs(TABLE - k * x)), 0.0, 9.0)[0]),
        (ValueError, lambda k: integrate.quad(lambda x: k, 0.0, 1.0, weight="cos", wvar=1.0, wopts=(1, 2))[0]),
    ],
)
def test_what_quad_does_not_take(error: type[Exception], call: Any) -> None:
    with pytest.raises(error, match=__file__):
        ft.grad(call)(1.0)


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


@pytest.mark.parametrize(
    "f",
    [
        lambda u: np.heaviside(u - 1.0, 0.5) * u,
        lambda u: 1.0 if u < 1.0 else 3.0,
        lambda u: 1.0 if 0.5 < u < 1.0 else 0.0,
        lambda u: 1.0 * u if u < 0.7 else (2.0 * u if u < 1.0 else 5.0),
        lambda u: (1.0, 2.0)[bool(u > 1.0)],
        lambda u: np.mod(u, 0.7),
        lambda u: np.fmod(u, 0.7) + u // 0.7,
        lambda u: np.floor(u) + np.rint(u) * u,
        lambda u: np.copysign(u, u - 1.0) + np.signbit(u - 0.8),
        lambda u: np.asarray(2.0 * u).astype(int) * u,
        lambda u: 2.0 * np.searchsorted(TABLE, u),
    ],
)
def test_integrands_that_jump_at_points_that_move(f: Any) -> None:
    """The derivative of the integral of f(x + k) is the difference at the limits, whatever f is."""
    k = 0.32
    g = ft.grad(lambda k: integrate.quad(lambda x: f(x + k), 0.0, 1.0)[0])
    np.testing.assert_allclose(g(k), f(np.float64(1.0 + k)) - f(np.float64(k)), rtol=1e-7)
