"""`scipy.signal`: the design of filters by their cut-off frequencies, and other forms of filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.signal

from ...numpy.promotion import asarray, cast, has_tracer, value_in_hand
from ..entries import bad_argument
from .convolution import along_last
from .operands import implemented, inexact, vector
from .windows import window_of

__all__ = [
    "bilinear", "bilinear_zpk", "butter", "firwin", "get_window", "lp2bp_zpk", "lp2bs_zpk", "lp2hp_zpk", "lp2lp_zpk",
    "sos2tf", "tf2zpk", "zpk2tf",
]  # fmt: skip

_BANDS = {
    "band": "bandpass", "bandpass": "bandpass", "pass": "bandpass", "bp": "bandpass",
    "bs": "bandstop", "bandstop": "bandstop", "bands": "bandstop", "stop": "bandstop",
    "l": "lowpass", "low": "lowpass", "lowpass": "lowpass", "lp": "lowpass",
    "high": "highpass", "highpass": "highpass", "h": "highpass", "hp": "highpass",
}  # fmt: skip


def _cutoffs(given: Any, name: str, most: float) -> Any:
    """Cut-off frequencies as a vector, checked where they have values."""
    found = np.atleast_1d(cast(asarray(given), np.dtype(np.float64)))
    known = value_in_hand(found)
    if found.ndim != 1 or not found.size:
        raise bad_argument(f"{name}: cut-off frequencies must be a number or a vector, not {found.type}")
    if known is not None and not (np.all(known > 0) and np.all(known < most) and np.all(np.diff(known) > 0)):
        raise bad_argument(
            f"{name}: cut-off frequencies must increase between 0 and half of the sampling rate: {known}"
        )
    return found


# Zeros, poles and gain


def _roots(*roots: Any) -> list[Any]:
    return [np.atleast_1d(inexact(r)[0]) for r in roots]


def _degree(z: Any, p: Any) -> int:
    if p.size < z.size:
        raise bad_argument(f"a filter must not have more zeros than poles: {z.size} and {p.size}")
    return int(p.size - z.size)


def _with(z: Any, value: Any, count: int) -> Any:
    """Zeros, and `count` more at one place."""
    if not count:
        return z
    more = np.broadcast_to(np.reshape(asarray(value), (1,)), (count,))
    return np.concatenate([z, more])


@implemented
def lp2lp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> tuple[Any, Any, Any]:
    """A lowpass filter with another cut-off frequency."""
    z, p = _roots(z, p)
    return wo * z, wo * p, k * wo ** _degree(z, p)


@implemented
def lp2hp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0) -> tuple[Any, Any, Any]:
    """A highpass filter of a lowpass filter."""
    z, p = _roots(z, p)
    return _with(wo / z, 0.0, _degree(z, p)), wo / p, k * np.real(np.prod(-z) / np.prod(-p))


def _pairs(roots: Any, wo: Any) -> Any:
    """Both solutions of `s² - 2 r s + wo² = 0` for each root r."""
    roots = cast(asarray(roots), np.dtype(np.complex128))
    away = np.sqrt(roots**2 - wo**2)
    return np.concatenate([roots + away, roots - away])


@implemented
def lp2bp_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> tuple[Any, Any, Any]:
    """A bandpass filter of a lowpass filter."""
    z, p = _roots(z, p)
    degree = _degree(z, p)
    return _with(_pairs(z * bw / 2, wo), 0.0, degree), _pairs(p * bw / 2, wo), k * bw**degree


@implemented
def lp2bs_zpk(z: Any, p: Any, k: Any, wo: Any = 1.0, bw: Any = 1.0) -> tuple[Any, Any, Any]:
    """A bandstop filter of a lowpass filter."""
    z, p = _roots(z, p)
    degree = _degree(z, p)
    zeros = _with(_with(_pairs((bw / 2) / z, wo), 1j * wo, degree), -1j * wo, degree)
    return zeros, _pairs((bw / 2) / p, wo), k * np.real(np.prod(-z) / np.prod(-p))


@implemented
def bilinear_zpk(z: Any, p: Any, k: Any, fs: Any) -> tuple[Any, Any, Any]:
    """A digital filter of an analog one, by the bilinear transform."""
    z, p = _roots(z, p)
    twice = 2.0 * fs
    gain = k * np.real(np.prod(twice - z) / np.prod(twice - p))
    return _with((twice + z) / (twice - z), -1.0, _degree(z, p)), (twice + p) / (twice - p), gain


@implemented
def butter(
    N: int, Wn: Any, btype: str = "low", analog: bool = False, output: str = "ba", fs: Any = None
) -> tuple[Any, ...]:
    """A Butterworth filter, differentiable by its cut-off frequencies, as coefficients ("ba") or roots ("zpk")."""
    kind, output = _BANDS.get(btype.lower()), output.lower()
    if kind is None or output not in ("ba", "zpk"):
        raise bad_argument(
            "butter of traced values takes btype='low', 'high', 'bandpass' or 'bandstop' and output='ba' or 'zpk', "
            f"not {btype!r} and {output!r}"
        )
    if analog and fs is not None:
        raise bad_argument("butter: fs cannot be specified for an analog filter")
    w = _cutoffs(Wn if fs is None else asarray(Wn) / (fs / 2), "butter", math.inf if analog else 1.0)
    w = w if analog else 4.0 * np.tan(np.pi * w / 2.0)
    if w.size != (2 if kind in ("bandpass", "bandstop") else 1):
        raise bad_argument(f"butter: a {kind} filter does not have {w.size} cut-off frequencies")
    z, p, k = scipy.signal.buttap(N)
    if w.size == 1:
        z, p, k = (lp2lp_zpk if kind == "lowpass" else lp2hp_zpk)(z, p, k, w[0])
    else:
        width, middle = w[1] - w[0], np.sqrt(w[0] * w[1])
        z, p, k = (lp2bp_zpk if kind == "bandpass" else lp2bs_zpk)(z, p, k, middle, width)
    if not analog:
        z, p, k = bilinear_zpk(z, p, k, 2.0)
    if output == "zpk":
        return z, p, k
    # Roots come in conjugate pairs.
    return np.real(asarray(k) * _polynomial_of(z)), np.real(_polynomial_of(p))


def _polynomial_of(roots: Any) -> Any:
    """Coefficients, the highest first, of the polynomial with these roots."""
    found = asarray(np.ones(1, roots.dtype))
    for i in range(roots.size):
        found = np.concatenate([found, [0]]) - np.concatenate([[0], found]) * roots[i]
    return found


@implemented
def zpk2tf(z: Any, p: Any, k: Any) -> tuple[Any, Any]:
    """Coefficients of a filter that is given by zeros, poles and gain; real if its roots are conjugate pairs."""
    z, p = (np.atleast_1d(asarray(r)) for r in (z, p))
    if z.ndim != 1 or p.ndim != 1:
        raise bad_argument(f"zpk2tf of traced values takes vectors of roots, not {z.type} and {p.type}")
    return np.atleast_1d(asarray(k)) * np.atleast_1d(np.poly(z)), np.atleast_1d(np.poly(p))


@implemented
def tf2zpk(b: Any, a: Any) -> tuple[Any, Any, Any]:
    """Zeros, poles and gain of a filter that is given by coefficients, of which the first are not zero."""
    b, a = inexact(vector(b, "b", "tf2zpk"), vector(a, "a", "tf2zpk"))
    return np.roots(b), np.roots(a), b[0] / a[0]


@implemented
def sos2tf(sos: Any) -> tuple[Any, Any]:
    """Coefficients of a filter that is given by second-order sections."""
    (sos,) = inexact(sos)
    b, a = sos[0, :3], sos[0, 3:]
    for i in range(1, sos.shape[0]):
        b, a = along_last(sos[i, :3], b), along_last(sos[i, 3:], a)
    return b, a


@implemented
def bilinear(b: Any, a: Any, fs: Any = 1.0) -> tuple[Any, Any]:
    """A digital filter of an analog one, by the bilinear transform of its coefficients."""
    b, a = inexact(vector(b, "b", "bilinear"), vector(a, "a", "bilinear"))
    degree = max(b.size, a.size) - 1

    def transformed(c: Any) -> Any:
        # s ** q (z + 1) ** degree is (2 fs (z - 1)) ** q (z + 1) ** (degree - q).
        powers = np.arange(c.size)[::-1]
        basis = np.stack([np.poly([1.0] * q + [-1.0] * (degree - q)) for q in powers.tolist()])
        return (c * (2 * fs) ** powers) @ basis

    above, below = transformed(b), transformed(a)
    return above / below[0], below / below[0]


@implemented
def firwin(
    numtaps: int,
    cutoff: Any,
    *,
    width: Any = None,
    window: Any = "hamming",
    pass_zero: Any = True,
    scale: bool = True,
    fs: Any = None,
) -> Any:
    """A filter without feedback by the window method, differentiable by its cut-off frequencies and its window."""
    nyquist = 1.0 if fs is None else 0.5 * fs
    edges = _cutoffs(asarray(cutoff) / nyquist, "firwin", 1.0)
    if width is not None:
        if has_tracer(width):
            raise bad_argument("firwin: width must be a plain number; give window=('kaiser', beta) instead")
        window = ("kaiser", scipy.signal.kaiser_beta(scipy.signal.kaiser_atten(numtaps, float(width) / nyquist)))
    begins, is_single = pass_zero in (True, "bandstop", "lowpass"), pass_zero in ("lowpass", "highpass")
    if isinstance(pass_zero, str) and (edges.size == 1) != is_single:
        raise bad_argument(f"firwin: a {pass_zero} filter does not have {edges.size} cut-off frequencies")
    ends = (edges.size % 2 == 0) == begins
    if ends and numtaps % 2 == 0:
        raise bad_argument("firwin: a filter with an even number of taps passes nothing at the highest frequency")
    edges = np.concatenate([np.zeros(int(begins)), edges, np.ones(int(ends))])
    m = np.arange(numtaps) - 0.5 * (numtaps - 1)
    taps: Any = 0
    for left, right in zip(edges[::2], edges[1::2], strict=True):
        taps = taps + right * np.sinc(right * m) - left * np.sinc(left * m)
    taps = taps * window_of(window, numtaps, False)
    if not scale:
        return taps
    middle = 0.0 if begins else 1.0 if ends and edges.size == 2 else 0.5 * (edges[0] + edges[1])
    return taps / np.sum(taps * np.cos(np.pi * m * middle))


@implemented
def get_window(window: Any, Nx: int, fftbins: bool = True) -> Any:
    """A window by its name, or by its name and parameters; differentiable by those."""
    return window_of(window, Nx, fftbins)
