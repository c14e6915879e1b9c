"""from_jax: functions written for JAX in programs of ftrans, against the same functions written in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

import ftrans as ft

P = PartitionSpec
X, Y = np.array([1.0, 2.0, 3.0]), np.array([0.3, 0.2, 0.1])


@ft.from_jax
def of_jax(x: Any, y: Any) -> Any:
    return jnp.sum(jnp.sin(x) * y), {"product": x * y, "count": jnp.arange(3)}


def of_numpy(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y), {"product": x * y, "count": np.arange(3)}


def loss(g: Callable[..., Any]) -> Callable[..., Any]:
    def f(x: Any, y: Any) -> Any:
        total, rest = g(x, y)
        return total**2 + (rest["product"] ** 3).sum()

    return f


def both(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: ft.vmap(f, in_axes=(0, None))(np.stack([x, 2 * x]), y)


WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "value": lambda f: f,
    "grad": ft.grad,
    "grad of both": lambda f: ft.grad(f, argnums=(0, 1)),
    "jacfwd": lambda f: ft.jacfwd(f, argnums=(0, 1)),
    "jvp": lambda f: lambda x, y: ft.jvp(f, (x, y), (y, x)),
    "hessian": lambda f: ft.hessian(f, argnums=(0, 1)),
    "reverse over reverse": lambda f: ft.jacrev(ft.jacrev(f)),
    "third order": lambda f: ft.jacfwd(ft.hessian(f)),
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "vmap of grad": lambda f: both(ft.grad(f)),
    "hessian of vmap": lambda f: ft.hessian(lambda x, y: both(f)(x, y).sum()),
    "grad of scan": lambda f: ft.grad(
        lambda x, y: ft.scan(lambda c, _: (c + 0.1 * f(c, y), None), x, None, length=3)[0].sum()
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_is_what_numpy_is(way: Callable[..., Any]) -> None:
    found, expected = (way(loss(g))(X, Y) for g in (of_jax, of_numpy))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_rules_of_jax_hold() -> None:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, ct: (100 * x * ct,))
    assert ft.grad(ft.from_jax(f))(2.0) == 200.0
    assert ft.grad(ft.grad(ft.from_jax(f)))(2.0) == 100.0
    with pytest.raises(TypeError, match="forward-mode"):
        ft.jacfwd(ft.from_jax(f))(2.0)


def test_types_of_arguments_and_results() -> None:
    value, rest = of_jax(X, Y)
    assert type(value) is np.float64
    assert type(rest["count"]) is np.ndarray
    scaled = ft.from_jax(lambda x, s: x * s)
    assert scaled(np.ones(3, np.float32), 2.0).dtype == np.float32
    assert ft.grad(lambda x: scaled(x, 2.0).sum())(np.ones(3, np.float32)).dtype == np.float32
    assert scaled(np.ones(3), 2).dtype == np.float64
    # What it makes itself is of JAX's default types.
    assert ft.from_jax(lambda x: x + jnp.linspace(0.0, 1.0, 3))(np.ones(3, np.float32)).dtype == np.float32
    assert isinstance(scaled(jnp.ones(3), 2.0), jax.Array)
    z = 1 + 2j
    found = ft.grad(lambda z: np.abs(ft.from_jax(lambda z: z * z * 1j + z.conj() * jnp.exp(z))(z)))(z)
    expected = ft.grad(lambda z: np.abs(z * z * 1j + z.conj() * np.exp(z)))(z)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    x = ft.autograd.tensor(X, requires_grad=True)
    of_jax(x, Y)[0].backward()
    np.testing.assert_allclose(x.grad, np.cos(X) * Y)


def test_jax_traces_it_as_what_it_is() -> None:
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.grad(lambda x: of_jax(x, Y)[0])(X), np.cos(X) * Y)
        cube = ft.from_jax(lambda x: jnp.sum(x**3))
        np.testing.assert_allclose(jax.hessian(ft.jit(lambda x: cube(x) * 2))(X), np.diag(12 * X))


def test_it_closes_over_what_is_not_traced() -> None:
    scaled = ft.from_jax(lambda x: jnp.sum(x * jnp.asarray(Y)))
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(lambda y: ft.grad(scaled)(X) * y)(2.0), 2 * Y)
        with pytest.raises(TypeError, match="closes over a value that JAX is tracing; pass it as an argument"):
            jax.grad(lambda a: ft.from_jax(lambda x: x * a)(2.0))(3.0)
    for way in (ft.grad, ft.jit):
        with pytest.raises(TypeError, match=r"closes over a value that ftrans is tracing.*pass it as an argument"):
            way(lambda a: ft.from_jax(lambda x: x * a)(2.0))(3.0)


def test_collectives() -> None:
    mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
    points = np.arange(16.0).reshape(8, 2) / 10
    average = jax.shard_map(
        lambda w, x: jax.lax.pmean(jnp.sum(jnp.tanh(x @ w)), "d"), mesh=mesh, in_specs=(P(), P("d")), out_specs=P()
    )
    f, w = ft.from_jax(average), np.array([0.3, 0.5])

    def expected(w: Any) -> Any:
        return np.sum(np.tanh(points @ w)) / 4

    np.testing.assert_allclose(ft.jit(ft.grad(f))(w, points), ft.grad(expected)(w), rtol=1e-13)
    np.testing.assert_allclose(ft.hessian(f)(w, points), ft.hessian(expected)(w), rtol=1e-13)


def test_mistakes() -> None:
    with pytest.raises(TypeError, match=r"argument \[0\] of of_jax is the str 'a'.*functools\.partial"):
        of_jax("a", Y)
    with pytest.raises(TypeError, match="from_jax takes a function"):
        ft.from_jax(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"ftrans\.from_jax\(f\)"):
        ft.grad(lambda x: jnp.sin(x).sum())(X)


def test_functions_of_ftrans_may_be_called_in_it() -> None:
    inner = ft.jit(lambda x: np.cumsum(np.sin(x)))
    f = ft.from_jax(lambda x: inner(x) * 2)
    x = np.array([0.3, 0.5, 0.7])
    for g in (ft.grad(lambda x: f(x).prod()), ft.jit(ft.grad(lambda x: f(x).prod()))):
        np.testing.assert_allclose(g(x), ft.grad(lambda x: (np.cumsum(np.sin(x)) * 2).prod())(x), rtol=1e-12)
