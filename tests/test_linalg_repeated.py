"""Derivatives through eigenvalues and singular values that are equal, nearly equal, or 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tables import crossed

import ftrans as ft
from ftrans.control.rules.host_call import watch

RNG = np.random.default_rng(0)


def symmetric(dtype: Any = float) -> Any:
    """A Hermitian direction."""
    x = RNG.standard_normal((3, 3)).astype(dtype)
    if dtype is complex:
        x = x + 1j * RNG.standard_normal((3, 3))
    return (x + np.conj(x.T)) / 2


def turned(values: Any, dtype: Any = float) -> Any:
    """A matrix with these eigenvalues, whose eigenvectors are no axes: rounding leaves them nearly equal."""
    basis = np.linalg.qr(symmetric(dtype) + 1j * symmetric() if dtype is complex else RNG.standard_normal((3, 3)))[0]
    return (basis * np.array(values)) @ np.conj(basis.T)


MATRICES = {
    "identity": np.eye(3),
    "two equal": np.diag([2.0, 5.0, 2.0]),
    "two nearly equal": turned([2.0, 2.0, 5.0]),
    "three nearly equal": turned([3.0, 3.0, 3.0]),
    "apart": turned([1.0, 2.0, 5.0]),
    "complex": turned([2.0, 2.0, 5.0], complex),
}


def derivative_of(f: Callable[[Any], Any], slope: Callable[[Any], Any], a: Any, e: Any) -> Any:
    """That of the matrix function `f` at `a` along `e` (Daleckii and Krein 1965), by divided differences."""
    w, v = np.linalg.eigh(a)
    gap = w[:, None] - w
    is_equal = np.abs(gap) < 1e-8
    quotient = (f(w)[:, None] - f(w)) / np.where(is_equal, 1, gap)
    weights = np.where(is_equal, slope((w[:, None] + w) / 2), quotient)
    return v @ (weights * (np.conj(v.T) @ e @ v)) @ np.conj(v.T)


def by_scaled_columns(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`f` of a matrix, as many people write it."""

    def call(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return (v * f(w)) @ np.conj(v.T)

    return call


def by_diagonal_matrix(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same, as others do."""

    def call(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return v @ np.diag(f(w)) @ np.conj(v.T)

    return call


def by_rayleigh_quotients(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same from the vectors alone."""

    def call(a: Any) -> Any:
        v = np.linalg.eigh(a)[1]
        values = np.sum(np.conj(v) * (a @ v), 0).real
        return (v * f(values)) @ np.conj(v.T)

    return call


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (np.exp, np.exp),
    "log": (np.log, lambda x: 1 / x),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
}


@pytest.mark.parametrize("form", [by_scaled_columns, by_diagonal_matrix, by_rayleigh_quotients])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_matrix_functions(matrix: str, function: str, form: Any) -> None:
    a, (f, slope) = MATRICES[matrix], FUNCTIONS[function]
    e, weights = symmetric(a.dtype.type(0).item().__class__), symmetric()
    expected = derivative_of(f, slope, a, e)
    np.testing.assert_allclose(ft.jvp(form(f), (a,), (e,))[1], expected, atol=1e-12 * np.abs(expected).max())
    gradient = ft.grad(lambda a: np.sum(form(f)(a) * weights).real)
    along = np.sum(gradient(a) * e).real
    assert along == pytest.approx(np.sum(expected * weights).real, rel=1e-11, abs=1e-12)


def test_matrix_functions_compiled_and_mapped() -> None:
    weights, batch = symmetric(), np.stack([MATRICES["identity"], MATRICES["apart"], MATRICES["two nearly equal"]])
    gradient = ft.grad(lambda a: np.sum(by_scaled_columns(np.exp)(a) * weights))
    expected = np.stack([derivative_of(np.exp, np.exp, a, weights) for a in batch])
    np.testing.assert_allclose(ft.vmap(gradient)(batch), expected, rtol=1e-11)
    np.testing.assert_allclose(ft.jit(ft.vmap(gradient))(batch), expected, rtol=1e-11)
    narrow = gradient(batch[2].astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected[2], rtol=1e-3)


def test_products_with_vectors_and_hyperparameters() -> None:
    a, y = MATRICES["two nearly equal"], np.array([1.0, 2.0, 3.0])

    def by_eigenvectors(a: Any, shift: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return y @ (v @ ((v.T @ y) / (w + shift))) + np.sum(np.log(w + shift))

    def by_solving(a: Any, shift: Any) -> Any:
        whole = (a + a.T) / 2 + shift * np.eye(3)
        return y @ np.linalg.solve(whole, y) + np.linalg.slogdet(whole)[1]

    for found, expected in zip(
        ft.grad(by_eigenvectors, argnums=(0, 1))(a, 0.3), ft.grad(by_solving, argnums=(0, 1))(a, 0.3), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-11)


# Higher derivatives


def exponential_along(a: Any, *directions: Any) -> Any:
    """The derivative of the matrix exponential along each direction, by that of block triangular matrices.

    See Mathias, "A chain rule for matrix functions and applications" (1996).
    """
    from scipy.linalg import expm

    whole, n = a, len(a)
    for k, e in enumerate(directions):
        whole = np.kron(np.eye(2), whole) + np.kron([[0, 1], [0, 0]], np.kron(np.eye(2**k), e))
    return expm(whole)[:n, -n:]


def along(f: Any, *directions: Any) -> Any:
    """The function that is the derivative of `f` along each direction."""
    if not directions:
        return f
    return along(lambda a: ft.jvp(f, (a,), (directions[0],))[1], *directions[1:])


@crossed(times=2, matrix=MATRICES, form=[by_scaled_columns, by_diagonal_matrix, by_rayleigh_quotients])
def test_second_derivatives_in_all_modes(matrix: str, form: Any) -> None:
    a, function = MATRICES[matrix], form(np.exp)
    kind = a.dtype.type(0).item().__class__
    e, f, weights = symmetric(kind), symmetric(kind), symmetric()

    def loss(a: Any) -> Any:
        return np.sum(function(a) * weights).real

    expected = exponential_along(a, e, f)
    close = {"rtol": 1e-9, "atol": 1e-10 * np.abs(expected).max()}
    np.testing.assert_allclose(along(function, e, f)(a), expected, **close)
    summed = np.sum(expected * weights).real
    for curved in (
        along(ft.grad(loss), f)(a),
        ft.grad(lambda a: np.sum(ft.grad(loss)(a) * f).real)(a),
        ft.grad(along(loss, f))(a),
    ):
        np.testing.assert_allclose(np.sum(curved * e).real, summed, **close)


@pytest.mark.parametrize("matrix", MATRICES)
def test_third_derivatives(matrix: str) -> None:
    a, function = MATRICES[matrix], by_scaled_columns(np.exp)
    kind = a.dtype.type(0).item().__class__
    e, f, g, weights = symmetric(kind), symmetric(kind), symmetric(kind), symmetric()
    expected = exponential_along(a, e, f, g)
    np.testing.assert_allclose(along(function, e, f, g)(a), expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())

    def curved(a: Any) -> Any:
        return np.sum(ft.grad(lambda a: np.sum(function(a) * weights).real)(a) * f).real

    third = ft.grad(lambda a: np.sum(ft.grad(curved)(a) * g).real)(a)
    assert np.sum(third * e).real == pytest.approx(np.sum(expected * weights).real, rel=1e-8)


def test_hessians_compiled_and_mapped() -> None:
    weights = symmetric()
    batch = np.stack([MATRICES["identity"], MATRICES["apart"], MATRICES["two nearly equal"]])
    hessian = ft.hessian(lambda a: np.sum(by_scaled_columns(np.exp)(a) * weights))
    e, f = symmetric(), symmetric()
    expected = [np.sum(exponential_along(a, e, f) * weights) for a in batch]
    for found in (ft.vmap(hessian)(batch), ft.jit(ft.vmap(hessian))(batch), np.stack([hessian(a) for a in batch])):
        np.testing.assert_allclose(np.einsum("aijkl,ij,kl->a", found, e, f), expected, rtol=1e-9)
    narrow = hessian(batch[0].astype(np.float32))
    assert narrow.dtype == np.float32
    assert np.einsum("ijkl,ij,kl", narrow, e, f) == pytest.approx(expected[0], rel=1e-3)


def test_hessian_with_hyperparameters() -> None:
    y = np.array([1.0, 2.0, 3.0])

    def by_eigenvectors(a: Any, shift: Any, scale: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return y @ (v @ ((v.T @ y) / (scale * w + shift))) + np.sum(np.log(scale * w + shift))

    def by_solving(a: Any, shift: Any, scale: Any) -> Any:
        whole = scale * (a + a.T) / 2 + shift * np.eye(3)
        return y @ np.linalg.solve(whole, y) + np.linalg.slogdet(whole)[1]

    for a in (np.eye(3), MATRICES["two nearly equal"]):
        found, expected = (ft.hessian(f, argnums=(0, 1, 2))(a, 0.3, 0.7) for f in (by_eigenvectors, by_solving))
        for row, expected_row in zip(found, expected, strict=True):
            for x, y_ in zip(row, expected_row, strict=True):
                np.testing.assert_allclose(x, y_, rtol=1e-9, atol=1e-11)


def test_third_derivative_of_the_log_determinant() -> None:
    e, f, g = symmetric(), symmetric(), symmetric()

    def log_det(a: Any) -> Any:
        return np.sum(np.log(np.linalg.eigvalsh(a)))

    # That of 2 I: 2 tr(e f g) / 2**3, symmetrised.
    expected = (np.trace(e @ f @ g) + np.trace(e @ g @ f)) / 8
    assert along(log_det, e, f, g)(2 * np.eye(3)) == pytest.approx(expected, rel=1e-12)


# Functions of eigenvalues


@pytest.mark.parametrize("matrix", MATRICES)
def test_second_derivatives_of_functions_of_eigenvalues(matrix: str) -> None:
    a = MATRICES[matrix]
    kind = complex if matrix == "complex" else float
    e, f = symmetric(kind), symmetric(kind)
    inverse = np.linalg.inv(a)

    def log_det(a: Any) -> Any:
        return np.sum(np.log(np.linalg.eigvalsh(a)))

    def log_partition(a: Any) -> Any:
        w = np.linalg.eigvalsh(a)
        return np.log(np.sum(np.exp(w)))

    expected = -np.trace(inverse @ e @ inverse @ f).real
    for curved in (ft.jvp(ft.grad(log_det), (a,), (f,))[1], ft.grad(lambda a: np.sum(ft.grad(log_det)(a) * f).real)(a)):
        assert np.sum(curved * e).real == pytest.approx(expected, rel=1e-11)
    w, v = np.linalg.eigh(a)
    state = (v * np.exp(w)) @ np.conj(v.T) / np.sum(np.exp(w))
    along_f = derivative_of(np.exp, np.exp, a, f) / np.sum(np.exp(w))
    expected = (np.trace(along_f @ e) - np.trace(state @ e) * np.trace(state @ f)).real
    curved = ft.jvp(ft.grad(log_partition), (a,), (f,))[1]
    assert np.sum(curved * e).real == pytest.approx(expected, rel=1e-10)


def test_hessian_at_the_identity() -> None:
    def log_det(a: Any) -> Any:
        return np.sum(np.log(np.linalg.eigvalsh(a)))

    # That of -tr(e @ e) / 2, for the symmetric part of e.
    swapped = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))
    expected = -(swapped + swapped.transpose(0, 1, 3, 2)) / 2
    for hessian in (ft.hessian(log_det), ft.jit(ft.hessian(log_det))):
        np.testing.assert_allclose(hessian(np.eye(3)), expected, atol=1e-13)


def test_against_many_digits() -> None:
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    a = turned([0.5, 2.0, 2.0])
    e = symmetric()

    def value(t: Any) -> Any:
        w = mpmath.eigsy(mpmath.matrix(a.tolist()) + t * mpmath.matrix(e.tolist()), eigvals_only=True)
        return sum(mpmath.sqrt(x) * mpmath.log(x) for x in w)

    h = mpmath.mpf("1e-8")
    expected = (value(h) - 2 * value(0) + value(-h)) / h**2

    def f(a: Any) -> Any:
        w = np.linalg.eigvalsh(a)
        return np.sum(np.sqrt(w) * np.log(w))

    curved = ft.jvp(ft.grad(f), (a,), (e,))[1]
    assert np.sum(curved * e) == pytest.approx(float(expected), rel=1e-11)


# Singular values


def rotation(n: int) -> Any:
    return np.linalg.qr(RNG.standard_normal((n, n)))[0]


def with_singular_values(m: int, n: int, values: Any) -> Any:
    k = min(m, n)
    return (rotation(m)[:, :k] * np.array(values)) @ rotation(n)[:k]


RECTANGULAR = {
    "equal": np.eye(3),
    "nearly equal": with_singular_values(3, 3, [2.0, 2.0, 1.0]),
    "a zero": with_singular_values(3, 3, [2.0, 1.0, 0.0]),
    "tall": with_singular_values(4, 3, [2.0, 2.0, 0.0]),
    "wide": with_singular_values(3, 4, [2.0, 2.0, 1.0]),
    "zeros": np.zeros((4, 3)),
    "apart": with_singular_values(3, 4, [3.0, 2.0, 1.0]),
}


def cubic(a: Any) -> Any:
    """`a + a @ a.T @ a`."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (u * (s + s**3)) @ vh


def left_product(a: Any) -> Any:
    """`a @ a.T`."""
    u, s, _ = np.linalg.svd(a, full_matrices=False)
    return (u * s**2) @ u.T


def both_products(a: Any) -> Any:
    """`a` itself, in the two halves of a program."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    root = np.sqrt(s + 1)
    return (u * root) @ (root[:, None] * vh) - u @ vh


SMOOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "cubic": (cubic, lambda a, e: e + e @ a.T @ a + a @ e.T @ a + a @ a.T @ e),
    "left product": (left_product, lambda a, e: e @ a.T + a @ e.T),
    "both": (both_products, lambda a, e: e),
}


