"""argmin: local minimisers, with and without equality constraints, as differentiable functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ..api import lending
from ..api.call import check_function, name_of, record_or_run, trace_flat
from ..api.vectors import Captured, Vector, check_limits
from ..base import tree
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_variables import Value
from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Builder, NoWitness, Tracer, building
from ..core.types import ArrayType, is_inexact
from ..numpy.promotion import asarray, cast
from ..ops.broadcast import reduce_sum
from ..ops.elementwise import add, mul
from ..ops.literals import full
from ..ops.parts import concatenate, slice_
from ..ops.shapes import reshape
from ..transforms.differentiate import gradient
from .implicit import linear_choice, real_vector, recorded, tolerances
from .search import Search

Function = Callable[..., Any]

_MINIMIZERS = ("CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "trust-ncg", "trust-exact", "trust-krylov", "SLSQP")
_CONSTRAINED = ("SLSQP",)


class ArgminInfo(NamedTuple):
    """The outcome of a minimisation.

    Attributes:
        converged: whether the minimiser meets the tolerances.
        iterations: number of Newton steps after the search.
        residual: norm of the gradient of the Lagrangian.
        value: the minimum.
        multipliers: the Lagrange multipliers, like the constraints: the gradient of `f` plus their products with the
            gradients of the constraints is zero.  None without constraints.
    """

    converged: Any
    iterations: Any
    residual: Any
    value: Any
    multipliers: Any


@overload
def argmin(
    f: Function,
    x0: Value,
    *args: Any,
    constraints: Function | None = None,
    method: str | None = None,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 100,
    linear_solver: str | None = None,
    info: Literal[False] = False,
) -> Value: ...
@overload
def argmin(
    f: Function,
    x0: Value,
    *args: Any,
    constraints: Function | None = None,
    method: str | None = None,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 100,
    linear_solver: str | None = None,
    info: Literal[True],
) -> tuple[Value, ArgminInfo]: ...
@short_tracebacks
def argmin(
    f: Function,
    x0: Any,
    *args: Any,
    constraints: Function | None = None,
    method: str | None = None,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 100,
    linear_solver: str | None = None,
    info: bool = False,
) -> Any:
    """Find a local minimiser of `f`; it has derivatives with respect to all that `f` and the constraints use except x.

    The derivative is that of a root of the gradient of `f`, or, with constraints, of a root of the Karush-Kuhn-Tucker
    equations for x and the multipliers: see `root`.  Derivatives are with respect to `args` and values that the
    functions close over; the derivative with respect to `x0` is zero.

    A stationary point that is not a minimum is rejected.  For up to 100 unknowns, or with `linear_solver="dense"`,
    second derivatives are checked in all directions.  For more unknowns, they are checked in 20 directions without
    constraints, and not at all with constraints.

    Args:
        f: the objective `f(x, *args)`, which returns a real scalar.
        x0: the initial guess: an array, a number or a container of them.  It decides which local minimum is found.
        *args: further arguments of `f` and of the constraints.
        constraints: `constraints(x, *args)` returns an array or a container of numbers that must be zero at the
            solution; there must not be more of them than unknowns.
        method: name of a solver of `scipy.optimize.minimize`, for calls without `jit` and `vmap`; by default "BFGS", or
            "SLSQP" with constraints.  Compiled programs use damped Newton steps, with constraints on the augmented
            Lagrangian.  In all cases, Newton steps on the equations follow.
        tol: relative tolerance, as for `root`.
        atol: absolute tolerance for the norm of the gradient, as for `root`.
        maxiter: maximum number of steps.
        linear_solver: as for `root`; by default "dense" for up to 100 unknowns, otherwise "cg", or "gmres" with
            constraints.
        info: whether to return `(x, info)` instead of raising; `info` is an `ArgminInfo`, with the minimum and the
            multipliers.

    Returns:
        x, like `x0`, or `(x, info)`.  In compiled programs x is NaN if no minimiser was found, and derivatives are NaN
        if it is not isolated.

    Raises:
        ConvergenceError: no minimiser was found (without `jit` and `info`), or it is differentiated although it is not
            isolated, or the constraints depend on each other.
        TypeError: `f` does not return a real scalar, or the constraints do not return numbers.
        ValueError: there are more constraints than unknowns, the method is unknown, or a tolerance or limit is out of
            range.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> x = lambda a: ft.argmin(lambda x: (x - a) ** 2 + np.exp(x), 0.0)
        >>> ft.value_and_grad(x)(1.0)
        (np.float64(0.31492305784540603), np.float64(0.5934447116232969))
    """
    check_function(f, "argmin")
    if constraints is not None:
        check_function(constraints, "argmin", "constraints")
    check_limits("argmin", tol=tol, atol=atol, maxiter=maxiter)
    unknown = real_vector(x0, "argmin")
    dtype = unknown.type.dtype
    guide, structure, types = _traced(f, constraints, unknown, args)
    count = sum(t.size for t in types)
    if count > unknown.type.size:
        raise ValueError(
            f"argmin has more constraints than unknowns: {count} constraints on {unknown.type.size} numbers; leave out "
            f"those that follow from others{at_line(user_line())}"
        )
    known = _CONSTRAINED if count else _MINIMIZERS
    if method is not None and method not in known:
        suitable = "with constraints " if count else ""
        raise ValueError(
            f"argmin {suitable}has no method {method!r}; there are {', '.join(known)}{at_line(user_line())}"
        )
    size = unknown.type.size
    linear = linear_choice(linear_solver, ArrayType((size + count,), dtype), "gmres" if count else "cg", True, "argmin")
    limits = tolerances(unknown, tol, atol)
    search = Search("argmin", "minimize", *limits, maxiter, minimizer=method, linear=linear)
    residual = Captured(_stationary(guide.program, count), guide.consts)

    def record(tracers: list[Tracer]) -> list[Tracer]:
        consts = tracers[: len(guide.consts)]
        start = unknown.joined(tracers[len(guide.consts) :])
        if count:
            start = concatenate(start, full((count,), 0, dtype), axis=0)
        z, *outcome = recorded([*consts, *consts], start, residual, guide, search, info)
        x, y = _part(z, 0, size), _part(z, size, size + count)
        if not info:
            return unknown.parted(x)
        value, _ = inline(guide.program, [*consts, x])
        return [*unknown.parted(x), *outcome, value, *_multipliers(y, types)]

    outs = record_or_run("argmin", record, [*guide.consts, *unknown.leaves])
    leaves = len(unknown.leaves)
    x = tree.unflatten(unknown.structure, outs[:leaves])
    if not info:
        return x
    rest = outs[leaves:]
    multipliers = None if constraints is None else tree.unflatten(structure, rest[4:])
    converged, iterations, norm, value = rest[:4]
    return x, ArgminInfo(converged, iterations, norm, value, multipliers)


def _part(z: Tracer, start: int, limit: int) -> Tracer:
    return slice_(z, start=(start,), limit=(limit,), strides=(1,))


def _multipliers(y: Tracer, types: Sequence[ArrayType]) -> list[Tracer]:
    leaves, start = [], 0
    for t in types:
        leaves.append(reshape(_part(y, start, start + t.size), shape=t.shape))
        start += t.size
    return leaves


def _traced(
    f: Function, constraints: Function | None, unknown: Vector, args: tuple[Any, ...]
) -> tuple[Captured, Any, list[ArrayType]]:
    """The program from x to the objective and the vector of constraints; structure and types of the constraints."""
    dtype = unknown.type.dtype
    found: list[Any] = []

    def call(tracers: Sequence[Tracer]) -> list[Tracer]:
        value = _objective(f, f(unknown.rebuilt(tracers[0]), *map(lending.lent, args)), dtype)
        out = () if constraints is None else constraints(unknown.rebuilt(tracers[0]), *map(lending.lent, args))
        leaves, structure = tree.flatten(out)
        for index, x in enumerate(leaves):
            try:
                leaves[index] = cast(asarray(x), dtype)
            except TypeError:
                raise TypeError(
                    f"the constraints of argmin must be arrays and numbers, but {name_of(constraints or f)} returned "
                    f"{type(x).__name__} at result{tree.paths(out)[index]}{at_line(user_line())}"
                ) from None
        found.extend((structure, [x.type for x in leaves]))
        parts = [reshape(x, shape=(x.size,)) for x in leaves]
        vector = concatenate(*parts, axis=0) if parts else full((0,), 0, dtype)
        return [value, vector]

    reason = NoWitness("a function given to argmin is evaluated at many points, so a branch has no single value")
    traced, _ = trace_flat(f, [unknown.type], call, reason)
    structure, types = found
    return Captured.of(traced.program, traced.captured), structure, types


def _objective(f: Function, out: Any, dtype: np.dtype[Any]) -> Tracer:
    try:
        value = asarray(out)
    except TypeError:
        value = None
    if value is None or value.shape != () or value.dtype.kind not in "iuf":
        described = type(out).__name__ if value is None else str(value.type)
        raise TypeError(
            f"argmin needs a function that returns a real scalar, but {name_of(f)} returned {described}; reduce it, "
            f"for instance by .sum(){at_line(user_line())}"
        )
    if is_inexact(value.dtype) and not (value.weak or np.can_cast(value.dtype, dtype)):
        raise TypeError(
            f"argmin computes in the dtype of x0, {dtype}, but {name_of(f)} returned {value.type}; convert x0"
            + at_line(user_line())
        )
    return cast(value, dtype)


def _stationary(guide: Program, count: int) -> Program:
    """The gradient of the Lagrange function by x and the multipliers, which are one vector."""

    def make() -> Program:
        *consts, x = guide.in_types
        size = x.size
        builder = Builder([*consts, ArrayType((size + count,), x.dtype)])
        with building(builder):
            *inputs, z = builder.inputs()
            value, g = inline(guide, [*inputs, _part(z, 0, size)])
            if count:
                value = add(value, reduce_sum(mul(g, _part(z, size, size + count)), axes=(0,)))
            lagrangian = builder.finish([value], f"lagrangian({guide.name})")
        return gradient(lagrangian, (*[False] * len(consts), True), with_value=False)

    return guide.derive("stationary", make)
