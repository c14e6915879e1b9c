"""Fitting a polynomial: the squared residual, as a function of the abscissae, of the best fit to noisy ordinates."""

import numpy as np


def residual(abscissae, ordinates, degree=3):
    """Sum of squared residuals of the least-squares polynomial through the points."""
    basis = np.vander(abscissae, degree + 1)
    coefficients = np.linalg.solve(basis.T @ basis, basis.T @ ordinates)
    return np.sum((np.polyval(coefficients, abscissae) - ordinates) ** 2)


def example():
    """50 points of a noisy sine, to a cubic."""
    random = np.random.default_rng(5)
    abscissae = np.sort(random.uniform(-1.0, 1.0, 50))
    return residual, (abscissae, np.sin(3.0 * abscissae) + 0.1 * random.normal(size=50))
