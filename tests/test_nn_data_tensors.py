"""Loaders of Tensors: what makes batches Tensors, and that training loops, `nn.fit` and `nn.jit` take them."""

from __future__ import annotations

import multiprocessing
from typing import Any

import data_sets
import numpy as np
import pytest
from training import Net, X, Y, fit, state

import ftrans.autograd as torch
from ftrans import nn
from ftrans.autograd import Tensor
from ftrans.nn import data
from ftrans.nn import functional as F

SAMPLE = {"x": torch.tensor(X[0]), "label": 3, "weight": 0.5, "flag": True, "row": X[1], "name": "a"}


def kinds(x: Any) -> Any:
    """Classes and dtypes of what a batch holds."""
    if isinstance(x, dict):
        return {name: kinds(y) for name, y in x.items()}
    if isinstance(x, tuple | list):
        return [kinds(y) for y in x]
    return (type(x).__name__, str(x.dtype)) if hasattr(x, "dtype") else type(x).__name__


def tensor(dtype: str) -> tuple[str, str]:
    return "Tensor", dtype


def test_one_tensor_makes_all_of_a_batch_tensors() -> None:
    assert kinds(data.default_collate([SAMPLE] * 2)) == {
        "x": tensor("float32"),
        "label": tensor("int64"),
        "weight": tensor("float64"),
        "flag": tensor("bool"),
        "row": tensor("float32"),
        "name": ["str", "str"],
    }
    # Also one in a later sample.
    assert kinds(data.default_collate([(X[0], 1), (torch.tensor(X[1]), 2)])) == [tensor("float32"), tensor("int64")]
    assert kinds(data.default_collate([(X[0], 1)])) == [("ndarray", "float32"), ("ndarray", "int64")]


DATASETS = {
    "all tensors": data.TensorDataset(torch.tensor(X), torch.tensor(Y)),
    "one tensor": data.TensorDataset(torch.tensor(X), Y),
    "a part": data.Subset(data.TensorDataset(X, torch.tensor(Y)), range(len(X))),
    "samples": [(torch.tensor(x), y) for x, y in zip(X, Y, strict=True)],
    "joined": data.ConcatDataset([data.TensorDataset(torch.tensor(X), torch.tensor(Y))]),
}


@pytest.mark.parametrize("case", DATASETS)
def test_batches_of_datasets(case: str) -> None:
    for loader in (data.DataLoader(DATASETS[case], 32), data.DataLoader(DATASETS[case], 32, pin_memory=True)):
        batches = list(loader)
        assert {type(x) for batch in batches for x in batch} == {Tensor}
        for i, of in enumerate((X, Y)):
            np.testing.assert_array_equal(np.concatenate([batch[i].numpy() for batch in batches]), of)
    x = next(iter(data.DataLoader(DATASETS[case], 32, device="cpu")))[0]
    assert not isinstance(x, Tensor | np.ndarray)


def test_batches_have_memory_of_their_own() -> None:
    x = torch.tensor(X)
    (batch,) = next(iter(data.DataLoader(data.TensorDataset(x), len(X))))
    batch += 1
    np.testing.assert_array_equal(x.numpy(), X)


def test_samples_that_require_a_gradient_get_it() -> None:
    rows = torch.tensor(X, requires_grad=True)
    weights = torch.tensor([2.0, 3.0], requires_grad=True)
    (batch,) = next(iter(data.DataLoader(data.TensorDataset(rows), 2)))
    scale = next(iter(data.DataLoader([weights[0], weights[1]], 2)))
    (batch * scale[:, None]).sum().backward()
    np.testing.assert_array_equal(rows.grad.numpy()[:3], [[2] * 3, [3] * 3, [0] * 3])
    np.testing.assert_allclose(weights.grad.numpy(), X[:2].sum(axis=1), rtol=1e-6)


def test_workers_send_tensors() -> None:
    multiprocessing.get_context("forkserver").set_forkserver_preload(["ftrans.nn"])
    loader = data.DataLoader(data_sets.Rows(6), 4, num_workers=1, multiprocessing_context="forkserver")
    batches = list(loader)
    assert {type(x) for batch in batches for x in batch} == {Tensor}
    assert [[x.tolist() for x in batch] for batch in batches] == [
        [[[0], [1], [2], [3]], [0, 1, 2, 3]],
        [[[4], [5]], [4, 5]],
    ]


def test_tensors_of_arrays_where_asked() -> None:
    for samples in (data.TensorDataset(X, np.arange(64)), [(x, 3) for x in X]):
        for x, y in data.DataLoader(samples, 32, tensors=True):
            assert kinds((x, y)) == [tensor("float32"), tensor("int64")]
    given = {"x": X, "more": [np.float32(2), 3, "s", None]}
    found = data.default_convert(given)
    assert kinds(found) == {"x": tensor("float32"), "more": [tensor("float32"), "int", "str", "NoneType"]}
    assert np.shares_memory(found["x"].numpy(), X)


@pytest.mark.parametrize("options", [{}, {"tensors": True}])
def test_a_training_loop_of_torch(options: dict[str, Any]) -> None:
    dataset = data.TensorDataset(X, Y) if options else data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    model = Net()
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        for x, y in data.DataLoader(dataset, batch_size=16, **options):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x.to("cpu")), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_fit_takes_tensors() -> None:
    of_tensors, of_arrays = Net(), Net()
    fit(of_tensors, data.DataLoader(DATASETS["all tensors"], 16))
    fit(of_arrays, data.DataLoader(data.TensorDataset(X, Y), 16))
    assert state(of_tensors) == state(of_arrays)
