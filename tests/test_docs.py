"""Every block of Python in README.md and docs/ runs, and prints what the page says it prints.

The blocks of one file follow each other in one namespace.  What a line prints stands behind it in a comment; numbers
are compared up to rounding.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Where one of these is not installed, a page runs up to the first block that imports it.
OPTIONAL = ("torch", "matplotlib", "emcee", "psychrolib")
# Each recipe runs by itself (test_recipes.py), and Sphinx writes pages of its own.
OTHERS = {DOCS / "recipes.md", *DOCS.glob("_build/**/*.md")}
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")} - OTHERS)
BLOCK = re.compile(r"^```(?:python|\{code-cell\} python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"print\(.*\)  # (.+)")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """The blocks of Python on a page, each with the number of its first line."""
    text = page.read_text()
    return [(text[: match.start(1)].count("\n") + 1, match.group(1)) for match in BLOCK.finditer(text)]


def test_there_are_pages() -> None:
    assert ROOT / "README.md" in PAGES
    assert blocks(ROOT / "README.md")


def run(block: str, page: Path, line: int, namespace: dict[str, object]) -> None:
    """Run a block that is no session, statement by statement, and compare what is printed with the comments."""
    text = "\n" * (line - 1) + block
    lines = text.splitlines()
    for statement in ast.parse(text, str(page)).body:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module([statement], []), str(page), "exec"), namespace)
        said = PRINTED.search(lines[statement.end_lineno - 1])
        if said and isinstance(statement, ast.Expr):
            assert_same(printed.getvalue().strip(), said.group(1), f"{page.name}:{statement.lineno}")


def assert_same(printed: str, said: str, where: str) -> None:
    """Whether two texts are the same, numbers up to rounding; an ellipsis stands for any text."""
    if "..." in said:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(said + "\n", printed + "\n", options), f"{where} prints {printed!r}"
        return
    words = [" ".join(NUMBER.sub("#", text).split()).replace("[ ", "[") for text in (printed, said)]
    assert words[0] == words[1], f"{where} prints {printed!r}, the page says {said!r}"
    numbers = [np.array(NUMBER.findall(text), float) for text in (printed, said)]
    np.testing.assert_allclose(*numbers, rtol=1e-6, atol=1e-9, err_msg=where)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A block may write files, or draw.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
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
            run(block, page, line, namespace)


def test_pictures_of_patterns_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    made = runpy.run_path(str(DOCS / "make_patterns.py"))
    for name, pattern in made["patterns"]().items():
        assert made["file_of"](name).read_text() == pattern.to_svg(), "run docs/make_patterns.py again"


def test_the_picture_of_the_decision_is_current() -> None:
    made = runpy.run_path(str(DOCS / "make_decision.py"))
    assert made["FILE"].read_text() == made["picture"](), "run docs/make_decision.py again"


def test_the_charts_of_benchmarks_are_current() -> None:
    made = runpy.run_path(str(DOCS / "make_benchmarks.py"))
    assert len(made["pictures"]()) == 5
    for file, text in made["pictures"]().items():
        assert file.read_text() == text, "run docs/make_benchmarks.py again"
