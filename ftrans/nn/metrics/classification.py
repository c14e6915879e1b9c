"""Metrics of classes: accuracy, precision, recall, F1, and the confusion matrix with its picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from .layout import (
    classes_last,
    is_binary,
    of_class,
    one_hot,
    positive,
    require_classes,
    require_threshold,
    weights_of,
    wide,
)
from .metric import Metric
from .pictures import save_matrix

_AVERAGES = ("micro", "macro", "weighted", None)


class Accuracy(Metric):
    """The share of targets that are met.

    For targets that are numbers of classes, of shape [n], the output has a number for each class, of shape
    [n, classes] (or [n, classes, *s] for targets of shape [n, *s], as losses take them).  An output of the shape of the
    target is one number for yes or no.

    Args:
        top_k: a target is met if it is among this many classes of the largest numbers.
        threshold: of yes or no, the probability from which an answer is yes.
        from_logits: of yes or no, whether outputs are logits, not probabilities.
        ignore_index: a target that does not count; None if all do.

    Raises:
        ValueError: an argument is out of range; when it is called, shapes do not fit.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> accuracy = nn.metrics.Accuracy()
        >>> accuracy.update(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([0, 0]))
        >>> accuracy.compute()
        0.5
    """

    def __init__(
        self, top_k: int = 1, threshold: float = 0.5, from_logits: bool = True, ignore_index: int | None = None
    ) -> None:
        super().__init__((2,))
        if isinstance(top_k, bool) or top_k < 1:
            raise ValueError(f"top_k must be a positive integer, not {top_k!r}{at_line(user_line())}")
        self.top_k = top_k
        self.threshold = require_threshold(threshold)
        self.from_logits = from_logits
        self.ignore_index = ignore_index

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        weights = weights_of(target, mask, self.ignore_index)
        if is_binary(output, target):
            is_met = positive(wide(output), self.threshold, self.from_logits) == (target > 0.5)
        else:
            scores = wide(classes_last(output, target, "Accuracy"))
            if self.top_k == 1:
                is_met = np.argmax(scores, axis=-1) == target
            else:
                own = of_class(scores, target, weights)
                # Of equal numbers the first ones come first.
                before = np.arange(scores.shape[-1]) < target[..., None]
                ahead = (scores > own) | ((scores == own) & before)
                is_met = ahead.astype(np.int32).sum(-1) < self.top_k
        return np.stack([(weights * is_met.astype(np.float32)).sum(), weights.sum()])

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        return sums[0] / sums[1]


class TopKAccuracy(Accuracy):
    """The share of targets that are among the `k` classes with the largest numbers; see `Accuracy`.

    Args:
        k: number of classes.
        ignore_index: a target that does not count; None if all do.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> top = nn.metrics.TopKAccuracy(2)
        >>> top.update(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), np.array([1, 2]))
        >>> top.compute()
        0.5
    """

    def __init__(self, k: int = 5, ignore_index: int | None = None) -> None:
        super().__init__(top_k=k, ignore_index=ignore_index)


class _OfClasses(Metric):
    """Metrics of how often classes were predicted rightly, wrongly, and missed: sums of shape [3, classes]."""

    def __init__(
        self,
        num_classes: int | None = None,
        average: str | None = "macro",
        threshold: float = 0.5,
        from_logits: bool = True,
        ignore_index: int | None = None,
    ) -> None:
        self.num_classes = require_classes(num_classes)
        if average not in _AVERAGES:
            raise ValueError(f"average is {average!r}, but can be one of {_AVERAGES}{at_line(user_line())}")
        super().__init__((3, num_classes or 1))
        self.average = average
        self.threshold = require_threshold(threshold)
        self.from_logits = from_logits
        self.ignore_index = ignore_index

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        weights = weights_of(target, mask, self.ignore_index)[..., None]
        if self.num_classes is None:
            if not is_binary(output, target):
                raise ValueError(
                    f"{type(self).__name__} was given an output of shape {tuple(output.shape)} for targets of shape "
                    f"{tuple(target.shape)}; write {type(self).__name__}(num_classes) for numbers of classes"
                    + at_line(user_line())
                )
            given = positive(wide(output), self.threshold, self.from_logits)[..., None].astype(np.float32)
            wanted = (target > 0.5)[..., None].astype(np.float32)
        else:
            scores = wide(classes_last(output, target, type(self).__name__))
            given = one_hot(np.argmax(scores, axis=-1), self.num_classes)
            wanted = one_hot(target, self.num_classes)
        axes = tuple(range(target.ndim))
        parts = given * wanted, given * (1 - wanted), (1 - given) * wanted
        return np.stack([(weights * x).sum(axes) for x in parts])

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        if self.num_classes is None:
            return self._ratio(*sums[:, 0])
        if self.average == "micro":
            return self._ratio(*sums.sum(1))
        of_classes = self._ratio(*sums)
        if self.average is None:
            return of_classes
        # A class that is neither there nor predicted has no figure.
        counts = (sums.sum(0) > 0) if self.average == "macro" else sums[0] + sums[2]
        return (of_classes * counts).sum() / counts.sum()

    def _ratio(self, right: Any, wrong: Any, missed: Any) -> Any:
        raise NotImplementedError


def _share(part: Any, whole: Any) -> Any:
    """A ratio; 0 where there is nothing."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.0)


