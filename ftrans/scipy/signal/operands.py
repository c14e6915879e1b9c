"""What the functions of `scipy.signal` ask of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from ...numpy.manipulation import normal_axis
from ...numpy.promotion import asarray, cast, strong_dtype
from ..entries import bad_argument, entering

implemented = entering(scipy.signal)


def inexact(*xs: Any) -> list[Any]:
    """Operands in the inexact dtype that all of them fit in, which has 32 bits or more."""
    given = [asarray(x) for x in xs]
    dtype = strong_dtype(*given)
    dtype = np.result_type(dtype, np.float32 if dtype.kind in "fc" else np.float64)
    return [cast(x, dtype) for x in given]


def vector(x: Any, name: str, function: str) -> Any:
    """Coefficients, of which there is one or more."""
    found = np.atleast_1d(asarray(x))
    if found.ndim != 1 or not found.size:
        raise bad_argument(f"{function}: {name} must be a vector that is not empty, not {found.type}")
    return found


def axis_of(x: Any, axis: Any) -> int:
    """An axis of `x`, which may be given from the end."""
    return normal_axis(axis, x.ndim)


def padded(x: Any, before: int, after: int, **options: Any) -> Any:
    """`x` with more elements along its last axis, zeros by default."""
    if before == after == 0:
        return x
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)], **options)


def extended(x: Any, count: int, kind: str) -> Any:
    """`x` continued by `count` elements on both sides along its last axis: "odd", "even", "constant" or "zeros"."""
    if count < 1:
        return x
    if kind in ("odd", "even") and count >= x.shape[-1]:
        raise bad_argument(f"an extension by {count} elements needs more elements than the {x.shape[-1]} of the signal")
    if kind == "zeros":
        return padded(x, count, count)
    first, last = x[..., :1], x[..., -1:]
    if kind == "constant":
        shape = (*x.shape[:-1], count)
        return np.concatenate([np.broadcast_to(first, shape), x, np.broadcast_to(last, shape)], -1)
    before, after = x[..., count:0:-1], x[..., -2 : -(count + 2) : -1]
    if kind == "odd":
        before, after = 2 * first - before, 2 * last - after
    return np.concatenate([before, x, after], -1)
