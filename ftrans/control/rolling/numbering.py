"""A program as arrays of numbers, in which repetition is a matter of comparing rows.

Each value has a number: first the inputs of the program, then the results of its equations in order.  Constants have
negative numbers, equal ones the same.  Each equation has a key; equations with equal keys differ at most in their
operands and in the place of a slice.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ...core.program import Atom, Const, Params, Program, Var
from ...ops.parts import pad, slice_
from ...ops.slices import add_slice, set_slice
from ..rules.custom_rule import Rule
from .columns import Columns, Form, distinct, same_constant

# By how many neighbours of the same kind a period may be apart: bodies repeat operations.
_NEIGHBOURS = (1, 2, 3, 4, 6, 8, 12, 16)
_MOST_PERIODS = 40


class Numbered:
    """A program whose values and equations have numbers.

    Attributes:
        program: the program.
        eqns: its equations.
        constants: the constants; number -1 - i stands for `constants[i]`.
        keys: the key of each equation.
        operands: the numbers of the operands of all equations, one after another.
        starts: where those of each equation begin, and the end.
        first: the number of the first result of each equation, and the count of all values.
        moves: whether the place that an equation reads or writes may differ between equations of one key.
        outputs: the numbers of the program's outputs.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.eqns = program.recorded
        self._columns = columns = self.eqns if isinstance(self.eqns, Columns) else Columns(self.eqns)
        outputs = [columns.number(a) for a in program.outputs]
        count = len(program.inputs)
        inputs: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}
        self.constants: list[Const] = []
        # The numbers of inputs and constants.
        outer = np.zeros(len(columns.outer) + 1, np.int64)
        for i, atom in enumerate(columns.outer):
            if isinstance(atom, Const):
                self.constants.append(atom)
            outer[i] = -len(self.constants) if isinstance(atom, Const) else inputs[atom]

        def numbers(given: Any) -> Any:
            given = np.array(given, np.int64)
            return np.where(given < 0, outer[np.maximum(-1 - given, 0)], given + count)

        known: dict[Any, int] = {}
        keys, moves = [], []
        for form in columns.forms:
            moves.append(has_movable_place(form))
            key = (form.primitive, form.line, moves[-1] or comparable(form.params), form.types, form.results)
            keys.append(known.setdefault(key, len(known)))
        forms = np.array(columns.form, np.int64)
        self.keys = np.array(keys, np.int64)[forms]
        self.moves = np.array(moves, np.bool_)[forms]
        self.operands = numbers(columns.operands)
        self.starts = np.array(columns.starts, np.int64)
        self.first = np.array(columns.first, np.int64) + count
        self.outputs = numbers(outputs)

    def params(self, i: int) -> Params:
        """The parameters of an equation."""
        return self._columns.forms[self._columns.form[i]].params

    def repetitions(self, least: int, fewest_saved: int) -> list[tuple[int, int, int, int]]:
        """Stretches of equations whose keys repeat: (equations saved, begin, period, end), those that save most first.

        Args:
            least: the fewest steps.
            fewest_saved: the fewest equations that a loop must save.
        """
        found = []
        count = len(self.keys)
        for period in self._periods():
            if (least - 1) * period >= count:
                continue
            same = np.concatenate([[False], self.keys[period:] == self.keys[:-period], [False]])
            edges = np.flatnonzero(same[1:] != same[:-1])
            for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                if b - a >= max((least - 1) * period, fewest_saved):
                    found.append((b - a, a, period, b + period))
        found.sort(key=lambda c: (-c[0], c[2]))
        return found

    def _periods(self) -> list[int]:
        """Distances between equal keys, the most frequent first."""
        order = np.argsort(self.keys, kind="stable")
        ordered = self.keys[order]
        frequency: dict[int, int] = {}
        for k in _NEIGHBOURS:
            if k >= len(order):
                break
            gaps = (order[k:] - order[:-k])[ordered[k:] == ordered[:-k]]
            periods, counts = np.unique(gaps, return_counts=True)
            for i in np.argsort(-counts, kind="stable")[:_MOST_PERIODS]:
                period = int(periods[i])
                frequency[period] = max(frequency.get(period, 0), int(counts[i]))
        return sorted(frequency, key=lambda period: -frequency[period])[: 3 * _MOST_PERIODS]

    def table(self, start: int, period: int, steps: int) -> Any:
        """The operands of `steps` steps of `period` equations, a row for each step."""
        return self.operands[self.starts[start] : self.starts[start + steps * period]].reshape(steps, -1)


def has_movable_place(form: Form) -> bool:
    """Whether an equation reads or writes a part at a place that could as well be an operand."""
    params = form.params
    if form.primitive is pad:
        return not any(params["interior"]) and all(n >= 0 for n in (*params["before"], *params["after"]))
    if form.primitive in (slice_, set_slice, add_slice):
        part = (form.results[0] if form.primitive is slice_ else form.types[1]).shape
        return 0 not in part and all(s == 1 or n == 1 for s, n in zip(params["strides"], part, strict=True))
    return False


def comparable(params: Params, rules: tuple[Rule, ...] = ()) -> Hashable:
    """Parameters, with what can be compared in the place of programs; `rules` are those of which this is a part."""
    return tuple([(name, _comparable_value(value, rules)) for name, value in params.items()])


def _comparable_value(value: Any, rules: tuple[Rule, ...]) -> Hashable:
    if isinstance(value, Program):
        return _structure(value, rules)
    if isinstance(value, tuple):
        return tuple([_comparable_value(v, rules) for v in value])
    if isinstance(value, Rule) and value.stated is not None:
        # A rule may call the function that it is for.
        if value in rules:
            return Rule, rules.index(value)
        # Each call of a function with a rule has traced the rule again.
        rules = (*rules, value)
        return value.name, value.covered, _structure(value.primal, rules), _comparable_value((*value.stated,), rules)
    return distinct(value)


def _structure(program: Program, rules: tuple[Rule, ...]) -> Hashable:
    """What programs have in common that differ only in the identity of their variables."""

    def make() -> Hashable:
        numbers: dict[Var, int] = {}

        def name(atom: Atom) -> Hashable:
            return numbers.setdefault(atom, len(numbers)) if isinstance(atom, Var) else same_constant(atom)

        inputs = tuple([(v.type, name(v)) for v in program.inputs])
        eqns = []
        for q in program.eqns:
            operands, params = tuple(map(name, q.operands)), comparable(q.params, rules)
            eqns.append((q.primitive, q.line, operands, params, tuple(map(name, q.outputs))))
        # The key is compared often, so it is one object with its hash.
        return _Key((inputs, tuple(eqns), tuple(map(name, program.outputs))))

    # In a rule it depends on where it is.
    return make() if rules else program.derive("structure for rolling", make)


class _Key:
    """A large key that remembers its hash."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: Hashable) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._parts == other._parts
