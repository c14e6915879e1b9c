"""Programs that are right to differentiate, to any order, where eigenvalues or singular values are equal.

Before a program is differentiated, what it makes of values and vectors is put through limits (see
`limit.py`); `limit_series` makes the programs that compute them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import reduce
from typing import Any, NamedTuple

from ..base.source import attributed_to
from ..core.interpret import repeat
from ..core.program import Atom, Const, Eqn, Program, Var
from ..core.trace import Builder, Tracer, building
from ..core.types import is_inexact
from ..ops.elementwise import bitwise_or
from .decomposition import Decomposition
from .limit import limit
from .limit_series import series_of

Flags = tuple[bool, ...]


def with_limits(program: Program, active: Flags) -> Program:
    """The same program; its derivatives along the inputs flagged in `active` are right where values are equal."""
    program = _decomposing_once(program)
    moving = {v for v, a in zip(program.inputs, active, strict=True) if a}
    spectral: list[Eqn] = []
    for eqn in program.eqns:
        if not moving.isdisjoint(_vars(eqn)):
            moving.update(eqn.outputs)
            if isinstance(eqn.primitive, Decomposition):
                spectral.append(eqn)
    bare = {eqn for eqn in spectral if not eqn.params.get("with_limits")}
    return _with_limits(program, bare, _rests(program, bare, spectral, moving)) if bare else program


def _decomposing_once(program: Program) -> Program:
    """The program where nothing is decomposed twice, so that all that is made of it is seen together."""
    firsts: dict[Any, Eqn] = {}
    same: dict[Atom, Atom] = {}
    eqns: list[Eqn] = []
    for eqn in program.eqns:
        operands = tuple([same.get(a, a) for a in eqn.operands]) if same else eqn.operands
        if isinstance(eqn.primitive, Decomposition):
            first = firsts.setdefault((eqn.primitive, *operands, *eqn.params.items()), eqn)
            if first is not eqn:
                same.update(zip(eqn.outputs, first.outputs, strict=True))
                continue
        eqns.append(
            eqn if operands == eqn.operands else Eqn(eqn.primitive, operands, eqn.params, eqn.outputs, eqn.line)
        )
    if not same:
        return program
    return Program(program.name, program.inputs, eqns, [same.get(a, a) for a in program.outputs])


def _vars(eqn: Eqn) -> Iterator[Var]:
    return (a for a in eqn.operands if isinstance(a, Var))


class _Rest(NamedTuple):
    """How a variable is made of the results of equations that give values and vectors.

    Attributes:
        eqns: these equations.
        program: it takes the results of each and its operand, and then what else is used; it gives the variable.
    """

    eqns: list[Eqn]
    program: Program


def _rests(program: Program, bare: Set[Eqn], spectral: Sequence[Eqn], moving: Set[Var]) -> dict[Var, _Rest]:
    """What depends on the results of the bare equations and is an output, or an operand of a spectral equation.

    Since such operands go through a limit themselves, they count as independent in what follows.  All else that moves
    is followed back to the inputs of the program: a function need be smooth in these only.
    """
    operands = dict.fromkeys(v for eqn in spectral for v in _vars(eqn))
    results = {v for eqn in bare for v in eqn.outputs}
    made = set(results)
    makers: dict[Var, Eqn] = {}
    for eqn in program.eqns:
        if not made.isdisjoint(_vars(eqn)):
            made.update(eqn.outputs)
        if eqn not in bare and not moving.isdisjoint(eqn.outputs):
            makers.update(dict.fromkeys(eqn.outputs, eqn))
    place = {eqn: i for i, eqn in enumerate(dict.fromkeys(makers.values()))}

    def before(target: Var) -> list[Eqn]:
        """The equations that make a target of inputs, results and (but if it is one itself) operands."""
        found: set[Eqn] = set()
        waiting = [target]
        while waiting:
            v = waiting.pop()
            is_end = v in results or (v in operands and v is not target)
            if not is_end and v in makers and makers[v] not in found:
                found.add(makers[v])
                waiting.extend(_vars(makers[v]))
        return sorted(found, key=lambda eqn: place[eqn])

    rests = {}
    for target in dict.fromkeys([*operands, *(a for a in program.outputs if isinstance(a, Var))]):
        if target in made and is_inexact(target.type.dtype):
            eqns = before(target)
            taken = {target, *(v for eqn in eqns for v in _vars(eqn))}
            own = [eqn for eqn in spectral if eqn in bare and not taken.isdisjoint(eqn.outputs)]
            known = [v for eqn in own for v in (*eqn.outputs, *_vars(eqn))]
            given = {*known, *(v for eqn in eqns for v in eqn.outputs)}
            others = dict.fromkeys(v for eqn in eqns for v in _vars(eqn) if v not in given)
            rests[target] = _Rest(own, Program(program.name, [*known, *others], eqns, [target]))
    return {target: rest for target, rest in rests.items() if rest.eqns}


def _with_limits(program: Program, bare: Set[Eqn], rests: Mapping[Var, _Rest]) -> Program:
    builder = Builder(program.in_types)
    operands = {v for eqn in program.eqns if isinstance(eqn.primitive, Decomposition) for v in _vars(eqn)}
    with building(builder):
        values: dict[Var, Tracer] = dict(zip(program.inputs, builder.inputs(), strict=True))
        special: dict[Eqn, Tracer] = {}

        def value(atom: Atom) -> Tracer:
            return Tracer(builder, atom) if isinstance(atom, Const) else values[atom]

        def limited(target: Var) -> Tracer:
            rest = rests[target]
            with attributed_to(rest.eqns[0].line):
                of_any = reduce(bitwise_or, [special[eqn] for eqn in rest.eqns])
                at = [values[v] for v in rest.program.inputs]
                series = series_of([_primitive(eqn) for eqn in rest.eqns], rest.program)
                return limit(values[target], of_any, *at, series=series, directions=(), pulled=None)[0]

        for eqn in program.eqns:
            given = [value(a) for a in eqn.operands]
            if eqn in bare:
                with attributed_to(eqn.line):
                    results = eqn.primitive.bind_all(given, {**eqn.params, "with_limits": True})
                    special[eqn] = _primitive(eqn).is_special(results)
            else:
                results = repeat(eqn, given)
            values.update(zip(eqn.outputs, results, strict=True))
            for target in eqn.outputs:
                if target in operands and target in rests:
                    values[target] = limited(target)
        values.update([(target, limited(target)) for target in rests if target not in operands])
        return builder.finish([value(a) for a in program.outputs], program.name)


def _primitive(eqn: Eqn) -> Decomposition:
    assert isinstance(eqn.primitive, Decomposition)
    return eqn.primitive


class SpectralPrimitive(Decomposition):
    """A decomposition of which derivatives are limits where values are equal."""

    def before_differentiating(self, program: Program, active: Flags) -> Program:
        return with_limits(program, active)
