"""Values that hold an array and are more than one: eager values, such as tensors, and cells.

The tensors of `ftrans.autograd` are eager values: a program that is to run with one among its arguments is handed to
its class.  The parameters and buffers of `ftrans.nn` are cells: an operation on a cell is the operation on what it
holds.  The layers below know only the classes here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Holder:
    """Base class of what holds an array and stands for it.  Holders have `shape` and `dtype`."""

    __slots__ = ()

    def concrete(self) -> Any:
        """What it holds as a NumPy array, for looking at, or for a program that captured it and runs on arrays."""
        raise NotImplementedError


class Eager(Holder):
    """Base class of concrete values that are no plain arrays."""

    __slots__ = ()

    def is_active(self) -> bool:
        """Whether what is computed from it now is recorded, to be differentiated."""
        raise NotImplementedError

    @classmethod
    def apply_program(
        cls, program: Any, args: Sequence[Any], compiled: Callable[..., Any] | None = None, name: str | None = None
    ) -> list[Any]:
        """The results of `program`, as values of this class.

        Args:
            program: the program.
            args: arrays, numbers and values of this class.
            compiled: what runs a program on arrays, where that is not the NumPy evaluator.
            name: what the operation is called in print; as the program by default.
        """
        raise NotImplementedError

    @classmethod
    def apply_function(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function that takes arrays and traced values, with a value of this class for each array."""
        raise NotImplementedError


class Cell(Holder):
    """Base class of places that hold an array, which may be exchanged."""

    __slots__ = ()

    def read(self) -> Any:
        """What an operation computes with: an array, a traced value or a tensor."""
        raise NotImplementedError

    def recorded(self) -> Any:
        """What stands for it where operations are recorded: an eager value, or an array if it is not differentiated."""
        raise NotImplementedError

    @property
    def value(self) -> Any:
        """The array, or the traced value, that it holds."""
        raise NotImplementedError


class CellOwner:
    """Base class of objects with cells among their attributes, such as modules."""


def concrete(x: Any) -> Any:
    """An array, also of what holds one; other values as they are."""
    return x.concrete() if isinstance(x, Holder) else x


_CONTAINERS = {tuple, list, dict, slice}


def read(x: Any) -> Any:
    """Arguments with what cells hold in their place, also in tuples, lists, slices and dicts."""
    cls = type(x)
    if cls not in _CONTAINERS:
        return x.read() if isinstance(x, Cell) else x
    if cls is dict:
        return {name: read(y) for name, y in x.items()}
    if cls is slice:
        return slice(read(x.start), read(x.stop), read(x.step))
    return cls([read(y) for y in x])


def holds_cell(x: Any) -> bool:
    """Whether there is a cell among arguments, or in tuples, lists and dicts among them."""
    cls = type(x)
    if cls is tuple or cls is list:
        return any([holds_cell(y) for y in x])
    if cls is dict:
        return any([holds_cell(y) for y in x.values()])
    return isinstance(x, Cell)
