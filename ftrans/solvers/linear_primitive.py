"""LinearSolve: the solution of linear equations that are given as a program, found iteratively."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy
import numpy as np

from ..control.convergence import required
from ..control.rules import backends
from ..control.rules.backends import Backend
from ..control.subprograms import chosen, cut, cut_behind_constants
from ..core.interpret import inline
from ..core.on_numpy import Memory
from ..core.primitive import MultipleResults, Tangent
from ..core.program import Params, Program
from ..core.trace import Tracer
from ..core.types import ArrayType, is_complex, is_inexact
from ..ops.broadcast import with_batch_axis
from ..ops.elementwise import neg, sub
from ..ops.linalg import solve
from ..ops.literals import full, splat
from ..ops.shapes import reshape
from ..run.stand_alone import Written
from ..transforms.batch import batch as batch_program
from ..transforms.jvp import jvp as jvp_program
from ..transforms.simplify import simplify as simplify_program
from ..transforms.transpose import transpose as transpose_program
from . import krylov

_BOOL, _INT = np.dtype(np.bool_), np.dtype(np.int64)
# A matrix is symmetric if its parts that should be equal differ by less, as a power of the rounding error.
_ASYMMETRY = 0.5


class LinearMethod(NamedTuple):
    """How linear equations are solved.

    Attributes:
        name: "cg", "bicgstab" or "gmres".
        symmetric: whether the matrix is its own conjugated transpose.
        tol: the norm of the residual, relative to that of the right-hand side, at which a solution is accepted.
        atol: the norm of the residual at which it is accepted in any case.
        maxiter: the most iterations.
        restart: after how many iterations gmres forgets its vectors.
    """

    name: str
    symmetric: bool
    tol: float
    atol: float
    maxiter: int
    restart: int

    def failure(self) -> str:
        """The message for a solution that was not found."""
        advice = {
            "cg": "cg needs a symmetric positive definite matrix; use gmres for others",
            "bicgstab": "use gmres, which is more robust",
            "gmres": "a larger restart= makes it more robust",
        }[self.name]
        promise = ", or the matrix is not symmetric, as the method or the call promises" * self.symmetric
        return (
            f"linear_solve with {self.name} did not converge in {{iterations}} iterations (of at most {self.maxiter}): "
            f"the norm of the residual is {{residual}}, more than tol={self.tol:g} times that of the right-hand side "
            f"(atol={self.atol:g}){promise}. Allow more with maxiter= or tol=, give a preconditioner=, or, if the "
            f'matrix is small, use method="dense"; {advice}. A singular matrix has no solution'
        )


class LinearSolve(MultipleResults):
    """x with `matvec(*consts, x) = b`, where `matvec` is linear in x.

    All axes of `b` but the last are lanes: problems of their own.  Operands are the constants of `matvec`, those of
    `preconditioner`, which maps a residual to about the error of x, then `b`.  Results are x, and for each lane whether
    it converged, the number of iterations and the norm of the residual.  These have no derivative.
    """

    name = "linear_solve"
    repeats = True
    memory = Memory.NEW

    def type_rule(
        self, *types: ArrayType, matvec: Program, preconditioner: Program | None, method: LinearMethod
    ) -> list[ArrayType]:
        of_matvec, of_preconditioner, (b,) = cut_behind_constants(types, matvec, preconditioner)
        if not is_inexact(b.dtype) or not b.ndim:
            raise TypeError(f"{self.name} is not defined for a right-hand side {b}")
        for program, consts in ((matvec, of_matvec), (preconditioner, of_preconditioner)):
            if program is not None and (program.in_types, program.out_types) != ((*consts, b), (b,)):
                raise TypeError(f"{program.name}: {program.in_types} to {program.out_types} does not fit {b}")
        return [b, *_info_types(b)]

    def numpy(self, *arrays: Any, matvec: Program, preconditioner: Program | None, method: LinearMethod) -> list[Any]:
        with np.errstate(all="ignore"):
            return _solved(backends.NUMPY, arrays, matvec, preconditioner, method)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        programs = params["matvec"], params["preconditioner"]
        functions = [p and backends.written_function(simplify_program(p)) for p in programs]
        named = dict(zip(("product", "improve"), functions, strict=True))
        counts = tuple(0 if p is None else len(p.inputs) - 1 for p in programs)
        backend = backends.NUMPY._replace(function=None)  # type: ignore[arg-type]
        return Written(_solved_quietly, {"backend": backend, "counts": counts, **named, "method": params["method"]})

    def xla(self, *arrays: Any, matvec: Program, preconditioner: Program | None, method: LinearMethod) -> list[Any]:
        def run(*arrays: Any) -> list[Any]:
            return _solved(backends.xla(), arrays, matvec, preconditioner, method)

        return backends.compiled(matvec, (preconditioner, method), run, arrays)

    def jvp(
        self, primals: Sequence[Tracer], tangents: Sequence[Tangent], *, matvec: Program, **params: Any
    ) -> tuple[Any, Any]:
        count = len(matvec.inputs) - 1
        outs = self(*primals, matvec=matvec, **params)
        active = tuple(t is not None for t in tangents[:count])
        change = tangents[-1]
        if any(active):
            derived = jvp_program(matvec, (*active, False))
            moved = inline(derived.program, [*primals[:count], outs[0], *chosen(tangents[:count], active)])[1:]
            if moved:
                change = neg(moved[0]) if change is None else sub(change, moved[0])
        if change is None:
            return outs, [None] * len(outs)
        tangent = self.required(*primals[:-1], change, matvec=matvec, **params)
        failure = params["method"].failure()
        return outs, [required(tangent, *outs[1:], message=failure), None, None, None]

    def required(self, *operands: Tracer, method: LinearMethod, **params: Any) -> Tracer:
        """The solution alone: an error, or NaN, where it was not found."""
        x, *info = self(*operands, method=method, **params)
        return required(x, *info, message=method.failure())

    def transpose(
        self,
        cotangents: Any,
        operands: Sequence[Any],
        *,
        matvec: Program,
        preconditioner: Program | None,
        method: LinearMethod,
    ) -> list[Tangent]:
        b: ArrayType = operands[-1]
        if not (method.symmetric and not is_complex(b.dtype)):
            matvec = _transposed(matvec)
            preconditioner = None if preconditioner is None else _transposed(preconditioner)
        ct = self.required(*operands[:-1], cotangents[0], matvec=matvec, preconditioner=preconditioner, method=method)
        return [*[None] * (len(operands) - 1), ct]

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        matvec: Program,
        preconditioner: Program | None,
        method: LinearMethod,
    ) -> Any:
        of_matvec, of_preconditioner, _ = cut_behind_constants(batched, matvec, preconditioner)
        outs = self(
            *operands[:-1],
            with_batch_axis(size, operands[-1], batched[-1]),
            matvec=batch_program(matvec, size, (*of_matvec, True), (True,)).program,
            preconditioner=preconditioner
            and batch_program(preconditioner, size, (*of_preconditioner, True), (True,)).program,
            method=method,
        )
        return outs, [True] * len(outs)

    def simplify(self, operands: Sequence[Tracer], **params: Any) -> list[Any] | None:
        b = operands[-1]
        if splat(b) != 0:
            return None
        converged, *rest = _info_types(b.type)
        return [b, full(converged.shape, True, converged.dtype), *(full(t.shape, 0, t.dtype) for t in rest)]


linear_solve = LinearSolve()


def _info_types(b: ArrayType) -> list[ArrayType]:
    """Whether each lane converged, its iterations, and the norm of its residual."""
    lanes = b.shape[:-1]
    return [ArrayType(lanes, _BOOL), ArrayType(lanes, _INT), ArrayType(lanes, real_dtype(b.dtype))]


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the absolute value."""
    return np.empty(0, dtype).real.dtype


