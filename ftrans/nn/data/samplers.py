"""Samplers: the order in which the samples of a dataset are used.

A sampler gives indices each time that it is iterated, and a batch sampler lists of them.  Any iterable serves as one.
Random samplers have a generator each, of which an iteration draws one seed when it begins: a loader keeps its state
from before, so that an order can be given again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic

import numpy as np

from ...base.source import at_line, user_line
from ...base.type_variables import Sample
from ...xla import this_process
from .seeds import Randomness, generator_for


class Sampler(Generic[Sample]):
    """Base class of samplers: override `__iter__`, which gives indices, and `__len__`.

    A sampler with a state of its own, beside a `generator`, defines `state_dict` and `load_state_dict`, which a loader
    calls to continue in the middle of an epoch.

    Example:
        >>> from ftrans import nn
        >>> class Backwards(nn.data.Sampler):
        ...     def __init__(self, dataset):
        ...         self.dataset = dataset
        ...     def __iter__(self):
        ...         return iter(range(len(self.dataset) - 1, -1, -1))
        ...     def __len__(self):
        ...         return len(self.dataset)
        >>> data = [10, 20, 30]
        >>> [x.tolist() for x in nn.data.DataLoader(data, batch_size=2, sampler=Backwards(data))]
        [[30, 20], [10]]
    """

    def __iter__(self) -> Iterator[Sample]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__{at_line(user_line())}")


class SequentialSampler(Sampler):
    """The indices of a dataset in order.

    Args:
        data_source: the dataset.

    Example:
        >>> from ftrans import nn
        >>> list(nn.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices of a dataset in random order, a new one each time.

    Args:
        data_source: the dataset.
        replacement: whether an index may come several times.
        num_samples: number of indices; by default all.  Without replacement, a larger number gives the dataset again,
            in another order.
        generator: a `numpy.random.Generator` or a seed; by default a seed of the generator of `nn.manual_seed`.

    Raises:
        ValueError: there is no sample, or `num_samples` is not positive.

    Example:
        >>> from ftrans import nn
        >>> sorted(nn.data.RandomSampler("abcd", generator=0))
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Randomness = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else _count(num_samples, "RandomSampler")
        if len(data_source) == 0:
            raise ValueError(f"RandomSampler was given a dataset without samples{at_line(user_line())}")
        self.generator = generator_for(generator, "RandomSampler")

    def __iter__(self) -> Iterator[int]:
        return self._drawn(_of_one_iteration(self.generator))

    def _drawn(self, generator: np.random.Generator) -> Iterator[int]:
        size, left = len(self.data_source), self.num_samples
        if self.replacement:
            yield from generator.integers(size, size=left).tolist()
            return
        while left > 0:
            yield from generator.permutation(size)[:left].tolist()
            left -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in random order, a new one each time.

    Args:
        indices: the indices.
        generator: a `numpy.random.Generator` or a seed; by default a seed of the generator of `nn.manual_seed`.

    Example:
        >>> from ftrans import nn
        >>> sorted(nn.data.SubsetRandomSampler([3, 1, 4], generator=0))
        [1, 3, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Randomness = None) -> None:
        self.indices = indices
        self.generator = generator_for(generator, "SubsetRandomSampler")

    def __iter__(self) -> Iterator[int]:
        order = _of_one_iteration(self.generator).permutation(len(self.indices)).tolist()
        return iter([self.indices[i] for i in order])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices that are drawn with given weights, as to balance classes.

    Args:
        weights: a weight for each sample, not negative; they need not sum to 1.
        num_samples: number of indices.
        replacement: whether an index may come several times.
        generator: a `numpy.random.Generator` or a seed; by default a seed of the generator of `nn.manual_seed`.

    Raises:
        ValueError: weights are negative, not finite or all zero, or more indices are drawn without replacement than
            have a weight.

    Example:
        >>> from ftrans import nn
        >>> list(nn.data.WeightedRandomSampler([0, 3, 0], 4, generator=0))
        [1, 1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Randomness = None
    ) -> None:
        self.weights = np.asarray(weights, np.float64)
        self.num_samples = _count(num_samples, "WeightedRandomSampler")
        self.replacement = replacement
        total = self.weights.sum() if self.weights.ndim == 1 else math.nan
        if not np.isfinite(total) or total <= 0 or (self.weights < 0).any():
            raise ValueError(
                f"weights are one finite number for each sample, not negative and not all zero{at_line(user_line())}"
            )
        if not replacement and np.count_nonzero(self.weights) < self.num_samples:
            raise ValueError(
                f"{np.count_nonzero(self.weights)} samples have a weight, of which {self.num_samples} cannot be drawn "
                f"without replacement{at_line(user_line())}"
            )
        self.generator = generator_for(generator, "WeightedRandomSampler")

    def __iter__(self) -> Iterator[int]:
        shares = self.weights / self.weights.sum()
        generator = _of_one_iteration(self.generator)
        return iter(generator.choice(len(shares), self.num_samples, replace=self.replacement, p=shares).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of the indices that a sampler gives.

    Args:
        sampler: any iterable of indices.
        batch_size: number of indices in a list; the last list has the remaining ones.
        drop_last: whether to drop a last list that is smaller.

    Example:
        >>> from ftrans import nn
        >>> list(nn.data.BatchSampler(range(5), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = _count(batch_size, "BatchSampler", "batch_size")
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        return self._batches(iter(self.sampler))

    def _batches(self, indices: Iterator[Any]) -> Iterator[list[Any]]:
        batch: list[Any] = []
        for index in indices:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


class DistributedSampler(Sampler):
    """The indices of one of several processes that train together, each on its part of the dataset.

    Args:
        dataset: the dataset.
        num_replicas: number of processes; by default that of `ft.initialize_processes`.
        rank: number of this process, from 0; by default that of `ft.initialize_processes`.
        shuffle: whether the order is random.
        seed: the seed, the same in all processes.
        drop_last: whether samples that the processes cannot share evenly are dropped; otherwise the first ones are
            given again.

    Attributes:
        epoch: number of the next iteration, from 0, which decides on the order; it counts on by itself.

    Raises:
        ValueError: `rank` is not among the processes.

    Example:
        >>> from ftrans import nn
        >>> list(nn.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        here = this_process()
        self.dataset = dataset
        self.num_replicas = here.count if num_replicas is None else num_replicas
        self.rank = here.index if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"rank is {self.rank}, but the processes are numbered from 0 to {self.num_replicas - 1}"
                + at_line(user_line())
            )
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Give the order of an epoch next."""
        self.epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """What decides on the next order."""
        return {"epoch": self.epoch, "seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue with what `state_dict` returned."""
        self.epoch, self.seed = state["epoch"], state["seed"]

    def __iter__(self) -> Iterator[int]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        size, total = len(self.dataset), len(self) * self.num_replicas
        order = np.random.default_rng([self.seed, epoch]).permutation(size) if self.shuffle else np.arange(size)
        return iter(np.resize(order, total)[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        size = len(self.dataset)
        return size // self.num_replicas if self.drop_last else -(-size // self.num_replicas)


def _of_one_iteration(generator: np.random.Generator) -> np.random.Generator:
    """The generator of one iteration; what is drawn from it leaves the given one as it is."""
    return np.random.default_rng(int(generator.integers(1 << 63)))


def _count(given: Any, of: str, what: str = "num_samples") -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        raise ValueError(f"{what} of {of} must be a positive integer, not {given!r}{at_line(user_line())}")
    return int(given)
