"""Associative scans against the loops that they stand for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.autograd import tensor

RNG = np.random.default_rng(0)


def recurrence(earlier: Any, later: Any) -> Any:
    """The composition of two affine maps y -> a y + b."""
    (a, b), (c, d) = earlier, later
    return a * c, c * b + d


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7, 8, 33])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(size: int, reverse: bool) -> None:
    x = RNG.normal(size=(size, 2))
    expected = np.cumsum(x[::-1], axis=0)[::-1] if reverse else np.cumsum(x, axis=0)
    for way in (lambda f: f, ft.vmap if size == 33 else ft.jit if size == 5 else lambda f: f):
        f = lambda x: ft.associative_scan(np.add, x, reverse=reverse)  # noqa: E731
        given, wanted = (x[None], expected[None]) if way is ft.vmap else (x, expected)
        np.testing.assert_allclose(way(f)(given), wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("size", "reverse"), list(itertools.product([1, 2, 6, 9], [False, True])))
def test_products_of_matrices_keep_their_order(size: int, reverse: bool) -> None:
    x = RNG.normal(size=(size, 3, 3))
    steps = range(size - 1, -1, -1) if reverse else range(size)
    expected, product = np.empty_like(x), np.eye(3)
    for i in steps:
        expected[i] = product = product @ x[i]
    np.testing.assert_allclose(ft.associative_scan(np.matmul, x, reverse=reverse), expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [1, -1, 2])
def test_other_axes(axis: int) -> None:
    x = RNG.normal(size=(2, 5, 3))
    np.testing.assert_allclose(ft.associative_scan(np.maximum, x, axis=axis), np.maximum.accumulate(x, axis=axis))
    back = np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis)
    np.testing.assert_allclose(ft.associative_scan(np.add, x, reverse=True, axis=axis), back, rtol=1e-13, atol=1e-13)


def states(a: Any, b: Any, reverse: bool = False) -> Any:
    return ft.associative_scan(recurrence, (a, b), reverse)[1]


def states_by_scan(a: Any, b: Any, reverse: bool = False) -> Any:
    def step(y: Any, ab: Any) -> Any:
        y = ab[0] * y + ab[1]
        return y, y

    return ft.scan(step, 0.0, (a, b), reverse=reverse)[1]


A, B = RNG.uniform(0.5, 1.0, size=7), RNG.normal(size=7)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_linear_recurrence(reverse: bool) -> None:
    found, expected = states(A, B, reverse), states_by_scan(A, B, reverse)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    "way",
    [
        lambda f: ft.grad(f),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.jacfwd(f),
        lambda f: ft.hessian(f),
        lambda f: ft.jacrev(ft.grad(f)),
        lambda f: ft.jacrev(ft.jacfwd(f)),
        lambda f: ft.grad(lambda a, b: ft.hvp(lambda a: f(a, b), (a,), (b,)).sum()),
        lambda f: lambda a, b: ft.vmap(ft.grad(f), in_axes=(0, None))(np.stack([a, a + 0.1]), b),
        lambda f: ft.grad(lambda a, b: ft.vmap(f, in_axes=(None, 0))(a, np.stack([b, 2 * b])).sum()),
        lambda f: ft.grad(lambda a, b: ft.grad(lambda c: f(a * c, b))(b).sum()),
    ],
)
def test_derivatives(way: Callable[..., Any]) -> None:
    expected = way(lambda a, b: np.sum(np.sin(states_by_scan(a, b))))(A, B)
    np.testing.assert_allclose(way(lambda a, b: np.sum(np.sin(states(a, b))))(A, B), expected, rtol=1e-10, atol=1e-12)


def test_containers_and_dtypes() -> None:
    elems = {"n": np.arange(6), "x": np.ones((6, 2), np.float32), "b": np.array([True] * 4 + [False] * 2)}
    combine = lambda a, b: {"n": a["n"] + b["n"], "x": a["x"] * b["x"], "b": a["b"] & b["b"]}  # noqa: E731
    out = ft.associative_scan(combine, elems)
    assert {k: v.dtype for k, v in out.items()} == {k: v.dtype for k, v in elems.items()}
    np.testing.assert_array_equal(out["n"], np.cumsum(elems["n"]))
    np.testing.assert_array_equal(out["b"], elems["b"])


def test_results_do_not_share_memory() -> None:
    x = np.ones(1)
    assert not np.may_share_memory(ft.associative_scan(np.add, x), x)
    y = np.ones(3)
    ft.associative_scan(np.add, y)[0] = 7.0
    np.testing.assert_array_equal(y, np.ones(3))


def add_in_place(a: Any, c: Any) -> Any:
    a += c
    return a


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize(
    "way",
    [lambda f: f, ft.jit, lambda f: lambda x: ft.trace(f)(x)(x)[0], lambda f: lambda x: f(tensor(x)).numpy()],
)
def test_a_function_may_assign_to_its_arguments(way: Any, size: int) -> None:
    x = np.full((size, 2), 3.0)
    found = way(lambda x: ft.associative_scan(add_in_place, x))(x)
    np.testing.assert_array_equal(found, np.cumsum(x, axis=0))
    np.testing.assert_array_equal(x, np.full((size, 2), 3.0))


def test_the_program_is_logarithmic() -> None:
    lengths = [len(ft.trace(lambda x: ft.associative_scan(np.add, x))(np.ones(2**k)).eqns) for k in (8, 9, 10)]
    assert lengths[2] - lengths[1] == lengths[1] - lengths[0] < 20


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match=r"elems\['b'\]: f64\[2\] went in, f64\[\] was returned"):
        ft.associative_scan(
            lambda a, b: {"a": a["a"] + b["a"], "b": np.sum(a["b"])}, {"a": np.ones(4), "b": np.ones(4)}
        )
    with pytest.raises(TypeError, match=r"f32.*went in, f64"):
        ft.associative_scan(lambda a, b: (a + b).astype(np.float64), np.ones(4, np.float32))
    with pytest.raises(TypeError, match="must return a container like its arguments"):
        ft.associative_scan(lambda a, b: (a, b), np.ones(4))
    with pytest.raises(ValueError, match=r"elems\[0\] has 3, elems\[1\] has 4"):
        ft.associative_scan(recurrence, (np.ones(3), np.ones(4)))
    with pytest.raises(TypeError, match=r"axis 1, but elems is f64\[3\]"):
        ft.associative_scan(np.add, np.ones(3), axis=1)
    with pytest.raises(TypeError, match=r"elems is the str 'abc'"):
        ft.associative_scan(np.add, "abc")
