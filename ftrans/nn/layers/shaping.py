"""Layers that change shapes: flattening, padding, and images of other sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar

from ...base.source import at_line, user_line
from .. import functional as F
from ..functional.arguments import array, axis_of, described
from ..functional.images import MODES
from ..module import Module
from .arguments import sizes

Sizes = int | Sequence[int]


class Flatten(Module):
    """Makes one axis of several ones that are next to each other.

    Args:
        start_dim: the first of them.
        end_dim: the last of them.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Flatten()(np.ones((5, 2, 3))).shape
        (5, 6)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        """An array of the same elements, of fewer axes."""
        x = array(input)
        shape = tuple(x.shape)
        start, end = (axis_of(dim, len(shape), "Flatten") for dim in (self.start_dim, self.end_dim))
        if start > end:
            raise ValueError(
                f"Flatten from axis {self.start_dim} to {self.end_dim} of {described(x)} has nothing between them"
                + at_line(user_line())
            )
        return x.reshape((*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes several axes of one, the opposite of `Flatten`.

    Args:
        dim: the axis.
        unflattened_size: sizes of the new axes; one of them may be -1, which stands for what is left.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.Unflatten(1, (2, 3))(np.ones((5, 6))).shape
        (5, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim = dim
        self.unflattened_size = tuple(map(operator.index, unflattened_size))

    def forward(self, input: Any) -> Any:
        """An array of the same elements, of more axes."""
        x = array(input)
        shape = tuple(x.shape)
        axis = axis_of(self.dim, len(shape), "Unflatten")
        known = math.prod(n for n in self.unflattened_size if n != -1)
        fits = shape[axis] % known == 0 if -1 in self.unflattened_size and known else shape[axis] == known
        if not fits:
            raise ValueError(
                f"axis {self.dim} of {described(x)} cannot be divided into {self.unflattened_size}"
                + at_line(user_line())
            )
        return x.reshape((*shape[:axis], *self.unflattened_size, *shape[axis + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(Module):
    """Makes pixels of channels: (N, C r r, H, W) becomes (N, C, H r, W r), see `functional.pixel_shuffle`.

    Args:
        upscale_factor: the factor r.
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        """A larger image of fewer channels."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Makes channels of pixels: (N, C, H r, W r) becomes (N, C r r, H, W), see `functional.pixel_unshuffle`.

    Args:
        downscale_factor: the factor r.
    """

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        """A smaller image of more channels."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class Upsample(Module):
    """Images of another size, see `functional.interpolate`.

    Args:
        size: the sizes of the axes of space; one number for all, or one for each.
        scale_factor: in its place, by how much they are larger.
        mode: "nearest", "linear", "bilinear", "bicubic", "trilinear" and others that `interpolate` knows.
        align_corners: whether the outermost elements keep their places.

    Raises:
        ValueError: there is no such mode.
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
        """An array (N, C, *space) of other sizes of space."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


class Unfold(Module):
    """The patches of images as columns: (N, C, H, W) becomes (N, C elements, patches), see `functional.unfold`.

    Args:
        kernel_size: how many elements a patch has; a number, or one for each of height and width, as are the next ones.
        dilation: how far apart the elements of a patch are.
        padding: how many zeros are put on each side.
        stride: how far apart patches begin.
    """

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        """The patches, one in each column."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Images as sums of patches: (N, C elements, patches) becomes (N, C, H, W), see `functional.fold`.

    Args:
        output_size: height and width of the images; a number, or one for each, as are the next ones.
        kernel_size: how many elements a patch has.
        dilation: how far apart the elements of a patch are.
        padding: how far patches may begin before the image.
        stride: how far apart patches begin.
    """

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        """The images."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class _Pad(Module):
    """Adds elements before and after the last axes."""

    _axes: ClassVar[int]
    _mode: ClassVar[str] = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        self.padding = sizes(padding, 2 * self._axes, "padding")

    def forward(self, input: Any) -> Any:
        """A larger array."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad1d(_Pad):
    """Adds zeros at both ends of the last axis.

    Args:
        padding: how many before and after it: one number for both, or two.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ZeroPad1d((1, 2))(np.ones((1, 1, 2)))
        array([[[0., 1., 1., 0., 0.]]])
    """

    _axes = 1


class ZeroPad2d(_Pad):
    """Adds zeros around images.

    Args:
        padding: how many on the left, on the right, above, below; or one number for all.
    """

    _axes = 2


class ZeroPad3d(_Pad):
    """Adds zeros around the last three axes.

    Args:
        padding: how many before and after each axis, the last axis first; or one number for all.
    """

    _axes = 3


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """A larger array."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Adds a number at both ends of the last axis.

    Args:
        padding: as for `ZeroPad1d`.
        value: the number.
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """Adds a number around images; `padding` is as for `ZeroPad2d`."""

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """Adds a number around the last three axes; `padding` is as for `ZeroPad3d`."""

    _axes = 3


class ReflectionPad1d(_Pad):
    """Adds the mirror image, without the outermost element, at both ends of the last axis; see `ZeroPad1d`."""

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Adds mirror images, without the outermost elements, around images; see `ZeroPad2d`."""

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Adds mirror images, without the outermost elements, around the last three axes; see `ZeroPad3d`."""

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Repeats the outermost elements at both ends of the last axis; see `ZeroPad1d`."""

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Repeats the outermost elements around images; see `ZeroPad2d`."""

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Repeats the outermost elements around the last three axes; see `ZeroPad3d`."""

    _axes, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Continues the last axis periodically at both ends; see `ZeroPad1d`."""

    _axes, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Continues images periodically; see `ZeroPad2d`."""

    _axes, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Continues the last three axes periodically; see `ZeroPad3d`."""

    _axes, _mode = 3, "circular"
