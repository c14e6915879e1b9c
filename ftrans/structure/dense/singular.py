"""Which programs may multiply an infinite derivative by a zero, and so make NaN of what is zero."""

from __future__ import annotations

from ...core.program import Const, Program
from ...core.types import is_inexact
from ...ops.elementwise import singular_slope


def has_singular_slopes(linear: Program) -> bool:
    """Whether a factor of a linear program may be infinite."""
    return any(eqn.primitive is singular_slope for eqn in linear.eqns) or any(
        map(has_singular_slopes, linear.subprograms())
    )


def makes_choices(program: Program) -> bool:
    """Whether conditions or indices that are computed say which elements have an influence, and which have none."""
    return any(
        any(not is_inexact(a.type.dtype) and not isinstance(a, Const) for a in eqn.operands)
        and any(is_inexact(v.type.dtype) for v in eqn.outputs)
        for eqn in program.eqns
    ) or any(map(makes_choices, program.subprograms()))
