"""Norms, distances and similarities of vectors, with finite derivatives also where vectors are zero or equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from .arguments import array, axis_of, described, shape_of
from .entry import functional

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]


def norm(x: Any, p: float, axis: int, keepdims: bool = False) -> Any:
    """The p-norm of the vectors along an axis; at the zero vector its derivative is 0."""
    if p == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    if p == math.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if p == 0:
        return np.sum(np.where(x == 0, 0 * x, 0 * x + 1), axis=axis, keepdims=keepdims)
    if p == 2:
        total = np.sum(x * x, axis=axis, keepdims=keepdims)
        is_zero = total == 0
        return np.where(is_zero, 0, np.sqrt(np.where(is_zero, 1, total)))
    is_zero = x == 0
    powers = np.where(is_zero, 0, np.abs(np.where(is_zero, 1, x)) ** p)
    total = np.sum(powers, axis=axis, keepdims=keepdims)
    is_zero = total == 0
    return np.where(is_zero, 0, np.where(is_zero, 1, total) ** (1 / p))


@functional
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of `x1 - x2 + eps` along the last axis.

    Args:
        x1: array of shape (..., D).
        x2: array of a shape that broadcasts with that of `x1`.
        p: order of the norm.
        eps: added to each difference, so that equal vectors have a nonzero distance.
        keepdim: whether the last axis is kept, with size 1.

    Raises:
        ValueError: the shapes do not broadcast.
    """
    _check_broadcast("pairwise_distance", x1, x2)
    return norm(array(x1) - array(x2) + eps, p, -1, keepdim)


@functional
def pdist(input: Any, p: float = 2.0) -> Any:
    """The p-norms of the differences of all pairs of rows, in the order (0, 1), (0, 2), ... (1, 2), ...

    Args:
        input: matrix of shape (N, D).
        p: order of the norm.

    Returns:
        A vector of N (N - 1) / 2 distances.

    Raises:
        ValueError: `input` is not a matrix.
    """
    if len(shape_of(input)) != 2:
        raise ValueError(f"pdist takes a matrix, whose rows are points, not {described(input)}{at_line(user_line())}")
    first, second = np.triu_indices(shape_of(input)[0], 1)
    return norm(input[first] - input[second], p, -1)


@functional
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Cosine of the angle between vectors along an axis: `x1 @ x2 / (max(|x1|, eps) max(|x2|, eps))`.

    Args:
        x1: array.
        x2: array of a shape that broadcasts with that of `x1`.
        dim: axis of the vectors, in the broadcast shape.
        eps: lower bound of the norms to divide by, so that a zero vector has similarity 0.

    Raises:
        ValueError: the shapes do not broadcast.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.cosine_similarity(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])).round(4)
        array([0.7071])
    """
    _check_broadcast("cosine_similarity", x1, x2)
    ndim = max(len(shape_of(x1)), len(shape_of(x2)))
    # Counted from the back, an axis is the same one in both.
    axis = axis_of(dim, ndim, "cosine_similarity") - ndim
    lengths = [norm(x, 2, axis, keepdims=True) for x in (x1, x2)]
    x, y = (v / np.where(length < eps, eps, length) for v, length in zip((x1, x2), lengths, strict=True))
    return np.sum(x * y, axis=axis)


def _check_broadcast(what: str, x1: Any, x2: Any) -> None:
    try:
        np.broadcast_shapes(shape_of(x1), shape_of(x2))
    except ValueError:
        raise ValueError(
            f"shapes of x1 {described(x1)} and x2 {described(x2)} of {what} do not broadcast{at_line(user_line())}"
        ) from None
