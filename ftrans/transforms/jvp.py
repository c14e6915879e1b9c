"""jvp: a program -> the program that also computes the directional derivative of its outputs.

Every equation is replaced by what its primitive's jvp rule records.  A tangent that is zero is absent, so
equations that do not depend on an active input stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.interpret import interpret
from ..core.program import Const, Eqn, Program, ProgramError, literal
from ..core.source import Line, at_line, attributed_to
from ..core.trace import Builder, Tracer, building, definition, repeat

Flags = tuple[bool, ...]
Dual = tuple[Tracer, Tracer | None]


class Jvp(NamedTuple):
    """The differentiated program, and which outputs have a tangent.

    Its inputs are those of the original, then the tangents of the active ones; its outputs are those of the
    original, then the tangents that are not zero.
    """

    program: Program
    out_active: Flags


def jvp(program: Program, active: Flags, wanted: Flags | None = None) -> Jvp:
    """Differentiate `program` along its inputs flagged in `active`.

    Args:
        program: the program.
        active: which inputs have a tangent.
        wanted: which outputs get a tangent even where it is zero; none by default.
    """
    wanted = wanted if wanted is not None else (False,) * len(program.outputs)
    return program.derive(("jvp", active, wanted), lambda: _jvp(program, active, wanted))


def _jvp(program: Program, active: Flags, wanted: Flags) -> Jvp:
    tangent_types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    builder = Builder([*program.in_types, *tangent_types])
    with building(builder):
        inputs = builder.inputs()
        tangents = iter(inputs[len(active) :])
        duals: list[Dual] = [(x, next(tangents) if a else None) for x, a in zip(inputs, active, strict=False)]
        outs = interpret(program, duals, _apply, lambda const: (_tracer(builder, const), None))
        outs = [
            (y, Tracer(builder, literal(0, y.type)) if t is None and w else t)
            for (y, t), w in zip(outs, wanted, strict=True)
        ]
        out_active = tuple(t is not None for _, t in outs)
        results = [y for y, _ in outs] + [t for _, t in outs if t is not None]
        return Jvp(builder.finish(results, f"jvp({program.name})"), out_active)


def _attribute_values(outs: Sequence[Tracer], derived: Line | None, line: Line | None) -> None:
    """Say that what computes the values is what the user wrote, unlike what computes their tangents."""
    for y in outs:
        made = definition(y)
        if made is not None and made.line is derived:
            made.line = line


def _tracer(builder: Builder, const: Const) -> Tracer:
    return Tracer(builder, const)


def _apply(eqn: Eqn, operands: list[Dual]) -> Sequence[Dual]:
    primals = [x for x, _ in operands]
    tangents = [t for _, t in operands]
    if not any([t is not None for t in tangents]):
        return [(y, None) for y in repeat(eqn, primals)]
    line = eqn.line and eqn.line.differentiated(eqn.primitive.name)
    with attributed_to(line):
        outs, out_tangents = eqn.primitive.jvp(primals, tangents, **eqn.params)
    _attribute_values(outs if eqn.primitive.multiple_results else [outs], line, eqn.line)
    duals: list[Dual] = (
        list(zip(outs, out_tangents, strict=True)) if eqn.primitive.multiple_results else [(outs, out_tangents)]
    )
    for y, t in duals:
        if t is not None and t.type is not y.type:
            raise ProgramError(
                f"the jvp rule of {eqn.primitive.name} gives a tangent {t.type} for a result {y.type}"
                + at_line(eqn.line)
            )
    return duals
