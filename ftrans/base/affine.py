"""Affine: a function of the numbers 0, 1, 2, ... up to a size that is affine in their coordinates in a box.

The numbers are those of the places in the box, in row-major order.  Slices, transposes, reversals, broadcasts and
reshapes of arrays are such functions, and everything that is asked about them here is answered without an array.

Boxes are as coarse as can be: no axis has size 1, and no two neighbours could be one axis.  A function has exactly one
such box, so that equal functions are equal tuples.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]


class Affine(NamedTuple):
    """The function `offset + sum(strides * coordinates)` of the places of a box; see `affine`, which makes them."""

    offset: int
    box: Shape
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers the function is defined for."""
        return math.prod(self.box)


NOTHING = Affine(0, (0,), (0,))


def affine(offset: int, sizes: Iterable[int], strides: Iterable[int]) -> Affine:
    """The function over the coarsest box."""
    box: list[int] = []
    steps: list[int] = []
    for n, s in zip(sizes, strides, strict=True):
        if n == 0:
            return NOTHING
        if box and n > 1 and steps[-1] == s * n:
            box[-1] *= n
            steps[-1] = s
        elif n > 1:
            box.append(n)
            steps.append(s)
    return Affine(offset, tuple(box), tuple(steps))


def row_strides(shape: Sequence[int]) -> Shape:
    """By how much the number of a place grows along each axis."""
    return tuple(accumulate(reversed(shape[1:]), int.__mul__, initial=1))[::-1] if shape else ()


