"""Robust regression: the likelihood of a line under Student's t errors, whose degrees of freedom are fitted as well."""

import numpy as np
from scipy.special import gammaln


def negative_log_likelihood(parameters, x, y):
    """Minus the log-likelihood; `parameters` are intercept, slope, log of the scale, log of the degrees of freedom."""
    intercept, slope, log_scale, log_freedom = parameters
    freedom = np.exp(log_freedom)
    errors = (y - intercept - slope * x) / np.exp(log_scale)
    constant = gammaln(0.5 * (freedom + 1)) - gammaln(0.5 * freedom) - 0.5 * np.log(np.pi * freedom) - log_scale
    return -np.sum(constant - 0.5 * (freedom + 1) * np.log1p(errors**2 / freedom))


def example():
    """300 points, some of them far off."""
    random = np.random.default_rng(13)
    x = random.normal(size=300)
    return negative_log_likelihood, (np.array([0.1, 0.8, -0.5, 1.0]), x, 1.0 + x + 0.3 * random.standard_t(2.0, 300))
