"""Functions with ftrans inside as functions of torch, and tensors as arguments of transformations.

`make test-interop` installs torch, and runs this file.
"""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pytest

import ftrans as ft

torch: Any = pytest.importorskip("torch")
func = torch.func

# torch calls it itself, for rules of forward mode.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

f64 = torch.float64
X = torch.tensor([0.3, -1.2, 0.7], dtype=f64)
Y = torch.tensor([1.5, 0.2, -0.4], dtype=f64)
LANES = torch.tensor([[0.1, 0.2, 0.3], [-1.0, 2.0, 0.5]], dtype=f64)


def in_numpy(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y) + np.sum(x) ** 2 * np.tanh(x @ y)


def in_torch(x: Any, y: Any) -> Any:
    return torch.sum(torch.sin(x) * y) + torch.sum(x) ** 2 * torch.tanh(x @ y)


# Both take functions of x and y, and give a function of x.
TRANSFORMED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "grad": lambda f: lambda x: func.grad(f)(x, Y),
    "jacfwd": lambda f: lambda x: func.jacfwd(f)(x, Y),
    "hessian": lambda f: lambda x: func.hessian(f, argnums=(0, 1))(x, Y)[0][1],
    "reverse over reverse": lambda f: lambda x: func.jacrev(func.jacrev(f))(x, Y),
    "reverse over forward": lambda f: lambda x: func.jacrev(func.jacfwd(f))(x, Y),
    "forward over forward": lambda f: lambda x: func.jacfwd(func.jacfwd(f, argnums=1))(x, Y),
    "third order": lambda f: lambda x: func.jacrev(func.hessian(f))(x, Y),
    "jvp": lambda f: lambda x: torch.stack(func.jvp(f, (x, Y), (Y, x))),
    "vjp": lambda f: lambda x: func.vjp(f, x, Y)[1](Y[0])[1],
    "vmap": lambda f: lambda x: func.vmap(f, (0, None))(x * LANES, Y),
    "vmap along the last axis": lambda f: lambda x: func.vmap(f, (1, 0))((x * LANES).T, LANES),
    "vmap of vmap": lambda f: lambda x: func.vmap(func.vmap(f, (0, None)), (None, 0))(x * LANES, LANES),
    "vmap of hessian": lambda f: lambda x: func.vmap(func.hessian(f), (0, None))(x * LANES, Y),
    "grad of vmap": lambda f: lambda x: func.grad(lambda z: func.vmap(f, (0, None))(z * LANES, Y).sum())(x),
}


@pytest.fixture(params=[False, True], ids=["plain", "compiled"])
def compiled(request: pytest.FixtureRequest) -> Any:
    return ft.jit if request.param else lambda f: f


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_of_torch(name: str, compiled: Any) -> None:
    transformed = TRANSFORMED[name]
    torch.testing.assert_close(transformed(ft.to_torch(compiled(in_numpy)))(X), transformed(in_torch)(X))


def leaf(x: Any) -> Any:
    return x.clone().requires_grad_()


def test_gradients_of_gradients_agree_with_differences(compiled: Any) -> None:
    f = ft.to_torch(compiled(lambda x, y: (x * np.exp(y), np.where(x > 0, np.sqrt(np.abs(x)), 0.0))))
    assert torch.autograd.gradcheck(f, (leaf(X), leaf(Y)), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (leaf(X), leaf(Y)), check_fwd_over_rev=True, check_rev_over_rev=True)


def test_complex_gradients_are_those_of_torch(compiled: Any) -> None:
    z = torch.complex(X, Y)
    f = ft.to_torch(compiled(lambda z, x: (np.exp(z) * x + z * np.conj(z), np.abs(z))))
    assert torch.autograd.gradcheck(f, (leaf(z), leaf(X)), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (leaf(z), leaf(X)))
    found = func.grad(ft.to_torch(compiled(lambda z: np.sum(np.abs(np.exp(z)) ** 2 + z.imag))))(z)
    torch.testing.assert_close(found, func.grad(lambda z: torch.sum(torch.exp(z).abs() ** 2 + z.imag))(z))


