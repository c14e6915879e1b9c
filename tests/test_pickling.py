"""Programs, transformed functions, prepared derivatives and optimizers in other processes, by pickle."""

from __future__ import annotations

import copy
import functools
import inspect
import multiprocessing
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optax
import pytest

import ftrans as ft
from ftrans import nn

X = np.arange(1.0, 4.0)


def energy(x: Any) -> Any:
    """An energy."""
    return np.sum(np.sin(x) ** 2 * x)


def outputs(x: Any) -> Any:
    return np.sin(x[1:]) * x[:-1]


@ft.jit
def decorated(x: Any) -> Any:
    return np.cos(x)


@ft.custom_vjp
def wave(x: Any) -> Any:
    return np.sin(x)


wave.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (3 * ct * np.cos(x),))


class Model:
    """A class with a compiled method."""

    @functools.partial(ft.jit, static_argnums=0)
    def double(self: Any, x: Any) -> Any:
        return 2 * x


def sent(x: Any) -> Any:
    """What pickle makes of an object."""
    return pickle.loads(pickle.dumps(x))


FUNCTIONS: list[Callable[..., Any]] = [
    decorated,
    ft.jit(energy),
    ft.grad(energy),
    ft.value_and_grad(energy, argnums=(0,)),
    ft.hessian(energy),
    ft.jacfwd(outputs),
    ft.jacrev(outputs),
    ft.value_and_jacobian(outputs),
    ft.vmap(ft.grad(energy), in_axes=None, axis_size=2),
    ft.jit(ft.jacobian(ft.grad(energy))),
    ft.jit(static_argnums=())(energy),
    ft.sparse_jacobian(outputs),
    ft.laplacian(energy),
    ft.hessian_diagonal(energy),
    ft.divergence(ft.grad(energy)),
    ft.sparse_jacobian(outputs).prepare(X),
    ft.sparse_hessian(energy).prepare(X),
    ft.jit(np.sin),
]


def arrays(x: Any) -> list[Any]:
    """The arrays in a result."""
    return [y.toarray() if hasattr(y, "toarray") else np.asarray(y) for y in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.parametrize("f", FUNCTIONS, ids=[repr(f)[:60].partition(" of")[0] for f in FUNCTIONS])
def test_functions_come_back(f: Callable[..., Any]) -> None:
    again = sent(f)
    for x, y in zip(arrays(again(X)), arrays(f(X)), strict=True):
        np.testing.assert_array_equal(x, y)
    assert again is f or type(again) is type(f)


def test_nonlinear_programs_come_back() -> None:
    problem = ft.nlp(energy, outputs).prepare(X)
    again = sent(problem)
    np.testing.assert_array_equal(again.gradient(X), problem.gradient(X))
    np.testing.assert_array_equal(again.jacobian(X), problem.jacobian(X))
    assert sent(ft.nlp(energy, outputs)).prepare(X).n == problem.n
    with pytest.raises(pickle.PicklingError, match="a nonlinear program is pickled by the name of its function"):
        pickle.dumps(ft.nlp(lambda x: x.sum()))


def test_decorated_functions_are_pickled_by_name() -> None:
    assert sent(decorated) is decorated


def test_transformed_functions_look_like_functions() -> None:
    gradient = ft.grad(energy)
    assert gradient.__name__ == "grad(energy)"
    assert gradient.__doc__ == "An energy."
    assert ft.jit(gradient).__name__ == "jit(grad(energy))"
    assert str(inspect.signature(gradient)) == "(x: 'Any') -> 'Any'"
    assert copy.copy(gradient) is gradient
    assert copy.deepcopy(gradient) is gradient
    assert repr(gradient) == f"<function grad(energy) of {__name__}>"
    np.testing.assert_array_equal(Model().double(X), 2 * X)
    assert ft.jit(lambda self, x: self * x)(self=2.0, x=3.0) == 6


def test_lambdas_say_what_to_do() -> None:
    def local(x: Any) -> Any:
        return x

    for f in (lambda x: x, local):
        for made in (ft.grad(f), ft.jit(f), ft.jit(ft.grad(f))):
            with pytest.raises(pickle.PicklingError, match=r"is not found by it: .* Define it by def at the top"):
                pickle.dumps(made)


def test_programs_come_back() -> None:
    program = ft.trace(ft.grad(energy))(X)
    np.testing.assert_array_equal(sent(program)(X)[0], program(X)[0])
    assert copy.deepcopy(program) is program
    ruled = sent(ft.trace(lambda x: wave(x) * x)(1.0))
    assert str(ruled).startswith("lambda(")


def test_programs_keep_python_functions_by_name() -> None:
    program = ft.trace(lambda x: ft.scipy.integrate.quad(energy, 0, x)[0])(1.0)
    with pytest.raises((pickle.PicklingError, AttributeError), match="local object"):
        pickle.dumps(program)


def step(model: Any, optimizer: Any) -> Any:
    def loss(model: Any) -> Any:
        return ((model(np.eye(2, dtype=np.float32)) - 1) ** 2).mean()

    value, gradients = nn.value_and_grad(loss)(model)
    optimizer.step(gradients)
    return value


def test_optimizers_come_back() -> None:
    model = nn.Linear(2, 1)
    optimizer = nn.Optimizer(model, functools.partial(optax.adam, 1e-2))
    compiled = nn.jit(step)
    compiled(model, optimizer)
    with warnings.catch_warnings():
        # Another transformation is another program.
        warnings.simplefilter("ignore", RuntimeWarning)
        again, its_optimizer = sent((model, optimizer))
        copied, copied_optimizer = copy.deepcopy((model, optimizer))
        expected = [float(compiled(model, optimizer)) for _ in range(3)]
        assert [float(compiled(again, its_optimizer)) for _ in range(3)] == expected
        assert [float(compiled(copied, copied_optimizer)) for _ in range(3)] == expected
    assert its_optimizer.model is again
    assert len(sent(its_optimizer).state) == len(optimizer.state)


def test_optimizers_of_closures_say_what_to_do() -> None:
    optimizer = nn.Optimizer(nn.Linear(2, 1), optax.adam(1e-2))
    with pytest.raises(pickle.PicklingError, match=r"write Optimizer\(model, functools.partial\(optax.adam, 1e-3\)\)"):
        pickle.dumps(optimizer)
    assert copy.deepcopy(optimizer).paths == optimizer.paths
    with pytest.raises(TypeError, match="a function without arguments that makes one; adam takes some"):
        nn.Optimizer(nn.Linear(2, 1), optax.adam)


def test_cloudpickle_takes_lambdas_and_closures() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    for made in (ft.grad(lambda x: x**2), ft.jit(lambda x: x**2)):
        assert pickle.loads(cloudpickle.dumps(made))(3.0) == made(3.0)
    optimizer = nn.Optimizer(nn.Linear(2, 1), optax.sgd(0.1))
    assert pickle.loads(cloudpickle.dumps(optimizer)).paths == optimizer.paths


def test_a_pool_of_processes_maps_a_gradient() -> None:
    points = [X, 2 * X]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map_async(ft.jit(ft.grad(energy)), points).get(timeout=60)
    for x, y in zip(found, map(ft.grad(energy), points), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14)
