"""A mixture of Gaussians: its log-likelihood, as a function of weights, means and triangular factors."""

import numpy as np

from ftrans.scipy.special import logsumexp


def log_likelihood(parameters, points):
    """Mean log-likelihood of `points`; `parameters` hold logits, means, and factors of the precisions of all parts."""
    logits, means, factors = parameters["logits"], parameters["means"], np.tril(parameters["factors"])
    log_weights = logits - logsumexp(logits)
    whitened = np.einsum("kij,nkj->nki", factors, points[:, None, :] - means)
    log_scales = np.sum(np.log(np.abs(np.diagonal(factors, axis1=1, axis2=2))), axis=1)
    size = points.shape[1]
    terms = log_weights + log_scales - 0.5 * np.sum(whitened**2, axis=-1) - 0.5 * size * np.log(2 * np.pi)
    return np.mean(logsumexp(terms, axis=1))


def example():
    """400 points in 3 dimensions, 5 parts."""
    random = np.random.default_rng(14)
    factors = np.eye(3) + 0.1 * random.normal(size=(5, 3, 3))
    parameters = {"logits": random.normal(size=5), "means": random.normal(size=(5, 3)), "factors": factors}
    return log_likelihood, (parameters, random.normal(size=(400, 3)))
