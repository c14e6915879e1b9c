"""Distributions of vectors: Dirichlet, MultivariateNormal, LowRankMultivariateNormal."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import Shape
from ...scipy.special import gammaln, psi, softmax, xlogy
from ..functional.arguments import shape_of
from ..random import normal, split
from .constraints import independent, lower_cholesky, positive, positive_definite, real, real_vector, simplex
from .distribution import Distribution
from .numbers import is_known, logs_of_gammas, operands, tiny

__all__ = ["Dirichlet", "LowRankMultivariateNormal", "MultivariateNormal"]


class Dirichlet(Distribution):
    """The Dirichlet distribution of vectors of probabilities.

    Args:
        concentration: positive numbers, along the last axis.
        validate_args: False to leave parameters and values unchecked.
    """

    arg_constraints: ClassVar = {"concentration": independent(positive, 1)}
    has_rsample = True
    _support = simplex

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration)

    @property
    def event_shape(self) -> Shape:
        return shape_of(self.concentration)[-1:]

    def _log_prob(self, x: Any, a: Any) -> Any:
        return np.sum(xlogy(a - 1, x) - gammaln(a), axis=-1) + gammaln(np.sum(a, axis=-1))

    def _mean(self, a: Any) -> Any:
        return a / np.sum(a, axis=-1, keepdims=True)

    def _mode(self, a: Any) -> Any:
        more = np.maximum(a - 1, 0.0)
        total = np.sum(more, axis=-1, keepdims=True)
        corner = (np.argmax(a, axis=-1)[..., None] == np.arange(a.shape[-1])).astype(a.dtype)
        flat = np.where(np.all(a < 1, axis=-1, keepdims=True), corner, math.nan)
        return np.where(total > 0, more / np.where(total > 0, total, 1.0), flat)

    def _variance(self, a: Any) -> Any:
        total = np.sum(a, axis=-1, keepdims=True)
        return a * (total - a) / (total**2 * (total + 1))

    def _entropy(self, a: Any) -> Any:
        total, k = np.sum(a, axis=-1), a.shape[-1]
        of_each = np.sum(gammaln(a) - (a - 1) * psi(a), axis=-1)
        return of_each - gammaln(total) - (k - total) * psi(total)

    def _draw(self, key: Any, shape: Shape, a: Any) -> Any:
        # Gamma numbers over their sum.
        return np.maximum(softmax(logs_of_gammas(key, shape, a), axis=-1), tiny(a))


def transposed(matrix: Any) -> Any:
    """Matrices along the last two axes, transposed."""
    return np.swapaxes(matrix, -2, -1)


def times_vectors(matrix: Any, x: Any) -> Any:
    """The products of matrices and vectors, which broadcast."""
    return np.matmul(x[..., None, :], transposed(matrix))[..., 0, :]


def log_diagonal(matrix: Any) -> Any:
    """The sum of the logarithms of the diagonal: half of the log-determinant, of a Cholesky factor."""
    return np.sum(np.log(np.diagonal(matrix, axis1=-2, axis2=-1)), axis=-1)


def factor_of(covariance: Any, precision: Any, scale_tril: Any, what: str) -> dict[str, Any]:
    """The Cholesky factor of a covariance matrix that is given in one of three forms.

    Raises:
        ValueError: not one, but none or several are given.
    """
    given = {"covariance_matrix": covariance, "precision_matrix": precision, "scale_tril": scale_tril}
    names = [name for name, x in given.items() if x is not None]
    if len(names) != 1:
        raise ValueError(
            f"{what} takes one of covariance_matrix, precision_matrix and scale_tril (its Cholesky factor, which is "
            f"the cheapest), and was given {' and '.join(names) or 'none'}{at_line(user_line())}"
        )
    if scale_tril is not None:
        return {"scale_tril": scale_tril}
    (matrix,) = operands([given[names[0]]])
    return {"scale_tril": np.linalg.cholesky(matrix if precision is None else np.linalg.inv(matrix))}


class OfCovariance(Distribution):
    """A distribution whose second parameter is the Cholesky factor of a covariance matrix."""

    @property
    def covariance_matrix(self) -> Any:
        """The covariance matrix, of shape (..., n, n)."""
        factor = self._operands()[1]
        return np.matmul(factor, transposed(factor))

    @property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance matrix."""
        inverse = np.linalg.inv(self._operands()[1])
        return np.matmul(transposed(inverse), inverse)


