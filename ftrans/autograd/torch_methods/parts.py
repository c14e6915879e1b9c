"""Parts of arrays, and arrays put together: methods and functions of torch as functions of any value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...numpy.manipulation import normal_axis


def split(x: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Parts of `split_size` elements along an axis, of which the last may be shorter, or of each size of a list."""
    axis = normal_axis(dim, x.ndim)
    length = x.shape[axis]
    if isinstance(split_size, list | tuple):
        if sum(split_size) != length:
            raise ValueError(
                f"split takes sizes that add up to the {length} elements along axis {dim}, not {list(split_size)}"
                + at_line(user_line())
            )
        ends = list(itertools.accumulate(split_size))[:-1]
    else:
        if split_size < 1:
            raise ValueError(f"split takes a positive size, not {split_size}{at_line(user_line())}")
        ends = list(range(split_size, length, split_size))
    return tuple(np.split(x, ends, axis))


def split_with_sizes(x: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """Parts of these sizes along an axis."""
    return split(x, list(split_sizes), dim)


def chunk(x: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """At most `chunks` parts along an axis: all have the same size, but for the last one, which may be shorter."""
    if chunks < 1:
        raise ValueError(f"chunk takes a positive number of parts, not {chunks}{at_line(user_line())}")
    length = x.shape[dim]
    return split(x, -(-length // chunks) if length else [0] * chunks, dim)


def tensor_split(x: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Parts whose sizes differ by one at most, or those that end at given indices."""
    return tuple(np.array_split(x, indices_or_sections, dim))


def hsplit(x: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Parts along the second axis, or along the only one."""
    return tuple(np.hsplit(x, indices_or_sections))


def vsplit(x: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Parts along the first axis."""
    return tuple(np.vsplit(x, indices_or_sections))


def dsplit(x: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Parts along the third axis."""
    return tuple(np.dsplit(x, indices_or_sections))


def unbind(x: Any, dim: int = 0) -> tuple[Any, ...]:
    """The parts along an axis, each without that axis."""
    return tuple(np.moveaxis(x, dim, 0))


def _slices(x: Any, axis: int, part: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, part, *[slice(None)] * (x.ndim - axis - 1))


def select(x: Any, dim: int, index: Any) -> Any:
    """The part at an index along an axis, without that axis."""
    return x[_slices(x, normal_axis(dim, x.ndim), index)]


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    """`length` elements along an axis from `start` on."""
    axis = normal_axis(dim, x.ndim)
    start = start + x.shape[axis] if start < 0 else start
    if not 0 <= start <= start + length <= x.shape[axis]:
        raise IndexError(
            f"narrow takes {length} elements from {start} on of {x.shape[axis]} along axis {dim}{at_line(user_line())}"
        )
    return x[_slices(x, axis, slice(start, start + length))]


def index_select(x: Any, dim: int, index: Any) -> Any:
    """The parts at the indices of a vector along an axis."""
    return np.take(x, index, dim) if x.ndim else x


def masked_select(x: Any, mask: Any) -> Any:
    """The elements for which a mask holds, as a vector; their number depends on values, so not in compiled code."""
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def take(x: Any, index: Any) -> Any:
    """The elements at indices into all elements."""
    return np.take(x, index)


def leading(x: Any, index: Any, axis: int) -> Any:
    """The part of an array that an index which is as long as it, or shorter, along the other axes reaches."""
    return x[tuple([slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape)])]


def gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """The elements at indices along an axis: `y[i, j] = x[index[i, j], j]` for the first of two."""
    if not x.ndim:
        return np.broadcast_to(x, index.shape)
    axis = normal_axis(dim, x.ndim)
    if index.ndim != x.ndim or any(n > x.shape[i] for i, n in enumerate(index.shape) if i != axis):
        raise ValueError(
            f"gather takes indices of {x.ndim} axes that are no longer than those of an array of shape "
            f"{tuple(x.shape)}, but for axis {dim}; these have the shape {tuple(index.shape)}{at_line(user_line())}"
        )
    return np.take_along_axis(leading(x, index, axis), index, axis)


def take_along_dim(x: Any, indices: Any, dim: int | None = None) -> Any:
    """The elements at indices along an axis, of all elements in a row without one."""
    return np.take_along_axis(x, indices, dim)


def diag(x: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    return np.diag(x, diagonal)


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonals in the plane of two axes, along a new last axis."""
    return np.diagonal(x, offset, dim1, dim2)


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with vectors along the last axis on their diagonals."""
    size = x.shape[-1] + abs(offset)
    at = np.eye(size, size, offset, dtype=bool)[max(-offset, 0) : size - max(offset, 0)]
    embedded = np.where(at, np.expand_dims(x, -1), np.zeros((), x.dtype))
    rows = np.zeros((*x.shape[:-1], max(-offset, 0), size), x.dtype)
    below = np.zeros((*x.shape[:-1], max(offset, 0), size), x.dtype)
    return np.moveaxis(np.concatenate([rows, embedded, below], -2), (-2, -1), (dim1, dim2))


def tril(x: Any, diagonal: int = 0) -> Any:
    """Matrices with zeros above a diagonal."""
    return np.tril(x, diagonal)


def triu(x: Any, diagonal: int = 0) -> Any:
    """Matrices with zeros below a diagonal."""
    return np.triu(x, diagonal)


# Put together


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Arrays joined along an axis."""
    return np.concatenate(tensors, dim)


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Arrays joined along a new axis."""
    return np.stack(tensors, dim)


def meshgrid(*tensors: Any, indexing: Any = "ij") -> tuple[Any, ...]:
    """The coordinates of a grid, one array for each vector."""
    vectors: Any = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    return tuple(np.meshgrid(*vectors, indexing=indexing))


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Arrays broadcast to their common shape."""
    return tuple(np.broadcast_arrays(*tensors))


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of the elements of vectors, one in each row."""
    if len(tensors) == 1:
        return tensors[0]
    return np.stack([np.ravel(x) for x in np.meshgrid(*tensors, indexing="ij")], -1)


METHODS = {
    "split": split, "split_with_sizes": split_with_sizes, "chunk": chunk, "tensor_split": tensor_split,
    "hsplit": hsplit, "vsplit": vsplit, "dsplit": dsplit, "unbind": unbind, "select": select, "narrow": narrow,
    "index_select": index_select, "masked_select": masked_select, "take": take, "gather": gather,
    "take_along_dim": take_along_dim, "diag": diag, "diagonal": diagonal, "diagflat": np.diagflat,
    "diag_embed": diag_embed, "tril": tril, "triu": triu,
}  # fmt: skip
FUNCTIONS = {
    "cat": cat, "concat": cat, "concatenate": cat, "stack": stack, "hstack": np.hstack, "vstack": np.vstack,
    "dstack": np.dstack, "column_stack": np.column_stack, "meshgrid": meshgrid,
    "broadcast_tensors": broadcast_tensors, "cartesian_prod": cartesian_prod, "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d, "atleast_3d": np.atleast_3d,
}  # fmt: skip
