"""Tape: the equations that a builder has recorded; here a list, in `trie` a path that programs share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..base.source import Line
from .program import Atom, Const, Eqn, Params, Program, Var
from .types import ArrayType


def new_eqn(primitive: Any, atoms: Sequence[Atom], params: Params, line: Line | None) -> Eqn:
    """An equation whose results are new variables."""
    types = []
    for a in atoms:
        types.append(a.type)
    results = primitive.output_types(types, params)
    outputs = (Var(results[0]),) if len(results) == 1 else tuple(map(Var, results))
    return Eqn(primitive, tuple(atoms), params, outputs, line)


class Tape:
    """The equations of one program, in a list.

    Attributes:
        inputs: the variables of its explicit inputs.
        is_shared: whether other programs with the same beginning use the same tape.

    Args:
        inputs: the explicit inputs: the type of a new variable, or a variable of `source`.
        source: the equations of the program that is transformed.
    """

    is_shared = False

    def __init__(self, inputs: Iterable[ArrayType | Var], source: Iterable[Eqn] = ()) -> None:
        self.inputs = tuple([x if isinstance(x, Var) else Var(x) for x in inputs])
        self._unchanged = set(source)
        self._eqns: list[Eqn] = []
        # Few programs are asked for definitions, so they are entered when somebody asks.
        self._definitions: dict[Atom, Eqn] = {}
        self._entered = 0

    def add(self, primitive: Any, atoms: Sequence[Atom], params: Params, line: Line | None) -> Eqn:
        """Append an equation; its results are new variables."""
        eqn = new_eqn(primitive, atoms, params, line)
        self._eqns.append(eqn)
        return eqn

    def repeat(self, eqn: Eqn, atoms: Sequence[Atom]) -> Eqn:
        """Append an equation of another program, with operands of the same types.

        An equation of `source` with the very operands that it has there is itself a part of both programs.
        """
        operands = tuple(atoms)
        if operands == eqn.operands and eqn in self._unchanged:
            self._unchanged.remove(eqn)
            new = eqn
        else:
            # The types of the results are known, so the type rule need not run again.
            new = Eqn(eqn.primitive, operands, eqn.params, tuple([Var(v.type) for v in eqn.outputs]), eqn.line)
        self._eqns.append(new)
        return new

    def definition(self, atom: Atom) -> Eqn | None:
        """The equation that defines a variable; None for an input or a constant."""
        if self._entered < len(self._eqns):
            for eqn in self._eqns[self._entered :]:
                for var in eqn.outputs:
                    self._definitions[var] = eqn
            self._entered = len(self._eqns)
        return self._definitions.get(atom)

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
