"""In-place updates of cells, as in `p -= 0.1 * p.grad` or `p.add_(step, alpha=-0.1)`.

An update puts a new array of the same shape and dtype into the cell, also in transformations.  Results computed from
the old array keep it, so their gradients are those of the old value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...autograd.modes import current_mode
from ...base.cell import Cell, Eager, read
from ...base.lookalikes import refuse_lookalike
from ...base.source import at_line, user_line
from ...base.type_questions import is_plain
from ...core.trace import Tracer, current_builder
from ...core.types import type_of
from ...numpy.indexing import require_kept
from ...numpy.promotion import has_tracer


class ChangedInPlace(Cell):
    """Operations that update a cell, and return it."""

    __slots__ = ()

    if TYPE_CHECKING:
        value: Any

        @property
        def shape(self) -> tuple[int, ...]: ...

        @property
        def dtype(self) -> np.dtype[Any]: ...

        @property
        def path(self) -> str: ...

    def _change(self, new: Any, name: str) -> Self:
        """Put in a result of the same shape, in the dtype of the cell."""
        if current_builder() is None and current_mode().records and self._is_recorded():
            raise RuntimeError(
                f"{name} changes {self.path} in place, a parameter whose operations are recorded for backward; write "
                "with ftrans.autograd.no_grad(): around the update, or p.value = array, which replaces the array"
                + at_line(user_line())
            )
        if isinstance(new, Eager) and not self._holds_tensor():
            new = np.array(new.concrete())
        elif not isinstance(new, Tracer | Eager):
            new = np.asarray(new)
        if tuple(new.shape) != tuple(self.shape):
            raise ValueError(
                f"{name} of {self.path}, which is {type_of(self)}, gives an array of shape {tuple(new.shape)}; an "
                f"in-place update must keep the shape{at_line(user_line())}"
            )
        if new.dtype != self.dtype:
            if not np.can_cast(new.dtype, self.dtype, "same_kind"):
                raise TypeError(
                    f"{name} of {self.path}, which is {type_of(self)}, gives {type_of(new)}, which cannot be "
                    f"cast to that dtype; convert it with .astype{at_line(user_line())}"
                )
            new = new.astype(self.dtype)
        self.value = new
        return self

    def _is_recorded(self) -> bool:
        """Whether operations on it are currently recorded for `backward`."""
        found = self.read()
        return isinstance(found, Eager) and found.is_active()

    def _holds_tensor(self) -> bool:
        return isinstance(self.value, Eager)

    # Operators

    def __iadd__(self, other: Any) -> Self:
        return self._change(self.read() + _given(other), "+=")

    def __isub__(self, other: Any) -> Self:
        return self._change(self.read() - _given(other), "-=")

    def __imul__(self, other: Any) -> Self:
        return self._change(self.read() * _given(other), "*=")

    def __itruediv__(self, other: Any) -> Self:
        return self._change(self.read() / _given(other), "/=")

    def __ipow__(self, other: Any) -> Self:
        return self._change(self.read() ** _given(other), "**=")

    def __ifloordiv__(self, other: Any) -> Self:
        return self._change(self.read() // _given(other), "//=")

    def __imod__(self, other: Any) -> Self:
        return self._change(self.read() % _given(other), "%=")

    def __iand__(self, other: Any) -> Self:
        return self._change(self.read() & _given(other), "&=")

    def __ior__(self, other: Any) -> Self:
        return self._change(self.read() | _given(other), "|=")

    def __ixor__(self, other: Any) -> Self:
        return self._change(self.read() ^ _given(other), "^=")

    # Methods

    def add_(self, other: Any, *, alpha: Any = 1) -> Self:
        """Add `alpha * other`."""
        other = _given(other)
        return self._change(self.read() + (other if alpha == 1 else alpha * other), "add_")

    def sub_(self, other: Any, *, alpha: Any = 1) -> Self:
        """Subtract `alpha * other`."""
        other = _given(other)
        return self._change(self.read() - (other if alpha == 1 else alpha * other), "sub_")

    def mul_(self, other: Any) -> Self:
        """Multiply by `other`."""
        return self._change(self.read() * _given(other), "mul_")

    def div_(self, other: Any) -> Self:
        """Divide by `other`."""
        return self._change(self.read() / _given(other), "div_")

    def addcmul_(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Self:
        """Add `value * tensor1 * tensor2`."""
        return self._change(self.read() + value * (_given(tensor1) * _given(tensor2)), "addcmul_")

    def addcdiv_(self, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Self:
        """Add `value * tensor1 / tensor2`."""
        return self._change(self.read() + value * (_given(tensor1) / _given(tensor2)), "addcdiv_")

    def lerp_(self, end: Any, weight: Any) -> Self:
        """Interpolate linearly: add `weight * (end - self)`."""
        here = self.read()
        return self._change(here + _given(weight) * (_given(end) - here), "lerp_")

    def clamp_(self, min: Any = None, max: Any = None) -> Self:
        """Clip to the interval from `min` to `max`."""
        return self._change(np.clip(self.read(), _given(min), _given(max)), "clamp_")

    def copy_(self, value: Any) -> Self:
        """Overwrite with an array that broadcasts to the shape, converted to the dtype.

        Raises:
            ValueError: it does not broadcast to the shape.
            TypeError: it is complex, and the cell is real.
        """
        return self._overwrite(value, "copy_")

    def _overwrite(self, value: Any, name: str) -> Self:
        require_numbers(value, self.path)
        given = _given(value)
        if tuple(np.shape(given)) != tuple(self.shape):
            try:
                given = np.broadcast_to(given, self.shape)
            except ValueError:
                raise ValueError(
                    f"{self.path} is {type_of(self)}, which an array of shape {tuple(np.shape(given))} does not fit"
                    + at_line(user_line())
                ) from None
        given = given if hasattr(given, "dtype") else np.asarray(given)
        require_kept(given, self.dtype)
        return self._change(given.astype(self.dtype) if given.dtype != self.dtype else +given, name)

    def fill_(self, value: Any) -> Self:
        """Overwrite all elements with a number."""
        return self._overwrite(value, "fill_")

    def zero_(self) -> Self:
        """Overwrite with zeros."""
        return self._overwrite(np.zeros((), self.dtype), "zero_")


def _given(x: Any) -> Any:
    refuse_lookalike(x)
    return read(x)


def require_numbers(x: Any, path: str) -> None:
    """Raise if a value for a cell is not an array of numbers.

    Raises:
        TypeError: it only looks like an array, or holds objects, strings or dates.
    """
    try:
        refuse_lookalike(x)
    except TypeError as error:
        raise TypeError(f"{path}: {error}") from None
    is_array = is_plain(x, np.ndarray | np.generic)
    if (is_array and x.dtype.kind in "OSUTmM" and not has_tracer(x)) or x is None or isinstance(x, str | bytes):
        given = f"an array of dtype {x.dtype}" if is_array else f"of type {type(x).__name__}"
        raise TypeError(f"{path} holds an array of numbers, but was given {given}{at_line(user_line())}")
