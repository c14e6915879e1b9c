"""Rows of `scipy.ndimage`."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import c128, distinct, given, normal

ONCE: dict[str, Any] = {"dtypes": ()}
IMAGE = normal((3, 4))


def degree(n: int) -> dict[str, Any]:
    """How a function is called with `order=`, which the row's own attribute hides."""
    return {"call": lambda f, *operands: f(*operands, order=n)}


# Filters

row("scipy.ndimage.correlate1d", IMAGE, normal((3,)), axis=0, mode="mirror", origin=1)
row("scipy.ndimage.convolve1d", normal((4,), c128), normal((2,), c128), mode="constant", cval=0.5, **ONCE)
row("scipy.ndimage.correlate", IMAGE, normal((2, 3)), mode="wrap", **ONCE)
row("scipy.ndimage.convolve", IMAGE, normal((3, 2)), mode="nearest", origin=(1, 0), **ONCE)
row("scipy.ndimage.uniform_filter1d", IMAGE, size=2, **ONCE)
row("scipy.ndimage.uniform_filter", IMAGE, size=3, axes=(1,), **ONCE)
row("scipy.ndimage.gaussian_filter1d", IMAGE, given(0.8), **degree(1), radius=2, **ONCE)
row("scipy.ndimage.gaussian_filter", IMAGE, given([0.8, 0.6]), radius=1, **ONCE)
row("scipy.ndimage.gaussian_laplace", IMAGE, given(0.5), radius=2, differentiated=(1,), **ONCE)
row("scipy.ndimage.gaussian_gradient_magnitude", IMAGE, given(0.5), radius=2, axes=(1,), looseness=10, **ONCE)
row("scipy.ndimage.laplace", IMAGE, **ONCE)
row("scipy.ndimage.generic_laplace", IMAGE, call=lambda f, x: f(x, double), **ONCE)
row("scipy.ndimage.generic_gradient_magnitude", IMAGE, call=lambda f, x: f(x, double), looseness=10, **ONCE)
row("scipy.ndimage.prewitt", IMAGE, **ONCE)
row("scipy.ndimage.sobel", IMAGE, axis=0, mode="constant", **ONCE)
row("scipy.ndimage.maximum_filter", distinct((3, 4)), size=2, mode="constant", cval=-9.0, **ONCE)
row("scipy.ndimage.minimum_filter", distinct((5,)), footprint=np.array([True, False, True]), mode="wrap", **ONCE)
row("scipy.ndimage.maximum_filter1d", distinct((3, 4)), size=3, mode="wrap", **ONCE)
row("scipy.ndimage.minimum_filter1d", distinct((4,)), size=3, mode="wrap", **ONCE)
row("scipy.ndimage.median_filter", distinct((5,)), size=3, mode="wrap", **ONCE)
row("scipy.ndimage.rank_filter", distinct((5,)), rank=1, size=3, mode="wrap", **ONCE)
row("scipy.ndimage.percentile_filter", distinct((5,)), percentile=40, size=3, mode="wrap", **ONCE)


def double(x: Any, axis: int, output: Any, mode: str, cval: float) -> Any:
    """A derivative for those that take one, and may want it in an array of theirs."""
    found = 2 * x + np.flip(x, axis)
    if output is None or isinstance(output, np.dtype):
        return found
    output[...] = found
    return output


# Splines

POINTS = given([[0.3, 1.4, -0.6, 7.3], [1.2, 2.6, 3.4, 0.6]])
row("scipy.ndimage.spline_filter1d", IMAGE, **degree(4), axis=0, mode="reflect", **ONCE)
row("scipy.ndimage.spline_filter", normal((3, 3)), **ONCE)
row("scipy.ndimage.map_coordinates", IMAGE, POINTS, mode="mirror", looseness=10, **ONCE)
row("scipy.ndimage.map_coordinates", IMAGE, POINTS, **degree(2), mode="constant", cval=0.5, **ONCE)
row(
    "scipy.ndimage.map_coordinates", normal((3,), c128), given([[0.3, -0.6]]), mode="grid-constant", **degree(2), **ONCE
)
row("scipy.ndimage.shift", IMAGE, given([0.3, -1.4]), mode="nearest", **degree(2), **ONCE)
row("scipy.ndimage.zoom", IMAGE, zoom=(2, 0.5), **ONCE)
row("scipy.ndimage.rotate", normal((3, 3)), given(25.0), **degree(2), reshape=False, looseness=10, **ONCE)
row(
    "scipy.ndimage.affine_transform",
    normal((3, 3)),
    given([[0.9, 0.2], [-0.3, 1.1]]),
    given([0.15, 0.25]),
    **degree(2),
    mode="reflect",
    **ONCE,
)
row("scipy.ndimage.affine_transform", IMAGE, given([0.8, 1.2]), **degree(1), output_shape=(2, 3), mode="wrap", **ONCE)
