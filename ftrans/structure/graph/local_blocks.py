"""The factors of a linear equation that only the equation itself knows: found by applying it to unit vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...base.index_map import IndexMap, Piece
from ...core.program import Eqn
from ...core.trace import Builder, Tracer
from ...ops.broadcast import with_batch_axis
from ...ops.literals import full_like
from ...ops.shapes import reshape
from ..dense.basis import unit_vectors
from ..entries import NotStructured
from .arithmetic import Masked
from .emission import take

# An equation whose block has more elements than this is left to other engines.
_MOST_ELEMENTS = 4_000_000


def block_values(
    builder: Builder, eqn: Eqn, result: int, operand: int, known: Sequence[Tracer | None], pieces: Sequence[Piece]
) -> list[Masked]:
    """The factors of the pieces of one result and one operand of an equation that is linear in its unknown operands.

    Args:
        builder: records the equations.
        eqn: the equation.
        result: position of the result.
        operand: position of the operand.
        known: values of the other operands; None for those in which it is linear.
        pieces: which elements depend on which.

    Raises:
        NotStructured: the block is too large.
    """
    type, out = eqn.operands[operand].type, eqn.outputs[result].type
    if type.size * out.size > _MOST_ELEMENTS:
        raise NotStructured(f"the block of {eqn.primitive.name} has {type.size} x {out.size} elements")
    operands = [
        unit_vectors([type], type.size)[0] if i == operand else full_like(a.type, 0) if x is None else x
        for i, (a, x) in enumerate(zip(eqn.operands, known, strict=True))
    ]
    flags = [i == operand for i in range(len(operands))]
    results, batched = eqn.primitive.batch(type.size, operands, flags, **eqn.params)
    if not eqn.primitive.multiple_results:
        results, batched = [results], [batched]
    block = with_batch_axis(type.size, results[result], batched[result])
    flat = reshape(block, shape=(math.prod(block.shape),))
    found = []
    for piece in pieces:
        places = piece.cols.table() * out.size + piece.rows.table()
        found.append(Masked(take(flat, IndexMap.of(places, flat.size))))
    return found
