"""Activation functions.

They neither overflow nor divide by zero, and so do their derivatives of all orders.  At a kink the derivative is the
one that `torch` chooses.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...ops.elementwise import logistic as logistic_primitive
from ...ops.elementwise import relu as relu_primitive
from ...ops.elementwise import softplus as softplus_primitive
from ...ops.elementwise import softsign as softsign_primitive
from ...ops.special.errors import erfc
from ..random import gumbel, key_of, uniform
from .arguments import apply_elementwise, array, axis_of, described, shape_of
from .distances import norm
from .entry import functional

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


# Piecewise linear


@functional
def relu(input: Any) -> Any:
    """`max(x, 0)`; its derivative at 0 is 0.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.relu(np.array([-1.0, 0.0, 2.0]))
        array([0., 0., 2.])
    """
    if input.__class__ is np.ndarray and input.dtype.kind in "iu":
        return np.maximum(input, 0)
    return apply_elementwise(relu_primitive, input)


@functional
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """`x` held between two bounds; the derivative at a bound is 0.

    Raises:
        ValueError: the bounds are not in order.
    """
    if min_val > max_val:
        raise ValueError(f"min_val={min_val} of hardtanh is above max_val={max_val}{at_line(user_line())}")
    input = array(input)
    return np.where(input <= min_val, min_val, np.where(input >= max_val, max_val, input))


@functional
def relu6(input: Any) -> Any:
    """`min(max(x, 0), 6)`; its derivative at 0 and 6 is 0."""
    return hardtanh(input, 0.0, 6.0)


@functional
def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    """`x` where it is positive, else `negative_slope * x`."""
    input = array(input)
    return np.where(input > 0, input, negative_slope * input)


@functional
def prelu(input: Any, weight: Any) -> Any:
    """`x` where it is positive, else `weight * x`.

    Args:
        input: array.  Axis 1 is that of channels, if there is one.
        weight: one slope, or one for each channel.

    Raises:
        ValueError: there are neither one slope nor as many as channels.
    """
    input = array(input)
    shape, (count,) = input.shape, shape_of(weight) or (1,)
    channels = shape[1] if len(shape) > 1 else 1
    if count not in (1, channels):
        raise ValueError(
            f"weight of prelu must hold 1 or {channels} slopes for {described(input)}, not {described(weight)}"
            + at_line(user_line())
        )
    if len(shape) > 1 and count > 1:
        weight = np.reshape(weight, (count,) + (1,) * (len(shape) - 2))
    elif shape_of(weight) and not shape:
        weight = np.reshape(weight, ())
    return np.where(input > 0, input, weight * input)


def rrelu(input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, *, rng: Any = None) -> Any:
    """`x` where it is positive, else `x` times a slope: in training a random one for each element, else the mean.

    Args:
        input: array.
        lower: the least slope.
        upper: the greatest slope.
        training: whether to draw slopes.
        rng: where random numbers come from, as for `dropout`; needed in training.

    Raises:
        ValueError: the bounds are not in order.
        TypeError: training without `rng`.
    """
    if lower > upper:
        raise ValueError(f"lower={lower} of rrelu is above upper={upper}{at_line(user_line())}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    return _randomly_leaky_relu(input, lower, upper, key_of(rng, "rrelu"))


@functional
def _randomly_leaky_relu(input: Any, lower: float, upper: float, key: Any) -> Any:
    x = array(input)
    slopes = uniform(key, x.shape, _dtype_of_noise(x), lower, upper).astype(x.dtype)
    return np.where(x > 0, x, slopes * x)


def _dtype_of_noise(x: Any) -> Any:
    return np.float64 if x.dtype == np.float64 else np.float32


@functional
def threshold(input: Any, threshold: float, value: float) -> Any:
    """`x` where it is above the threshold, else `value`."""
    input = array(input)
    return np.where(input <= threshold, value, input)


@functional
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """`x` where its magnitude is above `lambd`, else 0."""
    input = array(input)
    return np.where((input >= -lambd) & (input <= lambd), 0, input)


@functional
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """`x` moved towards 0 by `lambd`, and 0 where its magnitude is not above `lambd`.

    Raises:
        ValueError: `lambd` is negative.
    """
    if lambd < 0:
        raise ValueError(f"lambd of softshrink cannot be negative, as {lambd} is{at_line(user_line())}")
    input = array(input)
    return np.where((input >= -lambd) & (input <= lambd), 0, input - lambd * np.sign(input))


@functional
def hardsigmoid(input: Any) -> Any:
    """`min(max(x + 3, 0), 6) / 6`; its derivative at -3 and 3 is 0."""
    return relu6(array(input) + 3) / 6


@functional
def hardswish(input: Any) -> Any:
    """`x * hardsigmoid(x)`, by pieces: 0 up to -3, and `x` from 3 on."""
    input = array(input)
    middle = np.where((input <= -3) | (input >= 3), 0, input)
    return np.where(input <= -3, 0, np.where(input >= 3, input, middle * (middle + 3) / 6))


# Smooth, or with a kink at 0


@functional
def sigmoid(input: Any) -> Any:
    """The logistic function `1 / (1 + exp(-x))`.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.sigmoid(np.array([-1000.0, 0.0, 1000.0]))
        array([0. , 0.5, 1. ])
    """
    return apply_elementwise(logistic_primitive, input)


@functional
def logsigmoid(input: Any) -> Any:
    """The logarithm of the logistic function."""
    return -apply_elementwise(softplus_primitive, -array(input))


@functional
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """`log(1 + exp(beta * x)) / beta`, and `x` where `beta * x` is above the threshold."""
    scaled = array(input) * beta
    return np.where(scaled > threshold, input, apply_elementwise(softplus_primitive, scaled) / beta)


@functional
def tanh(input: Any) -> Any:
    """The hyperbolic tangent."""
    return np.tanh(input)


@functional
def tanhshrink(input: Any) -> Any:
    """`x - tanh(x)`."""
    input = array(input)
    return input - np.tanh(input)


@functional
def softsign(input: Any) -> Any:
    """`x / (1 + |x|)`."""
    input = array(input)
    if input.dtype.kind == "c":
        return input / (1 + np.abs(input))
    return apply_elementwise(softsign_primitive, input)


@functional
def silu(input: Any) -> Any:
    """`x * sigmoid(x)`, also known as swish (Elfwing, Uchibe and Doya, 2018)."""
    input = array(input)
    return input * sigmoid(input)


@functional
def mish(input: Any) -> Any:
    """`x * tanh(log(1 + exp(x)))` (Misra, 2019)."""
    input = array(input)
    return input * np.tanh(apply_elementwise(softplus_primitive, input))


def _negative_part(x: Any) -> Any:
    """`x` where it is not positive, else 0: what an exponential takes that is not to overflow elsewhere."""
    return np.where(x > 0, 0, x)


@functional
def elu(input: Any, alpha: float = 1.0) -> Any:
    """`x` where it is positive, else `alpha * (exp(x) - 1)` (Clevert, Unterthiner and Hochreiter, 2015)."""
    input = array(input)
    return np.where(input > 0, input, alpha * np.expm1(_negative_part(input)))


@functional
def selu(input: Any) -> Any:
    """`elu` with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return _SELU_SCALE * elu(input, _SELU_ALPHA)


