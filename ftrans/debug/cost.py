"""cost: what a compiled function costs, for each line of the user's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..api.jit import trace
from ..base.source import Line
from ..core.program import Program, programs_in
from ..run.costs import flops as eqn_flops
from ..run.costs import program_flops
from . import report
from .report import Row

if TYPE_CHECKING:
    from ..xla.costs import Costs

_GROUPS = ("line", "scope")
_BY_XLA = "(added by XLA)"


class CostReport:
    """What a compiled program costs.  Printing it shows the table by line.

    Attributes:
        name: name of the function.
        flops: floating-point operations, all together, by XLA's own analysis; it counts the body of a loop once, and
            what library routines (of linear algebra) do not at all.
        nbytes: bytes read and written, by the same analysis.
        estimated_flops: operations of the function as it is written: what its primitives say of themselves.
        calls: how often it was called while a profile recorded it.
        time_per_call: seconds of one of these calls, on average.
    """

    def __init__(self, program: Program, name: str, found: Costs, calls: int, time: float) -> None:
        self.name = name
        self.flops = found.totals.get("flops", 0.0) + found.totals.get("transcendentals", 0.0)
        self.nbytes = found.totals.get("bytes accessed", 0.0)
        self.calls = calls
        self.time_per_call = time / calls if calls else 0.0
        self._found = found
        self._estimates: dict[Line | None, float] = {}
        _estimate(program, 1.0, self._estimates)
        self.estimated_flops = sum(self._estimates.values())

    def rows(self, group_by: str = "line") -> list[Row]:
        """The rows of the table: `flops` and `nbytes` of the compiled program, with loops as often as they run.

        Args:
            group_by: "line" or "scope".
        """
        return [row for row, _ in self._rows(group_by).values()]

    def _rows(self, group_by: str) -> dict[Any, tuple[Row, float]]:
        report.check_group(group_by, _GROUPS)
        rows: dict[Any, tuple[Row, float]] = {}
        for line in dict.fromkeys([*self._estimates, *self._found.flops, *self._found.nbytes]):
            key, label = _group(line, group_by)
            row, estimate = rows.get(key, (Row(label), 0.0))
            row.flops += self._found.flops.get(line, 0.0)
            row.nbytes += self._found.nbytes.get(line, 0.0)
            rows[key] = row, estimate + self._estimates.get(line, 0.0)
        return rows

    def table(self, sort_by: str = "flops", group_by: str = "line", limit: int | None = 30) -> str:
        """A table as text: operations as the program is written, and operations and memory traffic as XLA runs it.

        Args:
            sort_by: "flops", "bytes" or "name".
            group_by: "line" or "scope".
            limit: how many rows to show; None for all.

        Raises:
            ValueError: there is nothing of that name to sort or group by.
        """
        return report.text_table(*self._table(sort_by, group_by, limit))

    def _table(self, sort_by: str, group_by: str, limit: int | None) -> tuple[Any, Any, Any, Any]:
        found = self._rows(group_by)
        estimates = {id(row): estimate for row, estimate in found.values()}
        rows = report.sort_rows([row for row, _ in found.values()], sort_by)
        columns: list[report.Column] = [
            ("FLOPs as written", lambda r: report.amount(estimates[id(r)])),
            ("FLOPs compiled", lambda r: report.amount(r.flops)),
            ("bytes compiled", lambda r: report.amount(r.nbytes, "B")),
            ("FLOPs per byte", lambda r: f"{r.flops / r.nbytes:.2g}" if r.nbytes else ""),
        ]
        notes = [
            f"{self.name} by XLA's totals: {report.amount(self.flops)} FLOPs, {report.amount(self.nbytes, 'B')}; "
            f"as written: {report.amount(self.estimated_flops)} FLOPs"
        ]
        if self.calls:
            speed = f", {report.amount(self.flops / self.time_per_call)} FLOP/s" if self.time_per_call else ""
            notes.append(f"{self.calls:,} calls, {report.seconds(self.time_per_call)} each{speed}")
        return group_by, columns, *report.first_rows(rows, limit, notes)

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return report.html_table(*self._table("flops", "line", 30))


def _group(line: Line | None, group_by: str) -> tuple[Any, str]:
    if line is None:
        return None, _BY_XLA
    if group_by == "scope":
        return line.scope, line.scope or report.NO_SCOPE
    return (line.filename, line.number), report.line_label(line)


def _estimate(program: Program, times: float, by_line: dict[Line | None, float]) -> None:
    for eqn in program.eqns:
        total, inner = eqn_flops(eqn), list(programs_in(eqn.params))
        once = sum(map(program_flops, inner))
        if inner and once:
            for sub in inner:
                _estimate(sub, times * total / once, by_line)
        elif total or not inner:
            by_line[eqn.line] = by_line.get(eqn.line, 0.0) + times * total


def cost_of(program: Program, name: str, calls: int = 0, time: float = 0.0) -> CostReport:
    """The cost of a program that XLA compiles, and the time of calls that were measured."""
    from ..xla.costs import costs

    return CostReport(program, name, costs(program), calls, time)


def cost(f: Callable[..., Any]) -> Callable[..., CostReport]:
    """What a function costs when XLA compiles it: floating-point operations and memory traffic of each line.

    The figures are read from the program as XLA has optimised it, so that they show what it computes once instead of
    twice, or twice instead of once, and which lines share a pass over memory.  The function may be a gradient or any
    other transformed function: derivatives count for the line that they are of.

    Args:
        f: the function; it need not be jitted.

    Returns:
        A function of the same arguments, which are arrays.  It compiles, does not run, and gives a `CostReport`.

    Raises:
        TypeError: an argument is not an array.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> report = ft.debug.cost(lambda x, y: np.sum(x @ y))(np.ones((8, 4)), np.ones((4, 16)))
        >>> report.estimated_flops  # 2 * 8 * 4 * 16 for the product and 8 * 16 for the sum
        1152.0
    """

    def cost_of_f(*args: Any, **kwargs: Any) -> CostReport:
        program = trace(f)(*args, **kwargs)
        return cost_of(program, program.name)

    return cost_of_f
