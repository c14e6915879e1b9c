"""Pieces made: the words in which primitives say which elements of a result depend on which of an operand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .affine import Affine, Shape, affine, detected, row_strides, values
from .index_map import IndexMap, Piece

# Up to so many lanes are listed.
MOST_LISTED = 10_000_000

# Two numbers for each lane of a part: one for the result and one for the operand.
Part = tuple[Any, Any]
Axes = tuple[int, int]


def each_on_itself(shape: Shape, factor: float | None = 1.0) -> list[Piece]:
    """Each element of a result depends on that of the operand at the same place, and is the same by default."""
    lanes = IndexMap.identity(shape)
    return [Piece(lanes, lanes, factor)] if lanes.size else []


def read_from(cols: IndexMap) -> list[Piece]:
    """The lanes, which are the elements of the result, are elements of the operand."""
    return [Piece(IndexMap.identity(cols.shape), cols, 1.0)] if cols.size else []


def written_to(rows: IndexMap) -> list[Piece]:
    """The lanes, which are the elements of the operand, are added to elements of the result."""
    return [Piece(rows, IndexMap.identity(rows.shape), 1.0)] if rows.size else []


def aligned(
    result: Shape,
    operand: Shape,
    axes: Sequence[Axes],
    along: Mapping[Axes, Part | None] | None = None,
    factor: float | None = None,
) -> list[Piece]:
    """Elements depend on those at the same place along some axes, and on all along the others.

    Args:
        result: shape of the result.
        operand: shape of the operand.
        axes: pairs of an axis of the result and one of the operand of the same size.
        along: for other pairs of axes, the places along both that depend on each other, as two arrays; None for all.
        factor: the derivative, where it is known.

    Places that are not affine are listed for each lane.  Where that would be too many lanes, elements depend on all
    along these axes.
    """
    listed = {pair: places for pair, places in (along or {}).items() if places is not None}
    partners = dict([*axes, *listed])
    strides = row_strides(operand)
    parts: list[Part] = []
    for i, (n, row) in enumerate(zip(result, row_strides(result), strict=True)):
        col = strides[partners[i]] if i in partners else 0
        places = listed.get((i, partners[i])) if i in partners else None
        parts.append((steps(n, row), steps(n, col)) if places is None else (places[0] * row, places[1] * col))
    mixed = [j for j in range(len(operand)) if j not in partners.values()]
    parts += [(steps(operand[j], 0), steps(operand[j], strides[j])) for j in mixed]
    if listed and not can_be_listed(parts):
        return aligned(result, operand, axes)
    return combined(parts, math.prod(result), math.prod(operand), factor)


def triangle(n: int, is_lower: bool = True) -> Part | None:
    """Places along an axis of `n` elements with those up to them, or from them on; None if they are too many."""
    if n * (n + 1) // 2 > MOST_LISTED:
        return None
    return np.tril_indices(n) if is_lower else np.triu_indices(n)


def turned(pieces: Sequence[Piece]) -> list[Piece]:
    """The operand depends on the result as the result did on it."""
    return [Piece(piece.cols, piece.rows, piece.factor) for piece in pieces]


def steps(n: int, stride: int) -> Affine:
    """The numbers 0, `stride`, 2 `stride`, ..., `n` of them."""
    return affine(0, (n,), (stride,))


def combined(parts: Sequence[Part], rows: int, cols: int, factor: float | None = None) -> list[Piece]:
    """A lane for each combination of lanes of the parts; its elements are the sums of what the parts say.

    Args:
        parts: for each part, what it adds to the element of the result and to that of the operand, each as an array
            or a function of the number of the lane.
        rows: size of the result.
        cols: size of the operand.
        factor: the derivative, where it is known.
    """
    shape = tuple(part.size for part, _ in parts)
    if 0 in shape:
        return []
    return [Piece(_sums([r for r, _ in parts], shape, rows), _sums([c for _, c in parts], shape, cols), factor)]


def can_be_listed(parts: Sequence[Part]) -> bool:
    """Whether the combinations of lanes are not too many to be listed, or need not be because all parts are affine."""
    few = math.prod(part.size for part, _ in parts) <= MOST_LISTED
    return few or all(_form(part) is not None for pair in parts for part in pair)


def _form(part: Any) -> Affine | None:
    return part if isinstance(part, Affine) else detected(part)


def _sums(parts: Sequence[Any], shape: Shape, space: int) -> IndexMap:
    """From combinations of lanes to the sums of what the parts say."""
    found = [_form(part) for part in parts]
    forms = [form for form in found if form is not None]
    if len(forms) == len(found):
        box = tuple(n for form in forms for n in form.box)
        strides = tuple(s for form in forms for s in form.strides)
        return IndexMap.affine(box, sum(form.offset for form in forms), strides, space).reshaped(shape)
    total: Any = np.zeros((), np.int64)
    for part in parts:
        total = np.add.outer(total, values(part) if isinstance(part, Affine) else part)
    return IndexMap.of(total, space)
