"""Compiled steps of training and validation, and how their results get back to the host.

A training step whose loss or gradients are not finite changes nothing, and neither does any step after it.  So the host
need only check occasionally, and still finds the parameters as they were before that step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...api.anomaly import detect_anomaly, without_warnings
from ...api.anomaly.report import AnomalyError
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import is_inexact
from ...xla import gathered
from ..cells.kinds import Buffer, Cells
from ..modules.graph import graph_of
from ..modules.module import Module
from ..modules.roots import graph_of_arguments
from ..transformations.gradients import value_and_grad
from ..transformations.jit import jit
from .data import PlacedBatch, leaves_of, samples_in
from .measures import MOST_FIGURES, Measure

# After so many steps the figures are fetched.
WINDOW = 16
_NO_SUMS = np.zeros(MOST_FIGURES, np.float32)
_NONE_SKIPPED = np.zeros((), np.int32)


class Meters(Module):
    """Sums over the samples of the current window of steps, and the number of skipped steps.

    Attributes:
        sums: of the loss and of each metric.
        skipped: number of steps that did not update the parameters.
        measured_by: losses and metrics that are modules, which a compiled function must be given.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self.sums = Buffer(_NO_SUMS)
        self.skipped = Buffer(_NONE_SKIPPED)
        self.measured_by = list(modules)

    def add(self, figures: Sequence[Any], samples: Any) -> Any:
        """The sums including another batch."""
        numbers = [np.asarray(x, np.float32) if not hasattr(x, "dtype") else x.astype(np.float32) for x in figures]
        rest = np.zeros(MOST_FIGURES - len(numbers), np.float32)
        return self.sums + np.concatenate([np.stack(numbers), rest]) * (samples * 1.0)


