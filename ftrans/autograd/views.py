"""Views: which tensor a new one shares its memory with.

A view and its base change together in memory, and so they do in the graph: an operation that changes the view becomes
one that changes the base, and the view is then read from the base again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.type_questions import is_plain
from .memory import may_be_written
from .operations import Call, mapped
from .paths import Path, Step
from .tensor import Tensor, Window


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
    """Make the result of a call a view of the tensor or array that it shares memory with, if there is one.

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
        step = step_of(function, args, kwargs, index)
        make_view(x, base, None if step is None else Path(step), is_detached)
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
    mapped(arguments, lambda x: found.append(x) if is_plain(x, np.ndarray) else None)
    return any(may_be_written(x) and np.may_share_memory(array, x) for x in found)


def step_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], index: int | None
) -> Step | None:
    """The call of a view as a step from its base; None where it depends on more than its base."""
    call = Call(function, args, kwargs)
    return Step(function, call.emptied(), index) if call.key is not None and len(call.leaves) == 1 else None


def make_view(x: Tensor, base: Tensor, path: Path | None, is_detached: bool) -> None:
    """Make a tensor a view.

    Args:
        x: the tensor.
        base: what it is a view of, perhaps a view itself.
        path: the calls that lead to it from there; None if unknown.
        is_detached: whether nothing was recorded.
    """
    memory = x.memory = base.shared_memory()
    window = base.window
    x.is_inferred = x.is_inferred or base.is_inferred
    if window is None:
        x.window = Window(base, path, memory.version, is_detached)
    else:
        path = None if path is None or window.path is None else window.path.then(path)
        x.window = Window(window.base, path, memory.version, is_detached or window.is_detached)
