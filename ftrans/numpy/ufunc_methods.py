"""The methods of NumPy's ufuncs on tracers: `reduce`, `accumulate`, `reduceat`, `outer` and `at`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.foreign import NO_VALUE
from ..base.source import at_line, user_line
from ..core.trace import Tracer
from ..core.types import Shape, is_inexact
from ..core.witness import ConcretizationError, concretize
from ..ops import elementwise as e
from ..ops import reductions as r
from ..ops.broadcast import reduce_sum
from ..ops.literals import full, full_like
from ..ops.logsumexp import logsumexp
from ..ops.parts import concatenate
from .delivery import deliver, not_assignable
from .dispatch import TABLE
from .folds import accumulated, fold, folded_in_pairs, prefixes, written_in_turn
from .indexing import add_at, getitem, setitem
from .manipulation import normal_axis, reduced_axes
from .promotion import asarray, broadcast_to, cast, has_tracer, operand, reshaped
from .reductions import (
    accumulator,
    check_start,
    kept_shape,
    largest,
    reduce_with_options,
    smallest,
    sum_of_elements,
    truth,
)
from .ufunc_entry import resolved_dtypes
from .views import Flat, assignable, view_of

_LOGICAL = {np.logical_and, np.logical_or, np.logical_xor}
# Operands may be grouped and ordered in any way, so NumPy reduces over several axes at once.
_REORDERABLE = {
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.hypot, np.logaddexp, np.logaddexp2,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, *_LOGICAL,
}  # fmt: skip
_GROUPABLE = {*_REORDERABLE, np.lcm}
# Updates of one place by turns, beyond which a ufunc that allows it first combines what belongs to that place.
_MOST_TURNS = 8


def _check_binary(ufunc: np.ufunc, method: str) -> None:
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError(
            f"{method} only supported for binary functions that return one result, not {ufunc.__name__}"
            + at_line(user_line())
        )


def _operand(ufunc: np.ufunc, array: Any, dtype: Any) -> Tracer:
    """The array in the dtype in which a ufunc combines its elements, and gives results."""
    x = asarray(array)
    if ufunc in _LOGICAL:
        if dtype is not None and np.dtype(dtype) != np.bool_:
            raise TypeError(f"{ufunc.__name__} gives booleans, not {np.dtype(dtype)}{at_line(user_line())}")
        return truth(x)
    if dtype is None:
        dtype = accumulator(x.dtype) if ufunc in (np.add, np.multiply) else resolved_dtypes(ufunc, (x, x))[-1]
    y = x if dtype == x.dtype else cast(x, np.dtype(dtype))
    compares = y.dtype.kind == "b" and x.dtype.kind != "b"
    if compares or any(d != y.dtype for d in resolved_dtypes(ufunc, (y, y))):
        raise TypeError(
            f"{ufunc.__name__} of {x.type} gives results of another dtype, which it cannot combine with elements"
            + at_line(user_line())
        )
    return y


# Reductions


def _log_sum_exp2(x: Tracer, axes: Shape) -> Tracer:
    """The logarithm of a sum of powers of 2, of which the largest is taken out first, so that none overflows."""
    if 0 in (x.shape[a] for a in axes):
        return full(tuple(n for i, n in enumerate(x.shape) if i not in axes), -math.inf, x.dtype)
    top = e.stop_gradient(largest(x, axes))
    base = e.select(e.isfinite(top), top, full_like(top, 0))
    total = reduce_sum(e.exp2(e.sub(x, broadcast_to(reshaped(base, kept_shape(x.shape, axes)), x.shape))), axes=axes)
    # Where all is -inf, so is the result; its derivative is 0.
    is_empty = e.eq(total, full_like(total, 0))
    result = e.add(e.log2(e.select(is_empty, full_like(total, 1), total)), base)
    return e.select(is_empty, full_like(result, -math.inf), result)


def _nan_free_extremum(x: Tracer, axes: Shape, is_largest: bool) -> Tracer:
    """The largest or smallest element that is not NaN, or NaN where none is."""
    extremum = largest if is_largest else smallest
    if not is_inexact(x.dtype):
        return extremum(x, axes=axes)
    missing = e.isnan(x)
    found = extremum(e.select(missing, full_like(x, -math.inf if is_largest else math.inf), x), axes=axes)
    return e.select(r.reduce_and(missing, axes=axes), full_like(found, math.nan), found)


# How to combine elements along axes at once.
_REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.maximum: largest,
    np.minimum: smallest,
    np.fmax: functools.partial(_nan_free_extremum, is_largest=True),
    np.fmin: functools.partial(_nan_free_extremum, is_largest=False),
    np.logaddexp: logsumexp,
    np.logaddexp2: _log_sum_exp2,
    np.logical_and: r.reduce_and,
    np.logical_or: r.reduce_or,
}


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
    _check_binary(ufunc, "reduce")
    if type(out) is tuple:
        (out,) = out
    x = asarray(array)
    if ufunc in (np.add, np.multiply):
        reduction = TABLE[np.sum if ufunc is np.add else np.prod]
        return reduction(x, axis, dtype, out, keepdims, initial, where)
    x = _operand(ufunc, x, dtype)
    if ufunc in (np.bitwise_and, np.bitwise_or) and x.dtype.kind == "b":
        ufunc = np.logical_and if ufunc is np.bitwise_and else np.logical_or
    if ufunc in _REDUCTIONS:
        return reduce_with_options(x, _REDUCTIONS[ufunc], axis, out, keepdims, initial, where, ufunc.identity, ufunc)
    return deliver(_folded(ufunc, x, axis, keepdims, initial, where), out, ufunc.__name__)


def _folded(ufunc: np.ufunc, x: Tracer, axis: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    """The elements along axes combined two at a time: from the first to the last, unless any order will do."""
    axes = reduced_axes(axis, x.ndim)
    if len(axes) > 1 and ufunc not in _REORDERABLE:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
            + at_line(user_line())
        )
    # That of integers, -1, stands for all bits.
    identity = None if ufunc.identity is None else np.array(ufunc.identity).astype(x.dtype)[()]
    start = check_start(ufunc, identity if initial is NO_VALUE else initial, where, x.shape, axes)
    rows = _as_rows(x, axes)
    first = None if start is None else operand(start, x.dtype, rows.shape[1:])
    mask = chosen = None if where is True else _as_rows(broadcast_to(truth(where), x.shape), axes)
    if mask is not None and identity is not None:
        rows, mask = e.select(mask, rows, full_like(rows, identity)), None
    if ufunc is np.subtract:
        y = _difference(rows, first, mask)
    elif ufunc in _GROUPABLE and mask is None and rows.shape[0]:
        y = folded_in_pairs(ufunc, rows)
        if first is not None and (rows.shape[0] == 1 or initial is not NO_VALUE):
            y = asarray(ufunc(first, y))
            # A number of the user's meets no identity: hypot(-3, 0) is 3.
            y = y if chosen is None else e.select(r.reduce_or(chosen, axes=(0,)), y, first)
    else:
        y = fold(ufunc, rows, first, mask)
    return reshaped(y, kept_shape(x.shape, axes)) if keepdims else y


def _as_rows(x: Tracer, axes: Shape) -> Tracer:
    """The elements along axes as rows, along a first axis."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    moved = asarray(np.transpose(x, (*axes, *rest)))
    return reshaped(moved, (math.prod(x.shape[a] for a in axes), *(x.shape[i] for i in rest)))


