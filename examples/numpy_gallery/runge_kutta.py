"""Predators and prey: the misfit of populations that a Runge-Kutta loop integrates, as a function of the rates."""

import numpy as np


def growth(populations, rates):
    """Time derivative of the populations of prey and predators, after Lotka and Volterra."""
    prey, predators = populations
    born, eaten, died, fed = rates
    return np.array([born * prey - eaten * prey * predators, fed * prey * predators - died * predators])


def misfit(rates, start, measured, step=0.1):
    """Squared relative difference between `measured` populations and those after each step of classical Runge-Kutta."""
    populations, total = start, 0.0
    for observed in measured:
        k1 = growth(populations, rates)
        k2 = growth(populations + 0.5 * step * k1, rates)
        k3 = growth(populations + 0.5 * step * k2, rates)
        k4 = growth(populations + step * k3, rates)
        populations = populations + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        total = total + np.sum((populations / observed - 1.0) ** 2)
    return total


def example():
    """40 steps of a tenth of a year."""
    random = np.random.default_rng(10)
    return misfit, (np.array([1.1, 0.4, 0.4, 0.1]), np.array([10.0, 5.0]), random.uniform(4.0, 12.0, (40, 2)))
