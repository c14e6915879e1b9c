"""vmap: axes in and out, nesting, and what it refuses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from checks import assert_close

import ftrans as ft

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
M = RNG.standard_normal((3, 4, 2))


class Pair(NamedTuple):
    """A container."""

    x: Any
    y: Any


def test_maps_over_the_first_axis() -> None:
    assert_close(ft.vmap(np.dot)(A, B), np.sum(A * B, 1))
    assert_close(ft.vmap(lambda x: x / np.sum(x))(A), A / A.sum(1, keepdims=True))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_in_axes(axis: int) -> None:
    expected = np.stack([np.sin(x) @ np.ones(x.shape[1]) for x in np.moveaxis(M, axis, 0)])
    assert_close(ft.vmap(lambda m: np.sin(m) @ np.ones(m.shape[1]), in_axes=axis)(M), expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_out_axes(axis: int) -> None:
    found = ft.vmap(lambda x: np.outer(x, x), out_axes=axis)(A)
    assert_close(found, np.moveaxis(np.stack([np.outer(x, x) for x in A]), 0, axis))


def test_arguments_that_are_not_mapped() -> None:
    w = RNG.standard_normal(3)
    assert_close(ft.vmap(np.dot, in_axes=(0, None))(A, w), A @ w)
    assert_close(ft.vmap(np.dot, in_axes=(None, 0))(w, A), A @ w)
    assert_close(ft.vmap(lambda x, how: x if how == "same" else -x, in_axes=(0, None))(A, "same"), A)
    assert_close(ft.vmap(lambda x: x @ w)(A), A @ w)


def test_containers() -> None:
    def f(p: Any, more: Any) -> Any:
        return {"sum": p.x + p.y * more["k"], "pair": Pair(p.y, [2.0 * p.x])}

    out = ft.vmap(f, in_axes=(Pair(0, 1), {"k": None}))(Pair(A, B.T), {"k": 3.0})
    assert_close(out["sum"], A + 3.0 * B)
    assert isinstance(out["pair"], Pair)
    assert_close(out["pair"].y[0], 2.0 * A)
    out = ft.vmap(f, in_axes=(0, None), out_axes={"sum": 1, "pair": 0})(Pair(A, B), {"k": 3.0})
    assert_close(out["sum"], (A + 3.0 * B).T)


def test_one_axis_for_a_whole_container() -> None:
    found = ft.vmap(lambda p, q: p[0] * p[1] + q, in_axes=(1, 0))((A.T, B.T), A)
    assert_close(found, A * B + A)


def test_keyword_arguments_are_mapped() -> None:
    assert_close(ft.vmap(lambda x, *, y: x * y)(A, y=B), A * B)


def test_results_that_do_not_depend_on_the_element() -> None:
    assert_close(ft.vmap(lambda x: 7.0)(A), np.full(4, 7.0))
    shared, own = ft.vmap(lambda x: (np.ones(2), x), out_axes=(None, 0))(A)
    assert_close(shared, np.ones(2))
    assert_close(own, A)


def test_axis_size() -> None:
    assert_close(ft.vmap(lambda x: x + 1.0, in_axes=None, axis_size=3)(2.0), np.full(3, 3.0))
    assert_close(ft.vmap(lambda x: x, axis_size=4)(A), A)


@pytest.mark.parametrize("size", [0, 1])
def test_small_batches(size: int) -> None:
    assert_close(ft.vmap(lambda x: np.sin(x).sum())(A[:size]), np.sin(A[:size]).sum(1))


def test_nesting() -> None:
    outer = ft.vmap(ft.vmap(lambda x, y: x * y + 1.0, in_axes=(None, 0)), in_axes=(0, None))
    x, y = np.arange(3.0), np.arange(4.0)
    assert_close(outer(x, y), np.multiply.outer(x, y) + 1.0)


def test_a_value_of_the_outer_function_is_captured() -> None:
    def f(x: Any) -> Any:
        return np.sum(ft.vmap(lambda row: np.dot(row, x))(A) ** 2)

    w = np.array([1.0, -1.0, 0.5])
    assert_close(ft.grad(f)(w), 2 * A.T @ (A @ w))
    assert_close(ft.vmap(lambda x: ft.vmap(lambda y: x * y)(A))(np.arange(2.0)), np.arange(2.0)[:, None, None] * A)


def test_other_transformations_inside_and_outside() -> None:
    def f(x: Any) -> Any:
        return np.prod(np.sin(x))

    slopes = np.stack([ft.grad(f)(x) for x in A])
    assert_close(ft.vmap(ft.grad(f))(A), slopes)
    assert_close(ft.jit(ft.vmap(ft.grad(f)))(A), slopes)
    assert_close(ft.vmap(ft.jit(ft.grad(f)))(A), slopes)
    curvatures = np.stack([ft.hessian(f)(x) for x in A])
    assert_close(ft.vmap(ft.hessian(f))(A), curvatures, looseness=10)
    blocks = ft.jacobian(ft.vmap(f))(A)
    assert_close(blocks, np.einsum("ij,ik->ijk", np.eye(4), slopes))


def test_linear_algebra() -> None:
    a = RNG.standard_normal((4, 3, 3)) + 3 * np.eye(3)
    assert_close(ft.vmap(np.linalg.solve)(a, B), np.stack([np.linalg.solve(m, b) for m, b in zip(a, B, strict=True)]))
    assert_close(ft.vmap(np.linalg.det)(a), np.linalg.det(a))
    assert_close(ft.vmap(np.linalg.solve, in_axes=(None, 0))(a[0], B), np.linalg.solve(a[0], B.T).T)


def test_indexing_by_a_mapped_index() -> None:
    places = np.array([2, 0, 1, 2])
    assert_close(ft.vmap(lambda x, i: x[i])(A, places), A[np.arange(4), places])
    assert_close(ft.vmap(lambda i: ft.numpy.take(A[1], i))(places), A[1][places])
    assert_close(ft.vmap(lambda x: np.sort(x))(A), np.sort(A, 1))


def test_dtypes() -> None:
    assert_close(ft.vmap(lambda n: n * 2)(np.arange(3)), np.arange(3) * 2)
    assert_close(ft.vmap(lambda x: x > 0)(A[:, 0]), A[:, 0] > 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ft.vmap(np.dot)(A, B[:2]), r"different sizes: argument \[0\] has 4, argument \[1\] has 2"),
        (lambda: ft.vmap(np.sin)(1.0), "axis 0 of argument"),
        (lambda: ft.vmap(np.sin, in_axes=2)(A), "axis 2 of argument"),
        (lambda: ft.vmap(np.dot, in_axes=(0,))(A, B), "in_axes has 1 entries"),
        (lambda: ft.vmap(np.sin, in_axes=None)(A), "give axis_size"),
        (lambda: ft.vmap(lambda x: x, out_axes=None)(A), "out_axes=None"),
        (lambda: ft.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": A}), "does not fit"),
        (lambda: ft.vmap(lambda x: x, axis_size=3)(A), "axis_size has 3"),
    ],
)
def test_what_it_refuses(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "test_vmap.py" in str(caught.value)


def test_a_mapped_argument_must_be_an_array() -> None:
    with pytest.raises(TypeError, match="the str 'a'; give it in_axes=None"):
        ft.vmap(lambda x, y: x)(A, "a")


def test_none_in_a_container_has_no_axis() -> None:
    found = ft.vmap(lambda t, s: {"a": (None, t[0] * s), "b": None}, in_axes=(0, None))((A, None), 2.0)
    assert found["a"][0] is None
    assert found["b"] is None
    np.testing.assert_array_equal(found["a"][1], 2 * A)
