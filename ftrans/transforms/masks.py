"""Masks: where tangents and cotangents are zero because something else was chosen there.

`where(x > 0, sqrt(x), 0)` does not depend on `sqrt(x)` at 0, where the derivative of `sqrt` is infinite.  Zero times
infinity is not a number, so the zero must come last: derivatives are taken of all elements, and what was not chosen is
left out of the result.  For that, a choice is put off while derivatives act on each element by itself (`Masked`).  It
costs nothing: the choice is made once, only later.

A tangent that has been summed, broadcast or cut to parts is zero by itself where it is masked.  Its mask is made only
where an infinite factor may follow; where indices made the zeros, only before the functions that have one (`steep`).

Only zeros that come from a choice are exact in this way.  A zero that was computed, as in `exp(2 * log(x))` at 0, may
stand for any small number: its product with infinity stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.primitive import Primitive
from ..core.program import Const, Params
from ..core.source import attributed_to, user_line
from ..core.trace import Tracer, definition
from ..core.types import ArrayType
from ..ops.elementwise import (
    Elementwise,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    complex_,
    conj,
    convert,
    imag,
    ne,
    neg,
    real,
    select,
    steep,
    sub,
)
from ..ops.elementwise.family import combined
from ..ops.indexing import gather
from ..ops.reductions import reduce_or, reduce_sum
from ..ops.shapes import StructuralPrimitive, broadcast, concatenate, full_like, pad, reshape, reverse, slice_
from ..ops.shapes import transpose as transpose_axes

# A condition, and whether the element counts where it holds or where it does not.
Literal = tuple[Tracer, bool]
# Their transposes only move elements.
_MOVES = (reshape, transpose_axes, reverse)
# They have no factor that may be infinite.
_LINEAR = (add, sub, neg, convert, conj, real, imag, complex_)
# More literals than this become one condition, and a mask made of more conditions than this is forgotten.
_MOST_LITERALS, _MOST_CONDITIONS = 8, 64


class Mask:
    """Where a tangent is not zero: where all literals hold.

    Attributes:
        weight: how many conditions it is made of.
        is_far: whether it is worth its cost only before functions with infinite derivatives.

    Args:
        literals: the literals, or a function that records the condition when it is first needed.
    """

    __slots__ = ("_literals", "is_far", "weight")

    def __init__(
        self, literals: Sequence[Literal] | Callable[[], Tracer], weight: int = 0, is_far: bool = False
    ) -> None:
        self._literals = literals
        self.weight = weight if callable(literals) else len(literals)
        self.is_far = is_far

    @property
    def literals(self) -> Sequence[Literal]:
        """The literals."""
        if callable(self._literals):
            self._literals = ((self._literals(), True),)
        return self._literals

    def condition(self) -> Tracer:
        """All of them in one."""
        first, *others = (c if chosen else bitwise_not(c) for c, chosen in self.literals)
        for other in others:
            first = bitwise_and(first, other)
        return first

    def key(self) -> Sequence[Any]:
        """What tells it apart from other masks."""
        return [self] if callable(self._literals) else [(c.atom, chosen) for c, chosen in self._literals]


class Masked:
    """A tangent or cotangent that is zero but where its mask holds.

    Attributes:
        mask: the mask.

    Args:
        value: what it is where the mask holds, and anything elsewhere; None where it is zero there by itself.
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
                literals = self.mask.literals
                condition, chosen = literals[0] if len(literals) == 1 else (self.mask.condition(), True)
                self._whole = select(condition, *((self.value, zero) if chosen else (zero, self.value)))
        return self._whole


Tangent = Tracer | Masked


def whole(t: Tangent | None) -> Tracer | None:
    """A tangent without a mask put off."""
    return t.whole() if isinstance(t, Masked) else t


def _clean(t: Tracer | None, mask: Mask) -> Tangent | None:
    """A tangent that is zero by itself where it is masked."""
    return Masked(None, mask, t) if t is not None and mask.weight <= _MOST_CONDITIONS else t


def _seen_or_clean(t: Tracer | None, mask: Mask) -> Tangent | None:
    """The same, where a rule has recorded it; a choice that it has made last says more than what indices made."""
    found = _seen(t) if mask.is_far else t
    return found if isinstance(found, Masked) else _clean(t, mask)


