"""Loop bodies reordered so that XLA can update arrays in place.

XLA writes to an array of a loop in place, rather than to a copy, only if nothing reads the old elements afterwards.  On
CPUs it fuses a read into every operation that uses its result, also into those after the write, and then copies the
whole array in each step.  A read inside a branch stays there, and a write that depends on the branch comes after it.
A read between two writes of one step is fused with the first of them, which causes a copy as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.primitive import MultipleResults, Primitive, RunOnly, SingleResult
from ...core.program import Atom, Eqn, Params, Program, Var
from ...core.types import ArrayType
from ...ops.indexing import gather
from ...ops.moving_slices import dynamic_slice
from ...ops.parts import slice_
from ...ops.platforms import by_platform
from ...run.memory import is_write
from ...run.stand_alone import Written
from ...transforms.simplify import for_compiler
from ...xla.execute import lower

# Copying smaller arrays costs less than a branch.
_FEWEST_BYTES = 1 << 10
_TOKEN = ArrayType((), np.int64)


class ReadFirst(RunOnly, MultipleResults):
    """A read that finishes before any operation that depends on its second result, which is 0.

    Operands are a number, which selects a branch, and those of the read.

    Params:
        read: the primitive that reads.
        params: its parameters.
    """

    name = "read_first"

    def type_rule(self, number: ArrayType, *types: ArrayType, read: Primitive, params: tuple[Any, ...]) -> Any:
        return [*read.output_types(types, dict(params)), _TOKEN]

    def numpy(self, number: Any, *arrays: Any, read: Primitive, params: tuple[Any, ...]) -> list[Any]:
        return [read.numpy(*arrays, **dict(params)), np.int64(0)]

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        def read_first(number: Any, *arrays: Any, read: Callable[..., Any], params: dict[str, Any]) -> list[Any]:
            return [read(*arrays, **params), np.int64(0)]

        return Written(read_first, {"read": params["read"].numpy, "params": dict(params["params"])})

    def xla(self, number: Any, *arrays: Any, read: Primitive, params: tuple[Any, ...]) -> Any:
        from jax import lax

        def plain(number: Any, *arrays: Any) -> Any:
            return read.xla(*arrays, **dict(params)), lax.full((), 0, _TOKEN.dtype)

        def in_branch(number: Any, *arrays: Any) -> Any:
            (type,) = read.output_types([ArrayType(x.shape, x.dtype) for x in arrays], dict(params))

            def never(*arrays: Any) -> Any:
                return lax.full(type.shape, 0, type.dtype), lax.full((), 1, _TOKEN.dtype)

            # XLA cannot know that the number is never this small.
            is_possible = number.astype(_TOKEN.dtype) > np.iinfo(_TOKEN.dtype).min + 1
            return lax.cond(is_possible, lambda *xs: plain(number, *xs), never, *arrays)

        return by_platform(number, *arrays, cpu=in_branch, default=plain)


class WriteAfter(RunOnly, SingleResult):
    """A write after reads: operands are those of the write, then the second results of the `read_first` equations.

    Params:
        write: the primitive that writes.
        params: its parameters.
        count: how many reads it waits for.
    """

    name = "write_after"

    def type_rule(self, *types: ArrayType, write: Primitive, params: tuple[Any, ...], count: int) -> ArrayType:
        return write.output_types(types[:-count], dict(params))[0]

    def numpy(self, *arrays: Any, write: Primitive, params: tuple[Any, ...], count: int) -> Any:
        return write.numpy(*arrays[:-count], **dict(params))

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        def write_after(*arrays: Any, write: Callable[..., Any], params: dict[str, Any], count: int) -> Any:
            return write(*arrays[:-count], **params)

        rest = {"params": dict(params["params"]), "count": params["count"]}
        return Written(write_after, {"write": params["write"].numpy, **rest})

    def xla(self, x: Any, updates: Any, *rest: Any, write: Primitive, params: tuple[Any, ...], count: int) -> Any:
        index, *indices = rest[:-count]
        return write.xla(x, updates, index + sum(rest[-count:]).astype(index.dtype), *indices, **dict(params))


read_first = ReadFirst()
write_after = WriteAfter()


def lower_step(program: Program, args: Sequence[Any]) -> list[Any]:
    """Apply the step of a loop to JAX tracers, in an order that lets XLA write in place."""
    body = for_compiler(program)
    return lower(body.derive("reads first", lambda: _with_reads_first(body)), args)


def _with_reads_first(program: Program) -> Program:
    """The step, with each write of one element after all reads of the array that it writes to."""
    eqns = list(program.eqns)
    for write in [eqn for eqn in eqns if _is_write_to_a_place(eqn)]:
        found = _with_write_last(eqns, write, program.outputs)
        eqns = eqns if found is None else found
    return program if eqns == list(program.eqns) else Program(program.name, program.inputs, eqns, program.outputs)


def _is_write_to_a_place(eqn: Eqn) -> bool:
    indices = eqn.operands[2:]
    is_at_indices = bool(indices) and all(a.type.shape == () for a in indices)
    return is_write(eqn) and is_at_indices and eqn.operands[0].type.nbytes >= _FEWEST_BYTES


def _is_read_of_a_part(eqn: Eqn) -> bool:
    if eqn.primitive is gather:
        return all(a.type.shape == () for a in eqn.operands[1:])
    return eqn.primitive is slice_ or eqn.primitive is dynamic_slice


def _with_write_last(eqns: list[Eqn], write: Eqn, outputs: Sequence[Atom]) -> list[Eqn] | None:
    """The equations, with all reads of the array moved before `write`; None if they are already, or cannot be."""
    array = write.operands[0]
    reads = [eqn for eqn in eqns if eqn is not write and array in eqn.operands]
    if array in outputs or not all(_is_read_of_a_part(eqn) and eqn.operands[0] is array for eqn in reads):
        return None
    before, behind = _ancestors(eqns, write), _descendants(eqns, write.outputs)
    if any(a in behind for eqn in reads for a in eqn.operands):
        return None
    # XLA would repeat an earlier write in the operation that reads its result.
    is_written = any(array in eqn.outputs for eqn in eqns if is_write(eqn) or eqn.primitive is write_after)
    late = [eqn for eqn in reads if is_written or _is_used_late(eqns, eqn, write, before, outputs)]
    if not late:
        return None
    # XLA would choose the branch at once by a constant.
    number = next((a for a in write.operands[2:] if isinstance(a, Var)), None)
    if number is None:
        return None
    tokens = [Var(_TOKEN) for _ in late]
    instead = {
        eqn: Eqn(
            read_first,
            (number, *eqn.operands),
            {"read": eqn.primitive, "params": tuple(eqn.params.items())},
            (*eqn.outputs, token),
            eqn.line,
        )
        for eqn, token in zip(late, tokens, strict=True)
    }
    instead[write] = Eqn(
        write_after,
        (*write.operands, *tokens),
        {"write": write.primitive, "params": tuple(write.params.items()), "count": len(tokens)},
        write.outputs,
        write.line,
    )
    return _sorted([instead.get(eqn, eqn) for eqn in eqns])


def _ancestors(eqns: Sequence[Eqn], of: Eqn) -> set[Atom]:
    """The variables that an equation depends on."""
    found: set[Atom] = set(of.operands)
    for eqn in reversed(eqns):
        if not found.isdisjoint(eqn.outputs):
            found.update(eqn.operands)
    return found


def _descendants(eqns: Sequence[Eqn], of: Iterable[Atom], but: Eqn | None = None) -> set[Atom]:
    """The variables that depend on some, other than through the equation `but`."""
    found: set[Atom] = set(of)
    for eqn in eqns:
        if eqn is not but and not found.isdisjoint(eqn.operands):
            found.update(eqn.outputs)
    return found


def _is_used_late(eqns: Sequence[Eqn], read: Eqn, write: Eqn, before: set[Atom], outputs: Sequence[Atom]) -> bool:
    """Whether the result of a read is used by an equation that the write does not depend on."""
    made_of_it = _descendants(eqns, read.outputs, but=write)
    return not made_of_it <= before or any(a in made_of_it for a in outputs)


def _sorted(eqns: Sequence[Eqn]) -> list[Eqn]:
    """The equations, each behind those that it depends on."""
    maker = {v: eqn for eqn in eqns for v in eqn.outputs}
    done: dict[Eqn, None] = {}

    def place(eqn: Eqn) -> Iterator[Iterator[Any]]:
        for a in eqn.operands:
            made = maker.get(a) if isinstance(a, Var) else None
            if made is not None and made not in done:
                yield place(made)
        done.setdefault(eqn)

    for eqn in eqns:
        waiting = [place(eqn)]
        while waiting:
            deeper = next(waiting[-1], None)
            if deeper is None:
                waiting.pop()
            else:
                waiting.append(deeper)
    return list(done)
