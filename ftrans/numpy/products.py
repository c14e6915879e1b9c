"""Products of arrays: dot, matmul, einsum and their relatives, all by one contraction over labelled axes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.narrow_products import dtype_named, product_dtype
from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..ops.contractions import dot_general
from ..ops.shapes import transpose
from . import promotion
from .delivery import deliver
from .dispatch import implements, left_to_others
from .layouts import own
from .manipulation import normal_axes, normal_axis
from .promotion import asarray, cast, reshaped, strong_dtype

__all__ = [
    "convolve", "correlate", "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace",
    "vander", "vdot", "vecdot", "vecmat",
]  # fmt: skip

Labels = tuple[Any, ...]


def arranged(x: Tracer, labels: Labels, wanted: Labels) -> Tracer:
    """`x`, whose axes have labels, with its axes in another order."""
    if labels == wanted:
        return x
    return transpose(x, axes=tuple(labels.index(a) for a in wanted))


@lru_cache(maxsize=4096)
def _plan(x_labels: Labels, y_labels: Labels, out: Labels) -> tuple[dict[str, Any], Labels]:
    """Parameters of the contraction of two labelled arrays, and the labels of its result."""
    shared = [a for a in x_labels if a in y_labels]
    batch = [a for a in shared if a in out]
    contract = [a for a in shared if a not in out]
    result = (*batch, *(a for a in x_labels if a not in shared), *(a for a in y_labels if a not in shared))
    sides = [[tuple(labels.index(a) for a in group) for labels in (x_labels, y_labels)] for group in (contract, batch)]
    return {"contract": tuple(sides[0]), "batch": tuple(sides[1])}, result


def contract(x: Tracer, x_labels: Labels, y: Tracer, y_labels: Labels, out: Labels) -> Tracer:
    """The product of two arrays with labelled axes, summed over the labels that are not in `out`.

    An axis of size 1 is broadcast against one of the same label with another size.
    """
    for a in x_labels:
        if a in y_labels:
            m, n = x.shape[x_labels.index(a)], y.shape[y_labels.index(a)]
            if m == 1 != n:
                x, x_labels = _dropped(x, x_labels, a)
            elif n == 1 != m:
                y, y_labels = _dropped(y, y_labels, a)
    x, x_labels = _summed(x, x_labels, y_labels, out)
    y, y_labels = _summed(y, y_labels, x_labels, out)
    params, result = _plan(x_labels, y_labels, out)
    return arranged(product(x, y, **params), result, out)


def product(x: Tracer, y: Tracer, **axes: Any) -> Tracer:
    """`dot_general`, of float32 arrays in the dtype that `nn.autocast` says."""
    name = product_dtype()
    if name is None or x.dtype != np.float32:
        return dot_general(x, y, **axes)
    dtype = dtype_named(name)
    return cast(dot_general(cast(x, dtype), cast(y, dtype), **axes), x.dtype)


def _dropped(x: Tracer, labels: Labels, label: Any) -> tuple[Tracer, Labels]:
    i = labels.index(label)
    return reshaped(x, x.shape[:i] + x.shape[i + 1 :]), labels[:i] + labels[i + 1 :]


def _summed(x: Tracer, labels: Labels, other: Labels, out: Labels) -> tuple[Tracer, Labels]:
    """`x` summed over the labels that nothing else has."""
    alone = tuple(i for i, a in enumerate(labels) if a not in other and a not in out)
    if not alone:
        return x, labels
    total = np.sum(x, alone, x.dtype)
    return total, tuple(a for i, a in enumerate(labels) if i not in alone)


def _operands(*xs: Any) -> list[Any]:
    """Operands in their common dtype; unlike for ufuncs, a number of Python is an array of float64."""
    tracers = [asarray(x) for x in xs]
    dtype = strong_dtype(*tracers)
    return [cast(x, dtype) for x in tracers]


def _sizes_error(name: str, x: Tracer, y: Tracer) -> ValueError:
    return ValueError(f"{name}: shapes of {x.type} and {y.type} do not fit together{at_line(user_line())}")


@implements(np.matmul, np.linalg.matmul)
def matmul(x1: Any, x2: Any, /, *, axes: Any = None) -> Any:
    """The matrix product of the last two axes, over broadcast leading axes; `axes` names others of both and of it."""
    if not (promotion.is_operand(x1) and promotion.is_operand(x2)):
        return left_to_others(np.matmul, x1, x2)
    if axes is not None:
        counts = min(np.ndim(x1), 2), min(np.ndim(x2), 2)
        return _over_axes(np.matmul, x1, x2, axes, (*counts, sum(counts) - 2))
    x, y = _operands(x1, x2)
    if not x.ndim or not y.ndim:
        raise ValueError(f"matmul takes arrays with at least one axis, not {x.type} and {y.type}{at_line(user_line())}")
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise _sizes_error("matmul", x, y)
    if x.ndim <= 2 and y.ndim <= 2:
        return product(x, y, contract=((x.ndim - 1,), (0,)), batch=((), ()))
    return _stacked_product("matmul", x, ("i", "k")[2 - min(x.ndim, 2) :], y, ("k", "j")[: min(y.ndim, 2)])


def _over_axes(product: Callable[[Any, Any], Any], x1: Any, x2: Any, axes: Any, counts: tuple[int, int, int]) -> Any:
    """A product over other axes than the last ones; `counts` are those of both operands, and of the result."""
    places = [(a,) if np.ndim(a) == 0 else tuple(a) for a in axes] if isinstance(axes, list | tuple) else []
    if len(places) == 2 and not counts[2]:
        places.append(())
    if tuple(map(len, places)) != counts:
        first, second, last = counts
        raise ValueError(
            f"axes={axes} is no list of {first} and {second} axes of the operands and {last} of the result"
            + at_line(user_line())
        )
    *given, place = places
    x1, x2 = (np.moveaxis(x, p, (-2, -1)[2 - len(p) :]) for x, p in zip((x1, x2), given, strict=True))
    return np.moveaxis(product(x1, x2), (-2, -1)[2 - len(place) :], place)


def _stacked_product(name: str, x: Tracer, x_core: Labels, y: Tracer, y_core: Labels, summed: str = "k") -> Tracer:
    """A product over the last axes, which have labels, and over broadcast leading axes."""
    x_lead, y_lead = x.ndim - len(x_core), y.ndim - len(y_core)
    lead = max(x_lead, y_lead)
    try:
        np.broadcast_shapes(x.shape[:x_lead], y.shape[:y_lead])
    except ValueError:
        raise _sizes_error(name, x, y) from None
    out = (*range(lead), *(a for a in (*x_core, *y_core) if a != summed))
    return contract(x, (*range(lead - x_lead, lead), *x_core), y, (*range(lead - y_lead, lead), *y_core), out)


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The dot product: the sum over the last axis of `a` and the second-to-last of `b`."""
    x, y = _operands(a, b)
    if not x.ndim or not y.ndim:
        return deliver(np.multiply(x, y), out, "dot")
    place = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[place]:
        raise _sizes_error("dot", x, y)
    return deliver(product(x, y, contract=((x.ndim - 1,), (place,)), batch=((), ())), out, "dot")


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """The dot product of two flattened arrays, the first one conjugated."""
    x, y = _operands(a, b)
    return np.dot(np.ravel(x).conj(), np.ravel(y))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """The inner product: the sum over the last axes."""
    x, y = _operands(a, b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise _sizes_error("inner", x, y)
    return product(x, y, contract=((x.ndim - 1,), (y.ndim - 1,)), batch=((), ()))


@implements(np.outer, keeps_order=True)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """The outer product of two flattened arrays."""
    x, y = asarray(a), asarray(b)
    return deliver(np.multiply(reshaped(x, (x.size, 1)), reshaped(y, (1, y.size))), out, "outer")


@implements(np.linalg.outer)
def vector_outer(x1: Any, x2: Any, /) -> Any:
    """The outer product of two vectors."""
    x, y = asarray(x1), asarray(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"np.linalg.outer takes vectors, not {x.type} and {y.type}{at_line(user_line())}")
    return np.outer(x, y)


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The tensor dot product: the sum over the given axes."""
    x, y = _operands(a, b)
    if np.ndim(axes) == 0:
        count = operator.index(axes)
        axes = (tuple(range(x.ndim - count, x.ndim)), tuple(range(count)))
    x_axes, y_axes = (
        normal_axes(i if np.ndim(i) == 0 else tuple(i), v.ndim) for i, v in zip(axes, (x, y), strict=True)
    )
    if tuple(x.shape[i] for i in x_axes) != tuple(y.shape[i] for i in y_axes):
        raise ValueError(f"shape-mismatch for sum: axes {axes} of {x.type} and {y.type}{at_line(user_line())}")
    result = product(x, y, contract=(x_axes, y_axes), batch=((), ()))
    # NumPy reshapes a matrix, which gives an array even if it has no axes.
    return result if result.ndim else own(result, None)


@implements(np.vecdot, np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, axes: Any = None, keepdims: bool = False) -> Any:
    """The vector dot product along an axis, the first array conjugated."""
    if axes is not None:
        if keepdims and isinstance(axes, list | tuple) and len(axes) == 3:
            *axes, axis = axes
        result = _over_axes(np.vecdot, x1, x2, axes, (1, 1, 0))
        return np.expand_dims(result, axis) if keepdims else result
    x, y = _operands(x1, x2)
    if axis != -1:
        x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    if x.shape[-1:] != y.shape[-1:] or not x.ndim:
        raise _sizes_error("vecdot", x, y)
    result = _stacked_product("vecdot", x.conj(), ("k",), y, ("k",))
    return np.expand_dims(result, axis) if keepdims else result


def matvec(x1: Any, x2: Any, /, *, axes: Any = None) -> Any:
    """Matrix-vector products; leading axes are broadcast."""
    if axes is not None:
        return _over_axes(matvec, x1, x2, axes, (2, 1, 1))
    x, y = _operands(x1, x2)
    if x.ndim < 2 or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise _sizes_error("matvec", x, y)
    return _stacked_product("matvec", x, ("i", "k"), y, ("k",))


def vecmat(x1: Any, x2: Any, /, *, axes: Any = None) -> Any:
    """Vector-matrix products, the vectors conjugated; leading axes are broadcast."""
    if axes is not None:
        return _over_axes(vecmat, x1, x2, axes, (1, 2, 1))
    x, y = _operands(x1, x2)
    if not x.ndim or y.ndim < 2 or x.shape[-1] != y.shape[-2]:
        raise _sizes_error("vecmat", x, y)
    return _stacked_product("vecmat", x.conj(), ("k",), y, ("k", "j"))


if hasattr(np, "matvec"):
    matvec, vecmat = implements(np.matvec)(matvec), implements(np.vecmat)(vecmat)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: every element of `a` times all of `b`."""
    x, y = asarray(a), asarray(b)
    ndim = max(x.ndim, y.ndim)
    x_shape, y_shape = ((1,) * (ndim - v.ndim) + v.shape for v in (x, y))
    spread_x = reshaped(x, tuple(n for size in x_shape for n in (size, 1)))
    spread_y = reshaped(y, tuple(n for size in y_shape for n in (1, size)))
    product = np.multiply(spread_x, spread_y)
    return np.reshape(product, tuple(m * n for m, n in zip(x_shape, y_shape, strict=True)))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """The cross product of vectors of three elements, or of two."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _operands(a, b)
    x, y = np.moveaxis(x, normal_axis(axisa, x.ndim), -1), np.moveaxis(y, normal_axis(axisb, y.ndim), -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(
            f"cross products are of vectors with 2 or 3 elements, not {x.type} and {y.type}{at_line(user_line())}"
        )
    x0, x1, y0, y1 = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    last = x0 * y1 - x1 * y0
    if x.shape[-1] == y.shape[-1] == 2:
        return own(last, None)
    x2, y2 = (v[..., 2] if v.shape[-1] == 3 else None for v in (x, y))
    if x2 is None:
        parts = [x1 * y2, -(x0 * y2), last]
    elif y2 is None:
        parts = [-(x2 * y1), x2 * y0, last]
    else:
        parts = [x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, last]
    return np.stack(parts, axisc)


@implements(np.linalg.cross)
def vector_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three elements."""
    x, y = asarray(x1), asarray(x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ValueError(
            f"cross products are of vectors with 3 elements, not {x.type} and {y.type}{at_line(user_line())}"
        )
    return np.cross(x, y, axis=axis)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum along a diagonal."""
    return np.sum(np.diagonal(a, offset, axis1, axis2), -1, dtype, out)


@implements(np.linalg.trace)
def matrix_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums along the diagonals of matrices."""
    return np.trace(x, offset, -2, -1, dtype)


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix: the powers of the elements of a vector, as columns."""
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array or sequence, not {x.type}{at_line(user_line())}")
    count = x.size if N is None else operator.index(N)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    dtype = np.promote_types(x.dtype, np.int_)
    columns = [np.power(cast(x, dtype), int(p)) for p in powers]
    return np.stack(columns, 1) if columns else np.zeros_like(x, dtype, shape=(x.size, 0))


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """The discrete convolution of two vectors."""
    x, y = (np.atleast_1d(z) for z in _operands(a, v))
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ValueError(f"convolve takes vectors that are not empty, not {x.type} and {y.type}{at_line(user_line())}")
    if y.size > x.size:
        x, y = y, x
    m, n = y.size, x.size
    first_and_count = {"full": (0, n + m - 1), "same": (m - 1 - m // 2, n), "valid": (m - 1, n - m + 1)}
    if mode not in first_and_count:
        raise ValueError(f"mode must be 'full', 'same' or 'valid', not {mode!r}{at_line(user_line())}")
    start, count = first_and_count[mode]
    padded = np.pad(x, m - 1)
    windows = start + np.arange(count)[:, None] + np.arange(m)
    return padded[windows] @ y[::-1]


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors."""
    x, y = _operands(a, v)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"correlate takes vectors, not {x.type} and {y.type}{at_line(user_line())}")
    if y.size > x.size:
        return np.copy(np.conj(np.correlate(y, x, mode))[::-1])
    return np.convolve(x, np.conj(y)[::-1], mode)
