"""Folds: a ufunc of two operands applied along an axis, from the first element to the last or as pairs.

What NumPy's `reduce` and `accumulate` do with a ufunc for which no primitive does it at once.  Short axes become as
many equations, long ones a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.program import Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType
from ..ops import elementwise as e
from ..ops.indexing import gather, scatter_set
from ..ops.parts import concatenate, slice_
from .promotion import asarray, cast, reshaped

# An axis of more elements than this becomes a loop.
_MOST_EQUATIONS = 16

Operation = Callable[[Any, Any], Any]


def _rows(x: Tracer, start: int, stop: int) -> Tracer:
    """Rows `start` to `stop` of `x`."""
    rest = x.ndim - 1
    bounds = {"start": (start, *(0,) * rest), "limit": (stop, *x.shape[1:]), "strides": (1,) * x.ndim}
    return slice_(x, **bounds)


def _row(x: Tracer, i: int) -> Tracer:
    return reshaped(_rows(x, i, i + 1), x.shape[1:])


def folded_in_pairs(operation: Operation, x: Tracer) -> Tracer:
    """All rows combined by an operation whose operands may be grouped and ordered in any way."""
    count = x.shape[0]
    while count > 1:
        half = count // 2
        combined = asarray(operation(_rows(x, 0, half), _rows(x, half, 2 * half)))
        x = concatenate(combined, _rows(x, 2 * half, count), axis=0) if count % 2 else combined
        count -= half
    return _row(x, 0)


def prefixes(operation: Operation, x: Tracer) -> Tracer:
    """Row `i` combines rows 0 to `i`, by an operation whose operands may be grouped in any way."""
    width, count = 1, x.shape[0]
    while width < count:
        combined = asarray(operation(_rows(x, 0, count - width), _rows(x, width, count)))
        x = concatenate(_rows(x, 0, width), combined, axis=0)
        width *= 2
    return x


def fold(operation: Operation, x: Tracer, first: Tracer | None, mask: Tracer | None) -> Tracer:
    """All rows combined from the first to the last, those where the mask holds.

    Args:
        operation: combines what was combined so far with a row.  Programs of it are kept, so it has to be hashable.
        x: the rows; at least one where there is no `first`.
        first: what the first row is combined with.
        mask: in the shape of `x`; needs `first`.
    """
    if first is None:
        first, x = _row(x, 0), _rows(x, 1, x.shape[0])
    rows = [x] if mask is None else [x, mask]
    if x.shape[0] > _MOST_EQUATIONS:
        program = _step(operation, first.type, mask is not None, False)
        return _scanned(program, first, rows)[0]
    for i in range(x.shape[0]):
        first = _combined(operation, first, *(_row(v, i) for v in rows))
    return first


def accumulated(operation: Operation, x: Tracer) -> Tracer:
    """Row `i` combines rows 0 to `i`, from the first to the last; `operation` is that of `fold`."""
    if not x.shape[0]:
        return x
    total, rest = _row(x, 0), _rows(x, 1, x.shape[0])
    if rest.shape[0] > _MOST_EQUATIONS:
        program = _step(operation, total.type, False, True)
        found = _scanned(program, total, [rest])[1]
        return concatenate(_rows(x, 0, 1), found, axis=0)
    results = [total]
    for i in range(rest.shape[0]):
        results.append(_combined(operation, results[-1], _row(rest, i)))
    return concatenate(*(reshaped(y, (1, *y.shape)) for y in results), axis=0)


def _combined(operation: Operation, total: Tracer, row: Tracer, mask: Tracer | None = None) -> Tracer:
    new = cast(asarray(operation(total, row)), total.dtype)
    return new if mask is None else e.select(mask, new, total)


def _scanned(step: Program, first: Tracer, rows: list[Tracer]) -> list[Any]:
    """What a loop over rows leaves, and what its steps keep."""
    # Loops bring much with them, and few programs fold many rows.
    from ..control.loops.scan import scan

    return scan.apply(step, [], [first], rows, rows[0].shape[0], False, 1)


@lru_cache(maxsize=1000)
def _step(operation: Operation, type: ArrayType, is_masked: bool, keeps: bool) -> Program:
    """One step of the loop: from what was combined so far and a row, what is combined now, twice where it is kept."""
    types = [type, type, *([type.with_dtype(np.bool_)] if is_masked else [])]
    builder = Builder(types)
    with building(builder):
        new = _combined(operation, *builder.inputs())
        return builder.finish([new, new] if keeps else [new], getattr(operation, "__name__", "step"))


def written_in_turn(operation: Operation, x: Tracer, places: Tracer, values: Tracer | None) -> Tracer:
    """`x[p] = operation(x[p], v)` for each of `places` and `values` in turn, where `x` has one axis."""
    rows = [places] if values is None else [places, values]
    program = _update(operation, x.type, tuple(v.type.with_shape(()) for v in rows))
    return _scanned(program, x, rows)[0]


@lru_cache(maxsize=1000)
def _update(operation: Callable[..., Any], type: ArrayType, of_rows: tuple[ArrayType, ...]) -> Program:
    builder = Builder([type, *of_rows])
    with building(builder):
        x, place, *value = builder.inputs()
        new = cast(asarray(operation(gather(x, place), *value)), type.dtype)
        return builder.finish([scatter_set(x, new, place)], getattr(operation, "__name__", "update"))
