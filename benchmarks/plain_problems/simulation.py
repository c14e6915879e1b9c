"""Models that are simulated or fitted: bodies, an ordinary differential equation, splines, control, attention."""

from __future__ import annotations

import functools
from typing import Any

import numpy
from numpy.random import Generator

from .loops import runge_kutta
from .problem import Problem, Targets

EIGHT = Targets(careful=1.1)


def pull(np, places, masses):
    """Accelerations by gravity, softened."""
    between = places[None, :, :] - places[:, None, :]
    squares = np.sum(between**2, axis=2) + 0.01
    return np.sum((masses * squares**-1.5)[:, :, None] * between, axis=1)


def n_body(np, params, masses, steps):
    """How far bodies are from the middle after some steps of the leapfrog method."""
    places, velocities = params
    for _ in range(steps):
        velocities = velocities + 0.005 * pull(np, places, masses)
        places = places + 0.01 * velocities
        velocities = velocities + 0.005 * pull(np, places, masses)
    return np.sum(places**2)


def n_body_with_care(jax, params, masses, steps):
    """A scan; the force at the end of a step serves the next, and no array has an axis of three at its end."""
    np = jax.numpy

    def pull_by_axis(places):
        between = places[:, None, :] - places[:, :, None]
        squares = np.sum(between**2, axis=0) + 0.01
        return np.sum(masses * squares**-1.5 * between, axis=2)

    def step(carry, _):
        places, velocities, force = carry
        velocities = velocities + 0.005 * force
        places = places + 0.01 * velocities
        force = pull_by_axis(places)
        return (places, velocities + 0.005 * force, force), None

    places, velocities = (p.T for p in map(np.asarray, params))
    (places, _, _), _ = jax.lax.scan(step, (places, velocities, pull_by_axis(places)), length=steps)
    return np.sum(places**2)


def predator_prey(np, state, rates):
    x, y = state[0], state[1]
    return np.stack([rates[0] * x - rates[1] * x * y, rates[3] * x * y - rates[2] * y])


def fit(np, params, observed):
    """Lotka and Volterra's equations against observations of many populations at each step."""
    rates, state = params
    loss = 0.0
    for t in range(len(observed)):
        state = runge_kutta(lambda s: predator_prey(np, s, rates), state, 0.05)
        loss = loss + np.sum((state - observed[t]) ** 2)
    return loss


def fit_with_care(jax, params, observed):
    np = jax.numpy
    rates, state = params

    def step(state, seen):
        state = runge_kutta(lambda s: predator_prey(np, s, rates), state, 0.05)
        return state, np.sum((state - seen) ** 2)

    _, losses = jax.lax.scan(step, state, observed)
    return np.sum(losses)


def splines(np, params, x, y):
    """Least squares of cubic B-splines in coefficients and knots, by the recursion of Cox and de Boor."""
    coefficients, gaps = params
    knots = np.cumsum(np.exp(gaps))
    count = len(gaps) - 1
    basis = [np.where((x >= knots[i]) & (x < knots[i + 1]), 1.0, 0.0) for i in range(count)]
    for degree in range(1, 4):
        basis = [
            (x - knots[i]) / (knots[i + degree] - knots[i]) * basis[i]
            + (knots[i + degree + 1] - x) / (knots[i + degree + 1] - knots[i + 1]) * basis[i + 1]
            for i in range(count - degree)
        ]
    predicted = sum(coefficients[i] * basis[i] for i in range(count - 3))
    return np.sum((predicted - y) ** 2)


def splines_with_care(jax, params, x, y):
    """All functions of a degree as one array."""
    np = jax.numpy
    coefficients, gaps = params
    knots = np.cumsum(np.exp(gaps))[:, None]
    basis = np.where((x >= knots[:-1]) & (x < knots[1:]), 1.0, 0.0)
    for degree in range(1, 4):
        rise = (x - knots[: -degree - 1]) / (knots[degree:-1] - knots[: -degree - 1])
        fall = (knots[degree + 1 :] - x) / (knots[degree + 1 :] - knots[1:-degree])
        basis = rise * basis[:-1] + fall * basis[1:]
    return np.sum((coefficients @ basis - y) ** 2)


def diffusion(cells):
    """One implicit step of the heat equation."""
    return (1.0 + 0.4 * cells) * numpy.eye(cells) - 0.2 * cells * (numpy.eye(cells, k=1) + numpy.eye(cells, k=-1))


