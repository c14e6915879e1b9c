"""Layouts: how NumPy's arrays would lie in memory, for which traced values stand.

Whether a reshaped array is a view or a copy depends in NumPy on the strides of the array.  A traced value has no
memory; the strides that NumPy's array would have follow from those of the arguments, and from the rules by which
NumPy lays out results.  They are worked out only when something depends on them, and by NumPy itself: on arrays
without contents that have the same strides.

A layout is a tuple of strides, counted in elements; None where it is not certain.  What one equation says of its
result holds for most tracers that stand for it.  A tracer for which it may not hold (a copy in another order, an
array that was assigned to) says so itself: see `views.Owner`, and is noted in `Builder.layouts`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.on_numpy import Memory
from ..core.program import Atom, Const, Eqn
from ..core.trace import Builder, NoWitness, Tracer, definition
from ..core.types import ArrayType, Shape, is_complex
from ..core.witness import value_of_input
from ..ops.elementwise import Elementwise, convert
from ..ops.shapes import StructuralPrimitive

Strides = tuple[int, ...]
Layout = Strides | None

# NumPy computes an operation in the memory of an operand that nobody else holds, from this size on.
_REUSED_BYTES = 1 << 18
_MOST_COMBINATIONS = 64


def is_write(eqn: Eqn) -> bool:
    """Whether the result of an equation is its first operand after a change."""
    return eqn.primitive.memory is Memory.WRITES


def layout(x: Tracer) -> Layout:
    """The strides of the array that `x` stands for."""
    if x.shape and 0 not in x.shape and x.size > 1:
        try:
            found = x.memory.layout(x) if x.memory is not None else _of_result(x)
        except RecursionError:
            return None
        return None if found is None else _plain(x.shape, found)
    return contiguous(x.shape)


class Owner:
    """Stands in the place of a view, for an array that is none and may be assigned to.

    Attributes:
        source: an array of which it is a copy, or that it was before assignments, which keep the layout.
        order: the order of the copy, as NumPy names it; "=" for the very strides of the source, "?" for any.
    """

    __slots__ = ("order", "source")
    is_of_number = False

    def __init__(self, source: Tracer | None, order: str = "C") -> None:
        self.source = source
        self.order = order

    def refresh(self, tracer: Tracer) -> None:
        """An owner is never out of date."""

    def layout(self, tracer: Tracer) -> Layout:
        """The strides of the array."""
        if self.order == "?":
            return None
        if self.source is None:
            return contiguous(tracer.shape, self.order)
        source = layout(self.source)
        return source if self.order == "=" else of_copy(tracer.type, source, self.order)


def own(x: Tracer, source: Tracer | None, order: str = "C") -> Tracer:
    """Make `x`, which nothing else refers to, an array of its own that lies in memory as a copy of `source`."""
    is_known = x.ndim < 2 and order != "="
    x.memory = Owner(None, "C") if is_known else Owner(source, order)
    note(x)
    return x


def note(x: Tracer) -> None:
    """Note that a tracer may not lie in memory as its equation says."""
    if x.ndim > 1:
        x.builder.layouts.setdefault(x.atom, []).append(x)


def forget_order(x: Tracer, given: Sequence[Any]) -> None:
    """Note that `x` may lie in memory in any order, unless it is what was given."""
    eqn = definition(x)
    if eqn is not None and _says_order(eqn) and not any(x is y for y in given):
        own(x, None, "?")


def contiguous(shape: Shape, order: str = "C") -> Strides:
    """The strides of an array in row-major or column-major order."""
    return ordered(shape, range(len(shape)) if order == "C" else range(len(shape))[::-1])


def gapped(shape: Shape) -> Strides:
    """The strides of an array with a gap after each element, row and so on, no two axes of which can be merged."""
    return tuple(2 * math.prod(2 * n for n in shape[i + 1 :]) for i in range(len(shape)))


def ordered(shape: Shape, axes: Iterable[int]) -> Strides:
    """The strides of an array without gaps whose axes, from the slowest to the fastest, are these."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(list(axes)):
        strides[axis] = step if shape[axis] > 1 else 0
        step *= shape[axis]
    return tuple(strides)


def _plain(shape: Shape, strides: Strides) -> Strides:
    """Strides without those of axes of size 1, which mean nothing."""
    return tuple(s if n > 1 else 0 for n, s in zip(shape, strides, strict=True))


def blank(type: ArrayType, strides: Strides) -> np.ndarray[Any, Any]:
    """An array of NumPy with these strides and no contents to speak of; complex where the type is."""
    dtype = np.dtype(np.complex64 if is_complex(type.dtype) else np.bool_)
    reach = [s * (n - 1) for n, s in zip(type.shape, strides, strict=True)] if type.size else []
    memory = np.empty(sum(map(abs, reach)) + 1, dtype)
    start = -sum(r for r in reach if r < 0) * dtype.itemsize
    return np.ndarray(type.shape, dtype, memory, start, tuple(s * dtype.itemsize for s in strides))


