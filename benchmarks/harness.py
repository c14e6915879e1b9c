"""The stopwatch and the table: interleaved timing of contenders, and how their figures are shown.

The machine is shared and noisy, so only ratios within one run count. Contenders take turns, in an
order that changes, and a ratio is the median over the rounds of the ratio within a round.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MISSING = "missing"
FEWEST_ROUNDS, MOST_ROUNDS = 5, 60
SHORTEST_TURN = 0.02
TOLERANCE = {"float64": 1e-8, "float32": 2e-3}  # of a leaf's largest entry; a GPU multiplies float32 in TF32


class Disagreement(AssertionError):
    """A contender computes something else than the reference does."""


@dataclass(frozen=True)
class Contender:
    """A call to time. `scope` is entered around each turn of calls, so that its cost is not timed."""

    call: Callable[[], Any]
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Verdict:
    """A figure set against a baseline, and whether it reaches its target."""

    measured: float | None
    baseline: str
    at_most: float | None
    show: Callable[[float], str]

    @property
    def mark(self) -> str:
        if self.measured is None:
            return "n/a"
        if self.at_most is None:
            return ""
        # What is printed is what is judged.
        return "pass" if self.show(self.measured) == self.show(self.at_most) or self.measured < self.at_most else "MISS"

    def cells(self) -> list[str]:
        measured = "" if self.measured is None else f"{self.show(self.measured)} {self.baseline}"
        return [measured, "" if self.at_most is None else self.show(self.at_most), self.mark]


@dataclass(frozen=True)
class Timings:
    """Seconds per call of each contender, round by round, and the reason why others have none."""

    rounds: Mapping[str, list[float]]
    failures: Mapping[str, str]

    def typical(self, name: str) -> float | str:
        return statistics.median(self.rounds[name]) if name in self.rounds else self.failures.get(name, MISSING)

    def ratio(self, subject: str, baseline: str, at_most: float | None = None) -> Verdict:
        """How many times as long as `baseline` the `subject` takes."""
        return Verdict(self._paired(subject, baseline, lambda a, b: a / b), baseline, at_most, "{:.2f}x".format)

    def excess(self, subject: str, baseline: str, at_most: float | None = None) -> Verdict:
        """How many seconds more than `baseline` the `subject` takes."""
        return Verdict(self._paired(subject, baseline, lambda a, b: a - b), baseline, at_most, show_excess)

    def _paired(self, subject: str, baseline: str, relate: Callable[[float, float], float]) -> float | None:
        if subject not in self.rounds or baseline not in self.rounds:
            return None
        return statistics.median(map(relate, self.rounds[subject], self.rounds[baseline]))


@dataclass(frozen=True)
class Row:
    """One line of a table: the typical seconds per column, or a word where there are none."""

    label: str
    columns: Mapping[str, float | str]
    verdicts: list[Verdict] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        verdicts = [
            {"baseline": v.baseline, "measured": v.measured, "at_most": v.at_most, "mark": v.mark}
            for v in self.verdicts
        ]
        return {"label": self.label, "seconds": dict(self.columns), "verdicts": verdicts}


@dataclass(frozen=True)
class Table:
    """The outcome of one measure."""

    title: str
    rows: list[Row]

    @property
    def failures(self) -> list[str]:
        """The contenders that raised or gave a wrong value."""
        return [
            f"{row.label}, {name}: {cell}"
            for row in self.rows
            for name, cell in row.columns.items()
            if isinstance(cell, str) and cell.startswith("failed")
        ]

    def __str__(self) -> str:
        columns = list(dict.fromkeys(name for row in self.rows for name in row.columns))
        lines = [["", *columns, "ratio", "at most", ""]]
        for row in self.rows:
            verdicts = [verdict.cells() for verdict in row.verdicts] or [["", "", ""]]
            lines.append([row.label, *(show_cell(row.columns.get(name, "")) for name in columns), *verdicts[0]])
            lines.extend(["", *("" for _ in columns), *verdict] for verdict in verdicts[1:])
        reasons = ["", *self.failures] if self.failures else []
        return "\n".join([f"## {self.title}", "", *markdown(lines), *reasons, ""])

    def as_json(self) -> dict[str, Any]:
        return {"title": self.title, "rows": [row.as_json() for row in self.rows]}


def time_side_by_side(
    contenders: Mapping[str, Contender],
    *,
    reference: str | None = None,
    seconds: float = 1.5,
    patience: float = 1.0,
    now: Callable[[], float] = time.perf_counter,
) -> Timings:
    """Time the contenders in turns, about `seconds` in all, after checking that each agrees with `reference`.

    A contender whose call takes longer than `patience` is timed by that call alone; `now` is the clock.
    """
    failures: dict[str, str] = {}
    values: dict[str, Any] = {}
    once: dict[str, float] = {}
    for name in sorted(contenders, key=lambda name: name != reference):
        contender = contenders[name]
        # A contender that fails must not take the figures of the others with it.
        try:
            with contender.scope():
                values[name] = contender.call()
                once[name] = clock(contender.call, 1, now)
                if once[name] < SHORTEST_TURN:
                    once[name] = clock(contender.call, 10, now)
            if reference in values:
                require_agreement(values[name], values[reference])
        except Exception as error:
            failures[name] = f"failed: {type(error).__name__}: {error}"
            once.pop(name, None)
    calls = {name: max(1, round(SHORTEST_TURN / duration)) for name, duration in once.items() if duration <= patience}
    one_round = sum(calls[name] * once[name] for name in calls)
    count = min(max(round(seconds / one_round), FEWEST_ROUNDS), MOST_ROUNDS) if calls else 0
    rounds = {name: [] if name in calls else [duration] for name, duration in once.items()}
    order = list(calls)
    shuffle = random.Random(0).shuffle
    for _ in range(count):
        # Who follows a heavy contender pays for its cold caches and busy threads: not always the same one.
        shuffle(order)
        for name in order:
            with contenders[name].scope():
                rounds[name].append(clock(contenders[name].call, calls[name], now))
    return Timings(rounds, failures)


def clock(call: Callable[[], Any], calls: int, now: Callable[[], float] = time.perf_counter) -> float:
    start = now()
    for _ in range(calls):
        call()
    return (now() - start) / calls


def require_agreement(value: Any, reference: Any) -> None:
    """Raise Disagreement unless both have the same leaves, in shape, dtype and, nearly, value."""
    for ours, theirs in zip(leaves(value), leaves(reference), strict=True):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            raise Disagreement(f"{ours.dtype}{ours.shape} where the reference has {theirs.dtype}{theirs.shape}")
        error, scale = np.max(np.abs(ours - theirs)), np.max(np.abs(theirs))
        if not error <= TOLERANCE[str(theirs.dtype)] * scale:
            raise Disagreement(f"off by {error:.2g} where the reference is at most {scale:.2g}")


def leaves(value: Any) -> list[np.ndarray]:
    if isinstance(value, dict):
        return leaves([value[key] for key in sorted(value)])
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [np.asarray(value.cpu() if hasattr(value, "cpu") else value)]


def show_seconds(seconds: float) -> str:
    for unit, size in ("s", 1.0), ("ms", 1e-3), ("us", 1e-6):
        if seconds >= size or unit == "us":
            return f"{seconds / size:#.3g}".rstrip(".") + f" {unit}"
    raise AssertionError


def show_excess(seconds: float) -> str:
    return f"{seconds * 1e3:+.0f} ms" if abs(seconds) >= 1e-3 else f"{seconds * 1e6:+.0f} us"


def show_cell(cell: float | str) -> str:
    return cell.split(":")[0] if isinstance(cell, str) else show_seconds(cell)


def markdown(lines: list[list[str]]) -> Iterable[str]:
    """Aligned lines of a Markdown table, the first of `lines` being its head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for index, line in enumerate(lines):
        numbers = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        cells = [line[0].ljust(widths[0]), *numbers]
        yield f"| {' | '.join(cells)} |"
        if index == 0:
            yield f"|{'|'.join([':' + '-' * (widths[0] + 1), *('-' * (width + 1) + ':' for width in widths[1:])])}|"
