"""Primitives that read and write elements at indices: gather and scatter.

An index that is out of range is an IndexError for NumPy.  XLA cannot raise, and takes the nearest valid index instead,
as `jax.numpy` does for `x[i]`; reading and writing agree in that, so that they stay each other's transposes.
Negative indices count from the end for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.affine import row_strides
from ..base.index_map import Piece
from ..base.pieces import can_be_listed, combined, each_on_itself, steps, turned
from ..base.surroundings import is_divided
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import Moving, SingleResult, Tangent, moved_pieces
from ..core.program import Params, Program
from ..core.trace import Tracer, definition
from ..core.types import ArrayType, Shape
from .broadcast import broadcast, with_batch_axis
from .counted_indices import Lanes, apart, one_of_all, with_lanes, with_stand_ins
from .elementwise import add, bitwise_or, eq, ge, lt, maximum, minimum, mul, ne, select
from .literals import adds_nothing, full, full_like, iota, same_number, splat
from .reductions import reduce_and
from .shapes import reshape, transpose

# How many elements are added to at once: their places then take memory that is in use already.
_PLACES = 8192


def _check_indices(name: str, x: ArrayType, indices: Sequence[ArrayType], axis: int) -> Shape:
    """The common shape of the indices of axes `axis` and following of `x`."""
    if not indices or axis + len(indices) > x.ndim:
        raise TypeError(f"{name} cannot index {x} from axis {axis} on with {len(indices)} arrays")
    for i in indices:
        if i is not indices[0] or i.dtype.kind not in "iu":
            raise TypeError(f"indices of {name} must be integers of one type: {', '.join(map(str, indices))}")
    return indices[0].shape


def _indexed_shape(x: Any, shape: Shape, count: int, axis: int) -> Shape:
    return (*x.shape[:axis], *shape, *x.shape[axis + count :])


def _numpy_index(indices: Sequence[Any], axis: int) -> tuple[Any, ...]:
    return (slice(None),) * axis + tuple(indices)


def _with_place_in_batch(size: int, indices: Sequence[Tracer], batched: Sequence[bool]) -> list[Tracer]:
    """The indices, each with a batch axis, after an index that says which element of the batch it is."""
    indices = [with_batch_axis(size, i, b) for i, b in zip(indices, batched, strict=True)]
    return [iota(shape=indices[0].shape, axis=0, dtype=indices[0].dtype), *indices]


def _batch_axis_to(x: Tracer, axis: int) -> Tracer:
    """`x` with its axis 0 moved to `axis`."""
    return x if axis == 0 else transpose(x, axes=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _batch_axis_from(x: Tracer, axis: int) -> Tracer:
    """`x` with `axis` moved to the front."""
    return x if axis == 0 else transpose(x, axes=(axis, *range(axis), *range(axis + 1, x.ndim)))


def _xla_starts(x: Any, indices: Sequence[Any], axis: int) -> list[Any]:
    """Where the slice of `x` begins that scalar indices select; XLA wraps and clamps these by itself."""
    zero = np.zeros((), indices[0].dtype)
    return [zero] * axis + list(indices) + [zero] * (x.ndim - axis - len(indices))


def _xla_positions(x: Any, indices: Sequence[Any], axes: Sequence[int]) -> Any:
    """The indices of some axes as one array, as XLA's gather and scatter take them, with negative ones wrapped."""
    import jax.numpy as jnp

    sizes = [x.shape[a] for a in axes]
    wrapped = [jnp.where(i < 0, i + n, i) if i.dtype.kind == "i" else i for i, n in zip(indices, sizes, strict=True)]
    return jnp.stack(wrapped, axis=-1)


def _slice_sizes(x: Any, count: int, axis: int) -> Shape:
    return _indexed_shape(x, (1,) * count, count, axis)


