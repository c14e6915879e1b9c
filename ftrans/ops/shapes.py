"""Primitives that move all elements and compute nothing: reshape, transpose, reverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.affine import row_strides
from ..base.channels import axis_with_channels_last
from ..base.index_map import IndexMap
from ..base.pieces import each_on_itself, read_from
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import Moving, Primitive, Tangent
from ..core.program import Params
from ..core.trace import Tracer, definition
from ..core.types import ArrayType, Shape
from .literals import full, splat


def same_before(primitive: Primitive, x: Tracer) -> tuple[Tracer, Params] | None:
    """Where `x` is itself a result of `primitive`: the operand and the parameters of that equation."""
    inner = definition(x)
    if inner is None or inner.primitive is not primitive:
        return None
    return Tracer(x.builder, inner.operands[0]), inner.params


class StructuralPrimitive(Moving):
    """A linear primitive of one operand that moves its elements: its jvp is itself, on the tangent."""

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0,)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return self(*primals, **params), self(*tangents, **params)


class Reshape(StructuralPrimitive):
    """`x` with the same elements, in row-major order, in another `shape`."""

    name = "reshape"
    memory = Memory.VIEW

    def type_rule(self, x: ArrayType, *, shape: Shape) -> ArrayType:
        if math.prod(shape) != x.size:
            raise ValueError(f"cannot reshape an array of shape {x.shape} into shape {shape}")
        return x.with_shape(shape)

    def numpy(self, x: Any, *, shape: Shape) -> Any:
        return x.reshape(shape)

    def python(self, operands: Sequence[str], params: Params) -> str:
        return f"{operands[0]}.reshape({params['shape']})"

    def xla(self, x: Any, *, shape: Shape) -> Any:
        from jax import lax

        return lax.reshape(x, shape)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost()

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [each_on_itself(results[0].shape)]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, shape: Shape) -> list[Tangent]:
        return [reshape(ct, shape=operands[0].shape)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, shape: Shape) -> Any:
        return reshape(operands[0], shape=(size, *shape)), True

    def simplify(self, operands: Sequence[Tracer], *, shape: Shape) -> Tracer | None:
        (x,) = operands
        if x.shape == shape:
            return x
        inner = same_before(self, x)
        if inner is not None:
            source, _ = inner
            return source if source.shape == shape else reshape(source, shape=shape)
        value = splat(x)
        return None if value is None else full(shape, value, x.dtype)


class Transpose(StructuralPrimitive):
    """`x` with its axes permuted: axis `i` of the result is axis `axes[i]` of `x`."""

    name = "transpose"
    memory = Memory.VIEW

    def type_rule(self, x: ArrayType, *, axes: Shape) -> ArrayType:
        if sorted(axes) != list(range(x.ndim)):
            raise ValueError(f"axes {axes} are not a permutation of the {x.ndim} axes of {x}")
        return x.with_shape(tuple(x.shape[i] for i in axes))

    def numpy(self, x: Any, *, axes: Shape) -> Any:
        return x.transpose(axes)

    def python(self, operands: Sequence[str], params: Params) -> str:
        return f"{operands[0]}.T" if params["axes"] == (1, 0) else f"{operands[0]}.transpose({params['axes']})"

    def xla(self, x: Any, *, axes: Shape) -> Any:
        from jax import lax

        return lax.transpose(x, axes)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        strides = row_strides(types[0].shape)
        moved = tuple(strides[i] for i in params["axes"])
        return [read_from(IndexMap.affine(results[0].shape, 0, moved, types[0].size))]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axes: Shape) -> list[Tangent]:
        return [transpose(ct, axes=tuple(axes.index(i) for i in range(len(axes))))]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axes: Shape) -> Any:
        return transpose(operands[0], axes=(0, *(i + 1 for i in axes))), True

    def simplify(self, operands: Sequence[Tracer], *, axes: Shape) -> Tracer | None:
        (x,) = operands
        if axes == tuple(range(x.ndim)):
            return x
        inner = same_before(self, x)
        if inner is not None:
            source, params = inner
            joined = tuple(params["axes"][i] for i in axes)
            return source if joined == tuple(range(x.ndim)) else transpose(source, axes=joined)
        value = splat(x)
        return None if value is None else full(tuple(x.shape[i] for i in axes), value, x.dtype)


class Reverse(StructuralPrimitive):
    """`x` with its elements in the opposite order along `axes`."""

    name = "reverse"
    memory = Memory.VIEW

    def type_rule(self, x: ArrayType, *, axes: Shape) -> ArrayType:
        return x

    def numpy(self, x: Any, *, axes: Shape) -> Any:
        return np.flip(x, axes)

    def xla(self, x: Any, *, axes: Shape) -> Any:
        from jax import lax

        return lax.rev(x, axes)

    def xla_channels_last(self, x: Any, *, axes: Shape) -> Any:
        return self.xla(x, axes=tuple(axis_with_channels_last(a, x.ndim) for a in axes))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        (x,), turned = types, params["axes"]
        strides = row_strides(x.shape)
        last = sum(strides[i] * (x.shape[i] - 1) for i in turned)
        back = tuple(-s if i in turned else s for i, s in enumerate(strides))
        return [read_from(IndexMap.affine(x.shape, last, back, x.size))]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axes: Shape) -> list[Tangent]:
        return [reverse(ct, axes=axes)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axes: Shape) -> Any:
        return reverse(operands[0], axes=tuple(a + 1 for a in axes)), True

    def simplify(self, operands: Sequence[Tracer], *, axes: Shape) -> Tracer | None:
        (x,) = operands
        if splat(x) is not None or all(x.shape[a] == 1 for a in axes):
            return x
        inner = same_before(self, x)
        return inner[0] if inner is not None and inner[1]["axes"] == axes else None


reshape = Reshape()
transpose = Transpose()
reverse = Reverse()
