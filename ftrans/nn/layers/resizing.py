"""Layers that resize images, and that exchange channels for resolution or for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ...base.source import at_line, user_line
from .. import functional as F
from ..functional.images import MODES
from ..modules.module import Module
from .function_layer import FunctionLayer

__all__ = [
    "ChannelShuffle", "PixelShuffle", "PixelUnshuffle", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip


class ChannelShuffle(FunctionLayer, of=F.channel_shuffle):
    """
    >>> nn.ChannelShuffle(2)(np.arange(4.0).reshape(1, 4, 1)).ravel()
    array([0., 2., 1., 3.])
    """

    groups: int


class PixelShuffle(FunctionLayer, of=F.pixel_shuffle):
    """
    >>> nn.PixelShuffle(2)(np.arange(4.0).reshape(4, 1, 1))
    array([[[0., 1.],
            [2., 3.]]])
    """

    upscale_factor: int


class PixelUnshuffle(FunctionLayer, of=F.pixel_unshuffle):
    """
    >>> nn.PixelUnshuffle(2)(np.arange(4.0).reshape(1, 2, 2)).ravel()
    array([0., 1., 2., 3.])
    """

    downscale_factor: int


class Upsample(Module):
    """Resize signals, images or volumes; see `functional.interpolate`.

    Args:
        size: sizes of the axes of space in the result; an integer, or one for each axis.
        scale_factor: ratio of the new sizes to the old ones, in place of `size`.
        mode: "nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: whether the centers of the corner elements keep their positions, instead of their outer edges.

    Raises:
        ValueError: the mode is unknown.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Upsample(scale_factor=2)(np.array([[[1.0, 2.0]]]))
        array([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(
                f"mode of Upsample must be one of {', '.join(map(repr, MODES))}, not {mode!r}{at_line(user_line())}"
            )
        self.size = tuple(size) if isinstance(size, Sequence) else size
        if isinstance(scale_factor, Sequence):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = None if scale_factor is None else float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, input: Any) -> Any:
        """An array of shape (N, C, *space) with the new sizes."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


class _Upsampling(Upsample):
    """Images in one mode, as it was called before `Upsample`."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, *self._mode)

    _mode: ClassVar[tuple[str, bool | None]]


class UpsamplingNearest2d(_Upsampling):
    """Resize images by repeating elements: `Upsample` with mode "nearest".

    Args:
        size: height and width of the result; an integer, or one for each.
        scale_factor: ratio of the new sizes to the old ones, in place of `size`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.UpsamplingNearest2d(scale_factor=2)(np.array([[[[1.0, 2.0]]]]))
        array([[[[1., 1., 2., 2.],
                 [1., 1., 2., 2.]]]])
    """

    _mode = ("nearest", None)


class UpsamplingBilinear2d(_Upsampling):
    """Resize images linearly, corner elements in their places: `Upsample` with mode "bilinear", `align_corners=True`.

    Args:
        size: height and width of the result; an integer, or one for each.
        scale_factor: ratio of the new sizes to the old ones, in place of `size`.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.UpsamplingBilinear2d(size=(1, 3))(np.array([[[[1.0, 2.0]]]]))
        array([[[[1. , 1.5, 2. ]]]])
    """

    _mode = ("bilinear", True)
