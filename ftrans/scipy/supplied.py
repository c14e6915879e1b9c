"""Derivatives as SciPy's solvers call them: counted, compiled when that pays, and accounted for in the result.

NumPy evaluates a derivative at first.  It is compiled when its evaluations have cost about as much as compiling it
does: so a solve takes at most about twice as long as with the better choice, though nobody knows beforehand how many
evaluations it needs.  The costs are estimated from the program, not measured, so that equal calls have equal results.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..api.jit import jit
from ..api.progress import bar_of
from ..base.progress import shows_progress, working
from ..base.source import at_line, user_line
from ..core.program import Program, programs_in
from ..run.costs import program_cost

Function = Callable[..., Any]

# Seconds, on a core of today: NumPy's evaluator and XLA for an equation and for an addition of two numbers.
_TRACE_CALL, _TRACE_EQUATION, _NUMPY_EQUATION, _NUMPY_ADDITION = 25e-6, 4e-6, 2e-6, 1.4e-9
_COMPILE, _COMPILE_EQUATION, _COMPILED_CALL, _COMPILED_ADDITION = 0.06, 4e-3, 25e-6, 0.7e-9
# Steps that a loop without a known number of steps is taken to have.
_STEPS = 10
# Compiled values that differ by more, relative to the largest one, are of another function.
_SAME = 1e-5


@dataclass
class Used:
    """What a solver was given for one derivative.

    Attributes:
        engine: how it is computed; empty if it was left to SciPy.
        shape: its shape.
        entries: the number of entries that may be nonzero, of a sparse matrix; None for a dense one.
        is_compiled: whether it was compiled in the end.
        evaluations: how often the solver asked for it.
        reason: why it was left to SciPy; empty if it was not.
        is_current: while it is solved, says whether a compiled derivative is still that of the function.
    """

    engine: str = ""
    shape: tuple[int, ...] = ()
    entries: int | None = None
    is_compiled: bool = False
    evaluations: int = 0
    reason: str = ""
    is_current: Callable[[], bool] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        if self.reason:
            return f"left to SciPy: {self.reason}"
        pattern = "" if self.entries is None else f", {self.entries} of {math.prod(self.shape)} entries"
        times = "evaluation" if self.evaluations == 1 else "evaluations"
        how = "compiled" if self.is_compiled else "NumPy"
        return f"{self.engine}{pattern}, {how}, {self.evaluations} {times}"


Account = dict[str, Used]


def attempt(account: Account, name: str, make: Callable[[Used], Any]) -> Any:
    """What `make` makes for a solver, or None, with an entry in the account if an error says why there is none."""
    used = Used()
    try:
        found = make(used)
    except Exception as error:  # whatever the user's function raises when it is traced
        account[name] = Used(reason=f"{type(error).__name__}: {error}")
        return None
    if found is not None:
        account[name] = used
    return found


class Supplied:
    """A derivative as a solver calls it.

    Args:
        derivative: the derivative, evaluated by NumPy.
        used: where evaluations are counted.
        at: arguments at which it is evaluated, to see that it can be; the solver's first question is most often the
            same.
        compile: whether to compile it; None compiles it after `patience` evaluations.
        patience: after how many evaluations it has paid to compile it.
    """

    def __init__(
        self, derivative: Function, used: Used, at: tuple[Any, ...], compile: bool | None, patience: float
    ) -> None:
        self._plain = derivative
        self._call = jit(derivative) if compile else derivative
        self.used = used
        used.is_compiled = bool(compile)
        used.is_current = self._is_current
        self._patience = patience if compile is None else math.inf
        value = self._call(*at)
        # The value and the gradient are one derivative; its shape is the gradient's.
        used.shape = np.shape(_parts(value)[-1])
        used.entries = value.nnz if issparse(value) else None
        self._scale = _largest(value)
        self._last: tuple[Any, ...] = at
        self._first: tuple[tuple[Any, ...], Any] | None = (tuple(map(np.copy, at)), value)

    def __call__(self, *args: Any) -> Any:
        self.used.evaluations += 1
        self._last = args
        if self._first is not None:
            at, value = self._first
            self._first = None
            if all(map(np.array_equal, at, args)):
                return value
        if self.used.evaluations > self._patience:
            self._compile(args)
        return self._call(*args)

    def _compile(self, args: tuple[Any, ...]) -> None:
        self._patience = math.inf
        compiled = jit(self._plain)
        try:
            compiled(*args)
        except Exception:  # it does without, as so far
            return
        self._call = compiled
        self.used.is_compiled = True

    def _is_current(self) -> bool:
        """Whether what was compiled is still the derivative of the function: that may depend on what has changed."""
        if not self.used.is_compiled:
            return True
        compiled = self._call(*self._last)
        # Many steps can amplify the rounding by which XLA and NumPy differ: then the same program compiled once more
        # gives the same numbers.
        return self._agree(compiled, self._plain(*self._last)) or self._agree(compiled, jit(self._plain)(*self._last))

    def _agree(self, compiled: Any, now: Any) -> bool:
        error = max(_largest(a - b) for a, b in zip(_parts(compiled), _parts(now), strict=True))
        return not error > _SAME * max(self._scale, _largest(now))


class Gradient:
    """The gradient of a function; once it is compiled, one call gives the value, too, for solvers that ask for both.

    Args:
        f: the function.
        supplied: its value and gradient.
    """

    def __init__(self, f: Function, supplied: Supplied) -> None:
        self._f = f
        self._supplied = supplied
        self._last: tuple[Any, Any] | None = None

    def value(self, x: Any) -> Any:
        """The value at a point."""
        return self._both(x)[0] if self._supplied.used.is_compiled else self._f(x)

    def gradient(self, x: Any) -> Any:
        """The gradient at a point."""
        return self._both(x)[1]

    def _both(self, x: Any) -> Any:
        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = np.copy(x), self._supplied(x)
        return self._last[1]


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _largest(value: Any) -> float:
    """The size of the largest element of arrays, dense or sparse."""
    parts = [part.data if issparse(part) else np.asarray(part) for part in _parts(value)]
    return max((float(np.max(np.abs(part), initial=0)) for part in parts), default=0.0)


def patience(program: Program, equations: float, additions: float) -> float:
    """After how many evaluations by NumPy it would have paid to compile a derivative.

    Args:
        program: the program of the function.
        equations: how many times as many equations the derivative has.
        additions: how many times as many operations.
    """
    count, executed = equations * len(program.eqns), equations * _executed(program)
    work = additions * program_cost(program).time
    by_numpy = _TRACE_CALL + _TRACE_EQUATION * count + _NUMPY_EQUATION * executed + _NUMPY_ADDITION * work
    compiled = _COMPILED_CALL + _COMPILED_ADDITION * work
    return (_COMPILE + _COMPILE_EQUATION * count) / max(by_numpy - compiled, 1e-6)


def _executed(program: Program) -> float:
    """The number of equations that NumPy runs, those of loops once for each step."""
    return sum(
        1 + eqn.params.get("length", _STEPS) * sum(map(_executed, programs_in(eqn.params))) for eqn in program.eqns
    )


@contextmanager
def solving(what: str, f: Function, account: Account, progress: bool | str) -> Iterator[Function]:
    """A context for a solver: the function that it is to call, which moves a progress bar.

    An error says which derivatives the solver had to do without.  At the end it is seen whether the functions whose
    derivatives were compiled are still what they were.

    Args:
        what: the name of the solver.
        f: the function.
        account: what the solver is given.
        progress: whether to show a bar, or its description.
    """
    try:
        with _progress_line(progress, what, f) as shown:
            yield shown
    except Exception as error:
        for name, used in account.items():
            if used.reason:
                error.add_note(f"ftrans found no {name} for {what}: {used.reason}")
        raise
    changed = [name for name, used in account.items() if used.is_current is not None and not used.is_current()]
    for used in account.values():
        # Results can be pickled, derivatives cannot.
        used.is_current = None
    if changed:
        warnings.warn(
            f"the function behind {', '.join(changed)} depends on something that has changed while {what} ran, so that "
            f"its compiled derivative was that of another function; pass what changes as an argument, or give "
            f"compile=False{at_line(user_line())}",
            RuntimeWarning,
            stacklevel=4,
        )


@contextmanager
def _progress_line(progress: bool | str, what: str, f: Function) -> Iterator[Function]:
    bar = bar_of(what if progress is True else progress, what, None)
    if bar is None and not shows_progress():
        yield f
        return
    count = 0

    # SciPy reads the parameters of some functions.
    @functools.wraps(f)
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if bar is None:
            work.advance()
        else:
            bar.report(count)
        return f(*args, **kwargs)

    if bar is None:
        with working(f"{what}, evaluation") as work:
            yield counted
        return
    bar()
    try:
        yield counted
    finally:
        bar.close()
