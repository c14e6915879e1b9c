"""Where fusion ends: values that XLA on a CPU is to compute once, although several equations use them.

XLA fuses an operation into each one that uses its result, so what several of them use is computed several times, and
what lies behind it again in each of these.  In long derivatives, which share much, that takes most of the time.  An
`optimization_barrier` ends fusion, but XLA removes barriers before it fuses on a CPU, unless it is told not to; this
can only be said of a whole executable.  Cheap values are left to fusion, since a value that is kept is written to
memory and read again.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from ..base.surroundings import in_loop
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import Moving, ProgramCall
from ..core.program import Atom, Eqn, Program, Var, programs_in

# Limits that suit most long derivatives: a quotient may be computed twice, but no function such as sin.  Large arrays
# take longer to be written and read again, so more of them may be repeated.
_USUAL_LIMIT, _LIMIT_OF_LARGE = 8.0, 20.0
# A program is large whose equations have more elements than this together: a call takes about a millisecond.
_LARGE = 2_000_000

# By this option of the compiler barriers stay.
OPTIONS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
# By this one, kernels run one after the other.  Barriers make many short ones of few long ones, and handing them from
# thread to thread takes longer than most of them; those that are worth several threads are split by themselves.
IN_TURN = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}

_most_repeated: ContextVar[float | None] = ContextVar("most repeated", default=None)


def most_repeated() -> float | None:
    """The limit for what is being lowered: see `kept_values`."""
    return _most_repeated.get()


@contextmanager
def repeating_at_most(limit: float | None) -> Iterator[None]:
    """Lower programs with barriers behind their `kept_values`; None for no barriers."""
    token = _most_repeated.set(limit)
    try:
        yield
    finally:
        _most_repeated.reset(token)


@contextmanager
def _lowering_loop() -> Iterator[None]:
    with in_loop(), repeating_at_most(None):
        yield


def around(eqn: Eqn) -> AbstractContextManager[None]:
    """A context for lowering an equation.

    XLA takes barriers in what is called, which it puts in place of the call, but not in every loop.
    """
    if isinstance(eqn.primitive, ProgramCall):
        return nullcontext()
    return _lowering_loop() if [*programs_in(eqn.params)] else repeating_at_most(None)


@functools.cache
def can_keep_barriers() -> bool:
    """Whether the executables of this process can: JAX compiles for a CPU, and XLA knows the option."""
    import jax

    return jax.default_backend() == "cpu" and _knows(OPTIONS)


def usual_limit(program: Program) -> float:
    """A limit for the work that fusion may repeat that suits most programs of this size (see `kept_values`)."""
    return _LIMIT_OF_LARGE if _is_large(program) else _USUAL_LIMIT


def options_with_barriers(program: Program) -> dict[str, str]:
    """The options of the compiler for a program whose barriers are to stay."""
    return {**OPTIONS, **(IN_TURN if not _is_large(program) and _knows_in_turn() else {})}


def _is_large(program: Program) -> bool:
    return sum(v.type.size for eqn in program.eqns for v in eqn.outputs) > _LARGE


@functools.cache
def _knows_in_turn() -> bool:
    return _knows(IN_TURN)


def _knows(options: dict[str, str]) -> bool:
    """Whether XLA takes these options, and the user has given it no others of their names."""
    import jax

    if any(name in os.environ.get("XLA_FLAGS", "") for name in options):
        return False
    try:
        jax.jit(lambda: 0.0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def kept_values(program: Program, limit: float | None = None) -> frozenset[Var]:
    """The values of a program, not of its sub-programs, that fusion is not to compute more than once.

    Args:
        program: the program, in executable form.
        limit: the most work that may be repeated for an element, as multiples of an addition; None for that of the
            program that is being lowered.
    """
    limit = _most_repeated.get() if limit is None else limit
    if limit is None:
        return frozenset()
    return program.derive(("kept values", limit), lambda: _kept_values(program, limit))


def has_kept_values(program: Program, limit: float) -> bool:
    """Whether a program, or one that it calls, has values that fusion is to compute once."""
    form = program.executable()
    called = [sub for e in form.eqns if isinstance(e.primitive, ProgramCall) for sub in programs_in(e.params)]
    return bool(kept_values(form, limit)) or any(has_kept_values(sub, limit) for sub in called)


def may_have_barriers(program: Program) -> bool:
    """Whether there may be barriers in what a program is lowered to that are not from here.

    In loops, XLA cannot compile a barrier that stays.  Those of checkpoints, of JAX's own functions and of code for JAX
    may be there; they are not where all equations are known not to have loops.
    """
    for eqn in program.executable().eqns:
        programs = [*programs_in(eqn.params)]
        if not programs:
            if _cost(eqn) is None:
                return True
        elif not isinstance(eqn.primitive, ProgramCall) or any(map(may_have_barriers, programs)):
            return True
    return False


def _kept_values(program: Program, limit: float) -> frozenset[Var]:
    users = Counter(a for eqn in program.eqns for a in dict.fromkeys(eqn.operands) if isinstance(a, Var))
    users.update(a for a in dict.fromkeys(program.outputs) if isinstance(a, Var))
    # The work for an element of a value, from the inputs or the last values that are in memory.
    work: dict[Atom, float] = {}
    kept = []
    for eqn in program.eqns:
        if not _can_be_repeated(eqn):
            continue
        (result,) = eqn.outputs
        total = _work(eqn) + sum(work.get(a, 0.0) * _share(eqn, a) for a in dict.fromkeys(eqn.operands))
        if total * (users[result] - 1) > limit:
            kept.append(result)
        else:
            work[result] = total
    return frozenset(kept)


def _can_be_repeated(eqn: Eqn) -> bool:
    """Whether XLA fuses an equation into those that use its result, and it is no number, computed in no time."""
    primitive = eqn.primitive
    return primitive.fuses and primitive.memory is not Memory.WRITES and eqn.outputs[0].type.size > 1


def _share(eqn: Eqn, operand: Atom) -> float:
    """How many elements of an operand are computed for one of the result."""
    ratio = operand.type.size / max(eqn.outputs[0].type.size, 1)
    # A slice takes some of them; a sum takes all.
    return min(ratio, 1.0) if isinstance(eqn.primitive, Moving) else ratio


def _work(eqn: Eqn) -> float:
    """The work for one element of the result."""
    cost = _cost(eqn)
    return 0.0 if cost is None else cost.time / max(eqn.outputs[0].type.size, 1)


def _cost(eqn: Eqn) -> Cost | None:
    types, results = [a.type for a in eqn.operands], [v.type for v in eqn.outputs]
    cost: Cost | None = eqn.primitive.cost(types, results, eqn.params)
    return cost
