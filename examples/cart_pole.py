"""Swing a pole up on a cart with the least effort: an optimal control problem, solved by SciPy's trust-constr.

Cart and pole hang at rest, and have two seconds to come to rest one metre further, with the pole upright. Time is cut
into pieces on which the states are cubic and satisfy the equations of motion at both ends and in the middle
(Hermite-Simpson collocation; Kelly, "An Introduction to Trajectory Optimization", SIAM Review 59, 2017, which has this
problem and its data). That makes a problem in all states and forces with a constraint for each gap between pieces.

Only the functions are written here. `ftrans.scipy.optimize` adds the gradient of the objective, the sparse Jacobian of
the constraints, and the sparse Hessians of both. At the end the force found is put into the equations of motion, which
another solver integrates: that must swing the pole up, too.

    python examples/cart_pole.py
    python examples/cart_pole.py --nodes 200
"""

import argparse
import sys
import time

import numpy as np

from ftrans.scipy import integrate, optimize

DURATION = 2.0
CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81
# Position, angle, and how fast they change.
FIRST, LAST = np.zeros(4), np.array([1.0, np.pi, 0.0, 0.0])
MOST_WAY, MOST_FORCE = 2.0, 20.0


def slopes(states, force):
    """The equations of motion: how states, of shape (..., 4), change under a force."""
    angle, speed, turning = states[..., 1], states[..., 2], states[..., 3]
    s, c = np.sin(angle), np.cos(angle)
    mass = CART + POLE * s**2
    swing = LENGTH * POLE * s * turning**2
    faster = (swing + force + POLE * GRAVITY * c * s) / mass
    turned = -(swing * c + force * c + (CART + POLE) * GRAVITY * s) / (LENGTH * mass)
    return np.stack([speed, turning, faster, turned], axis=-1)


def nodes_of(z):
    """States and forces at the nodes, and the time between them."""
    nodes = z.reshape(-1, 5)
    return nodes[:, :4], nodes[:, 4], DURATION / (len(nodes) - 1)


def defects(z):
    """What must be 0: the gaps between pieces, and the distance from both ends."""
    states, force, step = nodes_of(z)
    f = slopes(states, force)
    middle = (states[:-1] + states[1:]) / 2 + step / 8 * (f[:-1] - f[1:])
    f_middle = slopes(middle, (force[:-1] + force[1:]) / 2)
    gaps = states[1:] - states[:-1] - step / 6 * (f[:-1] + 4 * f_middle + f[1:])
    return np.concatenate([gaps.reshape(-1), states[0] - FIRST, states[-1] - LAST])


def effort(z):
    """The integral of the squared force."""
    _, force, step = nodes_of(z)
    return step * np.sum(force**2)


def straight(nodes):
    """Where the search starts: the straight line between both ends, without force."""
    states = np.linspace(FIRST, LAST, nodes)
    return np.hstack([states, np.zeros((nodes, 1))]).ravel()


def bounds(nodes):
    """The track ends somewhere, and the motor is only so strong."""
    most = np.tile([MOST_WAY, np.inf, np.inf, np.inf, MOST_FORCE], nodes)
    return optimize.Bounds(-most, most)


def solve(nodes):
    return optimize.minimize(
        effort,
        straight(nodes),
        method="trust-constr",
        bounds=bounds(nodes),
        constraints=optimize.NonlinearConstraint(defects, 0.0, 0.0),
    )


def simulated(z):
    """The last state under the force that was found, by a solver that knows nothing of collocation."""
    _, force, _ = nodes_of(z)
    times = np.linspace(0, DURATION, len(force))
    motion = integrate.solve_ivp(
        lambda t, y: slopes(y, np.interp(t, times, force)), (0, DURATION), FIRST, "DOP853", rtol=1e-9, atol=1e-9,
        max_step=times[1],
    )  # fmt: skip
    return motion.y[:, -1]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nodes", type=int, default=50)
    nodes = options.parse_args().nodes

    began = time.perf_counter()
    found = solve(nodes)
    seconds = time.perf_counter() - began
    print(f"{nodes} nodes, {5 * nodes} variables, {4 * nodes + 4} constraints: {found.message}")
    print(
        f"effort {found.fun:.4f}, constraints within {found.constr_violation:.1e}, {found.nit} steps, {seconds:.2f} s\n"
    )
    for name, used in found.ftrans.items():
        print(f"{name:20} {used}")

    states, force, _ = nodes_of(found.x)
    print("\ntime   force   cart at   pole at")
    for i in np.linspace(0, nodes - 1, 11).astype(int):
        time_of = DURATION * i / (nodes - 1)
        print(f"{time_of:4.2f} {force[i]:7.2f} {states[i, 0]:7.2f} m {np.degrees(states[i, 1]):7.0f}°")
    error = np.max(np.abs(simulated(found.x) - LAST))
    print(f"\nIntegrated with that force, the motion ends {error:.1e} from where it should.")
    return 0 if found.success and error < 0.2 else 1


if __name__ == "__main__":
    sys.exit(main())
