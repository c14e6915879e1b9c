"""Links that suit the repository, for the site: those with the name of a page have its title, those to folders go."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"\[[\w/]+\.md\]\(([\w./]+\.md)(#[\w-]+)?\)")
FOLDER = re.compile(r"\[([\w/]+)\]\((\.\./[\w/]+)\)")


def use_titles(app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrite the links of a page that Sphinx is about to read."""
    folder = (Path(app.srcdir) / page).parent

    def titled(link: re.Match[str]) -> str:
        file = folder / link[1]
        heading = re.search(r"^# (.*)$", file.read_text(), re.MULTILINE) if file.exists() else None
        return f"[{heading[1]}]({link[1]}{link[2] or ''})" if heading else link[0]

    def without_folder(link: re.Match[str]) -> str:
        return f"`{link[1]}/`" if (folder / link[2]).is_dir() else link[0]

    source[0] = FOLDER.sub(without_folder, LINK.sub(titled, source[0]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", use_titles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
