"""Flame charts of profiles."""

from __future__ import annotations

from typing import Any

from ...base.figures import axes_or_new
from ...base.source import at_line, user_line
from .. import charts
from ..profile import Profile


def flame(profile: Profile, ax: Any = None) -> Any:
    """Draw where the time of a profile went: scopes, the lines in them and their primitives, as wide as their time.

    `profile.chart(path)` writes the same to a file, with tracing and compiling below it.

    Args:
        profile: what `ft.debug.profile()` recorded.
        ax: axes of matplotlib to draw in; those of a new figure by default.

    Returns:
        The axes.

    Raises:
        TypeError: it is not a profile.
        ValueError: nothing was recorded.
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> with ft.debug.profile() as prof:
        ...     slope = ft.grad(lambda x: np.sum(np.sin(x) ** 2))(np.ones(1000))
        >>> len(ft.debug.plots.flame(prof).patches) > 3
        True
    """
    if not isinstance(profile, Profile):
        raise TypeError(
            f"plots.flame takes a profile, as `with ft.debug.profile() as prof:` makes it, not {type(profile).__name__}"
            + at_line(user_line())
        )
    charts.check("flame.png", "flame", profile.root.children)
    boxes, levels = charts.running_boxes(profile.root.walk())
    ax = axes_or_new(ax, charts.WIDTH, levels * charts.ROW + 0.5)
    charts.draw_boxes(ax, boxes, levels, ax.figure.get_figwidth())
    return ax
