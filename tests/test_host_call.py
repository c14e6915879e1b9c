"""Host calls: when `watch` calls Python, what it shows, and that it changes no result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.control.rules.host_call import watch

seen: list[tuple[Any, ...]] = []


def see(*values: Any) -> None:
    seen.append(values)


@pytest.fixture(autouse=True)
def forget() -> None:
    seen.clear()


def watched(x: Any) -> Any:
    return watch.apply(see, [x], [x, 2 * x])[0]


def passing(x: Any) -> Any:
    return watch.apply(see, [x], [x])[0]


def loop(x: Any) -> Any:
    def step(y: Any, i: Any) -> Any:
        (y,) = watch.apply(see, [y], [i, y], sparsely=True)
        return np.sin(y), y

    return ft.scan(step, x, np.arange(1000))[0]


@pytest.mark.parametrize("way", [ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1]])
def test_values_are_seen_and_derivatives_pass_by(way: Callable[..., Any]) -> None:
    assert way(lambda x: watched(x) ** 3)(2.0) == 12.0
    assert seen == [(2.0, 4.0)]
    assert all(isinstance(x, np.float64) for x in seen[0])


def test_a_call_without_use_is_dropped() -> None:
    def f(x: Any) -> Any:
        watched(x)
        return x * x

    assert ft.grad(f)(3.0) == 6.0
    assert not seen


def test_seen_arrays_stay_as_they_were() -> None:
    x = np.ones(3)
    ft.grad(lambda x: np.sum(watched(x) ** 2))(x)
    x[:] = 5.0
    np.testing.assert_array_equal(seen[0][0], np.ones(3))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.int8, np.bool_, np.complex64])
def test_values_keep_type_and_precision(dtype: Any, compiled: bool) -> None:
    numbers = np.random.default_rng(0).normal(size=(300_000,))
    x = (numbers + 1j * numbers[::-1]).astype(dtype) if np.dtype(dtype).kind == "c" else (1e5 * numbers).astype(dtype)
    for value in (x, x[:1], x[:0], x[0]):
        seen.clear()
        (ft.jit(passing) if compiled else passing)(value)
        ((found,),) = seen
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("compiled", [False, True])
def test_large_arrays_from_inside_a_loop(compiled: bool) -> None:
    def f(x: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            y = 0.5 * y
            return watch.apply(see, [y], [y])[0], None

        return ft.scan(step, x, length=3)[0]

    x = np.random.default_rng(0).normal(size=500_000)
    np.testing.assert_array_equal((ft.jit(f) if compiled else f)(x), x / 8)
    assert len(seen) == 3
    for k, (value,) in enumerate(seen):
        np.testing.assert_array_equal(value, x / 2 ** (k + 1))


@pytest.mark.parametrize("way", [lambda f: f, ft.jit, ft.grad, ft.hessian], ids=["plain", "jit", "grad", "hessian"])
def test_sparse_counts_are_close_to_each_other(way: Callable[..., Any]) -> None:
    way(loop)(0.5)
    counts = [int(n) for n, _ in seen]
    assert counts[:33] == list(range(33))
    assert all(b - a <= 0.07 * b for a, b in zip(counts[32:], [*counts[33:], 1000], strict=True))
    assert len(counts) < 120


def test_results_are_the_same() -> None:
    def plain(x: Any) -> Any:
        return ft.scan(lambda y, _: (np.sin(y), None), x, length=1000)[0]

    for way in (lambda f: f, ft.grad, ft.hessian, lambda f: ft.grad(ft.grad(ft.grad(f))), lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(way(loop)(0.5), way(plain)(0.5), rtol=1e-13)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_batch_is_one_call(compiled: bool) -> None:
    f = ft.vmap(lambda x, y: watch.apply(see, [x * y], [x, y])[0], in_axes=(0, None))
    (ft.jit(f) if compiled else f)(np.arange(3.0), np.float64(2.0))
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0][0], [0.0, 1.0, 2.0])
    assert seen[0][1].shape == ()


def test_other_operands_are_not_differentiated() -> None:
    def f(x: Any, y: Any) -> Any:
        return watch.apply(see, [x], [y])[0] * 1.0

    assert ft.grad(f, argnums=(0, 1))(1.0, 2.0) == (1.0, 0.0)


def test_unused_results_are_not_computed_for_it() -> None:
    def f(x: Any) -> Any:
        y, _ = watch.apply(see, [x, np.exp(x)], [x])
        return y

    assert "exp" not in str(ft.trace(f)(1.0))
    assert "watch" in str(ft.trace(f)(1.0))


def test_a_failing_function_fails_the_call() -> None:
    def fail(*_: Any) -> None:
        raise ValueError("seen enough")

    def f(x: Any) -> Any:
        return watch.apply(fail, [x], [x])[0] * 2.0

    with pytest.raises(ValueError, match="seen enough"):
        ft.jvp(f, (1.0,), (1.0,))
