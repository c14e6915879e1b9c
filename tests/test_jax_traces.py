"""Functions of ftrans inside traces of JAX: derivatives are those of ftrans, whoever asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from scipy import special
from tables import crossed

import ftrans as ft

P = PartitionSpec


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@ft.custom_vjp
def hundredfold(x: Any) -> Any:
    """The square, with a derivative that is a hundred times the argument."""
    return x * x


hundredfold.defvjp(lambda x: (x * x, x), lambda x, ct: (100 * x * ct,))


@ft.custom_jvp
def tenfold(x: Any) -> Any:
    return np.sin(x)


@tenfold.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return tenfold(primals[0]), 10 * np.cos(primals[0]) * tangents[0]


def decay(rate: Any) -> Any:
    return ft.odeint(lambda y, t, rate: -rate * y, 1.0, np.linspace(0.0, 1.0, 3), rate)[-1]


TWO = np.array(2.0)
# Functions of a number or an array whose derivative JAX would not find, the argument, and the derivative.
ROWS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "stop_gradient": (lambda x: ft.stop_gradient(x) * x, TWO, 2.0),
    "custom_vjp": (hundredfold, TWO, 200.0),
    "custom_jvp": (tenfold, TWO, 10 * np.cos(2.0)),
    "straight_through": (lambda x: ft.straight_through(np.round(x), x), np.array(2.3), 1.0),
    "reverse_gradient": (lambda x: ft.reverse_gradient(x) * 1.0, TWO, -1.0),
    "clip_gradient": (lambda x: 10 * ft.clip_gradient(x, max_norm=1.0), TWO, 1.0),
    "host function": (lambda x: special.kv(1.5, x), TWO, special.kvp(1.5, 2.0)),
    "norm at 0": (np.linalg.norm, np.zeros(3), np.zeros(3)),
    "choice at 0": (lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum(), np.array([0.0, 4.0]), [0.0, 0.25]),
    "equal eigenvalues": (lambda x: np.linalg.eigvalsh(x).sum(), np.eye(2), np.eye(2)),
    "root": (lambda a: ft.root(lambda x, a: x * x - a, 1.0, a), TWO, 0.5 / np.sqrt(2.0)),
    "odeint": (decay, np.array(0.5), -np.exp(-0.5)),
    "while_loop": (lambda x: ft.while_loop(lambda s: s < 100.0, lambda s: s * x, x), TWO, 7 * 2.0**6),
    "scan": (lambda x: ft.scan(lambda c, _: (c * x, None), 1.0, length=3)[0], TWO, 12.0),
    "fori_loop of Python": (
        lambda x: sum(x**i for i in range(40)),
        np.array(0.5),
        sum(i * 0.5 ** (i - 1) for i in range(40)),
    ),
}
WAYS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x]))[1],
    "grad of vmap": lambda f: lambda x: jax.grad(lambda y: jax.vmap(f)(y).sum())(jnp.stack([x, x]))[0],
    "grad of scan": lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1][1]),
}


@crossed(row=ROWS, way=WAYS)
def test_derivatives_in_jax_are_ours(row: str, way: str) -> None:
    f, x, expected = ROWS[row]
    found = WAYS[way](ft.jit(f))(jnp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=1e-5 if row == "odeint" else 1e-12, atol=1e-12)


@crossed(row=["stop_gradient", "custom_vjp", "custom_jvp", "reverse_gradient", "clip_gradient"], way=WAYS)
def test_rules_hold_without_jit(row: str, way: str) -> None:
    """Outside of traces of ftrans these functions return their values as they are, except to JAX."""
    f, x, expected = ROWS[row]
    np.testing.assert_allclose(WAYS[way](f)(jnp.asarray(x)), expected, rtol=1e-12)


def test_rules_hold_where_functions_close_over_what_jax_traces() -> None:
    for f, expected in (
        (lambda x: ft.grad(lambda y: ft.stop_gradient(x) * y * x)(3.0), 2.0),
        (lambda x: ft.while_loop(lambda s: s[1] < 3, lambda s: (s[0] * ft.stop_gradient(x), s[1] + 1), (x, 0))[0], 8.0),
        (lambda x: ft.grad(lambda y: hundredfold(x) * y)(3.0), 200.0),
    ):
        np.testing.assert_allclose(jax.grad(f)(2.0), expected, rtol=1e-12)


FORWARD = [row for row in ROWS if row not in ("custom_vjp", "clip_gradient", "reverse_gradient", "straight_through")]


@pytest.mark.parametrize("row", FORWARD)
def test_forward_derivatives_in_jax_are_ours(row: str) -> None:
    f, x, expected = ROWS[row]
    found = jax.jacfwd(ft.jit(f))(jnp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=1e-5 if row == "odeint" else 1e-12, atol=1e-12)


def smooth(x: Any) -> Any:
    return np.sum(np.sin(x) * np.exp(-x)) * np.linalg.norm(x)


def same(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * jnp.exp(-x)) * jnp.linalg.norm(x)


ORDERS: dict[str, Callable[..., Callable[..., Any]]] = {
    "hessian": jax.hessian,
    "jit of hessian": lambda f: jax.jit(jax.hessian(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "third order": lambda f: jax.jacfwd(jax.hessian(f)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "hessian of vmap": lambda f: jax.hessian(lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])).sum()),
    "jvp of fori_loop": lambda f: (
        lambda x: jax.jvp(lambda x: jax.lax.fori_loop(0, 3, lambda _, c: c + f(c), x), (x,), (x,))[1]
    ),
    "vmap of grad of a gradient": lambda f: jax.vmap(jax.grad(lambda x: (jax.grad(f)(jnp.stack([x, x])) ** 2).sum())),
}


@pytest.mark.parametrize("order", ORDERS)
def test_higher_orders_close(order: str) -> None:
    x = jnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(ORDERS[order](ft.jit(smooth))(x), jax.jit(ORDERS[order](same))(x), rtol=1e-12)


def test_ftrans_in_jax_in_ftrans_arguments_and_results() -> None:
    """Gradients of ftrans within those of JAX, integer and complex arguments, containers, several results."""
    x = jnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        jax.grad(lambda x: ft.grad(smooth)(x).sum())(x), jax.hessian(same)(x).sum(axis=0), rtol=1e-12
    )
    np.testing.assert_array_equal(jax.grad(ft.jit(lambda x, n: (x * n).sum()))(x, jnp.arange(3)), [0, 1, 2])

    def f(z: Any) -> Any:
        return np.abs(z * z * 1j + z.conj() * np.exp(z))

    def g(z: Any) -> Any:
        return jnp.abs(z * z * 1j + z.conj() * jnp.exp(z))

    np.testing.assert_allclose(jax.grad(ft.jit(f))(1 + 2j), jax.grad(g)(1 + 2j), rtol=1e-14)
    found = jax.grad(ft.jit(lambda d: d["a"] * np.sum(d["b"][0] ** 2)))({"a": 2.0, "b": [x]})
    np.testing.assert_allclose(found["a"], 14.0)
    np.testing.assert_allclose(found["b"][0], 4 * x)
    value, (of_x, of_n) = jax.jvp(
        lambda x: (ft.jit(lambda x: (x * 3, np.arange(2)))(x)[0], ft.jit(np.sign)(x)), (x,), (x,)
    )
    np.testing.assert_array_equal(value[0], 3 * x)
    np.testing.assert_array_equal(of_x, 3 * x)
    np.testing.assert_array_equal(of_n, 0)


def three(x: Any, y: Any) -> Any:
    return np.sin(x) * y, np.exp(x) - y * y, x / y


def same_three(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y, jnp.exp(x) - y * y, x / y


@pytest.mark.parametrize("used", [(1,), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("argnums", [1, (0, 1)], ids=str)
def test_several_arguments_and_results_of_equal_types(argnums: Any, used: tuple[int, ...]) -> None:
    """Their cotangents are kept apart, of which some are zero."""
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 5.0])

    def gradient(f: Callable[..., Any]) -> Any:
        def total(x: Any, y: Any) -> Any:
            results = f(x, y)
            return sum((i + 1) * results[i].sum() for i in used)

        return jax.grad(total, argnums)(x, y)

    np.testing.assert_allclose(gradient(ft.jit(three)), gradient(same_three), rtol=1e-14)


def test_jax_maps_another_axis() -> None:
    x, y = jnp.arange(1.0, 10.0).reshape(3, 3), jnp.arange(2.0, 5.0)

    def mapped(f: Callable[..., Any]) -> Any:
        return jax.vmap(jax.jacfwd(lambda x, y: f(x, y)[0] + f(x, y)[2]), in_axes=(1, None), out_axes=1)(x, y)

    np.testing.assert_allclose(mapped(ft.jit(three)), mapped(same_three), rtol=1e-14)


def test_narrow_numbers_stay_narrow() -> None:
    with jax.enable_x64(False):
        found = jax.grad(ft.jit(lambda x: np.linalg.norm(x) ** 3))(jnp.ones(3))
        assert found.dtype == np.float32
        assert jax.grad(ft.jit(lambda x: x * np.float32(2.0)))(2.0).dtype == np.float32
        # NumPy's rules for dtypes hold in the function, also where JAX would have made float32 of the constant.
        assert jax.grad(ft.jit(lambda x: np.sum(x * np.arange(3.0))))(jnp.ones(3)).dtype == np.float32


def test_a_custom_rule_of_jax_around_it() -> None:
    """JAX hands numbers of Python to rules as objects of a class of its own."""

    @jax.custom_jvp
    def f(x: Any) -> Any:
        return ft.jit(hundredfold)(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 3 * ft.jit(hundredfold)(primals[0]) * tangents[0]))
    assert float(jax.grad(f)(2.0)) == 12.0


def test_what_branches_or_closes_over_a_traced_value_says_so() -> None:
    with pytest.raises(TypeError, match=r"numpy\.where or ftrans\.cond"):
        jax.grad(ft.jit(lambda x: x if x > 0 else -x))(3.0)
    with pytest.raises(TypeError, match=r"closes over a value that JAX is tracing.*pass it as an argument"):
        jax.grad(lambda a: ft.jit(lambda y: a * y)(2.0))(3.0)
    assert jax.grad(lambda a: ft.grad(lambda y: a * y * y)(2.0))(3.0) == 4.0
    assert jax.grad(lambda x: ft.jit(lambda x, up: x if up else -x, static_argnums=1)(x, False))(3.0) == -1.0


@pytest.mark.parametrize("shape", [(3, 2), (3, 4000)])
def test_arrays_that_jax_does_not_trace(shape: tuple[int, int]) -> None:
    """They are computed with at once, as NumPy does, and nothing of a trace of JAX is kept for the next one."""
    weights, x = np.full(shape, 0.5), np.arange(1.0, 4.0)
    f = ft.jit(lambda x: np.sum(x @ weights) if x.sum() > 1 else x.sum())
    g = ft.jit(lambda x: np.sum(x @ weights))
    expected = np.sum(x @ weights)
    for _ in range(2):
        np.testing.assert_allclose(jax.jit(lambda y: f(x) * y)(2.0), 2 * expected)
        np.testing.assert_allclose(jax.jit(lambda y: g(y) + ft.grad(g)(x).sum())(x), expected + weights.sum())
        np.testing.assert_allclose(jax.jit(jax.grad(g))(x), weights.sum(axis=1))
        np.testing.assert_allclose(jax.lax.scan(lambda c, _: (c, g(jnp.ones(3)) * c), 1.0, length=2)[1], weights.sum())
    assert type(f(x)) is np.float64
    none = ft.jit(lambda: np.arange(3.0))
    np.testing.assert_array_equal(jax.jit(lambda y: none() * y)(2.0), [0, 2, 4])


def test_compiled_programs_and_operations_are_kept_apart() -> None:
    f = ft.jit(hundredfold)
    assert f(2.0) == 4.0
    assert jax.grad(f)(2.0) == 200.0
    assert f(jnp.asarray(2.0)) == 4.0
    assert ft.grad(f)(2.0) == 200.0
    assert jax.jit(f)(2.0) == 4.0


def test_an_optimizer_of_jax_minimizes_it() -> None:
    f = ft.jit(lambda x: np.sum((x - np.array([1.0, 2.0])) ** 2) + np.linalg.norm(x - np.array([1.0, 2.0])))
    solver = optax.lbfgs()

    @jax.jit
    def step(x: Any, state: Any) -> Any:
        value, gradient = jax.value_and_grad(f)(x)
        updates, state = solver.update(gradient, state, x, value=value, grad=gradient, value_fn=f)
        return optax.apply_updates(x, updates), state

    x = jnp.zeros(2)
    state = solver.init(x)
    for _ in range(8):
        x, state = step(x, state)
    np.testing.assert_allclose(x, [1.0, 2.0], atol=1e-3)


# Several devices

W, X = np.array([0.3, 0.5]), np.arange(16.0).reshape(8, 2) / 10


def loss(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ w) * w[0])


def loop(w: Any, x: Any) -> Any:
    return ft.scan(lambda c, row: (c + np.sum(np.tanh(row @ w) * w[0]), None), 0.0, x)[0]


def expected_loss(w: Any) -> Any:
    return jnp.sum(jnp.tanh(X @ w) * w[0])


@pytest.mark.parametrize("checks", [False, True], ids=["unchecked", "checked"])
@pytest.mark.parametrize("f", [loss, loop])
def test_sums_over_devices(f: Callable[..., Any], checks: bool) -> None:
    """A replicated argument has the sum of what each device finds for its cotangent."""
    mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))

    def divided(g: Callable[..., Any]) -> Callable[..., Any]:
        return jax.shard_map(g, mesh=mesh, in_specs=(P(), P("d")), out_specs=P(), check_vma=checks)

    total = divided(lambda w, x: jax.lax.psum(ft.jit(f)(w, x), "d"))
    np.testing.assert_allclose(jax.jit(total)(W, X), expected_loss(W), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.grad(total))(W, X), jax.grad(expected_loss)(W), rtol=1e-12)
    if f is loss:
        np.testing.assert_allclose(jax.grad(total)(W, X), jax.grad(expected_loss)(W), rtol=1e-12)
        inside = divided(lambda w, x: jax.lax.psum(ft.jit(ft.grad(f))(w, x), "d"))
        average = divided(lambda w, x: jax.lax.pmean(ft.jit(f)(w, x), "d"))
        # Operation by operation each would be compiled.
        hessian, gradient, of_average = jax.jit(
            lambda w, x: (jax.hessian(total)(w, x), inside(w, x), jax.grad(average)(w, x))
        )(W, X)
        np.testing.assert_allclose(hessian, jax.hessian(expected_loss)(W), rtol=1e-12)
        np.testing.assert_allclose(gradient, jax.grad(expected_loss)(W), rtol=1e-12)
        np.testing.assert_allclose(of_average, jax.grad(expected_loss)(W) / 4, rtol=1e-12)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_arrays_on_a_mesh(kind: Any) -> None:
    mesh = jax.make_mesh((4,), ("d",), axis_types=(kind,))
    x = jax.device_put(X, NamedSharding(mesh, P("d")))
    w = jax.device_put(W, NamedSharding(mesh, P()))
    np.testing.assert_allclose(jax.jit(jax.grad(ft.jit(loss)))(w, x), jax.grad(expected_loss)(W), rtol=1e-12)
    found = jax.jit(jax.grad(ft.jit(loss), argnums=1))(w, x)
    np.testing.assert_allclose(found, (1 - np.tanh(X @ W) ** 2)[:, None] * W * W[0], rtol=1e-12)
    assert found.sharding.spec[0] == "d"
    found = jax.jit(lambda x: ft.jit(np.tanh)(x))(x)
    np.testing.assert_allclose(found, np.tanh(X), rtol=1e-14)
    if kind == AxisType.Auto:
        assert found.sharding.spec == P("d")
        divided = ft.jit(np.tanh, out_shardings=NamedSharding(mesh, P("d")))
        assert jax.jit(lambda x: divided(x))(X).sharding.spec[0] == "d"


def test_symbolic_sizes() -> None:
    """`jax.export` leaves the size of an axis open, over which JAX maps the operation."""
    row = ft.jit(lambda x: np.linalg.norm(x) ** 2)
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 3"), np.float64)
    exported = jax.export.export(jax.jit(jax.vmap(jax.grad(row))))(shape)
    for size in (1, 5):
        x = np.arange(3.0 * size).reshape(size, 3)
        np.testing.assert_allclose(exported.call(x), 2 * x, rtol=1e-12)
    with pytest.raises(TypeError, match=r"mapped over an axis of symbolic size.*jax\.vmap\(jax\.grad\(f\)\)"):
        jax.export.export(jax.jit(jax.grad(lambda x: jax.vmap(row)(x).sum())))(shape)
