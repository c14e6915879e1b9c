"""What is taken out of loops, and how their results are written, changes nothing but the time that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from checks import assert_all_close

import ftrans as ft
from ftrans.control.loops.results import Results
from ftrans.control.loops.scan import scan
from ftrans.core.program import Eqn, Program
from ftrans.ops.contractions import dot_general
from ftrans.ops.elementwise import exp, sech_square, tanh
from ftrans.transforms.simplify import simplify

RNG = np.random.default_rng(0)
SIZE, STEPS = 4, 5
WEIGHTS = RNG.normal(size=(4 * SIZE, 2 * SIZE)) / 2
INPUTS = RNG.normal(size=(STEPS, SIZE))
INITIAL = RNG.normal(size=SIZE)


def unrolled(step: Callable[..., Any], carry: Any, xs: Any, reverse: bool) -> Any:
    """A scan as Python's loop."""
    ys = [None] * len(xs)
    for i in reversed(range(len(xs))) if reverse else range(len(xs)):
        carry, ys[i] = step(carry, xs[i])
    return carry, tuple(np.stack(column) for column in zip(*ys, strict=True))


def gated(loop: Callable[..., Any], order: tuple[int, ...], reverse: bool, w: Any, xs: Any, initial: Any) -> Any:
    """A cell with gates whose loop also returns the carries of before and after each step."""

    def step(carry: Any, x: Any) -> Any:
        h, c = carry
        z = w @ np.concatenate([x, h])
        parts = [z[i * SIZE : (i + 1) * SIZE] for i in range(4)]
        add, forget, value, out = (np.tanh(parts[i]) for i in order)
        after = forget * c + add * value
        new = out * np.tanh(after)
        return (new, after), (h, c, new, z)

    (h, c), ys = loop(step, (initial, initial * 2.0), xs, reverse)
    return np.sum(h * h) + np.sum(c) + sum(np.sum(np.cos(y) * (i + 1)) for i, y in enumerate(ys))


def scanned(step: Callable[..., Any], carry: Any, xs: Any, reverse: bool) -> Any:
    return ft.scan(step, carry, xs, reverse=reverse)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_gradients_are_those_of_the_unrolled_loop(order: tuple[int, ...], reverse: bool, dtype: str) -> None:
    args = [x.astype(dtype) for x in (WEIGHTS, INPUTS, INITIAL)]
    f = ft.value_and_grad(lambda *xs: gated(scanned, order, reverse, *xs), (0, 1, 2))
    g = ft.value_and_grad(lambda *xs: gated(unrolled, order, reverse, *xs), (0, 1, 2))
    value, gradients = g(*args)
    for ours in (f, ft.jit(f)) if order[0] == 0 else (f,):
        found, found_gradients = ours(*args)
        assert_all_close([found, *found_gradients], [value, *gradients], looseness=100)


def test_second_derivatives_are_those_of_the_unrolled_loop() -> None:
    f, g = (
        ft.hessian(lambda h, loop=loop: gated(loop, (0, 1, 2, 3), False, WEIGHTS, INPUTS, h))
        for loop in (scanned, unrolled)
    )
    assert_all_close([f(INITIAL), ft.jit(f)(INITIAL)], [g(INITIAL)] * 2, looseness=100)


def test_branches_on_elements_run_before_an_inner_loop() -> None:
    weights = WEIGHTS[:SIZE, :SIZE]

    def total(loop: Callable[..., Any], cond: Callable[..., Any], xs: Any) -> Any:
        def inner(h: Any, x: Any) -> Any:
            return np.tanh(weights @ h + np.sin(cond(x[0] > 0, np.cos, lambda x: x**2, x))), (h,)

        def outer(h: Any, scale: Any) -> Any:
            h, (hs,) = loop(inner, h, xs * scale, False)
            return h, (hs,)

        h, (hs,) = loop(outer, INITIAL, np.array([1.0, 0.5]), False)
        return np.sum(h) + np.sum(hs**2)

    f = lambda xs: total(scanned, ft.cond, xs)  # noqa: E731
    g = lambda xs: total(unrolled, lambda p, f, g, x: f(x) if p else g(x), xs)  # noqa: E731
    for derivative in (ft.grad, ft.hessian, lambda f: ft.jacrev(ft.grad(f))):
        assert_all_close([derivative(f)(INPUTS)], [derivative(g)(INPUTS)], looseness=100)


def test_sums_of_shared_terms_take_time_that_is_linear_in_their_number() -> None:
    def step(carry: Any, x: Any) -> Any:
        h, total = carry
        term = h
        for _ in range(60):
            term = (term + (-term)[::-1]) + term[::-1]
        return (np.tanh(h + x), total + term), (h,)

    (_, total), (hs,) = ft.scan(step, (INITIAL, np.zeros(SIZE)), INPUTS)
    # Each round is the identity.
    assert_all_close([total], [np.sum(hs, axis=0)], looseness=100)