def _read(x: Shape, part: Shape, indices: Sequence[Any], axis: int) -> list[Piece]:
    """How what is read at indices depends on an array of shape `x`; an index that is None may be any."""
    sizes, strides = x[axis : axis + len(indices)], row_strides(x)[axis:]
    before, after = math.prod(x[:axis]), math.prod(x[axis + len(indices) :])
    shape = part[axis : len(part) - (len(x) - axis - len(indices))]
    places = np.zeros(shape, np.int64)
    anywhere = []
    for index, n, stride in zip(indices, sizes, strides, strict=False):
        if index is None:
            anywhere.append((steps(n, 0), steps(n, stride)))
        else:
            places += np.clip(np.where(index < 0, index + n, index), 0, max(n - 1, 0)) * stride
    parts = [
        (steps(before, places.size * after), steps(before, math.prod(sizes) * after)),
        (steps(places.size, after), places.reshape(-1)),
        (steps(after, 1), steps(after, 1)),
        *anywhere,
    ]
    if anywhere and not can_be_listed(parts):
        return _read(x, part, [None] * len(indices), axis)
    pieces = combined(parts, math.prod(part), math.prod(x))
    return pieces if anywhere else [Piece(p.rows.reshaped(part), p.cols.reshaped(part), 1.0) for p in pieces]


class Gather(Moving):
    """The elements of `x` at integer `indices`, as `x[i, j, ...]`, or `x[:, i, j, ...]` for an `axis` of 1.

    The indices have one type, and their shape takes the place of the axes of `x` that they index: `axis` and as many
    following ones as there are indices.

    Params:
        axis: first axis that the indices are for.
        lanes: indices that only count, which is known once it runs.
        stands_in: whether the result stands in for elements that are not used, which is also known then.
    """

    name = "gather"

    def __call__(self, x: Any, *indices: Any, axis: int = 0) -> Any:
        return super().__call__(x, *indices, axis=axis)

    def type_rule(
        self, x: ArrayType, *indices: ArrayType, axis: int, lanes: Lanes = (), stands_in: bool = False
    ) -> ArrayType:
        shape = _check_indices(self.name, x, indices, axis)
        return x.with_shape(_indexed_shape(x, shape, len(indices), axis))

    def numpy(self, x: Any, *indices: Any, axis: int, lanes: Lanes = (), stands_in: bool = False) -> Any:
        if len(indices) == 1 and indices[0].ndim:
            return x.take(indices[0], axis)
        return x[_numpy_index(indices, axis)]

    def python(self, operands: Sequence[str], params: Params) -> str | None:
        # Many rows are read faster by `take`, and one by an index; only `numpy` can tell which it is.
        x, *indices = operands
        return None if len(indices) == 1 else f"{x}[{', '.join([':'] * params['axis'] + indices)}]"

    def xla(self, x: Any, *indices: Any, axis: int, lanes: Lanes = (), stands_in: bool = False) -> Any:
        from jax import lax

        count, shape = len(indices), indices[0].shape
        result = _indexed_shape(x, shape, count, axis)
        if 0 in x.shape or 0 in shape:
            return lax.full(result, 0, x.dtype)
        if stands_in and is_divided():
            return one_of_all(x, indices[0])
        if shape == ():
            row = lax.dynamic_slice(x, _xla_starts(x, indices, axis), _slice_sizes(x, count, axis))
            return lax.reshape(row, result)
        others, axes, lanes_of_x, lanes_of_indices = apart(indices, axis, lanes)
        numbers = lax.GatherDimensionNumbers(
            offset_dims=(*range(axis), *range(axis + len(shape), len(result))),
            collapsed_slice_dims=axes,
            start_index_map=axes,
            operand_batching_dims=lanes_of_x,
            start_indices_batching_dims=lanes_of_indices,
        )
        positions = _xla_positions(x, others, axes)
        return lax.gather(x, positions, numbers, _slice_sizes(x, count, axis), mode=lax.GatherScatterMode.CLIP)

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0,)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        (x, *indices), (out,) = types, results
        return [_read(x.shape, out.shape, known[1:], params["axis"]), *[()] * len(indices)]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, axis: int) -> tuple[Any, Any]:
        (x, *indices), t = primals, tangents[0]
        return gather(x, *indices, axis=axis), None if t is None else gather(t, *indices, axis=axis)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int) -> list[Tangent]:
        x, *indices = operands
        return [scatter_add(full_like(x, 0), ct, *indices, axis=axis), *[None] * len(indices)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int) -> Any:
        x, *indices = operands
        if not any(batched[1:]):
            return gather(x, *indices, axis=axis + 1), True
        with_place = _with_place_in_batch(size, indices, batched[1:])
        if batched[0]:
            out = gather(_batch_axis_to(x, axis), *with_place, axis=axis)
        else:
            out = gather(x, *with_place[1:], axis=axis)
        return _batch_axis_from(out, axis), True

    def simplify(self, operands: Sequence[Tracer], *, axis: int) -> Tracer | None:
        x, *indices = operands
        value = splat(x)
        if value is None:
            return _written_at(x, indices, axis)
        return full(_indexed_shape(x, indices[0].shape, len(indices), axis), value, x.dtype)

    def before_running(self, program: Program) -> Program:
        return with_stand_ins(with_lanes(program, self, first_index=1), self)


