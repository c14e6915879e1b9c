"""`scipy.signal`: convolutions and correlations, computed directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal

from ...core.types import is_complex
from ...numpy.promotion import asarray, cast, strong_dtype
from ...ops.convolution import convolution
from ..entries import bad_argument
from .operands import axis_of, implemented, inexact, padded, vector

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "oaconvolve", "upfirdn",
]  # fmt: skip

_MODES = ("full", "same", "valid")
# Direct convolutions along an axis copy a window for each result: so many numbers of them at most.
_MOST_COPIED = 1 << 23


def _check_mode(mode: Any) -> None:
    if mode not in _MODES:
        raise bad_argument(f"acceptable mode flags are 'valid', 'same' or 'full', not {mode!r}")


def _numbers(in1: Any, in2: Any) -> tuple[Any, Any]:
    """Operands of one dtype, which may be that of integers."""
    x, y = asarray(in1), asarray(in2)
    dtype = strong_dtype(x, y)
    dtype = np.dtype(np.int64) if dtype.kind == "b" else dtype
    return cast(x, dtype), cast(y, dtype)


def _larger_first(x: Any, y: Any, mode: str, axes: Sequence[int]) -> tuple[Any, Any]:
    """The operands of a convolution; for "valid", the one first that is as large as the other along all axes."""
    if mode != "valid" or all(x.shape[a] >= y.shape[a] for a in axes):
        return x, y
    if not all(y.shape[a] >= x.shape[a] for a in axes):
        raise bad_argument(
            f"for 'valid' mode, one of {x.type} and {y.type} must be at least as large as the other along each axis"
        )
    return y, x


def _directly(x: Any, y: Any, mode: str) -> Any:
    """The convolution of two arrays of as many axes, by sums of products."""
    x, y = _larger_first(x, y, mode, range(x.ndim))
    around = {"full": lambda k: (k - 1, k - 1), "same": lambda k: (k // 2, (k - 1) // 2), "valid": lambda k: (0, 0)}
    out = convolution(
        x[None, None],
        np.flip(y)[None, None],
        strides=(1,) * x.ndim,
        padding=tuple(around[mode](k) for k in y.shape),
    )
    return out[0, 0]


def _by_transforms(x: Any, y: Any, mode: str, axes: Sequence[int]) -> Any:
    """The convolution along axes, by Fourier transforms; the others are broadcast."""
    x, y = _larger_first(x, y, mode, axes)
    full = [x.shape[a] + y.shape[a] - 1 for a in axes]
    real = not is_complex(x.dtype)
    points = [scipy.fft.next_fast_len(n, real) for n in full]
    there, back = (np.fft.rfftn, np.fft.irfftn) if real else (np.fft.fftn, np.fft.ifftn)
    out = back(there(x, points, axes) * there(y, points, axes), points, axes)
    place: list[Any] = [slice(None)] * out.ndim
    for a, n in zip(axes, full, strict=True):
        count = {"full": n, "same": x.shape[a], "valid": x.shape[a] - y.shape[a] + 1}[mode]
        start = (n - count) // 2
        place[a] = slice(start, start + count)
    return out[tuple(place)]


def _same_axes(x: Any, y: Any) -> None:
    if x.ndim != y.ndim:
        raise bad_argument(f"in1 and in2 should have the same dimensionality: {x.type} and {y.type}")


def _method(x: Any, y: Any, mode: str, method: Any) -> str:
    if method not in ("auto", "direct", "fft"):
        raise bad_argument(f"acceptable method flags are 'auto', 'direct' or 'fft', not {method!r}")
    if method != "auto":
        return str(method)
    if x.dtype.kind not in "fc":
        return "direct"
    # Only sizes and dtypes count.
    stand_ins = (np.broadcast_to(np.zeros((), v.dtype), v.shape) for v in (x, y))
    return str(scipy.signal.choose_conv_method(*stand_ins, mode=mode))


@implemented
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays of as many axes."""
    x, y = _numbers(in1, in2)
    _same_axes(x, y)
    _check_mode(mode)
    if not x.ndim:
        return x * y
    if not x.size or not y.size:
        return np.zeros(0)
    x, y = _larger_first(x, y, mode, range(x.ndim))
    if _method(x, y, mode, method) == "direct":
        return _directly(x, y, mode)
    x, y = inexact(x, y)
    return _by_transforms(x, y, mode, range(x.ndim))


