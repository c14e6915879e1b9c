"""root, fixed_point and argmin: derivatives against closed forms, high-precision references and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import tables

import ftrans as ft
from ftrans.solvers.implicit import MOST_DENSE

Function = Callable[..., Any]

A = np.random.default_rng(0).normal(size=(3, 3)) / 3
PARAMETERS = np.array([0.2, 0.5, 0.7])


def difference(f: Function, x: float, step: float = 1e-3) -> Any:
    """The derivative by central differences of sixth order."""

    def central(h: float) -> Any:
        return (np.asarray(f(x + h)) - np.asarray(f(x - h))) / (2 * h)

    return (15 * central(step) - 6 * central(2 * step) + central(3 * step)) / 10


def cubic(a: Any) -> Any:
    """The x with x^3 + a x = 1."""
    return ft.root(lambda x: x**3 + a * x - 1.0, 1.0)


def cubic_exactly(order: int) -> float:
    """Its derivatives at 2, in high precision."""
    with mpmath.workdps(60):
        x = mpmath.taylor(lambda a: mpmath.findroot(lambda x: x**3 + a * x - 1, 0.45), 2, order)
        return float(x[order] * mpmath.factorial(order))


def system(x: Any, p: Any) -> Any:
    """Equations in a container."""
    u, v = x["u"], x["v"]
    return {"u": np.tanh(A @ u) * p + u - 1.0 + v**2, "v": v - 0.3 * np.sum(u) * p}


def solution(p: Any) -> Any:
    """A number that depends on their solution."""
    x = ft.root(system, {"u": np.zeros(3), "v": 0.0}, p)
    return np.sum(x["u"] ** 2) + x["v"]


# Roots


@pytest.mark.parametrize("order", range(5))
def test_derivatives_of_any_order(order: int) -> None:
    f = cubic
    for _ in range(order):
        f = ft.grad(f)
    assert f(2.0) == pytest.approx(cubic_exactly(order), rel=1e-11)
    forward = cubic
    for _ in range(order):
        forward = ft.jacfwd(forward)
    assert forward(2.0) == pytest.approx(cubic_exactly(order), rel=1e-11)
    if order == 3:
        assert ft.jit(f)(2.0) == pytest.approx(cubic_exactly(order), rel=1e-11)


def test_solutions_in_containers() -> None:
    x = ft.root(system, {"u": np.zeros(3), "v": 0.0}, 0.7)
    left = system(x, 0.7)
    np.testing.assert_allclose(left["u"], 0, atol=1e-12)
    np.testing.assert_allclose(left["v"], 0, atol=1e-12)
    compiled = ft.jit(lambda p: ft.root(system, {"u": np.zeros(3), "v": 0.0}, p))(0.7)
    np.testing.assert_allclose(compiled["u"], x["u"], rtol=1e-12)


def test_second_derivatives_in_every_order_of_modes() -> None:
    expected = difference(ft.grad(solution), 0.7)
    assert ft.grad(solution)(0.7) == pytest.approx(difference(solution, 0.7), rel=1e-9)
    for second in (
        ft.hessian(solution),
        ft.grad(ft.grad(solution)),
        ft.jacfwd(ft.grad(solution)),
        ft.grad(lambda p: ft.jvp(solution, (p,), (1.0,))[1]),
    ):
        assert second(0.7) == pytest.approx(expected, rel=1e-8)


def test_vmap_and_grad() -> None:
    slopes = np.array([ft.grad(solution)(p) for p in PARAMETERS])
    np.testing.assert_allclose(ft.vmap(solution)(PARAMETERS), [solution(p) for p in PARAMETERS], rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(ft.grad(solution))(PARAMETERS), slopes, rtol=1e-10)
    np.testing.assert_allclose(ft.grad(lambda q: np.sum(ft.vmap(solution)(q)))(PARAMETERS), slopes, rtol=1e-10)
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(solution)))(PARAMETERS), slopes, rtol=1e-10)
    curvature = ft.hessian(lambda q: np.sum(ft.vmap(solution)(q)))(PARAMETERS)
    np.testing.assert_allclose(curvature, np.diag(ft.vmap(ft.grad(ft.grad(solution)))(PARAMETERS)), atol=1e-10)
    nested = ft.vmap(ft.vmap(cubic))(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(nested**3 + np.array([[1.0, 2.0], [3.0, 4.0]]) * nested, 1.0, rtol=1e-12)


def test_roots_among_other_constructs() -> None:
    def in_scan(a: Any) -> Any:
        def step(x: Any, c: Any) -> Any:
            return ft.root(lambda y: y**3 + a * y - c - x, 1.0), None

        return ft.scan(step, a, PARAMETERS)[0]

    def in_cond(a: Any) -> Any:
        return ft.cond(a > 0, cubic, lambda a: a, a)

    def in_while(a: Any) -> Any:
        start = (0, a * 1.0)
        step = lambda s: (s[0] + 1, ft.root(lambda y: y**3 + a * y - s[1], 1.0))  # noqa: E731
        return ft.while_loop(lambda s: s[0] < 2, step, start)[1]

    def in_root(a: Any) -> Any:
        return ft.root(lambda y: y - 0.5 * ft.root(lambda x: x**3 + a * x - y, 1.0) - 1.0, 1.0)

    for f in (in_scan, in_cond, in_root, in_while):
        assert ft.grad(f)(2.0) == pytest.approx(difference(f, 2.0), rel=1e-9)
        assert ft.grad(ft.grad(f))(2.0) == pytest.approx(difference(ft.grad(f), 2.0), rel=1e-8)
    # Each step of a root of roots holds all of the inner root: XLA takes long.
    for f in (in_scan, in_cond, in_while, *([in_root] if tables.whole else [])):
        assert ft.jit(ft.grad(f))(2.0) == pytest.approx(ft.grad(f)(2.0), rel=1e-9)


def test_matrix_free() -> None:
    size = 24
    b = np.random.default_rng(0).normal(size=(size, size)) / 12
    weights = np.cos(np.arange(size))

    def f(a: Any, method: str) -> Any:
        x = ft.root(lambda x: x + a * np.tanh(b @ x) - 1.0, np.zeros(size), linear_solver=method)
        return np.sum(weights * x)

    slope = ft.grad(f)(0.5, "dense")
    assert MOST_DENSE < 130
    many = ft.root(lambda x: x + 0.5 * np.tanh(x[::-1]) - 1.0, np.zeros(130))
    np.testing.assert_allclose(many + 0.5 * np.tanh(many[::-1]), 1.0, rtol=1e-10)
    curvature = ft.grad(ft.grad(f))(0.5, "dense")
    assert slope == pytest.approx(difference(lambda a: f(a, "gmres"), 0.5), rel=1e-8)
    for method in ("gmres", "bicgstab"):
        assert ft.grad(f)(0.5, method) == pytest.approx(slope, rel=1e-8)
        assert ft.grad(ft.grad(f))(0.5, method) == pytest.approx(curvature, rel=1e-8)
    assert ft.jit(ft.grad(lambda a: f(a, "gmres")))(0.5) == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize("solver", ["newton", "hybr", "lm", "krylov"])
def test_solvers_by_name(solver: str) -> None:
    def f(p: Any) -> Any:
        return ft.root(lambda x: np.tanh(A @ x) * p + x - 1.0, np.zeros(3), solver=solver)[0]

    assert ft.grad(f)(0.7) == pytest.approx(difference(f, 0.7), rel=1e-9)


def test_solver_of_the_user() -> None:
    def relaxation(f: Function, x0: Any) -> Any:
        return ft.fori_loop(0, 40, lambda i, x: x - 0.3 * f(x), x0)

    def f(a: Any) -> Any:
        return ft.root(lambda x: x**3 + a * x - 1.0, 1.0, solver=relaxation)

    assert ft.grad(ft.grad(f))(2.0) == pytest.approx(cubic_exactly(2), rel=1e-11)
    assert ft.vmap(ft.grad(f))(np.array([2.0, 2.0]))[1] == pytest.approx(cubic_exactly(1), rel=1e-11)


def test_the_start_has_no_derivative() -> None:
    assert ft.grad(lambda x0: ft.root(lambda x: x**2 - 2.0, x0))(1.0) == 0.0


def test_hard_starts() -> None:
    # Full Newton steps diverge from here.
    for transform in (lambda f: f, ft.jit):
        found = transform(lambda a: ft.root(lambda x: np.arctan(x - a), 20.0, solver="newton"))(1.0)
        assert found == pytest.approx(1.0, abs=1e-12)
    # Numbers far from 1.
    assert ft.root(lambda x: 1e-12 * (x**2 - 2e20), 1e9) == pytest.approx(np.sqrt(2e20), rel=1e-12)
    assert ft.root(lambda x: x, 0.0) == 0.0


def test_single_precision() -> None:
    f = ft.grad(lambda a: ft.root(lambda x: x**3 + a * x - np.float32(1), np.float32(1)))
    for transform in (lambda f: f, ft.jit):
        found = transform(f)(np.float32(2))
        assert found.dtype == np.float32
        assert found == pytest.approx(cubic_exactly(1), rel=1e-5)


# Where there is no root, or no derivative


def test_no_root() -> None:
    def f(a: Any) -> Any:
        return ft.root(lambda x: x**2 + a, 1.0)

    with pytest.raises(ft.ConvergenceError, match="root did not find a solution") as caught:
        f(1.0)
    assert "test_implicit.py" in caught.value.__notes__[0]
    with pytest.raises(ft.ConvergenceError):
        ft.grad(f)(1.0)
    np.testing.assert_array_equal(np.isnan(ft.jit(ft.vmap(f))(np.array([1.0, -4.0]))), [True, False])
    x, info = ft.root(lambda x: x**2 + 1.0, 1.0, info=True)
    assert not info.converged
    assert info.residual == pytest.approx(x**2 + 1.0)
    value, slope = ft.jit(ft.value_and_grad(lambda a: ft.root(lambda x: x**2 + a, 1.0, info=True)[0]))(1.0)
    assert np.isfinite(value)
    assert np.isnan(slope)


MULTIPLE: dict[str, Function] = {
    "square": lambda a: ft.root(lambda x: x**2 - a, 1.0),
    "away from zero": lambda a: ft.root(lambda x: x**2 - 2 * x + 1 - a, 3.0),
    "newton": lambda a: ft.root(lambda x: x**2 - a, 1.0, solver="newton"),
    "of a system": lambda a: ft.root(lambda x: np.stack([x[0] - 1, (x[1] - x[0]) ** 2 - a]), np.array([2.0, 3.0]))[1],
    "matrix-free": lambda a: ft.root(lambda x: (x - 1.0) ** 2 - a, np.full(3, 3.0), linear_solver="gmres")[0],
}


@pytest.mark.parametrize("name", MULTIPLE)
def test_multiple_roots_have_no_derivative(name: str) -> None:
    f = MULTIPLE[name]
    with pytest.raises((ft.ConvergenceError, np.linalg.LinAlgError)):
        ft.grad(f)(0.0)


def test_multiple_roots_have_no_derivative_when_compiled() -> None:
    found = ft.jit(lambda a: [ft.grad(f)(a) for f in MULTIPLE.values()])(0.0)
    assert not np.isfinite(found).any()


def test_exactly_singular_jacobian() -> None:
    def f(a: Any) -> Any:
        return ft.root(lambda x: x**2 * a, 0.0)

    with pytest.raises((ft.ConvergenceError, np.linalg.LinAlgError)):
        ft.jvp(lambda c: ft.root(lambda x: x**2 - c, 0.0), (0.0,), (1.0,))
    assert not np.isfinite(ft.jit(ft.grad(lambda c: ft.root(lambda x: x**2 - c, 0.0)))(0.0))
    assert f(1.0) == 0.0


SMALL_OR_ILL_CONDITIONED: dict[str, Function] = {
    "numbers far below 1": lambda a: ft.root(lambda x: (x * 1e9) ** 3 - a, 1e-9) * 1e9,
    "of very different sizes": lambda a: (
        ft.root(lambda x: np.stack([x[0] - 1, (x[1] * 1e7) ** 3 - a * x[0]]), np.array([2.0, 1e-7]))[1] * 1e7
    ),
    "a steep function": lambda a: ft.root(
        lambda x: np.tanh(1e5 * (x - a ** (1 / 3))), 2 ** (1 / 3) + 1e-6, solver="newton"
    ),
    "close to another root": lambda a: ft.root(lambda x: (x - 1) ** 2 - 1e-10 * a ** (2 / 3), 2.0) * 1e5 - 1e5,
    "ill-conditioned": lambda a: ft.root(lambda x: HILBERT @ (x - a ** (1 / 3)), np.zeros(8))[0],
}
HILBERT = 1 / (np.arange(8)[:, None] + np.arange(8) + 1.0)


@pytest.mark.parametrize("name", SMALL_OR_ILL_CONDITIONED)
def test_simple_roots_have_derivatives_at_any_scale(name: str) -> None:
    # All of them are the cube root of a.
    f = SMALL_OR_ILL_CONDITIONED[name]
    assert ft.grad(f)(2.0) == pytest.approx(2 ** (1 / 3) / 6, rel=1e-5)


def test_double_roots_of_systems_are_told_from_all_directions() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        turned, mixed, exact = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=(3, 3)), rng.normal(size=3)

        def f(a: Any, turned: Any = turned, mixed: Any = mixed, exact: Any = exact) -> Any:
            def residual(x: Any) -> Any:
                u = turned @ (x - exact)
                return mixed @ np.stack([u[0], u[1], u[2] ** 2 * (1 + u[0]) - a])

            return ft.root(residual, exact + 0.1, solver="newton")

        with pytest.raises((ft.ConvergenceError, np.linalg.LinAlgError)):
            ft.jacfwd(f)(0.0)


def test_newton_steps_follow_where_a_solver_of_scipy_fails() -> None:
    assert ft.root(lambda x: np.log(x) - 0.3, 100.0) == pytest.approx(np.exp(0.3), rel=1e-12)


# Each tends to zero without reaching it, or comes close to zero beside what it is at the start.
NO_ROOT: dict[str, tuple[Function, float]] = {
    "1 / x": (lambda x: 1 / x, 1.0),
    "1 / x**2": (lambda x: 1 / x**2, 1.0),
    "exp(-x)": (lambda x: np.exp(-x), 1.0),
    "x exp(-x)": (lambda x: x * np.exp(-x), 2.0),
    "arctan(x) - pi / 2": (lambda x: np.arctan(x) - np.pi / 2, 1.0),
    "tanh(x) - 1": (lambda x: np.tanh(x) - 1.0, 0.5),
    "softplus": (lambda x: np.logaddexp(0.0, x), 0.5),
    "sqrt(x**2 + 1) - x": (lambda x: np.sqrt(x**2 + 1) - x, 0.5),
    "x**2 + 1 from afar": (lambda x: x**2 + 1.0, 1e8),
    "x**2 + 1.3 from afar": (lambda x: x**2 + 1.3, 1e8),
    "x**2 + 1 from farther": (lambda x: x**2 + 1.0, 1e10),
    "tiny numbers": (lambda x: 1e-20 * (x**2 + 1.0), 0.5),
    "a jump": (lambda x: np.sign(x - 1.0) + 0.1 * x, 3.0),
    "one unknown of two": (lambda x: np.stack([x[0] - 1.0, np.exp(-x[1])]), np.ones(2)),
    "one unknown of two, rounded": (lambda x: np.stack([x[0] - 1.0, np.tanh(x[1]) - 1.0]), np.full(2, 0.5)),
    "matrix-free": (lambda x: np.exp(-x), np.zeros(MOST_DENSE + 1)),
}


@pytest.mark.parametrize("name", NO_ROOT)
@pytest.mark.parametrize("solver", [None, "newton"])
def test_a_small_residual_is_no_root(name: str, solver: str | None) -> None:
    f, x0 = NO_ROOT[name]
    with pytest.raises(ft.ConvergenceError, match="Newton steps do not lead to a root"):
        ft.root(f, x0, solver=solver)


@pytest.mark.parametrize("x0", [np.float64(1), np.float32(1)], ids=["f64", "f32"])
def test_a_small_residual_is_no_root_when_compiled(x0: Any) -> None:
    functions = [f for f, start in NO_ROOT.values() if np.ndim(start) == 0]
    if not tables.whole:
        functions = functions[:: 3 if x0.dtype == np.float32 else 2]
    found = ft.jit(lambda x0: [ft.root(f, x0) for f in functions])(x0)
    np.testing.assert_array_equal(np.isnan(found), True)


def test_no_minimum_or_fixed_point_at_infinity() -> None:
    def found(x0: Any) -> Any:
        return [
            ft.argmin(lambda x: np.exp(-x), x0),
            ft.argmin(lambda x: 1 / x, x0),
            ft.argmin(lambda x: np.logaddexp(0.0, x), x0),
            ft.fixed_point(lambda x: x + 1 / x, x0),
            ft.fixed_point(lambda x: x + np.exp(-x), x0, acceleration=2),
        ]

    assert np.isnan(ft.jit(found)(1.0)).all()
    for search in (lambda: ft.argmin(lambda x: np.exp(-x), 1.0), lambda: ft.fixed_point(lambda x: x + np.exp(-x), 1.0)):
        with pytest.raises(ft.ConvergenceError):
            search()


def test_one_lane_without_a_root() -> None:
    def f(a: Any, exists: Any) -> Any:
        return ft.root(lambda x: np.where(exists > 0, x**3 - a, np.exp(-x)), 1.0, info=True)[0]

    a, exists = np.full(2, 2.0), np.array([1.0, -1.0])
    slope = 2 ** (1 / 3) / 6
    for g in (ft.vmap(ft.grad(f)), ft.grad(lambda a, exists: np.sum(ft.vmap(f)(a, exists)))):
        np.testing.assert_allclose(ft.jit(g)(a, exists), [slope, np.nan], rtol=1e-9)
        with pytest.raises(ft.ConvergenceError, match="1 of 2 problems"):
            g(a, exists)


# Roots that are hard to tell from none: multiple, exact, not isolated, from a start that is as good as the root.
ROOTS: dict[str, tuple[Function, Any, float]] = {
    "triple": (lambda x: x**3, 3.0, 1e-8),
    "seven times": (lambda x: x**7, 3.0, 1e-5),
    "triple, with rounding": (lambda x: x**3 - 3 * x**2 + 3 * x - 1, 3.0, 1e-4),
    "four times, with rounding": (lambda x: x**4 - 4 * x**3 + 6 * x**2 - 4 * x + 1, 3.0, 1e-2),
    "exactly": (lambda x: x**3 - 8, 1.0, 1e-12),
    "kink": (lambda x: np.abs(x - 1), 3.0, 1e-12),
    "double, from a start beside it": (lambda x: (x - 1) ** 2, 1 + 1e-9, 1e-8),
    "a line of them": (lambda x: np.stack([x[0] + x[1] - 1, 2 * (x[0] + x[1]) - 2]), np.array([0.3, 0.1]), 1e-12),
    "a surface of them": (lambda x: np.sin(np.cos(x[0] + 2 * x[1]) - 0.5) * np.array([1.0, 2.0]), np.ones(2), 1e-12),
    "the end of a flat piece": (lambda x: np.maximum(1 - x, 0.0), 0.0, 1e-12),
}


def of_scales(a: Any, s: float, **more: Any) -> Any:
    """The square root of a, beside an unknown of another scale."""
    return ft.root(lambda x: np.stack([x[0] ** 2 - a, x[1] / s - 1]), np.array([3.0, s]), **more)[0]


# Each is the square root of a: unknowns or equations of different scales, and starts that are far away.
SCALES: dict[str, Function] = {
    "1e9": lambda a: of_scales(a, 1e9),
    "1e12": lambda a: of_scales(a, 1e12),
    "1e12, newton": lambda a: of_scales(a, 1e12, solver="newton"),
    "of equations": lambda a: ft.root(
        lambda x: np.stack([x[0] ** 2 - a, x[1] * 1.1 - x[0] - 1e12]), np.array([3.0, 1e12])
    )[0],
    "of a minimum": lambda a: ft.argmin(lambda x: (x[0] ** 2 - a) ** 2 + (x[1] / 1e9 - 1) ** 2, np.array([3.0, 2e9]))[
        0
    ],
    "of a fixed point": lambda a: ft.fixed_point(
        lambda x: np.stack([(x[0] + a / x[0]) / 2, x[1] * 0.5 + 5e11]), np.array([3.0, 1e12])
    )[0],
    "an iteration that diverges": lambda a: ft.fixed_point(lambda x: 1.3 * x + np.sqrt(a), 1.0) * -0.3,
    "an iteration that overflows": lambda a: ft.fixed_point(lambda x: -1.5 * x + np.sqrt(a), 1.0) * 2.5,
    "from 1e8": lambda a: ft.root(lambda x: x**2 - a, 1e8, solver="newton"),
    "from 1e20": lambda a: ft.root(lambda x: x**2 - a, 1e20, solver="newton"),
    "of a minimum, from 1e8": lambda a: ft.argmin(lambda x: (x**2 - a) ** 2, 1e8),
}


SCALES_COMPILED = list(SCALES) if tables.whole else ["1e9", "of equations", "from 1e20", "an iteration that overflows"]


@pytest.mark.parametrize("name", SCALES)
def test_scales_and_far_starts_take_no_digits(name: str) -> None:
    f = SCALES[name]
    assert f(2.0) == pytest.approx(2**0.5, rel=1e-10)
    if "from" not in name:
        assert ft.grad(f)(2.0) == pytest.approx(2**-1.5, rel=1e-8)


def test_scales_and_far_starts_take_no_digits_when_compiled() -> None:
    found = ft.jit(lambda a: {name: SCALES[name](a) for name in SCALES_COMPILED})(2.0)
    assert found == pytest.approx(dict.fromkeys(SCALES_COMPILED, 2**0.5), rel=1e-10)


ROOTS_COMPILED = list(ROOTS)[:: 1 if tables.whole else 3]


@pytest.mark.parametrize("name", ROOTS)
def test_roots_that_are_not_simple_are_found(name: str) -> None:
    f, x0, accuracy = ROOTS[name]
    np.testing.assert_allclose(f(ft.root(f, x0)), 0, atol=accuracy)


def test_roots_that_are_not_simple_are_found_when_compiled() -> None:
    starts = [ROOTS[name][1] for name in ROOTS_COMPILED]
    roots = ft.jit(lambda xs: [ft.root(ROOTS[n][0], x) for n, x in zip(ROOTS_COMPILED, xs, strict=True)])(starts)
    for name, x in zip(ROOTS_COMPILED, roots, strict=True):
        f, _, accuracy = ROOTS[name]
        np.testing.assert_allclose(f(x), 0, atol=accuracy, err_msg=name)


KINKS: dict[str, Function] = {
    "abs": lambda x, a: np.abs(x - a),
    "sum of abs": lambda x, a: np.sum(np.abs(x - a * np.ones(3))),
    "maximum": lambda x, a: np.maximum(x - a, a - x),
    "abs and a square": lambda x, a: np.abs(x - a) + (x - 1.0) ** 2,
    "abs and a square, elsewhere": lambda x, a: np.abs(x - a) + 0.1 * x**2,
    "hinge": lambda x, a: np.maximum(x - a, 0.0),
    "piecewise": lambda x, a: np.where(x > a, 2 * (x - a), a - x) + 0.0 * x**2,
    "clip": lambda x, a: np.clip(np.abs(x - a), 0.0, 9.0),
    "many unknowns": lambda x, a: np.sum(np.abs(x - a) + (x - 1.0) ** 2),
}


@pytest.mark.parametrize("name", KINKS)
def test_a_minimum_at_a_kink_has_no_derivative(name: str) -> None:
    x0 = np.zeros({"sum of abs": 3, "many unknowns": MOST_DENSE + 1}.get(name, ()))

    def f(a: Any) -> Any:
        return np.sum(ft.argmin(KINKS[name], x0, a))

    for derivative in (ft.grad(f), ft.jacfwd(f)):
        with pytest.raises((ft.ConvergenceError, np.linalg.LinAlgError)):
            derivative(1.0)


def test_a_minimum_at_a_kink_has_no_derivative_when_compiled() -> None:
    kinks = [f for name, f in KINKS.items() if name not in ("sum of abs", "many unknowns")]
    minima = [lambda a, f=f: ft.argmin(f, 0.0, a) for f in kinks]
    pairs = [(f, mode) for f in minima for mode in (ft.grad, ft.jacfwd)]
    found = ft.jit(lambda a: [mode(f)(a) for f, mode in (pairs if tables.whole else pairs[::3])])(1.0)
    assert np.isnan(found).all()


def test_kinks_beside_a_minimum_do_no_harm() -> None:
    f = ft.grad(lambda a: ft.argmin(lambda x: (x - a) ** 2 + np.abs(x - 3.0) + np.maximum(x, 0.0), 0.5))
    assert f(1.0) == pytest.approx(1.0)


def test_infinity_is_no_root() -> None:
    with pytest.raises(ft.ConvergenceError):
        ft.root(lambda x: x**3 - 8, np.inf)


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="structure of x0"):
        ft.root(lambda x: (x, x), 1.0)
    with pytest.raises(TypeError, match=r"x0\['a'\] is f64\[2\], result\['a'\] is f64\[1\]"):
        ft.root(lambda x: {"a": x["a"][:1]}, {"a": np.ones(2)})
    with pytest.raises(TypeError, match="does not depend on x"):
        ft.root(lambda x: 3.0, 1.0)
    with pytest.raises(TypeError, match=r"ftrans\.cond"):
        ft.root(lambda x: x if x > 0 else -x, 1.0)
    with pytest.raises(TypeError, match="real numbers"):
        ft.root(np.sin, 1j)
    with pytest.raises(ValueError, match="no solver 'foo'"):
        ft.root(np.sin, 1.0, solver="foo")
    with pytest.raises(ValueError, match="no linear_solver 'foo'"):
        ft.root(np.sin, 1.0, linear_solver="foo")
    for limits in ({"maxiter": 0}, {"tol": -1.0}, {"atol": np.nan}):
        with pytest.raises(ValueError, match="must be at least"):
            ft.root(np.sin, 1.0, **limits)
    with pytest.raises(ValueError, match="acceleration of fixed_point must be at least 0"):
        ft.fixed_point(np.sin, 1.0, acceleration=-1)
    with pytest.raises(TypeError, match="x0 is the str 'a'"):
        ft.root(np.sin, "a")
    with pytest.raises(ValueError, match="holds no numbers"):
        ft.root(np.sin, np.zeros(0))
    with pytest.raises(TypeError, match="structure of x0"):
        ft.root(np.sin, 1.0, solver=lambda f, x0: (x0, x0))
    kept: list[Any] = []
    ft.root(lambda x: kept.append(x) or np.sin(x), 3.0)
    with pytest.raises(RuntimeError, match="was used after the function"):
        np.sin(kept[0])


# Fixed points


def cosine(a: Any, **more: Any) -> Any:
    """The x with x = cos(a x)."""
    return ft.fixed_point(lambda x: np.cos(a * x), 0.5, **more)


@pytest.mark.parametrize("options", [{}, {"damping": 0.5}, {"acceleration": 2}], ids=str)
def test_fixed_points(options: dict[str, Any]) -> None:
    with mpmath.workdps(40):
        exact = mpmath.taylor(lambda a: mpmath.findroot(lambda x: x - mpmath.cos(a * x), 0.7), 1, 2)
    f = lambda a: cosine(a, **options)  # noqa: E731
    assert f(1.0) == pytest.approx(float(exact[0]), rel=1e-12)
    assert ft.grad(f)(1.0) == pytest.approx(float(exact[1]), rel=1e-11)
    assert ft.grad(ft.grad(f))(1.0) == pytest.approx(2 * float(exact[2]), rel=1e-11)
    assert ft.jit(ft.grad(f))(1.0) == pytest.approx(float(exact[1]), rel=1e-11)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.ones(2)), float(exact[1]), rtol=1e-11)


def test_acceleration_takes_fewer_steps() -> None:
    weights = np.diag([0.9, 0.8, 0.5])

    def steps(**more: Any) -> int:
        return int(ft.fixed_point(lambda x: weights @ np.tanh(x) + 1.0, np.zeros(3), info=True, **more)[1].iterations)

    assert steps(acceleration=2) < steps()


def test_no_fixed_point() -> None:
    with pytest.raises(ft.ConvergenceError, match=r"fixed_point did not find.*x - f\(x\)"):
        ft.fixed_point(lambda x: x + np.exp(-x) + 1.0, 0.0)
    with pytest.raises(TypeError, match="structure of x0"):
        ft.fixed_point(lambda x: (x, x), 1.0)


# Minima


def test_a_minimum_without_constraints() -> None:
    def f(a: Any) -> Any:
        return ft.argmin(lambda x: (x - a) ** 2 + np.exp(x), 0.0)

    # The solution of 2 (x - a) + exp(x) = 0, differentiated by hand.
    x = f(1.0)
    slope = 2 / (2 + np.exp(x))
    assert 2 * (x - 1.0) + np.exp(x) == pytest.approx(0, abs=1e-12)
    assert ft.grad(f)(1.0) == pytest.approx(slope, rel=1e-12)
    assert ft.grad(ft.grad(f))(1.0) == pytest.approx(-np.exp(x) * slope**3 / 2, rel=1e-11)
    assert ft.jit(ft.grad(ft.grad(f)))(1.0) == pytest.approx(-np.exp(x) * slope**3 / 2, rel=1e-11)


def rosenbrock(x: Any, a: Any) -> Any:
    """A narrow bent valley."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)


