"""The functions whose gradients are timed, each written once against a namespace `np`.

The first argument after `np` is the one to differentiate; it is an array or a tuple of arrays.
The rest is data. The mathematics is vectorised as one would write it for any of the libraries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.random import Generator


@dataclass(frozen=True)
class Problem:
    """A function to differentiate and what it is called with: `arguments(random)` after the namespace."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[Generator], tuple[Any, ...]]
    scans: bool = False


def rosenbrock(np, x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def log_sum_exp(np, x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))


def cross_entropy(np, logits, labels):
    picked = logits[numpy.arange(logits.shape[0]), labels]
    return np.mean(log_sum_exp(np, logits, 1) - picked)


def multilayer_perceptron(np, params, images, labels):
    w1, b1, w2, b2 = params
    hidden = np.tanh(images @ w1 + b1)
    return cross_entropy(np, hidden @ w2 + b2, labels)


def softmax_regression(np, weights, features, labels):
    return cross_entropy(np, features @ weights, labels)


def logistic_regression(np, weights, features, signs):
    margins = signs * (features @ weights)
    return np.sum(np.logaddexp(0.0, -margins)) + 0.5 * np.sum(weights**2)


def gaussian_process(np, params, points, values):
    log_scales, log_variance, log_noise = params
    scaled = points / np.exp(log_scales)
    squares = np.sum(scaled**2, axis=1)
    distances = squares[:, None] + squares[None, :] - 2.0 * (scaled @ scaled.T)
    covariance = np.exp(log_variance - 0.5 * distances) + np.exp(log_noise) * np.eye(points.shape[0])
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, values)
    return -0.5 * np.sum(whitened**2) - np.sum(np.log(np.diag(factor)))


def recurrence(np, params, inputs, scan):
    """Size of the states that h' = tanh(W h + U x + b) runs through."""
    w, u, b = params

    def step(state, drive):
        following = np.tanh(w @ state + drive)
        return following, following

    _, states = scan(step, np.zeros_like(b), inputs @ u + b)
    return np.sum(states**2)


def lennard_jones(np, positions):
    """Energy of all pairs."""
    count = positions.shape[0]
    apart = 1.0 - np.eye(count)
    between = positions[:, None, :] - positions[None, :, :]
    # A particle is put at distance 1 from itself, which keeps the masked terms finite.
    squares = np.sum(between**2, axis=2) + np.eye(count)
    attraction = 1.0 / squares**3
    return 2.0 * np.sum(apart * (attraction**2 - attraction))


def heat_step(np, u, rate):
    """One explicit Euler step on a periodic square."""
    neighbours = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return u + rate * (neighbours - 4.0 * u)


def heat_equation_by_scan(np, initial, observed, rates, scan):
    def step(u, rate):
        following = heat_step(np, u, rate)
        return following, np.mean(following)

    final, _ = scan(step, initial, rates)
    return np.sum((final - observed) ** 2)


def heat_equation_unrolled(np, initial, observed):
    u = initial
    for _ in range(6):
        u = heat_step(np, u, 0.2)
    return np.sum((u - observed) ** 2)


def gaussian_mixture(np, params, points, wishart_gamma, wishart_m):
    """Log likelihood of a mixture of Gaussians with a Wishart prior, up to constants: ADBench's GMM.

    A component's inverse covariance is Q'Q; Q is lower triangular, its log-diagonal in the first d
    columns of `factors`, the rest below the diagonal in column order. (Srajer, Kukelova, Fitzgibbon,
    A benchmark of selected algorithmic differentiation tools, 2018.)
    """
    log_weights, means, factors = params
    (n, d), k = points.shape, means.shape[0]
    log_diagonals, below = factors[:, :d], factors[:, d:]
    diagonals = np.exp(log_diagonals)
    with_zero = np.concatenate([below, np.zeros((k, 1))], axis=1)
    roots = with_zero[:, places_below_diagonal(d)] + diagonals[:, None, :] * np.eye(d)
    # One wide product for all components: Q (x - mean) = Q x - Q mean.
    whitened_means = np.einsum("kij,kj->ki", roots, means)
    whitened = np.reshape(roots, (k * d, d)) @ points.T - np.reshape(whitened_means, (k * d, 1))
    distances = np.sum(np.reshape(whitened, (k, d, n)) ** 2, axis=1)
    log_determinants = np.sum(log_diagonals, axis=1)
    terms = (log_weights + log_determinants)[:, None] - 0.5 * distances
    likelihood = np.sum(log_sum_exp(np, terms, 0)) - n * log_sum_exp(np, log_weights, 0)
    frobenius = np.sum(diagonals**2) + np.sum(below**2)
    return likelihood + 0.5 * wishart_gamma**2 * frobenius - wishart_m * np.sum(log_determinants)


