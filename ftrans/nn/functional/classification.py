"""Classification losses: of one class out of several, and of labels that are true or false."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...api.custom_rules import custom_jvp
from ...api.derivatives import stop_gradient
from ...api.elementwise import apply_elementwise
from ...base.source import at_line, user_line
from ...ops.elementwise import softplus as softplus_primitive
from .activations import logsigmoid
from .arguments import (
    array,
    checked_indices,
    concrete,
    described,
    numbers_like,
    positive_part,
    reduced,
    same_shapes,
    shape_of,
    unknown_reduction,
)
from .entry import functional

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "kl_div", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "soft_margin_loss",
]  # fmt: skip

# Classes by their numbers


@functional
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Cross entropy of the softmax of scores and a target: a class, or a probability for each class.

    Args:
        input: unnormalized scores (logits) of C classes, of shape (N, C), (N, C, d1, ...) or (C,).
        target: class indices of shape (N,), (N, d1, ...) or (); or probabilities of the shape of `input`.
        weight: weight of each class, of shape (C,).
        ignore_index: class index of elements that are ignored.
        reduction: "none" for the loss of each element, "mean" (with weights the weighted mean), or "sum".
        label_smoothing: fraction of the target that is spread evenly over all classes, from 0 to 1.

    Returns:
        A scalar, or with "none" an array of the shape of `input` without the axis of classes.  The mean of no elements
        is NaN.

    Raises:
        ValueError: the shapes do not match, `label_smoothing` is not from 0 to 1, or `reduction` is unknown.
        IndexError: a class index is out of range.  Compiled code, which cannot check it, returns NaN for that element.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.cross_entropy(np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([0, 1])).round(4)
        np.float64(0.41)
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be from 0 to 1, not {label_smoothing}{at_line(user_line())}")
    input, target = array(input), array(target)
    axis = _class_axis(input, "cross_entropy")
    scores = input - np.max(stop_gradient(input), axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(scores), axis=axis))
    weights = _class_weights(weight, input, axis, "cross_entropy")
    if target.dtype.kind in "iu":
        return _loss_of_classes(
            scores, total, target, axis, weights, ignore_index, reduction, label_smoothing, "cross_entropy"
        )
    if target.shape != input.shape:
        raise ValueError(
            f"target of cross_entropy must be class indices, integers of shape {total.shape}, or a probability for "
            f"each class, of the shape of input {described(input)}, not {described(target)}; convert class indices "
            f"with .astype(np.int64){at_line(user_line())}"
        )
    count = input.shape[axis]
    wanted = target if not label_smoothing else target * (1 - label_smoothing) + label_smoothing / count
    wanted = wanted if weights is None else wanted * weights
    # A class of probability 0 counts for nothing, also where its score is -inf.
    logarithms = np.where(wanted == 0, 0, scores - np.expand_dims(total, axis))
    loss = -np.sum(logarithms * wanted, axis=axis)
    # The mean is over all elements, whatever the weights.
    return reduced(loss, reduction, "cross_entropy")


@functional
def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """Negative log-likelihood of the true classes.

    Args:
        input: log-probabilities of C classes, of shape (N, C), (N, C, d1, ...) or (C,).
        target: class indices of shape (N,), (N, d1, ...) or ().
        weight: weight of each class, of shape (C,).
        ignore_index: class index of elements that are ignored.
        reduction: "none" for the loss of each element, "mean" (with weights the weighted mean), or "sum".

    Raises:
        ValueError: the shapes do not match, or `reduction` is unknown.
        IndexError: a class index is out of range.  Compiled code, which cannot check it, returns NaN for that element.
    """
    input = array(input)
    axis = _class_axis(input, "nll_loss")
    weights = _class_weights(weight, input, axis, "nll_loss")
    return _loss_of_classes(input, None, array(target), axis, weights, ignore_index, reduction, 0.0, "nll_loss")


def _class_axis(input: Any, what: str) -> int:
    if not input.shape:
        raise ValueError(
            f"input of {what} must have an axis of classes: (N, C), (N, C, d1, ...) or (C,), not {described(input)}"
            + at_line(user_line())
        )
    return 0 if len(input.shape) == 1 else 1


def _along(axis: int, ndim: int, x: Any) -> Any:
    """A vector as an array with `ndim` axes, along the given one."""
    return x.reshape((-1,) + (1,) * (ndim - axis - 1))


def _class_weights(weight: Any, input: Any, axis: int, what: str) -> Any:
    if weight is None:
        return None
    weight, count = array(weight), input.shape[axis]
    if weight.shape != (count,):
        raise ValueError(
            f"weight of {what} must have one element for each of {count} classes, of shape ({count},), not "
            f"{described(weight)}{at_line(user_line())}"
        )
    return _along(axis, len(input.shape), numbers_like(weight, input))


def _loss_of_classes(
    scores: Any,
    total: Any,
    target: Any,
    axis: int,
    weights: Any,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    what: str,
) -> Any:
    """The loss of class indices; log-probabilities are `scores`, minus `total` if that is given."""
    shape, count = scores.shape, scores.shape[axis]
    expected = shape[:axis] + shape[axis + 1 :]
    if target.shape != expected:
        raise ValueError(
            f"target of {what} must be of shape {expected}, one class index for each element of input "
            f"{described(scores)} without its axis {axis} of classes, not {described(target)}{at_line(user_line())}"
        )
    target = checked_indices(target, count, what, "target", ignored=ignore_index)
    values = concrete(target)
    is_ignoring = values is None or bool((values == ignore_index).any())
    # Compared with all numbers of classes instead of indexed with: the derivative needs no scatter.
    is_class = np.expand_dims(target, axis) == _along(axis, len(shape), np.arange(count))
    loss = -np.sum(np.where(is_class, scores, 0), axis=axis)
    loss = loss if total is None else total + loss
    factor = None if weights is None else np.sum(np.where(is_class, weights, 0), axis=axis)
    if factor is not None:
        loss = loss * factor
    if label_smoothing:
        spread = -np.sum(scores if weights is None else scores * weights, axis=axis)
        if total is not None:
            spread = spread + total * (count if weights is None else np.sum(weights))
        loss = (1 - label_smoothing) * loss + (label_smoothing / count) * spread
    if is_ignoring:
        is_kept = target != ignore_index
        loss = np.where(is_kept, loss, 0)
        if values is None:
            loss = np.where(is_kept & ((target < 0) | (target >= count)), math.nan, loss)
    if reduction != "mean" or not (is_ignoring or factor is not None):
        return reduced(loss, reduction, what)
    if factor is None:
        divisor = np.sum(is_kept).astype(loss.dtype)
    else:
        divisor = np.sum(np.where(is_kept, factor, 0) if is_ignoring else factor)
    is_empty = divisor == 0
    return np.where(is_empty, math.nan, np.sum(loss) / np.where(is_empty, 1, divisor))


# Labels that are true or false


@functional
def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """`-(t log(p) + (1 - t) log(1 - p))` for probabilities `p` of labels `t`.

    Logarithms are bounded below by -100, and the derivative with respect to `p` divides by at least 1e-12, so that both
    are finite at 0 and 1.  `binary_cross_entropy_with_logits` needs no such bounds.

    Args:
        input: probabilities, from 0 to 1.
        target: labels, from 0 to 1, of the same shape.
        weight: weight of each element, of a shape that broadcasts to that of `input`.
        reduction: "none" for the loss of each element, "mean", or "sum".

    Raises:
        ValueError: the shapes differ, a probability is not from 0 to 1, or `reduction` is unknown.
    """
    same_shapes("binary_cross_entropy", input=input, target=target)
    input, target = array(input), array(target)
    values = concrete(input)
    if values is not None and not np.all((values >= 0) & (values <= 1) | np.isnan(values)):
        raise ValueError(
            "input of binary_cross_entropy must be probabilities, from 0 to 1; for unbounded scores use "
            f"binary_cross_entropy_with_logits{at_line(user_line())}"
        )
    loss = _bernoulli(input, target.astype(input.dtype))
    return reduced(_weighted(loss, weight, "binary_cross_entropy"), reduction, "binary_cross_entropy")


def _clamped_log(x: Any) -> Any:
    is_positive = x > 0
    return np.where(is_positive, np.maximum(np.log(np.where(is_positive, x, 1)), -100), -100)


@custom_jvp
def _bernoulli(probability: Any, label: Any) -> Any:
    return (label - 1) * _clamped_log(1 - probability) - label * _clamped_log(probability)


@_bernoulli.defjvp
def _bernoulli_jvp(primals: Any, tangents: Any) -> Any:
    (probability, label), (along_probability, along_label) = primals, tangents
    total = 0
    if along_probability is not None:
        variance = (1 - probability) * probability
        total = total + along_probability * ((probability - label) / np.where(variance > 1e-12, variance, 1e-12))
    if along_label is not None:
        total = total + along_label * (_clamped_log(1 - probability) - _clamped_log(probability))
    return _bernoulli(probability, label), total


@functional
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Any:
    """Binary cross entropy of `sigmoid(x)` and labels, finite for scores `x` of any size.

    Args:
        input: scores (logits).
        target: labels, from 0 to 1, of the same shape.
        weight: weight of each element, of a shape that broadcasts to that of `input`.
        reduction: "none" for the loss of each element, "mean", or "sum".
        pos_weight: weight of positive labels, of a shape that broadcasts to that of `input`.

    Raises:
        ValueError: the shapes do not match, or `reduction` is unknown.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.binary_cross_entropy_with_logits(np.array([0.0, 1000.0]), np.array([1.0, 1.0])).round(4)
        np.float64(0.3466)
    """
    what = "binary_cross_entropy_with_logits"
    same_shapes(what, input=input, target=target)
    input, target = array(input), array(target).astype(input.dtype)
    loss = apply_elementwise(softplus_primitive, -input)
    if pos_weight is not None:
        _check_factor(what, "pos_weight", pos_weight, input)
        loss = loss * (1 + (numbers_like(pos_weight, input) - 1) * target)
    loss = (1 - target) * input + loss
    return reduced(_weighted(loss, weight, what), reduction, what)


def _check_factor(what: str, name: str, factor: Any, like: Any) -> None:
    try:
        fits = np.broadcast_shapes(shape_of(factor), shape_of(like)) == shape_of(like)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} of {what} must broadcast to {described(like)}, which {described(factor)} does not"
            + at_line(user_line())
        )


def _weighted(loss: Any, weight: Any, what: str) -> Any:
    if weight is None:
        return loss
    _check_factor(what, "weight", weight, loss)
    return loss * numbers_like(weight, loss)


@functional
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """`log(1 + exp(-t * x))`.

    Args:
        input: scores.
        target: labels 1 and -1, of the same shape.
        reduction: "none" for the loss of each element, "mean", or "sum".

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
    """
    same_shapes("soft_margin_loss", input=input, target=target)
    input = array(input)
    product = numbers_like(array(target), input) * input
    return reduced(apply_elementwise(softplus_primitive, -product), reduction, "soft_margin_loss")


@functional
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Binary cross entropy with logits, averaged over the classes (the last axis).

    Args:
        input: scores of shape (N, C) or (C,).
        target: labels 0 and 1, of the same shape.
        weight: weight of each class, of shape (C,).
        reduction: "none" for the loss of each sample, "mean", or "sum".

    Raises:
        ValueError: the shapes do not match, or `reduction` is unknown.
    """
    what = "multilabel_soft_margin_loss"
    same_shapes(what, input=input, target=target)
    input = array(input)
    target = numbers_like(array(target), input)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    return reduced(np.mean(_weighted(loss, weight, what), axis=-1), reduction, what)


