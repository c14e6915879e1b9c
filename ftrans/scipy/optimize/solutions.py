"""Solutions with derivatives: what SciPy found, with the derivative of the exact solution beside it.

SciPy's solvers stop at a tolerance, some of them far from the last digit.  The value of a solution is theirs.  From
there Newton steps go on to the solution itself, where the implicit function theorem gives its derivatives of any order
(`solvers/root.py`); where the steps do not arrive, or the Jacobian is singular, asking for a derivative is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...api.call import trace_flat
from ...api.vectors import Captured
from ...core.trace import NoWitness, Tracer
from ...numpy.promotion import asarray
from ...ops.elementwise import stop_gradient
from ...solvers.implicit import linear_choice
from ...solvers.root import root as primitive
from ...solvers.search import Search
from ...structure.entries import NotStructured
from ...structure.patterns.detect import jacobian_pattern
from .calls import Given

_TOLERANCE, _STEPS = 1e-10, 50


def root_near(residual: Callable[[Tracer], Any], found: Tracer, name: str) -> tuple[Tracer, Tracer]:
    """The exact root of equations, and whether Newton steps led to it.

    Args:
        residual: a function of `found` with a result like that.
        found: where SciPy found the root, of shape (n,), or (k, n) for k problems.
        name: the name of the solver.
    """
    reason = NoWitness(f"the equations of {name} are solved for many values")
    traced, _ = trace_flat(residual, [found.type], lambda xs: residual(xs[0]), reason)
    equations = Captured.of(traced.program, traced.captured)
    # Axes before the last are problems of their own.
    linear = linear_choice(None, found.type.with_shape(found.shape[-1:]), "gmres", False, name)
    search = Search(name, "newton", _TOLERANCE, None, _STEPS, linear=linear)
    consts = [asarray(x) for x in equations.consts]
    x, is_root, *_ = primitive(*consts, stop_gradient(found), residual=equations.program, guide=None, search=search)
    return x, is_root


def with_derivative_of(found: Tracer, exact: Tracer) -> Tracer:
    """What was found, with the derivative of the exact solution."""
    return found + (exact - stop_gradient(exact))


def root_of(residual: Callable[[Tracer], Any], found: Tracer, name: str) -> Tracer:
    """A root that was found, with its derivative.

    Args:
        residual: the equations, as a function of an array like `found`.
        found: the root, of any shape.
        name: the name of the solver.
    """

    return _shaped(residual, found, (-1,), name)


def root_of_each(f: Given, found: Tracer, name: str) -> Tracer:
    """The root for each element of an array, where each result of `f` depends on one element only.

    Where it does not, all of them are one system of equations.
    """
    return _shaped(f, found, (-1, 1) if _is_elementwise(f) else (-1,), name)


def _is_elementwise(f: Given) -> bool:
    assert f.captured is not None
    count = len(f.consts)
    try:
        pattern = jacobian_pattern(f.captured.program, (*[False] * count, True), 1, {})
    except NotStructured:
        return False
    rows, columns = pattern.nonzero()
    return bool(np.array_equal(rows, columns))


def _shaped(residual: Callable[[Tracer], Any], found: Tracer, shape: tuple[int, ...], name: str) -> Tracer:
    """A root, of equations for which the unknowns have another shape."""

    def equations(x: Tracer) -> Any:
        return np.reshape(asarray(residual(np.reshape(x, found.shape))), shape)

    exact, _ = root_near(equations, np.reshape(found, shape), name)
    return with_derivative_of(found, np.reshape(exact, found.shape))