@pytest.mark.parametrize("method", [None, "trust-ncg", "trust-exact", "L-BFGS-B"])
def test_minimizers(method: str | None) -> None:
    def f(a: Any) -> Any:
        return np.sum(ft.argmin(rosenbrock, np.zeros(3), a, method=method))

    assert f(1.0) == pytest.approx(3.0, rel=1e-9)
    assert ft.grad(f)(1.0) == pytest.approx(difference(f, 1.0), rel=1e-8)


def test_minima_compiled_and_batched() -> None:
    def f(a: Any) -> Any:
        return np.sum(ft.argmin(rosenbrock, np.zeros(3), a))

    slopes = [ft.grad(f)(a) for a in (1.0, 1.1)]
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.array([1.0, 1.1])), slopes, rtol=1e-9)
    assert ft.jit(ft.grad(f))(1.0) == pytest.approx(slopes[0], rel=1e-9)


def constrained(p: Any) -> Any:
    """A quadratic function under two linear equations."""

    def equations(x: Any) -> Any:
        return x["u"][0] + x["u"][1] * p + x["v"] - 1.0, x["u"][0] - p * x["v"]

    def objective(x: Any) -> Any:
        return np.sum(x["u"] ** 2) * p + x["v"] ** 2

    return ft.argmin(objective, {"u": np.ones(2), "v": 0.0}, constraints=equations, info=True)


