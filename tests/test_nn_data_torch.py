"""Datasets, samplers and loaders against those of torch, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ftrans import nn

torch = pytest.importorskip("torch")
OF_TORCH = torch.utils.data
X, Y = np.arange(22.0, dtype=np.float32).reshape(11, 2), np.arange(11)


def plain(x: Any) -> Any:
    """Arrays and tensors as arrays, with the names of their dtypes; tuples as lists."""
    if isinstance(x, dict):
        return {name: plain(y) for name, y in x.items()}
    if isinstance(x, list | tuple):
        return [plain(y) for y in x]
    return x if isinstance(x, str | int) else (np.asarray(x).dtype.name, np.asarray(x).tolist())


def tensors(of: Any) -> Any:
    """A dataset of arrays."""
    return of.TensorDataset(*(map(torch.from_numpy, (X, Y)) if of is OF_TORCH else (X, Y)))


def row(of: Any) -> Any:
    """A tensor."""
    return torch.ones(2) if of is OF_TORCH else of.default_convert(np.ones(2, np.float32))


# The same calls in both libraries.
CALLS: dict[str, Callable[[Any], Any]] = {
    "in order": lambda of: list(of.DataLoader(tensors(of), 4)),
    "whole batches": lambda of: list(of.DataLoader(tensors(of), batch_size=4, drop_last=True)),
    "samples": lambda of: list(of.DataLoader(range(3), batch_size=None)),
    "batch sampler": lambda of: list(of.DataLoader(tensors(of), batch_sampler=[[3, 1], [0]])),
    "sampler": lambda of: list(of.DataLoader(tensors(of), 2, sampler=of.SequentialSampler(range(3)))),
    "dictionaries": lambda of: list(of.DataLoader([{"a": i, "b": (0.5, "t", True)} for i in range(5)], 2)),
    "tensors among others": lambda of: list(
        of.DataLoader([{"a": row(of), "b": (i, 0.5, True, X[i])} for i in range(5)], 2)
    ),
    "converted": lambda of: of.default_convert({"a": [X, "t"], "b": X[0, 0]}),
    "subset": lambda of: list(of.DataLoader(of.Subset(tensors(of), [4, 2, 0]), 2)),
    "concatenated": lambda of: list(of.DataLoader(of.ConcatDataset([tensors(of), tensors(of)]), 5)),
    "stacked": lambda of: list(of.DataLoader(of.StackDataset(a=tensors(of), b=list(range(11))), 5)),
    "own collate": lambda of: list(of.DataLoader(range(5), 2, collate_fn=sum)),
    "lengths": lambda of: [len(of.DataLoader(range(11), 4, drop_last=drop)) for drop in (False, True)],
    "parts": lambda of: [len(p) for p in of.random_split(range(103), [0.29, 0.51, 0.2])],
    "batches of a sampler": lambda of: list(of.BatchSampler(of.SequentialSampler(range(7)), 3, False)),
    "random samplers": lambda of: [
        len(of.RandomSampler(range(5), num_samples=12)),
        sorted(of.RandomSampler(range(5))),
        sorted(of.SubsetRandomSampler([5, 3])),
        len(list(of.WeightedRandomSampler([0.1, 0.9], 7))),
        of.ConcatDataset([[1], [2, 3]]).cumulative_sizes,
    ],
    "shares": lambda of: [
        list((of.distributed.DistributedSampler if of is OF_TORCH else of.DistributedSampler)(range(11), 3, i, False))
        for i in range(3)
    ],
}


@pytest.mark.parametrize("case", CALLS)
def test_same_as_torch(case: str) -> None:
    assert plain(CALLS[case](nn.data)) == plain(CALLS[case](OF_TORCH))
