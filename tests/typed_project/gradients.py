"""A script of a user: derivatives of annotated functions keep their arguments, and say what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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


def field_energy(x: Vector, t: float) -> np.float64:
    return np.sum(field(x, t) ** 2)


def decay(y: Vector, t: float) -> Vector:
    return -y


def halve(carry: Vector, factor: float) -> tuple[Vector, np.float64]:
    carry = factor * carry / 2
    return carry, np.sum(carry)


def halved_again(i: int, carry: Vector) -> Vector:
    return carry / 2


def is_large(carry: Vector) -> np.bool_:
    return np.sum(carry) > 1


def negative_half(carry: Vector) -> Vector:
    return carry / -2


def negative(x: Vector) -> Vector:
    return -x


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


@partial(ft.jit, static_argnums=1)
def partially(x: Vector, n: int) -> Vector:
    return n * x


@partial(ft.vmap, in_axes=0)
def doubled(x: float) -> float:
    return 2 * x


@partial(ft.grad, argnums=0)
def slope(x: Vector, y: Vector) -> np.float64:
    return np.sum(x * y)


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

    @partial(ft.jit, static_argnums=0)
    def predict_partially(self, x: Vector) -> Vector:
        return self.weight * x

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
    assert_type(ft.grad(loss, argnums=1)(x, 2.0), float)
    assert_type(ft.grad(field_energy, argnums=(0, 1))(x, 2.0), tuple[Vector, float])
    assert_type(ft.value_and_grad(field_energy, argnums=(0, 1))(x, 2.0), tuple[np.float64, tuple[Vector, float]])
    assert_type(ft.grad(misfit, argnums=[1, 2])(Line(1.0, 0.0), x, y), tuple[Any, ...])
    assert_type(ft.stop_gradient(x), Vector)


def check_products(x: Vector, y: Vector) -> None:
    """Values and tangents are of the type of the result, cotangents of those of the arguments."""
    value, pullback = ft.vjp(field, x, 2.0)
    assert_type(value, Vector)
    assert_type(pullback(value), tuple[Vector, float])
    assert_type(ft.jvp(field, (x, 2.0), (y, 0.0)), tuple[Vector, Vector])
    value, push = ft.linearize(field, x, 2.0)
    assert_type(push(y, 0.0), Vector)
    assert_type(ft.linear_transpose(negative, x)(y), tuple[Vector])


def check_matrices(x: Vector, y: Vector) -> None:
    """Jacobians and Hessians keep the arguments; what they return depends on containers."""
    assert_type(ft.jacobian(field)(x, t=2.0), Vector)
    assert_type(ft.jacfwd(field)(x, 2.0), Vector)
    assert_type(ft.jacrev(field)(x, 2.0), Vector)
    assert_type(ft.value_and_jacobian(field)(x, 2.0), tuple[Vector, Vector])
    assert_type(ft.jacobian(field, argnums=1)(x, 2.0), Any)
    assert_type(ft.jacobian(loss_and_residuals, has_aux=True)(x, y), Any)
    assert_type(ft.hessian(misfit)(Line(1.0, 0.0), x, y), Any)
    assert_type(ft.hessian(square)(2.0), Any)
    hessian = ft.hessian(loss)(x, scale=2.0)
    assert_type(hessian, Vector)
    product = ft.hvp(loss, (x,), (y,))
    assert_type(product, Vector)
    assert np.allclose(hessian @ y, 2 * product)
    sparse = ft.sparse_hessian(loss)
    assert_type(sparse.prepare(x).nnz, int)
    assert_type(ft.hessian_sparsity(loss)(x), ft.Sparsity)
    assert_type(ft.trace(field)(x, 2.0), ft.Program)


def check_batches(x: Vector) -> None:
    """Batches are arrays; which arguments have an axis more is not for types to say."""
    assert_type(ft.vmap(square)(x), NDArray[Any])
    assert_type(ft.vmap(ft.grad(square))(x), NDArray[Any])
    assert_type(ft.vmap(field, in_axes=(None, 0))(x, x), Vector)
    assert_type(ft.vmap(loss)(np.eye(3)), Vector)
    assert_type(ft.vmap(loss_and_residuals)(np.eye(3), np.eye(3)), Any)
    gradient = ft.grad(loss)
    assert_type(ft.jit(ft.vmap(gradient))(np.eye(3)), Vector)
    assert np.allclose(ft.vmap(lambda z: z + 1)(x), x + 1)
    curvatures: Vector = ft.vmap(ft.hessian(square))(x)
    assert np.allclose(curvatures, 2)
    assert_type(doubled(x), NDArray[Any])


def check_control_flow(x: Vector, y: Vector) -> None:
    """Loops, branches and solvers return what their functions do."""
    assert_type(ft.scan(halve, x, np.ones(3)), tuple[Vector, Any])
    assert_type(ft.fori_loop(0, 3, halved_again, x), Vector)
    assert_type(ft.while_loop(is_large, negative_half, x), Vector)
    assert_type(ft.map(square, x), NDArray[Any])
    assert_type(ft.cond(x[0] > 0, negative, layer, x), Vector)
    assert_type(ft.switch(1, [negative, layer], x), Vector)
    assert_type(ft.associative_scan(np.add, x), Vector)
    assert_type(ft.root(lambda z: z**2 - y - 1, x), Vector)
    assert_type(ft.fixed_point(np.cos, 1.0), float)
    assert_type(ft.argmin(loss, x), Vector)
    assert_type(ft.linear_solve(np.eye(3), x), Vector)
    assert_type(ft.odeint(decay, x, np.linspace(0.0, 1.0, 3)), Vector)


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
    assert np.array_equal(partially(x, 2), doubled(x))
    assert np.array_equal(slope(x, x), Model(x).predict_partially(np.ones(3)))
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
    check_batches(x)
    check_control_flow(x, y)
    check_compiled(x)


if __name__ == "__main__":
    main()
