"""Events of `solve_ivp` on traced values: when a function of the time and the state is zero.

SciPy finds the events while the function is traced; how many there are is a guard.  Times and states are its values.
Those of an event have the derivative of the root of its function along the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...api.derivatives import stop_gradient
from ...api.vectors import Captured
from ...api.vmap import vmap
from ...control.rules.black_box import Code, black_box
from ...control.subprograms import cut
from ...core.interpret import inline
from ...core.types import ArrayType
from ...core.witness import known_value
from ...run.straightline import function_to_run
from ...solvers.implicit import root
from ...transforms.simplify import simplify
from .states import NUMBER, Solver, functions, states

_COUNT = ArrayType((), np.dtype(np.int64))


class Event(NamedTuple):
    """An event: its function, a program of constants, the time and the state, and the attributes that SciPy reads."""

    function: Captured
    terminal: Any
    direction: float


class Found(NamedTuple):
    """What SciPy found.

    Attributes:
        status: SciPy's.
        stop: the time up to which the equation has to be solved for it.
        times: the times of the results.
        states: those at these times, of shape (times, size).
        t_events: for each event an array of times.
        y_events: for each event the states at these times.
    """

    status: int
    stop: Any
    times: Any
    states: Any
    t_events: list[Any]
    y_events: list[Any]


def with_value(x: Any, value: Any) -> Any:
    """A value with the derivative of another expression for it."""
    return value + (x - stop_gradient(x))


def find(
    field: Captured, events: Sequence[Event], y0: Any, start: Any, stop: Any, t_eval: Any, solver: Any, dense: Solver
) -> Found | None:
    """Solve an initial value problem with events; None if the values that it depends on are not known.

    Args:
        field: the right-hand side.
        events: the events.
        y0: the first state.
        start: its time.
        stop: the last time.
        t_eval: times of the states that are asked for, or None for the steps.
        solver: the solver.
        dense: the same, for states at any time.
    """
    consts = [*field.consts, *(x for e in events for x in e.function.consts)]
    more = [] if t_eval is None else [t_eval]
    operands = [stop_gradient(x) for x in (*consts, y0, start, stop, *more)]
    solve = _solve(field, events, solver, t_eval is not None)
    sizes = Code("events", lambda *xs: _sizes(solve(*xs)), [_COUNT] * (2 + len(events)), "SciPy finds events")
    counts = black_box.apply(sizes, operands)
    if known_value(counts[0]) is None:
        return None
    status, *numbers = map(int, counts)
    types = [ArrayType((n,), NUMBER.dtype) for n in numbers]
    types += [ArrayType((n, y0.size), NUMBER.dtype) for n in numbers]
    places = Code("times of events", lambda *xs: _places(solve(*xs), types), types, "SciPy finds events")
    (times, *at), values = cut(black_box.apply(places, operands), 1 + len(events))
    last = _beyond(start, stop, at) if status == 1 else stop

    def along(times: Any) -> Any:
        return states(field, y0, start, last, times, dense).states

    t_events = [_exactly(e.function, along, t) if t.size else t for e, t in zip(events, at, strict=True)]
    if t_eval is not None:
        times = t_eval[: numbers[0]]
    elif status == 1:
        ends = [t[-1] for e, t in zip(events, t_events, strict=True) if e.terminal and t.size]
        last_one = int(np.argmax(np.stack(ends) * np.sign(stop - start)))
        times = np.concatenate([start[None], times[1:-1], ends[last_one][None]])
    elif status == 0:
        times = np.concatenate([start[None], times[1:-1], stop[None]])
    y, *y_events = [with_value(along(t), v) if t.size else v for t, v in zip((times, *t_events), values, strict=True)]
    return Found(status, last, times, y, t_events, y_events)


def _beyond(start: Any, stop: Any, at: Sequence[Any]) -> Any:
    """A time soon after the last event, up to which the equation is solved."""
    direction = np.sign(stop - start)
    last = np.max(np.concatenate([t for t in at if t.size]) * direction) * direction
    return stop_gradient(last + 1e-3 * (last - start))


def _exactly(function: Captured, along: Callable[[Any], Any], times: Any) -> Any:
    """The times of an event as roots of its function along the solution."""

    def value(t: Any) -> Any:
        return inline(function.program, [*function.consts, t, along(t[None])[0]])[0]

    return vmap(lambda t: with_value(root(value, t, solver="newton"), t))(times)


def _solve(field: Captured, events: Sequence[Event], solver: Any, has_times: bool) -> Callable[..., Any]:
    """A function of the operands that solves the problem; it keeps the last result."""
    last: Any = None
    programs = [function_to_run(simplify(e.function.program)) for e in events]

    def solve(*arrays: Any) -> Any:
        nonlocal last
        key = [np.asarray(x).tobytes() for x in arrays]
        kept = last
        if kept is None or kept[0] != key:
            *consts, y0, start, stop = arrays[: len(arrays) - has_times]
            place = len(field.consts)
            watched = []
            for event, run in zip(events, programs, strict=True):
                mine = consts[place : place + len(event.function.consts)]
                place += len(mine)

                def watch(t: float, y: Any, run: Any = run, mine: Any = mine) -> Any:
                    return float(run(*mine, np.float64(t), y)[0])

                watch.terminal, watch.direction = event.terminal, event.direction
                watched.append(watch)
            f, jacobian = functions(field.program, consts[: len(field.consts)])
            times = {"t_eval": arrays[-1]} if has_times else {}
            result = solver.result(f, jacobian, y0, float(start), float(stop), events=watched, **times)
            last = kept = key, result
        return kept[1]

    return solve


def _sizes(result: Any) -> list[Any]:
    return [np.int64(x) for x in (result.status, len(result.t), *map(len, result.t_events))]


def _places(result: Any, types: Sequence[ArrayType]) -> list[Any]:
    """Times and states of the results and of all events.  In compiled programs, others are found out behind this."""
    found = []
    states = (np.transpose(result.y), *result.y_events) if len(result.t) else ()
    for type, x in zip(types, (result.t, *result.t_events, *states), strict=False):
        filled = np.full(type.shape, np.nan)
        if type.size:
            filled[: len(x)] = x[: len(filled)]
        found.append(filled)
    return found + [np.full(t.shape, np.nan) for t in types[len(found) :]]
