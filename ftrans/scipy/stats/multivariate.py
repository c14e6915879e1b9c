"""Distributions of vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.stats

from ...base.source import at_line, user_line
from ...numpy.dispatch import public
from ...numpy.promotion import asarray, cast, value_in_hand
from ...ops.elementwise import stop_gradient
from ..linalg import solve_triangular
from ..special import gammaln, xlogy
from .distribution import floating_dtype
from .frozen import Frozen

__all__ = ["dirichlet", "multinomial", "multivariate_normal", "multivariate_t"]


class Multivariate:
    """A distribution of vectors, whose methods take arrays and traced values alike.

    Attributes:
        methods: the methods that there are.
        parameters: names of the parameters, which SciPy's frozen distributions have as attributes.
        typical: values of these for which it is defined.

    Example:
        >>> import ftrans as ft
        >>> import numpy as np
        >>> from ftrans.scipy import stats
        >>> print(ft.grad(stats.multivariate_normal.logpdf)(np.array([1.0, -2.0]), np.zeros(2), 2.0))
        [-0.5  1. ]
    """

    methods: ClassVar[tuple[str, ...]] = ("logpdf", "pdf")
    parameters: ClassVar[tuple[str, ...]] = ()
    typical: ClassVar[tuple[Any, ...]] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        original = getattr(scipy.stats, name)
        for method in self.methods:
            setattr(self, method, public(getattr(original, method), getattr(self, f"_{method}")))

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters."""
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self!r} has no {name!r}; it has {', '.join(self.methods)}. For plain arrays there is "
            f"scipy.stats.{self.name}{at_line(user_line())}"
        )

    def __repr__(self) -> str:
        return f"ftrans.scipy.stats.{self.name}"

    def _logpdf(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _pdf(self, *args: Any, **kwargs: Any) -> Any:
        return np.exp(self._logpdf(*args, **kwargs))


# Distributions with a matrix for their width


class _Distances(NamedTuple):
    """How far points are from the middle.

    Attributes:
        squares: squared Mahalanobis distances.
        log_determinant: logarithm of the determinant of the matrix, or of its part that is not singular.
        rank: the rank of the matrix, where it may be singular.
        is_outside: whether points are off the space that the matrix spans.
    """

    squares: Any
    log_determinant: Any
    rank: Any
    is_outside: Any = False


def _distances(x: Any, middle: Any, matrix: Any, allow_singular: bool) -> _Distances:
    offsets = x - middle
    if allow_singular:
        return _distances_in_span(offsets, matrix)
    root = np.linalg.cholesky(matrix)
    scaled = solve_triangular(root, np.reshape(offsets, (-1, matrix.shape[-1])).T, lower=True)
    squares = np.reshape(np.sum(scaled * scaled, axis=0), x.shape[:-1])
    return _Distances(squares, 2 * np.sum(np.log(np.diag(root))), matrix.shape[-1])


def _distances_in_span(offsets: Any, matrix: Any) -> _Distances:
    """The same with the pseudo-inverse, whose derivative is that at constant rank; cut-offs are SciPy's."""
    values, vectors = np.linalg.eigh(matrix)
    relative = {4: 1e3, 8: 1e6}[matrix.dtype.itemsize] * float(np.finfo(matrix.dtype).eps)
    cutoff = stop_gradient(relative * np.max(np.abs(values)))
    at_hand = value_in_hand(np.min(values) + cutoff)
    if at_hand is not None and at_hand < 0:
        raise ValueError(f"The input matrix must be symmetric positive semidefinite.{at_line(user_line())}")
    is_kept = values > cutoff
    inverse = np.linalg.pinv(matrix, rcond=relative, hermitian=True)
    # Off the span by more than rounding: the part of the offset along the other eigenvectors.
    beside = stop_gradient(asarray((offsets @ vectors) * ~is_kept))
    is_outside = np.linalg.norm(beside, axis=-1) >= 1e3 * cutoff
    log_determinant = np.sum(np.log(np.where(is_kept, values, 1.0)))
    squares = np.sum((offsets @ inverse) * offsets, axis=-1)
    return _Distances(squares, log_determinant, np.sum(is_kept), is_outside & ~np.all(is_kept))


def _placed(name: str, x: Any, middle: Any, matrix: Any) -> tuple[Any, Any, Any]:
    """Points, the middle and the matrix of a distribution as SciPy reads them: numbers and diagonals are matrices."""
    x, matrix = asarray(x), asarray(matrix)
    size = matrix.shape[0] if middle is None and matrix.ndim else 1 if middle is None else np.size(middle)
    middle = asarray(np.zeros(size) if middle is None else middle)
    dtype = floating_dtype([x, middle, matrix])
    x, middle, matrix = (cast(v, dtype) for v in (x, middle, matrix))
    if size == 1:
        middle, matrix = middle.reshape(1), matrix.reshape(1, 1)
    if matrix.ndim == 0:
        matrix = matrix * np.eye(size, dtype=dtype)
    elif matrix.ndim == 1:
        matrix = np.diag(matrix)
    if middle.shape != (size,) or matrix.shape != (size, size):
        raise ValueError(
            f"{name} takes {size} numbers for its middle and a matrix of shape ({size}, {size}); they are"
            f" {middle.type} and {matrix.type}{at_line(user_line())}"
        )
    return (x[..., None] if size == 1 and x.ndim < 2 else x), middle, matrix


class MultivariateNormal(Multivariate):
    """The normal distribution of vectors, which are along the last axis.

    With `allow_singular` the covariance may be singular: its derivative is the one at constant rank, and off the space
    that it spans the density is 0.
    """

    methods = ("logpdf", "pdf", "entropy")
    parameters = ("mean", "cov", "allow_singular")
    typical = (0.0, 1.0)

    def _logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        found = _distances(*_placed(self.name, x, mean, cov), allow_singular)
        log_density = -0.5 * (found.squares + found.log_determinant + found.rank * math.log(2 * math.pi))
        return np.squeeze(np.where(found.is_outside, -math.inf, log_density))

    def _entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        _, middle, matrix = _placed(self.name, 0.0, mean, cov)
        log_determinant = np.linalg.slogdet(matrix)[1]
        return 0.5 * (middle.size * math.log(2 * math.pi * math.e) + log_determinant)


class MultivariateT(Multivariate):
    """Student's t distribution of vectors, which are along the last axis."""

    parameters = ("loc", "shape", "df")
    typical = (0.0, 1.0, 1.0)

    def _logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        x, middle, matrix = _placed(self.name, x, loc, shape)
        df = cast(asarray(df), floating_dtype([x, df]))
        found = _distances(x, middle, matrix, allow_singular=False)
        half = 0.5 * (df + middle.size)
        log_scale = gammaln(half) - gammaln(0.5 * df) - 0.5 * middle.size * np.log(df * math.pi)
        return np.squeeze(log_scale - 0.5 * found.log_determinant - half * np.log1p(found.squares / df))


# Distributions of shares


class Dirichlet(Multivariate):
    """The distribution of probabilities that add up to 1, which are along the first axis.

    The last of them may be left out.  That they add up to 1 is not checked where they are traced.
    """

    parameters = ("alpha",)
    typical = ((1.0, 1.0),)

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


class Multinomial(Multivariate):
    """The distribution of how often each of several results comes up, along the last axis, in `n` trials.

    Probabilities are taken as they are: that they add up to 1 is not checked where they are traced.
    """

    methods = ("logpmf", "pmf")
    parameters = ("n", "p")
    typical = (1, (0.5, 0.5))

    def _logpmf(self, x: Any, n: Any, p: Any) -> Any:
        counts, n, p = stop_gradient(asarray(x) * 1.0), stop_gradient(asarray(n) * 1.0), asarray(p)
        is_possible = np.all((counts >= 0) & (counts == np.floor(counts)), axis=-1) & (np.sum(counts, axis=-1) == n)
        counts = np.where(is_possible[..., None], counts, 0.0)
        log_mass = gammaln(n + 1) + np.sum(xlogy(counts, p) - gammaln(counts + 1), axis=-1)
        is_valid = np.all((p >= 0) & (p <= 1), axis=-1) & (n >= 0)
        return np.where(is_valid, np.where(is_possible, log_mass, -math.inf), math.nan)

    def _pmf(self, *args: Any, **kwargs: Any) -> Any:
        return np.exp(self._logpmf(*args, **kwargs))


dirichlet = Dirichlet("dirichlet")
multinomial = Multinomial("multinomial")
multivariate_normal = MultivariateNormal("multivariate_normal")
multivariate_t = MultivariateT("multivariate_t")
