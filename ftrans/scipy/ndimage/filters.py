"""`scipy.ndimage`: linear filters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, cast, has_tracer, value_in_hand
from ...ops.convolution import convolution
from ..entries import bad_argument
from .operands import around, axes_of, axis_of, continued, delivered, implemented, in_double_precision, one_for_each

__all__ = [
    "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
    "gaussian_gradient_magnitude", "gaussian_laplace", "generic_gradient_magnitude", "generic_laplace", "laplace",
    "prewitt", "sobel", "uniform_filter", "uniform_filter1d",
]  # fmt: skip


def _numbers(x: Any, weights: Any) -> tuple[Any, Any]:
    """Data and weights in one dtype of double precision."""
    x, weights = in_double_precision(x), in_double_precision(weights)
    dtype = np.result_type(x.dtype, weights.dtype)
    return cast(x, dtype), cast(weights, dtype)


def _along_axis(x: Any, weights: Any, axis: int, mode: Any, cval: Any, origin: Any) -> Any:
    """The sums of products with weights along an axis, of operands in double precision."""
    if weights.ndim != 1 or not weights.size:
        raise bad_argument(f"the weights along an axis must be a vector that is not empty, not {weights.type}")
    if not x.size:
        return x
    x = np.moveaxis(x, axis, -1)
    widths = [(0, 0)] * (x.ndim - 1) + [around(weights.size, origin)]
    samples = continued(x, widths, mode, cval)
    samples = np.reshape(samples, (math.prod(x.shape[:-1]), 1, samples.shape[-1]))
    out = convolution(samples, weights[None, None], strides=(1,), padding=((0, 0),))
    return np.moveaxis(np.reshape(out, x.shape), -1, axis)


def _turned(size: int, origin: Any) -> int:
    """The origin of a reversed filter."""
    return -origin - (1 if size % 2 == 0 else 0)


@implemented
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """Sums of products with weights along an axis.

    Arguments are SciPy's; `mode` says how the array goes on beyond its edges.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: the weights are no vector, or the mode or the origin is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> f = lambda w: ndimage.correlate1d(np.arange(5.0), w)[2]
        >>> print(ft.grad(f)(np.zeros(3)))
        [1. 2. 3.]
    """
    x, w = _numbers(input, weights)
    return delivered(_along_axis(x, np.conj(w), axis_of(x, axis), mode, cval, origin), output, input)


@implemented
def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The convolution with weights along an axis.

    Arguments are SciPy's; `mode` says how the array goes on beyond its edges.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: the weights are no vector, or the mode or the origin is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> f = lambda w: ndimage.convolve1d(np.arange(5.0), w)[2]
        >>> print(ft.grad(f)(np.zeros(3)))
        [3. 2. 1.]
    """
    x, w = _numbers(input, weights)
    return delivered(_along_axis(x, w[::-1], axis_of(x, axis), mode, cval, _turned(w.shape[0], origin)), output, input)


def _over_axes(x: Any, weights: Any, mode: Any, cval: Any, origins: list[Any], axes: list[int]) -> Any:
    """The sums of products with weights over axes, of operands in double precision."""
    if weights.ndim != len(axes) or not weights.size:
        raise bad_argument(f"the weights {weights.type} must have one axis for each of {len(axes)} of the data")
    if not x.size:
        return x
    lanes = [i for i in range(x.ndim) if i not in axes]
    order = [*lanes, *axes]
    moved = np.transpose(x, order)
    widths = [(0, 0)] * len(lanes) + [around(n, o) for n, o in zip(weights.shape, origins, strict=True)]
    samples = continued(moved, widths, mode, cval)
    samples = np.reshape(samples, (math.prod(moved.shape[: len(lanes)]), 1, *samples.shape[len(lanes) :]))
    count = len(axes)
    out = convolution(samples, weights[None, None], strides=(1,) * count, padding=((0, 0),) * count)
    return np.transpose(np.reshape(out, moved.shape), np.argsort(order))


