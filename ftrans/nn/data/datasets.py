"""Datasets: samples by index, or one after another.

Any object with `__getitem__` and `__len__` serves as a dataset of samples by index: lists, arrays, memory maps, and
datasets of torch and of Hugging Face.  The classes here are for those who write their own, and to put datasets
together.
"""

from __future__ import annotations

import bisect
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, Generic

import numpy as np

from ...autograd.tensor import Tensor
from ...base.source import at_line, user_line
from ...base.type_variables import Sample
from ..modules.loading import as_numpy
from .seeds import Randomness, generator_for


class Dataset(Generic[Sample]):
    """Base class of datasets whose samples have an index: override `__getitem__` and `__len__`.

    A dataset that fetches many samples at once faster than one by one also defines `__getitems__(indices)`, which
    returns a list of samples.

    Example:
        >>> from ftrans import nn
        >>> class Squares(nn.data.Dataset):
        ...     def __len__(self):
        ...         return 10
        ...     def __getitem__(self, i):
        ...         return i, i**2
        >>> for x, y in nn.data.DataLoader(Squares(), batch_size=4):
        ...     print(x, y)
        [0 1 2 3] [0 1 4 9]
        [4 5 6 7] [16 25 36 49]
        [8 9] [64 81]
    """

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__{at_line(user_line())}")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Generic[Sample]):
    """Base class of datasets whose samples come one after another: override `__iter__`.

    In a loader with several workers each of them iterates a copy; `get_worker_info` tells a copy which samples are its
    own.

    Example:
        >>> from ftrans import nn
        >>> class Lines(nn.data.IterableDataset):
        ...     def __iter__(self):
        ...         yield from ([1, 2], [3, 4], [5, 6])
        >>> [batch[0].tolist() for batch in nn.data.DataLoader(Lines(), batch_size=2)]
        [[1, 3], [5]]
    """

    def __iter__(self) -> Iterator[Sample]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__{at_line(user_line())}")

    def __add__(self, other: Any) -> ChainDataset:
        return ChainDataset([self, other])