class Gathered(Module):
    """Sums of the gradients of the batches since the last update, where an update takes several.

    Args:
        parameters: the parameters by path; none where each batch makes an update.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.sums = Cells({path: Buffer(np.zeros(p.shape, p.dtype)) for path, p in parameters.items()})

    def add(self, gradients: Mapping[str, Any]) -> None:
        """Add the gradients of a batch."""
        for path, gradient in gradients.items():
            cell = self.sums[path]
            cell.value = cell.read() + gradient

    def taken(self, count: int) -> dict[str, Any]:
        """The means over so many batches; the sums begin again."""
        means = {path: cell.read() / count for path, cell in self.sums.items()}
        for cell in self.sums.values():
            cell.value = np.zeros(cell.shape, cell.dtype)
        return means


def training_step(
    measure: Measure, check_finite: bool, masks: bool = False, accumulate: int = 1, updates: bool = True
) -> Callable[..., None]:
    """The compiled step: a function of (model, optimizer, gathered, meters, *batch), or with a dictionary at the end.

    With `masks`, the mask of the samples comes before the batch.

    Args:
        measure: what is computed.
        check_finite: whether a step whose loss or gradients are not finite changes nothing.
        masks: whether there is a mask.
        accumulate: number of batches whose mean gradient makes an update.
        updates: whether this step makes it; otherwise it adds gradients.
    """

    def step(model: Any, optimizer: Any, gathered: Any, meters: Any, *arrays: Any) -> None:
        mask, batch = _taken_apart(arrays, masks)
        cells = graph_of_arguments((model, optimizer, gathered), {}).cells
        # Assigning to elements changes what a traced value stands for.
        before = [Tracer(x.builder, x.atom, x.weak) if isinstance(x := cell.array, Tracer) else x for cell in cells]
        scale = getattr(optimizer, "loss_scale", None)
        taking = value_and_grad(measure, has_aux=True, loss_scale=scale)
        (loss, (figures, parts)), gradients = taking(model, batch, mask)

        def objective(model: Any) -> Any:
            if accumulate > 1:
                raise TypeError(
                    f"{type(optimizer).__name__} evaluates the loss of a batch itself, so its updates cannot be for "
                    f"the gradients of several; leave out accumulate= of nn.fit{at_line(user_line())}"
                )
            if scale is not None:
                raise TypeError(
                    f"{type(optimizer).__name__} evaluates the loss itself, without the scale that float16 needs; "
                    f"write precision='bfloat16' in nn.fit, or leave it out{at_line(user_line())}"
                )
            return measure(model, batch, mask)[0]

        if accumulate > 1:
            gathered.add(gradients)
        if updates:
            means = gathered.taken(accumulate) if accumulate > 1 else gradients

            def update() -> None:
                optimizer.step_of_fit(means, loss, objective)

            if scale is None:
                update()
            else:
                scale.guard(optimizer, means, update)
        sums = meters.add([loss, *figures], _count(batch, mask))
        if not check_finite:
            meters.sums = sums
            _accumulate(measure, parts)
            return
        is_good = np.isfinite(loss) & (meters.skipped == 0)
        # With a scale an overflow of the gradients is no error, unless smaller scales have not helped.
        for is_finite in map(_is_finite, gradients.values()) if scale is None else [scale.scale >= 1]:
            is_good = is_good & is_finite
        for cell, old in zip(cells, before, strict=True):
            new = cell.array
            if getattr(new, "atom", None) is not old.atom and tuple(new.shape) == tuple(old.shape):
                kept: Any = old
                cell.value = np.where(is_good, new, kept)
        meters.sums = np.where(is_good, sums, meters.sums)
        _accumulate(measure, [np.where(is_good, x, 0) for x in parts])
        meters.skipped = meters.skipped + np.where(is_good, 0, 1).astype(np.int32)

    return jit(step, donate_argnums=(0, 1, 2))


def _accumulate(measure: Measure, parts: Sequence[Any]) -> None:
    """Add parts of a batch to the sums of the metrics that have some; these are arguments of the step, in `Meters`."""
    for metric, part in zip(measure.accumulated.values(), parts, strict=True):
        metric.add(part)


def _is_finite(x: Any) -> Any:
    """Whether an array has neither NaN nor infinity; an array whose sum overflows counts as not finite."""
    if x.ndim > 1 and x.size:
        # A product with ones reads a matrix three times as fast as XLA's own reductions do on a CPU.
        dtype = x.dtype if x.dtype.itemsize >= 4 else np.float32
        x = np.ones(x.shape[0], np.float32) @ x.astype(dtype).reshape(x.shape[0], -1)
    return np.all(np.isfinite(x))


def validation_step(measure: Measure, masks: bool = False) -> Callable[..., None]:
    """The compiled evaluation: a function of (model, meters, *batch), or with a dictionary as the last argument.

    With `masks`, the mask of the samples comes before the batch.
    """

    def evaluate(model: Any, meters: Any, *arrays: Any) -> None:
        mask, batch = _taken_apart(arrays, masks)
        loss, (figures, parts) = measure(model, batch, mask)
        meters.sums = meters.add([loss, *figures], _count(batch, mask))
        _accumulate(measure, parts)

    return jit(evaluate)


def arguments_of(batch: Any) -> tuple[Any, ...]:
    """A batch as arguments: separate arrays cost less than a container."""
    if isinstance(batch, PlacedBatch):
        return (*(() if batch.mask is None else (batch.mask,)), *arguments_of(batch.arrays))
    return batch if isinstance(batch, tuple) else (batch,)


def _taken_apart(arguments: tuple[Any, ...], masks: bool) -> tuple[Any, Any]:
    """The mask of the samples, or None, and the batch."""
    return (arguments[0], batch_of(arguments[1:])) if masks else (None, batch_of(arguments))


def _count(batch: Any, mask: Any) -> Any:
    """The number of samples that count."""
    return samples_in(batch) if mask is None else mask.astype(np.float32).sum()


def batch_of(arguments: tuple[Any, ...]) -> Any:
    """The batch that `arguments_of` has taken apart."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], dict) else arguments


