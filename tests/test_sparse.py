"""Sparse Jacobians and Hessians: values against dense derivatives, formats, containers, prepared calls, mistakes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.sparse import BCOO
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

import ftrans as ft
from ftrans.autograd import tensor

Function = Callable[..., Any]
X = np.array([0.3, -1.2, 0.7, 2.1, 1.4])


def chain(x: Any) -> Any:
    """A function of neighbours."""
    return np.sin(x[1:]) * x[:-1] ** 2


def rosenbrock(x: Any) -> Any:
    """A scalar function of neighbours."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


# Formats


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_the_formats_of_scipy(format: Any) -> None:
    found = ft.sparse_jacobian(chain, format=format)(X)
    assert isinstance(found, sparse.sparray)
    assert found.format == format
    np.testing.assert_allclose(found.toarray(), ft.jacobian(chain)(X), rtol=1e-14)
    found = ft.sparse_hessian(rosenbrock, format=format)(X)
    np.testing.assert_allclose(found.toarray(), ft.hessian(rosenbrock)(X), rtol=1e-13)


def test_the_lower_triangle() -> None:
    found = ft.sparse_hessian(rosenbrock, triangle="lower")(X)
    np.testing.assert_allclose(found.toarray(), np.tril(ft.hessian(rosenbrock)(X)), rtol=1e-13)


def test_dense_values_and_bcoo() -> None:
    J = ft.jacobian(chain)(X)
    dense = ft.sparse_jacobian(chain, format="dense")(X)
    np.testing.assert_allclose(dense, J, rtol=1e-14)
    prepared = ft.sparse_jacobian(chain, format="values").prepare(X)
    for values in (prepared(X), prepared.values(X), ft.sparse_jacobian(chain, format="values")(X)):
        assert isinstance(values, np.ndarray)
        np.testing.assert_allclose(values, J[prepared.rows, prepared.cols], rtol=1e-14)
    bcoo = ft.sparse_jacobian(chain, format="bcoo")(X)
    assert isinstance(bcoo, BCOO)
    assert bcoo.dtype == np.float64
    with jax.enable_x64(True):
        np.testing.assert_allclose(bcoo.todense(), J, rtol=1e-14)


def test_matrices_share_no_memory() -> None:
    prepared = ft.sparse_jacobian(chain).prepare(X)
    first = prepared(X)
    expected = first.toarray()
    first.data[:] = 0
    first.eliminate_zeros()
    np.testing.assert_array_equal(prepared(X).toarray(), expected)


def test_jax_arrays_stay_on_their_device() -> None:
    x = jnp.asarray(X, np.float32)
    found = ft.sparse_jacobian(chain)(x)
    assert isinstance(found.values, type(x))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.to_scipy().toarray(), ft.jacobian(chain)(X), rtol=1e-5)
    assert isinstance(ft.sparse_jacobian(chain).prepare(x)(x).values, type(x))
    assert isinstance(ft.sparse_jacobian(chain, format="bcoo")(x), BCOO)


# Arguments and results


def test_containers_and_argnums_nest_as_those_of_jacobian() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"a": x["u"] * np.sum(y), "b": (y * x["v"], x["u"][:2])}

    x = {"u": X, "v": 2.0}
    y = np.arange(6.0).reshape(2, 3)
    found, expected = ft.sparse_jacobian(f, (0, 1))(x, y), ft.jacobian(f, (0, 1))(x, y)
    prepared = ft.sparse_jacobian(f, (0, 1)).prepare(x, y)(x, y)
    for key in (lambda r: r["a"][0]["u"], lambda r: r["b"][0][1], lambda r: r["b"][1][0]["v"], lambda r: r["a"][1]):
        for block in (key(found), key(prepared)):
            np.testing.assert_allclose(block.toarray(), np.reshape(key(expected), block.shape), rtol=1e-14)
    assert found["b"][0][1].shape == (6, 6)


def test_blocks_of_a_hessian() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(x**3) * y[0] + y[1] ** 2

    y = np.array([2.0, 3.0])
    expected = ft.hessian(f, (0, 1))(X, y)
    found = ft.sparse_hessian(f, (0, 1))(X, y)
    for i in range(2):
        for j in range(2):
            np.testing.assert_allclose(found[i][j].toarray(), expected[i][j], rtol=1e-13)


