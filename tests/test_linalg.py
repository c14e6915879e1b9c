"""Linear algebra at its edges: singular matrices, few ranks, arguments, and what has no traced form."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import ftrans as ft
from ftrans.scipy import linalg

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((3, 3)) + 3 * np.eye(3), RNG.standard_normal((3, 2))


def number(x: Any) -> Any:
    """One number that depends on all elements."""
    return np.sum(np.sin(x))


# Derivatives at the edges


def test_pinv_of_few_ranks_follows_the_rank() -> None:
    u, v = RNG.standard_normal((4, 2)), RNG.standard_normal((2, 3))
    e = RNG.standard_normal((4, 2))

    def by_factors(u: Any) -> Any:
        return v.T @ np.linalg.inv(v @ v.T) @ np.linalg.inv(u.T @ u) @ u.T

    def by_pinv(u: Any) -> Any:
        return np.linalg.pinv(u @ v, 1e-10)

    pushed, expected = (ft.jvp(f, (u,), (e,))[1] for f in (by_pinv, by_factors))
    np.testing.assert_allclose(pushed, expected, atol=1e-11)
    curved, expected = (ft.jvp(lambda u, f=f: ft.jvp(f, (u,), (e,))[1], (u,), (e,))[1] for f in (by_pinv, by_factors))
    np.testing.assert_allclose(curved, expected, atol=1e-9)


def test_least_squares_of_few_ranks() -> None:
    a = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    b = np.array([1.0, 2.0, 3.0])
    x, residuals, rank, s = ft.vjp(lambda b: np.linalg.lstsq(a, b), b)[0]
    expected = np.linalg.lstsq(a, b)
    for found, y in zip((x, residuals, rank, s), expected, strict=True):
        np.testing.assert_allclose(found, y, atol=1e-14)
        assert np.shape(found) == np.shape(y)
    np.testing.assert_allclose(ft.jacobian(lambda b: np.linalg.lstsq(a, b)[0])(b), np.linalg.pinv(a), atol=1e-14)
    residuals = ft.vmap(lambda a: np.linalg.lstsq(a, b)[1])(np.stack([a, np.eye(3, 2)]))
    np.testing.assert_allclose(residuals, [[math.nan], [9.0]])


def test_determinants_near_singular_matrices() -> None:
    a = np.diag([1.0, 1e-200, 1e-100])
    np.testing.assert_allclose(ft.grad(lambda a: np.linalg.slogdet(a)[1])(a), np.diag([1.0, 1e200, 1e100]))
    singular = np.diag([2.0, 3.0, 0.0, 5.0])
    np.testing.assert_allclose(ft.grad(np.linalg.det)(singular), np.diag([0.0, 0.0, 30.0, 0.0]), atol=1e-14)


def test_square_of_a_norm_at_the_origin() -> None:
    def f(x: Any) -> Any:
        return np.linalg.norm(x) ** 2

    np.testing.assert_array_equal(ft.grad(f)(np.zeros(2)), np.zeros(2))
    np.testing.assert_array_equal(ft.hessian(f)(np.zeros(2)), 2 * np.eye(2))


@pytest.mark.parametrize("order", [1.5, 3, -1, -2.5])
def test_norms_with_zeros(order: float) -> None:
    x = np.array([3.0, 0.0, 4.0])
    gradient = ft.grad(lambda x: np.linalg.norm(x, order))(x)
    if order > 0:
        size = np.linalg.norm(x, order)
        np.testing.assert_allclose(gradient, x ** (order - 1) * size ** (1 - order))
    else:
        np.testing.assert_array_equal(gradient, np.zeros(3))


@pytest.mark.parametrize("f", [linalg.expm, linalg.logm, linalg.sqrtm, linalg.inv, linalg.det])
def test_third_derivatives(f: Any) -> None:
    a = A @ A.T / 9

    def along(a: Any, t: Any) -> Any:
        return number(f(a + t * B @ B.T / 9))

    third = ft.grad(ft.grad(ft.grad(along, 1), 1), 1)
    step = 1e-4
    second = ft.grad(ft.grad(along, 1), 1)
    expected = (second(a, step) - second(a, -step)) / (2 * step)
    assert third(a, 0.0) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_matrix_functions_at_equal_eigenvalues() -> None:
    e, f = RNG.standard_normal((2, 3, 3))
    # exp at I: e times that of exp at 0, of which the second derivative is (e f + f e) / 2.
    first = ft.jvp(linalg.expm, (np.eye(3),), (e,))[1]
    np.testing.assert_allclose(first, math.e * e, rtol=1e-13)
    second = ft.jvp(lambda a: ft.jvp(linalg.expm, (a,), (e,))[1], (np.eye(3),), (f,))[1]
    np.testing.assert_allclose(second, math.e * (e @ f + f @ e) / 2, rtol=1e-12)
    second = ft.jvp(lambda a: ft.jvp(linalg.logm, (a,), (e,))[1], (np.eye(3),), (f,))[1]
    np.testing.assert_allclose(second, -(e @ f + f @ e) / 2, rtol=1e-12)
    second = ft.jvp(lambda a: ft.jvp(linalg.sqrtm, (a,), (e,))[1], (np.eye(3),), (f,))[1]
    np.testing.assert_allclose(second, -(e @ f + f @ e) / 8, rtol=1e-12)


def test_exponentials_of_large_and_of_nilpotent_matrices() -> None:
    a = np.array([[0.0, 1.0], [0.0, 0.0]])
    e = np.array([[0.0, 0.0], [1e6, 0.0]])
    expected = scipy.linalg.expm_frechet(a, e)[1]
    for f in (linalg.expm, ft.jit(linalg.expm)):
        np.testing.assert_allclose(ft.jvp(f, (a,), (e,))[1], expected, rtol=1e-12)
    turning = 50 * np.array([[0.0, 1.0], [-1.0, 0.0]])
    for f in (linalg.expm, ft.jit(linalg.expm)):
        rotated = ft.jvp(lambda t, f=f: f(t * turning), (1.0,), (1.0,))[1]
        np.testing.assert_allclose(rotated, turning @ scipy.linalg.expm(turning), atol=1e-10)


def test_empty_and_singular_matrices() -> None:
    empty = np.zeros((2, 0, 0))
    for f in (np.linalg.eigvalsh, np.linalg.eigvals, np.linalg.svdvals):
        assert ft.jvp(f, (empty,), (empty,))[1].shape == f(empty).shape
    assert ft.jvp(lambda a: np.linalg.norm(a, 2, (1, 2)), (empty,), (empty,))[1].shape == (2,)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for p in (None, -2, 1, "fro"):
            stack = np.stack([np.ones((2, 2)), np.zeros((2, 2)), np.eye(2)])
            found = ft.vjp(lambda a, p=p: np.linalg.cond(a, p), stack)[0]
            np.testing.assert_array_equal(found[1:], np.linalg.cond(stack, p)[1:])
            assert np.isinf(found[0]) or p in (None, -2)


def test_polar_factors_of_few_ranks_are_orthonormal() -> None:
    a = np.array([[1.0, 0.0], [0.0, 0.0]])
    for f in (linalg.polar, lambda a: linalg.orthogonal_procrustes(a, np.eye(2))):
        (u,) = ft.trace(lambda a, f=f: f(a)[0])(a)(a)
        np.testing.assert_allclose(np.abs(u), np.eye(2), atol=1e-15)
    np.testing.assert_array_equal(ft.grad(lambda a: np.linalg.norm(a, "nuc"))(a), a)


def test_double_precision_where_scipy_computes_in_it() -> None:
    a = A.astype(np.float32) / 8
    for name in ("det", "logm", "fractional_matrix_power", "expm_frechet", "solve_discrete_lyapunov"):
        args = (a,) if name in ("det", "logm") else (a, 0.5) if name.startswith("f") else (a, a)
        f = functools.partial(lambda f, a, *rest: np.atleast_3d(f(a, *rest))[0].sum(), getattr(linalg, name))
        assert ft.trace(f)(*args).out_types[0].dtype == np.float64
        assert ft.grad(f)(*args).dtype == np.float32


def test_factors_of_stacks_between_functions() -> None:
    stack = np.stack([A @ A.T, np.eye(3)])
    factors = np.linalg.cholesky(stack), np.array([True, True])
    np.testing.assert_allclose(ft.jacobian(lambda t: linalg.cho_solve(factors, t * B))(1.0), np.linalg.solve(stack, B))
    found = ft.jacobian(lambda t: linalg.cho_solve(linalg.cho_factor(t * stack), B))(1.0)
    np.testing.assert_allclose(found, -np.linalg.solve(stack, B))


def test_axes_of_matmul() -> None:
    x, y = RNG.standard_normal((3, 2)), RNG.standard_normal((3, 4))
    for axes in ([(1, 0), (0, 1), (1, 0)], [(1, 0), (0, 1), (0, 1)]):
        f = functools.partial(np.matmul, axes=axes)
        np.testing.assert_allclose(ft.jvp(f, (x, y), (x, y))[1], 2 * f(x, y))
    np.testing.assert_allclose(ft.jacobian(lambda x: np.matmul(x, y, axes=[0, (0, 1), 0]))(x[:, 0]), y.T)


# Arguments


def test_lists_of_traced_values() -> None:
    def f(t: Any) -> Any:
        return linalg.expm([[0.0, t], [-t, 0.0]])[0, 0] + linalg.det([[t, 1.0], [2.0, t]])

    assert ft.grad(f)(0.5) == pytest.approx(-math.sin(0.5) + 1.0)


def test_arrays_go_to_scipy() -> None:
    for name in ("expm", "sqrtm", "schur", "null_space", "hessenberg"):
        for found, expected in zip(
            np.atleast_1d(getattr(linalg, name)(A)), np.atleast_1d(getattr(scipy.linalg, name)(A)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def test_factors_between_functions() -> None:
    b = A @ A.T

    def f(a: Any) -> Any:
        return linalg.lu_solve(linalg.lu_factor(a), B) + linalg.cho_solve(linalg.cho_factor(a), B)

    def g(a: Any) -> Any:
        return 2 * np.linalg.solve(a, B)

    e = A + A.T
    np.testing.assert_allclose(ft.jvp(f, (b,), (e,))[1], ft.jvp(g, (b,), (e,))[1], atol=1e-12)
    found, expected = (ft.jit(ft.grad(lambda a, h=h: number(h(a))))(b) for h in (f, g))
    np.testing.assert_allclose(found + found.T, expected + expected.T, atol=1e-12)


def test_single_precision_stays() -> None:
    a = A.astype(np.float32)
    for f in (np.linalg.pinv, np.linalg.svdvals, linalg.expm, linalg.sqrtm, lambda a: np.linalg.qr(a)[1]):
        assert ft.grad(lambda a, f=f: np.sum(f(a @ a.T)))(a).dtype == np.float32
    assert ft.jvp(np.linalg.eigvals, (a,), (a,))[1].dtype == np.complex64


def test_rank_is_a_constant() -> None:
    rank, change = ft.jvp(lambda a: np.linalg.matrix_rank(a), (A,), (A,))
    assert rank == 3
    assert change == 0
    assert ft.jit(lambda a: np.linalg.matrix_rank(np.outer(a[0], a[1])))(A) == 1


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda a: linalg.schur(a), NotImplementedError, "Schur form has no derivative"),
        (lambda a: linalg.null_space(a), NotImplementedError, "depends on values"),
        (lambda a: linalg.qr_multiply(a, a, pivoting=True), NotImplementedError, "another order"),
        (lambda a: linalg.qr(a, pivoting=True), NotImplementedError, "another order"),
        (lambda a: linalg.eigh(a, subset_by_value=(0, 1)), NotImplementedError, "subset_by_index"),
        (lambda a: np.linalg.qr(a, "raw"), NotImplementedError, "mode='reduced' or 'complete'"),
        (lambda a: np.linalg.qr(a, "some"), ValueError, "Unrecognized mode"),
        (lambda a: np.vecdot(a, a, axes=[0]), ValueError, "no list of 1 and 1 axes"),
        (lambda a: np.matmul(a, a, axes=[(0, 1), (0, 1)]), ValueError, "2 of the result"),
        (lambda a: np.linalg.eig(a[:2]), np.linalg.LinAlgError, "square matrices"),
        (lambda a: np.linalg.svd(a[0]), np.linalg.LinAlgError, "takes matrices"),
        (lambda a: np.linalg.pinv(a, 1e-3, rtol=1e-3), ValueError, "can't be both set"),
        (lambda a: np.linalg.lstsq(a, a[:2]), np.linalg.LinAlgError, "as many rows"),
        (lambda a: linalg.solve(a, B, assume_a="odd"), ValueError, "not a recognized matrix structure"),
        (lambda a: linalg.solve_triangular(a, B[:2]), ValueError, "do not fit the matrices"),
        (lambda a: linalg.sqrtm(-a), np.linalg.LinAlgError, "astype\\(complex\\)"),
        (lambda a: linalg.logm(0 * a), np.linalg.LinAlgError, "singular"),
        (lambda a: linalg.expm(a[:2]), np.linalg.LinAlgError, "square matrices"),
    ],
)
def test_mistakes(f: Any, error: type[Exception], words: str) -> None:
    a = A @ A.T
    with pytest.raises(error, match=words):
        ft.jvp(f, (a,), (a,))


def test_what_is_singular_is_no_number_in_xla() -> None:
    assert np.isnan(ft.jit(linalg.logm)(np.zeros((2, 2)))).all()
    assert np.isnan(ft.jit(linalg.sqrtm)(-np.eye(2))).all()


def test_every_function_of_scipy_is_there() -> None:
    # These hand out the compiled functions behind the others; kron is NumPy's, and leaves SciPy.
    behind = {"find_best_blas_type", "get_blas_funcs", "get_lapack_funcs", "kron"}
    names = {n for n in scipy.linalg.__all__ if callable(getattr(scipy.linalg, n))}
    assert not [n for n in sorted(names - behind) if not hasattr(linalg, n)]
