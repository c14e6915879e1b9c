"""Rows of `scipy.fft`."""

from __future__ import annotations

from typing import Any

from function_rows import row
from sampling import c64, c128, f32, normal

ONCE: dict[str, Any] = {"dtypes": ()}
COMPLEX: dict[str, Any] = {"dtypes": (c64,)}

row("scipy.fft.fft", normal((2, 3)), n=5, axis=0, norm="ortho")
row("scipy.fft.ifft", normal((4,), c128), norm="forward", **COMPLEX)
row("scipy.fft.rfft", normal((5,)))
row("scipy.fft.irfft", normal((3, 2), c128), n=5, axis=0, **ONCE)
row("scipy.fft.hfft", normal((3,), c128), n=5, norm="ortho", **ONCE)
row("scipy.fft.ihfft", normal((5,)), norm="forward", **ONCE)
row("scipy.fft.fft2", normal((2, 3), c128), **ONCE)
row("scipy.fft.ifft2", normal((2, 3)), s=(3, 2), **ONCE)
row("scipy.fft.rfft2", normal((2, 3)), norm="ortho", **ONCE)
row("scipy.fft.irfft2", normal((2, 3), c128), s=(2, 3), **ONCE)
row("scipy.fft.fftn", normal((2, 2, 2)), s=(3,), **ONCE)
row("scipy.fft.ifftn", normal((2, 3), c128), axes=(0,), **ONCE)
row("scipy.fft.rfftn", normal((2, 2, 3)), s=(2, 4), axes=(0, 2), dtypes=(f32,))
row("scipy.fft.irfftn", normal((2, 3), c128), **ONCE)
row("scipy.fft.hfft2", normal((2, 3), c128), norm="forward", **ONCE)
row("scipy.fft.ihfft2", normal((2, 3)), **ONCE)
row("scipy.fft.hfftn", normal((2, 3), c128), s=(3, 5), **ONCE)
row("scipy.fft.ihfftn", normal((2, 4)), norm="ortho", **ONCE)
row("scipy.fft.fftshift", normal((2, 3)), **ONCE)
row("scipy.fft.ifftshift", normal((2, 3)), axes=(1,), **ONCE)
row("scipy.fft.fht", normal((2, 4)), call=lambda f, a: f(a, 0.1, 0.5, offset=0.2, bias=0.3), looseness=10, **ONCE)
row("scipy.fft.ifht", normal((4,)), call=lambda f, a: f(a, 0.1, 1.0), looseness=10, **ONCE)
for kind in (1, 2, 3, 4):
    row("scipy.fft.dct", normal((5,)), type=kind, norm="ortho", **(ONCE if kind > 1 else {}))
    row("scipy.fft.dst", normal((2, 3)), type=kind, n=4, axis=0, **ONCE)
row("scipy.fft.dct", normal((4,)), norm="forward", orthogonalize=True, **ONCE)
row("scipy.fft.idct", normal((4,), c128), orthogonalize=False, norm="ortho", **ONCE)
row("scipy.fft.idst", normal((4,)), norm="ortho", **ONCE)
row("scipy.fft.dctn", normal((2, 3)), type=1, s=(3, 2), **ONCE)
row("scipy.fft.idctn", normal((2, 3)), norm="ortho", **ONCE)
row("scipy.fft.dstn", normal((2, 3), c128), axes=(1,), **ONCE)
row("scipy.fft.idstn", normal((2, 3)), type=4, **ONCE)
