"""How much of a result is rounding: it is computed again where the arguments are moved by no more than their rounding.

Where a computation cancels, its results carry rounding much larger than their own last digit.  An argument may be at
the edge of where the function is defined, such as the last of the times in `t_eval`: if the function raises where all
arguments are moved, only those that it is differentiated by are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..control.convergence import ConvergenceError
from ..core.types import is_inexact
from .derivatives import Arrays, Flags, Vector, coordinates

# Exceptions that a function may raise near the point.
FAILURES = (ArithmeticError, ValueError, IndexError, ConvergenceError)

_PAIRS = 2


def spread(f: Callable[[Arrays], Sequence[Vector]], args: Arrays, active: Flags, unit: float, seed: int) -> list[float]:
    """The largest change of each result of `f` under changes of its arguments by `unit`, relative to each element.

    Args:
        f: the function.
        args: its arguments.
        active: which of them it is differentiated by.
        unit: the relative change.
        seed: seed of the random signs of the changes.
    """
    rng = np.random.default_rng(seed)
    center = f(args)
    largest = [0.0] * len(center)
    for _ in range(_PAIRS):
        signs = [rng.choice([-1.0, 1.0], np.shape(x)) for x in args]
        # A function may be constant on one side of the point.
        for direction in (unit, -unit):
            changes = [direction * s for s in signs]
            own = [change * a for change, a in zip(changes, active, strict=True)]
            there = _first_defined(f, args, (changes, own))
            for index, (y, z) in enumerate(zip(there or center, center, strict=True)):
                with np.errstate(invalid="ignore"):
                    change = float(np.max(np.abs(y - z), initial=0))
                largest[index] = max(largest[index], change if np.isfinite(change) else 0.0)
    return largest


def _first_defined(
    f: Callable[[Arrays], Sequence[Vector]], args: Arrays, changes: Sequence[Arrays]
) -> Sequence[Vector] | None:
    """The results of `f` under the first of several changes under which it does not raise; None if there is none."""
    for change in changes:
        try:
            return f([_moved(x, by) for x, by in zip(args, change, strict=True)])
        except FAILURES:
            continue
    return None


def _moved(x: Any, by: Any) -> Any:
    x = np.asarray(x)
    return (x * (1 + by)).astype(x.dtype)[()] if is_inexact(x.dtype) else x[()]


def parts(values: Arrays) -> list[Vector]:
    """The coordinates of each array."""
    return [coordinates([x]) for x in values]
