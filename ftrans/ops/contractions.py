"""The product of arrays that sums over shared axes, and the matrix product that is made of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.affine import row_strides
from ..base.index_map import IndexMap, Piece
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent, remembered_types
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape, is_inexact
from .broadcast import broadcast, reduce_sum
from .elementwise import add, mul
from .literals import full_like, splat
from .platforms import precision_of
from .shapes import reshape, transpose

Dims = tuple[Shape, Shape]


def _free(ndim: int, contract: Shape, batch: Shape) -> Shape:
    return tuple(i for i in range(ndim) if i not in contract and i not in batch)


class DotGeneral(SingleResult):
    """Sum over the axes `contract` of the products of the elements of `x` and `y`, which share the axes `batch`.

    `contract` and `batch` each hold the axes of `x` and the matching axes of `y`.  The axes of the result are
    `batch`, then what is left of `x`, then what is left of `y`.  The result has the dtype of the operands: integers
    wrap around, and for booleans a sum of products means "any of both".

    XLA is asked for the highest precision, so that float32 on a GPU is float32, and not TF32 without a warning, unless
    the user has asked for less (`ft.matmul_precision`).
    """

    name = "dot_general"
    memory = Memory.NEW
    # In a lane of both operands (rule `local`), either element is the derivative by the other.
    multiplies_lanes = True

    def type_rule(self, x: ArrayType, y: ArrayType, *, contract: Dims, batch: Dims) -> ArrayType:
        if x.dtype != y.dtype:
            raise TypeError(f"operands of {self.name} differ in dtype: {x}, {y}")
        for xs, ys in (contract, batch):
            if tuple(x.shape[i] for i in xs) != tuple(y.shape[i] for i in ys):
                raise ValueError(f"{self.name}: axes {xs} of {x} and axes {ys} of {y} differ in size")
        x_free, y_free = _free(x.ndim, contract[0], batch[0]), _free(y.ndim, contract[1], batch[1])
        return x.with_shape(
            (*(x.shape[i] for i in batch[0]), *(x.shape[i] for i in x_free), *(y.shape[i] for i in y_free))
        )

    def output_types(self, types: Sequence[ArrayType], params: Params) -> tuple[ArrayType, ...]:
        return remembered_types(self, tuple(types), tuple(params.items()))

    def numpy(self, x: Any, y: Any, *, contract: Dims, batch: Dims) -> Any:
        product = _numpy_form(x.ndim, y.ndim, contract, batch)(x, y)
        # NumPy multiplies matrices of the small formats in a larger one.
        return product if product.dtype == x.dtype else product.astype(x.dtype)

    def bound(self, types: Sequence[ArrayType], params: Params) -> Callable[..., Any] | None:
        x, y = types
        # Those of the small formats are converted.
        is_wide = x.dtype.itemsize > 2
        return _numpy_form(x.ndim, y.ndim, params["contract"], params["batch"]) if is_wide else None

    def xla(self, x: Any, y: Any, *, contract: Dims, batch: Dims) -> Any:
        from jax import lax

        return lax.dot_general(x, y, (contract, batch), precision_of(x.dtype), x.dtype)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        (x, _), (contracted, _) = types, params["contract"]
        operations = 2 * results[0].size * math.prod(x.shape[i] for i in contracted)
        return Cost.products(operations, max(t.size for t in (*types, *results)))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        # A lane for each product of two elements: the other element is its derivative.
        contract, batch = params["contract"], params["batch"]
        (x, y), (out,) = types, results
        x_free, y_free = _free(x.ndim, contract[0], batch[0]), _free(y.ndim, contract[1], batch[1])
        lanes = (*out.shape, *(x.shape[i] for i in contract[0]))
        if 0 in lanes:
            return [(), ()]

        def map(type: ArrayType, *axes: int | None) -> IndexMap:
            strides = row_strides(type.shape)
            return IndexMap.affine(lanes, 0, tuple(0 if i is None else strides[i] for i in axes), type.size)

        rows = map(out, *range(out.ndim), *(None for _ in contract[0]))
        of_x = map(x, *batch[0], *x_free, *(None for _ in y_free), *contract[0])
        of_y = map(y, *batch[1], *(None for _ in x_free), *y_free, *contract[1])
        return [[Piece(rows, of_x)], [Piece(rows, of_y)]]

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, contract: Dims, batch: Dims
    ) -> tuple[Any, Any]:
        (x, y), (tx, ty) = primals, tangents
        along_x = None if tx is None else dot_general(tx, y, contract=contract, batch=batch)
        along_y = None if ty is None else dot_general(x, ty, contract=contract, batch=batch)
        out = dot_general(x, y, contract=contract, batch=batch)
        if along_x is None or along_y is None:
            return out, along_y if along_x is None else along_x
        return out, add(along_x, along_y)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, contract: Dims, batch: Dims) -> list[Tangent]:
        x, y = operands
        x_free, y_free = _free(x.ndim, contract[0], batch[0]), _free(y.ndim, contract[1], batch[1])
        shared = tuple(range(len(batch[0])))
        from_x = tuple(range(len(shared), len(shared) + len(x_free)))
        from_y = tuple(range(len(shared) + len(x_free), ct.ndim))
        ct_x = ct_y = None
        if isinstance(x, ArrayType):
            dims = {"contract": (from_y, y_free), "batch": (shared, batch[1])}
            ct_x = _product_in_place(ct, y, dims, batch[0], x_free, _matched(contract[1], contract[0]))
        if isinstance(y, ArrayType):
            dims = {"contract": (x_free, from_x), "batch": (batch[0], shared)}
            ct_y = _product_in_place(x, ct, dims, batch[1], _matched(contract[0], contract[1]), y_free)
        return [ct_x, ct_y]

    def batch(
        self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, contract: Dims, batch: Dims
    ) -> Any:
        x, y = operands
        x_dims, y_dims = (
            [tuple(i + shift for i in dims[side]) for dims in (contract, batch)] for side, shift in enumerate(batched)
        )
        shared = len(batch[0])
        if all(batched):
            both = dot_general(x, y, contract=(x_dims[0], y_dims[0]), batch=((0, *x_dims[1]), (0, *y_dims[1])))
            return both, True
        # A batch axis of one operand alone is a free axis.  It lands first among those of its operand.
        place = shared
        if batched[1] and x.ndim > len(contract[0]) + shared:
            if y.ndim == 1 + len(contract[1]) + shared:
                x, y, x_dims, y_dims = y, x, y_dims, x_dims
            else:
                place += x.ndim - len(contract[0]) - shared
        out = dot_general(x, y, contract=(x_dims[0], y_dims[0]), batch=(x_dims[1], y_dims[1]))
        return transpose(out, axes=(place, *(i for i in range(out.ndim) if i != place))), True

    def simplify(self, operands: Sequence[Tracer], *, contract: Dims, batch: Dims) -> Tracer | None:
        x, y = operands
        if not is_inexact(x.dtype):
            return None
        out = self.type_rule(x.type, y.type, contract=contract, batch=batch)
        for a, b, side in ((x, y, 0), (y, x, 1)):
            value = splat(a)
            if a.ndim == 0:
                return mul(broadcast(a, shape=b.shape, dims=()), b)
            if value is not None:
                return _filled_product(value, b, out, contract[1 - side], batch[1 - side], side)
        return None


def _filled_product(value: Any, y: Tracer, out: ArrayType, contract: Shape, batch: Shape, side: int) -> Tracer:
    """A product of `y` and an array filled with one number: a sum of `y`, repeated along the axes of the other."""
    total = reduce_sum(y, axes=tuple(sorted(contract)))
    y_free = _free(y.ndim, contract, batch)
    kept = sorted((*batch, *y_free))
    total = transpose(total, axes=tuple(kept.index(i) for i in (*batch, *y_free)))
    start = len(batch) if side else out.ndim - len(y_free)
    repeated = broadcast(total, shape=out.shape, dims=(*range(len(batch)), *range(start, start + len(y_free))))
    return mul(repeated, full_like(out, value))


def _product_in_place(x: Tracer, y: Tracer, dims: dict[str, Dims], batch: Shape, of_x: Shape, of_y: Shape) -> Tracer:
    """The product of `x` and `y` with its axes where they belong: `batch`, what is left of `x`, what is left of `y`.

    Where exchanging the operands brings them there, no transpose is left for XLA to move into the product, which on
    CPUs can double the time of the product.
    """
    places = (*batch, *of_y, *of_x)
    if places == tuple(range(len(places))) and of_x and of_y:
        exchanged = {name: (second, first) for name, (first, second) in dims.items()}
        return dot_general(y, x, **exchanged)
    return _put_axes(dot_general(x, y, **dims), (*batch, *of_x, *of_y))


def _put_axes(x: Tracer, places: Shape) -> Tracer:
    """`x` with its axis `i` moved to `places[i]`."""
    axes = tuple(places.index(i) for i in range(x.ndim))
    return x if axes == tuple(range(x.ndim)) else transpose(x, axes=axes)


def _matched(ordered_by: Shape, axes: Shape) -> Shape:
    """`axes` in the increasing order of their partners `ordered_by`."""
    return tuple(axis for _, axis in sorted(zip(ordered_by, axes, strict=True)))


@lru_cache(maxsize=4096)
def _numpy_form(x_ndim: int, y_ndim: int, contract: Dims, batch: Dims) -> Callable[[Any, Any], Any]:
    """How NumPy computes a product of these axes fastest: by `@` on views wherever the axes allow it."""
    x_free, y_free = _free(x_ndim, contract[0], batch[0]), _free(y_ndim, contract[1], batch[1])
    if not contract[0] and not batch[0]:
        return np.multiply.outer
    simple = len(contract[0]) == 1 and len(x_free) <= 1 and len(y_free) <= 1
    if simple and not batch[0]:
        flip_x, flip_y = contract[0][0] != x_ndim - 1, contract[1][0] != 0
        return _MATRIX_PRODUCTS[flip_x, flip_y]
    if batch[0] and contract[0] and not (x_free and y_free):
        return _einsum(x_ndim, y_ndim, contract, batch)
    x_axes = (*batch[0], *x_free, *contract[0])
    y_axes = (*batch[1], *contract[1], *y_free)
    shared, rows = len(batch[0]), len(x_free)
    if simple and x_free and y_free:
        return _batched_product(x_axes, y_axes)

    def general(x: Any, y: Any) -> Any:
        x, y = x.transpose(x_axes), y.transpose(y_axes)
        lead, x_rest, y_rest = x.shape[:shared], x.shape[shared : shared + rows], y.shape[y.ndim - len(y_free) :]
        if not contract[0]:
            return x.reshape(x.shape + (1,) * len(y_free)) * y.reshape(lead + (1,) * rows + y_rest)
        length = math.prod(x.shape[shared + rows :])
        left = x.reshape((*lead, math.prod(x_rest), length) if x_free else (length,))
        right = y.reshape((*lead, length, math.prod(y_rest)) if y_free else (length,))
        return np.matmul(left, right).reshape(lead + x_rest + y_rest)

    return general


_MATRIX_PRODUCTS: dict[tuple[bool, bool], Callable[[Any, Any], Any]] = {
    (False, False): lambda x, y: x @ y,
    (False, True): lambda x, y: x @ y.T,
    (True, False): lambda x, y: x.T @ y,
    (True, True): lambda x, y: x.T @ y.T,
}


def _batched_product(x_axes: Shape, y_axes: Shape) -> Callable[[Any, Any], Any]:
    x_moves, y_moves = (axes != tuple(range(len(axes))) for axes in (x_axes, y_axes))
    if not x_moves and not y_moves:
        return np.matmul
    return lambda x, y: np.matmul(x.transpose(x_axes) if x_moves else x, y.transpose(y_axes) if y_moves else y)


def _einsum(x_ndim: int, y_ndim: int, contract: Dims, batch: Dims) -> Callable[[Any, Any], Any]:
    # Many small products that use each element once: BLAS would be called once for each of them.
    x_names = [chr(ord("a") + i) for i in range(x_ndim)]
    y_names = [chr(ord("A") + i) for i in range(y_ndim)]
    for xs, ys in (contract, batch):
        for i, j in zip(xs, ys, strict=True):
            y_names[j] = x_names[i]
    x_free, y_free = _free(x_ndim, contract[0], batch[0]), _free(y_ndim, contract[1], batch[1])
    kept = [x_names[i] for i in (*batch[0], *x_free)] + [y_names[j] for j in y_free]
    subscripts = f"{''.join(x_names)},{''.join(y_names)}->{''.join(kept)}"
    return lambda x, y: np.einsum(subscripts, x, y)


dot_general = DotGeneral()


# The matrix product


def swap_last(x: Tracer) -> Tracer:
    """`x` with its last two axes swapped: each of its matrices transposed."""
    return transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def matmul(x: Tracer, y: Tracer) -> Tracer:
    """Products of the matrices in the last two axes of `x` and `y`, whose leading axes broadcast.

    An axis that only one operand has is never repeated for the other.
    """
    lead = max(x.ndim, y.ndim) - 2
    x_sizes, y_sizes = ((1,) * (lead + 2 - v.ndim) + v.shape[:-2] for v in (x, y))
    shared = [i for i in range(lead) if x_sizes[i] == y_sizes[i]]
    x_own = [i for i in range(lead) if i not in shared and y_sizes[i] == 1]
    y_own = [i for i in range(lead) if i not in shared and i not in x_own]
    x_kept, y_kept = sorted(shared + x_own), sorted(shared + y_own)
    x = reshape(x, shape=(*(x_sizes[i] for i in x_kept), *x.shape[-2:]))
    y = reshape(y, shape=(*(y_sizes[i] for i in y_kept), *y.shape[-2:]))
    out = dot_general(
        x,
        y,
        contract=((x.ndim - 1,), (y.ndim - 2,)),
        batch=(tuple(x_kept.index(i) for i in shared), tuple(y_kept.index(i) for i in shared)),
    )
    return _put_axes(out, (*shared, *x_own, lead, *y_own, lead + 1))
