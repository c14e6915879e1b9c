"""Memory that tensors share, and how changes of it in place are detected."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.checksum import checksum
from ..base.source import Line, user_line
from ..base.type_questions import is_plain

# A plain array up to this size is copied when it is kept; a larger one is watched by a checksum.
_COPY_BYTES = 1 << 12


class Memory:
    """The memory that some tensors share, with a count of its changes in place.

    Attributes:
        version: counts the changes.
        line: the user's line of the last one.
    """

    __slots__ = ("_lent", "_seen", "line", "version")

    def __init__(self) -> None:
        self.version = 0
        self.line: Line | None = None
        self._lent: Any = None
        self._seen = b""

    def change(self) -> None:
        """Count a change."""
        self.version += 1
        self.line = user_line()
        if self._lent is not None:
            self._seen = checksum(self._lent)

    def lend(self, array: Any) -> None:
        """Note that the array itself was handed out, so that it may be written to at any time."""
        if array is self._lent:
            return
        if self._lent is not None:
            # What has been written so far counts; several views are seen through the array that owns the memory.
            self.look()
            while is_plain(array.base, np.ndarray):
                array = array.base
        if array is not self._lent:
            self._lent, self._seen = array, checksum(array)

    def look(self) -> int:
        """The version, after checking an array that was lent for changes."""
        if self._lent is not None:
            seen = checksum(self._lent)
            if seen != self._seen:
                self.version, self.line, self._seen = self.version + 1, None, seen
        return self.version


class Watched:
    """The memory of a plain array, whose changes show in its contents only."""

    __slots__ = ("_array",)

    line = None

    def __init__(self, array: Any) -> None:
        self._array = array

    def look(self) -> bytes:
        """A checksum of the contents."""
        return checksum(self._array)


def may_be_written(array: Any) -> bool:
    """Whether the memory of an array can be written to, perhaps through another array that it is a view of."""
    while is_plain(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def protected(array: Any, watched: list[tuple[Memory | Watched, int | bytes]]) -> Any:
    """A plain array to keep: itself if it cannot change, a copy if it is small, or itself, watched."""
    if not is_plain(array, np.ndarray):
        return array
    array = np.asarray(array)
    if not may_be_written(array):
        return array
    if array.nbytes <= _COPY_BYTES:
        return array.copy()
    memory = Watched(array)
    watched.append((memory, memory.look()))
    return array
