"""The convolution of images of any number of axes, whose derivatives are convolutions again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.channels import channels_second
from ..base.pieces import aligned
from ..core.cost import Cost
from ..core.on_numpy import Memory
from ..core.primitive import SingleResult, Tangent
from ..core.program import Params
from ..core.trace import Tracer
from ..core.types import ArrayType, Shape, is_inexact
from .convolution_on_numpy import Window, block_size, convolve
from .elementwise import add
from .literals import full_like
from .platforms import by_platform, precision_of
from .shapes import reshape, reverse, transpose
from .windows import Padding, met, slices, xla_padded

# The most slices that a lowering to XLA is made of.
_MOST_SLICES = 150


class Convolution(SingleResult):
    """Sums of products of the `kernel` with the windows of `x`: what neural networks call a convolution.

    `x` has the axes (sample, channel, *space), `kernel` (out channel, channel of the group, *space), the result
    (sample, out channel, *space). Along each axis of space, `lhs_dilation - 1` zeros are put between the elements of
    `x`, `padding` zeros before and after it (where negative, elements are left out); the kernel's elements act
    `rhs_dilation` apart; windows begin `strides` apart. The kernel is not reversed. Channels fall into `groups`:
    each out channel sees those of its own group.

    XLA is asked for the highest precision, so that float32 on a GPU is float32, and not TF32 without a warning, unless
    the user has asked for less (`ft.matmul_precision`).
    """

    name = "convolution"
    memory = Memory.NEW
    convolves = True

    def __call__(
        self,
        x: Any,
        kernel: Any,
        *,
        strides: Shape,
        padding: Padding,
        lhs_dilation: Shape | None = None,
        rhs_dilation: Shape | None = None,
        groups: int = 1,
    ) -> Any:
        ones = (1,) * len(strides)
        return super().__call__(
            x,
            kernel,
            strides=strides,
            padding=padding,
            lhs_dilation=lhs_dilation or ones,
            rhs_dilation=rhs_dilation or ones,
            groups=groups,
        )

    def type_rule(self, x: ArrayType, kernel: ArrayType, *, groups: int, **params: Any) -> ArrayType:
        if x.dtype != kernel.dtype or x.dtype.kind == "b":
            raise TypeError(f"{self.name} needs numbers of one dtype: {x}, {kernel}")
        if x.ndim < 3 or kernel.ndim != x.ndim or any(len(v) != x.ndim - 2 for v in params.values()):
            raise TypeError(f"{self.name} cannot apply {kernel} to {x} with {params}")
        if x.shape[1] != groups * kernel.shape[1] or kernel.shape[0] % groups:
            raise ValueError(f"{self.name}: channels of {kernel} do not fit those of {x} in {groups} groups")
        out = Window.of(x.shape, kernel.shape, **params).out
        if any(n < 1 for n in out):
            raise ValueError(f"{self.name}: {kernel} is larger than the padded {x}")
        return x.with_shape((x.shape[0], kernel.shape[0], *out))

    def numpy(self, x: Any, kernel: Any, *, groups: int, **params: Any) -> Any:
        dtype = x.dtype
        if is_inexact(dtype) and dtype.itemsize == 2:
            # BLAS has no small formats.
            x, kernel = x.astype(np.float32), kernel.astype(np.float32)
        window = Window.of(x.shape, kernel.shape, **params)
        if not x.size or not kernel.size:
            return np.zeros((x.shape[0], kernel.shape[0], *window.out), dtype)
        return convolve(x, kernel, window, groups).astype(dtype, copy=False)

    def xla(self, x: Any, kernel: Any, *, groups: int, **params: Any) -> Any:
        from jax import lax

        window = Window.of(x.shape, kernel.shape, **params)
        if not x.size or not kernel.size:
            return lax.full((x.shape[0], kernel.shape[0], *window.out), 0, x.dtype)

        def whole(x: Any, kernel: Any) -> Any:
            return _xla_whole(x, kernel, groups, tuple(range(x.ndim)), params)

        by_slices = _by_slices(window, kernel.shape, groups)
        if by_slices is None:
            return whole(x, kernel)

        def on_cpu(x: Any, kernel: Any) -> Any:
            return by_slices(xla_padded(x, window.padding, window.lhs_dilation, 0), kernel, window, groups)

        return by_platform(x, kernel, cpu=on_cpu, default=whole)

    def xla_channels_last(self, x: Any, kernel: Any, *, groups: int, **params: Any) -> Any:
        of_x, of_kernel = (tuple(channels_second(v.shape)) for v in (x, kernel))
        window = Window.of(of_x, of_kernel, **params)
        if not x.size or not kernel.size or _by_slices(window, of_kernel, groups) is not None:
            return None
        return _xla_whole(x, kernel, groups, channels_second(range(x.ndim)), params)

    def cost(self, types: Sequence[ArrayType], results: Sequence[ArrayType], params: Params) -> Cost:
        operations = 2 * results[0].size * math.prod(types[1].shape[1:])
        return Cost.products(operations, max(t.size for t in (*types, *results)))

    def local(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], known: Sequence[Any], params: Params
    ) -> Any:
        (x, kernel), (out,), groups = types, results, params["groups"]
        count = kernel.shape[1]
        # Which out channels see which channels.
        channel, of_group = (places.reshape(-1) for places in np.indices((kernel.shape[0], count)))
        of_x = {(1, 1): (channel, channel // (kernel.shape[0] // groups) * count + of_group)}
        of_kernel = {}
        window = Window.of(x.shape, kernel.shape, **{k: v for k, v in params.items() if k != "groups"})
        for i, (k, n, s, (low, _), spacing, d) in enumerate(
            zip(
                window.kernel,
                window.out,
                window.strides,
                window.padding,
                window.lhs_dilation,
                window.rhs_dilation,
                strict=True,
            ),
            start=2,
        ):
            place, inner, element = met(x.shape[i], n, k, s, low, d, spacing)
            of_x[i, i], of_kernel[i, i] = (place, element), (place, inner)
        return [
            aligned(out.shape, x.shape, [(0, 0)], of_x),
            aligned(out.shape, kernel.shape, [(1, 0)], of_kernel),
        ]

    def jvp(self, primals: Sequence[Tracer], tangents: Sequence[Tangent], **params: Any) -> tuple[Any, Any]:
        (x, kernel), (tx, tk) = primals, tangents
        along = [self(t, kernel, **params) for t in (tx,) if t is not None]
        along += [self(x, t, **params) for t in (tk,) if t is not None]
        return self(x, kernel, **params), add(*along) if len(along) == 2 else along[0]

    def transpose(
        self,
        ct: Tracer,
        operands: Sequence[Any],
        *,
        strides: Shape,
        padding: Padding,
        lhs_dilation: Shape,
        rhs_dilation: Shape,
        groups: int,
    ) -> list[Tangent]:
        x, kernel = operands
        window = Window.of(x.shape, kernel.shape, strides, padding, lhs_dilation, rhs_dilation)
        if not x.size or not kernel.size:
            return [full_like(v, 0) if isinstance(v, ArrayType) else None for v in operands]
        # What the last window does not reach is padding of both derivatives, and may be negative.
        sizes = [
            (d, e, (o - 1) * s + 1, low)
            for d, e, o, s, (low, _) in zip(window.extent, window.reach, window.out, strides, padding, strict=True)
        ]
        ct_x = ct_kernel = None
        if isinstance(x, ArrayType):
            ct_x = convolution(
                ct,
                turned(kernel, groups),
                strides=lhs_dilation,
                padding=tuple((e - 1 - low, d - o + low) for d, e, o, low in sizes),
                lhs_dilation=strides,
                rhs_dilation=rhs_dilation,
                groups=groups,
            )
        if isinstance(kernel, ArrayType) and groups == 1 and set(strides) == {1} and set(lhs_dilation) != {1}:
            # By windows of the cotangent, which has no zeros between its elements, as the dilated `x` has.
            by_windows = convolution(
                _swapped(ct),
                _swapped(x),
                strides=rhs_dilation,
                padding=tuple((e - 1 - low, d - o + low) for d, e, o, low in sizes),
                rhs_dilation=lhs_dilation,
                groups=1,
            )
            ct_kernel = reverse(by_windows, axes=tuple(range(2, by_windows.ndim)))
        elif isinstance(kernel, ArrayType):
            ct_kernel = _swapped(
                convolution(
                    _samples_as_channels(x, groups),
                    _swapped(ct),
                    strides=rhs_dilation,
                    padding=tuple((low, e - 1 + o - d - low) for d, e, o, low in sizes),
                    lhs_dilation=lhs_dilation,
                    rhs_dilation=strides,
                    groups=groups,
                )
            )
        return [ct_x, ct_kernel]

    def batch(
        self, size: int, operands: Sequence[Tracer], batched: Sequence[bool], *, groups: int, **params: Any
    ) -> Any:
        x, kernel = operands
        if not batched[1]:
            out = self(_merged(x, 0), kernel, groups=groups, **params)
            return _divided(out, 0, size), True
        if not batched[0]:
            # More out channels of each group.
            kernel = _divided(_axis_moved(kernel, 0, 1), 0, groups)
            kernel = _merged(_merged(_axis_moved(kernel, 2, 1), 0), 0)
            out = _divided(_divided(self(x, kernel, groups=groups, **params), 1, groups), 2, size)
            return _merged(_axis_moved(out, 2, 0), 2), True
        x = _merged(_axis_moved(x, 0, 1), 1)
        out = self(x, _merged(kernel, 0), groups=size * groups, **params)
        return _axis_moved(_divided(out, 1, size), 1, 0), True


convolution = Convolution()


# Axes


def _merged(x: Tracer, axis: int) -> Tracer:
    """`x` with `axis` and the next one as one axis."""
    return reshape(x, shape=(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _divided(x: Tracer, axis: int, count: int) -> Tracer:
    """`x` with `axis` as two axes, of which the first has the size `count`."""
    return reshape(x, shape=(*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :]))


def _axis_moved(x: Tracer, source: int, target: int) -> Tracer:
    axes = [i for i in range(x.ndim) if i != source]
    axes.insert(target, source)
    return transpose(x, axes=tuple(axes))


def _swapped(x: Tracer) -> Tracer:
    return _axis_moved(x, 1, 0)


def turned(kernel: Tracer, groups: int) -> Tracer:
    """A kernel reversed along the axes of space, with its in and out channels exchanged in each group."""
    kernel = reverse(kernel, axes=tuple(range(2, kernel.ndim)))
    if groups == 1:
        return _swapped(kernel)
    return _merged(_axis_moved(_divided(kernel, 0, groups), 2, 1), 0)


def _samples_as_channels(x: Tracer, groups: int) -> Tracer:
    """`x` with each group's samples for channels, and its channels for samples."""
    if groups == 1:
        return _swapped(x)
    return _merged(_axis_moved(_axis_moved(_divided(x, 1, groups), 2, 0), 2, 1), 1)


