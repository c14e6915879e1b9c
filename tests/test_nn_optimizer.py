"""nn.Optimizer against optax by hand, LossScale, clipping, and moving averages."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from training import compiled_once

import ftrans as ft
from ftrans import nn

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)
Y = RNG.normal(size=(6, 2)).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def _compiled_once(tmp_path_factory):
    with compiled_once(tmp_path_factory.mktemp("compiled")):
        yield


class Dense(nn.Module):
    def __init__(self, n, m, dtype=np.float32):
        rng = np.random.default_rng(n)
        self.weight = nn.Parameter(rng.normal(size=(n, m)).astype(dtype))
        self.bias = nn.Parameter(np.zeros(m, dtype))

    def forward(self, x):
        return x @ self.weight + self.bias


class Net(nn.Module):
    def __init__(self, dtype=np.float32):
        self.first = Dense(3, 4, dtype)
        self.second = Dense(4, 2, dtype)

    def forward(self, x):
        return self.second(np.tanh(self.first(x)))


def loss(model, x, y):
    return ((model(x) - y) ** 2).mean()


def step(model, optimizer, x, y):
    value, gradients = nn.value_and_grad(loss)(model, x, y)
    optimizer.step(gradients)
    return value


def parameters(model):
    return {path: np.array(p.value) for path, p in model.named_parameters()}


def by_hand(transformation, model, steps):
    """Parameters after some steps of optax itself."""
    values, state = parameters(model), None
    model = copy.deepcopy(model)
    with jax.enable_x64(values["first.bias"].dtype == np.float64):
        state = transformation.init(values)
        update = jax.jit(transformation.update)
        for _ in range(steps):
            for path, p in model.named_parameters():
                p.value = np.array(values[path])
            gradients = nn.grad(loss)(model, X, Y)
            updates, state = update(gradients, state, values)
            values = {path: x + updates[path] for path, x in values.items()}
    return values


def _transformations():
    def decays(path):
        return path.endswith("weight")

    return {
        "sgd": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
        "adamw": lambda: optax.adamw(1e-2, weight_decay=0.1, mask=lambda ps: {path: decays(path) for path in ps}),
        "clipped": lambda: optax.chain(
            optax.clip_by_global_norm(0.1), optax.adam(optax.cosine_decay_schedule(0.1, decay_steps=4))
        ),
        "accumulated": lambda: optax.MultiSteps(optax.adam(0.1), every_k_schedule=2),
        "injected": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=0.1),
    }


@pytest.mark.parametrize("name", _transformations())
def test_equals_optax(name):
    make = _transformations()[name]
    model = Net()
    expected = by_hand(make(), model, 5)
    eager, compiled, recorded = model, copy.deepcopy(model), copy.deepcopy(model)
    optimizers = [nn.Optimizer(m, make()) for m in (eager, compiled, recorded)]
    jitted = nn.jit(step, donate_argnums=(0, 1))
    for _ in range(5):
        step(eager, optimizers[0], X, Y)
        jitted(compiled, optimizers[1], X, Y)
        optimizers[2].zero_grad()
        loss(recorded, ft.autograd.tensor(X), Y).backward()
        optimizers[2].step()
    for m in (eager, compiled, recorded):
        for path, x in parameters(m).items():
            assert x.dtype == np.float32
            np.testing.assert_allclose(x, expected[path], rtol=2e-5, atol=1e-6, err_msg=path)


def test_float64():
    model = Net(np.float64)
    x, y = X.astype(np.float64), Y.astype(np.float64)
    expected = by_hand(optax.adam(0.1), model, 3)
    optimizer = nn.Optimizer(model, optax.adam(0.1))
    jitted = nn.jit(step)
    for _ in range(3):
        jitted(model, optimizer, x, y)
    for path, value in parameters(model).items():
        assert value.dtype == np.float64
        np.testing.assert_allclose(value, expected[path], rtol=1e-6)


def test_training_and_its_state():
    model = Net()
    optimizer = nn.Optimizer(model, optax.adam(0.05))
    jitted = nn.jit(step, donate_argnums=(0, 1))
    losses = [float(jitted(model, optimizer, X, Y)) for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]
    state = optimizer.state_dict()
    assert int(state["state.0.count"]) == 60
    assert state["state.0.mu.first.weight"].shape == (3, 4)
    model.load_state_dict({path.removeprefix("model."): x for path, x in state.items() if path.startswith("model.")})
    # From the same state, the next step is the same.
    new_model = Net()
    new = nn.Optimizer(new_model, optax.adam(0.05))
    new.load_state_dict(state)
    assert jitted(new_model, new, X, Y) == jitted(model, optimizer, X, Y)
    for path, x in parameters(model).items():
        np.testing.assert_array_equal(parameters(new_model)[path], x)
    assert int(new.state_dict()["state.0.count"]) == 61


def test_paths_are_those_of_the_model():
    model = Net()
    optimizer = nn.Optimizer(model, optax.sgd(0.1))
    ema = nn.EMA(model)
    assert model.first.weight.path == "first.weight"
    assert copy.deepcopy(ema).model.first.path == "first"
    assert repr(optimizer).startswith("Optimizer(4 parameters")


def test_equal_optimizers_share_a_trace():
    runs = []

    @nn.jit
    def counted(model, optimizer, x, y):
        runs.append(1)
        return step(model, optimizer, x, y)

    transformation = optax.adam(0.1)
    model = Net()
    optimizer = nn.Optimizer(model, transformation)
    again = copy.deepcopy(optimizer)
    other = Net()
    for m, o in ((model, optimizer), (again.model, again), (other, nn.Optimizer(other, transformation))):
        counted(m, o, X, Y)
    assert len(runs) == 1
    np.testing.assert_array_equal(again.model.first.weight.value, model.first.weight.value)


def test_frozen_parameters():
    model = Net()
    model.freeze("first.*")
    optimizer = nn.Optimizer(model, optax.adamw(0.1, weight_decay=0.5))
    assert optimizer.paths == ("second.weight", "second.bias")
    before = parameters(model)
    jitted = nn.jit(step)
    jitted(model, optimizer, X, Y)
    after = parameters(model)
    np.testing.assert_array_equal(after["first.weight"], before["first.weight"])
    assert np.any(after["second.weight"] != before["second.weight"])
    # Frozen later, a parameter stays as it is.
    model.second.bias.requires_grad_(False)
    jitted(model, optimizer, X, Y)
    np.testing.assert_array_equal(parameters(model)["second.bias"], after["second.bias"])
    model.unfreeze()
    with pytest.raises(ValueError, match=r"gradients for first\.weight, first\.bias.*does not update.*new Optimizer"):
        step(model, optimizer, X, Y)


def test_tied_parameters_stay_tied():
    model = nn.Module()
    model.a, model.b = Dense(3, 3), Dense(3, 3)
    model.b.weight = model.a.weight
    optimizer = nn.Optimizer(model, optax.adam(0.1))
    assert optimizer.paths == ("a.weight", "a.bias", "b.bias")
    y = X[:, :3]

    @nn.jit
    def train(model, optimizer, x):
        gradients = nn.grad(lambda m: ((m.b(m.a(x)) - y) ** 2).mean())(model)
        optimizer.step(gradients)

    before = model.a.weight.value
    for _ in range(2):
        train(model, optimizer, X)
    assert model.b.weight is model.a.weight
    assert np.any(model.a.weight.value != before)


def test_learning_rate_in_a_buffer():
    model = Net()
    optimizer = nn.Optimizer(model, optax.inject_hyperparams(optax.sgd)(learning_rate=0.1))
    jitted = nn.jit(step)
    jitted(model, optimizer, X, Y)
    before = parameters(model)
    optimizer.state["hyperparams.learning_rate"].value = np.float32(0)
    jitted(model, optimizer, X, Y)
    for path, x in parameters(model).items():
        np.testing.assert_array_equal(x, before[path])


def test_further_arguments_of_the_update():
    model = Net()
    transformation = optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(factor=0.5, patience=1, cooldown=0))
    optimizer = nn.Optimizer(model, transformation)

    @nn.jit
    def train(model, optimizer):
        gradients = nn.grad(loss)(model, X, Y)
        optimizer.step(gradients, value=1.0)

    for _ in range(4):
        train(model, optimizer)
    scale = next(x for name, x in optimizer.state.items() if name.endswith("scale"))
    assert float(scale.value) < 1


def test_errors():
    model = Net()
    with pytest.raises(TypeError, match=r"transformation of optax, such as optax\.adam\(1e-3\), not float"):
        nn.Optimizer(model, 0.1)
    optimizer = nn.Optimizer(model, optax.sgd(0.1))
    with pytest.raises(ValueError, match=r"there are none in the parameters; call loss\.backward\(\)"):
        optimizer.step()
    with pytest.raises(ValueError, match="gradients for w, which this optimizer does not update"):
        optimizer.step({"w": np.ones(2)})
    with pytest.raises(ValueError, match=r"gradient of first\.bias has shape \(3,\), but the parameter is f32\[4\]"):
        optimizer.step({"first.bias": np.ones(3)})
    with pytest.raises(ValueError, match="no parameter with requires_grad=True"):
        nn.Optimizer(Net().requires_grad_(False), optax.sgd(0.1))
    del model.second
    with pytest.raises(ValueError, match=r"no longer has the parameters second\.weight"):
        optimizer.step({"first.bias": np.ones(4)})


def test_optimizer_that_was_not_given():
    model = Net()
    optimizer = nn.Optimizer(model, optax.adam(0.1))
    with pytest.raises(RuntimeError, match=r"state\.|not among its arguments"):
        nn.jit(lambda m, x, y: step(m, optimizer, x, y))(model, X, Y)
    assert int(optimizer.state["0.count"].value) == 0


@pytest.mark.parametrize("transform", [lambda f: f, nn.jit], ids=["un-jitted", "jitted"])
def test_loss_scale(transform):
    model = Net()
    optimizer = nn.Optimizer(model, optax.adam(0.1))
    scale = nn.LossScale(2.0**14, growth_interval=2)

    def scaled(model, optimizer, scale, x, y):
        with nn.autocast("float16"):
            value, gradients = nn.value_and_grad(loss, loss_scale=scale)(model, x, y)
        return value, scale.step(optimizer, gradients)

    train = transform(scaled)
    assert train(model, optimizer, scale, X, Y)[1]
    assert float(scale.scale.value) == 2.0**14
    assert train(model, optimizer, scale, X, Y)[1]
    assert float(scale.scale.value) == 2.0**15
    before = parameters(model)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not train(model, optimizer, scale, X, 1e4 * Y)[1]
    assert float(scale.scale.value) == 2.0**14
    assert int(optimizer.state["0.count"].value) == 2
    for path, x in parameters(model).items():
        assert x.dtype == np.float32
        np.testing.assert_array_equal(x, before[path])
    scale.scale.value = np.float32(3e38)
    with np.errstate(over="ignore"):
        for _ in range(4):
            scale.step(optimizer, {"first.bias": np.zeros(4, np.float32)})
    assert np.isfinite(scale.scale.value)
    with pytest.raises(ValueError, match="positive initial scale"):
        nn.LossScale(0)


def test_clipping():
    model = Net()
    gradients = nn.grad(loss)(model, X, Y)
    norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients.values()))
    np.testing.assert_allclose(nn.global_norm(gradients), norm, rtol=1e-6)
    clipped = nn.clip_grad_norm(gradients, 0.5 * norm)
    for path, g in clipped.items():
        np.testing.assert_allclose(g, 0.5 * gradients[path], rtol=1e-5)
        assert g.dtype == np.float32
    np.testing.assert_allclose(nn.clip_grad_norm(gradients, 2 * norm)["first.bias"], gradients["first.bias"])
    loss(model, ft.autograd.tensor(X), Y).backward()
    np.testing.assert_allclose(nn.clip_grad_norm_(model, 0.5 * norm), norm, rtol=1e-6)
    for path, p in model.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), clipped[path], rtol=1e-5)
    with pytest.raises(ValueError, match="must not be negative"):
        nn.clip_grad_norm(gradients, -1.0)


@pytest.mark.parametrize("transform", [lambda f: f, nn.jit], ids=["un-jitted", "jitted"])
def test_moving_averages(transform):
    model = Net()
    averages = [nn.EMA(model, 0.9), nn.EMA(model, 0.9, debias=True)]

    def move(model, plain, debiased):
        model.first.bias.value = model.first.bias + 1
        plain.update()
        debiased.update()

    move = transform(move)
    for _ in range(3):
        move(model, *averages)
    np.testing.assert_allclose(
        averages[0].parameters_of_average()["first.bias"], np.full(4, 0.1 * (0.81 + 0.9 * 2 + 3)), rtol=1e-5
    )
    np.testing.assert_allclose(
        averages[1].parameters_of_average()["first.bias"],
        np.full(4, (0.81 + 0.9 * 2 + 3) / (0.81 + 0.9 + 1)),
        rtol=1e-5,
    )
    with averages[0].applied():
        assert float(model.first.bias.value[0]) < 1
    np.testing.assert_array_equal(model.first.bias.value, np.full(4, 3))
    other = Net()
    averages[1].copy_to(other)
    assert float(other.first.bias.value[0]) > 2
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.EMA(model, 2.0)
