"""linear_solve: systems of linear equations, given by a matrix or by a function that multiplies by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from ..api.call import name_of, record_or_run
from ..api.vectors import Captured, SolverInfo, Vector, check_limits
from ..base import tree
from ..base.source import at_line, user_line
from ..base.tracebacks import short_tracebacks
from ..base.type_questions import is_plain
from ..base.type_variables import Value
from ..control.convergence import required
from ..control.loops.while_loop import while_
from ..control.rules.linearity import nonlinearity
from ..control.subprograms import cut
from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_complex, is_inexact, type_of
from ..numpy.linalg.equations import solve
from ..numpy.promotion import asarray, result_dtype
from ..ops.broadcast import reduce_sum
from ..ops.elementwise import abs_, add, bitwise_and, convert, cos, le, maximum, mul, sin, sqrt, stop_gradient, sub
from ..ops.literals import full, iota
from ..ops.reductions import reduce_max
from ..ops.shapes import reshape
from ..xla import is_traced
from .jacobians import linearized, matrix
from .linear_primitive import LinearMethod, dense_solve, real_dtype
from .linear_primitive import linear_solve as primitive

ITERATIVE = ("cg", "bicgstab", "gmres")
# Solutions by elimination are accepted with a residual of so many roundings.
_ROUNDINGS = 1e3
_NOT_LINEAR = (
    "A of linear_solve is not linear: at some x it differs from the matrix of its derivative by {residual}. "
    "Its result must be 0 for 0, and c times as large for c times the argument, if complex for complex c, too (without "
    "conjugates or real parts)"
)
# The residual is computed a second time, with other roundings.
_SLACK = 1.1


@overload
def linear_solve(
    A: Any,
    b: Value,
    *,
    method: str | None = None,
    symmetric: bool = False,
    positive_definite: bool = False,
    tol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int = 30,
    preconditioner: Any = None,
    x0: Any = None,
    info: Literal[False] = False,
) -> Value: ...
@overload
def linear_solve(
    A: Any,
    b: Value,
    *,
    method: str | None = None,
    symmetric: bool = False,
    positive_definite: bool = False,
    tol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int = 30,
    preconditioner: Any = None,
    x0: Any = None,
    info: Literal[True],
) -> tuple[Value, SolverInfo]: ...
@short_tracebacks
def linear_solve(
    A: Any,
    b: Any,
    *,
    method: str | None = None,
    symmetric: bool = False,
    positive_definite: bool = False,
    tol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int = 30,
    preconditioner: Any = None,
    x0: Any = None,
    info: bool = False,
) -> Any:
    """Solve the linear equations A x = b, differentiably to any order.

    Derivatives are solutions of equations with the same A, or its transpose, found by the same method; the steps of an
    iterative method are never differentiated.  Derivatives with respect to values that a function `A` closes over are
    included.

    Args:
        A: a square matrix, or a function that takes an x like `b` and returns A x.
        b: the right-hand side: an array, a number, or, where `A` is a function, a container of them.
        method: "dense" factorises the matrix, with O(n**3) work for n unknowns; for a function, it first computes the
            matrix by n products.  "cg" (for symmetric positive definite A), "bicgstab" and "gmres" need only products
            with A; without `jit` they are SciPy's.  By default "dense" for a matrix, and for a function "cg" if
            `positive_definite`, otherwise "gmres".
        symmetric: whether A is known to be symmetric (if complex, Hermitian), so that it need not be transposed.  One
            further product checks this; "dense" ignores it.
        positive_definite: whether A is known to be symmetric and positive definite.
        tol: relative tolerance of iterative methods: a solution is accepted if norm(b - A x) is at most `tol` times
            norm(b - A x0); by default 1e-10, in single precision 1e-5.
        atol: absolute tolerance: it is also accepted if that norm is at most `atol`.
        maxiter: maximum number of iterations; by default 10 n, and at least 100.
        restart: number of iterations between restarts of "gmres", which holds as many vectors.
        preconditioner: a matrix or linear function that approximates the inverse of A.  It is not differentiated.
        x0: initial guess of iterative methods; zero by default.  The derivative with respect to it is zero.
        info: whether to return `(x, info)` instead of raising; `info` has `converged`, `iterations` and `residual`, a
            norm.

    Returns:
        x, like `b`, or `(x, info)`.  In compiled programs x is NaN if an iterative method did not converge or the
        matrix is singular.

    Raises:
        ConvergenceError: the method did not converge, or A is not symmetric although declared so (without `jit` and
            `info`).
        numpy.linalg.LinAlgError: the matrix is singular (without `jit`, for "dense").
        TypeError: `A` is not linear, or its result does not have the structure, shapes and dtypes of `b`.
        ValueError: the shapes do not match, the method is unknown, or a tolerance or limit is out of range.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> b = np.array([1.0, 2.0, 3.0])
        >>> f = lambda a: ft.linear_solve(lambda x: a * x + np.roll(x, 1), b, method="gmres")
        >>> ft.jvp(f, (3.0,), (1.0,))[1].round(6)
        array([ 0.038265, -0.227041, -0.186224])
    """
    if method is not None and method not in ("dense", *ITERATIVE):
        known = ", ".join(("dense", *ITERATIVE))
        raise ValueError(f"linear_solve has no method {method!r}; there are {known}{at_line(user_line())}")
    check_limits("linear_solve", tol=tol, atol=atol, maxiter=maxiter, restart=restart)
    product = A
    if not callable(A):
        A, b = _checked_matrix(A, b)
        if method in (None, "dense"):
            return _eliminated(A, b, info)

        def product(x: Any) -> Any:
            return A @ x

    unknown = Vector.of(b, "b", "linear_solve")
    of_product = unknown.trace(product, "linear_solve")
    _require_linear(product, of_product, "A")
    if method == "dense":
        return _solve_dense(unknown, of_product, info)
    settings = linear_method(
        method or ("cg" if positive_definite else "gmres"),
        unknown.type,
        symmetric or positive_definite or method == "cg",
        tol,
        atol,
        maxiter,
        restart,
    )
    of_preconditioner: Captured | None = None
    if preconditioner is not None:
        improve = preconditioner if callable(preconditioner) else lambda r: preconditioner @ r
        of_preconditioner = unknown.trace(improve, "the preconditioner of linear_solve")
        _require_linear(improve, of_preconditioner, "preconditioner")
    start: Vector | None = None
    if x0 is not None:
        start = Vector.of(x0, "x0", "linear_solve")
        if (start.structure, start.types) != (unknown.structure, unknown.types):
            raise TypeError(
                f"x0 of linear_solve must be like b: b is {unknown.structure} of {unknown.types}, but x0 is "
                f"{start.structure} of {start.types}{at_line(user_line())}"
            )
    return _solve_iteratively(unknown, of_product, of_preconditioner, start, settings, info)


def linear_method(
    name: str,
    type: ArrayType,
    symmetric: bool,
    tol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int = 30,
) -> LinearMethod:
    """An iterative method with its defaults for vectors of a type."""
    if tol is None:
        tol = default_tolerance(type)
    return LinearMethod(name, symmetric, float(tol), float(atol), maxiter or max(100, 10 * type.size), restart)


def default_tolerance(type: ArrayType) -> float:
    """How accurate the solutions of solvers are by default."""
    return 1e-10 if real_dtype(type.dtype) == np.float64 else 1e-5


def _checked_matrix(a: Any, b: Any) -> tuple[Any, Any]:
    """A matrix and the right-hand side for it, as arrays of one floating-point dtype."""
    given = type(a).__name__, type(b).__name__
    try:
        a, b = (np.asarray(x) if is_plain(x, list | tuple | float | int) else x for x in (a, b))
        of_a, of_b = type_of(a), type_of(b)
    except (TypeError, ValueError):
        raise TypeError(
            "linear_solve takes a matrix and an array, or a function that multiplies by the matrix and any container; "
            f"it was given {given[0]} and {given[1]}{at_line(user_line())}"
        ) from None
    if of_a.ndim != 2 or of_a.shape[0] != of_a.shape[1] or of_b.ndim not in (1, 2) or of_b.shape[0] != of_a.shape[0]:
        raise ValueError(
            f"linear_solve needs a square matrix (n, n) and a right-hand side (n,) or (n, columns), not {of_a} and "
            f"{of_b}; for batches use vmap{at_line(user_line())}"
        )
    dtype = result_dtype(a, b)
    dtype = dtype if is_inexact(dtype) else np.dtype(np.float64)
    return tuple(x if type_of(x).dtype == dtype else x.astype(dtype) for x in (a, b))


def _norm(x: Tracer) -> Tracer:
    size = abs_(x)
    return sqrt(reduce_sum(mul(size, size), axes=tuple(range(x.ndim))))


def _info_of_elimination(a: Tracer, x: Tracer, b: Tracer, product: Tracer) -> list[Tracer]:
    """Whether the product is b up to rounding, the number of iterations, and the norm of the residual."""
    size = x.shape[0]
    residual = stop_gradient(sub(b, product))
    # Not norms, whose squares overflow.
    a, x, b, left = (reduce_max(abs_(stop_gradient(y)), axes=tuple(range(y.ndim))) for y in (a, x, b, residual))
    slack = full((), _ROUNDINGS * max(1, size) ** 2 * float(np.finfo(left.dtype).eps), left.dtype)
    return [le(left, mul(add(mul(a, x), b), slack)), full((), 0, np.int64), _norm(residual)]


def _eliminated(a: Any, b: Any, info: bool) -> Any:
    def record(tracers: list[Tracer]) -> list[Tracer]:
        a, b = tracers
        x = solve(a, b)
        return [x, *_info_of_elimination(a, x, b, asarray(a @ x))] if info else [x]

    x, *more = record_or_run("linear_solve", record, [a, b])
    return (x, SolverInfo(*more)) if info else x


def _solve_dense(unknown: Vector, product: Captured, info: bool) -> Any:
    def record(tracers: list[Tracer]) -> list[Tracer]:
        consts, b = _cut(tracers, product, unknown)
        values, linear = linearized(product.program)
        residuals = inline(values, [*consts, full(b.shape, 0, b.dtype)])[1:]
        a = _of_the_function(matrix(linear, residuals), lambda x: inline(product.program, [*consts, x])[0])
        x = dense_solve(a, b)
        more = _info_of_elimination(a, x, b, inline(product.program, [*consts, x])[0]) if info else []
        return [*unknown.parted(x), *more]

    return _run(unknown, record, [*product.consts, *unknown.leaves], info)


def _of_the_function(a: Tracer, product: Callable[[Tracer], Tracer]) -> Tracer:
    """The matrix `a`, if it multiplies as `product` does: what is linear in real numbers may not be in complex ones.

    The solution, the derivatives of which do not depend on it, is no place to look for that.
    """
    number = iota(shape=(a.shape[0],), axis=0, dtype=real_dtype(a.dtype))
    x = convert(cos(mul(number, number)), dtype=a.dtype)
    if is_complex(a.dtype):
        x = add(x, mul(convert(sin(mul(number, number)), dtype=a.dtype), full(x.shape, 1j, a.dtype)))
    outcome = _info_of_elimination(a, x, product(x), asarray(a @ x))  # type: ignore[operator]
    vector = required(reshape(a, shape=(a.size,)), *outcome, message=_NOT_LINEAR)
    return reshape(vector, shape=a.shape)


def _cut(tracers: list[Tracer], product: Captured, unknown: Vector) -> tuple[list[Tracer], Tracer]:
    """The values that a product closed over, and the vector."""
    count = len(product.consts)
    return tracers[:count], unknown.joined(tracers[count : count + len(unknown.leaves)])


def _run(unknown: Vector, record: Callable[[list[Tracer]], list[Tracer]], operands: list[Any], info: bool) -> Any:
    outs = record_or_run("linear_solve", record, operands)
    count = len(unknown.leaves)
    x = tree.unflatten(unknown.structure, outs[:count])
    return (x, SolverInfo(*outs[count:])) if info else x


def _solve_iteratively(
    unknown: Vector,
    product: Captured,
    preconditioner: Captured | None,
    start: Vector | None,
    method: LinearMethod,
    info: bool,
) -> Any:
    def record(tracers: list[Tracer]) -> list[Tracer]:
        consts, b = _cut(tracers, product, unknown)
        of_preconditioner, of_start = cut(tracers[len(consts) + len(unknown.leaves) :], improving_count)[:2]
        zero = full(b.shape, 0, b.dtype)
        values, linear = linearized(product.program)
        operands = inline(values, [*consts, zero])[1:]
        right, improve = b, None
        if start is not None:
            first = stop_gradient(start.joined(of_start))
            right = sub(b, inline(linear, [*operands, first])[0])
        if preconditioner is not None:
            improve_values, improve = linearized(preconditioner.program)
            operands = [*operands, *inline(improve_values, [*of_preconditioner, zero])[1:]]
        x, converged, iterations, _ = primitive(*operands, right, matvec=linear, preconditioner=improve, method=method)
        if start is not None:
            x = add(x, first)
        # A function may be linear in its derivative only, which is all that the solver has seen.
        left = _norm(stop_gradient(sub(b, inline(product.program, [*consts, x])[0])))
        bound = maximum(
            mul(_norm(stop_gradient(right)), full((), _SLACK * method.tol, left.dtype)),
            full((), _SLACK * method.atol, left.dtype),
        )
        converged = bitwise_and(converged, le(left, bound))
        if info:
            return [*unknown.parted(x), converged, iterations, left]
        return unknown.parted(required(x, converged, iterations, left, message=method.failure()))

    given = [] if start is None else start.leaves
    more = [] if preconditioner is None else preconditioner.consts
    improving_count = len(more)
    return _run(unknown, record, [*product.consts, *unknown.leaves, *more, *given], info)


def _require_linear(f: Callable[..., Any], traced: Captured, name: str) -> None:
    """Raise unless a traced function is linear."""
    linear = (*[False] * len(traced.consts), True)
    problem = nonlinearity(traced.program, linear)
    if problem is not None:
        problem = nonlinearity(_without_zeros(traced), linear)
    # What a loop does is seen when the solution is checked.
    if problem is None or (problem.eqn is not None and problem.eqn.primitive is while_):
        return
    raise TypeError(
        f"{name} of linear_solve must be linear, and {name_of(f)} is not: {problem.what}. Its result must be 0 for 0, "
        "and twice as large for twice the argument. Move what does not depend on x to b; root solves equations that "
        f"are not linear{at_line(user_line() if problem.eqn is None else problem.eqn.line)}"
    )


def _without_zeros(traced: Captured) -> Program:
    """The program with arrays of zeros that it closed over, such as those of paddings, as constants."""
    program = traced.program
    is_zero = tuple(not (is_traced(c) or np.any(np.asarray(c))) for c in traced.consts)

    def make() -> Program:
        builder = Builder(program.in_types)
        with building(builder):
            *consts, x = builder.inputs()
            known = [full(c.shape, 0, c.dtype) if zero else c for c, zero in zip(consts, is_zero, strict=True)]
            return builder.finish(inline(program, [*known, x]), program.name)

    return program.derive(("without zeros", is_zero), make)
