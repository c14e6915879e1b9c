"""Rows: what a backward sweep needs of each step, which may be results of the step rather than the state before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.program import Atom, Eqn, Program, Var, needed_eqns
from ..subprograms import Flags, chosen, cut, others
from .residuals import is_cheap

# All rows together may take this much memory, or as much as the states; filling more takes longer than it saves.
_MOST_BYTES = 1 << 25


class Rows(NamedTuple):
    """A backward step, divided into the part that makes the row of the step and the part that uses it.

    Attributes:
        states: which members of the state are in the row.
        row: constants, all states -> the rest of the row.
        undo: constants, these states, the rest of the row, carry -> carry.
    """

    states: tuple[int, ...]
    row: Program
    undo: Program


def rows_of(back: Program, late: Flags, states: int, count: int) -> Rows:
    """Divide a backward step, a program of constants, states and a carry.

    Args:
        back: the backward step.
        late: for each constant, whether it is not yet known when the rows are made.
        states: how many members the state has.
        count: the greatest number of rows.
    """
    most = _MOST_BYTES // max(count, 1)
    return back.derive(("rows", late, states, most), lambda: _divide(back, late, states, most))


def _divide(back: Program, late: Flags, states: int, most: int) -> Rows:
    of_consts, of_states, carry = cut(back.inputs, len(late), states)
    unknown: set[Atom] = {*chosen(of_consts, late), *carry}
    # For each value that depends only on states, the values from which it can be recomputed at little cost.
    sources: dict[Atom, dict[Var, None]] = {v: {} for v in others(of_consts, late)}
    sources.update((v, {v: None}) for v in of_states)
    wanted: dict[Var, None] = {}
    for eqn in back.eqns:
        operands = dict.fromkeys(a for a in eqn.operands if isinstance(a, Var))
        if not unknown.isdisjoint(operands):
            unknown.update(eqn.outputs)
            wanted.update((a, None) for a in operands if a not in unknown)
            continue
        several = {x: None for a in operands for x in sources[a]}
        for v in eqn.outputs:
            grows = sum(a.type.nbytes for a in operands) < v.type.nbytes
            sources[v] = several if not several or grows or is_cheap(eqn) else {v: None}
    wanted.update((a, None) for a in back.outputs if isinstance(a, Var) and a not in unknown)

    kept: dict[Var, None] = {v: None for v in wanted if list(sources[v]) == [v]}
    for v in wanted:
        more = [x for x in sources[v] if x not in kept]
        cheaper = sum(x.type.nbytes for x in more) <= v.type.nbytes
        kept.update((x, None) for x in (more if cheaper else [v]))
    used = {a for eqn in back.eqns for a in eqn.operands}.union(back.outputs)
    before = [v for v in of_states if v in used]
    if _bytes(kept) > max(most, _bytes(before)):
        kept = dict.fromkeys(before)
    rest = [v for v in kept if v not in of_states]
    places = [i for i, v in enumerate(of_states) if v in kept]
    row = Program(f"row({back.name})", [*of_consts, *of_states], needed_eqns(back.eqns, rest), rest)
    inputs = [*of_consts, *(of_states[i] for i in places), *rest, *carry]
    again = [_without_results(eqn, rest) for eqn in back.eqns]
    undo = Program(back.name, inputs, needed_eqns(again, back.outputs), back.outputs)
    return Rows(tuple(places), row, undo)


def _without_results(eqn: Eqn, unwanted: Sequence[Var]) -> Eqn:
    outputs = tuple(Var(v.type) if v in unwanted else v for v in eqn.outputs)
    return Eqn(eqn.primitive, eqn.operands, eqn.params, outputs, eqn.line)


def _bytes(values: Sequence[Var] | dict[Var, None]) -> int:
    return sum(v.type.nbytes for v in values)
