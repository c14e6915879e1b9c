"""Metric: sums over samples, and what is computed of them in the end.

A metric is a module whose state is one array of sums.  What a batch adds to them is a function of its output and target
alone, so it works in compiled code, on a mesh, and for batches some of whose samples do not count.  Sums have 64 bits:
counts are exact, and small batches are not lost in long epochs.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import Shape
from ...xla import gathered
from ..cells.kinds import Buffer
from ..modules.module import Module


class Metric(Module):
    """Base class of metrics: override `of_batch` and `value_of`.

    `nn.fit` takes metrics, and calls them by name; in your own loop, `update(output, target)` after each batch,
    `compute()` at the end and `reset()` before the next epoch are the same.  In compiled code a metric must be an
    argument, as other modules.

    Args:
        shape: shape of the sums.

    Attributes:
        sums: the sums so far, a buffer of float64.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> class Bias(nn.metrics.Metric):
        ...     def __init__(self):
        ...         super().__init__((2,))
        ...     def of_batch(self, output, target, mask=None):
        ...         weight = np.ones(len(target)) if mask is None else mask
        ...         return np.stack([(weight * (output - target)).sum(), weight.sum()])
        ...     def value_of(self, sums):
        ...         return sums[0] / sums[1]
        >>> bias = Bias()
        >>> for output in (1.0, 3.0):
        ...     bias.update(np.array([output]), np.array([0.0]))
        >>> bias.compute()
        2.0
    """

    def __init__(self, shape: Shape) -> None:
        self.sums = Buffer(np.zeros(shape), persistent=False)

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        """What a batch adds to the sums.

        Args:
            output: output of the model.
            target: target.
            mask: which samples count, a boolean array of shape [n]; None if all do.

        Returns:
            An array of the shape of the sums.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define of_batch{at_line(user_line())}")

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        """The metric for given sums: a number, or an array."""
        raise NotImplementedError(f"{type(self).__name__} does not define value_of{at_line(user_line())}")

    def update(self, output: Any, target: Any, mask: Any = None) -> None:
        """Add a batch; see `of_batch`.  Sums have no derivatives: of a tensor its values count."""
        self.add(self.of_batch(_detached(output), _detached(target), mask))

    def add(self, sums: Any) -> None:
        """Add what `of_batch` returned."""
        self.sums = self.sums + sums

    def forward(self, output: Any, target: Any) -> Any:
        """Add a batch, and return the metric of this batch alone; not in compiled code, which only `update` is for."""
        sums = self.of_batch(_detached(output), _detached(target))
        self.add(sums)
        return self._value(np.asarray(sums, np.float64))

    def compute(self) -> Any:
        """The metric of all batches since the last `reset`: a number, NaN if there were none; or an array."""
        return self._value(np.asarray(gathered(self.state_cell.array), np.float64))

    def reset(self) -> None:
        """Forget all batches."""
        self.state_cell.value = np.zeros(self.state_cell.shape)

    @property
    def state_cell(self) -> Any:
        """The cell that holds the sums."""
        return dict(self.named_cells())["sums"]

    def _value(self, sums: np.ndarray[Any, Any]) -> Any:
        with np.errstate(all="ignore"):
            found = self.value_of(sums)
        return float(found) if np.ndim(found) == 0 else found

    @property
    def label(self) -> str:
        """The name in `nn.fit`, unless another one is given: that of the class in small letters."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(self).__name__).lower()


def _detached(x: Any) -> Any:
    """A value that nothing is recorded for."""
    return x.detach() if hasattr(x, "detach") else x
