"""`least_squares`, `leastsq` and `curve_fit` in traces: parameters of fits with their derivatives by the data."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import Bounds, OptimizeResult

from ...api.jacobians import jacobian
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...numpy.promotion import asarray, has_tracer
from ..linalg import solve_triangular
from .calls import BOOL, INT, TRACED_MESSAGE, Call, Given, entering, refuse_complex, vector_of
from .solutions import minimum_of, with_derivative_of

Function = Callable[..., Any]

# What a loss makes of squares (SciPy's documentation of least_squares).
_LOSSES: dict[str, Function] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(np.where(z <= 1.0, 1.0, z)) - 1.0),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}


def traced_least_squares(call: Call) -> OptimizeResult:
    """The minimiser of a sum of squares, or of losses, in SciPy's result."""
    refuse_complex(call, "x0")
    unknown = vector_of(math.prod(np.shape(call["x0"])))
    further = call["kwargs"] or {}
    functions = {
        name: call.given(name, unknown, as_read=lambda f: lambda x: f(x, **further))
        for name in ("fun", "jac")
        if callable(call[name])
    }
    types = [unknown, vector_of(unknown.size).with_dtype(np.int64), INT, BOOL, INT, INT]
    x, active, *outcome = call.searched(functions, _found, types, {"kwargs": {}})
    residual = _vector(functions["fun"])
    cost = _cost(residual, call["loss"], call["f_scale"])
    x = minimum_of(cost, x, call.name, _limits(call["bounds"]), start=call["x0"])
    matrix, values = jacobian(residual)(x), residual(x)
    return OptimizeResult(
        x=x, cost=cost(x), fun=values, jac=matrix, grad=matrix.T @ values, active_mask=active, message=TRACED_MESSAGE,
        **dict(zip(("status", "success", "nfev", "njev"), outcome, strict=True)),
    )  # fmt: skip


def _found(result: Any) -> Sequence[Any]:
    return result.x, result.active_mask, result.status, result.success, result.nfev, result.njev or 0


def _vector(f: Given) -> Callable[[Tracer], Any]:
    return lambda x: np.reshape(asarray(f(x)), (-1,))


def _cost(residual: Function, loss: Any, scale: Any) -> Callable[[Tracer], Any]:
    """Half the sum of squares, or of what the loss makes of them."""
    rho = _LOSSES[loss] if isinstance(loss, str) else lambda z: loss(z)[0]
    if loss == "linear":
        return lambda x: 0.5 * np.sum(residual(x) ** 2)
    return lambda x: 0.5 * np.sum(scale**2 * rho((residual(x) / scale) ** 2))


def _limits(bounds: Any) -> tuple[Any, Any] | None:
    """The bounds of a fit; None where all are infinite."""
    lower, upper = (bounds.lb, bounds.ub) if isinstance(bounds, Bounds) else bounds
    if not has_tracer([lower, upper]) and np.all(np.isneginf(lower)) and np.all(np.isposinf(upper)):
        return None
    return lower, upper


def _traced_leastsq(call: Call) -> Any:
    """The minimiser of a sum of squares, as `leastsq` returns it."""
    refuse_complex(call, "x0")
    unknown = vector_of(math.prod(np.shape(call["x0"])))
    functions = {name: call.given(name, unknown) for name in ("func", "Dfun") if call[name] is not None}
    residual = _vector(functions["func"])
    if not call["full_output"]:
        x, status = call.searched(functions, tuple, [unknown, INT])
        return minimum_of(_cost(residual, "linear", 1.0), x, call.name, start=call["x0"]), status
    square = _square(unknown.size)
    x, covariance, evaluations, status = call.searched(functions, _full, [unknown, square, INT, INT])
    x = minimum_of(_cost(residual, "linear", 1.0), x, call.name, start=call["x0"])
    covariance = with_derivative_of(covariance, _covariance(residual, x))
    return x, covariance, {"nfev": evaluations, "fvec": residual(x)}, TRACED_MESSAGE, status


def _square(size: int) -> ArrayType:
    return vector_of(size).with_shape((size, size))


def _full(found: Any) -> Sequence[Any]:
    x, covariance, info, _, status = found
    return x, np.full((x.size, x.size), np.inf) if covariance is None else covariance, info["nfev"], status


