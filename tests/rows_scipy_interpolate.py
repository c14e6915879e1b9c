"""Rows of the table of functions: interpolators, differentiated by breakpoints, data and points.

What else their objects can do is tested in tests/test_scipy_interpolate.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from function_rows import row
from sampling import given, normal

X = given([0.0, 0.7, 1.1, 2.0, 2.6, 3.1])
Y = normal((6,))
POINTS = given([0.3, 1.9, 2.9])


def at_points(**options: Any) -> Callable[..., Any]:
    """A call of a class or function of data, and of what it returns at points."""
    return lambda f, *args: f(*args[:-1], **options)(args[-1])


def data(name: str, *sources: Any, order: int = 2, **options: Any) -> None:
    """A row of an interpolator of data."""
    note = "-".join(map(str, options.values()))
    row(f"scipy.interpolate.{name}", *sources, call=at_points(**options), dtypes=(), order=order, note=note)


data("CubicSpline", X, Y, POINTS)
data("CubicHermiteSpline", X, Y, normal((6,)), POINTS)
data("PchipInterpolator", X, Y, POINTS)
data("Akima1DInterpolator", X, Y, POINTS)
data("PPoly", normal((3, 5, 2)), X, POINTS)
data("BPoly", normal((3, 5)), X, POINTS)
data("interp1d", X, Y, POINTS)
data("interp1d", X, Y, POINTS, kind="cubic")
data("make_interp_spline", X, Y, POINTS)
row(
    "scipy.interpolate.BSpline",
    given([0.0, 0.1, 0.2, 0.5, 1.4, 2.3, 3.0, 3.3]),
    normal((5,)),
    POINTS,
    call=lambda f, t, c, p: f(t, c, 2)(np.clip(p, 0.21, 2.2)),
    dtypes=(),
)
row(
    "scipy.interpolate.make_lsq_spline",
    X,
    Y,
    POINTS,
    call=lambda f, x, y, p: f(x, y, np.array([0.0, 0.0, 0.0, 1.5, 3.1, 3.1, 3.1]), 2)(p),
    differentiated=(1, 2),
    dtypes=(),
)
row("scipy.interpolate.pchip_interpolate", X, Y, POINTS, dtypes=())
