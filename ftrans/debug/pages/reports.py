"""Patterns and reports on gradients as HTML."""

from __future__ import annotations

import numpy as np

from ...api.checkpoint import Residuals
from ...api.explain_zero import ZeroGradients
from ...api.sparsity import Sparsity
from ...base import html
from ...base.source import Line
from ...core.types import ArrayType
from ...testing.failures import GradientError
from ..graph import number
from ..report import amount


def page_of_sparsity(pattern: Sparsity) -> str:
    """A pattern: its size, its picture, and how its entries are spread."""
    height, width = pattern.shape
    entries = f"{pattern.nnz:,} {'entry' if pattern.nnz == 1 else 'entries'} ({100 * pattern.density:.3g} %)"
    head = f"<b>Sparsity</b> {height:,} x {width:,}, {html.escaped(entries)}"
    rows = []
    for name, numbers, count in (("row", pattern.rows, height), ("column", pattern.cols, width)):
        counts = np.bincount(numbers, minlength=count) if count else np.zeros(1)
        values = (counts.min(), counts.mean(), counts.max(), (counts == 0).sum())
        rows.append([html.Cell(name), *(html.Cell(f"{x:,.4g}", is_number=True) for x in values)])
    spread = html.table(("entries in each", "fewest", "mean", "most", "empty ones"), rows)
    return html.page(html.details(head, pattern.to_svg() + spread, is_open=True))


def page_of_residuals(kept: Residuals) -> str:
    """What reverse mode keeps, the largest first."""
    most = max((one.nbytes for one in kept), default=1) or 1
    rows = [
        [
            html.Cell(html.code(str(ArrayType(one.shape, one.dtype)), "type")),
            html.Cell(amount(one.nbytes, "B"), is_number=True, share=one.nbytes / most),
            html.Cell(html.code(one.name or one.primitive, "name")),
            html.Cell(*_line(one.line)),
        ]
        for one in sorted(kept, key=lambda one: -one.nbytes)
    ]
    head = f"<b>kept for the way back</b> {amount(kept.total, 'B')} in {number(len(kept), 'array')}"
    return html.page(html.details(head, html.table(("type", "bytes", "made by", "line"), rows), is_open=True))


def page_of_zeros(zeros: ZeroGradients) -> str:
    """Gradients that are zero, with the lines where derivatives end."""
    if not zeros:
        return html.page(html.span(repr(zeros)))
    parts = []
    for one in zeros:
        why = "zero for all values" if one.is_structural else "zero for these values"
        head = f"{html.code(one.path, 'name')} {html.code(str(one.type), 'type')} {why}"
        rows = [[html.Cell(html.escaped(cut.why)), html.Cell(*_line(cut.line))] for cut in one.cuts]
        body = html.table(("", "line"), rows) if rows else html.span("the result does not depend on it", "faint")
        parts.append(html.details(head, body, is_open=len(zeros) <= 4))
    return html.page(f"<b>Gradients of {html.code(zeros.name)} that are zero</b>", *parts)


def page_of_error(error: GradientError) -> str:
    """What a check of derivatives has found."""
    rows = [
        [
            html.Cell(html.escaped(" of ".join((*reversed(one.chain),)) or one.check), one.describe()),
            html.Cell(f"{one.actual:.6g}", is_number=True),
            html.Cell(f"{one.expected:.6g}", is_number=True),
            html.Cell(f"{one.relative_error:.2g}", is_number=True),
        ]
        for one in error.failures
    ]
    parts = [html.details("<b>derivatives that are wrong</b>", html.table(_WRONG, rows), is_open=True)]
    culprits = [
        html.details(
            f"{html.code(one.operation, 'bad')} {_line(one.line)[0]}",
            (f"its rule: {_line(one.rule_line)[0]}" if one.rule_line is not None else "")
            + html.block("\n".join(filter(None, (one.failure.describe(), one.failure.detail, one.note)))),
        )
        for one in error.culprits
    ]
    if culprits:
        parts.append(html.details("<b>operations whose own derivative is wrong</b>", "".join(culprits), is_open=True))
    return html.page(*parts, html.details("the message", html.block(str(error))))


_WRONG = ("mode", "computed", "correct", "relative error")


def _line(line: Line | None) -> tuple[str, str]:
    """A line as HTML, and what is shown when the pointer is over it."""
    if line is None:
        return "", ""
    return html.code(repr(line), "faint") + " " + html.code(line.text), line.describe()
