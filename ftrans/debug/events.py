"""What a profile records: a tree of places where something runs, and a timeline of single events."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..base.source import Line

EQUATION, COMPILED = "equation", "compiled call"


class Place:
    """What runs at one place: a primitive at a line, or an activity, below the place that runs it.

    Attributes:
        kind: "equation", "tracing", "transforming", "compiling" or "compiled call".
        name: the primitive, or what is done.
        line: the user's line that it is for.
        parent: the place that ran it; None for the root.
        children: the places that it runs.
        calls: how often it ran.
        total_ns: nanoseconds in it, with its children.
        flops: estimated floating-point operations, without its children.
        nbytes: bytes of operands and results, without its children.
    """

    __slots__ = ("calls", "children", "flops", "kind", "line", "name", "nbytes", "parent", "total_ns")

    def __init__(self, kind: str, name: str, line: Line | None, parent: Place | None) -> None:
        self.kind = kind
        self.name = name
        self.line = line
        self.parent = parent
        self.children: dict[Any, Place] = {}
        self.calls = 0
        self.total_ns = 0
        self.flops = 0.0
        self.nbytes = 0.0

    @property
    def self_ns(self) -> int:
        """Nanoseconds in it, without its children."""
        return self.total_ns - sum(child.total_ns for child in self.children.values())

    @property
    def scope(self) -> str:
        """Path of the named scope, or an empty string."""
        return self.line.scope if self.line is not None else ""

    def child(self, key: Any, kind: str, name: str, line: Line | None) -> Place:
        """The place of a key below this one."""
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = Place(kind, name, line, self)
        return found

    def walk(self) -> Iterator[Place]:
        """All places below this one, parents first."""
        for child in self.children.values():
            yield child
            yield from child.walk()


class Event(NamedTuple):
    """One recorded event.

    Attributes:
        kind: "equation", "tracing", "transforming", "compiling" or "compiled call".
        name: the primitive, or what was done.
        line: the user's line that it was for, as text.
        scope: path of the named scope.
        start: seconds since the profile began.
        duration: seconds.
        thread: number of the thread.
    """

    kind: str
    name: str
    line: str
    scope: str
    start: float
    duration: float
    thread: int


class Totals(NamedTuple):
    """Sums over a profile.

    Attributes:
        calls: equations and compiled programs that ran.
        self_time: seconds recorded.
        flops: floating-point operations.
        nbytes: bytes of operands and results.
        wall_time: seconds from the beginning to the end of the profile, including other Python code.
    """

    calls: int
    self_time: float
    flops: float
    nbytes: float
    wall_time: float


# A place, when it began and ended there (in nanoseconds), and the number of the thread.
Span = tuple[Place, int, int, int]


def write_trace(path: str | os.PathLike[str], spans: Sequence[Span], began: int, left_out: int) -> None:
    """Write spans in the Trace Event format of Chromium."""
    import json

    process = os.getpid()
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": "ftrans"}},
    ]
    for place, start, stop, thread in spans:
        args = {"line": place.line.describe()} if place.line is not None else {}
        if place.scope:
            args["scope"] = place.scope
        times = {"ts": (start - began) / 1e3, "dur": (stop - start) / 1e3}
        events.append(
            {"ph": "X", "pid": process, "tid": thread, "name": place.name, "cat": place.kind, **times, "args": args}
        )
    other = {"events left out": left_out} if left_out else {}
    document = {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}
    Path(path).write_text(json.dumps(document), encoding="utf-8")
