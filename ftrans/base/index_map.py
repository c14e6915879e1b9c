"""IndexMap: which element of an array each position of another one (its *lanes*) stands for.

The maps of slices, reshapes, transposes and broadcasts are affine in the coordinates of the lanes, or of a finer box
(`affine.py`); they are kept in that form and never written out.  All others are tables.  Maps are immutable, and equal
maps are one object.
"""

from __future__ import annotations

import math
import zlib
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from . import affine as forms
from .affine import Affine, Shape
from .forks import lock

# Elements of larger arrays are numbered in 64 bits.
_MOST_OF_32_BITS = 2**31
# What fits a table of this many times the lanes is looked up; what does not is searched for.
_MUCH_LARGER = 16
# Larger maps are not written out only to see how many of their lanes meet others.
_MOST_LOOKED_AT = 100_000_000


class IndexMap:
    """A map from lanes to elements of an array, both counted in row-major order.

    Attributes:
        shape: shape of the lanes.
        space: number of elements of the array.
        form: the map as an affine function of the number of the lane, or None if it is none.
    """

    __slots__ = ("__weakref__", "_injective", "_numbers", "form", "shape", "space")

    shape: Shape
    space: int
    form: Affine | None
    _numbers: Any
    _injective: bool | None

    @classmethod
    def of(cls, elements: Any, space: int) -> IndexMap:
        """The map to these elements, an array of integers, of an array of `space` elements.

        Raises:
            IndexError: an element is outside of the array.
        """
        elements = np.asarray(elements)
        numbers = elements.reshape(-1).astype(_dtype(space), casting="unsafe", copy=False)
        if numbers.size and (elements.min() < 0 or elements.max() >= space):
            raise IndexError(f"a map to an array of {space} elements has one outside of it")
        return _from_numbers(numbers, elements.shape, space)

    @classmethod
    def identity(cls, shape: Shape) -> IndexMap:
        """Each lane stands for the element at the same place."""
        size = math.prod(shape)
        return _from_form(forms.affine(0, (size,), (1,)), shape, size)

    @classmethod
    def affine(cls, shape: Shape, offset: int, strides: tuple[int, ...], space: int) -> IndexMap:
        """The map to the element `offset + sum(strides * coordinates)` for the coordinates of a lane.

        Raises:
            IndexError: an element is outside of the array.
        """
        form = forms.affine(offset, shape, strides)
        if form.size:
            low, high = forms.bounds(form)
            if low < 0 or high >= space:
                raise IndexError(f"a map to an array of {space} elements has one outside of it")
        return _from_form(form, shape, space)

    @property
    def size(self) -> int:
        """Number of lanes."""
        return math.prod(self.shape)

    @property
    def is_identity(self) -> bool:
        """Whether the lanes are all elements in their order, whatever the shapes."""
        return self.form == forms.affine(0, (self.space,), (1,))

    @property
    def is_injective(self) -> bool:
        """Whether no two lanes stand for one element."""
        if self._injective is None:
            self._injective = _is_injective(self)
        return self._injective

    def table(self) -> Any:
        """The elements, as an array of 64-bit integers of the shape of the lanes.  Not to be written to."""
        return self._flat().astype(np.int64, copy=False).reshape(self.shape)

    def after(self, inner: IndexMap) -> IndexMap:
        """The map from the lanes of `inner`, which point to lanes of this map, to its elements."""
        if inner.is_identity:
            return self.reshaped(inner.shape)
        if self.is_identity:
            return inner
        if self.form is not None and inner.form is not None:
            form = forms.composed(self.form, inner.form)
            if form is not None:
                return _from_form(form, inner.shape, self.space)
        lanes = inner._flat()
        found = self._numbers[lanes] if self.form is None else forms.values_at(self.form, lanes)
        return _from_numbers(found.astype(_dtype(self.space), copy=False), inner.shape, self.space)

    def reshaped(self, shape: Shape) -> IndexMap:
        """The same lanes in another shape."""
        if shape == self.shape:
            return self
        if self.form is not None:
            return _from_form(self.form, shape, self.space)
        return _interned(_Table(self._numbers, shape, self.space))

    def inverse(self) -> IndexMap | None:
        """The map from elements to the lanes that stand for them; None unless each element has exactly one lane."""
        shape = (self.space,)
        if self.form is not None:
            form = forms.inverse(self.form, self.space)
            if form is not None:
                return _from_form(form, shape, self.size)
        if self.size != self.space or not self.is_injective:
            return None
        return _from_numbers(_lanes_of(self).astype(_dtype(self.size)), shape, self.size)

    def shifted(self, by: int, space: int) -> IndexMap:
        """The same lanes for elements that are `by` further on in an array of `space` elements."""
        if (by, space) == (0, self.space):
            return self
        if self.form is not None:
            offset = self.form.offset + by if self.size else 0
            return _from_form(self.form._replace(offset=offset), self.shape, space)
        return _interned(_Table((self._numbers.astype(_dtype(space)) + by), self.shape, space))

    def missing(self) -> IndexMap | None:
        """From new lanes to the elements that no lane stands for; None if there are none."""
        is_missing = np.ones(self.space, np.bool_)
        is_missing[self._flat()] = False
        elements = np.flatnonzero(is_missing)
        return IndexMap.of(elements, self.space) if elements.size else None

    def _flat(self) -> Any:
        return self._numbers if self.form is None else forms.values(self.form)


