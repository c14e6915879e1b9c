"""Shared by the layers: sizes for several axes, initial values, and checks of inputs."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from .. import init
from ..cells.kinds import Parameter
from ..functional.arguments import array, described, shape_of
from ..modules.module import Module


def sizes(x: int | Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """A tuple of `count` integers, from one integer for all axes or a sequence.

    Raises:
        ValueError: the sequence has another length.
    """
    if hasattr(x, "__index__"):
        return (operator.index(x),) * count
    found = tuple(map(operator.index, x))
    if len(found) != count:
        raise ValueError(f"{what} must be an integer or {count} of them, not {x!r}{at_line(user_line())}")
    return found


def empty(shape: tuple[int, ...], dtype: Any) -> Parameter:
    """An uninitialized parameter; None for the dtype is float32.

    Raises:
        ValueError: a size is negative.
    """
    if any(n < 0 for n in shape):
        raise ValueError(f"a parameter cannot have the shape {shape} with a negative size{at_line(user_line())}")
    return Parameter(np.empty(shape, np.float32 if dtype is None else dtype))


def put(module: Module, device: Any) -> None:
    """Move a new layer to a device, as `Module.to` does; None leaves it where it is."""
    if device is not None:
        module.to(device)


def fill_uniformly(weight: Parameter, bias: Parameter | None) -> None:
    """Initialize weight and bias of a layer uniformly between ±1 / sqrt(fan_in)."""
    # This is what torch writes as kaiming_uniform_(weight, a=sqrt(5)).
    inputs = math.prod(weight.shape[1:])
    bound = 1 / math.sqrt(inputs) if inputs else 0.0
    for cell in (weight, bias):
        if cell is not None:
            init.uniform_(cell, -bound, bound)


def positive(**given: int) -> None:
    """Raise unless all numbers are positive.

    Raises:
        ValueError: one is not.
    """
    for name, x in given.items():
        if x < 1:
            raise ValueError(f"{name} must be at least 1, not {x}{at_line(user_line())}")


def shown(module: Module) -> str:
    """The name of a module in messages."""
    return f"{type(module).__name__}({module.extra_repr()})"


def _got(input: Any) -> str:
    if input is None:
        return "None; perhaps the forward code that computed it has no return statement"
    return described(array(input))


def expect_last_axis(module: Module, input: Any, size: int, name: str = "inputs") -> None:
    """Raise unless the last axis of an input has a certain size.

    Raises:
        ValueError: it has not.
    """
    shape = shape_of(input)
    if not shape or shape[-1] != size:
        raise ValueError(
            f"{shown(module)} expects {name} whose last axis has {size} elements, got {_got(input)}"
            + at_line(user_line())
        )


def expect_channels(module: Module, input: Any, channels: int | None, layouts: Sequence[str]) -> None:
    """Raise unless an input has one of several layouts, and a certain number of channels.

    Args:
        module: the layer, for the message.
        input: array.
        channels: size of the axis C, or None for any.
        layouts: such as "(N, C, L)" and "(C, L)", with different numbers of axes.

    Raises:
        ValueError: it has not.
    """
    shape = shape_of(input)
    for layout in layouts:
        axes = layout.strip("()").split(", ")
        if len(axes) == len(shape) and (channels is None or shape[axes.index("C")] == channels):
            return
    counted = "" if channels is None else f" with C = {channels} channels"
    raise ValueError(
        f"{shown(module)} expects inputs of shape {' or '.join(layouts)}{counted}, got {_got(input)}"
        + at_line(user_line())
    )
