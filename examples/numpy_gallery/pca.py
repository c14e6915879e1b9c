"""Principal components: the share of the variance that the first ones explain, as a function of the data."""

import numpy as np


def unexplained(data, components=2):
    """Share of the variance of the rows of `data` outside of their first principal components."""
    centred = data - np.mean(data, axis=0)
    covariance = centred.T @ centred / (len(data) - 1)
    variances, _ = np.linalg.eigh(covariance)
    return np.sum(variances[:-components]) / np.sum(variances)


def example():
    """100 points in 8 dimensions."""
    random = np.random.default_rng(6)
    return unexplained, (
        random.normal(size=(100, 3)) @ random.normal(size=(3, 8)) + 0.1 * random.normal(size=(100, 8)),
    )
