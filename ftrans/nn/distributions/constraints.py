"""Constraints: sets that parameters and values of distributions lie in, under the names of `torch.distributions`.

A constraint says of each event whether it lies in the set, on arrays and on traced values alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.cell import read
from ..functional.arguments import shape_of
from .numbers import is_known

__all__ = [
    "Constraint", "Interval", "boolean", "cat", "corr_cholesky", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square",
    "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of events.

    Attributes:
        event_dim: number of the last axes that are one event.
        is_discrete: whether the set is discrete.
    """

    event_dim: int = 0
    is_discrete: bool = False

    def __init__(self, description: str, contains: Callable[[Any], Any], event_dim: int = 0) -> None:
        self._description = description
        self._contains = contains
        self.event_dim = event_dim

    def check(self, value: Any) -> Any:
        """For each event whether it lies in the set: booleans, without the axes of events.

        Example:
            >>> import numpy as np
            >>> from ftrans.nn.distributions import constraints
            >>> constraints.positive.check(np.array([1.0, 0.0]))
            array([ True, False])
        """
        return self._contains(read(value))

    def is_known(self) -> bool:
        """Whether what the set depends on is known now, so that values may be checked."""
        return True

    def __repr__(self) -> str:
        return self._description


class Interval(Constraint):
    """Numbers between two bounds, which belong to the set or not; whole numbers only, if it is discrete."""

    def __init__(self, lower: Any, upper: Any, closed: str = "both", is_discrete: bool = False) -> None:
        self.lower, self.upper, self.closed, self.is_discrete = lower, upper, closed, is_discrete

    def check(self, value: Any) -> Any:
        value, lower, upper = read(value), read(self.lower), read(self.upper)
        above = value >= lower if self.closed in ("both", "left") else value > lower
        inside = above & (value <= upper if self.closed in ("both", "right") else value < upper)
        return inside & (np.floor(value) == value) if self.is_discrete else inside

    def is_known(self) -> bool:
        return is_known(self.lower) and is_known(self.upper)

    def __repr__(self) -> str:
        numbers = "whole numbers " if self.is_discrete else ""
        left = ">=" if self.closed in ("both", "left") else ">"
        right = "<=" if self.closed in ("both", "right") else "<"
        has_lower, has_upper = not _is_number(self.lower, -math.inf), not _is_number(self.upper, math.inf)
        ends = [f"{left} {_shown(self.lower)}"] * has_lower + [f"{right} {_shown(self.upper)}"] * has_upper
        return numbers + (" and ".join(ends) or "real (not NaN)")


def _is_number(bound: Any, number: float) -> bool:
    return type(bound) in (float, int) and bound == number


def _shown(bound: Any) -> str:
    return f"{bound}" if type(bound) in (float, int) else "a bound for each"


# Numbers

real = Interval(-math.inf, math.inf)
positive = Interval(0.0, math.inf, "right")
nonnegative = Interval(0.0, math.inf)
unit_interval = Interval(0.0, 1.0)
boolean = Interval(0, 1, is_discrete=True)
nonnegative_integer = Interval(0, math.inf, is_discrete=True)
positive_integer = Interval(1, math.inf, is_discrete=True)


def greater_than(lower_bound: Any) -> Interval:
    """Numbers above a bound."""
    return Interval(lower_bound, math.inf, "right")


def greater_than_eq(lower_bound: Any) -> Interval:
    """Numbers not below a bound."""
    return Interval(lower_bound, math.inf)


def less_than(upper_bound: Any) -> Interval:
    """Numbers below a bound."""
    return Interval(-math.inf, upper_bound, "left")


def interval(lower_bound: Any, upper_bound: Any) -> Interval:
    """Numbers between two bounds, which belong to the set."""
    return Interval(lower_bound, upper_bound)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Interval:
    """Numbers between two bounds, of which the lower belongs to the set."""
    return Interval(lower_bound, upper_bound, "left")


def integer_interval(lower_bound: Any, upper_bound: Any) -> Interval:
    """Whole numbers between two bounds, which belong to the set."""
    return Interval(lower_bound, upper_bound, is_discrete=True)


# Vectors


def _tolerance(x: Any) -> float:
    return 1e-6 if getattr(x, "dtype", None) == np.float64 else 1e-4


def _is_simplex(x: Any) -> Any:
    return np.all(x >= 0, axis=-1) & (abs(np.sum(x, axis=-1) - 1) < _tolerance(x))


def _is_one_hot(x: Any) -> Any:
    return np.all((x == 0) | (x == 1), axis=-1) & (np.sum(x, axis=-1) == 1)


simplex = Constraint("a vector of probabilities, nonnegative and with sum 1", _is_simplex, 1)
one_hot = Constraint("a vector with a single 1, and 0 elsewhere", _is_one_hot, 1)
one_hot.is_discrete = True


