"""Solvers of nonlinear equations and minimisers: damped Newton steps, and accelerated fixed-point iteration.

They are written against a `Backend`, for many independent problems (lanes) at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ..control.rules.backends import Backend, State

# Damping starts here when a Newton step has failed; beyond the end, the iteration has stalled.
_FIRST_DAMPING, _LAST_DAMPING, _GROWTH = 1e-3, 1e10, 10.0
# Newton steps to a simple root shrink faster than this, those to a multiple root at best by a half.
_CONTRACTION = 0.3
# The least distance from which a root is looked at, relative to the unknowns and as a power of the rounding error; how
# many times farther than the error of the root it is; and the part of it that may be left.
_PROBE, _FARTHER, _LEFT = 0.45, 100.0, 0.1
_ROUNDINGS_TRIED = (10, 30, 100)
# Numbers of which the difference is zero leave a residual of some roundings.
_ROUNDINGS = 10
# Points at which Newton steps are tested, from the solution (0) to the start (1), and the number of steps.
_BETWEEN, _STEPS_BETWEEN = (0.0, 0.5, 0.75, 0.875, 0.97), 4
# Steps to a root of a multiplicity below ten become shorter at least by this, those to one at infinity go straight on.
_SHORTER, _STRAIGHT = 0.9, 0.9
# Relative to the unknowns, the longest step from a point that is near a root, and from one that is as good as it.
_NEAR, _STILL = 1e-3, 1e-4
# The longest step to a root that is zero, in rounding errors of the start.
_WITHIN = 1e3


class Found(NamedTuple):
    """Where an iteration ended, for each lane.

    Attributes:
        x: the last point.
        value: the residual there.
        reached: whether the last full Newton step was no more than `tol` times the size of x, for each unknown.
        regular: whether steps shrank as they do near a simple root.
        iterations: the number of steps.
        first: the norm of the residual at the start.
    """

    x: Any
    value: Any
    reached: Any
    regular: Any
    iterations: Any
    first: Any


Evaluate = Callable[[Any], tuple[Any, Any]]
Direction = Callable[[Any, Any, Any], Any]


def damped_newton(
    backend: Backend, evaluate: Evaluate, direction: Direction, x0: Any, tol: float, maxiter: int
) -> Found:
    """Newton's method; a step that does not lower the merit is damped until it does (Levenberg 1944).

    Args:
        backend: where to run.
        evaluate: `x -> (residual, merit)`.
        direction: `(x, residual, damping) -> step`; without damping it is the Newton step.
        x0: where to start, (*lanes, n).
        tol: tolerance for the size of the last step, relative to x.
        maxiter: maximum number of steps.
    """
    np = backend.np
    epsilon = float(numpy.finfo(x0.dtype).eps)
    noise = epsilon**0.6

    def going(state: State) -> Any:
        return np.any(state[-1])

    def step(state: State) -> State:
        x, value, merit, damping, last, reached, regular, count, active = state
        dx = direction(x, value, damping)
        size = backend.norm(dx)
        trial = x + dx
        new_value, new_merit = evaluate(trial)
        finite = np.isfinite(new_merit) & np.isfinite(backend.norm(new_value))
        better = active & finite & (new_merit < merit)
        full = damping == 0
        scale = noise * backend.norm(x)
        measured = better & full & (last > scale + _ROUNDINGS * epsilon)
        regular = np.where(measured, size <= _CONTRACTION * last, regular)
        # Each unknown has a size of its own: beside a large one, all steps of a small one would look short.  The start
        # says nothing of it: beside one that is far away, all steps would.
        short = np.all(np.abs(dx) <= tol * np.abs(x), -1)
        reached = np.where(better, full & short, reached)
        at_rounding = full & ~better & (size <= scale)
        # A step of zero length with a nonzero residual does not count as a step.
        reached = reached | (active & at_rounding & short & (size > 0))
        solved = better & (backend.norm(new_value) == 0)
        less = np.where(new_merit <= merit / 2, 0, damping / _GROWTH)
        less = np.where(less < _FIRST_DAMPING / _GROWTH, 0, less)
        more = np.maximum(damping * _GROWTH, _FIRST_DAMPING)
        damping = np.where(better, less, more).astype(merit.dtype)
        last = np.where(better & full, size, np.where(better, np.inf, last)).astype(merit.dtype)
        x = np.where(better[..., None], trial, x)
        value = np.where(better[..., None], new_value, value)
        merit = np.where(better, new_merit, merit)
        count = count + active
        done = reached | at_rounding | solved | (damping > _LAST_DAMPING) | (count >= maxiter)
        return x, value, merit, damping, last, reached, regular, count, active & ~done

    value, merit = evaluate(x0)
    first = backend.norm(value)
    nothing = np.zeros_like(merit)
    false = np.zeros(merit.shape, bool)
    count = np.zeros(merit.shape, int)
    active = (first != 0) & np.isfinite(merit) & (count < maxiter)
    state = (x0, value, merit, nothing, nothing + np.inf, false, ~false, count, active)
    x, value, _, _, _, reached, regular, count, _ = backend.loop(going, step, state)
    return Found(x, value, reached, regular, count, first)


def dense_direction(backend: Backend, jacobian: Callable[[Any], Any]) -> Direction:
    """Newton steps by Gaussian elimination; damped ones are Levenberg-Marquardt steps."""
    np = backend.np

    def direction(x: Any, value: Any, damping: Any) -> Any:
        j = jacobian(x)
        turned = np.swapaxes(j, -1, -2)
        full = damping == 0
        normal = _shifted(backend, turned @ j, damping)
        right = np.where(full[..., None], value, (turned @ value[..., None])[..., 0])
        return -backend.solve(np.where(full[..., None, None], j, normal), right)

    return direction


def dense_descent(backend: Backend, hessian: Callable[[Any], Any]) -> Direction:
    """Newton steps of a minimisation; damping adds to the diagonal of the Hessian, towards steepest descent."""

    def direction(x: Any, value: Any, damping: Any) -> Any:
        return -backend.solve(_shifted(backend, hessian(x), damping), value)

    return direction


def _shifted(backend: Backend, a: Any, damping: Any) -> Any:
    np = backend.np
    size = a.shape[-1]
    scale = np.sqrt(np.sum(a * a, (-2, -1)) / size) + float(numpy.finfo(a.dtype).tiny)
    return a + (damping * scale)[..., None, None] * np.eye(size, dtype=a.dtype)


def iteration(
    backend: Backend, residual: Callable[[Any], Any], x0: Any, tol: float, maxiter: int, damping: float, memory: int
) -> tuple[Any, Any]:
    """Iteration of x -> x - residual(x), with Anderson acceleration over `memory` steps (Walker & Ni 2011).

    Returns:
        The last point, and the number of iterations.
    """
    np = backend.np
    lanes, epsilon = x0.shape[:-1], float(numpy.finfo(x0.dtype).eps)

    def going(state: State) -> Any:
        return np.any(state[-1])

    def step(state: State) -> State:
        x, value, points, values, count, active = state
        change = -damping * value
        if memory:
            products = np.moveaxis(np.sum(values[:, None] * values[None], -1), (0, 1), (-2, -1))
            ridge = _ROUNDINGS * epsilon * np.trace(products, axis1=-2, axis2=-1) + float(numpy.finfo(x.dtype).tiny)
            products = products + ridge[..., None, None] * np.eye(memory, dtype=x.dtype)
            weights = backend.solve(products, np.moveaxis(np.sum(values * value, -1), 0, -1))
            weights = np.moveaxis(weights, -1, 0)[..., None]
            change = change - np.sum(weights * (points - damping * values), 0)
        new = np.where(active[..., None], x + change, x)
        new_value = residual(new)
        if memory:
            place = np.max(count) % memory
            points, values = backend.put(points, place, new - x), backend.put(values, place, new_value - value)
        norm = backend.norm(new_value)
        count = count + active
        # The Newton steps that follow then correct only rounding errors, and no part of a small unknown.
        rounding = epsilon * np.maximum(_ROUNDINGS * backend.norm(new)[..., None], np.abs(x0))
        far = np.any(np.abs(new_value) > np.maximum(tol * np.abs(new), rounding), -1)
        return new, new_value, points, values, count, active & far & np.isfinite(norm) & (count < maxiter)

    value = residual(x0)
    norm = backend.norm(value)
    history = np.zeros((memory, *x0.shape), x0.dtype)
    count = np.zeros(lanes, int)
    state = (x0, value, history, history, count, (norm > 0) & (count < maxiter))
    x, _, _, _, count, _ = backend.loop(going, step, state)
    return x, count


def is_simple(
    backend: Backend, residual: Callable[[Any], Any], jacobian: Callable[[Any], Any], x0: Any, x: Any, value: Any
) -> tuple[Any, Any]:
    """Whether x, found from `x0`, is a simple root, and whether that could be told.

    From a point that is clearly farther from x than x may be from the root, a Newton step to a simple root leaves
    about the square of the distance, and to a multiple root at best half of it.  How far x may be from the root is
    seen from Newton steps for its residual and for what rounding makes of it, and, where rounding has made them zero,
    from the size of the unknowns.  The point lies in the direction that the Jacobian at x makes least of.
    """
    np = backend.np
    epsilon = float(numpy.finfo(x.dtype).eps)
    generic = np.broadcast_to(backend.generic(x.shape[-1], x.dtype), x.shape)
    at_root = jacobian(x)
    scale = _sizes(backend, x, x0)

    def aligned(u: Any, v: Any) -> Any:
        return u + np.where(backend.dot(u, v) < 0, -1, 1).astype(x.dtype)[..., None] * v

    error = backend.solve(at_root, value)
    for changed in _rounded(backend, residual, x0, x, value):
        error = aligned(error, backend.solve(at_root, changed))
    least = backend.solve(at_root, generic)
    least = least * np.min(scale / np.abs(least), -1, keepdims=True)
    distance = aligned(epsilon**_PROBE * least, _FARTHER * error)
    point = x + distance
    probed = residual(point)
    left = distance - backend.solve(jacobian(point), probed - value)
    size = backend.norm(distance)
    # Points that are too far away say nothing about x.
    near = np.all(np.abs(distance) <= scale, -1)
    return near & (backend.norm(left) <= _LEFT * size), np.isfinite(backend.norm(probed)) | ~np.isfinite(size)


def _sizes(backend: Backend, x: Any, x0: Any) -> Any:
    """The size of each unknown, here or at the start; unknowns that are zero at both get the size of the largest."""
    np = backend.np
    scale = np.maximum(np.abs(x), np.abs(x0))
    return np.where(scale == 0, np.max(scale, -1, keepdims=True), scale)


def _rounded(backend: Backend, residual: Callable[[Any], Any], x0: Any, x: Any, value: Any) -> list[Any]:
    """Residuals at unknowns that are perturbed by rounding errors."""
    np = backend.np
    change = float(numpy.finfo(x.dtype).eps) * _sizes(backend, x, x0)
    change = change * np.broadcast_to(backend.generic(x.shape[-1], x.dtype), x.shape)
    return [residual(x + number * change) - value for number in _ROUNDINGS_TRIED]


def are_small(
    backend: Backend, residual: Callable[[Any], Any], x0: Any, at_origin: Any, x: Any, value: Any, tol: float
) -> Any:
    """Whether each number of the residual at x is small beside what it is far from x: at x0, where it is `at_origin`,
    and where the unknowns are changed by about their sizes; or beside what rounding makes of it."""
    np = backend.np
    scale = np.where(np.isfinite(at_origin), np.abs(at_origin), 0)
    for part in (-0.5, 0.5):
        far = np.abs(residual(x + part * _sizes(backend, x, x0) * backend.generic(x.shape[-1], x.dtype)) - value)
        scale = np.maximum(scale, np.where(np.isfinite(far), far, 0))
    rounded = np.abs(value) * 0
    for changed in _rounded(backend, residual, x0, x, value):
        rounded = np.maximum(rounded, np.abs(changed))
    return np.all(np.abs(value) <= np.maximum(tol * scale, _ROUNDINGS * rounded), -1)


def is_rounding(backend: Backend, residual: Callable[[Any], Any], x0: Any, x: Any, value: Any) -> Any:
    """Whether the residual at x is no more than what rounding makes of it: that is little beside what changes of the
    unknowns make of it, unless x is at a jump."""
    norm, (rounded, far) = backend.norm(value), _changes(backend, residual, x0, x, value)
    return (norm == 0) | ((norm <= _ROUNDINGS * rounded) & (rounded <= _LEFT * far))


def _changes(backend: Backend, residual: Callable[[Any], Any], x0: Any, x: Any, value: Any) -> tuple[Any, Any]:
    """Norms of the change of a residual by rounding errors of the unknowns, and by a change of one percent."""
    np = backend.np
    few, more, most = (backend.norm(changed) for changed in _rounded(backend, residual, x0, x, value))
    change = 1e-2 * _sizes(backend, x, x0) * backend.generic(x.shape[-1], x.dtype)
    return np.maximum(np.maximum(few, more), most), backend.norm(residual(x + change) - value)


def is_smooth(
    backend: Backend, residual: Callable[[Any], Any], product: Callable[[Any], Any], x0: Any, x: Any, value: Any
) -> Any:
    """Whether the residual near x, found from `x0`, changes as its Jacobian says, by which `product` multiplies.

    It does not at a kink, nor where the Jacobian is zero.  This looks in one direction.
    """
    epsilon = float(numpy.finfo(x.dtype).eps)
    distance = epsilon**_PROBE * _sizes(backend, x, x0) * backend.generic(x.shape[-1], x.dtype)
    change, rounded = product(distance), _changes(backend, residual, x0, x, value)[0]
    left = backend.norm(residual(x + distance) - value - change)
    size = backend.norm(change)
    return (size > 0) & (left <= _LEFT * size + _ROUNDINGS * backend.np.minimum(rounded, size))


def is_near(
    backend: Backend, residual: Callable[[Any], Any], direction: Direction, x0: Any, x: Any, asked: Any
) -> tuple[Any, Any, Any]:
    """Decide by further Newton steps whether a point x, found from `x0`, with a small residual is near a root.

    A small residual may also mean that the function tends to zero at infinity (`exp(-x)`), or comes close to zero
    somewhere, and that the residual was huge at the start.  There Newton steps stay long; to a root they become
    shorter, also to a multiple one.  Rounding hides that at x, but not at points between x0 and x.

    Args:
        backend: where to run.
        residual: the function whose root is wanted.
        direction: Newton steps.
        x0: the start.
        x: the point.
        asked: the lanes to decide.

    Returns:
        For each lane whether steps from x are short and become shorter; whether the step from x is no longer than x,
        or than rounding makes it, as near a root that may be zero; and whether steps from some point between x0
        and x go on and on in one direction, as if the root were at infinity.
    """
    np = backend.np
    epsilon = float(numpy.finfo(x.dtype).eps)
    sizes = _sizes(backend, x, x0)
    fractions = np.asarray(_BETWEEN, dtype=x.dtype)

    def going(state: State) -> Any:
        return np.any(asked) & (state[-1] < len(_BETWEEN) * _STEPS_BETWEEN)

    def step(state: State) -> State:
        point, last, streak, near, runs, number = state
        fraction = fractions[number // _STEPS_BETWEEN]
        first = number % _STEPS_BETWEEN == 0
        point = np.where(first, x + fraction * (x0 - x), point)
        # Without a little damping, directions in which nothing changes would be dominated by rounding errors.
        damping = np.where(fraction == 0, 0, _ROUNDINGS * epsilon) * np.ones_like(backend.norm(x))
        dx = direction(point, residual(point), damping.astype(x.dtype))
        size, before = backend.norm(dx), backend.norm(last)
        relative = np.max(np.abs(dx) / sizes, -1)
        shorter = size <= _SHORTER * before
        onwards = ~shorter & (backend.dot(dx, last) > _STRAIGHT * size * before) & (relative > _STILL)
        streak = np.where(onwards & ~first, streak + 1, 0)
        near = near | ((number == 1) & shorter & (before > 0) & (relative <= _NEAR))
        runs = runs | (streak >= 2)
        return point + dx, dx, streak, near, runs, number + 1

    false = np.zeros(x.shape[:-1], bool)
    state = (x, np.zeros_like(x), np.zeros(x.shape[:-1], int), false, false, np.zeros((), int))
    _, _, _, near, runs, _ = backend.loop(going, step, state)
    traced = np.full(x.shape[:-1], _ROUNDINGS * epsilon, x.dtype)
    dx = np.abs(direction(x, residual(x), traced))
    stays = np.all(dx <= np.maximum(np.abs(x), _WITHIN * epsilon * sizes), -1) & np.any(dx > 0, -1)
    return near, stays, runs
