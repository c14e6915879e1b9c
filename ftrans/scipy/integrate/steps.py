"""The steps that `solve_ivp` chooses itself, where no times are given.

How many there are depends on values, so SciPy solves the equation while the function is traced, and Python is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...api.vectors import Captured
from ...control.rules.black_box import Code, black_box
from ...core.program import Program
from ...core.types import ArrayType
from ...core.witness import known_value
from .states import NUMBER, functions


def chosen_steps(field: Captured, y0: Any, start: Any, stop: Any, solver: Any) -> Any:
    """The times of the steps, of which the first and the last have a derivative; None if there is no one value."""
    operands = [stop_gradient(x) for x in (*field.consts, y0, start, stop)]
    count, status = black_box.apply(_step_count(field.program, solver), operands)
    if known_value(count) is None:
        return None
    # Python is told the number of steps, on which shapes depend; so another one is another trace.
    (times,) = black_box.apply(_step_times(field.program, solver, int(count)), operands)
    if int(status) < 0:
        return np.concatenate([start[None], times[1:]])
    return np.concatenate([start[None], times[1:-1], stop[None]])


def _step_count(field: Program, solver: Any) -> Code:
    def make() -> Code:
        found_by = _stepper(field, solver)
        count = ArrayType((), np.dtype(np.int64))

        def compute(*arrays: Any) -> Sequence[Any]:
            result = found_by(*arrays)
            return [np.int64(len(result.t)), np.int64(result.status)]

        return Code("the number of steps", compute, [count, count], "SciPy solves the equation")

    return field.derive(("step count", solver), make)


def _step_times(field: Program, solver: Any, count: int) -> Code:
    def make() -> Code:
        found_by = _stepper(field, solver)

        def compute(*arrays: Any) -> Sequence[Any]:
            # In compiled programs, another number is found out behind this.
            times = found_by(*arrays).t[:count]
            return [np.concatenate([times, np.full(count - len(times), np.nan)])]

        return Code("steps", compute, [ArrayType((count,), NUMBER.dtype)], "SciPy solves the equation")

    return field.derive(("step times", solver, count), make)


def _stepper(field: Program, solver: Any) -> Callable[..., Any]:
    """A function that solves the equation; it keeps the last solution."""

    def make() -> Callable[..., Any]:
        last: Any = None

        def solve(*arrays: Any) -> Any:
            nonlocal last
            key = [np.asarray(x).tobytes() for x in arrays]
            kept = last
            if kept is None or kept[0] != key:
                *consts, y0, start, stop = arrays
                result = solver.result(*functions(field, consts), y0, float(start), float(stop))
                last = kept = key, result
            return kept[1]

        return solve

    return field.derive(("stepper", solver), make)
