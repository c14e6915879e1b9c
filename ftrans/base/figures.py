"""Figures of matplotlib, and files of them.

Nothing here touches pyplot, its state or the choice of a backend, but for plots in notebooks, which show the figures of
pyplot.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .notebooks import is_in_notebook
from .source import at_line, user_line

_FORMATS = (".png", ".svg", ".pdf")


def require_format(path: str | os.PathLike[str], what: str) -> None:
    """Raise unless figures can be drawn to a file of this name."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise ValueError(f"{what} are drawn as {', '.join(_FORMATS)}, not as {os.fspath(path)!r}{at_line(user_line())}")


def new_figure(width: float, height: float, what: str = "figures", instead: str = "") -> Any:
    """An empty figure.

    Args:
        width: its width in inches.
        height: its height.
        what: what is drawn, for the message.
        instead: what to do without matplotlib, for the message.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            f"{what} are drawn by matplotlib, which is not installed: pip install 'ftrans[plot]'{instead}"
            + at_line(user_line())
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float, what: str = "figures", instead: str = "") -> Any:
    """Axes of a new figure, which a notebook shows below the cell; the arguments are those of `new_figure`."""
    figure = new_figure(width, height, what, instead)
    if is_in_notebook():
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(width, height), layout="constrained")
    return figure.subplots()


def axes_or_new(ax: Any, width: float = 5.4, height: float = 3.6) -> Any:
    """The axes that were given, or those of a new figure.

    Raises:
        TypeError: `ax` is not an object with the methods of axes.
        ImportError: matplotlib is not installed.
    """
    if ax is None:
        return new_axes(width, height)
    if not hasattr(ax, "plot") or not hasattr(ax, "set_title"):
        raise TypeError(
            f"ax is an Axes of matplotlib, such as plt.subplots()[1], not {type(ax).__name__}{at_line(user_line())}"
        )
    return ax


def plain_frame(ax: Any) -> None:
    """A faint grid, and no lines at the top and on the right."""
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Draw a figure to a file, which is replaced as a whole."""
    target = Path(path)
    new = target.with_name(f"{target.stem}.new{target.suffix}")
    figure.savefig(new, dpi=120)
    os.replace(new, target)
