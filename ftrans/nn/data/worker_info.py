"""What a worker process of a loader knows about itself."""

from __future__ import annotations

from typing import Any, NamedTuple


class WorkerInfo(NamedTuple):
    """The worker process in which code of a dataset runs.

    Attributes:
        id: its number, from 0.
        num_workers: the number of workers.
        seed: the seed of this worker in this epoch.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_here: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker process of a `DataLoader` in which this is called; None in the main process.

    An `IterableDataset` divides its samples among the workers by it.

    Example:
        >>> from ftrans import nn
        >>> class Numbers(nn.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = nn.data.get_worker_info()
        ...         first, step = (0, 1) if info is None else (info.id, info.num_workers)
        ...         return iter(range(first, 6, step))
        >>> list(Numbers())
        [0, 1, 2, 3, 4, 5]
    """
    return _here


def set_worker_info(info: WorkerInfo) -> None:
    """Say in a worker process which one it is."""
    global _here
    _here = info
