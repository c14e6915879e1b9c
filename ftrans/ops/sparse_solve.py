"""Solutions of sparse linear equations by LU factorisation, on the host: SciPy's SuperLU."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType
from .broadcast import with_batch_axis
from .elementwise import neg, sub
from .host import on_host
from .shapes import reshape, transpose
from .sparse import block_diagonal, joined, sparse_product

_DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
# Factorising and substituting take about so many operations for each entry, for matrices of meshes in the plane.
_FILL = 50


class Substitution(SingleResult):
    """Base class of primitives that are linear in the right-hand side `b`, a vector (n,) or columns (n, k)."""

    memory = Memory.NEW

    def xla(self, *arrays: Any, **params: Any) -> Any:
        types = [ArrayType(x.shape, np.dtype(x.dtype)) for x in arrays]
        result: ArrayType = self.type_rule(*types, **params)
        return on_host(lambda *xs: [self.numpy(*xs, **params)], [result], *arrays)[0]

    def with_lanes_as_columns(self, size: int, b: Tracer, solve: Any) -> Tracer:
        """The solutions for a batch of right-hand sides with one matrix."""
        n, shape = b.shape[1], b.shape[2:]
        columns = reshape(transpose(b, axes=(1, 0, *range(2, b.ndim))), shape=(n, size * (*shape, 1)[0]))
        found = reshape(solve(columns), shape=(n, size, *shape))
        return transpose(found, axes=(1, 0, *range(2, found.ndim)))


class SparseSolve(Substitution):
    """x with `A x = b`, for the sparse matrix A with the entries `data` at `rows` and `cols`; NaN if it is singular.

    Params:
        transposed: whether A is transposed.
    """

    name = "sparse_solve"

    def type_rule(
        self, data: ArrayType, b: ArrayType, rows: ArrayType, cols: ArrayType, *, transposed: bool
    ) -> ArrayType:
        if data.dtype != b.dtype or data.dtype not in _DTYPES:
            raise TypeError(f"{self.name} is not defined for {data} and {b}")
        if data.ndim != 1 or b.ndim not in (1, 2) or rows.shape != data.shape or cols.shape != data.shape:
            raise ValueError(f"{self.name}: entries {data} at {rows} and {cols} do not fit together, or to {b}")
        return b

    def numpy(self, data: Any, b: Any, rows: Any, cols: Any, *, transposed: bool) -> Any:
        if not b.size:
            return np.zeros_like(b)
        pattern = np.ascontiguousarray(rows).tobytes(), np.ascontiguousarray(cols).tobytes()
        factors = _factors(np.ascontiguousarray(data).tobytes(), data.dtype, *pattern, rows.dtype, b.shape[0])
        if factors is None:
            from scipy.sparse.linalg import MatrixRankWarning

            warnings.warn("Matrix is exactly singular", MatrixRankWarning, stacklevel=2)
            return np.full_like(b, np.nan)
        return factors.solve(np.ascontiguousarray(b), "T" if transposed else "N")

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(_FILL * (types[0].size + results[0].size))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, transposed: bool) -> tuple[Any, Any]:
        (data, b, *places), (by_data, change, *_) = primals, tangents
        x = sparse_solve(data, b, *places, transposed=transposed)
        if by_data is not None:
            moved = sparse_product(by_data, x, *(places[::-1] if transposed else places), height=b.shape[0])
            change = neg(moved) if change is None else sub(change, moved)
        return x, sparse_solve(data, change, *places, transposed=transposed)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, transposed: bool) -> list[Tangent]:
        data, _, *places = operands
        return [None, sparse_solve(data, ct, *places, transposed=not transposed), None, None]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, transposed: bool) -> Any:
        data, b, rows, cols = operands
        if not (batched[0] or batched[2] or batched[3]):
            return self.with_lanes_as_columns(
                size, b, lambda columns: sparse_solve(data, columns, rows, cols, transposed=transposed)
            ), True
        data, b, rows, cols = (with_batch_axis(size, v, f) for v, f in zip(operands, batched, strict=True))
        places = block_diagonal(rows, b.shape[1]), block_diagonal(cols, b.shape[1])
        found = sparse_solve(joined(data), joined(b), *places, transposed=transposed)
        return reshape(found, shape=b.shape), True


@lru_cache(maxsize=2)
def _factors(data: bytes, dtype: Any, rows: bytes, cols: bytes, places: Any, n: int) -> Any:
    """SciPy's factorisation, kept for the other solutions with the same matrix; None if it is singular."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    at = np.frombuffer(rows, places), np.frombuffer(cols, places)
    try:
        return splu(csc_array((np.frombuffer(data, dtype), at), (n, n)))
    except RuntimeError:
        return None


class Factored(Substitution):
    """x with `A x = b`, for a matrix that SciPy has factorised.

    Params:
        factors: an object of `scipy.sparse.linalg.SuperLU`.
        transposed: whether A is transposed.
    """

    name = "factored_solve"

    def type_rule(self, b: ArrayType, *, factors: Any, transposed: bool) -> ArrayType:
        if b.dtype not in _DTYPES or b.ndim not in (1, 2) or b.shape[0] != factors.shape[0]:
            raise TypeError(f"{self.name} of {factors.shape} is not defined for {b}")
        return b

    def numpy(self, b: Any, *, factors: Any, transposed: bool) -> Any:
        return factors.solve(np.ascontiguousarray(b), "T" if transposed else "N")

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(_FILL * results[0].size)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0,)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return factored_solve(primals[0], **params), factored_solve(tangents[0], **params)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, factors: Any, transposed: bool) -> list[Tangent]:
        return [factored_solve(ct, factors=factors, transposed=not transposed)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        return self.with_lanes_as_columns(size, operands[0], lambda b: factored_solve(b, **params)), True


sparse_solve = SparseSolve()
factored_solve = Factored()