@functional
def celu(input: Any, alpha: float = 1.0) -> Any:
    """`x` where it is positive, else `alpha * (exp(x / alpha) - 1)` (Barron, 2017).

    Raises:
        ValueError: `alpha` is 0.
    """
    if alpha == 0:
        raise ValueError(f"alpha of celu cannot be 0{at_line(user_line())}")
    input = array(input)
    return np.where(input > 0, input, alpha * np.expm1(_negative_part(input) / alpha))


@functional
def gelu(input: Any, approximate: Literal["none", "tanh"] = "none") -> Any:
    """`x` times the probability that a standard normal number is below `x` (Hendrycks and Gimpel, 2016).

    Args:
        input: array.
        approximate: "none" for the exact function, "tanh" for one that differs by up to 5e-4.

    Raises:
        ValueError: `approximate` is neither.
    """
    input = array(input)
    if approximate == "none":
        # By erfc, which keeps its digits where the probability is small.
        return input * (0.5 * apply_elementwise(erfc, input * -math.sqrt(0.5)))
    if approximate != "tanh":
        raise ValueError(f"approximate of gelu must be 'none' or 'tanh', not {approximate!r}{at_line(user_line())}")
    # Beyond these bounds the logistic function is 0 or 1, and the square of a greater number may be infinite.
    x = np.clip(input, -30.0, 30.0)
    # (1 + tanh(u)) / 2 is the logistic function of 2 u, which keeps its digits where tanh is close to -1.
    return input * apply_elementwise(logistic_primitive, math.sqrt(8 / math.pi) * x * (1.0 + 0.044715 * (x * x)))


