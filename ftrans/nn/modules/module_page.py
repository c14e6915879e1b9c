"""Modules as HTML: a tree that opens and closes, with shapes, sizes and what is trained."""

from __future__ import annotations

from typing import Any

from ...base import html
from ...debug.report import amount
from ..cells.kinds import Parameter

# A tree with more modules is closed at first, but for its root.
_MOST_OPEN = 12


def page_of_module(module: Any) -> str:
    """A module with those inside it and the cells of each."""
    is_small = sum(1 for _ in module.modules()) <= _MOST_OPEN
    return html.page(_tree("", module, True, is_small), html.notes([_total(module)]))


def _total(module: Any) -> str:
    parameters = list(module.parameters())
    trained = sum(p.size for p in parameters if p.requires_grad)
    nbytes = sum(p.type.nbytes for p in parameters)
    return f"{sum(p.size for p in parameters):,} parameters, {trained:,} trained, {amount(nbytes, 'B')}"


def _tree(name: str, module: Any, is_open: bool, is_small: bool) -> str:
    children = list(module.named_children())
    label = f"<code>{html.escaped(f'({name}) ' if name else '')}<b>{html.escaped(type(module).__name__)}</b>"
    label += f"({html.escaped(module.extra_repr())})</code>"
    head = f'<span title="{html.escaped(_total(module))}">{label}</span>'
    if not module.training:
        head += " " + html.span("evaluation mode", "faint")
    cells = [_cell(key, cell) for key, cell in module.named_cells() if _is_own(key, children)]
    table = html.table(("", "type", "", "size", ""), cells) if cells else ""
    inner = "".join(_tree(key, child, is_small, is_small) for key, child in children)
    return html.details(head, table + inner, is_open) if table or inner else f"<div>{head}</div>"


def _is_own(key: str, children: list[tuple[str, Any]]) -> bool:
    return not any(key.startswith(f"{name}.") for name, _ in children)


def _cell(key: str, cell: Any) -> list[html.Cell]:
    kind = type(cell).__name__
    is_frozen = isinstance(cell, Parameter) and not cell.requires_grad
    return [
        html.Cell(html.code(key, "name")),
        html.Cell(html.code(str(cell.type), "type")),
        html.Cell(html.escaped(kind)),
        html.Cell(amount(cell.type.nbytes, "B"), is_number=True),
        html.Cell(html.span("not trained", "faint") if is_frozen else ""),
    ]
