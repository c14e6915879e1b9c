"""Partial derivatives of elementwise primitives, as programs of the operands, made from their own jvp rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...control.rules.linearity import is_zero
from ...control.subprograms import with_outputs
from ...core.interpret import inline
from ...core.primitive import MissingRule
from ...core.program import Eqn, Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops.elementwise import Elementwise
from ...ops.literals import full_like
from ...ops.special.family import Special
from ...transforms.jvp import jvp
from ...transforms.simplify import simplify
from ..entries import NotStructured
from ..made_once import made_once, with_number

# Primitives that act on each element by itself.
OnElements = Elementwise | Special


class First(NamedTuple):
    """First partial derivatives of an equation.

    Attributes:
        program: of the operands; an output for each partial derivative that is not zero everywhere.
        wrt: for each output, the position of the operand.
    """

    program: Program
    wrt: tuple[int, ...]


class Second(NamedTuple):
    """Second partial derivatives of an equation, each pair once.

    Attributes:
        program: of the operands; an output for each that is not zero everywhere.
        wrt: for each output, the positions of the two operands, in ascending order.
    """

    program: Program
    wrt: tuple[tuple[int, int], ...]


def first_partials(eqn: Eqn, active: Sequence[bool]) -> First:
    """The partial derivatives of an elementwise equation with respect to its active operands."""
    return _cached("first", eqn, active, _first)


def second_partials(eqn: Eqn, active: Sequence[bool]) -> Second:
    """The second partial derivatives of an elementwise equation with respect to its active operands."""
    return _cached("second", eqn, active, _second)


def _cached(kind: str, eqn: Eqn, active: Sequence[bool], make: Callable[[Eqn, tuple[bool, ...]], Any]) -> Any:
    try:
        return made_once(kind, eqn, active, lambda: make(eqn, tuple(active)))
    except MissingRule as error:
        raise NotStructured(f"a partial derivative of {eqn.primitive.name} is not known ({error})") from None


def _first(eqn: Eqn, active: tuple[bool, ...]) -> First:
    primitive: OnElements = eqn.primitive
    types: list[ArrayType] = [a.type for a in eqn.operands]
    builder = Builder(types)
    found: list[Tracer] = []
    wrt: list[int] = []
    with building(builder):
        operands = [with_number(x, a) for x, a in zip(builder.inputs(), eqn.operands, strict=True)]
        for i, is_active in enumerate(active):
            if not is_active:
                continue
            tangents = [full_like(x, 1) if i == j else None for j, x in enumerate(operands)]
            _, tangent = primitive.jvp(operands, tangents, **eqn.params)
            if tangent is not None:
                found.append(tangent)
                wrt.append(i)
        program = simplify(builder.finish(found, f"partials({primitive.name})"))
    kept = [i for i, atom in enumerate(program.outputs) if not is_zero(atom)]
    return First(_with_outputs(program, kept), tuple(wrt[i] for i in kept))


def _second(eqn: Eqn, active: tuple[bool, ...]) -> Second:
    first = first_partials(eqn, active)
    types: list[ArrayType] = [a.type for a in eqn.operands]
    builder = Builder(types)
    found: list[Any] = []
    wrt: list[tuple[int, int]] = []
    with building(builder):
        operands = [with_number(x, a) for x, a in zip(builder.inputs(), eqn.operands, strict=True)]
        for j, is_active in enumerate(active):
            if not is_active:
                continue
            derived = jvp(first.program, tuple(i == j for i in range(len(types))))
            outs = inline(derived.program, [*operands, full_like(operands[j], 1)])
            tangents = iter(outs[len(first.wrt) :])
            for i, is_on in zip(first.wrt, derived.out_active, strict=True):
                tangent = next(tangents) if is_on else None
                if tangent is not None and i <= j:
                    found.append(tangent)
                    wrt.append((i, j))
        program = simplify(builder.finish(found, f"second_partials({eqn.primitive.name})"))
    kept = [i for i, atom in enumerate(program.outputs) if not is_zero(atom)]
    return Second(_with_outputs(program, kept), tuple(wrt[i] for i in kept))


def _with_outputs(program: Program, kept: Sequence[int]) -> Program:
    return simplify(with_outputs(program, tuple([program.outputs[i] for i in kept])))
