"""Loggers: the figures of a training as a file of comma-separated values, in TensorBoard, and in Weights & Biases.

Losses and metrics come from the device about every 16 steps, as means over them, and are logged as `loss_step` and so
on, by step; the entries of the history are logged after each epoch.  In several processes only the first one logs.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...base.source import at_line, user_line
from ...xla import this_process
from ..metrics import ConfusionMatrix
from ..metrics.pictures import figure_of
from ..training.callbacks import Callback, FitState
from ..training.files import replacing

_BY_STEP = "_step"


class CSVLogger(Callback):
    """Writes the history to a file, a line for each epoch.

    The file is written anew after each epoch, from the whole history: a training that is resumed goes on in it, and a
    process that is killed leaves a whole file.

    Args:
        path: the file.
        separator: what is between the values.

    Example:
        >>> import pathlib, tempfile, numpy as np
        >>> from ftrans import nn
        >>> x = np.ones((8, 1), np.float32)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "log.csv")
        >>> history = nn.fit(
        ...     nn.Linear(1, 1), nn.batches(x, x), loss=nn.functional.mse_loss, progress=False,
        ...     callbacks=nn.callbacks.CSVLogger(path),
        ... )
        >>> path.read_text().splitlines()[0]
        'epoch,step,loss,seconds,samples_per_second'
    """

    def __init__(self, path: str | os.PathLike[str], separator: str = ",") -> None:
        self.path = Path(path)
        self.separator = separator

    def on_epoch_end(self, state: FitState) -> None:
        """Write the file."""
        if not _is_first():
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, state.history.names, delimiter=self.separator, lineterminator="\n")
        writer.writeheader()
        writer.writerows(state.history.epochs)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as file:
            file.write(text.getvalue().encode())


class TensorBoardLogger(Callback):
    """Writes figures for TensorBoard, by the package tensorboardX; with pictures of confusion matrices.

    Args:
        directory: where the files of this training are; `tensorboard --logdir` shows it, or the folder above.
        options: further arguments of `tensorboardX.SummaryWriter`.

    Raises:
        ImportError: tensorboardX is not installed.
    """

    def __init__(self, directory: str | os.PathLike[str] = "runs", **options: Any) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ImportError(
                "figures for TensorBoard are written by tensorboardX, which is not installed: "
                f"pip install 'ftrans[tensorboard]'{at_line(user_line())}"
            ) from None
        self._make = SummaryWriter
        self._writer: Any = None
        self.directory = os.fspath(directory)
        self.options = options

    def on_fit_begin(self, state: FitState) -> None:
        """Open the file; what an interrupted training had logged of later steps is left out."""
        if _is_first():
            purge = {"purge_step": state.step + 1} if state.step else {}
            self._writer = self._make(self.directory, **{**purge, **self.options})

    def on_log(self, state: FitState) -> None:
        """Write the means of the last steps."""
        if self._writer is not None:
            for name, x in _by_step(state.figures):
                self._writer.add_scalar(name, x, state.figures["step"])

    def on_epoch_end(self, state: FitState) -> None:
        """Write the entries of the history, and the pictures."""
        if self._writer is None:
            return
        for name, x in _numbers(state.logs):
            self._writer.add_scalar(name, x, state.step)
        for name, metric in state.metrics.items():
            if isinstance(metric, ConfusionMatrix):
                self._writer.add_figure(name, figure_of(metric.compute()), state.step)
        self._writer.flush()

    def on_fit_end(self, state: FitState) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandbLogger(Callback):
    """Logs figures to Weights & Biases, by the package wandb.

    Args:
        project: name of the project.
        name: name of the run.
        config: hyperparameters, which are stored with the run.
        run: a run that `wandb.init` has returned, in place of all others; it is left open.
        options: further arguments of `wandb.init`, such as `mode="offline"`, or `id` and `resume` to go on with a run.

    Raises:
        ImportError: wandb is not installed.
    """

    def __init__(
        self,
        project: str | None = None,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        run: Any = None,
        **options: Any,
    ) -> None:
        try:
            import wandb
        except ImportError:
            raise ImportError(
                "figures are logged to Weights & Biases by wandb, which is not installed: pip install 'ftrans[wandb]'"
                + at_line(user_line())
            ) from None
        self._library = wandb
        self._is_own = run is None
        self.run = run
        self.options = {"project": project, "name": name, "config": dict(config or {}), **options}

    def on_fit_begin(self, state: FitState) -> None:
        """Open the run."""
        if not _is_first():
            return
        if self.run is None:
            self.run = self._library.init(**self.options)
        # Figures come a little late, so the step is one of them, not the number of the call.
        self.run.define_metric("step")
        self.run.define_metric("*", step_metric="step")

    def on_log(self, state: FitState) -> None:
        """Log the means of the last steps."""
        if self.run is not None:
            self.run.log({"step": state.figures["step"], **dict(_by_step(state.figures))})

    def on_epoch_end(self, state: FitState) -> None:
        """Log the entries of the history, and the pictures."""
        if self.run is None:
            return
        row: dict[str, Any] = {**dict(_numbers(state.logs)), "step": state.step, "epoch": state.epoch}
        for name, metric in state.metrics.items():
            if isinstance(metric, ConfusionMatrix):
                row[name] = self._library.Image(figure_of(metric.compute()))
        self.run.log(row)

    def on_fit_end(self, state: FitState) -> None:
        """Close the run."""
        if self.run is not None and self._is_own:
            self.run.finish()
            self.run = None


def _is_first() -> bool:
    return this_process().index == 0


def _by_step(figures: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The figures of the last steps, by the names that they are logged under."""
    return ((f"{name}{_BY_STEP}", x) for name, x in figures.items() if name != "step")


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The entries of an epoch that are numbers, but for those that count epochs and steps."""
    return ((name, float(x)) for name, x in row.items() if isinstance(x, int | float) and name not in ("epoch", "step"))
