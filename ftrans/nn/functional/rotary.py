"""Rotary embeddings: positions of queries and keys as rotations (Su et al., 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import is_inexact
from .arguments import array, described
from .entry import functional

__all__ = ["rotary_embedding"]


@functional
def rotary_embedding(
    input: Any, positions: Any = None, base: float = 10000.0, interleaved: bool = False, dim: int | None = None
) -> Any:
    """Rotate pairs of elements of queries or keys by angles in proportion to their positions (Su et al., 2021).

    Products of rotated queries and keys depend on differences of positions only.  Pair i of d / 2 is rotated by
    `position * base ** (-2 * i / d)`.

    Args:
        input: array of shape (..., L, E), such as heads (N, H, L, E).
        positions: numbers that broadcast to (..., L); 0 to L - 1 by default.  When a sequence is decoded step by step,
            they begin at the length so far.
        base: the angles of the last pairs are about `base` times smaller than those of the first.
        interleaved: whether a pair is two neighbors, as in GPT-J, instead of elements i and i + d / 2, as in Llama.
        dim: how many elements are rotated, the first d of E; all by default.

    Returns:
        An array of the same shape.

    Raises:
        ValueError: the number of rotated elements is odd or greater than E, or positions do not broadcast.

    Example:
        >>> import ftrans.nn.functional as F
        >>> F.rotary_embedding(np.array([[1.0, 0.0], [1.0, 0.0]])).round(4)
        array([[1.    , 0.    ],
               [0.5403, 0.8415]])
    """
    x = array(input)
    x = x if is_inexact(x.dtype) else x.astype(np.float64)
    size = (x.shape[-1] if dim is None else dim) if len(x.shape) > 1 else 0
    if size < 2 or size % 2 or size > x.shape[-1]:
        raise ValueError(
            f"rotary_embedding takes (..., L, E) and rotates an even number of the E elements, not {size} of "
            f"{described(x)}{at_line(user_line())}"
        )
    places = np.arange(x.shape[-2]) if positions is None else array(positions)
    try:
        np.broadcast_shapes(tuple(places.shape), tuple(x.shape[:-1]))
    except ValueError:
        raise ValueError(
            f"positions of rotary_embedding must broadcast to {tuple(x.shape[:-1])}, not {described(places)}"
            + at_line(user_line())
        ) from None
    # In double precision: of a large position, float32 would leave few digits to the angle.
    angles = places[..., None] * base ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    if interleaved:
        first, second = x[..., 0:size:2], x[..., 1:size:2]
    else:
        first, second = x[..., : size // 2], x[..., size // 2 : size]
    turned = [first * cos - second * sin, second * cos + first * sin]
    if interleaved:
        rotated = np.reshape(np.stack(turned, axis=-1), (*x.shape[:-1], size))
    else:
        rotated = np.concatenate(turned, axis=-1)
    return rotated if size == x.shape[-1] else np.concatenate([rotated, x[..., size:]], axis=-1)