def test_values_and_auxiliary_results() -> None:
    def f(x: Any) -> Any:
        return chain(x), {"norm": np.sum(x * x), "name": "chain"}

    (value, aux), J = ft.value_and_sparse_jacobian(f, has_aux=True)(X)
    np.testing.assert_allclose(value, chain(X))
    np.testing.assert_allclose(J.toarray(), ft.jacobian(chain)(X), rtol=1e-14)
    assert aux["name"] == "chain"
    assert aux["norm"] == np.sum(X * X)
    J, aux = ft.sparse_jacobian(f, has_aux=True)(X)
    assert aux["norm"] == np.sum(X * X)
    assert J.shape == (4, 5)
    value, H = ft.value_and_sparse_hessian(rosenbrock)(X)
    np.testing.assert_allclose(value, rosenbrock(X))
    np.testing.assert_allclose(H.toarray(), ft.hessian(rosenbrock)(X), rtol=1e-13)


def test_other_arguments_are_inputs_of_a_prepared_derivative() -> None:
    def f(x: Any, scale: Any, kind: str, *, power: Any) -> Any:
        return scale * x**power if kind == "power" else x

    prepared = ft.sparse_jacobian(f).prepare(X, 2.0, "power", power=2)
    found = prepared(X, 3.0, "power", power=2)
    np.testing.assert_allclose(found.toarray(), np.diag(6.0 * X), rtol=1e-14)
    with pytest.raises(ValueError, match="'power', which is no array, and was called with 'other'"):
        prepared(X, 3.0, "other", power=2)


def test_single_precision_stays() -> None:
    x = X.astype(np.float32)
    assert ft.sparse_jacobian(chain)(x).dtype == np.float32
    assert ft.sparse_hessian(rosenbrock).prepare(x)(x).dtype == np.float32


# Inside other transformations


def test_inside_jit_values_are_traced_and_the_pattern_is_known() -> None:
    def products(x: Any) -> Any:
        J = ft.sparse_jacobian(chain)(x)
        assert isinstance(J.rows, np.ndarray)
        assert J.shape == (4, 5)
        return J, J @ x, chain(x) @ J, J.T @ chain(x), J.todense()

    J, right, left, turned, dense = ft.jit(products)(X)
    expected = ft.jacobian(chain)(X)
    assert isinstance(J, sparse.csr_array)
    np.testing.assert_allclose(J.toarray(), expected, rtol=1e-13)
    np.testing.assert_allclose(right, expected @ X, rtol=1e-13)
    np.testing.assert_allclose(left, chain(X) @ expected, rtol=1e-13)
    np.testing.assert_allclose(turned, chain(X) @ expected, rtol=1e-13)
    np.testing.assert_allclose(dense, expected, rtol=1e-13)


@pytest.mark.parametrize("prepare", [False, True])
def test_derivatives_of_the_entries(prepare: bool) -> None:
    derivative = ft.sparse_hessian(rosenbrock)
    of_x = derivative.prepare(X, compile=False) if prepare else derivative

    def norm(x: Any) -> Any:
        return np.sum(of_x(x).values ** 2)

    def expected(x: Any) -> Any:
        return np.sum(ft.hessian(rosenbrock)(x) ** 2)

    np.testing.assert_allclose(ft.grad(norm)(X), ft.grad(expected)(X), rtol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.grad(norm))(X), ft.grad(expected)(X), rtol=1e-12)


def test_a_batch_of_matrices() -> None:
    batch = np.stack([X, 2 * X, -X])
    found = ft.vmap(ft.sparse_jacobian(chain))(batch)
    assert found.values.shape == (3, found.nnz)
    for values, x in zip(found.values, batch, strict=True):
        J = sparse.coo_array((values, (found.rows, found.cols)), shape=found.shape)
        np.testing.assert_allclose(J.toarray(), ft.jacobian(chain)(x), rtol=1e-13)


# Prepared


