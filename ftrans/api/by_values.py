"""Batches of a function whose Python code asks for values: elements for which it sees the same ones run together.

The code is traced for the first element.  The values that it has seen are results of the program, which say of each
element whether the code would do the same for it.  What is left is traced for its first element in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..core.program import Eqn, Program, needed_eqns
from ..core.trace import Guard, Tracer, current_builder
from ..core.types import ArrayType
from ..core.witness import CodeBuilder, ConcretizationError, concretize, refuse
from ..numpy.joining import concatenate
from ..numpy.manipulation import broadcast_to
from ..transforms.batch import Flags, batch
from .call import Traced, name_of, run, trace_flat


class Batched(NamedTuple):
    """The results of a function for a batch.

    Attributes:
        outs: the leaves of its result, with the mapped axis in front where they have one.
        is_batched: which of them have it; the others are the same for all elements.
        structure: structure of the result.
        size: size of the mapped axis.
    """

    outs: list[Any]
    is_batched: Flags
    structure: tree.Structure
    size: int


class AllElements(CodeBuilder):
    """Records code for all elements of a batch at once.  Where it asks for a value, it runs by values instead."""


class OneElement(CodeBuilder):
    """Records code for one element of a batch, which it may ask for values, but not for floating-point errors."""

    is_one_of_many = True

    def handle_errors(self, eqn: Eqn) -> None:
        """Refuse: no guard would say whether other elements lead to the same errors."""
        reaction = self.reaction()
        if reaction is not None:
            raise refuse(
                ConcretizationError(
                    f"{reaction.written} asks for the errors of a traced value under vmap, where they may differ from "
                    f"element to element{at_line(user_line())}\n  Test for what leads to the error: "
                    "np.where(x == 0.0, a, b / x), with another x where it is not chosen."
                )
            )


def run_by_values(
    f: Callable[..., Any],
    types: Sequence[ArrayType],
    call: Callable[[list[Tracer]], Any],
    values: Sequence[Any],
    flags: Flags,
    size: int,
) -> Batched:
    """The results of `f` for a batch, in as many groups of elements as see different values.

    Args:
        f: the function of one element.
        types: types of the traced arguments of one element.
        call: calls `f` on tracers of them.
        values: the arguments, with the mapped axis in front.
        flags: which of them have it.
        size: its size, at least 1.

    Raises:
        ConcretizationError: a value is not known, or elements differ in a compiled function.
    """
    places, found, left = [], [], np.arange(size)
    while left.size:
        rest = [x[left] if b and left.size < size else x for x, b in zip(values, flags, strict=True)]
        first = [x[0] if b else x for x, b in zip(rest, flags, strict=True)]
        traced, _ = trace_flat(f, types, call, first, with_guards=True, builder_type=OneElement)
        alike = _alike(f, traced, rest, flags, left.size)
        group = (
            rest if alike.all() else [x[np.flatnonzero(alike)] if b else x for x, b in zip(rest, flags, strict=True)]
        )
        places.append(left[alike])
        found.append(apply(traced, group, flags, int(alike.sum())))
        left = left[~alike]
    return found[0] if len(found) == 1 else _together(f, found, np.argsort(np.concatenate(places)))


def apply(traced: Traced, values: Sequence[Any], flags: Flags, size: int) -> Batched:
    """The results of a traced function for a batch, without the values of its guards."""
    count = len(traced.program.outputs) - _guard_count(traced)
    derived = batch(_part(traced.program, 0, count), size, flags + (False,) * len(traced.captured))
    outs = run(derived.program, [*values, *traced.captured])
    return Batched(outs, derived.out_batched, traced.structure, size)


def _guard_count(traced: Traced) -> int:
    return len(traced.builder.guards) if isinstance(traced.builder, OneElement) else 0


def _part(program: Program, start: int, stop: int) -> Program:
    """The program of some outputs."""
    if stop - start == len(program.outputs):
        return program
    outputs = program.outputs[start:stop]

    def make() -> Program:
        return Program(program.name, program.inputs, needed_eqns(program.eqns, outputs), outputs)

    return program.derive(("part", start, stop), make)


def _alike(f: Callable[..., Any], traced: Traced, values: Sequence[Any], flags: Flags, size: int) -> Any:
    """For which elements the code sees what it has seen for the first."""
    guards, count = traced.builder.guards, len(traced.program.outputs)
    part = _part(traced.program, count - len(guards), count)
    derived = batch(part, size, flags + (False,) * len(traced.captured))
    with np.errstate(all="ignore"):
        # The code has caught the error that `math.sqrt(-1.0)` raises, or the results warn of it.
        seen = run(derived.program, [*values, *traced.captured])
    alike = np.ones(size, dtype=bool)
    for guard, value, differs in zip(guards, seen, derived.out_batched, strict=True):
        if differs:
            alike &= _holds(f, guard, value, size)
    # A NaN differs from itself.
    alike[0] = True
    return alike


def _holds(f: Callable[..., Any], guard: Guard, value: Any, size: int) -> Any:
    """For which elements a guard holds, by its value for each of them."""
    if guard.seen_as is None:
        agree: Any = np.reshape(value == guard.expected, (size, -1))
        same: Any = agree.all(axis=1)
        is_traced = isinstance(same, Tracer)
        if not is_traced:
            return same
        if concretize(same.all(), "vmap of Python code that asks for"):
            return np.ones(size, dtype=bool)
        builder = current_builder()
        if builder is not None and builder.is_compiled():
            raise refuse(
                ConcretizationError(
                    f"vmap runs {name_of(f)} for all {size} elements at once in a compiled function, and a value that "
                    f"Python code asks for differs between them{at_line(guard.line)}\n  Write numpy.where(condition, "
                    "a, b) to choose between values, or ftrans.cond, ftrans.while_loop or ftrans.fori_loop for a "
                    "branch or loop that depends on it; or leave this part outside of ftrans.jit."
                )
            )
        return np.asarray(concretize(same, "vmap of Python code that asks for"))
    elements = [x if not isinstance(x, Tracer) else concretize(x, "vmap of Python code that asks for") for x in value]
    return np.array([guard.holds_for(x) for x in elements], dtype=bool)


def _together(f: Callable[..., Any], parts: list[Batched], order: Any) -> Batched:
    """The results of groups of elements, in the order of the batch."""
    structures = [part.structure for part in parts]
    if any(s != structures[0] for s in structures):
        raise ValueError(
            f"vmap of {name_of(f)}, which branches on values, got results of different structures: {structures[0]} "
            f"and {next(s for s in structures if s != structures[0])}{at_line(user_line())}"
        )
    outs = []
    for leaf in range(len(parts[0].outs)):
        whole = [
            part.outs[leaf]
            if part.is_batched[leaf]
            else broadcast_to(part.outs[leaf], (part.size, *np.shape(part.outs[leaf])))
            for part in parts
        ]
        shapes = [np.shape(y)[1:] for y in whole]
        if any(s != shapes[0] for s in shapes):
            raise ValueError(
                f"vmap of {name_of(f)}, which branches on values, got results of different shapes: {shapes[0]} and "
                f"{next(s for s in shapes if s != shapes[0])}{at_line(user_line())}"
            )
        outs.append(concatenate(whole)[order])
    return Batched(outs, (True,) * len(outs), structures[0], sum(part.size for part in parts))
