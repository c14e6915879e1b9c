"""How a ufunc of NumPy is entered in the table: dtypes as NumPy resolves them, then one primitive, or a few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..base.source import at_line, user_line
from ..core.primitive import Primitive
from ..core.program import NO_PARAMS, Const, literal
from ..core.trace import Builder, Tracer, current_builder
from ..core.types import ArrayType
from ..ops import elementwise as e
from ..ops.literals import full_like
from .dispatch import CONSTANT, TABLE, implements, left_to_others, public
from .layouts import own
from .promotion import (
    asarray,
    broadcast_shapes,
    broadcast_to,
    builder,
    cast,
    combined_dtype,
    is_bfloat16,
    is_number,
    is_operand,
    is_weak,
    kind_of,
    operand,
)

Rule = Callable[..., Tracer]


@cache
def _resolved(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """Dtypes of operands and result, as NumPy resolves them; Python types stand for weak operands."""
    if any(map(is_bfloat16, kinds)):
        dtype = combined_dtype(*kinds)
        return (dtype,) * len(kinds) + (np.dtype(bool) if "d" * ufunc.nin + "->?" in ufunc.types else dtype,)
    return ufunc.resolve_dtypes((*dtypes_or_types(kinds), *(None,) * ufunc.nout))


def dtypes_or_types(kinds: Sequence[Any]) -> list[Any]:
    """What `ufunc.resolve_dtypes` takes: Python's bool is not weak, nor is any number among its like."""
    if not any(isinstance(k, np.dtype) for k in kinds):
        return [np.dtype(k) for k in kinds]
    return [np.dtype(bool) if k is bool else k for k in kinds]


def resolved_dtypes(ufunc: np.ufunc, xs: Sequence[Any]) -> tuple[np.dtype[Any], ...]:
    """Dtypes that NumPy gives to the operands and the result of a ufunc."""
    try:
        return _resolved(ufunc, tuple([kind_of(x) for x in xs]))
    except TypeError:
        given = ", ".join(str(getattr(kind_of(x), "name", None) or kind_of(x).__name__) for x in xs)
        raise TypeError(
            f"{ufunc.__name__} is not defined for operands of dtype {given}{at_line(user_line())}"
        ) from None


def filled(here: Builder, value: float, met: ArrayType) -> Any:
    """The operand for a number of Python that meets an array of type `met`."""
    try:
        if not here.tape.is_shared:
            return literal(value, met)
        atom = here.scalar(value, met.dtype)
    except OverflowError as error:
        raise OverflowError(f"{error}{at_line(user_line())}") from None
    if type(atom) is Const:
        return literal(value, met) if met.shape else atom
    return broadcast_to(Tracer(here, atom), met.shape)


def general(ufunc: np.ufunc, rule: Rule, kinds: str = "", otherwise: Rule | None = None) -> Callable[..., Tracer]:
    """The traced form of a ufunc for operands of any kind.

    Args:
        ufunc: the ufunc.
        rule: a primitive, or a function of tracers of one shape.
        kinds: kinds of dtypes that the rule is not for.
        otherwise: the rule for these.
    """
    is_primitive = isinstance(rule, Primitive)
    is_composed = ufunc.nin > 1 and not all(isinstance(r, Primitive) for r in (rule, otherwise) if r is not None)

    def call(*xs: Any) -> Tracer:
        if len(xs) != ufunc.nin:
            raise TypeError(f"{ufunc.__name__} takes {ufunc.nin} operands, {len(xs)} were given{at_line(user_line())}")
        if not all(map(is_operand, xs)):
            return left_to_others(ufunc, *xs)
        operands = [x if is_number(x) else asarray(x) for x in xs]
        *in_dtypes, out_dtype = resolved_dtypes(ufunc, operands)
        shape = operands[0].shape if len(xs) == 1 else broadcast_shapes(ufunc.__name__, *operands)
        inputs = [operand(x, d, shape) for x, d in zip(operands, in_dtypes, strict=True)]
        if otherwise is not None and in_dtypes[0].kind in kinds:
            y = otherwise(*inputs)
        elif is_primitive:
            y = (current_builder() or builder()).record(rule, inputs, NO_PARAMS)[0]
        else:
            y = rule(*inputs)
        if y.atom.type.dtype != out_dtype:
            y = cast(y, out_dtype)
        if all(map(is_weak, operands)) and out_dtype.kind != "b":
            y.weak = True
        # The parts of the rule have each kept the order of what they read, NumPy that of all operands together.
        return own(y, None, "?") if is_composed and len(shape) > 1 else y

    call.__name__ = ufunc.__name__
    call.__doc__ = f"`numpy.{ufunc.__name__}` on arrays and on traced values."
    return call


