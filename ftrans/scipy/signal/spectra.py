"""`scipy.signal`: spectra by Fourier transforms of windows of a signal, and the signal of such transforms."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from ...core.types import is_complex
from ...numpy.promotion import asarray, value_in_hand
from ..entries import bad_argument
from .operands import axis_of, extended, implemented, inexact, padded
from .smoothing import detrend as without_trend
from .windows import window_of

__all__ = ["coherence", "csd", "istft", "periodogram", "spectrogram", "stft", "welch"]


# What users say of windows: the window, nperseg, noverlap and nfft.
_Options = tuple[Any, Any, Any, Any]


class _Windows(NamedTuple):
    """How a signal is cut into windows.

    Attributes:
        weights: the window.
        size: its number of elements.
        step: how far windows lie apart.
        points: how many points are transformed, zeros included.
    """

    weights: Any
    size: int
    step: int
    points: int


def _windows(window: Any, nperseg: Any, noverlap: Any, nfft: Any, length: int) -> _Windows:
    if isinstance(window, str | tuple):
        size = 256 if nperseg is None else int(nperseg)
        if size > length:
            warnings.warn(
                f"nperseg = {size} is greater than the length {length} of the signal, which is used", stacklevel=6
            )
            size = length
        weights = window_of(window, size, True) if size > 0 else None
    else:
        weights = asarray(window)
        size = weights.shape[0] if nperseg is None and weights.ndim == 1 else nperseg
        if weights.shape != (size,) or size > length:
            raise bad_argument(f"the window must be a vector of nperseg numbers, {length} at most, not {weights.type}")
    if size < 1:
        raise bad_argument(f"nperseg must be a positive integer, not {size}")
    points = size if nfft is None else int(nfft)
    overlap = size // 2 if noverlap is None else int(noverlap)
    if points < size or overlap >= size:
        raise bad_argument(f"nfft must not be less than nperseg, and noverlap must be: {points}, {overlap}, {size}")
    return _Windows(weights, size, size - overlap, points)


def _transformed(x: Any, windows: _Windows, detrend: Any, is_half: bool, axis: Any) -> Any:
    """The Fourier transforms (*lanes, window, frequency) of the windows of signals (*lanes, n).

    A function `detrend` is called for each window, or if `axis` is given for all, with their elements along that axis.
    """
    count = (x.shape[-1] - windows.size) // windows.step + 1
    places = windows.step * np.arange(count)[:, None] + np.arange(windows.size)
    parts = x[..., places]
    if callable(detrend) and axis is None:
        parts = np.stack([detrend(parts[..., i, :]) for i in range(count)], -2)
    elif callable(detrend):
        parts = detrend(parts) if axis == x.ndim - 1 else np.moveaxis(detrend(np.moveaxis(parts, -1, axis)), axis, -1)
    elif detrend:
        parts = without_trend(parts, axis=-1, type=detrend)
    transform = np.fft.rfft if is_half else np.fft.fft
    return transform(parts * windows.weights, windows.points)


def _frequencies(points: int, fs: Any, is_half: bool) -> Any:
    return np.arange(points // 2 + 1) * (fs / points) if is_half else np.fft.fftfreq(points) * fs


def _scale(weights: Any, fs: Any, scaling: str) -> Any:
    if scaling == "density":
        return 1.0 / (fs * np.sum(weights * weights))
    if scaling == "spectrum":
        return 1.0 / np.sum(weights) ** 2
    raise bad_argument(f"unknown scaling {scaling!r}: it is 'density' or 'spectrum'")


def _doubled(power: Any, points: int) -> Any:
    """Powers of half of the frequencies, with those of the other half."""
    factors = np.full(points // 2 + 1, 2.0, power.real.dtype)
    factors[0] = 1
    if points % 2 == 0:
        factors[-1] = 1
    return power * factors


def _bias_of_median(n: int) -> float:
    """The median of the powers of n windows of noise, relative to their mean."""
    even = 2 * np.arange(1.0, (n - 1) // 2 + 1)
    return float(1 + np.sum(1.0 / (even + 1) - 1.0 / even))


def _averaged(power: Any, average: str) -> Any:
    """The mean or the median over windows, which lie along the last axis but one."""
    if average == "mean":
        return np.mean(power, -2)
    if average != "median":
        raise bad_argument(f"average must be 'median' or 'mean', not {average!r}")
    if power.shape[-2] == 1:
        return power[..., 0, :]
    middle = np.median(power.real, -2)
    if is_complex(power.dtype):
        middle = middle + 1j * np.median(power.imag, -2)
    return middle / _bias_of_median(power.shape[-2])


def _cross_power(
    x: Any,
    y: Any,
    fs: Any,
    options: _Options,
    detrend: Any,
    is_half: bool,
    scaling: str,
    axis: Any,
    of_all: bool = False,
) -> tuple[Any, Any, _Windows]:
    """Frequencies, products of the transforms of windows (*lanes, window, frequency), and the windows.

    `of_all` says whether a function `detrend` is called for all windows together.
    """
    x, *others = inexact(x, *([] if y is None else [y]))
    place = axis_of(x, axis) if of_all else None
    x, *others = (np.moveaxis(v, axis, -1) for v in (x, *others))
    length = max(v.shape[-1] for v in (x, *others))
    windows = _windows(*options, length)
    is_half = is_half and not is_complex(x.dtype)
    first, *rest = (
        _transformed(padded(v, 0, length - v.shape[-1]), windows, detrend, is_half, place) for v in (x, *others)
    )
    product = np.conj(first) * rest[0] if rest else first.real**2 + first.imag**2
    product = product * _scale(windows.weights, fs, scaling)
    product = _doubled(product, windows.points) if is_half else product
    return _frequencies(windows.points, fs, is_half), product.astype(first.dtype if rest else x.real.dtype), windows


@implemented
def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The cross power spectral density of two signals, by Welch's method.

    Arguments are SciPy's; `fs` may be traced, and so may a window that is given by its numbers.

    Returns:
        The frequencies (n,), and the densities, of the shape of `x` with n in place of the axis.

    Raises:
        ValueError: the window, `nperseg`, `noverlap` and `nfft` do not fit, or `scaling` or `average` is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import signal
        >>> x, y = np.sin(np.arange(8.0)), np.cos(np.arange(8.0))
        >>> f = lambda a: signal.csd(a * x, y, nperseg=4)[1].real.sum()
        >>> print(np.allclose(ft.grad(f)(1.0), f(1.0)))
        True
    """
    options = (window, nperseg, noverlap, nfft)
    other = None if x is y else y
    frequencies, power, _ = _cross_power(x, other, fs, options, detrend, return_onesided, scaling, axis)
    return frequencies, np.moveaxis(_averaged(power, average), -1, axis)