def test_rules_of_ftrans_hold(compiled: Any) -> None:
    assert func.grad(ft.to_torch(compiled(lambda x: np.linalg.norm(x))))(0 * X).tolist() == [0, 0, 0]
    assert func.grad(ft.to_torch(compiled(lambda x: ft.stop_gradient(x) * x)))(X[0]) == X[0]
    root = ft.to_torch(compiled(lambda a: ft.root(lambda y, a: y**3 + y - a, 0.5, a)))
    assert func.grad(root)(torch.tensor(2.0, dtype=f64)).item() == pytest.approx(0.25)


def test_containers_dtypes_and_other_arguments(compiled: Any) -> None:
    def f(p: Any, scale: Any = None, **options: Any) -> Any:
        return {"w": p["w"] * 2 + p["n"], "rest": [np.argmax(p["w"]), 1.5], "ones": np.ones(2) * scale}

    w = torch.tensor([3.0, 4.0], requires_grad=True)
    found = ft.to_torch(compiled(f))({"w": w, "n": torch.tensor(2, dtype=torch.int8)}, scale=np.float32(3))
    assert found["w"].dtype is torch.float32
    assert [x.dtype for x in found["rest"]] == [torch.int64, f64]
    assert found["ones"].tolist() == [3.0, 3.0]
    assert torch.autograd.grad(found["w"].sum(), w)[0].tolist() == [2.0, 2.0]
    assert not found["rest"][0].requires_grad
    for dtype in (torch.bfloat16, torch.float16, torch.complex64, torch.int8):
        x = torch.ones(2, dtype=dtype)
        assert ft.to_torch(compiled(lambda x: x * 2))(x).equal(2 * x)
    assert ft.to_torch(lambda x, what: (x * what["k"], what["s"], None))(X, {"k": 2, "s": "text"})[1] == "text"
    assert ft.to_torch(lambda x, what=None: None)(X) is None
    assert ft.to_torch(compiled(lambda x: 2 * x))(np.ones(2)).tolist() == [2.0, 2.0]
    assert ft.to_torch(ft.jit(lambda x, n: x**n, static_argnums=1))(X, 3).equal(X**3)


def test_the_memory_of_tensors(compiled: Any) -> None:
    a = X.clone()
    assert ft.to_torch(compiled(lambda x: x))(a).data_ptr() != a.data_ptr()
    assert ft.to_torch(compiled(lambda x: x[::-1]))(a).tolist() == a.flip(0).tolist()
    assert ft.to_torch(compiled(lambda x: x * 2))(LANES.T).equal(LANES.T * 2)
    assert ft.to_torch(compiled(lambda z: z * 1))(torch.complex(X, Y).conj()).equal(torch.complex(X, -Y))

    assert ft.to_torch(compiled(lambda x: x + 1))(torch._efficientzerotensor(2)).tolist() == [1.0, 1.0]

    captured = jax.numpy.ones(2)
    ft.to_torch(compiled(lambda x: (x, captured)))(X)[1].mul_(2)
    assert captured.tolist() == [1.0, 1.0]

    x = leaf(X)
    y = ft.to_torch(compiled(np.exp))(x)
    y.mul_(2)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], 2 * X.exp())
    z = x * 1
    y = ft.to_torch(compiled(np.exp))(z)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_backward_passes(compiled: Any) -> None:
    x = leaf(X)
    y = ft.to_torch(compiled(lambda x: np.sum(x**3)))(x)
    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(x.grad, 6 * X**2)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    linear = torch.nn.Linear(3, 2, dtype=f64)
    f = ft.to_torch(compiled(lambda x, w, b: np.sum(np.tanh(x @ w.T + b))))
    f(LANES, linear.weight, linear.bias).backward()
    found = linear.weight.grad.clone()
    linear.weight.grad = None
    torch.tanh(linear(LANES)).sum().backward()
    torch.testing.assert_close(found, linear.weight.grad)
    recomputed = torch.utils.checkpoint.checkpoint(ft.to_torch(compiled(in_numpy)), x, Y, use_reentrant=False)
    torch.testing.assert_close(torch.autograd.grad(recomputed, x)[0], func.grad(in_torch)(X, Y))
    with torch.no_grad():
        assert not ft.to_torch(compiled(np.sum))(x).requires_grad


