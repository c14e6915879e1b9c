"""Distributions, pairs of them and transforms, as text that means the same in `torch.distributions` and here.

`a` makes an array.  What torch says of them is in `distribution_figures.json`, which `test_torch_distributions.py`
compares with torch itself, and writes when it is run as a program.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "distribution_figures.json"
MATRIX = "a([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]])"
FACTOR = "a([[1.5, 0.0], [0.5, 0.8]])"

# Text, and values in the support.
ROWS: list[tuple[str, Any]] = [
    ("Normal(a([0.3, -1.0]), a([2.0, 0.5]))", [[0.1, 0.2], [-1.0, 3.0]]),
    ("LogNormal(a([0.3, -1.0]), a([0.7, 0.5]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("Laplace(a([0.3, -1.0]), a([2.0, 0.5]))", [[0.1, 0.2], [-1.5, 3.0]]),
    ("Cauchy(a([0.3, -1.0]), a([2.0, 0.5]))", [[0.1, 0.2], [-1.0, 3.0]]),
    ("Gumbel(a([0.3, -1.0]), a([2.0, 0.5]))", [[0.1, 0.2], [-1.0, 3.0]]),
    ("StudentT(a([3.5, 1.5, 0.7]), a(0.3), a([2.0, 1.0, 0.5]))", [[0.1, 0.2, -3.0]]),
    ("Uniform(a([-1.0, 0.0]), a([2.0, 0.5]))", [[0.1, 0.2], [-0.9, 0.3]]),
    ("HalfNormal(a([0.5, 2.0]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("HalfCauchy(a([0.5, 2.0]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("Exponential(a([0.5, 2.0]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("Gamma(a([0.5, 3.0]), a([2.0, 0.7]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("Chi2(a([1.0, 4.0]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("InverseGamma(a([0.5, 3.0]), a([2.0, 0.7]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("FisherSnedecor(a([3.0, 1.5]), a([5.0, 3.0]))", [[0.1, 0.2], [1.0, 3.0]]),
    ("Pareto(a([0.1, 0.2]), a([2.5, 0.7]))", [[0.1, 0.3], [1.0, 3.0]]),
    ("GeneralizedPareto(a([0.1, 0.1, 0.1]), a([2.0, 1.0, 0.7]), a([0.3, -0.2, 0.0]))", [[0.1, 0.3, 0.4], [1.0, 2, 3]]),
    ("Weibull(a([0.5, 2.0]), a([0.7, 3.0]))", [[0.1, 0.3], [1.0, 3.0]]),
    ("Beta(a([2.0, 0.5]), a([3.0, 0.8]))", [[0.1, 0.3], [0.6, 0.9]]),
    ("Kumaraswamy(a([2.0, 1.5]), a([3.0, 1.1]))", [[0.1, 0.3], [0.6, 0.9]]),
    ("ContinuousBernoulli(a([0.2, 0.5, 0.9]))", [[0.1, 0.3, 1.0], [0.6, 0.9, 0.0]]),
    ("ContinuousBernoulli(logits=a([-2.0, 1.0]))", [[0.1, 0.3], [0.6, 0.9]]),
    ("VonMises(a([0.3, -1.0]), a([0.5, 20.0]))", [[0.1, 0.2], [-1.0, 3.0]]),
    ("Bernoulli(a([0.2, 0.9]))", [[0.0, 1.0], [1.0, 1.0]]),
    ("Bernoulli(logits=a([-2.0, 1.0]))", [[0.0, 1.0], [1.0, 1.0]]),
    ("Geometric(a([0.2, 0.9]))", [[0.0, 1.0], [3.0, 7.0]]),
    ("Binomial(7, a([0.2, 0.9]))", [[0.0, 1.0], [3.0, 7.0]]),
    ("NegativeBinomial(a([2.5, 3.0]), a([0.2, 0.6]))", [[0.0, 1.0], [3.0, 7.0]]),
    ("Poisson(a([0.2, 3.5]))", [[0.0, 1.0], [3.0, 7.0]]),
    ("Categorical(a([[0.2, 0.3, 0.5], [1.0, 2.0, 5.0]]))", [[0.0, 1.0], [2.0, 2.0]]),
    ("Categorical(logits=a([0.2, -1.0, 0.5]))", [0.0, 2.0]),
    ("OneHotCategorical(a([0.2, 0.3, 0.5]))", [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ("OneHotCategoricalStraightThrough(logits=a([0.2, -1.0, 0.5]))", [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ("Multinomial(5, a([0.2, 0.3, 0.5]))", [[0.0, 1.0, 4.0], [2.0, 2.0, 1.0]]),
    ("RelaxedBernoulli(a(0.7), a([0.2, 0.9]))", [[0.1, 0.3], [0.6, 0.9]]),
    ("RelaxedOneHotCategorical(a(0.7), a([0.2, 0.3, 0.5]))", [[0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]),
    ("Dirichlet(a([[0.5, 1.5, 3.0], [2.0, 2.0, 2.0]]))", [[[0.1, 0.3, 0.6]], [[0.6, 0.3, 0.1]]]),
    (f"MultivariateNormal(a([0.1, 0.2, 0.3]), {MATRIX})", [[0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]),
    (f"MultivariateNormal(a([0.1, 0.2, 0.3]), precision_matrix={MATRIX})", [[0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]),
    (f"MultivariateNormal(a([0.1, 0.2]), scale_tril={FACTOR})", [[0.1, 0.3], [0.6, 0.3]]),
    (
        "LowRankMultivariateNormal(a([0.1, 0.2, 0.3]), a([[1.0, 0.1], [0.5, 2.0], [0.3, 0.1]]), a([0.5, 1.0, 2.0]))",
        [[0.1, 0.3, 0.6], [0.6, 0.3, 0.1]],
    ),
    ("LKJCholesky(3, a([1.5, 0.7]))", [[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.36, 0.48, 0.8]]]),
    (f"Wishart(a(4.5), {MATRIX})", [[[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.0]]]),
    ("Independent(Normal(a([[0.3, -1.0]]), a(2.0)), 1)", [[[0.1, 0.2]], [[-1.0, 3.0]]]),
    (
        "MixtureSameFamily(Categorical(a([0.3, 0.7])), Normal(a([0.3, -1.0]), a([2.0, 0.5])))",
        [[0.1, 0.2], [-1.0, 3.0]],
    ),
    (
        "MixtureSameFamily(Categorical(a([0.3, 0.7])), Independent(Normal(a([[0.3, 1.0], [0.0, 0.5]]), a(2.0)), 1))",
        [[0.1, 0.2], [-1.0, 3.0]],
    ),
    (
        "TransformedDistribution(Normal(a([0.3, -1.0]), a(2.0)), [AffineTransform(1.0, -2.0), SigmoidTransform()])",
        [[0.1, 0.2], [0.5, 0.9]],
    ),
    ("TransformedDistribution(Normal(a([0.3, -1.0]), a(1.0)), TanhTransform())", [[0.1, 0.2], [0.5, -0.9]]),
    ("TransformedDistribution(Gamma(a([0.3, 1.0]), a(1.0)), PowerTransform(a(2.0)))", [[0.1, 0.2], [0.5, 0.9]]),
    ("LogisticNormal(a([0.3, -1.0]), a([0.7, 0.5]))", [[0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]),
]

# Pairs of which torch knows the divergence.
PAIRS: list[tuple[str, str]] = [
    ("Bernoulli(a(0.2))", "Bernoulli(a([0.5, 0.9]))"),
    ("Bernoulli(a(0.2))", "Poisson(a([0.5, 0.9]))"),
    ("Beta(a(2.0), a(3.0))", "Beta(a(0.7), a(1.3))"),
    ("Beta(a(2.0), a(3.0))", "ContinuousBernoulli(a(0.7))"),
    ("Beta(a(2.0), a(3.0))", "Exponential(a(0.7))"),
    ("Beta(a(2.0), a(3.0))", "Gamma(a(0.7), a(1.3))"),
    ("Beta(a(2.0), a(3.0))", "Normal(a(0.7), a(1.3))"),
    ("Beta(a(2.0), a(3.0))", "Pareto(a(0.7), a(1.3))"),
    ("Beta(a(2.0), a(3.0))", "Uniform(a(-0.7), a([0.5, 1.3]))"),
    ("Binomial(5, a(0.2))", "Binomial(5, a(0.7))"),
    ("Categorical(a([0.2, 0.3, 0.5]))", "Categorical(a([0.6, 0.3, 0.1]))"),
    ("Cauchy(a(0.3), a(2.0))", "Cauchy(a(0.7), a(1.3))"),
    ("ContinuousBernoulli(a(0.3))", "ContinuousBernoulli(a(0.8))"),
    ("ContinuousBernoulli(a(0.3))", "Exponential(a(0.8))"),
    ("ContinuousBernoulli(a(0.3))", "Normal(a(0.8), a(1.3))"),
    ("ContinuousBernoulli(a(0.3))", "Uniform(a(-0.8), a(1.3))"),
    ("Dirichlet(a([0.5, 1.5, 3.0]))", "Dirichlet(a([2.5, 0.5, 1.0]))"),
    ("Exponential(a(0.3))", "Beta(a(0.8), a(0.8))"),
    ("Exponential(a(0.3))", "Exponential(a(0.8))"),
    ("Exponential(a(0.3))", "Gamma(a(0.8), a(1.3))"),
    ("Exponential(a(0.3))", "Gumbel(a(0.8), a(1.3))"),
    ("Exponential(a(0.3))", "Normal(a(0.8), a(1.3))"),
    ("Gamma(a(2.3), a(0.4))", "Exponential(a(0.8))"),
    ("Gamma(a(2.3), a(0.4))", "Gamma(a(0.8), a(1.3))"),
    ("Gamma(a(2.3), a(0.4))", "Gumbel(a(0.8), a(1.3))"),
    ("Gamma(a(2.3), a(0.4))", "Normal(a(0.8), a(1.3))"),
    ("Geometric(a(0.3))", "Geometric(a(0.8))"),
    ("Gumbel(a(0.3), a(2.0))", "Gumbel(a(0.7), a(1.3))"),
    ("Gumbel(a(0.3), a(2.0))", "Normal(a(0.7), a(1.3))"),
    ("Gumbel(a(0.3), a(2.0))", "Gamma(a(0.7), a(1.3))"),
    ("HalfNormal(a(0.3))", "HalfNormal(a(0.8))"),
    ("Independent(Normal(a([0.3, 1.0]), a(2.0)), 1)", "Independent(Normal(a([0.7, 0.0]), a(1.3)), 1)"),
    ("Laplace(a(0.3), a(2.0))", "Laplace(a(0.7), a(1.3))"),
    ("Laplace(a(0.3), a(2.0))", "Normal(a(0.7), a(1.3))"),
    ("LogNormal(a(0.3), a(2.0))", "LogNormal(a(0.7), a(1.3))"),
    (f"MultivariateNormal(a([0.1, 0.2, 0.3]), {MATRIX})", "MultivariateNormal(a([0.0, 0.0, 1.0]), a(np.eye(3)))"),
    (
        "LowRankMultivariateNormal(a([0.1, 0.2, 0.3]), a([[1.0], [0.5], [0.3]]), a([0.5, 1.0, 2.0]))",
        f"MultivariateNormal(a([0.1, 0.2, 0.3]), {MATRIX})",
    ),
    ("Normal(a(0.3), a(2.0))", "Gumbel(a(0.7), a(1.3))"),
    ("Normal(a(0.3), a(2.0))", "Laplace(a(0.7), a(1.3))"),
    ("Normal(a(0.3), a(2.0))", "Normal(a(0.7), a(1.3))"),
    ("Normal(a(0.3), a(2.0))", "Uniform(a(0.7), a(1.3))"),
    ("OneHotCategorical(a([0.2, 0.3, 0.5]))", "OneHotCategorical(a([0.6, 0.3, 0.1]))"),
    ("Pareto(a(0.3), a(2.0))", "Exponential(a(0.7))"),
    ("Pareto(a(0.3), a(2.5))", "Gamma(a(0.7), a(1.3))"),
    ("Pareto(a(0.3), a(2.5))", "Normal(a(0.7), a(1.3))"),
    ("Pareto(a(0.3), a(2.0))", "Pareto(a([0.2, 0.7]), a(1.3))"),
    ("Poisson(a(0.3))", "Poisson(a(0.8))"),
    ("Poisson(a(0.3))", "Bernoulli(a(0.8))"),
    ("Uniform(a(0.2), a(0.9))", "Beta(a(0.7), a(1.3))"),
    ("Uniform(a(0.2), a(0.9))", "ContinuousBernoulli(a(0.7))"),
    ("Uniform(a(0.2), a(0.9))", "Exponential(a(0.7))"),
    ("Uniform(a(0.2), a(0.9))", "Gamma(a(0.7), a(1.3))"),
    ("Uniform(a(0.2), a(0.9))", "Gumbel(a(0.7), a(1.3))"),
    ("Uniform(a(0.2), a(0.9))", "Normal(a(0.7), a(1.3))"),
    ("Uniform(a(0.2), a(0.9))", "Pareto(a(0.1), a(1.3))"),
    ("Uniform(a(0.2), a(0.9))", "Uniform(a(0.0), a([0.5, 1.3]))"),
]

# Transforms, and arguments.
TRANSFORMS: list[tuple[str, Any]] = [
    ("ExpTransform()", [0.1, -2.0]),
    ("AffineTransform(1.0, a([2.0, -3.0]))", [0.1, -2.0]),
    ("AffineTransform(1.0, a([2.0, -3.0]), event_dim=1)", [0.1, -2.0]),
    ("PowerTransform(a([2.0, -0.5]))", [0.1, 2.0]),
    ("SigmoidTransform()", [0.1, -2.0]),
    ("TanhTransform()", [0.1, -2.0]),
    ("SoftplusTransform()", [0.1, -2.0]),
    ("StickBreakingTransform()", [[0.1, -2.0], [1.0, 0.5]]),
    ("CorrCholeskyTransform()", [[0.1, -1.0, 0.5], [1.0, 0.5, 0.2]]),
    ("ComposeTransform([AffineTransform(1.0, 2.0), ExpTransform()])", [0.1, -2.0]),
    ("ComposeTransform([ExpTransform(), StickBreakingTransform()])", [[0.1, -2.0], [1.0, 0.5]]),
    ("IndependentTransform(ExpTransform(), 1)", [[0.1, -2.0], [1.0, 0.5]]),
    ("ReshapeTransform((4,), (2, 2))", [[0.1, -2.0, 1.0, 0.5]]),
    ("CatTransform([ExpTransform(), AffineTransform(1.0, 2.0)], dim=0, lengths=[1, 2])", [0.1, -2.0, 1.0]),
    ("StackTransform([ExpTransform(), AffineTransform(1.0, 2.0)], dim=1)", [[0.1, -2.0], [1.0, 0.5]]),
    ("CumulativeDistributionTransform(Normal(0.5, 2.0))", [0.1, -2.0]),
    ("ExpTransform().inv", [0.1, 2.0]),
]


def made(text: str, namespace: Any, array: Callable[[Any], Any]) -> Any:
    """What a row's text means in a library."""
    import numpy as np

    return eval(text, {**{name: getattr(namespace, name) for name in namespace.__all__}, "a": array, "np": np})


def figures() -> dict[str, Any]:
    """What torch says."""
    found: dict[str, Any] = json.loads(FIGURES.read_text())
    return found
