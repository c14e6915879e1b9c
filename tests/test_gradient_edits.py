"""Functions that edit what flows back, against the derivative that each one states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.core.primitive import MissingRule

Function = Callable[..., Any]
X = np.array([0.3, -1.2, 2.6])

SECOND: dict[str, Function] = {
    "forward over reverse": ft.hessian,
    "reverse over reverse": lambda f: ft.jacrev(ft.jacrev(f)),
    "reverse over forward": lambda f: ft.jacrev(ft.jacfwd(f)),
    "forward over forward": lambda f: ft.jacfwd(ft.jacfwd(f)),
}


def close(actual: Any, expected: Any) -> None:
    """Assert that two arrays are equal up to rounding."""
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


# Edits that are linear: the value, the derivative, and what the edit multiplies each derivative by.
LINEAR: dict[str, tuple[Function, Function, float]] = {
    "straight_through": (lambda x: ft.straight_through(np.round(x), x), np.round, 1.0),
    "straight_through another": (lambda x: ft.straight_through(np.sign(x), 3.0 * x), np.sign, 3.0),
    "scale": (lambda x: ft.scale_gradient(x, 0.5), lambda x: x, 0.5),
    "scale by an array": (lambda x: ft.scale_gradient(x, np.full(3, 0.5)), lambda x: x, 0.5),
    "reverse": (ft.reverse_gradient, lambda x: x, -1.0),
    "reverse scaled": (lambda x: ft.reverse_gradient(x, 2.0), lambda x: x, -2.0),
    "hook": (lambda x: ft.grad_hook(x, lambda ct: 4.0 * ct), lambda x: x, 4.0),
    "hook on a container": (
        lambda x: ft.grad_hook({"x": (x, None)}, lambda ct: {"x": (ct["x"][0] * 4.0, None)})["x"][0],
        lambda x: x,
        4.0,
    ),
    "see": (lambda x: ft.grad_hook(x, see=lambda ct: None), lambda x: x, 1.0),
}


def cubes(f: Function) -> Function:
    """The sum of the cubes of the results, so that derivatives depend on the value."""
    return lambda x: np.sum(f(x) ** 3)


@pytest.mark.parametrize(("edit", "value", "factor"), LINEAR.values(), ids=LINEAR)
def test_linear_edits_in_every_mode(edit: Function, value: Function, factor: float) -> None:
    f, y = cubes(edit), value(X)
    for wrap in (lambda f: f, ft.jit):
        (out, slope), second = wrap(lambda x: (ft.value_and_grad(f)(x), ft.hessian(f)(x)))(X)
        close(out, np.sum(y**3))
        close(slope, 3 * factor * y**2)
        close(second, np.diag(6 * factor**2 * y))
    close(edit(X), y)
    close(ft.jacfwd(f)(X), 3 * factor * y**2)
    close(ft.jvp(f, (X,), (2 * X,))[1], np.sum(6 * factor * y**2 * X))
    for twice in SECOND.values():
        close(twice(f)(X), np.diag(6 * factor**2 * y))
    close(ft.jacfwd(ft.hessian(f))(X)[range(3), range(3), range(3)], [6 * factor**3] * 3)
    batch = np.stack([X, -2 * X])
    close(ft.vmap(ft.grad(f))(batch), 3 * factor * value(batch) ** 2)
    close(ft.grad(lambda b: np.sum(ft.vmap(f)(b) ** 2))(batch)[0], 6 * np.sum(y**3) * factor * y**2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edits_keep_dtypes(dtype: Any) -> None:
    x = X.astype(dtype)
    edits = [edit for edit, _, _ in LINEAR.values()] + [CLIP, lambda x: ft.clip_gradient(x, max_norm=1.0)]
    for edit in edits:
        assert edit(x).dtype == dtype
        assert ft.grad(lambda x, edit=edit: np.sum(edit(x)))(x).dtype == dtype


def test_straight_through_is_exact_and_takes_integers() -> None:
    huge = np.array([1e300, np.inf, -0.0])
    np.testing.assert_array_equal(ft.jit(lambda x: ft.straight_through(x, 1e-3 * x))(huge), huge)
    found = ft.value_and_grad(lambda x: np.sum(ft.straight_through(x > 0, x) * 5.0))(X)
    assert found[0] == 10.0
    close(found[1], [5.0] * 3)
    assert ft.straight_through(np.array([True, False]), X[:2]).dtype == np.float64
    pair = ft.straight_through({"a": 1.0, "b": [2.0]}, {"a": 3.0, "b": [4.0]})
    assert pair == {"a": 1.0, "b": [2.0]}


def test_the_value_of_straight_through_has_no_derivative() -> None:
    assert ft.grad(lambda x, y: ft.straight_through(x, y) ** 2, (0, 1))(3.0, 5.0) == (0.0, 6.0)


def test_factors_are_values_in_higher_orders() -> None:
    def f(x: Any, k: Any) -> Any:
        return ft.scale_gradient(x, k) ** 2

    assert ft.grad(f, (0, 1))(3.0, 0.5) == (3.0, 0.0)
    assert ft.grad(ft.grad(f), 1)(3.0, 0.5) == 6.0


# Edits that are not linear


def CLIP(x: Any) -> Any:
    return ft.clip_gradient(x, -1.0, 1.0)


def test_clipping() -> None:
    def f(x: Any) -> Any:
        return np.sum(CLIP(x) ** 2)

    for wrap in (lambda f: f, ft.jit):
        close(wrap(ft.grad(f))(X), np.clip(2 * X, -1, 1))
        close(wrap(ft.hessian(f))(X), np.diag([2.0, 0.0, 0.0]))
    close(ft.jacrev(ft.jacrev(f))(X), np.diag([2.0, 0.0, 0.0]))
    close(ft.vmap(ft.grad(f))(np.stack([X, 2 * X])), np.clip([2 * X, 4 * X], -1, 1))
    close(ft.grad(lambda b: np.sum(ft.vmap(f)(b)))(np.stack([X, 2 * X])), np.clip([2 * X, 4 * X], -1, 1))
    close(ft.grad(lambda x: np.sum(ft.clip_gradient(x, high=1.0) ** 2))(X), np.minimum(2 * X, 1))
    # A bound may be traced.
    close(ft.grad(lambda b: ft.grad(lambda x: ft.clip_gradient(x, -b, b) ** 2)(3.0))(0.5), 1.0)


def test_clipping_by_norm() -> None:
    def f(p: Any) -> Any:
        p = ft.clip_gradient(p, max_norm=0.5)
        return np.sum(p["a"] ** 2) + p["b"][0] ** 2

    p = {"a": X, "b": (2.0,)}
    found = ft.grad(f)(p)
    together = np.append(X, 2.0)
    close(np.append(found["a"], found["b"]), 0.5 * together / np.linalg.norm(together))
    small = {"a": 0.01 * X, "b": (0.0,)}
    close(ft.grad(f)(small)["a"], 0.02 * X)
    # At a cotangent of zero the norm has no derivative, but the gradient has.
    close(ft.hessian(lambda x: np.sum(ft.clip_gradient(x, max_norm=1.0) ** 2))(np.zeros(2)), 2 * np.eye(2))


def test_what_is_not_linear_has_no_forward_mode() -> None:
    edits = (CLIP, lambda x: ft.clip_gradient(x, max_norm=1.0), lambda x: ft.grad_hook(x, np.sign))
    for edit, name in zip(edits, ("clip_gradient", "clip_gradient", "grad_hook"), strict=True):
        message = rf"backward rule of {name} is not linear(.|\n)*Use reverse mode \(grad, vjp, jacrev\)(?!, or)"
        for call in (lambda edit=edit: ft.jvp(edit, (X,), (X,)), lambda edit=edit: ft.jit(ft.jacfwd(edit))(X)):
            with pytest.raises(MissingRule, match=message):
                call()


# Hooks


def test_hooks_close_over_traced_values() -> None:
    def f(x: Any, w: Any) -> Any:
        return np.sum(ft.grad_hook(x, lambda ct: w * ct) ** 2)

    close(ft.grad(f)(X, 3.0), 6.0 * X)
    assert ft.grad(f, 1)(X, 3.0) == 0.0
    close(ft.grad(lambda w: np.sum(ft.grad(f)(X, w)))(3.0), np.sum(2 * X))


def test_hooks_see_the_cotangent() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        both = ft.grad_hook({"x": x, "n": 3}, see=seen.append)
        return np.sum(both["x"] ** 2)

    for wrap in (lambda f: f, ft.jit):
        seen.clear()
        gradient = wrap(ft.grad(f))
        close(gradient(X), 2 * X)
        assert len(seen) == 1
        assert isinstance(seen[0]["x"], np.ndarray)
        close(seen[0]["x"], 2 * X)
        gradient(2 * X)
        close(seen[1]["x"], 4 * X)
    seen.clear()
    ft.jvp(f, (X,), (X,))
    f(X)
    assert not seen
    first: list[Any] = []
    close(ft.grad(lambda x: ft.grad_hook(x, lambda ct: 10 * ct, see=first.append) ** 2)(3.0), 60.0)
    assert first == [6.0]


def test_hooks_that_cut_off() -> None:
    close(ft.grad(lambda x: np.sum(ft.grad_hook(x, lambda ct: None) ** 2 + x))(X), [1.0] * 3)
    close(ft.grad(lambda x: np.sum(ft.grad_hook(x, np.zeros_like) ** 2 + x))(X), [1.0] * 3)


def test_bad_edits() -> None:
    with pytest.raises(TypeError, match="needs fn"):
        ft.grad_hook(X)
    with pytest.raises(TypeError, match="needs low, high or max_norm"):
        ft.clip_gradient(X)
    with pytest.raises(ValueError, match="not negative"):
        ft.clip_gradient(X, max_norm=-1.0)
    with pytest.raises(TypeError, match="clip by max_norm"):
        ft.grad(lambda z: np.abs(ft.clip_gradient(z, -1.0, 1.0)))(1.0 + 2.0j)
    with pytest.raises(ValueError, match=r"must broadcast to f64\[3\], but it has shape \(2,\)"):
        ft.scale_gradient(X, np.ones(2))
    with pytest.raises(ValueError, match=r"must broadcast to f64\[\], but it has shape \(3,\)"):
        ft.grad(lambda x: ft.scale_gradient(x, X))(1.0)
    with pytest.raises(ValueError, match=r"one shape, not f64\[\] and f64\[3\]"):
        ft.grad(lambda x: np.sum(ft.straight_through(x[0], x)))(X)
    with pytest.raises(ValueError, match="differ in structure"):
        ft.straight_through((1.0, 2.0), 3.0)
    with pytest.raises(TypeError, match=r"bwd rule of grad_hook(.*)f64\[\] as the cotangent of the argument x"):
        ft.grad(lambda x: np.sum(ft.grad_hook(x, lambda ct: ct[0])))(X)