def test_python_branches(compiled: Any) -> None:
    f = ft.to_torch(compiled(lambda x: np.sum(x * 2 if x[0] > 0 else x**2)))
    for sign in (1, -1, 1):
        expected = 2 * torch.ones(3, dtype=f64) if sign > 0 else 2 * sign * X
        torch.testing.assert_close(func.grad(f)(sign * X), expected)
    with pytest.raises(TypeError, match=r"(?s)torch.func.vmap maps .*ftrans.vmap.*numpy.where"):
        func.vmap(f)(LANES)


def test_anomalies_and_threads(compiled: Any) -> None:
    logarithms = ft.to_torch(compiled(lambda x: np.sum(np.log(x))))
    with ft.autograd.detect_anomaly():
        torch.testing.assert_close(func.grad(logarithms)(X.abs()), 1 / X.abs())
        with pytest.raises(ft.autograd.AnomalyError, match=r"(?s)logarithm of a negative number.*np\.log\(x\)"):
            logarithms(X)
    cubed = ft.to_torch(compiled(cubes))

    def slope(number: float) -> float:
        x = leaf(number * torch.ones(2, dtype=f64))
        cubed(x).backward()
        return float(x.grad[0])

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(slope, map(float, range(8)))] == [3.0 * n**2 for n in range(8)]


# Tensors as arguments of transformations


def cubes(x: Any) -> Any:
    return np.sum(x**3)


OF_TENSORS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "grad": (ft.grad(cubes), lambda x: 3 * x**2),
    "value_and_grad": (lambda x: torch.cat([y.reshape(-1) for y in ft.value_and_grad(cubes)(x)]), None),
    "jacobian": (ft.jacobian(lambda x: x**3), lambda x: torch.diag(3 * x**2)),
    "jacrev": (ft.jacrev(lambda x: x**3), lambda x: torch.diag(3 * x**2)),
    "hessian": (ft.hessian(cubes), lambda x: torch.diag(6 * x)),
    "jit": (ft.jit(cubes), lambda x: torch.sum(x**3)),
    "jit of grad": (ft.jit(ft.grad(cubes)), lambda x: 3 * x**2),
    "vmap": (ft.vmap(lambda x: x if x > 0 else 2 * x), lambda x: torch.where(x > 0, x, 2 * x)),
    "jvp": (lambda x: ft.jvp(cubes, (x,), (x,))[1], lambda x: 3 * torch.sum(x**3)),
    "vjp": (lambda x: ft.vjp(lambda x: x**2, x)[1](x)[0], lambda x: 2 * x**2),
    "linearize": (lambda x: ft.linearize(lambda x: x**2, x)[1](x), lambda x: 2 * x**2),
    "hvp": (lambda x: ft.hvp(cubes, (x,), (x,)), lambda x: 6 * x**2),
    "laplacian": (ft.laplacian(cubes), lambda x: torch.sum(6 * x)),
}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_tensors_are_arguments(name: str) -> None:
    f, expected = OF_TENSORS[name]
    if expected is None:
        expected = lambda x: torch.cat([torch.sum(x**3).reshape(1), 3 * x**2])  # noqa: E731
    for x in (X, X.float()):
        torch.testing.assert_close(f(x), expected(x))
    # torch differentiates what comes back.
    torch.testing.assert_close(func.jacrev(f)(X), func.jacrev(expected)(X))