def test_a_minimum_with_constraints() -> None:
    p = 2.0
    x, info = constrained(p)
    # Stationary points of a quadratic function under linear equations solve one linear system.
    jacobian = np.array([[1.0, p, 1.0], [1.0, 0.0, -p]])
    matrix = np.block([[np.diag([2 * p, 2 * p, 2.0]), jacobian.T], [jacobian, np.zeros((2, 2))]])
    exact = np.linalg.solve(matrix, [0, 0, 0, 1, 0])
    found = [*x["u"], x["v"], *info.multipliers]
    np.testing.assert_allclose(found, exact, rtol=1e-10)
    assert info.value == pytest.approx(p * exact[:2] @ exact[:2] + exact[2] ** 2)
    compiled, info = ft.jit(constrained)(p)
    np.testing.assert_allclose([*compiled["u"], compiled["v"], *info.multipliers], exact, rtol=1e-10)

    def f(p: Any) -> Any:
        x, info = constrained(p)
        return np.sum(x["u"] ** 3) + info.multipliers[1]

    assert ft.grad(f)(p) == pytest.approx(difference(f, p), rel=1e-9)
    assert ft.grad(ft.grad(f))(p) == pytest.approx(difference(ft.grad(f), p), rel=1e-8)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.array([2.0, 1.0])), [ft.grad(f)(2.0), ft.grad(f)(1.0)], rtol=1e-9)


