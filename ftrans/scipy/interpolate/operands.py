"""What interpolators ask of points and data: precision, axes, systems of equations, questions about values."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.trace import Tracer, current_builder
from ...core.witness import ConcretizationError, concretize
from ...numpy.promotion import asarray
from ...numpy.selecting import take
from ...numpy.sorting import searchsorted
from ...run.places import NUMPY, TRACE, place_of_arguments

__all__ = [
    "as_double", "as_real", "holds", "in_column", "intervals", "is_plain", "joined", "least_squares", "require",
    "solve", "spread", "take", "value_of",
]  # fmt: skip


def is_plain(*values: Any) -> bool:
    """Whether nothing among values, or in lists of them, is traced."""
    return place_of_arguments(values) is NUMPY


def as_double(x: Any) -> Any:
    """An array in double precision, as SciPy computes with."""
    if place_of_arguments((x,)) is TRACE:
        x = asarray(x)
    elif is_plain(x):
        x = np.asarray(x)
    return x.astype(np.result_type(x.dtype, np.float64))


def as_real(x: Any, name: str) -> Any:
    """An array of real numbers in double precision."""
    x = as_double(x)
    if x.dtype.kind == "c":
        raise ValueError(f"`{name}` must contain real values{at_line(user_line())}")
    return x


def known(condition: Any) -> bool | None:
    """Whether a condition holds, or None where values are not known, as in the body of a loop."""
    if type(condition) is not Tracer:
        return bool(condition)
    builder = current_builder()
    count = 0 if builder is None else len(builder.refused)
    try:
        return bool(condition)
    except ConcretizationError:
        if builder is not None:
            del builder.refused[count:]
        return None


def holds(condition: Any) -> bool:
    """Whether a condition is known to hold."""
    return known(condition) is True


def value_of(x: Any, what: str) -> Any:
    """The value of a traced array, which the program then holds for; `what` says who asks, for messages."""
    return concretize(x, what) if type(x) is Tracer else np.asarray(x)


def require(condition: Any, message: str, x: Any) -> Any:
    """The array `x`, of which a condition must be true everywhere; NaN if it is not, and that is not known before."""
    is_met = np.all(condition)
    found = known(is_met)
    if found is False:
        raise ValueError(message + at_line(user_line()))
    return x if found else np.where(is_met, x, np.nan)


def in_column(v: Any, ndim: int) -> Any:
    """A vector with further axes of size 1, so that it has `ndim` axes."""
    return v.reshape(v.shape + (1,) * (ndim - 1))


def intervals(x: Any, points: Any, first: int, last: int) -> Any:
    """The index of the interval of ascending breakpoints that each point lies in, between two indices."""
    return np.clip(searchsorted(x, points, side="right") - 1, first, last)


def spread(values: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Values with one leading axis for all points: the axes of the points in the place of that of the data."""
    values = values.reshape(shape + values.shape[1:])
    if not axis:
        return values
    order = list(range(values.ndim))
    count = len(shape)
    return values.transpose(order[count : count + axis] + order[:count] + order[count + axis :])


@functools.lru_cache(maxsize=4)
def _kept(function: str, content: bytes, shape: tuple[int, int]) -> Any:
    """The inverse of a matrix: a function of data at the same places is often called again and again."""
    found = getattr(np.linalg, function)(np.frombuffer(content).reshape(shape))
    found.flags.writeable = False
    return found


def solve(a: Any, b: Any) -> Any:
    """Solve `a @ x = b` along the first axis of `b`.  The inverse of a plain matrix is a constant of the program."""
    columns = b.reshape(b.shape[0], -1)
    found = _kept("inv", a.tobytes(), a.shape) @ columns if is_plain(a) else np.linalg.solve(a, columns)
    return found.reshape(b.shape)


def least_squares(a: Any, b: Any) -> Any:
    """The x along the first axis of `b` for which `a @ x` is nearest to `b`; `a` has full column rank."""
    columns = b.reshape(b.shape[0], -1)
    found = _kept("pinv", a.tobytes(), a.shape) @ columns if is_plain(a) else np.linalg.lstsq(a, columns, rcond=None)[0]
    return found.reshape((a.shape[1], *b.shape[1:]))


def joined(parts: Sequence[Any]) -> Any:
    """Arrays one after the other, of which some may be numbers."""
    return np.concatenate([np.reshape(p, (1,)) if not np.ndim(p) else p for p in parts])