def bodies(program: Program) -> Iterator[tuple[Eqn, Program]]:
    """The loops of a program."""
    return ((eqn, eqn.params["program"]) for eqn in program.eqns if eqn.primitive is scan)


def test_what_needs_no_cotangent_is_computed_for_all_steps_at_once() -> None:
    f = ft.grad(lambda w: gated(scanned, (0, 1, 2, 3), False, w, INPUTS, INITIAL))
    program = simplify(ft.trace(f)(WEIGHTS))
    (_, forwards), (_, backwards) = bodies(program)
    assert any(eqn.primitive is tanh for eqn in forwards.eqns)
    assert not any(eqn.primitive is tanh for eqn in backwards.eqns)
    assert any(eqn.primitive is tanh and eqn.outputs[0].type.shape == (STEPS, SIZE) for eqn in program.eqns)


def test_derivatives_that_a_step_does_not_need_are_computed_for_all_steps_at_once() -> None:
    def f(h: Any) -> Any:
        return np.sum(ft.scan(lambda h, x: (np.tanh(WEIGHTS[:SIZE, :SIZE] @ h + x), ()), h, INPUTS)[0])

    program = simplify(ft.trace(ft.grad(f))(INITIAL))
    assert any(eqn.primitive is sech_square for eqn in program.eqns)
    assert all(eqn.primitive is not sech_square for _, body in bodies(program) for eqn in body.eqns)


def test_functions_that_a_step_needs_are_kept_where_that_takes_little_memory() -> None:
    w = RNG.normal(size=(30, 30))

    def step(h: Any, w: Any) -> Any:
        return np.log(np.sum(np.exp(h[:, None] + w), axis=0)), ()

    for length, computed in ((STEPS, 1), (1_000_000, 2)):
        f = ft.grad(lambda w, length=length: np.sum(ft.scan(lambda h, _: step(h, w), w[0], None, length)[0]))
        program = simplify(ft.trace(f)(w))
        eqns = [*program.eqns, *(eqn for _, body in bodies(program) for eqn in body.eqns)]
        assert [eqn.primitive for eqn in eqns].count(exp) == computed


def test_products_are_not_larger_than_what_is_used_of_them() -> None:
    f = ft.grad(lambda w: gated(scanned, (0, 1, 2, 3), False, w, INPUTS, INITIAL))
    _, (_, backwards) = bodies(simplify(ft.trace(f)(WEIGHTS)))
    (product,) = (eqn for eqn in backwards.eqns if eqn.primitive is dot_general)
    assert product.outputs[0].type.shape == (SIZE,)


def test_small_loops_of_elementwise_operations_stay_whole() -> None:
    f = ft.grad(lambda x: ft.scan(lambda c, x: (c * np.sin(x) + np.sin(c), None), x, INPUTS[:, 0])[0])
    program = simplify(ft.trace(f)(0.5))
    assert any("sin" in {eqn.primitive.name for eqn in body.eqns} for _, body in bodies(program))


def test_small_results_are_written_together() -> None:
    f = lambda w: gated(scanned, (0, 1, 2, 3), False, w, INPUTS, INITIAL)  # noqa: E731
    ((eqn, body),) = bodies(simplify(ft.trace(f)(WEIGHTS)))
    results = Results.of(body, STEPS, eqn.params["consts"], eqn.params["carries"])
    assert len(results.packed) > 1
    # The carry of before a step is that of after the step before it.
    assert sum(c is not None for c in results.carry) == 2
    assert len(set(results.place)) < len(results.place)


def test_parts_of_a_cotangent_are_put_side_by_side() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x[:2]) * 3.0) + np.sum(np.cos(x[2:5])) + np.sum(x[5:] ** 3)

    x = RNG.normal(size=7)
    program = simplify(ft.trace(ft.grad(f))(x))
    names = {eqn.primitive.name for eqn in program.eqns}
    assert "concatenate" in names
    assert "pad" not in names
    expected = np.concatenate([3 * np.cos(x[:2]), -np.sin(x[2:5]), 3 * x[5:] ** 2])
    assert_all_close([ft.grad(f)(x)], [expected], looseness=10)
    # Parts with gaps, and parts that overlap.
    g = lambda x: np.sum(np.sin(x[:2])) + np.sum(np.cos(x[3:5])) + np.sum(x[1:4] ** 2)  # noqa: E731
    expected = np.zeros(7)
    expected[:2] += np.cos(x[:2])
    expected[3:5] -= np.sin(x[3:5])
    expected[1:4] += 2 * x[1:4]
    assert_all_close([ft.grad(g)(x)], [expected], looseness=10)
    rows = lambda m: np.sum(np.sin(m[:2, 1:])) + np.sum(np.cos(m[2:, 1:]))  # noqa: E731
    m = RNG.normal(size=(4, 3))
    expected = np.zeros((4, 3))
    expected[:2, 1:], expected[2:, 1:] = np.cos(m[:2, 1:]), -np.sin(m[2:, 1:])
    assert_all_close([ft.grad(rows)(m)], [expected], looseness=10)
