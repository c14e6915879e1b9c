"""Loops that run only once: a rewind sweeps back over the states that another run of its loop has saved.

Reverse mode turns a while loop into the loop, which computes its results, and a rewind, which runs the same loop again
and sweeps back.  In a program that is about to run, equal loops are found: each rewind is divided into a `keep` and a
`sweep`, and the `keep` replaces the first loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.interpret import inline
from ...core.program import Atom, Eqn, Params, Program, Var, literal
from ...core.trace import Builder, Tracer, building
from ...transforms.simplify import simplify
from ..checkpoints.schedule import DEFAULT_CHECKPOINTS
from ..subprograms import Flags, cut, rewired, used_inputs
from .kept_states import SAVED, keep, keeps_everything, saved_types, sweep
from .rewind import rewind
from .steps import needed_carries
from .sweep_rows import Rows, rows_of
from .value_numbers import ValueNumbers
from .while_loop import while_


class Loop:
    """The loop of a `while` or a `rewind` among the equations of a program.

    Attributes:
        index: the index of the equation.
        eqn: the equation.
        cond: the condition.
        body: the step.
        of_cond: constants of the condition.
        of_body: constants of the step.
        first: the initial carry.
        reverse: `max_steps` and `checkpoints`.
    """

    def __init__(self, index: int, eqn: Eqn) -> None:
        self.index, self.eqn = index, eqn
        self.cond: Program = eqn.params["cond"]
        self.body: Program = eqn.params["body"]
        self.of_cond, self.of_body, rest = cut(eqn.operands, eqn.params["cond_consts"], eqn.params["body_consts"])
        self.first = rest[len(rest) - len(self.body.outputs) :]
        self.reverse = eqn.params.get("max_steps"), eqn.params.get("checkpoints")


class RewindLoop(Loop):
    """The loop of a `rewind`.

    Attributes:
        back: the backward step.
        of_back: its constants.
        carry: the initial carry of the sweep.
    """

    def __init__(self, index: int, eqn: Eqn) -> None:
        super().__init__(index, eqn)
        self.back: Program = eqn.params["back"]
        rest = eqn.operands[len(self.of_cond) + len(self.of_body) :]
        self.of_back, self.first, self.carry = cut(rest, eqn.params["back_consts"], eqn.params["states"])


class Reader(NamedTuple):
    """A rewind that reads the saved states of a loop, and for each of its states the equal member of that loop."""

    rewind: RewindLoop
    places: list[int]


def share_states(program: Program) -> Program:
    """The program with every rewind divided, so that the first run of its loop saves the states for it."""
    loops: list[Loop] = []
    waiting: dict[int, RewindLoop] = {}
    for index, eqn in enumerate(program.eqns):
        if eqn.primitive is while_:
            loops.append(Loop(index, eqn))
        elif eqn.primitive is rewind:
            waiting[index] = RewindLoop(index, eqn)
    loops += waiting.values()
    made_at = {v: index for index, eqn in enumerate(program.eqns) for v in eqn.outputs}
    numbers = ValueNumbers()
    instead: dict[int, list[Eqn]] = {}

    def ready(atoms: Sequence[Atom]) -> int:
        """The index of the first equation before which all these are known."""
        return max((1 + made_at[a] for a in atoms if isinstance(a, Var) and a in made_at), default=0)

    for loop in loops:
        if loop.index in instead:
            continue
        start = ready([*loop.of_cond, *loop.of_body, *loop.first])
        readers = [
            Reader(other, places)
            for other in waiting.values()
            if other.index >= start and (places := _same_members(loop, other, numbers)) is not None
        ]
        if not readers:
            continue
        start = min(loop.index, *(reader.rewind.index for reader in readers))
        late = [tuple(ready([a]) > start for a in reader.rewind.of_back) for reader in readers]
        keeping, sweeping = _divided(loop, readers, late)
        instead[loop.index] = []
        for reader, eqn in zip(readers, sweeping, strict=True):
            del waiting[reader.rewind.index]
            instead[reader.rewind.index] = [eqn]
        instead[start] = [keeping, *instead[start]]
    eqns = [q for index, eqn in enumerate(program.eqns) for q in instead.get(index, [eqn])]
    return Program(program.name, program.inputs, eqns, program.outputs)


def _same_members(loop: Loop, other: Loop, numbers: ValueNumbers) -> list[int] | None:
    """For each member of the other loop's carry, the member of this one that always equals it; None if steps differ."""
    if loop.reverse != other.reverse or not set(loop.first).issuperset(other.first):
        return None

    def results(of: Loop, program: Program, consts: Sequence[Atom], classes: Sequence[int]) -> list[int]:
        members = [numbers.number(("member", c)) for c in classes]
        return numbers.of_outputs(program, [*map(numbers.number, consts), *members])

    # Members are in one class until their initial values or a step tell them apart.
    both = loop, other
    classes = [[numbers.number(a) for a in of.first] for of in both]
    while True:
        steps = [results(of, of.body, of.of_body, c) for of, c in zip(both, classes, strict=True)]
        finer = [list(map(numbers.number, zip(c, s, strict=True))) for c, s in zip(classes, steps, strict=True)]
        if len({*finer[0], *finer[1]}) == len({*classes[0], *classes[1]}):
            break
        classes = finer
    tests = [results(of, of.cond, of.of_cond, c) for of, c in zip(both, classes, strict=True)]
    if tests[0] != tests[1] or not set(classes[0]).issuperset(classes[1]):
        return None
    return [classes[0].index(c) for c in classes[1]]


