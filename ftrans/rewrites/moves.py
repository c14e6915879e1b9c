"""Rewrites of what moves elements: parts of parts, parts of what was joined, and elements at indices in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.program import Const, Params
from ..core.trace import Tracer
from ..core.types import Shape
from ..ops.elementwise import add
from ..ops.literals import iota
from ..ops.parts import concatenate, slice_
from ..ops.slices import add_slice, set_slice
from .rule import Operands, made_by

# What is joined of more parts than this is left as it is.
_MOST_PARTS = 64


class Part(NamedTuple):
    """A slice of an array, as `ops.parts.slice_` takes it."""

    source: Tracer
    start: Shape
    limit: Shape
    strides: Shape

    def record(self) -> Tracer:
        """The slice, or the array itself if it is all of it."""
        whole = (0,) * self.source.ndim, self.source.shape, (1,) * self.source.ndim
        return self.source if self[1:] == whole else slice_(self.source, **self.params)

    @property
    def params(self) -> dict[str, Shape]:
        """The parameters of a slice."""
        return {"start": self.start, "limit": self.limit, "strides": self.strides}

    def of_source(self) -> Part:
        """The same elements as a part of what their array is itself a part of."""
        found = self
        while (inner := made_by(slice_, found.source)) is not None:
            (x,), outer = inner[0], inner[1]
            strides = tuple(a * b for a, b in zip(outer["strides"], found.strides, strict=True))
            start = tuple(a + s * b for a, s, b in zip(outer["start"], outer["strides"], found.start, strict=True))
            # The last element is the same; behind it nothing is read.
            limit = tuple(
                min(n, a + s * b)
                for n, a, s, b in zip(outer["limit"], outer["start"], outer["strides"], found.limit, strict=True)
            )
            found = Part(x, tuple(min(a, b) for a, b in zip(start, limit, strict=True)), limit, strides)
        return found

    def along(self, axis: int, start: int, limit: int, source: Tracer) -> Part:
        """The part of another array that has another range along one axis."""
        return Part(
            source,
            (*self.start[:axis], start, *self.start[axis + 1 :]),
            (*self.limit[:axis], limit, *self.limit[axis + 1 :]),
            self.strides,
        )


def part_of(x: Tracer) -> Part:
    """An array as a part of another one, or of itself."""
    return Part(x, (0,) * x.ndim, x.shape, (1,) * x.ndim).of_source()


def pieces(part: Part, axis: int) -> list[Part]:
    """A part as parts of the arrays that its array was joined of along an axis, in their order."""
    part = part.of_source()
    joined = made_by(concatenate, part.source)
    if joined is None or joined[1]["axis"] != axis or part.strides[axis] != 1:
        return [part]
    found, begin = [], 0
    for x in joined[0]:
        size = x.shape[axis]
        first, last = max(part.start[axis] - begin, 0), min(part.limit[axis] - begin, size)
        if first < last:
            found += pieces(part.along(axis, first, last, x), axis)
        begin += size
    return found


def slice_of_part(operands: Operands, params: Params) -> Tracer | None:
    (x,) = operands.values
    asked = Part(x, **params)
    if 0 in slice_.type_rule(x.type, **params).shape:
        return None
    found = _within_one(asked.of_source())
    return None if found.source is x else found.record()


def _within_one(part: Part) -> Part:
    """A part as a part of the one array that holds all of it, where its array was joined of several."""
    joined = made_by(concatenate, part.source)
    if joined is None:
        return part
    axis, begin = joined[1]["axis"], 0
    # The last element that is read, not the limit, decides.
    last = part.start[axis] + (part.limit[axis] - part.start[axis] - 1) // part.strides[axis] * part.strides[axis]
    for x in joined[0]:
        end = begin + x.shape[axis]
        if begin <= part.start[axis] and last < end:
            inside = part.along(axis, part.start[axis] - begin, min(part.limit[axis], end) - begin, x)
            return _within_one(inside.of_source())
        begin = end
    return part


def joined_parts(operands: Operands, params: Params) -> Tracer | None:
    axis, given = params["axis"], operands.values
    if len(given) > _MOST_PARTS:
        return None
    found: list[Part] = []
    for x in given:
        for piece in pieces(part_of(x), axis):
            before = found[-1] if found else None
            if before is not None and _is_continued(before, piece, axis):
                found[-1] = before.along(axis, before.start[axis], piece.limit[axis], before.source)
            elif piece.limit[axis] > piece.start[axis]:
                found.append(piece)
    if not found or len(found) > _MOST_PARTS:
        return None
    arrays = [piece.record() for piece in found]
    if len(arrays) == len(given) and all(a.atom is b.atom for a, b in zip(arrays, given, strict=True)):
        return None
    return arrays[0] if len(arrays) == 1 else concatenate(*arrays, axis=axis)


def _is_continued(before: Part, after: Part, axis: int) -> bool:
    """Whether one part ends where the other begins, in the same array, and they are alike along all other axes."""
    return (
        before.source.atom is after.source.atom
        and before.strides == after.strides
        and before.strides[axis] == 1
        and before.limit[axis] == after.start[axis]
        and before.along(axis, 0, 0, before.source)[1:] == after.along(axis, 0, 0, after.source)[1:]
    )


# Elements at indices


def read_in_a_row(operands: Operands, params: Params) -> Tracer | None:
    x, *indices = operands.values
    part = _in_a_row(x, indices, params["axis"])
    return None if part is None else _within_one(part.of_source()).record()


def added_in_a_row(operands: Operands, params: Params) -> Tracer | None:
    x, updates, *indices = operands.values
    part = _in_a_row(x, indices, params["axis"])
    if part is None:
        return None
    return add(x, updates) if updates.shape == x.shape else add_slice(x, updates, **part.params)


def set_in_a_row(operands: Operands, params: Params) -> Tracer | None:
    x, updates, *indices = operands.values
    part = _in_a_row(x, indices, params["axis"])
    if part is None:
        return None
    return updates if updates.shape == x.shape else set_slice(x, updates, **part.params)


def _in_a_row(x: Tracer, indices: Sequence[Tracer], axis: int) -> Part | None:
    """The slice that known indices select, each of its own axis, with equal steps."""
    shape = indices[0].shape
    if len(shape) != len(indices) or 0 in shape:
        return None
    start, limit, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for place, index in enumerate(indices):
        progression = _progression(index, place)
        if progression is None:
            return None
        first, step, count = progression
        size = x.shape[axis + place]
        first += size if first < 0 else 0
        if not 0 <= first < size or first + step * (count - 1) >= size:
            return None
        start[axis + place], strides[axis + place] = first, step
        limit[axis + place] = first + step * (count - 1) + 1
    return Part(x, tuple(start), tuple(limit), tuple(strides))


def _progression(index: Tracer, axis: int) -> tuple[int, int, int] | None:
    """First element, step (at least 1) and number of an array that counts upwards along one axis alone."""
    counted = made_by(iota, index)
    if counted is not None:
        return (0, 1, index.shape[axis]) if counted[1]["axis"] == axis else None
    if index.ndim != 1 or not isinstance(index.atom, Const):
        return None
    values: Any = index.atom.array()
    first, count = int(values[0]), len(values)
    step = int(values[1]) - first if count > 1 else 1
    if step < 1 or (first < 0 <= int(values[-1])) or int(values[-1]) != first + step * (count - 1):
        return None
    return (first, step, count) if np.array_equal(values, np.arange(first, first + step * count, step)) else None
