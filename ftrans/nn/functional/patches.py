"""Patches of images as columns, and images as sums of patches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...api.call import record_or_run
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import Shape
from ...ops.elementwise import add
from ...ops.literals import full
from ...ops.parts import pad
from ...ops.windows import positions, reach, slices
from .arguments import array, described
from .entry import functional
from .spatial import check_fits, check_image, per_axis

__all__ = ["fold", "unfold"]


def _settings(what: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Shape, ...]:
    """Each setting as a pair, for height and width."""
    return (
        per_axis(kernel_size, 2, what, "kernel_size"),
        per_axis(dilation, 2, what, "dilation"),
        per_axis(padding, 2, what, "padding", 0),
        per_axis(stride, 2, what, "stride"),
    )


@functional
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Extract the patches of images, one in each column.

    Args:
        input: array of shape (N, C, H, W) or (C, H, W).
        kernel_size: size of the patches; an integer, or one for height and width each, as are the next arguments.
        dilation: spacing between the elements of a patch.
        padding: number of zeros added on each side.
        stride: step between patches.

    Returns:
        An array of shape (N, C * elements of a patch, patches), or without N.  Overlapping patches take as many times
        the memory of the input as they overlap.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.unfold(np.arange(6.0).reshape(1, 2, 3), 2)
        array([[0., 1.],
               [1., 2.],
               [3., 4.],
               [4., 5.]])
    """
    x = array(input)
    check_image(x, 2, "unfold")
    sizes, rates, around, strides = _settings("unfold", kernel_size, dilation, padding, stride)
    window, lead = reach(sizes, rates), tuple(x.shape[:-2])
    space = tuple(n + 2 * p for n, p in zip(x.shape[-2:], around, strict=True))
    check_fits(x, space, window, "unfold", "kernel_size")
    found = positions(space, ((0, 0), (0, 0)), strides, window)
    x = np.pad(x, [(0, 0)] * len(lead) + [(p, p) for p in around])
    patches = np.stack([x[place] for place in slices(sizes, rates, found, strides)], axis=len(lead))
    return patches.reshape(*lead[:-1], lead[-1] * math.prod(sizes), math.prod(found))


@functional
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Add up patches to images: the transpose of `unfold` as a linear map.

    Args:
        input: patches, of shape (N, C * elements of a patch, patches), or without N.
        output_size: height and width of the images; an integer, or one for each, as are the next arguments.
        kernel_size: size of the patches.
        dilation: spacing between the elements of a patch.
        padding: number of elements on each side that patches may extend beyond the image; what lies there is dropped.
        stride: step between patches.

    Returns:
        An array of shape (N, C, H, W), or without N, with the sum of patches where they overlap.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.fold(np.ones((4, 2)), (2, 3), 2)
        array([[[1., 2., 1.],
                [1., 2., 1.]]])
    """
    x = array(input)
    size = per_axis(output_size, 2, "fold", "output_size")
    sizes, rates, around, strides = _settings("fold", kernel_size, dilation, padding, stride)
    window = reach(sizes, rates)
    space = tuple(n + 2 * p for n, p in zip(size, around, strict=True))
    found = positions(space, ((0, 0), (0, 0)), strides, window)
    elements, shape = math.prod(sizes), tuple(x.shape)
    if min(found) < 1:
        raise ValueError(
            f"no patch of fold, which spans {' x '.join(map(str, window))} elements, fits into the padded image "
            f"of {' x '.join(map(str, space))}{at_line(user_line())}"
        )
    if len(shape) not in (2, 3) or shape[-2] % elements or shape[-1] != math.prod(found):
        raise ValueError(
            f"fold to images of {' x '.join(map(str, size))} by patches of {' x '.join(map(str, sizes))} with stride "
            f"{strides}, padding {around} and dilation {rates} takes input of shape (..., channels * {elements}, "
            f"{math.prod(found)}), with or without an axis of samples, not {described(x)}{at_line(user_line())}"
        )
    lead = shape[:-2]
    x = x.reshape(*lead, shape[-2] // elements, elements, *found)
    none = (0,) * (len(lead) + 1)

    def record(parts: list[Tracer]) -> list[Any]:
        """The sum of all patches, which are given as one array for each of their elements."""
        total: Any = None
        for part, place in zip(parts, np.ndindex(sizes), strict=True):
            before = tuple(k * d for k, d in zip(place, rates, strict=True))
            after = (n - b - e for n, b, e in zip(space, before, reach(found, strides), strict=True))
            spread = pad(
                part,
                full((), 0, part.dtype),
                before=(*none, *before),
                after=(*none, *after),
                interior=(*none, *(s - 1 for s in strides)),
            )
            total = spread if total is None else add(total, spread)
        return [total]

    (images,) = record_or_run("fold", record, [x[..., i, :, :] for i in range(elements)])
    return images[(..., *(slice(p, n - p) for n, p in zip(space, around, strict=True)))]
