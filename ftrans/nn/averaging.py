"""Averages of parameters over training steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.types import is_inexact
from .cells import Buffer, Cells
from .module import Module
from .roots import require_module


class EMA(Module):
    """Exponential moving average of the parameters of a model.

    Args:
        model: the model.
        decay: weight of the old average in each step.
        debias: whether to correct the bias of the first steps towards the initial values.

    Raises:
        TypeError: `model` is not a module.
        ValueError: the decay is not in [0, 1].

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> model = nn.Linear(1, 1)
        >>> ema = nn.EMA(model, decay=0.5)
        >>> model.bias.value = model.bias.value + 1.0
        >>> ema.update()
        >>> with ema.applied():
        ...     output = model(np.zeros((1, 1), np.float32))
    """

    _borrowed = ("model",)

    def __init__(self, model: Module, decay: float = 0.999, debias: bool = False) -> None:
        if not 0 <= decay <= 1:
            raise ValueError(f"decay must be between 0 and 1, not {decay}{at_line(user_line())}")
        require_module(model, "EMA takes")
        self.model = model
        self.decay = decay
        self.debias = debias
        kept = {path: p for path, p in model.named_parameters() if is_inexact(p.dtype)}
        start = np.zeros_like if debias else np.array
        self.averages = Cells({path: Buffer(start(p.value)) for path, p in kept.items()})
        self.count = Buffer(np.asarray(0, np.int32))

    def update(self) -> None:
        """Update the averages with the current parameters."""
        parameters = dict(self.model.named_parameters())
        for path, average in self.averages.items():
            now, old = parameters[path].value, average.value
            average.value = (self.decay * old + (1 - self.decay) * now).astype(average.dtype)
        self.count.value = self.count.value + np.int32(1)

    def parameters_of_average(self) -> dict[str, Any]:
        """The averages by parameter path."""
        if not self.debias:
            return {path: average.value for path, average in self.averages.items()}
        weight = 1 - self.decay**self.count.value
        return {path: (a.value / weight).astype(a.dtype) for path, a in self.averages.items()}

    def copy_to(self, model: Module | None = None) -> None:
        """Copy the averages into the parameters of the model, or of another model of the same structure."""
        parameters = dict((model or self.model).named_parameters())
        for path, average in self.parameters_of_average().items():
            parameters[path].value = average

    @contextmanager
    def applied(self) -> Iterator[None]:
        """A block in which the parameters of the model are the averages."""
        parameters = dict(self.model.named_parameters())
        before = {path: parameters[path].array for path in self.averages}
        try:
            self.copy_to()
            yield
        finally:
            for path, array in before.items():
                parameters[path].array = array

    def extra_repr(self) -> str:
        return f"decay={self.decay}"
