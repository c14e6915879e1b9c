"""Convolutions and transposed convolutions of signals, images and volumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...api.call import record_or_run
from ...base.narrow_products import dtype_named, product_dtype
from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import Shape
from ...numpy.promotion import cast, result_dtype
from ...ops.broadcast import broadcast
from ...ops.convolution import convolution, turned
from ...ops.elementwise import add
from ...ops.shapes import reshape
from ...ops.windows import reach
from .arguments import array, described
from .entry import functional
from .spatial import SPACE, check_fits, check_image, per_axis

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def _check_weight(weight: Any, count: int, what: str, channels: str) -> None:
    if len(weight.shape) != count + 2:
        raise ValueError(
            f"{what} takes weight with the axes ({channels}, {SPACE[count]}), but got {described(weight)} with "
            f"{len(weight.shape)} axes{at_line(user_line())}"
        )


def _check_bias(bias: Any, channels: int, what: str) -> None:
    if bias is not None and bias.shape != (channels,):
        raise ValueError(
            f"{what} takes bias of shape ({channels},), one number for each output channel of the weight, but got "
            f"{described(bias)}{at_line(user_line())}"
        )


def _padding(padding: Any, window: Shape, strides: Shape, what: str) -> tuple[tuple[int, int], ...]:
    """Number of zeros before and after each axis."""
    if padding == "same":
        if any(s != 1 for s in strides):
            raise ValueError(
                f"padding='same' of {what} requires stride=1, so that the result can have the size of the input; got "
                f"stride {strides}: give the padding as numbers{at_line(user_line())}"
            )
        return tuple(((e - 1) // 2, e // 2) for e in window)
    if padding == "valid":
        padding = 0
    if isinstance(padding, str):
        raise ValueError(
            f"padding of {what} must be integers, 'same' or 'valid', not {padding!r}{at_line(user_line())}"
        )
    return tuple((p, p) for p in per_axis(padding, len(window), what, "padding", 0))


def _apply(what: str, count: int, x: Any, weight: Any, bias: Any, make: Any) -> Any:
    """`make(x, weight)` plus the bias, in the common dtype; `x` may lack the batch axis."""
    is_single = len(x.shape) == count + 1

    def record(operands: list[Tracer]) -> list[Any]:
        dtype = result_dtype(*operands)
        x, weight, *added = (cast(v, dtype) for v in operands)
        name = product_dtype() if dtype == np.float32 else None
        if name is not None:
            x, weight = (cast(v, dtype_named(name)) for v in (x, weight))
        out = cast(make(reshape(x, shape=(1, *x.shape)) if is_single else x, weight), dtype)
        for b in added:
            out = add(out, broadcast(b, shape=out.shape, dims=(1,)))
        return [reshape(out, shape=out.shape[1:]) if is_single else out]

    (result,) = record_or_run(what, record, [x, weight] if bias is None else [x, weight, bias])
    return result


def _convolved(
    count: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    what = f"conv{count}d"
    x, weight, bias = array(input), array(weight), None if bias is None else array(bias)
    check_image(x, count, what)
    _check_weight(weight, count, what, "out channel, in channel of the group")
    (groups,) = per_axis(groups, 1, what, "groups")
    strides, rates = per_axis(stride, count, what, "stride"), per_axis(dilation, count, what, "dilation")
    channels, (out_channels, per_group) = x.shape[-count - 1], weight.shape[:2]
    if channels != groups * per_group:
        raise ValueError(
            f"{what}: the weight {described(weight)} takes {per_group} channels for each of {groups} "
            f"group{'s' if groups > 1 else ''}, so input must have {groups * per_group} channels, but got {channels} "
            f"in {described(x)}{at_line(user_line())}"
        )
    if out_channels % groups:
        raise ValueError(
            f"{what}: the {out_channels} output channels of the weight {described(weight)} cannot be divided among "
            f"{groups} groups{at_line(user_line())}"
        )
    _check_bias(bias, out_channels, what)
    window = reach(weight.shape[2:], rates)
    around = _padding(padding, window, strides, what)
    space = tuple(n + low + high for n, (low, high) in zip(x.shape[-count:], around, strict=True))
    check_fits(x, space, window, what, "the weight")

    def make(x: Tracer, weight: Tracer) -> Any:
        return convolution(x, weight, strides=strides, padding=around, rhs_dilation=rates, groups=groups)

    return _apply(what, count, x, weight, bias, make)


@functional
def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Convolution of signals with a kernel, which is not reversed (cross-correlation).

    Args:
        input: array of shape (N, in_channels, L) or (in_channels, L).
        weight: kernel with the axes (out_channels, in_channels / groups, length).
        bias: vector that is added, of shape (out_channels,); or None.
        stride: step between windows.
        padding: number of zeros added at both ends; "same" for a result of the size of the input, "valid" for none.
        dilation: spacing between kernel elements.
        groups: number of channel groups; groups are convolved independently.

    Returns:
        An array of shape (N, out_channels, L) or (out_channels, L), of length
        `(length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1`.  Without `jit` the windows are copied, a
        few megabytes at a time, and multiplied by BLAS.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.conv1d(np.array([[1.0, 2.0, 4.0, 8.0]]), np.array([[[-1.0, 1.0]]]))
        array([[1., 2., 4.]])
    """
    return _convolved(1, input, weight, bias, stride, padding, dilation, groups)


