"""Anomaly detection: results that are NaN or infinite are an error that names the operation and the user's line.

While the mode is on, each result of a derivative or of a compiled function is checked when it is there.  That is cheap.
Only where one is not finite, the program runs again in search of the culprit: see `anomaly_search`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ..core.program import Program
from ..core.source import Line, at_line, keep_callers, user_line
from ..core.types import is_inexact
from ..xla import is_jax
from ..xla.finite import is_finite_on_device
from .anomaly_eqns import worst_element
from .anomaly_kinds import advice_on, arithmetic, kind_of
from .anomaly_search import Culprit, Residuals, Source, Step, find_culprit

# From this size on, a sum tells faster than a test of each element.
_LARGE = 1 << 12


class Checks(NamedTuple):
    """What is an anomaly.

    Attributes:
        nan: whether NaN is one.
        inf: whether an infinity is one.
    """

    nan: bool
    inf: bool


_checks: ContextVar[Checks | None] = ContextVar("anomaly checks", default=None)


def is_anomaly_enabled() -> bool:
    """Whether results are checked in this thread or task."""
    return _checks.get() is not None


class AnomalyError(FloatingPointError):
    """A result is NaN or infinite.

    Attributes:
        operation: name of the primitive that made the first bad number, or None if that was there before.
        kind: what happened in it, in a few words: `"0 * inf"`, `"sqrt'(0)"`, `"logarithm of a negative number"`, ...
        line: the user's line of the forward code (`filename`, `number`, `text`, `expression`), or None.
        in_derivative: whether the operation belongs to the derivative of that line.
        operands: the values that the operation took; those at the bad element where it works on each by itself.
        argument: the number of the argument that was bad from the beginning, or None.
        index: where the bad number is, in the result of the operation or in the argument.
        steps: the loops and branches that the operation is in, with the number of the step.
        callers: the user's lines that called the one of the operation, where they are known.
    """

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
        self.callers = () if line is None else line.written.callers


class _Switch:
    """Checks to be switched to, or None to check nothing."""

    def __init__(self, checks: Checks | None) -> None:
        self._target = checks
        self._before: list[Checks | None] = []

    def __enter__(self) -> None:
        self._before.append(_switched(self._target))

    def __exit__(self, *_: object) -> None:
        _switched(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose calls are checked."""
        target = self._target
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__name__} is a generator, whose body runs between the steps of others; write "
                f"`with ft.debug.detect_anomaly():` inside of it{at_line(user_line())}"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def checked_coroutine(*args: Any, **kwargs: Any) -> Any:
                with _Switch(target):
                    return await function(*args, **kwargs)

            return checked_coroutine

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with _Switch(target):
                return function(*args, **kwargs)

        return checked


def _switched(checks: Checks | None) -> Checks | None:
    """Switch to other checks; return those before."""
    before = _checks.get()
    if (before is None) != (checks is None):
        keep_callers(checks is not None)
    _checks.set(checks)
    return before


class detect_anomaly(_Switch):
    """Raise an error that names the culprit when a result is NaN or infinite.

    Every result of a derivative (`grad`, `jvp`, `vjp`, `jacobian`, `hessian`, ...), of `vmap` and of a compiled
    function is checked.  The error says which operation made the first NaN or infinity that the result depends on,
    whether in the function or in its derivative, for which values, and at which line.  A NaN that `where` masks away
    is no anomaly.

    Mode and check cost little: nothing is computed twice unless there is a NaN.  Then the program runs again on NumPy,
    equation by equation, which takes as long as an un-jitted run and the memory of all its bad values.

    Args:
        check_nan: whether NaN in a result is an error.
        check_inf: whether an infinity in a result is an error.

    Returns:
        A context manager, which is a decorator as well.  It holds for the thread or asyncio task that it is used in.

    Raises:
        AnomalyError: later, by what runs in the mode: a result is not finite.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> with ft.debug.detect_anomaly():
        ...     try:
        ...         ft.grad(np.sqrt)(0.0)
        ...     except ft.debug.AnomalyError as error:
        ...         error.kind, error.operation
        ("sqrt'(0)", 'div')
    """

    def __init__(self, check_nan: bool = True, check_inf: bool = True) -> None:
        super().__init__(Checks(check_nan, check_inf))


