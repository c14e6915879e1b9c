"""Early stopping by any entry of the history."""

from __future__ import annotations

import math

from ...base.source import at_line, user_line
from ..training.callbacks import Callback, FitState
from ..training.stopping import Best


class EarlyStopping(Callback):
    """Ends the training when an entry of the history no longer improves, or is out of bounds.

    It looks at the history alone, so it goes on as it was in a training that is resumed.  `nn.fit(patience=...)` does
    the same by the monitor that decides on the best checkpoint; this is for others beside it.

    Args:
        monitor: name of the entry, such as "val_loss".
        patience: number of epochs without improvement after which the training ends.
        min_delta: minimum improvement that counts.
        mode: "min" or "max", which values are better; needed unless it is a loss.
        stopping_threshold: a value that is good enough; None for none.
        check_finite: whether a value that is NaN or infinite ends the training.

    Raises:
        ValueError: an argument is out of range; in the training, the history has no such entry.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> x = np.ones((8, 1), np.float32)
        >>> history = nn.fit(
        ...     nn.Linear(1, 1), nn.batches(x, x), loss=nn.functional.mse_loss, epochs=50, progress=False,
        ...     callbacks=nn.callbacks.EarlyStopping("loss", patience=2, min_delta=10.0),
        ... )
        >>> len(history), history.stopped
        (3, 'early stopping: loss has not improved in 2 epochs')
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        patience: int = 3,
        min_delta: float = 0.0,
        mode: str | None = None,
        stopping_threshold: float | None = None,
        check_finite: bool = True,
    ) -> None:
        # It checks the arguments.
        Best(monitor, mode, min_delta, patience)
        self.monitor = monitor
        self.patience = patience
        self.min_delta = min_delta
        self.stopping_threshold = stopping_threshold
        self.check_finite = check_finite
        self._sign = -1.0 if mode == "max" else 1.0

    def on_epoch_end(self, state: FitState) -> None:
        """Look at the history."""
        if self.monitor not in state.history:
            raise ValueError(
                f"EarlyStopping looks at {self.monitor!r}, but an epoch has {', '.join(state.history.names)}"
                + at_line(user_line())
            )
        values = [x for x in state.history[self.monitor] if x is not None]
        if not values:
            return
        if self.check_finite and not math.isfinite(values[-1]):
            state.stop(f"early stopping: {self.monitor} is {values[-1]}")
        elif self.stopping_threshold is not None and self._sign * (values[-1] - self.stopping_threshold) <= 0:
            state.stop(f"early stopping: {self.monitor} has reached {values[-1]:.4g}")
        elif self._waited(values) >= self.patience:
            state.stop(f"early stopping: {self.monitor} has not improved in {self.patience} epochs")

    def _waited(self, values: list[float]) -> int:
        """The number of epochs since the last improvement."""
        best, waited = math.inf, 0
        for x in values:
            waited += 1
            if self._sign * x < best - self.min_delta:
                best, waited = self._sign * x, 0
        return waited
