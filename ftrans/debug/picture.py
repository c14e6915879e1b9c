"""From a graph to a picture: what boxes and lines look like, and how the parts of a page stand together."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Edge, Graph, Node, Part, number
from .layout import LEFT, RIGHT, Link, Point, Rect, layout
from .shapes import Box, Curve, Picture, Shape, Span, Text

# Colours that stay apart for every kind of colour vision (those of Okabe and Ito, and tints of them).
_INK, _FAINT = "#1a1a1a", "#5c5c5c"
_STROKE = {"forward": "#0072b2", "backward": "#c25400"}
_FILL = {"forward": "#e3f0f9", "backward": "#fdeadb"}
_PANEL = {"forward": "#f6fafd", "backward": "#fef8f3"}
_LINE = {"forward": "#5b6b7a", "backward": "#9a6a45"}
_RESIDUAL, _PLUMBING, _RESULT, _PAPER = "#00855f", "#b4bcc4", "#fff3bf", "#ffffff"

_MARGIN = 16.0
_HEADING_GAP = 7.0
_PANEL_PADDING, _PANEL_TITLE = 12.0, 16.0
_TITLE_SIZE, _NAME_SIZE, _DETAIL_SIZE, _SMALL_SIZE = 14.0, 12.0, 10.0, 10.0
# A picture is at least as wide as this before sub-programs begin a new row.
_LEAST_WIDTH = 800.0


def picture_of(graph: Graph) -> Picture:
    """The picture of a graph.  Its sub-programs stand below, side by side while they are no wider than the graph."""
    blocks = [_Block(g) for g in _with_subgraphs(graph)]
    shapes: list[Shape] = []
    x = y = _MARGIN
    widest = blocks[0].width
    height = 0.0
    for index, block in enumerate(blocks):
        if index == 1 or (x > _MARGIN and x + block.width > _MARGIN + max(widest, _LEAST_WIDTH)):
            x, y, height = _MARGIN, y + height + 2 * _MARGIN, 0.0
        shapes += block.shapes(x, y)
        x += block.width + 2 * _MARGIN
        widest = max(widest, x - 3 * _MARGIN)
        height = max(height, block.height)
    return Picture(widest + 2 * _MARGIN, y + height + _MARGIN, shapes)


def _with_subgraphs(graph: Graph) -> list[Graph]:
    return [graph, *(inner for subgraph in graph.subgraphs for inner in _with_subgraphs(subgraph))]


class _Block:
    """A graph with its heading, which can be drawn at any place."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.labels = [_label(node) for node in graph.nodes]
        columns = [LEFT if node.part == "forward" else RIGHT for node in graph.nodes]
        links = [Link(e.source, e.target, e.var) for e in graph.edges]
        self.layout = layout([size for _, size in self.labels], links, columns)
        self.heading = _heading(graph)
        self.padding = _PANEL_PADDING if graph.has_backward else 0.0
        self.top = (
            sum(text.size + _HEADING_GAP for text in self.heading) + 4 + (self.padding and self.padding + _PANEL_TITLE)
        )
        self.width = max(self.layout.width + 2 * self.padding, *(text.width for text in self.heading))
        self.height = self.top + self.layout.height + self.padding

    def shapes(self, x: float, y: float) -> list[Shape]:
        """The shapes, with the upper left corner of the block at (x, y)."""
        shapes: list[Shape] = []
        baseline = y
        for text in self.heading:
            baseline += text.size
            shapes.append(text._replace(x=x, y=baseline))
            baseline += _HEADING_GAP
        if self.graph.has_backward:
            shapes += self._panels(x + self.padding, y + self.top)
        x, y = x + self.padding, y + self.top
        curves = [
            _curve(edge, self.graph.nodes, [(x + a, y + b) for a, b in route])
            for edge, route in zip(self.graph.edges, self.layout.routes, strict=True)
        ]
        # Residuals lie behind the others.
        curves.sort(key=lambda curve: not curve.is_dashed)
        shapes += curves
        for node, (texts, _), rect in zip(self.graph.nodes, self.labels, self.layout.boxes, strict=True):
            part = node.part if self.graph.way == "forward" else "backward"
            shapes.append(_box(node, part, texts, rect._replace(x=rect.x + x, y=rect.y + y)))
        return shapes

    def _panels(self, x: float, y: float) -> list[Shape]:
        shapes: list[Shape] = []
        for column, part in ((LEFT, "forward"), (RIGHT, "backward")):
            if column not in self.layout.columns:
                continue
            left, right = self.layout.columns[column]
            top = y - self.padding - _PANEL_TITLE
            title = Text(
                x + (left + right) / 2, top + _PANEL_TITLE - 1, (Span(part, _STROKE[part], True),), _DETAIL_SIZE + 1
            )
            shapes.append(
                Box(
                    x + left - self.padding,
                    top,
                    right - left + 2 * self.padding,
                    self.layout.height + 2 * self.padding + _PANEL_TITLE,
                    _PANEL[part],
                    _PANEL[part],
                    8.0,
                    texts=(title,),
                    role="panel",
                )
            )
        return shapes


