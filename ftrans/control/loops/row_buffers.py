"""XLA buffers for rows of arrays, in the layout that is cheapest for loops.

Starting an operation costs XLA as much as computing hundreds of numbers on a CPU, and far more on a GPU.  So the small
arrays of a row are stored side by side in one buffer, and one operation writes all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.surroundings import is_divided
from ...core.types import ArrayType

# An extra copy of larger arrays costs more than separate operations.
_MOST_BYTES = 1 << 10
_FEWEST_PACKED = 3


class RowBuffers:
    """How rows are written to buffers, arrays with a leading axis of places.

    Attributes:
        types: types of the arrays in a row.
        groups: for each buffer, the indices of its arrays in the row.
    """

    def __init__(self, types: Sequence[ArrayType]) -> None:
        self.types = tuple(types)
        small: dict[np.dtype[Any], list[int]] = {}
        for i, t in enumerate(self.types):
            if t.nbytes <= _MOST_BYTES:
                small.setdefault(t.dtype, []).append(i)
        packs = [pack for pack in small.values() if len(pack) >= _FEWEST_PACKED and not is_divided()]
        packed = {i for pack in packs for i in pack}
        self.groups = [*packs, *([i] for i in range(len(self.types)) if i not in packed)]

    def buffers(self, places: int) -> list[Any]:
        """Empty buffers."""
        import jax.numpy as jnp

        rows = [jnp.zeros((places, *t.shape), t.dtype) for t in self.types]
        return self._together(rows, (places,))

    def write(self, buffers: Sequence[Any], row: Sequence[Any], place: Any) -> list[Any]:
        """The buffers with a row written at index `place`."""
        from jax import lax

        values = self._together(row, ())
        return [lax.dynamic_update_index_in_dim(b, x, place, 0) for b, x in zip(buffers, values, strict=True)]

    def read(self, buffers: Sequence[Any], place: Any) -> list[Any]:
        """The row at index `place`."""
        from jax import lax

        return self._apart([lax.dynamic_index_in_dim(b, place, 0, keepdims=False) for b in buffers], ())

    def part(self, buffers: Sequence[Any], members: Sequence[int]) -> tuple[RowBuffers, list[Any]]:
        """The layout and buffers of rows that have only these members."""
        if tuple(members) == tuple(range(len(self.types))):
            return self, list(buffers)
        part = RowBuffers([self.types[i] for i in members])
        places = buffers[0].shape[:1] if buffers else ()
        arrays = self._apart(buffers, places)
        return part, part._together([arrays[i] for i in members], places)

    def _together(self, arrays: Sequence[Any], places: tuple[int, ...]) -> list[Any]:
        from jax import lax

        def packed(group: Sequence[int]) -> Any:
            flat = [lax.reshape(arrays[i], (*places, self.types[i].size)) for i in group]
            return lax.concatenate(flat, len(places))

        return [packed(group) if len(group) > 1 else arrays[group[0]] for group in self.groups]

    def _apart(self, values: Sequence[Any], places: tuple[int, ...]) -> list[Any]:
        from jax import lax

        arrays: dict[int, Any] = {}
        for group, value in zip(self.groups, values, strict=True):
            start = 0
            for i in group:
                stop = start + self.types[i].size
                cell = value if len(group) == 1 else lax.slice_in_dim(value, start, stop, axis=len(places))
                arrays[i] = lax.reshape(cell, (*places, *self.types[i].shape))
                start = stop
        return [arrays[i] for i in range(len(self.types))]
