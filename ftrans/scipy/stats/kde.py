"""Estimates of densities by sums of Gaussian kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats

from ...base.source import at_line, user_line
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray
from ..linalg import cho_solve, solve_triangular
from ..special import logsumexp, ndtr

__all__ = ["gaussian_kde"]


class GaussianKde:
    """An estimate of a density from traced data, weights or a traced bandwidth, as `scipy.stats.gaussian_kde`.

    Its methods compute with the attributes alone, so they serve SciPy's own estimates as well.

    Attributes:
        dataset: the data, of shape (d, n).
        d, n: the number of dimensions and of points.
        weights: weights of the points, of shape (n,), with the sum 1.
        neff: the effective number of points.
        factor: the bandwidth, relative to the spread of the data.
        covariance, cho_cov: the covariance of the kernels, and its lower Cholesky factor.
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = np.atleast_2d(asarray(dataset))
        self.d, self.n = self.dataset.shape
        if self.dataset.size < 2 or self.d > self.n:
            raise ValueError(
                f"gaussian_kde takes points as columns, as many as dimensions at least, not {self.dataset.type}; "
                f"transpose them if they are rows{at_line(user_line())}"
            )
        weights = np.ones(self.n) if weights is None else weights
        if np.shape(weights) != (self.n,):
            raise ValueError(f"`weights` input should be of length n: {np.shape(weights)}{at_line(user_line())}")
        self.weights = weights / np.sum(weights)
        self.neff = 1 / np.sum(self.weights**2)
        self.set_bandwidth(bw_method)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return scipy.stats.gaussian_kde

    def scotts_factor(self) -> Any:
        """The bandwidth of Scott's rule."""
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """The bandwidth of Silverman's rule."""
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Take another bandwidth: "scott", "silverman", a number, or a function of the estimate that gives one."""
        if callable(bw_method):
            self.factor = bw_method(self)
        elif bw_method is None or isinstance(bw_method, str):
            rules = {"scott": self.scotts_factor, "silverman": self.silverman_factor}
            if (bw_method or "scott") not in rules:
                raise ValueError(
                    f"`bw_method` should be 'scott', 'silverman', a scalar or a callable, not {bw_method!r}"
                    + at_line(user_line())
                )
            self.factor = rules[bw_method or "scott"]()
        else:
            self.factor = bw_method
        rest = self.dataset - np.sum(self.dataset * self.weights, axis=1, keepdims=True)
        spread = (rest * self.weights) @ rest.T / (1 - np.sum(self.weights**2))
        self.covariance = spread * self.factor**2
        self.cho_cov = np.linalg.cholesky(spread) * self.factor

    def _energies(self, points: Any) -> tuple[Any, Any]:
        """For each pair of a point of the data and one given, minus the exponent of the kernel; and its scale."""
        points = np.atleast_2d(asarray(points))
        if points.shape[0] != self.d:
            if points.shape != (1, self.d):
                raise ValueError(
                    f"points have dimension {points.shape[0]}, dataset has dimension {self.d}{at_line(user_line())}"
                )
            points = points.T
        data, given = (solve_triangular(self.cho_cov, x, lower=True) for x in (self.dataset, points))
        offsets = data[:, :, None] - given[:, None, :]
        return 0.5 * np.sum(offsets * offsets, axis=0), math.sqrt(2 * math.pi) * np.diag(self.cho_cov)

    def evaluate(self, points: Any) -> Any:
        """The density at points, of shape (d, m), or (m,) in one dimension."""
        energies, scales = GaussianKde._energies(self, points)
        return self.weights @ np.exp(-energies) / np.prod(scales)

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points."""
        energies, scales = GaussianKde._energies(self, x)
        return logsumexp(-energies, axis=0, b=self.weights[:, None]) - np.sum(np.log(scales))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times a normal one."""
        mean, cov = np.atleast_1d(np.squeeze(asarray(mean))), np.atleast_2d(asarray(cov))
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(
                f"mean and covariance must have dimension {self.d}, not {mean.type} and {cov.type}"
                + at_line(user_line())
            )
        return _overlap(self.dataset - mean[:, None], self.weights, self.covariance + cov)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability between two numbers, in one dimension."""
        if self.d != 1:
            raise ValueError(f"integrate_box_1d() only handles 1D pdfs{at_line(user_line())}")
        deviation = np.sqrt(self.covariance[0, 0])
        above, below = (ndtr((end - self.dataset[0]) / deviation) for end in (high, low))
        return self.weights @ (above - below)

    def integrate_kde(self, other: Any) -> Any:
        """The integral of the product of two such densities."""
        if other.d != self.d:
            raise ValueError(f"KDEs are not the same dimensionality{at_line(user_line())}")
        offsets = asarray(self.dataset)[:, :, None] - other.dataset[:, None, :]
        weights = asarray(self.weights)[:, None] * other.weights
        return _overlap(offsets.reshape(self.d, -1), weights.reshape(-1), self.covariance + other.covariance)

    def marginal(self, dimensions: Any) -> Any:
        """The estimate of the density in some of the dimensions, with the same bandwidth."""
        return gaussian_kde(asarray(self.dataset)[np.atleast_1d(dimensions)], self.factor, self.weights)

    def resample(self, size: Any = None, seed: Any = None) -> Any:
        """Raises, because the points that are drawn depend on chance and not on the data alone."""
        raise TypeError(
            "gaussian_kde.resample has no derivative: which point of the data is drawn jumps with the weights. Draw "
            "the indices and the noise yourself, and write data[:, indices] + kde.cho_cov @ noise"
            + at_line(user_line())
        )


def _overlap(offsets: Any, weights: Any, covariance: Any) -> Any:
    """The weighted sum of normal densities at the columns of `offsets`."""
    factor = np.linalg.cholesky(covariance)
    energies = 0.5 * np.sum(offsets * cho_solve((factor, True), offsets), axis=0)
    return np.exp(-energies) @ weights / np.prod(math.sqrt(2 * math.pi) * np.diag(factor))


@implements(scipy.stats.gaussian_kde)
def gaussian_kde(dataset: Any, bw_method: Any = None, weights: Any = None) -> Any:
    """A density estimated by Gaussian kernels; see `scipy.stats.gaussian_kde`.

    Derivatives are with respect to the points where it is evaluated, the data, the weights and the bandwidth.

    Args:
        dataset: the data, of shape (d, n), or (n,) in one dimension.
        bw_method: "scott", "silverman", the bandwidth relative to the spread of the data, or a function of the
            estimate that gives it.
        weights: weights of the points, of shape (n,).

    Returns:
        An estimate with the methods `evaluate`, `logpdf`, `integrate_gaussian`, `integrate_box_1d`, `integrate_kde`
        and `marginal`; SciPy's own object where nothing is traced.

    Raises:
        ValueError: shapes do not fit, or the bandwidth is none of these.

    Example:
        >>> import ftrans as ft
        >>> import numpy as np
        >>> from ftrans.scipy import stats
        >>> data = np.array([0.0, 1.0, 3.0])
        >>> density = lambda width: stats.gaussian_kde(data, width)(1.5)[0]
        >>> print(ft.grad(density)(0.5).round(6))
        0.128632
    """
    return GaussianKde(dataset, bw_method, weights)


for _name in ("evaluate", "logpdf", "integrate_gaussian", "integrate_box_1d", "integrate_kde", "pdf", "marginal"):
    if hasattr(scipy.stats.gaussian_kde, _name):
        implements(getattr(scipy.stats.gaussian_kde, _name))(getattr(GaussianKde, _name))