def _transposed(linear: Program) -> Program:
    """The transpose of a program that is linear in its last input."""

    def make() -> Program:
        flags = (*[False] * (len(linear.inputs) - 1), True)
        turned = simplify_program(transpose_program(linear, flags, wanted=(True,)).program)
        turned.derived["transposed"] = linear
        return turned

    return linear.derive("transposed", make)


def dense_solve(a: Tracer, b: Tracer) -> Tracer:
    """x with `a x = b`, for matrices (*lanes, n, n) and vectors (*lanes, n)."""
    return reshape(solve(a, reshape(b, shape=(*b.shape, 1))), shape=b.shape)


def _solved(
    backend: Backend, arrays: Sequence[Any], matvec: Program, preconditioner: Program | None, method: LinearMethod
) -> list[Any]:
    improve = preconditioner and backend.function(simplify_program(preconditioner))
    counts = tuple(0 if p is None else len(p.inputs) - 1 for p in (matvec, preconditioner))
    return _solved_by(backend, arrays, counts, backend.function(simplify_program(matvec)), improve, method)


def _solved_quietly(*arrays: Any, **given: Any) -> list[Any]:
    """Solve linear equations, with the matrix and the preconditioner as functions."""
    with np.errstate(all="ignore"):
        return _solved_by(arrays=arrays, **given)


