"""Notebooks: output of a cell that changes in place, where this process runs a notebook's code.

What is written to stderr is red there, and a line that is written over stays.  An `Area` is an output of the cell, by
IPython's `display`, and needs no widgets.
"""

from __future__ import annotations

import sys
from typing import Any

# As what is printed looks; colours are those of the page.
_LOOK = (
    "margin:0;padding:0;border:0;background:none;color:inherit;white-space:pre-wrap;"
    "font:13px/1.4 var(--jp-code-font-family,ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace)"
)


def is_in_notebook() -> bool:
    """Whether the code of a notebook runs in this process."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]

    return hasattr(get_ipython(), "kernel")


class Area:
    """A place below the cell that runs when it is first shown."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, page: str | None = None) -> None:
        """Show a text in place of what was there.

        Args:
            text: the text; where it is empty, the place is, too.
            page: the same as HTML.
        """
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        data = {"text/plain": text, "text/html": page or (lines(text) if text else "")}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


class AreaFile:
    """What tqdm takes for a terminal: it shows the last line that was written."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._area = Area()

    def write(self, text: str) -> None:
        """Show a line, which begins with a carriage return."""
        if text != "\n":
            self._area.show(text.replace("\r", "").rstrip())

    def flush(self) -> None:
        """Nothing is held back."""


def lines(text: str) -> str:
    """Lines of text as HTML, in the font of the notebook's own output."""
    # Imported where it is needed, since this file is imported with ftrans.
    from .html import escaped

    return f'<pre style="{_LOOK}">{escaped(text)}</pre>'
