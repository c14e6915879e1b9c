"""Rows of `scipy.signal`."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import c128, distinct, f32, given, normal

ONCE: dict[str, Any] = {"dtypes": ()}
# A stable filter, and sections of one.
B, A = given([0.2, 0.4, 0.3]), given([1.5, -0.6, 0.4])
SOS = given([[0.2, 0.4, 0.2, 1.0, -0.5, 0.3], [1.0, 0.3, -0.2, 1.0, 0.4, 0.1]])

# Convolutions

row("scipy.signal.convolve", normal((5,)), normal((3,)))
row("scipy.signal.convolve", normal((3, 4), c128), normal((2, 2), c128), mode="same", **ONCE)
row("scipy.signal.convolve", normal((2,)), normal((4,)), mode="valid", method="fft", **ONCE)
row("scipy.signal.correlate", normal((4,), c128), normal((3,), c128), mode="same", **ONCE)
row("scipy.signal.fftconvolve", normal((2, 4)), normal((1, 3)), axes=1, dtypes=(f32,))
row("scipy.signal.oaconvolve", normal((4,), c128), normal((3,), c128), mode="same", **ONCE)
row("scipy.signal.convolve2d", normal((3, 3)), normal((2, 2)), boundary="symm", **ONCE)
row("scipy.signal.correlate2d", normal((3, 3)), normal((2, 2)), mode="same", fillvalue=0.5, **ONCE)
row("scipy.signal.upfirdn", normal((3,)), normal((2, 4)), up=2, down=3, **ONCE)
row("scipy.signal.upfirdn", normal((3,)), normal((4,)), up=3, mode="reflect", **ONCE)
row("scipy.signal.deconvolve", normal((4,)), given([2.0, 1.0]), **ONCE)

# Filters

row("scipy.signal.lfilter", B, A, normal((2, 4)), dtypes=(f32,))
row("scipy.signal.lfilter", B, A, normal((3, 2)), normal((2, 2)), call=lambda f, b, a, x, z: f(b, a, x, 0, z), **ONCE)
row("scipy.signal.lfilter", normal((3,), c128), given(2.0), normal((4,)), **ONCE)
row("scipy.signal.lfilter_zi", B, A, looseness=10, **ONCE)
row("scipy.signal.lfiltic", B, A, normal((2,)), normal((1,)), **ONCE)
# SciPy wants leading coefficients of 1.
row("scipy.signal.sosfilt", SOS, normal((3,)), call=lambda f, s, x: f(leading(s), x), **ONCE)
row("scipy.signal.sosfilt", normal((2, 3)), normal((2, 2, 2)), call=lambda f, x, z: f(SECTIONS, x, zi=z), **ONCE)
row("scipy.signal.sosfilt_zi", SOS, call=lambda f, s: f(leading(s)), looseness=10, **ONCE)
row("scipy.signal.filtfilt", B, A, normal((12,)), looseness=100, **ONCE)
row("scipy.signal.filtfilt", normal((6, 2)), call=lambda f, x: f([0.5, 0.5], 1, x, 0, "even", 3), **ONCE)
row(
    "scipy.signal.sosfiltfilt",
    SOS,
    normal((9,)),
    call=lambda f, s, x: f(leading(s), x, padlen=4),
    looseness=100,
    **ONCE,
)

SECTIONS = SOS(np.random.default_rng())


def leading(sos: Any) -> Any:
    """Sections of which the fourth column is not differentiated."""
    return np.concatenate([sos[:, :3], np.ones((2, 1)), sos[:, 4:]], 1)


# Smoothing and rates

row("scipy.signal.hilbert", normal((5,)))
row("scipy.signal.hilbert", normal((2, 4)), N=5, axis=0, **ONCE)
row("scipy.signal.hilbert2", normal((3, 4)), **ONCE)
row("scipy.signal.detrend", normal((2, 7)), bp=3)
row("scipy.signal.detrend", normal((4, 2)), axis=0, type="constant", **ONCE)
row("scipy.signal.wiener", normal((6,)), noise=0.3, looseness=10, **ONCE)
row("scipy.signal.resample", normal((6,)), num=4, window="hamming")
row("scipy.signal.resample", normal((5,), c128), num=8, **ONCE)
row("scipy.signal.resample_poly", normal((6,)), up=3, down=2, window=("kaiser", 3.0), **ONCE)
row("scipy.signal.resample_poly", normal((2, 5)), normal((5,)), call=lambda f, x, w: f(x, 1, 2, 1, w, "mean"), **ONCE)
row("scipy.signal.decimate", normal((8,)), q=2, ftype="fir", **ONCE)

# Spectra

ANGLES = given([0.3, 1.2, 2.0])
WINDOWED: dict[str, Any] = {"nperseg": 4, **ONCE}
row("scipy.signal.welch", normal((2, 9)), nperseg=4)
row("scipy.signal.csd", normal((9,)), normal((9,)), nperseg=4, average="median", **ONCE)
row("scipy.signal.periodogram", normal((6,)), fs=2.0, scaling="spectrum", **ONCE)
row("scipy.signal.coherence", normal((12,)), normal((12,)), looseness=100, **WINDOWED)
row("scipy.signal.spectrogram", normal((2, 9)), **WINDOWED)
row("scipy.signal.stft", normal((2, 7)), nperseg=4)
row("scipy.signal.stft", normal((9,)), given([1.0, 2.0, 1.5]), call=lambda f, x, w: f(x, window=w, nperseg=3), **ONCE)
row("scipy.signal.istft", normal((3, 5), c128), **ONCE)
row("scipy.signal.freqz", B, A, worN=5, dtypes=(f32,))
row("scipy.signal.freqz_sos", SOS, call=lambda f, s: f(leading(s), 4, whole=True), **ONCE)
row("scipy.signal.sosfreqz", SOS, call=lambda f, s: f(leading(s), 4), **ONCE)
row("scipy.signal.freqz_zpk", normal((2,), c128), normal((1,), c128), given(0.7), worN=3, **ONCE)
row("scipy.signal.freqs", B, A, ANGLES, **ONCE)
row("scipy.signal.freqs_zpk", normal((2,), c128), normal((1,), c128), given(0.7), ANGLES, **ONCE)
row("scipy.signal.group_delay", given([1.0, 0.4, 0.2]), A, call=lambda f, b, a: f((b, a), 4), looseness=10, **ONCE)

# Of windows

row("scipy.signal.savgol_filter", normal((2, 8)), given(0.5), call=lambda f, x, d: f(x, 5, 2, 1, d), **ONCE)
row("scipy.signal.savgol_filter", normal((6,)), window_length=4, polyorder=1, mode="nearest", **ONCE)
row("scipy.signal.medfilt", distinct((5,)), **ONCE)
row("scipy.signal.medfilt2d", distinct((2, 3)), kernel_size=(1, 3), **ONCE)
row("scipy.signal.order_filter", distinct((5,)), domain=np.ones(3), rank=2, **ONCE)

# Design and windows

BAND = given([0.2, 0.5])
ROOTS = given([0.3 + 0.4j, -0.2 - 0.1j], c128)
row("scipy.signal.butter", given(0.3), call=lambda f, w: f(3, w, "high"), looseness=10, **ONCE)
row("scipy.signal.butter", BAND, call=lambda f, w: f(2, w, "stop", fs=3.0), looseness=10, **ONCE)
row("scipy.signal.firwin", BAND, call=lambda f, w: f(5, w, pass_zero="bandpass"), looseness=10, **ONCE)
row("scipy.signal.bilinear", normal((2,)), A, given(2.0), **ONCE)
for name in ("lp2lp_zpk", "lp2hp_zpk", "bilinear_zpk"):
    row(f"scipy.signal.{name}", normal((1,)), ROOTS, given(0.7), given(1.3), differentiated=(1, 3), **ONCE)
for name in ("lp2bp_zpk", "lp2bs_zpk"):
    operands = (normal((1,)), ROOTS, given(0.7), given(1.3), given(0.4))
    row(f"scipy.signal.{name}", *operands, differentiated=(3, 4), looseness=10, **ONCE)
row("scipy.signal.zpk2tf", ROOTS, ROOTS, given(0.7), **ONCE)
# SciPy gives real roots as real numbers.
row(
    "scipy.signal.tf2zpk",
    given([2.0, 3.0, 1.0]),
    given([1.0, 4.0]),
    canonical=lambda found: [found[0] + 0j, found[1] + 0j, found[2]],
    looseness=100,
    **ONCE,
)
row("scipy.signal.sos2tf", SOS, **ONCE)
row("scipy.signal.get_window", given(3.0), call=lambda f, b: f(("kaiser", b), 4), **ONCE)
