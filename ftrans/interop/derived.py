"""The derivatives that torch asks for, as programs.

torch and ftrans differ in what a complex cotangent is: ftrans transposes, torch takes the adjoint.  So cotangents are
conjugated on the way in and out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_complex, is_inexact
from ..ops.elementwise import conj
from ..ops.literals import full
from ..transforms import differentiate as d
from ..transforms.jvp import jvp as jvp_program

Flags = tuple[bool, ...]


def differentiable(program: Program, count: int) -> list[ArrayType]:
    """The types of those of the first `count` outputs that are floating-point."""
    return [t for t in program.out_types[:count] if is_inexact(t.dtype)]


def with_residuals(program: Program, active: Flags) -> Program:
    """The program from the inputs to the outputs, then what `from_residuals` takes."""
    return _parts(program, active).values


def from_residuals(program: Program, count: int, active: Flags) -> Program:
    """The program from residuals, then cotangents of the floating-point results, to those of the active inputs.

    Args:
        program: the program.
        count: how many of its outputs are results; the others have no cotangents.
        active: which inputs are differentiated.
    """

    def make() -> Program:
        parts = _parts(program, active)
        return _adjoint(program, count, active, parts, parts.linear.in_types[: parts.residual_count])

    return program.derive(("from residuals for torch", count, active), make)


def _parts(program: Program, active: Flags) -> d.Linear:
    return d.pruned(d.pullback(program, active))


def pullback(program: Program, count: int, active: Flags) -> Program:
    """The program from the inputs, then cotangents of the floating-point results, to cotangents of active inputs."""

    def make() -> Program:
        whole = d.with_pullback(program, active, f"pullback({program.name})")
        cotangents = Program(
            whole.program.name, whole.program.inputs, whole.program.eqns, whole.program.outputs[len(program.outputs) :]
        )
        parts = d.Linear(program, cotangents, len(program.inputs), whole.out_active, whole.in_active)
        return _adjoint(program, count, active, parts, program.in_types)

    return program.derive(("pullback for torch", count, active), make)


def _adjoint(program: Program, count: int, active: Flags, parts: d.Linear, given: Sequence[ArrayType]) -> Program:
    """The linear part of `parts` in torch's convention, with a cotangent for each result and each active input."""
    seed_types = differentiable(program, count)
    builder = Builder([*given, *seed_types])
    with building(builder):
        inputs = builder.inputs()
        seeds = iter(inputs[len(given) :])
        cotangents = []
        for index, (type, is_active) in enumerate(zip(program.out_types, parts.out_active, strict=True)):
            seed = next(seeds) if index < count and is_inexact(type.dtype) else None
            if is_active:
                cotangents.append(_zeros(type) if seed is None else _conjugate(seed))
        found = iter(inline(parts.linear, [*inputs[: len(given)], *cotangents]))
        wanted = [t for t, a in zip(program.in_types, active, strict=True) if a]
        outs = [_conjugate(next(found)) if has else _zeros(t) for t, has in zip(wanted, parts.in_active, strict=True)]
        return builder.finish(outs, f"pullback({program.name})")


def pushforward(program: Program, count: int, active: Flags) -> Program:
    """The program from the inputs, then tangents of active ones, to tangents of the floating-point results."""

    def make() -> Program:
        derived = jvp_program(program, active)
        tangents = iter(derived.program.outputs[len(program.outputs) :])
        found = [next(tangents) if a else None for a in derived.out_active]
        builder = Builder(derived.program.in_types)
        with building(builder):
            kept = [x for x in found if x is not None]
            whole = Program(derived.program.name, derived.program.inputs, derived.program.eqns, kept)
            values = iter(inline(whole, builder.inputs()))
            outs = [_zeros(t) if x is None else next(values) for t, x in zip(program.out_types, found, strict=True)]
            results = [y for y, t in zip(outs[:count], program.out_types, strict=False) if is_inexact(t.dtype)]
            return builder.finish(results, f"pushforward({program.name})")

    return program.derive(("pushforward for torch", count, active), make)


def _zeros(type: ArrayType) -> Any:
    return full(type.shape, 0, type.dtype)


def _conjugate(x: Tracer) -> Tracer:
    return conj(x) if is_complex(x.dtype) else x
