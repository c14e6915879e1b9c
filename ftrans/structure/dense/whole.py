"""Entries of a matrix of derivatives by way of the dense matrix: what is left where no structure is found."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.memory_size import require_fits
from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...core.types import is_complex
from ...ops.elementwise import convert
from ...ops.indexing import gather
from ...ops.parts import concatenate
from ...ops.shapes import reshape
from ...transforms import differentiate as d
from ..entries import Entries
from ..graph.emission import constant
from . import dense

Flags = tuple[bool, ...]


def dense_jacobian_entries(
    program: Program, active: Flags, wanted: int, pattern: Any = None, chunk: int | None = None
) -> Entries:
    """The entries of a Jacobian, taken out of the dense one.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs are differentiated.
        pattern: which entries are wanted, a SciPy array; all by default.
        chunk: how many unit vectors to process at once; all by default.
    """
    columns = sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)
    rows = sum(t.size for t in program.out_types[:wanted])
    _require_fits(rows, columns, program, active)
    mode = dense_mode(program, active, wanted)
    derived = dense.jacobian(program, active, wanted, mode, chunk)
    how = f"engine: the dense matrix in {mode} mode, {columns if mode == 'forward' else rows} products"
    return _chosen(program, derived, active, wanted, pattern, how)


def dense_hessian_entries(
    program: Program, active: Flags, pattern: Any = None, chunk: int | None = None, lower: bool = False
) -> Entries:
    """The entries of the Hessian of the first output, a scalar, taken out of the dense one: forward over reverse mode.

    Args:
        program: the program.
        active: as for `dense_jacobian_entries`.
        pattern: as for `dense_jacobian_entries`.
        chunk: as for `dense_jacobian_entries`.
        lower: whether only entries on and below the diagonal are wanted.
    """
    size = sum(t.size for t, a in zip(program.in_types, active, strict=True) if a)
    _require_fits(size, size, program, active)
    gradient = gradient_first(program, active)
    wanted = sum(active)
    derived = dense.jacobian(gradient, active, wanted, "forward", chunk)
    # The gradient comes first there, and is no output of the program.
    outputs = derived.outputs[wanted:]
    derived = Program(derived.name, derived.inputs, derived.eqns, outputs)
    if lower:
        pattern = _lower(pattern, size)
    how = "engine: the dense matrix, forward over reverse mode"
    return _chosen(program, derived, active, wanted, pattern, how, gradient)


def gradient_first(program: Program, active: Flags) -> Program:
    """The gradient of the first output by each active input, then all outputs."""

    def make() -> Program:
        derived = d.gradient(program, active, with_value=True)
        count = len(program.outputs)
        outputs = (*derived.outputs[count:], *derived.outputs[:count])
        return Program(derived.name, derived.inputs, derived.eqns, outputs)

    return program.derive(("gradient first", active), make)


def _require_fits(rows: int, columns: int, program: Program, active: Flags) -> None:
    largest = max((t.dtype.itemsize for t, a in zip(program.in_types, active, strict=True) if a), default=1)
    require_fits(
        rows * columns * largest,
        f"the dense matrix ({rows} x {columns}) from which the entries of a derivative of {program.name} are taken",
        "no sparse pattern was found, or the method asks for it; give a pattern= that you know, or compute products "
        "by .operator(...), hvp, jvp or vjp",
    )


def dense_mode(program: Program, active: Flags, wanted: int) -> dense.Mode:
    """The mode with fewer products, unless complex numbers are on one side: half of the derivative is lost there."""
    ins = [t for t, a in zip(program.in_types, active, strict=True) if a]
    outs = program.out_types[:wanted]
    inputs, outputs = (any(is_complex(t.dtype) for t in types) for types in (ins, outs))
    forward = outputs if inputs != outputs else sum(t.size for t in ins) <= sum(t.size for t in outs)
    return "forward" if forward else "reverse"


def _lower(pattern: Any, size: int) -> Any:
    from scipy import sparse

    return sparse.tril(np.ones((size, size), bool) if pattern is None else pattern, format="csr")


def _chosen(
    program: Program,
    derived: Program,
    active: Flags,
    wanted: int,
    pattern: Any,
    how: str,
    differentiated: Program | None = None,
) -> Entries:
    """The entries of a pattern out of dense blocks, which follow the outputs of `program` in `derived`."""
    count = len(program.outputs)
    heights = [t.size for t in (differentiated or program).out_types[:wanted]]
    widths = [t.size for t, a in zip(program.in_types, active, strict=True) if a]
    shape = sum(heights), sum(widths)
    builder = Builder(derived.in_types)
    with building(builder):
        results = inline(derived, builder.inputs())
        blocks = iter(results[count:])
        dtype = np.result_type(*(x.dtype for x in results[count:]))
        rows = [
            _side_by_side([reshape(convert(next(blocks), dtype=dtype), shape=(m, n)) for n in widths]) for m in heights
        ]
        matrix = rows[0] if len(rows) == 1 else concatenate(*rows, axis=0)
        vector = reshape(matrix, shape=(shape[0] * shape[1],))
        if pattern is None or pattern.nnz == shape[0] * shape[1]:
            found = np.repeat(np.arange(shape[0]), shape[1]), np.tile(np.arange(shape[1]), shape[0])
        else:
            found = tuple(x.astype(np.int64) for x in pattern.tocoo().coords)
            places = found[0] * shape[1] + found[1]
            vector = gather(vector, constant(places), axis=0)
        made = builder.finish([*results[:count], vector], f"entries({program.name})")
    return Entries(made, found[0], found[1], shape, (how,))


def _side_by_side(blocks: list[Tracer]) -> Tracer:
    return blocks[0] if len(blocks) == 1 else concatenate(*blocks, axis=1)
