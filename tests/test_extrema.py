"""Extrema by index: the same derivatives as of all elements, of all orders, and all elements where there are ties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import tables
from rewriting import with_rules

import ftrans as ft
from ftrans.control.extrema import by_index
from ftrans.control.extrema.if_needed import if_needed
from ftrans.rewrites import table

RNG = np.random.default_rng(0)
POINTS, CENTRES = RNG.normal(size=(12, 3)), RNG.normal(size=(7, 3))


@contextmanager
def for_arrays_of(size: int) -> Iterator[None]:
    """Extrema of arrays of this size and larger are differentiated by index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_index, "_LEAST_SIZE", size)
        patch.setattr(by_index, "_LEAST_GAIN", 1)
        # Programs that are known are forgotten.
        with with_rules(table.rules):
            yield


def nearest(c: Any, x: Any) -> Any:
    return np.sum(np.min(np.sum((x[:, None, :] - c) ** 2, axis=2), axis=1) ** 1.5)


def nearest_across(c: Any, x: Any) -> Any:
    return np.sum(np.sin(np.min(np.sqrt(np.sum((x[None] - c[:, None]) ** 2, axis=-1)), axis=0)))


def nearest_in_places(c: Any, x: Any) -> Any:
    apart = np.transpose(x[:, None, :] * 2.0 - np.exp(c), (2, 0, 1))
    return np.sum(np.min(np.abs(apart) * np.arange(1.0, 8.0), axis=2) ** 2)


def best_score(c: Any, x: Any) -> Any:
    scores = np.where(x[:, None, :] > 0, x[:, None, :] * c, np.tanh(c)).sum(2) + np.sum(c**2, 1)
    return np.sum(scores.max(1) * np.arange(12.0))


FUNCTIONS = [nearest, nearest_across, nearest_in_places, best_score]


def first_derivatives(f: Callable[[Any, Any], Any], c: Any, x: Any) -> list[Any]:
    """The value and first derivatives, compiled and not."""
    both = (0, 1)
    gradients = ft.value_and_grad(f, argnums=both)(c, x)[1]
    return [*gradients, *ft.jit(ft.grad(f, argnums=both))(c, x), *ft.jvp(f, (c, x), (np.cos(c), np.sin(x)))]


def derivatives(f: Callable[[Any, Any], Any], c: Any, x: Any) -> list[Any]:
    """Values and derivatives in many ways."""
    both = (0, 1)
    along = np.cos(c), np.sin(x)
    found = [
        *ft.value_and_grad(f, argnums=both)(c, x),
        *ft.jit(ft.value_and_grad(f, argnums=both))(c, x),
        ft.jvp(f, (c, x), along)[1],
        ft.hvp(f, (c, x), along),
        ft.jit(ft.hessian(f))(c, x),
        ft.jacrev(ft.jacrev(f))(c, x),
        ft.vmap(ft.grad(f), in_axes=(0, None))(np.stack([c, 2 * c, np.zeros_like(c)]), x),
        ft.jit(ft.vmap(ft.grad(f), in_axes=(None, 0)))(c, np.stack([x, -x])),
        ft.grad(lambda c: ft.jvp(lambda s: f(s * c, x), (1.0,), (1.0,))[1])(c),
        ft.sparse_hessian(f)(c, x).toarray(),
        ft.sparse_hessian(f, argnums=1)(c, x).toarray(),
        ft.laplacian(f)(c, x),
        ft.taylor(lambda t: f(c * t, x), 1.0, 1.0, order=3),
    ]
    return [leaf for item in found for leaf in (item if isinstance(item, tuple | list) else [item])]


def assert_same(f: Callable[[Any, Any], Any], c: Any, x: Any) -> None:
    """By index and in full, a function has the same derivatives."""
    with for_arrays_of(1 << 60):
        expected = derivatives(f, c, x)
    with for_arrays_of(0):
        assert any(eqn.primitive is if_needed for eqn in ft.trace(ft.grad(f))(c, x).eqns)
        found = derivatives(f, c, x)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_derivatives_are_those_of_all_elements(f: Callable[[Any, Any], Any]) -> None:
    assert_same(f, CENTRES, POINTS)
    with for_arrays_of(0):
        ft.testing.check_grads(f, CENTRES, POINTS, order=2)


@pytest.mark.parametrize("f", [nearest, best_score])
def test_ties_share_the_derivative(f: Callable[[Any, Any], Any]) -> None:
    c = CENTRES.copy()
    c[:3] = c[0]
    c[-1] = c[-2]
    assert_same(f, c, POINTS)


