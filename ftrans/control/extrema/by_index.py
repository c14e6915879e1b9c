"""Extrema by index: before a program is differentiated, min over an axis becomes what was chosen, computed by itself.

The derivative of y.min(axis) is that of y at the index of the minimum, i.  Where y is made of smaller arrays, as in
y[n, k] = sum over d of (x[n, d] - c[k, d])**2, so is y[n, i[n]], from x and from c[i]: then neither the derivative nor
what it needs has the size of y.  This holds, to all orders, where one element is the extremum.  Whether it is one is
counted when the program runs; otherwise, for ties and NaN, all of y is differentiated, as the primitive has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.source import attributed_to
from ...core.interpret import interpret
from ...core.program import Atom, Const, Eqn, Program, Var
from ...core.trace import Builder, Tracer, building, definition
from ...core.types import Shape, is_inexact
from ...ops import reductions
from ...ops.broadcast import broadcast, reduce_sum, restored
from ...ops.elementwise import Elementwise, convert, eq, ne, select, stop_gradient, with_value
from ...ops.indexing import gather
from ...ops.literals import full, full_like, iota, splat
from ...ops.shapes import transpose
from ..checkpoints.checkpoint import checkpoint
from .if_needed import FLAG, if_needed

# Of arrays smaller than this, all is differentiated.
_LEAST_SIZE = 1 << 15
# What is chosen from must be this many times as large as what remains.
_LEAST_GAIN = 4
# Longer expressions are taken as they are.
_MOST_EQNS = 64
_MOVES = (broadcast, reduce_sum, transpose)
_CHOICE = -1
_EXTRA = -2
# For each axis of a value: the axis of the index that lies along it, or the axis of the choice, or another axis.
Roles = tuple[int, ...]


class Extremum(reductions.ReduceExtremum):
    """The largest or smallest element along axes, with derivatives by index where that is cheaper."""

    def before_differentiating(self, program: Program, active: tuple[bool, ...]) -> Program:
        return program.derive(("extrema by index", self, active), lambda: _by_index(self, program, active))


reduce_max = Extremum("reduce_max", np.maximum)
reduce_min = Extremum("reduce_min", np.minimum)
_IN_FULL = {reduce_max: reductions.reduce_max, reduce_min: reductions.reduce_min}
_INDEX_OF = {reduce_max: reductions.argmax, reduce_min: reductions.argmin}


def _by_index(primitive: Extremum, program: Program, active: Sequence[bool]) -> Program:
    moving = {v for v, a in zip(program.inputs, active, strict=True) if a}
    for eqn in program.eqns:
        if not moving.isdisjoint(eqn.operands):
            moving.update(eqn.outputs)
    builder = Builder(program.in_types)

    def apply(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
        is_one = eqn.primitive is primitive and len(eqn.params["axes"]) == 1 and not moving.isdisjoint(eqn.outputs)
        if is_one and operands[0].size >= _LEAST_GAIN and is_inexact(operands[0].dtype):
            with attributed_to(eqn.line):
                found = _chosen(primitive, operands[0], eqn.params["axes"][0])
            if found is not None:
                return [found]
        return builder.repeat(eqn, operands)

    with building(builder):
        outs = interpret(program, builder.inputs(), apply, lambda const: Tracer(builder, const))
        return builder.finish(outs, program.name)


class _Expression(NamedTuple):
    """How a value is made of smaller ones.

    Attributes:
        leaves: these, with the roles of their axes.
        eqns: the equations, in their order.
        largest: the size of the largest array in between.
    """

    leaves: dict[Atom, Roles]
    eqns: dict[Eqn, None]
    largest: int


def _chosen(primitive: Extremum, y: Tracer, axis: int) -> Tracer | None:
    """The extremum of `y` along an axis, which is differentiated by index; None if that does not pay."""
    rank = y.ndim - 1
    roles = tuple(_CHOICE if i == axis else i - (i > axis) for i in range(y.ndim))
    found = _expression(y, roles, rank)
    if found is None or found.largest < _LEAST_SIZE:
        return None
    shape = tuple(n for i, n in enumerate(y.shape) if i != axis)
    kept = sum(a.type.size for a in found.leaves)
    if found.largest < _LEAST_GAIN * (kept + found.largest // y.shape[axis]):
        return None
    whole = stop_gradient(y)
    in_full = _IN_FULL[primitive]
    value = in_full(whole, axes=(axis,))
    wins = eq(whole, restored(value, whole, (axis,)))
    count = reduce_sum(convert(wins, dtype=np.dtype(np.int32)), axes=(axis,))
    has_ties = reductions.reduce_or(ne(count, full_like(count, 1)), axes=tuple(range(rank)))
    index = _INDEX_OF[primitive](whole, axis=axis)
    at_index = _AtIndex(index, shape).of(y, roles)
    leaves = [a for a in found.leaves if isinstance(a, Var)]
    (at_ties,) = if_needed(
        has_ties, *(Tracer(y.builder, a) for a in leaves), program=_in_full(in_full, found, leaves, y, axis)
    )
    return with_value(select(broadcast(has_ties, shape=shape, dims=()), at_ties, at_index), value)


def _in_full(primitive: Any, found: _Expression, leaves: Sequence[Var], y: Tracer, axis: int) -> Program:
    """The extremum as a program of the leaves, which keeps nothing for its derivative."""
    type = primitive.type_rule(y.type, axes=(axis,))
    last = Eqn(primitive, (y.atom,), {"axes": (axis,)}, (Var(type),), None)
    inner = Program("extremum", leaves, [*found.eqns, last], last.outputs)
    inputs = [Var(v.type) for v in leaves]
    params = {"program": inner, "policy": "nothing", "again": False}
    whole = Eqn(checkpoint, tuple(inputs), params, (Var(type),), None)
    return Program("extremum", [Var(FLAG), *inputs], [whole], whole.outputs)


def _is_followed(eqn: Eqn | None, roles: Roles, rank: int) -> bool:
    """Whether a value is computed again at the index, and not read there."""
    return (
        eqn is not None
        and (isinstance(eqn.primitive, Elementwise) or eqn.primitive in _MOVES)
        and _CHOICE in roles
        and sum(r >= 0 for r in roles) == rank
    )


def _operands(eqn: Eqn, roles: Roles) -> Iterator[tuple[Atom, Roles]]:
    """The operands of an equation, and the roles of their axes."""
    primitive, params = eqn.primitive, eqn.params
    if isinstance(primitive, Elementwise):
        yield from ((a, roles) for a in eqn.operands)
    elif primitive is broadcast:
        yield eqn.operands[0], tuple(roles[d] for d in params["dims"])
    elif primitive is transpose:
        yield eqn.operands[0], tuple(roles[params["axes"].index(i)] for i in range(len(roles)))
    else:
        given = iter(roles)
        count = len(roles) + len(params["axes"])
        yield eqn.operands[0], tuple(_EXTRA if i in params["axes"] else next(given) for i in range(count))


def _expression(y: Tracer, roles: Roles, rank: int) -> _Expression | None:
    leaves: dict[Atom, Roles] = {}
    eqns: dict[Eqn, None] = {}
    tape, largest = y.builder.tape, 0

    def visit(atom: Atom, roles: Roles) -> None:
        nonlocal largest
        if isinstance(atom, Const) and atom.is_splat:
            return
        eqn = tape.definition(atom)
        if eqn is None or not _is_followed(eqn, roles, rank) or len(eqns) > _MOST_EQNS:
            leaves[atom] = roles
            return
        if eqn not in eqns:
            largest = max(largest, atom.type.size)
            for operand, its_roles in _operands(eqn, roles):
                visit(operand, its_roles)
            eqns[eqn] = None

    visit(y.atom, roles)
    return _Expression(leaves, eqns, largest) if len(eqns) <= _MOST_EQNS else None


class _AtIndex:
    """Values at an index along the axis of the choice: their axes are those of the index, then the extra ones."""

    def __init__(self, index: Tracer, shape: Shape) -> None:
        self.index = index
        self.shape = shape
        self.found: dict[tuple[Atom, Roles], Tracer] = {}

    def of(self, v: Tracer, roles: Roles) -> Tracer:
        """A value at the index."""
        key = v.atom, roles
        if key not in self.found:
            eqn = definition(v)
            number = splat(v)
            if number is not None:
                extra = tuple(n for n, r in zip(v.shape, roles, strict=True) if r == _EXTRA)
                self.found[key] = full((*self.shape, *extra), number, v.dtype)
            elif eqn is not None and _is_followed(eqn, roles, len(self.shape)):
                self.found[key] = self.again(eqn, roles)
            elif _CHOICE in roles:
                self.found[key] = self.read(v, roles)
            else:
                self.found[key] = self.repeated(v, roles)
        return self.found[key]

    def again(self, eqn: Eqn, roles: Roles) -> Tracer:
        """The result of an equation, from its operands at the index."""
        primitive, params, rank = eqn.primitive, eqn.params, len(self.shape)
        given = list(_operands(eqn, roles))
        operands = [self.of(Tracer(self.index.builder, a), its) for a, its in given]
        with attributed_to(eqn.line):
            if isinstance(primitive, Elementwise):
                (result,) = primitive.bind_all(operands, params)
                return result
            (x,), ((_, inner),) = operands, given
            # Numbers of the extra axes of the operand.
            places = [i for i, r in enumerate(inner) if r == _EXTRA]
            if primitive is reduce_sum:
                return reduce_sum(x, axes=tuple(rank + places.index(i) for i in params["axes"]))
            extra = [i for i, r in enumerate(roles) if r == _EXTRA]
            if primitive is transpose:
                order = tuple(rank + places.index(params["axes"][i]) for i in extra)
                return transpose(x, axes=(*range(rank), *order))
            dims = tuple(rank + extra.index(params["dims"][i]) for i in places)
            sizes = tuple(eqn.outputs[0].type.shape[i] for i in extra)
            return broadcast(x, shape=(*self.shape, *sizes), dims=(*range(rank), *dims))

    def read(self, v: Tracer, roles: Roles) -> Tracer:
        """The elements of an array at the index."""
        x, axes = _in_order(v, roles)
        indices = [iota(shape=self.index.shape, axis=a, dtype=self.index.dtype) for a in axes]
        return gather(x, *indices, self.index, axis=0)

    def repeated(self, v: Tracer, roles: Roles) -> Tracer:
        """An array that is the same for all choices."""
        x, axes = _in_order(v, roles)
        rank, sizes = len(self.shape), x.shape[len(axes) :]
        return broadcast(x, shape=(*self.shape, *sizes), dims=(*axes, *range(rank, rank + len(sizes))))


def _in_order(v: Tracer, roles: Roles) -> tuple[Tracer, list[int]]:
    """An array with its axes of the index first, which are listed, then that of the choice, then the extra ones."""
    places = {r: i for i, r in enumerate(roles)}
    axes = sorted(r for r in roles if r >= 0)
    choice = [places[_CHOICE]] if _CHOICE in places else []
    order = (*(places[a] for a in axes), *choice, *(i for i, r in enumerate(roles) if r == _EXTRA))
    return transpose(v, axes=order), axes
