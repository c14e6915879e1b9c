"""Estimates of what equations cost: floating-point operations, and bytes of operands and results.

Each primitive says by its rule `flops` how many operations it takes.  An addition, a comparison and a sine count as one
operation each, one on complex numbers as four, and one on integers or booleans as none.
"""

from __future__ import annotations

from ..core.program import Eqn, Program, programs_in
from ..core.types import is_complex, is_inexact


def flops(eqn: Eqn) -> float:
    """Floating-point operations of an equation.  A loop without a known number of steps counts as one step."""
    types, results = [a.type for a in eqn.operands], [v.type for v in eqn.outputs]
    estimate = eqn.primitive.flops(types, results, eqn.params)
    if any(True for _ in programs_in(eqn.params)):
        return estimate
    dtypes = [t.dtype for t in (*types, *results)]
    if not any(map(is_inexact, dtypes)):
        return 0.0
    return estimate * 4 if any(map(is_complex, dtypes)) else estimate


def program_flops(program: Program) -> float:
    """Floating-point operations of all equations of a program."""
    return program.derive("flops", lambda: sum(map(flops, program.eqns), 0.0))


def nbytes(eqn: Eqn) -> int:
    """Bytes of the operands and results of an equation; a number that stands for an array counts as a number."""
    read = sum(
        a.type.dtype.itemsize if getattr(a, "is_splat", False) else a.type.nbytes for a in dict.fromkeys(eqn.operands)
    )
    return read + sum(v.type.nbytes for v in eqn.outputs)
