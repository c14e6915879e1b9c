"""Masks: where tangents and cotangents are zero because something else was chosen there.

`where(x > 0, sqrt(x), 0)` does not depend on `sqrt(x)` at 0, where the derivative of `sqrt` is infinite.  Zero times
infinity is not a number, so the zero must come last: derivatives are taken of all elements, and what was not chosen is
left out of the result.  For that, a choice is put off while derivatives act on each element by itself (`Masked`).  It
costs nothing: the choice is made once, only later.

A tangent that has been summed, broadcast or cut to parts is zero by itself where it is masked.  Its mask is made only
where an infinite factor may follow; where indices made the zeros, or moved them, only before the functions that have
one (`steep`).

Only zeros that come from a choice are exact in this way.  A zero that was computed, as in `exp(2 * log(x))` at 0, may
stand for any small number: its product with infinity stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.primitive import Primitive
from ..core.program import Const, Params
from ..core.trace import Tracer, definition
from ..core.types import ArrayType
from ..ops.broadcast import broadcast, reduce_sum
from ..ops.elementwise import (
    Elementwise,
    add,
    complex_,
    conj,
    convert,
    div,
    imag,
    ne,
    neg,
    real,
    select,
    steep,
    sub,
)
from ..ops.elementwise.family import combined
from ..ops.indexing import gather, scatter_add, scatter_set
from ..ops.literals import full_like
from ..ops.parts import concatenate, pad, slice_
from ..ops.reductions import reduce_or
from ..ops.shapes import StructuralPrimitive, reshape, reverse
from ..ops.shapes import transpose as transpose_axes
from ..ops.slices import add_slice, set_slice
from .masked import (
    Condition,
    Literals,
    Mask,
    Masked,
    Tangent,
    all_of,
    any_of,
    clean,
    later,
    literals_of,
    recorded,
    support,
    union_of,
    weight_of,
    whole,
)

# Their transposes only move elements.
_MOVES = (reshape, transpose_axes, reverse)
_JOINS = (pad, concatenate)
_WRITES = (set_slice, add_slice, scatter_set, scatter_add)
# They have no factor that may be infinite.
_LINEAR = (add, sub, neg, convert, conj, real, imag, complex_)
# More literals than this become one condition.
_MOST_LITERALS = 8
# An array that is written to more often than this, element by element in a loop, has no mask, which costs the size of
# the array.
_MOST_WRITES = 8
_NO_MASK = Mask()


def _seen(t: Tracer | None, mask: Mask = _NO_MASK) -> Tangent | None:
    """What a rule has recorded, with the mask of its operand; a choice of zeros that it has made last is put off."""
    if t is None:
        return None
    near = mask.near
    made = definition(t)
    if made is not None and made.primitive is select:
        condition, x, y = (Tracer(t.builder, a) for a in made.operands)
        chosen = _is_zero(y)
        if chosen or _is_zero(x):
            new = () if (condition.atom, chosen) in Mask(near).key()[0] else ((Condition(condition), chosen),)
            if len(near) == _MOST_LITERALS:
                near = ((Condition(all_of(near)), True),)
            return Masked(x if chosen else y, Mask((*near, *new), mask.far), None if near else t)
    return Masked(t, mask) if near else clean(t, mask)


def _is_zero(x: Tracer) -> bool:
    return isinstance(x.atom, Const) and x.atom.is_splat and bool(x.atom.value == 0)


def _is_steep(primitive: Elementwise, operands: Sequence[Tracer | ArrayType], params: Params) -> bool:
    """Whether a derivative may be infinite where the result is not."""
    return primitive is steep or primitive.is_steep(operands, params)


def _is_needed(mask: Mask, primitive: Elementwise, is_steep: bool) -> bool:
    """Whether the tangent of an elementwise function may be a product with infinity."""
    return primitive not in _LINEAR if mask.near else is_steep


def _behind(mask: Mask, is_steep: bool) -> Mask:
    """What has to be put in behind a product that may be one with infinity."""
    return Mask((*mask.near, *mask.far)) if is_steep else mask


def forward(
    primitive: Primitive, primals: Sequence[Tracer], tangents: Sequence[Tangent | None], params: Params
) -> tuple[Tracer, Tangent | None]:
    """The result of an equation that has one, and its tangent."""
    masked = [t for t in tangents if t.__class__ is Masked]
    if not masked:
        out, result = primitive.jvp(primals, tangents, **params)  # type: ignore[arg-type]
        if isinstance(primitive, Elementwise):
            return out, _seen(result)
        if not _leaves_zeros(primitive, tangents):
            return out, result
    return _forward(lambda given: primitive.jvp(primals, given, **params), primitive, primals, tangents, params)


def forward_through_square(
    length: Elementwise, square: Tracer, primals: Sequence[Tracer], tangents: Sequence[Tangent | None]
) -> tuple[Tracer, Tangent | None]:
    """The square of a length, and its tangent, given the operands that the length is made of and their tangents."""
    assert length.square is not None
    partials = length.square(*primals)
    return _forward(lambda given: (square, combined(partials, given)), length, primals, tangents, {})


def _forward(
    jvp: Callable[[Sequence[Tracer | None]], tuple[Any, Any]],
    primitive: Primitive,
    primals: Sequence[Tracer],
    tangents: Sequence[Tangent | None],
    params: Params,
) -> tuple[Tracer, Tangent | None]:
    if primitive in _JOINS or primitive in _WRITES:
        return _forward_among_others(jvp, primitive, tangents)
    masked = [t for t in tangents if isinstance(t, Masked)]
    if not masked or len(masked) < sum([t is not None for t in tangents]):
        if masked and _has_factors_apart(primitive, primals, params):
            return _forward_one_by_one(jvp, primitive, primals, tangents, params)
        out, result = jvp([whole(t) for t in tangents])
        return out, _seen(result) if isinstance(primitive, Elementwise) else result
    mask = masked[0].mask
    if isinstance(primitive, Elementwise):
        is_steep = _is_steep(primitive, primals, params)
        needed = any([not t.is_clean or _is_needed(t.mask, primitive, is_steep) for t in masked])
        if needed and all([t.mask.key() == mask.key() for t in masked[1:]]):
            out, result = jvp([t.value if isinstance(t, Masked) else None for t in tangents])
            return out, _seen(result, _behind(mask, is_steep))
        if needed and _has_factors_apart(primitive, primals, params):
            return _forward_one_by_one(jvp, primitive, primals, tangents, params)
        out, result = jvp([whole(t) for t in tangents])
        union = union_of(masked)
        if not needed or primitive in _LINEAR:
            return out, clean(result, union) if union.near else _seen(result, union)
        return out, _seen(result, _behind(union, is_steep))
    if primitive in _MOVES and not masked[0].is_clean:
        out, result = jvp([masked[0].value])
        return out, Masked(result, _moved(mask, lambda x: primitive(x, **params)))
    out, result = jvp([whole(t) for t in tangents])
    if isinstance(primitive, StructuralPrimitive) or (primitive is gather and (primals[1].ndim or mask.near)):
        indices = primals[1:]
        return out, clean(result, mask.derived(lambda x: primitive(x, *indices, **params)))
    if primitive is reduce_sum:
        return out, clean(result, mask.derived(lambda x: reduce_or(x, **params)))
    return out, result


def _moved(mask: Mask, move: Callable[[Tracer], Tracer]) -> Mask:
    """The same as `Mask.derived`, with each choice by itself."""
    near = tuple([(Condition(move(c.array), c.weight), chosen) for c, chosen in mask.near])
    return Mask(near, mask.derived(move).far)


def _has_factors_apart(primitive: Primitive, primals: Sequence[Tracer], params: Params) -> bool:
    """Whether derivatives along some operands may be infinite where those along others, and the result, are not."""
    # The quotient of a division is infinite, too.
    return isinstance(primitive, Elementwise) and primitive is not div and primitive.is_steep(primals, params)


def _forward_one_by_one(
    jvp: Callable[[Sequence[Tracer | None]], tuple[Any, Any]],
    primitive: Primitive,
    primals: Sequence[Tracer],
    tangents: Sequence[Tangent | None],
    params: Params,
) -> tuple[Tracer, Tangent | None]:
    """A function of operands with different masks: each has its own product with a derivative that may be infinite."""
    total: Tangent | None = None
    for i, t in enumerate(tangents):
        if t is not None:
            alone = [t if i == j else None for j in range(len(tangents))]
            out, term = _forward(jvp, primitive, primals, alone, params)
            total = term if total is None or term is None else added(total, term, add)
    return out, total


def _leaves_zeros(primitive: Primitive, tangents: Sequence[Tangent | None]) -> bool:
    """Whether the tangent of an array made of several is zero where an operand has none."""
    if primitive in _WRITES:
        return tangents[0] is None or tangents[1] is None
    return primitive is pad or (primitive is concatenate and any([t is None for t in tangents]))


def _forward_among_others(
    jvp: Callable[[Sequence[Tracer | None]], tuple[Any, Any]],
    primitive: Primitive,
    tangents: Sequence[Tangent | None],
) -> tuple[Tracer, Tangent | None]:
    """An array made of several, and its tangent, which is zero where an operand has none."""
    out, result = jvp([whole(t) for t in tangents])

    def condition() -> Tracer:
        counts: Tracer = jvp([None if t is None else support(t) for t in tangents])[1]
        return ne(counts, full_like(counts, 0))

    weight = 1 + sum([weight_of(literals_of(t)) for t in tangents])
    if primitive in _WRITES and weight > _MOST_WRITES:
        return out, result
    return out, clean(result, Mask(far=(later(condition, weight),)))


def backward(
    primitive: Primitive, ct: Tangent, operands: Sequence[Tracer | ArrayType], params: Params
) -> Sequence[Tangent | None]:
    """The cotangents of the operands of an equation with one result."""

    def turned(x: Tracer) -> Any:
        return primitive.transpose(x, operands, **params)

    if primitive is gather or (primitive is slice_ and not (isinstance(ct, Masked) and ct.mask.near)):
        result, *others = turned(recorded(ct))
        return [clean(result, _at_indices(ct, turned, 0)), *others]
    if primitive in _WRITES:
        return _backward_through_write(primitive, ct, turned)
    if not isinstance(ct, Masked):
        return [_seen(r) for r in turned(ct)] if primitive is select else turned(ct)
    if primitive in _JOINS:
        return [clean(r, _at_indices(ct, turned, i)) for i, r in enumerate(turned(ct.whole()))]
    mask = ct.mask
    if isinstance(primitive, Elementwise):
        is_steep = _is_steep(primitive, operands, params)
        if not ct.is_clean or _is_needed(mask, primitive, is_steep):
            return [_seen(r, _behind(mask, is_steep)) for r in turned(ct.value)]
        return [clean(r, mask) if mask.near else _seen(r, mask) for r in turned(ct.value)]
    if primitive in _MOVES and not ct.is_clean:
        return [Masked(turned(ct.value)[0], _moved(mask, lambda x: turned(x)[0]))]
    results: Sequence[Tracer | None] = turned(ct.whole())
    if primitive is broadcast:
        axes = tuple(i for i in range(ct.type.ndim) if i not in params["dims"])
        return [clean(results[0], mask.derived(lambda x: reduce_or(x, axes=axes)))]
    if primitive is reduce_sum or isinstance(primitive, StructuralPrimitive):
        return [clean(results[0], mask.derived(lambda x: turned(x)[0]))]
    return results


def _at_indices(ct: Tangent, turned: Callable[[Tracer], Any], place: int, literals: Literals | None = None) -> Mask:
    """The mask of an operand's cotangent, given that of the result: the zeros that indices have moved or made."""

    def condition() -> Tracer:
        counts = turned(support(ct, literals))[place]
        return ne(counts, full_like(counts, 0))

    return Mask(far=(later(condition, 1 + weight_of(literals_of(ct) if literals is None else literals)),))


