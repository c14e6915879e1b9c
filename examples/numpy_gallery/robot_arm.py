"""A robot arm: the distance of its hand from a target, through matrices of traced sines and cosines."""

import ftrans.numpy as np


def link(angle, length):
    """Homogeneous matrix of a joint that turns by `angle`, followed by a link."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, length * c], [s, c, length * s], [0.0, 0.0, 1.0]])


def reach(angles, lengths, target):
    """Squared distance between the hand of a planar arm and `target`."""
    pose = np.eye(3)
    for angle, length in zip(angles, lengths, strict=True):
        pose = pose @ link(angle, length)
    return np.sum((pose[:2, 2] - target) ** 2)


def example():
    """An arm of 6 links."""
    return reach, (np.linspace(0.1, 0.6, 6), np.full(6, 0.5), np.array([1.0, 1.0]))
