"""Taylor coefficients of equations that hold programs: calls, checkpoints, branches and loops.

Each becomes an equation of the same primitive with the program of the coefficients, so that a loop stays one loop,
whose carry has the coefficients as further members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...control.cond import Cond
from ...control.loops.scan import Scan
from ...control.loops.steps import with_more_carries
from ...control.loops.while_loop import While
from ...control.subprograms import cut, rewired, spread
from ...core.primitive import ProgramHolder
from ...core.program import Params, Program
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.literals import full_like
from ...transforms.simplify import condense

Orders = tuple[int, ...]
# The coefficients of the results, or operands, of an equation; the first of each is its value.
Rows = list[list[Tracer | None]]


# `expand(program, given, order, wanted, masked)`, which is `taylor`.
Expand = Callable[..., Any]


def holds_programs(primitive: Any) -> bool:
    """Whether coefficients of an equation are found by those of the programs that it holds."""
    return isinstance(primitive, ProgramHolder | Cond | Scan | While)


def holder_rows(
    primitive: Any, params: Params, rows: Rows, masks: Sequence[Tracer | None], order: int, expand: Expand
) -> list[tuple[list[Tracer | None], Tracer | None]]:
    """The coefficients of the results of an equation that holds programs, each with a mask as that of the operands.

    Args:
        primitive: the primitive of the equation.
        params: its parameters.
        rows: the coefficients of its operands.
        masks: for each operand, where its coefficients from 1 may be nonzero; None for everywhere.
        order: up to which order coefficients are wanted.
        expand: expands a program.
    """
    if isinstance(primitive, ProgramHolder):
        return _call(primitive, params, rows, masks, order, expand)
    if isinstance(primitive, Scan):
        found = _scan(primitive, params, rows, order, expand)
    elif isinstance(primitive, While):
        found = _while(primitive, params, rows, order, expand)
    else:
        found = _cond(primitive, params, rows, order, expand)
    return [(row, None) for row in found]


def _call(
    primitive: ProgramHolder,
    params: Params,
    rows: Rows,
    masks: Sequence[Tracer | None],
    order: int,
    expand: Expand,
) -> list[tuple[list[Tracer | None], Tracer | None]]:
    masked = tuple([m is not None for m in masks])
    expanded = expand(params["program"], _orders(rows), order, (), masked)
    operands = [*_values(rows), *_given(rows), *(m for m in masks if m is not None)]
    outs = primitive.bind_all(operands, {**params, "program": expanded.program})
    count = expanded.masks.count(True)
    found, out_masks = cut(outs, len(outs) - count)
    return list(zip(_spread(found, expanded.orders, order), spread(out_masks, expanded.masks), strict=True))


def _orders(rows: Rows) -> tuple[Orders, ...]:
    """For each row, the orders of its coefficients, from 1, that are not zero."""
    return tuple([tuple([k for k in range(1, len(row)) if row[k] is not None]) for row in rows])


def _values(rows: Rows) -> list[Any]:
    return [row[0] for row in rows]


def _given(rows: Rows) -> list[Any]:
    return [x for row in rows for x in row[1:] if x is not None]


def _spread(outs: Sequence[Tracer], orders: Sequence[Orders], order: int) -> Rows:
    """Values followed by coefficients, as rows."""
    values, found = cut(outs, len(orders))
    remaining = iter(found)
    return [
        [y, *(next(remaining) if k in ks else None for k in range(1, order + 1))]
        for y, ks in zip(values, orders, strict=True)
    ]


def _cond(primitive: Cond, params: Params, rows: Rows, order: int, expand: Expand) -> Rows:
    index, *rest = rows
    branches = params["branches"]
    given = _orders(rest)
    orders = [expand(branch, given, order).orders for branch in branches]
    wanted = tuple([any(row) for row in zip(*orders, strict=True)])
    expanded = [expand(branch, given, order, wanted) for branch in branches]
    outs = primitive.bind_all(
        [index[0], *_values(rest), *_given(rest)], {"branches": tuple([condense(e.program) for e in expanded])}
    )
    return _spread(outs, expanded[0].orders, order)


class _Step(NamedTuple):
    """The body of a loop with its coefficients.

    Attributes:
        program: each group of its inputs and outputs is followed by the coefficients of that group.
        orders: for each output.
        active: which carries have coefficients; these have all of them.
    """

    program: Program
    orders: tuple[Orders, ...]
    active: tuple[bool, ...]


def _step(
    program: Program, groups: Sequence[Rows], carry: int, outputs: Sequence[int], order: int, expand: Expand
) -> _Step:
    """Expand the body of a loop.

    Args:
        program: the body.
        groups: the operands of the loop, in groups; those of one group follow each other.
        carry: which group is the initial carry.
        outputs: how many outputs there are in each group; the first is the carry.
        order: up to which order coefficients are wanted.
        expand: expands a program.
    """
    every = tuple(range(1, order + 1))
    active = [any(x is not None for x in row[1:]) for row in groups[carry]]
    while True:
        given = [_orders(group) for group in groups]
        given[carry] = tuple([every if a else () for a in active])
        wanted = (*active, *[False] * (len(program.outputs) - len(active)))
        expanded = expand(program, tuple(ks for group in given for ks in group), order, wanted)
        grown = [bool(ks) for ks in expanded.orders[: len(active)]]
        if grown == active:
            break
        active = grown
    ins = _grouped([len(group) for group in given], [sum(map(len, group)) for group in given])
    out_orders = cut(expanded.orders, *outputs[:-1])
    outs = _grouped(outputs, [sum(map(len, group)) for group in out_orders])
    return _Step(condense(rewired(expanded.program, ins, outs)), expanded.orders, tuple(active))


def _grouped(values: Sequence[int], coefficients: Sequence[int]) -> list[int]:
    """The order in which the coefficients of each group follow its values, where all values came first."""
    first, behind = 0, sum(values)
    order: list[int] = []
    for count, more in zip(values, coefficients, strict=True):
        order += [*range(first, first + count), *range(behind, behind + more)]
        first, behind = first + count, behind + more
    return order


def _filled(rows: Rows, active: Sequence[bool], order: int) -> list[Any]:
    """The coefficients of the active carries, with arrays of zeros."""
    return [
        full_like(_type(row), 0) if x is None else x
        for row, a in zip(rows, active, strict=True)
        if a
        for x in (row[1:] + [None] * order)[:order]
    ]


def _type(row: list[Tracer | None]) -> ArrayType:
    assert row[0] is not None
    return row[0].type


def _scan(primitive: Scan, params: Params, rows: Rows, order: int, expand: Expand) -> Rows:
    program: Program = params["program"]
    consts, carries = params["consts"], params["carries"]
    fixed, carry, xs = cut(rows, consts, carries)
    counts = [carries, len(program.outputs) - carries]
    step = _step(program, [fixed, carry, xs], 1, counts, order, expand)
    outs = primitive.apply(
        step.program,
        [*_values(fixed), *_given(fixed)],
        [*_values(carry), *_filled(carry, step.active, order)],
        [*_values(xs), *_given(xs)],
        params["length"],
        params["reverse"],
        params["unroll"],
    )
    moved = step.active.count(True) * order
    of_carry, of_ys = cut(outs, carries + moved)
    return _spread(of_carry, step.orders[:carries], order) + _spread(of_ys, step.orders[carries:], order)


def _while(primitive: While, params: Params, rows: Rows, order: int, expand: Expand) -> Rows:
    of_cond, of_body, carry = cut(rows, params["cond_consts"], params["body_consts"])
    step = _step(params["body"], [of_body, carry], 1, [len(carry)], order, expand)
    further = _filled(carry, step.active, order)
    outs = primitive.apply(
        with_more_carries(params["cond"], [x.type for x in further]),
        step.program,
        _values(of_cond),
        [*_values(of_body), *_given(of_body)],
        [*_values(carry), *further],
        params.get("max_steps"),
        params.get("checkpoints"),
    )
    return _spread(outs, step.orders, order)