# Maps that are in use


class _Table:
    """What equal tables have in common: a key that is hashed by a checksum and compared by all elements."""

    __slots__ = ("checksum", "numbers", "shape", "space")

    def __init__(self, numbers: Any, shape: Shape, space: int) -> None:
        self.numbers, self.shape, self.space = numbers, shape, space
        self.checksum = zlib.crc32(numbers)

    def __hash__(self) -> int:
        return hash((self.checksum, self.shape, self.space))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Table) or (self.shape, self.space) != (other.shape, other.space):
            return False
        return self.numbers is other.numbers or bool(np.array_equal(self.numbers, other.numbers))


_Key = _Table | tuple[Affine, Shape, int]
_maps: WeakValueDictionary[_Key, IndexMap] = WeakValueDictionary()
_interning = lock()


def _interned(key: _Key) -> IndexMap:
    """The one map of this form or table."""
    with _interning:
        found = _maps.get(key)
        if found is None:
            found = object.__new__(IndexMap)
            found._injective = None
            if isinstance(key, _Table):
                found.form, found._numbers, found.shape, found.space = None, key.numbers, key.shape, key.space
                found._numbers.flags.writeable = False
            else:
                found.form, found.shape, found.space = key
            _maps[key] = found
        return found


def _from_form(form: Affine, shape: Shape, space: int) -> IndexMap:
    return _interned((form, shape, space))


def _from_numbers(numbers: Any, shape: Shape, space: int) -> IndexMap:
    """The map of a flat array of integers, which others may write to."""
    form = forms.detected(numbers)
    if form is not None:
        return _from_form(form, shape, space)
    return _interned(_Table(np.array(numbers, order="C"), shape, space))


def _dtype(space: int) -> type[np.signedinteger[Any]]:
    return np.int32 if space < _MOST_OF_32_BITS else np.int64


def places(rows: IndexMap, cols: IndexMap) -> IndexMap:
    """From lanes to the places in a matrix, counted in row-major order, that are in these rows and columns."""
    space = rows.space * cols.space
    if rows.form is not None and cols.form is not None:
        form = forms.weighted_sum(rows.form, cols.form, cols.space, 1)
        if form is not None:
            return _from_form(form, rows.shape, space)
    return IndexMap.of(rows.table() * cols.space + cols.table().reshape(rows.shape), space)


# Lanes that stand for the same elements


