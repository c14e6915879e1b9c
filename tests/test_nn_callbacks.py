"""Callbacks: loggers, early stopping, files of models, and learning rates."""

from __future__ import annotations

import csv
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest
from training import Net, data, fit, mae, no_curves  # noqa: F401

from ftrans import nn
from ftrans.nn import callbacks


class Recorder:
    """A stand-in for a writer of tensorboardX or a run of wandb, which notes what it is told."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.options, self.rows, self.is_closed = options, [], False

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **options: self.rows.append((name, *arguments))

    def close(self) -> None:
        """Note that it is closed."""
        self.is_closed = True

    finish = close


@pytest.mark.usefixtures("no_curves")
def test_csv_of_a_training_that_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "log.csv"
    for epochs in (2, 3):
        history = fit(
            Net(),
            epochs=epochs,
            directory=tmp_path,
            resume=True,
            metrics=[mae],
            callbacks=[lambda state: state.logs.update(twice=2 * state.epoch), callbacks.CSVLogger(path)],
        )
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["twice"] for row in rows] == ["2", "4", "6"]
    assert [float(row["mae"]) for row in rows] == history["mae"]


def test_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Recorder] = []

    def make(directory: str, **options: Any) -> Recorder:
        opened.append(Recorder(**options))
        return opened[-1]

    library = types.ModuleType("tensorboardX")
    library.SummaryWriter = make  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboardX", library)
    history = fit(
        Net(),
        data(batch_size=2),
        metrics=[mae],
        callbacks=callbacks.TensorBoardLogger("runs", flush_secs=3),
    )
    (writer,) = opened
    assert writer.options == {"flush_secs": 3}
    assert writer.is_closed
    by_epoch = [row for row in writer.rows if row[:2] == ("add_scalar", "loss")]
    assert [row[2:] for row in by_epoch] == list(zip(history["loss"], [32, 64], strict=True))
    by_step = [row for row in writer.rows if row[1:2] == ("loss_step",)]
    assert [row[3] for row in by_step] == [16, 32, 48, 64]
    np.testing.assert_allclose(np.mean([row[2] for row in by_step[:2]]), history["loss"][0], rtol=1e-5)
    assert ("mae_step", 16) in [row[1::2] for row in writer.rows if len(row) == 4]


def test_wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Recorder] = []

    def make(**options: Any) -> Recorder:
        opened.append(Recorder(**options))
        return opened[-1]

    library = types.ModuleType("wandb")
    library.init, library.Image = make, lambda figure: ("image", figure)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", library)
    logger = callbacks.WandbLogger("project", config={"lr": 0.1}, mode="offline")
    history = fit(Net(), callbacks=logger)
    (run,) = opened
    assert run.options == {"project": "project", "name": None, "config": {"lr": 0.1}, "mode": "offline"}
    rows = [row[1] for row in run.rows if row[0] == "log"]
    assert [row["loss"] for row in rows if "loss" in row] == history["loss"]
    assert [row["step"] for row in rows] == [4, 4, 8, 8]
    assert run.is_closed
    own = Recorder()
    fit(Net(), callbacks=callbacks.WandbLogger(run=own))
    assert not own.is_closed


@pytest.mark.parametrize("name", ["tensorboardX", "wandb"])
def test_packages_that_are_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    make = {"tensorboardX": callbacks.TensorBoardLogger, "wandb": callbacks.WandbLogger}[name]
    with pytest.raises(ImportError) as found:
        make()
    assert f"pip install 'ftrans[{name.lower().removesuffix('x')}]'" in str(found.value)
    assert "test_nn_callbacks.py" in str(found.value)


def test_the_packages_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboardX")
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    x = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    fit(
        nn.Linear(3, 3),
        nn.batches(x, x.argmax(1), batch_size=4),
        loss=nn.functional.cross_entropy,
        metrics=[nn.metrics.ConfusionMatrix(3)],
        callbacks=[
            callbacks.TensorBoardLogger(tmp_path / "runs"),
            callbacks.WandbLogger("project", mode="offline", dir=tmp_path),
        ],
    )
    assert next((tmp_path / "runs").glob("events*")).stat().st_size > 5000
    assert list(tmp_path.rglob("*.wandb"))


def stopped(*values: float, **options: Any) -> tuple[int, str | None]:
    """The number of epochs of a training with these scores, and why it has ended."""
    given = callbacks.EarlyStopping(**{"monitor": "score", "mode": "max", "patience": 2, **options})
    state = nn.FitState(nn.Linear(1, 1), None, nn.History(), 9, None)  # type: ignore[arg-type]
    for i, x in enumerate(values):
        state.history.epochs.append({"epoch": i + 1, "score": x})
        given.on_epoch_end(state)
        if state.stopping:
            break
    return len(state.history), state.stopping


def test_early_stopping() -> None:
    assert stopped(1, 2, 2, 3, 3, 3, 4) == (6, "early stopping: score has not improved in 2 epochs")
    assert stopped(1, 2, 3, 4)[1] is None
    assert stopped(1, 1.4, 1.8, 2.2, min_delta=0.5) == (4, None)
    assert stopped(3, 2, 1, mode="min", stopping_threshold=2) == (2, "early stopping: score has reached 2")
    assert stopped(1, float("nan"), 3)[0] == 2
    assert stopped(1, float("nan"), 3, check_finite=False)[0] == 3


@pytest.mark.usefixtures("no_curves")
def test_early_stopping_goes_on_when_resumed(tmp_path: Path) -> None:
    for epochs in (2, 9):
        history = fit(
            Net(),
            epochs=epochs,
            directory=tmp_path,
            resume=True,
            callbacks=callbacks.EarlyStopping("loss", min_delta=100.0),
        )
    assert len(history) == 4


def test_model_checkpoints(tmp_path: Path) -> None:
    scores = iter([3.0, 5.0, 1.0, 4.0])
    files = callbacks.ModelCheckpoint(tmp_path / "{epoch}-{score:.0f}.safetensors", "score", "max", save_top_k=2)
    model = Net()
    fit(model, epochs=4, callbacks=[lambda state: state.logs.update(score=next(scores)), files])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2-5.safetensors", "4-4.safetensors"]
    np.testing.assert_array_equal(nn.load(tmp_path / "4-4.safetensors")["first"], model.first.value)
    assert [path.name for _, path in files.kept] == ["2-5.safetensors", "4-4.safetensors"]


def test_learning_rates() -> None:
    model = Net()
    optimizer = nn.optim.SGD([{"params": [model.first]}, {"params": [model.second], "lr": 0.5}], lr=0.25)
    assert fit(model, optimizer=optimizer, callbacks=callbacks.LearningRateMonitor())["lr_1"] == [0.5, 0.5]
    scheduled = optax.inject_hyperparams(optax.sgd)(lambda count: 0.1 / (1 + count // 4))
    history = fit(Net(), optimizer=scheduled, callbacks=callbacks.LearningRateMonitor())
    np.testing.assert_allclose(history["lr"], [0.1, 0.05], rtol=1e-6)


class OfKeras:
    """A callback with the names of another library."""

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        """Never called."""


MISTAKES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "patience": (lambda: callbacks.EarlyStopping(patience=0), ["patience"]),
    "mode": (lambda: callbacks.EarlyStopping("accuracy"), ["accuracy", "mode='max'"]),
    "monitor": (lambda: fit(Net(), callbacks=callbacks.EarlyStopping()), ["'val_loss'", "an epoch has epoch, step"]),
    "top": (lambda: callbacks.ModelCheckpoint("x", save_top_k=0), ["save_top_k"]),
    "entry": (lambda: fit(Net(), callbacks=callbacks.ModelCheckpoint("{f1}")), ["'f1'", "an epoch has"]),
    "rate": (lambda: fit(Net(), callbacks=callbacks.LearningRateMonitor()), ["optax.inject_hyperparams"]),
    "other names": (lambda: fit(Net(), callbacks=OfKeras()), ["on_step_end(self, state)"]),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case: str) -> None:
    make, words = MISTAKES[case]
    with pytest.raises((ValueError, TypeError)) as found:
        make()
    for word in words:
        assert word in str(found.value)