@functional
def glu(input: Any, dim: int = -1) -> Any:
    """The first half along an axis, times the logistic function of the second half (Dauphin et al., 2016).

    Raises:
        ValueError: the size of the axis is odd.
    """
    input = array(input)
    shape = input.shape
    axis = axis_of(dim, len(shape), "glu")
    if not shape or shape[axis] % 2:
        raise ValueError(f"glu halves axis {dim} of {described(input)}, whose size must be even{at_line(user_line())}")
    value, gate = np.split(input, 2, axis)
    return value * sigmoid(gate)


# Over an axis


def _softmax_axis(dim: int | None, input: Any, what: str) -> int:
    ndim = len(shape_of(input))
    if dim is None and ndim > 2:
        raise TypeError(
            f"{what} of {described(input)} needs dim, the axis to sum over: write {what}(x, dim=-1) for the last one"
            + at_line(user_line())
        )
    return axis_of(-1 if dim is None else dim, ndim, what)


def _has_no_choice(x: Any, axis: int) -> bool:
    """Whether `x` is a number, or its axis is empty."""
    return not x.shape or not x.shape[axis]


def _centred(x: Any, axis: int) -> Any:
    """`x` minus its greatest element, which changes no softmax, and neither its derivatives."""
    return x - np.max(stop_gradient(x), axis=axis, keepdims=True)


@functional
def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along an axis.

    Args:
        input: array.
        dim: the axis; may be left out for vectors, and for matrices, where it is the last one.
        dtype: dtype to convert to first.

    Raises:
        TypeError: `dim` is left out for an array of more than two axes.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.softmax(np.array([1000.0, 1000.0, -np.inf]), dim=0)
        array([0.5, 0.5, 0. ])
    """
    x = array(input) if dtype is None else array(input).astype(dtype)
    axis = _softmax_axis(dim, x, "softmax")
    if _has_no_choice(x, axis):
        return np.exp(x - x)
    exponentials = np.exp(_centred(x, axis))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@functional
def log_softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, which is finite where softmax itself is rounded to 0.

    Args:
        input: array.
        dim: the axis; may be left out for vectors, and for matrices, where it is the last one.
        dtype: dtype to convert to first.

    Raises:
        TypeError: `dim` is left out for an array of more than two axes.
    """
    x = array(input) if dtype is None else array(input).astype(dtype)
    axis = _softmax_axis(dim, x, "log_softmax")
    if _has_no_choice(x, axis):
        return x - x
    centred = _centred(x, axis)
    return centred - np.log(np.sum(np.exp(centred), axis=axis, keepdims=True))


@functional
def softmin(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """`softmax` of `-x`."""
    return softmax(-array(input), dim, dtype)


def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1, *, rng: Any = None) -> Any:
    """A sample of a distribution over an axis, relaxed so that it has a derivative (Jang, Gu and Poole, 2016).

    Args:
        logits: logarithms of probabilities, up to a constant.
        tau: temperature; towards 0 samples become one-hot.
        hard: whether to return a one-hot sample, with the derivative of the relaxed one.
        dim: the axis.
        rng: where random numbers come from, as for `dropout`.

    Raises:
        TypeError: there is no `rng`.
    """
    return _gumbel_softmax(logits, tau, hard, dim, key_of(rng, "gumbel_softmax"))


@functional
def _gumbel_softmax(logits: Any, tau: float, hard: bool, dim: int, key: Any) -> Any:
    logits = array(logits)
    axis = axis_of(dim, len(logits.shape), "gumbel_softmax")
    noise = gumbel(key, logits.shape, _dtype_of_noise(logits)).astype(logits.dtype)
    soft = softmax((logits + noise) / tau, axis)
    if not hard:
        return soft
    numbers = np.arange(logits.shape[axis]).reshape((-1,) + (1,) * (len(logits.shape) - axis - 1))
    chosen = np.expand_dims(np.argmax(stop_gradient(soft), axis), axis) == numbers
    return np.where(chosen, 1, 0) + (soft - stop_gradient(soft))


@functional
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """`x` divided by its p-norm along an axis, or by `eps` where the norm is less.

    Args:
        input: array.
        p: which norm.
        dim: the axis.
        eps: the least divisor.

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
