"""Floating-point warnings and errors of generated code, told at the user's line.

A program runs as a Python function that was written for it.  The namespace of such a function holds, beside what its
text names, the user's line for each line of the text, and which lines nobody needs to be warned of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from contextvars import ContextVar
from types import FrameType
from typing import Any

import numpy as np

from .foreign import VARIABLE_OF_ERROR_MODES
from .source import Line, user_line, warn_at

# Where the namespace of generated code holds the user's lines, one for each line of the text; and a function that
# gives the numbers of the lines whose results only choices take.
LINES, LEFT_OUT = "_lines_", "_left_out_"
# NumPy's default floating-point error modes, and the same with warnings sent to a function.
_WARNS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
_CALLS = {"divide": "call", "over": "call", "invalid": "call"}


_variable = VARIABLE_OF_ERROR_MODES
# What NumPy makes of error modes is kept: for values of the variable, the values for the same with warnings sent, and
# for the same without a word of overflow.
_sent: dict[Any, Any] = {}
_silent: dict[Any, Any] = {}
_MOST_MODES = 100


def _sending() -> np.errstate:
    modes: Any = np.geterr()
    modes = _CALLS if modes == _WARNS else {k: "call" for k, v in modes.items() if v == "warn"}
    return np.errstate(call=_warn, **modes)


class warnings_at_user_line:
    """A context in which NumPy's floating-point warnings are given at the user's line of the equation that runs."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = send_warnings()

    def __exit__(self, *_: object) -> None:
        end_sending(self._token)


def _enter_modes(known: dict[Any, Any], changed: np.errstate, variable: ContextVar[Any], modes: Any) -> Any:
    with changed:
        found = variable.get()
    if len(known) >= _MOST_MODES:
        known.clear()
    known[modes] = known[found] = found
    return found


def send_warnings() -> Any:
    """Enter `warnings_at_user_line` without a context; return what `end_sending` takes."""
    if _variable is None:
        context = _sending()
        context.__enter__()
        return context
    modes = _variable.get()
    return _variable.set(_sent.get(modes) or _enter_modes(_sent, _sending(), _variable, modes))


def ignore_overflow() -> Any:
    """Enter `np.errstate(over="ignore")`, in an eighth of its time; return what `end_sending` takes."""
    if _variable is None:
        context = np.errstate(over="ignore")
        context.__enter__()
        return context
    modes = _variable.get()
    return _variable.set(_silent.get(modes) or _enter_modes(_silent, np.errstate(over="ignore"), _variable, modes))


def end_sending(token: Any) -> None:
    """Leave what `send_warnings` or `ignore_overflow` entered."""
    if _variable is None:
        token.__exit__(None, None, None)
    else:
        _variable.reset(token)


def _warn(kind: str, flag: int) -> None:
    line, frame = None, sys._getframe(1)
    while frame is not None and line is None:
        if LINES in frame.f_globals:
            line = _line_at(frame, frame.f_lineno)
            # Equations without a line are of derivatives that many lines share.
            if (line is None or line.derivative_of is not None) and _is_left_out(frame):
                return
        frame = frame.f_back  # type: ignore[assignment]
    line = line or user_line()
    warn_at(line, f"{kind} encountered" + ("" if line is None else f" in `{line.text}`"), RuntimeWarning)


def _is_left_out(frame: FrameType) -> bool:
    """Whether the result of the line that generated code is at goes only into choices between elements.

    Of a derivative that is infinite where a choice leaves it out nobody need be told.
    """
    left_out: Callable[[], Container[int]] = frame.f_globals[LEFT_OUT]
    return frame.f_lineno in left_out()


def add_user_line(error: Exception) -> None:
    """Note at an error from generated code at which line of the user it was, the innermost one."""
    trace, line = error.__traceback__, None
    while trace is not None:
        line = _line_at(trace.tb_frame, trace.tb_lineno) or line
        trace = trace.tb_next
    note = f"  at {line.describe()}" if line is not None else None
    if note is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _line_at(frame: FrameType, number: int) -> Line | None:
    """The user's line of a line of generated code, or None for other code."""
    lines: list[Line | None] | None = frame.f_globals.get(LINES)
    return None if lines is None else lines[number]
