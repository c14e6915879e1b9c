"""nn.optim: the optimizers of torch, groups of parameters, states, compiled steps, and derivatives through updates."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import optimizer_rows
import pytest
import scheduler_rows
from optimizer_rows import FIRST, ROWS, STEPS, Row
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


def _mistakes() -> dict[str, tuple[type[Exception], str, Any]]:
    optim, schedulers = nn.optim, nn.optim.lr_scheduler
    model = nn.Linear(2, 1)
    sgd = optim.SGD(model, momentum=0.9)
    result = ft.autograd.tensor([1.0], requires_grad=True) * 2

    def traced(model: Any, optimizer: Any) -> Any:
        schedulers.StepLR(sgd, 1).step()
        return model.weight.sum()

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
        "plateau": (ValueError, "less than 1", lambda: schedulers.ReduceLROnPlateau(sgd, factor=1.0)),
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
