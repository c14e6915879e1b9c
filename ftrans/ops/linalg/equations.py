"""Solutions of linear equations: with triangular and general matrices, inverses, and Sylvester's equation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.pieces import Part, aligned, triangle
from ...core.cost import Cost
from ...core.on_numpy import Memory
from ...core.primitive import SingleResult, Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType
from ..broadcast import with_batch_axis
from ..contractions import matmul, swap_last
from ..elementwise import add, ge, gt, neg, select, sub
from ..literals import full_like, splat
from ..shapes import reshape, transpose
from .family import (
    MatrixFunction,
    adjoint,
    by_host,
    check_matrices,
    check_square,
    each_matrix,
    entries,
    real_type,
    symmetric_part,
)
from .family import hermitian as hermitian_of

# Triangles up to this size are solved as general matrices, larger ones by halves.
_SMALL_TRIANGLE = 64


class MatrixEquation(SingleResult):
    """A solution `x` of equations with the matrices `a` and the columns of `b` as right-hand sides; linear in `b`."""

    memory = Memory.NEW

    def type_rule(self, a: ArrayType, b: ArrayType, **params: Any) -> ArrayType:
        check_square(self.name, a)
        if b.dtype != a.dtype or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
            raise TypeError(f"{self.name}: right-hand sides {b} do not fit the matrices {a}")
        return b

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        a, b = types
        lead = [(i, i) for i in range(a.ndim - 2)]
        along = {(b.ndim - 2, b.ndim - 2): self._rows(a.shape[-1], **params)}
        column = (b.ndim - 1, b.ndim - 1)
        return [aligned(b.shape, a.shape, lead), aligned(b.shape, b.shape, [*lead, column], along)]

    def _rows(self, n: int, **params: Any) -> Part | None:
        """Which rows of `x` depend on which of `b`; None if all do."""
        return None

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (a, b), (ta, tb) = primals, tangents
        x = self(a, b, **params)
        if ta is not None:
            moved = matmul(self._matrix(ta, **params), x)
            tb = neg(moved) if tb is None else sub(tb, moved)
        return x, self(a, tb, **params)

    def _matrix(self, a: Tracer, **params: Any) -> Tracer:
        """The matrices of the equations, as a linear function of the operand `a`."""
        raise NotImplementedError

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        a, b = operands
        if batched[0]:
            return self(a, with_batch_axis(size, b, batched[1]), **params), True
        # The same matrices for all: more columns, so that they are factored once.
        last = b.ndim - 1
        columns = transpose(b, axes=(*range(1, last), 0, last))
        x = self(a, reshape(columns, shape=(*a.shape[:-1], size * b.shape[-1])), **params)
        return transpose(reshape(x, shape=columns.shape), axes=(last - 1, *range(last - 1), last)), True

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        return operands[1] if splat(operands[1]) == 0 else None


class TriangularSolve(MatrixEquation):
    """`x` in `a @ x = b`, or in `a.T @ x = b` if `transpose_a`, for triangular `a`; the other triangle is not read.

    `lower` says which triangle of `a` is meant; with `unit_diagonal` ones are taken for its diagonal.
    """

    name = "triangular_solve"

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        a, b = types
        return Cost.arithmetic(b.size * a.shape[-1])

    def numpy(self, a: Any, b: Any, *, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Any:
        if transpose_a:
            a, lower = np.swapaxes(a, -1, -2), not lower
        return _substitute(a, b, lower, unit_diagonal)

    def xla(self, a: Any, b: Any, *, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Any:
        from jax import lax

        return lax.linalg.triangular_solve(
            a, b, left_side=True, lower=lower, transpose_a=transpose_a, unit_diagonal=unit_diagonal
        )

    def _rows(self, n: int, *, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Part | None:
        return triangle(n, lower != transpose_a)

    def _matrix(self, a: Tracer, *, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Tracer:
        rows_first = gt if unit_diagonal else ge
        kept = entries(a, rows_first)
        triangle = select(kept if lower else swap_last(kept), a, full_like(a, 0))
        return swap_last(triangle) if transpose_a else triangle

    def transpose(
        self, ct: Tracer, operands: Sequence[Any], *, lower: bool, transpose_a: bool, unit_diagonal: bool
    ) -> list[Tangent]:
        a = operands[0]
        return [
            None,
            triangular_solve(a, ct, lower=lower, transpose_a=not transpose_a, unit_diagonal=unit_diagonal),
        ]


def _substitute(a: Any, b: Any, lower: bool, unit_diagonal: bool) -> Any:
    """Solve with a triangle of `a`: by halves, down to a size at which NumPy's general solver is as good."""
    n = a.shape[-1]
    if n > _SMALL_TRIANGLE:
        first, second = slice(0, n // 2), slice(n // 2, n)
        if not lower:
            first, second = second, first
        x = _substitute(a[..., first, first], b[..., first, :], lower, unit_diagonal)
        rest = b[..., second, :] - a[..., second, first] @ x
        y = _substitute(a[..., second, second], rest, lower, unit_diagonal)
        return np.concatenate((x, y) if lower else (y, x), -2)
    if unit_diagonal:
        a = np.where(np.eye(n, dtype=bool), a.dtype.type(1), a)
    if lower:
        # Upside down and back to front it is an upper triangle, which elimination leaves as it is.
        return np.linalg.solve(np.triu(a[..., ::-1, ::-1]), b[..., ::-1, :])[..., ::-1, :]
    return np.linalg.solve(np.triu(a), b)


class Solve(MatrixEquation):
    """`x` in `a @ x = b`, or in `a.T @ x = b` if `transpose_a`, where `b` has the shape (..., n, columns).

    XLA factors `a` in the same way for both, so that a compiled gradient factors it once.
    """

    name = "solve"

    def __call__(self, a: Any, b: Any, *, transpose_a: bool = False) -> Any:
        return super().__call__(a, b, transpose_a=transpose_a)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        a, b = types
        return Cost.arithmetic(2 / 3 * a.size * a.shape[-1] + 2.0 * b.size * a.shape[-1])

    def numpy(self, a: Any, b: Any, *, transpose_a: bool) -> Any:
        return np.linalg.solve(np.swapaxes(a, -1, -2) if transpose_a else a, b)

    def xla(self, a: Any, b: Any, *, transpose_a: bool) -> Any:
        import jax.numpy as jnp
        from jax import lax

        factors, _, order = lax.linalg.lu(a)

        def substitute(b: Any, lower: bool) -> Any:
            return lax.linalg.triangular_solve(
                factors, b, left_side=True, lower=lower, transpose_a=transpose_a, unit_diagonal=lower
            )

        if transpose_a:
            places = jnp.argsort(order, axis=-1)
            return jnp.take_along_axis(substitute(substitute(b, False), True), places[..., None], axis=-2)
        return substitute(substitute(jnp.take_along_axis(b, order[..., None], axis=-2), True), False)

    def _matrix(self, a: Tracer, *, transpose_a: bool) -> Tracer:
        return swap_last(a) if transpose_a else a

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, transpose_a: bool) -> list[Tangent]:
        return [None, solve(operands[0], ct, transpose_a=not transpose_a)]