def _solved_by(
    backend: Backend,
    arrays: Sequence[Any],
    counts: Sequence[int],
    product: Callable[..., list[Any]],
    improve: Callable[..., list[Any]] | None,
    method: LinearMethod,
) -> list[Any]:
    np = backend.np
    of_matvec, of_preconditioner, (b,) = cut(arrays, *counts)

    def a(x: Any) -> Any:
        return product(*of_matvec, x)[0]

    def m(r: Any) -> Any:
        return r if improve is None else improve(*of_preconditioner, r)[0]

    target = np.maximum(method.tol * backend.norm(b), method.atol)
    # The residual that a method updates drifts from the true one, which is what counts.
    limits = (target / 2, method.maxiter, method.restart)
    if backend.np is numpy and b.ndim == 1:
        x, iterations, left = _by_scipy(method.name, a, m, b, *limits)
    else:
        x, iterations, left = krylov.METHODS[method.name](backend, a, m, b, *limits)
    residual = backend.norm(left).astype(real_dtype(b.dtype))
    converged = residual <= target
    if method.symmetric:
        converged = converged & _is_symmetric(backend, a, x, b - left)
    return [x, converged, iterations, residual]


def _is_symmetric(backend: Backend, a: Any, x: Any, ax: Any) -> Any:
    """Whether the matrix acts on `x` as its conjugated transpose does, of which x would be the solution otherwise."""
    np = backend.np
    y = np.broadcast_to(backend.generic(x.shape[-1], x.dtype), x.shape)
    ay = a(y)
    difference = np.abs(backend.dot(ay, x) - backend.dot(y, ax))
    size = backend.norm(ay) * backend.norm(x) + backend.norm(y) * backend.norm(ax)
    return difference <= float(np.finfo(x.dtype).eps) ** _ASYMMETRY * size


def _by_scipy(name: str, a: Any, m: Any, b: Any, target: Any, maxiter: int, restart: int) -> tuple[Any, Any, Any]:
    """The same with SciPy's solvers, for one vector."""
    from scipy.sparse import linalg

    products: list[None] = []
    steps: list[None] = []

    def counted(x: Any) -> Any:
        products.append(None)
        return a(x)

    shape = (b.size, b.size)
    options: dict[str, Any] = {"maxiter": maxiter, "callback": lambda _: steps.append(None)}
    if name == "gmres":
        restart = max(1, min(restart, b.size, maxiter))
        options.update(restart=restart, maxiter=-(-maxiter // restart), callback_type="pr_norm")
    x, _ = getattr(linalg, name)(
        linalg.LinearOperator(shape, counted, dtype=b.dtype),
        b,
        rtol=0.0,
        atol=float(target),
        M=linalg.LinearOperator(shape, m, dtype=b.dtype),
        **options,
    )
    # BiCGSTAB, at two products a step, may end with half of one, which it does not report.
    taken = -(-len(products) // 2) if name == "bicgstab" else len(steps)
    x = x.astype(b.dtype, copy=False)
    return x, np.int64(taken), b - a(x)
