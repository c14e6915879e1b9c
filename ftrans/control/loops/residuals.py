"""Residuals of loops: which values of each step reverse mode stores, and which it recomputes from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...core.program import Atom, Const, Eqn, Program, Var, needed_eqns
from ...ops.elementwise import Elementwise
from ...run.costs import cost
from .motion import SMALL_BYTES, is_one_operation

# So much more memory may be kept of all steps together to save functions such as exp.
_AFFORDABLE_BYTES = 1 << 24


def is_cheap(eqn: Eqn) -> bool:
    """Whether an equation is recomputed rather than kept for every step, if that takes no more memory.

    True if it is free or takes one operation per element.
    """
    time = cost(eqn).time
    return time == 0 or (isinstance(eqn.primitive, Elementwise) and time <= eqn.outputs[0].type.size)


def loop_residuals(
    known: Program, length: int, results: Sequence[Atom], wanted: Sequence[Var], fixed: Sequence[Var], xs: Sequence[Var]
) -> tuple[list[Var], list[Eqn]]:
    """The values of each step to keep so that the `wanted` ones are available, and the equations to run again.

    Constants and sequences of the loop are available anyway, and what its `results` need is computed anyway.  Values
    that depend only on constants are never kept for every step: when they are recomputed, they move out of the loop.
    """
    free = {*fixed, *xs}
    fixed_only: set[Atom] = set(fixed)
    definitions: dict[Atom, Eqn] = {}
    for eqn in known.eqns:
        definitions.update((v, eqn) for v in eqn.outputs)
        if all(isinstance(a, Const) or a in fixed_only for a in eqn.operands):
            fixed_only.update(eqn.outputs)

    def is_elementwise(eqn: Eqn) -> bool:
        small = all(v.type.nbytes <= SMALL_BYTES for v in eqn.outputs)
        return is_cheap(eqn) or (isinstance(eqn.primitive, Elementwise) and small)

    def is_source(v: Atom, may_run_again: Callable[[Eqn], bool] = is_cheap) -> bool:
        return v not in fixed_only and (v not in definitions or not may_run_again(definitions[v]))

    def sources(v: Var, may_run_again: Callable[[Eqn], bool] = is_cheap) -> dict[Var, None]:
        found: dict[Var, None] = {}
        seen: set[Atom] = set()
        pending: list[Atom] = [v]
        while pending:
            a = pending.pop()
            if a in seen or a in free or isinstance(a, Const):
                continue
            seen.add(a)
            if is_source(a, may_run_again):
                found[a] = None
            elif a in definitions:
                pending.extend(definitions[a].operands)
        return found

    kept: dict[Var, None] = {v: None for v in wanted if v not in free and is_source(v)}
    for v in wanted:
        if v not in free and v not in kept:
            new = [x for x in sources(v) if x not in kept]
            cheaper = sum(x.type.nbytes for x in new) <= v.type.nbytes
            kept.update((x, None) for x in (new if cheaper else [v]))
    # Elementwise functions of kept values are computed for all steps at once, before the loop.
    fewer = {x: None for v in wanted if v not in free for x in sources(v, is_elementwise)}
    if _fewer_pay(fewer, kept, needed_eqns(known.eqns, results), length) and not is_one_operation(known):
        kept = fewer
    missing = {v for v in wanted if v not in kept and v not in free}
    again: list[Eqn] = []
    for eqn in reversed(known.eqns):
        if not missing.isdisjoint(eqn.outputs):
            again.append(eqn)
            missing.update(a for a in eqn.operands if isinstance(a, Var) and a not in kept and a not in free)
    return list(kept), again[::-1]


def _fewer_pay(fewer: Iterable[Var], kept: Iterable[Var], step: Sequence[Eqn], length: int) -> bool:
    """Whether it pays to keep the first values, and to compute the others of them for all steps at once.

    What the step computes anyway takes longer to compute again than to read. Other values cost as much in the step as
    later, but less is kept.

    Args:
        fewer: values to keep.
        kept: others that do as well.
        step: what the step computes anyway.
        length: the number of steps.
    """
    difference = sum(v.type.nbytes for v in fewer) - sum(v.type.nbytes for v in kept)
    computed = {v for eqn in step for v in eqn.outputs}
    others = set(kept).difference(fewer)
    if computed.issuperset(others) and -difference * length <= _AFFORDABLE_BYTES:
        return False
    return difference < 0 or (difference == 0 and computed.isdisjoint(others))
