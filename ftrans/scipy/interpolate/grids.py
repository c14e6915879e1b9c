"""Interpolation on grids: `RegularGridInterpolator`, `interpn`, and the splines of two variables of FITPACK.

Splines are tensor products: their coefficients solve one linear system for each axis of the grid, exactly.  (SciPy's
`RegularGridInterpolator` solves iteratively, to five digits or so; its own objects keep their coefficients here.)
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.interpolate

from ...base.foreign import spline_of_grid
from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import implements
from ...numpy.selecting import take_along_axis
from .bsplines import basis, interpolating
from .cubic import pchip_pieces
from .objects import Form, enter
from .operands import as_double, as_real, holds, in_column, intervals, require, take

__all__ = ["RegularGridInterpolator", "interpn"]

_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}
_METHODS = ("linear", "nearest", "pchip", *_DEGREES, *(f"{name}_legacy" for name in _DEGREES))


def _elements(values: Any, places: Sequence[Any]) -> Any:
    """The elements of an array at indices along its first axes."""
    flat = places[0]
    for size, place in zip(values.shape[1:], places[1:], strict=False):
        flat = flat * size + place
    return take(values.reshape(-1, *values.shape[len(places) :]), flat, axis=0)


def tensor_values(
    knots: Sequence[Any], c: Any, degrees: Sequence[int], points: Sequence[Any], nu: Sequence[int]
) -> Any:
    """Values, or derivatives of orders `nu`, of a tensor product of splines.

    Args:
        knots: knots along each axis.
        c: coefficients, with these axes first.
        degrees: degrees along each axis.
        points: coordinates of points, an array along one axis for each.
        nu: order of the derivative along each axis.
    """
    places, factors = [], []
    for t, k, x, order in zip(knots, degrees, points, nu, strict=True):
        interval, values = basis(t, k, x, order)
        places.append([interval - k + a for a in range(k + 1)])
        factors.append(values)
    total: Any = 0.0
    for corner in itertools.product(*(range(k + 1) for k in degrees)):
        weight = factors[0][corner[0]]
        for values, a in zip(factors[1:], corner[1:], strict=True):
            weight = weight * values[a]
        chosen = _elements(c, [place[a] for place, a in zip(places, corner, strict=True)])
        total = total + chosen * in_column(weight, chosen.ndim)
    return total


def tensor_coefficients(axes: Sequence[Any], values: Any, degrees: Sequence[int]) -> tuple[list[Any], Any]:
    """Knots and coefficients of the tensor product of splines through values on a grid."""
    knots = []
    for axis, (x, k) in enumerate(zip(axes, degrees, strict=True)):
        spline = interpolating(x, np.moveaxis(values, axis, 0), k)
        knots.append(spline.t)
        values = np.moveaxis(spline.c, 0, axis)
    return knots, values


def coordinates(xi: Any, count: int) -> Any:
    """Points as an array with their coordinates along the last axis, from such an array or a tuple of arrays."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        return np.stack(np.broadcast_arrays(*map(as_real, xi, itertools.repeat("xi"))), axis=-1)
    xi = as_real(xi, "xi")
    xi = xi.reshape(-1, count) if xi.ndim == 1 else xi
    if xi.shape[-1] != count:
        raise ValueError(
            f"The requested sample points xi have dimension {xi.shape[-1]}, but this interpolator has dimension {count}"
            f"{at_line(user_line())}"
        )
    return xi


class Grid(Form):
    """A function on a grid.

    Args:
        grid: ascending coordinates along each axis.
        values: values, with the axes of the grid first.
        method: how values between are found.
        bounds_error: whether to raise for points outside, where they are known.
        fill_value: the value outside, or None to extrapolate.
        spline: knots and coefficients, if SciPy has computed them.
    """

    stands_for = scipy.interpolate.RegularGridInterpolator

    def __init__(
        self, grid: Sequence[Any], values: Any, method: str, bounds_error: bool, fill_value: Any, spline: Any = None
    ) -> None:
        self.grid, self.values, self.method = tuple(grid), values, method
        self.bounds_error, self.fill_value, self._spline = bounds_error, fill_value, spline

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """Values at points, whose coordinates are along the last axis."""
        method = self.method if method is None else method
        _check_method(method, self.grid)
        if nu is not None and method not in _DEGREES:
            raise ValueError(f"Can only compute derivatives for methods {set(_DEGREES)}{at_line(user_line())}")
        xi = coordinates(xi, len(self.grid))
        points = [xi[..., i].reshape(-1) for i in range(len(self.grid))]
        values = self._at(points, method, nu)
        values = self._without_lost(values, points)
        return values.reshape(*xi.shape[:-1], *self.values.shape[len(self.grid) :])

    def _without_lost(self, values: Any, points: list[Any]) -> Any:
        outside: Any = False
        for x, axis in zip(points, self.grid, strict=True):
            outside = outside | (x < axis[0]) | (x > axis[-1])
        if self.bounds_error and holds(np.any(outside)):
            raise ValueError(
                "One of the requested xi is out of bounds; write bounds_error=False, and fill_value=None to extrapolate"
                + at_line(user_line())
            )
        fill = np.nan if self.bounds_error else self.fill_value
        if fill is not None:
            values = np.where(in_column(outside, values.ndim), fill, values)
        lost = np.isnan(sum(x - axis[0] for x, axis in zip(points, self.grid, strict=True)))
        return np.where(in_column(lost, values.ndim), np.nan, values)

    def _at(self, points: list[Any], method: str, nu: Any) -> Any:
        if method in ("linear", "nearest"):
            return self._by_cells(points, method == "nearest")
        if method == "pchip":
            return _by_pchip(self.grid, self.values, points)
        k = _DEGREES[method.removesuffix("_legacy")]
        degrees = [k] * len(self.grid)
        knots, c = self._spline or tensor_coefficients(self.grid, self.values, degrees)
        orders = [0] * len(self.grid) if nu is None else [operator.index(n) for n in nu]
        return tensor_values(knots, c, degrees, points, orders)

    def _by_cells(self, points: list[Any], is_nearest: bool) -> Any:
        places, parts = [], []
        for x, axis in zip(points, self.grid, strict=True):
            low = intervals(axis, x, 0, axis.shape[0] - 2)
            left = take(axis, low)
            places.append(low)
            parts.append((x - left) / (take(axis, low + 1) - left))
        if is_nearest:
            nearest = [np.where(part <= 0.5, low, low + 1) for low, part in zip(places, parts, strict=True)]
            return _elements(self.values, nearest)
        total: Any = 0.0
        for corner in itertools.product((0, 1), repeat=len(points)):
            weight: Any = 1.0
            for part, is_high in zip(parts, corner, strict=True):
                weight = weight * (part if is_high else 1 - part)
            chosen = _elements(self.values, [low + step for low, step in zip(places, corner, strict=True)])
            total = total + chosen * in_column(weight, chosen.ndim)
        return total


