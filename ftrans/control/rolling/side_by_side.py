"""side by side: operations of a program that are equal but for their operands -> one operation on stacked operands.

XLA on a CPU compiles each small operation by itself, in several milliseconds.  The fingers of a hand or the legs of a
robot, one after the other in a loop of Python, are the same operations on other numbers, and not the steps of a loop.

Two equations have the same *history* if they apply the same primitive with the same parameters to operands with the
same histories; for an input, that is the input itself, for a constant, its type, and slices of one shape of an array
are alike wherever they begin.  The history of a result contains those of its operands, so equations with the same one
do not depend on one another, and have the same depth.  Written in the order of depth, each value is there when it is
used.  Equations with the same history are one group if their results are used alike, too: then the groups of operands
and of results have the same members in the same order, and most values never leave the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.source import attributed_to
from ...core.primitive import Moving
from ...core.program import Atom, Const, Eqn, Program, Var
from ...core.tape import Tape
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops.contractions import dot_general
from ...ops.elementwise import Elementwise
from ...ops.parts import concatenate, slice_
from ...ops.shapes import reshape, transpose
from ...transforms.simplify import simplify
from ..rules.host_call import calls_user_code

# XLA compiles shorter programs in little more than a second.
_SHORT = 500
_FEWEST = 4
# To copy larger arrays takes longer than to start an operation: elements of a value, and of a stack.
_MOST_ELEMENTS, _MOST_STACKED = 2048, 1 << 16
# The share of the equations that may be left.
_WORTH = 0.7


def side_by_side(program: Program) -> Program:
    """`program`, which XLA is about to compile, with equal small operations as one, if that makes it much shorter."""
    if len(program.eqns) < _SHORT or calls_user_code(program):
        return program
    return program.derive("side by side", lambda: _if_shorter(program))


def _if_shorter(program: Program) -> Program:
    stacking = _Stacking(program)
    most = _WORTH * len(program.eqns)
    if len(stacking.groups) > most:
        return program
    shorter = simplify(stacking.program())
    return shorter if len(shorter.eqns) <= most else program


class _Stacking:
    """A program that is written again, with groups of equations as one.

    Attributes:
        groups: the equations in the order in which they are written; those of one group are written as one.
    """

    def __init__(self, program: Program) -> None:
        self._source = program
        self._builder = Builder(Tape(program.inputs, program.eqns))
        # For each result of a group, its place in the stack, and the first result.
        self._places: dict[Atom, tuple[int, Atom]] = {}
        self._sizes: dict[Atom, int] = {}
        self._stacks: dict[Atom, Tracer] = {}
        self._values: dict[Atom, Tracer] = {}
        self.groups: list[list[Eqn]] = []
        alike, self._used_alike = _alike(program)
        for eqns in alike:
            if self._can_be_one(eqns):
                first = eqns[0].outputs[0]
                self._places.update((eqn.outputs[0], (i, first)) for i, eqn in enumerate(eqns))
                self._sizes[first] = len(eqns)
                self.groups.append(eqns)
            else:
                self.groups += [[eqn] for eqn in eqns]

    def _can_be_one(self, eqns: list[Eqn]) -> bool:
        first = eqns[0]
        if len(eqns) < _FEWEST or not _may_be_stacked(first) or len(eqns) * _most_elements(first) > _MOST_STACKED:
            return False
        is_used_alike = first.outputs[0] in self._used_alike
        if _are_parts(eqns):
            return is_used_alike and _axis_of_rows(eqns) is not None
        is_stacked = any(self._is_stack(column) for column in _columns(eqns))
        if isinstance(first.primitive, Moving):
            return is_stacked and is_used_alike
        return is_stacked or is_used_alike

    def _is_stack(self, column: Sequence[Atom]) -> bool:
        """Whether these are the results of a group, in order."""
        first = column[0]
        return self._sizes.get(first) == len(column) and all(
            self._places.get(a) == (i, first) for i, a in enumerate(column)
        )

    def program(self) -> Program:
        """The program with the groups."""
        source, builder = self._source, self._builder
        with building(builder):
            self._values.update(zip(source.inputs, builder.inputs(), strict=True))
            for eqns in self.groups:
                if eqns[0].outputs and eqns[0].outputs[0] in self._sizes:
                    self._stacks[eqns[0].outputs[0]] = self._write(eqns)
                else:
                    results = builder.repeat(eqns[0], [self._value(a) for a in eqns[0].operands])
                    self._values.update(zip(eqns[0].outputs, results, strict=True))
            return builder.finish([self._value(a) for a in source.outputs], source.name)

    def _write(self, eqns: list[Eqn]) -> Tracer:
        """The results of a group, along a new leading axis."""
        first = eqns[0]
        columns = _columns(eqns)
        with attributed_to(first.line):
            if _are_parts(eqns):
                return _rows(self._value(columns[0][0]), eqns)
            flags = [not _is_one(column) for column in columns]
            values = [
                self._stack(column) if is_stacked else self._value(column[0])
                for column, is_stacked in zip(columns, flags, strict=True)
            ]
            result: Tracer = first.primitive.batch(len(eqns), values, flags, **first.params)[0]
            return result

    def _stack(self, column: Sequence[Atom]) -> Tracer:
        """Values along a new leading axis."""
        if self._is_stack(column):
            return self._stacks[column[0]]
        arrays = [a.array() for a in column if isinstance(a, Const)]
        if len(arrays) == len(column):
            stacked = np.stack(arrays)
            return Tracer(self._builder, Const(stacked, ArrayType(stacked.shape, stacked.dtype)))
        shape = (1, *column[0].type.shape)
        return concatenate(*[reshape(self._value(a), shape=shape) for a in column], axis=0)

    def _value(self, atom: Atom) -> Tracer:
        """One value, taken from the stack that it is in."""
        if isinstance(atom, Const):
            return Tracer(self._builder, atom)
        found = self._values.get(atom)
        if found is None:
            place, first = self._places[atom]
            stack, shape = self._stacks[first], atom.type.shape
            start, limit = (place, *(0,) * len(shape)), (place + 1, *shape)
            row = slice_(stack, start=start, limit=limit, strides=(1,) * stack.ndim)
            found = self._values[atom] = reshape(row, shape=shape)
        return found


def _alike(program: Program) -> tuple[list[list[Eqn]], set[Atom]]:
    """Equations with the same history whose results are used alike, in an order in which they can be written.

    Returns:
        The equations, and the values that are used by one of several such equations.
    """
    uses: dict[Atom, set[tuple[int, int]]] = {}
    found: list[list[Eqn]] = []
    for eqns in reversed(_with_same_history(program)):
        classes: dict[Any, list[Eqn]] = {}
        for eqn in eqns:
            classes.setdefault(frozenset([use for v in eqn.outputs for use in uses.get(v, ())]), []).append(eqn)
        for members in classes.values():
            found.append(members)
            if len(members) >= _FEWEST:
                for eqn in members:
                    for place, atom in enumerate(eqn.operands):
                        uses.setdefault(atom, set()).add((len(found), place))
    return found[::-1], {*uses}


def _with_same_history(program: Program) -> list[list[Eqn]]:
    """The equations of a program by their histories, in the order of their depth."""
    numbers: dict[Any, int] = {}
    histories: dict[Atom, int] = {}
    depths: dict[Atom, int] = {}
    found: dict[tuple[int, int], list[Eqn]] = {}
    for eqn in program.eqns:
        known = [
            numbers.setdefault(a.type if isinstance(a, Const) else histories.get(a, a), len(numbers))
            for a in eqn.operands
        ]
        history = numbers.setdefault((_operation(eqn), *known), len(numbers))
        depth = 1 + max([depths.get(a, 0) for a in eqn.operands], default=0)
        depths.update(dict.fromkeys(eqn.outputs, depth))
        if len(eqn.outputs) == 1:
            histories[eqn.outputs[0]] = history
        found.setdefault((depth, history), []).append(eqn)
    return [eqns for _, eqns in sorted(found.items(), key=lambda item: item[0])]


def _operation(eqn: Eqn) -> Any:
    """What an equation does, as a part of histories; the equation itself where it is not to be stacked."""
    if not _may_be_stacked(eqn):
        return eqn
    if eqn.primitive is slice_:
        return slice_, eqn.params["strides"], eqn.outputs[0].type
    return (eqn.primitive, *eqn.params.items())


def _may_be_stacked(eqn: Eqn) -> bool:
    primitive = eqn.primitive
    is_known = isinstance(primitive, Elementwise | Moving) or primitive is dot_general
    return is_known and bool(eqn.operands) and _most_elements(eqn) <= _MOST_ELEMENTS


def _most_elements(eqn: Eqn) -> int:
    return max([a.type.size for a in (*eqn.operands, *eqn.outputs)])


def _columns(eqns: Sequence[Eqn]) -> list[tuple[Atom, ...]]:
    """For each operand, that of all equations."""
    return [*zip(*[eqn.operands for eqn in eqns], strict=True)]


def _is_one(column: Sequence[Atom]) -> bool:
    """Whether these are the same value."""
    first = column[0]
    if isinstance(first, Var):
        return all(a is first for a in column)
    value = first.array().tobytes()
    return all(isinstance(a, Const) and (a is first or a.array().tobytes() == value) for a in column)


def _are_parts(eqns: Sequence[Eqn]) -> bool:
    """Whether these are slices that begin at different places."""
    return eqns[0].primitive is slice_ and any(eqn.params != eqns[0].params for eqn in eqns)


def _axis_of_rows(slices: Sequence[Eqn]) -> int | None:
    """The axis along which slices of width one of one array follow one another in equal steps; None if they do not."""
    if not _is_one([eqn.operands[0] for eqn in slices]):
        return None
    starts = np.array([eqn.params["start"] for eqn in slices])
    steps = np.diff(starts, axis=0)
    axes = np.flatnonzero(steps[0])
    if len(axes) != 1 or (steps != steps[0]).any() or steps[0, axes[0]] < 0:
        return None
    axis = int(axes[0])
    return axis if slices[0].outputs[0].type.shape[axis] == 1 else None


def _rows(whole: Tracer, slices: Sequence[Eqn]) -> Tracer:
    """The slices of an array, along a new leading axis."""
    axis = _axis_of_rows(slices)
    assert axis is not None
    first, second, last = (slices[i].params for i in (0, 1, -1))
    strides = [*first["strides"]]
    strides[axis] = second["start"][axis] - first["start"][axis]
    rows = slice_(whole, start=first["start"], limit=last["limit"], strides=tuple(strides))
    axes = (axis, *(i for i in range(rows.ndim) if i != axis))
    return reshape(transpose(rows, axes=axes), shape=(len(slices), *slices[0].outputs[0].type.shape))
