"""A script of a user: derivatives of annotated functions keep their arguments, and say what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import ftrans as ft

Vector = NDArray[np.float64]


def loss(x: Vector, scale: float = 1.0, *, shift: float = 0.0) -> np.float64:
    return np.sum(scale * (x - shift) ** 2)


def loss_and_residuals(x: Vector, y: Vector) -> tuple[np.float64, Vector]:
    residuals = x - y
    return np.sum(residuals**2), residuals


def square(x: float) -> float:
    return x * x


def field(x: Vector, t: float) -> Vector:
    return np.sin(t * x)


@dataclass
class Line:
    """Parameters of a straight line."""

    slope: float
    offset: float


def misfit(line: Line, x: Vector, y: Vector) -> np.float64:
    return np.sum((line.slope * x + line.offset - y) ** 2)


@ft.jit
def compiled(x: Vector, t: float) -> Vector:
    return np.cos(t * x)


@ft.jit(static_argnames="n")
def repeated(x: Vector, n: int) -> Vector:
    for _ in range(n):
        x = np.sin(x)
    return x


@ft.checkpoint
def layer(x: Vector) -> Vector:
    return np.tanh(x)


@ft.checkpoint(policy="dots")
def product(x: Vector, weights: Vector) -> Vector:
    return weights @ x


@ft.custom_vjp
def softplus(x: Vector) -> Vector:
    return np.logaddexp(x, 0)


softplus.defvjp(lambda x: (softplus(x), x), lambda x, ct: (ct / (1 + np.exp(-x)),))


@ft.custom_jvp(nondiff_argnums=1)
def power(x: Vector, n: int) -> Vector:
    return x**n


@power.defjvp
def power_rule(n: int, primals: tuple[Vector], tangents: tuple[Vector]) -> tuple[Vector, Vector]:
    (x,), (t,) = primals, tangents
    return x**n, n * x ** (n - 1) * t


class Model:
    """A model with compiled methods."""

    def __init__(self, weight: Vector) -> None:
        self.weight = weight

    @ft.jit(static_argnums=0)
    def predict(self, x: Vector, bias: float = 0.0) -> Vector:
        return self.weight * x + bias

    @ft.custom_vjp
    def scaled(self, x: Vector) -> Vector:
        return self.weight * x


def descend(f: Callable[[Vector], np.float64], x: Vector, steps: int) -> Vector:
    gradient = ft.grad(f)
    for _ in range(steps):
        x = x - 0.1 * gradient(x)
    return x


def check_gradients(x: Vector, y: Vector) -> None:
    """Gradients are of the type of the first argument."""
    assert_type(ft.grad(loss)(x), Vector)
    assert_type(ft.grad(loss)(x, 2.0, shift=1.0), Vector)
    assert_type(ft.grad(square)(2.0), float)
    derivative = ft.grad(square)
    assert_type(ft.grad(derivative)(2.0), float)
    assert_type(ft.grad(misfit)(Line(1.0, 0.0), x, y), Line)
    assert_type(ft.grad(loss_and_residuals, has_aux=True)(x, y), tuple[Vector, Vector])
    assert_type(ft.value_and_grad(loss)(x), tuple[np.float64, Vector])
    assert_type(ft.value_and_grad(loss_and_residuals, has_aux=True)(x, y), tuple[tuple[np.float64, Vector], Vector])
    assert_type(ft.grad(lambda z: np.sum(z**2))(x), Any)
    assert_type(ft.grad(loss, argnums=1)(x, 2.0), Any)
    assert_type(ft.stop_gradient(x), Vector)


def check_products(x: Vector, y: Vector) -> None:
    """Values and tangents are of the type of the result, cotangents of those of the arguments."""
    value, pullback = ft.vjp(field, x, 2.0)
    assert_type(value, Vector)
    assert_type(pullback(value), tuple[Vector, float])
    assert_type(ft.jvp(field, (x, 2.0), (y, 0.0)), tuple[Vector, Vector])
    value, push = ft.linearize(field, x, 2.0)
    assert_type(push(y, 0.0), Vector)


def check_matrices(x: Vector, y: Vector) -> None:
    """Jacobians and Hessians keep the arguments; what they return depends on containers."""
    jacobian: Vector = ft.jacobian(field)(x, t=2.0)
    forward: Vector = ft.jacfwd(field)(x, 2.0)
    reverse: Vector = ft.jacrev(field)(x, 2.0)
    hessian: Vector = ft.hessian(loss)(x, scale=2.0)
    product: Vector = ft.hvp(loss, (x,), (y,))
    assert jacobian.shape == forward.shape == reverse.shape == hessian.shape == (3, 3)
    assert np.allclose(hessian @ y, 2 * product)
    sparse = ft.sparse_hessian(loss)
    assert_type(sparse.prepare(x).nnz, int)
    assert_type(ft.hessian_sparsity(loss)(x), ft.Sparsity)
    assert_type(ft.trace(field)(x, 2.0), ft.Program)
    curvatures: Vector = ft.vmap(ft.hessian(square))(x)
    assert np.allclose(curvatures, 2)


def check_compiled(x: Vector) -> None:
    """Compiled functions, checkpoints and functions with rules are the same functions to callers."""
    assert_type(compiled(x, 2.0), Vector)
    assert_type(compiled(x, t=2.0), Vector)
    assert "sine" in compiled.lower(x, 2.0).as_text()
    assert_type(repeated(x, n=2), Vector)
    assert_type(ft.jit(ft.grad(loss))(x, scale=2.0), Vector)
    assert_type(layer(x), Vector)
    assert_type(product(x, np.eye(3)), Vector)
    assert_type(softplus(x), Vector)
    assert_type(power(x, 3), Vector)
    assert_type(Model(x).predict(x, bias=1.0), Vector)
    assert_type(Model(x).scaled(x), Vector)
    assert np.allclose(descend(loss, x, 100), 0)


def check_mistakes(x: Vector) -> None:
    """Wrong calls are errors for the type checker: none of these runs."""
    ft.grad(loss)(x, "two")  # type: ignore[arg-type]
    ft.grad(loss)(x, offset=1.0)  # type: ignore[call-arg]
    ft.grad(3.0)(x)  # type: ignore[call-overload]
    ft.jacobian(field)(x)  # type: ignore[call-arg]
    ft.jit(field)(x, "two")  # type: ignore[arg-type]
    compiled(x)  # type: ignore[call-arg]
    layer(x, x)  # type: ignore[call-arg]
    softplus(x, x)  # type: ignore[call-arg]
    Model(x).predict(x, "bias")  # type: ignore[arg-type]
    ft.gradient(loss)  # type: ignore[attr-defined]


def main() -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5])
    check_gradients(x, y)
    check_products(x, y)
    check_matrices(x, y)
    check_compiled(x)


if __name__ == "__main__":
    main()
