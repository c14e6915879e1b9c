"""Transformations of whole programs: random ones through every transformation and every composition of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from checks import (
    DIFFERENCES,
    assert_all_close,
    assert_close,
    backward,
    checked,
    chosen,
    differences,
    forward,
    inner,
    linearized,
    magnitude,
    spread,
    through_xla,
    through_xla_together,
)
from random_programs import random_arguments, random_program
from sampling import directions
from tables import covering, in_chunks, label, naming

import ftrans as ft
from ftrans.core.interpret import inline
from ftrans.core.program import Const, Program
from ftrans.core.trace import Builder, building
from ftrans.core.types import is_inexact
from ftrans.run.evaluate import evaluate
from ftrans.run.straightline import source
from ftrans.structure.dense.dense import jacobian
from ftrans.transforms.batch import batch
from ftrans.transforms.differentiate import gradient, pullback
from ftrans.transforms.jvp import jvp
from ftrans.transforms.simplify import simplify

SEEDS = range(30)
LANES = 3

Case = tuple[Program, list[Any]]


def every(program: Program) -> tuple[bool, ...]:
    """All inputs that have derivatives."""
    return tuple(is_inexact(t.dtype) for t in program.in_types)


def moved(args: list[Any], seed: int) -> list[Any]:
    """Other arguments of the same types."""
    return [x if t is None else x + t for x, t in zip(args, directions(args, seed), strict=True)]


# What is checked of a program


def check_forward(program: Program, args: list[Any]) -> None:
    """Forward mode is central differences, and so is its linear part."""
    tangents = chosen(directions(args, seed=1), every(program))
    outs, pushed = forward(program, every(program), args, tangents)
    assert_all_close(outs, evaluate(program, args))
    expected = differences(lambda *xs: evaluate(program, xs), args, spread(tangents, every(program)))
    assert_all_close(pushed, expected, tolerance=10 * DIFFERENCES)
    assert_all_close(linearized(program, every(program), args, tangents)[1], pushed, looseness=10)


def check_backward(program: Program, args: list[Any]) -> None:
    """Reverse mode is the transpose of forward mode."""
    tangents = chosen(directions(args, seed=1), every(program))
    _, pushed = forward(program, every(program), args, tangents)
    cotangents = directions(pushed, seed=2)
    outs, pulled = backward(program, every(program), args, cotangents)
    assert_all_close(outs, evaluate(program, args))
    tolerance = 1e-11 * magnitude(cotangents, pushed)
    assert inner(cotangents, pushed) == pytest.approx(inner(pulled, tangents), abs=tolerance)


def check_batch(program: Program, args: list[Any]) -> None:
    """A batch is a loop, whichever inputs are batched."""
    rows = [args, *(moved(args, seed) for seed in range(LANES - 1))]
    for batched in ((True,) * len(args), tuple(i % 2 == 0 for i in range(len(args)))):
        stacked = [np.stack(xs) if b else xs[0] for xs, b in zip(zip(*rows, strict=True), batched, strict=True)]
        derived = batch(program, LANES, batched, (True,) * len(program.outputs))
        found = checked(derived.program, stacked)
        looped = [
            evaluate(program, [x if b else x0 for x, x0, b in zip(row, args, batched, strict=True)]) for row in rows
        ]
        assert_all_close(found, [np.stack(column) for column in zip(*looped, strict=True)], looseness=10)


CHECKS = [check_forward, check_backward, check_batch]

# What is made of a program: another one, and arguments for it


def itself(program: Program, args: list[Any]) -> Case:
    return program, args


def pushforward(program: Program, args: list[Any]) -> Case:
    tangents = chosen(directions(args, seed=3), every(program))
    return jvp(program, every(program)).program, [*args, *tangents]


def linear_part(program: Program, args: list[Any]) -> Case:
    parts = pullback(program, every(program))
    outs = evaluate(parts.values, args)
    count = len(program.outputs)
    return parts.linear, [*outs[count:], *directions(outs[:count], seed=4)]


def gradient_of(program: Program, args: list[Any]) -> Case:
    return gradient(program, every(program), with_value=True), args


def batched(program: Program, args: list[Any]) -> Case:
    rows = [args, moved(args, seed=5)]
    return batch(program, 2, (True,) * len(args)).program, [np.stack(xs) for xs in zip(*rows, strict=True)]


def simplified(program: Program, args: list[Any]) -> Case:
    return simplify(program), args


MADE: list[Callable[[Program, list[Any]], Case]] = [itself, pushforward, linear_part, gradient_of, batched, simplified]


COMPOSITIONS = covering(
    [(seed, make, check) for seed in SEEDS for make in MADE for check in CHECKS],
    lambda cell: cell[0],
    lambda cell: (cell[1].__name__, cell[2].__name__),
    times=6,
)


@pytest.mark.parametrize(("seed", "make", "check"), COMPOSITIONS, ids=label)
def test_compositions_of_two(seed: int, make: Callable[..., Case], check: Callable[..., None]) -> None:
    program, args = make(random_program(seed), random_arguments(seed))
    check(program.check(), args)


@in_chunks(5, seeds=range(10))
@pytest.mark.parametrize("make", [itself, pushforward, gradient_of, batched], ids=label)
def test_compiled_programs_agree(seeds: range, make: Callable[..., Case]) -> None:
    programs, args = zip(*(make(random_program(seed), random_arguments(seed)) for seed in seeds), strict=True)
    results = through_xla_together(list(map(simplify, programs)), args)
    for seed, program, xs, found in zip(seeds, programs, args, results, strict=True):
        with naming(seed):
            assert_all_close(found, evaluate(program, xs), looseness=10)


@pytest.mark.parametrize("seed", range(10 if tables.whole else 3))
def test_op_by_op_agrees(seed: int) -> None:
    program, args = random_program(seed), random_arguments(seed)
    assert_all_close(through_xla(program, args), evaluate(program, args), looseness=10)


# The same through the functions that users call


def functions(seed: int) -> tuple[Callable[..., Any], Callable[..., Any], list[Any]]:
    """A scalar function, an array function and arguments for them."""
    program = random_program(seed)
    return (
        lambda *xs: inline(program, xs)[0],
        lambda *xs: inline(program, xs)[1],
        random_arguments(seed),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobians_agree(seed: int) -> None:
    _, f, args = functions(seed)
    forwards = ft.jacfwd(f, argnums=(0, 1))(*args)
    backwards = ft.jacrev(f, argnums=(0, 1))(*args)
    in_chunks = ft.jacobian(f, argnums=(0, 1), mode="reverse", chunk_size=2)(*args)
    assert_all_close(backwards, forwards, looseness=10)
    assert_all_close(in_chunks, forwards, looseness=10)
    tangents = directions(args, seed=6)
    _, pushed = ft.jvp(f, args, tangents)
    total = sum(np.tensordot(j, t, np.ndim(t)) for j, t in zip(forwards, tangents, strict=True))
    assert_close(pushed, np.asarray(total)[()], looseness=10)


@pytest.mark.parametrize("seed", SEEDS)
def test_hessians_agree(seed: int) -> None:
    f, _, args = functions(seed)
    forward_over_reverse = ft.jacfwd(ft.grad(f, 1), 1)(*args)
    reverse_over_forward = ft.jacrev(ft.jacfwd(f, 1), 1)(*args)
    assert_close(ft.hessian(f, 1)(*args), forward_over_reverse, looseness=100)
    assert_close(reverse_over_forward, forward_over_reverse, looseness=100)
    size = args[1].size
    matrix = forward_over_reverse.reshape(size, size)
    assert_close(matrix, matrix.T, looseness=100)
    (t,) = directions(args[1:], seed=7)
    product = ft.hvp(lambda y: f(args[0], y), (args[1],), (t,))
    assert_close(product.reshape(size), matrix @ t.reshape(size), looseness=100)


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_batch_is_batch_of_gradients(seed: int) -> None:
    f, _, (x, y) = functions(seed)
    xs = np.stack([x, 0.5 * x, -x])
    mapped = ft.vmap(ft.grad(f), in_axes=(0, None))(xs, y)
    summed = ft.grad(lambda xs: np.sum(ft.vmap(lambda x: f(x, y))(xs)))(xs)
    assert_close(mapped, summed, looseness=10)
    assert_close(mapped, np.stack([ft.grad(f)(row, y) for row in xs]), looseness=10)


@pytest.mark.parametrize("seed", range(12 if tables.whole else 4))
def test_jit_is_eager(seed: int) -> None:
    f, _, args = functions(seed)
    slope = ft.value_and_grad(f, argnums=(0, 1))
    value, slopes = ft.jit(slope)(*args)
    expected, expected_slopes = slope(*args)
    assert_close(value, expected, looseness=10)
    assert_all_close(slopes, expected_slopes, looseness=10)
    assert_all_close(ft.grad(ft.jit(f), argnums=(0, 1))(*args), expected_slopes, looseness=10)


# Simplification


def primitives(program: Program) -> list[str]:
    """Names of the primitives of a program's equations."""
    return [eqn.primitive.name for eqn in program.eqns]


