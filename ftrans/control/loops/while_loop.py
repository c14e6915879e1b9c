"""While: a program that is repeated as long as a condition, itself a program, is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.cost import Cost
from ...core.interpret import inline
from ...core.on_numpy import Memory
from ...core.primitive import MultipleResults, Tangent
from ...core.program import Eqn, Params, Program
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.broadcast import with_batch_axis
from ...ops.literals import full_like
from ...run.costs import program_cost, total
from ...run.stand_alone import Function, Written
from ...run.straightline import function_to_run
from ...transforms.simplify import simplify as simplify_program
from ...transforms.split import SplitEqn
from ...xla.execute import lower
from ...xla.kinds import is_jax_tracer
from ..subprograms import Flags, chosen, cut, either, filled, others, own_carries, rewired, spread, used_inputs
from . import plain
from .in_place import lower_step
from .rewind import rewind
from .steps import (
    BatchedLoop,
    check_loop,
    condition_on_known,
    jvp_of_step,
    known_step,
    needed_carries,
    unknown_carries,
    unknown_step,
    with_more_carries,
    without_redundant,
)
from .transpose import raise_nonlinear_condition, transposed_loop

# The assumed number of steps of a loop, since the actual one is not known.
_STEPS = 100


class While(MultipleResults):
    """The carry after `carry = body(*body_consts, *carry)` has run while `cond(*cond_consts, *carry)` was true.

    Operands are the constants of `cond`, those of `body`, then the initial carry; results are the final carry.
    `max_steps`, a bound that `cond` enforces, and `checkpoints` say what reverse mode keeps: see `Rewind`.
    """

    name = "while"
    repeats = True
    memory = Memory.NEW

    def apply(
        self,
        cond: Program,
        body: Program,
        of_cond: Sequence[Any],
        of_body: Sequence[Any],
        carry: Sequence[Any],
        max_steps: int | None = None,
        checkpoints: int | None = None,
    ) -> list[Any]:
        """Record the loop of `body` over constants and an initial carry."""
        params = {
            "cond": cond,
            "body": body,
            "cond_consts": len(of_cond),
            "body_consts": len(of_body),
            "max_steps": max_steps,
            "checkpoints": checkpoints,
        }
        return self.bind_all([*of_cond, *of_body, *carry], params)

    def type_rule(
        self, *types: ArrayType, cond: Program, body: Program, cond_consts: int, body_consts: int, **reverse: Any
    ) -> list[ArrayType]:
        of_cond, of_body, carry = cut(types, cond_consts, body_consts)
        check_loop(cond, body, of_cond, of_body, carry)
        return carry

    def numpy(
        self, *arrays: Any, cond: Program, body: Program, cond_consts: int, body_consts: int, **reverse: Any
    ) -> list[Any]:
        own = own_carries(body, body_consts, len(arrays) - cond_consts - body_consts)
        goes_on, step = function_to_run(cond), function_to_run(body, own)
        return plain.while_(
            *arrays, goes_on=goes_on, step=step, cond_consts=cond_consts, body_consts=body_consts, own=own
        )

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        cond, body = params["cond"], params["body"]
        counts = {name: params[name] for name in ("cond_consts", "body_consts")}
        own = own_carries(body, params["body_consts"], len(body.outputs))
        return Written(plain.while_, {"goes_on": Function(cond), "step": Function(body, own), **counts, "own": own})

    def xla(
        self, *arrays: Any, cond: Program, body: Program, cond_consts: int, body_consts: int, **reverse: Any
    ) -> list[Any]:
        from jax import jit, lax

        def loop(*arrays: Any) -> list[Any]:
            of_cond, of_body, carry = cut(arrays, cond_consts, body_consts)
            return lax.while_loop(
                lambda carry: lower(cond, [*of_cond, *carry])[0],
                lambda carry: lower_step(body, [*of_body, *carry]),
                carry,
            )

        if any(map(is_jax_tracer, arrays)):
            return loop(*arrays)
        return body.derive(("compiled while", cond, cond_consts, body_consts), lambda: jit(loop))(*arrays)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        step = total(map(program_cost, (params["cond"], params["body"])))
        return step._replace(time=_STEPS * step.time)

    def jvp(
        self,
        primals: Sequence[Tracer],
        tangents: Sequence[Tangent],
        *,
        cond: Program,
        body: Program,
        cond_consts: int,
        body_consts: int,
        **reverse: Any,
    ) -> Any:
        _, const_tangents, carry_tangents = cut(tangents, cond_consts, body_consts)
        const_active, given = (tuple(t is not None for t in ts) for ts in (const_tangents, carry_tangents))
        new_body, active = jvp_of_step(body, const_active, given, body_consts)
        of_cond, of_body, carry = cut(primals, cond_consts, body_consts)
        outs = self.apply(
            with_more_carries(cond, [x.type for x in chosen(carry, active)]),
            new_body,
            of_cond,
            [*of_body, *chosen(const_tangents, const_active)],
            [*carry, *filled(carry_tangents, carry, active)],
            **reverse,
        )
        results, out_tangents = cut(outs, len(carry))
        return results, spread(out_tangents, active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> SplitEqn | None:
        key = ("split while", tuple(unknown), *(v for name, v in params.items() if name != "body"))
        return params["body"].derive(key, lambda: _split(tuple(unknown), **params))

    def transpose(
        self,
        cotangents: Any,
        operands: Sequence[Any],
        *,
        cond: Program,
        body: Program,
        cond_consts: int,
        body_consts: int,
        **reverse: Any,
    ) -> list[Tangent]:
        of_cond, of_body, carry = cut(operands, cond_consts, body_consts)
        given = tuple(isinstance(x, ArrayType) for x in carry)
        const_linear = tuple(isinstance(x, ArrayType) for x in of_body)
        linear = unknown_carries(body, const_linear, given)
        known_cond = condition_on_known(cond, cond_consts, linear)
        if known_cond is None or any(isinstance(x, ArrayType) for x in of_cond):
            raise_nonlinear_condition()
        turned = transposed_loop(body, const_linear, linear, tuple(ct is not None for ct in cotangents))
        totals = [full_like(t, 0) for t in chosen(chosen(of_body, const_linear), turned.consts_active)]
        known_consts = others(of_body, const_linear)
        outs = rewind.apply(
            known_cond,
            known_step(body, const_linear, linear),
            turned.program,
            of_cond,
            known_consts,
            known_consts,
            others(carry, linear),
            [*totals, *filled(cotangents, body.out_types, turned.carry_active)],
            **reverse,
        )
        of_consts, of_carry = cut(outs, len(totals))
        in_carry = spread(of_carry, turned.carry_active)
        return [
            *[None] * cond_consts,
            *spread(spread(of_consts, turned.consts_active), const_linear),
            *(ct if g else None for ct, g in zip(in_carry, given, strict=True)),
        ]

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
        **reverse: Any,
    ) -> Any:
        of_cond, of_body, carry = cut(operands, cond_consts, body_consts)
        cond_flags, body_flags, given = (tuple(f) for f in cut(batched, cond_consts, body_consts))
        loop = BatchedLoop.of(size, cond, body, cond_flags, body_flags, given)
        flags = loop.batched
        carry = [with_batch_axis(size, x, b) if f else x for x, b, f in zip(carry, given, flags, strict=True)]
        if not loop.lanes_differ:
            programs = simplify_program(loop.predicate.program), simplify_program(loop.body.program)
            return self.apply(*programs, of_cond, of_body, carry, **reverse), list(flags)
        # The predicate is part of the carry, so that it is computed once per step.
        first = inline(loop.predicate.program, [*of_cond, *carry])
        consts = [*of_cond, *of_body]
        outs = self.apply(loop.any_lane(), loop.frozen_when_done(), [], consts, [*first, *carry], **reverse)
        return outs[1:], list(flags)

    def simplify(
        self,
        operands: Sequence[Tracer],
        *,
        cond: Program,
        body: Program,
        cond_consts: int,
        body_consts: int,
        **reverse: Any,
    ) -> list[Any] | None:
        simple_cond, simple_body = simplify_program(cond), simplify_program(body)
        of_cond, of_body, carry = cut(operands, cond_consts, body_consts)
        body_carry = simple_body.inputs[body_consts:]
        constant = [v is a for v, a in zip(body_carry, simple_body.outputs, strict=True)]
        if any(constant):
            kept = [i for i, c in enumerate(constant) if not c]
            fixed = [i for i, c in enumerate(constant) if c]
            outs = self.apply(
                rewired(simple_cond, [*range(cond_consts), *(cond_consts + i for i in (*fixed, *kept))]),
                rewired(simple_body, [*range(body_consts), *(body_consts + i for i in (*fixed, *kept))], kept),
                [*of_cond, *(carry[i] for i in fixed)],
                [*of_body, *(carry[i] for i in fixed)],
                [carry[i] for i in kept],
                **reverse,
            )
            remaining = iter(outs)
            return [x if c else next(remaining) for x, c in zip(carry, constant, strict=True)]
        simple_cond, of_cond = without_redundant(simple_cond, of_cond)
        simple_body, of_body = without_redundant(simple_body, of_body)
        if simple_cond is cond and simple_body is body:
            return None
        return self.apply(simple_cond, simple_body, of_cond, of_body, carry, **reverse)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        params = eqn.params
        cond, body = params["cond"], params["body"]
        cond_consts, body_consts = params["cond_consts"], params["body_consts"]
        needed, pruned = needed_carries(body, body_consts, either(used, used_inputs(cond)[cond_consts:]))
        if all(needed):
            return eqn
        kept = [i for i, n in enumerate(needed) if n]
        of_cond, of_body, carry = cut(eqn.operands, cond_consts, body_consts)
        consts_used = used_inputs(pruned)[:body_consts]
        consts = [i for i, u in enumerate(consts_used) if u]
        return Eqn(
            self,
            (*of_cond, *chosen(of_body, consts_used), *chosen(carry, needed)),
            {
                **params,
                "cond": rewired(cond, [*range(cond_consts), *(cond_consts + i for i in kept)]),
                "body": rewired(pruned, [*consts, *(body_consts + i for i in kept)]),
                "body_consts": len(consts),
            },
            tuple(chosen(eqn.outputs, needed)),
            eqn.line,
        )


while_ = While()


def _split(
    unknown: Flags, *, cond: Program, body: Program, cond_consts: int, body_consts: int, **reverse: Any
) -> SplitEqn | None:
    """The known half runs the known part of the carry; the unknown half repeats what it needs of that."""
    cond_flags, const_flags, flags = (tuple(f) for f in cut(unknown, cond_consts, body_consts))
    flags = unknown_carries(body, const_flags, flags)
    known_cond = condition_on_known(cond, cond_consts, flags)
    if known_cond is None or any(cond_flags) or all(flags):
        return None
    known = [i for i, u in enumerate(flags) if not u]
    known_consts = [i for i, u in enumerate(const_flags) if not u]
    seen = either(flags, used_inputs(cond)[cond_consts:])
    order, body_again = unknown_step(body, body_consts, flags, seen)
    first = cond_consts + body_consts
    return SplitEqn(
        known=while_,
        known_params={
            "cond": known_cond,
            "body": known_step(body, const_flags, flags),
            "cond_consts": cond_consts,
            "body_consts": len(known_consts),
            **reverse,
        },
        known_operands=[
            *range(cond_consts),
            *(cond_consts + i for i in known_consts),
            *(first + i for i in known),
        ],
        unknown=while_,
        unknown_params={
            "cond": rewired(cond, [*range(cond_consts), *(cond_consts + i for i in order)]),
            "body": body_again,
            "cond_consts": cond_consts,
            "body_consts": body_consts,
            **reverse,
        },
        unknown_operands=[*range(first), *(first + i for i in order)],
        residual_types=[],
        out_unknown=flags,
    )
