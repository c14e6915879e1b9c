"""Explanation: what a function costs and why, as text, for rich and for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..api.checkpoint import Residuals
from ..api.sparsity import Sparsity
from ..base import html
from ..base.names import printable
from ..base.source import Line
from ..base.tables import aligned, shortened, wrapped
from ..core.program import Program
from . import report
from .cost import CostReport
from .graph import number
from .report import amount, line_label, seconds
from .retraces import Retraces

# Each table shows so many rows.
_MOST_ROWS = 8
_LONGEST = 70


class Barrier(NamedTuple):
    """Equations of one kind, at one line, at which something ends.

    Attributes:
        operation: name of the primitive, and how often it occurs there.
        line: the user's line.
        why: what it does, as text.
    """

    operation: str
    line: Line | None
    why: str


class Times(NamedTuple):
    """How long the steps took, in seconds.

    Attributes:
        tracing: running the Python code on traced values.
        transforming: simplifying and rewriting the program.
        compiling: lowering, and XLA.
        compiled: one call of the compiled function.
        plain: one call of the function itself on its arguments; None where it was not made, because it takes too long.
    """

    tracing: float
    transforming: float
    compiling: float
    compiled: float
    plain: float | None


class _Section(NamedTuple):
    """A part of the report: a headline, and a table below it."""

    title: str
    headline: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()


class Explanation:
    """What a function costs and why; printing it shows the report.

    Attributes:
        name: name of the function.
        program: its program for these arguments.
        costs: operations and bytes by line, and what XLA says of the compiled program.
        kept: what reverse mode keeps for the way back; None for functions without a floating-point argument or result.
        sparsity: the pattern of the Hessian of a scalar function, of the Jacobian of others; None where there is none.
        derivative: "Hessian" or "Jacobian".
        dense: operations that forbid sparsity: each element of the result depends on each one of an operand.
        unfused: operations at which fusion ends: XLA writes the result to memory.
        retraces: why the function was traced again, where it is jitted.
        times: how long tracing, compiling and running took.
        notes: what could not be found out, and why.
    """

    def __init__(
        self,
        program: Program,
        costs: CostReport,
        kept: Residuals | None,
        sparsity: Sparsity | None,
        derivative: str,
        dense: Sequence[Barrier],
        unfused: Sequence[Barrier],
        retraces: Retraces,
        times: Times,
        notes: Sequence[str],
    ) -> None:
        self.name = program.name
        self.program = program
        self.costs = costs
        self.kept = kept
        self.sparsity = sparsity
        self.derivative = derivative
        self.dense = tuple(dense)
        self.unfused = tuple(unfused)
        self.retraces = retraces
        self.times = times
        self.notes = tuple(notes)

    @property
    def equations(self) -> int:
        """Number of equations of the program, with those of its loops and branches."""
        return _count(self.program)

    def __str__(self) -> str:
        lines = wrapped(self._title())
        for section in self._sections():
            lines += ["", *wrapped(f"{section.title}: {section.headline}"), *_text_table(section)]
        return "\n".join(lines)

    __repr__ = __str__

    def __rich__(self) -> Any:
        """The report for `rich.print`."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        parts: list[Any] = [Text(self._title(), style="bold")]
        for section in self._sections():
            parts.append(Text.assemble((f"\n{section.title}: ", "bold cyan"), section.headline))
            if section.rows:
                table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
                for i, column in enumerate(section.columns):
                    table.add_column(column, justify="left" if i in (0, len(section.columns) - 1) else "right")
                for row in section.rows:
                    table.add_row(*map(Text, row))
                parts.append(table)
        return Group(*parts)

    def _repr_html_(self) -> str:
        parts = [f"<div><b>{html.escaped(self._title())}</b></div>"]
        for index, section in enumerate(self._sections()):
            last = len(section.columns) - 1
            rows = [
                [html.Cell(html.code(text), is_number=0 < i < last) for i, text in enumerate(row)]
                for row in section.rows
            ]
            head = f"<b>{html.escaped(section.title)}</b>: {html.escaped(section.headline)}"
            parts.append(
                html.details(head, html.table(section.columns, rows), is_open=index < 2)
                if rows
                else f"<div>{head}</div>"
            )
        program = html.details("<b>program</b>", html.block(str(self.program)))
        return html.page(*parts, program)

    def _title(self) -> str:
        types = ", ".join(map(str, self.program.in_types))
        results = ", ".join(map(str, self.program.out_types))
        return f"{printable(self.name)}({types}) -> {results}: {number(self.equations, 'equation')}"

    def _sections(self) -> list[_Section]:
        found = [self._section_of_costs(), self._section_of_times()]
        if self.kept is not None:
            found.append(_section_of_kept(self.kept))
        if self.sparsity is not None:
            height, width = self.sparsity.shape
            headline = f"{height} x {width}, {self.sparsity.nnz:,} entries ({100 * self.sparsity.density:.3g} %)"
            rows = [(one.operation, one.why, _label(one.line)) for one in self.dense[:_MOST_ROWS]]
            found.append(_Section(self.derivative, headline, ("forbids sparsity", "", "line"), rows))
        if self.unfused:
            rows = [(one.operation, one.why, _label(one.line)) for one in self.unfused[:_MOST_ROWS]]
            headline = "operations whose results XLA writes to memory"
            found.append(_Section("fusion", headline, ("ends at", "writes", "line"), rows))
        if self.retraces:
            traces = [(str(one.number), "; ".join(map(printable, one.reasons))) for one in self.retraces[-_MOST_ROWS:]]
            found.append(_Section("retraces", f"{len(self.retraces)}", ("trace", "changed"), traces))
        return [*found, *(_Section("note", note) for note in self.notes)]

    def _section_of_costs(self) -> _Section:
        costs = self.costs
        rows = [
            (_label(name), amount(row.flops), amount(row.nbytes, "B"))
            for row in report.sort_rows(costs.rows(), "flops")[:_MOST_ROWS]
            for name in [row.name]
        ]
        headline = (
            f"{amount(costs.estimated_flops)} FLOPs as written; compiled {amount(costs.flops)} FLOPs, "
            f"{amount(costs.nbytes, 'B')} read and written, {amount(costs.temporary_nbytes, 'B')} of temporary memory"
        )
        return _Section("cost", headline, ("line", "FLOPs", "bytes", ""), [(*row, "") for row in rows])

    def _section_of_times(self) -> _Section:
        times = self.times
        plain = "" if times.plain is None else f", not compiled {seconds(times.plain)}"
        prepared = f"tracing {seconds(times.tracing)}, transforming {seconds(times.transforming)}"
        return _Section(
            "time", f"{prepared}, compiling {seconds(times.compiling)}; a call {seconds(times.compiled)}{plain}"
        )


