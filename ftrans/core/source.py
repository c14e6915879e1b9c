"""Where an equation comes from: the user's line of code that asked for it.

The line is found by walking up the stack past this package and NumPy.  Equations that a transformation
derives inherit the line of the equation they come from, through `attributed_to`.
"""

from __future__ import annotations

import linecache
import os
import sys
from contextvars import ContextVar
from types import CodeType, FrameType

import numpy as np

_PACKAGES = tuple(os.path.dirname(os.path.abspath(p)) + os.sep for p in (os.path.dirname(__file__), np.__file__))
_is_internal: dict[str, bool] = {}
_lines: dict[tuple[int, int], Line] = {}
_MOST_LINES = 100_000


class Line:
    """One place in the user's code: a code object and an instruction in it.

    The line number is looked up only when somebody asks, because that costs more than recording an equation.
    """

    __slots__ = ("code", "instruction")

    def __init__(self, code: CodeType, instruction: int) -> None:
        self.code = code
        self.instruction = instruction

    @property
    def filename(self) -> str:
        """Path of the file."""
        return self.code.co_filename

    @property
    def number(self) -> int:
        """Line number in the file, from 1."""
        for start, end, number in self.code.co_lines():
            if start <= self.instruction < end and number is not None:
                return number
        return self.code.co_firstlineno

    @property
    def text(self) -> str:
        """The line of code itself, or an empty string where the source is not at hand."""
        return linecache.getline(self.filename, self.number).strip()

    def __repr__(self) -> str:
        return f"{os.path.basename(self.filename)}:{self.number}"

    def describe(self) -> str:
        """`file:line: code`, for error messages."""
        text = self.text
        return f"{self.filename}:{self.number}" + (f": {text}" if text else "")


_attributed: ContextVar[Line | None] = ContextVar("attributed", default=None)


def _internal(filename: str) -> bool:
    internal = os.path.abspath(filename).startswith(_PACKAGES)
    _is_internal[filename] = internal
    return internal


def attributed_line() -> Line | None:
    """The line that the present work is done for, if a transformation is at work."""
    return _attributed.get()


def user_line() -> Line | None:
    """The line of user code that runs now, or the one that the present work is attributed to."""
    line = _attributed.get()
    if line is not None:
        return line
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = _is_internal.get(filename)
        if not (_internal(filename) if internal is None else internal):
            code = frame.f_code
            key = (id(code), frame.f_lasti)
            line = _lines.get(key)
            if line is None:
                if len(_lines) > _MOST_LINES:
                    _lines.clear()
                line = _lines[key] = Line(code, frame.f_lasti)
            return line
        frame = frame.f_back
    return None


class attributed_to:
    """Attribute the equations recorded in this block to `line`, instead of the running code."""

    __slots__ = ("_line", "_token")

    def __init__(self, line: Line | None) -> None:
        self._line = line

    def __enter__(self) -> None:
        self._token = _attributed.set(self._line if self._line is not None else _attributed.get())

    def __exit__(self, *_: object) -> None:
        _attributed.reset(self._token)


def line_of_error(error: BaseException) -> Line | None:
    """The innermost line of user code that an exception passed through."""
    found, trace = None, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not _is_internal.get(code.co_filename, _internal(code.co_filename)):
            found = Line(code, trace.tb_lasti)
        trace = trace.tb_next
    return found


def at_line(line: Line | None) -> str:
    """`" (at file:line: code)"`, or nothing where the line is unknown: the end of an error message."""
    return f"\n  at {line.describe()}" if line is not None else ""
