"""Cond: one of several programs, chosen by an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.cost import Cost
from ..core.interpret import inline
from ..core.on_numpy import Memory
from ..core.primitive import MultipleResults, Tangent
from ..core.program import Atom, Const, Eqn, Params, Program, Var, literal
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType
from ..ops.elementwise import convert, eq
from ..ops.literals import full_like, splat
from ..ops.reductions import reduce_or
from ..run.costs import is_known, program_cost
from ..run.evaluate import evaluate
from ..run.stand_alone import Function, Written
from ..transforms.batch import batch as batch_program
from ..transforms.jvp import jvp as jvp_program
from ..transforms.simplify import condense, without_dead_code
from ..transforms.simplify import simplify as simplify_program
from ..transforms.split import Residual, Split, SplitEqn
from ..transforms.split import split as split_program
from ..transforms.transpose import transpose as transpose_program
from ..xla.execute import lower
from ..xla.kinds import is_jax_tracer
from .subprograms import (
    Flags,
    chosen,
    cut,
    either,
    lanewise_select,
    others,
    redundant,
    rewired,
    specialized,
    spread,
    used_inputs,
    with_placeholders,
)

Branches = tuple[Program, ...]
_INDEX = ArrayType((), np.int64)
# If all branches together cost no more than this many additions, XLA computes all of them instead of branching.
_CHEAP_TIME = 1 << 14


class Cond(MultipleResults):
    """The results of `branches[index]` on the operands that follow `index`, an int64 in range.

    If `index` is batched, each branch that some lane takes runs on the whole batch; the other lanes get the operands of
    the first lane that takes it, so that no branch sees operands for which it was not chosen.
    """

    name = "cond"
    memory = Memory.NEW

    def type_rule(self, index: ArrayType, *types: ArrayType, branches: Branches) -> list[ArrayType]:
        if index is not _INDEX:
            raise TypeError(f"the index of {self.name} is {index}, not {_INDEX}")
        for branch in branches:
            if branch.in_types != types:
                raise TypeError(f"{branch.name} takes {branch.in_types}, not {types}")
            if branch.out_types != branches[0].out_types:
                raise TypeError(f"branches differ in type: {branches[0].out_types} and {branch.out_types}")
        return list(branches[0].out_types)

    def numpy(self, index: Any, *arrays: Any, branches: Branches) -> list[Any]:
        return evaluate(branches[int(index)], arrays)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        def cond(index: Any, *arrays: Any, branches: Sequence[Callable[..., list[Any]]]) -> list[Any]:
            return branches[int(index)](*arrays)

        return Written(cond, {"branches": tuple(map(Function, params["branches"]))})

    def xla(self, index: Any, *arrays: Any, branches: Branches) -> list[Any]:
        from jax import lax

        if len(branches) == 1:
            return lower(branches[0], arrays)
        if not is_jax_tracer(index):
            return lower(branches[int(index)], arrays)
        if all(map(_is_cheap, branches)):
            return self._select(index, arrays, branches)
        functions = [lambda *xs, branch=branch: lower(branch, xs) for branch in branches]
        if len(branches) == 2:
            return list(lax.cond(index != 0, *reversed(functions), *arrays))
        return list(lax.switch(index, functions, *arrays))

    def _select(self, index: Any, arrays: Sequence[Any], branches: Branches) -> list[Any]:
        """Compute all branches and select, which is faster than branching if they are short."""
        import jax.numpy as jnp

        outs = [lower(branch, arrays) for branch in branches]
        tests = [index == i for i in range(len(branches) - 1)]
        return [jnp.select(tests, column[:-1], column[-1]) for column in zip(*outs, strict=True)]

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        costs = [program_cost(branch) for branch in params["branches"]]
        return Cost(max(c.flops for c in costs), max(c.time for c in costs))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, branches: Branches) -> Any:
        index, *xs = primals
        ts = tangents[1:]
        active = tuple(t is not None for t in ts)
        out_active: Flags = (False,) * len(branches[0].outputs)
        for branch in branches:
            out_active = either(out_active, jvp_program(branch, active).out_active)
        derived = tuple(condense(jvp_program(b, active, out_active).program) for b in branches)
        outs = self(index, *xs, *chosen(ts, active), branches=derived)
        results, out_tangents = cut(outs, len(out_active))
        return results, spread(out_tangents, out_active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> SplitEqn | None:
        if unknown[0]:
            return None
        branches: Branches = params["branches"]
        return branches[0].derive(("split cond", branches, tuple(unknown)), lambda: _split(branches, tuple(unknown)))

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, branches: Branches) -> list[Tangent]:
        index, *xs = operands
        linear = tuple(isinstance(x, ArrayType) for x in xs)
        active = tuple(ct is not None for ct in cotangents)
        in_active: Flags = (False,) * linear.count(True)
        for branch in branches:
            in_active = either(in_active, transpose_program(branch, linear, active).in_active)
        turned = tuple(condense(transpose_program(b, linear, active, in_active).program) for b in branches)
        outs = self(index, *others(xs, linear), *chosen(cotangents, active), branches=turned)
        return [None, *spread(spread(outs, in_active), linear)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, branches: Branches) -> Any:
        index, *xs = operands
        flags = tuple(batched[1:])
        if batched[0]:
            return self._batch_index(size, index, xs, flags, branches)
        out_batched: Flags = (False,) * len(branches[0].outputs)
        for branch in branches:
            out_batched = either(out_batched, batch_program(branch, size, flags).out_batched)
        derived = tuple(simplify_program(batch_program(b, size, flags, out_batched).program) for b in branches)
        return self(index, *xs, branches=derived), list(out_batched)

    def _batch_index(self, size: int, index: Tracer, xs: Sequence[Tracer], flags: Flags, branches: Branches) -> Any:
        results: list[Tracer] = []
        for number, branch in enumerate(branches):
            mine = eq(index, full_like(index, number))
            program = branch.derive(("wanted lanes", size, flags), partial(_wanted_lanes, branch, size, flags))
            nothing = _with_outputs(program, range(len(program.inputs)), program.out_types)
            wanted = convert(reduce_or(mine, axes=(0,)), dtype=_INDEX.dtype)
            outs = self(wanted, mine, *xs, branches=(nothing, program))
            results = [lanewise_select(mine, y, z) for y, z in zip(outs, results, strict=True)] if results else outs
        return results, [True] * len(results)

    def simplify(self, operands: Sequence[Tracer], *, branches: Branches) -> list[Any] | None:
        index, *xs = operands
        number = splat(index)
        if number is not None:
            return inline(simplify_program(branches[int(number)]), xs)
        known = redundant(xs)
        simple = tuple(simplify_program(specialized(simplify_program(b), known)) for b in branches)
        kept = [x for x, k in zip(xs, known, strict=True) if k is None]
        used: Flags = (False,) * len(kept)
        for branch in simple:
            used = either(used, used_inputs(branch))
        if not all(used):
            wires = [i for i, u in enumerate(used) if u]
            simple = tuple(rewired(b, wires) for b in simple)
            kept = chosen(kept, used)
        if all(b is simple[0] for b in simple):
            return inline(simple[0], kept)
        shared = _shared_results(simple)
        wanted = [i for i, s in enumerate(shared) if s is None]
        if simple == branches and len(wanted) == len(shared):
            return None
        every = range(len(kept))
        computed: list[Any] = (
            self(index, *kept, branches=tuple(_with_outputs(b, every, wanted) for b in simple)) if wanted else []
        )
        remaining = iter(computed)
        results: list[Any] = []
        for s in shared:
            if s is None:
                results.append(next(remaining))
            elif isinstance(s, Const):
                results.append(Tracer(index.builder, s))
            else:
                place, number = s
                results.append(kept[number] if place == "operand" else results[number])
        return results

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        wanted = [i for i, u in enumerate(used) if u]
        branches = eqn.params["branches"]
        every = range(len(branches[0].inputs))
        pruned = tuple(_with_outputs(b, every, wanted) for b in branches)
        return Eqn(self, eqn.operands, {"branches": pruned}, tuple(chosen(eqn.outputs, used)), eqn.line)


def _with_outputs(branch: Program, inputs: Sequence[int], outputs: Sequence[int | ArrayType]) -> Program:
    program = rewired(branch, inputs, outputs)
    return program if program is branch else program.derive("without dead code", lambda: without_dead_code(program))


def _shared_results(branches: Branches) -> list[Const | tuple[str, int] | None]:
    """For each result: the constant, operand or earlier result that it is in every branch, or None."""

    def origin(branch: Program, index: int) -> Any:
        atom = branch.outputs[index]
        if isinstance(atom, Const):
            return atom if atom.is_splat else None
        if atom in branch.inputs:
            return "operand", branch.inputs.index(atom)
        first = branch.outputs.index(atom)
        return ("result", first) if first < index else None

    found: list[Const | tuple[str, int] | None] = []
    for index in range(len(branches[0].outputs)):
        origins = [origin(b, index) for b in branches]
        found.append(origins[0] if all(o == origins[0] for o in origins) else None)
    return found


def _wanted_lanes(branch: Program, size: int, flags: Flags) -> Program:
    """The batched branch as a program of a flag per lane, then its operands; all its results are batched."""
    derived = batch_program(branch, size, flags, (True,) * len(branch.outputs))
    builder = Builder([ArrayType((size,), np.bool_), *derived.program.in_types])
    with building(builder):
        mine, *xs = builder.inputs()
        outs = inline(derived.program, with_placeholders(mine, xs, flags))
        return simplify_program(builder.finish(outs, branch.name))


def _is_cheap(program: Program) -> bool:
    """Whether computing a branch that is not taken costs less than branching."""
    return all(map(is_known, program.eqns)) and program_cost(program).time <= _CHEAP_TIME


def _split(branches: Branches, unknown: Flags) -> SplitEqn:
    flags = unknown[1:]
    out_unknown: Flags = (False,) * len(branches[0].outputs)
    for branch in branches:
        out_unknown = either(out_unknown, split_program(branch, flags).out_unknown)
    halves = [split_program(branch, flags, out_unknown) for branch in branches]
    known_inputs = [i for i, u in enumerate(flags) if not u]

    # Residuals that are operands need no result of their own.  Of the others, only those of one branch exist at a
    # time, so residuals of the same type share a result.
    slots: list[ArrayType] = []
    forwarded: dict[int, None] = {}
    places: list[dict[Var, int]] = []
    for half in halves:
        mine: dict[Var, int] = {}
        free = list(enumerate(slots))
        for var in _residuals(half):
            if var in half.known.inputs:
                forwarded[known_inputs[half.known.inputs.index(var)]] = None
                continue
            place = next((i for i, t in free if t is var.type), None)
            if place is None:
                place = len(slots)
                slots.append(var.type)
            else:
                free.remove((place, var.type))
            mine[var] = place
        places.append(mine)

    known = tuple(_known_branch(h, m, slots) for h, m in zip(halves, places, strict=True))
    order = list(forwarded)
    later = tuple(
        _unknown_branch(h, m, slots, [known_inputs.index(i) for i in order])
        for h, m in zip(halves, places, strict=True)
    )
    return SplitEqn(
        known=cond,
        known_params={"branches": known},
        known_operands=[0, *(i + 1 for i in known_inputs)],
        unknown=cond,
        unknown_params={"branches": later},
        unknown_operands=[
            0,
            *(i + 1 for i in order),
            *map(Residual, range(len(slots))),
            *(i + 1 for i, u in enumerate(flags) if u),
        ],
        residual_types=slots,
        out_unknown=out_unknown,
    )


def _residuals(half: Split) -> list[Var]:
    return list(half.unknown.inputs[: half.residual_count])


def _known_branch(half: Split, places: dict[Var, int], slots: Sequence[ArrayType]) -> Program:
    by_place = {place: var for var, place in places.items()}
    residuals: list[Atom] = [by_place[i] if i in by_place else literal(0, t) for i, t in enumerate(slots)]
    outputs = half.known.outputs[: half.out_unknown.count(False)]
    return condense(Program(half.known.name, half.known.inputs, half.known.eqns, [*outputs, *residuals]))


def _unknown_branch(
    half: Split, places: dict[Var, int], slots: Sequence[ArrayType], forwarded: Sequence[int]
) -> Program:
    residuals = _residuals(half)
    by_place = {place: var for var, place in places.items()}
    operands = [half.known.inputs[i] for i in forwarded]
    inputs = [
        *(v if v in residuals else Var(v.type) for v in operands),
        *(by_place[i] if i in by_place else Var(t) for i, t in enumerate(slots)),
        *half.unknown.inputs[half.residual_count :],
    ]
    return condense(Program(half.unknown.name, inputs, half.unknown.eqns, half.unknown.outputs))


cond = Cond()
