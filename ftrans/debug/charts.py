"""Pictures of a profile, drawn by matplotlib: a flame graph, and bars."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..base.figures import new_figure
from ..base.names import printable
from ..base.source import at_line, user_line
from ..base.tables import shortened
from . import report
from .events import COMPILED, EQUATION, Place
from .report import Row

_KINDS = ("flame", "bars")
_FORMATS = (".png", ".svg", ".pdf")
WIDTH = 14.0
ROW = 0.34
_LEAST_TEXT = 6
# A box narrower than this part of the whole is not drawn.
_LEAST = 0.0008
_FONT = "DejaVu Sans Mono"
_CHARACTER = 0.0086  # inches, of this font at one point
_SIZES = (9.0, 7.0)
_ALL, _SCOPE, _LINE, _WORK = "#dddddd", "#c9d6e8", "#f3d9a8", "#d9cfe6"
_WARM = ("#f4a582", "#ef8a62", "#f6b26b", "#f7c08a", "#e98f6f", "#f2a07b", "#eeb08f", "#f0936c")
_SELF, _CALLED = "#d9734e", "#f4d4c6"


class Frame:
    """A box of the flame graph: its label, its colour, the time in itself, and the boxes above it."""

    def __init__(self, label: str, color: str, short: str = "") -> None:
        self.label = printable(label)
        self.color = color
        self.short = printable(short)
        self.time = 0.0
        self.inner: dict[str, Frame] = {}

    def total(self) -> float:
        """Seconds in this box."""
        return self.time + sum(frame.total() for frame in self.inner.values())

    def enter(self, label: str, color: str, short: str = "") -> Frame:
        """The box of this label above this one."""
        return self.inner.setdefault(label, Frame(label, color, short))

    def text(self, seconds: float, width: float) -> tuple[str, float]:
        """What to write into a box so many inches wide, and in what size: as much as fits."""
        full = [f"{self.label}  {report.seconds(seconds)}", self.label]
        for size in _SIZES:
            room = int(width / (_CHARACTER * size) - 1)
            cut = [f"{self.label[: room - 1]}\N{HORIZONTAL ELLIPSIS}"] if room >= _LEAST_TEXT else []
            # The beginning of a line of code says more than its number alone, that of a file's name does not.
            choices = [*full, *(cut if room >= len(self.short) + 8 else []), *([self.short] if self.short else cut)]
            found = next((text for text in choices if len(text) <= room), "")
            if found:
                return found, size
        number = ":" + self.short.rpartition(":")[2]
        return number if 1 < len(number) <= room else "", _SIZES[-1]


class Box(NamedTuple):
    """A box with its place: from `left`, `width` wide, in seconds."""

    frame: Frame
    left: float
    width: float
    level: int


def check(path: str | os.PathLike[str], kind: str, recorded: Collection[Any]) -> None:
    """Raise unless such a picture can be drawn."""
    if kind not in _KINDS:
        raise ValueError(f"a chart is one of {', '.join(map(repr, _KINDS))}, not {kind!r}{at_line(user_line())}")
    if Path(path).suffix.lower() not in _FORMATS:
        raise ValueError(f"a chart is written as {', '.join(_FORMATS)}, not as {str(path)!r}{at_line(user_line())}")
    if not recorded:
        raise ValueError(
            "nothing was recorded, so there is nothing to draw: call transformed or compiled functions inside the "
            "block of ftrans.debug.profile(); NumPy itself, on plain arrays, is not seen" + at_line(user_line())
        )
    new_figure(WIDTH, ROW, "charts")


def flame(path: str | os.PathLike[str], places: Iterable[Place]) -> None:
    """Draw scopes, the lines in them, and the primitives of these, one above the other.

    What comes before running has a strip and a scale of its own: the first time, it takes longer than all else.
    """
    running, preparing = _frames(places)
    titles = {"Running, by scope, line and primitive": running, "Tracing, transforming and compiling": preparing}
    graphs = {title: list(_boxes(root, 0.0, 0)) for title, root in titles.items() if root.inner}
    levels = [1 + max(box.level for box in boxes) for boxes in graphs.values()]
    figure, rows = _figure(sum(levels) * ROW + 0.5 * len(levels), levels)
    for (title, boxes), axes, height in zip(graphs.items(), rows, levels, strict=True):
        draw_boxes(axes, boxes, height, WIDTH)
        axes.set_title(title, loc="left", fontsize=11)
    _save(figure, path)


def running_boxes(places: Iterable[Place]) -> tuple[list[Box], int]:
    """The boxes of what ran, and how many levels they have; of the work around it where nothing ran."""
    running, preparing = _frames(places)
    boxes = list(_boxes(running if running.inner else preparing, 0.0, 0))
    return boxes, 1 + max(box.level for box in boxes)


def _frames(places: Iterable[Place]) -> tuple[Frame, Frame]:
    """What ran, and the work around it."""
    running, preparing = Frame("all", _ALL), Frame("all", _ALL)
    for place in places:
        if place.kind in (EQUATION, COMPILED):
            frame = running
            for name in filter(None, place.scope.split("/")):
                frame = frame.enter(name, _SCOPE)
            frame = frame.enter(report.line_label(place.line), _LINE, repr(place.line))
            frame = frame.enter(place.name, _WARM[zlib.crc32(place.name.encode()) % len(_WARM)])
        else:
            frame = preparing.enter(place.name, _WORK)
        frame.time += place.self_ns * 1e-9
    return running, preparing


def draw_boxes(axes: Any, boxes: Sequence[Box], levels: int, inches: float) -> None:
    """Draw boxes in axes that are so many inches wide."""
    whole = boxes[0].width or 1.0
    axes.set_xlim(0, whole)
    axes.set_ylim(0, levels)
    axes.axis("off")
    for box in boxes:
        if box.width < _LEAST * whole:
            continue
        axes.add_patch(_rectangle(box, whole))
        text, size = box.frame.text(box.width, inches * box.width / whole)
        look = {"va": "center", "fontsize": size, "family": _FONT, "parse_math": False, "color": "black"}
        axes.text(box.left + 0.003 * whole, box.level + 0.49, text, clip_on=True, **look)


def _boxes(frame: Frame, left: float, level: int) -> Iterator[Box]:
    yield Box(frame, left, frame.total(), level)
    # The largest come first.
    for inner in sorted(frame.inner.values(), key=lambda f: -f.total()):
        yield from _boxes(inner, left, level + 1)
        left += inner.total()


def _rectangle(box: Box, whole: float) -> Any:
    from matplotlib.patches import Rectangle

    gap = min(0.0006 * whole, 0.1 * box.width)
    return Rectangle((box.left, box.level + 0.03), box.width - gap, 0.94, facecolor=box.frame.color, linewidth=0)


def bars(path: str | os.PathLike[str], rows: Sequence[Row], group_by: str) -> None:
    """Draw rows of a table, the first at the top: time in each itself, and behind it the time with what it called."""
    figure, (axes,) = _figure(max(len(rows), 2) * ROW + 1.1, [1])
    scale, unit = _unit(max(row.total_time for row in rows))
    places = range(len(rows))
    axes.barh(places, [r.total_time / scale for r in rows], color=_CALLED, height=0.78, label="with what it called")
    axes.barh(places, [r.self_time / scale for r in rows], color=_SELF, height=0.78, label="self")
    labels = [shortened(printable(row.name), 60) for row in rows]
    axes.set_yticks(list(places), labels, family=_FONT, fontsize=9, parse_math=False)
    for i, row in enumerate(rows):
        value = f" {report.seconds(row.self_time)}"
        if row.calls > 1:
            value += f"  ({row.calls:,} calls)"
        axes.text(max(row.total_time, row.self_time) / scale, i, value, va="center", fontsize=8.5, color="#444444")
    axes.invert_yaxis()
    axes.margins(x=0.16, y=0.02)
    axes.set_xlabel(unit)
    axes.set_title(f"Time by {group_by}", loc="left", fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    _save(figure, path)


def _unit(largest: float) -> tuple[float, str]:
    return next(((s, u) for s, u in ((1.0, "seconds"), (1e-3, "milliseconds")) if largest >= s), (1e-6, "microseconds"))


def _figure(height: float, parts: Sequence[int]) -> tuple[Any, Any]:
    figure = new_figure(WIDTH, height)
    return figure, figure.subplots(len(parts), squeeze=False, height_ratios=parts)[:, 0]


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    with warnings.catch_warnings():
        # The user's code may hold characters that the font has no glyph for.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        figure.savefig(path, dpi=130)
