"""Learning curves, drawn by matplotlib: a panel for the loss, and one for each metric."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...base.figures import new_figure, require_format, save_figure
from ...base.source import at_line, user_line
from ...debug.plots.curves import draw_curves

# The figures of an epoch by name.
Row = dict[str, Any]

_STEPS = "#b9d3e8"
_NO_METRIC = ("epoch", "step", "seconds", "samples_per_second")
_PANEL = (5.4, 3.6)


def draw(
    path: str | os.PathLike[str],
    epochs: Sequence[Row],
    steps: Sequence[tuple[int, float]],
    monitor: str,
    best: Row | None,
) -> None:
    """Draw the curves of a history, with these attributes, to a file."""
    require_format(path, "curves")
    if not epochs:
        raise ValueError(f"the history has no epoch yet, so there is nothing to draw{at_line(user_line())}")
    names = list(dict.fromkeys(name.removeprefix("val_") for row in epochs for name in row if name not in _NO_METRIC))
    columns = min(len(names), 3)
    rows = -(-len(names) // columns)
    figure = new_figure(columns * _PANEL[0], rows * _PANEL[1])
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for name, axes in zip(names, panels, strict=False):
        if name == "loss":
            _draw_steps(axes, epochs, steps)
        draw_curves(axes, epochs, name)
        if best is not None and monitor.removeprefix("val_") == name:
            _mark(axes, best["epoch"], best[monitor])
        axes.legend(frameon=False, fontsize=9)
    for axes in list(panels)[len(names) :]:
        axes.remove()
    save_figure(figure, path)


def _mark(axes: Any, epoch: int, value: float) -> None:
    axes.plot(epoch, value, "*", color="#2f2f2f", markersize=11, label=f"best: {value:.4g}", zorder=5)


def _draw_steps(axes: Any, epochs: Sequence[Row], steps: Sequence[tuple[int, float]]) -> None:
    """The loss within epochs, behind its curve.  The mean of an epoch is drawn at its end."""
    ends = [(0, 0), *((row["step"], row["epoch"]) for row in epochs if "step" in row)]
    points = []
    for step, loss in steps:
        for (first, epoch), (last, _) in pairwise(ends):
            if first < step <= last:
                points.append((epoch + (step - first) / (last - first), loss))
                break
    if len(points) > 2 * len(epochs):
        axes.plot(*zip(*points, strict=True), color=_STEPS, linewidth=1, label="training, by steps", zorder=0)
