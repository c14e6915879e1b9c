"""Solutions with derivatives: what SciPy found, with the derivative of the exact solution beside it.

SciPy's solvers stop at a tolerance, some of them far from the last digit.  The value of a solution is theirs.  From
there Newton steps go on to the solution itself, where the implicit function theorem gives its derivatives of any order
(`solvers/root.py`); where the steps do not arrive, or the Jacobian is singular, asking for a derivative is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...api.call import trace_flat
from ...api.derivatives import grad, jvp
from ...api.jacobians import jacobian
from ...api.vectors import Captured
from ...control.convergence import derivative_required
from ...core.trace import NoWitness, Tracer
from ...numpy.promotion import asarray
from ...ops.elementwise import stop_gradient
from ...solvers.implicit import linear_choice
from ...solvers.root import root as primitive
from ...solvers.search import Search
from ...structure.entries import NotStructured
from ...structure.patterns.detect import jacobian_pattern
from .calls import Given

_TOLERANCE, _STEPS = 1e-10, 50
# The size of an unknown that is zero, relative to the largest one and to how far the search went.
_SMALLEST = 1e-4
# How far from what was found the solution may be, relative to its size and one.
_NEAR = 0.05
# How close to a limit a constraint may hold, and how much of the scales of the problem is taken for zero.
_REACHED, _ZERO = 1e-2, 1e-9
_NOT_NEAR = (
    "the derivative of {name} is not defined here: Newton steps from what SciPy found lead far away, so it has not "
    "converged; ask for a better solution, by a start that is closer or by smaller tolerances"
)
_NOT_STRICT = (
    "the derivative of {name} is not defined here: which bounds and constraints hold the solution changes at this "
    "point, or cannot be told from what SciPy found. Move the problem off the point, ask for smaller tolerances, or "
    "stop the derivative with stop_gradient"
)


def root_of(residual: Callable[[Tracer], Any], found: Tracer, name: str, *starts: Any) -> Tracer:
    """A root that was found, with its derivative.

    Args:
        residual: the equations, as a function of an array like `found`.
        found: the root, of any shape.
        name: the name of the solver.
        starts: where the search began; they say how large unknowns are that are zero.
    """
    return _shaped(residual, found, (-1,), name, starts)


def root_of_each(f: Given, found: Tracer, name: str, *starts: Any) -> Tracer:
    """The root for each element of an array, where each result of `f` depends on one element only.

    Where it does not, all of them are one system of equations.
    """
    return _shaped(f, found, (-1, 1) if _is_elementwise(f) else (-1,), name, starts)


def _is_elementwise(f: Given) -> bool:
    assert f.captured is not None
    count = len(f.consts)
    try:
        pattern = jacobian_pattern(f.captured.program, (*[False] * count, True), 1, {})
    except NotStructured:
        return False
    rows, columns = pattern.nonzero()
    return bool(np.array_equal(rows, columns))


def _shaped(
    residual: Callable[[Tracer], Any], found: Tracer, shape: tuple[int, ...], name: str, starts: Sequence[Any]
) -> Tracer:
    """A root, of equations for which the unknowns have another shape."""

    def equations(x: Tracer) -> Any:
        return np.reshape(asarray(residual(np.reshape(x, found.shape))), shape)

    at = np.reshape(found, shape)
    distance = _distance(found, starts)
    exact = _near(_root(equations, at, name, np.reshape(distance, shape)), at, name)
    return with_derivative_of(found, np.reshape(exact, found.shape))


def _distance(found: Tracer, starts: Sequence[Any]) -> Any:
    """How far the search went, for each unknown."""
    distance = np.zeros(found.shape)
    for start in starts:
        distance = np.maximum(distance, np.abs(found - np.reshape(asarray(start), found.shape)))
    return distance


def _root(residual: Callable[[Tracer], Any], start: Tracer, name: str, distance: Any = 0.0) -> Tracer:
    """The root that Newton steps lead to; axes of the start before the last are problems of their own.

    The unknowns are counted in their sizes, from one at the start, because a zero says nothing of how close is close.
    """
    start = stop_gradient(start)
    largest = np.max(np.maximum(np.abs(start), stop_gradient(asarray(distance))), axis=-1, keepdims=True)
    sizes = np.maximum(np.abs(start), _SMALLEST * np.where(largest < _TOLERANCE, 1.0, largest))

    def counted(xs: Sequence[Tracer]) -> Any:
        return residual(start + sizes * (xs[0] - 1.0))

    traced, _ = trace_flat(residual, [start.type], counted, NoWitness(f"{name} solves its equations for many values"))
    equations = Captured.of(traced.program, traced.captured)
    linear = linear_choice(None, start.type.with_shape(start.shape[-1:]), "gmres", False, name)
    search = Search(name, "newton", _TOLERANCE, None, _STEPS, linear=linear)
    consts = [asarray(x) for x in equations.consts]
    x, *_ = primitive(*consts, np.ones_like(start), residual=equations.program, guide=None, search=search)
    return start + sizes * (x - 1.0)


def _near(exact: Tracer, found: Tracer, name: str) -> Tracer:
    """The exact solution, which has a derivative only if it is near to what was found."""
    start = stop_gradient(found)
    distance = np.linalg.norm(stop_gradient(exact) - start, axis=-1)
    is_near = distance <= _NEAR * (1.0 + np.linalg.norm(start, axis=-1))
    return derivative_required(exact, is_near, message=_NOT_NEAR.format(name=name))


def with_derivative_of(found: Tracer, exact: Tracer) -> Tracer:
    """What was found, with the derivative of the exact solution."""
    return found + (exact - stop_gradient(exact))


class Limits(NamedTuple):
    """What functions of the unknowns are kept between.

    Attributes:
        values: a function of `x`, of shape (n,), with a vector as result.
        lower: the least value of each element, or minus infinity.
        upper: the largest one, or infinity.
    """

    values: Callable[[Tracer], Any]
    lower: Any
    upper: Any


def minimum_of(
    objective: Callable[[Tracer], Any],
    found: Tracer,
    name: str,
    bounds: tuple[Any, Any] | None = None,
    constraints: Limits | None = None,
    start: Any = None,
) -> Tracer:
    """A minimiser that was found, with its derivative.

    It is the solution of the Karush-Kuhn-Tucker equations for the bounds and constraints that hold it, in the unknowns
    and the multipliers of constraints (Nocedal and Wright, Numerical Optimization, 2006, section 12.3).  Which ones do
    is guessed at the point that was found, and must be confirmed by the solution: multipliers of those that hold it
    have the right sign and are not zero, and all others are not reached.  There is no derivative otherwise.

    Args:
        objective: a function of `x` with a number as result.
        found: the minimiser, of shape (n,).
        name: the name of the solver.
        bounds: the least and the largest value of each unknown.
        constraints: other constraints.
        start: where the search began; it says how large unknowns are that are zero.
    """
    distance = _distance(found, () if start is None else (start,))
    if bounds is None and constraints is None:
        return with_derivative_of(found, _near(_root(grad(objective), found, name, distance), found, name))
    point = stop_gradient(found)
    lower, upper = (-np.inf, np.inf) if bounds is None else bounds
    constraints = constraints or Limits(lambda x: x[:0], np.zeros(0), np.zeros(0))
    scales, values, slope = _scales(objective, point), constraints.values(point), grad(objective)(point)
    kept, multipliers = _Held.by_distance(values, constraints.lower, constraints.upper), values
    if values.size:
        slopes = stop_gradient(jacobian(constraints.values)(point))
        near = _Held.by_distance(point, lower, upper)
        multipliers = _multipliers(slopes, slope, near, kept)
        kept = kept.confirmed(values, -multipliers * np.linalg.norm(slopes, axis=1) / scales[1])
        slope = slope + multipliers @ slopes
    held = _Held.by_slope(point, slope, lower, upper, scales)

    def lagrangian(x: Tracer, y: Tracer) -> Any:
        return grad(lambda x: objective(x) + np.sum(y * constraints.values(x)))(x)

    def equations(z: Tracer) -> Any:
        x, y = z[: found.size], z[found.size :]
        return np.concatenate([held.rows(x, lagrangian(x, y)), kept.rows(constraints.values(x), y)])

    distance = np.concatenate([distance, np.zeros(values.size)])
    z = _root(equations, np.concatenate([point, multipliers]), name, distance)
    x, y = z[: found.size], stop_gradient(z[found.size :])
    at = stop_gradient(x)
    zero = _ZERO * _scales(objective, at)[1]
    holds = held.is_strict(at, lagrangian(at, y), zero) & kept.is_strict(constraints.values(at), -y, zero)
    x = derivative_required(x, holds, message=_NOT_STRICT.format(name=name))
    return with_derivative_of(found, _near(x, found, name))


def _multipliers(slopes: Any, slope: Any, held: _Held, kept: _Held) -> Any:
    """The multipliers of the constraints that hold a minimiser, which balance the slope of the objective best."""
    active, free = kept.at_lower | kept.at_upper, ~(held.at_lower | held.at_upper)
    turned = np.where(active[:, None] & free, slopes, 0.0).T
    return stop_gradient(np.where(active, -np.linalg.pinv(turned) @ np.where(free, slope, 0.0), 0.0))


def _scales(objective: Callable[[Tracer], Any], x: Tracer) -> tuple[Any, Any]:
    """The size of the unknowns, and how large slopes of the objective are from such a distance."""
    slope, change = jvp(grad(objective), (x,), (1.0 + np.abs(x),))
    return 1.0 + np.max(np.abs(x)), np.max(np.abs(slope)) + np.max(np.abs(change)) + np.finfo(float).tiny


class _Held(NamedTuple):
    """Which elements of a vector are held at one of their limits.

    Attributes:
        lower: the least values.
        upper: the largest ones.
        at_lower: where it is held at those.
        at_upper: where it is held at these.
        is_fixed: where both are the same.
    """

    lower: Tracer
    upper: Tracer
    at_lower: Tracer
    at_upper: Tracer
    is_fixed: Tracer

    @classmethod
    def by_slope(cls, x: Tracer, slope: Any, lower: Any, upper: Any, scales: tuple[Any, Any]) -> _Held:
        """Which bounds hold a minimiser: those that a step along the slope would pass."""
        step = slope * (scales[0] / scales[1])
        return cls._of(x, lower, upper, lambda low, high: (step > x - low, -step > high - x))

    @classmethod
    def by_distance(cls, values: Tracer, lower: Any, upper: Any) -> _Held:
        """Which limits hold values: those that are close."""
        reach = _REACHED * (1.0 + np.abs(values))
        return cls._of(values, lower, upper, lambda low, high: (values - low <= reach, high - values <= reach))

    def confirmed(self, values: Tracer, multipliers: Any) -> _Held:
        """Those of them whose multipliers, relative to what they can be, are larger than the distance."""
        lower, upper = stop_gradient(self.lower), stop_gradient(self.upper)
        step = multipliers * (1.0 + np.abs(values))
        at_lower = self.at_lower & (self.is_fixed | (step > values - lower))
        return self._replace(at_lower=at_lower, at_upper=self.at_upper & (-step > upper - values))

    @classmethod
    def _of(cls, values: Tracer, lower: Any, upper: Any, reached: Callable[[Any, Any], tuple[Any, Any]]) -> _Held:
        lower, upper = (np.broadcast_to(asarray(x), values.shape) for x in (lower, upper))
        low, high = stop_gradient(lower), stop_gradient(upper)
        at_lower, at_upper = reached(low, high)
        is_fixed = low == high
        at_lower = at_lower | is_fixed
        return cls(lower, upper, at_lower, at_upper & ~at_lower, is_fixed)

    def rows(self, values: Tracer, otherwise: Any) -> Any:
        """Equations that hold the values at these limits, and are those given `otherwise`."""
        lower, upper = (np.where(np.isfinite(x), x, 0.0) for x in (self.lower, self.upper))
        return np.where(self.at_lower, values - lower, np.where(self.at_upper, values - upper, otherwise))

    def is_strict(self, values: Any, multipliers: Any, zero: Any) -> Any:
        """Whether the limits are those that hold the values, and no others come close."""
        close = _ZERO * (1.0 + np.abs(values))
        lower, upper = stop_gradient(self.lower), stop_gradient(self.upper)
        free = (values - lower > close) & (upper - values > close)
        at_limit = np.where(self.at_lower, multipliers > zero, multipliers < -zero)
        return np.all(self.is_fixed | np.where(self.at_lower | self.at_upper, at_limit, free))
