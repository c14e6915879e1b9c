"""What the primitives of linear algebra share: their operands, and small matrix functions that their rules record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.pieces import aligned
from ...core.cost import Cost
from ...core.on_numpy import Memory
from ...core.primitive import Primitive, SingleResult, Tangent
from ...core.program import Params
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ..broadcast import broadcast, reduce_sum
from ..contractions import swap_last
from ..elementwise import Elementwise, add, conj, convert, eq, mul, real, select
from ..host import on_host
from ..literals import full_like, iota
from ..parts import slice_

INEXACT = (np.float32, np.float64, np.complex64, np.complex128)


def check_matrices(name: str, a: ArrayType) -> None:
    """Raise unless this is the type of matrices of floating-point numbers."""
    if a.ndim < 2:
        raise ValueError(f"{name} needs matrices, not {a}")
    if a.dtype not in INEXACT:
        raise TypeError(f"{name} is not defined for {a}")


def check_square(name: str, a: ArrayType) -> None:
    """Raise unless this is the type of square matrices of floating-point numbers."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name} needs square matrices, not {a}")
    check_matrices(name, a)


def real_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a number."""
    return np.empty(0, dtype).real.dtype


def complex_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of complex numbers of this precision."""
    return np.result_type(dtype, np.complex64)


def adjoint(x: Tracer) -> Tracer:
    """Each matrix transposed and, if complex, conjugated."""
    return swap_last(conj(x) if is_complex(x.dtype) else x)


def symmetric_part(x: Tracer) -> Tracer:
    """The Hermitian part of each matrix."""
    return mul(add(x, adjoint(x)), full_like(x, 0.5))


def entries(x: Tracer, compare: Elementwise) -> Tracer:
    """Where `compare(row, column)` holds in the matrices of `x`: with `ge`, in their lower triangle."""
    row, column = (iota(shape=x.shape[-2:], axis=axis, dtype=np.dtype(np.int64)) for axis in (0, 1))
    return broadcast(compare(row, column), shape=x.shape, dims=(x.ndim - 2, x.ndim - 1))


def part(x: Tracer, compare: Elementwise) -> Tracer:
    """The elements for which `compare(row, column)` holds, and zeros elsewhere."""
    return select(entries(x, compare), x, full_like(x, 0))


def diagonal(x: Tracer) -> Tracer:
    """The diagonals of square matrices."""
    return reduce_sum(part(x, eq), axes=(x.ndim - 1,))


def sum_of_products(x: Tracer, y: Tracer) -> Tracer:
    """Sum over each matrix of the products of elements: trace(x.T @ y)."""
    return reduce_sum(mul(x, y), axes=(x.ndim - 2, x.ndim - 1))


def each_times(scale: Tracer, x: Tracer) -> Tracer:
    """Each matrix of `x` times its own number."""
    return mul(broadcast(scale, shape=x.shape, dims=tuple(range(scale.ndim))), x)


def along_columns(v: Tracer, x: Tracer) -> Tracer:
    """Vectors with an element for each column of the matrices of `x`, repeated along them."""
    return broadcast(v, shape=x.shape, dims=(*range(x.ndim - 2), x.ndim - 1))


def along_rows(v: Tracer, x: Tracer) -> Tracer:
    """Vectors with an element for each row of the matrices of `x`, repeated along them."""
    return broadcast(v, shape=x.shape, dims=tuple(range(x.ndim - 1)))


def real_if_complex(x: Tracer) -> Tracer:
    """The real part."""
    return real(x) if is_complex(x.dtype) else x


def in_columns(v: Tracer, x: Tracer) -> Tracer:
    """Vectors with an element for each column of the matrices of `x`, repeated along them, in the dtype of `x`."""
    return convert(along_columns(v, x), dtype=x.dtype)


def columns(x: Tracer, start: int, stop: int) -> Tracer:
    """Some of the columns of matrices."""
    if (start, stop) == (0, x.shape[-1]):
        return x
    return slice_(
        x,
        start=(*[0] * (x.ndim - 1), start),
        limit=(*x.shape[:-1], stop),
        strides=(1,) * x.ndim,
    )


def rows(x: Tracer, start: int, stop: int) -> Tracer:
    """Some of the rows of matrices."""
    return swap_last(columns(swap_last(x), start, stop))


def by_host(function: Callable[..., Any], type: ArrayType, *arrays: Any) -> Any:
    """A JAX array that a function of NumPy arrays computes; NaN where it raises LinAlgError, as elsewhere in XLA."""

    def call(*xs: Any) -> list[Any]:
        try:
            return [function(*xs)]
        except np.linalg.LinAlgError:
            return [np.full(type.shape, np.nan, type.dtype)]

    return on_host(call, [type], *arrays)[0]


def each_matrix(types: Sequence[ArrayType], results: Sequence[ArrayType], lead: int) -> list[Any]:
    """What results depend on where each matrix is treated by itself, along `lead` leading axes."""
    axes = [(i, i) for i in range(lead)]
    return [[aligned(result.shape, x.shape, axes) for x in types] for result in results]


class MatrixFunction(Primitive):
    """A primitive of one operand of square matrices, which maps over any leading axes by itself.

    Attributes:
        cubic: its number of floating-point operations, over the cube of the size of the matrices (for all but
            `cofactors`, see Golub and Van Loan, "Matrix Computations").
    """

    memory = Memory.NEW

    cubic = 2 / 3

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        (a,) = types
        return Cost(self.cubic * a.size * min(a.shape[-2:]), a.size * (1 + self.cubic * min(a.shape[-2:])))

    def type_rule(self, a: ArrayType) -> Any:
        check_square(self.name, a)
        return a

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        pieces = each_matrix(types, results, types[0].ndim - 2)
        return pieces if self.multiple_results else pieces[0]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        results = self.bind_all(operands, params)
        return (results, [True] * len(results)) if self.multiple_results else (results[0], True)


class Hermitian(MatrixFunction, SingleResult):
    """The Hermitian matrices whose lower triangles are those of `a`.

    Its derivative is that of the Hermitian part of `a`, as it is for all that reads one triangle.
    """

    name = "hermitian"
    cubic = 0.0

    def numpy(self, a: Any) -> Any:
        return self._of_triangle(np, a)

    def xla(self, a: Any) -> Any:
        from jax import numpy as jnp

        return self._of_triangle(jnp, a)

    @staticmethod
    def _of_triangle(xp: Any, a: Any) -> Any:
        diagonal = xp.where(xp.eye(a.shape[-1], dtype=bool), a.real, 0)
        return xp.tril(a, -1) + xp.conj(xp.swapaxes(xp.tril(a, -1), -1, -2)) + diagonal

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        assert t is not None
        return hermitian(a), symmetric_part(t)


hermitian = Hermitian()
