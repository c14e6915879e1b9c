"""Tables as text: aligned columns, which fit the terminal where the output is one."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from shutil import get_terminal_size
from textwrap import wrap

_GAP = "  "
# Texts are cut off to this length, at least, before columns are left out.
_SHORTEST = 20
_MORE = "..."


def width_of_output() -> int | None:
    """How many characters a line has where `print` writes to; None if that is no terminal."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return get_terminal_size().columns


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,), texts: int | None = 0) -> list[str]:
    """The lines of a table.  On a terminal that is too narrow, texts are cut off, and then columns left out.

    Args:
        rows: the cells of each row; those of the first one are the titles.
        left: which columns are aligned left; all others are aligned right.
        texts: the column that may be cut off; None for none.
    """
    columns = list(range(len(rows[0])))
    widths = [max(len(row[i]) for row in rows) for i in columns]
    room = width_of_output()
    if room is not None:
        least = [min(width, _SHORTEST) if i == texts else width for i, width in enumerate(widths)]
        # The first column says what a row is about.
        while sum(least[i] + len(_GAP) for i in columns) > room + len(_GAP) and len(columns) > 2:
            if len(columns) == len(rows[0]):
                room -= len(_GAP + _MORE)
            columns.remove(next(i for i in reversed(columns) if i != texts))
        if texts is not None:
            others = sum(widths[i] + len(_GAP) for i in columns if i != texts)
            widths[texts] = max(least[texts], min(widths[texts], room - others))
    lines = []
    for row in rows:
        cells = [shortened(row[i], widths[i]) for i in columns]
        cells = [c.ljust(widths[i]) if i in left else c.rjust(widths[i]) for c, i in zip(cells, columns, strict=True)]
        lines.append(_GAP.join(cells).rstrip())
    if len(columns) < len(rows[0]):
        lines[0] += _GAP + _MORE
    return lines


def wrapped(text: str) -> list[str]:
    """The lines of a sentence, as the terminal takes them."""
    room = width_of_output()
    return [text] if room is None else wrap(text, room, subsequent_indent=_GAP)


def shortened(text: str, length: int) -> str:
    """The text, cut off where it is longer."""
    return text if len(text) <= length else text[: length - len(_MORE)] + _MORE
