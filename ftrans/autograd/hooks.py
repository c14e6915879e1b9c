"""Hooks: functions that see the gradient of a tensor while it is computed, and may replace it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

from ..base.source import Line, user_line

_next_id = count().__next__


class Handle:
    """Handle of a registered hook; as a context manager, it removes the hook at the end of its block."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self._hooks = hooks
        self._key = key

    def remove(self) -> None:
        """Remove the hook; calling it again has no effect."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Hooks:
    """The hooks of a leaf, or of the results of a node."""

    __slots__ = ("_functions", "_retained")

    def __init__(self) -> None:
        self._functions: dict[int, tuple[int, Callable[[Any], Any], Line | None]] = {}
        self._retained: dict[int, weakref.ref[Any]] = {}

    def add(self, x: Any, hook: Callable[[Any], Any]) -> Handle:
        """Add a hook for a tensor."""
        key = _next_id()
        self._functions[key] = (x.output, hook, user_line())
        return Handle(self._functions, key)

    def retain(self, x: Any) -> None:
        """Keep the gradient of a tensor in its `grad`."""
        if x.node is not None:
            self._retained[x.output] = weakref.ref(x)

    def retains(self, x: Any) -> bool:
        """Whether the gradient of a tensor is kept in its `grad`."""
        return self.retaining(x.output) is x

    def follow(self, x: Any, output: int) -> None:
        """A tensor that was result `output` has moved in the graph: keep its gradient at the new place."""
        if self.retaining(output) is x:
            del self._retained[output]
            x.retain_grad()

    def at(self, output: int) -> list[tuple[Callable[[Any], Any], Line | None]]:
        """The hooks of a result in their order, each with the user's line that registered it."""
        return [(hook, line) for place, hook, line in self._functions.values() if place == output]

    def retaining(self, output: int) -> Any:
        """The tensor in whose `grad` the gradient of a result is kept, or None."""
        return self._retained[output]() if output in self._retained else None
