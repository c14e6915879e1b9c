"""Cubic splines on breakpoints with given values: `CubicSpline`, and those whose slopes follow from neighbours.

All of them are Hermite's: a spline is given by its values and slopes at the breakpoints.  The slopes of `CubicSpline`
solve a system of linear equations (de Boor, A Practical Guide to Splines, 1978), those of `PchipInterpolator` are
harmonic means (Fritsch and Butland 1984), those of `Akima1DInterpolator` weighted means (Akima 1970).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate

from ...base.source import at_line, user_line
from ...numpy.dispatch import implements
from .objects import enter
from .operands import as_double, as_real, in_column, joined, require, solve
from .pieces import METHODS, Pieces, of_pieces

__all__ = ["Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PchipInterpolator", "pchip_interpolate"]


def _data(x: Any, y: Any, axis: int, *others: Any) -> tuple[Any, ...]:
    """Breakpoints, and data with their axis in front."""
    x, y = as_real(x, "x"), as_double(y)
    if x.ndim != 1 or len(x) < 2:
        raise ValueError(f"`x` must be 1-dimensional and contain at least 2 elements{at_line(user_line())}")
    axis %= y.ndim
    if y.shape[axis] != len(x):
        raise ValueError(
            f"The length of `y` along `axis`={axis} doesn't match the length of `x`: {y.shape[axis]} and {len(x)}"
            f"{at_line(user_line())}"
        )
    x = require(np.diff(x) > 0, "`x` must be strictly increasing sequence.", x)
    y = require(np.isfinite(y), "`y` must contain only finite values.", y)
    return x, *(np.moveaxis(as_double(z), axis, 0) for z in (y, *others)), axis


def _hermite(x: Any, y: Any, slopes: Any, extrapolate: Any, axis: int) -> Pieces:
    """The spline with given values and slopes at breakpoints."""
    width = in_column(np.diff(x), y.ndim)
    secant = np.diff(y, axis=0) / width
    t = (slopes[:-1] + slopes[1:] - 2 * secant) / width
    return Pieces(np.stack([t / width, (secant - slopes[:-1]) / width - t, slopes[:-1], y[:-1]]), x, extrapolate, axis)


def _standing(spline: Pieces, stands_for: type) -> Pieces:
    spline.stands_for = stands_for
    return spline


def _cubic_hermite_spline(x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> Pieces:
    """`scipy.interpolate.CubicHermiteSpline`, whose data and points may be traced."""
    if np.shape(y) != np.shape(dydx):
        raise ValueError(f"The shapes of `y` and `dydx` must be identical.{at_line(user_line())}")
    x, y, slopes, axis = _data(x, y, axis, dydx)
    return _standing(_hermite(x, y, slopes, extrapolate, axis), scipy.interpolate.CubicHermiteSpline)


def _pchip(x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> Pieces:
    """`scipy.interpolate.PchipInterpolator`, whose data and points may be traced."""
    x, y, axis = _data(x, y, axis)
    _require_real("PchipInterpolator", y)
    return _standing(_hermite(x, y, _pchip_slopes(x, y), extrapolate, axis), scipy.interpolate.PchipInterpolator)


def _require_real(name: str, y: Any) -> None:
    if y.dtype.kind == "c":
        raise ValueError(
            f"`{name}` only works with real values for `y`; take np.real and np.imag{at_line(user_line())}"
        )


def pchip_pieces(x: Any, y: Any) -> Any:
    """The coefficients of the pieces of `PchipInterpolator`, (4, pieces, ...)."""
    return _hermite(x, y, _pchip_slopes(x, y), True, 0).c


def _pchip_slopes(x: Any, y: Any) -> Any:
    h = in_column(np.diff(x), y.ndim)
    m = np.diff(y, axis=0) / h
    if len(x) == 2:
        return np.concatenate([m, m])
    is_flat = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
    before, after = np.where(is_flat, 1.0, m[:-1]), np.where(is_flat, 1.0, m[1:])
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = np.where(is_flat, 0.0, (w1 + w2) / (w1 / before + w2 / after))
    first, last = _end_slope(h[0], h[1], m[0], m[1]), _end_slope(h[-1], h[-2], m[-1], m[-2])
    return np.concatenate([first[None], inner, last[None]])


def _end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end, from three points, kept to the shape of the data."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    is_steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3.0 * np.abs(m0))
    return np.where(np.sign(d) != np.sign(m0), 0.0, np.where(is_steep, 3.0 * m0, d))


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """`scipy.interpolate.pchip_interpolate`, whose data and points may be traced."""
    spline = PchipInterpolator(xi, yi, axis=axis)
    return spline(x, nu=der) if np.ndim(der) == 0 else [spline(x, nu=n) for n in der]


def _akima(x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> Pieces:
    """`scipy.interpolate.Akima1DInterpolator`, whose data and points may be traced."""
    if method not in ("akima", "makima"):
        raise NotImplementedError(f"`method`={method} is unsupported.{at_line(user_line())}")
    x, y, axis = _data(x, y, axis)
    _require_real("Akima1DInterpolator", y)
    slopes = _akima_slopes(x, y, method == "makima")
    return _standing(_hermite(x, y, slopes, bool(extrapolate), axis), scipy.interpolate.Akima1DInterpolator)


def _akima_slopes(x: Any, y: Any, is_modified: bool) -> Any:
    secants = np.diff(y, axis=0) / in_column(np.diff(x), y.ndim)
    if len(x) == 2:
        return np.concatenate([secants, secants])
    # Two further secants at each end, by linear extrapolation.
    below, above = 2.0 * secants[0] - secants[1], 2.0 * secants[-1] - secants[-2]
    ends = (2.0 * below - secants[0], below), (above, 2.0 * above - secants[-1])
    m = np.concatenate([np.stack(ends[0]), secants, np.stack(ends[1])])
    change = np.abs(np.diff(m, axis=0))
    if is_modified:
        change = change + 0.5 * np.abs(m[1:] + m[:-1])
    after, before = change[2:], change[:-2]
    both = after + before
    has_weight = both > 1e-9 * np.max(both)
    weight = before / np.where(has_weight, both, 1.0)
    return np.where(has_weight, m[1:-2] + weight * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))


def _cubic_spline(x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> Pieces:
    """`scipy.interpolate.CubicSpline`, whose data, boundary values and points may be traced.

    Arguments, attributes and methods are SciPy's: it is called as `spline(points, nu=0)`, with points of any shape.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy.interpolate import CubicSpline
        >>> print(ft.grad(lambda y: CubicSpline([0.0, 1.0, 2.0, 3.0], y)(1.5))(np.zeros(4)))
        [-0.0625  0.5625  0.5625 -0.0625]
    """
    x, y, axis = _data(x, y, axis)
    is_periodic = isinstance(bc_type, str) and bc_type == "periodic"
    if is_periodic:
        is_closed = np.abs(y[0] - y[-1]) <= 1e-15 + 1e-15 * np.abs(y[-1])
        y = require(is_closed, "The first and last `y` point must be identical when bc_type='periodic'.", y)
    if extrapolate is None:
        extrapolate = "periodic" if is_periodic else True
    slopes = _spline_slopes(x, y, _conditions(bc_type, y))
    return _standing(_hermite(x, y, slopes, extrapolate, axis), scipy.interpolate.CubicSpline)


def _conditions(bc_type: Any, y: Any) -> list[Any]:
    """The conditions at both ends: "not-a-knot", "periodic" or a pair of an order and a value."""
    if isinstance(bc_type, str):
        bc_type = (bc_type, bc_type)
    elif len(bc_type) != 2 or any(isinstance(c, str) and c == "periodic" for c in bc_type):
        raise ValueError(
            "`bc_type` must contain 2 elements to specify start and end conditions; 'periodic' is for both together"
            + at_line(user_line())
        )
    return [_condition(c, y.shape[1:]) for c in bc_type]


def _condition(condition: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(condition, str):
        if condition in ("not-a-knot", "periodic"):
            return condition
        if condition not in ("clamped", "natural"):
            raise ValueError(f"bc_type={condition} is not allowed.{at_line(user_line())}")
        return (1 if condition == "clamped" else 2), np.zeros(shape)
    order, value = condition
    if order not in (1, 2):
        raise ValueError(f"The specified derivative order must be 1 or 2, not {order}{at_line(user_line())}")
    value = as_double(value)
    if value.shape != shape:
        raise ValueError(f"`deriv_value` shape {value.shape} is not the expected one {shape}.{at_line(user_line())}")
    return order, value


def _spline_slopes(x: Any, y: Any, conditions: list[Any]) -> Any:
    """The slopes for which second derivatives are continuous."""
    h = np.diff(x)
    secant = np.diff(y, axis=0) / in_column(h, y.ndim)
    start, end = conditions
    if len(x) == 2:
        start, end = ((1, secant[0]) if isinstance(c, str) else c for c in conditions)
    if start == "periodic":
        return _periodic_slopes(h, secant)
    if len(x) == 3 and start == end == "not-a-knot":
        # The parabola through three points.
        middle = (h[0] * secant[1] + h[1] * secant[0]) / (h[0] + h[1])
        return np.stack([2 * secant[0] - middle, middle, 2 * secant[1] - middle])
    wide = in_column(h, y.ndim)
    first, last = _end_equation(start, h, secant, -0.5), _end_equation(end, h[::-1], secant[::-1], 0.5)
    diagonal = joined([first[0], 2 * (h[:-1] + h[1:]), last[0]])
    above, below = joined([first[1], h[:-1]]), joined([h[1:], last[1]])
    matrix = np.diag(diagonal) + np.diag(above, 1) + np.diag(below, -1)
    inner = 3 * (wide[1:] * secant[:-1] + wide[:-1] * secant[1:])
    right = np.concatenate([first[2][None], inner, last[2][None]])
    return solve(matrix, right)


def _end_equation(condition: Any, h: Any, secant: Any, half: float) -> tuple[Any, Any, Any]:
    """The equation at an end: factors of the slopes there and at the neighbour, and the right-hand side."""
    if isinstance(condition, str):
        both = h[0] + h[1]
        return h[1], both, ((h[0] + 2 * both) * h[1] * secant[0] + h[0] ** 2 * secant[1]) / both
    order, value = condition
    if order == 1:
        return 1.0, 0.0, value
    return 2 * h[0], h[0], half * value * h[0] ** 2 + 3 * secant[0] * h[0]


def _periodic_slopes(h: Any, secant: Any) -> Any:
    wide = in_column(h, secant.ndim)
    if len(h) == 2:
        slope = np.sum(secant / wide, axis=0) / np.sum(1.0 / wide, axis=0)
        return np.stack([slope] * 3)
    before, wide_before = np.roll(h, 1), np.roll(wide, 1, axis=0)
    matrix = np.diag(2 * (before + h)) + np.roll(np.diag(before), 1, axis=1) + np.roll(np.diag(h), -1, axis=1)
    slopes = solve(matrix, 3 * (wide * np.roll(secant, 1, axis=0) + wide_before * secant))
    return np.concatenate([slopes, slopes[:1]])


def _entered(original: type, make: Callable[..., Pieces]) -> Any:
    return enter(original, make, of_pieces, (*METHODS, "solve"))


CubicHermiteSpline = _entered(scipy.interpolate.CubicHermiteSpline, _cubic_hermite_spline)
PchipInterpolator = _entered(scipy.interpolate.PchipInterpolator, _pchip)
Akima1DInterpolator = _entered(scipy.interpolate.Akima1DInterpolator, _akima)
CubicSpline = _entered(scipy.interpolate.CubicSpline, _cubic_spline)
implements(scipy.interpolate.pchip_interpolate)(pchip_interpolate)
