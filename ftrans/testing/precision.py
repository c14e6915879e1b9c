"""A program in double precision: the same equations, with every low-precision value widened to 64 bits.

Differences of float32 or bfloat16 values say little of a derivative.  The same program in float64 has the same
derivative rules, and differences of its values say a lot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.source import attributed_to
from ..control.call import call
from ..control.rules.custom_rule import Rule
from ..core.interpret import inline, interpret
from ..core.program import Const, Eqn, Program, literal
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType, is_complex, is_inexact


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of 64-bit floating-point numbers that holds the values of another one; others stay as they are."""
    if not is_inexact(dtype):
        return dtype
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)


def widened(value: Any) -> Any:
    """An array or NumPy number in double precision; integers and booleans stay as they are."""
    return value.astype(wide_dtype(value.dtype))


def rounding_unit(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number of a floating-point dtype."""
    if dtype.name == "bfloat16":
        return 2.0**-7
    return float(np.finfo(dtype).eps)


def coarsest_unit(program: Program) -> float:
    """The largest rounding unit among the dtypes of a program's values."""
    units = [rounding_unit(t.dtype) for t in (*program.in_types, *program.out_types) if is_inexact(t.dtype)]
    for eqn in program.eqns:
        units += [rounding_unit(v.type.dtype) for v in eqn.outputs if is_inexact(v.type.dtype)]
    units += [coarsest_unit(inner) for inner in program.subprograms()]
    return max(units, default=0.0)


def is_double(program: Program) -> bool:
    """Whether all floating-point values of a program are in double precision."""
    return coarsest_unit(program) <= rounding_unit(np.dtype(np.float64))


def without_calls(program: Program) -> Program:
    """`program` with the equations of jitted functions in the place of their calls, so that nothing is compiled."""
    return program.derive("without calls", lambda: _recorded_again(program, wide=False))


def in_double_precision(program: Program) -> Program:
    """`program` with all floating-point values in double precision, and without calls of jitted functions."""
    return program.derive("in double precision", lambda: _recorded_again(program, wide=True))


def _recorded_again(program: Program, wide: bool) -> Program:
    builder = Builder([_type(t, wide) for t in program.in_types])

    def constant(const: Const) -> Tracer:
        return Tracer(builder, _const(const) if wide else const)

    def apply(eqn: Eqn, operands: list[Tracer]) -> Sequence[Tracer]:
        if eqn.primitive is call:
            return inline(_recorded_again(eqn.params["program"], wide), operands)
        params = {k: _param(v, wide) for k, v in eqn.params.items()}
        with attributed_to(eqn.line):
            return builder.record(eqn.primitive, operands, params)

    with building(builder):
        outs = interpret(program, builder.inputs(), apply, constant)
        return builder.finish(outs, program.name)


def _type(type: ArrayType, wide: bool) -> ArrayType:
    return type.with_dtype(wide_dtype(type.dtype)) if wide else type


def _const(const: Const) -> Const:
    type = _type(const.type, True)
    if type is const.type:
        return const
    value = const.value.astype(type.dtype)
    return literal(value, type) if const.is_splat else Const(value, type)


def _param(value: Any, wide: bool) -> Any:
    if isinstance(value, Program):
        return in_double_precision(value) if wide else without_calls(value)
    if isinstance(value, tuple) and value and all(isinstance(item, Program) for item in value):
        return tuple(_param(item, wide) for item in value)
    if isinstance(value, Rule):
        return _rule(value, wide)
    return wide_dtype(value) if wide and isinstance(value, np.dtype) else value


def _rule(rule: Rule, wide: bool) -> Rule:
    """A derivative rule whose programs are recorded again."""

    def linearize(active: tuple[bool, ...]) -> Any:
        parts = rule.linearized(active)
        forward, backward = (None if p is None else _param(p, wide) for p in (parts.forward, parts.backward))
        return parts._replace(values=_param(parts.values, wide), forward=forward, backward=backward)

    return rule.primal.derive(
        ("rule recorded again", rule, wide), lambda: Rule(rule.name, _param(rule.primal, wide), rule.covered, linearize)
    )
