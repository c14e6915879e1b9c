"""Data: batches of arrays, from any source that a training loop accepts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...xla import is_jax, this_process
from ..data import DataLoader, Dataset, DistributedSampler, IterableDataset, default_collate
from ..data.collate import is_array
from ..init import generator
from ..modules.loading import as_numpy

# What a loop may be given, for messages.
_KINDS = (
    "nn.batches(x, y, batch_size=...), an nn.data.DataLoader, a list of batches, a DataLoader of torch, or a function "
    "that makes an iterator, such as a generator function"
)


class Batches:
    """Arrays, cut into batches along axis 0; made by `nn.batches`.

    Each iteration gives all batches, in a new random order if they are shuffled.

    Attributes:
        epoch: number of the next iteration, from 0; may be set.  Together with the seed it determines the order.
        seed: the seed.
    """

    def __init__(
        self,
        arrays: Any,
        batch_size: int,
        shuffle: bool,
        seed: int | None,
        drop_last: bool,
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        self._is_dict = isinstance(arrays, dict)
        self._names = list(arrays) if self._is_dict else list(range(len(arrays)))
        self._arrays = [_indexable(arrays[name]) for name in self._names]
        self._seed_was_given = seed is not None
        self.seed = int(generator().integers(1 << 32)) if seed is None else seed
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.shard = shard
        self.epoch = 0
        lengths = [len(x) for x in self._arrays]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"batches was given arrays of the lengths {', '.join(map(str, lengths))}; each sample needs a row in "
                f"all of them{at_line(user_line())}"
            )
        self.size = lengths[0]
        if len(self) == 0:
            raise ValueError(
                f"{self.size} samples make no batch of {batch_size}"
                + ("; remove drop_last=True, or use smaller batches" if drop_last and self.size else "")
                + at_line(user_line())
            )
        self._require_equal_shares()

    def _require_equal_shares(self) -> None:
        """Raise unless each process gets equally many samples of each batch."""
        count = self.shard[1]
        rest = 0 if self.drop_last else self.size % self.batch_size
        if self.batch_size % count or rest % count:
            what = f"batches of {self.batch_size}" if self.batch_size % count else f"the last batch, of {rest},"
            raise ValueError(
                f"{what} cannot be divided equally among {count} processes; "
                + ("give a multiple" if self.batch_size % count else "write drop_last=True, or leave samples out")
                + at_line(user_line())
            )

    def __len__(self) -> int:
        """The number of batches."""
        return self.size // self.batch_size if self.drop_last else -(-self.size // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        return self.begin(0)

    def begin(self, first: int) -> Iterator[Any]:
        """The next iteration, starting at batch number `first`."""
        epoch, self.epoch = self.epoch, self.epoch + 1
        return self._batches(epoch, first)

    def _batches(self, epoch: int, first: int) -> Iterator[Any]:
        order = np.random.default_rng([self.seed, epoch]).permutation(self.size) if self.shuffle else None
        for i in range(first, len(self)):
            begin, end = i * self.batch_size, min((i + 1) * self.batch_size, self.size)
            index, share = self.shard[0], (end - begin) // self.shard[1]
            place: Any = slice(begin + index * share, begin + (index + 1) * share)
            if order is not None:
                place = order[place]
            parts = [x[place] for x in self._arrays]
            yield dict(zip(self._names, parts, strict=True)) if self._is_dict else tuple(parts)

    def position(self) -> dict[str, Any]:
        """Numbers that determine the next iteration, for a checkpoint."""
        return {
            "epoch": self.epoch,
            "seed": self.seed,
            "size": self.size,
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
        }

    def restore(self, position: Mapping[str, Any]) -> None:
        """Continue with the iteration for which `position()` was called.

        Raises:
            ValueError: these are other batches.
        """
        mine = self.position()
        if not self._seed_was_given:
            mine["seed"] = position.get("seed")
        different = [
            f"{name} was {position.get(name)} and is {mine[name]}"
            for name in ("size", "batch_size", "shuffle", "drop_last", "seed")
            if position.get(name) != mine[name]
        ]
        if different:
            raise ValueError(
                "the training cannot continue at the same batch, because these batches differ from those of the "
                f"checkpoint: {'; '.join(different)}{at_line(user_line())}"
            )
        self.epoch, self.seed = position["epoch"], position["seed"]

    def __repr__(self) -> str:
        return f"Batches({self.size} samples, batch_size={self.batch_size}, shuffle={self.shuffle}, seed={self.seed})"


def batches(
    *arrays: Any,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int | None = None,
    drop_last: bool = False,
    shard: tuple[int, int] | None = None,
) -> Batches:
    """Cut arrays into batches along axis 0, for `nn.fit` or your own loop.

    Args:
        arrays: arrays of equal length, such as inputs and targets; or one dictionary of arrays.
        batch_size: number of samples in a batch; the last batch has the remaining ones.
        shuffle: whether to use a new random order in each iteration.
        seed: an integer that determines the orders; by default drawn from the generator that `nn.manual_seed` seeds.
        drop_last: whether to drop a last batch that is smaller.
        shard: `(index, count)`: each batch is divided into `count` equal parts, of which these batches are number
            `index`, from 0.  By default each process has its part of the batches, in the order of the processes; seed
            and arrays must be the same in all of them.  `(0, 1)` keeps batches whole, as for arrays that a process has
            read for itself.

    Returns:
        An iterable of tuples of NumPy arrays (or of dictionaries), which can be iterated again and again.  `len` is the
        number of batches; the attribute `epoch` is the number of the next iteration.

    Raises:
        ValueError: the lengths differ, there is no batch, or a batch cannot be divided equally.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> data = nn.batches(np.arange(5), np.arange(5) ** 2, batch_size=2, shuffle=False)
        >>> [(x.tolist(), y.tolist()) for x, y in data]
        [([0, 1], [0, 1]), ([2, 3], [4, 9]), ([4], [16])]
    """
    if not arrays:
        raise ValueError(f"batches takes at least one array{at_line(user_line())}")
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise ValueError(f"batch_size must be a positive integer, not {batch_size!r}{at_line(user_line())}")
    given: Any = arrays
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        given = dict(arrays[0])
    return Batches(given, int(batch_size), shuffle, seed, drop_last, _shard(shard))


def _shard(given: Any) -> tuple[int, int]:
    """The part of each batch that is wanted, and the number of parts."""
    if given is None:
        here = this_process()
        return here.index, here.count
    is_pair = isinstance(given, tuple) and len(given) == 2 and all([isinstance(x, int | np.integer) for x in given])
    if not is_pair or not 0 <= given[0] < given[1]:
        raise ValueError(
            f"shard is a pair (index, count) of integers, with 0 <= index < count, not {given!r}{at_line(user_line())}"
        )
    return int(given[0]), int(given[1])


class Source:
    """The batches of a training or a validation, epoch by epoch.

    Args:
        data: the user's argument.
        what: name of the argument, for messages.
        epochs: number of iterations.
        most: maximum number of batches in an epoch; None for all.
    """

    def __init__(self, data: Any, what: str, epochs: int, most: int | None = None) -> None:
        self.what = what
        self._data = data
        self._most = most
        self._is_iterator = False
        # A step may still read a batch when the next one is asked for, so a generator must not write into its memory.
        self._copies = not (isinstance(data, Batches | list | tuple) or _makes_new_arrays(data))
        if _is_dataset(data):
            raise TypeError(
                f"{what} is a dataset of type {type(data).__name__}, which gives samples, not batches; write "
                "nn.data.DataLoader(dataset, batch_size=...), or batch_size=None if its items are batches already"
                + at_line(user_line())
            )
        if is_array(data) or (isinstance(data, tuple) and data and all(map(is_array, data))):
            raise TypeError(
                f"{what} is an array or a tuple of arrays, not batches of them; write "
                f"nn.batches(x, y, batch_size=...){at_line(user_line())}"
            )
        if callable(data) and not hasattr(data, "__iter__"):
            self._takes_epoch = _takes_epoch(data)
            return
        if not isinstance(data, Iterable) or isinstance(data, str | bytes | Mapping):
            raise TypeError(f"{what} is {type(data).__name__}; it may be {_KINDS}{at_line(user_line())}")
        self._is_iterator = isinstance(data, Iterator)
        if self._is_iterator and epochs > 1 and most is None:
            raise TypeError(
                f"{what} is {type(data).__name__}, an iterator, which is used up after the first of {epochs} epochs; "
                f"give {_KINDS} (the function itself, not its result), or, if it never ends, "
                f"steps_per_epoch{at_line(user_line())}"
            )

    @property
    def length(self) -> int | None:
        """The number of batches in an epoch, if it is known in advance."""
        try:
            length = None if callable(self._data) and not hasattr(self._data, "__len__") else len(self._data)
        except TypeError:
            length = None
        return length if self._most is None else self._most if length is None else min(length, self._most)

    @property
    def shares(self) -> int | None:
        """The number of processes that a batch is divided among, if it is known."""
        if isinstance(self._data, DataLoader) and isinstance(self._data.sampler, DistributedSampler):
            return self._data.sampler.num_replicas
        return self._data.shard[1] if isinstance(self._data, Batches) else None

    def position(self) -> dict[str, Any] | None:
        """Numbers that determine the next epoch, for a checkpoint; None if the data has none."""
        return self._data.position() if isinstance(self._data, Batches | DataLoader) else None

    def facts(self) -> dict[str, Any]:
        """What is the same in all processes, by name."""
        given = self._data.position() if isinstance(self._data, Batches) else {}
        position = {f"{name} of {self.what}": x for name, x in given.items()}
        return {f"the number of batches in {self.what}": self.length, **position}

    def restore(self, position: Mapping[str, Any] | None) -> None:
        """Continue with the epoch for which `position()` was called."""
        if position is None:
            return
        if isinstance(self._data, Batches):
            self._data.restore(position)
        elif isinstance(self._data, DataLoader):
            self._data.load_state_dict(position)

    def begin(self, epoch: int, first: int = 0, consumed: int = 0) -> Iterator[Any]:
        """The batches of an epoch, numbered from 1, starting at batch number `first`.

        Args:
            epoch: number of the epoch.
            first: number of its batches to skip.
            consumed: number of batches of earlier epochs that an iterator, which cannot be restarted, must skip as
                well.
        """
        end = None if self._most is None else max(self._most - first, 0)
        if isinstance(self._data, Batches):
            found = self._data.begin(first)
        elif isinstance(self._data, DataLoader):
            found = self._data.begin(first) if first else iter(self._data)
        else:
            made = self._made(epoch)
            found = islice(iter(made), (consumed if self._is_iterator else 0) + first, None)
        is_empty = True
        for batch in islice(found, end):
            is_empty = False
            yield as_arrays(batch, self.what, self._copies)
        if is_empty and not first:
            raise ValueError(
                f"{self.what} had no batch in epoch {epoch}; "
                + (
                    "an iterator is used up once it has ended: "
                    if self._is_iterator or epoch > 1
                    else "an epoch needs at least one: "
                )
                + f"give {_KINDS}{at_line(user_line())}"
            )

    def _made(self, epoch: int) -> Any:
        if not callable(self._data) or hasattr(self._data, "__iter__"):
            return self._data
        made = self._data(epoch) if self._takes_epoch else self._data()
        if not isinstance(made, Iterable):
            raise TypeError(
                f"the function given as {self.what} returned {type(made).__name__}, not an iterator of batches"
                + at_line(user_line())
            )
        return made


def _is_dataset(data: Any) -> bool:
    """Whether something gives samples one by one: a dataset of ours, of torch or of Hugging Face."""
    if isinstance(data, Dataset | IterableDataset):
        return True
    packages = [base.__module__.partition(".")[0] for base in type(data).__mro__ if base.__name__.endswith("Dataset")]
    return any(name in ("torch", "datasets") for name in packages)


def _makes_new_arrays(data: Any) -> bool:
    """Whether each batch of a loader has memory of its own."""
    return isinstance(data, DataLoader) and (data.num_workers > 0 or data.collate_fn is default_collate)


def _takes_epoch(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


# Arrays of batches


def as_arrays(batch: Any, what: str, copies: bool) -> Any:
    """A batch as a tuple or dictionary of NumPy or JAX arrays."""
    if isinstance(batch, Mapping):
        return {str(name): _converted(x, what, copies) for name, x in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple([_converted(x, what, copies) for x in batch])
    return (_converted(batch, what, copies),)


def _converted(x: Any, what: str, copies: bool = False) -> Any:
    if type(x) is np.ndarray or is_jax(x):
        array = x
    elif isinstance(x, Mapping):
        return {name: _converted(y, what, copies) for name, y in x.items()}
    elif isinstance(x, tuple | list):
        parts = [_converted(y, what, copies) for y in x]
        return tuple(parts) if not hasattr(x, "_fields") else type(x)(*parts)
    else:
        array = as_numpy(x)
    if array.dtype.kind not in "biufcV":
        raise TypeError(
            f"{what} has a batch with {type(x).__name__} of {array.dtype} in it, where numbers are expected; encode it "
            f"as numbers, or leave it out{at_line(user_line())}"
        )
    return np.array(array) if copies and not is_jax(array) else array


def _indexable(x: Any) -> Any:
    """The array that batches are cut from."""
    if isinstance(x, np.ndarray):
        return x
    return _converted(x, "batches") if is_array(x) else np.asarray(x)


class PlacedBatch:
    """A batch on a mesh of devices.

    Attributes:
        arrays: its arrays, in a tuple or dictionary.
        mask: which samples count; None if all do.
        samples: how many do, in all processes.
    """

    __slots__ = ("arrays", "mask", "samples")

    def __init__(self, arrays: Any, mask: Any, samples: int) -> None:
        self.arrays = arrays
        self.mask = mask
        self.samples = samples


def leaves_of(batch: Any) -> Iterator[Any]:
    """The arrays of a batch, in order."""
    if isinstance(batch, PlacedBatch):
        batch = batch.arrays
    if isinstance(batch, Mapping):
        batch = batch.values()
    if isinstance(batch, tuple | list) or not hasattr(batch, "dtype"):
        for part in batch:
            yield from leaves_of(part)
    else:
        yield batch


def samples_in(batch: Any) -> int:
    """The number of samples in a batch: the length of its first array."""
    if isinstance(batch, PlacedBatch):
        return batch.samples
    for x in leaves_of(batch):
        if x.ndim:
            return int(x.shape[0])
    return 1


def is_filled_up(batch: Any) -> bool:
    """Whether some samples of a batch do not count."""
    return isinstance(batch, PlacedBatch) and batch.samples != samples_in(batch.arrays)
