"""The product of a sparse matrix with dense columns: entries, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.index_map import IndexMap, Piece
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType
from .broadcast import reduce_sum, with_batch_axis
from .elementwise import add, mul
from .indexing import gather
from .literals import full, full_like, iota, splat
from .shapes import reshape, transpose

_DTYPES = (np.float32, np.float64, np.complex64, np.complex128, np.int32, np.int64)


class SparseProduct(SingleResult):
    """`A @ x` for the sparse matrix with the entries `data` at `rows` and `cols`.

    `x` is a vector (n,) or columns (n, k).  Entries at the same place are added.  NumPy runs SciPy's own loop.

    Params:
        height: the number of rows of the matrix.
    """

    name = "sparse_product"
    memory = Memory.NEW
    multiplies_lanes = True

    def type_rule(self, data: ArrayType, x: ArrayType, rows: ArrayType, cols: ArrayType, *, height: int) -> ArrayType:
        if data.dtype != x.dtype or data.dtype not in _DTYPES:
            raise TypeError(f"{self.name} is not defined for {data} and {x}")
        if data.ndim != 1 or x.ndim not in (1, 2) or rows.shape != data.shape or cols.shape != data.shape:
            raise ValueError(f"{self.name}: entries {data} at {rows} and {cols} do not fit together, or to {x}")
        if rows.dtype.kind != "i" or cols.dtype != rows.dtype:
            raise TypeError(f"{self.name}: places of entries are integers of one type, not {rows} and {cols}")
        return x.with_shape((height, *x.shape[1:]))

    def numpy(self, data: Any, x: Any, rows: Any, cols: Any, *, height: int) -> Any:
        from scipy.sparse import coo_array

        # SciPy makes a number of one row times one column.
        return np.reshape(coo_array((data, (rows, cols)), (height, x.shape[0])) @ x, (height, *x.shape[1:]))

    def xla(self, data: Any, x: Any, rows: Any, cols: Any, *, height: int) -> Any:
        from jax import numpy as jnp

        taken = x.at[cols].get(mode="clip")
        terms = data.reshape((-1, *[1] * (x.ndim - 1))) * taken
        return jnp.zeros((height, *x.shape[1:]), x.dtype).at[rows].add(terms, mode="drop")

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        data, x, *_ = types
        columns = x.shape[1] if x.ndim > 1 else 1
        return Cost(2 * data.size * columns, 2 * data.size * columns + results[0].size / 2)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        (data, x, *_), (out,) = types, results
        rows, cols = known[2:]
        if rows is None or cols is None:
            return None
        lanes = (data.size, *x.shape[1:])
        if 0 in lanes:
            return [(), (), (), ()]
        rows, cols = (np.broadcast_to(i, data.shape).astype(np.int64) for i in (rows, cols))
        if np.unique(rows * x.shape[0] + cols).size < data.size:
            # A lane stands for a derivative, and here some derivatives are sums of entries.
            return None
        width = x.shape[1] if x.ndim > 1 else 1

        def map(numbers: Any, space: int) -> IndexMap:
            places = numbers if x.ndim == 1 else numbers[:, None] * width + np.arange(width)
            return IndexMap.of(places, space).reshaped(lanes)

        entries = IndexMap.affine(lanes, 0, (1, *[0] * (x.ndim - 1)), data.size)
        of_out = map(rows, out.size)
        return [[Piece(of_out, entries)], [Piece(of_out, map(cols, x.size))], (), ()]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, height: int) -> tuple[Any, Any]:
        (data, x, *places), (by_data, by_x, *_) = primals, tangents
        moved = [
            sparse_product(a, b, *places, height=height)
            for a, b in ((by_data, x), (data, by_x))
            if a is not None and b is not None
        ]
        return sparse_product(*primals, height=height), moved[0] if len(moved) == 1 else add(*moved)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, height: int) -> list[Tangent]:
        data, x, rows, cols = operands
        ct_data = ct_x = None
        if isinstance(x, ArrayType):
            ct_x = sparse_product(data, ct, cols, rows, height=x.shape[0])
        if isinstance(data, ArrayType):
            ct_data = mul(gather(ct, rows), gather(x, cols))
            if x.ndim > 1:
                ct_data = reduce_sum(ct_data, axes=(1,))
        return [ct_data, ct_x, None, None]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, height: int) -> tuple[Any, Any]:
        data, x, rows, cols = operands
        if not (batched[0] or batched[2] or batched[3]):
            # The lanes are further columns.
            shape = x.shape[2:]
            columns = reshape(transpose(x, axes=(1, 0, *range(2, x.ndim))), shape=(x.shape[1], size * (*shape, 1)[0]))
            product = reshape(sparse_product(data, columns, rows, cols, height=height), shape=(height, size, *shape))
            return transpose(product, axes=(1, 0, *range(2, product.ndim))), True
        # One matrix has those of the lanes along its diagonal.
        data, x, rows, cols = (with_batch_axis(size, v, b) for v, b in zip(operands, batched, strict=True))
        places = block_diagonal(rows, height), block_diagonal(cols, x.shape[1])
        found = sparse_product(joined(data), joined(x), *places, height=size * height)
        return reshape(found, shape=(size, height, *x.shape[2:])), True

    def simplify(self, operands: Sequence[Tracer], *, height: int) -> Tracer | None:
        data, x, *_ = operands
        # A number that is not finite gives NaN where it meets a zero, so zeros of `x` alone decide nothing.
        if data.size == 0 or x.size == 0 or splat(data) == splat(x) == 0:
            return full((height, *x.shape[1:]), 0, x.dtype)
        return None


def joined(x: Tracer) -> Tracer:
    """The leading two axes as one."""
    return reshape(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))


def block_diagonal(places: Tracer, n: int) -> Tracer:
    """Rows or columns, of n in each lane, in one matrix that has the matrices of the lanes along its diagonal."""
    lanes = iota(shape=places.shape, axis=0, dtype=places.dtype)
    return joined(add(places, mul(lanes, full_like(lanes, n))))


sparse_product = SparseProduct()
