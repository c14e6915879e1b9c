"""A program as arrays of numbers, in which repetition is a matter of comparing rows.

Each value has a number: first the inputs of the program, then the results of its equations in order.  Constants have
negative numbers, equal ones the same.  Each equation has a key; equations with equal keys differ at most in their
operands and in the place of a slice.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ...core.program import Atom, Const, Eqn, Params, Program, Var
from ...ops.parts import pad, slice_
from ...ops.slices import add_slice, set_slice

# Larger constants are told apart by identity.
_MOST_COMPARED = 1024
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
        self.eqns = program.eqns
        self.constants: list[Const] = []
        self.moves: list[bool] = []
        numbers: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}
        of_constants: dict[Any, int] = {}
        known: dict[Any, int] = {}
        keys, operands, starts, first = [], [], [0], []
        count = len(program.inputs)

        def number(atom: Atom) -> int:
            found = numbers.get(atom)
            if found is None:
                assert isinstance(atom, Const)
                same = _same_constant(atom)
                found = of_constants.get(same)
                if found is None:
                    found = of_constants[same] = -1 - len(self.constants)
                    self.constants.append(atom)
                numbers[atom] = found
            return found

        for eqn in self.eqns:
            moves = has_movable_place(eqn)
            self.moves.append(moves)
            types = (*[a.type for a in eqn.operands], *[v.type for v in eqn.outputs])
            key = (eqn.primitive, eqn.line, moves or _comparable(eqn.params), types)
            keys.append(known.setdefault(key, len(known)))
            operands.extend([number(a) for a in eqn.operands])
            starts.append(len(operands))
            first.append(count)
            for var in eqn.outputs:
                numbers[var] = count
                count += 1
        first.append(count)
        self.keys = np.array(keys, np.int64)
        self.operands = np.array(operands, np.int64)
        self.starts = np.array(starts, np.int64)
        self.first = np.array(first, np.int64)
        self.outputs = np.array([number(a) for a in program.outputs], np.int64)

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


def has_movable_place(eqn: Eqn) -> bool:
    """Whether an equation reads or writes a part at a place that could as well be an operand."""
    params = eqn.params
    if eqn.primitive is pad:
        return not any(params["interior"]) and all(n >= 0 for n in (*params["before"], *params["after"]))
    if eqn.primitive in (slice_, set_slice, add_slice):
        part = (eqn.outputs[0] if eqn.primitive is slice_ else eqn.operands[1]).type.shape
        return 0 not in part and all(s == 1 or n == 1 for s, n in zip(params["strides"], part, strict=True))
    return False


def _same_constant(const: Const) -> Hashable:
    """What equal constants have in common."""
    if const.is_splat or const.type.size <= _MOST_COMPARED:
        return const.type, const.value.tobytes()
    return id(const)


def _comparable(params: Params) -> Hashable:
    """Parameters, with what can be compared in the place of programs."""
    return tuple([(name, _comparable_value(value)) for name, value in params.items()])


def _comparable_value(value: Any) -> Hashable:
    if isinstance(value, Program):
        return _structure(value)
    if isinstance(value, tuple):
        return tuple([_comparable_value(v) for v in value])
    # True == 1 and 0.0 == -0.0, and yet they are different parameters.
    return value.__class__, repr(value) if isinstance(value, float) else value


def _structure(program: Program) -> Hashable:
    """What programs have in common that differ only in the identity of their variables."""

    def make() -> Hashable:
        numbers: dict[Var, int] = {}

        def name(atom: Atom) -> Hashable:
            return numbers.setdefault(atom, len(numbers)) if isinstance(atom, Var) else _same_constant(atom)

        inputs = tuple([(v.type, name(v)) for v in program.inputs])
        eqns = tuple(
            [
                (q.primitive, q.line, tuple(map(name, q.operands)), _comparable(q.params), tuple(map(name, q.outputs)))
                for q in program.eqns
            ]
        )
        # The key is compared often, so it is one object with its hash.
        return _Key((inputs, eqns, tuple(map(name, program.outputs))))

    return program.derive("structure for rolling", make)


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
