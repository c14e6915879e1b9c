"""Convolutions on NumPy: windows are copied, a block at a time, and multiplied by BLAS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core.types import Shape
from .windows import Padding, Place, numpy_padded, positions, reach, slices

# How much memory a block of windows may take that are copied to be multiplied at once: it should fit the cache.
_BLOCK_BYTES = 5 << 20


class Window(NamedTuple):
    """Where the kernel is put along each axis of space.

    Attributes:
        kernel: sizes of the kernel.
        out: sizes of the result.
        extent: sizes of the dilated `x`, without padding.
        reach: sizes of the dilated kernel.
        strides, padding, lhs_dilation, rhs_dilation: as for `Convolution`.
    """

    kernel: Shape
    out: Shape
    extent: Shape
    reach: Shape
    strides: Shape
    padding: Padding
    lhs_dilation: Shape
    rhs_dilation: Shape

    @classmethod
    def of(
        cls, x: Shape, kernel: Shape, strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape
    ) -> Window:
        """The windows of an image and a kernel of these shapes."""
        extent, window = reach(x[2:], lhs_dilation), reach(kernel[2:], rhs_dilation)
        out = positions(extent, padding, strides, window)
        return cls(kernel[2:], out, extent, window, strides, padding, lhs_dilation, rhs_dilation)

    @property
    def has_large_kernel(self) -> bool:
        """Whether there are fewer windows than elements in one, as where a kernel's derivative is computed."""
        return math.prod(self.out) < math.prod(self.kernel)

    def in_columns(self) -> Iterator[Place]:
        """For each element of the kernel, what it is multiplied with in all windows."""
        return slices(self.kernel, self.rhs_dilation, self.out, self.strides)

    def in_rows(self) -> Iterator[Place]:
        """For each window, what the kernel is multiplied with in it."""
        return slices(self.out, self.strides, self.kernel, self.rhs_dilation)


def block_size(bytes_of_one: int, count: int) -> int:
    """How many of `count` things are computed with at once."""
    return max(1, min(count, _BLOCK_BYTES // bytes_of_one))


def convolve(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    """The convolution of an image, which is neither padded nor dilated yet; neither array is empty."""
    if max(window.lhs_dilation) > 1 and max(*window.strides, *window.rhs_dilation) == 1:
        return _by_phases(x, kernel, window, groups)
    x = numpy_padded(x, window.padding, window.lhs_dilation, 0)
    if window.has_large_kernel:
        return _by_rows(x, kernel, window, groups)
    return _by_columns(x, kernel, window, groups)


def _by_phases(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    """The convolution of a dilated image, without products with the zeros between its elements.

    Of `d` windows side by side, each meets the elements of the image with another part of the kernel, of which every
    `d`-th element is in it.  So there is a convolution of the image itself for each of them.
    """
    dilation, ones = window.lhs_dilation, (1,) * len(window.out)
    result: Any = np.zeros((x.shape[0], kernel.shape[0], *window.out), x.dtype)
    for place in np.ndindex(*map(min, dilation, window.out)):
        axes = list(zip(place, window.padding, dilation, strict=True))
        part = kernel[(..., *(slice((low - i) % d, None, d) for i, (low, _), d in axes))]
        if part.size:
            out = result[(..., *(slice(i, None, d) for i, _, d in axes))]
            before = [(low - i) // d for i, (low, _), d in axes]
            sizes = zip(before, out.shape[2:], part.shape[2:], x.shape[2:], strict=True)
            padding = tuple((low, count + size - 1 - n - low) for low, count, size, n in sizes)
            out[...] = convolve(x, part, Window.of(x.shape, part.shape, ones, padding, ones, ones), groups)
    return result


def _by_columns(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    samples, channels = x.shape[:2]
    count, places = math.prod(window.out), math.prod(window.kernel)
    weights = kernel.reshape(groups, kernel.shape[0] // groups, -1)
    result = np.empty((samples, *weights.shape[:2], count), x.dtype)
    block = block_size(channels * places * count * x.itemsize, samples)
    if block >= 2 * window.out[-1]:
        for first in range(0, samples, block):
            part = slice(first, first + block)
            result[part] = _with_samples_last(x[part], weights, window)
        return result.reshape(samples, kernel.shape[0], *window.out)
    columns = np.empty((block, channels, places, *window.out), x.dtype)
    for first in range(0, samples, block):
        part = x[first : first + block]
        for i, place in enumerate(window.in_columns()):
            columns[: len(part), :, i] = part[place]
        matrices = columns[: len(part)].reshape(len(part), groups, weights.shape[2], count)
        np.matmul(weights, matrices, out=result[first : first + block])
    return result.reshape(samples, kernel.shape[0], *window.out)


def _with_samples_last(x: Any, weights: Any, window: Window) -> Any:
    """One product for all samples, which are more than a row of windows: they are copied in longer runs."""
    x = np.ascontiguousarray(np.moveaxis(x, 0, -1))
    places, samples = math.prod(window.kernel), x.shape[-1]
    columns = np.empty((x.shape[0], places, *window.out, samples), x.dtype)
    for i, place in enumerate(window.in_columns()):
        columns[:, i] = x[*place, :]
    product = np.matmul(weights, columns.reshape(weights.shape[0], weights.shape[2], -1))
    return np.moveaxis(product.reshape(*product.shape[:2], -1, samples), -1, 0)


def _by_rows(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    samples, channels = x.shape[0], kernel.shape[1]
    count, places = math.prod(window.out), math.prod(window.kernel)
    x = x.reshape(samples, groups, channels, *x.shape[2:]).swapaxes(0, 1)
    weights = kernel.reshape(groups, kernel.shape[0] // groups, channels, places)
    result = np.zeros((groups, samples * count, weights.shape[1]), x.dtype)
    block = block_size(groups * samples * count * places * x.itemsize, channels)
    for first in range(0, channels, block):
        part = x[:, :, first : first + block]
        rows = np.empty((groups, samples, count, part.shape[2], *window.kernel), x.dtype)
        for i, place in enumerate(window.in_rows()):
            rows[:, :, i] = part[place]
        matrices = weights[:, :, first : first + block].reshape(groups, weights.shape[1], -1)
        result += np.matmul(rows.reshape(groups, samples * count, -1), matrices.swapaxes(1, 2))
    result = result.reshape(groups, samples, count, weights.shape[1]).transpose(1, 0, 3, 2)
    return result.reshape(samples, kernel.shape[0], *window.out)
