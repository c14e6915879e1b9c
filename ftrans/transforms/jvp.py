"""jvp: a program -> the program that also computes the directional derivative of its outputs.

Every equation is replaced by what its primitive's jvp rule records.  A tangent that is zero is absent, so
equations that do not depend on an active input stay as they are.  Zeros that come from a choice are put in as late as
possible: see `masks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.source import Line, at_line, attributed_to
from ..core.interpret import interpret, repeat
from ..core.program import Const, Eqn, Program, ProgramError, Var, literal
from ..core.trace import Builder, Tracer, building, definition
from ..ops.elementwise import Elementwise, integer_pow, mul, square
from .masked import (
    Tangent,
    condition_types,
    conditions_of,
    handed_over,
    recorded,
    which_masked,
    whole,
    with_conditions,
    without_unused_conditions,
)
from .masks import forward, forward_through_square
from .simplify import condense

Flags = tuple[bool, ...]
Dual = tuple[Tracer, Tangent | None]


class Jvp(NamedTuple):
    """The differentiated program, which outputs have a tangent, and for which masked tangents it takes a condition.

    Its inputs are those of the original, then the tangents of the active ones, then conditions; its outputs are those
    of the original, then the tangents that are not zero, then a condition for each that is in `out_masks`.
    """

    program: Program
    out_active: Flags
    masks: Flags
    out_masks: Flags


def jvp(program: Program, active: Flags, wanted: Flags | None = None, masked: Flags | None = None) -> Jvp:
    """Differentiate `program` along its inputs flagged in `active`.

    Args:
        program: the program.
        active: which inputs have a tangent.
        wanted: which outputs get a tangent even where it is zero; none by default.
        masked: which of the tangents have a mask; none by default.
    """
    wanted = wanted if wanted is not None else _none(program)
    masked = masked if masked is not None else (False,) * active.count(True)
    return program.derive(("jvp", active, wanted, masked), lambda: _jvp(program, active, wanted, masked))


def jvp_along(program: Program, tangents: Sequence[Tangent | None]) -> tuple[Jvp, list[Tracer]]:
    """Differentiate `program` along tangents that may have masks; also what the result takes for them.

    The tangents that it returns may have masks, too.
    """
    active, masked = tuple(t is not None for t in tangents), which_masked(tangents)
    derived = program.derive(("jvp along", active, masked), lambda: _jvp(program, active, _none(program), masked, True))
    return derived, handed_over(tangents, derived.masks)


def _none(program: Program) -> Flags:
    return (False,) * len(program.outputs)


def _jvp(program: Program, active: Flags, wanted: Flags, masked: Flags, hands_out: bool = False) -> Jvp:
    program = condense(program)
    for primitive in dict.fromkeys(eqn.primitive for eqn in program.eqns):
        program = primitive.before_differentiating(program, active)
    tangent_types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    builder = Builder([*program.in_types, *tangent_types, *condition_types(tangent_types, masked)])
    with building(builder):
        inputs = builder.inputs()
        tangents = with_conditions(inputs[len(active) :], masked)
        duals: list[Dual] = [(x, next(tangents) if a else None) for x, a in zip(inputs, active, strict=False)]
        found = interpret(program, duals, _Application(), lambda const: (_tracer(builder, const), None))
        outs = [
            Tracer(builder, literal(0, y.type)) if t is None and w else t
            for (y, t), w in zip(found, wanted, strict=True)
        ]
        out_masks = which_masked(outs) if hands_out else ()
        results = [
            *(y for y, _ in found),
            *(recorded(t) for t in outs if t is not None),
            *(conditions_of(outs) if hands_out else ()),
        ]
        derived, masks = without_unused_conditions(builder.finish(results, f"jvp({program.name})"), masked)
        return Jvp(derived, tuple(t is not None for t in outs), masks, out_masks)


def _attribute_values(outs: Sequence[Tracer], derived: Line | None, line: Line | None) -> None:
    """Say that what computes the values is what the user wrote, unlike what computes their tangents."""
    for y in outs:
        made = definition(y)
        if made is not None and made.line is derived:
            y.builder.tape.attribute(made, line)


def _tracer(builder: Builder, const: Const) -> Tracer:
    return Tracer(builder, const)


class _Application:
    """What differentiating does with one equation after the other."""

    def __init__(self) -> None:
        # Results that are lengths, with the operands that they were made of, and their tangents.
        self.lengths: dict[Var, tuple[Elementwise, Sequence[Tracer], Sequence[Tangent | None]]] = {}

    def __call__(self, eqn: Eqn, operands: list[Dual]) -> Sequence[Dual]:
        primals = [x for x, _ in operands]
        tangents = [t for _, t in operands]
        primitive, params = eqn.primitive, eqn.params
        if not any([t is not None for t in tangents]):
            return [(y, None) for y in repeat(eqn, primals)]
        line = eqn.line and eqn.line.differentiated(primitive.name)
        with attributed_to(line):
            if primitive.multiple_results:
                given: Any = tangents if primitive.takes_masks else [whole(t) for t in tangents]
                outs, out_tangents = primitive.jvp(primals, given, **params)
            else:
                out, tangent = self._single(eqn, primals, tangents)
                outs, out_tangents = [out], [tangent]
        _attribute_values(outs, line, eqn.line)
        duals: list[Dual] = list(zip(outs, out_tangents, strict=True))
        for y, t in duals:
            if t is not None and t.type is not y.type:
                raise ProgramError(
                    f"the jvp rule of {primitive.name} gives a tangent {t.type} for a result {y.type}"
                    + at_line(eqn.line)
                )
        return duals

    def _single(self, eqn: Eqn, primals: Sequence[Tracer], tangents: Sequence[Tangent | None]) -> Any:
        """The result of an equation that has one, and its tangent."""
        primitive = eqn.primitive
        if isinstance(primitive, Elementwise):
            if primitive.square is not None:
                self.lengths[eqn.outputs[0]] = primitive, primals, tangents
            elif self.lengths and _is_square(eqn):
                length = self.lengths.get(eqn.operands[0])  # type: ignore[arg-type]
                if length is not None:
                    # The square of a length is smooth also where the length is not: at 0.
                    return forward_through_square(length[0], repeat(eqn, primals)[0], *length[1:])
        return forward(primitive, primals, tangents, eqn.params)


def _is_square(eqn: Eqn) -> bool:
    """Whether an equation squares its first operand."""
    if eqn.primitive is mul:
        return eqn.operands[0] is eqn.operands[1]
    return eqn.primitive is square or (eqn.primitive is integer_pow and eqn.params["exponent"] == 2)
