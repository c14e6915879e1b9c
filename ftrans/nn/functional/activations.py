"""Activation functions.

Neither they nor their derivatives of any order overflow or divide by zero.  At a kink the derivative is the one that
torch chooses.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ...api.elementwise import apply_elementwise
from ...base.source import at_line, user_line
from ...ops.elementwise import logistic as logistic_primitive
from ...ops.elementwise import relu as relu_primitive
from ...ops.elementwise import softplus as softplus_primitive
from ...ops.elementwise import softsign as softsign_primitive
from ...ops.special.errors import erfc
from ..random import key_of, uniform
from .arguments import array, described, dtype_of_noise, shape_of
from .entry import functional

__all__ = [
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
    "prelu", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh",
    "tanhshrink", "threshold",
]  # fmt: skip

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


# Piecewise linear


@functional
def relu(input: Any, inplace: bool = False) -> Any:
    """Elementwise `max(x, 0)`, with derivative 0 at 0.

    Args:
        input: array.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.relu(np.array([-1.0, 0.0, 2.0]))
        array([0., 0., 2.])
    """
    if type(input) is np.ndarray and input.dtype.kind in "iu":
        return np.maximum(input, 0)
    return apply_elementwise(relu_primitive, input)


@functional
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Elementwise `x` clipped to an interval; the derivative at both ends is 0.

    Args:
        input: array.
        min_val: lower end.
        max_val: upper end.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.

    Raises:
        ValueError: `min_val` is greater than `max_val`.
    """
    if min_val > max_val:
        raise ValueError(
            f"min_val={min_val} of hardtanh must not be greater than max_val={max_val}{at_line(user_line())}"
        )
    input = array(input)
    return np.where(input <= min_val, min_val, np.where(input >= max_val, max_val, input))


@functional
def relu6(input: Any, inplace: bool = False) -> Any:
    """Elementwise `min(max(x, 0), 6)`, with derivative 0 at 0 and 6.

    Args:
        input: array.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    return hardtanh(input, 0.0, 6.0)


@functional
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Elementwise `x` for positive `x`, else `negative_slope * x`.

    Args:
        input: array.
        negative_slope: slope for negative inputs.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    input = array(input)
    return np.where(input > 0, input, negative_slope * input)


@functional
def prelu(input: Any, weight: Any) -> Any:
    """Elementwise `x` for positive `x`, else `weight * x`.

    Args:
        input: array; if it has more than one axis, axis 1 is that of channels.
        weight: one slope, or a vector with a slope for each channel.

    Raises:
        ValueError: `weight` holds neither one slope nor one for each channel.
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


