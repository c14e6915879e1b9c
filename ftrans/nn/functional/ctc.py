"""Connectionist temporal classification: the loss of a sequence of labels without its alignment to the inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...api.loops import scan
from ...base.source import at_line, user_line
from .arguments import array, checked_indices, concrete, described, reduced
from .entry import functional

__all__ = ["ctc_loss"]

# The logarithm of a probability of 0: finite, so that differences are.
_IMPOSSIBLE = -1e30


@functional
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Connectionist temporal classification: the negative log-likelihood of labels over all alignments with the inputs.

    An alignment assigns a class to each step; merging repetitions and then removing blanks gives the labels.  The sum
    is computed by the forward algorithm with logarithms (Graves, Fernandez, Gomez and Schmidhuber, 2006), in time and
    memory proportional to T * N * (S + C).

    Args:
        log_probs: log-probabilities of C classes, of shape (T, N, C), or (T, C) for one sequence.
        targets: labels, integers of shape (N, S), padded to a common length; or the labels of all sequences
            concatenated, whose lengths must then be known while tracing.
        input_lengths: number of steps of each sequence, of shape (N,), at most T.
        target_lengths: number of labels of each sequence, of shape (N,).
        blank: class index of the blank.
        reduction: "none" for the loss of each sequence, "mean" (of losses divided by numbers of labels), or "sum".
        zero_infinity: whether the loss of labels that are too long for their inputs is 0 instead of infinity.  Its
            derivative is 0 in both cases.

    Raises:
        ValueError: shapes or lengths do not match, or `reduction` is unknown.
        IndexError: a label is out of range.

    Example:
        >>> import ftrans.nn.functional as F
        >>> even = np.log(np.full((3, 1, 2), 0.5))
        >>> np.exp(-F.ctc_loss(even, np.array([[1]]), [3], [1])).round(4)
        np.float64(0.75)
    """
    x = array(log_probs)
    batched = len(x.shape) == 3
    if len(x.shape) not in (2, 3):
        raise ValueError(f"log_probs of ctc_loss must be (T, N, C) or (T, C), not {described(x)}{at_line(user_line())}")
    x = x if batched else x[:, None]
    steps, count, classes = x.shape
    if not -classes <= blank < classes:
        raise ValueError(f"blank={blank} of ctc_loss is out of range for {classes} classes{at_line(user_line())}")
    blank = blank % classes
    rows = _lengths("input_lengths", input_lengths, count, steps)
    labels = _lengths("target_lengths", target_lengths, count, None)
    targets = _padded(array(targets), labels, count)
    labels = _lengths("target_lengths", labels, count, targets.shape[1])
    is_label = np.arange(targets.shape[1]) < labels[:, None]
    known = concrete(is_label), concrete(targets)
    if known[0] is not None and known[1] is not None and bool((known[0] & (known[1] == blank)).any()):
        raise ValueError(f"targets of ctc_loss contain the blank, {blank}, which is not a label{at_line(user_line())}")
    targets = checked_indices(np.where(is_label, targets, blank), classes, "ctc_loss", "targets")

    # A blank before, between and after labels: these are the states of an alignment.
    states = np.reshape(
        np.stack([np.full(targets.shape, blank) + 0 * targets, targets], axis=2), (count, 2 * targets.shape[1])
    )
    states = np.concatenate([states, np.full((count, 1), blank)], axis=1)
    scores = np.take_along_axis(x, np.broadcast_to(states, (steps, *states.shape)), axis=2)
    wide = x.dtype if x.dtype.itemsize >= 4 else np.float32
    scores = scores.astype(wide)
    scores = np.where(scores > _IMPOSSIBLE, scores, _IMPOSSIBLE)
    total = _log_likelihood(scores, states, blank, rows, labels)

    is_possible = total > _IMPOSSIBLE / 2
    loss = np.where(is_possible, -total, 0.0 if zero_infinity else math.inf).astype(x.dtype)
    if reduction == "mean":
        loss = loss / np.where(labels > 1, labels, 1).astype(x.dtype)
    return reduced(loss if batched else loss[0], reduction, "ctc_loss")


