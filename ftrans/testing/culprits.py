"""Finding the equations whose own derivatives are wrong: each one is examined as a program of its own.

Their operands are the values that they have in the program, so that a rule which is wrong only there is found too.
Programs inside of equations (loops, branches, checkpoints) are looked through before the equation itself is blamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..base.source import Line
from ..control.checkpoints.checkpoint import checkpoint
from ..control.cond import cond
from ..control.loops.scan import scan
from ..control.loops.while_loop import while_
from ..control.rules.custom_rule import custom
from ..control.rules.linear_call import linear_call
from ..control.subprograms import cut
from ..core.primitive import MissingRule
from ..core.program import Eqn, Program, Var, needed_eqns
from ..core.types import is_inexact
from ..ops.elementwise import placeholder, stop_gradient
from ..solvers.linear_primitive import linear_solve
from ..solvers.root import root
from .derivatives import Arrays, Flags, Mode, differentiable, run
from .examine import differentiated, examine
from .failures import Culprit, Failure
from .subject import Settings, Subject

# Whose further results are information that has no derivative.
_WITH_INFORMATION = (root, linear_solve)
_OF_STOP_GRADIENT = "stop_gradient is a constant to derivatives on purpose, so differences disagree with it"


def culprits(subject: Subject, settings: Settings, failures: Sequence[Failure]) -> list[Culprit]:
    """The equations of a program whose own derivatives are wrong, given how those of the program are.

    A derivative of higher order is the derivative of a derivative program, whose equations are examined first.
    """
    for failure in failures:
        derived, rng = subject, np.random.default_rng(settings.seed)
        for mode in failure.chain[:-1]:
            derived = differentiated(derived, cast(Mode, mode), rng)
        found = _in_either_precision(derived, settings._replace(order=1))
        if found:
            return found
    order = max(failure.order for failure in failures)
    return _in_either_precision(subject, settings._replace(order=order)) if order > 1 else []


def _in_either_precision(subject: Subject, settings: Settings) -> list[Culprit]:
    found = list(_wrong_equations(subject.program, subject.args, subject.active, settings))
    if not found and subject.own is not None:
        found = list(_wrong_equations(subject.own, subject.own_args, subject.active, settings))
    return _distinct(found)


def _distinct(found: Sequence[Culprit]) -> list[Culprit]:
    """One culprit for each operation and line."""
    first: dict[Any, Culprit] = {}
    for culprit in found:
        first.setdefault((culprit.operation, culprit.line), culprit)
    return list(first.values())


def _wrong_equations(program: Program, args: Arrays, active: Flags, settings: Settings) -> Iterator[Culprit]:
    values: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
    varied = {v for v, a in zip(program.inputs, active, strict=True) if a}
    eqns = needed_eqns(program.eqns, program.outputs)
    used = {a for eqn in eqns for a in eqn.operands} | set(program.outputs)
    for eqn in eqns:
        inputs = [a for a in dict.fromkeys(eqn.operands) if isinstance(a, Var)]
        operands = [values[v] for v in inputs]
        results = run(Program(eqn.primitive.name, inputs, [eqn], eqn.outputs), operands)
        values.update(zip(eqn.outputs, results, strict=True))
        flags = tuple(v in varied and is_inexact(v.type.dtype) for v in inputs)
        if not any(flags):
            continue
        varied.update(eqn.outputs)
        outputs = [v for v in eqn.outputs if v in used and is_inexact(v.type.dtype)]
        if eqn.primitive in _WITH_INFORMATION:
            outputs = [v for v in outputs if v is eqn.outputs[0]]
        if outputs and eqn.primitive is not placeholder:
            single = Program(eqn.primitive.name, inputs, [eqn], outputs)
            all_operands = [values[a] if isinstance(a, Var) else a.array() for a in eqn.operands]
            yield from _examined(eqn, single, operands, flags, all_operands, results, settings)


def _examined(
    eqn: Eqn,
    single: Program,
    inputs: Arrays,
    flags: Flags,
    operands: Arrays,
    results: Arrays,
    settings: Settings,
) -> Iterator[Culprit]:
    """What is wrong in one equation, with the programs that it holds."""
    failure = _failure(single, inputs, flags, settings)
    if failure is None:
        return
    of_rule = _failure_of_rule(eqn, single, inputs, flags, settings) if eqn.primitive is custom else None
    if of_rule is not None:
        yield Culprit(_operation(eqn), eqn.line, of_rule, _rule_line(eqn), tolerance=_tolerance(eqn))
        return
    is_found = False
    for inner, args in _inside(eqn, operands, results):
        for culprit in _wrong_equations(inner, args, differentiable(inner.in_types), settings):
            is_found = True
            yield culprit
    if not is_found:
        note = _OF_STOP_GRADIENT if eqn.primitive is stop_gradient else ""
        yield Culprit(_operation(eqn), eqn.line, failure, _rule_line(eqn), note, _tolerance(eqn))


def _failure_of_rule(eqn: Eqn, single: Program, inputs: Arrays, flags: Flags, settings: Settings) -> Failure | None:
    """What is wrong where a rule states the derivative, whatever the equations of its function do."""
    rule, outs = eqn.params["rule"], eqn.params["outs"]
    covered, stated = set(eqn.operands[: rule.covered]), eqn.outputs[: len(outs)]
    mine = tuple(f and v in covered for f, v in zip(flags, single.inputs, strict=True))
    outputs = [v for v in single.outputs if v in stated]
    if not any(mine) or not outputs:
        return None
    return _failure(Program(single.name, single.inputs, single.eqns, outputs), inputs, mine, settings)


def _failure(program: Program, args: Arrays, active: Flags, settings: Settings) -> Failure | None:
    count = len(program.outputs)
    names = ("its result",) if count == 1 else tuple(f"its result {i}" for i in range(count))
    try:
        failures, _ = examine(Subject.of(program, tuple(args), active, names), settings._replace(eps=None))
    except MissingRule:
        return None
    return failures[0] if failures else None


def _inside(eqn: Eqn, operands: Arrays, results: Arrays) -> Iterator[tuple[Program, list[Any]]]:
    """The programs that an equation holds, each with its arguments there; in a loop, those of the first step."""
    params, primitive = eqn.params, eqn.primitive
    if primitive is checkpoint or primitive is custom:
        yield params["program"], list(operands)
    elif primitive is cond:
        yield params["branches"][int(operands[0])], list(operands[1:])
    elif primitive is scan and params["length"]:
        first = params["length"] - 1 if params["reverse"] else 0
        fixed, carry, xs = cut(operands, params["consts"], params["carries"])
        yield params["program"], [*fixed, *carry, *(x[first] for x in xs)]
    elif primitive is while_:
        yield params["body"], list(operands[params["cond_consts"] :])
    elif primitive is root:
        residual = params["residual"]
        lanes = results[0].reshape(-1, results[0].shape[-1])
        if len(lanes) == 1:
            yield residual, [*operands[: len(residual.inputs) - 1], results[0]]
    elif primitive is linear_solve:
        matvec = params["matvec"]
        yield matvec, [*operands[: len(matvec.inputs) - 1], results[0]]


def _operation(eqn: Eqn) -> str:
    if eqn.primitive is custom:
        return f"the derivative rule of {eqn.params['rule'].name}"
    if eqn.primitive is linear_call:
        return f"the derivative rule of {eqn.params['name']}"
    return eqn.primitive.name


def _rule_line(eqn: Eqn) -> Line | None:
    """Where the user wrote the rule that an equation holds."""
    if _tolerance(eqn):
        return None
    programs: list[Program | None] = []
    if eqn.primitive is linear_call:
        programs = [eqn.params["backward"], eqn.params["forward"]]
    elif eqn.primitive is custom:
        rule = eqn.params["rule"]
        active = tuple(is_inexact(t.dtype) and i < rule.covered for i, t in enumerate(rule.primal.in_types))
        parts = rule.linearized(active)
        programs = [parts.backward, parts.forward]
    lines = (eqn.line for p in programs if p is not None for eqn in p.eqns)
    # What comes before and after the user's rule has the line of the call, which is named already.
    called = eqn.line.written if eqn.line is not None else None
    return next((line for line in lines if line is not None and line.written is not called), None)


def _tolerance(eqn: Eqn) -> str:
    """The call of a solver, with its tolerances, whose results an equation computes; otherwise nothing."""
    if eqn.primitive is custom:
        return str(eqn.params["rule"].name.tolerance)
    if eqn.primitive is linear_call:
        return str(eqn.params["name"].tolerance)
    if eqn.primitive is root:
        search = eqn.params["search"]
        return f"{search.what}(tol={search.tol:g})"
    return ""