def matches(a: IndexMap, b: IndexMap) -> tuple[IndexMap, IndexMap] | None:
    """The pairs of a lane of `a` and a lane of `b` that stand for one element.

    Returns:
        Two maps with the pairs as lanes, to lanes of `a` and of `b`; the pairs of a lane of `a` follow each other, in
        the order of its lanes.  None if there is no pair.
    """
    if a.form is not None and b.form is not None:
        met = forms.met(a.form, b.form)
        if met is not None:
            return _pairs_of_forms(a, b, *met)
    of_a, of_b = _pairs_of_tables(a, b)
    if not of_a.size:
        return None
    # Pairs are in the order of the lanes of `a`: as many as lanes, without one twice, are all lanes.
    is_whole = of_a.size == a.size and bool((np.diff(of_a) == 1).all())
    shape = a.shape if is_whole else (of_a.size,)
    return IndexMap.of(of_a.reshape(shape), a.size), IndexMap.of(of_b.reshape(shape), b.size)


def count_matches(a: IndexMap, b: IndexMap) -> int:
    """How many pairs `matches` finds, or, for maps that are too large to look at, the most that there can be."""
    if a.form is not None and b.form is not None:
        met = forms.met(a.form, b.form)
        if met is not None:
            return met[0].size
    if max(a.size, b.size) > _MOST_LOOKED_AT:
        return a.size * b.size
    if a.space > _MUCH_LARGER * (a.size + b.size):
        return int(_pairs_found_by_search(a._flat(), b._flat())[0].size)
    return int(np.dot(*(np.bincount(m._flat(), minlength=m.space) for m in (a, b))))


def _pairs_of_forms(a: IndexMap, b: IndexMap, of_a: Affine, of_b: Affine) -> tuple[IndexMap, IndexMap] | None:
    if not of_a.size:
        return None
    shape = a.shape if of_a == forms.affine(0, (a.size,), (1,)) else (of_a.size,)
    return _from_form(of_a, shape, a.size), _from_form(of_b, shape, b.size)


def _pairs_of_tables(a: IndexMap, b: IndexMap) -> tuple[Any, Any]:
    if a.space > _MUCH_LARGER * (a.size + b.size):
        return _pairs_found_by_search(a._flat(), b._flat())
    if b.is_injective:
        found = _lanes_of(b)[a._flat()]
        of_a = np.flatnonzero(found >= 0)
        return of_a, found[of_a]
    if a.is_injective:
        found = _lanes_of(a)[b._flat()]
        of_b = np.flatnonzero(found >= 0)
        return _in_order(found[of_b], of_b)
    _, order = _in_order(b._flat(), np.arange(b.size))
    counts = np.bincount(b._flat(), minlength=b.space)
    starts = np.cumsum(counts) - counts
    counts, starts = counts[a._flat()], starts[a._flat()]
    of_a = np.repeat(np.arange(a.size), counts)
    return of_a, order[np.arange(of_a.size) + np.repeat(starts - np.cumsum(counts) + counts, counts)]


def _pairs_found_by_search(left: Any, right: Any) -> tuple[Any, Any]:
    order = np.argsort(right, kind="stable")
    found = right[order]
    low, high = np.searchsorted(found, left, "left"), np.searchsorted(found, left, "right")
    counts = high - low
    of_left = np.repeat(np.arange(left.size), counts)
    return of_left, order[np.arange(of_left.size) + np.repeat(low - np.cumsum(counts) + counts, counts)]


def _in_order(keys: Any, numbers: Any) -> tuple[Any, Any]:
    """Keys and numbers, sorted by both: several times faster than an indirect sort."""
    if not keys.size:
        return keys, numbers
    bits = int(numbers.max()).bit_length()
    joined = np.sort((keys.astype(np.int64) << bits) | numbers)
    return joined >> bits, joined & ((1 << bits) - 1)


