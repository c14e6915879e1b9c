"""Rows of functions of complex numbers that are not among those of real numbers in other dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import of_list, row
from sampling import c64, c128, given, normal, uniform

COMPLEX: dict[str, Any] = {"dtypes": (c64,)}
Z = normal((2, 3), c128)
WITH_NAN = given([[1 + 2j, np.nan, -1j], [0.5 + 0j, complex(1, np.nan), 2 - 1j]], c128)

# Order by the real parts, and by the imaginary ones where these are equal

row("numpy.max", Z, **COMPLEX)
row("numpy.min", Z, axis=1, **COMPLEX)
row("numpy.maximum", Z, normal((3,), c128), note="complex", **COMPLEX)
row("numpy.minimum", Z, normal((3,), c128), note="complex", **COMPLEX)
row("numpy.fmax", Z, normal((3,), c128), note="complex", **COMPLEX)
row("numpy.ptp", Z, axis=0, **COMPLEX)
row("numpy.median", normal((5,), c128), **COMPLEX)
row("numpy.clip", Z, call=lambda f, x: f(x, -0.5, 0.5 + 1j), note="complex", **COMPLEX)
row("numpy.sort_complex", normal((4,), c128), **COMPLEX)

# NaN left out

row("numpy.nanmean", WITH_NAN, axis=1, **COMPLEX)
row("numpy.nanprod", WITH_NAN, axis=0, **COMPLEX)
row("numpy.nancumprod", WITH_NAN, axis=1, **COMPLEX)
row("numpy.nanstd", WITH_NAN, **COMPLEX)
row("numpy.nanmax", WITH_NAN, **COMPLEX)
row("numpy.nan_to_num", WITH_NAN, nan=0.5, **COMPLEX)

# Others

row("numpy.logspace", normal((), c128), normal((), c128), call=lambda f, a, b: f(a, b, 4), **COMPLEX)
row("numpy.polyfit", given([0.0, 1.0, 3.0]), normal((3,), c128), call=lambda f, x, y: f(x, y, 1), differentiated=(1,),
    dtypes=())  # fmt: skip
row("numpy.hstack", Z, normal((2, 1), c128), call=of_list, **COMPLEX)
row("numpy.angle", uniform(0.3, 1, (2,), c128), note="right half", **COMPLEX)
row("numpy.linalg.multi_dot", Z, normal((3, 2), c128), normal((2,), c128), call=of_list, **COMPLEX)
