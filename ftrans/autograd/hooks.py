"""Hooks: functions that see the gradient of a tensor while it is computed, and may replace it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from ..base.source import Line, at_line, user_line

if TYPE_CHECKING:
    from .tensor import Tensor

_next_id = count().__next__


class Handle:
    """What `register_hook` returns; also a context manager, at whose end the hook is removed."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self._hooks = hooks
        self._key = key

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
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
        self._retained: dict[int, weakref.ref[Tensor]] = {}

    def add(self, x: Tensor, hook: Callable[[Any], Any]) -> Handle:
        """Add a hook for a tensor."""
        key = _next_id()
        self._functions[key] = (x.output, hook, user_line())
        return Handle(self._functions, key)

    def retain(self, x: Tensor) -> None:
        """Leave the gradient of a tensor in its `grad`."""
        if x.node is not None:
            self._retained[x.output] = weakref.ref(x)

    def retains(self, x: Tensor) -> bool:
        """Whether the gradient of a tensor is left in its `grad`."""
        retained = self._retained.get(x.output)
        return retained is not None and retained() is x

    def follow(self, x: Tensor, output: int) -> None:
        """A tensor that was a result has got another place in the graph: leave its gradient there."""
        retained = self._retained.get(output)
        if retained is not None and retained() is x:
            del self._retained[output]
            x.retain_grad()

    def run(self, output: int, gradient: Any) -> Any:
        """What the hooks make of the gradient of a result, an array or a tensor; hooks run in order.

        Raises:
            RuntimeError: a hook returns something that does not fit.
        """
        from .tensor import Tensor

        # Others may hold the gradient itself, so hooks and `grad` get a copy.
        is_tensor = isinstance(gradient, Tensor)
        current: Any = gradient.clone() if is_tensor else Tensor.of(gradient.copy())
        for place, hook, line in list(self._functions.values()):
            if place == output:
                new = hook(current)
                if new is not None:
                    current = _checked(new, current, line)
        x = self._retained[output]() if output in self._retained else None
        if x is not None:
            x.add_grad(current)
        return current if is_tensor else current.array


def _checked(new: Any, current: Tensor, line: Line | None) -> Tensor:
    from .tensor import Tensor, as_tensor

    try:
        found = new if isinstance(new, Tensor) else as_tensor(new)
    except (TypeError, ValueError):
        found = None
    if found is None or found.shape != current.shape or found.dtype.kind not in "biufc":
        given = f"{type(new).__name__}" if found is None else f"a gradient of shape {found.shape}"
        raise RuntimeError(
            f"a hook returned {given} in place of a gradient of shape {current.shape}; return an array of that shape, "
            f"or None to leave the gradient as it is{at_line(line)}"
        )
    return found if found.dtype == current.dtype else found.astype(current.dtype)  # type: ignore[attr-defined,no-any-return]
