"""Progress of work that takes long: what is shown, where, and that it is gone in the end."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.base import progress
from ftrans.base.progress import counted, quiet, shows_progress, working


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """What is written to stderr, a terminal; work is shown at once."""
    found = Screen()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    return found


def wait(seconds: float = 0.1) -> None:
    time.sleep(seconds)


def test_work_inside_other_work_is_told_in_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = screen(monkeypatch)
    with working("preparing f"):
        with working(lambda: "compiling g") as work:
            for _ in range(1200):
                work.advance()
            wait()
        wait()
    text = seen.getvalue()
    assert "preparing f: compiling g (1,200): 0 s" in text
    assert "preparing f: 0 s" in text
    # The line is cleared, and the thread has ended.
    assert text.rstrip(" ").endswith("\r")
    assert not [t for t in threading.enumerate() if t.name == "ftrans progress"]


def test_short_work_and_other_outputs_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = screen(monkeypatch)
    with quiet(), working("a"):
        wait()
    with ft.show_progress(False), working("b"):
        wait()
    monkeypatch.setattr(progress, "_PATIENCE", 2.0)
    with working("c"):
        pass
    assert seen.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not shows_progress()
    with ft.show_progress(True):
        assert shows_progress()
    assert not shows_progress()


def test_settings() -> None:
    ft.show_progress(True)
    assert shows_progress()
    with ft.show_progress(None):
        pass
    assert shows_progress()
    ft.show_progress(None)
    with pytest.raises(TypeError, match="takes True, False or None, not 3"):
        ft.show_progress(3)  # type: ignore[arg-type]


def test_errors_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen(monkeypatch)
    with pytest.raises(ZeroDivisionError), working("f"):
        wait(1 / 0)
    assert not [t for t in threading.enumerate() if t.name == "ftrans progress"]


def slow(x: Any) -> Any:
    wait(0.02)
    return np.sum(np.sin(x) ** 2)


CASES = {
    "compile": (lambda: ft.jit(slow)(np.ones(3)), ["tracing slow", "compiling slow, 3 equations"]),
    "prepare": (lambda: ft.sparse_hessian(slow).prepare(np.ones(3)), ["preparing sparse_hessian of slow"]),
    "check_grads": (lambda: ft.testing.check_grads(slow, np.ones(2)), ["checking the derivatives of slow"]),
    "chunk_size": (
        lambda: ft.jacobian(lambda x: np.outer(x, x).sum(1), chunk_size=1)(np.ones(300)),
        ["jacobian of lambda, 300 x 300, in chunks of 1"],
    ),
    "hessian": (
        lambda: ft.hessian(lambda x: np.outer(x, x).sum() ** 2, chunk_size=1)(np.ones(200)),
        ["hessian of lambda, 200 x 200, in chunks of 1"],
    ),
    "argmin": (lambda: ft.argmin(lambda x, a: np.sum((x - a) ** 4), np.ones(40), 0.3), ["minimizing"]),
}


@pytest.mark.parametrize("name", CASES)
def test_work_of_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, texts = CASES[name]
    seen = screen(monkeypatch)
    call()
    for text in texts:
        assert text in seen.getvalue()


def test_counted_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    class Work(progress._Work):
        def __exit__(self, *_: object) -> None:
            counts.append(self._count)

    monkeypatch.setattr(progress, "working", Work)

    @counted("f")
    def twice(f: Callable[[int], int], x: int) -> int:
        return f(f(x))

    assert twice(lambda x: x + 1, 1) == 3
    assert counts == [2]
