"""Formulas as MathML, which browsers draw by themselves: the site loads no script from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

# A function's name and its argument, as in log p, which have no space between them by themselves.
NAMED = re.compile(r"(<mi>(?:log|exp|sin|cos|tan|max|min)</mi>)(\s*<m[is])")


def mathml(text: str, as_block: bool = False) -> str:
    return NAMED.sub(r'\1<mspace width="0.17em"/>\2', latex2mathml.tex2mathml(text, as_block=as_block))


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def displayed(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math-display">{mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.config["html_math_renderer"] = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
