"""jit: compiled functions, static and donated arguments, and one compiled path for each way through Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from checks import assert_close

import ftrans as ft

X = np.array([1.0, 2.0, 3.0])


class Pair(NamedTuple):
    """A container."""

    x: Any
    y: Any


class Counted:
    """A function that counts how often its Python runs."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.traces = 0
        self.__name__ = "counted"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.traces += 1
        return self.f(*args, **kwargs)


# Compiling


def test_compiled_is_eager() -> None:
    f = Counted(lambda x, y: np.sum(np.sin(x) * y) + y[0])
    compiled = ft.jit(f)
    for x in (X, 2 * X, -X):
        result = compiled(x, X)
        assert type(result) is np.float64
        assert_close(result, f.f(x, X))
    assert f.traces == 1


def test_another_type_is_another_program() -> None:
    f = Counted(lambda x: x * 2)
    compiled = ft.jit(f)
    for x in (X, X[:2], X.astype(np.float32), np.arange(3), 2.0, 2, np.float32(2)):
        assert_close(compiled(x), np.asarray(x * 2)[()])
        assert_close(compiled(x), np.asarray(x * 2)[()])
    assert f.traces == 7


def test_python_numbers_are_weak() -> None:
    x = X.astype(np.float32)
    assert ft.jit(lambda x, a: x * a)(x, 2.0).dtype == np.float32
    assert ft.jit(lambda x, a: x * a)(x, np.float64(2.0)).dtype == np.float64


def test_containers() -> None:
    f = ft.jit(lambda p, more: {"a": p.x + more[0], "b": Pair(p.y, None)})
    out = f(Pair(X, 2.0), [X])
    assert_close(out["a"], 2 * X)
    assert out["b"] == Pair(2.0, None)


def test_keyword_arguments_and_defaults() -> None:
    f = Counted(lambda x, scale=2.0: x * scale)
    compiled = ft.jit(f)
    assert_close(compiled(X), 2 * X)
    assert_close(compiled(X, scale=3.0), 3 * X)
    assert_close(compiled(X, scale=4.0), 4 * X)
    assert f.traces == 2


def test_as_a_decorator() -> None:
    @ft.jit
    def f(x: Any) -> Any:
        """Says what it is."""
        return x + 1

    @ft.jit(static_argnames="n")
    def g(x: Any, n: int) -> Any:
        return x**n

    assert_close(f(X), X + 1)
    assert f.__doc__ == "Says what it is."
    assert_close(g(X, n=2), X**2)


def test_closed_over_arrays_are_constants() -> None:
    table = np.arange(3.0)
    f = ft.jit(lambda x: x + table)
    assert_close(f(X), X + np.arange(3.0))
    table[:] = 7.0
    assert_close(f(X), X + np.arange(3.0))


def test_results_without_arrays_of_the_arguments() -> None:
    assert_close(ft.jit(lambda x: np.ones(3))(X), np.ones(3))
    assert ft.jit(lambda: 3.0)() == 3.0
    a, b = ft.jit(lambda x: (x, x))(X)
    assert not np.may_share_memory(a, b)


def test_jit_inside_of_derivatives_and_outside() -> None:
    f = ft.jit(lambda x, y: np.sum(np.exp(x) * y))
    assert_close(ft.grad(f)(X, X), np.exp(X) * X)
    assert_close(ft.grad(f, 1)(X, X), np.exp(X))
    assert_close(ft.jit(ft.grad(f))(X, X), np.exp(X) * X)
    assert_close(ft.hessian(f)(X, X), np.diag(np.exp(X) * X))
    assert_close(ft.jit(lambda x: f(x, x) + f(2 * x, x))(X), np.sum(np.exp(X) * X + np.exp(2 * X) * X))
    assert_close(ft.vmap(f)(np.stack([X, -X]), np.stack([X, X])), np.array([f(X, X), f(-X, X)]))
    assert_close(ft.jvp(f, (X, X), (X, 0 * X))[1], np.sum(np.exp(X) * X * X))


def test_a_jitted_function_closes_over_a_tracer() -> None:
    slope = ft.grad(lambda x: ft.jit(lambda y: x * y**2)(3.0))(2.0)
    assert slope == 9.0


