"""Products that sum over axes (`dot_general`), of rows with a value or with other rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core.program import Eqn
from ...core.trace import Tracer
from ...core.types import Shape
from ...ops.contractions import dot_general
from ...ops.literals import splat
from ...ops.parts import slice_
from ...ops.shapes import reshape
from .rows import FEW_PARTS, Part, Rows, are_unique, constant_along, without_absent


def contracted(eqn: Eqn, x: Rows, y: Rows) -> Tracer:
    """The sum over the directions of the products of two rows: one more axis to sum over."""
    (of_x, of_y), (shared_x, shared_y) = eqn.params["contract"], eqn.params["batch"]
    contract = tuple([(0, *[i + 1 for i in dims]) for dims in (of_x, of_y)])
    batch = tuple([tuple([i + 1 for i in dims]) for dims in (shared_x, shared_y)])
    return dot_general(x.dense(), y.dense(), contract=contract, batch=batch)


def product_with(eqn: Eqn, operands: Sequence[Rows | Tracer]) -> Rows | None:
    """The rows of a product of rows with a value, where they are parts; None where that does not help.

    The derivative of `x @ w` by element `i` of `x` is row `i` of `w`: nothing has to be multiplied by the unit vectors.
    """
    side = 0 if isinstance(operands[0], Rows) else 1
    rows, other = operands[side], operands[1 - side]
    assert isinstance(rows, Rows)
    assert isinstance(other, Tracer)
    if not rows.is_sparse or not rows.parts:
        return None
    dims = _Dims(eqn, side, rows.type.shape, other.shape)
    if len(rows.parts) == 1 and dims.is_whole:
        place = rows.parts[0].place.transpose(dims.of_rows).reshape(-1)
        if place.size == rows.count and (place == np.arange(rows.count)).all():
            (part,) = rows.plain_parts()
            array = dims.outer(part.value, other)
            return Rows(eqn.outputs[0].type, rows.count, reshape(array, shape=(rows.count, *eqn.outputs[0].type.shape)))
    merged = [constant_along(part.place, dims.contract[0]) for part in rows.parts]
    if sum([dims.width if place is None else 1 for place in merged]) > FEW_PARTS:
        return None
    parts = []
    for part, place in zip(rows.plain_parts(), merged, strict=True):
        if place is not None:
            value = without_absent(part)
            pair = (value, other) if side == 0 else (other, value)
            parts.append(Part(dot_general(*pair, **eqn.params), dims.places(place)[0]))
        else:
            values, places = dims.outer(part.value, other), dims.places(part.place)
            parts += [Part(dims.result(values, k), places[k]) for k in range(dims.width)]
    return Rows(eqn.outputs[0].type, rows.count, parts=parts) if are_unique(parts) else None


class _Dims:
    """How the axes of rows, of the other operand and of the result belong together.

    Attributes:
        width: number of products that an element of the result sums.
        is_whole: whether the rows have no other axes than those that are summed over.
        of_rows: the axes of the rows: summed over, shared, own.
    """

    def __init__(self, eqn: Eqn, side: int, shape: Shape, other: Shape) -> None:
        self.side = side
        contract, batch = eqn.params["contract"], eqn.params["batch"]
        self.contract = contract[side], contract[1 - side]
        self.batch = batch[side], batch[1 - side]
        own = tuple([i for i in range(len(shape)) if i not in (*self.contract[0], *self.batch[0])])
        others = tuple([i for i in range(len(other)) if i not in (*self.contract[1], *self.batch[1])])
        self.of_rows = (*self.contract[0], *self.batch[0], *own)
        self.shared = tuple([shape[i] for i in self.batch[0]])
        self.own = tuple([shape[i] for i in own])
        self.others = tuple([other[i] for i in others])
        self.width = math.prod([shape[i] for i in self.contract[0]])
        self.is_whole = not own and not self.shared

    @property
    def out(self) -> Shape:
        """The shape of the result."""
        sides = (self.own, self.others) if self.side == 0 else (self.others, self.own)
        return (*self.shared, *sides[0], *sides[1])

    def outer(self, value: Tracer, other: Tracer) -> Tracer:
        """All products: the axes that are summed over as one, then those of the result."""
        dims = [(*c, *b) for c, b in zip(self.contract, self.batch, strict=True)]
        pair, order = ((value, other), dims) if self.side == 0 else ((other, value), dims[::-1])
        array = dot_general(*pair, contract=((), ()), batch=(order[0], order[1]))
        return reshape(array, shape=(self.width, *self.out))

    def result(self, values: Tracer, k: int) -> Tracer:
        """The products of one element of the axes that are summed over."""
        rest = values.shape[1:]
        start, limit = (k, *[0] * len(rest)), (k + 1, *rest)
        number = splat(values)
        assert number is None
        return reshape(slice_(values, start=start, limit=limit, strides=(1,) * values.ndim), shape=rest)

    def places(self, place: np.ndarray) -> np.ndarray:
        """The directions of all products, in the shape of `outer`."""
        summed = math.prod([place.shape[i] for i in self.contract[0]])
        ordered = place.transpose(self.of_rows).reshape(summed, *self.shared, *self.own)
        kept = len(self.shared) + 1
        extra = (1,) * len(self.others)
        shape = (*ordered.shape[:kept], *((*self.own, *extra) if self.side == 0 else (*extra, *self.own)))
        return np.broadcast_to(ordered.reshape(shape), (len(ordered), *self.out))
