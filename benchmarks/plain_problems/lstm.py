"""A recurrent network that guesses the next character, as in a comparison of differentiation tools.

Its gates are products by elements, so that nearly all of the time goes into small elementwise operations. (Srajer,
Kukelova, Fitzgibbon, A benchmark of selected algorithmic differentiation tools, 2018: "LSTM".)
"""

from __future__ import annotations

import functools
from typing import Any

from numpy.random import Generator

from . import native
from .loops import sigmoid
from .problem import Problem, Targets

BITS = 14  # of a character


def cell_step(np, weight, bias, hidden, cell, x):
    gates = np.concatenate([x, hidden, x, hidden]) * weight + bias
    forget, add, out = (sigmoid(np, gates[i * BITS : (i + 1) * BITS]) for i in range(3))
    cell = cell * forget + add * np.tanh(gates[3 * BITS :])
    return out * np.tanh(cell), cell


def network(np, params, layers, states, x):
    """The next states of all layers, and how likely each bit is, by its logarithm."""
    main, extra = params
    following = []
    x = x * extra[0]
    for layer in range(layers):
        hidden, cell = cell_step(np, main[2 * layer], main[2 * layer + 1], states[2 * layer], states[2 * layer + 1], x)
        following += [hidden, cell]
        x = hidden
    guess = x * extra[1] + extra[2]
    return following, guess - np.log(np.sum(np.exp(guess)) + 2.0)


def character_loss(np, params, start, characters):
    """Minus the mean log likelihood of the next character's bits."""
    layers = len(start) // 2
    states, total = [start[k] for k in range(2 * layers)], 0.0
    for t in range(len(characters) - 1):
        states, logs = network(np, params, layers, states, characters[t])
        total = total + np.sum(characters[t + 1] * logs)
    return -total / ((len(characters) - 1) * BITS)


def character_loss_by_scan(jax, params, start, characters):
    np = jax.numpy
    layers = len(start) // 2

    def step(states, x):
        states, logs = network(np, params, layers, states, x)
        return states, logs

    _, logs = jax.lax.scan(step, list(np.asarray(start)), characters[:-1])
    return -np.sum(characters[1:] * logs) / ((len(characters) - 1) * BITS)


def lstm_arguments(random: Generator, layers: int, characters: int) -> Any:
    params = random.normal(size=(2 * layers, 4 * BITS)), random.normal(size=(3, BITS))
    return params, random.normal(size=(2 * layers, BITS)), random.integers(2, size=(characters, BITS)).astype(float)


def lstm_problem(layers: int, characters: int) -> Problem:
    return Problem(
        f"LSTM, {layers} layers, {characters:,} characters, loop of Python",
        character_loss,
        character_loss_by_scan,
        functools.partial(lstm_arguments, layers=layers, characters=characters),
        Targets(careful=1.2),
        cpp=lambda params, start, characters: native.lstm(*params, start, characters),
        is_for_jax=False,
    )


def problems() -> list[Problem]:
    return [lstm_problem(4, 4096)]


def small_problems() -> list[Problem]:
    """The same in small, for tests."""
    return [lstm_problem(2, 4)]