def _by_pchip(grid: Sequence[Any], values: Any, points: list[Any]) -> Any:
    """Values by monotonic cubic pieces along the last axis of a grid, and then along the others for each point."""
    if as_double(values).dtype.kind == "c":
        raise ValueError(f"`PchipInterpolator` only works with real values{at_line(user_line())}")
    count = len(grid)
    # The axis that is interpolated along comes first, that of the points second.
    values = np.moveaxis(values, count - 1, 0)[:, None]
    for level in range(count - 1, -1, -1):
        x, axis = points[level], grid[level]
        piece = intervals(axis, x, 0, axis.shape[0] - 2)
        c = pchip_pieces(axis, values)
        lanes = piece.reshape((1, 1, -1) + (1,) * (c.ndim - 3))
        if level == count - 1:
            chosen = take(c[:, :, 0], piece, axis=1)
        else:
            chosen = take_along_axis(c, np.broadcast_to(lanes, (c.shape[0], 1, *c.shape[2:])), axis=1)[:, 0]
        distance = in_column(x - take(axis, piece), chosen.ndim - 1)
        found = ((chosen[0] * distance + chosen[1]) * distance + chosen[2]) * distance + chosen[3]
        values = np.moveaxis(found, level, 0) if level else found
    return values


def _check_method(method: str, grid: Sequence[Any]) -> None:
    if method not in _METHODS:
        raise ValueError(f"Method '{method}' is not defined{at_line(user_line())}")
    least = 4 if method == "pchip" else _DEGREES.get(method.removesuffix("_legacy"), 0) + 1
    if any(axis.shape[0] < least for axis in grid):
        raise ValueError(f"method {method} requires at least {least} points per dimension{at_line(user_line())}")


def _grid(
    points: Any,
    values: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
    *,
    solver: Any = None,
    solver_args: Any = None,
) -> Grid:
    """`scipy.interpolate.RegularGridInterpolator`, whose grid, values and points may be traced.

    With the methods "slinear", "cubic" and "quintic" it solves for the coefficients exactly, whatever the `solver`.
    """
    axes, values = [as_real(p, "points") for p in points], as_double(values)
    if len(axes) > values.ndim or any(a.shape != (n,) for a, n in zip(axes, values.shape, strict=False)):
        raise ValueError(
            f"points of shapes {[a.shape for a in axes]} are no grid for values of shape {values.shape}"
            f"{at_line(user_line())}"
        )
    for i, axis in enumerate(axes):
        if holds(axis[-1] < axis[0]):
            axes[i], values = axis[::-1], np.flip(values, i)
        message = f"The points in dimension {i} must be strictly ascending or descending"
        axes[i] = require(np.diff(axes[i]) > 0, message, axes[i])
    _check_method(method, axes)
    return Grid(axes, values, method, bounds_error, fill_value)


def _of_grid(f: Any) -> Grid:
    made = Grid(f.grid, f.values, f.method, f.bounds_error, f.fill_value, spline_of_grid(f))
    made.stands_for = type(f)
    return made


RegularGridInterpolator = enter(scipy.interpolate.RegularGridInterpolator, _grid, _of_grid)


@implements(scipy.interpolate.interpn)
def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """`scipy.interpolate.interpn`, whose grid, values and points may be traced."""
    if method == "splinef2d":
        raise MissingRule(f"interpn has no method 'splinef2d' of traced values; write 'cubic'{at_line(user_line())}")
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