def test_nonlinear_constraint() -> None:
    # The point of a circle that is farthest in a direction.
    def f(angle: Any, radius: Any) -> Any:
        direction = np.stack([np.cos(angle), np.sin(angle)])
        return ft.argmin(lambda x: x @ direction, np.array([-1.0, -0.5]), constraints=lambda x: x @ x - radius**2)

    np.testing.assert_allclose(f(0.3, 2.0), -2.0 * np.array([np.cos(0.3), np.sin(0.3)]), rtol=1e-10)
    turned = np.array([np.sin(0.3), -np.cos(0.3)])
    np.testing.assert_allclose(ft.jacobian(f)(0.3, 2.0), 2.0 * turned, rtol=1e-9)
    np.testing.assert_allclose(ft.jit(ft.jacobian(f))(0.3, 2.0), 2.0 * turned, rtol=1e-9)


def test_bilevel() -> None:
    target, data = 0.8, np.array([1.0, 2.0])

    def inner(weight: Any) -> Any:
        return ft.argmin(lambda x: np.sum((x - data) ** 4) + weight * np.sum(x**2), data * 0.5)

    def outer(target: Any) -> Any:
        return ft.argmin(lambda weight: np.sum((inner(weight) - target) ** 2), 0.5)

    assert ft.grad(outer)(target) == pytest.approx(difference(outer, target), rel=1e-8)


