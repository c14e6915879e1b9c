"""Whether the loops of Python that a function was traced through are loops again when its program runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ..base.type_questions import is_plain
from ..control.rolling.columns import extended
from ..control.rolling.rolled import rolled
from ..control.rolling.rows import Row, Writer
from ..core.program import Atom, Program, Var
from ..core.trace import Guard
from ..core.types import ArrayType

_FEWEST_PACKED = 8
_FEWEST_STACKED = 8

# Whether programs are rolled as for compiling; None to decide by whether they will be compiled.
_wanted: ContextVar[bool | None] = ContextVar("rolling", default=None)


def as_it_runs(program: Program, is_compiled: bool) -> Program:
    """A program as it was traced, in the form that is transformed and run."""
    wanted = _wanted.get()
    return program if wanted is False else rolled(program, is_compiled or bool(wanted))


def with_stacked_captures(
    program: Program, count: int, captured: list[Any], is_compiled: bool
) -> tuple[Program, list[Any]]:
    """A program that is traced once, as it runs, and its captured values: those that a loop reads in turn are one.

    Args:
        program: the program as it was traced.
        count: how many of its inputs are arguments.
        captured: the values of its other inputs.
        is_compiled: whether it will be compiled.
    """
    by_type: dict[ArrayType, list[int]] = {}
    for i, x in enumerate(captured):
        if is_plain(x, np.ndarray):
            by_type.setdefault(program.inputs[count + i].type, []).append(i)
    groups = [group for group in by_type.values() if len(group) >= _FEWEST_STACKED]
    if groups:
        stacked = _with_stacked(program, count, groups)
        found = as_it_runs(stacked, is_compiled)
        if found is not stacked:
            together = {i for group in groups for i in group}
            alone = [x for i, x in enumerate(captured) if i not in together]
            return found, [*alone, *(np.stack([captured[i] for i in group]) for group in groups)]
    return as_it_runs(program, is_compiled), captured


def _with_stacked(program: Program, count: int, groups: list[list[int]]) -> Program:
    """A program that takes each group of captured values as one array behind the others, and reads them from it."""
    captured = program.inputs[count:]
    arrays, writer = [], Writer()
    for group in groups:
        type = captured[group[0]].type
        array = Var(type.with_shape((len(group), *type.shape)))
        arrays.append(array)
        for row, i in enumerate(group):
            writer.define(captured[i], Row(array, row, type))
    together = {i for group in groups for i in group}
    alone = [v for i, v in enumerate(captured) if i not in together]
    inputs = (*program.inputs[:count], *alone, *arrays)
    return extended(program, inputs, writer.eqns, (), program.outputs)


@contextmanager
def rolling(wanted: bool) -> Iterator[None]:
    """Roll what is traced in this block as for compiling, or leave its loops as they were traced."""
    token = _wanted.set(wanted and _wanted.get() is not False)
    try:
        yield
    finally:
        _wanted.reset(token)


class PackedGuards(NamedTuple):
    """Where a program returns the values of its guards: many of one type share an output, which a loop can write.

    Attributes:
        groups: for each of the last outputs, the guards whose values it holds.
        expected: for each of them, the array that it has to be; None for that of a single guard.
    """

    groups: list[list[int]]
    expected: list[Any]

    @classmethod
    def of(cls, program: Program, guards: Sequence[Guard]) -> tuple[Program, PackedGuards]:
        """A program whose last outputs are guards, with packed ones, and where they are."""
        split = len(program.outputs) - len(guards)
        outputs, atoms = program.outputs[:split], program.outputs[split:]
        by_type: dict[Any, list[int]] = {}
        for i, (atom, guard) in enumerate(zip(atoms, guards, strict=True)):
            by_type.setdefault(i if guard.seen_as is not None else atom.type, []).append(i)
        writer = Writer()
        groups: list[list[int]] = []
        packed: list[Atom] = []
        for group in by_type.values():
            if len(group) < _FEWEST_PACKED:
                groups.extend([i] for i in group)
                packed.extend(atoms[i] for i in group)
            else:
                groups.append(group)
                packed.append(writer.stacked([atoms[i] for i in group], atoms[group[0]].type, None))
        expected = [np.stack([guards[i].expected for i in group]) if group[1:] else None for group in groups]
        if guards:
            program = extended(program, program.inputs, (), writer.eqns, (*outputs, *packed))
        return program, cls(groups, expected)

    def hold(self, outputs: Sequence[Any], guards: Sequence[Guard]) -> bool:
        """Whether all guards have the values that were assumed."""
        return all(
            [
                guards[group[0]].holds_for(output) if expected is None else np.array_equal(output, expected)
                for output, group, expected in zip(outputs, self.groups, self.expected, strict=True)
            ]
        )

    def values(self, outputs: Sequence[Any]) -> list[Any]:
        """The values of all guards, in their order."""
        found: list[Any] = [None] * sum(map(len, self.groups))
        for output, group in zip(outputs, self.groups, strict=True):
            for i, value in zip(group, [output] if len(group) == 1 else np.asarray(output), strict=True):
                found[i] = value
        return found
