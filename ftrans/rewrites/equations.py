"""Rewrites of systems of equations whose matrix is known to have a form."""

from __future__ import annotations

from ..core.program import Params
from ..core.trace import Tracer
from ..ops.linalg import cholesky, triangular_solve
from .rule import Operands, made_by


def solve_by_factor(operands: Operands, params: Params) -> Tracer | None:
    a, b = operands.values
    if made_by(cholesky, a) is None:
        return None
    return triangular_solve(a, b, lower=True, transpose_a=params["transpose_a"], unit_diagonal=False)
