"""Shared by functions of images: a size for each axis of space, and images without a batch axis."""

from __future__ import annotations

import operator
from typing import Any

from ...base.source import at_line, user_line
from ...core.types import Shape
from .arguments import described

SPACE = {1: "length", 2: "height, width", 3: "depth, height, width"}


def per_axis(value: Any, count: int, what: str, name: str, least: int = 1) -> Shape:
    """A tuple with one integer for each axis of space, from an integer for all or a sequence.

    Raises:
        TypeError: an entry is not an integer.
        ValueError: there are not as many as axes, or one is too small.
    """
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    try:
        sizes = tuple([operator.index(v) for v in values])
    except TypeError:
        raise TypeError(
            f"{name} of {what} must be an integer, or {count} of them, not {value!r}{at_line(user_line())}"
        ) from None
    if len(sizes) == 1:
        sizes *= count
    if len(sizes) != count:
        raise ValueError(
            f"{name} of {what} must be an integer, or one for each of the {count} axes of space, not {value!r}"
            + at_line(user_line())
        )
    if min(sizes) < least:
        raise ValueError(f"{name} of {what} must be at least {least}, not {value!r}{at_line(user_line())}")
    return sizes


def check_image(x: Any, count: int, what: str, name: str = "input") -> None:
    """Raise unless `x` has the axes (sample, channel, *space) or (channel, *space).

    Raises:
        ValueError: it has not.
    """
    if len(x.shape) not in (count + 1, count + 2):
        axes = f"channel, {SPACE[count]}"
        raise ValueError(
            f"{what} takes {name} with the axes (sample, {axes}), or ({axes}) for one sample, but got "
            f"{described(x)} with {len(x.shape)} axes{at_line(user_line())}"
        )


def check_fits(x: Any, space: Shape, window: Shape, what: str, name: str) -> None:
    """Raise unless a window fits into the padded image.

    Raises:
        ValueError: it does not.
    """
    if any(n < k for n, k in zip(space, window, strict=True)):
        raise ValueError(
            f"{name} of {what} spans {' x '.join(map(str, window))} elements, more than the "
            f"{' x '.join(map(str, space))} of the padded input {described(x)}; use more padding, or a smaller one"
            + at_line(user_line())
        )
