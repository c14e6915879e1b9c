"""A small model and data, for the tests of the training loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import optax

from ftrans import nn

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(64, 3)).astype(np.float32)
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], 1)


class Net(nn.Module):
    """Two linear layers with dropout between them, and a count of the calls in training."""

    def __init__(self, p: float = 0.0) -> None:
        rng = np.random.default_rng(1)
        self.first = nn.Parameter(rng.normal(size=(3, 8)).astype(np.float32))
        self.second = nn.Parameter(0.3 * rng.normal(size=(8, 2)).astype(np.float32))
        self.p = p
        self.rng = nn.RngState(5)
        self.calls = nn.Buffer(np.zeros((), np.int32), persistent=False)

    def forward(self, x: Any) -> Any:
        h = np.tanh(x @ self.first)
        if self.training:
            self.calls = self.calls + 1
            if self.p:
                h = np.where(nn.random.uniform(self.rng.next_key(), h.shape) < self.p, 0.0, h / (1 - self.p))
        return h @ self.second


def mse(output: Any, target: Any) -> Any:
    """The mean square."""
    return np.mean((output - target) ** 2)


def mae(output: Any, target: Any) -> Any:
    """The mean distance."""
    return np.mean(np.abs(output - target))


def data(**options: Any) -> Any:
    """Four batches of 16."""
    return nn.batches(X, Y, **{"batch_size": 16, "seed": 3, **options})


def fit(model: nn.Module, batches: Any = None, **options: Any) -> nn.History:
    """A training of two epochs that shows nothing."""
    given = {"epochs": 2, "progress": False, "optimizer": optax.sgd(0.05, momentum=0.9), **options}
    if "objective" not in given:
        given.setdefault("loss", mse)
    return nn.fit(model, data() if batches is None else batches, **given)


def state(model: nn.Module) -> dict[str, bytes]:
    """All that a model holds, bit for bit."""
    return {path: np.asarray(x).tobytes() for path, x in nn.state_of(model).items()}


def figures(history: nn.History) -> list[dict[str, Any]]:
    """The rows of a history without times."""
    return [{k: x for k, x in row.items() if k not in ("seconds", "samples_per_second")} for row in history.epochs]
