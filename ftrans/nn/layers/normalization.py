"""Normalization layers, and the running statistics that they keep in buffers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...base.source import at_line, user_line
from .. import functional as F
from .. import init
from ..cells.kinds import Buffer, Parameter
from ..functional.arguments import described, shape_of
from ..modules.module import Module
from .arguments import empty, expect_channels, positive, put, shown
from .function_layer import FunctionLayer

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LayerNorm", "LocalResponseNorm", "RMSNorm", "SyncBatchNorm",
]  # fmt: skip


def _fill(weight: Parameter | None, bias: Parameter | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


class _Channelwise(Module):
    """Normalization of each channel, with a scale and a shift per channel, and running statistics."""

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
        device: Any = None,
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
            self.running_mean = Buffer(np.zeros(num_features, dtype or np.float32))
            self.running_var = Buffer(np.ones(num_features, dtype or np.float32))
            self.num_batches_tracked = Buffer(np.zeros((), np.int64))
        else:
            self.running_mean = self.running_var = self.num_batches_tracked = None
        self.reset_parameters()
        put(self, device)

    def reset_running_stats(self) -> None:
        """Reset the running statistics to mean 0 and variance 1."""
        for cell, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            if cell is not None:
                cell.value = np.full(cell.shape, value, cell.dtype)

    def reset_parameters(self) -> None:
        """Reset scales to 1, shifts to 0, and the running statistics."""
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
        """An array of the same shape; in training, the running statistics are updated."""
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
        """Count this batch; return its weight in the running statistics."""
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.value = count = self.num_batches_tracked.read() + 1
            if self.momentum is None:
                return (1.0 / count).astype(dtype)
        return self.momentum


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of arrays of shape (N, C, ...), with the statistics of all devices.

    Where a batch is divided over devices (`nn.shard`), every layer has the statistics of the whole batch, so this one
    is `BatchNorm1d` to `BatchNorm3d` under another name.

    Args:
        num_features, eps, momentum, affine, track_running_stats: as for `BatchNorm1d`.
        process_group: accepted as in torch, without effect.
        device, dtype, bias: as for `BatchNorm1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.SyncBatchNorm(3)(np.ones((4, 3, 2, 2), np.float32)).shape
        (4, 3, 2, 2)
    """

    _layouts = ("(N, C)", "(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)")

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module as it is: its batch normalization has the statistics of the whole batch already.

        Args:
            module: the module.
            process_group: accepted as in torch, without effect.
        """
        return module


class BatchNorm1d(_BatchNorm):
    """Batch normalization of arrays of shape (N, C) or (N, C, L): each channel over samples and positions.

    Training uses mean and variance of the batch and updates the running statistics, which evaluation uses.  See
    `functional.batch_norm`.

    Args:
        num_features: number of channels.
        eps: added to variances.
        momentum: weight of a batch in the running statistics; None for the mean over all batches.
        affine: whether each channel has a trained scale and shift.
        track_running_stats: whether to keep running statistics; without them, evaluation uses those of the batch, too.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of parameters and statistics; float32 for None.
        bias: whether to have a shift beside the scale.

    Attributes:
        weight: scales, initialized with 1; or None.
        bias: shifts, initialized with 0; or None.
        running_mean: a buffer of shape (num_features,); or None.
        running_var: a buffer of shape (num_features,), with unbiased variances; or None.
        num_batches_tracked: a buffer with the number of batches so far, int64; or None.

    Raises:
        ValueError: when called, if the input has another shape, or, in training, only one value per channel.

    Example:
        >>> import numpy as np
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
    """Batch normalization of arrays of shape (N, C, H, W); arguments as for `BatchNorm1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.BatchNorm2d(3)(np.ones((4, 3, 2, 2), np.float32)).shape
        (4, 3, 2, 2)
    """

    _layouts = ("(N, C, H, W)",)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of arrays of shape (N, C, D, H, W); arguments as for `BatchNorm1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.BatchNorm3d(3)(np.ones((4, 3, 2, 2, 2), np.float32)).shape
        (4, 3, 2, 2, 2)
    """

    _layouts = ("(N, C, D, H, W)",)


class _InstanceNorm(_Channelwise):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype, bias=bias)
        put(self, device)

    def forward(self, input: Any) -> Any:
        """An array of the same shape; in training, running statistics, if there are any, are updated."""
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
    """Instance normalization of arrays of shape (N, C, L) or (C, L): each channel of each sample over positions.

    Args:
        num_features: number of channels.
        eps: added to variances.
        momentum: weight of a batch in the running statistics.
        affine: whether each channel has a trained scale and shift.
        track_running_stats: whether to keep running statistics, which evaluation then uses.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of parameters and statistics; float32 for None.
        bias: whether to have a shift beside the scale.

    Raises:
        ValueError: when called, if the input has another shape, or only one position.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.InstanceNorm1d(1)(np.array([[[1.0, 3.0]]])).round(3)
        array([[[-1.,  1.]]])
    """

    _layouts = ("(N, C, L)", "(C, L)")


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of arrays of shape (N, C, H, W) or (C, H, W); arguments as for `InstanceNorm1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.InstanceNorm2d(3)(np.ones((4, 3, 2, 2), np.float32)).shape
        (4, 3, 2, 2)
    """

    _layouts = ("(N, C, H, W)", "(C, H, W)")


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of arrays of shape (N, C, D, H, W) or (C, D, H, W); arguments as for `InstanceNorm1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.InstanceNorm3d(3)(np.ones((4, 3, 2, 2, 2), np.float32)).shape
        (4, 3, 2, 2, 2)
    """

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
    """Layer normalization over the last axes; see `functional.layer_norm`.

    Args:
        normalized_shape: sizes of these axes; an integer for one axis.
        eps: added to variances.
        elementwise_affine: whether each element has a trained scale and shift.
        bias: whether to have a shift beside the scale.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight: scales, initialized with 1; or None.
        bias: shifts, initialized with 0; or None.

    Example:
        >>> import numpy as np
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
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(normalized_shape, elementwise_affine, dtype)
        self.eps = eps
        self.bias = empty(self.normalized_shape, dtype) if elementwise_affine and bias else None
        self.reset_parameters()
        put(self, device)

    def reset_parameters(self) -> None:
        """Reset scales to 1 and shifts to 0."""
        _fill(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        """An array of the same shape."""
        self._expect_last_axes(input)
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_OverLastAxes):
    """Division by the root mean square over the last axes; see `functional.rms_norm`.

    Args:
        normalized_shape: sizes of these axes; an integer for one axis.
        eps: added to mean squares; by default the machine epsilon of the dtype.
        elementwise_affine: whether each element has a trained scale.
        device: where it is put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameter; float32 for None.

    Attributes:
        weight: scales, initialized with 1; or None.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.RMSNorm(2)(np.array([[2.0, -2.0]], np.float32)).round(3)
        array([[ 1., -1.]], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(normalized_shape, elementwise_affine, dtype)
        self.eps = eps
        self.reset_parameters()
        put(self, device)

    def reset_parameters(self) -> None:
        """Reset scales to 1."""
        _fill(self.weight, None)

    def forward(self, input: Any) -> Any:
        """An array of the same shape."""
        self._expect_last_axes(input)
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Group normalization of arrays of shape (N, C, ...): each group of channels over all positions.

    Args:
        num_groups: number of groups.
        num_channels: number of channels.
        eps: added to variances.
        affine: whether each channel has a trained scale and shift.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.
        bias: whether to have a shift beside the scale.

    Attributes:
        weight: scales, initialized with 1; or None.
        bias: shifts, initialized with 0; or None.

    Raises:
        ValueError: `num_groups` does not divide `num_channels`.

    Example:
        >>> import numpy as np
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
        device: Any = None,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        positive(num_groups=num_groups)
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm cannot divide {num_channels} channels into {num_groups} groups of equal size"
                + at_line(user_line())
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.weight = empty((num_channels,), dtype) if affine else None
        self.bias = empty((num_channels,), dtype) if affine and bias else None
        self.reset_parameters()
        put(self, device)

    def reset_parameters(self) -> None:
        """Reset scales to 1 and shifts to 0."""
        _fill(self.weight, self.bias)

    def forward(self, input: Any) -> Any:
        """An array of the same shape."""
        shape = shape_of(input)
        layout = ", ".join(["N", "C", *(f"S{i}" for i in range(1, len(shape) - 1))])
        expect_channels(self, input, self.num_channels, (f"({layout})",))
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(FunctionLayer, of=F.local_response_norm):
    """
    >>> nn.LocalResponseNorm(2, alpha=1.0)(np.ones((1, 3, 1))).round(3).ravel()
    array([0.738, 0.595, 0.595])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
