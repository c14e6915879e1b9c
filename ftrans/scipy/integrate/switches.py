"""Points at which an integrand switches between expressions, and that move with what it is derived by.

Where an integrand jumps at such a point, the derivative of the integral is not the integral of the derivative: the
jump, times the speed of the point, is missing.  (So is it from the second derivative where there is a kink.)  So the
interval is divided there.  Between two such points the outcomes of all comparisons are constant, and the points are
limits of integrals, by which these have derivatives.
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
from ...core.interpret import inline
from ...core.primitive import MissingRule
from ...core.program import Eqn, Program, Var
from ...core.trace import Builder, building
from ...core.types import ArrayType, is_inexact
from ...run.straightline import function_to_run
from ...solvers.implicit import root
from ...transforms.simplify import simplify

Leaves = list[Any]

_COMPARISONS = frozenset(("lt", "le", "gt", "ge"))
_ROUNDING = frozenset(("floor", "ceil", "round", "trunc", "rint"))
# The most points, and the number of parts of an interval in each of which one is looked for.
_MOST, _PARTS = 16, 128


class Switches(NamedTuple):
    """The comparisons of an integrand, in place of which it may be given their outcomes.

    Attributes:
        differences: takes what the program takes; where an element of its result changes sign, one switches.
        outcomes: takes the same; the results of the comparisons.
        frozen: the program without the comparisons; takes their outcomes before its last input.
    """

    differences: Program
    outcomes: Program
    frozen: Program


def moving_switches(program: Program, moving: Flags, varying: Flags) -> Switches | None:
    """The comparisons between values that depend on variables and on what moves; None without any.

    Args:
        program: the program.
        moving: which inputs change with what is derived by.
        varying: which inputs are variables.

    Raises:
        MissingRule: such values are rounded.
    """
    return program.derive(("moving switches", moving, varying), lambda: _moving_switches(program, moving, varying))


def _moving_switches(program: Program, moving: Flags, varying: Flags) -> Switches | None:
    by_variable: set[Any] = set(chosen(program.inputs, varying))
    by_constants: set[Any] = set(chosen(program.inputs, moving))
    found: list[Eqn] = []
    for eqn in program.eqns:
        is_varying, is_moving = (any(a in among for a in eqn.operands) for among in (by_variable, by_constants))
        name = eqn.primitive.name
        is_of_numbers = all(is_inexact(a.type.dtype) for a in eqn.operands)
        if is_varying and is_moving and name in _ROUNDING:
            raise MissingRule(
                f"an integrand or a right-hand side jumps at points that move where it is rounded by {name}, which has "
                f"no derivative here: divide the interval there{at_line(eqn.line)}"
            )
        if is_varying and is_moving and is_of_numbers and _sides(program, eqn) is not None:
            found.append(eqn)
        if is_varying:
            by_variable.update(eqn.outputs)
        if is_moving:
            by_constants.update(eqn.outputs)
    return _switches(program, found) if found else None


def _sides(program: Program, eqn: Eqn) -> list[Any] | None:
    """The two values (or one, compared with 0) that decide the outcome of an equation; None if there are none."""
    name = eqn.primitive.name
    if name in _COMPARISONS or name == "sign":
        return list(eqn.operands)
    if name in ("eq", "ne"):
        # Which of two is the smaller one is asked in this way.
        makers = [
            e for e in program.eqns if e.primitive.name in ("minimum", "maximum") and e.outputs[0] in eqn.operands
        ]
        return list(makers[0].operands) if makers else None
    return None


def _switches(program: Program, eqns: Sequence[Eqn]) -> Switches:
    outcomes: list[Var] = [eqn.outputs[0] for eqn in eqns]
    pairs = [_sides(program, eqn) or [] for eqn in eqns]
    sides = Program(program.name, program.inputs, program.eqns, [a for pair in pairs for a in pair])
    builder = Builder(program.in_types)
    with building(builder):
        values = iter(inline(sides, builder.inputs()))
        parts: Leaves = []
        for atoms in pairs:
            pair = [next(values) for _ in atoms]
            parts.append(np.reshape(pair[0] - pair[1] if len(pair) > 1 else pair[0], (-1,)).astype(np.float64))
        differences = builder.finish([np.concatenate(parts)], f"switches of {program.name}")
    *consts, x = program.inputs
    others = [eqn for eqn in program.eqns if not any(eqn is other for other in eqns)]
    return Switches(
        simplify(differences),
        simplify(Program(program.name, program.inputs, program.eqns, outcomes)),
        Program(program.name, [*consts, *outcomes, x], others, program.outputs),
    )


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
            signs = np.array([at(x) for x in around]) > 0
            found = []
            for place, kind in np.argwhere(signs[1:] != signs[:-1]):
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
