"""Blocks of a matrix of derivatives: the parts for one result and one argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ...core.trace import Tracer
from ...core.types import ArrayType
from ...ops.parts import slice_
from ...ops.shapes import reshape


def part(x: Tracer, axis: int, start: int, size: int) -> Tracer:
    """Consecutive elements along an axis."""
    if size == x.shape[axis]:
        return x
    begins = tuple(start if i == axis else 0 for i in range(x.ndim))
    ends = tuple(start + size if i == axis else n for i, n in enumerate(x.shape))
    return slice_(x, start=begins, limit=ends, strides=(1,) * x.ndim)


def blocks_of(matrix: Tracer, heights: Sequence[ArrayType], widths: Sequence[ArrayType]) -> Iterator[Tracer]:
    """The blocks of a matrix, row by row.

    Args:
        matrix: the matrix.
        heights: types of the arrays whose elements its rows are, in order.
        widths: types of those of its columns.
    """
    tops, lefts = (list(accumulate((t.size for t in types), initial=0)) for types in (heights, widths))
    for s, top in zip(heights, tops, strict=False):
        rows = part(matrix, 0, top, s.size)
        for t, left in zip(widths, lefts, strict=False):
            yield reshape(part(rows, 1, left, t.size), shape=(*s.shape, *t.shape))