def _difference(rows: Tracer, first: Tracer | None, mask: Tracer | None) -> Any:
    """The first row less the others, as a sum."""
    if mask is not None:
        rows = e.select(mask, rows, full_like(rows, 0))
    if first is None:
        return sum_of_elements(_negated(rows), (0,))
    others = e.neg(rows)
    return sum_of_elements(concatenate(reshaped(first, (1, *first.shape)), others, axis=0), (0,))


def _negated(rows: Tracer) -> Tracer:
    """Rows to be added, of those to be subtracted from the first."""
    first, others = asarray(rows[:1]), asarray(rows[1:])
    return concatenate(first, e.neg(others), axis=0)


# Accumulations


def _cumulated(primitive: Any) -> Callable[[Tracer], Tracer]:
    return lambda rows: primitive(rows, axis=0, reverse=False)


def _nan_free_extrema(rows: Tracer, is_largest: bool) -> Tracer:
    extremum = r.cummax if is_largest else r.cummin
    if not is_inexact(rows.dtype):
        return extremum(rows, axis=0, reverse=False)
    missing = e.isnan(rows)
    found = e.select(missing, full_like(rows, -math.inf if is_largest else math.inf), rows)
    none_yet = cast(r.cummin(cast(missing, np.dtype(np.int8)), axis=0, reverse=False), np.dtype(bool))
    found = extremum(found, axis=0, reverse=False)
    return e.select(none_yet, full_like(found, math.nan), found)


