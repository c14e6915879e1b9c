"""A few eigenvalues of sparse symmetric matrices, and singular values of sparse ones: SciPy's ARPACK, on the host.

Derivatives of vectors are solutions of equations that the vector borders, one sparse factorisation each (J. R. Magnus,
"On differentiating eigenvalues and eigenvectors", 1985).  The values have to be distinct.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import MultipleResults, Tangent
from ..core.program import Const, Params
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType
from ..ops.broadcast import broadcast, reduce_sum, with_batch_axis
from ..ops.elementwise import add, mul, neg, sub
from ..ops.host import on_host
from ..ops.indexing import gather
from ..ops.literals import full, full_like
from ..ops.parts import concatenate
from ..ops.shapes import reshape
from ..ops.sparse import sparse_product
from ..ops.sparse_solve import sparse_solve

Options = tuple[tuple[str, Any], ...]
_INDEX = np.dtype(np.int64)


class _Pairs(MultipleResults):
    """Base class: operands are the entries of a matrix, their rows and their columns.

    Params:
        shape: the shape of the matrix.
        options: items of keywords of SciPy's function.
    """

    memory = Memory.NEW

    def xla(self, *arrays: Any, shape: tuple[int, int], options: Options) -> list[Any]:
        types = self.type_rule(*(ArrayType(x.shape, np.dtype(x.dtype)) for x in arrays), shape=shape, options=options)
        return on_host(lambda *xs: self.numpy(*xs, shape=shape, options=options), types, *arrays)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(100.0 * (types[0].size + sum(t.size for t in results)))

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        lanes = [with_batch_axis(size, v, b) for v, b in zip(operands, batched, strict=True)]
        found = [self(*[gather(v, _number(i)) for v in lanes], **params) for i in range(size)]
        return [_stacked(list(column)) for column in zip(*found, strict=True)], [True] * len(found[0])


class ExtremeEigenpairs(_Pairs):
    """The `k` eigenvalues (k,) of a symmetric matrix that `scipy.sparse.linalg.eigsh` finds, and vectors (n, k)."""

    name = "sparse_eigsh"

    def type_rule(self, data: ArrayType, *places: ArrayType, shape: tuple[int, int], options: Options) -> Any:
        k = dict(options)["k"]
        return [data.with_shape((k,)), data.with_shape((shape[0], k))]

    def numpy(self, data: Any, rows: Any, cols: Any, *, shape: tuple[int, int], options: Options) -> list[Any]:
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import eigsh

        start = np.cos(np.arange(shape[0]) ** 2.0).astype(data.dtype)
        matrix, keywords = csc_array((data, (rows, cols)), shape), dict(options)
        in_order_of_values = keywords.pop("values_only")
        values, vectors = eigsh(matrix, v0=start, **keywords)
        if in_order_of_values:
            # SciPy has another order where it computes no vectors.
            alone = eigsh(matrix, v0=start, return_eigenvectors=False, **keywords)
            order = np.argsort(values)[np.argsort(np.argsort(alone))]
            values, vectors = values[order], vectors[:, order]
        return [values, vectors]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        data, rows, cols = primals
        values, vectors = self(*primals, **params)
        change, n = tangents[0], params["shape"][0]
        there = sparse_product(change, vectors, rows, cols, height=n)
        back = sparse_product(change, vectors, cols, rows, height=n)
        # Nothing but the symmetric part has a meaning.
        moved = mul(add(there, back), full_like(there, 0.5))
        slopes = reduce_sum(mul(vectors, moved), axes=(0,))
        left = sub(moved, mul(vectors, broadcast(slopes, shape=vectors.shape, dims=(1,))))
        turned = [
            _across((data, rows, cols), n, *(gather(x, _number(i), axis=x.ndim - 1) for x in (values, vectors, left)))
            for i in range(values.shape[0])
        ]
        return [values, vectors], [slopes, _as_columns(turned)]


class ExtremeSingularTriples(_Pairs):
    """What `scipy.sparse.linalg.svds` finds: left vectors (m, k), singular values (k,) and right vectors (n, k)."""

    name = "sparse_svds"

    def type_rule(self, data: ArrayType, *places: ArrayType, shape: tuple[int, int], options: Options) -> Any:
        k = dict(options)["k"]
        return [data.with_shape(s) for s in ((shape[0], k), (k,), (shape[1], k))]

    def numpy(self, data: Any, rows: Any, cols: Any, *, shape: tuple[int, int], options: Options) -> list[Any]:
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import svds

        start = np.cos(np.arange(min(shape)) ** 2.0).astype(data.dtype)
        u, s, vt = svds(csc_array((data, (rows, cols)), shape), v0=start, **dict(options))
        return [u, s, vt.T]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        data, rows, cols = primals
        (m, n), change = params["shape"], tangents[0]
        u, s, v = self(*primals, **params)
        of_v = sparse_product(change, v, rows, cols, height=m)
        of_u = sparse_product(change, u, cols, rows, height=n)
        slopes = reduce_sum(mul(u, of_v), axes=(0,))
        # The vectors of one value side by side are an eigenvector of [[0, A], [A.T, 0]].
        pairs, moved = concatenate(u, v, axis=0), concatenate(of_v, of_u, axis=0)
        left = sub(moved, mul(pairs, broadcast(slopes, shape=pairs.shape, dims=(1,))))
        right = add(cols, full_like(cols, m))
        both = (
            concatenate(data, data, axis=0),
            concatenate(rows, right, axis=0),
            concatenate(right, rows, axis=0),
        )
        turned = _as_columns(
            [
                _across(both, m + n, *(gather(x, _number(i), axis=x.ndim - 1) for x in (s, pairs, left)))
                for i in range(s.shape[0])
            ]
        )
        of_rows = [gather(turned, _places(np.arange(a, b))) for a, b in ((0, m), (m, m + n))]
        return [u, s, v], [of_rows[0], slopes, of_rows[1]]


def _places(indices: Any) -> Tracer:
    builder = current_builder()
    assert builder is not None
    array = np.asarray(indices, _INDEX)
    return Tracer(builder, Const(array, ArrayType(array.shape, array.dtype)))


def _number(i: int) -> Tracer:
    return full((), i, _INDEX)


def _as_columns(vectors: list[Tracer]) -> Tracer:
    return concatenate(*(reshape(v, shape=(v.size, 1)) for v in vectors), axis=1)


def _stacked(arrays: list[Tracer]) -> Tracer:
    return concatenate(*(reshape(x, shape=(1, *x.shape)) for x in arrays), axis=0)


def _across(entries: tuple[Tracer, Tracer, Tracer], n: int, value: Tracer, vector: Tracer, rest: Tracer) -> Tracer:
    """x, orthogonal to an eigenvector, with (A - value) x = -rest; `rest` is orthogonal to it, too."""
    data, rows, cols = entries
    every, last = np.arange(n), np.full(n, n)
    bordered = concatenate(data, neg(broadcast(value, shape=(n,), dims=())), vector, vector, axis=0)
    rows = concatenate(rows, _places(np.concatenate([every, every, last])), axis=0)
    cols = concatenate(cols, _places(np.concatenate([every, last, every])), axis=0)
    right = concatenate(neg(rest), full((1,), 0, data.dtype), axis=0)
    found = sparse_solve(bordered, right, rows, cols, transposed=False)
    return gather(found, _places(every))


extreme_eigenpairs = ExtremeEigenpairs()
extreme_singular_triples = ExtremeSingularTriples()
