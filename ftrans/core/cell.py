"""Cell: a place that holds an array, which may be exchanged for another one.

The parameters and buffers of `ftrans.nn` are such places.  The layers below know only this class: an operation on a
cell is the operation on what it holds.
"""

from __future__ import annotations

from typing import Any


class Cell:
    """Base class of places that hold an array.  They have `shape` and `dtype`."""

    __slots__ = ()

    def read(self) -> Any:
        """What an operation computes with: an array, a traced value or a tensor."""
        raise NotImplementedError

    def concrete(self) -> Any:
        """What it holds as a NumPy array, for a program that captured the cell and runs on arrays."""
        raise NotImplementedError

    def recorded(self) -> Any:
        """What stands for it where operations are recorded: an eager value, or an array if it is not differentiated."""
        raise NotImplementedError

    @property
    def value(self) -> Any:
        """The array, or the traced value, that it holds."""
        raise NotImplementedError


_CONTAINERS = {tuple, list, dict, slice}


def read(x: Any) -> Any:
    """Arguments with what cells hold in their place, also in tuples, lists, slices and dicts."""
    cls = x.__class__
    if cls not in _CONTAINERS:
        return x.read() if isinstance(x, Cell) else x
    if cls is dict:
        return {name: read(y) for name, y in x.items()}
    if cls is slice:
        return slice(read(x.start), read(x.stop), read(x.step))
    return cls([read(y) for y in x])


def holds_cell(x: Any) -> bool:
    """Whether there is a cell among arguments, or in tuples, lists and dicts among them."""
    cls = x.__class__
    if cls is tuple or cls is list:
        return any([holds_cell(y) for y in x])
    if cls is dict:
        return any([holds_cell(y) for y in x.values()])
    return isinstance(x, Cell)
