"""Primitives that look at an array through windows along its last axes, and what they share with the convolution.

The maximum of a window, its place in the window, and reading and writing at such places are primitives of their own:
the derivative of a maximum goes to the first element that has it, all derivatives are reading and writing again, and
no program ever searches a window twice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..base.index_map import Piece
from ..base.pieces import aligned, turned
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import Moving, SingleResult, Tangent, moved_pieces
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape, is_complex, is_inexact
from .broadcast import with_batch_axis
from .literals import full
from .parts import pad
from .platforms import by_platform

Padding = tuple[tuple[int, int], ...]
Place = tuple[slice, ...]

INDEX = np.dtype(np.int32)
# Parameters of windows for an axis that they leave alone.
_ONE_MORE_AXIS: dict[str, Any] = {"window": 1, "strides": 1, "padding": (0, 0), "dilation": 1}


# Slices and padding


def slices(starts: Shape, start_steps: Shape, sizes: Shape, steps: Shape) -> Iterator[Place]:
    """The slices of `sizes` and `steps` along the last axes that begin at each multiple of `start_steps`."""
    for place in np.ndindex(starts):
        ranges = zip(place, start_steps, sizes, steps, strict=True)
        yield (..., *(slice(i * a, i * a + (n - 1) * b + 1, b) for i, a, n, b in ranges))  # type: ignore[arg-type]


def reach(size: Shape, dilation: Shape) -> Shape:
    """How far windows extend whose elements are `dilation` apart."""
    return tuple((k - 1) * d + 1 if k else 0 for k, d in zip(size, dilation, strict=True))


def positions(extent: Shape, padding: Padding, strides: Shape, window: Shape) -> Shape:
    """How many windows of this reach fit along each axis."""
    axes = zip(extent, padding, strides, window, strict=True)
    return tuple((n + low + high - e) // s + 1 for n, (low, high), s, e in axes)


def met(
    n: int, found: int, window: int, stride: int, low: int, dilation: int, spacing: int = 1
) -> tuple[Any, Any, Any]:
    """All that windows along one axis meet: which window, which of its elements, and which of the `n` of the array.

    The elements of the array are `spacing` apart, `low` behind the place where the first window begins.
    """
    place, inner = (x.reshape(-1) for x in np.indices((found, window)))
    element, rest = np.divmod(place * stride + inner * dilation - low, spacing)
    inside = (rest == 0) & (element >= 0) & (element < n)
    return place[inside], inner[inside], element[inside]


def numpy_padded(x: Any, padding: Padding, dilation: Shape, value: Any) -> Any:
    """`x` with values around (a negative number takes elements away) and between its elements along the last axes."""
    if not any(map(any, padding)) and all(d == 1 for d in dilation):
        return x
    extent = reach(x.shape[x.ndim - len(padding) :], dilation)
    sizes = [n + max(low, 0) + max(high, 0) for n, (low, high) in zip(extent, padding, strict=True)]
    padded: Any = np.full((*x.shape[: x.ndim - len(padding)], *sizes), value, x.dtype)
    axes = zip(extent, padding, dilation, strict=True)
    padded[(..., *(slice(max(low, 0), max(low, 0) + n, d) for n, (low, _), d in axes))] = x
    kept = [slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(sizes, padding, strict=True)]
    return padded[(..., *kept)]


def xla_padded(x: Any, padding: Padding, dilation: Shape, value: Any) -> Any:
    """The same for XLA."""
    from jax import lax

    around = [(low, high, d - 1) for (low, high), d in zip(padding, dilation, strict=True)]
    lead = [(0, 0, 0)] * (x.ndim - len(padding))
    return lax.pad(x, np.asarray(value, x.dtype), [*lead, *around])


def _lowest(dtype: np.dtype[Any]) -> Any:
    if is_inexact(dtype):
        return -math.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


class WindowPrimitive(SingleResult):
    """What primitives of windows share.

    Windows have `window` elements that are `dilation` apart, along the last axes, and begin `strides` apart, from
    `padding` before the first element on up to `padding` behind the last one. Any axes may lead.
    """

    memory = Memory.NEW
    convolves = True

    def _windows(self, x: ArrayType, window: Shape, strides: Shape, padding: Padding, dilation: Shape) -> ArrayType:
        count = len(window)
        if not (count <= x.ndim and count == len(strides) == len(padding) == len(dilation)):
            raise TypeError(f"{self.name} cannot take windows {window} of {x}")
        lead, extent = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
        found = positions(extent, padding, strides, reach(window, dilation))
        if any(n < 1 for n in found):
            raise ValueError(f"{self.name}: windows {window} are larger than the padded {x}")
        return x.with_shape((*lead, *found))

    def _pieces(
        self,
        found: Shape,
        x: Shape,
        window: Shape,
        strides: Shape,
        dilation: Shape,
        padding: Padding | None = None,
        factor: float | None = None,
    ) -> Sequence[Piece]:
        """Each window, of which there are `found`, depends on its elements."""
        lead = len(x) - len(window)
        along = {}
        for i, (k, s, d) in enumerate(zip(window, strides, dilation, strict=True), start=lead):
            place, _, element = met(x[i], found[i], k, s, padding[i - lead][0] if padding else 0, d)
            along[i, i] = place, element
        return aligned(found, x, [(i, i) for i in range(lead)], along, factor)

    def xla(self, *arrays: Any, **params: Any) -> Any:
        from jax import lax

        x, count = arrays[0], len(params["window"])
        if x.ndim <= count:
            return self._xla(*arrays, **params)

        def plain(*arrays: Any) -> Any:
            return self._xla(*arrays, **params)

        def before_channels(*arrays: Any) -> Any:
            # In that order all of this is fused and vectorized on a CPU.
            channel = arrays[0].ndim - count - 1
            moved = [lax.transpose(a, (*range(channel), *range(channel + 1, a.ndim), channel)) for a in arrays]
            out = self._before_channels(*moved, **params)
            return lax.transpose(out, (*range(channel), out.ndim - 1, *range(channel, out.ndim - 1)))

        return by_platform(*arrays, cpu=before_channels, default=plain)

    def xla_channels_last(self, *arrays: Any, **params: Any) -> Any:
        has_channels = arrays[0].ndim == len(params["window"]) + 2
        return self._before_channels(*arrays, **params) if has_channels else None

    def _before_channels(self, *arrays: Any, **params: Any) -> Any:
        """The same for windows in the axes before the last one."""
        wider = {name: (*value, _ONE_MORE_AXIS[name]) for name, value in params.items() if name != "shape"}
        if "shape" in params:
            wider["shape"] = (*params["shape"], arrays[0].shape[-1])
        return self._xla(*arrays, **wider)

    def _xla(self, *arrays: Any, **params: Any) -> Any:
        """The lowering, for windows in any number of the last axes."""
        raise NotImplementedError

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        return Cost.arithmetic(results[0].size * math.prod(params["window"]))


# Maxima


class WindowMax(WindowPrimitive):
    """The largest element of each window; padding is smaller than any, and NaN larger."""

    name = "window_max"

    def type_rule(self, x: ArrayType, **params: Any) -> ArrayType:
        if is_complex(x.dtype):
            raise TypeError(f"{self.name} is not defined for {x}")
        return self._windows(x, **params)

    def numpy(self, x: Any, **params: Any) -> Any:
        return _maxima(np, numpy_padded, x, **params)

    def _xla(self, x: Any, **params: Any) -> Any:
        import jax.numpy as jnp

        return _maxima(jnp, xla_padded, x, **params)

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [self._pieces(results[0].shape, types[0].shape, **params)]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        return self(x, **params), window_take(t, window_argmax(x, **params), **params)

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        return self(*operands, **params), True


class WindowArgmax(WindowMax):
    """The place of the first largest element in each window, counted row by row; NaN is largest."""

    name = "window_argmax"

    def type_rule(self, x: ArrayType, **params: Any) -> ArrayType:
        return super().type_rule(x, **params).with_dtype(INDEX)

    def numpy(self, x: Any, **params: Any) -> Any:
        return _places_of_maxima(np, numpy_padded, x, **params)

    def _xla(self, x: Any, **params: Any) -> Any:
        import jax.numpy as jnp

        return _places_of_maxima(jnp, xla_padded, x, **params)

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return self(*primals, **params), None


def _along(count: int, axis: int, window: Shape, found: Shape, strides: Shape, dilation: Shape) -> Iterator[Place]:
    """The slices for the elements of windows along one axis of the last `count`."""

    def only(values: Shape) -> Shape:
        return (values[axis],)

    for _, place in slices(only(window), only(dilation), only(found), only(strides)):
        yield (..., place, *[slice(None)] * (count - 1 - axis))  # type: ignore[arg-type]


def _maxima(xp: Any, padded: Any, x: Any, window: Shape, strides: Shape, padding: Padding, dilation: Shape) -> Any:
    found = positions(x.shape[x.ndim - len(window) :], padding, strides, reach(window, dilation))
    x = padded(x, padding, (1,) * len(window), _lowest(x.dtype))
    # The maximum of the maxima along each axis.
    for axis in reversed(range(len(window))):
        first, *others = _along(len(window), axis, window, found, strides, dilation)
        largest = x[first]
        for place in others:
            largest = xp.maximum(largest, x[place])
        x = largest
    return x


def _places_of_maxima(
    xp: Any, padded: Any, x: Any, window: Shape, strides: Shape, padding: Padding, dilation: Shape
) -> Any:
    found = positions(x.shape[x.ndim - len(window) :], padding, strides, reach(window, dilation))
    lowest = _lowest(x.dtype)
    x = padded(x, padding, (1,) * len(window), lowest)
    index: Any = None
    # The first place along an axis, among the first places along those behind it, at which the maximum is.
    for axis in reversed(range(len(window))):
        step = math.prod(window[axis + 1 :])
        along = list(_along(len(window), axis, window, found, strides, dilation))
        elements = [x[place] for place in along]
        largest = functools.reduce(xp.maximum, elements)
        places = [
            INDEX.type(i * step) + (INDEX.type(0) if index is None else index[place]) for i, place in enumerate(along)
        ]
        best = xp.broadcast_to(places[-1], largest.shape)
        for element, here in zip(elements[-2::-1], places[-2::-1], strict=True):
            best = xp.where((element == largest) | (element != element), here, best)
        x, index = largest, best
    if any(low > 0 for low, _ in padding):
        # Where all is as small as padding, the first element that is none of it counts.
        index = xp.where(x == lowest, _first_inside(found, window, strides, padding, dilation), index)
    return index


def _first_inside(found: Shape, window: Shape, strides: Shape, padding: Padding, dilation: Shape) -> Any:
    """The place in each window of its first element that is not padding."""
    total: Any = INDEX.type(0)
    for axis, (n, s, (low, _), d) in enumerate(zip(found, strides, padding, dilation, strict=True)):
        starts = np.minimum(np.arange(n) * s - low, 0)
        total = total + (-(starts // d) * math.prod(window[axis + 1 :])).reshape(-1, *(1,) * (len(window) - 1 - axis))
    return total.astype(INDEX)


# Reading and writing


class WindowTake(WindowPrimitive, Moving):
    """The element of each window of `x` that `index` says, counted row by row; zero where that is padding."""

    name = "window_take"

    def type_rule(self, x: ArrayType, index: ArrayType, **params: Any) -> ArrayType:
        result = self._windows(x, **params)
        if index.shape != result.shape or index.dtype != INDEX:
            raise TypeError(f"{self.name} of {x} needs an index {result.with_dtype(INDEX)}, not {index}")
        return result

    def numpy(self, x: Any, index: Any, *, window: Shape, strides: Shape, padding: Padding, dilation: Shape) -> Any:
        x = numpy_padded(x, padding, (1,) * len(window), 0)
        out = np.zeros(index.shape, x.dtype)
        for i, place in enumerate(slices(window, dilation, index.shape[index.ndim - len(window) :], strides)):
            np.copyto(out, x[place], where=index == i)
        return out

    def _xla(self, x: Any, index: Any, *, window: Shape, strides: Shape, padding: Padding, dilation: Shape) -> Any:
        import jax.numpy as jnp

        found = index.shape[index.ndim - len(window) :]
        if _are_tiles(window, strides, dilation):
            tiled = xla_padded(x, _padding_of_tiles(x.shape, found, window, padding), (1,) * len(window), 0)
            inner = tuple(range(tiled.ndim - len(window) + 1, tiled.ndim + len(window), 2))
            parts = tiled.reshape(*index.shape[: index.ndim - len(window)], *_interleaved(found, window))
            return jnp.where(_tile_mask(index, window), parts, 0).sum(inner, dtype=x.dtype)
        x = xla_padded(x, padding, (1,) * len(window), 0)
        out = jnp.zeros(index.shape, x.dtype)
        for i, place in enumerate(slices(window, dilation, found, strides)):
            out = jnp.where(index == i, x[place], out)
        return out

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        if known[1] is not None:
            return moved_pieces(self, types, known, params)
        return [self._pieces(results[0].shape, types[0].shape, **params), ()]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x, index), (t, _) = primals, tangents
        return self(x, index, **params), self(t, index, **params)

    def transpose(self, ct: Tracer, operands: Sequence[Any], **params: Any) -> list[Tangent]:
        x, index = operands
        shape = x.shape[x.ndim - len(params["window"]) :]
        return [window_put(ct, index, shape=shape, **params), None]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        x, index = (with_batch_axis(size, v, b) for v, b in zip(operands, batched, strict=True))
        return self(x, index, **params), True


class WindowPut(WindowPrimitive):
    """The transpose of `window_take`: each element of `x` added to zeros of `shape`, at the place in its window."""

    name = "window_put"

    def type_rule(self, x: ArrayType, index: ArrayType, *, shape: Shape, **params: Any) -> ArrayType:
        result = x.with_shape((*x.shape[: x.ndim - len(shape)], *shape))
        if self._windows(result, **params) is not x or index is not x.with_dtype(INDEX):
            raise TypeError(f"{self.name} into {result} does not fit {x} and the index {index}")
        return result

    def numpy(
        self, x: Any, index: Any, *, shape: Shape, window: Shape, strides: Shape, padding: Padding, dilation: Shape
    ) -> Any:
        lead, found = x.shape[: x.ndim - len(window)], x.shape[x.ndim - len(window) :]
        sizes = [n + max(low, 0) + max(high, 0) for n, (low, high) in zip(shape, padding, strict=True)]
        out: Any = np.zeros((*lead, *sizes), x.dtype)
        # Where elements of `x` are left out, windows begin behind them.
        inner = out[(..., *(slice(max(-low, 0), None) for low, _ in padding))]
        for i, place in enumerate(slices(window, dilation, found, strides)):
            np.add(inner[place], x, out=inner[place], where=index == i)
        return out[(..., *(slice(max(low, 0), max(low, 0) + n) for n, (low, _) in zip(shape, padding, strict=True)))]

    def _xla(
        self, x: Any, index: Any, *, shape: Shape, window: Shape, strides: Shape, padding: Padding, dilation: Shape
    ) -> Any:
        import jax.numpy as jnp

        lead, found = x.shape[: x.ndim - len(window)], x.shape[x.ndim - len(window) :]
        ones = (1,) * len(window)
        if _are_tiles(window, strides, dilation):
            spread = x.reshape(*lead, *_interleaved(found, ones))
            tiles = jnp.where(_tile_mask(index, window), spread, jnp.zeros((), x.dtype))
            around = _padding_of_tiles((*lead, *shape), found, window, padding)
            whole = tiles.reshape(*lead, *(n * k for n, k in zip(found, window, strict=True)))
            return xla_padded(whole, tuple((-low, -high) for low, high in around), ones, 0)
        total: Any = None
        ends = reach(found, strides)
        for i, place in enumerate(np.ndindex(window)):
            starts = [p * d - low for p, d, (low, _) in zip(place, dilation, padding, strict=True)]
            around = tuple((a, n - a - e) for a, n, e in zip(starts, shape, ends, strict=True))
            term = xla_padded(jnp.where(index == i, x, jnp.zeros((), x.dtype)), around, strides, 0)
            total = term if total is None else total + term
        return total

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        params = {name: value for name, value in params.items() if name != "shape"}
        return [turned(self._pieces(types[0].shape, results[0].shape, **params)), ()]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x, index), (t, _) = primals, tangents
        return self(x, index, **params), self(t, index, **params)

    def transpose(self, ct: Tracer, operands: Sequence[Any], *, shape: Shape, **params: Any) -> list[Tangent]:
        return [window_take(ct, operands[1], **params), None]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        x, index = (with_batch_axis(size, v, b) for v, b in zip(operands, batched, strict=True))
        return self(x, index, **params), True


def _are_tiles(window: Shape, strides: Shape, dilation: Shape) -> bool:
    """Whether windows lie side by side."""
    return window == strides and all(d == 1 for d in dilation)


def _interleaved(outer: Shape, inner: Shape) -> Shape:
    return tuple(n for pair in zip(outer, inner, strict=True) for n in pair)


def _padding_of_tiles(shape: Shape, found: Shape, window: Shape, padding: Padding) -> Padding:
    """The padding with which an array of `shape` is as large as its tiles."""
    axes = zip(shape[len(shape) - len(window) :], found, window, padding, strict=True)
    return tuple((low, o * k - n - low) for n, o, k, (low, _) in axes)


def _tile_mask(index: Any, window: Shape) -> Any:
    """Which element of each tile `index` is about; each axis of tiles is followed by that of their elements."""
    from jax import lax

    lead, found = index.shape[: index.ndim - len(window)], index.shape[index.ndim - len(window) :]
    shape = (*lead, *_interleaved(found, window))
    places: Any = 0
    # Counting is vectorized, and reading a table is not.
    for axis in range(len(window)):
        counted = lax.broadcasted_iota(INDEX, shape, len(lead) + 2 * axis + 1)
        places = places + counted * INDEX.type(math.prod(window[axis + 1 :]))
    return index.reshape(*lead, *_interleaved(found, (1,) * len(window))) == places


window_max = WindowMax()
window_argmax = WindowArgmax()
window_take = WindowTake()
window_put = WindowPut()


# Sums


class WindowSum(WindowPrimitive):
    """The sum of each window."""

    name = "window_sum"

    def type_rule(self, x: ArrayType, *, window: Shape, strides: Shape, dilation: Shape) -> ArrayType:
        if x.dtype.kind == "b":
            raise TypeError(f"{self.name} is not defined for {x}")
        return self._windows(x, window, strides, ((0, 0),) * len(window), dilation)

    def numpy(self, x: Any, *, window: Shape, strides: Shape, dilation: Shape) -> Any:
        return self._sums(x, window, strides, dilation)

    def _xla(self, x: Any, *, window: Shape, strides: Shape, dilation: Shape) -> Any:
        return self._sums(x, window, strides, dilation)

    @staticmethod
    def _sums(x: Any, window: Shape, strides: Shape, dilation: Shape) -> Any:
        extent = x.shape[x.ndim - len(window) :]
        found = positions(extent, ((0, 0),) * len(window), strides, reach(window, dilation))
        for axis in reversed(range(len(window))):
            first, *others = _along(len(window), axis, window, found, strides, dilation)
            total = x[first]
            for place in others:
                total = total + x[place]
            x = total
        return x

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        return [self._pieces(results[0].shape, types[0].shape, **params, factor=1.0)]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        return self(*primals, **params), self(*tangents, **params)

    def transpose(
        self, ct: Tracer, operands: Sequence[Any], *, window: Shape, strides: Shape, dilation: Shape
    ) -> list[Tangent]:
        # Each element gets the cotangents of the windows that it lies in, which begin before it.
        shape, lead = operands[0].shape, ct.ndim - len(window)
        before, ends = reach(window, dilation), reach(ct.shape[lead:], strides)
        none = (0,) * lead
        spread = pad(
            ct,
            full((), 0, ct.dtype),
            before=(*none, *(e - 1 for e in before)),
            after=(*none, *(n - e for n, e in zip(shape[lead:], ends, strict=True))),
            interior=(*none, *(s - 1 for s in strides)),
        )
        return [window_sum(spread, window=window, strides=(1,) * len(window), dilation=dilation)]

    def batch(self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], **params: Any) -> Any:
        return self(*operands, **params), True


window_sum = WindowSum()
