"""root and fixed_point: solutions of equations, with derivatives by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal, overload

from ..api import lending
from ..api.call import check_function, name_of, record_or_run, trace_flat
from ..api.vectors import Captured, SolverInfo, Vector, check_limits
from ..base import tree
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_variables import Value
from ..control.convergence import required
from ..core.interpret import inline
from ..core.program import Const, Program
from ..core.trace import Builder, NoWitness, Tracer, building
from ..core.types import ArrayType, is_complex
from ..ops.elementwise import stop_gradient, sub
from .jacobians import linearized
from .linear import ITERATIVE, default_tolerance, linear_method
from .linear_primitive import LinearMethod
from .root import root as primitive
from .search import Search

Function = Callable[..., Any]

# Up to so many unknowns, linear equations are solved by elimination.
MOST_DENSE = 100
_SCIPY = ("hybr", "lm", "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing", "krylov",
          "df-sane")  # fmt: skip


@overload
def root(
    f: Function,
    x0: Value,
    *args: Any,
    solver: str | Function | None = None,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 100,
    linear_solver: str | None = None,
    info: Literal[False] = False,
) -> Value: ...
@overload
def root(
    f: Function,
    x0: Value,
    *args: Any,
    solver: str | Function | None = None,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 100,
    linear_solver: str | None = None,
    info: Literal[True],
) -> tuple[Value, SolverInfo]: ...
@short_tracebacks
def root(
    f: Function,
    x0: Any,
    *args: Any,
    solver: str | Function | None = None,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 100,
    linear_solver: str | None = None,
    info: bool = False,
) -> Any:
    """Solve f(x) = 0; the solution has derivatives with respect to everything that `f` uses except x.

    By the implicit function theorem, the derivative is the solution of linear equations with the Jacobian of `f` at the
    root; so are higher derivatives.  The steps of the solver are never differentiated.  Derivatives are with respect to
    `args` and values that `f` closes over; the derivative with respect to `x0` is zero.

    Newton steps refine the result of the solver to full accuracy, and the result is checked.

    Args:
        f: `f(x, *args)`; its result has the structure, shapes and dtypes of `x0`.
        x0: the initial guess: an array, a number or a container of them.
        *args: further arguments of `f`.
        solver: "newton" for damped Newton steps, with Levenberg-Marquardt where they fail; the name of a solver of
            `scipy.optimize.root`, such as "hybr", which runs only without `jit` and `vmap` (compiled programs use
            "newton"); or a function `solver(f, x0) -> x`, which is traced.  By default "hybr" for up to 100 unknowns,
            otherwise "newton".
        tol: relative tolerance.  Either the last Newton step is at most `tol` times x, for each unknown; or norm(f(x))
            is at most `tol` times norm(f(x0)), no element of f(x) exceeds `tol` times its own size far from the root,
            and Newton steps become shorter.  By default 1e-10, in single precision 1e-5.
        atol: absolute tolerance: x is accepted if norm(f(x)) is at most `atol`.  By default there is none, and a
            residual of the size of rounding errors is accepted, unless Newton steps diverge from x, as for `exp(-x)` at
            40.
        maxiter: maximum number of Newton steps.
        linear_solver: the solver for the linear equations of Newton steps and derivatives.  "dense" factorises the
            Jacobian, with O(n**2) memory and O(n**3) work for n unknowns; "gmres", "bicgstab" and "cg" (for symmetric
            positive definite Jacobians) need only products with it.  By default "dense" for up to 100 unknowns,
            otherwise "gmres".
        info: whether to return `(x, info)` instead of raising; `info` has `converged`, `iterations` and `residual`, the
            norm of f(x).

    Returns:
        x, like `x0`, or `(x, info)`.  In compiled programs x is NaN if no root was found, and derivatives are NaN if
        the Jacobian is singular.

    Raises:
        ConvergenceError: no root was found (without `jit` and `info`), or the root is differentiated although the
            Jacobian there is singular.
        numpy.linalg.LinAlgError: the root is differentiated although the Jacobian there is exactly singular.
        TypeError: the result of `f` is not like `x0`, or does not depend on x.
        ValueError: the solver is unknown, or a tolerance or limit is out of range.

    Example:
        >>> import ftrans as ft
        >>> x = lambda a: ft.root(lambda x: x**3 + a * x - 1.0, 1.0)
        >>> ft.value_and_grad(x)(2.0)
        (np.float64(0.4533976515164037), np.float64(-0.1732702315504082))
    """
    check_function(f, "root")
    check_limits("root", tol=tol, atol=atol, maxiter=maxiter)
    function = f if not args else lambda x: f(x, *map(lending.lent, args))
    unknown = real_vector(x0, "root")
    residual = unknown.trace(function, "root", "; ftrans.scipy.optimize.root and brentq take functions with branches")
    _require_dependence(f, residual, "root")
    guide: Captured | None = None
    if callable(solver):
        guide = _solver_program(solver, function, unknown)
        method = "program"
    else:
        method = solver or ("hybr" if unknown.type.size <= MOST_DENSE else "newton")
        if method not in ("newton", *_SCIPY):
            known = ", ".join(("newton", *_SCIPY))
            raise ValueError(f"root has no solver {method!r}; there are {known}{at_line(user_line())}")
    linear = linear_choice(linear_solver, unknown.type, "gmres", False, "root")
    search = Search("root", method, *tolerances(unknown, tol, atol), maxiter, linear=linear)
    return _solved(unknown, residual, guide, search, info)


@overload
def fixed_point(
    f: Function,
    x0: Value,
    *args: Any,
    damping: float = 1.0,
    acceleration: int = 0,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 1000,
    linear_solver: str | None = None,
    info: Literal[False] = False,
) -> Value: ...
@overload
def fixed_point(
    f: Function,
    x0: Value,
    *args: Any,
    damping: float = 1.0,
    acceleration: int = 0,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 1000,
    linear_solver: str | None = None,
    info: Literal[True],
) -> tuple[Value, SolverInfo]: ...
@short_tracebacks
def fixed_point(
    f: Function,
    x0: Any,
    *args: Any,
    damping: float = 1.0,
    acceleration: int = 0,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int = 1000,
    linear_solver: str | None = None,
    info: bool = False,
) -> Any:
    """Solve x = f(x) by iteration; the solution has derivatives with respect to everything that `f` uses except x.

    Derivatives are those of the root of x - f(x), and take the memory of one step: see `root`.

    Args:
        f: `f(x, *args)`; its result has the structure, shapes and dtypes of `x0`.
        x0: the initial guess: an array, a number or a container of them.
        *args: further arguments of `f`.
        damping: the fraction of each step that is taken, between 0 and 1.
        acceleration: number of past steps that Anderson acceleration uses; it keeps twice as many vectors.
        tol: relative tolerance: the iteration stops when f(x) - x is at most `tol` times x, for each unknown.  Newton
            steps follow, as in `root`; they begin at `x0` if the iteration diverged.
        atol: as for `root`.
        maxiter: maximum number of iterations.
        linear_solver: as for `root`.
        info: as for `root`.

    Returns:
        x, like `x0`, or `(x, info)`, as `root`.

    Raises:
        ConvergenceError: the iteration did not converge (without `jit` and `info`), or the fixed point is
            differentiated although 1 is an eigenvalue of the Jacobian of `f` there.
        TypeError: the result of `f` is not like `x0`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> x = lambda a: ft.fixed_point(lambda x: np.cos(a * x), 0.5)
        >>> ft.value_and_grad(x)(1.0)
        (np.float64(0.7390851332151607), np.float64(-0.29747434150983226))
    """
    check_function(f, "fixed_point")
    if not isinstance(damping, Real):
        raise TypeError(f"damping of fixed_point must be a number, not {damping!r}{at_line(user_line())}")
    check_limits("fixed_point", tol=tol, atol=atol, maxiter=maxiter, acceleration=acceleration)
    unknown = real_vector(x0, "fixed_point")

    def step(x: Any) -> Any:
        return f(x, *map(lending.lent, args))

    of_step = unknown.trace(step, "fixed_point")
    residual = _difference(of_step)
    linear = linear_choice(linear_solver, unknown.type, "gmres", False, "fixed_point")
    limits = tolerances(unknown, tol, atol)
    search = Search("fixed_point", "iteration", *limits, maxiter, float(damping), int(acceleration or 0), linear=linear)
    return _solved(unknown, residual, None, search, info)


def _difference(step: Captured) -> Captured:
    """`x - step(x)`."""

    def make() -> Program:
        builder = Builder(step.program.in_types)
        with building(builder):
            inputs = builder.inputs()
            (y,) = inline(step.program, inputs)
            return builder.finish([sub(inputs[-1], y)], step.program.name)

    return Captured(step.program.derive("x - f(x)", make), step.consts)


def real_vector(x0: Any, what: str) -> Vector:
    """The start of a search, taken apart."""
    unknown = Vector.of(x0, "x0", what)
    if is_complex(unknown.type.dtype):
        raise TypeError(
            f"{what} solves for real numbers, but x0 is {unknown.type}; write the real and imaginary parts as two "
            f"unknowns, x0 = (real, imag){at_line(user_line())}"
        )
    return unknown


def tolerances(unknown: Vector, tol: float | None, atol: float | None) -> tuple[float, float | None]:
    """The tolerances of a search, with their defaults."""
    return (
        default_tolerance(unknown.type) if tol is None else float(tol),
        None if atol is None else float(atol),
    )


def linear_choice(name: str | None, type: ArrayType, iterative: str, symmetric: bool, what: str) -> LinearMethod | None:
    """How linear equations are solved, or None for elimination."""
    name = name or ("dense" if type.size <= MOST_DENSE else iterative)
    if name == "dense":
        return None
    if name not in ITERATIVE:
        known = ", ".join(("dense", *ITERATIVE))
        raise ValueError(f"{what} has no linear_solver {name!r}; there are {known}{at_line(user_line())}")
    return linear_method(name, type, symmetric or name == "cg")


def _require_dependence(f: Function, residual: Captured, what: str) -> None:
    """Raise where the function to be solved does not depend on x."""
    (out,) = linearized(residual.program).linear.outputs
    if isinstance(out, Const):
        raise TypeError(
            f"{what} needs a function of x, but the result of {name_of(f)} has no derivative with respect to x: it "
            f"does not depend on x, or only in steps{at_line(user_line())}"
        )


def _solver_program(solver: Function, f: Function, unknown: Vector) -> Captured:
    """The program of a user's solver, from the start to what it found."""

    def call(tracers: Sequence[Tracer]) -> list[Tracer]:
        found = solver(f, unknown.rebuilt(tracers[0]))
        return [unknown.result_of(solver, found, "the solver of root")]

    reason = NoWitness("a solver given to root is traced once; use ftrans.while_loop for its loop")
    traced, _ = trace_flat(solver, [unknown.type], call, reason)
    return Captured.of(traced.program, traced.captured)