def test_minima_of_many_unknowns() -> None:
    size = 101
    q = np.random.default_rng(0).normal(size=(size, size)) / size**0.5
    q = q @ q.T + np.eye(size)

    def f(a: Any) -> Any:
        return ft.argmin(lambda x: 0.5 * x @ q @ x + a * np.sum(np.cos(x) - x), np.zeros(size))

    # The gradient is q x - a (sin x + 1).
    x = f(0.5)
    slope = np.linalg.solve(q - 0.5 * np.diag(np.cos(x)), np.sin(x) + 1)
    np.testing.assert_allclose(ft.jacfwd(f)(0.5), slope, rtol=1e-8)
    assert ft.grad(lambda a: np.sum(f(a)))(0.5) == pytest.approx(np.sum(slope), rel=1e-8)
    assert ft.jit(ft.grad(lambda a: np.sum(f(a))))(0.5) == pytest.approx(np.sum(slope), rel=1e-8)


@pytest.mark.parametrize("f", [lambda x: -(x**2), lambda x: x], ids=["maximum", "line"])
def test_no_minimum(f: Function) -> None:
    with pytest.raises(ft.ConvergenceError, match="no minimum there"):
        ft.argmin(f, 1.0)
    assert np.isnan(ft.jit(lambda x0: ft.argmin(f, x0))(1.0))


