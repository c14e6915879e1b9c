"""`ftrans.scipy.sparse.linalg`: solutions, eigenvalues and exponentials by right-hand sides and entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial.distance
import scipy.spatial.transform

import ftrans as ft
from ftrans.numpy.dispatch import TABLE
from ftrans.scipy import sparse
from ftrans.scipy.sparse import linalg

RNG = np.random.default_rng(0)
N = 8
# Of the type that spsolve_triangular of SciPy 1.16 asks for.
ROWS, COLS = (np.concatenate([i, np.arange(N)]).astype(np.int32) for i in np.nonzero(RNG.random((N, N)) < 0.3))
DATA = np.concatenate([RNG.normal(size=ROWS.size - N), 4 + RNG.random(N)])
B, MANY = RNG.normal(size=N), RNG.normal(size=(N, 3))
PLAIN = scipy.sparse.csc_array((DATA, (ROWS, COLS)), shape=(N, N))
FACTORS = scipy.sparse.linalg.splu(PLAIN)
X, ALONG = np.array([1.1, 0.7]), np.array([0.3, -0.5])
TIGHT = {"rtol": 1e-13}


def matrix(x: Any, m: Any, kind: str = "csc_array", more: int = 0) -> Any:
    return getattr(m, kind)((x[0] * DATA + np.sin(DATA) * x[1], (ROWS, COLS)), shape=(N, N + more))


def symmetric(x: Any, m: Any) -> Any:
    a = matrix(x, m)
    return (a + a.T.asformat("csc")) / 2.0


def positive(x: Any, m: Any) -> Any:
    a = matrix(x, m, "csr_array")
    return a.T.tocsr() @ a


def with_sign(v: Any) -> Any:
    return v * np.sign(v[0])


def factored(m: Any) -> Callable[..., Any]:
    """`SuperLU.solve` of plain factors, as patched code reaches it."""
    solve = scipy.sparse.linalg.SuperLU.solve
    return lambda *args: (solve if m is scipy.sparse else TABLE[solve])(FACTORS, *args)


def operator(x: Any) -> Any:
    return scipy.sparse.linalg.LinearOperator((N, N), matvec=lambda v: x[0] * (PLAIN @ v) + x[1] * v, dtype=float)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "spsolve": lambda x, m: m.linalg.spsolve(matrix(x, m), B * x[1]),
    "spsolve of columns": lambda x, m: m.linalg.spsolve(matrix(x, m, "csr_array"), MANY * x[1]),
    "spsolve of a column": lambda x, m: m.linalg.spsolve(matrix(x, m), B[:, None] * x[1]),
    "spsolve of a plain matrix": lambda x, m: m.linalg.spsolve(PLAIN, B * x[1]),
    "splu": lambda x, m: m.linalg.splu(matrix(x, m)).solve(MANY * x[1], "T"),
    "factorized": lambda x, m: m.linalg.factorized(matrix(x, m))(B * x[0]),
    "SuperLU.solve": lambda x, m: factored(m)(B * x[0]),
    "SuperLU.solve T": lambda x, m: factored(m)(MANY * x[0], "T"),
    "spsolve_triangular": lambda x, m: m.linalg.spsolve_triangular(m.tril(matrix(x, m)).tocsr(), B * x[1]),
    "spsolve_triangular upper": lambda x, m: m.linalg.spsolve_triangular(
        m.triu(matrix(x, m)).tocsr(), B, lower=False, unit_diagonal=True
    ),
    "cg": lambda x, m: m.linalg.cg(positive(x, m), B * x[1], **TIGHT)[0],
    "gmres": lambda x, m: m.linalg.gmres(matrix(x, m), B * x[1], **TIGHT)[0],
    "bicgstab": lambda x, m: m.linalg.bicgstab(matrix(x, m), B * x[1], **TIGHT)[0],
    "gmres with options": lambda x, m: m.linalg.gmres(
        matrix(x, m), B, x0=B, restart=5, M=scipy.sparse.diags_array(1 / PLAIN.diagonal()), **TIGHT
    )[0],
    "info": lambda x, m: m.linalg.gmres(matrix(x, m), B * x[1], **TIGHT)[1] * 1.0,
    "an operator": lambda x, m: m.linalg.gmres(operator(x), B, **TIGHT)[0],
    "a dense matrix": lambda x, m: m.linalg.gmres(np.eye(N) * x[0] + np.ones((N, N)) * x[1], B, **TIGHT)[0],
    "aslinearoperator": lambda x, m: m.linalg.gmres(scipy.sparse.linalg.aslinearoperator(PLAIN), B * x[0], **TIGHT)[0],
    "eigsh": lambda x, m: m.linalg.eigsh(symmetric(x, m), 3, return_eigenvectors=False),
    "eigsh, vector": lambda x, m: with_sign(m.linalg.eigsh(symmetric(x, m), 3, which="SA")[1][:, 1]),
    "eigsh, sigma": lambda x, m: m.linalg.eigsh(symmetric(x, m), 2, sigma=0.5)[0],
    "svds": lambda x, m: m.linalg.svds(matrix(x, m, more=2), 3, return_singular_vectors=False),
    "svds, left": lambda x, m: with_sign(m.linalg.svds(matrix(x, m, more=2), 3)[0][:, 2]),
    "svds, right": lambda x, m: with_sign(m.linalg.svds(matrix(x, m, more=2), 3)[2][0]),
    "expm_multiply": lambda x, m: m.linalg.expm_multiply(matrix(x, m), B * x[1]),
    "expm_multiply of columns": lambda x, m: m.linalg.expm_multiply(matrix(x, m) * (-3.0), MANY),
    "expm_multiply of times": lambda x, m: m.linalg.expm_multiply(matrix(x, m), B, start=0.1, stop=1.0, num=4),
    "expm_multiply of a plain matrix": lambda x, m: m.linalg.expm_multiply(
        PLAIN, B * x[0], start=0, stop=1.0, num=4, endpoint=False
    ),
    "norm of rows": lambda x, m: m.linalg.norm(matrix(x, m), axis=1),
}
for _ord in (None, 1, -1, np.inf, "fro"):
    CALLS[f"norm {_ord}"] = lambda x, m, o=_ord: m.linalg.norm(matrix(x, m), o)


@pytest.mark.parametrize("name", CALLS)
def test_values_and_derivatives(name: str) -> None:
    call = CALLS[name]
    value, slope = ft.jvp(lambda x: call(x, sparse), (X,), (ALONG,))
    expected = np.asarray(call_plainly(call, X))
    assert np.shape(value) == expected.shape
    np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-12)
    step = 1e-5
    ends = [np.asarray(call_plainly(call, X + s * ALONG)) for s in (step, -step)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-7)
    reverse = ft.grad(lambda x: np.sum(np.cos(call(x, sparse))))(X)
    np.testing.assert_allclose(reverse @ ALONG, -np.sum(np.sin(expected) * slope), rtol=1e-8, atol=1e-9)


def call_plainly(call: Callable[[Any, Any], Any], x: Any) -> Any:
    return call(x, scipy.sparse)


@pytest.mark.parametrize(
    "name", ["spsolve", "SuperLU.solve T", "gmres", "eigsh, vector", "svds, left", "expm_multiply"]
)
def test_second_derivatives_and_modes(name: str) -> None:
    call = CALLS[name]

    def f(x: Any) -> Any:
        return np.sum(np.cos(0.01 * call(x, sparse)))

    slope, step = ft.grad(f), 1e-5
    change = (slope(X + step * ALONG) - slope(X - step * ALONG)) / (2 * step)
    np.testing.assert_allclose(ft.hessian(f)(X) @ ALONG, change, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(ft.jit(slope)(X), slope(X), rtol=1e-9, atol=1e-12)
    xs = np.stack([X, X + 0.1])
    expected = [call_plainly(call, x) for x in xs]
    np.testing.assert_allclose(ft.vmap(lambda x: call(x, sparse))(xs), expected, rtol=1e-9, atol=1e-12)


def test_solutions_by_each_entry() -> None:
    """The derivative of a^-1 b by the entry (i, j) of a is -(a^-1)[:, i] x[j]."""
    inverse = np.linalg.inv(PLAIN.toarray())
    places = PLAIN.tocoo()

    def solution(data: Any) -> Any:
        return linalg.spsolve(sparse.csc_array((data, (places.row, places.col)), shape=(N, N)), B)

    expected = -inverse[:, places.row] * (inverse @ B)[places.col]
    np.testing.assert_allclose(ft.jacobian(solution)(places.data), expected, rtol=1e-12, atol=1e-14)


def test_exponentials_of_a_matrix() -> None:
    """Against the derivative of scipy.linalg.expm_frechet."""
    a, change = PLAIN.toarray(), np.cos(np.arange(PLAIN.nnz))
    along = PLAIN.copy()
    along.data = change
    places = PLAIN.tocoo()

    def f(data: Any) -> Any:
        return linalg.expm_multiply(sparse.csc_array((data, (places.row, places.col)), shape=(N, N)), B)

    slope = ft.jvp(f, (places.data,), (along.tocoo().data,))[1]
    np.testing.assert_allclose(slope, scipy.linalg.expm_frechet(a, along.toarray())[1] @ B, rtol=1e-11)


def test_a_singular_matrix_is_nan_with_a_warning() -> None:
    singular = scipy.sparse.csc_array(np.diag([1.0, 0.0]))
    with pytest.warns(scipy.sparse.linalg.MatrixRankWarning, match="singular"):
        assert np.isnan(ft.jvp(lambda b: linalg.spsolve(singular, b), (np.ones(2),), (np.ones(2),))[0]).all()


def test_plain_arguments_are_left_to_scipy() -> None:
    found = ft.trace(lambda x: x * linalg.cg(PLAIN.T @ PLAIN, B)[0][0])(1.0)
    assert [eqn.primitive.name for eqn in found.eqns] == ["mul"]
    np.testing.assert_array_equal(linalg.spsolve(PLAIN, B), scipy.sparse.linalg.spsolve(PLAIN, B))
    plain = linalg.LinearOperator((2, 2), matvec=lambda v: 2.0 * v)
    assert isinstance(plain, linalg.LinearOperator)
    assert type(plain).__module__.startswith("scipy")
    assert not isinstance(PLAIN, linalg.LinearOperator)


def test_linear_operators_of_traced_values_need_no_dtype() -> None:
    def f(x: Any) -> Any:
        return linalg.cg(linalg.LinearOperator((2, 2), matvec=lambda v: x**2 * v), np.ones(2), rtol=1e-12)[0]

    class Scaled(linalg.LinearOperator):
        def __init__(self, x: Any) -> None:
            self.x = x
            super().__init__(float, (2, 2))

        def _matvec(self, v: Any) -> Any:
            return self.x**2 * v

    for call in (f, lambda x: linalg.cg(Scaled(x), np.ones(2), rtol=1e-12)[0]):
        np.testing.assert_allclose(ft.jacobian(call)(2.0), [-0.25, -0.25])
        np.testing.assert_allclose(ft.jit(ft.jacobian(call))(2.0), [-0.25, -0.25])


def test_one_equation() -> None:
    def f(x: Any) -> Any:
        return linalg.spsolve(sparse.csr_matrix(([x], ([0], [0]))), [3.0])

    np.testing.assert_allclose(ft.jvp(f, (2.0,), (1.0,)), [[1.5], [-0.75]])


def test_linear_operators_multiply_traced_vectors() -> None:
    plain = operator(X)
    for name in ("matvec", "dot"):
        method = TABLE[getattr(scipy.sparse.linalg.LinearOperator, name)]
        np.testing.assert_allclose(
            ft.jacobian(lambda v, f=method: f(plain, v))(B), 1.1 * PLAIN.toarray() + 0.7 * np.eye(N)
        )


def test_what_has_no_traced_form_says_so() -> None:
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (lambda x: linalg.minres(PLAIN, B * x), r"linalg\.minres has no rule.*cg, bicgstab, gmres or spsolve"),
        (lambda x: linalg.cg(PLAIN, B * x, callback=print), "callback"),
        (lambda x: linalg.eigsh(PLAIN * x, 2, M=PLAIN), "eigsh with traced entries has no M="),
        (lambda x: linalg.splu(PLAIN * x).L, r"SuperLU\.L has no form"),
        (lambda x: linalg.expm_multiply(operator([x, x]), B * x), "not a LinearOperator"),
        (lambda x: linalg.norm(PLAIN * x, "nuc"), "no ord='nuc'"),
    ]
    for f, message in cases:
        with pytest.raises(NotImplementedError, match=message):
            ft.trace(f)(1.0)
    with pytest.raises(ValueError, match="square matrix"):
        ft.trace(lambda b: linalg.spsolve(PLAIN[:3], b))(B)


LAPLACIAN = scipy.sparse.diags([np.ones(4), np.full(5, -2.0), np.ones(4)], [-1, 0, 1], format="csc")
HEAT = scipy.sparse.linalg.splu((scipy.sparse.eye(5) - 0.1 * LAPLACIAN).tocsc())
TURNS = scipy.spatial.transform.Rotation.random(4, rng=0)


def diffused(k: Any) -> Any:
    u = np.arange(5.0) * k
    for _ in range(2):
        u = scipy.sparse.linalg.spsolve(scipy.sparse.eye(5, format="csc") - k * LAPLACIAN, u)
    u = scipy.sparse.linalg.factorized((scipy.sparse.eye(5) - k * LAPLACIAN).tocsc())(HEAT.solve(u))
    return scipy.sparse.kron(scipy.sparse.eye(2), k * LAPLACIAN) @ np.concatenate([u, u])


def turned(k: Any) -> Any:
    slerp = scipy.spatial.transform.Slerp([0, 1, 2, 3], TURNS)
    rotation = scipy.spatial.transform.Rotation.from_euler("xyz", [k, 2 * k, 0.3])
    vectors = np.stack([rotation.apply([1.0, 2, 3]), TURNS.apply([k, 1, 2.0])[0], (TURNS[0] * slerp(k)).as_rotvec()])
    return scipy.spatial.distance.cdist(vectors, vectors[:2])


@pytest.mark.parametrize("f", [diffused, turned])
def test_patched_code_reaches_the_traced_forms(f: Callable[[Any], Any]) -> None:
    patched, k, step = ft.patch(f), 0.4, 1e-5
    expected = (f(k + step) - f(k - step)) / (2 * step)
    np.testing.assert_allclose(ft.jvp(patched, (k,), (1.0,))[1], expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ft.jit(patched)(k), f(k), rtol=1e-12, atol=1e-14)
