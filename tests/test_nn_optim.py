"""nn.optim: the optimizers of torch, groups of parameters, states, compiled steps, and derivatives through updates."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import optimizer_rows
import pytest
from optimizer_rows import FIRST, ROWS, STEPS, Row

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