def rrelu(
    input: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    rng: Any = None,
) -> Any:
    """Elementwise `x` for positive `x`, else a slope times `x`.

    In training the slope of each element is drawn uniformly, in evaluation it is the mean.

    Args:
        input: array.
        lower: lower bound of the slopes.
        upper: upper bound of the slopes.
        training: whether slopes are random.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
        rng: source of random numbers, as for `dropout`.

    Raises:
        ValueError: `lower` is greater than `upper`.
        TypeError: `rng` is missing where a function is transformed or compiled.
    """
    if lower > upper:
        raise ValueError(f"lower={lower} of rrelu must not be greater than upper={upper}{at_line(user_line())}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    return _randomly_leaky_relu(input, lower, upper, key_of(rng, "rrelu", [input]))


@functional
def _randomly_leaky_relu(input: Any, lower: float, upper: float, key: Any) -> Any:
    x = array(input)
    slopes = uniform(key, x.shape, dtype_of_noise(x), lower, upper).astype(x.dtype)
    return np.where(x > 0, x, slopes * x)


@functional
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Elementwise `x` where it is greater than a threshold, else `value`.

    Args:
        input: array.
        threshold: the threshold.
        value: replaces the other elements.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    input = array(input)
    return np.where(input <= threshold, value, input)


@functional
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Elementwise `x` where `|x| > lambd`, else 0.

    Args:
        input: array.
        lambd: half the width of the interval that is mapped to 0.
    """
    input = array(input)
    return np.where((input >= -lambd) & (input <= lambd), 0, input)


@functional
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Elementwise `sign(x) * max(|x| - lambd, 0)`.

    Args:
        input: array.
        lambd: half the width of the interval that is mapped to 0.

    Raises:
        ValueError: `lambd` is negative.
    """
    if lambd < 0:
        raise ValueError(f"lambd of softshrink must not be negative, but is {lambd}{at_line(user_line())}")
    input = array(input)
    return np.where((input >= -lambd) & (input <= lambd), 0, input - lambd * np.sign(input))


@functional
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """Elementwise `min(max(x + 3, 0), 6) / 6`, with derivative 0 at -3 and 3.

    Args:
        input: array.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    return relu6(array(input) + 3) / 6


@functional
def hardswish(input: Any, inplace: bool = False) -> Any:
    """Elementwise `x * hardsigmoid(x)`: 0 for `x <= -3`, and `x` for `x >= 3`.

    Args:
        input: array.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    input = array(input)
    middle = np.where((input <= -3) | (input >= 3), 0, input)
    return np.where(input <= -3, 0, np.where(input >= 3, input, middle * (middle + 3) / 6))


# Smooth, or with a kink at 0


@functional
def sigmoid(input: Any) -> Any:
    """The elementwise logistic function `1 / (1 + exp(-x))`.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.sigmoid(np.array([-1000.0, 0.0, 1000.0]))
        array([0. , 0.5, 1. ])
    """
    return apply_elementwise(logistic_primitive, input)


@functional
def logsigmoid(input: Any) -> Any:
    """The elementwise logarithm of `sigmoid(x)`."""
    return -apply_elementwise(softplus_primitive, -array(input))


@functional
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Elementwise `log(1 + exp(beta * x)) / beta`, a smooth approximation of `relu`.

    Args:
        input: array.
        beta: how sharply it bends; greater values are closer to `relu`.
        threshold: where `beta * x` is greater, the result is `x`.
    """
    scaled = array(input) * beta
    return np.where(scaled > threshold, input, apply_elementwise(softplus_primitive, scaled) / beta)


@functional
def tanh(input: Any) -> Any:
    """The elementwise hyperbolic tangent."""
    return np.tanh(input)


@functional
def tanhshrink(input: Any) -> Any:
    """Elementwise `x - tanh(x)`."""
    input = array(input)
    return input - np.tanh(input)


@functional
def softsign(input: Any) -> Any:
    """Elementwise `x / (1 + |x|)`."""
    input = array(input)
    if input.dtype.kind == "c":
        return input / (1 + np.abs(input))
    return apply_elementwise(softsign_primitive, input)


@functional
def silu(input: Any, inplace: bool = False) -> Any:
    """Elementwise `x * sigmoid(x)`, also known as swish (Elfwing, Uchibe and Doya, 2018).

    Args:
        input: array.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    input = array(input)
    return input * sigmoid(input)


@functional
def mish(input: Any, inplace: bool = False) -> Any:
    """Elementwise `x * tanh(log(1 + exp(x)))` (Misra, 2019).

    Args:
        input: array.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    input = array(input)
    return input * np.tanh(apply_elementwise(softplus_primitive, input))


def _negative_part(x: Any) -> Any:
    """`min(x, 0)`: the argument of an exponential that must not overflow where it is not used."""
    return np.where(x > 0, 0, x)


@functional
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Elementwise `x` for positive `x`, else `alpha * (exp(x) - 1)` (Clevert et al., 2015).

    Args:
        input: array.
        alpha: the limit at minus infinity is `-alpha`.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    input = array(input)
    return np.where(input > 0, input, alpha * np.expm1(_negative_part(input)))


@functional
def selu(input: Any, inplace: bool = False) -> Any:
    """Elementwise `scale * elu(x, alpha)`, whose constants preserve mean 0 and variance 1 (Klambauer et al., 2017).

    Args:
        input: array.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.
    """
    return _SELU_SCALE * elu(input, _SELU_ALPHA)


@functional
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Elementwise `x` for positive `x`, else `alpha * (exp(x / alpha) - 1)` (Barron, 2017).

    Args:
        input: array.
        alpha: the limit at minus infinity is `-alpha`.
        inplace: accepted as in torch, without effect: no function overwrites its input, use the result.

    Raises:
        ValueError: `alpha` is 0.
    """
    if alpha == 0:
        raise ValueError(f"alpha of celu must not be 0{at_line(user_line())}")
    input = array(input)
    return np.where(input > 0, input, alpha * np.expm1(_negative_part(input) / alpha))


@functional
def gelu(input: Any, approximate: Literal["none", "tanh"] = "none") -> Any:
    """Elementwise `x * P(Z <= x)` for a standard normal variable `Z` (Hendrycks and Gimpel, 2016).

    Args:
        input: array.
        approximate: "none" for the exact function, "tanh" for an approximation with an error of at most 5e-4.

    Raises:
        ValueError: `approximate` is neither "none" nor "tanh".
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
