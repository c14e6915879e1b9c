"""Taylor coefficients by derivatives of derivatives, for programs that the rules of `taylor.py` are not made for."""

from __future__ import annotations

import math

from ...core.interpret import inline
from ...core.primitive import Primitive
from ...core.program import Program
from ...core.trace import Builder, Tracer, building
from ...ops.literals import full_like
from ...transforms.jvp import jvp
from ...transforms.simplify import condense
from .series import scaled


def needs_nesting(program: Program) -> bool:
    """Whether an equation prepares the whole program for its derivative, as eigenvalues that may be equal do."""
    plain = Primitive.before_differentiating
    return any(type(eqn.primitive).before_differentiating is not plain for eqn in program.eqns) or any(
        map(needs_nesting, program.subprograms())
    )


def nested_coefficients(program: Program, inputs: list[list[Tracer | None]], order: int) -> list[list[Tracer | None]]:
    """The coefficients of the outputs, by derivatives along the line of the derivatives of lower order.

    Args:
        program: the program.
        inputs: for each input, its coefficients; None for zero.
        order: up to which order coefficients are wanted.
    """
    inputs = [_without_gaps(row) for row in inputs]
    # The program of derivative k takes the derivatives of the inputs up to k that are not zero.  Its tangent along
    # the next ones is derivative k + 1.
    places = [(i, 0) for i in range(len(program.inputs))]
    derivative, alive = program, [True] * len(program.outputs)
    results: list[list[Tracer | None]] = [[] for _ in program.outputs]
    for k in range(order + 1):
        arguments = [_derivative(inputs[i], n) for i, n in places]
        values = iter(inline(derivative, [x for x in arguments if x is not None]))
        for row, is_alive in zip(results, alive, strict=True):
            row.append(scaled(next(values), 1 / math.factorial(k)) if is_alive else None)
        if k == order or not any(alive):
            results = [row + [None] * (order - k) for row in results]
            break
        active = tuple(n + 1 < len(inputs[i]) and inputs[i][n + 1] is not None for i, n in places)
        derivative, places, alive = _next(derivative, places, active, alive)
    return results


def _without_gaps(row: list[Tracer | None]) -> list[Tracer | None]:
    """Coefficients with zeros below the last one that is given."""
    last = max(k for k, x in enumerate(row) if x is not None)
    assert row[0] is not None
    zero = full_like(row[0], 0)
    return [zero if x is None and k < last else x for k, x in enumerate(row)]


def _derivative(coefficients: list[Tracer | None], n: int) -> Tracer | None:
    return scaled(coefficients[n], math.factorial(n))


def _next(
    program: Program, places: list[tuple[int, int]], active: tuple[bool, ...], alive: list[bool]
) -> tuple[Program, list[tuple[int, int]], list[bool]]:
    """The derivative of a derivative, whose inputs are each derivative of an input once."""
    derived = jvp(program, active)
    wanted = [*places, *((i, n + 1) for (i, n), a in zip(places, active, strict=True) if a)]
    distinct = list(dict.fromkeys(wanted))
    types = dict(zip(wanted, derived.program.in_types, strict=True))
    builder = Builder([types[place] for place in distinct])
    with building(builder):
        given = dict(zip(distinct, builder.inputs(), strict=True))
        outs = inline(derived.program, [given[place] for place in wanted])
        made = condense(builder.finish(outs[len(program.outputs) :], program.name))
    flags = iter(derived.out_active)
    return made, distinct, [is_alive and next(flags) for is_alive in alive]
