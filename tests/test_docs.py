"""Every block of Python in README.md and docs/ runs; the blocks of one file follow each other in one namespace."""

from __future__ import annotations

import doctest
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Where one of these is not installed, a page runs up to the first block that imports it.
OPTIONAL = ("torch",)
# Each recipe runs by itself: see test_recipes.py.
DOCS = [page for page in (ROOT / "docs").glob("*.md") if page.name != "recipes.md"]
PAGES = sorted(p for p in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS] if p.exists())
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """The blocks of Python on a page, each with the number of its first line."""
    text = page.read_text()
    return [(text[: match.start(1)].count("\n") + 1, match.group(1)) for match in BLOCK.finditer(text)]


def test_there_are_pages() -> None:
    assert ROOT / "README.md" in PAGES
    assert blocks(ROOT / "README.md")


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A block may write files.
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, block in blocks(page):
        for name in OPTIONAL:
            if re.search(rf"^\s*import {name}\b", block, re.MULTILINE):
                pytest.importorskip(name)
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, namespace, page.name, str(page), line - 1)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            assert runner.run(test, clear_globs=False).failed == 0
            namespace = test.globs
        else:
            exec(compile("\n" * (line - 1) + block, str(page), "exec"), namespace)


def test_pictures_of_patterns_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    made = runpy.run_path(str(ROOT / "docs" / "make_patterns.py"))
    for name, pattern in made["patterns"]().items():
        assert made["file_of"](name).read_text() == pattern.to_svg(), "run docs/make_patterns.py again"