def test_lower_gives_jax_text() -> None:
    assert "sine" in ft.jit(np.sin).lower(X).as_text()


# Static and donated arguments


@pytest.mark.parametrize("positions", [(1, 2), (-2, -1)])
def test_static_arguments(positions: tuple[int, ...]) -> None:
    f = Counted(lambda x, how, n: x * n if how == "times" else x**n)
    compiled = ft.jit(f, static_argnums=positions)
    for _ in range(2):
        assert_close(compiled(X, "times", 3), 3 * X)
        assert_close(compiled(X, "power", 3), X**3)
    assert f.traces == 2


def test_static_names_of_a_function_of_any_number() -> None:
    def f(*xs: Any, flag: bool) -> Any:
        return sum(xs) if flag else xs[0]

    compiled = ft.jit(f, static_argnames="flag")
    assert_close(compiled(X, X, X, flag=True), 3 * X)
    assert_close(compiled(X, X, X, flag=False), X)


def test_a_static_argument_by_position_or_by_name() -> None:
    def f(x: Any, n: int) -> Any:
        return sum([x] * n)

    for compiled in (ft.jit(f, static_argnums=1), ft.jit(f, static_argnames="n")):
        assert_close(compiled(X, 3), 3 * X)
        assert_close(compiled(X, n=2), 2 * X)


def test_static_arguments_must_be_hashable() -> None:
    with pytest.raises(TypeError, match=r"(?s)static.*hashable.*list.*test_jit\.py"):
        ft.jit(lambda x, n: x, static_argnums=1)(X, [1, 2])


def test_an_argument_that_is_no_array_names_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"(?s)\['how'\].*the str 'a'.*static_argnames.*test_jit\.py"):
        ft.jit(lambda x, options: x)(X, {"how": "a"})


def test_donated_arrays_may_be_overwritten() -> None:
    with jax.enable_x64(True):
        x = jax.numpy.asarray(X)
    compiled = ft.jit(lambda x, y: x * 2 + y, donate_argnums=0)
    result = compiled(x, X)
    assert_close(np.asarray(result), 3 * X)
    assert x.is_deleted()
    y = X.copy()
    assert_close(compiled(y, X), 3 * X)
    assert_close(y, X)


def test_donation_counts_static_arguments() -> None:
    with jax.enable_x64(True):
        x, y = jax.numpy.asarray(X), jax.numpy.asarray(X)
    compiled = ft.jit(lambda n, x, y: x * n + y, static_argnums=0, donate_argnums=2)
    assert_close(np.asarray(compiled(2, x, y)), 3 * X)
    assert y.is_deleted()
    assert not x.is_deleted()


def test_static_arguments_that_python_holds_to_be_equal() -> None:
    f = ft.jit(lambda x, n: x * n if isinstance(n, bool) else x * n + type(n)(1), static_argnums=1)
    x = np.array([1, 2])
    for n in (1, True, 1.0, 1):
        assert_close(f(x, n), x * n if n is True else x * n + type(n)(1))
    sign = ft.jit(lambda x, zero: np.copysign(x, zero), static_argnums=1)
    assert [sign(1.0, zero) for zero in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0]


# Guarded paths


def piecewise(x: Any) -> Any:
    """Ten branches."""
    for k in range(9):
        if x < k:
            return x * (k + 1)
    return x * 10


def test_ten_branches_are_ten_programs() -> None:
    f = Counted(piecewise)
    compiled = ft.jit(f)
    points = [k - 0.5 for k in range(10)]
    for _ in range(3):
        for x in points:
            assert compiled(x) == pytest.approx(piecewise(x))
    assert f.traces == 10


def test_paths_of_a_gradient() -> None:
    f = Counted(piecewise)
    slope = ft.jit(ft.grad(f))
    for _ in range(2):
        assert [slope(k - 0.5) for k in range(10)] == list(range(1, 11))
    assert f.traces == 10


