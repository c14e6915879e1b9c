"""Rows of `numpy`: polynomials, and the functions of `numpy.polynomial`, whose own code runs on traced values."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import c128, f32, given, normal, uniform

BOTH: dict[str, Any] = {"dtypes": (f32, c128)}
POINTS = given([-1.0, -0.4, 0.1, 0.5, 1.2])


def ordered(results: list[Any]) -> list[Any]:
    """Roots in one order, as complex numbers."""
    return [np.sort(np.asarray(y) * (1 + 0j)) if type(y) is np.ndarray else np.sort(y * (1 + 0j)) for y in results]


row("numpy.poly", normal((3,)), analytic=True, **BOTH)
row("numpy.poly", normal((3, 3)), note="matrix")
row("numpy.roots", given([1.0, 0.2, -2.0, 0.5]), canonical=ordered)
row("numpy.roots", given([1.0, 1.0, 2.0, 3.0]), canonical=ordered, note="complex roots", dtypes=())
row("numpy.roots", given([2.0, 1j, 3.0 - 1j], c128), canonical=ordered, dtypes=())
row("numpy.polyadd", normal((4,)), normal((2,)), analytic=True, **BOTH)
row("numpy.polysub", normal((2,)), normal((4,)), analytic=True, **BOTH)
row("numpy.polymul", normal((3,)), normal((2,)), analytic=True, **BOTH)
# How long the remainder is depends on rounding, which is that of another order for numbers of 64 bits.
row("numpy.polydiv", normal((4,)), normal((2,)), analytic=True)
row("numpy.polydiv", normal((4,), c128), normal((2,), c128), dtypes=())
row("numpy.polydiv", normal((2,)), normal((3,)))
row("numpy.polyder", normal((4,)), m=2, analytic=True, **BOTH)
row("numpy.polyint", normal((3,)), normal((2,)), call=lambda f, p, k: f(p, 2, k), analytic=True, **BOTH)
row("numpy.polyint", normal((3,)))
row("numpy.polyfit", POINTS, normal((5,)), deg=2)
row(
    "numpy.polyfit",
    POINTS,
    normal((5, 2)),
    uniform(0.5, 1, (5,)),
    call=lambda f, x, y, w: f(x, y, 1, w=w),
    note="w=",
    dtypes=(),
)
row("numpy.polyfit", POINTS, normal((5,)), deg=1, cov=True, dtypes=())
row("numpy.polyfit", POINTS, normal((5,)), call=lambda f, x, y: f(x, y, 1, full=True)[:2], note="full=", dtypes=())
for module, name in (
    ("polynomial", "polyval"),
    ("chebyshev", "chebval"),
    ("legendre", "legval"),
    ("hermite", "hermval"),
    ("hermite_e", "hermeval"),
    ("laguerre", "lagval"),
):
    row(f"numpy.polynomial.{module}.{name}", normal((2,)), normal((4,)), dtypes=())
row("numpy.polynomial.polynomial.polyval2d", normal((2,)), normal((2,)), normal((2, 3)), dtypes=())
# Older versions of NumPy do not ask for a traced form.
if hasattr(np.polynomial.polynomial.polygrid2d, "__wrapped__"):
    row("numpy.polynomial.polynomial.polygrid2d", normal((2,)), normal((1,)), normal((2, 2)), dtypes=())
