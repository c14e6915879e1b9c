"""The patterns of loops of any number of steps, from that of one step.

A carry depends on what the carries before it depend on: a product of boolean matrices, for any number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...base.index_map import Piece
from ...base.pieces import MOST_LISTED, Part, aligned, combined, steps
from ...control.subprograms import cut
from ...core.program import Program
from ...core.types import ArrayType
from .boolean import Pattern, TooMany, bounded, closure, pieces_of

Pieces = list[list[list[Piece]]]

# What depends on more pairs of elements than this is taken to depend on all.
_MOST_ENTRIES = 4_000_000


def of_while(step: Pattern, body: Program, consts: int) -> Pieces | None:
    """Pieces for the results of a loop that runs any number of times, and for the operands of its body.

    Args:
        step: which results of the body depend on which of its operands.
        body: the body.
        consts: how many of its first operands are the same in each step.
    """
    fixed = sum(t.size for t in body.in_types[:consts])
    try:
        reached = closure(step[:, fixed:], _MOST_ENTRIES)
        total = bounded(_beside(reached @ step[:, :fixed], reached), _MOST_ENTRIES)
    except TooMany:
        return None
    return [[pieces_of(part) for part in row] for row in _cut(total, body.out_types, body.in_types)]


def of_scan(step: Pattern, program: Program, consts: int, carries: int, length: int, reverse: bool) -> Pieces | None:
    """Pieces for the results and operands of a loop over sequences of this length.

    What a step takes from steps before it, it is taken to have from all of them.

    Args:
        step: which results of the body depend on which of its operands.
        program: the body.
        consts: how many of its first operands are the same in each step.
        carries: how many of the next come from the step before.
        length: the number of steps.
        reverse: whether the last step comes first.
    """
    if not length:
        return None
    fixed, carry, xs = cut(program.in_types, consts, carries)
    after, ys = cut(program.out_types, carries)
    rows = np.cumsum([0, *(sum(t.size for t in types) for types in (after, ys))])
    cols = np.cumsum([0, *(sum(t.size for t in types) for types in (fixed, carry, xs))])
    (to_carry, to_ys) = ([step[a:b, c:d] for c, d in pairwise(cols)] for a, b in pairwise(rows))
    try:
        reached = closure(to_carry[1], _MOST_ENTRIES, length)
        by_carry = bounded(to_ys[1] @ reached, _MOST_ENTRIES)
        carry_by_fixed = bounded(reached @ to_carry[0], _MOST_ENTRIES)
        carry_by_xs = bounded(reached @ to_carry[2], _MOST_ENTRIES)
        ys_by_fixed = bounded(to_ys[0] + by_carry @ to_carry[0], _MOST_ENTRIES)
        ys_by_earlier = bounded(by_carry @ to_carry[2], _MOST_ENTRIES)
    except TooMany:
        return None
    results = []
    of_operands = _cut(_beside(carry_by_fixed, reached), after, [*fixed, *carry])
    for row, of_xs in zip(of_operands, _cut(carry_by_xs, after, xs), strict=True):
        results.append([*map(pieces_of, row), *(_from_steps(part, length) for part in of_xs)])
    of_operands = _cut(_beside(ys_by_fixed, by_carry), ys, [*fixed, *carry])
    of_steps = zip(_cut(ys_by_earlier, ys, xs), _cut(to_ys[2], ys, xs), strict=True)
    for row, (earlier, now) in zip(of_operands, of_steps, strict=True):
        between = [_between_steps(*parts, length, reverse) for parts in zip(earlier, now, strict=True)]
        results.append([*(_to_steps(part, length) for part in row), *between])
    return results


def _cut(pattern: Pattern, results: Sequence[ArrayType], operands: Sequence[ArrayType]) -> list[list[Pattern]]:
    """The part of a pattern for each result and operand."""
    rows, cols = (np.cumsum([0, *(t.size for t in types)]) for types in (results, operands))
    return [[pattern[a:b, c:d] for c, d in pairwise(cols)] for a, b in pairwise(rows)]


def _beside(a: Pattern, b: Pattern) -> Pattern:
    import scipy.sparse as sp

    return sp.hstack([a, b], format="csr")


def _from_steps(pattern: Pattern, length: int) -> list[Piece]:
    """Elements of a result depend on elements of each step."""
    return _repeated(pattern, (steps(length, 0), steps(length, pattern.shape[1])), 1, length)


def _to_steps(pattern: Pattern, length: int) -> list[Piece]:
    """Elements of each step depend on elements of an operand."""
    return _repeated(pattern, (steps(length, pattern.shape[0]), steps(length, 0)), length, 1)


def _between_steps(earlier: Pattern, now: Pattern, length: int, reverse: bool) -> list[Piece]:
    """Elements of each step depend on elements of the same step, and on those of all steps before it."""
    height, width = now.shape
    same = _repeated(now, (steps(length, height), steps(length, width)), length, length)
    if not earlier.nnz:
        return same
    if length * (length - 1) // 2 * earlier.nnz > MOST_LISTED:
        return aligned((length * height,), (length * width,), [])
    later, before = np.tril_indices(length, -1)
    if reverse:
        later, before = length - 1 - later, length - 1 - before
    return [*same, *_repeated(earlier, (later * height, before * width), length, length)]


def _repeated(pattern: Pattern, part: Part, rows: int, cols: int) -> list[Piece]:
    """A pattern at several places of arrays that have so many times its rows and columns."""
    return combined([part, pattern.tocoo().coords], rows * pattern.shape[0], cols * pattern.shape[1])
