"""A run of equations, written as one `scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.program import Atom, Const, Eqn, Program, Var, literal, programs_in
from ...core.types import ArrayType
from ...ops.broadcast import broadcast
from ...ops.elementwise import add
from ...ops.indexing import gather, scatter_add, scatter_set
from ...ops.moving_slices import dynamic_add, dynamic_set, dynamic_slice
from ...ops.parts import pad, slice_
from ...ops.shapes import reshape
from ...ops.slices import add_slice
from ..loops.scan import scan, scan_params
from ..rules.host_call import UserCode, calls_user_code
from .carried_over import find_carried_over
from .dataflow import Earlier, Run, Same, Values
from .numbering import Numbered
from .rows import Row, Value, Writer, bytes_of_variables

_INDEX = ArrayType((), np.dtype(np.int64))
# Inputs that are different arrays in each step are put side by side up to so many bytes in all; for larger ones, such
# as the weights of layers, the copies cost more than the loop saves.
_MOST_COPIED = 1 << 16
# To put an array beside others takes as long as so many equations on small arrays.
_EQNS_PER_COPY = 4


class TooMuchCopying(Exception):
    """A loop would have to put large arrays side by side first, or many for little work."""


class Loop:
    """The equations of a run, as the body of a loop.

    Args:
        numbered: the program.
        run: the run.
        value: what a number of a value stands for.
        writer: the program that is being written; what the loop needs before it starts is written there.
        rolled: turns repetition within the body into loops.
    """

    def __init__(
        self,
        numbered: Numbered,
        run: Run,
        value: Callable[[int], Value],
        writer: Writer,
        rolled: Callable[[Program], Program],
    ) -> None:
        self.run = run
        self.eqns = numbered.eqns[run.start : run.start + run.period]
        self.line = self.eqns[0].line
        self._value = value
        self._writer = writer
        self._rolled = rolled
        self._body = Writer()
        self._fixed: dict[Atom, Var] = {}
        self._sequences: dict[Any, _Sequence] = {}
        self._rows_read: dict[Any, Any] = {}
        self._chains: dict[Earlier, list[Var]] = {}
        self._chain_of = _chains(run)
        self._indices: dict[Any, Atom] = {}
        self._parts: dict[Any, Var] = {}
        self._backwards = self._runs_backwards()
        self._copied = self._arrays_copied = 0
        self._results: list[Atom | _Fixed] = []

    def write(self) -> dict[int, Value]:
        """Write the loop; return what the values that are used behind it are, by number.

        Raises:
            TooMuchCopying: the sequences of the loop are arrays that lie apart, and large, or too many for its work.
        """
        columns = iter(self.run.columns)
        for j, eqn in enumerate(self.eqns):
            operands = [self._operand(next(columns), a.type) for a in eqn.operands]
            place = self.run.places.get(j)
            if eqn.primitive is reshape and (key := self._rows_read.get(operands[0])) is not None:
                self._results.append(self._rows_shaped(key, eqn.outputs[0].type))
            elif place is None and _can_move_out(eqn, operands):
                self._results.extend(self._moved_out(eqn, operands))
            elif place is None:
                outputs = tuple([Var(v.type) for v in eqn.outputs])
                used = tuple(map(self._inside, operands))
                self._body.eqns.append(Eqn(eqn.primitive, used, eqn.params, outputs, eqn.line))
                self._results.extend(outputs)
            else:
                self._results.append(self._at_moving_place(eqn, operands, place))
        return self._finish()

    # Operands of a step

    def _operand(self, column: Any, type: ArrayType) -> Value | _Fixed:
        if isinstance(column, Same):
            return _Fixed(self._writer.atom(self._value(column.number), self.line))
        if isinstance(column, Values):
            return self._element_of(column.numbers, type)
        if column.lag == 0:
            return self._results[column.result]
        longest = self._chain_of[column]
        chain = self._chains.setdefault(longest, [])
        while len(chain) < longest.lag:
            chain.append(Var(type))
        return chain[column.lag - 1]

    def _inside(self, operand: Any) -> Atom:
        """An operand as the body has it."""
        if not isinstance(operand, _Fixed):
            return operand
        atom = operand.atom
        return atom if isinstance(atom, Const) else self._fixed.setdefault(atom, Var(atom.type))

    def _moved_out(self, eqn: Eqn, operands: list[Any]) -> list[_Fixed]:
        """The results of an equation that computes the same in each step, computed before the loop."""
        outputs = tuple([Var(v.type) for v in eqn.outputs])
        self._writer.eqns.append(Eqn(eqn.primitive, tuple([x.atom for x in operands]), eqn.params, outputs, eqn.line))
        return [_Fixed(v) for v in outputs]

    def _element(self, key: Any, values: Any, type: ArrayType) -> Var:
        """The element of a sequence in a step."""
        found = self._sequences.get(key)
        if found is None:
            if not isinstance(values, np.ndarray):
                self._copied += bytes_of_variables(values)
                self._arrays_copied += sum([isinstance(v, Var) for v in values])
                is_short = len(self.eqns) * len(values) < self._arrays_copied * _EQNS_PER_COPY
                if self._copied > _MOST_COPIED or is_short:
                    raise TooMuchCopying
            found = self._sequences[key] = _Sequence(Var(type), values)
            if all(isinstance(v, Row) for v in values):
                self._rows_read[found.element] = key
        return found.element

    def _rows_shaped(self, key: Any, type: ArrayType) -> Var:
        """The element of a sequence of rows in another shape, which costs nothing."""
        rows = [row._replace(type=type) for row in self._sequences[key].values]
        return self._element((*key, type), rows, type)

    def _element_of(self, numbers: Any, type: ArrayType) -> Atom:
        values = [self._value(int(k)) for k in numbers]
        key = ("values", numbers.tobytes())
        if type.ndim and all(isinstance(v, Const) and v.is_splat for v in values):
            numbers_only = [literal(v.value, type.with_shape(())) for v in values if isinstance(v, Const)]
            number = self._element(key, numbers_only, type.with_shape(()))
            return self._body.emit(broadcast, [number], {"shape": type.shape, "dims": ()}, type, self.line)
        return self._element(key, values, type)

    def _runs_backwards(self) -> bool:
        """Whether most bytes of the sequences are read from the last to the first."""
        middle = self.run.steps // 2
        total = 0
        for column in self.run.columns:
            if isinstance(column, Values):
                a, b = (self._value(int(column.numbers[k])) for k in (middle, middle + 1))
                if isinstance(a, Row) and isinstance(b, Row) and a.array is b.array:
                    total += int(np.sign(b.place - a.place)) * a.type.nbytes
        return total < 0

    # Reads and writes at places that change

    def _at_moving_place(self, eqn: Eqn, operands: list[Any], place: Any) -> Atom:
        moving = (place != place[0]).any(axis=0)
        (output,) = eqn.outputs
        if eqn.primitive is slice_ and isinstance(operands[0], _Fixed) and not moving[1:].any() and moving[0]:
            row = self._row_of_fixed(eqn, operands[0].atom, place[:, 0])
            if row is not None:
                return row
        used = [self._inside(x) for x in operands]
        source, *rest = used
        if eqn.primitive is pad:
            source, rest = self._filled(used[1], output.type, eqn), [used[0]]
        part = output.type.shape if eqn.primitive is slice_ else rest[0].type.shape
        whole = source.type.shape
        placed = [k for k in range(len(whole)) if moving[k] or part[k] != whole[k]]
        axes = range(placed[0], placed[-1] + 1)
        if all(part[k] == 1 for k in axes):
            indices = [self._index(place[:, k]) for k in axes]
            return self._at_indices(eqn, source, rest, indices, axes)
        starts = [self._index(place[:, k]) for k in range(len(whole))]
        if eqn.primitive is slice_:
            return self._body.emit(dynamic_slice, [source, *starts], {"sizes": part}, output.type, eqn.line)
        primitive = dynamic_add if eqn.primitive is add_slice else dynamic_set
        return self._body.emit(primitive, [source, rest[0], *starts], {}, output.type, eqn.line)

    def _row_of_fixed(self, eqn: Eqn, array: Atom, rows: Any) -> Atom | None:
        """A row of an array that stays the same, as an element of a sequence; None if the rows are wider."""
        (output,) = eqn.outputs
        if output.type.shape[0] != 1 or not isinstance(array, Var):
            return None
        if output.type.shape[1:] != array.type.shape[1:]:
            params = {
                "start": (0, *eqn.params["start"][1:]),
                "limit": (array.type.shape[0], *eqn.params["limit"][1:]),
                "strides": (1,) * array.type.ndim,
            }
            part = ("part of", array, params["start"], params["limit"])
            type = array.type.with_shape((array.type.shape[0], *output.type.shape[1:]))
            if part not in self._parts:
                self._parts[part] = self._writer.emit(slice_, [array], params, type, eqn.line)
            array = self._parts[part]
        return self._element(
            ("rows of", array, rows.tobytes()), [Row(array, int(k), output.type) for k in rows], output.type
        )

    def _filled(self, value: Atom, type: ArrayType, eqn: Eqn) -> Atom:
        """An array filled with what an equation pads with."""
        if isinstance(value, Const):
            return literal(value.value[()], type)
        return self._body.emit(broadcast, [value], {"shape": type.shape, "dims": ()}, type, eqn.line)

    def _at_indices(self, eqn: Eqn, source: Atom, rest: list[Atom], indices: list[Atom], axes: range) -> Atom:
        """The same for a part that has one element along the axes where it is placed."""
        (output,) = eqn.outputs
        part = output.type if eqn.primitive is slice_ else rest[0].type
        less = part.with_shape(tuple(n for k, n in enumerate(part.shape) if k not in axes))
        if eqn.primitive is slice_:
            found = self._body.emit(gather, [source, *indices], {"axis": axes[0]}, less, eqn.line)
            return self._body.shaped(found, output.type, eqn.line)
        update = self._body.emit(reshape, rest[:1], {"shape": less.shape}, less, eqn.line)
        if eqn.primitive is add_slice:
            return self._body.emit(scatter_add, [source, update, *indices], {"axis": axes[0]}, output.type, eqn.line)
        params = {"axis": axes[0], "unique": False}
        return self._body.emit(scatter_set, [source, update, *indices], params, output.type, eqn.line)

    def _index(self, column: Any) -> Atom:
        """The place along one axis: columns with equal differences are one sequence."""
        first = int(column[0])
        offsets = column - first
        if not offsets.any():
            return literal(first, _INDEX)
        step = self._element(("places", offsets.tobytes()), offsets, _INDEX)
        if not first:
            return step
        key = (step, first)
        if key not in self._indices:
            self._indices[key] = self._body.emit(add, [step, literal(first, _INDEX)], {}, _INDEX, self.line)
        return self._indices[key]

    # The equation of the loop

    def _result(self, number: int) -> Atom:
        """A result of a step, as the body has it."""
        return self._inside(self._results[number])

    def _finish(self) -> dict[int, Value]:
        run, last = self.run, self.run.steps - 1
        carries: list[Var] = []
        initial: list[Atom] = []
        following: list[Atom] = []
        final: dict[int, int] = {}
        for longest, chain in self._chains.items():
            for lag, var in enumerate(chain, 1):
                carries.append(var)
                initial.append(self._writer.atom(self._value(longest.initial[-lag]), self.line))
                following.append(self._result(longest.result) if lag == 1 else chain[lag - 2])
                if lag == 1:
                    final.setdefault(longest.result, len(carries) - 1)
        rows = []
        values: dict[int, Value] = {}
        for result, steps in run.uses.items():
            fixed = self._results[result]
            if isinstance(fixed, _Fixed):
                values.update((run.base + step * run.width + result, fixed.atom) for step in steps)
            elif steps != [last]:
                rows.append(result)
            elif result not in final:
                # What only the last step leaves is a carry that no step reads.
                final[result] = len(carries)
                carries.append(Var(fixed.type))
                initial.append(literal(0, fixed.type))
                following.append(fixed)
        self._carry_over(carries, initial, following, rows)
        read = {a for eqn in self._body.eqns for a in eqn.operands} | set(following) | {self._result(r) for r in rows}
        sequences = [s for s in self._sequences.values() if s.element in read]
        body = self._rolled(
            Program(
                "step",
                [*self._fixed.values(), *carries, *(s.element for s in sequences)],
                self._body.eqns,
                [*following, *map(self._result, rows)],
            )
        )
        arrays = [self._array(s) for s in sequences]
        params = scan_params(body, run.steps, self._backwards, 1, len(self._fixed), len(carries))
        finals = [Var(a.type) for a in initial]
        types = [self._result(r).type for r in rows]
        stacked = [Var(t.with_shape((run.steps, *t.shape))) for t in types]
        operands = (*self._fixed, *initial, *arrays)
        self._writer.eqns.append(Eqn(scan, operands, params, (*finals, *stacked), self.line))
        for result, carry in final.items():
            values[run.base + last * run.width + result] = finals[carry]
        for result, array, type in zip(rows, stacked, types, strict=True):
            for step in run.uses[result]:
                row = last - step if self._backwards else step
                values[run.base + step * run.width + result] = Row(array, row, type)
        return values

    def _carry_over(self, carries: list[Var], initial: list[Atom], following: list[Atom], rows: Sequence[int]) -> None:
        """Carry what a step would compute again that the one before has computed."""
        fixed = list(self._fixed.values())
        found = find_carried_over(self._body.eqns, fixed, carries, following, list(map(self._result, rows)))
        if found is None:
            return
        # The same equations, for what the carries begin with.
        new: dict[Atom, Atom] = dict(zip(fixed, self._fixed, strict=True))
        new.update(zip(carries, initial, strict=True))
        for eqn in found.before:
            outputs = tuple([Var(v.type) for v in eqn.outputs])
            operands = tuple([new.get(a, a) for a in eqn.operands])
            self._writer.eqns.append(Eqn(eqn.primitive, operands, eqn.params, outputs, eqn.line))
            new.update(zip(eqn.outputs, outputs, strict=True))
        self._body.eqns = found.eqns
        carries += found.values
        initial += [new[v] for v in found.values]
        following += found.following

    def _array(self, sequence: _Sequence) -> Atom:
        values = sequence.values[::-1] if self._backwards else sequence.values
        if isinstance(values, np.ndarray):
            return Const(np.ascontiguousarray(values), ArrayType(values.shape, values.dtype))
        return self._writer.stacked(values, sequence.element.type, self.line)


def _chains(run: Run) -> dict[Earlier, Earlier]:
    """For each value of earlier steps, the chain of carries that it is on: its own, or a longer one."""
    found: dict[Earlier, Earlier] = {}
    earlier = {column for column in run.columns if isinstance(column, Earlier) and column.lag}
    for column in sorted(earlier, key=lambda c: -c.lag):
        longer = (c for c in found.values() if c.result == column.result and c.initial[-column.lag :] == column.initial)
        found[column] = next(longer, column)
    return found


class _Fixed(NamedTuple):
    """An operand that is the same value in all steps."""

    atom: Atom


def _can_move_out(eqn: Eqn, operands: list[Any]) -> bool:
    return all(isinstance(x, _Fixed) for x in operands) and not (
        isinstance(eqn.primitive, UserCode) or any(map(calls_user_code, programs_in(eqn.params)))
    )


class _Sequence(NamedTuple):
    """The element of a sequence in the body, and what the elements are: values of the program, or integers."""

    element: Var
    values: Any
