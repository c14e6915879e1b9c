"""A linear program applied to all unit vectors, where a product of a matrix and the identity is the matrix itself.

Unit vectors that are only moved on stay unit vectors: *labels* say which element of a value is 1 for which of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.source import attributed_to
from ...core.interpret import interpret
from ...core.primitive import Moving
from ...core.program import Eqn, Program
from ...core.trace import Tracer, current_builder
from ...core.types import ArrayType
from ...ops.broadcast import with_batch_axis
from ...ops.contractions import dot_general
from ...ops.elementwise import add, convert, eq, mul
from ...ops.literals import full, full_like, iota
from ...ops.parts import pad
from ...ops.shapes import reshape, transpose

_INDEX = np.dtype(np.int64)
# Labels of larger arrays would take more time than they save.
_MOST_LABELS = 1_000_000


def unit_vectors(types: Sequence[ArrayType], count: int, start: Tracer | None = None, step: int = 1) -> list[Tracer]:
    """Unit vectors of the space of several arrays together, as an array (count, *shape) for each of them.

    Args:
        types: the types of the arrays.
        count: how many unit vectors; beyond the last one, all is zero.
        start: the number of the first; 0 by default.
        step: the difference between the numbers of two that follow each other.
    """
    vectors: list[Tracer] = []
    offset = 0
    for type in types:
        rows = iota(shape=(count, type.size), axis=0, dtype=_INDEX)
        columns = iota(shape=(count, type.size), axis=1, dtype=_INDEX)
        if step != 1:
            rows = mul(rows, full_like(rows, step))
        if start is not None:
            rows = add(rows, with_batch_axis(count, with_batch_axis(type.size, start, False), False))
        if offset:
            columns = add(columns, full_like(columns, offset))
        units = convert(eq(rows, columns), dtype=type.dtype)
        vectors.append(reshape(units, shape=(count, *type.shape)))
        offset += type.size
    return vectors


class Lane(NamedTuple):
    """A value for all unit vectors.

    Attributes:
        value: the value, with a leading axis for the unit vectors if it `is_batched`.
        is_batched: whether it depends on the unit vector.
        labels: for a value that is 1 in one element at most and 0 elsewhere: for each element the number of the unit
            vector for which it is 1.
    """

    value: Tracer
    is_batched: bool
    labels: Any = None


def apply_to_units(linear: Program, residuals: Sequence[Tracer]) -> list[Tracer]:
    """The results of a linear program for all unit vectors of its vectors together, along a leading axis.

    Args:
        linear: takes the residuals, then vectors, in which it is linear.
        residuals: its first arguments.
    """
    types = linear.in_types[len(residuals) :]
    count = sum(t.size for t in types)
    builder = current_builder()
    assert builder is not None

    def apply(eqn: Eqn, operands: list[Lane]) -> Sequence[Lane]:
        values, flags = [x.value for x in operands], [x.is_batched for x in operands]
        if not any(flags):
            return [Lane(y, False) for y in builder.repeat(eqn, values)]
        with attributed_to(eqn.line):
            found = _product_with_units(eqn, operands, count)
            if found is not None:
                return [Lane(found, True)]
            results, out_flags = eqn.primitive.batch(count, values, flags, **eqn.params)
        if eqn.primitive.multiple_results:
            return [Lane(y, b) for y, b in zip(results, out_flags, strict=True)]
        return [Lane(results, out_flags, _moved_labels(eqn, operands))]

    lanes = [Lane(x, False) for x in residuals]
    start = 0
    for units, t in zip(unit_vectors(types, count), types, strict=True):
        labels = np.arange(start, start + t.size).reshape(t.shape) if t.size <= _MOST_LABELS else None
        lanes.append(Lane(units, True, labels))
        start += t.size
    outs = interpret(linear, lanes, apply, lambda const: Lane(Tracer(builder, const), False))
    return [with_batch_axis(count, y.value, y.is_batched) for y in outs]


def _moved_labels(eqn: Eqn, operands: Sequence[Lane]) -> Any:
    """The labels of the result of an equation that only moves elements of one array; None for others."""
    if len(operands) != 1 or not isinstance(eqn.primitive, Moving) or eqn.outputs[0].type.size > _MOST_LABELS:
        return None
    labels = operands[0].labels
    return None if labels is None else eqn.primitive.numpy(labels, **eqn.params)


def _product_with_units(eqn: Eqn, operands: Sequence[Lane], count: int) -> Tracer | None:
    """The products of a known array with consecutive unit vectors: that array, with zeros for the other vectors."""
    if eqn.primitive is not dot_general or eqn.params["batch"][0]:
        return None
    for side in (0, 1):
        units, known = operands[side], operands[1 - side]
        if units.labels is None or known.is_batched:
            continue
        contract = eqn.params["contract"]
        labels = units.labels
        if len(contract[side]) < labels.ndim or not labels.size:
            continue
        # The axes along which labels grow fastest come first, wherever they have been moved.
        pairs = sorted(zip(contract[side], contract[1 - side], strict=True), key=lambda pair: -_step(labels, pair[0]))
        axes, partners = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        labels = np.transpose(labels, axes).ravel()
        if np.any(np.diff(labels) != 1):
            continue
        return _rows(known.value, partners, int(labels[0]), count)
    return None


def _step(labels: Any, axis: int) -> int:
    """How much the first label grows along an axis."""
    first, *more = np.moveaxis(labels, axis, 0).reshape(labels.shape[axis], -1)[:2, 0]
    return int(more[0] - first) if more else 0


def _rows(x: Tracer, axes: Sequence[int], start: int, count: int) -> Tracer:
    """`x` with the elements along `axes` as rows from `start` on, among `count` rows that are zero otherwise."""
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = transpose(x, axes=(*axes, *rest))
    size = int(np.prod([x.shape[i] for i in axes]))
    rows = reshape(moved, shape=(size, *(x.shape[i] for i in rest)))
    if size == count:
        return rows
    none = (0,) * len(rest)
    zero = full((), 0, x.dtype)
    return pad(rows, zero, before=(start, *none), after=(count - start - size, *none), interior=(0, *none))
