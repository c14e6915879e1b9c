"""Initial value problems of `scipy.integrate` on traced values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import ftrans as ft
from ftrans.scipy import integrate

TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11}
P = np.array([0.8, 1.3])


def growth(t: Any, y: Any, k: Any) -> Any:
    """Logistic growth, whose solution is `grown`."""
    return k * y * (1 - y)


def grown(t: Any, start: Any, p: Any) -> Any:
    """The state at a time, from p[0] / 4 at the time `start`, at the rate p[1]."""
    first = p[0] / 4
    return first / (first + (1 - first) * np.exp(-p[1] * (t - start)))


METHODS = ["RK45", "DOP853", "Radau", "BDF", "LSODA"]


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_of_all_methods(method: str) -> None:
    times = np.linspace(0.0, 2.0, 4)

    def f(p: Any) -> Any:
        solution = integrate.solve_ivp(growth, (0, 2), p[:1] / 4, method, times, args=(p[1],), **TIGHT)
        return np.sum(np.sin(solution.y))

    def exact(p: Any) -> Any:
        return np.sum(np.sin(grown(times, 0.0, p)))

    theirs = scipy.integrate.solve_ivp(growth, (0, 2), P[:1] / 4, method, times, args=(P[1],), **TIGHT)
    value, gradient = ft.value_and_grad(f)(P)
    np.testing.assert_allclose(value, np.sum(np.sin(theirs.y)), rtol=1e-15)
    np.testing.assert_allclose(gradient, ft.grad(exact)(P), rtol=1e-6)
    np.testing.assert_allclose(ft.jacfwd(f)(P), ft.grad(exact)(P), rtol=1e-6)
    np.testing.assert_allclose(ft.hessian(f)(P), ft.hessian(exact)(P), rtol=1e-5)


def test_steps_are_those_of_scipy_and_the_ends_move() -> None:
    def solved(p: Any, solve_ivp: Any = integrate.solve_ivp) -> Any:
        return solve_ivp(growth, (p[1] - 1, 2 * p[0]), p[:1] / 4, args=(p[1],), **TIGHT)

    def f(p: Any) -> Any:
        solution = solved(p)
        return solution.y[0, -1] + solution.t[-1] * solution.t[0], (solution.t, solution.y)

    def exact(p: Any) -> Any:
        return grown(2 * p[0], p[1] - 1, p) + 2 * p[0] * (p[1] - 1)

    gradient, (t, y) = ft.grad(f, has_aux=True)(P)
    theirs = solved(P, scipy.integrate.solve_ivp)
    np.testing.assert_array_equal(t, theirs.t)
    np.testing.assert_allclose(y, theirs.y, rtol=1e-14)
    np.testing.assert_allclose(gradient, ft.grad(exact)(P), rtol=1e-6)


def test_compiled_with_another_number_of_steps() -> None:
    @ft.jit
    def f(p: Any) -> Any:
        solution = integrate.solve_ivp(growth, (0, 2 * p[0]), p[:1] / 4, args=(p[1],), **TIGHT)
        return solution.t, solution.y

    for p in (P, 3 * P):
        theirs = scipy.integrate.solve_ivp(growth, (0, 2 * p[0]), p[:1] / 4, args=(p[1],), **TIGHT)
        t, y = f(p)
        np.testing.assert_array_equal(t, theirs.t)
        np.testing.assert_allclose(y, theirs.y, rtol=1e-12)


def test_ends_are_known_under_vmap_and_steps_are_not() -> None:
    def last(p: Any) -> Any:
        return integrate.solve_ivp(growth, (0, 2), p[:1] / 4, args=(p[1],), **TIGHT).y[0, -1]

    def exact(p: Any) -> Any:
        return grown(2.0, 0.0, p)

    ps = np.stack([P, 1.1 * P])
    np.testing.assert_allclose(ft.vmap(ft.grad(last))(ps), ft.vmap(ft.grad(exact))(ps), rtol=1e-6)
    with pytest.raises(ValueError, match="give t_eval"):
        ft.vmap(lambda p: np.sum(integrate.solve_ivp(growth, (0, 2), p[:1], args=(p[1],)).y))(ps)
    with pytest.raises(ValueError, match="give t_eval"):
        ft.vmap(lambda p: integrate.solve_ivp(growth, (0, 2), p[:1], args=(p[1],)).t[1])(ps)


def test_dense_output() -> None:
    def f(p: Any, times: Any) -> Any:
        sol = integrate.solve_ivp(growth, (0, 2), p[:1] / 4, args=(p[1],), dense_output=True, **TIGHT).sol
        return sol(times[0])[0] + np.sum(sol(times[::-1]))

    def exact(p: Any, times: Any) -> Any:
        return grown(times[0], 0.0, p) + np.sum(grown(times, 0.0, p))

    times = np.array([0.3, 1.1])
    sol = scipy.integrate.solve_ivp(growth, (0, 2), P[:1] / 4, args=(P[1],), dense_output=True, **TIGHT).sol
    value, gradients = ft.value_and_grad(f, argnums=(0, 1))(P, times)
    np.testing.assert_allclose(value, sol(0.3)[0] + np.sum(sol(times)), rtol=1e-14)
    for found, expected in zip(gradients, ft.grad(exact, argnums=(0, 1))(P, times), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_stiff_problems_have_derivatives() -> None:
    # Robertson's reactions; the sum of the concentrations does not change.
    def reactions(t: Any, y: Any, k: Any) -> Any:
        first, second, third = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
        return [second - first, first - second - third, third]

    def f(k: Any) -> Any:
        return integrate.solve_ivp(
            reactions, (0, 1e3), [1.0, 0.0, 0.0], "BDF", [1e3], args=(k,), rtol=1e-7, atol=1e-12
        ).y[:, 0]

    rates = np.array([0.04, 1e4, 3e7])
    found = ft.jacrev(f)(rates)
    np.testing.assert_allclose(found, ft.jacfwd(f)(rates), rtol=1e-4)
    np.testing.assert_allclose(np.sum(found, axis=0) * rates, 0.0, atol=1e-7)
    for i, step in enumerate(1e-4 * np.diag(rates)):
        difference = (f(rates + step) - f(rates - step)) / (2 * step[i])
        np.testing.assert_allclose(found[:, i], difference, rtol=1e-3)


def test_odeint_by_closures_and_times() -> None:
    def f(p: Any, odeint: Any = integrate.odeint) -> Any:
        return odeint(lambda y, t: growth(t, y, p[1]), p[0] / 4, p[0] * np.arange(3.0), **TIGHT)

    def exact(p: Any) -> Any:
        return grown(p[0] * np.arange(3.0), 0.0, p)[:, None]

    np.testing.assert_array_equal(ft.jit(f)(P), f(P, scipy.integrate.odeint))
    np.testing.assert_allclose(ft.jacrev(f)(P), ft.jacobian(exact)(P), rtol=1e-6, atol=1e-8)


def test_vector_tolerances_and_vectorized_functions() -> None:
    def f(k: Any) -> Any:
        solution = integrate.solve_ivp(
            lambda t, y: k * y, (0, 1), [1.0, 2.0], "Radau", [1.0], vectorized=True, rtol=1e-8, atol=[1e-9, 1e-10]
        )
        return np.sum(solution.y)

    np.testing.assert_allclose(ft.value_and_grad(f)(0.5), 2 * [3 * np.exp(0.5)], rtol=1e-7)


def test_failure_is_told() -> None:
    def f(k: Any) -> Any:
        solution = integrate.solve_ivp(lambda t, y: k * y**2, (0, 2), [1.0], t_eval=[0.5, 1.5])
        assert not solution.success
        return solution.y[0, 0] + 0 * solution.y[0, 1]

    assert np.isnan(ft.value_and_grad(f)(1.0)[0])


def test_problems_without_traced_values_are_those_of_scipy() -> None:
    def f(k: Any) -> Any:
        found = integrate.solve_ivp(growth, (0, 2), [0.2], events=lambda t, y, k: y[0] - 0.5, args=(1.0,))
        assert len(found.t_events[0]) == 1
        assert integrate.odeint(growth, [0.2], [0.0, 1.0], (1.0,), tfirst=True, full_output=True)[1]["nfe"] > 0
        return k

    assert ft.grad(f)(1.0) == 1.0


def test_branches_on_the_time_and_kinks_in_the_state() -> None:
    def doses(t: Any, y: Any, k: Any) -> Any:
        if t < 1.0:
            return [k - y[0]]
        return [-y[0]] if t < 2.0 else [-2.0 * y[0]]

    options: Any = {"t_eval": [0.5, 1.0, 3.0], "max_step": 0.1, **TIGHT}

    def f(k: Any, solve_ivp: Any = integrate.solve_ivp) -> Any:
        return np.sum(solve_ivp(doses, (0, 3), [0.1 * k], args=(k,), **options).y)

    def kink(k: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: k - np.maximum(y, 0.5), (0, 2), [0.0], t_eval=[2.0], **TIGHT).y[0, 0]

    # The solution is linear in k.  The steps across a jump are not as accurate as the others.
    value = f(1.3, scipy.integrate.solve_ivp)
    up = 1.0 - 0.9 * np.exp([-0.5, -1.0])
    slope = np.sum(up) + up[1] * np.exp(-3.0)
    np.testing.assert_allclose(ft.value_and_grad(f)(1.3), (value, slope), rtol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(1.3), slope, rtol=1e-6)
    # The slope is k - 0.5 up to the kink at t = 0.5 / (k - 0.5), from where the state goes on to k at the rate 1.
    expected = ft.grad(lambda k: k + (0.5 - k) * np.exp(0.5 / (k - 0.5) - 2.0))(1.3)
    np.testing.assert_allclose(ft.grad(kink)(1.3), expected, rtol=1e-6)


def test_events() -> None:
    def throw(p: Any, solve_ivp: Any = integrate.solve_ivp, **options: Any) -> Any:
        def ground(t: Any, y: Any, g: Any) -> Any:
            return y[0]

        def top(t: Any, y: Any, g: Any) -> Any:
            return y[1]

        ground.terminal, ground.direction = True, -1  # type: ignore[attr-defined]
        found = solve_ivp(
            lambda t, y, g: [y[1], -g], (0, 100), [0.5, p[0]], args=(p[1],), events=[ground, top], **options
        )
        return [found.t_events[0], found.t_events[1], found.y_events[1], found.y, found.t, found.status]

    def times(p: Any) -> Any:
        return np.stack([(p[0] + np.sqrt(p[0] ** 2 + p[1])) / p[1], p[0] / p[1]])

    p = np.array([3.0, 9.81])
    for options in ({}, {"t_eval": np.linspace(0, 5, 50)}):
        for ours, theirs in zip(
            ft.jit(throw)(p, **options), throw(p, scipy.integrate.solve_ivp, **options), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ft.jacrev(throw)(p)[0][0], ft.jacobian(times)(p)[0], rtol=1e-6)
    np.testing.assert_allclose(ft.jacfwd(throw)(p)[1][0], ft.jacobian(times)(p)[1], rtol=1e-6)
    np.testing.assert_allclose(ft.grad(lambda p: throw(p)[4][-1])(p), ft.jacobian(times)(p)[0], rtol=1e-6)
    np.testing.assert_allclose(ft.grad(lambda p: throw(p)[3][0, -1])(p), 0.0, atol=1e-6)
    np.testing.assert_allclose(ft.hessian(lambda p: throw(p)[0][0])(p), ft.hessian(lambda p: times(p)[0])(p), rtol=1e-5)
    with pytest.raises(ValueError, match="call it in a loop"):
        ft.vmap(lambda p: throw(p)[0][0])(np.stack([p, p]))


@pytest.mark.parametrize("solver", ["solve_ivp", "odeint"])
def test_jumps_where_the_state_decides_are_told(solver: str) -> None:
    def switching(t: Any, y: Any) -> Any:
        return np.where(y > 0.5, 3.0 * y, 1.0)

    def f(k: Any) -> Any:
        if solver == "odeint":
            return integrate.odeint(switching, k, [0.0, 1.0], tfirst=True)[1, 0]
        return integrate.solve_ivp(switching, (0, 1), [k], t_eval=[1.0]).y[0, 0]

    with pytest.raises(ft.ConvergenceError, match="jumps 1 times"):
        ft.grad(f)(0.1)
    assert np.isnan(ft.jit(ft.grad(f))(0.1))
    np.testing.assert_allclose(ft.grad(f)(2.0), np.exp(3.0), rtol=1e-2)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda k: integrate.solve_ivp(growth, (0, 1), [k], args=(k,), rtol=k)),
        (TypeError, lambda k: integrate.solve_ivp(growth, (0, 1), [k * 1j], args=(k,))),
        (TypeError, lambda k: integrate.solve_ivp(growth, (0, 1), np.ones((2, 2)), args=(k,))),
        (TypeError, lambda k: integrate.solve_ivp(lambda t, y: [k, k], (0, 1), [k])),
        (ValueError, lambda k: integrate.solve_ivp(growth, (0, 1), [k], args=(k,), t_eval=0.5)),
        (ValueError, lambda k: integrate.odeint(growth, [k], [0.0, 1.0], (k,), tfirst=True, full_output=True)),
        (ValueError, lambda k: integrate.odeint(growth, [k], k, (k,), tfirst=True)),
    ],
)
def test_what_is_not_taken(error: type[Exception], call: Any) -> None:
    with pytest.raises(error, match=__file__):
        ft.grad(lambda k: call(k).y[0, -1])(0.5)


@pytest.mark.parametrize(
    "last", [lambda s: s.y[0][-1], lambda s: s.y[-2, -1], lambda s: s.y.T[-1, 0], lambda s: s.y.T[-1][0]]
)
def test_ways_to_write_the_last_state_under_vmap(last: Any) -> None:
    def end(k: Any) -> Any:
        return last(integrate.solve_ivp(lambda t, y: -k * y * [1, 2], (0.0, 1.0), [1.0, 1.0], rtol=1e-9, atol=1e-9))

    rates = np.array([0.5, 1.0])
    np.testing.assert_allclose(ft.vmap(end)(rates), np.exp(-rates), rtol=1e-7)


def test_an_interval_of_no_length() -> None:
    states, slope = ft.vjp(lambda y: integrate.solve_ivp(growth, (1.0, 1.0), y, args=(2.0,), t_eval=[1.0]).y, P)
    np.testing.assert_array_equal(states, P[:, None])
    np.testing.assert_array_equal(slope(np.ones((2, 1)))[0], np.ones(2))


@pytest.mark.filterwarnings("ignore::scipy.integrate.ODEintWarning")
def test_tangents_that_odeint_does_not_reach_are_no_numbers() -> None:
    def end(a: Any) -> Any:
        return integrate.odeint(lambda y, t: np.sqrt(np.where(t > a, t - a, 0.0)), 0.5, [0, 1.0], mxstep=50, **TIGHT)

    assert np.isnan(ft.grad(lambda a: end(a)[-1, 0])(0.32))