def _xla_whole(x: Any, kernel: Any, groups: int, axes: Shape, params: Params) -> Any:
    """The convolution of XLA, of arrays that have the axes of the program at `axes`."""
    from jax import lax

    return lax.conv_general_dilated(
        x,
        kernel,
        params["strides"],
        params["padding"],
        params["lhs_dilation"],
        params["rhs_dilation"],
        dimension_numbers=lax.ConvDimensionNumbers(axes, axes, axes),
        feature_group_count=groups,
        precision=precision_of(x.dtype),
        preferred_element_type=x.dtype,
    )


# XLA on a CPU, whose own convolution is slow for large kernels, as those of derivatives are, and very slow for groups


def _by_slices(window: Window, kernel: Shape, groups: int) -> Any:
    """The function that computes a convolution by slices, where that is faster on a CPU, or None; for such a kernel."""
    if min(math.prod(window.out), math.prod(window.kernel)) > _MOST_SLICES:
        return None
    if window.has_large_kernel:
        if groups == 1:
            return _xla_by_blocks
        return _xla_each_window if kernel[0] == groups else _xla_by_rows
    if groups == 1:
        return None
    return _xla_each_element if kernel[1] == 1 else _xla_by_columns


def _xla_by_blocks(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    """Matrix products of windows, or of shifted arrays, and kernels, added up over blocks of channels."""
    from jax import lax

    product: Callable[[Any, Any, Window], Any] = _product_of_rows
    channels, weights = x.shape[1], _channels_last(kernel, 1)
    # How many elements are copied for a channel.
    copied = x.shape[0] * math.prod(window.out) * math.prod(window.kernel)
    shifted = _size_of_shifted(x, kernel, window)
    if window.rhs_dilation[-1] == 1 and shifted < copied:
        product, weights, copied = _product_of_shifted, kernel, shifted
    block = block_size(copied * x.dtype.itemsize, channels)

    def of_block(first: Any, size: int) -> Any:
        part = lax.dynamic_slice_in_dim(x, first, size, 1)
        return product(part, lax.dynamic_slice_in_dim(weights, first, size, 1), window)

    full, rest = divmod(channels, block)
    if full == 1 and not rest:
        return of_block(0, block)
    shape = (x.shape[0], kernel.shape[0], *window.out)
    result = of_block(full * block, rest) if rest else lax.full(shape, 0, x.dtype)
    return lax.fori_loop(0, full, lambda i, total: total + of_block(i * block, block), result)


def _size_of_shifted(x: Any, kernel: Any, window: Window) -> int:
    """How many elements `_product_of_shifted` copies for a channel."""
    places = math.prod(window.kernel[:-1]) * _shifted_width(window)
    shifts = x.shape[0] * math.prod(window.out[:-1]) + kernel.shape[0] * window.out[-1]
    return shifts * places


def _shifted_width(window: Window) -> int:
    """How much of the last axis the windows meet."""
    return window.kernel[-1] + (window.out[-1] - 1) * window.strides[-1]


def _product_of_shifted(x: Any, kernel: Any, window: Window) -> Any:
    """One matrix product of `x`, shifted along all axes but the last one, and the kernel, shifted along that.

    Windows along two axes are met by as many shifts of each as there are along one: less is copied than in windows.
    """
    import jax.numpy as jnp

    width, step = _shifted_width(window), window.strides[-1]
    places = slices(window.out[:-1], window.strides[:-1], window.kernel[:-1], window.rhs_dilation[:-1])
    rows = jnp.stack([x[(*place, slice(width))] for place in places], 1)
    starts = range(0, window.out[-1] * step, step)
    none, kernel = [(0, 0)] * (kernel.ndim - 2), jnp.moveaxis(kernel, 0, -1)
    columns = [jnp.pad(kernel, [*none, (i, width - window.kernel[-1] - i), (0, 0)]) for i in starts]
    shifted = jnp.concatenate(columns, -1)
    product = _xla_product(rows.reshape(1, x.shape[0] * rows.shape[1], -1), shifted.reshape(1, -1, shifted.shape[-1]))
    out = product.reshape(x.shape[0], *window.out, kernel.shape[-1])
    return jnp.moveaxis(out, -1, 1)


def _xla_by_rows(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    """One matrix product of windows and kernels for each group."""
    return _product_of_rows(x, _channels_last(kernel, groups), window)


def _channels_last(kernel: Any, groups: int) -> Any:
    """The kernel with the axes (group, channel, *space, out channel), in which a CPU leaves what derivatives are of."""
    import jax.numpy as jnp

    return jnp.moveaxis(kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:]), 1, -1)


