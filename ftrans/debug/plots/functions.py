"""Plots of functions: the landscape of a loss, and Taylor approximations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...api.call import check_function
from ...api.jit import jit
from ...api.loops import map as map_
from ...api.taylor import taylor as taylor_coefficients
from ...base.figures import axes_or_new, plain_frame
from ...base.names import printable
from ...base.source import at_line, user_line
from .points import point_of, scalar_function

_COLORS = ("#d9733e", "#2a9d6f", "#8e5bb5", "#c9a227", "#b3405b", "#4b8bbe")
_POINTS = 401


def loss_landscape(
    f: Callable[..., Any],
    x: Any,
    directions: tuple[Any, Any] | None = None,
    *,
    span: float = 1.0,
    points: int = 41,
    seed: int = 0,
    ax: Any = None,
) -> Any:
    """Draw a function around a point, over a plane through it: `f(x + a * d + b * e)`.

    All values are computed by one compiled program.  Random directions are orthogonal and as long as `x` is, so
    `span=1` reaches points that are as far from `x` as zero is.

    Args:
        f: a function of one argument, whose result is a real number.
        x: the middle: an array, or a container of arrays, such as the parameters of a model.
        directions: the directions `d` and `e`, each like `x`; random ones by default.
        span: how far `a` and `b` reach to both sides.
        points: how many values of each, at least 2.
        seed: seed of random directions.
        ax: axes of matplotlib to draw in; those of a new figure by default.

    Returns:
        The axes.

    Raises:
        TypeError: the result of `f` is not a real number, or directions are not a pair of containers like `x`.
        ValueError: `span` is not positive, or there are fewer than 2 points.
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> axes = ft.debug.plots.loss_landscape(lambda x: np.sum(x**4 - x**2), np.array([1.0, -0.5]), points=9)
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('first direction', 'second direction')
    """
    if not span > 0 or points < 2:
        raise ValueError(
            f"loss_landscape takes a positive span and at least 2 points, not {span} and {points}{at_line(user_line())}"
        )
    of_vector, point = scalar_function(f, x, "plots.loss_landscape")
    first, second = _directions(point.vector, directions, seed)
    steps = np.linspace(-span, span, points)
    grid = np.stack([np.tile(steps, points), np.repeat(steps, points)], axis=1)
    middle, dtype = point.vector, point.vector.dtype

    def values(pairs: Any) -> Any:
        return map_(lambda pair: of_vector((middle + pair[0] * first + pair[1] * second).astype(dtype)), pairs)

    found = np.asarray(jit(values)(grid)).reshape(points, points)
    ax = axes_or_new(ax, 5.4, 4.4)
    shown = ax.contourf(steps, steps, np.ma.masked_invalid(found), 24, cmap="viridis")
    ax.contour(steps, steps, np.ma.masked_invalid(found), 12, colors="white", linewidths=0.4, alpha=0.6)
    ax.plot(0, 0, "o", color="white", markeredgecolor="black", markersize=6)
    ax.figure.colorbar(shown, ax=ax, label="value")
    ax.set_xlabel("first direction")
    ax.set_ylabel("second direction")
    ax.set_aspect("equal")
    return ax


def _directions(middle: Any, directions: tuple[Any, Any] | None, seed: int) -> tuple[Any, Any]:
    if directions is None:
        drawn = np.random.default_rng(seed).normal(size=(middle.size, 2))
        orthogonal = np.linalg.qr(drawn)[0] if middle.size > 1 else np.repeat(drawn[:, :1], 2, axis=1)
        length = float(np.linalg.norm(middle)) or 1.0
        return length * orthogonal[:, 0], length * orthogonal[:, 1]
    if not isinstance(directions, tuple | list) or len(directions) != 2:
        raise TypeError(f"loss_landscape takes a pair of directions, each like x{at_line(user_line())}")
    first, second = (point_of(d, "the directions of plots.loss_landscape").vector for d in directions)
    if first.shape != middle.shape or second.shape != middle.shape:
        raise TypeError(
            f"the directions of loss_landscape have {first.size} and {second.size} elements, and x has {middle.size}"
            + at_line(user_line())
        )
    return first, second


def taylor(
    f: Callable[..., Any], x: float, orders: int | Sequence[int] = (1, 2, 4, 8), *, span: float = 1.0, ax: Any = None
) -> Any:
    """Draw a function of a number and its Taylor polynomials at a point.

    Args:
        f: a function of a number, which takes arrays as well, element by element.
        x: the point.
        orders: orders of the polynomials, or one of them.
        span: how far the picture reaches to both sides.
        ax: axes of matplotlib to draw in; those of a new figure by default.

    Returns:
        The axes.

    Raises:
        TypeError: `f` is not a function, or its result is not a number.
        ValueError: an order is negative, or `span` is not positive.
        ImportError: matplotlib is not installed.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> axes = ft.debug.plots.taylor(np.sin, 0.0, orders=(1, 3), span=3.0)
        >>> [line.get_label() for line in axes.lines[:3]]
        ['sin', 'order 1', 'order 3']
    """
    check_function(f, "plots.taylor")
    orders = (orders,) if isinstance(orders, int) else tuple(orders)
    if not span > 0 or not orders or min(orders) < 0:
        raise ValueError(
            f"plots.taylor takes orders from 0 and a positive span, not {orders} and {span}" + at_line(user_line())
        )
    coefficients = [np.asarray(c) for c in taylor_coefficients(f, float(x), 1.0, max(orders))]
    if coefficients[0].shape != ():
        raise TypeError(
            f"plots.taylor takes a function whose result is a number, not an array of shape {coefficients[0].shape}"
            + at_line(user_line())
        )
    steps = np.linspace(-span, span, _POINTS)
    with np.errstate(all="ignore"):
        values = np.asarray(f(x + steps))
    ax = axes_or_new(ax)
    name = getattr(f, "__name__", "f")
    ax.plot(x + steps, values, color="#1f6fb2", linewidth=2.4, label="f" if name == "<lambda>" else printable(name))
    for order, color in zip(orders, _COLORS * (1 + len(orders) // len(_COLORS)), strict=False):
        polynomial = np.polynomial.polynomial.polyval(steps, coefficients[: order + 1])
        ax.plot(x + steps, polynomial, color=color, linewidth=1.2, label=f"order {order}")
    ax.plot(x, coefficients[0], "o", color=ax.xaxis.label.get_color(), markersize=5)
    finite = values[np.isfinite(values)]
    if finite.size:
        # Polynomials leave the picture where they leave the function.
        room = 0.5 * (np.ptp(finite) or 1.0)
        ax.set_ylim(finite.min() - room, finite.max() + room)
    ax.legend(frameon=False, fontsize=9)
    plain_frame(ax)
    return ax
