"""What two processes do together in the tests of several processes; each function is one check.

All of them run in one process, too, whose results are the reference.
"""

from __future__ import annotations

import os
import time
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import ftrans as ft
from ftrans import nn

X = np.random.default_rng(0).normal(size=(32, 6)).astype(np.float32)
Y = np.sin(X @ np.arange(6, dtype=np.float32))[:, None]


def sharding(*spec: Any) -> NamedSharding:
    """How an array is divided over all devices."""
    mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec(*spec))


def divided(x: Any) -> Any:
    """An array that all processes have, divided over their devices."""
    return jax.make_array_from_callback(x.shape, sharding("data"), lambda index: x[index])


def branches() -> list[float]:
    """Python branches on arrays that are divided over the processes: compiled, and as they are."""

    def f(x: Any) -> Any:
        return np.where(x > 0, x, 0.0).sum() if x.mean() > -0.1 and x[3, 2] < 9 else (x * x).sum()

    x = divided(X)
    compiled = ft.jit(f)
    chosen = ft.grad(lambda x: np.sum(x[x[:, 0] > 0.5] ** 2))(x)
    return [*(float(compiled(v)) for v in (x, -x - 1, x)), float(ft.grad(f)(x).max()), float(chosen.sum())]


def model() -> nn.Module:
    """A small network."""
    nn.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def hand_written_steps() -> list[float]:
    """The losses of a training loop."""
    network = model()
    optimizer = nn.Optimizer(network, optax.adam(1e-2))

    @nn.jit
    def step(network: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, gradients = nn.value_and_grad(lambda network: nn.functional.mse_loss(network(x), y))(network)
        optimizer.step(gradients)
        return loss

    return [float(step(network, optimizer, divided(X), divided(Y))) for _ in range(5)]


def unequal_seeds() -> None:
    """Models that differ."""
    nn.manual_seed(jax.process_index())
    network = nn.Linear(6, 1)
    nn.jit(lambda network, x: network(x).sum())(network, divided(X))


def unequal_data() -> None:
    """Batches of NumPy that differ."""
    x = X + jax.process_index()
    ft.jit(lambda x, y: (x * y).sum())(divided(X), x)


def unequal_programs() -> None:
    """Settings that differ."""
    rate = 0.1 * (1 + jax.process_index())
    ft.jit(lambda x: rate * x.sum())(divided(X))


def dies() -> None:
    """Process 1 is killed; the other goes on."""
    f = ft.jit(lambda x: x.sum())
    x = divided(X)
    float(f(x))
    print("begun", time.monotonic(), flush=True)
    if jax.process_index():
        os.kill(os.getpid(), 9)
    for _ in range(1000):
        float(f(x))
        time.sleep(0.02)
