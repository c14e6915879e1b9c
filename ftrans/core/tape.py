"""Tape: the equations that a builder has recorded; here a list, in `trie` a path that programs share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..base.source import Line
from .program import Atom, Const, Eqn, Params, Program, Var
from .types import ArrayType


class Tape:
    """The equations of one program, in a list.

    Attributes:
        inputs: the variables of its explicit inputs.
        definitions: the equations by the variables that they define.
        is_shared: whether other programs with the same beginning use the same tape.
    """

    is_shared = False

    def __init__(self, types: Iterable[ArrayType]) -> None:
        self.inputs = tuple([Var(t) for t in types])
        self.definitions: dict[Atom, Eqn] = {}
        self._eqns: list[Eqn] = []

    def add(self, primitive: Any, atoms: Sequence[Atom], params: Params, line: Line | None) -> Eqn:
        """Append an equation; its results are new variables."""
        types = primitive.output_types([a.type for a in atoms], params)
        eqn = Eqn(primitive, tuple(atoms), params, tuple([Var(t) for t in types]), line)
        self._eqns.append(eqn)
        for var in eqn.outputs:
            self.definitions[var] = eqn
        return eqn

    def repeat(self, eqn: Eqn, atoms: Sequence[Atom]) -> Eqn:
        """Append an equation of another program, with operands of the same types."""
        # The types of the results are known, so the type rule need not run again.
        new = Eqn(eqn.primitive, tuple(atoms), eqn.params, tuple([Var(v.type) for v in eqn.outputs]), eqn.line)
        self._eqns.append(new)
        for var in new.outputs:
            self.definitions[var] = new
        return new

    def attribute(self, eqn: Eqn, line: Line | None) -> None:
        """Give an equation of this tape another line; possible until a program holds the equation."""
        assert not self.is_shared
        eqn.line = line

    def capture(self, type: ArrayType) -> Var:
        """Add an input, and return its variable."""
        return Var(type)

    def varies(self, number: Const) -> bool:
        """Whether a number at this place is an input, because it has had other values in other calls."""
        return False

    def eqns(self) -> Sequence[Eqn]:
        """The equations so far."""
        return self._eqns

    def backwards(self) -> Iterator[Eqn]:
        """The equations so far, the latest first."""
        return reversed(self._eqns)

    def program(self, name: str, captured: Sequence[Var], outputs: tuple[Atom, ...]) -> Program:
        """The program of these equations; its inputs are the explicit ones, then the captured ones."""
        return Program(name, (*self.inputs, *captured), self._eqns, outputs)