class Scatter(SingleResult):
    """What both kinds of scatter share: `x` with `updates` put at `indices`, which are those of `gather`."""

    memory = Memory.WRITES

    def type_rule(self, x: ArrayType, updates: ArrayType, *indices: ArrayType, axis: int, **params: Any) -> ArrayType:
        shape = _check_indices(self.name, x, indices, axis)
        expected = x.with_shape(_indexed_shape(x, shape, len(indices), axis))
        if updates is not expected:
            raise TypeError(
                f"{self.name} into {x} at {len(indices)} indices {indices[0]} needs {expected}, not {updates}"
            )
        return x

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (0, 1)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        x, updates, *indices = primals
        tx, tu = (full_like(p, 0) if t is None else t for p, t in zip((x, updates), tangents, strict=False))
        return self(*primals, **params), self(tx, tu, *indices, **params)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int, **params: Any) -> Any:
        x, updates = (with_batch_axis(size, v, b) for v, b in zip(operands, batched[:2], strict=False))
        indices = operands[2:]
        if not any(batched[2:]):
            return self(x, updates, *indices, axis=axis + 1, **params), True
        with_place = _with_place_in_batch(size, indices, batched[2:])
        x, updates = _batch_axis_to(x, axis), _batch_axis_to(updates, axis)
        return _batch_axis_from(self(x, updates, *with_place, axis=axis, **params), axis), True

    def before_running(self, program: Program) -> Program:
        return with_lanes(program, self, first_index=2)

    @staticmethod
    def _xla_numbers(x: Any, indices: Sequence[Any], axis: int, lanes: Lanes) -> tuple[Any, Any]:
        """The indices as XLA's scatter takes them, and what they are for."""
        from jax import lax

        count, shape = len(indices), indices[0].shape
        others, axes, lanes_of_x, lanes_of_indices = apart(indices, axis, lanes)
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=(*range(axis), *range(axis + len(shape), x.ndim - count + len(shape))),
            inserted_window_dims=axes,
            scatter_dims_to_operand_dims=axes,
            operand_batching_dims=lanes_of_x,
            scatter_indices_batching_dims=lanes_of_indices,
        )
        return _xla_positions(x, others, axes), numbers


