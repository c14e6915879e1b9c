"""Loops for which reverse mode stores carries only: at each step, or once per segment of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.program import Eqn, Program, Var
from ...core.trace import Builder, building
from ...ops.parts import concatenate, slice_
from ...ops.shapes import reshape
from ..loops.scan import scan
from ..subprograms import cut
from .checkpoint import checkpoint
from .recompute import Policy


def checkpointed(program: Program, policy: Policy) -> Program:
    """A program that is one checkpoint of `program`."""

    def make() -> Program:
        inputs, outputs = [Var(t) for t in program.in_types], [Var(t) for t in program.out_types]
        line = program.eqns[-1].line if program.eqns else None
        params = {"program": program, "policy": policy, "again": False}
        return Program(program.name, inputs, [Eqn(checkpoint, tuple(inputs), params, tuple(outputs), line)], outputs)

    return program.derive(("checkpointed", policy), make)


def scan_in_segments(
    program: Program,
    fixed: Sequence[Any],
    carry: Sequence[Any],
    xs: Sequence[Any],
    length: int,
    reverse: bool,
    unroll: int,
    size: int,
) -> list[Any]:
    """Record a scan as a scan over checkpoints of scans of `size` steps each, and one of the steps that remain."""
    count, rest = divmod(length, size)
    carries = len(carry)
    whole = count * size
    # The incomplete segment is the last one to run.
    first = rest if reverse else 0
    segments = [_split_axis(_part(x, first, first + whole), count, size) for x in xs]
    segment = _segment(program, len(fixed), carries, size, reverse, unroll)
    carry, ys = cut(scan.apply(segment, fixed, carry, segments, count, reverse, 1), carries)
    ys = [reshape(y, shape=(whole, *y.shape[2:])) for y in ys]
    if not rest:
        return [*carry, *ys]
    start = 0 if reverse else whole
    remaining = [_part(x, start, start + rest) for x in xs]
    segment = _segment(program, len(fixed), carries, rest, reverse, unroll)
    (eqn,) = segment.eqns
    carry, more = cut(checkpoint.bind_all([*fixed, *carry, *remaining], eqn.params), carries)
    pairs = zip(more, ys, strict=True) if reverse else zip(ys, more, strict=True)
    return [*carry, *(concatenate(a, b, axis=0) for a, b in pairs)]


def _segment(program: Program, consts: int, carries: int, size: int, reverse: bool, unroll: int) -> Program:
    """The program of constants, carries and the elements of one segment; one checkpoint."""

    def make() -> Program:
        fixed, carry, xs = cut(program.in_types, consts, carries)
        builder = Builder([*fixed, *carry, *(t.with_shape((size, *t.shape)) for t in xs)])
        with building(builder):
            fixed_in, carry_in, xs_in = cut(builder.inputs(), consts, carries)
            outs = scan.apply(program, fixed_in, carry_in, xs_in, size, reverse, unroll)
            return checkpointed(builder.finish(outs, program.name), "nothing")

    return program.derive(("segment", consts, carries, size, reverse, unroll), make)


def _part(x: Any, start: int, stop: int) -> Any:
    """`x[start:stop]`."""
    if stop - start == x.shape[0]:
        return x
    more = x.shape[1:]
    return slice_(x, start=(start, *(0,) * len(more)), limit=(stop, *more), strides=(1,) * x.ndim)


def _split_axis(x: Any, count: int, size: int) -> Any:
    return reshape(x, shape=(count, size, *x.shape[1:]))
