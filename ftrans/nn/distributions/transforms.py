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
from ...scipy.special import expit, log_expit, softplus
from ..functional.arguments import shape_of
from .constraints import (
    Constraint,
    Interval,
    independent,
    nonnegative,
    positive,
    real,
    unit_interval,
)
from .numbers import eps, operands, tiny

__all__ = [
    "AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform", "PowerTransform",
    "SigmoidTransform", "SoftplusTransform", "TanhTransform", "Transform",
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
