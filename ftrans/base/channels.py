"""Channels last: the order (sample, *space, channel) of axes, in which XLA on a CPU convolves fastest.

Programs have the order (sample, channel, *space). Where they are lowered to XLA for a CPU, values may be kept in the
other one; these functions say where axes are in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def channels_last(values: Sequence[Any]) -> tuple[Any, ...]:
    """What is said of each axis, for the axes with channels last: also the axes for a transpose to that order."""
    return (values[0], *values[2:], values[1])


def channels_second(values: Sequence[Any]) -> tuple[Any, ...]:
    """The reverse: what is said of axes with channels last, for the order of the program."""
    return (values[0], values[-1], *values[1:-1])


def axis_with_channels_last(axis: int, ndim: int) -> int:
    """Where an axis is when channels are last."""
    return ndim - 1 if axis == 1 else axis - (axis > 1)
