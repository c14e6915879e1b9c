"""Layers that change shapes: flattening, padding, and resizing of images."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar

from ...base.source import at_line, user_line
from .. import functional as F
from ..functional.arguments import array, axis_of, described
from ..modules.module import Module
from .arguments import sizes
from .function_layer import FunctionLayer

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Flatten",
    "Fold", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Unflatten", "Unfold", "ZeroPad1d",
    "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

Sizes = int | Sequence[int]


class Flatten(Module):
    """Merge adjacent axes into one.

    Args:
        start_dim: first axis to merge.
        end_dim: last axis to merge.

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
        """An array of the same elements with fewer axes."""
        x = array(input)
        shape = tuple(x.shape)
        start, end = (axis_of(dim, len(shape), "Flatten") for dim in (self.start_dim, self.end_dim))
        if start > end:
            raise ValueError(
                f"Flatten from axis {self.start_dim} to {self.end_dim} of {described(x)} is an empty range of axes"
                + at_line(user_line())
            )
        return x.reshape((*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split an axis into several, the inverse of `Flatten`.

    Args:
        dim: axis to split.
        unflattened_size: sizes of the new axes; one of them may be -1 and is inferred.

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
        """An array of the same elements with more axes."""
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


class Unfold(FunctionLayer, of=F.unfold):
    """
    >>> nn.Unfold(2)(np.arange(6.0).reshape(1, 2, 3))
    array([[0., 1.],
           [1., 2.],
           [3., 4.],
           [4., 5.]])
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


class Fold(FunctionLayer, of=F.fold):
    """
    >>> nn.Fold((2, 3), 2)(np.ones((4, 2)))
    array([[[1., 2., 1.],
            [1., 2., 1.]]])
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


class _Pad(Module):
    """Pad the last axes."""

    _axes: ClassVar[int]
    _mode: ClassVar[str] = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        self.padding = sizes(padding, 2 * self._axes, "padding")

    def forward(self, input: Any) -> Any:
        """The padded array."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad1d(_Pad):
    """Add zeros at both ends of the last axis.

    Args:
        padding: number of elements before and after: an integer for both, or two.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ZeroPad1d((1, 2))(np.ones((1, 1, 2)))
        array([[[0., 1., 1., 0., 0.]]])
    """

    _axes = 1


class ZeroPad2d(_Pad):
    """Add zeros at all sides of images.

    Args:
        padding: number of elements on the left, on the right, above and below: an integer for all, or four.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ZeroPad2d(1)(np.ones((1, 2, 2))).shape
        (1, 4, 4)
    """

    _axes = 2


class ZeroPad3d(_Pad):
    """Add zeros at both ends of the last three axes.

    Args:
        padding: number of elements before and after each axis, the last axis first: an integer for all, or six.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ZeroPad3d(1)(np.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes = 3


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The padded array."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Add a constant at both ends of the last axis.

    Args:
        padding: number of elements before and after: an integer for both, or two.
        value: the constant.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ConstantPad1d(1, 9.0)(np.ones((1, 1, 2)))
        array([[[9., 1., 1., 9.]]])
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """Add a constant at all sides of images.

    Args:
        padding: number of elements on the left, on the right, above and below: an integer for all, or four.
        value: the constant.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ConstantPad2d(1, 9.0)(np.ones((1, 2, 2))).shape
        (1, 4, 4)
    """

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """Add a constant at both ends of the last three axes.

    Args:
        padding: number of elements before and after each axis, the last axis first: an integer for all, or six.
        value: the constant.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ConstantPad3d(1, 9.0)(np.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes = 3


class ReflectionPad1d(_Pad):
    """Add the mirror image, without the edge elements, at both ends of the last axis.

    Args:
        padding: number of elements before and after: an integer for both, or two.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ReflectionPad1d(2)(np.arange(3.0)[None, None])
        array([[[2., 1., 0., 1., 2., 1., 0.]]])
    """

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Add the mirror image, without the edge elements, at all sides of images.

    Args:
        padding: number of elements on the left, on the right, above and below: an integer for all, or four.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ReflectionPad2d(1)(np.ones((1, 2, 2))).shape
        (1, 4, 4)
    """

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Add the mirror image, without the edge elements, at both ends of the last three axes.

    Args:
        padding: number of elements before and after each axis, the last axis first: an integer for all, or six.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ReflectionPad3d(1)(np.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Repeat the edge elements at both ends of the last axis.

    Args:
        padding: number of elements before and after: an integer for both, or two.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ReplicationPad1d(2)(np.arange(3.0)[None, None])
        array([[[0., 0., 0., 1., 2., 2., 2.]]])
    """

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Repeat the edge elements at all sides of images.

    Args:
        padding: number of elements on the left, on the right, above and below: an integer for all, or four.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ReplicationPad2d(1)(np.ones((1, 2, 2))).shape
        (1, 4, 4)
    """

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Repeat the edge elements at both ends of the last three axes.

    Args:
        padding: number of elements before and after each axis, the last axis first: an integer for all, or six.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.ReplicationPad3d(1)(np.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Continue periodically at both ends of the last axis.

    Args:
        padding: number of elements before and after: an integer for both, or two.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.CircularPad1d(2)(np.arange(3.0)[None, None])
        array([[[1., 2., 0., 1., 2., 0., 1.]]])
    """

    _axes, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Continue periodically at all sides of images.

    Args:
        padding: number of elements on the left, on the right, above and below: an integer for all, or four.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.CircularPad2d(1)(np.ones((1, 2, 2))).shape
        (1, 4, 4)
    """

    _axes, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Continue periodically at both ends of the last three axes.

    Args:
        padding: number of elements before and after each axis, the last axis first: an integer for all, or six.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.CircularPad3d(1)(np.ones((1, 2, 2, 2))).shape
        (1, 4, 4, 4)
    """

    _axes, _mode = 3, "circular"
