"""Integrals of a program by its last input, computed by SciPy on the host, with a derivative rule.

The derivative of an integral is the integral of the derivative, and the integrand at the limits if they move: both are
recorded in terms of the same integrals, so all orders are defined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...api.derivatives import stop_gradient
from ...api.vectors import Captured
from ...control.rules.black_box import Code, black_box
from ...control.rules.custom_rule import Linearized, Rule, custom
from ...control.rules.linear_call import Name, with_outputs
from ...control.subprograms import Flags, chosen, cut, rewired, spread
from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, building
from ...core.types import ArrayType
from ...ops.literals import full
from ...run.straightline import function_to_run
from ...transforms.differentiate import pullback
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import simplify
from .branches import Evaluate, Explore, value_of
from .switches import Switches, divided, grid, moving_switches

Leaves = list[Any]

NUMBER = ArrayType((), np.dtype(np.float64))
_COUNT = ArrayType((), np.dtype(np.int64))


class Quadrature(Protocol):
    """How integrals are computed.  Two that are equal compute the same."""

    def compute(self, f: Callable[[float], Any], size: int, a: float, b: float, points: Any) -> Computed:
        """The integrals of a function, which returns an array of shape (size,)."""

    def weighted(self, value: Any, x: Any) -> Any:
        """The integrand at a limit, times the weight there."""

    def check_divisible(self) -> None:
        """Raise if an integral is not the sum of those over parts of the interval."""


class Computed(NamedTuple):
    """Integrals, the estimate of their error, and the number of evaluations and of subintervals."""

    values: Any
    error: Any
    evaluations: int
    intervals: int


class Details(NamedTuple):
    """The largest estimate of an error, and of all integrals the number of evaluations and of subintervals."""

    error: Any
    evaluations: Any
    intervals: Any


def integrals(integrand: Captured, a: Any, b: Any, points: Any, quadrature: Quadrature) -> tuple[Leaves, Details]:
    """Record the integrals of all outputs of a program by its last input.

    Args:
        integrand: the program, whose outputs are real, and the inputs before the variable.
        a: the lower limit.
        b: the upper limit.
        points: array of points, of shape (n,), at which the interval is divided; they have no derivative.
        quadrature: how.
    """
    program = integrand.program
    rule = _rule(program, len(points), quadrature)
    every = tuple(range(len(rule.primal.outputs)))
    outs, details = cut(
        custom(*integrand.consts, a, b, points, program=rule.primal, rule=rule, outs=every), len(program.outputs)
    )
    return outs, Details(*details)


def exploring(quadrature: Quadrature, a: Any, b: Any, points: Any) -> Explore:
    """What calls an integrand at the points of a quadrature, and at some more."""

    def explore(evaluate: Evaluate) -> None:
        low, high, breaks = value_of(a), value_of(b), value_of(points)

        def at(x: float) -> Any:
            return np.concatenate([np.ravel(y) for y in evaluate(np.float64(x))])

        inside = [at(x) for x in grid(float(low), float(high))[1:-1]]
        quadrature.compute(at, inside[0].size, float(low), float(high), breaks)

    return explore


def _rule(program: Program, points: int, quadrature: Quadrature) -> Rule:
    def make() -> Rule:
        consts = program.in_types[:-1]
        code = _code(program, quadrature)
        builder = Builder([*consts, NUMBER, NUMBER, ArrayType((points,), NUMBER.dtype)])
        with building(builder):
            primal = builder.finish(black_box.apply(code, builder.inputs()), code.name)
        name = Name("quad", "reverse", None, None)
        return Rule(
            name, primal, len(primal.inputs), lambda active: _linearized(program, primal, points, quadrature, active)
        )

    return program.derive(("integrals", points, quadrature), make)


def _code(program: Program, quadrature: Quadrature) -> Code:
    """The integrals and their details as Python code."""
    run = function_to_run(simplify(program))
    types = program.out_types

    def compute(*arrays: Any) -> list[Any]:
        *consts, a, b, points = arrays

        def at(x: float) -> Any:
            return np.concatenate([np.ravel(y) for y in run(*consts, np.float64(x))])

        found = quadrature.compute(at, sum(t.size for t in types), float(a), float(b), points)
        parts = np.split(np.asarray(found.values, np.float64), np.cumsum([t.size for t in types])[:-1])
        outs = [part.reshape(t.shape) for part, t in zip(parts, types, strict=True)]
        return [*outs, np.float64(found.error), np.int64(found.evaluations), np.int64(found.intervals)]

    return Code(f"quad({program.name})", compute, [*types, NUMBER, _COUNT, _COUNT], "SciPy computes integrals")


def _linearized(program: Program, primal: Program, points: int, quadrature: Quadrature, active: Flags) -> Linearized:
    count = len(program.outputs)
    given = primal.in_types
    moving = (*active[:-3], False)
    switches = moving_switches(program, moving, tuple(i + 1 == len(moving) for i in range(len(moving))))
    if switches is not None:
        return _linearized_by_parts(switches, primal, quadrature, active)

    def traced(types: Sequence[ArrayType], rule: Callable[..., Leaves]) -> Program:
        builder = Builder([*given, *types])
        with building(builder):
            consts, (a, b, points), moved = cut(builder.inputs(), len(given) - 3, 3)
            return builder.finish(rule(program, consts, a, b, points, moved, active, quadrature), rule.__name__)

    return Linearized(
        values=primal,
        sources=tuple(range(len(given))),
        forward=traced(chosen(given, active), _tangents),
        backward=traced(program.out_types, _cotangents),
        out_active=tuple(i < count for i in range(len(primal.outputs))),
        is_linear=True,
    )


def _linearized_by_parts(switches: Switches, primal: Program, quadrature: Quadrature, active: Flags) -> Linearized:
    """The derivative of the sum of the integrals between points at which the integrand switches."""
    given, outs = primal.in_types, switches.frozen.out_types
    quadrature.check_divisible()
    builder = Builder(given)
    with building(builder):
        *consts, a, b, _ = builder.inputs()
        nowhere = full((0,), 0, NUMBER.dtype)
        parts = divided(switches, consts, a, b, lambda f, low, high: integrals(f, low, high, nowhere, quadrature)[0])
        whole = simplify(builder.finish(parts, primal.name))
    derived = jvp_program(whole, active)
    tangents = with_outputs(derived.program, range(len(outs), len(derived.program.outputs)))
    pulled = pullback(whole, active)
    along = chosen(given, active)

    def forward(tracers: Leaves) -> Leaves:
        found = spread(inline(tangents, tracers), derived.out_active)
        return [full(t.shape, 0, t.dtype) if d is None else d for d, t in zip(found, outs, strict=True)]

    def backward(tracers: Leaves) -> Leaves:
        known, cts = cut(tracers, len(given))
        residuals = inline(pulled.values, known)[len(outs) :]
        found = spread(inline(pulled.linear, [*residuals, *chosen(cts, pulled.out_active)]), pulled.in_active)
        return [full(t.shape, 0, t.dtype) if d is None else d for d, t in zip(found, along, strict=True)]

    def traced(types: Sequence[ArrayType], rule: Callable[[Leaves], Leaves]) -> Program:
        builder = Builder([*given, *types])
        with building(builder):
            return builder.finish(rule(builder.inputs()), f"{rule.__name__} of {primal.name}")

    return Linearized(
        values=primal,
        sources=tuple(range(len(given))),
        forward=traced(along, forward),
        backward=traced(outs, backward),
        out_active=tuple(i < len(outs) for i in range(len(primal.outputs))),
        is_linear=True,
    )


def _tangents(
    program: Program, consts: Leaves, a: Any, b: Any, points: Any, given: Leaves, active: Flags, quadrature: Quadrature
) -> Leaves:
    """Tangents of the integrals, from those of the constants and limits."""
    *of_consts, of_a, of_b, _ = spread(given, active)
    totals: list[Any] = [full(t.shape, 0, t.dtype) for t in program.out_types]
    moving = active[:-3]
    if any(moving):
        derived = jvp_program(program, (*moving, False))
        inner = _reordered(derived.program, len(consts), moving.count(True), len(program.outputs))
        scale = _scale(chosen(consts, moving), chosen(of_consts, moving))
        more = [d / scale for d in chosen(of_consts, moving)]
        found, _ = integrals(Captured(inner, [*consts, *more]), a, b, points, quadrature)
        for place, d in zip([i for i, f in enumerate(derived.out_active) if f], found, strict=True):
            totals[place] = totals[place] + d * scale
    for x, other, of_x, sign in ((b, a, of_b, 1.0), (a, b, of_a, -1.0)):
        if of_x is not None:
            values = _at_limit(program, consts, x, other, quadrature)
            totals = [t + sign * of_x * y for t, y in zip(totals, values, strict=True)]
    return totals


def _cotangents(
    program: Program, consts: Leaves, a: Any, b: Any, points: Any, given: Leaves, active: Flags, quadrature: Quadrature
) -> Leaves:
    """Cotangents of the constants and limits, from those of the integrals."""
    moving = active[:-3]
    found: list[Any] = [None] * len(consts)
    if any(moving):
        inner = _with_cotangents(program, moving)
        scales = [_size(x) for x in chosen(consts, moving)]
        scale = _scale([], given)
        more = [ct / scale for ct in given]
        outs, _ = integrals(Captured(inner, [*consts, *more, *scales]), a, b, points, quadrature)
        found = spread([y * (scale / s) for y, s in zip(outs, scales, strict=True)], moving)
    of_limits = []
    for x, other, sign, is_active in ((a, b, -1.0, active[-3]), (b, a, 1.0, active[-2])):
        if is_active:
            values = _at_limit(program, consts, x, other, quadrature)
            of_limits.append(sign * sum(np.sum(y * ct) for y, ct in zip(values, given, strict=True)))
    return [*chosen(found, moving), *of_limits]


def _reordered(derived: Program, consts: int, moving: int, outs: int) -> Program:
    """The program of tangents, with the variable behind the tangents of the constants."""
    order = [*range(consts), *range(consts + 1, consts + 1 + moving), consts]
    tangents = with_outputs(derived, range(outs, len(derived.outputs)))
    return simplify(rewired(tangents, order))


def _with_cotangents(program: Program, moving: Flags) -> Program:
    """The cotangents of the constants that move, times their scales.

    Takes the constants, the cotangents of the outputs, the scales, then the variable.
    """

    def make() -> Program:
        consts = program.in_types[:-1]
        builder = Builder(
            [*consts, *program.out_types, *(NUMBER for _ in range(moving.count(True))), program.in_types[-1]]
        )
        with building(builder):
            known, cts, scales, (x,) = cut(builder.inputs(), len(consts), len(program.outputs), moving.count(True))
            parts = pullback(program, (*moving, False))
            _, residuals = cut(inline(parts.values, [*known, x]), len(program.outputs))
            pulled = inline(parts.linear, [*residuals, *chosen(cts, parts.out_active)])
            found = spread(pulled, parts.in_active)
            outs = [
                full(t.shape, 0, t.dtype) * s if y is None else y * s
                for y, t, s in zip(found, chosen(consts, moving), scales, strict=True)
            ]
            return simplify(builder.finish(outs, f"cotangents of {program.name}"))

    return program.derive(("cotangents of integrands", moving), make)


def _at_limit(program: Program, consts: Leaves, x: Any, other: Any, quadrature: Quadrature) -> Leaves:
    """The integrand at a limit, 0 at an infinite one."""
    is_finite = np.isfinite(x)
    inside = np.where(is_finite, x, np.where(np.isfinite(other), other, 0.0))
    return [np.where(is_finite, quadrature.weighted(y, inside), 0.0) for y in inline(program, [*consts, inside])]


def _size(x: Any) -> Any:
    """The largest element, 1 if that is 0: a change of that size is a large one."""
    largest = np.max(abs(stop_gradient(x)), initial=0.0).astype(np.float64)
    return np.where(largest > 0, largest, 1.0)


def _scale(xs: Leaves, changes: Leaves) -> Any:
    """The largest change, relative to what changes: tolerances are meant for results of the size of the integral."""
    sizes = [_size(x) for x in xs] or [1.0] * len(changes)
    relative = [np.max(abs(stop_gradient(d)), initial=0.0) / s for d, s in zip(changes, sizes, strict=True)]
    largest: Any = functools.reduce(np.maximum, relative, 0.0)
    return np.where(largest > 0, largest, 1.0)
