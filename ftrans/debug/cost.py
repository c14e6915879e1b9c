"""cost: XLA's cost analysis of a compiled function, and the operations of each line of the user's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..api.jit import trace
from ..base import html, tree
from ..base.source import Line, at_line
from ..base.tracebacks import short_tracebacks
from ..core.program import Program, programs_in
from ..run.costs import flops as eqn_flops
from ..run.costs import nbytes as eqn_nbytes
from ..run.costs import program_flops
from ..xla import Compiled, Costs
from ..xla.meshes import is_on_several_devices
from . import report
from .report import Row

_GROUPS = ("line", "scope")


class CostReport:
    """The cost of a compiled program.  Printing it shows the table by line.

    Attributes:
        name: name of the function.
        flops: floating-point operations of the compiled program by XLA's analysis, which counts the body of a loop
            once, and what library routines (of linear algebra) do not at all.
        nbytes: bytes read and written, by the same analysis.
        temporary_nbytes: bytes of memory needed in addition to arguments and results.
        estimated_flops: operations of the function as written: the sum over its primitives.
        calls: number of calls that a profile recorded.
        time_per_call: average time of one of these calls, in seconds.
        notes: what else there is to know: where arrays that are divided over devices are gathered for the host.
    """

    def __init__(
        self,
        program: Program,
        name: str,
        found: Costs,
        calls: int = 0,
        time: float = 0.0,
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.flops, self.nbytes, self.temporary_nbytes = found
        self.calls = calls
        self.time_per_call = time / calls if calls else 0.0
        self.notes = tuple(notes)
        self._by_line: dict[Line | None, Row] = {}
        _add_costs(program, 1.0, self._by_line)
        self.estimated_flops = sum(row.flops for row in self._by_line.values())

    def rows(self, group_by: str = "line") -> list[Row]:
        """The rows of the table: `flops` and `nbytes` of the function as written, with loops as often as they run.

        Args:
            group_by: "line" or "scope".
        """
        report.check_group(group_by, _GROUPS)
        rows: dict[Any, Row] = {}
        for line, cost in self._by_line.items():
            key, label = _group(line, group_by)
            row = rows.setdefault(key, Row(label))
            row.flops += cost.flops
            row.nbytes += cost.nbytes
        return list(rows.values())

    def table(self, sort_by: str = "flops", group_by: str = "line", limit: int | None = 30) -> str:
        """A table as text: operations, and bytes of operands and results, as the program is written.

        Args:
            sort_by: "flops", "bytes" or "name".
            group_by: "line" or "scope".
            limit: number of rows to show; None for all.

        Raises:
            ValueError: `sort_by` or `group_by` is unknown.
        """
        return report.text_table(*self._table(sort_by, group_by, limit))

    def _table(self, sort_by: str, group_by: str, limit: int | None) -> tuple[Any, Any, Any, Any]:
        rows = report.sort_rows(self.rows(group_by), sort_by)
        columns: list[report.Column] = [
            ("FLOPs", lambda r: report.amount(r.flops)),
            ("FLOPs %", lambda r: f"{100 * r.flops / self.estimated_flops:.1f} %" if self.estimated_flops else ""),
            ("bytes", lambda r: report.amount(r.nbytes, "B")),
            ("FLOPs per byte", lambda r: f"{r.flops / r.nbytes:.2g}" if r.nbytes else ""),
        ]
        notes = [
            f"{self.name} as written: {report.amount(self.estimated_flops)} FLOPs",
            f"compiled by XLA: {report.amount(self.flops)} FLOPs, {report.amount(self.nbytes, 'B')} read and written, "
            f"{report.amount(self.temporary_nbytes, 'B')} of temporary memory",
        ]
        if self.calls:
            speed = f", {report.amount(self.flops / self.time_per_call)} FLOP/s" if self.time_per_call else ""
            notes.append(f"{self.calls:,} calls, {report.seconds(self.time_per_call)} each{speed}")
        return group_by, columns, *report.first_rows(rows, limit, [*notes, *self.notes])

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [
            html.details("<b>by line</b>", report.html_table(*self._table("flops", "line", 30)), is_open=True),
            html.details("<b>by scope</b>", report.html_table(*self._table("flops", "scope", 30))),
        ]
        return html.page(*parts)


def _group(line: Line | None, group_by: str) -> tuple[Any, str]:
    if group_by == "scope":
        scope = line.scope if line is not None else ""
        return scope, scope or report.NO_SCOPE
    return line and (line.filename, line.number), report.line_label(line)


def _add_costs(program: Program, times: float, by_line: dict[Line | None, Row]) -> None:
    """Add what a program that runs so many times costs to the rows of its lines."""
    for eqn in program.eqns:
        total, inner = eqn_flops(eqn), list(programs_in(eqn.params))
        once = sum(map(program_flops, inner))
        if inner and once:
            for sub in inner:
                _add_costs(sub, times * total / once, by_line)
        elif total or not inner:
            row = by_line.setdefault(eqn.line, Row(""))
            row.flops += times * total
            row.nbytes += times * eqn_nbytes(eqn)


def cost(f: Callable[..., Any]) -> Callable[..., CostReport]:
    """Estimate the cost of a function compiled by XLA: floating-point operations, memory traffic, temporary memory.

    The table has the operations of each line as written.  Below it stand XLA's totals for the compiled program, which
    may share, repeat or fuse computations.  The function may be a gradient or any other transformed function:
    derivatives are attributed to the line that they differentiate.  For arguments that are divided over devices, XLA's
    totals are those of one device, and a note says if an array is gathered for a function of the host.

    Args:
        f: the function, jitted or not.

    Returns:
        A function of the same arguments, which must be arrays.  It compiles `f` without running it, and returns a
        `CostReport`.

    Raises:
        TypeError: an argument is not an array.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> report = ft.debug.cost(lambda x, y: np.sum(x @ y))(np.ones((8, 4)), np.ones((4, 16)))
        >>> report.estimated_flops  # 2 * 8 * 4 * 16 for the product and 8 * 16 for the sum
        1152.0
    """

    @short_tracebacks
    def cost_of_f(*args: Any, **kwargs: Any) -> CostReport:
        program = trace(f)(*args, **kwargs)
        compiled, arrays = Compiled(program), tree.flatten((args, kwargs))[0]
        if not any(map(is_on_several_devices, arrays)):
            return CostReport(program, program.name, compiled.measure())
        return CostReport(program, program.name, compiled.measure(*arrays), notes=_gathered(compiled))

    return cost_of_f


def _gathered(compiled: Compiled) -> list[str]:
    """What to know about a program on divided arrays that calls Python code."""
    eqn = compiled.first_on_host()
    if eqn is None:
        return []
    return [f"{eqn.primitive} runs on the host, for which divided arrays are gathered on one device{at_line(eqn.line)}"]
