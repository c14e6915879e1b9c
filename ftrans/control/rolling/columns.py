"""Equations as rows of numbers: what many have in common is a form, and the rest is the numbers of their operands.

A long loop of Python writes equations of few forms.  An equation takes about 50 bytes here, and many times that as
objects of Python.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from ...base.source import Line
from ...core.primitive import Primitive
from ...core.program import Atom, Const, Eqn, Params, Program, Var
from ...core.types import ArrayType

# Larger constants are told apart by identity.
_MOST_COMPARED = 1024


class Form(NamedTuple):
    """What equations have in common that differ in their operands only."""

    primitive: Primitive
    line: Line | None
    params: Params
    types: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]


class Columns(Sequence[Eqn]):
    """A sequence of equations, each of which is made again when it is read.

    Results have numbers from 0, in their order.  Other atoms have negative ones: inputs, and constants, of which equal
    ones have the same.

    Attributes:
        forms: the forms.
        outer: the inputs and constants; number -1 - i stands for `outer[i]`.
        form: for each equation, which of the forms it has.
        operands: the numbers of the operands of all equations, one after another.

    Args:
        eqns: the first equations.
    """

    def __init__(self, eqns: Iterable[Eqn] = ()) -> None:
        self.forms: list[Form] = []
        self.outer: list[Atom] = []
        self.form = array("q")
        self.operands = array("q")
        # The number of results, and where the operands and results of each equation begin, once somebody asks.
        self._count = 0
        self._begins: tuple[Any, Any] | None = None
        # The numbers of atoms, without those of variables that are out of use; and variables that were in use later.
        self._numbers: dict[Atom, int] = {}
        self._vars: dict[int, Var] = {}
        self._of_constants: dict[Hashable, int] = {}
        self._of_params: dict[Hashable, int] = {}
        self._of_forms: dict[Hashable, int] = {}
        self._add(eqns)
        self._keep(self._numbers, 0)

    @property
    def starts(self) -> Any:
        """Where the operands of each equation begin, and the end."""
        return self._all_begins()[0]

    @property
    def first(self) -> Any:
        """The number of the first result of each equation, and the count of all."""
        return self._all_begins()[1]

    def number(self, atom: Atom) -> int:
        """The number of an atom; one that is not known yet is an input or a constant."""
        found = self._numbers.get(atom)
        if found is None:
            same = same_constant(atom) if isinstance(atom, Const) else atom
            found = self._of_constants.get(same)
            if found is None:
                found = self._of_constants[same] = -1 - len(self.outer)
                self.outer.append(atom)
            self._numbers[atom] = found
        return found

    def take(self, eqns: list[Eqn]) -> None:
        """Move equations here out of a list; their results go, except those that something else refers to."""
        # The first variable, which nothing else refers to, shows how many references there are in any case.
        results = [Var(ArrayType((), np.float64))]
        self._numbers[results[0]] = 0
        results.extend([v for eqn in eqns for v in eqn.outputs])
        self._add(eqns)
        eqns.clear()
        fewest = None
        for var in results:
            count = sys.getrefcount(var)
            fewest = fewest or count
            number = self._numbers[var]
            if count > fewest:
                self._vars[number] = var
            else:
                del self._numbers[var]

    def extend(self, others: Columns) -> None:
        """Add the equations of others, which may use the results of these."""
        forms = np.array([self._number_of_form(form) for form in others.forms], np.int64)
        outer = np.array([0, *map(self.number, reversed(others.outer))], np.int64)
        operands, shift = np.array(others.operands), self._count
        # The last one of the outer atoms has the lowest number.
        moved = np.where(operands < 0, outer[np.minimum(operands, -1)], operands + shift)
        self.form.frombytes(forms[np.array(others.form)].astype(np.int64).tobytes())
        self.operands.frombytes(moved.astype(np.int64).tobytes())
        self._count += others._count
        self._begins = None
        self._keep(others._numbers, shift)

    def defining(self, atom: Atom) -> Eqn | None:
        """The equation that defines a variable; None for an input or a constant."""
        number = self._numbers.get(atom, -1)
        return None if number < 0 else self[int(np.searchsorted(self.first, number, side="right")) - 1]

    def __len__(self) -> int:
        return len(self.form)

    @overload
    def __getitem__(self, index: int) -> Eqn: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Eqn]: ...

    def __getitem__(self, index: int | slice) -> Eqn | Sequence[Eqn]:
        found = range(len(self.form))[index]
        return [self._made(i) for i in found] if isinstance(found, range) else self._made(found)

    def _add(self, eqns: Iterable[Eqn]) -> None:
        numbers, of_params, count = self._numbers, self._of_params, self._count
        forms, operands = [], []
        for eqn in eqns:
            atoms = eqn.operands
            types = tuple([a.type for a in atoms])
            # Equations of one line often share their parameters.
            form = of_params.get((eqn.primitive, eqn.line, id(eqn.params), types))
            forms.append(self._form(eqn, types) if form is None else form)
            for atom in atoms:
                number = numbers.get(atom)
                operands.append(self.number(atom) if number is None else number)
            for var in eqn.outputs:
                numbers[var] = count
                count += 1
        self.form.extend(forms)
        self.operands.extend(operands)
        self._count, self._begins = count, None

    def _keep(self, numbers: dict[Atom, int], shift: int) -> None:
        """Keep the variables among atoms, which outputs of the program may be, with their numbers moved."""
        found = [(a, n + shift) for a, n in numbers.items() if isinstance(a, Var) and n >= 0]
        self._numbers.update(found)
        self._vars.update((number, var) for var, number in found)

    def _form(self, eqn: Eqn, types: tuple[ArrayType, ...]) -> int:
        results = tuple([v.type for v in eqn.outputs])
        found = self._number_of_form(Form(eqn.primitive, eqn.line, eqn.params, types, results))
        if self.forms[found].params is eqn.params:
            # The form keeps the parameters, so that their `id` is not used again.
            self._of_params[eqn.primitive, eqn.line, id(eqn.params), types] = found
        return found

    def _number_of_form(self, form: Form) -> int:
        key = (form.primitive, form.line, distinct(tuple(form.params.items())), form.types, form.results)
        found = self._of_forms.get(key)
        if found is None:
            found = self._of_forms[key] = len(self.forms)
            self.forms.append(form)
        return found

    def _all_begins(self) -> tuple[Any, Any]:
        if self._begins is None:
            forms = np.array(self.form, np.int64)
            counts = np.array([(len(form.types), len(form.results)) for form in self.forms], np.int64).reshape(-1, 2)
            starts, first = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(counts[forms], axis=0)]).T
            self._begins = starts, first
        return self._begins

    def _made(self, i: int) -> Eqn:
        form = self.forms[self.form[i]]
        numbers = self.operands[self.starts[i] : self.starts[i + 1]]
        operands = tuple([self._atom(n, t) for n, t in zip(numbers, form.types, strict=True)])
        outputs = tuple([self._var(n, t) for n, t in enumerate(form.results, int(self.first[i]))])
        return Eqn(form.primitive, operands, form.params, outputs, form.line)

    def _atom(self, number: int, type: ArrayType) -> Atom:
        return self.outer[-1 - number] if number < 0 else self._var(number, type)

    def _var(self, number: int, type: ArrayType) -> Var:
        found = self._vars.get(number)
        if found is None:
            found = self._vars[number] = Var(type)
            self._numbers[found] = number
        return found


def extended(
    program: Program, inputs: Sequence[Var], before: Sequence[Eqn], behind: Sequence[Eqn], outputs: Sequence[Atom]
) -> Program:
    """A program with further equations before and behind its own."""
    if not isinstance(program.recorded, Columns):
        return Program(program.name, inputs, (*before, *program.recorded, *behind), outputs)
    columns = Columns(before)
    columns.extend(program.recorded)
    columns.extend(Columns(behind))
    longer = Program(program.name, inputs, (), outputs)
    longer.recorded = columns
    return longer


def same_constant(const: Const) -> Hashable:
    """What equal constants have in common."""
    if const.is_splat or const.type.size <= _MOST_COMPARED:
        return const.type, const.value.tobytes()
    return id(const)


def distinct(value: Any) -> Hashable:
    """A value of parameters, compared as what it is: True == 1 and 0.0 == -0.0."""
    if isinstance(value, tuple):
        return tuple([distinct(v) for v in value])
    return type(value), repr(value) if isinstance(value, float) else value
