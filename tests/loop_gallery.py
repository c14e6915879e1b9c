"""Loops of Python as people write them, with the number of equations that rolling leaves of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import ftrans as ft
from ftrans.nn import random


class Example(NamedTuple):
    """A function of `steps` and arrays.

    Attributes:
        name: what it is known as.
        function: the function; it returns an array.
        args: the arrays, or a function that gives them for a number of steps.
        size: the number of equations after rolling, whatever the number of steps.
        grows: whether some equations are left for each step, `size` of them for 20 steps.
    """

    name: str
    function: Callable[..., Any]
    args: Callable[[int], tuple[Any, ...]]
    size: int
    grows: bool = False


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape) * 0.5


def sine_steps(n: int, x: Any) -> Any:
    for _ in range(n):
        x = x + 0.01 * np.sin(x) * np.cos(1.1 * x)
    return np.sum(x)


def slope(u: Any) -> list[Any]:
    return [u[1], 0.5 * (1 - u[0] * u[0]) * u[1] - u[0]]


def runge_kutta_lists(n: int, u: Any) -> Any:
    u, h = [u[0], u[1]], 0.05
    for _ in range(n):
        k1 = slope(u)
        k2 = slope([a + 0.5 * h * k for a, k in zip(u, k1, strict=True)])
        k3 = slope([a + 0.5 * h * k for a, k in zip(u, k2, strict=True)])
        k4 = slope([a + h * k for a, k in zip(u, k3, strict=True)])
        rates = zip(u, k1, k2, k3, k4, strict=True)
        u = [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in rates]
    return u[0] * u[1]


def runge_kutta_path(n: int, u: Any) -> Any:
    def slope(u: Any) -> Any:
        return np.array([u[1], 0.5 * (1 - u[0] * u[0]) * u[1] - u[0]])

    path, h = [u], 0.05
    for _ in range(n):
        k1 = slope(u)
        k2 = slope(u + 0.5 * h * k1)
        k3 = slope(u + 0.5 * h * k2)
        k4 = slope(u + h * k3)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(u)
    return np.sum(np.stack(path)[:, 0] ** 2)


def runge_kutta_filled(n: int, u: Any) -> Any:
    y, h = np.zeros((n + 1, 2)) * u[0], 0.05
    y[0] = u

    def slope(u: Any) -> Any:
        d = np.zeros_like(u)
        d[0] = u[1]
        d[1] = 0.5 * (1 - u[0] * u[0]) * u[1] - u[0]
        return d

    for i in range(n):
        k1 = slope(y[i])
        k2 = slope(y[i] + h * k1)
        y[i + 1] = y[i] + 0.5 * h * (k1 + k2)
    return np.sum(y * y)


def lstm(n: int, W: Any, b: Any, x: Any) -> Any:
    h = c = np.zeros(4)
    for t in range(n):
        z = W @ np.concatenate([x[t], h]) + b
        i, f, o, g = z[:4], z[4:8], z[8:12], z[12:]
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    return np.sum(h * h)


def kalman(n: int, y: Any, q: Any) -> Any:
    F, H = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    m, P, loss = np.zeros(2), np.eye(2), 0.0
    for t in range(n):
        m = F @ m
        P = F @ P @ F.T + q[0] ** 2 * np.eye(2)
        S = H @ P @ H.T + q[1] ** 2
        error = y[t] - H @ m
        loss = loss + 0.5 * (np.log(S[0, 0]) + error[0] ** 2 / S[0, 0])
        K = P @ H.T / S[0, 0]
        m = m + K @ error
        P = P - K @ H @ P
    return loss


def heat(n: int, u: Any) -> Any:
    for _ in range(n):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u**2)


def heat_in_place(n: int, u: Any) -> Any:
    u = u.copy()
    for _ in range(n):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def leapfrog(n: int, q: Any, p: Any) -> Any:
    for _ in range(n):
        p = p - 0.05 * np.sin(q)
        q = q + 0.1 * p
        p = p - 0.05 * np.sin(q)
    return np.sum(q * q + p)


def wave(n: int, u: Any) -> Any:
    before, now = u, u
    for _ in range(n):
        before, now = now, 2 * now - before + 0.1 * (np.roll(now, 1) - 2 * now + np.roll(now, -1))
    return np.sum(now**2)


def newton(n: int, a: Any) -> Any:
    x = a
    for _ in range(n):
        x = x - (x**3 - a) / (3 * x**2)
    return np.sum(x)


def taylor(n: int, x: Any) -> Any:
    term = total = np.ones_like(x)
    for k in range(1, n + 1):
        term = term * x / k
        total = total + term
    return np.sum(total)


def markov_chain(n: int, A: Any, p: Any) -> Any:
    p, loss = np.exp(p) / np.sum(np.exp(p)), 0.0
    for t in range(n):
        p = np.abs(A[t]) @ p
        loss = loss + np.log(np.sum(p))
        p = p / np.sum(p)
    return loss


def power_iteration(n: int, A: Any, v: Any) -> Any:
    for _ in range(n):
        v = A @ v
        v = v / np.sqrt(np.sum(v * v))
    return v @ A @ v


def double_loop(n: int, x: Any) -> Any:
    total = 0.0
    for i in range(n):
        for j in range(9):
            total = total + np.sin(x[i] * x[j]) * np.cos(x[j])
    return total


def soft_dtw(n: int, x: Any, y: Any) -> Any:
    r = np.zeros((n + 1, 10)) + 0.0 * x[0]
    for i in range(n):
        for j in range(9):
            a, b, c = r[i, j], r[i, j + 1], r[i + 1, j]
            r[i + 1, j + 1] = (x[i] - y[j]) ** 2 - np.log(np.exp(-a) + np.exp(-b) + np.exp(-c))
    return r[n, 9]


def velocity_verlet(n: int, x: Any, v: Any) -> Any:
    def force(x: Any) -> Any:
        return -np.sin(x) * np.exp(-np.sum(x * x))

    for _ in range(n):
        # The force at the end of a step is that at the beginning of the next.
        v = v + 0.05 * force(x)
        x = x + 0.1 * v
        v = v + 0.05 * force(x)
    return np.sum(x * v)


@ft.custom_vjp
def with_clipped_gradient(x: Any) -> Any:
    return 1.0 * x


with_clipped_gradient.defvjp(lambda x: (1.0 * x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))


def rule_in_each_step(n: int, x: Any) -> Any:
    for _ in range(n):
        x = with_clipped_gradient(x + 0.1 * np.sin(x))
    return np.sum(x)


@ft.custom_jvp
def own_sine(x: Any) -> Any:
    return np.sin(x)


@ft.custom_jvp
def own_cosine(x: Any) -> Any:
    return np.cos(x)


own_sine.defjvp(lambda xs, ts: (own_sine(*xs), own_cosine(*xs) * ts[0]))
own_cosine.defjvp(lambda xs, ts: (own_cosine(*xs), -own_sine(*xs) * ts[0]))


def rules_that_call_themselves(n: int, x: Any) -> Any:
    for _ in range(n):
        x = 0.5 * own_sine(x) + own_cosine(x)
    return np.sum(x)


def fibonacci(n: int, x: Any) -> Any:
    a, b = x, np.cos(x)
    for _ in range(n):
        a, b = b, np.sin(a) + 0.5 * b
    return np.sum(b)


def windows(n: int, x: Any, w: Any) -> Any:
    total = 0.0
    for t in range(n):
        total = total + np.tanh(np.dot(x[t : t + 5], w))
    return total


def reversed_rows(n: int, x: Any) -> Any:
    c = np.zeros(3)
    for t in reversed(range(n)):
        c = np.tanh(0.5 * c + x[t])
    return np.sum(c)


def forward_and_backward(n: int, x: Any, y: Any) -> Any:
    ahead = []
    for _ in range(n):
        x = np.sin(0.9 * x) + 0.2 * np.cos(x)
        ahead.append(x)
    smooth = []
    for x in reversed(ahead):
        y = 0.5 * np.tanh(y + x)
        smooth.append(y)
    return np.sum(np.stack(smooth) * np.arange(n)[:, None])


def time_dependent(n: int, x: Any) -> Any:
    for t in range(n):
        x = x + 0.1 * np.cos(0.3 * t) * np.sin(x) + 0.1 / (t + 1)
    return np.sum(x)


def adam(n: int, p: Any) -> Any:
    m = v = np.zeros_like(p)
    for t in range(1, n + 1):
        g = ft.grad(lambda p: np.sum((p**2 - 1) ** 2))(p)
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g * g
        p = p - 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    return np.sum(p)


def descent(n: int, p: Any, A: Any) -> Any:
    for _ in range(n):
        p = p - 0.1 * ft.grad(lambda p: np.sum(np.tanh(A @ p) ** 2))(p)
    return np.sum(p)


def noisy_walk(n: int, x: Any) -> Any:
    key = random.key(0)
    for _ in range(n):
        key, sub = random.split(key)
        x = 0.9 * x + 0.1 * np.sin(x) * random.normal(sub, (3,), np.float64)
    return np.sum(x)


def histogram(n: int, x: Any) -> Any:
    found = []
    for t in range(n):
        found.append(np.exp(-(x[t] ** 2)) * np.sin(x[t]))
    return np.sum(np.stack(found) ** 2)


def guarded(n: int, x: Any) -> Any:
    for _ in range(n):
        if np.sum(x) < 1e6:
            x = np.sin(x) + 0.5 * np.cos(x)
    return np.sum(x)


def prefix_sums(n: int, x: Any) -> Any:
    y = x.copy()
    for i in range(1, n):
        y[i] = 0.9 * np.sin(y[i - 1]) + x[i]
    return np.sum(y**2)


def triangular(n: int, L: Any, b: Any) -> Any:
    y = np.zeros(n) + 0.0 * b
    for i in range(n):
        y[i] = b[i] / (2.0 + L[i, i] ** 2)
        for j in range(i):
            y[i] = y[i] - 0.1 * L[i, j] * y[j]
    return np.sum(y * y)


GALLERY = [
    Example("sine steps", sine_steps, lambda n: (draw(3),), 8),
    Example("Runge-Kutta on lists", runge_kutta_lists, lambda n: (draw(2),), 52),
    Example("Runge-Kutta with its path", runge_kutta_path, lambda n: (draw(2),), 101),
    Example("Heun's method into an array", runge_kutta_filled, lambda n: (draw(2),), 59),
    Example("LSTM", lstm, lambda n: (draw(16, 7), draw(16), draw(n, 3)), 25),
    Example("Kalman filter", kalman, lambda n: (draw(n), np.array([0.3, 0.2])), 74),
    Example("heat", heat, lambda n: (draw(20),), 14),
    Example("heat in place", heat_in_place, lambda n: (draw(20),), 21),
    Example("leapfrog", leapfrog, lambda n: (draw(3), draw(3, seed=1)), 12),
    Example("wave", wave, lambda n: (draw(20),), 16),
    Example("Newton", newton, lambda n: (np.array([2.0, 3.0]),), 8),
    Example("Taylor series", taylor, lambda n: (draw(3),), 6),
    Example("Markov chain", markov_chain, lambda n: (draw(n, 3, 3), draw(3)), 14),
    Example("power iteration", power_iteration, lambda n: (draw(3, 3), draw(3, seed=1)), 9),
    Example("double loop", double_loop, lambda n: (draw(max(n, 9)),), 8),
    Example("soft DTW", soft_dtw, lambda n: (draw(n), draw(9, seed=1)), 373),
    Example("a rule of the user's", rule_in_each_step, lambda n: (draw(3),), 7),
    Example("velocity Verlet", velocity_verlet, lambda n: (draw(3), draw(3, seed=1)), 25),
    Example("rules that call themselves", rules_that_call_themselves, lambda n: (draw(3),), 8),
    Example("lag of two", fibonacci, lambda n: (draw(3),), 6),
    Example("windows", windows, lambda n: (draw(n + 5), draw(5, seed=1)), 5),
    Example("reversed rows", reversed_rows, lambda n: (draw(n, 3),), 11),
    Example("forward and backward", forward_and_backward, lambda n: (draw(3), draw(3, seed=1)), 16),
    Example("time in the step", time_dependent, lambda n: (draw(3),), 8),
    Example("Adam", adam, lambda n: (draw(3),), 23),
    Example("descent", descent, lambda n: (draw(3), draw(3, 3)), 10),
    Example("noisy walk", noisy_walk, lambda n: (draw(3),), 29),
    Example("stacked list", histogram, lambda n: (draw(n, 3),), 8),
    Example("guards", guarded, lambda n: (draw(3),), 8),
    Example("y[i] = f(y[i - 1])", prefix_sums, lambda n: (draw(n),), 13),
    Example("triangular", triangular, lambda n: (draw(n, n), draw(n, seed=1)), 955, grows=True),
]
