"""Ordinary differential equations: an explicit Runge-Kutta method with error control, and two adjoints.

The solver is a `while_loop` over steps inside a `scan` over output times, so every transformation of it is that of
loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from ..control.convergence import required
from ..core import tree
from ..core.interpret import inline
from ..core.program import Program
from ..core.source import at_line, user_line
from ..core.trace import NoWitness, Tracer, current_builder
from ..core.types import ArrayType, is_inexact, type_of
from ..numpy.promotion import asarray, cast
from .call import name_of, run, trace_flat, type_name
from .custom_rules import custom_vjp
from .derivatives import jvp, stop_gradient, vjp
from .loops import scan
from .runge_kutta import Field, Leaves, Options, State, advance, first_state, like


class OdeInfo(NamedTuple):
    """How a solution was found.

    Attributes:
        steps: how many steps were tried, all in all.
        accepted: how many of them met the tolerances.
        success: whether the last time was reached.
    """

    steps: Any
    accepted: Any
    success: Any


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
    """The solution of an ordinary differential equation, dy/dt = f(y, t, *args), y(t[0]) = y0, at given times.

    The method is the explicit Runge-Kutta pair of order 5(4) of Dormand and Prince, with steps chosen such that the
    estimated error of each stays within the tolerances.  It is not meant for stiff equations.

    Derivatives are with respect to `y0`, `t`, `args` and whatever `f` closes over, in every mode and of every order:

    - `adjoint="discrete"`: the derivative of the steps as they were taken.  Reverse mode goes back through them as
      through those of a `while_loop`: it keeps what `max_steps` or `checkpoints` say there, for each interval of `t`.
    - `adjoint="continuous"`: reverse mode solves the adjoint equation backwards in time (Pontryagin et al., 1962; Chen
      et al., 2018).  It keeps the solution at the output times alone, costs about as many evaluations of `f` again,
      each with a vector-Jacobian product, and is as accurate as the tolerances.  Forward mode is that of the steps.

    Args:
        f: `(y, t, *args) -> dy/dt`, which has the structure and shapes of `y`.
        y0: the first state: an array, a number or a container, real or complex.
        t: array of times of shape (n,), increasing or decreasing.
        args: arrays, numbers and containers of them for `f`.
        rtol: tolerated error of a step, relative to the solution.
        atol: tolerated error of a step, in addition.  The root mean square over all elements counts.
        max_steps: the most steps between two output times.
        checkpoints: how many states the discrete adjoint keeps between two output times, as in `while_loop`.
        adjoint: how reverse mode works.
        info: whether to return also what it took.

    Returns:
        A container like `y0` with arrays of shape (n, ...): the states at all times.  If `info`, a pair of it and a
        tuple `(steps, accepted, success)`.

    Raises:
        TypeError: `y0` or `t` is not an array of real (for `y0`, also complex) numbers, or `f` returns something that
            is not like `y0` (by path).
        ValueError: `t` has not one axis, or a tolerance is not positive.
        ConvergenceError: steps became too small (the solution has a singularity, or is not finite) or too many.
            Compiled code returns NaN instead.  With `info`, neither: what is missing is NaN.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> decay = lambda rate: ft.odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 1.0]))[-1]
        >>> ft.value_and_grad(decay)(2.0)[1].round(6)
        np.float64(-0.135335)
    """
    if adjoint not in ("discrete", "continuous"):
        raise ValueError(f'adjoint of odeint must be "discrete" or "continuous", not {adjoint!r}{at_line(user_line())}')
    if not (rtol > 0 and atol >= 0):
        raise ValueError(f"odeint needs rtol > 0 and atol >= 0, not {rtol} and {atol}{at_line(user_line())}")
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
        raise TypeError(
            f"odeint takes arrays, numbers and containers of them, but {where} is {type_name(x)}; let f close over it"
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
    if adjoint == "discrete" or len(t) == 1:
        outs, details = _solution(program, ys, t, consts, options)
    else:
        outs, details = _with_continuous_adjoint(program, options)(ys, t, consts)
    if not info:
        message = "odeint stopped at t = {residual} after {iterations} steps, which had become too small or too many"
        outs = [
            np.reshape(
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


class _Details(NamedTuple):
    t: Any
    steps: Any
    accepted: Any
    success: Any


def _solution(program: Program, ys: Leaves, t: Any, consts: Leaves, options: Options) -> tuple[Leaves, _Details]:
    """The states at all times, and how they were found."""

    field = Field(lambda ys, t, consts: inline(program, [*ys, t, *consts]), consts)
    held = stop_gradient(consts)

    def guess(ys: Leaves, t: Any) -> Leaves:
        return inline(program, [*stop_gradient(ys), stop_gradient(t), *held])

    if len(t) == 1:
        one = np.ones_like(t[0], dtype=bool)
        nothing = np.zeros_like(t[0], dtype=np.int64)
        return [y[None] for y in ys], _Details(t[0], nothing, nothing, one)
    first = first_state(field, guess, ys, t[0], t[1], options)

    def interval(state: State, stop: Any) -> tuple[State, Leaves]:
        state = advance(field, state, stop, options)
        # Multiplied, a failure reaches the derivative as well.
        mark = np.where(state.ok, 1.0, np.nan)
        return state, [y * like(mark, y) for y in state.ys]

    last, later = scan(interval, first, t[1:])
    outs = [np.concatenate([y[None], z]) for y, z in zip(ys, later, strict=True)]
    return outs, _Details(stop_gradient(last.t), last.steps, last.accepted, last.ok)


# The continuous adjoint


def _with_continuous_adjoint(program: Program, options: Options) -> Any:
    """The solver, with a rule for reverse mode that solves the adjoint equation."""

    @custom_vjp
    def solve(ys: Leaves, t: Any, consts: Leaves) -> tuple[Leaves, _Details]:
        return _solution(program, ys, t, consts, options)

    def forwards(ys: Leaves, t: Any, consts: Leaves) -> Any:
        outs, details = _solution(program, ys, t, consts, options)
        return (outs, details), (outs, t, consts)

    def backwards(residuals: Any, cotangents: Any) -> Any:
        outs, t, consts = residuals
        return _adjoint(program, outs, t, consts, cotangents[0], options)

    def pushed(primals: Any, tangents: Any) -> Any:
        return _pushed(program, primals, tangents, options)

    solve.defvjp(forwards, backwards)
    solve.defjvp(pushed)
    return solve


def _pushed(program: Program, primals: Any, tangents: Any, options: Options) -> Any:
    """Values and tangents by forward mode through the steps."""
    (ys, t, consts), (of_ys, of_t, of_consts) = primals, tangents
    leaves, given = [*ys, t, *consts], [*of_ys, of_t, *of_consts]
    active = [i for i, x in enumerate(given) if x is not None]

    def solve(*values: Any) -> Any:
        whole = list(leaves)
        for i, x in zip(active, values, strict=True):
            whole[i] = x
        return _solution(program, whole[: len(ys)], whole[len(ys)], whole[len(ys) + 1 :], options)

    return jvp(solve, [leaves[i] for i in active], [given[i] for i in active])


def _adjoint(program: Program, outs: Leaves, t: Any, consts: Leaves, cts: Leaves, options: Options) -> Any:
    """Cotangents of the first state, the times and the constants, from those of the states at all times."""
    count = len(outs)
    active = [i for i, x in enumerate(consts) if is_inexact(x.dtype)]

    def field(ys: Leaves, t: Any, chosen: Leaves) -> Leaves:
        whole = list(consts)
        for i, x in zip(active, chosen, strict=True):
            whole[i] = x
        return inline(program, [*ys, t, *whole])

    chosen = [consts[i] for i in active]
    totals = [np.zeros_like(x) for x in chosen]

    def augmented(state: Leaves, t: Any, chosen: Leaves) -> Leaves:
        ys, cts = state[:count], state[count : 2 * count]
        slopes, pull = vjp(lambda ys, chosen: field(ys, t, chosen), ys, chosen)
        of_ys, of_chosen = pull(cts)
        return [*slopes, *(-x for x in of_ys), *(-x for x in of_chosen)]

    backwards = Field(augmented, chosen)

    def slope_along(ys: Leaves, t: Any, cts: Leaves) -> Any:
        """The rate at which the result changes with the time, along the cotangents."""
        products = [np.sum((k * a).real) for k, a in zip(field(ys, t, chosen), cts, strict=True)]
        return sum(p.astype(t.dtype) for p in products)

    def interval(carry: Any, x: Any) -> Any:
        cts, totals, ok = carry
        ys, more, start, stop = x
        of_time = slope_along(ys, start, more)
        cts = [a + b for a, b in zip(cts, more, strict=True)]
        state = first_state(backwards, backwards, [*ys, *cts, *totals], start, stop, options)
        end = advance(backwards, state, stop, options)
        ok = ok & end.ok
        return (end.ys[count : 2 * count], end.ys[2 * count :], ok), of_time

    first = ([np.zeros_like(y[0]) for y in outs], totals, t[0] == t[0])
    xs = ([y[1:] for y in outs], [a[1:] for a in cts], t[1:], t[:-1])
    (of_ys, totals, ok), of_times = scan(interval, first, xs, reverse=True)
    mark = np.where(ok, 1.0, np.nan)
    of_first = -slope_along([y[0] for y in outs], t[0], of_ys)
    of_ys = [(a + b[0]) * like(mark, a) for a, b in zip(of_ys, cts, strict=True)]
    by_place: dict[int, Any] = dict(zip(active, (x * like(mark, x) for x in totals), strict=True))
    of_t = np.concatenate([of_first[None], of_times]) * like(mark, t)
    return of_ys, of_t, [by_place.get(i) for i in range(len(consts))]
