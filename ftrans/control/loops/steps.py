"""Conditions and bodies of while loops, transformed.

A step is a program of fixed inputs and a carry, whose results are the next carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops.elementwise import add, bitwise_and, lt
from ...ops.literals import full_like
from ...ops.reductions import reduce_or
from ...transforms.batch import Batch
from ...transforms.batch import batch as batch_program
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import condense
from ...transforms.simplify import simplify as simplify_program
from ...transforms.split import split as split_program
from ..subprograms import (
    Flags,
    chosen,
    cut,
    either,
    lanewise_select,
    redundant,
    rewired,
    specialized,
    used_inputs,
    with_placeholders,
    with_tangents,
)

_BOOL = ArrayType((), np.bool_)
_COUNT = ArrayType((), np.int64)


def check_loop(
    cond: Program,
    body: Program,
    of_cond: Sequence[ArrayType],
    of_body: Sequence[ArrayType],
    carry: Sequence[ArrayType],
) -> None:
    """Raise a TypeError unless the programs fit the types of a loop."""
    if cond.in_types != (*of_cond, *carry) or cond.out_types != (_BOOL,):
        raise TypeError(f"{cond.name} takes {cond.in_types} and returns {cond.out_types} for a carry of {carry}")
    if body.in_types != (*of_body, *carry) or body.out_types != tuple(carry):
        raise TypeError(f"{body.name} takes {body.in_types} and returns {body.out_types} for a carry of {carry}")


def with_step_limit(
    cond: Program, body: Program, cond_consts: int, body_consts: int, max_steps: int
) -> tuple[Program, Program]:
    """The condition and body of a loop that stops after `max_steps`, with a counter as first member of the carry."""

    def make() -> tuple[Program, Program]:
        carry_types = body.out_types
        builder = Builder([*cond.in_types[:cond_consts], _COUNT, *carry_types])
        with building(builder):
            of_cond, (count,), carry = cut(builder.inputs(), cond_consts, 1)
            (goes_on,) = inline(cond, [*of_cond, *carry])
            limited = builder.finish([bitwise_and(goes_on, lt(count, full_like(count, max_steps)))], cond.name)
        builder = Builder([*body.in_types[:body_consts], _COUNT, *carry_types])
        with building(builder):
            of_body, (count,), carry = cut(builder.inputs(), body_consts, 1)
            outs = inline(body, [*of_body, *carry])
            return limited, builder.finish([add(count, full_like(count, 1)), *outs], body.name)

    return body.derive(("with step limit", cond, cond_consts, body_consts, max_steps), make)


def with_more_carries(cond: Program, types: Sequence[ArrayType]) -> Program:
    """The condition of a loop whose carry has further members at its end."""
    return rewired(cond, [*range(len(cond.inputs)), *types])


def jvp_of_step(program: Program, fixed_active: Flags, active: Flags, *groups: int) -> tuple[Program, Flags]:
    """The step of values and tangents, each tangent after its group of inputs; and which carries have a tangent."""
    while True:
        derived = jvp_program(program, (*fixed_active, *active), active)
        if derived.out_active == active:
            order = with_tangents((*fixed_active, *active), *groups)
            return condense(rewired(derived.program, order)), active
        active = derived.out_active


def unknown_carries(program: Program, fixed_unknown: Flags, unknown: Flags) -> Flags:
    """Which carries of a step depend on unknown inputs after any number of steps."""
    while True:
        grown = split_program(program, (*fixed_unknown, *unknown), unknown).out_unknown
        if grown == unknown:
            return unknown
        unknown = grown


def known_step(program: Program, fixed_unknown: Flags, unknown: Flags) -> Program:
    """The step of the known carries alone."""

    def make() -> Program:
        known = split_program(program, (*fixed_unknown, *unknown), unknown).known
        return simplify_program(Program(known.name, known.inputs, known.eqns, known.outputs[: unknown.count(False)]))

    return program.derive(("known step", fixed_unknown, unknown), make)


def condition_on_known(cond: Program, cond_consts: int, unknown: Flags) -> Program | None:
    """The condition as a program of the known carries; None if it depends on others."""
    simple = simplify_program(cond)
    if any(u and x for u, x in zip(unknown, used_inputs(simple)[cond_consts:], strict=True)):
        return None
    return rewired(simple, [*range(cond_consts), *(cond_consts + i for i, u in enumerate(unknown) if not u)])


def needed_carries(program: Program, consts: int, needed: Flags) -> tuple[Flags, Program]:
    """The carries that the needed ones depend on, and the step with only these results."""
    every = range(len(program.inputs))
    while True:
        pruned = condense(rewired(program, every, [i for i, n in enumerate(needed) if n]))
        grown = either(needed, used_inputs(pruned)[consts:])
        if grown == needed:
            return needed, pruned
        needed = grown


def unknown_step(program: Program, fixed: int, unknown: Flags, needed: Flags) -> tuple[list[int], Program]:
    """The carries of the unknown half of a split loop, the unknown ones first, and the step of these.

    Args:
        program: the step.
        fixed: how many inputs come before its carry.
        unknown: which carries are unknown.
        needed: which carries are needed: the unknown ones, and those that the condition reads.
    """
    needed, pruned = needed_carries(program, fixed, needed)
    order = [*(i for i, u in enumerate(unknown) if u), *(i for i, u in enumerate(unknown) if needed[i] and not u)]
    places = [i for i, n in enumerate(needed) if n]
    wires = [*range(fixed), *(fixed + i for i in order)]
    return order, rewired(pruned, wires, [places.index(i) for i in order])


def without_redundant(program: Program, consts: list[Tracer]) -> tuple[Program, list[Tracer]]:
    """The program without constants that repeat another one, are a number, or are not used."""
    known = redundant(consts)
    rest = len(program.inputs) - len(consts)
    program = simplify_program(specialized(program, [*known, *[None] * rest]))
    consts = [x for x, k in zip(consts, known, strict=True) if k is None]
    used = used_inputs(program)[: len(consts)]
    if all(used):
        return program, consts
    wires = [*(i for i, u in enumerate(used) if u), *range(len(consts), len(program.inputs))]
    return simplify_program(rewired(program, wires)), chosen(consts, used)


# Batching


class BatchedLoop(NamedTuple):
    """The batched programs of a loop, and which members of its carry are batched."""

    size: int
    predicate: Batch
    body: Batch
    cond_flags: Flags
    body_flags: Flags
    batched: Flags

    @classmethod
    def of(
        cls, size: int, cond: Program, body: Program, cond_flags: Flags, body_flags: Flags, batched: Flags
    ) -> BatchedLoop:
        while True:
            derived = batch_program(body, size, (*body_flags, *batched), batched)
            predicate = batch_program(cond, size, (*cond_flags, *batched))
            # If lanes finish at different times, all results are batched.
            grown = (True,) * len(batched) if predicate.out_batched[0] else derived.out_batched
            if grown == batched:
                return cls(size, predicate, derived, cond_flags, body_flags, batched)
            batched = grown

    @property
    def lanes_differ(self) -> bool:
        """Whether lanes may finish at different times."""
        return self.predicate.out_batched[0]

    def any_lane(self) -> Program:
        """The condition, of the predicates of all lanes and the rest of the carry: whether any lane continues."""
        predicate, consts = self.predicate.program, len(self.cond_flags)

        def make() -> Program:
            builder = Builder([*predicate.out_types, *predicate.in_types[consts:]])
            with building(builder):
                going, *_ = builder.inputs()
                return builder.finish([reduce_or(going, axes=(0,))], f"any({predicate.name})")

        return predicate.derive(("any lane", consts), make)

    def frozen_when_done(self) -> Program:
        """The body, whose carry starts with the predicates: lanes that are done keep their carry."""
        predicate, consts = self.predicate.program, len(self.cond_flags)
        key = ("frozen when done", predicate, self.cond_flags, self.body_flags)

        def make() -> Program:
            body = frozen(self.body.program, self.size, self.body_flags)
            types = [*predicate.in_types[:consts], *self.body.program.in_types[: len(self.body_flags)]]
            builder = Builder([*types, *predicate.out_types, *predicate.in_types[consts:]])
            with building(builder):
                of_cond, of_body, going, carry = cut(builder.inputs(), consts, len(self.body_flags), 1)
                stepped = inline(body, [*going, *of_body, *carry])
                going = inline(predicate, [*of_cond, *stepped])
                return simplify_program(builder.finish([*going, *stepped], body.name))

        return self.body.program.derive(key, make)


def frozen(program: Program, size: int, fixed_batched: Flags) -> Program:
    """A batched step as a program of one flag per lane, then its inputs: lanes without the flag keep their carry."""

    def make() -> Program:
        builder = Builder([ArrayType((size,), np.bool_), *program.in_types])
        with building(builder):
            going, *inputs = builder.inputs()
            carry = inputs[len(fixed_batched) :]
            stepped = inline(program, with_placeholders(going, inputs, (*fixed_batched, *(True,) * len(carry))))
            outs = [lanewise_select(going, x, y) for x, y in zip(stepped, carry, strict=True)]
            return builder.finish(outs, program.name)

    return program.derive(("frozen", size, fixed_batched), make)
