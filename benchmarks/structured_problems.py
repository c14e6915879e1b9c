"""The functions whose sparse Jacobians and Hessians are timed, each written once against a namespace `np`.

`np` is NumPy, `jax.numpy` or the few names that `CasadiNumpy` gives to CasADi's matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

CAMERA, POINT = 11, 3  # parameters of each in a bundle adjustment


@dataclass(frozen=True, eq=False)
class Structured:
    """A function of a vector, and where its derivative is taken.

    Attributes:
        label: what tables call it.
        function: takes the namespace and the vector.
        start: the vector.
        of_hessian: whether the Hessian is wanted, of a scalar, or else the Jacobian.
        lower: whether only the lower triangle is wanted.
    """

    label: str
    function: Callable[[Any, Any], Any]
    start: numpy.ndarray
    of_hessian: bool = False
    lower: bool = False


def brusselator(side: int) -> Structured:
    """The right-hand side of a reaction and diffusion on a periodic grid of `side` by `side` points."""
    grid = (numpy.arange(side) + 0.5) / side
    source = 5.0 * ((grid[:, None] - 0.3) ** 2 + (grid - 0.6) ** 2 <= 0.01)
    diffusion = 0.02 * side**2
    count = side * side

    def f(np: Any, y: Any) -> Any:
        def laplacian(w: Any) -> Any:
            return np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) - 4.0 * w

        u, v = np.reshape(y[:count], (side, side)), np.reshape(y[count:], (side, side))
        reaction = u * u * v
        du = 1.0 + reaction - 4.4 * u + diffusion * laplacian(u) + np.asarray(source)
        dv = 3.4 * u - reaction + diffusion * laplacian(v)
        return np.concatenate([np.reshape(du, (-1,)), np.reshape(dv, (-1,))])

    start = 1.0 + numpy.random.default_rng(0).random(2 * count)
    return Structured(f"Brusselator, {side} x {side}: Jacobian", f, start)


def rosenbrock(size: int) -> Structured:
    """Rosenbrock's function, summed over neighbours."""

    def f(np: Any, x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2 + (1.0 - x[:-1]) ** 2)

    start = numpy.random.default_rng(0).standard_normal(size)
    return Structured(f"Rosenbrock, n = {size:,}: Hessian", f, start, of_hessian=True)


# A cart with a pole that is swung up: the trajectory is discretised by Hermite and Simpson's rule.

LENGTH, CART, BOB, GRAVITY, DURATION = 0.5, 1.0, 0.3, 9.81, 2.0
TARGET = numpy.array([1.0, numpy.pi, 0.0, 0.0])


def pole_accelerations(np: Any, state: list[Any], force: Any) -> list[Any]:
    """The time derivatives of position, angle, velocity and angular velocity."""
    _, angle, velocity, turning = state
    sin, cos = np.sin(angle), np.cos(angle)
    mass = CART + BOB * (1.0 - cos * cos)
    pull = LENGTH * BOB * sin * turning * turning
    acceleration = (pull + force + BOB * GRAVITY * cos * sin) / mass
    angular = -(pull * cos + force * cos + (CART + BOB) * GRAVITY * sin) / (LENGTH * mass)
    return [velocity, turning, acceleration, angular]


def trajectory_constraints(nodes: int, np: Any, z: Any) -> Any:
    """The defects between neighbouring nodes, then the conditions on the first and last state."""
    step = DURATION / (nodes - 1)
    table = np.reshape(z, (nodes, 5))
    states, force = [table[:, k] for k in range(4)], table[:, 4]
    rates = pole_accelerations(np, states, force)
    before, after = [s[:-1] for s in states], [s[1:] for s in states]
    left, right = [r[:-1] for r in rates], [r[1:] for r in rates]
    middle = [0.5 * (a + b) + (step / 8) * (p - q) for a, b, p, q in zip(before, after, left, right, strict=True)]
    inner = pole_accelerations(np, middle, 0.5 * (force[:-1] + force[1:]))
    defects = [
        b - a - (step / 6) * (p + 4.0 * m + q) for a, b, p, m, q in zip(before, after, left, inner, right, strict=True)
    ]
    ends = [z[:4], z[5 * nodes - 5 : 5 * nodes - 1] - np.asarray(TARGET)]
    return np.concatenate([np.reshape(np.stack(defects, 1), (-1,)), *ends])


def cart_pole_constraints(nodes: int) -> Structured:
    """The constraints of the trajectory."""
    start = numpy.random.default_rng(0).standard_normal(5 * nodes)
    f = functools.partial(trajectory_constraints, nodes)
    return Structured(f"cart-pole, {nodes:,} nodes: Jacobian of constraints", f, start)


