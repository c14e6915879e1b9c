"""Dense Jacobians and Hessians: loops over chunks, one pass over all arguments, no axis for a single direction."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.api.call import trace_flat
from ftrans.core.interpret import inline
from ftrans.core.program import Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import ArrayType, type_of
from ftrans.run.evaluate import evaluate
from ftrans.structure.dense import dense
from ftrans.structure.dense.chunks import apply_in_chunks, apply_to_basis
from ftrans.structure.dense.triangle import hessian_by_triangle
from ftrans.transforms.differentiate import pushforward
from ftrans.transforms.simplify import simplify

X = np.linspace(0.5, 1.5, 7)
W = 0.1 * np.random.default_rng(0).standard_normal((4, 7))
JITS: list[Callable[[Any], Any]] = [lambda f: f, ft.jit]


def program_of(f: Callable[..., Any], *args: Any) -> Program:
    """The simplified program of a function."""
    return simplify(trace_flat(f, [type_of(x) for x in args], lambda xs: f(*xs), args)[0].program)


def spring(x: Any) -> Any:
    return np.tanh(W @ x) * x[0]


def spring_slope(x: Any) -> Any:
    inner = np.tanh(W @ x)
    slope = ((1 - inner**2) * x[0])[:, None] * W
    slope[:, 0] += inner
    return slope


# Chunks


def applied(seeds: Any, chunk: int | None) -> Any:
    """The derivative of `spring` at X along seeds, or along the basis for None."""
    traced = program_of(spring, X)
    parts = pushforward(traced, (True, False))
    builder = Builder([*traced.in_types, *([] if seeds is None else [type_of(seeds)])])
    with building(builder):
        inputs = builder.inputs()
        residuals = inline(parts.values, inputs[:2])[1:]
        if seeds is None:
            outs = apply_to_basis(parts.linear, residuals, chunk)
        else:
            outs = apply_in_chunks(parts.linear, residuals, inputs[2:], chunk)
        program = builder.finish(outs, "applied")
    program.check()
    (found,) = evaluate(program, [X, W, *([] if seeds is None else [seeds])])
    return found


@pytest.mark.parametrize("chunk", [None, 1, 2, 3, 5, 8, 9, 100])
def test_a_linear_program_is_applied_in_chunks(chunk: int | None) -> None:
    seeds = np.random.default_rng(1).standard_normal((9, 7))
    np.testing.assert_allclose(applied(seeds, chunk), seeds @ spring_slope(X).T, rtol=1e-13)
    np.testing.assert_allclose(applied(None, chunk), spring_slope(X).T, rtol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_length_of_a_program_does_not_depend_on_the_number_of_chunks(mode: Any) -> None:
    def length(size: int) -> int:
        x = np.linspace(0.0, 1.0, size)
        return len(program_of(ft.jacobian(lambda x: np.sin(x) * x[::-1], mode=mode, chunk_size=4), x).eqns)

    assert length(1200) == length(2400)


@pytest.mark.parametrize("jit", JITS)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 6])
def test_chunks_under_transformations(jit: Any, mode: Any, chunk_size: int) -> None:
    def slopes(x: Any) -> Any:
        return ft.jacobian(spring, mode=mode, chunk_size=chunk_size)(x)

    points = np.stack([X, 2 * X])
    total = ft.grad(lambda x: np.sum(slopes(x) ** 2))
    whole = ft.grad(lambda x: np.sum(ft.jacobian(spring)(x) ** 2))
    # One program, which XLA compiles once.
    at_x, at_points, slope_of_total = jit(lambda x, xs: (slopes(x), ft.vmap(slopes)(xs), total(x)))(X, points)
    np.testing.assert_allclose(at_x, spring_slope(X), rtol=1e-12)
    np.testing.assert_allclose(at_points, np.stack([*map(spring_slope, points)]), rtol=1e-12)
    np.testing.assert_allclose(slope_of_total, whole(X), rtol=1e-11)


def test_chunks_bound_the_memory_without_jit() -> None:
    weights = np.linspace(0.0, 1.0, 500)[:, None]
    x = np.linspace(0.0, 1.0, 64)

    def peak(chunk_size: int | None) -> int:
        slope = ft.jacfwd(lambda x: np.sum(np.sin(weights * x), axis=1), chunk_size=chunk_size)
        slope(x)
        tracemalloc.start()
        slope(x)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(4) < peak(None) / 4


# Forward mode


def test_a_single_direction_has_no_axis() -> None:
    program = program_of(ft.jacfwd(lambda t: np.stack([np.sin(t), t * t])), 0.5)
    assert all(v.type.ndim <= 1 for eqn in program.eqns for v in eqn.outputs if eqn.primitive.name != "reshape")
    assert not [eqn for eqn in program.eqns if eqn.primitive.name == "iota"]
    for x in (np.array(0.5), np.array([0.5]), np.array([[0.5]])):
        slope = ft.jacfwd(lambda t: np.stack([np.sin(t), t * t]))(x)
        assert slope.shape == (2, *x.shape, *x.shape)
        np.testing.assert_allclose(slope.ravel(), [np.cos(0.5), 1.0])
        assert ft.hessian(lambda t: np.sum(t**3))(x).shape == x.shape * 2


def test_forward_mode_passes_once_over_all_arguments() -> None:
    args = [np.linspace(0.1, 1.0, 30) + i for i in range(6)]

    def f(*xs: Any) -> Any:
        y = xs[0]
        for x in xs[1:]:
            y = np.sin(y * x) + np.exp(-y)
        return y

    every = tuple(range(len(args)))
    one = sum(len(program_of(ft.jacfwd(f, i), *args).eqns) for i in every)
    assert len(program_of(ft.jacfwd(f, every), *args).eqns) < 0.7 * one
    for mine, other in zip(ft.jacfwd(f, every)(*args), ft.jacrev(f, every)(*args), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("jit", JITS)
def test_an_infinite_slope_of_one_argument_stays_out_of_the_others(jit: Any) -> None:
    with np.errstate(divide="ignore"):
        of_x, of_y = jit(ft.jacfwd(lambda x, y: x * 3.0 + np.sqrt(y), (0, 1)))(X, 0.0)
    np.testing.assert_array_equal(of_x, 3.0 * np.eye(7))
    np.testing.assert_array_equal(of_y, np.full(7, np.inf))


def test_arguments_of_several_types() -> None:
    args = (X.astype(np.float32), 2.0, W[0])
    blocks = ft.jacfwd(lambda x, s, w: x * s + w, (0, 1, 2))(*args)
    for block, expected in zip(blocks, (2 * np.eye(7), X, np.eye(7)), strict=True):
        np.testing.assert_allclose(block, expected, rtol=1e-6)
    assert ArrayType((7,), np.dtype(np.float64)) == type_of(blocks[1])


# Hessians


def bending(x: Any, w: Any) -> Any:
    return np.tanh(w @ x)


def bends(x: Any) -> Any:
    """The second derivatives of `bending` along x: (4, 7, 7)."""
    inner = np.tanh(W @ x)
    return np.einsum("i,ij,ik->ijk", -2 * inner * (1 - inner**2), W, W)


@pytest.mark.parametrize("jit", JITS)
@pytest.mark.parametrize("chunk_size", [None, 3])
def test_hessian_of_an_array(jit: Any, chunk_size: int | None) -> None:
    found = jit(ft.hessian(lambda x: bending(x, W), chunk_size=chunk_size))(X)
    np.testing.assert_allclose(found, bends(X), rtol=1e-12)
    points = np.stack([X, 2 * X])
    mapped = jit(ft.vmap(ft.hessian(lambda x: bending(x, W), chunk_size=chunk_size)))(points)
    np.testing.assert_allclose(mapped, np.stack([*map(bends, points)]), rtol=1e-12)


def test_hessian_of_containers_of_results() -> None:
    def f(p: Any) -> Any:
        return {"bent": bending(p["x"], W), "energy": np.sum(p["x"] ** 2) * p["s"] ** 3, "linear": p["x"]}, p["s"] + 1

    found, aux = ft.hessian(f, has_aux=True)({"x": X, "s": 2.0})
    assert aux == 3.0
    np.testing.assert_allclose(found["bent"]["x"]["x"], bends(X), rtol=1e-12)
    assert not np.any(found["bent"]["x"]["s"])
    assert found["bent"]["s"]["x"].shape == found["bent"]["x"]["s"].shape == (4, 7)
    np.testing.assert_allclose(found["energy"]["x"]["x"], 16 * np.eye(7))
    np.testing.assert_allclose(found["energy"]["x"]["s"], 24 * X)
    np.testing.assert_allclose(found["energy"]["s"]["x"], 24 * X)
    np.testing.assert_allclose(found["energy"]["s"]["s"], 12 * np.sum(X**2))
    assert found["linear"]["x"]["x"].shape == (7, 7, 7)
    assert not np.any(found["linear"]["x"]["x"])


def test_hessian_agrees_with_jax() -> None:
    import jax

    def f(xp: Any, x: Any, y: Any) -> Any:
        return xp.outer(x, y) ** 2, xp.sum(xp.sin(x) * y[0])

    with jax.enable_x64(True):
        expected = jax.jit(jax.hessian(lambda x, y: f(jax.numpy, x, y), (0, 1)))(X, W[:, 0])
        expected = jax.tree.map(np.asarray, expected)
    found = ft.hessian(lambda x, y: f(np, x, y), (0, 1))(X, W[:, 0])
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-14)


def test_hessian_of_holomorphic_functions() -> None:
    z = X + 0.5j * X[::-1]
    found = ft.hessian(lambda z: z**3, holomorphic=True)(z)
    expected = np.zeros((7, 7, 7), complex)
    expected[range(7), range(7), range(7)] = 6 * z
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_many_products_with_a_hessian_evaluate_the_function_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return np.sum(np.tanh(W @ x) ** 2)

    expected = ft.hessian(f)(X)
    calls.clear()
    _, product = ft.linearize(ft.grad(f), X)
    vectors = np.random.default_rng(2).standard_normal((5, 7))
    np.testing.assert_allclose(ft.vmap(product)(vectors), vectors @ expected, rtol=1e-12)
    np.testing.assert_allclose([product(v) for v in vectors], vectors @ expected, rtol=1e-12)
    assert len(calls) == 1
    np.testing.assert_allclose(ft.vhp(f, (X,), (vectors[0],)), vectors[0] @ expected, rtol=1e-12)
    of_x, of_s = ft.vhp(lambda x, s: np.sum(x**2) * s, (X, 2.0), (X, 1.0))
    np.testing.assert_allclose(of_x, 4 * X + 2 * X)
    np.testing.assert_allclose(of_s, 2 * np.sum(X**2))


# Products with unit vectors


A = np.random.default_rng(3).standard_normal((60, 40))


def logistic(w: Any) -> Any:
    return np.sum(np.log1p(np.exp(-(A @ w[2:] + w[1])))) + np.sum(w[0] * w)


def logistic_bends(w: Any) -> Any:
    features = np.concatenate([np.zeros((60, 1)), np.ones((60, 1)), A], axis=1)
    p = 1 / (1 + np.exp(features @ w))
    expected = features.T @ ((p * (1 - p))[:, None] * features)
    expected[0] += 1.0
    expected[:, 0] += 1.0
    return expected


@pytest.mark.parametrize("jit", JITS)
def test_the_hessian_of_a_function_of_products_is_one_product(jit: Any) -> None:
    w = 0.1 * np.random.default_rng(4).standard_normal(42)
    np.testing.assert_allclose(jit(ft.hessian(logistic))(w), logistic_bends(w), rtol=1e-11, atol=1e-12)
    products = [eqn for eqn in program_of(ft.hessian(logistic), w).eqns if eqn.primitive.name == "dot_general"]
    assert [eqn.outputs[0].type.shape for eqn in products if eqn.outputs[0].type.size > 60] == [(42, 40)]


@pytest.mark.parametrize(
    "contract", ["ij,j->i", "ji,j->i", "ijk,k->ij", "jik,j->ik", "ijk,jk->i", "ikj,jk->i", "kij,jk->i"]
)
def test_a_product_with_unit_vectors_is_the_array(contract: str) -> None:
    shapes = {"i": 4, "j": 30, "k": 20}
    known, moving = contract.split("->")[0].split(",")
    array = np.random.default_rng(5).standard_normal([shapes[c] for c in known])
    x = np.random.default_rng(6).standard_normal([shapes[c] for c in moving])
    out = contract.split("->")[1]
    found = ft.jacfwd(lambda x: np.einsum(contract, array, x))(x)
    np.testing.assert_array_equal(found, np.einsum(f"{known}->{out}{moving}", array))
    array[(0,) * array.ndim] = np.inf
    assert np.isinf(ft.jacfwd(lambda x: np.einsum(contract, array, x))(x)).sum() == 1


def network(rows: int, hidden: int) -> tuple[Callable[[Any], Any], Any]:
    """The loss of a network on that many rows of data, and its parameters."""
    inputs = np.random.default_rng(7).standard_normal((rows, 16))

    def loss(p: Any) -> Any:
        first, second = p[: 16 * hidden].reshape(16, hidden), p[16 * hidden :].reshape(hidden, 16)
        return np.sum(np.tanh(inputs @ first) @ second) ** 2

    return loss, 0.1 * np.random.default_rng(8).standard_normal(32 * hidden)


def test_a_hessian_of_many_elements_is_computed_in_chunks_that_stay_in_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loops(h: Any, p: Any) -> int:
        return [eqn.primitive.name for eqn in program_of(h, p).eqns].count("scan")

    loss, p = network(128, 32)
    # Two: the weights of the second layer need not run through the first one.
    assert [loops(ft.hessian(loss), p), loops(ft.hessian(loss, chunk_size=1024), p)] == [2, 0]
    # The numbers are compared for a smaller network and a smaller cache.
    for name, value in {"_FEW": 32, "_MANY_BYTES": 2**12, "_CACHED_BYTES": 2**14}.items():
        monkeypatch.setattr(dense, name, value)
    loss, p = network(12, 5)
    assert loops(ft.hessian(loss), p) == 2
    for f in (ft.hessian(loss), ft.jit(ft.hessian(loss))):
        np.testing.assert_allclose(f(p) @ p, ft.hvp(loss, (p,), (p,)), rtol=1e-9, atol=1e-9)


INPUTS = np.random.default_rng(12).standard_normal((200, 8))


def layers(p: Any) -> Any:
    """A loss whose parameters are named in another order than they are used in, and its penalty as a further result."""
    x = np.tanh(INPUTS @ p["z"].reshape(8, 32) + p["both"][:32])
    x = np.tanh(x @ p["a"].T + p["both"][32:])
    penalty = np.sum(p["both"] ** 2 * p["scale"]) + np.sum(p["z"][3:5]) * p["unused"][:0].sum()
    return np.sum(x**2) + penalty, penalty


def parameters() -> Any:
    shapes = {"z": (256,), "both": (42,), "a": (10, 32), "scale": (), "unused": (2,)}
    random = np.random.default_rng(13)
    return {name: 0.3 * random.standard_normal(shape) for name, shape in shapes.items()}


def loops_of(f: Callable[..., Any], p: dict[str, Any]) -> int:
    program = program_of(lambda *xs: f(dict(zip(p, xs, strict=True))), *p.values())
    return [eqn.primitive.name for eqn in program.eqns].count("scan")


@pytest.mark.parametrize("jit", JITS)
def test_the_hessian_of_layers_is_one_triangle_and_its_mirror_image(jit: Any) -> None:
    p = parameters()
    program = program_of(lambda *xs: layers(dict(zip(p, xs, strict=True))), *p.values())
    active = tuple(i < len(p) for i in range(len(program.inputs)))
    assert hessian_by_triangle(program, active, chunk=64) is not None
    found, aux = jit(ft.hessian(layers, has_aux=True))(p)
    expected = ft.jacfwd(ft.grad(lambda p: layers(p)[0]))(p)
    np.testing.assert_allclose(aux, layers(p)[1], rtol=1e-13)
    for a in p:
        for b in p:
            assert found[a][b].shape == p[a].shape + p[b].shape
            np.testing.assert_allclose(found[a][b], expected[a][b], rtol=1e-9, atol=1e-11)


def one_vector(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A loss of two layers around a function, with all parameters in one vector."""

    def loss(p: Any) -> Any:
        return np.sum(inner(INPUTS @ p["p"][:256].reshape(8, 32)) @ p["p"][256:].reshape(32, 10) * INPUTS[:, :1]) ** 2

    return loss


