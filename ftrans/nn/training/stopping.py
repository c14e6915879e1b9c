"""Early end of a training: without further improvement, or by Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
from typing import Any

from ...base.source import at_line, user_line
from .history import History


class Best:
    """The best epoch so far, and the number of epochs without improvement.

    Args:
        monitor: the metric that is compared.
        mode: "min" if smaller is better, "max" if larger is; None for a loss.
        min_delta: minimum improvement that counts.
        patience: number of epochs without improvement after which the training ends; None for never.
    """

    def __init__(self, monitor: str, mode: str | None, min_delta: float, patience: int | None) -> None:
        if mode not in (None, "min", "max"):
            raise ValueError(f"mode must be 'min' or 'max', not {mode!r}{at_line(user_line())}")
        if mode is None and not monitor.endswith("loss"):
            raise ValueError(
                f"it is not known whether small or large values of {monitor} are better; pass mode='max' or mode='min'"
                + at_line(user_line())
            )
        if patience is not None and patience < 1:
            raise ValueError(f"patience must be a number of epochs, at least 1, not {patience!r}{at_line(user_line())}")
        if min_delta < 0:
            raise ValueError(f"min_delta must not be negative, but is {min_delta!r}{at_line(user_line())}")
        self.monitor = monitor
        self._sign = -1.0 if mode == "max" else 1.0
        self._min_delta = min_delta
        self._patience = patience
        self.waited = 0

    def update(self, history: History, row: dict[str, Any]) -> bool:
        """Compare a new epoch; return whether it is the best, which is then noted in the history.

        Raises:
            ValueError: the epoch does not have the metric.
        """
        if self.monitor not in row:
            raise ValueError(
                f"monitor is {self.monitor!r}, but an epoch has {', '.join(row)}"
                + ("; values that begin with val_ need validation=..." if self.monitor.startswith("val_") else "")
                + at_line(user_line())
            )
        value = self._sign * row[self.monitor]
        best = history.best
        if not math.isnan(value) and (best is None or value < self._sign * best[self.monitor] - self._min_delta):
            self.waited = 0
            history.best = row
            return True
        self.waited += 1
        return False

    @property
    def is_exhausted(self) -> bool:
        """Whether the patience is exhausted."""
        return self._patience is not None and self.waited >= self._patience


class Interrupts:
    """A block in which the first Ctrl-C asks to stop after the current step, and the second raises.

    Args:
        with_sigterm: whether SIGTERM asks for the same, as launchers of several processes send it.
    """

    def __init__(self, with_sigterm: bool = False) -> None:
        self.requested = False
        self._is_over = False
        self._signals: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler}
        if with_sigterm:
            self._signals[signal.SIGTERM] = signal.SIG_DFL
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        # A handler of the user's stays, and other threads never get the signal.
        if threading.current_thread() is threading.main_thread():
            for number, default in self._signals.items():
                if signal.getsignal(number) is default:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: Any) -> None:
        # Code inside may have saved this as the handler before its own, and call it later.
        if self.requested or self._is_over:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for number, handler in self._before.items():
            signal.signal(number, handler)