def _takes_floats(ufunc: np.ufunc) -> bool:
    return any(t.startswith("d" * ufunc.nin + "->") for t in ufunc.types)


def _meets(number: Any, met: ArrayType) -> bool:
    """Whether `number` is one that an operation with an array of floating-point numbers takes in their dtype."""
    kind = type(number)
    if kind is float or kind is int:
        return met.dtype.kind == "f"
    return kind is np.float64 and met.dtype.char == "d"


def _entered(ufunc: np.ufunc, call: Callable[..., Any], primitive: Primitive) -> Callable[..., Any]:
    """Enter the traced form of a ufunc, which is a primitive, in the table; return the public function."""
    TABLE[ufunc] = call
    if isinstance(primitive, e.Elementwise) and primitive.is_constant:
        CONSTANT.add(ufunc)
    return public(ufunc, call)


def unary(ufunc: np.ufunc, primitive: Primitive, kinds: str = "", otherwise: Rule | None = None) -> Callable[..., Any]:
    """Enter a ufunc of one operand in the table; `otherwise` replaces the primitive for some kinds of dtypes."""
    for_any_kind = general(ufunc, primitive, kinds, otherwise)
    is_direct = _takes_floats(ufunc)

    def call(*xs: Any) -> Tracer:
        if is_direct and len(xs) == 1:
            (x,) = xs
            if type(x) is Tracer and not x.weak and x.atom.type.dtype.kind == "f":
                return (current_builder() or builder(x)).record(primitive, xs, NO_PARAMS)[0]
        return for_any_kind(*xs)

    call.__name__, call.__doc__ = for_any_kind.__name__, for_any_kind.__doc__
    return _entered(ufunc, call, primitive)


def binary(ufunc: np.ufunc, primitive: Primitive, kinds: str = "", otherwise: Rule | None = None) -> Callable[..., Any]:
    """Enter a ufunc of two operands in the table; `otherwise` replaces the primitive for some kinds of dtypes."""
    for_any_kind = general(ufunc, primitive, kinds, otherwise)
    is_direct = _takes_floats(ufunc)

    def call(*xs: Any) -> Tracer:
        if is_direct and len(xs) == 2:
            x, y = xs
            if type(x) is not Tracer:
                if type(y) is Tracer and not y.weak and _meets(x, y.atom.type):
                    here = current_builder() or builder(y)
                    return here.record(primitive, (filled(here, x, y.atom.type), y), NO_PARAMS)[0]
            elif not x.weak:
                met = x.atom.type
                if type(y) is not Tracer:
                    if _meets(y, met):
                        here = current_builder() or builder(x)
                        return here.record(primitive, (x, filled(here, y, met)), NO_PARAMS)[0]
                elif not y.weak and met.dtype.kind == "f":
                    if y.atom.type is met:
                        return (current_builder() or builder(x)).record(primitive, xs, NO_PARAMS)[0]
                    if y.atom.type.dtype == met.dtype:
                        shape = broadcast_shapes(ufunc.__name__, x, y)
                        operands = [broadcast_to(asarray(z), shape) for z in xs]
                        return (current_builder() or builder(x)).record(primitive, operands, NO_PARAMS)[0]
        return for_any_kind(*xs)

    call.__name__, call.__doc__ = for_any_kind.__name__, for_any_kind.__doc__
    return _entered(ufunc, call, primitive)


def composed(ufunc: np.ufunc, rule: Rule) -> Callable[..., Any]:
    """Enter a ufunc whose rule is a function of tracers of one shape."""
    TABLE[ufunc] = call = general(ufunc, rule)
    call.__doc__ = rule.__doc__ or call.__doc__
    return public(ufunc, call)


def _truth(x: Tracer) -> Tracer:
    return x if x.dtype.kind == "b" else e.ne(x, full_like(x, 0))


def logical(ufunc: np.ufunc, primitive: Primitive) -> Callable[..., Any]:
    """Enter a ufunc whose operands are taken for booleans."""

    @implements(ufunc, constant=True, keeps_order=True)
    def call(*xs: Any) -> Tracer:
        given = [asarray(x) for x in xs]
        operands = [_truth(x) for x in given]
        shape = broadcast_shapes(ufunc.__name__, *operands)
        y = primitive(*(broadcast_to(x, shape) for x in operands))
        is_composed = len(shape) > 1 and any(x.dtype.kind != "b" for x in given)
        return own(y, None, "?") if is_composed and len(xs) > 1 else y

    return call
