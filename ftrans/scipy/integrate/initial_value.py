"""Initial value problems on traced values: `solve_ivp` and `odeint`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.optimize

from ...api.call import name_of
from ...api.vectors import Captured
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, cast
from .branches import Evaluate, NotKnown, value_of
from .events import Event
from .events import find as find_events
from .integrands import FoundTraced, is_traced, plainly, traced_function
from .states import NUMBER, Field, Solved, Solver, states
from .steps import chosen_steps

__all__ = ["odeint"]

# Names and values.
Options = tuple[tuple[str, Any], ...]

# Methods that take a Jacobian.
_IMPLICIT = ("Radau", "BDF", "LSODA")


class Ivp(NamedTuple):
    """A solver of `scipy.integrate.solve_ivp`.

    Attributes:
        method: name or class.
        options: names and values.
        is_exact: whether it is given the exact Jacobian.
        is_dense: whether states may be asked for at any time, in any order.
    """

    method: Any
    options: Options
    is_exact: bool
    is_dense: bool

    def result(self, f: Field, jacobian: Field | None, y0: Any, start: float, stop: float, **more: Any) -> Any:
        """SciPy's result."""
        options = dict(self.options)
        if self.is_exact and jacobian is not None and self.is_implicit():
            options["jac"] = jacobian
        return scipy.integrate.solve_ivp(f, (start, stop), y0, self.method, **more, **options)

    def is_implicit(self) -> bool:
        """Whether the method takes a Jacobian."""
        method = self.method
        return method in _IMPLICIT or (
            inspect.isclass(method) and issubclass(method, tuple(getattr(scipy.integrate, m) for m in _IMPLICIT))
        )

    def solve(self, f: Field, jacobian: Field | None, y0: Any, start: float, stop: float, times: Any) -> Solved:
        """The states at some times, as SciPy interpolates them."""
        found = np.full((len(times), len(y0)), np.nan)
        if start == stop:
            # SciPy gives a state once where times are the same.
            times, found = times[:1], np.broadcast_to(y0, found.shape).copy()
        more: dict[str, Any] = {"dense_output": True} if self.is_dense else {"t_eval": times}
        result = self.result(f, jacobian, y0, start, stop, **more)
        if self.is_dense:
            if result.status >= 0:
                found = result.sol(times).T
        elif len(result.t):
            found[: len(result.t)] = result.y.T
        return Solved(found, result.status, result.nfev, result.njev, result.nlu)

    def tolerance(self) -> str:
        """The call of SciPy, with its tolerances, for messages."""
        return _with_tolerances("solve_ivp", self.options, 1e-3, 1e-6)

    def with_tangents(self, columns: int) -> Ivp:
        """The same for a problem with tangents, with the exact Jacobian."""
        return self._replace(options=_repeated(self.options, 1 + columns), is_exact=True)


@implements(scipy.integrate.solve_ivp, takes_functions=True)
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """`scipy.integrate.solve_ivp` where a trace runs.

    The states are differentiable by `y0`, `t_span`, `t_eval`, `args` and what `fun` closes over.
    """
    given = () if args is None else tuple(args)
    if not is_traced(t_span, y0, t_eval, given):
        try:
            return scipy.integrate.solve_ivp(
                plainly(fun), t_span, y0, method, t_eval, dense_output, events, vectorized, args, **options
            )
        except FoundTraced:
            pass
    y0 = _state(y0, "solve_ivp")
    start, stop = (_number(t, "an end of t_span") for t in t_span)
    solver = Ivp(method, _hashable(options, "solve_ivp"), options.get("jac") is not None, False)

    def call(t: Any, y: Any) -> Any:
        return fun(t, y[:, None] if vectorized else y, *given)

    field = _right_hand_side(call, fun, "solve_ivp", solver, y0, _ends(start, stop))
    if events is not None:
        return _with_events(field, events, given, y0, start, stop, t_eval, solver, dense_output)
    times = chosen_steps(field, y0, start, stop, solver) if t_eval is None else _times(t_eval, "t_eval of solve_ivp")
    found = states(field, y0, start, stop, _ends(start, stop) if times is None else times, solver)
    return scipy.optimize.OptimizeResult(
        t=OnlyEnds(_ends(start, stop)) if times is None else times,
        y=OnlyEnds(found.states.T) if times is None else found.states.T,
        sol=Solution(field, y0, start, stop, solver._replace(is_dense=True)) if dense_output else None,
        t_events=None,
        y_events=None,
        nfev=found.evaluations,
        njev=found.jacobians,
        nlu=found.factorisations,
        status=found.status,
        success=found.status >= 0,
        message="See status: 0 is for success.",
    )


