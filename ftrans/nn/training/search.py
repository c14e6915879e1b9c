"""nn.find_learning_rate: the loss while the learning rate grows from step to step.

Source: L. Smith, "Cyclical Learning Rates for Training Neural Networks", 2017, section 3.3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from ...base.figures import new_figure, require_format, save_figure
from ...base.source import at_line, user_line
from ..modules.module import Module
from ..modules.roots import require_module
from ..optim.optax_update import adam
from ..optim.optimizer import Optimizer
from ..transformations.gradients import value_and_grad
from ..transformations.jit import jit
from .data import Source
from .keeping import as_it_was
from .measures import Measure
from .steps import Meters, arguments_of, batch_of

# How much of the smoothed loss the last losses have, and how many steps are never the last ones.
_SMOOTHING, _LEAST_STEPS = 0.9, 10


class LearningRateSearch:
    """The result of `nn.find_learning_rate`.

    Attributes:
        learning_rates: the learning rate of each step.
        losses: the loss of each step, before its update.
        smoothed: running means of the losses.
        suggestion: the learning rate at which the smoothed loss falls fastest; None if it falls nowhere.
    """

    def __init__(self, learning_rates: list[float], losses: list[float]) -> None:
        self.learning_rates = learning_rates
        self.losses = losses
        self.smoothed = _smoothed(losses)
        self.suggestion = self._steepest()

    def _steepest(self) -> float | None:
        values = np.array([x for x in self.smoothed if np.isfinite(x)])
        if len(values) < 3:
            return None
        slopes = np.gradient(values, np.log(self.learning_rates[: len(values)]))
        # The first means are those of a few losses.
        first = min(_LEAST_STEPS, len(values) // 3)
        place = first + int(np.argmin(slopes[first:]))
        return self.learning_rates[place] if slopes[place] < 0 else None

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the loss over the learning rate.

        Args:
            path: the image file: `.png`, `.svg` or `.pdf`.

        Raises:
            ValueError: the suffix is not supported.
            ImportError: matplotlib is not installed.
        """
        require_format(path, "curves")
        figure = new_figure(5.4, 3.6)
        axes = figure.subplots()
        axes.plot(self.learning_rates, self.losses, color="#b9d3e8", linewidth=1, label="loss")
        axes.plot(self.learning_rates, self.smoothed, color="#1f6fb2", linewidth=1.6, label="smoothed")
        if self.suggestion is not None:
            axes.axvline(self.suggestion, color="#d9733e", label=f"suggestion: {self.suggestion:.2g}")
        axes.set_xscale("log")
        axes.set_xlabel("learning rate")
        axes.legend(frameon=False, fontsize=9)
        save_figure(figure, path)

    def __repr__(self) -> str:
        suggestion = "none" if self.suggestion is None else f"{self.suggestion:.3g}"
        return f"LearningRateSearch(suggestion={suggestion}, {len(self.losses)} steps)"


def find_learning_rate(
    model: Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    objective: Callable[..., Any] | None = None,
    optimizer: Callable[..., Any] | None = None,
    low: float = 1e-7,
    high: float = 10.0,
    steps: int = 100,
    stop_at: float = 4.0,
) -> LearningRateSearch:
    """Train for some steps with a learning rate that grows exponentially, to find a good one.

    The model is as it was afterwards, and data that can be resumed (`nn.batches`, `nn.data.DataLoader`) starts again.

    Args:
        model: the model.
        data: batches, as for `nn.fit`; they are used again when they are too few.
        loss: a function of (output, target); or
        objective: a function of the model and the batch, as for `nn.fit`.
        optimizer: a function of the learning rate that makes a transformation of optax, such as `optax.adam`, which is
            the default; or one of the classes of `nn.optim`.
        low: the first learning rate.
        high: the last one.
        steps: number of steps.
        stop_at: the search ends when the smoothed loss is this many times its smallest value, or is not finite.

    Raises:
        ValueError: arguments contradict each other.
        TypeError: `optimizer` is not a function of the learning rate.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
        >>> found = nn.find_learning_rate(nn.Linear(1, 1), nn.batches(x, 3 * x), loss=nn.functional.mse_loss, steps=60)
        >>> 1e-4 < found.suggestion < 10
        True
    """
    if (loss is None) == (objective is None):
        raise ValueError(
            "find_learning_rate takes exactly one of loss, a function of (output, target), and objective, a function "
            f"of (model, *batch){at_line(user_line())}"
        )
    if not (0 < low < high and steps >= 3):
        raise ValueError(
            f"find_learning_rate goes from low to high, with 0 < low < high, in 3 steps at least; given were "
            f"low={low}, high={high}, steps={steps}{at_line(user_line())}"
        )
    require_module(model, "nn.find_learning_rate trains")
    rates = [low * (high / low) ** (i / (steps - 1)) for i in range(steps)]
    measure, source = Measure(loss, objective, {}), Source(data, "data", 1, steps)
    position = source.position()
    modules = Meters(measure.modules)

    def step(model: Any, optimizer: Any, modules: Any, *arrays: Any) -> Any:
        batch = batch_of(arrays)
        (loss, _), gradients = value_and_grad(measure, has_aux=True)(model, batch)
        optimizer.step_of_fit(gradients, loss, lambda model: measure(model, batch)[0])
        return loss

    losses: list[float] = []
    with as_it_was(model):
        model.train()
        made, set_rate = _optimizer(optimizer, model, rates)
        compiled = jit(step, donate_argnums=(0, 1))
        for rate, batch in zip(rates, islice(_endless(source), steps), strict=True):
            set_rate(rate)
            losses.append(float(compiled(model, made, modules, *arguments_of(batch))))
            smoothed = _smoothed(losses)
            is_over = len(losses) > _LEAST_STEPS and smoothed[-1] > stop_at * min(smoothed)
            if is_over or not np.isfinite(losses[-1]):
                break
    source.restore(position)
    return LearningRateSearch(rates[: len(losses)], losses)


def _endless(source: Source) -> Iterator[Any]:
    for epoch in count(1):
        yield from source.begin(epoch)


def _optimizer(given: Any, model: Module, rates: list[float]) -> tuple[Any, Callable[[float], None]]:
    """An optimizer, and a function that sets its learning rate for the next step."""
    if given is None:
        given = adam("find_learning_rate")
    if isinstance(given, Optimizer) or not callable(given):
        raise TypeError(
            "optimizer of find_learning_rate is a function of the learning rate, such as optax.adam, or a class such "
            f"as nn.optim.Adam, not {type(given).__name__}{at_line(user_line())}"
        )
    if isinstance(given, type) and issubclass(given, Optimizer):
        cls: Any = given
        made = cls(model, lr=rates[0])

        def set_rate(rate: float) -> None:
            for group in made.param_groups:
                group["lr"] = rate

        return made, set_rate
    growth = (rates[-1] / rates[0]) ** (1 / (len(rates) - 1))
    return Optimizer(model, given(lambda step: rates[0] * growth**step)), lambda rate: None


def _smoothed(losses: list[float]) -> list[float]:
    """Running means, in which no loss before the first one counts."""
    found, total = [], 0.0
    for i, x in enumerate(losses):
        total = _SMOOTHING * total + (1 - _SMOOTHING) * x
        found.append(total / (1 - _SMOOTHING ** (i + 1)))
    return found