class ScatterAdd(Scatter):
    """`x` with `updates` added at `indices`; where indices occur several times, all of their updates are added."""

    name = "scatter_add"

    def __call__(self, x: Any, updates: Any, *indices: Any, axis: int = 0) -> Any:
        return super().__call__(x, updates, *indices, axis=axis)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost(types[1].size, types[1].size + results[0].size / 2)

    def numpy(self, x: Any, updates: Any, *indices: Any, axis: int, lanes: Lanes = ()) -> Any:
        out = np.array(x, order="C")
        self.overwrite(out, updates, *indices, axis=axis)
        return out

    def overwrite(self, out: Any, updates: Any, *indices: Any, axis: int, lanes: Lanes = ()) -> None:
        if indices[0].ndim == 0:
            out[_numpy_index(indices, axis)] += updates
        elif out.ndim == 1 or not out.flags.c_contiguous:
            np.add.at(out, _numpy_index(indices, axis), updates)
        else:
            # np.add.at has a fast path, but for flat arrays only.
            sizes = out.shape[axis : axis + len(indices)]
            before, rows, after = (math.prod(s) for s in (out.shape[:axis], sizes, out.shape[axis + len(indices) :]))
            chosen = np.arange(rows).reshape(sizes)[tuple(indices)].reshape((1, -1, 1))
            updates, flat = updates.reshape(before, chosen.size, after), out.reshape(-1)
            inner = np.arange(before).reshape((-1, 1, 1)) * (rows * after) + np.arange(after)
            block = max(1, _PLACES // max(1, inner.size))
            for first in range(0, chosen.size, block):
                part = slice(first, first + block)
                np.add.at(flat, (chosen[:, part] * after + inner).reshape(-1), updates[:, part].reshape(-1))

    def xla(self, x: Any, updates: Any, *indices: Any, axis: int, lanes: Lanes = ()) -> Any:
        from jax import lax

        if 0 in x.shape or 0 in updates.shape:
            return x
        if indices[0].shape == ():
            starts, sizes = _xla_starts(x, indices, axis), _slice_sizes(x, len(indices), axis)
            row = lax.dynamic_slice(x, starts, sizes)
            return lax.dynamic_update_slice(x, row + lax.reshape(updates, sizes), starts)
        positions, numbers = self._xla_numbers(x, indices, axis, lanes)
        return lax.scatter_add(x, positions, updates, numbers, mode=lax.GatherScatterMode.CLIP)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        x, updates, *indices = types
        written = turned(_read(x.shape, updates.shape, known[2:], params["axis"]))
        return [each_on_itself(x.shape), written, *[()] * len(indices)]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int) -> list[Tangent]:
        x, updates, *indices = operands
        ct_x = ct if isinstance(x, ArrayType) else None
        ct_updates = gather(ct, *indices, axis=axis) if isinstance(updates, ArrayType) else None
        return [ct_x, ct_updates, *[None] * len(indices)]

    def simplify(self, operands: Sequence[Tracer], *, axis: int) -> Tracer | None:
        x, updates, *_ = operands
        return x if updates.size == 0 or adds_nothing(updates, x) else None


class ScatterSet(Scatter, Moving):
    """`x` with the elements at `indices` replaced by `updates`.

    Where indices occur several times, the last update wins with NumPy; with XLA it is one of them, in practice the
    last on a CPU.  Derivatives follow the one that wins.

    Params:
        axis: first axis that the indices are for.
        unique: promises that no index occurs twice, which saves work in reverse mode and on a GPU.
    """

    name = "scatter_set"

    def __call__(self, x: Any, updates: Any, *indices: Any, axis: int = 0, unique: bool = False) -> Any:
        return super().__call__(x, updates, *indices, axis=axis, unique=unique)

    def numpy(self, x: Any, updates: Any, *indices: Any, axis: int, unique: bool, lanes: Lanes = ()) -> Any:
        out = np.array(x)
        self.overwrite(out, updates, *indices, axis=axis, unique=unique)
        return out

    def overwrite(self, out: Any, updates: Any, *indices: Any, axis: int, unique: bool, lanes: Lanes = ()) -> None:
        out[_numpy_index(indices, axis)] = updates

    def python_overwriting(self, operands: Sequence[str], params: Params) -> str:
        x, updates, *indices = operands
        return f"{x}[{', '.join([':'] * params['axis'] + indices)}] = {updates}"

    def xla(self, x: Any, updates: Any, *indices: Any, axis: int, unique: bool, lanes: Lanes = ()) -> Any:
        from jax import lax

        if 0 in x.shape or 0 in updates.shape:
            return x
        if indices[0].shape == ():
            row = lax.reshape(updates, _slice_sizes(x, len(indices), axis))
            return lax.dynamic_update_slice(x, row, _xla_starts(x, indices, axis))
        positions, numbers = self._xla_numbers(x, indices, axis, lanes)
        mode = lax.GatherScatterMode.CLIP
        return lax.scatter(x, positions, updates, numbers, unique_indices=unique, mode=mode)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        if all(i is not None for i in known[2:]):
            return moved_pieces(self, types, known, params)
        x, updates, *indices = types
        written = turned(_read(x.shape, updates.shape, known[2:], params["axis"]))
        return [each_on_itself(x.shape, None), written, *[()] * len(indices)]

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int, unique: bool) -> list[Tangent]:
        x, updates, *indices = operands
        ct_x = ct_updates = None
        # What is read before the write lets the write be done in place.
        if isinstance(updates, ArrayType):
            ct_updates = gather(ct, *indices, axis=axis)
            shape = indices[0].shape
            if not unique and math.prod(shape) > 1:
                sizes = ct.shape[axis : axis + len(indices)]
                won = broadcast(
                    _winners(indices, sizes), shape=updates.shape, dims=tuple(range(axis, axis + len(shape)))
                )
                ct_updates = select(won, ct_updates, full_like(updates, 0))
        if isinstance(x, ArrayType):
            ct_x = scatter_set(ct, full_like(updates, 0), *indices, axis=axis, unique=unique)
        return [ct_x, ct_updates, *[None] * len(indices)]

    def simplify(self, operands: Sequence[Tracer], *, axis: int, unique: bool) -> Tracer | None:
        x, updates, *_ = operands
        return x if updates.size == 0 or same_number(x, updates) else None


