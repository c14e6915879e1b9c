"""Rows of `numpy`: order statistics that pass over NaN, sets, histograms, and parts of numbers."""

from __future__ import annotations

import math

import numpy as np
from function_rows import row
from sampling import c128, distinct, f32, given, normal, uniform

NAN = math.nan
WITH_NAN = given([[1.0, NAN, 0.3, -2.0], [NAN, NAN, 0.7, 4.0], [0.5, 2.5, -1.5, 3.0]])

row("numpy.nanmedian", WITH_NAN)
row("numpy.nanmedian", WITH_NAN, axis=1, keepdims=True)
row("numpy.nanquantile", WITH_NAN, q=[0.2, 0.7], axis=1)
row("numpy.nanquantile", WITH_NAN, uniform(0.42, 0.47, ()), call=lambda f, x, q: f(x, q, 0), note="in q")
row(
    "numpy.nanquantile",
    WITH_NAN,
    call=lambda f, x: f(x, 0.4, method="inverted_cdf", weights=np.arange(1.0, 13.0).reshape(3, 4)),
    note="weights",
)
row("numpy.nanpercentile", WITH_NAN, q=35.0, axis=0, method="weibull", keepdims=True)
row("numpy.quantile", distinct((2, 4)), q=[[0.3, 0.6]], axis=1, note="q of two axes", dtypes=())
row("numpy.sort", normal((2, 4), c128), axis=0, dtypes=(), note="complex")
row("numpy.sort_complex", distinct((2, 3)), dtypes=())
row("numpy.frexp", normal((5,)), order=1)
row("numpy.i0", normal((2, 3)))

# Sets

row("numpy.intersect1d", normal((4,)), asks=True, call=lambda f, x: f(x, x[1:3] + 0.0), note="shared")
row("numpy.setdiff1d", normal((4,)), asks=True, call=lambda f, x: f(x, x[1:3]), note="shared")
row("numpy.setxor1d", normal((4,)), asks=True, call=lambda f, x: f(x, x[1:3]), note="shared")
row("numpy.union1d", normal((4,)), normal((2,)), asks=True)
row("numpy.unique_values", normal((4,)), call=lambda f, x: np.sort(f(x)), asks=True)
row("numpy.unique_all", normal((4,)), asks=True)
row("numpy.unique_counts", normal((4,)), asks=True)
row("numpy.unique_inverse", normal((4,)), asks=True)

# Histograms

PLACES = given([0.1, 0.6, 0.3, 0.95, 0.3])
row("numpy.histogram", PLACES, normal((5,)), call=lambda f, x, w: f(x, [0.0, 0.5, 1.0], weights=w)[0], note="weights")
row(
    "numpy.histogram",
    PLACES,
    uniform(1, 2, (5,)),
    call=lambda f, x, w: f(x, 2, (0.0, 1.0), True, w)[0],
    note="density",
)
row("numpy.histogram_bin_edges", normal((4,)), bins=3)
row("numpy.histogram2d", PLACES, PLACES, normal((5,)), call=lambda f, x, y, w: f(x, y, [2, 3], [(0, 1)] * 2, weights=w))
row(
    "numpy.histogramdd",
    given([[0.1, 0.7], [0.6, 0.2], [0.8, 0.4]]),
    uniform(1, 2, (3,)),
    call=lambda f, x, w: f(x, [[0.0, 0.5, 1.0], [0.0, 1.0]], density=True, weights=w)[0],
)

# Applied one after another

row("numpy.apply_over_axes", normal((2, 3)), call=lambda f, x: f(np.sum, x, [0, 1]))
row("numpy.apply_over_axes", normal((2, 3)), call=lambda f, x: f(np.cumprod, x, 1))
row("numpy.frompyfunc", normal((3,)), call=lambda f, x: np.stack(list(f(lambda a: a * a, 1, 1)(x))), dtypes=())
row(
    "ftrans.numpy.vectorize",
    normal((2, 3)),
    normal((3, 2)),
    call=lambda f, x, y: f(np.dot, signature="(n),(n)->()")(x, y.T),
    note="signature",
    dtypes=(),
)
row(
    "ftrans.numpy.vectorize",
    normal((3,)),
    call=lambda f, x: f(lambda a, n: (a**n, a), otypes=[float, float], excluded={"n"})(x, n=3),
    note="excluded",
    dtypes=(),
)
row("numpy.ix_", normal((3, 3)), call=lambda f, x: x[f([0, 2], x[0] != 0)], note="mask", asks=True, dtypes=())
row("numpy.lexsort", normal((2, 4)), call=lambda f, x: x[0][f(x)], note="an index", dtypes=(f32,))
