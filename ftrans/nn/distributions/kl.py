"""The divergence of Kullback and Leibler, from one distribution to another.

Of one family there are formulas, in a table by classes; for others it is the cross entropy less the entropy.  The cross
entropy follows from the second family: for a normal distribution, say, from mean and variance of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...scipy.special import betaln, gammaln, i0e, i1e, psi, softplus
from ..functional.arguments import shape_of
from . import categorical, discrete, half_line, interval, location_scale, matrices, vectors
from .compound import Independent, TransformedDistribution
from .constraints import Interval
from .distribution import Distribution
from .expectations import cross_entropy
from .numbers import operands
from .transform_parts import sum_of_last
from .vectors import log_diagonal, times_vectors

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]
_formulas: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Register a function of two distributions as their `kl_divergence`; for subclasses, too.

    Example:
        >>> from ftrans.nn import distributions as D
        >>> class Fair(D.Bernoulli):
        ...     pass
        >>> @D.register_kl(Fair, Fair)
        ... def of_fair(p, q):
        ...     return 0.0
        >>> D.kl_divergence(Fair(0.5), Fair(0.5))
        0.0
    """
    for given in (type_p, type_q):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"register_kl takes two classes of distributions, not {given!r}{at_line(user_line())}")

    def enter(formula: Formula) -> Formula:
        _formulas[type_p, type_q] = formula
        return formula

    return enter


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The divergence from `p` to `q`, the mean of `p.log_prob(x) - q.log_prob(x)` over values of `p`.

    Args:
        p: a distribution.
        q: a distribution whose batch broadcasts with that of `p`.

    Returns:
        An array of the shape of the batch; infinite where `p` has values that `q` has not.

    Raises:
        NotImplementedError: there is no closed form for the two families.

    Example:
        >>> from ftrans.nn import distributions as D
        >>> float(D.kl_divergence(D.Normal(1.0, 1.0), D.Normal(0.0, 1.0)))
        0.5
    """
    fitting = [
        (type(p).__mro__.index(a) + type(q).__mro__.index(b), formula)
        for (a, b), formula in _formulas.items()
        if isinstance(p, a) and isinstance(q, b)
    ]
    if fitting:
        return min(fitting, key=lambda entry: entry[0])[1](p, q)
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    if _is_beyond(p.support, q.support):
        return np.full(shape, math.inf, np.float32)
    crossed = cross_entropy(p, q)
    if crossed is not None:
        return np.broadcast_to(np.where(np.isinf(crossed), math.inf, crossed - p.entropy()), shape)
    raise NotImplementedError(
        f"no closed form of the divergence from {type(p).__name__} to {type(q).__name__} is known: enter one with "
        f"register_kl, or estimate it, x = p.rsample((1000,)); (p.log_prob(x) - q.log_prob(x)).mean(0)"
        + at_line(user_line())
    )


def _is_beyond(inner: Any, outer: Any) -> bool:
    """Whether a set of numbers between plain bounds is, in part, outside of another one."""
    if not (isinstance(inner, Interval) and isinstance(outer, Interval)) or inner.is_discrete is not outer.is_discrete:
        return False
    bounds = [inner.lower, inner.upper, outer.lower, outer.upper]
    return all(type(b) in (float, int) for b in bounds) and (bounds[0] < bounds[2] or bounds[1] > bounds[3])


# Of one family: formulas of both distributions' parameters


def _of_parameters(cls: type[Distribution]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a formula of the parameters of two distributions of one family."""

    def enter(formula: Callable[..., Any]) -> Callable[..., Any]:
        def divergence(p: Any, q: Any) -> Any:
            of_p, of_q = p._parameters(), q._parameters()
            found = formula(*operands([*of_p, *of_q]))
            shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
            return found if shape_of(found) == shape else np.broadcast_to(found, shape)

        _formulas[cls, cls] = divergence
        return formula

    return enter


