"""The derivatives that users call: containers, argument positions, modes, dtypes, and values from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from checks import assert_all_close, assert_close
from scipy.optimize import rosen, rosen_der, rosen_hess

import ftrans as ft
from ftrans.spectral import eigh


class Line(NamedTuple):
    """A container of the kind that people use for parameters."""

    slope: Any
    offset: Any


@dataclass
class Layer:
    """Another one."""

    weights: Any
    bias: Any


@dataclass(frozen=True)
class Frozen:
    """One that cannot be assigned to."""

    inner: Any


X = np.array([1.0, 2.0, 3.0])
M = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 2.0]])


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


# Values from elsewhere


def test_rosenbrock() -> None:
    x = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
    value, slope = ft.value_and_grad(rosenbrock)(x)
    assert_close(value, rosen(x))
    assert_close(slope, rosen_der(x))
    assert_close(ft.hessian(rosenbrock)(x), rosen_hess(x))
    assert_close(ft.hvp(rosenbrock, (x,), (x,)), rosen_hess(x) @ x)


@pytest.mark.parametrize(
    ("f", "reference", "x"),
    [
        (lambda x: np.exp(np.sin(x)), lambda x: mpmath.exp(mpmath.sin(x)), 0.7),
        (lambda x: x**x, lambda x: x**x, 1.3),
        (lambda x: np.arctan2(x**2, 1 + x), lambda x: mpmath.atan2(x**2, 1 + x), 0.4),
        (lambda x: np.logaddexp(x, 2 * x), lambda x: mpmath.log(mpmath.exp(x) + mpmath.exp(2 * x)), -0.3),
        (lambda x: np.hypot(x, 1 - x), lambda x: mpmath.hypot(x, 1 - x), 0.6),
        (lambda x: np.tanh(x) / np.sqrt(1 + x), lambda x: mpmath.tanh(x) / mpmath.sqrt(1 + x), 0.2),
        (lambda x: np.log1p(np.cbrt(x)), lambda x: mpmath.log1p(mpmath.cbrt(x)), 2.5),
        (lambda x: np.expm1(-1 / x), lambda x: mpmath.expm1(-1 / x), 0.8),
        (lambda x: np.arcsinh(x) * np.arccosh(1 + x), lambda x: mpmath.asinh(x) * mpmath.acosh(1 + x), 1.5),
    ],
)
def test_derivatives_of_any_order(f: Any, reference: Any, x: float) -> None:
    derivative = f
    for order in range(1, 6):
        derivative = ft.grad(derivative)
        with mpmath.workdps(40):
            expected = float(mpmath.diff(reference, mpmath.mpf(x), order))
        assert derivative(x) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_log_determinant_and_inverse() -> None:
    a = np.array([[3.0, 0.4, 0.1], [0.2, 2.0, 0.5], [0.0, 0.3, 1.5]])
    b = np.array([1.0, 2.0, 3.0])
    assert_close(ft.grad(lambda a: np.linalg.slogdet(a)[1])(a), np.linalg.inv(a).T)
    assert_close(ft.grad(np.linalg.det)(a), np.linalg.det(a) * np.linalg.inv(a).T)
    x = np.linalg.solve(a, b)
    assert_close(ft.jacobian(lambda b: np.linalg.solve(a, b))(b), np.linalg.inv(a))
    assert_close(ft.jacobian(lambda a: np.linalg.solve(a, b))(a), -np.einsum("ij,k->ijk", np.linalg.inv(a), x))


def test_gaussian_likelihood_by_cholesky() -> None:
    s = np.array([[2.0, 0.3], [0.3, 1.0]])
    y = np.array([0.5, -1.5])

    def logpdf(s: Any) -> Any:
        factor = np.linalg.cholesky(s)
        z = np.linalg.solve(factor, y)
        return -0.5 * np.sum(z**2) - np.sum(np.log(np.diag(factor)))

    inverse = np.linalg.inv(s)
    assert_close(ft.grad(logpdf)(s), 0.5 * (np.outer(inverse @ y, inverse @ y) - inverse))


def test_complex_gradients() -> None:
    z = np.array([1.0 + 2.0j, -0.5 + 0.3j])
    # The gradient of |z|^2 = x^2 + y^2 is df/dx - i df/dy = 2 conj(z).
    assert_close(ft.grad(lambda z: np.sum(np.abs(z) ** 2))(z), 2 * np.conj(z))
    assert_close(ft.grad(lambda z: np.sum(np.real(z**3)))(z), 3 * z**2)
    _, pushed = ft.jvp(np.exp, (z,), (1j * np.ones(2),))
    assert_close(pushed, 1j * np.exp(z))


def test_complex_jacobians() -> None:
    z, x = np.array([1.0 + 2.0j, -0.5 + 0.3j]), np.array([0.5, 2.0])
    # Real arguments, complex results: one tangent tells all of a column.
    assert_close(ft.jacobian(lambda x: np.exp(1j * x))(x), np.diag(1j * np.exp(1j * x)))
    assert_close(ft.jacfwd(lambda x: np.exp(1j * x))(x), np.diag(1j * np.exp(1j * x)))
    # Complex arguments, real results: one cotangent tells all of a row.
    assert_close(ft.jacobian(lambda z: np.abs(z) ** 2)(z), np.diag(2 * np.conj(z)))
    assert_close(ft.jacrev(lambda z: np.abs(z) ** 2)(z), np.diag(2 * np.conj(z)))


@pytest.mark.parametrize(
    ("jacobian", "f", "x"),
    [
        (ft.jacrev, lambda x: np.exp(1j * x), np.ones(2)),
        (ft.jacfwd, lambda z: np.abs(z), 1j * np.ones(2)),
        (ft.jacobian, lambda z: z**2, 1j * np.ones(2)),
    ],
)
def test_jacobians_that_would_lose_half_of_a_complex_derivative(jacobian: Any, f: Any, x: Any) -> None:
    with pytest.raises(TypeError, match=r"(?s)half of the derivative.*test_derivatives\.py"):
        jacobian(f)(x)


def test_complex_eigenvectors_where_their_phase_does_not_matter() -> None:
    a = np.array([[2.0, 0.5 + 0.3j], [0.5 - 0.3j, 1.0]])
    t = np.array([[0.1, 0.2 - 0.4j], [0.2 + 0.4j, -0.3]])

    def projection(a: Any) -> Any:
        values, vectors = eigh(a)
        return vectors @ (np.exp(values)[:, None] * np.conj(vectors.T))

    _, pushed = ft.jvp(projection, (a,), (t,))
    h = 1e-5
    np.testing.assert_allclose(pushed, (projection(a + h * t) - projection(a - h * t)) / (2 * h), rtol=1e-8)


# Containers


PARAMETERS: list[Any] = [
    (X, 2.0),
    [X, [2.0, X]],
    {"a": X, "b": {"c": 2.0}},
    Line(X, 2.0),
    Layer(X, Line(2.0, X)),
    Frozen({"x": (X, None)}),
    ({"a": [X]}, Line(X, Layer(1.0, X))),
]


def total(tree: Any) -> Any:
    """The sum of squares of everything in a nested container."""
    if tree is None:
        return 0.0
    if isinstance(tree, dict):
        return sum(total(v) for v in tree.values())
    if isinstance(tree, list | tuple):
        return sum(total(v) for v in tree)
    if isinstance(tree, Layer | Frozen):
        return sum(total(v) for v in vars(tree).values())
    return np.sum(tree**2)


def doubled(tree: Any) -> Any:
    """The gradient of `total`, with which a container is compared."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {k: doubled(v) for k, v in tree.items()}
    if isinstance(tree, Line):
        return Line(*map(doubled, tree))
    if isinstance(tree, list | tuple):
        return type(tree)(doubled(v) for v in tree)
    if isinstance(tree, Layer | Frozen):
        return type(tree)(*(doubled(v) for v in vars(tree).values()))
    return np.asarray(2.0 * tree)[()]


