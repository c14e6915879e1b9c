"""The recipes of docs/recipes.md run, each by itself, where its package is installed (`make test-interop`)."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from doc_pages import Block, Runner, blocks_of

PAGE = Path(__file__).parent.parent / "docs" / "recipes.md"
MODULES = {"PyMC": "pymc", "scikit-learn": "sklearn"}


def sections() -> dict[str, list[Block]]:
    """The blocks below each heading."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    starts = {i: match[1] for i, line in enumerate(lines, 1) if (match := re.match(r"## (.+)", line))}
    found: dict[str, list[Block]] = {title: [] for title in starts.values()}
    for block in blocks_of(PAGE):
        found[starts[max(start for start in starts if start < block.line)]].append(block)
    return found


SECTIONS = sections()


@pytest.mark.parametrize("title", [title for title in SECTIONS if title != "Setup"])
def test_the_recipe_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(MODULES.get(title, title), exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    blocks = SECTIONS["Setup"] + SECTIONS[title]
    runner = Runner(blocks)
    with warnings.catch_warnings():
        # What the packages have to say of themselves.
        warnings.simplefilter("ignore")
        for block in blocks:
            runner.run(block)
