"""Whether the loops of Python that a function was traced through are loops again when its program runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ..control.rolling.rolled import rolled
from ..core.program import Atom, Eqn, Program, Var
from ..ops.parts import concatenate
from ..ops.shapes import reshape

_FEWEST_PACKED = 8

# Whether programs are rolled as for compiling; None to decide by whether they will be compiled.
_wanted: ContextVar[bool | None] = ContextVar("rolling", default=None)


def as_it_runs(program: Program, is_compiled: bool) -> Program:
    """A program as it was traced, in the form that is transformed and run."""
    wanted = _wanted.get()
    return program if wanted is False else rolled(program, is_compiled or bool(wanted))


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
    """

    groups: list[list[int]]

    @classmethod
    def of(cls, program: Program, count: int) -> tuple[Program, PackedGuards]:
        """A program whose last `count` outputs are guards, with packed ones, and where they are."""
        split = len(program.outputs) - count
        outputs, guards = program.outputs[:split], program.outputs[split:]
        by_type: dict[Any, list[int]] = {}
        for i, atom in enumerate(guards):
            by_type.setdefault(atom.type, []).append(i)
        eqns: list[Eqn] = []
        groups: list[list[int]] = []
        packed: list[Atom] = []
        for group in by_type.values():
            if len(group) < _FEWEST_PACKED:
                groups.extend([i] for i in group)
                packed.extend(guards[i] for i in group)
            else:
                groups.append(group)
                packed.append(_stacked([guards[i] for i in group], eqns))
        if not eqns:
            return program, cls([[i] for i in range(count)])
        return Program(program.name, program.inputs, (*program.eqns, *eqns), (*outputs, *packed)), cls(groups)

    def values(self, outputs: Sequence[Any]) -> list[Any]:
        """The values of all guards, in their order."""
        found: list[Any] = [None] * sum(map(len, self.groups))
        for output, group in zip(outputs, self.groups, strict=True):
            for i, value in zip(group, [output] if len(group) == 1 else np.asarray(output), strict=True):
                found[i] = value
        return found


def _stacked(atoms: Sequence[Atom], eqns: list[Eqn]) -> Var:
    type = atoms[0].type
    rows = []
    for atom in atoms:
        row = Var(type.with_shape((1, *type.shape)))
        eqns.append(Eqn(reshape, (atom,), {"shape": row.type.shape}, (row,), None))
        rows.append(row)
    stacked = Var(type.with_shape((len(atoms), *type.shape)))
    eqns.append(Eqn(concatenate, tuple(rows), {"axis": 0}, (stacked,), None))
    return stacked
