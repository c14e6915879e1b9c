"""Primitives that write to a static slice of an array: `set_slice` and, for the cotangents of slices, `add_slice`.

The NumPy evaluator writes to the array itself where nothing else needs its old elements (`run/memory.py`), so
that a write costs as much as the slice has elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.index_map import IndexMap, Piece
from ..base.pieces import each_on_itself, written_to
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import Moving, SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer, definition
from ..core.types import ArrayType, Shape
from .broadcast import with_batch_axis
from .elementwise import add
from .literals import adds_nothing, full_like, same_number, splat
from .parts import pad, slice_, sliced

# How many assignments a read looks through for the one that wrote the elements.
_MOST_WRITES = 32


def _index(params: Params) -> str:
    """The text of an index of NumPy."""
    ranges = zip(params["start"], params["limit"], params["strides"], strict=True)
    return ", ".join(f"{a}:{b}" if s == 1 else f"{a}:{b}:{s}" for a, b, s in ranges) or "..."


def _xla_padding(x: Any, updates: Any, start: Shape, strides: Shape) -> list[tuple[int, int, int]]:
    """How to pad the updates to the shape of `x`."""
    return [
        (a, size - a - (n - 1) * s - 1, s - 1)
        for a, s, n, size in zip(start, strides, updates.shape, x.shape, strict=True)
    ]


class SliceUpdate(SingleResult):
    """What `set_slice` and `add_slice` share: `updates` for the slice that `slice_` takes of `x`."""

    memory = Memory.WRITES

    def type_rule(self, x: ArrayType, updates: ArrayType, *, start: Shape, limit: Shape, strides: Shape) -> ArrayType:
        expected = slice_.type_rule(x, start=start, limit=limit, strides=strides)
        if updates is not expected:
            raise TypeError(f"{self.name} of a slice of {x} needs {expected}, not {updates}")
        return x

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0, 1)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        filled = [full_like(p, 0) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        return self(*primals, **params), self(*filled, **params)

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
        x, updates = (with_batch_axis(size, v, b) for v, b in zip(operands, batched, strict=True))
        return self(x, updates, start=(0, *start), limit=(size, *limit), strides=(1, *strides)), True


class SetSlice(SliceUpdate, Moving):
    """`x` with the slice that `slice_` takes (from `start` up to `limit` in steps of `strides`) set to `updates`."""

    name = "set_slice"

    def numpy(self, x: Any, updates: Any, *, start: Shape, limit: Shape, strides: Shape) -> Any:
        out = np.array(x)
        out[tuple(map(slice, start, limit, strides))] = updates
        return out

    def python_overwriting(self, operands: Sequence[str], params: Params) -> str:
        x, updates = operands
        return f"{x}[{_index(params)}] = {updates}"

    def xla(self, x: Any, updates: Any, *, start: Shape, limit: Shape, strides: Shape) -> Any:
        from jax import lax

        if 0 in updates.shape:
            return x
        if all(s == 1 or n == 1 for s, n in zip(strides, updates.shape, strict=True)):
            return lax.dynamic_update_slice(x, updates, start)
        # For XLA a mask is cheaper than a scatter.
        padding = _xla_padding(x, updates, start, strides)
        inside = lax.pad(lax.full(updates.shape, True), np.False_, padding)
        return lax.select(inside, lax.pad(updates, np.zeros((), x.dtype), padding), x)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        x, updates = types
        written = written_to(sliced(x.shape, updates.shape, params["start"], params["strides"]))
        if known[0] is not None:
            return [(), written]
        is_kept = np.ones(x.shape, np.bool_)
        is_kept[tuple(map(slice, params["start"], params["limit"], params["strides"]))] = False
        kept = IndexMap.of(np.flatnonzero(is_kept), x.size)
        return [[Piece(kept, kept, 1.0)] if kept.size else [], written]

    def transpose(self, ct: Tracer, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        x, updates = operands
        # What is read before the write lets the write be done in place.
        ct_updates = slice_(ct, **params) if isinstance(updates, ArrayType) else None
        ct_x = set_slice(ct, full_like(updates, 0), **params) if isinstance(x, ArrayType) else None
        return [ct_x, ct_updates]

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        x, updates = operands
        if updates.size == 0 or same_number(x, updates):
            return x
        return updates if updates.shape == x.shape else None


class AddSlice(SliceUpdate):
    """`x` with `updates` added to the slice that `slice_` takes of it."""

    name = "add_slice"

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost(types[1].size, types[1].size + results[0].size / 2)

    def numpy(self, x: Any, updates: Any, *, start: Shape, limit: Shape, strides: Shape) -> Any:
        out = np.array(x)
        out[tuple(map(slice, start, limit, strides))] += updates
        return out

    def python_overwriting(self, operands: Sequence[str], params: Params) -> str:
        x, updates = operands
        return f"{x}[{_index(params)}] += {updates}"

    def xla(self, x: Any, updates: Any, *, start: Shape, limit: Shape, strides: Shape) -> Any:
        from jax import lax

        if 0 in updates.shape:
            return x
        is_small = 4 * updates.size <= x.size
        if is_small and all(s == 1 or n == 1 for s, n in zip(strides, updates.shape, strict=True)):
            return lax.dynamic_update_slice(x, lax.add(lax.slice(x, start, limit, strides), updates), start)
        # Adding a padded array takes a pass over the whole of it, but one that XLA fuses with those around it.
        return lax.add(x, lax.pad(updates, np.zeros((), x.dtype), _xla_padding(x, updates, start, strides)))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        x, updates = types
        return [
            each_on_itself(x.shape),
            written_to(sliced(x.shape, updates.shape, params["start"], params["strides"])),
        ]

    def transpose(self, ct: Tracer, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        x, updates = operands
        return [
            ct if isinstance(x, ArrayType) else None,
            slice_(ct, **params) if isinstance(updates, ArrayType) else None,
        ]

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> Tracer | None:
        x, updates = operands
        if updates.size == 0 or adds_nothing(updates, x):
            return x
        return add(x, updates) if updates.shape == x.shape else None


set_slice = SetSlice()
add_slice = AddSlice()


def padded_part(x: Tracer) -> tuple[Tracer, Params] | None:
    """Where `x` is zero but for a slice: the elements of the slice, and its parameters."""
    eqn = definition(x)
    if eqn is None or eqn.primitive is not pad:
        return None
    part, zero = (Tracer(x.builder, a) for a in eqn.operands)
    if splat(zero) != 0:
        return None
    params = eqn.params
    strides = tuple(i + 1 for i in params["interior"])
    start: Shape = params["before"]
    limit = tuple(a + (n - 1) * s + 1 if n else a for a, n, s in zip(start, part.shape, strides, strict=True))
    return part, {"start": start, "limit": limit, "strides": strides}


def written(x: Tracer, params: Params) -> Tracer | None:
    """What a slice of `x` has last been set to, or its slice before all writes, which were to others; None if unknown.

    A slice between two writes would keep the second one from being done in place.
    """
    source = x
    for _ in range(_MOST_WRITES):
        eqn = definition(source)
        if eqn is None or eqn.primitive is not set_slice:
            return None if source is x else slice_(source, **params)
        if eqn.params == params:
            return Tracer(x.builder, eqn.operands[1])
        if not _are_disjoint(eqn.params, params):
            return None
        source = Tracer(x.builder, eqn.operands[0])
    return None


def _are_disjoint(a: Params, b: Params) -> bool:
    """Whether the spans of two slices do not meet along some axis."""
    bounds = zip(a["start"], a["limit"], b["start"], b["limit"], strict=True)
    return any(end_a <= start_b or end_b <= start_a for start_a, end_a, start_b, end_b in bounds)
