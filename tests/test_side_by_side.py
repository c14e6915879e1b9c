"""Equal operations on other operands as one: the same numbers, of programs that are much shorter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from random_programs import TYPES, random_arguments, random_program

import ftrans as ft
from ftrans.api import paths
from ftrans.control.rolling import side_by_side as module
from ftrans.control.rolling.side_by_side import _Stacking, side_by_side
from ftrans.core.interpret import inline
from ftrans.core.program import Program
from ftrans.core.trace import Builder, Tracer, building
from ftrans.core.types import ArrayType
from ftrans.ops.elementwise import add
from ftrans.ops.parts import slice_
from ftrans.ops.shapes import reshape
from ftrans.transforms.differentiate import gradient
from ftrans.transforms.simplify import for_compiler

COPIES = 5
SEEDS = range(400 if tables.whole else 20)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be stacked is stacked, in programs of any length, and kept."""
    monkeypatch.setattr(module, "_SHORT", 0)
    monkeypatch.setattr(module, "_WORTH", 100.0)


def repeated(program: Program, order: np.ndarray[Any, Any]) -> Program:
    """A program applied to rows of its inputs, in some order, and to its own results for these."""
    wide = [ArrayType((COPIES * 2, *t.shape), t.dtype) for t in TYPES]
    builder = Builder(wide)

    def row(x: Tracer, i: int) -> Tracer:
        start, limit = (i, *(0,) * (x.ndim - 1)), (i + 1, *x.shape[1:])
        return reshape(slice_(x, start=start, limit=limit, strides=(1,) * x.ndim), shape=x.shape[1:])

    with building(builder):
        inputs = builder.inputs()
        total, others = None, []
        for i in order:
            first = [row(x, int(i)) for x in inputs]
            value, other = inline(program, first)
            again, _ = inline(program, [add(first[0], other), first[1]]) if other.type == first[0].type else (value, 0)
            total = value if total is None else add(total, value)
            total = add(total, again)
            others.append(other)
        assert total is not None
        return builder.finish([total, *others], "repeated").check()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", ["in steps", "shuffled"])
def test_random_programs_several_times(kind: str) -> None:
    stacked = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        order = np.arange(0, 2 * COPIES, 2) if kind == "in steps" else rng.permutation(2 * COPIES)[:COPIES]
        program = repeated(random_program(seed), order)
        copies = [random_arguments(seed + 7 * i) for i in range(2 * COPIES)]
        arguments = [np.stack(xs) for xs in zip(*copies, strict=True)]
        for form in program, gradient(program, (True, True), True):
            before = for_compiler(form)
            after = side_by_side(before).check()
            stacked += max(map(len, _Stacking(before).groups)) >= COPIES
            assert after.in_types == before.in_types
            for a, b in zip(after(*arguments), before(*arguments), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11, err_msg=f"seed {seed}")
    assert stacked > len(SEEDS)


def legs(angles: Any, lengths: Any, scale: float = 0.3) -> Any:
    """The feet of six legs of three joints each."""
    feet = []
    for leg in range(6):
        turn, place = np.eye(2), np.zeros(2)
        for joint in range(3):
            angle = angles[3 * leg + joint] + scale * joint
            c, s = np.cos(angle), np.sin(angle)
            turn = turn @ np.stack([np.stack([c, -s]), np.stack([s, c])])
            place = place + turn @ lengths[leg, joint]
        feet.append(place)
    return np.stack(feet)


ANGLES, LENGTHS = np.linspace(-1.0, 2.0, 18), np.sin(np.arange(36.0)).reshape(6, 3, 2)


def compiled(f: Callable[..., Any], *arguments: Any) -> tuple[Any, Program]:
    """The result of a compiled function, and the program that was compiled."""
    found: list[Program] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "side_by_side", lambda p: found.append(side_by_side(p)) or found[-1])
        result = ft.jit(f)(*arguments)
    return result, found[-1]


@pytest.mark.usefixtures("always")
def test_legs_of_a_walker_are_one() -> None:
    derivatives = ft.jacfwd(legs), ft.grad(lambda angles, lengths: np.sum(legs(angles, lengths) ** 3))
    for f in legs, *derivatives:
        result, program = compiled(f, ANGLES, LENGTHS)
        np.testing.assert_allclose(result, f(ANGLES, LENGTHS), rtol=1e-12, atol=1e-12)
        sines = [eqn for eqn in program.eqns if eqn.primitive.name == "sin"]
        assert {eqn.outputs[0].type.size for eqn in sines} == {6}
        assert len(sines) == 3


def test_short_programs_stay_as_they_are() -> None:
    program = for_compiler(ft.trace(legs)(ANGLES, LENGTHS))
    assert side_by_side(program) is program


@pytest.mark.usefixtures("always")
def test_what_depends_on_one_another_is_not_one() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = np.sin(x) * x
        return x

    program = for_compiler(ft.trace(chain)(0.5))
    assert [e.primitive.name for e in side_by_side(program).eqns] == [e.primitive.name for e in program.eqns]


@pytest.mark.usefixtures("always")
def test_large_arrays_are_not_copied_to_be_stacked() -> None:
    def f(x: Any) -> Any:
        return [np.sin(np.cos(row)) for row in x]

    program = for_compiler(ft.trace(f)(np.ones((5, 3000))))
    assert {*side_by_side(program).eqns} == {*program.eqns}


@pytest.mark.usefixtures("always")
def test_constants_that_differ_are_stacked() -> None:
    def f(x: Any) -> Any:
        return np.stack([np.sin(x[i] * (i + 0.5)) * np.exp(x[i]) + i for i in range(8)])

    x = np.linspace(0.0, 1.0, 8)
    result, program = compiled(ft.grad(lambda x: np.sum(f(x))), x)
    np.testing.assert_allclose(result, ft.grad(lambda x: np.sum(f(x)))(x), rtol=1e-13)
    assert len(program.eqns) < 12


@pytest.mark.usefixtures("always")
def test_results_that_are_used_in_another_order() -> None:
    def f(x: Any) -> Any:
        sines = [np.sin(x[i]) for i in range(6)]
        return np.stack([np.exp(sines[i] - 2.0 * sines[-i]) for i in range(6)])

    x = np.linspace(0.0, 1.0, 6)
    result, program = compiled(f, x)
    np.testing.assert_allclose(result, f(x), rtol=1e-13)
    assert [eqn.primitive.name for eqn in program.eqns].count("sin") == 1
