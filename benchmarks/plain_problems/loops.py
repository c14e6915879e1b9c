"""Loops of Python, and the same by `jax.lax.scan`."""

from __future__ import annotations

import functools
from typing import Any

import numpy
from numpy.random import Generator

from .problem import Problem, Targets

LOOP = Targets(careful=1.0, first=1.5)
INTERVAL = 0.01


def body_of_four(np, x, steps):
    for _ in range(steps):
        x = x + 0.01 * np.sin(x) * np.cos(1.1 * x)
    return np.sum(x * x)


def body_of_four_by_scan(jax, x, steps):
    np = jax.numpy

    def step(x, _):
        return x + 0.01 * np.sin(x) * np.cos(1.1 * x), None

    x, _ = jax.lax.scan(step, x, length=steps)
    return np.sum(x * x)


def oscillator(np, state, mu):
    """Van der Pol's equation."""
    x, v = state[0], state[1]
    return np.stack([v, mu * (1.0 - x * x) * v - x])


def runge_kutta(slope, state, interval):
    k1 = slope(state)
    k2 = slope(state + 0.5 * interval * k1)
    k3 = slope(state + 0.5 * interval * k2)
    k4 = slope(state + interval * k3)
    return state + interval / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def integrated(np, params, steps):
    state, mu = params
    for _ in range(steps):
        state = runge_kutta(lambda s: oscillator(np, s, mu), state, INTERVAL)
    return np.sum(state * state)


def integrated_by_scan(jax, params, steps):
    state, mu = params

    def step(state, _):
        return runge_kutta(lambda s: oscillator(jax.numpy, s, mu), state, INTERVAL), None

    state, _ = jax.lax.scan(step, state, length=steps)
    return jax.numpy.sum(state * state)


def kalman_step(np, mean, covariance, seen, model):
    """Predict, then correct by what is seen; also minus twice the log likelihood of that."""
    transition, observe, process, noise = model
    mean = transition @ mean
    covariance = transition @ covariance @ transition.T + process
    innovation = seen - observe @ mean
    spread = observe @ covariance @ observe.T + noise
    gain = covariance @ observe.T @ np.linalg.inv(spread)
    loss = np.log(np.linalg.det(spread)) + innovation @ np.linalg.solve(spread, innovation)
    return mean + gain @ innovation, covariance - gain @ observe @ covariance, loss


def kalman_model(np, params):
    """A point in the plane with a velocity, of which places are seen."""
    transition = numpy.eye(4) + 0.1 * numpy.eye(4, k=2)
    process = np.exp(params[0]) * np.eye(4)
    return transition, numpy.eye(2, 4), process, np.exp(params[1]) * np.eye(2)


def kalman(np, params, observed):
    model = kalman_model(np, params)
    mean, covariance, loss = np.zeros(4), np.eye(4), 0.0
    for t in range(len(observed)):
        mean, covariance, more = kalman_step(np, mean, covariance, observed[t], model)
        loss = loss + more
    return 0.5 * loss


def kalman_by_scan(jax, params, observed):
    np = jax.numpy
    model = kalman_model(np, params)

    def step(carry, seen):
        mean, covariance, loss = kalman_step(np, *carry, seen, model)
        return (mean, covariance), loss

    _, losses = jax.lax.scan(step, (np.zeros(4), np.eye(4)), observed)
    return 0.5 * np.sum(losses)


def heat(np, u, steps):
    for _ in range(steps):
        u = u + 0.2 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))
    return np.sum(u * u)


def heat_by_scan(jax, u, steps):
    np = jax.numpy

    def step(u, _):
        return u + 0.2 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)), None

    u, _ = jax.lax.scan(step, u, length=steps)
    return np.sum(u * u)


def sigmoid(np, x):
    return 1.0 / (1.0 + np.exp(-x))


def gated(np, z, cell):
    size = z.shape[-1] // 4
    add, forget, out = (sigmoid(np, z[..., i * size : (i + 1) * size]) for i in range(3))
    cell = forget * cell + add * np.tanh(z[..., 3 * size :])
    return out * np.tanh(cell), cell


def recurrent(np, params, inputs):
    into, across, bias = params
    hidden = cell = np.zeros((inputs.shape[1], across.shape[0]))
    for t in range(len(inputs)):
        hidden, cell = gated(np, inputs[t] @ into + hidden @ across + bias, cell)
    return np.sum(hidden * hidden)


def recurrent_by_scan(jax, params, inputs):
    into, across, bias = params
    np = jax.numpy
    start = np.zeros((inputs.shape[1], across.shape[0]))

    def step(carry, x):
        hidden, cell = carry
        return gated(np, x + hidden @ across, cell), None

    (hidden, _), _ = jax.lax.scan(step, (start, start), inputs @ into + bias)
    return np.sum(hidden * hidden)


def bound(function: Any, steps: int | None) -> Any:
    return function if steps is None else functools.partial(function, steps=steps)


def loop(label: str, plain: Any, careful: Any, arguments: Any, steps: int | None, is_for_jax: bool = False) -> Problem:
    return Problem(label, bound(plain, steps), bound(careful, steps), arguments, LOOP, is_for_jax=is_for_jax)


def body_problem(steps: int) -> Problem:
    label = f"loop of {steps:,} steps, four operations"
    return loop(label, body_of_four, body_of_four_by_scan, lambda random: (random.normal(size=3),), steps)


def runge_kutta_problem(steps: int) -> Problem:
    label = f"loop of {steps:,} steps, Runge-Kutta"

    def arguments(random: Generator) -> Any:
        return ((random.normal(size=2), numpy.array(1.5)),)

    return loop(label, integrated, integrated_by_scan, arguments, steps)


def kalman_problem(steps: int) -> Problem:
    label = f"loop of {steps:,} steps, Kalman filter of 4 states"

    def arguments(random: Generator) -> Any:
        return numpy.array([-2.0, -1.0]), numpy.cumsum(0.1 * random.normal(size=(steps, 2)), 0)

    return loop(label, kalman, kalman_by_scan, arguments, None)


def heat_problem(steps: int) -> Problem:
    label = f"loop of {steps:,} steps, heat equation, 100 cells"
    return loop(label, heat, heat_by_scan, lambda random: (random.normal(size=100),), steps)


def recurrent_problem(steps: int, hidden: int = 64, batch: int = 8) -> Problem:
    label = f"loop of {steps:,} steps, LSTM cell, {hidden} states, batch {batch}"

    def arguments(random: Generator) -> Any:
        scale = 1.0 / numpy.sqrt(hidden)
        into, across = scale * random.normal(size=(16, 4 * hidden)), scale * random.normal(size=(hidden, 4 * hidden))
        return (into, across, numpy.zeros(4 * hidden)), random.normal(size=(steps, batch, 16))

    return loop(label, recurrent, recurrent_by_scan, arguments, None)


def problems() -> list[Problem]:
    return [
        body_problem(400),
        body_problem(5000),
        runge_kutta_problem(1000),
        kalman_problem(1000),
        heat_problem(200),
        recurrent_problem(100),
    ]


def small_problems() -> list[Problem]:
    """The same in a few steps, for tests."""
    return [
        body_problem(5),
        runge_kutta_problem(3),
        kalman_problem(4),
        heat_problem(5),
        recurrent_problem(3, hidden=4, batch=2),
    ]
