"""States of an initial value problem, computed by SciPy's solvers on the host, with a derivative rule.

The derivatives of the states are states of a larger problem, the variational equations, which the same solver solves
with the same tolerances: forward mode adds one direction, reverse mode as many as there are numbers to be derived by.
Both are recorded in terms of the same states, so all orders are defined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...api.derivatives import stop_gradient
from ...api.vectors import Captured
from ...api.vmap import vmap
from ...control.convergence import required
from ...control.rules.black_box import Code, black_box
from ...control.rules.custom_rule import Linearized, Rule, custom
from ...control.rules.linear_call import Name
from ...control.subprograms import Flags, chosen, cut, spread
from ...core.interpret import inline
from ...core.program import Program
from ...core.trace import Builder, building
from ...core.types import ArrayType
from ...ops.literals import full, full_like
from ...run.straightline import function_to_run
from ...solvers.jacobians import jacobian
from ...structure.dense.basis import unit_vectors
from ...transforms.jvp import jvp as jvp_program
from ...transforms.simplify import simplify
from .switches import Switches, moving_switches

Leaves = list[Any]
Field = Callable[[float, Any], Any]

NUMBER = ArrayType((), np.dtype(np.float64))
# How many states of a solution are looked at for jumps, and how large a jump is, relative to the largest slope.
_LOOKED_AT, _SMALLEST_JUMP = 400, 1e-3
_COUNT = ArrayType((), np.dtype(np.int64))


class Solved(NamedTuple):
    """What a solver found.

    Attributes:
        states: an array of shape (times, size), NaN where the solver has not arrived.
        status: SciPy's.
        evaluations: of the right-hand side.
        jacobians: evaluations of its Jacobian.
        factorisations: of matrices.
    """

    states: Any
    status: Any
    evaluations: Any
    jacobians: Any
    factorisations: Any


class Solver(Protocol):
    """How an initial value problem is solved.  Two that are equal find the same."""

    def solve(self, f: Field, jacobian: Field | None, y0: Any, start: float, stop: float, times: Any) -> Solved:
        """The states at some times of dy/dt = f(t, y), y(start) = y0."""

    def tolerance(self) -> str:
        """The call of SciPy, with its tolerances, for messages."""

    def with_tangents(self, columns: int) -> Solver:
        """The same for a problem with tangents, one behind the other, that have the scales of the state."""


def states(field: Captured, y0: Any, start: Any, stop: Any, times: Any, solver: Solver) -> Solved:
    """Record the states of an initial value problem.

    Args:
        field: the right-hand side: takes constants, the time and the state, and returns its derivative.
        y0: the first state, of shape (n,).
        start: the time of it.
        stop: the time up to which the problem is solved; it has no influence on states before.
        times: the times of the states that are asked for, of shape (m,).
        solver: how.
    """
    rule = _rule(field.program, len(times), solver)
    every = tuple(range(len(rule.primal.outputs)))
    operands = [*field.consts, y0, start, stop, times]
    return Solved(*custom(*operands, program=rule.primal, rule=rule, outs=every))


def _rule(field: Program, times: int, solver: Solver) -> Rule:
    def make() -> Rule:
        types = [*field.in_types[:-2], field.in_types[-1], NUMBER, NUMBER, ArrayType((times,), NUMBER.dtype)]
        code = solution(field, times, solver)
        builder = Builder(types)
        with building(builder):
            primal = builder.finish(black_box.apply(code, builder.inputs()), code.name)
        name = Name("a solution", "reverse", None, None, solver.tolerance())
        return Rule(name, primal, len(types), lambda active: _linearized(field, primal, solver, active))

    return field.derive(("states", times, solver), make)


def functions(field: Program, consts: Sequence[Any]) -> tuple[Field, Field]:
    """A right-hand side and its Jacobian as Python functions of the time and the state."""
    run, run_jacobian = function_to_run(simplify(field)), None

    def f(t: float, y: Any) -> Any:
        return run(*consts, np.float64(t), y)[0]

    def jac(t: float, y: Any) -> Any:
        nonlocal run_jacobian
        run_jacobian = run_jacobian or function_to_run(jacobian(field))
        return run_jacobian(*consts, np.float64(t), y)[0]

    return f, jac


def solution(field: Program, times: int, solver: Solver) -> Code:
    """The solver as Python code; the last solution is kept, since it is often asked for again."""
    size = field.in_types[-1].size
    last: tuple[Any, Solved] | None = None

    def compute(*arrays: Any) -> Sequence[Any]:
        nonlocal last
        key = [np.asarray(x).tobytes() for x in arrays]
        kept = last
        if kept is None or kept[0] != key:
            *consts, y0, start, stop, at = arrays
            found = solver.solve(*functions(field, consts), y0, float(start), float(stop), at)
            numbers = [np.int64(x) for x in found[1:]]
            last = kept = key, Solved(np.ascontiguousarray(found.states), *numbers)
        return kept[1]

    types = [ArrayType((times, size), NUMBER.dtype), _COUNT, _COUNT, _COUNT, _COUNT]
    return Code(f"solution({field.name})", compute, types, "SciPy solves the equation")


def _linearized(field: Program, primal: Program, solver: Solver, active: Flags) -> Linearized:
    given = primal.in_types
    residuals = [primal.out_types[0], *given]

    def traced(types: Sequence[ArrayType], rule: Callable[..., Leaves]) -> Program:
        builder = Builder([*residuals, *types])
        with building(builder):
            (found,), operands, moved = cut(builder.inputs(), 1, len(given))
            *consts, y0, start, stop, times = operands
            problem = Problem(field, consts, y0, start, stop, times, solver)
            results = rule(problem, found, moved, active)
            if any(active[:-2]):
                results = _without_jumps(results, problem, active[:-4])
            return builder.finish(results, rule.__name__)

    return Linearized(
        values=primal,
        sources=(len(given), *range(len(given))),
        forward=traced(chosen(given, active), _tangents),
        backward=traced(residuals[:1], _cotangents),
        out_active=tuple(i == 0 for i in range(len(primal.outputs))),
        is_linear=True,
    )


def _without_jumps(results: Leaves, problem: Problem, moving: Flags) -> Leaves:
    """Derivatives of a solution, along which the right-hand side is required not to jump where the state decides.

    There, the variational equations do not tell the derivative.
    """
    field = problem.field
    constants = (False,) * len(moving)
    switches = moving_switches(field, (*moving, False, True), (*constants, True, True))
    if switches is None:
        return results
    code = field.derive(("jumps", problem.solver), lambda: _jumps(field, switches, problem.solver))
    operands = [stop_gradient(x) for x in (*problem.consts, problem.y0, problem.start, problem.stop)]
    count, time = black_box.apply(code, operands)
    message = (
        "the right-hand side of a differential equation jumps {iterations} times where the state or a parameter "
        "decides, first at t = {residual}, and the derivative of the state does not tell that: solve up to there, and "
        "go on from there, or write a smooth function"
    )
    return [
        np.reshape(required(np.reshape(x, (-1,)), count == 0, count, time, message=message), x.shape) for x in results
    ]


def _jumps(field: Program, switches: Switches, solver: Solver) -> Code:
    """Python code that counts the jumps of a right-hand side along a solution, and finds the time of the first."""
    outcomes, frozen = function_to_run(switches.outcomes), function_to_run(simplify(switches.frozen))

    def compute(*arrays: Any) -> Sequence[Any]:
        *consts, y0, start, stop = arrays
        times = np.linspace(start, stop, _LOOKED_AT)
        path = solver.solve(functions(field, consts)[0], None, y0, float(start), float(stop), times).states
        slopes = [functions(field, consts)[0](t, y) for t, y in zip(times, path, strict=True)]
        told = [[np.asarray(x) for x in outcomes(*consts, t, y)] for t, y in zip(times, path, strict=True)]
        largest, found = np.max(np.abs(slopes), initial=0.0), []
        for i in range(len(times) - 1):
            if any((a != b).any() for a, b in zip(told[i], told[i + 1], strict=True)):
                t, y = _crossing(lambda t, y: outcomes(*consts, t, y), times[i : i + 2], path[i : i + 2])
                before, after = (frozen(*consts, t, *told[j], y)[0] for j in (i, i + 1))
                if np.max(np.abs(after - before)) > _SMALLEST_JUMP * largest:
                    found.append(t)
        return [np.int64(len(found)), np.float64(found[0] if found else np.nan)]

    return Code(f"jumps({field.name})", compute, [_COUNT, NUMBER], "SciPy solves the equation")


def _crossing(outcomes: Callable[[float, Any], Any], times: Any, path: Any) -> tuple[float, Any]:
    """Where outcomes change on the line between two states."""

    def at(part: float) -> tuple[float, Any]:
        return times[0] + part * (times[1] - times[0]), path[0] + part * (path[1] - path[0])

    low, high = 0.0, 1.0
    first = [np.asarray(x) for x in outcomes(*at(low))]
    for _ in range(40):
        middle = (low + high) / 2
        same = all((a == b).all() for a, b in zip(first, outcomes(*at(middle)), strict=True))
        low, high = (middle, high) if same else (low, middle)
    return at(high)


class Problem(NamedTuple):
    """An initial value problem, with traced values."""

    field: Program
    consts: Leaves
    y0: Any
    start: Any
    stop: Any
    times: Any
    solver: Solver

    def slope(self, t: Any, y: Any) -> Any:
        """The right-hand side."""
        return inline(self.field, [*self.consts, t, y])[0]

    def tangents(self, field: Program, more: Leaves, start: Any) -> Any:
        """The tangents in a problem with some: an array (columns, times, size).

        Args:
            field: the right-hand side for the state and the tangents, one behind the other.
            more: its constants behind those of this problem.
            start: tangents of the first state, of shape (columns, size).
        """
        size, columns = self.y0.size, start.shape[0]
        first = np.concatenate([self.y0, np.reshape(start, (-1,))])
        solver = self.solver.with_tangents(columns)
        found = states(Captured(field, [*self.consts, *more]), first, self.start, self.stop, self.times, solver).states
        return np.moveaxis(np.reshape(found[:, size:], (-1, columns, size)), 1, 0)


def _tangents(problem: Problem, found: Any, given: Leaves, active: Flags) -> Leaves:
    """Tangents of the states, from those of the constants, the first state and the times."""
    *of_consts, of_y0, of_start, _, of_times = spread(given, active)
    moving = active[:-4]
    total = full_like(found, 0)
    if of_start is not None:
        slope = -of_start * problem.slope(problem.start, problem.y0)
        of_y0 = slope if of_y0 is None else of_y0 + slope
    if of_y0 is not None or any(moving):
        more = chosen(of_consts, moving)
        first = full_like(problem.y0, 0) if of_y0 is None else of_y0
        scale = _scale([*chosen(problem.consts, moving), problem.y0], [*more, first])
        field = _with_tangent(problem.field, moving)
        total = total + scale * problem.tangents(field, [d / scale for d in more], (first / scale)[None])[0]
    if of_times is not None:
        total = total + of_times[:, None] * vmap(problem.slope)(problem.times, found)
    return [total]


def _cotangents(problem: Problem, found: Any, given: Leaves, active: Flags) -> Leaves:
    """Cotangents of the constants, the first state and the times, from those of the states."""
    (cts,) = given
    *moving, of_y0, of_start, _, of_times = active
    by_state = of_y0 or of_start
    leaves = [*chosen(problem.consts, moving), *([problem.y0] if by_state else [])]
    parts = []
    if leaves:
        scales = [_size(x) for x in leaves]
        field, columns = _with_columns(problem.field, tuple(moving), by_state)
        first: Any = full((columns, problem.y0.size), 0, NUMBER.dtype)
        if by_state:
            (units,) = unit_vectors([problem.y0.type], problem.y0.size)
            first = np.concatenate([first[problem.y0.size :], units * scales[-1]])
        changes = problem.tangents(field, scales[: len(leaves) - by_state], first)
        numbers, place = np.sum(changes * cts, axis=(1, 2)), 0
        for x, scale in zip(leaves, scales, strict=True):
            parts.append((np.reshape(numbers[place : place + x.size], x.shape) / scale).astype(x.dtype))
            place += x.size
    results = parts[: len(parts) - by_state]
    if of_y0:
        results.append(parts[-1])
    if of_start:
        results.append(-np.sum(parts[-1] * problem.slope(problem.start, problem.y0)))
    if active[-2]:
        results.append(full_like(problem.stop, 0))
    if of_times:
        results.append(np.sum(cts * vmap(problem.slope)(problem.times, found), axis=1))
    return results


def _with_tangent(field: Program, moving: Flags) -> Program:
    """The equation together with that of a tangent.

    Takes the constants, tangents of those that move, the time, then the state and its tangent in one vector.
    """

    def make() -> Program:
        *consts, time, state = field.in_types
        derived = jvp_program(field, (*moving, False, True), (True,))
        builder = Builder([*consts, *chosen(consts, moving), time, ArrayType((2 * state.size,), state.dtype)])
        with building(builder):
            known, given, (t, both) = cut(builder.inputs(), len(consts), moving.count(True))
            slopes = inline(derived.program, [*known, t, both[: state.size], *given, both[state.size :]])
            return simplify(builder.finish([np.concatenate(slopes)], f"tangent of {field.name}"))

    return field.derive(("with a tangent", moving), make)


def _with_columns(field: Program, moving: Flags, by_state: bool) -> tuple[Program, int]:
    """The equation together with those of the tangents along all numbers that it is derived by, and how many.

    Takes the constants, the sizes of steps of those that move, the time, then the state and its tangents in one
    vector: those along constants, then those along the first state.
    """

    def make() -> tuple[Program, int]:
        *consts, time, state = field.in_types
        changing = chosen(consts, moving)
        along_consts = sum(t.size for t in changing)
        columns = along_consts + (state.size if by_state else 0)
        derived = jvp_program(field, (*moving, False, True), (True,)).program
        builder = Builder(
            [*consts, *(NUMBER for _ in changing), time, ArrayType(((1 + columns) * state.size,), state.dtype)]
        )
        with building(builder):
            known, sizes, (t, both) = cut(builder.inputs(), len(consts), len(changing))
            y, tangents = both[: state.size], np.reshape(both[state.size :], (columns, state.size))
            units = unit_vectors(changing, columns)
            steps = [u * s.astype(u.dtype) for u, s in zip(units, sizes, strict=True)]

            def along(tangent: Any, steps: Leaves) -> Any:
                return inline(derived, [*known, t, y, *steps, tangent])[1]

            changes = np.reshape(vmap(along)(tangents, steps), (-1,))
            slopes = np.concatenate([*inline(field, [*known, t, y]), changes])
            return simplify(builder.finish([slopes], f"tangents of {field.name}")), columns

    return field.derive(("with columns", moving, by_state), make)


def _size(x: Any) -> Any:
    """The largest element, 1 if that is 0: a change of that size is a large one."""
    largest = np.max(abs(stop_gradient(x)), initial=0.0).astype(np.float64)
    return np.where(largest > 0, largest, 1.0)


def _scale(xs: Leaves, changes: Leaves) -> Any:
    """The largest change, relative to what changes: tolerances are meant for tangents of the size of the state."""
    relative = [np.max(abs(stop_gradient(d)), initial=0.0) / _size(x) for x, d in zip(xs, changes, strict=True)]
    largest: Any = functools.reduce(np.maximum, relative, 0.0)
    return np.where(largest > 0, largest, 1.0)
