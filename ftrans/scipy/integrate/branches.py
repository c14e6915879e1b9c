"""Functions with Python branches that depend on a point at which a solver evaluates them, as one program.

The solver runs once while the function is traced, on the values that are known then.  Each way through the function
that it meets is traced, with what its branches asked.  The program chooses between these ways by asking again; where
none fits, as may be with other values in a compiled program, its results are NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...api.branches import cond
from ...control.rules.linear_call import with_outputs
from ...core.captures import Captures
from ...core.interpret import inline
from ...core.program import Program, Var
from ...core.tape import Tape
from ...core.trace import Guard, Tracer, building
from ...core.types import ArrayType
from ...core.witness import CodeBuilder, known_value
from ...numpy.promotion import asarray
from ...ops.literals import full
from ...run.straightline import function_to_run
from ...transforms.simplify import simplify

Evaluate = Callable[..., list[Any]]
# Calls the function that it is given at all points that a solver needs.
Explore = Callable[[Evaluate], None]

_MOST = 32


class NotKnown(Exception):
    """A value that decides on a branch, or on the points of a solver, is not known while the function is traced."""


def value_of(x: Any) -> Any:
    """The value of an argument of a solver.

    Raises:
        NotKnown: it has none.
    """
    value = known_value(x) if isinstance(x, Tracer) else x
    if value is None:
        raise NotKnown
    return np.asarray(value)[()]


class _KnownCaptures(Captures):
    """Captures of which Python may ask the values without asking the programs around."""

    __slots__ = ("captured",)

    def __init__(self, tape: Tape) -> None:
        super().__init__(tape, None)
        self.captured: list[Any] = []

    def add(self, identity: Any, value: Any, type: ArrayType) -> Var:
        """The input for a value; the first time, what it is worth is noted."""
        known, count = value_of(value), len(self.vars)
        var = super().add(identity, known, type)
        if len(self.vars) > count:
            self.captured.append(value)
        return var


class _Way(NamedTuple):
    """One way through a function.

    Attributes:
        program: takes the arguments, then what is captured; returns the results, then what the branches asked.
        captured: tracers and arrays.
        known: their values.
        guards: what the branches were told.
    """

    program: Program
    captured: list[Any]
    known: list[Any]
    guards: list[Guard]

    def run(self, args: Sequence[Any]) -> list[Any] | None:
        """The results for some arguments, None if the branches would be told something else."""
        found = function_to_run(self.program)(*args, *self.known)
        count = len(found) - len(self.guards)
        fits = all(g.holds_for(x) for g, x in zip(self.guards, found[count:], strict=True))
        return list(found[:count]) if fits else None


def by_ways(types: Sequence[ArrayType], call: Callable[..., Any], explore: Explore) -> Callable[..., list[Any]]:
    """A function of tracers without branches, which does what `call` does at the points of a solver.

    Raises:
        NotKnown: a value is not known, or there are too many ways.
    """
    ways: list[_Way] = []

    def evaluate(*args: Any) -> list[Any]:
        for way in ways:
            found = way.run(args)
            if found is not None:
                return found
        ways.append(_traced(types, call, args))
        found = ways[-1].run(args)
        if found is None or len(ways) > _MOST:
            raise NotKnown
        return found

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        explore(evaluate)

    def chosen(*tracers: Tracer) -> list[Any]:
        return _choose(ways, tracers)

    return chosen


def _traced(types: Sequence[ArrayType], call: Callable[..., Any], args: Sequence[Any]) -> _Way:
    builder = CodeBuilder(types, args)
    captures = builder.captures = _KnownCaptures(builder.tape)
    with building(builder):
        results = call(*builder.inputs())
        guards = list(builder.guards)
        program = builder.finish([*results, *(Tracer(builder, g.atom) for g in guards)], "way")
    if any(g.seen_as is not None for g in guards):
        raise NotKnown
    return _Way(simplify(program), captures.captured, captures.values, guards)


def _choose(ways: Sequence[_Way], args: Sequence[Tracer]) -> list[Any]:
    """The results of the first way that fits.

    What the branches of all ways ask is computed before, where the points are seen at which an answer changes.
    """
    asked = [(way, _fits(way, args)) for way in ways]
    types = with_outputs(ways[0].program, range(_count_results(ways[0]))).out_types

    def choose(left: Sequence[tuple[_Way, Any]]) -> list[Any]:
        if not left:
            return [full(t.shape, np.nan, t.dtype) for t in types]
        (way, fits), *others = left
        results = with_outputs(way.program, range(_count_results(way)))
        operands = [*args, *map(asarray, way.captured)]
        return cond(fits, lambda: inline(results, operands), lambda: choose(others))

    return choose(asked)


def _count_results(way: _Way) -> int:
    return len(way.program.outputs) - len(way.guards)


def _fits(way: _Way, args: Sequence[Tracer]) -> Any:
    """Whether the branches of a way are told what they were when it was traced."""
    outs = range(_count_results(way), len(way.program.outputs))
    told = inline(with_outputs(way.program, outs), [*args, *map(asarray, way.captured)])
    fits: Any = True
    for x, guard in zip(told, way.guards, strict=True):
        fits = fits & np.all(x == guard.expected)
    return fits
