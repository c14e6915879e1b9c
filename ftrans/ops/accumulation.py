"""Sums of cotangents, most elements of which may be zero."""

from __future__ import annotations

from ..core.program import Atom, Eqn
from ..core.trace import Builder, Tracer, definition
from .elementwise import add
from .indexing import scatter_add
from .literals import splat
from .moving_slices import dynamic_add
from .parts import concatenate, pad
from .slices import add_slice, padded_part

# More pieces than this are added in place: joining them one by one would copy all of them each time.
_MOST_PIECES = 32
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


def sum_of_cotangents(x: Tracer, y: Tracer) -> Tracer:
    """The sum of two cotangents: one array, where they are parts of it, or else as `accumulated` makes it."""
    whole = _side_by_side(x, y)
    return accumulated(x, y) if whole is None else whole


def _side_by_side(x: Tracer, y: Tracer) -> Tracer | None:
    """The sum of two arrays that are nonzero only in adjacent parts, by joining the parts; None for other arrays.

    So the cotangent of an array that was split into parts is their concatenation.
    """
    parts = [eqn for eqn in map(_padding, (x, y)) if eqn is not None]
    if len(parts) < 2:
        return None
    ends = [list(zip(eqn.params["before"], eqn.params["after"], strict=True)) for eqn in parts]
    axes = [i for i in range(x.ndim) if ends[0][i] != ends[1][i]]
    if len(axes) != 1:
        return None
    (axis,) = axes
    first, second = sorted(parts, key=lambda eqn: eqn.params["before"][axis])
    if first.params["before"][axis] + first.operands[0].type.shape[axis] != second.params["before"][axis]:
        return None
    pieces = [Tracer(x.builder, a) for eqn in (first, second) for a in _pieces(x.builder, eqn.operands[0], axis)]
    if len(pieces) > _MOST_PIECES:
        return None
    whole: Tracer = concatenate(*pieces, axis=axis)
    if whole.shape == x.shape:
        return whole
    zero = Tracer(x.builder, first.operands[1])
    padded: Tracer = pad(whole, zero, **{**first.params, "after": second.params["after"]})
    return padded


def _pieces(builder: Builder, atom: Atom, axis: int) -> tuple[Atom, ...]:
    """The pieces from which an array was concatenated along an axis."""
    eqn = definition(Tracer(builder, atom))
    is_whole = eqn is not None and eqn.primitive is concatenate and eqn.params["axis"] == axis
    return eqn.operands if eqn is not None and is_whole else (atom,)


def _padding(x: Tracer) -> Eqn | None:
    """The equation that puts `x` between zeros, if there is one."""
    eqn = definition(x)
    if eqn is None or eqn.primitive is not pad or any(eqn.params["interior"]):
        return None
    return eqn if splat(Tracer(x.builder, eqn.operands[1])) == 0 else None
