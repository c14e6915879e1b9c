"""Values that a step computes again, although the step before has computed them: they are carried instead.

The leapfrog method needs the force at the end of a step, and the same force again when the next step begins.  With the
numbers of values (equal operations on equal operands have the same number) for a step, and for the one behind it, whose
carries are the results of the first, this shows as a number of the second step that the first one has, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from ...core.program import Atom, Const, Eqn, Var, needed_eqns, programs_in
from ...run.costs import cost, total
from ..rules.host_call import UserCode, calls_user_code
from .columns import same_constant
from .numbering import comparable

# A carried number costs about as much as so many operations.
_COST_OF_A_CARRY = 4


class CarriedOver(NamedTuple):
    """What a step need not compute.

    Attributes:
        values: the variables of the body that become carries.
        following: for each, the value of a step that it has in the next step.
        before: the equations that compute them for the first step from what the carries begin with.
        eqns: the equations of the body without those of `values`.
    """

    values: list[Var]
    following: list[Atom]
    before: list[Eqn]
    eqns: list[Eqn]


def find_carried_over(
    eqns: Sequence[Eqn], fixed: Iterable[Var], carries: Sequence[Var], following: Sequence[Atom], rows: Sequence[Atom]
) -> CarriedOver | None:
    """Find what a step has from the one before, if carrying it is cheaper than computing it again.

    Args:
        eqns: the equations of the body.
        fixed: its inputs that stay the same.
        carries: its inputs that are carried.
        following: the carries of the next step.
        rows: its other results.
    """
    table: dict[Hashable, tuple[Hashable, ...]] = {}
    start: dict[Atom, Hashable] = {v: v for v in (*fixed, *carries)}
    first = _numbers(eqns, start, table, 1)
    second = _numbers(eqns, {**start, **{v: first[a] for v, a in zip(carries, following, strict=True)}}, table, 2)
    by_number: dict[Hashable, Var] = {}
    for eqn in eqns:
        for v in eqn.outputs:
            by_number.setdefault(first[v], v)
    known: set[Atom] = {*fixed, *carries}
    repeated: list[Eqn] = []
    for eqn in eqns:
        is_computable = all(isinstance(a, Const) or a in known for a in eqn.operands)
        if is_computable and all(second[v] in by_number for v in eqn.outputs):
            repeated.append(eqn)
            known.update(eqn.outputs)
    dropped = {v for eqn in repeated for v in eqn.outputs}
    kept = [eqn for eqn in eqns if dropped.isdisjoint(eqn.outputs)]
    used = {a for eqn in kept for a in eqn.operands} | {*following, *rows}
    values = [v for eqn in repeated for v in eqn.outputs if v in used]
    new = [by_number[second[v]] for v in values]
    if not dropped.isdisjoint(new):
        return None
    price = _COST_OF_A_CARRY * sum(v.type.size for v in values)
    if not values or total(map(cost, repeated)).time <= price:
        return None
    return CarriedOver(values, list(new), needed_eqns(repeated, values), kept)


def _numbers(
    eqns: Sequence[Eqn], start: dict[Atom, Hashable], table: dict[Hashable, tuple[Hashable, ...]], step: int
) -> dict[Atom, Hashable]:
    """The number of each value of a step; what is not in `start` is another value in each step."""
    numbers = dict(start)

    def number(atom: Atom) -> Hashable:
        if isinstance(atom, Const):
            return same_constant(atom)
        return numbers.setdefault(atom, (step, atom))

    for eqn in eqns:
        key: Any = (eqn.primitive, comparable(eqn.params), tuple(map(number, eqn.operands)))
        if isinstance(eqn.primitive, UserCode) or any(map(calls_user_code, programs_in(eqn.params))):
            key = (step, eqn)
        if key not in table:
            table[key] = tuple((step, v) for v in eqn.outputs)
        numbers.update(zip(eqn.outputs, table[key], strict=True))
    return _WithConstants(numbers)


class _WithConstants(dict[Atom, Hashable]):
    """Numbers of variables; a constant is its own."""

    def __missing__(self, atom: Atom) -> Hashable:
        assert isinstance(atom, Const)
        return same_constant(atom)