class Inv(MatrixFunction, SingleResult):
    """The inverses of the matrices `a`."""

    name = "inv"
    cubic = 2.0

    def numpy(self, a: Any) -> Any:
        return np.linalg.inv(a)

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        identity = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
        return solve.xla(a, identity, transpose_a=False)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        out = inv(a)
        return out, neg(matmul(matmul(out, t), out))


triangular_solve = TriangularSolve()
solve = Solve()
inv = Inv()


class Sylvester(SingleResult):
    """`x` in `a @ x + x @ b = c`; linear in `c`.

    With `symmetric`, both `a` and `b` are Hermitian matrices, and their eigenvectors solve it; otherwise their Schur
    forms do (Bartels and Stewart 1972), on the host.
    """

    name = "sylvester"
    memory = Memory.NEW

    def type_rule(self, a: ArrayType, b: ArrayType, c: ArrayType, *, symmetric: bool) -> ArrayType:
        for x in (a, b):
            check_square(self.name, x)
        lead = c.shape[:-2]
        if (a.shape[:-2], b.shape[:-2]) != (lead, lead) or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
            raise ValueError(f"sylvester: {a} on the left and {b} on the right do not fit {c}")
        if not a.dtype == b.dtype == c.dtype:
            raise TypeError(f"operands of sylvester differ in dtype: {a}, {b}, {c}")
        return c

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(25.0 * sum(x.size * x.shape[-1] for x in types[:2]))

    def numpy(self, a: Any, b: Any, c: Any, *, symmetric: bool) -> Any:
        if symmetric:
            return self._by_eigenvectors(np, a, b, c)
        import scipy.linalg

        x = np.empty_like(c)
        for i in np.ndindex(c.shape[:-2]):
            x[i] = scipy.linalg.solve_sylvester(a[i], b[i], c[i])
        return x

    def xla(self, a: Any, b: Any, c: Any, *, symmetric: bool) -> Any:
        if symmetric:
            from jax import numpy as jnp

            return self._by_eigenvectors(jnp, a, b, c)
        type = ArrayType(c.shape, np.dtype(c.dtype))
        return by_host(lambda *xs: self.numpy(*xs, symmetric=False), type, a, b, c)

    @staticmethod
    def _by_eigenvectors(xp: Any, a: Any, b: Any, c: Any) -> Any:
        (p, u), (q, v) = xp.linalg.eigh(a), xp.linalg.eigh(b)
        middle = xp.conj(xp.swapaxes(u, -1, -2)) @ c @ v
        middle = middle / (p[..., :, None] + q[..., None, :])
        return u @ middle @ xp.conj(xp.swapaxes(v, -1, -2))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return each_matrix(types, results, types[2].ndim - 2)[0]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, symmetric: bool) -> tuple[Any, Any]:
        (a, b, _), (ta, tb, tc) = primals, tangents
        x = self(*primals, symmetric=symmetric)
        right = tc
        moved = [matmul(ta, x)] if ta is not None else []
        moved += [matmul(x, tb)] if tb is not None else []
        for product in moved:
            right = neg(product) if right is None else sub(right, product)
        return x, self(a, b, right, symmetric=symmetric)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, symmetric: bool) -> list[Tangent]:
        a, b, _ = operands
        return [None, None, self(swap_last(a), swap_last(b), ct, symmetric=symmetric)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, symmetric: bool) -> Any:
        xs = [with_batch_axis(size, x, f) for x, f in zip(operands, batched, strict=True)]
        return self(*xs, symmetric=symmetric), True


