"""Keep and Sweep, the two halves in which a `rewind` runs: a loop that saves its states, and the sweep back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.on_numpy import Memory
from ...core.primitive import MultipleResults, RunOnly
from ...core.program import Params, Program
from ...core.types import ArrayType
from ...run.stand_alone import Function, Written
from ...run.straightline import function_to_run
from ...xla.execute import lower
from ...xla.kinds import is_jax_tracer
from ..checkpoints.schedule import (
    DEFAULT_CHECKPOINTS,
    keep_all,
    keep_checkpoints,
    sweep_all,
    sweep_checkpoints,
)
from ..subprograms import cut
from . import plain
from .in_place import lower_step
from .row_buffers import RowBuffers

# The type of saved states, which each evaluator represents in its own way.
SAVED = ArrayType((), np.object_)


def keeps_everything(max_steps: int | None, checkpoints: int | None) -> bool:
    """Whether a loop keeps something of each step, rather than checkpoints."""
    return max_steps is not None and checkpoints is None


def saved_types(body: Program, carries: int, kept: Sequence[int]) -> tuple[ArrayType, ...]:
    """The types of the row that a loop saves of a step: members of the carry, then further results of the body."""
    return (*(body.out_types[i] for i in kept), *body.out_types[carries:])


class Keep(RunOnly, MultipleResults):
    """A while loop that saves states for backward sweeps.

    Operands are those of `While`; results are the final carry, then the saved values: a row for each step, of the
    members of its initial carry listed in `kept` and the results of `body` after the next carry; or checkpoints of
    these members.
    """

    name = "keep"
    memory = Memory.NEW

    def type_rule(
        self, *types: ArrayType, cond: Program, body: Program, cond_consts: int, body_consts: int, **params: Any
    ) -> list[ArrayType]:
        return [*types[cond_consts + body_consts :], SAVED]

    def numpy(
        self,
        *arrays: Any,
        cond: Program,
        body: Program,
        cond_consts: int,
        body_consts: int,
        kept: tuple[int, ...],
        max_steps: int | None,
        checkpoints: int | None,
    ) -> list[Any]:
        return plain.keep_states(
            *arrays,
            holds=function_to_run(cond),
            step=function_to_run(body),
            cond_consts=cond_consts,
            body_consts=body_consts,
            kept=kept,
            keeps_everything=keeps_everything(max_steps, checkpoints),
            checkpoints=checkpoints,
        )

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        counts = {name: params[name] for name in ("cond_consts", "body_consts", "kept", "checkpoints")}
        every = keeps_everything(params["max_steps"], params["checkpoints"])
        functions = {"holds": Function(params["cond"]), "step": Function(params["body"])}
        return Written(plain.keep_states, {**functions, **counts, "keeps_everything": every})

    def xla(
        self,
        *arrays: Any,
        cond: Program,
        body: Program,
        cond_consts: int,
        body_consts: int,
        kept: tuple[int, ...],
        max_steps: int | None,
        checkpoints: int | None,
    ) -> list[Any]:
        def loop(*arrays: Any) -> list[Any]:
            of_cond, of_body, first = cut(arrays, cond_consts, body_consts)
            goes_on: Callable[[Any], Any] = lambda carry: lower(cond, [*of_cond, *carry])[0]  # noqa: E731
            members: Callable[[Any], list[Any]] = lambda carry: [carry[i] for i in kept]  # noqa: E731

            def step(carry: Sequence[Any]) -> tuple[list[Any], list[Any]]:
                outs, row = cut(lower_step(body, [*of_body, *carry]), len(first))
                return outs, [*members(carry), *row]

            rows = RowBuffers(saved_types(body, len(first), kept))
            if keeps_everything(max_steps, checkpoints):
                carry, saved = keep_all(first, goes_on, step, rows, max_steps or 0)
            else:
                most = checkpoints or DEFAULT_CHECKPOINTS
                carry, saved = keep_checkpoints(first, goes_on, lambda carry: step(carry)[0], members, rows, most)
            return [*carry, saved]

        return _run(loop, arrays, body, (cond, cond_consts, body_consts, kept, max_steps, checkpoints))


class Sweep(RunOnly, MultipleResults):
    """The backward sweep of a `Rewind` over the values that a `Keep` has saved.

    Operands are the saved values, constants of `step`, of `undo`, and the initial carry; results are the final carry.
    `undo` takes its constants, a row and the carry.  `types` are the types of the saved values; `members` says which of
    them this sweep uses.

    If rows are saved, `members` are the row, and `step` and `row` are None.  If checkpoints are saved, `members` are
    the state, which begins the row; `step` computes the next state, and `row`, a program of the constants of `undo` and
    the state, computes the rest of the row.  The last sweep over the saved values (`is_last`) may free them as it goes.
    """

    name = "sweep"
    memory = Memory.NEW

    def type_rule(self, *types: ArrayType, step_consts: int, undo_consts: int, **params: Any) -> list[ArrayType]:
        return list(types[1 + step_consts + undo_consts :])

    def numpy(
        self,
        saved: Any,
        *arrays: Any,
        step: Program | None,
        row: Program | None,
        undo: Program,
        types: tuple[ArrayType, ...],
        members: tuple[int, ...],
        step_consts: int,
        undo_consts: int,
        checkpoints: int | None,
        is_last: bool,
    ) -> list[Any]:
        return plain.sweep_back(
            saved,
            *arrays,
            onwards=step and function_to_run(step),
            rest=row and function_to_run(row),
            undo=function_to_run(undo),
            members=members,
            step_consts=step_consts,
            undo_consts=undo_consts,
            is_last=is_last,
        )

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        counts = {name: params[name] for name in ("members", "step_consts", "undo_consts", "is_last")}
        step, row = (params[name] and Function(params[name]) for name in ("step", "row"))
        return Written(plain.sweep_back, {"onwards": step, "rest": row, "undo": Function(params["undo"]), **counts})

    def xla(
        self,
        saved: Any,
        *arrays: Any,
        step: Program | None,
        row: Program | None,
        undo: Program,
        types: tuple[ArrayType, ...],
        members: tuple[int, ...],
        step_consts: int,
        undo_consts: int,
        checkpoints: int | None,
        is_last: bool,
    ) -> list[Any]:
        def sweep(saved: Any, *arrays: Any) -> list[Any]:
            of_step, of_undo, carry = cut(arrays, step_consts, undo_consts)
            saved_rows, arrays_of_members = RowBuffers(types).part(saved.arrays, members)
            saved = saved._replace(arrays=arrays_of_members)
            back: Callable[[Any, Any], list[Any]] = lambda row, carry: lower_step(undo, [*of_undo, *row, *carry])  # noqa: E731
            if step is None or row is None:
                return sweep_all(saved, saved_rows, carry, back)
            return sweep_checkpoints(
                saved,
                saved_rows,
                carry,
                lambda state: lower_step(step, [*of_step, *state]),
                lambda state: [*state, *lower(row, [*of_undo, *state])],
                RowBuffers([*step.out_types, *row.out_types]),
                back,
                checkpoints or DEFAULT_CHECKPOINTS,
            )

        return _run(sweep, (saved, *arrays), undo, (step, row, types, members, step_consts, undo_consts, checkpoints))


keep = Keep()
sweep = Sweep()


def _run(loop: Callable[..., list[Any]], operands: Sequence[Any], program: Program, key: tuple[Any, ...]) -> list[Any]:
    """Run an XLA loop; outside of a compiled program, it is compiled once for `program` and `key`."""
    from jax import jit, tree

    if any(map(is_jax_tracer, tree.leaves(operands))):
        return loop(*operands)
    return program.derive(("compiled", loop.__qualname__, *key), lambda: jit(loop))(*operands)
