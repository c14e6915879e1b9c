"""Splines of two variables, those of FITPACK: `RectBivariateSpline`, `bisplev`, and those that FITPACK fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate

from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...numpy.dispatch import implements
from .bsplines import Spline, interpolating, not_a_knot
from .grids import tensor_values
from .objects import Form, enter
from .operands import as_double, as_real, joined, require

__all__ = ["LSQBivariateSpline", "RectBivariateSpline", "SmoothBivariateSpline", "bisplev"]


class Surface(Form):
    """A spline of two variables.

    Args:
        knots: those along both axes.
        c: coefficients, (nx, ny).
        degrees: those along both axes.
        residual: the sum of squared weighted distances from the data.
    """

    stands_for = scipy.interpolate.RectBivariateSpline

    def __init__(self, knots: Any, c: Any, degrees: Any, residual: Any = None) -> None:
        self._knots, self._c, self.degrees, self._residual = tuple(knots), c, tuple(degrees), residual

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """Values or derivatives, at all pairs of ascending coordinates, or at points."""
        x, y = as_real(x, "x"), as_real(y, "y")
        if grid:
            x, y = x.reshape(-1), y.reshape(-1)
            x = require(np.diff(x) >= 0, "x must be strictly increasing when `grid` is True", x)
            y = require(np.diff(y) >= 0, "y must be strictly increasing when `grid` is True", y)
            x, y = np.broadcast_arrays(x[:, None], y)
        else:
            x, y = np.broadcast_arrays(x, y)
        shape, points = x.shape, []
        for t, k, at in zip(self._knots, self.degrees, (x, y), strict=True):
            # Outside it is constant, as FITPACK has it.
            points.append(np.clip(at.reshape(-1), t[k], t[t.shape[0] - k - 1]))
        return tensor_values(self._knots, self._c, self.degrees, points, (dx, dy)).reshape(shape)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Values or derivatives at points."""
        return self(xi, yi, dx, dy, grid=False)

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
        """The integral over a rectangle; outside of the base rectangle the spline is taken for 0."""
        along = Spline(self._knots[0], self._c, self.degrees[0]).integrate(xa, xb, extrapolate=False)
        return Spline(self._knots[1], along, self.degrees[1]).integrate(ya, yb, extrapolate=False)

    def get_knots(self) -> Any:
        """The knots along both axes."""
        return self._knots

    def get_coeffs(self) -> Any:
        """The coefficients, along one axis."""
        return self._c.reshape(-1)

    def get_residual(self) -> Any:
        """The sum of squared weighted distances from the data."""
        return self._residual


def _of_surface(f: Any) -> Surface:
    (tx, ty), (kx, ky) = f.get_knots(), f.degrees
    made = Surface((tx, ty), f.get_coeffs().reshape(len(tx) - kx - 1, len(ty) - ky - 1), (kx, ky), f.get_residual())
    made.stands_for = type(f)
    return made


def _rectangular(
    x: Any,
    y: Any,
    z: Any,
    bbox: Any = (None,) * 4,
    kx: int = 3,
    ky: int = 3,
    s: float = 0,
    maxit: int = 20,
) -> Surface:
    """`scipy.interpolate.RectBivariateSpline`, whose points may be traced, and its data where `s` is 0."""
    if s:
        raise _fitted("RectBivariateSpline", "write s=0 for the spline through the data")
    c, knots = as_double(z), []
    for axis, (given, k) in enumerate(((x, kx), (y, ky))):
        at = as_real(given, "xy"[axis]).reshape(-1)
        if c.shape[axis] != len(at):
            raise ValueError(f"{'xy'[axis]} dimension of z must have same number of elements as {'xy'[axis]}")
        at = require(np.diff(at) > 0, f"{'xy'[axis]} must be strictly increasing", at)
        start, end = bbox[2 * axis], bbox[2 * axis + 1]
        start, end = at[0] if start is None else start, at[-1] if end is None else end
        inner = not_a_knot(at, k)[k + 1 : -k - 1]
        spline = interpolating(at, np.moveaxis(c, axis, 0), k, joined([*[start] * (k + 1), inner, *[end] * (k + 1)]))
        knots.append(spline.t)
        c = np.moveaxis(spline.c, 0, axis)
    return Surface(knots, c, (kx, ky), 0.0)


def _fitted(name: str, advice: str) -> MissingRule:
    return MissingRule(
        f"{name} of traced data: the knots are chosen by the data, which has no derivative; {advice}"
        f"{at_line(user_line())}"
    )


def _refusing(name: str) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        raise _fitted(name, "make it of plain data, or take RectBivariateSpline or RBFInterpolator")

    make.__doc__ = f"`scipy.interpolate.{name}`, of plain data, at points that may be traced."
    make.__name__ = make.__qualname__ = name
    return make


_METHODS = ("__call__", "ev", "integral")
RectBivariateSpline = enter(scipy.interpolate.RectBivariateSpline, _rectangular, _of_surface, _METHODS)
SmoothBivariateSpline = enter(
    scipy.interpolate.SmoothBivariateSpline, _refusing("SmoothBivariateSpline"), _of_surface, _METHODS
)
LSQBivariateSpline = enter(scipy.interpolate.LSQBivariateSpline, _refusing("LSQBivariateSpline"), _of_surface, _METHODS)


@implements(scipy.interpolate.bisplev)
def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    """`scipy.interpolate.bisplev`: values of a spline of two variables, whose points and parts may be traced."""
    tx, ty, c, kx, ky = tck
    tx, ty = as_real(tx, "tx"), as_real(ty, "ty")
    c = as_double(c).reshape(tx.shape[0] - kx - 1, ty.shape[0] - ky - 1)
    z = Surface((tx, ty), c, (kx, ky))(x, y, dx, dy)
    return z if z.shape[0] > 1 else z[0] if z.shape[1] > 1 else z[0, 0]
