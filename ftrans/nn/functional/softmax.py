"""Functions along an axis: softmax and its relatives, gating, and normalization of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...autograd.torch_methods import sums
from ...base.source import at_line, user_line
from ..random import gumbel, key_of
from .activations import sigmoid
from .arguments import array, axis_of, described, dtype_of_noise, shape_of
from .distances import norm
from .entry import functional

__all__ = ["glu", "gumbel_softmax", "log_softmax", "normalize", "softmax", "softmin"]


def _softmax_axis(dim: int | None, input: Any, what: str) -> int:
    ndim = len(shape_of(input))
    if dim is None and ndim > 2:
        raise TypeError(
            f"{what} of {described(input)} needs dim, the axis to sum over: write {what}(x, dim=-1) for the last one"
            + at_line(user_line())
        )
    return axis_of(-1 if dim is None else dim, ndim, what)


@functional
def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along an axis.

    Args:
        input: array.
        dim: axis to sum over; may be omitted for arrays with at most two axes, where it is the last one.
        dtype: dtype to convert the input to first.

    Returns:
        An array of the same shape.

    Raises:
        TypeError: `dim` is missing for an array with more than two axes.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.softmax(np.array([1000.0, 1000.0, -np.inf]), dim=0)
        array([0.5, 0.5, 0. ])
    """
    x = array(input)
    return sums.softmax(x, _softmax_axis(dim, x, "softmax"), dtype)


@functional
def log_softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, finite also where softmax itself underflows to 0.

    Args:
        input: array.
        dim: axis to sum over; may be omitted for arrays with at most two axes, where it is the last one.
        dtype: dtype to convert the input to first.

    Returns:
        An array of the same shape.

    Raises:
        TypeError: `dim` is missing for an array with more than two axes.
    """
    x = array(input)
    return sums.log_softmax(x, _softmax_axis(dim, x, "log_softmax"), dtype)


@functional
def softmin(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """`softmax(-x)` along an axis.

    Args:
        input: array.
        dim: axis to sum over; may be omitted for arrays with at most two axes, where it is the last one.
        dtype: dtype to convert the input to first.

    Returns:
        An array of the same shape.

    Raises:
        TypeError: `dim` is missing for an array with more than two axes.
    """
    return softmax(-array(input), dim, dtype)


def gumbel_softmax(
    logits: Any, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, rng: Any = None
) -> Any:
    """A differentiable sample of a categorical distribution along an axis (Jang, Gu and Poole, 2016).

    Args:
        logits: unnormalized log-probabilities.
        tau: temperature; samples become one-hot as it approaches 0.
        hard: whether to return a one-hot sample, with the derivative of the soft one.
        eps: accepted as in torch, without effect.
        dim: axis of the classes.
        rng: source of random numbers, as for `dropout`.

    Returns:
        An array of the same shape, which sums to 1 along `dim`.

    Raises:
        TypeError: `rng` is missing where a function is transformed or compiled.
    """
    return _gumbel_softmax(logits, tau, hard, dim, key_of(rng, "gumbel_softmax", [logits]))


@functional
def _gumbel_softmax(logits: Any, tau: float, hard: bool, dim: int, key: Any) -> Any:
    logits = array(logits)
    axis = axis_of(dim, len(logits.shape), "gumbel_softmax")
    noise = gumbel(key, logits.shape, dtype_of_noise(logits)).astype(logits.dtype)
    soft = softmax((logits + noise) / tau, axis)
    if not hard:
        return soft
    numbers = np.arange(logits.shape[axis]).reshape((-1,) + (1,) * (len(logits.shape) - axis - 1))
    chosen = np.expand_dims(np.argmax(stop_gradient(soft), axis), axis) == numbers
    return np.where(chosen, 1, 0) + (soft - stop_gradient(soft))


@functional
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """`x / max(|x|, eps)`, with the p-norm of `x` along an axis.

    Args:
        input: array.
        p: order of the norm.
        dim: axis of the norm.
        eps: lower bound of the divisor.

    Returns:
        An array of the same shape.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
        array([[0.6, 0.8],
               [0. , 0. ]])
    """
    input = array(input)
    axis = axis_of(dim, len(input.shape), "normalize")
    length = norm(input, p, axis, keepdims=True)
    # Also so that NaN stays NaN.
    return input / np.where(length < eps, eps, length)


@functional
def glu(input: Any, dim: int = -1) -> Any:
    """The first half of an array along an axis, times the sigmoid of the second half (Dauphin et al., 2016).

    Args:
        input: array.
        dim: axis that is halved.

    Returns:
        An array of the same shape, but half the size along `dim`.

    Raises:
        ValueError: the size of the axis is odd.
    """
    input = array(input)
    shape = input.shape
    axis = axis_of(dim, len(shape), "glu")
    if not shape or shape[axis] % 2:
        raise ValueError(
            f"glu halves axis {dim}, whose size must be even, but got {described(input)}{at_line(user_line())}"
        )
    value, gate = np.split(input, 2, axis)
    return value * sigmoid(gate)
