"""The gradient of loops with a known number of steps: against jax, and against the loop itself."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from .harness import Row, Table, time_side_by_side
from .libraries import Library, ftrans_jit_on, jax_jit_on

STEPS = 1000


def lstm(np: Any, params: Any, inputs: Any, initial: Any, scan: Any) -> Any:
    """A small cell with gates, the usual subject of such measurements."""
    weights, bias = params
    size = len(initial)

    def gate(x: Any) -> Any:
        return 0.5 * (np.tanh(0.5 * x) + 1)

    def step(carry: Any, x: Any) -> Any:
        hidden, cell = carry
        z = weights @ np.concatenate([x, hidden]) + bias
        add, forget, value, out = (z[i * size : (i + 1) * size] for i in range(4))
        cell = gate(forget) * cell + gate(add) * np.tanh(value)
        return (gate(out) * np.tanh(cell), cell), None

    (hidden, cell), _ = scan(step, (initial, initial), inputs)
    return np.sum(hidden * hidden) + np.sum(cell)


def recurrence(np: Any, params: Any, inputs: Any, initial: Any, scan: Any) -> Any:
    """The simplest cell with a matrix product."""
    weights, bias = params
    hidden, _ = scan(lambda h, x: (np.tanh(weights @ h + bias + x), None), initial, inputs)
    return np.sum(hidden * hidden)


def pendulums(np: Any, params: Any, inputs: Any, initial: Any, scan: Any) -> Any:
    """Independent oscillators by a symplectic Euler method: elementwise operations only."""
    _, stiffness = params

    def step(state: Any, push: Any) -> Any:
        angle, momentum = state
        momentum = momentum - 0.01 * np.sin(angle) * stiffness[0] + 0.001 * push
        return (angle + 0.01 * momentum, momentum), None

    (angle, momentum), _ = scan(step, (initial, 0.5 * initial), inputs)
    return np.sum(angle * angle) + np.sum(momentum)


class Cell(NamedTuple):
    """A loop to measure, and how many rows and columns its weights have per state."""

    label: str
    function: Callable[..., Any]
    rows: int
    columns: int


CELLS = [Cell("LSTM-like cell", lstm, 4, 2), Cell("tanh cell", recurrence, 1, 1), Cell("pendulums", pendulums, 1, 1)]


def run(device: Any) -> Table:
    return Table(
        f"scan: gradient of {STEPS:,} compiled steps, on {device.device_kind}",
        [row(cell, size, device) for cell in CELLS for size in (8, 64)],
    )


def row(cell: Cell, size: int, device: Any) -> Row:
    label = f"{cell.label}, {size} states"
    print(f"  {label}", file=sys.stderr)
    ours, theirs = ftrans_jit_on(device), jax_jit_on(device)
    arguments = arguments_of(cell, size)

    def contender(library: Library) -> Any:
        return library.contender(functools.partial(cell.function, scan=library.scan), arguments)

    gradients = {"ftrans": contender(ours), "jax": contender(theirs)}
    beside = time_side_by_side(gradients, reference="jax", seconds=2.5)
    both = {"ftrans": gradients["ftrans"], "function alone": contender(without_gradient(ours))}
    alone = time_side_by_side(both, seconds=2.5)
    return Row(
        label,
        {**{name: beside.typical(name) for name in gradients}, "function alone": alone.typical("function alone")},
        [beside.ratio("ftrans", "jax", at_most=1.0), alone.ratio("ftrans", "function alone", at_most=3.0)],
    )


def without_gradient(library: Library) -> Library:
    import ftrans as ft

    return dataclasses.replace(library, gradient=ft.jit)


def arguments_of(cell: Cell, size: int) -> tuple[Any, ...]:
    random = numpy.random.default_rng(1)
    shape = (cell.rows * size, cell.columns * size)
    params = (random.normal(size=shape) / numpy.sqrt(shape[1]), random.normal(size=shape[0]))
    return params, random.normal(size=(STEPS, size)), random.normal(size=size)