def _product_of_rows(x: Any, weights: Any, window: Window) -> Any:
    import jax.numpy as jnp

    samples, count, groups, out_channels = x.shape[0], math.prod(window.out), weights.shape[0], weights.shape[-1]
    x = x.reshape(samples, groups, weights.shape[1], *x.shape[2:]).swapaxes(0, 1)
    rows = jnp.stack([x[place] for place in window.in_rows()], 2).reshape(groups, samples * count, -1)
    product = _xla_product(rows, weights.reshape(groups, -1, out_channels))
    out = product.reshape(groups, samples, count, out_channels).transpose(1, 0, 3, 2)
    return out.reshape(samples, groups * out_channels, *window.out)


def _xla_by_columns(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    """The same, with the windows as columns."""
    import jax.numpy as jnp

    samples, channels = x.shape[0], kernel.shape[1]
    x = jnp.moveaxis(x.reshape(samples, groups, channels, *x.shape[2:]), 0, 2)
    weights = kernel.reshape(groups, kernel.shape[0] // groups, -1)
    columns = jnp.stack([x[place] for place in window.in_columns()], 2).reshape(groups, weights.shape[2], -1)
    product = _xla_product(weights, columns)
    out = jnp.moveaxis(product.reshape(*weights.shape[:2], samples, math.prod(window.out)), 2, 0)
    return out.reshape(samples, kernel.shape[0], *window.out)


def _xla_product(x: Any, y: Any) -> Any:
    from jax import lax

    return lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), precision_of(x.dtype), x.dtype)


def _xla_each_element(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    """A sum over the kernel's elements, where each group has one channel."""
    weights = kernel.reshape(groups, kernel.shape[0] // groups, math.prod(window.kernel), *(1,) * len(window.out))
    terms = [weights[:, :, i] * x[:, :, None][place] for i, place in enumerate(window.in_columns())]
    return sum(terms[1:], terms[0]).reshape(x.shape[0], kernel.shape[0], *window.out)


def _xla_each_window(x: Any, kernel: Any, window: Window, groups: int) -> Any:
    """A sum for each window, where each group has one out channel."""
    import jax.numpy as jnp

    x = x.reshape(x.shape[0], groups, kernel.shape[1], *x.shape[2:])
    axes = tuple(range(2, x.ndim))
    sums = [(x[place] * kernel).sum(axes, dtype=x.dtype) for place in window.in_rows()]
    return jnp.stack(sums, 2).reshape(x.shape[0], kernel.shape[0], *window.out)
