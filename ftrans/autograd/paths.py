"""Paths: the calls that lead from a tensor to a view of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.trace import Tracer
from ..numpy.views import View
from .operations import Call, Static, filled


class Step(Static):
    """A call that leads from an array to a view of it.

    Args:
        function: what is called.
        arguments: its positional and keyword arguments, with `PLACE` for the array, which is the only one.
        index: which of several results the view is.
    """

    __slots__ = ("_arguments", "_function", "_index")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, Any], index: int | None) -> None:
        self._function = function
        self._arguments = arguments
        self._index = index

    def _key(self) -> tuple[Any, ...]:
        call = Call(self._function, *self._arguments)
        return call.key, tuple(call.numbers), self._index

    def __call__(self, x: Any) -> Any:
        args, kwargs = filled(self._arguments, x)
        result = self._function(*args, **kwargs)
        found = result if self._index is None else result[self._index]
        if isinstance(found, Tracer) and isinstance(found.memory, View):
            # Only calls whose results share memory are steps.
            found.memory.is_shared = True
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class Path(Static):
    """The calls that lead, one after the other, from a base to a view of it."""

    __slots__ = ("_steps",)

    def __init__(self, *steps: Step) -> None:
        self._steps = steps

    def __call__(self, base: Any) -> Any:
        for step in self._steps:
            base = step(base)
        return base

    def then(self, path: Path) -> Path:
        """This path, and another one from where it ends."""
        return Path(*self._steps, *path._steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self._steps == other._steps

    def __hash__(self) -> int:
        return hash(self._steps)


class Fixed(Static):
    """A function that is the same in all calls of a kind."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)


def through_path(base: Any, path: Path, change: Fixed, arguments: Any) -> Any:
    """Change a view of `base`; `arguments` are those of the change, with `PLACE` for the view."""
    args, kwargs = filled(arguments, path(base))
    return change.function(*args, **kwargs)