def strides_of(x: np.ndarray[Any, Any]) -> Layout:
    """The strides of an array in elements; None where they are no whole numbers of them."""
    if any(s % x.itemsize for s in x.strides):
        return None
    return _plain(x.shape, tuple(s // x.itemsize for s in x.strides))


def of_copy(type: ArrayType, source: Layout, order: str) -> Layout:
    """The strides of a copy in an order of NumPy, of an array with strides `source`."""
    if order in "CF" or type.ndim < 2:
        return contiguous(type.shape, order if order in "CF" else "C")
    if order == "?" or source is None or _repeats(type.shape, source):
        return None
    if order == "A":
        is_by_columns = source == contiguous(type.shape, "F")
        return contiguous(type.shape, "F" if is_by_columns else "C")
    return ordered(type.shape, sorted(range(type.ndim), key=lambda i: -abs(source[i])))


def _repeats(shape: Shape, strides: Strides) -> bool:
    return any(n > 1 and s == 0 for n, s in zip(shape, strides, strict=True))


# Layouts of results


def _of_result(x: Tracer) -> Layout:
    """The strides of a tracer of which its equation says everything."""
    if type(x.atom) is Const:
        # Who makes such an array notes how it lies; else it may be anything.
        return contiguous(x.shape) if x.ndim < 2 else None
    eqn = x.builder.tape.definition(x.atom)
    if eqn is None:
        return _of_input(x.builder, x.atom)
    if x.ndim < 2 and not is_write(eqn):
        return contiguous(x.shape)
    if _says_order(eqn):
        return _natural(x.builder, x.atom)
    # A function of NumPy that is several equations here may have made a copy of what the last of them reads.
    return None


def _says_order(eqn: Eqn) -> bool:
    return isinstance(eqn.primitive, Elementwise) or is_write(eqn)


def _of_input(builder: Builder, atom: Atom) -> Layout:
    value = value_of_input(builder, atom)
    if type(value) is Tracer:
        found = _possible(value.builder, value.atom, layout(value)) if value.memory is None else {layout(value)}
        return found.pop() if len(found) == 1 else None
    if isinstance(value, NoWitness):
        value = value.example() if value.lie_alike and value.example is not None else None
    if isinstance(value, np.ndarray):
        return strides_of(value)
    if "jax" in sys.modules:
        from ..xla import is_jax

        # What NumPy sees of an array of JAX is in row-major order.
        return contiguous(atom.type.shape) if is_jax(value) else None
    return None


def _natural(builder: Builder, atom: Atom) -> Layout:
    """The strides of what an equation makes, with those of what it is made of."""
    known: dict[Atom, Layout] = builder.strides
    waiting = [atom]
    while waiting:
        a = waiting[-1]
        if a in known:
            waiting.pop()
            continue
        eqn = None if type(a) is Const else builder.tape.definition(a)
        if eqn is None:
            known[a] = _of_operand_without_equation(builder, a)
            continue
        if len(eqn.outputs) > 1:
            known[a] = contiguous(a.type.shape) if a.type.ndim < 2 else None
            continue
        before = [b for b in _read_by(eqn) if b not in known]
        if before:
            waiting += before
        else:
            known[a] = _of_equation(eqn, [_possible(builder, b, known[b]) for b in _read_by(eqn)])
    return known[atom]


def _of_operand_without_equation(builder: Builder, atom: Atom) -> Layout:
    if type(atom) is Const:
        if atom.is_splat:
            return (0,) * atom.type.ndim
        return strides_of(atom.value)
    return _of_input(builder, atom)


def _read_by(eqn: Eqn) -> Sequence[Atom]:
    """The operands on which the layout of a result depends."""
    return eqn.operands[:1] if is_write(eqn) else eqn.operands


def _possible(builder: Builder, atom: Atom, natural: Layout) -> set[Layout]:
    """The strides that an operand may have, whichever tracer stood for it."""
    return {natural, *(layout(x) for x in builder.layouts.get(atom, ()))}


def _of_equation(eqn: Eqn, operands: Sequence[set[Layout]]) -> Layout:
    """The strides of a result where all that its operands may have lead to the same."""
    if any(None in possible for possible in operands):
        return contiguous(eqn.outputs[0].type.shape) if eqn.outputs[0].type.ndim < 2 and _is_fresh(eqn) else None
    if math.prod(map(len, operands)) > _MOST_COMBINATIONS:
        return None
    found = {_of_operands(eqn, chosen) for chosen in itertools.product(*operands)}
    return found.pop() if len(found) == 1 else None


def _is_fresh(eqn: Eqn) -> bool:
    return not is_write(eqn) and not isinstance(eqn.primitive, StructuralPrimitive)


def _of_operands(eqn: Eqn, operands: Sequence[Any]) -> Layout:
    type = eqn.outputs[0].type
    if isinstance(eqn.primitive, Elementwise):
        return _elementwise(type, operands, eqn)
    if is_write(eqn):
        return operands[0]
    if isinstance(eqn.primitive, StructuralPrimitive):
        return strides_of(eqn.primitive.numpy(blank(eqn.operands[0].type, operands[0]), **eqn.params))
    return contiguous(type.shape) if type.ndim < 2 else None


def _elementwise(type: ArrayType, operands: Sequence[Strides], eqn: Eqn) -> Layout:
    """The strides of the result of a ufunc: NumPy's iterator keeps the order of its operands."""
    shape = type.shape
    row_major = contiguous(shape)
    moving = [s for s in operands if any(s)]
    if any(a.type.shape != shape and any(s) for a, s in zip(eqn.operands, operands, strict=True)):
        return None
    if all(s == row_major for s in moving):
        return row_major
    # The iterator looks at strides and at which sizes are 1.  It reads nothing here.
    small = tuple(min(n, 2) for n in shape)
    element = np.empty(1, bool)
    arrays: list[Any] = [np.lib.stride_tricks.as_strided(element, small, s) for s in moving]
    flags = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    iterator = np.nditer([*arrays, None], ["zerosize_ok"], flags, [np.dtype(bool)] * len(flags), order="K")
    made = iterator.operands[-1].strides
    found = ordered(shape, sorted(range(len(shape)), key=lambda i: -made[i] if shape[i] > 1 else 0))
    repeated = eqn.primitive is convert and _repeats(shape, operands[0])
    mixed = type.nbytes >= _REUSED_BYTES and any(of_copy(type, s, "K") not in (found, None) for s in moving)
    return None if repeated or mixed else found
