"""Distributions of counts: Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...api.derivatives import stop_gradient
from ...core.types import Shape
from ...scipy.special import (
    bdtrik,
    betaincc,
    gammaincinv,
    gammaln,
    log_expit,
    pdtr,
    pdtrik,
    softplus,
    xlogy,
)
from ..random import open_unit, split
from .constraints import (
    Constraint,
    boolean,
    integer_interval,
    nonnegative,
    nonnegative_integer,
    positive,
    real,
    unit_interval,
)
from .distribution import Distribution
from .numbers import concrete_maximum, eps
from .probs_or_logits import BinaryProbabilities

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


def _cross_entropy(share: Any, logits: Any) -> Any:
    """What a share of ones costs, in nats, under logits."""
    return softplus(logits) - share * logits


class Bernoulli(BinaryProbabilities):
    """The distribution of 1, with probability `probs`, and 0.

    Args:
        probs: the probability of 1; or
        logits: its logarithm less that of the probability of 0.
        validate_args: False to leave parameters and values unchecked.

    Raises:
        ValueError: `probs` and `logits` are both given, or none; or `probs` is no probability.

    Example:
        >>> from ftrans.nn import distributions
        >>> d = distributions.Bernoulli(0.25)
        >>> float(d.log_prob(1).round(4)), float(d.entropy().round(4))
        (-1.3863, 0.5623)
    """

    has_enumerate_support = True
    _support = boolean

    def _log_prob(self, x: Any, logits: Any) -> Any:
        return -_cross_entropy(x, logits)

    def _cdf(self, x: Any, probs: Any, logits: Any) -> Any:
        return np.where(x >= 1, 1.0, 1 - probs)

    def _mean(self, probs: Any, logits: Any) -> Any:
        return probs

    def _mode(self, probs: Any, logits: Any) -> Any:
        return np.where(probs == 0.5, np.nan, np.where(probs > 0.5, 1.0, 0.0))

    def _variance(self, probs: Any, logits: Any) -> Any:
        return probs * (1 - probs)

    def _entropy(self, probs: Any, logits: Any) -> Any:
        return _cross_entropy(probs, logits)

    def _values(self) -> Any:
        return np.arange(2, dtype=self._operands()[0].dtype)

    def _draw(self, key: Any, shape: Shape, probs: Any, logits: Any) -> Any:
        return (open_unit(key, shape, probs.dtype) < probs).astype(probs.dtype)


class Geometric(BinaryProbabilities):
    """The distribution of the number of failures before the first success, which has probability `probs`."""

    _support = nonnegative_integer

    def _log_prob(self, x: Any, logits: Any) -> Any:
        # Each failure adds log(1 - probs), and the success log(probs).
        return x * log_expit(-logits) + log_expit(logits)

    def _cdf(self, x: Any, probs: Any, logits: Any) -> Any:
        return -np.expm1((np.floor(x) + 1) * log_expit(-logits))

    def _mean(self, probs: Any, logits: Any) -> Any:
        return np.exp(-logits)

    def _mode(self, probs: Any, logits: Any) -> Any:
        return np.zeros_like(probs)

    def _variance(self, probs: Any, logits: Any) -> Any:
        return np.exp(-logits) / probs

    def _entropy(self, probs: Any, logits: Any) -> Any:
        return _cross_entropy(probs, logits) / probs

    def _draw(self, key: Any, shape: Shape, probs: Any, logits: Any) -> Any:
        return np.floor(np.log(open_unit(key, shape, probs.dtype)) / log_expit(-logits))


def _first_reaching(u: Any, guess: Any, share: Any) -> Any:
    """The smallest whole number whose distribution function reaches `u`, next to a real one for which it is `u`."""
    k = np.ceil(guess)
    lower = np.maximum(k - 1, 0.0)
    return np.where(share(lower) >= u, lower, k)


def _binomial_share(k: Any, n: Any, p: Any) -> Any:
    """The probability of at most `k` of `n`."""
    is_part = k < n
    return np.where(is_part, betaincc(k + 1, np.where(is_part, n - k, 1.0), p), 1.0)


class Binomial(BinaryProbabilities):
    """The distribution of the number of successes in `total_count` trials.

    Args:
        total_count: number of trials, an integer or an array of such.
        probs: the probability of success; or
        logits: its logarithm less that of the probability of failure.
        validate_args: False to leave parameters and values unchecked.
    """

    arg_constraints: ClassVar = {"total_count": nonnegative_integer, "probs": unit_interval, "logits": real}

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_either(validate_args, probs, logits, total_count=total_count)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether all distributions of the batch have the same values."""
        return np.shape(self.total_count) == ()

    @property
    def support(self) -> Constraint:
        return integer_interval(0, self.total_count)

    def _log_prob(self, x: Any, n: Any, logits: Any) -> Any:
        choices = gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1)
        return choices + x * logits - n * softplus(logits)

    def _cdf(self, x: Any, n: Any, probs: Any, logits: Any) -> Any:
        return _binomial_share(np.floor(x), n, probs)

    def _mean(self, n: Any, probs: Any, logits: Any) -> Any:
        return n * probs

    def _mode(self, n: Any, probs: Any, logits: Any) -> Any:
        return np.minimum(np.floor((n + 1) * probs), n)

    def _variance(self, n: Any, probs: Any, logits: Any) -> Any:
        return n * probs * (1 - probs)

    def _entropy(self, n: Any, probs: Any, logits: Any) -> Any:
        most = concrete_maximum(n, "Binomial.entropy", "total_count")
        x = np.arange(most + 1, dtype=n.dtype).reshape(-1, *((1,) * len(self.batch_shape)))
        inside = x <= n
        log_p = self._log_prob(np.minimum(x, n), n, logits)
        return -np.sum(np.where(inside, np.exp(log_p) * log_p, 0.0), axis=0)

    def _values(self) -> Any:
        n = concrete_maximum(self.total_count, "Binomial.enumerate_support", "total_count")
        return np.arange(n + 1, dtype=self._operands()[0].dtype)

    def _draw(self, key: Any, shape: Shape, n: Any, probs: Any, logits: Any) -> Any:
        dtype = probs.dtype
        n, p, u = (x.astype(np.float64) for x in (n, stop_gradient(probs), open_unit(key, shape, np.dtype(np.float64))))
        is_inner = (p > eps(p)) & (p < 1 - eps(p)) & (n > 0)
        p, m, u = (np.broadcast_to(x, shape) for x in (np.where(is_inner, p, 0.5), np.where(n > 0, n, 1.0), u))
        found = np.clip(_first_reaching(u, bdtrik(u, m, p), lambda k: _binomial_share(k, m, p)), 0.0, m)
        edge = np.where(probs > 0.5, n, 0.0)
        return np.where(is_inner, found, edge).astype(dtype)


