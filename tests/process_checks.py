"""What two processes do together in the tests of several processes; each function is one check.

All of them run in one process, too, whose results are the reference.
"""

from __future__ import annotations

import os
import signal
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


def whole(x: Any) -> Any:
    """An array that all processes have, whole on each of their devices."""
    return jax.make_array_from_callback(x.shape, sharding(), lambda index: x[index])


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


def unequal_models() -> None:
    """Models that differ, put on a mesh."""
    nn.manual_seed(jax.process_index())
    nn.shard(nn.Linear(6, 1), sharding().mesh, nn.data_parallel("data"))


def unequal_data() -> None:
    """Batches of NumPy that differ."""
    x = X + jax.process_index()
    ft.jit(lambda x, y: (x * y).sum())(divided(X), x)


def unequal_programs() -> None:
    """Settings that differ."""
    rate = 0.1 * (1 + jax.process_index())
    ft.jit(lambda x: rate * x.sum())(divided(X))


def dies(process: int = 1) -> None:
    """A process is killed; the other goes on."""
    f = ft.jit(lambda x: x.sum())
    x = divided(X)
    float(f(x))
    print("begun", time.monotonic(), flush=True)
    if jax.process_index() == process:
        os.kill(os.getpid(), 9)
    for _ in range(1000):
        float(f(x))
        time.sleep(0.02)


def first_dies() -> None:
    """Process 0 is killed, which JAX's coordinator is part of."""
    dies(0)


def hangs() -> None:
    """The data of process 1 take for ever, or one process leaves the loop."""

    def data() -> Any:
        yield from batches()()
        if jax.process_index():
            time.sleep(60)

    trained(data=data)


def leaves() -> None:
    """Process 1 leaves a hand-written loop, and goes on with something else."""
    f = ft.jit(lambda x: x.sum())
    x = divided(X)
    float(f(x))
    if jax.process_index():
        time.sleep(60)
    float(f(x))


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


def batches(**options: Any) -> Any:
    """A function that makes batches divided over all processes; each process cuts its own part."""
    data = nn.batches(X, Y, batch_size=8, seed=1, **options)

    def made() -> Any:
        for parts in data:
            yield tuple(jax.make_array_from_process_local_data(sharding("data"), part) for part in parts)

    return made


def trained(network: Any = None, data: Any = None, **options: Any) -> tuple[nn.Module, nn.History]:
    """A short training."""
    network = network or model()
    given = {"loss": nn.functional.mse_loss, "optimizer": optax.adam(1e-2), "epochs": 3, "progress": False, **options}
    return network, nn.fit(network, data or batches(), **given)


def fitted() -> list[float]:
    """Losses of nn.fit, with validation and a metric, and the sum of the parameters."""
    network, history = trained(validation=batches(), metrics={"mae": nn.functional.l1_loss}, restore_best=True)
    return [
        *history["loss"],
        *history["val_loss"],
        *history["val_mae"],
        *(float(p.numpy().sum()) for p in network.parameters()),
    ]


def on_a_mesh() -> list[float]:
    """Losses of nn.fit(mesh=), whose batches of NumPy are cut by each process, under several rules."""
    mesh = ft.mesh({"data": len(jax.devices())})
    data = nn.batches(X[:28], Y[:28], batch_size=8, seed=1)
    found = []
    for rules in (None, nn.fsdp("data", min_size=8)):
        _, history = trained(data=data, mesh=mesh, rules=rules, validation=data, epochs=2)
        found += [*history["loss"], *history["val_loss"]]
    # Arrays that all processes hold already, the second of them whole.
    halves = [(X[:16], Y[:16]), (X[16:], Y[16:])]
    for data in ([(divided(x), whole(y)) for x, y in halves], [(whole(x), whole(y)) for x, y in halves]):
        found += trained(data=data, mesh=mesh, epochs=2)[1]["loss"]
    return found


def other_shares() -> str:
    """Batches that are whole in each process, with data that each has a half of."""
    mesh = ft.mesh({"model": 2, "data": 2})
    data = nn.batches(X, Y, batch_size=8, seed=1)
    try:
        trained(data=data, mesh=mesh, batch_spec=ft.P("data"), rules=nn.tensor_parallel("model"))
    except ValueError as error:
        return str(error)
    return "no error"