def test_repeated_calls_trace_nothing() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return chain(x)

    for is_compiled in (False, True):
        prepared = ft.sparse_jacobian(f).prepare(X, compile=is_compiled)
        calls.clear()
        np.testing.assert_allclose(prepared(2 * X).toarray(), ft.jacobian(chain)(2 * X), rtol=1e-13)
        assert not calls


def test_pickled_and_prepared_again() -> None:
    prepared = pickle.loads(pickle.dumps(ft.sparse_jacobian(chain).prepare(X, compile=False)))
    np.testing.assert_allclose(prepared(X).toarray(), ft.jacobian(chain)(X), rtol=1e-14)


def test_prepared_inside_other_transformations() -> None:
    prepared = ft.sparse_jacobian(chain).prepare(X)
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(ft.vmap(prepared.values)(batch)[1], prepared.values(2 * X), rtol=1e-13)
    assert isinstance(ft.jit(prepared)(X), sparse.csr_array)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(prepared.values)(jnp.asarray(X)), prepared.values(X), rtol=1e-13)
    with pytest.raises(ValueError, match=r"and was called with f32\[5\]"):
        prepared.values(jnp.asarray(X, np.float32))


def test_entries_of_tensors_have_a_graph() -> None:
    x = tensor(X, requires_grad=True)
    (ft.sparse_jacobian(chain)(x).values ** 2).sum().backward()
    expected = ft.grad(lambda x: np.sum(ft.jacobian(chain)(x) ** 2))(X)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_nothing_to_differentiate() -> None:
    assert ft.sparse_jacobian(lambda x: x * x).prepare(np.zeros(0))(np.zeros(0)).shape == (0, 0)
    assert ft.sparse_jacobian(lambda x: np.ones(3))(X).nnz == 0
    assert ft.sparse_hessian(np.sum)(X).nnz == 0
    assert ft.sparse_jacobian(lambda x: x * x).prepare(3.0)(4.0).toarray() == [[8.0]]


def test_complex_results() -> None:
    def f(x: Any) -> Any:
        return np.exp(1j * x[1:]) * x[:-1]

    prepared = ft.sparse_jacobian(f).prepare(X)
    np.testing.assert_allclose(prepared(X).toarray(), ft.jacobian(f)(X), rtol=1e-13)
    np.testing.assert_allclose(prepared.operator(X) @ X, ft.jacobian(f)(X) @ X, rtol=1e-13)


# Mistakes


def test_other_types_than_prepared() -> None:
    prepared = ft.sparse_jacobian(chain).prepare(X)
    with pytest.raises(ValueError, match=re.escape("prepared for f64[5] (number 0 of the arrays")):
        prepared(np.ones(6))
    with pytest.raises(ValueError, match=re.escape("called with f64[6]")):
        prepared.values(np.ones(6))
    with pytest.raises(ValueError, match="called with what is of type list"):
        prepared([1.0, 2.0, 3.0, 4.0, 5.0])
    with pytest.raises(ValueError, match="1 positional arguments, and was called with 2"):
        prepared(X, X)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_another_path_than_prepared(is_compiled: bool) -> None:
    def f(x: Any) -> Any:
        return x * x if x[0] > 0 else x[::-1]

    prepared = ft.sparse_jacobian(f).prepare(X, compile=is_compiled)
    np.testing.assert_allclose(prepared(2 * X).toarray(), np.diag(4 * X))
    with pytest.raises(ValueError, match="saw True, and sees False"):
        prepared(-X)
    np.testing.assert_allclose(ft.sparse_jacobian(f)(-X).toarray(), np.eye(5)[::-1])