@implemented
def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The power spectral density of a signal, by Welch's method.

    Arguments are SciPy's; `fs` may be traced, and so may a window that is given by its numbers.

    Returns:
        The frequencies (n,), and the densities, of the shape of `x` with n in place of the axis.

    Raises:
        ValueError: the window, `nperseg`, `noverlap` and `nfft` do not fit, or `scaling` or `average` is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import signal
        >>> x = np.sin(np.arange(8.0))
        >>> f = lambda a: signal.welch(a * x, nperseg=4)[1].sum()
        >>> print(np.allclose(ft.grad(f)(1.0), 2 * f(1.0)))
        True
    """
    return csd(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@implemented
def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Any, Any]:
    """The power spectral density of a whole signal.

    Arguments are SciPy's; `fs` may be traced, and so may a window that is given by its numbers.

    Returns:
        The frequencies (n,), and the densities, of the shape of `x` with n in place of the axis.

    Raises:
        ValueError: the window, `nperseg`, `noverlap` and `nfft` do not fit, or `scaling` or `average` is unknown.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy import signal
        >>> x = np.sin(np.arange(8.0))
        >>> f = lambda a: signal.periodogram(a * x)[1].sum()
        >>> print(np.allclose(ft.grad(f)(1.0), 2 * f(1.0)))
        True
    """
    x = asarray(x)
    axis = axis_of(x, axis)
    size = x.shape[axis]
    if nfft is not None and nfft < size:
        x, size = x[(*(slice(None),) * axis, slice(nfft))], nfft
    window = "boxcar" if window is None else window
    return csd(x, x, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)


@implemented
def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    axis: int = -1,
) -> tuple[Any, Any]:
    """The magnitude squared coherence of two signals, by Welch's method: frequencies and values."""
    options: dict[str, Any] = {"fs": fs, "window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft}
    options |= {"detrend": detrend, "axis": axis}
    frequencies, of_x = welch(x, **options)
    of_y = welch(y, **options)[1]
    of_both = csd(x, y, **options)[1]
    return frequencies, (of_both.real**2 + of_both.imag**2) / of_x / of_y


def _times(length: int, windows: _Windows, fs: Any) -> Any:
    return np.arange(windows.size / 2, length - windows.size / 2 + 1, windows.step) / fs


@implemented
def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Any, Any, Any]:
    """Spectra of the windows of a signal: frequencies, times and values."""
    if mode not in ("psd", "complex", "magnitude", "angle", "phase"):
        raise bad_argument(f"unknown mode {mode!r}: it is 'psd', 'complex', 'magnitude', 'angle' or 'phase'")
    x = asarray(x)
    axis = axis_of(x, axis)
    if noverlap is None:
        noverlap = _windows(window, nperseg, 0, None, x.shape[axis]).size // 8
    options = (window, nperseg, noverlap, nfft)
    if mode == "psd":
        frequencies, found, windows = _cross_power(x, None, fs, options, detrend, return_onesided, scaling, axis, True)
        times = _times(x.shape[axis], windows, fs)
    else:
        frequencies, times, found = _stft(x, fs, options, detrend, return_onesided, scaling, None, False, axis)
    if mode == "magnitude":
        found = np.abs(found)
    elif mode in ("angle", "phase"):
        found = np.angle(found)
    found = np.moveaxis(found, (-1, -2), (axis, -1))
    return frequencies, times, np.unwrap(found, axis=axis) if mode == "phase" else found


