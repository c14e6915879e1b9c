"""`scipy.ndimage`: interpolation by splines, and images that are moved, turned, zoomed and mapped."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special

from ...core.types import is_complex
from ...numpy.promotion import asarray, cast, has_tracer, value_in_hand
from ..entries import bad_argument
from . import splines
from .operands import axis_of, delivered, implemented, in_double_precision, one_for_each

__all__ = [
    "affine_transform", "map_coordinates", "rotate", "shift", "spline_filter", "spline_filter1d", "zoom",
]  # fmt: skip

# By how many elements SciPy continues an array whose edges are repeated, or filled, before it computes coefficients.
_PADDED = 12


@implemented
def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    """The coefficients along an axis of the spline through the elements of an array."""
    splines.check(order, mode)
    x = in_double_precision(input)
    return delivered(splines.coefficients(x, order, axis_of(x, axis), mode), output, input)


@implemented
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """The coefficients of the spline through the elements of an array."""
    splines.check(order, mode)
    if order < 2:
        raise bad_argument(f"spline order {order} is not supported: it is 2 to 5")
    return delivered(_filtered(in_double_precision(input), order, mode), output, input)


def _filtered(x: Any, order: int, mode: str) -> Any:
    for axis in range(x.ndim):
        x = splines.coefficients(x, order, axis, mode)
    return x


class _Spline:
    """The spline through the elements of an array, continued beyond its edges.

    Args:
        input: the array.
        order: degree of the spline.
        mode: how it is continued.
        cval: its value beyond the edges, for the modes that fill.
        prefilter: whether the array holds the elements that the spline goes through, and not its coefficients.
    """

    def __init__(self, input: Any, order: Any, mode: Any, cval: Any, prefilter: bool) -> None:
        splines.check(order, mode)
        x = in_double_precision(input)
        if not x.ndim:
            raise bad_argument("an image needs one axis or more")
        self.order, self.mode, self.offset = order, mode, 0
        if prefilter and order > 1:
            if mode in ("nearest", "grid-constant"):
                self.offset = _PADDED
                options = {"constant_values": cval} if mode == "grid-constant" else {}
                x = np.pad(x, _PADDED, "constant" if mode == "grid-constant" else "edge", **options)
            x = _filtered(x, order, mode)
        self.coefficients = x
        self.fill = cast(asarray(cval), x.dtype) if not is_complex(asarray(cval).dtype) else asarray(cval)

    def _prepared(self, points: Any, axis: int) -> tuple[Any, list[Any], Any]:
        """Places of first coefficients, weights, and which points are inside, of points along an axis."""
        n = self.coefficients.shape[axis]
        points, inside = splines.mapped(points + self.offset, n, self.mode)
        return *splines.weights(points, self.order), inside

    def at(self, points: Sequence[Any]) -> Any:
        """Its values at points that are given by an array of coordinates for each axis."""
        prepared = [self._prepared(c, i) for i, c in enumerate(points)]
        total: Any = 0
        for ks in itertools.product(range(self.order + 1), repeat=len(points)):
            found = [
                splines.places(first, k, n, self.mode)
                for (first, _, _), k, n in zip(prepared, ks, self.coefficients.shape, strict=True)
            ]
            value = self.coefficients[tuple(place for place, _ in found)]
            value = self._filled(value, [beyond for _, beyond in found if beyond is not None])
            weight = functools.reduce(operator.mul, (w[k] for (_, w, _), k in zip(prepared, ks, strict=True)))
            total = total + weight * value
        return self._filled(total, [~inside for _, _, inside in prepared if inside is not None])

    def on_grid(self, points: Sequence[Any]) -> Any:
        """Its values on the grid of coordinates that are given by a vector for each axis, one axis after the other."""
        values, outside = self.coefficients, []
        for axis, along in enumerate(points):
            shape = [-1 if i == axis else 1 for i in range(len(points))]
            found = self._prepared(along, axis)
            if has_tracer(along):
                values = self._gathered(values, axis, shape, found)
            else:
                values = self._multiplied(values, axis, shape, found)
            if found[2] is not None:
                outside.append(np.reshape(~found[2], shape))
        return self._filled(values, outside)

    def _gathered(self, values: Any, axis: int, shape: list[int], prepared: tuple[Any, list[Any], Any]) -> Any:
        """Sums of coefficients along an axis at places that depend on what is traced, times their weights."""
        first, weights, _ = prepared
        total: Any = 0
        for k, weight in enumerate(weights):
            place, beyond = splines.places(first, k, values.shape[axis], self.mode)
            part = np.take(values, place, axis)
            if beyond is not None:
                part = np.where(np.reshape(beyond, shape), self.fill, part)
            total = total + np.reshape(weight, shape) * part
        return total

    def _multiplied(self, values: Any, axis: int, shape: list[int], prepared: tuple[Any, list[Any], Any]) -> Any:
        """The same for known places: the product with a matrix."""
        first, weights, _ = prepared
        matrix, filled = np.zeros((values.shape[axis], len(first))), np.zeros(len(first))
        for k, weight in enumerate(weights):
            place, beyond = splines.places(first, k, values.shape[axis], self.mode)
            inner = weight if beyond is None else np.where(beyond, 0, weight)
            np.add.at(matrix, (place, np.arange(len(first))), inner)
            filled += weight - inner
        found = np.moveaxis(np.moveaxis(values, axis, -1) @ matrix.astype(values.dtype), -1, axis)
        return found + np.reshape(filled, shape) * self.fill if np.any(filled) else found

    def _filled(self, values: Any, masks: list[Any]) -> Any:
        return np.where(functools.reduce(operator.or_, masks), self.fill, values) if masks else values


@implemented
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The values at points of the spline through the elements of an array; differentiable by both.

    Arguments are SciPy's: `coordinates` has the shape (dimensions, ...).

    Returns:
        The values, of the shape (...).

    Raises:
        ValueError: as SciPy.
        TypeError: as SciPy, of complex coordinates.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy import ndimage
        >>> image = np.array([[0.0, 1.0], [2.0, 5.0]])
        >>> at = lambda point: ndimage.map_coordinates(image, point[:, None], order=1)[0]
        >>> print(ft.grad(at)(np.array([0.5, 0.5])))
        [3. 2.]
    """
    points = asarray(coordinates)
    if is_complex(points.dtype) or points.ndim < 2:
        raise bad_argument(f"coordinates must be real, with an axis for those of a point and more, not {points.type}")
    spline = _Spline(input, order, mode, cval, prefilter)
    if points.shape[0] != spline.coefficients.ndim:
        raise bad_argument(f"points {points.type} need a coordinate for each of {spline.coefficients.ndim} axes")
    points = cast(points, np.dtype(np.float64))
    return delivered(spline.at([points[i] for i in range(points.shape[0])]), output, input)


