"""Derivatives of high order by nesting: right, and no larger than what orders share makes necessary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from scipy import special
from tables import crossed

import ftrans as ft

Function = Callable[[Any], Any]

ORDER = 10
# Name, the function, the same for mpmath, and a point.
ROWS: list[tuple[str, Function, Function, float]] = [
    ("reciprocal of a square", lambda x: 1 / (1 + x * x), lambda x: 1 / (1 + x * x), 0.7),
    ("reciprocal", lambda x: 1 / x, lambda x: 1 / x, 1.3),
    ("quotient", lambda x: np.sin(x) / x, lambda x: mpmath.sin(x) / x, 3.0),
    ("composition", lambda x: np.exp(np.sin(x)), lambda x: mpmath.exp(mpmath.sin(x)), 0.7),
    ("tanh", np.tanh, mpmath.tanh, 0.7),
    ("tan", np.tan, mpmath.tan, 0.7),
    ("sqrt", lambda x: np.sqrt(1 + x * x), lambda x: mpmath.sqrt(1 + x * x), 0.7),
    ("log", lambda x: np.log(1 + x**2), lambda x: mpmath.log(1 + x**2), 0.7),
    ("arctan", np.arctan, mpmath.atan, 0.7),
    ("arcsin", np.arcsin, mpmath.asin, 0.3),
    ("logistic", lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mpmath.exp(-x)), 0.7),
    ("softplus", lambda x: np.log1p(np.exp(x)), lambda x: mpmath.log(1 + mpmath.exp(x)), 0.7),
    ("power", lambda x: x**x, lambda x: x**x, 1.7),
    ("polynomial", lambda x: x**9 * (1 - x) ** 3, lambda x: x**9 * (1 - x) ** 3, 0.7),
    ("bell", lambda x: x * np.exp(-x * x), lambda x: x * mpmath.exp(-x * x), 0.7),
    (
        "product of three",
        lambda x: np.sin(x) * np.exp(-x * x) / (1 + x * x),
        lambda x: mpmath.sin(x) * mpmath.exp(-x * x) / (1 + x * x),
        0.7,
    ),
    ("error function", special.erf, mpmath.erf, 0.7),
    ("Bessel function", special.j0, mpmath.j0, 0.7),
    ("vectors", lambda x: np.sum(np.sin(x * np.arange(3.0))), lambda x: mpmath.sin(x) + mpmath.sin(2 * x), 0.7),
]
OPERATORS: dict[str, Callable[[Function], Function]] = {
    "grad": ft.grad,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1],
}


@crossed(row=ROWS, operator=OPERATORS)
def test_ten_times_nested(row: tuple[str, Function, Function, float], operator: str) -> None:
    _, f, reference, x = row
    derivatives = [f]
    for _ in range(ORDER):
        derivatives.append(OPERATORS[operator](derivatives[-1]))
    with mpmath.workdps(60):
        wanted = mpmath.diff(reference, mpmath.mpf(x), ORDER)
    np.testing.assert_allclose(derivatives[-1](x), float(wanted), rtol=1e-9)

    sizes = [len(ft.trace(g)(x).eqns) for g in derivatives]
    # The program and its first derivative may be one equation each; what a few orders need is the unit.
    unit = max(sizes[:3])
    for order, size in enumerate(sizes[1:], 1):
        assert size <= unit * order**2, sizes


def test_compiled_functions_share_what_orders_have_in_common() -> None:
    def size(program: Any) -> int:
        return len(program.eqns) + sum(map(size, program.subprograms()))

    f = ft.jit(lambda x: np.sin(x) / (1 + x * x))
    derivatives = [f]
    for _ in range(7):
        derivatives.append(ft.grad(derivatives[-1]))
    with mpmath.workdps(60):
        wanted = mpmath.diff(lambda x: mpmath.sin(x) / (1 + x * x), mpmath.mpf("0.7"), 7)
    np.testing.assert_allclose(derivatives[7](0.7), float(wanted), rtol=1e-9)
    sizes = [size(ft.trace(g)(0.7)) for g in derivatives]
    assert all(n <= max(sizes[:3]) * order**2 for order, n in enumerate(sizes[1:], 1)), sizes


def test_a_gradient_that_is_taken_along_a_vector_nests_too() -> None:
    def along(f: Function) -> Function:
        return lambda x: ft.jvp(f, (x,), (np.array([1.0, -2.0, 0.5]),))[1]

    def f(x: Any) -> Any:
        return np.exp(np.sum(x**2) / 10) / (1 + x[0] * x[1] * x[2])

    def on_line(t: Any) -> Any:
        a, b, c = mpmath.mpf("0.3") + t, mpmath.mpf("0.1") - 2 * t, mpmath.mpf("-0.4") + t / 2
        return mpmath.exp((a * a + b * b + c * c) / 10) / (1 + a * b * c)

    g = f
    for _ in range(ORDER):
        g = along(g)
    x = np.array([0.3, 0.1, -0.4])
    with mpmath.workdps(60):
        wanted = mpmath.diff(on_line, 0, ORDER)
    np.testing.assert_allclose(g(x), float(wanted), rtol=1e-9)
    assert len(ft.trace(g)(x).eqns) < 100 * len(ft.trace(along(f))(x).eqns)


def test_equal_subexpressions_are_computed_once_before_they_are_differentiated() -> None:
    # By cofactors, a determinant of size 6 is made of 2,409 equations, and of as many minors as columns have subsets.
    size = 6

    def determinant(rows: list[list[Any]]) -> Any:
        if len(rows) == 1:
            return rows[0][0]
        minors = [determinant([row[:j] + row[j + 1 :] for row in rows[1:]]) for j in range(len(rows))]
        return sum((-1) ** j * rows[0][j] * minor for j, minor in enumerate(minors))

    a = np.random.default_rng(0).normal(size=(size, size))
    gradient = ft.grad(lambda a: determinant([[a[i, j] for j in range(size)] for i in range(size)]))
    np.testing.assert_allclose(gradient(a), np.linalg.det(a) * np.linalg.inv(a).T, rtol=1e-10, atol=1e-12)
    assert len(ft.trace(gradient)(a).eqns) < 1_500


def test_operands_of_sums_and_products_may_change_places() -> None:
    program = ft.trace(lambda x, y: (x * y + y * x, x + y, y + x, x - y, y - x))(1.0, 2.0)
    counts = [eqn.primitive.name for eqn in program.eqns]
    assert sorted(counts) == ["add", "add", "mul", "sub", "sub"]
