"""Splines on a regular grid: their coefficients from the data, weights of those around a point, points beyond edges.

The definitions are those of SciPy's ndimage, https://docs.scipy.org/doc/scipy/tutorial/ndimage.html; the basis is
M. Unser: Splines: a perfect fit for signal and image processing, IEEE Signal Processing Magazine 16 (1999).
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.ndimage

from ...numpy.promotion import asarray
from ...ops.convolution import convolution
from ..entries import bad_argument

MODES = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap")
# Along axes of more elements than this, coefficients are a convolution, and not the product with a dense matrix.
_MOST_DENSE = 256
# The influence of elements farther away than this on a coefficient is below rounding: it is less than 0.431 ** 64.
_FAR = 64
# How an array goes on beyond its edges where coefficients are computed.
_CONTINUED = {"reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "symmetric", "grid-wrap": "wrap"}


def check(order: Any, mode: Any) -> None:
    """Raise an error if there is no such spline."""
    if order not in range(6):
        raise bad_argument(f"spline order {order!r} is not supported: it is 0 to 5")
    if mode not in MODES:
        raise bad_argument(f"boundary mode {mode!r} is not supported: it is one of {', '.join(MODES)}")


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """The coefficients along an axis of the spline through the elements of `x`, which are of double precision."""
    n = x.shape[axis]
    if order < 2 or n < 2:
        return x
    x = np.moveaxis(x, axis, -1)
    if n <= _MOST_DENSE:
        found = x @ _matrix(n, order, mode).astype(x.dtype)
    else:
        widths = [(0, 0)] * (x.ndim - 1) + [(_FAR, _FAR)]
        wide = np.pad(x, widths, _CONTINUED.get(mode, "reflect"))
        samples = np.reshape(wide, (math.prod(x.shape[:-1]), 1, wide.shape[-1]))
        kernel = asarray(_influence(order).astype(x.dtype))[None, None]
        found = np.reshape(convolution(samples, kernel, strides=(1,), padding=((0, 0),)), x.shape)
    return np.moveaxis(found, -1, axis)


@functools.lru_cache(maxsize=64)
def _matrix(n: int, order: int, mode: str) -> Any:
    """The matrix that vectors are multiplied by from the right, which SciPy computes of unit vectors."""
    return scipy.ndimage.spline_filter1d(np.eye(n), order, axis=1, mode=mode)


@functools.lru_cache(maxsize=8)
def _influence(order: int) -> Any:
    """The coefficients around a single element of 1."""
    unit = np.eye(1, 4 * _FAR + 1, 2 * _FAR)[0]
    return scipy.ndimage.spline_filter1d(unit, order)[_FAR : 3 * _FAR + 1]


@functools.cache
def _polynomials(order: int) -> Any:
    """Row by row, the polynomials in the place within a cell that are the weights of the coefficients around it."""
    half = Fraction(order + 1, 2)
    rows = []
    for place in range(order + 1):
        row = [Fraction(0)] * (order + 1)
        for k in range(order + 2):
            shift = half - k - (place - order // 2)
            if shift < 0 or (shift == 0 and order % 2 == 0):
                continue
            sign = Fraction((-1) ** k * math.comb(order + 1, k), math.factorial(order))
            for power in range(order + 1):
                row[power] += sign * math.comb(order, power) * shift ** (order - power)
        rows.append([float(c) for c in row])
    return np.array(rows)


def weights(points: Any, order: int) -> tuple[Any, list[Any]]:
    """The integer place of the first coefficient for each point, and the weights of it and those that follow."""
    below = np.floor(points if order % 2 else points + 0.5)
    t = points - below
    found = []
    for row in _polynomials(order):
        value = row[-1] + 0 * t
        for c in row[-2::-1]:
            value = value * t + c
        found.append(value)
    return below.astype(np.int64) - order // 2, found


def mapped(points: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Points beyond the edges of n elements brought back, and for "constant" whether they are between the edges."""
    if mode in ("grid-constant", "nearest"):
        # Their coefficients go on instead.
        return points, None
    is_low, is_high = points < 0, points > n - 1
    if mode == "constant":
        inside = ~(is_low | is_high)
        return np.where(inside, points, 0.0), inside
    if n == 1 and mode in ("mirror", "wrap"):
        return 0 * points, None
    if mode == "grid-wrap":
        moved = points - n * np.floor(points / n)
    elif mode == "wrap":
        period = n - 1
        moved = points - period * np.trunc(points / period) + np.where(is_low, 1.0 * period, 0.0)
    else:
        # Mirrored at the outermost elements, or half a step beyond; between these and the next, coefficients go on.
        half, period = (0, 2 * n - 2) if mode == "mirror" else (1, 2 * n)
        turned = points - period * np.floor(points / period)
        stays = np.where(is_low, turned <= n - 1 if mode == "mirror" else turned < n, turned < n)
        moved = np.where(stays, turned, period - half - turned)
    return np.where(is_low | is_high, moved, points), None


def places(first: Any, k: int, n: int, mode: str) -> tuple[Any, Any]:
    """The coefficients `k` after the first ones, brought back between edges; for "grid-constant" also those beyond."""
    place = first + k
    if mode == "grid-constant":
        return np.clip(place, 0, n - 1), (place < 0) | (place > n - 1)
    if mode == "nearest" or n == 1:
        return np.clip(place, 0, n - 1), None
    if mode == "grid-wrap":
        return place % n, None
    if mode in ("reflect", "grid-mirror"):
        turned = place % (2 * n)
        return np.minimum(turned, 2 * n - 1 - turned), None
    turned = place % (2 * n - 2)
    return np.minimum(turned, 2 * n - 2 - turned), None
