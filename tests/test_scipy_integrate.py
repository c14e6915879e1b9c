"""SciPy's solvers of differential equations with Jacobians filled in."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate

from ftrans.scipy import integrate


def oscillator(t: float, y: Any, mu: float = 100.0) -> list[Any]:
    return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]


@pytest.mark.parametrize("name", ["solve_ivp", "solve_bvp"])
def test_signatures_are_those_of_scipy(name: str) -> None:
    ours = inspect.signature(getattr(integrate, name)).parameters
    theirs = inspect.signature(getattr(scipy.integrate, name)).parameters
    assert [key for key in ours if key in theirs] == list(theirs)
    for key, parameter in theirs.items():
        assert (ours[key].default, ours[key].kind) == (parameter.default, parameter.kind)
    assert set(ours) - set(theirs) == {"compile", "progress"}


def test_other_names_are_those_of_scipy() -> None:
    assert integrate.RK45 is scipy.integrate.RK45


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA", scipy.integrate.BDF], ids=str)
def test_results_are_those_of_scipy_with_the_jacobian_by_hand(method: Any, compile: bool) -> None:
    def by_hand(t: float, y: Any, mu: float) -> Any:
        return [[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]]

    theirs = scipy.integrate.solve_ivp(oscillator, (0, 100), [2, 0], method, args=(80.0,), jac=by_hand)
    ours = integrate.solve_ivp(oscillator, (0, 100), [2, 0], method, args=(80.0,), compile=compile)
    assert ours.success
    assert abs(ours.nfev - theirs.nfev) <= 0.1 * theirs.nfev
    assert np.allclose(ours.y[:, -1], theirs.y[:, -1], rtol=1e-3)
    assert ours.ftrans["jac"].evaluations > 0
    assert ours.ftrans["jac"].is_compiled == compile


@pytest.mark.parametrize("method", ["RK45", "DOP853"])
def test_methods_that_take_no_jacobian(method: str) -> None:
    theirs = scipy.integrate.solve_ivp(oscillator, (0, 1), [2, 0], method)
    ours = integrate.solve_ivp(oscillator, (0, 1), [2, 0], method)
    assert np.array_equal(ours.y, theirs.y)
    assert ours.ftrans == {}


def test_time_and_several_columns_at_once() -> None:
    def forced(t: float, y: Any) -> Any:
        return np.vstack([-1e3 * (y[0] - np.cos(t)), y[0] - y[1]])

    options: dict[str, Any] = {"vectorized": True, "rtol": 1e-7, "t_eval": [0.5, 1.0]}
    theirs = scipy.integrate.solve_ivp(forced, (0, 1), [0.0, 0.0], "BDF", **options)
    ours = integrate.solve_ivp(forced, (0, 1), [0.0, 0.0], "BDF", **options)
    assert np.allclose(ours.y, theirs.y, rtol=1e-5)
    assert ours.ftrans["jac"].shape == (2, 2)


def test_what_the_user_gives_wins() -> None:
    constant = np.array([[-1.0]])
    assert integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0], "BDF", jac=constant).ftrans == {}
    banded = integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0, 2.0], "LSODA", lband=0, uband=0)
    assert banded.ftrans == {}


def test_what_is_left_to_scipy() -> None:
    rotation = integrate.solve_ivp(lambda t, y: 1j * y, (0, 1), [1 + 0j], "BDF")
    assert "complex128" in rotation.ftrans["jac"].reason
    leaves_numpy = integrate.solve_ivp(lambda t, y: [-math.sin(y[0])], (0, 1), [1.0], "Radau")
    assert leaves_numpy.success
    assert "float() of a traced value" in leaves_numpy.ftrans["jac"].reason
    with pytest.raises(ValueError, match="`method` must be one of"):
        integrate.solve_ivp(oscillator, (0, 1), [2, 0], "no such method")


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    solution = integrate.solve_ivp(oscillator, (0, 1), [2, 0], "Radau", progress="time")
    assert f"{solution.nfev}it" in capsys.readouterr().err


# Boundary values


def conditions(ya: Any, yb: Any) -> Any:
    return np.array([ya[0], yb[0]])


def test_boundary_values() -> None:
    def bratu(x: Any, y: Any) -> Any:
        return np.vstack([y[1], -np.exp(y[0])])

    mesh = np.linspace(0, 1, 5)
    theirs = scipy.integrate.solve_bvp(bratu, conditions, mesh, np.zeros((2, 5)))
    for compile in (False, True):
        ours = integrate.solve_bvp(bratu, conditions, mesh, np.zeros((2, 5)), compile=compile)
        assert ours.niter == theirs.niter
        assert np.allclose(ours.sol(0.3), theirs.sol(0.3), atol=1e-6)
        assert ours.ftrans["fun_jac"].evaluations > 0
        assert ours.ftrans["bc_jac"].evaluations > 0


def test_jacobians_of_equations_with_parameters_and_a_singular_term() -> None:
    # Bessel's equation: y'' + y' / x + k^2 y = 0 with y(0) = 1, y(1) = 0; k is the first zero of J0.
    def bessel(x: Any, y: Any, p: Any) -> list[Any]:
        return [y[1], -(p[0] ** 2) * y[0]]

    def ends(ya: Any, yb: Any, p: Any) -> list[Any]:
        return [ya[0] - 1, yb[0], ya[1]]

    mesh = np.linspace(0, 1, 11)
    guess = np.vstack([1 - mesh**2, -2 * mesh])
    singular = np.array([[0.0, 0.0], [0.0, -1.0]])
    found = integrate.solve_bvp(bessel, ends, mesh, guess, p=[2.0], S=singular, tol=1e-8)
    assert found.success
    assert found.p[0] == pytest.approx(2.404825557695773, rel=1e-6)
    assert found.ftrans["fun_jac"].evaluations > 0


def test_boundary_values_that_are_left_to_scipy() -> None:
    def slopes(x: Any, y: Any) -> Any:
        return np.vstack([y[1], [-math.exp(v) for v in y[0]]])

    found = integrate.solve_bvp(slopes, conditions, np.linspace(0, 1, 5), np.zeros((2, 5)))
    assert found.success
    assert "float() of a traced value" in found.ftrans["fun_jac"].reason
    assert found.ftrans["bc_jac"].evaluations > 0


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_sparse_jacobians(method: str) -> None:
    n = 120

    def diffusion(t: float, y: Any) -> Any:
        return n**2 * (np.roll(y, 1) - 2 * y + np.roll(y, -1)) + y * (1 - y)

    start = 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(n) / n)
    theirs = scipy.integrate.solve_ivp(diffusion, (0, 0.1), start, method)
    ours = integrate.solve_ivp(diffusion, (0, 0.1), start, method)
    assert ours.ftrans["jac"].entries == 3 * n
    assert np.allclose(ours.y[:, -1], theirs.y[:, -1], rtol=1e-3)


def test_a_product_with_a_matrix_has_a_dense_jacobian() -> None:
    matrix = np.eye(100) + 0.01 * np.cos(np.arange(10_000).reshape(100, 100))
    solution = integrate.solve_ivp(lambda t, y: -(matrix @ y), (0, 1), np.ones(100), "BDF", rtol=1e-6)
    assert solution.ftrans["jac"].entries is None
    values, vectors = np.linalg.eig(matrix)
    exact = vectors @ (np.exp(-values) * np.linalg.solve(vectors, np.ones(100)))
    assert np.allclose(solution.y[:, -1], exact.real, atol=1e-4)
