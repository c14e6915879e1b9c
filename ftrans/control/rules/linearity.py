"""Whether a program is linear in some of its inputs, decided per equation so that errors can name one.

An equation without sub-programs is linear in some operands if it has a transpose with respect to them, its derivative
along them does not depend on them, and it adds nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from ...base.source import attributed_to
from ...core.primitive import MissingRule
from ...core.program import Atom, Const, Eqn, Program, Var, programs_in
from ...core.trace import Builder, building
from ...core.types import is_inexact
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import simplify as simplify_program
from ...transforms.simplify import without_dead_code
from ...transforms.transpose import transpose as transpose_program
from ..convergence import required
from ..loops.while_loop import while_
from ..subprograms import Flags, chosen, cut, used_inputs
from .black_box import black_box


def is_zero(atom: Atom) -> bool:
    """Whether an atom is a constant filled with zeros."""
    return isinstance(atom, Const) and not np.any(atom.value)


class NotLinear(NamedTuple):
    """Why a value is not linear: the equation responsible, if there is one, and the reason."""

    eqn: Eqn | None
    what: str


class _Dependence(Enum):
    """How a value depends on the linear inputs, unless it depends on them nonlinearly (`NotLinear`)."""

    KNOWN = auto()
    ZERO = auto()
    LINEAR = auto()


_Kind = _Dependence | NotLinear
_KNOWN, _ZERO, _LINEAR = _Dependence.KNOWN, _Dependence.ZERO, _Dependence.LINEAR


def nonlinearity(program: Program, linear: Flags) -> NotLinear | None:
    """Why `program` is not jointly linear in the inputs flagged in `linear`; None if it is."""

    def find() -> NotLinear | None:
        kinds = _kinds(simplify_program(program), [_LINEAR if is_linear else _KNOWN for is_linear in linear])
        problem = _first_problem(kinds)
        if problem is None and _KNOWN in kinds:
            return NotLinear(None, "a result does not depend on it, and is not zero")
        return problem

    return program.derive(("nonlinearity", linear), find)


def _first_problem(kinds: Sequence[_Kind]) -> NotLinear | None:
    return next((k for k in kinds if isinstance(k, NotLinear)), None)


def _kinds(program: Program, inputs: Sequence[_Kind]) -> list[_Kind]:
    """Kinds of the outputs of `program`."""
    program = program.derive("without dead code", lambda: without_dead_code(program))
    kinds: dict[Var, _Kind] = dict(zip(program.inputs, inputs, strict=True))

    def kind(atom: Atom) -> _Kind:
        if isinstance(atom, Var):
            return kinds[atom]
        return _ZERO if is_zero(atom) else _KNOWN

    for eqn in program.eqns:
        operands = [kind(a) for a in _passed(eqn)]
        results: Sequence[_Kind] = [_KNOWN] * len(eqn.outputs)
        problem = _first_problem(operands)
        if problem is not None:
            results = [problem] * len(eqn.outputs)
        elif _LINEAR in operands:
            results = _kinds_of_results(eqn, operands)
        elif _ZERO in operands:
            # A linear function of zero is zero, as in a loop whose carry starts at zero.
            pairs = zip(operands, _passed(eqn), strict=True)
            along = [_LINEAR if k is _ZERO and is_inexact(a.type.dtype) else k for k, a in pairs]
            results = [_ZERO if k in (_ZERO, _LINEAR) else _KNOWN for k in _kinds_of_results(eqn, along)]
        kinds.update(zip(eqn.outputs, results, strict=True))
    return [kind(a) for a in program.outputs]


def _passed(eqn: Eqn) -> Sequence[Atom]:
    """The operands that the results of an equation depend on, assuming that it does not raise."""
    return eqn.operands[:1] if eqn.primitive is required else eqn.operands


def _kinds_of_results(eqn: Eqn, operands: list[_Kind]) -> Sequence[_Kind]:
    linear: list[_Kind] = [_LINEAR] * len(eqn.outputs)
    # These parameters hold the programs that compute the results; only the primitive knows what others mean.
    programs = [p for name in ("program", "branches") for p in programs_in({name: eqn.params.get(name)})]
    places = eqn.primitive.linear_in(len(eqn.operands), eqn.params)
    if places:
        if any(kind is _LINEAR and i not in places for i, kind in enumerate(operands)):
            return [NotLinear(eqn, _not_linear(eqn))] * len(linear)
        return [NotLinear(eqn, _affine(eqn))] * len(linear) if _KNOWN in [operands[i] for i in places] else linear
    if eqn.primitive is while_:
        return _kinds_of_while(eqn, operands)
    if programs:
        # The inputs of a sub-program are the last operands; those before select which one runs.
        found = [_kinds_through(eqn, p, operands[len(operands) - len(p.inputs) :]) for p in programs]
        return [_joined(eqn, column) for column in zip(*found, strict=True)]
    key = (eqn.primitive, tuple(eqn.params.items()), tuple(a.type for a in eqn.operands), tuple(operands))
    problems = _problems.get(key)
    if problems is None:
        if len(_problems) > _MOST_PROBLEMS:
            _problems.clear()
        problems = _problems[key] = _leaf_problems(eqn, operands)
    return [_LINEAR if what is None else NotLinear(eqn, what) for what in problems]


def _kinds_through(eqn: Eqn, program: Program, inputs: list[_Kind]) -> list[_Kind]:
    """Kinds of the outputs of a sub-program, which may be the body of a loop."""
    consts, carries = eqn.params.get("consts", 0), eqn.params.get("carries", 0)
    while True:
        outputs = _kinds(program, inputs)
        grown = [_joined(eqn, pair) for pair in zip(inputs[consts : consts + carries], outputs, strict=False)]
        if grown == inputs[consts : consts + carries]:
            return outputs
        inputs = [*inputs[:consts], *grown, *inputs[consts + carries :]]


def _kinds_of_while(eqn: Eqn, operands: list[_Kind]) -> list[_Kind]:
    of_cond, of_body, carry = cut(operands, eqn.params["cond_consts"], eqn.params["body_consts"])
    grown: list[_Kind] = []
    while grown != carry:
        grown, carry = (
            carry,
            [_joined(eqn, pair) for pair in zip(carry, _kinds(eqn.params["body"], [*of_body, *carry]), strict=True)],
        )
    cond = eqn.params["cond"]
    if any(k is _LINEAR and u for k, u in zip([*of_cond, *carry], used_inputs(cond), strict=True)):
        return [NotLinear(eqn, "it has a while loop whose condition depends on it")] * len(carry)
    return carry


def _joined(eqn: Eqn, kinds: Sequence[_Kind]) -> _Kind:
    """The kind of a value that may have any of several kinds."""
    problem = _first_problem(kinds)
    if problem is not None:
        return problem
    if _LINEAR in kinds and _KNOWN in kinds:
        return NotLinear(eqn, _affine(eqn))
    return _LINEAR if _LINEAR in kinds else _KNOWN if _KNOWN in kinds else _ZERO


_problems: dict[Any, list[str | None]] = {}
_MOST_PROBLEMS = 10_000


def _not_linear(eqn: Eqn) -> str:
    if eqn.primitive is black_box:
        return f"{eqn.params['code'].name} is Python code that could not be traced"
    return f"it has the operation {eqn.primitive.name}, which is not linear in it"


def _affine(eqn: Eqn) -> str:
    return f"it has the operation {eqn.primitive.name}, which adds or substitutes a value that does not depend on it"


def _leaf_problems(eqn: Eqn, operands: Sequence[_Kind]) -> list[str | None]:
    """For each result, why it is not linear in the linear operands, or None."""
    linear = tuple(k is _LINEAR for k in operands)
    builder = Builder([a.type for a in eqn.operands])
    with building(builder), attributed_to(eqn.line):
        outs = eqn.primitive.bind_all(builder.inputs(), eqn.params)
        programs = [builder.finish([y], eqn.primitive.name) for y in outs]
    return [_leaf_problem(p, eqn, operands, linear) for p in programs]


def _leaf_problem(program: Program, eqn: Eqn, operands: Sequence[_Kind], linear: Flags) -> str | None:
    """Why the program of one equation and one result is not linear, or None."""
    try:
        derivative = _tangent(program, linear)
        if derivative is None or _depends(derivative, linear):
            return _not_linear(eqn)
        transpose_program(program, linear)
    except MissingRule:
        return _not_linear(eqn)
    for i, kind in enumerate(operands):
        # A factor of a linear operand shows up in the derivative; a term that is added to it does not.
        if kind is _KNOWN and is_inexact(eqn.operands[i].type.dtype):
            slope = _tangent(program, tuple(i == j for j in range(len(operands))))
            if slope is not None and not _depends(slope, linear):
                return _affine(eqn)
    return None


def _tangent(program: Program, active: Flags) -> Program | None:
    """The program for the tangent of the one result, or None where there is none."""
    derived = jvp_program(program, active)
    if not all(derived.out_active):
        return None
    eqns = derived.program.eqns
    return simplify_program(Program(program.name, derived.program.inputs, eqns, derived.program.outputs[1:]))


def _depends(program: Program, inputs: Flags) -> bool:
    """Whether an output depends on any of the first inputs that are flagged."""
    reached: set[Atom] = set(chosen(program.inputs[: len(inputs)], inputs))
    for eqn in program.eqns:
        if not reached.isdisjoint(_passed(eqn)):
            reached.update(eqn.outputs)
    return not reached.isdisjoint(program.outputs)
