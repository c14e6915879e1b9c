"""SciPy's solvers on traced values: values are SciPy's, derivatives are those of the solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import ftrans as ft
from ftrans.numpy.dispatch import TABLE
from ftrans.scipy import optimize


def cubic(x: Any, a: Any) -> Any:
    """Its real root, where a > 0, is the sample of most tests."""
    return x**3 + a * x - 3.0


def slope(x: Any, a: Any) -> Any:
    return 3.0 * x**2 + a


def curvature(x: Any, a: Any) -> Any:
    return 6.0 * x


# Each finds the root of `cubic` for `a` with the functions of a module.
ROOTS = {
    **{
        name: lambda m, a, name=name: getattr(m, name)(lambda x: cubic(x, a), 0.0, 2.0)
        for name in ("brentq", "brenth", "ridder", "bisect", "toms748")
    },
    "by args": lambda m, a: m.brentq(cubic, 0.0, 2.0, args=(a,), xtol=1e-13),
    "secant": lambda m, a: m.newton(cubic, 1.2, args=(a,)),
    "newton": lambda m, a: m.newton(cubic, 1.2, fprime=slope, args=(a,)),
    "halley": lambda m, a: m.newton(cubic, 1.2, slope, (a,), fprime2=curvature),
    "root_scalar": lambda m, a: m.root_scalar(cubic, (a,), bracket=(0.0, 2.0)).root,
    "root_scalar with slope": lambda m, a: m.root_scalar(
        lambda x: (cubic(x, a), slope(x, a)), fprime=True, x0=1.2
    ).root,
    "fixed_point": lambda m, a: m.fixed_point(lambda x: x - cubic(x, a) / 8, 1.2),
    "root": lambda m, a: m.root(lambda x: [cubic(x[0], a)], [1.2]).x[0],
    "root with jac": lambda m, a: m.root(
        lambda x: (cubic(x, a), np.reshape(slope(x, a), (1, 1))), [1.2], jac=True, method="lm"
    ).x[0],
    "krylov": lambda m, a: m.root(lambda x: cubic(x, a), np.array([1.2]), method="krylov").x[0],
    "newton_krylov": lambda m, a: m.newton_krylov(lambda x: cubic(x, a), np.array([1.2]))[0],
    "broyden1": lambda m, a: m.broyden1(lambda x: cubic(x, a), np.array([1.2]))[0],
    "fsolve": lambda m, a: m.fsolve(cubic, 1.2, args=(a,))[0],
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
def test_roots(name: str) -> None:
    solve = ROOTS[name]
    plain, traced = solve(scipy.optimize, 2.2), ft.value_and_grad(lambda a: solve(optimize, a))(2.2)
    assert np.allclose(traced[0], plain, rtol=1e-14 if name in list(ROOTS)[:11] else 1e-7)
    x = float(scipy.optimize.brentq(cubic, 0.0, 2.0, (2.2,), xtol=1e-15))
    first = -x / slope(x, 2.2)
    second = -(2.0 * first + 6.0 * x * first**2) / slope(x, 2.2)
    assert np.allclose(traced[1], first, rtol=1e-12)
    f = lambda a: solve(optimize, a)  # noqa: E731
    assert np.allclose(ft.hessian(f)(2.2), second, rtol=1e-11)


def test_arrays_of_roots() -> None:
    def f(a: Any) -> Any:
        # SciPy takes any sequence here, a tuple elsewhere.
        return optimize.newton(cubic, np.ones_like(a) if isinstance(a, np.ndarray) else np.ones(3), args=[a])

    a = np.array([1.5, 2.2, 3.0])
    assert np.array_equal(ft.vjp(f, a)[0], scipy.optimize.newton(cubic, np.ones(3), args=(a,)))
    x = scipy.optimize.newton(cubic, np.ones(3), args=(a,), tol=1e-14)
    assert np.allclose(ft.jacobian(f)(a), np.diag(-x / slope(x, a)), rtol=1e-11)
    # Equations that depend on each other are one system.
    coupled = ft.jacobian(lambda b: optimize.newton(lambda x: x - b - 0.1 * x[::-1], np.ones(2), tol=1e-12))(a[:2])
    assert np.allclose(coupled, np.linalg.inv([[1.0, -0.1], [-0.1, 1.0]]), rtol=1e-10)


def test_many_roots_are_found_without_a_matrix() -> None:
    a = np.linspace(1.0, 3.0, 500)
    f = lambda a: np.sum(optimize.newton(cubic, np.ones(500), slope, (a,)))  # noqa: E731
    x = scipy.optimize.newton(cubic, np.ones(500), slope, (a,), tol=1e-14)
    assert np.allclose(ft.grad(f)(a), -x / slope(x, a), rtol=1e-11)


def test_what_is_said_of_a_root() -> None:
    def f(a: Any) -> Any:
        root, result = optimize.brentq(cubic, 0.0, 2.0, args=(a,), full_output=True)
        assert result.method == "brentq"
        return root if result.converged and result.iterations < 50 else 0.0 * root

    assert ft.grad(f)(2.2) < 0

    def g(a: Any) -> Any:
        x, info, status, _ = optimize.fsolve(cubic, 1.2, (a,), full_output=True)
        return x[0] + info["fvec"][0] if status == 1 else a

    assert np.allclose(ft.grad(g)(2.2), ft.grad(f)(2.2), rtol=1e-12)


def test_branches_on_the_unknown() -> None:
    def f(a: Any) -> Any:
        return optimize.brentq(lambda x: x**2 - a if x > 0.5 else x - a, 0.0, 3.0)

    value, gradient = ft.value_and_grad(f)(2.0)
    assert np.allclose(value, np.sqrt(2.0), rtol=1e-11)
    assert np.allclose(gradient, 0.5 / np.sqrt(2.0), rtol=1e-12)
    assert np.allclose(ft.hessian(f)(2.0), -0.25 * 2.0**-1.5, rtol=1e-11)
    with pytest.raises(TypeError, match="branch"):
        ft.jit(f)(2.0)


def test_branches_of_an_objective() -> None:
    def f(a: Any) -> Any:
        return optimize.minimize(lambda x: np.sum((x - a) ** 2) if x[0] > 0 else np.sum(x**2 - a), [2.0]).x[0]

    assert np.allclose(ft.value_and_grad(f)(1.5), (1.5, 1.0), rtol=1e-7)


def test_solvers_inside_of_solvers() -> None:
    def f(a: Any) -> Any:
        inner = lambda x: optimize.brentq(lambda y: y**2 - x * a, 0.1, 10.0)  # noqa: E731
        return optimize.brentq(lambda x: x - inner(x) / 2.0, 0.1, 5.0)

    assert np.allclose(ft.value_and_grad(f)(2.0), (0.5, 0.25))


@pytest.mark.parametrize(
    "f",
    [
        lambda a: optimize.newton(lambda x: (x - a) ** 3, 1.5, maxiter=200),
        lambda a: optimize.brentq(lambda x: np.where(x < a, -1.0, 1.0), 0.0, 3.0),
        lambda a: optimize.root(lambda x: x**2 + a, [3.0]).x[0],
    ],
)
def test_no_derivative_where_there_is_none(f: Any) -> None:
    with pytest.raises((ft.ConvergenceError, np.linalg.LinAlgError)):
        ft.grad(f)(1.0)
    assert np.isnan(ft.jit(ft.grad(f))(1.0))


def test_errors() -> None:
    with pytest.raises(ValueError, match="different signs"):
        ft.grad(lambda a: optimize.brentq(lambda x: x**2 + a, 0.0, 1.0))(1.0)
    with pytest.raises(TypeError, match="solves for real numbers"):
        ft.grad(lambda a: optimize.newton(lambda x: x**2 + a, 1j))(1.0)
    with pytest.raises(ValueError, match="3 equations for 2 unknowns"):
        ft.grad(lambda a: optimize.root(lambda x: [x[0] - a, x[1], x[0] - x[1]], [1.0, 1.0], method="lm").x[0])(1.0)
    with pytest.raises(TypeError):
        ft.grad(lambda a: a * optimize.brentq())(1.0)


def test_where_nothing_is_traced_scipy_answers() -> None:
    found = []

    def f(a: Any) -> Any:
        found.append(optimize.brentq(lambda x: x**2 - 2.0 if x > 0 else -1.0, 0.0, 2.0, full_output=True)[1])
        found.append(optimize.root(lambda x: x**2 - 2.0, [1.0]))
        found.append(TABLE[scipy.optimize.root](lambda x: x**2 - 2.0, [1.0]))
        return a

    ft.grad(f)(1.0)
    assert found[0].flag == "converged"
    assert set(found[1].ftrans) == {"jac"}
    assert found[2] == scipy.optimize.root(lambda x: x**2 - 2.0, [1.0])


def test_roots_at_zero() -> None:
    f = lambda a: optimize.brentq(lambda x: np.sinh(x) - a + 1.0, -1.0, 1.5)  # noqa: E731
    assert np.allclose(ft.grad(f)(1.0), 1.0, rtol=1e-12)
    assert np.allclose(ft.grad(ft.grad(f))(1.0), 0.0, atol=1e-9)
    g = lambda a: optimize.root(lambda x: [x[0] - a, 3.0 * x[1] - x[0] * x[1] - 2.0 * a], [0.5, 0.5]).x  # noqa: E731
    assert np.allclose(ft.jacobian(g)(0.0), [1.0, 2.0 / 3.0], rtol=1e-9)