class set_detect_anomaly(_Switch):
    """Switch anomaly detection on or off: from now on, or as a context manager until its block ends.

    Args:
        mode: whether to check results: see `detect_anomaly`.
        check_nan: whether NaN in a result is an error.
        check_inf: whether an infinity in a result is an error.

    Example:
        >>> import ftrans as ft
        >>> with ft.debug.set_detect_anomaly(True):
        ...     ft.debug.is_anomaly_enabled()
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True, check_inf: bool = True) -> None:
        super().__init__(Checks(check_nan, check_inf) if mode else None)
        self._outer = _switched(self._target)

    def __enter__(self) -> None:
        # The mode is on already; what comes back is the one before this object was made.
        self._before.append(self._outer)
        _switched(self._target)


# Checking


def residuals_of(program: Program, args: Sequence[Any], start: int) -> Residuals | None:
    """What `check` is to know of the program whose results from `start` on are residuals; None if the mode is off."""
    return Residuals(program, list(args), start) if is_anomaly_enabled() else None


def without_warnings() -> np.errstate:
    """A context without NumPy's warnings of floating-point errors, in the mode, where the check has more to say."""
    silent: Any = {kind: "ignore" for kind, mode in np.geterr().items() if mode == "warn"}
    return np.errstate(**silent)


def check(
    program: Program,
    args: Sequence[Any],
    results: Sequence[Any],
    residuals: Residuals | None = None,
    names: Callable[[], Sequence[str]] | None = None,
) -> None:
    """Raise AnomalyError if a result is not finite and anomaly detection is on.

    Args:
        program: the program.
        args: its arguments, as it ran on them.
        results: its results, or the first of them; NumPy or JAX arrays.
        residuals: the program that made the first arguments, if they are residuals.
        names: returns what its first arguments are called.
    """
    checks = _checks.get()
    if checks is None or all(map(is_finite, results)):
        return
    for number, y in enumerate(results):
        found = _anomaly(y, checks)
        if found is not None:
            raise _error(program, args, number, found, np.asarray(y)[found], residuals, names)


def is_finite(x: Any) -> bool:
    """Whether no element is NaN or infinite."""
    if not is_inexact(x.dtype):
        return True
    if is_jax(x):
        return is_finite_on_device(x)
    if x.size > _LARGE:
        # One pass without a temporary; a sum that is not finite may have overflowed by itself.
        with np.errstate(all="ignore"):
            if np.isfinite(np.add.reduce(x, axis=None)):
                return True
    return bool(np.isfinite(x).all())


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


# The error


def _error(
    program: Program,
    args: Sequence[Any],
    number: int,
    index: tuple[Any, ...],
    value: Any,
    residuals: Residuals | None,
    names: Callable[[], Sequence[str]] | None,
) -> AnomalyError:
    """The error for a bad element of a result of a program."""
    which = "the result" if len(program.outputs) == 1 else f"result {number}"
    head = f"{value} in {which} of {_title(program)}{_where(index)}"
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


def _as_numpy(args: Sequence[Any], program: Program) -> list[Any]:
    return [np.asarray(x, type.dtype)[()] for x, type in zip(args, program.in_types, strict=True)]


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
    """Whether what is to be said is that an argument was bad."""
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
    advice = advice_on(kind_of(step), step, culprit.is_masked)
    if advice and _kind(culprit) == kind_of(step):
        lines.append(f"  {advice}")
    if step.eqn.line is not None and step.eqn.line.written.callers:
        lines.append("  Called from (the innermost last):")
        lines += [f"    {caller.describe()}" for caller in step.eqn.line.written.callers]
    return lines


def _about_source(source: Source, names: Sequence[str]) -> str:
    number, name = source.argument, source.name
    if number is not None and names:
        name = f"argument {names[number]}" if number < len(names) else "an array that the function closes over"
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
