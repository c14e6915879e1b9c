"""DataLoader: batches of a dataset, made in this process or in workers, and where an epoch stands."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any, Generic

import numpy as np

from ...api.call import check_flag, type_name
from ...autograd.tensor import Tensor
from ...base import tree
from ...base.cell import concrete
from ...base.source import at_line, user_line
from ...base.type_variables import Sample
from ...xla import accelerator, put_on_device
from .collate import default_collate, default_convert, is_array
from .fetching import Recipe, batches_of, fetch
from .orders import require_dataset, require_workers, samplers_for
from .pool import Pool
from .seeds import Randomness, generator_for, restore_states, states_of

# So many batches are on their way to a device before they are asked for.
_AHEAD = 2


class DataLoader(Generic[Sample]):
    """Iterate over a dataset in batches, in a new random order each epoch if wanted; with the arguments of torch.

    Args:
        dataset: a dataset with `__getitem__` and `__len__`, or one with only `__iter__`; also a list, an array, or a
            dataset of torch or of Hugging Face.
        batch_size: number of samples in a batch; None for single samples, not batches.
        shuffle: whether each epoch has a new random order.
        sampler: an iterable of indices, instead of `shuffle`.
        batch_sampler: an iterable of lists of indices, instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: number of processes that make batches; 0 makes them in this process.
        collate_fn: a function that makes a batch from a list of samples; `default_collate` by default.
        pin_memory: whether to copy batches to the accelerator before they are needed, if there is one; they are JAX
            arrays then.  On a CPU there is nothing to copy.  Tensors are in host memory, so they are not copied.
        drop_last: whether to drop a smaller last batch.
        timeout: seconds to wait for a batch from the workers; 0 for no limit.
        worker_init_fn: a function that each worker calls first, with its number.
        multiprocessing_context: how workers start: "spawn" (the default), "forkserver", or a context of
            `multiprocessing`.
        generator: a `numpy.random.Generator` or a seed, which determines orders and the seeds of workers; by default a
            seed drawn from the generator that `nn.manual_seed` seeds.
        prefetch_factor: number of batches that each worker makes in advance; 2 by default.
        persistent_workers: whether to keep workers from one epoch to the next.
        device: a device or sharding of JAX, or the name of a platform such as "gpu", to which batches are copied before
            they are needed; Tensors become JAX arrays.
        tensors: whether all arrays of batches are Tensors, as in torch, for `loss.backward()`.  By default, batches are
            Tensors if samples hold Tensors, and otherwise NumPy arrays, with which `nn.jit` and `nn.fit` compute.

    Attributes:
        dataset: the dataset.
        batch_size: as given; None with a `batch_sampler`.
        sampler: the iterable of indices; None for a dataset without `__getitem__`.
        batch_sampler: the iterable of lists of indices; None without batches, and for a dataset without `__getitem__`.

    Raises:
        ValueError: arguments contradict each other.
        TypeError: `dataset` is not a dataset, or cannot be pickled for workers.
        RuntimeError: a worker was killed or has ended, in the iteration.
        TimeoutError: no batch came within `timeout`, in the iteration.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> dataset = nn.data.TensorDataset(np.arange(5), np.arange(5) ** 2)
        >>> loader = nn.data.DataLoader(dataset, batch_size=2)
        >>> [(x.tolist(), y.tolist()) for x, y in loader]
        [([0, 1], [0, 1]), ([2, 3], [4, 9]), ([4], [16])]

    Workers are spawned, not forked, because a process that runs JAX must not be forked.  So a script with workers needs
    `if __name__ == "__main__":` around its training, and the arguments of the loader are pickled (a memory map of a
    file by its name).  In a worker, the generators of `random`, NumPy, `nn` and torch are seeded for each batch, from
    the seed of the epoch and the number of the batch; so random numbers depend neither on the number of workers nor on
    which worker makes the batch.  An error in a dataset is raised with the traceback in the worker and the index of the
    sample.  If a worker is killed, an error is raised immediately.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Randomness = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        device: Any = None,
        tensors: bool = False,
    ) -> None:
        require_dataset(dataset)
        check_flag(tensors, "DataLoader", "tensors")
        if tensors and device is not None:
            raise ValueError(
                "DataLoader was given tensors=True and a device, but Tensors live in host memory; leave out one of "
                f"them: arrays on a device are for nn.jit{at_line(user_line())}"
            )
        require_workers(num_workers, prefetch_factor, persistent_workers, timeout, multiprocessing_context)
        self.dataset = dataset
        self.num_workers = int(num_workers)
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.persistent_workers = persistent_workers
        self.device = device
        self.tensors = bool(tensors)
        self.drop_last = drop_last
        self.generator = generator_for(generator, "DataLoader")
        self.batch_size = batch_size if batch_sampler is None else None
        self.sampler, self.batch_sampler = samplers_for(
            dataset, batch_size, shuffle, sampler, batch_sampler, drop_last, self.generator
        )
        makes_batches = batch_size is not None or batch_sampler is not None
        collate = collate_fn or (default_collate if makes_batches else as_it_is)
        self._recipe = Recipe(dataset, collate, batch_size, drop_last, makes_batches, worker_init_fn)
        self._context = multiprocessing_context or "spawn"
        self._pool: Pool | None = None
        # The position: states at the start of the epoch, or None before it, and batches given of it.
        self._began: dict[str, Any] | None = None
        self._given = 0
        # The batch at which the next iteration begins.
        self._first = 0

    @property
    def collate_fn(self) -> Callable[[Any], Any]:
        """The function that makes a batch of samples."""
        return self._recipe.collate

    def __len__(self) -> int:
        """The number of batches."""
        if not self._recipe.is_iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        size = len(self.dataset)
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else math.ceil(size / self.batch_size)

    # The iteration

    def __iter__(self) -> Iterator[Any]:
        return self.begin(self._first)

    def begin(self, first: int) -> Iterator[Any]:
        """The next iteration, starting at batch number `first`; `iter(loader)` starts at 0, or where a state says."""
        self._first = 0
        self._began, self._given = self._states(), first
        seed = int(self.generator.integers(1 << 32))
        # Samplers draw when their iteration begins, so that the next epoch does not depend on how far this one gets.
        chosen = self.sampler if self.batch_sampler is None else self.batch_sampler
        order = None if chosen is None else islice(enumerate(chosen), first, None)
        return self._counted(self._made(seed, first, order), self._began)

    def _counted(self, batches: Iterator[Any], began: dict[str, Any]) -> Iterator[Any]:
        """The batches, while the loader notes how many of them were given."""
        try:
            for batch in self._ahead(batches):
                if self._began is began:
                    self._given += 1
                yield batch
        finally:
            batches.close()  # type: ignore[attr-defined]
        if self._began is began:
            self._began, self._given = None, 0

    def _ahead(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches as Tensors, or on the device, if there is one; the copies of the next ones are under way."""
        if self.tensors:
            yield from map(default_convert, batches)
            return
        device = accelerator() if self.device is None and self.pin_memory else self.device
        if device is None:
            yield from batches
            return

        def placed(x: Any) -> Any:
            if not is_array(x) or (self.device is None and isinstance(x, Tensor)):
                return x
            return put_on_device(concrete(x), device)

        waiting: deque[Any] = deque()
        for batch in batches:
            waiting.append(tree.map_leaves(placed, batch))
            if len(waiting) > _AHEAD:
                yield waiting.popleft()
        yield from waiting

    def _made(self, seed: int, first: int, order: Iterator[tuple[int, Any]] | None) -> Iterator[Any]:
        """The batches from number `first` on.

        Args:
            seed: the seed of the epoch, for workers.
            first: number of the first batch.
            order: their numbers and samples; None for an iterable dataset.
        """
        if self.num_workers:
            yield from self._from_workers(seed, first, order)
        elif order is None:
            yield from islice(batches_of(self._recipe), first, None)
        else:
            for number, indices in order:
                yield fetch(self._recipe, number, indices)

    def _from_workers(self, seed: int, first: int, order: Any) -> Iterator[Any]:
        pool = self._pool if self._pool is not None and self._pool.close.alive else None
        if pool is None:
            import multiprocessing

            context = self._context
            context = multiprocessing.get_context(context) if isinstance(context, str) else context
            pool = Pool(self._recipe, self.num_workers, context)
        if self.persistent_workers:
            self._pool = pool
        is_whole = False
        try:
            epoch = pool.begin(seed)
            if order is None:
                yield from islice(self._iterated(pool, epoch), first, None)
            else:
                yield from self._indexed(pool, epoch, first, order)
            is_whole = True
        except GeneratorExit:
            is_whole = True
            raise
        finally:
            # What was interrupted may have left a part of a message in a pipe.
            if not (is_whole and self.persistent_workers):
                pool.close()

    def _indexed(self, pool: Pool, epoch: int, first: int, order: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        """Batches of samples with an index, in order; each is made by the worker that has the fewest to make."""
        made: dict[int, Any] = {}
        asked = first
        for wanted in count(first):
            _require_current(pool, epoch)
            room = len(pool.open) * (self.prefetch_factor or 2) - (asked - wanted)
            for number, indices in islice(order, room):
                pool.ask(min(range(len(pool.open)), key=pool.open.__getitem__), number, indices)
                asked = number + 1
            if asked == wanted:
                return
            while wanted not in made:
                result = pool.next_result(self.timeout)
                made[result.number] = result.batch
            yield made.pop(wanted)

    def _iterated(self, pool: Pool, epoch: int) -> Iterator[Any]:
        """Batches of an iterable dataset, one of each worker in turn, until all of them have ended."""
        active = deque(range(len(pool.open)))
        worker_of: dict[int, int] = {}
        made: dict[int, Any] = {}
        asked = 0
        for wanted in count():
            _require_current(pool, epoch)
            while active and asked - wanted < len(pool.open) * (self.prefetch_factor or 2):
                worker_of[asked] = active[0]
                pool.ask(active[0], asked, None)
                active.rotate(-1)
                asked += 1
            if asked == wanted:
                return
            while wanted not in made:
                result = pool.next_result(self.timeout)
                made[result.number] = result
            result, worker = made.pop(wanted), worker_of.pop(wanted)
            if result.kind == "batch":
                yield result.batch
            elif worker in active:
                active.remove(worker)

    # The position

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, for a checkpoint: numbers, texts, lists and dictionaries.

        In an iteration, or after one that was left early, `load_state_dict` continues with the batch after the last
        one that was given; otherwise with the next epoch.

        Example:
            >>> from ftrans import nn
            >>> loader = nn.data.DataLoader(range(6), batch_size=2, shuffle=True, generator=0)
            >>> batches = iter(loader)
            >>> first, state = next(batches), loader.state_dict()
            >>> again = nn.data.DataLoader(range(6), batch_size=2, shuffle=True)
            >>> again.load_state_dict(state)
            >>> [x.tolist() for x in again] == [x.tolist() for x in batches]
            True
        """
        if self._began is None:
            return {**self._states(), "batch": self._first}
        return {**self._began, "batch": self._given}

    def position(self) -> dict[str, Any]:
        """The state of the next iteration, whatever was left of the present one; `load_state_dict` takes it."""
        return {**self._states(), "batch": self._first if self._began is None else 0}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where another loader of the same dataset and arguments was; see `state_dict`.

        Raises:
            ValueError: this is a loader of other batches.
        """
        mine = self._facts()
        different = [f"{name} was {state.get(name)} and is {x}" for name, x in mine.items() if state.get(name) != x]
        if different:
            raise ValueError(
                "the loader cannot continue at the same batch, because it differs from the one of the state: "
                f"{'; '.join(different)}{at_line(user_line())}"
            )
        restore_states(self._generators(), state["generators"])
        for sampler, values in zip(self._with_state(), state["samplers"], strict=True):
            sampler.load_state_dict(values)
        self._began, self._given, self._first = None, 0, state["batch"]

    def _states(self) -> dict[str, Any]:
        """What the next iteration depends on."""
        return {
            **self._facts(),
            "generators": states_of(self._generators()),
            "samplers": [copy.deepcopy(x.state_dict()) for x in self._with_state()],
        }

    def _facts(self) -> dict[str, Any]:
        """What is the same in loaders that give the same batches."""
        return {
            "size": None if self._recipe.is_iterable else len(self.dataset),
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "sampler": type(self.sampler).__name__,
            "generators_of": [type(g.bit_generator).__name__ for g in self._generators()],
            "workers": self.num_workers if self._recipe.is_iterable else None,
        }

    def _generators(self) -> list[np.random.Generator]:
        """The generators of the loader and its samplers, each once."""
        found = [self.generator, *(getattr(x, "generator", None) for x in (self.sampler, self.batch_sampler))]
        return list({id(g): g for g in found if isinstance(g, np.random.Generator)}.values())

    def _with_state(self) -> list[Any]:
        """The samplers that keep a state of their own."""
        return [x for x in (self.sampler, self.batch_sampler) if hasattr(x, "load_state_dict")]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pool": None}

    def __repr__(self) -> str:
        return (
            f"DataLoader({type_name(self.dataset)}, batch_size={self.batch_size}, "
            f"sampler={type(self.sampler).__name__}, num_workers={self.num_workers})"
        )


def _require_current(pool: Pool, epoch: int) -> None:
    """Raise if another iteration has begun with the workers of this one."""
    if pool.epoch != epoch:
        raise RuntimeError(
            "this iteration of the DataLoader has ended, since another one has begun with the same persistent workers; "
            f"use a second loader, or persistent_workers=False{at_line(user_line())}"
        )


def as_it_is(sample: Any) -> Any:
    """The sample itself."""
    return sample
