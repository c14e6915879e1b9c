"""`ftrans.scipy.sparse`: plain sparse arrays with traced values, and sparse arrays with traced entries."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import ftrans as ft
from ftrans.scipy import sparse

RNG = np.random.default_rng(0)
PLAIN = scipy.sparse.csr_array(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0]]))
ROWS, COLS = np.array([0, 2, 1, 0, 2]), np.array([0, 1, 2, 0, 2])
X, V, D = RNG.normal(size=5), RNG.normal(size=3), RNG.normal(size=(3, 3))
FORMATS = ("csr", "csc", "coo", "dia", "lil", "dok", "bsr")


def check_along(f: Callable[..., Any], reference: Callable[..., Any], x: Any) -> None:
    """Compare value and derivative along one direction with SciPy's, by central differences."""
    direction = np.cos(np.arange(x.size)).reshape(x.shape)
    value, slope = ft.jvp(f, (x,), (direction,))
    expected = np.asarray(reference(x))
    assert np.size(value) == expected.size
    np.testing.assert_allclose(value, expected.reshape(np.shape(value)), rtol=1e-13, atol=1e-14)
    step = 1e-5
    ends = [np.asarray(reference(x + s * direction)) for s in (step, -step)]
    np.testing.assert_allclose(slope, ((ends[0] - ends[1]) / (2 * step)).reshape(np.shape(value)), atol=1e-7)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "A @ x": lambda a, x: a @ x,
    "A @ columns": lambda a, x: a @ (x[:, None] * np.arange(1.0, 3.0)),
    "A.T @ x": lambda a, x: a.T @ x,
    "x @ A": lambda a, x: x @ a,
    "rows @ A": lambda a, x: (np.arange(1.0, 3.0)[:, None] * x) @ a,
    "c * A": lambda a, x: (x[0] * a) @ x,
    "A * c": lambda a, x: (a * x[0]).toarray(),
    "A / c": lambda a, x: (a / x[0]) @ x,
    "A - c * A": lambda a, x: (a - x[0] * a) @ x,
    "A + dense": lambda a, x: a + np.outer(x, x) if isinstance(x, np.ndarray) else a + x[:, None] * x,
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("format", FORMATS)
def test_plain_sparse_arrays_meet_traced_values(format: str, name: str) -> None:
    for made in (PLAIN.asformat(format), getattr(scipy.sparse, f"{format}_matrix")(PLAIN)):
        check_along(*[lambda x, a=made: OPERATORS[name](a, x)] * 2, V)


def test_products_in_every_mode() -> None:
    a = PLAIN.toarray()

    def f(x: Any) -> Any:
        return np.sum((PLAIN @ x) ** 3)

    hessian = 6 * a.T @ np.diag(a @ V) @ a
    for mode in (ft.hessian, lambda f: ft.jit(ft.hessian(f)), lambda f: lambda x: ft.sparse_hessian(f)(x).toarray()):
        np.testing.assert_allclose(mode(f)(V), hessian, atol=1e-13)
    np.testing.assert_allclose(ft.vmap(lambda x: PLAIN @ x)(D), D @ a.T, atol=1e-15)
    found = ft.sparse_jacobian(lambda x: PLAIN @ x)(V)
    np.testing.assert_array_equal(found.toarray(), a)
    assert found.nnz == PLAIN.nnz
    np.testing.assert_array_equal(ft.jit(lambda x: PLAIN @ x)(V), a @ V)
    whole = scipy.sparse.csr_array(PLAIN, dtype=int)
    assert ft.trace(lambda x: whole @ x)(V.astype(np.float32)).out_types[0].dtype == (whole @ V.astype("f4")).dtype


def test_columns_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"sparse array \(3, 3\) cannot multiply"):
        ft.trace(lambda x: PLAIN @ x)(X)


Matrices = Callable[[Any, ModuleType], Any]

