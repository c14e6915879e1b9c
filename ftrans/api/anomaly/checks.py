"""What is checked: which numbers are anomalies, whether an array is finite, and where residuals came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.program import Program
from ...core.types import is_inexact
from ...xla import is_jax

# From this size on, a sum tells faster than a test of each element.
_LARGE = 1 << 12


class Checks(NamedTuple):
    """What is an anomaly.

    Attributes:
        nan: whether NaN is one.
        inf: whether an infinity is one.
    """

    nan: bool
    inf: bool


class Residuals(NamedTuple):
    """The program that made the first arguments of another one.

    Attributes:
        program: the program.
        args: its arguments.
        start: the number of the result that is the first argument of the other program.
    """

    program: Program
    args: Sequence[Any]
    start: int

    @property
    def total(self) -> int:
        """How many arguments of the other program it made."""
        return len(self.program.outputs) - self.start


def is_finite(x: Any) -> bool:
    """Whether no element is NaN or infinite."""
    if not is_inexact(x.dtype):
        return True
    if is_jax(x):
        from ...xla.finite import is_finite_on_device

        return is_finite_on_device(x)
    if x.size > _LARGE:
        # One pass without a temporary; a sum that is not finite may have overflowed by itself.
        with np.errstate(all="ignore"):
            if np.isfinite(np.add.reduce(x, axis=None)):
                return True
    return bool(np.isfinite(x).all())
