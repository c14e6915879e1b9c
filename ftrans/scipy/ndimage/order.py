"""`scipy.ndimage`: filters that select elements by their order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.types import is_complex
from ...numpy.promotion import asarray
from ..entries import bad_argument
from .operands import around, axes_of, axis_of, continued, delivered, implemented, one_for_each

__all__ = [
    "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter", "minimum_filter1d", "percentile_filter",
    "rank_filter",
]  # fmt: skip


def _window(input: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any) -> Any:
    """The elements around each element that a window selects, along one more axis in the end."""
    x = asarray(input)
    if is_complex(x.dtype):
        raise bad_argument(f"complex numbers have no order: {x.type}")
    axes = axes_of(x, axes)
    if footprint is None:
        if size is None:
            raise bad_argument("no footprint or filter size provided")
        footprint = np.ones([int(n) for n in one_for_each(size, len(axes))], bool)
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != len(axes) or not footprint.any():
        raise bad_argument(f"the footprint needs {len(axes)} axes and an element that is True")
    modes, widths = one_for_each(mode, len(axes)), [(0, 0)] * x.ndim
    wide = x
    for axis, n, kind, place in zip(axes, footprint.shape, modes, one_for_each(origin, len(axes)), strict=True):
        widths = [around(n, place) if i == axis else (0, 0) for i in range(x.ndim)]
        wide = continued(wide, widths, kind, cval)
    parts = []
    for place in itertools.product(*map(range, footprint.shape)):
        if footprint[place]:
            start = dict(zip(axes, place, strict=True))
            parts.append(wide[tuple(slice(start.get(i, 0), start.get(i, 0) + n) for i, n in enumerate(x.shape))])
    return np.stack(parts, -1)


def _extreme(name: str, choose: Callable[..., Any]) -> Callable[..., Any]:
    def filter(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        return delivered(choose(_window(input, size, footprint, mode, cval, origin, axes), -1), output, input)

    filter.__name__ = name
    filter.__doc__ = f"The {name.partition('_')[0]} of the elements in a window around each element."
    return implemented(filter)


def _extreme_along(name: str, choose: Callable[..., Any]) -> Callable[..., Any]:
    def filter(
        input: Any,
        size: int,
        axis: int = -1,
        output: Any = None,
        mode: str = "reflect",
        cval: Any = 0.0,
        origin: int = 0,
    ) -> Any:
        axes = (axis_of(asarray(input), axis),)
        return delivered(choose(_window(input, (size,), None, mode, cval, origin, axes), -1), output, input)

    filter.__name__ = name
    filter.__doc__ = f"The {name.partition('_')[0]} of windows along an axis."
    return implemented(filter)


maximum_filter = _extreme("maximum_filter", np.max)
minimum_filter = _extreme("minimum_filter", np.min)
maximum_filter1d = _extreme_along("maximum_filter1d", np.max)
minimum_filter1d = _extreme_along("minimum_filter1d", np.min)


def _ranked(window: Any, rank: int) -> Any:
    count = window.shape[-1]
    if not -count <= rank < count:
        raise bad_argument(f"the rank {rank} is not within the {count} elements of the window")
    return np.sort(window, -1)[..., rank]


@implemented
def rank_filter(
    input: Any,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The element of a rank, of those in a window around each element."""
    return delivered(_ranked(_window(input, size, footprint, mode, cval, origin, axes), rank), output, input)


@implemented
def median_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The median of the elements in a window around each element; of two in the middle, the greater one.

    Arguments are SciPy's: the window has a `size`, or is what a boolean `footprint` selects.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: neither `size` nor `footprint` is given, or they do not fit the axes; `input` is complex.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> print(ft.grad(lambda x: ndimage.median_filter(x, 3)[1])(np.array([1.0, 5.0, 2.0])))
        [0. 0. 1.]
    """
    window = _window(input, size, footprint, mode, cval, origin, axes)
    return delivered(_ranked(window, window.shape[-1] // 2), output, input)


@implemented
def percentile_filter(
    input: Any,
    percentile: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """An element by how many of those in a window, in percent, are less than it."""
    window = _window(input, size, footprint, mode, cval, origin, axes)
    percentile = percentile + 100 if percentile < 0 else percentile
    if not 0 <= percentile <= 100:
        raise bad_argument(f"the percentile must lie between 0 and 100, not at {percentile}")
    count = window.shape[-1]
    rank = count - 1 if percentile == 100 else int(float(count) * percentile / 100)
    return delivered(_ranked(window, rank), output, input)
