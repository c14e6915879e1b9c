"""Transforms from real numbers to the values that a constraint allows, for parameters that are trained freely."""

from __future__ import annotations

import math
from typing import Any

from ...base.source import at_line, user_line
from . import constraints
from .array_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from .constraints import Constraint, Independent, Interval, Parts
from .transform_parts import CatTransform, ComposeTransform, IndependentTransform, StackTransform, identity_transform
from .transforms import (
    AffineTransform,
    ExpTransform,
    SigmoidTransform,
    Transform,
)

__all__ = ["biject_to", "transform_to"]


def biject_to(constraint: Constraint) -> Transform:
    """A bijection from all real numbers, or vectors of them, to the set of a constraint.

    Args:
        constraint: a set, such as `constraints.positive` or `d.support`.

    Raises:
        NotImplementedError: there is none, as for discrete sets.

    Example:
        >>> from ftrans.nn import distributions as D
        >>> float(D.biject_to(D.constraints.positive)(0.0))
        1.0
    """
    return _transform(constraint, True)


def transform_to(constraint: Constraint) -> Transform:
    """A function from all real numbers to the set of a constraint, which need not be a bijection; as `biject_to`."""
    return _transform(constraint, False)


def _transform(constraint: Constraint, is_bijection: bool) -> Transform:
    if isinstance(constraint, Interval) and not constraint.is_discrete:
        return _to_interval(constraint)
    if isinstance(constraint, Independent):
        inner = _transform(constraint.base_constraint, is_bijection)
        return IndependentTransform(inner, constraint.reinterpreted_batch_ndims)
    if isinstance(constraint, Parts):
        parts = [_transform(c, is_bijection) for c in constraint.cseq]
        if constraint.lengths is None:
            return StackTransform(parts, constraint.dim)
        return CatTransform(parts, constraint.dim, constraint.lengths)
    for known, bijection, other in _OF_EVENTS:
        found: Any = bijection if is_bijection else other
        if constraint is known and found is not None:
            return found()
    raise NotImplementedError(
        f"there is no {'bijection' if is_bijection else 'transform'} from real numbers to what is {constraint!r}"
        + at_line(user_line())
    )


_OF_EVENTS = [
    (constraints.simplex, StickBreakingTransform, SoftmaxTransform),
    (constraints.corr_cholesky, CorrCholeskyTransform, CorrCholeskyTransform),
    (constraints.lower_cholesky, None, LowerCholeskyTransform),
    (constraints.positive_definite, None, PositiveDefiniteTransform),
    (constraints.positive_semidefinite, None, PositiveDefiniteTransform),
]


def _to_interval(interval: Interval) -> Transform:
    has_lower = not (type(interval.lower) is float and interval.lower == -math.inf)
    has_upper = not (type(interval.upper) is float and interval.upper == math.inf)
    if has_lower and has_upper:
        if type(interval.lower) is type(interval.upper) is float and (interval.lower, interval.upper) == (0.0, 1.0):
            return SigmoidTransform()
        width = interval.upper - interval.lower
        return ComposeTransform([SigmoidTransform(), AffineTransform(interval.lower, width)])
    if has_lower:
        if type(interval.lower) is float and interval.lower == 0.0:
            return ExpTransform()
        return ComposeTransform([ExpTransform(), AffineTransform(interval.lower, 1.0)])
    if has_upper:
        return ComposeTransform([ExpTransform(), AffineTransform(interval.upper, -1.0)])
    return identity_transform
