"""Averages of parameters over training steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...api.call import record_or_run
from ...base.source import at_line, user_line
from ...core.trace import current_builder
from ...core.types import is_inexact
from ...xla import copied, is_jax, place, placement
from ..cells.kinds import Buffer, Cells
from ..devices.placing import mesh_of
from ..modules.module import Module
from ..modules.roots import require_module


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
        self.averages = Cells({path: Buffer(_zeros(p) if debias else _copy(p)) for path, p in kept.items()})
        mesh, zero = mesh_of(kept.values()), np.asarray(0, np.int32)
        self.count = Buffer(zero if mesh is None else place(zero, placement(mesh, ())))

    def update(self) -> None:
        """Update the averages with the current parameters."""
        parameters = dict(self.model.named_parameters())
        averages = [*self.averages.values()]
        count = len(averages)

        def averaged(xs: list[Any]) -> list[Any]:
            pairs = zip(xs[1 : 1 + count], xs[1 + count :], strict=True)
            return [
                xs[0] + np.int32(1),
                *((self.decay * old + (1 - self.decay) * now).astype(old.dtype) for old, now in pairs),
            ]

        held = [*map(_held_by, [self.count, *averages, *(parameters[path] for path in self.averages)])]
        new = record_or_run("the update of an average", averaged, held)
        for cell, x in zip([self.count, *averages], new, strict=True):
            cell.value = x

    def parameters_of_average(self) -> dict[str, Any]:
        """The averages by parameter path."""
        if not self.debias:
            return {path: average.value for path, average in self.averages.items()}
        weight = 1 - self.decay**self.count.value
        return {path: (a.value / weight).astype(a.dtype) for path, a in self.averages.items()}

    def copy_to(self, model: Module | None = None) -> None:
        """Copy the averages into the parameters of the model, or of another model of the same structure."""
        parameters = dict((model or self.model).named_parameters())

        held = [*map(_held_by, [self.count, *self.averages.values()])]
        if self.debias:
            held[1:] = record_or_run("the averages", self._debiased, held)
        for path, x in zip(self.averages, held[1:], strict=True):
            # No two cells hold one array of a device: a step may overwrite it.
            parameters[path].value = copied(x, x.dtype) if is_jax(x) else x

    def _debiased(self, xs: list[Any]) -> list[Any]:
        weight = 1 - self.decay ** xs[0]
        return [(x / weight).astype(x.dtype) for x in xs[1:]]

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


def _zeros(cell: Any) -> Any:
    zeros = np.zeros(cell.shape, cell.dtype)
    return zeros if cell.sharding is None else place(zeros, cell.sharding)


def _copy(cell: Any) -> Any:
    return np.array(cell.value) if cell.sharding is None else copied(cell.array, cell.dtype)


def _held_by(cell: Any) -> Any:
    """The array of a cell where it is; in a trace, a cell knows whether it was given."""
    return cell.array if current_builder() is None else cell.read()
