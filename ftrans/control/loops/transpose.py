"""The programs of transposed loops: of while loops, and of rewinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from ...base.source import at_line, user_line
from ...core.interpret import inline
from ...core.primitive import MissingRule
from ...core.program import Program
from ...core.trace import Builder, building
from ...ops.accumulation import accumulated
from ...transforms.simplify import condense
from ...transforms.split import split as split_program
from ...transforms.transpose import Transpose
from ...transforms.transpose import transpose as transpose_program
from ..subprograms import Flags, chosen, cut, either, others, rewired, spread, used_inputs
from .steps import known_step


class TransposedLoop(NamedTuple):
    """A transposed step, and which linear constants and carries have cotangents in it.

    The program takes known constants and known carries, then totals for the constants and cotangents of the carries.
    """

    program: Program
    consts_active: Flags
    carry_active: Flags


def transposed_loop(body: Program, const_linear: Flags, linear: Flags, given: Flags) -> TransposedLoop:
    """The transpose of a step that is linear in some constants and carries; `given` are the cotangents at the end."""
    key = ("transposed while", const_linear, linear, given)
    return body.derive(key, lambda: _transpose_loop(body, const_linear, linear, given))


def _transpose_loop(body: Program, const_linear: Flags, linear: Flags, given: Flags) -> TransposedLoop:
    count = const_linear.count(True)
    active = tuple(a and b for a, b in zip(given, linear, strict=True))
    while True:
        wanted = (*(False,) * count, *chosen(active, linear))
        turned = _transpose_linear_part(body, (*const_linear, *linear), active, wanted)
        consts_active, in_active = (tuple(f) for f in cut(turned.in_active, count))
        grown = _present(in_active, linear)
        if grown == active:
            break
        active = grown
    consts, carry = cut(body.in_types, len(const_linear))
    known = [*others(consts, const_linear), *others(carry, linear)]
    totals = chosen(chosen(consts, const_linear), consts_active)
    builder = Builder([*known, *totals, *chosen(carry, active)])
    with building(builder):
        values, sums, cts = cut(builder.inputs(), len(known), len(totals))
        terms, rest = cut(inline(turned.program, [*values, *cts]), len(totals))
        sums = [accumulated(total, term) for total, term in zip(sums, terms, strict=True)]
        program = condense(builder.finish([*sums, *rest], turned.program.name))
    return TransposedLoop(program, consts_active, active)


class TransposedRewind(NamedTuple):
    """The programs of a transposed rewind.

    The cotangents p of the linear carry run forward, as states after the known ones.  The sweep has the known carry,
    cotangents q of the linear states, and totals for the linear constants of the body and of the backward step.

    Attributes:
        body: known constants of body and back, known states, p -> known states, p.
        back: the same, then known carry, q, totals -> known carry, q, totals.
        p_active: which members of the carry have a p.
        q_active: which states have a q.
        body_active: which linear constants of the body have a total.
        back_active: which linear constants of the backward step have one.
    """

    body: Program
    back: Program
    p_active: Flags
    q_active: Flags
    body_active: Flags
    back_active: Flags


def transposed_rewind(body: Program, back: Program, *flags: Flags) -> TransposedRewind:
    """The transpose of a rewind.

    Args:
        body: its step.
        back: its backward step.
        flags: which constants of the body, constants of the backward step, states and members of the carry it is linear
            in, and which results have a cotangent.
    """
    return back.derive(("transposed rewind", body, flags), lambda: _transpose_rewind(body, back, *flags))


def _transpose_rewind(
    body: Program,
    back: Program,
    body_linear: Flags,
    back_linear: Flags,
    x_linear: Flags,
    c_linear: Flags,
    given: Flags,
) -> TransposedRewind:
    # With x' = A x + W w and c = B c' + C x + V v for the linear parts, where A, W and B depend on known states, and C
    # and V also on the known carry: forwards p' = B^T p; backwards q = A^T q' + C^T p, and totals of W^T q' and V^T p.
    states, vs, ws = x_linear.count(True), back_linear.count(True), body_linear.count(True)
    p_active = tuple(g and is_linear for g, is_linear in zip(given, c_linear, strict=True))
    while True:
        wanted = (*(False,) * (vs + states), *chosen(p_active, c_linear))
        undone = _transpose_linear_part(back, (*back_linear, *x_linear, *c_linear), p_active, wanted)
        back_active, x_active, in_active = (tuple(f) for f in cut(undone.in_active, vs, states))
        grown = _present(in_active, c_linear)
        if grown == p_active:
            break
        p_active = grown
    from_p = q_active = _present(x_active, x_linear)
    while True:
        wanted = (*(False,) * ws, *chosen(q_active, x_linear))
        unstepped = _transpose_linear_part(body, (*body_linear, *x_linear), q_active, wanted)
        body_active, in_active = (tuple(f) for f in cut(unstepped.in_active, ws))
        grown = either(from_p, _present(in_active, x_linear))
        if grown == q_active:
            break
        q_active = grown

    w_types, x_types = cut(body.in_types, len(body_linear))
    v_types, _, c_types = cut(back.in_types, len(back_linear), len(x_linear))
    w_known, v_known = others(w_types, body_linear), others(v_types, back_linear)
    x_known, c_known = others(x_types, x_linear), others(c_types, c_linear)
    p_types, q_types = chosen(c_types, p_active), chosen(x_types, q_active)
    totals = [
        *chosen(chosen(w_types, body_linear), body_active),
        *chosen(chosen(v_types, back_linear), back_active),
    ]

    consts, known_states, ps = len(v_known), len(x_known), len(p_types)
    count = len(undone.program.outputs)
    onwards = condense(rewired(undone.program, range(len(undone.program.inputs)), range(count - ps, count)))
    before = consts + known_states
    if any(used_inputs(onwards)[before : before + len(c_known)]):
        raise MissingRule(
            "reverse mode of reverse mode through this while_loop is not defined: an edited or custom derivative in "
            "its body (clip_gradient, say) is not linear in the cotangent. Use forward mode of reverse mode "
            "(ftrans.hessian, or jvp of grad), or ftrans.scan" + at_line(user_line())
        )
    onwards = rewired(onwards, [*range(before), *range(before + len(c_known), len(onwards.inputs))])

    builder = Builder([*w_known, *v_known, *x_known, *p_types])
    with building(builder):
        w, v, x, p = cut(builder.inputs(), len(w_known), consts, known_states)
        next_x = inline(known_step(body, body_linear, x_linear), [*w, *x])
        next_p = inline(onwards, [*v, *x, *p])
        new_body = condense(builder.finish([*next_x, *next_p], body.name))

    builder = Builder([*w_known, *v_known, *x_known, *p_types, *c_known, *q_types, *totals])
    with building(builder):
        w, v, x, p, c, q, sums = cut(
            builder.inputs(), len(w_known), consts, known_states, ps, len(c_known), len(q_types)
        )
        next_c = inline(known_step(back, (*back_linear, *x_linear), c_linear), [*v, *x, *c])
        v_terms, x_terms, _ = cut(inline(undone.program, [*v, *x, *c, *p]), back_active.count(True), from_p.count(True))
        w_terms, steps = cut(inline(unstepped.program, [*w, *x, *q]), body_active.count(True))
        terms = chosen(spread(x_terms, from_p), q_active)
        next_q = [y if t is None else accumulated(y, t) for y, t in zip(steps, terms, strict=True)]
        sums = [accumulated(total, term) for total, term in zip(sums, [*w_terms, *v_terms], strict=True)]
        new_back = condense(builder.finish([*next_c, *next_q, *sums], back.name))
    return TransposedRewind(new_body, new_back, p_active, q_active, body_active, back_active)


def _present(active: Sequence[bool], flags: Flags) -> Flags:
    """`active`, which has one entry per flagged item, with False for all other items."""
    return tuple(a is True for a in spread(active, flags))


def _transpose_linear_part(program: Program, linear: Flags, active: Flags, wanted: Flags) -> Transpose:
    """As `transpose`, of a program that also computes values that are not linear, even within one equation."""

    def make() -> Transpose:
        halves = split_program(program, linear, active)
        count = halves.residual_count
        unknown = (*(False,) * count, *(True,) * linear.count(True))
        turned = transpose_program(halves.unknown, unknown, tuple(chosen(active, halves.out_unknown)), wanted)
        known_types = others(program.in_types, linear)
        builder = Builder([*known_types, *chosen(program.out_types, active)])
        with building(builder):
            values, cts = cut(builder.inputs(), len(known_types))
            results = inline(halves.known, values)
            outs = inline(turned.program, [*results[len(results) - count :], *cts])
            return Transpose(builder.finish(outs, turned.program.name), turned.in_active)

    return program.derive(("transpose linear part", linear, active, wanted), make)


def raise_nonlinear_condition() -> NoReturn:
    """Raise the error for a loop treated as linear whose number of steps depends on a linear operand."""
    raise MissingRule(
        "this while_loop cannot be transposed: its number of steps depends on values in which it should be linear"
        + at_line(user_line())
    )