def test_no_triangle_stands_for_a_matrix_that_may_not_be_symmetric() -> None:
    @ft.custom_jvp
    def stated(x: Any) -> Any:
        return np.tanh(x)

    stated.defjvp(lambda primals, tangents: (np.tanh(primals[0]), np.flip(tangents[0], 0) * primals[0]))
    p = {"p": 0.1 * np.random.default_rng(14).standard_normal(576)}
    assert loops_of(ft.hessian(one_vector(np.tanh)), p) > 1
    assert loops_of(ft.hessian(one_vector(stated)), p) == 1
    # The slope of a square root may be infinite.
    assert loops_of(ft.hessian(one_vector(lambda x: np.sqrt(x * x + 1.0))), p) == 1
    found = ft.hessian(one_vector(stated))(p)["p"]["p"]
    np.testing.assert_allclose(found, ft.jacfwd(ft.grad(one_vector(stated)))(p)["p"]["p"], rtol=1e-9, atol=1e-9)
    assert not np.allclose(found, found.T, rtol=1e-3)


@pytest.mark.parametrize("method", ["forward", "reverse", "bidirectional", "elimination", "dense"])
def test_an_infinite_slope_stays_out_of_other_blocks(method: Any) -> None:
    x, y = np.array([0.0, 1.0, 4.0]), np.array([2.0, 3.0, 5.0])
    s = ft.sparse_jacobian(lambda x, y: (np.sqrt(x) * y, 3 * x), (0, 1), method=method)
    with np.errstate(divide="ignore", invalid="ignore"):
        (root_x, root_y), (line_x, line_y) = s(x, y)
    np.testing.assert_array_equal(root_x.toarray(), np.diag([np.inf, 1.5, 1.25]))
    np.testing.assert_array_equal(root_y.toarray(), np.diag([0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(line_x.toarray(), 3 * np.eye(3))
    np.testing.assert_array_equal(line_y.toarray(), np.zeros((3, 3)))


# Large matrices with few entries

SIZE = 460


def chain(x: Any, y: Any, s: float = 1.0) -> Any:
    """Each result depends on two neighbours in x and one element of y."""
    return {"ends": np.sin(x[1:]) * y[:-1] - s * x[:-1] ** 3, "squares": (y * y).reshape(2, -1)}


def chain_slopes(x: Any, y: Any) -> dict[str, tuple[Any, Any]]:
    of_x, of_y = np.zeros((2, x.size - 1, x.size))
    at = np.arange(x.size - 1)
    of_x[at, at], of_x[at, at + 1], of_y[at, at] = -3 * x[:-1] ** 2, np.cos(x[1:]) * y[:-1], np.sin(x[1:])
    squares = np.diag(2 * y).reshape(2, -1, y.size)
    return {"ends": (of_x, of_y), "squares": (np.zeros((2, y.size // 2, x.size)), squares)}


def is_by_entries(f: Callable[..., Any], *args: Any) -> bool:
    return any(eqn.primitive.name == "scatter_add" for eqn in program_of(f, *args).eqns)


@pytest.mark.parametrize("jit", JITS)
def test_a_large_jacobian_with_few_entries_is_made_of_these(jit: Any) -> None:
    x, y = np.random.default_rng(9).standard_normal((2, SIZE))
    f = ft.value_and_jacobian(lambda x, y: (chain(x, y), y), (0, 1), has_aux=True)
    (value, aux), found = jit(f)(x, y)
    np.testing.assert_array_equal(aux, y)
    for name, blocks in chain_slopes(x, y).items():
        np.testing.assert_allclose(value[name], chain(x, y)[name])
        for mine, expected in zip(found[name], blocks, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-13)


def test_the_way_to_a_jacobian_is_chosen_by_size_and_structure() -> None:
    x = np.linspace(0.1, 1.0, SIZE)
    weights = np.cos(np.outer(x, x))

    def f(x: Any) -> Any:
        return x[::-1] * np.exp(x)

    assert is_by_entries(ft.jacobian(f), x)
    assert not is_by_entries(ft.jacobian(f), x[:20])
    assert not is_by_entries(ft.jacobian(f, mode="forward"), x)
    assert not is_by_entries(ft.jacobian(f, mode="reverse"), x)
    assert not is_by_entries(ft.jacobian(f, chunk_size=100), x)
    assert not is_by_entries(ft.jacobian(lambda x: np.tanh(weights @ x)), x)
    assert not is_by_entries(ft.jacobian(lambda x: np.cumsum(x) * x), x)
    np.testing.assert_allclose(
        ft.jacobian(lambda x: np.cumsum(x) * x)(x), np.tri(SIZE) * x[:, None] + np.diag(x.cumsum())
    )


@pytest.mark.parametrize("jit", JITS)
def test_derivatives_of_a_jacobian_made_of_entries(jit: Any) -> None:
    x = np.linspace(0.1, 1.0, SIZE)
    weights = np.random.default_rng(10).standard_normal((SIZE, SIZE))

    def f(x: Any) -> Any:
        return x[::-1] * np.exp(x)

    slopes = jit(ft.grad(lambda x: np.sum(weights * ft.jacobian(f)(x))))(x)
    expected = np.exp(x) * (np.diag(weights) * x[::-1] + np.diag(weights[:, ::-1]))
    expected += (np.exp(x) * np.diag(weights))[::-1]
    np.testing.assert_allclose(slopes, expected, rtol=1e-12)
    mapped = jit(ft.vmap(ft.jacobian(f)))(np.stack([x, -x]))
    np.testing.assert_allclose(mapped, np.stack([ft.jacfwd(f)(x), ft.jacfwd(f)(-x)]), rtol=1e-13)


@pytest.mark.parametrize("jit", JITS)
def test_infinite_slopes_in_a_jacobian_made_of_entries(jit: Any) -> None:
    x = np.linspace(0.0, 1.0, SIZE)

    def f(x: Any) -> Any:
        return np.sqrt(x) + x[::-1]

    assert is_by_entries(ft.jacobian(f), x)
    with np.errstate(divide="ignore"):
        found, expected = jit(ft.jacobian(f))(x), 0.5 / np.sqrt(x)
    assert np.isinf(found[0, 0])
    np.testing.assert_allclose(found, np.diag(expected) + np.eye(SIZE)[::-1], rtol=1e-12)


@pytest.mark.parametrize("jit", JITS)
def test_slopes_that_are_infinite_where_they_are_not_chosen(jit: Any) -> None:
    x = np.linspace(0.0, 1.0, SIZE)
    indices = np.minimum(np.arange(SIZE) + 1, SIZE - 1)

    def f(x: Any) -> Any:
        return np.sum((1 / x)[indices]) + np.sum(np.where(x > 0.5, np.log(x), 0.0))

    expected = np.zeros(SIZE)
    np.add.at(expected, indices, 2 / x[indices] ** 3)
    expected[x > 0.5] -= 1 / x[x > 0.5] ** 2
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(jit(ft.hessian(f))(x), np.diag(expected), rtol=1e-12)


@pytest.mark.parametrize("jit", JITS)
def test_a_large_hessian_with_few_entries_is_made_of_these(jit: Any) -> None:
    x = np.random.default_rng(11).standard_normal(SIZE)

    def rosenbrock(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), x[0]

    expected = np.diag(np.append(1200 * x[:-1] ** 2 - 400 * x[1:] + 2, 0) + np.append(0, np.full(SIZE - 1, 200.0)))
    at = np.arange(SIZE - 1)
    expected[at, at + 1] = expected[at + 1, at] = -400 * x[:-1]
    h = ft.hessian(rosenbrock, has_aux=True)
    assert is_by_entries(h, x)
    found, aux = jit(h)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert aux == x[0]
    assert not is_by_entries(ft.hessian(lambda x: np.sum(x**3)), x[:20])
    assert not is_by_entries(ft.hessian(lambda x: np.sum(x) ** 3), x)


def test_a_large_hessian_of_a_stated_derivative_need_not_be_symmetric() -> None:
    @ft.custom_jvp
    def product(x: Any, y: Any) -> Any:
        return x * y

    product.defjvp(lambda primals, tangents: (primals[0] * primals[1], tangents[0] * primals[1] * 3.0))
    x = np.linspace(0.5, 1.0, SIZE)
    found = ft.hessian(lambda x: np.sum(product(x, x[::-1])))(x)
    np.testing.assert_allclose(found, 3 * np.eye(SIZE)[::-1])
