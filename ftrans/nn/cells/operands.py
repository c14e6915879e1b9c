"""A cell as an operand: the operators, methods and NumPy functions of its array."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.tensor import Tensor, as_tensor
from ...autograd.torch_methods import IN_PLACE, METHODS
from ...base.cell import Cell, read
from ...base.forward_code import in_forward, speaking
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.trace import Tracer, current_builder
from ...numpy.array_api import array_namespace
from ...numpy.indexing import require_kept
from ...numpy.torch_names import missing
from .inplace import ChangedInPlace, require_numbers

if TYPE_CHECKING:
    from .declarations import Declared
else:
    Declared = ChangedInPlace

# Attributes of cells that are not there are not those of arrays.
_SLOTS = ("array", "held", "home", "name", "owner", "transaction")


class Operand(Declared):
    """The part of a cell that represents an array in user code."""

    __slots__ = ()

    # NumPy's scalars and arrays leave arithmetic with a cell to the cell.
    __array_priority__ = 1000
    __array_namespace__ = array_namespace

    array: Any
    check_change: Callable[[], None]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.value, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Cell) for x in kwargs.get("out", ())):
            raise TypeError(
                f"np.{ufunc.__name__} cannot write to a cell with out=; assign to its value, cell.value = "
                f"np.{ufunc.__name__}(...){at_line(user_line())}"
            )
        return _heard(getattr(ufunc, method)(*read(inputs), **read(kwargs)))

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return _heard(function(*read(args), **read(kwargs)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _SLOTS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name.endswith("_") and name[:-1] in IN_PLACE:
            return lambda *args, **kwargs: self._change(METHODS[name[:-1]](self.read(), *args, **kwargs), name)
        found = self.read()
        # Methods of torch are those of arrays in forward code.
        if is_plain(found, np.ndarray) and (speaking.get() or name in METHODS or not hasattr(found, name)):
            found = in_forward(found)
            if not hasattr(found, name):
                raise missing(f"{type(self).__name__} {self.path}", name)
        return getattr(found, name)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.check_change()
        # What was read before stays as it was.
        builder = current_builder()
        require_numbers(value, self.path)
        given = read(value)
        require_kept(given, self.array.dtype)
        array: Any
        if builder is not None:
            array = Tracer(builder, builder.atom(self.read()))
        elif isinstance(self.array, Tensor) or isinstance(given, Tensor):
            array = as_tensor(self.value).clone()
        else:
            array = np.array(self.value)
        array[index] = given
        self.value = array

    def __len__(self) -> int:
        return len(self.read())

    def __iter__(self) -> Iterator[Any]:
        return iter(_heard(self.read()))

    def __bool__(self) -> bool:
        return bool(self.read())

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)


def _heard(x: Any) -> Any:
    """A result, as the code that runs gets it."""
    return in_forward(x) if speaking.get() else x


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")


def _install_operators() -> None:
    """Python's operators, delegated to the array."""

    def binary(call: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            lambda self, other: _heard(call(self.read(), read(other))),
            lambda self, other: _heard(call(read(other), self.read())),
        )

    def unary(call: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda self: _heard(call(self.read()))

    for name in _BINARY:
        function = getattr(operator, name + "_" if name in ("and", "or") else name)
        forward, reflected = binary(function)
        setattr(Operand, f"__{name}__", forward)
        setattr(Operand, f"__r{name}__", reflected)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Operand, f"__{name}__", binary(getattr(operator, name))[0])
    for name in ("neg", "abs", "invert", "pos"):
        setattr(Operand, f"__{name}__", unary(getattr(operator, name)))
    Operand.__getitem__ = lambda self, index: _heard(self.read()[read(index)])  # type: ignore[method-assign]


_install_operators()