def _poisson(u: Any, rate: Any) -> Any:
    """Numbers with a Poisson distribution, from uniform ones."""
    safe = np.where(rate > 0, rate, 1.0)
    return np.where(rate > 0, _first_reaching(u, np.maximum(pdtrik(u, safe), 0.0), lambda k: pdtr(k, safe)), 0.0)


class Poisson(Distribution):
    """The Poisson distribution of counts, with mean `rate`."""

    arg_constraints: ClassVar = {"rate": nonnegative}
    _support = nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    def _log_prob(self, x: Any, rate: Any) -> Any:
        return xlogy(x, rate) - rate - gammaln(x + 1)

    def _cdf(self, x: Any, rate: Any) -> Any:
        return pdtr(np.floor(x), rate)

    def _mean(self, rate: Any) -> Any:
        return rate

    def _mode(self, rate: Any) -> Any:
        return np.floor(rate)

    def _variance(self, rate: Any) -> Any:
        return rate

    def _draw(self, key: Any, shape: Shape, rate: Any) -> Any:
        u = open_unit(key, shape, np.dtype(np.float64))
        return _poisson(u, np.broadcast_to(stop_gradient(rate).astype(np.float64), shape)).astype(rate.dtype)


class NegativeBinomial(BinaryProbabilities):
    """The distribution of the number of successes, with probability `probs`, before `total_count` failures.

    Args:
        total_count: number of failures, not negative; it need not be whole.
        probs: the probability of success; or
        logits: its logarithm less that of the probability of failure.
        validate_args: False to leave parameters and values unchecked.
    """

    arg_constraints: ClassVar = {"total_count": positive, "probs": unit_interval, "logits": real}
    _support = nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_either(validate_args, probs, logits, total_count=total_count)

    def _log_prob(self, x: Any, n: Any, logits: Any) -> Any:
        choices = gammaln(n + x) - gammaln(x + 1) - gammaln(n)
        return choices + n * log_expit(-logits) + x * log_expit(logits)

    def _cdf(self, x: Any, n: Any, probs: Any, logits: Any) -> Any:
        return betaincc(np.floor(x) + 1, n, probs)

    def _mean(self, n: Any, probs: Any, logits: Any) -> Any:
        return n * np.exp(logits)

    def _mode(self, n: Any, probs: Any, logits: Any) -> Any:
        return np.maximum(np.floor((n - 1) * np.exp(logits)), 0.0)

    def _variance(self, n: Any, probs: Any, logits: Any) -> Any:
        return n * np.exp(logits) * (1 + np.exp(logits))

    def _draw(self, key: Any, shape: Shape, n: Any, probs: Any, logits: Any) -> Any:
        # A Poisson number, whose rate has a gamma distribution.
        keys, dtype = split(key), np.dtype(np.float64)
        n, odds = (np.broadcast_to(stop_gradient(x).astype(dtype), shape) for x in (n, np.exp(logits)))
        rate = gammaincinv(n, open_unit(keys[0], shape, dtype)) * odds
        return _poisson(open_unit(keys[1], shape, dtype), rate).astype(probs.dtype)
