"""Checkpoint: a program whose intermediate values reverse mode recomputes instead of storing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.interpret import inline
from ...core.on_numpy import Memory
from ...core.primitive import ProgramHolder, Tangent
from ...core.program import Atom, Eqn, Params, Program, Var, needed_eqns
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.platforms import by_platform
from ...run.stand_alone import Function, Written
from ...run.straightline import function_to_run
from ...transforms.batch import batch as batch_program
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import condense
from ...transforms.simplify import simplify as simplify_program
from ...transforms.split import Residual, Result, SplitEqn
from ...transforms.split import split as split_program
from ...xla.execute import lower
from ...xla.kinds import is_jax_tracer
from ..subprograms import Flags, chosen, redundant, rewired, specialized, spread, transposed, used_inputs
from .recompute import Budget, Policy, in_segments, just_in_time, keep

# Recomputing up to this many bytes at once costs less than dividing the work.
_LEAST_SEGMENT = 1 << 20


class Checkpoint(ProgramHolder):
    """The results of `program` on the operands; `policy` says which intermediate values reverse mode keeps.

    The half that is linear in unknown operands stays one equation, which computes the other values `again`.  This
    recomputation must not be merged with the first computation, or its results would be kept after all.
    """

    name = "checkpoint"
    memory = Memory.NEW

    def apply(self, program: Program, operands: Sequence[Any], policy: Policy, again: bool = False) -> list[Any]:
        """Record the program as one equation."""
        return self.bind_all(operands, _params(program, policy, again))

    def numpy(self, *arrays: Any, program: Program, policy: Policy, again: bool) -> list[Any]:
        return function_to_run(program)(*arrays)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        return Written(Function(params["program"]), {})

    def xla(self, *arrays: Any, program: Program, policy: Policy, again: bool) -> list[Any]:
        from jax import jit

        if any(map(is_jax_tracer, arrays)):
            return _apart(program, arrays) if again else lower(program, arrays)
        return program.derive("compiled checkpoint", lambda: jit(lambda *xs: lower(program, xs)))(*arrays)

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, program: Program, policy: Policy, again: bool
    ) -> Any:
        derived = jvp_program(program, tuple(t is not None for t in tangents), choices_last=False)
        given = [t for t in tangents if t is not None]
        outs = self.apply(derived.program, [*primals, *given], policy, again)
        count = len(program.outputs)
        return outs[:count], spread(outs[count:], derived.out_active)

    def split(self, unknown: Sequence[bool], types: Sequence[ArrayType], **params: Any) -> SplitEqn:
        program: Program = params["program"]
        flags, policy, again = tuple(unknown), params["policy"], params["again"]
        return program.derive(("split checkpoint", flags, policy, again), lambda: _split(program, flags, policy, again))

    def transpose(
        self, cotangents: Any, operands: Sequence[Any], *, program: Program, policy: Policy, again: bool
    ) -> Any:
        def run(turned: Program, known: list[Tracer], cts: list[Tracer]) -> list[Tracer]:
            return self.apply(_late(turned, len(known)), [*known, *cts], policy, again)

        return transposed(program, cotangents, operands, run)

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        program: Program,
        policy: Policy,
        again: bool,
    ) -> Any:
        derived = batch_program(program, size, tuple(batched))
        return self.apply(derived.program, operands, policy, again), list(derived.out_batched)

    def simplify(
        self, operands: Sequence[Tracer], *, program: Program, policy: Policy, again: bool
    ) -> list[Any] | None:
        known = redundant(operands)
        simple = simplify_program(specialized(simplify_program(program), known))
        used = used_inputs(simple)
        simple = rewired(simple, [i for i, u in enumerate(used) if u])
        kept = chosen([x for x, k in zip(operands, known, strict=True) if k is None], used)
        if not simple.eqns:
            return inline(simple, kept)
        return None if simple is program else self.apply(simple, kept, policy, again)

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        program: Program = eqn.params["program"]
        wanted = [i for i, u in enumerate(used) if u]
        pruned = condense(rewired(program, range(len(program.inputs)), wanted))
        inputs = used_inputs(pruned)
        pruned = rewired(pruned, [i for i, u in enumerate(inputs) if u])
        return Eqn(
            self,
            tuple(chosen(eqn.operands, inputs)),
            {**eqn.params, "program": pruned},
            tuple(chosen(eqn.outputs, used)),
            eqn.line,
        )


def _apart(program: Program, arrays: Sequence[Any]) -> list[Any]:
    """Lower a program so that XLA cannot share its computations with those outside of it, or do them earlier.

    On CPUs XLA drops optimization barriers before its last elimination of common subexpressions, which does not look
    into branches.  So there the program is a branch of a condition that always holds.
    """
    from jax import jit, lax, numpy

    run = jit(lambda *xs: lower(program, xs))

    def run_as_branch(*xs: Any) -> list[Any]:
        real = [x for x in xs if x.size and numpy.isrealobj(x)]
        if not real:
            return run(*xs)
        # To read an element of an array that is divided over devices takes a message; small ones rarely are.
        source = min(real, key=lambda x: x.size)
        first = lax.convert_element_type(numpy.ravel(source)[0], numpy.int32)
        # XLA does not know that a remainder is less than its divisor.
        return lax.cond(lax.rem(first, numpy.int32(2)) < 2, run, zeros, *xs)

    def zeros(*_: Any) -> list[Any]:
        return [lax.full(t.shape, 0, t.dtype) for t in program.out_types]

    return list(by_platform(*lax.optimization_barrier(tuple(arrays)), cpu=run_as_branch, default=run))


def _params(program: Program, policy: Policy, again: bool) -> Params:
    """The parameters of an equation, in the order in which they are compared."""
    return {"program": program, "policy": policy, "again": again}


def _late(program: Program, known: int) -> Program:
    """The program, in which values that depend only on its first `known` inputs are computed as late as possible.

    XLA may run operations early, so the program is divided where a recomputation begins: each segment waits for a
    result of the one before.
    """

    def make() -> Program:
        given = program.inputs[known:]
        segments = in_segments(just_in_time(program.eqns, given), given, _LEAST_SEGMENT)
        eqns = [_segment(program, segments, i) for i in range(len(segments))] if len(segments) > 1 else segments[0]
        return Program(program.name, program.inputs, eqns, program.outputs)

    return program.derive(("late", known), make) if program.eqns else program


def _segment(program: Program, segments: Sequence[Sequence[Eqn]], index: int) -> Eqn:
    """One of the segments as one equation."""
    eqns = segments[index]
    made = {v: None for eqn in eqns for v in eqn.outputs}
    inputs = dict.fromkeys(a for eqn in eqns for a in eqn.operands if isinstance(a, Var) and a not in made)
    later = {a for s in segments[index + 1 :] for eqn in s for a in eqn.operands} | set(program.outputs)
    outputs = [v for v in made if v in later]
    # The enclosing program decides what is kept of it.
    params = _params(Program(program.name, list(inputs), eqns, outputs), "everything", True)
    return Eqn(checkpoint, tuple(inputs), params, tuple(outputs), eqns[0].line)


def _split(program: Program, unknown: Flags, policy: Policy, again: bool) -> SplitEqn:
    if isinstance(policy, Budget):
        # Values that simplification removes need no room in the budget.
        program = condense(program)
    halves = split_program(program, unknown)
    known, later = halves.known, halves.unknown
    kept = keep(known, later.inputs[: halves.residual_count], policy)
    known_operands = [i for i, u in enumerate(unknown) if not u]
    places: dict[Atom, int] = dict(zip(known.inputs, known_operands, strict=True))
    known_results = [i for i, u in enumerate(halves.out_unknown) if not u]
    results: dict[Atom, int] = dict(zip(known.outputs, known_results, strict=False))
    saved = [v for v in kept.values if v not in places and v not in results]

    def source(v: Var) -> int | Residual | Result:
        if v in places:
            return places[v]
        return Result(results[v]) if v in results else Residual(saved.index(v))

    unknown_inputs = later.inputs[halves.residual_count :]
    eqns = just_in_time([*kept.again, *later.eqns], unknown_inputs)
    # A budget is for the first derivative. Its halves keep only their inputs, which is always possible.
    policy = "nothing" if isinstance(policy, Budget) else policy
    outputs = [*known.outputs[: len(known_results)], *saved]
    return SplitEqn(
        known=checkpoint,
        known_params=_params(
            Program(known.name, known.inputs, needed_eqns(known.eqns, outputs), outputs), policy, again
        ),
        known_operands=known_operands,
        unknown=checkpoint,
        unknown_params=_params(Program(later.name, [*kept.values, *unknown_inputs], eqns, later.outputs), policy, True),
        unknown_operands=[*map(source, kept.values), *(i for i, u in enumerate(unknown) if u)],
        residual_types=[v.type for v in saved],
        out_unknown=halves.out_unknown,
    )


checkpoint = Checkpoint()
