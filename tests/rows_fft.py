"""Rows of `numpy.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import c64, c128, f32, given, normal

COMPLEX: dict[str, Any] = {"dtypes": (c64,)}

row("numpy.fft.fft", normal((4,), c128), **COMPLEX)
row("numpy.fft.fft", normal((2, 3)), n=5, axis=0, norm="ortho")
row("numpy.fft.ifft", normal((4, 2), c128), n=3, axis=0, norm="forward", **COMPLEX)
row("numpy.fft.rfft", normal((5,)))
row("numpy.fft.rfft", normal((2, 3)), n=4, axis=0, norm="ortho")
row("numpy.fft.irfft", normal((3,), c128))
row("numpy.fft.irfft", normal((3, 2), c128), n=5, axis=0, norm="forward", dtypes=(c64,))
row("numpy.fft.hfft", normal((3,), c128), n=5, norm="ortho", dtypes=(c64,))
row("numpy.fft.ihfft", normal((5,)), norm="forward")
row("numpy.fft.fft2", normal((2, 3), c128), **COMPLEX)
row("numpy.fft.ifft2", normal((2, 3)), s=(3, -1), axes=(1, 0))
row("numpy.fft.rfft2", normal((2, 3)), norm="ortho")
row("numpy.fft.irfft2", normal((2, 3), c128), s=(2, 3), axes=(0, 1), dtypes=(c64,))
row("numpy.fft.fftn", normal((2, 2, 2, 2)), norm="forward")
row("numpy.fft.ifftn", normal((2, 3), c128), s=(3, 2), axes=(1, 1), note="one axis twice", **COMPLEX)
row("numpy.fft.rfftn", normal((2, 2, 3)), s=(2, 4), axes=(0, 2), dtypes=(f32,))
row("numpy.fft.irfftn", normal((2, 3), c128), dtypes=(c64,))
row("numpy.fft.fftshift", normal((2, 5)))
row("numpy.fft.ifftshift", normal((2, 5)), axes=(1,))
row("numpy.fft.fftfreq", given(0.5), call=lambda f, d: f(5, d), note="in the spacing", analytic=True)
row("numpy.fft.rfftfreq", given(0.5), call=lambda f, d: f(6, d), note="in the spacing", analytic=True)
row(
    "numpy.fft.fft",
    normal((3,)),
    call=lambda f, x: f(x, out=np.zeros_like(x, dtype=np.complex128)),
    note="out=",
    dtypes=(),
)
