"""Shifts that cannot matter: numbers m such as the maximum in m + log(sum(exp(x - m))), held constant in derivatives.

Whether a result depends on m is found by following m through the expression. A value is v + k m or v exp(k m), for a
number k and a v without m, and each operation says what k is afterwards: `exp` makes the second form of the first and
`log` the first of the second, sums of the second form keep k if m is the same for all terms, and in products k adds up.
Where k is 0 in the end, m has cancelled, whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from ..base.source import attributed_to
from ..core.primitive import Primitive
from ..core.program import Atom, Const, Eqn, Params
from ..core.trace import Tracer, definition
from ..core.types import Shape
from ..ops.broadcast import broadcast, reduce_sum
from ..ops.contractions import dot_general
from ..ops.elementwise import Elementwise, add, div, exp, log, mul, neg, reciprocal, select, stop_gradient, sub
from ..ops.shapes import reshape, transpose
from .rule import Operands

if TYPE_CHECKING:
    from fractions import Fraction

# Expressions with more equations than this between the shift and the result are left as they are.
_MOST_EQNS = 64
# In this many steps back from a result, a shift inside of an exponential is looked for.
_MOST_STEPS = 12
_LINEAR = (broadcast, reshape, transpose, neg)
_PASSED = (*_LINEAR, reduce_sum, dot_general, exp, log, mul, div, reciprocal, select)
_BINARY = (add, sub, mul, div)

Axes = tuple[int | None, ...]


class Dependence(NamedTuple):
    """How a value depends on the shift m: it is v + weight * m, or v * exp(weight * m), for a v without m.

    Attributes:
        weight: the number.
        is_factor: whether it is the second of these forms.
        axes: for each axis of the value, the axis of m that lies along it, or None where m is repeated.
    """

    weight: Fraction
    is_factor: bool
    axes: Axes


class UnknownDependenceError(Exception):
    """A value depends on the shift in a way that is neither of the two, or cannot be told."""


class _Search:
    """What depends on one shift, and how."""

    def __init__(self, shift: Tracer) -> None:
        from fractions import Fraction

        self.shift = shift
        self.builder = shift.builder
        self.left = _MOST_EQNS
        axes = tuple(i if n > 1 else None for i, n in enumerate(shift.shape))
        self.found: dict[Atom, Dependence | None] = {shift.atom: Dependence(Fraction(1), False, axes)}
        # What the shift is made of does not depend on it.
        waiting = [shift.atom]
        for atom in waiting:
            eqn = self.builder.tape.definition(atom)
            if eqn is not None and len(waiting) < _MOST_EQNS:
                waiting += [a for a in eqn.operands if a not in self.found]
                self.found.update(dict.fromkeys([a for a in eqn.operands if a not in self.found]))

    def of(self, atom: Atom) -> Dependence | None:
        """How a value depends on the shift; None if it does not."""
        if atom not in self.found:
            eqn = self.builder.tape.definition(atom)
            self.found[atom] = None if eqn is None else self.of_result(eqn)
        return self.found[atom]

    def of_result(self, eqn: Eqn) -> Dependence | None:
        """The same for the result of an equation."""
        self.left -= 1
        if self.left < 0:
            raise UnknownDependenceError
        operands = [self.of(a) for a in eqn.operands]
        if not any(operands) or eqn.primitive is stop_gradient:
            return None
        found = self.combined(eqn, operands)
        return None if found.weight == 0 else found

    def combined(self, eqn: Eqn, operands: Sequence[Dependence | None]) -> Dependence:
        """The dependence of a result, from those of the operands, at least one of which there is."""
        primitive = eqn.primitive
        if primitive in _BINARY:
            return _of_two(eqn, *operands)
        if primitive is select:
            return _of_choice(eqn, *operands[1:])
        if primitive is dot_general:
            return _of_product(eqn, *operands)
        (x,) = operands if len(operands) == 1 else (None,)
        if x is None:
            raise UnknownDependenceError
        if primitive in (exp, log) and x.is_factor == (primitive is log):
            return x._replace(is_factor=not x.is_factor)
        if primitive is reciprocal and x.is_factor:
            return x._replace(weight=-x.weight)
        if primitive is neg:
            return x if x.is_factor else x._replace(weight=-x.weight)
        return x._replace(axes=_moved(eqn, x))

    def held(self, atom: Atom, made: dict[Atom, Tracer]) -> Tracer:
        """The value again, with the shift held constant."""
        if self.of(atom) is None:
            return Tracer(self.builder, atom)
        if atom not in made:
            eqn = self.builder.tape.definition(atom)
            if atom is self.shift.atom:
                made[atom] = stop_gradient(self.shift)
            elif eqn is not None:
                operands = [self.held(a, made) for a in eqn.operands]
                with attributed_to(eqn.line):
                    (made[atom],) = eqn.primitive.bind_all(operands, eqn.params)
        return made[atom]


def _of_two(eqn: Eqn, x: Dependence | None, y: Dependence | None) -> Dependence:
    """The dependence of a sum, difference, product or quotient."""
    primitive = eqn.primitive
    sign = -1 if primitive in (sub, div) else 1
    is_product = primitive in (mul, div)
    if x is None or y is None:
        one = x or y
        assert one is not None
        weight = one.weight if y is None else sign * one.weight
        if one.is_factor:
            if not is_product:
                raise UnknownDependenceError
            return one._replace(weight=weight)
        return one._replace(weight=_scaled(eqn, one.weight, y is None) if is_product else weight)
    if x.axes != y.axes or x.is_factor != y.is_factor:
        raise UnknownDependenceError
    if is_product == x.is_factor:
        return x._replace(weight=x.weight + sign * y.weight)
    if is_product or x.weight != y.weight:
        raise UnknownDependenceError
    return x


def _scaled(eqn: Eqn, weight: Fraction, is_first: bool) -> Fraction:
    """The weight of a product of v + weight * m with a number, or of the quotient."""
    from fractions import Fraction

    other = eqn.operands[1 if is_first else 0]
    number = other.value if isinstance(other, Const) and other.is_splat else None
    if number is None or number.dtype.kind != "f" or not isfinite(number) or number == 0:
        raise UnknownDependenceError
    if eqn.primitive is mul:
        return weight * Fraction(float(number))
    if not is_first:
        raise UnknownDependenceError
    return weight / Fraction(float(number))


def _of_choice(eqn: Eqn, x: Dependence | None, y: Dependence | None) -> Dependence:
    """The dependence of a choice between equal ones, or between terms with a factor and zeros."""
    if x is not None and y is not None and x == y:
        return x
    one, other = (x, eqn.operands[2]) if x is not None else (y, eqn.operands[1])
    is_zero = isinstance(other, Const) and other.is_splat and other.value == 0
    if one is None or (x is not None and y is not None) or not (one.is_factor and is_zero):
        raise UnknownDependenceError
    return one


def _of_product(eqn: Eqn, x: Dependence | None, y: Dependence | None) -> Dependence:
    """The dependence of a product of arrays, of which one has a factor that is the same for all terms of a sum."""
    one, place = (y, 1) if x is None else (x, 0)
    contract, batch = eqn.params["contract"], eqn.params["batch"]
    if one is None or (x is not None and y is not None) or not one.is_factor:
        raise UnknownDependenceError
    if any(one.axes[i] is not None for i in contract[place]):
        raise UnknownDependenceError
    shared = tuple(one.axes[i] for i in batch[place])
    free = tuple(a for i, a in enumerate(one.axes) if i not in contract[place] and i not in batch[place])
    others = (None,) * (eqn.outputs[0].type.ndim - len(shared) - len(free))
    return one._replace(axes=(*shared, *others, *free) if place else (*shared, *free, *others))


def _moved(eqn: Eqn, x: Dependence) -> Axes:
    """The axes of the shift after an equation that moves, repeats or adds up elements."""
    primitive, params, before, after = eqn.primitive, eqn.params, eqn.operands[0].type.shape, eqn.outputs[0].type.shape
    if primitive is broadcast:
        along = dict(zip(params["dims"], x.axes, strict=True))
        return tuple(along.get(i) for i in range(len(after)))
    if primitive is transpose:
        return tuple(x.axes[i] for i in params["axes"])
    if primitive is reduce_sum and x.is_factor and all(x.axes[i] is None for i in params["axes"]):
        return tuple(a for i, a in enumerate(x.axes) if i not in params["axes"])
    if primitive is reshape and _long(before) == _long(after):
        along_long = iter([a for a, n in zip(x.axes, before, strict=True) if n != 1])
        return tuple(None if n == 1 else next(along_long) for n in after)
    raise UnknownDependenceError


def _long(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)


# The rules


def sum_without_shift(operands: Operands, params: Params) -> Tracer | None:
    return _without_shift(add, operands.values) if _are_made_by((log,), operands.values) else None


def difference_without_shift(operands: Operands, params: Params) -> Tracer | None:
    return _without_shift(sub, operands.values) if _are_made_by((log,), operands.values) else None


def product_without_shift(operands: Operands, params: Params) -> Tracer | None:
    return _without_shift(mul, operands.values) if _are_made_by((div, reciprocal), operands.values) else None


def quotient_without_shift(operands: Operands, params: Params) -> Tracer | None:
    return (
        _without_shift(div, operands.values) if _are_made_by((reduce_sum, dot_general), operands.values[1:]) else None
    )


def _are_made_by(primitives: Sequence[Primitive], values: Sequence[Tracer]) -> bool:
    """Whether one of `values` comes from an equation of certain primitives."""
    made = [definition(_origin(x)) for x in values]
    return any(eqn is not None and eqn.primitive in primitives for eqn in made)


def _origin(x: Tracer) -> Tracer:
    """What moves elements to `x`, or changes its scale or sign, traced back."""
    while (eqn := definition(x)) is not None:
        is_scaled = eqn.primitive in (mul, div) and isinstance(eqn.operands[1], Const)
        if is_scaled or eqn.primitive in _LINEAR:
            x = Tracer(x.builder, eqn.operands[0])
        elif eqn.primitive is mul and isinstance(eqn.operands[0], Const):
            x = Tracer(x.builder, eqn.operands[1])
        else:
            break
    return x


def _without_shift(primitive: Elementwise, values: Sequence[Tracer]) -> Tracer | None:
    """The operation with a shift held constant that cancels in it; None where none is found."""
    for shift in _shifts(values):
        search = _Search(shift)
        try:
            dependences = [search.of(x.atom) for x in values]
            if not any(dependences):
                continue
            eqn = Eqn(primitive, tuple(x.atom for x in values), {}, (), None)
            cancels = search.combined(eqn, dependences).weight == 0
        except UnknownDependenceError:
            continue
        if cancels:
            made: dict[Atom, Tracer] = {}
            result: Tracer = primitive(*[search.held(x.atom, made) for x in values])
            return result
    return None


def _shifts(values: Sequence[Tracer]) -> Iterator[Tracer]:
    """What is added to or subtracted from arguments of exponentials, near `values`."""
    seen: dict[tuple[Atom, bool], None] = {(x.atom, False): None for x in values}
    builder, steps = values[0].builder, 0
    waiting = list(seen)
    for atom, is_inside in waiting:
        eqn = builder.tape.definition(atom)
        steps += 1
        if eqn is None or steps > _MOST_STEPS:
            continue
        if is_inside and eqn.primitive in (add, sub):
            for a in reversed(eqn.operands):
                shift = _origin(Tracer(builder, a))
                made = definition(shift)
                if not isinstance(shift.atom, Const) and (made is None or made.primitive is not stop_gradient):
                    yield shift
        if eqn.primitive in _PASSED or (eqn.primitive in (add, sub) and not is_inside):
            for a in eqn.operands:
                key = a, is_inside or eqn.primitive is exp
                if key not in seen and not isinstance(a, Const):
                    seen[key] = None
                    waiting.append(key)