MISTAKES: list[tuple[type[Exception], str, Function]] = [
    (ValueError, 'format must be one of "csr"', lambda: ft.sparse_jacobian(chain, format="matrix")),  # type: ignore
    (ValueError, 'method must be one of "auto"', lambda: ft.sparse_jacobian(chain, method="star")),  # type: ignore
    (ValueError, 'method must be one of "auto"', lambda: ft.sparse_hessian(rosenbrock, method="forward")),  # type: ignore
    (ValueError, 'triangle must be "full"', lambda: ft.sparse_hessian(rosenbrock, triangle="upper")),  # type: ignore
    (ValueError, "chunk_size must be", lambda: ft.sparse_jacobian(chain, chunk_size=0)),
    (ValueError, r"has the shape \(2, 2\)", lambda: ft.sparse_jacobian(chain, pattern=np.eye(2))(X)),
    (TypeError, "sparse_jacobian takes a pattern", lambda: ft.sparse_jacobian(chain, pattern="banded")),
    (TypeError, "takes a function", lambda: ft.sparse_jacobian(X)),  # type: ignore[arg-type]
    (TypeError, "needs floating-point results", lambda: ft.sparse_jacobian(lambda x: x > 0)(X)),
    (TypeError, "floating-point arrays", lambda: ft.sparse_jacobian(chain)(np.arange(5))),
    (TypeError, "functions with a scalar result", lambda: ft.sparse_hessian(chain)(X)),
    (TypeError, "returned a container", lambda: ft.sparse_hessian(lambda x: (x[0], x[1]))(X)),
    (TypeError, "complex arguments", lambda: ft.sparse_jacobian(np.sin)(X + 1j)),
    (TypeError, "no sparse arrays of float16", lambda: ft.sparse_jacobian(chain)(X.astype(np.float16))),
    (TypeError, "arithmetic needs the entries", lambda: ft.jit(lambda x: 2 * ft.sparse_jacobian(chain)(x))(X)),
    (TypeError, "missing.*'multipliers'", lambda: ft.lagrangian_hessian(rosenbrock, chain)(X)),
    (TypeError, r"numpy\.sum needs the entries", lambda: ft.jit(lambda x: np.sum(ft.sparse_jacobian(chain)(x)))(X)),
    (AttributeError, r"\.tocsc needs", lambda: ft.jit(lambda x: ft.sparse_jacobian(chain)(x).tocsc())(X)),
    (TypeError, "point that is traced", lambda: ft.jit(lambda x: ft.jacobian_sparsity(chain, at=x)().nnz * x)(X)),
    (TypeError, "scalar result", lambda: ft.hessian_sparsity(chain)(X)),
    (TypeError, "prepared for traced", lambda: ft.jit(lambda x: ft.sparse_jacobian(chain).prepare(x).values(x))(X)),
]


def test_dense_matrices_that_do_not_fit() -> None:
    x = np.zeros(10**6)
    with pytest.raises(MemoryError, match=r"7,450\.6 GiB.*1000000 entries: leave out format"):
        ft.sparse_jacobian(np.sin, format="dense")(x)
    with pytest.raises(MemoryError, match=r"would take 7,450\.6 GiB, and this machine has .* hvp, jvp or vjp"):
        ft.sparse_jacobian(np.sin, method="dense")(x)


@pytest.mark.parametrize(("error", "message", "call"), MISTAKES, ids=[m for _, m, _ in MISTAKES])
def test_mistakes(error: type[Exception], message: str, call: Function) -> None:
    with pytest.raises(error, match=message):
        call()


def test_what_cannot_be_pickled() -> None:
    prepared = ft.sparse_jacobian(lambda x: x * x).prepare(X, compile=False)
    with pytest.raises(pickle.PicklingError, match="define the function in a module"):
        pickle.dumps(prepared)


# Solvers' matrices


