"""Root: where a program is zero.  Its derivative solves linear equations, by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy
import numpy as np

from ..base.progress import counted
from ..control.convergence import required
from ..control.rules import backends
from ..control.rules.backends import NUMPY, Backend
from ..control.subprograms import cut, cut_behind_constants
from ..core.interpret import inline
from ..core.on_numpy import Memory
from ..core.primitive import MultipleResults, Tangent
from ..core.program import Params, Program
from ..core.trace import Tracer
from ..core.types import ArrayType, is_complex
from ..ops.broadcast import broadcast, reduce_sum, with_batch_axis
from ..ops.elementwise import add, convert, neg, real, select
from ..ops.literals import full
from ..run.stand_alone import Written
from ..transforms.batch import batch as batch_program
from ..transforms.jvp import jvp as jvp_program
from ..transforms.simplify import simplify as simplify_program
from . import krylov, minimize
from .jacobians import jacobian, linearized, matrix
from .linear_primitive import dense_solve, linear_solve
from .newton import (
    Direction,
    Found,
    are_small,
    damped_newton,
    dense_direction,
    is_near,
    is_rounding,
    is_simple,
    is_smooth,
    iteration,
)
from .search import Search

_BOOL, _INT = np.dtype(np.bool_), np.dtype(np.int64)
# How exactly Newton steps without a matrix are computed: enough to tell a simple root from a multiple one.
_STEP_TOLERANCE = 1e-6


class Root(MultipleResults):
    """x with `residual(*consts, x) = 0`, found from `x0`.

    All axes of x but the last are lanes: problems of their own.  Operands are the constants of `residual`, those of
    `guide`, then `x0`.  Results are x, and for each lane whether it is a root, whether it is a simple one, the number
    of steps and the norm of the residual.  Only x has a derivative, and none with respect to `x0` or the guide.
    """

    name = "root"
    repeats = True
    memory = Memory.NEW

    def type_rule(self, *types: ArrayType, residual: Program, guide: Program | None, search: Search) -> list[ArrayType]:
        of_residual, of_guide, (x,) = cut_behind_constants(types, residual, guide)
        if x.dtype.kind != "f" or not x.ndim:
            raise TypeError(f"{self.name} is not defined for {x}")
        if residual.in_types != (*of_residual, x) or residual.out_types != (x,):
            raise TypeError(f"{residual.name}: {residual.in_types} to {residual.out_types} does not fit {x}")
        if guide is not None and guide.in_types != (*of_guide, *guide.in_types[len(of_guide) :]):
            raise TypeError(f"{guide.name} takes {guide.in_types}, not {of_guide}")
        lanes = x.shape[:-1]
        return [x, ArrayType(lanes, _BOOL), ArrayType(lanes, _BOOL), ArrayType(lanes, _INT), ArrayType(lanes, x.dtype)]

    def numpy(self, *arrays: Any, residual: Program, guide: Program | None, search: Search) -> list[Any]:
        with np.errstate(all="ignore"):
            return _found(NUMPY, arrays, residual, guide, search)

    def stand_alone(self, types: list[ArrayType], params: Params) -> Written:
        residual, guide, search = params["residual"], params["guide"], params["search"]
        minima = guide if search.method == "minimize" else None
        backend = NUMPY._replace(function=None)  # type: ignore[arg-type]
        equations = _equations(backends.written_function, residual, guide, search)
        return Written(_found_quietly, {"backend": backend, "equations": equations, "minima": minima, "search": search})

    def xla(self, *arrays: Any, residual: Program, guide: Program | None, search: Search) -> list[Any]:
        def run(*arrays: Any) -> list[Any]:
            return _found(backends.xla(), arrays, residual, guide, search)

        return backends.compiled(residual, (guide, search), run, arrays)

    def jvp(
        self,
        primals: Sequence[Tracer],
        tangents: Sequence[Tangent],
        *,
        residual: Program,
        guide: Program | None,
        search: Search,
    ) -> tuple[Any, Any]:
        outs = self(*primals, residual=residual, guide=guide, search=search)
        count = len(residual.inputs) - 1
        at_root = [*primals[:count], outs[0]]
        active = tuple(t is not None for t in tangents[:count])
        directions = [t for t in tangents[:count] if t is not None]
        if not directions:
            return outs, [None] * len(outs)
        x, _, regular, iterations, norm = outs
        tangent = _undefined(regular, directions, x)
        derived = jvp_program(residual, (*active, False))
        moved = inline(derived.program, [*at_root, *directions])[1:]
        if moved:
            tangent = add(tangent, self._change(residual, at_root, neg(moved[0]), search))
        return outs, [required(tangent, regular, iterations, norm, message=search.singular()), *[None] * 4]

    def _change(self, residual: Program, at_root: Sequence[Tracer], right: Tracer, search: Search) -> Tracer:
        """How the root moves, where the residual changes by `-right`."""
        values, linear = linearized(residual)
        residuals = inline(values, at_root)[1:]
        if search.linear is None:
            return dense_solve(matrix(linear, residuals), right)
        return linear_solve.required(*residuals, right, matvec=linear, preconditioner=None, method=search.linear)

    def batch(
        self,
        size: int,
        operands: Sequence[Tracer],
        batched: Sequence[bool],
        *,
        residual: Program,
        guide: Program | None,
        search: Search,
    ) -> Any:
        of_residual, of_guide, _ = cut_behind_constants(batched, residual, guide)
        if guide is not None:
            flags = (*of_guide, *[True] * (len(guide.inputs) - len(of_guide)))
            guide = batch_program(guide, size, flags, (True,) * len(guide.outputs)).program
        outs = self(
            *operands[:-1],
            with_batch_axis(size, operands[-1], batched[-1]),
            residual=batch_program(residual, size, (*of_residual, True), (True,)).program,
            guide=guide,
            search=search,
        )
        return outs, [True] * len(outs)


root = Root()


def _undefined(regular: Tracer, directions: Sequence[Tracer], x: Tracer) -> Tracer:
    """Zeros like `x`, and something that depends on each direction where a root is not regular.

    At a kink the residual may not depend on a parameter.  Without this, reverse mode would never learn that the root
    has no derivative, and leave the parameter a zero.
    """
    lanes = regular.shape
    total = full(lanes, 0, x.dtype)
    for t in directions:
        by_lane = len(lanes) if t.shape[: len(lanes)] == lanes else 0
        part = reduce_sum(t, axes=tuple(range(by_lane, t.ndim)))
        part = convert(real(part) if is_complex(t.dtype) else part, dtype=x.dtype)
        total = add(total, part if by_lane else broadcast(part, shape=lanes, dims=()))
    return broadcast(select(regular, full(lanes, 0, x.dtype), total), shape=x.shape, dims=tuple(range(len(lanes))))


# Finding


class Equations(NamedTuple):
    """What a root is looked for with.

    Attributes:
        counts: how many constants the residual has, and the guide.
        residual: takes its constants and x.
        jacobian: its Jacobian, of the same; None if a search takes products with it only.
        values: what `linear` takes of the same arguments, behind a first result.
        linear: takes that and a vector; the product of the Jacobian with it.
        guide: takes its constants and the first x; where to begin.
    """

    counts: tuple[int, int]
    residual: Callable[..., list[Any]]
    jacobian: Callable[..., list[Any]] | None
    values: Callable[..., list[Any]] | None
    linear: Callable[..., list[Any]] | None
    guide: Callable[..., list[Any]] | None

    def jacobian_at(self, backend: Backend, consts: Sequence[Any], x: Any) -> Any:
        """The Jacobian at `x`."""
        assert self.jacobian is not None
        return backend.whole(self.jacobian(*consts, x)[0], 2)

    def product_at(self, consts: Sequence[Any], x: Any) -> Callable[[Any], Any]:
        """The product of the Jacobian at `x` with a vector."""
        assert self.values is not None
        assert self.linear is not None
        linear, residuals = self.linear, self.values(*consts, x)[1:]
        return lambda v: linear(*residuals, v)[0]


class Minima(NamedTuple):
    """Functions of an objective that is minimized, for which the residual is its slope.

    Attributes:
        find: where to begin; see `minimize.minimum`.
        is_found: see `minimize.is_minimum`.
    """

    find: Callable[..., Any]
    is_found: Callable[..., Any]

    @classmethod
    def of(cls, backend: Backend, guide: Program | None, search: Search) -> Minima | None:
        """Those of a guide, if it is an objective."""
        if guide is None or search.method != "minimize":
            return None
        return cls(partial(minimize.minimum, backend, guide), partial(minimize.is_minimum, backend, guide))


def _equations(
    function: Callable[[Program], Any], residual: Program, guide: Program | None, search: Search
) -> Equations:
    is_dense = search.linear is None or search.method in ("hybr", "lm")
    parts = (None, None) if search.linear is None else linearized(residual)
    is_guided = guide is not None and search.method == "program"
    return Equations(
        (len(residual.inputs) - 1, 0 if guide is None else len(guide.inputs) - 1),
        function(simplify_program(residual)),
        function(jacobian(residual)) if is_dense else None,
        parts[0] and function(simplify_program(parts[0])),
        parts[1] and function(simplify_program(parts[1])),
        function(simplify_program(guide)) if guide is not None and is_guided else None,
    )


def _found_quietly(*arrays: Any, **given: Any) -> list[Any]:
    """Look for a root of functions."""
    with np.errstate(all="ignore"):
        return _found_by(arrays=arrays, **given)


def _found(
    backend: Backend, arrays: Sequence[Any], residual: Program, guide: Program | None, search: Search
) -> list[Any]:
    minima = Minima.of(backend, guide, search)
    return _found_by(backend, arrays, _equations(backend.function, residual, guide, search), minima, search)


def _found_by(
    backend: Backend, arrays: Sequence[Any], equations: Equations, minima: Minima | None, search: Search
) -> list[Any]:
    np = backend.np
    consts, of_guide, (x0,) = cut(arrays, *equations.counts)
    x0 = backend.whole(x0, 1) if search.linear is None else x0

    def f(x: Any) -> Any:
        value = equations.residual(*consts, x)[0]
        return backend.whole(value, 1) if search.linear is None else value

    def evaluate(x: Any) -> tuple[Any, Any]:
        value = f(x)
        return value, backend.norm(value)

    start = x0
    before: Any = 0
    if search.method == "iteration":
        start, before = iteration(backend, f, x0, search.tol, search.maxiter, search.damping, search.memory)
    elif search.method == "program":
        assert equations.guide is not None
        (start,) = equations.guide(*of_guide, x0)
    elif minima is not None:
        start = minima.find(of_guide, x0, search)
    elif search.method != "newton" and backend.np is numpy and x0.ndim == 1:
        start = _by_scipy(f, lambda x: equations.jacobian_at(backend, consts, x), x0, search)
    at_origin = f(x0)
    first = backend.norm(at_origin)
    if start is not x0:
        # The search may have failed where Newton steps do not.
        left = backend.norm(f(start))
        usable = np.isfinite(backend.norm(start)) & np.isfinite(left)
        if search.method != "minimize":
            usable = usable & ~(left > first)
        start = np.where(usable[..., None], start, x0)
    direction = _direction(backend, equations, consts, search)
    found = damped_newton(backend, evaluate, direction, start, search.tol, search.maxiter)
    norm = backend.norm(found.value)
    regular = found.regular
    if search.linear is None:
        simple, told = is_simple(
            backend, f, lambda x: equations.jacobian_at(backend, consts, x), x0, found.x, found.value
        )
        regular = np.where(told, simple, regular)
    else:
        times = equations.product_at(consts, found.x)
        regular = regular & is_smooth(backend, f, times, x0, found.x, found.value)
    # Computed once: compiled twice, the norm of tiny numbers is sometimes zero.
    first = found.first if start is x0 else first
    is_root = _is_root(backend, f, direction, x0, at_origin, first, found, regular, search)
    if minima is not None:
        at: Any = (consts, found.x)
        is_dense = search.linear is None
        second, product = (equations.jacobian_at(backend, *at), None) if is_dense else (None, equations.product_at(*at))
        is_root = is_root & minima.is_found(of_guide, start, found.x, second, product)
    return [found.x, is_root, is_root & regular, before + found.iterations, norm]


def _is_root(
    backend: Backend,
    f: Callable[[Any], Any],
    direction: Direction,
    x0: Any,
    at_origin: Any,
    first: Any,
    found: Found,
    regular: Any,
    search: Search,
) -> Any:
    """Whether each lane has found a root: by its last step, by the norm that was asked for, or by a small residual.

    A small residual alone is not enough: see `is_near`.
    """
    np = backend.np
    norm = backend.norm(found.value)
    finite = np.isfinite(norm) & np.isfinite(backend.norm(found.x))
    sure = found.reached | (first == 0)
    if search.atol is not None:
        sure = sure | (norm <= search.atol)
    # Equations differ in scale, too: the norm shows the largest only.
    each = are_small(backend, f, x0, at_origin, found.x, found.value, search.tol)
    by_rounding = each & is_rounding(backend, f, x0, found.x, found.value)
    sure = sure | (by_rounding & regular)
    near, stays, runs = is_near(backend, f, direction, x0, found.x, finite & ~sure)
    rounded = by_rounding & ~runs & (stays | (norm == 0))
    return finite & (sure | rounded | (each & (norm <= search.tol * first) & near & stays))


def _direction(backend: Backend, equations: Equations, consts: Sequence[Any], search: Search) -> Direction:
    method = search.linear
    if method is None:
        return dense_direction(backend, lambda x: equations.jacobian_at(backend, consts, x))
    solver = krylov.METHODS[method.name]

    def direction(x: Any, value: Any, damping: Any) -> Any:
        product = equations.product_at(consts, x)
        target = _STEP_TOLERANCE * backend.norm(value)
        step, _, _ = solver(backend, product, lambda r: r, -value, target, method.maxiter, method.restart)
        return step / (1 + damping / 1e-3)[..., None]

    return direction


@counted("finding a root")
def _by_scipy(f: Callable[[Any], Any], jac: Callable[[Any], Any], x0: Any, search: Search) -> Any:
    from scipy import optimize

    with_matrix = search.method in ("hybr", "lm")
    found = optimize.root(f, x0, jac=jac if with_matrix else None, method=search.method)
    return np.asarray(found.x, x0.dtype).reshape(x0.shape)
