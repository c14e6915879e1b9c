"""Watching: a process that is one of several ends when it waits for the others too long.

What several processes compute together is complete when all of them have taken part.  One that hangs, or has left the
loop, would keep the others waiting for ever, since to JAX it is alive.  So a thread looks at how long this process has
waited, and ends it with a message.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_LOOKS_EVERY = 0.5


class Watch:
    """How long this process has waited, and for what.

    Attributes:
        limit: seconds after which the process is ended.
        parent: the process that started this one and must not end before it; None if that does not matter.
    """

    def __init__(self) -> None:
        self.limit = 600.0
        self.parent: int | None = None
        self._waits: dict[object, tuple[float, str, bool]] = {}
        self._latest: tuple[str, Any] | None = None
        self._has_latest = threading.Condition()
        self._is_running = False
        self._starting = threading.Lock()
        self._describe: Callable[[str, bool], str]

    def start(self, describe: Callable[[str, bool], str]) -> bool:
        """Start the threads; return False if they run already.

        Args:
            describe: makes the message, from what was waited for, and whether it is this process's own.
        """
        with self._starting:
            if self._is_running:
                return False
            self._is_running, self._describe = True, describe
            for work in (self._look, self._follow):
                threading.Thread(target=work, name="ftrans watch", daemon=True).start()
        return True

    @contextmanager
    def waiting_for(self, what: str, is_own: bool = False) -> Iterator[None]:
        """A block that must end within the limit; `is_own` where it does not wait for other processes."""
        token = object()
        self._waits[token] = time.monotonic(), what, is_own
        try:
            yield
        finally:
            del self._waits[token]

    def follow(self, what: str, result: Any) -> None:
        """Watch until an array of JAX, or a later one, has been computed."""
        with self._has_latest:
            self._latest = what, result
            self._has_latest.notify()

    def _follow(self) -> None:
        while True:
            with self._has_latest:
                while self._latest is None:
                    self._has_latest.wait()
                (what, result), self._latest = self._latest, None
            try:
                with self.waiting_for(what):
                    result.block_until_ready()
            except RuntimeError:
                # It failed, which whoever reads it will hear; or it was donated to a later program.
                pass
            del result

    def _look(self) -> None:
        while True:
            time.sleep(min(_LOOKS_EVERY, self.limit / 4))
            if self.parent is not None and os.getppid() != self.parent:
                end(f"{self._describe('', True)}: what launched this process has ended")
            begun, what, is_own = min(self._waits.copy().values(), default=(0.0, "", False))
            if what and time.monotonic() - begun > self.limit:
                print(f"\n{self._describe(what, is_own)} for {self.limit:g} seconds", file=sys.stderr, flush=True)
                # A notebook's stderr is no file.
                faulthandler.dump_traceback(sys.__stderr__ or 2, all_threads=True)
                end("")


def end(message: str) -> NoReturn:
    """End this process at once, without waiting for the others."""
    if message:
        print(message, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(1)


watch = Watch()
