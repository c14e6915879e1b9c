"""Padding and resizing of images: elements added around them, interpolation, and channels exchanged for resolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import Shape, is_inexact
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .arguments import array, described
from .entry import functional
from .spatial import per_axis

__all__ = [
    "channel_shuffle", "interpolate", "pad", "pixel_shuffle", "pixel_unshuffle", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip

_NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_AXES_OF_MODE = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
MODES = ("nearest", "nearest-exact", "area", *_AXES_OF_MODE)


@functional
def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Pad the last axes.

    Args:
        input: array.
        pad: number of elements before and after each axis, the last axis first: `(left, right)`, `(left, right, top,
            bottom)`, and so on.  With mode `"constant"`, negative numbers remove elements.
        mode: `"constant"`, `"reflect"` (mirrored at the edge element), `"replicate"` (the edge element repeated) or
            `"circular"` (continued from the other end).
        value: fill value for mode `"constant"`; 0 by default.

    Returns:
        The padded array.

    Raises:
        ValueError: `pad` does not match the shape, or `mode` is unknown.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.pad(np.array([1.0, 2.0, 3.0]), (2, 1), mode="reflect")
        array([3., 2., 1., 2., 3., 2.])
    """
    x = array(input)
    ndim = len(x.shape)
    amounts = tuple(pad)
    if len(amounts) % 2 or len(amounts) > 2 * ndim:
        raise ValueError(
            f"pad takes two numbers for each axis, at most {2 * ndim} for {described(x)}, the last axis first, but got "
            f"{amounts}{at_line(user_line())}"
        )
    if mode not in _NUMPY_MODES:
        raise ValueError(f"mode of pad must be one of {', '.join(_NUMPY_MODES)}, not {mode!r}{at_line(user_line())}")
    widths = [(0, 0)] * (ndim - len(amounts) // 2) + [
        (int(amounts[i]), int(amounts[i + 1])) for i in range(len(amounts) - 2, -2, -2)
    ]
    if mode == "constant":
        kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, widths, strict=True))
        x = x[kept] if any(min(w) < 0 for w in widths) else x
        positive = [(max(a, 0), max(b, 0)) for a, b in widths]
        return np.pad(x, positive, constant_values=0 if value is None else value)
    for n, (a, b) in zip(x.shape, widths, strict=True):
        most = n - 1 if mode == "reflect" else n
        if (a or b) and (min(a, b) < 0 or (mode != "replicate" and max(a, b) > most)):
            raise ValueError(
                f"pad with mode {mode!r} takes from 0 to {most} elements for an axis of {n}, but got {(a, b)} for "
                f"{described(x)}{at_line(user_line())}"
            )
    return np.pad(x, widths, _NUMPY_MODES[mode])  # type: ignore[call-overload]


