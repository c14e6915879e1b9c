"""Distributions of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

from ...base.source import at_line, user_line
from ...numpy.dispatch import public
from ...numpy.promotion import asarray, cast
from ..linalg import solve_triangular
from ..special import gammaln, xlogy
from .distribution import floating_dtype

__all__ = ["dirichlet", "multivariate_normal"]


class Multivariate:
    """A distribution of vectors, whose methods take arrays and traced values alike.

    Example:
        >>> import ftrans as ft
        >>> import numpy as np
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.multivariate_normal.logpdf)(np.array([1.0, -2.0]), np.zeros(2), 2.0))
        [-0.5  1. ]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        original = getattr(scipy.stats, name)
        self.logpdf: Callable[..., Any] = public(original.logpdf, self._logpdf)
        self.pdf: Callable[..., Any] = public(original.pdf, self._pdf)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self!r} has no {name!r}; it has logpdf, pdf. For plain arrays there is scipy.stats.{self.name}"
            f"{at_line(user_line())}"
        )

    def __repr__(self) -> str:
        return f"ftrans.scipy.stats.{self.name}"

    def _logpdf(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _pdf(self, *args: Any, **kwargs: Any) -> Any:
        return np.exp(self._logpdf(*args, **kwargs))


class MultivariateNormal(Multivariate):
    """The normal distribution of vectors, which are along the last axis."""

    def _logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        if allow_singular:
            raise ValueError(
                "multivariate_normal with allow_singular=True has no derivative with respect to the covariance, whose"
                f" rank it depends on. Use a covariance that is positive definite{at_line(user_line())}"
            )
        x, cov = asarray(x), asarray(cov)
        size = cov.shape[0] if mean is None and cov.ndim == 2 else 1 if mean is None else np.size(mean)
        mean = asarray(np.zeros(size) if mean is None else mean)
        dtype = floating_dtype([x, mean, cov])
        x, mean, cov = (cast(v, dtype) for v in (x, mean, cov))
        if size == 1:
            mean, cov = mean.reshape(1), cov.reshape(1, 1)
        if cov.ndim == 0:
            cov = cov * np.eye(size, dtype=dtype)
        elif cov.ndim == 1:
            cov = np.diag(cov)
        if mean.shape != (size,) or cov.shape != (size, size):
            raise ValueError(
                f"multivariate_normal takes a mean of {size} numbers and a covariance of shape ({size}, {size}); they"
                f" are {mean.type} and {cov.type}{at_line(user_line())}"
            )
        if size == 1 and x.ndim < 2:
            x = x[..., None]
        root = np.linalg.cholesky(cov)
        distance = np.reshape(x - mean, (-1, size))
        scaled = solve_triangular(root, distance.T, lower=True)
        log_density = -0.5 * np.sum(scaled * scaled, axis=0) - np.sum(np.log(np.diag(root)))
        log_density = log_density - 0.5 * size * math.log(2 * math.pi)
        return np.squeeze(np.reshape(log_density, x.shape[:-1]))


class Dirichlet(Multivariate):
    """The distribution of probabilities that add up to 1, which are along the first axis.

    The last of them may be left out.  That they add up to 1 is not checked where they are traced.
    """

    def _logpdf(self, x: Any, alpha: Any) -> Any:
        x, alpha = asarray(x), asarray(alpha)
        dtype = floating_dtype([x, alpha])
        x, alpha = cast(x, dtype), cast(alpha, dtype)
        if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
            raise ValueError(
                f"dirichlet takes a vector alpha and as many numbers x along the first axis, or one fewer; they are"
                f" {alpha.type} and {x.type}{at_line(user_line())}"
            )
        if x.shape[0] < alpha.shape[0]:
            x = np.concatenate([x, 1 - np.sum(x, axis=0, keepdims=True)])
        log_scale = np.sum(gammaln(alpha)) - gammaln(np.sum(alpha))
        return np.sum(xlogy(alpha - 1, x.T).T, axis=0) - log_scale


dirichlet = Dirichlet("dirichlet")
multivariate_normal = MultivariateNormal("multivariate_normal")
