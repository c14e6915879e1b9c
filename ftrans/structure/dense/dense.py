"""Dense Jacobians and Hessians: a linear program, or its transpose, applied to the unit vectors of its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType, is_complex
from ...ops.literals import full
from ...ops.parts import slice_
from ...ops.shapes import reshape
from ...ops.shapes import transpose as transpose_axes
from ...run.costs import program_cost
from ...transforms.differentiate import gradient, linearize, pushforward
from ...transforms.simplify import simplify
from ...transforms.transpose import transpose
from .chunks import apply_to_basis
from .singular import has_singular_slopes
from .symmetry import is_symmetric
from .triangle import hessian_by_triangle

# Un-jitted, an equation takes as long as so many additions, however small its arrays are.
_PER_EQUATION = 1000
# Fewer tangents than this are pushed at once, and so are those of Hessians that need less memory than this.
_FEW = 512
_MANY_BYTES = 24 << 20
# What a chunk may use of a processor's cache, and how many tangents it has at least.
_CACHED_BYTES = 2 << 20
_SMALLEST_CHUNK = 16
Flags = tuple[bool, ...]
Mode = Literal["forward", "reverse"]


def jacobian(program: Program, active: Flags, wanted: int, mode: Mode, chunk: int | None) -> Program:
    """The program for all outputs, then for the Jacobian blocks of the first `wanted` of them.

    The block of output `j` and active input `i` has the shape of `j` followed by that of `i`; blocks are ordered by
    output, then input.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs get Jacobian blocks; further ones are only returned.
        mode: "forward" pushes unit tangents through, "reverse" pulls unit cotangents back.
        chunk: how many unit vectors to process at once; all by default.
    """
    key = ("jacobian", active, wanted, mode, chunk)
    make = _forward if mode == "forward" else _reverse
    return program.derive(key, lambda: make(program, active, wanted, chunk))


def hessian(program: Program, active: Flags, wanted: int, chunk: int | None) -> Program:
    """The program for the outputs beyond the first `wanted`, then for the Hessian blocks of the first `wanted`.

    The block of output `j` and active inputs `i` and `k` has the shape of `j` followed by those of `i` and `k`; blocks
    are ordered by output, then by the two inputs.

    Args:
        program: the program.
        active: as for `jacobian`.
        wanted: as for `jacobian`.
        chunk: how many unit vectors to process at once; by default all, or as many as stay in a processor's cache.
    """
    return program.derive(("hessian", active, wanted, chunk), lambda: _hessian(program, active, wanted, chunk))


def _hessian(program: Program, active: Flags, wanted: int, chunk: int | None) -> Program:
    count = len(program.outputs)
    if wanted == 1 and program.out_types[0].shape == ():
        first = gradient(program, active, with_value=True)
        found = None if chunk else _triangle(program, first, active)
        if found is not None:
            return found
    else:
        first = jacobian(program, active, wanted, "reverse", chunk)
    slopes = first.outputs[count:]
    first = Program(f"grad({program.name})", first.inputs, first.eqns, [*slopes, *first.outputs[wanted:count]])
    second = jacobian(first, active, len(slopes), "forward", chunk or _chunk_in_cache(first, active))
    return Program(f"hessian({program.name})", second.inputs, second.eqns, second.outputs[len(slopes) :])


def _triangle(program: Program, first: Program, active: Flags) -> Program | None:
    """The Hessian by one of its triangles; None where it is small, or may differ from its mirror image."""
    types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    dtypes = {t.dtype for t in [*types, program.out_types[0]]}
    if len(dtypes) > 1 or any(map(is_complex, dtypes)) or not all(t.size for t in types):
        return None
    simplified = simplify(program)
    if not is_symmetric(simplified):
        return None
    chunk = _chunk_in_cache(first, active)
    if chunk is None or has_singular_slopes(pushforward(first, active).linear):
        return None
    return hessian_by_triangle(simplified, active, chunk)


def _chunk_in_cache(program: Program, active: Flags) -> int | None:
    """How many tangents to push at once so that they stay in a processor's cache; None for all.

    All at once is best where they are few, and where large known factors would have to be read for each chunk.
    """
    count = sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)
    if count < _FEW:
        return None
    parts = linearize(program, active)
    known = sum(t.nbytes for t in parts.linear.in_types[: parts.residual_count])
    lane = max((v.type.nbytes for eqn in parts.linear.eqns for v in eqn.outputs), default=0)
    if known > _CACHED_BYTES or count * lane < _MANY_BYTES:
        return None
    return max(_CACHED_BYTES // (2 * lane), _SMALLEST_CHUNK)


def _forward(program: Program, active: Flags, wanted: int, chunk: int | None) -> Program:
    each = [tuple(i == j for i in range(len(active))) for j, a in enumerate(active) if a]
    by_input = _pushed(program, each, wanted, chunk)
    # A zero tangent is multiplied where a missing one is not, and 0 * inf is not 0.
    if len(each) == 1 or has_singular_slopes(pushforward(program, active).linear):
        return by_input
    return min(by_input, _pushed(program, [active], wanted, chunk), key=_effort)


def _pushed(program: Program, passes: Sequence[Flags], wanted: int, chunk: int | None) -> Program:
    """The Jacobian by passes that each push forward the unit tangents of some inputs."""
    count = len(program.outputs)
    columns: list[list[Tracer]] = [[] for _ in range(wanted)]
    builder = Builder(program.in_types)
    with building(builder):
        inputs = builder.inputs()
        for active in passes:
            types = [t for t, a in zip(program.in_types, active, strict=True) if a]
            parts = pushforward(program, active)
            results = inline(parts.values, inputs)
            pushed = iter(apply_to_basis(parts.linear, results[count:], chunk))
            tangents = [next(pushed) if a else None for a in parts.out_active]
            for blocks, out, tangent in zip(columns, program.out_types, tangents, strict=False):
                blocks += _blocks(tangent, out, types)
        blocks = [block for row in columns for block in row]
        return builder.finish([*results[:count], *blocks], f"jacobian({program.name})")


def _blocks(pushed: Tracer | None, out: ArrayType, types: Sequence[ArrayType]) -> Iterator[Tracer]:
    """The blocks of one output for inputs of these types, whose unit tangents were pushed forward."""
    start = 0
    for type in types:
        shape = (*out.shape, *type.shape)
        if pushed is None:
            yield full(shape, 0, out.dtype)
            continue
        columns = pushed
        if len(types) > 1:
            limit = (start + type.size, *out.shape)
            columns = slice_(pushed, start=(start, *(0,) * out.ndim), limit=limit, strides=(1,) * len(limit))
        if type.size != 1:
            columns = transpose_axes(columns, axes=(*range(1, columns.ndim), 0))
        yield reshape(columns, shape=shape)
        start += type.size


def _effort(program: Program) -> float:
    """An estimate of what a program takes when it runs, relative to an addition: operations, and Python around them."""
    simplified = simplify(program)
    return program_cost(simplified).time + _PER_EQUATION * len(simplified.eqns)


def _reverse(program: Program, active: Flags, wanted: int, chunk: int | None) -> Program:
    count = len(program.outputs)
    types = [t for t, a in zip(program.in_types, active, strict=True) if a]
    parts = linearize(program, active)
    linear = (False,) * parts.residual_count + (True,) * len(types)
    builder = Builder(program.in_types)
    with building(builder):
        results = inline(parts.values, builder.inputs())
        blocks: list[Tracer] = []
        for j, out in enumerate(program.out_types[:wanted]):
            rows: list[Tracer | None] = [None] * len(types)
            if parts.out_active[j]:
                position = parts.out_active[:j].count(True)
                only = tuple(i == position for i in range(parts.out_active.count(True)))
                turned = transpose(parts.linear, linear, only)
                pulled = iter(apply_to_basis(turned.program, results[count:], chunk))
                rows = [next(pulled) if a else None for a in turned.in_active]
            for row, wrt in zip(rows, types, strict=True):
                shape = (*out.shape, *wrt.shape)
                blocks.append(full(shape, 0, wrt.dtype) if row is None else reshape(row, shape=shape))
        return builder.finish([*results[:count], *blocks], f"jacobian({program.name})")
