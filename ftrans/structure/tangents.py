"""The tangent of one equation as a program, made from the jvp rule of its primitive."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ..core.primitive import Tangent
from ..core.program import Const, Eqn, Program, programs_in
from ..core.trace import Builder, Tracer, building
from ..ops.elementwise import Elementwise
from ..ops.elementwise.family import combined
from ..ops.literals import full_like
from ..transforms.simplify import condense

_CACHE_SIZE = 10_000
_cache: dict[Hashable, TangentProgram] = {}


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
    operands = eqn.operands
    same = tuple([operands.index(a) for a in operands])
    numbers = tuple([a if isinstance(a, Const) and a.is_splat else None for a in operands])
    types = tuple([a.type for a in operands])
    key = (eqn.primitive, types, same, numbers, tuple(active), of_square, *eqn.params.items())

    def make() -> TangentProgram:
        return _made(eqn, tuple(active), same, of_square)

    holder = next(programs_in(eqn.params), None)
    if holder is not None:
        return holder.derive(("tangent", key), make)
    if key not in _cache:
        if len(_cache) > _CACHE_SIZE:
            _cache.clear()
        _cache[key] = make()
    return _cache[key]


def _made(eqn: Eqn, active: tuple[bool, ...], same: tuple[int, ...], of_square: bool) -> TangentProgram:
    primitive = eqn.primitive
    types = [a.type for a in eqn.operands]
    builder = Builder([*types, *(t for t, a in zip(types, active, strict=True) if a)])
    with building(builder):
        inputs = builder.inputs()
        # An equation may know that two of its operands are one variable.
        operands = [_operand(inputs[i], a) for i, a in zip(same, eqn.operands, strict=True)]
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


def _operand(x: Tracer, atom: object) -> Tracer:
    """An operand of the equation: a number, which simplifies the program, or an input."""
    return full_like(x, atom.value) if isinstance(atom, Const) and atom.is_splat else x
