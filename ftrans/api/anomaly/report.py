"""The error for a result that is not finite: the operation, its operands, the line, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.cell import concrete
from ...base.source import Line, at_line, callers_of
from ...core.program import Program
from .checks import Checks, Residuals
from .equations import worst_element
from .kinds import advice_on, arithmetic, kind_of
from .search import Culprit, Source, Step, find_culprit


class AnomalyError(FloatingPointError):
    """A result is NaN or infinite.

    Attributes:
        operation: name of the primitive that produced the first non-finite number; None if none did.
        kind: what happened, in a few words: `"0 * inf"`, `"sqrt'(0)"`, `"logarithm of a negative number"`, ...
        line: the user's line of the forward code (`filename`, `number`, `text`, `expression`), or None.
        in_derivative: whether the operation belongs to the derivative of that line.
        operands: operands of the operation; for an elementwise one, those at the element concerned.
        argument: the position of the argument that was not finite, or None.
        index: index of the number in the result of the operation, or in the argument.
        steps: the loops and branches around the operation, with the number of the step.
        callers: the user's lines from which the operation was called, if known.
    """

    # Where it is public.
    __module__ = "ftrans.debug"

    def __init__(self, message: str, culprit: Culprit | None = None) -> None:
        super().__init__(message)
        step = _main_step(culprit)
        source = culprit.source if culprit is not None else None
        line = step.eqn.line if step is not None else None
        self.operation = step.eqn.primitive.name if step is not None and not _is_argument(culprit) else None
        self.kind = _kind(culprit)
        self.line = None if line is None else line.written
        self.in_derivative = line is not None and line.derivative_of is not None
        self.operands = step.operands if step is not None else ()
        self.argument = source.argument if source is not None else None
        self.index = source.where if source is not None and _is_argument(culprit) else step.where if step else ()
        self.steps = step.inside if step is not None else ()
        self.callers = () if line is None else callers_of(line)


def error_of(
    program: Program,
    args: Sequence[Any],
    number: int,
    result: Any,
    checks: Checks,
    residuals: Residuals | None,
    names: Callable[[], Sequence[str]] | None,
    out_names: Callable[[], Sequence[str]] | None,
) -> AnomalyError | None:
    """The error for a result of a program that is an anomaly, or None.

    Args:
        program: the program.
        args: its arguments.
        number: the number of the result.
        result: the result.
        checks: what is an anomaly.
        residuals: the program that made the first arguments, if they are residuals.
        names: returns the names of its first arguments; further ones are closed over.
        out_names: returns the names of its results; numbers by default.
    """
    index = _anomaly(result, checks)
    if index is None:
        return None
    value = np.asarray(result)[index]
    if out_names is not None:
        which = out_names()[number]
    else:
        which = f"{'the result' if len(program.outputs) == 1 else f'result {number}'} of {_title(program)}"
    head = f"{value} in {which}{_where(index)}"
    try:
        arrays = _as_numpy(args, program)
        if residuals is not None:
            residuals = residuals._replace(args=_as_numpy(residuals.args, residuals.program))
    except RuntimeError:
        return AnomalyError(
            f"{head}\n  Where it comes from cannot be found, because arguments were donated and are gone; leave out "
            "donate_argnums to find out"
        )
    culprit = find_culprit(program, arrays, number, index, residuals)
    if culprit is None:
        return AnomalyError(
            f"{head}\n  Run again on NumPy, the same program gives finite results: the compiled one rounds differently "
            "or multiplies in another order. Some intermediate value is probably close to the largest number of its "
            "dtype, or to a pole"
        )
    return AnomalyError("\n".join([f"{head}: {_kind(culprit)}", *_story(culprit, names)]), culprit)


def _anomaly(x: Any, checks: Checks) -> tuple[Any, ...] | None:
    """The index of an element that is an anomaly, or None."""
    x = np.asarray(x)
    found = worst_element(x)
    if found is None or (checks.nan and np.isnan(x[found])):
        return found
    if not checks.inf:
        return None
    infinite = np.isinf(x)
    if not infinite.any():
        return None
    return tuple(map(int, np.unravel_index(int(np.argmax(infinite)), x.shape)))


def _as_numpy(args: Sequence[Any], program: Program) -> list[Any]:
    return [np.asarray(concrete(x), type.dtype)[()] for x, type in zip(args, program.in_types, strict=True)]


# How programs are named that a derivative is made of, and what the user called.
_TITLES = {
    r"known\(jvp\((.*)\)\)": r"\1",
    r"transpose\(unknown\(jvp\((.*)\)\)\)": r"vjp(\1)",
    r"unknown\(jvp\((.*)\)\)": r"jvp(\1)",
    r"batch\((.*)\)": r"vmap(\1)",
}


def _title(program: Program) -> str:
    for pattern, title in _TITLES.items():
        found = re.fullmatch(pattern, program.name)
        if found:
            return found.expand(title)
    return program.name


def _is_argument(culprit: Culprit | None) -> bool:
    """Whether the error is about an argument that was not finite."""
    source = culprit.source if culprit is not None else None
    return source is not None and source.argument is not None and (culprit.turned is None or np.isnan(source.value))  # type: ignore[union-attr]


def _main_step(culprit: Culprit | None) -> Step | None:
    """The equation to be named: the first, or, if it took an infinity from outside, the one that made a NaN of it."""
    if culprit is None:
        return None
    return culprit.turned if culprit.source is not None and culprit.turned is not None else culprit.first


def _kind(culprit: Culprit | None) -> str | None:
    if culprit is None:
        return None
    if _is_argument(culprit):
        return "NaN in an argument" if np.isnan(culprit.source.value) else "infinity in an argument"  # type: ignore[union-attr]
    step = _main_step(culprit)
    if culprit.source is not None and culprit.turned is None:
        return "NaN constant" if np.isnan(culprit.source.value) else "infinite constant"
    return None if step is None else kind_of(step)


def _story(culprit: Culprit, names: Callable[[], Sequence[str]] | None) -> list[str]:
    """The lines of the message behind the first."""
    lines: list[str] = []
    step = _main_step(culprit)
    if culprit.source is not None:
        lines.append(_about_source(culprit.source, names() if names is not None else ()))
        if step is not None and _is_argument(culprit):
            lines.append(f"  which {_part(step.eqn.line)} takes first{at_line(step.eqn.line)}")
            return lines
    if step is None:
        return lines
    lines.append(f"  {_part(step.eqn.line)} computes {arithmetic(step)}{_where(step.where)}" + at_line(step.eqn.line))
    lines += [f"  in {place}" for place in reversed(step.inside)]
    turned = culprit.turned
    if turned is not None and turned is not step:
        lines.append(f"  then {_part(turned.eqn.line)} computes {arithmetic(turned)}")
        if _place(turned) != _place(step):
            lines[-1] += at_line(turned.eqn.line)
    kind = _kind(culprit)
    if kind == kind_of(step) or kind == "NaN constant":
        lines += filter(None, [_indented(advice_on(kind, step, culprit.is_masked))])
    if step.eqn.line is not None and callers_of(step.eqn.line):
        lines.append("  Called from (the innermost last):")
        lines += [f"    {caller.describe()}" for caller in callers_of(step.eqn.line)]
    return lines


def _indented(text: str) -> str:
    return text and f"  {text}"


def _about_source(source: Source, names: Sequence[str]) -> str:
    number, name = source.argument, source.name
    if number is not None and names:
        name = names[number] if number < len(names) else "an array that the function closes over"
    elif name.startswith("input"):
        name += " (the arguments come first, then what the function closes over)"
    return f"  {name}, {source.type}, is {source.value}{_where(source.where)} from the beginning"


def _part(line: Line | None) -> str:
    """The expression of a line, or its derivative."""
    if line is None:
        return "an equation of a derivative"
    text = line.expression
    expression = f"`{text}`" if text and len(text) <= 80 else "the line"
    if line.derivative_of is None:
        return expression
    order = {1: "", 2: "second ", 3: "third "}.get(line.order, f"{line.order}th ")
    return f"the {order}derivative of {expression}"


def _place(step: Step) -> tuple[str, int] | None:
    line = step.eqn.line
    return None if line is None else (line.filename, line.number)


def _where(index: tuple[Any, ...]) -> str:
    return f" at index [{', '.join(map(str, index))}]" if index else ""
