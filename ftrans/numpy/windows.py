"""What basic indices select: windows of slices, and places that integers say, some of which may be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import Shape
from ..ops.indexing import read_at, scatter_set
from ..ops.literals import full, splat
from ..ops.parts import slice_
from ..ops.shapes import reverse
from ..ops.slices import set_slice, written
from .promotion import builder, reshaped


class Window:
    """What a basic index selects of an array of one shape.

    Attributes:
        params: parameters of the slice, with positive strides.
        flipped: axes that are reversed after it.
        inner: shape of the slice.
        shape: shape of the result: without the axes of integers, with those of None.
        is_whole: whether every element is selected.
        is_element: whether NumPy gives one number instead of a view.
    """

    __slots__ = ("flipped", "inner", "is_element", "is_whole", "params", "shape")

    def __init__(self, base: Shape, bounds: Sequence[tuple[int, int, int]], shape: Shape, is_element: bool) -> None:
        ranges = [range(*b) for b in bounds]
        lows = [(r[-1] if r.step < 0 else r[0]) if r else 0 for r in ranges]
        highs = [(r[0] if r.step < 0 else r[-1]) + 1 if r else 0 for r in ranges]
        self.flipped = tuple(i for i, r in enumerate(ranges) if r.step < 0 and len(r) > 1)
        self.inner = tuple(len(r) for r in ranges)
        self.shape = shape
        self.is_whole = self.inner == base
        self.is_element = is_element
        self.params: dict[str, Shape] = {
            "start": tuple(lows),
            "limit": tuple(highs),
            "strides": tuple(abs(r.step) if len(r) > 1 else 1 for r in ranges),
        }

    def read(self, base: Tracer) -> Tracer:
        """The elements that are selected."""
        x, line = base, user_line()
        if not self.is_whole:
            value = splat(x)
            if value is not None:
                return full(self.shape, value, x.dtype)
            found = written(x, self.params)
            x = builder(x).record(slice_, (x,), self.params, line)[0] if found is None else found
        if self.flipped:
            x = reverse(x, axes=self.flipped)
        return x if x.atom.type.shape == self.shape else reshaped(x, self.shape, line)

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        """The whole array, after `new` was assigned to what is selected."""
        line = user_line()
        new = reshaped(new, self.inner, line)
        if self.flipped:
            new = reverse(new, axes=self.flipped)
        return new if self.is_whole else builder(base).record(set_slice, (base, new), self.params, line)[0]

    def numpy(self, base: Any) -> Any:
        """The same view of a NumPy array."""
        view = base[tuple(map(slice, *self.params.values()))] if self.inner else base
        return np.flip(view, self.flipped).reshape(self.shape)

    def same(self, other: Any) -> bool:
        """Whether another window selects the same elements in the same form."""
        return isinstance(other, Window) and (other.params, other.flipped, other.shape) == (
            self.params,
            self.flipped,
            self.shape,
        )


class At:
    """What integers select, some of them traced: they are for `axis` and following ones, which the result lacks."""

    __slots__ = ("axis", "indices")

    def __init__(self, axis: int, indices: Sequence[Any]) -> None:
        self.axis = axis
        self.indices = indices

    def read(self, base: Tracer) -> Tracer:
        """The elements that are selected."""
        return read_at(base, *self.indices, axis=self.axis)

    def write(self, base: Tracer, new: Tracer) -> Tracer:
        """The whole array, after `new` was assigned to what is selected."""
        return scatter_set(base, new, *self.indices, axis=self.axis)

    def numpy(self, base: Any) -> Any:
        """A view of a NumPy array that lies in memory as this one."""
        return base[(slice(None),) * self.axis + (0,) * len(self.indices)]

    def same(self, other: Any) -> bool:
        """Whether another one selects the same elements."""
        return isinstance(other, At) and self._key() == other._key()

    def _key(self) -> tuple[Any, ...]:
        return self.axis, *(i.atom if type(i) is Tracer else int(i) for i in self.indices)


def index_error(message: str) -> IndexError:
    return IndexError(message + at_line(user_line()))


def wrapped(index: int, axis: int, size: int) -> int:
    if not -size <= index < size:
        raise index_error(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index % size
