"""The functions of `numpy.fft` on traced values: three primitives, after sizes, axes and dtypes are NumPy's."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex
from ..ops import fft as ops
from ..ops.literals import full
from ..ops.parts import pad
from .array_api import check_device
from .creation import assignable
from .delivery import assign_cast, not_assignable
from .dispatch import implements
from .indexing import getitem
from .manipulation import normal_axes, normal_axis
from .promotion import asarray, cast

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}
SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def normal_norm(norm: Any) -> str:
    if norm not in _NORMS:
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".{at_line(user_line())}'
        )
    return _NORMS[norm]


def _real(a: Any) -> Tracer:
    """The operand in a dtype that has a transform of real signals."""
    x = asarray(a)
    if is_complex(x.dtype):
        raise TypeError(
            f"a transform of real signals was given {x.type}; write np.fft.fft, or take the real part"
            + at_line(user_line())
        )
    return cast(x, np.dtype(np.float64) if x.dtype.kind in "biu" else np.promote_types(x.dtype, np.float32))


def _complex(a: Any) -> Tracer:
    x = asarray(a)
    return cast(x, np.result_type(x.dtype, np.complex64 if x.dtype.kind in "fc" else np.complex128))


def resized(x: Tracer, n: int, axis: int, points: int) -> Tracer:
    """`x` cropped, or padded by zeros, to `n` elements along an axis, for a transform of so many points."""
    if points < 1:
        raise ValueError(f"Invalid number of FFT data points ({points}) specified.{at_line(user_line())}")
    size = x.shape[axis]
    if n < size:
        return getitem(x, (*(slice(None),) * axis, slice(n)))
    if n == size:
        return x
    none = (0,) * x.ndim
    after = tuple(n - size if i == axis else 0 for i in range(x.ndim))
    return pad(x, full((), 0, x.dtype), before=none, after=after, interior=none)


def _delivered(result: Tracer, out: Any, name: str) -> Any:
    """`result`, or `out` after the result has been assigned to it."""
    if out is None:
        return result
    if type(out) is not Tracer:
        raise not_assignable(out, name)
    if out.shape != result.shape:
        raise ValueError(
            f"output array has wrong shape: the result has shape {result.shape}, out= has {out.shape}"
            + at_line(user_line())
        )
    assign_cast(out, result, name)
    return out


def number_of_points(n: Any, size: int) -> int:
    return size if n is None else operator.index(n)


# Along one axis


def _transformed(a: Any, n: Any, axis: int, norm: Any, out: Any, inverse: bool) -> Any:
    x = _complex(a)
    axis = normal_axis(axis, x.ndim)
    n = number_of_points(n, x.shape[axis])
    x = ops.fft(resized(x, n, axis, n), axes=(axis,), inverse=inverse, norm=normal_norm(norm))
    return _delivered(x, out, "fft.ifft" if inverse else "fft.fft")


@implements(np.fft.fft)
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The discrete Fourier transform along an axis."""
    return _transformed(a, n, axis, norm, out, False)