def test_which_arguments_are_tensors() -> None:
    product = lambda x, y: np.sum(x * y)  # noqa: E731
    array = Y.numpy()
    for found in (
        ft.grad(product)(X, array),
        ft.grad(product, argnums=(0, 1))(X, Y)[0],
        ft.grad(lambda p: product(p["x"], p["y"][0]))({"x": X, "y": [Y]})["x"],
        ft.grad(product)(X.numpy(), Y),
        ft.grad(product)(X.numpy(), y=Y),
        ft.grad(lambda x, p: product(x, p["y"]))(X.numpy(), {"y": Y}),
        ft.value_and_grad(lambda x, y: (product(x, y), ("text", x)), has_aux=True)(X, Y)[1],
    ):
        assert found.equal(Y)
    assert ft.vmap(lambda x, y: x * y, in_axes=(0, None))(array, X).equal(torch.outer(Y, X))
    out, pull, aux = ft.vjp(lambda x: (x * 2, {"a": x, "s": "text"}), X, has_aux=True)
    assert (out.tolist(), aux["a"].tolist(), aux["s"]) == ((2 * X).tolist(), X.tolist(), "text")
    assert pull(Y)[0].equal(2 * Y)
    # A tensor is a constant of an outer trace.
    assert ft.grad(lambda a: a * np.sum(ft.grad(cubes)(X)))(2.0) == pytest.approx(float(torch.sum(3 * X**2)))


def test_mistakes_with_tensors() -> None:
    x, with_gradient = X.numpy(), leaf(X)
    for call, message in (
        (lambda: ft.to_torch(np.sin)(torch.eye(2).to_sparse()), r"argument \[0\] is sparse.*x\.to_dense\(\)"),
        (lambda: ft.to_torch(lambda p: p)({"a": torch.ones(2, device="meta")}), r"\['a'\] is on the device 'meta'"),
        (lambda: ft.to_torch(np.sin)(torch.ones(2, dtype=torch.float8_e5m2)), r"float8_e5m2, which NumPy does not"),
        (lambda: ft.to_torch(3.0), "to_torch takes a function"),
        (lambda: ft.grad(cubes)(torch.tensor([1, 2])), r"floating-point arrays, but argument 0 is i64\[2\]"),
        (lambda: ft.grad(lambda p: np.sum(p * X))(x), r"a tensor of torch.*ft.to_torch\(f\).*x\.detach\(\)\.numpy\(\)"),
        (lambda: ft.jit(lambda p: X @ p)(x), r"a tensor of torch.*ft.to_torch\(f\)"),
        (lambda: ft.grad(lambda p: X)(x), r"returned Tensor.*ft.to_torch\(f\)"),
        (lambda: ft.sparse_jacobian(np.sin)(X), r"a tensor of torch.*ft.to_torch\(f\)"),
        (lambda: ft.stop_gradient(with_gradient), r"a tensor of torch.*x\.detach\(\)"),
        (lambda: ft.root(lambda y, a: y - a, X, X), r"x0 is a tensor of torch.*ft.to_torch\(f\)"),
        (lambda: ft.grad(lambda a: a * np.sum(ft.grad(cubes)(with_gradient)))(2.0), r"would lose its gradient"),
    ):
        with pytest.raises(TypeError, match=f"(?s){message}.*test_torch_interop.py"):
            call()


# Functions and modules of torch in programs

IN_PROGRAMS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "value": lambda f: f,
    "grad": lambda f: ft.grad(f, argnums=(0, 1)),
    "jacfwd": ft.jacfwd,
    "hessian": ft.hessian,
    "reverse over reverse": lambda f: ft.grad(lambda x, y: np.sum(ft.grad(f)(x, y) ** 2)),
    "forward over forward": lambda f: ft.jacfwd(ft.jacfwd(f)),
    "third order": lambda f: ft.jacobian(ft.hessian(f)),
    "laplacian": ft.laplacian,
    "among others": lambda f: ft.grad(lambda x, y: np.sin(f(np.exp(x), y)) * 3),
    "vmap": lambda f: lambda x, y: ft.vmap(f, in_axes=(0, None))(np.outer(y, x), y),
    "vmap of hessian": lambda f: lambda x, y: ft.vmap(ft.hessian(f))(np.outer(y, x), np.outer(x, y)),
    "grad of vmap": lambda f: ft.grad(lambda x, y: np.sum(ft.vmap(f)(np.outer(y, x), np.outer(x, y)) ** 2)),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
    "scan": lambda f: ft.grad(lambda x, y: ft.scan(lambda c, r: (c + f(r * c, y), c), 1.0, np.stack([x, 2 * x]))[0]),
    "cond": lambda f: ft.grad(lambda x, y: ft.cond(x[0] > 0, lambda x: f(x, y), lambda x: np.sum(x), x)),
}


