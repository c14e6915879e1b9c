"""Datasets for the tests of loaders, in a module that worker processes import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import ftrans.autograd as torch
from ftrans import nn


class Noisy(nn.data.Dataset):
    """Rows of numbers, and random ones beside them."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> Any:
        return {"x": np.full(2000, i, np.float32), "noise": np.random.rand(), "label": i % 3}


class Rows(nn.data.Dataset):
    """A Tensor and a number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(i)]), i


class Counting(nn.data.IterableDataset):
    """Numbers, which the workers share."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        info = nn.data.get_worker_info()
        assert info is None or info.dataset is self
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.size, step))


class Refused(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


class Bad(nn.data.Dataset):
    """Sample 5 does what a case says, in a worker."""

    def __init__(self, case: str) -> None:
        self.case = case

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> Any:
        if i == 5:
            if self.case == "error":
                raise KeyError("broken file")
            if self.case == "refused":
                raise Refused(code=7)
            if self.case == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.case == "ended":
                os._exit(3)
            if self.case == "slow":
                time.sleep(60)
            if self.case == "no pickle":
                return lambda: 0
        return i


def first_of(samples: list[Any]) -> Any:
    """A collate function that makes no batch."""
    return samples[0]


def start(worker: int) -> None:
    """What a worker does first."""
    os.environ["STARTED"] = str(worker)


class Told(nn.data.Dataset):
    """What a worker knows of itself."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        info = nn.data.get_worker_info()
        assert info is not None
        return i, int(os.environ["STARTED"]) == info.id, os.environ["JAX_PLATFORMS"], os.getpid()
