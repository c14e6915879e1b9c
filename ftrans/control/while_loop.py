"""While: a program that runs again and again as long as another one says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..core.interpret import inline
from ..core.primitive import MissingRule, Primitive, Tangent
from ..core.program import Eqn, Program
from ..core.source import at_line, user_line
from ..core.straightline import function_of
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType
from ..ops.reductions import reduce_or
from ..ops.shapes import with_batch_axis
from ..transforms.batch import batch as batch_program
from ..transforms.jvp import jvp as jvp_program
from ..transforms.simplify import simplify as simplify_program
from ..transforms.split import SplitEqn
from ..transforms.split import split as split_program
from ..xla.execute import is_jax_tracer, lower
from .subprograms import (
    Flags,
    chosen,
    cut,
    either,
    filled,
    lanewise_select,
    redundant,
    rewired,
    specialized,
    spread,
    used_inputs,
)

_BOOL = ArrayType((), np.bool_)


class While(Primitive):
    """The carry after `carry = body(*body_consts, *carry)` has run while `cond(*cond_consts, *carry)` was true.

    Operands are the constants of `cond`, those of `body`, then the initial carry; results are the final carry.
    """

    name = "while"
    multiple_results = True

    def type_rule(
        self, *types: ArrayType, cond: Program, body: Program, cond_consts: int, body_consts: int
    ) -> list[ArrayType]:
        of_cond, of_body, carry = cut(types, cond_consts, body_consts)
        if cond.in_types != (*of_cond, *carry) or cond.out_types != (_BOOL,):
            raise TypeError(f"{cond.name} takes {cond.in_types} and returns {cond.out_types} for a carry of {carry}")
        if body.in_types != (*of_body, *carry) or body.out_types != tuple(carry):
            raise TypeError(f"{body.name} takes {body.in_types} and returns {body.out_types} for a carry of {carry}")
        return carry

    def numpy(self, *arrays: Any, cond: Program, body: Program, cond_consts: int, body_consts: int) -> list[Any]:
        of_cond, of_body, carry = cut(arrays, cond_consts, body_consts)
        goes_on = cond.derive("function", lambda: function_of(cond))
        step = body.derive("function", lambda: function_of(body))
        ran = False
        while goes_on(*of_cond, *carry)[0]:
            carry = step(*of_body, *carry)
            ran = True
        return carry if ran else [np.array(x)[()] for x in carry]

    def xla(self, *arrays: Any, cond: Program, body: Program, cond_consts: int, body_consts: int) -> list[Any]:
        from jax import jit, lax

        def loop(*arrays: Any) -> list[Any]:
            of_cond, of_body, carry = cut(arrays, cond_consts, body_consts)
            return lax.while_loop(
                lambda carry: lower(cond, [*of_cond, *carry])[0], lambda carry: lower(body, [*of_body, *carry]), carry
            )

        if any(map(is_jax_tracer, arrays)):
            return loop(*arrays)
        return body.derive(("compiled while", cond, cond_consts, body_consts), lambda: jit(loop))(*arrays)

    def jvp(
        self,
        primals: Sequence[Tracer],
        tangents: Sequence[Tangent],
        *,
        cond: Program,
        body: Program,
        cond_consts: int,
        body_consts: int,
    ) -> Any:
        _, const_tangents, carry_tangents = cut(tangents, cond_consts, body_consts)
        const_active = tuple(t is not None for t in const_tangents)
        active = tuple(t is not None for t in carry_tangents)
        while True:
            derived = jvp_program(body, (*const_active, *active), (*active,))
            if derived.out_active == active:
                break
            active = derived.out_active
        of_cond, of_body, carry = cut(primals, cond_consts, body_consts)
        more, count = const_active.count(True), len(body.inputs)
        new_body = rewired(
            derived.program,
            [
                *range(body_consts),
                *range(count, count + more),
                *range(body_consts, count),
                *range(count + more, count + more + active.count(True)),
            ],
        )
        new_cond = rewired(cond, [*range(len(cond.inputs)), *(x.type for x in chosen(carry, active))])
        outs = self(
            *of_cond,
            *of_body,
            *chosen(const_tangents, const_active),
            *carry,
            *filled(carry_tangents, carry, active),
            cond=new_cond,
            body=simplify_program(new_body),
            cond_consts=cond_consts,
            body_consts=body_consts + more,
        )
        results, out_tangents = cut(outs, len(carry))
        return results, spread(out_tangents, active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> SplitEqn | None:
        key = ("split while", params["cond"], params["cond_consts"], params["body_consts"], tuple(unknown))
        return params["body"].derive(key, lambda: _split(tuple(unknown), **params))

    def transpose(self, cotangents: Any, operands: Sequence[Any], **params: Any) -> NoReturn:
        raise MissingRule(
            "reverse mode (grad, vjp, jacrev) through while_loop is not defined: it would need the values of every "
            "step, and how many there are is not known beforehand. Use ftrans.scan, or ftrans.fori_loop with bounds "
            "that are plain Python integers; or forward mode (jvp, jacfwd), which needs no values of past steps"
            + at_line(user_line())
        )

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        cond: Program,
        body: Program,
        cond_consts: int,
        body_consts: int,
    ) -> Any:
        of_cond, of_body, carry = cut(operands, cond_consts, body_consts)
        cond_flags, body_flags, given = (tuple(f) for f in cut(batched, cond_consts, body_consts))
        flags = given
        while True:
            derived = batch_program(body, size, (*body_flags, *flags), flags)
            predicate = batch_program(cond, size, (*cond_flags, *flags))
            # Lanes that finish at different times have results of their own, all of them.
            grown = (True,) * len(flags) if predicate.out_batched[0] else derived.out_batched
            if grown == flags:
                break
            flags = grown
        carry = [with_batch_axis(size, x, b) if f else x for x, b, f in zip(carry, given, flags, strict=True)]
        if not predicate.out_batched[0]:
            outs = self(
                *of_cond,
                *of_body,
                *carry,
                cond=simplify_program(predicate.program),
                body=simplify_program(derived.program),
                cond_consts=cond_consts,
                body_consts=body_consts,
            )
            return outs, list(flags)
        # The predicate goes along as a carry, so that it is computed once a step.
        first = inline(predicate.program, [*of_cond, *carry])
        outs = self(
            *of_cond,
            *of_body,
            *first,
            *carry,
            cond=_any_lane(predicate.program, cond_consts),
            body=_frozen_when_done(predicate.program, derived.program, cond_consts, body_consts),
            cond_consts=0,
            body_consts=cond_consts + body_consts,
        )
        return outs[1:], list(flags)

    def simplify(
        self, operands: Sequence[Tracer], *, cond: Program, body: Program, cond_consts: int, body_consts: int
    ) -> list[Any] | None:
        simple_cond, simple_body = simplify_program(cond), simplify_program(body)
        of_cond, of_body, carry = cut(operands, cond_consts, body_consts)
        body_carry = simple_body.inputs[body_consts:]
        constant = [v is a for v, a in zip(body_carry, simple_body.outputs, strict=True)]
        if any(constant):
            kept = [i for i, c in enumerate(constant) if not c]
            fixed = [i for i, c in enumerate(constant) if c]
            outs = self(
                *of_cond,
                *(carry[i] for i in fixed),
                *of_body,
                *(carry[i] for i in fixed),
                *(carry[i] for i in kept),
                cond=rewired(simple_cond, [*range(cond_consts), *(cond_consts + i for i in (*fixed, *kept))]),
                body=rewired(simple_body, [*range(body_consts), *(body_consts + i for i in (*fixed, *kept))], kept),
                cond_consts=cond_consts + len(fixed),
                body_consts=body_consts + len(fixed),
            )
            remaining = iter(outs)
            return [x if c else next(remaining) for x, c in zip(carry, constant, strict=True)]
        simple_cond, of_cond = _without_redundant(simple_cond, of_cond)
        simple_body, of_body = _without_redundant(simple_body, of_body)
        if simple_cond is cond and simple_body is body:
            return None
        return self(
            *of_cond,
            *of_body,
            *carry,
            cond=simple_cond,
            body=simple_body,
            cond_consts=len(of_cond),
            body_consts=len(of_body),
        )

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        cond, body = eqn.params["cond"], eqn.params["body"]
        cond_consts, body_consts = eqn.params["cond_consts"], eqn.params["body_consts"]
        needed = either(used, used_inputs(cond)[cond_consts:])
        every = (*range(len(body.inputs)),)
        while True:
            kept = [i for i, n in enumerate(needed) if n]
            pruned = simplify_program(rewired(body, every, kept))
            grown = either(needed, used_inputs(pruned)[body_consts:])
            if grown == needed:
                break
            needed = grown
        if all(needed):
            return eqn
        of_cond, of_body, carry = cut(eqn.operands, cond_consts, body_consts)
        return Eqn(
            self,
            (*of_cond, *of_body, *chosen(carry, needed)),
            {
                "cond": rewired(cond, [*range(cond_consts), *(cond_consts + i for i in kept)]),
                "body": rewired(pruned, [*range(body_consts), *(body_consts + i for i in kept)]),
                "cond_consts": cond_consts,
                "body_consts": body_consts,
            },
            tuple(chosen(eqn.outputs, needed)),
            eqn.line,
        )


def _without_redundant(program: Program, consts: list[Tracer]) -> tuple[Program, list[Tracer]]:
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


def _split(unknown: Flags, *, cond: Program, body: Program, cond_consts: int, body_consts: int) -> SplitEqn | None:
    """The known half runs the known part of the carry; the unknown half runs everything once more."""
    cond_flags, body_flags, flags = (tuple(f) for f in cut(unknown, cond_consts, body_consts))
    while True:
        halves = split_program(body, (*body_flags, *flags), flags)
        if halves.out_unknown == flags:
            break
        flags = halves.out_unknown
    influences = split_program(cond, (*cond_flags, *flags)).out_unknown[0]
    if influences or all(flags):
        return None
    known = [i for i, u in enumerate(flags) if not u]
    later = [i for i, u in enumerate(flags) if u]
    known_consts = [i for i, u in enumerate(body_flags) if not u]
    known_body = Program(halves.known.name, halves.known.inputs, halves.known.eqns, halves.known.outputs[: len(known)])
    known_cond = rewired(cond, [*range(cond_consts), *(cond_consts + i for i in known)])
    order = [*later, *known]
    first = cond_consts + body_consts
    return SplitEqn(
        known=while_,
        known_params={
            "cond": simplify_program(known_cond),
            "body": simplify_program(known_body),
            "cond_consts": cond_consts,
            "body_consts": len(known_consts),
        },
        known_operands=[
            *range(cond_consts),
            *(cond_consts + i for i in known_consts),
            *(first + i for i in known),
        ],
        unknown=while_,
        unknown_params={
            "cond": rewired(cond, [*range(cond_consts), *(cond_consts + i for i in order)]),
            "body": rewired(body, [*range(body_consts), *(body_consts + i for i in order)], order),
            "cond_consts": cond_consts,
            "body_consts": body_consts,
        },
        unknown_operands=[*range(first), *(first + i for i in order)],
        residual_types=[],
        out_unknown=flags,
    )


def _any_lane(predicate: Program, cond_consts: int) -> Program:
    """The condition of a batched loop, of its predicates and the rest of its carry: whether any lane goes on."""

    def make() -> Program:
        builder = Builder([*predicate.out_types, *predicate.in_types[cond_consts:]])
        with building(builder):
            going, *_ = builder.inputs()
            return builder.finish([reduce_or(going, axes=(0,))], f"any({predicate.name})")

    return predicate.derive(("any lane", cond_consts), make)


def _frozen_when_done(predicate: Program, body: Program, cond_consts: int, body_consts: int) -> Program:
    """The body of a batched loop, whose carry starts with the predicates: lanes that are done keep their carry."""

    def make() -> Program:
        carry_types = predicate.in_types[cond_consts:]
        builder = Builder(
            [*predicate.in_types[:cond_consts], *body.in_types[:body_consts], *predicate.out_types, *carry_types]
        )
        with building(builder):
            of_cond, of_body, (going, *carry) = cut(builder.inputs(), cond_consts, body_consts)
            stepped = [
                lanewise_select(going, x, y) for x, y in zip(inline(body, [*of_body, *carry]), carry, strict=True)
            ]
            going_on = inline(predicate, [*of_cond, *stepped])
            return simplify_program(builder.finish([*going_on, *stepped], body.name))

    return body.derive(("frozen when done", predicate, cond_consts, body_consts), make)


while_ = While()
