"""The methods of NumPy's ufuncs on tracers: `reduce`, `accumulate`, `outer` and `at`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.primitive import Primitive
from ..core.trace import Tracer
from ..core.types import Shape
from ..ops import elementwise as e
from ..ops import reductions as r
from ..ops.shapes import full, full_like
from .dispatch import TABLE, missing
from .indexing import add_at
from .promotion import asarray, broadcast_to, cast, reshaped
from .reductions import NO_VALUE, accumulator, cumulate, kept_shape, reduce_with_options, truth
from .ufuncs import deliver, not_assignable, resolved_dtypes


def _log_sum_exp(x: Tracer, axes: Shape, is_natural: bool) -> Tracer:
    """The logarithm of a sum of exponentials, of which the largest is taken out first, so that none overflows."""
    if 0 in (x.shape[a] for a in axes):
        return full(tuple(n for i, n in enumerate(x.shape) if i not in axes), -math.inf, x.dtype)
    exp, log = (e.exp, e.log) if is_natural else (e.exp2, e.log2)
    top = e.stop_gradient(r.reduce_max(x, axes=axes))
    base = e.select(e.isfinite(top), top, full_like(top, 0))
    total = r.reduce_sum(exp(e.sub(x, broadcast_to(reshaped(base, kept_shape(x.shape, axes)), x.shape))), axes=axes)
    # Where all is -inf, so is the result; its derivative is 0.
    is_empty = e.eq(total, full_like(total, 0))
    result = e.add(log(e.select(is_empty, full_like(total, 1), total)), base)
    return e.select(is_empty, full_like(result, -math.inf), result)


def reduce(
    ufunc: np.ufunc,
    implementation: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Any:
    """`ufunc.reduce`."""
    if out.__class__ is tuple:
        (out,) = out
    if ufunc in (np.add, np.multiply):
        reduction = TABLE[np.sum if ufunc is np.add else np.prod]
        return reduction(array, axis, dtype, out, keepdims, initial, where)
    x = asarray(array)
    if ufunc in (np.logical_and, np.logical_or) or (ufunc in (np.bitwise_and, np.bitwise_or) and x.dtype.kind == "b"):
        every = ufunc in (np.logical_and, np.bitwise_and)
        primitive: Any = r.reduce_and if every else r.reduce_or
        return reduce_with_options(truth(x), primitive, axis, out, keepdims, initial, where, every, ufunc)
    x = x if dtype is None else cast(x, np.dtype(dtype))
    if ufunc in (np.maximum, np.minimum):
        primitive = r.reduce_max if ufunc is np.maximum else r.reduce_min
        return reduce_with_options(x, primitive, axis, out, keepdims, initial, where, None, ufunc)
    if ufunc in (np.logaddexp, np.logaddexp2):
        x = cast(x, resolved_dtypes(ufunc, (x, x))[0])
        primitive = functools.partial(_log_sum_exp, is_natural=ufunc is np.logaddexp)
        return reduce_with_options(x, primitive, axis, out, keepdims, initial, where, -math.inf, ufunc)
    raise missing(f"{ufunc.__name__}.reduce")


def accumulate(
    ufunc: np.ufunc, implementation: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """`ufunc.accumulate`."""
    if out.__class__ is tuple:
        (out,) = out
    x = asarray(array)
    if ufunc in (np.add, np.multiply):
        x = cast(x, accumulator(x.dtype) if dtype is None else np.dtype(dtype))
    elif dtype is not None:
        x = cast(x, np.dtype(dtype))
    if ufunc not in _ACCUMULATIONS:
        raise missing(f"{ufunc.__name__}.accumulate")
    dtype = x.dtype
    if dtype.kind == "b":
        x = cast(x, np.dtype(np.int8))
    elif ufunc is np.logaddexp:
        x = cast(x, dtype := resolved_dtypes(ufunc, (x, x))[0])
    return deliver(cast(cumulate(x, _ACCUMULATIONS[ufunc], axis), dtype), out, ufunc.__name__)


_ACCUMULATIONS: dict[np.ufunc, Primitive] = {
    np.add: r.cumsum,
    np.multiply: r.cumprod,
    np.maximum: r.cummax,
    np.minimum: r.cummin,
    np.logaddexp: r.cumlogsumexp,
}


def outer(ufunc: np.ufunc, implementation: Any, x: Any, y: Any, **options: Any) -> Any:
    """`ufunc.outer`: the ufunc of every pair of elements."""
    x, y = asarray(x), asarray(y)
    return ufunc(reshaped(x, x.shape + (1,) * y.ndim), y, **options)


def at(ufunc: np.ufunc, implementation: Any, target: Any, index: Any, *values: Any) -> None:
    """`ufunc.at`: an in-place operation at indices, of which none is skipped where they repeat."""
    if ufunc not in (np.add, np.subtract):
        raise missing(f"{ufunc.__name__}.at")
    if target.__class__ is not Tracer:
        raise not_assignable(target, f"{ufunc.__name__}.at")
    add_at(target, index, values[0] if ufunc is np.add else np.negative(values[0]))


METHODS: dict[str, Callable[..., Any]] = {"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at}
