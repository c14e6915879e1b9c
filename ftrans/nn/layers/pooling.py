"""Pooling layers: maxima or means of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ...base.source import at_line, user_line
from .. import functional as F
from ..cells.kinds import Buffer, RngState
from ..modules.module import Module
from .arguments import sizes
from .function_layer import FunctionLayer

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
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


class _LPPool(FunctionLayer):
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPool, of=F.lp_pool1d):
    """
    >>> nn.LPPool1d(2, 2)(np.array([[[3.0, 4.0, 1.0, 0.0]]]))
    array([[[5., 1.]]])
    """


class LPPool2d(_LPPool, of=F.lp_pool2d):
    """
    >>> nn.LPPool2d(2, 2)(np.ones((1, 1, 2, 2)))
    array([[[[2.]]]])
    """


class LPPool3d(_LPPool, of=F.lp_pool3d):
    """
    >>> nn.LPPool3d(1, 2)(np.ones((1, 1, 2, 2, 2)))
    array([[[[[8.]]]]])
    """


class _MaxUnpool(FunctionLayer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    _axes: ClassVar[str]

    def _kept(self, name: str, value: Any) -> Any:
        value = self.kernel_size if name == "stride" and value is None else value
        return sizes(value, len(self._axes), name)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """The array before pooling, with zeros where there was no maximum."""
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool, of=F.max_unpool1d):
    """
    >>> y, i = nn.MaxPool1d(2, return_indices=True)(np.array([[1.0, 3.0, 2.0, 0.0]]))
    >>> nn.MaxUnpool1d(2)(y, i)
    array([[0., 3., 2., 0.]])
    """

    _axes = "L"


class MaxUnpool2d(_MaxUnpool, of=F.max_unpool2d):
    """
    >>> y, i = nn.MaxPool2d(2, return_indices=True)(np.array([[[1.0, 3.0], [2.0, 0.0]]]))
    >>> nn.MaxUnpool2d(2)(y, i)
    array([[[0., 3.],
            [0., 0.]]])
    """

    _axes = "HW"


class MaxUnpool3d(_MaxUnpool, of=F.max_unpool3d):
    """
    >>> y, i = nn.MaxPool3d(2, return_indices=True)(np.arange(8.0).reshape(1, 2, 2, 2))
    >>> nn.MaxUnpool3d(2)(y, i).ravel()
    array([0., 0., 0., 0., 0., 0., 0., 7.])
    """

    _axes = "DHW"


class _FractionalMaxPool(Module):
    """Pooling at random places, with a stream of random numbers that is part of the state."""

    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{type(self).__name__} takes either output_size or output_ratio{at_line(user_line())}")
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self._random_samples = None if _random_samples is None else Buffer(_random_samples)
        self.rng = RngState() if _random_samples is None else None

    def forward(self, input: Any) -> Any:
        """The maxima, of shape (N, C, *sizes) or (C, *sizes); with `return_indices` a pair of maxima and indices."""
        options = (self.output_size, self.output_ratio, self.return_indices, self._random_samples)
        return type(self)._function(input, self.kernel_size, *options, rng=self.rng)


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maximum of windows of images at random places; see `functional.fractional_max_pool2d`.

    Args:
        kernel_size: size of the windows; an integer, or one for height and width each.
        output_size: sizes of the result; either this or `output_ratio` is given.
        output_ratio: ratio of the sizes of the result to those of the input, between 0 and 1.
        return_indices: whether to return the index of each maximum in its flattened image, too.
        _random_samples: numbers in [0, 1), of shape (N, C, 2), in place of random ones.

    Attributes:
        rng: the stream of random numbers, which every call advances; None with `_random_samples`.

    Raises:
        ValueError: not exactly one of `output_size` and `output_ratio` is given.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.FractionalMaxPool2d(2, output_ratio=0.5)(np.ones((1, 3, 9, 8))).shape
        (1, 3, 4, 4)
    """

    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maximum of windows of volumes at random places; see `functional.fractional_max_pool3d`.

    Args:
        kernel_size: size of the windows; an integer, or one for each axis of space.
        output_size: sizes of the result; either this or `output_ratio` is given.
        output_ratio: ratio of the sizes of the result to those of the input, between 0 and 1.
        return_indices: whether to return the index of each maximum in its flattened volume, too.
        _random_samples: numbers in [0, 1), of shape (N, C, 3), in place of random ones.

    Attributes:
        rng: the stream of random numbers, which every call advances; None with `_random_samples`.

    Raises:
        ValueError: not exactly one of `output_size` and `output_ratio` is given.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.FractionalMaxPool3d(2, output_size=3)(np.ones((1, 3, 9, 8, 7))).shape
        (1, 3, 3, 3, 3)
    """

    _function = staticmethod(F.fractional_max_pool3d)
