"""Large dense Jacobians and Hessians by way of their entries, where most of them are zero whatever the values are."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.interpret import inline
from ...core.primitive import MissingRule
from ...core.program import Const, Program
from ...core.trace import Builder, Tracer, building
from ...core.types import ArrayType, is_complex
from ...ops.indexing import scatter_add
from ...ops.literals import full
from ...ops.shapes import reshape
from ...run.costs import program_cost
from ...transforms.differentiate import gradient, linearize
from ..choice import hessian_entries_by, jacobian_entries_by
from ..entries import Entries, NotStructured
from ..patterns.detect import hessian_pattern, jacobian_pattern
from .blocks import blocks_of
from .singular import has_singular_slopes, makes_choices
from .symmetry import is_symmetric

Flags = tuple[bool, ...]

# The part of all elements that may be entries, and the part of the time of products that these may take.
_MOST_FILLED = 0.25
_MOST_TIME = 0.5


def jacobian_by_entries(program: Program, active: Flags, wanted: int) -> Program | None:
    """The program of `dense.jacobian`, by elimination; None where it is not sparse, or cheaper by products.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs are differentiated.
    """
    heights, widths = program.out_types[:wanted], _active_types(program, active)
    rows, columns = _size(heights), _size(widths)
    if not _have_one_real_dtype([*heights, *widths]):
        return None

    def make() -> Program | None:
        at_most = _MOST_FILLED * rows * columns
        try:
            if jacobian_pattern(program, active, wanted, {}, at_most).nnz > at_most:
                return None
            entries = jacobian_entries_by(program, active, wanted, {}, "elimination", None, None)
            if not _is_better(entries, program, linearize(program, active).linear, min(rows, columns)):
                return None
        except (NotStructured, MissingRule):
            return None
        return _placed(entries, 0, heights, widths, f"jacobian({program.name})")

    return program.derive(("jacobian by entries", active, wanted), make)


def hessian_by_entries(program: Program, active: Flags, wanted: int) -> Program | None:
    """The program of `dense.hessian`, by elimination; None also for more than one result, or results of arrays.

    Args:
        program: the program.
        active: which inputs to differentiate with respect to.
        wanted: how many leading outputs are differentiated.
    """
    widths = _active_types(program, active)
    size = _size(widths)
    if wanted != 1 or program.out_types[0].shape != ():
        return None
    if not _have_one_real_dtype([program.out_types[0], *widths]) or not is_symmetric(program):
        return None

    def make() -> Program | None:
        at_most = _MOST_FILLED * size**2
        try:
            if hessian_pattern(program, active, {}, at_most).nnz > at_most:
                return None
            entries = hessian_entries_by(program, active, {}, "elimination", None, None, lower=False)
            slopes = gradient(program, active, with_value=False)
            if not _is_better(entries, program, linearize(slopes, active).linear, size):
                return None
        except (NotStructured, MissingRule):
            return None
        return _placed(entries, 1, widths, widths, f"hessian({program.name})")

    return program.derive(("hessian by entries", active), make)


def _active_types(program: Program, active: Flags) -> list[ArrayType]:
    return [t for t, a in zip(program.in_types, active, strict=True) if a]


def _size(types: Sequence[ArrayType]) -> int:
    return sum(t.size for t in types)


def _have_one_real_dtype(types: Sequence[ArrayType]) -> bool:
    return len({t.dtype for t in types}) == 1 and not is_complex(types[0].dtype)


def _is_better(entries: Entries, program: Program, linear: Program, count: int) -> bool:
    """Whether entries take clearly less time than so many products, and are never NaN where these are not."""
    if has_singular_slopes(linear) and makes_choices(program):
        return False
    return program_cost(entries.program).time + entries.rows.size <= _MOST_TIME * count * program_cost(linear).time


def _placed(
    entries: Entries, skipped: int, heights: Sequence[ArrayType], widths: Sequence[ArrayType], name: str
) -> Program:
    """The program of all outputs but some leading ones, then of the blocks of the matrix with its zeros."""
    m, n = entries.shape
    builder = Builder(entries.program.in_types)
    with building(builder):
        *outs, vector = inline(entries.program, builder.inputs())
        places = entries.rows * n + entries.cols
        at = Tracer(builder, Const(places, ArrayType(places.shape, places.dtype)))
        matrix = reshape(scatter_add(full((m * n,), 0, vector.dtype), vector, at), shape=(m, n))
        return builder.finish([*outs[skipped:], *blocks_of(matrix, heights, widths)], name)