@pytest.mark.parametrize("name", IN_PROGRAMS)
def test_functions_of_torch_in_programs(name: str, compiled: Any) -> None:
    transformed = IN_PROGRAMS[name]
    found = compiled(transformed(ft.from_torch(in_torch)))(X.numpy(), Y.numpy())
    expected = transformed(in_numpy)(X.numpy(), Y.numpy())
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-11, atol=1e-12)


def test_complex_functions_of_torch(compiled: Any) -> None:
    z = X.numpy() + 1j * Y.numpy()
    g = ft.from_torch(lambda z: torch.sum((torch.exp(z) * z.conj()).abs() ** 2))
    expected = ft.grad(lambda z: np.sum(np.abs(np.exp(z) * np.conj(z)) ** 2))(z)
    np.testing.assert_allclose(compiled(ft.grad(g))(z), expected, rtol=1e-12)
    h = ft.from_torch(lambda z: torch.exp(z) * z)
    found = compiled(ft.jacobian(h, holomorphic=True))(z)
    np.testing.assert_allclose(found, np.diag(np.exp(z) * (z + 1)), rtol=1e-12)


def test_modules_in_programs(compiled: Any) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh()).double()
    apply, parameters = ft.from_torch(module)
    slopes = compiled(ft.grad(lambda p, x: np.sum(apply(p, x) ** 2)))(parameters, LANES.numpy())
    before = {name: x.clone() for name, x in module.named_buffers()}
    (module(LANES) ** 2).sum().backward()
    for name, p in module.named_parameters():
        np.testing.assert_allclose(slopes[name], p.grad, rtol=1e-10, atol=1e-12)
    # The module has been run once, and the function has changed nothing.
    assert int(before["1.num_batches_tracked"]) == 0
    module.eval()
    buffers = {"1.running_mean": np.full(4, 3.0)}
    moved = apply({**parameters, **buffers}, LANES.numpy()) - apply(parameters, LANES.numpy())
    assert np.all(moved < 0)
    parameters["0.bias"][:] = 100.0
    assert float(module[0].bias.detach().max()) < 100.0


def test_arguments_and_results_of_functions_of_torch(compiled: Any) -> None:
    x = X.numpy()
    g = ft.from_torch(lambda d, n, flag=True: {"a": d["x"] * n, "b": (d["x"].argmax(),)} if flag else d["x"])
    found = compiled(lambda x: g({"x": x}, 3))(x)
    assert (found["a"].tolist(), int(found["b"][0])) == ((3 * x).tolist(), 2)
    assert g({"x": x}, 3, flag=False).tolist() == x.tolist()
    assert compiled(ft.grad(lambda x: np.sum(g({"x": x}, 2)["a"]) + g({"x": x}, 2)["b"][0]))(x).tolist() == [2, 2, 2]
    assert compiled(ft.grad(ft.from_torch(torch.sin)))(2.0) == pytest.approx(np.cos(2.0))
    assert ft.from_torch(torch.sin)(2.0) == pytest.approx(np.sin(2.0))
    assert compiled(ft.from_torch(lambda x: x.mul_(2)))(x).tolist() == (2 * X).tolist()
    assert compiled(ft.grad(ft.from_torch(lambda x: x.pow_(2).sum())))(x).tolist() == (2 * X).tolist()
    assert x.tolist() == X.tolist()
    assert compiled(ft.grad(ft.from_torch(torch.sum)))(x.astype(np.float32)).dtype == np.float32
    assert ft.from_torch(in_torch)(X, Y).equal(in_torch(X, Y))
    torch.testing.assert_close(ft.grad(ft.from_torch(in_torch))(x, Y), torch.as_tensor(ft.grad(in_numpy)(x, Y.numpy())))
    slope = ft.autograd.tensor(x, requires_grad=True)
    ft.from_torch(in_torch)(slope, Y.numpy()).backward()
    np.testing.assert_allclose(slope.grad.numpy(), ft.grad(in_numpy)(x, Y.numpy()), rtol=1e-12)


