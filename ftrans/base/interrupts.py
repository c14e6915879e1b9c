"""Interrupts: Ctrl-C, held off while something is half done.

Python raises KeyboardInterrupt in the main thread between any two of its instructions, also between a call that
overwrites the arrays of a model and the line that puts the new ones into it.  Where that would leave things broken, the
signal is noted, and goes to its handler a moment later.

For that moment alone the handler of SIGINT is another one.  It is put back before anybody can ask for it, so that
programs that save, chain or compare handlers never meet it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")


class _Handler:
    """The handler of SIGINT during one call.

    Code inside that call may have saved it, and call it later: then it is the handler that it had taken the place of.

    Attributes:
        before: that handler.
        is_holding: whether the call still runs.
        noted: the arguments of the signals that have come meanwhile.
    """

    __slots__ = ("before", "is_holding", "noted")

    def __init__(self, before: Callable[[int, FrameType | None], Any]) -> None:
        self.before = before
        self.is_holding = True
        self.noted: list[tuple[int, FrameType | None]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.is_holding:
            self.noted.append((number, frame))
        else:
            self.before(number, frame)

    def put_back(self) -> None:
        """Put the handler before back, unless code inside the call has set one of its own."""
        found = _set(self.before)
        if found is not self and found is not None:
            _set(found)


def _set(handler: Any) -> Any:
    """Set the handler of SIGINT; return the one before, or None where there are no signals."""
    import signal

    try:
        return signal.signal(signal.SIGINT, handler)
    except ValueError:
        # In an interpreter that is not the main one of its process.
        return None


class _Process:
    """The main thread, the only one in which signals are handled, and the handler that holds them off there now."""

    __slots__ = ("handler", "main")

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        self.handler: _Handler | None = None

    def forked(self) -> None:
        """Go on in a child process, whose main thread is the one that has forked."""
        if self.main != get_ident():
            # What the main thread of the parent was about goes on in the parent only.
            handler, self.main, self.handler = self.handler, get_ident(), None
            if handler is not None:
                handler.is_holding = False
                handler.put_back()


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


def uninterrupted(f: Callable[P, Result]) -> Callable[P, Result]:
    """A function during which Ctrl-C raises nothing; what came in the meantime is raised at its end.

    In the main thread a call costs some 10 microseconds more; other threads are never interrupted.
    """

    @functools.wraps(f)
    def f_uninterrupted(*args: P.args, **kwargs: P.kwargs) -> Result:
        if get_ident() != _process.main or _process.handler is not None:
            return f(*args, **kwargs)
        import signal

        before = signal.getsignal(signal.SIGINT)
        if not callable(before):
            # The signal is ignored, ends the process, or is not Python's.
            return f(*args, **kwargs)
        handler = _Handler(before)
        try:
            _process.handler = handler
            _set(handler)
            return f(*args, **kwargs)
        finally:
            try:
                handler.put_back()
            finally:
                # Handlers of other signals may raise where something is called, which this is not.
                handler.is_holding = False
                _process.handler = None
                for noted in handler.noted:
                    before(*noted)

    return f_uninterrupted
