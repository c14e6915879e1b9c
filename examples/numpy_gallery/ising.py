"""An Ising model on a torus: the pseudo-likelihood of a picture of spins, as a function of couplings and fields."""

import numpy as np


def negative_pseudo_likelihood(parameters, spins):
    """Minus the mean log-probability of each spin given its neighbours.

    `parameters` are the coupling along rows, the one along columns, and the field, over the temperature.
    """
    along_rows, along_columns, field = parameters
    neighbours_in_row = np.roll(spins, 1, axis=1) + np.roll(spins, -1, axis=1)
    neighbours_in_column = np.roll(spins, 1, axis=0) + np.roll(spins, -1, axis=0)
    local_field = along_rows * neighbours_in_row + along_columns * neighbours_in_column + field
    return np.mean(np.logaddexp(0.0, -2.0 * spins * local_field))


def example():
    """A picture of 48 by 48 spins."""
    random = np.random.default_rng(4)
    return negative_pseudo_likelihood, (np.array([0.3, 0.2, 0.05]), random.choice([-1.0, 1.0], size=(48, 48)))
