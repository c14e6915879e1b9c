"""Rows: the derivatives of one array along many directions, as a program that is being recorded holds them.

Row `r` is the derivative along direction `r`, an array of the shape of the value.  Rows are never larger than they have
to be.  A factor that is the same for all directions stays outside, so that a chain of functions of each element costs
no pass over the rows.  And where each element depends on a few inputs only, the rows along unit vectors are kept as
`parts`: for each element the numbers that are not zero, and the directions that they belong to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.program import Const, Eqn
from ...core.trace import Tracer, current_builder
from ...core.types import ArrayType, Shape
from ...ops.broadcast import reduce_sum, with_batch_axis
from ...ops.contractions import dot_general
from ...ops.elementwise import add, eq, mul, select
from ...ops.indexing import scatter_add
from ...ops.literals import full, full_like, iota, splat
from ...ops.parts import pad, slice_
from ...ops.shapes import reshape
from ...transforms.simplify import Sharing

# Rows have at most as many parts, which each cost equations, where there are few directions and where there are many.
FEW_PARTS, _MOST_PARTS = 8, 64

_I64 = np.dtype(np.int64)


def most_parts(count: int) -> int:
    """How many parts rows may have; if they had more, they are one array with a row for each of `count` directions."""
    return max(FEW_PARTS, min(_MOST_PARTS, count // 16))


class Part(NamedTuple):
    """One derivative of each element.

    Attributes:
        value: the derivatives, an array of the shape of the rows.
        place: the direction of each derivative, of the same shape; -1 where there is none, whatever the value says.
    """

    value: Tracer
    place: Any


class Rows:
    """The derivatives of a value along `count` directions.

    Attributes:
        type: type of one row, which is that of the value.
        count: number of directions.
        array: all of them, of shape `(count, *shape)`; None if they are given by parts.
        parts: what is not zero of them.  No element has two parts of one direction.
        factor: what they are to be multiplied by, an array of the shape of the value; None for 1.
    """

    __slots__ = ("array", "count", "factor", "parts", "type")

    def __init__(
        self,
        type: ArrayType,
        count: int,
        array: Tracer | None = None,
        parts: Sequence[Part] = (),
        factor: Tracer | None = None,
    ) -> None:
        self.type = type
        self.count = count
        self.array = array
        self.parts = tuple(parts)
        self.factor = factor

    @property
    def is_sparse(self) -> bool:
        """Whether they are given by parts."""
        return self.array is None

    def has_base_of(self, other: Rows) -> bool:
        """Whether two rows differ in their factors only."""
        if self.array is not None and other.array is not None:
            return self.array.atom is other.array.atom
        return (self.array is other.array) and _same_parts(self.parts, other.parts)

    def with_factor(self, factor: Tracer | None) -> Rows:
        """The same rows with another factor."""
        return Rows(self.type, self.count, self.array, self.parts, factor)

    def scaled(self, by: Tracer) -> Rows:
        """The rows times a number for each element."""
        return self.with_factor(by if self.factor is None else mul(self.factor, by))

    def plain_parts(self) -> list[Part]:
        """The parts with the factor multiplied in."""
        return [Part(_times(self.factor, p.value), p.place) for p in self.parts]

    def dense(self) -> Tracer:
        """All rows as one array of shape `(count, *shape)`."""
        if self.array is not None:
            return self.array if self.factor is None else mul(self._repeated(self.factor), self.array)
        total: Tracer | None = None
        zero = full((self.count, *self.type.shape), 0, self.type.dtype)
        if not self.parts or not zero.size:
            return zero
        directions = iota(shape=zero.shape, axis=0, dtype=_I64)
        for value, place in self.plain_parts():
            here = eq(directions, self._repeated(_constant(place, _I64)))
            total = select(here, self._repeated(value), zero if total is None else total)
        assert total is not None
        return total

    def _repeated(self, x: Tracer) -> Tracer:
        return with_batch_axis(self.count, x, False)

    def total(self) -> Tracer:
        """The sum of the rows."""
        if self.array is not None:
            return _times(self.factor, reduce_sum(self.array, axes=(0,)))
        total: Tracer | None = None
        for part in self.plain_parts():
            value = without_absent(part)
            total = value if total is None else add(total, value)
        return full_like(self.type, 0) if total is None else total


def unit_rows(type: ArrayType, start: int, count: int) -> Rows:
    """The derivatives of an input by itself, whose elements are the directions from `start` on."""
    place = np.arange(start, start + type.size).reshape(type.shape)
    return Rows(type, count, parts=[Part(full_like(type, 1), place)])


def without_absent(part: Part) -> Tracer:
    """The value of a part, with zeros where there is no derivative."""
    return kept(part.value, part.place >= 0)


def kept(value: Tracer, where: Any) -> Tracer:
    """A value where a known condition holds, and zero elsewhere."""
    if where.all():
        return value
    zero = full_like(value, 0)
    return select(_constant(where, np.dtype(np.bool_)), value, zero) if where.any() else zero


def _constant(array: Any, dtype: np.dtype[Any]) -> Tracer:
    """A known array as a part of the program that is being recorded."""
    builder = current_builder()
    assert isinstance(builder, Sharing)
    return builder.constant(np.asarray(array, dtype, order="C"))


def _times(factor: Tracer | None, x: Tracer) -> Tracer:
    if factor is None:
        return x
    return factor if splat(x) == 1 else mul(factor, x)


def _same_parts(a: Sequence[Part], b: Sequence[Part]) -> bool:
    return len(a) == len(b) and all(
        p.value.atom is q.value.atom and np.array_equal(p.place, q.place) for p, q in zip(a, b, strict=True)
    )


# Several rows of one shape


def product(a: Rows, b: Rows) -> Rows:
    """The products of two rows of each direction."""
    factor = a.factor if b.factor is None else b.factor if a.factor is None else mul(a.factor, b.factor)
    if a.is_sparse and b.is_sparse:
        parts = []
        for p in a.parts:
            for q in b.parts:
                meet = (p.place == q.place) & (p.place >= 0)
                if meet.any():
                    value = _times(p.value, q.value) if splat(p.value) != 1 else q.value
                    parts.append(Part(value, np.where(meet, p.place, -1)))
        return Rows(a.type, a.count, parts=parts, factor=factor)
    left, right = a.with_factor(None).dense(), b.with_factor(None).dense()
    return Rows(a.type, a.count, mul(left, right), factor=factor)


def aligned(rows: Sequence[Rows]) -> list[list[Tracer | None]] | None:
    """The values of several sparse rows, for each place of `common_places`; None for zeros."""
    places = common_places(rows)
    if places is None:
        return None
    return [[_value_at(x, place) for place in places] for x in rows]


def common_places(rows: Sequence[Rows]) -> list[Any] | None:
    """The directions that each element of several rows has, as places of parts; None if they are too many."""
    if not all([x.is_sparse for x in rows]):
        return None
    places: list[Any] = []
    for x in rows:
        for _, place in x.parts:
            new = place >= 0
            for other in places:
                new = new & (place != other)
            if new.any():
                places.append(np.where(new, place, -1))
    return places if len(places) <= most_parts(rows[0].count) else None


def _value_at(rows: Rows, place: Any) -> Tracer | None:
    """The derivatives in the directions of a part, which has each direction of an element at most once."""
    found: Tracer | None = None
    is_there = place >= 0
    for value, own in rows.plain_parts():
        meet = (own == place) & is_there
        if not meet.any():
            continue
        if (meet == is_there).all():
            return value
        condition = _constant(meet, np.dtype(np.bool_))
        found = select(condition, value, full_like(value, 0) if found is None else found)
    return found


# Rows of moved elements, and of sums


def moved(eqn: Eqn, operands: Sequence[Rows | Tracer]) -> Rows | None:
    """The rows of the result of an equation that moves elements; None if their places are not known."""
    rows = [x for x in operands if isinstance(x, Rows)]
    if not all([x.is_sparse for x in rows]):
        return None
    known: list[Any] = []
    for x in operands:
        if isinstance(x, Rows):
            known.append(None)
        elif x.dtype.kind in "biu" and isinstance(x.atom, Const):
            known.append(x.atom.array())
        elif x.dtype.kind not in "biu" and splat(x) == 0:
            known.append(np.full(x.shape, -1))
        else:
            return None
    (out,) = eqn.outputs
    indices = [x for x in operands[1:] if isinstance(x, Tracer) and x.dtype.kind in "biu"]
    keeps_factor = len(operands) == 1 + len(indices)
    given = [(x.parts if keeps_factor else x.plain_parts()) if isinstance(x, Rows) else None for x in operands]
    parts = []
    for i in range(max([len(x.parts) for x in rows])):
        values, places = [], []
        for x, of_x, value in zip(operands, given, known, strict=True):
            part = of_x[i] if of_x is not None and i < len(of_x) else None
            is_row = isinstance(x, Rows)
            values.append(part.value if part is not None else full_like(x.type, 0) if is_row else x)
            places.append(part.place if part is not None else np.full(x.type.shape, -1) if is_row else value)
        try:
            place = np.asarray(eqn.primitive.numpy(*places, **eqn.params)).reshape(out.type.shape)
        except IndexError:
            # The program says so, with the user's line, or takes the nearest valid index.
            return None
        number = splat(rows[0].parts[i].value) if keeps_factor else None
        value = eqn.primitive(*values, **eqn.params) if number is None else full_like(out.type, number)
        parts.append(Part(value, place))
    factor = rows[0].factor if keeps_factor else None
    if factor is not None:
        factor = eqn.primitive(factor, *indices, **eqn.params)
    return Rows(out.type, rows[0].count, parts=parts, factor=factor)


def summed(rows: Rows, axes: Shape) -> Rows:
    """The rows of a sum over axes."""
    shape = tuple([n for i, n in enumerate(rows.type.shape) if i not in axes])
    type = rows.type.with_shape(shape)
    if rows.is_sparse:
        parts = _summed_into_parts(rows, axes)
        if parts is not None:
            return Rows(type, rows.count, parts=parts)
        if not shape:
            return Rows(type, rows.count, _summed_to_vector(rows))
    if rows.array is not None and rows.factor is not None and not shape:
        return Rows(type, rows.count, _weighted_sum(rows.array, rows.factor))
    return Rows(type, rows.count, reduce_sum(rows.dense(), axes=tuple([a + 1 for a in axes])))


def _weighted_sum(array: Tracer, weights: Tracer) -> Tracer:
    """The sums of all elements of each row, times weights."""
    matrix = reshape(array, shape=(array.shape[0], weights.size))
    return dot_general(matrix, reshape(weights, shape=(weights.size,)), contract=((1,), (0,)), batch=((), ()))


def _summed_into_parts(rows: Rows, axes: Shape) -> list[Part] | None:
    """The parts of a sum; None if they are many, or two of an element have one direction."""
    kept_shape = tuple([n for i, n in enumerate(rows.type.shape) if i not in axes])
    thin = [_summed_where_constant(part, axes) for part in rows.plain_parts()]
    if sum([part.place.size for part in thin]) > most_parts(rows.count) * math.prod(kept_shape):
        return None
    parts = []
    for value, place in thin:
        shape = place.shape
        for index in np.ndindex(*[shape[a] for a in axes]):
            at = dict(zip(axes, index, strict=True))
            start = tuple([at.get(i, 0) for i in range(len(shape))])
            limit = tuple([at[i] + 1 if i in at else n for i, n in enumerate(shape)])
            number = splat(value)
            if number is None:
                piece = slice_(value, start=start, limit=limit, strides=(1,) * len(shape))
                piece = reshape(piece, shape=kept_shape)
            else:
                piece = full(kept_shape, number, value.dtype)
            here = tuple([at.get(i, slice(None)) for i in range(len(shape))])
            parts.append(Part(piece, np.asarray(place[here])))
    return parts if are_unique(parts) else None


def _summed_where_constant(part: Part, axes: Shape) -> Part:
    """A part summed along those of some axes along which its directions are the same; they keep a size of 1."""
    value, place = part
    for axis in axes:
        merged = constant_along(place, (axis,))
        if merged is not None and place.shape[axis] > 1:
            value = reshape(reduce_sum(without_absent(Part(value, place)), axes=(axis,)), shape=merged.shape)
            place = merged
    return Part(value, place)


def constant_along(place: Any, axes: Shape) -> Any:
    """The directions along axes, which keep a size of 1; None if they are not the same wherever there are any."""
    largest = place.max(axes, keepdims=True, initial=-1)
    return largest if ((place == largest) | (place == -1)).all() else None


def are_unique(parts: Sequence[Part]) -> bool:
    """Whether no element has one direction twice."""
    if not parts:
        return True
    ordered = np.sort(np.stack([part.place for part in parts]), axis=0)
    return not ((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any()


def _summed_to_vector(rows: Rows) -> Tracer:
    """The sum of all elements, for each direction: a vector."""
    total: Tracer | None = None
    for part in rows.plain_parts():
        value = _put_in_place(without_absent(part), part.place, rows.count)
        total = value if total is None else add(total, value)
    return full((rows.count,), 0, rows.type.dtype) if total is None else total


def _put_in_place(value: Tracer, place: Any, count: int) -> Tracer:
    """The vector of `count` sums of the elements of one place; elements of place -1 are zeros."""
    for axis in reversed(range(place.ndim)):
        merged = constant_along(place, (axis,))
        if merged is not None and place.shape[axis] > 1:
            value, place = reduce_sum(value, axes=(axis,)), merged.squeeze(axis)
    flat, size = place.reshape(-1), place.size
    value = reshape(value, shape=(size,))
    if size and (flat == np.arange(flat[0], flat[0] + size)).all() and flat[0] >= 0:
        zero = full((), 0, value.dtype)
        return pad(value, zero, before=(int(flat[0]),), after=(int(count - flat[0] - size),), interior=(0,))
    return scatter_add(full((count,), 0, value.dtype), value, _constant(np.maximum(flat, 0), _I64))


def columns(rows: Rows, start: int) -> Tracer:
    """Of the rows of a value with as many elements as directions from `start` on: each element along its own."""
    size, shape = rows.type.size, rows.type.shape
    if rows.is_sparse:
        found = _value_at(rows, np.arange(start, start + size).reshape(shape))
        return full_like(rows.type, 0) if found is None else found
    array = rows.with_factor(None).dense()
    flat = reshape(array, shape=(rows.count * size,))
    diagonal = slice_(flat, start=(start * size,), limit=((start + size) * size,), strides=(size + 1,))
    return _times(rows.factor, reshape(diagonal, shape=shape))