def simple(f: Callable[..., Any], *args: Any) -> Program:
    """The simplified program of a function."""
    return simplify(ft.trace(f)(*args)).check()


X = np.array([0.5, 1.5, -1.0])


def test_dead_code_goes() -> None:
    def f(x: Any) -> Any:
        np.exp(np.cos(x))
        return np.sin(x)

    assert primitives(simple(f, X)) == ["sin"]


def test_common_subexpressions_are_shared() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x)
        z = np.sin(x)
        return y * z + z * y

    assert primitives(simple(f, X)) == ["sin", "mul", "add"]


def test_parameters_tell_equations_apart() -> None:
    program = simple(lambda x: x[:2] * x[1:], X)
    assert primitives(program) == ["slice", "slice", "mul"]


def test_constants_are_folded() -> None:
    assert primitives(simple(lambda x: x * (np.sin(np.zeros_like(x)) + 2.0), X)) == ["mul"]
    table = np.arange(3.0)
    assert primitives(simple(lambda x: x + np.cos(np.zeros_like(x) + table), X)) == ["add"]


def test_large_constants_are_not_folded() -> None:
    size = 100_000
    program = simple(lambda x: x + np.cumsum(np.ones_like(x)), np.zeros(size))
    sizes = [a.value.size for eqn in program.eqns for a in eqn.operands if isinstance(a, Const)]
    assert max(sizes, default=0) <= 256


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 1.0,
        lambda x: x + -0.0,
        lambda x: x - 0.0,
        lambda x: x / 1.0,
        lambda x: 1.0 * x,
        lambda x: -0.0 + x,
        lambda x: x**1,
        lambda x: x.reshape(3, 1).reshape(3),
        lambda x: x[::-1][::-1],
        lambda x: np.negative(np.negative(x)),
        lambda x: np.where(np.ones_like(x) > 0, x, 2 * x),
        lambda x: np.concatenate([x]),
        lambda x: x.astype(np.float64),
    ],
)
def test_identities_are_forwarded(f: Callable[..., Any]) -> None:
    program = simple(f, X)
    assert not program.eqns
    assert program.outputs == program.inputs


