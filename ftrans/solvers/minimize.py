"""Minimisation of a program, with or without equality constraints: where the search of `argmin` starts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..base.progress import counted
from ..control.rules.backends import NUMPY, Backend, State
from ..core.interpret import inline
from ..core.program import Program
from ..core.trace import Builder, building
from ..core.types import ArrayType
from ..ops.broadcast import broadcast, reduce_sum
from ..ops.elementwise import add, mul
from ..ops.literals import full_like
from ..transforms.differentiate import gradient
from ..transforms.simplify import simplify as simplify_program
from . import krylov, newton
from .jacobians import Linearized, jacobian, linearized
from .linear_primitive import LinearMethod
from .search import Search

# Solvers of SciPy that take second derivatives.
_WITH_HESSIAN = ("trust-exact",)
_WITH_PRODUCTS = ("trust-ncg", "trust-krylov", "Newton-CG")
# The steps of the augmented Lagrangian method: each multiplies the penalty, and hence the accuracy, by its growth.
_ROUNDS, _FIRST_PENALTY, _GROWTH = 12, 10.0, 4.0
# How negative a second derivative of rounding errors may be, as a power of them.
_CURVATURE = 0.75
# How many directions are looked at where there are too many for a matrix.
_DIRECTIONS = 20


def minimum(backend: Backend, guide: Program, consts: Sequence[Any], z0: Any, search: Search) -> Any:
    """A point near a minimum, and the multipliers of the constraints there.

    Args:
        backend: where to run.
        guide: `(*consts, x) -> (objective, constraints)`, of shapes (*lanes,) and (*lanes, m).
        consts: its constants.
        z0: the start: x, then m multipliers.
        search: how to search.
    """
    np = backend.np
    count = guide.out_types[1].shape[-1]
    size = z0.shape[-1] - count
    x0, multipliers = z0[..., :size], z0[..., size:]
    if backend is NUMPY and z0.ndim == 1:
        return _by_scipy(guide, consts, x0, count, search)
    if not count:
        return _descended(backend, guide, consts, multipliers, 0.0, x0, search)
    constraints = backend.function(simplify_program(guide))

    def step(state: State) -> State:
        x, y, penalty, number = state
        x = _descended(backend, guide, consts, y, penalty, x, search)
        y = y + penalty * constraints(*consts, x)[1]
        return x, y, penalty * _GROWTH, number + 1

    penalty = np.full((), _FIRST_PENALTY, z0.dtype)
    state = (x0, multipliers, penalty, np.zeros((), int))
    x, y, _, _ = backend.loop(lambda state: state[-1] < _ROUNDS, step, state)
    return np.concatenate([x, y], -1)


def is_minimum(
    backend: Backend, guide: Program, consts: Sequence[Any], start: Any, z: Any, second: Any, product: Any
) -> Any:
    """Whether a stationary point `z` of the Lagrange function, to which steps led from `start`, is a minimum.

    Its second derivatives must not be negative in the directions that the constraints leave.  Without their matrix,
    `second`, some of these directions are looked at, by `product`, where there are no constraints.
    """
    np = backend.np
    count = guide.out_types[1].shape[-1]
    tolerance = float(numpy.finfo(z.dtype).eps)
    if second is not None:
        second = np.where(np.isfinite(second), second, 0)
        size = z.shape[-1] - count
        curvature, slopes = second[..., :size, :size], second[..., size:, :size]
        if count:
            left = np.eye(size, dtype=z.dtype) - np.linalg.pinv(slopes, tolerance**0.5) @ slopes
            values = np.linalg.eigvalsh(left @ curvature @ left)
        else:
            values = np.linalg.eigvalsh(curvature)
        scale = np.sqrt(np.sum(curvature * curvature, (-2, -1)))
        return np.all(values >= -(tolerance**_CURVATURE) * scale[..., None], -1)
    if count:
        return np.ones(z.shape[:-1], bool)
    values = krylov.ritz_values(backend, product, z.shape, z.dtype, _DIRECTIONS)
    convex = np.min(values, -1) >= -(tolerance**_CURVATURE) * np.max(np.abs(values), -1)
    objective = backend.function(simplify_program(guide))
    before, after = objective(*consts, start)[0], objective(*consts, z)[0]
    return convex & (after <= before + tolerance**0.5 * np.abs(before))


def _augmented(guide: Program, with_value: bool) -> Program:
    """`(*consts, multipliers, penalty, x)` -> the augmented Lagrangian (of each lane), and its gradient by x."""

    def make() -> Program:
        *consts, x = guide.in_types
        constraints = guide.out_types[1]
        builder = Builder([*consts, constraints, ArrayType((), constraints.dtype), x])
        with building(builder):
            *inputs, y, penalty, point = builder.inputs()
            f, g = inline(guide, [*inputs, point])
            weight = mul(full_like(g, 0.5), broadcast(penalty, shape=g.shape, dims=()))
            total = add(f, reduce_sum(mul(g, add(y, mul(weight, g))), axes=(g.ndim - 1,)))
            summed = reduce_sum(total, axes=tuple(range(total.ndim)))
            merit = builder.finish([summed, total], "lagrangian")
        active = (*[False] * (len(merit.inputs) - 1), True)
        slope = gradient(merit, active, with_value=False)
        return simplify_program(
            slope if with_value else Program(slope.name, slope.inputs, slope.eqns, slope.outputs[1:])
        )

    return guide.derive(("augmented", with_value), make)


def _descended(
    backend: Backend, guide: Program, consts: Sequence[Any], y: Any, penalty: Any, x0: Any, search: Search
) -> Any:
    """A minimum of the augmented Lagrangian by damped Newton steps."""
    np = backend.np
    fixed = [*consts, y, np.asarray(penalty, x0.dtype)]
    merit = backend.function(_augmented(guide, with_value=True))
    slope = _augmented(guide, with_value=False)

    def evaluate(x: Any) -> tuple[Any, Any]:
        value, gradient = merit(*fixed, x)
        return gradient, value

    direction = newton.dense_descent(backend, lambda x: backend.function(jacobian(slope))(*fixed, x)[0])
    if search.linear is not None:
        direction = _descent(backend, linearized(slope), fixed, search.linear)
    return newton.damped_newton(backend, evaluate, direction, x0, numpy.sqrt(search.tol), search.maxiter).x


def _descent(backend: Backend, parts: Linearized, fixed: Sequence[Any], method: LinearMethod) -> newton.Direction:
    """Newton steps without a matrix, by conjugate gradients."""
    values, linear = (backend.function(simplify_program(p)) for p in parts)

    def direction(x: Any, value: Any, damping: Any) -> Any:
        residuals = values(*fixed, x)[1:]

        def product(v: Any) -> Any:
            return linear(*residuals, v)[0] + damping[..., None] * v

        target = 1e-3 * backend.norm(value)
        step, _, _ = krylov.cg(backend, product, lambda r: r, -value, target, method.maxiter, method.restart)
        return step

    return direction


def _constraints(guide: Program) -> Program:
    """The second output of the guide alone."""
    return guide.derive(
        "constraints", lambda: simplify_program(Program("constraints", guide.inputs, guide.eqns, guide.outputs[1:]))
    )


@counted("minimizing")
def _minimized(value_and_slope: Callable[[Any], Any], x0: Any, **options: Any) -> Any:
    from scipy import optimize

    return optimize.minimize(value_and_slope, x0, jac=True, **options).x


def _by_scipy(guide: Program, consts: Sequence[Any], x0: Any, count: int, search: Search) -> Any:
    """The same with SciPy's minimisers, for one point."""
    fixed = [*consts, numpy.zeros(count, x0.dtype), numpy.zeros((), x0.dtype)]
    merit = NUMPY.function(_augmented(guide, with_value=True))
    slope = _augmented(guide, with_value=False)
    method = search.minimizer or ("SLSQP" if count else "BFGS")

    def at(x: Any) -> Any:
        return numpy.asarray(x, x0.dtype)

    def value_and_slope(x: Any) -> tuple[float, Any]:
        value, gradient = merit(*fixed, at(x))
        return float(value), gradient.astype(float)

    def hessian(x: Any) -> Any:
        return NUMPY.function(jacobian(slope))(*fixed, at(x))[0]

    def times(x: Any, v: Any) -> Any:
        values, linear = (NUMPY.function(simplify_program(p)) for p in linearized(slope))
        return linear(*values(*fixed, at(x))[1:], at(v))[0]

    options: dict[str, Any] = {}
    if method in _WITH_HESSIAN:
        options["hess"] = hessian
    elif method in _WITH_PRODUCTS:
        options["hessp"] = times
    if count:
        constraints = _constraints(guide)
        options["constraints"] = {
            "type": "eq",
            "fun": lambda x: NUMPY.function(constraints)(*consts, at(x))[0].astype(float),
            "jac": lambda x: NUMPY.function(jacobian(constraints))(*consts, at(x))[0].astype(float),
        }
    else:
        # Relative to the start, because the size of gradients says nothing by itself.
        options["tol"] = 1e-6 * float(numpy.linalg.norm(value_and_slope(x0)[1]))
    x = at(_minimized(value_and_slope, x0.astype(float), method=method, **options))
    if not count:
        return x
    # The multipliers that balance the gradient best.
    turned = NUMPY.function(jacobian(constraints))(*consts, x)[0].T
    y = numpy.linalg.lstsq(turned, -value_and_slope(x)[1], rcond=None)[0]
    return numpy.concatenate([x, at(y)])