# Margins between classes


@functional
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    """Sum of `max(0, margin - x[t] + x[i]) ** p` over all classes `i` except the true one `t`, divided by C.

    Args:
        input: scores of C classes, of shape (N, C) or (C,).
        target: class indices of shape (N,) or ().
        p: exponent, 1 or 2.
        margin: required difference between the score of the true class and the others.
        weight: weight of each class, of shape (C,).
        reduction: "none" for the loss of each sample, "mean", or "sum".

    Raises:
        ValueError: the shapes do not match, `p` is neither 1 nor 2, or `reduction` is unknown.
        IndexError: a class index is out of range.
    """
    if p not in (1, 2):
        raise ValueError(f"p of multi_margin_loss must be 1 or 2, not {p}{at_line(user_line())}")
    input, target = array(input), array(target)
    if target.shape != input.shape[:-1] or not 1 <= len(input.shape) <= 2:
        raise ValueError(
            f"multi_margin_loss takes input (N, C) with target (N,), or (C,) with (), not {described(input)} with "
            f"{described(target)}{at_line(user_line())}"
        )
    count = input.shape[-1]
    target = checked_indices(target, count, "multi_margin_loss", "target")
    is_right = target[..., None] == np.arange(count)
    right = np.sum(np.where(is_right, input, 0), axis=-1, keepdims=True)
    loss = np.where(is_right, 0, positive_part(margin - right + input) ** p)
    if weight is not None:
        weights = _class_weights(weight, input, len(input.shape) - 1, "multi_margin_loss")
        loss = loss * np.sum(np.where(is_right, weights, 0), axis=-1, keepdims=True)
    return reduced(np.sum(loss, axis=-1) / count, reduction, "multi_margin_loss")


