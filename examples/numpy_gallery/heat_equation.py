"""The heat equation in one dimension: the misfit of a final temperature, as a function of the conductivity."""

import ftrans.numpy as np


def misfit(conductivity, start, measured, steps=50):
    """Squared difference between `measured` and the rod's temperature after `steps` explicit steps.

    The rod is updated in place; `conductivity` is given between neighbouring points, times step over distance squared.
    """
    rod = np.array(start)
    for _ in range(steps):
        flow = conductivity * (rod[1:] - rod[:-1])
        rod[1:-1] += flow[1:] - flow[:-1]
        rod[0] = start[0]
        rod[-1] = start[-1]
    return np.sum((rod - measured) ** 2)


def example():
    """A rod of 100 points that is warm in the middle."""
    places = np.linspace(0.0, 1.0, 100)
    start = np.exp(-100.0 * (places - 0.5) ** 2)
    return misfit, (np.full(99, 0.3), start, 0.5 * start)
