"""The names of torch in docs/torch.md: none is left out, and what the page says is so."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import ftrans as ft

SCRIPT = Path(__file__).parent.parent / "docs" / "make_torch.py"
sys.path.insert(0, str(SCRIPT.parent))
spec = importlib.util.spec_from_file_location("make_torch", SCRIPT)
assert spec is not None
assert spec.loader is not None
make_torch = sys.modules["make_torch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_torch)


def test_the_page_is_what_the_script_makes() -> None:
    written, made = make_torch.PAGE.read_text(), make_torch.page()
    assert written == made, f"run python {SCRIPT.parent.name}/{SCRIPT.name}"


@pytest.mark.parametrize("namespace", make_torch.PLACES)
def test_every_name_has_an_entry(namespace: str) -> None:
    entries = make_torch.entries(namespace)
    assert entries
    lacking = [e.name for e in entries if e.kind == "no" and not e.remark]
    assert not lacking, "say what to write instead in docs/torch_remarks.py"


@pytest.mark.parametrize("name", [*make_torch.OTHERWISE, *make_torch.INSTEAD])
def test_what_is_written_instead_exists(name: str) -> None:
    text = {**make_torch.OTHERWISE, **make_torch.INSTEAD}[name]
    for path in re.findall(r"`((?:nn|autograd|ft)\.[\w.]+)", text):
        found = ft
        for part in path.removeprefix("ft.").split("."):
            found = getattr(found, part)


def test_the_names_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13"):
        pytest.skip("the page is that of torch 2.13")
    for namespace in make_torch.PLACES:
        assert make_torch.names_on_page(namespace) == make_torch.public(namespace)
