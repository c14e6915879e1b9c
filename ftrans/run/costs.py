"""Estimates of what equations and programs cost, from what each primitive says by its rule `cost`.

One operation on complex numbers counts as four floating-point operations, and one on integers or booleans as none.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.cost import Cost
from ..core.program import Eqn, Program, programs_in
from ..core.types import is_complex, is_inexact

# A primitive that does not say what it costs is taken to be as slow as so many additions for each element.
_UNKNOWN = 100


def cost(eqn: Eqn) -> Cost:
    """What an equation costs."""
    types, results = [a.type for a in eqn.operands], [v.type for v in eqn.outputs]
    found = eqn.primitive.cost(types, results, eqn.params)
    programs = list(programs_in(eqn.params))
    if programs:
        return total(map(program_cost, programs)) if found is None else found
    if found is None:
        size = max((t.size for t in (*types, *results)), default=0)
        found = Cost(sum(t.size for t in results[:1]), _UNKNOWN * size)
    dtypes = [t.dtype for t in (*types, *results)]
    weight = 4 if any(map(is_complex, dtypes)) else 1 if any(map(is_inexact, dtypes)) else 0
    return found._replace(flops=weight * found.flops)


def is_known(eqn: Eqn) -> bool:
    """Whether the primitive of an equation without programs says what it costs."""
    types, results = [a.type for a in eqn.operands], [v.type for v in eqn.outputs]
    return not any(True for _ in programs_in(eqn.params)) and eqn.primitive.cost(types, results, eqn.params) is not None


def program_cost(program: Program) -> Cost:
    """What all equations of a program cost together."""
    return program.derive("cost", lambda: total(map(cost, program.eqns)))


def total(costs: Iterable[Cost]) -> Cost:
    """The sum."""
    found = list(costs)
    return Cost(sum((c.flops for c in found), 0.0), sum((c.time for c in found), 0.0))


def flops(eqn: Eqn) -> float:
    """Floating-point operations of an equation.  A loop without a known number of steps counts as one step."""
    return cost(eqn).flops


def program_flops(program: Program) -> float:
    """Floating-point operations of all equations of a program."""
    return program_cost(program).flops


def nbytes(eqn: Eqn) -> int:
    """Bytes of the operands and results of an equation; a number that stands for an array counts as a number."""
    read = sum(
        a.type.dtype.itemsize if getattr(a, "is_splat", False) else a.type.nbytes for a in dict.fromkeys(eqn.operands)
    )
    return read + sum(v.type.nbytes for v in eqn.outputs)
