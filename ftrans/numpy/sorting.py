"""Functions that sort and search."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.foreign import NO_VALUE
from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import is_complex, is_inexact
from ..ops import sorting as s
from ..ops.indexing import take_along
from ..ops.literals import iota
from .dispatch import implements
from .manipulation import flip, normal_axis, ravel
from .promotion import asarray, cast, reshaped, strong_dtype
from .reductions import truth
from .selection import known_mask
from .ufuncs import subtract

__all__ = [
    "argpartition", "argsort", "argwhere", "flatnonzero", "lexsort", "nanargmax", "nanargmin", "nonzero",
    "partition", "searchsorted", "sort", "sort_complex",
]  # fmt: skip


def _sortable(a: Any, axis: Any, order: Any = None) -> tuple[Tracer, int]:
    x = asarray(a)
    if order is not None:
        raise ValueError(f"Cannot specify order when the array has no fields.{at_line(user_line())}")
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    return x, normal_axis(axis, x.ndim)


def _lexical_order(keys: Sequence[Tracer], axis: int) -> Tracer:
    """The indices that sort by the last of the keys, then by the one before it where that ties, and so on."""
    order = iota(shape=keys[0].shape, axis=axis, dtype=np.dtype(np.int64))
    for key in keys:
        order = take_along(order, s.argsort(take_along(key, order, axis), axis=axis, stable=True), axis)
    return order


def _complex_order(x: Tracer, axis: int) -> Tracer:
    """The indices that sort complex numbers: by real parts, then imaginary ones, those with NaN behind the others."""
    real, imag = asarray(x.real), asarray(x.imag)
    kind = asarray(2 * cast(asarray(np.isnan(real)), np.dtype(np.int8)) + np.isnan(imag))
    return _lexical_order((imag, real, kind), axis)


@implements(np.sort)
def _sorted(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Sort along an axis in increasing order."""
    x, axis = _sortable(a, axis, order)
    if is_complex(x.dtype):
        return take_along(x, _complex_order(x, axis), axis)
    return s.sort(x, axis=axis)


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    """Sort along an axis in increasing or decreasing order."""
    found = _sorted(a, axis, kind, order, stable=stable)
    return flip(found, -1 if axis is None else axis) if descending else found


@implements(np.argsort, constant=True)
def _order(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The indices that sort along an axis in increasing order."""
    x, axis = _sortable(np.atleast_1d(asarray(a)), axis, order)
    if is_complex(x.dtype):
        return _complex_order(x, axis)
    return s.argsort(x, axis=axis, stable=bool(stable) or kind in ("stable", "mergesort"))


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> Any:
    """The indices that sort along an axis in increasing or decreasing order.

    Unless a kind is given, equal elements keep their order, as the array API standard wants it.
    """
    stable = True if stable is None and kind is None else stable
    if not descending:
        return _order(a, axis, kind, order, stable=stable)
    if axis is None:
        a, axis = ravel(a), -1
    # The last of equal elements must come first in what is reversed.
    found = flip(_order(flip(a, axis), axis, kind, order, stable=stable), axis)
    return subtract(found.shape[axis] - 1, found)


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Sort along the last axis; the result is complex."""
    x = asarray(a)
    dtype = np.complex64 if x.dtype.char in "bhBH" else np.complex128
    return cast(asarray(np.sort(x)), x.dtype if is_complex(x.dtype) else np.dtype(dtype))


@implements(np.lexsort, constant=True)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The indices of a stable sort by several keys: the last is the primary key, the one before breaks ties, etc."""
    items = [asarray(k) for k in keys]
    if not items:
        raise TypeError(f"need sequence of keys with len > 0 in lexsort{at_line(user_line())}")
    if len({k.shape for k in items}) > 1:
        raise ValueError(f"all keys need to be the same shape{at_line(user_line())}")
    if not items[0].ndim:
        return np.zeros((), np.int64)[()]
    return _lexical_order(items, normal_axis(axis, items[0].ndim))


def _check_kth(x: Tracer, kth: Any, axis: int) -> None:
    size = x.shape[axis]
    if not x.size:
        return
    for k in np.ravel(kth) if np.ndim(kth) else (kth,):
        if not -size <= operator.index(k) < size:
            raise ValueError(f"kth(={k}) out of bounds ({size}){at_line(user_line())}")


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """Partition along an axis, so that element `kth` is in its sorted position; here all elements are."""
    x, axis = _sortable(a, axis, order)
    _check_kth(x, kth, axis)
    return np.sort(x, axis)


@implements(np.argpartition, constant=True)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """The indices that partition along an axis around element `kth`; here they sort."""
    x, axis = _sortable(a, axis, order)
    _check_kth(x, kth, axis)
    return np.argsort(x, axis)


@implements(np.searchsorted, constant=True)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """The indices where `v` is to be inserted so that `a` stays sorted."""
    table, values = asarray(a), asarray(v)
    if table.ndim != 1:
        raise ValueError(f"np.searchsorted looks values up in one axis, not in {table.type}{at_line(user_line())}")
    if sorter is not None:
        table = np.take(table, sorter)
    dtype = strong_dtype(table, values)
    if is_complex(dtype):
        raise TypeError(
            f"np.searchsorted of traced values takes real numbers, not {table.type} and {values.type}; search by the "
            f"real part{at_line(user_line())}"
        )
    return s.searchsorted(cast(table, dtype), cast(values, dtype), side=side)


def _nan_arg_extremum(extremum: Any, worst: float, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = asarray(a)
    if is_inexact(x.dtype):
        x = asarray(np.where(np.isnan(x), cast(asarray(worst), x.dtype), x))
    return extremum(x, axis, out, keepdims=keepdims)


@implements(np.nanargmax, constant=True)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
    """The index of the first maximum, ignoring NaN; 0 where all are NaN, for which NumPy raises."""
    return _nan_arg_extremum(np.argmax, -np.inf, a, axis, out, keepdims)


@implements(np.nanargmin, constant=True)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
    """The index of the first minimum, ignoring NaN; 0 where all are NaN, for which NumPy raises."""
    return _nan_arg_extremum(np.argmin, np.inf, a, axis, out, keepdims)


# What depends on values


@implements(np.nonzero, constant=True)
def nonzero(a: Any) -> Any:
    """The indices of the nonzero elements; the values must be known."""
    return np.nonzero(known_mask(truth(a)))


@implements(np.flatnonzero, constant=True)
def flatnonzero(a: Any) -> Any:
    """The indices into `a.ravel()` of the nonzero elements; the values must be known."""
    return np.flatnonzero(known_mask(truth(a)))


@implements(np.argwhere, constant=True)
def argwhere(a: Any) -> Any:
    """The indices of the nonzero elements, as rows; the values must be known."""
    return np.argwhere(known_mask(truth(a)))
