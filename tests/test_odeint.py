"""Solutions of differential equations, and their derivatives, against closed forms and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import ftrans as ft

A = np.array([[-0.3, 1.0], [-1.0, -0.1]])
Y0 = np.array([1.0, 0.5])
TIMES = np.array([0.0, 0.5, 0.5, 2.0])
TIGHT = {"rtol": 1e-11, "atol": 1e-11}
ADJOINTS = ("discrete", "continuous")
each_adjoint = pytest.mark.parametrize("adjoint", ADJOINTS)


def linear(y: Any, t: Any, a: Any) -> Any:
    return a @ y


def propagated(y0: Any, t: Any, a: Any) -> Any:
    return np.stack([scipy.linalg.expm(a * (s - t[0])) @ y0 for s in t])


@pytest.mark.parametrize("t", [TIMES, TIMES[::-1], np.array([1.0, 0.0]), np.array([3.0]), np.array([1.0, 1.0])])
def test_linear_systems(t: Any) -> None:
    np.testing.assert_allclose(ft.odeint(linear, Y0, t, A, **TIGHT), propagated(Y0, t, A), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ft.odeint(linear, Y0, t, A), propagated(Y0, t, A), rtol=1e-6, atol=1e-7)


def test_lotka_volterra() -> None:
    def f(y: Any, t: Any, a: Any, b: Any) -> Any:
        return {
            "prey": a * y["prey"] - y["prey"] * y["predator"],
            "predator": b * y["prey"] * y["predator"] - y["predator"],
        }

    t = np.linspace(0.0, 10.0, 6)
    ys = ft.jit(lambda a: ft.odeint(f, {"prey": 1.0, "predator": 0.5}, t, a, 0.8, **TIGHT))(1.5)
    expected = scipy.integrate.solve_ivp(
        lambda t, y: [1.5 * y[0] - y[0] * y[1], 0.8 * y[0] * y[1] - y[1]],
        (0.0, 10.0), [1.0, 0.5], method="DOP853", t_eval=t, rtol=1e-12, atol=1e-12,
    ).y  # fmt: skip
    np.testing.assert_allclose(ys["prey"], expected[0], rtol=1e-8)
    np.testing.assert_allclose(ys["predator"], expected[1], rtol=1e-8)


def test_the_number_of_steps_is_that_of_a_fifth_order_method() -> None:
    steps = [
        ft.odeint(linear, Y0, np.array([0.0, 20.0]), A, rtol=r, atol=r, info=True)[1].accepted for r in (1e-5, 1e-10)
    ]
    assert 7 < steps[1] / steps[0] < 13
    expected = scipy.integrate.solve_ivp(lambda t, y: A @ y, (0.0, 20.0), Y0, method="RK45", rtol=1e-10, atol=1e-10)
    assert steps[1] < 1.3 * len(expected.t)


@each_adjoint
@pytest.mark.parametrize("way", [lambda f, **k: ft.grad(f, **k), lambda f, **k: ft.jacfwd(f, **k)], ids=["rev", "fwd"])
def test_first_derivatives(adjoint: Any, way: Callable[..., Any]) -> None:
    weights = np.array([[0.3, -1.0], [0.5, 0.2], [0.1, 0.7], [1.0, -0.4]])

    def loss(y0: Any, t: Any, a: Any) -> Any:
        return np.sum(weights * ft.odeint(linear, y0, t, a, adjoint=adjoint, **TIGHT))

    of_y0, of_t, of_a = way(loss, argnums=(0, 1, 2))(Y0, TIMES, A)
    ys = propagated(Y0, TIMES, A)
    powers = [scipy.linalg.expm(A * s) for s in TIMES]
    np.testing.assert_allclose(of_y0, sum(p.T @ w for p, w in zip(powers, weights, strict=True)), rtol=1e-8)
    slopes = np.sum(weights * (ys @ A.T), axis=1)
    slopes[0] -= slopes.sum()
    np.testing.assert_allclose(of_t, slopes, rtol=1e-7, atol=1e-9)
    for i, j in np.ndindex(2, 2):
        direction = np.zeros((2, 2))
        direction[i, j] = 1.0
        moved = [scipy.linalg.expm_frechet(A * s, direction * s, compute_expm=False) @ Y0 for s in TIMES]
        np.testing.assert_allclose(of_a[i, j], np.sum(weights * np.stack(moved)), rtol=1e-7)


def logistic(y0: Any, r: Any, t: Any) -> Any:
    return 1 / (1 + (1 / y0 - 1) * np.exp(-r * t))


@each_adjoint
@pytest.mark.parametrize(
    "way",
    [
        ft.hessian,
        lambda f: ft.jacrev(ft.grad(f)),
        lambda f: ft.jacrev(ft.jacfwd(f)),
        lambda f: ft.jacfwd(ft.jacfwd(f)),
        lambda f: ft.grad(lambda x: ft.hvp(f, (x,), (np.array([1.0, 0.5, -0.3]),)) @ np.array([0.2, 1.0, 0.4])),
    ],
    ids=["forward over reverse", "reverse over reverse", "reverse over forward", "forward over forward", "third"],
)
def test_higher_derivatives(adjoint: Any, way: Callable[..., Any]) -> None:
    def solved(x: Any) -> Any:
        t = np.stack([np.zeros_like(x[2]), x[2]])
        return ft.odeint(lambda y, t, r: r * y * (1 - y), x[0], t, x[1], adjoint=adjoint, rtol=1e-9, atol=1e-9)[-1]

    x = np.array([0.2, 1.3, 1.5])
    np.testing.assert_allclose(way(solved)(x), way(lambda x: logistic(*x))(x), rtol=3e-6, atol=1e-7)


@each_adjoint
def test_closures_are_differentiated(adjoint: Any) -> None:
    def loss(x: Any) -> Any:
        rate, more = x["rate"], 2.0 * x["more"]

        def f(y: Any, t: Any) -> Any:
            return -rate * y[0] + more[1] * np.cos(t), y[0]

        a, b = ft.odeint(f, (x["y0"], 0.0), np.array([0.0, 0.7]), adjoint=adjoint, rtol=1e-10, atol=1e-10)
        return a[-1] + b[-1] ** 2

    def closed(x: Any) -> Any:
        r, m, s = x["rate"], 2.0 * x["more"][1], 0.7
        a, b = m * r / (1 + r * r), m / (1 + r * r)
        c = x["y0"] - a
        y = c * np.exp(-r * s) + a * np.cos(s) + b * np.sin(s)
        return y + (c * (1 - np.exp(-r * s)) / r + a * np.sin(s) + b * (1 - np.cos(s))) ** 2

    x = {"rate": 0.8, "more": np.array([5.0, 0.6]), "y0": 1.1}
    expected = ft.grad(closed)(x)
    for way in (ft.jit(ft.grad(loss)) if adjoint == "continuous" else ft.grad(loss), ft.jacfwd(loss)):
        found = way(x)
        for name in x:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("way", "factor"),
    [
        (ft.grad, 1.0),
        (ft.jacfwd, 1.0),
        (ft.hessian, 2 * (1 - np.exp(-10.0))),
        (lambda f: ft.grad(ft.grad(f)), 2 * (1 - np.exp(-10.0))),
        (lambda f: ft.jacrev(ft.jacfwd(f)), 2 * (1 - np.exp(-10.0))),
        (lambda f: ft.grad(lambda y: 1e-12 * f(y)), 1e-12),
        (lambda f: lambda y: ft.jvp(f, (y,), (1e-12,))[1], 1e-12),
    ],
)
def test_steps_of_the_continuous_adjoint_suit_the_derivative(way: Callable[..., Any], factor: float) -> None:
    # The solution stays at zero, so steps that are chosen for it alone are as long as they can be.
    def solved(y0: Any) -> Any:
        return ft.odeint(lambda y, t: y * y - y, y0, np.array([0.0, 10.0]), adjoint="continuous")[-1]

    assert way(solved)(0.0) == pytest.approx(factor * np.exp(-10.0), rel=2e-3)


@each_adjoint
def test_loops_in_the_function(adjoint: Any) -> None:
    def solved(rate: Any, inner: Callable[..., Any]) -> Any:
        return ft.odeint(lambda y, t: -rate * y * inner(rate, t), 1.0, np.array([0.0, 1.0]), adjoint=adjoint)[-1]

    def nested(rate: Any, t: Any) -> Any:
        return ft.odeint(lambda z, s: -rate * z, 1.0, np.stack([0 * t, t]), adjoint=adjoint)[-1]

    def power(rate: Any, t: Any) -> Any:
        return ft.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * rate, c[1] + 1), (1.0, 0))[0]

    rate = 0.7
    assert ft.grad(lambda r: solved(r, nested))(rate) == pytest.approx(-np.exp(np.exp(-rate) - 1 - rate), rel=1e-5)
    assert ft.grad(lambda r: solved(r, power))(rate) == pytest.approx(-4 * rate**3 * np.exp(-(rate**4)), rel=1e-6)


@each_adjoint
def test_batches(adjoint: Any) -> None:
    def solved(y0: Any, rate: Any) -> Any:
        return ft.odeint(lambda y, t: rate * y * (1 - y), y0, np.array([0.0, 1.0, 2.0]), adjoint=adjoint)[-1]

    y0, rate = np.array([0.1, 0.5, 0.9]), np.array([0.5, 4.0, 1.0])
    found = ft.vmap(ft.grad(solved, argnums=(0, 1)))(y0, rate)
    expected = ft.vmap(ft.grad(lambda y, r: logistic(y, r, 2.0), argnums=(0, 1)))(y0, rate)
    total = ft.grad(lambda y, r: np.sum(ft.vmap(solved)(y, r)), argnums=(0, 1))(y0, rate)
    for a, b, c in zip(found, expected, total, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
        np.testing.assert_allclose(c, b, rtol=1e-5)
    if adjoint == "discrete":
        np.testing.assert_allclose(ft.jit(ft.vmap(solved))(y0, rate), logistic(y0, rate, 2.0), rtol=1e-6)


@each_adjoint
def test_integer_operands_and_numbers(adjoint: Any) -> None:
    def loss(y0: Any, n: Any) -> Any:
        return ft.odeint(lambda y, t, n: -n * y, y0, [0, 1], n, adjoint=adjoint)[-1]

    assert ft.grad(loss)(2.0, 3) == pytest.approx(np.exp(-3.0), rel=1e-5)
    assert ft.odeint(lambda y, t: -y, 2, [0, 1])[-1] == pytest.approx(2 * np.exp(-1.0), rel=1e-6)


@each_adjoint
def test_single_precision(adjoint: Any) -> None:
    def solved(y0: Any, t: Any) -> Any:
        return ft.odeint(lambda y, t: -y * t, y0, t, rtol=1e-5, atol=1e-6, adjoint=adjoint)[-1]

    t = np.array([0.0, 1.0], np.float32)
    value, gradient = ft.value_and_grad(solved)(np.float32(2.0), t)
    assert value.dtype == gradient.dtype == np.float32
    assert gradient == pytest.approx(np.exp(-0.5), rel=1e-4)
    assert solved(np.float32(2.0), t.astype(np.float64)).dtype == np.float32


@each_adjoint
def test_complex_states(adjoint: Any) -> None:
    def loss(frequency: Any) -> Any:
        y = ft.odeint(lambda y, t: 1j * frequency * y, 1.0 + 0.0j, np.array([0.0, 1.5]), adjoint=adjoint, **TIGHT)[-1]
        return y.real + 2 * y.imag

    w = 1.2
    assert loss(w) == pytest.approx(np.cos(1.5 * w) + 2 * np.sin(1.5 * w), rel=1e-8)
    expected = 1.5 * (2 * np.cos(1.5 * w) - np.sin(1.5 * w))
    assert ft.grad(loss)(w) == pytest.approx(expected, rel=1e-7)
    assert ft.jacfwd(loss)(w) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("more", [{"max_steps": 200}, {"checkpoints": 4}])
def test_what_reverse_mode_keeps_changes_nothing(more: dict[str, int]) -> None:
    def loss(a: Any, **more: Any) -> Any:
        return np.sum(ft.odeint(linear, Y0, np.array([0.0, 1.0, 4.0]), a, **more))

    expected = ft.grad(loss)(A)
    np.testing.assert_allclose(ft.grad(lambda a: loss(a, **more))(A), expected, rtol=1e-12)
    if "checkpoints" in more:
        np.testing.assert_allclose(ft.jit(ft.grad(lambda a: loss(a, **more)))(A), expected, rtol=1e-10)


# Failure


def exploding(y0: Any, **more: Any) -> Any:
    return ft.odeint(lambda y, t: y * y, y0, np.array([0.0, 0.5, 2.0]), **more)


@each_adjoint
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_a_singularity_is_reported(adjoint: Any) -> None:
    with pytest.raises(ft.ConvergenceError, match=r"odeint stopped at t = 1 after \d+ steps"):
        exploding(1.0, adjoint=adjoint)
    with pytest.raises(ft.ConvergenceError):
        ft.value_and_grad(lambda y: exploding(y, adjoint=adjoint)[-1])(1.0)
    assert np.isnan(ft.jit(ft.value_and_grad(lambda y: exploding(y, adjoint=adjoint)[-1]))(1.0)).all()


@each_adjoint
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_one_lane_that_fails_spoils_no_other(adjoint: Any) -> None:
    y0 = np.array([0.1, 1.0, 0.3])
    expected = np.where(y0 < 0.5, (1 - 2 * y0) ** -2.0, np.nan)
    for way in (ft.grad, ft.jacfwd):
        found = ft.vmap(way(lambda y: exploding(y, adjoint=adjoint, max_steps=40)[-1]))(y0)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_too_many_steps_are_reported() -> None:
    with pytest.raises(ft.ConvergenceError, match="after 3 steps"):
        ft.odeint(linear, Y0, np.array([0.0, 9.0]), A, max_steps=3)
    assert np.isnan(ft.jit(lambda a: ft.odeint(linear, Y0, np.array([0.0, 9.0]), a, max_steps=3))(A)).all()


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_info_instead_of_an_error() -> None:
    ys, info = exploding(1.0, info=True)
    assert not info.success
    np.testing.assert_allclose(ys[:2], [1.0, 2.0], rtol=1e-6)
    assert np.isnan(ys[2])
    ys, info = exploding(0.1, info=True)
    assert info.success
    assert 0 < info.accepted <= info.steps
    ys, info = ft.vmap(lambda y: exploding(y, info=True))(np.array([0.1, 1.0]))
    np.testing.assert_array_equal(info.success, [True, False])
    np.testing.assert_allclose(ys[0], 0.1 / (1 - 0.1 * np.array([0.0, 0.5, 2.0])), rtol=1e-6)


def test_states_that_are_not_finite() -> None:
    with pytest.raises(ft.ConvergenceError), np.errstate(all="ignore"):
        ft.odeint(lambda y, t: np.sqrt(y), -1.0, np.array([0.0, 1.0]))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_rejected_steps_have_no_derivative() -> None:
    # Nothing happens at first, so steps grow; the one that meets the reaction overflows.
    def solved(y0: Any) -> Any:
        t = np.array([0.0, 1.01])
        return ft.odeint(lambda y, t: np.where(t < 1.0, 0.0 * y, -3e3 * y**3), y0, t, rtol=1e-8, atol=1e-10)[-1]

    expected = (1 + 60.0) ** -1.5
    assert solved(1.0) == pytest.approx((1 + 60.0) ** -0.5, rel=1e-4)
    for way in (ft.grad, ft.jacfwd, lambda f: ft.jit(ft.grad(f))):
        assert way(solved)(1.0) == pytest.approx(expected, rel=1e-3)


def test_bad_arguments() -> None:
    t = np.array([0.0, 1.0])
    with pytest.raises(TypeError, match=r"y\['a'\]: f64\[2\] went in, f64\[\] was returned"):
        ft.odeint(lambda y, t: {"a": y["a"].sum()}, {"a": Y0}, t)
    with pytest.raises(TypeError, match="a container like it"):
        ft.odeint(lambda y, t: (y, y), Y0, t)
    with pytest.raises(TypeError, match=r"y: f64\[\] went in, c128\[\] was returned"):
        ft.odeint(lambda y, t: 1j * y, 1.0, t)
    with pytest.raises(TypeError, match=r"args\[0\] is of type function"):
        ft.odeint(lambda y, t, g: g(y), 1.0, t, test_bad_arguments)
    with pytest.raises(ValueError, match=r"array of times of shape \(n,\), not f64\[\]"):
        ft.odeint(lambda y, t: y, 1.0, 2.0)
    with pytest.raises(ValueError, match="rtol > 0"):
        ft.odeint(lambda y, t: y, 1.0, t, rtol=0.0)
    with pytest.raises(ValueError, match='must be "discrete" or "continuous"'):
        ft.odeint(lambda y, t: y, 1.0, t, adjoint="backsolve")  # type: ignore[arg-type]
