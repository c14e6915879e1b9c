"""Writes docs/images/which_derivative.svg: the questions that lead to the derivative to take.

python docs/make_decision.py
"""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).parent / "images" / "which_derivative.svg"
# Narrow, so that the text can be read on a phone.
WIDTH, ROW, TOP = 460, 50, 8
# What a function returns, and then: what you want of it, what to call, and why.
QUESTIONS = {
    "Does your function return one number?": [
        ("You want its gradient", "grad", "all arguments in one pass"),
        ("A Hessian times a vector", "hvp", "no matrix"),
        ("A Hessian of mostly zeros", "sparse_hessian", "only the other entries"),
        ("The whole Hessian", "hessian", "forward over reverse"),
    ],
    "Or many numbers?": [
        ("Change along a direction", "jvp", "forward mode, no matrix"),
        ("Gradient of a weighted sum", "vjp", "reverse mode, no matrix"),
        ("A Jacobian of mostly zeros", "sparse_jacobian", "only the other entries"),
        ("The whole Jacobian", "jacobian", "in the cheaper mode"),
    ],
    "Do you ask only which entries can differ from 0?": [
        ("Of the first derivatives", "jacobian_sparsity", "the pattern, no numbers"),
        ("Of the second derivatives", "hessian_sparsity", "the pattern, no numbers"),
    ],
}
# Colours of the page are not known inside of a picture: it brings a pair for each scheme.
STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1b1f24 }
    .question { font-weight: 600 }
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
    height = TOP + ROW * sum(1 + len(answers) for answers in QUESTIONS.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="560" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Which derivative to take</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="sheet" width="{WIDTH}" height="{height}"/>',
    ]
    y = TOP
    for question, answers in QUESTIONS.items():
        parts += [
            f'<rect x="8" y="{y}" width="444" height="34" rx="6"/>',
            f'<text class="question" x="20" y="{y + 22}">{question}</text>',
            f'<path d="M20 {y + 34} V{y + ROW * len(answers) + 13}"/>',
        ]
        for i, answer in enumerate(answers, start=1):
            parts += row(y + i * ROW - 8, *answer)
        y += ROW * (1 + len(answers))
    return "\n".join([*parts, "</svg>"]) + "\n"


def row(y: int, wanted: str, name: str, why: str) -> list[str]:
    """What is wanted, and what to call."""
    return [
        f'<path d="M20 {y + 21} H274"/>',
        f'<rect x="34" y="{y + 4}" width="228" height="34" rx="6"/>',
        f'<text x="46" y="{y + 26}">{wanted}</text>',
        f'<rect class="answer" x="274" y="{y}" width="178" height="42" rx="6"/>',
        f'<text class="name" x="284" y="{y + 18}">{name}</text>',
        f'<text class="why" x="284" y="{y + 35}">{why}</text>',
    ]


if __name__ == "__main__":
    FILE.write_text(picture())
    print(FILE)