@implements(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fft`."""
    return _transformed(a, n, axis, norm, out, True)


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The discrete Fourier transform of a real signal along an axis: its non-negative frequencies."""
    x = _real(a)
    axis = normal_axis(axis, x.ndim)
    n = number_of_points(n, x.shape[axis])
    return _delivered(ops.rfft(resized(x, n, axis, n), axis=axis, norm=normal_norm(norm)), out, "fft.rfft")


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft`: real signals of `n` elements along an axis."""
    given = asarray(a)
    x = _complex(given)
    axis = normal_axis(axis, x.ndim)
    n = number_of_points(n, 2 * (x.shape[axis] - 1))
    y = ops.irfft(resized(x, n // 2 + 1, axis, n), axis=axis, n=n, norm=normal_norm(norm))
    return _delivered(cast(y, given.dtype) if given.dtype == np.float16 else y, out, "fft.irfft")


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The discrete Fourier transform of a signal with Hermitian symmetry, of which one half is given; it is real."""
    return _delivered(np.fft.irfft(np.conjugate(asarray(a)), n, axis, SWAPPED[normal_norm(norm)]), out, "fft.hfft")


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `hfft`."""
    found = np.fft.rfft(asarray(a), n, axis, SWAPPED[normal_norm(norm)])
    return _delivered(asarray(np.conjugate(found)), out, "fft.ihfft")


# Along several axes


def _sizes_and_axes(x: Tracer, s: Any, axes: Any, is_half: bool = False) -> tuple[list[int], list[int]]:
    """How many elements to transform along which axes, in the order given.

    Args:
        x: what is transformed.
        s: as the user has given it.
        axes: as the user has given it.
        is_half: whether `x` holds about half of the elements along the last of the axes.
    """
    if s is not None and axes is None:
        warnings.warn(
            "`axes` should not be `None` if `s` is not `None` (Deprecated in NumPy 2.0): give axes=",
            DeprecationWarning,
            stacklevel=4,
        )
        axes = range(-len(s), 0)
    # An axis may occur several times, and is then transformed as often.
    places = [normal_axis(a, x.ndim) for a in (range(x.ndim) if axes is None else axes)]
    if s is None:
        s = [x.shape[a] for a in places]
        if is_half and s:
            s[-1] = 2 * (s[-1] - 1)
    if len(s) != len(places):
        raise ValueError(f"Shape and axes have different lengths.{at_line(user_line())}")
    return [x.shape[a] if n == -1 else number_of_points(n, x.shape[a]) for n, a in zip(s, places, strict=True)], places


def _transformed_over(x: Tracer, s: Sequence[int], axes: Sequence[int], norm: Any, inverse: bool) -> Tracer:
    """`x` transformed along `axes`, which are resized to `s`."""
    if len(set(axes)) != len(axes):
        for n, axis in reversed(list(zip(s, axes, strict=True))):
            x = _transformed_over(x, [n], [axis], norm, inverse)
        return x
    for n, axis in zip(s, axes, strict=True):
        x = resized(x, n, axis, n)
    return ops.fft(x, axes=tuple(axes), inverse=inverse, norm=normal_norm(norm)) if axes else x


def _needs_an_axis(axes: Sequence[int]) -> None:
    if not axes:
        raise IndexError(f"a transform of real signals needs at least one axis{at_line(user_line())}")


@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The discrete Fourier transform along several axes, all by default."""
    x = _complex(a)
    return _delivered(_transformed_over(x, *_sizes_and_axes(x, s, axes), norm, False), out, "fft.fftn")


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fftn`."""
    x = _complex(a)
    return _delivered(_transformed_over(x, *_sizes_and_axes(x, s, axes), norm, True), out, "fft.ifftn")


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The Fourier transform of a real array along several axes: non-negative frequencies only along the last."""
    x = _real(a)
    sizes, places = _sizes_and_axes(x, s, axes)
    _needs_an_axis(places)
    y = np.fft.rfft(x, sizes[-1], places[-1], norm)
    return _delivered(_transformed_over(y, sizes[:-1], places[:-1], norm, False), out, "fft.rfftn")


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfftn`."""
    x = asarray(a)
    sizes, places = _sizes_and_axes(x, s, axes, is_half=True)
    _needs_an_axis(places)
    y = _transformed_over(_complex(x), sizes[:-1], places[:-1], norm, True) if places[1:] else x
    return _delivered(np.fft.irfft(y, sizes[-1], places[-1], norm), out, "fft.irfftn")


def _over_two_axes(function: Callable[..., Any], of_many: Callable[..., Any]) -> Callable[..., Any]:
    """The two-dimensional form of an n-dimensional transform."""

    def transform(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
        return of_many(a, s, axes, norm, out)

    transform.__doc__ = f"`numpy.fft.{of_many.__name__}` along two axes, by default the last."
    return implements(function)(transform)


fft2 = _over_two_axes(np.fft.fft2, fftn)
ifft2 = _over_two_axes(np.fft.ifft2, ifftn)
rfft2 = _over_two_axes(np.fft.rfft2, rfftn)
irfft2 = _over_two_axes(np.fft.irfft2, irfftn)


# Order of the frequencies


def _frequencies(make: Callable[..., Any], n: int, d: Any, device: Any, dtype: Any) -> Any:
    check_device(device)
    found = make(n, d)
    return assignable(found if dtype is None else found.astype(dtype))


def fftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """The sample frequencies of `fft`, for `n` samples with spacing `d`."""
    return _frequencies(np.fft.fftfreq, n, d, device, dtype)


def rfftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """The sample frequencies of `rfft`, for `n` samples with spacing `d`."""
    return _frequencies(np.fft.rfftfreq, n, d, device, dtype)


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    x = asarray(x)
    places = normal_axes(axes, x.ndim)
    shifts = tuple(x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in places)
    return np.roll(x, shifts, places)


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """Shift the zero-frequency component to the center of the spectrum."""
    return _shifted(x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def __dir__() -> list[str]:
    return sorted(__all__)
