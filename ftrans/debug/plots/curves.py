"""Learning curves: a figure of training and validation by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.figures import axes_or_new, plain_frame
from ...base.names import printable
from ...base.source import at_line, user_line

TRAINING, VALIDATION = "#1f6fb2", "#d9733e"


def learning_curves(history: Any, name: str = "loss", ax: Any = None) -> Any:
    """Draw an entry of a training's history by epoch, for training and validation.

    `nn.fit` returns the history; its method `plot` draws all entries to a file.

    Args:
        history: the `History`, or a list of dictionaries with `epoch` and other entries.
        name: the entry, such as "loss"; that with the prefix `val_` is drawn as well.
        ax: axes of matplotlib to draw in; those of a new figure by default.

    Returns:
        The axes.

    Raises:
        TypeError: `history` is neither.
        ValueError: there is no epoch yet, or no such entry.
        ImportError: matplotlib is not installed.

    Example:
        >>> import ftrans as ft
        >>> epochs = [{"epoch": 1, "loss": 0.5, "val_loss": 0.6}, {"epoch": 2, "loss": 0.25, "val_loss": 0.4}]
        >>> ft.debug.plots.learning_curves(epochs).get_title(loc="left")
        'loss'
    """
    epochs = getattr(history, "epochs", history)
    if not isinstance(epochs, Sequence) or not all(isinstance(row, Mapping) for row in epochs):
        raise TypeError(
            "learning_curves takes the history that nn.fit returns, or a list of dictionaries with an entry 'epoch', "
            f"not {type(history).__name__}{at_line(user_line())}"
        )
    names = list(dict.fromkeys(key.removeprefix("val_") for row in epochs for key in row))
    if name not in names:
        known = f"it has {', '.join(map(repr, names))}" if names else "it has no epoch yet"
        raise ValueError(f"the history has no {name!r} to draw; {known}{at_line(user_line())}")
    ax = axes_or_new(ax)
    draw_curves(ax, epochs, name)
    ax.legend(frameon=False, fontsize=9)
    return ax


def draw_curves(ax: Any, epochs: Sequence[dict[str, Any]], name: str) -> None:
    """Draw the curves of an entry, without a legend."""
    from matplotlib.ticker import MaxNLocator

    for key, label, color in ((name, "training", TRAINING), (f"val_{name}", "validation", VALIDATION)):
        points = [(row["epoch"], row[key]) for row in epochs if row.get(key) is not None]
        if points:
            marker = "o" if len(points) <= 30 else ""
            ax.plot(*zip(*points, strict=True), color=color, label=label, marker=marker, markersize=3.5, linewidth=1.6)
    ax.set_title(printable(name), loc="left", fontsize=11, parse_math=False)
    ax.set_xlabel("epoch")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    plain_frame(ax)