def test_a_while_loop() -> None:
    def root(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    f = Counted(root)
    compiled = ft.jit(f)
    for a in (2.0, 3.0, 2.0, 100.0):
        assert compiled(a) == pytest.approx(np.sqrt(a))
    assert f.traces <= 3
    assert ft.jit(ft.grad(root))(2.0) == pytest.approx(0.5 / np.sqrt(2.0))


def test_an_integer_is_a_guard() -> None:
    def power(x: Any, n: Any) -> Any:
        y = 1.0
        for _ in range(int(n)):
            y = y * x
        return y

    f = Counted(power)
    compiled = ft.jit(f)
    for n in (3, 5, 3, 5, 0):
        assert compiled(2.0, n) == 2.0**n
    assert f.traces == 3
    assert ft.jit(ft.grad(power))(2.0, 3) == 12.0


def test_an_index_is_a_guard_only_where_python_needs_it() -> None:
    f = Counted(lambda x, i: x[i] * 2)
    compiled = ft.jit(f)
    assert [compiled(X, i) for i in (0, 1, 2, -1)] == [2.0, 4.0, 6.0, 6.0]
    assert f.traces == 1
    g = Counted(lambda x, i: (10.0, 20.0, 30.0)[i] + x)
    compiled = ft.jit(g)
    assert [compiled(1.0, i) for i in (0, 1, 2, 1)] == [11.0, 21.0, 31.0, 21.0]
    assert g.traces == 3


def test_guards_of_several_values() -> None:
    def f(x: Any, y: Any) -> Any:
        if x > 0 and y > 0:
            return x * y
        if x > 0 or y > 0:
            return x + y
        return x - y

    compiled = ft.jit(f)
    for _ in range(2):
        for x in (-1.0, 2.0):
            for y in (-3.0, 4.0):
                assert compiled(x, y) == f(x, y)


def test_a_branch_on_an_array() -> None:
    compiled = ft.jit(lambda x: x / np.sum(x) if np.all(x > 0) else np.zeros_like(x))
    assert_close(compiled(X), X / 6)
    assert_close(compiled(-X), np.zeros(3))


def test_a_branch_on_nan() -> None:
    compiled = ft.jit(lambda x: x * 2 if x == x else 0.0 * 1.0)
    assert compiled(np.float64(1.0)) == 2.0
    assert compiled(np.float64(np.nan)) == 0.0
    assert compiled(np.float64(1.0)) == 2.0


def test_a_nested_jitted_function_that_branches() -> None:
    inner = ft.jit(lambda x: x * 2 if x > 0 else x * 3)
    outer = ft.jit(lambda x: inner(x) + 1)
    assert [outer(x) for x in (1.0, -1.0, 1.0)] == [3.0, -2.0, 3.0]
    slope = ft.grad(lambda x: inner(x) * x)
    assert [slope(1.0), slope(-1.0)] == [4.0, -6.0]


def test_a_static_condition_costs_no_guard() -> None:
    f = Counted(lambda x: x * 2 if x.ndim == 1 else x)
    compiled = ft.jit(f)
    assert_close(compiled(X), 2 * X)
    assert_close(compiled(-X), -2 * X)
    assert f.traces == 1


def test_runaway_specialisation_warns_once_and_names_the_line() -> None:
    def f(x: Any, n: Any) -> Any:
        return x * int(n)

    compiled = ft.jit(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(40):
            assert compiled(2.0, n) == 2.0 * n
    (warning,) = [w for w in caught if issubclass(w.category, RuntimeWarning)]
    message = str(warning.message)
    assert "test_jit.py" in message
    assert "return x * int(n)" in message
    for way_out in ("where", "cond", "while_loop"):
        assert way_out in message


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            return x
        raise ValueError("negative")

    compiled = ft.jit(f)
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            compiled(-1.0)
        assert compiled(1.0) == 1.0


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("size", [3, 200_000])
def test_conditions_that_hold_everywhere_or_nowhere_choose_nothing(size, value):
    condition = np.full(size, value)
    x = np.linspace(-1.0, 1.0, size)

    def f(x):
        return np.where(condition, np.sin(x), np.exp(x))

    text = ft.jit(f).lower(x).as_text()
    assert ("stablehlo.exponential" in text) != value
    np.testing.assert_allclose(ft.jit(f)(x), f(x), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(
        ft.jit(ft.grad(lambda x: np.sum(f(x))))(x), np.cos(x) if value else np.exp(x), rtol=1e-14
    )
    assert "select" not in str(ft.trace(f)(x))
    condition[-1] = not value
    np.testing.assert_allclose(ft.jit(f)(x), f(x), rtol=1e-14, atol=1e-15)
