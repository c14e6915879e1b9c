"""Rigid registration: the misfit of points that a quaternion rotates and a vector shifts, as a function of both."""

import ftrans.numpy as np


def rotation(quaternion):
    """Rotation matrix of a quaternion (w, x, y, z) of any length but zero."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def misfit(pose, points, targets):
    """Sum of squared distances between `targets` and the moved `points`; `pose` is a quaternion and a shift."""
    moved = points @ rotation(pose[:4]).T + pose[4:]
    return np.sum((moved - targets) ** 2)


def example():
    """100 points in space."""
    random = np.random.default_rng(11)
    points = random.normal(size=(100, 3))
    return misfit, (np.array([1.0, 0.2, -0.1, 0.3, 0.5, 0.0, -0.5]), points, points[:, [1, 2, 0]])
