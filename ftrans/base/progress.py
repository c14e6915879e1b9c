"""Progress: what the library says on a terminal or in a notebook while one piece of work takes more than two seconds.

Work that may take long runs in a block of `working`.  While there is such a block, a thread looks at it every quarter
of a second, and shows what is done and for how long; so nothing has to be called in between, and XLA may compile
meanwhile.  Where nobody looks, a block costs a look at two variables.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from shutil import get_terminal_size
from typing import Any, ParamSpec, Protocol, TypeVar

from .forks import lock
from .notebooks import Area, is_in_notebook

P = ParamSpec("P")
Result = TypeVar("Result")

# Work that takes less is not shown; the thread looks on in these intervals.
_PATIENCE, _EVERY = 2.0, 0.25

# What the user wants; None: progress where somebody looks.
_wanted: ContextVar[bool | None] = ContextVar("progress wanted", default=None)
_wanted_everywhere: list[bool | None] = [None]
# The stderr that was asked last whether somebody looks, and the answer.
_asked: tuple[object, bool] = (None, False)
# The outermost piece of work of this thread or task.
_outermost: ContextVar[_Work | None] = ContextVar("outermost work", default=None)


def is_watched() -> bool:
    """Whether somebody looks at stderr: a terminal, or a notebook."""
    return is_in_notebook() or (hasattr(sys.stderr, "isatty") and sys.stderr.isatty())


def shows_progress() -> bool:
    """Whether progress is to be shown here.  This takes a tenth of a microsecond, since compiled code asks."""
    here = _wanted.get()
    wanted = _wanted_everywhere[0] if here is None else here
    if wanted is not None:
        return wanted
    global _asked
    if _asked[0] is not sys.stderr:
        _asked = sys.stderr, is_watched()
    return _asked[1]


class Progress:
    """A setting of whether progress is shown, from now on; in a `with` statement, for its block alone."""

    def __init__(self, wanted: bool | None) -> None:
        self._before = _wanted_everywhere[0]
        self._setting = wanted
        _wanted_everywhere[0] = wanted

    def __enter__(self) -> Progress:
        _wanted_everywhere[0] = self._before
        self._token = _wanted.set(self._setting)
        return self

    def __exit__(self, *_: object) -> None:
        _wanted.reset(self._token)


class _Work:
    """A piece of work that may be shown.  Pieces inside it are told in its text.

    Args:
        what: what is done, such as "compiling f".
    """

    __slots__ = ("_context", "_count", "_inner", "_line", "_outer", "_started", "_token", "_what")

    def __init__(self, what: str | Callable[[], str]) -> None:
        self._what = what
        self._count = 0
        self._outer: _Work | None = None
        self._started: float | None = None
        self._line: _Line | None = None

    def advance(self) -> None:
        """Count one more step."""
        self._count += 1

    def __enter__(self) -> _Work:
        outermost = _outermost.get()
        if outermost is not None:
            self._outer = outermost
            outermost._inner.append(self)
        elif shows_progress():
            self._inner: list[_Work] = []
            # A notebook shows what is printed below the cell that this context belongs to.
            self._context = copy_context()
            self._token = _outermost.set(self)
            self._started = time.monotonic()
            _watch.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._outer is not None:
            self._outer._inner.remove(self)
        elif self._started is not None:
            _outermost.reset(self._token)
            _watch.end(self)

    def show(self, now: float) -> None:
        """Show what is done, if that takes long."""
        assert self._started is not None
        seconds = now - self._started
        if seconds < _PATIENCE:
            return
        texts = [work._text() for work in (self, *list(self._inner))]
        self._context.run(self._write, f"{': '.join(texts)}: {seconds:.0f} s")

    def clear(self) -> None:
        """Take away what is shown."""
        if self._line is not None:
            self._context.run(self._write, "")

    def _write(self, text: str) -> None:
        # Where stderr has been closed, the work goes on.
        with suppress(OSError, ValueError):
            self._line = self._line or _new_line()
            if self._line is not None:
                self._line.show(text)

    def _text(self) -> str:
        what = self._what if isinstance(self._what, str) else self._what()
        return f"{what} ({self._count:,})" if self._count else what


class _Watch:
    """The thread that shows what works, while something does."""

    def __init__(self) -> None:
        self._lock = lock()
        self._works: set[_Work] = set()
        self._thread: threading.Thread | None = None

    def begin(self, work: _Work) -> None:
        """Look at a piece of work until it ends."""
        with self._lock:
            self._works.add(work)
            # A forked child has no thread of its parent.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, name="ftrans progress", daemon=True)
                self._thread.start()

    def end(self, work: _Work) -> None:
        """Look at a piece of work no more."""
        with self._lock:
            self._works.discard(work)
            work.clear()

    def _look(self) -> None:
        while True:
            time.sleep(_EVERY)
            with self._lock:
                if not self._works:
                    self._thread = None
                    return
                for work in self._works:
                    work.show(time.monotonic())


_watch = _Watch()


class _Quiet:
    """A block in which nothing is shown."""

    def __enter__(self) -> None:
        self._token = _wanted.set(False)

    def __exit__(self, *_: object) -> None:
        _wanted.reset(self._token)


def working(what: str | Callable[[], str]) -> _Work:
    """A context for work that may take long.

    Args:
        what: what is done, as text, or a function that returns it, which is called only if it is shown.

    Returns:
        A context manager; `advance()` of its value counts steps.
    """
    return _Work(what)


def counted(what: str) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Decorate a function whose first argument is a function, the calls of which are the steps of its work.

    Args:
        what: what is done.
    """

    def decorate(f: Callable[P, Result]) -> Callable[P, Result]:
        @functools.wraps(f)
        def shown(*args: Any, **kwargs: Any) -> Any:
            with working(what) as work:

                def step(*values: Any) -> Any:
                    work.advance()
                    return args[0](*values)

                return f(step, *args[1:], **kwargs)  # type: ignore[arg-type]

        return shown

    return decorate


def quiet() -> _Quiet:
    """A context in which nothing is shown, for what shows its progress itself."""
    return _Quiet()


class _Line(Protocol):
    """One line of text that changes in place."""

    def show(self, text: str) -> None:
        """Show a text in place of the last one; nothing, if it is empty."""


class _TerminalLine:
    """A line of a terminal, below the bars of tqdm that are there."""

    def __init__(self) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        self._bar = tqdm(total=0, bar_format="{desc}", leave=False)

    def show(self, text: str) -> None:
        if text:
            # A line that is too long would be two, of which the first one stays.
            self._bar.set_description_str(text[: get_terminal_size().columns - 1])
        else:
            self._bar.close()


def _new_line() -> _Line | None:
    """Where to show a text here; None if that needs a package that is not installed."""
    if is_in_notebook():
        return Area()
    # Imported where it is needed, since this file is imported with ftrans.
    from importlib.util import find_spec

    return _TerminalLine() if find_spec("tqdm") is not None else None