def _differences(rows: Tracer) -> Tracer:
    return r.cumsum(_negated(rows), axis=0, reverse=False)


def _log_sums_of_powers(rows: Tracer) -> Tracer:
    scaled = e.mul(rows, full_like(rows, math.log(2)))
    return e.div(r.cumlogsumexp(scaled, axis=0, reverse=False), full_like(rows, math.log(2)))


_ACCUMULATIONS: dict[np.ufunc, Callable[[Tracer], Tracer]] = {
    np.add: _cumulated(r.cumsum),
    np.multiply: _cumulated(r.cumprod),
    np.maximum: _cumulated(r.cummax),
    np.minimum: _cumulated(r.cummin),
    np.logaddexp: _cumulated(r.cumlogsumexp),
    np.logaddexp2: _log_sums_of_powers,
    np.subtract: _differences,
    np.fmax: functools.partial(_nan_free_extrema, is_largest=True),
    np.fmin: functools.partial(_nan_free_extrema, is_largest=False),
}


def accumulate(
    ufunc: np.ufunc, implementation: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """`ufunc.accumulate`."""
    _check_binary(ufunc, "accumulate")
    if type(out) is tuple:
        (out,) = out
    x = _operand(ufunc, array, dtype)
    if not x.ndim:
        raise TypeError(f"cannot accumulate on a scalar{at_line(user_line())}")
    axis = _one_axis(axis, x.ndim, "accumulate")
    rows = asarray(np.moveaxis(x, axis, 0))  # type: ignore[type-var]
    if ufunc in _ACCUMULATIONS:
        # Booleans are extrema of small integers.
        rows = cast(rows, np.dtype(np.int8)) if rows.dtype.kind == "b" else rows
        y = cast(_ACCUMULATIONS[ufunc](rows), x.dtype)
    else:
        y = prefixes(ufunc, rows) if ufunc in _GROUPABLE else accumulated(ufunc, rows)
    return deliver(np.moveaxis(y, 0, axis), out, ufunc.__name__)


def _one_axis(axis: Any, ndim: int, method: str) -> int:
    """The axis of a method that takes one only, which NumPy lets be a tuple too, and None where there is no other."""
    given = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [normal_axis(a, ndim) for a in given]
    if len(axes) != 1:
        raise ValueError(f"{method} takes one axis, not axis={axis} of {ndim}{at_line(user_line())}")
    return axes[0]


def _known(indices: Any, what: str) -> Any:
    """Indices as integers of NumPy."""
    if not has_tracer(indices):
        return np.asarray(indices)
    indices = asarray(indices)
    return np.asarray(concretize(indices, what))


def reduceat(
    ufunc: np.ufunc,
    implementation: Any,
    array: Any,
    *positional: Any,
    indices: Any = None,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """`ufunc.reduceat`: reductions of slices, each from one index up to the next, or of one element if that is less."""
    # NumPy hands over `indices` by position too where the user has given it by name.
    indices, axis, dtype, out = (*positional, *(indices, axis, dtype, out)[len(positional) :])
    _check_binary(ufunc, "reduceat")
    if type(out) is tuple:
        (out,) = out
    x = _operand(ufunc, array, dtype)
    axis = _one_axis(axis, x.ndim, "reduceat")
    rows = asarray(np.moveaxis(x, axis, 0))  # type: ignore[type-var]
    starts = _known(indices, "the slices reduced at")
    for i in starts:
        if not 0 <= i < rows.shape[0]:
            raise IndexError(
                f"index {i} out-of-bounds in {ufunc.__name__}.reduceat [0, {rows.shape[0]}){at_line(user_line())}"
            )
    return deliver(np.moveaxis(_segments_reduced(ufunc, rows, starts), 0, axis), out, ufunc.__name__)


def _segments_reduced(ufunc: np.ufunc, rows: Tracer, starts: Any) -> Any:
    """The reductions of the rows from each start to the next; segments of one length are reduced together."""
    ends = np.append(starts[1:], rows.shape[0])
    lengths = np.maximum(ends - starts, 1)
    parts, places = [], []
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        group = getitem(rows, starts[chosen][:, None] + np.arange(length))
        parts.append(ufunc.reduce(group, 1, dtype=rows.dtype, initial=None))
        places.append(chosen)
    if not parts:
        return getitem(rows, slice(0))
    return getitem(asarray(np.concatenate(parts)), np.argsort(np.concatenate(places)))


def outer(ufunc: np.ufunc, implementation: Any, x: Any, y: Any, **options: Any) -> Any:
    """`ufunc.outer`: the ufunc of every pair of elements."""
    if ufunc.nin != 2:
        raise ValueError(
            f"outer product only supported for binary functions, not {ufunc.__name__}{at_line(user_line())}"
        )
    x, y = asarray(x), asarray(y)
    return ufunc(reshaped(x, x.shape + (1,) * y.ndim), y, **options)


# In place at indices


def at(ufunc: np.ufunc, implementation: Any, target: Any, index: Any, *values: Any) -> None:
    """`ufunc.at`: an in-place operation at indices, of which none is skipped where they repeat."""
    if len(values) != ufunc.nin - 1 or ufunc.nout != 1:
        raise ValueError(
            f"{ufunc.__name__}.at takes the array, indices and {ufunc.nin - 1} more operands{at_line(user_line())}"
        )
    if type(target) is not Tracer:
        raise not_assignable(target, f"{ufunc.__name__}.at")
    x = asarray(target)
    operands = [asarray(v) for v in values]
    result = resolved_dtypes(ufunc, (x, *operands))[-1]
    if not np.can_cast(result, x.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast ufunc '{ufunc.__name__}' output from {result!r} to {x.dtype!r} with casting rule "
            f"'same_kind'; the array that is assigned to keeps its dtype, so convert it first by .astype"
            + at_line(user_line())
        )
    if ufunc in (np.add, np.subtract) and x.dtype.kind != "b":
        add_at(x, index, values[0] if ufunc is np.add else np.negative(operands[0]))
        return
    # Where the elements are in the array as one line, whatever the index is made of.
    own = np.arange(x.size).reshape(x.shape)
    places = asarray(getitem(asarray(own), index)) if has_tracer(index) else own[index]
    flat = view_of(assignable(x), Flat())
    spread = [reshaped(broadcast_to(v, places.shape), (places.size,)) for v in operands]
    try:
        known = _known(places, "places in an array from").reshape(-1)
    except ConcretizationError:
        every = reshaped(places, (places.size,))
        setitem(flat, Ellipsis, written_in_turn(ufunc, asarray(flat), every, *(spread or [None])))
        return
    if known.size:
        _update_known(ufunc, flat, known, spread)


def _update_known(ufunc: np.ufunc, flat: Any, places: Any, values: list[Tracer]) -> None:
    """Update elements at known places, all that occur for the n-th time at once."""
    order = np.argsort(places, kind="stable")
    _, starts, counts = np.unique(places[order], return_index=True, return_counts=True)
    if ufunc in _REORDERABLE and counts.max() > _MOST_TURNS:
        # What belongs to one place is combined first, so that each occurs once.
        joined = asarray(_segments_reduced(ufunc, getitem(values[0], order), starts))
        _update_known(ufunc, flat, places[order][starts], [joined])
        return
    turn = np.empty(order.size, int)
    turn[order] = np.arange(order.size) - np.repeat(starts, counts)
    for n in range(counts.max()):
        now = np.flatnonzero(turn == n)
        new = ufunc(flat[places[now]], *(getitem(v, now) for v in values))
        setitem(flat, places[now], cast(asarray(new), flat.dtype))


METHODS: dict[str, Callable[..., Any]] = {
    "reduce": reduce,
    "accumulate": accumulate,
    "reduceat": reduceat,
    "outer": outer,
    "at": at,
}
