"""The reference: entries for the public names of a module, and docstrings as reStructuredText.

Docstrings are written as Markdown with sections such as `Args:`, which napoleon reads.  Before it does, asterisks and
bars are escaped, code in backticks becomes literal text unless it is a name, and tables become tables.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

DOCS = Path(__file__).parent.parent
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
NAME = re.compile(r"(ft\.)?[A-Za-z_][\w.]*(\(\))?")
SPECIAL = re.compile(r"^(\s*\* )|[\\*|`]|(?<=\w)_(?!\w)", re.MULTILINE)
ROW = re.compile(r"\s*\|.*\|\s*")


class Entries(SphinxDirective):
    """The entries of the names that stand in the content, or of all public names of a module, with a table before them.

        ```{entries} ftrans.nn.data
        ```

    Names that the module takes over from another library as they are, are listed without entries.  The option
    `no-index` has names whose entries are on another page, too.
    """

    required_arguments = 1
    option_spec: ClassVar = {"no-index": str.split}
    has_content = True

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        names = " ".join(self.content).split() or sorted(module.__all__)
        own = [name for name in names if is_own(getattr(module, name))]
        lines = ["```{eval-rst}", f".. currentmodule:: {module.__name__}", "", ".. autosummary::", ""]
        lines += [f"   {name}" for name in own]
        for name in own:
            lines += ["", f".. {directive_of(getattr(module, name))}:: {name}"]
            if name in self.options.get("no-index", ()):
                lines += ["   :no-index:"]
        lines += ["```"]
        others = [name for name in names if name not in own and not isinstance(getattr(module, name), ModuleType)]
        if others:
            lines += ["", "Unchanged, from the library of that name: " + ", ".join(f"`{n}`" for n in others) + "."]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def is_own(found: Any) -> bool:
    """Whether a public name is the library's own, so that its docstring is."""
    return str(getattr(found, "__module__", "")).startswith("ftrans") and not isinstance(found, ModuleType)


def directive_of(found: Any) -> str:
    if inspect.isclass(found):
        return "autoclass"
    return "autofunction" if inspect.isroutine(found) else "autodata"


def to_restructured_text(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place; of one that NumPy or SciPy wrote, keep the first paragraph."""
    if str(getattr(found, "__module__", "")).startswith(("numpy", "scipy")):
        lines[:] = itertools.takewhile(str.strip, lines)
    written: list[str] = []
    for kind, group in itertools.groupby(lines, key=kinds_of_lines()):
        if kind == "prose":
            written += escaped("\n".join(group)).split("\n")
        else:
            lines_of = list(group)
            written += list_table(lines_of) if kind == "table" else lines_of
    lines[:] = written + see_also(found)


def see_also(found: Any) -> list[str]:
    """The functions of the same kind as one of `ftrans`, and the pages that call it most."""
    name = getattr(found, "__name__", "")
    if getattr(importlib.import_module("ftrans"), name or "numpy", None) is not found:
        return []
    kind = next((names for names in kinds() if name in names), [])
    lines = ["", ".. seealso::", ""]
    others = ", ".join(f"`{other} <ftrans.{other}>`" for other in kind if other != name)
    pages = ", ".join(f":doc:`/{page}`" for page in pages_that_call(name))
    lines += [f"   {others}", ""] if others else []
    lines += [f"   At work in {pages}", ""] if pages else []
    return lines if others or pages else []


@functools.cache
def kinds() -> list[list[str]]:
    """The public functions of `ftrans` as their page groups them."""
    page = (DOCS / "reference" / "functions.md").read_text()
    return [re.findall(r"^   ftrans\.(\w+)$", part, re.MULTILINE) for part in page.split("\n## ")]


def pages_that_call(name: str) -> list[str]:
    """The three pages that call a function most often."""
    counts = {page: len(re.findall(rf"\bft\.{name}\(", text)) for page, text in texts().items()}
    return sorted((page for page in counts if counts[page]), key=lambda page: -counts[page])[:3]


@functools.cache
def texts() -> dict[str, str]:
    """The pages that are no reference, by their names on the site."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if not {"_build", "reference"} & set(page.parts)]
    return {page.relative_to(DOCS).with_suffix("").as_posix(): page.read_text() for page in pages}


def kinds_of_lines() -> Callable[[str], str]:
    """A function that tells of one line after the other whether it is prose, blank, part of a table or of a session."""
    in_session = False

    def kind(line: str) -> str:
        nonlocal in_session
        in_session = line.lstrip().startswith(">>>") or (in_session and bool(line.strip()))
        if in_session:
            return "session"
        if not line.strip():
            return "blank"
        return "table" if ROW.fullmatch(line) else "prose"

    return kind


def escaped(text: str) -> str:
    """A paragraph, with what only Markdown takes for text escaped."""
    parts = []
    place = 0
    for match in CODE.finditer(text):
        parts += [outside(text[place : match.start()]), code(match.group(2))]
        place = match.end()
        # Markup ends at a word boundary, which this stands for: `Parameter`s.
        if text[place : place + 1].isalnum():
            parts.append("\\ ")
    return "".join(parts) + outside(text[place:])


def outside(text: str) -> str:
    """Prose, where a star is a star but for those that begin the entries of a list."""
    return SPECIAL.sub(lambda match: match.group(1) or "\\" + match.group(), text)


def code(text: str) -> str:
    """Code in a docstring: a link to what it names if there is an entry, else literal text."""
    if not NAME.fullmatch(text):
        return f"``{text}``"
    if text.startswith("ft."):
        return f"`{text} <ftrans.{text[3:].removesuffix('()')}>`"
    return f"`{text}`"


def list_table(rows: list[str]) -> list[str]:
    """A table of Markdown as one of reStructuredText."""
    margin = " " * (len(rows[0]) - len(rows[0].lstrip()))
    lines = ["", f"{margin}.. list-table::", f"{margin}   :header-rows: 1", ""]
    for row in [rows[0], *rows[2:]]:
        for i, cell in enumerate(row.strip().strip("|").split("|")):
            lines.append(f"{margin}   {'  -' if i else '* -'} {escaped(cell.strip())}".rstrip())
    return [*lines, ""]


def plain_defaults(
    app: Sphinx, what: str, name: str, found: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """A signature in which classes that are defaults have their names."""
    return signature and re.sub(r"<class '([\w.]+)'>", r"\1", signature), returned


def one_signature(app: Sphinx) -> None:
    """Let a function have the signature that it is defined with: its overloads are for type checkers."""
    for file in (DOCS.parent / "ftrans").rglob("*.py"):
        if "@overload" not in file.read_text():
            continue
        name = ".".join(file.relative_to(DOCS.parent).with_suffix("").parts)
        analyzer = ModuleAnalyzer.for_module(name)
        analyzer.analyze()
        analyzer.overloads.clear()


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("entries", Entries)
    app.connect("builder-inited", one_signature)
    app.connect("autodoc-process-docstring", to_restructured_text, priority=400)
    app.connect("autodoc-process-signature", plain_defaults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
