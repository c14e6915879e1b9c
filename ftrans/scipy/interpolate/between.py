"""Interpolation between points along one axis: `interp1d`, and polynomials through all points.

`interp1d` is linear, piecewise constant or a spline.  `BarycentricInterpolator` and `KroghInterpolator` are the
polynomial through all points, in Lagrange's form (Berrut and Trefethen 2004) and in Newton's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate

from ...base.foreign import kind_of_interp1d
from ...base.source import at_line, user_line
from ...numpy.sorting import searchsorted
from .bsplines import Spline, interpolating
from .objects import Form, enter
from .operands import as_double, as_real, holds, in_column, is_plain, spread, take

__all__ = ["interp1d"]

_DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")


class Interpolator(Form):
    """A function through data points along one axis, of one of the kinds of `interp1d`.

    Args:
        x: ascending abscissas.
        y: values, with their axis in front.
        kind: one of SciPy's names.
        axis: the place of the axes of points among those of values.
        bounds_error: whether to raise for points outside, where they are known.
        fill_value: "extrapolate", or values below and above.
        spline: what gives the values, for kinds that are splines.
    """

    stands_for = scipy.interpolate.interp1d

    def __init__(
        self, x: Any, y: Any, kind: Any, axis: int, bounds_error: Any, fill_value: Any, spline: Spline | None = None
    ) -> None:
        self.x, self.axis, self._values, self._kind, self._spline = x, axis, y, kind, spline
        self._fill = _step_fill(kind, y, fill_value)
        self.fill_value = fill_value
        extrapolates = isinstance(fill_value, str)
        if extrapolates and bounds_error:
            raise ValueError(f"Cannot extrapolate and raise at the same time.{at_line(user_line())}")
        self.bounds_error = not extrapolates if bounds_error is None else bool(bounds_error)

    @property
    def y(self) -> Any:
        """The values, as they were given."""
        return np.moveaxis(self._values, 0, self.axis)

    def __call__(self, x: Any) -> Any:
        """Values at points."""
        points = as_real(x, "x")
        flat = points.reshape(-1)
        values = self._at(flat)
        if self._fill is not None:
            below, above = flat < self.x[0], flat > self.x[-1]
            if self.bounds_error and holds(np.any(below | above)):
                raise ValueError(
                    f"A value in x_new is outside of the interpolation range from {_shown(self.x[0])} to "
                    f"{_shown(self.x[-1])}; write bounds_error=False or fill_value='extrapolate' to allow for it"
                    f"{at_line(user_line())}"
                )
            for outside, fill in zip((below, above), self._fill, strict=True):
                values = np.where(in_column(outside, values.ndim), fill, values)
        return spread(np.where(in_column(np.isnan(flat), values.ndim), np.nan, values), points.shape, self.axis)

    def _at(self, x: Any) -> Any:
        if self._spline is not None:
            return self._spline(x)
        count = self.x.shape[0]
        if self._kind == "linear":
            high = np.clip(searchsorted(self.x, x), 1, count - 1)
            left, low = take(self.x, high - 1), take(self._values, high - 1, axis=0)
            width = in_column(take(self.x, high) - left, low.ndim)
            return (take(self._values, high, axis=0) - low) / width * in_column(x - left, low.ndim) + low
        if self._kind in ("nearest", "nearest-up"):
            middles = self.x[1:] / 2.0 + self.x[:-1] / 2.0
            index = searchsorted(middles, x, side="left" if self._kind == "nearest" else "right")
        elif self._kind == "previous":
            index = np.clip(searchsorted(self.x, x, side="right") - 1, 0, count - 1)
        else:
            index = np.clip(searchsorted(self.x, x, side="left"), 0, count - 1)
        return take(self._values, index, axis=0)


def _shown(bound: Any) -> Any:
    return bound if is_plain(bound) else "a traced value"


def _step_fill(kind: Any, y: Any, fill_value: Any) -> tuple[Any, Any] | None:
    """The values below and above, or None for those of the first and last piece."""
    if isinstance(fill_value, str):
        if fill_value != "extrapolate":
            raise ValueError(f"fill_value is 'extrapolate' or values, not {fill_value!r}{at_line(user_line())}")
        return {"previous": (np.nan, y[-1]), "next": (y[0], np.nan)}.get(kind)
    pair = fill_value if isinstance(fill_value, tuple) and len(fill_value) == 2 else (fill_value, fill_value)
    below, above = (_fill(value, y.shape[1:]) for value in pair)
    return below, above


def _fill(value: Any, shape: tuple[int, ...]) -> Any:
    value = as_double(value)
    return value.reshape(shape) if value.size == np.prod(shape, dtype=int) else np.broadcast_to(value, shape)


def _of_interp1d(f: Any) -> Interpolator:
    kind, spline = kind_of_interp1d(f)
    y = np.moveaxis(f.y, f.axis, 0)
    if spline is not None:
        spline = Spline(spline.t, spline.c.reshape(-1, *y.shape[1:]), spline.k)
    made = Interpolator(f.x, y, kind, f.axis, f.bounds_error, f.fill_value, spline)
    made.stands_for = type(f)
    return made


def _interp1d(
    x: Any,
    y: Any,
    kind: Any = "linear",
    axis: int = -1,
    copy: bool = True,
    bounds_error: Any = None,
    fill_value: Any = np.nan,
    assume_sorted: bool = False,
) -> Interpolator:
    """`scipy.interpolate.interp1d`, whose data, fill values and points may be traced.

    Arguments are SciPy's.  At a breakpoint the derivative is that of the piece that SciPy takes there.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy.interpolate import interp1d
        >>> print(ft.grad(lambda y: interp1d([0.0, 1.0], y)(0.25))(np.zeros(2)))
        [0.75 0.25]
    """
    if isinstance(kind, str) and kind not in (*_DEGREES, *_STEPS, "linear"):
        raise NotImplementedError(f"{kind} is unsupported: take a make_interp_spline{at_line(user_line())}")
    x, y = as_real(x, "x"), as_double(y)
    if x.ndim != 1 or y.ndim == 0:
        raise ValueError(f"the x array must have exactly one dimension, and y at least one{at_line(user_line())}")
    axis %= y.ndim
    y = np.moveaxis(y, axis, 0)
    if len(x) != y.shape[0]:
        raise ValueError(
            f"x and y arrays must be equal in length along interpolation axis, not {len(x)} and {y.shape[0]}"
            f"{at_line(user_line())}"
        )
    if kind == "slinear" and len(x) < 2:
        raise ValueError(f"x and y arrays must have at least 2 entries{at_line(user_line())}")
    if not assume_sorted:
        order = np.argsort(x, kind="stable")
        x, y = take(x, order), take(y, order, axis=0)
    degree = _DEGREES.get(kind, kind)
    spline = None if isinstance(degree, str) else interpolating(x, y, degree)
    return Interpolator(x, y, kind, axis, bounds_error, fill_value, spline)


interp1d = enter(scipy.interpolate.interp1d, _interp1d, _of_interp1d)
