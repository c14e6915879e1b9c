"""Selection: `x[mask]` for a traced mask.

How many elements a traced mask selects depends on values, and a program has static shapes.  So the elements are
taken only when something needs them, which asks for the value of the mask.  `x[mask] += v` needs nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.trace import ConcretizationError, Tracer, refuse


class Selection:
    """The elements of an array where a traced mask of its leading axes holds.

    Attributes:
        full: the array.
        mask: the traced mask.
    """

    __slots__ = ("_taken", "full", "mask")

    def __init__(self, full: Tracer, mask: Tracer) -> None:
        self.full = full
        self.mask = mask
        self._taken: Tracer | None = None

    def taken(self) -> Tracer:
        """The selected elements, which takes the value of the mask."""
        if self._taken is None:
            from .indexing import getitem

            self._taken = getitem(self.full, known_mask(self.mask))
        return self._taken

    def updated(self, operation: Callable[[Any, Any], Any], other: Any, name: str) -> Any:
        """What an in-place operator leaves: elementwise on the whole array where `other` is one number."""
        from .promotion import same_value
        from .ufuncs import assign_cast

        if other.__class__ is Selection and other.mask.atom is self.mask.atom:
            other = other.full
        elif np.ndim(other) != 0:
            taken = same_value(self.taken())
            assign_cast(taken, operation(taken, other), name)
            return taken
        full = same_value(self.full)
        assign_cast(full, operation(full, other), name)
        return Selection(full, self.mask)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.taken(), name)


def known_mask(mask: Tracer) -> Any:
    """The value of a traced mask, as a NumPy array."""
    try:
        return np.asarray(mask.builder.concretize(mask, "the number of elements selected by"))
    except ConcretizationError as error:
        if "Keep the shape" in str(error):
            raise
        advice = "\n  In place of x[mask], np.sum(x, where=mask) and an assignment x[mask] = number need no such value."
        raise refuse(ConcretizationError(f"{error}{advice}")) from None
