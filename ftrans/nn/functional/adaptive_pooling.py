"""Adaptive pooling: window `i` of `m` over `n` elements extends from `i * n / m` to `(i + 1) * n / m`.

Both bounds are rounded outwards, so windows overlap where `m` does not divide `n`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...base.narrow_products import exact_products
from ...base.source import at_line, user_line
from ...core.types import Shape, is_inexact
from .arguments import array
from .entry import functional
from .pooling import check_ordered, maxima_of_windows, sums_of_windows
from .spatial import check_image

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d",
]  # fmt: skip


def _output_size(x: Any, output_size: Any, count: int, what: str) -> Shape:
    check_image(x, count, what)
    given = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * count
    if len(given) != count:
        raise ValueError(
            f"output_size of {what} must be an integer, or one for each of the {count} axes of space, not "
            f"{output_size!r}{at_line(user_line())}"
        )
    space = x.shape[-count:]
    try:
        sizes = tuple([n if m is None else operator.index(m) for m, n in zip(given, space, strict=True)])
    except TypeError:
        raise TypeError(
            f"output_size of {what} must be integers, or None for the size of the input, not {output_size!r}"
            + at_line(user_line())
        ) from None
    if min(sizes) < 1 or min(space) < 1:
        raise ValueError(
            f"{what} needs sizes of at least 1, but got output_size {output_size!r} for an input of the size {space}"
            + at_line(user_line())
        )
    return sizes


def _bounds(n: int, m: int) -> list[tuple[int, int]]:
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def _tiles(space: Shape, sizes: Shape) -> dict[str, Any]:
    """Windows that lie side by side."""
    size = tuple(n // m for n, m in zip(space, sizes, strict=True))
    none = tuple((0, 0) for _ in size)
    return {"window": size, "strides": size, "padding": none, "dilation": (1,) * len(size)}


def _adaptive_avg_pool(count: int, input: Any, output_size: Any) -> Any:
    what = f"adaptive_avg_pool{count}d"
    x = array(input)
    sizes = _output_size(x, output_size, count, what)
    space = x.shape[-count:]
    if all(n % m == 0 for n, m in zip(space, sizes, strict=True)):
        windows = _tiles(space, sizes)
        return sums_of_windows(what, x, windows) / float(math.prod(windows["window"]))
    for axis, (n, m) in enumerate(zip(space, sizes, strict=True), len(x.shape) - count):
        weights = np.zeros((n, m), x.dtype if is_inexact(x.dtype) else np.float64)
        for i, (start, stop) in enumerate(_bounds(n, m)):
            weights[start:stop, i] = 1 / (stop - start)
        with exact_products():
            x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights, -1, axis)
    return x


def _adaptive_max_pool(count: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    what = f"adaptive_max_pool{count}d"
    x = array(input)
    sizes = _output_size(x, output_size, count, what)
    check_ordered(x, what)
    tables, space = [], x.shape[-count:]
    for axis, (n, m) in enumerate(zip(space, sizes, strict=True), len(x.shape) - count):
        # Windows of one size that lie side by side: shorter ones repeat their last element, which changes nothing.
        bounds = _bounds(n, m)
        longest = max(stop - start for start, stop in bounds)
        places = np.array([min(start + i, stop - 1) for start, stop in bounds for i in range(longest)])
        tables.append(places)
        if len(places) != n:
            x = np.take(x, places, axis)
    return maxima_of_windows(what, x, _tiles(x.shape[-count:], sizes), return_indices, tables)


@functional
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """Mean of each window of signals, with windows chosen to give a result of a certain size.

    Args:
        input: array of shape (N, C, L) or (C, L).
        output_size: length of the result; None for that of the input.

    Returns:
        The means.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.adaptive_avg_pool1d(np.array([[1.0, 2.0, 3.0]]), 2)
        array([[1.5, 2.5]])
    """
    return _adaptive_avg_pool(1, input, output_size)


@functional
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Mean of each window of images, with windows chosen to give a result of a certain size.

    Args:
        input: array of shape (N, C, H, W) or (C, H, W).
        output_size: height and width of the result, or an integer for both; None for the size of the input.

    Returns:
        The means.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.adaptive_avg_pool2d(np.arange(16.0).reshape(1, 4, 4), 1)
        array([[[7.5]]])
    """
    return _adaptive_avg_pool(2, input, output_size)


@functional
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Mean of each window of volumes, with windows chosen to give a result of a certain size.

    Args:
        input: array of shape (N, C, D, H, W) or (C, D, H, W).
        output_size: depth, height and width of the result, or an integer for all; None for the size of the input.

    Returns:
        The means.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.adaptive_avg_pool3d(np.ones((2, 4, 4, 4)), (1, 2, None)).shape
        (2, 1, 2, 4)
    """
    return _adaptive_avg_pool(3, input, output_size)


@functional
def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maximum of each window of signals, with windows chosen to give a result of a certain size.

    The gradient goes to the first element that attains the maximum.

    Args:
        input: array of shape (N, C, L) or (C, L).
        output_size: length of the result; None for that of the input.
        return_indices: whether to return the index of each maximum in its signal, too.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.adaptive_max_pool1d(np.array([[1.0, 4.0, 3.0]]), 2)
        array([[4., 4.]])
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


@functional
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maximum of each window of images, with windows chosen to give a result of a certain size.

    The gradient goes to the first element that attains the maximum.

    Args:
        input: array of shape (N, C, H, W) or (C, H, W).
        output_size: height and width of the result, or an integer for both; None for the size of the input.
        return_indices: whether to return the index of each maximum in its flattened image, too.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.adaptive_max_pool2d(np.arange(16.0).reshape(1, 4, 4), (2, 1))
        array([[[ 7.],
                [15.]]])
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


@functional
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maximum of each window of volumes, with windows chosen to give a result of a certain size.

    The gradient goes to the first element that attains the maximum.

    Args:
        input: array of shape (N, C, D, H, W) or (C, D, H, W).
        output_size: depth, height and width of the result, or an integer for all; None for the size of the input.
        return_indices: whether to return the index of each maximum in its flattened volume, too.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.adaptive_max_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), 1)
        array([[[[7.]]]])
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)