class MeansCheck:
    """Raises unless loss and metrics of batches are the means of those of the samples.

    Steps with a mask take that for granted, and give NaN where it is not so.
    """

    def __init__(self, measure: Measure) -> None:
        def compare(model: Any, modules: Any, *arrays: Any) -> Any:
            return measure.compare_with_means(model, batch_of(arrays))

        self._measure = measure
        self._compare = jit(compare)

    def __call__(self, model: Module, batch: Any) -> None:
        """Look at a batch.

        Raises:
            ValueError: the loss or a metric is no mean.
        """
        cells = graph_of(model).cells
        before = [cell.array for cell in cells]
        try:
            found = self._compare(model, Meters(self._measure.modules), *arguments_of(batch))
        finally:
            for cell, array in zip(cells, before, strict=True):
                cell.array = array
        for name, (whole, mean, is_mean) in zip(self._measure.names, found, strict=True):
            # What is NaN or infinite either way is for the search for the cause.
            if not is_mean and (np.isfinite(whole) or np.isfinite(mean)):
                raise ValueError(
                    f"a batch is filled up with samples that do not count, for which {name} has to be the mean over "
                    f"the samples: of one batch it is {float(whole):.6g}, and the mean {float(mean):.6g}. Write "
                    "uneven='drop', or choose batches that the devices share evenly" + at_line(user_line())
                )


# The way back to the host


class NotFinite(Exception):
    """A step was skipped.

    Attributes:
        batch: its batch.
        late: number of steps since it began, including itself.
    """

    def __init__(self, batch: Any, late: int) -> None:
        super().__init__(late)
        self.batch = batch
        self.late = late


class WindowMeans(NamedTuple):
    """The means of a window.

    Attributes:
        figures: the loss, and the metrics that are means.
        late: number of steps since.
    """

    figures: list[float]
    late: int


class _Window(NamedTuple):
    """The results of a window of steps that are still on the device."""

    sums: Any
    skipped: Any
    batches: list[Any]
    samples_before: int


