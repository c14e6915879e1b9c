"""Indices that only count: those of `x[i, j]` with i = 0, 1, 2, ... read each lane of a batch from itself.

Where a program is divided over devices, XLA has to know, since such reads and writes need nothing of other devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.surroundings import is_divided
from ..core.primitive import Primitive
from ..core.program import Atom, Const, Eqn, Program
from ..core.types import Shape
from .elementwise import placeholder
from .literals import iota

# For each index that counts 0, 1, 2, ... along one of its axes: its number, and the axis.
Lanes = tuple[tuple[int, int], ...]


def with_lanes(program: Program, primitive: Primitive, first_index: int) -> Program:
    """The program, in which equations of a primitive that indexes arrays say which of the indices only count.

    Args:
        program: the program.
        primitive: the primitive, whose first operand is the array, and whose parameter `axis` the first axis indexed.
        first_index: its first operand that is an index.
    """
    counts: dict[Atom, int] = {e.outputs[0]: e.params["axis"] for e in program.eqns if e.primitive is iota}
    eqns = [_in_lanes(e, first_index, counts) if e.primitive is primitive else e for e in program.eqns]
    if eqns == [*program.eqns]:
        return program
    return Program(program.name, program.inputs, eqns, program.outputs)


def _in_lanes(eqn: Eqn, first_index: int, counts: dict[Atom, int]) -> Eqn:
    x, indices = eqn.operands[0], eqn.operands[first_index:]
    found: dict[int, int] = {}
    for number, index in enumerate(indices):
        axis = _counted_axis(index, counts)
        is_whole = axis is not None and index.type.shape[axis] == x.type.shape[eqn.params["axis"] + number]
        if axis is not None and is_whole and axis not in found.values():
            found[number] = axis
    if not found or len(found) == len(indices):
        return eqn
    return Eqn(eqn.primitive, eqn.operands, {**eqn.params, "lanes": tuple(found.items())}, eqn.outputs, eqn.line)


def with_stand_ins(program: Program, primitive: Primitive) -> Program:
    """The program, in which equations that read one element of a placeholder say that it stands in for others."""
    held = {e.outputs[0] for e in program.eqns if e.primitive is placeholder}
    eqns = [
        Eqn(e.primitive, e.operands, {**e.params, "stands_in": True}, e.outputs, e.line)
        if e.primitive is primitive and e.operands[0] in held and _is_number(e)
        else e
        for e in program.eqns
    ]
    return Program(program.name, program.inputs, eqns, program.outputs) if held else program


def _is_number(eqn: Eqn) -> bool:
    """Whether an array is indexed by one number, along its first axis."""
    return eqn.params["axis"] == 0 and len(eqn.operands) == 2 and eqn.operands[1].type.shape == ()


def _counted_axis(index: Atom, counts: dict[Atom, int]) -> int | None:
    """The axis along which an index counts 0, 1, 2, ..., the same along all others; None if there is none."""
    if not isinstance(index, Const):
        return counts.get(index)
    if index.is_splat:
        return None
    for axis, size in enumerate(index.type.shape):
        line = np.arange(size).reshape((size, *[1] * (len(index.type.shape) - axis - 1)))
        if np.array_equal(index.value, np.broadcast_to(line, index.type.shape)):
            return axis
    return None


def one_of_all(x: Any, index: Any) -> Any:
    """`x[index]`, for an index in range, as a sum over all lanes: of other devices it needs a number, not an array."""
    from jax import lax, numpy

    is_it = lax.eq(lax.broadcasted_iota(index.dtype, x.shape, 0), index)
    return numpy.sum(numpy.where(is_it, x, numpy.zeros_like(x)), axis=0, dtype=x.dtype)


def apart(indices: Sequence[Any], axis: int, lanes: Lanes) -> tuple[list[Any], Shape, Shape, Shape]:
    """The indices that do not count; the axes of the array that they are for, those of lanes, and those in indices."""
    numbers = dict(lanes) if is_divided() else {}
    others = [i for i in range(len(indices)) if i not in numbers]
    return (
        [indices[i] for i in others],
        tuple(axis + i for i in others),
        tuple(axis + i for i in numbers),
        tuple(numbers.values()),
    )
