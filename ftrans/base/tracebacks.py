"""Tracebacks that show the user's code: frames of this package are left out where an error leaves it.

Between a call of `grad(f)` and a mistake in `f` there are up to thirty frames that say nothing to somebody who looks
for the mistake.  The outermost public function takes them out of the traceback as the error passes; that costs nothing
where there is no error.  The error is the same object, with its cause and notes.  Where something other than a `raise`
of this package has failed below the user's last line, the last frame here stays, with those below it: they say what.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from .source import of_package

P = ParamSpec("P")
Result = TypeVar("Result")

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_full = [os.environ.get("FTRANS_FULL_TRACEBACKS", "").lower() not in ("", "0", "false")]


def full_tracebacks(wanted: bool = True) -> None:
    """Choose whether tracebacks show the frames of ftrans, too.

    By default they show your code.  Where ftrans or what it calls fails by itself, the last frame of ftrans stays, too.
    The environment variable FTRANS_FULL_TRACEBACKS=1 does the same as this function.

    Args:
        wanted: whether to show all frames.

    Example:
        >>> import ftrans as ft
        >>> ft.debug.full_tracebacks(True)
        >>> ft.debug.full_tracebacks(False)
    """
    _full[0] = bool(wanted)


def leave_out_frames(error: BaseException) -> None:
    """Leave frames of this package out of the traceback of an error, in the handler of a function that users call.

    After a bare `raise`, the frame of the handler is not in the traceback either: Python enters it before the handler.
    Inside of another such function nothing is done, since what looks at errors there needs to see all.
    """
    frame = None if _full[0] else sys._getframe(1).f_back
    while frame is not None and not frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    if _full[0] or frame is not None:
        return
    one: BaseException | None = error
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        one.__traceback__ = _of_user(one.__traceback__)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def short_tracebacks(f: Callable[P, Result]) -> Callable[P, Result]:
    """Decorate a public function that calls functions of the user."""

    @functools.wraps(f)
    def f_of_user(*args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            return f(*args, **kwargs)
        except BaseException as error:
            leave_out_frames(error)
            raise

    return f_of_user


def _of_user(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that lead from one of this package to one of the user."""
    kept: list[TracebackType] = []
    # Behind the last frame of the user, the last one of this package, and those of what it calls.
    inner: list[TracebackType] = []
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename.startswith(_FOLDER):
            # Of those that stay in the end, this may be the first.
            inner = [trace]
        elif filename.startswith("<ftrans "):
            pass
        elif inner and of_package(filename) is not None:
            inner.append(trace)
        else:
            kept.append(trace)
            inner = []
        trace = trace.tb_next
    if inner and not _is_raised_here(inner[-1]):
        kept += inner
    found: TracebackType | None = None
    for one in reversed(kept):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


def _is_raised_here(trace: TracebackType) -> bool:
    """Whether the last frame of a traceback is a `raise` of this package, whose message says all there is to say."""
    code = trace.tb_frame.f_code
    instruction = dis.opname[code.co_code[trace.tb_lasti]]
    return code.co_filename.startswith(_FOLDER) and instruction == "RAISE_VARARGS"
