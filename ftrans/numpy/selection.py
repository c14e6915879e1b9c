"""Selection: `x[mask]` for a traced mask.

How many elements a traced mask selects depends on values, and a program has static shapes.  So the elements are
taken only when something needs them, which asks for the value of the mask.  `x[mask] += v` needs nothing of the kind.
Once taken, the elements are an array of their own, which may be assigned to, and stand for the selection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.cell import Cell
from ..core.trace import Tracer
from ..core.witness import ConcretizationError, concretize, refuse


class Selection(Cell):
    """The elements of an array where a traced mask of its leading axes holds.

    Attributes:
        full: the array.
        mask: the traced mask.
        take: gives the elements of an array where a mask holds whose value is known.
    """

    __slots__ = ("_taken", "full", "mask", "take")

    def __init__(self, full: Tracer, mask: Tracer, take: Callable[[Tracer, Any], Tracer]) -> None:
        self.full = full
        self.mask = mask
        self.take = take
        self._taken: Tracer | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of what NumPy has in its place."""
        return np.ndarray

    def read(self) -> Tracer:
        """The selected elements, which takes the value of the mask."""
        if self._taken is None:
            self._taken = self.take(self.full, known_mask(self.mask))
        return self._taken

    def spread(self, mask: Any) -> Tracer | None:
        """An array with the selected elements where `mask` holds; None if it is another mask, or they were taken."""
        is_same = type(mask) is Tracer and mask.atom is self.mask.atom
        return self.full if is_same and self._taken is None else None

    def update(self, operation: Callable[[Any, Any], Any], other: Any, assign: Callable[[Tracer, Any], None]) -> None:
        """Apply an in-place operator: elementwise to the whole array where `other` is one number.

        Args:
            operation: the operator.
            other: its other operand.
            assign: assigns a result to an array.
        """
        spread = other
        if type(other) is Selection:
            spread = other.spread(self.mask) if other.full.ndim == self.full.ndim else None
        elif np.ndim(other) != 0:
            spread = None
        if self._taken is None and spread is not None:
            assign(self.full, operation(self.full, spread))
        else:
            assign(self.read(), operation(self.read(), other))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.read(), name)


def known_mask(mask: Tracer) -> Any:
    """The value of a traced mask, as a NumPy array."""
    try:
        return np.asarray(concretize(mask, "the number of elements selected by"))
    except ConcretizationError as error:
        if "Keep the shape" in str(error):
            raise
        advice = "\n  In place of x[mask], np.sum(x, where=mask) and an assignment x[mask] = number need no such value."
        raise refuse(ConcretizationError(f"{error}{advice}")) from None