OF_ENTRIES: dict[str, Matrices] = {
    "matvec": lambda a, m: a @ V,
    "vecmat": lambda a, m: V @ a,
    "transposed": lambda a, m: a.T @ D,
    "toarray": lambda a, m: a.toarray(),
    "diagonal": lambda a, m: a.diagonal(1),
    "trace": lambda a, m: a.trace(),
    "sum": lambda a, m: a.sum(),
    "sum 0": lambda a, m: a.sum(axis=0),
    "sum 1": lambda a, m: a.sum(axis=1),
    "mean": lambda a, m: a.mean(axis=0),
    "add": lambda a, m: (a + 2.0 * a.T.asformat(a.format)).toarray(),
    "add plain": lambda a, m: (plain_like(a) + a).toarray(),
    "subtract": lambda a, m: (a - plain_like(a)).toarray(),
    "sparse product": lambda a, m: (a @ a).toarray(),
    "plain product": lambda a, m: (plain_like(a) @ a).toarray(),
    "add dense": lambda a, m: np.asarray(a + D),
    "multiply": lambda a, m: a.multiply(D).toarray(),
    "multiply rows": lambda a, m: a.multiply(V).toarray(),
    "multiply columns": lambda a, m: a.multiply(V[:, None]).toarray(),
    "multiply sparse": lambda a, m: a.multiply(plain_like(a)).toarray(),
    "divide": lambda a, m: (a / 2.0).toarray(),
    "slice": lambda a, m: a.tocsr()[1:].toarray(),
    "fancy": lambda a, m: a.tocsr()[[2, 0], :2].toarray(),
    "pairs": lambda a, m: np.asarray(a.tocsr()[[2, 0, 1], [0, 2, 0]]).reshape(-1),
    "pairs that broadcast": lambda a, m: a.tocsr()[[[2], [0]], [0, 2]].toarray(),
    "row": lambda a, m: a.tocsr()[[1]].toarray(),
    "element": lambda a, m: a.tocsr()[0, 0],
    "power": lambda a, m: a.power(2).toarray(),
    "sin": lambda a, m: a.tocsr().sin().toarray(),
    "negative": lambda a, m: (-abs(a)).toarray(),
    "by columns": lambda a, m: a.tocsc().data,
    "by rows": lambda a, m: a.tocsr().data,
    "kron": lambda a, m: m.kron(a, PLAIN).toarray(),
    "kronsum": lambda a, m: m.kronsum(a, PLAIN).toarray(),
    "hstack": lambda a, m: m.hstack([a, PLAIN]).toarray(),
    "vstack": lambda a, m: m.vstack([a, PLAIN, a]).toarray(),
    "bmat": lambda a, m: m.bmat([[a, None], [PLAIN, a]]).toarray(),
    "block_diag": lambda a, m: m.block_diag([a, PLAIN]).toarray(),
    "tril": lambda a, m: m.tril(a).toarray(),
    "triu": lambda a, m: m.triu(a, 1).toarray(),
}


def plain_like(a: Any) -> Any:
    kind = "array" if isinstance(a, scipy.sparse.sparray) else "matrix"
    return getattr(scipy.sparse, f"{a.format}_{kind}")(PLAIN)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
@pytest.mark.parametrize("name", OF_ENTRIES)
def test_sparse_arrays_with_traced_entries(name: str, kind: str) -> None:
    def of(module: Any) -> Callable[[Any], Any]:
        return lambda x: OF_ENTRIES[name](getattr(module, kind)((x, (ROWS, COLS)), shape=(3, 3)), module)

    check_along(of(sparse), of(scipy.sparse), X)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["add", "subtract", "matmul", "multiply"])
def test_plain_arrays_of_any_format_come_first(name: str, format: str) -> None:
    operate = {"add": operator.add, "subtract": operator.sub, "matmul": operator.matmul}.get(name)

    def of(module: Any) -> Callable[[Any], Any]:
        def f(x: Any) -> Any:
            a = module.csc_array((x, (ROWS, COLS)), shape=(3, 3))
            plain = PLAIN.asformat(format)
            return (a.multiply(plain) if operate is None else operate(plain, a)).toarray()

        return f

    check_along(of(sparse), of(scipy.sparse), X)


def test_elements_of_formats_that_hold_others_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"dia_array\.data has no form.*tocoo"):
        ft.trace(lambda x: sparse.diags_array(x).data)(X)


