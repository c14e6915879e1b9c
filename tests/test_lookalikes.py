"""Objects that look like arrays and compute otherwise are refused, wherever they come in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import tables

import ftrans as ft
from ftrans import autograd as a
from ftrans import nn

VALUES = [[1.0, 2.0], [3.0, 4.0]]
X = np.array([1.0, -2.0])
WHERE = re.compile(r"test_lookalikes\.py:\d+")


class Metres(np.ndarray):
    """An array with a meaning of its own: its operations do not go through those of arrays."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NotImplemented


class Doubling(np.ndarray):
    """An array with an operator of its own."""

    def __mul__(self, other: Any) -> Any:
        return 2 * np.asarray(self) * other


class Labelled:
    """What a column of a table is: it has numbers, and labels by which it finds its partners."""

    shape, dtype = (2, 2), np.dtype(float)

    def to_numpy(self) -> Any:
        return np.array(VALUES)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.to_numpy()


def matrix() -> Any:
    """A matrix, as SciPy's sparse matrices give it."""
    return scipy.sparse.csr_matrix(VALUES).todense()


# (how it is made, what the error says)
LOOKALIKES: dict[str, tuple[Callable[[], Any], str]] = {
    "matrix": (matrix, r"numpy\.matrix.*np\.asarray\(M\).*M @ x.*\.toarray\(\)"),
    "masked": (lambda: np.ma.masked_greater(VALUES, 3), r"masked array.*lose its mask.*x\.filled\(0\.0\).*where=~mask"),
    "nothing masked": (lambda: np.ma.array(VALUES), "masked array.*would lose its mask"),
    "sparse matrix": (lambda: scipy.sparse.csr_matrix(VALUES), r"csr_matrix.*sparse.*A\.toarray\(\)"),
    "sparse array": (lambda: scipy.sparse.coo_array(VALUES), r"coo_array.*sparse.*A\.toarray\(\)"),
    "protocol": (lambda: np.array(VALUES).view(Metres), "class Metres.*arithmetic of its own"),
    "operator": (lambda: np.array(VALUES).view(Doubling), "class Doubling.*arithmetic of its own"),
    "labels": (Labelled, r"Labelled.*labels.*\.to_numpy\(\)"),
}


def square(x: Any) -> Any:
    return np.sum(x * x)


WAYS_IN: dict[str, Callable[[Any], Any]] = {
    "grad": lambda m: ft.grad(square)(m),
    "value_and_grad": lambda m: ft.value_and_grad(square)(m),
    "grad, container": lambda m: ft.grad(lambda tree: square(tree["a"][0]))({"a": [m]}),
    "jacobian": lambda m: ft.jacobian(np.sin)(m),
    "hessian": lambda m: ft.hessian(square)(m),
    "vjp": lambda m: ft.vjp(np.sin, m),
    "jvp": lambda m: ft.jvp(np.sin, (m,), (m,)),
    "tangent": lambda m: ft.jvp(np.sin, (np.ones((2, 2)),), (m,)),
    "cotangent": lambda m: ft.vjp(np.sin, np.ones((2, 2)))[1](m),
    "vmap": lambda m: ft.vmap(np.sin)(m),
    "jit": lambda m: ft.jit(np.sin)(m),
    "jit, container": lambda m: ft.jit(lambda x, tree: tree[0] + x)(X, [m]),
    "trace": lambda m: ft.trace(np.sin)(m),
    "loop": lambda m: ft.fori_loop(0, 2, lambda i, x: x + 1.0, m),
    "scan": lambda m: ft.scan(lambda total, x: (total, x), 0.0, m),
    "result": lambda m: ft.trace(lambda x: (x, m))(X),
    "x + m": lambda m: ft.grad(lambda x: np.sum(x + m))(X),
    "x * m": lambda m: ft.grad(lambda x: np.sum(x * m))(X),
    "x @ m": lambda m: ft.grad(lambda x: np.sum(x @ m))(X),
    "x @ m, jit": lambda m: ft.jit(lambda x: np.sum(x @ m))(X),
    "m * x, vmap": lambda m: ft.vmap(lambda x: np.multiply(m, x))(np.ones((3, 2))),
    "in place": lambda m: ft.grad(lambda x: np.sum(x.reshape(1, 2).__iadd__(m)))(X),
    "where": lambda m: ft.grad(lambda x: np.sum(np.where(x > 0, x, m)))(X),
    "dot": lambda m: ft.grad(lambda x: np.sum(np.dot(m, x)))(X),
    "stack": lambda m: ft.grad(lambda x: np.sum(np.stack([np.ones((2, 2)) * x, m])))(X),
    "assignment": lambda m: ft.grad(lambda x: np.sum((np.ones((2, 2)) * x).__setitem__(..., m)))(X),
    "cell": nn.Parameter,
    "buffer": nn.Buffer,
    "state": lambda m: nn.Linear(2, 2).load_state_dict({"weight": m}, strict=False),
    "state of a call": lambda m: nn.functional_call(nn.Linear(2, 2), {"weight": m}, X),
    "merged": lambda m: nn.merge(nn.split(nn.Linear(2, 2))[0], {"weight": m, "bias": X}),
    "assignment to a cell": lambda m: nn.Buffer(np.zeros((2, 2))).__setitem__(..., m),
    "traced assignment to a cell": lambda m: nn.jit(lambda net: net.weight.__setitem__(..., m))(nn.Linear(2, 2)),
    "copy to a cell": lambda m: nn.Buffer(np.zeros((2, 2))).copy_(m),
    "change of a cell": lambda m: nn.Buffer(np.ones((2, 2))).__imul__(m),
    "tensor": a.tensor,
    "tensors": lambda m: a.tensor([m, m]),
    "tensor of memory": a.from_numpy,
    "tensor of the same": a.as_tensor,
    "gradient": lambda m: (2 * a.tensor(np.ones((2, 2)), requires_grad=True)).backward(m),
}


