"""Derivatives as linear functions: linearize; and the transpose of a linear function: linear_transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ..base import tree
from ..base.source import at_line, user_line
from ..base.type_variables import Primals, Result
from ..core.program import Program, needed_eqns
from ..core.trace import Tracer
from ..transforms import differentiate as d
from .anomaly import residuals_of
from .call import check_function, name_of, run
from .derivatives import (
    Function,
    active_inputs,
    all_arguments,
    checked_like,
    trace_at,
    with_zeros,
    without_unused_residuals,
    zeros_of,
)
from .foreign_arrays import returns_linear_function


@overload
def linearize(f: Callable[[*Primals], Result], *primals: *Primals) -> tuple[Result, Callable[[*Primals], Result]]: ...
@overload
def linearize(f: Callable[..., Result], *primals: Any) -> tuple[Result, Callable[..., Result]]: ...
@returns_linear_function  # type: ignore[misc]
def linearize(f: Function, *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and its derivative at that point as a linear function of tangents.

    Args:
        f: the function.
        primals: its arguments.

    Returns:
        `(out, push)`: `push(*tangents)`, with tangents like the primals, returns a tangent like `out`, without
        evaluating `f` again.

    Raises:
        TypeError: a primal is not floating-point, or later the tangents do not match the primals.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> out, push = ft.linearize(np.exp, 0.0)
        >>> push(3.0)
        np.float64(3.0)
    """
    check_function(f, "linearize")
    chosen, traced, _ = trace_at(f, primals, {}, all_arguments(primals), "linearize", False)
    parts = without_unused_residuals(d.pushforward(traced.program, active_inputs(chosen, traced)))
    inputs = [*chosen.leaves, *traced.captured]
    count = len(traced.program.outputs)
    outs = run(parts.values, inputs, wanted=count)
    made = residuals_of(parts.values, inputs, count)
    residuals = outs[count:]

    def push(*tangents: Any) -> Any:
        given = checked_like(tangents, chosen.structure, chosen.types, "the tangents", "the primals")
        results = iter(run(parts.linear, [*residuals, *given], residuals=made))
        types = traced.program.out_types
        full = with_zeros(results, parts.out_active, types)
        return tree.unflatten(traced.structure, full)

    return tree.unflatten(traced.structure, outs[:count]), push


@overload
def linear_transpose(f: Callable[[*Primals], Result], *primals: *Primals) -> Callable[[Result], tuple[*Primals]]: ...
@overload
def linear_transpose(f: Callable[..., Result], *primals: Any) -> Callable[[Result], tuple[Any, ...]]: ...
def linear_transpose(f: Function, *primals: Any) -> Callable[[Any], tuple[Any, ...]]:  # type: ignore[misc]
    """The transpose of a function that is linear in its arguments.

    Args:
        f: the function.
        primals: arguments of the right shapes and dtypes; their values do not matter.

    Returns:
        A function that takes a cotangent like the result of `f` and returns a tuple of cotangents like the primals.

    Raises:
        TypeError: the function is not linear in its arguments.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> ft.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
        (np.float64(6.0),)
    """
    check_function(f, "linear_transpose")
    chosen, traced, _ = trace_at(f, primals, {}, all_arguments(primals), "linear_transpose", False)
    program = traced.program
    parts = d.pullback(program, active_inputs(chosen, traced))
    _require_linear(f, program, parts, traced.captured, len(chosen.leaves))
    zeros = zeros_of(chosen.types)
    # What the function is at zero does not matter, so it is not checked.
    residuals = run(parts.values, [*zeros, *traced.captured], wanted=0)[len(program.outputs) :]

    def transposed(cotangent: Any) -> Any:
        given = checked_like(cotangent, traced.structure, program.out_types, "the cotangent", "the result")
        wanted = [ct for ct, a in zip(given, parts.out_active, strict=True) if a]
        cts = iter(run(parts.linear, [*residuals, *wanted]))
        full = with_zeros(cts, parts.in_active, chosen.types)
        return tree.unflatten(chosen.structure, full)

    return transposed


def _require_linear(f: Function, program: Program, parts: d.Linear, captured: Sequence[Any], count: int) -> None:
    """Raise unless a function is linear in its first `count` inputs: constant derivative, value 0 at 0."""
    residuals = parts.values.outputs[len(program.outputs) :]
    needed = needed_eqns(parts.values.eqns, residuals)
    inputs = set(parts.values.inputs[:count])
    eqn = next((eqn for eqn in needed if not inputs.isdisjoint(eqn.operands)), None)
    if eqn is None and inputs.isdisjoint(residuals):
        if any(isinstance(x, Tracer) for x in captured):
            return
        zeros = zeros_of(program.in_types[:count])
        if not any(np.any(y) for y in run(program, [*zeros, *captured])):
            return
    raise TypeError(
        f"linear_transpose is for functions that are linear in their arguments, and {name_of(f)} is not; vjp gives the "
        f"transpose of its derivative{at_line(eqn.line if eqn is not None else user_line())}"
    )
