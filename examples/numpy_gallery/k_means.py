"""k-means: the distortion of a set of centres, each point belonging to the nearest one."""

import numpy as np


def distortion(centres, points):
    """Sum over the points of the squared distance to their nearest centre."""
    distances = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=-1)
    nearest = np.argmin(distances, axis=1)
    return np.sum(distances[np.arange(len(points)), nearest])


def example():
    """300 points of the plane, 5 centres."""
    random = np.random.default_rng(1)
    return distortion, (random.normal(size=(5, 2)), random.normal(size=(300, 2)))