class Averages:
    """Means over the samples of an epoch.

    The sums of a window are fetched when the next one is complete: at that point the device still has a window of work
    left, so nothing waits.

    Attributes:
        meters: what the steps add to.
        count: number of batches.
        samples: number of samples that the means cover; slightly behind.
    """

    def __init__(self, measure: Measure) -> None:
        self.meters = Meters(measure.modules)
        self.restart()

    def restart(self) -> None:
        """Reset everything for a new epoch."""
        self.count = self.samples = 0
        self._totals = np.zeros(MOST_FIGURES)
        self._waiting: _Window | None = None
        self._batches: list[Any] = []
        # Samples of the present window that came before a checkpoint.
        self._samples_before = 0
        self.meters.sums.value = _NO_SUMS
        self.meters.skipped.value = _NONE_SKIPPED

    def add(self, batch: Any) -> WindowMeans | None:
        """Note that a step on this batch was started; return the means of a window, if they are available.

        Raises:
            NotFinite: an earlier step was skipped.
        """
        self._batches.append(batch)
        self.count += 1
        return self._close_window() if self.count % WINDOW == 0 else None

    def finish(self) -> list[WindowMeans]:
        """Wait for all steps; return the means of the remaining windows.

        Raises:
            NotFinite: a step was skipped.
        """
        found = [self._close_window() if self._batches or self._samples_before else None, self.settle()]
        return [window for window in found if window is not None]

    def means(self) -> list[float]:
        """The means so far."""
        return [float(x) for x in self._totals / max(self.samples, 1)]

    def _close_window(self) -> WindowMeans | None:
        found = self.settle()
        meters = self.meters
        self._waiting = _Window(meters.sums.array, meters.skipped.array, self._batches, self._samples_before)
        self._batches, self._samples_before = [], 0
        meters.sums.value = _NO_SUMS
        return found

    def settle(self) -> WindowMeans | None:
        """Fetch the sums of the previous window, if that is still to do; return its means.

        Raises:
            NotFinite: a step was skipped.
        """
        window, self._waiting = self._waiting, None
        if window is None:
            return None
        skipped = int(window.skipped)
        if skipped:
            late = skipped + len(self._batches)
            self._batches = window.batches[: len(window.batches) - skipped]
            self._samples_before = window.samples_before
            self.meters.sums.array = window.sums
            raise self._left_out(window.batches[-skipped], late)
        samples = window.samples_before + sum(map(samples_in, window.batches))
        sums = gathered(window.sums).astype(np.float64)
        self._totals += sums
        self.samples += samples
        return WindowMeans([float(x) for x in sums / samples], len(self._batches))

    def _left_out(self, batch: Any, late: int) -> NotFinite:
        self.count -= late
        self.meters.skipped.value = _NONE_SKIPPED
        return NotFinite(batch, late)

    def check(self) -> None:
        """Wait for all steps, without closing a window.

        Raises:
            NotFinite: a step was skipped.
        """
        skipped = int(self.meters.skipped.array)
        if skipped:
            batch = self._batches[-skipped]
            self._batches = self._batches[:-skipped]
            raise self._left_out(batch, skipped)

    def state(self) -> dict[str, Any]:
        """The state as numbers, after `settle` and `check`."""
        return {
            "count": self.count,
            "samples": self.samples,
            "totals": np.trim_zeros(self._totals, "b").tolist(),
            "sums": np.trim_zeros(gathered(self.meters.sums.array), "b").tolist(),
            "samples_in_window": self._samples_before + sum(map(samples_in, self._batches)),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state()` returned."""
        self.restart()
        self.count, self.samples = state["count"], state["samples"]
        self._samples_before = state["samples_in_window"]
        self._totals[: len(state["totals"])] = state["totals"]
        sums = _NO_SUMS.copy()
        sums[: len(state["sums"])] = state["sums"]
        self.meters.sums.value = sums


# When a step was left out


def explain(measure: Measure, model: Module, batch: Any, is_filled_up: bool) -> FloatingPointError:
    """The error for a skipped step, found by running it again under `detect_anomaly`.

    Args:
        measure: what was computed.
        model: the model, as it was before the step.
        batch: its batch, in the memory of this process.
        is_filled_up: whether some of the samples do not count.
    """
    bad = _bad_argument(model, batch)
    if bad is not None:
        return FloatingPointError(bad)

    def loss_and_gradients(model: Any, modules: Any, *arrays: Any) -> Any:
        (loss, _), gradients = value_and_grad(measure, has_aux=True)(model, batch_of(arrays))
        return loss, gradients

    loss_and_gradients.__name__ = measure.__name__
    cells = graph_of(model).cells
    before = [cell.array for cell in cells]
    try:
        # The search itself evaluates the program equation by equation on NumPy.  Compiled, the program has the batch
        # among its arguments, so that what is computed of it alone belongs to the program, too.
        with detect_anomaly(), without_warnings():
            jit(loss_and_gradients)(model, Meters(measure.modules), *arguments_of(batch))
    except AnomalyError as error:
        return error
    finally:
        for cell, array in zip(cells, before, strict=True):
            cell.array = array
    if is_filled_up:
        try:
            MeansCheck(measure)(model, batch)
        except ValueError as error:
            return FloatingPointError(str(error))
    return FloatingPointError(
        "the compiled step gave a loss or a gradient that is NaN or infinite, but run again on NumPy it is finite: the "
        "compiled step rounds differently, so some intermediate value is probably close to the largest number of its "
        "dtype, or to a pole. Smaller steps, clipped gradients, or a formula that is stable there will help"
    )


def _bad_argument(model: Module, batch: Any) -> str | None:
    """The message for a batch or parameter that was not finite before the step."""
    for number, x in enumerate(leaves_of(batch)):
        if is_inexact(x.dtype) and not np.isfinite(x).all():
            where = tuple(map(int, np.argwhere(~np.isfinite(np.asarray(x)))[0]))
            value = np.asarray(x)[where]
            return (
                f"the data is not finite: array {number} of the batch holds {value} at {list(where)}; look for missing "
                "values and divisions by zero where the data is prepared"
            )
    for path, parameter in model.named_parameters():
        if is_inexact(parameter.dtype) and not np.isfinite(parameter.value).all():
            return (
                f"the parameter {path} was not finite before the step, though the gradients of all steps were: the "
                "updates have grown too large; lower the learning rate, or clip the gradients "
                "(optax.clip_by_global_norm)"
            )
    return None
