"""How much of a result is rounding: it is computed again where the arguments are moved by no more than their rounding.

Where a computation cancels, its results carry rounding much larger than their own last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.types import is_inexact
from .derivatives import Arrays, Vector, coordinates

_PAIRS = 2


def spread(f: Callable[[Arrays], Sequence[Vector]], args: Arrays, unit: float, seed: int) -> list[float]:
    """The largest change of each result of `f` under changes of its arguments by `unit`, relative to each element."""
    rng = np.random.default_rng(seed)
    center = f(args)
    largest = [0.0] * len(center)
    for _ in range(_PAIRS):
        signs = [rng.choice([-1.0, 1.0], np.shape(x)) for x in args]
        # A function may be constant on one side of the point.
        for direction in (unit, -unit):
            for index, (moved, there) in enumerate(
                zip(f([_moved(x, direction * s) for x, s in zip(args, signs, strict=True)]), center, strict=True)
            ):
                with np.errstate(invalid="ignore"):
                    change = float(np.max(np.abs(moved - there), initial=0))
                largest[index] = max(largest[index], change if np.isfinite(change) else 0.0)
    return largest


def _moved(x: Any, by: Any) -> Any:
    x = np.asarray(x)
    return (x * (1 + by)).astype(x.dtype)[()] if is_inexact(x.dtype) else x[()]


def parts(values: Arrays) -> list[Vector]:
    """The coordinates of each array."""
    return [coordinates([x]) for x in values]
