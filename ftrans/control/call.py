"""Call: a sub-program that is compiled as a unit, recorded where a jitted function is called inside a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.on_numpy import Memory
from ..core.primitive import ProgramCall, Tangent
from ..core.program import Eqn, Params, Program, Var
from ..core.trace import Tracer, current_builder
from ..core.types import ArrayType
from ..run.stand_alone import Function, Written
from ..transforms.batch import batch as batch_program
from ..transforms.jvp import jvp as jvp_program
from ..transforms.simplify import condense, for_compiler
from ..transforms.split import Residual, SplitEqn
from ..transforms.split import split as split_program
from ..xla import Compiled, to_numpy
from .subprograms import chosen, repeated, rewired, specialized, spread, transposed, used_inputs, with_outputs


class Call(ProgramCall):
    """The results of `program` on the operands; outside of a compiled program, XLA compiles it on its own."""

    name = "call"
    memory = Memory.NEW

    def numpy(self, *arrays: Any, program: Program) -> list[Any]:
        compiled = program.derive("compiled", lambda: Compiled(for_compiler(program)))
        return [to_numpy(x) for x in compiled(*arrays)]

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        return Written(Function(for_compiler(params["program"])), {})

    def xla(self, *arrays: Any, program: Program) -> list[Any]:
        return list(program.derive("compiled", lambda: Compiled(for_compiler(program)))(*arrays))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, program: Program) -> Any:
        derived = jvp_program(program, tuple(t is not None for t in tangents), choices_last=False)
        outs = call(*primals, *(t for t in tangents if t is not None), program=derived.program)
        count = len(program.outputs)
        return outs[:count], spread(outs[count:], derived.out_active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> SplitEqn:
        halves = split_program(params["program"], tuple(unknown))
        count = halves.residual_count
        known_operands = [i for i, u in enumerate(unknown) if not u]
        unknown_operands = [i for i, u in enumerate(unknown) if u]
        return SplitEqn(
            known=call,
            known_params={"program": halves.known},
            known_operands=known_operands,
            unknown=call,
            unknown_params={"program": halves.unknown},
            unknown_operands=[*map(Residual, range(count)), *unknown_operands],
            residual_types=halves.unknown.in_types[:count],
            out_unknown=halves.out_unknown,
        )

    def transpose(self, cotangents: Any, operands: Sequence[Any], *, program: Program) -> Any:
        return transposed(program, cotangents, operands, lambda turned, known, cts: call(*known, *cts, program=turned))

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, program: Program) -> Any:
        derived = batch_program(program, size, tuple(batched))
        return call(*operands, program=derived.program), list(derived.out_batched)

    def simplify(self, operands: Sequence[Tracer], *, program: Program) -> list[Any] | None:
        """Drop operands and results that repeat others; derivatives of high order have many of them."""
        same = repeated(operands)
        kept = [x for x, i in zip(operands, same, strict=True) if i is None]
        short = condense(specialized(program, same))
        given = dict(zip(short.inputs, kept, strict=True))
        computed = dict.fromkeys(a for a in short.outputs if isinstance(a, Var) and a not in given)
        builder = current_builder()
        if builder is None or (len(kept) == len(operands) and len(computed) == len(program.outputs)):
            return None
        results = call(*kept, program=with_outputs(short, tuple(computed))) if computed else []
        found: dict[Any, Tracer] = given | dict(zip(computed, results, strict=True))
        return [found[a] if isinstance(a, Var) else Tracer(builder, a) for a in short.outputs]

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        program: Program = eqn.params["program"]
        wanted = [i for i, u in enumerate(used) if u]
        pruned = condense(rewired(program, range(len(program.inputs)), wanted))
        needed = used_inputs(pruned)
        kept = condense(rewired(pruned, [i for i, n in enumerate(needed) if n]))
        return Eqn(
            self, tuple(chosen(eqn.operands, needed)), {"program": kept}, tuple(chosen(eqn.outputs, used)), eqn.line
        )


call = Call()
