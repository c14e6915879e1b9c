"""Mean errors, and the share of the variance that a model explains."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from .layout import weights_of, wide
from .metric import Metric

# What the absolute value of a target is at least, in relative errors.
_LEAST = 1.17e-6


class _MeanError(Metric):
    """The mean of an error of each element: sums of the errors, and of their number."""

    def __init__(self) -> None:
        super().__init__((2,))

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        _require_equal_shapes(output, target, type(self).__name__)
        weights = weights_of(target, mask)
        errors = self._errors(wide(output), wide(target)).astype(np.float64)
        return np.stack([(weights * errors).sum(), weights.astype(np.float64).sum()])

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        return sums[0] / sums[1]

    def _errors(self, output: Any, target: Any) -> Any:
        raise NotImplementedError


class MeanSquaredError(_MeanError):
    """The mean of squared differences.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> error = nn.metrics.MeanSquaredError()
        >>> error.update(np.array([1.0, 2.0]), np.array([0.0, 0.0]))
        >>> error.compute()
        2.5
    """

    def _errors(self, output: Any, target: Any) -> Any:
        return (output - target) ** 2


class RootMeanSquaredError(MeanSquaredError):
    """The root of the mean of squared differences.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.metrics.RootMeanSquaredError()(np.array([3.0]), np.array([0.0]))
        3.0
    """

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        return np.sqrt(sums[0] / sums[1])


class MeanAbsoluteError(_MeanError):
    """The mean of absolute differences.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.metrics.MeanAbsoluteError()(np.array([3.0, 1.0]), np.array([0.0, 0.0]))
        2.0
    """

    def _errors(self, output: Any, target: Any) -> Any:
        return abs(output - target)


class MeanAbsolutePercentageError(_MeanError):
    """The mean of absolute differences relative to the target; 1 is 100 %, as elsewhere.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.metrics.MeanAbsolutePercentageError()(np.array([3.0, 1.0]), np.array([2.0, 2.0]))
        0.5
    """

    def _errors(self, output: Any, target: Any) -> Any:
        return abs(output - target) / np.maximum(abs(target), _LEAST)


class R2Score(Metric):
    """The share of the variance of the target that the output explains: 1 - (squared errors) / (squared deviations).

    The figure is that of all elements together.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.metrics.R2Score()(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]))
        0.5
    """

    def __init__(self) -> None:
        super().__init__((4,))

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        _require_equal_shapes(output, target, "R2Score")
        weights = weights_of(target, mask).astype(np.float64)
        y, errors = target.astype(np.float64), (wide(output) - wide(target)).astype(np.float64)
        return np.stack([weights.sum(), (weights * y).sum(), (weights * y**2).sum(), (weights * errors**2).sum()])

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        count, total, squares, errors = sums
        return 1 - errors / (squares - total**2 / count)


def _require_equal_shapes(output: Any, target: Any, what: str) -> None:
    if tuple(output.shape) != tuple(target.shape):
        raise ValueError(
            f"{what} was given an output of shape {tuple(output.shape)} for targets of shape {tuple(target.shape)}, "
            f"which must be equal; reshape one of them{at_line(user_line())}"
        )
