"""nn.profile_step: where the time of a training step goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ..modules.module import Module
from ..modules.roots import require_module
from ..transformations.gradients import value_and_grad
from ..transformations.jit import jit
from .data import Source, samples_in
from .fit import optimizer_for
from .keeping import as_it_was
from .measures import Measure
from .steps import Meters, arguments_of, batch_of


class StepProfile:
    """The times of a training step, in seconds.  Printing it shows them as a table.

    Attributes:
        data: to make a batch; it takes no time of the step if it is made while the device computes.
        forward: to compute the loss.
        backward: to compute the gradients beside it.
        update: to update the parameters.
        step: for all of these but the data, in one compiled program.
        compiling: to trace and compile that program.
        samples: number of samples in a batch.
        parameters: number of trained parameters.
    """

    def __init__(
        self, data: float, forward: float, both: float, step: float, compiling: float, samples: int, parameters: int
    ) -> None:
        self.data = data
        self.forward = forward
        self.backward = max(both - forward, 0.0)
        self.update = max(step - both, 0.0)
        self.step = step
        self.compiling = compiling
        self.samples = samples
        self.parameters = parameters

    @property
    def samples_per_second(self) -> float:
        """How many samples a training takes in per second, if data is made while the device computes."""
        return self.samples / max(self.step, self.data, 1e-12)

    def __repr__(self) -> str:
        rows = [("forward", self.forward), ("backward", self.backward), ("update", self.update)]
        lines = [f"  {name:<10}{1e3 * x:10.3f} ms  {x / max(self.step, 1e-12):4.0%}" for name, x in rows]
        waits = "  the step waits for it" if self.data > self.step else ""
        return "\n".join(
            [
                f"step        {1e3 * self.step:9.3f} ms  of {self.samples} samples, {self.parameters:,} parameters",
                *lines,
                f"data        {1e3 * self.data:9.3f} ms{waits}",
                f"compiling   {1e3 * self.compiling:9.0f} ms  once",
                f"{self.samples_per_second:,.0f} samples/s",
            ]
        )


def profile_step(
    model: Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    objective: Callable[..., Any] | None = None,
    optimizer: Any = None,
    steps: int = 10,
) -> StepProfile:
    """Measure the parts of a training step: data, forward pass, backward pass, update, and compiling.

    Forward pass, both passes and the whole step are compiled each by itself; the differences are those of medians.
    `ft.debug.profile` and `ft.debug.cost` look at lines and operations.  The model is as it was afterwards.

    Args:
        model: the model.
        data: batches, as for `nn.fit`, at least two.
        loss: a function of (output, target); or
        objective: a function of the model and the batch, as for `nn.fit`.
        optimizer: as for `nn.fit`; an optimizer of the model goes on from its own state.
        steps: number of calls that are measured of each.

    Raises:
        ValueError: neither or both of `loss` and `objective` are given, or there are fewer than two batches.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> x = np.ones((64, 4), np.float32)
        >>> found = nn.profile_step(nn.Linear(4, 1), nn.batches(x, x[:, :1]), loss=nn.functional.mse_loss, steps=3)
        >>> found.step > 0 and found.samples == 32
        True
    """
    if (loss is None) == (objective is None):
        raise ValueError(
            "profile_step takes exactly one of loss, a function of (output, target), and objective, a function of "
            f"(model, *batch){at_line(user_line())}"
        )
    require_module(model, "nn.profile_step takes")
    measure, source = Measure(loss, objective, {}), Source(data, "data", 1)
    position = source.position()
    batch, seconds = _batch(source, steps)
    source.restore(position)
    modules, arrays = Meters(measure.modules), arguments_of(batch)

    def forward(model: Any, modules: Any, *arrays: Any) -> Any:
        return measure(model, batch_of(arrays))[0]

    def both(model: Any, modules: Any, *arrays: Any) -> Any:
        (loss, _), gradients = value_and_grad(measure, has_aux=True)(model, batch_of(arrays))
        return loss, [np.sum(x) for x in gradients.values()]

    def step(model: Any, modules: Any, optimizer: Any, *arrays: Any) -> Any:
        (loss, _), gradients = value_and_grad(measure, has_aux=True)(model, batch_of(arrays))
        optimizer.step_of_fit(gradients, loss, lambda model: measure(model, batch_of(arrays))[0])
        return loss

    made = optimizer_for(model, optimizer)
    with as_it_was(model), as_it_was(made):
        model.train()
        times = [
            _time(jit(f, donate_argnums=donated), (model, modules, *more, *arrays), steps)
            for f, more, donated in ((forward, (), ()), (both, (), ()), (step, (made,), (0, 2)))
        ]
        # A donated buffer is that of the last update.
        parameters = sum(int(np.prod(p.shape)) for p in model.parameters())
    (_, of_forward), (_, of_both), (first, of_step) = times
    return StepProfile(seconds, of_forward, of_both, of_step, max(first - of_step, 0.0), samples_in(batch), parameters)


def _batch(source: Source, steps: int) -> tuple[Any, float]:
    """A batch, and the median time to make one."""
    found, times = None, []
    begun = time.perf_counter()
    for number, batch in enumerate(source.begin(1)):
        if number:
            times.append(time.perf_counter() - begun)
        found = batch if found is None else found
        if number == steps:
            break
        begun = time.perf_counter()
    if not times:
        raise ValueError(f"profile_step needs two batches at least{at_line(user_line())}")
    return found, median(times)


def _time(f: Callable[..., Any], arguments: tuple[Any, ...], steps: int) -> tuple[float, float]:
    """The seconds of the first call, and the median of the others."""
    times = []
    for _ in range(steps + 1):
        begun = time.perf_counter()
        # As a number on the host, it has been waited for.
        loss = f(*arguments)
        float(loss[0] if isinstance(loss, tuple) else loss)
        times.append(time.perf_counter() - begun)
    return times[0], median(times[1:])
