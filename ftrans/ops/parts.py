"""Parts of arrays: a slice, the padding that is its transpose, and arrays joined."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.affine import row_strides
from ..base.channels import axis_with_channels_last, channels_last
from ..base.index_map import IndexMap
from ..base.pieces import read_from, written_to
from ..core.on_numpy import Memory
from ..core.primitive import Moving, Tangent, moved_pieces
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape
from .broadcast import broadcast, reduce_sum, with_batch_axis
from .elementwise import select, sub
from .literals import full, full_like, same_number, splat
from .shapes import StructuralPrimitive


def sliced(whole: Shape, part: Shape, start: Shape, strides: Shape) -> IndexMap:
    """From the elements of a slice of a shape to those of the whole array."""
    rows = row_strides(whole)
    offset = sum(a * r for a, r in zip(start, rows, strict=True))
    return IndexMap.affine(part, offset, tuple(s * r for s, r in zip(strides, rows, strict=True)), math.prod(whole))


class Slice(StructuralPrimitive):
    """The elements of `x` from `start` up to `limit` in steps of `strides`, all per axis; strides are positive."""

    name = "slice"
    memory = Memory.VIEW

    def type_rule(self, x: ArrayType, *, start: Shape, limit: Shape, strides: Shape) -> ArrayType:
        bounds = zip(start, limit, strides, x.shape, strict=True)
        if not all(0 <= a <= b <= n and s >= 1 for a, b, s, n in bounds):
            raise ValueError(f"slice [{start}, {limit}) by {strides} is outside of shape {x.shape}")
        return x.with_shape(tuple(-(-(b - a) // s) for a, b, s in zip(start, limit, strides, strict=True)))

    def numpy(self, x: Any, *, start: Shape, limit: Shape, strides: Shape) -> Any:
        return x[tuple(map(slice, start, limit, strides))]

    def python(self, operands: Sequence[str], params: Params) -> str:
        ranges = zip(params["start"], params["limit"], params["strides"], strict=True)
        index = ", ".join(f"{a}:{b}" if s == 1 else f"{a}:{b}:{s}" for a, b, s in ranges)
        return f"{operands[0]}[{index or '()'}]"

    def xla(self, x: Any, *, start: Shape, limit: Shape, strides: Shape) -> Any:
        from jax import lax

        return lax.slice(x, start, limit, strides)

    def xla_channels_last(self, x: Any, **params: Any) -> Any:
        return self.xla(x, **{name: channels_last(values) for name, values in params.items()})

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [read_from(sliced(types[0].shape, results[0].shape, params["start"], params["strides"]))]

    def transpose(
        self, ct: Tracer, operands: Sequence[Any], *, start: Shape, limit: Shape, strides: Shape
    ) -> list[Tangent]:
        after = tuple(
            n - (a + (m - 1) * s + 1) if m else n - a
            for n, a, m, s in zip(operands[0].shape, start, ct.shape, strides, strict=True)
        )
        # An empty axis has no interior to pad, so its stride must not count.
        interior = tuple(s - 1 if m else 0 for s, m in zip(strides, ct.shape, strict=True))
        return [pad(ct, full((), 0, ct.dtype), before=start, after=after, interior=interior)]

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        start: Shape,
        limit: Shape,
        strides: Shape,
    ) -> Any:
        return slice_(operands[0], start=(0, *start), limit=(size, *limit), strides=(1, *strides)), True

    def simplify(self, operands: Sequence[Tracer], *, start: Shape, limit: Shape, strides: Shape) -> Tracer | None:
        (x,) = operands
        result = self.type_rule(x.type, start=start, limit=limit, strides=strides)
        if result is x.type:
            return x
        value = splat(x)
        return None if value is None else full_like(result, value)


@functools.lru_cache(1000)
def _padded(shape: Shape, before: Shape, after: Shape, interior: Shape) -> Shape:
    return tuple([n + a + b + max(n - 1, 0) * i for n, b, a, i in zip(shape, before, after, interior, strict=True)])


@functools.lru_cache(1000)
def _padding(type: ArrayType, before: Shape, after: Shape, interior: Shape) -> Callable[[Any, Any], Any]:
    """`Pad.numpy` for arrays of a type."""
    shape, dtype = _padded(type.shape, before, after, interior), type.dtype
    inside = Pad._inside(type.shape, before, interior)

    def padded(x: Any, value: Any) -> Any:
        # A zero with a sign has a bit that is set.
        out = np.full(shape, value, dtype) if any(np.asarray(value).tobytes()) else np.zeros(shape, dtype)
        out[inside] = x
        return out

    return padded


class Pad(Moving):
    """`x` with the scalar `value` put before, after and (`interior` times) between its elements, per axis."""

    name = "pad"
    memory = Memory.NEW

    def type_rule(self, x: ArrayType, value: ArrayType, *, before: Shape, after: Shape, interior: Shape) -> ArrayType:
        if value.shape != () or value.dtype != x.dtype:
            raise TypeError(f"padding of {x} needs a scalar of its dtype, not {value}")
        return x.with_shape(_padded(x.shape, before, after, interior))

    @staticmethod
    @functools.lru_cache(1000)
    def _inside(shape: Shape, before: Shape, interior: Shape) -> tuple[slice, ...]:
        return tuple(
            slice(b, b + max(n - 1, 0) * (i + 1) + min(n, 1), i + 1)
            for n, b, i in zip(shape, before, interior, strict=True)
        )

    def numpy(self, x: Any, value: Any, *, before: Shape, after: Shape, interior: Shape) -> Any:
        shape = _padded(x.shape, before, after, interior)
        # A zero with a sign has a bit that is set.
        is_zero = not any(np.asarray(value).tobytes())
        out = np.zeros(shape, x.dtype) if is_zero else np.full(shape, value, x.dtype)
        out[self._inside(x.shape, before, interior)] = x
        return out

    def bound(self, types: Sequence[ArrayType], params: Params) -> Callable[..., Any] | None:
        x, _ = types
        return _padding(x, **params)

    def xla(self, x: Any, value: Any, *, before: Shape, after: Shape, interior: Shape) -> Any:
        from jax import lax

        return lax.pad(x, value, tuple(zip(before, after, interior, strict=True)))

    def xla_channels_last(self, x: Any, value: Any, **params: Any) -> Any:
        return self.xla(x, value, **{name: channels_last(values) for name, values in params.items()})

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0, 1)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        x, value = (full_like(p, 0) if t is None else t for p, t in zip(primals, tangents, strict=True))
        return pad(*primals, **params), pad(x, value, **params)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        if known[1] is None:
            return moved_pieces(self, types, known, params)
        strides = tuple(i + 1 for i in params["interior"])
        return [written_to(sliced(results[0].shape, types[0].shape, params["before"], strides)), ()]

    def transpose(
        self, ct: Tracer, operands: Sequence[Any], *, before: Shape, after: Shape, interior: Shape
    ) -> list[Tangent]:

        x, value = operands
        inside = self._inside(x.shape, before, interior)
        kept = slice_(
            ct,
            start=tuple(s.start for s in inside),
            limit=tuple(s.stop for s in inside),
            strides=tuple(s.step for s in inside),
        )
        ct_value = None
        if isinstance(value, ArrayType):
            every = tuple(range(ct.ndim))
            ct_value = sub(reduce_sum(ct, axes=every), reduce_sum(kept, axes=every))
        return [kept if isinstance(x, ArrayType) else None, ct_value]

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        before: Shape,
        after: Shape,
        interior: Shape,
    ) -> Any:

        x = with_batch_axis(size, operands[0], batched[0])
        value = operands[1]
        padding: dict[str, Any] = {"before": (0, *before), "after": (0, *after), "interior": (0, *interior)}
        if not batched[1]:
            return pad(x, value, **padding), True
        inside = pad(full(x.shape, True, np.bool_), full((), False, np.bool_), **padding)
        padded = pad(x, full((), 0, x.dtype), **padding)
        return select(inside, padded, broadcast(value, shape=padded.shape, dims=(0,))), True

    def simplify(self, operands: Sequence[Tracer], *, before: Shape, after: Shape, interior: Shape) -> Tracer | None:
        x, value = operands
        if not any(before) and not any(after) and not any(interior):
            return x
        if not same_number(x, value):
            return None
        result = self.type_rule(x.type, value.type, before=before, after=after, interior=interior)
        return full_like(result, splat(value))


class Concatenate(Moving):
    """Arrays joined along `axis`."""

    name = "concatenate"
    memory = Memory.NEW

    def type_rule(self, *xs: ArrayType, axis: int) -> ArrayType:
        first = xs[0]
        for x in xs:
            same = x.ndim == first.ndim and x.shape[:axis] + x.shape[axis + 1 :] == (
                first.shape[:axis] + first.shape[axis + 1 :]
            )
            if not same or x.dtype != first.dtype:
                raise ValueError(f"cannot concatenate {first} and {x} along axis {axis}")
        total = sum(x.shape[axis] for x in xs)
        return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))

    def numpy(self, *xs: Any, axis: int) -> Any:
        return np.concatenate(xs, axis)

    def xla(self, *xs: Any, axis: int) -> Any:
        from jax import lax

        return lax.concatenate(xs, axis)

    def xla_channels_last(self, *xs: Any, axis: int) -> Any:
        return self.xla(*xs, axis=axis_with_channels_last(axis, xs[0].ndim))

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return range(count)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int) -> tuple[Any, Any]:
        filled = [full_like(p, 0) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        return concatenate(*primals, axis=axis), concatenate(*filled, axis=axis)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        (whole,), axis, first = results, params["axis"], 0
        found = []
        for x in types:
            start = tuple(first if i == axis else 0 for i in range(x.ndim))
            found.append(written_to(sliced(whole.shape, x.shape, start, (1,) * x.ndim)))
            first += x.shape[axis]
        return found

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int) -> list[Tangent]:
        results: list[Tangent] = []
        position = 0
        for x in operands:
            size = x.shape[axis]
            if isinstance(x, ArrayType):
                start = tuple(position if i == axis else 0 for i in range(ct.ndim))
                limit = tuple(position + size if i == axis else n for i, n in enumerate(ct.shape))
                results.append(slice_(ct, start=start, limit=limit, strides=(1,) * ct.ndim))
            else:
                results.append(None)
            position += size
        return results

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int) -> Any:
        xs = [with_batch_axis(size, x, b) for x, b in zip(operands, batched, strict=True)]
        return concatenate(*xs, axis=axis + 1), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int) -> Tracer | None:
        return operands[0] if len(operands) == 1 else None


slice_ = Slice()
pad = Pad()
concatenate = Concatenate()
