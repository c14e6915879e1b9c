"""Deblurring: the misfit of a blurred picture, with a penalty on its gradient, as a function of the sharp picture."""

import numpy as np


def objective(picture, blurred, kernel, penalty=0.02):
    """Squared misfit of `picture` behind a separable blur to `blurred`, plus a smooth total variation."""
    width = len(kernel) // 2
    padded = np.pad(picture, width, mode="edge")
    rows = sum(weight * padded[:, i : i + picture.shape[1]] for i, weight in enumerate(kernel))
    blur = sum(weight * rows[i : i + picture.shape[0]] for i, weight in enumerate(kernel))
    down, right = np.diff(picture, axis=0)[:, :-1], np.diff(picture, axis=1)[:-1]
    return np.sum((blur - blurred) ** 2) + penalty * np.sum(np.sqrt(down**2 + right**2 + 1e-6))


def example():
    """A picture of 64 by 64 points, a blur of 5."""
    random = np.random.default_rng(16)
    return objective, (random.uniform(size=(64, 64)), random.uniform(size=(64, 64)), np.array([1.0, 4, 6, 4, 1]) / 16)
