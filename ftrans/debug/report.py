"""Tables of measurements and estimates, sorted, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..base import html
from ..base.names import printable
from ..base.source import Line, at_line, user_line
from ..base.tables import aligned, shortened

NO_SCOPE = "(no scope)"
NO_LINE = "(no line)"
_LONGEST_NAME = 60


@dataclass
class Row:
    """One row of a table.

    Attributes:
        name: the primitive, line or scope.
        calls: number of calls.
        self_time: seconds, without callees.
        total_time: seconds, with callees.
        nbytes: bytes of operands and results, or, for compiled programs, bytes read and written.
        flops: floating-point operations.
    """

    name: str
    calls: int = 0
    self_time: float = 0.0
    total_time: float = 0.0
    nbytes: float = 0.0
    flops: float = 0.0

    @property
    def time_per_call(self) -> float:
        """Seconds per call, with callees."""
        return self.total_time / self.calls if self.calls else 0.0

    @property
    def flops_per_second(self) -> float:
        """Operations for each second of `self_time`."""
        return self.flops / self.self_time if self.self_time else 0.0


Column = tuple[str, Callable[[Row], str]]

_KEYS: dict[str, Callable[[Row], Any]] = {
    "self_time": lambda r: r.self_time,
    "total_time": lambda r: r.total_time,
    "time_per_call": lambda r: r.time_per_call,
    "calls": lambda r: r.calls,
    "bytes": lambda r: r.nbytes,
    "flops": lambda r: r.flops,
    "flops_per_second": lambda r: r.flops_per_second,
    "name": lambda r: r.name,
}
# What other profilers call them.
_ALIASES = {
    "self_cpu_time_total": "self_time",
    "cpu_time_total": "total_time",
    "cpu_time": "time_per_call",
    "tottime": "self_time",
    "cumtime": "total_time",
    "cumulative": "total_time",
    "count": "calls",
    "ncalls": "calls",
    "nbytes": "bytes",
}


def sort_rows(rows: Sequence[Row], sort_by: str) -> list[Row]:
    """The rows in order: the largest first, names alphabetically.

    Raises:
        ValueError: there is nothing of that name to sort by.
    """
    key = _ALIASES.get(sort_by, sort_by)
    if key not in _KEYS:
        import difflib

        near = difflib.get_close_matches(str(sort_by), [*_KEYS, *_ALIASES], 1)
        raise ValueError(
            f"a table cannot be sorted by {sort_by!r}{f' (did you mean {near[0]!r}?)' if near else ''}; choose one of "
            + ", ".join(_KEYS)
            + at_line(user_line())
        )
    return sorted(rows, key=_KEYS[key], reverse=key != "name")


def first_rows(rows: list[Row], limit: int | None, notes: list[str]) -> tuple[list[Row], list[str]]:
    """The rows up to a limit, and the notes with one on those that are left out."""
    left = 0 if limit is None else max(len(rows) - limit, 0)
    return rows[:limit], [*notes, f"{left} more rows: limit=None shows all"] if left else notes


def check_group(group_by: str, groups: Sequence[str]) -> None:
    """Raise a ValueError unless `group_by` is one of `groups`."""
    if group_by not in groups:
        names = ", ".join(map(repr, groups))
        raise ValueError(f"group_by is one of {names}, not {group_by!r}{at_line(user_line())}")


def line_label(line: Line | None) -> str:
    """A line as a table shows it: file, number and code."""
    return f"{line!r}: {line.text}" if line is not None and line.text else NO_LINE if line is None else repr(line)


def text_table(head: str, columns: Sequence[Column], rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Rows under a head line, numbers aligned right, and notes below."""
    cells = [[shortened(printable(r.name), _LONGEST_NAME), *(write(r) for _, write in columns)] for r in rows]
    titles, *lines = aligned([[head, *(title for title, _ in columns)], *cells])
    rule = "-" * max(map(len, [titles, *lines]))
    return "\n".join([titles, rule, *lines, rule, *notes])


def html_table(
    head: str, columns: Sequence[Column], rows: Sequence[Row], notes: Sequence[str], bars: Sequence[float] = ()
) -> str:
    """The same for a notebook; `bars` are numbers that are drawn as bars behind the second column."""
    most = max(bars, default=0.0) or 1.0
    lines = []
    for i, row in enumerate(rows):
        written = [write(row) for _, write in columns]
        hover = "\n".join(f"{title}: {text}" for (title, _), text in zip(columns, written, strict=True))
        cells = [html.Cell(html.code(row.name, "name"), f"{printable(row.name)}\n{hover}")]
        for k, text in enumerate(written):
            share = bars[i] / most if k == 1 and bars else 0.0
            cells.append(html.Cell(html.escaped(text), is_number=True, share=share))
        lines.append(cells)
    return html.table([head, *(title for title, _ in columns)], lines) + html.notes(notes)


def seconds(value: float) -> str:
    """A time with three digits and a unit that suits it."""
    return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)))


def amount(value: float, unit: str = "") -> str:
    """A count with three digits and k, M, G, T."""
    return _scaled(value, ((f"T{unit}", 1e12), (f"G{unit}", 1e9), (f"M{unit}", 1e6), (f"k{unit}", 1e3), (unit, 1.0)))


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    if not value:
        return f"0 {units[-1][0]}".strip()
    # A value that rounds up to a thousand of one unit is one of the next.
    unit, scale = next((u for u in units if abs(value) >= 0.9995 * u[1]), units[-1])
    scaled = value / scale
    digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
    text = f"{scaled:.0f}" if scaled == int(scaled) and scale == 1.0 else f"{scaled:.{digits}f}"
    return f"{text} {unit}".strip()