@functional
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Convolution of images with a kernel, which is not reversed (cross-correlation).

    Args:
        input: array of shape (N, in_channels, H, W) or (in_channels, H, W).
        weight: kernel with the axes (out_channels, in_channels / groups, height, width).
        bias: vector that is added, of shape (out_channels,); or None.
        stride: step between windows; an integer, or one for height and width each, as are `padding` and `dilation`.
        padding: number of zeros added at both ends of each axis; "same" for a result of the size of the input, "valid"
            for none.
        dilation: spacing between kernel elements.
        groups: number of channel groups; groups are convolved independently.

    Returns:
        An array of shape (N, out_channels, H, W) or (out_channels, H, W); sizes are computed as for `conv1d`.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> edges = np.array([[[[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]]])
        >>> F.conv2d(np.eye(3)[None], edges, padding="same")[0]
        array([[-4.,  2.,  0.],
               [ 2., -4.,  2.],
               [ 0.,  2., -4.]])
    """
    return _convolved(2, input, weight, bias, stride, padding, dilation, groups)


@functional
def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Convolution of volumes with a kernel, which is not reversed (cross-correlation).

    Args:
        input: array of shape (N, in_channels, D, H, W) or (in_channels, D, H, W).
        weight: kernel with the axes (out_channels, in_channels / groups, depth, height, width).
        bias, stride, padding, dilation, groups: as for `conv2d`, with depth, height and width.

    Returns:
        An array of shape (N, out_channels, D, H, W) or (out_channels, D, H, W); sizes are computed as for `conv1d`.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.conv3d(np.ones((1, 3, 3, 3)), np.ones((2, 1, 3, 3, 3))).ravel()
        array([27., 27.])
    """
    return _convolved(3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    count: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Any:
    what = f"conv_transpose{count}d"
    x, weight, bias = array(input), array(weight), None if bias is None else array(bias)
    check_image(x, count, what)
    _check_weight(weight, count, what, "in channel, out channel of the group")
    (groups,) = per_axis(groups, 1, what, "groups")
    strides, rates = per_axis(stride, count, what, "stride"), per_axis(dilation, count, what, "dilation")
    removed = per_axis(padding, count, what, "padding", 0)
    added = per_axis(output_padding, count, what, "output_padding", 0)
    channels, (in_channels, per_group) = x.shape[-count - 1], weight.shape[:2]
    if channels != in_channels:
        raise ValueError(
            f"{what}: the weight {described(weight)} takes {in_channels} channels, but input has {channels} in "
            f"{described(x)}{at_line(user_line())}"
        )
    if in_channels % groups:
        raise ValueError(
            f"{what}: the {in_channels} input channels of the weight {described(weight)} cannot be divided among "
            f"{groups} groups{at_line(user_line())}"
        )
    _check_bias(bias, groups * per_group, what)
    if any(a >= max(s, d) for a, s, d in zip(added, strides, rates, strict=True)):
        raise ValueError(
            f"output_padding of {what} must be smaller than stride or dilation, since it chooses among the sizes that "
            f"a convolution with this stride maps to that of the input; got {output_padding!r}{at_line(user_line())}"
        )
    window = reach(weight.shape[2:], rates)
    extent = reach(x.shape[-count:], strides)
    sizes = tuple(n + e - 1 - 2 * p + a for n, e, p, a in zip(extent, window, removed, added, strict=True))
    if min(sizes) < 1:
        raise ValueError(
            f"{what}: padding {padding!r} removes all of the result, whose size would be {sizes}; use less padding"
            + at_line(user_line())
        )

    def make(x: Tracer, weight: Tracer) -> Any:
        return convolution(
            x,
            turned(weight, groups),
            strides=(1,) * count,
            padding=tuple((e - 1 - p, e - 1 - p + a) for e, p, a in zip(window, removed, added, strict=True)),
            lhs_dilation=strides,
            rhs_dilation=rates,
            groups=groups,
        )

    return _apply(what, count, x, weight, bias, make)


@functional
def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The transpose of `conv1d` as a linear map: each element of a signal adds a scaled copy of the kernel.

    Args:
        input: array of shape (N, in_channels, L) or (in_channels, L).
        weight: kernel with the axes (in_channels, out_channels / groups, length).
        bias: vector that is added, of shape (out_channels,); or None.
        stride: step between the copies of the kernel.
        padding: number of elements that are cut off at both ends of the result.
        output_padding: number of elements that are added at the far end of the result.
        groups: number of channel groups; groups are convolved independently.
        dilation: spacing between kernel elements.

    Returns:
        An array of shape (N, out_channels, L) or (out_channels, L), of length
        `(length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1`.

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.conv_transpose1d(np.array([[1.0, 10.0]]), np.array([[[1.0, 2.0, 3.0]]]), stride=2)
        array([[ 1.,  2., 13., 20., 30.]])
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@functional
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The transpose of `conv2d` as a linear map: each element of an image adds a scaled copy of the kernel.

    Args:
        input: array of shape (N, in_channels, H, W) or (in_channels, H, W).
        weight: kernel with the axes (in_channels, out_channels / groups, height, width).
        bias, stride, padding, output_padding, groups, dilation: as for `conv_transpose1d`; all but `groups` may be one
            integer, or one for height and width each.

    Returns:
        An array of shape (N, out_channels, H, W) or (out_channels, H, W).

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.conv_transpose2d(np.array([[[1.0, 2.0]]]), np.ones((1, 1, 2, 2)), stride=2)[0]
        array([[1., 1., 2., 2.],
               [1., 1., 2., 2.]])
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@functional
def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The transpose of `conv3d` as a linear map: each element of a volume adds a scaled copy of the kernel.

    Args:
        input: array of shape (N, in_channels, D, H, W) or (in_channels, D, H, W).
        weight: kernel with the axes (in_channels, out_channels / groups, depth, height, width).
        bias, stride, padding, output_padding, groups, dilation: as for `conv_transpose2d`.

    Returns:
        An array of shape (N, out_channels, D, H, W) or (out_channels, D, H, W).

    Raises:
        ValueError: shapes do not match.

    Example:
        >>> import numpy as np
        >>> import ftrans.nn.functional as F
        >>> F.conv_transpose3d(np.ones((1, 1, 1, 1)), np.ones((1, 1, 2, 2, 2))).shape
        (1, 2, 2, 2)
    """
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
