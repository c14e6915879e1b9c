"""Batch normalization in evaluation mode as a part of the linear map or convolution before it.

Its running mean and variance are constants there, so both together are one linear map with another weight and bias.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...base.source import at_line, user_line
from ..cells.kinds import Parameter
from ..modules.module import Module

Layer = TypeVar("Layer", bound=Module)


def fuse_conv_bn_eval(conv: Layer, bn: Module, transpose: bool = False) -> Layer:
    """A convolution that computes a convolution and the batch normalization after it, both in evaluation mode.

    Args:
        conv: the convolution.
        bn: the batch normalization.
        transpose: whether it is a transposed convolution.

    Returns:
        A new convolution.

    Raises:
        ValueError: one is in training mode, the numbers of channels differ, or there are no running statistics.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> conv, bn = nn.Conv1d(2, 3, 1).eval(), nn.BatchNorm1d(3).eval()
        >>> x = np.ones((1, 2, 4), np.float32)
        >>> bool(np.allclose(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6))
        True
    """
    channels = conv.out_channels  # type: ignore[attr-defined]
    return _fused(conv, bn, channels, partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any = None,
    bn_b: Any = None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that `fuse_conv_bn_eval` makes.

    Args:
        conv_w: weight of the convolution.
        conv_b: its bias, or None.
        bn_rm: running mean of the batch normalization, of shape (C,).
        bn_rv: running variance.
        bn_eps: what is added to the variance.
        bn_w: scale, or None for ones.
        bn_b: shift, or None for zeros.
        transpose: whether it is a transposed convolution, whose weight is of shape (inputs, outputs / groups, ...).

    Returns:
        `(weight, bias)`, parameters in the dtypes of the convolution.
    """
    weight, scale, shift = _numpy(conv_w), *_map_of(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    if transpose:
        # Each group of inputs goes to outputs of its own.
        grouped = weight.reshape(scale.size // weight.shape[1], -1, *weight.shape[1:])
        scales = scale.reshape(grouped.shape[0], 1, grouped.shape[2], *(1,) * (weight.ndim - 2))
        new = (grouped * scales).reshape(weight.shape)
    else:
        new = weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
    return _parameters(conv_w, conv_b, new, shift)


def fuse_linear_bn_eval(linear: Layer, bn: Module) -> Layer:
    """A linear layer that computes a linear layer and the batch normalization after it, both in evaluation mode.

    Args:
        linear: the linear layer.
        bn: the batch normalization of its outputs.

    Returns:
        A new linear layer.

    Raises:
        ValueError: one is in training mode, the numbers of features differ, or there are no running statistics.
    """
    return _fused(linear, bn, linear.out_features, fuse_linear_bn_weights)  # type: ignore[attr-defined]


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any = None, bn_b: Any = None
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that `fuse_linear_bn_eval` makes.

    Args:
        linear_w: weight of the linear layer.
        linear_b: its bias, or None.
        bn_rm: running mean of the batch normalization.
        bn_rv: running variance.
        bn_eps: what is added to the variance.
        bn_w: scale, or None for ones.
        bn_b: shift, or None for zeros.

    Returns:
        `(weight, bias)`, parameters in the dtypes of the linear layer.
    """
    scale, shift = _map_of(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return _parameters(linear_w, linear_b, _numpy(linear_w) * scale[:, None], shift)


def _fused(layer: Layer, bn: Any, features: int, fuse: Any) -> Layer:
    if layer.training or bn.training:
        raise ValueError(
            f"{type(layer).__name__} and {type(bn).__name__} are one linear map in evaluation mode only; call "
            f"model.eval() first{at_line(user_line())}"
        )
    if bn.running_mean is None:
        raise ValueError(f"{bn.described()} has no running statistics, so it is no linear map{at_line(user_line())}")
    if bn.num_features not in (1, features):
        raise ValueError(
            f"{bn.described()} is for {bn.num_features} features, and {layer.described()} has {features}"
            + at_line(user_line())
        )
    given: Any = layer
    made: Any = copy.deepcopy(layer)
    statistics = (np.broadcast_to(_numpy(x), (features,)) for x in (bn.running_mean, bn.running_var))
    affine = (None if x is None else np.broadcast_to(_numpy(x), (features,)) for x in (bn.weight, bn.bias))
    made.weight, made.bias = fuse(given.weight, given.bias, *statistics, bn.eps, *affine)
    return made


def _map_of(bias: Any, mean: Any, variance: Any, eps: float, scale: Any, shift: Any) -> tuple[Any, Any]:
    """What a batch normalization multiplies the outputs of a layer with, and the bias of the two together."""
    mean, variance = _numpy(mean), _numpy(variance)
    factor = (1 if scale is None else _numpy(scale)) / np.sqrt(variance + eps)
    before = 0 if bias is None else _numpy(bias)
    return factor, (before - mean) * factor + (0 if shift is None else _numpy(shift))


def _parameters(weight: Any, bias: Any, new_weight: Any, new_bias: Any) -> tuple[Parameter, Parameter]:
    dtype = np.dtype(weight.dtype)
    requires_grad = getattr(weight, "requires_grad", True)
    return (
        Parameter(new_weight.astype(dtype), requires_grad),
        Parameter(
            new_bias.astype(dtype if bias is None else bias.dtype), getattr(bias, "requires_grad", requires_grad)
        ),
    )


def _numpy(x: Any) -> Any:
    return x.numpy() if hasattr(x, "numpy") else np.asarray(x)
