"""Likelihoods and losses of statistics: mixtures, clusters, a hidden Markov model, a Gaussian process."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy
from numpy.random import Generator

from ..problems import gaussian_mixture, gaussian_process, log_sum_exp, mixture_arguments, places_below_diagonal
from . import native
from .problem import Problem, Targets

EIGHT = Targets(careful=1.1)


def mixture(np, params, points, wishart_gamma, wishart_m):
    """The mixture of `benchmarks/problems.py`, with the difference of each point and mean as the formula has it."""
    log_weights, means, factors = params
    (n, d), k = points.shape, means.shape[0]
    log_diagonals, below = factors[:, :d], factors[:, d:]
    diagonals = np.exp(log_diagonals)
    with_zero = np.concatenate([below, np.zeros((k, 1))], axis=1)
    roots = with_zero[:, places_below_diagonal(d)] + diagonals[:, None, :] * np.eye(d)
    between = points[:, None, :] - means
    whitened = np.einsum("kij,nkj->nki", roots, between)
    distances = np.sum(whitened**2, axis=2)
    log_determinants = np.sum(log_diagonals, axis=1)
    terms = log_weights + log_determinants - 0.5 * distances
    likelihood = np.sum(log_sum_exp(np, terms, 1)) - n * log_sum_exp(np, log_weights, 0)
    frobenius = np.sum(diagonals**2) + np.sum(below**2)
    return likelihood + 0.5 * wishart_gamma**2 * frobenius - wishart_m * np.sum(log_determinants)


def mixture_with_care(jax, params, points, wishart_gamma, wishart_m):
    """Q x and Q mean apart, so that one product serves all components, and a shift that is held constant."""
    np = jax.numpy
    np_with_shift = Shifted(jax)
    return gaussian_mixture(np_with_shift, params, np.asarray(points), wishart_gamma, wishart_m)


class Shifted:
    """`jax.numpy` with a maximum whose derivative is zero, for shifts that cannot matter."""

    def __init__(self, jax: Any) -> None:
        self.jax = jax

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jax.numpy, name)

    def max(self, x: Any, **options: Any) -> Any:
        return self.jax.lax.stop_gradient(self.jax.numpy.max(x, **options))


def log_sum(np, x):
    return np.sum(log_sum_exp(np, x, 1))


def log_sum_with_care(jax, x):
    return log_sum(Shifted(jax), x)


def clusters(np, centres, points):
    between = points[:, None, :] - centres
    return np.sum(np.min(np.sum(between**2, axis=2), axis=1))


def clusters_with_care(jax, centres, points):
    """The nearest by a product of matrices; only what was chosen is differentiated."""
    np = jax.numpy
    nearest = np.argmin(np.sum(centres**2, 1) - 2.0 * points @ centres.T, axis=1)
    return np.sum((points - centres[nearest]) ** 2)


def curvature(library: ModuleType, function: Any) -> Any:
    """The diagonal of the Hessian: JAX has no function for it."""
    if library.__name__ == "ftrans":
        return library.hessian_diagonal(function)

    def of_whole_matrix(centres: Any, points: Any) -> Any:
        hessian = library.hessian(function)(centres, points)
        return library.numpy.diagonal(hessian.reshape(centres.size, centres.size)).reshape(centres.shape)

    return of_whole_matrix


def curvature_with_care(library: ModuleType, function: Any) -> Any:
    """One product with ones, since the Hessian is known to be diagonal."""

    def product(centres: Any, points: Any) -> Any:
        ones = library.numpy.ones_like(centres)
        return library.jvp(lambda c: library.grad(function)(c, points), (centres,), (ones,))[1]

    return product


def hidden_markov(np, params, observed):
    """The forward algorithm on logarithms."""
    log_start, log_moves, log_emits = params
    alpha = log_start + log_emits[:, observed[0]]
    for t in range(1, len(observed)):
        alpha = log_sum_exp(np, alpha[:, None] + log_moves, 0) + log_emits[:, observed[t]]
    return log_sum_exp(np, alpha, 0)


def hidden_markov_with_care(jax, params, observed):
    """Probabilities that are scaled in each step of a scan."""
    np = jax.numpy
    start, moves, emits = (np.exp(p) for p in params)

    def step(alpha, seen):
        alpha = (alpha @ moves) * seen
        size = np.sum(alpha)
        return alpha / size, np.log(size)

    columns = emits.T[observed]
    first = start * columns[0]
    total = np.sum(first)
    _, logs = jax.lax.scan(step, first / total, columns[1:])
    return np.log(total) + np.sum(logs)


def process_with_care(jax, params, points, values):
    """Triangular systems for the factor, which is known to be triangular."""
    np = jax.numpy
    log_scales, log_variance, log_noise = params
    scaled = points / np.exp(log_scales)
    squares = np.sum(scaled**2, axis=1)
    distances = squares[:, None] + squares[None, :] - 2.0 * (scaled @ scaled.T)
    covariance = np.exp(log_variance - 0.5 * distances) + np.exp(log_noise) * np.eye(points.shape[0])
    factor = np.linalg.cholesky(covariance)
    whitened = jax.scipy.linalg.solve_triangular(factor, values, lower=True)
    return -0.5 * np.sum(whitened**2) - np.sum(np.log(np.diag(factor)))


def mixture_problem(d: int, k: int, n: int) -> Problem:
    return Problem(
        f"mixture of Gaussians, d = {d}, k = {k}, n = {n:,}",
        mixture,
        mixture_with_care,
        functools.partial(mixture_arguments, d=d, k=k, n=n),
        Targets(careful=1.3, plain=0.8),
        cpp=native.mixture,
    )


def log_sum_problem(rows: int, columns: int) -> Problem:
    label = f"sum of logsumexp, {rows * columns:,} numbers"
    return Problem(
        label, log_sum, log_sum_with_care, lambda random: (random.normal(size=(rows, columns)),), Targets(careful=1.1)
    )


def cluster_problem(n: int, k: int, d: int) -> Problem:
    return Problem(
        f"k-means, n = {n:,}, k = {k}, d = {d}: diagonal of Hessian",
        clusters,
        clusters_with_care,
        lambda random: (random.normal(size=(k, d)), random.normal(size=(n, d))),
        EIGHT,
        curvature,
        curvature_with_care,
    )


def markov_problem(steps: int, states: int, symbols: int) -> Problem:
    def arguments(random: Generator) -> Any:
        params = random.normal(size=states), random.normal(size=(states, states)), random.normal(size=(states, symbols))
        logs = tuple(p - numpy.log(numpy.sum(numpy.exp(p), -1, keepdims=True)) for p in params)
        return logs, random.integers(symbols, size=steps)

    label = f"hidden Markov model, {states} states, {steps:,} steps"
    return Problem(label, hidden_markov, hidden_markov_with_care, arguments, EIGHT, is_for_jax=False)


def process_problem(n: int) -> Problem:
    def arguments(random: Generator) -> Any:
        points = random.uniform(size=(n, 5))
        params = numpy.full(5, -0.5), numpy.array(0.0), numpy.array(-3.0)
        return params, points, numpy.sin(points @ numpy.arange(5.0))

    return Problem(f"Gaussian process by Cholesky, n = {n}", gaussian_process, process_with_care, arguments, EIGHT)


def problems() -> list[Problem]:
    return [
        mixture_problem(10, 25, 1000),
        mixture_problem(64, 50, 1000),
        log_sum_problem(10_000, 128),
        cluster_problem(10_000, 20, 10),
        markov_problem(200, 16, 10),
        process_problem(300),
    ]


def small_problems() -> list[Problem]:
    """The same in small, for tests."""
    return [
        mixture_problem(3, 2, 5),
        log_sum_problem(3, 4),
        cluster_problem(6, 2, 3),
        markov_problem(4, 3, 2),
        process_problem(6),
    ]
