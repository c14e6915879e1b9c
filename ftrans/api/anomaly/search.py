"""The culprit: the equation that produced the first NaN or infinity on which a non-finite result depends.

The program runs once more on NumPy, equation by equation.  From the bad element of the result the search goes back,
from equation to equation, along elements that are not finite and that matter: replaced by a finite number, they change
the result.  So neither a NaN that `where` masks out nor a mask of infinities is ever the culprit.  Programs inside an
equation (a branch, the step of a loop) are observed as they are called, and searched in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.observe import observing
from ...control.loops.kept_states import keep, sweep
from ...control.loops.scan import scan
from ...control.loops.while_loop import while_
from ...core.program import Atom, Const, Eqn, Program, Var, needed_eqns
from ...core.types import ArrayType
from ...ops.elementwise import Elementwise, select
from .checks import Residuals
from .equations import (
    INFINITE,
    NAN,
    Call,
    Cause,
    Index,
    applied,
    bad_elements,
    badness,
    blamed,
    element,
    failed_equation,
    is_array,
    is_bad,
    is_derivative_of,
    worst_element,
)

# So many steps of a loop are asked what their bad result depends on, one after the other.  Further back an element of
# the carry is followed to the first step where it was bad.
_ASKED_STEPS = 32


class Step(NamedTuple):
    """An equation on the way from the culprit to the bad result.

    Attributes:
        eqn: the equation.
        operands: the values of its operands; of an elementwise one those at the element, as numbers.
        result: the bad number that it made.
        where: the index in its result.
        inside: the loops and branches that it is in, from the outermost on.
        error: what NumPy raised instead of making the number.
    """

    eqn: Eqn
    operands: tuple[Any, ...]
    result: Any
    where: Index
    inside: tuple[str, ...]
    error: Exception | None = None


class Source(NamedTuple):
    """A value that was bad before the program began.

    Attributes:
        name: what it is called.
        argument: the number of the argument, or None for a constant of the program.
        type: its type.
        where: the index in it.
        value: the bad number.
    """

    name: str
    argument: int | None
    type: ArrayType
    where: Index
    value: Any


class Culprit(NamedTuple):
    """Where a bad result comes from.

    Attributes:
        first: the first equation with a bad result, or the first that took a bad `source`, if there is one.
        turned: the equation that made a NaN of an infinity on the way from there, if there is one.
        is_masked: whether that multiplied the infinity by the 0 that a `where` has for what it does not choose.
        source: the argument or constant that was bad, or None.
        number: which result of the program is bad.
        where: the index in it.
        value: the bad number.
    """

    first: Step | None
    turned: Step | None
    is_masked: bool
    source: Source | None
    number: int
    where: Index
    value: Any


def find_culprit(
    program: Program, args: Sequence[Any], number: int, index: Index, residuals: Residuals | None = None
) -> Culprit | None:
    """Where the element `index` of result `number` comes from, or else another bad one; None if all are finite.

    Where it comes from an argument that is a residual, the program that made that is searched as well.
    """
    trail = _Trail()
    # Whoever looks on at the program is to see it run once.
    with np.errstate(all="ignore"), observing(None):
        replay = _Replay(program, args, trail, ())
        if replay.failed:
            source = replay.before_failure()
            return Culprit(trail.first or replay.failed, trail.turned, trail.is_masked, source, number, index, np.nan)
        if not bad_elements(replay.results[number])[index]:
            found = [(i, at) for i, y in enumerate(replay.results) if (at := worst_element(y)) is not None]
            if not found:
                return None
            number, index = found[0]
        source = replay.from_result(number, index)
        value = replay.results[number][index]
        argument = source.argument if source is not None else None
        if source is not None and argument is not None and residuals is not None:
            given = argument - residuals.total
            if given >= 0:
                source = source._replace(name=f"tangent or cotangent {given}", argument=given)
            else:
                before = _Replay(residuals.program, residuals.args, trail, ())
                if before.failed:
                    return Culprit(before.failed, None, False, None, number, index, value)
                source = before.from_result(residuals.start + argument, source.where)
    return Culprit(trail.first, trail.turned, trail.is_masked, source, number, index, value)


class _End(NamedTuple):
    """The end of a search: what was bad before the program began, or None where an equation made it."""

    source: Source | None


class _Trail:
    """What a search has come by: the latest equation, and the latest that made a NaN of an infinity."""

    def __init__(self) -> None:
        self.first: Step | None = None
        self.turned: Step | None = None
        self.is_masked = False

    def add(self, step: Step, cause: Any) -> bool:
        """Go on to an equation; `cause` is the bad number that it took, or None.  Return whether a NaN began there."""
        self.first = step
        if badness(step.result) != NAN or cause is None or badness(cause) != INFINITE:
            return False
        self.turned = step
        return True


class _Run(NamedTuple):
    """An equation that ran, with a bad result."""

    operands: list[Any]
    results: list[Any]
    calls: list[Call]


class _Inside(NamedTuple):
    """The place of an array among the states that a loop saves for a sweep, in front of an index into it."""

    array: Any


class _Replay:
    """A program that has run equation by equation, with all that it takes to ask where its results come from.

    Values that no equation with a bad result took are dropped when they are no longer needed.
    """

    def __init__(self, program: Program, args: Sequence[Any], trail: _Trail, inside: tuple[str, ...]) -> None:
        form = program.executable()
        self.trail = trail
        self.inside = inside
        self.failed: Step | None = None
        self.results: list[Any] = []
        self._args = args
        self._inputs: dict[Atom, int] = {v: i for i, v in enumerate(form.inputs)}
        self._outputs = form.outputs
        self._made: dict[Atom, Eqn] = {v: eqn for eqn in form.eqns for v in eqn.outputs}
        self._runs: dict[Eqn, _Run] = {}
        values: dict[Atom, Any] = dict(zip(form.inputs, args, strict=True))
        self._eqns = eqns = needed_eqns(form.eqns, form.outputs)
        last = {a: index for index, eqn in enumerate(eqns) for a in eqn.operands}
        last.update(dict.fromkeys(form.outputs, len(eqns)))
        for index, eqn in enumerate(eqns):
            operands = [values[a] if isinstance(a, Var) else a.array() for a in eqn.operands]
            calls: list[Call] = []
            try:
                results = applied(eqn, operands, calls)
            except Exception as error:
                self.failed = Step(*failed_equation(error), np.nan, (), inside, error)
                self._failed = eqn, operands
                return
            if any(is_bad(y) if is_array(y) else calls for y in results):
                self._runs[eqn] = _Run(operands, results, calls)
            values.update(zip(eqn.outputs, results, strict=True))
            for a in (*eqn.operands, *eqn.outputs):
                if last.get(a, index) == index:
                    values.pop(a, None)
        self.results = [values[a] if isinstance(a, Var) else a.array() for a in form.outputs]

    def from_result(self, number: int, index: Index) -> Source | None:
        """Go back from an element of a result; return the argument or constant where that ends, or None."""
        return self._go_back(self._outputs[number], index)

    def before_failure(self) -> Source | None:
        """Go back from what is bad among the operands of the equation that failed, in the same way."""
        eqn, operands = self._failed
        for atom, x in zip(eqn.operands, operands, strict=True):
            index = worst_element(x) if is_array(x) else None
            if index is not None:
                return self._go_back(atom, index)
        return None

    def _go_back(self, atom: Atom, index: Index) -> Source | None:
        while True:
            if isinstance(atom, Const):
                return Source("a constant of the program", None, atom.type, index, element(atom.array(), index))
            if atom in self._inputs:
                argument = self._inputs[atom]
                return Source(f"input {argument}", argument, atom.type, index, element(self._args[argument], index))
            eqn = self._made[atom]
            run, position = self._runs[eqn], eqn.outputs.index(atom)
            found: Cause | _End | None
            found = _Search(eqn, run, self).from_result(position, index) if run.calls else None
            if found is None:
                found = blamed(eqn, run.operands, position, index)
                self._note(eqn, run, position, index, found)
            if found is None:
                return None
            if isinstance(found, _End):
                return found.source
            atom, index = eqn.operands[found.operand], found.where

    def _note(self, eqn: Eqn, run: _Run, position: int, index: Index, cause: Cause | None) -> None:
        number = None if cause is None else element(run.operands[cause.operand], cause.where)
        operands = run.operands
        if isinstance(eqn.primitive, Elementwise):
            operands = [element(x, index) for x in operands]
        result = element(run.results[position], index)
        if self.trail.add(Step(eqn, tuple(operands), result, index, self.inside), number):
            zeros = [a for a, x in zip(eqn.operands, operands, strict=True) if is_array(x) and not np.any(x)]
            ways = needed_eqns(self._eqns, zeros)
            self.trail.is_masked = any(is_derivative_of(eqn.line, select) for eqn in ways)


class _Search:
    """The search through the calls of the programs inside one equation."""

    def __init__(self, eqn: Eqn, run: _Run, replay: _Replay) -> None:
        self._eqn = eqn
        self._run = run
        self._replay = replay
        # Arrays are passed on from call to call as they are, so the array itself tells which call made it.
        self._makers: dict[int, list[tuple[int, int]]] = {}
        for place, made in enumerate(run.calls):
            for number, y in enumerate(made.results):
                self._makers.setdefault(id(y), []).append((place, number))

    def from_result(self, position: int, index: Index) -> Cause | _End | None:
        """What an element of a result of the equation comes from, if that can be told."""
        target = self._run.results[position]
        if index and isinstance(index[0], _Inside):
            target, index = index[0].array, index[1:]
        place: _Place | Cause | None = self._maker(target, index, len(self._run.calls))
        place = place or self._operand(target, index) or self._not_passed_on(position, index)
        asked = 0
        while isinstance(place, _Place):
            made = self._run.calls[place.call]
            replay = _Replay(made.program, made.args, self._replay.trail, (*self._replay.inside, self._describe(made)))
            source = replay.from_result(place.result, place.where)
            if source is None or source.argument is None:
                return _End(source)
            array, at = made.args[source.argument], source.where
            asked += 1
            before = self._maker(array, at, place.call)
            if before is not None and asked >= _ASKED_STEPS:
                before = self._first_bad(before, source.argument)
            place = before or self._operand(array, at) or self._element(made, source.argument, at)
        return place

    def _maker(self, array: Any, index: Index, end: int) -> _Place | None:
        """The latest call before number `end` that made an array."""
        for call_number, number in reversed(self._makers.get(id(array), ())):
            if call_number < end:
                return _Place(call_number, number, index)
        return None

    def _not_passed_on(self, position: int, index: Index) -> _Place | None:
        """The inner call that produced this element, when the equation did not merely pass an array of it on."""
        calls, params = self._run.calls, self._eqn.params
        if self._eqn.primitive is scan and position >= params["carries"]:
            number = _other_way(params, index[0])
            steps = [i for i, made in enumerate(calls) if made.number == number]
            return _Place(steps[0], position, index[1:]) if steps else None
        if len(calls) == 1 and len(calls[0].results) == len(self._run.results):
            return _Place(0, position, index)
        # An iterative solver: its first call that made something bad of what was not.
        for place, made in enumerate(calls):
            if not any(map(is_bad, made.args)):
                number, at = next((n, at) for n, y in enumerate(made.results) if (at := worst_element(y)) is not None)
                return _Place(place, number, at)
        return None

    def _operand(self, array: Any, index: Index) -> Cause | None:
        """The operand that an array is, or that holds it."""
        for number, x in enumerate(self._run.operands):
            if x is array:
                return Cause(number, index)
            if not is_array(x) and _holds(x, array):
                return Cause(number, (_Inside(array), *index))
        return None

    def _element(self, made: Call, argument: int, index: Index) -> Cause | None:
        """The operand of which an argument of a call is an element."""
        params = self._eqn.params
        if self._eqn.primitive is scan and argument >= params["consts"] + params["carries"]:
            return Cause(argument, (_other_way(params, made.number), *index))
        return None

    def _first_bad(self, place: _Place, argument: int) -> _Place:
        """The first of the calls that passed this element on and in which it was bad already."""
        while True:
            array = self._run.calls[place.call].args[argument]
            before = self._maker(array, place.where, place.call)
            if before is None or before.result != place.result or not bad_elements(array)[place.where]:
                return place
            place = before

    def _describe(self, made: Call) -> str:
        primitive, line = self._eqn.primitive, self._eqn.line
        where = "" if line is None else f" at {line!r}"
        if primitive is scan:
            return f"step {made.number} of the scan{where}"
        if primitive in (while_, keep):
            return f"step {made.number} of the while loop{where}"
        if primitive is sweep and made.program is self._eqn.params["undo"]:
            return f"step {made.number} back through the while loop{where}"
        if primitive is sweep:
            return f"a step of the while loop{where}, recomputed in the backward pass"
        return f"{primitive.name}{where}"


class _Place(NamedTuple):
    """An element of a result of an inner call."""

    call: int
    result: int
    where: Index


def _other_way(params: dict[str, Any], number: int) -> int:
    """The step of a scan that is for an element, or the element that a step is for."""
    return int(params["length"] - 1 - number if params["reverse"] else number)


def _holds(kept: Any, array: Any) -> bool:
    """Whether the states that a loop saves for a sweep hold an array."""
    return kept is array or (isinstance(kept, tuple | list) and any(_holds(k, array) for k in kept))
