"""Which equations of a program may write to an operand itself, where NumPy would have to copy it first.

`set_slice` and its like take an array and give the array after a write.  Where nothing needs the old elements any more,
and the array is the program's own, writing to it in place costs as much as what is written.  So a loop that assigns to
one element at a time takes time in proportion to its steps.

A part that was read from the array before may be a view of it.  It is copied if it is needed after the write.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..core.on_numpy import Memory
from ..core.program import Atom, Eqn, Program, Var


class Overwriting(NamedTuple):
    """How the equations of a program use memory again.

    Attributes:
        writes: numbers of the equations that write to their first operand.
        copies: numbers of the equations whose result must not share memory with their operand.
    """

    writes: frozenset[int]
    copies: frozenset[int]


_NOTHING = Overwriting(frozenset(), frozenset())


def is_write(eqn: Eqn) -> bool:
    """Whether an equation could write to its first operand."""
    return eqn.primitive.memory is Memory.WRITES and isinstance(eqn.operands[0], Var) and eqn.outputs[0].type.ndim > 0


def find_overwriting(program: Program, own: Collection[Var] = ()) -> Overwriting:
    """Find the equations of `program` that may write to their first operand.

    Args:
        program: the program.
        own: inputs that may be written to.
    """
    if not any(map(is_write, program.eqns)):
        return _NOTHING
    last_use, copies = _last_uses(program)
    # For each array that may be written to, the one whose memory it shares.
    owner: dict[Atom, Atom] = {v: v for v in own}
    writes: set[int] = set()
    for index, eqn in enumerate(program.eqns):
        result = eqn.outputs[0] if eqn.outputs else None
        if result is None:
            continue
        if is_write(eqn):
            memory = owner.get(eqn.operands[0])
            shares = any(memory is not None and owner.get(a) is memory for a in eqn.operands[1:])
            if memory is not None and last_use[memory] <= index and not shares:
                writes.add(index)
            owner[result] = result
        elif eqn.primitive.memory in (Memory.NEW, Memory.WRITES) or index in copies:
            owner[result] = result
        elif eqn.primitive.memory is Memory.VIEW and eqn.operands[0] in owner:
            owner[result] = owner[eqn.operands[0]]
    return Overwriting(frozenset(writes), frozenset(copies))


def _last_uses(program: Program) -> tuple[dict[Atom, int], set[int]]:
    """The number of the last equation that needs the memory of each variable, and the equations that must copy."""
    end = len(program.eqns)
    last_use: dict[Atom, int] = dict.fromkeys(program.outputs, end)
    written_at: dict[Atom, int] = {}
    copies: set[int] = set()
    for index in reversed(range(end)):
        eqn = program.eqns[index]
        until = index
        if eqn.primitive.aliases:
            until = max([last_use.get(v, index) for v in eqn.outputs], default=index)
            source, result = eqn.operands[0], eqn.outputs[0]
            if result.type.size < source.type.size:
                if until > written_at.get(source, end):
                    copies.add(index)
                    until = index
            elif result in written_at:
                written_at[source] = max(written_at[result], written_at.get(source, 0))
        for a in eqn.operands:
            last_use[a] = max(last_use.get(a, index), until)
        if is_write(eqn):
            written_at.setdefault(eqn.operands[0], index)
    return last_use, copies
