"""Minimisers, fits and linear problems of SciPy on traced values: which bounds hold them, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import ftrans as ft
from ftrans.core.primitive import MissingRule
from ftrans.scipy import optimize

POINT, BOUND = np.array([1.0, 2.0]), 1.0


def hill(x: Any, a: Any) -> Any:
    return np.sum((x - a) ** 2) + (x[0] * x[1]) ** 2 + np.sum(x) ** 4 / 10


def minimiser(m: Any, a: Any, low: Any, **options: Any) -> Any:
    return m.minimize(hill, np.ones(2), args=(a,), bounds=[(low, None), (None, 5.0)], **options).x


def differences(f: Any, x: Any, step: float = 1e-4) -> Any:
    """The Jacobian by differences of fourth order."""
    columns = []
    for index in np.ndindex(np.shape(x)):
        e = np.zeros(np.shape(x))
        e[index] = step
        near, far = (np.asarray(f(x + k * e)) - np.asarray(f(x - k * e)) for k in (1, 2))
        columns.append((8 * near - far) / (12 * step))
    return np.reshape(np.stack(columns, -1), (*np.shape(columns[0]), *np.shape(x)))


@pytest.mark.parametrize(
    ("method", "low"),
    [("L-BFGS-B", -3.0), ("L-BFGS-B", 1.0), ("TNC", 1.0), ("SLSQP", -3.0), ("trust-constr", 1.0), ("Powell", 1.0)],
)
def test_minimize_within_bounds(method: str, low: float) -> None:
    f = lambda a, low: minimiser(optimize, a, low, method=method)  # noqa: E731
    value = ft.vjp(f, POINT, low)[0]
    assert np.allclose(value, minimiser(scipy.optimize, POINT, low, method=method), atol=1e-4)
    by_point, by_bound = ft.jacobian(f, (0, 1))(POINT, low)
    exact = {
        -3.0: ([[0.3418747, -0.24316243], [-0.24316243, 0.60492644]], [0.0, 0.0]),
        1.0: ([[0.0, 0.0], [0.0, 0.28364151]], [1.0, -0.77000197]),
    }[low]
    assert np.allclose(by_point, exact[0], atol=1e-8)
    assert np.allclose(by_bound, exact[1], atol=1e-8)


def test_the_patched_form_has_the_values_of_scipy() -> None:
    from ftrans.numpy.dispatch import TABLE

    entered = TABLE[scipy.optimize.minimize]
    value, gradient = ft.value_and_grad(lambda a: entered(hill, np.ones(2), (a,)).x[0])(POINT)
    assert np.allclose(value, scipy.optimize.minimize(hill, np.ones(2), (POINT,)).x[0], rtol=1e-14)
    assert np.allclose(gradient, [0.3418747, -0.24316243], atol=1e-8)


def test_the_result_of_minimize() -> None:
    def f(a: Any) -> Any:
        result = optimize.minimize(lambda x: (np.sum((x - a) ** 2) + 1.0, 2 * (x - a)), np.zeros(2), jac=True)
        assert result.nfev > 0
        return result.fun * np.sum(result.x) + np.sum(result.jac) if result.success else np.sum(a)

    assert np.allclose(ft.grad(f)(POINT), 1.0)


CIRCLES = {
    "eq": lambda r: {"type": "eq", "fun": lambda x: x[0] ** 2 + x[1] ** 2 - r**2},
    "ineq": lambda r: (
        {"type": "ineq", "fun": lambda x, r: r**2 - x[0] ** 2 - x[1] ** 2, "args": (r,)},
        {"type": "ineq", "fun": lambda x: x[1] + 10, "jac": lambda x: np.array([0.0, 1.0])},
    ),
    "nonlinear": lambda r: [optimize.NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, -np.inf, r**2)],
}


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("kind", CIRCLES)
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints(kind: str, method: str) -> None:
    def f(r: Any) -> Any:
        start = [-1.0, -0.5]
        return optimize.minimize(lambda x: x[0] + 2 * x[1], start, constraints=CIRCLES[kind](r), method=method).x

    exact = -np.array([1.0, 2.0]) / np.sqrt(5)
    assert np.allclose(ft.vjp(f, 2.0)[0], 2.0 * exact, atol=1e-4)
    assert np.allclose(ft.jacobian(f)(2.0), exact, rtol=1e-9)


def test_linear_constraints() -> None:
    def f(b: Any) -> Any:
        held = optimize.LinearConstraint([[1.0, 1.0], [1.0, -1.0]], [b, -5.0], np.inf)
        return optimize.minimize(lambda x: x[0] ** 2 + x[1] ** 2 - x[0], [1.0, 1.0], constraints=held).x

    assert np.allclose(ft.jacobian(f)(3.0), [0.5, 0.5])
    # It is not reached.
    assert np.allclose(ft.jacobian(f)(0.2), [0.0, 0.0])


def test_minimize_scalar() -> None:
    f = lambda a: optimize.minimize_scalar(lambda x: (x - a) ** 2 + np.exp(a * x), (-1.0, 3.0)).x  # noqa: E731
    plain = scipy.optimize.minimize_scalar(lambda x: (x - 0.7) ** 2 + np.exp(0.7 * x), (-1.0, 3.0)).x
    value, gradient = ft.value_and_grad(f)(0.7)
    assert np.allclose(value, plain, rtol=1e-14)
    x = 0.2755421603
    second = 2 + 0.49 * np.exp(0.7 * x)
    assert np.allclose(gradient, (2 - np.exp(0.7 * x) * (1 + 0.7 * x)) / second, rtol=1e-8)

    def held(a: Any, low: Any) -> Any:
        return optimize.minimize_scalar(lambda x: (x - a) ** 2, bounds=(low, 3.0)).x

    assert ft.grad(held, (0, 1))(0.7, 1.0) == (0.0, 1.0)
    assert ft.grad(held, (0, 1))(1.7, 1.0) == (1.0, 0.0)
    # Where the minimum reaches the bound, there are two derivatives.
    with pytest.raises(ft.ConvergenceError, match="which bounds"):
        ft.grad(held)(1.0, 1.0)


def test_no_derivative_without_convergence() -> None:
    f = lambda a: optimize.minimize(lambda x: np.sum((x - a) ** 4), np.full(2, 9.0)).x[0]  # noqa: E731
    with pytest.raises(ft.ConvergenceError):
        ft.grad(f)(1.0)
    stopped = lambda a: optimize.minimize(hill, np.ones(2) * 9, (a,), options={"maxiter": 1}).x[0]  # noqa: E731
    with pytest.raises(ft.ConvergenceError, match="lead far away"):
        ft.grad(stopped)(POINT)


def bowl(x: Any, a: Any) -> Any:
    return np.sum((x - a) ** 2) + np.sum(a) * x[0] * x[1]


BOX = [(-1, 1), (-1, 1)]
OTHERS = {
    "dual_annealing": lambda a: optimize.dual_annealing(bowl, BOX, (a,), rng=1, maxiter=20).x,
    "shgo": lambda a: optimize.shgo(bowl, BOX, (a,)).x,
    "direct": lambda a: optimize.direct(bowl, BOX, args=(a,)).x,
    "differential_evolution": lambda a: optimize.differential_evolution(bowl, BOX, (a,), rng=1, maxiter=20).x,
    "fmin": lambda a: optimize.fmin(bowl, np.zeros(2), (a,), disp=False),
    "fmin_bfgs": lambda a: optimize.fmin_bfgs(bowl, np.zeros(2), args=(a,), disp=False),
    "fmin_powell": lambda a: optimize.fmin_powell(bowl, np.zeros(2), (a,), disp=False),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_minimisers(name: str) -> None:
    a = np.array([0.3, -0.2])
    exact = lambda a: np.linalg.solve(2 * np.eye(2) + np.sum(a) * np.eye(2)[::-1], 2 * a)  # noqa: E731
    assert np.allclose(ft.vjp(OTHERS[name], a)[0], exact(a), atol=1e-3)
    assert np.allclose(ft.jacobian(OTHERS[name])(a), ft.jacobian(exact)(a), rtol=1e-9)


def test_older_minimisers_of_one_number() -> None:
    for f in (
        lambda a: optimize.fminbound(lambda x: (x - a) ** 2, 0, 3),
        lambda a: optimize.brent(lambda x: (x - a) ** 2),
        lambda a: optimize.golden(lambda x: (x - a) ** 2),
    ):
        assert np.allclose(ft.value_and_grad(f)(1.2), (1.2, 1.0))
    with pytest.raises(ValueError, match="minimize_scalar"):
        ft.grad(lambda a: optimize.brent(lambda x: (x - a) ** 2, full_output=True)[0])(1.2)
    with pytest.raises(ValueError, match="minimize, which"):
        ft.grad(lambda a: optimize.fmin(bowl, a, (a,), full_output=True)[0][0])(POINT)
    with pytest.raises(MissingRule, match=r"ftrans\.jacobian"):
        ft.grad(lambda a: optimize.approx_fprime(a, np.sum)[0])(POINT)


# Fits

T = np.linspace(0, 3, 8)
RNG = np.random.default_rng(0)
Y = 2.5 * np.exp(-1.3 * T) + 0.1 * RNG.standard_normal(8)
SIGMA = 0.1 + 0.05 * T


def decay(t: Any, a: Any, b: Any) -> Any:
    return a * np.exp(-b * t)


def slopes(t: Any, a: Any, b: Any) -> Any:
    return np.stack([np.exp(-b * t), -a * t * np.exp(-b * t)], -1)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("options", [{}, {"bounds": ([0, 0], [5, 3.0])}, {"absolute_sigma": True}])
def test_curve_fit(which: int, options: dict[str, Any]) -> None:
    def f(m: Any, y: Any, t: Any, sigma: Any, **more: Any) -> Any:
        return m.curve_fit(decay, t, y, sigma=sigma, **options, **more)[which]

    exact = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "jac": slopes}
    plain = lambda *args: f(scipy.optimize, *args, **exact)  # noqa: E731
    args = (Y, T, SIGMA)
    assert np.allclose(ft.vjp(lambda *args: f(optimize, *args), *args)[0], f(scipy.optimize, *args), rtol=1e-6)
    found = ft.jacobian(lambda *args: f(optimize, *args), (0, 1, 2))(*args)
    for i, jacobian in enumerate(found):
        expected = differences(lambda x, i=i: plain(*args[:i], x, *args[i + 1 :]), args[i], 1e-3)
        assert np.allclose(jacobian, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)))


def test_curve_fit_with_a_covariance_of_the_data() -> None:
    def f(m: Any, scale: Any, **options: Any) -> Any:
        return m.curve_fit(decay, T, Y, sigma=np.diag(SIGMA**2) + scale * 0.001, **options)[0]

    exact = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "jac": slopes}
    expected = differences(lambda s: f(scipy.optimize, s, **exact), np.array(1.0), 1e-2)
    assert np.allclose(ft.jacobian(lambda s: f(optimize, s))(1.0), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="takes all data"):
        ft.grad(lambda y: optimize.curve_fit(decay, T, y, nan_policy="omit")[0][0])(Y)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"method": "lm"}, {"loss": "soft_l1", "f_scale": 0.1}, {"loss": "huber", "f_scale": 0.1},
        {"loss": "cauchy"}, {"loss": "arctan"}, {"bounds": ([0, 0], [2.2, 9.0])},
    ],
    ids=str,
)  # fmt: skip
def test_least_squares(options: dict[str, Any]) -> None:
    def f(m: Any, y: Any, **more: Any) -> Any:
        return m.least_squares(lambda p, y: decay(T, p[0], p[1]) - y, [1.0, 1.0], args=(y,), **options, **more)

    value, _ = ft.vjp(lambda y: f(optimize, y).x, Y)
    assert np.allclose(value, f(scipy.optimize, Y).x, rtol=1e-6)
    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-14, "jac": lambda p, y: slopes(T, *p)}
    expected = differences(lambda y: f(scipy.optimize, y, **tight).x, Y, 2e-3)
    assert np.allclose(ft.jacobian(lambda y: f(optimize, y).x)(Y), expected, atol=2e-6)
    assert np.allclose(ft.grad(lambda y: f(optimize, y).cost)(Y), differences(lambda y: f(optimize, y).cost, Y))


def test_leastsq() -> None:
    def f(y: Any) -> Any:
        p, covariance, info, _, status = optimize.leastsq(lambda p: decay(T, *p) - y, [1.0, 1.0], full_output=True)
        return (p, covariance, info["fvec"]) if status in (1, 2, 3, 4) else None

    p, covariance, _ = f(Y)
    (value, of_covariance, _), _ = ft.vjp(f, Y)
    assert np.allclose(value, p)
    assert np.allclose(of_covariance, covariance, rtol=1e-6)
    fitted = lambda y: optimize.curve_fit(decay, T, y, absolute_sigma=True)  # noqa: E731
    for i in (0, 1):
        expected = ft.jacobian(lambda y, i=i: fitted(y)[i])(Y)
        assert np.allclose(ft.jacobian(lambda y, i=i: f(y)[i])(Y), expected, rtol=1e-8)


# Linear problems

A, B = RNG.standard_normal((6, 4)), RNG.standard_normal(6)


def test_nnls() -> None:
    assert np.sum(scipy.optimize.nnls(A, B)[0] == 0) == 2
    for which in (0, 1):
        f = lambda a, b, m=optimize, k=which: m.nnls(a, b)[k]  # noqa: E731
        by_a, by_b = ft.jacobian(f, (0, 1))(A, B)
        assert np.allclose(by_a, differences(lambda a, f=f: f(a, B, scipy.optimize), A), atol=1e-8)
        assert np.allclose(by_b, differences(lambda b, f=f: f(A, b, scipy.optimize), B), atol=1e-8)


def test_lsq_linear() -> None:
    f = lambda b, m=optimize: m.lsq_linear(A, b, bounds=(-0.1, 0.2)).x  # noqa: E731
    assert np.array_equal(ft.vjp(f, B)[0], f(B, scipy.optimize))
    assert np.allclose(ft.jacobian(f)(B), differences(lambda b: f(b, scipy.optimize), B), atol=1e-8)


def test_linprog() -> None:
    def f(c: Any, a: Any, b: Any, m: Any = optimize) -> Any:
        bounds = [(0, None), (0, None), (-5, 10)]
        return m.linprog(c, a, b, A_eq=[[0, 0, 1.0]], b_eq=[0.3], bounds=bounds).x

    c, a, b = np.array([-1.0, -2.0, 0.5]), np.array([[1.0, 1.0, 0.0], [1.0, 3.0, 1.0]]), np.array([4.0, 6.0])
    by_c, by_a, by_b = ft.jacobian(f, (0, 1, 2))(c, a, b)
    assert not by_c.any()
    assert np.allclose(by_a, differences(lambda a: f(c, a, b, scipy.optimize), a), atol=1e-8)
    assert np.allclose(by_b, differences(lambda b: f(c, a, b, scipy.optimize), b), atol=1e-8)
    # An edge of solutions, and a vertex where more constraints meet than there are unknowns.
    for costs, limits in (([-1.0, -1.0, 0.5], b), (c, [4.0, 0.3])):
        with pytest.raises((ft.ConvergenceError, np.linalg.LinAlgError)):
            ft.jacobian(f, 2)(np.array(costs), a, np.array(limits))
    with pytest.raises(ValueError, match="integers jump"):
        ft.grad(lambda c: optimize.linprog(c, a, b, integrality=1).fun)(c)


def test_least_squares_takes_keywords_of_its_function() -> None:
    times = np.arange(4.0)

    def fitted(data: Any) -> Any:
        return optimize.least_squares(
            lambda p, t, data: p[0] * t + p[1] - data, np.ones(2), args=(times,), kwargs={"data": data}
        ).x

    assert np.allclose(ft.jacobian(fitted)(times**2), np.linalg.pinv(np.stack([times, np.ones(4)], 1)))


def test_a_result_in_a_trace_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="hess_inv"):
        ft.grad(lambda a: optimize.minimize(hill, np.ones(2), (a,)).hess_inv[0, 0])(POINT)


def test_curve_fit_of_too_few_data() -> None:
    with pytest.raises(TypeError, match="2 data for 3 parameters"):
        ft.jacobian(lambda y: optimize.curve_fit(lambda x, a, b, c: a + b * x + c * x**2, np.ones(2), y)[0])(np.ones(2))
