"""Pictures of sparse patterns: for the terminal, as SVG, and by matplotlib."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..base.figures import new_axes

Shape = tuple[int, int]

# Up to this size, a terminal shows each position as a character of its own.
_SMALL: Shape = (15, 30)
# What larger patterns are scaled to: a character of Braille has two columns of four dots.
_TEXT: Shape = (30, 60)
_DOTS = (4, 2)
_FIRST_PATTERN = 0x2800
_BITS = np.array([[0, 3], [1, 4], [2, 5], [6, 7]])
_SVG = 240
_PLOT = 400
_SIDE = 480.0
# Cells of an SVG that stand for several positions have one of so many shades.
_SHADES = 4
_COLOR = "#1f4e8c"


def cells(rows: Any, cols: Any, shape: Shape, most: Shape) -> Any:
    """How many entries there are in each cell of a grid over a matrix, which has no more than `most` cells.

    Cells are squares as far as they can be: both sides are scaled alike unless one of them would vanish.
    """
    scale = max(1.0, shape[0] / most[0], shape[1] / most[1])
    height, width = (max(1, round(n / scale)) for n in shape)
    # Products of 64-bit integers, exact for all sizes that a pattern can have in memory.
    of_rows, of_cols = rows * height // max(shape[0], 1), cols * width // max(shape[1], 1)
    return np.bincount(of_rows * width + of_cols, minlength=height * width).reshape(height, width)


def as_text(rows: Any, cols: Any, shape: Shape) -> list[str]:
    """The lines of a picture in characters."""
    if not all(shape):
        return []
    if shape[0] <= _SMALL[0] and shape[1] <= _SMALL[1]:
        return [" ".join("●" if x else "·" for x in row) for row in cells(rows, cols, shape, shape)]
    dots = cells(rows, cols, shape, (_TEXT[0] * _DOTS[0], _TEXT[1] * _DOTS[1])) > 0
    missing = [-n % size for n, size in zip(dots.shape, _DOTS, strict=True)]
    dots = np.pad(dots, [(0, missing[0]), (0, missing[1])])
    height, width = dots.shape[0] // _DOTS[0], dots.shape[1] // _DOTS[1]
    characters = dots.reshape(height, _DOTS[0], width, _DOTS[1]).transpose(0, 2, 1, 3)
    codes = _FIRST_PATTERN + (characters << _BITS).sum(axis=(2, 3))
    lines = ["".join(map(chr, line)) for line in codes.tolist()]
    edge = "─" * width
    return [f"┌{edge}┐", *(f"│{line}│" for line in lines), f"└{edge}┘"]


def as_svg(rows: Any, cols: Any, shape: Shape, title: str) -> str:
    """The text of a picture as SVG."""
    counts = cells(rows, cols, shape, (_SVG, _SVG))
    height, width = counts.shape
    side = _SIDE / max(height, width)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * side:.0f}" height="{height * side:.0f}" '
        f'viewBox="-0.5 -0.5 {width + 1} {height + 1}">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="white" stroke="#888" stroke-width="{0.5 / side:.3g}"/>',
    ]
    shades = _shades(counts)
    for shade in range(1, _SHADES + 1):
        path = _path(shades == shade)
        if path:
            opacity = f"{shade / _SHADES:.2g}"
            parts.append(f'<path fill="{_COLOR}" fill-opacity="{opacity}" d="{path}"/>')
    return "\n".join([*parts, "</svg>"])


def _shades(counts: Any) -> Any:
    """From 0 for cells without entries to `_SHADES` for those with most, evenly in the logarithm of the number."""
    most = counts.max(initial=1)
    if most == 1:
        return counts * _SHADES
    share = np.log(np.maximum(counts, 1)) / np.log(most)
    return np.where(counts > 0, 1 + np.floor(share * (_SHADES - 1) + 1e-9), 0)


def _path(is_filled: Any) -> str:
    """Rectangles around the runs of filled cells in each row, relative to one another, which is short."""
    padded = np.pad(is_filled, [(0, 0), (1, 1)]).astype(np.int8)
    changes = np.diff(padded, axis=1)
    rows, starts = np.nonzero(changes == 1)
    ends = np.nonzero(changes == -1)[1]
    if not len(rows):
        return ""
    corners = [(0, 0), *zip(starts.tolist(), rows.tolist(), strict=True)]
    moves = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(corners)]
    lengths = (ends - starts).tolist()
    return "".join(f"m{x} {y}h{n}v1h-{n}z" for (x, y), n in zip(moves, lengths, strict=True))


def draw(rows: Any, cols: Any, shape: Shape, ax: Any, options: dict[str, Any]) -> Any:
    """Draw a pattern in axes of matplotlib, those of a new figure if `ax` is None; return the axes."""
    if ax is None:
        ax = new_axes(6.4, 4.8, "patterns", ", or call to_svg()")
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    shades = _shades(cells(rows, cols, shape, (_PLOT, _PLOT)))
    look = {
        "cmap": LinearSegmentedColormap.from_list("pattern", ["white", _COLOR]),
        "vmin": 0,
        "vmax": _SHADES,
        "interpolation": "nearest",
        "extent": (-0.5, max(shape[1], 1) - 0.5, max(shape[0], 1) - 0.5, -0.5),
    }
    ax.imshow(shades, **{**look, **options})
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True))
    ax.set_xlabel(f"{shape[0]} x {shape[1]}, {len(rows)} entries")
    return ax
