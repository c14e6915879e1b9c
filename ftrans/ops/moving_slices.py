"""Primitives that read, set and add to a slice whose place is known when the program runs only.

A place is one int64 scalar per axis of the array: where the slice starts.  A slice that would reach out of the array is
moved to the nearest place where it lies inside, by NumPy as by XLA; reading and writing agree in that, so that they
stay each other's transposes.  Negative numbers do not count from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..base.index_map import IndexMap, Piece
from ..base.pieces import aligned, each_on_itself, read_from, turned, written_to
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import Moving, SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer, definition
from ..core.types import ArrayType, Shape
from .broadcast import broadcast, with_batch_axis
from .elementwise import add, maximum, minimum
from .indexing import Scatter, gather, scatter_add, scatter_set
from .literals import adds_nothing, full, full_like, iota, same_number, splat
from .parts import slice_, sliced
from .slices import add_slice, set_slice

_PLACE = ArrayType((), np.int64)


def _check_places(name: str, x: ArrayType, sizes: Shape, starts: Sequence[ArrayType]) -> None:
    """Raise a TypeError unless a slice of these sizes fits into `x` and has a start for each axis."""
    if len(sizes) != x.ndim or not all(0 <= n <= whole for n, whole in zip(sizes, x.shape, strict=True)):
        raise TypeError(f"{name}: {x} has no slice of shape {sizes}")
    if len(starts) != x.ndim or any(start is not _PLACE for start in starts):
        given = ", ".join(map(str, starts)) or "nothing"
        raise TypeError(f"{name}: a place in {x} is one {_PLACE} per axis, not {given}")


def _inside(starts: Sequence[Any], sizes: Shape, shape: Shape) -> Shape:
    """Where the slice starts, moved into the array."""
    return tuple(
        [0 if n == whole else min(max(int(a), 0), whole - n) for a, n, whole in zip(starts, sizes, shape, strict=True)]
    )


def _numpy_index(starts: Sequence[Any], sizes: Shape, shape: Shape) -> tuple[slice, ...]:
    """The index of NumPy for a slice."""
    return tuple([slice(a, a + n) for a, n in zip(_inside(starts, sizes, shape), sizes, strict=True)])


def _at_a_known_place(starts: Sequence[Tracer], sizes: Shape, shape: Shape) -> Params | None:
    """The parameters of `slice_` if all starts are constants, else None."""
    known = [splat(a) for a in starts]
    if any(a is None for a in known):
        return None
    start = _inside(known, sizes, shape)
    limit = tuple(a + n for a, n in zip(start, sizes, strict=True))
    return {"start": start, "limit": limit, "strides": (1,) * len(sizes)}


def _as_indices(
    size: int, starts: Sequence[Tracer], batched: Sequence[bool], sizes: Shape, shape: Shape
) -> tuple[list[Tracer], int]:
    """Batched indices of the elements of a slice for `gather`, and the first axis that they are for.

    They are for the axes from the first to the last of those in which the slice is not as long as the array.
    """
    cut = [k for k, (n, whole) in enumerate(zip(sizes, shape, strict=True)) if n != whole] or [0]
    axes = range(cut[0], cut[-1] + 1)
    window = (size, *(sizes[k] for k in axes))
    indices = []
    for number, k in enumerate(axes, 1):
        start = with_batch_axis(size, starts[k], batched[k])
        start = minimum(maximum(start, full_like(start, 0)), full_like(start, shape[k] - sizes[k]))
        along = iota(shape=window, axis=number, dtype=np.dtype(np.int64))
        indices.append(add(broadcast(start, shape=window, dims=(0,)), along))
    return indices, cut[0]


def _parts(x: Shape, sizes: Shape, starts: Sequence[Any]) -> tuple[IndexMap | None, list[Piece]]:
    """From the elements of a slice to those of the array if its place is known, and how the slice depends on it."""
    if all(a is not None for a in starts):
        places = sliced(x, sizes, _inside(starts, sizes, x), (1,) * len(x))
        return places, read_from(places)
    return None, aligned(sizes, x, [(k, k) for k, n in enumerate(sizes) if n == x[k]])


class DynamicSlice(Moving):
    """The slice of `x` of shape `sizes` that begins at `starts`, one number per axis."""

    name = "dynamic_slice"
    memory = Memory.VIEW

    def type_rule(self, x: ArrayType, *starts: ArrayType, sizes: Shape) -> ArrayType:
        _check_places(self.name, x, sizes, starts)
        return x.with_shape(sizes)

    def numpy(self, x: Any, *starts: Any, sizes: Shape) -> Any:
        return x[_numpy_index(starts, sizes, x.shape)]

    def xla(self, x: Any, *starts: Any, sizes: Shape) -> Any:
        from jax import lax

        return lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0,)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        _, pieces = _parts(types[0].shape, params["sizes"], known[1:])
        return [pieces, *[()] * (len(types) - 1)]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, sizes: Shape) -> tuple[Any, Any]:
        (x, *starts), t = primals, tangents[0]
        return self(x, *starts, sizes=sizes), None if t is None else self(t, *starts, sizes=sizes)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, sizes: Shape) -> list[Tangent]:
        x, *starts = operands
        return [dynamic_add(full_like(x, 0), ct, *starts), *[None] * len(starts)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, sizes: Shape) -> Any:
        x, *starts = operands
        if not any(batched[1:]):
            return self(x, full((), 0, np.int64), *starts, sizes=(size, *sizes)), True
        shape = x.shape[1:] if batched[0] else x.shape
        indices, axis = _as_indices(size, starts, batched[1:], sizes, shape)
        return gather.batch(size, [x, *indices], [batched[0], *[True] * len(indices)], axis=axis)

    def simplify(self, operands: Sequence[Tracer], *, sizes: Shape) -> Tracer | None:
        x, *starts = operands
        if sizes == x.shape:
            return x
        known = _at_a_known_place(starts, sizes, x.shape)
        if known is not None:
            return slice_(x, **known)
        value = splat(x)
        return self._set_before(x, starts, sizes) if value is None else full(sizes, value, x.dtype)

    @staticmethod
    def _set_before(x: Tracer, starts: Sequence[Tracer], sizes: Shape) -> Tracer | None:
        """What this slice has just been set to, or None."""
        made = definition(x)
        if made is None or made.primitive is not dynamic_set:
            return None
        updates = Tracer(x.builder, made.operands[1])
        return updates if updates.shape == sizes and made.operands[2:] == tuple(a.atom for a in starts) else None


class DynamicUpdate(SingleResult):
    """What `dynamic_set` and `dynamic_add` share: `updates` for the slice of their shape that begins at `starts`.

    Attributes:
        scatter: the primitive that does the same at indices.
        scatter_params: its parameters, beside the axis.
    """

    memory = Memory.WRITES
    scatter: Scatter
    scatter_params: ClassVar[Params] = {}

    def type_rule(self, x: ArrayType, updates: ArrayType, *starts: ArrayType) -> ArrayType:
        if updates.dtype != x.dtype:
            raise TypeError(f"{self.name}: {updates} cannot be put into {x}")
        _check_places(self.name, x, updates.shape, starts)
        return x

    def numpy(self, x: Any, updates: Any, *starts: Any) -> Any:
        out = np.array(x)
        self.overwrite(out, updates, *starts)
        return out

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0, 1)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        x, updates, *starts = primals
        tx, tu = (full_like(p, 0) if t is None else t for p, t in zip((x, updates), tangents, strict=False))
        return self(*primals), self(tx, tu, *starts)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool]) -> Any:
        x, updates = (with_batch_axis(size, v, b) for v, b in zip(operands, batched[:2], strict=False))
        starts = operands[2:]
        if not any(batched[2:]):
            return self(x, updates, full((), 0, np.int64), *starts), True
        indices, axis = _as_indices(size, starts, batched[2:], updates.shape[1:], x.shape[1:])
        every = [True] * (2 + len(indices))
        return self.scatter.batch(size, [x, updates, *indices], every, axis=axis, **self.scatter_params)


class DynamicSet(DynamicUpdate, Moving):
    """`x` with the slice that begins at `starts` and has the shape of `updates` set to them."""

    name = "dynamic_set"
    scatter = scatter_set
    scatter_params: ClassVar[Params] = {"unique": True}

    def overwrite(self, out: Any, updates: Any, *starts: Any) -> None:
        out[_numpy_index(starts, updates.shape, out.shape)] = updates

    def xla(self, x: Any, updates: Any, *starts: Any) -> Any:
        from jax import lax

        return lax.dynamic_update_slice(x, updates, starts, allow_negative_indices=False)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        x, updates, *starts = types
        places, pieces = _parts(x.shape, updates.shape, known[2:])
        if places is None:
            return [each_on_itself(x.shape, None), turned(pieces), *[()] * len(starts)]
        start = _inside(known[2:], updates.shape, x.shape)
        limit = tuple(a + n for a, n in zip(start, updates.shape, strict=True))
        params = {"start": start, "limit": limit, "strides": (1,) * x.ndim}
        of_set = set_slice.local([x, updates], results, known[:2], params)
        return [*of_set, *[()] * len(starts)]

    def transpose(self, ct: Tracer, operands: Sequence[Any]) -> list[Tangent]:
        x, updates, *starts = operands
        # What is read before the write lets the write be done in place.
        ct_updates = dynamic_slice(ct, *starts, sizes=updates.shape) if isinstance(updates, ArrayType) else None
        ct_x = self(ct, full_like(updates, 0), *starts) if isinstance(x, ArrayType) else None
        return [ct_x, ct_updates, *[None] * len(starts)]

    def simplify(self, operands: Sequence[Tracer]) -> Tracer | None:
        x, updates, *starts = operands
        if updates.size == 0 or same_number(x, updates):
            return x
        if updates.shape == x.shape:
            return updates
        known = _at_a_known_place(starts, updates.shape, x.shape)
        return None if known is None else set_slice(x, updates, **known)


class DynamicAdd(DynamicUpdate):
    """`x` with `updates` added to the slice that begins at `starts` and has their shape."""

    name = "dynamic_add"
    scatter = scatter_add

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost(types[1].size, types[1].size + results[0].size / 2)

    def overwrite(self, out: Any, updates: Any, *starts: Any) -> None:
        out[_numpy_index(starts, updates.shape, out.shape)] += updates

    def xla(self, x: Any, updates: Any, *starts: Any) -> Any:
        from jax import lax

        before = lax.dynamic_slice(x, starts, updates.shape, allow_negative_indices=False)
        return lax.dynamic_update_slice(x, before + updates, starts, allow_negative_indices=False)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        x, updates, *starts = types
        places, pieces = _parts(x.shape, updates.shape, known[2:])
        added = turned(pieces) if places is None else written_to(places)
        return [each_on_itself(x.shape), added, *[()] * len(starts)]

    def transpose(self, ct: Tracer, operands: Sequence[Any]) -> list[Tangent]:
        x, updates, *starts = operands
        ct_x = ct if isinstance(x, ArrayType) else None
        ct_updates = dynamic_slice(ct, *starts, sizes=updates.shape) if isinstance(updates, ArrayType) else None
        return [ct_x, ct_updates, *[None] * len(starts)]

    def simplify(self, operands: Sequence[Tracer]) -> Tracer | None:
        x, updates, *starts = operands
        if updates.size == 0 or adds_nothing(updates, x):
            return x
        if updates.shape == x.shape:
            return add(x, updates)
        known = _at_a_known_place(starts, updates.shape, x.shape)
        return None if known is None else add_slice(x, updates, **known)


dynamic_slice = DynamicSlice()
dynamic_set = DynamicSet()
dynamic_add = DynamicAdd()
