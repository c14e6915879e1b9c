"""A script of a user: a model with annotations, trained by a loop and by `nn.fit`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from ftrans import nn
from ftrans.nn import functional as F
from ftrans.nn import optim
from ftrans.nn.data import DataLoader, Dataset, TensorDataset

Array = NDArray[np.float32]


class Regression(nn.Module):
    """Two layers."""

    def __init__(self, width: int) -> None:
        self.hidden = nn.Linear(3, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(width, 1)
        self.scale = nn.Parameter(np.ones(1, np.float32))

    def forward(self, x: Array) -> Any:
        return self.scale * self.output(self.dropout(F.relu(self.norm(self.hidden(x)))))


class Samples(Dataset[tuple[Array, int]]):
    """A dataset whose samples have a type."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Array, int]:
        return np.full(3, index, np.float32), index


class Squares(Dataset):
    """One whose samples are anything."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index**2


def squared_error(model: Regression, x: Array, y: Array) -> Any:
    return F.mse_loss(model(x), y)


def error_and_output(model: Regression, x: Array, y: Array) -> tuple[Any, Array]:
    output = model(x)
    return F.mse_loss(output, y), output


@nn.jit
def step(model: Regression, optimizer: nn.Optimizer, x: Array, y: Array) -> Any:
    value, gradients = nn.value_and_grad(squared_error)(model, x, y)
    assert_type(gradients, dict[str, Any])
    optimizer.step(gradients)
    return value


def batches(x: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    for start in range(0, len(x), 8):
        yield x[start : start + 8], y[start : start + 8]


def check_types(model: Regression, x: Array, y: Array) -> None:
    """Functions of modules keep their arguments."""
    assert_type(nn.grad(squared_error)(model, x, y), dict[str, Any])
    assert_type(nn.grad(error_and_output, has_aux=True)(model, x, y), tuple[dict[str, Any], Array])
    assert_type(model.train(), Regression)
    assert_type(model.hidden.weight, nn.Parameter)
    doubled: Array = 2 * model.hidden.weight - model.scale
    assert doubled.shape == (4, 3)
    assert_type(model.hidden.weight.shape, tuple[int, ...])
    assert_type([name for name, _ in model.named_parameters()], list[str])


def check_mistakes(model: Regression, x: Array, y: Array) -> None:
    """Wrong calls are errors for the type checker: none of these runs."""
    step(model, x, y)  # type: ignore[call-arg]
    nn.value_and_grad(squared_error)(model, x)  # type: ignore[call-arg]
    nn.grad(squared_error)(x, x, y)  # type: ignore[arg-type]
    nn.Linear("three", 4)  # type: ignore[arg-type]
    nn.Lineer(3, 4)  # type: ignore[attr-defined]
    F.relu()  # type: ignore[call-arg]


def main() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(32, 3)).astype(np.float32)
    y = x.sum(axis=1, keepdims=True)
    model = Regression(4)
    check_types(model, x, y)

    optimizer = optim.Adam(model, lr=1e-2)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=10)
    for inputs, targets in batches(x, y):
        step(model, optimizer, inputs, targets)
    schedule.step()

    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    for batch in loader:
        assert len(batch) == 2
    typed: DataLoader[tuple[Array, Array]] = DataLoader(Samples(), batch_size=2)
    assert [labels.tolist() for _, labels in typed] == [[0, 1], [2, 3]]
    assert [sample.tolist() for sample in DataLoader(Squares(), batch_size=4)] == [[0, 1, 4, 9]]
    history = nn.fit(model, nn.batches(x, y, batch_size=8), loss=F.mse_loss, optimizer=optimizer)
    assert_type(history, nn.History)
    assert len(history) == 1


if __name__ == "__main__":
    main()