def _divided(loop: Loop, readers: Sequence[Reader], late: Sequence[Flags]) -> tuple[Eqn, list[Eqn]]:
    """The equation that runs a loop and saves what these rewinds need, and the sweeps of the rewinds.

    Args:
        loop: the loop.
        readers: the rewinds.
        late: for each, which constants of its backward step are not yet known where the loop runs.
    """
    max_steps, checkpoints = loop.reverse
    if keeps_everything(max_steps, checkpoints):
        rows = [rows_of(r.rewind.back, f, len(r.places), max_steps or 0) for r, f in zip(readers, late, strict=True)]
        body, of_body, kept, members = _with_rows(loop, readers, rows)
        sweeps = [_sweep_rows(reader, row, m) for reader, row, m in zip(readers, rows, members, strict=True)]
    else:
        steps = [_step_of_needed(reader.rewind) for reader in readers]
        kept = list(
            dict.fromkeys(reader.places[i] for reader, (states, _) in zip(readers, steps, strict=True) for i in states)
        )
        body, of_body = loop.body, loop.of_body
        sweeps = [_sweep_checkpoints(reader, kept, *s) for reader, s in zip(readers, steps, strict=True)]
    params = {
        "cond": loop.cond,
        "body": body,
        "cond_consts": len(loop.of_cond),
        "body_consts": len(of_body),
        "kept": tuple(kept),
        "max_steps": max_steps,
        "checkpoints": checkpoints,
    }
    final = [Var(a.type) for a in loop.first] if isinstance(loop, RewindLoop) else loop.eqn.outputs
    operands = (*loop.of_cond, *of_body, *loop.first)
    saved, types = Var(SAVED), saved_types(body, len(loop.first), kept)
    sweeping = []
    for reader, (consts, special) in zip(readers, sweeps, strict=True):
        eqn = reader.rewind.eqn
        shared = {"types": types, "checkpoints": checkpoints, "is_last": reader is readers[-1]}
        sweeping.append(
            Eqn(sweep, (saved, *consts, *reader.rewind.carry), {**special, **shared}, eqn.outputs, eqn.line)
        )
    return Eqn(keep, operands, params, (*final, saved), loop.eqn.line), sweeping


