"""The training loop: epochs and steps, validation, checkpoints, and interruption."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from ...base.progress import quiet
from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...xla import lost
from ..metrics import ConfusionMatrix
from ..modules.module import Module
from . import checkpoints
from .callbacks import Callbacks, FitState
from .data import Source, is_filled_up, leaves_of, samples_in
from .history import History
from .keeping import in_evaluation_mode
from .measures import Measure
from .placement import Placement
from .processes import Together
from .progress import progress_for
from .steps import (
    Averages,
    Gathered,
    NotFinite,
    WindowMeans,
    arguments_of,
    explain,
    validation_step,
)
from .stopping import Best, Interrupts

# Drawing the curves takes at most this part of the time.
_CURVES_SHARE = 0.02


class Training:
    """One training, from its start or a checkpoint to its end.

    Attributes:
        epochs_done: number of complete epochs.
        averages: of the current epoch; its `count` is the number of batches used so far.
        seconds: how long the epoch ran before the current process.
    """

    save_every: int | None = None
    checkpoint_format: str | None = None
    restore_best = False
    accumulate = 1
    # The compiled step, and the one between updates, where an update takes several batches.
    step: Callable[..., None]
    gather: Callable[..., None]
    gathered: Gathered

    def __init__(
        self,
        state: FitState,
        measure: Measure,
        data: Source,
        validation: Source | None,
        best: Best,
        placement: Placement | None = None,
    ) -> None:
        self.state = state
        self.measure = measure
        self.data = data
        self.validation = validation
        self.best = best
        self.together = Together()
        self.averages = Averages(measure)
        self.epochs_done = 0
        self.seconds = 0.0
        self._placement = placement
        self._evaluate = validation_step(measure, placement is not None and placement.masks)
        self._validation_averages = Averages(measure)
        if placement is not None:
            placement.replicate(self.averages.meters)
            placement.replicate(self._validation_averages.meters)
        self._best_state: dict[str, Any] | None = None
        # Where the data stood before the epoch.
        self._position = data.position()
        self._curves_wait_until = 0.0
        self._is_checked = False
        # Batches of earlier epochs that another process has used.
        self._used = 0
        self._callbacks = Callbacks(None)
        state.metrics = measure.accumulated

    # The loop

    def run(self, callbacks: Callbacks, progress: bool) -> History:
        """Train to the end; return the history."""
        state, history = self.state, self.state.history
        history.stopped = None
        self._callbacks = callbacks
        self._progress = progress_for(progress and self.together.is_first)
        self._progress.start(state.epochs)
        try:
            with quiet(), Interrupts(with_sigterm=not self.together.is_alone) as interrupts:
                callbacks.call("on_fit_begin", state)
                while self.epochs_done < state.epochs and history.stopped is None:
                    if self.best.is_exhausted:
                        history.stopped = "early stopping"
                    elif self._epoch(callbacks, interrupts):
                        self._end_of_epoch(callbacks)
                    stopping = self.together.agreed(state.stopping)
                    if stopping is not None:
                        history.stopped = stopping
                if history.stopped is not None:
                    self._progress.notice(f"stopped: {history.stopped}")
                self.save(checkpoints.LAST)
                if self.restore_best:
                    self._restore_best()
                self._draw_curves(at_once=True)
                callbacks.call("on_fit_end", state)
        except RuntimeError as error:
            found = lost(error)
            if found is None:
                raise
            raise found from error
        finally:
            self._progress.close()
        return history

    def _epoch(self, callbacks: Callbacks, interrupts: Interrupts) -> bool:
        """Make the remaining steps of an epoch; return whether it is complete."""
        state, averages = self.state, self.averages
        state.epoch = self.epochs_done + 1
        self._position = self.data.position()
        self._progress.begin(state.epoch, self.data.length, averages.count)
        callbacks.call("on_epoch_begin", state)
        begun = time.perf_counter()
        before = self.seconds
        if averages.count == 0:
            self.measure.reset()
        modules = state.model, state.optimizer, self.gathered, averages.meters
        names = self.measure.names
        figures: dict[str, float] = {}
        try:
            used, self._used = self._used, 0
            batches = self.together.windows(self.data.begin(state.epoch, averages.count, used), "data", state)
            for batch in self._placed(batches):
                if not self._is_checked:
                    self._check_first(batch)
                state.step += 1
                step = self.step if state.step % self.accumulate == 0 else self.gather
                step(*modules, *arguments_of(batch))
                window = averages.add(batch)
                self.seconds = before + time.perf_counter() - begun
                if window is not None:
                    self._note(window)
                    figures = dict(zip(names, averages.means(), strict=False))
                callbacks.call("on_step_end", state)
                self._progress.step(samples_in(batch), figures)
                if self.save_every is not None and state.step % self.save_every == 0:
                    self.save(checkpoints.LAST)
                if interrupts.requested:
                    state.stop("interrupted")
                if self.together.stops(state):
                    break
            if self.together.stops(state):
                self._wait()
                return False
            for window in averages.finish():
                self._note(window)
        except NotFinite as found:
            raise self._explained(found) from None
        self.seconds = before + time.perf_counter() - begun
        return True

    def _placed(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Batches where the training runs."""
        return batches if self._placement is None else self._placement.batches(batches, self.state.model)

    def _note(self, window: WindowMeans | None) -> None:
        """Add the means of a window, if there is one, to the history, and tell the callbacks."""
        if window is None:
            return
        state, step = self.state, self.state.step - window.late
        state.history.add_steps(step, window.figures[0])
        state.figures = {"step": step, **dict(zip(self.measure.names, window.figures, strict=False))}
        self._callbacks.call("on_log", state)

    def _wait(self) -> None:
        """Wait for all steps.

        Raises:
            NotFinite: a step was skipped.
        """
        self._note(self.averages.settle())
        self.averages.check()

    def _end_of_epoch(self, callbacks: Callbacks) -> None:
        state, averages, history = self.state, self.averages, self.state.history
        row: dict[str, Any] = {"epoch": state.epoch, "step": state.step}
        row.update(zip(self.measure.names, averages.means(), strict=False))
        row.update(self.measure.values())
        rate = averages.samples / max(self.seconds, 1e-9)
        begun = time.perf_counter()
        if self.validation is not None:
            row.update(self._validate(self.validation))
        row["seconds"] = self.seconds + time.perf_counter() - begun
        row["samples_per_second"] = rate
        history.epochs.append(row)
        state.logs = row
        self.epochs_done += 1
        self.seconds = 0.0
        averages.restart()
        self._position = self.data.position()
        callbacks.call("on_epoch_end", state)
        if self.best.monitor in row:
            row[self.best.monitor] = self.together.of_first(row[self.best.monitor])
        is_best = self.best.update(history, row)
        self._progress.end(row, is_best)
        if is_best and self.restore_best and state.directory is None:
            self._best_state = state.model.state_dict()
        if is_best:
            self.save(checkpoints.BEST)
        if self.epochs_done < state.epochs:
            self.save(checkpoints.LAST)
            self._draw_curves(at_once=False)

    def _validate(self, source: Source) -> dict[str, float]:
        """The means over the validation data, in evaluation mode."""
        model, averages = self.state.model, self._validation_averages
        averages.restart()
        self.measure.reset()
        with in_evaluation_mode(model):
            for batch in self._placed(self.together.windows(source.begin(self.state.epoch), source.what)):
                self._evaluate(model, averages.meters, *arguments_of(batch))
                averages.add(batch)
            averages.finish()
        found = {**dict(zip(self.measure.names, averages.means(), strict=False)), **self.measure.values()}
        return {f"val_{name}": x for name, x in found.items()}

    def _explained(self, found: NotFinite) -> FloatingPointError:
        """The error for a skipped step, after saving the state before it."""
        state = self.state
        state.step -= found.late
        self.save(checkpoints.LAST)
        with self.together.on_host(state.model, found.batch) as batch:
            error = explain(self.measure, state.model, batch, is_filled_up(found.batch))
        path = None if state.directory is None else checkpoints.newest(state.directory, checkpoints.LAST)
        saved = "" if path is None else f", and is saved in {path}"
        error.add_note(
            f"  in epoch {state.epoch}, batch {self.averages.count + 1} (step {state.step + 1}) of nn.fit; the model "
            f"is as it was before this step{saved}"
        )
        return error

    def _check_first(self, batch: Any) -> None:
        """Warn if a batch makes a float32 model compute in float64; raise if processes would train apart."""
        self._is_checked = True
        self.together.require_divided(self.state.model, batch)
        widest = max((p.dtype.itemsize for p in self.state.model.parameters() if is_inexact(p.dtype)), default=8)
        wide = next((x.dtype for x in leaves_of(batch) if x.dtype.kind == "f" and x.dtype.itemsize > widest), None)
        if wide is not None:
            warnings.warn(
                f"the batches hold {wide}, wider than the parameters of the model: the step computes in {wide}, which "
                f"takes at least twice the time; convert the data once, x.astype(np.float32){at_line(user_line())}",
                RuntimeWarning,
                stacklevel=6,
            )

    # Checkpoints

    def resume(self, resume: bool | str | os.PathLike[str]) -> bool:
        """Restore a checkpoint; return whether there was one."""
        place = self.state.directory if resume is True else resume or None
        path = None if place is None else checkpoints.agreed(checkpoints.find(place))
        if path is None and not isinstance(resume, bool):
            raise FileNotFoundError(
                f"there is no checkpoint at {os.fspath(resume)!r} to resume from{at_line(user_line())}"
            )
        if path is None:
            return False
        record = checkpoints.read(path, self.state.model, self._others())
        self.data.restore(record["data"])
        self._position = self.data.position()
        self.state.step = record["step"]
        self.epochs_done = record["epochs_done"]
        self.seconds = record["seconds"]
        self.averages.restore(record["averages"])
        self.measure.restore(record.get("metrics", {}))
        self.best.waited = record["waited"]
        self._used = self.state.step - self.averages.count
        monitor = self.best.monitor
        self.state.history = History.from_dict(record["history"])
        if self.state.history.monitor != monitor:
            self.state.history.best, self.best.waited = None, 0
            self.state.history.monitor = monitor
        return True

    def save(self, name: str) -> None:
        """Write a checkpoint, if there is a directory for it."""
        state = self.state
        if state.directory is None:
            return
        self._wait()
        record = {
            "epochs_done": self.epochs_done,
            "step": state.step,
            "seconds": self.seconds,
            "data": self._position,
            "averages": self.averages.state(),
            "metrics": self.measure.state() if self.averages.count else {},
            "waited": self.best.waited,
            "history": state.history.to_dict(),
        }
        checkpoints.write(state.directory, name, state.model, self._others(), record, self.checkpoint_format)

    def _others(self) -> dict[str, Module]:
        """What belongs to a checkpoint beside the model."""
        return {"optimizer": self.state.optimizer, "gathered": self.gathered}

    def _restore_best(self) -> None:
        """Restore the parameters of the best epoch."""
        directory = self.state.directory
        path = None if directory is None else checkpoints.agreed(checkpoints.newest(directory, checkpoints.BEST))
        if self._best_state is not None:
            self.state.model.load_state_dict(self._best_state)
        elif path is not None and self.state.history.best is not None:
            checkpoints.load_model(path, self.state.model)

    def _draw_curves(self, at_once: bool) -> None:
        """Draw the curves next to the checkpoints, unless that takes too long."""
        directory, begun = self.state.directory, time.monotonic()
        if not self.together.is_first:
            return
        if directory is None or not self.state.history.epochs or (begun < self._curves_wait_until and not at_once):
            return
        if find_spec("matplotlib") is None:
            if at_once:
                self._progress.notice(
                    "no learning curves were drawn: that takes matplotlib, pip install 'ftrans[plot]'"
                )
            return
        self.state.history.plot(directory / checkpoints.CURVES)
        for name, metric in self.measure.accumulated.items():
            if isinstance(metric, ConfusionMatrix):
                metric.plot(directory / f"{name}.png")
        now = time.monotonic()
        self._curves_wait_until = now + (now - begun) / _CURVES_SHARE
