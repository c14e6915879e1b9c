"""nn.optim: the optimizers of torch, groups of parameters, states, compiled steps, and derivatives through updates."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import optimizer_rows
import pytest
import scheduler_rows
from optimizer_rows import BEFORE_VALLEY, FIRST, LBFGS_ROWS, LBFGS_STEPS, ROWS, STEPS, Row, valley
from scheduler_rows import EXPECTED, MAKERS

import ftrans as ft
from ftrans import nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)
Y = RNG.normal(size=(6, 2)).astype(np.float32)


def bare(dtype: Any = np.float64) -> list[nn.Parameter]:
    return [nn.Parameter(x.astype(dtype)) for x in FIRST]


def steps_of(optimizer: Any, parameters: list[Any], steps: range) -> None:
    for step in steps:
        gradients = optimizer_rows.gradients(step, [np.asarray(p.data) for p in parameters])
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = ft.autograd.tensor(g.astype(p.dtype))
        optimizer.step()


def flat(parameters: list[Any]) -> Any:
    return np.concatenate([np.asarray(p.data).ravel() for p in parameters])


def loss(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


def counting(calls: list[Any]) -> Any:
    """A step that notes when Python runs it."""

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        calls.append(x)
        value, gradients = nn.value_and_grad(loss)(model, x, y)
        optimizer.step(gradients)
        return value

    return step


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_equals_torch(row: Row) -> None:
    """20 steps, the state in between being pickled, copied into a new optimizer, and the parameters tensors."""
    parameters: list[Any] = bare()
    optimizer = getattr(nn.optim, row.name)(parameters, **row.numbers)
    steps_of(optimizer, parameters, range(10))
    parameters, optimizer = pickle.loads(pickle.dumps((parameters, optimizer)))
    steps_of(optimizer, parameters, range(10, 14))
    tensors = [ft.autograd.tensor(np.array(p.value), requires_grad=True) for p in parameters]
    second = getattr(nn.optim, row.name)(tensors, lr=7.0)
    second.load_state_dict(optimizer.state_dict())
    steps_of(second, tensors, range(14, STEPS))
    # torch keeps some numbers in float32.
    np.testing.assert_allclose(flat(tensors), row.expected, rtol=1e-7, atol=1e-8)


def test_lion_is_that_of_optax() -> None:
    optax = pytest.importorskip("optax")
    ours, theirs = bare(np.float32), bare(np.float32)
    first = nn.optim.Lion(ours, lr=0.05, weight_decay=0.1)
    second = nn.Optimizer(nn.ParameterList(theirs), optax.lion(0.05, weight_decay=0.1))
    steps_of(first, ours, range(STEPS))
    steps_of(second, theirs, range(STEPS))
    np.testing.assert_allclose(flat(ours), flat(theirs), rtol=1e-5)


def test_groups_and_compiled_steps() -> None:
    """Two groups, whose hyperparameters change between compiled steps: nothing is traced anew."""
    made: list[Any] = []
    for wrap in (lambda f: f, lambda f: nn.jit(f, donate_argnums=(0, 1))):
        calls: list[Any] = []
        run = wrap(counting(calls))
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        model.load_state_dict({path: 0.1 * np.ones(p.shape) for path, p in model.named_parameters()})
        groups = [
            {"params": model[0].parameters(), "weight_decay": 0.1},
            {"params": model[2].named_parameters(prefix="2"), "lr": 0.01},
        ]
        optimizer = nn.optim.AdamW(groups, lr=0.1)
        for _ in range(6):
            run(model, optimizer, X, Y)
            optimizer.param_groups[0]["lr"] *= 0.5
            optimizer.param_groups[1].update(lr=0.02, betas=(0.8, 0.99))
        assert optimizer.param_groups[0]["lr"] == 0.1 * 0.5**6
        assert optimizer.param_groups[1]["betas"] == (0.8, 0.99)
        made.append(model.state_dict())
    # The last loop was the compiled one, and another optimizer like it runs the same program.
    run(*copy.deepcopy((model, optimizer)), X, Y)
    assert len(calls) == 1
    for path, x in made[0].items():
        np.testing.assert_allclose(made[1][path], x, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", MAKERS)
def test_schedulers_equal_torch(name: str) -> None:
    """200 steps, after half of which optimizer and scheduler go on as copies from their state dictionaries."""
    kind: Any = nn.optim.AdamW if name == "OneCycleLR" else nn.optim.SGD
    options = {} if kind is nn.optim.AdamW else {"momentum": 0.9}

    def made() -> tuple[Any, Any]:
        first, second = bare()
        optimizer = kind([{"params": [first]}, {"params": [second], "lr": 0.05}], lr=0.2, **options)
        return optimizer, MAKERS[name](nn.optim.lr_scheduler, optimizer)

    optimizer, scheduler = made()
    expected = EXPECTED[name]
    np.testing.assert_allclose(scheduler_rows.figures(scheduler, optimizer), expected, rtol=1e-9)
    optimizer, scheduler = made()

    def restart(step: int) -> None:
        if step == 100:
            other, its_scheduler = made()
            states = pickle.loads(pickle.dumps((optimizer.state_dict(), scheduler.state_dict())))
            other.load_state_dict(states[0])
            its_scheduler.load_state_dict(states[1])
            optimizer.param_groups, scheduler.__dict__ = other.param_groups, {**vars(its_scheduler)}
            scheduler.optimizer = optimizer

    np.testing.assert_allclose(
        scheduler_rows.figures(scheduler, optimizer, restart)[:-1], EXPECTED[name][:-1], rtol=1e-9
    )


class Valley(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = (nn.Parameter(x.copy()) for x in BEFORE_VALLEY)

    def forward(self) -> Any:
        return valley(self.first, self.second)


@pytest.mark.parametrize("number", range(len(LBFGS_ROWS)))
def test_lbfgs_equals_torch(number: int) -> None:
    """By code of the user that calls backward, and, for two of the rows, as one program, by itself and in another."""
    row = LBFGS_ROWS[number]
    tensors = [ft.autograd.tensor(x.copy(), requires_grad=True) for x in BEFORE_VALLEY]
    optimizer = nn.optim.LBFGS(tensors, **row.numbers)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = valley(*tensors)
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(LBFGS_STEPS)]
    np.testing.assert_allclose([*losses, *flat(tensors)], row.expected, rtol=1e-6)
    if number not in (1, 3):
        return
    model = Valley()
    optimizer = nn.optim.LBFGS(model.parameters(), **row.numbers)
    losses = [float(optimizer.step(lambda model: model())) for _ in range(2)]
    model, optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    state = optimizer.state_dict()
    optimizer = nn.optim.LBFGS(model, lr=9.0)
    optimizer.load_state_dict(state)
    compiled = nn.jit(lambda model, optimizer: optimizer.step(lambda: model()))
    losses += [float(compiled(model, optimizer)) for _ in range(2)]
    np.testing.assert_allclose([*losses, *flat([*model.parameters()])], row.expected, rtol=1e-6)


def test_an_error_in_a_closure_leaves_the_parameters() -> None:
    x = ft.autograd.tensor([3.0, -2.0], requires_grad=True)
    optimizer = nn.optim.LBFGS([x])
    calls: list[int] = []

    def closure() -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        optimizer.zero_grad()
        loss = ((x - 1) ** 4).sum()
        loss.backward()
        return loss

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(closure)
    np.testing.assert_array_equal(x.detach(), [3.0, -2.0])
    assert int(optimizer.state["n_iter"].value) == 0


@pytest.mark.parametrize("name", ["LBFGS", "optax.lbfgs", "Adam"])
def test_fit(name: str) -> None:
    optax = pytest.importorskip("optax")
    nn.manual_seed(0)
    model = nn.Linear(3, 1, dtype=np.float64)
    optimizers: dict[str, Any] = {
        "LBFGS": lambda: nn.optim.LBFGS(model, max_iter=3, line_search_fn="strong_wolfe"),
        "optax.lbfgs": optax.lbfgs,
        "Adam": lambda: nn.optim.Adam(model.parameters(), lr=0.3),
    }
    target = X.astype(np.float64) @ np.array([[1.0], [-2.0], [0.5]])
    data = [(X.astype(np.float64), target)]
    history = nn.fit(model, data, loss=nn.functional.mse_loss, optimizer=optimizers[name](), epochs=12, progress=False)
    assert history["loss"][-1] < (0.5 if name == "Adam" else 1e-6) * history["loss"][0]


# Derivatives through updates


def inner_loss(parameters: dict[str, Any], x: Any) -> Any:
    return (np.tanh(x @ parameters["first.weight"]) ** 2 + parameters["first.bias"]).sum() ** 2


class Inner(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 2, dtype=np.float64)
        self.first.weight.value, self.first.bias.value = FIRST


def trained(optimizer: Any, parameters: Any, x: Any, gradient: Any, **numbers: Any) -> Any:
    """The loss after three steps, with derivatives by `gradient`."""
    state = None
    for _ in range(3):
        gradients = gradient(parameters, x)
        parameters, state = optimizer.functional_step(parameters, gradients, state, **numbers)
    return inner_loss(parameters, 2 * x)


def of_tensors(parameters: Any, x: Any) -> Any:
    loss = inner_loss(parameters, x)
    return dict(zip(parameters, ft.autograd.grad(loss, [*parameters.values()], create_graph=True), strict=True))


def stateful(model: Any, optimizer: Any, x: Any) -> Any:
    def loss(model: Any, x: Any) -> Any:
        return inner_loss({path: p + 0.0 for path, p in model.named_parameters()}, x)

    for _ in range(3):
        optimizer.step(nn.grad(loss)(model, x))
    return loss(model, 2 * x)


_META: dict[str, Any] = {
    "Adam": lambda model: nn.optim.Adam(model, lr=0.05),
    "SGD": lambda model: nn.optim.SGD(model, lr=0.05, momentum=0.9, nesterov=True),
    "NAdam": lambda model: nn.optim.NAdam(model, lr=0.05, weight_decay=0.1),
    "RMSprop": lambda model: nn.optim.RMSprop(model, lr=0.05, centered=True),
    "optax": lambda model: nn.Optimizer(model, pytest.importorskip("optax").adam(0.05)),
}


@pytest.mark.parametrize("name", _META)
def test_derivatives_through_updates(name: str) -> None:
    model = Inner()
    optimizer, x = _META[name](model), np.array([[0.4, -0.3]])
    values = {path: np.array(p.value) for path, p in model.named_parameters()}
    gradient = ft.grad(inner_loss)
    found = ft.grad(lambda p: trained(optimizer, p, x, gradient))(values)
    h, expected = 1e-6, np.zeros((2, 2))
    for i in np.ndindex(2, 2):
        up, down = (
            {
                **values,
                "first.weight": values["first.weight"]
                + s * h * (np.indices((2, 2)) == np.reshape(i, (2, 1, 1))).all(0),
            }
            for s in (1, -1)
        )
        expected[i] = (trained(optimizer, up, x, gradient) - trained(optimizer, down, x, gradient)) / (2 * h)
    np.testing.assert_allclose(found["first.weight"], expected, rtol=1e-5, atol=1e-7)
    tensors = {path: ft.autograd.tensor(v, requires_grad=True) for path, v in values.items()}
    trained(optimizer, tensors, x, of_tensors).backward()
    np.testing.assert_allclose(tensors["first.weight"].grad, expected, rtol=1e-5, atol=1e-7)
    compiled = [nn.jit] if name in ("Adam", "optax") else []
    for wrap in (lambda f: f, *compiled):
        model = Inner()
        got = wrap(nn.grad(stateful))(model, _META[name](model), x)
        np.testing.assert_allclose(got["first.weight"], expected, rtol=1e-5, atol=1e-7)


def test_derivatives_with_respect_to_hyperparameters_and_at_zero() -> None:
    model = Inner()
    optimizer, x = nn.optim.Adam(model), np.array([[0.4, -0.3]])
    values = {path: np.array(p.value) for path, p in model.named_parameters()}

    def of_rate(lr: Any) -> Any:
        return trained(optimizer, values, x, ft.grad(inner_loss), lr=lr, betas=(0.8, 0.99))

    ft.testing.check_grads(of_rate, 0.05, order=2)
    rate = ft.autograd.tensor(0.05, requires_grad=True)
    of_rate(rate).backward()
    np.testing.assert_allclose(rate.grad, ft.grad(of_rate)(0.05))
    # An update by a gradient of zero changes by lr / eps with it.
    (path, *_), zeros = optimizer.paths, {path: np.zeros(v.shape) for path, v in values.items()}
    slopes = ft.grad(lambda g: optimizer.functional_step(values, {**zeros, path: g})[0][path].sum())(zeros[path])
    np.testing.assert_allclose(slopes, -1e-3 / 1e-8)


def test_an_optimizer_that_a_compiled_function_makes() -> None:
    def adapted(model: Any, x: Any) -> Any:
        return stateful(model, nn.optim.Adam(model, lr=0.05), x)

    x = np.array([[0.4, -0.3]])
    expected = nn.grad(adapted)(Inner(), x)
    found = nn.jit(nn.grad(adapted))(Inner(), x)
    np.testing.assert_allclose(found["first.weight"], expected["first.weight"], rtol=1e-9)


def test_a_file_of_an_optimizer(tmp_path: Any) -> None:
    parameters = bare()
    optimizer = nn.optim.Adam(parameters, lr=0.05)
    steps_of(optimizer, parameters, range(3))
    nn.save(tmp_path / "optimizer.safetensors", optimizer)
    others = bare()
    other = nn.optim.Adam(others)
    other.load_state_dict(nn.load(tmp_path / "optimizer.safetensors"))
    steps_of(optimizer, parameters, range(3, 6))
    steps_of(other, others, range(3, 6))
    np.testing.assert_array_equal(flat(others), flat(parameters))


def _mistakes() -> dict[str, tuple[type[Exception], str, Any]]:
    optim, schedulers = nn.optim, nn.optim.lr_scheduler
    model = nn.Linear(2, 1)
    sgd = optim.SGD(model, momentum=0.9)
    result = ft.autograd.tensor([1.0], requires_grad=True) * 2

    def traced(model: Any, optimizer: Any) -> Any:
        schedulers.StepLR(sgd, 1).step()
        return model.weight.sum()

    def chained(*optimizers: Any) -> Any:
        return schedulers.ChainedScheduler([schedulers.StepLR(x, 1) for x in optimizers])

    two_groups = optim.SGD([{"params": [model.weight]}, {"params": [model.bias]}])
    state = optim.Adam(model).state_dict()
    return {
        "used up": (ValueError, "can be read once only", lambda: optim.SGD(iter(()))),
        "no parameters": (TypeError, r"takes model.parameters\(\), a model", lambda: optim.SGD(3)),
        "arrays": (TypeError, "parameter 0 is a NumPy array", lambda: optim.SGD([np.ones(2)])),
        "results": (ValueError, "updates leaves in place", lambda: optim.SGD([result])),
        "twice": (ValueError, "weight appears twice", lambda: sgd.add_param_group({"params": model.weight})),
        "group": (ValueError, "has the entry 'params'", lambda: optim.SGD([{"lr": 1.0}])),
        "rate": (ValueError, "lr must not be negative", lambda: optim.SGD(model, lr=-1.0)),
        "set": (ValueError, "lr must not be negative", lambda: sgd.param_groups[0].update(lr=-1.0)),
        "betas": (ValueError, "at least 0 and less than 1", lambda: optim.Adam(model, betas=(0.9, 1.0))),
        "number": (TypeError, "lr is a number", lambda: optim.SGD(model, lr="0.1")),
        "nesterov": (ValueError, "takes a momentum above 0", lambda: optim.SGD(model, nesterov=True)),
        "etas": (ValueError, "one above 1", lambda: optim.Rprop(model, etas=(1.5, 1.2))),
        "name": (TypeError, "SGD has no rate; it has lr, momentum", lambda: optim.SGD(model, rate=0.1)),
        "entry": (KeyError, "no .*rate.*; it has params, lr", lambda: sgd.param_groups[0]["rate"]),
        "params": (KeyError, "add_param_group", lambda: sgd.param_groups[0].update(params=[])),
        "differentiable": (TypeError, "functional_step", lambda: optim.SGD(model, differentiable=True)),
        "no gradients": (ValueError, "there are none", sgd.step),
        "other gradients": (ValueError, "gradients for scale", lambda: sgd.step({"scale": np.ones(2)})),
        "shape": (ValueError, "has shape", lambda: sgd.step({"weight": np.ones(3)})),
        "further": (TypeError, "takes no loss=", lambda: sgd.step({"weight": np.ones((1, 2))}, loss=1.0)),
        "paths": (ValueError, "takes parameters for", lambda: sgd.functional_step({}, {})),
        "other state": (ValueError, "parameter 0 has exp_avg", lambda: sgd.load_state_dict(
            {**state, "state": {0: {"exp_avg": np.ones((1, 2)), "momentum_buffer": np.ones((1, 2))}}})),
        "other groups": (ValueError, "groups of", lambda: sgd.load_state_dict({"state": {}, "param_groups": []})),
        "state of another": (ValueError, "groups have no betas, eps",
            lambda: optim.Adam(nn.Linear(2, 1)).load_state_dict(optim.SGD(nn.Linear(2, 1)).state_dict())),
        "state of another scheduler": (ValueError, "lacks gamma, step_size and has T_max, eta_min", lambda:
            schedulers.StepLR(sgd, 1).load_state_dict(schedulers.CosineAnnealingLR(sgd, 4).state_dict())),
        "no state of a scheduler": (ValueError, "of something else: it lacks", lambda:
            schedulers.StepLR(sgd, 1).load_state_dict({})),
        "no mapping": (TypeError, "not NoneType", lambda: schedulers.StepLR(sgd, 1).load_state_dict(None)),
        "of one scheduler": (ValueError, "lacks _schedulers", lambda: chained(sgd).load_state_dict(
            schedulers.StepLR(sgd, 1).state_dict())),
        "of more schedulers": (ValueError, "of 1 schedulers was given the states of 2", lambda:
            chained(sgd).load_state_dict(chained(sgd, sgd).state_dict())),
        "of other groups": (ValueError, "has 1 groups of parameters, was given base_lrs of 2", lambda:
            schedulers.StepLR(sgd, 1).load_state_dict(schedulers.StepLR(two_groups, 1).state_dict())),
        "optax": (TypeError, "give a schedule of optax", lambda: schedulers.StepLR(_of_optax(model), 1)),
        "no optimizer": (TypeError, "takes an optimizer of nn.optim", lambda: schedulers.StepLR(model, 1)),
        "goes on": (KeyError, "initial_lr", lambda: schedulers.StepLR(optim.SGD(model), 1, last_epoch=4)),
        "no steps": (ValueError, "positive number of steps", lambda: schedulers.StepLR(sgd, 0)),
        "functions": (ValueError, "one for each of 1", lambda: schedulers.LambdaLR(sgd, [len, len])),
        "factor": (ValueError, "between 0 and 1", lambda: schedulers.ConstantLR(sgd, 2.0)),
        "momentum": (ValueError, "cycle_momentum=False", lambda: schedulers.CyclicLR(optim.Adagrad(model), 0.1, 1.0)),
        "mode": (ValueError, "'triangular'", lambda: schedulers.CyclicLR(sgd, 0.1, 1.0, mode="sine")),
        "one cycle": (ValueError, "give total_steps", lambda: schedulers.OneCycleLR(sgd, 1.0)),
        "milestones": (ValueError, "takes 0 milestones", lambda: schedulers.SequentialLR(
            sgd, [schedulers.StepLR(sgd, 1)], [3])),
        "others": (ValueError, "of another optimizer", lambda: schedulers.ChainedScheduler(
            [schedulers.StepLR(optim.SGD(model), 1)], sgd)),
        "other names": (AttributeError, "optax.contrib.muon", lambda: optim.Muon),
        "search": (ValueError, "None or 'strong_wolfe'", lambda: optim.LBFGS(model, line_search_fn="wolfe")),
        "iterations": (ValueError, "must be positive", lambda: optim.LBFGS(model, max_iter=0)),
        "groups": (ValueError, "in one group", lambda: optim.LBFGS([{"params": model.weight}, {"params": model.bias}])),
        "no closure": (TypeError, "so step takes a function", lambda: optim.LBFGS(model).step({})),
        "only value_fn": (TypeError, "takes gradients and value=loss", lambda: optim.LBFGS(model).step(value_fn=len)),
        "no backward": (ValueError, "has computed no gradients", lambda: optim.LBFGS(model).step(lambda: 1.0)),
        "constant": (TypeError, "does not depend on the parameters", lambda: optim.LBFGS(model).step(
            lambda model: np.sum(np.ones(3)))),
        "functional": (TypeError, "evaluates the loss", lambda: optim.LBFGS(model).functional_step({}, {})),
        "plateau": (ValueError, "less than 1", lambda: schedulers.ReduceLROnPlateau(sgd, factor=1.0)),
        "partly": (RuntimeError, "bias has no gradient in a compiled step", lambda: nn.jit(
            lambda model, optimizer: optimizer.step({"weight": np.ones((1, 2), np.float32)}))(model, sgd)),
        "traced": (RuntimeError, "after the compiled step", lambda: nn.grad(traced)(model, sgd)),
    }  # fmt: skip


def _of_optax(model: Any) -> Any:
    return nn.Optimizer(model, pytest.importorskip("optax").sgd(0.1))


@pytest.mark.parametrize("name", _mistakes())
def test_mistakes(name: str) -> None:
    error, message, call = _mistakes()[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert "test_nn_optim.py" in str(caught.value)


def test_a_momentum_that_is_switched_on_later() -> None:
    def trained(switch: Any, step: Any) -> Any:
        nn.manual_seed(0)
        model = nn.Linear(2, 1)
        optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
        step(model, optimizer)
        optimizer.param_groups[0]["momentum"] = 0.9
        switch(optimizer)
        for _ in range(2):
            step(model, optimizer)
        return model.weight.value

    def step(model: Any, optimizer: Any) -> None:
        optimizer.step(nn.grad(lambda model: ((model(np.ones((3, 2), np.float32)) - 1) ** 2).mean())(model))

    # With the momentum from the start, torch and ftrans begin with the first gradient, too.
    expected = trained(lambda optimizer: None, step)
    np.testing.assert_allclose(trained(lambda optimizer: optimizer.complete(), nn.jit(step)), expected, rtol=1e-5)
    with pytest.raises(
        RuntimeError, match=r"SGD has no momentum_buffer\.weight yet.*before it, call optimizer\.complete"
    ):
        trained(lambda optimizer: None, nn.jit(step))
