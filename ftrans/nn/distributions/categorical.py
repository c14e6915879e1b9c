"""Distributions of classes, of which one is drawn or counts of several, with probabilities along the last axis."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.types import Shape
from ...scipy.special import expit, gammaln, log_softmax, softmax, softplus, xlogy
from ..functional.arguments import shape_of
from ..random import categorical, gumbel, open_unit
from .constraints import (
    Constraint,
    integer_interval,
    multinomial,
    one_hot,
    positive,
    real,
    real_vector,
    simplex,
    unit_interval,
)
from .numbers import tiny
from .probs_or_logits import BinaryProbabilities, ClassProbabilities, weights

__all__ = [
    "Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough", "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]  # fmt: skip


def _entropy(probs: Any, logits: Any) -> Any:
    return -np.sum(probs * np.maximum(logits, np.finfo(logits.dtype).min), axis=-1)


def _classes(key: Any, shape: Shape, probs: Any, logits: Any) -> Any:
    """Indices of classes; those of probability 0 are never drawn."""
    possible = np.where(probs > 0, stop_gradient(logits), -math.inf)
    whole = (*shape, shape_of(probs)[-1])
    return categorical(key, possible if shape_of(possible) == whole else np.broadcast_to(possible, whole))


def _one_hot(indices: Any, like: Any) -> Any:
    return (indices[..., None] == np.arange(like.shape[-1])).astype(like.dtype)


class Categorical(ClassProbabilities):
    """The distribution of the index of a class.

    Args:
        probs: weights of the classes along the last axis, divided by their sum; or
        logits: their logarithms, up to a constant.
        validate_args: False to leave parameters and values unchecked.

    Raises:
        ValueError: `probs` and `logits` are both given, or none; or a weight is negative.

    Example:
        >>> import numpy as np
        >>> from ftrans.nn import distributions
        >>> d = distributions.Categorical(logits=np.array([0.0, np.log(3.0)]))
        >>> d.log_prob(np.array([0, 1])).round(4)
        array([-1.3863, -0.2877])
    """

    has_enumerate_support = True

    @property
    def support(self) -> Constraint:
        return integer_interval(0, self.num_events - 1)

    def _log_prob(self, x: Any, logits: Any) -> Any:
        batch, count = shape_of(logits)[:-1], shape_of(logits)[-1]
        shape = np.broadcast_shapes(shape_of(x), batch)
        index = x.astype(np.int64)
        index = index if shape_of(index) == shape else np.broadcast_to(index, shape)
        logits = logits if batch == shape else np.broadcast_to(logits, (*shape, count))
        return np.take_along_axis(logits, index[..., None], -1)[..., 0]

    def _mean(self, probs: Any, logits: Any) -> Any:
        return np.full(shape_of(probs)[:-1], math.nan, probs.dtype)

    _variance = _mean

    def _mode(self, probs: Any, logits: Any) -> Any:
        return np.argmax(probs, axis=-1)

    def _entropy(self, probs: Any, logits: Any) -> Any:
        return _entropy(probs, logits)

    def _values(self) -> Any:
        return np.arange(self.num_events)

    def _draw(self, key: Any, shape: Shape, probs: Any, logits: Any) -> Any:
        return _classes(key, shape, probs, logits)


class OneHotCategorical(ClassProbabilities):
    """The distribution of a class as a vector that is 1 at its index; parameters as for `Categorical`."""

    has_enumerate_support = True
    _support = one_hot

    @property
    def event_shape(self) -> Shape:
        return (self.num_events,)

    def _log_prob(self, x: Any, logits: Any) -> Any:
        return np.sum(np.where(x == 1, logits, 0.0), axis=-1)

    def _mean(self, probs: Any, logits: Any) -> Any:
        return probs

    def _mode(self, probs: Any, logits: Any) -> Any:
        return _one_hot(np.argmax(probs, axis=-1), probs)

    def _variance(self, probs: Any, logits: Any) -> Any:
        return probs * (1 - probs)

    def _entropy(self, probs: Any, logits: Any) -> Any:
        return _entropy(probs, logits)

    def _values(self) -> Any:
        return np.eye(self.num_events, dtype=self._operands()[0].dtype)

    def _draw(self, key: Any, shape: Shape, probs: Any, logits: Any) -> Any:
        return _one_hot(_classes(key, shape[:-1], probs, logits), probs)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples have the derivatives of the probabilities (Bengio et al., 2013)."""

    has_rsample = True

    def _draw(self, key: Any, shape: Shape, probs: Any, logits: Any) -> Any:
        return super()._draw(key, shape, probs, logits) + (probs - stop_gradient(probs))


