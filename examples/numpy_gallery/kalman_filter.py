"""A Kalman filter: the log-likelihood of noisy positions of a body, with arrays that are filled step by step."""

import ftrans.numpy as np


def log_likelihood(log_noise, positions, step):
    """Log-likelihood of observed `positions` under nearly constant velocity.

    `log_noise` holds the logarithms of the standard deviations of the acceleration and of the observations.
    """
    acceleration, observation = np.exp(2 * log_noise)
    transition = np.array([[1.0, step], [0.0, 1.0]])
    diffusion = acceleration * np.array([[step**3 / 3, step**2 / 2], [step**2 / 2, step]])
    count = len(positions)
    means = np.zeros((count + 1, 2))
    covariances = np.zeros((count + 1, 2, 2))
    terms = np.zeros(count)
    covariances[0] = np.diag([10.0, 10.0])
    for i in range(count):
        mean = transition @ means[i]
        covariance = transition @ covariances[i] @ transition.T + diffusion
        surprise = positions[i] - mean[0]
        variance = covariance[0, 0] + observation
        gain = covariance[:, 0] / variance
        means[i + 1] = mean + gain * surprise
        covariances[i + 1] = covariance - np.outer(gain, covariance[0])
        terms[i] = -0.5 * (np.log(2 * np.pi * variance) + surprise**2 / variance)
    return np.sum(terms)


def example():
    """40 positions, a tenth of a second apart."""
    random = np.random.default_rng(2)
    track = np.cumsum(np.cumsum(random.normal(size=40)) * 0.1) * 0.1
    return log_likelihood, (np.log(np.array([0.5, 0.2])), track + 0.1 * random.normal(size=40), 0.1)
