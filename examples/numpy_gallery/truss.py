"""A cantilever: the compliance of a beam, as a function of the stiffness of its elements, assembled in place."""

import ftrans.numpy as np


def compliance(stiffness, load):
    """Work that the `load` at the free end does on a beam of Euler-Bernoulli elements of length 1."""
    element = np.array(
        [[12.0, 6.0, -12.0, 6.0], [6.0, 4.0, -6.0, 2.0], [-12.0, -6.0, 12.0, -6.0], [6.0, 2.0, -6.0, 4.0]]
    )
    size = 2 * len(stiffness) + 2
    system = np.zeros((size, size))
    for i in range(len(stiffness)):
        freedoms = np.arange(2 * i, 2 * i + 4)
        system[np.ix_(freedoms, freedoms)] += stiffness[i] * element
    forces = np.zeros(size)
    forces[-2] = load
    # The first two degrees of freedom are clamped.
    displacements = np.linalg.solve(system[2:, 2:], forces[2:])
    return forces[2:] @ displacements


def example():
    """A beam of 20 elements."""
    return compliance, (np.linspace(2.0, 1.0, 20), 1.0)
