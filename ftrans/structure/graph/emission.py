"""Elements taken, put and added by maps: recorded as slices where a map is affine, by constant indices otherwise.

Compilers fuse slices, reshapes and broadcasts with what is computed next to them, and gathers only to a part.

What is taken or put may be known already: a Python float, which stands for one number in all lanes, or a NumPy array.
Then nothing is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...base.affine import Affine, Shape, affine, in_coordinates, run_length
from ...base.index_map import IndexMap
from ...base.type_questions import is_plain
from ...core.program import Const, literal
from ...core.trace import Tracer, current_builder
from ...core.types import ArrayType, type_of
from ...ops.broadcast import broadcast, reduce_sum
from ...ops.elementwise import add
from ...ops.indexing import gather, scatter_add
from ...ops.literals import full
from ...ops.parts import concatenate, pad, slice_
from ...ops.shapes import reshape, reverse, transpose
from ...ops.slices import add_slice

# A table of up to this many runs is joined from slices.
_MOST_RUNS = 6
# An affine map that is no slice is split into slices along an axis of up to this many lanes.
_MOST_SLICES = 4


def constant(value: Any) -> Tracer:
    """A number or an array as a constant of the program that is written."""
    builder = current_builder()
    assert builder is not None
    array = np.asarray(value)
    type = ArrayType(array.shape, array.dtype)
    return Tracer(builder, literal(array, type) if array.size <= 1 else Const(array, type))


def take(x: Any, map: IndexMap) -> Any:
    """The elements of `x` that lanes stand for, in the shape of the lanes.

    Args:
        x: a traced array with `map.space` elements, or a known array; a number stands for itself in all lanes.
    """
    if not isinstance(x, Tracer):
        return x if np.ndim(x) == 0 else np.asarray(x).reshape(-1)[map.table()]
    if not map.size:
        return full(map.shape, 0, x.dtype)
    found = None if map.form is None else _taken_by_form(x, map.form)
    if found is None:
        found = _taken_in_runs(x, map)
    if found is None:
        found = gather(_shaped(x, (x.size,)), _indices(map))
    return _shaped(found, map.shape)


def put(type: ArrayType | int, values: Any, map: IndexMap) -> Any:
    """Zeros with the values of the lanes added at the elements that they stand for.

    Args:
        type: type of the result, or the size of a vector with the dtype of the values.
        values: a traced or known array of the shape of the lanes, or a float for all of them.
        map: to the elements of the result.
    """
    if not isinstance(type, ArrayType):
        type = ArrayType((type,), np.float64 if is_plain(values, float) else values.dtype)
    if not isinstance(values, Tracer):
        out = np.zeros(type.size, type.dtype)
        np.add.at(out, map.table().reshape(-1), values if is_plain(values, float) else values.reshape(-1))
        return out.reshape(type.shape)
    if not map.size:
        return full(type.shape, 0, type.dtype)
    if map.form is not None:
        values, map = _summed_lanes(values, map, map.form)
        part = _part(map.form, type.shape) if map.form is not None else None
        if part is not None:
            return _shaped(_padded(part.shaped(values), part), type.shape)
    if map.is_injective:
        # Reading is faster than writing: lanes without a value read a zero at the end.
        lanes = np.full(map.space, map.size)
        lanes[map.table().reshape(-1)] = np.arange(map.size)
        with_zero = concatenate(_shaped(values, (map.size,)), full((1,), 0, type.dtype), axis=0)
        return _shaped(take(with_zero, IndexMap.of(lanes, map.size + 1)), type.shape)
    return _shaped(_scattered(full((type.size,), 0, type.dtype), values, map), type.shape)


def summed_at(base: Any, values: Any, map: IndexMap) -> Any:
    """`base` with the values of the lanes added at the elements that they stand for.

    Args:
        base: a traced or known array with `map.space` elements.
        values: a traced or known array of the shape of the lanes, or a float for all of them.
        map: to the elements of `base`.
    """
    type = ArrayType(base.shape, base.dtype)
    if not isinstance(values, Tracer):
        values = put(type, values, map)
        return base + values if not isinstance(base, Tracer) else add(base, constant(values))
    base = base if isinstance(base, Tracer) else constant(base)
    if not map.size:
        return base
    if map.form is not None:
        values, map = _summed_lanes(values, map, map.form)
        part = _part(map.form, type.shape) if map.form is not None else None
        if part is not None:
            return _shaped(_added(_shaped(base, part.whole), part.shaped(values), part), type.shape)
        pieces = _split(values, map)
        if pieces is not None:
            for piece, of_piece in pieces:
                base = summed_at(base, piece, of_piece)
            return base
    return _shaped(_scattered(_shaped(base, (type.size,)), values, map), type.shape)


# Parts of arrays


class _Part(NamedTuple):
    """Lanes as a slice of an array whose axes are then put in another order, and partly reversed.

    Attributes:
        whole: shape that the array is brought to.
        start, limit, strides: the slice.
        reversed: the axes of the slice that run backwards.
        axes: for each axis of the lanes, the axis of the slice; the other axes of the slice have size 1.
    """

    whole: Shape
    start: Shape
    limit: Shape
    strides: Shape
    reversed: Shape
    axes: Shape

    @property
    def sizes(self) -> Shape:
        """Shape of the slice."""
        return tuple(-(-(b - a) // s) for a, b, s in zip(self.start, self.limit, self.strides, strict=True))

    @property
    def order(self) -> Shape:
        """The axes of the slice, with those of size 1 at the end."""
        return (*self.axes, *(i for i in range(len(self.whole)) if i not in self.axes))

    def shaped(self, lanes: Tracer) -> Tracer:
        """Values of lanes as the elements of the slice."""
        order, sizes = self.order, self.sizes
        x = _shaped(lanes, tuple(sizes[i] for i in order))
        x = _transposed(x, tuple(order.index(i) for i in range(len(order))))
        return reverse(x, axes=self.reversed) if self.reversed else x


def _part(form: Affine, shape: Shape) -> _Part | None:
    """An injective form as a part of an array of this shape, or of the same elements in another one; or None."""
    for whole in _views(form, shape):
        part = _part_of(form, whole)
        if part is not None:
            return part
    return None


def _views(form: Affine, shape: Shape) -> Iterator[Shape]:
    """Shapes in which a form may be a slice: that of the array, no shape at all, and the one with the form's steps."""
    size = math.prod(shape)
    yield shape
    yield (size,)
    marks = [size, *sorted({abs(s) for s in form.strides}, reverse=True), 1]
    if all(large % small == 0 for large, small in pairwise(marks)):
        yield tuple(large // small for large, small in pairwise(marks) if large != small)


def _part_of(form: Affine, whole: Shape) -> _Part | None:
    found = in_coordinates(form, whole)
    if found is None:
        return None
    first, steps = found
    start, limit, strides = list(first), [i + 1 for i in first], [1] * len(whole)
    backwards: list[int] = []
    axes: list[int] = []
    for n, step in steps:
        moving = [i for i, d in enumerate(step) if d]
        if len(moving) != 1 or moving[0] in axes:
            return None
        (i,) = moving
        axes.append(i)
        last = first[i] + step[i] * (n - 1)
        start[i], limit[i], strides[i] = min(first[i], last), max(first[i], last) + 1, abs(step[i])
        if step[i] < 0:
            backwards.append(i)
    return _Part(whole, tuple(start), tuple(limit), tuple(strides), tuple(sorted(backwards)), tuple(axes))


def _taken_by_form(x: Tracer, form: Affine) -> Tracer | None:
    moving = affine(form.offset, *_axes(form, True))
    part = _part(moving, x.shape)
    if part is None:
        return None
    y = _shaped(x, part.whole)
    if part.sizes != part.whole:
        y = slice_(y, start=part.start, limit=part.limit, strides=part.strides)
    if part.reversed:
        y = reverse(y, axes=part.reversed)
    y = _transposed(y, part.order)
    kept = tuple(i for i, s in enumerate(form.strides) if s)
    y = _shaped(y, tuple(form.box[i] for i in kept))
    return y if len(kept) == len(form.box) else broadcast(y, shape=form.box, dims=kept)


def _axes(form: Affine, moving: bool) -> tuple[list[int], list[int]]:
    """Sizes and strides of the axes along which a form changes, or does not."""
    axes = [(n, s) for n, s in zip(form.box, form.strides, strict=True) if bool(s) == moving]
    return [n for n, _ in axes], [s for _, s in axes]


def _summed_lanes(values: Tracer, map: IndexMap, form: Affine) -> tuple[Tracer, IndexMap]:
    """Values summed over the lanes along which the map stays at one element, and the map without them."""
    sizes, strides = _axes(form, True)
    if len(sizes) == len(form.box):
        return values, map
    still = tuple(i for i, s in enumerate(form.strides) if not s)
    values = reduce_sum(_shaped(values, form.box), axes=still)
    return values, IndexMap.affine(values.shape, form.offset, tuple(strides), map.space)


def _split(values: Tracer, map: IndexMap) -> list[tuple[Tracer, IndexMap]] | None:
    """Values and their map, for each place along the shortest axis of an affine map; None if that is long."""
    form = map.form
    if form is None or len(form.box) < 2 or min(form.box) > _MOST_SLICES:
        return None
    axis = form.box.index(min(form.box))
    values = _shaped(values, form.box)
    sizes, strides = (x[:axis] + x[axis + 1 :] for x in (form.box, form.strides))
    found = []
    for i in range(form.box[axis]):
        start = tuple(i if a == axis else 0 for a in range(len(form.box)))
        limit = tuple(i + 1 if a == axis else n for a, n in enumerate(form.box))
        piece = _shaped(slice_(values, start=start, limit=limit, strides=(1,) * len(form.box)), sizes)
        found.append((piece, IndexMap.affine(sizes, form.offset + i * form.strides[axis], strides, map.space)))
    return found


def _padded(values: Tracer, part: _Part) -> Tracer:
    sizes = part.sizes
    if sizes == part.whole:
        return values
    return pad(
        values,
        full((), 0, values.dtype),
        before=part.start,
        after=tuple(n - end for n, end in zip(part.whole, part.limit, strict=True)),
        interior=tuple(s - 1 for s in part.strides),
    )


def _added(base: Tracer, values: Tracer, part: _Part) -> Tracer:
    if part.sizes == part.whole:
        return add(base, values)
    return add_slice(base, values, start=part.start, limit=part.limit, strides=part.strides)


# Tables


_constants: WeakKeyDictionary[IndexMap, Const] = WeakKeyDictionary()


def _indices(map: IndexMap) -> Tracer:
    """The elements of lanes as a vector of indices: one constant for one map, so that equal reads are shared."""
    builder = current_builder()
    assert builder is not None
    const = _constants.get(map)
    if const is None:
        array = map.table().reshape(-1).astype(np.int32 if map.space < 2**31 else np.int64)
        const = _constants[map] = Const(array, type_of(array))
    return Tracer(builder, const)


def _taken_in_runs(x: Tracer, map: IndexMap) -> Tracer | None:
    """Elements that lie in a few runs, joined from slices; None if there are many."""
    numbers, start = map.table().reshape(-1), 0
    runs: list[Affine] = []
    while start < numbers.size:
        if len(runs) == _MOST_RUNS:
            return None
        n = run_length(numbers[start:])
        step = int(numbers[start + 1] - numbers[start]) if n > 1 else 0
        runs.append(affine(int(numbers[start]), (n,), (step,)))
        start += n
    parts = [_taken_by_form(_shaped(x, (x.size,)), run) for run in runs]
    return concatenate(*[_shaped(p, (p.size,)) for p in parts if p is not None], axis=0)


def _scattered(base: Tracer, values: Tracer, map: IndexMap) -> Tracer:
    return scatter_add(base, _shaped(values, (map.size,)), _indices(map))


# Shapes


def _shaped(x: Tracer, shape: Shape) -> Tracer:
    return x if x.shape == shape else reshape(x, shape=shape)


def _transposed(x: Tracer, axes: Sequence[int]) -> Tracer:
    return x if tuple(axes) == tuple(range(x.ndim)) else transpose(x, axes=tuple(axes))
