"""Planets: the distance of one from its target after a leapfrog integration in place, as a function of velocities."""

import ftrans.numpy as np


def accelerations(positions, masses):
    """Gravitational accelerations, in units where the constant of gravity is 1; slightly softened."""
    between = positions[None, :, :] - positions[:, None, :]
    cubes = (np.sum(between**2, axis=-1) + 1e-3) ** 1.5
    return np.sum(masses[None, :, None] * between / cubes[:, :, None], axis=1)


def miss(velocities, positions, masses, target, step=0.01, steps=30):
    """Squared distance of the last body from `target` at the end."""
    positions = np.array(positions)
    velocities = velocities + 0.5 * step * accelerations(positions, masses)
    for _ in range(steps):
        positions += step * velocities
        velocities += step * accelerations(positions, masses)
    return np.sum((positions[-1] - target) ** 2)


def example():
    """A sun and four planets."""
    random = np.random.default_rng(15)
    masses = np.array([1.0, 1e-3, 1e-3, 1e-3, 1e-4])
    positions = np.concatenate([np.zeros((1, 3)), random.normal(size=(4, 3))])
    return miss, (0.5 * random.normal(size=(5, 3)), positions, masses, np.ones(3))
