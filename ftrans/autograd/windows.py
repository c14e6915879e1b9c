"""Windows: how a tensor that is a view follows the tensor whose memory it shares.

A view and its base change together in memory, so they do in the graph: an operation that changes the view becomes one
that changes the base, and the view is then read from the base again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.trace import Tracer
from ..numpy.views import View
from .graph import may_be_written
from .operations import Call, Static, filled, mapped

if TYPE_CHECKING:
    from .tensor import Tensor


class Step(Static):
    """A call that leads from an array to a view of it.

    Args:
        call: the call; its only array is the one that is viewed.
        index: which of several results the view is.
    """

    __slots__ = ("_arguments", "_function", "_index", "_key")

    def __init__(self, call: Call, index: int | None) -> None:
        self._function = call.function
        self._arguments = call.emptied()
        self._index = index
        self._key = (call.key, tuple(call.numbers), index)

    def __call__(self, x: Any) -> Any:
        args, kwargs = filled(self._arguments, x)
        result = self._function(*args, **kwargs)
        found = result if self._index is None else result[self._index]
        if isinstance(found, Tracer) and isinstance(found.memory, View):
            # Only calls whose results share memory are steps.
            found.memory.is_shared = True
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Path(Static):
    """The calls that lead, one after the other, from a base to a view of it."""

    __slots__ = ("_steps",)

    def __init__(self, *steps: Step) -> None:
        self._steps = steps

    def __call__(self, base: Any) -> Any:
        for step in self._steps:
            base = step(base)
        return base

    def then(self, step: Step) -> Path:
        """This path, and one step more."""
        return Path(*self._steps, step)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self._steps == other._steps

    def __hash__(self) -> int:
        return hash(self._steps)


class Window:
    """What makes a tensor a view.

    Attributes:
        base: the tensor that it is a view of, which is none itself.
        path: how one gets from the base to the view; None where that is not known.
        version: the version of the memory in which the graph last read the view from its base.
        is_detached: whether the view has no part in the graph of its base.
    """

    __slots__ = ("base", "is_detached", "path", "version")

    def __init__(self, base: Tensor, path: Path | None, version: int, is_detached: bool) -> None:
        self.base = base
        self.path = path
        self.version = version
        self.is_detached = is_detached


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


def enter_view(
    x: Tensor,
    array: np.ndarray[Any, Any],
    tensors: Sequence[Tensor],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    index: int | None,
    is_detached: bool,
) -> None:
    """Note of the result of a call what it shares its memory with, if that is another tensor or a plain array.

    Args:
        x: the result.
        array: the result, as NumPy returned it.
        tensors: the tensors among the arguments.
        function: what was called.
        args: its arguments.
        kwargs: its keyword arguments.
        index: which of several results it is.
        is_detached: whether nothing was recorded.
    """
    base = _base_of(array, tensors)
    if base is not None:
        _make_view(x, base, _step(function, args, kwargs, index), is_detached)
    elif (array.base is not None or index is not None) and _is_lent(array, (args, kwargs)):
        x.shared_memory().lend(array)


def _base_of(array: np.ndarray[Any, Any], tensors: Sequence[Tensor]) -> Tensor | None:
    """The tensor of which a result is a view."""
    for x in tensors:
        if array is x.array or (array.base is not None and np.may_share_memory(array, x.array)):
            return x
    return None


def _is_lent(array: np.ndarray[Any, Any], arguments: Any) -> bool:
    """Whether a result is a view of a plain array among the arguments, which its owner may write to."""
    found: list[Any] = []
    mapped(arguments, lambda x: found.append(x) if isinstance(x, np.ndarray) else None)
    return any(may_be_written(x) and np.may_share_memory(array, x) for x in found)


def _step(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], index: int | None
) -> Step | None:
    """The call of a view as a step from its base; None where it depends on more than its base."""
    call = Call(function, args, kwargs)
    return Step(call, index) if call.key is not None and len(call.leaves) == 1 else None


def _make_view(x: Tensor, base: Tensor, step: Step | None, is_detached: bool) -> None:
    memory = x.memory = base.shared_memory()
    window = base.window
    x.is_inferred = x.is_inferred or base.is_inferred
    if window is None:
        path = None if step is None else Path(step)
        x.window = Window(base, path, memory.version, is_detached)
    else:
        path = None if step is None or window.path is None else window.path.then(step)
        x.window = Window(window.base, path, memory.version, is_detached or window.is_detached)
