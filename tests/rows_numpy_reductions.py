"""Rows of `numpy`: sums and products, extrema, statistics, with their options."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import c128, distinct, f32, given, normal, uniform

BOTH: dict[str, Any] = {"dtypes": (f32, c128)}
MASK = np.array([[True, False, True], [False, True, True]])
WITH_NAN = given([[1.0, np.nan, -2.0], [0.5, 3.0, np.nan]])

# Sums and products

row("numpy.sum", normal((2, 3)), **BOTH)
row("numpy.sum", normal((2, 3)), axis=-1, keepdims=True)
row("numpy.sum", normal((2, 3, 2)), axis=(0, 2), initial=1.5)
row("numpy.sum", normal((2, 3)), axis=0, where=MASK)
row("numpy.sum", normal((2, 3)), dtype=np.complex128, dtypes=())
row("numpy.sum", normal((2, 3), f32), dtype=np.float64, dtypes=(), note="dtype=")
row("numpy.sum", normal((2, 3)), call=lambda f, x: f(x, 0, out=np.zeros_like(x[0])), note="out=")
row("numpy.prod", normal((2, 3)), **BOTH)
row("numpy.prod", normal((2, 3)), axis=1, keepdims=True, where=MASK)
row("numpy.prod", normal((2, 3)), axis=(0, 1), initial=2.0)
row("numpy.prod", given([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]), axis=1, note="with zeros")
row("numpy.cumsum", normal((2, 3)), **BOTH)
row("numpy.cumsum", normal((2, 3)), axis=1)
row("numpy.cumprod", normal((2, 3)), **BOTH)
row("numpy.cumprod", normal((2, 3)), axis=0)
row("numpy.cumprod", given([2.0, 0.0, 3.0, 0.0, 5.0]), note="with zeros")
row("numpy.cumulative_sum", normal((2, 3)), axis=1, include_initial=True, **BOTH)
row("numpy.cumulative_sum", normal((3,)))
row("numpy.cumulative_prod", normal((2, 3)), axis=0, include_initial=True, **BOTH)
row("numpy.diff", normal((2, 4)), **BOTH)
row("numpy.diff", normal((2, 4)), n=2)
row("numpy.diff", normal((3, 2)), normal((2,)), call=lambda f, x, y: f(x, axis=0, prepend=0.0, append=[y]), note="ends")
row("numpy.ediff1d", normal((4,)), normal((2,)), call=lambda f, x, y: f(x, to_end=y, to_begin=1.0), **BOTH)
row("numpy.trapezoid", normal((2, 4)), dx=0.5, **BOTH)
row("numpy.trapezoid", normal((4, 2)), normal((4,)), call=lambda f, y, x: f(y, x, axis=0), note="x=")

# Extrema

row("numpy.max", distinct((2, 3)))
row("numpy.max", distinct((2, 3)), axis=1, keepdims=True)
row("numpy.max", distinct((2, 3)), axis=(0, 1), initial=-9.0, where=MASK)
row("numpy.min", distinct((2, 3)), axis=0)
row("numpy.min", distinct((2, 3)), axis=0, initial=9.0, where=MASK)
row("numpy.amax", distinct((4,)))
row("numpy.amin", distinct((4,)))
row("numpy.ptp", distinct((2, 4)), axis=1, keepdims=True)

# Means

row("numpy.mean", normal((2, 3)), **BOTH)
row("numpy.mean", normal((2, 3)), axis=1, keepdims=True, where=MASK)
row("numpy.mean", normal((2, 3), f32), axis=0, dtype=np.float64, dtypes=(), note="dtype=")
row("numpy.average", normal((2, 3)), axis=1, **BOTH)
row("numpy.average", normal((2, 3)), uniform(1, 2, (3,)), call=lambda f, x, w: f(x, 1, w, True), note="returned=")
row("numpy.average", normal((2, 3)), uniform(1, 2, (2, 3)), call=lambda f, x, w: f(x, weights=w, keepdims=True))
row("numpy.var", normal((2, 3)), ddof=1, **BOTH)
row("numpy.var", normal((2, 3)), axis=1, keepdims=True, where=MASK)
row("numpy.var", normal((2, 3)), axis=0, correction=1)
row("numpy.var", normal((2, 3)), call=lambda f, x: f(x, 1, mean=np.mean(x, 1, keepdims=True)), note="mean=")
row("numpy.std", normal((2, 3)), axis=1, **BOTH)
row("numpy.std", normal((2, 3)), ddof=1, keepdims=True)
row("numpy.cov", normal((2, 4)), **BOTH)
row("numpy.cov", normal((4, 2)), normal((4, 1)), call=lambda f, x, y: f(x, y, rowvar=False, bias=True), note="with y")
row("numpy.cov", normal((2, 4)), uniform(0.5, 2, (4,)), call=lambda f, x, w: f(x, aweights=w, fweights=[1, 2, 1, 3]))
row("numpy.corrcoef", normal((2, 4)), **BOTH)
row("numpy.corrcoef", normal((4, 2)), normal((4, 1)), call=lambda f, x, y: f(x, y, rowvar=False), note="with y")

# Reductions that pass over NaN

for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"):
    row(f"numpy.{name}", WITH_NAN)
    row(f"numpy.{name}", WITH_NAN, axis=1, keepdims=True)
    row(
        f"numpy.{name}",
        normal((2, 3)),
        axis=0,
        where=MASK | MASK[::-1],
        **({"initial": 0.1} if name in ("nanmax", "nanmin") else {}),
    )
row("numpy.nansum", WITH_NAN, axis=0, initial=2.0, dtypes=(f32, c128))
row("numpy.nanprod", WITH_NAN, axis=0, initial=2.0, where=MASK)
row("numpy.nanvar", WITH_NAN, axis=1, ddof=1, dtypes=(f32, c128))
row("numpy.nancumsum", WITH_NAN, axis=1, **BOTH)
row("numpy.nancumprod", WITH_NAN)

# Quantiles

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
row("numpy.median", distinct((5,)))
row("numpy.median", distinct((2, 4)), axis=1, keepdims=True)
row("numpy.median", distinct((2, 4)), axis=(0, 1))
row("numpy.percentile", distinct((2, 5)), q=[15.0, 60.0], axis=1)
row("numpy.quantile", distinct((2, 5)), q=0.3, axis=0, keepdims=True)
row("numpy.quantile", distinct((6,)), uniform(0.22, 0.38, (2,)), note="in q")
for method in METHODS:
    row("numpy.quantile", distinct((7,)), q=[0.13, 0.58], method=method)
row(
    "numpy.quantile",
    distinct((2, 4)),
    call=lambda f, x: f(x, 0.6, 1, method="inverted_cdf", weights=[1.0, 2.0, 0.5, 3.0]),
)
row("numpy.percentile", distinct((6,)), q=37.0, method="hazen")
