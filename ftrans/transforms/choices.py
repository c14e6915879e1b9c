"""Choices made last: in a derivative, the zeros of elements that a choice leaves out are inserted after all products.

`where(x > 0, sqrt(x), 0)` does not depend on `sqrt(x)` at 0, where the derivative of `sqrt` is infinite.  Zero times
infinity is NaN, so the zero must come last.  Derivative rules need not care: this pass walks the linear equations that
they have recorded, and moves each choice, `select(c, t, 0)`, past elementwise equations and those that move elements.
This costs nothing: the choice is made once, only later.

Other equations take the value with its zeros.  The mask of their result, which says where it is zero, is found by
applying the same equations to booleans.  The mask is recorded, and the zeros inserted again, only after a factor that
may be infinite.  Rules mark such factors by `singular_slope`.  In reverse mode any factor after a choice may be
infinite, since it belongs to elements that were left out.

Only zeros that come from a choice are exact in this way.  A computed zero, as in `exp(2 * log(x))` at 0, may stand
for any small number: its product with infinity stays NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..base.source import attributed_to
from ..core.interpret import interpret, repeat
from ..core.primitive import Primitive, ProgramHolder
from ..core.program import Eqn, Program
from ..core.tape import Tape
from ..core.trace import Builder, Tracer, building
from ..ops.broadcast import reduce_sum
from ..ops.elementwise import (
    Elementwise,
    add,
    complex_,
    conj,
    convert,
    div,
    imag,
    mul,
    ne,
    neg,
    real,
    select,
    singular_slope,
    sub,
)
from ..ops.indexing import gather, scatter_add, scatter_set
from ..ops.literals import full, full_like, splat
from ..ops.moving_slices import dynamic_add, dynamic_set, dynamic_slice
from ..ops.parts import concatenate, pad, slice_
from ..ops.reductions import reduce_or
from ..ops.shapes import StructuralPrimitive
from ..ops.slices import add_slice, set_slice
from .masks import Condition, Mask, Masked, all_of, any_of, carried, weight

Flags = tuple[bool, ...]
# A value of the walk: masked if it depends on a linear input.
Value = Tracer | Masked

# They have no factor.
SUMS = (add, sub, neg, convert, conj, real, imag, complex_)
# An array made of several, which may be constant zeros.
_WRITES = (set_slice, scatter_set, dynamic_set)
_ADDITIONS = (add_slice, scatter_add, dynamic_add)
_JOINS = (pad, concatenate, *_WRITES, *_ADDITIONS)
_READS = (slice_, gather, dynamic_slice)
# Their results may have a mask where no operand has one.
_MASKING = {select, *_JOINS}
# An array with more assignments than this, as by a loop over elements, has no mask: each would cost the size of the
# array.
_MOST_WRITES = 8
# A part of an array smaller than this fraction has no mask of its own either.
_LEAST_PART = 1 / 8


class Late(NamedTuple):
    """A program that makes its choices last.

    Attributes:
        program: takes what the original takes, then the masks of the inputs flagged in `masks`; returns what the
            original returns, then the masks of the outputs flagged in `out_masks`.
        masks: for each input.
        out_linear: which outputs depend on a linear input.
        out_masks: for each output.
    """

    program: Program
    masks: Flags
    out_linear: Flags
    out_masks: Flags


def with_choices_last(program: Program, linear: Flags, forward: bool) -> Program:
    """Rewrite a program so that it makes its choices last.

    Args:
        program: a derivative.
        linear: which of its inputs are tangents or cotangents.
        forward: whether they are tangents.  Factors after a choice then belong to chosen elements, so that only those
            marked as singular may be infinite; and the program may contain equations that compute values.
    """
    primitives = [eqn.primitive for eqn in program.eqns]
    if not _may_choose(primitives) and not any([isinstance(primitive, ProgramHolder) for primitive in {*primitives}]):
        return program
    return _Walk(forward).late(program, linear, (False,) * len(linear), False).program


def _may_choose(primitives: Sequence[Primitive]) -> bool:
    """Whether there is a choice, or a factor that may be infinite after an array with zeros in some of its parts."""
    if select in primitives:
        return True
    first = next((i for i, primitive in enumerate(primitives) if primitive in _JOINS), len(primitives))
    return singular_slope in primitives[first:]


def _whole(x: Value) -> Tracer:
    return x.whole() if isinstance(x, Masked) else x


def _is_zero(x: Value) -> bool:
    return isinstance(x, Tracer) and splat(x) == 0


class _Walk:
    """The pass: processes a program equation by equation."""

    def __init__(self, forward: bool) -> None:
        self.forward = forward

    def late(self, program: Program, linear: Flags, masked: Flags, gives_masks: bool) -> Late:
        """The rewritten program, given which of its inputs are linear, and which of these have a mask."""
        conditions = [v.type.with_dtype(np.bool_) for v, m in zip(program.inputs, masked, strict=True) if m]
        builder = Builder(Tape([*program.inputs, *conditions], program.eqns))
        with building(builder):
            inputs = builder.inputs()
            given = iter(inputs[len(linear) :])
            args: list[Value] = [
                Masked(x, far=(Condition(next(given)),) if m else ()) if is_linear else x
                for x, is_linear, m in zip(inputs, linear, masked, strict=False)
            ]
            outs = interpret(program, args, self.apply, lambda const: Tracer(builder, const))
            out_linear = tuple([isinstance(y, Masked) for y in outs])
            masks = [y.mask if gives_masks and isinstance(y, Masked) else () for y in outs]
            made = builder.finish([*map(_whole, outs), *(all_of(m) for m in masks if m)], program.name)
        used = {*made.outputs, *(a for eqn in made.eqns for a in eqn.operands)}
        is_used = iter([v in used for v in made.inputs[len(linear) :]])
        taken = tuple([m and next(is_used) for m in masked])
        kept = [v for i, v in enumerate(made.inputs) if i < len(linear) or v in used]
        return Late(Program(made.name, kept, made.eqns, made.outputs), taken, out_linear, tuple(map(bool, masks)))

    def apply(self, eqn: Eqn, operands: list[Value]) -> Sequence[Value]:
        """The results of an equation."""
        masked = [x for x in operands if isinstance(x, Masked)]
        if not masked:
            return repeat(eqn, operands)
        primitive = eqn.primitive
        if primitive not in _MASKING and not primitive.multiple_results and not any([x.near or x.far for x in masked]):
            return [Masked(y) for y in repeat(eqn, [x.value if isinstance(x, Masked) else x for x in operands])]
        with attributed_to(eqn.line):
            if isinstance(primitive, ProgramHolder):
                return self.program(eqn, operands)
            if primitive.multiple_results:
                return self.multiple_results(eqn, operands)
            if isinstance(primitive, Elementwise):
                return [self.elementwise(eqn, operands, masked)]
            if primitive in _JOINS:
                return [self.joined(eqn, operands, masked)]
            return [self.moved(eqn, operands, masked[0])]

    def clean(self, out: Tracer, near: Mask, far: Mask) -> Masked:
        """A value that is zero by itself where it is masked: there is nothing near in forward mode, see above."""
        return Masked(out, (), (*near, *far)) if self.forward else Masked(out, near, far)

    # Equations with programs

    def program(self, eqn: Eqn, operands: list[Value]) -> Sequence[Value]:
        """The results of an equation that calls a program, whose inputs and outputs get masks."""
        program: Program = eqn.params["program"]
        linear = tuple([isinstance(x, Masked) for x in operands])
        masked = tuple([isinstance(x, Masked) and bool(x.mask) for x in operands])
        key = ("choices last", linear, masked, self.forward)
        late = program.derive(key, lambda: self.late(program, linear, masked, True))
        masks = [all_of(x.mask) for x, m in zip(operands, late.masks, strict=True) if m and isinstance(x, Masked)]
        outs = eqn.primitive.bind_all([*map(_whole, operands), *masks], {**eqn.params, "program": late.program})
        given = iter(outs[len(eqn.outputs) :])
        return [
            Masked(y, far=(Condition(next(given)),) if m else ()) if is_linear else y
            for y, is_linear, m in zip(outs, late.out_linear, late.out_masks, strict=False)
        ]

    def multiple_results(self, eqn: Eqn, operands: list[Value]) -> Sequence[Value]:
        """The results of any other equation with several results; some of them may be values instead of tangents."""
        linear: Sequence[bool] = [True] * len(eqn.outputs)
        if self.forward:
            unknown = [isinstance(x, Masked) for x in operands]
            halves = eqn.primitive.split(unknown, [a.type for a in eqn.operands], **eqn.params)
            linear = linear if halves is None else halves.out_unknown
        outs = repeat(eqn, [_whole(x) for x in operands])
        return [Masked(y) if is_linear else y for y, is_linear in zip(outs, linear, strict=True)]

    # Functions of each element

    def elementwise(self, eqn: Eqn, operands: list[Value], masked: list[Masked]) -> Masked:
        primitive, first = eqn.primitive, masked[0]
        if primitive is select and isinstance(operands[0], Tracer):
            for place, holds in ((2, True), (1, False)):
                if _is_zero(operands[place]):
                    return first.where(Condition(operands[0], holds), eqn.line)
        if primitive is singular_slope:
            return Masked(singular_slope(first.value), first.mask, (), not first.mask, eqn.line)
        if not _is_linear(eqn, operands):
            return Masked(*repeat(eqn, [_whole(x) for x in operands]))
        if all([x.key == first.key for x in masked[1:]]):
            if not all([x.is_clean for x in masked]) or (first.near and primitive not in SUMS):
                (out,) = repeat(eqn, [x.value if isinstance(x, Masked) else x for x in operands])
                return Masked(out, first.near, first.far, False, eqn.line)
            (out,) = repeat(eqn, [_whole(x) for x in operands])
            return self.clean(out, first.near, first.far)
        sides = _two_sides(eqn, masked[0], masked[1]) if primitive is add else None
        if sides is not None:
            return sides
        near = any_of([x.near for x in masked])
        far = any_of([x.mask for x in masked]) if not near or any([x.far for x in masked]) else ()
        (out,) = repeat(eqn, [_whole(x) for x in operands])
        return self.clean(out, near, far)

    # Arrays whose elements are moved, and those made of several

    def moved(self, eqn: Eqn, operands: list[Value], x: Masked) -> Masked:
        primitive, params, others = eqn.primitive, eqn.params, operands[1:]

        def move(condition: Tracer) -> Tracer:
            return primitive.bind_all([condition, *others], params)[0]  # type: ignore[no-any-return]

        if isinstance(primitive, StructuralPrimitive) and not x.is_clean and x.value.size == eqn.outputs[0].type.size:
            choice = x.near[0] if len(x.near) == 1 else Condition(all_of(x.near), weight=weight(x.near))
            found = Condition(move(choice.array), choice.holds, choice.weight)
            return Masked(move(x.value), (found,), carried(x.far, move), False, eqn.line)
        (out,) = repeat(eqn, [_whole(x) for x in operands])
        if operands[0] is not x:
            return Masked(out)
        if primitive is reduce_sum:
            near, far = [carried(mask, lambda c: reduce_or(c, **params)) for mask in (x.near, x.far)]
            return self.clean(out, near, far)
        if primitive in _READS:
            is_small = out.size < _LEAST_PART * x.value.size and weight(x.far) > 1
            return Masked(out, (), carried(x.near if is_small else x.mask, move))
        if isinstance(primitive, StructuralPrimitive):
            return self.clean(out, carried(x.near, move), carried(x.far, move))
        return Masked(out)

    def joined(self, eqn: Eqn, operands: list[Value], masked: list[Masked]) -> Masked:
        (out,) = repeat(eqn, [_whole(x) for x in operands])
        total = 1 + weight(*(x.mask for x in masked))
        is_assigned = eqn.primitive in _WRITES
        has_zeros = any([x.mask for x in masked]) or any(map(_is_zero, operands))
        if not has_zeros or (is_assigned and total > _MOST_WRITES):
            return Masked(out)

        def support(masks: list[Mask]) -> Mask:
            return (Condition(lambda: _support(eqn, operands, masks), weight=total),)

        nears, fars = [x.near for x in masked], [x.far for x in masked]
        if not all(nears):
            return Masked(out, (), support([x.mask for x in masked]))
        return self.clean(out, support(nears), support(fars) if any(fars) else ())


def _is_linear(eqn: Eqn, operands: list[Value]) -> bool:
    """Whether an equation is jointly linear in its masked operands."""
    masked = [isinstance(x, Masked) for x in operands]
    if eqn.primitive is mul:
        return masked.count(True) == 1
    if eqn.primitive is div:
        return masked == [True, False]
    return masked == [False, True, True] if eqn.primitive is select else eqn.primitive in SUMS and all(masked)


def _two_sides(eqn: Eqn, x: Masked, y: Masked) -> Masked | None:
    """The sum of two operands that are the two sides of one choice; None if they are not."""
    if x.is_clean or y.is_clean or not x.near[-1].is_opposite(y.near[-1]):
        return None
    rest, others = (Masked(v.value, v.near[:-1]) for v in (x, y))
    if rest.key != others.key:
        return None
    condition = x.near[-1]
    sides = (x.value, y.value) if condition.holds else (y.value, x.value)
    return Masked(select(condition.array, *sides), rest.near, any_of([x.far, y.far]), not rest.near, eqn.line)


def _support(eqn: Eqn, operands: list[Value], masks: list[Mask]) -> Tracer:
    """Where the result of an equation may be nonzero: the equation applied to the masks of its operands."""
    is_sum = eqn.primitive in _ADDITIONS
    dtype = eqn.outputs[0].type.dtype if is_sum else np.dtype(np.bool_)
    given = iter(masks)

    def support(x: Value) -> Tracer:
        if isinstance(x, Masked):
            mask = next(given)
            return convert(all_of(mask), dtype=dtype) if mask else full(x.value.shape, 1, dtype)
        return x if x.dtype.kind in "iu" else full(x.shape, 0 if _is_zero(x) else 1, dtype)

    (found,) = eqn.primitive.bind_all(list(map(support, operands)), eqn.params)
    return ne(found, full_like(found, 0)) if is_sum else found