def is_iterable_style(dataset: Any) -> bool:
    """Whether the samples of a dataset come one after another, without an index.

    A dataset that cannot be indexed is one, and those of torch and Hugging Face, which inherit a `__getitem__`.
    """
    if not hasattr(dataset, "__getitem__"):
        return True
    return any(base.__name__ == "IterableDataset" for base in type(dataset).__mro__)


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Arrays of equal length: sample `i` is the tuple of their rows `i`.

    Args:
        tensors: Tensors, or arrays of NumPy (also memory maps), JAX or torch.

    Attributes:
        tensors: the Tensors, and the others as arrays of NumPy.

    Raises:
        ValueError: the lengths differ.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> x, y = nn.data.TensorDataset(np.arange(3), np.arange(3) ** 2)[2]
        >>> print(x, y)
        2 4
    """

    def __init__(self, *tensors: Any) -> None:
        arrays: list[Any] = [x if isinstance(x, np.ndarray | Tensor) else as_numpy(x) for x in tensors]
        if not arrays or any(x.ndim == 0 for x in arrays):
            raise ValueError(f"TensorDataset takes arrays with an axis of samples{at_line(user_line())}")
        _require_equal_lengths("TensorDataset", {str(i): x for i, x in enumerate(arrays)})
        self.tensors = tuple(arrays)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([x[index] for x in self.tensors])

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        rows = np.asarray(indices)
        return list(zip(*[x[rows] for x in self.tensors], strict=True))

    def gather(self, indices: Sequence[int]) -> tuple[Any, ...]:
        """The batch of several samples, which is faster than to collate them."""
        rows = np.asarray(indices)
        found = [x[rows] for x in self.tensors]
        if not any([isinstance(x, Tensor) for x in found]):
            return tuple(map(np.asarray, found))
        return tuple([x if isinstance(x, Tensor) else Tensor.of(np.asarray(x)) for x in found])

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset):
    """Datasets of equal length side by side: sample `i` has their samples `i`, as a tuple or a dictionary.

    Args:
        datasets: the datasets, either all by position or all by name.

    Raises:
        ValueError: the lengths differ, or datasets were given by position and by name.

    Example:
        >>> from ftrans import nn
        >>> nn.data.StackDataset(image=[10, 20], label=[0, 1])[1]
        {'image': 20, 'label': 1}
    """

    def __init__(self, *datasets: Any, **named: Any) -> None:
        if bool(datasets) == bool(named):
            raise ValueError(f"StackDataset takes datasets by position, or by name, one at least{at_line(user_line())}")
        self.datasets: Any = named or datasets
        _require_equal_lengths("StackDataset", named or {str(i): x for i, x in enumerate(datasets)})

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: x[index] for name, x in self.datasets.items()}
        return tuple([x[index] for x in self.datasets])

    def __len__(self) -> int:
        parts = self.datasets.values() if isinstance(self.datasets, dict) else self.datasets
        return len(next(iter(parts)))


class ConcatDataset(Dataset):
    """Datasets one behind the other.

    Args:
        datasets: the datasets, which have samples by index.

    Attributes:
        datasets: the datasets.
        cumulative_sizes: for each of them the number of samples up to its end.

    Raises:
        ValueError: there is none.
        TypeError: one of them has no index.

    Example:
        >>> from ftrans import nn
        >>> nn.data.ConcatDataset([[1, 2], [3]])[2]
        3
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError(f"ConcatDataset takes one dataset at least{at_line(user_line())}")
        for dataset in self.datasets:
            if is_iterable_style(dataset):
                raise TypeError(
                    f"ConcatDataset takes datasets with an index, which {type(dataset).__name__} has not; "
                    f"ChainDataset chains those that are iterated{at_line(user_line())}"
                )
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> Any:
        position = _position(index, len(self))
        which = bisect.bisect_right(self.cumulative_sizes, position)
        return self.datasets[which][position - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Iterable datasets one behind the other.

    Args:
        datasets: the datasets, which are iterated in turn.

    Example:
        >>> from ftrans import nn
        >>> list(nn.data.ChainDataset([range(2), range(3)]))
        [0, 1, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class Subset(Dataset):
    """Some samples of a dataset.

    Args:
        dataset: the dataset.
        indices: the indices of the samples.

    Example:
        >>> from ftrans import nn
        >>> nn.data.Subset(["a", "b", "c"], [2, 0])[0]
        'c'
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        chosen = [self.indices[i] for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        return [self.dataset[i] for i in chosen] if fetch is None else fetch(chosen)

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Randomness = None) -> list[Subset]:
    """Divide a dataset at random into parts of given lengths, such as one for training and one for validation.

    Args:
        dataset: a dataset with `__len__`.
        lengths: the numbers of samples of the parts, whose sum is that of the dataset; or fractions, whose sum is 1:
            their parts are rounded down, and what is left goes to the first ones.
        generator: a `numpy.random.Generator` or a seed; by default that of `nn.manual_seed`.

    Returns:
        A `Subset` for each part.

    Raises:
        ValueError: the sum is neither 1 nor the length of the dataset, or a length is negative.

    Example:
        >>> from ftrans import nn
        >>> train, test = nn.data.random_split(range(10), [0.8, 0.2], generator=0)
        >>> len(train), len(test)
        (8, 2)
    """
    size = len(dataset)
    if any(x < 0 for x in lengths):
        raise ValueError(f"random_split was given a negative length: {list(lengths)}{at_line(user_line())}")
    if math.isclose(sum(lengths), 1):
        counts = [math.floor(size * x) for x in lengths]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
    elif sum(lengths) == size:
        counts = [operator.index(x) for x in lengths]  # type: ignore[arg-type]
    else:
        raise ValueError(
            f"random_split was given lengths with the sum {sum(lengths):g}, but the dataset has {size} samples; give "
            f"numbers of samples with this sum, or fractions with the sum 1{at_line(user_line())}"
        )
    order = generator_for(generator, "random_split").permutation(size).tolist()
    ends = [0, *accumulate(counts)]
    return [Subset(dataset, order[first:last]) for first, last in pairwise(ends)]


def _position(index: Any, size: int) -> int:
    """An index from 0, of one that may count from the end."""
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index {position} is beyond the {size} samples of the dataset{at_line(user_line())}")
    return position % size


def _require_equal_lengths(what: str, parts: dict[str, Any]) -> None:
    lengths = {name: len(x) for name, x in parts.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"{what} was given datasets of different lengths ({said}); each sample needs a row in all of them"
            + at_line(user_line())
        )
