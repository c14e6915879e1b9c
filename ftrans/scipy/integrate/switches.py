"""Points at which an integrand switches between expressions, and that move with what it is derived by.

Where an integrand jumps at such a point, the derivative of the integral is not the integral of the derivative: the
jump, times the speed of the point, is missing.  (So is it from the second derivative where there is a kink.)  So the
interval is divided there.  Between two such points the outcomes of comparisons, roundings and searches in tables are
constant, and the points are limits of integrals, by which these have derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from ...api.derivatives import stop_gradient
from ...api.vectors import Captured
from ...api.vmap import vmap
from ...base.source import at_line
from ...control.rules.black_box import Code, black_box
from ...control.subprograms import Flags, chosen
from ...core.interpret import inline, interpret, repeat
from ...core.primitive import MissingRule
from ...core.program import Const, Eqn, Program
from ...core.trace import Builder, Tracer, building, current_builder
from ...core.types import ArrayType, is_inexact
from ...run.straightline import function_to_run
from ...solvers.implicit import root
from ...transforms.simplify import simplify

Leaves = list[Any]

# The most points, and the number of parts of an interval in each of which one is looked for.
_MOST, _PARTS = 16, 128


class Switches(NamedTuple):
    """The comparisons and roundings of an integrand, in place of which it may be given their outcomes.

    Attributes:
        differences: takes what the program takes; where an element of its result changes sign, one switches.
        outcomes: takes the same; the results of the comparisons.
        frozen: the program without the comparisons; takes their outcomes before its last input.
    """

    differences: Program
    outcomes: Program
    frozen: Program


class _Jump(NamedTuple):
    """What is known of an equation that jumps, as functions of its operands.

    Attributes:
        differences: numbers that change sign where it jumps.
        outcome: what is constant between these points; by default the result.
        result: the result, from that and the operands.
    """

    differences: Callable[..., Any]
    outcome: Callable[..., Any] | None = None
    result: Callable[..., Any] = lambda outcome, *_: outcome


def _from_entries(table: Any, x: Any) -> Any:
    """The differences of values and all entries of sorted tables, whose leading axes they share."""
    return x[..., None] - np.reshape(table, table.shape[:-1] + (1,) * (x.ndim - table.ndim + 1) + table.shape[-1:])


_JUMPS = {
    **dict.fromkeys(("lt", "le", "gt", "ge"), _Jump(lambda x, y: x - y)),
    **dict.fromkeys(("sign", "signbit"), _Jump(lambda x: x)),
    **dict.fromkeys(("floor", "ceil", "trunc", "convert"), _Jump(lambda x: np.sin(np.pi * x))),
    "rint": _Jump(lambda x: np.cos(np.pi * x)),
    "floor_divide": _Jump(lambda x, y: np.sin(np.pi * x / y)),
    "remainder": _Jump(lambda x, y: np.sin(np.pi * x / y), np.floor_divide, lambda k, x, y: x - k * y),
    "fmod": _Jump(lambda x, y: np.sin(np.pi * x / y), lambda x, y: np.trunc(x / y), lambda k, x, y: x - k * y),
    "copysign": _Jump(lambda x, y: y, lambda x, y: np.sign(y), lambda s, x, y: s * abs(x)),
    "searchsorted": _Jump(_from_entries),
}


class _Found(NamedTuple):
    """An equation that jumps.

    Attributes:
        eqn: the equation.
        jump: what is known of it.
        deciding: what decides on its outcome.
    """

    eqn: Eqn
    jump: _Jump
    deciding: Sequence[Any]


# Outcomes that are different at single points, and those that are so only of what is no number.
_AT_POINTS = _Jump(lambda: None)
_NO_JUMP = frozenset(("isnan", "isinf", "isfinite"))


def moving_switches(program: Program, moving: Flags, varying: Flags) -> Switches | None:
    """The equations that jump at points which depend on variables and on what moves; None without any.

    Args:
        program: the program.
        moving: which inputs change with what is derived by.
        varying: which inputs are variables.

    Raises:
        MissingRule: it is not known where one jumps.
    """
    return program.derive(("moving switches", moving, varying), lambda: _moving_switches(program, moving, varying))


def _moving_switches(program: Program, moving: Flags, varying: Flags) -> Switches | None:
    by_variable: set[Any] = set(chosen(program.inputs, varying))
    by_constants: set[Any] = set(chosen(program.inputs, moving))
    found: list[_Found] = []
    for eqn in program.eqns:
        is_varying, is_moving = (any(a in among for a in eqn.operands) for among in (by_variable, by_constants))
        if is_varying and is_moving:
            found.extend(_found_in(program, eqn))
            if found and found[-1].eqn is eqn and found[-1].jump.outcome is None:
                # Its result is constant between such points.
                continue
        if is_varying:
            by_variable.update(eqn.outputs)
        if is_moving:
            by_constants.update(eqn.outputs)
    return _switches(program, found) if any(f.deciding for f in found) else None


def _found_in(program: Program, eqn: Eqn) -> list[_Found]:
    """What is known of an equation if it jumps; nothing of others.

    Raises:
        MissingRule: it jumps, and it is not known where.
    """
    name, dtype = eqn.primitive.name, eqn.outputs[0].type.dtype
    if name in _NO_JUMP or not any(is_inexact(a.type.dtype) for a in eqn.operands):
        return []
    if name in ("eq", "ne"):
        # Which of two is the smaller one is asked in this way.
        makers = [
            e for e in program.eqns if e.primitive.name in ("minimum", "maximum") and e.outputs[0] in eqn.operands
        ]
        return [_Found(eqn, _JUMPS["lt"], makers[0].operands) if makers else _Found(eqn, _AT_POINTS, ())]
    if name == "convert" and dtype.kind not in "iu":
        return [_Found(eqn, _AT_POINTS, ())] if dtype.kind == "b" else []
    if name in _JUMPS:
        return [_Found(eqn, _JUMPS[name], eqn.operands)]
    if any(is_inexact(v.type.dtype) for v in eqn.outputs):
        return []
    raise MissingRule(
        f"an integrand or a right-hand side jumps at points that move, in the operation {name}, and it is not known "
        f"where: divide the interval there, or write it with comparisons and numpy.where{at_line(eqn.line)}"
    )


def _switches(program: Program, found: Sequence[_Found]) -> Switches:
    def traced(types: Sequence[ArrayType], record: Callable[[Leaves], Leaves]) -> Program:
        builder = Builder(types)
        with building(builder):
            return simplify(builder.finish(record(builder.inputs()), f"switches of {program.name}"))

    def differences(args: Leaves) -> Leaves:
        deciding = Program(program.name, program.inputs, program.eqns, [a for f in found for a in f.deciding])
        operands = iter(inline(deciding, args))
        parts = [f.jump.differences(*(next(operands) for _ in f.deciding)) for f in found if f.deciding]
        return [np.concatenate([np.reshape(x, (-1,)).astype(np.float64) for x in parts])]

    def outcomes(args: Leaves) -> Leaves:
        told: Leaves = []

        def apply(eqn: Eqn, operands: Leaves) -> Leaves:
            results = repeat(eqn, operands)
            told.extend([f.jump.outcome(*operands) if f.jump.outcome else results[0] for f in found if f.eqn is eqn])
            return results

        interpret(program, args, apply, _constant)
        return told

    def frozen(args: Leaves) -> Leaves:
        *consts, x = args
        count = len(program.inputs) - 1
        told = iter(consts[count:])

        def apply(eqn: Eqn, operands: Leaves) -> Leaves:
            jumps = [f.jump for f in found if f.eqn is eqn]
            return [jumps[0].result(next(told), *operands)] if jumps else repeat(eqn, operands)

        return interpret(program, [*consts[:count], x], apply, _constant)

    types = program.in_types
    asked = traced(types, outcomes)
    return Switches(traced(types, differences), asked, traced([*types[:-1], *asked.out_types, types[-1]], frozen))


def _constant(const: Const) -> Tracer:
    builder = current_builder()
    assert builder is not None
    return Tracer(builder, const)


def divided(
    switches: Switches, consts: Leaves, a: Any, b: Any, integrate: Callable[[Captured, Any, Any], Leaves]
) -> Leaves:
    """The integrals as sums of those between the points where the integrand switches.

    Args:
        switches: the comparisons.
        consts: the constants.
        a: the lower limit.
        b: the upper limit.
        integrate: records the integrals of a program.
    """
    held = [stop_gradient(x) for x in (*consts, a, b)]
    places, kinds = black_box.apply(_finder(switches.differences), held)

    def exactly(place: Any, kind: Any) -> Any:
        """A point as a function of the constants, and the upper limit where there is no further point."""

        def difference(x: Any) -> Any:
            values = inline(switches.differences, [*consts, x])[0]
            return np.where(kind < 0, x - place, values[np.maximum(kind, 0)])

        return np.where(kind < 0, b, root(difference, place, solver="newton"))

    points = vmap(exactly)(places, kinds)
    edges = np.concatenate([a[None], points, b[None]])

    def part(low: Any, high: Any) -> Leaves:
        outcomes = inline(switches.outcomes, [*consts, stop_gradient(_between(low, high))])
        return integrate(Captured(switches.frozen, [*consts, *map(stop_gradient, outcomes)]), low, high)

    return [np.sum(y, axis=0) for y in vmap(part)(edges[:-1], edges[1:])]


def _between(low: Any, high: Any) -> Any:
    """A point between two, of which one or both may be infinite."""
    inside, outside = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    beyond = np.where(
        np.isfinite(low),
        inside + np.where(high > low, 1.0, -1.0) * (1.0 + abs(inside)),
        np.where(np.isfinite(high), outside + np.where(low > high, 1.0, -1.0) * (1.0 + abs(outside)), 0.0),
    )
    return np.where(np.isfinite(low) & np.isfinite(high), (inside + outside) / 2, beyond)


def _finder(differences: Program) -> Code:
    """Python code that finds where the elements of the program change sign between two limits.

    It returns points in order, filled up with zeros, and for each the element that changes, or -1.
    """

    def make() -> Code:
        run = function_to_run(differences)

        def find(*arrays: Any) -> list[Any]:
            *consts, a, b = arrays

            def at(x: float) -> Any:
                return run(*consts, np.float64(x))[0]

            around = grid(float(a), float(b))
            values = np.array([at(x) for x in around])
            signs, are_numbers = values > 0, np.isfinite(values)
            found = []
            for place, kind in np.argwhere((signs[1:] != signs[:-1]) & are_numbers[1:] & are_numbers[:-1]):
                x = scipy.optimize.brentq(
                    lambda x, kind=kind: at(x)[kind], around[place], around[place + 1], xtol=1e-300
                )
                found.append((place, abs(x - around[place]), x, kind))
            if len(found) > _MOST:
                raise ValueError(
                    f"an integrand switches at more than {_MOST} points that move with what it is derived by: divide "
                    "the integral, or write the integrand without conditions"
                )
            found.sort()
            places, kinds = np.zeros(_MOST), np.full(_MOST, -1)
            for i, (*_, x, kind) in enumerate(found):
                places[i], kinds[i] = x, kind
            return [places, kinds]

        types = [ArrayType((_MOST,), np.dtype(np.float64)), ArrayType((_MOST,), np.dtype(np.int64))]
        return Code(f"switches({differences.name})", find, types, "SciPy finds the points")

    return differences.derive("finder", make)


def grid(a: float, b: float) -> Any:
    """Points from one limit to the other, at uneven distances; of infinite limits, to large numbers."""
    steps = np.linspace(0.0, 1.0, _PARTS + 1)
    steps[1:-1] += 0.3 / _PARTS * np.sin(np.arange(1, _PARTS) ** 2)
    if np.isfinite(a) and np.isfinite(b):
        return a + (b - a) * steps
    if np.isfinite(a):
        return a + np.copysign(1.0, b) * np.concatenate([steps[:-1] / (1 - steps[:-1]), [1e9]])
    if np.isfinite(b):
        return grid(b, a)[::-1]
    around = 2 * steps[1:-1] - 1
    return np.sign(b) * np.concatenate([[-1e9], around / (1 - around**2), [1e9]])