@_of_parameters(location_scale.LogNormal)
@_of_parameters(location_scale.Normal)
def _normal(m: Any, s: Any, n: Any, t: Any) -> Any:
    ratio = (s / t) ** 2
    return 0.5 * (ratio + ((m - n) / t) ** 2 - 1 - np.log(ratio))


@_of_parameters(location_scale.HalfNormal)
def _half_normal(s: Any, t: Any) -> Any:
    return _normal(0.0, s, 0.0, t)


@_of_parameters(location_scale.Laplace)
def _laplace(m: Any, s: Any, n: Any, t: Any) -> Any:
    gap = abs(m - n)
    return np.log(t / s) + gap / t + s / t * np.exp(-gap / s) - 1


@_of_parameters(location_scale.Cauchy)
def _cauchy(m: Any, s: Any, n: Any, t: Any) -> Any:
    # Chyzak and Nielsen, "A closed-form formula for the divergence between Cauchy distributions", 2019.
    return np.log(((s + t) ** 2 + (m - n) ** 2) / (4 * s * t))


@_of_parameters(location_scale.HalfCauchy)
def _half_cauchy(s: Any, t: Any) -> Any:
    # With r = t / s: the integral of log(1 + (x / r)**2) over half a Cauchy distribution is 2 log(1 + 1 / r).
    return np.log((s + t) ** 2 / (4 * s * t))


@_of_parameters(location_scale.Gumbel)
def _gumbel(m: Any, s: Any, n: Any, t: Any) -> Any:
    ratio = s / t
    moved = np.exp((n - m) / t + gammaln(1 + ratio))
    return np.log(t / s) + np.euler_gamma * (ratio - 1) + moved - 1 + (m - n) / t


@_of_parameters(location_scale.Uniform)
def _uniform(low: Any, high: Any, least: Any, most: Any) -> Any:
    inside = (least <= low) & (high <= most)
    return np.where(inside, np.log((most - least) / (high - low)), math.inf)


@_of_parameters(half_line.Exponential)
def _exponential(rate: Any, other: Any) -> Any:
    return other / rate - 1 - np.log(other / rate)


@_of_parameters(half_line.InverseGamma)
@_of_parameters(half_line.Gamma)
def _gamma(a: Any, rate: Any, b: Any, other: Any) -> Any:
    return (a - b) * psi(a) - gammaln(a) + gammaln(b) + b * np.log(rate / other) + a * (other / rate - 1)


@_of_parameters(half_line.Pareto)
def _pareto(scale: Any, a: Any, least: Any, b: Any) -> Any:
    ratio = scale / least
    found = b * np.log(np.where(ratio >= 1, ratio, 1.0)) + np.log(a / b) + b / a - 1
    return np.where(ratio >= 1, found, math.inf)


@_of_parameters(half_line.Weibull)
def _weibull(s: Any, k: Any, t: Any, n: Any) -> Any:
    # Bauckhage, "Computing the Kullback-Leibler divergence between two Weibull distributions", 2013.
    moved = np.exp(n * np.log(s / t) + gammaln(n / k + 1))
    return np.log(k / n) + n * np.log(t / s) - np.euler_gamma * (k - n) / k + moved - 1


@_of_parameters(interval.Beta)
def _beta(a: Any, b: Any, c: Any, d: Any) -> Any:
    total = a + b - c - d
    return betaln(c, d) - betaln(a, b) + (a - c) * psi(a) + (b - d) * psi(b) - total * psi(a + b)


@_of_parameters(interval.ContinuousBernoulli)
def _continuous_bernoulli(p: Any, x: Any, q: Any, y: Any) -> Any:
    return (x - y) * (interval.mean_of(x) - 0.5) - interval.log_norm(x) + interval.log_norm(y)


@_of_parameters(interval.VonMises)
def _von_mises(m: Any, a: Any, n: Any, b: Any) -> Any:
    mean = i1e(a) / i0e(a)
    return a * (mean - 1) - b * (mean * np.cos(m - n) - 1) + np.log(i0e(b) / i0e(a))


