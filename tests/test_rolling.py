"""Loops of Python turned back into `scan`: the same numbers, bit for bit, and the same derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from checks import through_xla
from loop_gallery import GALLERY, Example
from python_loops import PythonLoop
from tables import each

from ftrans.api.call import trace_flat
from ftrans.api.paths import trace_guarded
from ftrans.api.rolling import rolling
from ftrans.control.loops.scan import scan
from ftrans.control.rolling.rolled import rolled
from ftrans.core.program import Program
from ftrans.core.types import type_of
from ftrans.run.evaluate import evaluate
from ftrans.transforms.batch import batch
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.jvp import jvp

STEPS = (20, 26)
COUNT = 2000 if tables.whole else 60
# Compiling takes much longer than all else.
EACH_COMPILED = 4 if tables.whole else 20
EACH_DERIVED = 1 if tables.whole else 2
LANES = 2


def traced(f: Callable[..., Any], args: list[Any], guarded: bool = False) -> tuple[Program, list[Any]]:
    """The program that a function writes, with all of its steps, and its operands."""
    with rolling(False):
        if guarded:
            found = trace_guarded(f, args, lambda xs: f(*xs))
        else:
            found, _ = trace_flat(f, [type_of(x) for x in args], lambda xs: f(*xs), args)
    return found.program, [*args, *found.captured]


def results(program: Program, args: list[Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        return evaluate(program, args)


def assert_same_bits(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert type_of(a) is type_of(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def assert_close(found: list[Any], expected: list[Any], tolerance: float = 1e-12) -> None:
    """All numbers of a gradient are sums of the same terms, so they share a scale."""
    scale = max([1.0, *(float(np.max(np.abs(y), initial=0.0)) for y in expected if y.dtype.kind == "f")])
    for a, b in zip(found, expected, strict=True):
        assert type_of(a) is type_of(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def floats(args: list[Any]) -> tuple[bool, ...]:
    return tuple(x.dtype.kind == "f" for x in args)


def loops(program: Program) -> int:
    return sum((eqn.primitive is scan) for eqn in program.eqns)


def size(program: Program) -> int:
    """How many equations a program has, those of the programs in it included."""
    return len(program.eqns) + sum(map(size, program.subprograms()))


# Random loops


def check_values(case: PythonLoop) -> int:
    """The same bits on NumPy; return how many loops were found."""
    program, args = traced(case.function, case.args, guarded=case.has_guards)
    short = rolled(program).check()
    assert_same_bits(results(short, args), results(program, args))
    return loops(short)


def check_derivatives(case: PythonLoop) -> None:
    program, args = traced(case.loss, case.args)
    short = rolled(program)
    if short is program:
        return
    active = floats(args)
    expected = results(gradient(program, active, True), args)
    assert_close(results(gradient(short, active, True).check(), args), expected)
    tangents = [np.cos(x) for x in args if x.dtype.kind == "f"]
    slope = results(jvp(short, active).program, [*args, *tangents])[1]
    assert_close([slope], [sum(np.sum(g * t) for g, t in zip(expected[1:], tangents, strict=True))], 1e-11)


def check_batched(case: PythonLoop) -> None:
    program, args = traced(case.loss, case.args)
    active = floats(args)
    derived = gradient(rolled(program), active, False)
    lanes = [[x * (1.0 - 0.2 * i) if f else x for x, f in zip(args, active, strict=True)] for i in range(LANES)]
    batched = batch(derived, LANES, active, (True,) * len(derived.outputs)).program.check()
    stacked = [np.stack([lane[i] for lane in lanes]) if f else args[i] for i, f in enumerate(active)]
    found = results(batched, stacked)
    for i, lane in enumerate(lanes):
        assert_close([y[i] for y in found], results(derived, lane))


def check_compiled(case: PythonLoop) -> None:
    program, args = traced(case.loss, case.args)
    short = rolled(program)
    if short is program:
        return
    derived = gradient(short, floats(args), True)
    assert_close(through_xla(derived, args), results(derived, args))


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_random_loops(first: int) -> None:
    found = 0
    for seed in range(first, first + 20):
        case = PythonLoop(seed)
        try:
            found += check_values(case) > 0
            if seed % EACH_DERIVED == 0:
                check_derivatives(case)
            if seed % 5 == 0:
                check_batched(case)
            if seed % EACH_COMPILED == 0:
                check_compiled(case)
        except Exception as error:
            error.add_note(f"seed {seed}:\n{case.source}")
            raise
    assert found >= 12


# Loops that people write


def of_steps(example: Example, steps: int) -> tuple[Program, list[Any]]:
    return traced(lambda *xs: example.function(steps, *xs), list(example.args(steps)))


@each(lambda e: e.name[0] < "m", example=GALLERY)
def test_gallery(example: Example) -> None:
    for steps in STEPS:
        program, args = of_steps(example, steps)
        short = rolled(program).check()
        assert_same_bits(results(short, args), results(program, args))
        if steps == STEPS[0] or not example.grows:
            assert size(short) == example.size
    if len(program.eqns) < 1000:
        active = floats(args)
        derived = (gradient(p, active, False) for p in (short, program))
        assert_close(*(results(p, args) for p in derived))


def test_little_work_on_arrays_that_lie_apart_is_no_loop() -> None:
    arrays: list[Any] = [np.full(10, float(i)) for i in range(30)]
    sums, _ = traced(lambda *xs: sum((x * x).sum() for x in xs), arrays)
    assert all(eqn.primitive is not scan for eqn in rolled(sums).eqns)

    def steps(*xs: Any) -> Any:
        y = xs[0]
        for x in xs:
            y = np.sin(y * x) + np.cos(y - x) * np.exp(-y * y) + 0.1 * y
        return y

    assert len(rolled(traced(steps, arrays)[0]).eqns) < 40


@pytest.mark.parametrize(("length", "loops"), [(8, 1), (256, 0)])
def test_few_independent_steps_on_large_arrays_are_no_loop(length: int, loops: int) -> None:
    """The heads of an attention."""

    def heads(x: Any, queries: Any, keys: Any) -> Any:
        found = []
        for h in range(8):
            part = slice(2 * h, 2 * h + 2)
            weights = np.exp((x @ queries[:, part]) @ (x @ keys[:, part]).T / 3.0)
            found.append(np.tanh(weights / np.sum(weights, 1, keepdims=True)) @ x)
        return np.concatenate(found, axis=1)

    program, _ = traced(heads, [np.ones((length, 16)), np.ones((16, 16)), np.ones((16, 16))])
    assert sum(eqn.primitive is scan for eqn in rolled(program).eqns) == loops
