"""`scipy.signal`: smoothing, trends and analytic signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from ...core.types import is_complex
from ...numpy.promotion import asarray, has_tracer
from .. import ndimage
from ..entries import bad_argument
from .convolution import correlate
from .operands import axis_of, implemented, inexact

__all__ = ["detrend", "hilbert", "hilbert2", "medfilt", "medfilt2d", "order_filter", "savgol_filter", "wiener"]


def _real(x: Any, name: str) -> Any:
    (x,) = inexact(x)
    if is_complex(x.dtype):
        raise bad_argument(f"{name} is of real signals, not {x.type}")
    return x


def _one_side(n: int) -> Any:
    """Factors of the frequencies that leave the positive ones."""
    factors = np.zeros(n)
    factors[0] = 1
    factors[1 : (n + 1) // 2] = 2
    factors[n // 2 :: n] = 1 if n % 2 == 0 else factors[n // 2]
    return factors


@implemented
def hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    """The analytic signal: the signal, and its Hilbert transform as the imaginary part."""
    x = _real(x, "hilbert")
    axis = axis_of(x, axis)
    n = x.shape[axis] if N is None else N
    if n < 1:
        raise bad_argument(f"hilbert: N must be positive, not {n}")
    spectrum = np.moveaxis(np.fft.fft(x, n, axis), axis, -1)
    return np.fft.ifft(np.moveaxis(spectrum * _one_side(n).astype(x.dtype), -1, axis), axis=axis)


@implemented
def hilbert2(x: Any, N: Any = None, axes: Any = (-2, -1)) -> Any:
    """The analytic signal of two dimensions."""
    x = np.atleast_2d(_real(x, "hilbert2"))
    axes = [axis_of(x, a) for a in axes]
    if len(axes) != 2 or axes[0] == axes[1]:
        raise bad_argument("hilbert2: axes must be two distinct axes")
    sizes = [x.shape[a] for a in axes] if N is None else [N, N] if np.ndim(N) == 0 else list(N)
    if len(sizes) != 2 or min(sizes) < 1:
        raise bad_argument(f"hilbert2: N must be one or two positive integers, not {N!r}")
    spectrum = np.moveaxis(np.fft.fft2(x, sizes, axes), axes, (-2, -1))
    for place, n in ((-2, sizes[0]), (-1, sizes[1])):
        factors = np.zeros(n, x.dtype)
        factors[1 : (n + 1) // 2] = 2
        factors[0] = 1
        spectrum = spectrum * (factors[:, None] if place == -2 else factors)
    return np.fft.ifft2(np.moveaxis(spectrum, (-2, -1), axes), axes=axes)


@implemented
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    """A signal less its mean, or less the line, or the lines between break points, that fit it best."""
    if type not in ("linear", "l", "constant", "c"):
        raise bad_argument(f"detrend: type must be 'linear' or 'constant', not {type!r}")
    (x,) = inexact(data)
    axis = axis_of(x, axis)
    if type in ("constant", "c"):
        return x - np.mean(x, axis, keepdims=True)
    if has_tracer(bp):
        raise bad_argument("detrend: break points are places in the signal, and not differentiable")
    x = np.moveaxis(x, axis, -1)
    count = x.shape[-1]
    points = np.unique(np.concatenate([[0], np.atleast_1d(bp), [count]]))
    if np.any(points > count):
        raise bad_argument(f"detrend: break points must be less than the length {count} of the signal")
    parts = []
    for start, stop in zip(points[:-1].astype(int), points[1:].astype(int), strict=True):
        lines = np.stack([np.ones(stop - start), np.arange(1, stop - start + 1) / (stop - start)], -1)
        basis = np.linalg.qr(lines)[0].astype(x.dtype)
        part = x[..., start:stop]
        parts.append(part - (part @ basis) @ basis.T)
    return np.moveaxis(np.concatenate(parts, -1), -1, axis)


@implemented
def wiener(im: Any, mysize: Any = None, noise: Any = None) -> Any:
    """The Wiener filter, by means and variances around each element."""
    (im,) = inexact(im)
    sizes = [3] * im.ndim if mysize is None else [mysize] * im.ndim if np.ndim(mysize) == 0 else list(mysize)
    box, count = np.ones(sizes, im.dtype), float(np.prod(sizes))
    mean = correlate(im, box, "same") / count
    variance = correlate(im**2, box, "same") / count - mean**2
    noise = np.mean(variance) if noise is None else asarray(noise)
    return np.where(variance < noise, mean, (im - mean) * (1 - noise / variance) + mean)


@implemented
def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: Any = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
    """Values, or derivatives, of the polynomials that fit the windows of a signal best.

    Arguments are SciPy's; derivatives are by `x`, `delta` and `cval`.

    Returns:
        An array of the shape of `x`.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy import signal
        >>> print(ft.grad(lambda y: signal.savgol_filter(y, 5, 2)[2])(np.zeros(5)).round(4))
        [-0.0857  0.3429  0.4857  0.3429 -0.0857]
    """
    if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
        raise bad_argument(f"mode must be 'mirror', 'constant', 'nearest', 'wrap' or 'interp', not {mode!r}")
    x = _real(x, "savgol_filter")
    axis = axis_of(x, axis)
    x = np.moveaxis(x, axis, -1)
    weights = scipy.signal.savgol_coeffs(window_length, polyorder, deriv)
    y = ndimage.convolve1d(x, weights, -1, None, "constant" if mode == "interp" else mode, cval)
    if mode == "interp":
        half = window_length // 2
        if window_length > x.shape[-1]:
            raise bad_argument(f"where mode is 'interp', the window must not be longer than {x.shape[-1]} elements")
        # The first and the last polynomial, at all of their places: what SciPy makes of unit vectors.
        fitted = scipy.signal.savgol_filter(np.eye(window_length), window_length, polyorder, deriv).astype(x.dtype)
        first = x[..., :window_length] @ fitted[:, :half]
        last = x[..., x.shape[-1] - window_length :] @ fitted[:, window_length - half :]
        y = np.concatenate([first, y[..., half : x.shape[-1] - half], last], -1)
    return np.moveaxis(y / delta**deriv if deriv else y, -1, axis)


def _odd(sizes: Any, x: Any, name: str) -> list[int]:
    found = [sizes] * x.ndim if np.ndim(sizes) == 0 else list(sizes)
    if len(found) != x.ndim or any(n % 2 != 1 for n in found):
        raise bad_argument(f"{name} needs an odd size for each of {x.ndim} axes, not {sizes}")
    return [int(n) for n in found]


@implemented
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """The median of the elements in a window around each element, between zeros."""
    x = np.atleast_1d(_real(volume, "medfilt"))
    sizes = _odd(3 if kernel_size is None else kernel_size, x, "medfilt")
    return ndimage.rank_filter(x, int(np.prod(sizes)) // 2, sizes, mode="constant")


@implemented
def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """The median of the elements in a window around each element of a matrix, between zeros."""
    x = asarray(input)
    if x.ndim != 2:
        raise bad_argument(f"medfilt2d is of matrices, not of {x.type}")
    return medfilt(x, kernel_size)


@implemented
def order_filter(a: Any, domain: Any, rank: int) -> Any:
    """The element of a rank, of those in a window around each element, between zeros."""
    return ndimage.rank_filter(_real(a, "order_filter"), rank, footprint=domain, mode="constant")