def _with_rows(
    loop: Loop, readers: Sequence[Reader], rows: Sequence[Rows]
) -> tuple[Program, list[Atom], list[int], list[list[int]]]:
    """The step of a loop that also computes the rows of sweeps.

    Returns:
        The step, its constants, which members of the carry are in the rows, and which of the saved values are the row
        of each sweep.
    """
    used = [used_inputs(row.row)[: len(reader.rewind.of_back)] for reader, row in zip(readers, rows, strict=True)]
    consts = dict.fromkeys(loop.of_body)
    for reader, flags in zip(readers, used, strict=True):
        consts.update((a, None) for a, u in zip(reader.rewind.of_back, flags, strict=True) if u)
    builder = Builder([a.type for a in (*consts, *loop.first)])
    with building(builder):
        of_body, carry = cut(builder.inputs(), len(consts))
        values = dict(zip(consts, of_body, strict=True))
        outs = inline(loop.body, [*(values[a] for a in loop.of_body), *carry])
        counts = [len(outs)]
        for reader, row in zip(readers, rows, strict=True):
            fixed = [values.get(a, Tracer(builder, literal(0, a.type))) for a in reader.rewind.of_back]
            outs += inline(row.row, [*fixed, *(carry[j] for j in reader.places)])
            counts.append(len(outs))
        program = simplify(builder.finish(outs, loop.body.name))
    kept = list(dict.fromkeys(reader.places[i] for reader, row in zip(readers, rows, strict=True) for i in row.states))
    rest = list(dict.fromkeys(program.outputs[counts[0] :]))
    body = Program(program.name, program.inputs, program.eqns, [*program.outputs[: counts[0]], *rest])
    members = [
        [
            *(kept.index(reader.places[i]) for i in row.states),
            *(len(kept) + rest.index(a) for a in program.outputs[start:stop]),
        ]
        for reader, row, start, stop in zip(readers, rows, counts[:-1], counts[1:], strict=True)
    ]
    return body, list(consts), kept, members


def _sweep_rows(reader: Reader, row: Rows, members: Sequence[int]) -> tuple[list[Atom], Params]:
    """The constants of a sweep over rows, and its parameters."""
    consts = reader.rewind.of_back
    params = {"step": None, "row": None, "undo": row.undo, "members": tuple(members)}
    return consts, {**params, "step_consts": 0, "undo_consts": len(consts)}


def _step_of_needed(loop: RewindLoop) -> tuple[list[int], Program]:
    """The states that the backward step depends on, and the step of these alone; the others serve the condition."""
    backs, states = len(loop.of_back), len(loop.first)
    seen = used_inputs(loop.back)[backs : backs + states]
    bodies = len(loop.of_body)
    needed, step = needed_carries(loop.body, bodies, seen)
    places = [i for i, n in enumerate(needed) if n]
    return places, rewired(step, [*range(bodies), *(bodies + i for i in places)])


def _sweep_checkpoints(
    reader: Reader, kept: Sequence[int], states: Sequence[int], step: Program
) -> tuple[list[Atom], Params]:
    """The constants of a sweep over checkpoints, and its parameters."""
    loop = reader.rewind
    backs = len(loop.of_back)
    rows = rows_of(loop.back, (False,) * backs, len(loop.first), loop.reverse[1] or DEFAULT_CHECKPOINTS)
    rest = range(backs + len(rows.states), len(rows.undo.inputs))
    in_undo = [backs + rows.states.index(i) if i in rows.states else loop.first[i].type for i in states]
    return [*loop.of_body, *loop.of_back], {
        "step": step,
        "row": rewired(rows.row, [*range(backs), *(backs + i for i in states)]),
        "undo": rewired(rows.undo, [*range(backs), *in_undo, *rest]),
        "members": tuple(kept.index(reader.places[i]) for i in states),
        "step_consts": len(loop.of_body),
        "undo_consts": backs,
    }
