"""Singular values, with their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.trace import Tracer
from ..core.types import ArrayType
from ..ops.contractions import matmul
from ..ops.elementwise import add, convert, mul, ne, neg, select, sub
from ..ops.linalg.family import (
    adjoint,
    check_matrices,
    columns,
    diagonal,
    in_columns,
    part,
    real_if_complex,
    real_type,
    rows,
    symmetric_part,
)
from ..ops.literals import full_like
from ..ops.parts import concatenate
from .decomposition import counted, differences, in_rows, is_none, reflection
from .repeated_values import SpectralPrimitive


class Svd(SpectralPrimitive):
    """Left singular vectors (columns), singular values, decreasing, and right singular vectors (conjugated, rows).

    If `full`, there are as many vectors as rows and columns of `a`: those without a singular value are some basis of
    what is left, and turn as little as they can with the others, which is right for what does not depend on their
    choice.  Of equal values, and those that are 0, see `limit.py`.
    """

    name = "svd"
    cubic = 20.0
    count = 3
    values = 1

    def __call__(self, a: Any, *, full: bool = False, **params: Any) -> Any:
        return super().__call__(a, full=full, **params)

    def type_rule(self, a: ArrayType, *, full: bool, with_limits: bool = False) -> list[ArrayType]:
        check_matrices(self.name, a)
        *lead, m, n = a.shape
        k = min(m, n)
        values = ArrayType((*lead, k), real_type(a.dtype))
        return [a.with_shape((*lead, m, m if full else k)), values, a.with_shape((*lead, n if full else k, n))]

    def numpy(self, a: Any, *, full: bool, with_limits: bool = False) -> Any:
        return list(np.linalg.svd(a, full))

    def xla(self, a: Any, *, full: bool, with_limits: bool = False) -> Any:
        import jax.numpy as jnp

        return list(jnp.linalg.svd(a, full))

    def merged(self, results: Sequence[Tracer]) -> list[Tracer]:
        u, s, vh = super().merged(results)
        return [u, select(is_none(s, self.tolerance(results)), full_like(s, 0), s), vh]

    def gaps(self, values: Tracer) -> list[Tracer]:
        # Vectors turn together by differences of values, against each other by sums, and out of their space by values.
        return [differences(values), add(in_rows(values), in_rows(values, along=False)), values]

    def tangents(self, results: Sequence[Tracer], t: Tracer, inverses: Sequence[Tracer]) -> list[Tracer]:
        return _Change(results, t).of_results(*inverses)

    def steps(self, values: Tracer) -> Tracer:
        # Values that are 0 move apart from 0 as well.
        return sub(full_like(values, values.shape[-1]), counted(values))

    def matrices(self, results: Sequence[Tracer], values: Tracer) -> Tracer:
        u, _, vh = results
        k = values.shape[-1]
        left = columns(u, 0, k)
        return matmul(mul(left, in_columns(values, left)), rows(vh, 0, k))

    def exchanged(self, results: Sequence[Tracer]) -> list[Tracer]:
        u, s, vh = results
        k = s.shape[-1]
        left, right = columns(u, 0, k), rows(vh, 0, k)
        tolerance = self.tolerance(results)
        turn = reflection(s, tolerance, matmul(right, adjoint(right)))
        left, right = matmul(left, turn), matmul(turn, right)
        # Both sides of values that are 0 turn on their own.
        is_zero = in_columns(is_none(s, tolerance), left)
        left = mul(left, sub(full_like(left, 1), mul(is_zero, full_like(left, 2))))
        left = concatenate(left, columns(u, k, u.shape[-1]), axis=u.ndim - 1) if u.shape[-1] > k else left
        right = concatenate(right, rows(vh, k, vh.shape[-2]), axis=vh.ndim - 2) if vh.shape[-2] > k else right
        return [left, s, right]


class _Change:
    """A change of matrices, seen from their singular vectors.

    Attributes:
        inner: between the vectors that have a singular value.
    """

    def __init__(self, results: Sequence[Tracer], t: Tracer) -> None:
        self.u, self.s, self.vh = results
        k = self.s.shape[-1]
        self.left, self.right = columns(self.u, 0, k), adjoint(rows(self.vh, 0, k))
        self.pushed, self.pushed_back = matmul(t, self.right), matmul(adjoint(t), self.left)
        self.inner = matmul(adjoint(self.left), self.pushed)

    def of_results(self, difference: Tracer, total: Tracer, value: Tracer) -> list[Tracer]:
        """The changes of vectors, values, and vectors, given the inverse gaps."""
        hermitian = symmetric_part(self.inner)
        # Both sides turn together by the Hermitian part of the change, against each other by the rest.
        together = mul(part(hermitian, ne), convert(difference, dtype=hermitian.dtype))
        against = mul(sub(self.inner, hermitian), convert(total, dtype=hermitian.dtype))
        changes = []
        for basis, first, pushed, inner, turn in (
            (self.u, self.left, self.pushed, self.inner, add(together, against)),
            (adjoint(self.vh), self.right, self.pushed_back, adjoint(self.inner), sub(together, against)),
        ):
            k, turned = self.s.shape[-1], matmul(first, turn)
            if basis.shape[-2] > k:
                turned = add(turned, mul(sub(pushed, matmul(first, inner)), in_columns(value, pushed)))
            if basis.shape[-1] > k:
                others = columns(basis, k, basis.shape[-1])
                rest = neg(matmul(first, adjoint(matmul(adjoint(others), turned))))
                turned = concatenate(turned, rest, axis=first.ndim - 1)
            changes.append(turned)
        return [changes[0], real_if_complex(diagonal(self.inner)), adjoint(changes[1])]


svd = Svd()
