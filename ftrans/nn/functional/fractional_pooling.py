"""Fractional max pooling (Graham, 2014): windows at random places, so that any size of the result is possible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import Shape
from ..random import key_of, uniform
from .arguments import array, described, dtype_of_noise
from .entry import functional
from .pooling import check_ordered
from .spatial import check_fits, check_image, per_axis

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
    *,
    rng: Any = None,
) -> Any:
    """Maximum of windows of images at random places, `(n - k) / (m - 1)` apart on average (Graham, 2014).

    Args:
        input: array of shape (N, C, H, W) or (C, H, W).
        kernel_size: size k of the windows; an integer, or one for height and width each.
        output_size: sizes of the result; either this or `output_ratio` is given.
        output_ratio: ratio of the sizes of the result to those of the input, between 0 and 1.
        return_indices: whether to return the index of each maximum in its flattened image, too.
        _random_samples: numbers in [0, 1), of shape (N, C, 2), that say where the windows of each image are, in place
            of random ones.
        rng: source of random numbers, as for `dropout`.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.
        TypeError: `rng` is missing where a function is transformed or compiled.

    Example:
        >>> import ftrans.nn.functional as F
        >>> from ftrans.nn import random
        >>> F.fractional_max_pool2d(np.ones((1, 5, 7)), 2, output_ratio=0.6, rng=random.key(0)).shape
        (1, 3, 4)
    """
    # A stream of keys is a cell itself, and would be read like one by the function below.
    key = key_of(rng, "fractional_max_pool2d", [input]) if _random_samples is None else None
    return _pooled(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples, key)


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
    *,
    rng: Any = None,
) -> Any:
    """Maximum of windows of volumes at random places, `(n - k) / (m - 1)` apart on average (Graham, 2014).

    Args:
        input: array of shape (N, C, D, H, W) or (C, D, H, W).
        kernel_size: size k of the windows; an integer, or one for each axis of space.
        output_size: sizes of the result; either this or `output_ratio` is given.
        output_ratio: ratio of the sizes of the result to those of the input, between 0 and 1.
        return_indices: whether to return the index of each maximum in its flattened volume, too.
        _random_samples: numbers in [0, 1), of shape (N, C, 3), that say where the windows of each volume are, in place
            of random ones.
        rng: source of random numbers, as for `dropout`.

    Returns:
        The maxima; with `return_indices` a pair of maxima and indices.

    Raises:
        ValueError: shapes do not match.
        TypeError: `rng` is missing where a function is transformed or compiled.

    Example:
        >>> import ftrans.nn.functional as F
        >>> from ftrans.nn import random
        >>> F.fractional_max_pool3d(np.ones((1, 5, 5, 5)), 2, output_size=3, rng=random.key(0)).shape
        (1, 3, 3, 3)
    """
    # A stream of keys is a cell itself, and would be read like one by the function below.
    key = key_of(rng, "fractional_max_pool3d", [input]) if _random_samples is None else None
    return _pooled(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples, key)


@functional
def _pooled(
    count: int,
    input: Any,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Any,
    key: Any,
) -> Any:
    what = f"fractional_max_pool{count}d"
    x = array(input)
    check_image(x, count, what)
    check_ordered(x, what)
    kernel, space = per_axis(kernel_size, count, what, "kernel_size"), tuple(x.shape[-count:])
    check_fits(x, space, kernel, what, "kernel_size")
    sizes = _sizes(what, x, kernel, output_size, output_ratio, count)
    batch = x if len(x.shape) == count + 2 else np.expand_dims(x, 0)
    lead = tuple(batch.shape[:2])
    samples = uniform(key, (*lead, count), dtype_of_noise(x)) if samples is None else array(samples)
    if tuple(samples.shape) != (*lead, count):
        raise ValueError(
            f"_random_samples of {what} must be of shape {(*lead, count)}, not {described(samples)}"
            + at_line(user_line())
        )
    places: list[Any] = []
    for axis, (n, m, k) in enumerate(zip(space, sizes, kernel, strict=True)):
        # torch takes the samples of images in the order width, height; those of volumes in the order of the axes.
        starts = _starts(samples[..., count - 1 - axis if count == 2 else axis], n, m, k)
        within = starts[..., None] + np.arange(k)
        shape = [1] * (2 * count)
        shape[axis], shape[count + axis] = m, k
        places.append(np.reshape(within, (*lead, *shape)))
    maxima, index = _greatest(batch, places, space, sizes, kernel)
    if len(x.shape) == count + 1:
        maxima, index = maxima[0], index[0]
    return (maxima, index) if return_indices else maxima


def _sizes(what: str, x: Any, kernel: Shape, output_size: Any, output_ratio: Any, count: int) -> Shape:
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{what} takes either output_size or output_ratio{at_line(user_line())}")
    if output_size is not None:
        sizes = per_axis(output_size, count, what, "output_size")
    else:
        ratios = tuple(output_ratio) if isinstance(output_ratio, tuple | list) else (output_ratio,) * count
        if len(ratios) != count or not all(0 < r < 1 for r in ratios):
            raise ValueError(
                f"output_ratio of {what} must be between 0 and 1, one number or {count}, not {output_ratio!r}"
                + at_line(user_line())
            )
        sizes = tuple([int(n * r) for n, r in zip(x.shape[-count:], ratios, strict=True)])
    if any(m < 1 or m + k - 1 > n for n, m, k in zip(x.shape[-count:], sizes, kernel, strict=True)):
        raise ValueError(
            f"{what} of {described(x)} with windows of {kernel} can have sizes from 1 to "
            f"{tuple(n - k + 1 for n, k in zip(x.shape[-count:], kernel, strict=True))}, not {sizes}"
            + at_line(user_line())
        )
    return sizes


def _starts(sample: Any, n: int, m: int, k: int) -> Any:
    """Where the `m` windows of size `k` on an axis of `n` elements begin, for each sample."""
    last = np.zeros((*sample.shape, 1), np.int64) + (n - k)
    if m == 1:
        return last
    # In the precision of the samples and in torch's order of operations, since the results are rounded down.
    step = np.asarray(n - k, sample.dtype) / np.asarray(m - 1, sample.dtype)
    steps = np.arange(m - 1).astype(sample.dtype)
    places = np.floor((steps + sample[..., None]) * step) - np.floor(sample * step)[..., None]
    return np.concatenate([places.astype(np.int64), last], axis=-1)


def _greatest(x: Any, places: list[Any], space: Shape, sizes: Shape, kernel: Shape) -> tuple[Any, Any]:
    """The maxima of the windows whose elements are at `places`, and their indices in the flattened space."""
    lead = tuple(x.shape[:2])
    flat: Any = 0
    for n, place in zip(space, places, strict=True):
        flat = flat * n + place
    flat = np.reshape(flat, (*lead, math.prod(sizes), math.prod(kernel)))
    elements = np.reshape(x, (*lead, math.prod(space)))
    elements = np.take_along_axis(elements, np.reshape(flat, (*lead, -1)), axis=-1)
    windows = np.reshape(elements, flat.shape)
    first = np.expand_dims(np.argmax(windows, axis=-1), -1)
    shape = (*lead, *sizes)
    maxima = np.reshape(np.take_along_axis(windows, first, axis=-1), shape)
    return maxima, np.reshape(np.take_along_axis(flat, first, axis=-1), shape)
