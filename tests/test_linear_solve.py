"""linear_solve: every method against elimination, un-jitted and compiled, and where there is no solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tables import crossed

import ftrans as ft
from ftrans.control.rules import backends
from ftrans.solvers import krylov

SIZE = 6
RNG = np.random.default_rng(0)
GENERAL = RNG.normal(size=(SIZE, SIZE)) / 4 + 2 * np.eye(SIZE)
DEFINITE = GENERAL @ GENERAL.T
WEIGHTS, RIGHT = RNG.normal(size=(2, SIZE))
METHODS = ("dense", "gmres", "bicgstab", "cg")

Function = Callable[..., Any]


def matrix(method: str) -> np.ndarray:
    """A matrix that a method is for."""
    return DEFINITE if method == "cg" else GENERAL


def by_elimination(method: str) -> Function:
    """A function of a number and a right-hand side, through numpy.linalg.solve."""
    return lambda a, b: np.sum(WEIGHTS * np.linalg.solve(a * matrix(method) + np.eye(SIZE), b) ** 2)


def by_products(method: str) -> Function:
    """The same through products with the matrix."""

    def f(a: Any, b: Any) -> Any:
        x = ft.linear_solve(lambda x: a * (matrix(method) @ x) + x, b, method=method, tol=1e-13)
        return np.sum(WEIGHTS * x**2)

    return f


def reverse_over_reverse(f: Function) -> Function:
    """The Hessian by the first argument as the gradient of the gradient."""
    return ft.grad(ft.grad(f))


TRANSFORMATIONS: dict[str, Function] = {
    "value": lambda f: f,
    "grad": lambda f: ft.grad(f, (0, 1)),
    "jvp": lambda f: lambda a, b: ft.jvp(f, (a, b), (1.0, WEIGHTS))[1],
    "jacfwd": lambda f: ft.jacfwd(f, 1),
    "hessian": lambda f: ft.hessian(f, 1),
    "reverse over reverse": reverse_over_reverse,
    "reverse over forward": lambda f: ft.grad(lambda a, b: ft.jvp(lambda c: f(c, b), (a,), (1.0,))[1], (0, 1)),
    "third": lambda f: ft.grad(ft.grad(ft.grad(f))),
    "vmap of grad": lambda f: lambda a, b: ft.vmap(ft.grad(f), (0, None))(a * np.array([1.0, 2.0]), b),
    "vmap over right-hand sides": lambda f: lambda a, b: ft.vmap(ft.grad(f, 1), (None, 0))(a, np.outer([1.0, 2.0], b)),
    "grad of vmap": lambda f: ft.grad(lambda a, b: np.sum(ft.vmap(f, (0, None))(a * np.array([1.0, 2.0]), b)), (0, 1)),
}


def assert_trees_close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Assert that numbers, arrays or tuples of them are close."""
    if isinstance(expected, tuple):
        for a, b in zip(found, expected, strict=True):
            assert_trees_close(a, b, tolerance)
    else:
        assert np.shape(found) == np.shape(expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@crossed(times=2, method=METHODS, transformation=TRANSFORMATIONS)
def test_derivatives_are_those_of_elimination(method: str, transformation: str) -> None:
    transform = TRANSFORMATIONS[transformation]
    found = transform(by_products(method))(1.3, RIGHT)
    assert_trees_close(found, transform(by_elimination(method))(1.3, RIGHT))


@pytest.mark.parametrize(
    ("method", "transformation"),
    [
        ("gmres", "vmap of grad"),
        ("gmres", "reverse over reverse"),
        ("cg", "reverse over forward"),
        ("bicgstab", "grad"),
    ],
)
def test_compiled_derivatives_are_those_of_elimination(method: str, transformation: str) -> None:
    transform = TRANSFORMATIONS[transformation]
    found = ft.jit(transform(by_products(method)))(1.3, RIGHT)
    assert_trees_close(found, transform(by_elimination(method))(1.3, RIGHT))


@pytest.mark.parametrize("name", krylov.METHODS)
def test_solvers_of_the_house_solve_each_lane_for_itself(name: str) -> None:
    matrices = np.stack([matrix(name), matrix(name) + np.eye(SIZE), matrix(name)])
    right = np.stack([RIGHT, 1e8 * WEIGHTS, 0 * RIGHT])

    def product(x: Any) -> Any:
        return (matrices @ x[..., None])[..., 0]

    target = 1e-12 * np.linalg.norm(right, axis=-1)
    x, iterations, left = krylov.METHODS[name](backends.NUMPY, product, lambda r: r, right, target, 100, 4)
    assert np.all(np.linalg.norm(product(x) - right, axis=-1) <= 2 * target)
    np.testing.assert_allclose(left, right - product(x), atol=1e-6)
    assert iterations[2] == 0
    alone = krylov.METHODS[name](backends.NUMPY, lambda x: matrices[1] @ x, lambda r: r, right[1], target[1], 100, 4)
    np.testing.assert_allclose(x[1], alone[0], rtol=1e-12)
    assert iterations[1] == alone[1]


def test_a_matrix_is_differentiated() -> None:
    def f(a: Any, method: str) -> Any:
        return np.sum(WEIGHTS * ft.linear_solve(a, RIGHT, method=method, tol=1e-13))

    expected = ft.grad(lambda a: np.sum(WEIGHTS * np.linalg.solve(a, RIGHT)))(DEFINITE)
    for method in METHODS:
        np.testing.assert_allclose(ft.grad(f)(DEFINITE, method), expected, rtol=1e-9, atol=1e-12)


def test_right_hand_sides_of_two_axes() -> None:
    b = np.stack([RIGHT, WEIGHTS], 1)
    for method in METHODS:
        np.testing.assert_allclose(ft.linear_solve(DEFINITE, b, method=method), np.linalg.solve(DEFINITE, b), rtol=1e-8)


def test_containers_keep_their_structure_and_dtypes() -> None:
    b = {"u": np.array([1.0, 2.0]), "v": (np.float32(3.0), 4)}

    def product(x: Any) -> Any:
        u, (v, w) = x["u"], x["v"]
        return {"u": 3 * u + v, "v": (2 * v + np.sum(u).astype(np.float32), 5.0 * w)}

    x, info = ft.linear_solve(product, b, info=True)
    assert info.converged
    assert isinstance(x["v"], tuple)
    assert x["v"][0].dtype == np.float32
    assert x["v"][1] == pytest.approx(0.8)
    found = product(x)
    np.testing.assert_allclose(found["u"], b["u"], rtol=1e-6)
    np.testing.assert_allclose(found["v"][0], 3.0, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_single_precision(method: str) -> None:
    a, b = matrix(method).astype(np.float32), RIGHT.astype(np.float32)
    g = ft.grad(lambda b: np.sum(ft.linear_solve(lambda x: a @ x, b, method=method)))(b)
    assert g.dtype == np.float32
    np.testing.assert_allclose(g, np.linalg.solve(a.T, np.ones(SIZE)), rtol=1e-3, atol=1e-4)


def test_complex_numbers() -> None:
    a = GENERAL + 1j * GENERAL[::-1] / 3
    hermitian = a @ a.conj().T
    b = RIGHT + 1j * WEIGHTS
    for matrix, method in ((a, "gmres"), (a, "bicgstab"), (hermitian, "cg")):

        def solved(b: Any, matrix: Any = matrix, method: str = method) -> Any:
            return ft.linear_solve(lambda y: matrix @ y, b, method=method, tol=1e-12)

        for transform in (lambda f: f, ft.jit)[: 1 + (method == "gmres")]:
            np.testing.assert_allclose(transform(solved)(b), np.linalg.solve(matrix, b), rtol=1e-8)
        found = ft.jvp(solved, (b,), (b[::-1],))[1]
        np.testing.assert_allclose(found, np.linalg.solve(matrix, b[::-1]), rtol=1e-7)
        pulled = ft.vjp(solved, b)[1](b)[0]
        np.testing.assert_allclose(pulled, np.linalg.solve(matrix.T, b), rtol=1e-7)


def test_preconditioner_and_start_change_the_work_only() -> None:
    scale = np.diag(np.linspace(1.0, 1e3, 40))
    a = scale + 0.1 * np.ones((40, 40))
    b = np.linspace(1.0, 2.0, 40)

    def f(b: Any, **more: Any) -> Any:
        return ft.linear_solve(lambda x: a @ x, b, positive_definite=True, info=True, **more)

    x, info = f(b)
    y, better = f(b, preconditioner=lambda r: r / np.diag(a))
    z, warm = f(b, x0=x + 1e-9, tol=1e-3)
    assert better.iterations < info.iterations
    assert warm.iterations < info.iterations
    np.testing.assert_allclose(y, x, rtol=1e-8)
    np.testing.assert_allclose(z, x, rtol=1e-8)
    expected = np.linalg.solve(a, np.ones(40))
    for more in ({"preconditioner": np.diag(1 / np.diag(a))}, {"x0": x}):
        g = ft.grad(lambda b, more=more: np.sum(f(b, **more)[0]))(b)
        np.testing.assert_allclose(g, expected, rtol=1e-8)
    assert ft.grad(lambda s: np.sum(f(b, x0=s * x)[0]))(1.0) == 0.0


def test_failure_is_an_error_without_jit_and_nan_with_it() -> None:
    def f(b: Any) -> Any:
        return ft.linear_solve(lambda x: GENERAL @ x, b, maxiter=2)

    with pytest.raises(ft.ConvergenceError, match=r"gmres did not converge in 2 iterations.*maxiter=") as caught:
        f(RIGHT)
    assert "test_linear_solve.py" in caught.value.__notes__[0]
    assert np.all(np.isnan(ft.jit(f)(RIGHT)))
    with pytest.raises(ft.ConvergenceError, match="2 of 2 problems"):
        ft.vmap(f)(np.stack([RIGHT, WEIGHTS]))
    x, info = ft.linear_solve(lambda x: GENERAL @ x, RIGHT, maxiter=2, info=True)
    assert not info.converged
    assert info.residual == pytest.approx(np.linalg.norm(RIGHT - GENERAL @ x))


def test_a_derivative_that_fails_is_not_silent() -> None:
    def f(a: Any, info: bool = True) -> Any:
        x, _ = ft.linear_solve(lambda x: a * (GENERAL @ x), RIGHT, maxiter=2, info=True)
        return np.sum(x)

    with pytest.raises(ft.ConvergenceError):
        ft.grad(f)(1.0)
    with pytest.raises(ft.ConvergenceError):
        ft.jvp(f, (1.0,), (1.0,))
    assert np.isnan(ft.jit(ft.grad(f))(1.0))


def test_only_the_lane_that_fails_is_nan() -> None:
    b = np.stack([RIGHT, GENERAL @ np.ones(SIZE)])
    start = np.stack([0 * RIGHT, np.ones(SIZE)])

    def f(b: Any, start: Any) -> Any:
        return ft.linear_solve(lambda x: GENERAL @ x, b, x0=start, maxiter=2, atol=1e-9)

    x = ft.jit(ft.vmap(f))(b, start)
    assert np.all(np.isnan(x[0]))
    np.testing.assert_allclose(x[1], 1.0)


def test_singular_matrices() -> None:
    singular = np.diag([1.0, 0.0])
    for method in ("gmres", "bicgstab"):
        with pytest.raises(ft.ConvergenceError, match="singular"):
            ft.linear_solve(lambda x: singular @ x, np.ones(2), method=method)
    with pytest.raises(np.linalg.LinAlgError):
        ft.linear_solve(lambda x: singular @ x, np.ones(2), method="dense")
    x = ft.jit(lambda b: ft.linear_solve(lambda x: singular @ x, b, method="dense"))(np.ones(2))
    assert not np.all(np.isfinite(x))


def test_bad_input() -> None:
    with pytest.raises(TypeError, match=r"must be linear, and lambda is not") as caught:
        ft.linear_solve(lambda x: x**2, RIGHT)
    assert "lambda x: x**2" in str(caught.value)
    with pytest.raises(TypeError, match="must be linear"):
        ft.linear_solve(lambda x: x + 1.0, RIGHT)
    with pytest.raises(TypeError, match="preconditioner of linear_solve must be linear"):
        ft.linear_solve(lambda x: x, RIGHT, preconditioner=lambda r: r * r)
    with pytest.raises(TypeError, match=r"b\['a'\] is f64\[6\], result\['a'\] is f64\[5\]"):
        ft.linear_solve(lambda x: {"a": x["a"][1:]}, {"a": RIGHT})
    with pytest.raises(TypeError, match="structure of b"):
        ft.linear_solve(lambda x: (x, x), RIGHT)
    with pytest.raises(ValueError, match="square matrix"):
        ft.linear_solve(GENERAL, RIGHT[1:])
    with pytest.raises(ValueError, match="no method 'lu'; there are dense, cg"):
        ft.linear_solve(GENERAL, RIGHT, method="lu")
    with pytest.raises(TypeError, match="x0 of linear_solve must be like b"):
        ft.linear_solve(lambda x: x, RIGHT, x0=RIGHT[1:])
    for limits in ({"maxiter": 0}, {"maxiter": -1}, {"tol": -1.0}, {"tol": np.nan}, {"restart": 0}):
        with pytest.raises(ValueError, match="must be at least"):
            ft.linear_solve(lambda x: x, RIGHT, **limits)
    with pytest.raises(TypeError, match="maxiter of linear_solve must be an integer"):
        ft.linear_solve(lambda x: x, RIGHT, maxiter=2.5)


@pytest.mark.parametrize("method", ["dense", "gmres"])
def test_what_is_linear_in_its_derivative_only(method: str) -> None:
    def f(c: Any) -> Any:
        return ft.linear_solve(lambda x: 2 * x + c, RIGHT, method=method)

    # The value of c is known late, or not at all.
    for transform in (lambda f: ft.jacfwd(f), lambda f: ft.jacrev(f), ft.jit):
        with pytest.raises(TypeError, match="must be linear"):
            transform(f)(1.0)
    with pytest.raises(TypeError, match="floor"):
        ft.linear_solve(lambda x: x + np.floor(x), np.array([5.0, 7.0]), method=method)
    with pytest.raises(ft.ConvergenceError):
        ft.linear_solve(lambda x: 2 * x + np.conj(x), RIGHT + 1j, method=method)


def test_zeros_that_are_padded_or_filled_in_are_linear() -> None:
    def padded(x: Any) -> Any:
        y = np.concatenate([np.zeros(1), x, np.zeros(1)])
        return 3 * x - y[2:] - y[:-2]

    def filled(x: Any) -> Any:
        y = ft.numpy.zeros(SIZE + 2)
        y[1:-1] = x
        return 3 * x - y[2:] - y[:-2]

    exact = np.linalg.solve(3 * np.eye(SIZE) - np.eye(SIZE, k=1) - np.eye(SIZE, k=-1), RIGHT)
    for product in (padded, filled):
        for transform in (lambda f: f, ft.jit):
            np.testing.assert_allclose(transform(lambda b, a=product: ft.linear_solve(a, b))(RIGHT), exact, rtol=1e-8)


def test_the_derivative_of_a_conjugate_is_no_matrix() -> None:
    def f(a: Any) -> Any:
        return np.sum(ft.linear_solve(lambda x: 2 * x + np.conj(x), a * (RIGHT + 1j), method="dense")).real

    with pytest.raises(ft.ConvergenceError, match="not linear"):
        ft.grad(f)(1.0)


@pytest.mark.parametrize("more", [{"method": "gmres", "symmetric": True}, {"method": "cg"}], ids=str)
def test_a_matrix_that_is_not_symmetric_is_noticed(more: dict[str, Any]) -> None:
    matrix = DEFINITE.copy()
    matrix[0, 1] += 1e-3

    def f(b: Any) -> Any:
        return ft.linear_solve(lambda x: matrix @ x, b, maxiter=1000, **more)

    with pytest.raises(ft.ConvergenceError, match="not symmetric"):
        f(RIGHT)
    with pytest.raises(ft.ConvergenceError, match="not symmetric"):
        ft.grad(lambda b: f(b)[0])(RIGHT)
    # What rounding does is not meant.
    matrix[0, 1] = DEFINITE[0, 1] * (1 + 1e-12)
    np.testing.assert_allclose(f(RIGHT), np.linalg.solve(DEFINITE, RIGHT), rtol=1e-8)


def test_elimination_of_matrices_that_are_nearly_singular_or_very_small() -> None:
    number = np.arange(12)
    hilbert = 1 / (number[:, None] + number + 1.0)
    for a, b in ((hilbert, np.ones(12)), (1e-200 * DEFINITE, RIGHT)):
        for form in (a, lambda x, a=a: a @ x):
            x, info = ft.linear_solve(form, b, method="dense", info=True)
            assert info.converged
            np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-12)