def _covariance(residual: Function, x: Tracer) -> Any:
    """The inverse of J^T J for the Jacobian J of the residuals."""
    inverse = np.linalg.inv(np.linalg.qr(jacobian(residual)(x), mode="r"))
    return inverse @ inverse.T


def traced_curve_fit(call: Call) -> Any:
    """Parameters of a model and their covariance, as `curve_fit` returns them."""
    if call["nan_policy"] == "omit":
        raise ValueError(
            "curve_fit of traced values takes all data: their number may not depend on them. Leave out those that "
            f"are not finite before, or give them an infinite sigma{at_line(user_line())}"
        )
    xdata, ydata = (_as_data(call[name]) for name in ("xdata", "ydata"))
    bounds = _limits(call["bounds"])
    start = _start(call["f"], bounds) if call["p0"] is None else call["p0"]
    unknown = vector_of(math.prod(np.shape(start)))
    if unknown.size > np.size(ydata) and bounds is None:
        raise TypeError(
            f"curve_fit was given {np.size(ydata)} data for {unknown.size} parameters, of which there must not be more"
            + at_line(user_line())
        )

    def of_vector(f: Function) -> Function:
        return lambda p: f(xdata, *[p[i] for i in range(unknown.size)])

    functions = {name: call.given(name, unknown, as_read=of_vector) for name in ("f", "jac") if callable(call[name])}
    changed = {"xdata": xdata, "ydata": ydata, "p0": start, "full_output": True}
    types = [unknown, _square(unknown.size), INT, INT]
    x, covariance, evaluations, status = call.searched(functions, _fitted, types, changed, _as_models)
    residual = _residual(functions["f"], asarray(ydata), call["sigma"])
    x = minimum_of(_cost(residual, "linear", 1.0), x, call.name, bounds, start=start)
    values = residual(x)
    inverse = _covariance(residual, x)
    if not call["absolute_sigma"]:
        inverse = inverse * (np.sum(values**2) / max(values.size - unknown.size, 1))
    covariance = with_derivative_of(covariance, inverse)
    if not call["full_output"]:
        return x, covariance
    return x, covariance, {"nfev": evaluations, "fvec": values}, TRACED_MESSAGE, status


def _as_data(data: Any) -> Any:
    """The data as SciPy hands them to the model."""
    if isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.dtype == object):
        return asarray(data) if has_tracer(data) else np.asarray(data, float)
    return data


def _start(f: Function, bounds: tuple[Any, Any] | None) -> Any:
    """Where SciPy starts, if nobody says: at one, or within the bounds."""
    size = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in inspect.signature(f).parameters.values())
    lower, upper = (np.broadcast_to(asarray(x), (size - 1,)) for x in ((-np.inf, np.inf) if bounds is None else bounds))
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    low, high = np.where(has_lower, lower, 0.0), np.where(has_upper, upper, 0.0)
    return np.where(
        has_lower & has_upper, 0.5 * (low + high),
        np.where(has_lower, low + 1.0, np.where(has_upper, high - 1.0, 1.0)),
    )  # fmt: skip


def _as_models(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `curve_fit`, from those in which functions are of the vector of parameters alone."""
    for name in ("f", "jac"):
        if callable(arguments.get(name)):
            arguments[name] = lambda _, *parameters, f=arguments[name]: f(_together(parameters))
    return arguments


def _together(parameters: Sequence[Any]) -> Any:
    return asarray(parameters) if has_tracer(parameters) else np.array(parameters)


def _fitted(found: Any) -> Sequence[Any]:
    parameters, covariance, info, _, status = found
    return parameters, covariance, info["nfev"], status


def _residual(f: Given, ydata: Tracer, sigma: Any) -> Function:
    """The differences of model and data, in units of their errors."""

    def differences(p: Tracer) -> Any:
        return np.reshape(asarray(f(p)) - ydata, (-1,))

    if sigma is None:
        return differences
    errors = asarray(sigma)
    if errors.ndim < 2 or errors.size == 1:
        return lambda p: differences(p) / np.reshape(errors, (-1,))
    factor = np.linalg.cholesky(errors)
    return lambda p: solve_triangular(factor, differences(p), lower=True)


leastsq = entering(scipy.optimize.leastsq)(_traced_leastsq)
