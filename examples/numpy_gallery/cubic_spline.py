"""A natural cubic spline: the bending energy and the values between knots, as a function of the values at them."""

import numpy as np


def smoothness(values, knots, places, data):
    """Squared misfit of the natural spline at `places` to `data`, plus a penalty on its curvature at the knots."""
    width = np.diff(knots)
    slope = np.diff(values) / width
    system = np.diag(2.0 * (width[:-1] + width[1:])) + np.diag(width[1:-1], 1) + np.diag(width[1:-1], -1)
    inner = np.linalg.solve(system, 6.0 * np.diff(slope))
    curvature = np.concatenate([[0.0], inner, [0.0]])
    piece = np.clip(np.searchsorted(knots, places) - 1, 0, len(width) - 1)
    h = width[piece]
    left, right = knots[piece + 1] - places, places - knots[piece]
    spline = (
        (curvature[piece] * left**3 + curvature[piece + 1] * right**3) / (6.0 * h)
        + (values[piece] / h - curvature[piece] * h / 6.0) * left
        + (values[piece + 1] / h - curvature[piece + 1] * h / 6.0) * right
    )
    return np.sum((spline - data) ** 2) + 1e-4 * np.sum(curvature**2)


def example():
    """12 knots, 200 noisy data."""
    random = np.random.default_rng(8)
    knots = np.linspace(0.0, 1.0, 12)
    places = random.uniform(0.0, 1.0, 200)
    return smoothness, (np.sin(6.0 * knots), knots, places, np.sin(6.0 * places) + 0.1 * random.normal(size=200))
