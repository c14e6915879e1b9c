"""Programs on a mesh of devices: what is divided how, and what is said about it.

The eight devices are virtual ones of the CPU (see conftest.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import scipy.special
from jax.sharding import AxisType, NamedSharding

import ftrans as ft
from ftrans.base.surroundings import divided
from ftrans.ops.random_bits import random_bits
from ftrans.ops.special.errors import erf

P = ft.P
MESH = ft.mesh({"d": 8})
EXPLICIT = jax.make_mesh((8,), ("d",))
rng = np.random.default_rng(0)
X = rng.normal(size=16)


def on(mesh: Any, x: Any, spec: Any = None) -> Any:
    """An array, divided over a mesh along its first axis unless a spec is given."""
    with jax.enable_x64(True):
        return jax.device_put(x, NamedSharding(mesh, P("d") if spec is None else spec))


def spec_of(x: Any) -> tuple[Any, ...]:
    """How an array is divided, without None at the end."""
    spec = [*x.sharding.spec] if isinstance(x.sharding, NamedSharding) else []
    while spec and spec[-1] is None:
        spec.pop()
    return tuple(spec)


def loss(x: Any) -> Any:
    return np.mean(np.sin(x) ** 2)


# Meshes


def test_meshes() -> None:
    assert dict(MESH.shape) == {"d": 8}
    assert set(ft.mesh((4, 2), ("data", "model")).axis_types) == {AxisType.Auto}
    assert dict(ft.mesh({"data": -1, "model": 2}).shape) == {"data": 4, "model": 2}
    assert ft.mesh({"d": 2}, devices=jax.devices()[3:5]).devices.tolist() == jax.devices()[3:5]
    with ft.use_mesh(MESH) as mesh:
        assert mesh is MESH


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (({"d": 16},), ValueError, "a mesh of 16 devices needs 16, but there are 8.*JAX_NUM_CPU_DEVICES=16"),
        (((4, 2), ("d",)), ValueError, r"got 2 sizes and the names \['d'\].*write ft.mesh"),
        (((4, 2),), TypeError, "takes a name for each axis"),
        ((8, "d"), TypeError, "takes sizes that are integers"),
        (({"d": 0},), ValueError, "sizes of a mesh are positive"),
        (({"d": 8}, ("d",)), TypeError, "names twice"),
    ],
    ids=str,
)
def test_wrong_meshes(args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=rf"(?s){message}.*test_sharding.py"):
        ft.mesh(*args)


# ft.shard


def test_shard_is_the_identity_on_numpy_arrays() -> None:
    assert ft.shard(X, P("d"), MESH) is X
    assert ft.grad(lambda x: np.sum(ft.shard(x, P("d"), MESH) ** 2))(X) == pytest.approx(2 * X)


def test_shard_puts_jax_arrays_on_the_mesh() -> None:
    one = on(ft.mesh({"e": 1}), X, P())
    with ft.use_mesh(MESH):
        both = ft.shard({"a": one, "b": (one, X)}, {"a": P("d"), "b": None})
    assert spec_of(both["a"]) == ("d",)
    assert both["b"][0] is one
    assert ft.shard(one, NamedSharding(EXPLICIT, P())).sharding.is_fully_replicated


@pytest.mark.parametrize("wrap", [ft.jit, lambda f: f], ids=["jit", "un-jitted"])
def test_shard_in_derivatives_and_batches(wrap: Callable[..., Any]) -> None:
    def cubes(x: Any) -> Any:
        return ft.shard(x, P("d"), MESH) ** 3

    x = on(MESH, X, P())
    gradient = wrap(ft.grad(lambda x: np.sum(cubes(x))))(x)
    assert spec_of(gradient) == ("d",)
    assert np.asarray(gradient) == pytest.approx(3 * X**2)
    tangent = wrap(lambda x: ft.jvp(cubes, (x,), (x,))[1])(x)
    assert spec_of(tangent) == ("d",)
    batch = on(MESH, np.stack([X, 2 * X]), P())
    mapped = wrap(ft.vmap(cubes))(batch)
    assert spec_of(mapped) == (None, "d")
    assert np.asarray(wrap(ft.hessian(lambda x: np.sum(cubes(x))))(x)) == pytest.approx(np.diag(6 * X))


def halves(x: Any) -> Any:
    return ft.shard(x * x, P("d"), MESH)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(ft.scan(lambda c, _: (np.sin(halves(c)), None), x, np.arange(3.0))[0]),
        lambda x: np.sum(ft.checkpoint(lambda x: np.sin(halves(x)))(x)),
        lambda x: np.sum(ft.cond(np.sum(x * x) > 0, lambda x: np.sin(halves(x)), np.cos, x)),
    ],
    ids=["scan", "checkpoint", "cond"],
)
def test_shard_in_constructs(f: Callable[..., Any]) -> None:
    gradient = ft.jit(ft.grad(f))(on(MESH, X))
    assert spec_of(gradient) == ("d",)
    np.testing.assert_allclose(np.asarray(gradient), ft.grad(f)(X), rtol=1e-12)


def test_a_batch_stays_divided_as_it_is() -> None:
    mesh = ft.mesh((4, 2), ("a", "b"))
    batch = on(mesh, np.ones((4, 16)), P("a"))
    f = ft.vmap(lambda x: 2 * ft.shard(x, P("b"), mesh))
    assert spec_of(ft.jit(f)(batch)) == ("a", "b")
    assert spec_of(f(batch)) == ("a", "b")
    assert spec_of(ft.vmap(lambda x: ft.shard(x, P("a"), mesh))(batch)) == (None, "a")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ft.shard(X, P("d")), ValueError, r"got P\('d',\) without a mesh; call it in `with ft.use_mesh"),
        (lambda: ft.shard(X, P("e"), MESH), ValueError, "names the axis 'e', but the mesh has 'd'"),
        (lambda: ft.shard(X, P(None, "d"), MESH), ValueError, r"has 2 entries, but the array is f64\[16\]"),
        (lambda: ft.shard(X[:9], P("d"), MESH), ValueError, "has 9 elements, which 'd' = 8 devices.*pad it to 16"),
        (lambda: ft.shard(X, "d", MESH), TypeError, r"takes specs such as ft.P\('data'\)"),
        (lambda: ft.shard("x", P("d"), MESH), TypeError, "takes arrays, but it was given the str"),
        (lambda: ft.shard(X, P("d"), 8), TypeError, r"the mesh of ft.shard is of type int; write ft.mesh"),
        (lambda: ft.shard([X], (P("d"), P()), MESH), ValueError, "is no container like the value"),
        (lambda: ft.use_mesh(8), TypeError, "takes a mesh"),
    ],
)
def test_wrong_specs(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=rf"(?s){message}.*test_sharding.py"):
        call()


# ft.jit(f, in_shardings=, out_shardings=)


def test_shardings_of_arguments_and_results() -> None:
    @ft.jit(in_shardings=({"w": P("d"), "b": None}, P()), out_shardings=(P("d"), {"s": P(), "n": None}))
    def f(params: Any, x: Any) -> Any:
        return params["w"] * x + params["b"], {"s": np.sum(params["w"]), "n": None}

    with ft.use_mesh(MESH):
        y, others = f({"w": X, "b": 1.0}, 2.0)
        assert spec_of(y) == ("d",)
        assert np.asarray(y) == pytest.approx(2 * X + 1)
        assert float(others["s"]) == pytest.approx(X.sum())
        assert others["n"] is None
    with ft.use_mesh(ft.mesh({"d": 2})):
        assert len(f({"w": X, "b": 1.0}, 2.0)[0].sharding.device_set) == 2


def test_shardings_and_static_arguments() -> None:
    f = ft.jit(lambda n, x: x * n, static_argnums=0, in_shardings=NamedSharding(MESH, P("d")), donate_argnums=1)
    assert spec_of(f(3, X)) == ("d",)
    given = on(MESH, X)
    assert np.asarray(f(3, given)) == pytest.approx(3 * X)
    assert given.is_deleted()


def test_shardings_inside_of_another_trace() -> None:
    inner = ft.jit(np.sin, in_shardings=NamedSharding(MESH, P("d")), out_shardings=NamedSharding(MESH, P("d")))
    gradient = ft.jit(ft.grad(lambda x: np.sum(inner(x))), out_shardings=None)(on(MESH, X, P()))
    assert spec_of(gradient) == ("d",)


def test_branches_of_python_on_divided_values() -> None:
    @ft.jit
    def f(x: Any) -> Any:
        total = np.cumsum(x)
        for i in range(9):  # so many guards are packed in one array
            if total[i] > 1e3:
                return x
        return np.sin(x) if total[-1] > 0 else -x

    @ft.jit
    def by_elements(x: Any) -> Any:
        is_large = x > 1e3  # XLA would divide the guards as it does this array
        return -x if any(is_large[i] for i in range(len(X))) else x

    up = on(MESH, np.abs(X))
    for _ in range(2):
        assert np.asarray(f(up)) == pytest.approx(np.sin(np.abs(X)))
        assert np.asarray(f(on(MESH, -np.abs(X)))) == pytest.approx(np.abs(X))
    for guarded in (f, by_elements):
        guards = guarded.lower(up).compile().output_shardings[1:]
        assert guards
        assert all(s.is_fully_replicated for s in guards)


def test_captured_arrays_keep_their_sharding() -> None:
    w = on(MESH, X)
    f = ft.jit(lambda x: x * w)
    assert spec_of(f(X)) == ("d",)
    assert len(f.lower(X).compile().input_shardings[0]) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ft.jit(np.sin, in_shardings=P("d"))(X), r"in_shardings of ft.jit got P\('d',\) without a mesh"),
        (
            lambda: ft.jit(np.sin, in_shardings=NamedSharding(MESH, P()))(on(MESH, X)),
            r"is divided as P\('d',\), but in_shardings says P\(\); divide it before by ft.shard\(x, ft.P\(\), mesh\)",
        ),
        (
            lambda: ft.jit(np.sin, out_shardings=NamedSharding(MESH, P("d")))(X[:9]),
            "axis 0 of the result of sin has 9 elements",
        ),
        (
            lambda: ft.jit(np.add, in_shardings=(NamedSharding(MESH, P("d")),))(X, X),
            r"is no container like the arguments of add, a tuple of 2: tuple arity mismatch; expected: 1, got: 2",
        ),
        (
            lambda: ft.jit(np.add)(on(MESH, X), on(ft.mesh({"e": 1}), X, P())),
            r"arrays on different devices meet: .* is on .* alone, .* on 8 devices as P\('d',\). ft.shard\(x, ft.P\(\)",
        ),
        (lambda: ft.vmap(np.add)(on(MESH, X), on(ft.mesh({"e": 1}), X, P())), "arrays on different devices meet"),
    ],
)
def test_wrong_shardings(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s){message}.*test_sharding.py"):
        call()


def test_in_shardings_are_of_positional_arguments() -> None:
    with pytest.raises(TypeError, match=r"called with x by name; give all arguments by position"):
        ft.jit(lambda x: x, in_shardings=NamedSharding(MESH, P("d")))(x=X)


def test_what_jax_keeps_of_a_divided_numpy_array_is_not_taken() -> None:
    # JAX divides it as f32, and would hand these parts to all that gets the same object while they live.
    calls: dict[str, Callable[[Any], Any]] = {
        "one device": ft.jit(np.sin),
        "in_shardings": ft.jit(np.sin, in_shardings=NamedSharding(MESH, P("d"))),
        "shard": ft.jit(lambda x: np.sin(ft.shard(x, P("d"), MESH))),
        "beside a divided array": lambda x: ft.jit(np.multiply)(np.sin(x), on(MESH, np.ones(16))),
        "op by op": ft.vmap(lambda x: np.sin(x) * on(MESH, np.ones(1), P())),
    }
    for name, f in calls.items():
        before, after = X.copy(), X.copy()
        parts = jax.device_put(before, NamedSharding(MESH, P("d")))
        assert np.allclose(np.ravel(f(before)), np.sin(X), rtol=1e-14), name
        assert np.allclose(np.ravel(f(after)), np.sin(X), rtol=1e-14), name
        held = f(after)
        later = jax.device_put(after, NamedSharding(MESH, P("d")))
        assert {s.data.dtype for x in (parts, later) for s in x.addressable_shards} == {np.dtype(np.float32)}, name
        del held


# Arrays with Explicit axes


@pytest.mark.parametrize("wrap", [ft.jit, lambda f: f], ids=["jit", "un-jitted"])
def test_arrays_with_explicit_axes_come_back_with_them(wrap: Callable[..., Any]) -> None:
    x = on(EXPLICIT, X)
    f = wrap(ft.grad(loss))
    for _ in range(2):
        gradient = f(x)
        assert gradient.sharding.mesh.axis_types == (AxisType.Explicit,)
        with jax.enable_x64(True):
            assert np.asarray(x - 16 * gradient) == pytest.approx(X - np.sin(2 * X))
    with jax.set_mesh(EXPLICIT):
        assert np.asarray(f(x)) == pytest.approx(np.sin(2 * X) / 16)
        assert np.asarray(f(on(MESH, X))) == pytest.approx(np.sin(2 * X) / 16)
        assert f(X) == pytest.approx(np.sin(2 * X) / 16)


def test_arrays_with_explicit_and_auto_axes_meet() -> None:
    assert np.asarray(ft.jit(np.add)(on(MESH, X), on(EXPLICIT, X))) == pytest.approx(2 * X)


def test_explicit_axes_inside_of_jax() -> None:
    x = on(EXPLICIT, X.astype(np.float32))
    in_jax = jax.jit(ft.jit(np.sort))(x)
    np.testing.assert_array_equal(in_jax, np.sort(x))
    assert spec_of(in_jax) == ()
    sines = jax.sharding.auto_axes(ft.jit(np.sin), out_sharding=x.sharding)
    assert spec_of(jax.jit(sines)(x)) == ("d",)


# Jacobians and Hessians


A = rng.normal(size=(64, 64)) / 8
POINT = np.linspace(0, 1, 64)


def field(x: Any) -> Any:
    return np.tanh(A @ np.sin(A @ x))


def energy(x: Any) -> Any:
    return np.sum(np.exp(np.sin(A @ x)))


@pytest.mark.parametrize(
    ("f", "spec", "most"),
    [
        (ft.jacfwd(field), P(None, "d"), 0.25),
        (ft.jacrev(field), P("d"), 0.25),
        (ft.jacobian(field, mode="forward", chunk_size=24), P(None, "d"), 0.25),
        (ft.jacobian(field, mode="reverse", chunk_size=16), P("d"), 0.25),
        (ft.hessian(energy), P(None, "d"), 0.25),
        (ft.hessian(energy, chunk_size=16), P(None, "d"), 0.4),
    ],
    ids=["forward", "reverse", "forward in chunks", "reverse in chunks", "Hessian", "Hessian in chunks"],
)
def test_devices_share_a_jacobian(f: Callable[..., Any], spec: Any, most: float) -> None:
    x = on(MESH, POINT, P())
    shared = ft.jit(f, out_shardings=NamedSharding(MESH, spec)).lower(x).compile()
    assert not re.search(r"(all-|collective-)\w+\(", shared.as_text())
    (result,) = shared(x)
    assert spec_of(result) == tuple(spec)
    np.testing.assert_allclose(np.asarray(result), f(POINT), rtol=1e-10, atol=1e-14)
    alone = ft.jit(f).lower(POINT).compile()
    assert shared.cost_analysis()["flops"] < most * alone.cost_analysis()["flops"]


@pytest.mark.filterwarnings("default")
def test_devices_share_sparse_products() -> None:
    def rows(x: Any) -> Any:
        return np.sin(x.reshape(16, 4) @ np.ones(4))

    x = on(MESH, POINT)
    slope = ft.jit(ft.sparse_jacobian(rows), out_shardings=NamedSharding(MESH, P("d")))
    assert not re.search(r"(all-|collective-)\w+\(", slope.lower(x).compile().as_text())
    for found in (slope(x), ft.sparse_jacobian(rows).prepare(x)(x)):
        assert spec_of(found.values) == ("d",)
        np.testing.assert_allclose(np.asarray(found.todense()), ft.jacobian(rows)(POINT), rtol=1e-12)


# What it costs


def test_the_cost_is_that_of_one_device_and_says_what_the_host_gathers() -> None:
    def bessel(x: Any) -> Any:
        return scipy.special.kv(1.5, x)

    x = on(MESH, np.abs(X))
    assert str(ft.debug.cost(np.sin)(x)).count("host") == 0
    assert ft.debug.cost(lambda x: x * 2)(x).flops == ft.debug.cost(lambda x: x * 2)(np.abs(X)).flops / 8
    said = (
        r"kv runs on the host, for which divided arrays are gathered on one device.*test_sharding.py:\d+: return scipy"
    )
    assert re.search(said, str(ft.debug.cost(bessel)(x)), re.DOTALL)
    assert not ft.debug.cost(bessel)(np.abs(X)).notes


# Forms for programs that are divided


@pytest.mark.parametrize("shape", [(), (5,), (7, 3), (64,)], ids=str)
def test_random_numbers_in_parts_are_the_same_bits(shape: tuple[int, ...]) -> None:
    for lanes in ((), (3,)):
        key, counter = (rng.integers(0, 2**32, (*lanes, 2), np.uint32) for _ in range(2))
        with divided(True):
            drawn = jax.jit(lambda *xs: random_bits.xla(*xs, shape=shape))(key, counter)
        assert np.array_equal(drawn, random_bits.numpy(key, counter, shape=shape))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_error_function_in_parts(dtype: Any) -> None:
    x = np.concatenate([np.linspace(-7, 7, 2001), 10.0 ** np.arange(-7, 0), [0.0, -0.0, np.inf, -np.inf, np.nan]])
    with divided(True), jax.enable_x64(True):
        found = np.asarray(jax.jit(erf.xla)(x.astype(dtype)))
    assert found.dtype == dtype
    exact = scipy.special.erf(x.astype(dtype).astype(float))
    np.testing.assert_allclose(found, exact, rtol=2.5 * float(np.finfo(dtype).eps), atol=1e-7 * (dtype == np.float16))
    assert np.array_equal(np.signbit(found[:-1]), np.signbit(exact[:-1]))


def indexed() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions that read and write each lane of a batch at an index of its own."""
    a, places = rng.normal(size=(8, 5, 3)), rng.integers(-5, 5, (8, 4, 3))
    return {
        **{f"along {axis}": (functools.partial(take, axis=axis), (a, places % 3)) for axis in (0, 1, 2)},
        "one of each row": (lambda a, i: a[np.arange(8), i], (a, places[:, 0, 0])),
        "of each column": (lambda a, i: a[i, np.arange(5)], (a, places[:5, 0, 0])),
        "block of each row": (lambda a, i: a[np.arange(8)[:, None], i], (a, places[:, :, 0])),
        "only a part of the rows": (lambda a, i: a[np.arange(4), i], (a, places[:4, 0, 0])),
        "both count": (lambda a, i: a[np.arange(5), np.arange(5)] * i, (a, places[0, 0, 0])),
        "beside another index": (lambda a, i: a[np.arange(8), i, i % 3], (a, places[:, 0, 0])),
        "vmap": (ft.vmap(lambda a, i: a[i]), (a, places)),
        "vmap over two axes": (ft.vmap(ft.vmap(lambda a, i: a[i])), (a, places[:, :1, 0].repeat(5, 1) % 3)),
        "vmap over another axis": (ft.vmap(lambda a, i: a[i], in_axes=(1, 0), out_axes=1), (a, places[:5, 0])),
        "vmap of writes": (ft.vmap(written), (a, places[:, :, 0])),
    }


def take(a: Any, places: Any, axis: int) -> Any:
    return np.take_along_axis(a, places[:, :1, :1] if axis != 1 else places[:, :, :], axis)


def written(a: Any, i: Any) -> Any:
    b = 2 * a
    b[i] = a[:4] ** 2
    b[i[0]] += 1.0
    return b


@pytest.mark.parametrize("name", indexed())
def test_indices_in_lanes(name: str) -> None:
    f, args = indexed()[name]

    def values_and_gradient(a: Any, i: Any) -> Any:
        return f(a, i), ft.grad(lambda a: np.sum(np.sin(f(a, i))))(a)

    a, i = on(MESH, args[0]), args[1]
    for expected, found in zip(values_and_gradient(*args), ft.jit(values_and_gradient)(a, i), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
