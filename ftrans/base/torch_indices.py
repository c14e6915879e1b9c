"""Indices that mean one thing to NumPy and another one to torch: an integer beside an array, with a slice between them.

An integer is an array of indices for NumPy, and the axes of arrays that do not lie side by side come first in the
result: `x[0, :, [1, 2]]` has the shape `(2, n)`.  For torch it only takes away its axis, and the shape is `(n, 2)`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from .source import at_line, of_package, user_line
from .type_questions import is_plain

# The code that lies between a use of an index and what is here.
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_FILES = (
    ("base", "forward_code.py"),
    ("numpy", "after_trace.py"),
    ("numpy", "indexing.py"),
    ("autograd", "indexing.py"),
)
_BETWEEN = {os.path.join(_PACKAGE, *file) for file in _FILES} | {__file__}


def require_one_meaning(index: Any) -> None:
    """Raise for an index in code of the user that chooses another part of an array in torch than in NumPy.

    Raises:
        TypeError: it does.
    """
    if type(index) is not tuple or len(index) < 3:
        return
    kinds = "".join(map(_kind, index))
    arrays, numbers_too = _span(kinds, "a"), _span(kinds, "ai")
    is_torn = "s" in kinds[slice(*numbers_too)]
    if not is_torn or "s" in kinds[slice(*arrays)] or "s" not in kinds[: arrays[0]] or arrays == numbers_too:
        return
    frame = sys._getframe(1)
    while frame.f_code.co_filename in _BETWEEN and frame.f_back is not None:
        frame = frame.f_back
    if of_package(frame.f_code.co_filename) is None:
        raise TypeError(
            "an index of an integer and an array, with a slice between them, leaves the axis of the array where it is "
            "in torch, and moves it to the front in NumPy; write the integer in an index of its own, as in "
            f"x[0][:, [1, 2]], for the one, and np.moveaxis of that for the other{at_line(user_line())}"
        )


def _kind(item: Any) -> str:
    if item is None or item is Ellipsis or is_plain(item, slice):
        return "s"
    is_number = is_plain(item, int | np.integer) or (hasattr(item, "ndim") and not item.ndim)
    return "i" if is_number and not is_plain(item, bool) else "a"


def _span(kinds: str, wanted: str) -> tuple[int, int]:
    """Where the first one and behind the last one of some kinds are."""
    places = [i for i, kind in enumerate(kinds) if kind in wanted]
    return (places[0], places[-1] + 1) if places else (0, 0)
