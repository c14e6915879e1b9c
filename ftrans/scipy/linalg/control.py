"""`scipy.linalg`: algebraic Riccati equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...numpy.promotion import asarray
from ...ops import linalg as ops
from .operands import adjoint, check_square, implemented, in_double_precision

__all__ = ["solve_continuous_are", "solve_discrete_are"]


@implemented
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """`x` in `a.H x e + e.H x a - (e.H x b + s) inv(r) (b.H x e + s.H) + q = 0`.

    The derivative with respect to `q` and `r` is that of their Hermitian parts.
    """
    return _solution("solve_continuous_are", a, b, q, r, e, s, discrete=False)


@implemented
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """`x` in `a.H x a - e.H x e - (a.H x b + s) inv(r + b.H x b) (b.H x a + s.H) + q = 0`.

    The derivative with respect to `q` and `r` is that of their Hermitian parts.
    """
    return _solution("solve_discrete_are", a, b, q, r, e, s, discrete=True)


def _solution(name: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, discrete: bool) -> Any:
    given = [np.atleast_2d(asarray(x)) for x in (a, b, q, r, e, s) if x is not None]
    a, b, q, r, *rest = in_double_precision(*given)
    for part, x in zip("aqr", (a, q, r), strict=True):
        check_square(f"{name}: {part}", x)
    # With y = inv(e), the equation times y.H from the left and y from the right is one without e.
    if e is not None:
        check_square(f"{name}: e", rest[0])
        inverse = np.linalg.inv(rest.pop(0))
        a, q = a @ inverse, adjoint(inverse) @ q @ inverse
        rest = [adjoint(inverse) @ x for x in rest]
    for mixed in rest:
        # Completing the square removes the mixed term.
        weighted = np.linalg.solve((r + adjoint(r)) / 2, adjoint(mixed))
        a, q = a - b @ weighted, q - mixed @ weighted
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (a, b, q, r)))
    stacks = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b, q, r))
    return ops.riccati(*stacks, discrete=discrete)
