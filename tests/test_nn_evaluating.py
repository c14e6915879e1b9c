"""What looks at a model without training it: evaluate, predict, the learning-rate search and the profile of a step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest
from training import Net, X, Y, data, fit, mae, mse, state

import ftrans as ft
from ftrans import nn


@pytest.mark.parametrize("is_divided", [False, True])
def test_evaluate_gives_what_the_validation_does(is_divided: bool) -> None:
    model, batches = Net(p=0.5), data(batch_size=30)
    mesh = ft.mesh({"data": 4}) if is_divided else None
    history = fit(model, epochs=1, validation=batches, metrics={"mae": mae, "r2": nn.metrics.R2Score()}, mesh=mesh)
    before, r2 = state(model), nn.metrics.R2Score()
    found = nn.evaluate(model, batches, loss=mse, metrics={"mae": mae, "r2": r2})
    assert model.training
    assert state(model) == before
    for name, value in found.items():
        np.testing.assert_allclose(value, history[f"val_{name}"][0], rtol=1e-5)
    assert r2.compute() == found["r2"]
    if is_divided:
        return
    by_objective = nn.evaluate(model, batches, objective=lambda model, x, y: (mse(model(x), y), {"one": np.float32(1)}))
    np.testing.assert_allclose([by_objective["loss"], by_objective["one"]], [found["loss"], 1], rtol=1e-5)


def test_predict() -> None:
    model = Net(p=0.5).eval()
    expected = np.asarray(model(X))
    model.train()
    for batches, has_target in (
        (nn.batches(X, batch_size=30, shuffle=False), False),
        (nn.batches(X, Y, batch_size=30, shuffle=False), True),
        (nn.batches({"x": X, "target": Y}, batch_size=30, shuffle=False), True),
    ):
        np.testing.assert_allclose(nn.predict(model, batches, has_target=has_target), expected, rtol=1e-5, atol=1e-6)
    assert model.training


OPTIMIZERS = {"optax": optax.sgd, "nn.optim": nn.optim.SGD}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_learning_rates_that_are_too_large_end_the_search(kind: str, tmp_path: Path) -> None:
    nn.manual_seed(0)
    model, batches = nn.Linear(3, 1), nn.data.DataLoader(nn.data.TensorDataset(X, X[:, :1]), 16, shuffle=True)
    before, position = state(model), batches.state_dict()
    found = nn.find_learning_rate(model, batches, loss=mse, optimizer=OPTIMIZERS[kind], low=1e-4, high=100.0, steps=60)
    assert state(model) == before
    assert batches.state_dict() == position
    np.testing.assert_allclose(np.diff(np.log(found.learning_rates)), np.log(1e6) / 59, rtol=1e-9)
    assert 10 < len(found.losses) < 60
    # The mean square of a linear model diverges from 2 / (largest eigenvalue of the Hessian) on.
    bound = 1 / np.linalg.eigvalsh(X.T @ X / 64).max()
    assert 0.02 * bound < found.suggestion < 2 * bound
    assert found.learning_rates[-1] > 0.5 * bound
    found.plot(tmp_path / "rates.png")
    assert (tmp_path / "rates.png").stat().st_size > 5000


def test_profile_of_a_step() -> None:
    model = Net()
    before = state(model)
    optimizer = nn.optim.Adam(model, lr=0.1)
    found = nn.profile_step(model, data(), loss=mse, optimizer=optimizer, steps=3)
    assert state(model) == before
    assert (found.samples, found.parameters) == (16, 40)
    assert min(found.step, found.forward, found.compiling, found.data) > 0
    assert found.compiling > found.step
    for word in ("forward", "samples/s", "40 parameters"):
        assert word in repr(found)


MISTAKES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "evaluate": (lambda: nn.evaluate(Net(), data()), ["exactly one of loss"]),
    "search": (lambda: nn.find_learning_rate(Net(), data()), ["exactly one of loss"]),
    "profile": (lambda: nn.profile_step(Net(), data()), ["exactly one of loss"]),
    "bounds": (lambda: nn.find_learning_rate(Net(), data(), loss=mse, low=1.0, high=0.1), ["0 < low < high"]),
    "optimizer": (
        lambda: nn.find_learning_rate(Net(), data(), loss=mse, optimizer=optax.adam(1e-3)),
        ["optax.adam", "nn.optim.Adam"],
    ),
    "one batch": (lambda: nn.profile_step(Net(), [(X, Y)], loss=mse), ["two batches"]),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case: str) -> None:
    make, words = MISTAKES[case]
    with pytest.raises((ValueError, TypeError)) as found:
        make()
    for word in [*words, "test_nn_evaluating.py"]:
        assert word in str(found.value)
