"""A linear program applied to many vectors: to all at once, or to chunks of them in a loop, whose memory is bounded.

A chunk has vectors from everywhere, one from each of as many stretches: where the results are divided over devices,
each device then has a part of every chunk to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...control.loops.scan import scan
from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...ops.broadcast import with_batch_axis
from ...ops.literals import full, iota
from ...ops.parts import pad, slice_
from ...ops.shapes import reshape, transpose
from ...transforms.batch import batch
from ...transforms.simplify import condense
from .basis import apply_to_units, unit_vectors

_INDEX = np.dtype(np.int64)


def apply_in_chunks(
    linear: Program, residuals: Sequence[Tracer], seeds: Sequence[Tracer], chunk: int | None
) -> list[Tracer]:
    """Apply a linear program to given vectors.

    Args:
        linear: takes residuals, then vectors (tangents or cotangents), in which it is linear.
        residuals: its first arguments.
        seeds: the values of each vector, (count, *shape), with a `count` that is not zero.
        chunk: how many to process at once, in a loop; all of them, without a loop, by default.

    Returns:
        The results of `linear`, each with a leading axis: (count, *shape).
    """
    count = seeds[0].shape[0]
    size, steps = _division(count, chunk)
    if steps == 1:
        return _applied(linear, residuals, seeds, count)
    return _loop(linear, residuals, [_blocks(x, size, steps) for x in seeds], lambda block: block, count, size)


def apply_to_basis(linear: Program, residuals: Sequence[Tracer], chunk: int | None) -> list[Tracer]:
    """Apply a linear program to all unit vectors: those of its first vector, with zeros for the others, and so on.

    Args:
        linear: as for `apply_in_chunks`.
        residuals: as for `apply_in_chunks`.
        chunk: as for `apply_in_chunks`.

    Returns:
        The results of `linear`, each with a leading axis, as long as the vectors have elements together.
    """
    types = linear.in_types[len(residuals) :]
    count = sum(t.size for t in types)
    if not count:
        return [full((0, *t.shape), 0, t.dtype) for t in linear.out_types]
    if count == 1:
        outs = inline(linear, [*residuals, *(full(t.shape, 1, t.dtype) for t in types)])
        return [reshape(y, shape=(1, *y.shape)) for y in outs]
    size, steps = _division(count, chunk)
    if steps == 1:
        return apply_to_units(linear, residuals)
    starts = iota(shape=(steps,), axis=0, dtype=_INDEX)
    return _loop(linear, residuals, [starts], lambda block: unit_vectors(types, size, block[0], steps), count, size)


def _division(count: int, chunk: int | None) -> tuple[int, int]:
    """The size of chunks of about the same size, none above `chunk`, and their number."""
    if chunk is None or chunk >= count:
        return count, 1
    # Without a rest, nothing is computed in vain; a power of two can be shared by devices.
    even = [size for size in range(chunk, chunk // 2, -1) if count % size == 0]
    if even:
        size = max(even, key=lambda size: size & -size)
        return size, count // size
    steps = -(-count // chunk)
    return -(-count // steps), steps


def _applied(linear: Program, residuals: Sequence[Tracer], seeds: Sequence[Tracer], count: int) -> list[Tracer]:
    batched = batch(linear, count, (False,) * len(residuals) + (True,) * len(seeds))
    outs = inline(batched.program, [*residuals, *seeds])
    return [with_batch_axis(count, y, b) for y, b in zip(outs, batched.out_batched, strict=True)]


def _loop(
    linear: Program,
    residuals: Sequence[Tracer],
    blocks: Sequence[Tracer],
    seeds_of: Callable[[list[Tracer]], list[Tracer]],
    count: int,
    size: int,
) -> list[Tracer]:
    """Apply `linear` to `count` vectors, in a loop of `size` at a time over what they are made of."""
    steps = blocks[0].shape[0]
    types = [x.type.with_shape(x.shape[1:]) for x in blocks]
    builder = Builder([*(x.type for x in residuals), *types])
    with building(builder):
        inputs = builder.inputs()
        known, block = inputs[: len(residuals)], inputs[len(residuals) :]
        body = builder.finish(_applied(linear, known, seeds_of(block), size), f"chunk({linear.name})")
    outs = scan.apply(condense(body), residuals, [], blocks, steps, False, 1)
    return [_joined(y, count) for y in outs]


def _blocks(x: Tracer, size: int, steps: int) -> Tracer:
    """The rows of `x` as (steps, size, ...), with zeros at the end where there are too few."""
    missing = steps * size - x.shape[0]
    if missing:
        none = (0,) * x.ndim
        x = pad(x, full((), 0, x.dtype), before=none, after=(missing, *none[1:]), interior=none)
    return _turned(reshape(x, shape=(size, steps, *x.shape[1:])))


def _joined(y: Tracer, count: int) -> Tracer:
    """The first `count` rows of (steps, size, ...)."""
    rows = reshape(_turned(y), shape=(y.shape[0] * y.shape[1], *y.shape[2:]))
    if rows.shape[0] == count:
        return rows
    none = (0,) * rows.ndim
    return slice_(rows, start=none, limit=(count, *rows.shape[1:]), strides=tuple(1 for _ in none))


def _turned(x: Tracer) -> Tracer:
    return transpose(x, axes=(1, 0, *range(2, x.ndim)))