def _with_events(
    field: Captured,
    events: Any,
    args: tuple[Any, ...],
    y0: Tracer,
    start: Tracer,
    stop: Tracer,
    t_eval: Any,
    solver: Ivp,
    dense_output: bool,
) -> Any:
    """What `solve_ivp` returns with `events`."""

    def traced(event: Any) -> Event:
        def value(t: Tracer, y: Tracer) -> list[Tracer]:
            return [_number(event(t, y, *args), "the value of an event")]

        def explore(evaluate: Evaluate) -> None:
            raise NotKnown

        function = traced_function(event, [NUMBER, y0.type], value, "solve_ivp", explore)
        return Event(function, getattr(event, "terminal", None), getattr(event, "direction", 0))

    watched = [traced(event) for event in (events if isinstance(events, list | tuple) else (events,))]
    times = None if t_eval is None else _times(t_eval, "t_eval of solve_ivp")
    dense = solver._replace(is_dense=True)
    events_found = find_events(field, watched, y0, start, stop, times, solver, dense)
    if events_found is None:
        raise ValueError(
            "how many events solve_ivp finds depends on values, and here there is no one value, as under vmap: call it "
            f"in a loop{at_line(user_line())}"
        )
    return scipy.optimize.OptimizeResult(
        t=events_found.times,
        y=events_found.states.T,
        sol=Solution(field, y0, start, events_found.stop, dense) if dense_output else None,
        t_events=events_found.t_events,
        y_events=events_found.y_events,
        status=events_found.status,
        success=events_found.status >= 0,
        message="See status: 0 is for success, and 1 for an event that was terminal.",
    )


class Solution:
    """The states at any times: what `solve_ivp` returns as `sol` with `dense_output`."""

    def __init__(self, field: Captured, y0: Any, start: Any, stop: Any, solver: Ivp) -> None:
        self._problem = field, y0, start, stop
        self._solver = solver
        self.t_min, self.t_max = np.minimum(start, stop), np.maximum(start, stop)

    def __call__(self, t: Any) -> Any:
        """The state at a time, of shape (n,), or those at several times, of shape (n, m)."""
        t = asarray(t)
        found = states(*self._problem, _times(np.reshape(t, (-1,)), "sol of solve_ivp"), self._solver).states
        return found.T if t.ndim else found[0]


class OnlyEnds:
    """Times or states of which the first and the last are known, and not how many there are between."""

    def __init__(self, ends: Any) -> None:
        self._ends = ends

    @property
    def T(self) -> Any:
        """The same with the axis of times in front."""
        return self if self._ends.ndim == 1 else _EndsInFront(self._ends)

    def __getitem__(self, index: Any) -> Any:
        """The element or column at one of the ends; or an element of the state, at all times, by one index."""
        if self._ends.ndim > 1 and type(index) is int:
            return OnlyEnds(self._ends[index])
        parts = index if isinstance(index, tuple) else (index,)
        is_end = len(parts) == self._ends.ndim or (len(parts) > 1 and parts[0] is Ellipsis)
        if not is_end or isinstance(parts[-1], Tracer) or parts[-1] not in (0, -1):
            raise self._unknown()
        return self._ends[index]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self._unknown()

    def __len__(self) -> int:
        raise self._unknown()

    def _unknown(self) -> Exception:
        return ValueError(
            "how many steps solve_ivp takes depends on values, and here there is no one value, as under vmap: only the "
            "first and the last state can be asked for, y[:, 0] and y[:, -1]; give t_eval for more"
            + at_line(user_line())
        )


