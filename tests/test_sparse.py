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

import ftrans as ft

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


# Mistakes


def test_other_types_than_prepared() -> None:
    prepared = ft.sparse_jacobian(chain).prepare(X)
    with pytest.raises(ValueError, match=re.escape("prepared for f64[5] (number 0 of the arrays")):
        prepared(np.ones(6))
    with pytest.raises(ValueError, match=re.escape("called with f64[6]")):
        prepared.values(np.ones(6))
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
    (TypeError, "pattern given to sparse_jacobian is", lambda: ft.sparse_jacobian(chain, pattern="banded")),
    (TypeError, "takes a function", lambda: ft.sparse_jacobian(X)),  # type: ignore[arg-type]
    (TypeError, "needs floating-point results", lambda: ft.sparse_jacobian(lambda x: x > 0)(X)),
    (TypeError, "floating-point arrays", lambda: ft.sparse_jacobian(chain)(np.arange(5))),
    (TypeError, "functions with a scalar result", lambda: ft.sparse_hessian(chain)(X)),
    (TypeError, "returned a container", lambda: ft.sparse_hessian(lambda x: (x[0], x[1]))(X)),
    (TypeError, "complex arguments", lambda: ft.sparse_jacobian(np.sin)(X + 1j)),
    (TypeError, r"numpy\.sum needs the entries", lambda: ft.jit(lambda x: np.sum(ft.sparse_jacobian(chain)(x)))(X)),
    (AttributeError, r"\.tocsc needs", lambda: ft.jit(lambda x: ft.sparse_jacobian(chain)(x).tocsc())(X)),
    (TypeError, "prepared for traced", lambda: ft.jit(lambda x: ft.sparse_jacobian(chain).prepare(x).values(x))(X)),
]


@pytest.mark.parametrize(("error", "message", "call"), MISTAKES, ids=[m for _, m, _ in MISTAKES])
def test_mistakes(error: type[Exception], message: str, call: Function) -> None:
    with pytest.raises(error, match=message):
        call()
