"""Losses of regression and ranking."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from .arguments import array, described, numbers_like, positive_part, reduced, same_shapes, shape_of
from .distances import pairwise_distance
from .entry import functional

__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "l1_loss",
    "margin_ranking_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip

# Regression


@functional
def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """Squared error `(x - t)**2`.

    Args:
        input: array.
        target: array of the same shape.
        reduction: "none" for the loss of each element, "mean", or "sum".
        weight: weight of each element; the mean is then the weighted mean.

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.mse_loss(np.array([1.0, 2.0]), np.array([0.0, 0.0]))
        np.float64(2.5)
    """
    difference = _difference("mse_loss", input, target)
    return _weighted_mean(difference * difference, weight, reduction, "mse_loss")


@functional
def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """Absolute error `|x - t|`, with derivative 0 where it is 0.

    Args:
        input: array.
        target: array of the same shape.
        reduction: "none" for the loss of each element, "mean", or "sum".
        weight: weight of each element; the mean is then the weighted mean.

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
    """
    return _weighted_mean(np.abs(_difference("l1_loss", input, target)), weight, reduction, "l1_loss")


def _difference(what: str, input: Any, target: Any) -> Any:
    same_shapes(what, input=input, target=target)
    input = array(input)
    return input - numbers_like(target, input)


def _weighted_mean(loss: Any, weight: Any, reduction: str, what: str) -> Any:
    if weight is None:
        return reduced(loss, reduction, what)
    same_shapes(what, loss=loss, weight=weight)
    weight = numbers_like(weight, loss)
    total = reduced(loss * weight, "sum" if reduction == "mean" else reduction, what)
    return total / np.sum(weight) if reduction == "mean" else total


@functional
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """`d**2 / (2 beta)` where the absolute error `d` is less than `beta`, else `d - beta / 2`.

    Args:
        input: array.
        target: array of the same shape.
        reduction: "none" for the loss of each element, "mean", or "sum".
        beta: error at which the parabola meets the straight line.

    Raises:
        ValueError: the shapes differ, `beta` is negative, or `reduction` is unknown.
    """
    if beta < 0:
        raise ValueError(f"beta of smooth_l1_loss must not be negative, but is {beta}{at_line(user_line())}")
    difference = _difference("smooth_l1_loss", input, target)
    loss = size = np.abs(difference)
    if beta:
        is_small = size < beta
        loss = np.where(is_small, _squared_where(is_small, difference) * (0.5 / beta), size - 0.5 * beta)
    return reduced(loss, reduction, "smooth_l1_loss")


@functional
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """`d**2 / 2` where the absolute error `d` is at most `delta`, else `delta * (d - delta / 2)` (Huber, 1964).

    Args:
        input: array.
        target: array of the same shape.
        reduction: "none" for the loss of each element, "mean", or "sum".
        delta: error at which the parabola meets the straight line.
        weight: weight of each element.

    Raises:
        ValueError: the shapes differ, `delta` is not positive, or `reduction` is unknown.
    """
    if delta <= 0:
        raise ValueError(f"delta of huber_loss must be positive, not {delta}{at_line(user_line())}")
    difference = _difference("huber_loss", input, target)
    size = np.abs(difference)
    is_small = size <= delta
    loss = np.where(is_small, 0.5 * _squared_where(is_small, difference), delta * (size - 0.5 * delta))
    if weight is not None:
        same_shapes("huber_loss", loss=loss, weight=weight)
        loss = loss * numbers_like(weight, loss)
    return reduced(loss, reduction, "huber_loss")


def _squared_where(condition: Any, x: Any) -> Any:
    """`x ** 2` where the condition holds, else 0, without infinite derivatives in either case."""
    kept = np.where(condition, x, 0)
    return kept * kept


@functional
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Any:
    """Negative log-likelihood of counts under Poisson distributions.

    Args:
        input: logarithms of the expected counts, or with `log_input=False` the expected counts.
        target: counts, of the same shape.
        log_input: whether `input` holds logarithms.
        full: whether to add Stirling's approximation of `log(t!)` where the count `t` is greater than 1.
        eps: added to expected counts before their logarithm is taken.
        reduction: "none" for the loss of each element, "mean", or "sum".

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
    """
    same_shapes("poisson_nll_loss", input=input, target=target)
    input = array(input)
    target = numbers_like(array(target), input)
    loss = np.exp(input) - target * input if log_input else input - target * np.log(input + eps)
    if full:
        is_large = target > 1
        t = np.where(is_large, target, 1)
        loss = loss + np.where(is_large, t * np.log(t) - t + 0.5 * np.log(2 * math.pi * t), 0)
    return reduced(loss, reduction, "poisson_nll_loss")


@functional
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Negative log-likelihood `(log(v) + (x - t)**2 / v) / 2` under normal distributions of mean `x` and variance `v`.

    Args:
        input: means.
        target: array of the same shape.
        var: variances: of the same shape, of that shape with 1 for the last axis or without it, or a number.
        full: whether to add the constant `log(2 pi) / 2`.
        eps: lower bound of the variances; derivatives ignore the bound.
        reduction: "none" for the loss of each element, "mean", or "sum".

    Raises:
        ValueError: the shapes do not match, a variance is negative, or `reduction` is unknown.
    """
    what = "gaussian_nll_loss"
    same_shapes(what, input=input, target=target)
    input = array(input)
    target, var = numbers_like(target, input), numbers_like(array(var), input)
    shape = input.shape
    if var.shape == shape[:-1] and var.shape != shape:
        var = var[..., None]
    elif var.shape not in (shape, (*shape[:-1], 1), ()):
        raise ValueError(
            f"var of {what} must have the shape {shape} of input, or that shape with 1 for the last axis, not "
            f"{described(var)}{at_line(user_line())}"
        )
    if is_plain(var, np.ndarray) and (var < 0).any():
        raise ValueError(f"var of {what} contains a negative variance{at_line(user_line())}")
    var = var + stop_gradient(np.where(var < eps, eps - var, 0))
    difference = input - target
    loss = 0.5 * (np.log(var) + difference * difference / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction, what)


