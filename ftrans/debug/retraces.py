"""retraces: which compiled functions were traced again, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api.call import name_of
from ..api.closures import code_of
from ..api.retraces import Retrace, retraces_so_far
from ..base import html
from ..base.names import printable
from ..base.source import Line, at_line, user_line
from ..base.tables import aligned
from . import report

_TITLES = ("function", "trace", "called at", "tracing", "changed")


class Retraces(list[Retrace]):
    """The latest retraces, the oldest first, as a list that prints as a table."""

    def table(self, limit: int | None = 30) -> str:
        """A table as text.

        Args:
            limit: how many of the latest retraces to show; None for all.
        """
        chosen = self if limit is None else self[-limit:]
        if not chosen:
            return "no function has been traced again"
        # The number of the trace and its time are aligned to the right.
        lines = aligned([_TITLES, *map(_texts, chosen)], left=(0, 2, 4), texts=4)
        lines.insert(1, "-" * max(map(len, lines)))
        if len(chosen) < len(self):
            lines.append(f"{len(self) - len(chosen)} earlier ones: table(limit=None) shows all")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            [
                html.Cell(html.code(function, "name"), "" if one.defined is None else one.defined.describe()),
                html.Cell(number, is_number=True),
                html.Cell(html.code(called), "" if one.called is None else one.called.describe()),
                html.Cell(seconds, is_number=True),
                html.Cell("<br>".join(map(html.escaped, one.reasons))),
            ]
            for one in self
            for function, number, called, seconds, _ in [_texts(one)]
        ]
        return html.page(html.table(_TITLES, rows) if rows else html.span(self.table()))


def _texts(one: Retrace) -> tuple[str, ...]:
    called = "" if one.called is None else repr(one.called)
    reasons = "; ".join(map(printable, one.reasons))
    return printable(one.function), str(one.number), called, report.seconds(one.seconds), reasons


def _place(line: Line | None) -> tuple[str, int] | None:
    return None if line is None else (line.filename, line.number)


def retraces(f: Callable[..., Any] | None = None) -> Retraces:
    """Why compiled functions were traced again: the latest 1,000 retraces of `ft.jit` and `nn.jit` in this process.

    A retrace costs a compilation.  It is caused by arguments of other shapes or dtypes, by other static arguments, by a
    branch of Python that goes the other way, by modules whose structure has changed; and by a function that is given to
    `jit` anew, such as a lambda in a loop.

    Args:
        f: only those of functions with the name and the code of this one, jitted or not; all by default.

    Returns:
        A list of `Retrace`, which prints as a table.  Each has `function`, `defined` and `called` (lines), `number`,
        `reasons` and `seconds`.

    Raises:
        TypeError: `f` is not a function.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> scale = ft.jit(lambda x: 2.0 * x)
        >>> _ = scale(np.ones(3)), scale(np.ones(4))
        >>> ft.debug.retraces()[-1].reasons
        ('argument 0 changed from f64[3] to f64[4]',)
    """
    found = retraces_so_far()
    if f is not None:
        if not callable(f):
            raise TypeError(f"retraces takes a function, not {type(f).__name__}{at_line(user_line())}")
        names = {name_of(f), name_of(f).removeprefix("jit(").removesuffix(")")}
        code = code_of(f)
        place = code and (code.co_filename, code.co_firstlineno)
        found = [one for one in found if one.function in names and place == _place(one.defined)]
    return Retraces(found)