def coordinates(number: int, shape: Sequence[int]) -> Shape:
    """Where the place with this number is."""
    return tuple(number // r % n for n, r in zip(shape, row_strides(shape), strict=True))


def values(f: Affine) -> Any:
    """All values, as an array."""
    lines = [np.arange(0, n * s, s) if s else np.zeros(n, np.int64) for n, s in zip(f.box, f.strides, strict=True)]
    if not lines:
        return np.array([f.offset])
    lines[0] += f.offset
    return functools.reduce(np.add.outer, lines).reshape(-1)


def values_at(f: Affine, numbers: Any) -> Any:
    """The values of some numbers, an array."""
    if len(f.box) < 2:
        return f.offset + numbers.astype(np.int64) * (f.strides[0] if f.box else 0)
    if f.size <= 8 * numbers.size:
        return values(f)[numbers]
    steps = zip(f.box, row_strides(f.box), f.strides, strict=True)
    return f.offset + sum(numbers.astype(np.int64) // r % n * s for n, r, s in steps)


def bounds(f: Affine) -> tuple[int, int]:
    """The least and the largest value of a function that is defined for some number."""
    reach = [s * (n - 1) for n, s in zip(f.box, f.strides, strict=True)]
    return f.offset + sum(min(r, 0) for r in reach), f.offset + sum(max(r, 0) for r in reach)


def run_length(numbers: Any) -> int:
    """How many of the first numbers of an array lie in equal distances."""
    if numbers.size < 3:
        return int(numbers.size)
    step = int(numbers[1]) - int(numbers[0])
    end, block = 2, 16
    while end < numbers.size:
        others = np.diff(numbers[end - 1 : end + block]) != step
        if others.any():
            return end + int(others.argmax())
        end, block = end + block, 8 * block
    return int(numbers.size)


def detected(numbers: Any) -> Affine | None:
    """The function whose values an array has, if there is one."""
    if not numbers.size:
        return NOTHING
    sizes, strides = [], []
    rest = numbers
    while rest.size > 1:
        n = run_length(rest)
        if rest.size % n:
            return None
        sizes.append(n)
        strides.append(int(rest[1]) - int(rest[0]))
        rest = rest[::n]
    found = affine(int(numbers[0]), reversed(sizes), reversed(strides))
    last = found.offset + sum(s * (n - 1) for n, s in zip(found.box, found.strides, strict=True))
    return found if last == numbers[-1] and np.array_equal(values(found), numbers) else None


def is_surely_injective(f: Affine) -> bool:
    """Whether each axis, from the one with the smallest steps on, steps over all that the ones before it reach."""
    reach = 0
    for s, n in sorted((abs(s), n) for n, s in zip(f.box, f.strides, strict=True)):
        if s <= reach and n > 1:
            return False
        reach += s * (n - 1)
    return True


def inverse(f: Affine, space: int) -> Affine | None:
    """The inverse of a function that takes each value below `space` once; None for any other."""
    axes = sorted(zip(f.strides, f.box, row_strides(f.box), strict=True), key=lambda axis: -abs(axis[0]))
    sizes = [n for _, n, _ in axes]
    steps = tuple(abs(s) for s, _, _ in axes)
    if f.size != space or steps != row_strides(sizes):
        return None
    first = sum(r * (n - 1) for s, n, r in axes if s < 0)
    return affine(first, sizes, [r if s > 0 else -r for s, _, r in axes])


def in_coordinates(f: Affine, shape: Sequence[int]) -> tuple[Shape, list[tuple[int, Shape]]] | None:
    """A function to the places of `shape` as one that is affine in their coordinates, if it is.

    Returns:
        Coordinates of the first place; for each axis of a box, which may be finer than that of `f`, its size and by
        how much each coordinate grows.
    """
    marks = row_strides(shape)
    first = coordinates(f.offset, shape)
    low, high = list(first), list(first)
    steps: list[tuple[int, Shape]] = []
    for axis in zip(f.box, f.strides, strict=True):
        for n, s in _cut(*axis, marks):
            step = tuple(b - a for a, b in zip(first, coordinates(f.offset + s, shape), strict=True))
            steps.append((n, step))
            for j, d in enumerate(step):
                low[j] += min(d, 0) * (n - 1)
                high[j] += max(d, 0) * (n - 1)
    if all(a >= 0 and b < n for a, b, n in zip(low, high, shape, strict=True)):
        return first, steps
    return None


def _cut(n: int, s: int, marks: Iterable[int]) -> list[tuple[int, int]]:
    """An axis as several, as (size, stride), cut where the places behind it are a mark apart."""
    cut = []
    for mark in sorted(marks) if s else ():
        width, rest = divmod(mark, abs(s))
        if not rest and 1 < width < n and n % width == 0:
            cut.append((width, s))
            n, s = n // width, s * width
    return [(n, s), *reversed(cut)]


def composed(outer: Affine, inner: Affine) -> Affine | None:
    """`outer` of the values of `inner`; None if it is not affine in a box that is cut out of both."""
    if not inner.size:
        return NOTHING
    found = in_coordinates(inner, outer.box)
    if found is None:
        return None
    first, steps = found

    def value(place: Shape) -> int:
        return sum(s * c for s, c in zip(outer.strides, place, strict=True))

    return affine(outer.offset + value(first), [n for n, _ in steps], [value(step) for _, step in steps])


def side_by_side(a: Affine, b: Affine) -> list[tuple[int, int, int]] | None:
    """For each axis of a box, its size and the strides of two functions with one size; None if no box fits both."""
    if not a.size:
        return [(0, 0, 0)]
    left, right = (list(zip(f.box, f.strides, strict=True)) for f in (a, b))
    axes = []
    while left and right:
        (n, s), (m, t) = left.pop(), right.pop()
        k = min(n, m)
        if n % k or m % k:
            return None
        axes.append((k, s, t))
        if n > k:
            left.append((n // k, s * k))
        if m > k:
            right.append((m // k, t * k))
    return axes[::-1]


def weighted_sum(a: Affine, b: Affine, of_a: int, of_b: int) -> Affine | None:
    """`of_a * a + of_b * b` of two functions with one size; None if no box is fine enough for both."""
    axes = side_by_side(a, b)
    if axes is None:
        return None
    offset = of_a * a.offset + of_b * b.offset
    return affine(offset, [n for n, _, _ in axes], [of_a * s + of_b * t for _, s, t in axes])


class _Digits(NamedTuple):
    """A function that takes each value for the same number of times, and the values written in digits.

    Attributes:
        rest: what all values leave beyond their last digit.
        digits: for each place of a digit, the least digit, how many there are, and by how much the argument grows.
        start: the argument at the least digits.
        repeated: axes along which the value is the same, as (size, by how much the argument grows).
    """

    rest: int
    digits: list[tuple[int, int, int]]
    start: int
    repeated: list[tuple[int, int]]


def _in_digits(f: Affine, steps: Sequence[int]) -> _Digits | None:
    """`f` in digits that count these steps, each of which divides the one before; None if digits would carry over."""
    axes = [part for axis in zip(f.box, f.strides, strict=True) for part in _cut(*axis, steps)]
    arguments = row_strides([n for n, _ in axes])
    start = sum(r * (n - 1) for (n, s), r in zip(axes, arguments, strict=True) if s < 0)
    found = {abs(s): (n, r if s > 0 else -r) for (n, s), r in zip(axes, arguments, strict=True) if s}
    if len(found) < sum(1 for _, s in axes if s):
        return None
    rest = bounds(f)[0]
    digits = []
    for place, step in enumerate(steps):
        low, rest = divmod(rest, step)
        n, r = found.get(step, (1, 0))
        if place and low + n > steps[place - 1] // step:
            return None
        digits.append((low, n, r))
    return _Digits(rest, digits, start, [(n, r) for (n, s), r in zip(axes, arguments, strict=True) if not s])


def met(a: Affine, b: Affine) -> tuple[Affine, Affine] | None:
    """Where two functions have the same values: arguments of `a` and of `b`, pair by pair, in the order of `a`'s.

    Returns:
        Functions of the number of the pair, `NOTHING` if there is none; None if this takes a look at all values.
    """
    if not a.size or not b.size:
        return NOTHING, NOTHING
    steps = sorted({abs(s) for s in (*a.strides, *b.strides) if s}, reverse=True)
    if any(large % small for large, small in pairwise(steps)):
        return None
    left, right = _in_digits(a, steps), _in_digits(b, steps)
    if left is None or right is None:
        return None
    if left.rest != right.rest:
        return NOTHING, NOTHING
    start_a, start_b = left.start, right.start
    axes = [(n, r, 0) for n, r in left.repeated]
    for (low_a, n_a, r_a), (low_b, n_b, r_b) in zip(left.digits, right.digits, strict=True):
        low, end = max(low_a, low_b), min(low_a + n_a, low_b + n_b)
        if low >= end:
            return NOTHING, NOTHING
        n = end - low
        # The arguments of `a` have to grow.
        first = low if r_a >= 0 else end - 1
        start_a += r_a * (first - low_a)
        start_b += r_b * (first - low_b)
        axes.append((n, r_a, r_b) if r_a >= 0 else (n, -r_a, -r_b))
    axes.sort(key=lambda axis: -axis[1])
    axes += [(n, 0, r) for n, r in right.repeated]
    sizes = [n for n, _, _ in axes]
    return affine(start_a, sizes, [r for _, r, _ in axes]), affine(start_b, sizes, [r for _, _, r in axes])
