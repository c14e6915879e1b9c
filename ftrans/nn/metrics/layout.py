"""Layouts: where the classes of an output are, and which of its elements count."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line


def wide(x: Any) -> Any:
    """A floating-point array of 32 bits at least."""
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.kind not in "fc" or x.dtype.itemsize < 4 else x


def is_binary(output: Any, target: Any) -> bool:
    """Whether an output is one number for each target, not one for each of its classes."""
    return tuple(output.shape) == tuple(target.shape)


def classes_last(output: Any, target: Any, what: str) -> Any:
    """An output with its axis of classes moved to the end.

    Args:
        output: numbers of shape [*s, c], or [n, c, *s] as losses take them.
        target: classes, of shape [*s] or [n, *s].
        what: name of the metric, for messages.

    Raises:
        ValueError: the shapes are others, or fit both ways.
    """
    shape, wanted = tuple(output.shape), tuple(target.shape)
    is_last = shape[:-1] == wanted
    is_second = len(shape) > 2 and (shape[0], *shape[2:]) == wanted
    if is_last and is_second:
        raise ValueError(
            f"{what} was given an output of shape {shape} for targets of shape {wanted}: its classes may be along axis "
            f"1 or {len(shape) - 1}. Reshape both, to [samples, classes] and [samples]{at_line(user_line())}"
        )
    if not (is_last or is_second):
        raise ValueError(
            f"{what} was given an output of shape {shape} for targets of shape {wanted}; for targets of shape [n] that "
            f"are numbers of classes it takes an output of shape [n, classes]{at_line(user_line())}"
        )
    return output if is_last else np.moveaxis(output, 1, -1)


def weights_of(target: Any, mask: Any, ignore_index: int | None = None) -> Any:
    """For each element of a target 1 if it counts, and 0 if it does not, as float32."""
    counts = np.ones(target.shape, np.float32)
    if mask is not None:
        counts = counts * np.reshape(mask, (-1, *[1] * (target.ndim - 1))).astype(np.float32)
    return counts if ignore_index is None else counts * (target != ignore_index).astype(np.float32)


def one_hot(indices: Any, classes: int) -> Any:
    """For each index a row with a 1 at its place, as float32; zeros for an index that is no class."""
    return (indices[..., None] == np.arange(classes)).astype(np.float32)


def of_class(scores: Any, target: Any, weights: Any) -> Any:
    """The number of each target's class, with a last axis of length 1; of class 0 where a target does not count."""
    place = np.where(weights > 0, target, 0).astype(np.int32)
    return np.take_along_axis(scores, place[..., None], axis=-1)


def positive(output: Any, threshold: float, from_logits: bool) -> Any:
    """Which numbers of a binary output say yes, by a threshold for probabilities."""
    if not from_logits:
        return output > threshold
    return output > float(np.log(threshold / (1 - threshold)))


def require_threshold(threshold: float) -> float:
    """A threshold for probabilities."""
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is a probability between 0 and 1, not {threshold!r}{at_line(user_line())}")
    return threshold


def require_classes(num_classes: int | None, least: int = 2) -> int | None:
    """A number of classes, or None."""
    if num_classes is not None and (isinstance(num_classes, bool) or num_classes < least):
        raise ValueError(
            f"num_classes must be an integer, at least {least}, not {num_classes!r}; leave it out for yes or no"
            + at_line(user_line())
        )
    return num_classes