def _derived(mask: Mask, make: Callable[[], Tracer], is_far: bool = False) -> Mask:
    """A mask that is made of another one when it is needed."""
    return Mask(make, mask.weight + 1, is_far or mask.is_far)


def _seen(t: Tracer | None, mask: Sequence[Literal] = ()) -> Tangent | None:
    """What a rule has recorded, with the mask of its operand; a choice of zeros that it has made last is put off."""
    if t is None:
        return None
    made = definition(t)
    if made is not None and made.primitive is select:
        condition, x, y = (Tracer(t.builder, a) for a in made.operands)
        chosen = _is_zero(y)
        if chosen or _is_zero(x):
            new = () if any(c.atom is condition.atom and b is chosen for c, b in mask) else ((condition, chosen),)
            if len(mask) == _MOST_LITERALS:
                mask = ((Mask(mask).condition(), True),)
            return Masked(x if chosen else y, Mask((*mask, *new)), None if mask else t)
    return Masked(t, Mask(mask)) if mask else t


def _is_zero(x: Tracer) -> bool:
    return isinstance(x.atom, Const) and x.atom.is_splat and bool(x.atom.value == 0)


def _is_needed(mask: Mask, primitive: Elementwise, operands: Sequence[Tracer | ArrayType], params: Params) -> bool:
    """Whether the tangent of an elementwise function may be a product with infinity."""
    if mask.is_far:
        return primitive is steep or primitive.is_steep(operands, params)
    return primitive not in _LINEAR


def forward(
    primitive: Primitive, primals: Sequence[Tracer], tangents: Sequence[Tangent | None], params: Params
) -> tuple[Tracer, Tangent | None]:
    """The result of an equation that has one, and its tangent."""
    masked = [t for t in tangents if t.__class__ is Masked]
    if not masked:
        out, result = primitive.jvp(primals, tangents, **params)  # type: ignore[arg-type]
        if isinstance(primitive, Elementwise):
            return out, _seen(result)
        if not (primitive is pad or (primitive is concatenate and any([t is None for t in tangents]))):
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
    if primitive is pad or primitive is concatenate:
        return _forward_among_others(jvp, tangents)
    masked = [t for t in tangents if isinstance(t, Masked)]
    if not masked or len(masked) < sum([t is not None for t in tangents]):
        out, result = jvp([whole(t) for t in tangents])
        return out, _seen(result) if isinstance(primitive, Elementwise) else result
    first = masked[0]
    if isinstance(primitive, Elementwise):
        needed = any([not t.is_clean or _is_needed(t.mask, primitive, primals, params) for t in masked])
        if needed and all([t.mask.key() == first.mask.key() for t in masked[1:]]):
            out, result = jvp([t.value if isinstance(t, Masked) else None for t in tangents])
            return out, _seen(result, first.mask.literals)
        out, result = jvp([whole(t) for t in tangents])
        if not needed or primitive in _LINEAR:
            return out, _seen_or_clean(result, _union(masked))
        return out, None if result is None else Masked(result, Mask([(_union(masked).condition(), True)]))
    if primitive in _MOVES and not first.is_clean:
        out, result = jvp([first.value])
        return out, Masked(result, Mask([(primitive(c, **params), chosen) for c, chosen in first.mask.literals]))
    out, result = jvp([whole(t) for t in tangents])
    if isinstance(primitive, StructuralPrimitive):
        return out, _clean(result, _derived(first.mask, lambda: primitive(first.mask.condition(), **params)))
    if primitive is reduce_sum:
        return out, _clean(result, _derived(first.mask, lambda: reduce_or(first.mask.condition(), **params)))
    return out, result


def _forward_among_others(
    jvp: Callable[[Sequence[Tracer | None]], tuple[Any, Any]], tangents: Sequence[Tangent | None]
) -> tuple[Tracer, Tangent | None]:
    """An array made of several, and its tangent, which is zero where an operand has none."""
    out, result = jvp([whole(t) for t in tangents])

    def condition() -> Tracer:
        counts: Tracer = jvp([None if t is None else _support(t) for t in tangents])[1]
        return ne(counts, full_like(counts, 0))  # type: ignore[no-any-return]

    weight = 1 + sum([t.mask.weight for t in tangents if isinstance(t, Masked)])
    return out, _clean(result, Mask(condition, weight, is_far=True))


