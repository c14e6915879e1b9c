"""Loops that assign to elements of arrays: derivatives, and that each step costs what it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checks import assert_all_close, assert_close

import ftrans as ft
from ftrans.control.loops.in_place import read_first
from ftrans.control.loops.scan import scan
from ftrans.core.program import Program, Var
from ftrans.ops.indexing import gather, scatter_add, scatter_set
from ftrans.ops.parts import slice_
from ftrans.ops.shapes import reshape
from ftrans.ops.slices import add_slice, set_slice
from ftrans.run.memory import find_overwriting
from ftrans.run.straightline import source

random = np.random.default_rng(0)
Loop = Callable[[int, int, Callable[[Any, Any], Any], Any], Any]


def python_loop(start: int, stop: int, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    for i in range(start, stop):
        carry = body(i, carry)
    return carry


def recurrence(loop: Loop, x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y[i] = 0.9 * np.sin(y[i - 1]) + x[i]
        return y

    return np.sum(loop(1, len(x), body, x.copy()) ** 2)


def powers(loop: Loop, x: Any) -> Any:
    """Old elements are needed by the way back."""

    def body(i: Any, y: Any) -> Any:
        y[i] = 0.3 * y[i] * y[i - 1] ** 2 + 0.5 * y[i - 2]
        return y

    return np.sum(loop(2, len(x), body, np.tanh(x)))


def exchange(loop: Loop, x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y[i - 1], y[i] = 0.8 * y[i - 1] - 0.6 * y[i], 0.6 * y[i - 1] + 0.8 * y[i]
        y[0] += 0.1 * y[i]
        return y

    return np.sum(loop(1, len(x), body, x.copy()) ** 3)


def masked(loop: Loop, x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y[y > 1.0] -= 0.5 * y[i]
        y[i] = np.where(y[i - 1] > 0.0, y[i] - 0.5 * y[i - 1], y[i])
        return y

    return np.sum(loop(1, len(x), body, x.copy()) ** 2)


def table_lookup(loop: Loop, x: Any) -> Any:
    """The place of a write is read from an array that is written to, too."""
    places = np.arange(len(x)) * 0 + np.argsort(x)

    def body(i: Any, carry: Any) -> Any:
        y, p = carry
        j = p[i]
        y[j] = y[j] * y[p[i - 1]]
        p[i - 1] = j
        return y, p

    return np.sum(loop(1, len(x), body, (x.copy(), places))[0] * np.arange(len(x)))


def rows(loop: Loop, x: Any) -> Any:
    def body(i: Any, u: Any) -> Any:
        u[i, 1:-1] = 0.25 * (u[i - 1, 1:-1] + u[i + 1, 1:-1] + u[i, :-2] + u[i, 2:])
        row = u[i]
        row *= 1.1
        return u

    u = x.reshape(-1, 4) * 1.0
    return np.sum(loop(1, u.shape[0] - 1, body, u) ** 2)


def kalman(loop: Loop, x: Any) -> Any:
    move = np.array([[1.0, 0.1], [0.0, 1.0]])

    def body(i: Any, carry: Any) -> Any:
        means, variances = carry
        mean = move @ means[i - 1]
        variance = move @ variances[i - 1] @ move.T + 0.01 * np.eye(2)
        gain = variance[:, 0] / (variance[0, 0] + 0.1)
        means[i] = mean + gain * (x[i] - mean[0])
        variances[i] = variance - gain[:, None] * variance[0]
        return means, variances

    n = len(x)
    means = np.zeros_like(x, shape=(n, 2))
    means, _ = loop(1, n, body, (means, np.ones_like(x, shape=(n, 2, 2)) * np.eye(2)))
    return np.sum((means[:, 0] - x) ** 2)


WRITES = (set_slice, add_slice, scatter_set, scatter_add)
LOOPS = [recurrence, powers, exchange, masked, table_lookup, rows, kalman]


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_gradients_of_loops_that_assign(function: Callable[[Loop, Any], Any]) -> None:
    # Arrays this large are written to in place, also by XLA.
    x = random.normal(size=160 if function is not kalman else 40)
    along = random.normal(size=x.shape)
    expected = ft.grad(lambda x: function(python_loop, x))(x)
    difference = (function(python_loop, x + 1e-6 * along) - function(python_loop, x - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(expected @ along, difference, rtol=1e-5)

    def in_loop(x: Any) -> Any:
        return function(ft.fori_loop, x)

    assert_close(ft.grad(in_loop)(x), expected)
    value, gradient = ft.jit(ft.value_and_grad(in_loop))(x)
    assert_all_close([value, gradient], [function(python_loop, x), expected])
    assert_close(ft.jvp(in_loop, (x,), (along,))[1], expected @ along)


@pytest.mark.parametrize("function", [recurrence, exchange, rows], ids=lambda f: f.__name__)
def test_higher_derivatives_and_batches_of_loops_that_assign(function: Callable[[Loop, Any], Any]) -> None:
    xs = random.normal(size=(2, 12))

    def in_python(x: Any) -> Any:
        return function(python_loop, x)

    def in_loop(x: Any) -> Any:
        return function(ft.fori_loop, x)

    each = [ft.hessian(in_python)(x) for x in xs]
    assert_close(ft.hessian(in_loop)(xs[0]), each[0])
    assert_close(ft.jit(ft.vmap(ft.hessian(in_loop)))(xs), np.stack(each))
    reverse_over_reverse = ft.jacobian(ft.grad(in_loop), mode="reverse")
    assert_close(reverse_over_reverse(xs[1]), each[1])


def test_a_while_loop_that_assigns() -> None:
    def f(x: Any) -> Any:
        def body(carry: Any) -> Any:
            i, y = carry
            y[i] = np.sin(y[i - 1]) * y[i]
            return i + 1, y

        return np.sum(ft.while_loop(lambda c: c[0] < 150, body, (1, x.copy()), max_steps=200)[1])

    def g(x: Any) -> Any:
        y = x.copy()
        for i in range(1, 150):
            y[i] = np.sin(y[i - 1]) * y[i]
        return np.sum(y)

    x = random.normal(size=150)
    expected = ft.grad(g)(x)
    assert_close(ft.grad(f)(x), expected)
    assert_close(ft.jit(ft.grad(f))(x), expected)
    assert_close(ft.jit(f)(x), g(x))


# The cost of a step


def whole_copies(program: Program) -> int:
    """How many equations of a program make an array as large as its largest input."""
    largest = max(v.type.size for v in program.inputs)
    found = find_overwriting(program)
    views = (slice_, reshape, gather)
    return sum(
        eqn.outputs[0].type.size >= largest and eqn.primitive not in views
        for index, eqn in enumerate(program.eqns)
        if not (eqn.primitive in WRITES and index in found.writes)
    )


def test_each_step_of_a_python_loop_writes_one_element() -> None:
    sizes = {}
    for n in (40, 80, 160):
        program = ft.trace(ft.grad(lambda x: powers(python_loop, x)))(np.ones(n))
        sizes[n] = len(program.eqns)
        assert whole_copies(program) <= 20
    assert sizes[160] - sizes[80] == 2 * (sizes[80] - sizes[40])


def test_the_cotangent_of_an_assignment_is_updated_in_place() -> None:
    program = ft.trace(ft.grad(lambda x: exchange(ft.fori_loop, x)))(np.ones(200))
    loops = [eqn for eqn in program.eqns if eqn.primitive is scan]
    assert len(loops) == 2
    for loop in loops:
        body = loop.params["program"]
        assert [eqn for eqn in body.eqns if eqn.outputs[0].type.size >= 200 and eqn.primitive not in WRITES] == []
        carries = range(loop.params["consts"], loop.params["consts"] + loop.params["carries"])
        found = find_overwriting(body, [body.inputs[i] for i in carries])
        assert len(found.writes) == sum(eqn.primitive in WRITES for eqn in body.eqns)


def test_what_was_read_outlives_the_write() -> None:
    """A view of an array that is overwritten is copied, and the array is not, which is the program's own."""

    def f(x: Any) -> Any:
        y = x * 2.0
        y[0] = 1.0
        part = y[:3]
        kept = part.copy()
        y[1:3] = 0.0
        y[2] = 5.0
        return y, kept

    x = np.arange(12.0)
    program = ft.trace(f)(x)
    assert_all_close(program(x), f(x))
    assert ".copy()" in source(program)
    assert "set_slice" not in source(program)


