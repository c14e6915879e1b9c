"""`scipy.fft`: Fourier transforms, which are those of `numpy.fft`, and the Hankel transform on a logarithmic grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from ...base.source import at_line, user_line
from ...core.types import is_complex
from ...numpy.fft import SWAPPED, normal_norm
from ...numpy.promotion import asarray, has_tracer
from ..entries import bad_argument, entering

__all__ = [
    "fft", "fft2", "fftn", "fftshift", "fht", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ifht",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

_implemented = entering(scipy.fft)


def _along_an_axis(name: str) -> Callable[..., Any]:
    function = getattr(np.fft, name)

    def transform(
        x: Any,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        _refuse_plan(plan)
        return function(_of_numbers(x), n, axis, norm)

    transform.__name__ = name
    transform.__doc__ = f"`scipy.fft.{name}` along an axis, on arrays and on traced values."
    return _implemented(transform)


fft = _along_an_axis("fft")
ifft = _along_an_axis("ifft")
rfft = _along_an_axis("rfft")
irfft = _along_an_axis("irfft")
hfft = _along_an_axis("hfft")
ihfft = _along_an_axis("ihfft")


def _refuse_plan(plan: Any) -> None:
    if plan is not None:
        raise NotImplementedError(f"scipy.fft takes no plan= yet: leave it out{at_line(user_line())}")


def _of_numbers(x: Any) -> Any:
    """The operand; numbers of half precision are computed with in single precision."""
    x = asarray(x)
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _of_half_turns(function: Callable[..., Any]) -> Callable[..., Any]:
    """The transform with Hermitian symmetry that belongs to a transform of real signals, in n dimensions."""

    def transform(x: Any, s: Any, axes: Any, norm: Any) -> Any:
        other = SWAPPED[normal_norm(norm)]
        if function is np.fft.irfftn:
            return np.fft.irfftn(np.conj(x), s, axes, other)
        return np.conj(function(x, s, axes, other))

    return transform


def _along_axes(name: str, function: Callable[..., Any], default: Any = None) -> Callable[..., Any]:
    def transform(
        x: Any,
        s: Any = None,
        axes: Any = default,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        _refuse_plan(plan)
        x = _of_numbers(x)
        s, axes = sizes_and_axes(x, s, axes)
        return function(x, s, axes, norm)

    transform.__name__ = name
    transform.__doc__ = f"`scipy.fft.{name}` along axes, on arrays and on traced values."
    return _implemented(transform)


def sizes_and_axes(x: Any, s: Any, axes: Any) -> tuple[Any, Any]:
    """What NumPy is to be given for SciPy's arguments: each axis once, and the last ones where only sizes are given."""
    if s is not None:
        s = (s,) if np.ndim(s) == 0 else tuple(s)
        axes = range(x.ndim - len(s), x.ndim) if axes is None else axes
        if len(s) > x.ndim:
            raise bad_argument(f"shape requires more axes than are present: {len(s)} sizes for {x.type}")
    if axes is None:
        return s, None
    axes = (axes,) if np.ndim(axes) == 0 else tuple(axes)
    if len({a % max(x.ndim, 1) for a in axes}) != len(axes):
        raise bad_argument(f"all axes must be unique: {axes}")
    return s, axes


fftn = _along_axes("fftn", np.fft.fftn)
ifftn = _along_axes("ifftn", np.fft.ifftn)
rfftn = _along_axes("rfftn", np.fft.rfftn)
irfftn = _along_axes("irfftn", np.fft.irfftn)
hfftn = _along_axes("hfftn", _of_half_turns(np.fft.irfftn))
ihfftn = _along_axes("ihfftn", _of_half_turns(np.fft.rfftn))
fft2 = _along_axes("fft2", np.fft.fftn, (-2, -1))
ifft2 = _along_axes("ifft2", np.fft.ifftn, (-2, -1))
rfft2 = _along_axes("rfft2", np.fft.rfftn, (-2, -1))
irfft2 = _along_axes("irfft2", np.fft.irfftn, (-2, -1))
hfft2 = _along_axes("hfft2", _of_half_turns(np.fft.irfftn), (-2, -1))
ihfft2 = _along_axes("ihfft2", _of_half_turns(np.fft.rfftn), (-2, -1))


@_implemented
def fftshift(x: Any, axes: Any = None) -> Any:
    """Shift the zero-frequency component to the center of the spectrum."""
    return np.fft.fftshift(x, axes)


@_implemented
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return np.fft.ifftshift(x, axes)


# The transform of Hankel


def _hankel(function: Callable[..., Any], a: Any, dln: Any, mu: Any, offset: Any, bias: Any) -> Any:
    if has_tracer([dln, mu, offset, bias]):
        raise bad_argument(f"{function.__name__} is linear in its first argument, and differentiable in no other")
    a = asarray(a)
    if is_complex(a.dtype):
        raise bad_argument(f"{function.__name__} is of real arrays, not {a.type}")
    # The transform is a circulant matrix with reversed rows and weights, which SciPy applies to unit vectors.
    matrix = function(np.eye(a.shape[-1]), dln, mu, offset, bias)
    return a @ matrix


@_implemented
def fht(a: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The fast Hankel transform of logarithmically spaced samples; the matrix is built and multiplied by."""
    return _hankel(scipy.fft.fht, a, dln, mu, offset, bias)


@_implemented
def ifht(A: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The inverse of `fht`."""
    return _hankel(scipy.fft.ifht, A, dln, mu, offset, bias)
