"""A tape for user code, whose loops may write any number of equations: all but the latest are columns of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...base.source import Line
from ...core.program import Atom, Eqn, Params, Program, Var
from ...core.tape import Tape, new_eqn
from ...core.types import ArrayType
from .columns import Columns

# How many of the latest equations stay objects at least, and how many more there may be.
_LATEST = 4096


class LongTape(Tape):
    """The equations of one program, of which long ones take little memory.

    Args:
        types: types of the program's explicit inputs.
    """

    def __init__(self, types: Iterable[ArrayType]) -> None:
        super().__init__(types)
        self._earlier = Columns()

    def add(self, primitive: Any, atoms: Sequence[Atom], params: Params, line: Line | None) -> Eqn:
        if len(self._eqns) >= 2 * _LATEST:
            self._move(_LATEST)
        eqn = new_eqn(primitive, atoms, params, line)
        self._eqns.append(eqn)
        return eqn

    def definition(self, atom: Atom) -> Eqn | None:
        return super().definition(atom) or self._earlier.defining(atom)

    def eqns(self) -> Sequence[Eqn]:
        return [*self._earlier, *self._eqns]

    def backwards(self) -> Iterator[Eqn]:
        yield from reversed(self._eqns)
        yield from reversed(self._earlier)

    def program(self, name: str, captured: Sequence[Var], outputs: tuple[Atom, ...]) -> Program:
        if not self._earlier:
            return super().program(name, captured, outputs)
        self._move(len(self._eqns))
        program = Program(name, (*self.inputs, *captured), (), outputs)
        program.recorded = self._earlier
        return program

    def _move(self, count: int) -> None:
        """Move the first equations to the columns."""
        moved = self._eqns[:count]
        del self._eqns[:count]
        self._definitions, self._entered = {}, 0
        self._earlier.take(moved)
