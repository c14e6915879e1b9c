"""Edges that meet in many lanes, joined by one product of matrices.

Where a result depends on all of a row and that row on all of an input, each element of the product is a sum over the
row.  If the maps of both edges are affine in the axes of their lanes, that sum is a `dot_general` of their values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...base.affine import row_strides, values_at
from ...base.index_map import IndexMap, Shape
from ...base.type_questions import is_plain
from ...core.trace import Tracer, current_builder
from ...ops.contractions import dot_general
from ..graph.arithmetic import Masked, Number, lifted, product, reshaped, unmasked
from ..graph.graph import Edge

# Sums over up to this many products with choices are made product by product.
_MOST_CHOSEN = 1_000_000


class _Axes(NamedTuple):
    """The steps of an affine edge along the axes of its lanes."""

    shape: Shape
    rows: Shape
    cols: Shape

    def refined(self, steps: Shape, marks: Shape) -> _Axes:
        """The same lanes, with axes split so that one of the two maps, which has these `steps`, also has `marks`."""
        shape: list[int] = []
        rows: list[int] = []
        cols: list[int] = []
        for n, row, col, step in zip(self.shape, self.rows, self.cols, steps, strict=True):
            inner = sorted({m // step for m in marks if step > 0 and m % step == 0 and step < m < step * n})
            parts = [1, *inner, n]
            if any(large % small for small, large in pairwise(parts)):
                parts = [1, n]
            for small, large in reversed([*pairwise(parts)]):
                shape.append(large // small)
                rows.append(row * small)
                cols.append(col * small)
        return _Axes(tuple(shape), tuple(rows), tuple(cols))


def contracted(outer: Edge, inner: Edge) -> Edge | None:
    """The product of two edges that meet at the same elements, as one edge; None if nothing is summed over.

    Args:
        outer: from a result to an array.
        inner: from this array to its operand.
    """
    a, b = _axes(outer), _axes(inner)
    if a is None or b is None or _start(outer.cols) != _start(inner.rows):
        return None
    a, b = a.refined(a.cols, b.rows), b.refined(b.rows, a.cols)
    meeting = _meeting(a, b)
    if meeting is None:
        return None
    summed = [(i, j) for i, j in meeting if not a.rows[i] and not b.cols[j]]
    count = math.prod(a.shape[i] for i, _ in summed)
    if count <= 1:
        return None
    is_chosen = outer.value.mask is not None or inner.value.mask is not None
    if is_chosen and outer.rows.size * inner.rows.size <= _MOST_CHOSEN * count:
        # A sum over products would let an infinite slope meet the zeros of what was not chosen.
        return None
    shared = [pair for pair in meeting if pair not in summed]
    of_a = [i for i in range(len(a.shape)) if i not in {i for i, _ in meeting}]
    of_b = [j for j in range(len(b.shape)) if j not in {j for _, j in meeting}]
    shape = (*(a.shape[i] for i, _ in shared), *(a.shape[i] for i in of_a), *(b.shape[j] for j in of_b))
    rows = (*(a.rows[i] for i, _ in shared), *(a.rows[i] for i in of_a), *(0 for _ in of_b))
    cols = (*(b.cols[j] for _, j in shared), *(0 for _ in of_a), *(b.cols[j] for j in of_b))
    return Edge(
        IndexMap.affine(shape, _start(outer.rows), rows, outer.rows.space),
        IndexMap.affine(shape, _start(inner.cols), cols, inner.cols.space),
        _value(outer, inner, summed, shared, (a.shape, b.shape)),
    )


def _value(
    outer: Edge,
    inner: Edge,
    summed: Sequence[tuple[int, int]],
    shared: Sequence[tuple[int, int]],
    shapes: tuple[Shape, Shape],
) -> Masked:
    if outer.value.is_number and inner.value.is_number:
        return product(product(outer.value, inner.value), Masked(float(math.prod(shapes[0][i] for i, _ in summed))))
    dtype = _dtype(outer.value.value, inner.value.value)
    left = unmasked(reshaped(outer.value, shapes[0]), shapes[0], dtype)
    right = unmasked(reshaped(inner.value, shapes[1]), shapes[1], dtype)
    builder = current_builder()
    assert builder is not None
    value: Tracer = dot_general(
        lifted(builder, left, shapes[0], dtype),
        lifted(builder, right, shapes[1], dtype),
        contract=(tuple(i for i, _ in summed), tuple(j for _, j in summed)),
        batch=(tuple(i for i, _ in shared), tuple(j for _, j in shared)),
    )
    return Masked(value)


def _dtype(*values: Any) -> Any:
    """The dtype of the product of two values, of which one is an array."""
    return np.result_type(*(x.dtype for x in values if not is_plain(x, Number)))


def _meeting(a: _Axes, b: _Axes) -> list[tuple[int, int]] | None:
    """The pairs of axes along which both edges move through the same elements; None if they do so differently."""
    of_a = sorted((s, a.shape[i], i) for i, s in enumerate(a.cols) if s)
    of_b = sorted((s, b.shape[j], j) for j, s in enumerate(b.rows) if s)
    if [(s, n) for s, n, _ in of_a] != [(s, n) for s, n, _ in of_b]:
        return None
    # Each element must be met once: a step is longer than all shorter ones together.
    reach = 0
    for step, size, _ in of_a:
        if step <= reach:
            return None
        reach += step * (size - 1)
    return [(i, j) for (_, _, i), (_, _, j) in zip(of_a, of_b, strict=True)]


def _axes(edge: Edge) -> _Axes | None:
    """The axes in which both maps of an edge are affine: the lanes, in the coarsest shape for that."""
    of_rows, of_cols = edge.rows.form, edge.cols.form
    if of_rows is None or of_cols is None or not edge.rows.size:
        return None
    steps = {row_strides((*form.box, 1))[i] for form in (of_rows, of_cols) for i in range(len(form.box))}
    ends = sorted({*steps, 1, edge.rows.size}, reverse=True)
    if any(high % low for high, low in pairwise(ends)):
        return None
    shape = tuple(high // low for high, low in pairwise(ends))
    lanes = np.array(ends[1:])
    rows, cols = (tuple((values_at(form, lanes) - form.offset).tolist()) for form in (of_rows, of_cols))
    return _Axes(shape, rows, cols)


def _start(map: IndexMap) -> int:
    assert map.form is not None
    return map.form.offset
