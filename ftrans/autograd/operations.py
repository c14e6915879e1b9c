"""Operations: NumPy calls as programs, cached by function and by the types of the arguments.

A call on tensors runs NumPy itself, at once.  If it is recorded, its program is needed as well.  So the function is
traced once for each kind of call: tensors and arrays are inputs of the program, and all other arguments (axes, flags,
slices, numbers) are part of the kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api.call import trace_flat
from ..base import tree
from ..base.cell import Eager, concrete
from ..base.keys import exact
from ..base.lookalikes import refuse_lookalike
from ..base.narrow_products import exact_products
from ..base.type_questions import is_plain
from ..core.program import Program
from ..core.trace import Tracer
from ..core.types import ArrayType, type_of
from ..numpy.promotion import asarray
from ..numpy.views import as_array
from .derivation import Derivative, Flags, OfCall, OfProgram, Run, without_lines

# Python numbers are part of the kind of call until it has been seen with this many different ones.
_MOST_NUMBERS = 4
_MOST_OPERATIONS = 10_000
SCALARS: dict[type, type[np.generic]] = {float: np.float64, int: np.int64, complex: np.complex128}
_NUMBERS = tuple(SCALARS)
MOST_INTEGER = 2**63 - 1
_NODE_NAMES = {
    "multiply": "Mul", "subtract": "Sub", "divide": "Div", "power": "Pow", "negative": "Neg", "absolute": "Abs",
    "getitem": "Index", "setitem": "IndexPut",
}  # fmt: skip


class Operation:
    """One kind of operation: its program and its derivatives.

    Attributes:
        name: the name of its nodes in print.
        program: arrays (and numbers) of a call -> results; for a call that changes arguments, their new values instead.
        mutated: which of the arguments it changes in place.
        takes_numbers: whether the numbers among the arguments are inputs, after the arrays.
        constants: values of the program's further inputs.
    """

    __slots__ = ("_derivatives", "_make", "_run", "constants", "mutated", "name", "program", "takes_numbers")

    def __init__(
        self,
        name: str,
        program: Program,
        make: type[Derivative] = OfCall,
        mutated: tuple[int, ...] = (),
        takes_numbers: bool = False,
        constants: Sequence[Any] = (),
        run: Run | None = None,
    ) -> None:
        self.name = name
        self.program = program
        self.mutated = mutated
        self.takes_numbers = takes_numbers
        self.constants = tuple(constants)
        self._make = make
        self._run = run
        self._derivatives: dict[Flags, Derivative] = {}

    def derivative(self, active: Flags) -> Derivative:
        """The derivative with respect to the arguments flagged as active."""
        found = self._derivatives.get(active)
        if found is None:
            found = self._derivatives[active] = self._make(self.program, active, self._run)
        return found

    def numbers(self, call: Call) -> list[Any]:
        """The numbers of a call that are arguments of the program."""
        return [SCALARS[cls](cls(x)) for cls, x in call.numbers] if self.takes_numbers else []

    @property
    def makes_array(self) -> bool:
        """Whether its first result is an array of its own, no matter what it is given."""
        result = self.program.outputs[0]
        return any(result in eqn.outputs and not eqn.primitive.aliases for eqn in self.program.eqns)


def operation_of(program: Program, run: Run | None) -> Operation:
    """A whole program as an operation; `run` runs its programs, by default the NumPy evaluator."""
    key = ("operation", run)
    found: Operation | None = program.derived.get(key)
    return found or program.derive(key, lambda: Operation(node_name(program.name), program, OfProgram, run=run))


@functools.cache
def node_name(name: str) -> str:
    """The name of nodes for a function or program: `Mul` for multiply."""
    if name in _NODE_NAMES:
        return _NODE_NAMES[name]
    words = "".join(c if c.isalnum() else "_" for c in name).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) or "Program"


class Call:
    """A function call, divided into arrays, numbers and a key.

    Attributes:
        leaves: the tensors and arrays among the arguments; only their types are part of the kind of call.
        numbers: the Python numbers among the arguments, each with its class.
        key: all other arguments; None if they cannot be hashed or may depend on more, as functions do.
    """

    __slots__ = ("args", "function", "key", "kwargs", "leaves", "numbers")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.leaves: list[Any] = []
        self.numbers: list[Any] = []
        key: list[Any] = [function]
        is_plain = all([self._enter(x, key) for x in args])
        for name, x in kwargs.items():
            key.append(name)
            is_plain = self._enter(x, key) and is_plain
        self.key = tuple(key) if is_plain else None

    def _enter(self, x: Any, key: list[Any]) -> bool:
        """Add an argument to the key; return whether the key identifies it completely."""
        cls = type(x)
        if is_array(x):
            self.leaves.append(x)
            key.append(x.array_type if isinstance(x, Eager) else type_of(x))  # type: ignore[attr-defined]
        elif cls in _NUMBERS:
            # Zeros of different sign are equal in Python.
            self.numbers.append((cls, x if x and cls is not complex else str(x)))
            key.append(cls)
        elif x is None or cls is str or cls is bool:
            key.append((cls, x))
        elif cls is tuple or cls is list:
            key.append((cls, len(x)))
            return all([self._enter(y, key) for y in x])
        elif cls is slice:
            key.append(cls)
            return all([self._enter(y, key) for y in (x.start, x.stop, x.step)])
        elif cls is dict:
            key.append((cls, *x))
            return all([self._enter(y, key) for y in x.values()])
        elif isinstance(x, Static):
            key.append(x)
        elif callable(x) and not isinstance(x, type | np.ufunc):
            return False
        else:
            try:
                hash(x)
            except TypeError:
                return False
            key.append(exact(x))
        return True

    def emptied(self) -> tuple[Any, ...]:
        """Positional and keyword arguments with `PLACE` for each tensor and array, so that they hold no arrays."""
        return mapped((self.args, self.kwargs), lambda x: PLACE if is_array(x) else x)

    def with_arrays(self, arrays: Sequence[Any], numbers: Sequence[Any] | None = None) -> Any:
        """The result of the same call with other arrays, and perhaps other numbers."""
        left, left_numbers = iter(arrays), iter(numbers or ())

        def replaced(x: Any) -> Any:
            if is_array(x):
                return next(left)
            return next(left_numbers) if numbers is not None and type(x) in _NUMBERS else x

        args, kwargs = mapped((self.args, self.kwargs), replaced)
        return self.function(*args, **kwargs)


class Static:
    """Base class of arguments that are part of the kind of call: equal objects must have the same effect."""

    __slots__ = ()


PLACE = Static()


def filled(arguments: Any, x: Any) -> Any:
    """Arguments with `x` at each `PLACE`."""
    return mapped(arguments, lambda y: x if y is PLACE else y)


def is_array(x: Any) -> bool:
    """Whether an argument is a tensor or an array."""
    return is_plain(x, Eager | np.generic) or (is_plain(x, np.ndarray) and x.dtype != object)


def mapped(x: Any, f: Callable[[Any], Any]) -> Any:
    """`x` with `f` applied to the leaves of its tuples, lists, slices and dicts."""
    cls = type(x)
    if cls is tuple or cls is list:
        return cls([mapped(y, f) for y in x])
    if cls is slice:
        return slice(mapped(x.start, f), mapped(x.stop, f), mapped(x.step, f))
    if cls is dict:
        return {name: mapped(y, f) for name, y in x.items()}
    return f(x)


def stripped(x: Any, tensors: list[Any]) -> Any:
    """Arguments with each tensor replaced by its array; the tensors are appended to the list."""

    def array(y: Any) -> Any:
        if isinstance(y, Eager):
            tensors.append(y)
            return y.concrete()
        return _without_class(y) if is_plain(y, np.ndarray) and type(y) is not np.ndarray else y

    return mapped(x, array)


def _without_class(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of a subclass as a plain array."""
    refuse_lookalike(array)
    return np.asarray(array)