class Precision(_OfClasses):
    """The share of predictions of a class that are right.

    Args:
        num_classes: number of classes; None for an output of the shape of the target, one number for yes or no.
        average: over classes: "macro", the mean over those that occur; "weighted", by how often they occur; "micro",
            over all predictions; None for an array with a figure for each class.
        threshold: of yes or no, the probability from which an answer is yes.
        from_logits: of yes or no, whether outputs are logits, not probabilities.
        ignore_index: a target that does not count; None if all do.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> precision = nn.metrics.Precision()
        >>> precision.update(np.array([1.0, 2.0, -1.0]), np.array([1, 0, 1]))
        >>> precision.compute()
        0.5
    """

    def _ratio(self, right: Any, wrong: Any, missed: Any) -> Any:
        return _share(right, right + wrong)


class Recall(_OfClasses):
    """The share of a class that is found; arguments as of `Precision`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> recall = nn.metrics.Recall(num_classes=2, average=None)
        >>> recall.update(np.array([[2.0, 1.0], [0.0, 3.0], [5.0, 0.0]]), np.array([0, 1, 1]))
        >>> recall.compute()
        array([1. , 0.5])
    """

    def _ratio(self, right: Any, wrong: Any, missed: Any) -> Any:
        return _share(right, right + missed)


class F1Score(_OfClasses):
    """The harmonic mean of precision and recall; arguments as of `Precision`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> f1 = nn.metrics.F1Score()
        >>> f1.update(np.array([1.0, 2.0, -1.0]), np.array([1, 0, 1]))
        >>> f1.compute()
        0.5
    """

    def _ratio(self, right: Any, wrong: Any, missed: Any) -> Any:
        return _share(2 * right, 2 * right + wrong + missed)


class ConfusionMatrix(Metric):
    """How often each class was taken for each: in row `i` and column `j`, targets `i` with the prediction `j`.

    Args:
        num_classes: number of classes; 2 for an output of the shape of the target, one number for yes or no.
        normalize: "true" for shares of each row, "pred" of each column, "all" of all; None for numbers.
        threshold: of yes or no, the probability from which an answer is yes.
        from_logits: of yes or no, whether outputs are logits, not probabilities.
        ignore_index: a target that does not count; None if all do.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> confusion = nn.metrics.ConfusionMatrix(2)
        >>> confusion.update(np.array([[2.0, 1.0], [0.0, 3.0], [5.0, 0.0]]), np.array([0, 1, 1]))
        >>> confusion.compute()
        array([[1, 0],
               [1, 1]])
    """

    def __init__(
        self,
        num_classes: int,
        normalize: str | None = None,
        threshold: float = 0.5,
        from_logits: bool = True,
        ignore_index: int | None = None,
    ) -> None:
        require_classes(num_classes)
        if normalize not in (None, "true", "pred", "all"):
            raise ValueError(
                f"normalize is {normalize!r}, but can be 'true', 'pred', 'all' or None{at_line(user_line())}"
            )
        super().__init__((num_classes, num_classes))
        self.num_classes = num_classes
        self.normalize = normalize
        self.threshold = require_threshold(threshold)
        self.from_logits = from_logits
        self.ignore_index = ignore_index

    def of_batch(self, output: Any, target: Any, mask: Any = None) -> Any:
        weights = weights_of(target, mask, self.ignore_index)
        if is_binary(output, target):
            given = positive(wide(output), self.threshold, self.from_logits).astype(np.int32)
        else:
            given = np.argmax(wide(classes_last(output, target, "ConfusionMatrix")), axis=-1)
        rows = one_hot(target.reshape(-1).astype(np.int32), self.num_classes) * weights.reshape(-1, 1)
        return rows.T @ one_hot(given.reshape(-1), self.num_classes)

    def value_of(self, sums: np.ndarray[Any, Any]) -> Any:
        if self.normalize is None:
            return sums.astype(np.int64)
        axis = {"true": 1, "pred": 0, "all": None}[self.normalize]
        return _share(sums, sums.sum(axis, keepdims=True))

    def plot(self, path: str | os.PathLike[str], labels: Sequence[str] | None = None) -> None:
        """Draw the matrix.

        Args:
            path: the image file: `.png`, `.svg` or `.pdf`.
            labels: names of the classes; their numbers by default.

        Raises:
            ValueError: the suffix is not supported, or there are not as many labels as classes.
            ImportError: matplotlib is not installed.
        """
        save_matrix(path, self.compute(), labels)
