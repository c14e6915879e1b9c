"""Values of a program that is being written, and rows of arrays that are read only where an equation needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.source import Line
from ...core.primitive import Primitive
from ...core.program import Atom, Const, Eqn, Params, Var
from ...core.types import ArrayType
from ...ops.indexing import gather
from ...ops.parts import concatenate, slice_
from ...ops.shapes import reshape, reverse


class Row(NamedTuple):
    """Element `place` of the leading axis of an array, as a value of another shape of the same size."""

    array: Var
    place: int
    type: ArrayType


Value = Atom | Row

# Rows at irregular places are joined from so many slices, or else read by their indices.
_MOST_SLICES = 4


class Rows(NamedTuple):
    """Rows of one array: `number` of them from `first` in steps of `step`, which may be negative."""

    array: Var
    first: int
    number: int
    step: int


class Writer:
    """Equations of a program that is being written.

    Attributes:
        eqns: the equations so far.
    """

    def __init__(self) -> None:
        self.eqns: list[Eqn] = []
        self._read: dict[Rows, Var] = {}

    def mark(self) -> tuple[int, dict[Rows, Var]]:
        """Where the program is now, for `undo`."""
        return len(self.eqns), dict(self._read)

    def undo(self, mark: tuple[int, dict[Rows, Var]]) -> None:
        """Forget what was written after a mark."""
        count, self._read = mark
        del self.eqns[count:]

    def emit(
        self, primitive: Primitive, operands: Sequence[Atom], params: Params, type: ArrayType, line: Line | None
    ) -> Var:
        """The result of a new equation."""
        result = Var(type)
        self.eqns.append(Eqn(primitive, tuple(operands), params, (result,), line))
        return result

    def shaped(self, x: Var, type: ArrayType, line: Line | None) -> Var:
        """`x` in the shape of a type."""
        return x if x.type is type else self.emit(reshape, [x], {"shape": type.shape}, type, line)

    def atom(self, value: Value, line: Line | None) -> Atom:
        """A value as an operand."""
        if not isinstance(value, Row):
            return value
        return self.shaped(self.rows(Rows(value.array, value.place, 1, 1), line), value.type, line)

    def define(self, var: Var, row: Row) -> None:
        """Define a variable as a row of an array."""
        x = self.rows(Rows(row.array, row.place, 1, 1), None)
        self.eqns.append(Eqn(reshape, (x,), {"shape": var.type.shape}, (var,), None))

    def rows(self, rows: Rows, line: Line | None) -> Var:
        """An array of rows of another one."""
        found = self._read.get(rows)
        if found is None:
            found = self._read[rows] = self._rows(rows, line)
        return found

    def _rows(self, rows: Rows, line: Line | None) -> Var:
        array, first, count, step = rows
        shape = array.type.shape[1:]
        low, stride = (first, step) if step > 0 else (first + (count - 1) * step, -step)
        x = array
        if (low, stride, count) != (0, 1, array.type.shape[0]):
            params = {
                "start": (low, *(0,) * len(shape)),
                "limit": (low + (count - 1) * stride + 1, *shape),
                "strides": (stride if count > 1 else 1, *(1,) * len(shape)),
            }
            x = self.emit(slice_, [array], params, array.type.with_shape((count, *shape)), line)
        return x if step > 0 else self.emit(reverse, [x], {"axes": (0,)}, x.type, line)

    def stacked(self, values: Sequence[Value], type: ArrayType, line: Line | None) -> Atom:
        """Values of one type as an array with a leading axis."""
        parts = [*_parts(values)]
        rows = [v for v in values if isinstance(v, Row)]
        if len(parts) > _MOST_SLICES and len(rows) == len(values) and len({r.array for r in rows}) == 1:
            return self._gathered(rows, type, line)
        return self._joined([self._stack(part, type, line) for part in parts], len(values), type, line)

    def _gathered(self, rows: Sequence[Row], type: ArrayType, line: Line | None) -> Var:
        """Rows of one array in any order."""
        array = rows[0].array
        places = np.array([r.place for r in rows], np.int64)
        places.flags.writeable = False
        index = Const(places, ArrayType(places.shape, places.dtype))
        found = array.type.with_shape((len(rows), *array.type.shape[1:]))
        x = self.emit(gather, [array, index], {"axis": 0}, found, line)
        return self.shaped(x, type.with_shape((len(rows), *type.shape)), line)

    def joined(self, values: Sequence[Value], shape: tuple[int, ...], line: Line | None) -> Atom:
        """Arrays joined along axis 0."""
        parts: list[Atom] = []
        for part in _parts(values):
            if isinstance(part, Rows):
                x = self.rows(part, line)
                size = next(v.type.shape[0] for v in values if isinstance(v, Row) and v.array is part.array)
                parts.append(self.shaped(x, x.type.with_shape((part.number * size, *shape[1:])), line))
            else:
                parts.extend(part)
        type = parts[0].type.with_shape(shape)
        return parts[0] if len(parts) == 1 else self.emit(concatenate, parts, {"axis": 0}, type, line)

    def _stack(self, part: Rows | Sequence[Atom], type: ArrayType, line: Line | None) -> Atom:
        if isinstance(part, Rows):
            return self.shaped(self.rows(part, line), type.with_shape((part.number, *type.shape)), line)
        if isinstance(part[0], Const):
            array = np.stack([c.array() for c in part if isinstance(c, Const)])
            array.flags.writeable = False
            return Const(array, ArrayType(array.shape, array.dtype))
        assert isinstance(part[0], Var)
        return self.shaped(part[0], type.with_shape((1, *type.shape)), line)

    def _joined(self, parts: Sequence[Atom], count: int, type: ArrayType, line: Line | None) -> Atom:
        if len(parts) == 1:
            return parts[0]
        return self.emit(concatenate, parts, {"axis": 0}, type.with_shape((count, *type.shape)), line)


def _parts(values: Sequence[Value]) -> Iterator[Rows | list[Atom]]:
    """Neighbours that are taken together: rows of one array with a constant distance, constants; single variables."""
    i = 0
    while i < len(values):
        first, k = values[i], i + 1
        if isinstance(first, Row):
            step = 0
            while k < len(values):
                before, after = values[k - 1], values[k]
                if not isinstance(after, Row) or after.array is not first.array or after.type is not first.type:
                    break
                assert isinstance(before, Row)
                distance = after.place - before.place
                if distance == 0 or (step and distance != step):
                    break
                step, k = distance, k + 1
            yield Rows(first.array, first.place, k - i, step or 1)
        elif isinstance(first, Const):
            while k < len(values) and isinstance(values[k], Const):
                k += 1
            yield [v for v in values[i:k] if isinstance(v, Const)]
        else:
            yield [first]
        i = k


def bytes_of_variables(values: Sequence[Any]) -> int:
    """How many bytes have to be copied to stack values: those of variables, but not of rows of an array."""
    return sum(v.type.nbytes for v in values if isinstance(v, Var))
