"""The patterns of branches and loops: of all branches together, and of all steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...base.index_map import IndexMap, Piece
from ...control.cond import cond
from ...control.loops.scan import scan
from ...control.loops.while_loop import while_
from ...control.subprograms import cut
from ...core.program import Eqn, Program
from ...core.types import ArrayType, is_inexact
from .loop_patterns import Pieces, of_scan, of_while

PatternOf = Callable[[Program, Sequence[bool], int, Mapping[int, Any]], Any]

# The pattern of a loop of more steps is not followed step by step, which would tell steps apart.
_MOST_STEPS = 2_000
# Nor is one whose steps depend on more elements than this together.
_MOST_ENTRIES = 20_000_000


def held_pieces(pattern_of: PatternOf, eqn: Eqn, active: Sequence[bool], known: Sequence[Any]) -> Pieces | None:
    """The pattern of a branch or loop as pieces, for each result and each operand.

    Args:
        pattern_of: finds the pattern of a program; see `detect.jacobian_pattern`.
        eqn: the equation.
        active: which of its operands are differentiated.
        known: arrays of its operands where they are known, None elsewhere.

    Returns:
        None for other equations, and for loops whose pattern is too large.
    """
    params = eqn.params
    if eqn.primitive is cond:
        return _pieces(eqn, *_of_branches(pattern_of, eqn, active, known))
    if eqn.primitive is while_:
        body, others, consts = params["body"], params["cond_consts"], params["body_consts"]
        found = of_while(_of_step(pattern_of, body, known[others : others + consts]), body, consts)
        return None if found is None else [[*([] for _ in range(others)), *of_result] for of_result in found]
    if eqn.primitive is scan:
        program, consts = params["program"], params["consts"]
        step = _of_step(pattern_of, program, known[:consts])
        followed = _followed(step, eqn, active)
        if followed is not None:
            return _pieces(eqn, *followed)
        return of_scan(step, program, consts, params["carries"], params["length"], params["reverse"])
    return None


def taken_branches(eqn: Eqn, index: Any) -> tuple[Program, ...]:
    """The branches that may be taken."""
    branches: tuple[Program, ...] = eqn.params["branches"]
    return branches if index is None else (branches[int(index)],)


def starts(types: Sequence[ArrayType]) -> list[int]:
    """Where the elements of each array begin among those of all, and how many these are."""
    return np.cumsum([0, *(t.size for t in types)]).tolist()


def active_elements(types: Sequence[ArrayType], active: Sequence[bool]) -> Any:
    """The elements of active arrays among those of all."""
    parts = [np.arange(start, start + t.size) for start, t, a in zip(starts(types), types, active, strict=False) if a]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _of_branches(pattern_of: PatternOf, eqn: Eqn, active: Sequence[bool], known: Sequence[Any]) -> tuple[Any, Any]:
    """The rows and columns of all branches, counted in all results and all operands."""
    given = {i: x for i, x in enumerate(known[1:]) if x is not None}
    found = [pattern_of(b, active[1:], len(b.outputs), given) for b in taken_branches(eqn, known[0])]
    total = found[0]
    for other in found[1:]:
        total = total + other
    rows, cols = total.tocoo().coords
    return rows, active_elements([a.type for a in eqn.operands], active)[cols]


def _followed(step: Any, eqn: Eqn, active: Sequence[bool]) -> tuple[Any, Any] | None:
    """The rows and columns of a loop, followed step by step; None if it is too long."""
    import scipy.sparse as sp

    params = eqn.params
    program, length, consts, carries = (params[name] for name in ("program", "length", "consts", "carries"))
    if length > _MOST_STEPS:
        return None
    types = [a.type for a in eqn.operands]
    begins = starts(types)
    width = begins[-1]

    def units(position: int, size: int, first: int = 0) -> Any:
        places = np.arange(size if active[position] else 0)
        at = (places, begins[position] + first + places)
        return sp.csr_array((np.ones(places.size, bool), at), shape=(size, width))

    fixed, carry = cut([units(i, types[i].size) for i in range(consts + carries)], consts)
    elements = program.in_types[consts + carries :]
    cuts = starts(program.out_types)
    steps: list[list[Any]] = [[]] * length
    total = 0
    for t in reversed(range(length)) if params["reverse"] else range(length):
        xs = [units(consts + carries + i, x.size, t * x.size) for i, x in enumerate(elements)]
        after = step @ sp.vstack([*fixed, *carry, *xs], format="csr")
        carry, steps[t] = cut([after[a:b] for a, b in pairwise(cuts)], carries)
        total += after.nnz
        if total > _MOST_ENTRIES:
            return None
    stacked = [y for ys in zip(*steps, strict=True) for y in ys]
    rows, cols = sp.vstack([*carry, *stacked], format="coo").coords
    return rows, cols


def _of_step(pattern_of: PatternOf, program: Program, known: Sequence[Any]) -> Any:
    """Which results of a step depend on which of all of its operands, of which the first may be known."""
    import scipy.sparse as sp

    given = {i: x for i, x in enumerate(known) if x is not None}

    def found() -> Any:
        flags = tuple([is_inexact(t.dtype) for t in program.in_types])
        rows, cols = pattern_of(program, flags, len(program.outputs), given).tocoo().coords
        shape = (starts(program.out_types)[-1], starts(program.in_types)[-1])
        cols = active_elements(program.in_types, flags)[cols]
        return sp.csr_array((np.ones(rows.size, bool), (rows, cols)), shape=shape)

    return found() if given else program.derive("pattern of a step", found)


def _pieces(eqn: Eqn, rows: Any, cols: Any) -> Pieces:
    found: Pieces = []
    for row, out in zip(starts([v.type for v in eqn.outputs]), eqn.outputs, strict=False):
        in_result = (rows >= row) & (rows < row + out.type.size)
        found.append([])
        for col, operand in zip(starts([a.type for a in eqn.operands]), eqn.operands, strict=False):
            chosen = in_result & (cols >= col) & (cols < col + operand.type.size)
            pieces = []
            if chosen.any():
                of_rows = IndexMap.of(rows[chosen] - row, out.type.size)
                pieces.append(Piece(of_rows, IndexMap.of(cols[chosen] - col, operand.type.size)))
            found[-1].append(pieces)
    return found