def cart_pole_lagrangian(nodes: int) -> Structured:
    """The squared force, integrated, and the constraints times multipliers."""
    multipliers = numpy.random.default_rng(1).standard_normal(4 * (nodes - 1) + 8)

    def f(np: Any, z: Any) -> Any:
        force = np.reshape(z, (nodes, 5))[:, 4]
        constraints = trajectory_constraints(nodes, np, z)
        return DURATION / (nodes - 1) * np.sum(force * force) + np.sum(np.asarray(multipliers) * constraints)

    start = numpy.random.default_rng(0).standard_normal(5 * nodes)
    label = f"cart-pole, {nodes:,} nodes: Hessian of Lagrangian, lower triangle"
    return Structured(label, f, start, of_hessian=True, lower=True)


def sightings(observations: int) -> tuple[int, int, numpy.ndarray, numpy.ndarray, numpy.random.Generator]:
    """How many cameras and points there are, which camera sees which point, and a generator for all else."""
    cameras, points = max(8, observations // 600), max(30, observations // 4)
    random = numpy.random.default_rng(2)
    seen = numpy.sort(random.integers(0, points, observations))
    return cameras, points, random.integers(0, cameras, observations), seen, random


def bundle_adjustment(observations: int) -> Structured:
    """How far points, seen by cameras, are from where they were observed."""
    cameras, points, seeing, seen, random = sightings(observations)
    observed = random.standard_normal((observations, 2))

    def f(np: Any, z: Any) -> Any:
        table = np.take(np.reshape(z[: CAMERA * cameras], (cameras, CAMERA)), seeing, 0)
        places = np.take(np.reshape(z[CAMERA * cameras :], (points, POINT)), seen, 0)
        x, y = projection(np, [table[:, k] for k in range(CAMERA)], [places[:, k] for k in range(POINT)])
        return np.reshape(np.stack([x, y], 1) - np.asarray(observed), (-1,))

    start = 0.1 * random.standard_normal(CAMERA * cameras + POINT * points)
    start[CAMERA * cameras + 2 :: POINT] += 5.0
    return Structured(f"bundle adjustment, {observations:,} observations: Jacobian", f, start)


def projection(np: Any, camera: list[Any], point: list[Any]) -> tuple[Any, Any]:
    """The pixel at which a camera sees a point: a rotation by Rodrigues' formula, and radial distortion."""
    w1, w2, w3, c1, c2, c3, focal, u, v, k1, k2 = camera
    x1, x2, x3 = point[0] - c1, point[1] - c2, point[2] - c3
    angle = np.sqrt(w1 * w1 + w2 * w2 + w3 * w3)
    cos, sin = np.cos(angle), np.sin(angle)
    a1, a2, a3 = w1 / angle, w2 / angle, w3 / angle
    along = (a1 * x1 + a2 * x2 + a3 * x3) * (1.0 - cos)
    y1 = x1 * cos + (a2 * x3 - a3 * x2) * sin + a1 * along
    y2 = x2 * cos + (a3 * x1 - a1 * x3) * sin + a2 * along
    y3 = x3 * cos + (a1 * x2 - a2 * x1) * sin + a3 * along
    p, q = y1 / y3, y2 / y3
    square = p * p + q * q
    scale = focal * (1.0 + k1 * square + k2 * square * square)
    return u + scale * p, v + scale * q


class CasadiNumpy:
    """The names that the functions above use, on CasADi's matrices, which are stored by columns."""

    def __init__(self) -> None:
        import casadi

        self.casadi = casadi
        self.sin, self.cos, self.sqrt = casadi.sin, casadi.cos, casadi.sqrt

    def asarray(self, x: numpy.ndarray) -> Any:
        return self.casadi.DM(x.astype(float))

    def sum(self, x: Any) -> Any:
        return self.casadi.sum1(self.casadi.vec(x))

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        flat = self.casadi.vec(x.T)
        if shape == (-1,):
            return flat
        rows, cols = shape
        return self.casadi.reshape(flat, cols, rows).T

    def concatenate(self, parts: list[Any]) -> Any:
        return self.casadi.vertcat(*parts)

    def stack(self, parts: list[Any], axis: int) -> Any:
        assert axis == 1
        return self.casadi.horzcat(*parts)

    def roll(self, x: Any, shift: int, axis: int) -> Any:
        if axis == 0:
            return self.casadi.vertcat(x[-shift:, :], x[:-shift, :])
        return self.casadi.horzcat(x[:, -shift:], x[:, :-shift])

    def take(self, x: Any, indices: numpy.ndarray, axis: int) -> Any:
        assert axis == 0
        return x[indices.tolist(), :]
