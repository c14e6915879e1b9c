"""Rewrites of what moves elements: parts of parts, parts of what was joined, and elements at indices in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.program import Const, Params
from ..core.trace import Tracer
from ..core.types import Shape, is_inexact
from ..ops.broadcast import broadcast
from ..ops.elementwise import add, neg, sub
from ..ops.indexing import gather, scatter_add
from ..ops.literals import iota
from ..ops.parts import concatenate, slice_
from ..ops.shapes import reshape, reverse
from ..ops.slices import add_slice, set_slice
from .rule import Operands, made_by

# What is joined of more parts than this is left as it is.
_MOST_PARTS = 64
# Known indices are read as slices where they are so few runs, each of so many indices on average.
_MOST_RUNS, _LEAST_RUN = 4, 4


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


# Parts that are added to


def set_to_sum(operands: Operands, params: Params) -> Tracer | None:
    x, updates = operands.values
    added, subtracted = made_by(add, updates), made_by(sub, updates)
    if added is not None:
        terms, _ = added
        for old, new in (terms, terms[::-1]):
            if _is_part(old, x, params):
                return add_slice(x, new, **params)
    if subtracted is not None and is_inexact(x.dtype):
        (old, new), _ = subtracted
        if _is_part(old, x, params):
            return add_slice(x, neg(new), **params)
    return None


def added_side_by_side(operands: Operands, params: Params) -> Tracer | None:
    x, updates = operands.values
    inner = made_by(add_slice, x)
    if inner is None or not operands.only_user_of(x):
        return None
    (source, others), first = inner
    one, other = Part(source, **first), Part(source, **params)
    apart = [i for i in range(x.ndim) if (one.start[i], one.limit[i]) != (other.start[i], other.limit[i])]
    if len(apart) != 1:
        return None
    if _is_continued(one, other, apart[0]):
        joined = concatenate(others, updates, axis=apart[0])
    elif _is_continued(other, one, apart[0]):
        joined = concatenate(updates, others, axis=apart[0])
        one, other = other, one
    else:
        return None
    both = one.along(apart[0], one.start[apart[0]], other.limit[apart[0]], source)
    return add(source, joined) if joined.shape == source.shape else add_slice(source, joined, **both.params)


def set_to_sum_at_indices(operands: Operands, params: Params) -> Tracer | None:
    x, updates, *indices = operands.values
    sum_of = made_by(add, updates)
    if sum_of is None or not (params["unique"] or indices[0].shape == ()):
        return None
    terms, _ = sum_of
    for old, new in (terms, terms[::-1]):
        read = made_by(gather, old)
        if read is None or read[1]["axis"] != params["axis"]:
            continue
        if [a.atom for a in read[0]] == [x.atom, *[i.atom for i in indices]]:
            return scatter_add(x, new, *indices, axis=params["axis"])
    return None


def _is_part(old: Tracer, x: Tracer, params: Params) -> bool:
    """Whether one value is a slice of another."""
    made = made_by(slice_, old)
    return made is not None and made[0][0].atom is x.atom and made[1] == params


# Elements at indices


class Run(NamedTuple):
    """Known indices with equal steps: `first`, `first + step`, ..., `size` of them."""

    first: int
    step: int
    size: int


def read_in_a_row(operands: Operands, params: Params) -> Tracer | None:
    x, *indices = operands.values
    part = _in_a_row(x, indices, params["axis"])
    return None if part is None else _within_one(part.of_source()).record()


def read_in_runs(operands: Operands, params: Params) -> Tracer | None:
    x, *indices = operands.values
    axis = params["axis"]
    if len(indices) > 1 or indices[0].ndim != 1 or not isinstance(indices[0].atom, Const):
        return None
    runs = _runs(np.asarray(indices[0].atom.array()), x.shape[axis])
    if runs is None or sum(run.size for run in runs) < _LEAST_RUN * len(runs):
        return None
    return concatenate(*[_run_of(x, run, axis) for run in runs], axis=axis)


def _run_of(x: Tracer, run: Run, axis: int) -> Tracer:
    """The elements of `x` at a run of indices along an axis."""
    ends = sorted((run.first, run.first + run.step * (run.size - 1)))
    whole = Part(x, (0,) * x.ndim, x.shape, (1,) * x.ndim)
    strides = tuple(max(abs(run.step), 1) if i == axis else 1 for i in range(x.ndim))
    found = whole.along(axis, ends[0], ends[1] + 1, x)._replace(strides=strides).record()
    if run.step == 0 and run.size > 1:
        kept = tuple(i for i in range(x.ndim) if i != axis)
        shape = tuple(run.size if i == axis else n for i, n in enumerate(x.shape))
        return broadcast(reshape(found, shape=tuple(x.shape[i] for i in kept)), shape=shape, dims=kept)
    return reverse(found, axes=(axis,)) if run.step < 0 else found


def _runs(values: Any, size: int) -> list[Run] | None:
    """Indices of an axis of a size as few runs; None if they are many, or not in range."""
    if len(values) < _LEAST_RUN or values.min() < -size or values.max() >= size:
        return None
    values = np.where(values < 0, values + size, values)
    steps = np.diff(values)
    found: list[Run] = []
    begin = 0
    while begin < len(values):
        if len(found) == _MOST_RUNS:
            return None
        rest = steps[begin:]
        other = np.flatnonzero(rest != rest[:1])
        count = 1 + (int(other[0]) if other.size else len(rest))
        found.append(Run(int(values[begin]), int(rest[0]) if count > 1 else 1, count))
        begin += count
    return found


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
        run = _counted(index, place)
        if run is None:
            return None
        size = x.shape[axis + place]
        first = run.first + (size if run.first < 0 else 0)
        last = first + run.step * (run.size - 1)
        if not 0 <= first <= last < size:
            return None
        start[axis + place], limit[axis + place], strides[axis + place] = first, last + 1, run.step
    return Part(x, tuple(start), tuple(limit), tuple(strides))


def _counted(index: Tracer, axis: int) -> Run | None:
    """An array of indices as a run, if it counts upwards along one axis and is the same along all others."""
    counted = made_by(iota, index)
    if counted is not None:
        return Run(0, 1, index.shape[axis]) if counted[1]["axis"] == axis else None
    if not isinstance(index.atom, Const):
        return None
    values: Any = index.atom.array()
    line = values[(*(0,) * axis, slice(None), *(0,) * (index.ndim - axis - 1))]
    first, count = int(line[0]), len(line)
    step = int(line[1]) - first if count > 1 else 1
    if step < 1 or first < 0 <= first + step * (count - 1):
        return None
    wanted = np.arange(first, first + step * count, step).reshape((count, *(1,) * (index.ndim - axis - 1)))
    return Run(first, step, count) if (values == wanted).all() else None
