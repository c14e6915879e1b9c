"""Long traces: most of their equations are columns of numbers, and the programs are those of a list of equations."""

import random
import threading
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

import ftrans as ft
from ftrans.control.rolling import long_tape
from ftrans.control.rolling.columns import Columns
from ftrans.control.rolling.rolled import rolled
from ftrans.core.trace import building
from ftrans.core.types import type_of
from ftrans.core.witness import CodeBuilder

X = np.array([0.3, -0.2, 0.7])
CAPTURED = [np.array([0.1 * k, 0.2, -0.3]) for k in range(40)]


def rk4(x):
    def slope(s):
        return np.array([s[1], -np.sin(s[0]) - 0.1 * s[1], s[2] * s[0]])

    h = 0.01
    for _ in range(30):
        a = slope(x)
        b = slope(x + h / 2 * a)
        c = slope(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + slope(x + h * c))
    return x


def path(x):
    states = np.zeros_like(x, shape=(40, 3))
    states[0] = x
    for t in range(39):
        states[t + 1] = states[t] + 0.1 * np.tanh(states[t] * (t + 1.0))
    return states


def history(x):
    states = [x]
    for t in range(40):
        states.append(states[-1] * 0.9 + 0.1 * np.cos(states[max(0, t - 3)]))
    return np.stack(states)


def captures(x):
    for a in CAPTURED:
        x = np.sin(x + a)
    return x


def branches(x):
    n = 0
    while np.sum(x**2) > 0.05 and n < 100:
        x = 0.9 * x
        n += 1
    return x * n


def nested(x):
    for _ in range(20):
        x = x - 0.1 * ft.grad(lambda y, x=x: np.sum(np.sin(y) ** 2 * x))(x)
    return x


def views(x):
    y = x.copy()
    for k in range(30):
        part = y[k % 2 :]
        part[0] = part[0] * 0.5 + y[2]
        y[1] += part[-1]
    return y


FUNCTIONS = [rk4, path, history, captures, branches, nested, views]


@pytest.fixture(params=[1, 5, 12])
def moved(request, monkeypatch):
    monkeypatch.setattr(long_tape, "_LATEST", request.param)


def traced(f, tape=None):
    """The program of `f` on a tape, a list by default."""
    builder = CodeBuilder([type_of(X)], [X], has_one_shape=True, tape=tape)
    with building(builder):
        return builder.finish([ft.numpy.asarray(f(builder.inputs()[0]))], "f")


def test_programs_are_those_of_a_list(moved):
    for f in FUNCTIONS:
        program, expected = traced(f, long_tape.LongTape([type_of(X)])), traced(f)
        assert isinstance(program.recorded, Columns)
        loops = rolled(program), rolled(expected)
        assert isinstance(program.recorded, Columns), "rolling must not make all equations again"
        assert str(loops[0].check()) == str(loops[1])
        assert len(program.recorded) == len(expected.eqns)
        assert str(program.check()) == str(expected)
        assert [q.line for q in program.eqns] == [q.line for q in expected.eqns]
        assert [q.params for q in program.eqns] == [q.params for q in expected.eqns]


def test_compiled_results_and_derivatives(monkeypatch):
    monkeypatch.setattr(long_tape, "_LATEST", 5)
    for f in (captures, branches, nested):
        for x in (X, 2 * X):
            np.testing.assert_allclose(ft.jit(f)(x), f(x), rtol=1e-12)

    def loss(x):
        return np.sum(path(x) ** 2)

    np.testing.assert_allclose(ft.jit(ft.grad(loss))(X), ft.grad(loss)(X), rtol=1e-9)


def test_many_branches_in_a_long_function_without_loops(monkeypatch):
    monkeypatch.setattr(long_tape, "_LATEST", 5)
    functions = [np.sin, np.cos, np.tanh, np.arctan, np.exp]

    def f(x):
        for which in np.random.default_rng(0).integers(0, 5, 60):
            x = functions[which](x)
            if x > 50.0:
                x = 1.0 / x
        return x

    np.testing.assert_allclose(ft.jit(f)(0.5), f(0.5), rtol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(0.5), ft.grad(f)(0.5), rtol=1e-9)