CONSTRUCTED: dict[str, Callable[[Any, Any], Any]] = {
    "diags": lambda x, m: m.diags([x[:3], x[3:]], [0, -1]),
    "diags of one": lambda x, m: m.diags(x),
    "diags of numbers": lambda x, m: m.diags([x[0], -2 * x[0], x[1]], [-1, 0, 1], shape=(4, 4)),
    "diags_array": lambda x, m: m.diags_array([x[:1], x], offsets=[2, -1], shape=(6, 6)),
    "diags_array of one": lambda x, m: m.diags_array(x, offsets=1),
    "spdiags": lambda x, m: m.spdiags(np.stack([x, 2 * x]), [0, 1], 5, 5),
    "dia_array": lambda x, m: m.dia_array((np.stack([x, 2 * x]), [0, -1]), shape=(4, 5)),
    "csr_array": lambda x, m: m.csr_array((x[:3], np.array([2, 0, 1]), np.array([0, 1, 1, 3]))),
    "csc_array": lambda x, m: m.csc_array((x[:3], np.array([2, 0, 1]), np.array([0, 1, 1, 3]))),
    "of a dense matrix": lambda x, m: m.lil_array(x[:, None] * x).tocsr(),
    "block_array": lambda x, m: m.block_array([[m.csr_array(x[:, None]), None], [None, PLAIN]]),
}


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_constructors_of_traced_values(name: str) -> None:
    made = CONSTRUCTED[name]
    check_along(lambda x: made(x, sparse).toarray(), lambda x: made(x, scipy.sparse).toarray(), X)


def test_traced_entries_in_every_mode() -> None:
    def f(x: Any) -> Any:
        a = sparse.csr_array((np.exp(x), (ROWS, COLS)), shape=(3, 3))
        return np.sum((a @ (a @ V)) ** 2)

    def of_dense(x: Any) -> Any:
        a = np.zeros_like(x, shape=(3, 3))
        for i, j, value in zip(ROWS, COLS, np.exp(x), strict=True):
            a[i, j] += value
        return np.sum((a @ (a @ V)) ** 2)

    expected = ft.hessian(of_dense)(X)
    np.testing.assert_allclose(ft.jit(ft.hessian(f))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(ft.sparse_hessian(f)(X).toarray(), expected, rtol=1e-12)
    xs = np.stack([X, -X])
    np.testing.assert_allclose(ft.vmap(f)(xs), [of_dense(x) for x in xs], rtol=1e-13)


def test_plain_entries_make_arrays_of_scipy() -> None:
    made = sparse.csr_array((X, (ROWS, COLS)))
    assert type(made) is scipy.sparse.csr_array
    np.testing.assert_array_equal(sparse.kron(made, PLAIN).toarray(), scipy.sparse.kron(made, PLAIN).toarray())


def test_questions_and_refusals_of_traced_arrays() -> None:
    def f(x: Any) -> Any:
        a = sparse.csr_array((x, (ROWS, COLS)))
        assert isinstance(a, scipy.sparse.csr_array)
        assert scipy.sparse.issparse(a)
        assert (a.shape, a.nnz, a.format, a.ndim) == ((3, 3), 4, "csr", 2)
        for ask in (lambda: a.max(), lambda: a == a, lambda: len(a), lambda: a.has_canonical_format):
            with pytest.raises(NotImplementedError, match=r"csr_array\..*no form for traced entries.*A\.toarray"):
                ask()
        with pytest.raises(NotImplementedError, match="adding a number"):
            a + 1.0
        return a.sum()

    assert ft.grad(f)(X).tolist() == [1.0] * 5
    with pytest.raises(TypeError, match=r"(?s)ftrans\.scipy\.sparse\b.*csr_array"):
        ft.grad(lambda x: scipy.sparse.csr_array((x, (ROWS, COLS))).sum())(X)
    with pytest.raises(TypeError, match="must be known, but the indices are traced"):
        ft.trace(lambda i: sparse.csr_array((X, (i, COLS))).sum())(ROWS)
