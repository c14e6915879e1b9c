"""Which elements of the results of a program depend on which elements of its inputs, by the rules `local`.

This serves the rules of primitives that hold programs.  Only floating-point arrays count: nothing has a derivative by
way of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.index_map import IndexMap, Piece, by_way
from ..base.pieces import aligned
from ..core.primitive import ProgramHolder
from ..core.program import Const, Eqn, Program, Var
from ..core.types import ArrayType, is_inexact

# A boolean matrix of SciPy: `scipy.sparse.csr_array`.
Pattern = Any

# What depends on more pairs of elements than this is taken to depend on all.
_MOST_ENTRIES = 4_000_000


class TooMany(Exception):
    """There are more pairs of elements than shall be listed."""


def dependence(program: Program) -> Pattern | None:
    """Which elements of the outputs may depend on which of the inputs; None if there are too many to be listed.

    Rows count the elements of the floating-point outputs one after the other, columns those of the inputs.
    """
    return program.derive("dependence", lambda: _dependence(program))


def sizes(types: Sequence[ArrayType]) -> list[int]:
    """The numbers of elements that count."""
    return [t.size if is_inexact(t.dtype) else 0 for t in types]


def pieces_of(pattern: Pattern) -> list[Piece]:
    """A pattern as pieces."""
    found = pattern.tocoo()
    rows, cols = (IndexMap.of(x, n) for x, n in zip(found.coords, found.shape, strict=True))
    return [Piece(rows, cols)] if found.nnz else []


def closure(pattern: Pattern, most: int | None = None) -> Pattern:
    """What depends on what after up to `most` steps, or any number of them, of which each has this pattern."""
    import scipy.sparse as sp

    reached = sp.eye_array(pattern.shape[0], dtype=bool, format="csr")
    power = bounded(reached + pattern)
    while most is None or most:
        if most is not None:
            reached = bounded(reached @ power) if most % 2 else reached
            most //= 2
        further = bounded(power @ power)
        if further.nnz == power.nnz:
            return power
        power = further
    return reached


def through(rows: IndexMap, cols: IndexMap, pattern: Pattern, most: float) -> Pattern:
    """What rows depend on that have lanes to rows `cols` of a pattern.

    Raises:
        TooMany: there may be more entries, or are more lanes, than `most`.
    """
    steps = by_way(rows, cols)
    if steps is None:
        return _united(rows, cols, pattern, most)
    to_middle, to_rows = steps
    return _united(*to_rows, _united(*to_middle, pattern, most), most)


def _united(rows: IndexMap, cols: IndexMap, pattern: Pattern, most: float) -> Pattern:
    import scipy.sparse as sp

    height, width = rows.space, pattern.shape[1]
    if rows.size > most:
        raise TooMany
    taken = cols.table().reshape(-1)
    if min(np.diff(pattern.indptr)[taken].sum(), height * width) > most:
        raise TooMany
    if rows.is_identity:
        return pattern if cols.is_identity else pattern[taken]
    places = (rows.table().reshape(-1), taken)
    lanes = sp.csr_array((np.ones(taken.size, np.bool_), places), shape=(height, pattern.shape[0]))
    return lanes @ pattern


def bounded(pattern: Pattern) -> Pattern:
    """A pattern, provided that it does not have too many entries."""
    if pattern.nnz > _MOST_ENTRIES:
        raise TooMany
    return pattern


def _dependence(program: Program) -> Pattern | None:
    import scipy.sparse as sp

    starts = np.cumsum([0, *sizes(program.in_types)])
    width = int(starts[-1])
    found: dict[Var, Pattern] = {}
    for v, start in zip(program.inputs, starts[:-1], strict=True):
        if is_inexact(v.type.dtype):
            lanes = np.arange(v.type.size)
            ones = np.ones(v.type.size, np.bool_)
            found[v] = sp.csr_array((ones, (lanes, lanes + start)), shape=(v.type.size, width))
    try:
        outputs = _walk(program, found, width)
    except TooMany:
        return None
    none = [sp.csr_array((n, width), dtype=bool) for n in sizes(program.out_types)]
    rows = [n if x is None else x for n, x in zip(none, outputs, strict=True)]
    return sp.vstack(rows, format="csr") if rows else sp.csr_array((0, width), dtype=bool)


def _walk(program: Program, found: dict[Var, Pattern], width: int) -> list[Pattern | None]:
    """The patterns of the outputs, given those of the inputs; None where there is no dependence."""
    for eqn in program.eqns:
        operands = [found.get(a) if isinstance(a, Var) else None for a in eqn.operands]
        if all(x is None for x in operands):
            continue
        if isinstance(eqn.primitive, ProgramHolder):
            held: Program = eqn.params["program"]
            given = {v: x for v, x in zip(held.inputs, operands, strict=True) if x is not None}
            results = _walk(held, given, width)
        else:
            results = _results(eqn, operands, width)
        for v, x in zip(eqn.outputs, results, strict=True):
            if x is not None and is_inexact(v.type.dtype):
                found[v] = x
    return [found.get(a) if isinstance(a, Var) else None for a in program.outputs]


def _results(eqn: Eqn, operands: Sequence[Pattern | None], width: int) -> list[Pattern]:
    import scipy.sparse as sp

    types, out_types = [a.type for a in eqn.operands], [v.type for v in eqn.outputs]
    known = [a.value if isinstance(a, Const) else None for a in eqn.operands]
    pieces = eqn.primitive.local(types, out_types, known, eqn.params)
    if pieces is None:
        pieces = [[aligned(t.shape, x.shape, []) for x in types] for t in out_types]
    elif not eqn.primitive.multiple_results:
        pieces = [pieces]
    results = []
    for t, of_result in zip(out_types, pieces, strict=True):
        total = sp.csr_array((t.size, width), dtype=bool)
        for x, of_operand in zip(operands, of_result, strict=True):
            for piece in () if x is None else of_operand:
                total = bounded(total + through(piece.rows, piece.cols, x, _MOST_ENTRIES))
        results.append(total)
    return results
