"""Writes docs/images/benchmarks_*.svg: the ratios in the tables of docs/benchmarks.md, as dots on a logarithmic axis.

python docs/make_benchmarks.py
"""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "benchmarks.md"
WIDTH, LEFT, RIGHT, ROW, TOP = 900, 520, 20, 24, 40
LEAST, MOST = 0.01, 100.0
PICTURE = re.compile(r"!\[([^\]]*)\]\((images/benchmarks_\w+\.svg)\)")
# A picture does not know the colours of the page: it brings a pair for each scheme, and a sheet to stand on.
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1b1f24 }
    .beside { fill: #57606a }
    .line { stroke: #d0d7de } .one { stroke: #57606a; stroke-width: 1.5 } .range { stroke: #0b5cad; stroke-width: 2 }
    .less { fill: #0b5cad } .more { fill: #c2410c }
    .sheet { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .beside { fill: #9da7b1 }
      .line { stroke: #373e47 } .one { stroke: #9da7b1 } .range { stroke: #79b8ff }
      .less { fill: #79b8ff } .more { fill: #fb923c }
      .sheet { fill: #14181e }
    }
"""


def pictures() -> dict[Path, str]:
    """The charts by their files: one for each table of ratios, which follows the link to its picture."""
    found = {}
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE):
        picture = PICTURE.search(section)
        if picture:
            found[DOCS / picture[2]] = chart(picture[1], rows(section))
    return found


def rows(section: str) -> list[tuple[str, str, str]]:
    """What is measured, beside what, and the ratios as text, from the first table of a section."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "]
    return [(row[0].replace("`", ""), row[1].replace("`", ""), row[3]) for row in cells if len(row) == 4][1:]


def chart(title: str, rows: list[tuple[str, str, str]]) -> str:
    """A chart as SVG."""
    height = TOP + ROW * len(rows) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="sheet" width="{WIDTH}" height="{height}"/>',
    ]
    for ratio in (0.01, 0.1, 1.0, 10.0, 100.0):
        kind = "one" if ratio == 1 else "line"
        parts.append(f'<path class="{kind}" d="M{place(ratio)} {TOP - 12} V{height - 12}"/>')
        parts.append(f'<text text-anchor="middle" x="{place(ratio)}" y="{TOP - 20}">{ratio:g}x</text>')
    for i, (measure, beside, measured) in enumerate(rows):
        parts += line(TOP + ROW * i + 10, measure, beside, measured)
    return "\n".join([*parts, "</svg>"]) + "\n"


def line(y: int, measure: str, beside: str, measured: str) -> list[str]:
    """One row: a label, and a dot for each ratio; a bar between the ends of a range."""
    ratios = [float(number) for number in re.findall(r"([\d.]+)x", measured)]
    label = escape(measure if len(measure) <= 52 else measure[:51].rstrip(" ,") + "…")
    parts = [
        f'<text x="8" y="{y + 4}">{label}</text>',
        f'<text class="beside" text-anchor="end" x="{LEFT - 14}" y="{y + 4}">{escape(beside[:26])}</text>',
    ]
    if " to " in measured:
        parts.append(f'<path class="range" d="M{place(ratios[0])} {y} H{place(ratios[1])}"/>')
    for ratio in ratios:
        kind = "less" if ratio <= 1 else "more"
        parts.append(f'<circle class="{kind}" cx="{place(ratio)}" cy="{y}" r="4.5"><title>{ratio:g}x</title></circle>')
    return parts


def place(ratio: float) -> int:
    """Where a ratio stands on the axis."""
    part = (math.log(ratio) - math.log(LEAST)) / (math.log(MOST) - math.log(LEAST))
    return round(LEFT + 20 + part * (WIDTH - LEFT - RIGHT - 40))


if __name__ == "__main__":
    for file, text in pictures().items():
        file.write_text(text)