def test_the_hessian_of_a_lagrangian_function() -> None:
    multipliers = np.array([0.5, -1.0, 2.0, 3.0])

    def lagrangian(x: Any) -> Any:
        return 0.7 * rosenbrock(x) + multipliers @ chain(x)

    expected = ft.hessian(lagrangian)(X)
    hessian = ft.lagrangian_hessian(rosenbrock, chain)
    prepared = hessian.prepare(np.ones(5), np.ones(4))
    for found in (hessian(X, multipliers, 0.7), prepared(X, multipliers, 0.7)):
        np.testing.assert_allclose(found.toarray(), np.tril(expected), rtol=1e-12)
    full = ft.lagrangian_hessian(rosenbrock, chain, triangle="full")(X, multipliers, sigma=0.7)
    np.testing.assert_allclose(full.toarray(), expected, rtol=1e-12)
    np.testing.assert_allclose(prepared.operator(X, multipliers, 0.7) @ X, expected @ X, rtol=1e-12)
    np.testing.assert_allclose(
        ft.lagrangian_hessian(None, chain, triangle="full")(X, multipliers).toarray(),
        ft.hessian(lambda x: multipliers @ chain(x))(X),
        rtol=1e-12,
    )
    np.testing.assert_array_equal(prepared(X, multipliers).toarray(), prepared(X, multipliers, 1.0).toarray())
    again = pickle.loads(pickle.dumps(prepared))
    np.testing.assert_array_equal(again.values(X, multipliers, 0.7), prepared.values(X, multipliers, 0.7))
    with pytest.raises(ValueError, match=r"arrays of the shapes \(4,\), but they have \(5,\)"):
        hessian(X, X)


def test_gauss_newton() -> None:
    def residuals(x: Any, y: Any) -> Any:
        return chain(x) * y, {"more": x[:2] ** 2 - y}

    y = np.float64(3.0)
    J = np.concatenate([ft.jacobian(residuals)(X, y)[0], ft.jacobian(residuals)(X, y)[1]["more"]])
    derivative = ft.gauss_newton(residuals)
    prepared = derivative.prepare(np.ones(5), y)
    for found in (derivative(X, y), prepared(X, y)):
        np.testing.assert_allclose(found.toarray(), J.T @ J, rtol=1e-12)
        assert found.nnz == 13
    for operator in (derivative.operator(X, y), prepared.operator(X, y)):
        np.testing.assert_allclose(operator @ X, J.T @ (J @ X), rtol=1e-12)
    blocks = ft.gauss_newton(residuals, (1, 0))(X, y)
    column = np.concatenate([chain(X), -np.ones(2)])
    np.testing.assert_allclose(blocks[1][0].toarray()[:, 0], J.T @ column, rtol=1e-12)
    np.testing.assert_allclose(blocks[0][0].toarray(), [[column @ column]], rtol=1e-12)


# Methods


@pytest.mark.parametrize("method", ["auto", "elimination", "forward", "reverse", "bidirectional", "dense"])
def test_methods_for_jacobians(method: Any) -> None:
    def f(x: Any) -> Any:
        return np.concatenate([np.sin(x[1:]) * x[:-1] ** 2, x[:1] * np.exp(x[2])])

    derivative = ft.sparse_jacobian(f, method=method, chunk_size=2)
    for found in (derivative(X), derivative.prepare(X)(X)):
        np.testing.assert_allclose(found.toarray(), ft.jacobian(f)(X), rtol=1e-13, atol=1e-13)
        assert found.nnz == 10


@pytest.mark.parametrize("triangle", ["full", "lower"])
@pytest.mark.parametrize("method", ["auto", "elimination", "star", "acyclic", "dense"])
def test_methods_for_hessians(method: Any, triangle: Any) -> None:
    derivative = ft.sparse_hessian(rosenbrock, method=method, triangle=triangle)
    expected = ft.hessian(rosenbrock)(X)
    for found in (derivative(X), derivative.prepare(X)(X)):
        np.testing.assert_allclose(
            found.toarray(), expected if triangle == "full" else np.tril(expected), rtol=1e-12, atol=1e-11
        )
        assert found.nnz == (13 if triangle == "full" else 9)


def test_a_matrix_that_is_full_has_all_entries() -> None:
    A = np.random.default_rng(1).normal(size=(40, 7))

    def loss(w: Any) -> Any:
        return np.sum(np.log1p(np.exp(A @ np.tanh(A.T @ (A @ w)))))

    w = np.linspace(-0.1, 0.1, 7)
    found = ft.sparse_hessian(loss)(w)
    assert found.nnz == 49
    np.testing.assert_allclose(found.toarray(), ft.hessian(loss)(w), rtol=1e-9, atol=1e-9)


