"""History: losses and metrics of a training, by epoch."""

from __future__ import annotations

import os
from typing import Any

from ...base.source import at_line, user_line
from ...base.tables import aligned
from .curves import draw
from .history_page import page_of_history

# The curve by steps is thinned out beyond this, so that the history of a long training stays small.
_MOST_POINTS = 1000
_NOT_SHOWN = ("step", "samples_per_second")


class History:
    """The result of `nn.fit`: losses and metrics of each epoch.

    Attributes:
        epochs: a dictionary for each epoch, with `epoch` (from 1), `step`, `loss` and the metrics, the same with prefix
            `val_` for the validation, `seconds`, and `samples_per_second`.
        best: the dictionary of the epoch with the best value of the monitored metric, or None.
        monitor: the monitored metric, such as "val_loss".
        stopped: why the training ended before its last epoch: "early stopping", "interrupted", or the reason that a
            callback gave; None if it did not.
        steps: pairs (step, mean loss since the previous pair), at most 1,000.

    Example:
        >>> from ftrans import nn
        >>> history = nn.History()
        >>> history.epochs += [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}]
        >>> history["loss"]
        [0.5, 0.25]
    """

    def __init__(self) -> None:
        self.epochs: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None
        self.monitor = "loss"
        self.stopped: str | None = None
        self.steps: list[tuple[int, float]] = []
        self._per_point = 1
        self._open: list[tuple[int, float]] = []

    @property
    def names(self) -> list[str]:
        """The names of all entries."""
        return list(dict.fromkeys(name for row in self.epochs for name in row))

    def __getitem__(self, name: str) -> list[Any]:
        """The values of an entry in all epochs, such as `history["val_loss"]`; None where an epoch has none."""
        if name not in self.names:
            known = ", ".join(self.names) or "no epoch"
            raise KeyError(f"the history has no {name!r}; it has {known}{at_line(user_line())}")
        return [row.get(name) for row in self.epochs]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __len__(self) -> int:
        return len(self.epochs)

    def add_steps(self, step: int, loss: float) -> None:
        """Add the mean loss of the steps up to `step` since the previous call."""
        self._open.append((step, loss))
        if len(self._open) < self._per_point:
            return
        self.steps.append(_merged(self._open))
        self._open = []
        if len(self.steps) >= _MOST_POINTS:
            self.steps = [_merged(self.steps[i : i + 2]) for i in range(0, len(self.steps), 2)]
            self._per_point *= 2

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the learning curves: loss and metrics, for training and validation.

        Args:
            path: the image file: `.png`, `.svg` or `.pdf`.

        Raises:
            ValueError: there is no epoch yet, or the suffix is not supported.
            ImportError: matplotlib is not installed.
        """
        draw(path, self.epochs, self.steps, self.monitor, self.best)

    def to_dict(self) -> dict[str, Any]:
        """The history as numbers, strings, lists and dictionaries."""
        return {
            "epochs": self.epochs,
            "best": self.best,
            "monitor": self.monitor,
            "stopped": self.stopped,
            "steps": self.steps,
            "steps_per_point": self._per_point,
            "open_point": self._open,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> History:
        """The history from what `to_dict` returned."""
        history = cls()
        history.epochs, history.best = values["epochs"], values["best"]
        history.monitor, history.stopped = values["monitor"], values["stopped"]
        history.steps = [(step, loss) for step, loss in values["steps"]]
        history._per_point = values["steps_per_point"]
        history._open = [(step, loss) for step, loss in values["open_point"]]
        return history

    def __repr__(self) -> str:
        names = [name for name in self.names if name not in _NOT_SHOWN]
        rows = [names, *([shown(name, row.get(name)) for name in names] for row in self.epochs)]
        lines = aligned(rows, left=(), texts=None)
        if self.best is not None:
            lines.append(
                f"best {self.monitor}: {shown(self.monitor, self.best[self.monitor])} in epoch {self.best['epoch']}"
            )
        if self.stopped is not None:
            lines.append(f"stopped: {self.stopped}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = [name for name in self.names if name not in _NOT_SHOWN]
        return page_of_history(names, self.epochs, self.best, shown)


def shown(name: str, value: Any) -> str:
    """A value as text."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    return f"{value:.3g}" if name == "seconds" else f"{value:.4g}"


def _merged(points: list[tuple[int, float]]) -> tuple[int, float]:
    """One point for several."""
    return points[-1][0], sum(loss for _, loss in points) / len(points)
