"""Small define-by-run programs as people write them, the same text for ftrans and torch: CPU time of a step.

Their arrays are small, so what counts is the work around the arithmetic.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .harness import Contender, Row, Table, time_side_by_side

LEARNING_RATE = 1e-3
AT_MOST = 1.5


class Library(NamedTuple):
    """What the programs call by name; all else is methods of tensors."""

    tensor: Callable[..., Any]
    grad: Callable[..., Any]
    no_grad: Callable[..., Any]


Step = Callable[[], Any]


def run() -> Table:
    libraries = {name: made() for name, made in LIBRARIES.items() if importlib.util.find_spec(name)}
    rows = [row(label, program, libraries) for label, program in PROGRAMS.items()]
    return Table("small programs, define-by-run: CPU time of a step, on one thread", rows)


def row(label: str, program: Callable[[Library], Step], libraries: dict[str, Library]) -> Row:
    contenders = {name: Contender(program(library)) for name, library in libraries.items()}
    timings = time_side_by_side(contenders, reference="torch", seconds=6.0, now=time.process_time)
    columns = {name: timings.typical(name) for name in LIBRARIES}
    return Row(label, columns, [timings.ratio("ftrans", "torch", AT_MOST)])


def ours() -> Library:
    from ftrans import autograd

    return Library(autograd.tensor, autograd.grad, autograd.no_grad)


def torchs() -> Library:
    import torch

    torch.set_num_threads(1)
    return Library(torch.tensor, torch.autograd.grad, torch.no_grad)


LIBRARIES = {"ftrans": ours, "torch": torchs}


def parameters(lib: Library, *shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [lib.tensor(0.3 * rng.standard_normal(shape), requires_grad=True) for shape in shapes]


def descend(lib: Library, weights: list[Any]) -> None:
    """A step of plain gradient descent."""
    with lib.no_grad():
        for w in weights:
            w -= LEARNING_RATE * w.grad
            w.grad = None


def reinforce(lib: Library) -> Step:
    """An episode with a pole on a cart, and the policy gradient."""
    w1, b1, w2, b2 = weights = parameters(lib, (4, 32), (32,), (32, 2), (2,))

    def step() -> Any:
        rng = np.random.default_rng(1)
        state, chosen, rewards = np.zeros(4), [], []
        for _ in range(50):
            logits = (lib.tensor(state) @ w1 + b1).relu() @ w2 + b2
            log_p = logits - logits.exp().sum().log()
            action = int(rng.random() < log_p[1].exp().item())
            chosen.append(log_p[action])
            state = moved(state, action)
            rewards.append(1.0 - abs(state[2]))
        returns = np.cumsum(rewards[::-1])[::-1]
        returns = lib.tensor((returns - returns.mean()) / returns.std())
        loss = sum(-p * r for p, r in zip(chosen, returns, strict=True))
        loss.backward()
        descend(lib, weights)
        return loss.item()

    return step


def moved(state: np.ndarray, action: int) -> np.ndarray:
    """The cart and the pole, 20 ms later."""
    _, v, angle, spin = state.tolist()
    push = (20.0 * action - 10.0 + 0.05 * spin**2 * np.sin(angle)) / 1.1
    turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    return state + 0.02 * np.array([v, push, spin, turn])


def gradient_penalty(lib: Library) -> Step:
    """A step of the critic of a WGAN-GP: it differentiates the norm of a gradient."""
    w1, b1, w2, b2, w3 = weights = parameters(lib, (2, 32), (32,), (32, 32), (32,), (32, 1))
    rng = np.random.default_rng(1)
    real, fake, mix = [lib.tensor(x) for x in (rng.random((64, 2)), rng.random((64, 2)) + 1, rng.random((64, 1)))]

    def critic(x: Any) -> Any:
        return ((x @ w1 + b1).relu() @ w2 + b2).relu() @ w3

    def step() -> Any:
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = lib.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((((slope * slope).sum(1) + 1e-12).sqrt() - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        loss.backward()
        descend(lib, weights)
        return loss.item()

    return step


def pinn(lib: Library) -> Step:
    """The residual of Burgers' equation at 64 places, with the initial condition."""
    weights = parameters(lib, (1, 20), (1, 20), (20,), (20, 20), (20,), (20, 20), (20,), (20, 1), (1,))
    rng = np.random.default_rng(1)
    x, t = [lib.tensor(rng.random((64, 1)), requires_grad=True) for _ in range(2)]
    start = lib.tensor(np.zeros((64, 1)))

    def u(x: Any, t: Any) -> Any:
        wx, wt, b1, w2, b2, w3, b3, w4, b4 = weights
        h = (x @ wx + t @ wt + b1).tanh()
        h = (h @ w2 + b2).tanh()
        h = (h @ w3 + b3).tanh()
        return h @ w4 + b4

    def step() -> Any:
        inside = u(x, t)
        u_x, u_t = lib.grad(inside.sum(), (x, t), create_graph=True)
        (u_xx,) = lib.grad(u_x.sum(), x, create_graph=True)
        residual = u_t + inside * u_x - 0.01 * u_xx
        first = u(x, start) + (3.14159 * x).sin()
        loss = (residual * residual).mean() + (first * first).mean()
        loss.backward()
        descend(lib, weights)
        return loss.item()

    return step


def lstm_cell(lib: Library) -> Step:
    """100 steps of an LSTM cell, in a loop of Python."""
    size = 16
    wx, wh, b, last = weights = parameters(lib, (8, 4 * size), (size, 4 * size), (4 * size,), (size, 1))
    rng = np.random.default_rng(1)
    inputs = [lib.tensor(rng.standard_normal((4, 8))) for _ in range(100)]
    zeros = lib.tensor(np.zeros((4, size)))

    def step() -> Any:
        h = c = zeros
        for x in inputs:
            gates = x @ wx + h @ wh + b
            i, f, o = [gates[:, k * size : (k + 1) * size].sigmoid() for k in range(3)]
            c = f * c + i * gates[:, 3 * size :].tanh()
            h = o * c.tanh()
        loss = ((h @ last) ** 2).mean()
        loss.backward()
        descend(lib, weights)
        return loss.item()

    return step


PROGRAMS = {
    "REINFORCE, 50 steps of an environment": reinforce,
    "WGAN-GP, critic": gradient_penalty,
    "PINN, second derivatives": pinn,
    "LSTM cell, 100 steps": lstm_cell,
}
