"""`scipy.sparse.linalg`: iterative solvers, whose solutions are differentiated as those of the equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg

from ....base.source import at_line, user_line
from ....core.primitive import MissingRule
from ....numpy.dispatch import implements
from ....numpy.promotion import asarray, cast, has_tracer, strong_dtype
from ....solvers.linear import linear_solve
from .operators import Operator, operator_of

__all__ = ["bicgstab", "cg", "gmres"]

# `linear_solve` aims at half of its tolerances, since residuals that are updated drift.
_AIM = 2.0


def _solve(
    method: str, A: Any, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: Any, M: Any, callback: Any, restart: Any = None
) -> tuple[Any, Any]:
    """The solution and 0, or the number of iterations if they did not suffice."""
    if callback is not None:
        raise MissingRule(
            f"{method} of traced values calls no callback; leave it out, or call it outside of the traced function"
            + at_line(user_line())
        )
    a = operator_of(method, A)
    m = None if M is None else operator_of(method, M)
    if not (a.is_traced or has_tracer(b) or has_tracer(x0) or (m is not None and m.is_traced)):
        options = {} if restart is None else {"restart": restart}
        plain = getattr(scipy.sparse.linalg, method)
        return plain(A, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, **options)
    b = _vector(method, b, a)
    start = None if x0 is None or (not has_tracer(x0) and not np.any(x0)) else cast(_vector(method, x0, a), b.dtype)
    limit = 10 * a.n if maxiter is None else int(maxiter)
    restart = min(20, a.n) if restart is None else int(restart)
    x, info = linear_solve(
        a.matvec,
        b,
        method=method,
        tol=_AIM * rtol,
        atol=_AIM * atol,
        maxiter=limit * restart if method == "gmres" else limit,
        restart=restart,
        preconditioner=None if m is None else m.matvec,
        x0=start,
        info=True,
    )
    return x, np.where(info.converged, 0, np.maximum(info.iterations, 1))


def _vector(method: str, b: Any, a: Operator) -> Any:
    b = asarray(b)
    if b.shape not in ((a.n,), (a.n, 1)):
        raise ValueError(f"{method}: shapes of A {(a.n, a.n)} and b {b.shape} are incompatible{at_line(user_line())}")
    kind = np.result_type(a.dtype, strong_dtype(b), np.float32)
    return cast(b.reshape(-1), np.dtype(np.float64) if kind.kind not in "fc" else kind)


@implements(scipy.sparse.linalg.cg, takes_functions=True)
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Any, Any]:
    """`scipy.sparse.linalg.cg`, for symmetric positive definite A: the solution and whether it was found (0)."""
    return _solve("cg", A, b, x0, rtol, atol, maxiter, M, callback)


@implements(scipy.sparse.linalg.bicgstab, takes_functions=True)
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Any, Any]:
    """`scipy.sparse.linalg.bicgstab`: the solution and whether it was found (0)."""
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, callback)


@implements(scipy.sparse.linalg.gmres, takes_functions=True)
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: Any = None,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
    callback_type: Any = None,
) -> tuple[Any, Any]:
    """`scipy.sparse.linalg.gmres`: the solution and whether it was found (0)."""
    return _solve("gmres", A, b, x0, rtol, atol, maxiter, M, callback, restart)
