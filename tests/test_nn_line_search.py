"""Optimizers that want more than gradients: searches along a line, and steps that depend on the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from training import compiled_once

import ftrans as ft
from ftrans import nn

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = X @ np.array([[1.0], [-2.0], [0.5]]) + 0.3 + 0.1 * RNG.normal(size=(20, 1))


@pytest.fixture(autouse=True, scope="module")
def _compiled_once(tmp_path_factory):
    with compiled_once(tmp_path_factory.mktemp("compiled")):
        yield


def loss_of(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    def objective(model: Any) -> Any:
        return loss_of(model, x, y)

    loss, gradients = nn.value_and_grad(objective)(model)
    optimizer.step(gradients, value=loss, value_fn=objective)
    return loss


def step_of_tensors(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    x = ft.autograd.tensor(x)
    model.zero_grad()
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step(value=loss, value_fn=lambda model: loss_of(model, x, y))
    return loss


def backtracking(store_grad: bool = False) -> Any:
    search = optax.scale_by_backtracking_linesearch(max_backtracking_steps=12, store_grad=store_grad)
    return optax.chain(optax.sgd(1.0), search)


def of_line(p: dict[str, Any]) -> Any:
    return ((X @ p["weight"].T + p["bias"] - Y) ** 2).mean()


def by_hand(
    transformation: Any, parameters: dict[str, Any], steps: int, objective: Callable[..., Any] = of_line
) -> dict[str, Any]:
    """The same with JAX and optax alone."""
    with jax.enable_x64(True):
        parameters = jax.tree.map(jax.numpy.asarray, parameters)
        state = transformation.init(parameters)
        for _ in range(steps):
            value, grad = jax.value_and_grad(objective)(parameters)
            updates, state = transformation.update(grad, state, parameters, value=value, grad=grad, value_fn=objective)
            parameters = optax.apply_updates(parameters, updates)
        return {path: np.asarray(x) for path, x in parameters.items()}


@pytest.mark.parametrize("run", [step, nn.jit(step), step_of_tensors], ids=["plain", "compiled", "tensors"])
def test_a_search_along_a_line_is_that_of_optax(run: Callable[..., Any]) -> None:
    model = nn.Linear(3, 1, dtype=np.float64)
    expected = by_hand(backtracking(), model.state_dict(), 3)
    optimizer = nn.Optimizer(model, backtracking())
    for _ in range(3):
        run(model, optimizer, X, Y)
    for path, x in model.state_dict().items():
        np.testing.assert_allclose(x, expected[path], rtol=1e-12)


def test_lbfgs_fits_a_regression_to_the_last_digits() -> None:
    model = nn.Linear(3, 1, dtype=np.float64)
    optimizer = nn.Optimizer(model, optax.lbfgs())
    compiled = nn.jit(step)
    for _ in range(15):
        compiled(model, optimizer, X, Y)
    design = np.hstack([X, np.ones((20, 1))])
    solution = np.linalg.lstsq(design, Y)[0][:, 0]
    found = np.append(model.weight.value[0], model.bias.value)
    np.testing.assert_allclose(found, solution, atol=1e-10)


def test_a_search_in_float32_keeps_wide_data() -> None:
    """What the objective captures has 64 bits, and the parameters have 32: each computes with its own."""
    model = nn.Linear(1, 1, bias=False)
    far = np.array([1e9 + 1, 2.0])
    labels = np.array([2**40 + 1, 2**40])

    def objective(model: Any) -> Any:
        shift = (far[0] - 1e9) + np.sum(labels - 2**40)  # 2 with 64 bits, else not
        return ((model.weight[0, 0] - shift.astype(np.float32)) ** 2).astype(np.float32)

    optimizer = nn.Optimizer(model, backtracking(store_grad=True))
    for _ in range(40):
        loss, gradients = nn.value_and_grad(objective)(model)
        optimizer.step(gradients, value=loss, value_fn=objective)
    assert model.weight.dtype == np.float32
    np.testing.assert_allclose(model.weight.value, 2.0, atol=1e-3)


def test_steps_that_depend_on_the_loss() -> None:
    for transformation in (optax.polyak_sgd(), optax.contrib.momo(0.5)):
        model = nn.Linear(3, 1, dtype=np.float64)
        optimizer = nn.Optimizer(model, transformation)
        first = loss_of(model, X, Y)
        for _ in range(20):
            loss, gradients = nn.value_and_grad(loss_of)(model, X, Y)
            optimizer.step(gradients, value=loss)
        assert loss < 0.2 * first
    model = nn.Linear(3, 1, dtype=np.float64)
    history = nn.fit(
        model,
        nn.batches(X, Y, batch_size=10, seed=0),
        loss=nn.functional.mse_loss,
        optimizer=optax.polyak_sgd(max_learning_rate=0.5),
        epochs=5,
        progress=False,
    )
    assert history["loss"][-1] < 0.2 * history["loss"][0]


def test_a_search_among_complex_parameters_is_that_of_optax() -> None:
    class Root(nn.Module):
        def __init__(self) -> None:
            self.z = nn.Parameter(np.array([1.0 + 2.0j, 3.0 - 1.0j]))
            self.shift = nn.Parameter(np.ones(2))

    def objective(z: Any, shift: Any) -> Any:
        return (abs(z**2 - (3 + 4j)) ** 2).sum() + ((shift - 2) ** 2).sum()

    model = Root()
    expected = by_hand(backtracking(), model.state_dict(), 3, lambda p: objective(p["z"], p["shift"]))
    optimizer = nn.Optimizer(model, backtracking())
    for _ in range(3):
        loss, gradients = nn.value_and_grad(lambda m: objective(m.z, m.shift))(model)
        optimizer.step(gradients, value=loss, value_fn=lambda m: objective(m.z, m.shift))
    for path, x in model.state_dict().items():
        np.testing.assert_allclose(x, expected[path], rtol=1e-12)


OTHER = nn.Linear(1, 1)


class Branching(nn.Module):
    def __init__(self) -> None:
        self.w = nn.Parameter(np.ones(()))
        self.drop = nn.Dropout(0.5)
        self.calls = nn.Buffer(np.zeros((), np.int32))

    def forward(self) -> Any:
        self.calls = self.calls + 1
        return self.w**2


def searching(f: Callable[[Any], Any], **options: Any) -> Branching:
    model = Branching()
    optimizer = nn.Optimizer(model, backtracking())
    optimizer.step({"w": np.array(2.0)}, **{"value": 1.0, "value_fn": f, **options})
    return model


def test_what_the_objective_changes_in_buffers_is_dropped() -> None:
    model = searching(lambda model: model())
    assert model.calls.value == 0
    assert model.w.value != 1


@pytest.mark.parametrize(
    ("f", "cls", "words"),
    [
        (lambda m: m.w if m.w > 0 else -m.w, TypeError, "many parameters, so a branch inside it has no single value"),
        (lambda m: m.drop(m.w * np.ones(3)).sum(), RuntimeError, r"draws random numbers from drop.*model\.eval\(\)"),
        (lambda m: m.w * np.ones(3), TypeError, "a scalar result"),
        (lambda m: None, TypeError, "only the loss, a scalar, which lambda does not"),
        (lambda m: (m.w**2, m.w), TypeError, "only the loss"),
        (lambda m: OTHER.weight.sum(), TypeError, r"does not depend on the parameters.*of the model that it is given"),
        (lambda m: (m.w * 0.0, OTHER.weight.sum())[1], TypeError, "sees a constant"),
        (lambda m: setattr(m, "kept", m.w * 2) or m.w**2, TypeError, "kept was assigned a traced value"),
    ],
    ids=["branch", "random numbers", "array", "nothing", "pair", "another model", "unused", "traced value kept"],
)
def test_objectives_that_cannot_be_searched(f: Callable[[Any], Any], cls: type[Exception], words: str) -> None:
    with pytest.raises(cls, match=words):
        searching(f)


def test_what_is_missing_is_named() -> None:
    model = nn.Linear(3, 1)
    optimizer = nn.Optimizer(model, backtracking())
    gradients = nn.grad(loss_of)(model, X, Y)
    with pytest.raises(
        TypeError, match=r"needs value and value_fn .*step\(gradients, value=loss, value_fn=lambda model"
    ):
        optimizer.step(gradients)
    with pytest.raises(
        TypeError, match=r"needs value in addition to the gradients; .* optimizer\.step\(gradients, value=lo"
    ):
        nn.Optimizer(model, optax.polyak_sgd()).step(gradients)
    with pytest.raises(TypeError, match=r"obj_fn= of step is .*; it takes numbers and arrays.* is value_fn="):
        optimizer.step(gradients, obj_fn=lambda model: 0.0)
    with pytest.raises(TypeError, match="grad= are the gradients themselves"):
        optimizer.step(gradients, value=1.0, grad=gradients)


def scaled(name: str) -> Any:
    """A transformation that multiplies by an argument of a name that its signature does not have."""

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> Any:
        return jax.tree.map(lambda g: -extra[name] * g, updates), state

    return optax.GradientTransformationExtraArgs(lambda parameters: optax.EmptyState(), update)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize(
    "transformation",
    [
        optax.sgd(0.1),
        optax.adam(0.1),
        optax.scale(-1.0),
        optax.chain(optax.clip(1.0), scaled("rate")),
        optax.inject_hyperparams(optax.sgd)(0.1),
        optax.MultiSteps(optax.adam(0.1), 2).gradient_transformation(),
        optax.polyak_sgd(),
    ],
)
def test_an_argument_that_nobody_takes_is_refused(transformation: Any, is_compiled: bool) -> None:
    model = nn.Linear(3, 1)
    before = model.weight.value
    optimizer = nn.Optimizer(model, transformation)

    def step(model: Any, optimizer: Any) -> None:
        optimizer.step({"weight": np.ones((1, 3))}, value=1.0, rate=0.5, lr=0.0)

    for _ in range(2):
        with pytest.raises(TypeError, match=r"takes no (lr|rate)=; hyperparameters are set where it is made"):
            (nn.jit(step) if is_compiled else step)(model, optimizer)
    np.testing.assert_array_equal(model.weight.value, before)


def test_an_argument_of_any_name_reaches_the_part_that_takes_it() -> None:
    model = nn.Linear(3, 1, dtype=np.float64)
    optimizer = nn.Optimizer(model, optax.chain(optax.identity(), scaled("rate")))
    before = model.weight.value
    for rate in (0.5, 0.25):
        optimizer.step({"weight": np.ones((1, 3))}, rate=rate)
    np.testing.assert_allclose(model.weight.value, before - 0.75)
