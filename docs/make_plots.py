"""Writes docs/images/plot_*.png: the pictures of docs/plots.md.

python docs/make_plots.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import ftrans as ft  # noqa: E402
from ftrans import nn  # noqa: E402
from ftrans.debug import plots  # noqa: E402


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def network() -> tuple[nn.Module, Any, Any]:
    """A deep network of sigmoids, whose gradients vanish, and data."""
    nn.manual_seed(0)
    layers = [layer for n in (2, 16, 16, 16) for layer in (nn.Linear(n, 16), nn.Sigmoid())]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 2)).astype(np.float32)
    return nn.Sequential(*layers, nn.Linear(16, 1)), x, (x[:, :1] * x[:, 1:] > 0).astype(np.float32)


def learning_curves() -> Any:
    rng = np.random.default_rng(0)
    epochs = [
        {"epoch": i + 1, "loss": np.exp(-i / 6) + 0.02 * rng.normal(), "val_loss": np.exp(-i / 8) + 0.1 + 0.01 * i}
        for i in range(25)
    ]
    return plots.learning_curves(epochs)


def sparsity() -> Any:
    return plots.sparsity(ft.hessian_sparsity(rosenbrock)(np.ones(24)))


def hessian_spectrum() -> Any:
    return plots.hessian_spectrum(rosenbrock, np.full(20, 0.3))


def loss_landscape() -> Any:
    return plots.loss_landscape(
        lambda x: np.log(rosenbrock(x) + 1e-3), np.ones(2), (np.array([1.0, 0.0]), np.array([0.0, 1.0])), span=1.5
    )


def gradient_flow() -> Any:
    model, x, y = network()
    return plots.gradient_flow(nn.value_and_grad(lambda m: np.mean((m(x) - y) ** 2))(model)[1])


def flame() -> Any:
    def loss(w: Any, x: Any) -> Any:
        with ft.debug.scope("encoder"):
            h = np.tanh(x @ w)
        with ft.debug.scope("loss"):
            return np.mean((h @ w.T - x) ** 2)

    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(64, 128)), rng.normal(size=(512, 64))
    with ft.debug.profile() as prof:
        ft.grad(loss)(w, x)
    return plots.flame(prof)


def taylor() -> Any:
    return plots.taylor(np.sin, 0.0, orders=(1, 3, 5, 9), span=7.0)


PICTURES: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (learning_curves, sparsity, hessian_spectrum, loss_landscape, gradient_flow, flame, taylor)
}


def file_of(name: str) -> Path:
    return ROOT / "docs" / "images" / f"plot_{name}.png"


if __name__ == "__main__":
    for name, make in PICTURES.items():
        make().figure.savefig(file_of(name), dpi=80)