@implemented
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Sums of products with an array of weights around each element.

    Arguments are SciPy's; `mode` says how the array goes on beyond its edges.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: the weights have not one axis for each of the data's, or the mode or the origin is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> f = lambda w: ndimage.correlate(np.eye(3), w, mode="constant")[1, 1]
        >>> print(ft.grad(f)(np.zeros((3, 3))))
        [[1. 0. 0.]
         [0. 1. 0.]
         [0. 0. 1.]]
    """
    x, w = _numbers(input, weights)
    axes = axes_of(x, axes)
    return delivered(_over_axes(x, np.conj(w), mode, cval, one_for_each(origin, len(axes)), axes), output, input)


@implemented
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The convolution with an array of weights.

    Arguments are SciPy's; `mode` says how the array goes on beyond its edges.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: the weights have not one axis for each of the data's, or the mode or the origin is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> f = lambda w: ndimage.convolve(np.arange(5.0), w)[2]
        >>> print(ft.grad(f)(np.zeros(3)))
        [3. 2. 1.]
    """
    x, w = _numbers(input, weights)
    axes = axes_of(x, axes)
    origins = [_turned(n, o) for n, o in zip(w.shape, one_for_each(origin, len(axes)), strict=False)]
    return delivered(_over_axes(x, np.flip(w), mode, cval, origins, axes), output, input)


# Means


@implemented
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """Means of windows along an axis."""
    if size < 1:
        raise bad_argument(f"the size of a filter must be positive, not {size}")
    return correlate1d(input, np.full(size, 1 / size), axis, output, mode, cval, origin)


@implemented
def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """Means of windows along each axis.

    Arguments are SciPy's: `size` is one number, or one for each axis.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: the mode, the origin or the axes are not what SciPy takes.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import ndimage
        >>> print(ft.grad(lambda x: ndimage.uniform_filter(x, 2)[1])(np.arange(4.0)))
        [0.5 0.5 0.  0. ]
    """
    x = in_double_precision(input)
    axes = axes_of(x, axes)
    options = (one_for_each(v, len(axes)) for v in (size, mode, origin))
    for axis, n, kind, place in zip(axes, *options, strict=True):
        if n > 1:
            x = uniform_filter1d(x, int(n), axis, None, kind, cval, place)
    return delivered(x, output, input)


# Gaussians


def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """Weights of a Gaussian, which sum up to 1, or of its derivative of an order, by Hermite polynomials."""
    x = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 / (sigma * sigma) * x**2)
    weights = weights / np.sum(weights)
    if order == 0:
        return weights
    t = x / sigma
    before, polynomial = np.ones(x.size), t
    for k in range(1, order):
        before, polynomial = polynomial, t * polynomial - k * before
    return weights * polynomial * (-1 / sigma) ** order


def _radius(sigma: Any, truncate: Any, radius: Any) -> int:
    if radius is None:
        if has_tracer(sigma):
            found = value_in_hand(np.floor(truncate * asarray(sigma) + 0.5))
            if found is None:
                raise bad_argument("radius= must be given where sigma has no value yet, as under jit and vmap")
            return int(found)
        return int(truncate * float(sigma) + 0.5)
    if not isinstance(radius, int | np.integer) or radius < 0:
        raise bad_argument(f"radius must be a nonnegative integer, not {radius!r}")
    return int(radius)


@implemented
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """The convolution with a Gaussian, or its derivative of an order, along an axis; differentiable by `sigma`, too."""
    if order < 0:
        raise bad_argument(f"order must be nonnegative, not {order}")
    return convolve1d(input, _gaussian(sigma, order, _radius(sigma, truncate, radius)), axis, output, mode, cval)


@implemented
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """The convolution with Gaussians, or their derivatives, along each axis; differentiable by `sigma`, too.

    Arguments are SciPy's; how far a Gaussian reaches is told by the value of `sigma`, and has no derivative.

    Returns:
        An array of the shape of `input`.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy import ndimage
        >>> print(ft.grad(lambda sigma: ndimage.gaussian_filter(np.eye(5), sigma)[2, 2])(1.0).round(4))
        -0.2702
    """
    x = in_double_precision(input)
    axes = axes_of(x, axes)
    options = (one_for_each(v, len(axes)) for v in (sigma, order, mode, radius))
    for axis, s, m, kind, r in zip(axes, *options, strict=True):
        if has_tracer(s) or s > 1e-15:
            x = gaussian_filter1d(x, s, axis, m, None, kind, cval, truncate, radius=r)
    return delivered(x, output, input)


