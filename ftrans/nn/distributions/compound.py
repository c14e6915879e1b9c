"""Distributions that are made of others: Independent, MixtureSameFamily, TransformedDistribution, LogisticNormal."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...core.types import Shape
from ...scipy.special import logsumexp
from ..functional.arguments import array, described, shape_of
from ..random import key_of, split
from .array_transforms import StickBreakingTransform
from .categorical import Categorical
from .constraints import Constraint, independent
from .distribution import Distribution
from .location_scale import Normal
from .numbers import as_parameter, is_known, operands, sizes_of
from .transform_parts import ComposeTransform, sum_of_last
from .transforms import Transform

__all__ = ["Independent", "LogisticNormal", "MixtureSameFamily", "TransformedDistribution"]


def _distribution(x: Any, what: str) -> Distribution:
    if not isinstance(x, Distribution):
        raise TypeError(f"{what} must be a distribution, not {described(x)}{at_line(user_line())}")
    return x


class _OfDistributions(Distribution):
    """Distributions whose parameters are those of others."""

    def _formula(self, what: str) -> Any:
        raise NotImplementedError(
            f"{self!r} has no {what}: no closed form is known; samples estimate it{at_line(user_line())}"
        )

    def log_prob(self, value: Any) -> Any:
        value = self._checked_value(value, "log_prob")
        if self._validate_args and is_known(value) and self.support.is_known():
            self._check(self.support, array(value), f"value of {type(self).__name__}.log_prob")
        return self._log_density(value)

    def _log_density(self, value: Any) -> Any:
        raise NotImplementedError(type(self))


class Independent(_OfDistributions):
    """A distribution whose last axes of the batch are taken for parts of one event: their densities are multiplied.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many axes of its batch.
        validate_args: False to leave values unchecked.

    Raises:
        ValueError: the batch has fewer axes.

    Example:
        >>> import numpy as np
        >>> from ftrans.nn import distributions as D
        >>> d = D.Independent(D.Normal(np.zeros(3), 1.0), 1)
        >>> d.batch_shape, d.event_shape
        ((), (3,))
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        self._validate_args = validate_args is not False
        self.base_dist = _distribution(base_distribution, "base_distribution of Independent")
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        if reinterpreted_batch_ndims > len(self.base_dist.batch_shape):
            raise ValueError(
                f"Independent can not take {reinterpreted_batch_ndims} axes of a batch of shape "
                f"{self.base_dist.batch_shape}; expand the parameters of the distribution{at_line(user_line())}"
            )

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the distribution has."""
        return self.base_dist.has_rsample

    @property
    def batch_shape(self) -> Shape:
        shape = self.base_dist.batch_shape
        return shape[: len(shape) - self.reinterpreted_batch_ndims]

    @property
    def event_shape(self) -> Shape:
        shape = self.base_dist.batch_shape
        return (*shape[len(shape) - self.reinterpreted_batch_ndims :], *self.base_dist.event_shape)

    @property
    def support(self) -> Constraint:
        return independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Any) -> Any:
        new, shape = copy.copy(self), sizes_of(batch_shape, "Independent.expand")
        own = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*shape, *own))
        return new

    def _log_density(self, value: Any) -> Any:
        return sum_of_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def entropy(self) -> Any:
        return sum_of_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def rsample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        return self.base_dist.rsample(sample_shape, rng)

    def sample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        return self.base_dist.sample(sample_shape, rng)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(_OfDistributions):
    """A mixture of distributions of one family.

    Args:
        mixture_distribution: a `Categorical`, which picks one of the components.
        component_distribution: the components, along the last axis of its batch.
        validate_args: False to leave values unchecked.

    Raises:
        ValueError: the numbers of components differ.

    Example:
        >>> import numpy as np
        >>> from ftrans.nn import distributions as D
        >>> parts = D.Normal(np.array([-1.0, 1.0]), 0.5)
        >>> float(D.MixtureSameFamily(D.Categorical([0.25, 0.75]), parts).mean)
        0.5
    """

    def __init__(
        self,
        mixture_distribution: Distribution,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._validate_args = validate_args is not False
        self.component_distribution = _distribution(component_distribution, "component_distribution")
        if not isinstance(mixture_distribution, Categorical):
            raise TypeError(
                f"mixture_distribution must be a Categorical, not {mixture_distribution!r}{at_line(user_line())}"
            )
        self.mixture_distribution = mixture_distribution
        count, shape = mixture_distribution.num_events, component_distribution.batch_shape
        if not shape or shape[-1] != count:
            raise ValueError(
                f"a mixture of {count} components takes a component_distribution whose batch ends with an axis of that "
                f"size, not one of shape {shape}{at_line(user_line())}"
            )

    @property
    def batch_shape(self) -> Shape:
        of_components = self.component_distribution.batch_shape[:-1]
        return np.broadcast_shapes(of_components, self.mixture_distribution.batch_shape)

    @property
    def event_shape(self) -> Shape:
        return self.component_distribution.event_shape

    @property
    def support(self) -> Constraint:
        support: Constraint = self.component_distribution.support
        return support

    def expand(self, batch_shape: Any) -> Any:
        new, shape = copy.copy(self), sizes_of(batch_shape, "MixtureSameFamily.expand")
        new.component_distribution = self.component_distribution.expand((*shape, self.mixture_distribution.num_events))
        new.mixture_distribution = self.mixture_distribution.expand(shape)
        return new

    def _to_components(self, value: Any) -> Any:
        """Values with an axis for the components."""
        return np.expand_dims(value, -1 - len(self.event_shape))

    def log_prob(self, value: Any) -> Any:
        return self._log_density(self._checked_value(value, "log_prob"))

    def _log_density(self, value: Any) -> Any:
        parts = self.component_distribution.log_prob(self._to_components(value))
        return logsumexp(parts + operands([self.mixture_distribution.logits])[0], axis=-1)

    def cdf(self, value: Any) -> Any:
        value = self._to_components(self._checked_value(value, "cdf"))
        return np.sum(self.component_distribution.cdf(value) * self.mixture_distribution.probs, axis=-1)

    def _weighted(self, of_components: Any) -> Any:
        events = len(self.event_shape)
        probs = self.mixture_distribution.probs
        return np.sum(probs[(..., *((None,) * events))] * of_components, axis=-1 - events)

    @property
    def mean(self) -> Any:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Any:
        means = self.component_distribution.mean
        apart = means - np.expand_dims(self._weighted(means), -1 - len(self.event_shape))
        return self._weighted(self.component_distribution.variance + apart**2)

    def sample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        shape = sizes_of(sample_shape, "MixtureSameFamily.sample")
        keys = split(key_of(rng, "MixtureSameFamily.sample"))
        d = self if self.batch_shape == self.mixture_distribution.batch_shape else self.expand(self.batch_shape)
        which = d.mixture_distribution.sample(shape, keys[0])
        drawn = d.component_distribution.sample(shape, keys[1])
        events = len(self.event_shape)
        index = which[(..., None, *((None,) * events))]
        index = np.broadcast_to(index, (*shape_of(which), 1, *self.event_shape))
        full = np.broadcast_to(drawn, (*shape_of(which), d.mixture_distribution.num_events, *self.event_shape))
        return np.squeeze(np.take_along_axis(full, index, -1 - events), -1 - events)

    def rsample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        raise NotImplementedError(
            "samples of MixtureSameFamily have no derivatives, since a component is picked; draw them by sample, and "
            f"weigh losses by log_prob, or sum over the components{at_line(user_line())}"
        )

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self.mixture_distribution!r}, {self.component_distribution!r})"


class TransformedDistribution(_OfDistributions):
    """The distribution of `f(x)`, where x has a base distribution and f is a transform, or several in a row.

    Args:
        base_distribution: the distribution of x.
        transforms: a transform, or a list of them, the first one first.
        validate_args: False to leave values unchecked.

    Example:
        >>> from ftrans.nn import distributions as D
        >>> d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.AffineTransform(1.0, 2.0), D.ExpTransform()])
        >>> float(d.log_prob(1.0).round(4)) == float(D.LogNormal(1.0, 2.0).log_prob(1.0).round(4))
        True
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self._validate_args = validate_args is not False
        self.base_dist = _distribution(base_distribution, "base_distribution of TransformedDistribution")
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for t in self.transforms:
            if not isinstance(t, Transform):
                raise TypeError(f"transforms must be transforms, not {described(t)}{at_line(user_line())}")
        needed = self._transform.domain.event_dim
        if needed > len(self.base_dist.event_shape) + len(self.base_dist.batch_shape):
            raise ValueError(
                f"{self.transforms!r} takes values with at least {needed} axes, which those of {self.base_dist!r} have"
                f" not: expand it{at_line(user_line())}"
            )

    @property
    def _transform(self) -> ComposeTransform:
        return ComposeTransform(self.transforms)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base distribution has."""
        return self.base_dist.has_rsample

    def _event_dim_of_result(self) -> int:
        transform = self._transform
        first, last = transform.domain.event_dim, transform.codomain.event_dim
        return last + max(len(self.base_dist.event_shape) - first, 0)

    @property
    def _shape(self) -> Shape:
        return self._transform.forward_shape((*self.base_dist.batch_shape, *self.base_dist.event_shape))

    @property
    def batch_shape(self) -> Shape:
        return self._shape[: len(self._shape) - self._event_dim_of_result()]

    @property
    def event_shape(self) -> Shape:
        return self._shape[len(self._shape) - self._event_dim_of_result() :]

    @property
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        codomain = self._transform.codomain
        return independent(codomain, self._event_dim_of_result() - codomain.event_dim)

    def expand(self, batch_shape: Any) -> Any:
        new, shape = copy.copy(self), sizes_of(batch_shape, "TransformedDistribution.expand")
        whole = self._transform.inverse_shape((*shape, *self.event_shape))
        new.base_dist = self.base_dist.expand(whole[: len(whole) - len(self.base_dist.event_shape)])
        return new

    def _log_density(self, value: Any) -> Any:
        (y,) = operands([value])
        x = self._transform.inv(y)
        return self._log_of(x, y)

    def _log_of(self, x: Any, y: Any) -> Any:
        base_events, transform = len(self.base_dist.event_shape), self._transform
        first = transform.domain.event_dim
        density = sum_of_last(self.base_dist.log_prob(x), max(first - base_events, 0))
        if not self.transforms:
            return density
        return density - sum_of_last(transform.log_abs_det_jacobian(x, y), max(base_events - first, 0))

    def rsample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        return self._transform(self.base_dist.rsample(sample_shape, rng))

    def sample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        return stop_gradient(self._transform(self.base_dist.sample(sample_shape, rng)))

    def rsample_and_log_prob(self, sample_shape: Any = (), rng: Any = None) -> tuple[Any, Any]:
        """Samples, as by `rsample`, and `log_prob` of them, for which no transform is inverted.

        So nothing is lost where the inverse is imprecise, as that of tanh is near -1 and 1 (soft actor-critic); in
        torch, transforms with `cache_size=1` are for that.

        Example:
            >>> from ftrans.nn import distributions as D, random
            >>> d = D.TransformedDistribution(D.Normal(20.0, 1.0), D.TanhTransform())
            >>> action, log_prob = d.rsample_and_log_prob(rng=random.key(0))
            >>> float(action), bool(log_prob > 30)
            (1.0, True)
        """
        x = self.base_dist.rsample(sample_shape, rng)
        y = self._transform(x)
        return y, self._log_of(x, y)

    def cdf(self, value: Any) -> Any:
        (y,) = operands([as_parameter(value, "the value of TransformedDistribution.cdf")])
        share, sign = self.base_dist.cdf(self._transform.inv(y)), self._transform.sign
        return (sign * (share - 0.5) + 0.5).astype(share.dtype)

    def icdf(self, value: Any) -> Any:
        (q,) = operands([as_parameter(value, "the value of TransformedDistribution.icdf")])
        q = (self._transform.sign * (q - 0.5) + 0.5).astype(q.dtype)
        return self._transform(self.base_dist.icdf(q))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"


class LogisticNormal(TransformedDistribution):
    """The distribution on the simplex of a normal vector after `StickBreakingTransform`: n numbers give n + 1 shares.

    Args:
        loc: means, of shape (..., n).
        scale: standard deviations, of shape (..., n).
        validate_args: False to leave parameters and values unchecked.
    """

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The means that were given."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviations that were given."""
        return self.base_dist.scale
