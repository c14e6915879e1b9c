"""Nonlinear programs as interior-point solvers call them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ftrans as ft

START = np.array([1.0, 5.0, 5.0, 1.0])
# Hock and Schittkowski, "Test Examples for Nonlinear Programming Codes", 1981, problem 71.
LOWEST, BEST = np.array([1.0, 4.74299964, 3.82114998, 1.37940829]), 17.0140173


def objective(x: Any) -> Any:
    return x[0] * x[3] * np.sum(x[:3]) + x[2]


def constraints(x: Any) -> Any:
    return np.array([np.prod(x), np.sum(x**2)])


def matrix(structure: Any, entries: Any, shape: tuple[int, int]) -> Any:
    found = np.zeros(shape)
    np.add.at(found, structure, entries)
    assert len(set(zip(*map(tuple, structure), strict=True))) == len(entries)
    return found


@pytest.mark.parametrize("compile", [False, True])
def test_derivatives(compile: bool) -> None:
    problem = ft.nlp(objective, constraints, compile=compile).prepare(np.ones(4))
    assert (problem.n, problem.m) == (4, 2)
    x, multipliers = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, -2.0])
    assert problem.objective(x) == 27.0
    assert isinstance(problem.objective(x), float)
    assert np.allclose(problem.gradient(x), ft.grad(objective)(x))
    assert np.allclose(problem.constraints(x), constraints(x))
    J = matrix(problem.jacobianstructure(), problem.jacobian(x), (2, 4))
    assert np.allclose(J, [24 / x, 2 * x])
    H = matrix(problem.hessianstructure(), problem.hessian(x, multipliers, 3.0), (4, 4))

    def lagrangian(x: Any) -> Any:
        return 3 * objective(x) + 0.5 * np.prod(x) - 2 * np.sum(x**2)

    assert np.allclose(H, np.tril(ft.hessian(lagrangian)(x)))
    assert "lagrangian_hessian of lagrangian(objective, constraints)" in problem.explain()
    assert repr(problem) == "<NonlinearProgram objective, constraints: 4 variables, 2 constraints>"
    assert not hasattr(problem, "intermediate")


def test_patterns_are_sparse() -> None:
    n = 50
    problem = ft.nlp(lambda x: np.sum(x**4), lambda x: x[1:] * x[:-1] - 1).prepare(np.ones(n))
    assert len(problem.jacobianstructure()[0]) == 2 * (n - 1)
    rows, cols = problem.hessianstructure()
    assert len(rows) == 2 * n - 1
    assert np.all(rows >= cols)
    # An objective factor of 0 is what solvers take to restore feasibility.
    H = matrix((rows, cols), problem.hessian(np.full(n, 2.0), np.arange(1.0, n), 0.0), (n, n))
    assert np.array_equal(H, np.diag(np.arange(1.0, n), -1))


def test_without_constraints() -> None:
    problem = ft.nlp(lambda x: np.sum(np.cosh(x)), compile=False)
    assert problem.constraints(np.zeros(3)).shape == (0,)
    assert problem.jacobian(np.zeros(3)).shape == (0,)
    assert [part.size for part in problem.jacobianstructure()] == [0, 0]
    assert np.allclose(problem.hessian(np.zeros(3), np.zeros(0), 2.0), [2, 2, 2])


def test_numbers_in_other_forms() -> None:
    problem = ft.nlp(lambda x: x[:1] ** 2, lambda x: [x[0] * x[1]], compile=False).prepare([1, 1])
    assert problem.objective([3, 1]) == 9.0
    assert problem.constraints([3, 2]).tolist() == [6.0]
    assert problem.hessian([3, 2], [1], 1).tolist() == [2.0, 1.0]


def test_mistakes() -> None:
    with pytest.raises(TypeError, match="nlp takes a function, but objective is"):
        ft.nlp(3.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nlp takes a function, but constraints is"):
        ft.nlp(objective, np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ft\.nlp\(\.\.\.\)\.prepare\(x0\)"):
        ft.nlp(objective, constraints).jacobianstructure()
    with pytest.raises(ValueError, match="prepared for a vector"):
        ft.nlp(objective, constraints).prepare(np.ones((2, 2)))
    with pytest.raises(ValueError, match="prepared for"):
        ft.nlp(objective, constraints, compile=False).prepare(np.ones(4)).jacobian(np.ones(5))


def test_ipopt() -> None:
    cyipopt = pytest.importorskip("cyipopt")
    steps: list[Any] = []

    def intermediate(*_: Any) -> bool:
        steps.append(_)
        return True

    problem = ft.nlp(objective, constraints, intermediate=intermediate, compile=False).prepare(START)
    solver = cyipopt.Problem(
        n=4, m=2, problem_obj=problem, lb=np.ones(4), ub=np.full(4, 5.0), cl=[25.0, 40.0], cu=[2e19, 40.0]
    )
    solver.add_option("print_level", 0)
    solver.add_option("derivative_test", "second-order")
    x, info = solver.solve(START)
    assert info["status"] == 0
    assert np.allclose(x, LOWEST, atol=1e-6)
    assert info["obj_val"] == pytest.approx(BEST)
    assert len(steps) < 12