class _Kind:
    """A kind of call: calls that differ only in numbers.

    Attributes:
        exact: operations by these numbers.
        general: an operation that takes the numbers as arguments; None if not needed yet, False if impossible.
    """

    __slots__ = ("exact", "general")

    def __init__(self) -> None:
        self.exact: dict[Any, Operation] = {}
        self.general: Operation | bool | None = None


class _Cache:
    """A cache of operations, cleared when there are too many."""

    def __init__(self) -> None:
        self.kinds: dict[Any, _Kind] = {}
        self.count = 0

    def kind(self, key: Any) -> _Kind:
        """The kind for a key."""
        if self.count > _MOST_OPERATIONS:
            self.kinds, self.count = {}, 0
        found = self.kinds.get(key)
        if found is None:
            found = self.kinds[key] = _Kind()
        return found


_cache = _Cache()


def operation_for(call: Call, name: str) -> Operation:
    """The operation for a call."""
    if call.key is None:
        return _traced(call, name, False)[0]
    kind = _cache.kind(call.key)
    numbers = tuple(call.numbers)
    found = kind.exact.get(numbers)
    if found is not None:
        return found
    if numbers and len(kind.exact) >= _MOST_NUMBERS and kind.general is not False and _fit(numbers):
        if kind.general is None:
            kind.general = _general(call, name)
        if isinstance(kind.general, Operation):
            return kind.general
    operation, is_for_all = _traced(call, name, False)
    if is_for_all:
        kind.exact[numbers] = operation
        _cache.count += 1
    return operation


