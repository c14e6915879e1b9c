"""interpret(): the one walk that runs a program forwards.

Evaluation, lowering, inlining, forward differentiation and batching all walk a program in this way.  They differ in
their kind of values and in `apply`, which processes one equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..base.source import attributed_to
from .program import Const, Eqn, Program, Var
from .trace import Tracer, current_builder

Value = TypeVar("Value")


def interpret(
    program: Program,
    args: Sequence[Value],
    apply: Callable[[Eqn, list[Value]], Sequence[Value]],
    constant: Callable[[Const], Value],
) -> list[Value]:
    """Run `program` forwards on `args`.

    Args:
        program: the program.
        args: one value per input, of whatever kind `apply` handles.
        apply: takes an equation and the values of its operands, returns the values of its outputs.
        constant: makes a value from a constant operand.

    Returns:
        One value per output.
    """
    values: dict[Var, Value] = dict(zip(program.inputs, args, strict=True))
    for eqn in program.eqns:
        operands = [values[a] if isinstance(a, Var) else constant(a) for a in eqn.operands]
        for var, value in zip(eqn.outputs, apply(eqn, operands), strict=True):
            values[var] = value
    return [values[a] if isinstance(a, Var) else constant(a) for a in program.outputs]


def repeat(eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Record an equation of another program in the current trace, or evaluate it if none is running."""
    builder = current_builder()
    if builder is not None:
        return builder.repeat(eqn, operands)
    with attributed_to(eqn.line):
        results: list[Any] = eqn.primitive.bind_all(operands, eqn.params)
        return results


def inline(program: Program, args: Sequence[Any]) -> list[Any]:
    """Record the equations of `program` in the program that is being traced, with `args` as its inputs."""
    builder = current_builder()
    constant = Const.array if builder is None else lambda const: Tracer(builder, const)
    return interpret(program, args, repeat, constant)