def _section_of_kept(kept: Residuals) -> _Section:
    """Memory for the way back, by line; arguments are there anyway."""
    by_line: dict[str, tuple[int, dict[str, None]]] = {}
    for one in kept:
        label = one.name if one.line is None else _label(one.line)
        nbytes, made = by_line.setdefault(label, (0, {}))
        made[one.primitive or "argument"] = None
        by_line[label] = nbytes + one.nbytes, made
    ordered = sorted(by_line.items(), key=lambda item: -item[1][0])[:_MOST_ROWS]
    rows = [(", ".join(made), amount(nbytes, "B"), label) for label, (nbytes, made) in ordered]
    return _Section("kept for the way back", amount(kept.total, "B"), ("made by", "bytes", "line"), rows)


def _label(line: Line | str | None) -> str:
    return shortened(printable(line if isinstance(line, str) else line_label(line)), _LONGEST)


def _text_table(section: _Section) -> list[str]:
    if not section.rows:
        return []
    last = len(section.columns) - 1
    texts = section.columns.index("line") if "line" in section.columns else last
    # An empty column in front moves the others in.
    return aligned([("", *row) for row in (section.columns, *section.rows)], (1, last + 1), texts + 1)


def _count(program: Program) -> int:
    return len(program.eqns) + sum(map(_count, program.subprograms()))
