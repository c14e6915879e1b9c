"""In blocks: a program for entries that does the same for each of many lanes, compiled as a loop over blocks of lanes.

XLA on a CPU computes each value of a program for all lanes before the next one.  With tens of thousands of lanes that
is megabytes for each, which go through memory again and again.  Of one block of lanes all values stay in the cache.
Sums, products and all else that is computed for a lane are the same; the last block overlaps the one before it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...base.foreign import options_for_loops
from ...base.surroundings import in_loop
from ...core.primitive import ProgramCall, RunOnly
from ...core.program import Atom, Const, Eqn, Params, Program, Var, needed_eqns
from ...core.types import ArrayType
from ...ops.broadcast import broadcast, reduce_sum
from ...ops.elementwise.family import Elementwise
from ...ops.indexing import gather
from ...ops.parts import concatenate, slice_
from ...ops.shapes import reshape, transpose
from ...run.evaluate import evaluate
from ...run.stand_alone import Function, Written
from ...xla.execute import lower
from ...xla.fusion import most_repeated

# So many lanes of some fifty values fit the cache of a core; of fewer blocks, all lanes nearly do.
LANES_OF_BLOCK = 2048
# Programs with fewer equations that are computed for each lane become a few kernels, which read memory once.
_FEWEST_EQNS = 64
_FEWEST_BLOCKS = 4
# XLA makes single kernels of smaller loops than half of this.
_SMALLEST_LOOP = 1 << 17


class InBlocks(ProgramCall, RunOnly):
    """The results of `program`, whose `block` of lanes is another program.

    The first `sliced` operands, and all results, have an axis of lanes: the second one of the first result, else the
    first one.
    """

    name = "in_blocks"

    def numpy(self, *arrays: Any, program: Program, block: Program, sliced: int) -> list[Any]:
        return evaluate(program, arrays)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        return Written(Function(params["program"]), {})

    def xla(self, *arrays: Any, program: Program, block: Program, sliced: int) -> list[Any]:
        from jax import lax

        if most_repeated() is None or not _can_keep_barriers(program):
            # Fusion without barriers repeats so much that what memory costs does not count.
            return lower(program, arrays)
        size = block.out_types[0].shape[1]
        lanes = program.out_types[0].shape[1]

        def step(i: Any, results: list[Any]) -> list[Any]:
            first = i * size  # JAX moves what would be beyond the end, in slices and in updates alike.
            parts = [lax.dynamic_slice_in_dim(x, first, size) for x in arrays[:sliced]]
            with in_loop():
                rows, *others = lower(block, [*parts, *arrays[sliced:]])
            return [
                lax.dynamic_update_slice_in_dim(results[0], rows, first, 1),
                *map(lambda x, y: lax.dynamic_update_slice_in_dim(x, y, first, 0), results[1:], others),
            ]

        empty = [lax.full(t.shape, 0, t.dtype) for t in program.out_types]
        return list(lax.fori_loop(0, -(-lanes // size), step, empty))


in_blocks_call = InBlocks()


def _can_keep_barriers(program: Program) -> bool:
    """Whether XLA takes barriers in the loop: not in one that is so small that it becomes a single kernel."""
    option, _, _ = options_for_loops().partition("=")
    is_set = bool(option) and option in os.environ.get("XLA_FLAGS", "")
    return not is_set and sum(t.nbytes for t in program.out_types) >= _SMALLEST_LOOP


def in_blocks(program: Program, size: int = LANES_OF_BLOCK) -> Program:
    """The program with what it does for each lane in blocks of lanes, if its last output is such values in a row.

    Args:
        program: the program, which is about to be compiled.
        size: how many lanes a block has.
    """
    return program.derive(("in blocks", size), lambda: _in_blocks(program, size))


def _in_blocks(program: Program, size: int) -> Program:
    joined = next((eqn for eqn in program.eqns if program.outputs[-1] in eqn.outputs), None)
    if joined is None or joined.primitive is not concatenate:
        return program
    lanes = joined.operands[0].type.size
    if lanes < _FEWEST_BLOCKS * size or any(a.type.shape != (lanes,) for a in joined.operands):
        return program
    inside, behind = _divided(program, lanes)
    if not behind.isdisjoint(joined.operands):
        return program
    outside = [eqn for eqn in program.eqns if eqn not in inside and eqn is not joined]
    used = {a for eqn in outside for a in eqn.operands}.union(program.outputs)
    wanted = [v for eqn in inside for v in eqn.outputs if v in used]
    lanewise = _Lanewise(needed_eqns(list(inside), [*joined.operands, *wanted]), joined, wanted, lanes)
    if len(lanewise.eqns) < _FEWEST_EQNS:
        return program
    sliced, whole = lanewise.operands()
    at_once, block = (lanewise.program(sliced, whole, n) for n in (lanes, size))
    params = {"program": at_once, "block": block, "sliced": len(sliced)}
    rows = Var(at_once.out_types[0])
    (entries,) = joined.outputs
    eqns = [
        *[eqn for eqn in outside if behind.isdisjoint(eqn.outputs)],
        Eqn(in_blocks_call, (*sliced, *whole), params, (rows, *wanted), joined.line),
        Eqn(reshape, (rows,), {"shape": entries.type.shape}, (entries,), joined.line),
        *[eqn for eqn in outside if not behind.isdisjoint(eqn.outputs)],
    ]
    return Program(program.name, program.inputs, eqns, program.outputs)


def _divided(program: Program, lanes: int) -> tuple[dict[Eqn, None], set[Atom]]:
    """The equations that can be computed lane by lane, and the values that depend on them and cannot."""
    inside: dict[Eqn, None] = {}
    following: set[Atom] = set()
    behind: set[Atom] = set()
    for eqn in program.eqns:
        of_lanes = _of_lanes(eqn, lanes, lanes) if behind.isdisjoint(eqn.operands) else None
        if of_lanes is not None and not (of_lanes.is_first_whole and eqn.operands[0] in following):
            inside[eqn] = None
            following.update(eqn.outputs)
        elif not (following | behind).isdisjoint(eqn.operands):
            behind.update(eqn.outputs)
    return inside, behind


class _OfLanes(NamedTuple):
    """What an equation is for some lanes.

    Attributes:
        params: its parameters.
        is_first_whole: whether it needs all of its first operand, which has no lanes; the others have.
    """

    params: Params
    is_first_whole: bool = False


def _of_lanes(eqn: Eqn, lanes: int, size: int) -> _OfLanes | None:
    """An equation for `size` of the lanes, which are the first axis of its result; None if it is not for each lane."""
    primitive, params = eqn.primitive, eqn.params
    if any(a.type.shape[:1] != (lanes,) for a in (*eqn.outputs, *eqn.operands[1:])):
        return None
    shape = (size, *eqn.outputs[0].type.shape[1:])
    if primitive is gather and len(eqn.operands) == 2 and params["axis"] == 0:
        return _OfLanes(params, is_first_whole=True)
    if primitive is broadcast and params["dims"][:1] != (0,):
        return _OfLanes({**params, "shape": shape}, is_first_whole=True)
    if not eqn.operands or eqn.operands[0].type.shape[:1] != (lanes,):
        return None
    if primitive in (reshape, broadcast):
        return _OfLanes({**params, "shape": shape})
    if primitive is slice_ and (params["start"][0], params["limit"][0], params["strides"][0]) == (0, lanes, 1):
        return _OfLanes({**params, "limit": (size, *params["limit"][1:])})
    is_lanewise = (
        isinstance(primitive, Elementwise)
        or (primitive is concatenate and params["axis"] > 0)
        or (primitive is reduce_sum and 0 not in params["axes"])
        or (primitive is transpose and params["axes"][0] == 0)
    )
    return _OfLanes(params) if is_lanewise else None


class _Lanewise(NamedTuple):
    """Equations that can be computed for some lanes.

    Attributes:
        eqns: the equations.
        joined: the equation that joins those of their results that are entries.
        wanted: other results.
        lanes: the number of lanes.
    """

    eqns: Sequence[Eqn]
    joined: Eqn
    wanted: Sequence[Var]
    lanes: int

    def operands(self) -> tuple[list[Atom], list[Atom]]:
        """What comes from outside: arrays of which a block needs its lanes, and those that it needs as a whole."""
        sliced: dict[Atom, None] = dict.fromkeys(self.joined.operands)
        whole: dict[Atom, None] = {}
        for eqn in self.eqns:
            of_lanes = _of_lanes(eqn, self.lanes, self.lanes)
            assert of_lanes is not None
            for i, a in enumerate(eqn.operands):
                (whole if i == 0 and of_lanes.is_first_whole else sliced)[a] = None
        made = {v for eqn in self.eqns for v in eqn.outputs}
        return [a for a in sliced if a not in made and not _is_splat(a)], [a for a in whole if not _is_splat(a)]

    def program(self, sliced: Sequence[Atom], whole: Sequence[Atom], size: int) -> Program:
        """The program for `size` of the lanes: the entries, a row for each of the joined results, and the others."""
        of_sliced: dict[Atom, Var] = {a: Var(self._type(a, size)) for a in sliced}
        of_whole: dict[Atom, Var] = {a: Var(a.type) for a in whole}
        inputs = [*of_sliced.values(), *of_whole.values()]

        def block_of(a: Atom) -> Atom:
            return Const(a.value, self._type(a, size)) if isinstance(a, Const) and a.is_splat else of_sliced[a]

        eqns = []
        for eqn in self.eqns:
            of_lanes = _of_lanes(eqn, self.lanes, size)
            assert of_lanes is not None
            count = int(of_lanes.is_first_whole)
            operands: list[Atom] = [of_whole.get(a, a) for a in eqn.operands[:count]]
            operands += [block_of(a) for a in eqn.operands[count:]]
            of_sliced.update((v, Var(self._type(v, size))) for v in eqn.outputs)
            eqns.append(
                Eqn(eqn.primitive, tuple(operands), of_lanes.params, tuple(of_sliced[v] for v in eqn.outputs), eqn.line)
            )
        line, dtype = self.joined.line, self.joined.outputs[0].type.dtype
        rows: list[Var] = []
        for a in self.joined.operands:
            rows.append(Var(ArrayType((1, size), dtype)))
            eqns.append(Eqn(reshape, (block_of(a),), {"shape": (1, size)}, (rows[-1],), line))
        stacked = Var(ArrayType((len(rows), size), dtype))
        eqns.append(Eqn(concatenate, tuple(rows), {"axis": 0}, (stacked,), line))
        return Program("lanes", inputs, eqns, [stacked, *map(block_of, self.wanted)])

    def _type(self, a: Atom, size: int) -> ArrayType:
        return a.type.with_shape((size, *a.type.shape[1:]))


def _is_splat(a: Atom) -> bool:
    return isinstance(a, Const) and bool(a.is_splat)