def assert_same_tree(actual: Any, expected: Any) -> None:
    """Assert that nested containers have the same types, and equal arrays."""
    assert type(actual) is type(expected) or isinstance(expected, float | np.ndarray)
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key, value in expected.items():
            assert_same_tree(actual[key], value)
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            assert_same_tree(a, b)
    elif isinstance(expected, Layer | Frozen):
        assert_same_tree(vars(actual), vars(expected))
    elif expected is not None:
        assert_close(actual, expected)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=lambda p: type(p).__name__)
def test_gradients_of_containers(parameters: Any) -> None:
    assert_same_tree(ft.grad(total)(parameters), doubled(parameters))
    value, slope = ft.value_and_grad(total)(parameters)
    assert value == pytest.approx(total(parameters))
    assert_same_tree(slope, doubled(parameters))
    out, pull = ft.vjp(total, parameters)
    assert_same_tree(pull(1.0), (doubled(parameters),))
    assert out == value
    _, pushed = ft.jvp(total, (parameters,), (parameters,))
    assert pushed == pytest.approx(2 * total(parameters))
    _, push = ft.linearize(total, parameters)
    assert push(parameters) == pytest.approx(2 * total(parameters))
    assert_same_tree(ft.jit(ft.grad(total))(parameters), doubled(parameters))