def test_a_tie_in_one_row_is_shared() -> None:
    x = np.array([[0.0], [3.0]])
    c = np.array([[1.0], [-1.0], [5.0], [2.5]])
    with for_arrays_of(0):
        for transformed in (ft.grad, lambda f: ft.jit(ft.grad(f))):
            found = transformed(lambda c: np.sum(np.min(np.sum((x[:, None, :] - c) ** 2, 2), 1)))(c)
            np.testing.assert_allclose(found, [[1.0], [-1.0], [0.0], [-1.0]])


@pytest.mark.filterwarnings("ignore:.* encountered")
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_gradients_of_what_is_not_finite(number: float) -> None:
    x = POINTS.copy()
    x[3, 1] = number
    for transformed in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        with for_arrays_of(1 << 60):
            expected = transformed(nearest)(CENTRES, x)
        with for_arrays_of(0):
            np.testing.assert_allclose(transformed(nearest)(CENTRES, x), expected)


@pytest.mark.filterwarnings("ignore:.* encountered")
def test_what_is_not_chosen_has_no_influence() -> None:
    def f(p: Any, x: Any) -> Any:
        return np.sum(np.min(np.sum(np.abs(x[:, None, :] + np.sqrt(p)), 2), 1))

    # Infinite slopes at what is never chosen.
    p, x = np.zeros((5, 3)), -5 - np.abs(POINTS)
    p[1] = 4.0
    slopes = np.where(p > 0, -3.0, 0.0)
    with for_arrays_of(0):
        for transformed in (ft.grad, lambda f: ft.jit(ft.grad(f)), ft.jacfwd):
            for places in (slice(None), [1, 0, 2, 3, 4], [0, 2, 3, 4, 1]):
                np.testing.assert_allclose(transformed(f)(p[places], x), slopes[places])


def random_extremum(seed: int) -> Callable[[Any, Any], Any]:
    """An extremum over an axis of an expression of arrays that are repeated along others."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(3)
    numbers = rng.normal(size=8)
    is_summed, is_largest = rng.integers(2, size=2)
    rest = [i for i in range(3) if i != order[2]] if is_summed else [0, 1, 2]
    axis = int(rng.integers(len(rest)))
    functions = [np.sin, np.tanh, np.square, lambda v: v * numbers[0], lambda v: np.maximum(v, 0.1)]

    def f(c: Any, x: Any) -> Any:
        u, v = np.transpose(x[:, None, :], order), np.transpose(c[None], order)
        y = functions[seed % 5](u * numbers[1] + v) * (v - numbers[2]) + functions[seed // 5 % 5](u - v) * numbers[3]
        y = y + np.cos(np.arange(y.size).reshape(y.shape)) if seed % 3 else y
        y = np.sum(y, axis=int(order[2])) if is_summed else y
        return np.sum(np.sin((np.max if is_largest else np.min)(y, axis=axis)) * numbers[4])

    return f


@pytest.mark.parametrize("seed", range(8))
def test_random_extrema(seed: int) -> None:
    f = random_extremum(seed)
    compared = derivatives if tables.whole else first_derivatives
    with for_arrays_of(1 << 60):
        expected = compared(f, CENTRES, POINTS)
    with for_arrays_of(0):
        found = compared(f, CENTRES, POINTS)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_large_arrays_are_differentiated_by_index() -> None:
    c, x = RNG.normal(size=(40, 6)), RNG.normal(size=(1000, 6))
    program = ft.trace(ft.grad(nearest))(c, x)
    assert any(eqn.primitive is if_needed for eqn in program.eqns)
    chosen = np.argmin(np.sum((x[:, None, :] - c) ** 2, 2), 1)
    apart = c[chosen] - x
    terms = 3 * np.sqrt(np.sum(apart**2, 1))[:, None] * apart
    expected = np.zeros_like(c)
    np.add.at(expected, chosen, terms)
    np.testing.assert_allclose(ft.grad(nearest)(c, x), expected, rtol=1e-12)
    single = ft.jit(ft.grad(nearest))(c.astype(np.float32), x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-3)


def test_plain_extrema_stay() -> None:
    x = RNG.normal(size=(400, 200))
    program = ft.trace(ft.grad(lambda x: np.sum(np.max(np.sin(x), axis=1))))(x)
    assert not any(eqn.primitive is if_needed for eqn in program.eqns)
