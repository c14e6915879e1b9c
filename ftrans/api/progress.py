"""Progress bars of loops: host calls that count steps, and the bars that they move.

A loop with a bar counts its steps and reports the count to the bar through `watch`: at first every step, later only
when the count has grown by three to six percent.  So the cost is small in the long run, however short a step is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.forks import lock
from ..base.notebooks import AreaFile, is_in_notebook
from ..base.source import Line, at_line, user_line
from ..control.rules.host_call import Closable, watch
from ..control.subprograms import cut, rewired
from ..core.interpret import inline
from ..core.program import Const, Program
from ..core.trace import Builder, Tracer, building
from ..core.types import ArrayType
from ..ops.elementwise import add, eq, select, sub
from ..ops.host import in_host_call
from ..ops.literals import full, full_like, iota
from ..ops.parts import slice_

Groups = tuple[list[Tracer], list[Tracer], list[Tracer]]

_COUNT = ArrayType((), np.int64)


class Shown(NamedTuple):
    """A bar on the screen.

    Attributes:
        bar: the loop that it belongs to.
        thread: the thread whose NumPy evaluator moves it; None if a compiled program does, from threads of JAX.
        screen: what draws it.
    """

    bar: Bar
    thread: int | None
    screen: Any


# The bars on the screen, the outermost loop's first.
open_bars: list[Shown] = []
_opening = lock()


class Bar(Closable):
    """The progress bar of one loop in the user's code.

    Args:
        description: text before the bar; may be empty.
        total: the number of steps, or None if it is not known.
    """

    def __init__(self, description: str, total: int | None) -> None:
        self._description = description
        self._total = total

    # What programs call

    def __call__(self, *_: Any) -> None:
        """Show the bar, empty."""
        from tqdm import tqdm  # type: ignore[import-untyped]

        with _opening:
            self.close()
            thread = _this_thread()
            # The bars of inner loops make room for the next ones.
            is_inner = any([shown.thread == thread for shown in open_bars])
            options: dict[str, Any] = {"file": AreaFile(), "ncols": 80} if is_in_notebook() else {}
            screen = tqdm(total=self._total, desc=self._description or None, leave=not is_inner, miniters=1, **options)
            open_bars.append(Shown(self, thread, screen))

    def report(self, count: Any) -> None:
        """Move the bar to a number of steps.  Lanes of a batch have counts of their own: the largest one is shown."""
        with _opening:
            for shown in self._shown():
                # A derivative may run through a part of the loop again.
                shown.screen.update(max(int(np.max(count, initial=0)) - shown.screen.n, 0))

    def report_or_finish(self, count: Any) -> None:
        """Move the bar; the count 0 stands for the end of the loop."""
        if count == 0:
            self.finish(self._total)
        else:
            self.report(count)

    def finish(self, count: Any) -> None:
        """Move the bar to the last number of steps, and close it."""
        self.report(count)
        self.close()

    def close(self) -> None:
        """Close the bar where it stands: a loop that failed, or whose end nothing asked for, has left it open."""
        with _opening:
            for shown in self._shown():
                open_bars.remove(shown)
                shown.screen.close()

    def _shown(self) -> list[Shown]:
        """The bar as what runs here shows it."""
        thread = _this_thread()
        return [shown for shown in open_bars if shown.bar is self and shown.thread == thread]

    # What is added to loops

    def in_scan(self, program: Program, operands: Groups, length: int, reverse: bool) -> tuple[Program, Groups]:
        """The body of a scan that reports, and the loop's constants, first carry, and sequences with one more."""

        def make() -> Program:
            builder = Builder([*program.in_types, _COUNT])
            with building(builder):
                *operands, count = builder.inputs()
                outs = inline(program, operands)
                return builder.finish(watch.apply(self.report_or_finish, outs, [count], sparsely=True), program.name)

        counts = iota(shape=(length,), axis=0, dtype=_COUNT.dtype)
        # How many steps are done at the end of each; 0 at the end of the last one.
        counts = sub(full_like(counts, length), counts) if reverse else add(counts, full_like(counts, 1))
        counts = select(eq(counts, full_like(counts, length)), full_like(counts, 0), counts)
        fixed, carry, xs = operands
        carry, xs, fixed = cut(self._started([*carry, *xs, counts, *fixed]), len(carry), len(xs) + 1)
        return program.derive(("with progress", self), make), (fixed, carry, xs)

    def in_while(self, cond: Program, body: Program, operands: Groups) -> tuple[Program, Program, Groups]:
        """The programs of a while loop that reports, and its operands: a count of steps is put before the carry.

        Args:
            cond: the condition.
            body: the body.
            operands: the constants of both, and the first carry.
        """
        of_cond, of_body, _ = (len(group) for group in operands)

        def make() -> Program:
            builder = Builder([*body.in_types[:of_body], _COUNT, *body.in_types[of_body:]])
            with building(builder):
                consts, (count, *values) = cut(builder.inputs(), of_body)
                count = add(count, full_like(count, 1))
                outs = inline(body, [*consts, *values])
                outs = watch.apply(self.report, outs, [count], sparsely=True)
                return builder.finish([count, *outs], body.name)

        every = range(len(cond.inputs))
        test = rewired(cond, [*every[:of_cond], _COUNT, *every[of_cond:]])
        fixed, more, carry = operands
        carry, fixed, more = cut(self._started([*carry, *fixed, *more]), len(carry), of_cond)
        first = [full((), 0, np.int64), *carry]
        return test, body.derive(("with progress", self, of_body), make), (fixed, more, first)

    def _started(self, values: Sequence[Tracer]) -> list[Tracer]:
        """What goes into a loop, after the bar has been started.

        All of it goes through the host call, so that it is made again for every round of an outer loop.  The call is
        given one element, so that compiled code makes it after what comes before the loop.
        """
        varying = [x for x in values if not isinstance(x.atom, Const)]
        elements = [_first_element(x) for x in varying if x.size][:1]
        remaining = iter(watch.apply(self, varying, elements))
        return [x if isinstance(x.atom, Const) else next(remaining) for x in values]

    def after_while(self, outs: Sequence[Tracer]) -> list[Tracer]:
        """The results of a while loop without its count, after which the bar is closed."""
        return watch.apply(self.finish, outs[1:], outs[:1])


def _first_element(x: Tracer) -> Tracer:
    ones = (1,) * x.ndim
    return slice_(x, start=(0,) * x.ndim, limit=ones, strides=ones)


def bar_of(progress: bool | str, what: str, total: int | None) -> Bar | None:
    """The bar of the loop on the user's line, or None without `progress`.

    Args:
        progress: whether to show one, or its description.
        what: name of the function that is called.
        total: the number of steps, if it is known.

    Raises:
        TypeError: `progress` is neither a bool nor a string.
        ImportError: tqdm is not installed.
    """
    if progress is False or progress is None:
        return None
    if not isinstance(progress, bool | str):
        raise TypeError(
            f"progress of {what} must be a bool or a description, not {type(progress).__name__}{at_line(user_line())}"
        )
    try:
        import tqdm  # noqa: F401
    except ImportError:
        raise ImportError(
            f"progress bars need tqdm, which is not installed: pip install ftrans[progress]{at_line(user_line())}"
        ) from None
    return _bar(progress if isinstance(progress, str) else "", total, what, user_line())


@functools.lru_cache(maxsize=1000)
def _bar(description: str, total: int | None, what: str, line: Line | None) -> Bar:
    # Each loop has one bar, so that its program is the same whenever it is traced.
    return Bar(description, total)


def _this_thread() -> int | None:
    return None if in_host_call() else threading.get_ident()
