"""Fetching: the samples of a batch are taken out of a dataset and collated, in the main process or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from .collate import default_collate
from .datasets import Subset, TensorDataset, is_iterable_style


class Recipe(NamedTuple):
    """How the batches of a loader are made; what each worker is given.

    Attributes:
        dataset: the dataset.
        collate: the function that puts samples together.
        batch_size: number of samples in a batch of an iterable dataset; None for samples as they are.
        drop_last: whether a smaller last batch of an iterable dataset is dropped.
        makes_batches: whether samples are put together at all.
        start: function of the worker's number that it calls first, or None.
    """

    dataset: Any
    collate: Callable[[Any], Any]
    batch_size: int | None
    drop_last: bool
    makes_batches: bool
    start: Callable[[int], Any] | None

    @property
    def is_iterable(self) -> bool:
        """Whether the dataset has no index."""
        return is_iterable_style(self.dataset)


def fetch(recipe: Recipe, number: int, indices: Any) -> Any:
    """The batch of some samples of a dataset.

    Args:
        recipe: how it is made.
        number: number of the batch, for messages.
        indices: indices, or one index for a sample as it is.
    """
    dataset = recipe.dataset
    if not recipe.makes_batches:
        return _collated(recipe, number, _sample(dataset, number, indices))
    if recipe.collate is default_collate:
        batch = _gathered(dataset, indices)
        if batch is not None:
            return batch
    if hasattr(dataset, "__getitems__"):
        try:
            samples = dataset.__getitems__(list(indices))
        except Exception as error:
            error.add_note(f"  in one of the samples {list(indices)} of the dataset, for batch {number}")
            raise
    else:
        samples = [_sample(dataset, number, i) for i in indices]
    return _collated(recipe, number, samples)


def batches_of(recipe: Recipe) -> Iterator[Any]:
    """The batches of an iterable dataset."""
    samples = iter(recipe.dataset)
    number = 0
    while True:
        try:
            taken = list(islice(samples, recipe.batch_size or 1))
        except Exception as error:
            error.add_note(f"  in the iteration of the dataset, for batch {number}")
            raise
        if not taken or (recipe.drop_last and recipe.batch_size and len(taken) < recipe.batch_size):
            return
        yield _collated(recipe, number, taken if recipe.batch_size else taken[0])
        number += 1


def _gathered(dataset: Any, indices: Sequence[int]) -> Any:
    """The batch of a dataset of arrays, all samples at once; None for other datasets."""
    while type(dataset) is Subset:
        indices, dataset = [dataset.indices[i] for i in indices], dataset.dataset
    return dataset.gather(indices) if type(dataset) is TensorDataset else None


def _sample(dataset: Any, number: int, index: Any) -> Any:
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"  in sample {index!r} of the dataset, for batch {number}")
        raise


def _collated(recipe: Recipe, number: int, samples: Any) -> Any:
    try:
        return recipe.collate(samples)
    except Exception as error:
        error.add_note(f"  in the collate_fn of the loader, for batch {number}")
        raise
