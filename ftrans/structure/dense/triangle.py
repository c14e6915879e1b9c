"""Dense symmetric Hessians by one of their triangles: columns in groups, and of each only the rows from there on.

Parameters that a function uses late, as those of the last layers of a network, have short tangents and cotangents.
Their columns need not run through what comes before, since these rows are those of earlier columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, combinations, pairwise
from typing import NamedTuple

import numpy as np

from ...core.interpret import inline
from ...core.program import Atom, Eqn, Program, Var, needed_eqns
from ...core.trace import Builder, Tracer, building
from ...ops.literals import full
from ...ops.parts import concatenate, slice_
from ...ops.shapes import reshape, transpose
from ...run.costs import program_cost
from ...transforms.differentiate import gradient, linearize, pushforward
from ...transforms.simplify import simplify
from .blocks import blocks_of, part
from .chunks import apply_to_basis

Flags = tuple[bool, ...]

# More groups save little, and take longer to compile.
_MOST_GROUPS = 3
# So many places are looked at where groups may begin.
_MOST_PLACES = 12
# Groups that take more than this part of the time of one are not worth their compilation.
_MOST_TIME = 0.75


class _Piece(NamedTuple):
    """Consecutive elements of an input, which are an input by themselves.

    Attributes:
        input: the position of the input.
        start: its first element.
        size: number of its elements.
    """

    input: int
    start: int
    size: int


def hessian_by_triangle(program: Program, active: Flags, chunk: int) -> Program | None:
    """The outputs beyond the first one, a scalar, then its Hessian blocks; None if groups of columns save little time.

    Args:
        program: the program, whose second derivatives are symmetric for certain, with slopes that are finite.
        active: which inputs to differentiate with respect to; none of them is empty.
        chunk: how many tangents to push at once.
    """
    pieces = _pieces(program, active)
    split = _split(program, active, pieces)
    starts = _best_starts(split, pieces)
    if starts is None:
        return None
    builder = Builder(program.in_types)
    with building(builder):
        inputs = builder.inputs()
        arguments = [part(reshape(inputs[i], shape=(inputs[i].size,)), 0, start, size) for i, start, size in pieces]
        arguments += [x for x, a in zip(inputs, active, strict=True) if not a]
        groups = pairwise([*starts, len(pieces)])
        matrix = _mirrored([_columns(split, len(pieces), group, arguments, chunk) for group in groups])
        outs = inline(program, inputs)[1:]
        return builder.finish([*outs, *_blocks(matrix, program, active, pieces)], f"hessian({program.name})")


def _pieces(program: Program, active: Flags) -> list[_Piece]:
    """The active inputs in the order in which they are used, divided where the program takes slices of them."""
    cuts = {v: {0, v.type.size} for v, a in zip(program.inputs, active, strict=True) if a}
    used: dict[Var, None] = {}
    for eqn in program.eqns:
        for a in eqn.operands:
            if isinstance(a, Var) and a in cuts:
                used[a] = None
                if _is_run(eqn):
                    cuts[a] |= {*eqn.params["start"], *eqn.params["limit"]}
    position = {v: i for i, v in enumerate(program.inputs)}
    in_order = dict.fromkeys([*used, *cuts])
    return [_Piece(position[v], a, b - a) for v in in_order for a, b in pairwise(sorted(cuts[v]))]


def _is_run(eqn: Eqn) -> bool:
    """Whether an equation takes consecutive elements of a vector."""
    return eqn.primitive is slice_ and eqn.params["strides"] == (1,) and eqn.outputs[0].type.size > 0


def _split(program: Program, active: Flags, pieces: Sequence[_Piece]) -> Program:
    """The program of the pieces, then of the inputs that are not active."""
    types = [program.in_types[p.input].with_shape((p.size,)) for p in pieces]
    builder = Builder([*types, *(t for t, a in zip(program.in_types, active, strict=True) if not a)])
    position = {v: i for i, (v, a) in enumerate(zip(program.inputs, active, strict=True)) if a}
    with building(builder):
        given = builder.inputs()

        def joined(input: int, start: int, limit: int) -> Tracer:
            return _joined(
                [x for x, p in zip(given, pieces, strict=False) if p.input == input and start <= p.start < limit], 0
            )

        others = iter(given[len(pieces) :])
        known = {
            v: reshape(joined(position[v], 0, v.type.size), shape=v.type.shape) if v in position else next(others)
            for v in program.inputs
        }

        def value(a: Atom) -> Tracer:
            return known[a] if isinstance(a, Var) else Tracer(builder, a)

        for eqn in program.eqns:
            first = eqn.operands[0] if _is_run(eqn) else None
            if isinstance(first, Var) and first in position:
                found = [joined(position[first], *eqn.params["start"], *eqn.params["limit"])]
            else:
                found = builder.repeat(eqn, [value(a) for a in eqn.operands])
            known.update(zip(eqn.outputs, found, strict=True))
        return simplify(builder.finish([value(a) for a in program.outputs], program.name))


def _gradient(split: Program, count: int, group: tuple[int, int]) -> tuple[Program, Flags]:
    """The gradient by all of the `count` pieces from a group on, and which inputs are those of the group."""
    first, end = group
    places = range(len(split.inputs))
    derived = gradient(split, tuple(first <= i < count for i in places), with_value=False)
    outputs = derived.outputs[len(derived.outputs) - (count - first) :]
    slopes = Program(derived.name, derived.inputs, needed_eqns(derived.eqns, outputs), outputs)
    return simplify(slopes), tuple(first <= i < end for i in places)


def _best_starts(split: Program, pieces: Sequence[_Piece]) -> list[int] | None:
    """The pieces with which groups begin that take the least time by estimate; None if one group is about as good."""
    count = len(pieces)
    sizes = list(accumulate((p.size for p in pieces), initial=0))
    price = {first: _price(split, count, first) for first in (0, *_places(sizes))}

    def time(starts: Sequence[int]) -> float:
        return sum(price[a] * (sizes[b] - sizes[a]) for a, b in pairwise((*starts, count)))

    choices = [(0, *more) for k in range(_MOST_GROUPS) for more in combinations(_places(sizes), k)]
    best = min(choices, key=time)
    return list(best) if time(best) <= _MOST_TIME * time((0,)) else None


def _places(sizes: Sequence[int]) -> list[int]:
    """The pieces with which a group may begin: all, or some that are about equally far from each other."""
    count = len(sizes) - 1
    if count <= _MOST_PLACES:
        return list(range(1, count))
    wanted = [sizes[-1] * k / _MOST_PLACES for k in range(1, _MOST_PLACES)]
    return sorted({int(np.abs(np.array(sizes[1:-1]) - at).argmin()) + 1 for at in wanted})


def _price(split: Program, count: int, first: int) -> float:
    """What a product of the rows from a piece on takes."""
    slopes, active = _gradient(split, count, (first, count))
    return program_cost(simplify(linearize(slopes, active).linear)).time


def _columns(split: Program, count: int, group: tuple[int, int], arguments: Sequence[Tracer], chunk: int) -> Tracer:
    """The columns of a group and the rows from there on, transposed: (elements of the group, elements from there)."""
    slopes, active = _gradient(split, count, group)
    parts = pushforward(slopes, active)
    results = inline(parts.values, arguments)
    pushed = iter(apply_to_basis(parts.linear, results[len(slopes.outputs) :], chunk))
    size = sum(t.size for t, a in zip(split.in_types, active, strict=True) if a)
    blocks = [
        next(pushed) if a else full((size, *t.shape), 0, t.dtype)
        for t, a in zip(slopes.out_types, parts.out_active, strict=True)
    ]
    return _joined(blocks, 1)


def _mirrored(columns: Sequence[Tracer]) -> Tracer:
    """The whole symmetric matrix, from what `_columns` finds for each group."""
    rows = []
    for k, own in enumerate(columns):
        starts = [sum(x.shape[0] for x in columns[j:k]) for j in range(k)]
        below = [part(x, 1, at, own.shape[0]) for x, at in zip(columns, starts, strict=False)]
        rows.append(_joined([*(transpose(x, axes=(1, 0)) for x in below), own], 1))
    return _joined(rows, 0)


def _blocks(matrix: Tracer, program: Program, active: Flags, pieces: Sequence[_Piece]) -> list[Tracer]:
    """The blocks of pairs of active inputs, in their order, of a matrix in the order of the pieces."""
    used = list(dict.fromkeys(p.input for p in pieces))
    types = [program.in_types[i] for i in used]
    found = list(blocks_of(matrix, types, types))
    wanted = [used.index(i) for i, a in enumerate(active) if a]
    return [found[i * len(used) + k] for i in wanted for k in wanted]


def _joined(xs: Sequence[Tracer], axis: int) -> Tracer:
    return xs[0] if len(xs) == 1 else concatenate(*xs, axis=axis)
