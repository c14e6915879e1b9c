"""The recipes of docs/recipes.md run, each by itself, where its package is installed (`make test-interop`)."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "recipes.md"
MODULES = {"PyMC": "pymc", "scikit-learn": "sklearn"}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, list[tuple[int, str]]]:
    """The blocks below each heading, with the numbers of their first lines."""
    text = PAGE.read_text()
    starts = [(m.start(), m.group(1)) for m in re.finditer(r"^## (.+)$", text, re.MULTILINE)]
    found: dict[str, list[tuple[int, str]]] = {title: [] for _, title in starts}
    for block in BLOCK.finditer(text):
        title = [title for start, title in starts if start < block.start()][-1]
        found[title].append((text[: block.start(1)].count("\n"), block.group(1)))
    return found


SECTIONS = sections()


@pytest.mark.parametrize("title", [title for title in SECTIONS if title != "Setup"])
def test_the_recipe_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(MODULES.get(title, title), exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        # What the packages have to say of themselves.
        warnings.simplefilter("ignore")
        for line, block in SECTIONS["Setup"] + SECTIONS[title]:
            exec(compile("\n" * line + block, str(PAGE), "exec"), namespace)