class _EndsInFront(OnlyEnds):
    """States with the axis of times in front."""

    @property
    def T(self) -> Any:
        """The same with the axis of times behind."""
        return OnlyEnds(self._ends)

    def __getitem__(self, index: Any) -> Any:
        """The state at one of the ends, or an element of it."""
        time, *others = index if isinstance(index, tuple) else (index,)
        return OnlyEnds(self._ends)[(..., time)][tuple(others)]


def _ends(start: Any, stop: Any) -> Any:
    return np.stack([start, stop])


def _state(y0: Any, what: str) -> Tracer:
    """The first state."""
    y0 = asarray(y0)
    if y0.ndim > 1 or y0.dtype.kind not in "fiub":
        raise TypeError(
            f"{what} takes real states with one axis for traced values, not {y0.type}; write real and imaginary parts "
            f"one behind the other{at_line(user_line())}"
        )
    return cast(np.reshape(y0, (-1,)), NUMBER.dtype)


def _right_hand_side(
    call: Callable[..., Any], fun: Callable[..., Any], what: str, solver: Solver, y0: Tracer, times: Any
) -> Captured:
    """The program of a right-hand side, called by `call(t, y)`."""

    def slopes(t: Tracer, y: Tracer) -> list[Tracer]:
        found = asarray(call(t, y))
        if found.size != y.size or found.dtype.kind not in "fiub":
            raise TypeError(
                f"the function of {what} must return the derivative of the state, which is {y.type}, but "
                f"{name_of(fun)} returned {found.type}{at_line(user_line())}"
            )
        return [cast(np.reshape(found, y.shape), NUMBER.dtype)]

    def explore(evaluate: Evaluate) -> None:
        def f(t: float, y: Any) -> Any:
            return evaluate(np.float64(t), np.array(y))[0]

        at = value_of(times)
        solver.solve(f, None, value_of(y0), at[0], at[-1], at)

    return traced_function(fun, [NUMBER, y0.type], slopes, what, explore)


def _number(x: Any, name: str) -> Tracer:
    x = asarray(x)
    if x.size != 1 or x.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be a number, not {x.type}{at_line(user_line())}")
    return cast(np.reshape(x, ()), NUMBER.dtype)


def _times(t: Any, name: str) -> Tracer:
    t = asarray(t)
    if t.ndim != 1 or t.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of times of shape (n,), not {t.type}{at_line(user_line())}")
    return cast(t, NUMBER.dtype)


def _hashable(options: dict[str, Any], what: str) -> Options:
    """Options that are plain values, without Jacobians, which are found."""
    found = []
    for name, value in options.items():
        if is_traced(value):
            raise ValueError(
                f"{name} of {what} is traced, but has no derivative: give a plain value, by ftrans.stop_gradient if "
                f"there is none{at_line(user_line())}"
            )
        if name not in ("jac", "jac_sparsity", "lband", "uband", "Dfun", "col_deriv", "ml", "mu"):
            found.append((name, tuple(np.ravel(value).tolist()) if np.ndim(value) else value))
    return tuple(found)


def _with_tolerances(name: str, options: Options, rtol: float, atol: float) -> str:
    """A call with its tolerances, given SciPy's defaults for them."""
    given = {"rtol": rtol, "atol": atol} | {k: v for k, v in options if k in ("rtol", "atol") and v is not None}
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


def _repeated(options: Options, times: int) -> Options:
    """Options with the tolerances of each element several times, one behind the other."""
    return tuple((k, v * times if k in ("rtol", "atol") and isinstance(v, tuple) else v) for k, v in options)


