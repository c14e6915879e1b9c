"""The bilaplacian of a program: the sum of all derivatives of order 4 that are of order 2 in each of two directions.

Derivatives of order 4 along single directions give the mixed ones.  With `D(u)` for the one along `u`,

    12 d^4 f / dx_i^2 dx_j^2 = D(e_i + e_j) + D(e_i - e_j) - 2 D(e_i) - 2 D(e_j)

(Griewank, Utke and Walther, Evaluating higher derivative tensors by forward propagation of univariate Taylor series,
Mathematics of Computation 69, 2000).  So one Taylor series of order 4 along each of `n**2` directions gives all of it,
for `n` elements of the argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType
from ...ops.broadcast import broadcast, reduce_sum
from ...ops.elementwise import add, convert, eq, mul
from ...ops.literals import full, iota
from ...ops.parts import slice_
from ...ops.shapes import reshape
from ..dense.chunks import apply_in_chunks
from ..graph.emission import constant
from .taylor import taylor

_ORDER = 4
_INDEX = np.dtype(np.int64)
_REAL = np.dtype(np.float64)


def bilaplacian(program: Program, active: tuple[bool, ...], wanted: int, chunk: int | None) -> Program:
    """The program for all outputs, then for the bilaplacians of the first `wanted` of them.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs have a bilaplacian; further ones are only returned.
        chunk: along how many directions to differentiate at once; along all of them by default.
    """
    return program.derive(("bilaplacian", active, wanted, chunk), lambda: _bilaplacian(program, active, wanted, chunk))


def _bilaplacian(program: Program, active: tuple[bool, ...], wanted: int, chunk: int | None) -> Program:
    count = sum([t.size for t, a in zip(program.in_types, active, strict=True) if a])
    builder = Builder(program.in_types)
    with building(builder):
        inputs = builder.inputs()
        outs = inline(program, inputs)
        if count:
            seeds = [constant(x) for x in _directions(count)]
            terms = apply_in_chunks(_term(program, active, wanted, count), inputs, seeds, chunk)
            sums = [reduce_sum(y, axes=(0,)) for y in terms]
        else:
            sums = [full(y.shape, 0, y.dtype) for y in outs[:wanted]]
        return builder.finish([*outs, *sums], f"bilaplacian({program.name})")


def _directions(count: int) -> list[Any]:
    """The directions `e_i + s * e_j`, as the arrays of `i`, `j` and `s`, and the weight of each."""
    every = np.arange(count)
    i, j = np.triu_indices(count, 1)
    signs = np.repeat([0.0, 1.0, -1.0], [count, i.size, i.size])
    weights = np.repeat([1 - (count - 1) / 3, 1 / 6], [count, 2 * i.size])
    return [np.concatenate([every, i, i]), np.concatenate([every, j, j]), signs, weights]


def _term(program: Program, active: tuple[bool, ...], wanted: int, count: int) -> Program:
    """The inputs of a program, then a direction and its weight -> the weighted derivatives of order 4 along it."""
    given = tuple([(1,) if a else () for a in active])
    total = len(program.outputs)
    wants = tuple([k < wanted for k in range(total)])
    derived = taylor(program, given, _ORDER, wants, derivatives=True)
    last = iter(np.cumsum([len(orders) for orders in derived.orders]) + total - 1)
    places = [int(place) for place, w in zip(last, wants, strict=True) if w]
    builder = Builder([*program.in_types, *(ArrayType((), t) for t in (_INDEX, _INDEX, _REAL, _REAL))])
    with building(builder):
        *inputs, i, j, sign, weight = builder.inputs()
        direction = add(_unit(i, count), mul(broadcast(sign, shape=(count,), dims=()), _unit(j, count)))
        parts, start = [], 0
        for t, a in zip(program.in_types, active, strict=True):
            if a:
                part = slice_(direction, start=(start,), limit=(start + t.size,), strides=(1,))
                parts.append(convert(reshape(part, shape=t.shape), dtype=t.dtype))
                start += t.size
        outs = inline(derived.program, [*inputs, *parts])
        found = [outs[place] for place in places]
        weights = [broadcast(convert(weight, dtype=y.dtype), shape=y.shape, dims=()) for y in found]
        return builder.finish([mul(y, w) for y, w in zip(found, weights, strict=True)], "term")


def _unit(i: Tracer, count: int) -> Tracer:
    number = iota(shape=(count,), axis=0, dtype=_INDEX)
    return convert(eq(number, broadcast(i, shape=(count,), dims=())), dtype=_REAL)
