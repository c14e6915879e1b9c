"""Host calls: a Python function that gets concrete values whenever a program runs, un-jitted or compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.surroundings import require_host
from ...core.cost import Cost
from ...core.primitive import MultipleResults, Tangent
from ...core.program import Eqn, Params, Program
from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.host import as_host_call, from_words, to_words
from ...xla.kinds import is_jax_tracer

# A count is reported if its binary digits after the first few are zero: a few counts in each doubling.
_REPORTED_DIGITS = 5
# A call of Python code takes as long as this many additions of numbers in memory.
_PYTHON = 1e5


class UserCode(MultipleResults):
    """Base class of primitives that call Python code of the user, which may raise, even in compiled programs."""

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost(0.0, _PYTHON)


def calls_user_code(program: Program) -> bool:
    """Whether a program calls Python code of the user when it runs."""
    return any(isinstance(eqn.primitive, UserCode) for eqn in program.eqns) or any(
        map(calls_user_code, program.subprograms())
    )


class Closable:
    """Base class of watch functions that open something, which is closed when the program has finished or failed."""

    def __call__(self, *seen: Any) -> None:
        """Open it."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it, if it is open."""
        raise NotImplementedError


class Watch(UserCode):
    """The first `passed` operands, unchanged; `see` is called with the NumPy values of the others when this runs.

    Programs are pure, so the call stays only as long as something uses one of the results.  It may run more than once:
    when a derivative recomputes values, and when Python asks for a value while a function is traced.  Tangents and
    cotangents pass unseen.  Under `vmap` there is one call, with the values of the whole batch.

    `see` must be hashable; equal functions make equal programs.  It may be a `Closable`.  If `sparsely`, the first
    watched operand counts steps, and of large counts only some are seen, about three to six percent of the count
    apart.
    """

    name = "watch"

    def apply(
        self, see: Callable[..., Any], passed: Sequence[Any], seen: Sequence[Any], sparsely: bool = False
    ) -> list[Any]:
        """Record that `see` is called with the values of `seen`; return `passed`: the call stays where that is used."""
        return self.bind_all([*passed, *seen], {"see": see, "passed": len(passed), "sparsely": sparsely})

    def type_rule(self, *types: ArrayType, see: Callable[..., Any], passed: int, sparsely: bool) -> list[ArrayType]:
        if sparsely and (len(types) == passed or types[passed].dtype.kind not in "iu"):
            raise TypeError("a watch that sees only some steps needs an integer step count as its first value")
        return list(types[:passed])

    def numpy(self, *arrays: Any, see: Callable[..., Any], passed: int, sparsely: bool) -> list[Any]:
        seen = arrays[passed:]
        if not sparsely or _is_due(_largest(seen[0])):
            # The function may keep the values, so they must not change with an argument of the program.
            see(*(np.array(x)[()] for x in seen))
        return list(arrays[:passed])

    def xla(self, *arrays: Any, see: Callable[..., Any], passed: int, sparsely: bool) -> list[Any]:
        import jax
        from jax import lax

        require_host()
        seen = arrays[passed:]

        types = [(x.shape, np.dtype(x.dtype)) for x in seen]

        def call(*words: Any) -> None:
            see(*from_words(words, types))

        def report() -> None:
            jax.debug.callback(as_host_call(call), *map(to_words, seen))

        if not sparsely:
            report()
        elif is_jax_tracer(seen[0]):
            lax.cond(_is_due_to_xla(seen[0]), report, lambda: None)
        elif _is_due(_largest(seen[0])):
            report()
        return list(arrays[:passed])

    def after_running(self, params: Params) -> Callable[[], None] | None:
        see = params["see"]
        return see.close if isinstance(see, Closable) else None

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, passed: int, **params: Any) -> Any:
        return self(*primals, passed=passed, **params), list(tangents[:passed])

    def transpose(self, cotangents: Any, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        return [*cotangents, *[None] * (len(operands) - len(cotangents))]

    def batch(
        self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, passed: int, **params: Any
    ) -> Any:
        return self(*operands, passed=passed, **params), list(batched[:passed])

    def passes_on(self, operands: Sequence[Tracer], params: Params) -> Sequence[Tracer]:
        return operands[: params["passed"]]

    def prune(self, eqn: Eqn, used: Sequence[bool]) -> Eqn:
        kept = [i for i, u in enumerate(used) if u]
        operands = (*(eqn.operands[i] for i in kept), *eqn.operands[len(used) :])
        params = {**eqn.params, "passed": len(kept)}
        return Eqn(self, operands, params, tuple(eqn.outputs[i] for i in kept), eqn.line)


def _largest(counts: Any) -> int:
    return int(counts) if counts.ndim == 0 else int(counts.max(initial=0))


def _is_due(count: int) -> bool:
    """Whether a sparse watch reports a count."""
    return count % (1 << max(count.bit_length() - _REPORTED_DIGITS, 0)) == 0


def _is_due_to_xla(count: Any) -> Any:
    """The same for an array of counts, decided by the largest one."""
    from jax import numpy

    largest = numpy.max(count, initial=0).astype(np.int64)
    digits = numpy.ceil(numpy.log2(largest + 1.0)).astype(np.int64)
    return largest % (np.int64(1) << numpy.maximum(digits - _REPORTED_DIGITS, 0)) == 0


watch = Watch()