def test_containers_as_results() -> None:
    def f(x: Any) -> Any:
        return {"s": np.sin(x), "line": Line(x[0], Layer(2.0, [x]))}

    out, pushed = ft.jvp(f, (X,), (np.ones(3),))
    assert_same_tree(out, {"s": np.sin(X), "line": Line(np.float64(1.0), Layer(np.float64(2.0), [X]))})
    expected = {"s": np.cos(X), "line": Line(np.float64(1.0), Layer(np.float64(0.0), [np.ones(3)]))}
    assert_same_tree(pushed, expected)
    out, pull = ft.vjp(f, X)
    (pulled,) = pull(expected)
    assert_close(pulled, np.cos(X) ** 2 + np.array([1.0, 0, 0]) + 1.0)
    jacobian = ft.jacobian(f)(X)
    assert_close(jacobian["s"], np.diag(np.cos(X)))
    assert_close(jacobian["line"].slope, np.array([1.0, 0.0, 0.0]))
    assert_close(jacobian["line"].offset.weights, np.zeros(3))
    assert_close(jacobian["line"].offset.bias[0], np.eye(3))


def test_a_container_of_lists_of_numbers_is_not_an_array() -> None:
    slopes = ft.grad(lambda x: x[0] * x[1] ** 2)([2.0, 3.0])
    assert_same_tree(slopes, [np.float64(9.0), np.float64(12.0)])


# Which arguments


def product(x: Any, y: Any, z: Any = 2.0) -> Any:
    return np.sum(x * y**2 * z)


def test_argnums() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert_close(ft.grad(product)(x, y), 2 * y**2)
    assert_close(ft.grad(product, 1)(x, y), 4 * x * y)
    assert_close(ft.grad(product, -1)(x, y), 4 * x * y)
    assert_same_tree(ft.grad(product, (0, 1))(x, y), (2 * y**2, 4 * x * y))
    assert_same_tree(ft.grad(product, [1, 0])(x, y), (4 * x * y, 2 * y**2))
    assert_same_tree(ft.grad(product, (0,))(x, y), (2 * y**2,))
    assert_close(ft.grad(product, 2)(x, y, 3.0), np.sum(x * y**2))


def test_keyword_arguments_are_passed_on() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert_close(ft.grad(product)(x, y, z=5.0), 5 * y**2)
    assert_close(ft.grad(product)(x, y=y), 2 * y**2)
    assert ft.grad(lambda x, *, power: x**power)(2.0, power=3) == 12.0


def test_other_arguments_may_be_anything() -> None:
    assert ft.grad(lambda x, how, table: x * table[how])(2.0, "double", {"double": 2.0}) == 2.0
    assert ft.grad(lambda x, n: x**n)(2.0, 3) == 12.0
    assert ft.grad(lambda x, n: x * n.sum())(2.0, np.arange(4)) == 6.0


def test_the_same_array_at_two_places() -> None:
    assert_same_tree(ft.grad(lambda x, y: np.sum(x * y), (0, 1))(X, X), (X, X))


# Auxiliary results


def test_has_aux() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**2), {"twice": 2 * x, "name": "f", "none": None, "shape": x.shape}

    slope, aux = ft.grad(f, has_aux=True)(X)
    assert_close(slope, 2 * X)
    assert_close(aux["twice"], 2 * X)
    assert (aux["name"], aux["none"], aux["shape"]) == ("f", None, (3,))
    (value, aux), slope = ft.value_and_grad(f, has_aux=True)(X)
    assert value == 14.0
    assert_close(aux["twice"], 2 * X)
    assert_close(slope, 2 * X)


