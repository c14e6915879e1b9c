"""Axes and shapes: methods of torch's tensors as functions of any value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...numpy import layouts
from ...numpy.manipulation import normal_axis
from ..tensor import Tensor
from .arguments import axes_of, sizes_of


def unsqueeze(x: Any, dim: int) -> Any:
    """A new axis of size one at `dim`."""
    return np.expand_dims(x, dim)


def squeeze(x: Any, dim: Any = None) -> Any:
    """Without axes of size one: all of them, or those among `dim`."""
    if dim is None:
        return np.squeeze(x)
    dims = dim if isinstance(dim, list | tuple) else (dim,)
    return np.squeeze(x, tuple(i for i in dims if x.shape[normal_axis(i, x.ndim)] == 1))


def permute(x: Any, *axes: Any, dims: Any = None) -> Any:
    """The axes in another order."""
    if axes and dims is not None:
        raise TypeError(f"permute takes the axes by position or as dims=, not both{at_line(user_line())}")
    return np.transpose(x, sizes_of(axes if dims is None else (dims,)))


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    """With two axes exchanged."""
    return np.swapaxes(x, dim0, dim1)


def t(x: Any) -> Any:
    """The transpose of a matrix."""
    if x.ndim > 2:
        raise TypeError(
            f"t() is for matrices and vectors, not for {x.ndim} axes; write x.mT for matrices along the leading "
            f"axes, and x.T for all axes turned round{at_line(user_line())}"
        )
    return np.transpose(x)


def adjoint(x: Any) -> Any:
    """The conjugate transpose of matrices along the leading axes."""
    return np.conj(np.swapaxes(x, -2, -1)) if x.dtype.kind == "c" else np.swapaxes(x, -2, -1)


def movedim(x: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places."""
    return np.moveaxis(x, source, destination)


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes from `start_dim` to `end_dim` joined to one."""
    start, end = (normal_axis(i, max(x.ndim, 1)) for i in (start_dim, end_dim))
    if start > end:
        raise ValueError(f"flatten joins the axes from {start} to {end}, which are none{at_line(user_line())}")
    return np.reshape(x, (*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def unflatten(x: Any, dim: int, sizes: Any) -> Any:
    """One axis divided into several."""
    axis = normal_axis(dim, x.ndim)
    known = math.prod([n for n in sizes if n != -1]) or 1
    sizes = tuple(x.shape[axis] // known if n == -1 else n for n in sizes)
    if math.prod(sizes) != x.shape[axis]:
        raise ValueError(f"an axis of size {x.shape[axis]} cannot be divided into {sizes}{at_line(user_line())}")
    return np.reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def reshape(x: Any, *shape: Any) -> Any:
    """The same elements in another shape."""
    return np.reshape(x, sizes_of(shape))


def view_as(x: Any, other: Any) -> Any:
    """The same elements in the shape of another array."""
    return np.reshape(x, other.shape)


def expand(x: Any, *shape: Any, size: Any = None) -> Any:
    """The array broadcast to a shape, where -1 stands for the size that an axis has."""
    wanted = sizes_of(shape if size is None else (size,))
    behind = len(wanted) - len(x.shape)
    if any(n == -1 and i < behind for i, n in enumerate(wanted)):
        raise ValueError(
            f"expand{wanted} gives -1 for an axis that an array of shape {tuple(x.shape)} does not have; say how "
            f"long it is{at_line(user_line())}"
        )
    return np.broadcast_to(x, tuple(x.shape[i - behind] if n == -1 else n for i, n in enumerate(wanted)))


def expand_as(x: Any, other: Any) -> Any:
    """The array broadcast to the shape of another one."""
    return np.broadcast_to(x, other.shape)


def broadcast_to(x: Any, *shape: Any, size: Any = None) -> Any:
    """The array broadcast to a shape, where -1 stands for the size that an axis has."""
    return expand(x, *shape, size=size)


def sum_to_size(x: Any, *size: Any) -> Any:
    """The sum over the axes along which a shape would be broadcast to that of `x`."""
    wanted = sizes_of(size)
    behind = x.ndim - len(wanted)
    longer = [i + behind for i, n in enumerate(wanted) if n == 1 and x.shape[i + behind] != 1]
    return np.reshape(np.sum(x, (*range(behind), *longer)), wanted)


def repeat(x: Any, *sizes: Any) -> Any:
    """The whole array, repeated along each axis."""
    sizes = sizes_of(sizes)
    if len(sizes) < x.ndim:
        raise ValueError(f"repeat takes a number for each of {x.ndim} axes, not {sizes}{at_line(user_line())}")
    return np.tile(x, sizes)


def tile(x: Any, *sizes: Any, dims: Any = None) -> Any:
    """The whole array, repeated along the last axes."""
    return np.tile(x, sizes_of(sizes if dims is None else (dims,)))


def repeat_interleave(x: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Each element repeated, along an axis, or of all elements along one."""
    return np.repeat(x, repeats, dim)