def test_there_and_back_again(compiled: Any) -> None:
    there = ft.to_torch(compiled(lambda x: ft.from_torch(in_torch)(x, Y.numpy())))
    torch.testing.assert_close(func.hessian(there)(X), func.hessian(in_torch)(X, Y))
    back = ft.from_torch(ft.to_torch(compiled(cubes)))
    np.testing.assert_allclose(compiled(ft.hessian(lambda x: back(x) * x[0]))(X.numpy())[1, 1], 6 * X[1] * X[0])


def changing() -> Callable[[Any], Any]:
    calls: list[Any] = []
    return lambda x: calls.append(x) or x[: len(calls)]


def test_mistakes_with_functions_of_torch() -> None:
    x = X.numpy()
    for call, message in (
        (lambda: ft.from_torch(3), "from_torch takes a function, but g is"),
        (
            lambda: ft.from_torch(lambda x: x.sum().item())(x),
            r"returned of type float.*in place of x\.sum\(\)\.item",
        ),
        (lambda: ft.from_torch(changing())(x), r"always return tensors of the same types.*f64\[1\], now f64\[2\]"),
        (lambda: ft.grad(lambda x: torch.sin(x))(x), r"ftrans\.from_torch\(torch\.sin\)"),
        (lambda: ft.grad(lambda y: ft.from_torch(in_torch)(y, leaf(Y)))(x), "a tensor of torch.*lose its gradient"),
    ):
        with pytest.raises(TypeError, match=f"(?s){message}"):
            call()
    with pytest.raises(ValueError, match=r"Dropout draws random numbers.*module\.eval\(\)"):
        ft.from_torch(torch.nn.Dropout())[0]({}, x)
    module = torch.nn.Dropout().eval()
    apply, _ = ft.from_torch(module)
    assert apply({}, x).tolist() == x.tolist()
    module.train()
    with pytest.raises(ValueError, match="Dropout draws random numbers"):
        apply({}, x)
    with pytest.raises(ValueError, match="Dropout has no parameter or buffer 'weight'"):
        apply({"weight": x}, x)
    with pytest.raises(TypeError, match=r"Dropout takes a dictionary .*apply\(parameters, x\)"):
        apply(x)
    with pytest.raises(BufferError, match=r"ftrans\.from_torch"):
        ft.grad(lambda x: torch.as_tensor(x).sum())(x)
    cholesky = ft.from_torch(torch.linalg.cholesky)
    with pytest.raises(torch.linalg.LinAlgError) as caught:
        ft.scan(lambda c, r: (c + np.sum(cholesky(np.outer(r, r) + np.eye(3))), c), 0.0, np.stack([x, x]))
    assert "was called on ones" in caught.value.__notes__[0]
    cholesky(np.eye(3))
    assert ft.scan(lambda c, r: (c + np.sum(cholesky(np.outer(r, r) + np.eye(3))), c), 0.0, np.stack([x, x]))[0] > 6


def test_the_examples_of_docstrings() -> None:
    for function in (ft.to_torch, ft.from_torch):
        text = inspect.getdoc(function).replace("# doctest: +SKIP", "")
        test = doctest.DocTestParser().get_doctest(text, {}, function.__name__, None, 0)
        assert test.examples
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0