def test_a_result_that_is_in_use_stays_the_same_variable(moved):
    tape = long_tape.LongTape([type_of(X)])
    builder = CodeBuilder([type_of(X)], [X], tape=tape)
    with building(builder):
        x = builder.inputs()[0]
        early = np.sin(x)
        line, operands = early.line(), tape.definition(early.atom).operands
        y = early
        for _ in range(60):
            y = y * 2.0
        assert early.line() is line
        found = tape.definition(early.atom)
        assert (found.outputs, found.operands) == ((early.atom,), operands)
        assert [q.outputs for q in tape.backwards()] == [q.outputs for q in reversed(tape.eqns())]
        assert all(a.outputs[0] is b.operands[0] for a, b in pairwise(tape.eqns()))
        assert bool(np.all(y > np.sin(X) - 1.0)) is not None


def test_memory_of_a_long_trace(monkeypatch):
    monkeypatch.setattr(long_tape, "_LATEST", 500)

    def f(x):
        for _ in range(8_000):
            x = x + 0.01 * np.sin(x)
        return x

    tape = long_tape.LongTape([type_of(X)])
    tracemalloc.start()
    try:
        program = traced(f, tape)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    count = len(program.recorded)
    assert count == 24_000
    assert peak < 100 * count
    assert len(rolled(program).eqns) == 1


def test_an_error_in_a_long_trace_names_its_line(moved):
    kept = []

    def f(x):
        for t in range(60):
            x = np.sin(x)
            kept.append(x)
            if t == 50:
                x = x + np.zeros(7)
        return x

    with pytest.raises(ValueError, match=r"add could not be broadcast.*\n.*x = x \+ np.zeros\(7\)"):
        ft.jit(f)(X)
    with pytest.raises(RuntimeError, match=r"made at .*x = np.sin\(x\)"):
        kept[0] + 1.0


def test_threads_trace_long_loops_at_once(moved):
    results = {}

    def run(k):
        program = traced(lambda x: rk4(x) * k, long_tape.LongTape([type_of(X)]))
        results[k] = rolled(program)(X)[0]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, found in results.items():
        np.testing.assert_allclose(found, rk4(X) * k, rtol=1e-12)


def test_random_statements(moved):
    for seed in range(40):
        f = random_loop_of_python(random.Random(seed))
        program, expected = traced(f, long_tape.LongTape([type_of(X)])), traced(f)
        loops = rolled(program)
        assert str(loops) == str(rolled(expected))
        assert str(program) == str(expected)
        np.testing.assert_array_equal(loops(X, *CAPTURED[: len(loops.inputs) - 1])[0], f(X))


def random_loop_of_python(rng):
    """A loop over a few statements, some of which only some steps run."""
    statements = [
        lambda s, t: s.update(x=np.sin(s["x"]) + s["y"]),
        lambda s, t: s.update(y=s["y"] * 0.5 + t),
        lambda s, t: s["rows"].__setitem__(t, s["x"]),
        lambda s, t: s.update(x=s["x"] + s["rows"][t - 1]),
        lambda s, t: s["rows"].__setitem__((slice(None), 1), 0.1 * t),
        lambda s, t: s["list"].append(s["x"] * 0.3),
        lambda s, t: s.update(y=s["list"][-3] if len(s["list"]) > 3 else s["y"]),
        lambda s, t: s.update(x=s["x"] + CAPTURED[t % 40]),
        lambda s, t: s.update(x=s["x"][::-1] * 0.9, y=s["x"]),
    ]
    chosen = rng.sample(statements, rng.randint(2, 6))
    odd = {rng.randrange(30) for _ in range(rng.randint(0, 2))}

    def f(x):
        s = {"x": x, "y": 0.1 * x, "rows": np.zeros_like(x, shape=(30, 3)), "list": [x]}
        for t in range(30):
            for statement in chosen:
                statement(s, t)
            if t in odd:
                s["x"] = np.cos(s["x"])
        return s["x"] + s["y"] + np.sum(s["rows"], 0) + np.sum(np.stack(s["list"]), 0)

    return f