def test_captured_and_given_arrays_are_never_written_to() -> None:
    table = np.arange(3.0)

    def f(x: Any) -> Any:
        y = np.where(x > 0, table, x)
        z = np.asarray(table) * x
        z[0] = 7.0
        x[0] = 9.0
        x[1] = y[0]
        return x, y, z

    x = np.ones(3)
    for call in (ft.trace(f)(x), ft.jit(f)):
        first, again = call(x), call(x)
        assert_all_close(first, again)
        np.testing.assert_array_equal(x, np.ones(3))
        np.testing.assert_array_equal(table, np.arange(3.0))
        first[0][:] = -1.0
        assert_all_close(call(x), again)


def test_reads_come_before_the_writes_that_xla_does_in_place() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            y[i - 1], y[i] = y[i], y[i - 1] * 2.0
            return y

        return ft.fori_loop(1, 200, body, x)

    x = random.normal(size=200)
    program = ft.trace(f)(x)
    (loop,) = [eqn for eqn in program.eqns if eqn.primitive is scan]
    from ftrans.control.loops.in_place import _with_reads_first

    ordered = _with_reads_first(loop.params["program"])
    assert any(eqn.primitive is read_first for eqn in ordered.eqns)
    done: set[Any] = set(ordered.inputs)
    for eqn in ordered.eqns:
        assert all(a in done for a in eqn.operands if isinstance(a, Var))
        done.update(eqn.outputs)
    step = loop.params["program"]
    arguments = [np.array(v.type.shape and x) if v.type.dtype == x.dtype else np.int64(3) for v in step.inputs]
    assert_all_close(ordered(*arguments), step(*arguments))
    assert_close(ft.jit(f)(x), program(x)[0])


def test_reads_between_the_writes_of_a_step_are_kept_where_they_are() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            y[i, 0] = y[i - 1, 1]
            y[i, 1] = 0.5 * y[i - 1, 2] + y[i - 1, 0]
            y[i, 2] = np.sin(y[i, 0]) * y[i - 1, 1]
            return y

        return ft.fori_loop(1, len(x), body, x)

    x = random.normal(size=(100, 3))
    program = ft.trace(f)(x)
    (loop,) = [eqn for eqn in program.eqns if eqn.primitive is scan]
    from ftrans.control.loops.in_place import _with_reads_first

    step = loop.params["program"]
    ordered = _with_reads_first(step)
    assert [eqn.operands[0] for eqn in ordered.eqns if eqn.primitive is gather] == [ordered.inputs[0]]
    assert sum(eqn.primitive is read_first for eqn in ordered.eqns) == 4
    arguments = [x if v.type.shape else np.int64(3) for v in step.inputs]
    assert_all_close(ordered(*arguments), step(*arguments))
    assert_close(ft.jit(f)(x), program(x)[0])
