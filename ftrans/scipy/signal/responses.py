"""`scipy.signal`: how filters answer to frequencies."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...numpy.promotion import asarray, is_number, real_dtype
from ..entries import bad_argument
from .operands import implemented, inexact, vector

__all__ = ["freqs", "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "group_delay", "sosfreqz"]

_TURN = 2 * math.pi
# Polynomials of more coefficients than this are a product with powers, those of fewer are nested.
_MOST_NESTED = 32


def _is_count(x: Any) -> bool:
    return is_number(x) and np.asarray(x).dtype.kind in "iu"


def _angles(worN: Any, whole: bool, fs: Any, dtype: Any, with_end: bool = False) -> tuple[Any, Any]:
    """Angular frequencies per sample, and the same in units of `fs`; spaced ones are real numbers of `dtype`."""
    if worN is None or _is_count(worN):
        n = 512 if worN is None else operator.index(worN)
        if n < 0:
            raise bad_argument(f"the number of frequencies must be nonnegative, not {n}")
        w = np.linspace(0, _TURN if whole else math.pi, n, endpoint=with_end and not whole, dtype=real_dtype(dtype))
    else:
        (w,) = inexact(np.atleast_1d(worN))
        w = _TURN * w / fs
    return w, w * (fs / _TURN)


def _polynomial(c: Any, z: Any) -> Any:
    """Polynomials with the coefficients `c`, the lowest first, along the first axis, at the points `z`."""
    count = c.shape[0]
    c = np.moveaxis(c, 0, -1)[..., None]
    if count > _MOST_NESTED:
        return np.sum(c * z ** np.arange(count)[:, None], -2)
    found = c[..., -1, :] + 0 * z
    for i in reversed(range(count - 1)):
        found = c[..., i, :] + found * z
    return found


@implemented
def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: Any = _TURN,
    include_nyquist: bool = False,
) -> tuple[Any, Any]:
    """Frequencies, and the response of a digital filter to them."""
    b, a = (np.atleast_1d(c) for c in inexact(b, a))
    w, shown = _angles(worN, whole, fs, b.dtype, include_nyquist)
    points = np.exp(-1j * w)
    response = _polynomial(b, points) / _polynomial(a, points)
    if plot is not None:
        plot(shown, response)
    return shown, response


@implemented
def freqz_zpk(z: Any, p: Any, k: Any, worN: Any = 512, whole: bool = False, fs: Any = _TURN) -> tuple[Any, Any]:
    """Frequencies, and the response to them of a digital filter given by zeros, poles and gain."""
    z, p = (np.atleast_1d(roots) for roots in inexact(z, p))
    w, shown = _angles(worN, whole, fs, z.dtype)
    points = np.exp(1j * w)
    return shown, asarray(k) * _from_roots(z, points) / _from_roots(p, points)


def _from_roots(roots: Any, points: Any) -> Any:
    return np.prod(points[..., None] - np.atleast_1d(asarray(roots)), -1)


@implemented
def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = _TURN) -> tuple[Any, Any]:
    """Frequencies, and the response to them of a digital filter given by second-order sections."""
    sos = np.atleast_2d(asarray(sos))
    if sos.ndim != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        raise bad_argument(f"sos must have the shape (n_sections, 6), not that of {sos.type}")
    w, response = freqz(sos[:, :3].T, sos[:, 3:].T, worN, whole, None, fs)
    return w, np.prod(response, 0)


@implemented
def sosfreqz(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = _TURN) -> tuple[Any, Any]:
    """An old name of `freqz_sos`."""
    return freqz_sos(sos, worN, whole, fs)


def _given_frequencies(worN: Any, name: str) -> Any:
    if worN is None or _is_count(worN):
        raise bad_argument(
            f"{name} of traced values takes the frequencies themselves as worN=, since their choice depends on the "
            "filter; scipy.signal.findfreqs chooses some for plain coefficients"
        )
    return np.atleast_1d(worN)


@implemented
def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None) -> tuple[Any, Any]:
    """Frequencies, and the response of an analog filter to them, which are given as `worN`."""
    w = _given_frequencies(worN, "freqs")
    b, a = inexact(vector(b, "b", "freqs"), vector(a, "a", "freqs"))
    response = _polynomial(b[::-1], 1j * w) / _polynomial(a[::-1], 1j * w)
    if plot is not None:
        plot(w, response)
    return w, response


@implemented
def freqs_zpk(z: Any, p: Any, k: Any, worN: Any = 200) -> tuple[Any, Any]:
    """Frequencies, and the response to them of an analog filter given by zeros, poles and gain."""
    w = _given_frequencies(worN, "freqs_zpk")
    return w, asarray(k) * _from_roots(z, 1j * w) / _from_roots(p, 1j * w)


@implemented
def group_delay(system: Any, w: Any = 512, whole: bool = False, fs: Any = _TURN) -> tuple[Any, Any]:
    """Frequencies, and the group delay of a digital filter (b, a) in samples; where it is singular, zero."""
    b, a = inexact(vector(system[0], "b", "group_delay"), vector(system[1], "a", "group_delay"))
    angles, shown = _angles(w, whole, fs, b.dtype)
    c = np.convolve(b, np.conj(a[::-1]))
    points = np.exp(-1j * angles)
    below = _polynomial(c, points)
    is_singular = below == 0
    delay = _polynomial(c * np.arange(c.size), points) / np.where(is_singular, 1, below)
    return shown, np.where(is_singular, 0, delay.real - a.size + 1)
