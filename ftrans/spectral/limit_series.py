"""The programs that compute limits of derivatives where eigenvalues or singular values are equal.

There, a derivative is the limit of derivatives at matrices whose values are moved apart, by e times fixed steps.  The
vectors of these are the same, and turn with a change of the matrices in two ways: among vectors of different values,
and, with 1/e as a factor, among those of equal values.  So each derivative is a polynomial in 1/e, with coefficients
that are smooth in e.  Their Taylor series give the derivative at e = 0: what belongs to e**0 is the limit, and what
belongs to 1/e, 1/e**2, ... must vanish.

It does not vanish, or the limit depends on which vectors of equal values were chosen, where a function is not smooth in
the matrix, like a single one of these vectors.  Then the derivative is not a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate, compress
from typing import Any, NamedTuple

import numpy as np

from ..core.interpret import inline, interpret, repeat
from ..core.program import Eqn, Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_complex, is_inexact
from ..ops.broadcast import broadcast
from ..ops.elementwise import (
    abs_,
    add,
    bitwise_not,
    bitwise_or,
    complex_,
    convert,
    cos,
    div,
    eq,
    le,
    lt,
    maximum,
    mul,
    select,
    sin,
    sub,
)
from ..ops.elementwise.conversions import to_real
from ..ops.literals import full, full_like, iota
from ..ops.reductions import reduce_max
from ..transforms.batch import batch
from ..transforms.jvp import jvp
from ..transforms.simplify import simplify, without_dead_code
from ..transforms.split import split
from ..transforms.transpose import transpose
from .decomposition import Decomposition, is_none
from .limit import Series

Flags = tuple[bool, ...]

_NUMBER = ArrayType((), np.dtype(np.float64))
# By how much values and vectors are wrong in disorder, relative to their size.
_WRONG = 1e-3
# Limits are the same if they differ by rounding to this power, relative to the size of what they are made of; small
# elements are as wrong as those that are larger by rounding to the other power.
_ACCURACY = 3 / 8
_SMALL = 1 / 4


def series_of(decompositions: Sequence[Decomposition], rest: Program) -> Series:
    """What a limit differentiates: the function that `rest` is of matrices.

    Args:
        decompositions: primitives that decompose the matrices.
        rest: takes the results of each and its operand, and then other arrays; it gives one array.
    """
    known = [is_result for of in decompositions for is_result in (True,) * of.count + (False,)]
    types = rest.in_types
    results = (*known, *[False] * (len(types) - len(known)))

    def series(strict: bool, twin: SeriesOf | None = None) -> SeriesOf:
        def make(directions: tuple[Flags, ...], pulled: int | None) -> Program:
            return _checked(_Expansion(decompositions, rest, directions), pulled, strict)

        return SeriesOf(types, results, make, (tuple(decompositions), rest, strict, ()), twin)

    return series(False, series(True))


def series_from(
    decompositions: Sequence[Decomposition], rest: Program, strict: bool, batches: Sequence[tuple[int, Flags]]
) -> Series:
    """The series of an `origin`."""
    series: Any = series_of(decompositions, rest)
    if strict:
        series = series.strict
    for size, flags in batches:
        series = series.batched(size, flags)
    return series


class SeriesOf:
    """See `limit.Series`.

    Args:
        types: what it takes.
        results: which of these are results of decompositions.
        make: makes the program for a set of directions, one of which may be pulled.
        origin: what `series_from` makes it of.
        strict: see there; itself by default.
    """

    def __init__(
        self,
        types: Sequence[ArrayType],
        results: Flags,
        make: Callable[[tuple[Flags, ...], int | None], Program],
        origin: tuple[Any, ...],
        strict: SeriesOf | None = None,
    ) -> None:
        self.types, self.results, self._make = types, results, make
        self.origin = origin
        self._strict = strict
        self._programs: dict[Any, Program] = {}
        self._batched: dict[Any, SeriesOf] = {}

    def __repr__(self) -> str:
        return "<series>"

    @property
    def strict(self) -> SeriesOf:
        return self._strict or self

    def program(self, directions: tuple[Flags, ...], pulled: int | None) -> Program:
        found = self._programs.get((directions, pulled))
        if found is None:
            found = self._programs[directions, pulled] = self._make(directions, pulled)
        return found

    def batched(self, size: int, flags: Flags) -> SeriesOf:
        def make(directions: tuple[Flags, ...], pulled: int | None) -> Program:
            program = self.program(directions, pulled)
            moved = [f for i, d in enumerate(directions) if i != pulled for f in compress(flags, d)]
            cotangent = [True] * (pulled is not None)
            return batch(program, size, (*flags, *cotangent, *moved), (True,) * len(program.outputs)).program

        # One object for each question, since it is part of equations.
        found = self._batched.get((size, flags))
        if found is None:
            types = [t.with_shape((size, *t.shape)) if f else t for t, f in zip(self.types, flags, strict=True)]
            *base, batches = self.origin
            origin = (*base, (*batches, (size, flags)))
            strict = self._strict and self._strict.batched(size, flags)
            found = self._batched[size, flags] = SeriesOf(types, self.results, make, origin, strict)
        return found


class _Part(NamedTuple):
    """One of the decompositions, and how it has moved.

    Attributes:
        of: the primitive.
        results: its results.
        matrices: its operand.
        shift: how far the values have moved.
        spread: how far equal values have moved, over e.
        turns: how far the vectors have moved; None for the values.
    """

    of: Decomposition
    results: Sequence[Tracer]
    matrices: Tracer
    shift: Tracer
    spread: Tracer
    turns: Sequence[Tracer | None]

    @property
    def values(self) -> Tracer:
        """The values."""
        return self.results[self.of.values]

    @property
    def steps(self) -> Tracer:
        """Steps of the size of the values, so that e has no unit."""
        if not self.values.size:
            return self.values
        largest = reduce_max(abs_(self.values), axes=(self.values.ndim - 1,))
        unit = select(eq(largest, full_like(largest, 0)), full_like(largest, 1), largest)
        unit = broadcast(unit, shape=self.values.shape, dims=tuple(range(unit.ndim)))
        return mul(self.of.steps(self.values), convert(unit, dtype=self.values.dtype))

    def moved(self, e: Tracer, disorder: Tracer) -> list[Tracer]:
        """The results where they have moved to."""
        values = add(add(self.values, _times(e, self.steps)), self.shift)
        moved = [values if t is None else add(x, t) for x, t in zip(self.results, self.turns, strict=True)]
        # Vectors have the length 1.
        largest = [x if t is None else full_like(x, 1) for x, t in zip(self.results, self.turns, strict=True)]
        return [_disordered(x, y, disorder, _WRONG) for x, y in zip(moved, largest, strict=True)]

    def moved_matrices(self, e: Tracer) -> Tracer:
        """The matrices, where only the values have moved, and only by e."""
        moved = self.of.matrices(self.results, _times(e, self.steps))
        # A real matrix with complex values cannot move with them.
        return add(self.matrices, moved) if moved.dtype == self.matrices.dtype else self.matrices

    def tangents(self, e: Tracer, disorder: Tracer, t: Tracer) -> tuple[list[Tracer], list[Tracer]]:
        """The tangents of the results along a change of the matrices: smooth in e, and with the factor 1/e."""
        steps, tolerance = self.steps, self.of.tolerance(self.results)
        equal = [is_none(gap, tolerance) for gap in self.of.gaps(self.values)]
        apart = self.of.gaps(add(_times(e, steps), self.shift))
        usual = [
            _inverse(add(gap, moved), bitwise_not(same))
            for gap, moved, same in zip(self.of.gaps(self.values), apart, equal, strict=True)
        ]
        steep = [_inverse(gap, same) for gap, same in zip(self.of.gaps(add(steps, self.spread)), equal, strict=True)]
        slow, fast = (
            [_disordered(x, x, disorder) for x in self.of.tangents(self.moved(e, disorder), t, inverses)]
            for inverses in (usual, steep)
        )
        return slow, fast


def _disordered(x: Tracer, like: Tracer, disorder: Tracer, size: float = 1) -> Tracer:
    """`x`, or in disorder, the sum with arbitrary parts of `like`."""
    return add(x, _times(disorder, mul(like, mul(_anything(x.type), full_like(x, size)))))


def _times(e: Tracer, x: Tracer) -> Tracer:
    return mul(broadcast(convert(e, dtype=x.dtype), shape=x.shape, dims=()), x)


def _inverse(x: Tracer, condition: Tracer) -> Tracer:
    """`1 / x` where the condition holds, and zeros elsewhere."""
    one = full_like(x, 1)
    return select(condition, div(one, select(condition, x, one)), full_like(x, 0))


class _Point(NamedTuple):
    """Arrays, how far they have moved, and the directions of a derivative.

    Attributes:
        e: by how much the values are moved apart, over their steps.
        disorder: 0, or 1 to make values and vectors slightly wrong, and their tangents entirely.
        parts: the decompositions.
        moves: how far arrays have moved that are no results of decompositions.
        at: all arrays, where they are when nothing has moved.
        ways: the directions, of each array.
    """

    e: Tracer
    disorder: Tracer
    parts: Sequence[_Part]
    moves: Sequence[Tracer | None]
    at: Sequence[Tracer]
    ways: Sequence[Sequence[Tracer | None]]

    def moved(self) -> list[Tracer]:
        """All arrays where they have moved to."""
        arrays = [y for p in self.parts for y in (*p.moved(self.e, self.disorder), p.moved_matrices(self.e))]
        arrays += self.at[len(arrays) :]
        return [x if t is None else add(x, t) for x, t in zip(arrays, self.moves, strict=True)]

    def tangents(self, index: int) -> tuple[list[Tracer | None], list[Tracer | None]]:
        """How all offsets change along a direction: what is smooth in e, and what has the factor 1/e."""
        way = self.ways[index]
        usual: list[Tracer | None] = [None]
        steep: list[Tracer | None] = [None]
        place = 0
        for part in self.parts:
            t, values = way[place + part.of.count], part.of.values
            if t is None:
                nothing = [None] * (part.of.count + 1)
                usual, steep = [*usual, *nothing], [*steep, *nothing]
            else:
                slow, fast = part.tangents(self.e, self.disorder, t)
                usual += [slow.pop(values), None, *slow]
                steep += [None, fast.pop(values), *fast]
            place += part.of.count + 1
        moves = [t for t, m in zip(way, self.moves, strict=True) if m is not None]
        return [*usual, *moves], [*steep, *[None] * len(moves)]


class _Expansion:
    """A derivative along directions, as a polynomial in 1/e whose coefficients are smooth in e.

    Attributes:
        directions: for each direction, which of the arrays that the program takes it moves.
        uses_vectors: whether the function takes more than the values.
        program: takes 0 (or 1 for disorder), these arrays and the directions; gives what belongs to 1, 1/e, 1/e**2, ...
            at e = 0.
    """

    def __init__(self, decompositions: Sequence[Decomposition], rest: Program, directions: Sequence[Flags]) -> None:
        self.directions = directions
        # The results of each decomposition are followed by its operand.
        ends = accumulate(of.count + 1 for of in decompositions)
        self._places = [(of, slice(end - of.count - 1, end - 1)) for of, end in zip(decompositions, ends, strict=True)]
        self._at = list(rest.in_types)
        self._target = rest.out_types[0]
        used = {rest.outputs[0], *(a for eqn in rest.eqns for a in eqn.operands)}
        self.uses_vectors = any(
            v in used for of, place in self._places for v in _values_first(of, rest.inputs[place])[1:]
        )
        self._moving = [any(ds) for ds in zip(*directions, strict=True)]
        self._offsets = [_NUMBER]
        for of, place in self._places:
            values, *vectors = _values_first(of, self._at[place])
            self._offsets += [values, values, *vectors]
        self._offsets += compress(self._at, self._moving)
        self._ways = [t for d in directions for t in compress(self._at, d)]
        self.program = self._at_zero(self._coefficients(rest))

    def merged(self, at: Sequence[Tracer]) -> list[Tracer]:
        """The arrays, where equal values are exactly so."""
        return self._with_results(at, lambda of, results: of.merged(results))

    def exchanged(self, at: Sequence[Tracer]) -> list[Tracer]:
        """The arrays, where vectors of equal values are turned."""
        return self._with_results(at, lambda of, results: of.exchanged(results))

    def _with_results(
        self, at: Sequence[Tracer], changed: Callable[[Decomposition, list[Tracer]], list[Tracer]]
    ) -> list[Tracer]:
        arrays = list(at)
        for of, place in self._places:
            arrays[place] = changed(of, arrays[place])
        return arrays

    def _point(self, inputs: Sequence[Tracer]) -> _Point:
        rest = iter(inputs)
        e, *offsets = [next(rest) for _ in self._offsets]
        disorder = next(rest)
        at = [next(rest) for _ in self._at]
        left = iter(offsets)
        parts = []
        for of, place in self._places:
            shift, spread = next(left), next(left)
            turns = [None if i == of.values else next(left) for i in range(of.count)]
            parts.append(_Part(of, at[place], at[place.stop], shift, spread, turns))
        moves = [next(left) if f else None for f in self._moving]
        return _Point(e, disorder, parts, moves, at, [[next(rest) if f else None for f in d] for d in self.directions])

    def _recorded(self, record: Callable[[_Point, list[Tracer]], list[Tracer]]) -> Program | None:
        """A program of the offsets, the arrays and the directions; None if it would be zero."""
        builder = Builder([*self._offsets, _NUMBER, *self._at, *self._ways])
        with building(builder):
            inputs = builder.inputs()
            outs = record(self._point(inputs), inputs)
            if not outs:
                return None
            whole = builder.finish(outs, "limit")
        return without_dead_code(whole)

    def _coefficients(self, rest: Program) -> list[Program | None]:
        """The coefficients of 1, 1/e, 1/e**2, ... as functions of e and of how far all has moved."""
        found = [self._recorded(lambda p, inputs: inline(rest, p.moved()))]
        for index in range(len(self.directions)):
            found = [
                self._along(index, usual, steep) for usual, steep in zip([*found, None], [None, *found], strict=True)
            ]
        return found

    def _along(self, index: int, usual: Program | None, steep: Program | None) -> Program | None:
        """The change of one coefficient as usual, and of the one before it by what has the factor 1/e."""

        def record(point: _Point, inputs: list[Tracer]) -> list[Tracer]:
            terms: list[Tracer] = []
            for program, tangents in zip((usual, steep), point.tangents(index), strict=True):
                given = [*tangents, *[None] * (len(inputs) - len(tangents))]
                if program is not None and any(t is not None for t in given):
                    derived = jvp(program, tuple(t is not None for t in given))
                    if derived.out_active[0]:
                        terms.append(inline(derived.program, [*inputs, *(t for t in given if t is not None)])[-1])
            return [reduce(add, terms)] if terms else []

        return self._recorded(record)

    def _with_derivatives(self, program: Program, order: int) -> Program:
        """The program that also gives its derivatives in e, up to an order."""
        whole = _values_only(program)
        for _ in range(order):
            derived = jvp(whole, (True,) + (False,) * (len(whole.inputs) - 1), (True,) * len(whole.outputs)).program

            def record(point: _Point, inputs: list[Tracer], derived: Program = derived) -> list[Tracer]:
                outs = inline(derived, [*inputs, full((), 1, point.e.dtype)])
                return [*outs[: len(outs) // 2], outs[-1]]

            recorded = self._recorded(record)
            assert recorded is not None
            whole = recorded
        return whole

    def _at_zero(self, coefficients: Sequence[Program | None]) -> Program:
        """What belongs to 1, 1/e, 1/e**2, ..., by the Taylor series of the coefficients in e."""
        builder = Builder([_NUMBER, *self._at, *self._ways])
        with building(builder):
            inputs = [*(full_like(t, 0) for t in self._offsets), *builder.inputs()]
            sums: dict[int, Tracer] = {}
            for order, program in enumerate(coefficients):
                if program is not None:
                    for power, y in enumerate(inline(self._with_derivatives(program, order), inputs)):
                        term = mul(y, full_like(y, 1 / math.factorial(power)))
                        sums[order - power] = add(sums[order - power], term) if order - power in sums else term
            outs = [sums[order] for order in sorted(sums)] or [full_like(self._target, 0)]
            whole = builder.finish(outs, "limit")
        return simplify(whole)


def _values_first(of: Decomposition, results: Sequence[Any]) -> list[Any]:
    return [results[of.values], *(x for i, x in enumerate(results) if i != of.values)]


def _values_only(program: Program) -> Program:
    """The program without equations that compute nothing: they state derivatives, or show values to somebody.

    A rule of the user for a function that computes something stays, and counts as its derivative.
    """
    builder = Builder(program.in_types)

    def apply(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
        passed = eqn.primitive.passes_on(operands, eqn.params)
        return repeat(eqn, operands) if passed is None else passed

    with building(builder):
        outs = interpret(program, builder.inputs(), apply, lambda const: Tracer(builder, const))
        return builder.finish(outs, program.name)


def _checked(expansion: _Expansion, pulled: int | None, strict: bool) -> Program:
    """The limit of a derivative, or what is not a number where there is none.

    It is computed again with other vectors, which are as right as those at hand: these may be special, like the axes.
    To know what is small, it is also computed in disorder, where terms have their size and do not cancel.
    """
    # The program takes a number, arrays, and the directions; the checked one a cotangent in place of the pulled one.
    program, directions = expansion.program, expansion.directions
    count = len(program.inputs) - 1 - sum(map(sum, directions))
    linear = (*[False] * (count + 1), *((i == pulled) for i, d in enumerate(directions) for f in d if f))
    out_type = program.out_types[0]
    _, *types = [t for t, is_pulled in zip(program.in_types, linear, strict=True) if not is_pulled]
    builder = Builder([*types[:count], *[out_type] * (pulled is not None), *types[count:]])

    def found(at: Sequence[Tracer], inputs: Sequence[Tracer], disorder: float = 0) -> list[list[Tracer]]:
        """For 1, 1/e, ... what belongs to it: the derivative, or the parts of the direction that is pulled."""
        given = [full((), disorder, np.dtype(np.float64)), *at, *inputs[count:]]
        if pulled is None:
            return [[y] for y in inline(program, given)]
        cotangent, outputs, parts = given.pop(count + 1), len(program.outputs), linear.count(True)
        # Equations with bodies give values and tangents at once until they are split.
        halves = split(program, linear, (True,) * outputs)
        residuals = inline(halves.known, given)
        is_tangent = (*[False] * len(residuals), *[True] * parts)
        rows = []
        for i in range(outputs):
            active = tuple(i == j for j in range(outputs))
            turned = transpose(halves.unknown, is_tangent, active, (True,) * parts).program
            rows.append(inline(turned, [*residuals, cotangent]))
        return rows

    with building(builder):
        inputs = builder.inputs()
        at = expansion.merged(inputs[:count])
        limits, *poles = found(at, inputs)
        if poles or expansion.uses_vectors or strict:
            other_limits, *other_poles = found(expansion.exchanged(at), inputs)
            limit_sizes, *pole_sizes = (list(map(abs_, row)) for row in found(at, inputs, disorder=1))
            rounding = max(np.finfo(x.dtype).eps for x in (*at, *limits) if is_inexact(x.dtype))
            for i, y in enumerate(limits):
                size = maximum(_finite(abs_(y)), _finite(limit_sizes[i]))
                differs = select(eq(y, other_limits[i]), full_like(y, 0), sub(y, other_limits[i]))
                fails = _is_large(differs, size, size, rounding)
                for pole, other, pole_size in zip(poles, other_poles, pole_sizes, strict=True):
                    own_size = _finite(pole_size[i])
                    fails = bitwise_or(fails, _is_large(pole[i], own_size, size, rounding))
                    fails = bitwise_or(fails, _is_large(other[i], own_size, size, rounding))
                limits[i] = select(fails, full_like(y, np.nan), y)
        # Nobody is shown values that are computed on trial.
        return simplify(_values_only(builder.finish(limits, "limit")))


def _is_large(x: Tracer, size: Tracer, others: Tracer, rounding: float) -> Tracer:
    """Where elements are not only rounding, given the sizes of what they, and others beside them, were made of."""
    if not x.size:
        return full(x.shape, False, np.dtype(bool))
    largest = reduce_max(maximum(size, others), axes=tuple(range(x.ndim)))
    least = broadcast(mul(largest, full_like(largest, rounding**_SMALL)), shape=x.shape, dims=())
    limit = mul(maximum(size, least), full_like(size, rounding**_ACCURACY))
    # What is not a number counts as large.
    return bitwise_not(le(abs_(x), limit))


def _finite(size: Tracer) -> Tracer:
    return select(lt(size, full_like(size, math.inf)), size, full_like(size, 0))


def _anything(type: ArrayType) -> Tracer:
    """An array without any structure."""
    real_type = type.with_dtype(to_real(type.dtype))
    angle = full(real_type.shape, 1.0, real_type.dtype)
    for axis in range(type.ndim):
        place = iota(shape=type.shape, axis=axis, dtype=real_type.dtype)
        angle = add(mul(angle, full_like(angle, 1.7)), mul(place, full_like(angle, 2.3 + axis)))
        angle = add(angle, mul(angle, mul(angle, full_like(angle, 0.01))))
    return complex_(cos(angle), sin(angle)) if is_complex(type.dtype) else cos(angle)
