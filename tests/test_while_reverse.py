"""Reverse mode through while_loop: the schedule of checkpoints, bounds, memory, and loops in every mode."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from math import comb
from typing import Any

import jax
import numpy as np
import pytest
from checks import assert_close
from tables import crossed

import ftrans as ft
from ftrans.control.checkpoints.schedule import backwards, forwards, hop
from ftrans.control.loops import plain
from ftrans.control.rules.host_call import watch
from ftrans.core.primitive import MissingRule
from ftrans.core.program import Program

CHECKPOINTS = (1, 2, 3, 5, 8)
V = np.array([0.4, -0.7, 0.9])
Loop = Callable[..., Any]
COUNTS = range(301)


# The schedule


class Run:
    """A sweep back over the states 0, 1, ..., count - 1, which counts the steps that it takes."""

    def __init__(self, count: int, checkpoints: int) -> None:
        self.steps = 0
        last, saved = forwards(0, lambda state: state < count, self.step, lambda state: state, checkpoints)
        assert last == saved.steps == count
        assert last == saved.steps == count
        self.seen = list(backwards(saved, self.step))

    def step(self, state: int) -> int:
        self.steps += 1
        return state + 1


def fewest_steps(count: int, checkpoints: int) -> int:
    """The least number of steps to go back over `count` states, if the count is known before (Griewank, 1992)."""
    repetitions = 0
    while comb(checkpoints + repetitions, repetitions) < count:
        repetitions += 1
    return repetitions * count - comb(checkpoints + repetitions, repetitions - 1) + 1 if repetitions else 0


@pytest.mark.parametrize("checkpoints", CHECKPOINTS)
def test_the_schedule_goes_through_all_states(checkpoints: int) -> None:
    for count in COUNTS:
        assert Run(count, checkpoints).seen == list(range(count))[::-1]


@pytest.mark.parametrize("checkpoints", [8, 20, 64])
def test_the_schedule_takes_little_more_steps_than_the_best(checkpoints: int) -> None:
    for count in (0, 1, checkpoints, checkpoints + 1):
        assert Run(count, checkpoints).steps == count
    for count in (2 * checkpoints, 5 * checkpoints, 1000, 3000, 20_000):
        # One step more for each state, because how many there are is found out on the way.
        assert Run(count, checkpoints).steps <= fewest_steps(count, checkpoints) + 2 * count


def test_what_the_docstring_says_of_64_checkpoints() -> None:
    for count, repetitions in ((64, 0), (1000, 1), (10_000, 2), (100_000, 3)):
        assert Run(count, 64).steps <= (1 + repetitions) * count


@pytest.mark.parametrize("checkpoints", [1, 3, 8])
def test_no_more_states_are_held_than_asked_for(checkpoints: int) -> None:
    class State:
        alive = most = 0

        def __init__(self, number: int) -> None:
            self.number = number
            State.alive += 1
            State.most = max(State.most, State.alive)

        def __del__(self) -> None:
            State.alive -= 1

    onwards: Callable[[State], State] = lambda s: State(s.number + 1)  # noqa: E731
    _, saved = forwards(State(0), lambda s: s.number < 100, onwards, lambda s: s, checkpoints)
    for state in backwards(saved, onwards):
        del state
    # Besides the checkpoints: the first state as the caller gave it, the state on hand and the one after it.
    assert State.most <= checkpoints + 4


def test_a_hop_stays_within_its_stretch() -> None:
    for free in (1, 2, 3, 10, 1000):
        for length in (2, 3, 10, 100, 10**6, 10**12):
            assert 1 <= hop(length, free) < length


# Gradients of a recurrence whose number of steps is an argument


def recurrence(n: Any, x: Any, **reverse: Any) -> Any:
    return ft.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) * 1.02 + 0.1), (0, x), **reverse)[1]


def exact_gradients(x: float, counts: range) -> list[float]:
    found, slope = [], 1.0
    for _ in counts:
        found.append(slope)
        x, slope = np.sin(x) * 1.02 + 0.1, slope * np.cos(x) * 1.02
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "reverse",
    [*({"checkpoints": n} for n in CHECKPOINTS), {}, {"max_steps": 300}, {"max_steps": 400, "checkpoints": 4}],
    ids=str,
)
def test_gradients_for_every_number_of_steps(reverse: dict[str, int], compiled: bool) -> None:
    gradient = ft.grad(lambda x, n: recurrence(n, x, **reverse))
    run = ft.jit(gradient) if compiled else gradient
    counts = COUNTS if compiled else COUNTS[::7]
    for count, expected in zip(COUNTS, exact_gradients(0.7, COUNTS), strict=True):
        if count in counts:
            assert run(0.7, count) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("max_steps", [0, 1, 3, 9])
def test_max_steps_stops_the_loop(max_steps: int, compiled: bool) -> None:
    f = lambda x: recurrence(6, x, max_steps=max_steps)  # noqa: E731
    g = lambda x: recurrence(min(max_steps, 6), x)  # noqa: E731
    for derivative in (ft.value_and_grad,) if compiled else (ft.value_and_grad, ft.hessian):
        run = ft.jit(derivative(f)) if compiled else derivative(f)
        np.testing.assert_allclose(run(0.7), derivative(g)(0.7), rtol=1e-12)
    xs = np.array([0.1, 0.7])
    assert_close(ft.vmap(ft.grad(f))(xs), np.array([ft.grad(g)(x) for x in xs]))
    assert_close(ft.jvp(f, (0.7,), (1.0,))[1], ft.grad(g)(0.7))


@pytest.mark.parametrize("more", [{}, {"checkpoints": 2}, {"max_steps": 4}], ids=str)
def test_fori_loop_with_traced_bounds(more: dict[str, int]) -> None:
    def f(x: Any, low: Any, high: Any) -> Any:
        return ft.fori_loop(low, high, lambda i, y: y * x + i, 1.0, **more)

    def python(x: Any, low: int, high: int) -> Any:
        y: Any = 1.0
        for i in range(low, min(high, low + more.get("max_steps", high))):
            y = y * x + i
        return y

    for derivative in (ft.grad, lambda f: ft.grad(ft.grad(f))):
        traced = ft.jit(derivative(f)) if derivative is ft.grad else derivative(f)
        for low, high in ((0, 5), (2, 9), (3, 3), (3, 1)):
            assert_close(traced(1.3, low, high), derivative(python)(1.3, low, high))
            assert_close(derivative(f)(1.3, low, high), derivative(python)(1.3, low, high))


@pytest.mark.parametrize("checkpoints", [None, 10])
def test_memory_does_not_grow_with_the_number_of_steps(
    checkpoints: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.linspace(0.0, 1.0, 1000)
    gradient = ft.grad(lambda x: np.sum(recurrence(2000, x, checkpoints=checkpoints)))
    everything_kept = gradient(x)
    monkeypatch.setattr(plain, "_STATE_BYTES", 100 * x.nbytes)
    tracemalloc.start()
    assert_close(gradient(x), everything_kept)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (130 if checkpoints is None else 40) * x.nbytes


# The loop that computes the values leaves its states for the way back


def count_of(program: Program, *names: str) -> tuple[int, ...]:
    """How many equations of some primitives there are where a program runs."""
    found = [eqn.primitive.name for eqn in program.executable().eqns]
    return tuple(found.count(name) for name in names)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("count", "reverse", "most"),
    [(40, {"max_steps": 50}, 40), (40, {}, 40), (1000, {"checkpoints": 64}, 2000)],
    ids=str,
)
def test_how_often_steps_run(count: int, reverse: dict[str, int], most: int, compiled: bool) -> None:
    steps: list[Any] = []

    def body(c: Any) -> Any:
        n, y = c
        (y,) = watch.apply(steps.append, [np.sin(y) * 1.02 + 0.1], [n])
        return n + 1, y

    gradient = ft.grad(lambda x: ft.while_loop(lambda c: c[0] < count, body, (0, x), **reverse)[1])
    run = ft.jit(gradient) if compiled else gradient
    assert run(0.7) == pytest.approx(exact_gradients(0.7, range(count + 1))[-1], rel=1e-11)
    steps.clear()
    run(0.7)
    jax.effects_barrier()
    assert count <= len(steps) <= most
    assert set(map(int, steps)) == set(range(count))


REVERSE = ({}, {"checkpoints": 3}, {"max_steps": 20})


@pytest.mark.parametrize("reverse", REVERSE, ids=str)
def test_loops_that_differ_are_kept_apart(reverse: dict[str, int]) -> None:
    x = 0.7
    same = lambda x: recurrence(6, x, **reverse) + ft.grad(lambda y: recurrence(6, y, **reverse))(x)  # noqa: E731
    other_end = lambda x: recurrence(5, x, **reverse) + ft.grad(lambda y: recurrence(6, y, **reverse))(x)  # noqa: E731
    other_start = lambda x: recurrence(6, x * 2, **reverse) + ft.grad(lambda y: recurrence(6, y, **reverse))(x)  # noqa: E731

    def other_body(x: Any) -> Any:
        value = ft.while_loop(lambda c: c[0] < 6, lambda c: (c[0] + 1, np.sin(c[1]) * 1.02 + 0.2), (0, x), **reverse)[1]
        return value + ft.grad(lambda y: recurrence(6, y, **reverse))(x)

    slope = exact_gradients(x, range(7))[-1]
    for f, start, steps, shift in (
        (same, x, 6, 0.1),
        (other_end, x, 5, 0.1),
        (other_start, 2 * x, 6, 0.1),
        (other_body, x, 6, 0.2),
    ):
        y = start
        for _ in range(steps):
            y = np.sin(y) * 1.02 + shift
        assert f(x) == pytest.approx(y + slope, rel=1e-12)
        assert count_of(ft.trace(f)(x), "while", "rewind", "keep", "sweep") == (0 if f is same else 1, 0, 1, 1)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("reverse", REVERSE, ids=str)
def test_several_ways_back_share_one_loop(reverse: dict[str, int], compiled: bool) -> None:
    def f(loop: Loop, x: Any, **reverse: int) -> Any:
        body = lambda c: (c[0] + 1, np.sin(c[1]) * x + 0.1, c[2] + np.cos(c[1]) * c[1], c[3] * 1.01)  # noqa: E731
        _, y, z, u = loop(lambda c: c[0] < 9, body, (0, x, x * x, x), **reverse)
        return y, np.sum(z), u * y * z

    jacobian = ft.jacrev(lambda x: f(ft.while_loop, x, **reverse))
    found = (ft.jit(jacobian) if compiled else jacobian)(V)
    for ours, exact in zip(found, ft.jacrev(lambda x: f(python_while, x))(V), strict=True):
        assert_close(ours, exact, 1e-12)
    assert count_of(ft.trace(jacobian)(V), "while", "rewind", "keep", "sweep") == (0, 0, 1, 3)


def test_what_a_step_computes_is_kept_unless_it_is_large() -> None:
    def f(loop: Loop, x: Any, **reverse: int) -> Any:
        body = lambda c: (c[0] + 1, np.sum(np.tanh(np.outer(x, c[1])), axis=1))  # noqa: E731
        return np.sum(loop(lambda c: c[0] < 3, body, (0, x), **reverse)[1])

    x = np.linspace(0.1, 0.5, 40)
    for max_steps, shapes in ((10, {(40,), (40, 40)}), (10_000, {(40,)})):
        gradient = ft.grad(lambda x, most=max_steps: f(ft.while_loop, x, max_steps=most))
        (sweep,) = [eqn for eqn in ft.trace(gradient)(x).executable().eqns if eqn.primitive.name == "sweep"]
        assert {t.shape for t in sweep.params["types"]} == shapes
        assert_close(gradient(x), ft.grad(lambda x: f(python_while, x))(x), 1e-12)


# What loops may be made of, against the same in plain Python

W = np.array([[0.5, -0.3, 0.2], [0.1, 0.4, -0.6], [0.3, 0.2, 0.7]])


def python_while(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init: Any) -> Any:
    while bool(cond_fun(init)):
        init = body_fun(init)
    return init


def closing_over(loop: Loop, x: Any) -> Any:
    limit = np.sum(x * x) * 4 + 1

    def body(c: Any) -> Any:
        return {"a": 1.2 * c["a"] + 0.1 * x * np.sin(c["a"]), "n": c["n"] + 1, "odd": ~c["odd"]}

    c = loop(lambda c: (np.sum(c["a"] ** 2) < limit) & (c["n"] < 20), body, {"a": x, "n": 0, "odd": np.False_})
    return np.sum(np.sin(c["a"])) * np.where(c["odd"], 1.0, 2.0) + c["n"]


def nested(loop: Loop, x: Any) -> Any:
    def body(c: Any) -> Any:
        inner = loop(lambda d: d[0] < c[0], lambda d: (d[0] + 1, np.sin(W @ d[1]) + x * c[1]), (0, c[1]))
        return c[0] + 1, inner[1] * np.cos(c[1])

    return np.sum(loop(lambda c: c[0] < 4, body, (0, x))[1] ** 2)


def complex_carry(loop: Loop, x: Any) -> Any:
    z, shift = x[0] + 1j * x[1], x[2] * (0.3 + 0.1j)
    z = loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * c[1] * 0.5 + shift * np.exp(c[1])), (0, z))[1]
    return np.abs(z) + z.imag


def starts_known(loop: Loop, x: Any) -> Any:
    y = loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * c[2] + 1.0, c[2]), (0, np.ones(3), x))[1]
    return np.sum(np.sin(y))


EXAMPLES = (closing_over, nested, complex_carry, starts_known)


def pushed(f: Callable[..., Any], t: Any) -> Callable[..., Any]:
    return lambda x: ft.jvp(f, (x,), (t,))[1]


MODES: dict[str, Callable[..., Any]] = {
    "grad": ft.grad,
    "hessian": ft.hessian,
    "reverse over reverse": lambda f: ft.jacrev(ft.jacrev(f)),
    "reverse over forward": lambda f: ft.grad(pushed(f, V[::-1])),
    "third": lambda f: ft.grad(lambda x: np.sum(ft.grad(lambda y: np.sum(ft.grad(f)(y) * V))(x) * V[::-1])),
}


@crossed(times=2, example=EXAMPLES, mode=MODES)
def test_every_mode(example: Callable[..., Any], mode: str) -> None:
    f, g = (lambda x, loop=loop: example(loop, x) for loop in (ft.while_loop, python_while))
    derivative = MODES[mode]
    assert_close(derivative(f)(V), derivative(g)(V), 1e-11)
    xs = V * np.array([[1.0], [0.5], [1.3]])
    each = np.stack([derivative(g)(x) for x in xs])
    assert_close(ft.vmap(derivative(f))(xs), each, 1e-11)


@pytest.mark.parametrize("example", EXAMPLES)
def test_derivatives_of_batches(example: Callable[..., Any]) -> None:
    f, g = (lambda x, loop=loop: example(loop, x) for loop in (ft.while_loop, python_while))
    xs = V * np.array([[1.0], [0.5]])
    together, apart = (lambda q: np.sum(np.sin(ft.vmap(f)(q)))), (lambda q: np.sin(g(q[0])) + np.sin(g(q[1])))
    for derivative in (ft.grad, ft.hessian):
        assert_close(derivative(together)(xs), derivative(apart)(xs), 1e-11)


def test_a_compiled_body() -> None:
    step = ft.jit(lambda y, x: np.sin(y) * x)
    looped = lambda x: ft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1], x)), (0, x))[1]  # noqa: E731
    plain = lambda x: np.sin(np.sin(np.sin(x) * x) * x) * x  # noqa: E731
    assert_close(ft.grad(ft.grad(looped))(0.7), ft.grad(ft.grad(plain))(0.7))


@pytest.mark.parametrize("example", [closing_over, nested])
def test_compiled(example: Callable[..., Any]) -> None:
    f, g = (lambda x, loop=loop: example(loop, x) for loop in (ft.while_loop, python_while))
    if example is closing_over:
        assert_close(ft.jit(ft.hessian(f))(V), ft.hessian(g)(V), 1e-11)
    assert_close(ft.jit(ft.vmap(ft.grad(f)))(np.stack([V, V / 2])), np.stack([ft.grad(g)(V), ft.grad(g)(V / 2)]), 1e-11)


def test_low_precision() -> None:
    x = V.astype(np.float32)
    f, g = (lambda x, loop=loop: closing_over(loop, x) for loop in (ft.while_loop, python_while))
    for run in (ft.grad(f), ft.jit(ft.grad(f))):
        assert_close(run(x), ft.grad(g)(V).astype(np.float32), 1e-4)


def test_jax_arrays() -> None:
    gradient = ft.grad(lambda x: recurrence(20, x, checkpoints=3))
    with jax.enable_x64(True):
        found = gradient(jax.numpy.asarray(0.7))
        assert isinstance(found, jax.Array)
    assert_close(np.asarray(found)[()], gradient(0.7))


# Lanes that finish at different times


def leaving(w: Any, x: Any) -> Any:
    """A loop that ends where its body has no derivative."""
    return ft.while_loop(lambda c: c > 0, lambda c: c - w * np.sqrt(c) - 0.1, x)


@pytest.mark.parametrize("compiled", [False, True])
def test_done_lanes_give_no_nan(compiled: bool) -> None:
    xs = np.array([3.0, 1.0, -0.5, 0.3])
    together = lambda w: np.sum(ft.vmap(lambda x: leaving(w, x))(xs))  # noqa: E731
    apart = lambda w: sum(leaving(w, x) for x in xs)  # noqa: E731
    for derivative in (ft.grad,) if compiled else (ft.grad, ft.hessian, lambda f: ft.grad(ft.grad(f))):
        run = ft.jit(derivative(together)) if compiled else derivative(together)
        assert_close(run(1.0), derivative(apart)(1.0))
    each = np.array([ft.grad(leaving)(1.0, x) for x in xs])
    run = ft.vmap(ft.grad(leaving), (None, 0))
    assert_close((ft.jit(run) if compiled else run)(1.0, xs), each)
    # A lane that takes no step is what it was.
    assert_close(each[2], np.float64(0.0))


def test_closed_form() -> None:
    root = lambda a: ft.while_loop(lambda x: np.abs(x * x - a) > 1e-13, lambda x: (x + a / x) / 2, a)  # noqa: E731
    for run in (ft.grad(root), ft.jit(ft.grad(root))):
        assert run(2.0) == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-9)
    assert ft.hessian(root)(2.0) == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-6)


def test_the_transpose_of_a_linear_loop() -> None:
    f = lambda x: ft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]  # noqa: E731
    assert_close(ft.linear_transpose(f, 1.0)(1.0)[0], np.float64(8))
    with pytest.raises(TypeError, match="not"):
        ft.linear_transpose(lambda x: ft.while_loop(lambda c: c < 10, lambda c: c * 2, x), 1.0)


def test_no_derivative_goes_through_a_loop_of_constants() -> None:
    assert_close(ft.grad(lambda x: x * ft.while_loop(lambda c: c < 10, lambda c: c * 2, 1.0))(1.0), np.float64(16))


def test_a_derivative_that_is_not_linear_in_the_cotangent() -> None:
    def f(x: Any) -> Any:
        clipped = lambda c: (c[0] + 1, np.sin(ft.clip_gradient(c[1], -0.5, 0.5) * x))  # noqa: E731
        return ft.while_loop(lambda c: c[0] < 3, clipped, (0, x))[1]

    def g(x: Any) -> Any:
        y = x
        for _ in range(3):
            y = np.sin(ft.clip_gradient(y, -0.5, 0.5) * x)
        return y

    assert_close(ft.grad(f)(1.2), ft.grad(g)(1.2))
    assert_close(ft.hessian(f)(1.2), ft.hessian(g)(1.2))
    with pytest.raises(MissingRule, match=r"not linear in the cotangent.*forward mode") as caught:
        ft.grad(ft.grad(f))(1.2)
    assert "test_while_reverse.py" in str(caught.value)