def test_no_minimum_among_many_unknowns() -> None:
    size = MOST_DENSE + 1
    for signs in (-np.ones(size), np.where(np.arange(size) == 3, -1.0, 1.0)):

        def f(a: Any, signs: Any = signs) -> Any:
            return np.sum(ft.argmin(lambda x: np.sum(signs * (x - a) ** 2), np.zeros(size)))

        for transform in (lambda f: f, ft.grad):
            with pytest.raises(ft.ConvergenceError):
                transform(f)(0.0)


def test_redundant_constraints_hide_no_maximum() -> None:
    def f(sign: float) -> Any:
        objective = lambda x: sign * x[0] ** 2 + x[1]  # noqa: E731
        return ft.argmin(objective, np.array([0.0, 1.0]), constraints=lambda x: (x[1], 2 * x[1]))

    np.testing.assert_allclose(f(1.0), 0.0, atol=1e-12)
    with pytest.raises(ft.ConvergenceError):
        f(-1e-6)


def test_constrained_minima_in_single_precision() -> None:
    def f(a: Any) -> Any:
        equation = lambda x: x[0] - x[1] - 1  # noqa: E731
        return ft.argmin(lambda x: np.sum((x - a) ** 2), np.zeros(2, np.float32), constraints=equation)

    x = f(np.float32(1))
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, [1.5, 0.5], rtol=1e-5)
    np.testing.assert_allclose(ft.jacfwd(f)(np.float32(1)), 1.0, rtol=1e-5)


