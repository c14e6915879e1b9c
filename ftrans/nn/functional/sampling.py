"""Sampling of images and volumes at given points: spatial transformers (Jaderberg et al., 2015)."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

import numpy as np

from ...base.narrow_products import exact_products
from ...base.source import at_line, user_line
from ...core.types import is_inexact
from .arguments import array, described
from .entry import functional
from .images import cubic_weights

__all__ = ["affine_grid", "grid_sample"]

MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")


@functional
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """The points that an affine map sends the elements of images or volumes to, for `grid_sample`.

    Args:
        theta: matrices of shape (N, 2, 3) for images, (N, 3, 4) for volumes.
        size: shape (N, C, H, W) or (N, C, D, H, W) of the result of `grid_sample`.
        align_corners: whether -1 and 1 are the centers of the corner elements, instead of their outer edges; False by
            default.

    Returns:
        Points of shape (N, H, W, 2) or (N, D, H, W, 3), the coordinate of the last axis first.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.affine_grid(np.eye(2, 3)[None], (1, 1, 1, 2), align_corners=True)
        array([[[[-1.,  0.],
                 [ 1.,  0.]]]])
    """
    theta, sizes = array(theta), tuple(map(operator.index, size))
    count = len(sizes) - 2
    if count not in (2, 3) or tuple(theta.shape) != (sizes[0], count, count + 1) or min(sizes) < 1:
        raise ValueError(
            "affine_grid takes theta (N, 2, 3) with the size (N, C, H, W), or theta (N, 3, 4) with the size (N, C, D, "
            f"H, W), not {described(theta)} with {tuple(sizes)}{at_line(user_line())}"
        )
    if not is_inexact(theta.dtype):
        theta = theta.astype(np.float64)
    space = sizes[2:]
    axes = []
    for n in space:
        places = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(places if align_corners else places * ((n - 1) / n))
    points = [*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(space)]
    base = np.reshape(np.stack(points, axis=-1), (-1, count + 1)).astype(theta.dtype)
    with exact_products():
        return np.reshape(base @ np.swapaxes(theta, 1, 2), (sizes[0], *space, count))


@functional
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """Values of images or volumes at given points, interpolated between elements.

    Args:
        input: array of shape (N, C, H, W) or (N, C, D, H, W).
        grid: points of shape (N, H', W', 2) or (N, D', H', W', 3): coordinates from -1 to 1, that of the last axis of
            `input` first.
        mode: "bilinear" (trilinear for volumes), "nearest", or for images "bicubic" (Keys, 1981).
        padding_mode: what is beyond the edges: "zeros", "border" for the edge elements, or "reflection" for the mirror
            image.
        align_corners: whether -1 and 1 are the centers of the corner elements, instead of their outer edges; False by
            default.

    Returns:
        An array of shape (N, C, H', W') or (N, C, D', H', W').

    Raises:
        ValueError: shapes do not match, or a mode is unknown.

    Example:
        >>> import ftrans.nn.functional as F
        >>> image = np.array([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> F.grid_sample(image, np.array([[[[0.0, 0.0], [1.0, -1.0]]]]), align_corners=True)
        array([[[[2.5, 2. ]]]])
    """
    x, grid = array(input), array(grid)
    count = len(x.shape) - 2
    if (
        count not in (2, 3)
        or tuple(grid.shape[:1] + grid.shape[-1:]) != (x.shape[0], count)
        or len(grid.shape) != len(x.shape)
    ):
        raise ValueError(
            "grid_sample takes input (N, C, H, W) with grid (N, H', W', 2), or input (N, C, D, H, W) with grid (N, D', "
            f"H', W', 3), not {described(x)} with {described(grid)}{at_line(user_line())}"
        )
    for name, given, allowed in (("mode", mode, MODES), ("padding_mode", padding_mode, PADDING_MODES)):
        if given not in allowed or (given == "bicubic" and count == 3):
            raise ValueError(
                f'{name} of grid_sample must be one of {", ".join(map(repr, allowed))}, and "bicubic" is for images '
                f"only, not {given!r} for {described(x)}{at_line(user_line())}"
            )
    x = x if is_inexact(x.dtype) else x.astype(np.float64)
    space = tuple(x.shape[2:])
    align = bool(align_corners)
    exact = [_unscaled(grid[..., count - 1 - axis], n, align) for axis, n in enumerate(space)]
    continued = functools.partial(_continued, padding_mode=padding_mode, align=align)
    if mode == "bicubic":
        # The four neighbors on each axis are continued one by one.
        parts = [[(continued(p, n), w) for p, w in cubic_weights(c)] for c, n in zip(exact, space, strict=True)]
    else:
        parts = [_neighbors(continued(c, n), mode) for c, n in zip(exact, space, strict=True)]
    total: Any = 0
    for chosen in itertools.product(*parts):
        weight = functools.reduce(operator.mul, [w for _, w in chosen])
        total = total + _elements(x, [place for place, _ in chosen], weight)
    return total


def _unscaled(coordinate: Any, n: int, align: bool) -> Any:
    """Positions on an axis of `n` elements of coordinates from -1 to 1."""
    return (coordinate + 1) * ((n - 1) / 2) if align else ((coordinate + 1) * n - 1) / 2


def _continued(place: Any, n: int, padding_mode: str, align: bool) -> Any:
    """Positions that stand for those beyond the ends of an axis."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, float(n - 1)) if align else (-0.5, float(n))
        if span == 0:
            return 0 * place
        far = np.where(place < low, low - place, place - low)
        turns = np.floor(far / span)
        rest = far - turns * span
        place = np.where(turns % 2 == 0, rest, span - rest) + low
    # As in torch, derivatives are 0 at the very ends.
    return np.where(place <= 0, 0, np.where(place >= n - 1, n - 1, place))


def _neighbors(place: Any, mode: str) -> list[tuple[Any, Any]]:
    """The elements around positions on an axis, and their weights."""
    if mode == "nearest":
        return [(np.round(place), np.ones((), place.dtype))]
    below = np.floor(place)
    share = place - below
    return [(below, 1 - share), (below + 1, share)]


def _elements(x: Any, places: list[Any], weight: Any) -> Any:
    """The weighted elements at places on each axis of space, 0 where they are beyond its ends."""
    inside: Any = True
    flat: Any = 0
    for n, place in zip(x.shape[2:], places, strict=True):
        inside = inside & (place >= 0) & (place <= n - 1)
        flat = flat * n + np.where((place >= 0) & (place <= n - 1), place, 0).astype(np.int64)
    shape = (x.shape[0], 1, *flat.shape[1:])
    found = np.take_along_axis(np.reshape(x, (*x.shape[:2], -1)), np.reshape(flat, (x.shape[0], 1, -1)), axis=-1)
    values = np.reshape(found, (*x.shape[:2], *flat.shape[1:]))
    return np.where(np.reshape(inside, shape), values, 0) * np.expand_dims(weight, 1 if weight.shape else 0)
