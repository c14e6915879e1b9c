"""Pictures of confusion matrices, drawn by matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.figures import new_figure, require_format, save_figure
from ...base.names import printable
from ...base.source import at_line, user_line

# Numbers are written into the cells of matrices up to this size.
_MOST_WRITTEN = 20


def figure_of(matrix: np.ndarray[Any, Any], labels: Sequence[str] | None = None) -> Any:
    """A figure of matplotlib with a confusion matrix.

    Raises:
        ValueError: there are not as many labels as classes.
        ImportError: matplotlib is not installed.
    """
    count = len(matrix)
    if labels is not None and len(labels) != count:
        raise ValueError(f"{len(labels)} labels were given for {count} classes{at_line(user_line())}")
    size = 2.4 + 0.42 * min(count, _MOST_WRITTEN)
    figure = new_figure(size + 0.8, size)
    axes = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1e-300)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the class")
    if count <= _MOST_WRITTEN:
        for (i, j), x in np.ndenumerate(matrix):
            color = "white" if shares[i, j] > 0.5 else "black"
            text = str(x) if matrix.dtype.kind == "i" else f"{x:.2f}"
            axes.text(j, i, text, ha="center", va="center", color=color, fontsize=8)
        names = [printable(str(name)) for name in (labels or range(count))]
        axes.set_xticks(range(count), names, rotation=0 if labels is None else 45)
        axes.set_yticks(range(count), names)
    axes.set_xlabel("prediction")
    axes.set_ylabel("target")
    return figure


def save_matrix(path: str | os.PathLike[str], matrix: np.ndarray[Any, Any], labels: Sequence[str] | None) -> None:
    """Draw a confusion matrix to a file, which is replaced as a whole."""
    require_format(path, "matrices")
    save_figure(figure_of(matrix, labels), path)