def test_a_saddle_has_no_derivative() -> None:
    with pytest.raises(ft.ConvergenceError):
        ft.grad(lambda a: ft.argmin(lambda x: x**3 + a * x, 1.0))(0.0)


def test_bad_minimisations() -> None:
    with pytest.raises(TypeError, match=r"a real scalar, but lambda returned f64\[2\]"):
        ft.argmin(lambda x: x, np.ones(2))
    with pytest.raises(ValueError, match="more constraints than unknowns: 3"):
        ft.argmin(lambda x: x @ x, np.ones(2), constraints=lambda x: np.stack([x[0], x[1], x[0]]))
    with pytest.raises(ValueError, match="no method 'foo'"):
        ft.argmin(lambda x: x**2, 1.0, method="foo")
    with pytest.raises(TypeError, match="constraints of argmin must be arrays"):
        ft.argmin(lambda x: x**2, 1.0, constraints=lambda x: "a")
    with pytest.raises(ft.ConvergenceError):
        ft.argmin(lambda x: x**2, 1.0, constraints=lambda x: x**2 + 1)


def test_a_branch_in_a_function_given_to_root_says_what_takes_it() -> None:
    def f(x: Any) -> Any:
        return x - 2.0 if x > 0 else x

    with pytest.raises(TypeError, match=r"evaluated at many points.*ftrans\.scipy\.optimize\.root and brentq"):
        ft.root(f, 1.0)
