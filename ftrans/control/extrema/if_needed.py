"""If needed: the results of a program where a flag is set, zeros elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.cost import Cost
from ...core.on_numpy import Memory
from ...core.primitive import ProgramHolder, Tangent
from ...core.program import Eqn, Params, Program, Var, needed_eqns
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.literals import full_like
from ...ops.reductions import reduce_or
from ...run.evaluate import evaluate
from ...run.stand_alone import Function, Written
from ...transforms.batch import batch as batch_program
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import condense
from ...transforms.simplify import simplify as simplify_program
from ...transforms.split import Residual, SplitEqn
from ...transforms.split import split as split_program
from ...xla.execute import lower
from ..subprograms import chosen, lanewise_select, rewired, spread, transposed, used_inputs

FLAG = ArrayType((), np.bool_)


class IfNeeded(ProgramHolder):
    """The results of `program` on the operands if the first, a boolean that the program ignores, is true; else zeros.

    Unlike a branch it is one call of one program, so what transformations know of such calls, they know of this one.
    A batch of flags runs the program if any of them is set.
    """

    name = "if_needed"
    memory = Memory.NEW

    def numpy(self, flag: Any, *arrays: Any, program: Program) -> list[Any]:
        if flag:
            return evaluate(program, (flag, *arrays))
        return [np.zeros(t.shape, t.dtype)[()] for t in program.out_types]

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        def needed(flag: Any, *arrays: Any, function: Callable[..., list[Any]], zeros: Sequence[Any]) -> list[Any]:
            return function(flag, *arrays) if flag else [np.zeros(shape, dtype)[()] for shape, dtype in zeros]

        program: Program = params["program"]
        zeros = tuple((t.shape, t.dtype) for t in program.out_types)
        return Written(needed, {"function": Function(program), "zeros": zeros})

    def xla(self, flag: Any, *arrays: Any, program: Program) -> list[Any]:
        from jax import lax

        def zeros(*_: Any) -> list[Any]:
            return [lax.full(t.shape, 0, t.dtype) for t in program.out_types]

        return list(lax.cond(flag, lambda *xs: lower(program, (flag, *xs)), zeros, *arrays))

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        # The program is for what is rare.
        return Cost.moves(sum(t.size for t in results))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, program: Program) -> Any:
        derived = jvp_program(program, tuple(t is not None for t in tangents), choices_last=False)
        outs = self(*primals, *(t for t in tangents if t is not None), program=derived.program)
        count = len(program.outputs)
        return outs[:count], spread(outs[count:], derived.out_active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], *, program: Program) -> SplitEqn:
        return program.derive(("split if needed", tuple(unknown)), lambda: _split(program, tuple(unknown)))

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, program: Program) -> Any:
        return transposed(program, cotangents, operands, lambda turned, known, cts: self(*known, *cts, program=turned))

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, program: Program) -> Any:
        flag, *xs = operands
        wanted = (batched[0],) * len(program.outputs)
        derived = batch_program(program, size, (False, *batched[1:]), wanted)
        if not batched[0]:
            return self(flag, *xs, program=derived.program), list(derived.out_batched)
        outs = self(reduce_or(flag, axes=(0,)), *xs, program=derived.program)
        return [lanewise_select(flag, y, full_like(y, 0)) for y in outs], list(derived.out_batched)

    def simplify(self, operands: Sequence[Tracer], *, program: Program) -> list[Tracer] | None:
        simple = simplify_program(program)
        return None if simple is program else self(*operands, program=simple)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        program: Program = eqn.params["program"]
        wanted = [i for i, u in enumerate(used) if u]
        pruned = condense(rewired(program, range(len(program.inputs)), wanted))
        kept = [i for i, u in enumerate(used_inputs(pruned)) if u or i == 0]
        operands = tuple(eqn.operands[i] for i in kept)
        return Eqn(self, operands, {"program": rewired(pruned, kept)}, tuple(chosen(eqn.outputs, used)), eqn.line)


def _split(program: Program, unknown: tuple[bool, ...]) -> SplitEqn:
    halves = split_program(program, unknown)
    known, later = halves.known, halves.unknown
    residuals = later.inputs[: halves.residual_count]
    known_operands = [i for i, u in enumerate(unknown) if not u]
    # Residuals that are operands need no result of their own.
    places = dict(zip(known.inputs, known_operands, strict=True))
    saved = [v for v in residuals if v not in places]
    outputs = [*known.outputs[: halves.out_unknown.count(False)], *saved]
    return SplitEqn(
        known=if_needed,
        known_params={"program": Program(known.name, known.inputs, needed_eqns(known.eqns, outputs), outputs)},
        known_operands=known_operands,
        unknown=if_needed,
        unknown_params={"program": Program(later.name, [Var(FLAG), *later.inputs], later.eqns, later.outputs)},
        unknown_operands=[
            0,
            *(places[v] if v in places else Residual(saved.index(v)) for v in residuals),
            *(i for i, u in enumerate(unknown) if u),
        ],
        residual_types=[v.type for v in saved],
        out_unknown=halves.out_unknown,
    )


if_needed = IfNeeded()
