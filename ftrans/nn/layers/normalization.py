"""Normalization layers, with the running statistics that batches leave in their buffers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...base.source import at_line, user_line
from .. import functional as F
from .. import init
from ..cells import Buffer, Parameter
from ..functional.arguments import described, shape_of
from ..module import Module
from .arguments import empty, expect_channels, positive, shown


def _fill(weight: Parameter | None, bias: Parameter | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


class _Channelwise(Module):
    """Normalization of each channel, with a scale and a shift for it, and running statistics."""

    # Layouts of inputs; that of one sample is the last one, where there is one.
    _layouts: ClassVar[tuple[str, ...]] = ()

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Buffer | None
    running_var: Buffer | None
    num_batches_tracked: Buffer | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight = empty((num_features,), dtype) if affine else None
        self.bias = empty((num_features,), dtype) if affine and bias else None
        if track_running_stats:
            self.running_mean = Buffer(np.zeros(num_features, dtype))
            self.running_var = Buffer(np.ones(num_features, dtype))
            self.num_batches_tracked = Buffer(np.zeros((), np.int64))
        else:
            self.running_mean = self.running_var = self.num_batches_tracked = None
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen so far."""
        for cell, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            if cell is not None:
                cell.value = np.full(cell.shape, value, cell.dtype)

    def reset_parameters(self) -> None:
        """Set scales to 1 and shifts to 0, and forget the batches seen so far."""
        self.reset_running_stats()
        _fill(self.weight, self.bias)

    def _normalized_with(self, input: Any, mean: Any, var: Any) -> Any:
        return F.batch_norm(input, mean, var, self.weight, self.bias, False, 0.0, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Channelwise):
    def forward(self, input: Any) -> Any:
        """An array like `input`; in training, the running statistics follow."""
        expect_channels(self, input, self.num_features, self._layouts)
        if not self.training and self.running_mean is not None:
            return self._normalized_with(input, self.running_mean, self.running_var)
        tracks = self.training and self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if tracks else (None, None)
        share = 0.0 if mean is None else self._share_of_batch(mean.dtype)
        out, new_mean, new_var = F.batch_norm_with_statistics(input, mean, var, self.weight, self.bias, share, self.eps)
        if mean is not None and var is not None:
            mean.value, var.value = new_mean, new_var
        return out

    def _share_of_batch(self, dtype: Any) -> Any:
        """The share of this batch, which is counted now, in the running statistics."""
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.value = count = self.num_batches_tracked.read() + 1
            if self.momentum is None:
                return (1.0 / count).astype(dtype)
        return self.momentum


class BatchNorm1d(_BatchNorm):
    """Normalization of each channel of arrays (N, C) or (N, C, L) over samples and positions.

    In training, mean and variance are those of the batch, and running ones follow them; in evaluation the running ones
    are used.  See `functional.batch_norm`.

    Args:
        num_features: the number of channels.
        eps: what is added to variances.
        momentum: the share of a batch in the running statistics; None for the mean over all batches.
        affine: whether each channel has a scale and a shift.
        track_running_stats: whether there are running statistics; without them, those of the batch are used always.
        dtype: dtype of parameters and statistics.
        bias: whether there is a shift, where there is a scale.

    Attributes:
        weight: the scales, at first 1; or None.
        bias: the shifts, at first 0; or None.
        running_mean: a buffer of shape (num_features,); or None.
        running_var: a buffer of shape (num_features,), of unbiased variances; or None.
        num_batches_tracked: a buffer, the number of batches so far, int64; or None.

    Raises:
        ValueError: in a call, the input has another shape; or, in training, a single value for each channel.

    Example:
        >>> from ftrans import nn
        >>> layer = nn.BatchNorm1d(2)
        >>> layer(np.array([[1.0, 0.0], [3.0, 0.0]], np.float32)).round(3)
        array([[-1.,  0.],
               [ 1.,  0.]], dtype=float32)
        >>> layer.running_mean.value
        array([0.2, 0. ], dtype=float32)
    """

    _layouts = ("(N, C)", "(N, C, L)")


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for arrays of shape (N, C, H, W); the arguments are those of `BatchNorm1d`."""

    _layouts = ("(N, C, H, W)",)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for arrays of shape (N, C, D, H, W); the arguments are those of `BatchNorm1d`."""

    _layouts = ("(N, C, D, H, W)",)


