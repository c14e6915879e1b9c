"""Derivatives of a program by its last input: as a linear program, and as matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.interpret import inline
from ..core.program import Program, literal
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType
from ..ops.broadcast import broadcast
from ..ops.shapes import transpose as transpose_axes
from ..structure.dense.basis import unit_vectors
from ..transforms.batch import batch as batch_program
from ..transforms.differentiate import pushforward
from ..transforms.simplify import simplify as simplify_program


class Linearized(NamedTuple):
    """A program of one output divided at its derivative by the last input.

    Attributes:
        values: the inputs -> the output, then residuals.
        linear: residuals, then a tangent of the last input -> the tangent of the output.
    """

    values: Program
    linear: Program


def linearized(program: Program) -> Linearized:
    """The values of `program`, and its derivative by its last input."""

    def make() -> Linearized:
        parts = pushforward(program, (*[False] * (len(program.inputs) - 1), True))
        linear = parts.linear
        if not parts.out_active[0]:
            linear = Program(linear.name, linear.inputs, (), [literal(0, program.out_types[0])])
        return Linearized(parts.values, linear)

    return program.derive("linearized by the last input", make)


def matrix(linear: Program, consts: Sequence[Tracer]) -> Tracer:
    """The matrices, (*lanes, m, n), of a program from (*lanes, n) to (*lanes, m) that is linear in its last input."""
    type = linear.in_types[-1]
    *lanes, size = type.shape
    (vectors,) = unit_vectors([ArrayType((size,), type.dtype)], size)
    units = broadcast(vectors, shape=(size, *type.shape), dims=(0, type.ndim))
    columns = batch_program(linear, size, (*[False] * len(consts), True), (True,)).program
    (found,) = inline(columns, [*consts, units])
    return transpose_axes(found, axes=(*range(1, len(lanes) + 2), 0))


def jacobian(program: Program) -> Program:
    """The matrices of the derivative of `program` by its last input."""

    def make() -> Program:
        values, linear = linearized(program)
        builder = Builder(program.in_types)
        with building(builder):
            found = matrix(linear, inline(values, builder.inputs())[1:])
            return simplify_program(builder.finish([found], f"jacobian({program.name})"))

    return program.derive("jacobian by the last input", make)
