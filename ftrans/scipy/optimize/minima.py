"""`scipy.optimize.minimize` and `minimize_scalar` in traces: minimisers with derivatives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import Bounds, OptimizeResult

from ...api.derivatives import grad
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...numpy.promotion import asarray
from .calls import BOOL, INT, NUMBER, TRACED_MESSAGE, Call, entering, refuse_complex, vector_of
from .limits import Constraints, bounds_of, put_together, together
from .solutions import minimum_of


def refuse_mapping(x0: Any) -> None:
    """The error for a start by names, which SciPy has no message for."""
    if isinstance(x0, Mapping):
        raise TypeError(
            f"minimize takes a vector as x0, not a {type(x0).__name__}; ft.argmin(f, x0) minimises functions of "
            f"dictionaries and other containers{at_line(user_line())}"
        )


def traced_minimize(call: Call) -> OptimizeResult:
    """A minimiser, in SciPy's result."""
    refuse_mapping(call["x0"])
    refuse_complex(call, "x0")
    unknown = vector_of(math.prod(np.shape(call["x0"])))
    functions = {"fun": call.given("fun", unknown)}
    for name in ("jac", "hess"):
        if callable(call[name]):
            functions[name] = call.given(name, unknown)
    if call["hessp"] is not None:
        functions["hessp"] = call.given("hessp", unknown, unknown)
    constraints = Constraints(call, unknown)
    functions |= constraints.functions
    bounds = bounds_of(call["bounds"])
    keep = (call["bounds"].keep_feasible,) if isinstance(call["bounds"], Bounds) else ()
    arguments = {
        "bounds": None if bounds is None else (*map(together, bounds), *keep),
        "constraints": constraints.arguments,
    }
    x, *outcome = call.searched(functions, found_outcome, [unknown, BOOL, INT, INT, INT, INT], arguments, put_together)
    f = functions["fun"]

    def objective(x: Tracer) -> Any:
        out = f(x)
        # The function may return its gradient, too.
        return np.reshape(asarray(out[0] if call["jac"] is True else out), ())

    x = minimum_of(objective, x, call.name, bounds, constraints.limits(x), call["x0"])
    names = ("success", "status", "nit", "nfev", "njev")
    return OptimizeResult(
        x=x, fun=objective(x), jac=grad(objective)(x), message=TRACED_MESSAGE, **dict(zip(names, outcome, strict=True))
    )


def found_outcome(result: Any) -> Sequence[Any]:
    """The minimiser, and how it was found."""
    return (
        result.x,
        result.success,
        result.get("status", 0),
        result.get("nit", 0),
        result.nfev,
        result.get("njev", 0),
    )


def _traced_minimize_scalar(call: Call) -> OptimizeResult:
    """A minimiser of a function of one number, in SciPy's result."""
    f = call.given("fun", NUMBER)
    x, *counts = call.searched({"fun": f}, _found_scalar, [NUMBER, BOOL, INT, INT])
    bounds = call["bounds"]

    def objective(x: Tracer) -> Any:
        return np.reshape(asarray(f(np.reshape(x, ()))), ())

    pair = None if bounds is None else tuple(np.reshape(asarray(x), (1,)) for x in bounds)
    x = np.reshape(minimum_of(objective, np.reshape(x, (1,)), call.name, pair), ())
    names = ("success", "nit", "nfev")
    return OptimizeResult(x=x, fun=objective(x), message=TRACED_MESSAGE, **dict(zip(names, counts, strict=True)))


def _found_scalar(result: Any) -> Sequence[Any]:
    return result.x, result.success, result.get("nit", 0), result.nfev


minimize_scalar = entering(scipy.optimize.minimize_scalar)(_traced_minimize_scalar)
