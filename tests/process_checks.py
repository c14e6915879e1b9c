"""What two processes do together in the tests of several processes; each function is one check.

All of them run in one process, too, whose results are the reference.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import ftrans as ft
from ftrans import nn
from ftrans.nn.training.folders import write_folder

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


# Checkpoints


def training(directory: Any, epochs: int, **options: Any) -> list[float]:
    """The losses of the epochs of a training whose parameters are divided over all devices, from where it was."""
    network = model()
    names = {"0.weight": ("data",), "0.bias": ("data",), "2.weight": (None, "data")}
    for path, cell in network.named_parameters():
        cell.value = jax.make_array_from_callback(cell.shape, sharding(*names.get(path, ())), cell.value.__getitem__)
    optimizer = nn.Optimizer(network, optax.sgd(0.1, momentum=0.9))
    rows = slice(jax.process_index(), None, jax.process_count())
    history = nn.fit(
        network,
        [(X[rows], Y[rows])] * 3,
        loss=nn.functional.mse_loss,
        optimizer=optimizer,
        epochs=epochs,
        directory=directory,
        resume=directory is not None,
        progress=False,
        **options,
    )
    assert network[0].weight.array.sharding == sharding("data")
    return list(history["loss"])


def checkpoints() -> dict[str, Any]:
    """A training that goes on from checkpoints of one process, and leaves its own."""
    nn.History.plot = lambda history, path: None  # type: ignore[method-assign, assignment]
    directory = Path(os.environ["CHECKPOINTS"])
    losses = {form: training(directory / form, 2, checkpoint_format=form) for form in ("safetensors", "orbax")}
    losses["by itself"] = training(directory / "new" / "folder", 2)
    return losses


def files() -> list[Any]:
    """What is saved and loaded outside of trainings."""
    directory = Path(os.environ["CHECKPOINTS"])
    network = nn.Linear(4, 8, bias=False)
    full = np.arange(32, dtype=np.float32).reshape(8, 4)
    network.weight.value = jax.make_array_from_callback((8, 4), sharding("data"), full.__getitem__)
    nn.save(directory / "linear.orbax", network)
    other = nn.Linear(4, 8, bias=False)
    other.weight.value = jax.make_array_from_callback((8, 4), sharding(None, "data"), np.zeros_like(full).__getitem__)
    found = nn.load(directory / "linear.orbax", like=other)
    other.load_state_dict(found)
    nn.save(directory / "gathered.safetensors", other.state_dict(gather=True))
    network.load_state_dict(other.state_dict())
    try:
        nn.save(directory / "divided.safetensors", network)
    except ValueError as error:
        refused = str(error)
    return [
        [*found["weight"].sharding.spec],
        [*network.weight.array.sharding.spec],
        np.array_equal(network.state_dict(gather=True)["weight"], full),
        refused,
    ]


def saves_for_ever() -> None:
    """Folders whose arrays and records have the same number, one after the other."""
    directory = Path(os.environ["CHECKPOINTS"])
    for number in range(10_000):
        write_folder(directory / "killed.orbax", {"a": divided(np.full((4, 9), number))}, {"number": number})
        print("saved", flush=True)
