"""Eigenvalues, with their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.trace import Tracer
from ..core.types import ArrayType
from ..ops.broadcast import reduce_sum
from ..ops.contractions import matmul
from ..ops.elementwise import (
    abs_,
    add,
    conj,
    convert,
    div,
    eq,
    gt,
    imag,
    mul,
    ne,
    real,
    select,
    sqrt,
    stop_gradient,
    sub,
)
from ..ops.host import on_host
from ..ops.linalg.equations import solve
from ..ops.linalg.family import (
    adjoint,
    along_columns,
    check_square,
    complex_type,
    diagonal,
    each_times,
    in_columns,
    part,
    real_if_complex,
    real_type,
    symmetric_part,
)
from ..ops.literals import full_like, iota
from ..ops.platforms import by_platform
from ..ops.reductions import argmax
from .decomposition import differences, reflection
from .repeated_values import SpectralPrimitive


class _Eigenvectors(SpectralPrimitive):
    """Eigenvalues, and eigenvectors as columns.  Of equal eigenvalues see `limit.py`."""

    def gaps(self, values: Tracer) -> list[Tracer]:
        return [differences(values)]

    def exchanged(self, results: Sequence[Tracer]) -> list[Tracer]:
        values, vectors = results
        return [values, matmul(vectors, reflection(values, self.tolerance(results), vectors))]


def _turned(vectors: Tracer, change: Tracer, inverse: Tracer) -> Tracer:
    """How vectors turn by what a change of the matrices, seen from them, mixes into each of them (column)."""
    return matmul(vectors, mul(part(change, ne), convert(inverse, dtype=change.dtype)))


class Eigh(_Eigenvectors):
    """Eigenvalues, increasing, and eigenvectors (the columns) of the Hermitian matrices `a`; reads the lower triangles.

    NumPy and XLA may choose other signs, or phases, of the eigenvectors.
    """

    name = "eigh"
    cubic = 9.0

    def type_rule(self, a: ArrayType, *, with_limits: bool = False) -> list[ArrayType]:
        check_square(self.name, a)
        return [ArrayType(a.shape[:-1], real_type(a.dtype)), a]

    def numpy(self, a: Any, *, with_limits: bool = False) -> Any:
        return np.linalg.eigh(a)

    def xla(self, a: Any, *, with_limits: bool = False) -> Any:
        import jax.numpy as jnp

        return jnp.linalg.eigh(a, "L", symmetrize_input=False)

    def tangents(self, results: Sequence[Tracer], t: Tracer, inverses: Sequence[Tracer]) -> list[Tracer]:
        _, vectors = results
        change = matmul(adjoint(vectors), matmul(symmetric_part(t), vectors))
        return [real_if_complex(diagonal(change)), _turned(vectors, change, *inverses)]

    def matrices(self, results: Sequence[Tracer], values: Tracer) -> Tracer:
        _, vectors = results
        return matmul(mul(vectors, in_columns(values, vectors)), adjoint(vectors))


class Eig(_Eigenvectors):
    """Eigenvalues and eigenvectors (the columns) of square matrices `a`, as complex numbers.

    A vector has the length 1, and its largest element is real; that is what the derivative keeps to.  Where there are
    too few eigenvectors, up to rounding, there is no derivative.
    """

    name = "eig"
    cubic = 25.0

    def type_rule(self, a: ArrayType, *, with_limits: bool = False) -> list[ArrayType]:
        check_square(self.name, a)
        dtype = complex_type(a.dtype)
        return [ArrayType(a.shape[:-1], dtype), a.with_dtype(dtype)]

    def numpy(self, a: Any, *, with_limits: bool = False) -> Any:
        return _decomposed(a)

    def xla(self, a: Any, *, with_limits: bool = False) -> Any:
        from jax import lax

        def on_cpu(a: Any) -> list[Any]:
            values, vectors = lax.linalg.eig(a, compute_left_eigenvectors=False)
            return [values, vectors]

        def elsewhere(a: Any) -> list[Any]:
            return on_host(_decomposed, self.type_rule(ArrayType(a.shape, np.dtype(a.dtype))), a)

        return by_platform(a, cpu=on_cpu, default=elsewhere)

    def tolerance(self, results: Sequence[Tracer]) -> Tracer:
        # Bauer and Fike, "Norms and exclusion theorems" (1960).
        smallest = super().tolerance(results)
        return mul(smallest, _condition(results[1])) if smallest.size else smallest

    def matrices(self, results: Sequence[Tracer], values: Tracer) -> Tracer:
        _, vectors = results
        moved = mul(vectors, in_columns(values, vectors))
        return adjoint(solve(adjoint(vectors), adjoint(moved))) if vectors.size else vectors

    def exchanged(self, results: Sequence[Tracer]) -> list[Tracer]:
        values, vectors = super().exchanged(results)
        if not vectors.size:
            return [values, vectors]
        axes = (vectors.ndim - 2,)
        length = sqrt(reduce_sum(_real_product(vectors, vectors), axes=axes))
        largest = reduce_sum(select(_is_largest(vectors), vectors, full_like(vectors, 0)), axes=axes)
        phase = div(largest, convert(abs_(largest), dtype=largest.dtype))
        return [values, div(vectors, mul(in_columns(length, vectors), in_columns(phase, vectors)))]

    def tangents(self, results: Sequence[Tracer], t: Tracer, inverses: Sequence[Tracer]) -> list[Tracer]:
        _, vectors = results
        if not vectors.size:
            return [full_like(x, 0) for x in results]
        change = solve(vectors, matmul(convert(t, dtype=vectors.dtype), vectors))
        # Rounding, which the condition of the vectors enlarges twice, may be as large as all else.
        condition = _condition(vectors)
        is_lost = gt(condition, full_like(condition, np.finfo(condition.dtype).eps ** -0.5))
        factor = select(is_lost, full_like(condition, np.nan), full_like(condition, 1))
        change = each_times(convert(factor, dtype=change.dtype), change)
        turned, rows_axis = _turned(vectors, change, *inverses), vectors.ndim - 2
        # What a vector may change along itself is what keeps its length, and its largest element real.
        length = reduce_sum(_real_product(vectors, turned), axes=(rows_axis,))
        largest = _is_largest(vectors)
        phase = reduce_sum(
            imag(div(select(largest, turned, full_like(turned, 0)), select(largest, vectors, full_like(vectors, 1)))),
            axes=(rows_axis,),
        )
        along = add(in_columns(length, vectors), mul(in_columns(phase, vectors), full_like(vectors, 1j)))
        return [diagonal(change), sub(turned, mul(vectors, along))]


def _condition(vectors: Tracer) -> Tracer:
    """The condition numbers of matrices of vectors that have the length 1, up to a factor of their size."""
    size = abs_(solve(stop_gradient(vectors), part(full_like(vectors, 1), eq)))
    return sqrt(reduce_sum(mul(size, size), axes=(vectors.ndim - 2, vectors.ndim - 1)))


def _is_largest(vectors: Tracer) -> Tracer:
    """Where the largest element of each column is."""
    axis = vectors.ndim - 2
    row = argmax(abs_(vectors), axis=axis)
    return eq(iota(shape=vectors.shape, axis=axis, dtype=row.dtype), along_columns(row, vectors))


def _decomposed(a: Any) -> list[Any]:
    """The eigenvalues and eigenvectors of NumPy's arrays, as complex numbers."""
    return [x.astype(complex_type(a.dtype), copy=False) for x in np.linalg.eig(a)]


def _real_product(x: Tracer, y: Tracer) -> Tracer:
    return real(mul(conj(x), y))


eigh = Eigh()
eig = Eig()
