"""Perplexity of language models."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functional import log_softmax
from .layout import classes_last, of_class, weights_of, wide
from .metric import Metric


class Perplexity(Metric):
    """The exponential of the mean cross entropy: among how many tokens of equal probability a model chooses.

    Args:
        ignore_index: a target that does not count, such as padding.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> perplexity = nn.metrics.Perplexity()
        >>> perplexity.update(np.zeros((1, 3, 8)), np.array([[0, 5, -100]]))
        >>> round(perplexity.compute(), 6)
        8.0
    """

    def __init__(self, ignore_index: int | None = -100) -> None:
        super().__init__((2,))
        self.ignore_index = ignore_index

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        scores = wide(classes_last(output, target, "Perplexity"))
        weights = weights_of(target, mask, self.ignore_index)
        chosen = of_class(log_softmax(scores, -1), target, weights)[..., 0]
        errors = np.where(weights > 0, -chosen, 0).astype(np.float64)
        return np.stack([errors.sum(), weights.astype(np.float64).sum()])

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        return np.exp(sums[0] / sums[1])
