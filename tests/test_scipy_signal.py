"""`ftrans.scipy.signal`, `ndimage` and `fft`: whole programs, patched code, and what cannot be done."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.signal

import ftrans as ft
from ftrans.scipy import ndimage, signal
from ftrans.testing import check_grads

X = np.sin(np.arange(40.0) ** 1.3)


def roughness(width: Any) -> Any:
    """SciPy as others write it: designed, filtered, smoothed, and its spectrum taken."""
    b, a = scipy.signal.butter(2, 0.2 * width)
    y = scipy.ndimage.gaussian_filter1d(scipy.signal.filtfilt(b, a, X), width)
    window = scipy.signal.windows.gaussian(16, 4 * width)
    _, power = scipy.signal.welch(scipy.signal.savgol_filter(y, 5, 2), window=window, detrend=lambda v: v - np.mean(v))
    return np.sum(scipy.fft.dct(power) ** 2)


def test_patched_code_is_differentiable() -> None:
    step = 1e-5
    expected = (roughness(1.3 + step) - roughness(1.3 - step)) / (2 * step)
    assert ft.grad(ft.patch(roughness))(1.3) == pytest.approx(expected, rel=1e-6)


def test_filters_are_designed_by_gradients() -> None:
    def missed(cutoff: Any) -> Any:
        b, a = signal.butter(2, cutoff)
        return np.sum(np.abs(signal.freqz(b, a, np.array([0.5, 1.0, 1.5]))[1]) ** 2)

    cutoff = 0.3
    check_grads(missed, cutoff)
    np.testing.assert_allclose(ft.jit(ft.grad(missed))(cutoff), ft.grad(missed)(cutoff), rtol=1e-9)


def test_plain_arguments_are_those_of_scipy() -> None:
    b, a = signal.butter(3, 0.3)
    np.testing.assert_array_equal(signal.lfilter(b, a, X), scipy.signal.lfilter(b, a, X))
    assert signal.find_peaks(X)[0].dtype == np.intp
    assert signal.ShortTimeFFT is scipy.signal.ShortTimeFFT
    assert ndimage.label(X > 0)[1] == scipy.ndimage.label(X > 0)[1]


def test_values_unjitted_are_those_of_scipys_filter() -> None:
    b, a = scipy.signal.butter(6, 0.05)
    np.testing.assert_array_equal(ft.vjp(lambda x: signal.lfilter(b, a, x), X)[0], scipy.signal.lfilter(b, a, X))


def test_long_axes_have_the_coefficients_of_dense_ones() -> None:
    x = np.random.default_rng(0).normal(size=600)
    for mode in ("mirror", "reflect", "grid-wrap", "nearest"):
        found = ft.vjp(lambda x, m=mode: ndimage.spline_filter1d(x, 5, mode=m), x)[0]
        np.testing.assert_allclose(found, scipy.ndimage.spline_filter1d(x, 5, mode=mode), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: signal.filtfilt([1.0, 2.0], 1.0, x, padlen=50), "the signal must be longer than padlen"),
        (lambda x: signal.lfilter([[1.0]], 1.0, x), "b must be a vector"),
        (lambda x: signal.freqs(x, [1.0, 2.0]), "takes the frequencies themselves"),
        (lambda x: signal.convolve(x, X[None]), "the same dimensionality"),
        (lambda x: signal.butter(2, x[:1], output="sos"), "output='ba' or 'zpk'"),
        (lambda x: signal.get_window(("tukey", x[0]), 5), "is not differentiable"),
        (lambda x: ndimage.gaussian_filter1d(x, 1.0, mode="around"), "boundary mode 'around' is not supported"),
        (lambda x: ndimage.map_coordinates(x, [[0.5]], order=7), "spline order 7 is not supported"),
        (lambda x: ndimage.zoom(X, x[0]), "cannot be traced"),
        (lambda x: ndimage.sobel(x, output=np.zeros(40)), "leave it out"),
        (lambda x: ft.jit(lambda s: ndimage.gaussian_filter1d(X, s))(x[3]), "radius= must be given"),
    ],
)
def test_bad_input_is_explained(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)) as caught:
        ft.grad(lambda x: np.sum(call(x)))(X)
    assert "test_scipy_signal.py" in str(caught.value)