def _solved(unknown: Vector, residual: Captured, guide: Captured | None, search: Search, info: bool) -> Any:
    """Record or run a search, and put what it finds into its container."""
    of_guide = [] if guide is None else guide.consts
    count = len(residual.consts) + len(of_guide)

    def record(tracers: list[Tracer]) -> list[Tracer]:
        x, *outcome = recorded(tracers[:count], unknown.joined(tracers[count:]), residual, guide, search, info)
        return [*unknown.parted(x), *outcome]

    outs = record_or_run(search.what, record, [*residual.consts, *of_guide, *unknown.leaves])
    leaves = len(unknown.leaves)
    x = tree.unflatten(unknown.structure, outs[:leaves])
    return (x, SolverInfo(*outs[leaves:])) if info else x


def recorded(
    consts: Sequence[Tracer],
    start: Tracer,
    residual: Captured,
    guide: Captured | None,
    search: Search,
    info: bool,
) -> list[Tracer]:
    """Record a search: x, required to be a root, or with `info` whether it is, the iterations and the residual."""
    x, converged, _, iterations, norm = primitive(
        *consts,
        stop_gradient(start),
        residual=residual.program,
        guide=None if guide is None else guide.program,
        search=search,
    )
    if info:
        return [x, converged, iterations, norm]
    return [required(x, converged, iterations, norm, message=search.failure())]
