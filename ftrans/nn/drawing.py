"""Drawing: figures of matplotlib, and files of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..base.source import at_line, user_line

_FORMATS = (".png", ".svg", ".pdf")


def require_format(path: str | os.PathLike[str], what: str) -> None:
    """Raise unless figures can be drawn to a file of this name."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise ValueError(f"{what} are drawn as {', '.join(_FORMATS)}, not as {os.fspath(path)!r}{at_line(user_line())}")


def new_figure(width: float, height: float) -> Any:
    """An empty figure.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        # Without pyplot, so that neither its state nor the choice of a backend is touched.
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "figures are drawn by matplotlib, which is not installed: pip install 'ftrans[plot]'" + at_line(user_line())
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Draw a figure to a file, which is replaced as a whole."""
    target = Path(path)
    new = target.with_name(f"{target.stem}.new{target.suffix}")
    figure.savefig(new, dpi=120)
    os.replace(new, target)
