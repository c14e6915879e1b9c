"""`nnls`, `lsq_linear` and `linprog` in traces: their solutions are differentiated while what holds them stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import Bounds, OptimizeResult
from scipy.sparse import issparse

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...numpy.promotion import asarray
from .calls import BOOL, INT, TRACED_MESSAGE, Call, alone, entering, vector_of
from .limits import bounds_of
from .solutions import Limits, minimum_of


def _traced_nnls(call: Call) -> Any:
    """The solution without negative elements, and the norm of the residual."""
    matrix, right = asarray(call["A"]), asarray(call["b"])
    (x,) = call.searched({}, _first, [vector_of(matrix.shape[1])])
    x = minimum_of(_squares(matrix, right), x, call.name, (0.0, np.inf))
    return x, np.linalg.norm(matrix @ x - right)


def _first(found: Any) -> Sequence[Any]:
    return alone(found[0])


def _squares(matrix: Tracer, right: Tracer) -> Any:
    return lambda x: 0.5 * np.sum((matrix @ x - right) ** 2)


def _traced_lsq_linear(call: Call) -> OptimizeResult:
    """The solution of linear equations within bounds, in SciPy's result."""
    matrix, right = _dense(call, "A"), asarray(call["b"])
    unknown = vector_of(matrix.shape[1])
    types = [unknown, unknown.with_dtype(np.int64), INT, INT, BOOL]
    x, active, *outcome = call.searched({}, _found, types)
    bounds = call["bounds"]
    cost = _squares(matrix, right)
    x = minimum_of(cost, x, call.name, (bounds.lb, bounds.ub) if isinstance(bounds, Bounds) else bounds)
    return OptimizeResult(
        x=x, cost=cost(x), fun=matrix @ x - right, active_mask=active, message=TRACED_MESSAGE,
        **dict(zip(("status", "nit", "success"), outcome, strict=True)),
    )  # fmt: skip


def _found(result: Any) -> Sequence[Any]:
    return result.x, result.active_mask, result.status, result.nit, result.success


def _dense(call: Call, name: str) -> Any:
    """A matrix among the arguments, as an array.

    Raises:
        TypeError: it is an operator, which has no elements.
    """
    given = call[name]
    if issparse(given):
        return asarray(given.toarray())
    if hasattr(given, "matvec"):
        raise TypeError(
            f"{call.name} of traced values takes a matrix, and {name} is a LinearOperator; write the sum of squares as "
            f"a function for ftrans.argmin{at_line(user_line())}"
        )
    return asarray(given)


def _traced_linprog(call: Call) -> OptimizeResult:
    """The solution of a linear program, in SciPy's result; it has a derivative where it is a single regular vertex."""
    if call["integrality"] is not None and np.any(call["integrality"]):
        raise ValueError(
            "linprog of traced values solves for real numbers: integers jump, so that they have no derivative; solve "
            f"outside of the traced function{at_line(user_line())}"
        )
    costs = np.reshape(asarray(call["c"]), (-1,))
    unknown = vector_of(costs.size)
    x, *outcome = call.searched({}, _solved, [unknown, INT, BOOL, INT])
    rows = {
        name: (_dense(call, f"A_{side}"), np.reshape(asarray(call[f"b_{side}"]), (-1,)))
        for name, side in (("slack", "ub"), ("con", "eq"))
        if call[f"A_{side}"] is not None
    }
    bounds = bounds_of(_pairs(call["bounds"], unknown.size))
    x = minimum_of(lambda x: costs @ x, x, call.name, bounds, _constraints(rows))
    return OptimizeResult(
        x=x, fun=costs @ x, message=TRACED_MESSAGE, **{name: b - a @ x for name, (a, b) in rows.items()},
        **dict(zip(("status", "success", "nit"), outcome, strict=True)),
    )  # fmt: skip


def _solved(result: Any) -> Sequence[Any]:
    if result.x is None:
        raise ValueError(f"linprog in a trace has no solution to give: {result.message}")
    return result.x, result.status, result.success, result.nit


def _constraints(rows: dict[str, tuple[Tracer, Tracer]]) -> Limits | None:
    """The equations of a linear program, as limits of products with one matrix."""
    if not rows:
        return None
    matrix = np.concatenate([a for a, _ in rows.values()])
    upper = np.concatenate([b for _, b in rows.values()])
    lower = np.concatenate([b if name == "con" else np.full(b.shape, -np.inf) for name, (_, b) in rows.items()])
    return Limits(lambda x: matrix @ x, lower, upper)


def _pairs(bounds: Any, size: int) -> list[Any]:
    """The bounds of a linear program, one pair for each unknown."""
    rows = [(0.0, None)] if bounds is None or len(bounds) == 0 else list(bounds)
    if len(rows) == 2 and all(np.ndim(x) == 0 for x in rows):
        rows = [tuple(rows)]
    return rows * size if len(rows) == 1 else rows


nnls = entering(scipy.optimize.nnls)(_traced_nnls)
lsq_linear = entering(scipy.optimize.lsq_linear)(_traced_lsq_linear)
linprog = entering(scipy.optimize.linprog)(_traced_linprog)
