"""Distributions in all modes alike: compiled, mapped, define-by-run, on JAX arrays and in modules; and bad input."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tables
from distribution_rows import ROWS, made

import ftrans as ft
from ftrans import autograd, nn
from ftrans.base import tree
from ftrans.nn import distributions as D
from ftrans.nn import random

KEY = random.key(7)
X = np.ones(2, np.float32)


def ours(text: str, array: Callable[[Any], Any] = np.array) -> Any:
    return made(text, D, array)


def close(found: Any, expected: Any, rtol: float = 1e-7) -> None:
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=rtol, atol=1e-9)


# A family of each file, and what is made of others.
FEW = ("StudentT", "Gamma", "VonMises", "Binomial", "Categorical(logits", "Dirichlet", "Wishart", "MixtureSameFamily")
CHOSEN = ROWS if tables.whole else [next(row for row in ROWS if row[0].startswith(name)) for name in FEW]


def outcomes(ds: Any, values: Any, key: Any) -> Any:
    """Densities, means and samples."""
    return [(d.log_prob(x), d.sample((2,), rng=key)) for d, x in zip(ds, values, strict=True)]


def test_compiled() -> None:
    given = ([ours(text) for text, _ in CHOSEN], [np.array(x) for _, x in CHOSEN], KEY)
    expected = outcomes(*given)
    for found, plain in zip(ft.jit(outcomes)(*given), expected, strict=True):
        for x, y in zip(found, plain, strict=True):
            close(x, y, 1e-6)


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_mapped(text: str, values: Any) -> None:
    d, x, keys = ours(text), np.array(values), random.split(KEY)
    leaves, structure = tree.flatten(d)
    two = tree.unflatten(structure, [np.stack([np.asarray(leaf, float)] * 2) for leaf in leaves])
    found = ft.vmap(lambda d, key: (d.log_prob(x), d.sample((2,), rng=key)))(two, keys)
    close(found[0], np.stack([d.log_prob(x)] * 2))
    close(found[1], np.stack([d.sample((2,), rng=key) for key in keys]))


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_tensors(text: str, values: Any) -> None:
    made_of: list[Any] = []

    def tensor(x: Any) -> Any:
        made_of.append(autograd.tensor(np.array(x, float), requires_grad=True))
        return made_of[-1]

    d, x, plain = ours(text, tensor), np.array(values), ours(text)
    density = d.log_prob(x)
    density.sum().backward()
    close(density.detach(), plain.log_prob(x))

    def from_arrays(arrays: list[Any]) -> Any:
        rest = iter(arrays)
        return ours(text, lambda _: next(rest)).log_prob(x).sum()

    for t, slope in zip(made_of, ft.grad(from_arrays)([t.detach().numpy() for t in made_of]), strict=True):
        close(t.grad, slope)
    drawn = d.sample((2,), rng=KEY)
    assert not drawn.requires_grad
    close(drawn, plain.sample((2,), rng=KEY))
    if d.has_rsample:
        assert d.rsample(rng=KEY).requires_grad


def test_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    d = D.Normal(jax.numpy.zeros(2), jax.numpy.ones(2))
    assert all(isinstance(x, jax.Array) for x in (d.log_prob(X), d.sample(rng=KEY), d.mean, d.entropy()))
    slope = jax.grad(lambda a: D.Gamma(a, 1.0).rsample(rng=KEY))(1.5)
    close(slope, ft.grad(lambda a: D.Gamma(a, 1.0).rsample(rng=KEY))(np.float32(1.5)), 1e-5)
    with pytest.raises(TypeError, match="needs rng"):
        jax.grad(lambda a: D.Gamma(a, 1.0).rsample())(1.5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtypes(dtype: Any) -> None:
    wanted = np.float64 if dtype == np.float64 else np.float32
    for d in (D.Normal(np.zeros(2, dtype), 1.0), D.Gamma(np.ones(2, dtype), 1), D.Bernoulli(np.full(2, 0.3, dtype))):
        assert d.sample(rng=KEY).dtype == d.log_prob(np.ones(2, dtype)).dtype == d.mean.dtype == wanted
    assert D.Categorical(np.ones(3, dtype)).sample(rng=KEY).dtype == np.int64
    assert D.Normal(0.0, 1.0).sample(rng=KEY).dtype == np.float32
    assert D.Normal(0.0, 0.1).log_prob(X).dtype == np.float32


# Modules


class Model(nn.Module):
    """A density with parameters, which a distribution holds from the start, and one that is made in each call."""

    def __init__(self) -> None:
        self.loc = nn.Parameter(np.zeros(2, np.float32))
        self.log_scale = nn.Parameter(np.zeros(2, np.float32))
        self.prior = D.Normal(self.loc, 1.0)
        self.rng = nn.RngState(3)

    def forward(self, x: Any) -> Any:
        posterior = D.Normal(self.loc, np.exp(self.log_scale))
        z = posterior.rsample((3,), rng=self.rng)
        return -self.prior.log_prob(x).sum() - z.sum()


def test_a_distribution_follows_parameters() -> None:
    model = Model()
    step = nn.jit(nn.value_and_grad(lambda model, x: model(x)))
    for place in (0.0, 2.0):
        model.loc.value = np.full(2, place, np.float32)
        model.rng.value = nn.RngState(3).value
        value, slopes = step(model, X)
        model.rng.value = nn.RngState(3).value
        plain, plain_slopes = nn.value_and_grad(lambda model, x: model(x))(model, X)
        close(value, plain, 1e-4)
        close(slopes["loc"], place - 1.0 - 3.0, 1e-5)
        close(slopes["log_scale"], plain_slopes["log_scale"], 1e-4)
    model.rng.value = nn.RngState(3).value
    model(autograd.tensor(X)).backward()
    close(model.loc.grad, slopes["loc"], 1e-5)
    close(model.log_scale.grad, slopes["log_scale"], 1e-4)


def test_copies_of_models() -> None:
    for model in (copy.deepcopy(Model()), pickle.loads(pickle.dumps(Model()))):
        assert model.prior.loc is model.loc


def test_distributions_as_results() -> None:
    @nn.jit
    def posterior(model: Model) -> Any:
        return D.Independent(D.Normal(model.loc, np.exp(model.log_scale)), 1)

    d = posterior(Model())
    assert type(d) is D.Independent
    assert d.event_shape == (2,)
    close(d.log_prob(X), -1.837877 - 1.0, 1e-6)


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_copies(text: str, values: Any) -> None:
    d, x = ours(text), np.array(values)
    for other in (copy.deepcopy(d), pickle.loads(pickle.dumps(d)), d.expand(d.batch_shape)):
        np.testing.assert_array_equal(other.log_prob(x), d.log_prob(x))


@pytest.mark.parametrize(("text", "values"), ROWS)
def test_expanded(text: str, values: Any) -> None:
    d = ours(text)
    large = d.expand((4, *d.batch_shape))
    assert (large.batch_shape, large.event_shape) == ((4, *d.batch_shape), d.event_shape)
    x = d.sample(rng=KEY)
    close(large.log_prob(x), np.stack([d.log_prob(x)] * 4))
    assert large.sample((3,), rng=KEY).shape == (3, 4, *d.batch_shape, *d.event_shape)


def test_seeds() -> None:
    nn.manual_seed(0)
    first, second = D.Normal(0.0, 1.0).sample((3,)), D.Normal(0.0, 1.0).sample((3,))
    nn.manual_seed(0)
    np.testing.assert_array_equal(D.Normal(0.0, 1.0).sample((3,)), first)
    assert np.all(first != second)


def test_all_values() -> None:
    assert D.Bernoulli(np.array([0.2, 0.7])).enumerate_support().shape == (2, 2)
    assert D.Bernoulli(np.array([0.2, 0.7])).enumerate_support(expand=False).shape == (2, 1)
    for d in (D.Categorical([0.2, 0.3, 0.5]), D.Binomial(3, 0.3), D.OneHotCategorical([0.2, 0.8])):
        close(d.prob(d.enumerate_support()).sum(), 1.0)


def test_mixtures_differentiate_through_densities() -> None:
    def density(weights: Any, places: Any) -> Any:
        return D.MixtureSameFamily(D.Categorical(logits=weights), D.Normal(places, 0.5)).log_prob(0.3)

    slopes = ft.grad(density, argnums=(0, 1))(np.array([0.1, 0.2]), np.array([-1.0, 1.0]))
    step = 1e-6
    at = np.array([0.1 + step, 0.2]), np.array([0.1 - step, 0.2])
    close(slopes[0][0], (density(at[0], np.array([-1.0, 1.0])) - density(at[1], np.array([-1.0, 1.0]))) / 2e-6, 1e-6)


class Triangle(D.Distribution):
    """The sum of two uniform numbers, written as for torch."""

    def __init__(self, width: Any, validate_args: Any = None) -> None:
        self.width = width
        super().__init__(np.shape(width), validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        return np.log(1 - abs(value / self.width - 1)) - np.log(self.width)

    def rsample(self, sample_shape: Any = (), rng: Any = None) -> Any:
        u = D.Uniform(0.0, np.ones(self.batch_shape)).rsample((2, *sample_shape), rng)
        return u.sum(axis=0) * self.width


class Doubling(D.Transform):
    """As for torch."""

    domain = codomain = D.constraints.real
    bijective = True

    def _call(self, x: Any) -> Any:
        return 2 * x

    def _inverse(self, y: Any) -> Any:
        return y / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return np.full_like(x, np.log(2))


def test_families_and_transforms_of_ones_own() -> None:
    d = D.Independent(Triangle(np.array([0.5, 2.0])), 1)
    assert (d.batch_shape, d.event_shape) == ((), (2,))
    close(d.log_prob(np.array([0.5, 1.0])), np.log(2.0) + np.log(0.25))
    slope = ft.jit(ft.grad(lambda w: Triangle(w).rsample(rng=KEY).sum()))(np.array([0.5, 2.0]))
    close(slope, Triangle(np.ones(2)).rsample(rng=KEY))
    assert type(ft.jit(lambda d: d)(Triangle(np.ones(2)))) is Triangle
    twice = D.TransformedDistribution(D.Normal(0.0, 1.0), [Doubling(), Doubling()])
    close(twice.log_prob(0.7), D.Normal(0.0, 4.0).log_prob(0.7))
    close(Doubling().inv.log_abs_det_jacobian(1.0, 0.5), -np.log(2))


# Bad input

MIXTURE = "MixtureSameFamily(Categorical(a([0.3, 0.7])), Normal(a([0.3, -1.0]), 1.0))"
WRONG: list[tuple[str, type[Exception], str]] = [
    ("Normal(0.0, -1.0)", ValueError, "scale of Normal must be > 0.0, but it is -1.0"),
    ("Normal(a([0.0, 1.0]), a([1.0, -1.0]))", ValueError, r"but scale\[1\] is -1.0; validate_args=False"),
    ("Normal(np.nan, 1.0)", ValueError, "loc of Normal must be real"),
    ("Normal(a([0.0, 0.0]), a([1.0, 1.0, 1.0]))", ValueError, r"broadcast, not loc \(2,\), scale \(3,\)"),
    ("Normal('zero', 1.0)", TypeError, "loc of Normal must be a number or an array"),
    ("Normal(None, 1.0)", TypeError, "real numbers, not None"),
    ("Uniform(1.0, 0.0)", ValueError, "low of Uniform must be less than high"),
    ("Bernoulli()", ValueError, "either probs or logits, and was given neither"),
    ("Bernoulli(0.5, 0.0)", ValueError, "either probs or logits, and was given both"),
    ("Bernoulli(1.5)", ValueError, "probs of Bernoulli must be >= 0.0 and <= 1.0"),
    ("Categorical(a([0.5, -0.1]))", ValueError, "weights that are not negative"),
    ("Categorical(0.5)", ValueError, "probs of Categorical must have at least 1 axes"),
    ("Multinomial(a([3, 4]), a([0.5, 0.5]))", TypeError, "total_count of Multinomial must be one integer"),
    ("MultivariateNormal(a([0.0, 0.0]))", ValueError, "takes one of covariance_matrix, precision_matrix and"),
    ("MultivariateNormal(a([0.0, 0.0]), a([[1.0, 2.0], [2.0, 1.0]]))", ValueError, "positive eigenvalues"),
    ("MultivariateNormal(a([0.0, 0.0]), scale_tril=a([[1.0, 2.0], [0.0, 1.0]]))", ValueError, "lower triangular"),
    ("Wishart(0.5, a([[1.0, 0.0], [0.0, 1.0]]))", ValueError, "df of Wishart must be more than 1"),
    ("LKJCholesky(1)", ValueError, "dim of LKJCholesky must be an integer of 2 or more"),
    ("Independent(Normal(0.0, 1.0), 1)", ValueError, "can not take 1 axes of a batch"),
    ("Independent(3.0, 1)", TypeError, "base_distribution of Independent must be a distribution"),
    ("MixtureSameFamily(Categorical(a([0.5, 0.5])), Normal(0.0, 1.0))", ValueError, "batch ends with an axis of that"),
    ("TransformedDistribution(Normal(0.0, 1.0), [np.exp])", TypeError, "transforms must be transforms"),
    ("TransformedDistribution(Normal(0.0, 1.0), StickBreakingTransform())", ValueError, "with at least 1 axes"),
    ("ReshapeTransform((2, 2), (3,))", ValueError, "different numbers of elements"),
    ("CorrCholeskyTransform()(a([1.0, 2.0]))", ValueError, r"n \(n - 1\) / 2 numbers"),
    ("SoftmaxTransform().log_abs_det_jacobian(a([1.0]), a([1.0]))", NotImplementedError, "no bijection"),
    ("biject_to(constraints.boolean)", NotImplementedError, "there is no bijection from real numbers"),
    ("Gamma(1.0, 1.0).log_prob(-1.0)", ValueError, "value of Gamma.log_prob must be >= 0.0, but it is -1.0"),
    ("Normal(0.0, 1.0).log_prob(a([1.0, np.nan]))", ValueError, r"value\[1\] is nan"),
    ("Categorical(a([0.5, 0.5])).log_prob(2)", ValueError, "must be whole numbers >= 0 and <= 1, but it is 2"),
    ("Dirichlet(a([1.0, 1.0])).log_prob(a([0.5, 0.6]))", ValueError, "nonnegative and with sum 1"),
    ("Dirichlet(a([1.0, 1.0])).log_prob(a([0.5, 0.3, 0.2]))", ValueError, r"values of shape \(2,\)"),
    ("Normal(a([0.0, 0.0]), 1.0).log_prob(a([0.5, 0.3, 0.2]))", ValueError, "does not broadcast with the batch"),
    ("Normal(0.0, 1.0).icdf(1.5)", ValueError, "value of Normal.icdf must be >= 0.0 and <= 1.0"),
    ("Normal(0.0, 1.0).expand((2,)).expand((3,))", ValueError, r"can not be expanded to \(3,\)"),
    ("Normal(0.0, 1.0).sample(np.zeros(2, np.uint32))", TypeError, r"write Normal.sample\(rng=key\)"),
    ("Normal(0.0, 1.0).sample('many')", TypeError, "must be a tuple of integers"),
    ("Normal(0.0, 1.0).sample((-1,))", ValueError, "must not be negative"),
    ("Normal(0.0, 1.0).sample(rng=3)", TypeError, "takes a key"),
    ("Poisson(1.0).rsample()", NotImplementedError, "draw them by sample, and weigh losses by log_prob"),
    ("Poisson(1.0).entropy()", NotImplementedError, "no closed form is known"),
    ("Dirichlet(a([1.0, 1.0])).cdf(a([0.5, 0.5]))", NotImplementedError, "Dirichlet has no cdf"),
    (MIXTURE + ".rsample()", NotImplementedError, "a component is picked"),
    (MIXTURE + ".entropy()", NotImplementedError, "samples estimate it"),
    ("kl_divergence(StudentT(1.0), StudentT(2.0))", NotImplementedError, "enter one with register_kl"),
    ("kl_divergence(VonMises(0.3, 1.0), Normal(0.0, 1.0))", NotImplementedError, "from VonMises to Normal"),
    ("kl_divergence(VonMises(0.3, 1.0), Uniform(a([-4.0]), 4.0))", NotImplementedError, "from VonMises to Uniform"),
    ("TanhTransform(cache_size=1)", TypeError, "rsample_and_log_prob of a TransformedDistribution"),
    ("Normal(0.0, 1.0).sample_n(3)", AttributeError, r"write sample\(\(n,\)\)"),
    ("Normal(0.0, 1.0).rate", AttributeError, "Normal has no 'rate'"),
    ("register_kl(int, Normal)", TypeError, "two classes of distributions"),
]


@pytest.mark.parametrize(("text", "error", "message"), WRONG)
def test_wrong(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ours(text)


@pytest.mark.parametrize("transformation", [ft.jit, ft.grad, ft.vmap, nn.jit])
def test_a_key_is_needed_where_code_is_traced(transformation: Any) -> None:
    with pytest.raises(TypeError, match=r"Normal\.rsample needs rng .* write rng=self\.rng"):
        transformation(lambda m: D.Normal(m, 1.0).rsample().sum())(np.ones(2) if transformation is not ft.grad else 1.0)


def test_lists_and_arrays_of_traced_values() -> None:
    expected = ft.grad(lambda m: D.Normal(m * np.array([1.0, 2.0]), 1.0).log_prob(0.5).sum())(0.3)
    for parameter in (lambda m: [m, 2 * m], lambda m: np.array([m, 2 * m], object)):
        close(ft.grad(lambda m, f=parameter: D.Normal(f(m), 1.0).log_prob(0.5).sum())(0.3), expected)


def test_unchecked() -> None:
    assert np.isnan(D.Normal(0.0, np.nan, validate_args=False).log_prob(0.0))
    assert ft.jit(lambda s: D.Exponential(s).log_prob(1.0))(-1.0) != 0