# Derivatives


def _differences(input: Any, axis: int, output: Any, mode: Any, cval: Any, across: list[float]) -> Any:
    """Central differences along an axis, with weights along the others."""
    x = in_double_precision(input)
    axis = axis_of(x, axis)
    modes = one_for_each(mode, x.ndim)
    x = correlate1d(x, [-1.0, 0.0, 1.0], axis, None, modes[axis], cval)
    for i in range(x.ndim):
        if i != axis:
            x = correlate1d(x, across, i, None, modes[i], cval)
    return delivered(x, output, input)


@implemented
def prewitt(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """Prewitt's filter for edges."""
    return _differences(input, axis, output, mode, cval, [1.0, 1.0, 1.0])


@implemented
def sobel(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """Sobel's filter for edges."""
    return _differences(input, axis, output, mode, cval, [1.0, 2.0, 1.0])


def _each_axis(input: Any, derivative: Callable[..., Any], mode: Any, cval: Any, axes: Any) -> list[Any]:
    x = in_double_precision(input)
    axes = axes_of(x, axes)
    modes = one_for_each(mode, len(axes))
    return [derivative(x, axis, None, kind, cval) for axis, kind in zip(axes, modes, strict=True)]


@implements(scipy.ndimage.generic_laplace, takes_functions=True)
def generic_laplace(
    input: Any,
    derivative2: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """The sum of second derivatives along axes, which `derivative2` computes."""

    def second(x: Any, *args: Any) -> Any:
        return derivative2(x, *args, *extra_arguments, **(extra_keywords or {}))

    found = _each_axis(input, second, mode, cval, axes)
    return delivered(sum(found[1:], found[0]) if found else in_double_precision(input), output, input)


@implemented
def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    """The sum of second differences along axes."""

    def second(x: Any, axis: int, output: Any, mode: Any, cval: Any) -> Any:
        return correlate1d(x, [1.0, -2.0, 1.0], axis, output, mode, cval)

    return generic_laplace(input, second, output, mode, cval, axes=axes)


def _gaussian_derivative(order: int, sigma: Any, axes: Any, options: dict[str, Any]) -> Callable[..., Any]:
    def derivative(x: Any, axis: int, output: Any, mode: Any, cval: Any) -> Any:
        chosen = axes_of(x, axes)
        sigmas = dict(zip(chosen, one_for_each(sigma, len(chosen)), strict=True))
        orders = [order if i == axis else 0 for i in range(x.ndim)]
        return gaussian_filter(x, [sigmas.get(i, 0) for i in range(x.ndim)], orders, output, mode, cval, **options)

    return derivative


@implemented
def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The sum of second derivatives along axes, by Gaussians."""
    second = _gaussian_derivative(2, sigma, axes, kwargs)
    return generic_laplace(asarray(input), second, output, mode, cval, axes=axes)


@implements(scipy.ndimage.generic_gradient_magnitude, takes_functions=True)
def generic_gradient_magnitude(
    input: Any,
    derivative: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """The length of the gradient, of which `derivative` computes the elements."""

    def first(x: Any, *args: Any) -> Any:
        return derivative(x, *args, *extra_arguments, **(extra_keywords or {}))

    found = [y * y for y in _each_axis(input, first, mode, cval, axes)]
    return delivered(np.sqrt(sum(found[1:], found[0])) if found else in_double_precision(input), output, input)


@implemented
def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The length of the gradient, by Gaussians."""
    # SciPy smooths along all axes here, and takes derivatives along the chosen ones.
    first = _gaussian_derivative(1, sigma, None, kwargs)
    return generic_gradient_magnitude(asarray(input), first, output, mode, cval, axes=axes)
