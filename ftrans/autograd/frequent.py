"""Frequent calls: kinds of calls on tensors that have been recorded before, with all that recording one more needs.

A kind is known by the function, by the types of the tensors and which of them require a gradient, and by what else is
given, as long as that is numbers, slices, flags and tuples of these.  Its result is one array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from ..base.floating_point import end_sending, send_warnings
from ..base.observe import current_observer
from ..base.source import user_line
from .memory import Memory, Watched
from .modes import current_mode
from .operation_node import OperationNode
from .operations import MOST_INTEGER, PLACE, SCALARS, Operation
from .paths import Path, Step
from .tensor import Tensor
from .tracing import current_notes
from .views import make_view

_MOST = 10_000
# Arguments that stand for themselves in a key.
_ITEMS = frozenset((bool, type(None), EllipsisType, str, type))
_NO_OPTIONS: dict[str, Any] = {}


class Frequent:
    """One kind of call, with numbers that are known or are arguments of its operation.

    Args:
        function: what is called.
        operation: what it computes.
        active: which of the tensors require a gradient.
    """

    __slots__ = ("_active", "_derivative", "_function", "_is_new", "_name", "_path", "_takes_numbers", "_type")

    def __init__(self, function: Callable[..., Any], operation: Operation, active: Sequence[bool]) -> None:
        numbers = (False,) * (len(operation.program.inputs) - len(active))
        self._function = function
        self._name = operation.name
        self._takes_numbers = operation.takes_numbers
        self._is_new = operation.makes_array
        self._derivative = operation.derivative((*active, *numbers))
        self._type = self._derivative.out_types[0]
        self._active = tuple([i for i, is_active in enumerate(active) if is_active])
        # What leads to a view; None until there is one, or where it depends on numbers.
        self._path: Path | None = None

    def record(
        self, tensors: Sequence[Tensor], values: Sequence[Any], kwargs: dict[str, Any], numbers: Sequence[Any]
    ) -> Tensor:
        """The result of one more call, with its node.

        Args:
            tensors: the tensors among its arguments.
            values: its positional arguments, with arrays for tensors.
            kwargs: its keyword arguments.
            numbers: the numbers among its arguments.
        """
        if self._is_new:
            token = send_warnings()
            try:
                array = self._function(*values, **kwargs)
            finally:
                end_sending(token)
        else:
            # What may be a view computes nothing that could be warned of.
            array = self._function(*values, **kwargs)
        result = Tensor(array, self._type)
        derivative = self._derivative
        operands: Sequence[Any] = tensors
        if self._takes_numbers:
            operands = [*tensors, *[SCALARS[type(x)](x) for x in numbers]]
        watched: list[tuple[Memory | Watched, int | bytes]] = []
        kept: list[Any] = []
        for i in derivative.inputs:
            kept.append(kept_array(operands[i], watched))
        if derivative.outputs:
            kept.append(kept_array(result, watched))
        if derivative.extras is not None:
            kept += derivative.extras(*[x.array if type(x) is Tensor else x for x in operands], array)
        edges: list[tuple[Any, int]] = []
        for i in self._active:
            x = tensors[i]
            edges.append((x, 0) if x.node is None else (x.node, x.output))
        # Between here and the user are who calls this, and the operator or method.
        result.node = OperationNode(self._name, edges, user_line(4), derivative, kept, watched)
        if not self._is_new and type(array) is np.ndarray:
            base, owner = tensors[0].array, array.base
            if array is base or (owner is not None and (owner is base or np.may_share_memory(array, base))):
                make_view(result, tensors[0], self._path or self._path_to(values, kwargs), False)
        return result

    def _path_to(self, values: Sequence[Any], kwargs: dict[str, Any]) -> Path:
        path = Path(Step(self._function, ((PLACE, *values[1:]), kwargs), None))
        if not self._takes_numbers:
            self._path = path
        return path


def kept_array(x: Any, watched: list[tuple[Memory | Watched, int | bytes]]) -> Any:
    """The array of a tensor, whose changes are watched from now on; numbers as they are."""
    if type(x) is not Tensor:
        return x
    array = x.array
    if type(array) is np.ndarray:
        memory = x.memory
        if memory is None:
            memory = x.memory = Memory()
            watched.append((memory, 0))
        else:
            watched.append((memory, memory.look()))
    return array


class Numbers:
    """The calls that differ only in numbers.

    Attributes:
        exact: those with some numbers.
        general: those with any others.
        only: those without numbers.
    """

    __slots__ = ("exact", "general", "only")

    def __init__(self) -> None:
        self.exact: dict[tuple[Any, ...], Frequent] = {}
        self.general: Frequent | None = None
        self.only: Frequent | None = None


_known: dict[Any, Numbers] = {}
_count = 0
# Those of items with known numbers, by type, whether a gradient is required, and index.
_items: dict[tuple[Any, ...], Frequent] = {}
# What is known of calls with a key.
known = _known.get


def enter(
    key: tuple[Any, ...],
    numbers: tuple[Any, ...],
    function: Callable[..., Any],
    operation: Operation,
    active: Sequence[bool],
) -> None:
    """Keep what recording needs of a kind of call.

    Args:
        key: the key of the call.
        numbers: its numbers.
        function: what was called.
        operation: the operation that it was recorded as.
        active: which of its tensors require a gradient.
    """
    global _count
    kind = Frequent(function, operation, active)
    if _count >= _MOST:
        _known.clear()
        _items.clear()
        _count = 0
    _count += 1
    found = _known.setdefault(key, Numbers())
    if operation.takes_numbers:
        found.general = kind
    else:
        found.exact[numbers] = kind
        if not numbers:
            found.only = kind


def recorded(function: Callable[..., Any], x: Any) -> Tensor | None:
    """The result of a function of one tensor, if such a call was recorded before and nobody looks on; else None."""
    if type(x) is not Tensor or x.is_inferred or not current_mode().records:
        return None
    if x.window is not None:
        x._settle()
    found = known((function, x.array_type, x.node is not None or x.asked is not False))
    if found is None or found.only is None or current_observer() is not None or current_notes() is not None:
        return None
    return found.only.record((x,), (x.array,), _NO_OPTIONS, ())


def recorded_pair(function: Callable[..., Any], x: Any, y: Any) -> Tensor | None:
    """The same for a function of two tensors."""
    if type(x) is not Tensor or type(y) is not Tensor or x.is_inferred or y.is_inferred or not current_mode().records:
        return None
    if x.window is not None:
        x._settle()
    if y.window is not None:
        y._settle()
    is_active, is_other_active = x.node is not None or x.asked is not False, y.node is not None or y.asked is not False
    found = known((function, x.array_type, is_active, y.array_type, is_other_active))
    if found is None or found.only is None or current_observer() is not None or current_notes() is not None:
        return None
    return found.only.record((x, y), (x.array, y.array), _NO_OPTIONS, ())


def recorded_item(x: Tensor, index: Any) -> Tensor | None:
    """The same for `x[index]` with a basic index: integers, slices of them, new axes and an ellipsis."""
    if x.is_inferred or not current_mode().records or current_observer() is not None or current_notes() is not None:
        return None
    if x.window is not None:
        x._settle()
    parts: list[Any] = [x.array_type, x.node is not None or x.asked is not False]
    for i in index if type(index) is tuple else (index,):
        parts.append((i.start, i.stop, i.step) if type(i) is slice else i)
    key = tuple(parts)
    kind = _items.get(key)
    if kind is None:
        kind = _known_item(parts[:2], index)
        if kind is None:
            return None
        _items[key] = kind
    return kind.record((x,), (x.array, index), _NO_OPTIONS, ())


def _known_item(of_tensor: list[Any], index: Any) -> Frequent | None:
    """What was entered by `recording.apply` for an item, if its numbers are known."""
    parts: list[Any] = [operator.getitem, *of_tensor]
    numbers: list[Any] = []
    found = known(tuple(parts)) if add_to_key(index, parts, numbers) else None
    return None if found is None else found.exact.get(tuple(numbers))


def add_to_key(x: Any, key: list[Any], numbers: list[Any]) -> bool:
    """Add an argument other than a tensor to the key of a call; return whether the key identifies it completely."""
    cls = type(x)
    key.append(cls)
    if cls is int or cls is float:
        numbers.append(x)
        # Zeros of different sign are equal in Python.
        return x != 0.0 if cls is float else abs(x) <= MOST_INTEGER
    if cls in _ITEMS:
        key.append(x)
        return True
    if cls is slice:
        for y in (x.start, x.stop, x.step):
            if y is None:
                key.append(y)
            elif not add_to_key(y, key, numbers):
                return False
        return True
    if cls is tuple:
        key.append(len(x))
        return all([add_to_key(y, key, numbers) for y in x])
    return False
