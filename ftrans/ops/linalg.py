"""Primitives of linear algebra, on the matrices in the last two axes of their operands; all leading axes are a batch.

Where a matrix is singular, or not positive definite, NumPy raises LinAlgError and XLA returns NaN or infinities.
Derivatives follow Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), and for the Cholesky factor Smith (1995) and Murray, "Differentiation of the Cholesky
decomposition" (2016).  A factorisation that reads one triangle of a symmetric matrix is differentiated as a function
of the symmetric part of its operand, so the gradient of a symmetric matrix is symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.primitive import Primitive, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, is_complex
from .contractions import matmul, swap_last
from .elementwise import Elementwise, add, conj, convert, div, eq, ge, gt, mul, ne, neg, real, select, sub
from .reductions import reduce_sum
from .shapes import broadcast, concatenate, full_like, iota, reshape, slice_, splat, transpose, with_batch_axis

# Triangles up to this size are solved as general matrices, larger ones by halves.
_SMALL_TRIANGLE = 64


def _check_square(name: str, a: ArrayType) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name} needs square matrices, not {a}")
    if a.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise TypeError(f"{name} is not defined for {a}")


def _real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype


# Helpers on tracers


def _adjoint(x: Tracer) -> Tracer:
    """Each matrix transposed and, if complex, conjugated."""
    return swap_last(conj(x) if is_complex(x.dtype) else x)


def _symmetric_part(x: Tracer) -> Tracer:
    return mul(add(x, _adjoint(x)), full_like(x, 0.5))


def _entries(x: Tracer, compare: Elementwise) -> Tracer:
    """Where `compare(row, column)` holds in the matrices of `x`: with `ge`, in their lower triangle."""
    row, column = (iota(shape=x.shape[-2:], axis=axis, dtype=np.dtype(np.int64)) for axis in (0, 1))
    return broadcast(compare(row, column), shape=x.shape, dims=(x.ndim - 2, x.ndim - 1))


def _diagonal(x: Tracer) -> Tracer:
    return reduce_sum(select(_entries(x, eq), x, full_like(x, 0)), axes=(x.ndim - 1,))


def _sum_of_products(x: Tracer, y: Tracer) -> Tracer:
    """Sum over each matrix of the products of elements: trace(x.T @ y)."""
    return reduce_sum(mul(x, y), axes=(x.ndim - 2, x.ndim - 1))


def _each_times(scale: Tracer, x: Tracer) -> Tracer:
    """Each matrix of `x` times its own number."""
    return mul(broadcast(scale, shape=x.shape, dims=tuple(range(scale.ndim))), x)


class MatrixFunction(Primitive):
    """A primitive of one operand of square matrices, which maps over any leading axes by itself.

    Attributes:
        cubic: its number of floating-point operations, over the cube of the size of the matrices (for all but
            `cofactors`, see Golub and Van Loan, "Matrix Computations").
    """

    cubic = 2 / 3

    def flops(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> float:
        (a,) = types
        return self.cubic * a.size * a.shape[-1]

    def type_rule(self, a: ArrayType) -> Any:
        _check_square(self.name, a)
        return a

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool]) -> Any:
        results = self(*operands)
        return results, [True] * len(results) if self.multiple_results else True


# Systems of equations


class MatrixEquation(Primitive):
    """A solution `x` of equations with the matrices `a` and the columns of `b` as right-hand sides; linear in `b`."""

    def type_rule(self, a: ArrayType, b: ArrayType, **params: Any) -> ArrayType:
        _check_square(self.name, a)
        if b.dtype != a.dtype or b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
            raise TypeError(f"{self.name}: right-hand sides {b} do not fit the matrices {a}")
        return b

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

    def flops(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> float:
        a, b = types
        return float(b.size * a.shape[-1])

    def numpy(self, a: Any, b: Any, *, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Any:
        if transpose_a:
            a, lower = np.swapaxes(a, -1, -2), not lower
        return _substitute(a, b, lower, unit_diagonal)

    def xla(self, a: Any, b: Any, *, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Any:
        from jax import lax

        return lax.linalg.triangular_solve(
            a, b, left_side=True, lower=lower, transpose_a=transpose_a, unit_diagonal=unit_diagonal
        )

    def _matrix(self, a: Tracer, *, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Tracer:
        rows_first = gt if unit_diagonal else ge
        kept = _entries(a, rows_first)
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

    def flops(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> float:
        a, b = types
        return 2 / 3 * a.size * a.shape[-1] + 2.0 * b.size * a.shape[-1]

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


class Inv(MatrixFunction):
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


# Determinants


class Cofactors(MatrixFunction):
    """The derivative of the determinant with respect to each element of `a`, for singular matrices as well.

    It is the transposed adjugate, made from the singular value decomposition.  Its own derivative is that of
    `det(a) * inv(a).T`, and needs an inverse.
    """

    name = "cofactors"
    cubic = 25.0

    def numpy(self, a: Any) -> Any:
        return self._from_factors(np, *np.linalg.svd(a))

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return self._from_factors(jnp, *jnp.linalg.svd(a))

    @staticmethod
    def _from_factors(xp: Any, u: Any, s: Any, vh: Any) -> Any:
        one = xp.ones_like(s[..., :1])
        smaller = xp.cumprod(xp.concatenate((one, s[..., :0:-1]), -1), -1)[..., ::-1]
        larger = xp.cumprod(xp.concatenate((one, s[..., :-1]), -1), -1)
        others = (smaller * larger)[..., None, :]
        sign = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
        return sign * xp.conj(xp.matmul(u * others, vh))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        out = cofactors(a)
        inverse = swap_last(inv(a))
        change = matmul(matmul(inverse, swap_last(t)), out)
        return out, sub(_each_times(_sum_of_products(out, t), inverse), change)


cofactors = Cofactors()


def _cofactors(a: Tracer) -> Tracer:
    """The cofactors of each matrix: up to size 3 as polynomials, which are right for every matrix to any order."""
    n = a.shape[-1]
    if n > 3:
        return cofactors(a)
    if n < 2:
        return full_like(a, 1)
    cyclic = concatenate(a, a, axis=a.ndim - 1)
    cyclic = concatenate(cyclic, cyclic, axis=a.ndim - 2)

    def moved(down: int, right: int) -> Tracer:
        start = (*[0] * (a.ndim - 2), down, right)
        limit = (*a.shape[:-2], down + n, right + n)
        return slice_(cyclic, start=start, limit=limit, strides=(1,) * a.ndim)

    if n == 2:
        other = moved(1, 1)
        return select(_entries(a, eq), other, neg(other))
    return sub(mul(moved(1, 1), moved(2, 2)), mul(moved(1, 2), moved(2, 1)))


class Det(MatrixFunction):
    """The determinants of the matrices `a`.

    The first derivative is right for singular matrices of any size, higher ones for those up to 3 by 3; for larger
    matrices they need an inverse.
    """

    name = "det"

    def type_rule(self, a: ArrayType) -> ArrayType:
        _check_square(self.name, a)
        return a.with_shape(a.shape[:-2])

    def numpy(self, a: Any) -> Any:
        return np.linalg.det(a)

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return jnp.linalg.det(a)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        return det(a), _sum_of_products(_cofactors(a), t)


class SlogDet(MatrixFunction):
    """Sign (for complex matrices: phase) and logarithm of the absolute value of the determinants of the matrices `a`.

    Derivatives need an inverse.
    """

    name = "slogdet"
    multiple_results = True

    def type_rule(self, a: ArrayType) -> list[ArrayType]:
        _check_square(self.name, a)
        sign = a.with_shape(a.shape[:-2])
        return [sign, sign.with_dtype(_real_dtype(a.dtype))]

    def numpy(self, a: Any) -> Any:
        return np.linalg.slogdet(a)

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return jnp.linalg.slogdet(a)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        sign, logarithm = slogdet(a)
        change = _sum_of_products(swap_last(inv(a)), t)
        if not is_complex(a.dtype):
            return [sign, logarithm], [None, change]
        turn = sub(change, convert(real(change), dtype=a.dtype))
        return [sign, logarithm], [mul(sign, turn), real(change)]


det = Det()
slogdet = SlogDet()


# Factorisations


class Cholesky(MatrixFunction):
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
        middle = _symmetric_part(t)
        for _ in range(2):
            middle = _adjoint(triangular_solve(out, middle, lower=True, transpose_a=False, unit_diagonal=False))
        weights = add(*(convert(_entries(a, compare), dtype=a.dtype) for compare in (ge, gt)))
        return out, matmul(out, mul(middle, mul(weights, full_like(a, 0.5))))


class Eigh(MatrixFunction):
    """Eigenvalues, increasing, and eigenvectors (the columns) of the Hermitian matrices `a`; reads the lower triangles.

    NumPy and XLA may choose other signs, or phases, of the eigenvectors.  Eigenvectors of equal eigenvalues have no
    derivative: what would mix them is left out, which is right for functions that do not depend on their choice.
    """

    name = "eigh"
    cubic = 9.0
    multiple_results = True

    def type_rule(self, a: ArrayType) -> list[ArrayType]:
        _check_square(self.name, a)
        return [ArrayType(a.shape[:-1], _real_dtype(a.dtype)), a]

    def numpy(self, a: Any) -> Any:
        return np.linalg.eigh(a)

    def xla(self, a: Any) -> Any:
        import jax.numpy as jnp

        return jnp.linalg.eigh(a, "L", symmetrize_input=False)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        values, vectors = eigh(a)
        change = matmul(_adjoint(vectors), matmul(_symmetric_part(t), vectors))
        diagonal = _diagonal(change)
        lead = tuple(range(a.ndim - 2))
        column, row = (broadcast(values, shape=a.shape, dims=(*lead, axis)) for axis in (a.ndim - 1, a.ndim - 2))
        gap = sub(column, row)
        apart = ne(gap, full_like(gap, 0))
        weights = div(convert(apart, dtype=gap.dtype), select(apart, gap, full_like(gap, 1)))
        mixed = mul(change, convert(weights, dtype=a.dtype))
        return [values, vectors], [
            real(diagonal) if is_complex(a.dtype) else diagonal,
            matmul(vectors, mixed),
        ]


cholesky = Cholesky()
eigh = Eigh()
