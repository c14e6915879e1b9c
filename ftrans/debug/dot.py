"""A graph as text in DOT, the language of Graphviz, and as a picture drawn by its program `dot`.

The way forward and the way back are two clusters, side by side; the edges of the second are written in reverse, so that
it flows up.  Each sub-program is a cluster below the equation that runs it.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator

from ..base.source import at_line, user_line
from ..core.program import Var
from .graph import Edge, Graph, Node, Part, number

# Colours that stay apart for every kind of colour vision (those of Okabe and Ito, and tints of them).
_FAINT, _RESIDUAL, _PLUMBING, _RESULT, _PAPER = "#5c5c5c", "#00855f", "#b4bcc4", "#fff3bf", "#ffffff"
_STROKE = {"forward": "#0072b2", "backward": "#c25400"}
_FILL = {"forward": "#e3f0f9", "backward": "#fdeadb"}
_PANEL = {"forward": "#f6fafd", "backward": "#fef8f3"}
_LINE = {"forward": "#5b6b7a", "backward": "#9a6a45"}
_FONT = "DejaVu Sans Mono,Menlo,Consolas,monospace"
_HEADER = f"""\
  graph [fontname="{_FONT}" fontsize=11 labeljust=l labelloc=t color=none ranksep=0.3 nodesep=0.2 bgcolor="{_PAPER}"]
  node [fontname="{_FONT}" fontsize=11 shape=box style="rounded,filled" height=0 margin="0.1,0.05"]
  edge [arrowsize=0.6]"""
# A value that more equations use has lines to so many of them.
_MOST_LINES = 20
# Control characters, which XML cannot hold.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_dot(graph: Graph) -> str:
    """The text of a graph."""
    return "\n".join([f"digraph {_quoted(graph.name)} {{", _HEADER, *_body(graph, "n", "  "), "}"]) + "\n"


def render(dot: str, form: str, scale: float = 1.0) -> bytes:
    """The picture that Graphviz makes of a text.

    Args:
        dot: the text.
        form: "svg", "png" or "pdf".
        scale: pixels of a PNG per point.

    Raises:
        RuntimeError: Graphviz is not installed, or fails.
    """
    found = require_graphviz(form)
    done = subprocess.run([found, f"-T{form}", f"-Gdpi={72 * scale:g}"], input=dot.encode(), capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"Graphviz cannot draw this: {said}{at_line(user_line())}")
    return done.stdout


def has_graphviz() -> bool:
    """Whether Graphviz is installed."""
    return shutil.which("dot") is not None


def require_graphviz(form: str) -> str:
    """The path of Graphviz's program `dot`, without which there are no pictures."""
    found = shutil.which("dot")
    if found is None:
        raise RuntimeError(
            f"a .{form} file needs Graphviz, whose program `dot` is not on the PATH: install it (`apt install "
            "graphviz`, `brew install graphviz` or `conda install graphviz`), or save as .dot, a text that Graphviz "
            f"draws on another machine{at_line(user_line())}"
        )
    return found


def _body(graph: Graph, prefix: str, indent: str) -> Iterator[str]:
    """The statements of a graph; the names of its nodes begin with `prefix`."""
    yield f"{indent}label=<{_heading(graph)}>"
    parts: tuple[Part, ...] = ("forward", "backward")
    for part in parts:
        nodes = [f"{prefix}{i} {_attributes(n, graph.way)}" for i, n in enumerate(graph.nodes) if n.part == part]
        if not graph.has_backward:
            yield from (f"{indent}{node}" for node in nodes)
        elif nodes:
            yield f"{indent}subgraph cluster_{prefix}_{part} {{"
            yield f'{indent}  label="{part}" fontcolor="{_STROKE[part]}" style=filled fillcolor="{_PANEL[part]}"'
            yield from (f"{indent}  {node}" for node in nodes)
            yield f"{indent}}}"
    for edge in _drawn(graph):
        yield f"{indent}{_edge(edge, graph, prefix)}"
    for index, (owner, subgraph) in enumerate(graph.subgraphs):
        inner = f"{prefix}{owner}_{index}_"
        yield f"{indent}subgraph cluster_{inner} {{"
        yield from _body(subgraph, inner, indent + "  ")
        yield f"{indent}}}"
        if subgraph.nodes:
            yield f'{indent}{prefix}{owner} -> {inner}0 [style=dotted arrowhead=none color="{_PLUMBING}"]'


def _drawn(graph: Graph) -> Iterator[Edge]:
    """The edges that become lines: of a value that very many equations use, those to the first of them.

    The other boxes name it anyway, and lines across all of a long program take Graphviz minutes.
    """
    lines: Counter[Var] = Counter()
    for edge in graph.edges:
        lines[edge.var] += 1
        if lines[edge.var] <= _MOST_LINES:
            yield edge


def _edge(edge: Edge, graph: Graph, prefix: str) -> str:
    source, target = f"{prefix}{edge.source}", f"{prefix}{edge.target}"
    if edge.is_residual:
        return f'{source} -> {target} [style=dashed constraint=false color="{_RESIDUAL}"]'
    part = graph.nodes[edge.source].part
    if part == "backward":
        return f'{target} -> {source} [dir=back color="{_LINE[part]}"]'
    return f'{source} -> {target} [color="{_LINE[part]}"]'


def _heading(graph: Graph) -> str:
    counts = {part: sum(n.part == part and n.eqn is not None for n in graph.nodes) for part in ("forward", "backward")}
    if graph.has_backward:
        kept = len({e.var for e in graph.edges if e.is_residual})
        rest = (
            f"{number(counts['forward'], 'equation')} forward, {counts['backward']} backward, "
            f"{number(kept, 'value')} kept for the way back (dashed)"
        )
    else:
        rest = number(counts["forward"], "equation")
    end = '<br align="left"/>'
    return f"{_bold(graph.name)}{end}{_small(rest)}{end}"


def _attributes(node: Node, way: Part) -> str:
    """The attributes of a box."""
    before, name, behind = node.title
    part = node.part if way == "forward" else "backward"
    stroke, fill, outlines = _STROKE[part], _FILL[part], 2 if node.holds_programs else 1
    if node.kind == "equation":
        label = "<br/>".join([_escaped(before) + _bold(name) + _escaped(behind), *map(_small, node.lines)])
    else:
        label = f"{_escaped(before)}{_bold(name)}{_escaped(behind)}{_small(f': {node.lines[0]}')}"
        fill = {"input": _PAPER, "plumbing": _PAPER, "result": _RESULT}[node.kind]
        if node.kind == "plumbing":
            stroke, label = _PLUMBING, _small(f"{before}{name}{behind}: {node.lines[0]}")
    return (
        f'[label=<{label}> tooltip={_quoted(node.tooltip)} color="{stroke}" fillcolor="{fill}" peripheries={outlines}]'
    )


def _escaped(text: str) -> str:
    return html.escape(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _bold(text: str) -> str:
    return f"<b>{_escaped(text)}</b>" if text else ""


def _small(text: str) -> str:
    return f'<font point-size="9" color="{_FAINT}">{_escaped(text)}</font>'


def _quoted(text: str) -> str:
    """A string of DOT, in which Graphviz sees entities and escapes."""
    return '"' + _escaped(text).replace("\\", "\\\\").replace("\n", "\\n") + '"'
