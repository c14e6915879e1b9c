"""batch: a program -> the program that applies it to every element of a leading axis.

The batch axis is always axis 0.  Values that do not depend on a batched input are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base.source import attributed_to
from ..core.interpret import interpret
from ..core.program import Eqn, Program
from ..core.trace import Builder, Tracer, building
from ..ops.broadcast import with_batch_axis

Flags = tuple[bool, ...]
Lane = tuple[Tracer, bool]


class Batch(NamedTuple):
    """The batched program, and which outputs have the batch axis."""

    program: Program
    out_batched: Flags


def batch(program: Program, size: int, batched: Flags, wanted: Flags | None = None) -> Batch:
    """Map `program` over a leading axis of `size`.

    Args:
        program: the program.
        size: size of the axis.
        batched: which inputs have the axis.
        wanted: which outputs get the axis even where they do not depend on a batched input; none by default.
    """
    wanted = wanted if wanted is not None else (False,) * len(program.outputs)
    return program.derive(("batch", size, batched, wanted), lambda: _batch(program, size, batched, wanted))


def _batch(program: Program, size: int, batched: Flags, wanted: Flags) -> Batch:
    types = [
        t.with_shape((size, *t.shape)) if is_batched else t
        for t, is_batched in zip(program.in_types, batched, strict=True)
    ]
    builder = Builder(types)

    def apply(eqn: Eqn, operands: list[Lane]) -> Sequence[Lane]:
        values = [x for x, _ in operands]
        flags = [b for _, b in operands]
        if not any(flags):
            return [(y, False) for y in builder.repeat(eqn, values)]
        with attributed_to(eqn.line):
            results, out_flags = eqn.primitive.batch(size, values, flags, **eqn.params)
        return list(zip(results, out_flags, strict=True)) if eqn.primitive.multiple_results else [(results, out_flags)]

    with building(builder):
        lanes = list(zip(builder.inputs(), batched, strict=True))
        outs = interpret(program, lanes, apply, lambda const: (Tracer(builder, const), False))
        outs = [(with_batch_axis(size, y, b), True) if w else (y, b) for (y, b), w in zip(outs, wanted, strict=True)]
        program_out = builder.finish([y for y, _ in outs], f"batch({program.name})")
        return Batch(program_out, tuple(b for _, b in outs))