class MultivariateNormal(OfCovariance):
    """The normal distribution of vectors.

    Args:
        loc: the mean, of shape (..., n).
        covariance_matrix: of shape (..., n, n); or
        precision_matrix: its inverse; or
        scale_tril: its Cholesky factor, which is what the distribution keeps.
        validate_args: False to leave parameters and values unchecked.

    Raises:
        ValueError: not one of the three matrices is given, but none or several; or it is not positive definite.
    """

    arg_constraints: ClassVar = {"loc": real_vector, "scale_tril": lower_cholesky}
    has_rsample = True
    _support = real_vector

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        check_definite(self, validate_args, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix)
        factor = factor_of(covariance_matrix, precision_matrix, scale_tril, "MultivariateNormal")
        self._set(validate_args, loc=loc, **factor)

    @property
    def event_shape(self) -> Shape:
        return shape_of(self.scale_tril)[-1:]

    def _log_prob(self, x: Any, loc: Any, factor: Any) -> Any:
        white = times_vectors(np.linalg.inv(np.tril(factor)), x - loc)
        n = factor.shape[-1]
        return -0.5 * (n * math.log(2 * math.pi) + np.sum(white**2, axis=-1)) - log_diagonal(factor)

    def _mean(self, loc: Any, factor: Any) -> Any:
        return loc

    _mode = _mean

    def _variance(self, loc: Any, factor: Any) -> Any:
        return np.sum(factor**2, axis=-1)

    def _entropy(self, loc: Any, factor: Any) -> Any:
        return 0.5 * factor.shape[-1] * (1 + math.log(2 * math.pi)) + log_diagonal(factor)

    def _draw(self, key: Any, shape: Shape, loc: Any, factor: Any) -> Any:
        return loc + times_vectors(factor, normal(key, shape, loc.dtype))


def check_definite(d: Distribution, validate_args: bool | None, **given: Any) -> None:
    """Raise unless the matrices that are given, and known, are positive definite."""
    if validate_args is not False:
        for name, x in given.items():
            if x is not None and is_known(x):
                d._check(positive_definite, x, f"{name} of {type(d).__name__}")


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with covariance `cov_factor @ cov_factor.T + diag(cov_diag)`.

    Its cost is that of a matrix of size `rank`, not n (Woodbury's identity).

    Args:
        loc: the mean, of shape (..., n).
        cov_factor: of shape (..., n, rank).
        cov_diag: positive numbers, of shape (..., n).
        validate_args: False to leave parameters and values unchecked.
    """

    arg_constraints: ClassVar = {
        "loc": real_vector,
        "cov_factor": independent(real, 2),
        "cov_diag": independent(positive, 1),
    }
    has_rsample = True
    _support = real_vector

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, cov_factor=cov_factor, cov_diag=cov_diag)

    @property
    def event_shape(self) -> Shape:
        return shape_of(self.cov_diag)[-1:]

    @property
    def covariance_matrix(self) -> Any:
        """The covariance matrix, of shape (..., n, n)."""
        _, w, d = self._operands()
        return np.matmul(w, transposed(w)) + d[..., None] * np.eye(d.shape[-1], dtype=d.dtype)

    @property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance matrix."""
        return np.linalg.inv(self.covariance_matrix)

    @property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance matrix."""
        return np.linalg.cholesky(self.covariance_matrix)

    def _capacitance(self, w: Any, d: Any) -> Any:
        """The Cholesky factor of `1 + w.T @ diag(1 / d) @ w`."""
        scaled = transposed(w) / d[..., None, :]
        return np.linalg.cholesky(np.eye(w.shape[-1], dtype=w.dtype) + np.matmul(scaled, w))

    def _log_determinant(self, w: Any, d: Any) -> Any:
        return 2 * log_diagonal(self._capacitance(w, d)) + np.sum(np.log(d), axis=-1)

    def _log_prob(self, x: Any, loc: Any, w: Any, d: Any) -> Any:
        gap = x - loc
        inner = times_vectors(np.matmul(np.linalg.inv(self._capacitance(w, d)), transposed(w) / d[..., None, :]), gap)
        square = np.sum(gap**2 / d, axis=-1) - np.sum(inner**2, axis=-1)
        return -0.5 * (d.shape[-1] * math.log(2 * math.pi) + self._log_determinant(w, d) + square)

    def _mean(self, loc: Any, w: Any, d: Any) -> Any:
        return loc

    _mode = _mean

    def _variance(self, loc: Any, w: Any, d: Any) -> Any:
        return np.sum(w**2, axis=-1) + d

    def _entropy(self, loc: Any, w: Any, d: Any) -> Any:
        return 0.5 * (d.shape[-1] * (1 + math.log(2 * math.pi)) + self._log_determinant(w, d))

    def _draw(self, key: Any, shape: Shape, loc: Any, w: Any, d: Any) -> Any:
        keys = split(key)
        common = normal(keys[0], (*shape[:-1], w.shape[-1]), loc.dtype)
        return loc + times_vectors(w, common) + np.sqrt(d) * normal(keys[1], shape, loc.dtype)
