"""The tangent of one equation as a program, made from the jvp rule of its primitive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.primitive import Tangent
from ...core.program import Eqn, Program
from ...core.trace import Builder, building
from ...ops.elementwise import Elementwise
from ...ops.elementwise.family import combined
from ...transforms.simplify import condense
from ..made_once import made_once, with_number


class TangentProgram(NamedTuple):
    """The tangents of the results of an equation.

    Attributes:
        program: of the operands, then the tangents of the active ones; an output for each result that has a tangent.
        out_active: which results have one.
        is_linear: whether the active operands do not matter, so that the equation is linear in all of them together.
    """

    program: Program
    out_active: tuple[bool, ...]
    is_linear: bool


def tangent_program(eqn: Eqn, active: Sequence[bool], of_square: bool = False) -> TangentProgram:
    """The tangents of an equation along its active operands.

    Args:
        eqn: the equation.
        active: which operands have a tangent.
        of_square: whether the tangent of the square of the result is wanted instead, of a primitive that states it.
    """
    what = "tangent of the square" if of_square else "tangent"
    found: TangentProgram = made_once(what, eqn, active, lambda: _made(eqn, tuple(active), of_square))
    return found


def _made(eqn: Eqn, active: tuple[bool, ...], of_square: bool) -> TangentProgram:
    primitive = eqn.primitive
    same = [eqn.operands.index(a) for a in eqn.operands]
    types = [a.type for a in eqn.operands]
    builder = Builder([*types, *(t for t, a in zip(types, active, strict=True) if a)])
    with building(builder):
        inputs = builder.inputs()
        # An equation may know that two of its operands are one variable.
        operands = [with_number(inputs[i], a) for i, a in zip(same, eqn.operands, strict=True)]
        given = iter(inputs[len(types) :])
        tangents = [next(given) if a else None for a in active]
        found: Sequence[Tangent]
        if of_square:
            assert isinstance(primitive, Elementwise)
            assert primitive.square is not None
            found = [combined(primitive.square(*operands), tangents)]
        elif primitive.multiple_results:
            _, found = primitive.jvp(operands, tangents, **eqn.params)
        else:
            found = [primitive.jvp(operands, tangents, **eqn.params)[1]]
        outputs = [t for t in found if t is not None]
        program = condense(builder.finish(outputs, f"tangent({primitive.name})"))
    used = {a for e in program.eqns for a in e.operands} | set(program.outputs)
    matters = [v in used and a for v, a in zip(program.inputs, active, strict=False)]
    return TangentProgram(program, tuple([t is not None for t in found]), not any(matters))