@functional
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Resize signals, images or volumes.

    Args:
        input: array with the axes (sample, channel, *space).
        size: sizes of the axes of space in the result; either this or `scale_factor` is given.
        scale_factor: ratio of the new sizes to the old ones.
        mode: `"nearest"`, `"nearest-exact"`, `"area"` (means of windows), `"linear"` for signals, `"bilinear"` and
            `"bicubic"` (Keys, 1981) for images, `"trilinear"` for volumes.
        align_corners: for the last four modes, whether the centers of the corner elements keep their positions, instead
            of their outer edges.
        recompute_scale_factor: whether distances are computed from the sizes instead of `scale_factor`.
        antialias: for "bilinear" and "bicubic", whether elements of a smaller image are means of all that they cover.

    Returns:
        The resized array.

    Raises:
        ValueError: the arguments do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.interpolate(np.array([[[0.0, 1.0]]]), size=3, mode="linear", align_corners=True)
        array([[[0. , 0.5, 1. ]]])
    """
    x = array(input)
    count = len(x.shape) - 2
    if count not in (1, 2, 3):
        raise ValueError(
            f"interpolate takes an array with the axes (sample, channel, *space) of 1 to 3 axes of space, but got "
            f"{described(x)}{at_line(user_line())}"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError(f"interpolate takes either size or scale_factor{at_line(user_line())}")
    fitting = [name for name in MODES if _AXES_OF_MODE.get(name, count) == count]
    if mode not in fitting:
        raise ValueError(
            f"mode of interpolate for {described(x)} must be {', '.join(map(repr, fitting[:-1]))} or {fitting[-1]!r}, "
            f"not {mode!r}{at_line(user_line())}"
        )
    if align_corners is not None and mode not in _AXES_OF_MODE:
        raise ValueError(
            f"align_corners of interpolate applies to the modes {', '.join(map(repr, _AXES_OF_MODE))}, not to "
            f"{mode!r}: omit it{at_line(user_line())}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            f"antialias of interpolate applies to the modes 'bilinear' and 'bicubic', not to {mode!r}; 'area' gives "
            f"means of windows{at_line(user_line())}"
        )
    space = x.shape[2:]
    sizes, steps = _sizes_and_steps(x, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[count - 1](x, sizes)
    if mode in _AXES_OF_MODE and not is_inexact(x.dtype):
        x = x.astype(np.float64)
    for axis, (n, m, step) in enumerate(zip(space, sizes, steps, strict=True), 2):
        step = n / m if step is None else step
        if antialias:
            scale = step if not align_corners else (n - 1) / (m - 1) if m > 1 else 0.0
            weights = _covering_weights(n, m, scale, mode).astype(x.dtype)
            x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights, -1, axis)
            continue
        if mode not in _AXES_OF_MODE:
            shift = 0.5 if mode == "nearest-exact" else 0.0
            places = np.minimum(np.floor((np.arange(m) + shift) * step).astype(np.int64), n - 1)
            x = np.take(x, places, axis)
        elif mode == "bicubic":
            x = _mixed(x, axis, cubic_weights(_places(n, m, step, align_corners)))
        elif n != m:
            # As in torch, an axis that keeps its size stays as it is, whatever its scale_factor.
            exact = np.maximum(_places(n, m, step, align_corners), 0)
            below = np.minimum(np.floor(exact), n - 1)
            x = _mixed(x, axis, [(below, 1 - (exact - below)), (below + 1, exact - below)])
    return x


def _sizes_and_steps(
    x: Any, size: Any, scale_factor: Any, recompute_scale_factor: bool | None
) -> tuple[Shape, list[float | None]]:
    """The new sizes of the axes of space, and the ratios of old to new ones where these are given."""
    space, count = x.shape[2:], len(x.shape) - 2
    steps: list[float | None] = [None] * count
    if size is not None:
        return per_axis(size, count, "interpolate", "size"), steps
    factors = tuple(scale_factor) if isinstance(scale_factor, tuple | list) else (scale_factor,) * count
    if len(factors) != count:
        raise ValueError(
            f"scale_factor of interpolate must be a number, or one for each of the {count} axes of space, not "
            f"{scale_factor!r}{at_line(user_line())}"
        )
    sizes = tuple(math.floor(n * f) for n, f in zip(space, factors, strict=True))
    if min(sizes) < 1:
        raise ValueError(
            f"interpolate of {described(x)} with scale_factor {scale_factor!r} is empty: its sizes would be "
            f"{sizes}{at_line(user_line())}"
        )
    if not recompute_scale_factor:
        steps = [1 / f for f in factors]
    return sizes, steps


def _places(n: int, m: int, step: float, align_corners: bool | None) -> Any:
    """Positions on the old axis, of size `n`, of the elements of the new one, of size `m`."""
    if align_corners:
        return np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0.0)
    return (np.arange(m) + 0.5) * step - 0.5


def _covering_weights(n: int, m: int, scale: float, mode: str) -> np.ndarray[Any, Any]:
    """The share of each of `n` elements in each of `m` new ones, by a kernel as wide as a new element is.

    This is how Pillow resizes images, with the slope -1/2 in the cubic kernel.
    """
    width = max(scale, 1.0)
    support = width * (1 if mode == "bilinear" else 2)
    center = scale * (np.arange(m) + 0.5)
    first = np.maximum(np.trunc(center - support + 0.5), 0)
    last = np.minimum(np.trunc(center + support + 0.5), n)
    places = np.arange(n)[:, None]
    t = np.abs(places - center + 0.5) / width
    if mode == "bilinear":
        weights = np.maximum(1 - t, 0)
    else:
        near = (1.5 * t - 2.5) * t * t + 1
        weights = np.where(t < 1, near, np.where(t < 2, ((-0.5 * t + 2.5) * t - 4) * t + 2, 0))
    weights = np.where((places >= first) & (places < last), weights, 0)
    return weights / np.sum(weights, axis=0)


def cubic_weights(exact: Any) -> list[tuple[Any, Any]]:
    """The four neighbors of each position and their weights, by the kernel of Keys (1981) with the usual slope.

    The source is R. G. Keys: Cubic convolution interpolation for digital image processing.
    """
    slope, below = -0.75, np.floor(exact)
    share = exact - below

    def near(t: Any) -> Any:
        return ((slope + 2) * t - (slope + 3)) * t * t + 1

    def far(t: Any) -> Any:
        return ((slope * t - 5 * slope) * t + 8 * slope) * t - 4 * slope

    weights = (far(share + 1), near(share), near(1 - share), far(2 - share))
    return [(below + offset, weight) for offset, weight in zip((-1, 0, 1, 2), weights, strict=True)]


def _mixed(x: Any, axis: int, parts: list[tuple[Any, Any]]) -> Any:
    """Weighted sums of elements along an axis; positions beyond the ends stand for the edge elements."""
    total: Any = None
    for places, weights in parts:
        chosen = np.take(x, np.clip(places, 0, x.shape[axis] - 1).astype(np.int64), axis)
        term = chosen * weights.astype(x.dtype).reshape(-1, *(1,) * (len(x.shape) - axis - 1))
        total = term if total is None else total + term
    return total


@functional
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Rearrange channels to pixels: (..., C * r**2, H, W) becomes (..., C, H * r, W * r).

    Args:
        input: array of shape (..., C * r**2, H, W).
        upscale_factor: the factor r.

    Returns:
        An array of shape (..., C, H * r, W * r).

    Raises:
        ValueError: the number of channels is not a multiple of r**2.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.pixel_shuffle(np.arange(4.0).reshape(4, 1, 1), 2)
        array([[[0., 1.],
                [2., 3.]]])
    """
    x, r = array(input), upscale_factor
    if len(x.shape) < 3 or x.shape[-3] % (r * r):
        raise ValueError(
            f"pixel_shuffle takes (..., channel, height, width) with channels in multiples of {r} ** 2, but got "
            f"{described(x)}{at_line(user_line())}"
        )
    *lead, c, h, w = x.shape
    parts = np.moveaxis(x.reshape(*lead, c // (r * r), r, r, h, w), (-4, -3), (-3, -1))
    return parts.reshape(*lead, c // (r * r), h * r, w * r)


@functional
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """The inverse of `pixel_shuffle`: (..., C, H * r, W * r) becomes (..., C * r**2, H, W).

    Args:
        input: array of shape (..., C, H * r, W * r).
        downscale_factor: the factor r.

    Returns:
        An array of shape (..., C * r**2, H, W).

    Raises:
        ValueError: height or width is not a multiple of r.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.pixel_unshuffle(np.arange(4.0).reshape(1, 2, 2), 2).ravel()
        array([0., 1., 2., 3.])
    """
    x, r = array(input), downscale_factor
    if len(x.shape) < 3 or x.shape[-1] % r or x.shape[-2] % r:
        raise ValueError(
            f"pixel_unshuffle takes (..., channel, height, width) with height and width in multiples of {r}, but got "
            f"{described(x)}{at_line(user_line())}"
        )
    *lead, c, h, w = x.shape
    parts = np.moveaxis(x.reshape(*lead, c, h // r, r, w // r, r), (-3, -1), (-4, -3))
    return parts.reshape(*lead, c * r * r, h // r, w // r)


@functional
def channel_shuffle(input: Any, groups: int) -> Any:
    """Take the channels of `groups` groups in turn: channel k of group g becomes channel `k * groups + g`.

    Args:
        input: array of shape (N, C, ...).
        groups: number of groups of successive channels; must divide C.

    Returns:
        An array of the same shape.

    Raises:
        ValueError: the number of channels is not a multiple of `groups`.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.channel_shuffle(np.arange(6.0).reshape(1, 6, 1), 2).ravel()
        array([0., 3., 1., 4., 2., 5.])
    """
    x = array(input)
    if len(x.shape) < 3 or groups < 1 or x.shape[1] % groups:
        raise ValueError(
            f"channel_shuffle takes (sample, channel, *space) with channels in multiples of groups={groups}, but got "
            f"{described(x)}{at_line(user_line())}"
        )
    count, channels, *space = x.shape
    parts = x.reshape(count, groups, channels // groups, *space)
    return np.swapaxes(parts, 1, 2).reshape(tuple(x.shape))


@functional
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """The same as `interpolate`, under its former name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@functional
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` with mode "nearest"."""
    return interpolate(input, size, scale_factor)


@functional
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` of images with mode "bilinear" and `align_corners=True`."""
    return interpolate(input, size, scale_factor, "bilinear", True)
