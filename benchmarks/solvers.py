"""Whole solves by SciPy: with the derivatives that ftrans fills in, and with SciPy's finite differences.

SciPy's differences are given the pattern of the Jacobian, so that they take as few evaluations as they can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .harness import Contender, Row, Table, time_side_by_side

AT_MOST = 0.2  # where SciPy's own work, such as that of LSMR and of sparse factors, leaves room for it
NODES = 40
OBSERVATIONS = 20_000
CELLS = 24


class NotSolved(AssertionError):
    """A solver stopped somewhere else than at the solution."""


def run() -> Table:
    return Table(
        "solvers: whole solves by SciPy with exact derivatives and with finite differences",
        [
            row(f"trust-constr: cart-pole, {NODES} nodes", cart_pole(), AT_MOST),
            row(f"least_squares: bundle adjustment, {OBSERVATIONS} observations", bundle()),
            row(f"solve_ivp, BDF: Brusselator, {CELLS} x {CELLS}", brusselator("BDF")),
            row(f"solve_ivp, Radau: Brusselator, {CELLS} x {CELLS}", brusselator("Radau")),
        ],
    )


def row(label: str, contenders: dict[str, Callable[[], Any]], at_most: float | None = None) -> Row:
    timings = time_side_by_side(
        {name: Contender(call) for name, call in contenders.items()}, seconds=5.0, patience=10.0
    )
    return Row(
        label,
        {name: timings.typical(name) for name in contenders},
        [timings.ratio("ftrans", "differences", at_most)],
    )


def require(is_solved: Any, result: Any) -> None:
    if not is_solved:
        raise NotSolved(str(result.message))


# A pole on a cart is swung up with least effort: Hermite-Simpson collocation, four states and a force at each node.


def cart_pole() -> dict[str, Callable[[], Any]]:
    import scipy.optimize

    from ftrans.scipy import optimize

    step = 2.0 / (NODES - 1)
    first, last = np.zeros(4), np.array([1.0, np.pi, 0.0, 0.0])

    def slopes(states: Any, force: Any) -> Any:
        cart, pole, length, gravity = 1.0, 0.3, 0.5, 9.81
        _, angle, speed, turning = states.T
        s, c = np.sin(angle), np.cos(angle)
        mass = cart + pole * s**2
        swing = length * pole * s * turning**2
        faster = (swing + force + pole * gravity * c * s) / mass
        turned = -(swing * c + force * c + (cart + pole) * gravity * s) / (length * mass)
        return np.stack([speed, turning, faster, turned], axis=1)

    def defects(z: Any) -> Any:
        nodes = z.reshape(NODES, 5)
        states, force = nodes[:, :4], nodes[:, 4]
        f = slopes(states, force)
        middle = 0.5 * (states[:-1] + states[1:]) + step / 8 * (f[:-1] - f[1:])
        f_middle = slopes(middle, 0.5 * (force[:-1] + force[1:]))
        gaps = states[1:] - states[:-1] - step / 6 * (f[:-1] + 4 * f_middle + f[1:])
        return np.concatenate([gaps.reshape(-1), states[0] - first, states[-1] - last])

    def effort(z: Any) -> Any:
        return step * np.sum(z.reshape(NODES, 5)[:, 4] ** 2)

    start = np.zeros((NODES, 5))
    start[:, :4] = np.linspace(first, last, NODES)

    def solve(minimize: Callable[..., Any], constraint: Any) -> Any:
        result = minimize(
            effort,
            start.ravel(),
            method="trust-constr",
            constraints=constraint,
            options={"maxiter": 3000, "xtol": 1e-10},
        )
        require(result.constr_violation < 1e-6 and 58 < result.fun < 62, result)
        return result.fun

    pattern = pattern_of(defects, start.ravel())

    def by_differences() -> Any:
        constraint = scipy.optimize.NonlinearConstraint(defects, 0.0, 0.0, finite_diff_jac_sparsity=pattern)
        return solve(scipy.optimize.minimize, constraint)

    return {
        "differences": by_differences,
        "ftrans": lambda: solve(optimize.minimize, optimize.NonlinearConstraint(defects, 0.0, 0.0)),
    }


def pattern_of(f: Callable[..., Any], x: np.ndarray) -> Any:
    """The pattern of a Jacobian, with a 1 for each entry."""
    import ftrans as ft

    found = ft.sparse_jacobian(f)(x)
    found.data[:] = 1
    return found


# Cameras and points from what the cameras see of the points.


def bundle() -> dict[str, Callable[[], Any]]:
    import scipy.optimize

    from ftrans.scipy import optimize

    random = np.random.default_rng(0)
    cameras, points = OBSERVATIONS // 400, OBSERVATIONS // 8
    camera = random.integers(0, cameras, OBSERVATIONS)
    point = random.integers(0, points, OBSERVATIONS)

    def seen(z: Any) -> Any:
        """Projections by cameras with a rotation vector, a translation, a focal length and two distortions (BAL)."""
        w1, w2, w3, t1, t2, t3, focal, k1, k2 = z[: 9 * cameras].reshape(cameras, 9)[camera].T
        p1, p2, p3 = z[9 * cameras :].reshape(points, 3)[point].T
        angle = np.sqrt(w1**2 + w2**2 + w3**2)
        a1, a2, a3 = w1 / angle, w2 / angle, w3 / angle
        c, s = np.cos(angle), np.sin(angle)
        along = (a1 * p1 + a2 * p2 + a3 * p3) * (1 - c)
        q1 = p1 * c + (a2 * p3 - a3 * p2) * s + a1 * along + t1
        q2 = p2 * c + (a3 * p1 - a1 * p3) * s + a2 * along + t2
        q3 = p3 * c + (a1 * p2 - a2 * p1) * s + a3 * along + t3
        x, y = -q1 / q3, -q2 / q3
        square = x**2 + y**2
        scale = focal * (1 + k1 * square + k2 * square**2)
        return np.stack([scale * x, scale * y], axis=1)

    truth = np.concatenate(
        [
            np.hstack(
                [
                    0.2 * random.standard_normal((cameras, 3)),
                    0.3 * random.standard_normal((cameras, 2)),
                    -5 + 0.3 * random.standard_normal((cameras, 1)),
                    500 + 10 * random.standard_normal((cameras, 1)),
                    0.01 * random.standard_normal((cameras, 2)),
                ]
            ).ravel(),
            random.standard_normal(3 * points),
        ]
    )
    data = seen(truth) + 0.5 * random.standard_normal((OBSERVATIONS, 2))
    start = truth + 0.01 * random.standard_normal(truth.size) * np.maximum(np.abs(truth), 0.1)

    def residuals(z: Any) -> Any:
        return (seen(z) - data).reshape(-1)

    options = {"x_scale": "jac", "method": "trf", "tr_solver": "lsmr", "ftol": 1e-6}

    def solve(least_squares: Callable[..., Any], **more: Any) -> Any:
        result = least_squares(residuals, start, **options, **more)
        require(result.cost < 0.25 * OBSERVATIONS, result)
        return result.cost

    pattern = pattern_of(residuals, start)
    return {
        "differences": lambda: solve(scipy.optimize.least_squares, jac="2-point", jac_sparsity=pattern),
        "ftrans": lambda: solve(optimize.least_squares),
    }


# Two substances that react and spread on a square whose ends meet.


def brusselator(method: str) -> dict[str, Callable[[], Any]]:
    import scipy.integrate

    from ftrans.scipy import integrate

    places = (np.arange(CELLS) + 0.5) / CELLS
    x, y = np.meshgrid(places, places, indexing="ij")
    spread = 0.02 * CELLS**2
    source = 5.0 * ((x - 0.3) ** 2 + (y - 0.6) ** 2 <= 0.01)

    def laplacian(w: Any) -> Any:
        return np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) - 4 * w

    def reaction(t: Any, state: Any) -> Any:
        u, v = state.reshape(2, CELLS, CELLS)
        made = u**2 * v
        du = 1 + made - 4.4 * u + spread * laplacian(u) + source
        dv = 3.4 * u - made + spread * laplacian(v)
        return np.concatenate([du.reshape(-1), dv.reshape(-1)])

    start = np.concatenate([(22 * y * (1 - y) ** 1.5).ravel(), (27 * x * (1 - x) ** 1.5).ravel()])

    def solve(solve_ivp: Callable[..., Any], **more: Any) -> Any:
        result = solve_ivp(reaction, (0.0, 10.0), start, method, rtol=1e-6, atol=1e-8, **more)
        require(result.success, result)
        return result.y[:, -1]

    pattern = pattern_of(lambda state: reaction(0.0, state), start)
    return {
        "differences": lambda: solve(scipy.integrate.solve_ivp, jac_sparsity=pattern),
        "dense differences": lambda: solve(scipy.integrate.solve_ivp),
        "ftrans": lambda: solve(integrate.solve_ivp),
    }