@pytest.mark.parametrize("function", ["cubic", "left product"])
@pytest.mark.parametrize("matrix", RECTANGULAR)
def test_functions_by_singular_values(matrix: str, function: str) -> None:
    a, (f, derivative) = RECTANGULAR[matrix], SMOOTH[function]
    e = RNG.standard_normal(a.shape)
    expected = derivative(a, e)
    np.testing.assert_allclose(ft.jvp(f, (a,), (e,))[1], expected, atol=1e-12)
    weights = RNG.standard_normal(expected.shape)
    gradient = ft.grad(lambda a: np.sum(f(a) * weights))(a)
    assert np.sum(gradient * e) == pytest.approx(np.sum(expected * weights), rel=1e-11)


def test_two_halves_of_a_program_by_singular_values() -> None:
    a, e = RECTANGULAR["nearly equal"], RNG.standard_normal((3, 3))
    np.testing.assert_allclose(ft.jvp(both_products, (a,), (e,))[1], e, atol=1e-12)


@pytest.mark.parametrize("matrix", RECTANGULAR)
def test_second_derivative_of_the_sum_of_squares(matrix: str) -> None:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.svdvals(a) ** 2)

    a = RECTANGULAR[matrix]
    e = RNG.standard_normal(a.shape)
    np.testing.assert_allclose(ft.grad(f)(a), 2 * a, atol=1e-13)
    np.testing.assert_allclose(ft.jvp(ft.grad(f), (a,), (e,))[1], 2 * e, atol=1e-12)