def _fit(numbers: Sequence[Any]) -> bool:
    """Whether numbers can be arguments of a program."""
    return all([cls is not int or abs(int(x)) <= MOST_INTEGER for cls, x in numbers])


def _general(call: Call, name: str) -> Operation | bool:
    """The operation that takes the numbers of a call as arguments, or False if the program depends on them."""
    try:
        operation, is_for_all = _traced(call, name, True)
    except (TypeError, ValueError, IndexError):
        return False
    return operation if is_for_all else False


def _traced(call: Call, name: str, takes_numbers: bool) -> tuple[Operation, bool]:
    """Trace a call; also return whether the operation is valid for all calls of its kind."""
    try:
        # What it is for one precision of products is kept for all: `recording.apply` rounds outside of it.
        with exact_products():
            return _traced_with(call, name, takes_numbers, [False] * len(call.leaves))
    except (TypeError, ValueError, IndexError):
        is_plain = [not isinstance(x, Eager) for x in call.leaves]
        if takes_numbers or not any(is_plain):
            raise
        # A plain array, such as a shape, may determine the operation.
        with exact_products():
            return _traced_with(call, name, False, is_plain)[0], False


def _traced_with(call: Call, name: str, takes_numbers: bool, is_fixed: Sequence[bool]) -> tuple[Operation, bool]:
    """The same, with some of the arrays as constants instead of arguments."""
    count = len(call.leaves)
    numbers = [cls(x) for cls, x in call.numbers] if takes_numbers else []
    witnesses = [*map(concrete, call.leaves), *numbers]
    types: list[ArrayType] = [type_of(x) for x in witnesses]
    mutated: list[int] = []

    def rebuild(tracers: list[Tracer]) -> Any:
        for tracer, x in zip(tracers, call.leaves, strict=False):
            # A tensor without axes can be assigned to, as an array can; as an index it is a number.
            if isinstance(x, Eager) and tracer.dtype.kind in "fc":
                as_array(tracer)
        before = [x.atom for x in tracers]
        arrays = [w if f else x for w, x, f in zip(witnesses, tracers[:count], is_fixed, strict=False)]
        out = call.with_arrays(arrays, tracers[count:] if takes_numbers else None)
        after = [asarray(x) for x in tracers]
        mutated.extend(i for i, x in enumerate(after) if x.atom is not before[i])
        return [after[i] for i in mutated] if mutated else tree.flatten(out)[0]

    weak = [i >= count for i in range(len(types))]
    traced, _ = trace_flat(call.function, types, rebuild, witnesses, weak, shared=False)
    # Captured values and branches on values are valid for this call only.
    is_for_all = not traced.builder.guards and not any(isinstance(x, Eager) for x in traced.captured)
    program = without_lines(traced.program)
    return Operation(name, program, OfCall, tuple(mutated), takes_numbers, traced.captured), is_for_all
