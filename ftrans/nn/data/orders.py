"""Orders: which samplers a loader has, and whether its arguments agree with each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...api.call import type_name
from ...base.source import at_line, user_line
from .datasets import is_iterable_style
from .samplers import BatchSampler, RandomSampler, SequentialSampler

_CONTEXTS = ("spawn", "forkserver")


def require_dataset(dataset: Any) -> None:
    """Raise unless something can be used as a dataset."""
    has_index = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    if isinstance(dataset, Mapping | str) or not (has_index or hasattr(dataset, "__iter__")):
        raise TypeError(
            "DataLoader takes a dataset, an object with __getitem__ and __len__, or with __iter__, but was given one "
            f"{type_name(dataset)}; for arrays write nn.data.TensorDataset(x, y), for arrays by name "
            f"nn.data.StackDataset(x=x, y=y){at_line(user_line())}"
        )


def require_workers(
    workers: Any, prefetch_factor: int | None, persistent_workers: bool, timeout: float, context: Any
) -> None:
    """Raise for arguments about workers that contradict each other."""
    line = at_line(user_line())
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer) or workers < 0:
        raise ValueError(f"num_workers must be a number of processes, 0 or more, not {workers!r}{line}")
    if timeout < 0:
        raise ValueError(f"timeout must be a number of seconds, 0 or more, not {timeout!r}{line}")
    named = {"prefetch_factor": prefetch_factor, "persistent_workers": persistent_workers, "timeout": timeout}
    useless = [name for name, x in named.items() if x]
    if not workers and useless:
        raise ValueError(
            f"{useless[0]} is about worker processes, of which there are none; write num_workers=1 or more, or leave "
            f"it out{line}"
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"prefetch_factor must be a positive integer, not {prefetch_factor!r}{line}")
    method = context if context is None or isinstance(context, str) else context.get_start_method()
    if method not in (None, *_CONTEXTS):
        raise ValueError(
            f"workers cannot be started by {method!r}, since JAX runs threads, which a forked process does not have; "
            f"write multiprocessing_context='spawn' or 'forkserver'{line}"
        )


def samplers_for(
    dataset: Any,
    batch_size: Any,
    shuffle: bool | None,
    sampler: Iterable[Any] | None,
    batch_sampler: Iterable[Any] | None,
    drop_last: bool,
    generator: np.random.Generator,
) -> tuple[Any, Any]:
    """The sampler and the batch sampler of a loader, each or None, for its arguments.

    Raises:
        ValueError: they contradict each other.
    """
    line = at_line(user_line())
    if batch_size is not None and (
        isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1
    ):
        raise ValueError(f"batch_size must be a positive integer, or None, not {batch_size!r}{line}")
    given = {"batch_sampler": batch_sampler is not None, "sampler": sampler is not None, "shuffle": bool(shuffle)}
    named = [name for name, is_given in given.items() if is_given]
    if is_iterable_style(dataset):
        if named:
            raise ValueError(
                f"{named[0]} decides on an order by index, but the dataset, {type_name(dataset)}, is iterated; let its "
                f"__iter__ decide on the order{line}"
            )
        return None, None
    if batch_sampler is not None:
        others = named[1:] + ["batch_size"] * (batch_size not in (1, None)) + ["drop_last"] * drop_last
        if others:
            raise ValueError(
                f"batch_sampler decides on the samples of each batch by itself; leave out {', '.join(others)}{line}"
            )
        return getattr(batch_sampler, "sampler", None), batch_sampler
    if len(named) > 1:
        raise ValueError(f"a sampler decides on the order by itself; leave out shuffle{line}")
    if batch_size is None and drop_last:
        raise ValueError(f"drop_last is about batches, which batch_size=None does not make{line}")
    if sampler is None:
        sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
    return sampler, None if batch_size is None else BatchSampler(sampler, int(batch_size), drop_last)
