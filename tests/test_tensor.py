"""Tensors: the graph they make, and the ways back through it."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checks import assert_close
from tensors import a, check_gradients, value

import ftrans as ft
from ftrans.autograd import Tensor

X = np.array([1.5, -2.0, 0.7])
M = np.array([[1.0, 2.0, -1.0], [0.5, -0.3, 4.0]])


def ask(x: Any) -> Tensor:
    """A leaf that asks for a gradient."""
    return a.tensor(x, dtype=None if np.asarray(x).dtype.kind in "fc" else float, requires_grad=True)


def line_of(text: str) -> str:
    """A pattern for a message that names a line of this file."""
    return rf"test_tensor.*\.py:\d+: .*{re.escape(text)}"


# The program of the issue, and control flow in Python


def test_a_loop_that_depends_on_values() -> None:
    x = ask([0.5, -0.2, 0.3])
    y = x * 2
    count = 1
    while y.norm() < 1000:
        y = y * 2
        count += 1
    y.backward([0.1, 1.0, 0.0001])
    assert_close(value(x.grad), 2.0**count * np.array([0.1, 1.0, 0.0001]))


def test_each_iteration_may_have_another_graph() -> None:
    def f(x: Any, steps: int) -> Any:
        for i in range(steps):
            x = np.sin(x) * (i + 0.25) if i % 2 else x * x + np.cos(x)
            if x.sum() > 1.0:
                x = x / 2
        return x.sum()

    for steps in range(7):
        x = ask(X)
        f(x, steps).backward()
        assert_close(value(x.grad), ft.grad(f)(X, steps))


def test_numbers_that_vary_from_call_to_call() -> None:
    def f(x: Any, number: Any) -> Any:
        return (x * number).sum() + (number - x).prod() + np.maximum(x, number).sum() + (x**2 + number).prod()

    for number in [*np.linspace(-3.0, 3.0, 25).tolist(), 2, 3, 2.0, -0.0, 0, True, 2**70, -(2**63)]:
        x = ask(X)
        f(x, number).backward()
        assert_close(value(x.grad), ft.grad(f)(X, number))


OF_NUMBERS: list[Callable[[Any, Any], Any]] = [
    lambda x, n: x[n], lambda x, n: np.roll(x, n, 0), lambda x, n: np.delete(x, n, 0), lambda x, n: np.tril(x, n),
    lambda x, n: x[:, n : n + 2], lambda x, n: x[np.int64(n)], lambda x, n: np.linspace(x[0], x[1], n + 3),
]  # fmt: skip
OF_ARRAYS: list[Callable[[Any, Any], Any]] = [
    lambda x, n: x[n], lambda x, n: np.delete(x, n, 0), lambda x, n: np.insert(x, n, 5.0, 0),
    lambda x, n: np.take(x, n),
    lambda x, n: np.repeat(x[:2], n, 0), lambda x, n: np.split(x, n), lambda x, n: np.pad(x, n),
    lambda x, n: x[:2][n > 1], lambda x, n: x.reshape(np.array([n[1] * 3, -1])),
]  # fmt: skip
TABLE = np.arange(1.0, 13.0).reshape(3, 4)


@pytest.mark.parametrize("f", OF_NUMBERS)
def test_numbers_that_say_what_is_done_vary(f: Callable[[Any, Any], Any]) -> None:
    for n in (0, 1, 2, -1, -2, 1):
        check_gradients(lambda x: f(x, n), TABLE)  # noqa: B023


@pytest.mark.parametrize("f", OF_ARRAYS)
def test_arrays_that_say_what_is_done_vary(f: Callable[[Any, Any], Any]) -> None:
    for n in ([0, 1], [1, 2], [2, 2], [0, 2]):
        check_gradients(lambda x: f(x, np.array(n)), TABLE)  # noqa: B023


def test_masks_vary() -> None:
    for mask in (TABLE > 3, TABLE > 4, TABLE < 4, TABLE > 100, TABLE < 5):
        check_gradients(lambda x: x[mask] ** 2, TABLE)  # noqa: B023
        check_gradients(lambda x: (x.__setitem__(mask, x[mask] ** 2), x)[1], TABLE)  # noqa: B023
    with pytest.raises(IndexError):
        ask(X)[np.array([True, False, False, False])]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 1.5, 2.0, -0.5, 0.0])
def test_powers(exponent: float) -> None:
    check_gradients(lambda x: x**exponent, np.array([0.5, 2.0, 3.0]), order=2)
    check_gradients(lambda x: exponent**x if exponent > 0 else x, np.array([0.5, 2.0, 3.0]), order=2)
    check_gradients(lambda x: np.power(x, exponent), np.array([0.5, 2.0, 3.0], np.float32), tolerance=1e-5)


def test_slices_with_bounds_that_vary() -> None:
    x = ask(np.arange(40.0))
    total: Any = 0.0
    for i in range(30):
        total = total + (x[i : i + 7] * x[i]).sum() + x[-1 - i]
    total.backward()

    def f(x: Any) -> Any:
        return sum((x[i : i + 7] * x[i]).sum() + x[-1 - i] for i in range(30))

    assert_close(value(x.grad), ft.grad(f)(np.arange(40.0)))


# What a tensor says of itself


def test_leaves_and_nodes() -> None:
    x = ask(X)
    y = x * 2
    z = y.detach()
    assert x.is_leaf
    assert not y.is_leaf
    assert z.is_leaf
    assert x.requires_grad
    assert y.requires_grad
    assert not z.requires_grad
    assert x.grad_fn is None
    assert repr(y.grad_fn) == "<MulBackward>"
    assert a.tensor(X).is_leaf
    assert not a.tensor(X).requires_grad
    assert (a.tensor(X) * 2).grad_fn is None


def test_nodes_link_back_and_know_their_line() -> None:
    x = ask(X)
    y = np.sin(x) + x
    assert y.grad_fn is not None
    (sine, first), (leaf, second) = y.grad_fn.next_functions
    assert (repr(y.grad_fn), repr(sine), repr(leaf)) == ("<AddBackward>", "<SinBackward>", "<AccumulateGrad>")
    assert (first, second) == (0, 0)
    assert leaf.variable is x
    assert leaf.next_functions == ()
    assert re.search(line_of("y = np.sin(x) + x"), y.grad_fn.metadata["line"])
    ((end, _),) = sine.next_functions
    assert end == leaf
    assert hash(end) == hash(leaf)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: x * x, "Mul"), (lambda x: x - 1, "Sub"), (lambda x: 1 / x, "Div"), (lambda x: -x, "Neg"),
        (lambda x: x**2, "Pow"), (lambda x: x @ x, "Matmul"), (lambda x: x[0], "Index"), (lambda x: abs(x), "Abs"),
        (lambda x: x.sum(), "Sum"), (lambda x: np.stack([x, x]), "Stack"), (lambda x: x.clone(), "Clone"),
        (lambda x: np.add.reduce(x), "AddReduce"), (lambda x: x.T, "T"), (lambda x: np.linalg.norm(x), "Norm"),
    ],
)  # fmt: skip
def test_names_of_nodes(make: Callable[[Any], Any], name: str) -> None:
    assert repr(make(ask(X)).grad_fn) == f"<{name}Backward>"


def test_prints() -> None:
    x = ask([1.0, 2.0])
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward>)"
    assert repr(a.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(a.tensor([1.0], dtype=np.float32)) == "tensor([1.], dtype=float32)"
    assert f"{a.tensor(1.23456):.2f}" == "1.23"
    assert f"{x[0]:.1f}" == "1.0"
    assert f"{x}" == repr(x)
    assert str(a.tensor(2.5)) == "tensor(2.5)"


def test_numbers_and_containers() -> None:
    x = ask([3.0])
    assert float(x) == 3.0
    assert int(x) == 3
    assert bool(x)
    assert complex(x) == 3
    assert x.item() == 3.0
    assert x.tolist() == [3.0]
    assert len(x) == 1
    assert [y.item() for y in x] == [3.0]
    assert 3.0 in x
    assert [10, 20, 30][a.tensor(1)] == 20
    assert round(a.tensor(2.6)).item() == 3
    assert round(a.tensor(2.66), 1).item() == 2.7
    assert divmod(a.tensor(7), 2)[0].item() == 3
    assert divmod(7, a.tensor(2))[1].item() == 1
    with pytest.raises(ValueError, match="one element"):
        bool(ask(X))
    with pytest.raises(ValueError, match="one element"):
        float(ask(X))
    with pytest.raises(TypeError, match="without axes"):
        len(a.tensor(1.0))
    with pytest.raises(TypeError, match="without axes"):
        iter(a.tensor(1.0))
    assert hash(x) == hash(x)
    assert len({x, x, ask(X)}) == 2


def test_copies() -> None:
    x = ask(X)
    x.grad = a.tensor(X)
    other = copy.deepcopy({"x": x, "same": x})
    assert other["x"] is other["same"]
    assert other["x"] is not x
    assert other["x"].requires_grad
    assert other["x"].is_leaf
    assert_close(value(other["x"].grad), X)
    with a.no_grad():
        other["x"] += 1
    assert_close(value(x), X)
    y = copy.copy(x)
    assert y.grad_fn is not None
    again = pickle.loads(pickle.dumps(x))
    assert again.requires_grad
    assert again.is_leaf
    assert_close(value(again), X)
    assert not pickle.loads(pickle.dumps(a.tensor(X))).requires_grad
    for make in (copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="only a leaf"):
            make(x * 2)
    assert_close(value(copy.deepcopy((x * 2).detach())), 2 * X)


# Backward


def test_backward_adds_to_what_is_there() -> None:
    x = ask(X)
    for count in range(1, 4):
        (x**2).sum().backward()
        assert_close(value(x.grad), 2 * count * X)
    first = x.grad
    x.zero_grad()
    assert x.grad is None
    assert first is not None
    (x * 3).sum().backward()
    assert_close(value(first), 6 * X)


def test_gradients_of_several_leaves_do_not_share_memory() -> None:
    x, y = ask(X), ask(X)
    (x + y).backward(np.ones(3))
    assert x.grad is not None
    assert y.grad is not None
    assert not np.shares_memory(x.grad.array, y.grad.array)
    x.grad += 5
    assert_close(value(y.grad), np.ones(3))
    given = np.ones(3)
    z = ask(X)
    (z + 0).backward(given)
    assert z.grad is not None
    z.grad *= 7
    assert_close(given, np.ones(3))


def test_gradient_given_is_not_changed_by_accumulation() -> None:
    x = ask(X)
    ct = np.ones(3)
    for _ in range(3):
        x.backward(ct)
    assert_close(ct, np.ones(3))
    assert_close(value(x.grad), 3 * np.ones(3))


def test_used_many_times() -> None:
    check_gradients(lambda x: x + x * x + x[::-1] + x.sum() * x - x, X, order=2)
    x = ask(X)
    y = x * 1
    (y + y + y).sum().backward()
    assert_close(value(x.grad), 3 * np.ones(3))


def test_a_leaf_that_is_the_root() -> None:
    x = ask(2.0)
    x.backward()
    x.backward()
    assert_close(value(x.grad), np.float64(2.0))


def test_several_roots() -> None:
    x = ask(X)
    a.backward([x.sum(), (x * x)], [None, np.array([1.0, 10.0, 100.0])])
    assert_close(value(x.grad), 1 + 2 * X * np.array([1.0, 10.0, 100.0]))
    y = x * 3
    (found,) = a.grad([y, y, y * 2], x, [X, X, X])
    assert_close(value(found), 12 * X)


def test_a_root_on_the_way_to_another_root() -> None:
    x = ask(X)
    y = x * x
    z = np.sin(y)
    for order in ([y, z], [z, y]):
        x.grad = None
        a.backward([r.sum() for r in order], retain_graph=True)
        assert_close(value(x.grad), 2 * X * (1 + np.cos(X * X)))


def test_gradient_must_fit() -> None:
    x = ask(X)
    with pytest.raises(RuntimeError, match=r"(?s)not a scalar.*f64\[3\].*backward\(gradient\)"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"\(3,\).*\(2,\)"):
        (x * 2).backward(np.ones(2))
    with pytest.raises(RuntimeError, match="real"):
        (x * 2).backward(np.ones(3) * 1j)
    with pytest.raises(RuntimeError, match="real number"):
        (x.sum() * 1j).backward()
    with pytest.raises(RuntimeError, match="does not require"):
        a.tensor(1.0).backward()
    with pytest.raises(TypeError, match="tensors"):
        a.backward(X)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="2 tensors"):
        a.backward([x, x], [X])
    (x[:1] * 2).backward()
    assert_close(value(x.grad), np.array([2.0, 0.0, 0.0]))


@pytest.mark.parametrize("given", [[1.0, 10.0], (1.0, 10.0), np.array([1.0, 10.0]), a.tensor([1, 10])])
def test_gradient_may_be_a_list_or_integers(given: Any) -> None:
    x = ask([1.0, 2.0])
    (x * x).backward(given)
    assert_close(value(x.grad), np.array([2.0, 40.0]))


def test_freed_graphs() -> None:
    x = ask(X)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=r"(?s)freed.*retain_graph=True"):
        y.backward()
    assert_close(value(x.grad), 4 * X)
    z = (x * 2).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        z.backward()
    shared = x * x
    shared.sum().backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        np.sin(shared).sum().backward()
    a.grad(np.exp(x).sum(), x, create_graph=True)


def test_a_graph_that_has_been_freed_keeps_no_arrays() -> None:
    x = ask(np.ones(1000))
    y = np.exp(x) * x
    kept = weakref.ref(y.grad_fn.edges[0][0])  # type: ignore[union-attr]
    y.sum().backward()
    assert kept() is not None
    assert kept().kept is None


def test_inputs_choose_where_gradients_go() -> None:
    x, w = ask(X), ask(X)
    y = x * w
    y.backward(np.ones(3), inputs=[x])
    assert x.grad is not None
    assert w.grad is None
    z = x * w
    (z * z).sum().backward(inputs=z, retain_graph=True)
    assert_close(value(z.grad), 2 * X * X)
    with pytest.raises(RuntimeError, match="empty"):
        (x * w).sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match="does not require"):
        (x * w).sum().backward(inputs=[a.tensor(1.0)])


# grad


def test_grad_leaves_grad_alone() -> None:
    x, w = ask(X), ask(M)
    y = w @ np.tanh(x)
    of_x, of_w = a.grad(y.sum(), [x, w])
    expected = ft.grad(lambda x, w: (w @ np.tanh(x)).sum(), (0, 1))(X, M)
    assert_close(value(of_x), expected[0])
    assert_close(value(of_w), expected[1])
    assert x.grad is None
    assert w.grad is None
    assert not of_x.requires_grad


def test_grad_by_tensors_on_the_way() -> None:
    x = ask(X)
    y = x * x
    z = np.sin(y) + y
    of_y, of_x, of_z = a.grad(z.sum(), [y, x, z])
    assert_close(value(of_y), np.cos(X * X) + 1)
    assert_close(value(of_x), (np.cos(X * X) + 1) * 2 * X)
    assert_close(value(of_z), np.ones(3))


def test_inputs_that_are_not_used() -> None:
    x, w = ask(X), ask(X)
    with pytest.raises(RuntimeError, match=r"(?s)input 1.*allow_unused=True"):
        a.grad((x * 2).sum(), [x, w])
    found = a.grad((x * 2).sum(), [x, w], allow_unused=True)
    assert found[1] is None
    with pytest.raises(ValueError, match=r"only_inputs is True.*outputs\.backward"):
        a.grad((x * 2).sum(), x, only_inputs=False)
    found = a.grad((x * 2).sum(), x, None, False, False, True, True)
    assert_close(value(found[0]), np.full(x.shape, 2.0))
    found = a.grad((x * 2).sum(), [x, w], materialize_grads=True)
    assert_close(value(found[1]), np.zeros(3))
    with pytest.raises(TypeError, match="not a tensor"):
        a.grad((x * 2).sum(), [X])  # type: ignore[list-item]
    y = x * 2
    z = x * 3
    assert a.grad(z.sum(), y, allow_unused=True) == (None,)


def test_derivatives_of_all_orders() -> None:
    x = ask(0.6)
    y, expected = np.exp(np.sin(x)) * x, lambda x: np.exp(np.sin(x)) * x
    for _ in range(4):
        (y,) = a.grad(y, x, create_graph=True)  # type: ignore[assignment]
        expected = ft.grad(expected)
        assert_close(value(y), expected(0.6), 1e-10)
    y.backward()
    assert_close(value(x.grad), ft.grad(expected)(0.6), 1e-10)


def test_hessians_by_reverse_over_reverse() -> None:
    def f(x: Any, w: Any) -> Any:
        h = np.tanh(w @ x)
        return (h**2).sum() + np.maximum(h, 0.1).prod() + np.linalg.norm(x) * x.max()

    x, w = ask(X), ask(M)
    (first,) = a.grad(f(x, w), x, create_graph=True)
    rows = [a.grad(first[i], [x, w], retain_graph=True) for i in range(3)]  # type: ignore[index]
    assert_close(np.stack([value(r[0]) for r in rows]), ft.hessian(f)(X, M), 1e-10)
    mixed = ft.jacobian(ft.grad(f), 1)(X, M)
    assert_close(np.stack([value(r[1]) for r in rows]), mixed, 1e-10)


def test_gradients_of_a_gradient_penalty() -> None:
    w, x = ask(M), ask(X)
    y = np.tanh(w @ x).sum()
    (slope,) = a.grad(y, x, create_graph=True)
    (y + (slope**2).sum()).backward()  # type: ignore[operator]

    def penalty(w: Any) -> Any:
        f = lambda x: np.tanh(w @ x).sum()  # noqa: E731
        return f(X) + (ft.grad(f)(X) ** 2).sum()

    assert_close(value(w.grad), ft.grad(penalty)(M), 1e-10)


def test_cotangents_that_are_differentiated() -> None:
    x, v = ask(X), ask(2 * X)
    (found,) = a.grad(np.sin(x), x, v, create_graph=True)
    of_x, of_v = a.grad(found.sum(), [x, v])  # type: ignore[union-attr]
    assert_close(value(of_x), -np.sin(X) * 2 * X)
    assert_close(value(of_v), np.cos(X))


def test_create_graph_in_backward_records_the_gradient() -> None:
    x = ask(X)
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not None
    assert x.grad.requires_grad
    (again,) = a.grad(x.grad.sum(), x)
    assert_close(value(again), 6 * X)
    x.grad = None
    (x**3).sum().backward(create_graph=True)
    (x**2).sum().backward(create_graph=True)
    (again,) = a.grad(x.grad.sum(), x)  # type: ignore[union-attr]
    assert_close(value(again), 6 * X + 2)


def test_second_backward_without_the_graph_that_it_needs() -> None:
    x = ask(X)
    y = (np.exp(x) * x).sum()
    (first,) = a.grad(y, x, create_graph=True)
    a.grad(first.sum(), x, retain_graph=True)  # type: ignore[union-attr]
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        first.sum().backward()  # type: ignore[union-attr]


# Dtypes and shapes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_gradients_have_the_dtype_of_their_leaf(dtype: Any) -> None:
    x = a.tensor(np.array([1.5, -2.0, 0.7]), dtype=dtype, requires_grad=True)
    for y in (x * np.float64(2), x * np.arange(3.0), x.astype(np.complex128).real * 2, abs(x * x)):
        (found,) = a.grad(abs(y).sum(), x)
        assert found is not None
        assert found.dtype == dtype
        assert found.shape == (3,)


def test_mixed_precision() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y).sum() + (x * 2.5).astype(np.float64).sum() + np.float32(3) * y.sum()

    check_gradients(f, X.astype(np.float32), 2 * X, tolerance=1e-5)


def test_complex() -> None:
    z = X + 1j * X[::-1]

    def f(z: Any, x: Any) -> Any:
        return np.abs(z * x) + np.real(np.exp(1j * z)) * np.imag(z) + np.angle(z), np.conj(z) * x

    check_gradients(f, z, X, order=2)
    check_gradients(lambda x: np.abs(np.exp(1j * x) + x), X, order=2)


@pytest.mark.parametrize(
    "shapes", [((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), ()), ((0,), (1,)), ((1,), ())]
)
def test_broadcasting(shapes: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(0.5, 2, s) for s in shapes)
    for f in (np.add, np.multiply, np.divide, np.power, np.arctan2, np.maximum, np.hypot, np.logaddexp):
        check_gradients(f, x, y, order=2, tolerance=1e-10)


def test_empty_and_zero_dimensional() -> None:
    check_gradients(lambda x: np.sin(x).sum(), np.zeros((0, 3)))
    check_gradients(lambda x: np.sin(x) * x.sum(), np.zeros((2, 0)))
    check_gradients(lambda x: x * x.reshape(()), np.float64(2.0), order=2)
    check_gradients(lambda x: x[()] * x[None] * x[...], np.float64(2.0), order=2)
    x = ask(2.0)
    x.backward()
    assert x.grad is not None
    assert x.grad.shape == ()


def test_integers_and_booleans_have_no_gradient() -> None:
    x = ask(X)
    for y in (x > 0, x.argmax(), x.astype(int), np.argsort(x), np.isfinite(x), np.nonzero(x)[0]):
        assert not y.requires_grad
    with pytest.raises(RuntimeError, match="floating-point"):
        a.tensor([1, 2], requires_grad=True)
    with pytest.raises(RuntimeError, match="floating-point"):
        a.tensor([True]).requires_grad_()


# Leaves


def test_requires_grad_can_be_switched_for_leaves() -> None:
    x = a.tensor(X)
    x.requires_grad = True
    y = x * 2
    x.requires_grad_(False)
    assert not (x * 2).requires_grad
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="for a leaf only"):
        y.requires_grad = False
    y.requires_grad_()


def test_grad_must_fit_its_tensor() -> None:
    x = ask(X)
    x.grad = a.tensor(X)
    for wrong in (a.tensor(1.0), a.tensor(X, dtype=np.float32)):
        with pytest.raises(RuntimeError, match=r"f64\[3\]"):
            x.grad = wrong
    x.grad = None
    del x.grad
    assert x.grad is None


def test_detach_cuts_the_graph() -> None:
    x = ask(X)
    (x * x.detach() + (x * 2).detach() * x).sum().backward()
    assert_close(value(x.grad), 3 * X)


def test_detach_in_place() -> None:
    x = ask(X)
    y = x * 2
    y.detach_()
    assert not y.requires_grad
    assert y.is_leaf
    z = x * 3
    part = z[1:]
    part.detach_()
    z *= 2
    assert not part.requires_grad
    assert z.requires_grad


def test_an_optimizer_step() -> None:
    w = ask(X)
    for _ in range(200):
        loss = ((w - np.array([1.0, 2.0, 3.0])) ** 2).sum()
        w.zero_grad()
        loss.backward()
        with a.no_grad():
            w -= 0.1 * w.grad
    assert_close(value(w), np.array([1.0, 2.0, 3.0]), 1e-8)
    for _ in range(200):
        (w**2).sum().backward()
        w.data = w.data - 0.1 * w.grad.data  # type: ignore[union-attr]
        w.grad = None
    assert np.abs(value(w)).max() < 1e-8


# Memory


def test_a_long_loop_that_keeps_nothing_does_not_grow() -> None:
    x = ask(np.ones(10))

    def run(count: int) -> int:
        for _ in range(count):
            y = (x * 1.5).sum()
        y.backward()
        x.grad = None
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    run(100)
    tracemalloc.start()
    try:
        before = run(200)
        # No object is smaller than 16 bytes.
        assert run(2000) - before < 16 * 1800
    finally:
        tracemalloc.stop()


def test_a_graph_goes_with_its_last_reference_and_without_the_garbage_collector() -> None:
    x = ask(X)
    gc.disable()
    try:
        y = np.sin(x) * x
        z = y[1:]
        z *= 2
        node = weakref.ref(y.grad_fn)  # type: ignore[arg-type]
        first = weakref.ref(y)
        del y, z
        assert node() is None
        assert first() is None
    finally:
        gc.enable()


def test_chains_of_any_length() -> None:
    x = ask(2.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert_close(value(x.grad), np.float64(1.0))
    del y
    y = x * 1
    for _ in range(20_000):
        y = y * 1.0
    (first,) = a.grad(y * y, x, create_graph=True)
    del y
    first.backward()  # type: ignore[union-attr]
    assert_close(value(x.grad), np.float64(3.0))


# Hooks


def test_a_hook_sees_the_gradient() -> None:
    x = ask(X)
    seen: list[Any] = []
    y = x * 2
    y.register_hook(lambda g: seen.append(value(g)))
    x.register_hook(lambda g: seen.append(value(g)))
    (y * y).sum().backward()
    assert_close(seen[0], 4 * X)
    assert_close(seen[1], 8 * X)
    assert_close(value(x.grad), 8 * X)


def test_hooks_replace_the_gradient_in_order() -> None:
    for make in (lambda x: x, lambda x: x * 1):
        x = ask(X)
        y = make(x)
        y.register_hook(lambda g: g + 1)
        y.register_hook(lambda g: None)
        handle = y.register_hook(lambda g: g * 10)
        (y * 3).sum().backward(retain_graph=True)
        assert_close(value(x.grad), np.full(3, 40.0))
        handle.remove()
        handle.remove()
        x.grad = None
        (y * 3).sum().backward()
        assert_close(value(x.grad), np.full(3, 4.0))


def test_a_hook_runs_once_with_the_whole_gradient() -> None:
    x = ask(X)
    calls: list[Any] = []
    x.register_hook(lambda g: calls.append(value(g)))
    y = x * 1
    y.register_hook(lambda g: calls.append(value(g)))
    (y + y * y + x).sum().backward()
    assert len(calls) == 2
    assert_close(calls[0], 1 + 2 * X)
    assert_close(calls[1], 2 + 2 * X)


def test_hooks_on_roots_and_by_grad() -> None:
    x = ask(X)
    y = (x * x).sum()
    y.register_hook(lambda g: g * 5)
    y.backward(retain_graph=True)
    assert_close(value(x.grad), 10 * X)
    (found,) = a.grad(y, x, retain_graph=True)
    assert_close(value(found), 10 * X)
    (of_y,) = a.grad(y, y)
    assert_close(value(of_y), np.float64(5.0))
    z = ask(2.0)
    z.register_hook(lambda g: g * 7)
    z.backward()
    assert_close(value(z.grad), np.float64(7.0))


def test_hooks_on_one_of_several_results() -> None:
    x = ask(X)
    first, second = np.split(x * 1, [1])
    first.register_hook(lambda g: g * 100)
    (first.sum() + second.sum()).backward()
    assert_close(value(x.grad), np.array([100.0, 1.0, 1.0]))


def test_hooks_with_create_graph_are_differentiated() -> None:
    x = ask(X)
    y = x * x
    y.register_hook(lambda g: g * x)
    (found,) = a.grad(y.sum(), x, create_graph=True)
    assert_close(value(found), 2 * X * X)
    (again,) = a.grad(found.sum(), x)  # type: ignore[union-attr]
    assert_close(value(again), 4 * X)


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_that_change_the_gradient_in_place_change_it_for_this_tensor_only(create_graph: bool) -> None:
    x, ct = ask(X), np.ones(3)
    y, z = x * 1, x * 1
    y.register_hook(lambda g: g.fill(7.0))
    (y + z).backward(ct, create_graph=create_graph)
    assert_close(value(x.grad), np.full(3, 8.0))
    assert_close(ct, np.ones(3))


def test_retained_gradients_follow_what_is_changed_in_place() -> None:
    x = ask(X)
    y = x * 2
    part = y[1:]
    y.retain_grad()
    part.retain_grad()
    y *= 3
    ((y * 5).sum() + part.sum()).backward()
    assert_close(value(y.grad), np.array([5.0, 6.0, 6.0]))
    assert_close(value(part.grad), np.ones(2))
    assert_close(value(x.grad), np.array([30.0, 36.0, 36.0]))


def test_retained_gradients_are_their_own() -> None:
    x, ct = ask(X), np.ones(3)
    y = x * 1
    y.retain_grad()
    z = y + 0
    z.retain_grad()
    z.backward(ct)
    ct[0] = 9.0
    assert z.grad is not None
    z.grad += 5
    for tensor in (x, y):
        assert_close(value(tensor.grad), np.ones(3))


def test_a_hook_that_goes_back_through_another_graph() -> None:
    x = ask(X)
    y = x * 2

    def add_another(g: Any) -> Any:
        with a.enable_grad():
            (other,) = a.grad((x * x).sum(), x)
        return g + other

    y.register_hook(add_another)
    y.sum().backward()
    assert_close(value(x.grad), 2 * (1 + 2 * X))


def test_hooks_may_return_arrays_and_other_dtypes() -> None:
    x = ask(X)
    x.register_hook(lambda g: np.ones(3, np.float32))
    (x * 2).sum().backward()
    assert_close(value(x.grad), np.ones(3))


@pytest.mark.parametrize("wrong", [np.ones(2), "text", 1.0, np.ones((1, 3)), np.array(["a", "b", "c"])])
def test_a_hook_that_returns_something_wrong(wrong: Any) -> None:
    x = ask(X)
    y = x * 2
    y.register_hook(lambda g: wrong)
    with pytest.raises(RuntimeError, match=r"(?s)hook returned.*\(3,\)" + ".*" + line_of("register_hook")):
        y.sum().backward()


def test_hooks_need_a_gradient_to_see() -> None:
    for use in (lambda x: x.register_hook(print), lambda x: x.retain_grad()):
        with pytest.raises(RuntimeError, match="require a gradient"):
            use(a.tensor(X))


def test_handles_are_context_managers() -> None:
    x = ask(X)
    with x.register_hook(lambda g: g * 2):
        x.sum().backward()
    x.sum().backward()
    assert_close(value(x.grad), np.full(3, 3.0))


def test_an_exception_in_a_hook_leaves_things_in_order() -> None:
    x = ask(X)
    y = x * 1

    def fail(g: Any) -> None:
        raise KeyError("mine")

    handle = y.register_hook(fail)
    z = y.sum()
    with pytest.raises(KeyError):
        z.backward(retain_graph=True)
    assert a.is_grad_enabled()
    assert x.grad is None
    handle.remove()
    z.backward()
    assert_close(value(x.grad), np.ones(3))


def test_retained_gradients() -> None:
    x = ask(X)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    x.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    assert_close(value(y.grad), 4 * X)
    assert_close(value(x.grad), 8 * X)
    (y * y).sum().backward()
    assert_close(value(y.grad), 8 * X)
    z = x * 2
    z.register_hook(lambda g: g * 3)
    z.retain_grad()
    z.sum().backward()
    assert_close(value(z.grad), np.full(3, 3.0))
    w = x * 2
    w.sum().backward()
    assert w.grad is None


def test_a_retained_tensor_may_go() -> None:
    x = ask(X)
    y = x * 2
    y.retain_grad()
    z = np.sin(y).sum()
    del y
    z.backward()
    assert_close(value(x.grad), 2 * np.cos(2 * X))


def test_a_retained_tensor_that_is_asked_for_gets_its_gradient_once() -> None:
    x = ask(X)
    y = x * x
    y.retain_grad()
    (y * 3).sum().backward(inputs=[y, y])
    assert_close(value(y.grad), np.full(3, 3.0))


def test_what_lies_behind_a_tensor_that_is_asked_for_stays() -> None:
    x = ask(X)
    y = x * x
    (ct,) = a.grad((y * 3).sum(), y)
    y.backward(ct)
    assert_close(value(x.grad), 6 * X)


def test_recorded_gradients_are_their_own() -> None:
    x, ct = ask(X), a.tensor(np.ones(3))
    x.backward(ct, create_graph=True)
    with a.no_grad():
        x.grad.zero_()
    assert_close(value(ct), np.ones(3))


def test_a_gradient_that_another_one_is_a_view_of_is_not_added_to_in_place() -> None:
    x, y = ask(X[None]), ask(2 * X[None])
    square = (x * x).sum()
    together = ft.vmap(lambda p, q: np.sin(p + q[::-1]))(x, y)
    (square + together.sum()).backward()
    assert_close(value(x.grad)[0], 2 * X + np.cos(X + 2 * X[::-1]))
    assert_close(value(y.grad)[0], np.cos(X[::-1] + 2 * X))


def test_hooks_run_once_also_in_anomaly_mode() -> None:
    x, seen = ask(X), []
    x.register_hook(lambda ct: seen.append(value(ct)))
    with a.detect_anomaly():
        (x * x).sum().backward()
    assert len(seen) == 1


@pytest.mark.parametrize("number", [complex(-1, 0.0), complex(-1, -0.0)])
def test_zeros_of_complex_numbers_have_a_sign(number: complex) -> None:
    x = a.tensor(2.0, requires_grad=True)
    np.power(number, x).imag.backward()
    assert_close(value(x.grad), np.copysign(np.pi, number.imag))


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda: a.Tensor(2, 3), r"write empty\(2, 3\)"),
        (lambda: a.Tensor(2), r"write empty\(2\)"),
        (lambda: a.Tensor(1, 4, 8), r"write empty\(1, 4, 8\)"),
        (lambda: a.Tensor([1.0, 2.0]), r"write tensor\(data"),
        (lambda: a.Tensor(np.ones(2)), r"write tensor\(data"),
    ],
)
def test_the_class_is_not_called_as_in_torch(call: Callable[[], Any], instead: str) -> None:
    with pytest.raises(TypeError, match=rf"(?s){instead}.*test_tensor\.py"):
        call()
