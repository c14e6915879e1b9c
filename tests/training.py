"""A small model and data, for the tests of the training loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from ftrans import nn

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(64, 3)).astype(np.float32)
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], 1)


@contextmanager
def compiled_once(directory: Path) -> Iterator[dict[str, str]]:
    """Within this block, XLA compiles equal programs once and keeps them in a folder.

    Yields:
        The environment in which other processes do so, too.
    """
    options: dict[str, Any] = {
        "jax_compilation_cache_dir": str(directory),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in options}
    try:
        for name, value in options.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        yield {name.upper(): str(value) for name, value in options.items()}
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()


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


@pytest.fixture
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings with a directory draw no curves, which takes longer than to train."""
    monkeypatch.setattr("ftrans.nn.training.loop.find_spec", lambda name: None)


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
