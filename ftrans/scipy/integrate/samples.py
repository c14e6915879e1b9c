"""Integrals from samples: the trapezoidal rule, Simpson's and Romberg's, and Gauss's with a fixed number of points.

All are sums with weights that depend on where the samples are, and run as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate
import scipy.special

from ...base.source import at_line, user_line
from ...core.types import is_inexact
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, cast, has_tracer

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "fixed_quad", "romb", "simpson", "trapezoid"]


def _floating(x: Any) -> Any:
    x = asarray(x)
    return x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))


def _last(y: Any, x: Any, axis: int, what: str) -> tuple[Any, Any]:
    """Samples with the axis of integration last, and where they are, or None.

    Raises:
        ValueError: `x` has another shape, or there is no sample.
    """
    y = _floating(y)
    count = y.shape[axis]
    if not count:
        raise ValueError(f"{what} needs at least one sample{at_line(user_line())}")
    moved = np.moveaxis(y, axis, -1)
    if x is None:
        return moved, None
    x = _floating(x)
    if x.ndim != 1 and x.ndim != y.ndim:
        raise ValueError(
            f"x of {what} has one axis, or those of y: it is {x.type}, and y {y.type}{at_line(user_line())}"
        )
    x = x if x.ndim == 1 else np.moveaxis(x, axis, -1)
    if x.shape[-1] != count:
        raise ValueError(
            f"{what} needs as many x as there are samples, {count}, not {x.shape[-1]}{at_line(user_line())}"
        )
    return moved, x


@implements(scipy.integrate.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate by the trapezoidal rule, as `numpy.trapezoid`.

    Arguments are SciPy's; derivatives are by `y`, `x` and `dx`.

    Returns:
        The integrals, of the shape of `y` without the axis.

    Raises:
        ValueError: `x` does not fit to `y`.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy import integrate
        >>> print(ft.grad(lambda y: integrate.trapezoid(y, dx=0.5))(np.ones(3)))
        [0.25 0.5  0.25]
    """
    return np.trapezoid(_floating(y), x, dx, axis)


@implements(scipy.integrate.cumulative_trapezoid)
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Integrate by the trapezoidal rule up to each sample."""
    y, x = _last(y, x, axis, "cumulative_trapezoid")
    widths = dx if x is None else np.diff(x)
    found = np.cumsum(widths * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        if np.ndim(initial) or initial != 0:
            raise ValueError(
                f"initial of cumulative_trapezoid must be None or 0, not {initial!r}{at_line(user_line())}"
            )
        found = np.concatenate([np.zeros_like(found, shape=(*found.shape[:-1], 1)), found], axis=-1)
    return np.moveaxis(found, -1, axis)


@implements(scipy.integrate.simpson)
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate by Simpson's rule; with an odd number of intervals the last one by a parabola through three samples."""
    y, x = _last(y, x, axis, "simpson")
    count = y.shape[-1]
    if count == 1:
        return 0.0 * y[..., 0]
    if count == 2:
        return 0.5 * (dx if x is None else x[..., 1] - x[..., 0]) * (y[..., 1] + y[..., 0])
    end = count - 1 + count % 2
    found = _simpson(y[..., :end], None if x is None else np.diff(x[..., :end]), dx)
    if count % 2:
        return found
    steps = (dx, dx) if x is None else (x[..., -2] - x[..., -3], x[..., -1] - x[..., -2])
    return found + _last_interval(*steps, y[..., -3], y[..., -2], y[..., -1])


def _simpson(y: Any, steps: Any, dx: Any) -> Any:
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if steps is None:
        return np.sum(first + 4.0 * middle + last, axis=-1) * (dx / 3.0)
    h, k = steps[..., ::2], steps[..., 1::2]
    both, ratio = h + k, _ratio(h, k)
    weighted = first * (2.0 - _ratio(1.0, ratio)) + middle * (both * _ratio(both, h * k)) + last * (2.0 - ratio)
    return np.sum(both / 6.0 * weighted, axis=-1)


def _last_interval(h: Any, k: Any, first: Any, middle: Any, last: Any) -> Any:
    """The integral over the second of two intervals of lengths h and k, of the parabola through three samples.

    Cartwright, Simpson's Rule Cumulative Integration with MS Excel and Irregularly-spaced Data, 2017.
    """
    of_last = _ratio(2 * k**2 + 3 * h * k, 6 * (k + h))
    of_middle = _ratio(k**2 + 3.0 * h * k, 6 * h)
    of_first = _ratio(k**3, 6 * h * (h + k))
    return of_last * last + of_middle * middle - of_first * first


