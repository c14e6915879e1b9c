"""The linear filter with feedback along the last axis, whose derivatives are linear filters again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import MultipleResults, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType
from .broadcast import broadcast, with_batch_axis
from .convolution import convolution
from .elementwise import add, neg
from .literals import full
from .parts import concatenate, pad, slice_
from .shapes import reshape, reverse


class LinearFilter(MultipleResults):
    """The filter of `scipy.signal.lfilter`, in the transposed direct form II, along the last axis.

    Operands are the coefficients `b` of (k + 1) elements and `a` of k, without the leading one of SciPy's, the signal
    `x` (*lanes, n), and the state `z` (*lanes, k) before it.  Results are the signal `y` and the state after it:

        y[n] = b[0] x[n] + z[0],    z[i] <- z[i + 1] + b[i + 1] x[n] - a[i] y[n]

    The coefficients may also have the axes `lanes` in front, all of them.
    """

    name = "linear_filter"
    memory = Memory.NEW

    def type_rule(self, b: ArrayType, a: ArrayType, x: ArrayType, z: ArrayType) -> list[ArrayType]:
        if x.dtype.char not in "fdFD" or any(t.dtype != x.dtype for t in (b, a, z)):
            raise TypeError(f"{self.name} needs inexact numbers of one dtype, of 32 bits or more: {b}, {a}, {x}, {z}")
        lanes, k = x.shape[:-1], a.shape[-1] if a.ndim else 0
        fits = b.shape == (*a.shape[:-1], k + 1) and a.shape[:-1] in ((), lanes) and z.shape == (*lanes, k)
        if not (x.ndim and k and fits):
            raise ValueError(f"{self.name}: coefficients {b} and {a} do not fit the signal {x} and its state {z}")
        return [x, z]

    def numpy(self, b: Any, a: Any, x: Any, z: Any) -> list[Any]:
        if b.ndim == 1:
            return _filtered(b, a, x, z)
        y, after = np.empty_like(x), np.empty_like(z)
        for lane in np.ndindex(x.shape[:-1]):
            y[lane], after[lane] = _filtered(b[lane], a[lane], x[lane], z[lane])
        return [y, after]

    def xla(self, b: Any, a: Any, x: Any, z: Any) -> list[Any]:
        import jax.numpy as jnp
        from jax import lax

        def step(z: Any, x: Any) -> tuple[Any, Any]:
            y = b[..., 0] * x + z[..., 0]
            moved = jnp.concatenate([z[..., 1:], jnp.zeros_like(z[..., :1])], -1)
            return moved + b[..., 1:] * x[..., None] - a * y[..., None], y

        after, y = lax.scan(step, z, jnp.moveaxis(x, -1, 0))
        return [jnp.moveaxis(y, 0, -1), after]

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(2 * results[0].size * (types[0].shape[-1] + types[1].shape[-1]))

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
        b, a, x, z = primals
        tb, ta, tx, tz = tangents
        y, after = self(b, a, x, z)
        found: list[tuple[Tracer, Tracer]] = []
        if tx is not None or tz is not None:
            y1, after1 = self(b, a, _or_zeros(tx, x), _or_zeros(tz, z))
            found.append((y1, after1))
        if tb is not None or ta is not None:
            # What changed coefficients put in: b' along x, less a' along y, of which the end is left in the state.
            terms = [_convolved(tb, x)] if tb is not None else []
            terms += [neg(_convolved(_led_by(0, ta), y))] if ta is not None else []
            put = add(*terms) if len(terms) == 2 else terms[0]
            n = x.shape[-1]
            y1, after1 = self(_led_by(1, full(a.shape, 0, a.dtype)), a, _part(put, 0, n), full(z.shape, 0, z.dtype))
            found.append((y1, add(after1, _part(put, n, put.shape[-1]))))
        if len(found) == 2:
            return [y, after], [add(p, q) for p, q in zip(*found, strict=True)]
        return [y, after], list(found[0])

    def transpose(self, cotangents: Any, operands: Sequence[Any]) -> list[Tangent]:
        b, a, x, z = operands
        if isinstance(b, ArrayType) or isinstance(a, ArrayType):
            self._missing("transpose")
        n = x.shape[-1]
        ct_y, ct_after = (_or_zeros(ct, v) for ct, v in zip(cotangents, (x, z), strict=True))
        # The state after the signal takes up what is left of b along x, and of a along y.
        fed = neg(_correlated(_led_by(0, a), _with_zeros(ct_after, n, 0), n))
        backwards = reverse(add(ct_y, fed), axes=(ct_y.ndim - 1,))
        none = full(z.shape, 0, z.dtype)
        seen, _ = self(_led_by(1, full(a.shape, 0, a.dtype)), a, backwards, none)
        put = concatenate(reverse(seen, axes=(seen.ndim - 1,)), ct_after, axis=seen.ndim - 1)
        return [
            None,
            None,
            _correlated(b, put, n) if isinstance(x, ArrayType) else None,
            _part(put, 0, z.shape[-1]) if isinstance(z, ArrayType) else None,
        ]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool]) -> Any:
        b, a, x, z = operands
        x, z = (with_batch_axis(size, v, f) for v, f in zip((x, z), batched[2:], strict=True))
        if any(batched[:2]) or b.ndim > 1:
            b, a = (_in_lanes(with_batch_axis(size, v, f), x) for v, f in zip((b, a), batched[:2], strict=True))
        return self(b, a, x, z), [True, True]

    def linear_in(self, count: int, params: Params) -> Sequence[int]:
        return (2, 3)


linear_filter = LinearFilter()


def _filtered(b: Any, a: Any, x: Any, z: Any) -> list[Any]:
    from scipy.signal import lfilter

    if not x.size:
        return [x.copy(), z.copy()]
    return list(lfilter(b, np.concatenate([np.ones(1, a.dtype), a]), x, axis=-1, zi=z))


def _or_zeros(x: Tangent, like: Any) -> Tracer:
    return full(like.shape, 0, like.dtype) if x is None else x


def _led_by(value: int, a: Tracer) -> Tracer:
    """Coefficients with one more before them."""
    return concatenate(full((*a.shape[:-1], 1), value, a.dtype), a, axis=a.ndim - 1)


def _part(x: Tracer, start: int, stop: int) -> Tracer:
    none, ones = (0,) * (x.ndim - 1), (1,) * x.ndim
    return slice_(x, start=(*none, start), limit=(*x.shape[:-1], stop), strides=ones)


def _with_zeros(x: Tracer, before: int, after: int) -> Tracer:
    none = (0,) * (x.ndim - 1)
    return pad(x, full((), 0, x.dtype), before=(*none, before), after=(*none, after), interior=(*none, 0))


def _in_lanes(c: Tracer, x: Tracer) -> Tracer:
    """Coefficients with a batch axis, for each lane of a batch of signals."""
    shape = (*x.shape[:-1], c.shape[-1])
    if c.shape == shape:
        return c
    return broadcast(c, shape=shape, dims=(0, len(shape) - 1))


def _convolved(c: Tracer, x: Tracer) -> Tracer:
    """The whole convolution of signals with coefficients."""
    k = c.shape[-1] - 1
    return _correlated(reverse(c, axes=(c.ndim - 1,)), _with_zeros(x, k, k), x.shape[-1] + k)


def _correlated(c: Tracer, x: Tracer, count: int) -> Tracer:
    """The first `count` sums of products of coefficients with signals, `sum(c[i] * x[n + i])`."""
    lanes, size = x.shape[:-1], c.shape[-1]
    x = _part(x, 0, count + size - 1)
    number = int(np.prod(lanes))
    space: dict[str, Any] = {"strides": (1,), "padding": ((0, 0),)}
    if not number * count:
        return full((*lanes, count), 0, x.dtype)
    if c.ndim == 1:
        samples, kernel = reshape(x, shape=(number, 1, x.shape[-1])), reshape(c, shape=(1, 1, size))
        out = convolution(samples, kernel, **space)
    else:
        channels, kernel = reshape(x, shape=(1, number, x.shape[-1])), reshape(c, shape=(number, 1, size))
        out = convolution(channels, kernel, **space, groups=number)
    return reshape(out, shape=(*lanes, count))
