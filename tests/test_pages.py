"""HTML for notebooks: well-formed, escaped, with the user's lines; nothing of it is imported with ftrans."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans import nn

EMPTY = ("br", "path", "rect", "polyline", "meta")
X = np.ones(4)


def loss(x: Any) -> Any:
    with ft.debug.scope("<scope>"):
        return ft.scan(lambda c, r: (np.sin(c) + r, c), x[0], x)[0]


def profile() -> Any:
    with ft.debug.profile() as prof:
        ft.grad(loss)(X)
    return prof


def history() -> Any:
    found = nn.History()
    found.epochs += [{"epoch": i + 1, "loss": 1.0 / (i + 1), "val_<scope>": float("nan")} for i in range(3)]
    return found


def gradient_error() -> Any:
    @ft.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (3.1 * x**2 * ct,))
    cube.__name__ = "<scope>"
    with pytest.raises(ft.testing.GradientError) as caught:
        ft.testing.check_grads(lambda x: np.sum(cube(np.sin(x))), X[:2])
    return caught.value


def model() -> Any:
    class Named(nn.Linear):
        def extra_repr(self) -> str:
            return "<scope>"

    whole = nn.Sequential(Named(4, 2), nn.Dropout(0.5))
    whole[0].freeze()
    return whole.eval()


THINGS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "program": (lambda: ft.trace(loss)(X), ["test_pages.py:23", "f64[4]", "sin", "2 equations", "FLOPs"]),
    "constant program": (lambda: ft.trace(lambda: 1.0)(), ["return <span", "1.0"]),
    "profile": (profile, ["by primitive", "by scope", "&lt;scope&gt;", "self time"]),
    "cost": (lambda: ft.debug.cost(loss)(X), ["by line", "&lt;scope&gt;"]),
    "sparsity": (lambda: ft.jacobian_sparsity(lambda x: x[1:] * x[:-1])(X), ["3 x 4, 6 entries (50 %)", "<svg"]),
    "empty sparsity": (lambda: ft.Sparsity([], [], (0, 0)), ["0 x 0, 0 entries"]),
    "history": (history, ["<polyline", "val_&lt;scope&gt;", "0.3333"]),
    "empty history": (nn.History, ["no epoch yet"]),
    "module": (model, ["Named", "&lt;scope&gt;", "f32[2,4]", "not trained", "evaluation mode", "10 parameters"]),
    "summary": (lambda: nn.summary(model(), np.ones((1, 4), np.float32)), ["Named"]),
    "residuals": (lambda: ft.residuals(loss)(X), ["cos in scan", "kept for the way back"]),
    "zeros": (lambda: ft.explain_zero(lambda x: np.sum(x > 1) + 0 * x[0])(X), ["zero for"]),
    "no zeros": (lambda: ft.explain_zero(loss)(X), ["No gradient of loss is zero"]),
    "gradient error": (gradient_error, ["relative error", "operations whose own derivative is wrong"]),
}


class Balanced(HTMLParser):
    """Checks that elements are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag


@pytest.mark.parametrize("name", THINGS)
def test_pages(name: str) -> None:
    make, parts = THINGS[name]
    page = make()._repr_html_()
    for part in parts:
        assert part in page
    assert "<scope>" not in page
    assert "prefers-color-scheme:dark" in page
    assert "--jp-content-font-color1" in page
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []


def test_times_of_the_last_profile_are_shown_at_equations() -> None:
    def f(x: Any) -> Any:
        return np.tanh(x)

    program = ft.trace(f)(X)
    assert "in the last profile" not in program._repr_html_()
    with ft.debug.profile() as prof:
        ft.vmap(f)(X)
    assert "in 1 call (this operation at this line, in the last profile)" in program._repr_html_()
    del prof


def test_drawings_are_svg_where_graphviz_is(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = ft.debug.draw(ft.trace(loss)(X))
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert drawing._repr_svg_() is None


def test_pages_are_imported_when_they_are_shown() -> None:
    code = (
        "import sys, ftrans as ft; p = ft.trace(lambda x: x * 2)(1.0); assert 'ftrans.debug' not in sys.modules; "
        "p._repr_html_(); assert 'ftrans.debug.pages' in sys.modules; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
