"""Distributions of matrices: LKJCholesky, of correlations, and Wishart, of covariances."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...base.cell import concrete
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.types import Shape
from ...scipy.special import betaincinv, gammaincinv, gammaln, psi
from ..functional.arguments import shape_of
from ..random import normal, open_unit, split
from .constraints import corr_cholesky, lower_cholesky, positive, positive_definite
from .distribution import Distribution
from .numbers import is_known
from .vectors import OfCovariance, check_definite, factor_of, log_diagonal, transposed

__all__ = ["LKJCholesky", "Wishart"]


def multigammaln(a: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function, of arrays."""
    return p * (p - 1) / 4 * math.log(math.pi) + sum(gammaln(a - 0.5 * j) for j in range(p))


def multipsi(a: Any, p: int) -> Any:
    return sum(psi(a - 0.5 * j) for j in range(p))


class LKJCholesky(Distribution):
    """The distribution of Cholesky factors of correlation matrices, with density `det(correlation)**(concentration-1)`.

    Lewandowski, Kurowicka and Joe, 2009; samples are drawn by their onion method, and have derivatives.

    Args:
        dim: size of the matrices, at least 2.
        concentration: 1 for all correlation matrices alike, more for those near the identity.
        validate_args: False to leave parameters and values unchecked.

    Raises:
        ValueError: `dim` is not an integer of 2 or more.
    """

    arg_constraints: ClassVar = {"concentration": positive}
    has_rsample = True
    _support = corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if not is_plain(dim, int) or dim < 2:
            raise ValueError(f"dim of LKJCholesky must be an integer of 2 or more, not {dim!r}{at_line(user_line())}")
        self.dim = dim
        self._set(validate_args, concentration=concentration)

    @property
    def event_shape(self) -> Shape:
        return (self.dim, self.dim)

    def _log_prob(self, x: Any, eta: Any) -> Any:
        n = self.dim
        powers = 2 * (eta[..., None] - 1) + n - np.arange(2, n + 1, dtype=eta.dtype)
        diagonal = np.diagonal(x, axis1=-2, axis2=-1)[..., 1:]
        a = eta + 0.5 * (n - 1)
        norm = 0.5 * (n - 1) * math.log(math.pi) + multigammaln(a - 0.5, n - 1) - (n - 1) * gammaln(a)
        return np.sum(powers * np.log(diagonal), axis=-1) - norm

    def _draw(self, key: Any, shape: Shape, eta: Any) -> Any:
        n, keys = self.dim, split(key)
        # Each row but the first lies in a ball: its squared length has a beta distribution, its direction none.
        row = np.arange(n - 1, dtype=eta.dtype)
        squared = betaincinv(
            np.broadcast_to(0.5 + 0.5 * row, (*shape[:-2], n - 1)),
            np.broadcast_to(eta[..., None] + 0.5 * (n - 2) - 0.5 * row, (*shape[:-2], n - 1)),
            open_unit(keys[0], (*shape[:-2], n - 1), eta.dtype),
        )
        # Row i has i elements below the diagonal.
        below = np.tril(np.ones((n - 1, n - 1), dtype=eta.dtype))
        noise = normal(keys[1], (*shape[:-2], n - 1, n - 1), eta.dtype) * below
        direction = noise / np.sqrt(np.sum(noise**2, axis=-1, keepdims=True))
        rows = np.sqrt(squared)[..., None] * direction
        rest = np.sqrt(np.maximum(1 - squared, np.finfo(eta.dtype).tiny))
        whole = np.concatenate([rows, np.zeros_like(rows[..., :1])], axis=-1)
        diagonal = rest[..., None] * np.eye(n - 1, n, 1, dtype=eta.dtype)
        first = np.broadcast_to(np.eye(1, n, dtype=eta.dtype), (*shape[:-2], 1, n))
        return np.concatenate([first, whole + diagonal], axis=-2)


class Wishart(OfCovariance):
    """The Wishart distribution of the sum of `df` products `x x.T`, of normal vectors with a covariance matrix.

    Args:
        df: degrees of freedom, more than n - 1.
        covariance_matrix: of the vectors, of shape (..., n, n); or
        precision_matrix: its inverse; or
        scale_tril: its Cholesky factor, which is what the distribution keeps.
        validate_args: False to leave parameters and values unchecked.

    Raises:
        ValueError: not one of the three matrices is given, but none or several; or `df` is too small.
    """

    arg_constraints: ClassVar = {"df": positive, "scale_tril": lower_cholesky}
    has_rsample = True
    _support = positive_definite

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        check_definite(self, validate_args, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix)
        self._set(validate_args, df=df, **factor_of(covariance_matrix, precision_matrix, scale_tril, "Wishart"))
        n = self.event_shape[-1]
        if self._validate_args and is_known(self.df) and not np.all(np.asarray(concrete(self.df)) > n - 1):
            raise ValueError(
                f"df of Wishart must be more than {n - 1}, for matrices of size {n}, but is {self.df}"
                + at_line(user_line())
            )

    @property
    def event_shape(self) -> Shape:
        return shape_of(self.scale_tril)[-2:]

    def _log_prob(self, x: Any, df: Any, factor: Any) -> Any:
        n = factor.shape[-1]
        # The trace of covariance**-1 x is the squared norm of factor**-1 cholesky(x).
        root = np.linalg.cholesky(x)
        trace = np.sum(np.matmul(np.linalg.inv(factor), root) ** 2, axis=(-2, -1))
        norm = df * (0.5 * n * math.log(2) + log_diagonal(factor)) + multigammaln(0.5 * df, n)
        return (df - n - 1) * log_diagonal(root) - 0.5 * trace - norm

    def _mean(self, df: Any, factor: Any) -> Any:
        return df[..., None, None] * np.matmul(factor, transposed(factor))

    def _mode(self, df: Any, factor: Any) -> Any:
        more = (df - factor.shape[-1] - 1)[..., None, None]
        return np.where(more > 0, more * np.matmul(factor, transposed(factor)), math.nan)

    def _variance(self, df: Any, factor: Any) -> Any:
        covariance = np.matmul(factor, transposed(factor))
        diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
        return df[..., None, None] * (covariance**2 + diagonal[..., :, None] * diagonal[..., None, :])

    def _entropy(self, df: Any, factor: Any) -> Any:
        n = factor.shape[-1]
        return (
            (n + 1) * (log_diagonal(factor) + 0.5 * n * math.log(2))
            + multigammaln(0.5 * df, n)
            - 0.5 * (df - n - 1) * multipsi(0.5 * df, n)
            + 0.5 * n * df
        )

    def _draw(self, key: Any, shape: Shape, df: Any, factor: Any) -> Any:
        # Bartlett's decomposition: below the diagonal normal numbers, on it roots of chi-squared ones.
        n, keys = factor.shape[-1], split(key)
        halves = np.broadcast_to(0.5 * (df[..., None] - np.arange(n, dtype=df.dtype)), shape[:-1])
        diagonal = np.sqrt(2 * gammaincinv(halves, open_unit(keys[0], shape[:-1], df.dtype)))
        lower = normal(keys[1], shape, df.dtype) * np.tril(np.ones((n, n), dtype=df.dtype), -1)
        root = np.matmul(factor, lower + diagonal[..., None] * np.eye(n, dtype=df.dtype))
        return np.matmul(root, transposed(root))
