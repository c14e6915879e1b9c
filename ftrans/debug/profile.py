"""profile: where programs spend their time, by primitive, by line of the user's code and by named scope.

While a profile is active in a thread or task, the evaluators report each equation that runs, and tracing, transforming
and compiling.  It keeps a tree of places, one for each primitive and line below the place that ran it, however often
it runs; and a limited number of single events, for a timeline.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from ..base import html
from ..base.observe import Observer, observing
from ..base.source import Line, user_line
from ..core.program import Eqn, Program, programs_in
from ..run.costs import flops, nbytes, program_flops
from ..xla import Compiled
from . import charts, report
from .cost import CostReport
from .events import COMPILED, EQUATION, Event, Place, Span, Totals, write_trace
from .report import Row

_GROUPS = ("primitive", "line", "scope")
# So many equations are remembered with their cost.
_MOST_COSTS = 100_000


# The profile that ended last, while somebody holds it.
_last: list[weakref.ref[Profile]] = []


def last_profile() -> Profile | None:
    """The profile that ended last; None if nobody holds it any more."""
    return _last[0]() if _last else None


class Profile(Observer):
    """The record of a `profile`.  Printing it shows the table by primitive.

    Attributes:
        root: the tree of places.
    """

    def __init__(self, max_events: int) -> None:
        self.root = Place("", "", None, None)
        self._most = max_events
        self._events: list[Span] = []
        self._missed = 0
        self._began = perf_counter_ns()
        self._ended = 0
        # Equations and activities never wait for another task, so the innermost one that is open is one per thread.
        self._open: dict[int, Place] = {}
        # By identity of the equation, which is kept so that it stays the only one.
        self._costs: dict[int, tuple[Eqn, float, int, bool]] = {}
        self._compiled: dict[Compiled, dict[Place, None]] = {}

    # Recording

    def equation(self, eqn: Eqn, operands: Sequence[Any], run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Run one equation, and record it."""
        cost = self._costs.get(id(eqn))
        if cost is None:
            if len(self._costs) > _MOST_COSTS:
                self._costs.clear()
            with observing(None):
                holds_programs = any(True for _ in programs_in(eqn.params))
                cost = self._costs[id(eqn)] = (eqn, flops(eqn), nbytes(eqn), holds_programs)
        place, parent, thread = self.open((eqn.primitive, eqn.line), EQUATION, eqn.primitive.name, eqn.line)
        start = perf_counter_ns()
        try:
            results = run()
        finally:
            self.close(place, parent, thread, start)
        # What an equation with programs does is told equation by equation, unless XLA runs it as a whole.
        if not cost[3] or any(hasattr(x, "block_until_ready") for x in results):
            place.flops += cost[1]
            place.nbytes += cost[2]
        return results

    def operation(
        self, name: str, program: Program, operands: Sequence[Any], run: Callable[[], Any], line: Line | None = None
    ) -> Any:
        """Run an operation, and record it."""
        line = line or user_line()
        place, parent, thread = self.open((name, line), EQUATION, name, line)
        with observing(None):
            start = perf_counter_ns()
            try:
                result = run()
            finally:
                self.close(place, parent, thread, start)
            place.flops += program_flops(program)
            place.nbytes += sum(t.nbytes for t in (*program.in_types, *program.out_types))
        return result

    def activity(self, kind: str, name: str, subject: Any = None) -> contextlib.AbstractContextManager[Any]:
        """Record how long the block takes."""
        of = getattr(subject, "program", subject)
        of = getattr(of, "name", None) or getattr(of, "__name__", None) or type(of).__name__
        of = "lambda" if of == "<lambda>" else of
        label = {"tracing": f"tracing {of}", COMPILED: f"jit({of})"}.get(kind, f"{kind}: {name}")
        around = self._open.get(get_ident(), self.root)
        # Only traced code is the user's; code below other work is generated, or that of a library.
        line = user_line() if around is self.root or around.kind == "tracing" else around.line
        return _Activity(self, kind, label, line, subject if kind == COMPILED else None)

    def open(self, key: Any, kind: str, name: str, line: Line | None) -> tuple[Place, Place, int]:
        """Enter the place of a key below the innermost one that is open in this thread: both, and the thread."""
        thread = get_ident()
        parent = self._open.get(thread, self.root)
        place = self._open[thread] = parent.child(key, kind, name, line)
        return place, parent, thread

    def close(self, place: Place, parent: Place, thread: int, start: int) -> None:
        """Leave the place, which was entered at `start`."""
        stop = perf_counter_ns()
        self._open[thread] = parent
        place.calls += 1
        place.total_ns += stop - start
        if len(self._events) < self._most:
            self._events.append((place, start, stop, thread))
        else:
            self._missed += 1

    def called(self, compiled: Compiled, place: Place) -> None:
        """Count what a compiled program did."""
        self._compiled.setdefault(compiled, {})[place] = None
        if compiled.costs is not None:
            place.flops += compiled.costs.flops
            place.nbytes += compiled.costs.nbytes

    @contextlib.contextmanager
    def recording(self) -> Iterator[Profile]:
        """Record while the block runs."""
        self._began = perf_counter_ns()
        try:
            with observing(self):
                yield self
        finally:
            self._ended = perf_counter_ns()
            _last[:] = [weakref.ref(self)]

    # Reading

    @property
    def events(self) -> list[Event]:
        """The events, ordered by their start; of a long profile, those that ended first."""
        return [
            Event(
                p.kind,
                p.name,
                "" if p.line is None else repr(p.line),
                p.scope,
                (start - self._began) * 1e-9,
                (stop - start) * 1e-9,
                thread,
            )
            for p, start, stop, thread in self._in_order()
        ]

    def _in_order(self) -> list[Span]:
        """The events by their beginning, what contains others first."""
        return sorted(self._events, key=lambda e: (e[1], -e[2]))

    def totals(self) -> Totals:
        """Sums over everything that was recorded."""
        places = list(self.root.walk())
        return Totals(
            sum(p.calls for p in places if p.kind in (EQUATION, COMPILED)),
            sum(p.total_ns for p in self.root.children.values()) * 1e-9,
            sum(p.flops for p in places),
            sum(p.nbytes for p in places),
            ((self._ended or perf_counter_ns()) - self._began) * 1e-9,
        )

    def rows(self, group_by: str = "primitive") -> list[Row]:
        """The rows of the table, unsorted.

        Args:
            group_by: "primitive", "line" or "scope".  The `total_time` of a scope includes the scopes inside it.
        """
        report.check_group(group_by, _GROUPS)
        rows: dict[Any, Row] = {}

        def add(place: Place, around: frozenset[Any]) -> None:
            keys = _group_keys(place, group_by)
            for key, label in keys.items():
                row = rows.setdefault(key, Row(label))
                # What runs inside itself is part of the outer time already.
                if key not in around:
                    row.total_time += place.total_ns * 1e-9
            row = rows[next(iter(keys))]
            row.calls += place.calls
            row.self_time += place.self_ns * 1e-9
            row.nbytes += place.nbytes
            row.flops += place.flops
            for child in place.children.values():
                add(child, around | keys.keys())

        for place in self.root.children.values():
            add(place, frozenset())
        return list(rows.values())

    def table(self, sort_by: str = "self_time", group_by: str = "primitive", limit: int | None = 30) -> str:
        """A table as text.

        Args:
            sort_by: "self_time" (without callees), "total_time", "time_per_call", "calls", "bytes", "flops",
                "flops_per_second" or "name"; or the names that PyTorch's and Python's profilers use for these.
            group_by: "primitive", "line" (of the user's code) or "scope" (see `ftrans.debug.scope`).
            limit: number of rows to show; None for all.

        Raises:
            ValueError: `sort_by` or `group_by` is unknown.
        """
        return report.text_table(*self._table(sort_by, group_by, limit))

    def _table(self, sort_by: str, group_by: str, limit: int | None) -> tuple[Any, Any, Any, Any]:
        rows = report.sort_rows(self.rows(group_by), sort_by)
        totals = self.totals()
        whole = totals.self_time or 1.0
        columns: list[report.Column] = [
            ("calls", lambda r: f"{r.calls:,}"),
            ("self time", lambda r: report.seconds(r.self_time)),
            ("self %", lambda r: f"{100 * r.self_time / whole:.1f} %"),
            ("total time", lambda r: report.seconds(r.total_time)),
            ("per call", lambda r: report.seconds(r.time_per_call) if r.calls else ""),
            ("bytes", lambda r: report.amount(r.nbytes, "B")),
            ("FLOPs", lambda r: report.amount(r.flops)),
            ("FLOP/s", lambda r: report.amount(r.flops_per_second) if r.flops else ""),
        ]
        notes = [
            f"{report.seconds(totals.self_time)} recorded of {report.seconds(totals.wall_time)}; "
            f"{totals.calls:,} operations, {report.amount(totals.flops)} FLOPs, {report.amount(totals.nbytes, 'B')}"
        ]
        return group_by, columns, *report.first_rows(rows, limit, notes)

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = []
        for group_by in _GROUPS:
            rows = report.sort_rows(self.rows(group_by), "self_time")
            body = report.html_table(*self._table("self_time", group_by, 30), [row.self_time for row in rows])
            parts.append(html.details(f"<b>by {group_by}</b>", body, is_open=group_by == "primitive"))
        return html.page(*parts)

    def compiled(self) -> list[CostReport]:
        """The cost of each compiled program that was called, and its time per call."""
        return [
            CostReport(
                compiled.program,
                next(iter(at)).name,
                compiled.costs,
                sum(p.calls for p in at),
                sum(p.total_ns for p in at) * 1e-9,
            )
            for compiled, at in self._compiled.items()
            if compiled.costs is not None
        ]

    # Files

    def chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events in the Trace Event format, for Perfetto (ui.perfetto.dev) or chrome://tracing.

        Args:
            path: the file, usually a `.json`.
        """
        write_trace(path, self._in_order(), self._began, self._missed)

    def chart(
        self, path: str | os.PathLike[str], kind: str = "flame", group_by: str = "primitive", limit: int = 20
    ) -> None:
        """Draw where the time went, with matplotlib (`pip install 'ftrans[plot]'`).

        Args:
            path: the file, with the suffix `.png`, `.svg` or `.pdf`.
            kind: "flame" for a flame graph of scopes, the lines in them and their primitives; or "bars" for the largest
                rows of the table.
            group_by: for "bars": "primitive", "line" or "scope".
            limit: for "bars": number of rows.

        Raises:
            ImportError: matplotlib is not installed.
            ValueError: the kind, group or format is unknown, or nothing was recorded.
        """
        charts.check(path, kind, self.root.children)
        if kind == "bars":
            charts.bars(path, report.sort_rows(self.rows(group_by), "self_time")[:limit], group_by)
        else:
            charts.flame(path, self.root.walk())


class _Activity:
    """The block of an activity that a profile records."""

    __slots__ = ("_compiled", "_kind", "_line", "_name", "_opened", "_profile", "_start")

    def __init__(self, profile: Profile, kind: str, name: str, line: Line | None, compiled: Compiled | None) -> None:
        self._profile = profile
        self._kind = kind
        self._name = name
        self._line = line
        self._compiled = compiled

    def __enter__(self) -> None:
        key = (self._kind, self._name, self._line, self._compiled)
        self._opened = self._profile.open(key, self._kind, self._name, self._line)
        self._start = perf_counter_ns()

    def __exit__(self, error: object, *_: object) -> None:
        self._profile.close(*self._opened, self._start)
        if self._compiled is not None and error is None:
            self._profile.called(self._compiled, self._opened[0])


def _group_keys(place: Place, group_by: str) -> dict[Any, str]:
    """The groups that a place belongs to, with their labels: its own first, then those around that."""
    line = place.line
    if group_by == "line":
        return {None if line is None else (line.filename, line.number): report.line_label(line)}
    if group_by == "scope":
        if not place.scope:
            return {"": report.NO_SCOPE}
        parts = place.scope.split("/")
        paths = ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]
        return dict(zip(paths, paths, strict=True))
    name = "tracing" if place.kind == "tracing" else place.name
    return {(place.kind, name): name}


@contextlib.contextmanager
def profile(*, max_events: int = 200_000) -> Iterator[Profile]:
    """Record what runs in this block: each operation, with its time, bytes and floating-point operations.

    Programs are recorded equation by equation, including those of loops and branches.  A call of a compiled function is
    one event, which lasts until the result is ready, with the figures of XLA's cost analysis.  Tracing, transforming
    and compiling are listed too.  Only the thread or asyncio task that enters the block is recorded.  The overhead of
    about 2 us per equation counts towards its caller, not towards the equation.

    Args:
        max_events: maximum number of events to keep individually, for `events` and `chrome_trace`, at about 150 bytes
            each.  Tables and charts always cover all events.

    Returns:
        A context manager that yields a `Profile`: `table()`, `rows()`, `totals()`, `events`, `compiled()`,
        `chrome_trace(path)` and `chart(path)`.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> with ft.debug.profile() as prof:
        ...     slope = ft.grad(lambda x: np.sum(np.sin(x) ** 2))(np.ones(1000))
        >>> sorted((row.name, row.calls) for row in prof.rows() if row.flops)
        [('cos', 1), ('mul', 2), ('sin', 1)]
        >>> print(prof.table(sort_by="flops", limit=2))  # doctest: +SKIP
        primitive  calls  self time  self %  total time  per call    bytes   FLOPs  FLOP/s
        ----------------------------------------------------------------------------------
        mul            2    10.6 us   0.9 %     10.6 us   5.32 us  40.0 kB  2.00 k   188 M
        sin            1    8.92 us   0.7 %     8.92 us   8.92 us  16.0 kB  1.00 k   112 M
        ----------------------------------------------------------------------------------
        1.25 ms recorded of 1.65 ms; 4 operations, 4.00 k FLOPs, 72.0 kB
        13 more rows: limit=None shows all
    """
    prof = Profile(max_events)
    with prof.recording():
        yield prof
