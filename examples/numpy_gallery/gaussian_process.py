"""Gaussian process regression: the marginal log-likelihood, as a function of the logarithms of the parameters."""

import numpy as np


def log_likelihood(log_parameters, inputs, outputs):
    """Marginal log-likelihood of `outputs` under a squared exponential kernel.

    `log_parameters` are the logarithms of amplitude, length scale and noise.
    """
    amplitude, length, noise = np.exp(log_parameters)
    distances = (inputs[:, None] - inputs[None, :]) / length
    kernel = amplitude**2 * np.exp(-0.5 * distances**2) + noise**2 * np.eye(len(inputs))
    factor = np.linalg.cholesky(kernel)
    whitened = np.linalg.solve(factor, outputs)
    log_determinant = np.sum(np.log(np.diag(factor)))
    return -0.5 * whitened @ whitened - log_determinant - 0.5 * len(inputs) * np.log(2 * np.pi)


def example():
    """80 noisy points of a sine."""
    random = np.random.default_rng(7)
    inputs = np.sort(random.uniform(0.0, 10.0, 80))
    return log_likelihood, (np.log(np.array([1.0, 1.5, 0.3])), inputs, np.sin(inputs) + 0.2 * random.normal(size=80))
