"""Exposed: a program whose taps are inputs and outputs, so that their values can be shifted and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...base import tree
from ...base.source import Line, at_line, attributed_to
from ...core.interpret import inline, interpret
from ...core.program import Eqn, Program, programs_in
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType, is_inexact
from ...ops.elementwise import add
from ...ops.literals import full
from ..call import call
from ..checkpoints.checkpoint import checkpoint
from ..cond import cond
from ..loops.scan import scan
from ..loops.while_loop import while_
from ..subprograms import cut
from .tap import tap


class Place(NamedTuple):
    """One tap in a program.

    Attributes:
        name: the name that the user gave.
        leaf: index of the value among the leaves of the tapped container.
        structure: structure of the container.
        type: type of the value, with a leading axis for each enclosing loop.
        line: the user's line.
    """

    name: str
    leaf: int
    structure: tree.Structure
    type: ArrayType
    line: Line | None

    @property
    def is_differentiable(self) -> bool:
        """Whether the value has a gradient, so that a shift can be added to it."""
        return is_inexact(self.type.dtype)


class Exposed(NamedTuple):
    """A program whose taps are inputs and outputs.

    Attributes:
        program: takes the inputs of the original, then a shift for each differentiable tap, which is added to its
            value; returns the outputs of the original, then the values of all taps.
        places: the taps.
    """

    program: Program
    places: tuple[Place, ...]


def expose(program: Program) -> Exposed:
    """Expose the taps of `program` and of its sub-programs."""
    return program.derive("exposed taps", lambda: _expose(program))


def _expose(program: Program) -> Exposed:
    places = [_places(eqn) for eqn in program.eqns]
    every = tuple(place for group in places for place in group)
    if not every:
        return Exposed(program, ())
    builder = Builder([*program.in_types, *(place.type for place in every if place.is_differentiable)])
    values: list[Tracer] = []
    with building(builder):
        inputs, shifts = cut(builder.inputs(), len(program.inputs))
        remaining, groups = iter(shifts), iter(places)

        def apply(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
            group = next(groups)
            if not group:
                return builder.repeat(eqn, operands)
            mine = [next(remaining) for place in group if place.is_differentiable]
            with attributed_to(eqn.line):
                results, found = cut(_exposed(eqn, operands, mine), len(eqn.outputs))
            values.extend(found)
            return results

        outs = interpret(program, inputs, apply, lambda const: Tracer(builder, const))
        return Exposed(builder.finish([*outs, *values], program.name), every)


def _places(eqn: Eqn) -> tuple[Place, ...]:
    """The taps in one equation."""
    params = eqn.params
    if eqn.primitive is tap:
        return (Place(params["name"], params["leaf"], params["structure"], eqn.outputs[0].type, eqn.line),)
    found = tuple(place for program in programs_in(params) for place in expose(program).places)
    if found and eqn.primitive is scan:
        return tuple(p._replace(type=p.type.with_shape((params["length"], *p.type.shape))) for p in found)
    if found and eqn.primitive not in (call, checkpoint, cond):
        raise _hidden(found[0], eqn)
    return found


def _hidden(place: Place, eqn: Eqn) -> NotImplementedError:
    if eqn.primitive is while_:
        why = (
            "the body of a while_loop, whose number of steps is not known in advance, so no array can hold the "
            "values of all steps; use ftrans.scan, or ftrans.fori_loop with plain integers for bounds"
        )
    else:
        why = (
            f"an equation {eqn.primitive.name!r}, whose derivative comes from a custom rule and not from its "
            "own equations; tap its arguments or its results"
        )
    return NotImplementedError(f"the tap {place.name!r} is inside {why}{at_line(place.line)}")


def _exposed(eqn: Eqn, operands: Sequence[Tracer], shifts: Sequence[Tracer]) -> list[Tracer]:
    """Record an equation with its taps exposed; return its results, then the values of its taps."""
    if eqn.primitive is tap:
        shifted = add(operands[0], *shifts) if shifts else operands[0]
        return [shifted, shifted]
    if eqn.primitive is cond:
        return cond(*operands, *shifts, branches=_exposed_branches(eqn.params["branches"]))
    program = expose(eqn.params["program"]).program
    return eqn.primitive.bind_all([*operands, *shifts], {**eqn.params, "program": program})


def _exposed_branches(branches: Sequence[Program]) -> tuple[Program, ...]:
    """Branches that take the shifts and return the values of the taps in all branches: zeros for those not taken."""
    exposed = [expose(branch) for branch in branches]
    counts = [sum(place.is_differentiable for place in e.places) for e in exposed]
    shift_types = [place.type for e in exposed for place in e.places if place.is_differentiable]
    found = []
    for number, mine in enumerate(exposed):
        branch = branches[number]
        builder = Builder([*branch.in_types, *shift_types])
        with building(builder):
            operands, *groups, _ = cut(builder.inputs(), len(branch.inputs), *counts)
            results, own = cut(inline(mine.program, [*operands, *groups[number]]), len(branch.outputs))
            values = [
                own if e is mine else [full(place.type.shape, 0, place.type.dtype) for place in e.places]
                for e in exposed
            ]
            found.append(builder.finish([*results, *(x for group in values for x in group)], branch.name))
    return tuple(found)
