"""A cluster of atoms: its Lennard-Jones energy, whose negative gradient are the forces."""

import numpy as np


def energy(positions):
    """Sum over all pairs of `4 (r**-12 - r**-6)`, in units of the depth of the potential; positions in its radius."""
    first, second = np.triu_indices(len(positions), 1)
    inverse_square = 1.0 / np.sum((positions[first] - positions[second]) ** 2, axis=1)
    inverse_sixth = inverse_square**3
    return 4.0 * np.sum(inverse_sixth * (inverse_sixth - 1.0))


def example():
    """64 atoms near a cubic lattice."""
    random = np.random.default_rng(3)
    lattice = 1.2 * np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    return energy, (lattice + 0.05 * random.normal(size=lattice.shape),)
