"""Laplacians, diagonals of Hessians, divergences, curls: against Hessians and Jacobians, and against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import tables
from random_programs import random_arguments, random_program
from samples import SAMPLES
from sampling import Sample, dependence
from tables import covering, in_chunks, naming
from test_finite import GROUPS

import ftrans as ft
from ftrans.core.interpret import inline
from ftrans.core.program import Program, literal
from ftrans.core.trace import Builder, Tracer, building
from ftrans.core.types import ArrayType, is_complex, is_inexact
from ftrans.ops.broadcast import broadcast, reduce_sum
from ftrans.ops.elementwise import add, mul, sub
from ftrans.run.evaluate import evaluate
from ftrans.structure.laplacian import laplacian as structure
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.jvp import jvp

rng = np.random.default_rng(0)
W1, B1, W2 = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=(6, 6))
POINTS = rng.normal(size=(5, 3))
VECTOR = rng.normal(size=4)
MATRIX = rng.normal(size=(3, 3)) + 3 * np.eye(3)


class Row(NamedTuple):
    """A function of one array, and a point where it has second derivatives."""

    name: str
    f: Callable[[Any], Any]
    x: Any


@ft.custom_jvp
def doubled_sine(x: Any) -> Any:
    return np.sin(x)


@doubled_sine.defjvp
def _doubled_sine_jvp(primals: Any, tangents: Any) -> Any:
    return doubled_sine(primals[0]), 2 * np.cos(primals[0]) * tangents[0]


def network(x: Any) -> Any:
    return np.sum(np.tanh(np.tanh(x @ W1 + B1) @ W2) @ W2[:, 0])


def coulomb(x: Any) -> Any:
    d = x[:, None, :] - x[None, :, :]
    eye = np.eye(len(x))
    return np.sum(np.where(eye > 0, 0.0, 1 / np.sqrt(np.sum(d * d, -1) + eye)))


FIRSTS, SECONDS = np.triu_indices(5, 1)


def pairs(x: Any) -> Any:
    d = x[FIRSTS] - x[SECONDS]
    return np.sum(np.exp(-np.sqrt(np.sum(d * d, -1))))


def chain(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def looped(x: Any) -> Any:
    return ft.fori_loop(0, 3, lambda i, c: np.sin(c) * x.sum() + c * x, x).sum()


def scanned(x: Any) -> Any:
    carry, ys = ft.scan(lambda c, a: (np.sin(c + a) * a, c * a), x[0], x)
    return carry * np.sum(ys)


def while_below(x: Any) -> Any:
    return ft.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sin(s[1]) * s[1].sum()), (0, x))[1].sum()


FUNCTIONS = [
    Row("squares", lambda x: np.sum(x**2), VECTOR),
    Row("linear", lambda x: np.sum(3 * x), VECTOR),
    Row("constant", lambda x: 1.0, VECTOR),
    Row("a number", lambda x: np.sin(x) * x, 0.3),
    Row("elementwise chain", lambda x: np.sum(np.log1p(np.exp(np.sin(x) / (1 + x * x)))), VECTOR),
    Row("powers", lambda x: np.sum(np.abs(x) ** 2.5 + x**3 - x**-2.0), VECTOR),
    Row("two arguments of a function", lambda x: np.arctan2(x[0], x[1]) * np.hypot(x[2], x[3]), VECTOR),
    Row("logsumexp", lambda x: np.log(np.sum(np.exp(2 * x))), VECTOR),
    Row("product", np.prod, VECTOR),
    Row("cumulative sum", lambda x: np.prod(np.cumsum(x) ** 2), VECTOR),
    Row("outer product", lambda x: np.sum(np.sin(np.outer(x, x))), VECTOR),
    Row("outer product, summed over one axis", lambda x: np.sum(np.sin(np.outer(x, x).sum(0))), VECTOR),
    Row("outer product times a matrix", lambda x: np.sum(np.sin(np.outer(x, x) @ W1)), VECTOR),
    Row("reversed", lambda x: np.sum(x[::-1] * x**2), VECTOR),
    Row("joined", lambda x: np.sum(np.concatenate([x, x[:2] ** 2, np.ones(3)]) ** 3), VECTOR),
    Row("padded", lambda x: np.sum(np.pad(x, (1, 2))[:-1] * np.pad(x, (2, 1))[1:]), VECTOR),
    Row("indexed", lambda x: np.sum(x[np.array([0, 2, 2])] ** 3 * x[1]), VECTOR),
    Row("assigned", lambda x: np.sum(_assigned(x) ** 3), VECTOR),
    Row("sorted", lambda x: np.max(x) * np.sum(np.sort(x)[:2] ** 3), VECTOR),
    Row("network", network, VECTOR),
    Row("network of particles", lambda x: np.sum(np.tanh(np.tanh(x @ W1[:3]) @ W2) ** 2), POINTS),
    Row("network of scaled inputs", lambda x: network((x - 1) / VECTOR), VECTOR + 2),
    Row("particles", coulomb, POINTS),
    Row("pairs of particles", pairs, POINTS),
    Row("log of a sum over particles", lambda x: np.log(5 + coulomb(x) ** 2), POINTS),
    Row("differences of neighbours", chain, VECTOR),
    Row("exponential of a chain", lambda x: np.exp(-chain(x) / 100), VECTOR),
    Row("quadratic form", lambda x: np.einsum("i,ij,j,i->", x, W2[:4, :4], x, x), VECTOR),
    Row("determinant and inverse", lambda x: np.linalg.det(x) * np.sum(np.linalg.inv(x)), MATRIX),
    Row("solution", lambda x: np.sum(np.linalg.solve(4 * np.eye(4) + np.outer(x, x), x**2)), VECTOR),
    Row("eigenvalues", lambda x: np.sum(np.linalg.eigvalsh(x @ x.T) ** 1.5), MATRIX),
    Row("norm", lambda x: np.linalg.norm(x - 1), VECTOR),
    Row("Fourier transform", lambda x: np.sum(np.abs(np.fft.fft(x**2)) ** 2), VECTOR),
    Row("masked square root", lambda x: np.sum(np.sqrt(np.where(x > 1, x - 1, 0))), np.array([0.0, 1.0, 2.0, 3.0])),
    Row("square of a norm at 0", lambda x: np.linalg.norm(x) ** 2, np.zeros(3)),
    Row("loop", looped, VECTOR),
    Row("scan", scanned, VECTOR),
    Row("while", while_below, VECTOR),
    Row("cond", lambda x: ft.cond(x[0] > 0, lambda x: np.sum(x**3), lambda x: np.prod(np.sin(x)), x), VECTOR),
    Row("checkpoint", lambda x: ft.checkpoint(network)(x) ** 2, VECTOR),
    Row("jitted", lambda x: np.sin(ft.jit(network)(x)) * x[0], VECTOR),
    Row("custom_jvp", lambda x: np.prod(doubled_sine(x * x)), VECTOR),
    Row("root", lambda x: ft.root(lambda y: y**3 + y - np.sum(x**2), 0.5) * x[0], VECTOR),
    Row("float32", lambda x: network(x.astype(np.float64)), VECTOR.astype(np.float32)),
]


def _assigned(x: Any) -> Any:
    y = np.zeros(6) + x[0]
    y[1:5] = x * x
    y[2] += x[3]
    return y


def hessian(row: Row) -> Any:
    size = np.size(row.x)
    return np.asarray(ft.hessian(row.f)(row.x)).reshape(size, size)


@pytest.mark.parametrize("row", FUNCTIONS, ids=[row.name for row in FUNCTIONS])
def test_second_derivatives(row: Row) -> None:
    diagonal = np.diag(hessian(row))
    close = {"rtol": 1e-4 if row.name == "float32" else 1e-9, "atol": 1e-9 * max(1, np.abs(diagonal).max())}
    np.testing.assert_allclose(ft.laplacian(row.f)(row.x), diagonal.sum(), **close)
    np.testing.assert_allclose(np.ravel(ft.hessian_diagonal(row.f)(row.x)), diagonal, **close)
    np.testing.assert_allclose(ft.divergence(ft.grad(row.f))(row.x), diagonal.sum(), **close)
    assert ft.laplacian(row.f)(row.x).dtype == np.asarray(row.f(row.x)).dtype
    assert np.shape(ft.hessian_diagonal(row.f)(row.x)) == np.shape(row.x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("group", GROUPS)
def test_finite_where_the_hessian_is(group: str) -> None:
    for row in GROUPS[group]:
        if row.hessian is None:
            continue
        x = np.asarray(row.x, float)[()]
        diagonal = np.diag(np.asarray(row.hessian, float)) if np.ndim(x) else np.asarray(row.hessian, float)
        scale = np.max(np.abs(diagonal), initial=0.0, where=np.isfinite(diagonal))
        close = {"rtol": 1e-10, "atol": 1e-12 * scale, "err_msg": row.name}
        np.testing.assert_allclose(ft.hessian_diagonal(row.f)(x), diagonal, **close)
        np.testing.assert_allclose(ft.laplacian(row.f)(x), np.sum(diagonal), **close)


# Programs, against forward mode twice along one unit vector after another


def second_derivatives(program: Program, active: tuple[bool, ...], args: list[Any]) -> list[Any]:
    """Second derivatives of each output, stacked along axis 0 over the elements of the active inputs."""
    width, count = sum(active), len(program.outputs)
    first = jvp(program, active, wanted=(True,) * count)
    second = jvp(first.program, active + (False,) * width, wanted=(True,) * (2 * count))
    leaves = [x for x, a in zip(args, active, strict=True) if a]
    found = []
    for i, x in enumerate(leaves):
        for k in range(np.size(x)):
            unit = [np.zeros(np.shape(y), np.asarray(y).dtype) for y in leaves]
            unit[i].reshape(-1)[k] = 1
            found.append(evaluate(second.program, [*args, *unit, *unit])[3 * count :])
    return [np.stack(rows) for rows in zip(*found, strict=True)]


def check_program(program: Program, active: tuple[bool, ...], args: list[Any], tolerance: float = 1e-9) -> None:
    """Laplacians and diagonals of Hessians of all outputs of a program."""
    count = len(program.outputs)
    wanted = second_derivatives(program, active, args)
    values, found = evaluate(program, args), evaluate(structure.laplacian(program, active, count, {}), args)
    diagonals = evaluate(structure.hessian_diagonal(program, active, count, {}), args)[count:]
    width = sum(active)
    for j, rows in enumerate(wanted):
        close = {"rtol": tolerance, "atol": tolerance * np.max(np.abs(rows), initial=1.0)}
        np.testing.assert_allclose(found[j], values[j], **close)
        np.testing.assert_allclose(found[count + j], rows.sum(0), **close)
        blocks = [np.reshape(y, (*rows.shape[1:], -1)) for y in diagonals[j * width : (j + 1) * width]]
        np.testing.assert_allclose(np.moveaxis(np.concatenate(blocks, axis=-1), -1, 0), rows, **close)


@in_chunks(12, seeds=range(24 if tables.whole else 12))
def test_random_programs(seeds: list[int]) -> None:
    for seed in seeds:
        program, args = random_program(seed), random_arguments(seed)
        check_program(program, (True, True), args)
        gradients = gradient(program, (True, True), with_value=False)
        field = Program("field", gradients.inputs, gradients.eqns, [*gradients.outputs[1:], gradients.outputs[0]])
        found = evaluate(structure.divergence(field, (True, True), {}), args)[-1]
        np.testing.assert_allclose(found, second_derivatives(program, (True, True), args)[0].sum(), rtol=1e-9)


def is_smooth(sample: Sample) -> bool:
    """Whether a row of the table of primitives has real directions and derivatives that are accurate."""
    types = [*sample.types, *sample.out_types]
    return (
        sample.smooth
        and any(sample.active)
        and all(t.dtype.itemsize >= 8 for t in types if is_inexact(t.dtype))
        and not any(is_complex(t.dtype) for t, a in zip(sample.types, sample.active, strict=True) if a)
        and 0 < sum(t.size for t, a in zip(sample.types, sample.active, strict=True) if a) <= 24
        and any(is_inexact(t.dtype) for t in sample.out_types)
    )


def curved(sample: Sample, operands: list[Any]) -> Program:
    """The sum of squares of results, as a function of what its operands depend on, all on all and with curvature."""
    rng = np.random.default_rng(0)
    inner = sample.program()
    builder = Builder(inner.in_types)

    def fixed(value: Any, like: Tracer) -> Tracer:
        return Tracer(builder, literal(np.asarray(value, like.dtype), like.type))

    with building(builder):
        inputs = builder.inputs()
        dtype = next(x.dtype for x, a in zip(inputs, sample.active, strict=True) if a)
        changes = [a and x.dtype == dtype for x, a in zip(inputs, sample.active, strict=True)]
        total = Tracer(builder, literal(0, ArrayType((), dtype)))
        for x, value, is_changed in zip(inputs, operands, changes, strict=True):
            if is_changed:
                # Zero at the operands, so that these stay where derivatives exist.
                moved = mul(sub(x, fixed(value, x)), fixed(rng.normal(size=x.shape), x))
                total = add(total, reduce_sum(moved, axes=tuple(range(x.ndim))))
        bent = add(total, mul(total, total))
        given = [
            add(x, mul(broadcast(bent, shape=x.shape, dims=()), fixed(rng.normal(size=x.shape) / 4, x))) if c else x
            for x, c in zip(inputs, changes, strict=True)
        ]
        outs = [y for y in inline(inner, given) if is_inexact(y.dtype)]
        sums = [reduce_sum(mul(mul(y, y), fixed(rng.normal(size=y.shape), y)), axes=tuple(range(y.ndim))) for y in outs]
        return builder.finish([*outs, *sums], "curved")


SMOOTH = covering(covering([s for s in SAMPLES if is_smooth(s)], lambda s: s.primitive.name), dependence, times=2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@in_chunks(40, samples=SMOOTH)
def test_every_primitive(samples: list[Sample]) -> None:
    for sample in samples:
        operands = sample.draw()
        with naming(sample):
            check_program(curved(sample, operands), sample.active, operands, 1e-7)


# Results and arguments of any form


def test_results_of_any_shape() -> None:
    def f(x: Any) -> Any:
        return {"wave": np.exp(1j * (W1.T @ x)), "values": [np.sin(x), x[0] * x[1], x]}

    found = ft.laplacian(f)(VECTOR)
    wave = -np.sum(W1**2, axis=0) * np.exp(1j * (W1.T @ VECTOR))
    np.testing.assert_allclose(found["wave"], wave, rtol=1e-12)
    np.testing.assert_allclose(found["values"][0], -np.sin(VECTOR))
    assert found["values"][1] == 0
    np.testing.assert_array_equal(found["values"][2], np.zeros(4))
    diagonal = ft.hessian_diagonal(f)(VECTOR)
    np.testing.assert_allclose(diagonal["wave"], -((W1.T) ** 2) * f(VECTOR)["wave"][:, None], rtol=1e-12)
    np.testing.assert_allclose(diagonal["values"][0], np.diag(-np.sin(VECTOR)))


def test_containers_and_several_arguments() -> None:
    def f(p: Any, scale: Any, q: Any) -> Any:
        return scale * np.sum(np.sin(p["a"])) * np.prod(p["b"] ** 2) * q**3

    p, q = {"a": POINTS[:2], "b": VECTOR}, np.array(1.5)
    hessian = ft.hessian(f, (0, 2))(p, 2.0, q)
    trace = np.einsum("ijij", hessian[0]["a"][0]["a"]) + np.trace(hessian[0]["b"][0]["b"]) + hessian[1][1]
    np.testing.assert_allclose(ft.laplacian(f, (0, 2))(p, 2.0, q), trace)
    diagonal, last = ft.hessian_diagonal(f, (0, 2))(p, 2.0, q)
    np.testing.assert_allclose(diagonal["a"], np.einsum("ijij->ij", hessian[0]["a"][0]["a"]))
    np.testing.assert_allclose(diagonal["b"], np.diag(hessian[0]["b"][0]["b"]))
    np.testing.assert_allclose(last, hessian[1][1])
    gradient = ft.grad(f, (0, 2))
    np.testing.assert_allclose(
        ft.divergence(lambda x: gradient(x[0], 2.0, x[1]))((p, q)), trace, err_msg="divergence of a gradient"
    )


def test_auxiliary_results() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**3), {"norm": np.linalg.norm(x), "word": "kept"}

    for transformed in (ft.laplacian, ft.hessian_diagonal):
        found, aux = transformed(f, has_aux=True)(VECTOR)
        np.testing.assert_allclose(np.sum(found), 6 * VECTOR.sum())
        assert aux == {"norm": np.linalg.norm(VECTOR), "word": "kept"}


def gaussian(x: Any, width: Any) -> Any:
    return np.exp(-np.sum(x * x) / (2 * width))


def laplacian_of_gaussian(x: Any, width: Any) -> Any:
    return (np.sum(x * x) / width**2 - x.size / width) * gaussian(x, width)


def test_transformed_further() -> None:
    f = ft.laplacian(gaussian)
    points = np.stack([VECTOR, 2 * VECTOR, -VECTOR])
    mapped = ft.vmap(f, in_axes=(0, None))
    wanted = [laplacian_of_gaussian(x, 0.7) for x in points]
    np.testing.assert_allclose(mapped(points, 0.7), wanted)
    np.testing.assert_allclose(ft.jit(mapped)(points, 0.7), wanted)
    np.testing.assert_allclose(ft.grad(f, 1)(VECTOR, 0.7), ft.grad(laplacian_of_gaussian, 1)(VECTOR, 0.7), rtol=1e-12)
    np.testing.assert_allclose(ft.hessian(f)(VECTOR, 0.7), ft.hessian(laplacian_of_gaussian)(VECTOR, 0.7), rtol=1e-11)
    np.testing.assert_allclose(
        ft.jit(ft.grad(lambda w: np.mean(mapped(points, w) ** 2)))(0.7),
        ft.grad(lambda w: np.mean(np.stack([laplacian_of_gaussian(x, w) for x in points]) ** 2))(0.7),
    )
    twice = ft.laplacian(ft.laplacian(lambda x: np.sum(x**2) ** 3))
    np.testing.assert_allclose(twice(VECTOR), 6 * 8 * 4 * 6 * np.sum(VECTOR**2), err_msg="6 (d + 4) 4 (d + 2) |x|^2")


def test_grows_with_dependence_not_with_the_number_of_elements() -> None:
    x = np.linspace(-1, 1, 100_000)
    np.testing.assert_allclose(ft.laplacian(lambda x: np.sum(np.exp(np.sin(x))))(x), _of_exp_sin(x).sum())
    np.testing.assert_allclose(ft.hessian_diagonal(lambda x: np.sum(np.exp(np.sin(x))))(x), _of_exp_sin(x))
    inner, step = np.full(99_999, 200.0), 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    diagonal = np.concatenate([step, [0]]) + np.concatenate([[0], inner])
    np.testing.assert_allclose(ft.hessian_diagonal(chain)(x), diagonal, atol=1e-9)
    np.testing.assert_allclose(ft.laplacian(chain)(x), diagonal.sum())


def test_stencils() -> None:
    def f(u: Any) -> Any:
        padded = np.pad(u, 1)
        around = [(1 + i + 2 * j) * padded[i : i + 60, j : j + 60] for i in range(3) for j in range(3)]
        return np.sum(np.sin(sum(around)))

    u = np.random.default_rng(2).normal(size=(60, 60))
    program = ft.trace(ft.hessian_diagonal(f))(u)
    assert max(v.type.size for eqn in program.eqns for v in eqn.outputs) < 10 * u.size
    weights = [(i, j, 1 + i + 2 * j) for i in range(3) for j in range(3)]
    padded = np.pad(u, 1)
    curvature = np.pad(-np.sin(sum(w * padded[i : i + 60, j : j + 60] for i, j, w in weights)), 1)
    wanted = sum(w**2 * curvature[2 - i : 62 - i, 2 - j : 62 - j] for i, j, w in weights)
    np.testing.assert_allclose(ft.hessian_diagonal(f)(u), wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ft.laplacian(f)(u), wanted.sum())


def test_captured_indices_say_which_elements_depend_on_which() -> None:
    x = np.random.default_rng(1).normal(size=(40, 3))
    indices = np.triu_indices(40, 1)

    def f(x: Any) -> Any:
        d = x[indices[0]] - x[indices[1]]
        return np.sum(np.exp(-np.sum(d * d, -1)))

    found = ft.laplacian(f)(x)
    program = ft.trace(ft.laplacian(f))(x)
    assert max(v.type.size for eqn in program.eqns for v in eqn.outputs) <= 3 * 780
    d2 = np.sum((x[indices[0]] - x[indices[1]]) ** 2, -1)
    np.testing.assert_allclose(found, np.sum((8 * d2 - 12) * np.exp(-d2)))
    np.testing.assert_allclose(ft.jit(ft.laplacian(f))(x), found)


@pytest.mark.parametrize("shift", range(7))
def test_indices_that_change(shift: int) -> None:
    place = np.array([shift % 4, (1 + 3 * shift) % 4])
    wanted = 2 * np.eye(4)[place]
    np.testing.assert_allclose(of_squares(place)(VECTOR), wanted)


def of_squares(place: Any) -> Any:
    return ft.hessian_diagonal(lambda x: x[place] ** 2)


def _of_exp_sin(x: Any) -> Any:
    return (np.cos(x) ** 2 - np.sin(x)) * np.exp(np.sin(x))


def test_first_product_is_the_matrix() -> None:
    program = ft.trace(ft.laplacian(network))(VECTOR)
    products = [eqn for eqn in program.eqns if eqn.primitive.name == "dot_general"]
    rows = [eqn for eqn in products if eqn.operands[0].type.shape == (4, 6)]
    # The values and the rows of the second layer, and its Laplacian and that of the result.
    assert len(products) == 5
    assert len(rows) == 1


def test_of_a_jitted_function_is_compiled() -> None:
    program = ft.trace(ft.laplacian(ft.jit(network)))(VECTOR)
    assert [eqn.primitive.name for eqn in program.eqns] == ["call"]
    np.testing.assert_allclose(ft.laplacian(ft.jit(network))(VECTOR), ft.laplacian(network)(VECTOR))


# Fields


def test_divergence_and_curl() -> None:
    def f(x: Any) -> Any:
        return np.stack([x[1] * x[2] ** 2, np.sin(x[0]) * x[1], np.exp(x[0]) + x[1] * x[2]])

    x, y, z = point = np.array([0.3, -0.7, 1.2])
    np.testing.assert_allclose(ft.divergence(f)(point), np.sin(x) + y)
    np.testing.assert_allclose(ft.curl(f)(point), [z, 2 * y * z - np.exp(x), np.cos(x) * y - z**2])
    np.testing.assert_allclose(ft.curl(lambda x: np.stack([-x[1], x[0] * x[1]]))(point[:2]), y + 1)
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.curl(f)))(np.stack([point, point]))[1], ft.curl(f)(point))
    np.testing.assert_allclose(ft.divergence(lambda x: np.tanh(x @ W2[:3, :3]) @ W2[:3, 3:])(point), _divergence(point))


def test_divergence_of_other_types() -> None:
    x, y = VECTOR, VECTOR[:2].astype(np.float32)
    for options in ({}, {"estimator": "hutchinson", "samples": 2}):
        wave = ft.divergence(lambda x: 1j * x**2, **options)(x)
        np.testing.assert_allclose(wave, 2j * x.sum())
        both = ft.divergence(lambda p: (p[0] ** 2, p[1] ** 3), **options)((x, y))
        np.testing.assert_allclose(both, 2 * x.sum() + 3 * np.sum(y**2), rtol=1e-6)
        assert both.dtype == np.float64


def _divergence(x: Any) -> Any:
    return np.trace(ft.jacobian(lambda x: np.tanh(x @ W2[:3, :3]) @ W2[:3, 3:])(x))


# The estimator


def test_estimates_are_exact_where_the_hessian_is_diagonal() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(x))

    options = {"estimator": "hutchinson", "seed": 3}
    np.testing.assert_allclose(ft.laplacian(f, **options)(VECTOR), np.exp(VECTOR).sum())
    np.testing.assert_allclose(ft.hessian_diagonal(f, **options)(VECTOR), np.exp(VECTOR))
    np.testing.assert_allclose(ft.divergence(np.exp, **options)(VECTOR), np.exp(VECTOR).sum())


def test_estimates_approach_the_exact_values() -> None:
    options = {"estimator": "hutchinson", "samples": 4000}
    spread = np.linalg.norm(ft.hessian(network)(VECTOR)) / np.sqrt(4000)
    exact = ft.laplacian(network)(VECTOR)
    assert abs(ft.laplacian(network, **options)(VECTOR) - exact) < 6 * spread
    assert abs(ft.divergence(ft.grad(network), **options)(VECTOR) - exact) < 6 * spread
    error = ft.hessian_diagonal(network, **options)(VECTOR) - ft.hessian_diagonal(network)(VECTOR)
    assert np.all(np.abs(error) < 6 * spread)


def test_seeds() -> None:
    def estimate(seed: Any) -> Any:
        return ft.laplacian(network, estimator="hutchinson", seed=seed)(VECTOR)

    assert estimate(1) == estimate(1) == estimate(np.uint8(1))
    assert len({float(estimate(seed)) for seed in range(8)}) > 1
    np.testing.assert_allclose(ft.jit(estimate)(5), estimate(5))
    np.testing.assert_allclose(ft.vmap(estimate)(np.arange(3)), [estimate(i) for i in range(3)])
    directions = ft.vmap(lambda s: ft.hessian_diagonal(lambda x: x @ x[::-1], estimator="hutchinson", seed=s)(VECTOR))
    assert set(np.unique(directions(np.arange(20)))) == {-2.0, 2.0}


# Refused


def test_refused() -> None:
    with pytest.raises(TypeError, match=r"sums over real directions.*real and the imaginary part"):
        ft.laplacian(lambda z: np.sum(z**2).real)(VECTOR + 1j)
    with pytest.raises(TypeError, match=r"needs floating-point results.*i64"):
        ft.laplacian(lambda x: np.sum(x > 0))(VECTOR)
    with pytest.raises(TypeError, match=r"result is like its argument.*use jacobian"):
        ft.divergence(lambda x: x[:2])(VECTOR)
    with pytest.raises(TypeError, match="2 numbers with 2 results and of 3 numbers"):
        ft.curl(lambda x: x)(VECTOR)
    with pytest.raises(ValueError, match='must be None or "hutchinson"'):
        ft.laplacian(network, estimator="girard")
    with pytest.raises(ValueError, match="positive integer"):
        ft.divergence(network, estimator="hutchinson", samples=0)
    with pytest.raises(TypeError, match="seed must be an integer"):
        ft.laplacian(network, estimator="hutchinson", seed=0.5)(VECTOR)
    with pytest.raises(TypeError, match="scalar result"):
        ft.hessian_diagonal(np.sin, estimator="hutchinson")(VECTOR)
