"""Interrupts: Ctrl-C, held off while something is half done.

Python raises KeyboardInterrupt in the main thread between any two of its instructions, also between a call that
overwrites the arrays of a model and the line that puts the new ones into it.  Where that would leave things broken, the
signal is noted, and raised a moment later.
"""

from __future__ import annotations

import os
import signal
import threading
from threading import get_ident
from time import monotonic
from types import FrameType
from typing import Any

# Asking Python for the handler of a signal takes longer than all else here, so it is asked this often at most.
LOOK_SECONDS = 0.05


class _Interrupts:
    """The handler of SIGINT, which passes signals on to the one before unless they are held off.

    Attributes:
        main: the main thread, the only one in which signals are handled.
        depth: how many blocks hold them off.
        is_pending: whether one has come since.
        next_look: when to look again whether this is still the handler.
        before: the handler that it has taken the place of.
    """

    __slots__ = ("before", "depth", "is_pending", "main", "next_look")

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        self.depth = 0
        self.is_pending = False
        self.next_look = 0.0
        self.before: Any = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """What Python calls when there is a signal."""
        if self.depth:
            self.is_pending = True
        else:
            self.before(number, frame)

    def look(self) -> None:
        """Become the handler, in place of any function that is; that one is called by this one."""
        self.next_look = monotonic() + LOOK_SECONDS
        found = signal.getsignal(signal.SIGINT)
        if callable(found) and found != self.handle:
            self.before = found
            signal.signal(signal.SIGINT, self.handle)

    def forked(self) -> None:
        """Go on in a child process, whose main thread may be another one."""
        self.main, self.depth, self.is_pending = get_ident(), 0, False


_interrupts = _Interrupts()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_interrupts.forked)


class _HeldOff:
    """Within this block Ctrl-C raises nothing; what came in the meantime is raised at its end.

    It costs half a microsecond in the main thread; other threads are never interrupted.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        if get_ident() == _interrupts.main:
            if not _interrupts.depth and monotonic() >= _interrupts.next_look:
                _interrupts.look()
            _interrupts.depth += 1

    def __exit__(self, *_: object) -> None:
        if get_ident() == _interrupts.main:
            _interrupts.depth -= 1
            if _interrupts.is_pending and not _interrupts.depth:
                _interrupts.is_pending = False
                _interrupts.before(int(signal.SIGINT), None)


interrupts_held_off = _HeldOff()


def interrupt_handler() -> Any:
    """The handler of SIGINT that the user or Python has set, as `signal.getsignal` gives it."""
    found = signal.getsignal(signal.SIGINT)
    return _interrupts.before if found == _interrupts.handle else found
