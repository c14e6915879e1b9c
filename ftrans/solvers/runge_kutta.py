"""An explicit Runge-Kutta method of order 5(4) with error control, as a loop over steps.

Step sizes are constants to derivatives, except for the last step to each output time, whose size is what remains: so
derivatives with respect to the times are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..api.custom_rules import custom_jvp
from ..api.derivatives import jvp, stop_gradient
from ..api.loops import while_loop
from ..control.subprograms import cut

Leaves = list[Any]

# Dormand and Prince, A family of embedded Runge-Kutta formulae, 1980.
_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
# The weights of order 5 less those of order 4.
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
# The controller of DOPRI5 (Hairer, Norsett and Wanner, Solving ODEs I, II.4, and II, IV.2).
_SAFETY, _BETA = 0.9, 0.04
_LEAST_FACTOR, _MOST_FACTOR = 0.2, 10.0


class Field(NamedTuple):
    """The right-hand side of an equation: a function of the state, the time and constants, and the constants."""

    function: Callable[[Leaves, Any, Leaves], Leaves]
    consts: Leaves

    def __call__(self, ys: Leaves, t: Any) -> Leaves:
        return self.function(ys, t, self.consts)


class Options(NamedTuple):
    rtol: float
    atol: float
    max_steps: int | None
    checkpoints: int | None


class State(NamedTuple):
    """Where the solver is.

    Attributes:
        t: the time.
        ys: the leaves of the solution.
        slopes: their derivatives, which are the last stage of one step and the first of the next.
        size: the absolute size of the step to try next.
        error: the error of the last accepted step, relative to the tolerances.
        steps: how many steps were tried.
        accepted: how many were accepted.
        arrived: whether the next output time is reached.
        ok: whether no step was too small to go on.
    """

    t: Any
    ys: Leaves
    slopes: Leaves
    size: Any
    error: Any
    steps: Any
    accepted: Any
    arrived: Any
    ok: Any


def like(x: Any, y: Any) -> Any:
    """A number in the precision of an array, so that their product has the dtype of the array."""
    return x.astype(np.finfo(y.dtype).dtype)


def _norm(xs: Leaves, scales: Leaves) -> Any:
    """The root mean square of all elements, relative to their scales."""
    total: Any = sum(np.sum(np.abs(x / s) ** 2).astype(np.float64) for x, s in zip(xs, scales, strict=True))
    return np.sqrt(total / max(sum(x.size for x in xs), 1))


def _scales(options: Options, *points: Leaves) -> Leaves:
    """The tolerated errors at the largest of some points."""
    found = []
    for column in zip(*points, strict=True):
        size = abs(column[0])
        for y in column[1:]:
            size = np.maximum(size, abs(y))
        found.append(options.atol + options.rtol * size)
    return found


def first_state(
    field: Field, guess: Field | Callable[[Leaves, Any], Leaves], ys: Leaves, t: Any, stop: Any, options: Options
) -> State:
    """The first state of the solver, with a first step by Hairer, Norsett and Wanner I, II.4."""
    slopes = field(ys, t)
    held, held_slopes = stop_gradient(ys), stop_gradient(slopes)
    scales = _scales(options, held)
    d0, d1 = _norm(held, scales), _norm(held_slopes, scales)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    size = np.where(small, 1e-6, 0.01 * d0 / np.where(small, 1.0, d1))
    reach = abs(stop_gradient(stop - t)).astype(np.float64)
    size = np.where(reach > 0, np.minimum(size, reach), size)
    ahead = size * np.where(stop_gradient(stop) >= stop_gradient(t), 1.0, -1.0)
    trial = [y + like(ahead, y) * k for y, k in zip(held, held_slopes, strict=True)]
    second = guess(trial, t + ahead.astype(t.dtype))
    d2 = _norm([b - a for a, b in zip(held_slopes, second, strict=True)], scales) / size
    steepest = np.maximum(d1, d2)
    flat = steepest <= 1e-15
    bound = np.where(flat, np.maximum(1e-6, 1e-3 * size), (0.01 / np.where(flat, 1.0, steepest)) ** 0.2)
    size = np.minimum(100 * size, bound)
    size = np.where(np.isfinite(size), size, 1e-6)
    zero = np.zeros_like(t, dtype=np.int64)
    return State(t, ys, slopes, size, np.full_like(size, 1e-4), zero, zero, zero != 0, zero == 0)


def advance(field: Field, state: State, stop: Any, options: Options) -> State:
    """Take steps until the time `stop`: at least one, through which it depends on that time."""
    limit = None if options.max_steps is None else state.steps + options.max_steps
    eps = float(np.finfo(stop.dtype).eps)

    def goes_on(s: State) -> Any:
        return ~s.arrived & s.ok & (True if limit is None else s.steps < limit)

    def step(s: State) -> State:
        remaining = stop - s.t
        distance = abs(stop_gradient(remaining)).astype(np.float64)
        # Rather a slightly longer last step than another one that is tiny.
        is_last = s.size * (1 + 1e-6) >= distance
        h = np.where(is_last, remaining, (s.size * np.where(stop_gradient(remaining) > 0, 1.0, -1.0)).astype(s.t.dtype))
        new, slopes, error = _attempt(field, s, h, options)
        error = stop_gradient(error)
        accept = error <= 1.0
        factor = _SAFETY * np.maximum(error, 1e-10) ** (0.75 * _BETA - 0.2) * s.error**_BETA
        factor = np.where(accept, np.clip(factor, _LEAST_FACTOR, _MOST_FACTOR), np.clip(factor, _LEAST_FACTOR, 1.0))
        factor = np.where(np.isfinite(error), factor, _LEAST_FACTOR)
        used = np.minimum(s.size, distance)
        size = np.where(accept & is_last, np.maximum(s.size, used * factor), used * factor)
        smallest = 4 * eps * np.maximum(abs(stop_gradient(s.t)), abs(stop_gradient(stop))).astype(np.float64)
        return State(
            np.where(accept, np.where(is_last, stop, s.t + h), s.t),
            [np.where(accept, y, x) for x, y in zip(s.ys, new, strict=True)],
            [np.where(accept, y, x) for x, y in zip(s.slopes, slopes, strict=True)],
            size,
            np.where(accept, np.maximum(error, 1e-4), s.error),
            s.steps + 1,
            s.accepted + accept,
            accept & is_last,
            s.ok & (accept | (used > smallest)),
        )

    first = state._replace(arrived=state.ok & False)
    end = while_loop(goes_on, step, first, max_steps=options.max_steps, checkpoints=options.checkpoints)
    return end._replace(ok=end.ok & end.arrived)


def _attempt(field: Field, s: State, h: Any, options: Options) -> tuple[Leaves, Leaves, Any]:
    """A step of size `h`: the new state, its derivative, and the estimated error relative to the tolerances.

    A step that is rejected has no derivative.  Its stages may be far outside of where `f` is defined, and zeros that
    go back through infinite derivatives would become NaN.
    """

    def attempt(ys: Leaves, slopes: Leaves, t: Any, h: Any, consts: Leaves) -> tuple[Leaves, Leaves, Any]:
        stages = [slopes]
        for node, weights in zip(_NODES, _STAGES, strict=True):
            stages.append(field.function(_combined(ys, h, weights, stages), t + node * h, consts))
        new = _combined(ys, h, _WEIGHTS, stages)
        last = field.function(new, t + h, consts)
        zeros = [np.zeros_like(y) for y in new]
        errors = _combined(zeros, stop_gradient(h), _ERROR, stop_gradient([*stages, last]))
        return new, last, _norm(errors, _scales(options, stop_gradient(ys), stop_gradient(new)))

    def pushed(primals: Any, tangents: Any) -> Any:
        accept = attempt(*primals)[2] <= 1.0

        def passed(tangent: Any) -> Any:
            return None if tangent is None else np.where(accept, tangent, np.zeros_like(tangent))

        flat, given = _flat(primals), [passed(x) for x in _flat(tangents)]
        active = [i for i, x in enumerate(given) if x is not None]
        count = len(s.ys)

        def along(*values: Any) -> Any:
            whole = list(flat)
            for i, x in zip(active, values, strict=True):
                whole[i] = x
            ys, slopes, (t, h), consts = cut(whole, count, count, 2)
            return attempt(ys, slopes, t, h, consts)

        return jvp(along, [flat[i] for i in active], [given[i] for i in active])

    guarded = custom_jvp(attempt)
    guarded.defjvp(pushed)
    return guarded(s.ys, s.slopes, s.t, h, field.consts)


def _flat(operands: Any) -> Leaves:
    """The operands of a step in one list; a tangent that is None keeps its place."""
    ys, slopes, t, h, consts = operands
    return [*ys, *slopes, t, h, *consts]


def _combined(ys: Leaves, h: Any, weights: Sequence[float], stages: Sequence[Leaves]) -> Leaves:
    """The state after a step with weighted slopes."""
    found = []
    for i, y in enumerate(ys):
        slope: Any = sum(w * stage[i] for w, stage in zip(weights, stages, strict=True) if w)
        found.append(y + like(h, y) * slope)
    return found