def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    """The elements moved along axes, those at the end to the beginning; of all elements in a row without `dims`."""
    return np.roll(x, shifts, axes_of(dims))


def flip(x: Any, *axes: Any, dims: Any = None) -> Any:
    """With axes turned round."""
    return np.flip(x, sizes_of(axes if dims is None else (dims,)))


def rot90(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turned by 90 degrees `k` times in the plane of two axes."""
    return np.rot90(x, k, tuple(dims))


def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """Windows of `size` elements along an axis, `step` apart, along a new last axis."""
    axis = normal_axis(dimension, x.ndim)
    count = (x.shape[axis] - size) // step + 1
    if count < 1 or step < 1:
        raise ValueError(
            f"unfold takes windows of {size} elements, {step} apart, of {x.shape[axis]}, which are none"
            + at_line(user_line())
        )
    places = step * np.arange(count)[:, None] + np.arange(size)
    return np.moveaxis(np.take(x, places, axis), axis + 1, -1)


def dim(x: Any) -> int:
    """The number of axes."""
    return int(x.ndim)


def numel(x: Any) -> int:
    """The number of elements."""
    return math.prod(x.shape)


def size(x: Any, dim: int | None = None) -> Any:
    """The shape, or the size of one axis."""
    return tuple(x.shape) if dim is None else x.shape[normal_axis(dim, x.ndim)]


def contiguous(x: Any, memory_format: Any = None) -> Any:
    """The array itself where its elements lie one after the other in memory, else a copy in which they do."""
    return x if is_contiguous(x) else np.copy(x, "C")


def is_contiguous(x: Any, memory_format: Any = None) -> bool:
    """Whether the elements lie one after the other in memory, the last axis first."""
    if type(x) is not Tracer:
        array = x.array if isinstance(x, Tensor) else x
        return bool(array.flags.c_contiguous)
    found = layouts.layout(x)
    if found is None:
        # Where nothing is known of arguments, results of operations lie in order, and views of these do not.
        return x.memory is None or isinstance(x.memory, layouts.Owner)
    return found == layouts.contiguous(x.shape)


METHODS = {
    "unsqueeze": unsqueeze, "squeeze": squeeze, "permute": permute, "transpose": transpose, "swapaxes": transpose,
    "swapdims": transpose, "t": t, "adjoint": adjoint, "movedim": movedim, "moveaxis": movedim, "flatten": flatten,
    "ravel": np.ravel, "unflatten": unflatten, "reshape": reshape, "view": reshape, "view_as": view_as,
    "reshape_as": view_as, "expand": expand, "expand_as": expand_as, "broadcast_to": broadcast_to,
    "sum_to_size": sum_to_size, "repeat": repeat, "tile": tile, "repeat_interleave": repeat_interleave, "roll": roll,
    "flip": flip, "fliplr": np.fliplr, "flipud": np.flipud, "rot90": rot90, "unfold": unfold, "dim": dim,
    "ndimension": dim, "numel": numel, "nelement": numel, "size": size, "contiguous": contiguous,
    "is_contiguous": is_contiguous,
}  # fmt: skip
