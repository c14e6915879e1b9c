"""Whole solves by SciPy of the problems in the examples: with the derivatives that ftrans fills in, and with SciPy's.

SciPy's differences are given the pattern of the Jacobian, so that they take as few evaluations as they can.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .harness import Contender, Row, Table, time_side_by_side

EXAMPLES = Path(__file__).parent.parent / "examples"
NODES = 40
OBSERVATIONS = 20_000
CELLS = 24

Solves = dict[str, Callable[[], Any]]


class NotSolved(AssertionError):
    """A solver stopped somewhere else than at the solution."""


def run() -> Table:
    return Table(
        "solvers: whole solves by SciPy with exact derivatives and with finite differences",
        [
            row(f"trust-constr: cart-pole, {NODES} nodes", cart_pole(), at_most=0.2),
            # Here most of the time is SciPy's own, in LSMR and in factorising sparse matrices.
            row(f"least_squares: bundle adjustment, {OBSERVATIONS} observations", bundle()),
            row(f"solve_ivp, BDF: Brusselator, {CELLS} x {CELLS}", brusselator("BDF")),
            row(f"solve_ivp, Radau: Brusselator, {CELLS} x {CELLS}", brusselator("Radau")),
        ],
    )


def row(label: str, solves: Solves, at_most: float | None = None) -> Row:
    contenders = {name: Contender(call) for name, call in solves.items()}
    timings = time_side_by_side(contenders, seconds=5.0, patience=10.0)
    typical = {name: timings.typical(name) for name in solves}
    return Row(label, typical, [timings.ratio("ftrans", "differences", at_most)])


def example(name: str) -> Any:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def require(is_solved: Any, result: Any) -> None:
    if not is_solved:
        raise NotSolved(str(result.message))


def pattern_of(f: Callable[..., Any], x: np.ndarray) -> Any:
    """The pattern of a Jacobian, with a 1 for each entry."""
    import ftrans as ft

    found = ft.sparse_jacobian(f)(x)
    found.data[:] = 1
    return found


def cart_pole() -> Solves:
    import scipy.optimize

    from ftrans.scipy import optimize

    problem = example("cart_pole")
    start = problem.straight(NODES)
    pattern = pattern_of(problem.defects, start)

    def solve(minimize: Callable[..., Any], constraint: Any) -> Any:
        options = {"maxiter": 3000, "xtol": 1e-10}
        result = minimize(problem.effort, start, method="trust-constr", constraints=constraint, options=options)
        require(result.constr_violation < 1e-6 and 58 < result.fun < 62, result)
        return result.fun

    def by_differences() -> Any:
        constraint = scipy.optimize.NonlinearConstraint(problem.defects, 0.0, 0.0, finite_diff_jac_sparsity=pattern)
        return solve(scipy.optimize.minimize, constraint)

    return {
        "differences": by_differences,
        "ftrans": lambda: solve(optimize.minimize, optimize.NonlinearConstraint(problem.defects, 0.0, 0.0)),
    }


def bundle() -> Solves:
    import scipy.optimize

    from ftrans.scipy import optimize

    scene, start = example("bundle_adjustment").made_up(OBSERVATIONS)
    pattern = pattern_of(scene.residuals, start)

    def solve(least_squares: Callable[..., Any], **more: Any) -> Any:
        options = {"x_scale": "jac", "method": "trf", "tr_solver": "lsmr", "ftol": 1e-6}
        result = least_squares(scene.residuals, start, **options, **more)
        require(result.cost < 0.25 * OBSERVATIONS, result)
        return result.cost

    return {
        "differences": lambda: solve(scipy.optimize.least_squares, jac="2-point", jac_sparsity=pattern),
        "ftrans": lambda: solve(optimize.least_squares),
    }


def brusselator(method: str) -> Solves:
    import scipy.integrate

    from ftrans.scipy import integrate

    problem = example("brusselator")
    start = problem.start(CELLS)
    pattern = pattern_of(lambda state: problem.reaction(0.0, state), start)

    def solve(solve_ivp: Callable[..., Any], **more: Any) -> Any:
        result = solve_ivp(problem.reaction, (0.0, 1.0), start, method, **problem.PRECISION, **more)
        require(result.success, result)
        return result.y[:, -1]

    return {
        "differences": lambda: solve(scipy.integrate.solve_ivp, jac_sparsity=pattern),
        "dense differences": lambda: solve(scipy.integrate.solve_ivp),
        "ftrans": lambda: solve(integrate.solve_ivp),
    }
