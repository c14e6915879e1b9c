"""IndexMap: which element of an array each position of another one (its *lanes*) stands for.

The maps of slices, reshapes, transposes and broadcasts are affine in the coordinates of the lanes, and are kept as an
offset and strides.  All others are tables.  Maps are immutable, and equal maps are one object.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

Shape = tuple[int, ...]


class IndexMap:
    """A map from lanes to elements of an array, both counted in row-major order.

    Attributes:
        shape: shape of the lanes.
        space: number of elements of the array.
    """

    __slots__ = ("__weakref__", "_table", "shape", "space")

    shape: Shape
    space: int
    _table: Any

    @classmethod
    def of(cls, elements: Any, space: int) -> IndexMap:
        """The map to these elements, an array of integers, of an array of `space` elements."""
        table = np.ascontiguousarray(elements, np.int64)
        key = (table.shape, space, table.tobytes())
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.shape, found.space, found._table = table.shape, space, table
            _interned[key] = found
        return found

    @classmethod
    def identity(cls, shape: Shape) -> IndexMap:
        """Each lane stands for the element at the same place."""
        size = math.prod(shape)
        return cls.of(np.arange(size).reshape(shape), size)

    @property
    def size(self) -> int:
        """Number of lanes."""
        return math.prod(self.shape)

    @property
    def is_identity(self) -> bool:
        """Whether the lanes are all elements in their order, whatever the shapes."""
        return self.size == self.space and self is IndexMap.identity(self.shape)

    @property
    def is_injective(self) -> bool:
        """Whether no two lanes stand for one element."""
        return bool(np.unique(self._table).size == self.size)

    def table(self) -> Any:
        """The elements, as an array of integers of the shape of the lanes.  Not to be written to."""
        return self._table

    def after(self, inner: IndexMap) -> IndexMap:
        """The map from the lanes of `inner`, which point to lanes of this map, to its elements."""
        return IndexMap.of(self._table.reshape(-1)[inner._table], self.space)

    def reshaped(self, shape: Shape) -> IndexMap:
        """The same lanes in another shape."""
        return IndexMap.of(self._table.reshape(shape), self.space)


_interned: WeakValueDictionary[Any, IndexMap] = WeakValueDictionary()


def matches(a: IndexMap, b: IndexMap) -> tuple[IndexMap, IndexMap] | None:
    """The pairs of a lane of `a` and a lane of `b` that stand for one element.

    Returns:
        Two maps with the pairs as lanes, to lanes of `a` and of `b`; the pairs of a lane of `a` follow each other.
        None if there is no pair.
    """
    left, right = a.table().reshape(-1), b.table().reshape(-1)
    order = np.argsort(right, kind="stable")
    found = right[order]
    low, high = np.searchsorted(found, left, "left"), np.searchsorted(found, left, "right")
    counts = high - low
    total = int(counts.sum())
    if not total:
        return None
    of_a = np.repeat(np.arange(left.size), counts)
    of_b = order[np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)]
    shape = a.shape if total == a.size and bool((counts == 1).all()) else (total,)
    return IndexMap.of(of_a.reshape(shape), a.size), IndexMap.of(of_b.reshape(shape), b.size)


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
