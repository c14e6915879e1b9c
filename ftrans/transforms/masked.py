"""Masked: a tangent or cotangent with a mask, which says where it is zero because something else was chosen there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.source import attributed_to, user_line
from ..core.program import Program
from ..core.trace import Tracer
from ..core.types import ArrayType
from ..ops.elementwise import bitwise_and, bitwise_not, bitwise_or, convert, select
from ..ops.literals import full_like

# A mask made of more conditions than this is forgotten.
_MOST_CONDITIONS = 64


class Condition:
    """A boolean array, which is recorded when it is first needed.

    Attributes:
        weight: how many conditions it is made of.

    Args:
        array: the array, or a function that records it.
    """

    __slots__ = ("_array", "weight")

    def __init__(self, array: Tracer | Callable[[], Tracer], weight: int = 1) -> None:
        self._array = array
        self.weight = weight

    @property
    def array(self) -> Tracer:
        """The array."""
        if not isinstance(self._array, Tracer):
            self._array = self._array()
        return self._array

    @property
    def key(self) -> Any:
        """What tells it apart from other conditions."""
        return self._array.atom if isinstance(self._array, Tracer) else self


# A condition, and whether the element counts where it holds or where it does not.
Literal = tuple[Condition, bool]
Literals = tuple[Literal, ...]


class Mask(NamedTuple):
    """Where a tangent is not zero: where all literals hold.

    Attributes:
        near: choices, for which other factors may be infinite where they leave something out.
        far: what indices made of choices and of ends of arrays: worth its cost before steep functions only.
    """

    near: Literals = ()
    far: Literals = ()

    def key(self) -> Sequence[Any]:
        """What tells it apart from other masks."""
        return [[(c.key, chosen) for c, chosen in literals] for literals in self]

    def derived(self, move: Callable[[Tracer], Tracer]) -> Mask:
        """The mask of what has been moved."""

        def moved(literals: Literals) -> Literals:
            return (later(lambda: move(all_of(literals)), 1 + weight_of(literals)),) if literals else ()

        return Mask(moved(self.near), moved(self.far))


def later(make: Callable[[], Tracer], weight: int) -> Literal:
    """A condition that is recorded when it is needed."""
    return Condition(make, weight), True


def weight_of(literals: Literals) -> int:
    return sum([c.weight for c, _ in literals])


def all_of(literals: Literals) -> Tracer:
    """All of them in one condition."""
    first, *others = (c.array if chosen else bitwise_not(c.array) for c, chosen in literals)
    for other in others:
        first = bitwise_and(first, other)
    return first


def any_of(conditions: Sequence[Literals]) -> Literal:
    """Where at least one of several holds."""

    def make() -> Tracer:
        found, *others = map(all_of, conditions)
        for other in others:
            found = bitwise_or(found, other)
        return found

    return later(make, sum(map(weight_of, conditions)))


class Masked:
    """A tangent or cotangent that is zero but where its mask holds.

    Attributes:
        mask: the mask.

    Args:
        value: what it is where the near part of the mask holds, and anything elsewhere; None where it is zero there by
            itself.  Where the far part does not hold it is always zero by itself.
        mask: the mask.
        whole: the tangent itself, where it has been recorded.
    """

    __slots__ = ("_line", "_value", "_whole", "mask")

    def __init__(self, value: Tracer | None, mask: Mask, whole: Tracer | None = None) -> None:
        self.mask = mask
        self._value = value
        self._whole = whole
        self._line = user_line()

    @property
    def value(self) -> Tracer:
        """What it is where it is not masked."""
        value = self._whole if self._value is None else self._value
        assert value is not None
        return value

    @property
    def type(self) -> ArrayType:
        """Shape and dtype."""
        return self.value.type

    @property
    def is_clean(self) -> bool:
        """Whether it is zero by itself where it is masked, so that the mask may be forgotten."""
        return self._value is None

    def whole(self) -> Tracer:
        """The tangent itself."""
        if self._whole is None:
            zero = full_like(self.value, 0)
            with attributed_to(self._line):
                first, *others = self.mask.near
                condition, chosen = (all_of(self.mask.near), True) if others else (first[0].array, first[1])
                self._whole = select(condition, *((self.value, zero) if chosen else (zero, self.value)))
        return self._whole


Tangent = Tracer | Masked


def whole(t: Tangent | None) -> Tracer | None:
    """A tangent without a mask put off."""
    return t.whole() if isinstance(t, Masked) else t


def recorded(t: Tangent) -> Tracer:
    """The same of one that is not zero."""
    return t.whole() if isinstance(t, Masked) else t


def clean(t: Tracer | None, mask: Mask) -> Tangent | None:
    """A tangent that is zero by itself where it is masked."""
    near, far = (literals if weight_of(literals) <= _MOST_CONDITIONS else () for literals in mask)
    return Masked(None, Mask(near, far), t) if t is not None and (near or far) else t


def literals_of(t: Tangent | None) -> Literals:
    """All literals of the mask of a tangent."""
    return (*t.mask.near, *t.mask.far) if isinstance(t, Masked) else ()


def support(t: Tangent, literals: Literals | None = None) -> Tracer:
    """1 where a tangent is not masked, 0 elsewhere, in its dtype."""
    literals = literals_of(t) if literals is None else literals
    return convert(all_of(literals), dtype=t.type.dtype) if literals else full_like(t.type, 1)


def union_of(masked: Sequence[Masked]) -> Mask:
    """Where one of several is not masked."""
    first = masked[0].mask
    masks = list({id(t.mask): t.mask for t in masked}.values())
    if all([m.key() == first.key() for m in masks[1:]]):
        return first
    all_near = [m.near for m in masks]
    near = (any_of(all_near),) if all(all_near) else ()
    far = (any_of([(*m.near, *m.far) for m in masks]),) if not near or any([m.far for m in masks]) else ()
    return Mask(near, far)


# A sub-program takes tangents, then the conditions of the masks of some of them; it may return the same.


def which_masked(ts: Sequence[Tangent | None]) -> tuple[bool, ...]:
    """Which of the tangents that are there have masks."""
    return tuple(isinstance(t, Masked) for t in ts if t is not None)


def condition_types(types: Sequence[ArrayType], masked: Sequence[bool]) -> list[ArrayType]:
    """The types of these conditions."""
    return [t.with_dtype(np.bool_) for t, m in zip(types, masked, strict=True) if m]


def with_conditions(given: Sequence[Tracer], masked: Sequence[bool]) -> Iterator[Tangent]:
    """The tangents with their masks."""
    conditions = iter(given[len(masked) :])
    for t, m in zip(given, masked, strict=False):
        yield Masked(None, Mask(far=((Condition(next(conditions)), True),)), t) if m else t


def without_unused_conditions(program: Program, masked: Sequence[bool]) -> tuple[Program, tuple[bool, ...]]:
    """The sub-program without the conditions that it has no use for, and whether it has for each masked tangent."""
    count = len(program.inputs) - sum(masked)
    used = {*program.outputs, *(a for eqn in program.eqns for a in eqn.operands)}
    kept = tuple(v in used for v in program.inputs[count:])
    inputs = [v for i, v in enumerate(program.inputs) if i < count or kept[i - count]]
    return Program(program.name, inputs, program.eqns, program.outputs) if not all(kept) else program, kept


def handed_over(ts: Sequence[Tangent | None], masks: Sequence[bool]) -> list[Tracer]:
    """What a sub-program takes for tangents: those that are there, and the conditions that it asks for."""
    present = [t for t in ts if t is not None]
    masked = [t for t in present if isinstance(t, Masked)]
    return [*map(recorded, present), *(all_of(literals_of(t)) for t, m in zip(masked, masks, strict=True) if m)]


def conditions_of(ts: Sequence[Tangent | None]) -> list[Tracer]:
    """The condition of each tangent that has a mask."""
    return [all_of(literals_of(t)) for t in ts if isinstance(t, Masked)]