def _numbers(values: Any, count: int) -> list[Any]:
    """A number of double precision for each axis, some of which may be traced."""
    return one_for_each(asarray(values) if has_tracer(values) else np.asarray(values, float), count)


@implemented
def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An array that is shifted, by splines; differentiable by the shift, too.

    Arguments are SciPy's: `shift` is one number, or one for each axis.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: `shift` has not one number for each axis, or the order or the mode is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> f = lambda s: ndimage.shift(np.arange(5.0) ** 2, s, order=1)[2]
        >>> print(ft.grad(f)(0.5))
        -3.0
    """
    x = asarray(input)
    spline = _Spline(input, order, mode, cval, prefilter)
    moved = _numbers(shift, x.ndim)
    return delivered(spline.on_grid([np.arange(n) + -s for n, s in zip(x.shape, moved, strict=True)]), output, input)


@implemented
def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """An array with more or fewer elements, by splines; factors only say how many.

    Arguments are SciPy's: `zoom` is one factor, or one for each axis, and is not traced.

    Returns:
        An array whose sizes are those of `input` times the factors, rounded.

    Raises:
        ValueError: `zoom` is traced or has not one factor for each axis, or the order or the mode is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> print(ft.grad(lambda x: ndimage.zoom(x, 1.5, order=1)[1])(np.zeros(2)))
        [0.5 0.5]
    """
    x = asarray(input)
    if has_tracer(zoom):
        raise bad_argument("zoom: the factors only say how many elements there will be, and cannot be traced")
    factors = one_for_each(zoom, x.ndim)
    sizes = [round(n * f) for n, f in zip(x.shape, factors, strict=True)]
    if all(f == 1 for f in factors) and prefilter:
        return delivered(in_double_precision(x), output, input)
    spline = _Spline(input, order, mode, cval, prefilter)
    points = []
    for n, m in zip(x.shape, sizes, strict=True):
        less = 0 if grid_mode else 1
        step = (n - less) / (m - less) if m != less else 1.0
        points.append((np.arange(m) + 0.5) * step - 0.5 if grid_mode else np.arange(m) * step)
    return delivered(spline.on_grid(points), output, input)


def _moved(spline: _Spline, matrix: Any, offset: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The values at the points `matrix @ place + offset` for all places of an array of so many elements."""
    grid = np.indices(sizes).astype(float)
    points = []
    for i, beginning in enumerate(offset):
        terms = [grid[j] * matrix[i, j] for j in range(len(sizes))]
        points.append(asarray(functools.reduce(operator.add, terms) + beginning))
    return spline.at(points)


