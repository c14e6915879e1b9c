"""Repeating along axes and summing over them, each the transpose of the other; and what every reduction is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.affine import row_strides
from ..base.channels import axis_with_channels_last, channels_last
from ..base.index_map import IndexMap, Piece
from ..base.pieces import read_from
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent, remembered_types
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape, is_inexact
from .literals import full, full_like, splat
from .platforms import by_platform
from .shapes import StructuralPrimitive, reshape, same_before

# Sums over leading axes with results of more bytes than this take 20 to 50 times as long on a CPU as a product with
# ones: XLA goes through their columns one by one.
_WIDE = 1 << 16


def with_batch_axis(size: int, x: Tracer, is_batched: bool) -> Tracer:
    """`x` with a leading axis of `size`, repeated along it if it has none yet."""
    if is_batched:
        return x
    value = splat(x)
    if value is not None:
        return full((size, *x.shape), value, x.dtype)
    return broadcast(x, shape=(size, *x.shape), dims=tuple(range(1, x.ndim + 1)))


class Broadcast(StructuralPrimitive):
    """`x` repeated to `shape`: axis `i` of `x` becomes axis `dims[i]` of the result; `dims` is increasing."""

    name = "broadcast"

    def type_rule(self, x: ArrayType, *, shape: Shape, dims: Shape) -> ArrayType:
        if len(dims) != x.ndim or any(shape[d] != n for d, n in zip(dims, x.shape, strict=True)):
            raise ValueError(f"cannot broadcast {x} to shape {shape} with its axes at {dims}")
        return x.with_shape(shape)

    @staticmethod
    def _aligned_shape(shape: Shape, dims: Shape) -> Shape | None:
        """What to reshape the operand to, so that NumPy broadcasts it to `shape`; None if it need not be."""
        first = dims[0] if dims else len(shape)
        if dims == tuple(range(first, len(shape))):
            return None
        return tuple(n if i in dims else 1 for i, n in enumerate(shape) if i >= first)

    def numpy(self, x: Any, *, shape: Shape, dims: Shape) -> Any:
        if not dims and isinstance(x, np.number):
            # One number, repeated without memory: ten times faster than NumPy's function, which is written in Python.
            return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
        aligned = self._aligned_shape(shape, dims)
        return np.broadcast_to(x if aligned is None else x.reshape(aligned), shape)

    def python_thin(self, operand: str, params: Params) -> str | None:
        aligned = self._aligned_shape(params["shape"], params["dims"])
        return operand if aligned is None else f"{operand}.reshape({aligned})"

    def xla(self, x: Any, *, shape: Shape, dims: Shape) -> Any:
        from jax import lax

        return lax.broadcast_in_dim(x, shape, dims)

    def xla_channels_last(self, x: Any, *, shape: Shape, dims: Shape) -> Any:
        from jax import lax

        moved = [axis_with_channels_last(d, len(shape)) for d in dims]
        if x.ndim < len(shape):
            x = lax.transpose(x, sorted(range(x.ndim), key=moved.__getitem__))
        return lax.broadcast_in_dim(x, channels_last(shape), sorted(moved))

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost()

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        strides = dict(zip(params["dims"], row_strides(types[0].shape), strict=True))
        repeated = tuple(strides.get(i, 0) for i in range(results[0].ndim))
        return [read_from(IndexMap.affine(results[0].shape, 0, repeated, types[0].size))]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, shape: Shape, dims: Shape) -> list[Tangent]:
        return [reduce_sum(ct, axes=tuple(i for i in range(len(shape)) if i not in dims))]

    def batch(
        self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, shape: Shape, dims: Shape
    ) -> Any:
        return broadcast(operands[0], shape=(size, *shape), dims=(0, *(d + 1 for d in dims))), True

    def simplify(self, operands: Sequence[Tracer], *, shape: Shape, dims: Shape) -> Tracer | None:
        (x,) = operands
        if x.shape == shape:
            return x
        inner = same_before(self, x)
        if inner is not None:
            source, params = inner
            return broadcast(source, shape=shape, dims=tuple(dims[d] for d in params["dims"]))
        value = splat(x)
        return None if value is None else full(shape, value, x.dtype)


def is_number(dtype: np.dtype[Any]) -> bool:
    """Whether elements of a dtype are numbers and no booleans."""
    return dtype.kind != "b"


def _everything(_: np.dtype[Any]) -> bool:
    return True


class Reduction(SingleResult):
    """The elements of `x` along `axes` (increasing, not negative) combined by a ufunc; the result drops the axes.

    The result has the dtype of `x`: NumPy's widening of small integers and booleans belongs to the NumPy face.

    Args:
        ufunc: combines two elements.
        has_identity: whether a reduction of no elements is defined.
        accepts: dtypes that the operand may have.
    """

    memory = Memory.NEW
    fuses = True
    # The derivative by each element, where it is the same for all values.
    _factor: float | None = None

    def __init__(
        self,
        name: str,
        ufunc: np.ufunc,
        *,
        has_identity: bool = True,
        accepts: Callable[[np.dtype[Any]], bool] = _everything,
    ) -> None:
        self.name = name
        self._reduce = ufunc.reduce
        self._python = f"np.{ufunc.__name__}.reduce({{0}}, {{1}}, {{0}}.dtype)"
        self._has_identity = has_identity
        self._accepts = accepts

    def type_rule(self, x: ArrayType, *, axes: Shape) -> ArrayType:
        if any(a >= x.ndim for a in axes):
            raise ValueError(f"{self.name} over axes {axes} of {x}, which has {x.ndim} axes")
        if not self._accepts(x.dtype):
            raise TypeError(f"{self.name} is not defined for {x}")
        if not self._has_identity and any(x.shape[a] == 0 for a in axes):
            raise ValueError(f"{self.name} of no elements, over axes {axes} of {x}, is not defined")
        return x.with_shape(tuple(n for i, n in enumerate(x.shape) if i not in axes))

    def output_types(self, types: Sequence[ArrayType], params: Params) -> tuple[ArrayType, ...]:
        return remembered_types(self, tuple(types), tuple(params.items()))

    def numpy(self, x: Any, *, axes: Shape) -> Any:
        return self._reduce(x, axes, x.dtype)

    def python(self, operands: Sequence[str], params: Params) -> str:
        return self._python.format(operands[0], params["axes"])

    def xla(self, x: Any, *, axes: Shape) -> Any:
        from jax import lax

        return getattr(lax, self.name)(x, axes)

    def xla_channels_last(self, x: Any, *, axes: Shape) -> Any:
        from jax import lax

        order = channels_last(range(x.ndim))
        reduced = self.xla(x, axes=tuple(sorted(axis_with_channels_last(a, x.ndim) for a in axes)))
        kept = [a for a in order if a not in axes]
        return lax.transpose(reduced, sorted(range(len(kept)), key=kept.__getitem__))

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(types[0].size)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        (x,), axes = types, params["axes"]
        strides = iter(row_strides(results[0].shape))
        kept = tuple(0 if i in axes else next(strides) for i in range(x.ndim))
        if not x.size:
            return [()]
        return [[Piece(IndexMap.affine(x.shape, 0, kept, results[0].size), IndexMap.identity(x.shape), self._factor)]]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axes: Shape) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        assert t is not None
        out = self(x, axes=axes)
        return out, self._tangent(out, x, t, axes)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        self._missing("jvp")

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axes: Shape) -> Any:
        return self(operands[0], axes=tuple(a + 1 for a in axes)), True

    def simplify(self, operands: Sequence[Tracer], *, axes: Shape) -> Tracer | None:
        (x,) = operands
        if not axes:
            return x
        result = self.type_rule(x.type, axes=axes)
        count = math.prod(x.shape[a] for a in axes)
        value = splat(x)
        combined = None if value is None or not count else self._of_repeated(value, count)
        if combined is not None:
            return full_like(result, combined)
        return reshape(x, shape=result.shape) if count == 1 else None

    def _of_repeated(self, value: Any, count: int) -> Any:
        """The result for one number that occurs `count` times, or None to leave it to the evaluators."""
        return value


def restored(reduced: Tracer, x: Tracer, axes: Shape) -> Tracer:
    """A reduction of `x` over `axes`, repeated along them to the shape of `x`."""
    return broadcast(reduced, shape=x.shape, dims=tuple(i for i in range(x.ndim) if i not in axes))


def sum_on_xla(x: Any, axes: Shape) -> Any:
    """The sum of a JAX array over `axes`."""
    from jax import lax

    def by_product(x: Any) -> Any:
        rows = lax.reshape(x, (count, x.size // count))
        ones = lax.full((count,), 1, x.dtype)
        total = lax.dot_general(ones, rows, (((0,), (0,)), ((), ())), lax.Precision.HIGHEST, x.dtype)
        return lax.reshape(total, shape)

    count, shape = math.prod(x.shape[a] for a in axes), x.shape[len(axes) :]
    is_leading = axes == tuple(range(len(axes))) and count > 1
    if not is_leading or x.dtype.char not in "fd" or math.prod(shape) * x.dtype.itemsize <= _WIDE:
        return lax.reduce_sum(x, axes)
    return by_platform(x, cpu=by_product, default=lambda x: lax.reduce_sum(x, axes))


class ReduceSum(Reduction):
    """Sum of `x` over `axes`, which the result drops."""

    _factor = 1.0

    def __init__(self) -> None:
        super().__init__("reduce_sum", np.add, accepts=is_number)

    def xla(self, x: Any, *, axes: Shape) -> Any:
        return sum_on_xla(x, axes)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0,)

    def _tangent(self, out: Tracer, x: Tracer, t: Tracer, axes: Shape) -> Tangent:
        return reduce_sum(t, axes=axes)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axes: Shape) -> list[Tangent]:
        return [restored(ct, operands[0], axes)]

    def _of_repeated(self, value: Any, count: int) -> Any:
        if value == 0:
            # A sum begins with 0.0, so that one of -0.0 is 0.0.
            return value.dtype.type(0)
        # Integers may wrap around and floats overflow: that is left to the evaluators.
        with np.errstate(all="ignore"):
            total = value.dtype.type(value.item() * count) if is_inexact(value.dtype) else None
        return total if total is not None and np.isfinite(total) else None


broadcast = Broadcast()
reduce_sum = ReduceSum()