def _ratio(x: Any, y: Any) -> Any:
    """The ratio of two numbers, 0 where the second is 0: samples may be at the same place."""
    return np.where(y != 0, x / np.where(y != 0, y, 1.0), 0.0)


@implements(scipy.integrate.cumulative_simpson)
def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """Integrate up to each sample, over each interval the parabola through its ends and a neighbour.

    `x` must increase: that is not checked for traced values.
    """
    y, x = _last(y, x, axis, "cumulative_simpson")
    # A step for each line of samples has the axis of integration, too.
    step = np.moveaxis(asarray(dx), axis, -1) if np.ndim(dx) else dx
    if y.shape[-1] < 3:
        found = cumulative_trapezoid(y, x, step)
    elif x is None:
        found = np.cumsum(_woven(y, None, lambda y, _: _of_equal_steps(y, step)), axis=-1)
    else:
        found = np.cumsum(_woven(y, np.diff(x), _of_steps), axis=-1)
    if initial is not None:
        start = np.moveaxis(asarray(initial), axis, -1) if np.ndim(initial) else asarray(initial)
        start = cast(np.broadcast_to(start, (*found.shape[:-1], 1)), found.dtype)
        found = np.concatenate([start, found + start], axis=-1)
    return np.moveaxis(found, -1, axis)


def _woven(y: Any, steps: Any, of_first: Callable[[Any, Any], Any]) -> Any:
    """The integrals over all intervals: alternately the first and the second of two under one parabola."""
    first = of_first(y, steps)
    turned = of_first(y[..., ::-1], None if steps is None else steps[..., ::-1])
    second = turned[..., ::-1]
    count = y.shape[-1] - 1
    # Interval i is the first below parabola i, and the second below parabola i - 1; so is the last one.
    is_first = (np.arange(count) % 2 == 0) & (np.arange(count) < count - 1)
    return np.where(
        is_first, np.concatenate([first, second[..., -1:]], axis=-1), np.concatenate([first[..., :1], second], axis=-1)
    )


def _of_equal_steps(y: Any, step: Any) -> Any:
    return step / 3 * (5 * y[..., :-2] / 4 + 2 * y[..., 1:-1] - y[..., 2:] / 4)


def _of_steps(y: Any, steps: Any) -> Any:
    """The integrals over the first of two intervals below each parabola (Cartwright, equation 8)."""
    h, k = steps[..., :-1], steps[..., 1:]
    of_both, of_next = h / (h + k), h / k
    product = of_both * of_next
    first, middle, last = y[..., :-2], y[..., 1:-1], y[..., 2:]
    return h / 6 * ((3 - of_both) * first + (3 + product + of_both) * middle - product * last)


@implements(scipy.integrate.romb)
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: Any = False) -> Any:
    """Integrate 2**k + 1 samples by Romberg's rule; no table is printed."""
    y, _ = _last(y, None, axis, "romb")
    intervals = y.shape[-1] - 1
    levels = intervals.bit_length() - 1
    if intervals < 1 or intervals != 1 << levels:
        raise ValueError(
            f"romb takes 2**k + 1 samples, not {intervals + 1}; trapezoid and simpson take any number"
            + at_line(user_line())
        )
    width = intervals * dx
    row = [(y[..., 0] + y[..., -1]) / 2.0 * width]
    for level in range(1, levels + 1):
        gap = intervals >> level
        refined = [0.5 * (row[0] + width * np.sum(y[..., gap :: 2 * gap], axis=-1))]
        for order, before in enumerate(row, start=1):
            refined.append(refined[-1] + (refined[-1] - before) / (4**order - 1))
        row, width = refined, width / 2.0
    return row[-1]


@implements(scipy.integrate.fixed_quad, takes_functions=True)
def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """Integrate a function, which takes an array of points, by Gauss's rule of order `n`."""
    points, weights = scipy.special.roots_legendre(n)
    if any(not has_tracer(x) and np.isinf(x) for x in (a, b)):
        raise ValueError(f"fixed_quad takes finite limits; quad takes infinite ones{at_line(user_line())}")
    places = (b - a) * (np.real(points) + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(weights * func(places, *args), axis=-1), None