@implemented
def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An array of elements at affine images of their places, by splines; differentiable by the map, too."""
    x, n = asarray(input), asarray(input).ndim
    sizes = tuple(x.shape if output_shape is None else output_shape)
    spline = _Spline(input, order, mode, cval, prefilter)
    matrix = asarray(matrix) if has_tracer(matrix) else np.asarray(matrix, float)
    if matrix.ndim not in (1, 2) or matrix.shape[0] not in (n, n + 1):
        raise bad_argument(f"the matrix must have {n} rows, not the shape {matrix.shape}")
    if matrix.ndim == 2 and matrix.shape[1] == n + 1:
        offset, matrix = matrix[:n, n], matrix[:n, :n]
    if matrix.shape[0] != n or (matrix.ndim == 2 and matrix.shape[1] != len(sizes)):
        raise bad_argument(f"a matrix of shape {matrix.shape} does not map {len(sizes)} coordinates to {n}")
    beginnings = _numbers(offset, n)
    if matrix.ndim == 1:
        scales = [matrix[i] for i in range(n)]
        points = [(np.arange(m) + b / s) * s for m, s, b in zip(sizes, scales, beginnings, strict=True)]
        return delivered(spline.on_grid(points), output, input)
    return delivered(_moved(spline, matrix, beginnings, sizes), output, input)


def _size_of_turned(turn: Any, sizes: tuple[int, int]) -> tuple[int, int]:
    """The size of the box around a turned rectangle, which depends on the angle."""
    known = value_in_hand(turn)
    if known is None:
        raise bad_argument(
            "rotate: reshape=False must be given where the angle has no value yet, as under jit and vmap"
        )
    corners = known @ np.array([[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]])
    height, width = (np.ptp(corners, axis=1) + 0.5).astype(int)
    return int(height), int(width)


@implemented
def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An array turned by an angle in degrees in the plane of two axes, by splines; differentiable by it, too."""
    x = asarray(input)
    if x.ndim < 2 or len(axes) != 2:
        raise bad_argument(f"rotate needs two axes of an array of two or more, not {axes} of {x.type}")
    first, second = sorted(axis_of(x, a) for a in axes)
    cos, sin = scipy.special.cosdg(angle), scipy.special.sindg(angle)
    turn = np.stack([np.stack([cos, sin]), np.stack([-sin, cos])])
    before = (x.shape[first], x.shape[second])
    after = _size_of_turned(turn, before) if reshape else before
    centre = turn @ ((np.array(after) - 1) / 2)
    offset = (np.array(before) - 1) / 2 - centre
    planes = np.moveaxis(x, (first, second), (-2, -1))
    lanes = planes.shape[:-2]
    planes = np.reshape(planes, (math.prod(lanes), *before))
    turned = [
        _moved(_Spline(planes[i], order, mode, cval, prefilter), turn, [offset[0], offset[1]], after)
        for i in range(planes.shape[0])
    ]
    out = np.reshape(np.stack(turned), (*lanes, *after))
    return delivered(np.moveaxis(out, (-2, -1), (first, second)), output, input)
