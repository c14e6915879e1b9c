"""HTML for notebooks: escaped text, tables, parts that open and close, and colours for light and dark pages.

Colours are the variables of the page where it has some (Jupyter, VS Code, pydata-sphinx-theme); elsewhere the browser
says whether it is dark.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .names import printable

# Pages have rules for tables and code too, Jupyter some with two classes: three outweigh them. In the dark,
# pydata-sphinx-theme puts HTML of notebooks on light paper; with its text goes its background.
_STYLE = """
.ftrans{--ft-d-text:#1f2328;--ft-d-faint:#59636e;--ft-d-line:#d8dee4;--ft-d-shade:#f3f5f8;--ft-name:#0b5cad;
--ft-type:#0f7b4f;--ft-bar:#9cc4ec;--ft-bad:#b3261e}
@media (prefers-color-scheme:dark){.ftrans{--ft-d-text:#e6e8eb;--ft-d-faint:#a0a8b2;--ft-d-line:#3d444d;
--ft-d-shade:#23272e}}
.ftrans{--ft-text:var(--jp-content-font-color1,var(--vscode-editor-foreground,var(--pst-color-text-base,
var(--ft-d-text))));--ft-faint:var(--jp-content-font-color2,var(--vscode-descriptionForeground,
var(--pst-color-text-muted,var(--ft-d-faint))));--ft-line:var(--jp-border-color2,var(--vscode-panel-border,
var(--pst-color-border,var(--ft-d-line))));--ft-shade:var(--jp-layout-color2,var(--vscode-textBlockQuote-background,
var(--pst-color-surface,var(--ft-d-shade))));color:var(--ft-text);background:var(--pst-color-background,transparent);
font-size:13px;line-height:1.45;overflow-x:auto}
@media (prefers-color-scheme:dark){.ftrans{--ft-name:#79b8ff;--ft-type:#7ee2a8;--ft-bar:#2f5f94;--ft-bad:#ff9a91}}
[data-jp-theme-light=true] .ftrans,[data-theme=light] .ftrans,.vscode-light .ftrans{--ft-name:#0b5cad;
--ft-type:#0f7b4f;--ft-bar:#9cc4ec;--ft-bad:#b3261e}
[data-jp-theme-light=false] .ftrans,[data-theme=dark] .ftrans,.vscode-dark .ftrans{--ft-name:#79b8ff;
--ft-type:#7ee2a8;--ft-bar:#2f5f94;--ft-bad:#ff9a91}
.ftrans table{border-collapse:collapse;margin:.3em 0;color:inherit;background:none}
.ftrans td,.ftrans th{padding:1px 10px 1px 0;text-align:left;vertical-align:top;border:0;white-space:nowrap;
background:none;color:inherit}
.ftrans th{font-weight:600;border-bottom:1px solid var(--ft-line)}
.ftrans .ft-n{text-align:right;font-variant-numeric:tabular-nums}
.ftrans .ft-w{white-space:normal;min-width:20em}
.ftrans tbody tr:hover{background:var(--ft-shade)}
.ftrans code,.ftrans pre{font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
background:none;color:inherit;padding:0;margin:0;border:0;white-space:pre}
.ftrans details{margin:1px 0}
.ftrans details details{margin-left:1.2em}
.ftrans summary{cursor:pointer}
.ftrans summary:hover{background:var(--ft-shade)}
.ftrans .ft-name{color:var(--ft-name)}
.ftrans .ft-type{color:var(--ft-type)}
.ftrans .ft-faint{color:var(--ft-faint)}
.ftrans .ft-bad{color:var(--ft-bad)}
.ftrans .ft-bar{background:linear-gradient(var(--ft-bar),var(--ft-bar)) no-repeat right/var(--ft-share) 100%}
.ftrans svg{max-width:100%;height:auto}
.ftrans .ft-body{margin:.2em 0 .4em 1.2em}
""".replace(".ftrans ", ".ftrans.ftrans.ftrans ")


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        html: what it holds.
        hover: text that is shown when the pointer is over it.
        is_number: whether it is aligned to the right.
        share: how much of it a bar fills, from 0 to 1.
    """

    html: str
    hover: str = ""
    is_number: bool = False
    share: float = 0.0


def page(*parts: str) -> str:
    """Parts as one piece of HTML with its style."""
    return f'<div class="ftrans"><style>{_STYLE}</style>{"".join(parts)}</div>'


def escaped(text: str) -> str:
    """Text, with characters that are not printable as escapes."""
    return html.escape("\n".join(printable(line) for line in text.split("\n")))


def span(text: str, kind: str = "", hover: str = "") -> str:
    """Text of a kind ("name", "type", "faint", "bad"), with text that is shown when the pointer is over it."""
    return f"<span{_class(kind)}{_title(hover)}>{escaped(text)}</span>"


def code(text: str, kind: str = "", hover: str = "") -> str:
    """The same for code."""
    return f"<code{_class(kind)}{_title(hover)}>{escaped(text)}</code>"


def block(text: str) -> str:
    """Lines of text, as they are."""
    return f"<pre>{escaped(text)}</pre>"


def details(summary: str, body: str, is_open: bool = False) -> str:
    """A part that opens and closes; both arguments are HTML."""
    opened = ' open=""' if is_open else ""
    return f'<details{opened}><summary>{summary}</summary><div class="ft-body">{body}</div></details>'


def table(titles: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table; titles of columns of numbers are aligned as these."""
    lines = list(rows)
    numbers = [cell.is_number for cell in lines[0]] if lines else [False] * len(titles)
    head = "".join(f"<th{_class('n') if n else ''}>{escaped(t)}</th>" for t, n in zip(titles, numbers, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def notes(lines: Iterable[str]) -> str:
    """Lines below a table."""
    return "".join(f'<div class="ft-faint">{escaped(line)}</div>' for line in lines)


def _cell(cell: Cell) -> str:
    kinds = [kind for kind, wanted in (("ft-n", cell.is_number), ("ft-bar", cell.share > 0)) if wanted]
    style = f' style="--ft-share:{100 * min(cell.share, 1.0):.1f}%"' if cell.share > 0 else ""
    classes = f' class="{" ".join(kinds)}"' if kinds else ""
    return f"<td{classes}{style}{_title(cell.hover)}>{cell.html}</td>"


def _class(kind: str) -> str:
    return f' class="ft-{kind}"' if kind else ""


def _title(text: str) -> str:
    return f' title="{escaped(text)}"' if text else ""
