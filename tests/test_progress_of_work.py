"""Progress of work that takes long: what is shown, where, and that it is gone in the end."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn
from ftrans.autograd import tensor
from ftrans.base import progress
from ftrans.base.progress import counted, quiet, shows_progress, working


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    for _ in range(3000):
        if condition():
            return
        wait(0.01)
    raise AssertionError("it does not happen")


def nobody_looks() -> bool:
    """Whether the thread that shows progress has ended."""
    return not any(t.name == "ftrans progress" for t in threading.enumerate())


@pytest.fixture(autouse=True)
def at_rest() -> None:
    """No thread of an earlier test looks on, which would do so at its own pace."""
    until(nobody_looks)


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
            until(lambda: "preparing f: compiling g (1,200): 0 s" in seen.getvalue())
        until(lambda: "preparing f: 0 s" in seen.getvalue())
    text = seen.getvalue()
    # The line is cleared, and the thread ends.
    assert text.rstrip(" ").endswith("\r")
    until(nobody_looks)


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
    until(nobody_looks)


def slow(x: Any) -> Any:
    wait(0.02)
    return np.sum(np.sin(x) ** 2)


def looped(x: Any, steps: int = 30_000) -> Any:
    return np.sum(ft.fori_loop(0, steps, lambda i, y: np.sin(y), x))


def rough(x: Any) -> Any:
    return ft.fori_loop(0, 1000, lambda i, y: np.sin(y) + 0.1, x) - x / 7


def one_step(model: Any) -> None:
    def closure() -> Any:
        wait(0.02)
        loss = (model(tensor(np.ones((5, 2)))) ** 2).sum()
        loss.backward()
        return loss

    nn.optim.LBFGS(model).step(closure)


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
    "loop": (lambda: looped(np.ones(3)), ["running scan at test_progress_of_work.py"]),
    "loop in a gradient": (lambda: ft.grad(looped)(2.0), ["running grad(looped), scan at test_progress_of_work.py"]),
    "compiled loop": (lambda: ft.jit(looped)(np.ones(100)), ["running looped, scan at test_progress_of_work.py"]),
    "odeint": (
        lambda: ft.odeint(lambda y, t: -rough(y), np.ones(2), np.linspace(0.0, 0.1, 3)),
        ["running lambda, scan at test_progress_of_work.py"],
    ),
    "root": (lambda: ft.root(rough, np.ones(2)), ["running root", "finding a root"]),
    "minimize": (lambda: ft.scipy.optimize.minimize(slow, np.ones(2)), ["minimize, evaluation ("]),
    "L-BFGS": (lambda: one_step(nn.Linear(2, 1)), ["a step of L-BFGS, evaluation ("]),
    "argmin": (lambda: ft.argmin(lambda x, a: np.sum((rough(x) - a) ** 4), np.ones(4), 0.3), ["minimizing"]),
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


class Display:
    """IPython's display, as far as it is asked for; it remembers what was shown, in each place."""

    def __init__(self) -> None:
        self.places: list[list[dict[str, str]]] = []

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        place = [data]
        self.places.append(place)
        return SimpleNamespace(update=lambda data, raw: place.append(data))


def notebook(monkeypatch: pytest.MonkeyPatch) -> Display:
    """What is shown below the cells of a notebook, whose kernel this process seems to be."""
    found = Display()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", found)  # type: ignore[arg-type]
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    return found


def test_work_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    display = notebook(monkeypatch)
    with working("compiling <f>"):
        until(lambda: bool(display.places))
    (place,) = display.places
    assert place[0]["text/plain"] == "compiling <f>: 0 s"
    assert "compiling &lt;f&gt;: 0 s</pre>" in place[0]["text/html"]
    assert place[-1] == {"text/plain": "", "text/html": ""}


def test_the_bar_of_a_loop_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    display = notebook(monkeypatch)
    ft.scan(lambda c, x: (c + x, c), 0.0, np.ones(30), progress="adding")
    # The loop has its bar, and is not told of in addition.
    (place,) = display.places
    assert place[-1]["text/plain"].startswith("adding: 100%|")
    assert "30/30" in place[-1]["text/plain"]


def test_a_stderr_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = screen(monkeypatch)
    with working("f"):
        seen.close()
        wait()
    until(nobody_looks)