# Ranking and similarity


@functional
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    """`max(0, margin - t * (x1 - x2))`: a label `t` of 1 says that `x1` ranks higher, -1 that `x2` does.

    Args:
        input1: scores.
        input2: scores of the same shape.
        target: labels 1 and -1, of the same shape.
        margin: required difference of the scores.
        reduction: "none" for the loss of each element, "mean", or "sum".

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
    """
    same_shapes("margin_ranking_loss", input1=input1, input2=input2, target=target)
    difference = array(input1) - input2
    loss = positive_part(margin - numbers_like(array(target), difference) * difference)
    return reduced(loss, reduction, "margin_ranking_loss")


@functional
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """`x` where the label is 1 (similar), and `max(0, margin - x)` where it is -1 (dissimilar).

    Args:
        input: distances.
        target: labels 1 and -1, of the same shape.
        margin: distance beyond which dissimilar pairs cost nothing.
        reduction: "none" for the loss of each element, "mean", or "sum".

    Raises:
        ValueError: the shapes differ, or `reduction` is unknown.
    """
    same_shapes("hinge_embedding_loss", input=input, target=target)
    input, target = array(input), array(target)
    loss = np.where(target != 1, positive_part(margin - input), 0) + np.where(target != -1, input, 0)
    return reduced(loss, reduction, "hinge_embedding_loss")


@functional
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    """`1 - cos(x1, x2)` where the label is 1 (similar), and `max(0, cos(x1, x2) - margin)` where it is -1 (dissimilar).

    Args:
        input1: vectors of shape (N, D) or (D,).
        input2: vectors of the same shape.
        target: labels 1 and -1, of shape (N,) or ().
        margin: cosine below which dissimilar pairs cost nothing, from -1 to 1.
        reduction: "none" for the loss of each pair, "mean", or "sum".

    Raises:
        ValueError: the shapes do not match, or `reduction` is unknown.
    """
    what = "cosine_embedding_loss"
    input1, input2, target = array(input1), array(input2), array(target)
    if input1.shape != input2.shape or target.shape != input1.shape[:-1] or not input1.shape:
        raise ValueError(
            f"{what} takes two arrays (N, D) and target (N,), or (D,) and (), not {described(input1)}, "
            f"{described(input2)} and {described(target)}{at_line(user_line())}"
        )
    # The small number under the root is torch's: a zero vector has cosine 0, and a finite derivative.
    squares = (np.sum(input1 * input1, -1) + 1e-12) * (np.sum(input2 * input2, -1) + 1e-12)
    cosine = np.sum(input1 * input2, -1) / np.sqrt(squares)
    loss = np.where(target == 1, 1 - cosine, 0) + np.where(target == -1, positive_part(cosine - margin), 0)
    return reduced(loss, reduction, what)


@functional
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """`max(0, |a - p| - |a - n| + margin)`, with distances along the last axis (Schroff et al., 2015).

    Args:
        anchor: vectors of shape (N, D) or (D,).
        positive: vectors that should be close to the anchors.
        negative: vectors that should be far from the anchors.
        margin: by how much farther the negatives should be.
        p: order of the norm.
        eps: added to differences of vectors.
        swap: whether to use the distance of `positive` and `negative` where that is less than the distance of `anchor`
            and `negative`.
        reduction: "none" for the loss of each triplet, "mean", or "sum".

    Raises:
        ValueError: the shapes do not match, `margin` is not positive, or `reduction` is unknown.
    """

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    return _triplet_loss("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


def _triplet_loss(
    what: str,
    anchor: Any,
    positive: Any,
    negative: Any,
    distance: Callable[[Any, Any], Any],
    margin: float,
    swap: bool,
    reduction: str,
) -> Any:
    if margin <= 0:
        raise ValueError(f"margin of {what} must be positive, not {margin}{at_line(user_line())}")
    try:
        np.broadcast_shapes(*[shape_of(x) for x in (anchor, positive, negative)])
    except ValueError:
        given = ", ".join(map(described, (anchor, positive, negative)))
        raise ValueError(f"{what} takes three arrays of the same shape, not {given}{at_line(user_line())}") from None
    far = distance(anchor, negative)
    if swap:
        far = np.minimum(far, distance(positive, negative))
    return reduced(positive_part(margin + distance(anchor, positive) - far), reduction, what)


@functional
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """`max(0, d(a, p) - d(a, n) + margin)` with any distance d.

    Args:
        anchor: vectors of shape (N, D) or (D,).
        positive: vectors that should be close to the anchors.
        negative: vectors that should be far from the anchors.
        distance_function: the distance of two arrays of vectors; `pairwise_distance` by default.
        margin: by how much farther the negatives should be.
        swap: whether to use the distance of `positive` and `negative` where that is less than the distance of `anchor`
            and `negative`.
        reduction: "none" for the loss of each triplet, "mean", or "sum".

    Raises:
        ValueError: the shapes do not match, `margin` is not positive, or `reduction` is unknown.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> a, p, n = np.array([[0.0]]), np.array([[1.0]]), np.array([[1.5]])
        >>> F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: abs(x - y).sum(-1))
        np.float64(0.5)
    """
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet_loss(
        "triplet_margin_with_distance_loss", anchor, positive, negative, distance, margin, swap, reduction
    )