sylvester = Sylvester()


class Pinv(SingleResult):
    """The pseudo-inverses of the matrices `a`, without singular values up to `cutoff` times the largest one.

    With `symmetric`, the matrices are Hermitian, and their lower triangles are read.  The derivative is that of
    matrices whose rank stays as it is (Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least
    squares problems whose variables separate", 1973); where the rank changes there is none.
    """

    name = "pinv"
    memory = Memory.NEW

    def type_rule(self, a: ArrayType, cutoff: ArrayType, *, symmetric: bool) -> ArrayType:
        (check_square if symmetric else check_matrices)(self.name, a)
        if cutoff is not ArrayType(a.shape[:-2], real_type(a.dtype)):
            raise TypeError(f"pinv: the cutoff {cutoff} does not fit the matrices {a}")
        return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(22.0 * types[0].size * min(types[0].shape[-2:]))

    def numpy(self, a: Any, cutoff: Any, *, symmetric: bool) -> Any:
        return self._by_singular_values(np, a, cutoff, symmetric)

    def xla(self, a: Any, cutoff: Any, *, symmetric: bool) -> Any:
        from jax import numpy as jnp

        return self._by_singular_values(jnp, a, cutoff, symmetric)

    @staticmethod
    def _by_singular_values(xp: Any, a: Any, cutoff: Any, symmetric: bool) -> Any:
        if not a.size:
            return xp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
        if symmetric:
            s, u = xp.linalg.eigh(a)
            vh = xp.conj(xp.swapaxes(u, -1, -2))
        else:
            u, s, vh = xp.linalg.svd(a, full_matrices=False)
        size = xp.abs(s)
        kept = size > cutoff[..., None] * xp.max(size, axis=-1, keepdims=True)
        inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0)
        return xp.conj(xp.swapaxes(vh, -1, -2)) @ (inverse[..., None] * xp.conj(xp.swapaxes(u, -1, -2)))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return each_matrix(types, results, types[0].ndim - 2)[0]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, symmetric: bool) -> tuple[Any, Any]:
        (a, cutoff), (t, _) = primals, tangents
        out = self(a, cutoff, symmetric=symmetric)
        if t is None:
            return out, None
        if symmetric:
            a, t = hermitian_of(a), symmetric_part(t)
        back = adjoint(t)
        change = neg(matmul(matmul(out, t), out))
        # What the matrices map to nothing, on the left, and what they never reach, on the right.
        reaching = matmul(adjoint(out), back)
        change = add(change, matmul(out, sub(reaching, matmul(matmul(reaching, a), out))))
        leaving = matmul(back, adjoint(out))
        return out, add(change, matmul(sub(leaving, matmul(out, matmul(a, leaving))), out))

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, symmetric: bool) -> Any:
        xs = [with_batch_axis(size, x, f) for x, f in zip(operands, batched, strict=True)]
        return self(*xs, symmetric=symmetric), True


pinv = Pinv()
