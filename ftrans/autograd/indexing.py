"""Indexing of tensors, and assignment to what is chosen by an index."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..base.torch_indices import require_one_meaning
from ..base.type_questions import is_plain
from ..numpy.indexing import require_kept
from .changes import change
from .frequent import recorded_item
from .modes import current_mode
from .operations import PLACE, Call
from .paths import Path, Step
from .recording import apply
from .tensor import Tensor


def getitem(self: Tensor, index: Any) -> Any:
    """`self[index]`."""
    if not _is_basic(index):
        require_one_meaning(index)
        index = _by_places(self, _plain_index(index))
    else:
        known = recorded_item(self, index)
        if known is not None:
            return known
    return apply(operator.getitem, (self, index), {}, "Index")


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """`self[index] = value`."""
    require_kept(value, self.dtype)
    if not _is_basic(index):
        require_one_meaning(index)
    index = _plain_index(index)
    if isinstance(value, Tensor) and value.window is not None and _is_at(value, self, index):
        # `x[i] += v` has changed x through the view x[i] already, and then assigns the view to x[i].
        return
    if is_plain(value, Tensor | np.ndarray) and value.ndim:
        index = _by_places(self, index)
    change(operator.setitem, self, (PLACE, index, value), {}, "IndexPut")


_NUMBER_OR_NONE = frozenset((int, type(None)))


def _is_basic(index: Any) -> bool:
    """Whether an index is made of Python's integers and slices of them, and new axes, and may stay as it is."""
    for i in index if type(index) is tuple else (index,):
        cls = type(i)
        if cls is slice:
            ends = type(i.start) in _NUMBER_OR_NONE and type(i.stop) in _NUMBER_OR_NONE
            if not ends or type(i.step) not in _NUMBER_OR_NONE:
                return False
        elif cls is not int and i is not None and i is not Ellipsis:
            return False
    return True


def _plain_index(index: Any) -> Any:
    """An index in which a list is an array, as NumPy takes it, and an integer of NumPy or a tensor one of Python."""
    cls = type(index)
    if cls is int:
        return index
    if cls is tuple:
        return tuple([_plain_index(i) for i in index])
    if cls is slice:
        return slice(*map(_plain_index, (index.start, index.stop, index.step)))
    if cls is list and not _holds_tensor(index):
        return np.asarray(index) if index else np.zeros(0, np.intp)
    is_integer = is_plain(index, np.integer | Tensor) and not index.ndim and index.dtype.kind in "iu"
    return int(index) if is_integer else index


def _by_places(x: Tensor, index: Any) -> Any:
    """An index with the places that a mask chooses, on which alone the kind of the operation depends."""
    mask = index.array if isinstance(index, Tensor) else index
    if is_plain(mask, np.ndarray) and mask.dtype == bool and mask.ndim and mask.shape == x.shape[: mask.ndim]:
        return mask.nonzero()
    return index


def _holds_tensor(items: list[Any]) -> bool:
    return any(isinstance(i, Tensor) or (isinstance(i, list) and _holds_tensor(i)) for i in items)


def _is_at(view: Tensor, base: Tensor, index: Any) -> bool:
    window = view.window
    assert window is not None
    call = Call(operator.getitem, (base, index), {})
    if window.path is None or call.key is None or len(call.leaves) != 1 or view.memory is not base.memory:
        return False
    if window.is_detached and current_mode().records:
        # What is assigned has no gradient then.
        return False
    path = Path(Step(operator.getitem, call.emptied(), None))
    if base.window is None:
        return window.base is base and window.path == path
    return (
        window.base is base.window.base and base.window.path is not None and window.path == base.window.path.then(path)
    )


def _flat_item(x: Any, index: Any) -> Any:
    return x.flat[index]


def _set_flat_item(x: Any, index: Any, value: Any) -> None:
    x.flat[index] = value


class Flat:
    """`x.flat`: the elements in row-major order, to be read and assigned to by index."""

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __len__(self) -> int:
        return self._x.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._x.reshape(-1))

    def __getitem__(self, index: Any) -> Any:
        return apply(_flat_item, (self._x, _plain_index(index)), {}, "Index")

    def __setitem__(self, index: Any, value: Any) -> None:
        change(_set_flat_item, self._x, (PLACE, _plain_index(index), value), {}, "IndexPut")


def set_flat(self: Tensor, value: Any) -> None:
    """`self.flat = value`."""
    self.flat[:] = np.resize(value, self.size)