def test_has_aux_of_other_derivatives() -> None:
    def f(x: Any) -> Any:
        return x**2, np.sum(x)

    blocks, aux = ft.jacobian(f, has_aux=True)(X)
    assert_close(blocks, np.diag(2 * X))
    assert aux == 6.0
    (value, aux), blocks = ft.value_and_jacobian(f, has_aux=True)(X)
    assert_close(value, X**2)
    assert aux == 6.0
    assert_close(ft.jacfwd(f, has_aux=True)(X)[0], np.diag(2 * X))
    assert_close(ft.jacrev(f, has_aux=True)(X)[0], np.diag(2 * X))
    out, pushed, aux = ft.jvp(f, (X,), (np.ones(3),), has_aux=True)
    assert_all_close([out, pushed], [X**2, 2 * X])
    assert aux == 6.0
    out, pull, aux = ft.vjp(f, X, has_aux=True)
    assert_close(pull(np.ones(3))[0], 2 * X)
    assert aux == 6.0
    second, aux = ft.hessian(lambda x: (np.sum(x**3), x[0]), has_aux=True)(X)
    assert_close(second, np.diag(6 * X))
    assert aux == 1.0


# Pulling and pushing


def test_vjp_may_be_called_often() -> None:
    out, pull = ft.vjp(lambda x, m: m @ x, X, M)
    assert_close(out, M @ X)
    for ct in np.eye(2):
        ct_x, ct_m = pull(ct)
        assert_close(ct_x, M.T @ ct)
        assert_close(ct_m, np.outer(ct, X))


def test_cotangents_of_what_is_not_used_are_zero() -> None:
    _, pull = ft.vjp(lambda x, y: 2 * x, X, M)
    assert_same_tree(pull(np.ones(3)), (np.full(3, 2.0), np.zeros((2, 3))))
    assert_same_tree(ft.grad(lambda x, y: np.sum(x), (0, 1))(X, 3.0), (np.ones(3), np.float64(0.0)))
    _, pull = ft.vjp(lambda x: (x, 3.0), X)
    assert_same_tree(pull((np.ones(3), 1.0)), (np.ones(3),))


def test_tangents_may_be_python_numbers() -> None:
    assert ft.jvp(np.sin, (0.0,), (2,)) == (0.0, 2.0)
    assert ft.jvp(lambda x: x**2, (3,), (1,)) == (9.0, 6.0)


def test_linearize() -> None:
    out, push = ft.linearize(lambda x, m: m @ np.sin(x), X, M)
    assert_close(out, M @ np.sin(X))
    zero = np.zeros((2, 3))
    for t in np.eye(3):
        assert_close(push(t, zero), M @ (np.cos(X) * t))
    assert_close(push(np.zeros(3), M), M @ np.sin(X))


def test_linear_transpose() -> None:
    turn = ft.linear_transpose(lambda x: M @ x, X)
    assert_same_tree(turn(np.array([1.0, 2.0])), (M.T @ np.array([1.0, 2.0]),))
    turn = ft.linear_transpose(lambda p: {"a": 2 * p["x"], "b": p["x"][0] - p["y"]}, {"x": X, "y": 0.0})
    (ct,) = turn({"a": np.ones(3), "b": 5.0})
    assert_same_tree(ct, {"x": np.array([7.0, 2.0, 2.0]), "y": np.float64(-5.0)})


def test_stop_gradient() -> None:
    assert ft.grad(lambda x: x * ft.stop_gradient(x**2))(3.0) == 9.0
    assert ft.jvp(lambda x: ft.stop_gradient(x), (2.0,), (1.0,)) == (2.0, 0.0)
    assert_same_tree(ft.stop_gradient({"a": X, "b": 2.0}), {"a": X, "b": 2.0})
    # The value of sign, with the derivative of tanh.
    straight_through = lambda x: np.tanh(x) + ft.stop_gradient(np.sign(x) - np.tanh(x))  # noqa: E731
    assert straight_through(0.5) == 1.0
    assert ft.grad(straight_through)(0.5) == pytest.approx(1 - np.tanh(0.5) ** 2)


# Jacobians and Hessians