def _winners(indices: Sequence[Tracer], sizes: Shape) -> Tracer:
    """Which updates are still there after all of them have been set, in the shape of the indices."""
    shape = indices[0].shape
    count = math.prod(shape)
    if count * count > math.prod(sizes):
        numbers = reshape(iota(shape=(count,), axis=0, dtype=np.dtype(np.int64)), shape=shape)
        return eq(gather(scatter_set(full(sizes, -1, np.int64), numbers, *indices), *indices), numbers)
    # Few of them are compared with each other, which takes no time that grows with the array.
    places = full_like(indices[0], 0)
    for index, size in zip(indices, sizes, strict=True):
        from_start = select(lt(index, full_like(index, 0)), add(index, full_like(index, size)), index)
        nearest = minimum(maximum(from_start, full_like(index, 0)), full_like(index, size - 1))
        places = add(mul(places, full_like(index, size)), nearest)
    square = (count, count)
    place, other = (broadcast(reshape(places, shape=(count,)), shape=square, dims=(d,)) for d in (0, 1))
    number, another = (iota(shape=square, axis=d, dtype=np.dtype(np.int64)) for d in (0, 1))
    return reshape(reduce_and(bitwise_or(ne(place, other), ge(number, another)), axes=(1,)), shape=shape)


gather = Gather()
scatter_add = ScatterAdd()
scatter_set = ScatterSet()


def take_along(x: Tracer, indices: Tracer, axis: int) -> Tracer:
    """The elements of `x` at `indices` along `axis`; both have the same sizes along all other axes."""
    others = [iota(shape=indices.shape, axis=a, dtype=indices.dtype) for a in range(x.ndim) if a != axis]
    return gather(x, *others[:axis], indices, *others[axis:])


def read_at(x: Tracer, *indices: Tracer, axis: int = 0) -> Any:
    """The elements of `x` at indices, where they can be the very elements that have been assigned to them."""
    found = _written_at(x, indices, axis)
    return gather(x, *indices, axis=axis) if found is None else found


def _written_at(x: Tracer, indices: Sequence[Any], axis: int) -> Tracer | None:
    """What the elements at scalar indices have just been set to, or None."""
    made = definition(x)
    if made is None or made.primitive is not scatter_set or made.params["axis"] != axis:
        return None
    places = tuple(i.atom for i in indices if type(i) is Tracer and i.shape == ())
    if len(places) != len(indices) or places != made.operands[2:]:
        return None
    return Tracer(x.builder, made.operands[1])