def _heading(graph: Graph) -> list[Text]:
    counts = {part: sum(n.part == part and n.eqn is not None for n in graph.nodes) for part in ("forward", "backward")}
    if graph.has_backward:
        kept = len({e.var for e in graph.edges if e.is_residual})
        spans = [
            Span(f"{number(counts['forward'], 'equation')} forward", _STROKE["forward"]),
            Span(f", {counts['backward']} backward", _STROKE["backward"]),
            Span(f", {number(kept, 'value')} kept for the way back (dashed)", _RESIDUAL),
        ]
    else:
        spans = [Span(number(counts["forward"], "equation"), _FAINT)]
    return [
        Text(0, 0, (Span(graph.name, _INK, True),), _TITLE_SIZE, centred=False),
        Text(0, 0, tuple(spans), _DETAIL_SIZE, centred=False),
    ]


def _label(node: Node) -> tuple[tuple[Text, ...], tuple[float, float]]:
    """The lines of a box, around its upper middle, and its size."""
    before, name, behind = node.title
    rows: list[tuple[tuple[Span, ...], float]] = []
    if node.kind == "equation":
        rows += [((Span(before, _FAINT), Span(name, _INK, True), Span(behind, _INK)), _NAME_SIZE)]
        rows += [((Span(line, _FAINT),), _DETAIL_SIZE) for line in node.lines]
    else:
        # On one line: "a: f64[3]".
        is_plumbing = node.kind == "plumbing"
        color = _FAINT if is_plumbing else _INK
        types = Span(f": {node.lines[0]}", _FAINT)
        rows += [
            (
                (Span(before, _FAINT), Span(name, color, not is_plumbing), Span(behind, color), types),
                _SMALL_SIZE if is_plumbing else _DETAIL_SIZE + 1,
            )
        ]
    side, top = (6.0, 3.0) if node.kind == "plumbing" else (12.0, 8.0) if node.holds_programs else (9.0, 5.0)
    texts, y = [], top
    for spans, size in rows:
        texts.append(Text(0, y + 0.87 * size, spans, size))
        y += 1.25 * size
    return tuple(texts), (max(t.width for t in texts) + 2 * side, y + top - 0.15 * rows[-1][1])


def _box(node: Node, part: Part, texts: Sequence[Text], rect: Rect) -> Box:
    middle = rect.x + rect.width / 2
    placed = tuple(t._replace(x=middle, y=rect.y + t.y) for t in texts)
    stroke, fill, radius, line_width = _STROKE[part], _FILL[part], 4.0, 1.0
    if node.kind == "plumbing":
        stroke, fill, line_width = _PLUMBING, _PAPER, 0.8
    elif node.kind == "input":
        fill, radius, line_width = _PAPER, rect.height / 2, 1.6
    elif node.kind == "result":
        fill, radius, line_width = _RESULT, rect.height / 2, 1.6
    role = f"{node.kind} {part}"
    return Box(*rect, fill, stroke, radius, line_width, node.holds_programs, placed, role, node.tooltip)


def _curve(edge: Edge, nodes: Sequence[Node], points: list[Point]) -> Curve:
    if edge.is_residual:
        return Curve(points, _RESIDUAL, is_dashed=True, role="edge residual")
    part = nodes[edge.source].part
    return Curve(points, _LINE[part], role=f"edge {part}")