MODES = ["auto", "forward", "reverse"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 5, 100])
def test_jacobian_modes(mode: Any, chunk_size: int | None) -> None:
    def f(x: Any, m: Any) -> Any:
        return np.sin(m @ x), np.sum(x**2)

    (d_x, d_m), (e_x, e_m) = ft.jacobian(f, (0, 1), mode=mode, chunk_size=chunk_size)(X, M)
    slope = np.cos(M @ X)
    assert_close(d_x, slope[:, None] * M)
    assert_close(d_m, np.einsum("i,ij,k->ijk", slope, np.eye(2), X))
    assert_close(e_x, 2 * X)
    assert_close(e_m, np.zeros((2, 3)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(), (2,), (2, 1, 3), (0,), (0, 2)])
@pytest.mark.parametrize("result", [(), (4,), (1, 2), (0,)])
def test_jacobian_shapes(mode: Any, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).uniform(1, 2, shape)
    weights = np.random.default_rng(1).uniform(1, 2, result + shape)

    def f(x: Any) -> Any:
        return np.sum(weights * x**2, axis=tuple(range(len(result), weights.ndim)))

    assert_close(ft.jacobian(f, mode=mode)(x), weights * 2 * x)


@pytest.mark.parametrize("mode", MODES)
def test_value_and_jacobian(mode: Any) -> None:
    value, blocks = ft.value_and_jacobian(lambda x: {"a": np.exp(x), "b": 1.0}, mode=mode)(X)
    assert_close(value["a"], np.exp(X))
    assert_close(blocks["a"], np.diag(np.exp(X)))
    assert_close(blocks["b"], np.zeros(3))


def test_jacobian_with_respect_to_a_container() -> None:
    blocks = ft.jacobian(lambda p: p["m"] @ p["x"])({"m": M, "x": X})
    assert_close(blocks["x"], M)
    assert_close(blocks["m"], np.einsum("ij,k->ijk", np.eye(2), X))


def test_hessian_of_containers() -> None:
    def f(p: Any) -> Any:
        return np.sum(p.slope**2) * p.offset

    second = ft.hessian(f)(Line(X, 2.0))
    assert_close(second.slope.slope, 4.0 * np.eye(3))
    assert_close(second.slope.offset, 2 * X)
    assert_close(second.offset.slope, 2 * X)
    assert second.offset.offset == 0.0


def test_hessian_of_several_arguments() -> None:
    (xx, xy), (yx, yy) = ft.hessian(lambda x, y: np.sum(x**2) * y**3, (0, 1))(X, 2.0)
    assert_close(xx, 16 * np.eye(3))
    assert_close(xy, 24 * X)
    assert_close(yx, 24 * X)
    assert yy == 168.0
    assert ft.hessian(lambda x, y: x * y**3, 1)(2.0, 3.0) == 36.0


def test_hessian_in_chunks() -> None:
    x = np.linspace(0.5, 1.5, 7)
    for chunk_size in (1, 3, 7, 50):
        assert_close(ft.hessian(rosenbrock, chunk_size=chunk_size)(x), rosen_hess(x))


def test_hvp() -> None:
    x, v = np.linspace(0.5, 1.5, 6), np.linspace(-1, 1, 6)
    assert_close(ft.hvp(rosenbrock, (x,), (v,)), rosen_hess(x) @ v)
    products = ft.hvp(lambda x, y: x**2 * y, (2.0, 3.0), (1.0, 10.0))
    assert_same_tree(products, (np.float64(46.0), np.float64(4.0)))
    by_name = ft.hvp(lambda p: p["a"] ** 3, ({"a": 2.0},), ({"a": 1.0},))
    assert_same_tree(by_name, {"a": np.float64(12.0)})


def test_third_derivatives_by_nesting_jacobians() -> None:
    third = ft.jacobian(ft.hessian(lambda x: np.prod(x)))(X)
    expected = np.zeros((3, 3, 3))
    for i, j, k in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        expected[i, j, k] = 1.0
    assert_close(third, expected)


# Dtypes


def test_float32_stays_float32() -> None:
    x = np.arange(3, dtype=np.float32)
    f = lambda x: np.sum(np.exp(np.sin(2 * x + 0.5)) / 3)  # noqa: E731
    for result in (f(x), ft.grad(f)(x), *ft.value_and_grad(f)(x), ft.hessian(f)(x), ft.jit(ft.grad(f))(x)):
        assert result.dtype == np.float32
    assert ft.jacobian(lambda x: x * 2.5)(x).dtype == np.float32
    assert ft.vmap(lambda x: x * 2.5)(x).dtype == np.float32
    assert ft.jvp(np.sin, (x,), (x,))[1].dtype == np.float32


