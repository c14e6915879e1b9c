"""Derivative programs: jvp, split and transpose put together.

`linearize` divides a jvp program into its values and a linear program; `pushforward` makes the latter ready to run, and
`pullback` transposes it.  `gradient` joins both parts into one program of the original inputs.  None of them
simplifies: that is done once, when the whole program is about to run.  Only `pruned` does, for two parts that run
separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..base.source import at_line
from ..core.interpret import inline
from ..core.primitive import MissingRule, ProgramCall
from ..core.program import Atom, Const, Eqn, Program, Var, literal, needed_eqns, programs_in, with_operands
from ..core.trace import Builder, building
from ..core.types import is_complex
from ..ops.elementwise import convert
from ..ops.literals import full
from ..ops.shapes import reshape
from .choices import with_choices_last
from .jvp import jvp
from .simplify import simplify
from .split import Split, split
from .transpose import transpose

# Derivatives up to this order are taken in reverse mode, even if there is only one direction.
_MOST_BACKWARDS = 2
Flags = tuple[bool, ...]


class Linear(NamedTuple):
    """A program divided at its linear part.

    Attributes:
        values: the inputs of the program -> its outputs, then residuals.
        linear: residuals, then tangents of active inputs (for a pullback: cotangents of active outputs) -> tangents
            of the active outputs (cotangents of the active inputs).
        residual_count: how many residuals there are.
        out_active: which outputs depend on an active input.
        in_active: which of the active inputs the linear program returns a cotangent for.
    """

    values: Program
    linear: Program
    residual_count: int
    out_active: Flags
    in_active: Flags


def linearize(program: Program, active: Flags) -> Linear:
    """The values of `program`, and its tangents as a linear program, which has yet to be transposed."""
    return program.derive(("linearize", active), lambda: _linearize(program, active))


def _linearize(program: Program, active: Flags) -> Linear:
    derived = jvp(program, active, choices_last=False)
    tangent_inputs = (False,) * len(active) + (True,) * active.count(True)
    halves = split(derived.program, tangent_inputs)
    count = len(program.outputs)
    if any(halves.out_unknown[:count]):
        raise _inseparable(halves, derived.program.outputs[:count])
    is_linear = iter(halves.out_unknown[count:])
    # An output tangent that depends on no input tangent is zero.
    out_active = tuple(a and next(is_linear) for a in derived.out_active)
    if out_active != derived.out_active:
        kept = [a for a, u in zip(derived.program.outputs[count:], halves.out_unknown[count:], strict=True) if u]
        outputs = (*derived.program.outputs[:count], *kept)
        halves = split(
            Program(derived.program.name, derived.program.inputs, derived.program.eqns, outputs), tangent_inputs
        )
    return Linear(halves.known, halves.unknown, halves.residual_count, out_active, ())


def _inseparable(halves: Split, values: Sequence[Atom]) -> MissingRule:
    """The error for a program whose values are found only together with their tangents."""
    eqn = next(iter(needed_eqns(halves.unknown.eqns, values)), None)
    if eqn is None or not eqn.primitive.multiple_results:
        line = None if eqn is None else eqn.line
        return MissingRule(
            "a value depends on a tangent: a jvp rule returns the results first, made of the operands alone, and then "
            "their tangents" + at_line(line)
        )
    return MissingRule(
        f"the primitive {eqn.primitive.name!r} has no split rule: one equation of it has values and tangents, and "
        "reverse mode and Jacobians need the values by themselves"
        + at_line(eqn.line)
        + "\n  Write the rule `split`, or let its jvp rule compute the tangents by another equation."
    )


def pushforward(program: Program, active: Flags) -> Linear:
    """The values of `program`, and its linear program, from tangents to tangents."""
    parts = linearize(program, active)
    linear = (False,) * parts.residual_count + (True,) * active.count(True)
    return parts._replace(linear=with_choices_last(parts.linear, linear, forward=True))


def pullback(program: Program, active: Flags) -> Linear:
    """The values of `program`, and its transposed linear program, from cotangents to cotangents."""
    return program.derive(("pullback", active), lambda: _pullback(program, active))


def _pullback(program: Program, active: Flags) -> Linear:
    parts = linearize(program, active)
    linear = (False,) * parts.residual_count + (True,) * active.count(True)
    turned = transpose(parts.linear, linear)
    return parts._replace(linear=turned.program, in_active=turned.in_active)


def pruned(parts: Linear, form: Callable[[Program], Program] = simplify) -> Linear:
    """`parts`, simplified, without duplicate residuals and those that the simplified linear program does not need.

    A simplified part may need fewer, such as a checkpoint from which known values have been removed.  Parts that are
    derived further are to be condensed instead, which is what `form` says.
    """
    return parts.linear.derive(("pruned", parts.values, form), lambda: _pruned(parts, form))


def _pruned(parts: Linear, form: Callable[[Program], Program]) -> Linear:
    values, linear = form(parts.values), form(parts.linear)
    total = parts.residual_count
    outputs, found = values.outputs[: -total or None], values.outputs[len(values.outputs) - total :]
    used = {a for eqn in linear.eqns for a in eqn.operands} | set(linear.outputs)
    kept: dict[Atom, Var] = {}
    known: dict[Atom, Atom] = {
        residual: x if isinstance(x, Const) else kept.setdefault(x, residual)
        for x, residual in zip(found, linear.inputs[:total], strict=True)
        if residual in used
    }
    if len(kept) == total:
        return parts._replace(values=values, linear=linear)
    eqns = with_operands(linear.eqns, known)
    inputs = [*kept.values(), *linear.inputs[total:]]
    return pruned(
        parts._replace(
            values=Program(values.name, values.inputs, values.eqns, [*outputs, *kept]),
            linear=Program(linear.name, inputs, eqns, [known.get(a, a) for a in linear.outputs]),
            residual_count=len(kept),
        ),
        form,
    )


class WithPullback(NamedTuple):
    """A program and its pullback, as one program.

    Attributes:
        program: takes the inputs, then cotangents of the active outputs; returns the outputs, then the cotangents of
            active inputs that have one.
        out_active: which outputs depend on an active input.
        in_active: which of the active inputs have a cotangent.
    """

    program: Program
    out_active: Flags
    in_active: Flags


def with_pullback(program: Program, active: Flags, name: str) -> WithPullback:
    """`program` and its pullback as one program with the given name."""
    parts = pullback(program, active)
    seeds = parts.linear.inputs[parts.residual_count :]
    eqns, cotangents = _run_both(parts, seeds)
    values = parts.values.outputs[: len(program.outputs)]
    joined = Program(name, [*parts.values.inputs, *seeds], eqns, [*values, *cotangents])
    return WithPullback(joined, parts.out_active, parts.in_active)


def _run_both(parts: Linear, seeds: Sequence[Atom]) -> tuple[list[Eqn], list[Atom]]:
    """The equations of the values and of the linear program for `seeds`, and what the latter returns."""
    values, linear = parts.values, parts.linear
    given = [*values.outputs[len(values.outputs) - parts.residual_count :], *seeds]
    known: dict[Atom, Atom] = {v: a for v, a in zip(linear.inputs, given, strict=True) if v is not a}
    return [*values.eqns, *with_operands(linear.eqns, known)], [known.get(a, a) for a in linear.outputs]


def gradient(program: Program, active: Flags, with_value: bool) -> Program:
    """The program for the gradient of the first output, a scalar, with respect to the active inputs.

    Its outputs are those of `program` (without the first, unless `with_value`), then the gradients.
    """
    return program.derive(("gradient", active, with_value), lambda: _gradient(program, active, with_value))


def _gradient(program: Program, active: Flags, with_value: bool) -> Program:
    if _is_best_forwards(program, active):
        return _gradient_forward(program, active, with_value)
    parts = pullback(program, active)
    ones = [literal(float(i == 0), t) for i, t in enumerate(program.out_types) if parts.out_active[i]]
    eqns, cotangents = _run_both(parts, ones)
    cts = iter(cotangents)
    types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    gradients = [next(cts) if has_ct else literal(0, t) for t, has_ct in zip(types, parts.in_active, strict=True)]
    values = parts.values.outputs[0 if with_value else 1 : len(program.outputs)]
    return Program(f"grad({program.name})", parts.values.inputs, eqns, [*values, *gradients])


def _is_best_forwards(program: Program, active: Flags) -> bool:
    """Whether this is a derivative of high order with respect to a scalar, which is best taken in forward mode.

    There is one direction, so nothing has to be transposed.  Forward derivatives share values, as the terms of Leibniz'
    rule do, so that a program of order n grows with a power of n; reverse mode doubles it with each order.  The first
    two orders are taken in reverse mode like all others: products that begin with the outer factor overflow less.
    Custom rules of the user may be defined for reverse mode only.
    """
    types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    if len(types) != 1 or types[0].size != 1 or is_complex(types[0].dtype) or not _has_plain_calls_only(program):
        return False
    return _order(program) >= _MOST_BACKWARDS


def _order(program: Program) -> int:
    """How many times the user's code has been differentiated in a program."""
    orders = [eqn.line.order for eqn in program.eqns if eqn.line is not None]
    return max([0, *orders, *map(_order, program.subprograms())])


def _has_plain_calls_only(program: Program) -> bool:
    """Whether all sub-programs, at any depth, are those of compiled functions."""
    holding = [eqn for eqn in program.eqns if any(True for _ in programs_in(eqn.params))]
    return all(isinstance(eqn.primitive, ProgramCall) for eqn in holding) and all(
        map(_has_plain_calls_only, program.subprograms())
    )


def _gradient_forward(program: Program, active: Flags, with_value: bool) -> Program:
    derived = jvp(program, active, wanted=(True, *(False,) * (len(program.outputs) - 1)))
    count = len(program.outputs)
    builder = Builder(program.in_types)
    with building(builder):
        inputs = builder.inputs()
        type = program.in_types[active.index(True)]
        outs = inline(derived.program, [*inputs, full(type.shape, 1, type.dtype)])
        value, tangent = outs[0], outs[count]
        gradient = reshape(convert(tangent, dtype=type.dtype), shape=type.shape)
        return builder.finish([*([value] if with_value else []), *outs[1:count], gradient], f"grad({program.name})")
