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

# Splines of FITPACK

KNOTS = given([1.3, 2.2])
data("InterpolatedUnivariateSpline", X, Y, POINTS)
data("UnivariateSpline", X, Y, POINTS, s=0)
row(
    "scipy.interpolate.LSQUnivariateSpline",
    X,
    Y,
    KNOTS,
    POINTS,
    call=lambda f, x, y, t, p: f(x, y, t, k=2)(p),
    dtypes=(),
)
row("scipy.interpolate.splrep", X, Y, dtypes=())
SPLINE = given([0.0, 0.1, 0.2, 0.5, 1.4, 2.3, 3.0, 3.3])
COEFFICIENTS = normal((5,))
row(
    "scipy.interpolate.splev",
    given([0.3, 1.9, 2.1]),
    SPLINE,
    COEFFICIENTS,
    call=lambda f, x, t, c: f(x, (t, c, 2)),
    dtypes=(),
)
row("scipy.interpolate.splint", SPLINE, COEFFICIENTS, call=lambda f, t, c: f(0.3, 1.2, (t, c, 2)), dtypes=())
row("scipy.interpolate.splder", SPLINE, normal((8,)), call=lambda f, t, c: f((t, c, 2))[:2], dtypes=())
row("scipy.interpolate.splantider", SPLINE, normal((8,)), call=lambda f, t, c: f((t, c, 2))[:2], dtypes=())

# Grids

GRID = given([0.0, 0.8, 1.1, 2.0])
VALUES = normal((6, 4))
PAIRS = given([[0.3, 0.2], [1.9, 1.5], [2.9, 0.9]])


def on_grid(f: Any, x: Any, y: Any, values: Any, points: Any) -> Any:
    """A call of a class of functions on a grid, and of what it returns."""
    return f((x, y), values)(points)


row("scipy.interpolate.RegularGridInterpolator", X, GRID, VALUES, PAIRS, call=on_grid, dtypes=())
row(
    "scipy.interpolate.interpn",
    X,
    GRID,
    VALUES,
    PAIRS,
    call=lambda f, x, y, values, p: f((x, y), values, p, method="pchip"),
    dtypes=(),
)
row(
    "scipy.interpolate.RectBivariateSpline",
    X,
    GRID,
    VALUES,
    PAIRS,
    call=lambda f, x, y, z, p: f(x, y, z, kx=2).ev(p[:, 0], p[:, 1]),
    dtypes=(),
)
PLANE = [np.repeat(np.arange(5.0), 5), np.tile(np.arange(5.0), 5), np.arange(25.0) % 7]
for name, fit in (
    ("SmoothBivariateSpline", lambda f: f(*PLANE, kx=2, ky=2, s=200)),
    ("LSQBivariateSpline", lambda f: f(*PLANE, [2.0], [2.0], kx=2, ky=2)),
):
    row(f"scipy.interpolate.{name}", PAIRS, call=lambda f, p, fit=fit: fit(f).ev(p[:, 0], p[:, 1]), dtypes=())
row(
    "scipy.interpolate.bisplev",
    SPLINE,
    given([0.0, 0.0, 0.9, 2.0, 2.0]),
    normal((15,)),
    POINTS,
    call=lambda f, tx, ty, c, p: f(p / 2 + 0.2, p / 2, (tx, ty, c, 2, 1)),
    dtypes=(),
)

# Polynomials and scattered points

data("KroghInterpolator", X, Y, POINTS)
data("BarycentricInterpolator", X, Y, POINTS)
row("scipy.interpolate.krogh_interpolate", given([0.0, 0.7, 1.1]), normal((3,)), POINTS, dtypes=())
row("scipy.interpolate.barycentric_interpolate", given([0.0, 0.7, 1.1]), normal((3,)), POINTS, dtypes=(), der=1)
PLACES = np.random.default_rng(0).normal(size=(7, 2))
NEAR = given([[0.1, 0.2], [-0.4, 0.3]])
data("RBFInterpolator", given(PLACES), normal((7,)), NEAR)
row(
    "scipy.interpolate.Rbf",
    given(PLACES),
    normal((7,)),
    NEAR,
    call=lambda f, x, d, p: f(x[:, 0], x[:, 1], d)(p[:, 0], p[:, 1]),
    dtypes=(),
)
row("scipy.interpolate.LinearNDInterpolator", normal((7,)), NEAR, call=lambda f, d, p: f(PLACES, d)(p), dtypes=())
row("scipy.interpolate.NearestNDInterpolator", normal((7,)), call=lambda f, d: f(PLACES, d)(PLACES / 2), dtypes=())
row("scipy.interpolate.griddata", normal((7,)), NEAR, call=lambda f, d, p: f(PLACES, d, p), dtypes=())
