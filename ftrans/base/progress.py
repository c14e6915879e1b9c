"""Progress: what the library says on a terminal or in a notebook while one piece of work takes more than two seconds.

Work that may take long runs in a block of `working`.  A thread of its own waits, and shows what is done and for how
long by tqdm; so nothing has to be called in between, and XLA may compile meanwhile.  Where nobody looks, a block costs
a look at two variables.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

# Work that takes less is not shown; then the text is written again in these intervals.
_PATIENCE, _EVERY = 2.0, 0.25

# What the user wants; None: progress where somebody looks.
_wanted: ContextVar[bool | None] = ContextVar("progress wanted", default=None)
_wanted_everywhere: list[bool | None] = [None]
# The outermost piece of work of this thread or task.
_outermost: ContextVar[_Work | None] = ContextVar("outermost work", default=None)


def is_watched() -> bool:
    """Whether somebody looks at stderr: a terminal, or a notebook."""
    return "ipykernel" in sys.modules or (hasattr(sys.stderr, "isatty") and sys.stderr.isatty())


def shows_progress() -> bool:
    """Whether progress is to be shown here."""
    here = _wanted.get()
    wanted = _wanted_everywhere[0] if here is None else here
    return is_watched() if wanted is None else wanted


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

    def __init__(self, what: str | Callable[[], str]) -> None:
        self._what = what
        self._count = 0
        self._outer: _Work | None = None
        self._inner: list[_Work] = []
        self._is_done: threading.Event | None = None

    def advance(self) -> None:
        """Count one more step."""
        self._count += 1

    def __enter__(self) -> _Work:
        outermost = _outermost.get()
        if outermost is not None:
            self._outer = outermost
            outermost._inner.append(self)
        elif shows_progress() and _is_installed("tqdm"):
            self._token = _outermost.set(self)
            self._is_done = threading.Event()
            self._thread = threading.Thread(target=self._show, name="ftrans progress", daemon=True)
            self._started = time.monotonic()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._outer is not None:
            self._outer._inner.remove(self)
        elif self._is_done is not None:
            _outermost.reset(self._token)
            self._is_done.set()
            # What the user prints next is below an empty line, not behind the text.
            self._thread.join(timeout=2 * _EVERY)

    def _text(self) -> str:
        what = self._what if isinstance(self._what, str) else self._what()
        return f"{what} ({self._count:,})" if self._count else what

    def _show(self) -> None:
        """Show the text until the work is done, if it takes long."""
        assert self._is_done is not None
        if self._is_done.wait(_PATIENCE):
            return
        bar = _new_bar()
        while True:
            texts = [work._text() for work in (self, *list(self._inner))]
            bar.set_description_str(f"{': '.join(texts)}: {time.monotonic() - self._started:.0f} s")
            if self._is_done.wait(_EVERY):
                break
        bar.close()


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


@functools.cache
def _is_installed(package: str) -> bool:
    # Imported where it is needed, since this file is imported with ftrans.
    from importlib.util import find_spec

    return find_spec(package) is not None


def _new_bar() -> Any:
    """A line of text, in a notebook a widget where it has some."""
    if "ipykernel" in sys.modules and _is_installed("ipywidgets"):
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    else:
        from tqdm import tqdm  # type: ignore[import-untyped]
    return tqdm(total=0, bar_format="{desc}", leave=False)