# Sparse arrays have arithmetic with traced values.
ARITHMETIC = ("x + m", "x * m", "x @ m", "x @ m, jit", "m * x, vmap", "in place")


CELLS = [(k, w) for k in LOOKALIKES for w in WAYS_IN if w not in ARITHMETIC or "sparse" not in k]


@tables.each(tables.label, cell=CELLS)
def test_lookalikes_are_refused(cell: tuple[str, str]) -> None:
    kind, way = cell
    make, message = LOOKALIKES[kind]
    with pytest.raises(TypeError, match=message) as caught:
        WAYS_IN[way](make())
    assert WHERE.search(str(caught.value))


@pytest.mark.parametrize("way", ["grad", "jit", "vmap", "result", "where", "dot", "cell"])
def test_linear_operators_are_refused(way: str) -> None:
    with pytest.raises(TypeError, match="LinearOperator"):
        WAYS_IN[way](scipy.sparse.linalg.aslinearoperator(np.array(VALUES)))


@pytest.mark.parametrize("way", ["jit", "result", "x * m", "stack"])
def test_random_keys_of_jax_are_refused(way: str) -> None:
    with pytest.raises(TypeError, match=r"a random key of JAX.*jax\.random\.key_data"):
        WAYS_IN[way](jax.random.key(0))


@pytest.mark.parametrize("kind", ["matrix", "masked", "protocol", "operator"])
def test_lookalikes_do_not_meet_tensors(kind: str) -> None:
    make, message = LOOKALIKES[kind]
    with pytest.raises(TypeError, match=message):
        a.tensor(X, requires_grad=True) * make()


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_before_a_traced_value_is_refused() -> None:
    m, message = matrix(), LOOKALIKES["matrix"][1]
    for f in (lambda x: m * x, lambda x: m @ x, lambda x: m + x, lambda x: m**2 * x, lambda x: m[0] * x):
        for transformation in (ft.trace, ft.jit, lambda f: ft.grad(lambda x: np.sum(f(x)))):
            with pytest.raises(TypeError, match=message):
                transformation(f)(X)
    with pytest.raises(TypeError, match=message):
        ft.trace(m.dot)(X)
    with pytest.raises(TypeError, match=message):
        m * a.tensor(X, requires_grad=True)
    # Numbers of it are numbers.
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(m[0, 1] * m.sum() * x))(X), [20.0, 20.0])


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_of_traced_values_is_refused() -> None:
    with pytest.raises(TypeError, match=LOOKALIKES["matrix"][1]):
        ft.grad(lambda x: np.sum(x * np.asmatrix(x)))(X)


def test_a_method_of_a_sparse_array_on_a_traced_value_is_refused() -> None:
    for made in (scipy.sparse.csr_array(VALUES), scipy.sparse.csr_matrix(VALUES)):
        with pytest.raises(TypeError, match=r"sparse.*A @ x.*ftrans\.scipy\.sparse.*A\.toarray\(\)"):
            ft.trace(lambda x, s=made: s.multiply(x))(X)
    matrix = scipy.sparse.coo_array([[1.0, 0.0], [3.0, 4.0]])
    with pytest.raises(TypeError, match=r"A @ x"):
        ft.trace(matrix.dot)(X)
    product = ft.sparse_jacobian(lambda x: np.bincount(matrix.row, matrix.data * x[matrix.col], matrix.shape[0]))(X)
    np.testing.assert_array_equal(product.toarray(), matrix.toarray())
    assert product.nnz == matrix.nnz


def test_a_masked_array_before_a_traced_value_keeps_its_mask_or_is_refused() -> None:
    masked = np.ma.array([2.0, 3.0], mask=[False, True])
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(masked * x))(X), [2.0, 0.0])
    with pytest.raises(TypeError, match="would lose its mask"):
        ft.trace(lambda x: masked * x)(X)


class Plain(np.ndarray):
    """An array with one more attribute."""


def test_subclasses_without_arithmetic_of_their_own_are_arrays(tmp_path: Path) -> None:
    memory = np.memmap(tmp_path / "x", float, "w+", shape=(2,))
    memory[:] = X
    records = np.rec.array([(1.0, 2), (-2.0, 3)], dtype=[("number", float), ("count", int)])
    for x in (memory, X.view(Plain), records.number, records["number"]):
        assert ft.grad(square)(x).tolist() == [2.0, -4.0]
        assert ft.jit(ft.grad(square))(x).tolist() == [2.0, -4.0]
        assert ft.grad(lambda y, x=x: np.sum(y * x) + np.sum(x @ y))(X).tolist() == [2.0, -4.0]
        assert ft.vmap(np.square, in_axes=0)(x).tolist() == [1.0, 4.0]
        assert nn.Parameter(x).value.tolist() == a.tensor(x).tolist() == X.tolist()
    with pytest.raises(TypeError, match="cannot be traced"):
        ft.jit(lambda x: np.sum(x * records))(X)