@implemented
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The cross-correlation of two arrays of as many axes: the convolution with the second reversed and conjugated."""
    y = asarray(in2)
    return convolve(in1, np.conj(np.flip(y)) if y.ndim else np.conj(y), mode, method)


def _over_axes(in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    x, y = inexact(in1, in2)
    _same_axes(x, y)
    _check_mode(mode)
    if not x.ndim:
        return x * y
    if not x.size or not y.size:
        return np.zeros(0)
    chosen = range(x.ndim) if axes is None else [axis_of(x, a) for a in np.atleast_1d(axes)]
    # Along an axis of length 1 there is nothing but a product, which broadcasts.
    needed = [a for a in chosen if x.shape[a] != 1 and y.shape[a] != 1]
    for a in range(x.ndim):
        if a not in chosen and x.shape[a] != y.shape[a] and 1 not in (x.shape[a], y.shape[a]):
            raise bad_argument(f"incompatible shapes for in1 and in2: {x.type} and {y.type}")
    return _by_transforms(x, y, mode, needed) if needed else _of_ones(x, y, mode, chosen)


def _of_ones(x: Any, y: Any, mode: str, axes: Sequence[int]) -> Any:
    product = x * y
    if mode == "full":
        return product
    x, y = _larger_first(x, y, mode, axes)
    wanted = {a: x.shape[a] if mode == "same" else x.shape[a] - y.shape[a] + 1 for a in axes}
    place: list[Any] = [slice(None)] * product.ndim
    for a, count in wanted.items():
        start = (product.shape[a] - count) // 2
        place[a] = slice(start, start + count)
    return product[tuple(place)]


@implemented
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays along axes, by Fourier transforms."""
    return _over_axes(in1, in2, mode, axes)


@implemented
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays along axes, by Fourier transforms of whole arrays."""
    return _over_axes(in1, in2, mode, axes)


_BOUNDARIES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "symmetric",
               "symmetric": "symmetric"}  # fmt: skip


def _over_boundary(x: Any, y: Any, mode: Any, boundary: Any, fillvalue: Any, middle: int) -> Any:
    """The convolution of matrices; of a result of the same size, `middle` says which place an even kernel is at."""
    if x.ndim != 2 or y.ndim != 2:
        raise bad_argument(f"convolutions in two dimensions are of matrices, not of {x.type} and {y.type}")
    _check_mode(mode)
    if boundary not in _BOUNDARIES:
        raise bad_argument(f"acceptable boundary flags are 'fill', 'circular' or 'symmetric', not {boundary!r}")
    if mode == "valid":
        return _directly(x, y, mode)
    kind = _BOUNDARIES[boundary]
    options = {"constant_values": fillvalue} if kind == "constant" else {}
    if mode == "full":
        around = [(k - 1, k - 1) for k in y.shape]
    else:
        around = [((k - middle) // 2, (k - 1 + middle) // 2) for k in y.shape]
    return _directly(np.pad(x, around, mode=kind, **options), y, "valid")


@implemented
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The convolution of two matrices, of which the first is continued over its boundary."""
    return _over_boundary(*_numbers(in1, in2), mode, boundary, fillvalue, middle=0)


@implemented
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The cross-correlation of two matrices, of which the first is continued over its boundary."""
    x, y = _numbers(in1, in2)
    found = _over_boundary(x, np.conj(np.flip(y)), mode, boundary, fillvalue, middle=1)
    # SciPy conjugates the other array where it has exchanged the two.
    is_exchanged = mode == "valid" and any(n < k for n, k in zip(x.shape, y.shape, strict=True))
    return np.conj(found) if is_exchanged else found


# Along one axis


def along_last(c: Any, x: Any) -> Any:
    """The whole convolution of each vector along the last axis of `x` with the vector `c`, of the same dtype."""
    lanes, k = x.shape[:-1], c.size
    if x.size * min(k, x.shape[-1]) > _MOST_COPIED:
        return _by_transforms(x, np.reshape(c, (1,) * len(lanes) + (k,)), "full", (x.ndim - 1,))
    samples = np.reshape(x, (math.prod(lanes), 1, x.shape[-1]))
    out = convolution(samples, c[::-1][None, None], strides=(1,), padding=((k - 1, k - 1),))
    return np.reshape(out, (*lanes, out.shape[-1]))


_PADDINGS = {"symmetric": "symmetric", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@implemented
def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0) -> Any:
    """Put `up - 1` zeros between samples, convolve with `h`, and keep one of `down` samples."""
    h, x = inexact(vector(h, "h", "upfirdn"), x)
    axis = axis_of(x, axis)
    x = np.moveaxis(x, axis, -1)
    count = ((x.shape[-1] - 1) * up + h.size - 1) // down + 1
    more = -(-h.size // up)
    if mode == "constant":
        # Zeros need not be there.
        x, more = (padded(x, more, more, constant_values=cval), more) if cval != 0 else (x, 0)
    elif mode in _PADDINGS:
        x = padded(x, more, more, mode=_PADDINGS[mode])
    else:
        known = ", ".join(map(repr, ("constant", *_PADDINGS)))
        raise bad_argument(f"upfirdn of traced values takes the modes {known}, not {mode!r}; extend the signal before")
    samples = np.reshape(x, (math.prod(x.shape[:-1]), 1, x.shape[-1]))
    reach = (x.shape[-1] - 1) * up + 1
    first, needed = more * up, (count - 1) * down + h.size
    around = (h.size - 1 - first, needed - (reach - first) - (h.size - 1))
    out = convolution(samples, h[::-1][None, None], strides=(down,), padding=(around,), lhs_dilation=(up,))
    return np.moveaxis(np.reshape(out, (*x.shape[:-1], count)), -1, axis)
