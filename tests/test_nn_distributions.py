"""Distributions: figures of torch and SciPy, samples and their derivatives, and one meaning in all modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tables
from distribution_rows import PAIRS, ROWS, TRANSFORMS, figures, made
from scipy import integrate, optimize, stats

import ftrans as ft
from ftrans.nn import distributions as D
from ftrans.nn import random
from ftrans.testing import check_grads

FIGURES = figures()
KEY = random.key(7)
MANY = 20_000


def ours(text: str) -> Any:
    return made(text, D, np.array)


def close(found: Any, expected: Any, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=rtol, atol=atol)


# Torch's figures

# Where torch has no mode although there is one, and where its Bessel functions have six digits.
BETTER = {"FisherSnedecor": "mode", "Weibull": "mode", "Kumaraswamy": "mode"}


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_figures_of_torch(text: str, values: Any) -> None:
    d, expected = ours(text), FIGURES[text]
    assert [list(d.batch_shape), list(d.event_shape)] == expected["shapes"]
    for name, figure in expected.items():
        if name == "shapes" or figure is None or BETTER.get(text.partition("(")[0]) == name:
            continue
        if name in ("log_prob", "cdf"):
            close(getattr(d, name)(np.array(values)), figure)
        else:
            rtol = 1e-5 if "VonMises" in text else 1e-7
            close(d.entropy() if name == "entropy" else getattr(d, name), figure, rtol)


def single(x: Any) -> Any:
    array = np.array(x)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_figures_have_the_dtype_of_the_parameters(text: str, values: Any) -> None:
    d = made(text, D, single)
    for name, expected in FIGURES[text].items():
        if name == "shapes" or expected is None:
            continue
        found = getattr(d, name)
        found = found(single(values)) if name in ("log_prob", "cdf") else found() if callable(found) else found
        assert found.dtype == np.float32 or found.dtype.kind == "i", name


@pytest.mark.parametrize(
    "d",
    [D.ContinuousBernoulli([0.2, 0.5, 0.9]), D.GeneralizedPareto(0.0, [2.0, 1.0, 0.7], [0.3, -0.2, 0.0])],
    ids=repr,
)
def test_nothing_is_below_the_support(d: Any) -> None:
    d._validate_args = False
    close(d.cdf(-5.0), [0.0, 0.0, 0.0])
    close(d.cdf(1e9), [1.0, 1.0, 1.0], atol=1e-2)
    assert np.isnan(d.cdf(math.nan)).all()


def test_elements_above_the_diagonal_of_a_factor_do_not_count() -> None:
    slope = ft.grad(lambda factor: D.MultivariateNormal(np.zeros(2), scale_tril=factor).log_prob([0.3, 0.7]))
    assert slope(np.array([[1.5, 0.0], [0.5, 0.8]]))[0, 1] == 0


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergences_of_torch(p: str, q: str) -> None:
    close(D.kl_divergence(ours(p), ours(q)), FIGURES[f"{p} | {q}"])


@pytest.mark.parametrize(("text", "values"), TRANSFORMS)
def test_transforms_of_torch(text: str, values: Any) -> None:
    f, x = ours(text), np.array(values)
    y, slope = FIGURES[f"{text} of {values}"]
    close(f(x), y)
    close(f.log_abs_det_jacobian(x, f(x)), slope)
    close(f.inv(f(x)), x)
    assert f.forward_shape(x.shape) == np.shape(y)
    assert f.inverse_shape(np.shape(y)) == x.shape
    if "Cat" not in text and "Stack" not in text and f.domain.event_dim <= 1 and "of" not in text:
        first = x[0] if f.domain.event_dim < x.ndim and x.ndim > 1 else x
        assert np.all(f.codomain.check(f(first)))


# SciPy's, of what torch does not have

QUANTILES = [
    ("StudentT(3.5, 0.3, 2.0)", stats.t(3.5, 0.3, 2.0)),
    ("Gamma(2.5, 2.0)", stats.gamma(2.5, scale=0.5)),
    ("Chi2(3.0)", stats.chi2(3.0)),
    ("InverseGamma(2.5, 2.0)", stats.invgamma(2.5, scale=2.0)),
    ("FisherSnedecor(3.0, 5.0)", stats.f(3.0, 5.0)),
    ("Beta(2.0, 0.7)", stats.beta(2.0, 0.7)),
    ("LogNormal(0.3, 0.7)", stats.lognorm(0.7, scale=math.exp(0.3))),
    ("GeneralizedPareto(0.1, 2.0, -0.3)", stats.genpareto(-0.3, 0.1, 2.0)),
    ("GeneralizedPareto(0.1, 2.0, 1e-9)", stats.genpareto(0.0, 0.1, 2.0)),
    ("Weibull(2.0, 1.5)", stats.weibull_min(1.5, scale=2.0)),
    ("Pareto(0.1, 2.5)", stats.pareto(2.5, scale=0.1)),
    ("HalfCauchy(2.0)", stats.halfcauchy(scale=2.0)),
    ("Laplace(0.3, 2.0)", stats.laplace(0.3, 2.0)),
    ("Gumbel(0.3, 2.0)", stats.gumbel_r(0.3, 2.0)),
]
COUNTS = [
    ("Bernoulli(0.3)", stats.bernoulli(0.3)),
    ("Binomial(7, 0.3)", stats.binom(7, 0.3)),
    ("Geometric(0.3)", stats.geom(0.3, loc=-1)),
    ("NegativeBinomial(2.5, 0.3)", stats.nbinom(2.5, 0.7)),
    ("Poisson(3.2)", stats.poisson(3.2)),
]


@pytest.mark.parametrize(("text", "theirs"), QUANTILES)
def test_quantiles_of_scipy(text: str, theirs: Any) -> None:
    d, q = ours(text), np.array([0.001, 0.1, 0.5, 0.95])
    close(d.icdf(q), theirs.ppf(q))
    close(d.cdf(d.icdf(q)), q)
    close(d.entropy(), theirs.entropy(), 1e-6)
    drawn = d.sample((MANY,), rng=KEY)
    assert drawn.dtype == np.float32
    assert stats.kstest(drawn, theirs.cdf).pvalue > 0.01


@pytest.mark.parametrize(("text", "theirs"), COUNTS)
def test_counts_of_scipy(text: str, theirs: Any) -> None:
    d, k = ours(text), np.arange(2 if "Bernoulli" in text else 7)
    close(d.cdf(k), theirs.cdf(k))
    close(d.prob(k), theirs.pmf(k))
    drawn = d.sample((MANY,), rng=KEY)
    assert np.all(d.support.check(drawn))
    close([np.mean(drawn == i) for i in k], theirs.pmf(k), atol=0.012)


@pytest.mark.parametrize("rate", [0.0, 1e-3, 30.0, 1e6])
def test_poisson_numbers_of_all_sizes(rate: float) -> None:
    drawn = D.Poisson(np.full(2000, rate)).sample(rng=KEY)
    assert abs(drawn.mean() - rate) <= 4 * math.sqrt(rate / 2000)
    assert abs(drawn.var() - rate) <= 0.1 * rate + 0.003


def test_binomial_numbers_at_the_edges() -> None:
    d = D.Binomial(np.array([0, 5, 5, 1000]), np.array([0.3, 0.0, 1.0, 0.5]))
    drawn = d.sample((500,), rng=KEY)
    assert np.all(drawn[:, :3] == [0, 0, 5])
    assert abs(drawn[:, 3].mean() - 500) < 5


# Samples


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_samples(text: str, values: Any) -> None:
    d = ours(text)
    drawn = d.sample((4000,), rng=KEY)
    assert drawn.shape == (4000, *d.batch_shape, *d.event_shape)
    assert np.all(d.support.check(drawn))
    assert np.all(np.isfinite(d.log_prob(drawn)))
    np.testing.assert_array_equal(drawn, d.sample((4000,), rng=KEY))
    for name in ("mean", "variance"):
        try:
            figure = np.asarray(getattr(d, name))
        except NotImplementedError:
            continue
        found = drawn.mean(0) if name == "mean" else drawn.var(0)
        heavy = [x in text for x in ("Student", "Pareto", "InverseGamma", "Fisher")]
        is_other = "VonMises" in text or ("Categorical(" in text and "OneHot" not in text and "Mixture" not in text)
        if np.all(np.isfinite(figure)) and not any(heavy) and not is_other:
            scale = np.sqrt(np.abs(np.asarray(d.variance)))
            error = np.abs(found - figure) / (scale if name == "mean" else scale**2 + 1e-12)
            assert np.all(error < (0.08 if name == "mean" else 0.25)), name


def test_samples_of_lkj_have_the_stated_density() -> None:
    # Of 2 x 2 correlation matrices, the correlation r has density proportional to (1 - r**2)**(concentration - 1).
    r = D.LKJCholesky(2, 1.7).sample((MANY,), rng=KEY)[:, 1, 0]
    assert stats.kstest((r + 1) / 2, stats.beta(1.7, 1.7).cdf).pvalue > 0.01
    r = D.LKJCholesky(3, 1.7).sample((MANY,), rng=KEY)[:, 1, 0]
    assert stats.kstest((r + 1) / 2, stats.beta(2.2, 2.2).cdf).pvalue > 0.01


def test_von_mises_numbers() -> None:
    for concentration in (1e-6, 0.5, 20.0, 1e4):
        d = D.VonMises(0.0, concentration)
        drawn = np.float64(d.sample((MANY,), rng=KEY))
        assert stats.kstest(drawn, lambda x, d=d: d.cdf(x)).pvalue > 0.01
        close(d.cdf(np.array([-3.0, -0.1, 0.01])), stats.vonmises(concentration).cdf([-3.0, -0.1, 0.01]), 1e-5, 1e-9)


def test_small_concentrations() -> None:
    tiny = np.full(200, 1e-3, np.float32)
    for d in (D.Gamma(tiny, 1.0), D.Beta(tiny, tiny), D.InverseGamma(tiny, 1.0), D.Dirichlet(np.full((50, 3), 1e-3))):
        drawn = d.sample(rng=KEY)
        assert np.all(np.isfinite(d.log_prob(drawn)))
    assert (D.Dirichlet(np.full((500, 3), 1e-3)).sample(rng=KEY).max(-1) > 0.99).mean() > 0.95


def test_impossible_classes_are_never_drawn() -> None:
    for d in (D.Categorical([0.5, 0.0, 0.5]), D.Categorical(logits=np.array([0.0, -np.inf, 0.0]))):
        assert set(d.sample((1000,), rng=KEY).tolist()) == {0, 2}
        close(d.entropy(), math.log(2))


# Derivatives

RANDOM = [text for text, _ in ROWS if ours(text).has_rsample and "StraightThrough" not in text]


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_derivatives_of_densities(text: str, values: Any) -> None:
    check_grads(lambda d: d.log_prob(np.array(values)), ours(text), order=2 if tables.whole else 1)


@pytest.mark.parametrize("text", [text for text in RANDOM if "VonMises" not in text])
def test_derivatives_of_samples(text: str) -> None:
    """Numbers come by inverse distribution functions, so differences with one key have the implicit derivatives."""
    check_grads(lambda d: d.rsample((2,), rng=KEY), ours(text), order=2 if tables.whole else 1)


@pytest.mark.parametrize("text", ["VonMises(0.3, 2.0)", "VonMises(-1.0, 50.0)", "Gamma(0.7, 2.0)", "Beta(0.7, 2.0)"])
def test_derivatives_keep_the_distribution_function(text: str) -> None:
    d = ours(text)

    def numbers(x: Any, y: Any) -> Any:
        return type(d)(x, y).rsample((5,), rng=KEY)

    given = tuple(np.float64(x) for x in d._given().values())
    drawn = numbers(*given)
    for i in range(2):
        slope = ft.jacobian(numbers, argnums=i)(*given)
        of_cdf = ft.jacobian(lambda *p: type(d)(*p).cdf(drawn), argnums=i)(*given)
        close(slope, -of_cdf / type(d)(*given).prob(drawn), 1e-6)


def test_second_derivatives_of_von_mises() -> None:
    def turned(concentration: Any) -> Any:
        return D.VonMises(0.0, concentration).rsample(rng=KEY)

    # The sample at other concentrations with the same share: by the inverse of the distribution function.
    at = 2.0
    share = D.VonMises(0.0, at).cdf(float(turned(np.float64(at))))
    inverse = [optimize.brentq(lambda x, k=k: D.VonMises(0.0, k).cdf(x) - share, -3.1, 3.1, xtol=1e-15) for k in
               (at - 1e-3, at, at + 1e-3)]  # fmt: skip
    close(ft.grad(ft.grad(turned))(np.float64(at)), (inverse[0] - 2 * inverse[1] + inverse[2]) / 1e-6, 1e-3)


def test_straight_through() -> None:
    d = D.OneHotCategoricalStraightThrough(logits=np.array([0.2, -1.0, 0.5]))
    weights = np.array([1.0, 2.0, 4.0])
    slope = ft.grad(lambda d: (d.rsample(rng=KEY) * weights).sum())(d)
    expected = ft.grad(lambda d: (d.probs * weights).sum())(d)
    close(slope.logits, expected.logits)


def test_samples_without_derivatives() -> None:
    assert ft.grad(lambda m: D.Normal(m, 1.0).sample(rng=KEY) * 1.0)(0.5) == 0


# Divergences


INTEGRATED = [
    ("Laplace(0.3, 1.1)", "Normal(0.7, 1.3)"),
    ("Laplace(0.3, 0.7)", "Gumbel(0.7, 1.3)"),
    ("StudentT(5.0, 0.3, 0.7)", "Normal(0.7, 1.3)"),
    ("Weibull(1.2, 1.7)", "Weibull(0.8, 1.2)"),
    ("Weibull(1.2, 1.7)", "Gamma(0.8, 1.2)"),
    ("InverseGamma(2.5, 1.7)", "InverseGamma(3.0, 1.2)"),
    ("InverseGamma(3.5, 1.7)", "Gamma(3.0, 1.2)"),
    ("LogNormal(0.3, 0.4)", "Gamma(3.0, 1.2)"),
    ("LogNormal(0.3, 0.4)", "Exponential(1.2)"),
    ("HalfNormal(0.7)", "Gamma(1.3, 1.2)"),
    ("HalfNormal(0.7)", "Exponential(1.2)"),
    ("Gamma(1.3, 1.2)", "HalfNormal(0.7)"),
    ("HalfCauchy(0.7)", "HalfCauchy(1.2)"),
    ("Kumaraswamy(1.3, 1.2)", "Gamma(1.5, 1.2)"),
    ("Kumaraswamy(1.3, 1.2)", "ContinuousBernoulli(0.7)"),
    ("Uniform(0.2, 0.9)", "HalfNormal(0.7)"),
    ("FisherSnedecor(3.0, 9.0)", "Exponential(1.2)"),
]


@pytest.mark.parametrize(("p", "q"), INTEGRATED)
def test_divergences_by_integration(p: str, q: str) -> None:
    first, second = ours(p), ours(q)
    # Over the shares u of values below, by the rule of Takahasi and Mori (tanh-sinh), which takes infinite ends.
    t = np.linspace(-3.4, 3.4, 4001)
    u = np.clip(0.5 + 0.5 * np.tanh(0.5 * math.pi * np.sinh(t)), 1e-16, 1 - 1.2e-16)
    weights = 0.25 * math.pi * np.cosh(t) / np.cosh(0.5 * math.pi * np.sinh(t)) ** 2 * (t[1] - t[0])
    x = first.icdf(u)
    close(D.kl_divergence(first, second), weights @ (first.log_prob(x) - second.log_prob(x)), 1e-5)


def test_divergence_of_von_mises_distributions() -> None:
    p, q = D.VonMises(0.3, 2.0), D.VonMises(1.0, 1.2)
    x = np.linspace(-math.pi, math.pi, 100, endpoint=False)
    expected = np.mean(p.prob(x) * (p.log_prob(x) - q.log_prob(x))) * 2 * math.pi
    close(D.kl_divergence(p, q), expected)


def test_divergence_of_wishart_distributions() -> None:
    p, q = (ours(f"Wishart(a({df}), a([[2.0, {c}], [{c}, 1.0]]))") for df, c in ((4.5, 0.3), (5.5, -0.5)))
    x = p.sample((MANY,), rng=KEY)
    close(D.kl_divergence(p, q), (p.log_prob(x) - q.log_prob(x)).mean(), 0.03)


def test_divergences_follow_parameters() -> None:
    p, q = D.Gamma(np.array([2.0, 3.0]), 1.3), D.Gamma(2.5, np.array([0.7, 0.9]))
    check_grads(D.kl_divergence, p, q, order=1)
    check_grads(D.kl_divergence, D.Normal(0.3, 1.0), D.Normal(0.0, 2.0), order=1)


# Transforms

CONSTRAINTS = [
    D.constraints.positive, D.constraints.unit_interval, D.constraints.interval(-2.0, 3.0), D.constraints.simplex,
    D.constraints.less_than(-1.0), D.constraints.greater_than(2.0), D.constraints.real, D.constraints.corr_cholesky,
    D.constraints.independent(D.constraints.positive, 1), D.constraints.lower_cholesky,
    D.constraints.positive_definite,
]  # fmt: skip


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_every_number_is_transformed_into_the_set(constraint: Any) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 3))
    for choose in (D.transform_to, D.biject_to):
        try:
            f = choose(constraint)
        except NotImplementedError:
            assert choose is D.biject_to
            continue
        assert np.all(constraint.check(f(x)))
        if choose is D.biject_to:
            close(f.inv(f(x)), x)


# Those that keep the number of elements.
SQUARE = [row for row in TRANSFORMS if "Corr" not in row[0] and "Stick" not in row[0]]


@pytest.mark.parametrize(("text", "values"), SQUARE)
def test_slopes_of_transforms(text: str, values: Any) -> None:
    f, x = ours(text), np.array(values)

    def flat(v: Any) -> Any:
        return f(np.reshape(v, x.shape)).ravel()

    jacobian = ft.jacobian(flat)(x.ravel())
    close(np.sum(f.log_abs_det_jacobian(x, f(x))), np.linalg.slogdet(jacobian)[1])


def test_transformed_densities_integrate_to_one() -> None:
    d = D.TransformedDistribution(D.Normal(0.3, 0.7), [D.AffineTransform(1.0, -2.0), D.SigmoidTransform()])
    close(integrate.quad(lambda x: float(d.prob(x)), 1e-9, 1 - 1e-9)[0], 1.0, 1e-6)
    q = np.array([0.1, 0.5, 0.9])
    close(d.cdf(d.icdf(q)), q)
    close(d.icdf(q), np.sort(d.icdf(q)))
