"""`ftrans.autograd.functional`, held against the derivatives of the same functions of arrays; programs of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checks import assert_close
from tensors import a, leaf, value

import ftrans as ft
from ftrans.autograd import Tensor
from ftrans.autograd import functional as F
from ftrans.autograd.tracing import NoProgram, Unknown, noting_operands, program_of

random = np.random.default_rng(0)
X, Z, W = random.normal(size=4), random.normal(size=(2, 2)), random.normal(size=(3, 4))
V = random.normal(size=4)

WAYS = [
    {"create_graph": create_graph, "vectorize": vectorize, "strategy": strategy}
    for create_graph in (False, True)
    for vectorize in (False, True)
    for strategy in ("reverse-mode", "forward-mode")
]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(str(x) for x in way.values()))


def outer_way(way: dict[str, Any]) -> dict[str, Any]:
    """The options of `hessian` that are those of `jacobian`."""
    return {("outer_jacobian_strategy" if k == "strategy" else k): v for k, v in way.items()}


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    assert isinstance(found, Tensor)
    assert_close(value(found), np.asarray(value(expected))[()], tolerance)


def pair(x: Any, z: Any) -> Any:
    return np.tanh(W @ x) * z.sum() + 1, np.outer(x, z) ** 2


def energy(x: Any, z: Any) -> Any:
    return (np.tanh(W @ x) ** 2).sum() * (z * z).sum() + (x[:2] @ z).prod()


# Jacobians


@ways
def test_jacobians_of_several_inputs_and_outputs(way: dict[str, Any]) -> None:
    x, z = leaf(X), a.tensor(Z)
    found = F.jacobian(pair, (x, z), **way)
    expected = ft.jacobian(lambda p: pair(*p))((X, Z))
    assert isinstance(found, tuple)
    assert isinstance(found[0], tuple)
    for row, expected_row in zip(found, expected, strict=True):
        for block, e in zip(row, expected_row, strict=True):
            close(block, e)
            assert block.requires_grad == way["create_graph"] or block is not found[0][0]
    assert x.grad is None
    assert found[0][0].requires_grad == way["create_graph"]


@ways
def test_structure_follows_inputs_and_outputs(way: dict[str, Any]) -> None:
    x = leaf(X)
    close(F.jacobian(np.sin, x, **way), np.diag(np.cos(X)))
    (inside,) = F.jacobian(np.sin, (x,), **way)
    close(inside, np.diag(np.cos(X)))
    (inside,) = F.jacobian(lambda x: (np.sin(x),), x, **way)
    close(inside, np.diag(np.cos(X)))
    close(F.jacobian(lambda x: x.sum(), x, **way), np.ones(4))
    close(F.jacobian(lambda z: z @ z, a.tensor(Z), **way), ft.jacobian(lambda z: z @ z)(Z))
    close(F.jacobian(lambda s: s**3, a.tensor(2.0), **way), np.float64(12.0))
    assert F.jacobian(lambda x: x[:0], x, **way).shape == (0, 4)
    close(F.jacobian(lambda x: x, x, **way), np.eye(4))


@ways
def test_outputs_that_do_not_depend_on_inputs_have_zeros(way: dict[str, Any]) -> None:
    found = F.jacobian(lambda x, z: (x, a.tensor(1.0), z > 0, z), (leaf(X), leaf(Z)), **way)
    close(found[0][1], np.zeros((4, 2, 2)))
    close(found[1][0], np.zeros(4))
    close(found[2][1], np.zeros((2, 2, 2, 2)))
    close(found[3][1], np.eye(4).reshape(2, 2, 2, 2))


@ways
def test_jacobians_can_be_differentiated(way: dict[str, Any]) -> None:
    x, w = leaf(X), leaf(W)
    outside = w * 2
    if not way["create_graph"]:
        found = F.jacobian(lambda x: np.sin(w @ x) * outside.sum(), x, **way)
        assert not found.requires_grad
        return

    def f(x: Any, w: Any, outside: Any) -> Any:
        return np.sin(w @ x) * outside.sum()

    found = F.jacobian(lambda x: f(x, w, outside), x, **way)
    of_x, of_w = a.grad((found**2).sum(), [x, w])

    def reference(x: Any, w: Any) -> Any:
        return (ft.jacobian(lambda x: f(x, w, w * 2))(x) ** 2).sum()

    expected = ft.grad(reference, (0, 1))(X, W)
    close(of_x, expected[0])
    close(of_w, expected[1])


def changing(x: Any) -> Any:
    y = x * 1
    for i in range(3):
        y[i + 1] += y[i] * x[i]
    buffer = a.zeros(4) if isinstance(x, Tensor) else np.zeros_like(x)
    buffer[0] = y[1]
    buffer[1:] = y[:3] * x[3]
    buffer *= 2
    return buffer


def masked(x: Any) -> Any:
    y = np.maximum(x, 0.1) * np.where(x > 0, x, 2.0)
    y[y > 1] = 0.0
    return np.sort(y)


def looping(x: Any) -> Any:
    y = x
    while np.linalg.norm(y) < 100:
        y = y * 2 + np.sin(x)
    return y


def of_program(x: Any) -> Any:
    return ft.scan(lambda c, v: (np.sin(c + v), c * v), x[0], x)[1]


@ways
@pytest.mark.parametrize("f", [changing, masked, looping, of_program])
def test_functions_with_changes_branches_and_loops(f: Callable[[Any], Any], way: dict[str, Any]) -> None:
    close(F.jacobian(f, leaf(X), **way), ft.jacobian(f)(X))
    hessian = F.hessian(lambda x: (f(x) ** 2).sum(), leaf(X), **outer_way(way))
    close(hessian, ft.hessian(lambda x: (f(x) ** 2).sum())(X), 1e-8)


@ways
def test_what_a_program_does_not_know_is_differentiated_all_the_same(way: dict[str, Any]) -> None:
    x = leaf(X)

    def hooked(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y

    if way["strategy"] == "reverse-mode":
        close(F.jacobian(hooked, x, **way), 20 * np.eye(4))

    def overwritten(x: Any) -> Any:
        known = np.arange(4.0)
        y = x * known
        known[:] = 7.0
        return y * known

    close(F.jacobian(overwritten, x, **way), np.diag(7 * np.arange(4.0)))
    tensor = a.tensor(np.arange(4.0))

    def changed(x: Any) -> Any:
        tensor.copy_(np.arange(4.0))
        y = x + tensor
        tensor.fill_(7.0)
        return y * tensor

    close(F.jacobian(changed, x, **way), 7 * np.eye(4))

    class Scaled(a.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * 100

    close(F.jacobian(lambda x: Scaled.apply(x) * 3 + x, x, **way), 301 * np.eye(4))

    def partly(x: Any) -> Any:
        with a.no_grad():
            constant = x * 2
        return constant * x + (x * 3).detach() * x

    close(F.jacobian(partly, x, **way), np.diag(5 * X))


@ways
def test_large_constants(way: dict[str, Any]) -> None:
    many = np.arange(3000.0)
    close(F.jacobian(lambda x: (x[0] * many).sum(), leaf(X), **way), many.sum() * np.eye(4)[0])


def test_one_pass_is_made_with_vectorize() -> None:
    calls: list[Any] = []

    def f(x: Any) -> Any:
        calls.append(None)
        return np.tanh(W @ x)

    x = leaf(X)
    with noting_operands() as notes:
        y = f(x)
    first = program_of([y], [x], notes)[0]
    with noting_operands() as notes:
        y = f(x)
    assert program_of([y], [x], notes)[0] is first
    F.jacobian(f, x, vectorize=True)
    assert len(calls) == 3


def test_modes_outside_do_not_matter() -> None:
    with a.no_grad():
        close(F.jacobian(lambda x: x**2, leaf(X)), np.diag(2 * X))
        close(F.hessian(lambda x: (x**3).sum(), leaf(X), vectorize=True), np.diag(6 * X))
        assert not a.is_grad_enabled()


def test_dtypes() -> None:
    x = a.tensor(X, dtype=np.float32)
    for way in WAYS:
        assert F.jacobian(lambda x: x.astype(float) * V, x, **way).dtype == np.float32
    complex_ = F.jacobian(lambda x: x * (1 + 2j), leaf(X), strategy="forward-mode", vectorize=True)
    close(complex_, (1 + 2j) * np.eye(4))
    close(F.jacobian(lambda x: x * (1 + 2j), leaf(X), strategy="forward-mode"), (1 + 2j) * np.eye(4))
    z = a.tensor(X + 1j * V)
    expected = ft.jacobian(lambda z: np.abs(z) ** 2, mode="reverse")(X + 1j * V)
    close(F.jacobian(lambda z: np.abs(z) ** 2, z), expected)
    close(F.jacobian(lambda z: np.abs(z) ** 2, z, vectorize=True), expected)
    with pytest.raises(TypeError, match="forward-mode"):
        F.jacobian(lambda x: x * 1j, leaf(X))
    with pytest.raises(TypeError, match="reverse-mode"):
        F.jacobian(lambda z: abs(z), z, strategy="forward-mode")


# Hessians


@ways
def test_hessians(way: dict[str, Any]) -> None:
    x, z = leaf(X), leaf(Z)
    found = F.hessian(energy, (x, z), **outer_way(way))
    expected = ft.hessian(lambda p: energy(*p))((X, Z))
    for i in range(2):
        for j in range(2):
            close(found[i][j], expected[i][j])
            assert found[i][j].requires_grad == way["create_graph"]
    close(F.hessian(lambda x: (x**3).sum().reshape(1), x, **outer_way(way)), np.diag(6 * X))
    close(F.hessian(lambda x: (W @ x).sum(), x, **outer_way(way)), np.zeros((4, 4)))
    if way["create_graph"]:
        (third,) = a.grad((found[0][1] ** 2).sum(), x, retain_graph=True)
        reference = lambda x: (ft.hessian(lambda p: energy(*p))((x, Z))[0][1] ** 2).sum()  # noqa: E731
        close(third, ft.grad(reference)(X), 1e-9)


@pytest.mark.parametrize(
    "take", [F.hessian, lambda f, x: F.vhp(f, x, a.tensor(V)), lambda f, x: F.hvp(f, x, a.tensor(V))]
)
def test_second_derivatives_are_of_a_scalar(take: Any) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)scalar.*f64\[4\].*\.sum\(\)"):
        take(lambda x: x * 2, leaf(X))
    with pytest.raises(RuntimeError, match="2 tensors"):
        take(lambda x: (x.sum(), x.sum()), leaf(X))
    with pytest.raises(RuntimeError, match="real number"):
        take(lambda x: (x * 1j).sum(), leaf(X))


# Products


@pytest.mark.parametrize("create_graph", [False, True])
def test_products_with_jacobians(create_graph: bool) -> None:
    x, z = leaf(X), leaf(Z)
    f = lambda x, z: (np.tanh(W @ x) * z.sum(), x * z[0, 0])  # noqa: E731
    cts = (random.normal(size=3), random.normal(size=4))
    out, found = F.vjp(f, (x, z), tuple(map(a.tensor, cts)), create_graph=create_graph)
    expected_out, pull = ft.vjp(f, X, Z)
    for y, e in zip((*out, *found), (*expected_out, *pull(cts)), strict=True):
        close(y, e)
        assert y.requires_grad == create_graph
    tangents = (random.normal(size=4), random.normal(size=(2, 2)))
    out, found = F.jvp(f, (x, z), tuple(map(a.tensor, tangents)), create_graph=create_graph)
    expected_out, pushed = ft.jvp(f, (X, Z), tangents)
    for y, e in zip((*out, *found), (*expected_out, *pushed), strict=True):
        close(y, e)
        assert y.requires_grad == create_graph
    if create_graph:
        (of_x,) = a.grad(found[0].sum(), x)
        close(of_x, ft.grad(lambda x: ft.jvp(f, (x, Z), tangents)[1][0].sum())(X))


@pytest.mark.parametrize("take", [F.vhp, F.hvp])
@pytest.mark.parametrize("create_graph", [False, True])
def test_products_with_hessians(take: Any, create_graph: bool) -> None:
    x, z = leaf(X), leaf(Z)
    out, found = take(energy, (x, z), (a.tensor(V), a.tensor(Z)), create_graph=create_graph)
    close(out, energy(X, Z))
    for y, e in zip(found, ft.hvp(energy, (X, Z), (V, Z)), strict=True):
        close(y, e)
        assert y.requires_grad == create_graph
    if create_graph:
        (third,) = a.grad(found[0].sum(), z)
        close(third, ft.grad(lambda z: ft.hvp(energy, (X, z), (V, Z))[0].sum())(Z))
    _, single = take(lambda x: (x**3).sum(), x, a.tensor(V))
    close(single, 6 * X * V)
    _, zero = take(lambda x: x.sum(), x, a.tensor(V))
    close(zero, np.zeros(4))


def test_vectors_are_one_by_default_for_numbers() -> None:
    x = leaf(2.0)
    close(F.jvp(np.sin, x)[1], np.cos(2.0))
    close(F.vjp(np.sin, x)[1], np.cos(2.0))
    close(F.vhp(np.sin, x)[1], -np.sin(2.0))
    close(F.hvp(np.sin, x)[1], -np.sin(2.0))
    for take in (F.jvp, F.vjp):
        with pytest.raises(RuntimeError, match="needs v"):
            take(np.sin, leaf(X))
    with pytest.raises(RuntimeError, match=r"\(4,\).*\(\)"):
        F.vjp(np.sin, leaf(X), a.tensor(1.0))
    with pytest.raises(RuntimeError, match=r"\(4,\), \(4,\)"):
        F.jvp(np.sin, leaf(X), (leaf(X), leaf(X)))
    with pytest.raises(TypeError, match="ndarray"):
        F.jvp(np.sin, leaf(X), X)  # type: ignore[arg-type]


def test_no_vector_where_one_is_needed() -> None:
    with pytest.raises(RuntimeError, match=r"v of jvp must have the shapes of the inputs: \(4,\), not nothing\n  at "):
        F.jvp(np.sin, leaf(X), ())


@pytest.mark.parametrize("create_graph", [False, True])
def test_forward_mode_where_only_reverse_mode_is_at_hand(create_graph: bool) -> None:
    def hooked(x: Any) -> Any:
        y = x**3
        y.register_hook(lambda g: g)
        return y, x > 0, y * V

    x = leaf(X)
    _, found = F.jvp(hooked, x, a.tensor(V), create_graph=create_graph)
    close(found[0], 3 * X**2 * V)
    close(found[2], 3 * X**2 * V * V)
    assert found[1].dtype == np.bool_
    if create_graph:
        (again,) = a.grad(found[0].sum(), x)
        close(again, 6 * X * V)


# Strict


def test_strict() -> None:
    x, z = leaf(X), leaf(Z)
    ignoring = lambda x, z: (x * 2).sum()  # noqa: E731
    for take in (
        lambda: F.jacobian(ignoring, (x, z), strict=True), lambda: F.hessian(ignoring, (x, z), strict=True),
        lambda: F.vjp(ignoring, (x, z), strict=True), lambda: F.jvp(ignoring, (x, z), (x, z), strict=True),
        lambda: F.vhp(ignoring, (x, z), (x, z), strict=True), lambda: F.hvp(ignoring, (x, z), (x, z), strict=True),
        lambda: F.jacobian(ignoring, (x, z), strict=True, vectorize=True),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="output 0 of lambda does not depend on input 1"):
            take()
    linear = lambda x: (x * 2).sum()  # noqa: E731
    with pytest.raises(RuntimeError, match="derivative by input 0 of lambda does not depend on input 0"):
        F.hessian(linear, x, strict=True)
    for product in (F.vhp, F.hvp):
        with pytest.raises(RuntimeError, match="gradient of lambda does not depend"):
            product(linear, x, x, strict=True)
    with pytest.raises(RuntimeError, match="jacobian of lambda does not depend"):
        F.jacobian(linear, x, strict=True, create_graph=True)
    F.jacobian(linear, x, strict=True)
    F.hessian(lambda x: (x**2).sum(), x, strict=True)
    F.jacobian(lambda x: x**2, x, strict=True, create_graph=True, vectorize=True)
    F.jacobian(lambda x: (x, x * 2), (x,), strict=True)


def test_bad_input() -> None:
    with pytest.raises(TypeError, match=r"(?s)ndarray.*autograd\.tensor"):
        F.jacobian(np.sin, X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="returned float"):
        F.jacobian(lambda x: 3.0, leaf(X))
    with pytest.raises(TypeError, match="returned list"):
        F.jacobian(lambda x: [x], leaf(X))
    with pytest.raises(RuntimeError, match="floating-point"):
        F.jacobian(lambda x: x * 2.0, a.tensor([1, 2]))
    with pytest.raises(ValueError, match="strategy"):
        F.jacobian(np.sin, leaf(X), strategy="both")  # type: ignore[arg-type]


# Programs of graphs


def test_a_graph_runs_again_as_a_program() -> None:
    x, w = leaf(X), leaf(W)
    constant = np.arange(3.0)
    outside = w * 3
    with noting_operands() as notes:
        y = np.tanh(outside @ x) + constant
        y[0] = y[1] * w[0, 0]
        z = (y - 1).sum() * 2.5
    program, values = program_of([z, y], [x], notes)
    assert values[0] is x
    arrays = [v.array if isinstance(v, Tensor) else v for v in values]
    found = program.check()(*arrays)
    assert_close(found[0], np.asarray(value(z))[()])
    assert_close(found[1], value(y))
    tensors = [v for v in values if isinstance(v, Tensor)]
    assert {id(v.node if v.node is not None else v) for v in tensors} == {id(x), id(w), id(outside.node)}
    assert all(eqn.line is not None and "test_functional" in eqn.line.filename for eqn in program.eqns)


def test_a_graph_without_notes_has_unknown_inputs() -> None:
    x = leaf(X)
    y = (x * V + W[0]) * x
    program, values = program_of([y])
    program.check()
    assert values[0] is x
    assert [isinstance(v, Unknown) for v in values].count(True) == 1
    y.sum().backward()
    assert len(program_of([y])[0].eqns) == len(program.eqns)
    plain = a.tensor(X)
    assert len(program_of([plain])[0].eqns) == 0


def test_what_cannot_run_again_says_so() -> None:
    x = leaf(X)
    with noting_operands() as notes:
        y = x * 2
        y.register_hook(print)
        z = y * 3
    with pytest.raises(NoProgram):
        program_of([z], [x], notes)
    with noting_operands() as notes:
        known = a.tensor(V)
        z = x + known
        known += 1
    with pytest.raises(NoProgram):
        program_of([z], [x], notes)
