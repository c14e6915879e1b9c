"""Observer: who looks on while programs run.

A profile, a search for the first NaN: such tools are told of each equation that the NumPy evaluator runs, and of the
work around it (tracing, transforming, compiling).  An observer belongs to the thread or task that installed it, by
`observing`.  While there is none, looking for it costs one `ContextVar.get` for each run of a program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from .source import Line

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)

# The observer of this thread or task, or None.
current_observer = _observer.get

_NOTHING = contextlib.nullcontext()


class Observer:
    """Base class of observers: each method does the work that it is told of, and nothing else.

    Equations of loop bodies and of other sub-programs are reported, too, inside the report of the equation that holds
    them.  What XLA compiles is one piece of work.
    """

    def equation(self, eqn: Any, operands: Sequence[Any], run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Run one equation.

        Args:
            eqn: the equation.
            operands: the values of its operands.  Where NumPy broadcasts by itself, one may be smaller than its type.
            run: evaluates the equation; to be called once.

        Returns:
            What `run` returns: the values of the results.
        """
        return run()

    def operation(
        self, name: str, program: Any, operands: Sequence[Any], run: Callable[[], Any], line: Line | None = None
    ) -> Any:
        """Run an operation that does not run as a program: a NumPy call, at once, or the backward of one.

        Args:
            name: what it is called.
            program: what it computes.
            operands: the arrays that it computes with.
            run: does it; to be called once.
            line: the user's line that it is for; the one that runs now by default.

        Returns:
            What `run` returns.
        """
        return run()

    def activity(self, kind: str, name: str, subject: Any = None) -> contextlib.AbstractContextManager[Any]:
        """Context around work other than an equation: tracing, transforming, compiling.

        Args:
            kind: "tracing", "transforming", "compiling" or "compiled call".
            name: the transformation, or the step of compiling.
            subject: the function that is traced, the program that is transformed, or the `xla.Compiled` that is
                compiled or called.
        """
        return _NOTHING


class _Both(Observer):
    """An observer and the one inside whose block it was installed."""

    def __init__(self, outer: Observer, inner: Observer) -> None:
        self.outer = outer
        self.inner = inner

    def equation(self, eqn: Any, operands: Sequence[Any], run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        return self.outer.equation(eqn, operands, lambda: self.inner.equation(eqn, operands, run))

    def operation(
        self, name: str, program: Any, operands: Sequence[Any], run: Callable[[], Any], line: Line | None = None
    ) -> Any:
        inner = self.inner
        return self.outer.operation(
            name, program, operands, lambda: inner.operation(name, program, operands, run, line), line
        )

    def activity(self, kind: str, name: str, subject: Any = None) -> contextlib.AbstractContextManager[Any]:
        return _Nested(self.outer.activity(kind, name, subject), self.inner.activity(kind, name, subject))


class _Nested:
    """One context inside another."""

    def __init__(self, outer: contextlib.AbstractContextManager[Any], inner: contextlib.AbstractContextManager[Any]):
        self._outer = outer
        self._inner = inner
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._stack:
            self._stack.enter_context(self._outer)
            self._stack.enter_context(self._inner)
            self._stack = self._stack.pop_all()

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)


class observing:
    """Let `observer` look on until the block ends, along with those that look on already; None stops all of them."""

    __slots__ = ("_observer", "_token")

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer

    def __enter__(self) -> None:
        outer, inner = _observer.get(), self._observer
        self._token = _observer.set(inner if outer is None or inner is None else _Both(outer, inner))

    def __exit__(self, *_: object) -> None:
        _observer.reset(self._token)


def activity(kind: str, name: str, subject: Any = None) -> contextlib.AbstractContextManager[Any]:
    """The context of a piece of work that is no equation: see `Observer.activity`."""
    observer = _observer.get()
    return _NOTHING if observer is None else observer.activity(kind, name, subject)


def reported(
    block: contextlib.AbstractContextManager[Any], kind: str, name: str, subject: Any = None
) -> contextlib.AbstractContextManager[Any]:
    """`block`, as a piece of work that is no equation."""
    return _Nested(activity(kind, name, subject), block)
