"""Frequent calls: kinds of calls on tensors that have been recorded before, with all that recording one more needs.

A kind is known by the function, by the types of the tensors and which of them require a gradient, and by what else is
given, as long as that is numbers, slices, flags and tuples of these.  Its result is one array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from ..base.floating_point import end_sending, send_warnings
from ..base.source import user_line
from .memory import Memory, Watched
from .operation_node import OperationNode
from .operations import MOST_INTEGER, PLACE, SCALARS, Operation
from .paths import Path, Step
from .tensor import Tensor
from .views import make_view

_MOST = 10_000
# Arguments that stand for themselves in a key.
_ITEMS = frozenset((bool, type(None), EllipsisType, str, type))


class Frequent:
    """One kind of call, with numbers that are known or are arguments of its operation.

    Args:
        function: what is called.
        operation: what it computes.
        active: which of the tensors require a gradient.
    """

    __slots__ = ("_active", "_derivative", "_function", "_is_new", "_name", "_takes_numbers", "_type")

    def __init__(self, function: Callable[..., Any], operation: Operation, active: Sequence[bool]) -> None:
        numbers = (False,) * (len(operation.program.inputs) - len(active))
        self._function = function
        self._name = operation.name
        self._takes_numbers = operation.takes_numbers
        self._is_new = operation.makes_array
        self._derivative = operation.derivative((*active, *numbers))
        self._type = self._derivative.out_types[0]
        self._active = tuple([i for i, is_active in enumerate(active) if is_active])

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
        token = send_warnings()
        try:
            array = self._function(*values, **kwargs)
        finally:
            end_sending(token)
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
        result.node = OperationNode(self._name, edges, user_line(3), derivative, kept, watched)
        if not self._is_new and type(array) is np.ndarray:
            base = tensors[0].array
            if array is base or (array.base is not None and np.may_share_memory(array, base)):
                path = Path(Step(self._function, ((PLACE, *values[1:]), kwargs), None))
                make_view(result, tensors[0], path, False)
        return result


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
    """

    __slots__ = ("exact", "general")

    def __init__(self) -> None:
        self.exact: dict[tuple[Any, ...], Frequent] = {}
        self.general: Frequent | None = None


_known: dict[Any, Numbers] = {}
_count = 0
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
        _count = 0
    _count += 1
    found = _known.setdefault(key, Numbers())
    if operation.takes_numbers:
        found.general = kind
    else:
        found.exact[numbers] = kind


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