@_of_parameters(discrete.Bernoulli)
def _bernoulli(p: Any, x: Any, q: Any, y: Any) -> Any:
    return softplus(y) - softplus(x) + p * (x - y)


@_of_parameters(discrete.Geometric)
def _geometric(p: Any, x: Any, q: Any, y: Any) -> Any:
    return _bernoulli(p, x, q, y) / p


@_of_parameters(discrete.Binomial)
def _binomial(n: Any, p: Any, x: Any, m: Any, q: Any, y: Any) -> Any:
    # With fewer trials than the other has it is a sum without closed form.
    return np.where(n > m, math.inf, np.where(n == m, n * _bernoulli(p, x, q, y), math.nan))


@_of_parameters(discrete.Poisson)
def _poisson(rate: Any, other: Any) -> Any:
    has_some = rate > 0
    safe = np.where(has_some, rate, 1.0)
    return np.where(has_some, rate * np.log(safe / other), 0.0) - (rate - other)


@_of_parameters(categorical.OneHotCategorical)
@_of_parameters(categorical.Categorical)
def _categorical(p: Any, x: Any, q: Any, y: Any) -> Any:
    is_possible = p > 0
    gap = np.where(is_possible, x, 0.0) - np.where(is_possible, y, 0.0)
    return np.sum(np.where(is_possible, p * gap, 0.0), axis=-1)


@_of_parameters(vectors.Dirichlet)
def _dirichlet(a: Any, b: Any) -> Any:
    total, other = np.sum(a, axis=-1), np.sum(b, axis=-1)
    of_each = gammaln(b) - gammaln(a) + (a - b) * (psi(a) - psi(total)[..., None])
    return gammaln(total) - gammaln(other) + np.sum(of_each, axis=-1)


def _normal_vectors(gap: Any, factor: Any, other: Any) -> Any:
    """Of normal vectors, from the gap between the means and the Cholesky factors of the covariances."""
    inverse = np.linalg.inv(other)
    square = np.sum(np.matmul(inverse, factor) ** 2, axis=(-2, -1)) + np.sum(times_vectors(inverse, gap) ** 2, axis=-1)
    return log_diagonal(other) - log_diagonal(factor) + 0.5 * (square - factor.shape[-1])


@register_kl(vectors.LowRankMultivariateNormal, vectors.LowRankMultivariateNormal)
@register_kl(vectors.LowRankMultivariateNormal, vectors.MultivariateNormal)
@register_kl(vectors.MultivariateNormal, vectors.LowRankMultivariateNormal)
@register_kl(vectors.MultivariateNormal, vectors.MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    m, factor, n, other = operands([p.loc, p.scale_tril, q.loc, q.scale_tril])
    return _normal_vectors(m - n, factor, other)


@_of_parameters(matrices.Wishart)
def _wishart(a: Any, factor: Any, b: Any, other: Any) -> Any:
    n = factor.shape[-1]
    trace = np.sum(np.matmul(np.linalg.inv(other), factor) ** 2, axis=(-2, -1))
    norms = matrices.multigammaln(0.5 * b, n) - matrices.multigammaln(0.5 * a, n)
    determinants = b * (log_diagonal(other) - log_diagonal(factor))
    return determinants + 0.5 * a * (trace - n) + norms + 0.5 * (a - b) * matrices.multipsi(0.5 * a, n)


# Of distributions that are made of others


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"the divergence between Independent distributions takes as many axes of both, not "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}{at_line(user_line())}"
        )
    return sum_of_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if not _is_same(p.transforms, q.transforms):
        raise NotImplementedError(
            "the divergence between transformed distributions is known if the same transforms are applied to both, the "
            f"same objects, not {p.transforms!r} and {q.transforms!r}{at_line(user_line())}"
        )
    divergence = kl_divergence(p.base_dist, q.base_dist)
    return sum_of_last(divergence, len(shape_of(divergence)) - len(p.batch_shape))


def _is_same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(
        a is b or (type(a) is type(b) and not vars(a)) for a, b in zip(first, second, strict=True)
    )