class Multinomial(ClassProbabilities):
    """The distribution of how often each class is drawn in `total_count` draws.

    Args:
        total_count: number of draws, a plain integer.
        probs: weights of the classes along the last axis, divided by their sum; or
        logits: their logarithms, up to a constant.
        validate_args: False to leave parameters and values unchecked.

    Raises:
        TypeError: `total_count` is not a plain integer.
    """

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not is_plain(total_count, int | np.integer):
            raise TypeError(
                f"total_count of Multinomial must be one integer, not {total_count!r}: of distributions with several "
                f"counts, make one for each{at_line(user_line())}"
            )
        self.total_count = int(total_count)
        self._set_either(validate_args, probs, logits)

    @property
    def event_shape(self) -> Shape:
        return (self.num_events,)

    @property
    def support(self) -> Constraint:
        return multinomial(self.total_count)

    def _log_prob(self, x: Any, logits: Any) -> Any:
        weighted = np.where(x == 0, 0.0, x * np.where(x == 0, 0.0, logits))
        return gammaln(np.sum(x, axis=-1) + 1) + np.sum(weighted - gammaln(x + 1), axis=-1)

    def _mean(self, probs: Any, logits: Any) -> Any:
        return self.total_count * probs

    def _variance(self, probs: Any, logits: Any) -> Any:
        return self.total_count * probs * (1 - probs)

    def _entropy(self, probs: Any, logits: Any) -> Any:
        # The entropy of the draws in their order, less what the order tells, by the binomial counts of each class.
        n = self.total_count
        k = np.arange(1, n + 1, dtype=probs.dtype).reshape(-1, *((1,) * probs.ndim))
        log_binomial = gammaln(k * 0 + n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        counts = np.exp(log_binomial + xlogy(k, probs) + xlogy(n - k, 1 - probs))
        orders = np.sum(counts * gammaln(k + 1), axis=(0, -1))
        return n * _entropy(probs, logits) - math.lgamma(n + 1) + orders

    def _draw(self, key: Any, shape: Shape, probs: Any, logits: Any) -> Any:
        drawn = _classes(key, (self.total_count, *shape[:-1]), probs, logits)
        return np.sum(_one_hot(drawn, probs), axis=0)


class RelaxedBernoulli(BinaryProbabilities):
    """A continuous relaxation of `Bernoulli` on the interval from 0 to 1, with derivatives of samples.

    Maddison, Mnih and Teh, "The concrete distribution", 2017; Jang, Gu and Poole, 2017.

    Args:
        temperature: the smaller, the nearer are samples to 0 and 1.
        probs: the probability of 1; or
        logits: its logarithm less that of the probability of 0.
        validate_args: False to leave parameters and values unchecked.
    """

    arg_constraints: ClassVar = {"temperature": positive, "probs": unit_interval, "logits": real}
    has_rsample = True
    _support = unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_either(validate_args, probs, logits, temperature=temperature)

    def _log_prob(self, x: Any, temperature: Any, logits: Any) -> Any:
        log_x, log_rest = np.log(x), np.log1p(-x)
        gap = logits - (log_x - log_rest) * temperature
        return np.log(temperature) + gap - 2 * softplus(gap) - log_x - log_rest

    def _draw(self, key: Any, shape: Shape, temperature: Any, probs: Any, logits: Any) -> Any:
        u = open_unit(key, shape, probs.dtype)
        noise = np.log(u) - np.log1p(-u)
        drawn = expit((logits + noise) / temperature)
        return np.clip(drawn, tiny(probs), 1 - np.finfo(probs.dtype).epsneg)


class RelaxedOneHotCategorical(ClassProbabilities):
    """A continuous relaxation of `OneHotCategorical` on the simplex, with derivatives of samples (Gumbel-softmax).

    Args:
        temperature: one for all classes; the smaller, the nearer are samples to one class.
        probs: weights of the classes along the last axis, divided by their sum; or
        logits: their logarithms, up to a constant.
        validate_args: False to leave parameters and values unchecked.
    """

    arg_constraints: ClassVar = {"temperature": positive, "probs": weights, "logits": real_vector}
    has_rsample = True
    _support = simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_either(validate_args, probs, logits, temperature=temperature)

    @property
    def event_shape(self) -> Shape:
        return (self.num_events,)

    @property
    def num_events(self) -> int:
        """The number of classes."""
        return int((self._probs if "_probs" in vars(self) else self._logits).shape[-1])

    def _log_prob(self, x: Any, temperature: Any, logits: Any) -> Any:
        t, log_x, n = temperature[..., None], np.log(x), shape_of(logits)[-1]
        scores = log_softmax(logits - t * log_x, axis=-1)
        return math.lgamma(n) + (n - 1) * np.log(temperature) + np.sum(scores - log_x, axis=-1)

    def _draw(self, key: Any, shape: Shape, temperature: Any, probs: Any, logits: Any) -> Any:
        noise = gumbel(key, shape, probs.dtype)
        drawn = softmax((logits + noise) / temperature[..., None], axis=-1)
        return np.maximum(drawn, tiny(probs))
