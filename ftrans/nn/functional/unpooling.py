"""Unpooling: the maxima of windows back at the places that they came from."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...api.call import record_or_run
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import Shape
from ...ops.indexing import scatter_set
from ...ops.literals import full
from .arguments import array, checked_indices, concrete, described
from .entry import functional
from .spatial import check_image, per_axis

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


def _max_unpool(
    count: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Any:
    what = f"max_unpool{count}d"
    x, places = array(input), array(indices)
    check_image(x, count, what)
    if tuple(places.shape) != tuple(x.shape):
        raise ValueError(
            f"{what} takes an index for each element of the input, {described(x)}, but indices are {described(places)};"
            f" max_pool{count}d(..., return_indices=True) returns both{at_line(user_line())}"
        )
    space = _unpooled_size(what, x, kernel_size, stride, padding, output_size, count)
    size = math.prod(space)
    places = checked_indices(places, size, what, "indices")
    if concrete(places) is None:
        x = np.where((places < 0) | (places >= size), math.nan, x)
    lead = tuple(x.shape[:-count])
    planes, many = math.prod(lead), math.prod(x.shape[-count:])
    flat = np.reshape(places, (planes, many)) + size * np.arange(planes)[:, None]

    def record(operands: list[Tracer]) -> list[Any]:
        values, flat = operands
        return [scatter_set(full((planes * size,), 0, values.dtype), values, flat)]

    (out,) = record_or_run(what, record, [np.reshape(x, -1), np.reshape(flat, -1)])
    return np.reshape(out, (*lead, *space))


def _unpooled_size(
    what: str, x: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any, count: int
) -> Shape:
    """The sizes of the axes of space of the result."""
    kernel = per_axis(kernel_size, count, what, "kernel_size")
    strides = kernel if stride is None or stride == () or stride == [] else per_axis(stride, count, what, "stride")
    margins = per_axis(padding, count, what, "padding", 0)
    usual = tuple(
        [(n - 1) * s + k - 2 * p for n, k, s, p in zip(x.shape[-count:], kernel, strides, margins, strict=True)]
    )
    if output_size is None:
        return usual
    given = tuple(map(operator.index, output_size))
    sizes = given[2:] if len(given) == count + 2 else given
    least, most = ([u + sign * (s - 1) for u, s in zip(usual, strides, strict=True)] for sign in (-1, 1))
    if len(sizes) != count or not all(a <= m <= b for a, m, b in zip(least, sizes, most, strict=True)):
        raise ValueError(
            f"output_size of {what} must be the {count} sizes of the axes of space before pooling, from "
            f"{tuple(least)} to {tuple(most)} for the input {described(x)}, or the whole shape, not {output_size!r}"
            + at_line(user_line())
        )
    return sizes


@functional
def max_unpool1d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Put the maxima of windows of signals back at their places, and zeros at all others.

    Where an index occurs several times, as with windows that overlap, the last value counts, and only it has a
    gradient; torch gives the same gradient to each of them.

    Args:
        input: maxima of shape (N, C, L) or (C, L), from `max_pool1d`.
        indices: the index of each in its signal, from `max_pool1d` with `return_indices`.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` by default.
        padding: padding of the pooling.
        output_size: sizes of the axes of space, or the whole shape, where several sizes give the same maxima; by
            default the smallest that whole windows fill.

    Returns:
        An array with the axes of space before pooling.

    Raises:
        ValueError: shapes do not match.
        IndexError: an index is out of range.  Compiled code, which cannot check that, returns NaN.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> y, i = F.max_pool1d(np.array([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
        >>> F.max_unpool1d(y, i, 2)
        array([[0., 3., 2., 0.]])
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@functional
def max_unpool2d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Put the maxima of windows of images back at their places, and zeros at all others.

    Where an index occurs several times, as with windows that overlap, the last value counts, and only it has a
    gradient; torch gives the same gradient to each of them.

    Args:
        input: maxima of shape (N, C, H, W) or (C, H, W), from `max_pool2d`.
        indices: the index of each in its flattened image, from `max_pool2d` with `return_indices`.
        kernel_size: size of the windows; an integer, or one for height and width each.
        stride: step between windows; `kernel_size` by default.
        padding: padding of the pooling.
        output_size: sizes of the axes of space, or the whole shape, where several sizes give the same maxima; by
            default the smallest that whole windows fill.

    Returns:
        An array with the axes of space before pooling.

    Raises:
        ValueError: shapes do not match.
        IndexError: an index is out of range.  Compiled code, which cannot check that, returns NaN.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> y, i = F.max_pool2d(np.array([[[1.0, 3.0], [2.0, 0.0]]]), 2, return_indices=True)
        >>> F.max_unpool2d(y, i, 2)
        array([[[0., 3.],
                [0., 0.]]])
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@functional
def max_unpool3d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Put the maxima of windows of volumes back at their places, and zeros at all others.

    Where an index occurs several times, as with windows that overlap, the last value counts, and only it has a
    gradient; torch gives the same gradient to each of them.

    Args:
        input: maxima of shape (N, C, D, H, W) or (C, D, H, W), from `max_pool3d`.
        indices: the index of each in its flattened volume, from `max_pool3d` with `return_indices`.
        kernel_size: size of the windows; an integer, or one for each axis of space.
        stride: step between windows; `kernel_size` by default.
        padding: padding of the pooling.
        output_size: sizes of the axes of space, or the whole shape, where several sizes give the same maxima; by
            default the smallest that whole windows fill.

    Returns:
        An array with the axes of space before pooling.

    Raises:
        ValueError: shapes do not match.
        IndexError: an index is out of range.  Compiled code, which cannot check that, returns NaN.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> y, i = F.max_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), 2, return_indices=True)
        >>> F.max_unpool3d(y, i, 2).ravel()
        array([0., 0., 0., 0., 0., 0., 0., 7.])
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