def _stft(
    x: Any,
    fs: Any,
    options: _Options,
    detrend: Any,
    is_half: bool,
    scaling: str,
    boundary: Any,
    fill: bool,
    axis: int,
) -> tuple[Any, Any, Any]:
    """Frequencies, times, and transforms (*lanes, window, frequency)."""
    (x,) = inexact(x)
    place = axis_of(x, axis)
    x = np.moveaxis(x, axis, -1)
    windows = _windows(*options, x.shape[-1])
    if boundary is not None:
        if boundary not in ("even", "odd", "constant", "zeros"):
            raise bad_argument(f"unknown boundary {boundary!r}: it is 'even', 'odd', 'constant', 'zeros' or None")
        x = extended(x, windows.size // 2, boundary)
    if fill:
        x = padded(x, 0, (-(x.shape[-1] - windows.size) % windows.step) % windows.size)
    is_half = is_half and not is_complex(x.dtype)
    found = _transformed(x, windows, detrend, is_half, place)
    found = found * np.sqrt(_scale(windows.weights, fs, scaling))
    times = _times(x.shape[-1], windows, fs)
    if boundary is not None:
        times = times - (windows.size / 2) / fs
    return _frequencies(windows.points, fs, is_half), times, found.astype(np.result_type(x.dtype, np.complex64))


@implemented
def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = 256,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: Any = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Any, Any, Any]:
    """The Fourier transforms of the windows of a signal: frequencies, times and values."""
    options = (window, nperseg, noverlap, nfft)
    scaling = {"psd": "density", "density": ""}.get(scaling, scaling)
    frequencies, times, found = _stft(x, fs, options, detrend, return_onesided, scaling, boundary, padded, axis)
    return frequencies, times, np.moveaxis(found, (-1, -2), (axis_of(asarray(x), axis), -1))


@implemented
def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    input_onesided: bool = True,
    boundary: Any = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Any, Any]:
    """The signal of the Fourier transforms of its windows: times and values."""
    (found,) = inexact(Zxx)
    time_axis, freq_axis = (axis_of(found, a) for a in (time_axis, freq_axis))
    if found.ndim < 2 or time_axis == freq_axis:
        raise bad_argument(f"istft needs two different axes, for frequencies and times, of {found.type}")
    found = np.moveaxis(found, (time_axis, freq_axis), (-2, -1))
    default = 2 * (found.shape[-1] - 1) if input_onesided else found.shape[-1]
    size = default if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = size if input_onesided and size == default + 1 else default
    windows = _windows(window, size, noverlap, max(nfft, size) if nperseg is None else nfft, size)
    parts = (np.fft.irfft if input_onesided else np.fft.ifft)(found, windows.points)[..., : windows.size]
    weights = windows.weights.astype(parts.dtype)
    if scaling not in ("spectrum", "psd"):
        raise bad_argument(f"unknown scaling {scaling!r}: it is 'spectrum' or 'psd'")
    parts = parts * (np.sum(weights) if scaling == "spectrum" else np.sqrt(fs * np.sum(weights**2)))
    x = _overlapped(parts * weights, windows.step)
    norm = _overlapped(np.broadcast_to(weights**2, (parts.shape[-2], windows.size)), windows.step)
    if boundary:
        half = windows.size // 2
        x, norm = x[..., half:-half], norm[..., half:-half]
    is_there = norm.real > 1e-10
    known = value_in_hand(is_there)
    if known is not None and not np.all(known):
        warnings.warn("NOLA condition failed, STFT may not be invertible", stacklevel=4)
    x = x / np.where(is_there, norm, 1.0)
    x = x.real if input_onesided else x
    x = np.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
    return np.arange(x.shape[0]) / float(fs), x


def _overlapped(parts: Any, step: int) -> Any:
    """The sum of windows (*lanes, window, element) that lie `step` elements apart."""
    count, size = parts.shape[-2:]
    pieces = -(-size // step)
    parts = padded(parts, 0, pieces * step - size)
    parts = np.reshape(parts, (*parts.shape[:-1], pieces, step))
    none = [(0, 0)] * (parts.ndim - 3)
    sums: Any = 0
    for i in range(pieces):
        sums = sums + np.pad(parts[..., i, :], [*none, (i, pieces - 1 - i), (0, 0)])
    whole = np.reshape(sums, (*sums.shape[:-2], -1))
    return whole[..., : size + (count - 1) * step]
