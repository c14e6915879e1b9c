"""The learning rate of each epoch, as an entry of the history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...xla import gathered
from ..optim.optimizer import Optimizer
from ..training.callbacks import Callback, FitState


class LearningRateMonitor(Callback):
    """Adds the learning rate to the figures of each epoch, so that loggers and curves show it.

    It is read from the groups of an optimizer of `nn.optim` (`lr`, and `lr_1` and so on for further groups), or from
    the state of a transformation that was made by `optax.inject_hyperparams`.  Put it before the loggers.

    Raises:
        ValueError: in the training, the optimizer has no learning rate that can be read.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> x, model = np.ones((8, 1), np.float32), nn.Linear(1, 1)
        >>> history = nn.fit(
        ...     model, nn.batches(x, x), loss=nn.functional.mse_loss, optimizer=nn.optim.SGD(model, lr=0.25),
        ...     progress=False, callbacks=nn.callbacks.LearningRateMonitor(),
        ... )
        >>> history["lr"]
        [0.25]
    """

    def on_epoch_end(self, state: FitState) -> None:
        """Add the entries."""
        rates = list(learning_rates(state.optimizer))
        if not rates:
            raise ValueError(
                "LearningRateMonitor finds no learning rate in the optimizer: optax keeps one within functions unless "
                "it is made by optax.inject_hyperparams(optax.adam)(1e-3); nn.optim.Adam(model, lr=1e-3) has one"
                + at_line(user_line())
            )
        state.logs.update({"lr" if i == 0 else f"lr_{i}": rate for i, rate in enumerate(rates)})


def learning_rates(optimizer: Optimizer) -> Iterator[float]:
    """The learning rates of an optimizer, as far as they can be read."""
    groups: Any = getattr(optimizer, "param_groups", None)
    if groups is not None:
        for group in groups:
            yield float(group["lr"])
        return
    for path, cell in optimizer.named_cells():
        if path.endswith("hyperparams.learning_rate"):
            yield float(np.asarray(gathered(cell.array)))
