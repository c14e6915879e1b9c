"""Masks: where a tangent or cotangent is zero, or has yet to be set to zero.

A mask is a list of conditions that all hold where the value may be nonzero.  Most masks are never needed, so their
conditions are recorded only on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.source import Line, attributed_to
from ..core.trace import Tracer
from ..ops.elementwise import bitwise_and, bitwise_not, bitwise_or, select
from ..ops.literals import full_like

# A mask of more conditions than this is dropped.
_MOST_CONDITIONS = 64
# More choices than this are merged into one condition.
_MOST_CHOICES = 8


class Condition:
    """A boolean array, or its opposite.

    Attributes:
        holds: True for the array itself, False for its opposite.
        weight: how many conditions it combines.

    Args:
        array: the array, or a function that records it.
    """

    __slots__ = ("_array", "holds", "weight")

    def __init__(self, array: Tracer | Callable[[], Tracer], holds: bool = True, weight: int = 1) -> None:
        self._array = array
        self.holds = holds
        self.weight = weight

    @property
    def array(self) -> Tracer:
        """The array."""
        if not isinstance(self._array, Tracer):
            self._array = self._array()
        return self._array

    @property
    def key(self) -> tuple[Any, bool]:
        """A key that identifies the condition."""
        return (self._array.atom if isinstance(self._array, Tracer) else self), self.holds

    def is_opposite(self, other: Condition) -> bool:
        """Whether exactly one of the two holds."""
        return self.holds != other.holds and self.key[0] is other.key[0]


Mask = tuple[Condition, ...]


def weight(*masks: Mask) -> int:
    """The total number of conditions in masks."""
    return sum([c.weight for mask in masks for c in mask])


def key(mask: Mask) -> Any:
    """A key that identifies a mask."""
    return tuple([c.key for c in mask])


def all_of(mask: Mask) -> Tracer:
    """A mask as one array."""
    first, *others = (c.array if c.holds else bitwise_not(c.array) for c in mask)
    for other in others:
        first = bitwise_and(first, other)
    return first


def any_of(masks: Sequence[Mask]) -> Mask:
    """The mask where at least one of several masks holds; empty, for everywhere, if one of them is."""
    distinct = list({key(mask): mask for mask in masks}.values())
    if len(distinct) == 1 or not all(distinct):
        return distinct[0] if len(distinct) == 1 else ()

    def make() -> Tracer:
        first, *others = map(all_of, distinct)
        for other in others:
            first = bitwise_or(first, other)
        return first

    return (Condition(make, weight=weight(*distinct)),)


def carried(mask: Mask, move: Callable[[Tracer], Tracer]) -> Mask:
    """The mask of a value that is moved by `move`."""
    return (Condition(lambda: move(all_of(mask)), weight=1 + weight(mask)),) if mask else ()


class Masked:
    """A tangent or cotangent, and where it is zero.

    Attributes:
        value: the elements where all of `near` holds.
        near: choices; any factor may be infinite in elements that they leave out.
        far: further conditions; elsewhere the value is zero already.  Used only for factors that may be infinite.
        is_clean: whether the value is zero where `near` does not hold; otherwise it may be anything there.
        line: the line of the choices.
    """

    __slots__ = ("_whole", "far", "is_clean", "line", "near", "value")

    def __init__(
        self, value: Tracer, near: Mask = (), far: Mask = (), is_clean: bool = True, line: Line | None = None
    ) -> None:
        self.value = value
        self.near = near if not near or not is_clean or weight(near) <= _MOST_CONDITIONS else ()
        self.far = far if not far or weight(far) <= _MOST_CONDITIONS else ()
        self.is_clean = is_clean
        self.line = line
        self._whole = value if is_clean else None

    @property
    def mask(self) -> Mask:
        """Where it may be nonzero."""
        return (*self.near, *self.far)

    @property
    def key(self) -> Any:
        """A key that identifies its masks."""
        return key(self.near), key(self.far)

    def whole(self) -> Tracer:
        """The value with its zeros inserted."""
        if self._whole is None:
            zero = full_like(self.value, 0)
            with attributed_to(self.line):
                condition = self.near[0] if len(self.near) == 1 else Condition(all_of(self.near))
                sides = (self.value, zero) if condition.holds else (zero, self.value)
                self._whole = select(condition.array, *sides)
        return self._whole

    def where(self, condition: Condition, line: Line | None) -> Masked:
        """The value where the condition holds, and zero elsewhere; the zeros are inserted later."""
        near = self.near
        if condition.key not in key(near):
            near = (Condition(all_of(near)),) if len(near) == _MOST_CHOICES else near
            near = (*near, condition)
        return Masked(self.value, near, self.far, False, line)
