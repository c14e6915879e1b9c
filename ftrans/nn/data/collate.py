"""Collating: several samples become one batch, of Tensors where they hold Tensors, of NumPy's arrays elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...api.call import type_name
from ...autograd.creation import sharing
from ...autograd.tensor import Tensor
from ...base import tree
from ...base.cell import Holder
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...xla import is_jax
from ..modules.loading import as_numpy

_PADDING = "give the loader a collate_fn, a function of a list of samples, that makes them equal"


def default_collate(batch: Sequence[Any]) -> Any:
    """Put samples together to one batch.

    Args:
        batch: the samples, all of one structure.

    Returns:
        An array with a first axis of samples for arrays (of NumPy, JAX, torch or this library) and numbers; a list of
        strings; for tuples, named tuples, lists and dictionaries the same of batches of their parts.  If the samples
        hold a Tensor, all of these arrays are Tensors, otherwise all are of NumPy.  Dtypes are those of the samples:
        int64, float64 and bool for Python's numbers.

    Raises:
        ValueError: the samples differ in shape, length or names.
        TypeError: a sample has a part that is none of these.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.data.default_collate([(np.zeros(2), 3), (np.ones(2), 4)])
        (array([[0., 0.],
               [1., 1.]]), array([3, 4]))
        >>> nn.data.default_collate([(nn.data.default_convert(np.zeros(2)), 3)])
        (tensor([[0., 0.]]), tensor([3]))
    """
    tensors: list[Tensor] = []
    collated = _collated(batch, "", tensors)
    if not tensors:
        return collated
    # Nothing else sees the memory of new arrays, so that nobody has to watch it.
    return tree.map_leaves(lambda x: Tensor.of(x) if is_plain(x, np.ndarray) else x, collated)


def default_convert(data: Any) -> Any:
    """Exchange arrays for Tensors.

    Args:
        data: an array (of NumPy, JAX, torch or this library), or tuples, named tuples, lists and dictionaries of them.

    Returns:
        The same with a Tensor for each array; those of NumPy share their memory with it.  Python's numbers, strings and
        other values stay what they are.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> nn.data.default_convert({"x": np.ones(2), "name": "a"})
        {'x': tensor([1., 1.]), 'name': 'a'}
    """
    return tree.map_leaves(_converted, data)


def _converted(x: Any) -> Any:
    if isinstance(x, Tensor) or not (is_array(x) or is_plain(x, np.generic)):
        return x
    array = as_numpy(x)
    return sharing(array) if array.dtype.kind in "biufcV" else x


def _collated(samples: Sequence[Any], where: str, tensors: list[Tensor]) -> Any:
    """The batch of samples; one of the Tensors in each place is added to `tensors`."""
    first = samples[0]
    if is_array(first) or hasattr(first, "__array__"):
        return _stacked(samples, where, tensors)
    if isinstance(first, bool | int | float | complex):
        return np.array(samples)
    if isinstance(first, str | bytes):
        return list(samples)
    if isinstance(first, Mapping):
        if any(not isinstance(x, Mapping) or x.keys() != first.keys() for x in samples):
            raise _unequal("the names of dictionaries", [list(x) for x in samples], where)
        return {name: _collated([x[name] for x in samples], f"{where}[{name!r}]", tensors) for name in first}
    if isinstance(first, tuple | list):
        lengths = [len(x) for x in samples]
        if len(set(lengths)) > 1:
            raise _unequal("the lengths of sequences", lengths, where)
        parts = [_collated(column, f"{where}[{i}]", tensors) for i, column in enumerate(zip(*samples, strict=True))]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return tuple(parts) if isinstance(first, tuple) else parts
    raise TypeError(
        f"default_collate was given samples with {type_name(first)}{_at(where)}; it puts together arrays, numbers, "
        "strings, and tuples, lists and dictionaries of them. Leave it out of the samples, or give the loader a "
        f"collate_fn, a function of a list of samples{at_line(user_line())}"
    )


def is_array(x: Any) -> bool:
    """Whether something is an array of any library."""
    return isinstance(x, np.ndarray | Holder) or is_jax(x) or (hasattr(x, "detach") and hasattr(x, "dtype"))


def _stacked(samples: Sequence[Any], where: str, tensors: list[Tensor]) -> Any:
    found = [x for x in samples if isinstance(x, Tensor)]
    tensors += found[:1]
    # Samples that require a gradient get it from the batch.
    arrays = samples if any([x.is_active() for x in found]) else [as_numpy(x) for x in samples]
    try:
        return np.stack(arrays)
    except ValueError:
        raise _unequal("arrays", [x.shape for x in arrays], where) from None


def _unequal(what: str, given: Sequence[Any], where: str) -> ValueError:
    different = next(i for i, x in enumerate(given) if x != given[0])
    return ValueError(
        f"{what}{_at(where)} of the samples of a batch differ: {given[0]} in the first, {given[different]} in number "
        f"{different}; {_PADDING}{at_line(user_line())}"
    )


def _at(where: str) -> str:
    return f" at {where}" if where else ""