def _lanes_of(map: IndexMap) -> Any:
    """For each element, the last lane that stands for it, or -1."""
    lanes = np.full(map.space, -1, np.int64)
    lanes[map._flat()] = np.arange(map.size)
    return lanes


def _is_injective(map: IndexMap) -> bool:
    if map.size > map.space:
        return False
    if map.form is not None and 0 in map.form.strides:
        return not map.size
    if map.form is not None and forms.is_surely_injective(map.form):
        return True
    numbers, space = map._flat(), map.space
    if space > _MUCH_LARGER * numbers.size:
        return bool((np.diff(np.sort(numbers)) != 0).all())
    seen = np.zeros(space, np.bool_)
    seen[numbers] = True
    return int(np.count_nonzero(seen)) == numbers.size


def by_way(rows: IndexMap, cols: IndexMap) -> tuple[tuple[IndexMap, IndexMap], tuple[IndexMap, IndexMap]] | None:
    """Lanes between rows and columns as two steps, by way of an array in the middle, where that takes fewer lanes.

    It does where each of some rows has a lane to each of some columns.  How many lanes there are between two elements
    is not kept.

    Returns:
        Maps from lanes to elements of the middle and to columns, and from other lanes to rows and to elements of the
        middle; None if there are no such steps.
    """
    axes = None if rows.form is None or cols.form is None else forms.side_by_side(rows.form, cols.form)
    if axes is None or rows.form is None or cols.form is None:
        return None
    both = [axis for axis in axes if axis[1] and axis[2]]
    of_rows = [axis for axis in axes if axis[1] and not axis[2]]
    of_cols = [axis for axis in axes if axis[2] and not axis[1]]
    if not of_rows or not of_cols:
        return None
    shape = tuple(n for n, _, _ in both)
    middle, size = forms.row_strides(shape), math.prod(shape)

    def map(beside: list[tuple[int, int, int]], strides: list[int], offset: int, space: int) -> IndexMap:
        return IndexMap.affine((*shape, *(n for n, _, _ in beside)), offset, tuple(strides), space)

    return (
        (
            map(of_cols, [*middle, *(0 for _ in of_cols)], 0, size),
            map(of_cols, [t for _, _, t in (*both, *of_cols)], cols.form.offset, cols.space),
        ),
        (
            map(of_rows, [s for _, s, _ in (*both, *of_rows)], rows.form.offset, rows.space),
            map(of_rows, [*middle, *(0 for _ in of_rows)], 0, size),
        ),
    )


# Lanes compared


def where_equal(a: IndexMap, b: IndexMap) -> Any:
    """Where two maps with the same lanes stand for the same element: True, False, or an array of booleans."""
    low, high = _differences(a, b)
    if low == high == 0:
        return True
    found = low <= 0 <= high and a.table() == b.table()
    return found if np.any(found) else False


def where_lower(rows: IndexMap, cols: IndexMap) -> Any:
    """Where the element of `rows` is not before that of `cols`: True, False, or an array of booleans."""
    low, high = _differences(rows, cols)
    if low >= 0:
        return True
    return False if high < 0 else rows.table() >= cols.table()


def _differences(a: IndexMap, b: IndexMap) -> tuple[int, int]:
    """The least and the largest difference of the elements of a lane."""
    if a is b or not a.size:
        return 0, 0
    if a.form is not None and b.form is not None:
        difference = forms.weighted_sum(a.form, b.form, 1, -1)
        if difference is not None:
            return forms.bounds(difference)
    differences = a.table() - b.table().reshape(a.shape)
    return int(differences.min()), int(differences.max())


class Piece(NamedTuple):
    """A part of how a result depends on an operand: for each lane, one element of each.

    Attributes:
        rows: from lanes to elements of the result.
        cols: from lanes to elements of the operand.
        factor: the derivative, where it is the same number for all lanes and known; None where it is not.
    """

    rows: IndexMap
    cols: IndexMap
    factor: float | None = None
