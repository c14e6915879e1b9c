"""Gradient flow: how large gradients are from layer to layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base import tree
from ...base.figures import axes_or_new, plain_frame
from ...base.names import printable
from ...base.source import at_line, user_line

_MEAN, _LARGEST, _ZERO = "#1f6fb2", "#b9d3e8", "#c0392b"


def gradient_flow(gradients: Any, ax: Any = None) -> Any:
    """Draw the mean and the largest size of the elements of each gradient, from the first layer to the last.

    Bars that shrink by orders of magnitude from the last layer to the first say that gradients vanish; a name in red
    belongs to a gradient that is zero or not finite.

    Args:
        gradients: arrays by name, such as `nn.value_and_grad` returns, any other container of arrays, or a module whose
            parameters have a `.grad`.
        ax: axes of matplotlib to draw in; those of a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: there is no gradient.
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> axes = ft.debug.plots.gradient_flow({"0.weight": np.full(3, 1e-3), "1.weight": np.full(3, 0.1)})
        >>> [text.get_text() for text in axes.get_yticklabels()]
        ['0.weight', '1.weight']
    """
    named = _named(gradients)
    if not named:
        raise ValueError(
            "gradient_flow found no gradient: give it what nn.value_and_grad returns, or a module after backward()"
            + at_line(user_line())
        )
    sizes = [np.abs(x[np.isfinite(x)]) for x in named.values()]
    means = np.array([x.mean() if x.size else 0.0 for x in sizes])
    largest = np.array([x.max(initial=0.0) for x in sizes])
    ax = axes_or_new(ax, 5.4, 0.8 + 0.28 * max(len(named), 4))
    places = np.arange(len(named))
    ax.barh(places, largest, color=_LARGEST, height=0.75, label="largest")
    ax.barh(places, means, color=_MEAN, height=0.4, label="mean")
    if (largest > 0).any():
        ax.set_xscale("log")
        ax.set_xlim(means[means > 0].min() / 3, largest.max() * 2)
    ax.set_yticks(places, [printable(name) for name in named], fontsize=8, parse_math=False)
    for label, x, top in zip(ax.get_yticklabels(), named.values(), largest, strict=True):
        if top == 0 or not np.isfinite(x).all():
            label.set_color(_ZERO)
    ax.invert_yaxis()
    ax.set_xlabel("size of the gradient's elements")
    ax.legend(frameon=False, fontsize=9)
    plain_frame(ax)
    return ax


def _named(gradients: Any) -> dict[str, Any]:
    """The gradients by name, in their order."""
    if hasattr(gradients, "named_parameters"):
        found = {name: getattr(p, "grad", None) for name, p in gradients.named_parameters()}
    elif isinstance(gradients, Mapping):
        # The order of layers, which a container of arrays would sort.
        found = {
            f"{name}{path}": leaf
            for name, part in gradients.items()
            for path, leaf in zip(tree.paths(part), tree.flatten(part)[0], strict=True)
        }
    else:
        found = dict(zip(tree.paths(gradients), tree.flatten(gradients)[0], strict=True))
    return {name or "gradient": np.asarray(x, np.float64) for name, x in found.items() if x is not None}
