"""Pooling: one number for each window of signals, images or volumes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...api.call import record_or_run
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import is_complex, is_inexact
from ...ops.broadcast import reduce_sum
from ...ops.elementwise import convert
from ...ops.literals import full
from ...ops.parts import pad, slice_
from ...ops.shapes import reshape
from ...ops.windows import reach, window_argmax, window_max, window_sum
from .arguments import array, described
from .entry import functional
from .spatial import check_fits, check_image, per_axis

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]


def _windows(
    x: Any, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, count: int, what: str
) -> dict[str, Any]:
    """Parameters of the windows; the padding at the far end is exactly what the windows reach."""
    check_image(x, count, what)
    sizes = per_axis(size, count, what, "kernel_size")
    strides = sizes if stride is None or stride == () or stride == [] else per_axis(stride, count, what, "stride")
    lows = per_axis(padding, count, what, "padding", 0)
    rates = per_axis(dilation, count, what, "dilation")
    if any(2 * p > k for p, k in zip(lows, sizes, strict=True)):
        raise ValueError(
            f"padding of {what} must be at most half of the kernel_size, so that each window contains an element of "
            f"the input; got padding {padding!r} for kernel_size {size!r}{at_line(user_line())}"
        )
    space, window = x.shape[-count:], reach(sizes, rates)
    # With ceil_mode, a window may reach over the end by less than a stride.
    padded = tuple(n + 2 * p + (s - 1) * bool(ceil_mode) for n, p, s in zip(space, lows, strides, strict=True))
    check_fits(x, padded, window, what, "kernel_size")
    around = []
    for n, e, s, p in zip(space, window, strides, lows, strict=True):
        rest = n + 2 * p - e
        found = (rest + s - 1 if ceil_mode else rest) // s + 1
        if ceil_mode and (found - 1) * s >= n + p:
            # The last window must begin before the padding behind the image.
            found -= 1
        around.append((p, (found - 1) * s + e - n - p))
    return {"window": sizes, "strides": strides, "padding": tuple(around), "dilation": rates}


# Maxima


def pool_max(
    what: str,
    count: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    """The maxima of windows over the last `count` axes, for the function `what`."""
    x = array(input)
    windows = _windows(x, kernel_size, stride, padding, dilation, ceil_mode, count, what)
    check_ordered(x, what)
    return maxima_of_windows(what, x, windows, return_indices)


def check_ordered(x: Any, what: str) -> None:
    """Raise for complex numbers.

    Raises:
        TypeError: `x` is complex.
    """
    if is_complex(x.dtype):
        raise TypeError(
            f"{what} is not defined for complex numbers, which have no order, but got {described(x)}"
            + at_line(user_line())
        )


def maxima_of_windows(
    what: str, x: Any, windows: dict[str, Any], return_indices: bool, tables: list[Any] | None = None
) -> Any:
    """The maxima of windows of `x`, and their indices on request.

    Args:
        what: name of the function, for messages.
        x: array whose last axes are those of space.
        windows: parameters of the windows.
        return_indices: whether to return a pair.
        tables: for each axis, the indices in the user's array that those of `x` are copies of; by default, they are
            equal.
    """

    def record(operands: list[Tracer]) -> list[Any]:
        results = [window_max(*operands, **windows)]
        return [*results, window_argmax(*operands, **windows)] if return_indices else results

    maximum, *index = record_or_run(what, record, [x])
    if not return_indices:
        return maximum
    (inside,), flat = index, 0
    sizes, count = windows["window"], len(windows["window"])
    for axis in range(count):
        low, _ = windows["padding"][axis]
        starts = np.arange(inside.shape[axis - count]) * windows["strides"][axis] - low
        step = inside // math.prod(sizes[axis + 1 :]) % sizes[axis] * windows["dilation"][axis]
        place = starts.reshape(-1, *(1,) * (count - 1 - axis)) + step
        length = x.shape[axis - count]
        if tables is not None:
            place, length = np.take(tables[axis], place), int(tables[axis][-1]) + 1
        flat = flat * length + place
    return maximum, flat


@functional
def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum of each window of signals.

    The gradient goes to the first element that attains the maximum.  NaN counts as the maximum.

    Args:
        input: array of shape (N, C, L) or (C, L).
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` by default.
        padding: number of -inf elements added at both ends of each axis, at most half of `kernel_size`.
        dilation: spacing between the elements of a window.
        ceil_mode: whether a last window may extend beyond the end.
        return_indices: whether to return the index of each maximum in its signal, too.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans as ft, ftrans.nn.functional as F
        >>> x = np.array([[1.0, 3.0, 3.0, 2.0]])
        >>> F.max_pool1d(x, 2)
        array([[3., 3.]])
        >>> ft.grad(lambda x: F.max_pool1d(x, 4).sum())(x)
        array([[0., 1., 0., 0.]])
    """
    return pool_max("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@functional
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum of each window of images.

    The gradient goes to the first element that attains the maximum.  NaN counts as the maximum.

    Args:
        input: array of shape (N, C, H, W) or (C, H, W).
        kernel_size: size of the windows; an integer, or one for height and width each.
        stride: step between windows; `kernel_size` by default.
        padding: number of -inf elements added at both ends of each axis, at most half of `kernel_size`.
        dilation: spacing between the elements of a window.
        ceil_mode: whether a last window may extend beyond the end.
        return_indices: whether to return the index of each maximum in its flattened image, too.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.max_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
        array([[[ 5.,  7.],
                [13., 15.]]])
    """
    return pool_max("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@functional
def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum of each window of volumes.

    The gradient goes to the first element that attains the maximum.  NaN counts as the maximum.

    Args:
        input: array of shape (N, C, D, H, W) or (C, D, H, W).
        kernel_size: size of the windows; an integer, or one for each axis of space.
        stride: step between windows; `kernel_size` by default.
        padding: number of -inf elements added at both ends of each axis, at most half of `kernel_size`.
        dilation: spacing between the elements of a window.
        ceil_mode: whether a last window may extend beyond the end.
        return_indices: whether to return the index of each maximum in its flattened volume, too.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.max_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), 2)
        array([[[[7.]]]])
    """
    return pool_max("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


# Means


def pool_mean(
    what: str,
    count: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Any:
    """The means of windows over the last `count` axes, for the function `what`."""
    x = array(input)
    windows = _windows(x, kernel_size, stride, padding, 1, ceil_mode, count, what)
    lows = per_axis(padding, count, what, "padding", 0)
    if divisor_override is not None:
        if not divisor_override:
            raise ValueError(f"divisor_override of {what} must not be zero{at_line(user_line())}")
        return sums_of_windows(what, x, windows) / divisor_override
    sums = sums_of_windows(what, x, windows)
    divisor: Any = 1.0
    for axis, (k, s, n, p) in enumerate(
        zip(windows["window"], windows["strides"], x.shape[-count:], lows, strict=True)
    ):
        start = np.arange(sums.shape[axis - count]) * s - p
        stop = np.minimum(start + k, n + p)
        sizes = stop - start if count_include_pad else np.minimum(stop, n) - np.maximum(start, 0)
        divisor = divisor * (float(k) if (sizes == k).all() else sizes.reshape(-1, *(1,) * (count - 1 - axis)))
    return sums / (divisor if isinstance(divisor, float) else divisor.astype(sums.dtype))


def sums_of_windows(what: str, x: Any, windows: dict[str, Any]) -> Any:
    """Sums of the elements of windows."""
    sizes, strides, padding = windows["window"], windows["strides"], windows["padding"]
    lead = len(x.shape) - len(sizes)

    def record(operands: list[Tracer]) -> list[Any]:
        (x,) = operands
        if not is_inexact(x.dtype):
            x = convert(x, dtype=np.dtype(np.float64))
        none = (0,) * lead
        x = slice_(
            x,
            start=(*none, *(max(-low, 0) for low, _ in padding)),
            limit=(*x.shape[:lead], *(n - max(-high, 0) for n, (_, high) in zip(x.shape[lead:], padding, strict=True))),
            strides=(1,) * x.ndim,
        )
        x = pad(
            x,
            full((), 0, x.dtype),
            before=(*none, *(max(low, 0) for low, _ in padding)),
            after=(*none, *(max(high, 0) for _, high in padding)),
            interior=(0,) * x.ndim,
        )
        if sizes != strides:
            return [window_sum(x, window=sizes, strides=strides, dilation=(1,) * len(sizes))]
        tiles = [n for m, k in zip(x.shape[lead:], sizes, strict=True) for n in (m // k, k)]
        x = reshape(x, shape=(*x.shape[:lead], *tiles))
        return [reduce_sum(x, axes=tuple(range(lead + 1, x.ndim, 2)))]

    (sums,) = record_or_run(what, record, [x])
    return sums


@functional
def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Mean of each window of signals.

    Args:
        input: array of shape (N, C, L) or (C, L).
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` by default.
        padding: number of zeros added at both ends of each axis, at most half of `kernel_size`.
        ceil_mode: whether a last window may extend beyond the end.
        count_include_pad: whether the zeros of the padding count in the mean.

    Returns:
        The means.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.avg_pool1d(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
        array([[2., 6.]])
    """
    return pool_mean("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@functional
def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    """Mean of each window of images.

    Args:
        input: array of shape (N, C, H, W) or (C, H, W).
        kernel_size: size of the windows; an integer, or one for height and width each.
        stride: step between windows; `kernel_size` by default.
        padding: number of zeros added at both ends of each axis, at most half of `kernel_size`.
        ceil_mode: whether a last window may extend beyond the end.
        count_include_pad: whether the zeros of the padding count in the mean.
        divisor_override: divisor of the sums, in place of the number of elements.

    Returns:
        The means.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.avg_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
        array([[[ 2.5,  4.5],
                [10.5, 12.5]]])
    """
    return pool_mean(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@functional
def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    """Mean of each window of volumes.

    Args:
        input: array of shape (N, C, D, H, W) or (C, D, H, W).
        kernel_size: size of the windows; an integer, or one for each axis of space.
        stride: step between windows; `kernel_size` by default.
        padding: number of zeros added at both ends of each axis, at most half of `kernel_size`.
        ceil_mode: whether a last window may extend beyond the end.
        count_include_pad: whether the zeros of the padding count in the mean.
        divisor_override: divisor of the sums, in place of the number of elements.

    Returns:
        The means.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.avg_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), 2)
        array([[[[3.5]]]])
    """
    return pool_mean(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
