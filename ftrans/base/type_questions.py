"""Questions about its type that a traced value answers as the array or number of the plain call would.

Code that NumPy runs branches on `isinstance(x, np.ndarray)`, `isinstance(x, float)` and the like.  Each such function
of Python asks the real class first, and then `__class__`.  Our own code, which has to tell traced values from arrays,
asks for the real class: `type(x) is Tracer`, or `isinstance(x, Tracer)` before any other class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, MethodType
from typing import Any

import numpy as np

from .source import at_line, of_package, user_line

# Libraries whose arrays leave it to unknown operands to compute with them, and read the memory of arrays of NumPy.
_READ_MEMORY = ("jax", "scipy.sparse", "numpy.ma.", "numpy.matrixlib.")
_ASK_FOR_OTHERS = {"numpy", "abc"}
_COMPARED = (np.ndarray, np.generic, float, int, complex)
_OF_PYTHON: dict[str, type] = {"f": float, "i": int, "b": bool, "c": complex}


def _asked_by(frame: FrameType | None) -> str:
    """The module whose code asks, itself or by way of a function such as `np.isscalar` or an abstract class."""
    name = ""
    while frame is not None and (not name or name.partition(".")[0] in _ASK_FOR_OTHERS):
        if name.startswith(_READ_MEMORY):
            break
        name, frame = frame.f_globals.get("__name__", "?"), frame.f_back
    return name


class _Unlike:
    """What abstract classes such as `Iterable` see of the real class: they ask what `__class__` says, too."""

    __hash__ = None  # type: ignore[assignment]


class _RealClass(type):
    """The class of the real class of traced values, with which `type(x)` cannot be compared in silence."""

    # Abstract classes look for methods in the classes of this tuple.
    __mro__ = property(lambda cls: (_Unlike,))
    __hash__ = type.__hash__

    def __eq__(cls, other: object) -> Any:
        frame = sys._getframe(1)
        is_compared = cls is not other and isinstance(other, type) and issubclass(other, _COMPARED)
        if is_compared and of_package(frame.f_code.co_filename) is None:
            name = getattr(other, "__name__", "")
            raise TypeError(
                f"the type of a traced value, which is a class of ftrans, was compared with {name}. Write isinstance(x,"
                f" {name}), which answers as in the plain call; for a package that cannot be changed, call "
                f"ftrans.patch before{at_line(user_line())}"
            )
        return NotImplemented


class NoSuchMethod(TypeError, AttributeError):
    """A number was asked for its length or its elements; `hasattr` asks without wanting to know."""


class MethodOfArrays:
    """A method that arrays have and numbers have not.

    Args:
        method: the method of arrays, which says of a number that it has none.
        says: what the error says where a number is asked for it.
        is_asked_for: whether a frame asks for the method, rather than for what it does.
    """

    def __init__(self, method: Callable[..., Any], says: str, is_asked_for: Callable[[FrameType], bool]) -> None:
        self.method = method
        self.says = says
        self.is_asked_for = is_asked_for

    def __get__(self, x: Any, owner: Any = None) -> Any:
        if x is None:
            return self.method
        if is_scalar(x) and self.is_asked_for(sys._getframe(1)):
            raise NoSuchMethod(self.says + at_line(user_line()))
        return MethodType(self.method, x)


def is_scalar(x: Any) -> bool:
    """Whether NumPy has an immutable number in the place of a traced value, of which there are no views."""
    return not x.atom.type.shape and (x.memory is None or x.memory.is_of_number)


class AnswersTypeQuestions(metaclass=_RealClass):
    """Base class of traced values, which have a type, may be weak, and may have a place in an array's memory."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of what is here in the plain call: an array, or a number of NumPy or, if it is weak, of Python."""
        x: Any = self
        if _asked_by(sys._getframe(1)).startswith(_READ_MEMORY):
            return type(x)
        if not is_scalar(x):
            return np.ndarray
        dtype = x.atom.type.dtype
        return _OF_PYTHON[dtype.kind] if x.weak else dtype.type


def is_plain(x: Any, classes: Any) -> bool:
    """`isinstance(x, classes)` of the real class, for arrays and numbers themselves: a traced value is none of them."""
    return issubclass(type(x), classes)
