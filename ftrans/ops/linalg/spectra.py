"""Eigenvalues, with their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.primitive import Tangent
from ...core.trace import Tracer
from ...core.types import ArrayType
from ..contractions import matmul
from ..elementwise import abs_, add, conj, convert, div, eq, imag, mul, ne, real, select, sub
from ..host import on_host
from ..reductions import argmax, reduce_sum
from ..shapes import full_like, iota
from .equations import solve
from .family import (
    adjoint,
    along_columns,
    check_square,
    complex_type,
    diagonal,
    in_columns,
    part,
    real_if_complex,
    real_type,
    symmetric_part,
)
from .repeated import SpectralPrimitive, chosen_where, equal, gaps, inverse_gap, reflection, steps, tolerance_like


class _Eigenvectors(SpectralPrimitive):
    """Eigenvalues, and eigenvectors as columns.  Of equal eigenvalues see `repeated.py`."""

    def change(self, vectors: Tracer, t: Tracer) -> Tracer:
        """A change of the matrices, seen from the eigenvectors."""
        raise NotImplementedError

    def mixed(self, values: Tracer, change: Tracer) -> Tracer:
        """How much of each other vector (row) the change mixes into a vector (column)."""
        gap = gaps(values, change)
        weights = convert(inverse_gap(gap, tolerance_like(values, gap)), dtype=change.dtype)
        return mul(part(change, ne), weights)

    def mixing(self, a: Tracer, results: Sequence[Tracer], t: Tracer, **params: Any) -> list[Tangent]:
        values, vectors = results
        gap, step = gaps(values, vectors), gaps(steps(values), vectors)
        limit = chosen_where(equal(gap, tolerance_like(values, gap)), inverse_gap(step, full_like(step, 0)))
        mixed = mul(part(self.change(vectors, t), ne), convert(limit, dtype=vectors.dtype))
        return [None, matmul(vectors, mixed)]

    def exchanged(self, results: Sequence[Tracer], **params: Any) -> list[Tracer]:
        values, vectors = results
        return [values, matmul(vectors, reflection(values, vectors))]


class Eigh(_Eigenvectors):
    """Eigenvalues, increasing, and eigenvectors (the columns) of the Hermitian matrices `a`; reads the lower triangles.

    NumPy and XLA may choose other signs, or phases, of the eigenvectors.
    """

    name = "eigh"
    cubic = 9.0

    def type_rule(self, a: ArrayType) -> list[ArrayType]:
        check_square(self.name, a)
        return [ArrayType(a.shape[:-1], real_type(a.dtype)), a]

    def numpy(self, a: Any) -> Any:
        return np.linalg.eigh(a)

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return jnp.linalg.eigh(a, "L", symmetrize_input=False)

    def change(self, vectors: Tracer, t: Tracer) -> Tracer:
        return matmul(adjoint(vectors), matmul(symmetric_part(t), vectors))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        values, vectors = eigh(a)
        change = self.change(vectors, t)
        turned = matmul(vectors, self.mixed(values, change))
        return [values, vectors], [real_if_complex(diagonal(change)), turned]

    def separation(self, results: Sequence[Tracer], **params: Any) -> list[Tracer]:
        values, vectors = results
        apart = steps(values)
        return [apart, matmul(mul(vectors, in_columns(apart, vectors)), adjoint(vectors))]


class Eig(_Eigenvectors):
    """Eigenvalues and eigenvectors (the columns) of square matrices `a`, as complex numbers.

    A vector has the length 1, and its largest element is real; that is what the derivative keeps to.  Where
    there are too few eigenvectors, there is no derivative.
    """

    name = "eig"
    cubic = 25.0
    moves_matrices = False

    def type_rule(self, a: ArrayType) -> list[ArrayType]:
        check_square(self.name, a)
        dtype = complex_type(a.dtype)
        return [ArrayType(a.shape[:-1], dtype), a.with_dtype(dtype)]

    def numpy(self, a: Any) -> Any:
        return [x.astype(complex_type(a.dtype), copy=False) for x in np.linalg.eig(a)]

    def xla(self, a: Any) -> Any:
        from jax import lax

        def on_cpu(a: Any) -> list[Any]:
            values, vectors = lax.linalg.eig(a, compute_left_eigenvectors=False)
            return [values, vectors]

        def elsewhere(a: Any) -> list[Any]:
            return on_host(self.numpy, self.type_rule(ArrayType(a.shape, np.dtype(a.dtype))), a)

        return lax.platform_dependent(a, cpu=on_cpu, default=elsewhere)

    def change(self, vectors: Tracer, t: Tracer) -> Tracer:
        return solve(vectors, matmul(convert(t, dtype=vectors.dtype), vectors))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        values, vectors = eig(a)
        if not a.shape[-1]:
            return [values, vectors], [None, None]
        change = self.change(vectors, t)
        turned = matmul(vectors, self.mixed(values, change))
        # What a vector may change along itself is what keeps its length, and its largest element real.
        length = reduce_sum(_real_product(vectors, turned), axes=(a.ndim - 2,))
        row = argmax(abs_(vectors), axis=a.ndim - 2)
        largest = eq(iota(shape=a.shape, axis=a.ndim - 2, dtype=row.dtype), along_columns(row, vectors))
        phase = reduce_sum(
            imag(div(select(largest, turned, full_like(turned, 0)), select(largest, vectors, full_like(vectors, 1)))),
            axes=(a.ndim - 2,),
        )
        along = add(in_columns(length, vectors), mul(in_columns(phase, vectors), full_like(vectors, 1j)))
        return [values, vectors], [diagonal(change), sub(turned, mul(vectors, along))]

    def separation(self, results: Sequence[Tracer], **params: Any) -> list[Tracer]:
        return [steps(results[0])]


def _real_product(x: Tracer, y: Tracer) -> Tracer:
    return real(mul(conj(x), y))


eigh = Eigh()
eig = Eig()