def _log_likelihood(scores: Any, states: Any, blank: int, rows: Any, labels: Any) -> Any:
    """The logarithm of the sum over alignments.

    Args:
        scores: logarithms of the probabilities of the states, of shape (T, N, 2 S + 1).
        states: the class of each state, of shape (N, 2 S + 1).
        blank: the class of the blank.
        rows: numbers of steps.
        labels: numbers of labels.
    """
    steps, count, size = scores.shape
    numbers = np.arange(size)
    nothing = np.full((count, 2), _IMPOSSIBLE, scores.dtype)
    # From one label to the next one the blank may be left out, unless they are equal.
    before = np.concatenate([np.full((count, 2), blank), states[:, :-2]], axis=1)[:, :size]
    may_skip = (states != blank) & (states != before)

    def step(alpha: Any, element: tuple[Any, Any]) -> tuple[Any, None]:
        number, score = element
        padded = np.concatenate([nothing, alpha], axis=1)
        stay, next, skip = alpha, padded[:, 1:-1], np.where(may_skip, padded[:, :-2], _IMPOSSIBLE)
        greatest = stop_gradient(np.maximum(np.maximum(stay, next), skip))
        total = np.exp(stay - greatest) + np.exp(next - greatest) + np.exp(skip - greatest)
        after = greatest + np.log(total) + score
        return np.where((number < rows)[:, None], after, alpha), None

    first = np.where(numbers == 0, 0.0, _IMPOSSIBLE) + np.zeros((count, 1))
    alpha, _ = scan(step, first.astype(scores.dtype), (np.arange(steps), scores))
    is_end = (numbers == 2 * labels[:, None]) | (numbers == 2 * labels[:, None] - 1)
    ends = np.where(is_end, alpha, _IMPOSSIBLE)
    greatest = stop_gradient(np.max(ends, axis=1))
    return greatest + np.log(np.sum(np.exp(ends - greatest[:, None]), axis=1))


def _lengths(name: str, given: Any, count: int, most: int | None) -> Any:
    """A vector of lengths, one for each sequence, checked as far as they are known."""
    lengths = array(given)
    lengths = np.reshape(lengths, (1,)) if not lengths.shape else lengths
    if lengths.shape != (count,) or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"{name} of ctc_loss must hold {count} integer{'s' * (count > 1)}, one for each sequence, not "
            f"{described(lengths)}{at_line(user_line())}"
        )
    values = concrete(lengths)
    if values is not None and count and (values.min() < 0 or (most is not None and values.max() > most)):
        limit = "0 on" if most is None else f"0 to {most}"
        raise ValueError(f"{name} of ctc_loss must be from {limit}, not {values.tolist()}{at_line(user_line())}")
    return lengths


def _padded(targets: Any, labels: Any, count: int) -> Any:
    """Labels as a matrix (N, S)."""
    if targets.dtype.kind not in "iu":
        raise TypeError(f"targets of ctc_loss must be integers, not {described(targets)}{at_line(user_line())}")
    if len(targets.shape) == 2 and targets.shape[0] == count:
        return targets
    if len(targets.shape) != 1:
        raise ValueError(
            f"targets of ctc_loss must be ({count}, S), or one vector with the labels of all sequences, not "
            f"{described(targets)}{at_line(user_line())}"
        )
    lengths = concrete(labels)
    if lengths is None:
        raise TypeError(
            "ctc_loss with the labels of all sequences in one vector needs target_lengths that are known when it is "
            f"traced; give targets of shape ({count}, S) instead{at_line(user_line())}"
        )
    if count == 1:
        return targets[None]
    if int(lengths.sum()) != targets.shape[0]:
        raise ValueError(
            f"target_lengths of ctc_loss add up to {int(lengths.sum())}, but there are {targets.shape[0]} labels"
            + at_line(user_line())
        )
    places = np.arange(int(lengths.max())) + (np.cumsum(lengths) - lengths)[:, None]
    return targets[np.minimum(places, targets.shape[0] - 1)]
