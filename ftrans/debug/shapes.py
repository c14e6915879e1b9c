"""A picture as a list of shapes, and the formats that it can be written in.

SVG is text, which is written here.  Pixels and PDF are drawn by matplotlib.  Both set all text in a fixed-width font,
so that its size is known before it is drawn.
"""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .layout import Point

FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
# How far one character advances, for a font of size 1.
ADVANCE = 0.602
# More pixels than this on a side, and viewers give up.
_MOST_PIXELS = 20_000
# What XML has no way to write, such as control characters.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Span(NamedTuple):
    """Some text of one look."""

    text: str
    color: str
    bold: bool = False


class Text(NamedTuple):
    """A line of text, centred at `x` or beginning there; `y` is its baseline."""

    x: float
    y: float
    spans: tuple[Span, ...]
    size: float
    centred: bool = True

    @property
    def width(self) -> float:
        """How wide it is."""
        return text_width("".join(s.text for s in self.spans), self.size)


class Box(NamedTuple):
    """A rectangle with round corners and the text in it.

    Attributes:
        x: left side.
        y: upper side.
        width: size from left to right.
        height: size from top to bottom.
        fill: colour inside.
        stroke: colour of the outline.
        radius: of the corners.
        line_width: of the outline.
        is_double: whether a second outline is drawn inside.
        texts: what is written on it.
        role: what it stands for, as a class in SVG.
        tooltip: shown where the pointer rests.
    """

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str
    radius: float = 4.0
    line_width: float = 1.0
    is_double: bool = False
    texts: tuple[Text, ...] = ()
    role: str = ""
    tooltip: str = ""


class Curve(NamedTuple):
    """A path of cubic Bezier curves, with an arrowhead that points up or down.

    Attributes:
        points: a start, then three points for each piece.
        color: of line and arrowhead.
        is_dashed: whether the line is.
        line_width: of the line.
        role: what it stands for, as a class in SVG.
    """

    points: Sequence[Point]
    color: str
    is_dashed: bool = False
    line_width: float = 1.1
    role: str = ""

    @property
    def head(self) -> list[Point]:
        """The corners of the arrowhead."""
        (x, y), before = self.points[-1], next(p for p in reversed(self.points) if p != self.points[-1])
        back = -6.0 if before[1] < y else 6.0
        return [(x, y), (x - 3.0, y + back), (x + 3.0, y + back)]


Shape = Box | Curve | Text


class Picture(NamedTuple):
    """Shapes, from the back to the front, and the size of the page."""

    width: float
    height: float
    shapes: list[Shape]


def text_width(text: str, size: float) -> float:
    """How wide a line of text is."""
    return len(text) * ADVANCE * size


# SVG


def _escaped(text: str) -> str:
    return html.escape(_drawable(text))


