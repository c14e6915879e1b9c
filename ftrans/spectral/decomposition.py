"""Decompositions of matrices into values and vectors: gaps between values, and which of them count as none.

What is done where there are none is said in `limit.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.primitive import MultipleResults, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType
from ..ops.broadcast import broadcast, reduce_sum
from ..ops.elementwise import (
    Elementwise,
    abs_,
    add,
    bitwise_or,
    convert,
    cos,
    div,
    eq,
    le,
    mul,
    select,
    sqrt,
    stop_gradient,
    sub,
)
from ..ops.elementwise.family import combined
from ..ops.linalg.family import MatrixFunction, along_columns, along_rows, entries, part, real_if_complex
from ..ops.literals import full, full_like, iota
from ..ops.reductions import reduce_max, reduce_or

# Values are equal if they differ by less than this many roundings of the largest one, for each row of the matrix.
_ROUNDINGS = 16


def differences(values: Tracer) -> Tracer:
    """At row i and column j, `values[j] - values[i]`; on the diagonal, which nothing uses, a number that is never 0."""
    gap = sub(in_rows(values), in_rows(values, along=False))
    large = math.sqrt(np.finfo(gap.dtype).max) / 2
    return select(entries(gap, eq), full_like(gap, large), gap)


def in_rows(values: Tracer, along: bool = True) -> Tracer:
    """Square matrices of which each row (or, if not `along`, each column) holds the values."""
    lead = values.ndim - 1
    shape = (*values.shape, values.shape[-1])
    return broadcast(values, shape=shape, dims=(*range(lead), lead + 1 if along else lead))


class InverseGap(Elementwise):
    """`1 / gap**order`, or 0 where the gap is not larger than the tolerance: limits take care of what is left out."""

    broadcasts = False

    def __init__(self) -> None:
        super().__init__("inverse_gap", np.divide, "div")
        self._is_plain = False

    def type_rule(self, *types: ArrayType, order: int = 1) -> ArrayType:
        return super().type_rule(*types)

    def numpy(self, *arrays: Any, order: int = 1) -> Any:
        return self._inverse(np, order, *arrays)

    def xla(self, *arrays: Any, order: int = 1) -> Any:
        from jax import numpy as jnp

        return self._inverse(jnp, order, *arrays)

    @staticmethod
    def _inverse(xp: Any, order: int, gap: Any, tolerance: Any) -> Any:
        equal = xp.abs(gap) <= tolerance.real
        one = gap.dtype.type(1)
        return xp.where(equal, gap.dtype.type(0), (one / xp.where(equal, one, gap)) ** order)

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        return None

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, order: int = 1) -> tuple[Any, Any]:
        gap, tolerance = primals
        slope = full_like(gap, -order)

        def along_gap(t: Tracer) -> Tracer:
            return mul(t, mul(slope, inverse_gap(gap, tolerance, order=order + 1)))

        return self(gap, tolerance, order=order), combined([along_gap, None], tangents)


inverse_gap = InverseGap()


def is_none(gap: Tracer, tolerance: Tracer) -> Tracer:
    """Where a gap counts as none."""
    return le(abs_(gap), real_if_complex(_spread(tolerance, gap)))


def _spread(tolerance: Tracer, gap: Tracer) -> Tracer:
    """The tolerance of each matrix, for each of its gaps."""
    return convert(broadcast(tolerance, shape=gap.shape, dims=tuple(range(tolerance.ndim))), dtype=gap.dtype)


def merged(values: Tracer, tolerance: Tracer) -> Tracer:
    """The values, where those that are equal are exactly so."""
    gap = differences(values)
    same = select(is_none(gap, tolerance), full_like(gap, 1), part(full_like(gap, 1), eq))
    axes = (gap.ndim - 1,)
    return div(reduce_sum(mul(same, in_rows(values)), axes=axes), reduce_sum(same, axes=axes))


def counted(values: Tracer) -> Tracer:
    """0, 1, 2, ... in place of the values."""
    return iota(shape=values.shape, axis=values.ndim - 1, dtype=values.dtype)


def reflection(values: Tracer, tolerance: Tracer, like: Tracer) -> Tracer:
    """Reflections among vectors of equal values, in matrices like `like`: `v @ reflection` are vectors as well."""
    gap = differences(values)
    others = real_if_complex(select(is_none(gap, tolerance), full_like(gap, 1), full_like(gap, 0)))
    # Householder reflections at vectors of any elements, one for each set of equal values.
    number = real_if_complex(counted(values))
    element = cos(add(number, full_like(number, 0.4)))
    row, column = along_rows(element, others), along_columns(element, others)
    among = reduce_sum(mul(others, mul(column, column)), axes=(others.ndim - 1,))
    is_alone = eq(among, full_like(among, 0))
    length = sqrt(add(mul(element, element), among))
    row, column = div(row, along_rows(length, others)), div(column, along_columns(length, others))
    itself = part(select(along_rows(is_alone, others), full_like(others, 0), full_like(others, 1)), eq)
    moved = mul(mul(add(others, itself), full_like(others, 2)), mul(row, column))
    return convert(sub(part(full_like(others, 1), eq), moved), dtype=like.dtype)


class Decomposition(MatrixFunction, MultipleResults):
    """A primitive that gives values and vectors of matrices.

    The parameter `with_limits` marks an equation where all that is made of its results goes through limits.

    Attributes:
        count: the number of its results.
        values: which of them holds the values.
    """

    count = 2
    values = 0

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        results = self(a, **params)
        tolerance = self.tolerance(results)
        inverses = [inverse_gap(gap, _spread(tolerance, gap)) for gap in self.gaps(results[self.values])]
        return results, self.tangents(results, t, inverses)

    def tolerance(self, results: Sequence[Tracer]) -> Tracer:
        """Up to which size a gap counts as none: a real number for each matrix."""
        values = stop_gradient(results[self.values])
        if not values.shape[-1]:
            return real_if_complex(full(values.shape[:-1], 0, values.dtype))
        largest = reduce_max(abs_(values), axes=(values.ndim - 1,))
        return mul(largest, full_like(largest, _ROUNDINGS * values.shape[-1] * np.finfo(values.dtype).eps))

    def merged(self, results: Sequence[Tracer]) -> list[Tracer]:
        """The results, where gaps that are none are exactly so."""
        found = list(results)
        found[self.values] = merged(found[self.values], self.tolerance(results))
        return found

    def gaps(self, values: Tracer) -> list[Tracer]:
        """What vectors turn inversely to; linear in the values."""
        raise NotImplementedError

    def tangents(self, results: Sequence[Tracer], t: Tracer, inverses: Sequence[Tracer]) -> list[Tracer]:
        """The tangents of the results along a change `t` of the matrices, given the inverse gaps.

        Those of the vectors are linear in the inverse gaps, too, and the results serve only as vectors.
        """
        raise NotImplementedError

    def steps(self, values: Tracer) -> Tracer:
        """A direction that moves values apart, and away from 0 where that is the limit of gaps."""
        return counted(values)

    def matrices(self, results: Sequence[Tracer], values: Tracer) -> Tracer:
        """The matrices that have these values, and the vectors of `results`."""
        raise NotImplementedError

    def exchanged(self, results: Sequence[Tracer]) -> list[Tracer]:
        """Other results that are as right: vectors of equal values are turned."""
        raise NotImplementedError

    def is_special(self, results: Sequence[Tracer]) -> Tracer:
        """Whether any gap is none."""
        tolerance = self.tolerance(results)
        found = full((), False, np.dtype(bool))
        for gap in self.gaps(results[self.values]):
            found = bitwise_or(found, reduce_or(is_none(gap, tolerance), axes=tuple(range(gap.ndim))))
        return found
