"""Branches and loops in the graph: the entries of the program that they hold, of each branch or of one step.

A branch returns the entries of its own Jacobian as a further result, so only the branch that is taken computes them.  A
loop whose carry does not depend on the inputs returns those of each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.index_map import IndexMap
from ...control.cond import cond
from ...control.loops.scan import scan
from ...control.subprograms import cut
from ...core.interpret import inline
from ...core.program import Eqn, Program, Var
from ...core.trace import Builder, Tracer, building
from ...core.types import is_inexact
from ...ops.elementwise import convert
from ..entries import Entries
from ..graph.arithmetic import Masked
from ..graph.emission import put, take
from ..graph.graph import Graph, Node, lifted
from ..patterns.held_patterns import active_elements, starts, taken_branches

EntriesOf = Callable[[Program, Sequence[bool], int, Mapping[int, Any]], Entries]


class _Held(NamedTuple):
    """The results of an equation, and the entries of its Jacobian.

    Attributes:
        values: the results.
        rows: where each entry is among the elements of all results.
        cols: where it is among the elements of all operands.
        entries: the entries, in one axis.
    """

    values: list[Tracer]
    rows: Any
    cols: Any
    entries: Tracer


def held_results(
    entries_of: EntriesOf, graph: Graph, eqn: Eqn, operands: list[Node], is_linear: bool
) -> list[Node] | None:
    """The results of a branch, or of a loop without an active carry, with their edges; None for other equations.

    Args:
        entries_of: finds the entries of the Jacobian of a program; see `eliminate.jacobian_entries`.
        graph: the graph, with a builder.
        eqn: the equation.
        operands: its operands.
        is_linear: whether it is part of a linear program, whose results have no value.
    """
    assert graph.builder is not None
    active = [x.is_active for x in operands]
    if eqn.primitive is cond:
        held = _of_branches(entries_of, graph.builder, eqn, operands, active)
    elif eqn.primitive is scan and not _has_active_carry(eqn, active):
        held = _of_steps(entries_of, graph.builder, eqn, operands, active)
    else:
        return None
    results = [
        graph.node(v.type, None if is_linear else y, True, eqn.line)
        for v, y in zip(eqn.outputs, held.values, strict=True)
    ]
    _add(graph, results, operands, held)
    return results


def _of_branches(
    entries_of: EntriesOf, builder: Builder, eqn: Eqn, operands: list[Node], active: Sequence[bool]
) -> _Held:
    branches = taken_branches(eqn, operands[0].known)
    known = {i: x.known for i, x in enumerate(operands[1:]) if x.known is not None and not x.is_active}
    found = [entries_of(b, active[1:], len(b.outputs), known) for b in branches]
    width = found[0].shape[1]
    keys = np.unique(np.concatenate([e.rows * width + e.cols for e in found]))
    dtype = np.result_type(*(e.program.out_types[-1].dtype for e in found))
    programs = [_with_vector(e, np.searchsorted(keys, e.rows * width + e.cols), keys.size, dtype) for e in found]
    xs = [lifted(builder, x) for x in operands]
    *values, entries = inline(programs[0], xs[1:]) if len(programs) == 1 else cond(*xs, branches=tuple(programs))
    cols = active_elements([a.type for a in eqn.operands], active)[keys % width]
    return _Held(values, keys // width, cols, entries)


def _with_vector(entries: Entries, places: Any, size: int, dtype: Any) -> Program:
    """A program of entries that puts them at these places of a longer vector."""
    builder = Builder(entries.program.in_types)
    with building(builder):
        *outs, vector = inline(entries.program, builder.inputs())
        vector = vector if vector.dtype == dtype else convert(vector, dtype=dtype)
        return builder.finish([*outs, put(size, vector, IndexMap.of(places, size))], entries.program.name)


def _has_active_carry(eqn: Eqn, active: Sequence[bool]) -> bool:
    """Whether a carry of a loop depends on an active operand."""
    program, consts, carries = (eqn.params[name] for name in ("program", "consts", "carries"))
    if any(active[consts : consts + carries]):
        return True
    reached: set[Any] = {v for v, a in zip(program.inputs, active, strict=True) if a}
    for inner in program.eqns:
        if not reached.isdisjoint(inner.operands):
            reached.update(v for v in inner.outputs if is_inexact(v.type.dtype))
    return any(isinstance(a, Var) and a in reached for a in program.outputs[:carries])


def _of_steps(entries_of: EntriesOf, builder: Builder, eqn: Eqn, operands: list[Node], active: Sequence[bool]) -> _Held:
    params = eqn.params
    program, length, consts, carries = (params[name] for name in ("program", "length", "consts", "carries"))
    known = {i: x.known for i, x in enumerate(operands[:consts]) if x.known is not None and not active[i]}
    found = entries_of(program, active, len(program.outputs), known)
    xs = [lifted(builder, x) for x in operands]
    fixed, carry, sequences = cut(xs, consts, carries)
    loop = scan.apply(found.program, fixed, carry, sequences, length, params["reverse"], params["unroll"])
    *values, entries = loop
    moves = [i >= consts + carries for i in range(len(operands))]
    steps = np.arange(length)[:, None]
    rows, growth = _first_step(found.rows, program.out_types, eqn.outputs, [i >= carries for i in range(len(values))])
    of_active = active_elements(program.in_types, active)[found.cols]
    cols, across = _first_step(of_active, program.in_types, eqn.operands, moves)
    return _Held(values, (rows + steps * growth).reshape(-1), (cols + steps * across).reshape(-1), entries)


def _first_step(places: Any, of_step: Sequence[Any], of_loop: Sequence[Any], moves: Sequence[bool]) -> tuple[Any, Any]:
    """Elements of the arrays of a step, as elements of those of the loop in the first step, and by how much they move.

    Args:
        places: the elements, counted in all arrays of a step.
        of_step: the types of these arrays.
        of_loop: the variables of the arrays of the loop.
        moves: which of them the loop goes through, element by element.
    """
    begins = np.array(starts(of_step))
    which = np.searchsorted(begins, places, side="right") - 1
    # Empty arrays begin where the next one does.
    sizes = np.array([t.size for t in of_step], np.int64)
    of_arrays = np.array(starts([v.type for v in of_loop]))
    return of_arrays[which] + places - begins[which], np.where(np.array(moves), sizes, 0)[which]


def _add(graph: Graph, results: Sequence[Node], operands: Sequence[Node], held: _Held) -> None:
    """Add the edges of entries."""
    for row, k in zip(starts([x.type for x in results]), results, strict=False):
        in_result = (held.rows >= row) & (held.rows < row + k.type.size)
        for col, j in zip(starts([x.type for x in operands]), operands, strict=False):
            lanes = np.flatnonzero(in_result & (held.cols >= col) & (held.cols < col + j.type.size))
            if lanes.size and j.is_active and is_inexact(k.type.dtype):
                rows = IndexMap.of(held.rows[lanes] - row, k.type.size)
                cols = IndexMap.of(held.cols[lanes] - col, j.type.size)
                graph.edge(k, j, rows, cols, Masked(take(held.entries, IndexMap.of(lanes, held.rows.size))))
