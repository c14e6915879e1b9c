"""Blocks of code as the site shows them, where the repository's tests want something else of them.

A session of Python ends with a blank line in the source, and not on the site.  In a tutorial the comment that says what
a line prints is left out, because the output stands below.  What a comment above `plt.subplots` says about the picture
is also its text for those who do not see it.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

FENCED = re.compile(r"^```[^\n]*\n.*?^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^(\s*print\(.*\))  # .*$", re.MULTILINE)
PICTURE = re.compile(r"((?:^# .*\n)+)^\w.* = plt\.subplots\(", re.MULTILINE)


def tidy(app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrite the blocks of a page that Sphinx is about to read."""

    def tidied(block: re.Match[str]) -> str:
        text = re.sub(r"\n+```$", "\n```", block[0])
        return PRINTED.sub(r"\1", text) if text.startswith("```{code-cell}") else text

    source[0] = FENCED.sub(tidied, source[0])


def described(source: str) -> str | None:
    """What the code of a cell says about the picture that it draws."""
    found = PICTURE.search(source)
    return found and " ".join(line.removeprefix("# ") for line in found[1].splitlines())


def describe_pictures(app: Sphinx, document: nodes.document) -> None:
    """Give the pictures of a page that was run their texts."""
    for cell in document.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            code = next(cell.findall(nodes.literal_block)).astext()
            for picture in cell.findall(nodes.image):
                picture["alt"] = described(code) or picture.get("alt", "")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", tidy)
    app.connect("doctree-resolved", lambda app, document, page: describe_pictures(app, document))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