def test_a_pattern_of_the_user_is_used_and_compared() -> None:
    right = np.eye(4, 5, dtype=bool) | np.eye(4, 5, 1, dtype=bool)
    band = right.copy()
    band[3, 4] = False
    expected = ft.jacobian(chain)(X)
    for pattern in (right, sparse.csr_array(right), sparse.coo_matrix(right)):
        found = ft.sparse_jacobian(chain, pattern=pattern)(X)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-14)
    for method in ("auto", "forward", "reverse", "bidirectional", "dense"):
        wrong = ft.sparse_jacobian(chain, pattern=band, method=method)
        for call in (wrong, wrong.prepare):
            with pytest.raises(ValueError, match=r"no entry at row 3, column 4, where the derivative is -?\d"):
                call(X)
    with pytest.raises(ValueError, match=r"row 3, column 4, which may be non-zero; with traced arguments"):
        ft.jit(ft.sparse_jacobian(chain, pattern=band, method="forward"))(X)
    full = np.eye(5, dtype=bool) | np.eye(5, 5, 1, dtype=bool) | np.eye(5, 5, -1, dtype=bool)
    np.testing.assert_allclose(
        ft.sparse_hessian(rosenbrock, pattern=full)(X).toarray(), ft.hessian(rosenbrock)(X), rtol=1e-12
    )
    with pytest.raises(ValueError, match=r"no entry at row \d, column \d"):
        ft.sparse_hessian(rosenbrock, pattern=np.eye(5))(X)


def test_a_method_that_cannot_be() -> None:
    def f(x: Any) -> Any:
        return np.fft.fft(x)

    with pytest.raises(ValueError, match=r'cannot be found by method="elimination": .*complex'):
        ft.sparse_jacobian(f, method="elimination")(X)
    with pytest.raises(ValueError, match=r'cannot be found by method="reverse": .*half of the derivative'):
        ft.sparse_jacobian(f, method="reverse")(X)
    np.testing.assert_allclose(ft.sparse_jacobian(f)(X).toarray(), ft.jacobian(f)(X), rtol=1e-13, atol=1e-13)


def test_real_functions_of_complex_arguments() -> None:
    def f(z: Any) -> Any:
        return np.abs(z[1:]) ** 2 + z[:-1].real

    z = X + 1j * X[::-1]
    np.testing.assert_allclose(ft.sparse_jacobian(f)(z).toarray(), ft.jacobian(f)(z), rtol=1e-13)


# Patterns


