"""Transforms: invertible functions with the logarithm of their derivative, for `TransformedDistribution`.

They are functions of arrays and of traced values, and containers of their parameters.  `log_abs_det_jacobian(x, y)`
takes both a value and its image, so that neither is computed again.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from ...base.cell import read
from ...base.source import at_line, user_line
from ...core.types import Shape
from ...scipy.special import expit, log_expit, softmax, softplus
from ..functional.arguments import shape_of
from .constraints import (
    Constraint,
    Interval,
    corr_cholesky,
    independent,
    lower_cholesky,
    nonnegative,
    positive,
    positive_definite,
    real,
    real_vector,
    simplex,
    unit_interval,
)
from .constraints import square as square_matrix
from .numbers import eps, operands, tiny

__all__ = [
    "AbsTransform", "AffineTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StickBreakingTransform", "TanhTransform", "Transform",
]  # fmt: skip


@dataclasses.dataclass(eq=False, repr=False, init=False)
class Transform:
    """Base class of transforms.

    A transform of your own states `domain`, `codomain`, `_call`, `_inverse` and `log_abs_det_jacobian`, as in torch.

    Attributes:
        domain: the set of its arguments.
        codomain: the set of its values.
        bijective: whether it has an inverse.
        sign: 1 or -1 for a function of numbers that rises or falls.
    """

    bijective: ClassVar[bool] = True
    _domain: ClassVar[Constraint] = real
    _codomain: ClassVar[Constraint] = real
    _sign: ClassVar[int | None] = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object, unless it is to cache something as in torch."""
        _refuse_cache(cls, kwargs.get("cache_size", 0))
        return super().__new__(cls)

    def __init__(self, cache_size: int = 0) -> None:
        _refuse_cache(type(self), cache_size)

    @property
    def domain(self) -> Constraint:
        """The set of its arguments."""
        return self._domain

    @property
    def codomain(self) -> Constraint:
        """The set of its values."""
        return self._codomain

    @property
    def sign(self) -> Any:
        """1 or -1 for a function of numbers that rises or falls.

        Raises:
            NotImplementedError: it does neither.
        """
        if self._sign is None:
            raise NotImplementedError(
                f"{type(self).__name__} neither rises nor falls, so distribution functions can not be carried over"
                + at_line(user_line())
            )
        return self._sign

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return InverseTransform(self)

    def __call__(self, x: Any) -> Any:
        """The image of `x`."""
        return self._call(*operands([x]))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the absolute value of the derivative, or of the determinant of the Jacobian, at `x`.

        Args:
            x: an argument.
            y: its image.

        Returns:
            An array without the axes of events of the domain.
        """
        return self._log_slope(*operands([x, y]))

    def forward_shape(self, shape: Shape) -> Shape:
        """The shape of the image of an array of a shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        """The shape of what has an image of a shape."""
        return tuple(shape)

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(type(self))

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse{at_line(user_line())}")

    def _log_slope(self, x: Any, y: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no density, because it is no bijection{at_line(user_line())}"
        )

    def __repr__(self) -> str:
        shown = [f"{name}={x}" for name, x in vars(self).items()]
        return f"{type(self).__name__}({', '.join(shown)})"


def _refuse_cache(cls: type, cache_size: int) -> None:
    """Raise if a transform is to remember its last argument.

    Raises:
        TypeError: it is.
    """
    if cache_size:
        raise TypeError(
            f"{cls.__name__} takes no cache_size, since nothing is cached: rsample_and_log_prob of a "
            f"TransformedDistribution gives samples and their densities without an inverse{at_line(user_line())}"
        )


class InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        self._of = transform

    @property
    def domain(self) -> Constraint:
        return self._of.codomain

    @property
    def codomain(self) -> Constraint:
        return self._of.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether it has an inverse."""
        return self._of.bijective

    @property
    def sign(self) -> Any:
        return self._of.sign

    @property
    def inv(self) -> Transform:
        return self._of

    def _call(self, x: Any) -> Any:
        return self._of._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self._of._call(y)

    def _log_slope(self, x: Any, y: Any) -> Any:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._of.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._of!r}.inv"


# Of numbers


class AffineTransform(Transform):
    """`loc + scale * x`.

    Args:
        loc: a number or an array.
        scale: a number or an array, not 0.
        event_dim: the number of last axes that are one event.

    Example:
        >>> from ftrans.nn import distributions
        >>> f = distributions.AffineTransform(1.0, 2.0)
        >>> f(3.0), f.inv(7.0)
        (np.float64(7.0), np.float64(3.0))
    """

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0) -> None:
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    @property
    def domain(self) -> Constraint:
        return independent(real, self.event_dim)

    codomain = domain

    @property
    def sign(self) -> Any:
        return np.sign(read(self.scale))

    def _numbers(self, x: Any) -> list[Any]:
        return operands([x, self.loc, self.scale])

    def _call(self, x: Any) -> Any:
        x, loc, scale = self._numbers(x)
        return loc + scale * x

    def _inverse(self, y: Any) -> Any:
        y, loc, scale = self._numbers(y)
        return (y - loc) / scale

    def _log_slope(self, x: Any, y: Any) -> Any:
        x, _, scale = self._numbers(x)
        slope = np.broadcast_to(np.log(abs(scale)), np.broadcast_shapes(shape_of(x), shape_of(scale)))
        return np.sum(slope, axis=tuple(range(-self.event_dim, 0))) if self.event_dim else slope

    def forward_shape(self, shape: Shape) -> Shape:
        return np.broadcast_shapes(shape, shape_of(self.loc), shape_of(self.scale))

    inverse_shape = forward_shape


class ExpTransform(Transform):
    """`exp(x)`."""

    _codomain = positive
    _sign = 1

    def _call(self, x: Any) -> Any:
        return np.exp(x)

    def _inverse(self, y: Any) -> Any:
        return np.log(y)

    def _log_slope(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """`x ** exponent`, of positive numbers.

    Args:
        exponent: a number or an array, not 0.
    """

    _domain = positive
    _codomain = positive

    def __init__(self, exponent: Any) -> None:
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return np.sign(read(self.exponent))

    def _call(self, x: Any) -> Any:
        x, exponent = operands([x, self.exponent])
        return x**exponent

    def _inverse(self, y: Any) -> Any:
        y, exponent = operands([y, self.exponent])
        return y ** (1 / exponent)

    def _log_slope(self, x: Any, y: Any) -> Any:
        x, exponent = operands([x, self.exponent])
        return np.log(abs(exponent)) + (exponent - 1) * np.log(x)

    def forward_shape(self, shape: Shape) -> Shape:
        return np.broadcast_shapes(shape, shape_of(self.exponent))

    inverse_shape = forward_shape


class SigmoidTransform(Transform):
    """`1 / (1 + exp(-x))`."""

    _codomain = unit_interval
    _sign = 1

    def _call(self, x: Any) -> Any:
        return np.clip(expit(x), tiny(x), 1 - eps(x) / 2)

    def _inverse(self, y: Any) -> Any:
        y = np.clip(y, tiny(y), 1 - eps(y) / 2)
        return np.log(y) - np.log1p(-y)

    def _log_slope(self, x: Any, y: Any) -> Any:
        return log_expit(x) + log_expit(-x)


class TanhTransform(Transform):
    """`tanh(x)`.

    The inverse loses digits near -1 and 1; the density of samples needs none of it by
    `TransformedDistribution.rsample_and_log_prob`.
    """

    _codomain = Interval(-1.0, 1.0)
    _sign = 1

    def _call(self, x: Any) -> Any:
        return np.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return np.arctanh(y)

    def _log_slope(self, x: Any, y: Any) -> Any:
        return 2 * (math.log(2) - x - softplus(-2 * x))


class SoftplusTransform(Transform):
    """`log(1 + exp(x))`."""

    _codomain = positive
    _sign = 1

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return y + np.log(-np.expm1(-y))

    def _log_slope(self, x: Any, y: Any) -> Any:
        return log_expit(x)


class AbsTransform(Transform):
    """The absolute value; the inverse is the positive number."""

    bijective = False
    _codomain = nonnegative

    def _call(self, x: Any) -> Any:
        return abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of numbers.

    Args:
        distribution: it must have `cdf`, `icdf` and `log_prob`.
    """

    _codomain = unit_interval
    _sign = 1

    def __init__(self, distribution: Any) -> None:
        self.distribution = distribution

    @property
    def domain(self) -> Constraint:
        support: Constraint = self.distribution.support
        return support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def _log_slope(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


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
