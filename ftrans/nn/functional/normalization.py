"""Normalization: values shifted and scaled to mean 0 and variance 1 over some axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...core.types import Shape
from .arguments import array, described, shape_of
from .entry import functional

__all__ = [
    "batch_norm", "batch_norm_with_statistics", "group_norm", "instance_norm", "layer_norm", "local_response_norm",
    "rms_norm",
]  # fmt: skip


def _standardized(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """`x` with mean 0 and variance 1 over some axes; and mean and variance, with these axes kept."""
    mean = np.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    variance = np.mean(centred * centred, axis=axes, keepdims=True)
    return centred * (1 / np.sqrt(variance + eps)), mean, variance


def _scaled(x: Any, weight: Any, bias: Any, shape: Shape | None = None) -> Any:
    """`x * weight + bias`, with weight and bias, if given, reshaped first."""
    for parameter, apply in ((weight, operator.mul), (bias, operator.add)):
        if parameter is not None:
            x = apply(x, parameter if shape is None else np.reshape(parameter, shape))
    return x


def _check_parameters(what: str, shape: Shape, why: str, **parameters: Any) -> None:
    for name, x in parameters.items():
        if x is not None and shape_of(x) != shape:
            raise ValueError(
                f"{name} of {what} must have shape {shape}, {why}, not {described(x)}{at_line(user_line())}"
            )


def _normalized_axes(what: str, input: Any, normalized_shape: Any, **parameters: Any) -> tuple[int, ...]:
    """The last axes, whose sizes are `normalized_shape`."""
    sizes = normalized_shape if isinstance(normalized_shape, Sequence) else (operator.index(normalized_shape),)
    wanted = tuple(operator.index(n) for n in sizes)
    shape = shape_of(input)
    if not wanted or shape[len(shape) - len(wanted) :] != wanted or len(wanted) > len(shape):
        sizes_given = ", ".join(map(str, wanted))
        raise ValueError(
            f"{what} with normalized_shape {wanted} takes input of shape (..., {sizes_given}), not {described(input)}"
            + at_line(user_line())
        )
    _check_parameters(what, wanted, "which is normalized_shape", **parameters)
    return tuple(range(-len(wanted), 0))


@functional
def layer_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Layer normalization over the last axes (Ba, Kiros and Hinton, 2016).

    Args:
        input: array of shape (..., *normalized_shape).
        normalized_shape: sizes of these axes.
        weight: scales, of shape `normalized_shape`.
        bias: shifts, of shape `normalized_shape`.
        eps: added to variances.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.layer_norm(np.array([1.0, 3.0]), 2).round(3)
        array([-1.,  1.])
    """
    axes = _normalized_axes("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return _scaled(_standardized(input, axes, eps)[0], weight, bias)


@functional
def rms_norm(input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    """Division by the root mean square over the last axes (Zhang and Sennrich, 2019).

    Args:
        input: array of shape (..., *normalized_shape).
        normalized_shape: sizes of these axes.
        weight: scales, of shape `normalized_shape`.
        eps: added to mean squares; by default the machine epsilon of the dtype.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: shapes do not match.
    """
    axes = _normalized_axes("rms_norm", input, normalized_shape, weight=weight)
    input = array(input)
    smallest = _rounding_unit(input.dtype) if eps is None else eps
    mean_square = np.mean(input * input, axis=axes, keepdims=True)
    return _scaled(input * (1 / np.sqrt(mean_square + smallest)), weight, None)


def _rounding_unit(dtype: Any) -> float:
    return 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)


def _channels(what: str, input: Any, least: int = 2) -> int:
    """The size of axis 1."""
    shape = shape_of(input)
    if len(shape) < least:
        expected = "(N, C, ...)" if least == 2 else "(N, C, L, ...)"
        raise ValueError(f"{what} takes input of shape {expected}, not {described(input)}{at_line(user_line())}")
    return shape[1]


@functional
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalization of groups of channels over all positions, separately for each sample (Wu and He, 2018).

    Args:
        input: array of shape (N, C, ...).
        num_groups: number of groups; must divide C.
        weight: scale of each channel, of shape (C,).
        bias: shift of each channel, of shape (C,).
        eps: added to variances.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: shapes do not match, or `num_groups` does not divide C.
    """
    count = _channels("group_norm", input)
    if num_groups < 1 or count % num_groups:
        raise ValueError(
            f"group_norm cannot divide the {count} channels of {described(input)} into {num_groups} groups"
            + at_line(user_line())
        )
    _check_parameters("group_norm", (count,), "one number for each channel", weight=weight, bias=bias)
    shape = shape_of(input)
    grouped = np.reshape(input, (shape[0], num_groups, math.prod(shape[1:]) // num_groups))
    normal = np.reshape(_standardized(grouped, (2,), eps)[0], shape)
    return _scaled(normal, weight, bias, (count,) + (1,) * (len(shape) - 2))


@functional
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalization of each channel over all samples and positions (Ioffe and Szegedy, 2015).

    No argument is modified; `batch_norm_with_statistics` returns updated statistics for training.

    Args:
        input: array of shape (N, C, ...).
        running_mean: mean of each channel, of shape (C,); used unless `training`.
        running_var: variance of each channel, of shape (C,); used unless `training`.
        weight: scale of each channel, of shape (C,).
        bias: shift of each channel, of shape (C,).
        training: whether to use mean and variance of `input` itself.
        momentum: ignored.
        eps: added to variances.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: shapes do not match; or, in training, there is only one value per channel.
    """
    if training:
        return _batch_statistics("batch_norm", input, running_mean, running_var, weight, bias, eps)[0]
    count = _channels("batch_norm", input)
    if running_mean is None or running_var is None:
        raise ValueError(f"batch_norm needs running_mean and running_var, or training=True{at_line(user_line())}")
    parameters = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    _check_parameters("batch_norm", (count,), "one number for each channel", **parameters)
    shape = (count,) + (1,) * (len(shape_of(input)) - 2)
    # One factor and one summand for each channel, so that the large array is read once.
    factor = 1 / np.sqrt(running_var + eps)
    factor = factor if weight is None else factor * weight
    summand = -running_mean * factor
    summand = summand if bias is None else summand + bias
    return input * np.reshape(factor, shape) + np.reshape(summand, shape)


@functional
def batch_norm_with_statistics(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Any, Any, Any]:
    """`batch_norm` in training, with updated running statistics.

    Args:
        input: array of shape (N, C, ...).
        running_mean: running mean of each channel, of shape (C,), or None.
        running_var: running variance of each channel, of shape (C,), or None.
        weight: scale of each channel, of shape (C,).
        bias: shift of each channel, of shape (C,).
        momentum: weight of this batch in the updated statistics.
        eps: added to variances.

    Returns:
        `(output, new_mean, new_var)`; the statistics are None where the given ones are.  The variance is unbiased.
        Derivatives with respect to `input` treat the statistics as constants.

    Raises:
        ValueError: shapes do not match; or there is only one value per channel.
    """
    what = "batch_norm_with_statistics"
    output, mean, variance = _batch_statistics(what, input, running_mean, running_var, weight, bias, eps)
    count = array(input).size // shape_of(mean)[0]
    unbiased = variance * (count / (count - 1))
    new_mean, new_var = (
        None if old is None else old * (1 - momentum) + stop_gradient(new).astype(old.dtype) * momentum
        for old, new in ((running_mean, mean), (running_var, unbiased))
    )
    return output, new_mean, new_var


def _batch_statistics(
    what: str, input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, eps: float
) -> tuple[Any, Any, Any]:
    """The normalized input, and mean and biased variance of each channel."""
    count, shape = _channels(what, input), shape_of(input)
    parameters = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    _check_parameters(what, (count,), "one number for each channel", **parameters)
    if array(input).size <= count:
        raise ValueError(
            f"{what} in training needs more than one value for each channel, but got {described(input)}: use a "
            f"larger batch, or use training=False{at_line(user_line())}"
        )
    axes = (0, *range(2, len(shape)))
    normal, mean, variance = _standardized(input, axes, eps)
    output = _scaled(normal, weight, bias, (count,) + (1,) * (len(shape) - 2))
    return output, mean.reshape(count), variance.reshape(count)


@functional
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalization of each channel of each sample over all positions (Ulyanov, Vedaldi and Lempitsky, 2016).

    Args:
        input: array of shape (N, C, L, ...).
        running_mean: mean of each channel, of shape (C,); used unless `use_input_stats`.
        running_var: variance of each channel, of shape (C,); used unless `use_input_stats`.
        weight: scale of each channel, of shape (C,).
        bias: shift of each channel, of shape (C,).
        use_input_stats: whether to use mean and variance of `input` itself.
        momentum: ignored.
        eps: added to variances.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: shapes do not match; or there is only one position.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count, shape = _channels("instance_norm", input, least=3), shape_of(input)
    _check_parameters("instance_norm", (count,), "one number for each channel", weight=weight, bias=bias)
    if all(n == 1 for n in shape[2:]):
        raise ValueError(
            f"instance_norm needs more than one position for each channel, and {described(input)} has one"
            + at_line(user_line())
        )
    normal = _standardized(input, tuple(range(2, len(shape))), eps)[0]
    return _scaled(normal, weight, bias, (count,) + (1,) * (len(shape) - 2))


@functional
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Division by `(k + alpha * m) ** beta`, with the mean square m of neighboring channels (Krizhevsky et al., 2012).

    Args:
        input: array of shape (N, C, L, ...).
        size: number of neighboring channels.
        alpha: factor of the mean square.
        beta: exponent.
        k: added constant.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: `input` has fewer than three axes, or `size` is not positive.
    """
    count = _channels("local_response_norm", input, least=3)
    if size < 1:
        raise ValueError(f"size of local_response_norm must be at least 1, not {size}{at_line(user_line())}")
    before = size // 2
    widths = [(0, 0)] * len(shape_of(input))
    widths[1] = (before, size - 1 - before)
    squares = np.pad(input * input, widths)
    total = squares[:, :count]
    for start in range(1, size):
        total = total + squares[:, start : start + count]
    return input / (k + (alpha / size) * total) ** beta
