"""Factorisations without eigenvalues: Cholesky, QR and LU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.primitive import MultipleResults, SingleResult, Tangent
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ..broadcast import broadcast
from ..contractions import matmul, swap_last
from ..elementwise import add, convert, eq, ge, gt, le, mul, real, sub
from ..literals import full, full_like, iota
from ..parts import concatenate
from .equations import triangular_solve
from .family import (
    MatrixFunction,
    adjoint,
    check_matrices,
    columns,
    entries,
    part,
    rows,
    symmetric_part,
)


def divided_by_upper(x: Tracer, r: Tracer) -> Tracer:
    """`x @ inv(r)` for upper triangular `r`."""
    solved = triangular_solve(r, swap_last(x), lower=False, transpose_a=True, unit_diagonal=False)
    return swap_last(solved)


class Cholesky(MatrixFunction, SingleResult):
    """The lower triangular factors `l` with `l @ l.H = a`; reads the lower triangles of the Hermitian matrices `a`."""

    name = "cholesky"
    cubic = 1 / 3

    def numpy(self, a: Any) -> Any:
        return np.linalg.cholesky(a)

    def xla(self, a: Any) -> Any:
        from jax import lax

        return lax.linalg.cholesky(a, symmetrize_input=False)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        out = cholesky(a)
        # The change of l is l @ phi(inv(l) @ t @ inv(l).H); phi takes the lower triangle and half of the diagonal.
        middle = symmetric_part(t)
        for _ in range(2):
            middle = adjoint(triangular_solve(out, middle, lower=True, transpose_a=False, unit_diagonal=False))
        weights = add(*(convert(entries(a, compare), dtype=a.dtype) for compare in (ge, gt)))
        return out, matmul(out, mul(middle, mul(weights, full_like(a, 0.5))))


class Qr(MatrixFunction, MultipleResults):
    """Orthonormal columns `q` and upper triangular `r` with `q @ r = a`, for `a` with as many rows as columns or more.

    The diagonal of `r` is real.  If `complete`, `q` is square: its further columns are some basis of the complement,
    and turn as little as they can with the first ones, which is right for what does not depend on their choice.
    Derivatives need columns that are linearly independent.
    """

    name = "qr"
    cubic = 4.0

    def __call__(self, a: Any, *, complete: bool = False) -> Any:
        return super().__call__(a, complete=complete)

    def type_rule(self, a: ArrayType, *, complete: bool) -> list[ArrayType]:
        check_matrices(self.name, a)
        *lead, m, n = a.shape
        if m < n:
            raise ValueError(f"qr needs matrices with as many rows as columns or more, not {a}")
        size = m if complete else n
        return [a.with_shape((*lead, m, size)), a.with_shape((*lead, size, n))]

    def numpy(self, a: Any, *, complete: bool) -> Any:
        return list(np.linalg.qr(a, "complete" if complete else "reduced"))

    def xla(self, a: Any, *, complete: bool) -> Any:
        from jax import lax

        return list(lax.linalg.qr(a, full_matrices=complete))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, complete: bool) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        m, n = a.shape[-2:]
        q, r = self(a, complete=complete)
        first, upper = columns(q, 0, n), rows(r, 0, n)
        x = divided_by_upper(t, upper)
        c = matmul(adjoint(first), x)
        # The first columns turn by the skew matrix `turn`; the rest of `c` is what changes r.
        low = part(c, gt)
        turn = sub(low, adjoint(low))
        if is_complex(a.dtype):
            on_diagonal = part(c, eq)
            turn = add(turn, sub(on_diagonal, convert(real(on_diagonal), dtype=a.dtype)))
        grown = sub(c, turn)
        q_change, r_change = sub(x, matmul(first, grown)), matmul(grown, upper)
        if complete and m > n:
            others = columns(q, n, m)
            turned = matmul(first, adjoint(matmul(adjoint(others), q_change)))
            q_change = concatenate(q_change, sub(full_like(turned, 0), turned), axis=a.ndim - 1)
            below = full((*a.shape[:-2], m - n, n), 0, a.dtype)
            r_change = concatenate(r_change, below, axis=a.ndim - 2)
        return [q, r], [q_change, r_change]


class Lu(MatrixFunction, MultipleResults):
    """LU factors of the matrices `a` in one, `l - I + u`; the rows that were exchanged one by one; and their order.

    `a[order] = l @ u` with ones on the diagonal of `l`.  The order is a constant for derivatives, which need first
    columns (or, reordered, first rows) that are not singular.
    """

    name = "lu"

    def type_rule(self, a: ArrayType) -> list[ArrayType]:
        check_matrices(self.name, a)
        *lead, m, n = a.shape
        return [a, *(ArrayType((*lead, size), np.int32) for size in (min(m, n), m))]

    def numpy(self, a: Any) -> Any:
        from scipy.linalg import get_lapack_funcs

        (factor,) = get_lapack_funcs(("getrf",), (a,))
        *lead, m, n = a.shape
        factors, exchanged = np.empty_like(a), np.empty(a.shape[:-1], np.int32)
        exchanged[...] = np.arange(m)
        pivots = exchanged[..., : min(m, n)]
        for i in np.ndindex(*lead):
            if a.size:
                factors[i], pivots[i], _ = factor(a[i])
        return [factors, pivots.copy(), order_of_rows.numpy(exchanged)]

    def xla(self, a: Any) -> Any:
        from jax import lax

        return list(lax.linalg.lu(a))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        factors, pivots, order = lu(a)
        m, n = a.shape[-2:]
        k, square = min(m, n), (*a.shape[:-1], m)
        places = broadcast(order, shape=square, dims=tuple(range(a.ndim - 1)))
        places = eq(places, iota(shape=square, axis=a.ndim - 1, dtype=order.dtype))
        moved = matmul(convert(places, dtype=a.dtype), t)
        first = columns(rows(factors, 0, k), 0, k)

        def divided_by_lower(x: Tracer) -> Tracer:
            return triangular_solve(first, x, lower=True, transpose_a=False, unit_diagonal=True)

        middle = divided_by_upper(divided_by_lower(columns(rows(moved, 0, k), 0, k)), first)
        low = part(middle, gt)
        low = add(low, matmul(part(first, gt), low))
        high = matmul(part(middle, le), part(first, le))
        change = add(low, high)
        if m > k:
            below = sub(rows(moved, k, m), matmul(rows(factors, k, m), high))
            change = concatenate(change, divided_by_upper(below, first), axis=a.ndim - 2)
        if n > k:
            beside = sub(columns(moved, k, n), matmul(low, columns(factors, k, n)))
            change = concatenate(change, divided_by_lower(beside), axis=a.ndim - 1)
        return [factors, pivots, order], [change, None, None]


class OrderOfRows(MatrixFunction, SingleResult):
    """The order of rows that `pivots` make, which say with which row each one is exchanged, one after the other."""

    name = "order_of_rows"

    def type_rule(self, pivots: ArrayType) -> ArrayType:
        if pivots.dtype.kind != "i" or not pivots.ndim:
            raise TypeError(f"{self.name} takes vectors of integers, not {pivots}")
        return pivots

    def numpy(self, pivots: Any) -> Any:
        order = np.broadcast_to(np.arange(pivots.shape[-1], dtype=pivots.dtype), pivots.shape).copy()
        for i in np.ndindex(pivots.shape[:-1]):
            for row, other in enumerate(pivots[i]):
                order[i][[row, other]] = order[i][[other, row]]
        return order

    def xla(self, pivots: Any) -> Any:
        from jax import lax

        order = lax.linalg.lu_pivots_to_permutation(pivots.astype(np.int32), pivots.shape[-1])
        return order.astype(pivots.dtype)


cholesky = Cholesky()
qr = Qr()
lu = Lu()
order_of_rows = OrderOfRows()