def multinomial(upper_bound: Any) -> Constraint:
    """Vectors of counts with a given sum."""

    def contains(x: Any) -> Any:
        return np.all((x >= 0) & (np.floor(x) == x), axis=-1) & (np.sum(x, axis=-1) == upper_bound)

    found = Constraint(f"a vector of counts with sum {upper_bound}", contains, 1)
    found.is_discrete = True
    return found


class Independent(Constraint):
    """Arrays whose elements, or events, all lie in a set."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        axes = self.reinterpreted_batch_ndims
        return np.all(found, axis=tuple(range(-axes, 0))) if axes else found

    def is_known(self) -> bool:
        return self.base_constraint.is_known()

    def __repr__(self) -> str:
        return f"{self.base_constraint!r} in all of the last {self.reinterpreted_batch_ndims} axes"


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Arrays whose elements, along the last axes, all lie in a set."""
    return Independent(base_constraint, reinterpreted_batch_ndims) if reinterpreted_batch_ndims else base_constraint


real_vector = independent(real, 1)


class Parts(Constraint):
    """Arrays whose parts along an axis each lie in a set of their own."""

    def __init__(self, cseq: Sequence[Constraint], dim: int, lengths: Sequence[int] | None) -> None:
        self.cseq, self.dim, self.lengths = list(cseq), dim, lengths
        self.event_dim = max(c.event_dim for c in cseq)
        self.is_discrete = any(c.is_discrete for c in cseq)

    def check(self, value: Any) -> Any:
        value = read(value)
        if self.lengths is None:
            found = [c.check(np.take(value, i, self.dim)) for i, c in enumerate(self.cseq)]
            return np.stack(found, self.dim)
        parts = np.split(value, np.cumsum(self.lengths)[:-1].tolist(), self.dim)
        return np.concatenate([c.check(x) for c, x in zip(self.cseq, parts, strict=True)], self.dim)

    def __repr__(self) -> str:
        return f"parts along axis {self.dim}: " + "; ".join(map(repr, self.cseq))


def cat(cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> Constraint:
    """Arrays that are made of parts along an axis, each in a set of its own.

    Args:
        cseq: the sets.
        dim: the axis.
        lengths: the size of each part along the axis; 1 by default.
    """
    return Parts(cseq, dim, [1] * len(cseq) if lengths is None else lengths)


def stack(cseq: Sequence[Constraint], dim: int = 0) -> Constraint:
    """Arrays whose slices along an axis each lie in a set of their own."""
    return Parts(cseq, dim, None)


# Matrices


def _is_lower(x: Any) -> Any:
    return np.all(np.tril(x) == x, axis=(-2, -1))


def _has_positive_diagonal(x: Any) -> Any:
    return np.all(np.diagonal(x, axis1=-2, axis2=-1) > 0, axis=-1)


def _is_symmetric(x: Any) -> Any:
    return np.all(np.isclose(x, np.swapaxes(x, -2, -1), rtol=0, atol=_tolerance(x)), axis=(-2, -1))


def _is_square(x: Any) -> Any:
    shape = shape_of(x)
    return np.full(shape[:-2], shape[-2] == shape[-1])


def _eigenvalues_of_symmetric(x: Any, least: Callable[[Any], Any]) -> Any:
    if not np.all(_is_square(x)):
        return _is_square(x)
    return _is_symmetric(x) & least(np.linalg.eigvalsh(x)[..., 0])


square = Constraint("a square matrix", _is_square, 2)
symmetric = Constraint("a symmetric matrix", lambda x: _is_square(x) & _is_symmetric(x), 2)
lower_triangular = Constraint("a lower triangular matrix", _is_lower, 2)
lower_cholesky = Constraint(
    "a lower triangular matrix with a positive diagonal", lambda x: _is_lower(x) & _has_positive_diagonal(x), 2
)
positive_semidefinite = Constraint(
    "a symmetric matrix without negative eigenvalues",
    lambda x: _eigenvalues_of_symmetric(x, lambda least: least >= -_tolerance(x)),
    2,
)
positive_definite = Constraint(
    "a symmetric matrix with positive eigenvalues", lambda x: _eigenvalues_of_symmetric(x, lambda least: least > 0), 2
)
corr_cholesky = Constraint(
    "the Cholesky factor of a correlation matrix: lower triangular, with a positive diagonal and rows of norm 1",
    lambda x: (
        _is_lower(x) & _has_positive_diagonal(x) & np.all(abs(np.sum(x * x, axis=-1) - 1) < _tolerance(x), axis=-1)
    ),
    2,
)


def __dir__() -> list[str]:
    return sorted(__all__)
