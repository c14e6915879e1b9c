"""Stacked results of a loop, written in the way that is cheapest for XLA.

Starting an operation costs XLA as much as computing hundreds of numbers on a CPU, and far more on a GPU; on a CPU,
bodies of more than eight operations cost extra scheduling.  So the small results of a step are written side by side, by
one operation.  If the initial carry of a step is a result, the final carry is written instead: the initial one would
have to be copied before it is overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.program import Atom, Program
from ...core.types import ArrayType
from ...ops.contractions import dot_general

# Rearranging larger results after the loop costs more than separate operations.
_MOST_BYTES = 1 << 10
_FEWEST_PACKED = 3


class Results(NamedTuple):
    """How the results of the steps of a loop are written.

    Attributes:
        types: types of the results.
        carry: for each result, the index of the initial carry that it equals, or None.
        place: for each result, the index of the array that is written for it.
        packed: which of these arrays are written side by side.
    """

    types: tuple[ArrayType, ...]
    carry: tuple[int | None, ...]
    place: tuple[int, ...]
    packed: tuple[int, ...]

    @classmethod
    def of(cls, program: Program, length: int, consts: int, carries: int) -> Results:
        """Choose how to write the results of a scan body."""
        atoms = program.outputs[carries:]
        types = tuple(a.type for a in atoms)
        # Small bodies without products are compiled to one operation.
        if not length or not any(eqn.primitive is dot_general for eqn in program.eqns):
            return cls(types, (None,) * len(types), tuple(range(len(types))), ())
        numbers: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs[consts : consts + carries])}
        carry = tuple(numbers.get(a) if a.type.nbytes <= _MOST_BYTES else None for a in atoms)
        sources = [a if c is None else program.outputs[c] for a, c in zip(atoms, carry, strict=True)]
        written = list(dict.fromkeys(sources))
        small = [i for i, a in enumerate(written) if a.type.nbytes <= _MOST_BYTES and a.type.dtype == types[0].dtype]
        packed = tuple(small) if len(small) > 1 and len(written) >= _FEWEST_PACKED else ()
        return cls(types, carry, tuple(map(written.index, sources)), packed)

    def written(self, ys: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        """The arrays that a step writes, from its results and its final carry."""
        from jax import lax

        values: dict[int, Any] = {}
        for y, c, place in zip(ys, self.carry, self.place, strict=True):
            values.setdefault(place, y if c is None else carry[c])
        rest = [v for place, v in values.items() if place not in self.packed]
        pieces = [lax.reshape(values[place], (values[place].size,)) for place in self.packed]
        return [lax.concatenate(pieces, 0), *rest] if pieces else rest

    def read(self, written: Sequence[Any], init: Sequence[Any], reverse: bool) -> list[Any]:
        """The results of all steps, from the arrays that they wrote and the initial carry of the loop."""
        from jax import lax

        types = dict(zip(self.place, self.types, strict=True))
        arrays = list(written)
        values: dict[int, Any] = {}
        if self.packed:
            pack, start = arrays.pop(0), 0
            for place in self.packed:
                stop = start + types[place].size
                values[place] = lax.reshape(pack[:, start:stop], (len(pack), *types[place].shape))
                start = stop
        values.update(zip([place for place in types if place not in self.packed], arrays, strict=True))
        results = []
        for c, place in zip(self.carry, self.place, strict=True):
            y = values[place]
            if c is not None:
                first = lax.expand_dims(lax.convert_element_type(init[c], y.dtype), (0,))
                y = lax.concatenate([y[1:], first] if reverse else [first, y[:-1]], 0)
            results.append(y)
        return results
