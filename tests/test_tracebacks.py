"""Tracebacks: what users see of an error in their code, and that nothing else about the error changes."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn
from ftrans.autograd import tensor

X = np.ones(3)
HERE, FOLDER = Path(__file__).name, Path(ft.__file__).parent


@pytest.fixture(autouse=True)
def as_for_users() -> Iterator[None]:
    ft.debug.full_tracebacks(False)
    yield
    ft.debug.full_tracebacks(True)


def wrong(x: Any, *_: Any) -> Any:
    return np.sum(x @ np.ones(4))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


MODEL = Model()
# The functions of this file that are in the traceback, behind the call of the test.
CALLS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "grad": (lambda: ft.grad(wrong)(X), ["<lambda>", "wrong"]),
    "jit of grad": (lambda: ft.jit(ft.grad(wrong))(X), ["<lambda>", "wrong"]),
    "nested": (lambda: ft.hessian(lambda x: ft.vmap(wrong)(x).sum())(np.ones((2, 3))), ["<lambda>"] * 2 + ["wrong"]),
    "vjp": (lambda: ft.vjp(wrong, X), ["<lambda>", "wrong"]),
    "trace": (lambda: ft.trace(wrong)(X), ["<lambda>", "wrong"]),
    "root": (lambda: ft.root(wrong, X), ["<lambda>", "wrong"]),
    "odeint": (lambda: ft.odeint(wrong, X, np.ones(2)), ["<lambda>", "wrong"]),
    "scan": (lambda: ft.scan(wrong, X, X), ["<lambda>", "wrong"]),
    "minimize": (lambda: ft.scipy.optimize.minimize(wrong, X), ["<lambda>", "wrong"]),
    "module": (lambda: MODEL(X), ["<lambda>", "forward"]),
    "nn.jit": (lambda: nn.jit(lambda m, x: m(x))(MODEL, X), ["<lambda>", "<lambda>", "forward"]),
    "nn.grad": (lambda: nn.grad(lambda m, x: m(x).sum())(MODEL, X), ["<lambda>", "<lambda>", "forward"]),
    "argument": (lambda: ft.grad(wrong)("a"), ["<lambda>"]),
    "no function": (lambda: ft.jit(3), ["<lambda>"]),  # type: ignore[call-overload]
    "backward": (lambda: tensor(X, requires_grad=True).backward(), ["<lambda>"]),
}


def error_of(call: Callable[[], Any]) -> Exception:
    with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("name", CALLS)
def test_users_see_their_code(name: str) -> None:
    call, functions = CALLS[name]
    frames = traceback.extract_tb(error_of(call).__traceback__)[1:]
    assert [(Path(frame.filename).name, frame.name) for frame in frames] == [(HERE, f) for f in functions]


def test_all_frames() -> None:
    ft.debug.full_tracebacks()
    frames = traceback.extract_tb(error_of(lambda: ft.grad(wrong)(X)).__traceback__)
    assert sum(Path(frame.filename).is_relative_to(FOLDER) for frame in frames) > 5


def test_what_fails_below_the_users_code_stays() -> None:
    def singular(x: Any) -> Any:
        return np.linalg.inv(x).sum()

    with pytest.raises(np.linalg.LinAlgError) as caught:
        ft.grad(singular)(np.zeros((2, 2)))
    own, *numpy = traceback.extract_tb(caught.value.__traceback__)[1:]
    assert Path(own.filename).is_relative_to(FOLDER)
    assert numpy
    assert all("numpy" in frame.filename for frame in numpy)


def test_the_error_is_the_same() -> None:
    cause, made = KeyError("cause"), ValueError("mine")
    made.add_note("a note")

    def fails(x: Any) -> Any:
        raise made from cause

    with pytest.raises(ValueError, match="mine") as caught:
        ft.jit(ft.grad(fails))(X)
    assert caught.value is made
    assert made.__cause__ is cause
    assert made.__notes__[0] == "a note"


def test_causes_are_shortened() -> None:
    def fails(x: Any) -> Any:
        try:
            ft.grad(wrong)(x)
        except ValueError as error:
            raise KeyError("mine") from error

    with pytest.raises(KeyError) as caught:
        ft.jit(fails)(X)
    assert caught.value.__cause__ is not None
    assert [f.name for f in traceback.extract_tb(caught.value.__cause__.__traceback__)] == ["fails", "wrong"]


@pytest.mark.parametrize("setting", ["0", "1"])
def test_the_variable(setting: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import ftrans as ft\nft.grad(lambda x: unknown)(1.0)\n")
    found = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={"FTRANS_FULL_TRACEBACKS": setting, "PYTHONPATH": str(FOLDER.parent)},
        check=False,
    ).stderr
    assert found.count('File "') == 2 if setting == "0" else found.count('File "') > 5
    assert "NameError: name 'unknown' is not defined" in found