def places_below_diagonal(d):
    """Where each entry of a d by d matrix stands below the diagonal, in column order; one past the end if not there."""
    columns, rows = numpy.triu_indices(d, 1)
    places = numpy.full((d, d), len(rows))
    places[rows, columns] = numpy.arange(len(rows))
    return places


def mixture_arguments(random: Generator, d: int, k: int, n: int) -> tuple[Any, ...]:
    params = random.normal(size=k), random.uniform(size=(k, d)), 0.3 * random.normal(size=(k, d * (d + 1) // 2))
    return params, random.normal(size=(n, d)), numpy.array(1.0), numpy.array(0.0)


def perceptron_arguments(random: Generator) -> tuple[Any, ...]:
    shapes = (784, 256), (256,), (256, 10), (10,)
    params = tuple(numpy.float32(0.05) * random.standard_normal(shape, numpy.float32) for shape in shapes)
    return params, random.random((128, 784), numpy.float32), random.integers(10, size=128)


def softmax_arguments(random: Generator) -> tuple[Any, ...]:
    return 0.1 * random.normal(size=(64, 1000)), random.normal(size=(512, 64)), random.integers(1000, size=512)


def logistic_arguments(random: Generator) -> tuple[Any, ...]:
    return 0.1 * random.normal(size=100), random.normal(size=(10_000, 100)), random.choice([-1.0, 1.0], size=10_000)


def process_arguments(random: Generator) -> tuple[Any, ...]:
    points = random.uniform(size=(200, 5))
    return (numpy.full(5, -0.5), numpy.array(0.0), numpy.array(-3.0)), points, numpy.sin(points @ numpy.arange(5.0))


def recurrence_arguments(random: Generator) -> tuple[Any, ...]:
    params = 0.1 * random.normal(size=(32, 32)), 0.3 * random.normal(size=(8, 32)), 0.1 * random.normal(size=32)
    return params, random.normal(size=(500, 8))


def particles(random: Generator) -> tuple[Any, ...]:
    lattice = numpy.stack(numpy.meshgrid(*3 * [numpy.arange(6.0)]), axis=-1).reshape(-1, 3)[:200]
    return (1.2 * lattice + 0.05 * random.normal(size=lattice.shape),)


def heat_arguments(random: Generator) -> tuple[Any, ...]:
    return random.normal(size=(256, 256)), random.normal(size=(256, 256))


def heat_scan_arguments(random: Generator) -> tuple[Any, ...]:
    return *heat_arguments(random), numpy.full(50, 0.2)


PROBLEMS = [
    Problem("Rosenbrock, n=100,000", rosenbrock, lambda random: (random.normal(size=100_000),)),
    Problem("perceptron 784-256-10, batch 128, float32", multilayer_perceptron, perceptron_arguments),
    Problem("logistic regression, 10,000 x 100", logistic_regression, logistic_arguments),
    Problem("softmax cross entropy, 512 x 64 x 1,000", softmax_regression, softmax_arguments),
    Problem("Gaussian process by Cholesky, n=200", gaussian_process, process_arguments),
    Problem("scan of 500 steps, 32 states", recurrence, recurrence_arguments, scans=True),
    Problem("Lennard-Jones, 200 particles", lennard_jones, particles),
    Problem("heat equation 256 x 256, scan of 50 steps", heat_equation_by_scan, heat_scan_arguments, scans=True),
    Problem("heat equation 256 x 256, 6 steps unrolled", heat_equation_unrolled, heat_arguments),
]

MIXTURES = [
    Problem(
        f"mixture of Gaussians, d={d}, k={k}, n=1,000",
        gaussian_mixture,
        functools.partial(mixture_arguments, d=d, k=k, n=1000),
    )
    for d in (10, 64)
    for k in (25, 50)
]
