"""The documentation site: whether its pages hang together, which takes no Sphinx, and, in the long suite, the build."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import tables
from test_layering import PUBLIC_MODULES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
FENCED = re.compile(r"^(`{3,}|:{3,})\{([\w-]+)\}(.*?)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def directives(page: Path, name: str) -> list[tuple[str, str]]:
    """The arguments and the contents of the directives of a name on a page."""
    return [(match[3].strip(), match[4]) for match in FENCED.finditer(page.read_text()) if match[2] == name]


def in_tree(page: Path) -> list[Path]:
    """The pages that the tables of contents of a page list."""
    lines = [line for _, content in directives(page, "toctree") for line in content.splitlines()]
    return [(page.parent / f"{line}.md").resolve() for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_the_navigation() -> None:
    reached = [DOCS / "index.md"]
    for page in reached:
        for found in in_tree(page):
            assert found.is_file(), f"{page} lists {found}"
            assert found not in reached, f"{found} is listed twice"
            reached.append(found)
    assert set(reached) == set(PAGES)


def test_pictures_of_tutorials_have_a_text() -> None:
    for page in (DOCS / "tutorials").glob("*.md"):
        for before in re.findall(r"(.*)\n.* = plt\.subplots\(", page.read_text()):
            assert before.startswith("# "), f"{page.name}: say above plt.subplots what one sees, not {before!r}"


@functools.cache
def anchors(page: Path) -> set[str]:
    """What links to a page may name: its headings, as GitHub and the site make anchors of them."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@tables.each(lambda page: page.name, page=[*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_links_resolve(page: Path) -> None:
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", CODE.sub("", page.read_text()))):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{page}: {link}"
        assert not anchor or anchor in anchors(target), f"{page}: {link} has no such heading"


def test_the_reference_has_every_public_name() -> None:
    listed: dict[str, set[str]] = {}
    for page in (DOCS / "reference").glob("*.md"):
        for module, content in directives(page, "entries"):
            names = {name for line in content.splitlines() if not line.startswith(":") for name in line.split()}
            listed.setdefault(module, set()).update(names or importlib.import_module(module).__all__)
        for _, content in directives(page, "eval-rst"):
            listed.setdefault("ftrans", set()).update(re.findall(r"^   ftrans\.(\w+)$", content, re.MULTILINE))
    for module in PUBLIC_MODULES:
        public = importlib.import_module(module)
        names = {name for name in public.__all__ if not isinstance(getattr(public, name), ModuleType)}
        assert names <= listed.get(module, set()) or not names, f"{module}: {sorted(names - listed.get(module, set()))}"
        assert listed.get(module, set()) <= set(public.__all__), module


def test_the_overview_has_every_name() -> None:
    named = set(
        re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", (DOCS / "reference" / "overview.md").read_text())))
    )
    for module in ("ftrans", "ftrans.debug", "ftrans.testing"):
        missing = set(importlib.import_module(module).__all__) - named
        assert not missing, f"{module}: {sorted(missing)}"


@pytest.mark.skipif(not tables.whole, reason="takes minutes: make docs builds the site")
def test_the_site_builds_without_warnings() -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d"]
    folders = [str(DOCS / "_build" / "doctrees"), str(DOCS), str(DOCS / "_build" / "html")]
    built = subprocess.run([*command, *folders], capture_output=True, text=True, timeout=1800)
    assert built.returncode == 0, built.stderr
