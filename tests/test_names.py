"""Functions, scopes and inputs may be called anything: in generated source, prints, pictures and profiles."""

from __future__ import annotations

import re
import sys
import unicodedata
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.base.names import identifier

# Of each category of characters that Unicode has, the first, the last and one in between.
BY_CATEGORY: dict[str, list[str]] = {}
for _character in map(chr, range(sys.maxunicode + 1)):
    BY_CATEGORY.setdefault(unicodedata.category(_character), []).append(_character)
CHARACTERS = "".join(c for found in BY_CATEGORY.values() for c in (found[0], found[len(found) // 2], found[-1]))

NAMES = [
    "f²", "ﬁ", "１", "σ", "e\u0301", "\u0301", "1x", "a b", "", "<lambda>", "class", "None", "np", "_report_",
    "_lines_", "c0_", "a\nb", "a\r\tb", "'\"\\", "a\x00b", "\ud800", "]]>", "<!--&-->", "$\\bad$", "%s {0}", CHARACTERS,
]  # fmt: skip


def called(name: str) -> Any:
    def f(x: Any) -> Any:
        with ft.debug.scope(name or "scope"):
            return np.sin(x) * 2.0 + np.ones(())

    f.__name__ = name
    return f


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_function_of_any_name(name: str) -> None:
    f = called(name)
    slope = pytest.approx(2.0 * np.cos(0.5))
    assert ft.grad(f)(0.5) == slope
    assert ft.grad(ft.jit(f))(0.5) == slope
    assert ft.jit(ft.grad(f))(0.5) == slope
    assert ft.vmap(f)(np.array([0.5]))[0] == f(0.5)
    program = ft.trace(ft.grad(ft.jit(f)))(0.5)
    assert str(program).encode()
    assert all(line.isprintable() for line in str(program).split("\n"))


def test_identifiers() -> None:
    for name in [*NAMES, *CHARACTERS, *(f"a{c}" for c in CHARACTERS)]:
        found = identifier(name)
        namespace: dict[str, Any] = {}
        exec(f"def {found}(): pass", namespace)
        assert callable(namespace[found])
    assert [identifier(name) for name in ("f", "σ", "f²", "grad(loss)")] == ["f", "σ", "f2", "grad_loss_"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_pictures_hold_any_name(name: str, tmp_path: Path) -> None:
    drawing = ft.debug.draw(ft.trace(called(name))(0.5), tmp_path / "a.dot", names=[name])
    for label in re.findall("label=<(.*)> tooltip", drawing.dot):
        ElementTree.fromstring(f"<label>{label}</label>")


def test_charts_hold_any_name(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    f = called("".join(NAMES))
    with ft.debug.profile() as profile:
        ft.grad(f)(0.5)
    for kind in ("flame", "bars"):
        profile.chart(tmp_path / f"{kind}.svg", kind, group_by="scope")
        ElementTree.parse(tmp_path / f"{kind}.svg")


def test_profiles_of_all_names(tmp_path: Path) -> None:
    with ft.debug.profile() as profile:
        for name in NAMES:
            ft.grad(called(name))(0.5)
    rows = profile.table(group_by="scope", limit=None)
    assert rows.encode()
    assert all(line.isprintable() for line in rows.split("\n"))
    ElementTree.fromstring(f"<div>{profile._repr_html_()}</div>")
    profile.chrome_trace(tmp_path / "trace.json")
