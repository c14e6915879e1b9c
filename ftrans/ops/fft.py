"""Primitives of the discrete Fourier transform: complex to complex, real to complex and complex to real.

Each is linear, and scaled as NumPy's `norm` says: the scale 1/n belongs to the inverse ("backward"), to the forward
transform ("forward"), or half of it to each ("ortho").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..base.pieces import aligned
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape, is_complex
from .broadcast import broadcast
from .elementwise import conj, mul
from .elementwise.conversions import to_real
from .elementwise.family import is_real
from .literals import full, splat
from .parts import concatenate

Norm = Literal["backward", "ortho", "forward"]

# The norm whose scale the other direction takes.
_SWAPPED: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
# How many axes XLA transforms at once.
_MOST_AXES = 3


def _axes(params: Params) -> Shape:
    return params["axes"] if "axes" in params else (params["axis"],)


class FourierTransform(SingleResult):
    """What the transforms share: each is its own derivative, and knows the axes that it works along."""

    memory = Memory.NEW

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return self(*primals, **params), self(*tangents, **params)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        axes = _axes(params)
        others = [(i, i) for i in range(types[0].ndim) if i not in axes]
        return [aligned(results[0].shape, types[0].shape, others)]

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        axes = _axes(params)
        x = max(types[0], results[0], key=lambda t: t.size)
        count = 5.0 if is_complex(types[0].dtype) and is_complex(results[0].dtype) else 2.5
        return Cost.arithmetic(count * x.size * sum(math.log2(max(x.shape[a], 1)) for a in axes))

    def _check(self, x: ArrayType, axes: Shape, norm: Norm) -> None:
        if any(not 0 <= a < x.ndim or x.shape[a] == 0 for a in axes) or len(set(axes)) != len(axes):
            raise ValueError(f"{self.name} along axes {axes} of {x} is not defined")
        if norm not in _SWAPPED:
            raise ValueError(f"{self.name}: norm must be 'backward', 'ortho' or 'forward', not {norm!r}")


class Fft(FourierTransform):
    """The discrete Fourier transform of complex `x` along `axes`, or its inverse.  Its matrix is symmetric."""

    name = "fft"

    def type_rule(self, x: ArrayType, *, axes: Shape, inverse: bool, norm: Norm) -> ArrayType:
        self._check(x, axes, norm)
        if not is_complex(x.dtype):
            raise TypeError(f"{self.name} is not defined for {x}")
        return x

    def numpy(self, x: Any, *, axes: Shape, inverse: bool, norm: Norm) -> Any:
        if len(axes) == 1:
            return (np.fft.ifft if inverse else np.fft.fft)(x, axis=axes[0], norm=norm)
        return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm)

    def xla(self, x: Any, *, axes: Shape, inverse: bool, norm: Norm) -> Any:
        import jax.numpy as jnp

        transform = jnp.fft.ifftn if inverse else jnp.fft.fftn
        for i in range(0, len(axes) if x.size else 0, _MOST_AXES):
            x = transform(x, axes=axes[i : i + _MOST_AXES], norm=norm)
        return x

    def transpose(self, ct: Tracer, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        return [fft(ct, **params)]

    def batch(
        self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axes: Shape, **params: Any
    ) -> Any:
        return fft(*operands, axes=tuple(a + 1 for a in axes), **params), True

    def simplify(self, operands: Sequence[Tracer], *, axes: Shape, **params: Any) -> Tracer | None:
        return operands[0] if not axes or splat(operands[0]) == 0 else None


def _weights(x: Tracer, axis: int, n: int, inner: float) -> Tracer:
    """1 for the frequencies that a real signal of `n` elements has once, `inner` for those that it has twice."""
    twice = (n - 1) // 2
    runs = [(1, 1), (twice, inner), (n // 2 - twice, 1)]
    line = concatenate(*(full((count,), value, x.dtype) for count, value in runs), axis=0)
    return broadcast(line, shape=x.shape, dims=(axis,))


class Rfft(FourierTransform):
    """The Fourier transform of real `x` along `axis`: its frequencies 0 to n // 2, of which the others follow."""

    name = "rfft"

    def type_rule(self, x: ArrayType, *, axis: int, norm: Norm) -> ArrayType:
        self._check(x, (axis,), norm)
        if not is_real(x.dtype) or x.dtype.itemsize < 4:
            raise TypeError(f"{self.name} is not defined for {x}")
        shape = (*x.shape[:axis], x.shape[axis] // 2 + 1, *x.shape[axis + 1 :])
        return ArrayType(shape, np.result_type(x.dtype, np.complex64))

    def numpy(self, x: Any, *, axis: int, norm: Norm) -> Any:
        return np.fft.rfft(x, axis=axis, norm=norm)

    def xla(self, x: Any, *, axis: int, norm: Norm) -> Any:
        import jax.numpy as jnp

        if not x.size:
            shape = (*x.shape[:axis], x.shape[axis] // 2 + 1, *x.shape[axis + 1 :])
            return jnp.zeros(shape, np.result_type(x.dtype, np.complex64))
        return jnp.fft.rfft(x, axis=axis, norm=norm)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int, norm: Norm) -> list[Tangent]:
        n = operands[0].shape[axis]
        halved = mul(conj(ct), _weights(ct, axis, n, 0.5))
        return [irfft(halved, axis=axis, n=n, norm=_SWAPPED[norm])]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int, norm: Norm) -> Any:
        return rfft(*operands, axis=axis + 1, norm=norm), True


class Irfft(FourierTransform):
    """The inverse of `rfft`: the real signal of `n` elements along `axis` that has the n // 2 + 1 frequencies `x`.

    The imaginary part of frequency 0, and of n / 2 for even `n`, counts for nothing.
    """

    name = "irfft"

    def type_rule(self, x: ArrayType, *, axis: int, n: int, norm: Norm) -> ArrayType:
        self._check(x, (axis,), norm)
        if not is_complex(x.dtype):
            raise TypeError(f"{self.name} is not defined for {x}")
        if n < 1 or x.shape[axis] != n // 2 + 1:
            raise ValueError(f"{self.name} to {n} elements takes {n // 2 + 1} frequencies along axis {axis}, not {x}")
        return ArrayType((*x.shape[:axis], n, *x.shape[axis + 1 :]), to_real(x.dtype))

    def numpy(self, x: Any, *, axis: int, n: int, norm: Norm) -> Any:
        return np.fft.irfft(x, n, axis, norm)

    def xla(self, x: Any, *, axis: int, n: int, norm: Norm) -> Any:
        import jax.numpy as jnp

        if not x.size:
            return jnp.zeros((*x.shape[:axis], n, *x.shape[axis + 1 :]), to_real(np.dtype(x.dtype)))
        return jnp.fft.irfft(x, n, axis, norm)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, axis: int, n: int, norm: Norm) -> list[Tangent]:
        found = conj(rfft(ct, axis=axis, norm=_SWAPPED[norm]))
        return [mul(found, _weights(found, axis, n, 2))]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, axis: int, **params: Any) -> Any:
        return irfft(*operands, axis=axis + 1, **params), True


fft = Fft()
rfft = Rfft()
irfft = Irfft()
