"""Pooling layers: maxima or means of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functional as F
from .arguments import sizes
from .function_layer import FunctionLayer

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
]  # fmt: skip

Sizes = int | Sequence[int]
OutputSize = int | Sequence[int | None] | None


class _Pool(FunctionLayer):
    kernel_size: Sizes

    def _kept(self, name: str, value: Any) -> Any:
        return self.kernel_size if name == "stride" and value is None else value


class _MaxPool(_Pool):
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool, of=F.max_pool1d):
    """
    >>> nn.MaxPool1d(2)(np.array([[[1.0, 3.0, 2.0, 0.0]]]))
    array([[[3., 2.]]])
    """


class MaxPool2d(_MaxPool, of=F.max_pool2d):
    """
    >>> nn.MaxPool2d(2)(np.arange(16.0).reshape(1, 4, 4))
    array([[[ 5.,  7.],
            [13., 15.]]])
    """


class MaxPool3d(_MaxPool, of=F.max_pool3d):
    """
    >>> nn.MaxPool3d(2)(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[[[7.]]]])
    """


class _AvgPool(_Pool):
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool, of=F.avg_pool1d):
    """
    >>> nn.AvgPool1d(2)(np.array([[[1.0, 3.0, 2.0, 0.0]]]))
    array([[[2., 1.]]])
    """

    def _kept(self, name: str, value: Any) -> Any:
        value = super()._kept(name, value)
        return sizes(value, 1, name) if name in ("kernel_size", "stride", "padding") else value


class AvgPool2d(_AvgPool, of=F.avg_pool2d):
    """
    >>> nn.AvgPool2d(2)(np.arange(16.0).reshape(1, 4, 4))
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]])
    """

    divisor_override: int | None = None


class AvgPool3d(_AvgPool, of=F.avg_pool3d):
    """
    >>> nn.AvgPool3d(2)(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[[[3.5]]]])
    """

    divisor_override: int | None = None


class _Adaptive(FunctionLayer):
    output_size: OutputSize

    def _kept(self, name: str, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive, of=F.adaptive_avg_pool1d):
    """
    >>> nn.AdaptiveAvgPool1d(1)(np.array([[[1.0, 3.0, 2.0]]]))
    array([[[2.]]])
    """


class AdaptiveAvgPool2d(_Adaptive, of=F.adaptive_avg_pool2d):
    """
    >>> nn.AdaptiveAvgPool2d((2, None))(np.ones((1, 5, 3))).shape
    (1, 2, 3)
    """


class AdaptiveAvgPool3d(_Adaptive, of=F.adaptive_avg_pool3d):
    """
    >>> nn.AdaptiveAvgPool3d(2)(np.ones((1, 4, 6, 8))).shape
    (1, 2, 2, 2)
    """


class AdaptiveMaxPool1d(_Adaptive, of=F.adaptive_max_pool1d):
    """
    >>> nn.AdaptiveMaxPool1d(2)(np.array([[[1.0, 4.0, 3.0]]]))
    array([[[4., 4.]]])
    """

    return_indices: bool = False


class AdaptiveMaxPool2d(_Adaptive, of=F.adaptive_max_pool2d):
    """
    >>> nn.AdaptiveMaxPool2d((2, 1))(np.arange(16.0).reshape(1, 4, 4))
    array([[[ 7.],
            [15.]]])
    """

    return_indices: bool = False


class AdaptiveMaxPool3d(_Adaptive, of=F.adaptive_max_pool3d):
    """
    >>> nn.AdaptiveMaxPool3d(1)(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[[[7.]]]])
    """

    return_indices: bool = False