def test_a_function_of_the_same_type_is_not_forwarded() -> None:
    assert primitives(simple(lambda x: x * 2.0, X)) == ["mul"]
    assert primitives(simple(lambda x: x[::-1], X)) == ["reverse"]


def test_simplify_is_idempotent() -> None:
    for seed in range(10):
        once = simplify(gradient(random_program(seed), (True, True), with_value=True))
        assert len(simplify(once).eqns) == len(once.eqns)


def test_values_that_are_results_are_not_computed_twice() -> None:
    parts = pullback(ft.trace(np.exp)(X), (True,))
    assert primitives(simplify(parts.values)) == ["exp"]
    assert primitives(parts.linear) == ["mul"]


def test_linear_functions_have_no_residuals() -> None:
    parts = pullback(ft.trace(lambda x: np.sum(3.0 * x[1:] - x[:-1]))(X), (True,))
    assert parts.residual_count == 0


# Equations of the order-n derivative of exp(sin x).  The prototype of the design needed 5, 15, 40 and 102.
GROWTH = [4, 8, 17, 31]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_nested_derivatives_do_not_blow_up(order: int) -> None:
    def f(x: Any) -> Any:
        return np.exp(np.sin(x))

    derivative = f
    for _ in range(order):
        derivative = ft.grad(derivative)
    program = simple(derivative, 0.7)
    assert len(program.eqns) <= GROWTH[order - 1], f"{len(program.eqns)} equations"


def test_derivatives_of_a_long_chain_are_linear_in_its_length() -> None:
    def chain(length: int) -> int:
        def f(x: Any) -> Any:
            for _ in range(length):
                x = np.sin(x)
            return x

        return len(simple(ft.grad(f), 0.5).eqns)

    assert chain(120) - chain(80) == chain(80) - chain(40) > 0


def test_parameters_that_are_unpacked_again_and_again_are_cut_out_once() -> None:
    def f(p: Any, x: Any) -> Any:
        for _ in range(8):
            a, b = p
            x = a * np.sin(x) + b * p[:1]
        return np.sum(x)

    p, x = np.array([0.7, 0.2]), np.linspace(0.0, 1.0, 3)
    program = ft.trace(ft.grad(f))(p, x)
    assert sum(eqn.primitive.name in ("pad", "add_slice", "concatenate") for eqn in program.eqns) <= 4
    direction = np.array([1.0, 2.0])
    assert_all_close([ft.grad(f)(p, x) @ direction], [ft.jvp(lambda p: f(p, x), (p,), (direction,))[1]])


# Evaluation


def test_source_is_python() -> None:
    program = ft.trace(lambda x: np.sum(np.sin(x) * 2.0))(X)
    text = source(program)
    assert text.startswith("def ")
    assert "np.sin(a)" in text
    compile(text, "<test>", "exec")


def test_results_are_fresh() -> None:
    program = ft.trace(lambda x: (x, x.reshape(3, 1), x[1:], np.zeros_like(x), x + 1.0))(X)
    outs = program(X)
    for i, out in enumerate(outs):
        assert out.flags.writeable
        assert not np.may_share_memory(out, X)
        assert not any(np.may_share_memory(out, other) for other in outs[:i])


def test_jacobian_of_a_program_with_unrelated_outputs() -> None:
    builder = Builder([ft.trace(np.sin)(X).in_types[0]])
    with building(builder):
        (x,) = builder.inputs()
        program = builder.finish([np.sin(x), np.ones(2)], "f")
    args = [X, *builder.captures.values]
    for mode in ("forward", "reverse"):
        derived = jacobian(program, (True, False), 2, mode, None).check()
        _, _, first, second = evaluate(derived, args)
        assert_close(first, np.diag(np.cos(X)))
        assert_close(second, np.zeros((2, 3)))
