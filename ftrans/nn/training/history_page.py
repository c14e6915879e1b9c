"""A history of training as HTML: a table of epochs, and curves beside their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...base import html

# A history with more epochs is closed at first.
_MOST_OPEN = 12
_WIDTH, _HEIGHT = 120, 26


def page_of_history(
    names: Sequence[str],
    epochs: Sequence[dict[str, Any]],
    best: dict[str, Any] | None,
    shown: Callable[[str, Any], str],
) -> str:
    """A curve for each entry, and a table with a row for each epoch.

    Args:
        names: the entries to show.
        epochs: the figures of each epoch by name.
        best: the best epoch.
        shown: a value as text, given the name of its entry.
    """
    if not epochs:
        return html.page(html.span("no epoch yet", "faint"))
    rows = []
    for epoch in epochs:
        mark = "<b>{}</b>" if epoch is best or epoch == best else "{}"
        hover = "\n".join(f"{name}: {shown(name, epoch.get(name))}" for name in epoch)
        rows.append([html.Cell(mark.format(html.escaped(shown(n, epoch.get(n)))), hover, True) for n in names])
    curves = [
        [html.Cell(html.code(name, "name")), html.Cell(_curve(values)), html.Cell(shown(name, values[-1]), "", True)]
        for name in names
        if name not in ("epoch", "seconds")
        and (values := [row[name] for row in epochs if isinstance(row.get(name), int | float)])
    ]
    head = f"<b>epochs</b> {len(epochs)}"
    parts = [html.table(("", "curve", "last"), curves)]
    return html.page(*parts, html.details(head, html.table(names, rows), is_open=len(epochs) <= _MOST_OPEN))


def _curve(values: Sequence[float]) -> str:
    """A line through finite values, from left to right."""
    finite = [(i, x) for i, x in enumerate(values) if math.isfinite(x)]
    low, high = (min(x for _, x in finite), max(x for _, x in finite)) if finite else (0.0, 1.0)
    across, up = _WIDTH / max(len(values) - 1, 1), (_HEIGHT - 4) / ((high - low) or 1.0)
    points = " ".join(f"{i * across:.1f},{_HEIGHT - 2 - (x - low) * up:.1f}" for i, x in finite)
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="curve"><polyline points="{points}" '
        'fill="none" stroke="var(--ft-name)" stroke-width="1.5"/></svg>'
    )
