"""`scipy.signal`: signals at other rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.signal

from ...core.types import is_complex
from ...numpy.promotion import asarray
from ..entries import bad_argument
from .convolution import upfirdn
from .design import firwin
from .filtering import filtfilt, lfilter, sosfilt, sosfiltfilt
from .operands import axis_of, implemented, inexact, padded
from .windows import window_of

__all__ = ["decimate", "resample", "resample_poly"]


@implemented
def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """A periodic signal at `num` points, by its Fourier transform; with `t`, also the new times."""
    if domain not in ("time", "freq"):
        raise bad_argument(f"domain must be 'time' or 'freq', not {domain!r}")
    (x,) = inexact(x)
    axis = axis_of(x, axis)
    x = np.moveaxis(x, axis, -1)
    n = x.shape[-1]
    real = domain == "time" and not is_complex(x.dtype)
    spectrum = np.fft.rfft(x) if real else np.fft.fft(x) if domain == "time" else x
    weights = _weights(window, n)
    if weights is not None:
        weights = weights.astype(x.real.dtype)
        if real:
            # The weights of a frequency and of its negative are one.
            weights = (weights + np.roll(weights[::-1], 1))[: spectrum.shape[-1]] / 2
        spectrum = spectrum * weights
    spectrum = (_cut_half if real else _cut)(spectrum, n, num) * (num / n)
    out = np.fft.irfft(spectrum, num) if real else np.fft.ifft(spectrum, num)
    out = np.moveaxis(out, -1, axis)
    return out if t is None else (out, t[0] + (t[1] - t[0]) * (n / num) * np.arange(num))


def _weights(window: Any, n: int) -> Any:
    if window is None:
        return None
    if callable(window):
        return asarray(window(np.fft.fftfreq(n)))
    if isinstance(window, str | tuple | float):
        return np.fft.fftshift(window_of(window, n, True))
    if np.shape(window) != (n,):
        raise bad_argument(f"the window must have as many elements as there are frequencies, {n}")
    return asarray(window)


def _cut_half(spectrum: Any, n: int, num: int) -> Any:
    """Half of a spectrum of n frequencies, with those that a signal of `num` points has."""
    m = min(n, num)
    spectrum = spectrum[..., : m // 2 + 1]
    if m % 2 or n == num:
        return spectrum
    factors = np.ones(m // 2 + 1, spectrum.real.dtype)
    factors[-1] = 2 if num < n else 0.5
    return spectrum * factors


def _cut(spectrum: Any, n: int, num: int) -> Any:
    """A whole spectrum with as many frequencies as points; one without its negative is shared or united."""
    m = min(n, num)
    low, high = spectrum[..., : m // 2 + 1], spectrum[..., n - (m - 1) // 2 :]
    if m % 2 == 0 and n != num:
        middle = low[..., -1:]
        if num < n:
            low = np.concatenate([low[..., :-1], middle + spectrum[..., n - m // 2 : n - m // 2 + 1]], -1)
        else:
            low, high = (
                np.concatenate([low[..., :-1], middle / 2], -1),
                np.concatenate([middle / 2, high], -1),
            )
    between = np.zeros((*low.shape[:-1], num - low.shape[-1] - high.shape[-1]), low.dtype)
    return np.concatenate([low, between, high], -1)


_BACKGROUNDS = {"mean": np.mean, "median": np.median, "minimum": np.min, "maximum": np.max}


@implemented
def resample_poly(
    x: Any,
    up: int,
    down: int,
    axis: int = 0,
    window: Any = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: Any = None,
) -> Any:
    """A signal at `up / down` times its rate, by a filter between zeros."""
    if up != int(up) or down != int(down) or up < 1 or down < 1:
        raise bad_argument(f"up and down must be positive integers, not {up} and {down}")
    if cval is not None and padtype != "constant":
        raise bad_argument(f"cval has no effect where padtype is {padtype!r}")
    (x,) = inexact(x)
    axis = axis_of(x, axis)
    common = math.gcd(int(up), int(down))
    up, down = int(up) // common, int(down) // common
    if up == down == 1:
        return x
    if isinstance(window, str | tuple | float):
        rate = max(up, down)
        h, half = asarray(firwin(20 * rate + 1, 1.0 / rate, window=window)).astype(x.dtype), 10 * rate
    else:
        h = asarray(window)
        if h.ndim != 1:
            raise bad_argument(f"the window must be a vector, not {h.type}")
        half = (h.size - 1) // 2
    n_in = x.shape[axis]
    n_out = -(-n_in * up // down)
    before = down - half % down
    first = (half + before) // down
    # The filter reaches to the last sample that is kept.
    after = max(0, (n_out + first - 1) * down + 1 - (n_in - 1) * up - h.size - before)
    h = padded(h * up, before, after)
    background = 0
    if padtype in _BACKGROUNDS:
        background = _BACKGROUNDS[padtype](x, axis=axis, keepdims=True)
        y = upfirdn(h, x - background, up, down, axis)
    else:
        y = upfirdn(h, x, up, down, axis, padtype, 0 if cval is None else cval)
    return y[(*(slice(None),) * axis, slice(first, first + n_out))] + background


@implemented
def decimate(x: Any, q: int, n: Any = None, ftype: Any = "iir", axis: int = -1, zero_phase: bool = True) -> Any:
    """One of `q` samples of a signal, after a filter against aliases."""
    (x,) = inexact(x)
    axis = axis_of(x, axis)
    every = (*(slice(None),) * axis, slice(None, None, int(q)))
    if ftype == "fir":
        taps = scipy.signal.firwin((20 * int(q) if n is None else n) + 1, 1.0 / q, window="hamming").astype(x.dtype)
        if zero_phase:
            return resample_poly(x, 1, q, axis, taps)
        return upfirdn(taps, x, 1, q, axis)[(*(slice(None),) * axis, slice(-(-x.shape[axis] // int(q))))]
    if ftype == "iir":
        sos = scipy.signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos").astype(x.dtype)
        return (sosfiltfilt if zero_phase else sosfilt)(sos, x, axis=axis)[every]
    if not hasattr(ftype, "to_tf"):
        raise bad_argument(f"ftype must be 'iir', 'fir' or a system of scipy.signal.dlti, not {ftype!r}")
    system = ftype.to_tf()
    return (filtfilt if zero_phase else lfilter)(system.num, system.den, x, axis=axis)[every]
