"""Tensors that transformed functions take, or close over: gradients flow to both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checks import assert_close
from tensors import a, leaf, value

import ftrans as ft
from ftrans.autograd import Tensor
from ftrans.core.trace import TracerLeak

X = np.array([1.5, 2.0, 0.7])
W = np.array([0.5, -1.0, 2.0])


def total(x: Any) -> Any:
    """The sum of all elements of all results."""
    if isinstance(x, dict):
        x = list(x.values())
    return sum(total(y) for y in x) if isinstance(x, list | tuple) else np.sum(np.real(x))


# Functions of an argument and of a value that an inner function closes over.
USES: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda x, w: ft.grad(lambda x: (np.sin(x) * w * x).sum())(x),
    "value_and_grad": lambda x, w: ft.value_and_grad(lambda d: (d["p"] ** 3 * w).sum() * d["q"])({"p": x, "q": x[0]}),
    "jacobian": lambda x, w: ft.jacobian(lambda x: np.sin(x) * w.sum() * x)(x),
    "jacfwd": lambda x, w: ft.jacfwd(lambda x: np.outer(x, w) ** 2)(x),
    "hessian": lambda x, w: ft.hessian(lambda x: (x**3 * w).prod())(x),
    "hvp": lambda x, w: ft.hvp(lambda x: (x**3 * w).sum(), (x,), (w,)),
    "jvp": lambda x, w: ft.jvp(lambda x: np.sin(x) * w, (x,), (w,)),
    "vjp": lambda x, w: ft.vjp(lambda x: np.sin(x) * w, x)[1](w),
    "linearize": lambda x, w: ft.linearize(lambda x: np.sin(x) * w, x)[1](w),
    "grad of grad": lambda x, w: ft.grad(lambda x: ft.grad(lambda y: (y**2 * x * w).sum())(x).sum())(x),
    "vmap": lambda x, w: ft.vmap(lambda r: (r * w).sum() * r)(np.stack([x, x * w])),
    "vmap of grad": lambda x, w: ft.vmap(ft.grad(lambda r: (r**3 * w).sum()))(np.stack([x, x * w])),
    "scan": lambda x, w: ft.scan(lambda c, v: (np.sin(c * v) + x[0], c * w[0]), x[1], w),
    "while_loop": lambda x, w: ft.while_loop(lambda v: v < 50, lambda v: v * (1 + w[2]), x[0]),
    "fori_loop": lambda x, w: ft.fori_loop(0, 3, lambda i, v: v * w + i, x),
    "cond": lambda x, w: ft.cond(x[0] > 1, lambda v: v * w, lambda v: v, x),
    "switch": lambda x, w: ft.switch(1, [lambda v: v, lambda v: v * w], x),
    "map": lambda x, w: ft.map(lambda v: v * v * w[0], x),
    "associative_scan": lambda x, w: ft.associative_scan(lambda p, q: p * q, x * w),
    "linear_solve": lambda x, w: ft.linear_solve(np.outer(x, x) + 3 * np.diag(x), w),
    "root": lambda x, w: ft.root(lambda z: z**3 + z * w[2] - x, x),
    "fixed_point": lambda x, w: ft.fixed_point(lambda z: np.cos(z) * 0.3 + x * w[0], x),
    "argmin": lambda x, w: ft.argmin(lambda z: ((z - x) ** 4 + (z - x) ** 2).sum() + (z * w).sum(), x),
    "odeint": lambda x, w: ft.odeint(lambda y, t: -y * w[2] * t, x, np.array([0.0, 0.5, 1.0])),
    "checkpoint": lambda x, w: ft.checkpoint(lambda x: np.sin(x) * w)(x),
    "stop_gradient": lambda x, w: ft.stop_gradient(x) * x * w,
    "scale_gradient": lambda x, w: ft.scale_gradient(x, 0.5) * w,
    "straight_through": lambda x, w: ft.straight_through(np.round(x), x) * w,
    "clip_gradient": lambda x, w: ft.clip_gradient(x * w, -0.5, 0.5),
    "linear_transpose": lambda x, w: ft.linear_transpose(lambda y: y * w, x)(x),
}


@pytest.mark.parametrize("name", USES)
def test_transformed_functions_take_and_close_over_tensors(name: str) -> None:
    f = USES[name]
    x, w = leaf(X), leaf(W)
    out = f(x, w)
    total(out).backward()
    expected = ft.grad(lambda x, w: total(f(x, w)), (0, 1))(X, W)
    assert_close(value(x.grad), expected[0], 1e-7)
    assert_close(value(w.grad), expected[1], 1e-7)


@pytest.mark.parametrize("name", ["grad", "scan", "root", "linear_solve", "vmap of grad", "checkpoint"])
def test_second_derivatives_through_transformed_functions(name: str) -> None:
    f = USES[name]
    x, w = leaf(X), leaf(W)
    firsts = a.grad(total(f(x, w)), [x, w], create_graph=True)
    found = a.grad(sum((g * g).sum() for g in firsts), [x, w])  # type: ignore[arg-type, misc]

    def squared(x: Any, w: Any) -> Any:
        return sum((g * g).sum() for g in ft.grad(lambda x, w: total(f(x, w)), (0, 1))(x, w))

    for g, e in zip(found, ft.grad(squared, (0, 1))(X, W), strict=True):
        assert_close(value(g), e, 1e-6)


def test_tensors_without_gradient_are_arrays_to_transformations() -> None:
    x = a.tensor(X)
    found = ft.grad(lambda x: (x**2).sum())(x)
    assert isinstance(found, Tensor)
    assert not found.requires_grad
    assert_close(value(found), 2 * X)
    w = a.tensor(W)
    assert_close(np.asarray(value(ft.grad(lambda x: (x * w).sum())(X))), W)


def test_nothing_is_recorded_through_transformations_under_no_grad() -> None:
    x, w = leaf(X), leaf(W)
    with a.no_grad():
        assert not ft.grad(lambda x: (x * w).sum())(x).requires_grad
        assert not ft.scan(lambda c, v: (c * v, c), x[0], w)[0].requires_grad


@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_take_tensors() -> None:
    x = leaf(X)
    f = ft.jit(lambda x: (np.sin(x) * x).sum())
    y = f(x)
    y.backward()
    assert_close(value(x.grad), np.cos(X) * X + np.sin(X))
    (first,) = a.grad(f(x), x, create_graph=True)
    (second,) = a.grad(first.sum(), x)  # type: ignore[union-attr]
    assert_close(value(second), 2 * np.cos(X) - X * np.sin(X), 1e-10)
    w = leaf(W)
    with pytest.raises(TypeError, match="closes over a tensor"):
        ft.jit(lambda x: x * w)(X)


def test_custom_rules_on_tensors() -> None:
    hundred = ft.custom_vjp(lambda x: x * 2)
    hundred.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 100,))
    x = leaf(X)
    (hundred(x) * W).sum().backward()
    assert_close(value(x.grad), 100 * W)
    scaled = ft.custom_jvp(lambda x: x * 2)
    scaled.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 7))
    x = leaf(X)
    scaled(x).sum().backward()
    assert_close(value(x.grad), np.full(3, 7.0))


def test_tensors_meet_traced_values() -> None:
    w = leaf(W)

    def f(x: Any, w: Any) -> Any:
        y = x * 1
        y += w
        y[0] = w[1] * x[1]
        chosen = np.where(w > 1, y, w).sum() + np.maximum(w, y).prod()
        return w @ y + y @ w + np.stack([y, w]).sum() + chosen + w[0] ** y[1]

    found = ft.grad(lambda x: f(x, w))(X)
    assert_close(value(found), ft.grad(f)(X, W))
    found.sum().backward()
    expected = ft.grad(lambda w: ft.grad(f)(X, w).sum())(W)
    assert_close(value(w.grad), expected)


def test_traced_values_do_not_get_into_tensors() -> None:
    x = a.tensor(X)

    def f(t: Any) -> Any:
        x[0] = t[0]
        return x.sum()

    with pytest.raises(TypeError, match="x is a tensor, which holds numbers and cannot hold a traced value"):
        ft.grad(f)(X)
    kept: list[Any] = []
    w = leaf(W)

    def leaking(t: Any) -> Any:
        kept.append(w * t)
        return (t * t).sum()

    ft.grad(leaking)(X)
    with pytest.raises(TracerLeak):
        kept[0] * 2


def test_functions_of_their_own_on_tensors_inside_and_outside_of_transformations() -> None:
    class Scaled(a.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * 100

    x = leaf(X)
    (Scaled.apply(x) * x).sum().backward()
    assert_close(value(x.grad), 102 * X)
    x = leaf(X)
    ft.grad(lambda t: (Scaled.apply(t) * x).sum())(X).sum().backward()
    assert_close(value(x.grad), np.full(3, 100.0))


def test_detach_cuts_the_derivative_in_every_mode() -> None:
    def f(x: Any) -> Any:
        with a.no_grad():
            kept = x.detach() * 1.0
        return (x * kept).sum()

    assert_close(ft.grad(f)(X), X)
    x = leaf(X)
    f(x).backward()
    assert_close(value(x.grad), X)


@pytest.mark.parametrize("transformed", [ft.jit, ft.vmap, ft.checkpoint], ids=["jit", "vmap", "checkpoint"])
def test_whole_programs_do_without_their_arguments_and_results(transformed: Any) -> None:
    x = leaf(np.array([0.3, 0.7]))
    f = transformed(lambda x: np.exp(x) * x)
    expected = np.exp([0.3, 0.7]) * [1.3, 1.7]
    y = f(x)
    y += 1
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)
    x.grad, h = None, x * 1
    y = f(h)
    h *= 2
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)


@pytest.mark.parametrize("index", [[0, 2], [True, False, True], 1], ids=str)
def test_tensors_are_indices_of_traced_values(index: Any) -> None:
    places = a.tensor(index)
    expected = ft.grad(lambda x: (x[np.array(index)] ** 2).sum())(np.arange(3.0))
    for chosen in (places, (places,), (Ellipsis, places)):
        found = ft.grad(lambda x, i=chosen: (x[i] ** 2).sum())(np.arange(3.0))
        np.testing.assert_array_equal(found, expected)
