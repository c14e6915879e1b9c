"""Programs that are right to differentiate where eigenvalues or singular values are equal.

The derivative of vectors of equal values leaves out what turns them among themselves.  A function of values and vectors
that is smooth in the matrix has one more term there (see `ops/linalg/repeated.py`): its mixed second derivative, along
a direction that moves the values apart, and along the mixing of the vectors.  It is linear in the change of the matrix.

Such a function does not change when vectors of equal values turn.  One that does, like a single one of these vectors,
has no derivative, and gets NaN: that is found out by turning them at run time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from ..core.interpret import inline
from ..core.program import Atom, Const, Eqn, Program, Var, needed_eqns
from ..core.source import attributed_to
from ..core.trace import Builder, Tracer, building, repeat
from ..core.types import ArrayType, is_complex, is_inexact
from ..ops.elementwise import abs_, add, complex_, convert, cos, gt, imag, mul, real, select, sin, stop_gradient
from ..ops.elementwise.conversions import to_real
from ..ops.linalg.repeated import SpectralPrimitive, depends_on_choice, mixing, with_change_of
from ..ops.reductions import reduce_max, reduce_or, reduce_sum
from ..ops.shapes import broadcast, full, full_like, iota
from .batch import batch

Flags = tuple[bool, ...]

# By how much vectors are slightly wrong.
_WRONG = 1e-3


def with_limits(program: Program, active: Flags) -> Program:
    """The same program; its derivative along the inputs flagged in `active` is right where values are equal."""
    moving = {v for v, a in zip(program.inputs, active, strict=True) if a}
    spectral: list[Eqn] = []
    for eqn in program.eqns:
        if not moving.isdisjoint(_vars(eqn)):
            moving.update(eqn.outputs)
            if isinstance(eqn.primitive, SpectralPrimitive):
                spectral.append(eqn)
    if not spectral:
        return program
    operands = {v for eqn in spectral for v in _vars(eqn)}
    rests = [rest for eqn in spectral for rest in _rests(program, eqn, operands)]
    return _with_terms(program, rests) if rests else program


def _vars(eqn: Eqn) -> Iterator[Var]:
    return (a for a in eqn.operands if isinstance(a, Var))


class _Part(NamedTuple):
    """A derivative of what follows an equation: a program, and the variables that it returns a term for."""

    program: Program
    targets: list[Var]


class _Rest(NamedTuple):
    """How variables depend on the results of an equation that gives values and vectors, differentiated.

    Attributes:
        eqn: the equation.
        inputs: what the programs take: the results of the equation, its operand, and what else is used.
        vectors: which of these are vectors.
        turned: takes a change of each of the vectors too; the derivative along them.
        mixed: takes the directions of the values and of the operand as well; the derivative of `turned` along these.
    """

    eqn: Eqn
    inputs: list[Var]
    vectors: Flags
    turned: _Part
    mixed: _Part


def _rests(program: Program, eqn: Eqn, operands: Set[Var]) -> Iterator[_Rest]:
    """What follows an equation: up to each operand of another such equation, and up to the outputs of the program.

    An operand of another such equation gets its term itself, and what is made of it needs none.  Nor does what is made
    of it and of the vectors, where whatever depends on these has got its term first.
    """
    primitive, (operand,) = eqn.primitive, eqn.operands
    assert isinstance(primitive, SpectralPrimitive)
    assert isinstance(operand, Var)
    ends, met = set[Var](), set(operands)
    while met - ends:
        ends |= met
        values = {eqn.outputs[primitive.values]}
        vectors, beside, done = set(eqn.outputs) - values - ends, {operand}, set(eqn.outputs) & ends
        after: list[Eqn] = []
        for other in program.eqns:
            used = set(_vars(other))
            if other is eqn or used.isdisjoint(vectors | values | beside | done):
                continue
            if not used.isdisjoint(done):
                met |= used & vectors
                done.update(other.outputs)
                continue
            after.append(other)
            if used.isdisjoint(vectors):
                (beside if used.isdisjoint(values) else values).update(other.outputs)
            else:
                vectors |= set(other.outputs) - ends
                done |= set(other.outputs) & ends
    outputs = {a for a in program.outputs if isinstance(a, Var)} & vectors
    made = [v for e in (eqn, *after) for v in e.outputs]
    groups = [[v] for v in made if v in done], [v for v in made if v in outputs]
    for targets in (*groups[0], groups[1]):
        rest = _rest(program, eqn, after, [v for v in targets if is_inexact(v.type.dtype)])
        if rest is not None:
            yield rest


def _rest(program: Program, eqn: Eqn, after: Sequence[Eqn], targets: Sequence[Var]) -> _Rest | None:
    from .jvp import jvp

    primitive, (operand,) = eqn.primitive, eqn.operands
    assert isinstance(primitive, SpectralPrimitive)
    assert isinstance(operand, Var)
    known = [*eqn.outputs, operand]
    after = [_unseen(e) for e in needed_eqns(after, targets)]
    made = {*known, *(v for e in after for v in e.outputs)}
    inputs = [*known, *dict.fromkeys(v for e in after for v in _vars(e) if v not in made)]
    moved = (primitive.values, *([len(eqn.outputs)] if primitive.moves_matrices else []))
    vectors = tuple(i < len(eqn.outputs) and i != primitive.values for i in range(len(inputs)))
    apart = tuple(i in moved for i in range(len(inputs))) + (False,) * vectors.count(True)
    first = jvp(Program(program.name, inputs, after, targets), vectors)
    turned = _tangents(first.program, first.out_active, targets)
    second = jvp(turned.program, apart)
    mixed = _tangents(second.program, second.out_active, turned.targets)
    return _Rest(eqn, inputs, vectors, turned, mixed) if turned.targets else None


def _unseen(eqn: Eqn) -> Eqn:
    """The equation, where nobody is shown values that are computed on trial."""
    if "see" not in eqn.params:
        return eqn
    return Eqn(eqn.primitive, eqn.operands, {**eqn.params, "see": _nothing}, eqn.outputs, eqn.line)


def _nothing(*values: Any) -> None:
    """Sees values, and does nothing."""


def _tangents(program: Program, out_active: Flags, targets: Sequence[Var]) -> _Part:
    """The tangents among the outputs of a jvp program that are not zero, and the variables that they are for."""
    outputs = program.outputs[len(out_active) :]
    kept = [v for v, a in zip(targets, out_active, strict=True) if a]
    return _Part(Program(program.name, program.inputs, needed_eqns(program.eqns, outputs), outputs), kept)


def _with_terms(program: Program, rests: Sequence[_Rest]) -> Program:
    builder = Builder(program.in_types)
    with building(builder):
        values: dict[Var, Tracer] = dict(zip(program.inputs, builder.inputs(), strict=True))

        def value(atom: Atom) -> Tracer:
            return Tracer(builder, atom) if isinstance(atom, Const) else values[atom]

        waiting = list(rests)
        for eqn in program.eqns:
            values.update(zip(eqn.outputs, repeat(eqn, [value(a) for a in eqn.operands]), strict=True))
            for rest in [r for r in waiting if all(v in values for v in (*r.inputs, *r.turned.targets))]:
                waiting.remove(rest)
                with attributed_to(rest.eqn.line):
                    values.update(_with_term(rest, [values[v] for v in rest.inputs], values))
        return builder.finish([value(a) for a in program.outputs], program.name)


def _with_term(rest: _Rest, inputs: Sequence[Tracer], values: dict[Var, Tracer]) -> dict[Var, Tracer]:
    """The variables that have terms, with the right derivatives."""
    primitive, params, count = rest.eqn.primitive, rest.eqn.params, len(rest.eqn.outputs)
    assert isinstance(primitive, SpectralPrimitive)
    found = {v: values[v] for v in rest.turned.targets}
    fixed = [stop_gradient(x) for x in inputs]
    results = fixed[:count]
    options = tuple(params.items())
    turns = _chosen(mixing(inputs[count], *results, of=primitive, options=options), rest.vectors)
    if rest.mixed.targets:
        directions = primitive.separation(results, **params)
        for v, term in zip(rest.mixed.targets, inline(rest.mixed.program, [*fixed, *turns, *directions]), strict=True):
            found[v] = with_change_of(found[v], term)
    trial = _trial(rest)
    turning = _sum([reduce_sum(_parts_added(t), axes=tuple(range(t.ndim))) for t in turns])
    for target, depends in zip(rest.turned.targets, depends_on_choice(*fixed, trial=trial), strict=True):
        x = found[target]
        no_number = select(depends, full_like(x, np.nan), full_like(x, 0))
        spread = convert(broadcast(turning, shape=x.shape, dims=()), dtype=x.dtype)
        found[target] = with_change_of(x, mul(spread, no_number))
    return found


class _Trial:
    """See `ops.linalg.repeated.Trial`."""

    def __init__(self, are_equal: Program, depends: Program) -> None:
        self.are_equal = are_equal
        self.depends = depends
        self._batched: dict[Any, _Trial] = {}

    def __repr__(self) -> str:
        return "<trial>"

    def batched(self, size: int, flags: Flags) -> _Trial:
        """The same for each element of a batch; one object for each question, since it is part of an equation."""
        found = self._batched.get((size, flags))
        if found is None:
            equal, depends = (
                batch(p, size, flags, (True,) * len(p.outputs)).program for p in (self.are_equal, self.depends)
            )
            builder = Builder(equal.in_types)
            with building(builder):
                anywhere = reduce_or(inline(equal, builder.inputs())[0], axes=(0,))
                equal = builder.finish([anywhere], equal.name)
            found = self._batched[size, flags] = _Trial(equal, depends)
        return found


def _trial(rest: _Rest) -> _Trial:
    """Vectors are turned at vectors that are as right as those at hand, which may be special, like the axes.

    To know what is small, vectors that are slightly wrong are turned in any way.
    """
    primitive, params, count = rest.eqn.primitive, rest.eqn.params, len(rest.eqn.outputs)
    assert isinstance(primitive, SpectralPrimitive)
    programs = []
    for wanted in ("are equal", "depends"):
        builder = Builder([v.type for v in rest.inputs])
        with building(builder):
            given = builder.inputs()
            other = primitive.exchanged(given[:count], **params)
            turns = _chosen(primitive.mixing(given[count], other, _anything(given[count].type), **params), rest.vectors)
            if wanted == "are equal":
                sizes = [reduce_max(abs_(t), axes=tuple(range(t.ndim))) for t in turns if t.size]
                outs = [gt(_sum(sizes), full_like(sizes[0], 0))] if sizes else [full((), False, np.dtype(bool))]
            else:
                change = inline(rest.turned.program, [*other, *given[count:], *turns])
                wrong = [
                    add(x, mul(_anything(x.type), full_like(x, _WRONG))) if v else x
                    for x, v in zip(given, rest.vectors, strict=True)
                ]
                anyhow = [mul(_anything(t.type), _largest(t, t.type)) for t in turns]
                usual = inline(rest.turned.program, [*wrong, *anyhow])
                outs = [_is_large(x, y, given[count]) for x, y in zip(change, usual, strict=True)]
            programs.append(builder.finish(outs, wanted))
    return _Trial(*programs)


def _is_large(change: Tracer, usual: Tracer, a: Tracer) -> Tracer:
    rounding = max(np.finfo(x.dtype).eps for x in (a, change))
    limit = mul(_largest(usual, usual.type, whole=True), full_like(usual, math.sqrt(rounding)))
    return gt(abs_(change), abs_(limit))  # type: ignore[no-any-return]


def _chosen(xs: Sequence[Tracer | None], flags: Flags) -> list[Tracer]:
    return [x for x, f in zip(xs, flags, strict=False) if f and x is not None]


def _sum(xs: Sequence[Tracer]) -> Tracer:
    total, *others = xs
    for x in others:
        total = add(total, x)
    return total


def _parts_added(x: Tracer) -> Tracer:
    """A real number for each element, which is linear in it."""
    return add(real(x), imag(x)) if is_complex(x.dtype) else x


def _largest(x: Tracer, like: ArrayType, whole: bool = False) -> Tracer:
    """The size of the largest element of each matrix, or of all, in place of all elements."""
    if not x.size:
        return full_like(x, 0)
    kept = 0 if whole else max(x.ndim - 2, 0)
    largest = reduce_max(abs_(x), axes=tuple(range(kept, x.ndim)))
    spread = broadcast(largest, shape=like.shape, dims=tuple(range(kept)))
    return convert(spread, dtype=like.dtype)  # type: ignore[no-any-return]


def _anything(type: ArrayType) -> Tracer:
    """An array without any structure."""
    real_type = type.with_dtype(to_real(type.dtype))
    angle = full(real_type.shape, 1.0, real_type.dtype)
    for axis in range(type.ndim):
        place = iota(shape=type.shape, axis=axis, dtype=real_type.dtype)
        angle = add(mul(angle, full_like(angle, 1.7)), mul(place, full_like(angle, 2.3 + axis)))
        angle = add(angle, mul(angle, mul(angle, full_like(angle, 0.01))))
    return complex_(cos(angle), sin(angle)) if is_complex(type.dtype) else cos(angle)  # type: ignore[no-any-return]