def _backward_through_write(
    primitive: Primitive, ct: Tangent, turned: Callable[[Tracer], Any]
) -> Sequence[Tangent | None]:
    """Cotangents of an array that is written to, and of what is written.

    Few elements that are written have a mask only where a choice came later.  A loop that writes element by element
    would otherwise spend on each of them the time that it takes to find out where the whole array is zero.
    """
    x, updates, *others = turned(recorded(ct))
    near = ct.mask.near if isinstance(ct, Masked) else ()
    literals = literals_of(ct) if updates is not None and updates.size * _MOST_WRITES >= ct.type.size else near
    rest: Tangent | None = ct
    if x is None or primitive not in (add_slice, scatter_add):
        rest = clean(x, Mask(near, _at_indices(ct, turned, 0).far))
    return [rest, clean(updates, _at_indices(ct, turned, 1, literals)) if literals else updates, *others]


def added(x: Tangent, y: Tangent, add: Callable[[Tracer, Tracer], Tracer]) -> Tangent:
    """The sum of two cotangents."""
    if not isinstance(x, Masked) or not isinstance(y, Masked):
        return add(recorded(x), recorded(y))
    if not x.is_clean and not y.is_clean:
        if x.mask.key() == y.mask.key():
            return Masked(add(x.value, y.value), x.mask)
        *before, (condition, chosen) = x.mask.near
        *others, (other, other_chosen) = y.mask.near
        rest = Mask(tuple(before))
        if condition.key is other.key and chosen != other_chosen and rest.key() == Mask(tuple(others)).key():
            # The two sides of one choice.
            sides = (x.value, y.value) if chosen else (y.value, x.value)
            far = (any_of([x.mask.far, y.mask.far]),) if x.mask.far and y.mask.far else ()
            return _seen(select(condition.array, *sides), Mask(rest.near, far))  # type: ignore[return-value]
    return clean(add(x.whole(), y.whole()), union_of([x, y]))  # type: ignore[return-value]
