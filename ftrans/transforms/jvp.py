"""jvp: a program -> the program that also computes the directional derivative of its outputs.

Every equation is replaced by the equations that its primitive's jvp rule records.  None stands for a zero tangent, so
equations that do not depend on an active input stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.source import Line, at_line, attributed_to
from ..core.interpret import interpret, repeat
from ..core.primitive import Tangent
from ..core.program import Atom, Eqn, Params, Program, ProgramError, Var, literal
from ..core.tape import Tape
from ..core.trace import Builder, Tracer, building, definition
from ..ops.elementwise import Elementwise, integer_pow, mul, square
from ..ops.elementwise.family import combined
from .choices import with_choices_last
from .simplify import for_differentiation

Flags = tuple[bool, ...]
Dual = tuple[Tracer, Tangent]


class Jvp(NamedTuple):
    """The differentiated program, and which outputs have a tangent.

    Its inputs are those of the original, then the tangents of the active ones; its outputs are those of the original,
    then the tangents that are not zero.
    """

    program: Program
    out_active: Flags


def jvp(program: Program, active: Flags, wanted: Flags | None = None, choices_last: bool = True) -> Jvp:
    """Differentiate `program` along its inputs flagged in `active`.

    Args:
        program: the program.
        active: which inputs have a tangent.
        wanted: which outputs get a tangent even where it is zero; none by default.
        choices_last: make choices last; False if the result will be transposed, or is part of a program for which this
            pass runs later.
    """
    wanted = wanted if wanted is not None else (False,) * len(program.outputs)
    return program.derive(("jvp", active, wanted, choices_last), lambda: _jvp(program, active, wanted, choices_last))


def _jvp(program: Program, active: Flags, wanted: Flags, choices_last: bool) -> Jvp:
    program = prepared(program, active)
    tangent_types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    tape = _ValuesAndTangents([*program.inputs, *tangent_types], program.eqns)
    builder = Builder(tape)
    with building(builder):
        inputs = builder.inputs()
        tangents = iter(inputs[len(active) :])
        duals: list[Dual] = [(x, next(tangents) if a else None) for x, a in zip(inputs, active, strict=False)]
        found = interpret(program, duals, _Application(tape), lambda const: (Tracer(builder, const), None))
        outs = [
            Tracer(builder, literal(0, y.type)) if t is None and w else t
            for (y, t), w in zip(found, wanted, strict=True)
        ]
        derived = builder.finish([*(y for y, _ in found), *(t for t in outs if t is not None)], f"jvp({program.name})")
    if choices_last:
        is_tangent = (False,) * len(active) + (True,) * active.count(True)
        derived = with_choices_last(derived, is_tangent, forward=True)
    return Jvp(derived, tuple(t is not None for t in outs))


def prepared(program: Program, active: Flags) -> Program:
    """The program as its primitives want it before it is differentiated along its inputs flagged in `active`."""
    program = for_differentiation(program)
    for primitive in dict.fromkeys(eqn.primitive for eqn in program.eqns):
        program = primitive.before_differentiating(program, active)
    return program


class _ValuesAndTangents(Tape):
    """A tape for jvp rules, on which the value of an equation is that equation itself.

    Attributes:
        differentiated: the equation whose rule runs.
    """

    differentiated: Eqn

    def add(self, primitive: Any, atoms: Sequence[Atom], params: Params, line: Line | None) -> Eqn:
        eqn = self.differentiated
        if primitive is eqn.primitive and tuple(atoms) == eqn.operands and params == eqn.params:
            return self.repeat(eqn, atoms)
        return super().add(primitive, atoms, params, line)


class _Application:
    """Differentiates one equation after another."""

    def __init__(self, tape: _ValuesAndTangents) -> None:
        self._tape = tape
        # Results that are Euclidean lengths, with their operands and the tangents of these.
        self.lengths: dict[Var, tuple[Elementwise, Sequence[Tracer], Sequence[Tangent]]] = {}

    def __call__(self, eqn: Eqn, operands: list[Dual]) -> Sequence[Dual]:
        primals = [x for x, _ in operands]
        tangents = [t for _, t in operands]
        primitive, params = eqn.primitive, eqn.params
        if all([t is None for t in tangents]):
            return [(y, None) for y in repeat(eqn, primals)]
        self._tape.differentiated = eqn
        line = eqn.line and eqn.line.differentiated(primitive.name)
        with attributed_to(line):
            if primitive.multiple_results:
                duals: list[Dual] = list(zip(*primitive.jvp(primals, tangents, **params), strict=True))
            else:
                duals = [self._single(eqn, primals, tangents)]
        for y, t in duals:
            # Other equations that compute values get the user's line back; those of tangents keep the derived line.
            made = None if y.atom in eqn.outputs else definition(y)
            if made is not None and made.line is line:
                self._tape.attribute(made, eqn.line)
            if t is not None and t.atom.type is not y.atom.type:
                raise ProgramError(
                    f"the jvp rule of {primitive.name} gives a tangent {t.type} for a result {y.type}"
                    + at_line(eqn.line)
                )
        return duals

    def _single(self, eqn: Eqn, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> Any:
        """The result of an equation that has one, and its tangent."""
        primitive = eqn.primitive
        if isinstance(primitive, Elementwise):
            if primitive.square is not None:
                self.lengths[eqn.outputs[0]] = primitive, primals, tangents
            elif self.lengths and is_square(eqn):
                length = self.lengths.get(eqn.operands[0])  # type: ignore[arg-type]
                if length is not None:
                    # The square of a length is smooth even at 0, where the length is not.
                    return repeat(eqn, primals)[0], _tangent_of_square(*length)
        return primitive.jvp(primals, tangents, **eqn.params)


def _tangent_of_square(length: Elementwise, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> Tangent:
    """The tangent of the square of a length, from the operands of the length and their tangents."""
    assert length.square is not None
    return combined(length.square(*primals), tangents)


def is_square(eqn: Eqn) -> bool:
    """Whether an equation squares its first operand."""
    if eqn.primitive is mul:
        return eqn.operands[0] is eqn.operands[1]
    return eqn.primitive is square or (eqn.primitive is integer_pow and eqn.params["exponent"] == 2)