@functional
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Sum of `max(0, 1 - (x[j] - x[i]))` over true classes `j` and other classes `i`, divided by C.

    Args:
        input: scores of C classes, of shape (N, C) or (C,).
        target: indices of the true classes, of the shape of `input`, padded with -1; entries after the first -1 are
            ignored.
        reduction: "none" for the loss of each sample, "mean", or "sum".

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
        IndexError: a class index is out of range.
    """
    input, target = array(input), array(target)
    if target.shape != input.shape or not 1 <= len(input.shape) <= 2:
        raise ValueError(
            "multilabel_margin_loss takes input and target of the same shape, (N, C) or (C,), not "
            f"{described(input)} and {described(target)}{at_line(user_line())}"
        )
    count = input.shape[-1]
    target = checked_indices(target, count, "multilabel_margin_loss", "target", ignored=-1)
    is_listed = np.cumsum(target < 0, axis=-1) == 0
    matches = is_listed[..., None] & (target[..., None] == np.arange(count))
    is_right = np.any(matches, axis=-2)
    # For each place in the list, the score of the class that stands there.
    right = np.sum(np.where(matches, input[..., None, :], 0), axis=-1)
    pairs = is_listed[..., None] & ~is_right[..., None, :]
    loss = np.where(pairs, positive_part(1 - right[..., None] + input[..., None, :]), 0)
    return reduced(np.sum(loss, axis=(-2, -1)) / count, reduction, "multilabel_margin_loss")


# Distributions


@functional
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """`t * (log(t) - x)`, whose sum is the Kullback-Leibler divergence of the target `t` from `exp(x)`.

    Args:
        input: log-probabilities.
        target: probabilities, of the same shape; those of 0 contribute 0.
        reduction: "none" for the terms themselves, "mean" over all elements, "sum", or "batchmean", which divides the
            sum by the size of axis 0 and so agrees with the mathematical definition.
        log_target: whether `target` holds log-probabilities.

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
    """
    same_shapes("kl_div", input=input, target=target)
    input = array(input)
    target = numbers_like(array(target), input)
    if log_target:
        is_possible = target != -math.inf
        difference = np.where(is_possible, target, 0) - np.where(is_possible, input, 0)
        loss = np.where(is_possible, np.exp(target) * difference, 0)
    else:
        is_possible = target != 0
        logarithm = np.log(np.where(is_possible, target, 1))
        loss = target * (logarithm - np.where(is_possible, input, 0))
    if reduction == "batchmean":
        return np.sum(loss) / (shape_of(loss) or (1,))[0]
    if reduction not in ("none", "mean", "sum"):
        raise unknown_reduction(reduction, "kl_div", "'none', 'mean', 'batchmean' or 'sum'")
    return reduced(loss, reduction, "kl_div")
