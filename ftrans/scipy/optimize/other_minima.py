"""Other minimisers of `scipy.optimize` in traces: global ones, older ones, and its function of Rosenbrock.

Of a global minimum, the derivative is that of the local one that was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...numpy.dispatch import implements, refused
from ...numpy.promotion import asarray
from .calls import BOOL, INT, NUMBER, TRACED_MESSAGE, Call, Given, alone, entering, refuse_complex, vector_of
from .limits import bounds_of, together
from .minima import found_outcome
from .solutions import minimum_of


def _of_one_vector(f: Given) -> Callable[[Tracer], Any]:
    return lambda x: np.reshape(asarray(f(np.reshape(x, f.types[0].shape))), ())


def traced_global_minimum(call: Call) -> OptimizeResult:
    """A minimiser within bounds, in SciPy's result."""
    bounds = bounds_of(call["bounds"])
    lower, upper = (together(x) for x in bounds or ())
    unknown = vector_of(math.prod(np.shape(lower)))
    functions = {"func": call.given("func", unknown)}
    if call.arguments.get("constraints"):
        raise ValueError(
            f"{call.name} of traced values takes bounds only; minimise with constraints by "
            f"ftrans.scipy.optimize.minimize from what it finds{at_line(user_line())}"
        )
    x, *outcome = call.searched(functions, found_outcome, [unknown, BOOL, INT, INT, INT, INT])
    objective = _of_one_vector(functions["func"])
    x = minimum_of(objective, x, call.name, (lower, upper))
    names = ("success", "status", "nit", "nfev", "njev")
    return OptimizeResult(
        x=x, fun=objective(x), message=TRACED_MESSAGE, **dict(zip(names, outcome, strict=True))
    )  # fmt: skip


def _older(call: Call) -> Any:
    """A minimiser without bounds, by itself."""
    if call["full_output"] or call["retall"]:
        raise ValueError(
            f"{call.name} of traced values returns the minimiser alone; for more take "
            f"ftrans.scipy.optimize.minimize, which has its method{at_line(user_line())}"
        )
    refuse_complex(call, "x0")
    unknown = vector_of(math.prod(np.shape(call["x0"])))
    name = "func" if "func" in call.arguments else "f"
    functions = {
        key: call.given(key, unknown) for key in (name, "fprime", "fhess") if callable(call.arguments.get(key))
    }
    (x,) = call.searched(functions, alone, [unknown])
    return minimum_of(_of_one_vector(functions[name]), x, call.name, start=call["x0"])


def _of_one_number(call: Call) -> Any:
    """A minimiser of a function of one number, by itself."""
    if call["full_output"]:
        raise ValueError(
            f"{call.name} of traced values returns the minimiser alone; for more take "
            f"ftrans.scipy.optimize.minimize_scalar, which has its method{at_line(user_line())}"
        )
    f = call.given("func", NUMBER)
    (x,) = call.searched({"func": f}, alone, [NUMBER])
    pair = None
    if "x1" in call.arguments:
        pair = tuple(np.reshape(asarray(call[name]), (1,)) for name in ("x1", "x2"))
    return np.reshape(minimum_of(_of_one_vector(f), np.reshape(x, (1,)), call.name, pair), ())


dual_annealing = entering(scipy.optimize.dual_annealing)(traced_global_minimum)
shgo = entering(scipy.optimize.shgo)(traced_global_minimum)
direct = entering(scipy.optimize.direct)(traced_global_minimum)
fmin = entering(scipy.optimize.fmin)(_older)
fmin_bfgs = entering(scipy.optimize.fmin_bfgs)(_older)
fmin_cg = entering(scipy.optimize.fmin_cg)(_older)
fmin_powell = entering(scipy.optimize.fmin_powell)(_older)
fmin_ncg = entering(scipy.optimize.fmin_ncg)(_older)
fminbound = entering(scipy.optimize.fminbound)(_of_one_number)
brent = entering(scipy.optimize.brent)(_of_one_number)
golden = entering(scipy.optimize.golden)(_of_one_number)


@implements(scipy.optimize.rosen)
def rosen(x: Any) -> Any:
    """Rosenbrock's function, as `scipy.optimize.rosen`."""
    x = asarray(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0, axis=0)


@implements(scipy.optimize.rosen_der)
def rosen_der(x: Any) -> Any:
    """The gradient of Rosenbrock's function, as `scipy.optimize.rosen_der`."""
    x = asarray(x)
    rise = x[1:] - x[:-1] ** 2
    none = np.zeros_like(x[:1])
    left = np.concatenate([-400 * rise * x[:-1] - 2 * (1 - x[:-1]), none])
    return left + np.concatenate([none, 200 * rise])


@implements(scipy.optimize.rosen_hess)
def rosen_hess(x: Any) -> Any:
    """The Hessian of Rosenbrock's function, as `scipy.optimize.rosen_hess`."""
    x = np.atleast_1d(asarray(x))
    none = np.zeros_like(x[:1])
    diagonal = np.concatenate([1200 * x[:-1] ** 2 - 400 * x[1:] + 2, none])
    diagonal = diagonal + np.concatenate([none, np.full_like(x[1:], 200.0)])
    return np.diag(-400 * x[:-1], 1) + np.diag(-400 * x[:-1], -1) + np.diag(diagonal)


@implements(scipy.optimize.rosen_hess_prod)
def rosen_hess_prod(x: Any, p: Any) -> Any:
    """Products with the Hessian of Rosenbrock's function, as `scipy.optimize.rosen_hess_prod`."""
    return rosen_hess(asarray(x)) @ asarray(p)


_MINIMIZE = "use scipy.optimize.minimize, which has the same method"
_REASONS = {
    "approx_fprime": "it computes differences of values; use ftrans.grad or ftrans.jacobian, which are exact",
    "check_grad": "it compares numbers; use ftrans.testing.check_grads outside the traced function",
    "basinhopping": (
        "it compares values; run it outside the traced function, and start scipy.optimize.minimize from its result"
    ),
    "brute": (
        "it compares values on a grid; run it outside the traced function, and start scipy.optimize.minimize from its"
        " result"
    ),
    "bracket": "it compares values; find the bracket outside the traced function",
    "fmin_l_bfgs_b": _MINIMIZE,
    "fmin_tnc": _MINIMIZE,
    "fmin_slsqp": _MINIMIZE,
    "fmin_cobyla": _MINIMIZE,
    "milp": "integers jump, so the solution has no derivative; solve outside the traced function",
    "isotonic_regression": "use scipy.optimize.minimize with the order as linear constraints",
}
FUNCTIONS = {
    name: refused(getattr(scipy.optimize, name), f"scipy.optimize.{name}", why)
    for name, why in _REASONS.items()
    if hasattr(scipy.optimize, name)
}
