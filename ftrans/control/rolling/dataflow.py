"""How the operands of a repeating stretch of equations change from step to step, and so which loop it is.

Within a stretch, operands form a table with a row for each step and a column for each operand of a step.  From two rows
in the middle it shows what a column is: the same value in all steps, the value that an equation had a fixed number of
steps ago, or a sequence of values from before the loop.  Steps at either end that do not fit stay outside of the loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ops.parts import pad
from .numbering import Numbered

# A column whose value changes only in so many steps at the ends is a value that stays the same.
_MOST_ODD_STEPS = 3
# A value of so many steps ago is still carried from step to step.
_LONGEST_LAG = 32
_MOST_TRIALS = 6
# What a carried value costs beside its bytes.
_BYTES_OF_A_CARRY = 16


class Same(NamedTuple):
    """The operand is the same value in all steps."""

    number: int


class Earlier(NamedTuple):
    """The operand is result number `result` of a step, `lag` steps ago; before the loop, the values of `initial`."""

    lag: int
    result: int
    initial: tuple[int, ...]


class Values(NamedTuple):
    """The operand is another value from before the loop in each step."""

    numbers: Any


Column = Same | Earlier | Values


class Kinds(NamedTuple):
    """Which columns are of which kind, and the steps for which that is so."""

    same: Any
    earlier: Any
    low: int
    high: int


class Run(NamedTuple):
    """A stretch of equations that is a loop.

    Attributes:
        start: its first equation.
        period: the number of equations of a step.
        steps: the number of steps.
        base: the number of its first value.
        width: the number of values of a step.
        columns: what each operand of a step is.
        places: for each equation of a step that reads or writes at a place that changes, the place in each step.
        uses: for each result of a step that is used behind the loop, the steps of which it is.
    """

    start: int
    period: int
    steps: int
    base: int
    width: int
    columns: list[Column]
    places: dict[int, Any]
    uses: dict[int, list[int]]

    @property
    def has_carries(self) -> bool:
        """Whether a step needs values of earlier ones."""
        return any(isinstance(column, Earlier) and column.lag for column in self.columns)

    @property
    def stop(self) -> int:
        """The equation behind the loop."""
        return self.start + self.steps * self.period

    @property
    def saved(self) -> int:
        """How many equations fewer the loop has."""
        return (self.steps - 1) * self.period


def find_run(numbered: Numbered, begin: int, period: int, end: int, least: int) -> Run | None:
    """The loop that a repeating stretch is, perhaps without some steps at its ends; None if it is none."""
    if (end - begin) // period < least:
        return None
    phase = _cheapest_phase(numbered, begin, period, (end - begin) // period)
    for start in dict.fromkeys([begin + phase, begin]):
        steps = (end - start) // period
        for _ in range(_MOST_TRIALS):
            if steps < least:
                break
            kinds = _classify(numbered, start, period, steps)
            if kinds is None:
                break
            if kinds.low == 0 and kinds.high == steps:
                return _run(numbered, start, period, steps, kinds)
            start, steps = start + kinds.low * period, kinds.high - kinds.low
    return None


def _classify(numbered: Numbered, start: int, period: int, steps: int) -> Kinds | None:
    """The kinds of the columns; None if a step reads values of other steps in no regular way."""
    base = int(numbered.first[start])
    width = int(numbered.first[start + period]) - base
    table = numbered.table(start, period, steps)
    middle = steps // 2 - 1
    row, following = table[middle], table[middle + 1]
    same = row == following
    earlier = ~same & (following - row == width) & (row >= base)
    low, high = 0, steps
    odd = np.zeros(table.shape, np.bool_)
    if earlier.any():
        expected = row[earlier] + (np.arange(steps)[:, None] - middle) * width
        given = table[:, earlier]
        # In its first steps a loop reads what was there before.
        odd[:, earlier] = (given != expected) & ~((expected < base) & (given < base))
        lags = middle - (row[earlier] - base) // width
        if (lags > _LONGEST_LAG).any():
            return None
    odd[:, same] = table[:, same] != row[same]
    for column in np.flatnonzero(same):
        steps_odd = np.flatnonzero(odd[:, column])
        first, last = steps_odd[steps_odd <= middle], steps_odd[steps_odd > middle]
        if (len(first) and first[-1] >= _MOST_ODD_STEPS) or (len(last) and last[0] < steps - _MOST_ODD_STEPS):
            same[column] = False
            odd[:, column] = False
        elif row[column] >= base:
            # It is a value of an early step of the stretch itself.
            low = max(low, int((row[column] - base) // width) + 1)
    for column in np.flatnonzero(~same & ~earlier):
        inside = np.flatnonzero(table[:, column] >= base)
        if not len(inside):
            continue
        needed = int(((table[inside, column] - base) // width).max()) + 1
        if needed <= _MOST_ODD_STEPS:
            low = max(low, needed)
        elif inside[0] >= steps - _MOST_ODD_STEPS:
            high = min(high, int(inside[0]))
        else:
            return None
    steps_odd = np.flatnonzero(odd.any(axis=1))
    first, last = steps_odd[steps_odd <= middle], steps_odd[steps_odd > middle]
    if len(first):
        low = max(low, int(first[-1]) + 1)
    if len(last):
        high = min(high, int(last[0]))
    return Kinds(same, earlier, low, high)


def _cheapest_phase(numbered: Numbered, begin: int, period: int, steps: int) -> int:
    """Which equation of the stretch a step should begin with, so that the fewest bytes are carried."""
    kinds = _classify(numbered, begin, period, steps)
    if kinds is None:
        return 0
    first = numbered.first[begin : begin + period + 1]
    base, width = int(first[0]), int(first[-1] - first[0])
    middle = steps // 2
    row = numbered.table(begin, period, steps)[middle]
    producers = np.repeat(np.arange(period), np.diff(first))
    users = np.repeat(np.arange(period), np.diff(numbered.starts[begin : begin + period + 1]))
    spans: dict[int, int] = {}
    for column in np.flatnonzero(kinds.earlier):
        lag, result = middle - (int(row[column]) - base) // width, (int(row[column]) - base) % width
        span = int(users[column]) + lag * period - int(producers[result])
        spans[result] = max(spans.get(result, 0), span)
    changes = np.zeros(2 * period + 2)
    for result, span in spans.items():
        producer = int(producers[result])
        outputs = numbered.eqns[begin + producer].outputs
        cost = _BYTES_OF_A_CARRY + outputs[result - int(first[producer] - first[0])].type.nbytes
        changes[producer + 1] += cost
        changes[producer + span % period + 1] -= cost
    carried = np.cumsum(changes)
    return int(np.argmin(carried[:period] + carried[period : 2 * period]))


def _run(numbered: Numbered, start: int, period: int, steps: int, kinds: Kinds) -> Run:
    base = int(numbered.first[start])
    width = int(numbered.first[start + period]) - base
    table = numbered.table(start, period, steps)
    columns: list[Column] = []
    for column in range(table.shape[1]):
        numbers = table[:, column]
        if kinds.same[column]:
            columns.append(Same(int(numbers[0])))
        elif kinds.earlier[column]:
            at = int(numbers[-1]) - base
            lag = steps - 1 - at // width
            columns.append(Earlier(lag, at % width, tuple(numbers[:lag].tolist())))
        else:
            columns.append(Values(numbers))
    places = {}
    for j in range(period):
        if numbered.moves[start + j]:
            place = "before" if numbered.eqns[start + j].primitive is pad else "start"
            steps_of_j = range(start + j, start + j + steps * period, period)
            found = np.array([numbered.params(i)[place] for i in steps_of_j], np.int64)
            if (found != found[0]).any():
                places[j] = found
    first, last = int(numbered.starts[start]), int(numbered.starts[start + steps * period])
    used = np.unique(np.concatenate([numbered.operands[:first], numbered.operands[last:], numbered.outputs]))
    used = used[(used >= base) & (used < base + steps * width)] - base
    uses: dict[int, list[int]] = {}
    for number in used.tolist():
        uses.setdefault(number % width, []).append(number // width)
    return Run(start, period, steps, base, width, columns, places, uses)
