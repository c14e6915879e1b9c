"""Transforms of vectors and matrices: onto the simplex, Cholesky factors, and positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import Shape
from ...scipy.special import log_expit, softmax, softplus
from .constraints import corr_cholesky, lower_cholesky, positive_definite, real_vector, simplex
from .constraints import square as square_matrix
from .numbers import eps, tiny
from .transforms import Transform

__all__ = [
    "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "SoftmaxTransform",
    "StickBreakingTransform",
]  # fmt: skip


# Of vectors


class SoftmaxTransform(Transform):
    """`softmax(x)` along the last axis: no bijection, since a constant may be added; the inverse is the logarithm."""

    bijective = False
    _domain = real_vector
    _codomain = simplex

    def _call(self, x: Any) -> Any:
        return softmax(x, axis=-1)

    def _inverse(self, y: Any) -> Any:
        return np.log(y)


class StickBreakingTransform(Transform):
    """From n - 1 real numbers to n probabilities with sum 1, by the shares of what is left that each number takes.

    The Stan manual, "Unit simplex", whose form makes 0 the center of the simplex.
    """

    _domain = real_vector
    _codomain = simplex

    def _shifted(self, x: Any) -> Any:
        rest = x.shape[-1] - np.arange(x.shape[-1], dtype=x.dtype)
        return x - np.log(rest)

    def _call(self, x: Any) -> Any:
        z = self._shifted(x)
        left = np.cumsum(log_expit(-z), axis=-1)
        zero = np.zeros_like(left[..., :1])
        taken = np.concatenate([log_expit(z), zero], axis=-1)
        return np.exp(taken + np.concatenate([zero, left], axis=-1))

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        left = np.maximum(1 - np.cumsum(head, axis=-1), tiny(y))
        rest = head.shape[-1] - np.arange(head.shape[-1], dtype=y.dtype)
        return np.log(head) - np.log(left) + np.log(rest)

    def _log_slope(self, x: Any, y: Any) -> Any:
        return np.sum(np.log(y[..., :-1]) + log_expit(-self._shifted(x)), axis=-1)

    def forward_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] - 1)


# Of matrices


class CorrCholeskyTransform(Transform):
    """From n (n - 1) / 2 real numbers to the Cholesky factor of a correlation matrix of size n.

    The numbers become partial correlations by tanh (the Stan manual, "Cholesky factors of correlation matrices").
    """

    _domain = real_vector
    _codomain = corr_cholesky

    def _size(self, count: int) -> int:
        n = round((1 + math.sqrt(1 + 8 * count)) / 2)
        if n * (n - 1) // 2 != count:
            raise ValueError(
                f"CorrCholeskyTransform takes n (n - 1) / 2 numbers for a matrix of size n, such as 1, 3, 6 or 10, not "
                f"{count}{at_line(user_line())}"
            )
        return n

    def _call(self, x: Any) -> Any:
        n = self._size(x.shape[-1])
        r = _filled_below(np.clip(np.tanh(x), -1 + eps(x), 1 - eps(x)), n)
        left = np.cumprod(np.sqrt(1 - r**2), axis=-1)
        before = np.concatenate([np.ones_like(left[..., :1]), left[..., :-1]], axis=-1)
        return (r + np.eye(n, dtype=x.dtype)) * before

    def _inverse(self, y: Any) -> Any:
        n = y.shape[-1]
        left = 1 - np.cumsum(y * y, axis=-1)
        before = np.concatenate([np.ones_like(left[..., :1]), left[..., :-1]], axis=-1)
        return np.arctanh((y / np.sqrt(np.maximum(before, tiny(y))))[(..., *np.tril_indices(n, -1))])

    def _log_slope(self, x: Any, y: Any) -> Any:
        # Of tanh, and of what is left of each row where its numbers are written.
        n = y.shape[-1]
        left = np.cumsum(y * y, axis=-1)[(..., *np.tril_indices(n, -1))]
        first = (y * y)[(..., *np.tril_indices(n, -1))]
        of_rows = 0.5 * np.sum(np.log(np.maximum(1 - left + first, tiny(y))), axis=-1)
        return of_rows - 2 * np.sum(x + softplus(-2 * x) - math.log(2), axis=-1)

    def forward_shape(self, shape: Shape) -> Shape:
        n = self._size(shape[-1])
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _filled_below(x: Any, n: int) -> Any:
    """Matrices of size n with elements below the diagonal, row by row."""
    where = np.zeros((n, n), np.int64)
    where[np.tril_indices(n, -1)] = np.arange(1, n * (n - 1) // 2 + 1)
    return np.concatenate([np.zeros_like(x[..., :1]), x], axis=-1)[..., where]


class LowerCholeskyTransform(Transform):
    """From a matrix to a lower triangular one with a positive diagonal: the exponential of its diagonal."""

    bijective = False
    _domain = square_matrix
    _codomain = lower_cholesky

    def _call(self, x: Any) -> Any:
        return np.tril(x, -1) + np.exp(_diagonal(x))[..., None] * np.eye(x.shape[-1], dtype=x.dtype)

    def _inverse(self, y: Any) -> Any:
        return np.tril(y, -1) + np.log(_diagonal(y))[..., None] * np.eye(y.shape[-1], dtype=y.dtype)


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """From a matrix to a positive definite one, by `LowerCholeskyTransform` and the product with its transpose."""

    _codomain = positive_definite

    def _call(self, x: Any) -> Any:
        factor = super()._call(x)
        return np.matmul(factor, np.swapaxes(factor, -2, -1))

    def _inverse(self, y: Any) -> Any:
        return super()._inverse(np.linalg.cholesky(y))


def _diagonal(x: Any) -> Any:
    return np.diagonal(x, axis1=-2, axis2=-1)
