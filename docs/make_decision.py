"""Writes docs/images/which_derivative.svg: the questions that lead to the derivative to take.

python docs/make_decision.py
"""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).parent / "images" / "which_derivative.svg"
WIDTH, ROW, TOP = 760, 62, 12
# A question, what "yes" leads to, and why. "No" leads to the next question.
QUESTIONS = [
    ("One number as result: do you want its slope?", "grad", "all arguments in one pass"),
    ("Do you follow one direction of the arguments?", "jvp", "forward mode, no matrix"),
    ("Do you weight the results and go back once?", "vjp", "reverse mode, no matrix"),
    ("First derivatives: is most of the matrix zero?", "sparse_jacobian", "only entries that can differ from 0"),
    ("First derivatives: the whole matrix?", "jacobian", "the cheaper mode is chosen"),
    ("Second derivatives: times a vector only?", "hvp", "no matrix"),
    ("Second derivatives: is most of the matrix zero?", "sparse_hessian", "only entries that can differ from 0"),
    ("Second derivatives: the whole matrix?", "hessian", "forward over reverse"),
    ("Only which entries can differ from zero?", "jacobian_sparsity", "hessian_sparsity for second derivatives"),
]
# Colours of the page are not known inside of a picture: it brings a pair for each scheme.
STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1b1f24 }
    .name { font: 600 14px ui-monospace, monospace; fill: #0b5cad }
    .why { font-size: 12px; fill: #57606a }
    rect { fill: #f6f8fa; stroke: #8c959f }
    .answer { fill: #e7f1fb; stroke: #0b5cad }
    path { stroke: #8c959f; fill: none }
    .sheet { fill: #ffffff; stroke: none }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .name { fill: #79b8ff } .why { fill: #9da7b1 }
      rect { fill: #22272e; stroke: #768390 } .answer { fill: #1c2f45; stroke: #79b8ff }
      .sheet { fill: #14181e }
    }
"""


def picture() -> str:
    """The picture as SVG."""
    height = TOP + ROW * len(QUESTIONS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Which derivative to take</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="sheet" width="{WIDTH}" height="{height}"/>',
    ]
    for i, question in enumerate(QUESTIONS):
        parts += row(TOP + i * ROW, *question, last=i == len(QUESTIONS) - 1)
    return "\n".join([*parts, "</svg>"]) + "\n"


def row(y: int, question: str, name: str, why: str, last: bool) -> list[str]:
    """One question and its answer."""
    middle = y + 21
    parts = [
        f'<rect x="8" y="{y}" width="390" height="42" rx="6"/>',
        f'<text x="22" y="{middle + 5}">{question}</text>',
        f'<path d="M398 {middle} H458"/>',
        f'<text class="why" x="416" y="{middle - 5}">yes</text>',
        f'<rect class="answer" x="458" y="{y}" width="294" height="42" rx="6"/>',
        f'<text class="name" x="472" y="{y + 18}">{name}</text>',
        f'<text class="why" x="472" y="{y + 35}">{why}</text>',
    ]
    if not last:
        parts += [f'<path d="M60 {y + 42} v{ROW - 42}"/>', f'<text class="why" x="68" y="{y + 56}">no</text>']
    return parts


if __name__ == "__main__":
    FILE.write_text(picture())
