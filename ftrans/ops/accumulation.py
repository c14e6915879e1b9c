"""Sums of cotangents, most elements of which may be zero."""

from __future__ import annotations

from ..core.trace import Tracer, definition
from .elementwise import add
from .indexing import scatter_add
from .literals import splat
from .moving_slices import dynamic_add
from .slices import add_slice, padded_part

# They add to some elements of their first operand.
_SPARSE = (scatter_add, dynamic_add)


def accumulated(x: Tracer, y: Tracer) -> Tracer:
    """The sum of two cotangents; where one is zero but for some elements, these are added to the other."""
    for total, term in ((x, y), (y, x)):
        made = definition(term)
        if made is not None and made.primitive in _SPARSE:
            zero, updates, *indices = (Tracer(x.builder, a) for a in made.operands)
            if splat(zero) == 0:
                return made.primitive.bind_all([total, updates, *indices], made.params)[0]
        part = padded_part(term)
        if part is not None:
            return add_slice(total, part[0], **part[1])
    return add(x, y)