def test_patterns_without_values() -> None:
    pattern = ft.jacobian_sparsity(chain)(X)
    assert pattern == ft.Sparsity.from_dense(ft.jacobian(chain)(X) != 0)
    assert ft.sparse_jacobian(chain).prepare(X, compile=False).sparsity == pattern
    assert ft.hessian_sparsity(rosenbrock)(X) == ft.Sparsity.from_dense(ft.hessian(rosenbrock)(X) != 0)
    found = ft.sparse_jacobian(chain, pattern=pattern, method="forward")(X)
    np.testing.assert_allclose(found.toarray(), ft.jacobian(chain)(X), rtol=1e-14)

    def several(x: Any, y: Any) -> Any:
        return x * y[0], y[::-1]

    found = ft.jacobian_sparsity(several, (0, 1))(np.ones(2), np.ones(2))
    expected = [[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    np.testing.assert_array_equal(found.to_scipy().toarray(), expected)


def test_the_pattern_at_a_point_has_the_side_that_is_chosen() -> None:
    def f(x: Any) -> Any:
        return np.where(x > 0, x**2, x[::-1])

    x = np.array([1.0, 2.0, -1.0])
    assert ft.jacobian_sparsity(f)(x).nnz == 5
    at_x = ft.Sparsity([0, 1, 2], [0, 1, 0], (3, 3))
    assert ft.jacobian_sparsity(f, at=x)() == at_x
    assert ft.jacobian_sparsity(f, at=(x,))(x) == at_x
    # Second derivatives of a side that is not chosen may stay in the pattern.
    assert ft.hessian_sparsity(lambda x: np.sum(f(x)), at=x)().covers(ft.Sparsity([0, 1], [0, 1], (3, 3)))


# Operators and checks


@pytest.mark.parametrize("is_compiled", [False, True])
def test_operators(is_compiled: bool) -> None:
    J, H = ft.jacobian(chain)(X), ft.hessian(rosenbrock)(X)
    random = np.random.default_rng(0)
    right, left = random.normal(size=(5, 3)), random.normal(size=(4, 3))
    A = ft.sparse_jacobian(chain).prepare(X, compile=is_compiled).operator(X)
    B = ft.sparse_hessian(rosenbrock).prepare(2 * X, compile=is_compiled).operator(X)
    assert isinstance(A, LinearOperator)
    for found, expected in (
        (A @ right, J @ right),
        (A @ right[:, 0], J @ right[:, 0]),
        (A.H @ left, J.T @ left),
        (A.T @ left[:, :1], J.T @ left[:, :1]),
        (B @ right, H @ right),
        (B.T @ right[:, 0], H @ right[:, 0]),
        (ft.sparse_jacobian(chain).operator(X) @ right[:, 0], J @ right[:, 0]),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_operators_of_several_arguments_and_results() -> None:
    def f(x: Any, y: Any) -> Any:
        return x[:2] * y, (np.sum(x), y.astype(np.float32) ** 2)

    y = np.float64(3.0)
    prepared = ft.sparse_jacobian(f, (0, 1), format="values").prepare(X, y)
    J = sparse.coo_array((prepared.values(X, y), (prepared.rows, prepared.cols)), shape=prepared.shape).toarray()
    A = prepared.operator(X, y)
    np.testing.assert_allclose(A @ np.eye(6), J, rtol=1e-6)
    np.testing.assert_allclose(A.T @ np.eye(4), J.T, rtol=1e-6)


def test_check_names_what_has_changed() -> None:
    scale = [1.0]

    def f(x: Any) -> Any:
        return x**2 * np.array([1.0, 1.0, 1.0, scale[0], 1.0])

    prepared = ft.sparse_jacobian(f).prepare(X)
    prepared.check(X)
    scale[0] = 2.0
    with pytest.raises(ValueError, match=r"wrong at row 3, column 3, which is 4\.2 in the matrix and should be 8\.4"):
        prepared.check(X)
    ft.sparse_hessian(rosenbrock, triangle="lower").prepare(X).check(2 * X)


@pytest.mark.parametrize("size", [5, 20000])
def test_an_array_that_the_function_closes_over_has_changed(size: int) -> None:
    scale, frozen = np.ones(size), np.arange(size)[::-1]

    def f(x: Any) -> Any:
        made = np.arange(float(size))
        return ft.jit(lambda x: scale * x**2)(x) + ft.grad(lambda x: np.sum(scale * x**3))(x)[frozen] + made

    x = np.ones(size)
    prepared = ft.sparse_jacobian(f).prepare(x, compile=False)
    before = prepared.values(x)
    scale[3] = 2.0
    for call in (prepared, prepared.values, prepared.operator):
        with pytest.raises(ValueError, match=rf"array of shape \({size},\) that the function closes over"):
            call(x)
    scale[3] = 1.0
    np.testing.assert_array_equal(prepared.values(x), before)
    scale = np.zeros(size)
    np.testing.assert_array_equal(prepared.values(x), before)


def test_explain_says_how() -> None:
    text = ft.sparse_jacobian(chain).prepare(X).explain()
    assert "sparse_jacobian of chain: 4 x 5, 8 entries (40 %)" in text
    assert "elimination" in text
    assert "compiled by XLA" in text
    assert "% at test_sparse.py:" in text
    assert "8 entries made at test_sparse.py:" in text
    index = ft.sparse_jacobian(lambda x, i: x[i] ** 2).prepare(X, np.array([0, 2]), compile=False)
    assert "arguments that are integers or booleans" in index.explain()
    np.testing.assert_allclose(index(X, np.array([1, 1])).toarray()[:, 1], 2 * X[[1, 1]])
    assert "colours: 2" in ft.sparse_jacobian(chain, method="forward").prepare(X, compile=False).explain()
    given = ft.sparse_jacobian(chain, pattern=ft.jacobian_sparsity(chain)(X)).prepare(X, compile=False).explain()
    assert [line.split(":")[0] for line in given.splitlines()[1:4]] == ["engine", "colours", "bytes of the products"]
    assert "\nnot colouring, reverse products: " in given


def made_at(text: str, f: Any) -> dict[int, int]:
    """The numbers of entries by line, counted from the first line of a function."""
    found = re.findall(r"(\d+) entries made at test_sparse.py:(\d+)", text)
    return {int(line) - f.__code__.co_firstlineno: int(count) for count, line in found}


@pytest.mark.parametrize("method", ["auto", "dense"])
def test_explain_says_which_lines_made_entries(method: Any) -> None:
    def steps(x: Any) -> Any:
        d = x[1:] - x[:-1]
        e = np.sin(x[2:]) * x[:-2]
        return np.concatenate([3.0 * d, e + d[1:]])

    def energy(x: Any) -> Any:
        d = x[1:] - x[:-1] ** 2
        total = np.sum(d**2)
        return total + np.sum(np.exp(x[::2]))

    def moved(x: Any) -> Any:
        y = x[1:]
        return y - x[:-1]

    x = np.linspace(0.1, 1, 6)
    jacobian = ft.sparse_jacobian(steps, method=method).prepare(x, compile=False)
    assert made_at(jacobian.explain(), steps) == {3: 10, 2: 8}
    hessian = ft.sparse_hessian(energy, method=method).prepare(x, compile=False)
    assert made_at(hessian.explain(), energy) == {2: 16, 1: 5, 3: 3}
    assert made_at(ft.sparse_jacobian(moved, method=method).prepare(x, compile=False).explain(), moved) == {2: 10}
    lagrangian = ft.lagrangian_hessian(energy, steps).prepare(x, np.ones(9), compile=False)
    assert made_at(lagrangian.explain(), energy)[2] == 11


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "values", "dense"])
@pytest.mark.parametrize("f", [lambda x: 0.5 * x**2, lambda x: x[1:] * x[:-1]], ids=["in order", "in another order"])
def test_what_a_compiled_derivative_returns_belongs_to_the_caller(f: Callable[..., Any], format: Any) -> None:
    x = np.arange(1.0, 65.0)
    prepared = ft.sparse_jacobian(f, format=format).prepare(x)
    first, expected = prepared(x), ft.jacobian(f)(x)
    (first.data if sparse.issparse(first) else first)[...] = -1.0
    np.testing.assert_array_equal(x, np.arange(1.0, 65.0))
    second = prepared(x)
    if format == "values":
        second = sparse.coo_array((second, (prepared.rows, prepared.cols)), shape=prepared.shape)
    np.testing.assert_allclose(second.toarray() if sparse.issparse(second) else second, expected)


def test_matrices_of_mostly_zeros_are_known_values() -> None:
    size = 30
    bands = np.diag(np.full(size, -2.0)) + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)
    x = np.random.default_rng(0).standard_normal(size)

    def force(x: Any) -> Any:
        return np.sin(bands @ x) + x**2

    def energy(x: Any) -> Any:
        return np.sum((bands @ x) ** 4) + x @ bands @ x

    assert ft.jacobian_sparsity(force)(x).nnz == 3 * size - 2
    np.testing.assert_allclose(ft.sparse_jacobian(force)(x).toarray(), ft.jacobian(force)(x), rtol=1e-12, atol=1e-12)
    assert ft.hessian_sparsity(energy)(x).nnz == 5 * size - 6
    for method in ("elimination", "star"):
        hessian = ft.sparse_hessian(energy, method=method)(x)
        np.testing.assert_allclose(hessian.toarray(), ft.hessian(energy)(x), rtol=1e-11, atol=1e-10)
    prepared = ft.sparse_jacobian(force).prepare(x, compile=False)
    bands[0, -1] = 5.0
    assert ft.sparse_jacobian(force)(x).nnz == 3 * size - 1
    np.testing.assert_allclose(ft.sparse_jacobian(force)(x).toarray(), ft.jacobian(force)(x), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="closes over"):
        prepared.values(x)
