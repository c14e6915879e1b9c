"""Branches and loops in Python on traced values, in functions that are differentiated without jit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import assert_close

import ftrans as ft
from ftrans.core.witness import ConcretizationError

X = np.array([1.0, -2.0, 3.0])


def test_a_branch() -> None:
    f = lambda x: x**2 if x > 0 else -x  # noqa: E731
    assert [ft.grad(f)(x) for x in (3.0, -3.0)] == [6.0, -1.0]
    assert [ft.hessian(f)(x) for x in (3.0, -3.0)] == [2.0, 0.0]
    assert [ft.jvp(f, (x,), (1.0,)) for x in (3.0, -3.0)] == [(9.0, 6.0), (3.0, -1.0)]
    assert ft.vjp(f, -3.0)[1](1.0) == (-1.0,)


def test_a_branch_on_a_reduction() -> None:
    f = lambda x: x * 2 if np.sum(x) > 0 and x[0] > 0 else x / 2  # noqa: E731
    assert_close(ft.jacobian(f)(X), 2 * np.eye(3))
    assert_close(ft.jacobian(f)(-X), 0.5 * np.eye(3))
    assert_close(ft.jacobian(lambda x: x if (x > 0).any() else -x)(-np.ones(2)), -np.eye(2))


def newton(a: Any) -> Any:
    """The square root, until it no longer changes."""
    x = a
    while abs(x * x - a) > 1e-14 * a:
        x = 0.5 * (x + a / x)
    return x


def test_a_while_loop() -> None:
    assert ft.grad(newton)(2.0) == pytest.approx(0.5 / np.sqrt(2.0))
    assert ft.hessian(newton)(2.0) == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-6)


def test_a_loop_over_an_integer() -> None:
    def power(x: Any, n: Any) -> Any:
        y = 1.0
        for _ in range(int(n)):
            y = y * x
        return y

    assert ft.grad(power)(2.0, 3) == 12.0
    # The number of steps follows from the differentiated value.
    assert ft.grad(lambda x: power(x, np.floor(x) + 1))(2.5) == pytest.approx(3 * 2.5**2)
    assert ft.grad(lambda x: power(x, int(x)))(3.5) == pytest.approx(3 * 3.5**2)


def test_a_traced_integer_as_index_and_bound() -> None:
    def f(x: Any) -> Any:
        place = np.argmax(x)
        return [x[0], 2 * x[1], 3 * x[2]][place] + sum(x[i] for i in range(place))

    assert_close(ft.grad(f)(X), np.array([1.0, 1.0, 3.0]))


def test_iteration_and_unpacking() -> None:
    def f(x: Any) -> Any:
        a, b, c = x
        return a * b + sum(v * v for v in x) + len(x) * c

    assert_close(ft.grad(f)(X), np.array([-2.0 + 2.0, 1.0 - 4.0, 6.0 + 3.0]))


def test_builtins_that_compare() -> None:
    assert_close(ft.grad(lambda x: max(x) * min(x))(X), np.array([0.0, 3.0, -2.0]))
    assert_close(ft.grad(lambda x: sorted(x)[1] ** 2)(X), np.array([2.0, 0.0, 0.0]))
    assert ft.grad(lambda x: abs(x) * (not x < 0))(2.0) == 1.0


def test_assertions_and_conversions() -> None:
    def f(x: Any) -> Any:
        assert np.isfinite(x).all()
        assert bool(x[0] == 1.0)
        return np.sum(x * int(x[2]))

    assert_close(ft.grad(f)(X), np.full(3, 3.0))


def test_an_inner_function_branches_on_a_value_of_the_outer_one() -> None:
    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            return y * x if x > 0 else y

        return ft.grad(g)(1.0)

    assert [ft.grad(f)(x) for x in (2.0, -2.0)] == [1.0, 0.0]
    assert [f(2.0), f(-2.0)] == [2.0, 1.0]


def test_an_inner_function_branches_on_what_depends_on_both() -> None:
    def f(x: Any) -> Any:
        return ft.grad(lambda y: (x * y) ** 2 if x * y > 1 else x * y)(x + 0.0)

    # d/dy at y = x, then d/dx: 2 x^2 y -> 2 x^3, and x.
    assert [f(2.0), f(0.5)] == [16.0, 0.5]
    assert [ft.grad(f)(2.0), ft.grad(f)(0.5)] == [24.0, 1.0]
    assert [ft.hessian(f)(2.0), ft.hessian(f)(0.5)] == [24.0, 0.0]


def test_second_derivatives_take_the_same_path() -> None:
    f = lambda x: np.sum(x**3) if x[0] > 0 else np.sum(x**2)  # noqa: E731
    assert_close(ft.hessian(f)(X), np.diag(6 * X))
    assert_close(ft.hessian(f)(-X), 2 * np.eye(3))
    assert_close(ft.jacobian(ft.jacobian(f))(X), np.diag(6 * X))


def test_the_branch_is_decided_anew_at_each_call() -> None:
    slope = ft.grad(lambda x: x**2 if x > 0 else -x)
    assert [slope(x) for x in (1.0, -1.0, 2.0, -2.0, 1.0)] == [2.0, -1.0, 4.0, -1.0, 2.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x > 0 else -x,
        lambda x: x * int(x),
        lambda x: sum(x for _ in range(int(x))),
        lambda x: max(x, 0.0),
    ],
)
def test_vmap_refuses_a_branch_on_a_batched_value(f: Any) -> None:
    with pytest.raises(ConcretizationError, match=r"(?s)vmap.*test_python_control_flow\.py:\d+.*where.*cond"):
        ft.vmap(f)(X)
    with pytest.raises(ConcretizationError, match="vmap"):
        ft.jit(ft.vmap(ft.grad(f)))(X)
    with pytest.raises(ConcretizationError, match="vmap"):
        ft.vmap(ft.jit(f))(X)


def test_vmap_allows_a_branch_on_what_is_not_batched() -> None:
    assert_close(ft.vmap(lambda x, n: x * 2 if n > 0 else x, in_axes=(0, None))(X, 1.0), 2 * X)
    assert_close(ft.vmap(lambda x, n: sum([x] * int(n)), in_axes=(0, None))(X, 3), 3 * X)
    scale = 2.0
    assert_close(ft.grad(lambda s: np.sum(ft.vmap(lambda x: x * s if s > 0 else x)(X)))(scale), np.sum(X))
