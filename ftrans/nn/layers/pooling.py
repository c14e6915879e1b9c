"""Pooling: greatest elements or means of windows of arrays (N, C, *space), or (C, *space) for one sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..functional.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from ..functional.pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from ..module import Module
from .arguments import sizes

Sizes = int | Sequence[int]


class _MaxPool(Module):
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        """The greatest element of each window, with `return_indices` also its place."""
        function = type(self)._function
        return function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The greatest element of each window of arrays (N, C, L) or (C, L), see `functional.max_pool1d`.

    Args:
        kernel_size: size of windows; one number for all axes of space, or one for each.
        stride: how far windows begin apart; `kernel_size` by default.
        padding: what is added at both ends of each axis, of minus infinity.
        dilation: how far elements of a window are apart.
        return_indices: whether to return the places of the greatest elements as well.
        ceil_mode: whether windows that reach over the end count.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.MaxPool1d(2)(np.array([[[1.0, 3.0, 2.0, 0.0]]]))
        array([[[3., 2.]]])
    """

    _function = staticmethod(max_pool1d)


class MaxPool2d(_MaxPool):
    """`MaxPool1d` for arrays (N, C, H, W) or (C, H, W); the arguments are those of `MaxPool1d`."""

    _function = staticmethod(max_pool2d)


class MaxPool3d(_MaxPool):
    """`MaxPool1d` for arrays (N, C, D, H, W) or (C, D, H, W); the arguments are those of `MaxPool1d`."""

    _function = staticmethod(max_pool3d)


class AvgPool1d(Module):
    """The mean of each window of arrays (N, C, L) or (C, L), see `functional.avg_pool1d`.

    Args:
        kernel_size: size of windows.
        stride: how far windows begin apart; `kernel_size` by default.
        padding: how many zeros are added at both ends.
        ceil_mode: whether windows that reach over the end count.
        count_include_pad: whether the zeros count.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.AvgPool1d(2)(np.array([[[1.0, 3.0, 2.0, 0.0]]]))
        array([[[2., 1.]]])
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size = sizes(kernel_size, 1, "kernel_size")
        self.stride = self.kernel_size if stride is None else sizes(stride, 1, "stride")
        self.padding = sizes(padding, 1, "padding")
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        """The mean of each window."""
        return avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of arrays (N, C, H, W) or (C, H, W), see `functional.avg_pool2d`.

    Args:
        kernel_size: size of windows; one number for all axes of space, or one for each.
        stride: how far windows begin apart; `kernel_size` by default.
        padding: how many zeros are added at both ends of each axis.
        ceil_mode: whether windows that reach over the end count.
        count_include_pad: whether the zeros count.
        divisor_override: what sums are divided by, if not by the size of windows.
    """

    _function: ClassVar[Callable[..., Any]] = staticmethod(avg_pool2d)

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        """The mean of each window."""
        function = type(self)._function
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool3d(AvgPool2d):
    """`AvgPool2d` for arrays (N, C, D, H, W) or (C, D, H, W); the arguments are those of `AvgPool2d`."""

    _function = staticmethod(avg_pool3d)


class _Adaptive(Module):
    _function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        self.output_size = tuple(output_size) if isinstance(output_size, list) else output_size

    def forward(self, input: Any) -> Any:
        """An array whose axes of space have the sizes that were asked for."""
        function = type(self)._function
        return function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Means of windows that are chosen so that the result has a given size, for arrays (N, C, L) or (C, L).

    Args:
        output_size: size of the result along each axis of space; one number for all, or one for each, where None
            stands for the size of the input.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.AdaptiveAvgPool1d(1)(np.array([[[1.0, 3.0, 2.0]]]))
        array([[[2.]]])
    """

    _function = staticmethod(adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """`AdaptiveAvgPool1d` for arrays (N, C, H, W) or (C, H, W)."""

    _function = staticmethod(adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """`AdaptiveAvgPool1d` for arrays (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(adaptive_avg_pool3d)


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        """An array whose axes of space have the sizes that were asked for, with `return_indices` also the places."""
        function = type(self)._function
        return function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Greatest elements of windows that are chosen so that the result has a given size, for (N, C, L) or (C, L).

    Args:
        output_size: size of the result along each axis of space; one number for all, or one for each, where None
            stands for the size of the input.
        return_indices: whether to return the places of the greatest elements as well.
    """

    _function = staticmethod(adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """`AdaptiveMaxPool1d` for arrays (N, C, H, W) or (C, H, W)."""

    _function = staticmethod(adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """`AdaptiveMaxPool1d` for arrays (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(adaptive_max_pool3d)
