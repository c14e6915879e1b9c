"""Branches and loops in the graph: the entries of the program that they hold, of each branch or of one step.

A branch returns the entries of its own Jacobian as a further result, so only the branch that is taken computes them.  A
loop whose carry does not depend on the inputs returns those of each step.  Where a carry does, the pattern is that of
all steps one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.index_map import IndexMap, Piece
from ..control.cond import cond
from ..control.loops.scan import scan
from ..control.subprograms import cut
from ..core.interpret import inline
from ..core.program import Eqn, Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_inexact
from ..ops.elementwise import convert
from .arithmetic import ONE, Masked
from .emission import put, take
from .entries import Entries
from .graph import Graph, Node, lifted

EntriesOf = Callable[[Program, Sequence[bool], int, Mapping[int, Any]], Entries]
PatternOf = Callable[[Program, Sequence[bool], int, Mapping[int, Any]], Any]

# The pattern of a loop of more steps is not followed step by step.
_MOST_STEPS = 2_000
# Nor is one whose steps depend on more elements than this together.
_MOST_ENTRIES = 20_000_000


class Held(NamedTuple):
    """Entries of the Jacobian of an equation, as positions in all results and all operands one after the other.

    Attributes:
        rows: elements of the results.
        cols: elements of the operands.
        value: the entries; None in a graph of patterns.
    """

    rows: Any
    cols: Any
    value: Tracer | None


# Patterns


def by_patterns(
    pattern_of: PatternOf, graph: Graph, eqn: Eqn, operands: list[Node], active: Sequence[bool]
) -> list[Node] | None:
    """The results of a branch or loop in a graph of patterns; None for other equations, and if it is too large."""
    pattern = held_pattern(pattern_of, eqn, active, [x.known for x in operands])
    if pattern is None:
        return None
    results = [graph.node(v.type, None, True, eqn.line) for v in eqn.outputs]
    _add(graph, results, operands, Held(*pattern, None))
    return results


def held_pattern(
    pattern_of: PatternOf, eqn: Eqn, active: Sequence[bool], known: Sequence[Any]
) -> tuple[Any, Any] | None:
    """The rows and columns of what the results of a branch or loop depend on."""
    if eqn.primitive is cond:
        return _pattern_of_branches(pattern_of, eqn, active, known)
    if eqn.primitive is scan:
        return _pattern_of_loop(pattern_of, eqn, active, known)
    return None


def _pattern_of_branches(
    pattern_of: PatternOf, eqn: Eqn, active: Sequence[bool], known: Sequence[Any]
) -> tuple[Any, Any]:
    branches = _branches(eqn, known[0])
    given = {i: x for i, x in enumerate(known[1:]) if x is not None}
    total = sum(pattern_of(b, active[1:], len(b.outputs), given) for b in branches[1:]) if branches[1:] else 0
    total = pattern_of(branches[0], active[1:], len(eqn.outputs), given) + total
    return _spread_over(total.tocoo(), [a.type for a in eqn.operands[1:]], active[1:], 1)


def _branches(eqn: Eqn, index: Any) -> tuple[Program, ...]:
    branches: tuple[Program, ...] = eqn.params["branches"]
    return branches if index is None else (branches[int(index)],)


def _spread_over(
    pattern: Any, types: Sequence[ArrayType], active: Sequence[bool], skipped: int
) -> tuple[Any, Any]:
    """Columns that count the elements of active operands, as elements of all operands."""
    starts = _starts(types)
    places = [
        np.arange(start, start + t.size) for start, t, a in zip(starts, types, active, strict=False) if a
    ]
    return pattern.coords[0].astype(np.int64), np.concatenate(places)[pattern.coords[1]] + skipped


def _pattern_of_loop(
    pattern_of: PatternOf, eqn: Eqn, active: Sequence[bool], known: Sequence[Any]
) -> tuple[Any, Any] | None:
    import scipy.sparse as sp

    loop = _Loop(eqn)
    if loop.length > _MOST_STEPS:
        return None
    program = loop.program
    flags = tuple([is_inexact(t.dtype) for t in program.in_types])
    given = {i: x for i, x in enumerate(known[: loop.consts]) if x is not None}
    found = pattern_of(program, flags, len(program.outputs), given)
    step = sp.csr_array((found.shape[0], sum(t.size for t in program.in_types)), dtype=bool)
    if found.nnz:
        rows, cols = _spread_over(found.tocoo(), program.in_types, flags, 0)
        step = sp.csr_array((np.ones(rows.size, bool), (rows, cols)), shape=step.shape)
    types = [a.type for a in eqn.operands]
    width = sum(t.size for t in types)
    starts = _starts(types)
    of_carry, of_y = (np.cumsum([0, *(t.size for t in ts)]) for ts in cut(program.out_types, loop.carries))
    first = [start for start in starts[: loop.consts + loop.carries]]
    inputs = [_unit(t, start, width) for t, start in zip(types, first, strict=False)]
    consts, carry = cut(inputs, loop.consts)
    if not all(active):
        consts, carry = _silenced(consts, active), _silenced(carry, active[loop.consts :])
    rows_of_y: list[Any] = [None] * loop.length
    order = reversed(range(loop.length)) if loop.reverse else range(loop.length)
    total = 0
    for t in order:
        xs = [
            _unit(a, start + t * a.size, width) if on else sp.csr_array((a.size, width), dtype=bool)
            for a, start, on in zip(
                program.in_types[loop.consts + loop.carries :],
                starts[loop.consts + loop.carries :],
                active[loop.consts + loop.carries :],
                strict=False,
            )
        ]
        after = step @ sp.vstack([*consts, *carry, *xs], format="csr")
        carry = [after[a:b] for a, b in zip(of_carry[:-1], of_carry[1:], strict=True)]
        rows_of_y[t] = after[of_carry[-1] :]
        total += after.nnz
        if total > _MOST_ENTRIES:
            return None
    ys = []
    for a, b in zip(of_y[:-1], of_y[1:], strict=True):
        ys += [row[a:b] for row in rows_of_y]
    parts = [x for x in (*carry, *ys) if x.shape[0]]
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    whole = sp.vstack(parts, format="coo")
    return whole.coords[0].astype(np.int64), whole.coords[1].astype(np.int64)


def _unit(type: ArrayType, start: int, width: int) -> Any:
    import scipy.sparse as sp

    places = (np.arange(type.size), np.arange(start, start + type.size))
    return sp.csr_array((np.ones(type.size, bool), places), shape=(type.size, width))


def _silenced(patterns: list[Any], active: Sequence[bool]) -> list[Any]:
    """The patterns of operands, empty for those that are not active."""
    import scipy.sparse as sp

    return [p if on else sp.csr_array(p.shape, dtype=bool) for p, on in zip(patterns, active, strict=False)]


class _Loop:
    """The parts of a scan."""

    def __init__(self, eqn: Eqn) -> None:
        params = eqn.params
        self.program: Program = params["program"]
        self.length: int = params["length"]
        self.reverse: bool = params["reverse"]
        self.unroll: int = params["unroll"]
        self.consts: int = params["consts"]
        self.carries: int = params["carries"]


# Values


def by_entries(
    entries_of: EntriesOf, graph: Graph, eqn: Eqn, operands: list[Node], active: Sequence[bool]
) -> list[Node] | None:
    """The results of a branch or a loop without an active carry, with edges; None for other equations."""
    assert graph.builder is not None
    if eqn.primitive is cond:
        values, held = _branch_entries(entries_of, graph.builder, eqn, operands, active)
    elif eqn.primitive is scan and not _has_active_carry(eqn, active):
        values, held = _step_entries(entries_of, graph.builder, eqn, operands, active)
    else:
        return None
    results = [graph.node(v.type, y, True, eqn.line) for v, y in zip(eqn.outputs, values, strict=True)]
    _add(graph, results, operands, held)
    return results


def _branch_entries(
    entries_of: EntriesOf, builder: Builder, eqn: Eqn, operands: list[Node], active: Sequence[bool]
) -> tuple[list[Tracer], Held]:
    index = operands[0].known
    branches = _branches(eqn, index)
    given = {i: x.known for i, x in enumerate(operands[1:]) if x.known is not None and not active[i + 1]}
    found = [entries_of(b, active[1:], len(b.outputs), given) for b in branches]
    width = found[0].shape[1]
    keys = np.unique(np.concatenate([e.rows * width + e.cols for e in found]))
    dtype = np.result_type(*(e.program.out_types[-1].dtype for e in found))
    programs = tuple([_with_vector(e, np.searchsorted(keys, e.rows * width + e.cols), keys.size, dtype) for e in found])
    xs = [lifted(builder, x) for x in operands]
    outs = inline(programs[0], xs[1:]) if len(programs) == 1 else cond(*xs, branches=programs)
    types = [a.type for a in eqn.operands[1:]]
    starts = _starts(types)
    places = np.concatenate(
        [np.arange(start, start + t.size) for start, t, a in zip(starts, types, active[1:], strict=False) if a]
    )
    return outs[:-1], Held(keys // width, places[keys % width] + 1, outs[-1])


def _with_vector(entries: Entries, places: Any, size: int, dtype: Any) -> Program:
    """A program of entries that puts them at these places of a longer vector."""
    builder = Builder(entries.program.in_types)
    with building(builder):
        *outs, vector = inline(entries.program, builder.inputs())
        vector = vector if vector.dtype == dtype else convert(vector, dtype=dtype)
        return builder.finish([*outs, put(size, vector, IndexMap.of(places, size))], entries.program.name)


def _has_active_carry(eqn: Eqn, active: Sequence[bool]) -> bool:
    """Whether a carry of a loop depends on an active operand."""
    loop = _Loop(eqn)
    if any(active[loop.consts : loop.consts + loop.carries]):
        return True
    carried = Program("carried", loop.program.inputs, loop.program.eqns, loop.program.outputs[: loop.carries])
    needed = {a for eqn in carried.eqns for a in eqn.operands} if carried.outputs else set()
    if not carried.outputs:
        return False
    reached = {v for v, a in zip(loop.program.inputs, active, strict=True) if a}
    for inner in loop.program.eqns:
        if any(a in reached for a in inner.operands):
            reached.update(v for v in inner.outputs if is_inexact(v.type.dtype))
    return bool(needed) and any(a in reached for a in carried.outputs)


def _step_entries(
    entries_of: EntriesOf, builder: Builder, eqn: Eqn, operands: list[Node], active: Sequence[bool]
) -> tuple[list[Tracer], Held]:
    loop = _Loop(eqn)
    given = {i: x.known for i, x in enumerate(operands[: loop.consts]) if x.known is not None and not active[i]}
    found = entries_of(loop.program, active, len(loop.program.outputs), given)
    outs = scan.apply(
        found.program, *cut([lifted(builder, x) for x in operands], loop.consts, loop.carries),
        loop.length, loop.reverse, loop.unroll,
    )  # fmt: skip
    carried, of_y = cut(loop.program.out_types, loop.carries)
    skipped = sum(t.size for t in carried)
    # Rows and columns of the first step, and by how much they grow with each further one.
    rows, row_steps = _strided(found.rows - skipped, of_y, loop.length, [True] * len(of_y))
    types = loop.program.in_types
    moving = [i >= loop.consts + loop.carries for i in range(len(types))]
    chosen = np.concatenate([np.full(t.size, i) for i, t in enumerate(types)])
    within = np.concatenate([np.arange(t.size) for t in types])
    of_active = np.flatnonzero(np.array(active)[chosen])
    operand, place = chosen[of_active][found.cols], within[of_active][found.cols]
    starts = np.array(_starts([a.type for a in eqn.operands]))
    sizes = np.array([t.size for t in types])
    cols = starts[operand] + place
    col_steps = np.where(np.array(moving)[operand], sizes[operand], 0)
    steps = np.arange(loop.length)[:, None]
    return outs[:-1], Held(
        (skipped + rows + steps * row_steps).reshape(-1), (cols + steps * col_steps).reshape(-1), outs[-1]
    )


def _strided(
    places: Any, types: Sequence[ArrayType], length: int, moving: Sequence[bool]
) -> tuple[Any, Any]:
    """Places in elements of one step, as places in the stacked arrays at the first step, and their steps."""
    sizes = np.array([t.size for t in types], np.int64)
    ends = np.cumsum(sizes)
    which = np.searchsorted(ends, places, side="right")
    within = places - (ends - sizes)[which]
    return (ends - sizes)[which] * length + within, sizes[which]


# Edges


def _starts(types: Sequence[ArrayType]) -> list[int]:
    """Where the elements of each array begin among those of all."""
    return np.cumsum([0, *(t.size for t in types)]).tolist()


def _add(graph: Graph, results: Sequence[Node], operands: Sequence[Node], held: Held) -> None:
    """Add the edges of entries."""
    for k, row, of_row in _parts(results, held.rows):
        for j, col, of_both in _parts(operands, held.cols[of_row]):
            if not (is_inexact(k.type.dtype) and j.is_active):
                continue
            lanes = of_row[of_both]
            rows = IndexMap.of(held.rows[lanes] - row, k.type.size)
            cols = IndexMap.of(held.cols[lanes] - col, j.type.size)
            value = ONE
            if held.value is not None:
                value = Masked(take(held.value, IndexMap.of(lanes, held.rows.size)))
            graph.edge(k, j, rows, cols, value)


def _parts(nodes: Sequence[Node], places: Any) -> Iterator[tuple[Node, int, Any]]:
    """Each node, where its elements begin, and which of the places are among them."""
    for node, start in zip(nodes, _starts([x.type for x in nodes]), strict=False):
        found = np.flatnonzero((places >= start) & (places < start + node.type.size))
        if found.size:
            yield node, start, found


def held_pieces(
    pattern_of: PatternOf, eqn: Eqn, active: Sequence[bool], known: Sequence[Any]
) -> list[list[list[Piece]]] | None:
    """The pattern of a branch or loop as pieces of each result and operand; None for other equations."""
    pattern = held_pattern(pattern_of, eqn, active, known)
    if pattern is None:
        return None
    rows, cols = pattern
    found: list[list[list[Piece]]] = [[[] for _ in eqn.operands] for _ in eqn.outputs]
    for r, row in enumerate(_starts([v.type for v in eqn.outputs])[:-1]):
        for i, col in enumerate(_starts([a.type for a in eqn.operands])[:-1]):
            out, type = eqn.outputs[r].type, eqn.operands[i].type
            chosen = (rows >= row) & (rows < row + out.size) & (cols >= col) & (cols < col + type.size)
            if chosen.any():
                found[r][i].append(
                    Piece(IndexMap.of(rows[chosen] - row, out.size), IndexMap.of(cols[chosen] - col, type.size))
                )
    return found