def unequal_fits() -> list[str]:
    """Trainings whose models, settings, data or code differ between processes."""
    index = jax.process_index()
    short = nn.batches(X[: 32 - 8 * index], Y[: 32 - 8 * index], batch_size=8, seed=1)

    def unequal() -> Any:
        yield from list(batches()())[: 4 - index]

    nn.manual_seed(index)
    other = nn.Linear(6, 1)
    losses = [lambda a, b: ((a - b) ** 2).mean(), lambda a, b: abs(a - b).mean()]
    found = []
    for options in (
        {"network": other},
        {"data": short},
        {"epochs": 3 + index},
        {"loss": losses[index]},
        {"data": unequal},
        {"data": nn.batches(X, Y, batch_size=8, seed=1)},
        {"data": [(whole(X[:30]), whole(Y[:30]))], "mesh": ft.mesh({"data": -1})},
        {"data": [(X[:4], Y[:4]), (X[index:4], Y[index:4])], "mesh": ft.mesh({"data": -1})},
        {"directory": None if index else "unused", "uneven": ("pad", "drop")[index]},
    ):
        try:
            trained(**options)
            found.append("no error")
        except ValueError as error:
            found.append(str(error))
    return found


def failing_data() -> str:
    """The data of process 1 raises an error."""

    def data() -> Any:
        yield from batches()()
        if jax.process_index():
            raise OSError("the disk is gone")

    try:
        trained(data=data)
    except (RuntimeError, OSError) as error:
        return str(error)
    return "no error"


def stopped() -> list[Any]:
    """Process 1 is interrupted, or its callback stops the training; the processes agree on when."""

    class Interrupting(nn.Callback):
        def __init__(self, number: int) -> None:
            self.number = number

        def on_step_end(self, state: nn.FitState) -> None:
            if state.step == 20 and jax.process_index():
                os.kill(os.getpid(), self.number)

    def enough(state: nn.FitState) -> None:
        if state.epoch == 2 and jax.process_index():
            state.stop("enough")

    found: list[Any] = []
    data = nn.batches(np.tile(X, (8, 1)), np.tile(Y, (8, 1)), batch_size=8, seed=1)

    def many() -> Any:
        for parts in data:
            yield tuple(jax.make_array_from_process_local_data(sharding("data"), part) for part in parts)

    for number in (signal.SIGINT, signal.SIGTERM):
        _, history = trained(data=many, callbacks=Interrupting(number))
        found += [history.stopped, len(history), history.steps[-1][0]]
    _, history = trained(callbacks=enough)
    found += [history.stopped, len(history)]
    _, history = trained(patience=1, min_delta=10.0, epochs=5)
    return [*found, history.stopped, len(history)]


def divided_cells() -> list[Any]:
    """Reading a cell that is divided over the processes."""
    network = nn.Linear(4, 8, bias=False)
    network.weight.value = np.arange(32.0).reshape(8, 4)
    network.weight.value = divided(network.weight.value)
    whole = network.weight.numpy(gather=True)
    try:
        network.weight.numpy()
        said = "no error"
    except RuntimeError as error:
        said = str(error)
    return [repr(network.weight), float(whole.sum()), said, repr(network)]


def not_finite() -> str:
    """Data that are not finite, which all processes look for and find."""

    def data() -> Any:
        x = X.copy()
        x[5] = np.nan
        yield divided(x), divided(Y)

    try:
        trained(data=data)
    except FloatingPointError as error:
        return str(error)
    return "no error"


def first_alone_writes() -> list[Any]:
    """Checkpoints, curves and progress of one directory for all processes."""
    directory = Path(os.environ["CHECK_DIRECTORY"])
    data = batches(shuffle=False)
    trained(data=data, directory=directory, progress=True)
    resumed, history = trained(data=data, directory=directory, resume=True, epochs=4)
    straight, _ = trained(data=data, epochs=4)
    same = [
        np.allclose(a.numpy(), b.numpy(), atol=1e-6)
        for a, b in zip(resumed.parameters(), straight.parameters(), strict=True)
    ]
    return [sorted(p.name for p in directory.iterdir()), len(history), same]