@pytest.mark.parametrize("f", [lambda a: np.linalg.norm(a, "nuc"), lambda a: np.sum(np.linalg.svdvals(a))])
def test_second_derivative_of_the_nuclear_norm(f: Any) -> None:
    e = RNG.standard_normal((3, 3))
    skew = (e - e.T) / 2
    for scale in (1.0, 3.0):
        curved = ft.jvp(ft.grad(f), (scale * np.eye(3),), (e,))[1]
        np.testing.assert_allclose(curved, skew / scale, atol=1e-13)


def test_nuclear_norm_of_few_ranks() -> None:
    u, v = rotation(4)[:, :2], rotation(3)[:, :2]
    # Of all subgradients the one of least norm.
    np.testing.assert_allclose(ft.grad(lambda a: np.linalg.norm(a, "nuc"))((u * [2.0, 1.0]) @ v.T), u @ v.T, atol=1e-13)
    np.testing.assert_array_equal(ft.grad(lambda a: np.linalg.norm(a, "nuc"))(np.zeros((2, 3))), np.zeros((2, 3)))


@crossed(matrix=RECTANGULAR, function=["cubic", "left product"])
def test_higher_derivatives_by_singular_values(matrix: str, function: str) -> None:
    a, f = RECTANGULAR[matrix], SMOOTH[function][0]
    plain: Any = {"cubic": lambda a: a + a @ a.T @ a, "left product": lambda a: a @ a.T}[function]
    d, e, g = (RNG.standard_normal(a.shape) for _ in range(3))
    np.testing.assert_allclose(along(f, d, e)(a), along(plain, d, e)(a), atol=1e-11)
    np.testing.assert_allclose(along(f, d, e, g)(a), along(plain, d, e, g)(a), atol=1e-10)
    weights = RNG.standard_normal(plain(a).shape)

    def curved(f: Any) -> Any:
        gradient = ft.grad(lambda a: np.sum(f(a) * weights))
        return ft.grad(lambda a: np.sum(gradient(a) * d))(a)

    np.testing.assert_allclose(curved(f), curved(plain), atol=1e-11)


