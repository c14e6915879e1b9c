"""Questions about its type that a traced value answers as the array or number of the plain call would.

Code that NumPy runs branches on `isinstance(x, np.ndarray)`, `isinstance(x, float)` and the like.  Each such function
of Python asks the real class first, and then `__class__`.  Our own code, which has to tell traced values from arrays,
asks for the real class: `type(x) is Tracer`, or `isinstance(x, Tracer)` before any other class.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

# Libraries whose arrays leave it to unknown operands to compute with them, and read the memory of arrays of NumPy.
_READ_MEMORY = ("jax", "scipy.sparse")
_ASK_FOR_OTHERS = {"numpy", "abc"}
_OF_PYTHON: dict[str, type] = {"f": float, "i": int, "b": bool, "c": complex}


def _asked_by(frame: FrameType | None) -> str:
    """The module whose code asks, itself or by way of a function such as `np.isscalar` or an abstract class."""
    name = ""
    while frame is not None and (not name or name.partition(".")[0] in _ASK_FOR_OTHERS):
        name, frame = frame.f_globals.get("__name__", "?"), frame.f_back
    return name


class AnswersTypeQuestions:
    """Base class of traced values, which have a type, may be weak, and may have a place in an array's memory."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of what is here in the plain call: an array, or a number of NumPy or, if it is weak, of Python."""
        x: Any = self
        if _asked_by(sys._getframe(1)).startswith(_READ_MEMORY):
            return type(x)
        dtype = x.atom.type.dtype
        if x.atom.type.shape or not (x.memory is None or x.memory.is_of_number):
            return np.ndarray
        return _OF_PYTHON[dtype.kind] if x.weak else dtype.type


def is_plain(x: Any, classes: Any) -> bool:
    """`isinstance(x, classes)` of the real class, for arrays and numbers themselves: a traced value is none of them."""
    return issubclass(type(x), classes)
