"""Ordinary differential equations: an explicit Runge-Kutta method with error control, and two adjoints.

The solver is a `while_loop` over steps inside a `scan` over output times, so every transformation of it is that of
loops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ..api.call import check_function, name_of, run, trace_flat, type_name
from ..api.derivatives import stop_gradient
from ..api.loops import scan
from ..api.vectors import check_limits
from ..api.vmap import vmap
from ..base import tree
from ..base.foreign_arrays import is_foreign
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..base.type_variables import Array, Scalar
from ..control.convergence import required
from ..control.rules.custom_rule import Linearized, Rule, custom
from ..control.rules.linear_call import Name
from ..control.subprograms import Flags, chosen, cut, rewired, spread
from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Builder, NoWitness, Tracer, building, current_builder
from ..core.types import ArrayType, is_inexact, type_of
from ..numpy.promotion import asarray, cast
from ..transforms.differentiate import pullback
from ..transforms.jvp import jvp as jvp_program
from ..transforms.simplify import simplify
from .runge_kutta import Field, Leaves, Options, State, advance, first_state, like


class OdeInfo(NamedTuple):
    """The outcome of an integration.

    Attributes:
        steps: total number of steps tried.
        accepted: number of steps that met the tolerances.
        success: whether the last time was reached.
    """

    steps: Any
    accepted: Any
    success: Any


@overload
def odeint(
    f: Callable[..., Any],
    y0: Array[Scalar],
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    adjoint: Literal["discrete", "continuous"] = "discrete",
    info: Literal[False] = False,
) -> Array[Scalar]: ...
@overload
def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    adjoint: Literal["discrete", "continuous"] = "discrete",
    info: Literal[False] = False,
) -> Any: ...
@overload
def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    adjoint: Literal["discrete", "continuous"] = "discrete",
    info: Literal[True],
) -> tuple[Any, OdeInfo]: ...
@short_tracebacks
def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    adjoint: Literal["discrete", "continuous"] = "discrete",
    info: bool = False,
) -> Any:
    """Solve an ordinary differential equation, dy/dt = f(y, t, *args), y(t[0]) = y0, at given times.

    The method is the explicit Runge-Kutta pair of order 5(4) of Dormand and Prince, with adaptive steps that keep the
    estimated local error within the tolerances.  It is not meant for stiff equations.

    The result has derivatives with respect to `y0`, `t`, `args` and values that `f` closes over, in every mode and of
    every order:

    - `adjoint="discrete"`: the derivative of the steps that were taken (discretise, then differentiate).  Reverse mode
      goes back through the steps as through a `while_loop`, with `max_steps` or `checkpoints` as there, for each
      interval of `t`.  Step sizes are chosen for the solution alone.  If the solution hardly moves but its derivative
      does, as near an equilibrium, the steps are too large for the derivative, which can then be inaccurate.
    - `adjoint="continuous"`: derivatives solve further differential equations, with their own step sizes: forward mode
      the variational equation, reverse mode the adjoint equation, backwards in time (Pontryagin et al., 1962; Chen et
      al., 2018).  They are as accurate as the tolerances, relative to the largest tangent or cotangent.  Reverse mode
      keeps only the solution at the output times, and takes about as many evaluations of `f` again, each with a
      vector-Jacobian product.  It also integrates the solution backwards, which fails if solutions converge to each
      other very quickly.

    Args:
        f: `(y, t, *args) -> dy/dt`, which has the structure and shapes of `y`.
        y0: the initial state: an array, a number or a container of them, real or complex.
        t: array of times of shape (n,), increasing or decreasing.
        args: arrays, numbers and containers of them for `f`.
        rtol: relative tolerance for the local error.
        atol: absolute tolerance for the local error.  Errors are measured by the root mean square over all elements.
        max_steps: maximum number of steps between two output times, for each equation that is solved.
        checkpoints: number of states that the discrete adjoint keeps between two output times, as in `while_loop`.
        adjoint: "discrete" or "continuous": how derivatives are computed.
        info: whether to return an `OdeInfo` as well.

    Returns:
        A container like `y0` with arrays of shape (n, ...): the states at all times.  If `info`, a pair of it and a
        tuple `(steps, accepted, success)`.

    Raises:
        TypeError: `y0` or `t` is not an array of real (for `y0`, also complex) numbers, or the result of `f` is not
            like `y0` (shown by path).
        ValueError: `t` is not one-dimensional, or a tolerance is not positive.
        ConvergenceError: step sizes became too small (the solution has a singularity, or is not finite), or there were
            more than `max_steps` steps.  In compiled code, and in derivatives whose value is not used, results are NaN
            instead; with `info`, states that were not reached are NaN.  NumPy may warn about steps that are tried and
            rejected.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> decay = lambda rate: ft.odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 1.0]))[-1]
        >>> ft.value_and_grad(decay)(2.0)[1].round(6)
        np.float64(-0.135335)
    """
    check_function(f, "odeint")
    if adjoint not in ("discrete", "continuous"):
        raise ValueError(f'adjoint of odeint must be "discrete" or "continuous", not {adjoint!r}{at_line(user_line())}')
    if not (is_plain(rtol, Real) and is_plain(atol, Real) and rtol > 0 and atol >= 0):
        raise ValueError(f"odeint needs rtol > 0 and atol >= 0, not {rtol!r} and {atol!r}{at_line(user_line())}")
    check_limits("odeint", max_steps=max_steps, checkpoints=checkpoints)
    options = Options(float(rtol), float(atol), max_steps, checkpoints)
    given = (y0, t, args)
    leaves, structure = tree.flatten(given)
    leaves = [_array(x, given, i) for i, x in enumerate(leaves)]

    def solve(tracers: list[Tracer]) -> Any:
        y0, t, args = tree.unflatten(structure, tracers)
        return _odeint(f, y0, t, args, options, adjoint, info)

    if current_builder() is not None:
        return solve(leaves)
    types = [type_of(x) for x in leaves]
    traced, _ = trace_flat(f, types, solve, NoWitness("odeint evaluates f at many times, so there is no one value"))
    outs = run(traced.program, [*leaves, *traced.captured])
    return tree.unflatten(traced.structure, outs)


def _array(x: Any, given: Any, index: int) -> Any:
    try:
        type_of(x)
    except TypeError:
        path = tree.paths(given)[index]
        where = {"[0]": "y0", "[1]": "t", "[2]": "args"}[path[:3]] + path[3:]
        advice = "" if is_foreign(x) else "; let f close over it"
        raise TypeError(
            f"odeint takes arrays, numbers and containers of them, but {where} is {type_name(x)}{advice}"
            + at_line(user_line())
        ) from None
    if hasattr(x, "dtype"):
        return x
    return np.asarray(x)[()]


def _odeint(f: Any, y0: Any, t: Any, args: Any, options: Options, adjoint: str, info: bool) -> Any:
    """Record the solution in the running trace."""
    ys, structure = tree.flatten(y0)
    ys = [_inexact(asarray(y)) for y in ys]
    if isinstance(t, list | tuple):
        t = np.stack(list(t))
    if not isinstance(t, Tracer):
        t = asarray(t)
    if t.dtype.kind not in "fiu" or t.ndim != 1 or not t.size:
        raise ValueError(f"t of odeint must be an array of times of shape (n,), not {t.type}{at_line(user_line())}")
    t = _inexact(t)
    more, more_structure = tree.flatten(args)
    more = [asarray(x) for x in more]
    program, captured = _trace_field(f, y0, ys, structure, t, more, more_structure)
    consts = [*more, *captured]
    if adjoint == "discrete" or len(t) == 1 or not ys:
        outs, details = _solution(program, ys, t, consts, options)
    else:
        outs, details = _solved(program, ys, t, consts, options)
    if not info:
        message = "odeint stopped at t = {residual} after {iterations} steps, which had become too small or too many"
        outs = [
            np.reshape(  # type: ignore[call-overload]
                required(np.reshape(y, (-1,)), details.success, details.steps, details.t, message=message), y.shape
            )
            for y in outs
        ]
    result = tree.unflatten(structure, outs)
    return (result, OdeInfo(details.steps, details.accepted, details.success)) if info else result


def _inexact(x: Tracer) -> Tracer:
    return x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))


def _trace_field(
    f: Any, y0: Any, ys: Leaves, structure: tree.Structure, t: Tracer, more: Leaves, more_structure: tree.Structure
) -> tuple[Program, Leaves]:
    """The program of `f` on leaves: takes the state, the time, the arguments, and what `f` captured."""
    count = len(ys)

    def rebuild(tracers: list[Tracer]) -> Leaves:
        args = tree.unflatten(more_structure, tracers[count + 1 :])
        out = f(tree.unflatten(structure, tracers[:count]), tracers[count], *args)
        slopes, out_structure = tree.flatten(out)
        if out_structure != structure:
            raise TypeError(
                f"the function of odeint must return the derivative of its state, a container like it: {structure} "
                f"went in, and {name_of(f)} returned {out_structure}{at_line(user_line())}"
            )
        slopes = [asarray(k) for k in slopes]
        wrong = [
            f"\n  y{path}: {y.type} went in, {k.type} was returned"
            for path, y, k in zip(tree.paths(y0), ys, slopes, strict=True)
            if k.shape != y.shape or not np.can_cast(k.dtype, y.dtype, "same_kind")
        ]
        if wrong:
            raise TypeError(
                f"the function of odeint must return the derivative of its state, which has its shapes; {name_of(f)} "
                f"does not:{''.join(wrong)}{at_line(user_line())}"
            )
        return [cast(k, y.dtype) for k, y in zip(slopes, ys, strict=True)]

    types = [*(y.type for y in ys), ArrayType((), t.dtype), *(x.type for x in more)]
    reason = NoWitness("odeint evaluates the function at many times, so a branch inside it has no single value")
    traced, _ = trace_flat(f, types, rebuild, reason)
    return traced.program, traced.captured


# The solver


class Details(NamedTuple):
    t: Any
    steps: Any
    accepted: Any
    success: Any


def _solution(program: Program, ys: Leaves, t: Any, consts: Leaves, options: Options) -> tuple[Leaves, Details]:
    """The states at all times, and how they were found."""

    field = Field(lambda ys, t, consts: inline(program, [*ys, t, *consts]), consts)
    held = stop_gradient(consts)

    def guess(ys: Leaves, t: Any) -> Leaves:
        return inline(program, [*stop_gradient(ys), stop_gradient(t), *held])

    if len(t) == 1:
        one = np.ones_like(t[0], dtype=bool)
        nothing = np.zeros_like(t[0], dtype=np.int64)
        return [y[None] for y in ys], Details(t[0], nothing, nothing, one)
    first = first_state(field, guess, ys, t[0], t[1], options)

    def interval(state: State, stop: Any) -> tuple[State, Leaves]:
        state = advance(field, state, stop, options)
        # Multiplied, a failure reaches the derivative as well.
        mark = np.where(state.ok, 1.0, np.nan)
        return state, [y * like(mark, y) for y in state.ys]

    last, later = scan(interval, first, t[1:])
    outs = [np.concatenate([y[None], z]) for y, z in zip(ys, later, strict=True)]
    return outs, Details(stop_gradient(last.t), last.steps, last.accepted, last.ok)


# The solver whose derivatives are solutions too


def _solver(program: Program, count: int, times: ArrayType, options: Options) -> Rule:
    """The solver as a program with a derivative rule, made when it is asked for: equations for tangents and cotangents.

    Those are solved by the same solver, so that their solutions have such a rule in turn.

    Args:
        program: the right-hand side.
        count: how many leaves the state has.
        times: type of the array of times.
        options: options of the solver.
    """

    def make() -> Rule:
        builder = Builder([*program.in_types[:count], times, *program.in_types[count + 1 :]])
        with building(builder):
            ys, (t,), consts = cut(builder.inputs(), count, 1)
            outs, details = _solution(program, ys, t, consts, options)
            solver = builder.finish([*outs, *details], "odeint")
        name = Name("odeint", "reverse", None, None, f"odeint(rtol={options.rtol:g}, atol={options.atol:g})")
        return Rule(
            name, solver, len(solver.inputs), lambda active: _linearized(program, solver, count, options, active)
        )

    return program.derive(("solver", count, times, options), make)


def _solved(program: Program, ys: Leaves, t: Any, consts: Leaves, options: Options) -> tuple[Leaves, Details]:
    """The states at all times, and how they were found, as one equation with a rule for its derivative."""
    rule = _solver(program, len(ys), t.type, options)
    every = tuple(range(len(rule.primal.outputs)))
    outs, details = cut(custom(*ys, t, *consts, program=rule.primal, rule=rule, outs=every), len(ys))
    return outs, Details(*details)


def _linearized(program: Program, solver: Program, count: int, options: Options, active: Flags) -> Linearized:
    """The derivative of a solver along the inputs that are flagged; the states it found are residuals."""
    operands = len(solver.inputs)
    residuals = [*solver.out_types[:count], *solver.in_types]
    along = chosen(solver.in_types, active)

    def traced(types: Sequence[ArrayType], rule: Callable[..., Leaves]) -> Program:
        builder = Builder([*residuals, *types])
        with building(builder):
            outs, ys, (t,), consts, given = cut(builder.inputs(), count, count, 1, operands - count - 1)
            return builder.finish(rule(program, outs, ys, t, consts, given, active, options), rule.__name__)

    return Linearized(
        values=solver,
        sources=(*range(operands, operands + count), *range(operands)),
        forward=traced(along, tangents),
        backward=traced(residuals[:count], cotangents),
        out_active=tuple(i < count for i in range(len(solver.outputs))),
        is_linear=True,
    )


def tangents(
    program: Program, outs: Leaves, ys: Leaves, t: Any, consts: Leaves, given: Leaves, active: Flags, options: Options
) -> Leaves:
    """Tangents of the states at all times, from those of the first state, the times and the constants."""
    count = len(ys)
    of_ys, (of_t,), of_consts = cut(spread(given, active), count, 1)
    start = [np.zeros_like(y) if d is None else d for y, d in zip(ys, of_ys, strict=True)]
    if of_t is not None:
        start = [d - like(of_t[0], d) * k for d, k in zip(start, inline(program, [*ys, t[0], *consts]), strict=True)]
    moving = tuple(d is not None for d in of_consts)
    start, moved, scale = _scaled(start, chosen(of_consts, moving))
    together, _ = _solved(_with_tangents(program, count, moving), [*ys, *start], t, [*consts, *moved], options)
    found = [d * like(scale, d) for d in together[count:]]
    if of_t is not None:
        slopes = vmap(lambda ys, t: inline(program, [*ys, t, *consts]))(outs, t)
        found = [d + (like(of_t, k) * k.T).T for d, k in zip(found, slopes, strict=True)]
    return found


def _with_tangents(program: Program, count: int, moving: Flags) -> Program:
    """The equation together with that of its tangents, along the state and the constants that are flagged."""
    derived = jvp_program(program, (*(True,) * count, False, *moving), (True,) * count)
    inputs = len(program.inputs)
    order = [*range(count), *range(inputs, inputs + count), *range(count, inputs)]
    return rewired(simplify(derived.program), [*order, *range(inputs + count, len(derived.program.inputs))])


def cotangents(
    program: Program, outs: Leaves, ys: Leaves, t: Any, consts: Leaves, given: Leaves, active: Flags, options: Options
) -> Leaves:
    """Cotangents of the first state, the times and the constants, from those of the states at all times."""
    count = len(ys)
    moving = active[count + 1 :]
    totals = [np.zeros_like(x) for x in chosen(consts, moving)]
    cts, _, scale = _scaled(given, [])
    adjoint = _with_cotangents(program, count, moving)

    def interval(carry: Any, x: Any) -> Any:
        cts, totals = carry
        ys, more, start, stop = x
        cts = [a + b for a, b in zip(cts, more, strict=True)]
        ends, _ = _solved(adjoint, [*ys, *cts, *totals], np.stack([start, stop]), consts, options)
        _, cts, totals = cut([y[1] for y in ends], count, count)
        return (cts, totals), None

    first = ([np.zeros_like(y) for y in ys], totals)
    xs = ([y[1:] for y in outs], [a[1:] for a in cts], t[1:], t[:-1])
    (of_ys, totals), _ = scan(interval, first, xs, reverse=True)

    def along_slopes(ys: Leaves, t: Any, cts: Leaves) -> Any:
        """The rate at which the result changes with the time, along the cotangents."""
        slopes = inline(program, [*ys, t, *consts])
        return sum(np.sum((k * a).real).astype(t.dtype) for k, a in zip(slopes, cts, strict=True))

    of_first = -along_slopes(ys, t[0], of_ys)
    of_later = vmap(along_slopes)([y[1:] for y in outs], t[1:], [a[1:] for a in cts])
    of_ys = [a + b[0] for a, b in zip(of_ys, cts, strict=True)]
    of_t = np.concatenate([of_first[None], of_later])
    found = [*of_ys, of_t, *spread(totals, moving)]
    return [x * like(scale, x) for x in chosen(found, active)]


def _with_cotangents(program: Program, count: int, moving: Flags) -> Program:
    """The equation together with that of its cotangents and, behind them, of those of the flagged constants."""

    def make() -> Program:
        of_state, (of_t,), of_consts = cut(program.in_types, count, 1)
        builder = Builder([*of_state, *of_state, *chosen(of_consts, moving), of_t, *of_consts])
        with building(builder):
            ys, cts, _, (t,), consts = cut(builder.inputs(), count, count, moving.count(True), 1)

            active = (*(True,) * count, False, *moving)
            parts = pullback(program, active)
            found, residuals = cut(inline(parts.values, [*ys, t, *consts]), count)
            pulled = inline(parts.linear, [*residuals, *chosen(cts, parts.out_active)])
            of_inputs = spread(pulled, parts.in_active)
            falling = [
                np.zeros_like(x) if d is None else -d
                for d, x in zip(of_inputs, [*ys, *chosen(consts, moving)], strict=True)
            ]
            return builder.finish([*found, *falling], f"adjoint of {program.name}")

    return program.derive(("with cotangents", count, moving), make)


def _scaled(xs: Leaves, more: Leaves) -> tuple[Leaves, Leaves, Any]:
    """Tangents or cotangents divided by the largest of them, and that: so tolerances are relative to it."""
    largest: Any = functools.reduce(np.maximum, [np.max(abs(x), initial=0.0).astype(np.float64) for x in [*xs, *more]])
    scale = stop_gradient(np.where(largest > 0, largest, 1.0))
    return [x / like(scale, x) for x in xs], [x / like(scale, x) for x in more], scale