def _drawable(text: str) -> str:
    """The text, with a sign in the place of each character that no picture can have."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def to_svg(picture: Picture) -> str:
    """The picture as SVG."""
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{FONT}">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *(_svg(shape) for shape in picture.shapes),
            "</svg>",
        ]
    )


def _svg(shape: Shape) -> str:
    if isinstance(shape, Text):
        return _svg_text(shape)
    if isinstance(shape, Curve):
        return _svg_curve(shape)
    parts = [_svg_outline(shape, 0.0, shape.fill)]
    if shape.is_double:
        parts.append(_svg_outline(shape, 3.0, "none"))
    parts += map(_svg_text, shape.texts)
    tooltip = f"<title>{_escaped(shape.tooltip)}</title>" if shape.tooltip else ""
    return f'<g class="{shape.role}">{tooltip}{"".join(parts)}</g>'


def _svg_outline(box: Box, inset: float, fill: str) -> str:
    return (
        f'<rect x="{box.x + inset:.1f}" y="{box.y + inset:.1f}" width="{box.width - 2 * inset:.1f}" '
        f'height="{box.height - 2 * inset:.1f}" rx="{max(box.radius - inset / 2, 0):.1f}" fill="{fill}" '
        f'stroke="{box.stroke}" stroke-width="{box.line_width:.1f}"/>'
    )


def _svg_curve(curve: Curve) -> str:
    points = [f"{x:.1f} {y:.1f}" for x, y in curve.points]
    path = f"M{points[0]}C" + " ".join(points[1:])
    dashes = ' stroke-dasharray="5 3"' if curve.is_dashed else ""
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve.head)
    return (
        f'<g class="{curve.role}"><path d="{path}" fill="none" stroke="{curve.color}" '
        f'stroke-width="{curve.line_width:.1f}"{dashes}/><polygon points="{head}" fill="{curve.color}"/></g>'
    )


def _svg_text(text: Text) -> str:
    spans = "".join(
        f'<tspan fill="{s.color}"' + (' font-weight="bold"' if s.bold else "") + f">{_escaped(s.text)}</tspan>"
        for s in text.spans
        if s.text
    )
    anchor = ' text-anchor="middle"' if text.centred else ""
    return (
        f'<text x="{text.x:.1f}" y="{text.y:.1f}" font-size="{text.size:g}"{anchor} '
        f'style="white-space:pre">{spans}</text>'
    )


# Pixels and PDF


def save_with_matplotlib(picture: Picture, path: Path, scale: float) -> None:
    """Write a picture as PNG or PDF; `scale` is pixels per unit of length.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"{path.suffix[1:].upper()} files are drawn by matplotlib, which is not installed: "
            "pip install 'ftrans[plot]', or save as .svg, which needs nothing"
        ) from error
    scale = min(scale, _MOST_PIXELS / max(picture.width, picture.height))
    # A point is 1/72 inch: at 72 dots per inch, sizes of text and lines are in the picture's own unit.
    figure = Figure(figsize=(picture.width / 72, picture.height / 72), dpi=72 * scale, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    axes.axis("off")
    for shape in picture.shapes:
        _paint(axes, shape)
    # Letters where they belong, not moved to whole pixels.
    with rc_context({"text.hinting": "none", "pdf.fonttype": 42}), warnings.catch_warnings():
        # The user's code may hold characters that the font has no glyph for.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        figure.savefig(path, dpi=72 * scale)


def _paint(axes: Any, shape: Shape) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
    from matplotlib.path import Path as Outline

    if isinstance(shape, Text):
        x = shape.x - shape.width / 2 if shape.centred else shape.x
        for span in shape.spans:
            axes.text(
                x,
                shape.y,
                _drawable(span.text),
                size=shape.size,
                color=span.color,
                va="baseline",
                parse_math=False,
                family="DejaVu Sans Mono",
                weight="bold" if span.bold else "normal",
            )
            x += text_width(span.text, shape.size)
    elif isinstance(shape, Curve):
        outline = Outline(shape.points, [Outline.MOVETO, *[Outline.CURVE4] * (len(shape.points) - 1)])
        style: Any = (0, (5, 3)) if shape.is_dashed else "-"
        axes.add_patch(
            PathPatch(
                outline, fill=False, edgecolor=shape.color, linewidth=shape.line_width, linestyle=style, capstyle="butt"
            )
        )
        axes.add_patch(Polygon(shape.head, closed=True, facecolor=shape.color, linewidth=0))
    else:
        for inset, fill in [(0.0, shape.fill)] + [(3.0, "none")] * shape.is_double:
            corners = f"round,pad=0,rounding_size={max(shape.radius - inset / 2, 0)}"
            axes.add_patch(
                FancyBboxPatch(
                    (shape.x + inset, shape.y + inset),
                    shape.width - 2 * inset,
                    shape.height - 2 * inset,
                    boxstyle=corners,
                    facecolor=fill,
                    edgecolor=shape.stroke,
                    linewidth=shape.line_width,
                )
            )
        for text in shape.texts:
            _paint(axes, text)