# General matrices


def test_general_matrices_with_equal_eigenvalues() -> None:
    from scipy.linalg import expm_frechet

    basis = np.array([[1.0, 0.5, 0.0], [0.2, 1.0, 0.3], [0.0, -0.4, 1.0]])
    a = basis @ np.diag([2.0, 2.0, 0.5]) @ np.linalg.inv(basis)
    e, weights = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3))

    def exponential(a: Any) -> Any:
        w, v = np.linalg.eig(a)
        return ((v * np.exp(w)) @ np.linalg.inv(v)).real

    expected = expm_frechet(a, e)[1]
    np.testing.assert_allclose(ft.jvp(exponential, (a,), (e,))[1], expected, atol=1e-10)
    gradient = ft.grad(lambda a: np.sum(exponential(a) * weights))(a)
    assert np.sum(gradient * e) == pytest.approx(np.sum(expected * weights), rel=1e-10)
    f = RNG.standard_normal((3, 3))
    np.testing.assert_allclose(along(exponential, e, f)(a), exponential_along(a, e, f), atol=1e-9)


def test_vectors_that_keep_their_length() -> None:
    a, e = np.diag([2.0, 2.0, 0.5]), RNG.standard_normal((3, 3))

    def lengths(a: Any) -> Any:
        return np.sum(np.abs(np.linalg.eig(a)[1]) ** 2)

    assert ft.jvp(lengths, (a,), (e,))[1] == pytest.approx(0, abs=1e-12)


