"""Tensor: a concrete array, and its place in the graph of the operations that led to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.cell import Cell, Eager
from ..base.forks import lock
from ..base.lookalikes import refuse_lookalike
from ..base.source import Line, at_line, user_line
from ..base.type_questions import is_plain
from ..core.trace import Tracer
from ..core.types import ArrayType, is_inexact, type_of
from .graph import Node
from .hooks import Handle, Hooks
from .memory import Memory
from .modes import current_mode, note_departure
from .paths import Path

if TYPE_CHECKING:
    from .declarations import Declared
else:
    Declared = Eager

_adding = lock()


class Window:
    """What makes a tensor a view.

    Attributes:
        base: the tensor that it is a view of, which is not a view itself.
        path: the calls that lead from the base to the view; None if unknown.
        version: the version of the memory at which the graph last read the view from its base.
        is_detached: whether the view is not part of the graph of its base.
    """

    __slots__ = ("base", "is_detached", "path", "version")

    def __init__(self, base: Tensor, path: Path | None, version: int, is_detached: bool) -> None:
        self.base = base
        self.path = path
        self.version = version
        self.is_detached = is_detached


class Argument(Window):
    """What makes a tensor one that a Function computes with in place of its argument.

    Attributes:
        original: the argument, which gradients with respect to it are those of.
    """

    __slots__ = ("original",)

    def __init__(self, window: Window, original: Tensor) -> None:
        super().__init__(window.base, window.path, window.version, window.is_detached)
        self.original = original


class Tensor(Declared):
    """A NumPy array that remembers how it was computed, so that `backward` can differentiate it.

    `tensor(data, requires_grad=True)` creates one.  Operators, methods and NumPy functions compute with it, and
    `backward()` of the result accumulates gradients in the `grad` of such leaves.

    Attributes:
        array: the NumPy array itself.
        array_type: its shape and dtype, as programs know them.
        node: the node that computed it; None for a leaf.
        output: its index among the results of the node.
        asked: for a leaf, the user's line that set `requires_grad`, True if that line is unknown, or False.
        memory: the memory that it shares with other tensors; None until it is shared or watched.
        window: what it is a view of, or None.
        hooks: for a leaf, the functions that are called with its gradient.
        is_inferred: whether it was created in `inference_mode`.
    """

    __slots__ = (
        "__weakref__", "_grad", "array", "array_type", "asked", "hooks", "is_inferred", "memory", "node", "output",
        "window",
    )  # fmt: skip

    # Brings the place in the graph of a view up to date; `methods` puts it here, with all that computes.
    _settle: Callable[[], None]

    def __init__(self, array: Any, array_type: ArrayType | None = None, *sizes: Any) -> None:
        if type(array_type) is not ArrayType:
            raise _constructor_error(array, array_type, sizes)
        self.array = array
        self.array_type = array_type
        self.node: Node | None = None
        self.output = 0
        self.asked: Line | bool = False
        self.memory: Memory | None = None
        self.window: Window | None = None
        self.hooks: Hooks | None = None
        self._grad: Tensor | None = None
        self.is_inferred = False

    @classmethod
    def of(cls, array: Any) -> Tensor:
        """A tensor that takes over an array and requires no gradient."""
        return cls(array, type_of(array))

    @classmethod
    def at(cls, array: Any, target: Node | Tensor, index: int) -> Tensor:
        """The tensor at a known place in a graph: a result of a node, or a leaf, which is returned itself."""
        if isinstance(target, Tensor):
            return target
        found = cls.of(array)
        found.node, found.output = target, index
        return found

    # What it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.array_type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""
        return self.array_type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.array_type.ndim

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded; can be set for a leaf."""
        if self.window is not None:
            self._settle()
        return self.node is not None or self.asked is not False

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether this leaf requires a gradient, in place.

        Args:
            requires_grad: whether `backward` accumulates a gradient in `grad`.

        Returns:
            The tensor itself.

        Raises:
            RuntimeError: it is not a leaf, its dtype is not floating-point, or it was created in `inference_mode`.
        """
        if self.node is not None:
            if requires_grad:
                return self
            raise RuntimeError(
                f"requires_grad can be set to False for a leaf only, but this tensor is the result of {self.node!r}; "
                f"x.detach() is a tensor without gradient{at_line(user_line())}"
            )
        if requires_grad and not is_inexact(self.dtype):
            raise RuntimeError(
                f"only tensors of floating-point or complex numbers have a gradient, not {self.array_type}; "
                f"give dtype=float{at_line(user_line())}"
            )
        if requires_grad and self.is_inferred:
            raise inference_error()
        self.asked = requires_grad and (user_line() or True)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it is not the result of a recorded operation: created by the user, or requiring no gradient."""
        return not self.requires_grad or self.node is None

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that computed it; None for a leaf."""
        return self.node if self.requires_grad else None

    def is_inference(self) -> bool:
        """Whether it was created in `inference_mode`, so that operations on it are never recorded."""
        return self.is_inferred

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated for this leaf; None before the first call."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            value = as_tensor(value)
            if value.array_type is not self.array_type:
                raise RuntimeError(
                    f"a gradient must have the type of its tensor: {self.array_type}, not {value.array_type}"
                    + at_line(user_line())
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def add_grad(self, gradient: Tensor) -> None:
        """Accumulate a gradient in `grad`, safely from several threads; the first one is kept without a copy."""
        with _adding:
            before = self.grad
            self.grad = gradient if before is None else as_tensor(np.add(before, gradient))

    def zero_grad(self) -> None:
        """Set `grad` to None."""
        self._grad = None

    def retain_grad(self) -> None:
        """Keep the gradient in `grad`, for a tensor that is not a leaf.

        Raises:
            RuntimeError: it requires no gradient.
        """
        self._hooks("retain_grad").retain(self)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> Handle:
        """Register a function that is called with the gradient of this tensor whenever it is computed.

        Args:
            hook: takes the gradient, a tensor, and returns a replacement, or None to leave it unchanged.

        Returns:
            A handle, whose `remove()` removes the hook.

        Raises:
            RuntimeError: the tensor requires no gradient.

        Example:
            >>> import ftrans as ft
            >>> x = ft.autograd.tensor(2.0, requires_grad=True)
            >>> handle = x.register_hook(lambda gradient: 10 * gradient)
            >>> (x * x).backward()
            >>> x.grad
            tensor(40.)
        """
        return self._hooks("register_hook").add(self, hook)

    def _hooks(self, what: str) -> Hooks:
        if not self.requires_grad:
            raise RuntimeError(
                f"{what} is for tensors that require a gradient; this one ({self.array_type}) does not"
                + at_line(user_line())
            )
        owner: Any = self if self.node is None else self.node
        if owner.hooks is None:
            owner.hooks = Hooks()
        found: Hooks = owner.hooks
        return found

    # The array

    def concrete(self) -> Any:
        return self.array

    def is_active(self) -> bool:
        return current_mode().records and self.requires_grad

    def shared_memory(self) -> Memory:
        """The memory that it shares with its views and with the tensor that it was detached from."""
        memory = self.memory
        if memory is None:
            memory = self.memory = Memory()
        return memory

    def owned_array(self) -> Any:
        """The array, writable."""
        if not is_plain(self.array, np.ndarray):
            self.array = np.array(self.array)
        return self.array

    @property
    def data(self) -> Tensor:
        """A tensor that shares its memory and requires no gradient; assignment replaces the contents of this one."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        new = as_tensor(value)
        if self.requires_grad and new.array_type is not self.array_type:
            raise RuntimeError(
                f"the data of a tensor that requires a gradient keeps its type: {self.array_type}, not {new.array_type}"
                + at_line(user_line())
            )
        self.array, self.array_type = new.array, new.array_type
        # What was kept of the old memory stays as it was.
        self.memory = new.shared_memory()
        self.window = None

    def detach(self) -> Tensor:
        """A tensor that shares its memory, requires no gradient, and is not part of the graph."""
        found = type(self).of(self.owned_array())
        found.memory = self.shared_memory()
        found.window = Window(self if self.window is None else self.window.base, None, found.memory.version, True)
        found.is_inferred = self.is_inferred
        return found

    def detach_(self) -> Tensor:
        """Detach this tensor from the graph, in place: it becomes a leaf that requires no gradient."""
        self.node, self.output, self.asked = None, 0, False
        if self.window is not None:
            self.window = Window(self.window.base, None, self.window.version, True)
        return self

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """The array itself, which shares its memory with the tensor.

        Args:
            force: whether to return a copy if the tensor requires a gradient, instead of raising.

        Raises:
            RuntimeError: the tensor requires a gradient, which the array would lose.
        """
        if self.requires_grad:
            if force:
                return np.array(self.array)
            raise _no_array_error(self)
        note_departure()
        array: np.ndarray[Any, Any] = self.owned_array()
        self.shared_memory().lend(array)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.requires_grad:
            raise _no_array_error(self)
        if copy is False:
            return np.array(self.numpy(), dtype, copy=False)
        note_departure()
        return np.array(self.array, dtype)

    def item(self, *index: int) -> Any:
        """The value of a tensor of one element, or of the element at `index`, as a Python number."""
        note_departure()
        return np.asarray(self.array).item(*index)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        note_departure()
        return np.asarray(self.array).tolist()


