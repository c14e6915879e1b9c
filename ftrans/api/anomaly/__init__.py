"""Anomaly detection: NaN or infinite results raise an error that names the operation and the user's line.

In the mode, each result of a derivative or of a compiled function is checked once it is computed, which is cheap.  Only
if one is not finite does the program run again, in search of the operation that caused it: see `search`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from ...base.cell import concrete
from ...base.source import at_line, keep_callers, user_line
from ...core.program import Program
from .checks import Checks, Residuals, is_finite

Function = TypeVar("Function", bound=Callable[..., Any])
_checks: ContextVar[Checks | None] = ContextVar("anomaly checks", default=None)
# The checks of this thread or task, or None.
current_checks = _checks.get


def is_anomaly_enabled() -> bool:
    """Whether results are checked in this thread or task."""
    return _checks.get() is not None


class _Switch:
    """Checks to be switched to, or None to check nothing."""

    def __init__(self, checks: Checks | None) -> None:
        self._target = checks
        self._before: list[Checks | None] = []

    def __enter__(self) -> None:
        self._before.append(_switched(self._target))

    def __exit__(self, *_: object) -> None:
        _switched(self._before.pop())

    def __call__(self, function: Function) -> Function:
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

            return checked_coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with _Switch(target):
                return function(*args, **kwargs)

        return checked  # type: ignore[return-value]


def _switched(checks: Checks | None) -> Checks | None:
    """Switch to other checks; return those before."""
    before = _checks.get()
    keep_callers(checks is not None)
    _checks.set(checks)
    return before


class detect_anomaly(_Switch):
    """Raise an error that names the operation when a result is NaN or infinite.

    Every result of a derivative (`grad`, `jvp`, `vjp`, `jacobian`, `hessian`, ...), of `vmap` and of a compiled
    function is checked.  The error names the operation that produced the first NaN or infinity on which the result
    depends, in the function or in its derivative, its operands, and the line.  A NaN that `where` masks out is not an
    anomaly.

    The overhead is small: nothing is computed twice unless a result is not finite.  Then the program runs again on
    NumPy, equation by equation, which takes as long as an un-jitted run, and the memory of all non-finite values.

    Args:
        check_nan: whether NaN in a result is an error.
        check_inf: whether an infinity in a result is an error.

    Returns:
        A context manager and decorator, in effect for the thread or asyncio task that uses it.

    Raises:
        AnomalyError: raised by code that runs in the mode: a result is not finite.

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
    """Enable or disable anomaly detection: from now on or, as a context manager, until its block ends.

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
    """A program whose results from `start` on are residuals, for `check`; None if the mode is off."""
    return Residuals(program, list(args), start) if is_anomaly_enabled() else None


def without_warnings() -> np.errstate:
    """A context that silences NumPy's floating-point warnings in the mode, where errors of `check` say more."""
    silent: Any = {kind: "ignore" for kind, mode in np.geterr().items() if mode == "warn"}
    return np.errstate(**silent)


def check(
    program: Program,
    args: Sequence[Any],
    results: Sequence[Any],
    residuals: Residuals | None = None,
    names: Callable[[], Sequence[str]] | None = None,
    out_names: Callable[[], Sequence[str]] | None = None,
) -> None:
    """Raise AnomalyError if a result is not finite and anomaly detection is on.

    Args:
        program: the program.
        args: its arguments.
        results: its results, or the first of them; NumPy or JAX arrays, or eager values.
        residuals: the program that made the first arguments, if they are residuals.
        names: returns the names of its first arguments; further ones are closed over.
        out_names: returns the names of its results; numbers by default.
    """
    checks = _checks.get()
    if checks is None:
        return
    results = list(map(concrete, results))
    if all(map(is_finite, results)):
        return
    # Most programs never need it, and importing it takes its time.
    from .report import error_of

    for number, y in enumerate(results):
        error = error_of(program, args, number, y, checks, residuals, names, out_names)
        if error is not None:
            raise error


def is_anomaly(x: Any) -> bool:
    """Whether an array holds an anomaly, by the checks of this thread or task."""
    checks = _checks.get()
    if checks is None or is_finite(x):
        return False
    x = np.asarray(x)
    return bool((checks.nan and np.isnan(x).any()) or (checks.inf and np.isinf(x).any()))
