"""The area under the ROC curve, of histograms of the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ..functional import sigmoid, softmax
from .layout import classes_last, is_binary, one_hot, require_classes, weights_of, wide
from .metric import Metric


class AUROC(Metric):
    """The area under the ROC curve: how often a positive sample has a larger number than a negative one.

    Probabilities are counted in bins of equal width, on the device; samples in one bin count as ties.  So the figure
    is that of probabilities rounded to `1 / bins`, which differs from the exact one by half the share of pairs of a
    positive and a negative sample in one bin at most.

    Args:
        num_classes: number of classes, each of which is compared with all others; None for an output of the shape of
            the target, one number for yes or no.
        average: over classes: "macro", the mean over those that have positive and negative samples; None for an array.
        bins: number of bins.
        from_logits: whether outputs are logits, not probabilities.
        ignore_index: a target that does not count; None if all do.

    Raises:
        ValueError: an argument is out of range; when it is called, shapes do not fit.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> auroc = nn.metrics.AUROC()
        >>> auroc.update(np.array([-1.0, 0.0, 1.0, 2.0]), np.array([0, 1, 0, 1]))
        >>> auroc.compute()
        0.75
    """

    def __init__(
        self,
        num_classes: int | None = None,
        average: str | None = "macro",
        bins: int = 1000,
        from_logits: bool = True,
        ignore_index: int | None = None,
    ) -> None:
        require_classes(num_classes)
        if average not in ("macro", None):
            raise ValueError(f"average is {average!r}, but can be 'macro' or None{at_line(user_line())}")
        if isinstance(bins, bool) or bins < 2:
            raise ValueError(f"bins must be an integer, at least 2, not {bins!r}{at_line(user_line())}")
        super().__init__((2, num_classes or 1, bins))
        self.num_classes = num_classes
        self.average = average
        self.bins = bins
        self.from_logits = from_logits
        self.ignore_index = ignore_index

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        if (self.num_classes is None) != is_binary(output, target):
            raise ValueError(
                f"AUROC{'' if self.num_classes is None else '(num_classes)'} was given an output of shape "
                f"{tuple(output.shape)} for targets of shape {tuple(target.shape)}; write AUROC() for one number for "
                f"yes or no, AUROC(num_classes) for a number for each class{at_line(user_line())}"
            )
        weights = weights_of(target, mask, self.ignore_index).reshape(-1, 1)
        if self.num_classes is None:
            shares = wide(output).reshape(-1, 1)
            shares = sigmoid(shares) if self.from_logits else shares
            positives = (target > 0.5).reshape(-1, 1).astype(np.float32)
        else:
            shares = wide(classes_last(output, target, "AUROC")).reshape(-1, self.num_classes)
            shares = softmax(shares, -1) if self.from_logits else shares
            positives = one_hot(target.reshape(-1), self.num_classes)
        bins = np.clip((shares * self.bins).astype(np.int32), 0, self.bins - 1)
        size = bins.shape[1] * self.bins
        # In the middle of a bin, so that rounding moves nothing to another one.
        place = (bins + np.arange(bins.shape[1]) * self.bins).reshape(-1).astype(np.float64) + 0.5
        counted = [
            np.histogram(place, size, (0, size), weights=(weights * x).reshape(-1))[0]
            for x in (positives, 1 - positives)
        ]
        return np.stack(counted).reshape(self.state_cell.shape)

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        positives, negatives = sums
        below = np.cumsum(negatives, 1) - negatives
        pairs = positives.sum(1) * negatives.sum(1)
        areas = (positives * (below + negatives / 2)).sum(1) / np.where(pairs > 0, pairs, np.nan)
        if self.num_classes is None:
            return areas[0]
        has_both = pairs > 0
        return areas if self.average is None else np.where(has_both, areas, 0).sum() / has_both.sum()
