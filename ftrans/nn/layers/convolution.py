"""Convolutions and transposed convolutions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from ...base.source import at_line, user_line
from .. import functional as F
from ..cells.kinds import Parameter
from ..functional.arguments import shape_of
from ..functional.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from ..modules.module import Module
from .arguments import empty, expect_channels, fill_uniformly, positive, put, sizes

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PaddingMode = Literal["zeros", "reflect", "replicate", "circular"]
_MODES = ("zeros", "reflect", "replicate", "circular")
_LAYOUTS = {1: ("(N, C, L)", "(C, L)"), 2: ("(N, C, H, W)", "(C, H, W)"), 3: ("(N, C, D, H, W)", "(C, D, H, W)")}


class _AnyConvolution(Module):
    """Shared by convolutions and transposed convolutions."""

    _axes: ClassVar[int]

    weight: Parameter
    bias: Parameter | None

    def _set_up(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, dilation: Any, groups: int
    ) -> None:
        positive(groups=groups)
        for name, count in (("in_channels", in_channels), ("out_channels", out_channels)):
            if count % groups:
                raise ValueError(
                    f"groups={groups} of {type(self).__name__} must divide {name}={count}{at_line(user_line())}"
                )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sizes(kernel_size, self._axes, "kernel_size")
        self.stride = sizes(stride, self._axes, "stride")
        self.dilation = sizes(dilation, self._axes, "dilation")
        positive(kernel_size=min(self.kernel_size), stride=min(self.stride), dilation=min(self.dilation))
        self.groups = groups

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        fill_uniformly(self.weight, self.bias)

    def _shown(self, *settings: tuple[str, Any, Any]) -> str:
        """For `extra_repr`: sizes, and arguments that differ from their defaults."""
        unusual = [f"{name}={value}" for name, value, usual in settings if value != usual]
        return ", ".join(
            [
                f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
                *unusual,
            ]
        )


class _Convolution(_AnyConvolution):
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | Literal["valid", "same"] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self._set_up(in_channels, out_channels, kernel_size, stride, dilation, groups)
        if padding_mode not in _MODES:
            raise ValueError(
                f"padding_mode must be one of {', '.join(map(repr, _MODES))}, not {padding_mode!r}"
                + at_line(user_line())
            )
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ValueError(f"padding must be integers, 'valid' or 'same', not {padding!r}{at_line(user_line())}")
            if padding == "same" and any(n != 1 for n in self.stride):
                raise ValueError(
                    "padding='same' requires stride 1, so that results have the size of the input; stride is "
                    f"{self.stride}" + at_line(user_line())
                )
        self.padding = padding if isinstance(padding, str) else sizes(padding, self._axes, "padding")
        self.padding_mode = padding_mode
        self.weight = empty((out_channels, in_channels // groups, *self.kernel_size), dtype)
        self.bias = empty((out_channels,), dtype) if bias else None
        self.reset_parameters()
        put(self, device)

    def forward(self, input: Any) -> Any:
        """An array (N, out_channels, ...) from an array (N, in_channels, ...), or both without N."""
        expect_channels(self, input, self.in_channels, _LAYOUTS[self._axes])
        padding: Any = self.padding
        if self.padding_mode != "zeros" and padding != "valid":
            input, padding = F.pad(input, self._widths(), self.padding_mode), 0
        function = type(self)._function
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _widths(self) -> tuple[int, ...]:
        """The padding before and after each axis, the last axis first, as `functional.pad` takes it."""
        if not isinstance(self.padding, str):
            return tuple(n for n in reversed(self.padding) for _ in range(2))
        totals = [step * (size - 1) for size, step in zip(self.kernel_size, self.dilation, strict=True)]
        return tuple(n for total in reversed(totals) for n in (total // 2, total - total // 2))

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self._axes, (1,) * self._axes
        return self._shown(
            ("padding", self.padding, zeros),
            ("dilation", self.dilation, ones),
            ("groups", self.groups, 1),
            ("bias", self.bias is not None, True),
            ("padding_mode", self.padding_mode, "zeros"),
        )


class Conv1d(_Convolution):
    """Convolution of arrays of shape (N, C, L) or (C, L); see `functional.conv1d`.

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels.
        kernel_size: size of the kernel; an integer, or one for each axis of space.
        stride: step between windows.
        padding: number of elements added at both ends of each axis; "valid" for none, "same" for results of the size of
            the input.
        dilation: spacing between kernel elements.
        groups: number of channel groups; groups are convolved independently.
        bias: whether to add a trained bias.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight: array of shape (out_channels, in_channels / groups, *kernel_size), initialized uniformly between
            ±1 / sqrt(fan_in).
        bias: vector of shape (out_channels,), initialized in the same way; or None.

    Raises:
        ValueError: the arguments do not fit together.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Conv1d(3, 8, kernel_size=5, padding=2)(np.ones((4, 3, 20), np.float32)).shape
        (4, 8, 20)
    """

    _axes = 1
    _function = staticmethod(conv1d)


class Conv2d(_Convolution):
    """Convolution of arrays of shape (N, C, H, W) or (C, H, W).

    Args:
        in_channels, out_channels, kernel_size, stride, padding: as for `Conv1d`; sizes may be one integer, or one for
            height and width each.
        dilation, groups, bias, padding_mode, device, dtype: as for `Conv1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Conv2d(1, 8, 3, stride=2, padding=1)(np.ones((4, 1, 28, 28), np.float32)).shape
        (4, 8, 14, 14)
    """

    _axes = 2
    _function = staticmethod(conv2d)


class Conv3d(_Convolution):
    """Convolution of arrays of shape (N, C, D, H, W) or (C, D, H, W).

    Args:
        in_channels, out_channels, kernel_size, stride, padding: as for `Conv1d`; sizes may be one integer, or one for
            depth, height and width each.
        dilation, groups, bias, padding_mode, device, dtype: as for `Conv1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Conv3d(1, 2, 3)(np.ones((4, 1, 5, 5, 5), np.float32)).shape
        (4, 2, 3, 3, 3)
    """

    _axes = 3
    _function = staticmethod(conv3d)


class _Transposed(_AnyConvolution):
    _function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f"padding_mode of {type(self).__name__} can be 'zeros' only, not {padding_mode!r}: there is nothing "
                f"around its input{at_line(user_line())}"
            )
        self.padding_mode = padding_mode
        self._set_up(in_channels, out_channels, kernel_size, stride, dilation, groups)
        self.padding = sizes(padding, self._axes, "padding")
        self.output_padding = sizes(output_padding, self._axes, "output_padding")
        self.weight = empty((in_channels, out_channels // groups, *self.kernel_size), dtype)
        self.bias = empty((out_channels,), dtype) if bias else None
        self.reset_parameters()
        put(self, device)

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Any:
        """An array (N, out_channels, ...) from an array (N, in_channels, ...), or both without N.

        Args:
            input: array.
            output_size: sizes of space in the result, which a stride leaves open; by default they follow from
                `output_padding`.
        """
        expect_channels(self, input, self.in_channels, _LAYOUTS[self._axes])
        more = self.output_padding if output_size is None else self._output_padding(shape_of(input), output_size)
        function = type(self)._function
        return function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)

    def _output_padding(self, shape: tuple[int, ...], output_size: Sequence[int]) -> tuple[int, ...]:
        """The output padding that gives the result a certain size."""
        wanted = tuple(map(operator.index, output_size))[-self._axes :]
        least = tuple(
            (n - 1) * stride - 2 * padding + dilation * (size - 1) + 1
            for n, stride, padding, dilation, size in zip(
                shape[-self._axes :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        )
        most = tuple(n + stride - 1 for n, stride in zip(least, self.stride, strict=True))
        if len(wanted) != self._axes or any(
            not low <= n <= high for low, n, high in zip(least, wanted, most, strict=True)
        ):
            raise ValueError(
                f"output_size of {type(self).__name__} must be from {least} to {most} for this input, not "
                f"{tuple(output_size)}{at_line(user_line())}"
            )
        return tuple(n - low for n, low in zip(wanted, least, strict=True))

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self._axes, (1,) * self._axes
        return self._shown(
            ("padding", self.padding, zeros),
            ("dilation", self.dilation, ones),
            ("output_padding", self.output_padding, zeros),
            ("groups", self.groups, 1),
            ("bias", self.bias is not None, True),
        )


class ConvTranspose1d(_Transposed):
    """Transposed convolution of arrays of shape (N, C, L) or (C, L): the transpose of `Conv1d` as a linear map.

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels.
        kernel_size: size of the kernel; an integer, or one for each axis of space.
        stride: stride of the convolution that is transposed: the step between copies of the kernel in the result.
        padding: padding of that convolution: the number of elements that are cut off at both ends of the result.
        output_padding: number of elements that are added at the far end of the result.
        groups: number of channel groups; groups are convolved independently.
        bias: whether to add a trained bias.
        dilation: spacing between kernel elements.
        padding_mode: "zeros", the only one.
        device: where the parameters are put: a JAX device, or the name of a platform such as "gpu".
        dtype: dtype of the parameters; float32 for None.

    Attributes:
        weight: array of shape (in_channels, out_channels / groups, *kernel_size).
        bias: vector of shape (out_channels,), or None.

    Raises:
        ValueError: the arguments do not fit together.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ConvTranspose1d(3, 8, kernel_size=4, stride=2, padding=1)(np.ones((4, 3, 10), np.float32)).shape
        (4, 8, 20)
    """

    _axes = 1
    _function = staticmethod(conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """Transposed convolution of arrays of shape (N, C, H, W) or (C, H, W).

    Args:
        in_channels, out_channels, kernel_size, stride, padding, output_padding: as for `ConvTranspose1d`; sizes may be
            one integer, or two.
        groups, bias, dilation, padding_mode, device, dtype: as for `ConvTranspose1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ConvTranspose2d(3, 8, 2, stride=2)(np.ones((4, 3, 5, 5), np.float32)).shape
        (4, 8, 10, 10)
    """

    _axes = 2
    _function = staticmethod(conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """Transposed convolution of arrays of shape (N, C, D, H, W) or (C, D, H, W).

    Args:
        in_channels, out_channels, kernel_size, stride, padding, output_padding: as for `ConvTranspose1d`; sizes may be
            one integer, or three.
        groups, bias, dilation, padding_mode, device, dtype: as for `ConvTranspose1d`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ConvTranspose3d(1, 2, 2)(np.ones((4, 1, 2, 2, 2), np.float32)).shape
        (4, 2, 3, 3, 3)
    """

    _axes = 3
    _function = staticmethod(conv_transpose3d)
