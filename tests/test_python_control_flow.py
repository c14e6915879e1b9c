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


def root(x: Any) -> Any:
    """A square root by Newton's method, with as many steps as it takes."""
    y = x
    while abs(y * y - x) > 1e-13 * x:
        y = (y + x / y) / 2
    return y


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x**2 if x > 0 else -x,
        lambda x: x * int(x),
        lambda x: sum((x * k for k in range(int(x))), 0.0),
        lambda x: max(x, 0.0) * x,
        lambda x: root(1 + x**2),
        lambda x: np.sum(np.stack([1.0, x, x**2])) if np.all(np.stack([x, 1.0]) > 0.0) else 2 * x,
    ],
)
def test_vmap_runs_elements_together_that_see_the_same_values(f: Any) -> None:
    slope = ft.grad(f)
    values, slopes = np.array([f(x) for x in X]), np.array([slope(x) for x in X])
    assert_close(ft.vmap(f)(X), values)
    assert_close(ft.vmap(slope)(X), slopes)
    assert_close(ft.vmap(ft.jit(f))(X), values)
    assert_close(ft.grad(lambda xs: np.sum(ft.vmap(f)(xs)))(X), slopes)
    assert_close(ft.vmap(ft.vmap(f))(np.stack([X, X + 1])), np.stack([values, [f(x) for x in X + 1]]))
    # Compiled, there is one program for all elements.
    compiled = ft.jit(ft.vmap(slope))
    for x in (1.0, -2.0, 3.0):
        assert_close(compiled(np.array([x, x])), np.array([slope(x)] * 2))
    with pytest.raises(ConcretizationError, match=r"(?s)vmap.*test_python_control_flow\.py:\d+.*where.*cond"):
        compiled(X)


def test_vmap_within_vmap_of_branches() -> None:
    slope = ft.grad(lambda x: ft.vmap(lambda t: t * x if t * x > 0 else x**2)(np.array([1.0, -1.0])).sum())
    assert_close(ft.vmap(slope)(X), np.sign(X) + 2 * X)


def test_vmap_tells_elements_apart_by_their_texts() -> None:
    f = ft.vmap(ft.grad(lambda x: x**2 * float(f"{x:.0f}")))
    xs = np.array([1.2, -2.2, 1.1])
    assert_close(f(xs), 2 * xs * np.round(xs))
    assert_close(ft.jit(f)(xs), 2 * xs * np.round(xs))


def test_vmap_runs_no_element_on_the_path_of_others() -> None:
    def f(x: Any) -> Any:
        return ft.while_loop(lambda y: y < 10, lambda y: y * 2, x) if x > 0 else x

    # On the other path the loop would never end.
    assert_close(ft.vmap(f)(X), np.array([16.0, -2.0, 12.0]))


def test_vmap_puts_results_of_branches_together() -> None:
    def f(x: Any) -> Any:
        return {"a": x * 2, "b": 1.0} if x[0] > 0 else {"a": x, "b": x[1]}

    xs = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
    found = ft.vmap(f, in_axes=1, out_axes={"a": 1, "b": 0})(xs)
    assert_close(found["a"], xs * [2.0, 1.0, 2.0])
    assert_close(found["b"], np.array([1.0, 5.0, 1.0]))
    with pytest.raises(ValueError, match="different shapes"):
        ft.vmap(lambda x: x[x > 0])(xs.T)
    with pytest.raises(ValueError, match="different structures"):
        ft.vmap(lambda x: x if x > 0 else (x, x))(X)


def test_vmap_refuses_what_depends_on_floating_point_errors_of_an_element() -> None:
    def inverse(x: Any) -> Any:
        with np.errstate(divide="raise"):
            try:
                return 1 / (x - 1)
            except FloatingPointError:
                return x

    with pytest.raises(ConcretizationError, match=r"divide.*may differ"):
        ft.vmap(inverse)(X)


def test_vmap_allows_a_branch_on_what_is_not_batched() -> None:
    assert_close(ft.vmap(lambda x, n: x * 2 if n > 0 else x, in_axes=(0, None))(X, 1.0), 2 * X)
    assert_close(ft.vmap(lambda x, n: sum([x] * int(n)), in_axes=(0, None))(X, 3), 3 * X)
    scale = 2.0
    assert_close(ft.grad(lambda s: np.sum(ft.vmap(lambda x: x * s if s > 0 else x)(X)))(scale), np.sum(X))