def control(np, forces, initial, target):
    """Heat sources over time that are to bring a rod to a target: a system of equations for each step."""
    u, cost, matrix = initial, 0.0, diffusion(len(initial))
    for t in range(len(forces)):
        u = np.linalg.solve(matrix, u + 0.1 * forces[t])
        cost = cost + 0.001 * np.sum(forces[t] ** 2)
    return cost + np.sum((u - target) ** 2)


def control_with_care(jax, forces, initial, target):
    """The matrix is factored once."""
    np = jax.numpy
    factors = jax.scipy.linalg.lu_factor(np.asarray(diffusion(len(initial))))

    def step(u, force):
        return jax.scipy.linalg.lu_solve(factors, u + 0.1 * force), None

    u, _ = jax.lax.scan(step, initial, forces)
    return 0.001 * np.sum(forces**2) + np.sum((u - target) ** 2)


def attention(np, params, x, heads):
    """Heads one by one."""
    queries, keys, values, out = params
    size = queries.shape[1] // heads
    results = []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        q, k, v = x @ queries[:, part], x @ keys[:, part], x @ values[:, part]
        scores = q @ k.T / numpy.sqrt(size)
        weights = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        weights = weights / np.sum(weights, axis=1, keepdims=True)
        results.append(weights @ v)
    return np.sum((np.concatenate(results, axis=1) @ out) ** 2)


def attention_with_care(jax, params, x, heads):
    """All heads as one batch."""
    np = jax.numpy
    queries, keys, values, out = params
    size = queries.shape[1] // heads
    q, k, v = ((x @ w).reshape(len(x), heads, size).transpose(1, 0, 2) for w in (queries, keys, values))
    weights = jax.nn.softmax(q @ k.transpose(0, 2, 1) / numpy.sqrt(size), axis=2)
    together = (weights @ v).transpose(1, 0, 2).reshape(len(x), heads * size)
    return np.sum((together @ out) ** 2)


def body_problem(bodies: int, steps: int) -> Problem:
    def arguments(random: Generator) -> Any:
        params = random.normal(size=(bodies, 3)), 0.1 * random.normal(size=(bodies, 3))
        return params, random.uniform(size=bodies)

    return Problem(
        f"n-body, {bodies} bodies, {steps} steps",
        functools.partial(n_body, steps=steps),
        functools.partial(n_body_with_care, steps=steps),
        arguments,
        EIGHT,
    )


def fit_problem(steps: int, populations: int) -> Problem:
    def arguments(random: Generator) -> Any:
        rates, state = numpy.array([1.1, 0.4, 0.4, 0.1]), random.uniform(0.5, 2.0, size=(2, populations))
        return (rates, state), random.uniform(size=(steps, 2, populations))

    return Problem(
        f"fit of an ODE, {populations} populations, {steps} steps",
        fit,
        fit_with_care,
        arguments,
        EIGHT,
        is_for_jax=False,
    )


def spline_problem(points: int, functions: int) -> Problem:
    def arguments(random: Generator) -> Any:
        params = random.normal(size=functions), 0.1 * random.normal(size=functions + 4)
        x = numpy.sort(random.uniform(4.0, functions + 1.0, size=points))
        return params, x, numpy.sin(x)

    return Problem(
        f"spline regression, {functions} functions, {points:,} points", splines, splines_with_care, arguments, EIGHT
    )


def control_problem(cells: int, steps: int) -> Problem:
    def arguments(random: Generator) -> Any:
        return 0.1 * random.normal(size=(steps, cells)), random.normal(size=cells), random.normal(size=cells)

    label = f"control of a rod of {cells} cells, {steps} implicit steps"
    return Problem(label, control, control_with_care, arguments, EIGHT, is_for_jax=False)


def attention_problem(length: int, width: int, heads: int) -> Problem:
    def arguments(random: Generator) -> Any:
        scale = 1.0 / numpy.sqrt(width)
        return tuple(scale * random.normal(size=(width, width)) for _ in range(4)), random.normal(size=(length, width))

    return Problem(
        f"attention, {heads} heads, width {width}, length {length}",
        functools.partial(attention, heads=heads),
        functools.partial(attention_with_care, heads=heads),
        arguments,
        EIGHT,
    )


def problems() -> list[Problem]:
    return [
        body_problem(100, 10),
        fit_problem(100, 20),
        spline_problem(5000, 20),
        control_problem(50, 100),
        attention_problem(256, 128, 8),
    ]


def small_problems() -> list[Problem]:
    """The same in small, for tests."""
    return [
        body_problem(3, 2),
        fit_problem(3, 2),
        spline_problem(9, 4),
        control_problem(4, 3),
        attention_problem(3, 4, 2),
    ]