class Lsoda(NamedTuple):
    """The solver of `scipy.integrate.odeint`.

    Attributes:
        options: names and values.
        is_exact: whether it is given the exact Jacobian.
        has_tangents: whether states have tangents, which are NaN if no solution is found.
    """

    options: Options
    is_exact: bool
    has_tangents: bool = False

    def solve(self, f: Field, jacobian: Field | None, y0: Any, start: float, stop: float, times: Any) -> Solved:
        """The states at some times, the first of which is that of the first state."""
        more = {"Dfun": jacobian} if self.is_exact and jacobian is not None else {}
        found, info = scipy.integrate.odeint(f, y0, times, full_output=1, tfirst=True, **more, **dict(self.options))
        evaluations, jacobians = (int(info[name][-1]) if len(times) > 1 else 0 for name in ("nfe", "nje"))
        is_found = info["message"] == "Integration successful."
        if not is_found and self.has_tangents:
            # SciPy leaves what it reached; as a derivative that would be wrong without a word.
            found = np.full_like(found, np.nan)
        return Solved(found, 0 if is_found else -1, evaluations, jacobians, 0)

    def tolerance(self) -> str:
        """The call of SciPy, with its tolerances, for messages."""
        return _with_tolerances("odeint", self.options, 1.49e-8, 1.49e-8)

    def with_tangents(self, columns: int) -> Lsoda:
        """The same for a problem with tangents, with the exact Jacobian."""
        options = [
            (k, v * (1 + columns) if k in ("rtol", "atol") and isinstance(v, tuple) else v) for k, v in self.options
        ]
        return Lsoda(tuple(options), True, True)


@implements(scipy.integrate.odeint, takes_functions=True)
def odeint(
    func: Callable[..., Any], y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = 0,
    full_output: Any = 0, ml: Any = None, mu: Any = None, rtol: Any = None, atol: Any = None, tcrit: Any = None,
    h0: float = 0.0, hmax: float = 0.0, hmin: float = 0.0, ixpr: Any = 0, mxstep: int = 0, mxhnil: int = 0,
    mxordn: int = 12, mxords: int = 5, printmessg: Any = 0, tfirst: bool = False,
) -> Any:  # fmt: skip
    """`scipy.integrate.odeint`, differentiable by `y0`, `t`, `args` and what `func` closes over, as `solve_ivp`.

    Raises:
        ValueError: `full_output` is asked for, or an option is traced.
        TypeError: the state is complex, or `func` does not return one like it.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy import integrate
        >>> times = np.linspace(0.0, 1.0, 3)
        >>> end = lambda k: integrate.odeint(lambda y, t: -k * y, [1.0], times)[-1, 0]
        >>> print(ft.grad(end)(2.0).round(5))
        -0.13534
    """
    options: dict[str, Any] = {
        "rtol": rtol, "atol": atol, "tcrit": tcrit, "h0": h0, "hmax": hmax, "hmin": hmin, "ixpr": ixpr,
        "mxstep": mxstep, "mxhnil": mxhnil, "mxordn": mxordn, "mxords": mxords,
    }  # fmt: skip
    args = args if isinstance(args, tuple) else (args,)
    if not is_traced(y0, t, args):
        more = {"Dfun": Dfun, "col_deriv": col_deriv, "full_output": full_output, "ml": ml, "mu": mu}
        try:
            return scipy.integrate.odeint(
                plainly(func), y0, t, args, printmessg=printmessg, tfirst=tfirst, **more, **options
            )
        except FoundTraced:
            pass
    if full_output:
        raise ValueError(f"full_output of odeint is not there for traced values: leave it out{at_line(user_line())}")
    order = (lambda t, y: (t, y)) if tfirst else (lambda t, y: (y, t))
    y0 = _state(y0, "odeint")
    times = _times(np.stack(list(t)) if isinstance(t, list | tuple) else t, "t of odeint")
    solver = Lsoda(_hashable(options, "odeint"), Dfun is not None)
    field = _right_hand_side(lambda t, y: func(*order(t, y), *args), func, "odeint", solver, y0, times)
    return states(field, y0, times[0], times[-1], times, solver).states
