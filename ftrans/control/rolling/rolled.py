"""rolled: a program that a loop of Python has written -> the same program with `scan` in the place of its repetition.

Python unrolls loops while it is traced, and every step costs derivation, compilation and often run time.  Here the
steps become one body again: `numbering` finds stretches of equations that repeat, `dataflow` what is carried from step
to step, and `loop` writes the `scan`.  On NumPy, the results are the same bits.  Outer loops are found first, inner
ones in the body.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.primitive import Moving
from ...core.program import Eqn, Program, Var
from ...ops.parts import concatenate, slice_
from ...ops.shapes import StructuralPrimitive, reshape
from ...transforms.simplify import without_dead_code
from ..rules.tap import tap
from . import FEWEST_SAVED
from .dataflow import Run, find_run
from .loop import Loop, TooMuchCopying
from .numbering import Numbered
from .rows import Row, Value, Writer

_LEAST_STEPS = 8
# Without carries it becomes operations on arrays, once it is simplified.
_FEWEST_SAVED_BY_ARRAYS = 16
# Few equations on arrays of so many elements compile as fast as their loop, and run on several threads at once.
_FEW_EQNS, _LARGE = 200, 1 << 16
# Un-jitted, a loop is derived sooner, and runs a little slower than straight lines; shorter programs stay as they are.
_SHORT_FOR_NUMPY = 1000


def rolled(program: Program, is_compiled: bool = True) -> Program:
    """`program` with a loop for each stretch of equations that repeats, if loops are worth it.

    Args:
        program: a program as it was traced, before it is simplified or differentiated.
        is_compiled: whether it will be compiled; for NumPy, only long programs are worth it.

    Returns:
        An equivalent program with the same inputs and outputs, or `program` itself.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> def f(x):
        ...     for t in range(100):
        ...         x = x + 0.1 * np.sin(x)
        ...     return x
        >>> len(ft.trace(f)(1.0).eqns), len(rolled(ft.trace(f)(1.0)).eqns)
        (300, 1)
    """
    if len(program.recorded) <= (FEWEST_SAVED if is_compiled else _SHORT_FOR_NUMPY):
        return program
    return program.derive("rolled", lambda: _rolled(program))


def _rolled(program: Program) -> Program:
    if len(program.recorded) <= FEWEST_SAVED:
        return program
    numbered = Numbered(program)
    runs = _choose_runs(numbered)
    return _Rolling(numbered, runs).program() if runs else program


def _choose_runs(numbered: Numbered) -> list[Run]:
    """Loops that do not overlap, in the order of the program; each one saves most of what was left."""
    runs: list[Run] = []
    pending = numbered.repetitions(_LEAST_STEPS, _FEWEST_SAVED_BY_ARRAYS)
    while pending:
        saved, begin, period, end = pending.pop(0)
        for run in runs:
            if begin < run.stop and run.start < end:
                before, behind = (begin, run.start), (run.stop, end)
                begin, end = before if before[1] - before[0] >= behind[1] - behind[0] else behind
        if end - begin < max(_LEAST_STEPS * period, period + _FEWEST_SAVED_BY_ARRAYS):
            continue
        if end - begin - period < saved and pending and pending[0][0] > end - begin - period:
            pending.append((end - begin - period, begin, period, end))
            pending.sort(key=lambda c: (-c[0], c[2]))
            continue
        if not _is_worth_a_loop(numbered.eqns[begin : begin + period]):
            continue
        found = find_run(numbered, begin, period, end, _LEAST_STEPS)
        if found is None or found.saved < (FEWEST_SAVED if found.has_carries else _FEWEST_SAVED_BY_ARRAYS):
            continue
        step = numbered.eqns[found.start : found.start + found.period]
        if not found.has_carries and found.saved <= _FEW_EQNS and _computes_large_arrays(step):
            continue
        runs.append(found)
        for a, b in ((begin, found.start), (found.stop, end)):
            if b - a >= _LEAST_STEPS * period:
                pending.append((b - a - period, a, period, b))
    return sorted(runs, key=lambda run: run.start)


def _is_worth_a_loop(step: Sequence[Eqn]) -> bool:
    """Whether a step computes anything, and may be repeated: a name given by `tap` is for one value."""
    return not all(isinstance(q.primitive, StructuralPrimitive) for q in step) and not any(
        q.primitive is tap for q in step
    )


def _computes_large_arrays(step: Sequence[Eqn]) -> bool:
    return any(v.type.size >= _LARGE and not isinstance(q.primitive, Moving) for q in step for v in q.outputs)


class _Rolling:
    """A program that is written again, with loops."""

    def __init__(self, numbered: Numbered, runs: list[Run]) -> None:
        self._numbered = numbered
        self._runs = runs
        self._writer = Writer()
        self._values: dict[int, Value] = dict(enumerate(numbered.program.inputs))

    def program(self) -> Program:
        source = self._numbered.program
        begin = 0
        for run in self._runs:
            self._keep(begin, run.start)
            begin = run.start
            mark = self._writer.mark()
            try:
                self._values.update(Loop(self._numbered, run, self._value, self._writer, _rolled).write())
                begin = run.stop
            except TooMuchCopying:
                self._writer.undo(mark)
        self._keep(begin, len(source.recorded))
        outputs = [self._writer.atom(self._value(int(k)), None) for k in self._numbered.outputs]
        return without_dead_code(Program(source.name, source.inputs, self._writer.eqns, outputs))

    def _value(self, number: int) -> Value:
        return self._numbered.constants[-1 - number] if number < 0 else self._values[number]

    def _keep(self, begin: int, end: int) -> None:
        for i in range(begin, end):
            self._keep_eqn(i)

    def _keep_eqn(self, i: int) -> None:
        """Keep an equation, unless it only reads rows or joins them again."""
        numbered = self._numbered
        eqn = numbered.eqns[i]
        first = int(numbered.first[i])
        values = [self._value(int(k)) for k in numbered.operands[numbered.starts[i] : numbered.starts[i + 1]]]
        if eqn.primitive is slice_ and _reads_a_row(eqn):
            array = self._writer.atom(values[0], eqn.line)
            if isinstance(array, Var):
                self._values[first] = Row(array, eqn.params["start"][0], eqn.outputs[0].type)
                return
        if eqn.primitive is reshape and isinstance(values[0], Row):
            self._values[first] = values[0]._replace(type=eqn.outputs[0].type)
            return
        if eqn.primitive is concatenate and eqn.params["axis"] == 0 and _are_rows(values):
            self._values[first] = self._writer.joined(values, eqn.outputs[0].type.shape, eqn.line)
            return
        operands = tuple([self._writer.atom(v, eqn.line) for v in values])
        self._writer.eqns.append(Eqn(eqn.primitive, operands, eqn.params, eqn.outputs, eqn.line))
        self._values.update(enumerate(eqn.outputs, first))


def _reads_a_row(eqn: Eqn) -> bool:
    shape, part = eqn.operands[0].type.shape, eqn.outputs[0].type.shape
    return part[:1] == (1,) and shape[0] > 1 and part[1:] == shape[1:]


def _are_rows(values: list[Value]) -> bool:
    return len(values) >= _LEAST_STEPS and 2 * sum(isinstance(v, Row) for v in values) >= len(values)