# What the graph and transformations ask of tensors, which is not for users.
INTERNAL = {
    "add_grad", "apply_function", "apply_program", "array_type", "asked", "at", "concrete", "hooks", "is_active",
    "is_inferred", "memory", "node", "of", "output", "owned_array", "shared_memory", "window",
}  # fmt: skip


def _constructor_error(first: Any, second: Any, others: tuple[Any, ...]) -> TypeError:
    """The error for a call of the class with what torch takes: sizes, or data."""
    given = [first, *([] if second is None else [second]), *others]
    if all([type(x) is int for x in given]):
        sizes = ", ".join(map(str, given))
        said = f"Tensor({sizes}) leaves the elements open: write empty({sizes})"
    else:
        said = (
            "Tensor(data) is the class of tensors; write tensor(data, dtype=numpy.float32) for one with these elements"
        )
    return TypeError(said + at_line(user_line()))


def inference_error() -> RuntimeError:
    """The error for recording an operation on a tensor created in `inference_mode`."""
    return RuntimeError(
        "a tensor created in inference_mode cannot be used where operations are recorded; create it under no_grad "
        f"instead, or use a copy: x.clone(){at_line(user_line())}"
    )


def _no_array_error(x: Tensor) -> RuntimeError:
    return RuntimeError(
        f"a tensor that requires a gradient ({x.array_type}) would lose it as a NumPy array; write "
        "x.detach().numpy() if that is meant, np.stack([x, y]) in place of np.array([x, y]), and keep it as it is "
        f"otherwise{at_line(user_line())}"
    )


def held(x: Any) -> Any:
    """What a parameter or buffer of a module holds, as a tensor; other values as they are."""
    if not isinstance(x, Cell):
        return x
    found = x.read()
    return found if isinstance(found, Tensor | Tracer) else Tensor.of(np.asarray(found))


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """Convert data to a tensor, without a copy where possible.

    Args:
        data: a tensor, which is returned unchanged if its dtype matches; an array, a number, or nested lists.
        dtype: dtype of the tensor; by default that of the data.

    Raises:
        TypeError: the data is of a class whose arithmetic differs from that of arrays, such as `numpy.matrix`.
    """
    data = held(data)
    if isinstance(data, Tensor):
        return data if dtype is None or np.dtype(dtype) == data.dtype else data.astype(dtype)
    refuse_lookalike(data)
    array = np.asarray(data, dtype)
    found = Tensor.of(array)
    if array is data:
        found.shared_memory().lend(array)
    return found
