"""Rewind: a while loop and a backward sweep over its states, as reverse mode of a while loop needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.interpret import inline
from ...core.on_numpy import Memory
from ...core.primitive import MultipleResults, Tangent
from ...core.program import Eqn, Params, Program, Var
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.broadcast import with_batch_axis
from ...ops.literals import full_like
from ...run.evaluate import evaluate
from ...run.stand_alone import Function, Written
from ...transforms.batch import batch as batch_program
from ...transforms.simplify import simplify as simplify_program
from ...transforms.split import SplitEqn
from ...xla.execute import lower
from ..subprograms import Flags, chosen, cut, either, filled, others, rewired, spread, used_inputs
from .steps import (
    BatchedLoop,
    check_loop,
    condition_on_known,
    frozen,
    jvp_of_step,
    known_step,
    needed_carries,
    unknown_carries,
    unknown_step,
    with_more_carries,
    without_redundant,
)
from .transpose import raise_nonlinear_condition, transposed_rewind


class Rewind(MultipleResults):
    """A loop, and a linear sweep back over its states::

        while cond(*cond_consts, *x): x = body(*body_consts, *x)          # states x_0 to x_n
        for x_i in (x_n-1, ..., x_0): c = back(*back_consts, *x_i, *c)    # linear in c

    Operands are the three groups of constants, the first of the states (`states` arrays), and the initial carry c;
    results are the final carry.  They depend on the states only through the sweep, so that the transpose is another
    rewind.

    With `max_steps`, a bound that `cond` enforces, XLA keeps all states in buffers of that length.  Otherwise only
    `checkpoints` states are kept at any time, and those between them are recomputed.
    """

    name = "rewind"
    repeats = True
    memory = Memory.NEW

    def apply(
        self,
        cond: Program,
        body: Program,
        back: Program,
        of_cond: Sequence[Any],
        of_body: Sequence[Any],
        of_back: Sequence[Any],
        first: Sequence[Any],
        carry: Sequence[Any],
        max_steps: int | None = None,
        checkpoints: int | None = None,
    ) -> list[Any]:
        """Record the loop of `body` from a first state, and the sweep of `back` from an initial carry."""
        if not carry:
            return []
        params = _params(cond, body, back, len(of_cond), len(of_body), len(of_back), len(first), max_steps, checkpoints)
        return self.bind_all([*of_cond, *of_body, *of_back, *first, *carry], params)

    def type_rule(self, *types: ArrayType, cond: Program, body: Program, back: Program, **params: Any) -> Any:
        of_cond, of_body, of_back, first, carry = _groups(types, params)
        check_loop(cond, body, of_cond, of_body, first)
        if back.in_types != (*of_back, *first, *carry) or back.out_types != tuple(carry):
            raise TypeError(f"{back.name} takes {back.in_types} and returns {back.out_types} for a carry of {carry}")
        return carry

    def numpy(self, *arrays: Any, **params: Any) -> list[Any]:
        return evaluate(_alone(params), arrays)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        return Written(Function(_alone(params)), {})

    def xla(self, *arrays: Any, **params: Any) -> list[Any]:
        return lower(_alone(params), arrays)

    def before_running(self, program: Program) -> Program:
        from .shared_states import share_states

        return share_states(program)

    def jvp(
        self,
        primals: Sequence[Tracer],
        tangents: Sequence[Tangent],
        *,
        cond: Program,
        body: Program,
        back: Program,
        **params: Any,
    ) -> Any:
        of_cond, of_body, of_back, first, carry = _groups(primals, params)
        _, ts_body, ts_back, ts_first, ts_carry = _groups(tangents, params)
        body_active, back_active, x_given, c_given = (
            tuple(t is not None for t in ts) for ts in (ts_body, ts_back, ts_first, ts_carry)
        )
        new_body, x_active = jvp_of_step(body, body_active, x_given, len(of_body))
        new_back, c_active = jvp_of_step(back, (*back_active, *x_active), c_given, len(of_back), len(first))
        outs = self.apply(
            with_more_carries(cond, [x.type for x in chosen(first, x_active)]),
            new_body,
            new_back,
            of_cond,
            [*of_body, *chosen(ts_body, body_active)],
            [*of_back, *chosen(ts_back, back_active)],
            [*first, *filled(ts_first, first, x_active)],
            [*carry, *filled(ts_carry, carry, c_active)],
            params["max_steps"],
            params["checkpoints"],
        )
        results, out_tangents = cut(outs, len(carry))
        return results, spread(out_tangents, c_active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> SplitEqn | None:
        key = ("split rewind", tuple(unknown), *(v for name, v in params.items() if name != "back"))
        return params["back"].derive(key, lambda: _split(tuple(unknown), **params))

    def transpose(
        self,
        cotangents: Any,
        operands: Sequence[Any],
        *,
        cond: Program,
        body: Program,
        back: Program,
        **params: Any,
    ) -> list[Tangent]:
        # The transpose of a while loop is a rewind; the transpose of a rewind is both.
        from .while_loop import while_

        of_cond, of_body, of_back, first, carry = _groups(operands, params)
        body_linear, back_linear, x_given, c_given = (
            tuple(isinstance(x, ArrayType) for x in xs) for xs in (of_body, of_back, first, carry)
        )
        x_linear = unknown_carries(body, body_linear, x_given)
        c_linear = unknown_carries(back, (*back_linear, *x_linear), c_given)
        known_cond = condition_on_known(cond, len(of_cond), x_linear)
        if known_cond is None or any(isinstance(x, ArrayType) for x in of_cond):
            raise_nonlinear_condition()
        turned = transposed_rewind(
            body, back, body_linear, back_linear, x_linear, c_linear, tuple(ct is not None for ct in cotangents)
        )
        reverse = params["max_steps"], params["checkpoints"]
        states = [*others(first, x_linear), *filled(cotangents, back.out_types, turned.p_active)]
        new_cond = with_more_carries(known_cond, [t for t, p in zip(back.out_types, turned.p_active, strict=True) if p])
        consts = [*others(of_body, body_linear), *others(of_back, back_linear)]
        zeros = [
            full_like(t, 0)
            for t in (
                *chosen(first, turned.q_active),
                *chosen(chosen(of_body, body_linear), turned.body_active),
                *chosen(chosen(of_back, back_linear), turned.back_active),
            )
        ]
        known_carry = others(carry, c_linear)
        outs: list[Any] = []
        if zeros:
            outs = self.apply(
                new_cond, turned.body, turned.back, of_cond, consts, consts, states, [*known_carry, *zeros], *reverse
            )
        _, of_first, of_body, of_back = cut(
            outs, len(known_carry), turned.q_active.count(True), turned.body_active.count(True)
        )
        _, of_carry = cut(while_.apply(new_cond, turned.body, of_cond, consts, states, *reverse), x_linear.count(False))
        in_first, in_carry = spread(of_first, turned.q_active), spread(of_carry, turned.p_active)
        return [
            *[None] * len(of_cond),
            *spread(spread(of_body, turned.body_active), body_linear),
            *spread(spread(of_back, turned.back_active), back_linear),
            *(ct if g else None for ct, g in zip(in_first, x_given, strict=True)),
            *(ct if g else None for ct, g in zip(in_carry, c_given, strict=True)),
        ]

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        cond: Program,
        body: Program,
        back: Program,
        **params: Any,
    ) -> Any:
        of_cond, of_body, of_back, first, carry = _groups(operands, params)
        cond_flags, body_flags, back_flags, x_given, c_given = (tuple(f) for f in _groups(batched, params))
        loop = BatchedLoop.of(size, cond, body, cond_flags, body_flags, x_given)
        fixed_flags = (*back_flags, *loop.batched)
        flags = (True,) * len(carry) if loop.lanes_differ else c_given
        while True:
            derived = batch_program(back, size, (*fixed_flags, *flags), flags)
            if derived.out_batched == flags:
                break
            flags = derived.out_batched
        first = [with_batch_axis(size, x, b) if f else x for x, b, f in zip(first, x_given, loop.batched, strict=True)]
        carry = [with_batch_axis(size, x, b) if f else x for x, b, f in zip(carry, c_given, flags, strict=True)]
        reverse = params["max_steps"], params["checkpoints"]
        if not loop.lanes_differ:
            outs = self.apply(
                simplify_program(loop.predicate.program),
                simplify_program(loop.body.program),
                simplify_program(derived.program),
                of_cond,
                of_body,
                of_back,
                first,
                carry,
                *reverse,
            )
            return outs, list(flags)
        # A lane that takes no step from a state takes no backward step to it.
        going = inline(loop.predicate.program, [*of_cond, *first])
        undo = frozen(derived.program, size, fixed_flags)
        consts = len(of_back)
        outs = self.apply(
            loop.any_lane(),
            loop.frozen_when_done(),
            simplify_program(rewired(undo, [*range(1, consts + 1), 0, *range(consts + 1, len(undo.inputs))])),
            [],
            [*of_cond, *of_body],
            of_back,
            [*going, *first],
            carry,
            *reverse,
        )
        return outs, list(flags)

    def simplify(
        self,
        operands: Sequence[Tracer],
        *,
        cond: Program,
        body: Program,
        back: Program,
        **params: Any,
    ) -> list[Any] | None:
        of_cond, of_body, of_back, first, carry = _groups(operands, params)
        reverse = params["max_steps"], params["checkpoints"]
        simple_cond, simple_body, simple_back = simplify_program(cond), simplify_program(body), simplify_program(back)
        conds, bodies, backs, states = len(of_cond), len(of_body), len(of_back), len(first)

        def with_states(step: Program, places: Sequence[int]) -> tuple[Program, Program, Program]:
            """The condition, the step and the backward step, of the states at these places."""
            rest = range(backs + states, len(simple_back.inputs))
            return (
                rewired(simple_cond, [*range(conds), *(conds + i for i in places)]),
                rewired(step, [*range(bodies), *(bodies + i for i in places)]),
                rewired(simple_back, [*range(backs), *(backs + i for i in places), *rest]),
            )

        unchanged = [v is a for v, a in zip(simple_body.inputs[bodies:], simple_body.outputs, strict=True)]
        if any(unchanged):
            fixed, kept = ([i for i, u in enumerate(unchanged) if u == is_fixed] for is_fixed in (True, False))
            more = [first[i] for i in fixed]
            return self.apply(
                *with_states(rewired(simple_body, range(len(simple_body.inputs)), kept), [*fixed, *kept]),
                [*of_cond, *more],
                [*of_body, *more],
                [*of_back, *more],
                [first[i] for i in kept],
                carry,
                *reverse,
            )
        seen = either(used_inputs(simple_cond)[conds:], used_inputs(simple_back)[backs : backs + states])
        needed, pruned = needed_carries(simple_body, bodies, seen)
        if not all(needed):
            programs = with_states(pruned, [i for i, n in enumerate(needed) if n])
            return self.apply(*programs, of_cond, of_body, of_back, chosen(first, needed), carry, *reverse)
        passed = [v is a for v, a in zip(simple_back.inputs[backs + states :], simple_back.outputs, strict=True)]
        if any(passed):
            fixed = [i for i, p in enumerate(passed) if p]
            kept = [i for i, p in enumerate(passed) if not p]
            start = backs + states
            outs = self.apply(
                simple_cond,
                simple_body,
                rewired(
                    simple_back,
                    [
                        *range(backs),
                        *(start + i for i in fixed),
                        *range(backs, start),
                        *(start + i for i in kept),
                    ],
                    kept,
                ),
                of_cond,
                of_body,
                [*of_back, *(carry[i] for i in fixed)],
                first,
                [carry[i] for i in kept],
                *reverse,
            )
            remaining = iter(outs)
            return [x if p else next(remaining) for x, p in zip(carry, passed, strict=True)]
        simple_cond, of_cond = without_redundant(simple_cond, of_cond)
        simple_body, of_body = without_redundant(simple_body, of_body)
        simple_back, of_back = without_redundant(simple_back, of_back)
        if simple_cond is cond and simple_body is body and simple_back is back:
            return None
        return self.apply(simple_cond, simple_body, simple_back, of_cond, of_body, of_back, first, carry, *reverse)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        params = eqn.params
        of_cond, of_body, of_back, first, carry = _groups(eqn.operands, params)
        fixed = len(of_back) + len(first)
        needed, pruned = needed_carries(params["back"], fixed, tuple(used))
        if all(needed):
            return eqn
        consts_used = used_inputs(pruned)[: len(of_back)]
        inputs = [i for i, u in enumerate((*consts_used, *(True,) * len(first), *needed)) if u]
        return Eqn(
            self,
            (*of_cond, *of_body, *chosen(of_back, consts_used), *first, *chosen(carry, needed)),
            {**params, "back": rewired(pruned, inputs), "back_consts": consts_used.count(True)},
            tuple(chosen(eqn.outputs, needed)),
            eqn.line,
        )


rewind = Rewind()


def _params(
    cond: Program,
    body: Program,
    back: Program,
    cond_consts: int,
    body_consts: int,
    back_consts: int,
    states: int,
    max_steps: int | None,
    checkpoints: int | None,
) -> Params:
    return {
        "cond": cond,
        "body": body,
        "back": back,
        "cond_consts": cond_consts,
        "body_consts": body_consts,
        "back_consts": back_consts,
        "states": states,
        "max_steps": max_steps,
        "checkpoints": checkpoints,
    }


def _groups(items: Sequence[Any], params: Params) -> list[list[Any]]:
    """Constants of the condition, of the body and of the backward step; states; carry."""
    return cut(items, params["cond_consts"], params["body_consts"], params["back_consts"], params["states"])


def _alone(params: Params) -> Program:
    """A program with a single rewind."""
    cond, body, back = params["cond"], params["body"], params["back"]

    def make() -> Program:
        consts = cut(cond.in_types, params["cond_consts"])[0], cut(body.in_types, params["body_consts"])[0]
        of_back, rest = cut(back.in_types, params["back_consts"])
        inputs = [Var(t) for t in (*consts[0], *consts[1], *of_back, *rest)]
        outputs = [Var(t) for t in back.out_types]
        return Program("rewind", inputs, [Eqn(rewind, tuple(inputs), params, tuple(outputs), None)], outputs)

    return back.derive(("alone", *params.values()), make)


def _split(unknown: Flags, *, cond: Program, body: Program, back: Program, **params: Any) -> SplitEqn | None:
    """The known half sweeps the known part of the carry; the unknown half repeats what it needs of that sweep."""
    cond_flags, body_flags, back_flags, x_flags, c_flags = (tuple(f) for f in _groups(unknown, params))
    x_flags = unknown_carries(body, body_flags, x_flags)
    c_flags = unknown_carries(back, (*back_flags, *x_flags), c_flags)
    known_cond = condition_on_known(cond, len(cond_flags), x_flags)
    if known_cond is None or any(cond_flags) or all(c_flags):
        return None
    first = len(unknown) - len(c_flags)
    known = [i for i, u in enumerate(c_flags) if not u]
    fixed = len(back_flags) + len(x_flags)
    order, back_again = unknown_step(back, fixed, c_flags, c_flags)
    fixed_known = [i for i, u in enumerate((*cond_flags, *body_flags, *back_flags, *x_flags)) if not u]
    reverse = params["max_steps"], params["checkpoints"]
    return SplitEqn(
        known=rewind,
        known_params=_params(
            known_cond,
            known_step(body, body_flags, x_flags),
            known_step(back, (*back_flags, *x_flags), c_flags),
            len(cond_flags),
            body_flags.count(False),
            back_flags.count(False),
            x_flags.count(False),
            *reverse,
        ),
        known_operands=[*fixed_known, *(first + i for i in known)],
        unknown=rewind,
        unknown_params={"cond": cond, "body": body, "back": back_again, **params},
        unknown_operands=[*range(first), *(first + i for i in order)],
        residual_types=[],
        out_unknown=c_flags,
    )
