"""Sub-programs with inputs and outputs rearranged, as the primitives of this folder need them.

Each derived program is kept with the one that it comes from, so that the same request returns the same `Program`:
equations are compared by the identity of the programs that they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..core.program import Atom, Const, Program, Var, literal, with_operands
from ..core.trace import Tracer
from ..core.types import ArrayType
from ..ops.broadcast import broadcast, with_batch_axis
from ..ops.elementwise import placeholder, select
from ..ops.indexing import gather
from ..ops.literals import full_like
from ..ops.reductions import argmax
from ..run.memory import is_write
from ..transforms.transpose import transpose as transpose_program

Flags = tuple[bool, ...]
Item = TypeVar("Item")


def either(a: Sequence[bool], b: Sequence[bool]) -> Flags:
    """Elementwise "or"."""
    return tuple(x or y for x, y in zip(a, b, strict=True))


def chosen(items: Sequence[Item], flags: Sequence[bool]) -> list[Item]:
    """The flagged items."""
    return [x for x, f in zip(items, flags, strict=True) if f]


def others(items: Sequence[Item], flags: Sequence[bool]) -> list[Item]:
    """The items without a flag."""
    return [x for x, f in zip(items, flags, strict=True) if not f]


def cut(items: Sequence[Item], *counts: int) -> list[list[Item]]:
    """Consecutive groups of these sizes, then the rest."""
    groups, start = [], 0
    for count in counts:
        groups.append(list(items[start : start + count]))
        start += count
    return [*groups, list(items[start:])]


def cut_behind_constants(items: Sequence[Item], *programs: Program | None) -> list[list[Item]]:
    """The constants of each program, which are its inputs but the last one, then the rest."""
    return cut(items, *(0 if p is None else len(p.inputs) - 1 for p in programs))


def spread(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """One entry per flag: the next item if it is set, else None."""
    remaining = iter(items)
    return [next(remaining) if f else None for f in flags]


def transposed(
    program: Program,
    cotangents: Sequence[Tracer | None],
    operands: Sequence[Tracer | ArrayType],
    run: Callable[[Program, list[Tracer], list[Tracer]], Sequence[Tracer]],
) -> list[Tracer | None]:
    """Cotangents of the operands of an equation that holds a program.

    Args:
        program: the program, of these operands.
        cotangents: those of its results.
        operands: known ones as tracers, linear ones as their types.
        run: applies the transposed program to the known operands and the cotangents that are not zero.
    """
    linear = tuple(isinstance(x, ArrayType) for x in operands)
    turned = transpose_program(program, linear, tuple(ct is not None for ct in cotangents))
    known = [x for x in operands if not isinstance(x, ArrayType)]
    outs = run(turned.program, known, [ct for ct in cotangents if ct is not None])
    return spread(spread(outs, turned.in_active), linear)


def filled(
    tangents: Sequence[Tracer | None], primals: Sequence[Tracer | ArrayType], flags: Sequence[bool]
) -> list[Tracer]:
    """The flagged tangents (or cotangents), with arrays of zeros for absent ones."""
    return [full_like(x, 0) if t is None else t for t, x, f in zip(tangents, primals, flags, strict=True) if f]


def lanewise_select(lanes: Tracer, x: Tracer, y: Tracer) -> Tracer:
    """`x` in the lanes (along the first axis) that are flagged, `y` in the others."""
    condition = lanes if lanes.shape == x.shape else broadcast(lanes, shape=x.shape, dims=(0,))
    return select(condition, x, y)


def with_placeholders(mine: Tracer, operands: Sequence[Tracer], batched: Sequence[bool]) -> list[Tracer]:
    """The operands, where lanes not flagged in `mine` get those of the first flagged lane.

    Code that runs on all lanes then sees only operands of lanes that need it, so lanes that do not need it cause no NaN
    in values or derivatives.
    """
    if not mine.size or not any(batched):
        return list(operands)
    first = argmax(mine, axis=0)

    def of_first(x: Tracer) -> Tracer:
        return with_batch_axis(mine.size, gather(placeholder(x), first), False)

    return [lanewise_select(mine, x, of_first(x)) if b else x for x, b in zip(operands, batched, strict=True)]


def with_tangents(active: Flags, *counts: int) -> list[int]:
    """Indices that reorder values followed by tangents so that tangents follow the values of their own group."""
    position = len(active)
    order: list[int] = []
    for group in cut(range(len(active)), *counts):
        order += group
        for i in group:
            if active[i]:
                order.append(position)
                position += 1
    return order


def rewired(
    program: Program, inputs: Sequence[int | ArrayType], outputs: Sequence[int | ArrayType] | None = None
) -> Program:
    """`program` with other inputs and outputs.

    Args:
        program: the program.
        inputs: for each new input, the index of the old one, or the type of an unused one.
        outputs: for each new output, the index of the old one, or a type, for zeros of it; the old
            ones by default.
    """
    wires_in = tuple(inputs)
    wires_out = tuple(range(len(program.outputs))) if outputs is None else tuple(outputs)
    if wires_in == tuple(range(len(program.inputs))) and wires_out == tuple(range(len(program.outputs))):
        return program

    def make() -> Program:
        new_inputs = [program.inputs[i] if isinstance(i, int) else Var(i) for i in wires_in]
        new_outputs: list[Atom] = [program.outputs[i] if isinstance(i, int) else literal(0, i) for i in wires_out]
        return Program(program.name, new_inputs, program.eqns, new_outputs)

    return program.derive(("rewired", wires_in, wires_out), make)


def with_outputs(program: Program, outputs: tuple[Atom, ...]) -> Program:
    """`program` with these of its variables as outputs."""
    if outputs == program.outputs:
        return program
    return program.derive(
        ("with outputs", outputs), lambda: Program(program.name, program.inputs, program.eqns, outputs)
    )


def specialized(program: Program, inputs: Sequence[int | Const | None]) -> Program:
    """`program` where some inputs are known to be a constant (`Const`) or equal to another input (its index).

    Inputs that are None stay; the others go.
    """
    known = tuple(inputs)
    if all(x is None for x in known):
        return program

    def make() -> Program:
        values: dict[Atom, Atom] = {
            v: program.inputs[x] if isinstance(x, int) else x
            for v, x in zip(program.inputs, known, strict=True)
            if x is not None
        }
        kept = [v for v in program.inputs if v not in values]
        eqns = with_operands(program.eqns, values)
        return Program(program.name, kept, eqns, [values.get(a, a) for a in program.outputs])

    return program.derive(("specialized", known), make)


def redundant(operands: Sequence[Tracer]) -> list[int | Const | None]:
    """For each operand: the constant that fills it, the index of an earlier operand that it repeats, or None."""
    return [
        x.atom if isinstance(x.atom, Const) and x.atom.is_splat else same
        for x, same in zip(operands, repeated(operands), strict=True)
    ]


def repeated(operands: Sequence[Tracer]) -> list[int | None]:
    """For each operand, the index of an earlier operand that it repeats, or None."""
    first: dict[Atom, int] = {}
    places = [first.setdefault(x.atom, index) for index, x in enumerate(operands)]
    return [None if place == index else place for index, place in enumerate(places)]


def own_carries(program: Program, consts: int, carries: int) -> tuple[int, ...]:
    """The carries whose memory a step may overwrite, because it returns a written copy of them.

    Writing to one element of such a carry in place costs no more than one element.
    """

    def find() -> tuple[int, ...]:
        written = {eqn.outputs[0] for eqn in program.executable().eqns if is_write(eqn)}
        return tuple(consts + i for i, a in enumerate(program.outputs[:carries]) if a in written)

    return program.derive(("own carries", consts, carries), find)


def used_inputs(program: Program) -> Flags:
    """Which inputs an equation or an output of the program refers to."""

    def find() -> Flags:
        used = {a for eqn in program.eqns for a in eqn.operands} | set(program.outputs)
        return tuple(v in used for v in program.inputs)

    return program.derive("used inputs", find)
