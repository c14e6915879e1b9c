"""`scipy.fft`: discrete cosine and sine transforms, by Fourier transforms of twice as many points.

The definitions are SciPy's, see https://docs.scipy.org/doc/scipy/tutorial/fft.html#discrete-cosine-transforms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from ...core.types import is_complex
from ...numpy.fft import SWAPPED, normal_norm, number_of_points, resized
from ...numpy.manipulation import normal_axis
from ...numpy.promotion import asarray, cast
from ..entries import bad_argument, entering
from .fourier import sizes_and_axes

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

_implemented = entering(scipy.fft)

# The type of the inverse, but for a factor.
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


# Transforms of real arrays along their last axis, without any scale


def _turns(x: Any, angles: Any) -> Any:
    """Points of the unit circle, in the precision of `x`."""
    return np.exp(1j * angles).astype(np.result_type(x.dtype, np.complex64))


def _cosines_1(x: Any) -> Any:
    return np.real(np.fft.rfft(np.concatenate([x, x[..., -2:0:-1]], -1)))


def _cosines_2(x: Any) -> Any:
    n = x.shape[-1]
    spectrum = np.fft.rfft(np.concatenate([x, x[..., ::-1]], -1))[..., :n]
    return np.real(_turns(x, -np.pi / (2 * n) * np.arange(n)) * spectrum)


def _cosines_3(x: Any) -> Any:
    n = x.shape[-1]
    return np.fft.irfft(_turns(x, np.pi / (2 * n) * np.arange(n)) * x, 2 * n, norm="forward")[..., :n]


def _cosines_4(x: Any) -> Any:
    n = x.shape[-1]
    places = np.arange(n)
    spectrum = np.fft.fft(_turns(x, -np.pi / (2 * n) * places) * x, 2 * n)[..., :n]
    return 2 * np.real(_turns(x, -np.pi / (4 * n) * (2 * places + 1)) * spectrum)


def _signs(x: Any) -> Any:
    return np.resize(np.array([1, -1], x.dtype), x.shape[-1])


def _sines_1(x: Any) -> Any:
    zero = np.zeros((*x.shape[:-1], 1), x.dtype)
    return -np.imag(np.fft.rfft(np.concatenate([zero, x, zero, -x[..., ::-1]], -1)))[..., 1 : x.shape[-1] + 1]


def _sines_2(x: Any) -> Any:
    return _cosines_2(_signs(x) * x)[..., ::-1]


def _sines_3(x: Any) -> Any:
    return _signs(x) * _cosines_3(x[..., ::-1])


def _sines_4(x: Any) -> Any:
    return _signs(x) * _cosines_4(x[..., ::-1])


_COSINES = {1: _cosines_1, 2: _cosines_2, 3: _cosines_3, 4: _cosines_4}
_SINES = {1: _sines_1, 2: _sines_2, 3: _sines_3, 4: _sines_4}


# Scales


def _ends(x: Any, first: float, last: float) -> Any:
    """Factors of the first and the last element."""
    factors = np.ones(x.shape[-1], x.dtype)
    factors[0] *= first
    factors[-1] *= last
    return factors


def _orthogonal(x: Any, type: int, is_sine: bool, root: float) -> Any:
    """Factors that make the matrix of a transform orthogonal: before it (`root` is that of 2), or after it (of 1/2)."""
    before = root > 1
    if type == 1 and not is_sine:
        return x * _ends(x, root, root)
    if type == (3 if before else 2):
        return x * (_ends(x, 1, root) if is_sine else _ends(x, root, 1))
    return x


def _points(n: int, type: int, is_sine: bool) -> int:
    """The number of points of the Fourier transform that the scale refers to."""
    return 2 * (n + (1 if is_sine else -1)) if type == 1 else 2 * n


def _transformed(x: Any, type: int, is_sine: bool, axis: int, norm: str, orthogonalize: Any) -> Any:
    if is_complex(x.dtype):
        # SciPy ignores `orthogonalize` here.
        parts = (_transformed(p, type, is_sine, axis, norm, None) for p in (np.real(x), np.imag(x)))
        return next(parts) + 1j * next(parts)
    orthogonalize = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    x = np.moveaxis(x, axis, -1)
    points = _points(x.shape[-1], type, is_sine)
    if points < 2:
        raise bad_argument("a cosine transform of type 1 needs at least two points")
    if orthogonalize:
        x = _orthogonal(x, type, is_sine, math.sqrt(2))
    x = (_SINES if is_sine else _COSINES)[type](x)
    if orthogonalize:
        x = _orthogonal(x, type, is_sine, math.sqrt(0.5))
    scale = {"backward": 1.0, "ortho": math.sqrt(1 / points), "forward": 1 / points}[norm]
    return np.moveaxis(x if scale == 1.0 else x * scale, -1, axis)


def _given(x: Any, type: Any, norm: Any, inverse: bool) -> tuple[Any, int, str]:
    """The operand in a dtype that has a transform, the type of the transform, and what its norm is called."""
    if type not in _INVERSE:
        raise bad_argument(f"the type of a cosine or sine transform is 1, 2, 3 or 4, not {type!r}")
    norm = normal_norm(norm)
    x = asarray(x)
    x = cast(x, np.result_type(x.dtype, np.float32 if x.dtype.kind in "fc" else np.float64))
    return (x, _INVERSE[type], SWAPPED[norm]) if inverse else (x, type, norm)


# Public forms


def _along_an_axis(name: str, is_sine: bool, inverse: bool) -> Callable[..., Any]:
    def transform(
        x: Any,
        type: int = 2,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Any:
        x, type, norm = _given(x, type, norm, inverse)
        axis = normal_axis(axis, x.ndim)
        n = number_of_points(n, x.shape[axis])
        return _transformed(resized(x, n, axis, n), type, is_sine, axis, norm, orthogonalize)

    transform.__name__ = name
    transform.__doc__ = f"`scipy.fft.{name}` along an axis, on arrays and on traced values."
    return _implemented(transform)


def _along_axes(name: str, is_sine: bool, inverse: bool) -> Callable[..., Any]:
    def transform(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        orthogonalize: Any = None,
    ) -> Any:
        x, type, norm = _given(x, type, norm, inverse)
        s, axes = sizes_and_axes(x, s, axes)
        axes = range(x.ndim) if axes is None else [normal_axis(a, x.ndim) for a in axes]
        if s is not None and len(s) != len(axes):
            raise bad_argument(f"as many sizes as axes are needed, not {s} for {tuple(axes)}")
        for i, axis in enumerate(axes):
            n = x.shape[axis] if s is None or s[i] == -1 else number_of_points(s[i], x.shape[axis])
            x = _transformed(resized(x, n, axis, n), type, is_sine, axis, norm, orthogonalize)
        return x

    transform.__name__ = name
    transform.__doc__ = f"`scipy.fft.{name}` along axes, on arrays and on traced values."
    return _implemented(transform)


dct = _along_an_axis("dct", is_sine=False, inverse=False)
idct = _along_an_axis("idct", is_sine=False, inverse=True)
dst = _along_an_axis("dst", is_sine=True, inverse=False)
idst = _along_an_axis("idst", is_sine=True, inverse=True)
dctn = _along_axes("dctn", is_sine=False, inverse=False)
idctn = _along_axes("idctn", is_sine=False, inverse=True)
dstn = _along_axes("dstn", is_sine=True, inverse=False)
idstn = _along_axes("idstn", is_sine=True, inverse=True)
