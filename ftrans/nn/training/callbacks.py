"""Callbacks: functions that a training loop calls, and the state that they receive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ...base.source import at_line, user_line
from ..metrics import Metric
from ..modules.module import Module
from ..optim.optimizer import Optimizer
from .history import History

_METHODS = ("on_fit_begin", "on_epoch_begin", "on_step_end", "on_log", "on_epoch_end", "on_fit_end")
# What other libraries call them.
_ELSEWHERE = {
    "on_train_begin": "on_fit_begin",
    "on_train_start": "on_fit_begin",
    "on_fit_start": "on_fit_begin",
    "on_train_end": "on_fit_end",
    "on_epoch_start": "on_epoch_begin",
    "on_train_epoch_start": "on_epoch_begin",
    "on_train_epoch_end": "on_epoch_end",
    "on_validation_epoch_end": "on_epoch_end",
    "on_validation_end": "on_epoch_end",
    "on_batch_end": "on_step_end",
    "on_train_batch_end": "on_step_end",
}


class FitState:
    """The state of a training: the argument of all callbacks of `nn.fit`.

    Attributes:
        model: the model.
        optimizer: the `nn.Optimizer`.
        history: the `nn.History` so far.
        epochs: total number of epochs.
        epoch: number of the current epoch, from 1.
        step: number of steps so far, in all epochs.
        logs: in `on_epoch_end`, the metrics of the epoch, a dictionary that is part of the history; callbacks may add
            entries.
        figures: in `on_log`, the means over the last steps of the loss and of the metrics that are means, by name, and
            the number of the last of these steps under "step".
        metrics: the metrics that accumulate sums (`nn.metrics`), by name; after an epoch they hold those of the
            validation, if there is one.
        directory: where checkpoints are written, or None.
    """

    def __init__(
        self, model: Module, optimizer: Optimizer, history: History, epochs: int, directory: Path | None
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.history = history
        self.epochs = epochs
        self.directory = directory
        self.epoch = 0
        self.step = 0
        self.logs: dict[str, Any] = {}
        self.figures: dict[str, Any] = {}
        self.metrics: Mapping[str, Metric] = {}
        self.stopping: str | None = None

    def stop(self, reason: str = "stopped by a callback") -> None:
        """End the training after this step, with a reason for `history.stopped`.

        Where several processes train, one of them may call this; all stop at the same step, at most 16 later.
        """
        self.stopping = reason


class Callback:
    """Base class of callbacks for `nn.fit`: override the methods you need.  Any object with these methods is accepted.

    Callbacks run between steps, so they may read and change the model and the optimizer.  Reading their arrays waits
    for the previous steps, so do it only occasionally in `on_step_end`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> class EveryTenthEpoch(nn.Callback):
        ...     def on_epoch_end(self, state):
        ...         if state.epoch % 10 == 0:
        ...             print(f"epoch {state.epoch}: |w| = {np.abs(state.model.weight.value).sum():.1f}")
    """

    def on_fit_begin(self, state: FitState) -> None:
        """Called before the first step."""

    def on_epoch_begin(self, state: FitState) -> None:
        """Called before the first step of each epoch."""

    def on_step_end(self, state: FitState) -> None:
        """Called after each step, which may still be running on the device."""

    def on_log(self, state: FitState) -> None:
        """Called when figures of the last steps have come from the device: about every 16 steps, and a little late."""

    def on_epoch_end(self, state: FitState) -> None:
        """Called after the validation of each epoch, before checkpoints are written."""

    def on_fit_end(self, state: FitState) -> None:
        """Called after the last step, however the training ends."""


class Callbacks:
    """The callbacks of a training, by the event that they are called at."""

    def __init__(self, given: Any) -> None:
        if given is None:
            found: list[Any] = []
        elif isinstance(given, Iterable) and not any(hasattr(given, name) for name in _METHODS):
            found = list(given)
        else:
            found = [given]
        self._calls: dict[str, list[Callable[[FitState], Any]]] = {name: [] for name in _METHODS}
        for callback in found:
            methods = [name for name in dir(callback) if name.startswith("on_")]
            unknown = [name for name in methods if name not in _METHODS]
            if isinstance(callback, type):
                raise TypeError(
                    f"a callback must be an object, not the class {callback.__name__}; write {callback.__name__}()"
                    + at_line(user_line())
                )
            if unknown or not (methods or callable(callback)):
                what = f"has the method {unknown[0]}, which is" if unknown else "is"
                known = _ELSEWHERE.get(unknown[0]) if unknown else None
                raise TypeError(
                    f"a callback {what} unknown ({type(callback).__name__})"
                    + (f" and called {known}(self, state) here; it is " if known else "; it is ")
                    + f" a function of the state, called "
                    f"after each epoch, or an object with some of the methods {', '.join(_METHODS)}"
                    + at_line(user_line())
                )
            if not methods:
                self._calls["on_epoch_end"].append(callback)
            for name in methods:
                # What a subclass has not overridden need not be called.
                if getattr(type(callback), name, None) is not getattr(Callback, name):
                    self._calls[name].append(getattr(callback, name))

    def call(self, name: str, state: FitState) -> None:
        """Call the callbacks of an event."""
        for function in self._calls[name]:
            function(state)
