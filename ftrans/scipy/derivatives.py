"""Derivatives for SciPy's solvers, which count their evaluations and are compiled when that pays.

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

from ..api.jacobians import hessian, hvp, jacobian
from ..api.jit import jit, trace
from ..api.progress import bar_of
from ..api.sparse import sparse_hessian, sparse_jacobian
from ..base.source import at_line, user_line
from ..core.program import Program, programs_in
from ..numpy.promotion import asarray
from ..run.costs import program_cost, program_flops
from ..structure.detect import hessian_pattern, jacobian_pattern
from ..structure.entries import NotStructured

Function = Callable[..., Any]

# Seconds, on a core of today: NumPy's evaluator and XLA for an equation and for an addition of two numbers.
_TRACE_CALL, _TRACE_EQUATION, _NUMPY_EQUATION, _NUMPY_ADDITION = 25e-6, 4e-6, 2e-6, 1.4e-9
_COMPILE, _COMPILE_EQUATION, _COMPILED_CALL, _COMPILED_ADDITION = 0.06, 4e-3, 25e-6, 0.7e-9
# A sparse derivative costs about as much as so many evaluations of the function.
_OF_SPARSE = 6
# Steps that a loop without a known number of steps is taken to have.
_STEPS = 10

# Below so many elements a dense matrix is factorised as quickly as a sparse one.
DENSE_BELOW = 10_000
# Operations for each element that is computed, in functions that may have a sparse derivative.
_FLOPS_OF_SPARSE = 30
# Entries in a row, on average, that are looked for in any case.
_FEW_IN_ROW = 20
# Compiled values that differ by more, relative to the largest one, are of another function.
_SAME = 1e-5
# A dense Hessian with so many rows is cheaper than the products that a step takes.
FEW = 50


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


class Supplied:
    """A derivative as a solver calls it.

    Args:
        plain: the derivative, evaluated by NumPy.
        make_compiled: makes the same function compiled.
        used: where evaluations are counted.
        at: arguments at which it is evaluated, to see that it can be; the solver's first question is most often the
            same.
        compile: whether to compile it; None leaves that to the estimate.
        program: the program of the function, for the estimate, where that of the derivative takes long to find.
    """

    def __init__(
        self,
        plain: Function,
        make_compiled: Callable[[], Function],
        used: Used,
        at: tuple[Any, ...],
        compile: bool | None,
        program: Program | None = None,
    ) -> None:
        self._call = self._plain = plain
        self._last: tuple[Any, ...] = at
        self._make_compiled = make_compiled
        self.used = used
        self._patience: float = 0 if compile else math.inf
        if compile:
            self._compile()
        value = self._call(*at)
        self._scale = _largest(value)
        used.is_current = self.is_current
        self._first: tuple[tuple[Any, ...], Any] | None = (tuple(map(np.copy, at)), value)
        # The value and the gradient are one derivative; its shape is the gradient's.
        used.shape = np.shape(value[-1] if isinstance(value, tuple) else value)
        used.entries = value.nnz if issparse(value) else None
        if compile is None:
            self._patience = patience(trace(plain)(*at)) if program is None else patience(program, _OF_SPARSE)

    def __call__(self, *args: Any) -> Any:
        self.used.evaluations += 1
        self._last = args
        if self._first is not None:
            at, value = self._first
            self._first = None
            if all(map(np.array_equal, at, args)):
                return value
        if not self.used.is_compiled and self.used.evaluations > self._patience:
            self._compile()
        return self._call(*args)

    def _compile(self) -> None:
        self._call = self._make_compiled()
        self.used.is_compiled = True

    def is_current(self) -> bool:
        """Whether what was compiled is still the derivative of the function: that may depend on what has changed."""
        if not self.used.is_compiled:
            return True
        compiled, now = self._call(*self._last), self._plain(*self._last)
        error = max(_largest(a - b) for a, b in zip(_parts(compiled), _parts(now), strict=True))
        return not error > _SAME * max(self._scale, _largest(now))


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _largest(value: Any) -> float:
    """The size of the largest element of arrays, dense or sparse."""
    parts = [part.data if issparse(part) else np.asarray(part) for part in _parts(value)]
    return max((float(np.max(np.abs(part), initial=0)) for part in parts), default=0.0)


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


def patience(program: Program, times: int = 1) -> float:
    """After how many evaluations by NumPy it would have paid to compile what costs `times` as much as a program."""
    equations, executed = times * len(program.eqns), times * _executed(program)
    additions = times * program_cost(program).time
    by_numpy = _TRACE_CALL + _TRACE_EQUATION * equations + _NUMPY_EQUATION * executed + _NUMPY_ADDITION * additions
    compiled = _COMPILED_CALL + _COMPILED_ADDITION * additions
    return (_COMPILE + _COMPILE_EQUATION * equations) / max(by_numpy - compiled, 1e-6)


def _executed(program: Program) -> float:
    """The number of equations that NumPy runs, those of loops once for each step."""
    return sum(
        1 + eqn.params.get("length", _STEPS) * sum(map(_executed, programs_in(eqn.params))) for eqn in program.eqns
    )


# What functions return, as SciPy reads it


def scalar(f: Function) -> Function:
    """A function whose result, one number in whatever shape, is an array without axes."""
    return lambda *args: np.reshape(asarray(f(*args)), ())


def vector(f: Function) -> Function:
    """A function whose result, an array, a number, or a list of them, is a vector."""
    return lambda *args: np.reshape(asarray(f(*args)), (-1,))


# Derivatives by the first argument


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


def jacobian_of(
    f: Function, at: tuple[Any, ...], used: Used, sparse: bool, compile: bool | None, dense_below: int = DENSE_BELOW
) -> Supplied:
    """The Jacobian of a vector-valued function by its first argument.

    Args:
        f: the function.
        at: arguments at which it can be evaluated.
        used: where it is entered what was used.
        sparse: whether it may be a sparse array.
        compile: whether it is compiled; None leaves that to the estimate.
        dense_below: the number of elements below which it is dense all the same.
    """
    program = trace(f)(*at) if sparse else None
    if program is None or not _is_sparse(program, at[0].size, dense_below):
        derivative = jacobian(f)
        used.engine = "dense Jacobian"
        return Supplied(derivative, lambda: jit(derivative), used, at, compile)
    derivative = sparse_jacobian(f)
    used.engine = "sparse Jacobian"
    return Supplied(derivative, lambda: jit(derivative), used, at, compile, program)


def _is_sparse(program: Program, width: int, dense_below: int) -> bool:
    size = program.out_types[0].size * width

    def find(active: list[bool], at_most: float) -> Any:
        return jacobian_pattern(program, active, 1, {}, at_most)

    return size >= dense_below and (not dense_below or _has_few_entries(program, size, find))


def hessian_of(f: Function, at: tuple[Any, ...], used: Used, compile: bool | None) -> Supplied:
    """The Hessian of a scalar function by its first argument, as a dense matrix."""
    derivative = hessian(f)
    used.engine = "dense Hessian"
    return Supplied(derivative, lambda: jit(derivative), used, at, compile)


def sparse_hessian_of(f: Function, at: tuple[Any, ...], used: Used, compile: bool | None) -> Supplied | None:
    """The Hessian of a scalar function by its first argument, as a sparse array; None if it is not sparse."""
    program = trace(f)(*at)

    def find(active: list[bool], at_most: float) -> Any:
        return hessian_pattern(program, active, {}, at_most)

    if not _has_few_entries(program, at[0].size ** 2, find):
        return None
    derivative = sparse_hessian(f)
    used.engine = "sparse Hessian"
    return Supplied(derivative, lambda: jit(derivative), used, at, compile, program)


def _has_few_entries(program: Program, size: int, find: Function) -> bool:
    """Whether a derivative by the first input, with `size` elements, is sparse, as far as it is worth finding out."""
    elements = sum(v.type.size for eqn in program.eqns for v in eqn.outputs)
    # Products of large matrices make dense derivatives, after a long look.
    if program_flops(program) > _FLOPS_OF_SPARSE * elements:
        return False
    active = [i == 0 for i in range(len(program.inputs))]
    try:
        return bool(find(active, max(size / 4, _FEW_IN_ROW * program.in_types[0].size)).nnz <= size / 4)
    except NotStructured:
        return False


def product_of(f: Function, at: tuple[Any, ...], used: Used, compile: bool | None) -> Supplied:
    """The product of the Hessian of a scalar function with a vector: a function of its arguments, then the vector."""

    def derivative(x: Any, *rest: Any) -> Any:
        *others, direction = rest
        return hvp(lambda x: f(x, *others), (x,), (direction,))

    used.engine = "products with the Hessian"
    return Supplied(derivative, lambda: jit(derivative), used, (*at, np.zeros_like(at[0])), compile)


@contextmanager
def solving(what: str, f: Function, account: Account, progress: bool | str) -> Iterator[Function]:
    """A context for a solver: the function that it is to call, which moves a progress bar.

    At the end it is seen whether the functions that were compiled are still what they were.

    Args:
        what: the name of the solver.
        f: the function.
        account: what the solver is given.
        progress: whether to show a bar, or its description.
    """
    with _progress_line(progress, what, f) as shown:
        yield shown
    changed = []
    for name, used in account.items():
        if used.is_current is not None and not used.is_current():
            changed.append(name)
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
    if bar is None:
        yield f
        return
    count = 0

    # SciPy reads the parameters of some functions.
    @functools.wraps(f)
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        bar.report(count)
        return f(*args, **kwargs)

    bar()
    try:
        yield counted
    finally:
        bar.close()