def test_half_precision_stays_half_precision() -> None:
    x = np.ones(3, np.float16)
    assert ft.grad(lambda x: np.sum(x**2 * 1.5))(x).dtype == np.float16


def test_python_numbers_count_as_float64() -> None:
    for x in (3, 3.0, True):
        slope = ft.grad(lambda x: x**2)(x)
        assert type(slope) is np.float64
        assert slope == 2.0 * x


def test_python_integers_count_as_float64_in_a_trace() -> None:
    assert ft.jit(ft.grad(lambda x: x**2))(3) == 6.0
    assert ft.grad(lambda x: x * ft.grad(lambda y: y**2)(3))(1.0) == 6.0
    with pytest.raises(TypeError, match="i64"):
        ft.jit(ft.grad(lambda x: x**2))(np.int64(3))


def test_zeros_keep_their_sign() -> None:
    f = lambda x: np.copysign(x, -0.0) + 10 * np.copysign(x, 0.0)  # noqa: E731
    for x in (2.0, np.array([2.0])):
        assert_close(ft.jvp(f, (x,), (np.ones_like(x),))[0], np.asarray(18.0 * np.ones_like(x))[()])
    assert ft.grad(lambda x: np.arctan2(0.0, -abs(x)) + np.arctan2(-0.0, -abs(x)))(1.0) == 0.0
    assert ft.trace(lambda x: np.arctan2(-0.0, x))(-1.0)(-1.0)[0] == -np.pi


def test_python_numbers_are_weak() -> None:
    x32 = np.array([1.0, 2.0], np.float32)
    seen = []

    def f(a: Any) -> Any:
        y = a * x32
        seen.append(y.dtype)
        return np.sum(y)

    slope = ft.grad(f)(2.0)
    assert seen == [np.float32]
    assert type(slope) is np.float64
    assert slope == 3.0
    assert ft.grad(lambda x: np.sum(x * 2 + 1))(x32).dtype == np.float32
    # A NumPy scalar is not weak.
    ft.grad(f)(np.float64(2.0))
    assert seen[-1] == np.float64


def test_mixed_dtypes() -> None:
    x32, x64 = np.ones(2, np.float32), np.ones(2)
    slope32, slope64 = ft.grad(lambda x, y: np.sum(x * y), (0, 1))(x32, x64)
    assert (slope32.dtype, slope64.dtype) == (np.float32, np.float64)
    assert ft.jacobian(lambda x: x.astype(np.float64))(x32).dtype == np.float64
    assert ft.jvp(lambda x: x * np.arange(2), (x32,), (x32,))[1].dtype == np.float64


def test_integer_results_have_no_derivative() -> None:
    out, pushed = ft.jvp(lambda x: (np.argmax(x), x > 1, x), (X,), (np.ones(3),))
    assert out[0] == 2
    assert_close(pushed[2], np.ones(3))


# What users get is theirs


def test_results_are_writable_and_not_aliased() -> None:
    x, y = X.copy(), X.copy()
    results = [
        ft.grad(lambda x: np.sum(x * y))(x),
        *ft.grad(lambda x, y: np.sum(x * y), (0, 1))(x, y),
        *ft.jvp(lambda x: x, (x,), (y,)),
        ft.vjp(lambda x: x, x)[0],
        ft.vjp(lambda x: x, x)[1](y)[0],
        ft.linearize(lambda x: x, x)[1](y),
        ft.linear_transpose(lambda x: x, x)(y)[0],
        ft.jacobian(lambda x: x * y)(x),
        ft.vmap(lambda x: x)(x),
        ft.jit(lambda x: x)(x),
        ft.jit(lambda x: y)(x),
        ft.grad(lambda x: np.sum(x))(x),
    ]
    for i, result in enumerate(results):
        assert result.flags.writeable
        assert not np.may_share_memory(result, x)
        assert not np.may_share_memory(result, y)
        assert not any(np.may_share_memory(result, other) for other in results[:i])
        result[...] = 7.0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, X)


def test_names_and_docstrings_are_kept() -> None:
    def energy(x: Any) -> Any:
        """Says what it is."""
        return x

    assert ft.grad(energy).__doc__ == "Says what it is."
    assert ft.grad(energy).__name__ == "grad(energy)"
    assert ft.hessian(ft.jit(energy)).__name__