def _support(t: Tangent) -> Tracer:
    """1 where a tangent is not masked, 0 elsewhere, in its dtype."""
    if isinstance(t, Masked):
        return convert(t.mask.condition(), dtype=t.type.dtype)  # type: ignore[no-any-return]
    return full_like(t, 1)


def backward(
    primitive: Primitive, ct: Tangent, operands: Sequence[Tracer | ArrayType], params: Params
) -> Sequence[Tangent | None]:
    """The cotangents of the operands of an equation with one result."""

    def turned(x: Tracer) -> Any:
        return primitive.transpose(x, operands, **params)

    if primitive is gather or (primitive is slice_ and (not isinstance(ct, Masked) or ct.mask.is_far)):
        return _backward_through_indices(ct, turned)
    if not isinstance(ct, Masked):
        return [_seen(r) for r in turned(ct)] if primitive is select else turned(ct)
    mask = ct.mask
    if isinstance(primitive, Elementwise):
        if not ct.is_clean or _is_needed(mask, primitive, operands, params):
            return [_seen(r, mask.literals) for r in turned(ct.value)]
        return [_seen_or_clean(r, mask) for r in turned(ct.value)]
    if primitive in _MOVES and not ct.is_clean:
        return [Masked(turned(ct.value)[0], Mask([(turned(c)[0], chosen) for c, chosen in mask.literals]))]
    results: Sequence[Tracer | None] = turned(ct.whole())
    if primitive is broadcast:
        axes = tuple(i for i in range(ct.type.ndim) if i not in params["dims"])
        return [_clean(results[0], _derived(mask, lambda: reduce_or(mask.condition(), axes=axes)))]
    if primitive is reduce_sum or isinstance(primitive, StructuralPrimitive):
        return [_clean(results[0], _derived(mask, lambda: turned(mask.condition())[0]))]
    return results


def _backward_through_indices(ct: Tangent, turned: Callable[[Tracer], Any]) -> Sequence[Tangent | None]:
    """Cotangents through the choice of some elements: those of the others are zero."""
    result, *others = turned(ct.whole() if isinstance(ct, Masked) else ct)

    def condition() -> Tracer:
        counts = turned(_support(ct))[0]
        return ne(counts, full_like(counts, 0))  # type: ignore[no-any-return]

    weight = ct.mask.weight + 1 if isinstance(ct, Masked) else 1
    return [_clean(result, Mask(condition, weight, is_far=True)), *others]


def _union(masked: Sequence[Masked]) -> Mask:
    """Where one of several is not masked."""
    first = masked[0].mask
    masks = list({id(t.mask): t.mask for t in masked}.values())
    if all([m.key() == first.key() for m in masks[1:]]):
        return first

    def condition() -> Tracer:
        found, *others = (m.condition() for m in masks)
        for other in others:
            found = bitwise_or(found, other)
        return found

    return Mask(condition, sum([m.weight for m in masks]), any([m.is_far for m in masks]))


def added(x: Tangent, y: Tangent, add: Callable[[Tracer, Tracer], Tracer]) -> Tangent:
    """The sum of two cotangents."""
    if not isinstance(x, Masked):
        return add(x, y.whole() if isinstance(y, Masked) else y)
    if not isinstance(y, Masked):
        return add(x.whole(), y)
    if not x.is_clean and not y.is_clean:
        if x.mask.key() == y.mask.key():
            return Masked(add(x.value, y.value), x.mask)
        *before, (condition, chosen) = x.mask.literals
        *others, (other, other_chosen) = y.mask.literals
        if condition.atom is other.atom and chosen != other_chosen and Mask(before).key() == Mask(others).key():
            # The two sides of one choice.
            sides = (x.value, y.value) if chosen else (y.value, x.value)
            joined: Tracer = select(condition, *sides)
            return Masked(joined, Mask(before)) if before else joined
    total = _clean(add(x.whole(), y.whole()), _union([x, y]))
    assert total is not None
    return total
