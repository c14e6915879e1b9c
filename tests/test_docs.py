"""Every block of Python in README.md and docs/ runs, and prints what the page says it prints.

The blocks of one file follow each other in one namespace; `doc_pages.py` says how their outputs are compared.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections import deque
from pathlib import Path

import pytest
from doc_pages import Runner, blocks_of, is_same

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Where one of these is not installed, a page runs up to the first block that imports it.
OPTIONAL = ("torch", "matplotlib", "emcee", "psychrolib")
# Each recipe runs by itself (test_recipes.py), and Sphinx writes pages of its own.
OTHERS = {DOCS / "recipes.md", *DOCS.glob("_build/**/*.md")}
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")} - OTHERS)


def test_there_are_pages() -> None:
    assert ROOT / "README.md" in PAGES
    assert blocks_of(ROOT / "README.md")


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A block may write files, or draw.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    # A page lists what was traced again; other tests in this process are not on it.
    monkeypatch.setattr("ftrans.api.retraces._log", deque())
    blocks = blocks_of(page)
    runner = Runner(blocks)
    for block in blocks:
        for name in OPTIONAL:
            if re.search(rf"^\s*import {name}\b", block.code, re.MULTILINE):
                pytest.importorskip(name)
        runner.run(block)


TABLE = """\
name     calls      time  share
exp         12   1.50 ms   75 %
matmul       3    500 us   25 %
15 calls of f64[2]: 0.12345678"""


def test_outputs_are_compared() -> None:
    assert is_same(TABLE, TABLE)
    assert is_same(TABLE, TABLE.replace("0.12345678", "0.12345679"))
    assert is_same(TABLE, TABLE.replace("0.12345678", "0.12..."))
    assert is_same(TABLE, "name ...\nmatmul 3 ...: 0.1...")
    assert is_same(TABLE, "...\n15 calls ...")
    assert is_same(TABLE, TABLE.replace("1.50 ms", "12 s").replace("75 %", "9.5 %"), measured=True)


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("0.12345678", "0.12345778", id="a digit"),
        pytest.param("0.12345678", "0.13...", id="a digit before an ellipsis"),
        pytest.param("0.12345678", "-0.12345678", id="a sign"),
        pytest.param("  12  ", "  13  ", id="a whole number"),
        pytest.param("f64[2]", "f64[3]", id="a type"),
        pytest.param("matmul", "dot", id="a word"),
        pytest.param("matmul       3    500 us   25 %\n", "", id="a missing line"),
        pytest.param("matmul", "sin 1 2 us 0 %\nmatmul", id="an extra line"),
        pytest.param("\n15 calls of f64[2]: 0.12345678", "", id="a missing end"),
        pytest.param("name", "head\nname", id="an extra beginning"),
        pytest.param("matmul       3    500 us   25 %\n15", "...\n14", id="a number behind an ellipsis"),
        pytest.param("exp         12   1.50 ms   75 %\n", "...\nexp 11\n...\n", id="a number between ellipses"),
    ],
)
def test_outputs_that_differ_are_found(before: str, after: str, measured: bool) -> None:
    assert before in TABLE
    assert not is_same(TABLE, TABLE.replace(before, after), measured)


PAGE = """\
```python
def third(x):
    return x / 3


print(third(2.0))  # 0.6666667
print([third(1.0), 1.0])
```

It prints a list:

```text
[0.3333333, 1.0]
```

```python
# solve.py
import sys

for x in (1.0, 2.0):
    print(x)  # 1.0 2.0
print(sys._getframe().f_code.co_filename, sys._getframe().f_lineno)
```

```text
solve.py 6
```

```python
>>> third(1.0)
0.3333333
```
"""


def run_page(text: str, folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    blocks = blocks_of(page)
    runner = Runner(blocks)
    for block in blocks:
        runner.run(block)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("# 0.6666667", "# 0.6766667", id="a comment"),
        pytest.param("# 1.0 2.0", "# 1.0", id="a comment in a loop"),
        pytest.param("in (1.0, 2.0)", "in ()", id="nothing printed where a comment is"),
        pytest.param("[0.3333333, 1.0]", "[0.3333333, 1.1]", id="a text"),
        pytest.param("[0.3333333, 1.0]\n", "[0.3333333, 1.0]\n2\n", id="an extra line"),
        pytest.param("```text\n[0.3333333, 1.0]\n```\n", "", id="what is printed is not on the page"),
        pytest.param("print([third(1.0), 1.0])\n", "", id="a text, and nothing printed"),
        pytest.param("solve.py 6", "solve.py 7", id="a number of a line"),
        pytest.param("```python\n>>>", "```text\nmore\n```\n\n```python\n>>>", id="a text that follows another"),
        pytest.param(">>> third(1.0)\n0.33", ">>> third(1.0)\n0.34", id="a session"),
    ],
)
def test_a_page_that_lies_is_found(before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE, tmp_path)
    assert before in PAGE
    with pytest.raises(AssertionError):
        run_page(PAGE.replace(before, after), tmp_path)


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