class _InstanceNorm(_Channelwise):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias=bias)

    def forward(self, input: Any) -> Any:
        """An array like `input`; in training, the running statistics, if there are any, follow."""
        expect_channels(self, input, self.num_features, self._layouts)
        if len(shape_of(input)) == len(self._layouts[-1].split(",")):
            return self._of_batch(np.expand_dims(input, 0))[0]
        return self._of_batch(input)

    def _of_batch(self, input: Any) -> Any:
        if self.running_mean is not None and self.running_var is not None:
            if not (self.training and self.track_running_stats):
                return self._normalized_with(input, self.running_mean, self.running_var)
            # As in torch, batches are not counted.
            share = self.momentum or 0.0
            axes = tuple(range(2, len(shape_of(input))))
            count = math.prod(shape_of(input)[2:])
            # Means over samples of the statistics of each one.
            var = np.mean(np.var(input, axis=axes), axis=0) * (count / max(count - 1, 1))
            mean = np.mean(input, axis=(0, *axes))
            for cell, new in ((self.running_mean, mean), (self.running_var, var)):
                cell.value = cell.read() * (1 - share) + new.astype(cell.dtype) * share
        return F.instance_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Normalization of each channel of each sample of arrays (N, C, L) or (C, L) over positions.

    Args:
        num_features: the number of channels.
        eps: what is added to variances.
        momentum: the share of a batch in the running statistics.
        affine: whether each channel has a scale and a shift.
        track_running_stats: whether there are running statistics, which evaluation uses.
        dtype: dtype of parameters and statistics.
        bias: whether there is a shift, where there is a scale.

    Raises:
        ValueError: in a call, the input has another shape, or a single position.

    Example:
        >>> from ftrans import nn
        >>> nn.InstanceNorm1d(1)(np.array([[[1.0, 3.0]]])).round(3)
        array([[[-1.,  1.]]])
    """

    _layouts = ("(N, C, L)", "(C, L)")


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for arrays (N, C, H, W) or (C, H, W); the arguments are those of `InstanceNorm1d`."""

    _layouts = ("(N, C, H, W)", "(C, H, W)")


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for arrays (N, C, D, H, W) or (C, D, H, W); the arguments are those of `InstanceNorm1d`."""

    _layouts = ("(N, C, D, H, W)", "(C, D, H, W)")


class _OverLastAxes(Module):
    """Normalization over the last axes."""

    weight: Parameter | None

    def __init__(self, normalized_shape: int | Sequence[int], affine: bool, dtype: Any) -> None:
        shape = (normalized_shape,) if hasattr(normalized_shape, "__index__") else tuple(normalized_shape)
        self.normalized_shape = tuple(map(operator.index, shape))
        self.elementwise_affine = affine
        self.weight = empty(self.normalized_shape, dtype) if affine else None

    def _expect_last_axes(self, input: Any) -> None:
        shape, wanted = shape_of(input), self.normalized_shape
        if len(shape) < len(wanted) or shape[len(shape) - len(wanted) :] != wanted:
            axes = f"axis has {wanted[0]} elements" if len(wanted) == 1 else f"axes have {wanted} elements"
            raise ValueError(
                f"{shown(self)} expects inputs whose last {axes}, got {described(input)}{at_line(user_line())}"
            )


class LayerNorm(_OverLastAxes):
    """Normalization over the last axes, see `functional.layer_norm`.

    Args:
        normalized_shape: sizes of the axes.
        eps: what is added to variances.
        elementwise_affine: whether each element has a scale and a shift.
        bias: whether there is a shift, where there is a scale.
        dtype: dtype of the parameters.

    Attributes:
        weight: the scales, at first 1; or None.
        bias: the shifts, at first 0; or None.

    Example:
        >>> from ftrans import nn
        >>> nn.LayerNorm(2)(np.array([[1.0, 3.0]], np.float32)).round(3)
        array([[-1.,  1.]], dtype=float32)
    """

    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(normalized_shape, elementwise_affine, dtype)
        self.eps = eps
        self.bias = empty(self.normalized_shape, dtype) if elementwise_affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scales to 1 and shifts to 0."""
        _fill(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        self._expect_last_axes(input)
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_OverLastAxes):
    """Division by the root of the mean square over the last axes, see `functional.rms_norm`.

    Args:
        normalized_shape: sizes of the axes.
        eps: what is added to mean squares; by default the rounding unit of the dtype.
        elementwise_affine: whether each element has a scale.
        dtype: dtype of the parameter.

    Attributes:
        weight: the scales, at first 1; or None.

    Example:
        >>> from ftrans import nn
        >>> nn.RMSNorm(2)(np.array([[2.0, -2.0]], np.float32)).round(3)
        array([[ 1., -1.]], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(normalized_shape, elementwise_affine, dtype)
        self.eps = eps
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scales to 1."""
        _fill(self.weight, None)

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        self._expect_last_axes(input)
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalization over groups of channels and all positions of arrays (N, C, ...), see `functional.group_norm`.

    Args:
        num_groups: how many groups.
        num_channels: the number of channels.
        eps: what is added to variances.
        affine: whether each channel has a scale and a shift.
        dtype: dtype of the parameters.
        bias: whether there is a shift, where there is a scale.

    Attributes:
        weight: the scales, at first 1; or None.
        bias: the shifts, at first 0; or None.

    Raises:
        ValueError: the channels cannot be divided into as many groups of one size.

    Example:
        >>> from ftrans import nn
        >>> nn.GroupNorm(2, 4)(np.ones((5, 4, 3), np.float32)).shape
        (5, 4, 3)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        positive(num_groups=num_groups)
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm cannot divide {num_channels} channels into {num_groups} groups of one size"
                + at_line(user_line())
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.weight = empty((num_channels,), dtype) if affine else None
        self.bias = empty((num_channels,), dtype) if affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scales to 1 and shifts to 0."""
        _fill(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        """An array like `input`."""
        shape = shape_of(input)
        layout = ", ".join(["N", "C", *(f"S{i}" for i in range(1, len(shape) - 1))])
        expect_channels(self, input, self.num_channels, (f"({layout})",))
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Division by a power of the mean square of neighbouring channels, see `functional.local_response_norm`.

    Args:
        size: how many neighbours.
        alpha: factor of the mean square.
        beta: exponent.
        k: summand.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Any) -> Any:
        """An array like `input`, of shape (N, C, L, ...)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