# What has no derivative


def first_eigenvector(a: Any) -> Any:
    return np.sum(np.linalg.eigh(a)[1][:, 0] ** 3)


@ft.jit
def decomposition(a: Any) -> Any:
    """Values and vectors that leave a program of their own, so that what is made of them is not seen."""
    return tuple(np.linalg.eigh(a))


def across_programs(a: Any) -> Any:
    w, v = decomposition(a)
    return np.sum((v * np.exp(w)) @ v.T * np.arange(9.0).reshape(3, 3))


def polar(a: Any) -> Any:
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum((u @ vh) * np.arange(a.size).reshape(a.shape))


def with_last_value(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return w[-1] + np.sum((v * np.exp(w)) @ v.T * np.arange(9.0).reshape(3, 3))


def with_a_copy(x: Any) -> Any:
    """Smooth, but not in the matrix that is decomposed, where that does not move with its copy."""
    v = np.linalg.eigh((x + x.T) / 2)[1]
    return np.sum((v * np.exp(np.sum(v * (x @ v), 0))) @ v.T * np.arange(9.0).reshape(3, 3))


def left_polar_part(a: Any) -> Any:
    """The square root of `a @ a.T`, which has a kink where a singular value is 0."""
    u, s, _ = np.linalg.svd(a)
    return (u * s) @ u.T


def chosen_by_vectors(a: Any) -> Any:
    return np.sum(np.where(np.linalg.eigh(a)[1] > 0.5, a, 0.0))


def held_values(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return np.sum((v * ft.stop_gradient(np.exp(w))) @ v.T * np.arange(9.0).reshape(3, 3))


def with_edited_values(edit: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that is smooth, were it not for its derivative by decree."""

    def f(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return np.sum((v * edit(np.exp(w))) @ v.T * np.arange(9.0).reshape(3, 3))

    return f


def of_a_stack(a: Any) -> Any:
    """A sum over matrices of very different size; it is the small one that has no derivative."""
    w, v = np.linalg.eigh(np.stack([1e9 * np.diag([1.0, 2.0, 3.0]) + a, a]))
    return np.sum(w**2) * 1e-18 + np.sum(v[1, :, 0] ** 3)


def reflected() -> Any:
    """A matrix with vectors of equal values for which turning gives the axes, which are special."""
    across = np.cos(np.arange(2) + 0.4)
    turn = np.eye(2) - 2 * np.outer(across, across) / (across @ across)
    a = np.diag([0.0, 0.0, 1.0])
    a[:2, :2] = (turn * np.array([1e-15, 2e-15])) @ turn.T
    return a


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("f", "a"),
    [
        (left_polar_part, np.diag([3.0, 2.0, 0.0])),
        (chosen_by_vectors, MATRICES["identity"]),
        (held_values, MATRICES["identity"]),
        (with_edited_values(lambda x: ft.scale_gradient(x, 0.5)), MATRICES["identity"]),
        (with_edited_values(ft.reverse_gradient), MATRICES["identity"]),
        (with_edited_values(lambda x: ft.straight_through(np.round(x), x)), MATRICES["identity"]),
        (of_a_stack, MATRICES["identity"]),
        (lambda a: np.sum(np.linalg.eigh(a)[1] ** 4), reflected()),
        (first_eigenvector, MATRICES["identity"]),
        (first_eigenvector, MATRICES["two nearly equal"]),
        (across_programs, MATRICES["identity"]),
        (polar, RECTANGULAR["tall"]),
        (with_last_value, MATRICES["identity"]),
        (with_a_copy, MATRICES["identity"]),
        (with_a_copy, MATRICES["two nearly equal"]),
        (ft.grad(lambda a: np.linalg.eigvalsh(a)[0]), MATRICES["two nearly equal"]),
    ],
)
def test_what_has_no_derivative_is_no_number(f: Any, a: Any) -> None:
    e = RNG.standard_normal(a.shape)
    pulled = ft.grad(lambda a: np.sum(f(a) * np.ones(())))(a)
    assert np.isnan(pulled).any()
    assert np.isnan(np.sum(ft.jvp(f, (a,), (e + e.T if a.shape[0] == a.shape[1] else e,))[1]))


def test_a_cube_of_singular_values_has_two_derivatives() -> None:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.svdvals(a) ** 3)

    a, e = np.diag([2.0, 0.0]), np.array([[0.3, 0.2], [0.2, -0.7]])
    assert np.isfinite(along(f, e, e)(a))
    assert np.isnan(along(f, e, e, e)(a))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("a", [np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])])
def test_too_few_eigenvectors(a: Any) -> None:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.eigvals(a) ** 2).real

    assert np.isnan(ft.jvp(f, (a,), (np.ones((2, 2)),))[1])
    assert np.isnan(ft.grad(f)(a)).any()


# Functions that are hard to tell from those without a derivative


@pytest.mark.parametrize("jitter", [1e-2, 1e-4, 1e-6])
def test_kernels_with_small_equal_values(jitter: float) -> None:
    x, y = RNG.standard_normal((8, 3)), RNG.standard_normal(8)
    a, e = x @ x.T + jitter * np.eye(8), np.eye(8)

    def by_eigenvectors(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return np.sum((v.T @ y) ** 2 / w) + np.sum(np.log(w))

    def by_solving(a: Any) -> Any:
        a = (a + a.T) / 2
        return y @ np.linalg.solve(a, y) + np.linalg.slogdet(a)[1]

    for derive in (ft.grad, lambda f: along(ft.grad(f), e)):
        found, expected = derive(by_eigenvectors)(a), derive(by_solving)(a)
        np.testing.assert_allclose(found, expected, atol=1e-13 / jitter * np.abs(expected).max())


@pytest.mark.parametrize("value", [1e-3, 1e-6])
@pytest.mark.parametrize("function", ["log", "sqrt"])
def test_small_equal_values(function: str, value: float) -> None:
    a, (f, slope), e = turned([value, value, 1.0]), FUNCTIONS[function], symmetric()
    expected = derivative_of(f, slope, a, e)
    found = ft.jvp(by_scaled_columns(f), (a,), (e,))[1]
    np.testing.assert_allclose(found, expected, atol=1e-14 / value * np.abs(expected).max())


def test_close_to_a_pole() -> None:
    a, e = turned([2.0, 2.0, 5.0]), symmetric()
    expected = derivative_of(lambda x: np.log(x - 1.9999), lambda x: 1 / (x - 1.9999), a, e)
    found = ft.jvp(by_scaled_columns(lambda x: np.log(x - 1.9999)), (a,), (e,))[1]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.linalg.eigh(a)[1] @ np.linalg.eigh(a)[1].T,
        lambda a: np.linalg.det(np.linalg.eigh(a)[1]) ** 2 * np.eye(3),
        lambda a: np.linalg.svd(a)[0] @ np.linalg.svd(a)[0].T,
    ],
)
def test_constants(f: Any) -> None:
    a, e = MATRICES["two nearly equal"], symmetric()
    np.testing.assert_allclose(ft.jvp(f, (a,), (e,))[1], np.zeros((3, 3)), atol=1e-14)
    np.testing.assert_allclose(ft.grad(lambda a: np.sum(f(a) * e))(a), np.zeros((3, 3)), atol=1e-14)


BODIES: dict[str, Callable[[Any], Any]] = {
    "jit": ft.jit(np.exp),
    "checkpoint": ft.checkpoint(np.exp),
    "scan": lambda w: ft.scan(lambda c, x: (c, np.exp(x)), 0.0, w)[1],
    "fori_loop": lambda w: ft.fori_loop(0, 1, lambda i, x: np.exp(x), w),
    "cond": lambda w: ft.cond(True, np.exp, np.sin, w),
    "jit and more": lambda w: np.sqrt(ft.jit(np.exp)(w) ** 2),
}


@pytest.mark.parametrize("body", BODIES)
def test_equations_with_bodies_between_values_and_vectors(body: str) -> None:
    a, e, f = np.eye(3), symmetric(), symmetric()

    def loss(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return np.sum((v * BODIES[body](w)) @ v.T * e)

    np.testing.assert_allclose(ft.grad(loss)(a), np.e * e, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.grad(loss))(a), np.e * e, rtol=1e-12)
    expected = np.e * (e @ f + f @ e) / 2
    np.testing.assert_allclose(along(ft.grad(loss), f)(a), expected, rtol=1e-11)
    np.testing.assert_allclose(ft.grad(lambda a: np.sum(ft.grad(loss)(a) * f))(a), expected, rtol=1e-11)


def test_complex_singular_vectors_of_zero() -> None:
    from ftrans.scipy.linalg import expm

    def complex_rotation() -> Any:
        return np.linalg.qr(RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3)))[0]

    def by_singular_vectors(a: Any) -> Any:
        u, s, _ = np.linalg.svd(a)
        return (u * np.exp(s**2 / 4)) @ np.conj(u.T)

    a = (complex_rotation() * [2.0, 1.0, 0.0]) @ complex_rotation()
    e = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
    expected = ft.jvp(lambda a: expm(a @ np.conj(a.T) / 4), (a,), (e,))[1]
    np.testing.assert_allclose(ft.jvp(by_singular_vectors, (a,), (e,))[1], expected, atol=1e-13)


def test_values_and_vectors_of_two_calls() -> None:
    a, e = np.eye(3), symmetric()

    def f(a: Any) -> Any:
        w, v = np.linalg.eigvalsh(a), np.linalg.eigh(a)[1]
        return (v * np.exp(w)) @ v.T

    np.testing.assert_allclose(ft.jvp(f, (a,), (e,))[1], np.e * e, atol=1e-13)
    np.testing.assert_allclose(ft.grad(lambda a: np.sum(f(a) * e))(a), np.e * e, atol=1e-13)


def test_complex_eigenvectors_and_the_matrix_itself() -> None:
    def f(a: Any) -> Any:
        v = np.linalg.eig(a)[1]
        back = np.linalg.inv(v)
        return (v * np.exp(np.diag(back @ a @ v))) @ back

    e = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
    np.testing.assert_allclose(ft.jvp(f, (np.eye(3) + 0j,), (e,))[1], np.e * e, atol=1e-13)


@pytest.mark.parametrize("condition", [10, 100])
def test_oblique_eigenvectors(condition: float) -> None:
    from scipy.linalg import expm_frechet

    basis = (rotation(4) * np.geomspace(1, condition, 4)) @ rotation(4)
    a, e = (basis * np.array([1.0, 1.0, 0.5, 0.3])) @ np.linalg.inv(basis), RNG.standard_normal((4, 4))

    def exponential(a: Any) -> Any:
        w, v = np.linalg.eig(a)
        return ((v * np.exp(w)) @ np.linalg.inv(v)).real

    expected = expm_frechet(a, e)[1]
    found = ft.jvp(exponential, (a,), (e,))[1]
    np.testing.assert_allclose(found, expected, atol=1e-14 * condition**2 * np.abs(expected).max())


@ft.jit
def values_alone(a: Any) -> Any:
    return np.linalg.eigvalsh(a)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_second_derivatives_across_programs_are_no_numbers() -> None:
    """A program sees single values there, and not that the sum of their logarithms is smooth."""

    def log_det(a: Any) -> Any:
        return np.sum(np.log(values_alone(a)))

    e, a = symmetric(), np.eye(3)
    np.testing.assert_allclose(ft.grad(log_det)(a), np.eye(3), atol=1e-13)
    for curved in (
        along(log_det, e, e)(a),
        along(ft.grad(log_det), e)(a),
        ft.grad(along(log_det, e))(a),
        ft.grad(lambda a: np.sum(ft.grad(log_det)(a) * e))(a),
    ):
        assert np.isnan(curved).any()


def test_second_derivatives_of_tensors_are_no_numbers() -> None:
    from ftrans import autograd

    a = autograd.tensor(np.eye(3), requires_grad=True)
    (gradient,) = autograd.grad(np.sum(np.log(np.linalg.eigvalsh(a))), a, create_graph=True)
    np.testing.assert_allclose(gradient.detach().numpy(), np.eye(3), atol=1e-13)
    (curved,) = autograd.grad(np.sum(gradient * symmetric()), a)
    assert np.isnan(curved.numpy()).any()


def test_the_largest_of_equal_values() -> None:
    def f(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return np.max(w) + np.sum((v * w**2) @ v.T)

    # As everywhere, the derivative of the largest is shared by those that tie.
    np.testing.assert_allclose(ft.grad(f)(np.eye(3)), np.eye(3) / 3 + 2, atol=1e-12)


def test_vectors_that_are_apart_from_equal_ones() -> None:
    a = MATRICES["two nearly equal"]
    e = symmetric()

    def top(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return w[-1] * np.outer(v[:, -1], v[:, -1])

    def subspace(a: Any) -> Any:
        v = np.linalg.eigh(a)[1][:, :2]
        return v @ v.T

    v = np.linalg.eigh(a)[1]
    both = np.outer(v[:, 2], v[:, 2])
    resolvent = (np.eye(3) - both) / (5.0 - 2.0)
    changed = resolvent @ e @ both + both @ e @ resolvent
    np.testing.assert_allclose(ft.jvp(top, (a,), (e,))[1], 5.0 * changed + (v[:, 2] @ e @ v[:, 2]) * both, atol=1e-12)
    np.testing.assert_allclose(ft.jvp(subspace, (a,), (e,))[1], -changed, atol=1e-12)
    weights = symmetric()
    gradient = ft.grad(lambda a: np.sum(subspace(a) * weights))(a)
    assert np.sum(gradient * e) == pytest.approx(-np.sum(changed * weights), rel=1e-11)


@pytest.mark.parametrize("matrices", [("identity", "identity"), ("identity", "apart"), ("apart", "identity")])
def test_two_decompositions_in_one_program(matrices: Any) -> None:
    from ftrans.scipy.linalg import expm, sqrtm

    a, b = (MATRICES[m] for m in matrices)
    weights = RNG.standard_normal((3, 3))

    def by_eigenvectors(a: Any, b: Any) -> Any:
        return np.sum(by_scaled_columns(np.exp)(a) @ by_scaled_columns(np.sqrt)(b) * weights)

    def directly(a: Any, b: Any) -> Any:
        return np.sum(expm((a + a.T) / 2) @ sqrtm((b + b.T) / 2) * weights)

    found, expected = (ft.grad(f, argnums=(0, 1))(a, b) for f in (by_eigenvectors, directly))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    found, expected = (np.array(ft.hessian(f, argnums=(0, 1))(a, b)) for f in (by_eigenvectors, directly))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_one_decomposition_after_another() -> None:
    a, e, f = MATRICES["identity"], symmetric(), symmetric()

    def same(a: Any) -> Any:
        return by_scaled_columns(np.log)(by_diagonal_matrix(np.exp)(a))

    np.testing.assert_allclose(ft.jvp(same, (a,), (e,))[1], e, atol=1e-12)
    np.testing.assert_allclose(ft.grad(lambda a: np.sum(same(a) * e))(a), e, atol=1e-12)
    np.testing.assert_allclose(along(same, e, f)(a), np.zeros((3, 3)), atol=1e-11)

    def of_both(a: Any) -> Any:
        b = by_scaled_columns(np.exp)(a)
        return np.sum(b @ by_diagonal_matrix(np.log)(b) * e)

    # b @ log(b) is a @ exp(a), whose second derivative at I is e times f @ (I + I + I) @ f, symmetrised.
    assert along(of_both, f, f)(a) == pytest.approx(np.sum(e * (f @ f)) * 3 * np.e, rel=1e-10)


def test_a_loss_that_is_zero() -> None:
    def loss(a: Any, target: Any) -> Any:
        return np.sum((by_scaled_columns(np.sqrt)(a) - target) ** 2)

    for a in (np.eye(3), MATRICES["two nearly equal"]):
        root = by_scaled_columns(np.sqrt)(a)
        np.testing.assert_allclose(ft.grad(loss)(a, root), np.zeros((3, 3)), atol=1e-12)


def test_nobody_sees_what_is_tried() -> None:
    seen: list[Any] = []

    def f(a: Any) -> Any:
        (y,) = watch.apply(seen.append, [by_scaled_columns(np.exp)(a)], [by_scaled_columns(np.exp)(a)])
        return np.sum(y**2)

    assert np.isfinite(ft.grad(f)(np.eye(3))).all()
    assert seen
    for value in seen:
        np.testing.assert_allclose(value, np.e * np.eye(3), atol=1e-12)


def test_taps_behind_a_decomposition() -> None:
    def f(a: Any) -> Any:
        return np.sum(ft.tap("exponential", by_scaled_columns(np.exp)(a)) ** 2)

    (_, taps), gradient = ft.value_and_grad(f, taps=True)(np.eye(3))
    np.testing.assert_allclose(taps["exponential"].gradient, 2 * np.e * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(gradient, 2 * np.e**2 * np.eye(3), atol=1e-12)


def test_inside_a_loop() -> None:
    e = symmetric()

    def f(a: Any) -> Any:
        return ft.fori_loop(0, 2, lambda i, x: by_scaled_columns(np.sqrt)(x), a)

    np.testing.assert_allclose(ft.jvp(f, (np.eye(3),), (e,))[1], e / 4, atol=1e-13)
    np.testing.assert_allclose(ft.grad(lambda a: np.sum(f(a) * e))(np.eye(3)), e / 4, atol=1e-13)
    # That of x**(1/4).
    expected = -3 / 16 * np.sum(e @ e * e)
    assert along(lambda a: np.sum(f(a) * e), e, e)(np.eye(3)) == pytest.approx(expected, rel=1e-11)
    for derive in (ft.hessian, lambda f: ft.jit(ft.hessian(f))):
        hessian = derive(lambda a: np.sum(f(a) * e))(np.eye(3))
        assert np.einsum("ijkl,ij,kl", hessian, e, e) == pytest.approx(expected, rel=1e-11)
