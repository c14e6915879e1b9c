"""`numpy.linalg`: norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...core.types import is_complex, is_inexact
from ...ops import linalg as ops
from ...ops.elementwise import root
from ..dispatch import implements
from ..manipulation import normal_axes
from ..promotion import asarray, cast

__all__ = ["matrix_norm", "norm", "vector_norm"]


def _abs(x: Tracer) -> Tracer:
    return np.abs(x)


def _largest(sizes: Any, axes: Any, keepdims: bool = False) -> Any:
    """The largest of sizes along axes; 0 if there are none."""
    return np.max(sizes, axes, keepdims=keepdims, **({} if sizes.size else {"initial": 0}))


def _vector_norm(x: Tracer, order: Any, axes: Any, keepdims: bool) -> Any:
    if order is None or order == 2:
        squares = np.square(x.real) + np.square(x.imag) if is_complex(x.dtype) else np.square(x)
        return root(np.sum(squares, axes, keepdims=keepdims))
    if order == math.inf:
        return _largest(_abs(x), axes, keepdims)
    if order == -math.inf:
        return np.min(_abs(x), axes, keepdims=keepdims)
    if order == 0:
        return np.sum(cast(x != 0, x.real.dtype), axes, keepdims=keepdims)
    if order == 1:
        return np.sum(_abs(x), axes, keepdims=keepdims)
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order {order!r} for vectors{at_line(user_line())}")
    sizes = _abs(x)
    if order < 0:
        # One element that is 0 makes the norm 0, as its limit is.
        has_zero = np.any(sizes == 0, axes, keepdims=True)
        sums = np.sum(np.where(has_zero, 1.0, sizes) ** order, axes, keepdims=True)
        result = np.where(has_zero, 0.0, sums ** (1.0 / order))
        return result if keepdims else np.squeeze(result, axes)[()]
    total = np.sum(sizes**order, axes, keepdims=keepdims)
    # Where the norm is 0, so is its derivative.
    is_zero = total == 0
    return np.where(is_zero, total, np.where(is_zero, 1.0, total) ** (1.0 / order))


def _of_singular_values(x: Any, order: Any) -> Any:
    if order == "nuc":
        return ops.nuclear_norm(x)
    return (_largest if order > 0 else np.min)(np.linalg.svdvals(x), -1)


def _matrix_norm(x: Tracer, order: Any, axes: Sequence[int], keepdims: bool) -> Any:
    row, column = axes
    if order in (None, "fro", "f"):
        return _vector_norm(x, 2, (row, column), keepdims)
    if order in (2, -2, "nuc"):
        result = _of_singular_values(np.moveaxis(x, (row, column), (-2, -1)), order)  # type: ignore[type-var]
        return np.expand_dims(result, (row, column)) if keepdims else result
    if order not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"Invalid norm order {order!r} for matrices{at_line(user_line())}")
    summed, other = (row, column) if abs(order) == 1 else (column, row)
    sums = np.sum(_abs(x), summed, keepdims=True)
    result = (_largest if order > 0 else np.min)(sums, other, keepdims=True)
    return result if keepdims else np.squeeze(result, (row, column))[()]


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of vectors or matrices; where it is 0, so is its derivative."""
    x = asarray(x)
    if not is_inexact(x.dtype):
        x = cast(x, np.dtype(np.float64))
    if axis is None:
        if ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1):
            return _vector_norm(x, 2, None, keepdims)
        if x.ndim > 2:
            raise ValueError(f"Improper number of dimensions to norm: {x.type}; give axis={at_line(user_line())}")
    axes = normal_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"Improper number of dimensions to norm.{at_line(user_line())}")
    return _matrix_norm(x, ord, axes, keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A norm of vectors along axes; where it is 0, so is its derivative."""
    x = asarray(x)
    x = x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))
    return _vector_norm(x, ord, normal_axes(axis, x.ndim), keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """A norm of the matrices in the last two axes."""
    x = asarray(x)
    x = x if is_inexact(x.dtype) else cast(x, np.dtype(np.float64))
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)
